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
use dyelog::trace::protobuf::Malformed;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use serde::{Deserialize, Serialize};

use crate::deployment::Selection;
use crate::points::{Form, Label, MetricBytes, PointBytes, each_point, resource_labels};

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
    /// Those that do not say when they were taken, among them those that could not be read.
    pub refused: u64,
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
        // Points of one resource come together.
        let mut last: Option<(Box<[u8]>, Labels, bool)> = None;
        // What is malformed was refused before it came to the journal.
        let _: Result<(), Malformed> = each_point(request, |metric, found| {
            points.received += 1;
            let Ok(own) = found else {
                points.refused += 1;
                return;
            };
            if last.as_ref().is_none_or(|(resource, ..)| **resource != *metric.resource) {
                let mut labels = Labels::default();
                resource_labels(metric.resource, |key, value| labels.add(key, value));
                last = Some((metric.resource.into(), labels, self.selection.takes(metric.resource)));
            }
            let Some((_, labels, is_taken)) = &last else { return };
            if !is_taken {
                points.set_aside += 1;
            } else if !own.is_recorded {
                points.no_value += 1;
            } else if let Some(taken) = self.metric(metric, &own, labels, now) {
                match taken {
                    Taken::Used => points.used += 1,
                    Taken::Late => points.late += 1,
                    Taken::SetAside => points.set_aside += 1,
                    Taken::NoRoom => {
                        points.set_aside += 1;
                        points.no_room += 1;
                    }
                }
            }
        });
        points
    }

    /// Takes a point of a metric; `None` where it tells nothing of use.
    fn metric(&mut self, metric: &MetricBytes<'_>, own: &PointBytes<'_>, of: &Labels, now: u64) -> Option<Taken> {
        let mut labels = of.clone();
        own.labels(|key, value| labels.add(key, value));
        let (key, factor) = key(metric, labels)?;
        let kind = match metric.form {
            _ if key.counts == Counted::Cores => Kind::Level,
            Form::Gauge => Kind::Gauge,
            Form::Sum if !metric.is_monotonic => Kind::Gauge,
            Form::Summary => Kind::Cumulative,
            _ if metric.temporality == AggregationTemporality::Delta as u64 => Kind::Delta,
            _ => Kind::Cumulative,
        };
        let start = if metric.form == Form::Gauge { 0 } else { own.start };
        Some(self.point(key, kind, &Point { time: own.time, start, value: own.value * factor }, now))
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

/// Labels of a resource and a point, no more of them than a series may have.
#[derive(Clone, Default)]
struct Labels {
    all: Vec<(String, String)>,
    bytes: usize,
}

impl Labels {
    fn add(&mut self, key: &[u8], value: Label<'_>) {
        let value = match value {
            Label::Text(text) => String::from_utf8_lossy(text),
            Label::Bool(truth) => truth.to_string().into(),
            Label::Int(number) => number.to_string().into(),
            Label::Double(number) => number.to_string().into(),
        };
        self.bytes += key.len() + value.len();
        if self.bytes <= LONGEST {
            self.all.push((String::from_utf8_lossy(key).into_owned(), value.into_owned()));
        }
    }
}

/// What a series with these labels is of, and what its values are multiplied by; `None` where it tells nothing of use.
fn key(metric: &MetricBytes<'_>, Labels { all: labels, bytes }: Labels) -> Option<(SeriesKey, f64)> {
    if metric.name.len() > LONGEST || bytes > LONGEST {
        return None;
    }
    let [name, unit] = [metric.name, metric.unit].map(String::from_utf8_lossy);
    let of = |counts, resources, labels| SeriesKey {
        counts,
        metric: name.clone().into_owned(),
        resources,
        labels,
        begin: 0,
        since: 0,
    };
    if matches!(metric.form, Form::Histogram | Form::ExponentialHistogram | Form::Summary) {
        if !REQUESTS.contains(&&*name) {
            return None;
        }
        let service = labels.iter().find(|(name, _)| name.replace('.', "_") == "service_name")?.1.clone();
        return Some((of(Counted::Requests, vec![service], labels), 1.0));
    }
    if counts_cores(&name, &labels) {
        return Some((of(Counted::Cores, Vec::new(), labels), 1.0));
    }
    let Measure { resources, unit, factor, .. } = measure(&name, &unit, &labels)?;
    let counts = match unit {
        Unit::Seconds | Unit::Cores => Counted::Seconds,
        Unit::Share => Counted::Share,
    };
    Some((of(counts, resources, labels), factor))
}
