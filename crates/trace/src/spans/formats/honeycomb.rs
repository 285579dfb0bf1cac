//! Honeycomb: spans as flat events, a line or a list, as sent to its batch interface (`time`, `samplerate`, `data`), and answers to queries.
//!
//! | what | where |
//! |---|---|
//! | identifiers | `trace.trace_id`, `trace.span_id`, `trace.parent_id` |
//! | times | `Timestamp`, `timestamp` or `time`: a date, or a number of seconds, ms, µs or ns of our days; `duration_ms` |
//! | kind | `span.kind`, `span_kind`, `meta.span_type` |
//! | service, machine | `service.name` or `service_name`; the attributes of OpenTelemetry |
//! | sampling | `SampleRate`, `samplerate`: how many one stands for |
//!
//! Events of `meta.annotation_type` `span_event` belong to the span `trace.parent_id`, and so do links (`link`). Fields that are no members of a span are attributes.

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::retained::Status;
use crate::spans::builder::Builder;
use crate::spans::formats::records::{Documents, Record, Records, attributes, scalar, time};
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::input;
use crate::spans::model::{Link, Span, SpanKind};
use crate::spans::time::unit_of;

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Honeycomb,
    title: "Honeycomb",
    content: &[Content::Json],
    // A span of Zipkin may have such tags.
    detect: |_, head| {
        head.has_any(&["trace.span_id", "trace.trace_id"]) && !head.has_any(&["traceId", "localEndpoint"])
    },
    read: |builder, input, strict| {
        builder.hold_traces();
        let Documents(mut honeycomb) = input::documents::<Documents<Honeycomb>>(builder, input, strict)?;
        builder.finish_traces(|builder| honeycomb.link(builder))?;
        honeycomb.count_lost(builder);
        Ok(())
    },
    together: None,
};

/// What the records mean, and what waits for all of them.
#[derive(Default)]
struct Honeycomb {
    /// Links of spans that may come later.
    links: FxHashMap<(TraceId, SpanId), Vec<Link>>,
}

impl Records for Honeycomb {
    const HOLDERS: &'static [&'static str] = &["results"];

    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>) {
        match record.object("data") {
            Some(data) => match data.0.get("results").and_then(Value::as_array) {
                Some(rows) => rows.iter().filter_map(Record::of).for_each(|row| self.record(builder, row)),
                None => self.take(builder, data, record),
            },
            None => self.take(builder, record, record),
        }
    }
}

impl Honeycomb {
    fn take(&mut self, builder: &mut Builder<'_>, own: Record<'_>, envelope: Record<'_>) {
        let trace = builder.spans.trace_id(&own.text(&["trace.trace_id"]));
        let parent = builder.spans.span_id(&own.text(&["trace.parent_id"]));
        match &*own.text(&["meta.annotation_type"]) {
            "span_event" => {
                builder.report.tally("event of a span", 1);
                return;
            }
            "link" => {
                let to = Link {
                    trace: builder.spans.trace_id(&own.text(&["trace.link.trace_id"])),
                    span: builder.spans.span_id(&own.text(&["trace.link.span_id"])),
                };
                self.links.entry((trace, parent)).or_default().push(to);
                return;
            }
            _ => {}
        }
        if own.any(&["trace.trace_id", "trace.span_id"]).is_none() {
            builder.report.tally("event that is no span", 1);
            return;
        }
        builder.open();
        for (key, value) in own.0.iter().filter(|(key, _)| !is_member(key)) {
            match Record::of(value) {
                Some(within) => attributes(builder, key, within),
                None => {
                    builder.scalar.set_value(value);
                    builder.attribute(key);
                }
            }
        }
        if let Some(rate) = envelope.any(&["samplerate"]) {
            builder.scalar.set_value(rate);
            builder.attribute("SampleRate");
        }
        let mut span = Span { trace, parent, ..Span::default() };
        span.id = builder.spans.span_id(&own.text(&["trace.span_id"]));
        span.name = builder.names.intern(&own.text(&["name"]));
        span.kind = SpanKind::parse(&own.text(&["span.kind", "span_kind", "kind", "meta.span_type"]));
        span.service = builder.names.intern(&own.text(&["service.name", "service_name"]));
        builder.own_recorder().place(&mut span);
        if failed(own) {
            builder.open.status = Status::Error;
        }
        builder.apply_attributes(&mut span);
        const TIMES: [&str; 3] = ["Timestamp", "timestamp", "time"];
        let start = own.any(&TIMES).or_else(|| envelope.any(&TIMES)).and_then(of_our_days);
        let duration = own.any(&["duration_ms", "durationMs"]).and_then(|value| time(value, 1_000_000));
        builder.finish(span, start, start.zip(duration).map(|(start, duration)| start.saturating_add(duration)));
    }

    /// Gives spans their links.
    fn link(&mut self, builder: &mut Builder<'_>) {
        if self.links.is_empty() {
            return;
        }
        for span in &mut builder.spans.spans {
            if let Some(own) = self.links.remove(&(span.trace, span.id)) {
                (span.first_link, span.links) = (builder.spans.links.len() as u32, own.len() as u32);
                builder.spans.links.extend(own);
            }
        }
    }

    /// Counts links that are left.
    fn count_lost(&self, builder: &mut Builder<'_>) {
        let lost: usize = self.links.values().map(Vec::len).sum();
        if lost > 0 {
            builder.report.tally("link of a span that is not here", lost as u64);
        }
    }
}

/// Whether a field is read as a member of the span, and so is no attribute.
fn is_member(key: &str) -> bool {
    const MEMBERS: [&str; 9] = [
        "name",
        "duration_ms",
        "durationMs",
        "Timestamp",
        "timestamp",
        "time",
        "service_name",
        "meta.annotation_type",
        "meta.signal_type",
    ];
    MEMBERS.contains(&key) || key.starts_with("trace.")
}

/// Whether `error` is true or a text other than "false".
fn failed(own: Record<'_>) -> bool {
    match own.any(&["error"]) {
        Some(Value::Bool(error)) => *error,
        Some(Value::String(text)) => !text.is_empty() && text != "false",
        _ => own.text(&["status_code"]) == "2",
    }
}

/// A time as a date or as a number in the unit in which it is one of our days.
fn of_our_days(value: &Value) -> Option<i64> {
    let unit = scalar(value).float().and_then(unit_of).unwrap_or(1);
    time(value, unit)
}
