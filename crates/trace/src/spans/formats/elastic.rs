//! Elastic APM: what agents send (a line each of `metadata`, `transaction`, `span`), and documents as Elasticsearch stores them, a line each,
//! in a list, or as the answer to a search (`hits`, `_source`, `fields`).
//!
//! | what | agents | documents |
//! |---|---|---|
//! | span | `transaction` server, `span` client where it leaves the service, else internal | `processor.event` |
//! | identifiers | `trace_id`, `id`, `parent_id` | `trace.id`, `transaction.id` or `span.id`, `parent.id` |
//! | times | `timestamp` µs, else `start` ms within the transaction; `duration` ms | `timestamp.us`, `duration.us` |
//! | service, instance, machine | `service.name`, `service.node`, `system.*hostname` of the metadata or the record | `service.name`, `service.node.name`, `host.*` |
//! | peer | `context.destination.service.resource`, `context.service.target` | `span.destination.service.resource` |
//! | sampling | `sample_rate` | `transaction.representative_count` |
//!
//! - A span of a type that leaves the service (`external`, `db`, `messaging`, …) or with a destination is a client; one of `messaging` that
//!   sends is a producer, a transaction of `messaging` a consumer.
//! - A `composite` span is as many calls as its `count`, one after the other, of its `sum` in all.
//! - Calls that the agent dropped and only counted (`dropped_spans_stats`) are calls of their mean duration, one after the other from the
//!   begin of their transaction.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Documents, Record, Records, attributes, scalar, tell, text_of, time};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::model::{Link, Messaging, Span, SpanKind};
use crate::spans::sampling;
use dyelog_diagnostic::names::Name;

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Elastic,
    title: "Elastic APM",
    content: &[Content::Json],
    detect: |_, head| {
        head.has(&["transaction", "trace_id"])
            || head.has(&["transaction_id", "trace_id"])
            || head.has(&["span_count", "trace_id"])
            || head.has(&["processor", "trace", "transaction"])
            || head.has(&["processor.event", "trace.id"])
    },
    read: |builder, input, strict| {
        builder.hold_traces();
        input::documents::<Documents<Elastic>>(builder, input, strict)?;
        builder.finish_traces(begin_in_transactions)
    },
    together: None,
};

/// The most calls that one record stands for: no agent sums up more in a transaction.
const MOST_CALLS: i64 = 10_000;

/// What the records mean.
#[derive(Default)]
struct Elastic {
    /// Service, instance, machine and environment of the metadata that came last.
    around: [Name; 4],
}

impl Records for Elastic {
    const HOLDERS: &'static [&'static str] = &["hits"];

    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>) {
        if let Some(metadata) = record.object("metadata") {
            self.around = Fields(metadata).around(builder);
            return;
        }
        let inner = ["_source", "fields"].into_iter().find_map(|key| record.object(key));
        let sent = ["transaction", "span"].into_iter().find_map(|key| {
            let own = record.object(key)?;
            own.has("trace_id").then_some((own, key == "transaction"))
        });
        if let Some((own, is_transaction)) = sent {
            self.sent(builder, Fields(own), is_transaction);
            return;
        }
        let stored = Fields(inner.unwrap_or(record));
        match &*stored.text("processor.event") {
            "transaction" => self.stored(builder, stored, true),
            "span" => self.stored(builder, stored, false),
            // What else an answer has around its documents, and what agents send besides.
            _ => {
                let what = ["error", "log", "metricset"].into_iter().find(|key| record.has(key));
                if what.is_some() || !stored.text("processor.event").is_empty() {
                    builder.report.tally("record that is no span", 1);
                }
            }
        }
    }
}

/// What a record tells of a span or transaction, wherever it stands.
struct Told<'a> {
    own: Fields<'a>,
    is_transaction: bool,
    trace: Cow<'a, str>,
    id: Cow<'a, str>,
    parent: Cow<'a, str>,
    name: Cow<'a, str>,
    type_: Cow<'a, str>,
    action: Cow<'a, str>,
    peer: Cow<'a, str>,
    outcome: Cow<'a, str>,
    weight: f64,
    start: Option<i64>,
    /// The transaction that the start counts from, where it counts from one.
    within: Option<Cow<'a, str>>,
    duration: Option<i64>,
    composite: Option<Fields<'a>>,
    dropped: &'a [Value],
}

impl Told<'_> {
    /// Whether it waits for messages.
    fn waits(&self) -> bool {
        let receives = matches!(&*self.action, "receive" | "poll" | "consume");
        !self.is_transaction && self.type_ == "messaging" && receives
    }
}

impl Elastic {
    fn sent(&self, builder: &mut Builder<'_>, own: Fields<'_>, is_transaction: bool) {
        let offset = own.get("start").filter(|_| own.get("timestamp").is_none());
        let start = own.get("timestamp").and_then(|value| time(value, 1_000));
        let rate = own.get("sample_rate").and_then(|value| scalar(value).float());
        let told = Told {
            is_transaction: is_transaction && offset.is_none(),
            trace: own.text("trace_id"),
            id: own.text("id"),
            parent: own.text("parent_id"),
            name: own.text("name"),
            type_: own.text("type"),
            action: own.text("action"),
            peer: own.first(&[
                "context.destination.service.resource",
                "context.service.target.name",
                "context.service.target.type",
            ]),
            outcome: own.text("outcome"),
            weight: rate.map_or(1.0, |rate| if rate == 0.0 { 0.0 } else { sampling::of_probability(rate) }),
            start: offset.map_or(start, |offset| time(offset, 1_000_000)),
            within: offset.map(|_| own.text("transaction_id")),
            duration: own.get("duration").and_then(|value| time(value, 1_000_000)),
            composite: own.object("composite"),
            dropped: own.list("dropped_spans_stats"),
            own,
        };
        self.take(builder, &told);
    }

    fn stored(&self, builder: &mut Builder<'_>, own: Fields<'_>, is_transaction: bool) {
        let of = if is_transaction { "transaction" } else { "span" };
        let get = |key: &str| own.get(&format!("{of}.{key}"));
        let text = |key: &str| get(key).map(text_of).unwrap_or_default();
        let weight = get("representative_count").and_then(|value| scalar(value).float());
        let told = Told {
            is_transaction,
            trace: own.text("trace.id"),
            id: text("id"),
            parent: own.text("parent.id"),
            name: text("name"),
            type_: text("type"),
            action: text("action"),
            peer: own.first(&["span.destination.service.resource", "service.target.name", "service.target.type"]),
            outcome: own.text("event.outcome"),
            weight: weight.unwrap_or(sampling::UNKNOWN),
            start: own.get("timestamp.us").and_then(|value| time(value, 1_000)).or_else(|| {
                // A date of its own has only milliseconds.
                own.get("@timestamp").and_then(|value| time(value, 1_000_000))
            }),
            within: None,
            duration: get("duration.us").and_then(|value| time(value, 1_000)),
            composite: own.object("span.composite"),
            dropped: own.list("transaction.dropped_spans_stats"),
            own,
        };
        self.take(builder, &told);
    }

    fn take(&self, builder: &mut Builder<'_>, told: &Told<'_>) {
        builder.open();
        let own = told.own;
        for key in ["labels", "tags", "context.tags", "otel.attributes", "numeric_labels"] {
            if let Some(Fields(members)) = own.object(key) {
                attributes(builder, "", members);
            }
        }
        for (key, name) in [
            ("context.response.status_code", "http.status_code"),
            ("http.response.status_code", "http.status_code"),
            ("context.http.status_code", "http.status_code"),
        ] {
            if let Some(value) = own.get(key) {
                builder.scalar.set_value(value);
                builder.attribute(name);
            }
        }
        tell(builder, Meaning::Peer(0), &told.peer);
        if told.outcome == "failure" {
            builder.open.status = Status::Error;
        }
        let mut span = Span { kind: kind(told), weight: told.weight, ..Span::default() };
        span.trace = builder.spans.trace_id(&told.trace);
        span.id = builder.spans.span_id(&told.id);
        span.parent = builder.spans.span_id(&told.parent);
        span.name = builder.names.intern(&told.name);
        let around = own.around(builder).into_iter().zip(self.around);
        let around: Vec<Name> = around.map(|(own, around)| if own.is_some() { own } else { around }).collect();
        (span.service, span.instance, span.host, span.environment) = (around[0], around[1], around[2], around[3]);
        span.first_link = builder.spans.links.len() as u32;
        if let Some(transaction) = &told.within {
            let transaction = builder.spans.span_id(transaction);
            builder.spans.links.push(Link { trace: span.trace, span: transaction });
            span.links = 1;
        }
        let weight = span.weight;
        builder.apply_attributes_but_service(&mut span);
        if told.waits() {
            span.messaging = Messaging::Receive;
        }
        span.weight = weight;
        let end = told.start.zip(told.duration).map(|(start, duration)| start.saturating_add(duration));
        let calls = told.composite.and_then(|composite| {
            let count = composite.get("count").and_then(|value| scalar(value).whole())?;
            let sum = composite.get("sum").and_then(|value| time(value, 1_000_000));
            let sum = sum.or_else(|| composite.get("sum.us").and_then(|value| time(value, 1_000)))?;
            (count >= 2).then_some((count.min(MOST_CALLS), sum.max(0)))
        });
        match calls.zip(told.start).zip(told.duration) {
            Some((((count, sum), start), duration)) => {
                // Gaps between them are as long as each other.
                let step = (duration.max(sum) - sum / count).max(0) / (count - 1);
                repeat(builder, span, &told.id, Series { start, step, length: sum / count, count });
            }
            None => builder.finish(span, told.start, end),
        }
        let mut at = told.start.unwrap_or_default();
        // As many as one composite span may stand for, whatever the number of sums.
        let mut left = MOST_CALLS;
        for (number, stats) in told.dropped.iter().filter_map(Record::of).map(Fields).enumerate() {
            let count = stats.get("duration.count").and_then(|value| scalar(value).whole()).unwrap_or(0);
            let sum = stats.get("duration.sum.us").and_then(|value| time(value, 1_000)).unwrap_or(0);
            if !(1..=left).contains(&count) || sum < 0 {
                let reason =
                    if count > left { "sum of too many dropped calls" } else { "sum of dropped calls without a count" };
                builder.report.tally(reason, 1);
                continue;
            }
            left -= count;
            let peer = builder.names.intern(&stats.first(&[
                "destination_service_resource",
                "service_target_name",
                "service_target_type",
            ]));
            let call = Span {
                parent: span.id,
                peer,
                name: peer,
                kind: SpanKind::Client,
                messaging: Messaging::None,
                cpu: f64::NAN,
                ..span
            };
            let length = sum / count;
            repeat(
                builder,
                call,
                &format!("{}/dropped{number}", told.id),
                Series { start: at, step: length, length, count },
            );
            at = at.saturating_add(sum);
        }
    }
}

/// Gives spans that tell only how long after their transaction they began their times. Until then that transaction is their only link.
fn begin_in_transactions(builder: &mut Builder<'_>) {
    if builder.spans.links.is_empty() {
        return;
    }
    let spans = builder.spans.spans.iter().filter(|span| span.links == 0);
    let starts: FxHashMap<(TraceId, SpanId), i64> = spans.map(|span| ((span.trace, span.id), span.start)).collect();
    let links = std::mem::take(&mut builder.spans.links);
    let mut gone = Vec::with_capacity(builder.spans.spans.len());
    for span in &mut builder.spans.spans {
        let within = (span.links > 0).then(|| links[span.first_link as usize]);
        let start = within.map(|link| starts.get(&(link.trace, link.span)));
        if let Some(Some(start)) = start {
            (span.start, span.end) = (span.start.saturating_add(*start), span.end.saturating_add(*start));
        }
        (span.first_link, span.links) = (0, 0);
        gone.push(start == Some(None));
    }
    let lost = gone.iter().filter(|gone| **gone).count();
    if lost > 0 {
        builder.report.tally("span whose transaction is not here", lost as u64);
        builder.leave_out(&gone);
    }
}

/// Calls one after the other, times in nanoseconds.
#[derive(Clone, Copy)]
struct Series {
    start: i64,
    step: i64,
    length: i64,
    count: i64,
}

/// Takes as many calls as a record stands for.
fn repeat(builder: &mut Builder<'_>, call: Span, id: &str, series: Series) {
    for number in 0..series.count {
        let id = builder.spans.span_id(&format!("{id}#{number}"));
        let start = series.start.saturating_add(series.step.saturating_mul(number));
        builder.finish(Span { id, ..call }, Some(start), Some(start.saturating_add(series.length)));
    }
}

fn kind(told: &Told<'_>) -> SpanKind {
    let messaging = told.type_ == "messaging";
    if told.is_transaction {
        return if messaging { SpanKind::Consumer } else { SpanKind::Server };
    }
    if messaging {
        return if told.waits() { SpanKind::Internal } else { SpanKind::Producer };
    }
    let leaves = matches!(&*told.type_, "external" | "db" | "cache" | "storage" | "rpc") || !told.peer.is_empty();
    if leaves { SpanKind::Client } else { SpanKind::Internal }
}

/// A record whose members stand in objects (`span`, in it `id`), under joined keys (`span.id`), or alone in a list, as answers have them.
#[derive(Clone, Copy)]
struct Fields<'a>(Record<'a>);

impl<'a> Fields<'a> {
    /// The value at a path.
    fn get(self, path: &str) -> Option<&'a Value> {
        let mut found = None;
        // Each way of cutting the path in two: a key that is there, and the rest within it.
        for (at, _) in path.match_indices('.').chain([(path.len(), "")]) {
            let (key, rest) = (&path[..at], path.get(at + 1..));
            found = match (self.0.0.get(key), rest) {
                (Some(value), None) => Some(value),
                (Some(value), Some(rest)) => Record::of(value).and_then(|within| Self(within).get(rest)),
                (None, _) => None,
            };
            if found.is_some() {
                break;
            }
        }
        match found? {
            Value::Array(alone) if alone.len() == 1 && !alone[0].is_object() => alone.first(),
            Value::Null => None,
            value => Some(value),
        }
    }

    fn text(self, path: &str) -> Cow<'a, str> {
        self.get(path).map(text_of).unwrap_or_default()
    }

    fn first(self, paths: &[&str]) -> Cow<'a, str> {
        paths.iter().map(|path| self.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn object(self, path: &str) -> Option<Self> {
        self.get(path).and_then(Record::of).map(Self)
    }

    fn list(self, path: &str) -> &'a [Value] {
        self.get(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Service, instance, machine and environment.
    fn around(self, builder: &mut Builder<'_>) -> [Name; 4] {
        let service = self.first(&["service.name", "context.service.name"]);
        let instance = self.first(&[
            "service.node.configured_name",
            "service.node.name",
            "system.kubernetes.pod.name",
            "kubernetes.pod.name",
            "system.container.id",
            "container.id",
        ]);
        let host = self.first(&[
            "system.kubernetes.node.name",
            "kubernetes.node.name",
            "system.configured_hostname",
            "system.detected_hostname",
            "system.hostname",
            "host.hostname",
            "host.name",
        ]);
        let environment = self.first(&["service.environment"]);
        [service, instance, host, environment].map(|text| builder.names.intern(&text))
    }
}
