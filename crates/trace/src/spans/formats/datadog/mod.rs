//! Datadog: traces as tracers send them (a list of lists of spans, `traces`), payloads of the agent (`tracerPayloads`, `chunks`), and
//! a trace as its page gives it out (`spans` by their identifiers), in JSON; what tracers send, also in [`msgpack`], and what the agent sends on,
//! in [`protobuf`].
//!
//! | what | where |
//! |---|---|
//! | identifiers | `trace_id`, `span_id`, `parent_id` (or `traceID` …): whole numbers below 2^64 or texts of them; 0 is no parent |
//! | name | `resource`, the endpoint; for databases, caches and what has none, the operation `name` |
//! | kind | `span.kind` of `meta`, else by `type`: `web`, `serverless` server; `http`, `sql`, `db`, caches client; `queue` by the name |
//! | peer | `peer.service` and its kin of `meta`; else the `service` of a client's span, where the service around it has another name |
//! | machine, instance | `_dd.hostname` or the payload's `hostname`; `runtime-id` |
//! | sampling | metrics of the first span of a chunk: `_dd.rule_psr`, `_dd.limit_psr`, `_dd.agent_psr`, `_sample_rate`, `_dd1.sr.rapre`; its meta `_dd.p.ksr`, and `_dd.p.dm` for who decided |
//!
//! - A trace is known by the low 64 bits of its identifier: of the upper ones only some spans tell.
//! - Where a file has operations that the sampler rejected, it is from before sampling, and each stands for itself.
//! - `service` of a call to a database is often a name for that database: `_dd.base_service`, else the span around it, tells whose call it is. Where
//!   the program has named its own spans otherwise than it was configured, the span of a server around the call tells.
//!
//! Times are nanoseconds.

mod msgpack;
mod protobuf;

use std::io::{BufReader, Read};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};

use crate::codes;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::protobuf::{beginning, cut_off, json_or_refused};
use crate::spans::formats::records::{Documents, Record, Records, attributes, tell, text_of};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::model::{Link, Span, SpanKind};
use crate::spans::sampling::{self, UNKNOWN};
use dyelog_diagnostic::names::Name;

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Datadog,
    title: "Datadog",
    content: &[Content::Json, Content::Binary],
    detect: |content, head| {
        if content == Content::Binary {
            return msgpack::is_traces(head.bytes) || protobuf::Message::of(head.bytes).is_some();
        }
        let ids = [["trace_id", "span_id"], ["traceID", "spanID"], ["traceId", "spanId"]];
        ids.iter().any(|ids| head.has(ids)) && head.has(&["resource", "start", "duration"])
    },
    read,
    together: None,
};

fn read(builder: &mut Builder<'_>, input: &mut dyn Read, strict: bool) -> Result<(), Diagnostics> {
    let head = beginning(&builder.file, input)?;
    let mut input = BufReader::with_capacity(64 << 10, head.chain(input));
    let mut datadog = Datadog::default();
    builder.hold_traces();
    if msgpack::is_traces(&head) {
        let read = msgpack::spans(&mut input, |span| {
            datadog.item(builder, &span);
            builder.hand_on();
        });
        cut_off(builder, "MessagePack", read, strict)?;
    } else if let Some(message) = protobuf::Message::of(&head) {
        let read = protobuf::items(&mut input, message, |item| match item {
            protobuf::Item::Chunk(own) => datadog.record(builder, Record(&own)),
            protobuf::Item::End(own) => {
                datadog.record(builder, Record(&own));
                builder.hand_on();
            }
            protobuf::Item::Other => newer(builder),
        });
        cut_off(builder, "protobuf", read, strict)?;
    } else {
        let forms = "give MessagePack of `v0.3` to `v0.5` or `v0.7`, or what the agent sends on in protobuf";
        json_or_refused(&builder.file, &head, FORMAT.title, forms)?;
        Documents(datadog) = input::documents::<Documents<Datadog>>(builder, &mut input, strict)?;
    }
    builder.finish_traces(|builder| datadog.finish(builder))
}

/// Counts a payload of the agent that is in its newest form.
fn newer(builder: &mut Builder<'_>) {
    let place = Place::File { file: Arc::clone(&builder.file) };
    builder.report.count("payload in a form that is not read", || {
        Diagnostic::warning(codes::BAD_MESSAGE, place, "a payload with a table of strings (`v1.0`) was left out")
            .with_hint("let the tracer send `v0.7` or older")
    });
}

/// What the records mean, and what waits for all of them.
#[derive(Default)]
struct Datadog {
    /// Services of servers.
    serving: FxHashSet<Name>,
    /// Whether the sampler rejected an operation that is here all the same.
    has_rejected: bool,
    /// So many spans of the input were in payloads that have ended.
    ended: usize,
}

impl Records for Datadog {
    const HOLDERS: &'static [&'static str] = &["traces", "tracerPayloads", "tracer_payloads", "chunks", "trace"];
    const DESCRIBED: &'static [&'static str] = &["chunks"];

    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>) {
        match record.0.get("spans") {
            Some(Value::Array(spans)) => {
                spans.iter().filter_map(Record::of).for_each(|own| self.take(builder, own, record));
            }
            // By their identifiers; in the order of these, as the parser keeps members.
            Some(Value::Object(spans)) => {
                spans.values().filter_map(Record::of).for_each(|own| self.take(builder, own, record));
            }
            _ if record.any(&["span_id", "spanID", "spanId", "trace_id", "traceID", "traceId"]).is_some() => {
                self.take(builder, record, record);
            }
            _ => {
                // A payload ends behind the spans of its chunks.
                let host = builder.names.intern(&record.text(&["hostname"]));
                let handed_on = builder.count() - builder.spans.spans.len();
                let own = self.ended.saturating_sub(handed_on);
                for span in builder.spans.spans.iter_mut().skip(own).filter(|span| !span.host.is_some()) {
                    span.host = host;
                }
                self.ended = builder.count();
            }
        }
    }

    fn truncate(&mut self, spans: usize) {
        self.ended = self.ended.min(spans);
    }
}

impl Datadog {
    /// Takes a span, or a payload of several lists of spans.
    fn item(&mut self, builder: &mut Builder<'_>, item: &Map<String, Value>) {
        let own = Record(item);
        if !matches!(item.get("chunks"), Some(Value::Array(_))) {
            self.take(builder, own, own);
            return;
        }
        own.list("chunks").iter().filter_map(Record::of).for_each(|chunk| self.record(builder, chunk));
        self.record(builder, own);
    }

    fn take(&mut self, builder: &mut Builder<'_>, own: Record<'_>, chunk: Record<'_>) {
        builder.open();
        let trace = builder.spans.trace_id(&number_text(own, &["trace_id", "traceID", "traceId"]));
        let id = builder.spans.span_id(&number_text(own, &["span_id", "spanID", "spanId"]));
        let parent = builder.spans.span_id(&number_text(own, &["parent_id", "parentID", "parentId"]));
        let mut span = Span { trace, id, parent, ..Span::default() };
        let type_ = own.text(&["type"]);
        let (name, resource) = (own.text(&["name"]), own.text(&["resource"]));
        let is_store = STORES.contains(&&*type_);
        span.name =
            builder.names.intern(if is_store && !name.is_empty() || resource.is_empty() { &name } else { &resource });
        for key in ["meta", "metrics"] {
            if let Some(members) = own.object(key) {
                attributes(builder, "", members);
            }
        }
        let meta = |key: &str| own.object("meta").map(|meta| meta.text(&[key])).unwrap_or_default();
        let metric = |key: &str| own.object("metrics").and_then(|metrics| metrics.float(&[key]));
        for (meaning, key) in [
            (Meaning::Instance(3), "runtime-id"),
            (Meaning::Host(4), "_dd.hostname"),
            (Meaning::Environment(3), "env"),
            (Meaning::Address(23), "out.host"),
        ] {
            tell(builder, meaning, &meta(key));
        }
        if own.whole(&["error"]).is_some_and(|error| error != 0) {
            builder.open.status = Status::Error;
        }
        builder.own_recorder().place(&mut span);
        span.first_link = builder.spans.links.len() as u32;
        for link in own.list("span_links").iter().filter_map(Record::of) {
            let trace = builder.spans.trace_id(&number_text(link, &["trace_id", "traceID"]));
            let target = builder.spans.span_id(&number_text(link, &["span_id", "spanID"]));
            builder.spans.links.push(Link { trace, span: target });
        }
        span.links = builder.spans.links.len() as u32 - span.first_link;
        builder.apply_attributes(&mut span);
        if span.kind == SpanKind::Unspecified {
            span.kind = kind(&type_, &name);
        }
        let service = own.text(&["service"]);
        span.service = builder.names.intern(&service);
        let priority = metric("_sampling_priority_v1").or_else(|| chunk.float(&["priority"]));
        self.has_rejected |= priority.is_some_and(|priority| priority <= 0.0);
        if span.weight.is_nan() {
            let decider = chunk.object("tags").map(|tags| tags.text(&["_dd.p.dm"])).filter(|own| !own.is_empty());
            span.weight = weight(metric, &meta("_dd.p.ksr"), &decider.unwrap_or_else(|| meta("_dd.p.dm")));
        }
        // What its service was configured as, where the program names it otherwise.
        let base = meta("_dd.base_service");
        span.note = builder.names.intern(&base);
        if span.kind.calls() && span.note.is_some() {
            span.service = span.note;
            if !span.peer.is_some() && base != service {
                span.peer = builder.names.intern(&service);
            }
        }
        let before = builder.count();
        let start = own.whole(&["start"]);
        let end = start.zip(own.whole(&["duration"])).map(|(start, duration)| start.saturating_add(duration));
        builder.finish(span, start, end);
        if span.kind == SpanKind::Server && builder.count() > before {
            self.serving.insert(span.service);
        }
    }

    /// Finishes whole traces, when all was read.
    fn finish(&self, builder: &mut Builder<'_>) {
        let spans = &mut builder.spans.spans;
        if self.has_rejected {
            for span in spans.iter_mut().filter(|span| !span.weight.is_nan()) {
                span.weight = 1.0;
            }
        }
        let places: FxHashMap<(TraceId, SpanId), usize> =
            spans.iter().enumerate().map(|(place, span)| ((span.trace, span.id), place)).collect();
        name_as_servers(spans, &places);
        let services: Vec<Name> = spans.iter().map(|span| span.service).collect();
        // Clients' spans that do not tell whose they are.
        for span in spans.iter_mut().filter(|span| span.kind.calls() && !span.note.is_some()) {
            let Some(&above) = places.get(&(span.trace, span.parent)) else { continue };
            let around = services[above];
            if around != span.service && around.is_some() && !self.serving.contains(&span.service) {
                if !span.peer.is_some() {
                    span.peer = span.service;
                }
                span.service = around;
            }
        }
        for span in spans {
            span.note = Name::NONE;
        }
    }
}

/// So many spans above a call are looked at for a server's.
const ABOVE: usize = 64;

/// Names calls after the server around them, where that is of the same program and named otherwise than this was configured.
fn name_as_servers(spans: &mut [Span], places: &FxHashMap<(TraceId, SpanId), usize>) {
    for at in 0..spans.len() {
        let Span { trace, mut parent, kind, note, .. } = spans[at];
        if !kind.calls() || !note.is_some() {
            continue;
        }
        for _ in 0..ABOVE {
            let above = places.get(&(trace, parent)).map(|place| spans[*place]);
            let Some(above) = above.filter(|above| above.note == note) else { break };
            if above.kind == SpanKind::Server {
                let own = &mut spans[at];
                own.service = above.service;
                // Its own name is no other service.
                own.peer = if own.peer == own.service { Name::NONE } else { own.peer };
                break;
            }
            parent = above.parent;
        }
    }
}

/// An identifier in hexadecimal digits, of its low 64 bits; empty where there is none. A text that is no whole number is one already.
fn number_text(own: Record<'_>, keys: &[&str]) -> String {
    let text = own.any(keys).map(text_of).unwrap_or_default();
    match text.parse::<u128>() {
        Ok(0) => String::new(),
        Ok(number) => format!("{:016x}", number as u64),
        Err(_) => text.into_owned(),
    }
}

/// Types of spans that are calls of a store.
const STORES: [&str; 11] = [
    "sql",
    "db",
    "cache",
    "redis",
    "valkey",
    "memcached",
    "mongodb",
    "cassandra",
    "elasticsearch",
    "opensearch",
    "consul",
];

fn kind(type_: &str, name: &str) -> SpanKind {
    match type_ {
        "web" | "serverless" => SpanKind::Server,
        "http" | "dns" => SpanKind::Client,
        _ if STORES.contains(&type_) => SpanKind::Client,
        "queue" | "worker" => {
            let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
            if says(&["produce", "send", "publish", "enqueue", "delay"]) {
                SpanKind::Producer
            } else if says(&["consume", "receive", "process", "perform", "run", "job"]) {
                SpanKind::Consumer
            } else {
                SpanKind::Unspecified
            }
        }
        _ => SpanKind::Unspecified,
    }
}

/// Who decided that a trace is kept, and not by chance: a person, a security rule, a rule for single spans (dd-trace-go, `samplernames.go`).
const CHOOSERS: [&str; 3] = ["-4", "-5", "-8"];

/// How many operations one stands for (dd-trace-go and the agent's `stats/weight.go`), given what the request brought along: with which probability the trace was kept, and who decided it.
fn weight(metric: impl Fn(&str) -> Option<f64>, brought: &str, decider: &str) -> f64 {
    if CHOOSERS.contains(&decider) {
        return sampling::CHOSEN;
    }
    let limit = metric("_dd.limit_psr").unwrap_or(1.0);
    let decided = metric("_dd.rule_psr")
        .map(|rule| rule * limit)
        .or_else(|| metric("_dd.agent_psr"))
        .or_else(|| Some(brought.trim().parse::<f64>().ok().filter(|own| *own > 0.0 && *own <= 1.0)? * limit));
    let factors = [decided, metric("_sample_rate"), metric("_dd1.sr.rapre")];
    let mut told = factors.into_iter().flatten().peekable();
    if told.peek().is_none() { UNKNOWN } else { sampling::of_probability(told.product()) }
}

#[cfg(test)]
mod tests {
    use super::{UNKNOWN, sampling, weight};

    #[test]
    fn what_a_request_brings_along_tells_its_weight() {
        let none = |_: &str| None;
        assert_eq!(weight(none, "0.1", "-3"), 10.0);
        assert_eq!(weight(|key| (key == "_dd.agent_psr").then_some(0.5), "0.1", "-1"), 2.0);
        assert_eq!(weight(|key| (key == "_dd.limit_psr").then_some(0.5), "0.1", ""), 20.0);
        assert_eq!(weight(none, "0.1", "-4"), sampling::CHOSEN);
        assert!(weight(none, "", "").is_nan() && UNKNOWN.is_nan());
        assert!(["0", "-1", "2", "x", "NaN"].iter().all(|text| weight(none, text, "").is_nan()));
    }
}
