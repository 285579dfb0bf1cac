//! Results as text for people.

use crate::diagnostic::quantity::{counted, in_ms, number, significant, time};
use crate::lqn::results::{Convergence, HalfWidths, ProcessorResult, Results, Simulated};
use crate::lqn::terms::{kind, later_phase, multiplicity};
use crate::lqn::{ActivityId, EntryId, Model, Multiplicity, ProcessorId, Scheduling, TaskId};
use crate::model::Origins;
use crate::report::model::demand_sources;
use crate::report::outlook::{NARROW, broken};
use crate::report::table::{Cell, Table};
use crate::report::validation::between;
use crate::report::{Look, Tone, names};
use crate::study::interval::Interval;
use crate::study::{ScenarioResult, utilization};

/// Results in tables. Where the model was made of traces its origins add the scenarios and the sources of demands. Where
/// there is colour, it marks servers and threads that are (nearly) always busy. The method comes last, unless it did not converge.
pub fn text(model: &Model, results: &Results, origins: Option<&Origins>, look: impl Into<Look>) -> String {
    let look = look.into();
    let mut text = String::new();
    if !results.convergence.converged {
        text.push_str(&look.paint(Tone::Alarm, convergence(results).trim_end()));
        text.push('\n');
    }
    let mut section = |table: &Table| {
        if !table.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&table.render(look));
        }
    };
    if let Some(origins) = origins {
        section(&scenarios(model, results, origins));
    }
    section(&processors(model, results, origins));
    section(&tasks(model, results));
    section(&entries(model, results, origins));
    section(&activities(model, results));
    section(&calls(model, results));
    section(&percentiles(model, results));
    if results.convergence.converged {
        text.push('\n');
        convergence(results).lines().for_each(|line| text.push_str(&broken(line, look.width)));
    }
    text
}

/// Whether the method has an error of its own, in words.
pub(super) fn exactness(convergence: &Convergence) -> &'static str {
    if convergence.exact { "exact" } else { "an approximation, which a simulation can check" }
}

fn convergence(results: &Results) -> String {
    let found = &results.convergence;
    if let Some(simulated) = &results.simulated {
        return simulation(results, simulated);
    }
    let steps = counted(found.iterations, "iteration");
    if found.converged {
        format!("solver {}: converged after {steps} ({}); {}\n", results.solver, found.method, exactness(found))
    } else {
        let why = if found.saturated {
            "there is no steady state".to_owned()
        } else {
            format!("the last change was {}", number(found.residual))
        };
        format!("solver {}: NOT CONVERGED after {steps} ({}); {why}\n", results.solver, found.method)
    }
}

fn simulation(results: &Results, simulated: &Simulated) -> String {
    let found = &results.convergence;
    let precise = if simulated.precision.is_finite() {
        format!("; users and open arrivals to within ±{} %", number(100.0 * simulated.precision))
    } else {
        String::new()
    };
    format!(
        "solver {}: {}{}{precise}; {} measured after a warm-up of {}\nbeside a figure: half of its 95 % confidence interval\n",
        results.solver,
        if found.converged { "" } else { "NOT CONVERGED after " },
        found.method,
        time(simulated.time),
        time(simulated.warm_up)
    )
}

/// A figure, with half of its interval where there is one.
fn figure(value: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(half_width) if half_width > 0.0 && value != 0.0 => {
            let share = 100.0 * half_width / value.abs();
            if share >= 1000.0 {
                format!("{} ±?", number(value))
            } else {
                format!("{} ±{}%", number(value), short(share))
            }
        }
        _ => number(value),
    }
}

/// The same of a time, in milliseconds.
fn time_figure(seconds: f64, half_width: Option<f64>) -> String {
    figure(seconds * 1e3, half_width.map(|half_width| half_width * 1e3))
}

/// A percentage with two digits that mean something.
fn short(share: f64) -> String {
    let digits = if share >= 10.0 {
        0
    } else if share >= 1.0 {
        1
    } else {
        2
    };
    format!("{share:.digits$}")
}

/// A time or a number of threads; a dash where there is no steady state: queues grow, and these with them.
fn steady(results: &Results, figure: impl FnOnce() -> String) -> String {
    if results.convergence.saturated { "–".to_owned() } else { figure() }
}

fn half_widths(results: &Results) -> Option<&HalfWidths> {
    results.simulated.as_ref().map(|simulated| &simulated.half_widths)
}

fn percentiles(model: &Model, results: &Results) -> Table {
    let found = results.simulated.as_ref().map_or(&[][..], |simulated| &simulated.percentiles);
    let parts: Vec<f64> =
        found.first().map_or_else(Vec::new, |first| first.values.iter().map(|value| value.part).collect());
    let headings: Vec<String> = parts.iter().map(|part| format!(">{} % (ms)", number(100.0 * part))).collect();
    let mut all = vec!["RESPONSE OF", ">RESPONSES"];
    all.extend(headings.iter().map(String::as_str));
    let mut table = Table::new(&all);
    for percentiles in found {
        let mut row = vec![names::entry(model, percentiles.entry).into_owned(), percentiles.count.to_string()];
        row.extend(percentiles.values.iter().map(|value| in_ms(value.time)));
        table.row(row);
    }
    table
}

fn scenarios(model: &Model, results: &Results, origins: &Origins) -> Table {
    let mut table =
        Table::new(&["SCENARIO", "LOAD", ">THROUGHPUT (1/s)", ">PREDICTED RESPONSE (ms)", ">TRACED RESPONSE (ms)"]);
    for scenario in ScenarioResult::all(model, results, origins) {
        let optional = |value: Option<f64>| value.map(in_ms).unwrap_or_default();
        table.row(vec![
            scenario.origin.name.to_string(),
            scenario.origin.load.to_string(),
            number(scenario.throughput),
            optional(scenario.response),
            optional(scenario.origin.observed_response),
        ]);
    }
    table
}

fn processors(model: &Model, results: &Results, origins: Option<&Origins>) -> Table {
    let intervals = utilization::intervals(model, results, origins);
    let is_wide = |(own, result): (&Option<Interval>, &ProcessorResult)| {
        own.is_some_and(|own| own.is_wider(result.utilization, NARROW))
    };
    let told = intervals.iter().zip(&results.processors).any(is_wide);
    let headings = ["PROCESSOR", ">SERVERS", ">UTILIZATION (busy servers)", ">95 % INTERVAL"];
    let mut table = Table::new(&headings[..if told { 4 } else { 3 }]);
    let sources: Vec<bool> = only_sources(model);
    for (number_of, (processor, result)) in model.processors.iter().zip(&results.processors).enumerate() {
        // The processors of customers are there because the language asks for one.
        if !(sources[number_of] && result.utilization == 0.0) {
            let mut row = vec![
                names::processor(model, ProcessorId::from(number_of)).into_owned().into(),
                multiplicity(processor.multiplicity).into(),
                busy(
                    result.utilization,
                    half_widths(results).map(|half| half.processors[number_of].utilization),
                    processor.multiplicity,
                ),
            ];
            let range = |own: Interval| between(own, |busy| significant(busy, 3, -3..6));
            row.extend(told.then(|| Cell::from(intervals[number_of].map(range).unwrap_or_default())));
            table.row(row);
        }
    }
    table
}

/// How many servers are busy.
fn busy(utilization: f64, half_width: Option<f64>, servers: Multiplicity) -> Cell {
    let share = match servers {
        Multiplicity::Finite(servers) => utilization / f64::from(servers.max(1)),
        Multiplicity::Infinite => 0.0,
    };
    Cell::toned(figure(utilization, half_width), Tone::of_utilization(share))
}

/// By processor: whether none but reference tasks run on it.
pub(crate) fn only_sources(model: &Model) -> Vec<bool> {
    let mut only = vec![true; model.processors.len()];
    for task in &model.tasks {
        only[task.processor.index()] &= task.scheduling == Scheduling::Reference;
    }
    only
}

fn tasks(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&[
        "TASK",
        "PROCESSOR",
        ">THREADS",
        ">THROUGHPUT (1/s)",
        ">UTILIZATION (busy threads)",
        ">OF ITS PROCESSOR (busy servers)",
    ]);
    for (index, (task, result)) in model.tasks.iter().zip(&results.tasks).enumerate() {
        let half = half_widths(results).map(|half| &half.tasks[index]);
        // Customers are always busy: they think or wait.
        let servers = if task.scheduling == Scheduling::Reference { Multiplicity::Infinite } else { task.multiplicity };
        table.row(vec![
            names::task(model, TaskId::from(index)).into_owned().into(),
            if task.scheduling == Scheduling::Reference {
                String::new().into()
            } else {
                model.processors[task.processor.index()].name.to_string().into()
            },
            multiplicity(task.multiplicity).into(),
            figure(result.throughput, half.map(|half| half.throughput)).into(),
            if results.convergence.saturated {
                steady(results, String::new).into()
            } else {
                busy(result.utilization, half.map(|half| half.utilization), servers)
            },
            figure(result.processor_utilization, half.map(|half| half.processor_utilization)).into(),
        ]);
    }
    table
}

fn entries(model: &Model, results: &Results, origins: Option<&Origins>) -> Table {
    let mut table = Table::new(&[
        "ENTRY",
        "TASK",
        ">THROUGHPUT (1/s)",
        ">SERVICE (ms)",
        ">PHASE 2 (ms)",
        ">PHASE 3 (ms)",
        ">OPEN RESPONSE (ms)",
        ">UTILIZATION",
        "DEMAND FROM",
    ]);
    for (index, (entry, result)) in model.entries.iter().zip(&results.entries).enumerate() {
        let half = half_widths(results).map(|half| &half.entries[index]);
        let service =
            |phase: usize| steady(results, || time_figure(result.service[phase], half.map(|half| half.service[phase])));
        let later = |phase: usize| if result.service[phase] == 0.0 { String::new() } else { service(phase) };
        let open = |open: f64| steady(results, || time_figure(open, half.and_then(|half| half.open_response)));
        table.row(vec![
            names::entry(model, EntryId::from(index)).into_owned(),
            names::task(model, entry.task).into_owned(),
            figure(result.throughput, half.map(|half| half.throughput)),
            service(0),
            later(1),
            later(2),
            result.open_response.map(open).unwrap_or_default(),
            steady(results, || figure(result.utilization, half.map(|half| half.utilization))),
            origins.map(|origins| demand_sources(&origins.entries[index])).unwrap_or_default(),
        ]);
    }
    table
}

fn activities(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&["ACTIVITY", "TASK", ">THROUGHPUT (1/s)", ">TIME (ms)"]);
    for (index, (activity, result)) in model.activities.iter().zip(&results.activities).enumerate() {
        let half = half_widths(results).map(|half| &half.activities[index]);
        table.row(vec![
            names::activity(model, ActivityId::from(index)).into_owned(),
            names::task(model, activity.task).into_owned(),
            figure(result.throughput, half.map(|half| half.throughput)),
            steady(results, || time_figure(result.service, half.map(|half| half.service))),
        ]);
    }
    table
}

fn calls(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&["CALL FROM", "TO", "KIND", ">PHASE", ">WAITING (ms)"]);
    for (index, call) in results.calls.iter().enumerate() {
        let phase = later_phase(call.from).map_or_else(String::new, |phase| phase.to_string());
        table.row(vec![
            names::caller(model, call.from).into_owned(),
            names::entry(model, call.to).into_owned(),
            kind(call.kind).to_owned(),
            phase,
            steady(results, || time_figure(call.waiting, half_widths(results).map(|half| half.calls[index]))),
        ]);
    }
    table
}
