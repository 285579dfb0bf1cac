//! Spans as a table with a header, its fields between commas, semicolons or tabs.
//!
//! Columns are known by their names, in any case and with or without `_`, in any order; those of the data sets of `DeepTraLog`, Nezha,
//! AIOps and Alibaba are among them.
//!
//! | what | columns |
//! |---|---|
//! | trace, span | `trace_id`, `span_id` |
//! | parent | `parent_span_id`, `parent_id`, `parent_span`; empty, `root`, `-1`, `none`, `null` at a root |
//! | service | `service`, `service_name`; else the name of the instance without what the replica adds |
//! | instance, machine | `instance`, `PodName`, `cmdb_id`; `host`, `node` |
//! | name | `operation`, `operation_name`, `name`, `endpoint`, `URL`, `interface` |
//! | kind | `kind`, `SpanType`, `type`: as OTLP and Jaeger write it, `Entry`, `Exit`, `Local` |
//! | times | `start_time`, `timestamp`, `end_time`, `duration`, `latency`; units `_s`, `_ms`, `_us`, `_ns`, `UnixNano`, or in brackets |
//! | the rest | `peer`, `status_code`, `IsError`, `cpu_time` |
//!
//! A time without a unit is in the one that puts the first row between 2000 and 2100, else in milliseconds, with a note. A
//! duration without one is in that of the start, also with a note. A table of Alibaba (`traceid`, `rpcid`, `um`, `dm`, `rt`) has a row for each side
//! of a call ([`calls`]).

mod calls;
mod columns;

use std::io::Read;
use std::sync::Arc;

use super::lines::{bad_line, next};
use crate::codes;
use crate::lines::Lines;
use crate::messages::row::{Delimiter, Row};
use crate::read::nothing_in;
use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::SpanId;
use crate::spans::model::Span;
use crate::spans::time::{from_rfc3339, unit_of};
use calls::Calls;
use columns::{Column, Columns, kind, no_column};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::SpansCsv,
    title: "table",
    content: &[Content::Lines],
    detect: |_, head| head.lines().next().is_some_and(is_header),
    read,
    together: None,
};

fn is_header(line: &[u8]) -> bool {
    let Ok(header) = std::str::from_utf8(line) else { return false };
    let (columns, _) = Columns::of(header, Delimiter::of(header));
    let has = |column| columns.place(column).is_some();
    has(Column::Trace) && (has(Column::Span) || has(Column::Path))
}

/// The units of the times of a table, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Units {
    start: i64,
    end: i64,
    duration: i64,
}

fn read(builder: &mut Builder<'_>, input: &mut dyn Read, strict: bool) -> Result<(), Diagnostics> {
    let (mut lines, mut row) = (Lines::new(input), Row::default());
    let file = Arc::clone(&builder.file);
    let header = loop {
        match next(&mut lines, &file)? {
            Some((_, line)) if line.trim().is_empty() || line.starts_with('#') => {}
            Some((_, line)) => break line.into_owned(),
            None => return Err(nothing_in(&file).into()),
        }
    };
    let delimiter = Delimiter::of(&header);
    let (columns, unknown) = Columns::of(&header, delimiter);
    if let Some(what) = columns.missing() {
        return Err(no_column(&file, what, &unknown).into());
    }
    let (mut calls, mut units) = (Calls::default(), None);
    while let Some((number, line)) = next(&mut lines, &file)? {
        if line.trim().is_empty() {
            continue;
        }
        row.split(&line, delimiter);
        let fields = Fields { row: &row, line: &line, columns: &columns };
        if row.is_broken() {
            bad_line(builder, number, "a field in quotes goes over several lines", strict)?;
            continue;
        }
        let units = *units.get_or_insert_with(|| fields.units(builder));
        let read = if columns.are_calls() { calls.row(builder, &fields, units) } else { fields.span(builder, units) };
        if let Err(what) = read {
            bad_line(builder, number, &what, strict)?;
        }
    }
    calls.finish(builder);
    Ok(())
}

/// The fields of a row.
struct Fields<'a> {
    row: &'a Row,
    line: &'a str,
    columns: &'a Columns,
}

impl Fields<'_> {
    /// A field; empty where there is none, or where it says that there is none.
    fn text(&self, column: Column) -> &str {
        let text = self.columns.place(column).map_or("", |place| self.row.get(self.line, place));
        if ["nan", "null", "none", "(?)"].iter().any(|none| text.eq_ignore_ascii_case(none)) { "" } else { text }
    }

    /// A time in nanoseconds; `None` where the field is empty.
    fn time(&self, column: Column, unit: i64) -> Result<Option<i64>, String> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let whole = text.parse::<i64>().ok().map(|number| number.saturating_mul(unit));
        let float = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        // A fraction has as many digits as fit; rounded to nanoseconds it is what was meant.
        let time = whole.or_else(|| float().map(|number| (number * unit as f64).round() as i64));
        time.or_else(|| from_rfc3339(text)).map(Some).ok_or_else(|| format!("`{text}` is no time"))
    }

    /// The units, by the columns' names or by the size of this first row's times.
    fn units(&self, builder: &mut Builder<'_>) -> Units {
        let of = |column: Column| self.columns.unit(column).or_else(|| unit_of(self.text(column).parse().ok()?));
        let known = of(Column::Start).or_else(|| of(Column::End));
        if known.is_none() && !self.columns.are_calls() && from_rfc3339(self.text(Column::Start)).is_none() {
            let place = Place::File { file: Arc::clone(&builder.file) };
            builder.report.count("table that does not tell the unit of its times", || {
                Diagnostic::warning(codes::OTHER_UNIT, place, "the times of this table are taken as milliseconds")
                    .with_hint("name the column with its unit, such as `start_us` and `duration_us`")
            });
        }
        let start = known.unwrap_or(1_000_000);
        let needed = self.columns.place(Column::End).is_none() || self.columns.place(Column::Start).is_none();
        if needed && !self.columns.are_calls() && self.columns.unit(Column::Duration).is_none() {
            let place = Place::File { file: Arc::clone(&builder.file) };
            builder.report.count("table that does not tell the unit of its durations", || {
                let message = "the durations of this table are taken in the unit of its times";
                Diagnostic::warning(codes::OTHER_UNIT, place, message)
                    .with_hint("name the column with its unit, such as `duration_us`")
            });
        }
        let end = of(Column::End).unwrap_or(start);
        Units { start, end, duration: self.columns.unit(Column::Duration).unwrap_or(start) }
    }

    /// A row that is a span.
    fn span(&self, builder: &mut Builder<'_>, units: Units) -> Result<(), String> {
        builder.open();
        let (start, end) = (self.time(Column::Start, units.start)?, self.time(Column::End, units.end)?);
        let duration = self.time(Column::Duration, units.duration)?;
        let mut span = Span {
            trace: builder.spans.trace_id(self.text(Column::Trace)),
            id: builder.spans.span_id(self.text(Column::Span)),
            parent: self.parent(builder),
            name: builder.names.intern(self.text(Column::Name)),
            instance: builder.names.intern(self.text(Column::Instance)),
            host: builder.names.intern(self.text(Column::Host)),
            kind: kind(self.text(Column::Kind)),
            ..Span::default()
        };
        let service = match self.text(Column::Service) {
            "" => without_replica(self.text(Column::Instance)),
            service => service,
        };
        span.service = builder.names.intern(service);
        builder.open.status = status(self.text(Column::Status));
        self.offer(builder);
        builder.apply_attributes(&mut span);
        let end = end.or_else(|| Some(start?.saturating_add(duration?)));
        let start = start.or_else(|| Some(end?.saturating_sub(duration?)));
        builder.finish(span, start, end);
        Ok(())
    }

    /// Tells the attributes what columns say of them.
    fn offer(&self, builder: &mut Builder<'_>) {
        let Builder { attributes, scalar, .. } = builder;
        let factor = self.columns.unit(Column::Cpu).map_or(1.0, |unit| unit as f64 / 1e9);
        for (column, meaning) in [(Column::Peer, Meaning::Peer(0)), (Column::Cpu, Meaning::Cpu(factor))] {
            let text = self.text(column);
            if !text.is_empty() {
                scalar.set_text(text);
                attributes.take(meaning, scalar);
            }
        }
    }

    fn parent(&self, builder: &mut Builder<'_>) -> SpanId {
        let text = self.text(Column::Parent);
        if text == "-1" || text.eq_ignore_ascii_case("root") { SpanId::NONE } else { builder.spans.span_id(text) }
    }
}

fn status(text: &str) -> Status {
    match text.to_ascii_lowercase().as_str() {
        "true" => Status::Error,
        other => Status::parse(other),
    }
}

/// The name of a pod or replica without what tells it from others: `front-end-79d5f6c7b8-x2x4z`, `db-0`.
fn without_replica(instance: &str) -> &str {
    let Some((rest, last)) = instance.rsplit_once('-') else { return instance };
    let simple = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let digits = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
    if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
        return rest;
    }
    match rest.rsplit_once('-') {
        // A deployment adds the hash of its template and five letters.
        Some((name, hash))
            if last.len() == 5 && simple(last) && (6..=10).contains(&hash.len()) && simple(hash) && digits(hash) =>
        {
            name
        }
        _ => instance,
    }
}
