//! Results as text for people.

use crate::lqn::results::{Caller, Results};
use crate::lqn::{Model, Multiplicity, Scheduling};
use crate::model::Origins;
use crate::report::model::demand_sources;
use crate::report::table::{Cell, Table};
use crate::report::words::{caller, kind, multiplicity, number};
use crate::report::{Look, ScenarioResult, Tone};

/// Results in tables. Where the model was made of traces its origins add the scenarios and the sources of demands. Where
/// there is colour, it marks servers and threads that are (nearly) always busy.
pub fn text(model: &Model, results: &Results, origins: Option<&Origins>, look: impl Into<Look>) -> String {
    let look = look.into();
    let tone = if results.convergence.converged { Tone::Plain } else { Tone::Alarm };
    let mut text = look.paint(tone, convergence(results).trim_end());
    text.push('\n');
    let mut section = |table: &Table| {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.render(look));
        }
    };
    if let Some(origins) = origins {
        section(&scenarios(model, results, origins));
    }
    section(&processors(model, results));
    section(&tasks(model, results));
    section(&entries(model, results, origins));
    section(&activities(model, results));
    section(&calls(model, results));
    text
}

fn convergence(results: &Results) -> String {
    let found = &results.convergence;
    let steps = if found.iterations == 1 { "iteration" } else { "iterations" };
    if found.converged {
        format!("solver {}: converged after {} {steps} ({})\n", results.solver, found.iterations, found.method)
    } else {
        format!(
            "solver {}: NOT CONVERGED after {} {steps} ({}); the last change was {}\n",
            results.solver,
            found.iterations,
            found.method,
            number(found.residual)
        )
    }
}

fn scenarios(model: &Model, results: &Results, origins: &Origins) -> Table {
    let mut table =
        Table::new(&["SCENARIO", "LOAD", ">THROUGHPUT (1/s)", ">PREDICTED RESPONSE (s)", ">TRACED RESPONSE (s)"]);
    for scenario in ScenarioResult::all(model, results, origins) {
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
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

fn processors(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&["PROCESSOR", ">SERVERS", ">UTILIZATION (busy servers)"]);
    let sources: Vec<bool> = only_sources(model);
    for (number_of, (processor, result)) in model.processors.iter().zip(&results.processors).enumerate() {
        // The processors of customers are there because the language asks for one.
        if !(sources[number_of] && result.utilization == 0.0) {
            table.row(vec![
                Cell::from(&*processor.name),
                multiplicity(processor.multiplicity).into(),
                busy(result.utilization, processor.multiplicity),
            ]);
        }
    }
    table
}

/// How many servers are busy.
fn busy(utilization: f64, servers: Multiplicity) -> Cell {
    let share = match servers {
        Multiplicity::Finite(servers) => utilization / f64::from(servers.max(1)),
        Multiplicity::Infinite => 0.0,
    };
    Cell::toned(number(utilization), Tone::of_utilization(share))
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
    for (task, result) in model.tasks.iter().zip(&results.tasks) {
        // Customers are always busy: they think or wait.
        let servers = if task.scheduling == Scheduling::Reference { Multiplicity::Infinite } else { task.multiplicity };
        table.row(vec![
            Cell::from(&*task.name),
            model.processors[task.processor.index()].name.to_string().into(),
            multiplicity(task.multiplicity).into(),
            number(result.throughput).into(),
            busy(result.utilization, servers),
            number(result.processor_utilization).into(),
        ]);
    }
    table
}

fn entries(model: &Model, results: &Results, origins: Option<&Origins>) -> Table {
    let mut table = Table::new(&[
        "ENTRY",
        "TASK",
        ">THROUGHPUT (1/s)",
        ">SERVICE (s)",
        ">PHASE 2 (s)",
        ">PHASE 3 (s)",
        ">OPEN RESPONSE (s)",
        ">UTILIZATION",
        "DEMAND FROM",
    ]);
    for (index, (entry, result)) in model.entries.iter().zip(&results.entries).enumerate() {
        let later = |time: f64| if time == 0.0 { String::new() } else { number(time) };
        table.row(vec![
            entry.name.to_string(),
            model.tasks[entry.task.index()].name.to_string(),
            number(result.throughput),
            number(result.service[0]),
            later(result.service[1]),
            later(result.service[2]),
            result.open_response.map(number).unwrap_or_default(),
            number(result.utilization),
            origins.map(|origins| demand_sources(&origins.entries[index])).unwrap_or_default(),
        ]);
    }
    table
}

fn activities(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&["ACTIVITY", "TASK", ">THROUGHPUT (1/s)", ">TIME (s)"]);
    for (activity, result) in model.activities.iter().zip(&results.activities) {
        table.row(vec![
            activity.name.to_string(),
            model.tasks[activity.task.index()].name.to_string(),
            number(result.throughput),
            number(result.service),
        ]);
    }
    table
}

fn calls(model: &Model, results: &Results) -> Table {
    let mut table = Table::new(&["CALL FROM", "TO", "KIND", ">PHASE", ">WAITING (s)"]);
    for call in &results.calls {
        let phase = match call.from {
            Caller::Phase(_, phase) if phase > 1 => phase.to_string(),
            _ => String::new(),
        };
        table.row(vec![
            caller(model, call.from).to_owned(),
            model.entries[call.to.index()].name.to_string(),
            kind(call.kind).to_owned(),
            phase,
            number(call.waiting),
        ]);
    }
    table
}
