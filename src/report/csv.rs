//! Results as CSV: a row each figure.

use crate::lqn::Model;
use crate::lqn::results::{Caller, Results};
use crate::model::Origins;
use crate::report::ScenarioResult;
use crate::report::words::{caller, kind};

/// Results as CSV with the header `kind,name,metric,value`.
///
/// Calls have the kind `sync`, `async` or `forward` and the name `FROM>TO`. Times are seconds, rates per second. Numbers have
/// all their digits.
pub fn results(model: &Model, results: &Results, origins: Option<&Origins>) -> String {
    let mut rows = Rows::new(&["kind", "name", "metric", "value"]);
    for scenario in origins.map(|origins| ScenarioResult::all(model, results, origins)).unwrap_or_default() {
        let name = &scenario.origin.name;
        rows.figure("scenario", name, "throughput", scenario.throughput);
        if let Some(response) = scenario.response {
            rows.figure("scenario", name, "response", response);
        }
    }
    for (processor, result) in model.processors.iter().zip(&results.processors) {
        rows.figure("processor", &processor.name, "utilization", result.utilization);
    }
    for (task, result) in model.tasks.iter().zip(&results.tasks) {
        rows.figure("task", &task.name, "throughput", result.throughput);
        rows.figure("task", &task.name, "utilization", result.utilization);
        rows.figure("task", &task.name, "processor_utilization", result.processor_utilization);
    }
    for (entry, result) in model.entries.iter().zip(&results.entries) {
        rows.figure("entry", &entry.name, "throughput", result.throughput);
        for (phase, service) in ["service1", "service2", "service3"].into_iter().zip(result.service) {
            rows.figure("entry", &entry.name, phase, service);
        }
        rows.figure("entry", &entry.name, "utilization", result.utilization);
        rows.figure("entry", &entry.name, "processor_utilization", result.processor_utilization);
        if let Some(response) = result.open_response {
            rows.figure("entry", &entry.name, "open_response", response);
        }
    }
    for (activity, result) in model.activities.iter().zip(&results.activities) {
        rows.figure("activity", &activity.name, "throughput", result.throughput);
        rows.figure("activity", &activity.name, "service", result.service);
    }
    for call in &results.calls {
        let name = format!("{}>{}", caller(model, call.from), model.entries[call.to.index()].name);
        let metric = match call.from {
            Caller::Phase(_, 2) => "waiting2",
            Caller::Phase(_, 3) => "waiting3",
            _ => "waiting",
        };
        rows.figure(kind(call.kind), &name, metric, call.waiting);
    }
    rows.finish()
}

/// CSV in the making.
pub(crate) struct Rows(csv::Writer<Vec<u8>>);

impl Rows {
    /// With that header.
    pub(crate) fn new(header: &[&str]) -> Self {
        let mut rows = Self(csv::Writer::from_writer(Vec::new()));
        rows.add(header);
        rows
    }

    /// Adds a row of as many fields as the header has.
    pub(crate) fn add(&mut self, fields: &[&str]) {
        self.0.write_record(fields).expect("memory takes every row, and all rows have as many fields");
    }

    fn figure(&mut self, kind: &str, name: &str, metric: &str, value: f64) {
        self.add(&[kind, name, metric, &value.to_string()]);
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("all fields were text")
    }
}
