//! Metrics of OTLP in JSON: one document, or one a line.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use crate::model::utilisation::Series;
use crate::pipeline::utilisation::capacity::Counted;
use crate::pipeline::utilisation::metric::{Known, counts, known, resources};
use crate::pipeline::utilisation::{Fault, FoundCores, ValueUnit};

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
struct Metric {
    name: String,
    #[serde(default)]
    unit: String,
    gauge: Option<Points>,
    sum: Option<Points>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Points {
    #[serde(default)]
    data_points: Vec<Point>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    #[serde(default)]
    attributes: Vec<Attribute>,
    time_unix_nano: Value,
    as_double: Option<f64>,
    as_int: Option<Value>,
}

/// Labels of a resource and a point.
type Labels = Vec<(String, String)>;

/// Reads documents.
pub(super) fn read(text: &str, unit: Option<ValueUnit>) -> FoundCores {
    let mut counted = Counted::default();
    let mut gathered: IndexMap<(String, Labels), Series> = IndexMap::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Document>() {
        let document = document
            .map_err(|error| Fault::new(format!("these are no OTLP metrics: {error}")).at(error.line() as u64))?;
        for own in document.resource_metrics {
            let labels = labels(&own.resource.attributes);
            for metric in own.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
                if !count(metric, &labels, &mut counted) {
                    take_in(metric, &labels, unit, &mut gathered)?;
                }
            }
        }
    }
    Ok((gathered.into_values().collect(), counted.finish()))
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
    let (unit, factor) = unit.scale();
    for point in metric.gauge.iter().chain(&metric.sum).flat_map(|points| &points.data_points) {
        let mut all = resource.clone();
        all.extend(labels(&point.attributes));
        let of = || all.iter().map(|(name, value)| (&**name, &**value));
        let value = point.as_double.or_else(|| number(point.as_int.as_ref()?));
        let (Some(value), Some(time)) = (value.filter(|value| value.is_finite()), number(&point.time_unix_nano)) else {
            continue;
        };
        if !counts(of()) {
            continue;
        }
        let series = gathered.entry((metric.name.clone(), all.clone())).or_insert_with(|| Series {
            file: "".into(),
            metric: metric.name.clone(),
            resources: resources(&of()),
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
