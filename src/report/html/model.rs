//! The model in a picture and in tables.

use crate::diagnostic::quantity::number;
use crate::lqn::terms::{kind, later_phase, multiplicity, replicas, scheduling};
use crate::lqn::{Body, Model, Scheduling};
use crate::report::html::Report;
use crate::report::html::pictures;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{rate, time};
use crate::report::markup::Markup;
use crate::report::names;
use crate::report::results::only_sources;

/// The model.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    pictures::model(report, html);
    let model = &names::for_people(report.model);
    processors(model, html);
    tasks(model, html);
    entries(report, model, html);
    requests(model, html);
    activities(model, html);
}

fn unless_one(value: u32) -> Cell {
    if value <= 1 { Cell::Blank } else { Cell::Count(u64::from(value)) }
}

fn demand(seconds: f64) -> Cell {
    Cell::Quantity(time(seconds), seconds)
}

fn processors(model: &Model, html: &mut Markup) {
    let mut table = Table::new("Processors", &["Processor", "Scheduling", ">Servers", ">Replicas", ">Speed"]);
    // The processors of customers are there because the language asks for one.
    let of_customers = only_sources(model);
    for (processor, _) in model.processors.iter().zip(of_customers).filter(|(_, of_customers)| !of_customers) {
        table.row(|| {
            vec![
                Cell::Name(processor.name.to_string()),
                Cell::from(scheduling(processor.scheduling)),
                Cell::Text(multiplicity(processor.multiplicity)),
                unless_one(processor.replicas),
                if processor.speed == 1.0 { Cell::Blank } else { Cell::Text(number(processor.speed)) },
            ]
        });
    }
    table.write(html);
}

fn tasks(model: &Model, html: &mut Markup) {
    let mut table = Table::new(
        "Tasks",
        &["Task", "Processor", "Scheduling", ">Threads or customers", ">Replicas", ">Priority", ">Think time"],
    );
    for task in &model.tasks {
        table.row(|| {
            let customers = task.scheduling == Scheduling::Reference;
            let processor = &model.processors[task.processor.index()].name;
            vec![
                Cell::Name(task.name.to_string()),
                if customers { Cell::from("none of weight") } else { Cell::Name(processor.to_string()) },
                Cell::from(if customers { "customers" } else { scheduling(task.scheduling) }),
                Cell::Text(multiplicity(task.multiplicity)),
                replicas(task).map_or(Cell::Blank, Cell::Text),
                if task.priority == 0 { Cell::Blank } else { Cell::Text(task.priority.to_string()) },
                if task.think_time == 0.0 { Cell::Blank } else { demand(task.think_time) },
            ]
        });
    }
    table.write(html);
}

fn entries(report: &Report<'_>, model: &Model, html: &mut Markup) {
    let mut table = Table::new(
        "Entries: services, with the processor time that one invocation takes itself",
        &["Entry", "Task", "Type", ">Arrivals", ">Demand", ">Phase 2", ">Phase 3"],
    );
    for (place, entry) in model.entries.iter().enumerate() {
        table.row(|| {
            let interaction = report.made.and_then(|made| made.origins.entries.get(place));
            let phase = |phase: usize| match &entry.body {
                Body::Phases(phases) => phases.get(phase).map_or(Cell::Blank, |work| demand(work.demand)),
                Body::Activities(_) if phase == 0 => Cell::from("activities"),
                Body::Activities(_) => Cell::Blank,
            };
            vec![
                Cell::Name(entry.name.to_string()),
                Cell::Name(model.tasks[entry.task.index()].name.to_string()),
                interaction.map_or(Cell::Blank, |origin| Cell::from(origin.interaction.label())),
                entry.open_arrival_rate.map_or(Cell::Blank, |arrivals| Cell::Quantity(rate(arrivals), arrivals)),
                phase(0),
                phase(1),
                phase(2),
            ]
        });
    }
    table.write(html);
    if report.made.is_some() {
        html.element("p", &[], "Types: Cu customer, R remote procedure call, A asynchronous, F forwarding.");
    }
}

fn requests(model: &Model, html: &mut Markup) {
    let mut table = Table::new("Requests that one invocation makes", &["From", "To", "Kind", "Phase", ">Mean number"]);
    for request in model.requests() {
        table.row(|| {
            vec![
                Cell::Name(model.caller(request.from).to_owned()),
                Cell::Name(model.entries[request.to.index()].name.to_string()),
                Cell::from(kind(request.kind)),
                later_phase(request.from).map_or(Cell::Blank, |phase| Cell::Text(phase.to_string())),
                Cell::Quantity(number(request.mean), request.mean),
            ]
        });
    }
    table.write(html);
}

/// Most lines of activity graphs that are shown.
const ARCS: usize = 200;

fn activities(model: &Model, html: &mut Markup) {
    let mut table = Table::new("Activities", &["Activity", "Task", ">Demand", "Replies to"]);
    for activity in &model.activities {
        table.row(|| {
            let replies: Vec<&str> =
                activity.replies.iter().take(5).map(|entry| &*model.entries[entry.index()].name).collect();
            vec![
                Cell::Name(activity.name.to_string()),
                Cell::Name(model.tasks[activity.task.index()].name.to_string()),
                demand(activity.work.demand),
                if replies.is_empty() { Cell::Blank } else { Cell::Name(replies.join(", ")) },
            ]
        });
    }
    table.write(html);
    let mut arcs = model.tasks.iter().flat_map(|task| &task.precedences).map(|arc| crate::lqn::terms::arc(model, arc));
    let shown: Vec<String> = arcs.by_ref().take(ARCS).collect();
    if shown.is_empty() {
        return;
    }
    html.element("h3", &[], "Order of activities");
    html.open("pre", &[("tabindex", "0")]);
    for arc in &shown {
        html.name(arc).text("\n");
    }
    html.close();
    let hidden = arcs.count();
    if hidden > 0 {
        html.element("p", &[], &format!("{hidden} more lines are not shown."));
    }
}
