//! What limits a model, as text and JSON.

use serde_json::json;

use crate::lqn::Model;
use crate::report::json::pretty;
use crate::report::look::Look;
use crate::report::table::Table;
use crate::report::words::number;
use crate::solve::bottleneck::{Bottlenecks, Resource, Step};

/// Bounds of a source that are shown.
const SHOWN: usize = 5;

/// Tables for people: the bounds of each closed load by itself, then what saturates as all grow in proportion.
pub fn text(model: &Model, found: &Bottlenecks, look: Look) -> String {
    let mut text = String::new();
    for source in &found.sources {
        let name = &model.tasks[source.task.index()].name;
        text.push_str(&format!(
            "{name}: response {} s without queueing, think time {} s",
            number(source.response),
            number(source.think_time)
        ));
        if let (Some(limit), Some(knee)) = (source.limits.first(), source.knee()) {
            text.push_str(&format!(
                "; at most {}/s, by {}; the asymptotes meet at {} customers",
                number(limit.throughput()),
                words(model, limit.resource),
                number(knee)
            ));
        }
        text.push_str("\n\n");
        let mut table = Table::new(&["BOUND BY", ">BUSY IN A CYCLE (s)", ">SERVERS", ">AT MOST (1/s)"]);
        for limit in source.limits.iter().take(SHOWN) {
            table.row(vec![
                words(model, limit.resource),
                number(limit.seconds),
                number(limit.servers),
                number(limit.throughput()),
            ]);
        }
        text.push_str(&table.render(look));
        text.push('\n');
    }
    let mut table = Table::new(&["", "SATURATES", ">BUSY (%)", ">ITS PROCESSOR (%)", "AT MOST (1/s)", "STATE"]);
    for (place, step) in found.steps.iter().enumerate() {
        let order = if place == 0 { "first" } else { "then" };
        let task = matches!(step.resource, Resource::Task(_));
        let most: Vec<String> = found
            .sources
            .iter()
            .zip(&step.throughputs)
            .map(|(source, rate)| format!("{} {}", model.tasks[source.task.index()].name, number(*rate)))
            .collect();
        table.row(vec![
            order.to_owned(),
            words(model, step.resource),
            number(100.0 * step.utilization),
            if task { number(100.0 * step.processor_utilization) } else { String::new() },
            most.join(", "),
            if step.converged { String::new() } else { "NOT CONVERGED".to_owned() },
        ]);
    }
    if !table.is_empty() {
        text.push_str(&table.render(look));
        text.push_str("\neach is relieved before the next is looked for\n");
    }
    if found.unsure {
        text.push_str("what comes next the solver could not tell: it did not converge\n");
    }
    text
}

/// One JSON document, ending in a newline: `{"dyelog-bottlenecks": 1, "sources": [{"task", "population", "think_time",
/// "response", "knee", "limits": [{"kind", "name", "seconds", "servers", "throughput"}]}], "steps": [{"kind", "name",
/// "utilization", "processor_utilization", "throughputs", "converged"}], "unsure"}`. Utilisations are parts of all servers.
pub fn json(model: &Model, found: &Bottlenecks) -> String {
    let sources = found.sources.iter().map(|source| {
        let limits = source.limits.iter().map(|limit| {
            let (kind, name) = element(model, limit.resource);
            json!({
                "kind": kind,
                "name": name,
                "seconds": limit.seconds,
                "servers": limit.servers,
                "throughput": limit.throughput(),
            })
        });
        json!({
            "task": &*model.tasks[source.task.index()].name,
            "population": source.population,
            "think_time": source.think_time,
            "response": source.response,
            "knee": source.knee(),
            "limits": limits.collect::<serde_json::Value>(),
        })
    });
    let steps = found.steps.iter().map(|step: &Step| {
        let (kind, name) = element(model, step.resource);
        json!({
            "kind": kind,
            "name": name,
            "utilization": step.utilization,
            "processor_utilization": step.processor_utilization,
            "throughputs": step.throughputs,
            "converged": step.converged,
        })
    });
    pretty(&json!({
        "dyelog-bottlenecks": 1,
        "sources": sources.collect::<serde_json::Value>(),
        "steps": steps.collect::<serde_json::Value>(),
        "unsure": found.unsure,
    }))
}

fn element(model: &Model, resource: Resource) -> (&'static str, &str) {
    match resource {
        Resource::Processor(id) => ("processor", &model.processors[id.index()].name),
        Resource::Task(id) => ("task", &model.tasks[id.index()].name),
    }
}

fn words(model: &Model, resource: Resource) -> String {
    match element(model, resource) {
        ("task", name) => format!("threads of {name}"),
        (kind, name) => format!("{kind} {name}"),
    }
}
