//! What there is to know first of a solved model, as text and JSON.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::diagnostic::quantity::{number, percent, significant, time};
use crate::lqn::Model;
use crate::lqn::sketch::Quantiles;
use crate::model::OpenServers;
use crate::report::bottleneck::{element, words};
use crate::report::look::{Look, Tone};
use crate::report::validation::between;
use crate::study::interval::Interval;
use crate::study::outlook::{Certain, Outlook, Sooner, WhySooner};

/// What is so near to saturation is saturated.
const SAME: f64 = 0.005;

/// Intervals that are so narrow, as a part of the figure to both sides, are left out of the text.
pub(super) const NARROW: f64 = 0.05;

/// Sources of load that are named before the tables.
const SHOWN: usize = 8;

/// Processors that may saturate sooner and are named.
const SOONER: usize = 3;

/// A line each source of load, and one on what saturates first.
pub fn text(model: &Model, outlook: &Outlook, look: Look) -> String {
    let mut text = String::new();
    let mut loads: Vec<_> = outlook.loads.iter().collect();
    if loads.len() > SHOWN {
        loads.sort_by(|left, right| right.throughput.total_cmp(&left.throughput));
    }
    for load in loads.iter().take(SHOWN) {
        let simulated = quantiles(&load.quantiles);
        let response = match load.response {
            None => "no steady response".to_owned(),
            Some(mean) => {
                let told = load.interval.filter(|own| own.high - mean > NARROW * mean || model.calibration.is_some());
                let range = told.map(|own| format!(" ({})", between(own, time))).unwrap_or_default();
                let by = if simulated.is_empty() { "" } else { " (simulated)" };
                let other = load.simulated_response.map(|other| {
                    format!(", but {} in a simulation of the same model, which approximates less", time(other))
                });
                format!("response {}{range}{}{simulated}{by}", time(mean), other.unwrap_or_default())
            }
        };
        let error = load.rate_error.map(|error| format!(" ± {}", percent(error))).unwrap_or_default();
        let least = if load.is_least_rate { " or more" } else { "" };
        let rate = format!("{}/s{error}{least}", number(load.throughput));
        text.push_str(&broken(&format!("{}: {response}, at {rate}", load.name), look.width));
        let traced = quantiles(&load.traced_quantiles);
        if let Some(mean) = load.traced_response.filter(|_| !traced.is_empty()) {
            text.push_str(&broken(&format!("traced: response {}{traced}", time(mean)), look.width));
        }
    }
    if loads.len() > SHOWN {
        text.push_str(&format!("and {} more, below\n", loads.len() - SHOWN));
    }
    text + &capacity(model, outlook, look)
}

/// The lines on what saturates first, and on what may saturate sooner.
pub fn capacity(model: &Model, outlook: &Outlook, look: Look) -> String {
    let mut text = String::new();
    let doubts = doubts(model, outlook, look);
    let Some(first) = &outlook.first else {
        return text + "nothing has a limit: nothing can saturate\n" + &doubts;
    };
    let what = words(model, first.resource);
    let times = significant(first.factor, 2, -3..6);
    let told = first.interval.filter(|own| own.is_wider(first.factor, NARROW));
    let range =
        told.map(|own| format!(" ({})", between(own, |factor| significant(factor, 2, -3..6)))).unwrap_or_default();
    let whose = if outlook.loads.iter().any(|load| load.assumed) { "the assumed" } else { "today's" };
    let are_least = outlook.loads.iter().any(|load| load.is_least_rate);
    let (tone, line) = if first.factor > 1.0 + SAME {
        let line = format!(
            "saturates first: {what}, {} busy now: good up to {times} times {whose} load{range}{}",
            percent(first.busy),
            if are_least { ", or less: rates are lower bounds" } else { "" }
        );
        (Tone::of_utilization(first.busy), line)
    } else if first.factor > 1.0 - SAME {
        (Tone::Alarm, format!("saturated: {what}: more load only makes queues longer"))
    } else {
        (Tone::Alarm, format!("overloaded: {what} is asked for {} of what it has", percent(first.busy)))
    };
    for line in broken(&line, look.width).lines() {
        text.push_str(&look.paint(tone, line));
        text.push('\n');
    }
    if let Some(open) = first.open {
        text.push_str(&broken(&hangs_on(model, open, first.certain), look.width));
    }
    text + &doubts
}

/// What may saturate sooner.
fn doubts(model: &Model, outlook: &Outlook, look: Look) -> String {
    let line = |own: &Sooner| {
        let name = &model.processors[own.processor.index()].name;
        let times = significant(own.factor, 2, -3..6);
        let line = match own.why {
            WhySooner::Delay { servers } => {
                let servers = if servers == 1 { "1 server".to_owned() } else { format!("{servers} servers") };
                format!(
                    "but {name} was taken for a delay (M049): with {servers}, which would fit as well, it saturates at {times} times"
                )
            }
            WhySooner::Others { busy } => {
                format!(
                    "but programs or requests without traces keep {} servers of {name} busy (M078): it saturates at {times} times, or sooner if they grow with the load",
                    number(busy)
                )
            }
            WhySooner::Quota { cores } => {
                format!(
                    "but {name} has a quota of {} cores: it saturates at {times} times",
                    significant(cores, 2, -3..6)
                )
            }
            WhySooner::Machine { cores, is_open: true, .. } => {
                let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
                format!(
                    "but copies of {name} share a machine: with {cores}, which would fit as well, it saturates at {times} times (M049)"
                )
            }
            WhySooner::Machine { cores, .. } => {
                format!("but copies of {name} share machines of {cores} cores (M049): it saturates at {times} times")
            }
            WhySooner::UnevenCopies => {
                format!(
                    "but the busiest copy of {name} has more work than the model lets it have (M074): it saturates at {times} times"
                )
            }
        };
        broken(&line, look.width)
    };
    let more = outlook.sooner.len().saturating_sub(SOONER);
    let more = if more > 0 { format!("and {more} more may saturate sooner\n") } else { String::new() };
    outlook.sooner.iter().take(SOONER).map(line).collect::<String>() + &more
}

/// Says that what saturates first is not certain, and what is.
fn hangs_on(model: &Model, OpenServers { servers, least }: OpenServers, certain: Option<Certain>) -> String {
    let taken = if servers == 1 { "1 server was".to_owned() } else { format!("{servers} servers were") };
    let open = format!("but {taken} taken there, and {least} or more fit (M049)");
    match certain {
        Some(Certain { resource, busy, factor }) => format!(
            "{open}; of those that are certain, the first is {}, {} busy: at {} times",
            words(model, resource),
            percent(busy),
            significant(factor, 2, -3..6)
        ),
        None => format!("{open}; no other limit is certain"),
    }
}

/// Those that there are, each after a comma.
fn quantiles(of: &Quantiles) -> String {
    let interval = of.p95_interval.map(|(low, high)| format!(" ({})", between(Interval { low, high }, time)));
    let named = [("p50", of.p50, None), ("p95", of.p95, interval), ("p99", of.p99, None)];
    let text =
        |name, value, interval: Option<String>| format!(", {name} {}{}", time(value), interval.unwrap_or_default());
    named.into_iter().filter_map(|(name, value, interval)| Some(text(name, value?, interval))).collect()
}

/// A line in lines so wide, where its words allow.
pub(super) fn broken(line: &str, width: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in line.split(' ') {
        let own = word.width();
        if used > 0 && used + 1 + own > width {
            text.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += own;
    }
    text.push('\n');
    text
}

/// `{"loads": [{"name", "throughput", "response", "simulated_response", "p50", "p95", "p99", "traced": {"response", "p50", "p95", "p95_low", "p95_high", "p99"}}], "saturates_first":
/// {"kind", "name", "busy", "factor"}}`, seconds and per second. `simulated_response` is there where it is far from the solver's. `traced` is null of a model file.
/// Loads have `low` and `high`, the interval of the response, of a calibrated model and where the load is the observed one, and then `throughput_low` and
/// `throughput_high`, that of the rate; `throughput_is_lower_bound` where operations of the same time are missing. What saturates first has `low` and `high` as well, of a calibrated model and where it is a processor and the loads are the observed ones. Where its number of servers is open, it has the least that fits as
/// `servers_at_least`, and as `certain` what saturates first of resources whose number is not. `sooner`, `[{"name", "factor", "why", "servers_at_least"}]`, are processors that may saturate
/// sooner: those of which `why` is `delay` were taken for delays, and so few servers fit as well; the busiest of `uneven copies` is busier than the others; `others`, programs or requests without traces, keep `busy` servers of a copy; a `quota` lets a copy use so many `cores`; copies share a `machine` of so many `cores`.
pub fn json(model: &Model, outlook: &Outlook) -> Value {
    let loads = outlook.loads.iter().map(|load| {
        let mut own = times(load.response, &load.quantiles);
        own["name"] = json!(load.name);
        own["throughput"] = json!(load.throughput);
        if let Some(simulated) = load.simulated_response {
            own["simulated_response"] = json!(simulated);
        }
        with_interval(&mut own, load.interval);
        if let Some(error) = load.rate_error {
            let Interval { low, high } = Interval::around(load.throughput, load.throughput * error);
            own["throughput_low"] = json!(low);
            own["throughput_high"] = json!(high);
        }
        if load.is_least_rate {
            own["throughput_is_lower_bound"] = json!(true);
        }
        own["traced"] = load.traced_response.map_or(Value::Null, |mean| times(Some(mean), &load.traced_quantiles));
        own
    });
    let first = outlook.first.as_ref().map(|first| {
        let (kind, name) = element(model, first.resource);
        let mut own = json!({ "kind": kind, "name": name, "busy": first.busy, "factor": first.factor });
        with_interval(&mut own, first.interval);
        if let Some(open) = first.open {
            own["servers_at_least"] = json!(open.least);
            own["certain"] = first.certain.map_or(Value::Null, |certain| {
                let (kind, name) = element(model, certain.resource);
                json!({ "kind": kind, "name": name, "busy": certain.busy, "factor": certain.factor })
            });
        }
        own
    });
    let mut told = json!({ "loads": loads.collect::<Value>(), "saturates_first": first });
    let sooner = |own: &Sooner| {
        let name = &model.processors[own.processor.index()].name;
        match own.why {
            WhySooner::Delay { servers } => {
                json!({ "name": name, "factor": own.factor, "why": "delay", "servers_at_least": servers })
            }
            WhySooner::UnevenCopies => json!({ "name": name, "factor": own.factor, "why": "uneven copies" }),
            WhySooner::Quota { cores } => {
                json!({ "name": name, "factor": own.factor, "why": "quota", "cores": cores })
            }
            WhySooner::Machine { cores, is_open, .. } => {
                let key = if is_open { "cores_at_least" } else { "cores" };
                json!({ "name": name, "factor": own.factor, "why": "machine", key: cores })
            }
            WhySooner::Others { busy } => {
                json!({ "name": name, "factor": own.factor, "why": "others", "busy": busy })
            }
        }
    };
    if !outlook.sooner.is_empty() {
        told["sooner"] = outlook.sooner.iter().map(sooner).collect();
    }
    told
}

/// Adds the ends of an interval as `low` and `high`; that of one without an upper end is null.
fn with_interval(own: &mut Value, interval: Option<Interval>) {
    if let Some(interval) = interval {
        own["low"] = json!(interval.low);
        own["high"] = json!(interval.high);
    }
}

/// `{"response", "p50", "p95", "p99"}`, seconds; of measured times with `p95_low` and `p95_high`, its 95 % interval. An upper end that it does not have
/// is null.
pub(super) fn times(response: Option<f64>, quantiles: &Quantiles) -> Value {
    let mut own = json!({ "response": response, "p50": quantiles.p50, "p95": quantiles.p95, "p99": quantiles.p99 });
    if let Some((low, high)) = quantiles.p95_interval {
        own["p95_low"] = json!(low);
        own["p95_high"] = json!(high);
    }
    own
}
