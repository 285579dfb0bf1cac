//! What stands before the columns of a packed sub-model: names, counts and sums, in the order of the JSON.
//!
//! A long period is read from hundreds of sub-models. Most of that time went into the JSON that stood here: into its texts of digits, and the shapes that it was read to.

use std::collections::BTreeMap;

use super::{In, Out, WITHOUT_LIMITS, WITHOUT_TIMES};
use crate::batches::Batches;
use crate::deployment::{MOST as MOST_REPLICAS, Replica, Seen};
use crate::kept_ids::{KeptIds, Numbers};
use crate::saved::read::{has_branch, stray_blocks};
use crate::saved::{MOST, MOST_SQUARES};
use crate::submodel::{
    BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, EntryTotal, Interaction, Moments, Position, RequestKind,
    RequestTotal, Sampled, ScenarioTotal, Seconds, SubModel, Undated, WorkTotal,
};
use crate::timing::{CallLabel, CallTotal, PairTotal};
use dyelog_diagnostic::names::Name;

/// Their places are written.
const INTERACTIONS: [Interaction; 4] =
    [Interaction::Customer, Interaction::Rendezvous, Interaction::Asynchronous, Interaction::Forwarding];
const KINDS: [RequestKind; 3] = [RequestKind::Synchronous, RequestKind::Asynchronous, RequestKind::Forward];

impl Out {
    /// All of a sub-model but the columns; `scenarios` and `order` are the order in which its scenarios and entries come.
    pub(super) fn head(&mut self, sub: &SubModel, scenarios: &[(Name, &ScenarioTotal)], order: &[EntryIndex]) {
        self.number(u64::from(sub.concurrent));
        self.number(sub.set_aside);
        self.observed(&sub.observed);
        let instances: BTreeMap<&str, (Name, u32)> =
            sub.instances.iter().map(|(task, count)| (sub.names.text(*task), (*task, *count))).collect();
        self.number(instances.len() as u64);
        for (task, count) in instances.into_values() {
            self.name(sub, task);
            self.number(u64::from(count));
        }
        self.deployment(sub);
        self.number(scenarios.len() as u64);
        for (name, total) in scenarios {
            self.name(sub, *name);
            self.scenario(total);
        }
        let mut numbers = vec![0_u32; order.len()];
        for (number, index) in order.iter().enumerate() {
            numbers[index.index()] = number as u32;
        }
        self.number(order.len() as u64);
        for index in order {
            self.entry(sub, sub.entry(*index), &numbers);
        }
    }

    fn observed(&mut self, times: &[(i64, i64)]) {
        self.number(times.len() as u64);
        let mut before = 0;
        for (from, to) in times {
            self.since(before, *from);
            self.since(*from, *to);
            before = *to;
        }
    }

    fn name(&mut self, sub: &SubModel, name: Name) {
        self.text(&sub.names.shared(name));
    }

    fn counts<const N: usize>(&mut self, counts: [u64; N]) {
        for count in counts {
            self.number(count);
        }
    }

    fn signed(&mut self, number: i128) {
        self.wide(((number << 1) ^ (number >> 127)).cast_unsigned());
    }

    /// Of no value nothing but that is kept.
    fn sums(&mut self, moments: &Moments) {
        if moments.count == 0 { self.number(0) } else { self.moments(moments) }
    }

    fn time(&mut self, time: Option<i64>) {
        self.number(u64::from(time.is_some()));
        if let Some(time) = time {
            self.since(0, time);
        }
    }

    fn deployment(&mut self, sub: &SubModel) {
        let text = |name| sub.names.text(name);
        let mut replicas: Vec<(&Replica, &Seen)> = sub.deployment.replicas().collect();
        replicas.sort_by_key(|(own, _)| [own.task, own.instance, own.machine].map(text));
        self.number(replicas.len() as u64);
        // Without instances nothing was left out of them.
        if replicas.is_empty() {
            return;
        }
        for (replica, seen) in replicas {
            for name in [replica.task, replica.instance, replica.machine] {
                self.name(sub, name);
            }
            self.since(0, seen.first);
            self.since(seen.first, seen.last);
            self.counts([seen.invocations, u64::from(seen.cores)]);
        }
        let cut = sub.deployment.cut();
        self.number(u64::from(cut.is_some()));
        self.number(cut.unwrap_or_default());
    }

    fn scenario(&mut self, total: &ScenarioTotal) {
        self.counts([total.operations, total.fragments, total.headless, total.pieces, total.unlinked, total.apart]);
        self.counts([total.mended, total.failures, total.chosen, total.truncated, total.clients, total.grain]);
        self.counts([total.unweighed, total.limit]);
        self.counts([
            total.sampled.operations,
            total.sampled.thousandths,
            total.sampled.squares,
            total.sampled.counted,
        ]);
        self.counts([total.undated.traces, total.undated.operations, total.undated.nanoseconds]);
        for ids in [&total.ids, &total.told_ids] {
            self.number(ids.count);
            for own in ids.numbers.iter().filter(|_| ids.count > 0) {
                self.number(u64::from(own.greatest));
                self.wide(own.sum);
            }
        }
        for time in [total.first_start, total.last_start, total.last_end] {
            self.time(time);
        }
        self.sums(&total.response);
        self.sums(&total.think);
    }

    fn entry(&mut self, sub: &SubModel, entry: &EntryTotal, numbers: &[u32]) {
        self.bytes.extend(entry.key.0.to_le_bytes());
        self.name(sub, entry.task);
        self.name(sub, entry.service);
        let interaction = INTERACTIONS.iter().position(|own| *own == entry.interaction).unwrap_or_default();
        self.counts([u64::from(entry.instance), interaction as u64]);
        self.counts([entry.invocations, entry.moved_waits, entry.untimed_delays, entry.inferred]);
        self.counts([entry.inferred_requests, entry.undated, entry.silent, entry.may_wait]);
        self.counts([entry.failures, entry.given_up, entry.retries]);
        self.sums(&entry.response);
        self.sums(&entry.way);
        let batches = &entry.batches;
        self.number(u64::from(*batches != Batches::default()));
        if *batches != Batches::default() {
            self.sums(&batches.time);
            self.counts([batches.messages, batches.squares, batches.most]);
            self.signed(batches.products.0);
        }
        let blocks: BTreeMap<u64, &BlockTotal> = entry.blocks.iter().map(|(key, block)| (*key, block)).collect();
        self.number(blocks.len() as u64);
        for (key, block) in blocks {
            self.block(key, block);
        }
        self.timing(sub, entry, numbers);
        let positions: BTreeMap<Position, &WorkTotal> = entry.work.iter().map(|(at, work)| (*at, work)).collect();
        self.number(positions.len() as u64);
        for (at, work) in positions {
            self.position(at);
            self.work(sub, work, numbers);
        }
    }

    fn position(&mut self, at: Position) {
        self.counts([u64::from(at.stage), u64::from(at.phase), u64::from(at.branch.is_some())]);
        if let Some(branch) = at.branch {
            self.bytes.extend(branch.block.to_le_bytes());
            self.number(u64::from(branch.branch));
        }
    }

    fn block(&mut self, key: u64, block: &BlockTotal) {
        self.bytes.extend(key.to_le_bytes());
        self.position(block.at);
        self.counts([block.times, block.branches.len() as u64]);
        for branch in &block.branches {
            self.bytes.extend(branch.content.to_le_bytes());
            self.counts([u64::from(branch.own), branch.awaited]);
        }
        self.sums(&block.response);
    }

    fn kind(&mut self, kind: RequestKind) {
        self.number(KINDS.iter().position(|own| *own == kind).unwrap_or_default() as u64);
    }

    fn timing(&mut self, sub: &SubModel, entry: &EntryTotal, numbers: &[u32]) {
        let key = |label: &CallLabel| (label.phase, label.kind, label.to.map(|to| sub.entry(to).key), label.ordinal);
        let mut calls: Vec<(&CallLabel, &CallTotal)> = entry.calls.iter().collect();
        calls.sort_by_key(|(label, _)| key(label));
        let place = |label: &CallLabel| calls.partition_point(|(other, _)| key(other) < key(label)) as u64;
        self.number(calls.len() as u64);
        for (label, call) in &calls {
            self.number(u64::from(label.phase));
            self.kind(label.kind);
            // The places of entries count from 1 here: 0 is what the invocation itself works.
            self.counts([label.to.map_or(0, |to| u64::from(numbers[to.index()]) + 1), u64::from(label.ordinal)]);
            self.counts([call.invocations, call.requests.count, call.requests.squares]);
            self.sums(&call.duration);
            for time in [call.start, call.share, call.lead, call.network] {
                self.signed(time.0);
            }
        }
        let mut pairs: Vec<([u64; 2], &PairTotal)> =
            entry.pairs.iter().map(|((left, right), pair)| ([place(left), place(right)], pair)).collect();
        pairs.sort_by_key(|(of, _)| *of);
        self.number(pairs.len() as u64);
        for (of, pair) in pairs {
            self.counts(of);
            self.counts([pair.both, pair.before, pair.after]);
            self.signed(pair.later.0);
            self.signed(pair.earlier.0);
        }
    }

    fn work(&mut self, sub: &SubModel, work: &WorkTotal, numbers: &[u32]) {
        self.number(work.visits);
        for own in [&work.exclusive, &work.network, &work.pauses] {
            self.sums(own);
        }
        let mut activities: Vec<_> = work.activities.iter().collect();
        activities.sort_by_key(|(name, _)| sub.names.text(**name));
        self.number(activities.len() as u64);
        for (name, total) in activities {
            self.name(sub, *name);
            self.number(total.count);
            self.sums(&total.cpu);
        }
        let mut requests: Vec<_> =
            work.requests.iter().map(|((kind, to), total)| ((*kind, numbers[to.index()]), total)).collect();
        requests.sort_by_key(|(of, _)| *of);
        self.number(requests.len() as u64);
        for ((kind, to), total) in requests {
            self.kind(kind);
            self.counts([u64::from(to), total.count, total.squares]);
        }
    }
}

impl In<'_> {
    /// All of a sub-model but the columns. Nothing that JSON could not have, either.
    pub(super) fn head(&mut self) -> Option<SubModel> {
        let mut sub = SubModel::new();
        sub.concurrent = self.truth()?;
        sub.set_aside = self.most(MOST)?;
        self.observed(&mut sub)?;
        for _ in 0..self.count()? {
            let task = self.name(&mut sub)?;
            let count = self.small()?;
            sub.instances.insert(task, count);
        }
        self.deployment(&mut sub)?;
        for _ in 0..self.count()? {
            let name = self.name(&mut sub)?;
            let total = self.scenario()?;
            if sub.scenarios.insert(name, total).is_some() {
                return None;
            }
        }
        let entries = self.count()?;
        for _ in 0..entries {
            self.entry(&mut sub, entries)?;
        }
        Some(sub)
    }

    fn observed(&mut self, sub: &mut SubModel) -> Option<()> {
        if self.version <= WITHOUT_TIMES {
            return Some(());
        }
        let mut before = 0;
        let mut times = Vec::new();
        for _ in 0..self.count()? {
            let from = self.since(before)?;
            before = self.since(from).filter(|to| from < *to)?;
            times.push((from, before));
        }
        sub.observe(&times);
        Some(())
    }

    fn most(&mut self, most: u64) -> Option<u64> {
        self.number().filter(|number| *number <= most)
    }

    fn truth(&mut self) -> Option<bool> {
        self.most(1).map(|number| number == 1)
    }

    fn counts<const N: usize>(&mut self, most: u64) -> Option<[u64; N]> {
        let mut counts = [0; N];
        for count in &mut counts {
            *count = self.most(most)?;
        }
        Some(counts)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn digest(&mut self) -> Option<u64> {
        self.fixed().map(u64::from_le_bytes)
    }

    fn signed(&mut self) -> Option<i128> {
        self.wide().map(|number| (number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn seconds(&mut self) -> Option<Seconds> {
        self.signed().map(Seconds)
    }

    fn sums(&mut self) -> Option<Moments> {
        let count = self.most(MOST)?;
        if count == 0 {
            return Some(Moments::default());
        }
        Some(Moments { count, sum: self.seconds()?, squares: self.signed()? })
    }

    fn times<const N: usize>(&mut self) -> Option<[Option<i64>; N]> {
        let mut times = [None; N];
        for time in &mut times {
            if self.truth()? {
                *time = Some(self.since(0)?);
            }
        }
        Some(times)
    }

    /// The name of a text, which is looked up once.
    fn name(&mut self, sub: &mut SubModel) -> Option<Name> {
        let place = usize::try_from(self.number()?).ok()?;
        let text = self.texts.get(place)?;
        self.names.resize(self.texts.len(), None);
        Some(*self.names[place].get_or_insert_with(|| sub.names.intern(text)))
    }

    fn deployment(&mut self, sub: &mut SubModel) -> Option<()> {
        let count = self.count().filter(|count| *count <= MOST_REPLICAS)?;
        for _ in 0..count {
            let (task, instance, machine) = (self.name(sub)?, self.name(sub)?, self.name(sub)?);
            let first = self.since(0)?;
            let last = self.since(first).filter(|last| first <= *last)?;
            let (invocations, cores) = (self.most(MOST)?, self.small()?);
            sub.deployment.see(
                &sub.names,
                Replica { task, instance, machine },
                &Seen { first, last, invocations, cores },
            );
        }
        if count > 0 {
            let is_cut = self.truth()?;
            let cut = self.number()?;
            if is_cut {
                sub.deployment.cut_at(cut);
            }
        }
        Some(())
    }

    fn scenario(&mut self) -> Option<ScenarioTotal> {
        let [operations, fragments, headless, pieces, unlinked, apart] = self.counts(MOST)?;
        let [mended, failures, chosen, truncated, clients] = self.counts(MOST)?;
        let grain = self.number()?;
        let [unweighed, limit] = if self.version > WITHOUT_LIMITS { self.counts(u64::MAX)? } else { [0; 2] };
        let [sampled, thousandths] = self.counts(MOST)?;
        let squares = self.number()?;
        let counted = if self.version > WITHOUT_TIMES { self.most(MOST)? } else { 0 };
        let sampled = Sampled { operations: sampled, thousandths, squares, counted };
        let [traces, undated] = self.counts(MOST)?;
        let undated = Undated { traces, operations: undated, nanoseconds: self.number()? };
        let is_sound = [fragments, failures, chosen, truncated, unweighed, sampled.operations]
            .iter()
            .all(|own| *own <= operations)
            && [headless, pieces, unlinked].iter().all(|own| *own <= fragments)
            && apart <= unlinked;
        if !is_sound {
            return None;
        }
        let (ids, told_ids) = (self.ids(operations)?, self.ids(operations)?);
        let [first_start, last_start, last_end] = self.times()?;
        let (response, think) = (self.sums()?, self.sums()?);
        Some(ScenarioTotal {
            operations,
            fragments,
            headless,
            pieces,
            unlinked,
            apart,
            mended,
            failures,
            chosen,
            truncated,
            unweighed,
            limit,
            sampled,
            ids,
            told_ids,
            first_start,
            last_start,
            last_end,
            undated,
            response,
            grain,
            clients,
            think,
            ..ScenarioTotal::default()
        })
    }

    fn ids(&mut self, operations: u64) -> Option<KeptIds> {
        let mut ids = KeptIds { count: self.most(operations)?, ..KeptIds::default() };
        if ids.count > 0 {
            for own in &mut ids.numbers {
                *own = Numbers { greatest: self.small()?, sum: self.wide()? };
            }
        }
        Some(ids)
    }

    /// An entry, one of so many.
    fn entry(&mut self, sub: &mut SubModel, entries: usize) -> Option<()> {
        let key = EntryKey(u128::from_le_bytes(self.fixed()?));
        let (task, service) = (self.name(sub)?, self.name(sub)?);
        let instance = self.small().filter(|instance| *instance > 0)?;
        let interaction = *INTERACTIONS.get(usize::try_from(self.number()?).ok()?)?;
        if sub.entry_of(key).is_some() {
            return None;
        }
        let index = sub.ensure_entry(key, task, instance, interaction, service);
        let [invocations, moved_waits, untimed_delays, inferred] = self.counts(MOST)?;
        let [inferred_requests, undated, silent, may_wait] = self.counts(MOST)?;
        let [failures, given_up, retries] = self.counts(MOST)?;
        if [inferred, undated, silent, may_wait].iter().any(|own| *own > invocations) {
            return None;
        }
        let (response, way) = (self.sums()?, self.sums()?);
        let batches = if self.truth()? { self.batches()? } else { Batches::default() };
        let entry = sub.entry_mut(index);
        (entry.invocations, entry.moved_waits, entry.untimed_delays) = (invocations, moved_waits, untimed_delays);
        (entry.inferred, entry.inferred_requests, entry.undated) = (inferred, inferred_requests, undated);
        (entry.silent, entry.may_wait) = (silent, may_wait);
        (entry.failures, entry.given_up, entry.retries) = (failures, given_up, retries);
        (entry.response, entry.way, entry.batches) = (response, way, batches);
        for _ in 0..self.count()? {
            let (key, block) = (self.digest()?, self.block()?);
            if entry.blocks.insert(key, block).is_some() {
                return None;
            }
        }
        if stray_blocks(entry).next().is_some() {
            return None;
        }
        self.timing(entry, entries)?;
        for _ in 0..self.count()? {
            let at = self.position()?;
            let is_known = |branch| has_branch(sub.entry(index), branch);
            if !at.branch.is_none_or(is_known) || sub.entry(index).work.contains_key(&at) {
                return None;
            }
            let work = self.work(sub, entries)?;
            sub.entry_mut(index).work.insert(at, work);
        }
        Some(())
    }

    fn batches(&mut self) -> Option<Batches> {
        let time = self.sums()?;
        let (messages, squares) = (self.most(MOST)?, self.number()?);
        Some(Batches { time, messages, squares, most: self.most(messages)?, products: self.seconds()? })
    }

    fn position(&mut self) -> Option<Position> {
        let (stage, phase) = (self.small()?, self.phase()?);
        let branch = if self.truth()? { Some(Branch { block: self.digest()?, branch: self.small()? }) } else { None };
        Some(Position { stage, branch, phase })
    }

    fn phase(&mut self) -> Option<u8> {
        u8::try_from(self.number()?).ok().filter(|phase| (1..=3).contains(phase))
    }

    fn block(&mut self) -> Option<BlockTotal> {
        let at = self.position()?;
        let times = self.most(MOST)?;
        let count = self.count()?;
        let mut branches = Vec::with_capacity(count);
        for _ in 0..count {
            branches.push(BranchTotal { content: self.digest()?, own: self.truth()?, awaited: self.most(MOST)? });
        }
        let response = self.sums()?;
        // A strand itself is one branch at most.
        let is_sound = branches.iter().filter(|branch| branch.own).count() <= 1;
        is_sound.then_some(BlockTotal { at, times, branches, response })
    }

    fn kind(&mut self) -> Option<RequestKind> {
        KINDS.get(usize::try_from(self.number()?).ok()?).copied()
    }

    /// The number of an entry, one of so many: numbers are given in the order in which entries stand here.
    fn index(number: u64, entries: usize) -> Option<EntryIndex> {
        u32::try_from(number).ok().filter(|number| (*number as usize) < entries).map(EntryIndex)
    }

    fn timing(&mut self, entry: &mut EntryTotal, entries: usize) -> Option<()> {
        let count = self.count()?;
        let mut labels = Vec::with_capacity(count);
        entry.calls.reserve(count);
        for _ in 0..count {
            let (phase, kind) = (self.phase()?, self.kind()?);
            let to = match self.number()? {
                0 => None,
                number => Some(Self::index(number - 1, entries)?),
            };
            let label = CallLabel { phase, kind, to, ordinal: self.small()? };
            let invocations = self.most(MOST)?;
            let requests = RequestTotal { count: self.most(MOST)?, squares: self.most(MOST_SQUARES)? };
            let duration = self.sums()?;
            let (start, share, lead, network) = (self.seconds()?, self.seconds()?, self.seconds()?, self.seconds()?);
            let call = CallTotal { invocations, requests, duration, start, share, lead, network };
            if entry.calls.insert(label, call).is_some() {
                return None;
            }
            labels.push(label);
        }
        let count = self.count()?;
        entry.pairs.reserve(count);
        for _ in 0..count {
            let [left, right] = self.counts(labels.len() as u64)?;
            let pair_of = (*labels.get(left as usize)?, *labels.get(right as usize)?);
            let [both, before, after] = self.counts(MOST)?;
            let pair = PairTotal { both, before, after, later: self.seconds()?, earlier: self.seconds()? };
            if left >= right || before.max(after) > both || entry.pairs.insert(pair_of, pair).is_some() {
                return None;
            }
        }
        Some(())
    }

    fn work(&mut self, sub: &mut SubModel, entries: usize) -> Option<WorkTotal> {
        let visits = self.most(MOST)?;
        let (exclusive, network, pauses) = (self.sums()?, self.sums()?, self.sums()?);
        let mut work = WorkTotal { visits, exclusive, network, pauses, ..WorkTotal::default() };
        for _ in 0..self.count()? {
            let name = self.name(sub)?;
            let own = work.activities.entry(name).or_default();
            (own.count, own.cpu) = (self.most(MOST)?, self.sums()?);
        }
        for _ in 0..self.count()? {
            let kind = self.kind()?;
            let to = Self::index(self.number()?, entries)?;
            let own = work.requests.entry((kind, to)).or_default();
            (own.count, own.squares) = (self.most(MOST)?, self.most(MOST_SQUARES)?);
        }
        Some(work)
    }
}
