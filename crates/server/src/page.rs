//! The page at `/`: what arrives, what is busiest now, and where to go on.

use std::cmp::Ordering;

use dyelog::report::markup::Markup;

use crate::answer::Held;
use crate::meter::MOST_SERIES;
use crate::observed::Seen;
use crate::offenders::{MOST, SERVICES};
use crate::period::written;
use crate::service::Status;
use crate::split::Compared;
use crate::store::Interval;

/// A processor, how many of its servers are busy, and how many it has.
pub type Busy = (String, f64, f64);

/// When an hour began, and what was held against what in it.
pub type Hour = (String, Compared);

/// How the system is now.
pub enum Now<'p> {
    /// Nothing was recorded lately.
    Nothing,
    /// Why there is no solution.
    Unsolved(&'p str),
    /// The model's processors, the busiest first, how far the load may grow, and the model's picture.
    Solved {
        /// The processors.
        busiest: &'p [Busy],
        /// What saturates first, in lines.
        capacity: &'p str,
        /// An SVG.
        picture: &'p str,
    },
}

/// What the page tells.
pub struct Page<'p> {
    /// What became of the spans.
    pub status: &'p Status,
    /// What does not work.
    pub fault: Option<&'p str>,
    /// The intervals of the last while.
    pub intervals: &'p [Interval],
    /// Of when that is, and all that follows.
    pub at: &'p str,
    /// Services whose clocks are ahead, by how many seconds at least.
    pub ahead: &'p [(&'p str, u64)],
    /// The model of the last while, since something changed in it.
    pub now: Now<'p>,
    /// Measured against predicted responses of the last while.
    pub held: &'p Compared,
    /// The same of whole hours, the last one first.
    pub hours: &'p [Hour],
    /// What observers reported of the last while.
    pub observed: Option<&'p Seen>,
}

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}td.n,th.n{text-align:right}td.n{white-space:nowrap}\
.picture{overflow-x:auto}.picture svg{max-width:100%;height:auto}.picture .part svg{max-width:none}form{margin:.5rem 0}\
.wide{overflow-x:auto}.time{white-space:nowrap}th.of{font-weight:normal;font-style:italic;padding-top:.6rem}\
@media(max-width:40rem){body{margin:1rem auto}h1{font-size:1.6rem}h2{font-size:1.2rem}table{font-size:.85rem}td,th{padding-right:.5rem}}\
.fault{border-left:.3rem solid #c33;padding-left:.8rem}";

/// Nothing may be fetched from anywhere.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// What the last while is called.
const LATELY: &str = "the last 5 minutes";

/// How many processors are shown.
const SHOWN: usize = 10;

/// The longest sentence that is not cut, bytes.
const LONGEST: usize = 1000;

/// How many scenarios of a time are shown.
const HELD: usize = 40;

/// Periods that are linked: their name, and how a query says them.
const PERIODS: [(&str, &str); 4] = [("5 minutes", "-5m"), ("hour", "-1h"), ("day", "-1d"), ("30 days", "-30d")];

/// The page.
pub fn page(page: &Page<'_>) -> String {
    let mut html = Markup::new();
    html.trusted("<!DOCTYPE html>\n").open("html", &[("lang", "en")]).open("head", &[]);
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.element("title", &[], "dyelog server");
    html.open("style", &[]).trusted(STYLE).close().close();
    html.open("body", &[]).element("h1", &[], "What arrives");
    if let Some(fault) = page.fault {
        html.open("p", &[("class", "fault")]).text("Something does not work: ").name(fault).close();
    }
    ahead(page.ahead, &mut html);
    for (service, (spans, name)) in &page.status.offending {
        html.open("p", &[("class", "fault")]).text("The service ").name(service);
        html.text(&format!(" has more than {MOST} names of operations: {spans} spans were grouped, the last one "));
        html.name(name).text(". Names should not have identifiers in them.").close();
    }
    if let Some((spans, name)) = &page.status.other_services {
        html.open("p", &[("class", "fault")]).text(&format!(
            "There are more than {SERVICES} services: {spans} spans of others were set aside, the last one of "
        ));
        html.name(name).text(". Names of services should not have identifiers in them.").close();
    }
    if let Some((at, shown)) = page.status.counts.set_back_at {
        html.open("p", &[("class", "fault")]).text(&format!(
            "The clock of this machine came back at {} from {}: what was received while it was ahead may lie in intervals of that time",
            written(at),
            written(shown)
        ));
        html.text(".").close();
    }
    if let (points @ 1.., Some((_, last))) = (page.status.counts.no_room_points, page.status.counts.no_room) {
        html.open("p", &[("class", "fault")]).text(&format!(
            "There are more than {MOST_SERIES} series of metrics: {points} points of others were set aside, the last one at {}",
            written(last)
        ));
        if let Some(name) = &page.status.no_room {
            html.text(", ").name(name);
        }
        html.text(". A series that is silent for an hour makes room, or for 15 minutes where it says when it began.")
            .close();
    }
    let faults = page.status.scrapes.iter().filter_map(|(url, own)| Some((url, own.last.as_ref()?.fault()?)));
    for (url, why) in faults {
        html.open("p", &[("class", "fault")]).text("Metrics of ").name(url).text(": ").name(&why).text(".").close();
    }
    arrivals(page, &mut html);
    let lately = [(LATELY, page.held)];
    let all: Vec<(&str, &Compared)> =
        lately.into_iter().chain(page.hours.iter().map(|(from, held)| (&**from, held))).collect();
    periods(&all, &mut html);
    now(page, &mut html);
    html.element("h2", &[], "Measured against predicted");
    agreement(&all, &mut html);
    if let Some(seen) = page.observed {
        observed(seen, &mut html);
    }
    html.close().close();
    html.finish()
}

/// Whose clocks are ahead.
fn ahead(ahead: &[(&str, u64)], html: &mut Markup) {
    if ahead.is_empty() {
        return;
    }
    html.open("p", &[("class", "fault")]).text("Clocks are ahead of the one here, at least by ");
    for (number, (service, seconds)) in ahead.iter().take(SHOWN).enumerate() {
        html.text(&format!("{}{seconds} s at ", if number == 0 { "" } else { ", " })).name(service);
    }
    if ahead.len() > SHOWN {
        html.text(&format!(" and so on at {} more services", ahead.len() - SHOWN));
    }
    html.text(": spans had not ended when they came. A period that ends now is without them until then.").close();
}

/// What is to be known of the last periods before one is chosen, and all that can be asked about one.
fn periods(all: &[(&str, &Compared)], html: &mut Markup) {
    html.element("h2", &[], "Periods");
    for (name, held) in all {
        changes(name, held, html);
        for words in held.bounds.iter().chain(&held.missing) {
            html.open("p", &[("class", "fault")]).text("Of ").text(name).text(": ").name(words).close();
        }
    }
    forms(html);
    html.open("ul", &[]);
    for (name, from) in PERIODS {
        html.open("li", &[]).text(&format!("The last {name}: "));
        for (label, path) in [("report", "report"), ("model", "model"), ("results", "solution"), ("sub-model", "")] {
            let path = if path.is_empty() { String::new() } else { format!("/{path}") };
            html.element("a", &[("href", &format!("/v1/period{path}?from={from}"))], label).text(" ");
        }
        html.close();
    }
    html.close();
}

fn arrivals(page: &Page<'_>, html: &mut Markup) {
    let counts = page.status.counts;
    let mut rows = vec![
        ("received", counts.received),
        ("folded into models", counts.folded),
        ("of open traces", counts.open),
        ("set aside", counts.set_aside),
        ("refused", counts.refused),
        ("duplicates", counts.duplicate),
        ("later than the rest of their traces", counts.late_spans),
        ("in the last 5 minutes", page.intervals.iter().map(|interval| interval.spans).sum()),
    ];
    if counts.other_environment > 0 {
        rows.insert(4, ("of these, of other environments", counts.other_environment));
    }
    html.open("table", &[]).open("tr", &[]).element("th", &[], "Spans").element("th", &[("class", "n")], "").close();
    for (name, count) in rows {
        html.open("tr", &[]).element("td", &[], name).element("td", &[("class", "n")], &count.to_string()).close();
    }
    html.close();
}

fn now(page: &Page<'_>, html: &mut Markup) {
    let since = page.held.parts.last().map_or("", |(name, _)| name);
    html.open("h2", &[]).text("Busiest in ").text(LATELY);
    if !since.is_empty() {
        // A time stays on one line.
        for (number, time) in since.split(" to ").enumerate() {
            html.text(if number == 0 { ", " } else { " to " }).element("span", &[("class", "time")], time);
        }
    }
    html.close();
    html.element("p", &[], &format!("As of {}.", page.at));
    match page.now {
        Now::Nothing => {
            html.element("p", &[], "Nothing was recorded.");
        }
        Now::Unsolved(why) => {
            html.open("p", &[]).name(why).close();
        }
        Now::Solved { busiest: processors, capacity, picture } => {
            for line in capacity.lines() {
                html.open("p", &[]).name(line).close();
            }
            busiest(processors, html);
            html.open("div", &[("class", "picture")]).trusted(picture).close();
        }
    }
}

fn busiest(busiest: &[Busy], html: &mut Markup) {
    html.open("table", &[]).open("tr", &[]).element("th", &[], "Processor");
    html.element("th", &[("class", "n")], "busy servers").element("th", &[("class", "n")], "of").close();
    for (name, used, servers) in busiest.iter().take(SHOWN) {
        let servers = if servers.is_finite() { servers.to_string() } else { "any number".to_owned() };
        html.open("tr", &[]).open("td", &[]).name(name).close();
        html.element("td", &[("class", "n")], &format!("{used:.3}")).element("td", &[("class", "n")], &servers).close();
    }
    html.close();
    if busiest.len() > SHOWN {
        html.element("p", &[], &format!("and {} more", busiest.len() - SHOWN));
    }
}

/// Measured against predicted responses, of times that have names.
fn agreement(all: &[(&str, &Compared)], html: &mut Markup) {
    html.open("div", &[("class", "wide")]).open("table", &[]).open("tr", &[]);
    html.element("th", &[], "Scenario");
    for head in ["per second", "measured, ms", "predicted, ms", "off by"] {
        html.element("th", &[("class", "n")], head);
    }
    html.close();
    let milliseconds = |time: Option<f64>| time.map_or_else(|| "—".to_owned(), |time| format!("{:.3}", time * 1e3));
    let parts = all.iter().flat_map(|(name, compared)| {
        compared.parts.iter().map(move |(part, held)| (if part.is_empty() { *name } else { &**part }, held))
    });
    for (from, held) in parts {
        html.open("tr", &[]).element("th", &[("colspan", "5"), ("class", "of")], from).close();
        if let Err(why) = held {
            html.open("tr", &[]).open("td", &[("colspan", "5")]).name(why).close().close();
        }
        // Those that are furthest off come first.
        let mut held: Vec<(&Held, Option<f64>)> = held.iter().flatten().map(|own| (own, off_by(own))).collect();
        held.sort_by(|(_, a), (_, b)| b.map(f64::abs).partial_cmp(&a.map(f64::abs)).unwrap_or(Ordering::Equal));
        for (Held { scenario, rate, measured, predicted }, off) in held.iter().take(HELD) {
            let off = off.map(|off| if off == 0.0 { "0.0 %".to_owned() } else { format!("{off:+.1} %") });
            html.open("tr", &[]).open("td", &[]).name(scenario).close();
            let figures =
                [format!("{rate:.2}"), milliseconds(*measured), milliseconds(*predicted), off.unwrap_or_default()];
            for figure in figures {
                html.element("td", &[("class", "n")], &figure);
            }
            html.close();
        }
        if let Some((_, next)) = held.get(HELD) {
            let least = next.map_or_else(String::new, |off| format!(", off by {:.1} % at most", off.abs()));
            let words = format!("and {} more scenarios{least}", held.len() - HELD);
            html.open("tr", &[]).element("td", &[("colspan", "5")], &words).close();
        }
    }
    html.close().close();
}

/// By how much a prediction is off, percent to a tenth, where it was measured. What rounds to nothing has no sign.
fn off_by(held: &Held) -> Option<f64> {
    let both = held.measured.zip(held.predicted).filter(|(measured, _)| *measured > 0.0);
    both.map(|(measured, predicted)| (1000.0 * (predicted / measured - 1.0)).round() / 10.0)
}

/// What changes within a time that has a name, and how it was modelled.
fn changes(name: &str, compared: &Compared, html: &mut Markup) {
    if compared.changes.is_empty() {
        return;
    }
    html.open("div", &[("class", "fault")]).open("p", &[]).text("Not steady: ").text(name).text(". ");
    html.text(match compared.parts.len() {
        0 | 1 => "The model is of the mean of all of it, and predicts no part.",
        _ => "Each part has a model of its own.",
    });
    if compared.left_out > 0 {
        html.text(&format!(" Shorter parts are not modelled: {}.", compared.left_out));
    }
    html.close().open("ul", &[]);
    for change in &compared.changes {
        sentence(change, html);
    }
    html.close().close();
}

/// A sentence of a list: all of it, since its figures stand anywhere, unless names in it are of any length.
fn sentence(words: &str, html: &mut Markup) {
    html.open("li", &[]);
    if words.len() <= LONGEST {
        html.text(words).close()
    } else {
        html.name(words).close()
    };
}

/// What observers reported lately.
fn observed(seen: &Seen, html: &mut Markup) {
    html.open("h2", &[]).text("Observed in ").text(LATELY).close();
    html.open("table", &[]).open("tr", &[]).element("th", &[], "Process").element("th", &[], "Node");
    html.element("th", &[("class", "n")], "busy processors").element("th", &[("class", "n")], "operations per second");
    html.close();
    for (process, node, busy, rate) in seen.processes.iter().take(SHOWN) {
        html.open("tr", &[]).open("td", &[]).name(process).close().open("td", &[]).name(node).close();
        html.element("td", &[("class", "n")], &format!("{busy:.3}"));
        html.element("td", &[("class", "n")], &format!("{rate:.2}")).close();
    }
    html.close();
    if seen.processes.len() > SHOWN {
        html.element("p", &[], &format!("and {} more", seen.processes.len() - SHOWN));
    }
    if !seen.changes.is_empty() {
        html.open("div", &[("class", "fault")]).element("p", &[], "Not steady: a model of all of it is of the mean.");
        html.open("ul", &[]);
        for change in &seen.changes {
            sentence(change, html);
        }
        html.close().close();
    }
    html.open("p", &[]).element("a", &[("href", "/v1/observed/model?from=-5m")], "model").text(" ");
    html.element("a", &[("href", "/v1/observed/validation?from=-5m")], "measured against predicted").close();
}

/// Any period, and any two.
fn forms(html: &mut Markup) {
    let field = |html: &mut Markup, name: &str, words: &str, value: &str| {
        html.open("label", &[]).text(words).text(" ");
        html.void("input", &[("name", name), ("value", value), ("size", "22"), ("required", "")]).close().text(" ");
    };
    html.open("form", &[("action", "/v1/period/report"), ("method", "get")]);
    field(html, "from", "From", "-1h");
    field(html, "to", "to", "now");
    html.element("button", &[], "Report").close();
    html.open("form", &[("action", "/v1/period/difference"), ("method", "get")]);
    field(html, "from", "From", "-2h");
    field(html, "to", "to", "-1h");
    field(html, "other_from", "against", "-1h");
    field(html, "other_to", "to", "now");
    html.element("button", &[], "Difference").close();
    html.element("p", &[], "Times are such as 2026-02-15T21:16:00Z, or -15m for 15 minutes ago.");
}

#[cfg(test)]
mod tests {
    use super::{Now, Page, page};
    use crate::answer::Held;
    use crate::observed::Seen;
    use crate::service::Status;
    use crate::split::Compared;

    const HOSTILE: &str = "<script>alert(1)</script>";

    fn held(scenario: &str) -> Vec<Held> {
        vec![Held { scenario: scenario.to_owned(), rate: 1.0, measured: Some(0.1), predicted: None }]
    }

    fn shown(now: Now<'_>, held: &Compared, status: &Status) -> String {
        let changes = vec![format!("at 2023-11-14T22:19:20Z: `{HOSTILE}` appears")];
        let seen = Seen { processes: vec![(HOSTILE.to_owned(), HOSTILE.to_owned(), 0.5, 2.0)], changes };
        let hours = [(String::new(), held.clone())];
        page(&Page {
            status,
            fault: Some(HOSTILE),
            intervals: &[],
            at: "",
            ahead: &[(HOSTILE, 90), (HOSTILE, 2)],
            now,
            held,
            hours: &hours,
            observed: Some(&seen),
        })
    }

    #[test]
    fn names_are_escaped_wherever_they_stand() {
        let changes = vec![format!("the work of `{HOSTILE}` goes from 1 ms to 2 ms")];
        let parts = vec![(String::new(), Ok(held(HOSTILE))), (String::new(), Err(HOSTILE.to_owned()))];
        let bounds = vec![format!("the sampling of the traces of `{HOSTILE}` is not known")];
        let missing = vec![format!("`process.cpu.time` tells of `{HOSTILE}` only")];
        let held = Compared { parts, changes, bounds, missing, left_out: 0 };
        let mut status = Status::default();
        status.offending.insert(HOSTILE.to_owned(), (1, HOSTILE.to_owned()));
        status.no_room = Some(HOSTILE.to_owned());
        (status.counts.no_room_points, status.counts.no_room) = (1, Some((0, 0)));
        let busiest = [(HOSTILE.to_owned(), 0.5, 1.0)];
        let text = shown(Now::Solved { busiest: &busiest, capacity: HOSTILE, picture: "<svg></svg>" }, &held, &status);
        // Of the fault, services whose clocks are ahead, the service and its operation, the metric without room, the processor, what saturates first, and, now and in an hour, a scenario, what cannot be solved, a change, and a bound; and
        // of a process that is observed, its node, and that it appears.
        assert_eq!((text.matches("<script").count(), text.matches("&lt;script&gt;").count()), (0, 21), "{text}");
        let text = shown(Now::Unsolved(HOSTILE), &Compared::default(), &Status::default());
        assert!(!text.contains("<script"), "{text}");
    }

    #[test]
    fn what_is_off_by_nothing_has_no_sign() {
        let off = |predicted: f64| {
            let own = Held { predicted: Some(predicted), ..held("browse").remove(0) };
            let parts = vec![(String::new(), Ok(vec![own]))];
            shown(Now::Nothing, &Compared { parts, ..Compared::default() }, &Status::default())
        };
        for (predicted, words) in
            [(0.099_999, ">0.0 %<"), (0.100_001, ">0.0 %<"), (0.0999, ">-0.1 %<"), (0.102, ">+2.0 %<")]
        {
            let text = off(predicted);
            assert!(text.contains(words) && !text.contains("-0.0"), "{words} in {text}");
        }
    }

    #[test]
    fn of_many_scenarios_those_furthest_off_come_first() {
        let one = |number: u32| Held {
            scenario: format!("s{number}"),
            rate: 1.0,
            measured: Some(0.1),
            predicted: Some(0.1 + 0.001 * f64::from(number) * if number.is_multiple_of(2) { -1.0 } else { 1.0 }),
        };
        let many: Vec<Held> = (0..50).map(one).collect();
        let held = Compared { parts: vec![(String::new(), Ok(many))], ..Compared::default() };
        let text = shown(Now::Nothing, &held, &Status::default());
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
        assert!(at("<td>s49</td>") < at("<td>s48</td>") && at("<td>s48</td>") < at("<td>s10</td>"), "{text}");
        assert!(
            text.contains("and 10 more scenarios, off by 9.0 % at most") && !text.contains("<td>s9</td>"),
            "{text}"
        );
    }

    #[test]
    fn a_period_with_a_change_in_it_says_so() {
        let steady = Compared { parts: vec![(String::new(), Ok(held("browse")))], ..Compared::default() };
        let text = shown(Now::Nothing, &steady, &Status::default());
        assert!(!text.contains("Not steady: the last"), "{text}");
        let changes = vec!["at 2023-11-14T22:19:20Z the work of `find` goes from 5.98 ms to 12.2 ms, the response time of `shop browse` goes from 11 ms to 17.2 ms".to_owned()];
        let mixed = Compared { changes: changes.clone(), ..steady };
        let text = shown(Now::Nothing, &mixed, &Status::default());
        // The change stands above the form that chooses a period, and above all tables.
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
        let told = at("Not steady: the last 5 minutes. The model is of the mean");
        assert!(text.contains(&changes[0]), "{text}");
        assert!(told < at("<form") && at("<form") < at("Busiest in"), "{text}");
        let parts = ["22:13 to 22:19", "22:20 to 22:26"].map(|name| (name.to_owned(), Ok(held("browse")))).to_vec();
        let text =
            shown(Now::Nothing, &Compared { parts, changes, left_out: 2, ..Compared::default() }, &Status::default());
        for words in [
            "Busiest in the last 5 minutes, <span class=\"time\">22:20</span> to <span class=\"time\">22:26</span></h2>",
            ">22:13 to 22:19</th>",
            "Each part has a model of its own. Shorter parts are not modelled: 2.",
            "the work of `find` goes from 5.98 ms to 12.2 ms",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}
