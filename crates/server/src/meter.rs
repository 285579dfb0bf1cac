//! Metrics that tell rates and utilisation, as totals that only grow.
//!
//! - A cumulative counter grows by what it grew; where it was set back, by what it has since. Its start time tells it from others of the same name: processes without an identity write into
//!   one name, each with a start of its own. Where it began while points were taken in, all that it has at its first point counts.
//! - One that is delta grows by each of its values; what comes again is left out, and what comes up to 16 points out of order is not.
//! - A gauge grows by its value times the time for which it stands.
//! - A point that says that nothing was recorded, as the Prometheus receiver of a Collector writes for a target that is gone, is none: its value of 0 sets nothing back.
//!
//! So a total at two moments tells the mean between them, whatever lies between is thinned out, and nothing depends on temporality.

use std::collections::{BTreeMap, HashMap};

use dyelog::model::utilisation::Unit;
use dyelog::pipeline::{Measure, counts_cores, measure};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, DataPointFlags, Metric, metric, number_data_point,
};
use prost::Message as _;
use serde::{Deserialize, Serialize};

use crate::deployment::Selection;

/// Series that are kept at a time; points of others are set aside.
pub const MOST_SERIES: usize = 20_000;
/// A series that was silent for so long makes room for another one, nanoseconds: what it is of has ended, as a rule.
const SILENT: u64 = 3600 * 1_000_000_000;
/// The same of one that says when it began, as each process of those that come and go does.
const ENDED: u64 = 900 * 1_000_000_000;
/// How often series that are silent are looked for, nanoseconds.
const LOOKED_FOR: u64 = 60 * 1_000_000_000;
/// The longest identity of a series, bytes.
const LONGEST: usize = 4096;
/// For how long a value of a gauge stands at most, nanoseconds.
const STANDS: u64 = 300 * 1_000_000_000;
/// How far a clock may be ahead, nanoseconds.
const AHEAD: u64 = 60 * 1_000_000_000;
/// Points of a series of deltas that may come out of order: as many as senders try again side by side.
const RECENT: usize = 16;
/// Histograms whose counts are requests that were served.
pub const REQUESTS: [&str; 4] =
    ["http.server.request.duration", "http.server.duration", "rpc.server.call.duration", "rpc.server.duration"];

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeriesKey {
    /// What its total counts.
    pub counts: Counted,
    /// The metric.
    pub metric: String,
    /// Names of what it is of, the most telling first.
    pub resources: Vec<String>,
    /// All labels.
    pub labels: Vec<(String, String)>,
    /// When its counter began, where that is said of one that is cumulative; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begin: u64,
    /// The time of its first point, which tells it from one before that was forgotten: that one's total is not gone on with. 0 of those that are looked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a total counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// Seconds of cores.
    Seconds,
    /// Seconds, each times the busy part of all cores.
    Share,
    /// Requests that were served.
    Requests,
    /// Nothing: each is how many cores there are.
    Cores,
}

/// Where a series stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// The time of its last point, nanoseconds since 1970.
    pub time: u64,
    /// When its counter began, where that is said.
    pub start: u64,
    /// The last value, as it came.
    pub raw: f64,
    /// The total.
    pub total: f64,
}

/// What became of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Those that came.
    pub received: u64,
    /// Those that tell rates or utilisation.
    pub used: u64,
    /// Those that came before, or after a later one.
    pub late: u64,
    /// Those with impossible times or values, of one series too many, or of another environment.
    pub set_aside: u64,
    /// Those of one series too many.
    pub no_room: u64,
    /// Those that say that nothing was recorded.
    pub no_value: u64,
}

/// Takes points in.
#[derive(Debug, Default)]
pub struct Meter {
    selection: Selection,
    /// By series, those that are cumulative by their begin as well.
    standings: HashMap<SeriesKey, Known>,
    /// The time of the first point that came.
    first: Option<u64>,
    /// When series that are silent were last looked for.
    looked: u64,
    /// The last metric that found no room, and what it is of.
    no_room: Option<String>,
    /// Totals that are in no store yet.
    fresh: BTreeMap<(SeriesKey, u64), f64>,
}

/// What is known of a series.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// When it began, as its totals have it.
    since: u64,
    standing: Standing,
    /// The times of its last points, the next one to be replaced first; 0 where there are none.
    recent: [u64; RECENT],
    /// How many points it had.
    count: usize,
}

impl Known {
    /// Notes a point.
    fn note(&mut self, time: u64) {
        self.recent[self.count % RECENT] = time;
        self.count += 1;
    }

    /// Whether a point of that time is new, though it is no later than the last one.
    fn is_out_of_order(&self, time: u64) -> bool {
        let known = &self.recent[..self.count.min(RECENT)];
        let are_all = self.count < RECENT;
        (are_all || known.iter().any(|own| *own < time)) && !known.contains(&time)
    }
}

/// A value of a series, as it came.
struct Point {
    time: u64,
    start: u64,
    value: f64,
}

/// How values of a metric follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cumulative,
    Delta,
    Gauge,
    /// The last value counts, whatever came before.
    Level,
}

/// How many points a metric has.
fn points_of(metric: &Metric) -> u64 {
    let count = match &metric.data {
        Some(metric::Data::Gauge(own)) => own.data_points.len(),
        Some(metric::Data::Sum(own)) => own.data_points.len(),
        Some(metric::Data::Histogram(own)) => own.data_points.len(),
        Some(metric::Data::ExponentialHistogram(own)) => own.data_points.len(),
        Some(metric::Data::Summary(own)) => own.data_points.len(),
        None => 0,
    };
    count as u64
}

impl Meter {
    /// Takes points of a deployment alone, and of resources that name none.
    pub fn of(selection: Selection) -> Self {
        Self { selection, ..Self::default() }
    }

    /// Takes up where a store stands.
    pub fn restore(&mut self, key: SeriesKey, standing: Standing) {
        if self.standings.len() < MOST_SERIES {
            let since = key.since;
            // Of those before nothing is known.
            let known = Known { since, standing, recent: [standing.time; RECENT], count: RECENT };
            self.standings.insert(SeriesKey { since: 0, ..key }, known);
        }
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        self.standings.len()
    }

    /// The last metric that found no room, and what it is of.
    pub fn no_room(&self) -> Option<&str> {
        self.no_room.as_deref()
    }

    /// Totals that are in no store yet, and where their series stand.
    pub fn fresh(&self) -> Vec<(&SeriesKey, u64, f64, Standing)> {
        let standing = |key: &SeriesKey| {
            let own = self.standings.get(&SeriesKey { since: 0, ..key.clone() }).filter(|own| own.since == key.since);
            own.map(|own| own.standing)
        };
        // A series that made room begins again where its last total stands.
        let last = |time, total| Standing { time, total, ..Standing::default() };
        let fresh = self.fresh.iter();
        fresh.map(|((key, time), total)| (key, *time, *total, standing(key).unwrap_or(last(*time, *total)))).collect()
    }

    /// All of that is in the store.
    pub fn stored(&mut self) {
        self.fresh.clear();
    }

    /// Takes a request in that came at a time. Points of other deployments are set aside.
    pub fn take(&mut self, request: &[u8], now: u64) -> Points {
        let mut points = Points::default();
        // What is malformed was refused before it came to the journal.
        let Ok(request) = ExportMetricsServiceRequest::decode(request) else { return points };
        for resource in &request.resource_metrics {
            let own = resource.resource.as_ref().map(|resource| labels(&resource.attributes)).unwrap_or_default();
            let is_taken = self.selection.takes_labels(&own);
            for metric in resource.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
                if is_taken {
                    self.metric(metric, &own, now, &mut points);
                } else {
                    points.received += points_of(metric);
                    points.set_aside += points_of(metric);
                }
            }
        }
        points
    }

    fn metric(&mut self, metric: &Metric, resource: &[(String, String)], now: u64, points: &mut Points) {
        let number = |value: Option<number_data_point::Value>| match value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            None => f64::NAN,
        };
        let mut take = |kind, attributes: &[KeyValue], flags, time, start, value| {
            points.received += 1;
            if flags & DataPointFlags::NoRecordedValueMask as u32 != 0 {
                points.no_value += 1;
                return;
            }
            let labels: Vec<_> = resource.iter().cloned().chain(labels(attributes)).collect();
            let Some((key, factor)) = key(metric, labels) else { return };
            let kind = if key.counts == Counted::Cores { Kind::Level } else { kind };
            let point = Point { time, start, value: value * factor };
            match self.point(key, kind, &point, now) {
                Taken::Used => points.used += 1,
                Taken::Late => points.late += 1,
                Taken::SetAside => points.set_aside += 1,
                Taken::NoRoom => {
                    points.set_aside += 1;
                    points.no_room += 1;
                }
            }
        };
        match &metric.data {
            Some(metric::Data::Gauge(gauge)) => {
                for own in &gauge.data_points {
                    take(Kind::Gauge, &own.attributes, own.flags, own.time_unix_nano, 0, number(own.value));
                }
            }
            Some(metric::Data::Sum(sum)) => {
                let kind = if sum.is_monotonic { kind(sum.aggregation_temporality) } else { Kind::Gauge };
                for own in &sum.data_points {
                    take(
                        kind,
                        &own.attributes,
                        own.flags,
                        own.time_unix_nano,
                        own.start_time_unix_nano,
                        number(own.value),
                    );
                }
            }
            Some(metric::Data::Histogram(histogram)) => {
                let kind = kind(histogram.aggregation_temporality);
                for own in &histogram.data_points {
                    take(
                        kind,
                        &own.attributes,
                        own.flags,
                        own.time_unix_nano,
                        own.start_time_unix_nano,
                        own.count as f64,
                    );
                }
            }
            Some(metric::Data::ExponentialHistogram(histogram)) => {
                let kind = kind(histogram.aggregation_temporality);
                for own in &histogram.data_points {
                    take(
                        kind,
                        &own.attributes,
                        own.flags,
                        own.time_unix_nano,
                        own.start_time_unix_nano,
                        own.count as f64,
                    );
                }
            }
            Some(metric::Data::Summary(summary)) => {
                for own in &summary.data_points {
                    let count = own.count as f64;
                    take(
                        Kind::Cumulative,
                        &own.attributes,
                        own.flags,
                        own.time_unix_nano,
                        own.start_time_unix_nano,
                        count,
                    );
                }
            }
            None => {}
        }
    }

    fn point(&mut self, key: SeriesKey, kind: Kind, point: &Point, now: u64) -> Taken {
        // A quota of -1 is none.
        let is_in_range = point.value.is_finite() && (point.value >= 0.0 || kind == Kind::Level);
        let is_possible = is_in_range && point.time <= now.saturating_add(AHEAD);
        if !is_possible || point.time == 0 {
            return Taken::SetAside;
        }
        let first = *self.first.get_or_insert(point.time);
        let has_begin = kind == Kind::Cumulative && (1..=point.time).contains(&point.start);
        let key = if has_begin { SeriesKey { begin: point.start, ..key } } else { key };
        // What was recorded by a clock that was ahead is over.
        let known = self.standings.get(&key).copied().filter(|own| own.standing.time <= now.saturating_add(AHEAD));
        let Some(mut known) = known else {
            if !self.has_room(&key, now) {
                self.no_room = Some(format!("{} of {}", key.metric, key.resources.join(", ")));
                return Taken::NoRoom;
            }
            // What was counted before is not known to be of this time; since its begin it is, where that is said of deltas, and of what began when points were taken in.
            let since_begin = match kind {
                Kind::Delta => (1..point.time).contains(&point.start),
                Kind::Cumulative => has_begin && point.start >= first && point.start < point.time,
                Kind::Gauge | Kind::Level => false,
            };
            let total = if matches!(kind, Kind::Delta | Kind::Level) || since_begin { point.value } else { 0.0 };
            let since = point.time;
            if since_begin {
                self.fresh.insert((SeriesKey { since, ..key.clone() }, point.start), 0.0);
            }
            let standing = Standing { time: point.time, start: point.start, raw: point.value, total };
            self.keep(key, Known { since, ..Known::default() }, standing);
            return Taken::Used;
        };
        if point.time <= known.standing.time {
            if kind != Kind::Delta || !known.is_out_of_order(point.time) {
                return Taken::Late;
            }
            known.standing.total += point.value;
            known.note(point.time);
            self.put(key, known);
            return Taken::Used;
        }
        let Standing { time, raw, total, .. } = known.standing;
        let grown = match kind {
            Kind::Delta => point.value,
            Kind::Level => point.value - total,
            Kind::Gauge => raw * (point.time - time).min(STANDS) as f64 * 1e-9,
            Kind::Cumulative => {
                if point.value < raw {
                    point.value
                } else {
                    point.value - raw
                }
            }
        };
        let standing = Standing { time: point.time, start: point.start, raw: point.value, total: total + grown };
        self.keep(key, known, standing);
        Taken::Used
    }

    fn keep(&mut self, key: SeriesKey, mut known: Known, standing: Standing) {
        known.note(standing.time);
        self.put(key, Known { standing, ..known });
    }

    fn put(&mut self, key: SeriesKey, known: Known) {
        let Standing { time, total, .. } = known.standing;
        self.fresh.insert((SeriesKey { since: known.since, ..key.clone() }, time), total);
        self.standings.insert(key, known);
    }

    /// Whether there is room for a series; those that were silent for long make it.
    fn has_room(&mut self, key: &SeriesKey, now: u64) -> bool {
        let is_full = |own: &Self| own.standings.len() >= MOST_SERIES && !own.standings.contains_key(key);
        if is_full(self) && now.abs_diff(self.looked) >= LOOKED_FOR {
            self.looked = now;
            let before = self.standings.len();
            self.standings.retain(|key, own| {
                let silent = if key.begin > 0 { ENDED } else { SILENT };
                let time = own.standing.time;
                time.saturating_add(silent) >= now && time <= now.saturating_add(AHEAD)
            });
            // Of those that come again some was counted before.
            if self.standings.len() < before {
                self.first = self.first.max(Some(now));
            }
        }
        !is_full(self)
    }
}

enum Taken {
    Used,
    Late,
    SetAside,
    NoRoom,
}

fn kind(temporality: i32) -> Kind {
    if temporality == AggregationTemporality::Delta as i32 { Kind::Delta } else { Kind::Cumulative }
}

/// What a series with these labels is of, and what its values are multiplied by; `None` where it tells nothing of use.
fn key(metric: &Metric, labels: Vec<(String, String)>) -> Option<(SeriesKey, f64)> {
    let is_histogram = matches!(
        metric.data,
        Some(metric::Data::Histogram(_) | metric::Data::ExponentialHistogram(_) | metric::Data::Summary(_))
    );
    let is_long = labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > LONGEST;
    if metric.name.len() > LONGEST || is_long {
        return None;
    }
    if is_histogram {
        let service =
            labels.iter().find(|(name, _)| name.replace('.', "_") == "service_name").map(|(_, value)| value.clone())?;
        let name = metric.name.clone();
        return REQUESTS.contains(&&*metric.name).then(|| {
            (
                SeriesKey {
                    counts: Counted::Requests,
                    metric: name,
                    resources: vec![service],
                    labels,
                    begin: 0,
                    since: 0,
                },
                1.0,
            )
        });
    }
    if counts_cores(&metric.name, &labels) {
        let metric = metric.name.clone();
        return Some((
            SeriesKey { counts: Counted::Cores, metric, resources: Vec::new(), labels, begin: 0, since: 0 },
            1.0,
        ));
    }
    let Measure { resources, unit, factor, .. } = measure(&metric.name, &metric.unit, &labels)?;
    let counts = match unit {
        Unit::Seconds | Unit::Cores => Counted::Seconds,
        Unit::Share => Counted::Share,
    };
    Some((SeriesKey { counts, metric: metric.name.clone(), resources, labels, begin: 0, since: 0 }, factor))
}

fn labels(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let text = |own: &KeyValue| match own.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        any_value::Value::BoolValue(value) => Some(value.to_string()),
        any_value::Value::IntValue(value) => Some(value.to_string()),
        any_value::Value::DoubleValue(value) => Some(value.to_string()),
        _ => None,
    };
    attributes.iter().filter_map(|own| Some((own.key.clone(), text(own)?))).collect()
}
