//! Results as JSON. Scripts rely on the names of the keys: keys are added, never renamed.

use serde_json::{Map, Value, json};

use crate::diagnostic::Report;
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::Origins;
use crate::report::ScenarioResult;
use crate::report::words::{caller, kind};

/// Results as one JSON document, ending in a newline.
///
/// Times are seconds, rates per second. `service` has the three phases; `waiting` excludes service; `kind` is `sync`,
/// `async` or `forward`. Where the model was made of traces, `scenarios` tells throughput and response time of each.
pub fn results(model: &Model, results: &Results, origins: Option<&Origins>) -> String {
    let mut document = Map::new();
    document.insert("solver".into(), json!(results.solver));
    document.insert("converged".into(), json!(results.convergence.converged));
    document.insert("iterations".into(), json!(results.convergence.iterations));
    let processors = model
        .processors
        .iter()
        .zip(&results.processors)
        .map(|(processor, result)| json!({ "name": &*processor.name, "utilization": result.utilization }));
    document.insert("processors".into(), processors.collect());
    let tasks = model.tasks.iter().zip(&results.tasks).map(|(task, result)| {
        json!({ "name": &*task.name, "throughput": result.throughput, "utilization": result.utilization })
    });
    document.insert("tasks".into(), tasks.collect());
    let entries = model.entries.iter().zip(&results.entries).map(|(entry, result)| {
        json!({
            "name": &*entry.name,
            "task": &*model.tasks[entry.task.index()].name,
            "throughput": result.throughput,
            "service": result.service,
            "utilization": result.utilization,
        })
    });
    document.insert("entries".into(), entries.collect());
    let calls = results.calls.iter().map(|call| {
        json!({
            "from": caller(model, call.from),
            "to": &*model.entries[call.to.index()].name,
            "kind": kind(call.kind),
            "waiting": call.waiting,
        })
    });
    document.insert("calls".into(), calls.collect());
    if let Some(origins) = origins {
        let scenarios = ScenarioResult::all(model, results, origins).into_iter().map(|scenario| {
            json!({
                "name": &*scenario.origin.name,
                "throughput": scenario.throughput,
                "response": scenario.response,
                "traced_response": scenario.origin.observed_response,
                "load": scenario.origin.load,
            })
        });
        document.insert("scenarios".into(), scenarios.collect());
    }
    pretty(&Value::Object(document))
}

/// A document on several lines, ending in a newline.
pub fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

/// Diagnostics as one JSON document, ending in a newline.
pub fn diagnostics(report: &Report<'_>) -> String {
    // The report holds strings, numbers and lists only.
    pretty(&serde_json::to_value(report).unwrap_or_default())
}
