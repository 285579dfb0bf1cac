//! What is busiest, and what gives way first as load grows.

use crate::lqn::results::Results;
use crate::lqn::{Model, Multiplicity, Scheduling};
use crate::report::bottleneck::words;
use crate::report::html::Report;
use crate::report::html::table::{Cell, Table};
use crate::report::html::units::{percent, rate, things};
use crate::report::html::writer::Html;
use crate::report::words::number;
use crate::solve::bounds::Resource;
use crate::study::bottleneck::Bottlenecks;

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

/// An element with servers.
#[derive(Debug)]
pub struct Busy {
    processor: bool,
    place: usize,
    name: String,
    servers: u64,
    /// The share of its servers that are busy.
    pub share: f64,
}

impl Busy {
    /// What it is.
    pub fn what(&self) -> String {
        format!("{} {}", if self.processor { "processor" } else { "task" }, self.name)
    }

    /// The share of its servers that are busy in other results of the same model.
    pub fn share_in(&self, results: &Results) -> f64 {
        let utilization = if self.processor {
            results.processors.get(self.place).map_or(0.0, |result| result.utilization)
        } else {
            results.tasks.get(self.place).map_or(0.0, |result| result.utilization)
        };
        utilization / self.servers as f64
    }

    /// Of how many servers the share is.
    pub fn of_how_many(&self) -> String {
        if self.processor {
            format!("of {} busy", things(self.servers, "server", "servers"))
        } else {
            format!("of {} busy", things(self.servers, "thread", "threads"))
        }
    }

    /// How alarming that is.
    pub fn class(&self) -> &'static str {
        match self.share {
            share if share >= 0.95 => "full",
            share if share >= 0.8 => "high",
            _ => "",
        }
    }
}

/// Processors and tasks with a limited number of servers, the busiest first.
pub fn ranked(model: &Model, results: &Results) -> Vec<Busy> {
    let mut all: Vec<Busy> = Vec::new();
    // Of one copy, as its use is.
    let servers = |multiplicity: Multiplicity| match multiplicity {
        Multiplicity::Finite(servers) => Some(u64::from(servers.max(1))),
        Multiplicity::Infinite => None,
    };
    for (place, (processor, result)) in model.processors.iter().zip(&results.processors).enumerate() {
        if let Some(servers) = servers(processor.multiplicity).filter(|_| result.utilization > 0.0) {
            let share = result.utilization / servers as f64;
            all.push(Busy { processor: true, place, name: processor.name.to_string(), servers, share });
        }
    }
    for (place, (task, result)) in model.tasks.iter().zip(&results.tasks).enumerate() {
        if task.scheduling == Scheduling::Reference {
            continue;
        }
        if let Some(servers) = servers(task.multiplicity) {
            let share = result.utilization / servers as f64;
            all.push(Busy { processor: false, place, name: task.name.to_string(), servers, share });
        }
    }
    // The sort is stable, so equals stay in the model's order.
    all.sort_by(|left, right| right.share.total_cmp(&left.share));
    all
}

/// How far open arrivals can grow together.
fn rooms(report: &Report<'_>, found: &Bottlenecks, html: &mut Html) {
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
fn steps(report: &Report<'_>, found: &Bottlenecks, html: &mut Html) {
    let mut table = Table::new(
        "What saturates as all customers grow in number, and what comes next: \
         each is relieved before the next is looked for",
        &["Order", "Saturates", ">Busy", ">Its processor", "Throughput at most"],
    );
    for (place, step) in found.steps.iter().enumerate() {
        table.row(|| {
            let most = found.sources.iter().zip(&step.throughputs).map(|(source, throughput)| {
                let name = &report.model.tasks[source.task.index()].name;
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
                Cell::Text(if step.converged { most } else { format!("{most} (the solver did not converge)") }),
            ]
        });
    }
    table.write(html);
    if found.unsure {
        let what = if found.steps.is_empty() { "What saturates" } else { "What comes next" };
        let words = format!("{what} the solver could not tell: it did not converge, or found nothing saturated.");
        html.element("p", &[], &words);
    }
}

/// What gives way first.
pub fn write(report: &Report<'_>, html: &mut Html) {
    let busiest = ranked(report.model, report.results);
    if let Some(first) = busiest.first() {
        html.open("p", &[]).text("At this load the busiest is ").element("strong", &[], &first.what());
        html.text(&format!(", with {} {}.", percent(first.share), first.of_how_many()));
        html.text(match first.class() {
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
            vec![
                Cell::from(if busy.processor { "processor" } else { "task" }),
                Cell::Name(busy.name.clone()),
                Cell::Count(busy.servers),
                Cell::Share(busy.share),
            ]
        });
    }
    table.write(html);
}
