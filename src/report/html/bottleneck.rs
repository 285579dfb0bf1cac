//! What is busiest, and what gives way first as load grows.

use crate::diagnostic::quantity::number;
use crate::lqn::Model;
use crate::report::bottleneck::{element, words};
use crate::report::html::Report;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{percent, rate, things};
use crate::report::markup::Markup;
use crate::report::names;
use crate::solve::bounds::Resource;
use crate::study::bottleneck::Bottlenecks;
use crate::study::headroom::{Occupancy, by_occupancy};

/// Resources that are shown beside the first.
const SHOWN: usize = 5;

/// What limits a scenario as its load grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The scenario.
    pub scenario: String,
    /// What saturates first, such as "processor `db`".
    pub first: String,
    /// At which load, in words.
    pub at: String,
    /// What comes next.
    pub next: Option<String>,
}

/// What a resource is.
pub fn what(model: &Model, busy: &Occupancy) -> String {
    let (kind, name) = element(model, busy.resource);
    format!("{kind} {name}")
}

/// Of how many servers its share is.
pub fn of_how_many(busy: &Occupancy) -> String {
    match busy.resource {
        Resource::Processor(_) => format!("of {} busy", things(busy.servers, "server", "servers")),
        Resource::Task(_) => format!("of {} busy", things(busy.servers, "thread", "threads")),
    }
}

/// How alarming that is.
pub fn class(busy: &Occupancy) -> &'static str {
    match busy.share {
        share if share >= 0.95 => "full",
        share if share >= 0.8 => "high",
        _ => "",
    }
}

/// How far open arrivals can grow together.
fn rooms(report: &Report<'_>, found: &Bottlenecks, html: &mut Markup) {
    let mut table = Table::new(
        "What saturates as all open arrivals grow in proportion, counted without queueing",
        &["Saturates", ">Busy now", ">At so many times the arrivals", "That is"],
    );
    for room in found.rooms.iter().take(SHOWN) {
        table.row(|| {
            let rates = found.arrivals.iter().map(|source| {
                let name = &report.model.entries[source.entry.index()].name;
                format!("{name}: {}", rate(source.rate * room.factor()))
            });
            vec![
                Cell::Text(words(report.model, room.resource)),
                Cell::Share(room.utilization),
                Cell::Quantity(number(room.factor()), room.factor()),
                Cell::Text(rates.collect::<Vec<_>>().join(", ")),
            ]
        });
    }
    table.write(html);
}

/// What saturates as closed loads grow, one after the other.
fn steps(report: &Report<'_>, found: &Bottlenecks, html: &mut Markup) {
    let mut table = Table::new(
        "What saturates as all customers grow in number, and what comes next: \
         each bottleneck is removed before the next is sought",
        &["Order", "Saturates", ">Busy", ">Its processor", "Throughput at most"],
    );
    for (place, step) in found.steps.iter().enumerate() {
        table.row(|| {
            let most = found.sources.iter().zip(&step.throughputs).map(|(source, throughput)| {
                let name = names::source(report.model, source.task);
                format!("{name}: {}", rate(*throughput))
            });
            let most = most.collect::<Vec<_>>().join(", ");
            vec![
                Cell::from(if place == 0 { "first" } else { "then" }),
                Cell::Text(words(report.model, step.resource)),
                Cell::Share(step.utilization),
                if matches!(step.resource, Resource::Task(_)) {
                    Cell::Share(step.processor_utilization)
                } else {
                    Cell::Blank
                },
                Cell::Text(match (step.converged, step.counted) {
                    (false, _) => format!("{most} (the solver did not converge)"),
                    (true, true) => format!("{most} (counted without queueing)"),
                    (true, false) => most,
                }),
            ]
        });
    }
    table.write(html);
}

/// What gives way first.
pub fn write(report: &Report<'_>, html: &mut Markup) {
    let busiest = by_occupancy(report.model, report.results);
    if let Some(first) = busiest.first() {
        html.open("p", &[]).text("At this load the busiest is ").element("strong", &[], &what(report.model, first));
        html.text(&format!(", with {} {}.", percent(first.share), of_how_many(first)));
        html.text(match class(first) {
            "full" => " It is saturated: more load only makes queues longer.",
            "high" => " Queues in front of it grow steeply with any more load.",
            _ => " Nothing is saturated.",
        });
        html.close();
    } else {
        html.element("p", &[], "No element has a limited number of servers, so nothing can saturate.");
    }
    let mut limits = Table::new(
        "What saturates first as a scenario’s load grows",
        &["Scenario", "Saturates first", "At a load of", "Next"],
    );
    for limit in report.limits {
        limits.row(|| {
            vec![
                Cell::Name(limit.scenario.clone()),
                Cell::Text(limit.first.clone()),
                Cell::Text(limit.at.clone()),
                limit.next.clone().map_or(Cell::Blank, Cell::Text),
            ]
        });
    }
    limits.write(html);
    if let Some(found) = report.bottlenecks {
        rooms(report, found, html);
        steps(report, found, html);
    }
    let mut table = Table::new("The busiest", &["Kind", "Name", ">Servers or threads", ">Busy"]).in_order("the first");
    for busy in busiest.iter().take(15) {
        table.row(|| {
            let (kind, name) = element(report.model, busy.resource);
            vec![Cell::from(kind), Cell::Name(name.to_owned()), Cell::Count(busy.servers), Cell::Share(busy.share)]
        });
    }
    table.write(html);
}
