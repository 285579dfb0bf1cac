//! Prometheus text, fetched where the configuration says so, and journalled as the metrics of OTLP that it is equal to.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use dyelog::pipeline::{Exposed, Exposition, exposition, measure};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, DataPointFlags, Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    Summary, SummaryDataPoint, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use tokio::time::{MissedTickBehavior, interval};

use crate::config::Scrape;
use crate::journal::Kind;
use crate::meter::REQUESTS;
use crate::service::{Service, wall_clock};

/// How targets are scraped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scraped {
    /// How often it went well.
    pub well: u64,
    /// How often it did not.
    pub failed: u64,
    /// Lines that were none of Prometheus' text.
    pub unread: u64,
    /// How it went the last time.
    pub last: Option<Outcome>,
}

/// How a scrape went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All lines were read.
    Well,
    /// So many lines were left out, the first of which has that number.
    Partly(usize, usize),
    /// Nothing came; why.
    Failed(String),
}

impl Outcome {
    /// What is wrong.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Well => None,
            Self::Partly(1, first) => Some(format!("line {first} is no line of Prometheus' text, and was left out")),
            Self::Partly(count, first) => Some(format!(
                "{count} lines are no lines of Prometheus' text, and were left out; the first is line {first}"
            )),
            Self::Failed(why) => Some(why.clone()),
        }
    }
}

impl Scraped {
    /// Takes note of how it went; whether that is another state than before.
    pub fn note(&mut self, outcome: Outcome) -> bool {
        match &outcome {
            Outcome::Well => self.well += 1,
            Outcome::Partly(count, _) => (self.well, self.unread) = (self.well + 1, self.unread + *count as u64),
            Outcome::Failed(_) => self.failed += 1,
        }
        // What goes well from the beginning is no news.
        let last = self.last.replace(outcome).unwrap_or(Outcome::Well);
        self.last.as_ref().is_some_and(|own| discriminant(own) != discriminant(&last))
    }
}

/// Fetches metrics for as long as it is not dropped. `tell` gets a line when scrapes begin to fail, and when they succeed again.
pub async fn follow(scrape: Scrape, service: Arc<Service>, tell: impl Fn(&str)) {
    let mut ticks = interval(Duration::from_secs_f64(scrape.every));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let outcome = once(&scrape, &service).await.unwrap_or_else(Outcome::Failed);
        let fault = outcome.fault();
        if service.scraped(&scrape.url, outcome) {
            match fault {
                Some(why) => tell(&format!("warning: metrics of {}: {why}", scrape.url)),
                None => tell(&format!("metrics of {} are read again", scrape.url)),
            }
        }
    }
}

async fn once(scrape: &Scrape, service: &Service) -> Result<Outcome, String> {
    let client = scrape.client()?;
    let failed = |_| "it could not be asked".to_owned();
    let text = tokio::task::spawn_blocking(move || client.fetch()).await.map_err(failed)??;
    let (request, outcome) = request(&text, scrape, wall_clock())?;
    let busy = |busy| format!("the server does not take it now: {busy:?}");
    service.take(Kind::Metrics, request.encode_to_vec().into()).await.map_err(busy)?;
    Ok(outcome)
}

/// The request of OTLP that says what a text says of rates and utilisation, and whether all lines were read.
fn request(text: &str, scrape: &Scrape, now: u64) -> Result<(ExportMetricsServiceRequest, Outcome), String> {
    let Exposition { lines, unread } = exposition(text);
    let outcome = match unread {
        // It is something else.
        Some((_, first)) if lines.is_empty() => return Err(format!("line {first} is no line of Prometheus' text")),
        Some((count, first)) => Outcome::Partly(count, first),
        None => Outcome::Well,
    };
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for own in lines {
        add(own, scrape, now, &mut metrics);
    }
    let scope = ScopeMetrics { metrics: metrics.into_values().collect(), ..ScopeMetrics::default() };
    let resource = Resource { attributes: attributes(&scrape.labels), ..Resource::default() };
    let own = ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope], ..ResourceMetrics::default() };
    Ok((ExportMetricsServiceRequest { resource_metrics: vec![own] }, outcome))
}

fn add(own: Exposed, scrape: &Scrape, now: u64, metrics: &mut BTreeMap<String, Metric>) {
    let Exposed { name, labels, value, seconds } = own;
    let time_unix_nano = seconds.map_or(now, |seconds| (seconds * 1e9) as u64);
    let own = attributes(&labels);
    if let Some(requests) = requests(&name) {
        // What is no number counts nothing.
        let flags = if value.is_finite() { 0 } else { DataPointFlags::NoRecordedValueMask as u32 };
        let count = value as u64;
        let point = SummaryDataPoint { attributes: own, time_unix_nano, count, flags, ..SummaryDataPoint::default() };
        let new = || Metric {
            name: requests.to_owned(),
            data: Some(metric::Data::Summary(Summary::default())),
            ..Metric::default()
        };
        if let Some(metric::Data::Summary(summary)) = &mut metrics.entry(name).or_insert_with(new).data {
            summary.data_points.push(point);
        }
        return;
    }
    let all: Vec<(String, String)> = scrape.labels.clone().into_iter().chain(labels).collect();
    if measure(&name, "", &all).is_none() {
        return;
    }
    let value = Some(number_data_point::Value::AsDouble(value));
    let point = NumberDataPoint { attributes: own, time_unix_nano, value, ..NumberDataPoint::default() };
    let data = if name.ends_with("_total") {
        let aggregation_temporality = AggregationTemporality::Cumulative as i32;
        metric::Data::Sum(Sum { aggregation_temporality, is_monotonic: true, ..Sum::default() })
    } else {
        metric::Data::Gauge(Gauge::default())
    };
    let new = || Metric { name: name.clone(), data: Some(data), ..Metric::default() };
    match &mut metrics.entry(name.clone()).or_insert_with(new).data {
        Some(metric::Data::Sum(sum)) => sum.data_points.push(point),
        Some(metric::Data::Gauge(gauge)) => gauge.data_points.push(point),
        _ => {}
    }
}

/// The metric of OTLP whose count this is, where it counts requests.
fn requests(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix("_count")?;
    let name = ["_seconds", "_milliseconds"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    REQUESTS.into_iter().find(|own| own.replace('.', "_") == name)
}

fn attributes<'l>(labels: impl IntoIterator<Item = (&'l String, &'l String)>) -> Vec<KeyValue> {
    let one = |(key, value): (&String, &String)| {
        let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.clone())) });
        KeyValue { key: key.clone(), value, ..KeyValue::default() }
    };
    labels.into_iter().map(one).collect()
}
