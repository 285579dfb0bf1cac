//! Metrics of OTLP in JSON: one document, or one a line.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use crate::model::utilisation::{Metrics, Series};
use crate::pipeline::utilisation::capacity::Counted;
use crate::pipeline::utilisation::metric::{Known, counts, known, mode, resources, unit_of};
use crate::pipeline::utilisation::{Fault, Found, ValueUnit, requests};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics {
    #[serde(default)]
    resource: Resource,
    #[serde(default)]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Default, Deserialize)]
struct Resource {
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    key: String,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct ScopeMetrics {
    #[serde(default)]
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    name: String,
    #[serde(default)]
    unit: String,
    gauge: Option<Points>,
    sum: Option<Points>,
    histogram: Option<Points>,
    exponential_histogram: Option<Points>,
    summary: Option<Points>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Points {
    #[serde(default)]
    data_points: Vec<Point>,
    #[serde(default)]
    aggregation_temporality: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    #[serde(default)]
    attributes: Vec<Attribute>,
    #[serde(default)]
    start_time_unix_nano: Value,
    time_unix_nano: Value,
    as_double: Option<f64>,
    as_int: Option<Value>,
    count: Option<Value>,
}

/// Labels of a resource and a point.
type Labels = Vec<(String, String)>;

/// Counts of one counter: when each began, when it was read, and how many there were.
#[derive(Default)]
struct Counts {
    is_delta: bool,
    points: Vec<(f64, f64, f64)>,
}

type Counters = IndexMap<(String, Labels), Counts>;

/// Reads documents.
pub(super) fn read(text: &str, unit: Option<ValueUnit>) -> Found {
    let mut counted = Counted::default();
    let mut gathered: IndexMap<(String, Labels), Series> = IndexMap::new();
    let mut counters = Counters::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Document>() {
        let document = document
            .map_err(|error| Fault::new(format!("these are no OTLP metrics: {error}")).at(error.line() as u64))?;
        for own in document.resource_metrics {
            let labels = labels(&own.resource.attributes);
            for metric in own.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
                if !take_requests(metric, &labels, &mut counters) && !count(metric, &labels, &mut counted) {
                    take_in(metric, &labels, unit, &mut gathered)?;
                }
            }
        }
    }
    let served = counters.into_iter().filter_map(|((metric, labels), counts)| {
        let of = labels.iter().map(|(name, value)| (&**name, &**value));
        requests::series(&metric, requests::known(&metric, true)?, &of, counts.since_the_first())
    });
    Ok(Metrics { requests: served.collect(), series: gathered.into_values().collect(), cores: counted.finish() })
}

/// Whether a metric counts requests; if so, takes it in.
fn take_requests(metric: &Metric, resource: &Labels, counters: &mut Counters) -> bool {
    let histograms = metric.histogram.iter().chain(&metric.exponential_histogram).chain(&metric.summary);
    if metric.gauge.is_some() || requests::known(&metric.name, true).is_none() {
        return false;
    }
    for points in metric.sum.iter().chain(histograms) {
        let is_delta = match &points.aggregation_temporality {
            Value::String(name) => name.ends_with("_DELTA"),
            other => other.as_u64() == Some(1),
        };
        for point in &points.data_points {
            let value = point.count.as_ref().or(point.as_int.as_ref()).and_then(number).or(point.as_double);
            let (Some(value), Some(time)) = (value.filter(|value| value.is_finite()), number(&point.time_unix_nano))
            else {
                continue;
            };
            let start =
                number(&point.start_time_unix_nano).filter(|start| *start > 0.0 && *start < time).unwrap_or(time);
            let mut all = resource.clone();
            all.extend(labels(&point.attributes));
            let own = counters.entry((metric.name.clone(), all)).or_default();
            own.is_delta |= is_delta;
            own.points.push((start * 1e-9, time * 1e-9, value));
        }
    }
    true
}

impl Counts {
    /// Times, and how many there were since the counter began.
    fn since_the_first(mut self) -> Vec<(f64, f64)> {
        if self.is_delta {
            return requests::summed(&mut self.points);
        }
        self.points.sort_by(|left, right| left.1.total_cmp(&right.1));
        let mut found: Vec<(f64, f64)> = Vec::with_capacity(self.points.len() + 1);
        for (start, time, value) in self.points {
            // A counter begins at 0, and begins anew where it was set back.
            if start < time && found.last().is_none_or(|last| last.0 < start) {
                found.push((start, 0.0));
            }
            found.push((time, value));
        }
        found
    }
}

/// Whether a metric counts cores, and nothing else.
fn count(metric: &Metric, resource: &Labels, counted: &mut Counted) -> bool {
    let mut is_count = false;
    for point in metric.gauge.iter().chain(&metric.sum).flat_map(|points| &points.data_points) {
        let mut all = resource.clone();
        all.extend(labels(&point.attributes));
        let value = point.as_double.or_else(|| number(point.as_int.as_ref()?));
        let of = all.iter().map(|(name, value)| (&**name, &**value));
        is_count |= counted.take(&metric.name, &of, value.unwrap_or(f64::NAN));
    }
    is_count
}

fn take_in(
    metric: &Metric,
    resource: &Labels,
    unit: Option<ValueUnit>,
    gathered: &mut IndexMap<(String, Labels), Series>,
) -> Result<(), Fault> {
    let unit = match (known(&metric.name, &metric.unit), unit) {
        (Known::Other, _) => return Ok(()),
        (Known::Utilisation(own), _) => own,
        (Known::Unknown, Some(unit)) => unit,
        (Known::Unknown, None) => return Err(Fault::no_unit(&metric.name)),
    };
    for point in metric.gauge.iter().chain(&metric.sum).flat_map(|points| &points.data_points) {
        let mut all = resource.clone();
        all.extend(labels(&point.attributes));
        let of = || all.iter().map(|(name, value)| (&**name, &**value));
        let value = point.as_double.or_else(|| number(point.as_int.as_ref()?));
        let (Some(value), Some(time)) = (value.filter(|value| value.is_finite()), number(&point.time_unix_nano)) else {
            continue;
        };
        if !counts(&metric.name, of()) {
            continue;
        }
        let (unit, factor) = unit_of(&metric.name, unit, of()).scale();
        let series = gathered.entry((metric.name.clone(), all.clone())).or_insert_with(|| Series {
            file: "".into(),
            metric: metric.name.clone(),
            resources: resources(&of()),
            mode: mode(of()),
            unit,
            samples: Vec::new(),
        });
        series.samples.push((time * 1e-9, value * factor));
    }
    Ok(())
}

/// Numbers of 64 bits are strings in this JSON.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn labels(attributes: &[Attribute]) -> Labels {
    let text = |value: &Value| match value.as_object()?.values().next()? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    attributes.iter().filter_map(|own| Some((own.key.clone(), text(&own.value)?))).collect()
}
