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
//! | the rest | `peer`, `status_code`, `IsError`, `cpu_time`, `component`, `SampleRate`, `TraceState`, `attributes`, `resource` |
//!
//! A time without a unit is in the one that puts the first row between 2000 and 2100, else in milliseconds, with a note. A
//! duration without one is in that of the start, also with a note. A table of Alibaba (`traceid`, `rpcid`, `um`, `dm`, `rt`) has a row for each side
//! of a call ([`calls`]).
//!
//! A [`TableMapping`] says of other tables which column means what; those of the data sets ship.

mod attributes;
mod calls;
mod columns;
mod mapping;
mod rows;

use std::io::Read;
use std::sync::Arc;

use super::lines::bad_line;
use crate::codes;
use crate::messages::row::{Delimiter, Row};
use crate::read::nothing_in;
use crate::retained::Status;
use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::SpanId;
use crate::spans::model::{Span, SpanKind, Spans};
use crate::spans::sampling::of_trace_state;
use crate::spans::time::{from_rfc3339, unit_of};
use columns::{Column, Columns, kind, names_of, no_column};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use mapping::Side;
pub use mapping::TableMapping;
use rows::Rows;
use rustc_hash::FxHashMap;

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
    let (columns, _) = Columns::of(names_of(header, Delimiter::of(header)).iter().map(String::as_str));
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
    let (mut rows, mut row) = (Rows::new(input), Row::default());
    let file = Arc::clone(&builder.file);
    loop {
        if !rows.next_line(&file)? {
            return Err(nothing_in(&file).into());
        }
        if !rows.line.trim().is_empty() && !rows.line.starts_with('#') {
            break;
        }
    }
    let mapping = builder.table.as_deref();
    let delimiter = mapping.and_then(|own| own.delimiter).unwrap_or_else(|| Delimiter::of(&rows.line));
    let names = names_of(&rows.line, delimiter);
    // A table without a header begins with its first row.
    let mut at_row = mapping.is_some_and(|own| !own.header);
    let mut table = Table::of(builder, &names)?;
    while at_row || rows.next_line(&file)? {
        at_row = false;
        if rows.line.trim().is_empty() {
            continue;
        }
        rows.split(&mut row, delimiter, names.len(), &file)?;
        let read = if row.is_broken() {
            Err("a field in quotes does not end".to_owned())
        } else {
            table.row(builder, &row, &rows.line)
        };
        if let Err(what) = read {
            bad_line(builder, rows.number, &what, strict)?;
        }
        builder.hand_on();
    }
    table.finish(builder)
}

/// A table of which the columns are known.
pub(super) struct Table {
    columns: Columns,
    mapping: Option<Arc<TableMapping>>,
    units: Option<Units>,
    /// The spans that were there before it.
    earlier: Spans,
}

impl Table {
    /// A table with these names of columns.
    ///
    /// # Errors
    /// The column that it lacks.
    pub fn of(builder: &mut Builder<'_>, names: &[String]) -> Result<Self, Diagnostics> {
        let mapping = builder.table.clone().or_else(|| TableMapping::fitting(names).map(Arc::new));
        let (columns, unknown) = match &mapping {
            Some(mapping) => match Columns::mapped(mapping, names) {
                (columns, lacking) if lacking.is_empty() => (columns, Vec::new()),
                (_, lacking) => return Err(lacks(&builder.file, mapping, &lacking, names).into()),
            },
            None => Columns::of(names.iter().map(String::as_str)),
        };
        if let Some(what) = columns.missing() {
            return Err(no_column(&builder.file, what, &unknown).into());
        }
        let mut table = Self { columns, mapping, units: None, earlier: Spans::default() };
        if table.needs_traces() {
            table.earlier = builder.take_spans();
            builder.hold_traces();
        }
        Ok(table)
    }

    /// Times of a column are in that unit, in nanoseconds.
    pub fn set_unit(&mut self, place: usize, unit: i64) {
        self.columns.set_unit(place, unit);
    }

    /// Takes a row.
    pub fn row(&mut self, builder: &mut Builder<'_>, row: &Row, line: &str) -> Result<(), String> {
        let fields = Fields { row, line, columns: &self.columns, mapping: self.mapping.as_deref() };
        let units = *self.units.get_or_insert_with(|| fields.units(builder));
        if self.columns.are_calls() { calls::row(builder, &fields, units) } else { fields.span(builder, units) }
    }

    fn side(&self) -> Side {
        self.mapping.as_ref().map(|own| own.side).unwrap_or_default()
    }

    /// Whether other rows of a trace tell more of a row.
    fn needs_traces(&self) -> bool {
        self.columns.are_calls() || self.side() != Side::Kind
    }

    /// Takes what needs all rows of a trace.
    ///
    /// # Errors
    /// When spans cannot be written to the disk where they wait, or read from there.
    pub fn finish(self, builder: &mut Builder<'_>) -> Result<(), Diagnostics> {
        if !self.needs_traces() {
            return Ok(());
        }
        let (are_calls, side) = (self.columns.are_calls(), self.side());
        builder.finish_traces(|builder| {
            if are_calls {
                calls::finish(builder);
            }
            match side {
                Side::Kind => {}
                Side::Instance => sides(&mut builder.spans.spans, |span| span.instance),
                Side::Service => sides(&mut builder.spans.spans, |span| span.service),
            }
        })?;
        let own = std::mem::replace(&mut builder.spans, self.earlier);
        builder.spans.append(own);
        Ok(())
    }
}

/// A table without columns that its mapping names.
fn lacks(file: &Arc<str>, mapping: &TableMapping, lacking: &[String], names: &[String]) -> Diagnostic {
    let place = Place::Line { file: Arc::clone(file), line: 1, column: 0 };
    let quoted =
        |names: &[String]| names.iter().take(12).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let message = format!("the table lacks columns that `{}` names: {}", mapping.name(), quoted(lacking));
    Diagnostic::error(codes::NO_COLUMN, place, message).with_note(format!("it has {}", quoted(names)))
}

/// Gives spans without a kind one: what is below a span of another instance or service was called by it.
fn sides(spans: &mut [Span], of: fn(&Span) -> Name) {
    let places: FxHashMap<_, _> =
        spans.iter().enumerate().map(|(place, span)| ((span.trace, span.id), place)).collect();
    for place in 0..spans.len() {
        let own = spans[place];
        let above = places.get(&(own.trace, own.parent)).copied().filter(|_| own.parent.is_some());
        let called = above.is_none_or(|above| of(&spans[above]) != of(&own));
        if called && own.kind == SpanKind::Unspecified {
            spans[place].kind = SpanKind::Server;
        }
        if let Some(above) = above.filter(|above| called && spans[*above].name == own.name)
            && matches!(spans[above].kind, SpanKind::Unspecified | SpanKind::Internal)
        {
            spans[above].kind = SpanKind::Client;
        }
    }
    for span in spans.iter_mut().filter(|span| span.kind == SpanKind::Unspecified) {
        span.kind = SpanKind::Internal;
    }
}

/// The fields of a row.
struct Fields<'a> {
    row: &'a Row,
    line: &'a str,
    columns: &'a Columns,
    mapping: Option<&'a TableMapping>,
}

impl Fields<'_> {
    /// A field; empty where there is none, or where it says that there is none.
    fn text(&self, column: Column) -> &str {
        let text = self.columns.place(column).map_or("", |place| self.row.get(self.line, place));
        let own = self.mapping.is_some_and(|own| own.absent.iter().any(|absent| absent == text));
        if own || ["nan", "null", "none", "(?)"].iter().any(|none| text.eq_ignore_ascii_case(none)) { "" } else { text }
    }

    /// A point in time: what times count from is added.
    fn point(&self, column: Column, unit: i64) -> Result<Option<i64>, String> {
        let epoch = self.mapping.map_or(0, |own| own.epoch);
        Ok(self.time(column, unit)?.map(|time| time.saturating_add(epoch)))
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
        let (start, end) = (self.point(Column::Start, units.start)?, self.point(Column::End, units.end)?);
        let duration = self.time(Column::Duration, units.duration)?;
        let mut span = Span {
            trace: builder.spans.trace_id(self.text(Column::Trace)),
            id: builder.spans.span_id(self.text(Column::Span)),
            parent: self.parent(builder),
            name: builder.names.intern(self.text(Column::Name)),
            instance: builder.names.intern(self.text(Column::Instance)),
            host: builder.names.intern(self.text(Column::Host)),
            kind: self.kind(),
            ..Span::default()
        };
        span.weight = of_trace_state(self.text(Column::State), span.trace);
        let service = match self.text(Column::Service) {
            "" => without_replica(self.text(Column::Instance)),
            service => service,
        };
        span.service = builder.names.intern(service);
        builder.open.status = status(self.text(Column::Status));
        self.offer(builder);
        let recorder = builder.own_recorder();
        builder.apply_attributes(&mut span);
        let (instance, host) = (span.instance, span.host);
        recorder.place(&mut span);
        // A column of its own tells more than an attribute.
        span.instance = if instance.is_some() { instance } else { span.instance };
        span.host = if host.is_some() { host } else { span.host };
        let end = end.or_else(|| Some(start?.saturating_add(duration?)));
        let start = start.or_else(|| Some(end?.saturating_sub(duration?)));
        builder.finish(span, start, end);
        Ok(())
    }

    /// Tells the attributes what columns say of them.
    fn offer(&self, builder: &mut Builder<'_>) {
        for column in [Column::Resource, Column::Attributes] {
            for (key, value) in attributes::pairs(self.text(column)) {
                builder.scalar.set_text(&value);
                builder.attribute(&key);
            }
        }
        let weight = self.text(Column::Weight);
        if !weight.is_empty() {
            builder.scalar.set_text(weight);
            builder.attribute("SampleRate");
        }
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

    fn kind(&self) -> SpanKind {
        let text = self.text(Column::Kind);
        let own = self.mapping.and_then(|own| own.kinds.iter().find(|(value, _)| value == text));
        let own = own.map_or_else(|| kind(text), |(_, kind)| *kind);
        let component = self.text(Column::Component).to_ascii_lowercase();
        match own {
            SpanKind::Server if component.ends_with("consumer") => SpanKind::Consumer,
            SpanKind::Client if component.ends_with("producer") => SpanKind::Producer,
            own => own,
        }
    }

    fn parent(&self, builder: &mut Builder<'_>) -> SpanId {
        let text = self.text(Column::Parent);
        let root = self.mapping.is_some_and(|own| own.roots.iter().any(|root| root == text));
        if root || text == "-1" || text.eq_ignore_ascii_case("root") {
            SpanId::NONE
        } else {
            builder.spans.span_id(text)
        }
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
