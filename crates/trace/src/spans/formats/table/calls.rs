//! Tables with a row for each side of a call, as those of Alibaba's microservices of 2021 and 2022.
//!
//! `rpcid` is the place of a call in the tree of its trace: `0.1.2` is the second call that `0.1` made. `um` calls `dm`; the response
//! time `rt` is positive where the caller recorded it, negative where the one that was called did, and 0 below a millisecond.
//! Times are milliseconds from the start of the recording.
//!
//! - The two rows of a call are its client and its server span, of one identifier. Names that are lost in one come from the other.
//! - Where only the caller's row is there, the called service still did the work: a server span of the same time stands for it.
//!   Databases and caches (`db`, `mc`) record nothing; their calls are client spans alone.
//! - A message (`mq`) is a producer and a consumer span. Its response time is that of the consumer.
//! - What enters the system has a server span alone.

use super::columns::Column;
use super::{Fields, Units};
use crate::spans::builder::Builder;
use crate::spans::ids::TraceId;
use crate::spans::json::Scalar;
use crate::spans::model::{Span, SpanKind};
use dyelog_diagnostic::names::Name;

/// One side of a call.
#[derive(Clone, Copy, Debug)]
struct Call {
    trace: TraceId,
    path: Name,
    caller: Name,
    callee: Name,
    interface: Name,
    kind: Kind,
    start: i64,
    /// Response time in nanoseconds; negative at the side that is called.
    response: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Call,
    Message,
    Store,
}

impl Call {
    /// As a span that waits until all rows of its trace were read.
    fn held(self) -> Span {
        let kind = match self.kind {
            Kind::Call => SpanKind::Client,
            Kind::Message => SpanKind::Producer,
            Kind::Store => SpanKind::Internal,
        };
        let end = self.start.saturating_add(self.response.saturating_abs());
        let Self { trace, path, caller, callee, interface, start, response, .. } = self;
        let remote = response < 0;
        Span {
            trace,
            note: path,
            service: caller,
            peer: callee,
            name: interface,
            kind,
            start,
            end,
            remote,
            ..Span::default()
        }
    }

    /// From the span that waited.
    fn of_held(span: &Span) -> Self {
        let kind = match span.kind {
            SpanKind::Producer => Kind::Message,
            SpanKind::Internal => Kind::Store,
            _ => Kind::Call,
        };
        let response = if span.remote { -span.duration() } else { span.duration() };
        let Span { trace, note: path, service: caller, peer: callee, name: interface, start, .. } = *span;
        Self { trace, path, caller, callee, interface, kind, start, response }
    }
}

/// Takes a row.
pub(super) fn row(builder: &mut Builder<'_>, fields: &Fields<'_>, units: Units) -> Result<(), String> {
    let start = fields.point(Column::Start, units.start)?.ok_or("the row has no time")?;
    let response = fields.time(Column::Duration, units.duration)?.ok_or("the row has no response time")?;
    let trace = builder.spans.trace_id(fields.text(Column::Trace));
    let mut name = |column| builder.names.intern(fields.text(column));
    let call = Call {
        trace,
        path: name(Column::Path),
        caller: name(Column::Caller),
        callee: name(Column::Callee),
        interface: name(Column::Name),
        kind: match fields.text(Column::Kind).to_ascii_lowercase().as_str() {
            "mq" => Kind::Message,
            "db" | "mc" | "memcached" | "redis" => Kind::Store,
            _ => Kind::Call,
        },
        start,
        response,
    };
    builder.report.records += 1;
    if !call.trace.is_some() || !call.path.is_some() {
        return Err("the row has no trace or no place in it".to_owned());
    }
    builder.open();
    builder.spans.spans.push(call.held());
    builder.close();
    Ok(())
}

/// Makes spans of all rows of some traces, which lie among the spans of the builder, alone.
pub(super) fn finish(builder: &mut Builder<'_>) {
    let mut rows: Vec<Call> = builder.spans.spans.iter().map(Call::of_held).collect();
    builder.truncate((0, 0));
    let names = &*builder.names;
    let text = |name: Name| names.text(name);
    rows.sort_by(|a, b| {
        let key = |row: &Call| (row.kind, row.start, row.response);
        let place = |row: &Call| (row.trace, text(row.path));
        place(a).cmp(&place(b)).then_with(|| key(a).cmp(&key(b))).then_with(|| {
            let names = |row: &Call| (text(row.caller), text(row.callee), text(row.interface));
            names(a).cmp(&names(b))
        })
    });
    for rows in rows.chunk_by(|a, b| (a.trace, a.path) == (b.trace, b.path)) {
        one_place(builder, rows);
    }
}

/// The calls at one place of a trace: the first row of the caller goes with the first one of the called side, and so on.
fn one_place(builder: &mut Builder<'_>, rows: &[Call]) {
    let mut unknown: Vec<&Call> = rows.iter().filter(|row| row.response == 0).collect();
    let mut callers: Vec<&Call> = rows.iter().filter(|row| row.response > 0).collect();
    let mut callees: Vec<&Call> = rows.iter().filter(|row| row.response < 0).collect();
    // A time below the resolution does not say whose it is; the side that is missing may be meant.
    while let Some(row) = unknown.pop() {
        if callers.len() <= callees.len() { callers.push(row) } else { callees.push(row) }
    }
    for number in 0..callers.len().max(callees.len()) {
        pair(builder, callers.get(number).copied(), callees.get(number).copied(), number);
    }
}

fn pair(builder: &mut Builder<'_>, caller: Option<&Call>, callee: Option<&Call>, number: usize) {
    let Some(call) = caller.or(callee) else { return };
    let either = |name: fn(&Call) -> Name| {
        let of = |row: Option<&Call>| row.map(name).filter(|name| name.is_some());
        of(caller).or_else(|| of(callee)).unwrap_or(Name::NONE)
    };
    let (from, to, interface) = (either(|row| row.caller), either(|row| row.callee), either(|row| row.interface));
    let path = builder.names.text(call.path).to_owned();
    let above = path.rsplit_once('.').map(|(above, _)| above.to_owned());
    let id = if number == 0 { path } else { format!("{path}~{}", number + 1) };
    let span = Span {
        trace: call.trace,
        id: builder.spans.span_id(&place(&id)),
        parent: above.map(|above| builder.spans.span_id(&place(&above))).unwrap_or_default(),
        name: interface,
        ..Span::default()
    };
    let times = |row: &Call| (row.start, row.start.saturating_add(row.response.saturating_abs()));
    let message = call.kind == Kind::Message;
    let enters = !span.parent.is_some();
    if !enters && (caller.is_some() || message) {
        let (start, end) = if message { (call.start, call.start) } else { times(call) };
        let kind = if message { SpanKind::Producer } else { SpanKind::Client };
        give(builder, Span { service: from, peer: to, kind, ..span }, start, end);
    }
    let served = match call.kind {
        Kind::Call | Kind::Message => callee.or(caller),
        Kind::Store => None,
    };
    if let Some(row) = served.filter(|_| to.is_some() || callee.is_some()) {
        let (start, end) = times(row);
        let kind = if message { SpanKind::Consumer } else { SpanKind::Server };
        give(builder, Span { service: to, kind, ..span }, start, end);
    }
}

/// A place as an identifier: `0.1` is no number.
fn place(path: &str) -> String {
    format!("rpc {path}")
}

fn give(builder: &mut Builder<'_>, mut span: Span, start: i64, end: i64) {
    builder.open();
    if span.peer.is_some() {
        let peer = builder.names.text(span.peer).to_owned();
        let mut scalar = Scalar::default();
        scalar.set_text(&peer);
        builder.attributes.take(crate::spans::attributes::Meaning::Peer(0), &mut scalar);
    }
    builder.apply_attributes(&mut span);
    builder.add(span, Some(start), Some(end));
}
