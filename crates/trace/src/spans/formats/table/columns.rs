//! Which column of a table of spans is what, by the names that are met in the field.

use std::sync::Arc;

use super::mapping::TableMapping;
use crate::codes;
use crate::messages::row::{Delimiter, Row};
use crate::spans::model::SpanKind;
use dyelog_diagnostic::{Diagnostic, Place};

/// What a column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Trace,
    Span,
    Parent,
    Service,
    Instance,
    Host,
    Name,
    Kind,
    Peer,
    Start,
    End,
    Duration,
    Status,
    Cpu,
    /// The library that made the span: those of `SkyWalking` tell messages from calls.
    Component,
    /// How many spans this one stands for.
    Weight,
    /// What OpenTelemetry hands on from span to span.
    State,
    /// Attributes of the span, in braces; of its resource.
    Attributes,
    Resource,
    /// The place of a call in the tree of its trace, `0.1.2` (Alibaba).
    Path,
    /// The service that calls, and the one that is called (Alibaba).
    Caller,
    Callee,
}

/// How many there are.
const COLUMNS: usize = 22;

/// Names of columns, without case, units and anything but letters and digits.
const NAMES: [(&str, Column); 60] = [
    ("traceid", Column::Trace),
    ("trace", Column::Trace),
    ("tracetraceid", Column::Trace),
    ("spanid", Column::Span),
    ("span", Column::Span),
    ("tracespanid", Column::Span),
    ("parentspanid", Column::Parent),
    ("parentid", Column::Parent),
    ("parentspan", Column::Parent),
    ("parent", Column::Parent),
    ("traceparentid", Column::Parent),
    ("service", Column::Service),
    ("servicename", Column::Service),
    ("process", Column::Service),
    ("podname", Column::Instance),
    ("pod", Column::Instance),
    ("instance", Column::Instance),
    ("serviceinstance", Column::Instance),
    ("cmdbid", Column::Instance),
    ("host", Column::Host),
    ("hostname", Column::Host),
    ("node", Column::Host),
    ("operation", Column::Name),
    ("operationname", Column::Name),
    ("name", Column::Name),
    ("spanname", Column::Name),
    ("endpoint", Column::Name),
    ("url", Column::Name),
    ("interface", Column::Name),
    ("kind", Column::Kind),
    ("spankind", Column::Kind),
    ("spantype", Column::Kind),
    ("type", Column::Kind),
    ("rpctype", Column::Kind),
    ("peer", Column::Peer),
    ("start", Column::Start),
    ("starttime", Column::Start),
    ("timestamp", Column::Start),
    ("end", Column::End),
    ("endtime", Column::End),
    ("duration", Column::Duration),
    ("elapsed", Column::Duration),
    ("latency", Column::Duration),
    ("rt", Column::Duration),
    ("status", Column::Status),
    ("statuscode", Column::Status),
    ("iserror", Column::Status),
    ("error", Column::Status),
    ("cputime", Column::Cpu),
    ("component", Column::Component),
    ("samplerate", Column::Weight),
    ("tracestate", Column::State),
    ("attributes", Column::Attributes),
    ("spanattributes", Column::Attributes),
    ("tags", Column::Attributes),
    ("resource", Column::Resource),
    ("resourceattributes", Column::Resource),
    ("rpcid", Column::Path),
    ("um", Column::Caller),
    ("dm", Column::Callee),
];

/// Ends of the names of columns that tell the unit of a time, in nanoseconds; the longest first.
const UNITS: [(&str, i64); 13] = [
    ("unixnano", 1),
    ("milliseconds", 1_000_000),
    ("microseconds", 1_000),
    ("nanoseconds", 1),
    ("seconds", 1_000_000_000),
    ("millis", 1_000_000),
    ("micros", 1_000),
    ("nanos", 1),
    ("sec", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];

/// The kinds of spans by names that [`SpanKind::parse`] does not have: those of `SkyWalking`.
pub(super) fn kind(text: &str) -> SpanKind {
    match text.trim().to_ascii_lowercase().as_str() {
        "entry" => SpanKind::Server,
        "exit" => SpanKind::Client,
        "local" => SpanKind::Internal,
        _ => SpanKind::parse(text),
    }
}

/// Where each column stands, and in which units its times are, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    places: [Option<usize>; COLUMNS],
    units: [Option<i64>; COLUMNS],
}

impl Columns {
    /// Where a column stands.
    pub fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    /// The unit of a time, in nanoseconds, where its name tells it.
    pub fn unit(&self, column: Column) -> Option<i64> {
        self.units[column as usize]
    }

    /// Whether each row is one side of a call, by its path (Alibaba).
    pub fn are_calls(&self) -> bool {
        [Column::Path, Column::Caller, Column::Callee].iter().all(|column| self.place(*column).is_some())
    }

    /// Takes the columns of a header by what their names mean; gives the names that mean nothing, too. The first column of a name counts.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> (Self, Vec<String>) {
        let mut columns = Self { places: [None; COLUMNS], units: [None; COLUMNS] };
        let mut unknown = Vec::new();
        for (place, name) in names.into_iter().enumerate() {
            match column_of(name) {
                Some((column, unit)) if columns.places[column as usize].is_none() => {
                    columns.places[column as usize] = Some(place);
                    columns.units[column as usize] = unit;
                }
                _ if name.is_empty() => {}
                _ => unknown.push(name.to_owned()),
            }
        }
        (columns, unknown)
    }

    /// Takes the columns that a mapping names; gives the names of those that the header lacks, too.
    pub fn mapped(mapping: &TableMapping, names: &[String]) -> (Self, Vec<String>) {
        let mut columns = Self { places: [None; COLUMNS], units: [None; COLUMNS] };
        let mut lacking = Vec::new();
        for (column, name) in &mapping.columns {
            let by_name = || {
                let exact = names.iter().position(|own| own == name);
                exact.or_else(|| names.iter().position(|own| own.eq_ignore_ascii_case(name)))
            };
            let place = if mapping.header { by_name() } else { name.parse().ok().map(|number: usize| number - 1) };
            columns.places[*column as usize] = place;
            if place.is_none() && !mapping.may_lack(*column) {
                lacking.push(name.clone());
            }
        }
        for (column, unit) in [Column::Start, Column::End, Column::Duration, Column::Cpu].into_iter().zip(mapping.units)
        {
            columns.units[column as usize] = unit;
        }
        (columns, lacking)
    }

    /// Times of a column are in that unit, in nanoseconds, whatever its name tells.
    pub fn set_unit(&mut self, place: usize, unit: i64) {
        for (own, units) in self.places.iter().zip(&mut self.units) {
            if *own == Some(place) {
                *units = Some(unit);
            }
        }
    }

    /// What a table of spans lacks, if anything.
    pub fn missing(&self) -> Option<&'static str> {
        let has = |column| self.place(column).is_some();
        if !has(Column::Trace) {
            return Some("of the trace (`trace_id`)");
        }
        if !has(Column::Start) && !has(Column::End) {
            return Some("of times (`start_time`, with `duration` or `end_time`)");
        }
        if self.are_calls() {
            return (!has(Column::Duration)).then_some("of response times (`rt`)");
        }
        if !has(Column::Span) {
            return Some("of the span (`span_id`)");
        }
        if [Column::Start, Column::End, Column::Duration].iter().filter(|column| has(**column)).count() < 2 {
            return Some("of durations (`duration` or `end_time`)");
        }
        (!has(Column::Service) && !has(Column::Instance)).then_some("of the service (`service`)")
    }
}

/// The column of a name, and the unit that it tells.
fn column_of(name: &str) -> Option<(Column, Option<i64>)> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let find = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
    if let Some(column) = find(&plain) {
        return Some((column, None));
    }
    UNITS.iter().find_map(|(end, unit)| {
        let column = find(plain.strip_suffix(end)?)?;
        let timed = matches!(column, Column::Start | Column::End | Column::Duration | Column::Cpu);
        timed.then_some((column, Some(*unit)))
    })
}

/// A table without a column that it needs.
pub(super) fn no_column(file: &Arc<str>, what: &str, unknown: &[String]) -> Diagnostic {
    let place = Place::Line { file: Arc::clone(file), line: 1, column: 0 };
    let finding = Diagnostic::error(codes::NO_COLUMN, place, format!("the table has no column {what}"));
    if unknown.is_empty() {
        return finding.with_hint("the first line must name the columns");
    }
    let names: Vec<String> = unknown.iter().take(12).map(|name| format!("`{name}`")).collect();
    finding.with_note(format!("columns whose names mean nothing here: {}", names.join(", ")))
}

/// A header as its names.
pub(super) fn names_of(header: &str, delimiter: Delimiter) -> Vec<String> {
    let mut row = Row::default();
    row.split(header, delimiter);
    (0..row.len()).map(|place| row.get(header, place).to_owned()).collect()
}
