//! What is known better later: calls to one entry are calls to another, and invocations that were made up are none.
//!
//! Counts stay those of something that can be: no more invocations of any sort than invocations, and of requests as many as there were.

use std::cmp::Ordering;

use super::sums::Share;
use super::{EntryIndex, EntryKey, EntryTotal, Interaction, Position, RequestKind, Seconds};
use crate::stays::Stays;
use crate::timing::CallLabel;

impl EntryTotal {
    /// Takes so many of the calls to one entry, which may be all of them, as calls to another. `keys` are those of all entries.
    pub fn redirect(&mut self, from: EntryIndex, to: EntryIndex, part: u64, keys: &[EntryKey]) {
        let whole = self.requests_to(from);
        if from == to || part == 0 || whole == 0 {
            return;
        }
        self.redirect_requests(from, to, Share::new(part, whole));
        self.redirect_calls(from, to, Share::new(part, whole), keys);
    }

    fn redirect_requests(&mut self, from: EntryIndex, to: EntryIndex, mut share: Share) {
        // Whatever the order in which they were merged, the same ones are led elsewhere.
        self.work.sort_unstable_keys();
        for work in self.work.values_mut() {
            for kind in [RequestKind::Synchronous, RequestKind::Asynchronous, RequestKind::Forward] {
                let Some(own) = work.requests.shift_remove(&(kind, from)) else { continue };
                let (moved, left) = own.parted(share.of(own.count));
                if moved.count > 0 {
                    work.requests.entry((kind, to)).or_default().merge(&moved);
                }
                if left.count > 0 {
                    work.requests.insert((kind, from), left);
                }
            }
        }
    }

    fn redirect_calls(&mut self, from: EntryIndex, to: EntryIndex, mut share: Share, keys: &[EntryKey]) {
        // Where an invocation calls both, the calls that come to the other entry count on after those that it has.
        let mut after: Vec<(CallLabel, u32)> = Vec::new();
        for (one, other) in self.pairs.keys().flat_map(|(one, other)| [(one, other), (other, one)]) {
            let is_beside = one.to == Some(from)
                && other.to == Some(to)
                && (one.phase, one.kind) == (other.phase, other.kind)
                && one.ordinal > 0;
            if is_beside {
                after.push((*one, other.ordinal));
            }
        }
        let renamed = |label: &CallLabel| {
            let beside = after.iter().filter(|(own, _)| (own.phase, own.kind) == (label.phase, label.kind));
            let before = beside.map(|(_, ordinal)| *ordinal).max().unwrap_or(0);
            match label.to {
                Some(own) if own == from && label.ordinal > 0 => {
                    CallLabel { to: Some(to), ordinal: label.ordinal.saturating_add(before), ..*label }
                }
                Some(own) if own == from => CallLabel { to: Some(to), ..*label },
                _ => *label,
            }
        };
        let mut labels: Vec<CallLabel> = self.calls.keys().filter(|label| label.to == Some(from)).copied().collect();
        labels.sort_unstable();
        for label in &labels {
            let Some(own) = self.calls.shift_remove(label) else { continue };
            let (moved, left) = own.parted(share.of(own.requests.count));
            if moved.requests.count > 0 {
                let call = self.calls.entry(renamed(label)).or_default();
                call.merge(&moved);
                // An invocation that made calls to both is one.
                call.invocations = call.invocations.min(self.invocations);
                call.duration.count = call.duration.count.min(self.invocations);
            }
            if left.requests.count > 0 {
                self.calls.insert(*label, left);
            }
        }
        // The order of two calls is a part of counts: a call that is two calls now gives its counts to both.
        let key = |label: &CallLabel| place(label, keys);
        let touched: Vec<(CallLabel, CallLabel)> =
            self.pairs.keys().filter(|(one, other)| [one.to, other.to].contains(&Some(from))).copied().collect();
        for pair in touched {
            let Some(total) = self.pairs.get(&pair).copied() else { continue };
            let (one, other) = (renamed(&pair.0), renamed(&pair.1));
            let is_there = |label: &CallLabel| self.calls.contains_key(label);
            let stays = is_there(&pair.0) && is_there(&pair.1);
            // Calls that have one label now have no order among themselves.
            if one != other && is_there(&one) && is_there(&other) {
                let (now, total) =
                    if key(&one) < key(&other) { ((one, other), total) } else { ((other, one), total.turned()) };
                self.pairs.entry(now).or_default().merge(&total);
            }
            if !stays {
                self.pairs.shift_remove(&pair);
            }
        }
    }

    /// Brings each two calls in the order of the keys of those that they go to. Calls that have one label have no order among themselves.
    pub(super) fn order_pairs(&mut self, keys: &[EntryKey]) {
        for ((one, other), total) in std::mem::take(&mut self.pairs) {
            let (pair, total) = match place(&one, keys).cmp(&place(&other, keys)) {
                Ordering::Less => ((one, other), total),
                Ordering::Equal => continue,
                Ordering::Greater => ((other, one), total.turned()),
            };
            self.pairs.entry(pair).or_default().merge(&total);
        }
    }

    /// Takes in what was recorded as invocations of another entry and is pieces of this one's: what they asked, this one asked, and the time for
    /// which they waited it did not work.
    pub fn put_together(&mut self, piece: &Self) {
        let whole = self.work.entry(Position { phase: 1, ..Position::default() }).or_default();
        let waits = |label: &CallLabel| label.kind == RequestKind::Synchronous;
        let waited =
            piece.calls.iter().filter(|(label, _)| waits(label)).map(|(_, call)| call.duration.sum.0).sum::<i128>();
        let worked = piece.work.values().map(|work| work.exclusive.sum.0).sum::<i128>();
        let before = whole.exclusive.sum.0;
        let after = (before - waited + worked.min(waited)).clamp(0, before.max(0));
        // The rest is spread as all of it was.
        let part = if before > 0 { after as f64 / before as f64 } else { 0.0 };
        whole.exclusive.sum = Seconds(after);
        whole.exclusive.squares = (whole.exclusive.squares as f64 * part * part) as i128;
        for work in piece.work.values() {
            whole.network.merge(&work.network);
            for (request, seen) in &work.requests {
                whole.requests.entry(*request).or_default().merge(seen);
            }
        }
        for (label, own) in &piece.calls {
            let call = self.calls.entry(*label).or_default();
            call.merge(own);
            // An invocation that came in several pieces is one.
            call.invocations = call.invocations.min(self.invocations);
            call.duration.count = call.duration.count.min(self.invocations);
        }
    }

    /// Takes so many invocations out that were made up: those whose span was lost first, then others of which nothing was recorded either.
    pub fn leave_out(&mut self, count: u64) {
        let count = count.min(self.invocations);
        let lost = count.min(self.inferred);
        self.leave_out_lost(lost);
        if count > lost {
            self.leave_out_evenly(count - lost);
        }
    }

    /// Takes invocations out whose span was lost. They have no work, and what they asked others is asked by those that were recorded after all.
    fn leave_out_lost(&mut self, count: u64) {
        let (before, left) = (self.invocations, self.invocations - count);
        for work in self.work.values_mut() {
            // Work that was measured was visited.
            work.visits = Share::new(left, before).of(work.visits).max(work.exclusive.count.min(work.visits));
        }
        self.inferred_requests = Share::new(self.inferred - count, self.inferred).of(self.inferred_requests);
        self.inferred -= count;
        self.invocations = left;
        // Of a message only the client was seen: when its work was done is not known, neither.
        if self.interaction == Interaction::Asynchronous {
            self.undated = self.undated.saturating_sub(count);
        }
        self.undated = self.undated.min(left);
        self.silent = self.silent.min(left);
        self.may_wait = self.may_wait.min(left);
        self.forget_responses(left, before);
    }

    /// Takes invocations out that nothing tells from the others: of all that is known as much is left as of invocations.
    fn leave_out_evenly(&mut self, count: u64) {
        let (before, left) = (self.invocations, self.invocations - count);
        let share = |count: u64| Share::new(left, before).of(count);
        for own in [
            &mut self.moved_waits,
            &mut self.untimed_delays,
            &mut self.outvoted,
            &mut self.inferred,
            &mut self.inferred_requests,
            &mut self.undated,
            &mut self.silent,
            &mut self.may_wait,
            &mut self.failures,
            &mut self.given_up,
            &mut self.retries,
        ] {
            *own = share(*own);
        }
        self.invocations = left;
        for work in self.work.values_mut() {
            work.visits = share(work.visits);
            for activity in work.activities.values_mut() {
                activity.count = share(activity.count);
                activity.cpu = activity.cpu.extended(share(activity.cpu.count));
            }
            for own in [&mut work.exclusive, &mut work.network, &mut work.pauses] {
                *own = own.extended(share(own.count));
            }
            for request in work.requests.values_mut() {
                *request = request.scaled(left, before);
            }
            work.requests.retain(|_, request| request.count > 0);
            work.delay = Seconds((work.delay.0 as f64 * left as f64 / before.max(1) as f64) as i128);
        }
        for block in self.blocks.values_mut() {
            block.times = share(block.times);
            block.response = block.response.extended(share(block.response.count));
            for branch in &mut block.branches {
                branch.awaited = share(branch.awaited);
            }
        }
        for call in self.calls.values_mut() {
            call.scale(left, before);
        }
        self.way = self.way.extended(share(self.way.count));
        self.forget_responses(left, before);
        // Of a part of all stays, drawn one by one, nobody could tell how many others were there.
        (self.stays, self.visits) = (Stays::default(), Stays::default());
        if left == 0 {
            self.work.clear();
            self.blocks.clear();
            self.calls.clear();
            self.pairs.clear();
            self.witnesses.clear();
        }
    }

    /// Leaves so many of each so many response times.
    fn forget_responses(&mut self, left: u64, before: u64) {
        self.response = self.response.extended(Share::new(left, before).of(self.response.count));
        self.responses.thin(left, before);
    }
}

/// The place of a call in the order of calls.
fn place(label: &CallLabel, keys: &[EntryKey]) -> (u8, RequestKind, Option<EntryKey>, u32) {
    (label.phase, label.kind, label.to.map(|to| keys[to.index()]), label.ordinal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submodel::{RequestTotal, SubModel};
    use crate::timing::{CallTotal, PairTotal};

    /// A caller, the peer and the entry that it calls.
    fn three() -> (SubModel, [EntryIndex; 3]) {
        let mut sub = SubModel::new();
        let entries = [(1, "shop"), (2, "peer"), (3, "stock")].map(|(key, task)| {
            let task = sub.names.intern(task);
            sub.ensure_entry(EntryKey(key), task, 1, Interaction::Rendezvous, task)
        });
        (sub, entries)
    }

    fn read_back(sub: &SubModel) -> SubModel {
        crate::saved::parse(&"test".into(), &crate::saved::write(sub, "name")).expect("it can be read").0
    }

    /// Where it is written, entries have an order of their own.
    fn entry_of(sub: &SubModel, key: u128) -> &EntryTotal {
        sub.entry(sub.entry_of(EntryKey(key)).expect("it is there"))
    }

    #[test]
    fn what_is_left_out_leaves_nothing_more_than_once() {
        let (mut sub, [_, peer, _]) = three();
        let own = sub.entry_mut(peer);
        (own.invocations, own.silent, own.undated, own.inferred) = (10, 8, 9, 2);
        let work = own.work.entry(Position { phase: 1, ..Position::default() }).or_default();
        work.visits = 10;
        for seconds in [1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0] {
            work.exclusive.add(seconds);
            own.response.add(seconds);
            own.responses.add(seconds);
        }
        own.leave_out(6);
        let work = &own.work[0];
        assert_eq!((own.invocations, own.inferred, own.silent, own.undated), (4, 0, 4, 4));
        assert_eq!((work.visits, work.exclusive.count), (4, 4));
        assert!((work.exclusive.sum.as_f64() - 9.0).abs() < 1e-9, "{work:?}");
        assert_eq!(entry_of(&read_back(&sub), 2).responses.len(), 3);
        let own = sub.entry_mut(peer);
        own.leave_out(9);
        assert_eq!((own.invocations, own.work.len(), own.response.count), (0, 0, 0));
        read_back(&sub);
    }

    #[test]
    fn calls_are_led_elsewhere_one_by_one() {
        let (mut sub, [caller, peer, stock]) = three();
        let keys: Vec<EntryKey> = sub.entries().iter().map(|entry| entry.key).collect();
        let own = sub.entry_mut(caller);
        own.invocations = 3;
        let label = |to, ordinal| CallLabel { phase: 1, kind: RequestKind::Synchronous, to: Some(to), ordinal };
        for stage in 0..3 {
            let work = own.work.entry(Position { phase: 1, stage, branch: None }).or_default();
            for to in [peer, stock] {
                work.requests.insert((RequestKind::Synchronous, to), RequestTotal { count: 1, squares: 1 });
            }
        }
        let call =
            CallTotal { invocations: 3, requests: RequestTotal { count: 3, squares: 3 }, ..CallTotal::default() };
        own.calls.extend([(label(peer, 1), call), (label(stock, 1), call)]);
        own.pairs.insert((label(peer, 1), label(stock, 1)), PairTotal { both: 3, before: 3, ..PairTotal::default() });
        let asked = |sub: &SubModel, to| -> u64 {
            let own =
                sub.entry(caller).work.values().filter_map(|work| work.requests.get(&(RequestKind::Synchronous, to)));
            own.map(|request| request.count).sum()
        };
        sub.entry_mut(caller).redirect(peer, stock, 2, &keys);
        assert_eq!((asked(&sub, peer), asked(&sub, stock)), (1, 5));
        read_back(&sub);
        sub.entry_mut(caller).redirect(peer, stock, 1, &keys);
        assert_eq!((asked(&sub, peer), asked(&sub, stock)), (0, 6));
        let own = read_back(&sub);
        // An invocation calls the entry twice, where it called both.
        let counts: Vec<_> =
            entry_of(&own, 1).calls.iter().map(|(label, call)| (label.ordinal, call.requests.count)).collect();
        assert_eq!(counts, [(1, 3), (2, 3)]);
        assert_eq!(entry_of(&own, 1).pairs.len(), 1);
    }

    #[test]
    fn entries_that_come_to_have_one_key_become_one() {
        let (mut sub, [caller, peer, stock]) = three();
        let label = |to, ordinal| CallLabel { phase: 1, kind: RequestKind::Synchronous, to: Some(to), ordinal };
        for (to, invocations) in [(peer, 2), (stock, 3)] {
            sub.entry_mut(to).invocations = invocations;
            let own = sub.entry_mut(caller);
            own.invocations += invocations;
            let work = own.work.entry(Position { phase: 1, ..Position::default() }).or_default();
            let requests = RequestTotal { count: invocations, squares: invocations };
            work.requests.insert((RequestKind::Synchronous, to), requests);
            own.calls.insert(label(to, 1), CallTotal { invocations, requests, ..CallTotal::default() });
        }
        let pair = PairTotal { both: 3, before: 2, after: 1, ..PairTotal::default() };
        sub.entry_mut(caller).pairs.insert((label(peer, 1), label(stock, 1)), pair);
        let mut turned = sub.clone();
        turned.rekey(|entry| if entry.key == EntryKey(2) { EntryKey(9) } else { entry.key });
        let own = entry_of(&turned, 1).pairs.iter().next().expect("it is there");
        assert_eq!((own.0.0.to, own.1.before, own.1.after), (Some(stock), 1, 2));
        read_back(&turned);
        sub.rekey(|entry| if entry.key == EntryKey(2) { EntryKey(3) } else { entry.key });
        let own = read_back(&sub);
        assert_eq!((own.entries().len(), entry_of(&own, 3).invocations), (2, 5));
        let own = entry_of(&own, 1);
        assert_eq!((own.calls.len(), own.calls[0].requests.count, own.pairs.len()), (1, 5, 0));
    }
}
