//! A span as it lies on disk: all numbers of a fixed length, lowest byte first, names by their numbers.

use crate::recorded::SpanKind;
use crate::retained::part;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::{Link, Messaging, Span, Spans};
use dyelog_diagnostic::names::Name;

/// Writes a span, by its place, with its links and what is kept of it.
pub(super) fn write(spans: &Spans, place: u32, out: &mut Vec<u8>) {
    let span = &spans.spans[place as usize];
    out.extend(span.trace.0.to_le_bytes());
    for number in [span.id.0, span.parent.0, span.cpu.to_bits(), span.weight.to_bits()] {
        out.extend(number.to_le_bytes());
    }
    for time in [span.start, span.end] {
        out.extend(time.to_le_bytes());
    }
    let names = [span.service, span.instance, span.host, span.machine, span.name, span.route, span.peer, span.note];
    for number in names.map(|name| name.0).into_iter().chain([span.file, span.cores, span.batch, span.links]) {
        out.extend(number.to_le_bytes());
    }
    let kind = SpanKind::ALL.iter().position(|kind| *kind == span.kind).unwrap_or(0);
    let role = Messaging::ALL.iter().position(|role| *role == span.messaging).unwrap_or(0);
    let flags = [
        span.follows,
        span.remote,
        span.endless,
        span.lost,
        span.failed,
        span.retry,
        span.unlinked,
        span.apart,
        span.may_wait,
    ];
    let flags = flags.iter().rev().fold(0_u16, |flags, flag| flags << 1 | u16::from(*flag));
    out.extend([kind as u8, role as u8]);
    out.extend(flags.to_le_bytes());
    for link in spans.links_of(span) {
        out.extend(link.trace.0.to_le_bytes());
        out.extend(link.span.0.to_le_bytes());
    }
    if let Some(kept) = &spans.kept {
        kept.write(place, out);
    }
}

/// Adds the span that comes next to others; `None` where it is cut off.
pub(super) fn read(bytes: &mut &[u8], into: &mut Spans) -> Option<()> {
    let mut span = Span { trace: TraceId(u128::from_le_bytes(part(bytes)?)), ..Span::default() };
    let mut word = || part(bytes).map(u64::from_le_bytes);
    (span.id, span.parent) = (SpanId(word()?), SpanId(word()?));
    (span.cpu, span.weight) = (f64::from_bits(word()?), f64::from_bits(word()?));
    (span.start, span.end) = (word()?.cast_signed(), word()?.cast_signed());
    let mut number = || part(bytes).map(u32::from_le_bytes);
    for name in [
        &mut span.service,
        &mut span.instance,
        &mut span.host,
        &mut span.machine,
        &mut span.name,
        &mut span.route,
        &mut span.peer,
        &mut span.note,
    ] {
        *name = Name(number()?);
    }
    (span.file, span.cores, span.batch, span.links) = (number()?, number()?, number()?, number()?);
    let [kind, role] = part(bytes)?;
    let flags = part(bytes).map(u16::from_le_bytes)?;
    span.kind = *SpanKind::ALL.get(usize::from(kind))?;
    span.messaging = *Messaging::ALL.get(usize::from(role))?;
    let flag = |bit: u8| flags >> bit & 1 == 1;
    (span.follows, span.remote, span.endless) = (flag(0), flag(1), flag(2));
    (span.lost, span.failed, span.retry) = (flag(3), flag(4), flag(5));
    (span.unlinked, span.apart, span.may_wait) = (flag(6), flag(7), flag(8));
    span.first_link = into.links.len() as u32;
    for _ in 0..span.links {
        let trace = TraceId(u128::from_le_bytes(part(bytes)?));
        into.links.push(Link { trace, span: SpanId(u64::from_le_bytes(part(bytes)?)) });
    }
    into.spans.push(span);
    into.kept.as_mut().map_or(Some(()), |kept| kept.read(bytes))
}
