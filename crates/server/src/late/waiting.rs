//! Sides of calls and pieces of visits that wait for what else belongs to them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dyelog::trace::protobuf::{Fields, Value};

use super::{Spans, field_of};
use crate::spans::{Role, SpanBytes, put_field, sound};

/// How many bytes of calls that wait are remembered. Beyond it fewer traces are looked at, which tell the same.
const MOST_BYTES: usize = 4 << 20;
/// The same of visits whose calls may come later. Most of them made none.
const MOST_VISITS: usize = 1 << 20;
/// Traces of more spans are not looked at.
const MOST_SPANS: usize = 4096;
/// Spans of more bytes are not remembered.
const LONGEST: usize = 4096;
/// At most so many spans tell of a caller, from the call up to the span that serves.
const DEEPEST: usize = 16;
/// The field of a span that names its parent.
const PARENT: u8 = 4;
/// What remembering a call costs beside its spans.
const OVERHEAD: usize = 96;

/// What belongs together and came one after the other.
#[derive(Clone, Debug)]
pub enum Linked {
    /// A call.
    Call {
        /// The spans of who asks: the call, and what lies around it up to what serves.
        caller: Spans,
        /// The span that answers.
        answer: Spans,
    },
    /// A span that asks, and the visit that it is of.
    Piece {
        /// The spans around it, up to what serves.
        visit: Spans,
        /// The span.
        piece: Spans,
    },
}

/// One side of a call.
#[derive(Debug)]
enum Side {
    /// A span that asks, to which no answer came yet.
    Asks(u64, Spans),
    /// A span that answers one which did not come yet.
    Answers(u64, Spans),
    /// A span that asks from within one which did not come yet.
    Within(u64, Spans),
    /// A span that serves, and from within which none asked yet.
    Serves(u64, Spans),
}

impl Side {
    fn bytes(&self) -> usize {
        let (Self::Asks(_, spans) | Self::Answers(_, spans) | Self::Within(_, spans) | Self::Serves(_, spans)) = self;
        OVERHEAD + spans.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}

/// Sides of some traces, within a number of bytes.
#[derive(Debug)]
struct Sides {
    most: usize,
    traces: HashMap<u128, Vec<Side>>,
    bytes: usize,
    /// Of so many powers of two of traces one is looked at.
    level: u32,
}

/// Sides of calls that wait for the other one.
#[derive(Debug)]
pub struct Waiting {
    /// Those that lack something.
    open: Sides,
    /// Visits that may be whole.
    visits: Sides,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { open: Sides::within(MOST_BYTES), visits: Sides::within(MOST_VISITS) }
    }
}

/// Identifiers of spans, in order.
pub struct Identifiers(Vec<u64>);

impl Identifiers {
    /// These.
    pub fn of(ids: impl Iterator<Item = u64>) -> Self {
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Whether it is one of them.
    pub fn has(&self, id: u64) -> bool {
        self.0.binary_search(&id).is_ok()
    }
}

/// The spans of a part of a trace, by identifier.
struct Part<'p>(HashMap<u64, (&'p Arc<[u8]>, SpanBytes<'p>)>);

impl<'p> Part<'p> {
    fn of(parts: &'p [(Arc<[u8]>, Vec<u8>)]) -> Self {
        let mut spans = HashMap::new();
        for (resource, bytes) in parts {
            let mut fields = Fields::of(bytes);
            while let Ok(Some((_, Value::Bytes(span)))) = fields.next() {
                if let Some(span) = sound(span).filter(|_| span.len() <= LONGEST) {
                    spans.insert(span.id, (resource, span));
                }
            }
        }
        Self(spans)
    }

    fn one(&self, id: u64) -> Option<(Arc<[u8]>, Vec<u8>)> {
        let (resource, span) = self.0.get(&id)?;
        let mut bytes = Vec::with_capacity(span.bytes.len() + 6);
        put_field(&mut bytes, 2, span.bytes);
        Some((Arc::clone(resource), bytes))
    }

    /// A span that asks, and what lies around it.
    fn caller(&self, id: u64) -> Spans {
        let (mut spans, mut next) = (Vec::new(), id);
        while let Some(one) = self.one(next).filter(|_| spans.len() < DEEPEST) {
            spans.push(one);
            let own = &self.0[&next].1;
            if own.role() == Role::Serves {
                break;
            }
            next = own.parent;
        }
        // What lies further out makes no difference, and is not missing.
        if let Some((_, last)) = spans.last_mut() {
            *last = field_of(last).map(rooted).unwrap_or_default();
        }
        spans
    }
}

/// A span as one without a parent, in a field of its own. Of a field that comes twice the last one counts.
pub(super) fn rooted(span: &[u8]) -> Vec<u8> {
    let mut own = span.to_vec();
    put_field(&mut own, PARENT, b"");
    let mut field = Vec::with_capacity(own.len() + 6);
    put_field(&mut field, 2, &own);
    field
}

/// The rest of a trace by itself: what lacks its parent here has none. It is not lost, and nothing is to be inferred in its place.
pub fn apart(ids: &[(u64, u64)], parts: &mut [(Arc<[u8]>, Vec<u8>)]) {
    let here = Identifiers::of(ids.iter().map(|(id, _)| *id));
    for (_, bytes) in parts {
        let (mut own, mut fields) = (Vec::with_capacity(bytes.len()), Fields::of(bytes));
        while let Ok(Some((_, Value::Bytes(span)))) = fields.next() {
            if sound(span).is_some_and(|span| span.parent != 0 && !here.has(span.parent)) {
                own.extend(rooted(span));
            } else {
                put_field(&mut own, 2, span);
            }
        }
        *bytes = own;
    }
}

impl Sides {
    fn within(most: usize) -> Self {
        Self { most, traces: HashMap::new(), bytes: 0, level: 0 }
    }

    fn looks_at(&self, trace: u128) -> bool {
        // Samplers look at the last bits.
        let mixed = ((trace >> 64) as u64 ^ trace as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.level == 0 || mixed >> (64 - self.level) == 0
    }

    fn remember(&mut self, trace: u128, sides: Vec<Side>) {
        if sides.is_empty() {
            return;
        }
        self.bytes += sides.iter().map(Side::bytes).sum::<usize>();
        self.traces.insert(trace, sides);
        while self.bytes > self.most {
            self.level += 1;
            let gone: Vec<u128> = self.traces.keys().copied().filter(|trace| !self.looks_at(*trace)).collect();
            for trace in gone {
                self.take_out(trace);
            }
        }
    }

    /// What waits of a trace, which is forgotten.
    fn take_out(&mut self, trace: u128) -> Vec<Side> {
        let sides = if self.traces.is_empty() { None } else { self.traces.remove(&trace) }.unwrap_or_default();
        self.bytes -= sides.iter().map(Side::bytes).sum::<usize>();
        if self.bytes < self.most / 4 {
            self.level = self.level.saturating_sub(1);
        }
        sides
    }
}

impl Waiting {
    /// Takes in a part of a trace; gives what belongs together and is all there with it.
    pub fn meet(
        &mut self,
        trace: u128,
        ids: &[(u64, u64)],
        roles: &[Role],
        parts: &[(Arc<[u8]>, Vec<u8>)],
    ) -> Vec<Linked> {
        // What waits is of traces that are looked at.
        let [is_open, is_visit] = [&self.open, &self.visits].map(|sides| sides.looks_at(trace));
        if ids.len() > MOST_SPANS || !is_open && !is_visit {
            return Vec::new();
        }
        // Every trace comes here, most of them whole: what is sorted is looked up sooner than what is hashed, and no span is read again before
        // there is a need to.
        let spans = || ids.iter().copied().zip(roles.iter().copied());
        let of = |role: Role| spans().filter(move |(_, own)| *own == role).map(|(span, _)| span);
        let mut before = if is_open { self.open.take_out(trace) } else { Vec::new() };
        let mut idle: Vec<u64> = Vec::new();
        if is_visit {
            before.extend(self.visits.take_out(trace));
            let asked_from = Identifiers::of(of(Role::Asks).map(|(_, parent)| parent));
            idle.extend(of(Role::Serves).map(|(id, _)| id).filter(|id| !asked_from.has(*id)));
        }
        if !is_open && before.is_empty() && idle.is_empty() {
            return Vec::new();
        }
        let (here, parents) =
            (Identifiers::of(ids.iter().map(|(id, _)| *id)), Identifiers::of(ids.iter().map(|(_, parent)| *parent)));
        let orphans: Vec<((u64, u64), Role)> =
            spans().filter(|((_, parent), _)| *parent != 0 && !here.has(*parent)).collect();
        let unanswered: Vec<u64> = of(Role::Asks).map(|(id, _)| id).filter(|id| !parents.has(*id)).collect();
        if orphans.is_empty() && unanswered.is_empty() && before.is_empty() && idle.is_empty() {
            return Vec::new();
        }
        let part = Part::of(parts);
        let serves = |id: &u64| part.0.get(id).is_some_and(|(_, span)| span.role() == Role::Serves);
        let (mut linked, mut met, mut left) = (Vec::new(), HashSet::new(), Vec::new());
        let (mut visits, mut placed) = (Vec::new(), HashSet::new());
        for side in before {
            match side {
                Side::Asks(id, caller) if parents.has(id) => {
                    for ((own, _), _) in orphans.iter().filter(|((own, parent), _)| *parent == id && serves(own)) {
                        met.insert(*own);
                        let answer = part.one(*own).into_iter().collect();
                        linked.push(Linked::Call { caller: caller.clone(), answer });
                    }
                }
                Side::Answers(parent, answer) if here.has(parent) => {
                    met.insert(parent);
                    linked.push(Linked::Call { caller: part.caller(parent), answer });
                }
                Side::Within(parent, piece) if here.has(parent) => {
                    let visit = part.caller(parent);
                    if are_of_one(&visit, &piece) {
                        linked.push(Linked::Piece { visit, piece });
                    }
                }
                Side::Serves(id, visit) => {
                    for ((own, _), _) in
                        orphans.iter().filter(|((_, parent), role)| *parent == id && *role == Role::Asks)
                    {
                        placed.insert(*own);
                        let piece: Spans = part.one(*own).into_iter().collect();
                        if are_of_one(&visit, &piece) {
                            linked.push(Linked::Piece { visit: visit.clone(), piece });
                        }
                    }
                    visits.push(Side::Serves(id, visit));
                }
                side => left.push(side),
            }
        }
        for ((id, parent), role) in &orphans {
            if serves(id) && !met.contains(id) {
                left.extend(part.one(*id).map(|span| Side::Answers(*parent, vec![span])));
            } else if *role == Role::Asks && !placed.contains(id) {
                left.extend(part.one(*id).map(|span| Side::Within(*parent, vec![span])));
            }
        }
        // A piece that has its visit may lack its answer all the same.
        left.extend(unanswered.iter().filter(|id| !met.contains(id)).map(|id| Side::Asks(*id, part.caller(*id))));
        visits.extend(idle.into_iter().filter(serves).map(|id| Side::Serves(id, part.caller(id))));
        if is_open {
            self.open.remember(trace, left);
        }
        if is_visit {
            self.visits.remember(trace, visits);
        }
        linked
    }

    /// Forgets a trace.
    pub fn forget(&mut self, trace: u128) {
        for sides in [&mut self.open, &mut self.visits] {
            if sides.looks_at(trace) {
                sides.take_out(trace);
            }
        }
    }
}

/// Whether one service recorded both.
fn are_of_one(visit: &Spans, piece: &Spans) -> bool {
    visit.iter().chain(piece).all(|(resource, _)| visit.first().is_some_and(|(first, _)| first == resource))
}
