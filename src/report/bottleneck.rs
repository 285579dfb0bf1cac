//! What limits a model, as text and JSON.

use serde_json::{Value, json};

use crate::diagnostic::quantity::{in_ms, number, time};
use crate::lqn::Model;
use crate::report;
use crate::report::json::pretty;
use crate::report::look::Look;
use crate::report::names;
use crate::report::table::Table;
use crate::solve::bounds::{Limit, Resource};
use crate::study::bottleneck::{BottleneckStep, Bottlenecks};
use crate::study::outlook::Outlook;

/// Bounds of a source that are shown.
const SHOWN: usize = 5;

/// Text for people: how far today's load can grow, as the solver has it; tables of the bounds of each load by itself; then what saturates as all closed ones, and all open ones, grow
/// in proportion.
pub fn text(model: &Model, found: &Bottlenecks, outlook: &Outlook, look: Look) -> String {
    let mut text = report::outlook::capacity(model, outlook, look) + "\n";
    for source in &found.sources {
        let name = names::source(model, source.task);
        text.push_str(&format!(
            "{name}: response {} without queueing, think time {}",
            time(source.response),
            time(source.think_time)
        ));
        if let (Some(limit), Some(customers)) = (source.limits.first(), source.saturation_point()) {
            text.push_str(&format!(
                "; at most {}/s, by {}; the asymptotes meet at {} customers",
                number(limit.throughput()),
                words(model, limit.resource),
                number(customers)
            ));
        }
        text.push_str("\n\n");
        text.push_str(&bounds(model, &source.limits, "IN A CYCLE", look));
    }
    for source in &found.arrivals {
        let name = &model.entries[source.entry.index()].name;
        text.push_str(&format!(
            "{name}: {}/s arrive, response {} without queueing",
            number(source.rate),
            time(source.response)
        ));
        if let Some(limit) = source.limits.first() {
            text.push_str(&format!(
                "; alone at most {}/s, by {}",
                number(limit.throughput()),
                words(model, limit.resource)
            ));
        }
        text.push_str("\n\n");
        text.push_str(&bounds(model, &source.limits, "FOR AN ARRIVAL", look));
    }
    if !found.rooms.is_empty() {
        let mut table =
            Table::new(&["OPEN ARRIVALS SATURATE", ">BUSY NOW (%)", ">AT MOST (times now)", "THAT IS (1/s)"]);
        for room in found.rooms.iter().take(SHOWN) {
            let rates = found.arrivals.iter().map(|source| {
                let name = &model.entries[source.entry.index()].name;
                format!("{name} {}", number(source.rate * room.factor()))
            });
            table.row(vec![
                words(model, room.resource),
                number(100.0 * room.utilization),
                number(room.factor()),
                rates.collect::<Vec<_>>().join(", "),
            ]);
        }
        text.push_str(&table.render(look));
        text.push_str("\ncounted without queueing: threads that wait for others may all be busy sooner, as the first line has it\n");
        if !found.sources.is_empty() {
            text.push_str("what closed customers use of them is not in it: `solve` counts both together\n");
        }
    }
    let mut table = Table::new(&["", "SATURATES", ">BUSY (%)", ">ITS PROCESSOR (%)", "AT MOST (1/s)", "STATE"]);
    for (place, step) in found.steps.iter().enumerate() {
        let order = if place == 0 { "first" } else { "then" };
        let task = matches!(step.resource, Resource::Task(_));
        let most: Vec<String> = found
            .sources
            .iter()
            .zip(&step.throughputs)
            .map(|(source, rate)| format!("{} {}", names::source(model, source.task), number(*rate)))
            .collect();
        table.row(vec![
            order.to_owned(),
            words(model, step.resource),
            number(100.0 * step.utilization),
            if task { number(100.0 * step.processor_utilization) } else { String::new() },
            most.join(", "),
            match (step.converged, step.counted) {
                (false, _) => "NOT CONVERGED",
                (true, true) => "COUNTED",
                (true, false) => "",
            }
            .to_owned(),
        ]);
    }
    if !table.is_empty() {
        text.push_str(&table.render(look));
        text.push_str("\neach bottleneck is removed before the next is sought\n");
    }
    if found.steps.iter().any(|step| step.counted) {
        text.push_str(
            "counted: from what each request asks for, without queueing; the solver showed nothing saturated\n",
        );
    }
    text
}

/// What bounds a load by itself.
fn bounds(model: &Model, limits: &[Limit], per: &str, look: Look) -> String {
    let busy = format!(">BUSY {per} (ms)");
    let mut table = Table::new(&["BOUND BY", &busy, ">SERVERS", ">AT MOST (1/s)"]);
    for limit in limits.iter().take(SHOWN) {
        table.row(vec![
            words(model, limit.resource),
            in_ms(limit.seconds),
            number(limit.servers),
            number(limit.throughput()),
        ]);
    }
    table.render(look) + "\n"
}

/// One JSON document, ending in a newline: `{"dyelog-bottlenecks": 1, "sources": [{"task", "population", "think_time",
/// "response", "knee", "limits": [{"kind", "name", "seconds", "servers", "throughput"}]}], "arrivals": [{"entry", "rate",
/// "response", "limits"}], "rooms": [{"kind", "name", "utilization", "factor"}], "steps": [{"kind", "name",
/// "utilization", "processor_utilization", "throughputs", "converged", "counted"}], "saturates_first", "sooner"}`, the last two as in the `outlook` of solved models. Utilisations are parts of all servers; `knee` is the
/// saturation point, in customers.
pub fn json(model: &Model, found: &Bottlenecks, outlook: &Outlook) -> String {
    let sources = found.sources.iter().map(|source| {
        json!({
            "task": &*model.tasks[source.task.index()].name,
            "population": source.population,
            "think_time": source.think_time,
            "response": source.response,
            "knee": source.saturation_point(),
            "limits": limits(model, &source.limits),
        })
    });
    let arrivals = found.arrivals.iter().map(|source| {
        json!({
            "entry": &*model.entries[source.entry.index()].name,
            "rate": source.rate,
            "response": source.response,
            "limits": limits(model, &source.limits),
        })
    });
    let rooms = found.rooms.iter().map(|room| {
        let (kind, name) = element(model, room.resource);
        json!({ "kind": kind, "name": name, "utilization": room.utilization, "factor": room.factor() })
    });
    let steps = found.steps.iter().map(|step: &BottleneckStep| {
        let (kind, name) = element(model, step.resource);
        json!({
            "kind": kind,
            "name": name,
            "utilization": step.utilization,
            "processor_utilization": step.processor_utilization,
            "throughputs": step.throughputs,
            "converged": step.converged,
            "counted": step.counted,
        })
    });
    let outlook = report::outlook::json(model, outlook);
    pretty(&json!({
        "dyelog-bottlenecks": 1,
        "sources": sources.collect::<Value>(),
        "arrivals": arrivals.collect::<Value>(),
        "rooms": rooms.collect::<Value>(),
        "steps": steps.collect::<Value>(),
        "saturates_first": outlook["saturates_first"],
        "sooner": outlook["sooner"],
    }))
}

fn limits(model: &Model, limits: &[Limit]) -> Value {
    let limits = limits.iter().map(|limit| {
        let (kind, name) = element(model, limit.resource);
        json!({
            "kind": kind,
            "name": name,
            "seconds": limit.seconds,
            "servers": limit.servers,
            "throughput": limit.throughput(),
        })
    });
    limits.collect()
}

pub(super) fn element(model: &Model, resource: Resource) -> (&'static str, &str) {
    match resource {
        Resource::Processor(id) => ("processor", &model.processors[id.index()].name),
        Resource::Task(id) => ("task", &model.tasks[id.index()].name),
    }
}

/// A resource by its kind and name.
pub(super) fn words(model: &Model, resource: Resource) -> String {
    match element(model, resource) {
        ("task", name) => format!("threads of {name}"),
        (kind, name) => format!("{kind} {name}"),
    }
}
