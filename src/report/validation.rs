//! A model held against measurements, as text, JSON and a plot.

use serde_json::{Value, json};

use crate::diagnostic::quantity::{for_people, number, percent, time};
use crate::report::bottleneck::{element, words};
use crate::report::json::pretty;
use crate::report::look::{Look, Tone};
use crate::report::plot::{Plot, Scale, Series};
use crate::report::table::{Cell, Table};
use crate::study::interval::Interval;
use crate::study::validation::{Compared, LoadValidation, Verdict};

/// The version of the JSON form.
const VERSION: u32 = 1;

/// For people: load by load, a row each scenario and each processor.
pub fn text(loads: &[LoadValidation], tolerance: f64, look: Look) -> String {
    let mut text = String::new();
    for load in loads {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("against {}\n", load.against));
        if !load.is_converged {
            text.push_str("the solver did not converge: do not rely on the predictions\n");
        }
        if !load.scenarios.is_empty() {
            text.push('\n');
            text.push_str(&scenarios(load, tolerance, look));
        }
        if !load.processors.is_empty() {
            text.push('\n');
            text.push_str(&processors(load, tolerance, look));
        }
        if let Some(first) = &load.saturation {
            let range = first.interval.map(|own| format!(", {}", between(own, number))).unwrap_or_default();
            let (what, factor) = (words(&load.model, first.resource), number(first.factor));
            text.push_str(&format!("\nsaturates first: {what}, at {factor} times this load{range}\n"));
        }
        for missing in &load.missing {
            text.push_str(&format!("not compared: {missing}\n"));
        }
    }
    text
}

fn scenarios(load: &LoadValidation, tolerance: f64, look: Look) -> String {
    let mut table = Table::new(&[
        "SCENARIO",
        "FIGURE",
        ">PREDICTED",
        ">INTERVAL",
        ">MEASURED",
        ">INTERVAL",
        ">OFF BY (%)",
        "VERDICT",
    ]);
    for scenario in &load.scenarios {
        let per_second = |value: f64| format!("{}/s", number(value));
        row(&mut table, &scenario.name, "throughput", &scenario.throughput, tolerance, per_second);
        row(&mut table, "", "mean response", &scenario.response, tolerance, time);
        row(&mut table, "", "p95 of responses", &scenario.p95, tolerance, time);
    }
    table.render(look)
}

fn processors(load: &LoadValidation, tolerance: f64, look: Look) -> String {
    let mut table = Table::new(&[
        "PROCESSOR",
        ">BUSY, PREDICTED",
        ">INTERVAL",
        ">BUSY, MEASURED",
        ">OFF BY (%)",
        "VERDICT",
        "MEASURED BY",
    ]);
    for processor in &load.processors {
        let busy = &processor.busy;
        let mut cells: Vec<Cell> = vec![
            processor.name.to_string().into(),
            shown(busy.predicted, number).into(),
            busy.interval.map(|own| between(own, number)).unwrap_or_default().into(),
            shown(busy.measured, number).into(),
            off(busy).into(),
        ];
        let by = match (busy.measured, processor.is_measured) {
            (None, _) => "",
            (Some(_), true) => "utilisation",
            (Some(_), false) => "times of spans",
        };
        cells.extend([verdict(busy, tolerance), by.into()]);
        table.row(cells);
    }
    table.render(look)
}

fn row(table: &mut Table, name: &str, figure: &str, own: &Compared, tolerance: f64, form: impl Fn(f64) -> String) {
    table.row(vec![
        Cell::from(name),
        figure.into(),
        shown(own.predicted, &form).into(),
        own.interval.map(|own| between(own, &form)).unwrap_or_default().into(),
        shown(own.measured, &form).into(),
        own.measured_interval.map(|own| between(own, &form)).unwrap_or_default().into(),
        off(own).into(),
        verdict(own, tolerance),
    ]);
}

fn shown(value: Option<f64>, form: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), form)
}

fn off(own: &Compared) -> String {
    own.error().map(|error| format!("{:+.1}", 100.0 * error)).unwrap_or_default()
}

fn verdict(own: &Compared, tolerance: f64) -> Cell {
    match own.verdict(tolerance) {
        Verdict::Off => Cell::toned("OFF", Tone::Alarm),
        other => word(other).into(),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Near => "near",
        Verdict::Inside => "inside",
        Verdict::Off => "off",
        Verdict::Unknown => "unknown",
    }
}

/// An interval in words.
pub fn between(interval: Interval, form: impl Fn(f64) -> String) -> String {
    if interval.high.is_finite() {
        format!("{} to {}", form(interval.low), form(interval.high))
    } else {
        format!("{} or more", form(interval.low))
    }
}

/// One JSON document, ending in a newline: `{"dyelog-validation": 1, "tolerance", "scenarios": [{"name", "against", "rate", "verdict", "measured":
/// {"response", "low", "high", "throughput", "p95", "p95_low", "p95_high"}, "predicted": {"response", "low", "high", "throughput", "p95", "p95_low", "p95_high"}}],
/// "processors": [{"name", "against", "verdict", "measured": {"busy", "by"}, "predicted": {"busy", "low", "high"}}], "saturation": [{"against", "kind", "name",
/// "factor", "low", "high"}], "missing": [{"against", "reason"}], "converged"}`. Seconds, per second, busy servers; what is not known is null, and so is
/// the upper end of an interval that has none. `low` and `high` are those of the mean response. The verdict of a scenario is that of its mean response.
pub fn json(loads: &[LoadValidation], tolerance: f64) -> String {
    let scenarios = loads.iter().flat_map(|load| {
        load.scenarios.iter().map(|own| {
            json!({
                "name": *own.name,
                "against": load.against,
                "rate": own.rate,
                "verdict": word(own.response.verdict(tolerance)),
                "measured": {
                    "response": own.response.measured,
                    "low": low(own.response.measured_interval),
                    "high": high(own.response.measured_interval),
                    "throughput": own.throughput.measured,
                    "p95": own.p95.measured,
                    "p95_low": low(own.p95.measured_interval),
                    "p95_high": high(own.p95.measured_interval),
                },
                "predicted": {
                    "response": own.response.predicted,
                    "low": low(own.response.interval),
                    "high": high(own.response.interval),
                    "throughput": own.throughput.predicted,
                    "p95": own.p95.predicted,
                    "p95_low": low(own.p95.interval),
                    "p95_high": high(own.p95.interval),
                },
            })
        })
    });
    let processors = loads.iter().flat_map(|load| {
        load.processors.iter().map(|own| {
            let by = if own.is_measured { "utilisation" } else { "spans" };
            json!({
                "name": *own.name,
                "against": load.against,
                "verdict": word(own.busy.verdict(tolerance)),
                "measured": { "busy": own.busy.measured, "by": own.busy.measured.map(|_| by) },
                "predicted": { "busy": own.busy.predicted, "low": low(own.busy.interval), "high": high(own.busy.interval) },
            })
        })
    });
    let saturation = loads.iter().filter_map(|load| {
        let first = load.saturation.as_ref()?;
        let (kind, name) = element(&load.model, first.resource);
        let (low, high) = (low(first.interval), high(first.interval));
        Some(
            json!({ "against": load.against, "kind": kind, "name": name, "factor": first.factor, "low": low, "high": high }),
        )
    });
    let missing = loads
        .iter()
        .flat_map(|load| load.missing.iter().map(|reason| json!({ "against": load.against, "reason": reason })));
    pretty(&json!({
        "dyelog-validation": VERSION,
        "tolerance": tolerance,
        "converged": loads.iter().all(|load| load.is_converged),
        "scenarios": scenarios.collect::<Value>(),
        "processors": processors.collect::<Value>(),
        "saturation": saturation.collect::<Value>(),
        "missing": missing.collect::<Value>(),
    }))
}

fn low(interval: Option<Interval>) -> Option<f64> {
    interval.map(|interval| interval.low)
}

/// Null in JSON where it is infinite.
fn high(interval: Option<Interval>) -> Option<f64> {
    interval.map(|interval| interval.high)
}

/// A plot for each scenario: mean responses over the measured rate, predicted and measured, with their intervals.
pub fn plots(loads: &[LoadValidation]) -> Vec<Plot> {
    let mut names: Vec<&str> = loads.iter().flat_map(|load| load.scenarios.iter().map(|own| &*own.name)).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| plot(name, loads)).collect()
}

fn plot(name: &str, loads: &[LoadValidation]) -> Plot {
    let mut own: Vec<_> =
        loads.iter().flat_map(|load| load.scenarios.iter().filter(|own| *own.name == *name)).collect();
    own.sort_by(|left, right| left.rate.total_cmp(&right.rate));
    let (factor, unit) = for_people("s");
    let predicted = Series {
        name: "predicted".to_owned(),
        points: own
            .iter()
            .map(|own| (own.rate, own.response.predicted.map(|seconds| seconds * factor), false))
            .collect(),
        bars: own
            .iter()
            .filter_map(|own| {
                let interval = own.response.interval.filter(|interval| interval.high.is_finite())?;
                Some((own.rate, interval.low * factor, interval.high * factor))
            })
            .collect(),
    };
    let measured = Series {
        name: "measured".to_owned(),
        points: own
            .iter()
            .map(|own| (own.rate, own.response.measured.map(|seconds| seconds * factor), false))
            .collect(),
        bars: own
            .iter()
            .filter_map(|own| {
                own.response.measured_interval.map(|interval| (own.rate, interval.low * factor, interval.high * factor))
            })
            .collect(),
    };
    Plot {
        x: "operations (1/s)".to_owned(),
        y: format!("{name}: mean response ({unit})"),
        scale: Scale::Linear,
        series: vec![predicted, measured],
    }
}

/// How many figures were compared, and how many were off. What was worked out from the times of spans was not measured, and is left out.
pub fn counted(loads: &[LoadValidation], tolerance: f64) -> (usize, usize) {
    let figures = loads.iter().flat_map(|load| {
        let scenarios = load.scenarios.iter().flat_map(|own| [own.throughput, own.response, own.p95]);
        scenarios.chain(load.processors.iter().filter(|own| own.is_measured).map(|own| own.busy))
    });
    let verdicts: Vec<Verdict> = figures.map(|own| own.verdict(tolerance)).collect();
    let of = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|own| wanted(own)).count();
    (of(|own| *own != Verdict::Unknown), of(|own| *own == Verdict::Off))
}

/// What was compared, in a sentence, and what was measured and could not be.
pub fn verdict_words(loads: &[LoadValidation], tolerance: f64) -> String {
    let (all, off) = counted(loads, tolerance);
    let within = percent(tolerance);
    let open = unpredicted(loads);
    let whose = if open.is_empty() { "figures" } else { "predicted figures" };
    let told = match (all, off) {
        (0, _) => "nothing could be compared\n".to_owned(),
        (all, off) if off > 0 => format!(
            "{off} of {all} {whose} are off by more than {within}, and their interval does not have what was measured\n"
        ),
        (all, _) if open.is_empty() => {
            format!("all {all} figures are within {within} of what was measured, or the intervals meet\n")
        }
        (all, _) => {
            format!("{all} predicted figures are within {within} of what was measured, or the intervals meet\n")
        }
    };
    let told = told + &by_spans(loads, tolerance);
    if open.is_empty() { told } else { format!("not predicted, though measured: {}\n{told}", open.join(", ")) }
}

/// How many utilisations are off of those that were worked out from the times of spans, in a sentence: tables have them, and the verdict does not.
fn by_spans(loads: &[LoadValidation], tolerance: f64) -> String {
    let processors = loads.iter().flat_map(|load| &load.processors).filter(|own| !own.is_measured);
    let verdicts: Vec<Verdict> = processors.map(|own| own.busy.verdict(tolerance)).collect();
    let of = |wanted: fn(&Verdict) -> bool| verdicts.iter().filter(|own| wanted(own)).count();
    match (of(|own| *own != Verdict::Unknown), of(|own| *own == Verdict::Off)) {
        (_, 0) => String::new(),
        (all, off) => format!(
            "{off} of {all} utilisations that follow from the times of spans are off; they were not measured, and do not count\n"
        ),
    }
}

/// What was measured and not predicted, by kind, with how many of them there are.
fn unpredicted(loads: &[LoadValidation]) -> Vec<String> {
    let scenarios = || loads.iter().flat_map(|load| &load.scenarios);
    let is_open = |own: &Compared| own.measured.is_some() && own.predicted.is_none();
    let processors = loads.iter().flat_map(|load| &load.processors);
    let kinds = [
        ("throughput", "throughputs", scenarios().filter(|own| is_open(&own.throughput)).count()),
        ("mean response", "mean responses", scenarios().filter(|own| is_open(&own.response)).count()),
        ("p95", "p95s", scenarios().filter(|own| is_open(&own.p95)).count()),
        ("utilisation", "utilisations", processors.filter(|own| own.is_measured && is_open(&own.busy)).count()),
    ];
    let words = |(one, many, count): (&str, &str, usize)| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    kinds.into_iter().filter_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::verdict_words;
    use crate::lqn::Model;
    use crate::study::validation::{BusyValidation, Compared, LoadValidation};

    /// A load with two processors, the first of which was measured as predicted, and the second, by spans or measured as well, is off by half.
    fn load(is_measured: bool) -> LoadValidation {
        let busy = |name: &str, measured, is_measured| {
            let busy = Compared { predicted: Some(0.5), measured: Some(measured), ..Compared::default() };
            BusyValidation { name: name.into(), busy, is_measured }
        };
        LoadValidation {
            against: "t".to_owned(),
            model: Model::default(),
            scenarios: Vec::new(),
            processors: vec![busy("one", 0.5, true), busy("other", 1.0, is_measured)],
            saturation: None,
            missing: Vec::new(),
            is_converged: true,
        }
    }

    /// What the table calls off is in the words, whether it counts or not.
    #[test]
    fn figures_that_do_not_count_are_told() {
        let words = verdict_words(&[load(false)], 0.1);
        assert!(words.starts_with("all 1 figures are within 10 %"), "{words}");
        assert!(
            words.contains("1 of 1 utilisations that follow from the times of spans are off; they were"),
            "{words}"
        );
        let words = verdict_words(&[load(true)], 0.1);
        assert!(words.starts_with("1 of 2 figures are off") && !words.contains("times of spans"), "{words}");
    }
}
