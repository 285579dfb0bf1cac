//! Results as JSON. Scripts rely on the names of the keys: keys are added, never renamed.

use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Report, Sources};
use crate::lqn::Model;
use crate::lqn::results::{EntryResult, ProcessorResult, Results, Simulated, TaskResult};
use crate::lqn::terms::kind;
use crate::model::{Origins, parameter};
use crate::report::outlook::times;
use crate::study::ScenarioResult;
use crate::study::interval::Interval;
use crate::study::outlook::Outlook;

/// The version of the form of results.
const VERSION: u32 = 1;

/// Results as one JSON document, ending in a newline.
///
/// `dyelog-results` is the version of its form. Times are seconds, rates per second. `service` has the three phases; `waiting` excludes service; `kind` is `sync`,
/// `async` or `forward`. `method` says in words how the solver went about it, and `exact` whether that has no error of its own. Of a simulation every element has
/// `half_width`, the half widths of 95 % intervals under the names of its figures, and `simulation` has percentiles of response
/// times. `doubts` has the caveats: what the solver left out or simplified, in words. Where the model was made of traces, `scenarios` tells throughput and response time of each,
/// and `traced` there and of entries the mean and quantiles of the responses that were traced.
pub fn results(model: &Model, results: &Results, origins: Option<&Origins>) -> String {
    pretty(&document(model, results, origins))
}

/// The same, with what there is to know first under `outlook`, and findings, where there are any, under `findings`.
pub fn solved(
    model: &Model,
    results: &Results,
    origins: Option<&Origins>,
    outlook: &Outlook,
    findings: &[Diagnostic],
) -> String {
    let mut document = document(model, results, origins);
    let processors = document["processors"].as_array_mut().into_iter().flatten();
    for (own, busy) in processors.zip(&outlook.busy) {
        if let Some(Interval { low, high }) = busy {
            own["utilization_low"] = json!(low);
            own["utilization_high"] = json!(high);
        }
    }
    document["outlook"] = crate::report::outlook::json(model, outlook);
    if !findings.is_empty() {
        document["findings"] = json!(Report::new(findings, &Sources::default()))["diagnostics"].take();
    }
    pretty(&document)
}

/// The document of results.
pub(super) fn document(model: &Model, results: &Results, origins: Option<&Origins>) -> Value {
    let mut document = Map::new();
    document.insert("dyelog-results".into(), json!(VERSION));
    document.insert("solver".into(), json!(results.solver));
    document.insert("converged".into(), json!(results.convergence.converged));
    document.insert("iterations".into(), json!(results.convergence.iterations));
    document.insert("method".into(), json!(results.convergence.method));
    if results.simulated.is_none() {
        document.insert("exact".into(), json!(results.convergence.exact));
    }
    document.insert("doubts".into(), json!(results.caveats));
    let half = results.simulated.as_ref().map(|simulated| &simulated.half_widths);
    let processors =
        model.processors.iter().zip(&results.processors).enumerate().map(|(index, (processor, result))| {
            let figures = |result: &ProcessorResult| json!({ "utilization": result.utilization });
            element(&[("name", &processor.name)], figures(result), half.map(|half| figures(&half.processors[index])))
        });
    document.insert("processors".into(), processors.collect());
    let tasks = model.tasks.iter().zip(&results.tasks).enumerate().map(|(index, (task, result))| {
        let figures = |result: &TaskResult| {
            json!({
                "throughput": result.throughput,
                "utilization": result.utilization,
                "processor_utilization": result.processor_utilization,
            })
        };
        element(&[("name", &task.name)], figures(result), half.map(|half| figures(&half.tasks[index])))
    });
    document.insert("tasks".into(), tasks.collect());
    let entries = model.entries.iter().zip(&results.entries).enumerate().map(|(index, (entry, result))| {
        let figures = |result: &EntryResult| {
            let mut figures = json!({
                "throughput": result.throughput,
                "service": result.service,
                "utilization": result.utilization,
                "processor_utilization": result.processor_utilization,
            });
            if let Some(open) = result.open_response {
                figures["open_response"] = json!(open);
            }
            figures
        };
        let names = [("name", &*entry.name), ("task", &*model.tasks[entry.task.index()].name)];
        let mut own = element(&names, figures(result), half.map(|half| figures(&half.entries[index])));
        if let Some(origin) = origins.and_then(|origins| origins.entries.get(index))
            && origin.observed_response.is_some()
        {
            own["traced"] = times(origin.observed_response, &origin.observed_quantiles);
        }
        own
    });
    document.insert("entries".into(), entries.collect());
    let calls = results.calls.iter().enumerate().map(|(index, call)| {
        let names = [
            ("from", model.caller(call.from)),
            ("to", &*model.entries[call.to.index()].name),
            ("kind", kind(call.kind)),
        ];
        let figures = |waiting: f64| json!({ "waiting": waiting });
        element(&names, figures(call.waiting), half.map(|half| figures(half.calls[index])))
    });
    document.insert("calls".into(), calls.collect());
    // Intervals may be all that is left of a simulation in a file.
    if let Some(simulated) = results.simulated.as_ref().filter(|simulated| simulated.replications > 0) {
        document.insert("simulation".into(), simulation(model, simulated));
    }
    if let Some(origins) = origins {
        let scenarios = ScenarioResult::all(model, results, origins).into_iter().map(|scenario| {
            json!({
                "name": &*scenario.origin.name,
                "throughput": scenario.throughput,
                "response": scenario.response,
                "traced_response": scenario.origin.observed_response,
                "operations": scenario.origin.operations,
                "failures": scenario.origin.failures,
                "traced": times(scenario.origin.observed_response, &scenario.origin.observed_quantiles),
                "load": scenario.origin.load,
            })
        });
        document.insert("scenarios".into(), scenarios.collect());
    }
    Value::Object(document)
}

/// An element with its names and figures, and beside them, where it was simulated, half widths of 95 % intervals under the
/// names of the figures.
fn element(names: &[(&str, &str)], figures: Value, half_width: Option<Value>) -> Value {
    let mut element: Map<String, Value> = names.iter().map(|(key, name)| ((*key).to_owned(), json!(name))).collect();
    if let Value::Object(figures) = figures {
        element.extend(figures);
    }
    if let Some(half_width) = half_width {
        element.insert("half_width".into(), half_width);
    }
    Value::Object(element)
}

/// What only a simulation tells.
fn simulation(model: &Model, simulated: &Simulated) -> Value {
    let percentiles = simulated.percentiles.iter().map(|percentiles| {
        let values: Vec<Value> = percentiles
            .values
            .iter()
            .map(|found| json!({ "part": found.part, "time": found.time, "half_width": found.half_width }))
            .collect();
        json!({
            "entry": &*model.entries[percentiles.entry.index()].name,
            "responses": percentiles.count,
            "percentiles": values,
        })
    });
    json!({
        "seed": simulated.seed,
        "replications": simulated.replications,
        "events": simulated.events,
        "time": simulated.time,
        "warm_up": simulated.warm_up,
        "precision": simulated.precision,
        "responses": percentiles.collect::<Vec<_>>(),
    })
}

/// The value of a parameter: a number, else its words.
pub(super) fn value(value: &parameter::Value) -> Value {
    match value {
        parameter::Value::Number(number) => json!(number),
        other => json!(other.to_string()),
    }
}

/// Both ends of an interval; an upper end that is not known is null, and so is an interval that is not there.
pub(super) fn ends(own: Option<Interval>) -> Value {
    own.map_or(Value::Null, |own| json!([own.low, own.high]))
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
