//! What came apart is put together in the sub-model of a period.

use std::collections::{BTreeMap, BTreeSet};

use dyelog::diagnostic::names::Name;
use dyelog::lqn::digest::Digest;
use dyelog::lqn::submodel::{
    EntryIndex, EntryKey, EntryTotal, Interaction, Moments, RequestKind, ScenarioTotal, Seconds, SubModel,
};

use super::{Answer, Answers, counted_requests};

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

/// Tasks of which there are spans.
fn recording(sub: &SubModel) -> BTreeSet<Name> {
    let has_spans = |entry: &&EntryTotal| {
        entry.interaction != Interaction::Customer && entry.service.is_some() && recorded(entry) > entry.silent
    };
    sub.entries().iter().filter(has_spans).map(|entry| entry.task).collect()
}

/// Who recorded nothing and seems to be asked in place of those that answered, and how often.
fn unrecorded(sub: &SubModel, calls: &[&Known], records: &BTreeSet<Name>) -> Vec<(EntryIndex, u64)> {
    let peer = sub.entry_of(calls[0].answer.peer);
    let is_callee = |entry: EntryIndex| calls.iter().any(|own| own.callee == entry);
    let is_named_after =
        |entry: EntryIndex| calls.iter().any(|own| sub.entry(own.callee).task == sub.entry(entry).task);
    // Where other calls like them were answered in time, the peer was taken to be one that answered these: as likely as not another one.
    let is_taken_for = |entry: EntryIndex| {
        let own = sub.entry(entry);
        // Of what is apart from a recorded one it is known whom it stands for.
        let stands_for_another = sub.entry_of(own.key.apart()).is_some();
        is_silent(own) && !stands_for_another && records.contains(&own.task) && !is_callee(entry)
    };
    let asked = counted_requests(sub.entry(calls[0].caller)).into_iter();
    let mut found: Vec<(EntryIndex, u64)> = asked.filter(|(to, _)| Some(*to) == peer || is_taken_for(*to)).collect();
    found.sort_by_key(|(to, _)| (Some(*to) != peer, !is_named_after(*to), sub.entry(*to).key));
    found
}

/// Who recorded less than was inferred to be asked of it, and may be asked in place of those that answered. What was led there already is not inferred.
fn inferred(
    sub: &SubModel,
    calls: &[&Known],
    led: &BTreeMap<EntryIndex, u64>,
    claims: &[u64],
) -> Vec<(EntryIndex, u64)> {
    let surplus = |entry: EntryIndex| {
        let own = sub.entry(entry);
        claims[entry.index()].saturating_sub(recorded(own)).min(own.inferred)
    };
    let is_callee = |entry: EntryIndex| calls.iter().any(|own| own.callee == entry);
    let asked = counted_requests(sub.entry(calls[0].caller)).into_iter();
    let open = asked.map(|(to, count)| (to, count.saturating_sub(led.get(&to).copied().unwrap_or(0)).min(surplus(to))));
    let mut found: Vec<(EntryIndex, u64)> = open.filter(|(_, count)| *count > 0).collect();
    found.sort_by_key(|(to, _)| (!is_callee(*to), sub.entry(*to).key));
    found
}

/// How often entries were asked, and how often that can have been.
struct Rooms {
    recorded: Vec<u64>,
    /// How often each is asked.
    claims: Vec<u64>,
    /// How many invocations of each nobody asked for, if what was inferred asked for none.
    most: Vec<u64>,
}

impl Rooms {
    fn of(sub: &SubModel) -> Self {
        let claims = asked_by(sub, &stand_ins(sub), false);
        let recorded: Vec<u64> = sub.entries().iter().map(recorded).collect();
        let claimed = sub.entries().iter().zip(&claims).map(|(own, claims)| claims.saturating_sub(own.inferred));
        let most = recorded.iter().zip(claimed).map(|(own, claimed)| own.saturating_sub(claimed)).collect();
        Self { recorded, claims, most }
    }

    /// Of how many invocations of an entry nobody asked for one.
    fn left(&self, entry: EntryIndex) -> u64 {
        self.recorded[entry.index()].saturating_sub(self.claims[entry.index()])
    }

    /// Gives so many calls to those that answered them. First each gets its share by how often it answered. The rest goes to those that have answers left.
    fn give(&mut self, calls: &[&Known], from: EntryIndex, count: u64, is_inferred: bool) -> Vec<(EntryIndex, u64)> {
        let mut seen: u64 = calls.iter().map(|own| own.seen).sum();
        let (mut wanted, mut open) = (count, count);
        let mut given: Vec<(EntryIndex, u64)> = calls.iter().map(|own| (own.callee, 0)).collect();
        for ((callee, given), own) in given.iter_mut().zip(calls) {
            let share = u64::try_from(u128::from(wanted) * u128::from(own.seen) / u128::from(seen.max(1))).unwrap_or(0);
            (wanted, seen) = (wanted - share, seen - own.seen);
            let room = if is_inferred { self.left(*callee) } else { self.most[callee.index()] };
            *given += self.take(from, *callee, share.min(room), &mut open);
        }
        for (callee, given) in &mut given {
            let room = self.left(*callee).min(open);
            *given += self.take(from, *callee, room, &mut open);
        }
        given.retain(|(_, count)| *count > 0);
        given
    }

    fn take(&mut self, from: EntryIndex, callee: EntryIndex, count: u64, open: &mut u64) -> u64 {
        *open -= count;
        self.claims[from.index()] = self.claims[from.index()].saturating_sub(count);
        self.claims[callee.index()] = self.claims[callee.index()].saturating_add(count);
        self.most[callee.index()] = self.most[callee.index()].saturating_sub(count);
        count
    }
}

/// Whether nothing of an entry was recorded by its service.
fn is_silent(entry: &EntryTotal) -> bool {
    entry.interaction != Interaction::Customer && entry.silent > 0 && entry.silent == entry.invocations
}

/// Whether an entry is kept apart from the same one that was recorded.
fn is_apart(sub: &SubModel, entry: &EntryTotal) -> bool {
    let [task, service] = [entry.task, entry.service].map(|name| Digest::of_name(sub.names.text(name)));
    is_silent(entry) && Digest::of_entry(task, entry.instance, entry.interaction, service).finish().apart() == entry.key
}

/// Puts what is still apart to the entries of the same name.
fn put_back(sub: &mut SubModel) {
    let apart: BTreeSet<EntryKey> =
        sub.entries().iter().filter(|entry| is_apart(sub, entry)).map(|entry| entry.key).collect();
    sub.rekey(|entry| if apart.contains(&entry.key) { entry.key.apart() } else { entry.key });
}

/// Leads calls to peers that recorded nothing to the entries that answered them. What came from nobody else is an entry of its service then.
pub fn join(sub: &mut SubModel, answers: &Answers) {
    lead(sub, answers);
    put_back(sub);
}

/// Leads calls to peers that recorded nothing to the entries that answered them, as many as were recorded there and nobody else asked for. Operations
/// whose beginning came later than they did are none then.
fn lead(sub: &mut SubModel, answers: &Answers) {
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
    let records = recording(sub);
    let mut rooms = Rooms::of(sub);
    let mut peers: BTreeSet<EntryKey> = known.iter().map(|own| own.answer.peer).collect();
    let calls: Vec<&Known> = known.iter().filter(|own| !own.is_piece()).collect();
    let mut led: Vec<(&[&Known], BTreeMap<EntryIndex, u64>)> = Vec::new();
    for calls in calls.chunk_by(|one, other| one.asks() == other.asks()) {
        let mut to: BTreeMap<EntryIndex, u64> = BTreeMap::new();
        for (from, count) in unrecorded(sub, calls, &records) {
            peers.insert(keys[from.index()]);
            for (callee, given) in rooms.give(calls, from, count, false) {
                redirect(sub, (calls[0].caller, from, callee), given, &keys);
                *to.entry(callee).or_default() += given;
            }
        }
        led.push((calls, to));
    }
    // What was inferred is known the least, and takes what all others leave. Whose calls were led the least is most likely to have been inferred to ask others.
    let part = |(calls, to): &(&[&Known], BTreeMap<EntryIndex, u64>)| {
        to.values().sum::<u64>() as f64 / calls.iter().map(|own| own.seen).sum::<u64>().max(1) as f64
    };
    led.sort_by(|one, other| part(one).total_cmp(&part(other)));
    for (calls, to) in led {
        for (from, count) in inferred(sub, calls, &to, &rooms.claims) {
            for (callee, given) in rooms.give(calls, from, count, true) {
                redirect(sub, (calls[0].caller, from, callee), given, &keys);
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
    let mut joined = pieces;
    joined.extend(joined_beginnings(sub, &known));
    let gone = |entry: &EntryTotal| joined.contains(&entry.key);
    let customers = sub.entries().iter().filter(|entry| gone(entry) && entry.interaction == Interaction::Customer);
    let names: Vec<_> = customers.flat_map(|own| [own.service, own.task]).collect();
    sub.scenarios.retain(|name, total| !(names.contains(name) && all_fragments(total)));
    let asked = asked_by(sub, &vec![true; keys.len()], true);
    let unasked = peers.into_iter().filter(|peer| sub.entry_of(*peer).is_some_and(|peer| asked[peer.index()] == 0));
    joined.extend(unasked);
    sub.remove_entries(|entry| joined.contains(&entry.key));
}

/// What stands in for beginnings that came after all: all that is behind them was asked by others.
fn joined_beginnings(sub: &SubModel, known: &[Known]) -> BTreeSet<EntryKey> {
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
    joined
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
