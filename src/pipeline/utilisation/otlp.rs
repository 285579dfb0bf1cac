//! Metrics of OTLP in JSON: one document, or one a line.

use std::collections::{BTreeMap, HashSet};

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
    gauge: Option<Samples>,
    sum: Option<Samples>,
    histogram: Option<Samples>,
    exponential_histogram: Option<Samples>,
    summary: Option<Samples>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    #[serde(default)]
    data_points: Vec<Point>,
    #[serde(default)]
    aggregation_temporality: Value,
    #[serde(default)]
    is_monotonic: bool,
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
    #[serde(default)]
    flags: Value,
}

impl Point {
    /// Whether a value was recorded: collectors write points without one where a target is gone.
    fn is_recorded(&self) -> bool {
        /// `DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK` of OTLP.
        const NO_RECORDED_VALUE: u32 = 1;
        number(&self.flags).is_none_or(|flags| flags as u32 & NO_RECORDED_VALUE == 0)
    }
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
    let mut gathered: IndexMap<(String, Labels), (Series, Counts)> = IndexMap::new();
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
    let series = gathered.into_values().map(|(series, mut counts)| {
        counts.points.sort_by(|left, right| left.1.total_cmp(&right.1));
        if are_interleaved(&counts.points) { Series { samples: together(counts.points), ..series } } else { series }
    });
    Ok(Metrics { requests: served.collect(), series: series.collect(), cores: counted.finish() })
}

fn is_delta(points: &Samples) -> bool {
    match &points.aggregation_temporality {
        Value::String(name) => name.ends_with("_DELTA"),
        other => other.as_u64() == Some(1),
    }
}

/// Whether a metric counts requests; if so, takes it in.
fn take_requests(metric: &Metric, resource: &Labels, counters: &mut Counters) -> bool {
    let histograms = metric.histogram.iter().chain(&metric.exponential_histogram).chain(&metric.summary);
    if metric.gauge.is_some() || requests::known(&metric.name, true).is_none() {
        return false;
    }
    for points in metric.sum.iter().chain(histograms) {
        let is_delta = is_delta(points);
        for point in points.data_points.iter().filter(|point| point.is_recorded()) {
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
        if are_interleaved(&self.points) {
            return together(self.points);
        }
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

/// Whether counters of one name are of several processes that do not say which they are: a counter that began earlier is read again after one that began later. Points have their begin, time and value, and are
/// in the order of times.
fn are_interleaved(points: &[(f64, f64, f64)]) -> bool {
    let mut over: HashSet<u64> = HashSet::new();
    let mut current = None;
    points.iter().filter(|(start, time, _)| start < time).any(|(start, ..)| {
        let own = start.to_bits();
        if current.is_some_and(|current| current != own) {
            over.extend(current);
        }
        current = Some(own);
        over.contains(&own)
    })
}

/// Times and sums of counters that began at several times.
fn together(points: Vec<(f64, f64, f64)>) -> Vec<(f64, f64)> {
    let mut by_start: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for (start, time, value) in points {
        by_start.entry(start.to_bits()).or_insert_with(|| vec![(start, 0.0)]).push((time, value));
    }
    // By how much more, or less, all of them grow a second from a time on.
    let mut changes: Vec<(f64, f64)> = Vec::new();
    for pair in by_start.values().flat_map(|own| own.windows(2)) {
        let [(from, before), (to, after)] = *pair else { continue };
        if to > from && after > before {
            let each = (after - before) / (to - from);
            changes.extend([(from, each), (to, -each)]);
        }
    }
    changes.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut total, mut each) = (0.0, 0.0);
    let mut found: Vec<(f64, f64)> = Vec::with_capacity(changes.len());
    for (time, change) in changes {
        match found.last() {
            Some((last, _)) if *last == time => {}
            Some((last, _)) => {
                total += each * (time - last);
                found.push((time, total));
            }
            None => found.push((time, 0.0)),
        }
        each += change;
    }
    found
}

/// Whether a metric counts cores, and nothing else.
fn count(metric: &Metric, resource: &Labels, counted: &mut Counted) -> bool {
    let mut is_count = false;
    for point in metric.gauge.iter().chain(&metric.sum).flat_map(|points| &points.data_points) {
        let mut all = resource.clone();
        all.extend(labels(&point.attributes));
        let value = point.as_double.or_else(|| number(point.as_int.as_ref()?)).filter(|_| point.is_recorded());
        let of = all.iter().map(|(name, value)| (&**name, &**value));
        is_count |= counted.take(&metric.name, &of, value.unwrap_or(f64::NAN));
    }
    is_count
}

fn take_in(
    metric: &Metric,
    resource: &Labels,
    unit: Option<ValueUnit>,
    gathered: &mut IndexMap<(String, Labels), (Series, Counts)>,
) -> Result<(), Fault> {
    let unit = match (known(&metric.name, &metric.unit), unit) {
        (Known::Other, _) => return Ok(()),
        (Known::Utilisation(own), _) => own,
        (Known::Unknown, Some(unit)) => unit,
        (Known::Unknown, None) => return Err(Fault::no_unit(&metric.name)),
    };
    for (point, points) in
        metric.gauge.iter().chain(&metric.sum).flat_map(|own| own.data_points.iter().map(move |point| (point, own)))
    {
        if !point.is_recorded() {
            continue;
        }
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
        let new = || {
            let (file, metric) = ("".into(), metric.name.clone());
            let (resources, mode, samples) = (resources(&of()), mode(of()), Vec::new());
            (Series { file, metric, resources, mode, unit, samples }, Counts::default())
        };
        let (series, counts) = gathered.entry((metric.name.clone(), all.clone())).or_insert_with(new);
        series.samples.push((time * 1e-9, value * factor));
        // Deltas have begins of their own, and gauges count nothing.
        let counts_since = points.is_monotonic && !is_delta(points);
        let start = number(&point.start_time_unix_nano).filter(|start| *start > 0.0 && counts_since);
        counts.points.push((start.unwrap_or(time) * 1e-9, time * 1e-9, value * factor));
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

#[cfg(test)]
mod tests {
    use super::{Counts, are_interleaved, read, together};

    /// What the Prometheus receiver of a Collector writes where a scrape failed: a value of 0 that was not recorded.
    #[test]
    fn points_without_a_recorded_value_are_none() {
        let document = |flags: &str| {
            let of = |time: u32, value: u32| {
                let flags = if value == 0 { flags } else { "" };
                let times = format!(r#"{flags}"startTimeUnixNano":"1000000000","timeUnixNano":"{time}000000000""#);
                format!(
                    r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}}]}},"scopeMetrics":[{{"metrics":[
                    {{"name":"http.server.request.duration","unit":"s","histogram":{{"aggregationTemporality":2,"dataPoints":[{{{times},"count":"{value}"}}]}}}},
                    {{"name":"process.cpu.time","unit":"s","sum":{{"isMonotonic":true,"aggregationTemporality":2,"dataPoints":[{{{times},"asDouble":{value}}}]}}}},
                    {{"name":"container.cpu.usage","gauge":{{"dataPoints":[{{{times},"asInt":"{value}"}}]}}}},
                    {{"name":"container_cpu_limit","gauge":{{"dataPoints":[{{{times},"asDouble":{value}}}]}}}}]}}]}}]}}"#
                )
            };
            [of(100, 40), of(110, 0), of(120, 60), of(130, 0)].join("\n")
        };
        for flags in [r#""flags":1,"#, r#""flags":"1","#, r#""flags":257,"#] {
            let found = read(&document(flags), None).expect("they are metrics");
            let to_the_second = |own: &[(f64, f64)]| own.iter().map(|own| (own.0.round(), own.1)).collect::<Vec<_>>();
            assert_eq!(to_the_second(&found.requests[0].samples), [(1.0, 0.0), (100.0, 40.0), (120.0, 60.0)]);
            let samples: Vec<_> = found.series.iter().map(|own| to_the_second(&own.samples)).collect();
            assert_eq!(samples, [[(100.0, 40.0), (120.0, 60.0)]; 2]);
            assert_eq!(found.cores[0].cores, 60.0);
        }
        let zeros = read(&document(r#""flags":0,"#), None).expect("they are metrics");
        assert_eq!((zeros.requests[0].samples.len(), zeros.series[0].samples.len()), (5, 4));
    }

    /// Two processes that count since hours ago, and one that begins while they are read; each point has the begin of its own.
    #[test]
    fn counters_of_several_processes_are_summed() {
        let mut points = Vec::new();
        for minute in 1..=10_u32 {
            let time = 60.0 * f64::from(minute);
            points.extend([(-9000.0, time, 9000.0 + time), (-7000.0, time + 20.0, 14_000.0 + 2.0 * (time + 20.0))]);
            if minute > 5 {
                points.push((330.0, time + 10.0, 3.0 * (time + 10.0 - 330.0)));
            }
        }
        assert!(are_interleaved(&points));
        let grown = together(points.clone());
        let at = |time: f64| {
            let after = grown.partition_point(|own| own.0 <= time);
            let (before, next) = (grown[after - 1], grown[after]);
            before.1 + (next.1 - before.1) * (time - before.0) / (next.0 - before.0)
        };
        assert!((at(300.0) - at(120.0) - 3.0 * 180.0).abs() < 1e-6);
        assert!((at(590.0) - at(400.0) - 6.0 * 190.0).abs() < 1e-6);
        let found = Counts { is_delta: false, points }.since_the_first();
        assert_eq!(found, grown);
    }

    /// One process that begins anew is no several.
    #[test]
    fn a_counter_that_begins_anew_is_that_of_one_process() {
        let points = vec![(0.0, 60.0, 6.0), (0.0, 120.0, 12.0), (130.0, 180.0, 5.0), (130.0, 240.0, 11.0)];
        assert!(!are_interleaved(&points));
        let found = Counts { is_delta: false, points }.since_the_first();
        assert_eq!(found, [(0.0, 0.0), (60.0, 6.0), (120.0, 12.0), (130.0, 0.0), (180.0, 5.0), (240.0, 11.0)]);
    }
}
