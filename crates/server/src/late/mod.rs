//! Traces that come in parts, each part after the one before was folded.
//!
//! A call is then in two sub-models: the caller asks somebody unknown in one, and in the other nobody asks the entry that answers. What was
//! folded stays so, since a sub-model is a sum. But spans of a few such calls are remembered until their other side comes; folded together, and
//! without it, they tell which unknown peer is which entry. That is kept, and with it the calls of a period find the entries that answered them.
//! As many as were recorded there, and no more: what was lost for good stays a call to somebody unknown.
//!
//! A span that asks may also come apart from the visit that it is a piece of. It was folded as a visit of its own then, and is found to be none in the same way.

mod waiting;

use std::collections::{BTreeMap, BTreeSet};
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
use crate::spans::{put_spans, sound};
use waiting::rooted;
pub use waiting::{Identifiers, Linked, Waiting, apart};

/// How many calls of one kind are folded at a time.
const ENOUGH: usize = 4;

/// Spans by resource: a field of the message that holds spans, each.
type Spans = Vec<(Arc<[u8]>, Vec<u8>)>;

/// That calls of an entry to a peer which recorded nothing are calls to another entry. Where peer and callee are one, that it is no entry: what was
/// folded as its invocations are pieces of those of the caller.
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

    /// Whether it is a piece.
    fn is_piece(&self) -> bool {
        self.answer.peer == self.answer.callee
    }
}

/// How often each was seen.
pub type Answers = BTreeMap<Answer, u64>;

/// What a batch tells of calls that were answered late, and of visits that came in pieces.
pub fn answers(folding: &Folding, batch: &Batch) -> Answers {
    // By resources and names.
    let mut kinds: BTreeMap<(bool, Spans), Vec<[&Spans; 2]>> = BTreeMap::new();
    for own in &batch.linked {
        let name = |(resource, field): &(Arc<[u8]>, Vec<u8>)| {
            let span = field_of(field).and_then(sound);
            (Arc::clone(resource), span.map(|span| span.name.to_vec()).unwrap_or_default())
        };
        let (is_piece, sides) = match own {
            Linked::Call { caller, answer } => (false, [caller, answer]),
            Linked::Piece { visit, piece } => (true, [visit, piece]),
        };
        let kind = sides.into_iter().flatten().map(name).collect();
        kinds.entry((is_piece, kind)).or_default().push(sides);
    }
    let mut answers = Answers::new();
    for ((is_piece, _), all) in kinds {
        let seen = all.len() as u64;
        let few = &all[..all.len().min(ENOUGH)];
        let both = folded(folding, few.iter().flat_map(|[first, second]| first.iter().chain(*second)));
        let alone: Spans = match is_piece {
            // What was folded without its visit was the first of what there was.
            true => {
                few.iter().flat_map(|[_, piece]| *piece).map(|(own, span)| (Arc::clone(own), alone(span))).collect()
            }
            false => few.iter().flat_map(|[caller, _]| (*caller).clone()).collect(),
        };
        let Some((without, with)) = folded(folding, alone.iter()).zip(both) else { continue };
        let found = match is_piece {
            true => piece(&without, &with).into_iter().map(|(visit, piece)| (visit, piece, piece)).collect(),
            false => differences(&without, &with),
        };
        for (caller, peer, callee) in found {
            *answers.entry(Answer { caller, peer, callee }).or_default() += seen;
        }
    }
    answers
}

/// What spans come to.
fn folded<'s>(folding: &Folding, spans: impl Iterator<Item = &'s (Arc<[u8]>, Vec<u8>)>) -> Option<SubModel> {
    // A caller may have made several of the calls.
    let spans: BTreeSet<&(Arc<[u8]>, Vec<u8>)> = spans.collect();
    let mut request = Vec::new();
    for (resource, span) in spans {
        put_spans(&mut request, resource, span);
    }
    folding.fold(request).map(|own| own.submodel)
}

/// A span without its parent.
fn alone(span: &[u8]) -> Vec<u8> {
    field_of(span).map(rooted).unwrap_or_default()
}

/// The visit that asks in the second what a visit that is a piece of it asks in the first, where it is one.
fn piece(without: &SubModel, with: &SubModel) -> Option<(EntryKey, EntryKey)> {
    let asking = |sub: &SubModel| -> Vec<EntryKey> {
        asked(sub).into_iter().filter(|(_, others)| !others.is_empty()).map(|(own, _)| own).collect()
    };
    match (&asking(with)[..], &asking(without)[..]) {
        ([visit], [piece]) if visit != piece => Some((*visit, *piece)),
        _ => None,
    }
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
    let calls: Vec<&Known> = known.iter().filter(|own| !own.is_piece()).collect();
    for calls in calls.chunk_by(|one, other| one.asks() == other.asks()) {
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
    let pieces = put_together(sub, &known);
    // Where spans came after all, nothing is to be inferred in their place.
    let claims = asked_by(sub, &stand_ins(sub), false);
    for Known { callee, .. } in known.iter().filter(|own| !own.is_piece()) {
        let own = sub.entry_mut(*callee);
        let came = own.inferred.min(own.invocations.saturating_sub(claims[callee.index()])).min(recorded(own));
        own.leave_out(came);
    }
    let stands_in = stand_ins(sub);
    let claims = asked_by(sub, &stands_in, false);
    let is_answer = |entry: EntryIndex| known.iter().any(|own| own.callee == entry);
    let mut joined: BTreeSet<EntryKey> = pieces;
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

/// Puts what was folded as visits of their own to the visits that they are pieces of; gives entries of which nothing is left. What whole operations ask is no piece.
fn put_together(sub: &mut SubModel, known: &[Known]) -> BTreeSet<EntryKey> {
    let mut pieces: BTreeMap<EntryKey, Vec<&Known>> = BTreeMap::new();
    for own in known.iter().filter(|own| own.is_piece() && own.caller != own.callee) {
        pieces.entry(own.answer.callee).or_default().push(own);
    }
    let mut gone = BTreeSet::new();
    for (key, visits) in pieces {
        let at = visits[0].callee;
        let claimed = asked_by(sub, &stand_ins(sub), false)[at.index()];
        let mut open = sub.entry(at).invocations.saturating_sub(claimed);
        let mut seen: u64 = visits.iter().map(|own| own.seen).sum();
        for Known { caller, seen: own, .. } in visits {
            let share = u64::try_from(u128::from(open) * u128::from(*own) / u128::from(seen.max(1))).unwrap_or(0);
            (open, seen) = (open - share, seen - own);
            let mut piece = sub.entry(at).clone();
            piece.leave_out(piece.invocations - share);
            sub.entry_mut(at).leave_out(share);
            sub.entry_mut(*caller).put_together(&piece);
        }
        if sub.entry(at).invocations == 0 {
            gone.insert(key);
        }
    }
    gone
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
