//! Spans as bytes: tables of what many spans share, then trace by trace, with times from the first of the trace.
//!
//! Numbers are LEB128, signed ones in zigzag. Identifiers of spans have eight bytes, those of traces sixteen. A parent is the place of a span
//! in its trace, where it is there. The order is that of [`Spans::compare`], tables are in the order of first use.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Operation;
use crate::recorded::SpanKind;
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::model::{Link, Messaging, Recorder, Span, Spans};
use crate::spans::sampling::CHOSEN;
use dyelog_diagnostic::names::{Name, Names};
use dyelog_wire::{signed, unsigned};

/// The first byte.
const VERSION: u8 = 1;

/// Facts of a span that hold or not, as bits.
const FOLLOWS: u8 = 1;
const REMOTE: u8 = 2;
const ENDLESS: u8 = 4;
const LOST: u8 = 8;
const FAILED: u8 = 16;
const RETRY: u8 = 32;
const HAS_CPU: u8 = 64;
const HAS_WEIGHT: u8 = 128;

/// Things in the order of first use.
struct Table<K> {
    rows: Vec<K>,
    numbers: FxHashMap<K, u64>,
}

impl<K: Copy + Eq + Hash> Table<K> {
    fn new() -> Self {
        Self { rows: Vec::new(), numbers: FxHashMap::default() }
    }

    fn number(&mut self, row: K) -> u64 {
        let next = self.rows.len() as u64;
        *self.numbers.entry(row).or_insert_with(|| {
            self.rows.push(row);
            next
        })
    }
}

/// Who recorded: file, service, instance, host, machine, cores.
type Source = (u64, Name, Name, Name, Name, u32);
/// What: name, route, peer, kind, messaging, facts.
type Does = (Name, Name, Name, u8, u8, u8);

pub(super) fn encoded(all: &Spans, names: &Names) -> (u64, Vec<u8>) {
    let order = order(all, names);
    let mut files: Table<&str> = Table::new();
    let mut sources: Table<Source> = Table::new();
    let mut does: Table<Does> = Table::new();
    let mut body = Vec::new();
    let mut traces = 0;
    for of_trace in order.chunk_by(|a, b| all.spans[*a].trace == all.spans[*b].trace) {
        traces += 1;
        let spans = || of_trace.iter().map(|at| &all.spans[*at]);
        let begin = spans().map(|span| span.start).min().unwrap_or_default();
        let mut places: FxHashMap<SpanId, u64> = FxHashMap::default();
        for (place, span) in spans().enumerate() {
            places.entry(span.id).or_insert(place as u64);
        }
        let trace = spans().next().expect("a chunk has a span").trace;
        body.extend(trace.0.to_le_bytes());
        signed(begin, &mut body);
        unsigned(of_trace.len() as u64, &mut body);
        for span in spans() {
            let file = files.number(all.file_of(span));
            let source = (file, span.service, span.instance, span.host, span.machine, span.cores);
            let facts = facts(span);
            let what = (
                span.name,
                span.route,
                span.peer,
                place_of(&SpanKind::ALL, &span.kind),
                place_of(&Messaging::ALL, &span.messaging),
                facts,
            );
            unsigned(sources.number(source), &mut body);
            unsigned(does.number(what), &mut body);
            body.extend(span.id.0.to_le_bytes());
            match places.get(&span.parent) {
                _ if !span.parent.is_some() => unsigned(0, &mut body),
                Some(place) => unsigned(place + 2, &mut body),
                None => {
                    unsigned(1, &mut body);
                    body.extend(span.parent.0.to_le_bytes());
                }
            }
            unsigned(span.start.abs_diff(begin), &mut body);
            unsigned(span.end.abs_diff(span.start), &mut body);
            for (bit, value) in [(HAS_CPU, span.cpu), (HAS_WEIGHT, span.weight)] {
                if facts & bit != 0 {
                    body.extend(value.to_bits().to_le_bytes());
                }
            }
            let links = all.links_of(span);
            unsigned(links.len() as u64, &mut body);
            for link in links {
                body.extend(link.trace.0.to_le_bytes());
                body.extend(link.span.0.to_le_bytes());
            }
        }
    }
    let mut out = vec![VERSION];
    list(&files.rows, &mut out, |file, out| text(file, out));
    let mut strings: Table<Name> = Table::new();
    strings.number(Name::NONE);
    let mut rows = Vec::new();
    list(&sources.rows, &mut rows, |(file, service, instance, host, machine, cores), out| {
        unsigned(*file, out);
        for name in [service, instance, host, machine] {
            unsigned(strings.number(*name), out);
        }
        unsigned(u64::from(*cores), out);
    });
    list(&does.rows, &mut rows, |(name, route, peer, kind, messaging, facts), out| {
        for name in [name, route, peer] {
            unsigned(strings.number(*name), out);
        }
        out.extend([*kind, *messaging, *facts]);
    });
    list(&strings.rows[1..], &mut out, |name, out| text(names.text(*name), out));
    let mut odd: Vec<_> = all.odd_spans.iter().collect();
    odd.sort_unstable();
    list(&odd, &mut out, |(id, own), out| {
        out.extend(id.0.to_le_bytes());
        text(own, out);
    });
    let mut odd: Vec<_> = all.odd_traces.iter().collect();
    odd.sort_unstable();
    list(&odd, &mut out, |(id, own), out| {
        out.extend(id.0.to_le_bytes());
        text(own, out);
    });
    out.extend(rows);
    unsigned(traces, &mut out);
    out.extend(body);
    (order.len() as u64, out)
}

/// The places of all spans that differ in anything, in an order that does not depend on how they arrived.
fn order(all: &Spans, names: &Names) -> Vec<usize> {
    let compare = |a: &usize, b: &usize| {
        let (a, b) = (&all.spans[*a], &all.spans[*b]);
        all.compare(names, a, b)
            .then_with(|| names.text(a.route).cmp(names.text(b.route)))
            .then_with(|| a.weight.total_cmp(&b.weight))
            .then_with(|| a.lost.cmp(&b.lost))
    };
    let mut order: Vec<usize> = (0..all.spans.len()).collect();
    order.sort_unstable_by(compare);
    order.dedup_by(|b, a| compare(a, b).is_eq());
    order
}

/// Whether a number is a weight that a span may have.
fn is_weight(number: f64) -> bool {
    number >= 0.0 || number == CHOSEN || Operation::limit_of(number).is_some()
}

fn facts(span: &Span) -> u8 {
    [
        (FOLLOWS, span.follows),
        (REMOTE, span.remote),
        (ENDLESS, span.endless),
        (LOST, span.lost),
        (FAILED, span.failed),
        (RETRY, span.retry),
        (HAS_CPU, span.cpu.is_finite()),
        (HAS_WEIGHT, span.weight.is_finite()),
    ]
    .into_iter()
    .filter(|(_, holds)| *holds)
    .fold(0, |facts, (bit, _)| facts | bit)
}

fn place_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|own| own == one).expect("all are listed") as u8
}

fn list<T>(rows: &[T], out: &mut Vec<u8>, mut write: impl FnMut(&T, &mut Vec<u8>)) {
    unsigned(rows.len() as u64, out);
    for row in rows {
        write(row, out);
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    unsigned(text.len() as u64, out);
    out.extend(text.as_bytes());
}

/// What is left to read.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // The tenth byte has one bit only.
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn id(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn float(&mut self) -> Option<f64> {
        self.id().map(f64::from_bits).filter(|value| value.is_finite())
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let length = usize::try_from(self.unsigned()?).ok()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(head).ok().map(Arc::from)
    }

    /// Rows, each of which takes a byte at least.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.length()?).map(|_| read(self)).collect()
    }

    /// Of a list.
    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.unsigned()?).ok().filter(|count| *count <= self.0.len())
    }
}

pub(super) fn decoded(bytes: &[u8], names: &mut Names) -> Option<Spans> {
    let mut bytes = Bytes(bytes);
    if bytes.byte()? != VERSION {
        return None;
    }
    let mut all = Spans { files: bytes.list(Bytes::text)?, ..Spans::default() };
    let mut strings = vec![Name::NONE];
    strings.extend(bytes.list(|bytes| Some(names.intern(&bytes.text()?)))?);
    all.odd_spans = Arc::new(bytes.list(|bytes| Some((SpanId(bytes.id()?), bytes.text()?)))?.into_iter().collect());
    let trace = |bytes: &mut Bytes<'_>| bytes.take().map(u128::from_le_bytes).map(TraceId);
    all.odd_traces = Arc::new(bytes.list(|bytes| Some((trace(bytes)?, bytes.text()?)))?.into_iter().collect());
    let name = |bytes: &mut Bytes<'_>| strings.get(usize::try_from(bytes.unsigned()?).ok()?).copied();
    let files = all.files.len();
    let sources = bytes.list(|bytes| {
        let file = u32::try_from(bytes.unsigned()?).ok().filter(|file| (*file as usize) < files)?;
        let [service, instance, host, machine] = [name(bytes)?, name(bytes)?, name(bytes)?, name(bytes)?];
        let cores = u32::try_from(bytes.unsigned()?).ok()?;
        let (environment, namespace) = (Name::NONE, Name::NONE);
        Some((file, Recorder { service, instance, host, machine, environment, namespace, cores }))
    })?;
    let does = bytes.list(|bytes| {
        let [name, route, peer] = [name(bytes)?, name(bytes)?, name(bytes)?];
        let [kind, messaging, facts] = bytes.take()?;
        let (kind, messaging) = (*SpanKind::ALL.get(usize::from(kind))?, *Messaging::ALL.get(usize::from(messaging))?);
        let has = |bit: u8| facts & bit != 0;
        let span = Span {
            name,
            route,
            peer,
            kind,
            messaging,
            follows: has(FOLLOWS),
            remote: has(REMOTE),
            endless: has(ENDLESS),
            lost: has(LOST),
            failed: has(FAILED),
            retry: has(RETRY),
            ..Span::default()
        };
        Some((span, has(HAS_CPU), has(HAS_WEIGHT)))
    })?;
    let traces = bytes.unsigned()?;
    for _ in 0..traces {
        let own = trace(&mut bytes)?;
        let begin = bytes.signed()?;
        let first = all.spans.len();
        // Parents that are here are places, which become identifiers when all are read.
        let mut places = Vec::new();
        for _ in 0..bytes.length()? {
            let (file, recorder) = sources.get(usize::try_from(bytes.unsigned()?).ok()?)?;
            let (what, has_cpu, has_weight) = does.get(usize::try_from(bytes.unsigned()?).ok()?)?;
            let mut span = Span { file: *file, trace: own, id: SpanId(bytes.id()?), ..*what };
            recorder.sign(&mut span);
            match bytes.unsigned()? {
                0 => {}
                1 => span.parent = SpanId(bytes.id()?),
                place => places.push((all.spans.len(), usize::try_from(place - 2).ok()?)),
            }
            span.start = begin.checked_add_unsigned(bytes.unsigned()?)?;
            span.end = span.start.checked_add_unsigned(bytes.unsigned()?)?;
            if *has_cpu {
                span.cpu = bytes.float()?;
            }
            if *has_weight {
                span.weight = bytes.float().filter(|number| is_weight(*number))?;
            }
            let links = bytes.list(|bytes| Some(Link { trace: trace(bytes)?, span: SpanId(bytes.id()?) }))?;
            (span.first_link, span.links) = (u32::try_from(all.links.len()).ok()?, u32::try_from(links.len()).ok()?);
            all.links.extend(links);
            all.spans.push(span);
        }
        for (span, place) in places {
            all.spans[span].parent = all.spans.get(first.checked_add(place)?)?.id;
        }
    }
    bytes.0.is_empty().then_some(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decoded, encoded};
    use crate::Operation;
    use crate::recorded::SpanKind;
    use crate::spans::ids::{SpanId, TraceId};
    use crate::spans::model::{Link, Messaging, Recorder, Span, Spans};
    use dyelog_diagnostic::names::{Name, Names};

    /// Spans of few identifiers and names, so that they meet.
    fn spans(rows: &[(u8, u8, u8, i64, u32, u16)], names: &mut Names) -> Spans {
        let mut all = Spans { files: vec!["a".into(), "b".into()], ..Spans::default() };
        for (number, &(trace, id, parent, start, length, bits)) in rows.iter().enumerate() {
            let has = |bit: u32| bits >> bit & 1 == 1;
            let mut span = Span {
                file: u32::from(has(0)),
                trace: TraceId(u128::from(trace % 3) << 70 | 1),
                id: SpanId(u64::from(id % 5)),
                parent: SpanId(u64::from(parent % 7)),
                start,
                end: start.saturating_add(length.into()),
                name: names.intern(if has(1) { "GET /" } else { "" }),
                kind: if has(2) { SpanKind::Client } else { SpanKind::Server },
                messaging: if has(3) { Messaging::Receive } else { Messaging::None },
                follows: has(4),
                endless: has(5),
                failed: has(6),
                cpu: if has(7) { f64::from(length) * 0.1 } else { f64::NAN },
                weight: if has(8) { [3.5, Operation::unweighed(Some(2.0))][usize::from(has(0))] } else { f64::NAN },
                first_link: all.links.len() as u32,
                links: u32::from(has(9)),
                ..Span::default()
            };
            if has(9) {
                all.links.push(Link { trace: TraceId(u128::from(number as u64)), span: span.id });
            }
            let service = names.intern(if has(10) { "shop" } else { "cart" });
            let host = names.intern(if has(11) { "h" } else { "" });
            let (environment, namespace) = (Name::NONE, Name::NONE);
            let cores = u32::from(has(12));
            Recorder { service, instance: host, host, machine: host, environment, namespace, cores }.sign(&mut span);
            all.spans.push(span);
        }
        std::sync::Arc::make_mut(&mut all.odd_spans).insert(SpanId(3), "three".into());
        all
    }

    fn row() -> impl Strategy<Value = (u8, u8, u8, i64, u32, u16)> {
        let start = prop_oneof![any::<i64>(), 0..1000_i64];
        (any::<u8>(), any::<u8>(), any::<u8>(), start, any::<u32>(), any::<u16>())
    }

    proptest! {
        /// Whatever the spans and their order: what is read is what was written, in tables of other numbers.
        #[test]
        fn spans_come_back(rows in prop::collection::vec(row(), 0..40), turn in 0..40_usize) {
            let mut names = Names::new();
            let all = spans(&rows, &mut names);
            let bytes = encoded(&all, &names).1;
            let mut others = Names::new();
            others.intern("another");
            let back = decoded(&bytes, &mut others).expect("it was written so");
            prop_assert_eq!(encoded(&back, &others).1, bytes.clone());
            let mut turned = rows.clone();
            turned.rotate_left(turn % rows.len().max(1));
            turned.extend(rows.first());
            // Links have the number of their row, so that these differ.
            if rows.iter().all(|row| row.5 >> 9 & 1 == 0) {
                let mut names = Names::new();
                names.intern("first");
                let turned = spans(&turned, &mut names);
                prop_assert_eq!(encoded(&turned, &names).1, bytes);
            }
        }

        #[test]
        fn bytes_of_any_kind_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), rows in prop::collection::vec(row(), 1..6), at in 0..400_usize) {
            let _ = decoded(&bytes, &mut Names::new());
            let mut names = Names::new();
            let good = encoded(&spans(&rows, &mut names), &names).1;
            prop_assert!(decoded(&good[..at % good.len()], &mut Names::new()).is_none());
            let at = at % good.len();
            bytes.truncate(3);
            let changed = [&good[..at], &bytes, &good[at..]].concat();
            let _ = decoded(&changed, &mut Names::new());
        }
    }
}
