//! Traces that come in parts, each part after the one before was folded.
//!
//! A call is then in two sub-models: the caller asks somebody unknown in one, and in the other nobody asks the entry that answers. What was
//! folded stays so, since a sub-model is a sum. But spans of a few such calls are remembered until their other side comes; folded together, and
//! without it, they tell which unknown peer is which entry. That is kept, and with it the calls of a period find the entries that answered them.
//! As many as were recorded there, and no more: what was lost for good stays a call to somebody unknown.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use dyelog::diagnostic::names::Name;
use dyelog::diagnostic::quantity::percent;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::{
    EntryIndex, EntryKey, EntryTotal, Interaction, Moments, RequestKind, ScenarioTotal, Seconds, SubModel,
};
use dyelog::model::codes;
use dyelog::trace::protobuf::{Fields, Value};

use crate::assemble::Batch;
use crate::fold::Folding;
use crate::spans::{SERVING, SpanBytes, put_field, put_spans, sound};

/// How many bytes of calls that wait are remembered. Beyond it fewer traces are looked at, which tell the same.
const MOST_BYTES: usize = 4 << 20;
/// Traces of more spans are not looked at.
const MOST_SPANS: usize = 4096;
/// Spans of more bytes are not remembered.
const LONGEST: usize = 4096;
/// At most so many spans tell of a caller, from the call up to the span that serves.
const DEEPEST: usize = 16;
/// How many calls of one kind are folded at a time.
const ENOUGH: usize = 4;
/// The field of a span that names its parent.
const PARENT: u8 = 4;
/// What remembering a call costs beside its spans.
const OVERHEAD: usize = 96;

/// Spans by resource: a field of the message that holds spans, each.
type Spans = Vec<(Arc<[u8]>, Vec<u8>)>;

/// A call whose two sides came one after the other.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The spans of who asks: the call, and what lies around it up to what serves.
    caller: Spans,
    /// The span that answers.
    answer: Spans,
}

/// One side of a call.
#[derive(Debug)]
enum Side {
    /// A span that asks, to which no answer came yet.
    Asks(u64, Spans),
    /// A span that answers one which did not come yet.
    Answers(u64, Spans),
}

impl Side {
    fn bytes(&self) -> usize {
        let (Self::Asks(_, spans) | Self::Answers(_, spans)) = self;
        OVERHEAD + spans.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }
}

/// Sides of calls that wait for the other one.
#[derive(Debug, Default)]
pub struct Waiting {
    traces: HashMap<u128, Vec<Side>>,
    bytes: usize,
    /// Of so many powers of two of traces one is looked at.
    level: u32,
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
            if SERVING.contains(&own.kind) {
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
fn rooted(span: &[u8]) -> Vec<u8> {
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

impl Waiting {
    fn looks_at(&self, trace: u128) -> bool {
        // Samplers look at the last bits.
        let mixed = ((trace >> 64) as u64 ^ trace as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.level == 0 || mixed >> (64 - self.level) == 0
    }

    /// Takes in a part of a trace; gives the calls that have both sides with it.
    pub fn meet(
        &mut self,
        trace: u128,
        ids: &[(u64, u64)],
        asks: &[bool],
        parts: &[(Arc<[u8]>, Vec<u8>)],
    ) -> Vec<Answered> {
        if ids.len() > MOST_SPANS || !self.looks_at(trace) {
            return Vec::new();
        }
        // Every trace comes here, most of them whole: what is sorted is looked up sooner than what is hashed.
        let (here, parents) =
            (Identifiers::of(ids.iter().map(|(id, _)| *id)), Identifiers::of(ids.iter().map(|(_, parent)| *parent)));
        let orphans: Vec<(u64, u64)> =
            ids.iter().copied().filter(|(_, parent)| *parent != 0 && !here.has(*parent)).collect();
        let unanswered: Vec<u64> = ids
            .iter()
            .zip(asks)
            .filter(|((id, _), asks)| **asks && !parents.has(*id))
            .map(|((id, _), _)| *id)
            .collect();
        let before = self.take_out(trace);
        if orphans.is_empty() && unanswered.is_empty() && before.is_empty() {
            return Vec::new();
        }
        let part = Part::of(parts);
        let serves = |id: &u64| part.0.get(id).is_some_and(|(_, span)| SERVING.contains(&span.kind));
        let (mut answered, mut met, mut left) = (Vec::new(), HashSet::new(), Vec::new());
        for side in before {
            match side {
                Side::Asks(id, caller) if parents.has(id) => {
                    for (own, _) in orphans.iter().filter(|(own, parent)| *parent == id && serves(own)) {
                        met.insert(*own);
                        let answer = part.one(*own).into_iter().collect();
                        answered.push(Answered { caller: caller.clone(), answer });
                    }
                }
                Side::Answers(parent, answer) if here.has(parent) => {
                    met.insert(parent);
                    answered.push(Answered { caller: part.caller(parent), answer });
                }
                side => left.push(side),
            }
        }
        let answers = orphans.iter().filter(|(id, _)| !met.contains(id) && serves(id));
        left.extend(answers.filter_map(|(id, parent)| Some(Side::Answers(*parent, vec![part.one(*id)?]))));
        left.extend(unanswered.iter().filter(|id| !met.contains(id)).map(|id| Side::Asks(*id, part.caller(*id))));
        self.remember(trace, left);
        answered
    }

    fn remember(&mut self, trace: u128, sides: Vec<Side>) {
        if sides.is_empty() {
            return;
        }
        self.bytes += sides.iter().map(Side::bytes).sum::<usize>();
        self.traces.insert(trace, sides);
        while self.bytes > MOST_BYTES {
            self.level += 1;
            let gone: Vec<u128> = self.traces.keys().copied().filter(|trace| !self.looks_at(*trace)).collect();
            for trace in gone {
                self.forget(trace);
            }
        }
    }

    /// Forgets a trace.
    pub fn forget(&mut self, trace: u128) {
        self.take_out(trace);
    }

    /// What waits of a trace, which is forgotten.
    fn take_out(&mut self, trace: u128) -> Vec<Side> {
        let sides = self.traces.remove(&trace).unwrap_or_default();
        self.bytes -= sides.iter().map(Side::bytes).sum::<usize>();
        if self.bytes < MOST_BYTES / 4 {
            self.level = self.level.saturating_sub(1);
        }
        sides
    }
}

/// That calls of an entry to a peer which recorded nothing are calls to another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// Who asks.
    pub caller: EntryKey,
    /// Who seems to be asked.
    pub peer: EntryKey,
    /// Who answers.
    pub callee: EntryKey,
}

/// The same in a sub-model.
struct Known {
    answer: Answer,
    caller: EntryIndex,
    callee: EntryIndex,
    seen: u64,
}

impl Known {
    /// Who asks, and who seems to be asked.
    fn asks(&self) -> (EntryKey, EntryKey) {
        (self.answer.caller, self.answer.peer)
    }
}

/// How often each was seen.
pub type Answers = BTreeMap<Answer, u64>;

/// What calls of a batch tell that were answered late.
pub fn answers(folding: &Folding, batch: &Batch) -> Answers {
    // By resources and names.
    let mut kinds: BTreeMap<Spans, Vec<&Answered>> = BTreeMap::new();
    for own in &batch.answered {
        let name = |(resource, field): &(Arc<[u8]>, Vec<u8>)| {
            let span = field_of(field).and_then(sound);
            (Arc::clone(resource), span.map(|span| span.name.to_vec()).unwrap_or_default())
        };
        let kind = own.caller.iter().chain(&own.answer).map(name).collect();
        kinds.entry(kind).or_default().push(own);
    }
    let mut answers = Answers::new();
    for calls in kinds.into_values() {
        let seen = calls.len() as u64;
        let few = &calls[..calls.len().min(ENOUGH)];
        let request = |with_answers: bool| {
            let callers = few.iter().flat_map(|own| &own.caller);
            let answers = few.iter().flat_map(|own| &own.answer).filter(|_| with_answers);
            // A caller may have made several of the calls.
            let spans: BTreeSet<&(Arc<[u8]>, Vec<u8>)> = callers.chain(answers).collect();
            let mut request = Vec::new();
            for (resource, span) in spans {
                put_spans(&mut request, resource, span);
            }
            folding.fold(request)
        };
        let Some((without, with)) = request(false).zip(request(true)) else { continue };
        for (caller, peer, callee) in differences(&without.submodel, &with.submodel) {
            *answers.entry(Answer { caller, peer, callee }).or_default() += seen;
        }
    }
    answers
}

fn field_of(bytes: &[u8]) -> Option<&[u8]> {
    match Fields::of(bytes).next() {
        Ok(Some((_, Value::Bytes(span)))) => Some(span),
        _ => None,
    }
}

/// By entry, how often it asks which others.
fn asked(sub: &SubModel) -> BTreeMap<EntryKey, BTreeMap<EntryKey, u64>> {
    let services = sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    services
        .map(|entry| {
            let own = counted_requests(entry).into_iter();
            (entry.key, own.map(|(to, count)| (sub.entry(to).key, count)).collect())
        })
        .collect()
}

/// Who asks whom less in the first, and whom more in the second.
fn differences(first: &SubModel, second: &SubModel) -> Vec<(EntryKey, EntryKey, EntryKey)> {
    let (before, after) = (asked(first), asked(second));
    let mut found = Vec::new();
    for (caller, before) in before {
        let Some(after) = after.get(&caller) else { continue };
        let count = |of: &BTreeMap<EntryKey, u64>, to| of.get(to).copied().unwrap_or(0);
        let less = before.keys().find(|to| count(after, to) < count(&before, to));
        let more = after.keys().filter(|to| count(after, to) > count(&before, to));
        if let Some(less) = less {
            found.extend(more.map(|callee| (caller, *less, *callee)));
        }
    }
    found
}

/// Takes the load out of the rest of traces: their operations were counted with the part that had the root. What they tell of work stays.
pub fn without_load(sub: &mut SubModel) {
    sub.scenarios.clear();
    sub.remove_entries(|entry| entry.interaction == Interaction::Customer);
}

/// Whether nothing of operations has their beginning.
fn all_fragments(total: &ScenarioTotal) -> bool {
    total.operations > 0 && total.fragments >= total.operations
}

/// Whether an entry is the customer of such operations.
fn begins_fragments(sub: &SubModel, entry: &EntryTotal) -> bool {
    entry.interaction == Interaction::Customer && {
        let scenario = [entry.service, entry.task].into_iter().find_map(|name| sub.scenarios.get(&name));
        scenario.is_some_and(all_fragments)
    }
}

/// How many invocations of an entry have a span.
fn recorded(entry: &EntryTotal) -> u64 {
    entry.invocations.saturating_sub(entry.inferred)
}

/// What stands in for the beginnings of operations that were lost: their customers, and what was made up between these and the spans that are there.
fn stand_ins(sub: &SubModel) -> Vec<bool> {
    let mut stands_in: Vec<bool> = sub.entries().iter().map(|entry| begins_fragments(sub, entry)).collect();
    let others = asked_by(sub, &stands_in, false);
    for (at, entry) in sub.entries().iter().enumerate() {
        let is_service = entry.interaction != Interaction::Customer;
        // Spans have names.
        let is_made_up = recorded(entry) == 0 || !entry.service.is_some();
        stands_in[at] |= is_service && entry.invocations > 0 && is_made_up && others[at] == 0;
    }
    // An entry that whole operations ask stands in for nothing.
    let by_stand_ins = asked_by(sub, &stands_in, true);
    for (at, entry) in sub.entries().iter().enumerate() {
        stands_in[at] &= entry.interaction == Interaction::Customer || by_stand_ins[at] > 0;
    }
    stands_in
}

/// How often each entry is asked by those that are marked so.
fn asked_by(sub: &SubModel, marks: &[bool], mark: bool) -> Vec<u64> {
    let mut asked = vec![0_u64; sub.entries().len()];
    for (entry, _) in sub.entries().iter().zip(marks).filter(|(_, own)| **own == mark) {
        for (to, count) in entry.requested() {
            asked[to.index()] = asked[to.index()].saturating_add(count);
        }
    }
    asked
}

/// How often an entry asks each other one.
fn counted_requests(entry: &EntryTotal) -> BTreeMap<EntryIndex, u64> {
    let mut asked: BTreeMap<EntryIndex, u64> = BTreeMap::new();
    for (to, count) in entry.requested() {
        *asked.entry(to).or_default() += count;
    }
    asked
}

/// Tasks of which there are spans.
fn recording(sub: &SubModel) -> BTreeSet<Name> {
    let has_spans = |entry: &&EntryTotal| {
        entry.interaction != Interaction::Customer && entry.service.is_some() && recorded(entry) > entry.silent
    };
    sub.entries().iter().filter(has_spans).map(|entry| entry.task).collect()
}

/// Leads calls to peers that recorded nothing to the entries that answered them, as many as were recorded there and nobody else asked for. Operations
/// whose beginning came later than they did are none then.
pub fn join(sub: &mut SubModel, answers: &Answers) {
    // Answers are in order, those of one caller and peer next to each other. Of the peer all may have been inferred to be somebody else.
    let known = answers.iter().filter_map(|(own, seen)| {
        let [caller, callee] = [own.caller, own.callee].map(|key| sub.entry_of(key));
        Some(Known { answer: *own, caller: caller?, callee: callee?, seen: *seen })
    });
    let known: Vec<Known> = known.collect();
    if known.is_empty() {
        return;
    }
    let keys: Vec<EntryKey> = sub.entries().iter().map(|entry| entry.key).collect();
    let mut claims = asked_by(sub, &stand_ins(sub), false);
    let records = recording(sub);
    let rooms = sub.entries().iter().zip(&claims);
    let mut room: Vec<u64> = rooms.map(|(entry, claimed)| recorded(entry).saturating_sub(*claimed)).collect();
    let mut peers: BTreeSet<EntryKey> = known.iter().map(|own| own.answer.peer).collect();
    for calls in known.chunk_by(|one, other| one.asks() == other.asks()) {
        let caller = calls[0].caller;
        let peer = sub.entry_of(calls[0].answer.peer);
        let is_callee = |entry: EntryIndex| calls.iter().any(|own| own.callee == entry);
        // Where other calls like them were answered in time, the peer was taken to be one that answered these: as likely as not another one.
        let is_taken_for = |entry: EntryIndex| {
            let own = sub.entry(entry);
            own.silent > 0 && own.silent == own.invocations && records.contains(&own.task)
        };
        let is_named_after =
            |entry: EntryIndex| calls.iter().any(|own| sub.entry(own.callee).task == sub.entry(entry).task);
        // What was inferred to be asked of an entry that did not record so much was asked of another one.
        let surplus = |entry: EntryIndex| {
            let own = sub.entry(entry);
            claims[entry.index()].saturating_sub(recorded(own)).min(own.inferred)
        };
        let mut asked: Vec<(EntryIndex, u64)> = counted_requests(sub.entry(caller)).into_iter().collect();
        asked.sort_by_key(|(to, _)| (!is_callee(*to), !is_named_after(*to), keys[to.index()]));
        let of_peer = asked.iter().copied().filter(|(to, _)| Some(*to) == peer);
        let others = || asked.iter().copied().filter(|(to, _)| Some(*to) != peer);
        let taken_for = others().filter(|(to, _)| !is_callee(*to) && is_taken_for(*to));
        let unrecorded: Vec<(EntryIndex, u64)> = of_peer.chain(taken_for).collect();
        peers.extend(unrecorded.iter().map(|(peer, _)| keys[peer.index()]));
        let inferred = others().filter(|own| !unrecorded.contains(own)).map(|(to, count)| (to, surplus(to).min(count)));
        let sources: Vec<(EntryIndex, u64)> =
            unrecorded.iter().copied().chain(inferred).filter(|(_, more)| *more > 0).collect();
        for (from, more) in sources {
            let mut seen: u64 = calls.iter().map(|own| own.seen).sum();
            let (mut wanted, mut open, mut given) = (more, more, vec![0_u64; calls.len()]);
            // First each gets its share by how often it answered. The rest goes to those that have answers left.
            for (at, Known { callee, seen: own, .. }) in calls.iter().enumerate() {
                let share = u64::try_from(u128::from(wanted) * u128::from(*own) / u128::from(seen.max(1))).unwrap_or(0);
                (wanted, seen) = (wanted - share, seen - own);
                given[at] = share.min(room[callee.index()]);
                room[callee.index()] -= given[at];
                open -= given[at];
            }
            for (at, Known { callee, .. }) in calls.iter().enumerate() {
                let more = open.min(room[callee.index()]);
                (given[at], room[callee.index()], open) = (given[at] + more, room[callee.index()] - more, open - more);
            }
            for (Known { callee, .. }, count) in calls.iter().zip(given).filter(|(_, count)| *count > 0) {
                redirect(sub, (caller, from, *callee), count, &keys);
                claims[from.index()] = claims[from.index()].saturating_sub(count);
                claims[callee.index()] = claims[callee.index()].saturating_add(count);
            }
        }
    }
    // Where spans came after all, nothing is to be inferred in their place.
    let claims = asked_by(sub, &stand_ins(sub), false);
    for Known { callee, .. } in &known {
        let own = sub.entry_mut(*callee);
        let came = own.inferred.min(own.invocations.saturating_sub(claims[callee.index()])).min(recorded(own));
        own.leave_out(came);
    }
    let stands_in = stand_ins(sub);
    let claims = asked_by(sub, &stands_in, false);
    let is_answer = |entry: EntryIndex| known.iter().any(|own| own.callee == entry);
    let mut joined: BTreeSet<EntryKey> = BTreeSet::new();
    for (own, _) in sub.entries().iter().zip(&stands_in).filter(|(own, _)| begins_fragments(sub, own)) {
        let (mut open, mut behind) = (vec![own], vec![own.key]);
        let mut all = true;
        while let Some(next) = open.pop() {
            for (to, _) in next.requested() {
                let entry = sub.entry(to);
                if stands_in[to.index()] {
                    if !behind.contains(&entry.key) {
                        behind.push(entry.key);
                        open.push(entry);
                    }
                } else {
                    all &= is_answer(to) && claims[to.index()] >= recorded(entry);
                }
            }
        }
        if all {
            joined.extend(behind);
        }
    }
    let gone = |entry: &EntryTotal| joined.contains(&entry.key);
    let customers = sub.entries().iter().filter(|entry| gone(entry) && entry.interaction == Interaction::Customer);
    let names: Vec<_> = customers.flat_map(|own| [own.service, own.task]).collect();
    sub.scenarios.retain(|name, total| !(names.contains(name) && all_fragments(total)));
    let asked = asked_by(sub, &vec![true; keys.len()], true);
    let unasked = peers.into_iter().filter(|peer| sub.entry_of(*peer).is_some_and(|peer| asked[peer.index()] == 0));
    joined.extend(unasked);
    sub.remove_entries(|entry| joined.contains(&entry.key));
}

/// Leads some of the calls of an entry to a peer to another entry. What they took longer than it worked, they were on their way.
fn redirect(
    sub: &mut SubModel,
    (caller, peer, callee): (EntryIndex, EntryIndex, EntryIndex),
    part: u64,
    keys: &[EntryKey],
) {
    let response = sub.entry(callee).response;
    let mean = if response.count > 0 { response.sum.0 / i128::from(response.count) } else { 0 };
    let entry = sub.entry_mut(caller);
    let before: Vec<_> =
        entry.calls.iter().filter(|(label, _)| label.to == Some(callee)).map(|(own, total)| (*own, *total)).collect();
    entry.redirect(peer, callee, part, keys);
    let mut on_the_way: BTreeMap<u8, (u64, i128)> = BTreeMap::new();
    for (label, call) in &mut entry.calls {
        if label.to != Some(callee) || label.kind != RequestKind::Synchronous || response.count == 0 {
            continue;
        }
        let known = before.iter().find(|(own, _)| own == label).map(|(_, total)| *total).unwrap_or_default();
        let count = call.requests.count - known.requests.count;
        let took = call.duration.sum.0 - known.duration.sum.0;
        let way = (took - mean * i128::from(count)).max(0);
        call.network = call.network.plus(Seconds(way));
        // Calls are counted one by one, or all of an entry together.
        let (calls, sum) = on_the_way.entry(label.phase).or_default();
        (*calls, *sum) = (*calls + count, *sum + way);
    }
    for (at, work) in &mut entry.work {
        if work.requests.contains_key(&(RequestKind::Synchronous, callee))
            && let Some((count, sum)) = on_the_way.remove(&at.phase).filter(|(count, _)| *count > 0)
        {
            let one = Moments::of(Seconds(sum / i128::from(count)));
            work.network.merge(&Moments { sum: Seconds(sum), ..one.extended(count) });
        }
    }
    sub.entry_mut(peer).leave_out(part);
}

/// Takes out what nobody calls: work of operations whose other parts never came. Says how much that is.
pub fn leave_out_unasked(sub: &mut SubModel) -> Option<Diagnostic> {
    let mut asked = vec![false; sub.entries().len()];
    let is_customer = |entry: &EntryTotal| entry.interaction == Interaction::Customer;
    let mut open: Vec<EntryIndex> =
        sub.entries().iter().filter(|own| is_customer(own)).filter_map(|own| sub.entry_of(own.key)).collect();
    while let Some(entry) = open.pop() {
        if !std::mem::replace(&mut asked[entry.index()], true) {
            open.extend(sub.entry(entry).requested().map(|(to, _)| to));
        }
    }
    let all: f64 = sub.entries().iter().filter(|own| !is_customer(own)).map(EntryTotal::own_time).sum();
    let lost: Vec<&EntryTotal> = sub
        .entries()
        .iter()
        .zip(&asked)
        .filter(|(own, asked)| !**asked && own.invocations > 0)
        .map(|(own, _)| own)
        .collect();
    if lost.is_empty() {
        return None;
    }
    let invocations: u64 = lost.iter().map(|own| own.invocations).sum();
    let part = lost.iter().map(|own| own.own_time()).sum::<f64>() / all.max(f64::MIN_POSITIVE);
    let message = format!(
        "{invocations} invocations came after the rest of their traces, and nothing tells who called them: they make no load, and {} of all work is not in the model",
        percent(part)
    );
    let mut finding = Diagnostic::warning(codes::FRAGMENTS, Place::Nowhere, message);
    for own in lost.iter().take(5) {
        let (task, service) = (sub.names.text(own.task), sub.names.text(own.service));
        finding = finding.with_note(format!("{} of `{service}` of `{task}`", own.invocations));
    }
    let lost: BTreeSet<EntryKey> = lost.iter().map(|own| own.key).collect();
    sub.remove_entries(|entry| lost.contains(&entry.key));
    Some(finding.with_hint("`--grace` of the server is how long it waits for the rest of a trace"))
}
