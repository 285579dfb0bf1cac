//! Results as CSV: a row each figure.

use crate::lqn::Model;
use crate::lqn::results::{Caller, Results};
use crate::lqn::terms::kind;
use crate::model::Origins;
use crate::study::ScenarioResult;

/// Results as CSV with the header `kind,name,metric,value`.
///
/// Of a simulation there is a fifth column, `half_width`, half of the 95 % interval, and rows `percentile95` and so on of response
/// times. Calls have the kind `sync`, `async` or `forward` and the name `FROM>TO`. Times are seconds, rates per second. Numbers have
/// all their digits.
pub fn results(model: &Model, results: &Results, origins: Option<&Origins>) -> String {
    let (Some(simulated), Some(widths)) = (&results.simulated, results.half_widths()) else {
        let mut rows = Rows::new(&["kind", "name", "metric", "value"]);
        for (kind, name, metric, value) in figures(model, results, origins) {
            rows.add(&[kind, &name, &metric, &value.to_string()]);
        }
        return rows.finish();
    };
    let mut rows = Rows::new(&["kind", "name", "metric", "value", "half_width"]);
    // Scenarios are sums of figures; they have no interval of their own.
    let widths: Vec<f64> = figures(model, &widths, None).into_iter().map(|figure| figure.3).collect();
    let all = figures(model, results, origins);
    let scenarios = all.len() - widths.len();
    for (index, (kind, name, metric, value)) in all.iter().enumerate() {
        let width = index.checked_sub(scenarios).map(|index| widths[index].to_string()).unwrap_or_default();
        rows.add(&[kind, name, metric, &value.to_string(), &width]);
    }
    for percentiles in &simulated.percentiles {
        let name = &model.entries[percentiles.entry.index()].name;
        for found in &percentiles.values {
            let width = found.half_width.map(|width| width.to_string()).unwrap_or_default();
            rows.add(&["entry", name, &format!("percentile{}", 100.0 * found.part), &found.time.to_string(), &width]);
        }
    }
    rows.finish()
}

/// Kind, name, metric and value.
type Figure = (&'static str, String, String, f64);

/// All figures, scenarios first.
fn figures(model: &Model, results: &Results, origins: Option<&Origins>) -> Vec<Figure> {
    let mut rows = Figures(Vec::new());
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
        let name = format!("{}>{}", model.caller(call.from), model.entries[call.to.index()].name);
        let metric = match call.from {
            Caller::Phase(_, 2) => "waiting2",
            Caller::Phase(_, 3) => "waiting3",
            _ => "waiting",
        };
        rows.figure(kind(call.kind), &name, metric, call.waiting);
    }
    rows.0
}

/// Figures in the making.
struct Figures(Vec<Figure>);

impl Figures {
    fn figure(&mut self, kind: &'static str, name: &str, metric: &str, value: f64) {
        self.0.push((kind, name.to_owned(), metric.to_owned(), value));
    }
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

    /// The text.
    pub(crate) fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every row");
        String::from_utf8(bytes).expect("all fields were text")
    }
}
