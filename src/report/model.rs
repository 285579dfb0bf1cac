//! Models as text for people.

use crate::diagnostic::quantity::{in_ms, number};
use crate::lqn::terms::{arc, kind, later_phase, multiplicity, replicas, scheduling};
use crate::lqn::{Body, Model};
use crate::model::{EntryOrigin, Origins};
use crate::report::Look;
use crate::report::names::for_people;
use crate::report::table::Table;

/// A model in tables. Where it was made of traces its origins add the scenarios, the types of entries, how
/// often they were seen and the sources of their demands.
pub fn text(model: &Model, origins: Option<&Origins>, look: impl Into<Look>) -> String {
    let (look, model) = (look.into(), &for_people(model));
    let mut text = String::new();
    if !model.comment.is_empty() {
        text.push_str(&model.comment);
        text.push('\n');
    }
    let mut tables = Vec::new();
    tables.extend(origins.map(scenarios));
    tables.extend([processors(model), tasks(model), entries(model, origins), activities(model), calls(model)]);
    let graph = precedences(model);
    for part in tables.iter().filter(|table| !table.is_empty()).map(|table| table.render(look)).chain(graph) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
}

fn scenarios(origins: &Origins) -> Table {
    let mut table =
        Table::new(&["SCENARIO", "IN PROPORTION", ">OPERATIONS", "LOAD", "LOAD IS", ">TRACED RESPONSE (ms)"]);
    for scenario in &origins.scenarios {
        let members = scenario.members.iter().map(|(name, part)| format!("{} {name}", number(*part)));
        table.row(vec![
            scenario.name.to_string(),
            members.collect::<Vec<_>>().join(", "),
            scenario.operations.to_string(),
            scenario.load.to_string(),
            format!("{:?}", scenario.reason).to_lowercase(),
            scenario.observed_response.map(in_ms).unwrap_or_default(),
        ]);
    }
    table
}

fn processors(model: &Model) -> Table {
    let mut table = Table::new(&["PROCESSOR", "SCHEDULING", ">SERVERS", ">REPLICAS", ">SPEED"]);
    for processor in &model.processors {
        table.row(vec![
            processor.name.to_string(),
            scheduling(processor.scheduling).to_owned(),
            multiplicity(processor.multiplicity),
            unless_one(processor.replicas),
            if processor.speed == 1.0 { String::new() } else { number(processor.speed) },
        ]);
    }
    table
}

fn tasks(model: &Model) -> Table {
    let mut table =
        Table::new(&["TASK", "PROCESSOR", "SCHEDULING", ">THREADS", ">REPLICAS", ">PRIORITY", ">THINK TIME (ms)"]);
    for task in &model.tasks {
        table.row(vec![
            task.name.to_string(),
            model.processors[task.processor.index()].name.to_string(),
            scheduling(task.scheduling).to_owned(),
            multiplicity(task.multiplicity),
            replicas(task).unwrap_or_default(),
            if task.priority == 0 { String::new() } else { task.priority.to_string() },
            unless_zero(task.think_time),
        ]);
    }
    table
}

fn entries(model: &Model, origins: Option<&Origins>) -> Table {
    let mut table = Table::new(&[
        "ENTRY",
        "TASK",
        "TYPE",
        ">SEEN",
        ">ARRIVALS (1/s)",
        ">DEMAND (ms)",
        ">PHASE 2 (ms)",
        ">PHASE 3 (ms)",
        ">DELAY (ms)",
        "DEMAND FROM",
    ]);
    for (index, entry) in model.entries.iter().enumerate() {
        let origin = origins.map(|origins| &origins.entries[index]);
        let demand = |phase: usize| match &entry.body {
            Body::Phases(phases) => phases.get(phase).map(|work| in_ms(work.demand)).unwrap_or_default(),
            Body::Activities(_) if phase == 0 => "activities".to_owned(),
            Body::Activities(_) => String::new(),
        };
        table.row(vec![
            entry.name.to_string(),
            model.tasks[entry.task.index()].name.to_string(),
            origin.map(|origin| origin.interaction.label().to_owned()).unwrap_or_default(),
            origin.map(|origin| origin.invocations.to_string()).unwrap_or_default(),
            entry.open_arrival_rate.map(number).unwrap_or_default(),
            demand(0),
            demand(1),
            demand(2),
            match &entry.body {
                Body::Phases(phases) => unless_zero(phases.iter().map(|work| work.think_time).sum()),
                Body::Activities(_) => String::new(),
            },
            origin.map(demand_sources).unwrap_or_default(),
        ]);
    }
    table
}

/// Where the demands of an entry come from, phase by phase where they differ.
pub(crate) fn demand_sources(origin: &EntryOrigin) -> String {
    let mut sources = origin.sources.clone();
    sources.dedup();
    sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn activities(model: &Model) -> Table {
    let mut table = Table::new(&["ACTIVITY", "TASK", ">DEMAND (ms)", ">DELAY (ms)", "REPLIES TO"]);
    for activity in &model.activities {
        let replies: Vec<&str> = activity.replies.iter().map(|entry| &*model.entries[entry.index()].name).collect();
        table.row(vec![
            activity.name.to_string(),
            model.tasks[activity.task.index()].name.to_string(),
            in_ms(activity.work.demand),
            unless_zero(activity.work.think_time),
            replies.join(", "),
        ]);
    }
    table
}

fn calls(model: &Model) -> Table {
    let mut table = Table::new(&["REQUEST FROM", "TO", "KIND", ">PHASE", ">MEAN NUMBER"]);
    for request in model.requests() {
        table.row(vec![
            model.caller(request.from).to_owned(),
            model.entries[request.to.index()].name.to_string(),
            kind(request.kind).to_owned(),
            later_phase(request.from).map_or_else(String::new, |phase| phase.to_string()),
            number(request.mean),
        ]);
    }
    table
}

/// The activity graphs, an arc a line in the notation of the text language.
fn precedences(model: &Model) -> Option<String> {
    let mut text = String::new();
    for task in &model.tasks {
        for precedence in &task.precedences {
            text.push_str(&format!("  {}\n", arc(model, precedence)));
        }
    }
    (!text.is_empty()).then(|| format!("ORDER OF ACTIVITIES\n{text}"))
}

fn unless_one(value: u32) -> String {
    if value <= 1 { String::new() } else { value.to_string() }
}

fn unless_zero(seconds: f64) -> String {
    if seconds == 0.0 { String::new() } else { in_ms(seconds) }
}
