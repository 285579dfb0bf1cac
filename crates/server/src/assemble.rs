//! Spans gathered to traces, in bounded memory.
//!
//! A trace is complete when its root and the parents of all its spans are here and nothing came for a while (the grace). It is given
//! out then, or a while (the limit) after its last span came: an operation that takes long calls others on its way, and its own span is the last.
//! At the latest it is given out ten times as long after its first span came. It belongs to the interval in which its root starts, by
//! the clock of the program that recorded it. Spans that come after their trace was given out go to its interval, as far as the server
//! remembers it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use dyelog::trace::protobuf::{Fields, Value};
use dyelog::trace::spans::Grouping;

use crate::fixed::Table;
use crate::late::{self, Identifiers, Linked, Waiting};
use crate::offenders::{Offenders, renamed};
use crate::spans::{Role, SpanBytes, put_field, put_spans, trace_of};
use crate::store::LEVELS;

/// Nanoseconds.
pub type Nanos = u64;

/// How traces are gathered.
#[derive(Clone, Debug)]
pub struct Gathering {
    /// How long nothing must have come of a trace that is complete.
    pub grace: Nanos,
    /// After what time without a new span a trace is given out that does not become complete.
    pub limit: Nanos,
    /// How many bytes of open traces are kept; beyond it the oldest are given out.
    pub most_bytes: usize,
}

/// How many times the limit a trace is waited for whose spans keep coming.
const LONGEST: u64 = 10;

/// What a span costs beside its bytes.
const OVERHEAD: usize = 50;
/// What stands before a span where it is kept, at most.
const FIELD: usize = 6;
/// Spans of a resource that take less have no room to spare: of many small traces that would be as much again. Larger ones grow by doubling.
const SMALL: usize = 4 << 10;
/// What a trace costs beside its spans.
const TRACE_OVERHEAD: usize = 320;
/// Among how many resources of a trace one is looked for. What is not found comes to lie in a part of its own, which does no harm.
const LOOKED_AT: usize = 32;
/// How many resources a trace has as a rule: there is no room for more before they come.
const FEW: usize = 4;
/// How many traces that were given out are remembered, and the power of two of places for them.
const REMEMBERED: usize = 1 << 18;
const PLACES: u32 = 19;
/// How many calls of a batch are looked at that were answered late, or came apart from their visit: they tell who asks whom, not how often.
const MOST_LINKED: usize = 256;

/// A trace of which spans may still come.
#[derive(Debug)]
struct Open {
    first_seen: Nanos,
    last_seen: Nanos,
    /// Where in the journal its first record is, and the number of that record's first span.
    journalled: Place,
    /// The start of the earliest root, or of the earliest span where there is no root.
    start: (bool, u64),
    /// The interval of the trace that this one is a late part of.
    late: Option<u64>,
    /// Of each span its identifier and its parent's.
    ids: Vec<(u64, u64)>,
    /// Which side of a call each span is.
    roles: Vec<Role>,
    /// The number of each span.
    numbers: Vec<u64>,
    /// By resource: spans, as fields of the message that holds them.
    parts: Vec<(Arc<[u8]>, Vec<u8>)>,
    bytes: usize,
    /// Whether nothing will look at it before its limit, unless more comes.
    parked: bool,
}

impl Open {
    /// When it is given out though it is not complete.
    fn latest(&self, limit: Nanos) -> Nanos {
        let longest = limit.saturating_mul(LONGEST);
        self.last_seen.saturating_add(limit).min(self.first_seen.saturating_add(longest))
    }

    /// Whether root and all parents are here.
    fn is_complete(&self) -> bool {
        if self.late.is_some() {
            return true;
        }
        if !self.start.0 {
            return false;
        }
        let here = Identifiers::of(self.ids.iter().map(|(id, _)| *id));
        self.ids.iter().all(|(_, parent)| *parent == 0 || here.has(*parent))
    }
}

/// A record of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its position.
    pub position: u64,
    /// The number of its first span.
    pub number: u64,
}

/// Where what was given out belongs: the begin of its interval, and whether it is the rest of traces that were given out before. Their roots are not in it.
pub type Belongs = (u64, bool);

/// Traces of one interval that were given out.
#[derive(Debug, Default)]
pub struct Batch {
    parts: BTreeMap<Arc<[u8]>, Vec<u8>>,
    /// How many traces, or parts of such.
    pub traces: u64,
    /// What belongs together and was given out one after the other.
    pub linked: Vec<Linked>,
    /// How many operations among them began in what was given out before, and ended after it.
    pub halved: u64,
    /// How many spans.
    pub spans: u64,
    /// How many bytes they take.
    pub bytes: usize,
}

impl Batch {
    /// The spans as one request of OTLP.
    pub fn request(&self) -> Vec<u8> {
        let mut request = Vec::with_capacity(self.bytes + 64 * self.parts.len());
        for (resource, spans) in &self.parts {
            put_spans(&mut request, resource, spans);
        }
        request
    }

    /// The spans of some traces, each trace as a request of OTLP; without those that take more than so many bytes.
    pub fn of_traces(&self, wanted: &BTreeSet<u128>, most: usize) -> BTreeMap<u128, Vec<u8>> {
        let mut found: BTreeMap<u128, Vec<u8>> = BTreeMap::new();
        for (resource, spans) in &self.parts {
            let mut own: BTreeMap<u128, Vec<u8>> = BTreeMap::new();
            let mut fields = Fields::of(spans);
            while let Ok(Some((_, Value::Bytes(span)))) = fields.next() {
                if let Some(trace) = trace_of(span).filter(|trace| wanted.contains(trace)) {
                    put_field(own.entry(trace).or_default(), 2, span);
                }
            }
            for (trace, spans) in own {
                put_spans(found.entry(trace).or_default(), resource, &spans);
            }
        }
        found.retain(|_, request| request.len() <= most);
        found
    }

    fn take_in(&mut self, open: Open) {
        self.traces += 1;
        self.spans += open.ids.len() as u64;
        self.bytes += open.bytes;
        for (resource, spans) in open.parts {
            self.parts.entry(resource).or_default().extend(spans);
        }
    }
}

/// Gathers spans.
#[derive(Debug)]
pub struct Assembler {
    gathering: Gathering,
    /// Each in a place of its own: a table of them all would take three times as much while it grows.
    open: HashMap<u128, Box<Open>>,
    /// When to look at which trace.
    due: BinaryHeap<Reverse<(Nanos, u128)>>,
    /// By when their first span came.
    oldest: BTreeSet<(Nanos, u128)>,
    resources: HashSet<Arc<[u8]>>,
    grouping: Grouping,
    offenders: Offenders,
    bytes: usize,
    spans: u64,
    /// Intervals of traces that were given out, and the order in which they are forgotten.
    given: Table<u128, u64>,
    order: VecDeque<u128>,
    /// What of these waits for its other side.
    waiting: Waiting,
    /// Traces that were given out.
    ready: BTreeMap<Belongs, Batch>,
    ready_spans: u64,
    ready_bytes: usize,
    /// Traces that were given out before they were complete.
    pub incomplete: u64,
}

impl Assembler {
    /// Without spans.
    pub fn new(gathering: Gathering, grouping: Grouping) -> Self {
        Self {
            gathering,
            grouping,
            offenders: Offenders::default(),
            open: HashMap::new(),
            due: BinaryHeap::new(),
            oldest: BTreeSet::new(),
            resources: HashSet::new(),
            bytes: 0,
            spans: 0,
            given: Table::of(PLACES),
            order: VecDeque::with_capacity(REMEMBERED + 1),
            waiting: Waiting::default(),
            ready: BTreeMap::new(),
            ready_spans: 0,
            ready_bytes: 0,
            incomplete: 0,
        }
    }

    /// How many spans are here, those of batches that are ready among them.
    pub fn spans(&self) -> u64 {
        self.spans + self.ready_spans
    }

    /// Services with too many names of operations: of how many spans, and the last such name.
    pub fn offending(&self) -> &BTreeMap<String, (u64, String)> {
        self.offenders.offending()
    }

    /// Spans of services beyond [`SERVICES`](crate::offenders::SERVICES): how many, and the name of the last service.
    pub fn other_services(&self) -> Option<&(u64, String)> {
        self.offenders.others()
    }

    /// How many traces are open.
    pub fn traces(&self) -> usize {
        self.open.len()
    }

    /// How many bytes open traces and ready batches take.
    pub fn bytes(&self) -> usize {
        self.bytes + self.ready_bytes
    }

    /// How many bytes are ready.
    pub fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// Takes in a span: its resource, its number, the record of the journal that it came in, and when that was received. Gives whether it did: spans of services beyond [`SERVICES`](crate::offenders::SERVICES) are not
    /// taken in.
    pub fn take(&mut self, span: &SpanBytes<'_>, resource: &[u8], number: u64, place: Place, now: Nanos) -> bool {
        let resource = self.resource(resource);
        if !self.offenders.tells_apart(&resource) {
            return false;
        }
        let others = (!self.offenders.admits(&resource, span.name, &self.grouping)).then(|| renamed(span.bytes));
        let bytes = others.as_deref().unwrap_or(span.bytes);
        let late = self.given.get(span.trace);
        let grace = self.gathering.grace;
        let (due, oldest) = (&mut self.due, &mut self.oldest);
        let mut added = OVERHEAD;
        let open = self.open.entry(span.trace).or_insert_with(|| {
            due.push(Reverse((now.saturating_add(grace), span.trace)));
            oldest.insert((now, span.trace));
            added += TRACE_OVERHEAD;
            Box::new(Open {
                first_seen: now,
                last_seen: now,
                journalled: place,
                start: (false, u64::MAX),
                late,
                ids: Vec::new(),
                roles: Vec::new(),
                numbers: Vec::new(),
                parts: Vec::new(),
                bytes: 0,
                parked: false,
            })
        });
        open.last_seen = now;
        if std::mem::take(&mut open.parked) {
            due.push(Reverse((now.saturating_add(grace), span.trace)));
        }
        open.ids.push((span.id, span.parent));
        open.roles.push(span.role());
        open.numbers.push(number);
        let root = span.parent == 0;
        if root && !open.start.0 {
            open.start = (true, span.start);
        } else if root == open.start.0 {
            open.start.1 = open.start.1.min(span.start);
        }
        let known = open.parts.iter().rev().take(LOOKED_AT).position(|(own, _)| Arc::ptr_eq(own, &resource));
        if known.is_none() {
            // Most traces have few resources, and there are very many traces.
            if open.parts.len() < FEW {
                open.parts.reserve_exact(1);
            }
            open.parts.push((resource, Vec::new()));
        }
        let part = open.parts.len() - 1 - known.unwrap_or(0);
        let spans = &mut open.parts[part].1;
        let before = spans.capacity();
        if before < SMALL {
            spans.reserve_exact(bytes.len() + FIELD);
        }
        put_field(spans, 2, bytes);
        added += spans.capacity() - before;
        open.bytes += added;
        self.bytes += added;
        self.spans += 1;
        true
    }

    /// Gives out what is complete, too old or too much at a time, until so many bytes are ready; whether there may be more.
    pub fn advance(&mut self, now: Nanos, enough: usize) -> bool {
        while let Some(Reverse((at, trace))) = self.due.peek().copied() {
            if at > now {
                break;
            }
            if self.ready_bytes >= enough {
                return true;
            }
            self.due.pop();
            let Some(open) = self.open.get_mut(&trace) else { continue };
            let quiet = open.last_seen.saturating_add(self.gathering.grace);
            let latest = open.latest(self.gathering.limit);
            if now >= latest || now >= quiet && open.is_complete() {
                self.give_out(trace);
            } else {
                open.parked = now >= quiet;
                self.due.push(Reverse((if open.parked { latest } else { quiet.min(latest) }, trace)));
            }
        }
        self.give_out_beyond(self.gathering.most_bytes, enough)
    }

    /// Gives out the oldest until open traces take no more bytes than that, or so many are ready; whether there are more.
    pub fn give_out_beyond(&mut self, most: usize, enough: usize) -> bool {
        while self.bytes > most {
            let Some(&(_, trace)) = self.oldest.first() else { break };
            if self.ready_bytes >= enough {
                return true;
            }
            self.give_out(trace);
        }
        false
    }

    /// Takes the batches that are ready.
    pub fn take_ready(&mut self) -> BTreeMap<Belongs, Batch> {
        (self.ready_spans, self.ready_bytes) = (0, 0);
        std::mem::take(&mut self.ready)
    }

    /// The numbers of the spans of open traces, in order, and the first record that one of them came in.
    pub fn still_open(&self) -> (Vec<u64>, Option<Place>) {
        let mut numbers: Vec<u64> = self.open.values().flat_map(|open| &open.numbers).copied().collect();
        numbers.sort_unstable();
        (numbers, self.open.values().map(|open| open.journalled).min())
    }

    /// Forgets resources of which nothing is here any more.
    pub fn tidy(&mut self) {
        self.resources.retain(|resource| Arc::strong_count(resource) > 1);
    }

    fn resource(&mut self, bytes: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.resources.get(bytes) {
            return Arc::clone(known);
        }
        let new: Arc<[u8]> = bytes.into();
        self.resources.insert(Arc::clone(&new));
        new
    }

    fn give_out(&mut self, trace: u128) {
        let Some(mut open) = self.open.remove(&trace) else { return };
        self.oldest.remove(&(open.first_seen, trace));
        self.incomplete += u64::from(!open.is_complete());
        let start = open.late.unwrap_or(open.start.1 - open.start.1 % LEVELS[0].length);
        if self.given.insert(trace, start).is_none() {
            self.order.push_back(trace);
            if self.order.len() > REMEMBERED {
                let forgotten = self.order.pop_front().expect("there are many");
                self.given.remove(forgotten);
                self.waiting.forget(forgotten);
            }
        }
        let linked = self.waiting.meet(trace, &open.ids, &open.roles, &open.parts);
        let count = open.ids.len() as u64;
        self.spans -= count;
        self.bytes -= open.bytes;
        self.ready_spans += count;
        self.ready_bytes += open.bytes;
        let is_rest = open.late.is_some() && !open.start.0;
        if is_rest {
            late::apart(&open.ids, &mut open.parts);
        }
        let batch = self.ready.entry((start, is_rest)).or_default();
        batch.halved += u64::from(open.late.is_some() && open.start.0);
        batch.linked.extend(linked.into_iter().take(MOST_LINKED.saturating_sub(batch.linked.len())));
        batch.take_in(*open);
    }
}

#[cfg(test)]
mod tests {
    use dyelog::trace::spans::Grouping;

    use super::{Assembler, Gathering, OVERHEAD, Place, SMALL, TRACE_OVERHEAD};
    use crate::spans::SpanBytes;

    #[test]
    fn the_memory_that_traces_take_is_counted_and_small_ones_have_none_to_spare() {
        let gathering = Gathering { grace: 1, limit: 2, most_bytes: usize::MAX };
        let mut assembler = Assembler::new(gathering, Grouping::default());
        let (bytes, place) = ([0; 200], Place { position: 0, number: 0 });
        for number in 0..1000_u64 {
            // One trace of 500 spans, and 250 of two.
            let trace = if number < 500 { 0 } else { number / 2 };
            let span = SpanBytes {
                trace: u128::from(trace),
                id: number + 1,
                parent: 0,
                kind: 0,
                start: 0,
                end: 0,
                name: b"browse",
                fingerprint: number,
                bytes: &bytes,
            };
            assembler.take(&span, b"", number, place, 0);
        }
        let rooms = || assembler.open.values().flat_map(|open| &open.parts).map(|(_, spans)| spans.capacity());
        let taken = rooms().sum::<usize>() + 1000 * OVERHEAD + 251 * TRACE_OVERHEAD;
        assert_eq!(assembler.bytes(), taken);
        let small: usize = rooms().filter(|room| *room < SMALL).sum();
        assert!(small <= 500 * (200 + super::FIELD), "{small}");
    }
}
