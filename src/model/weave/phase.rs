//! The work of an entry's phase, divided over the places where it is done.

use std::collections::BTreeMap;

use super::{Cluster, Weave, beyond};
use crate::lqn::digest::Digest;
use crate::lqn::submodel::{
    ActivityTotal, BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, EntryTotal, Moments, Position, RequestKind,
    RequestTotal, Seconds, WorkTotal,
};
use crate::lqn::timing::{CallLabel, CallTotal, PairTotal};

/// The work of a phase in the making: segments between blocks, and branches in them.
pub(super) struct PhaseParts<'w> {
    weave: &'w Weave,
    invocations: u64,
    pairs: BTreeMap<(CallLabel, CallLabel), PairTotal>,
    /// What is not given away yet.
    whole: WorkTotal,
    /// Own time of all segments, and its squares.
    own: Moments,
    at: Position,
    pub(super) stage: u32,
    pub(super) segments: BTreeMap<Position, WorkTotal>,
    pub(super) branches: Vec<(Position, WorkTotal)>,
    pub(super) blocks: Vec<(u64, BlockTotal)>,
    /// The labels of each segment.
    calls: BTreeMap<Position, Vec<usize>>,
}

impl<'w> PhaseParts<'w> {
    pub(super) fn new(entry: &EntryTotal, mut whole: WorkTotal, weave: &'w Weave, at: Position, stage: u32) -> Self {
        let own = std::mem::take(&mut whole.exclusive);
        let pairs = entry.pairs.iter().map(|(pair, total)| (*pair, *total)).collect();
        let segments = BTreeMap::from([(Position { stage, ..at }, WorkTotal::default())]);
        let (branches, blocks, calls) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { weave, invocations: entry.invocations, pairs, whole, own, at, stage, segments, branches, blocks, calls }
    }

    fn here(&self) -> Position {
        Position { stage: self.stage, ..self.at }
    }

    fn segment(&mut self) -> &mut WorkTotal {
        let here = self.here();
        self.segments.entry(here).or_default()
    }

    pub(super) fn cluster(&mut self, cluster: &Cluster, keys: &[EntryKey]) {
        let calls: Vec<(CallLabel, CallTotal)> =
            cluster.branches.iter().flatten().map(|call| self.weave.labels[*call]).collect();
        let lead = calls.iter().map(|(_, call)| call.lead).fold(Seconds::default(), Seconds::plus);
        let segment = self.segment();
        segment.exclusive.sum = segment.exclusive.sum.plus(lead);
        let width = self.weave.width(cluster);
        if width > 1 {
            return self.fan_out(cluster.branches[0][0], width, keys);
        }
        if let [single] = &cluster.branches[..] {
            for &call in single {
                let here = self.here();
                let after = beyond(&self.weave.labels[call].1);
                let segment = self.segment();
                segment.delay = segment.delay.plus(after);
                self.calls.entry(here).or_default().push(call);
            }
            return;
        }
        self.stage += 1;
        let at = self.here();
        let _ = self.segment();
        let times = calls.iter().map(|(_, call)| call.invocations).max().unwrap_or(0).clamp(1, self.invocations.max(1));
        let mut digest = Digest::of(10).word(at.stage.into()).word(at.phase.into());
        for (label, _) in &calls {
            digest = digest.word(label.ordinal.into());
            digest = label.to.map_or(digest.word(0), |to| digest.key(keys[to.index()]));
        }
        let key = digest.short();
        let share: i128 = calls.iter().map(|(_, call)| call.share.0).sum();
        let response = Moments { count: times, sum: Seconds(share), squares: 0 };
        let mut totals = Vec::new();
        let all: Vec<usize> = cluster.branches.iter().flatten().copied().collect();
        for (number, branch) in (0..).zip(&cluster.branches) {
            let position = Position { stage: 0, branch: Some(Branch { block: key, branch: number }), phase: at.phase };
            let work = self.branch(branch, &all);
            self.branches.push((position, work));
            totals.push(BranchTotal { content: digest.word(number.into()).short().max(1), own: false, awaited: times });
        }
        self.blocks.push((key, BlockTotal { at, times, branches: totals, response }));
    }

    /// A fork of very many calls to one entry, in as many branches as are out at once.
    fn fan_out(&mut self, call: usize, width: u64, keys: &[EntryKey]) {
        let (label, total) = self.weave.labels[call];
        let Some(to) = label.to else { return };
        self.stage += 1;
        let at = self.here();
        let _ = self.segment();
        let digest = Digest::of(11).word(at.stage.into()).word(at.phase.into()).key(keys[to.index()]);
        let key = digest.short();
        let mut all = WorkTotal::default();
        self.give(&mut all, to, &total);
        let times = total.invocations.max(1);
        let mut totals = Vec::new();
        for number in 0..width {
            let count = total.requests.count / width + u64::from(number < total.requests.count % width);
            let requests = RequestTotal { count, squares: total.requests.squares / (width * width) };
            let mut work = WorkTotal { visits: times, ..WorkTotal::default() };
            work.requests.insert((RequestKind::Synchronous, to), requests);
            work.network = Moments { count, sum: Seconds(all.network.sum.0 / i128::from(width)), squares: 0 };
            let branch = Branch { block: key, branch: number as u32 };
            self.branches.push((Position { stage: 0, branch: Some(branch), phase: at.phase }, work));
            totals.push(BranchTotal { content: digest.word(number).short().max(1), own: false, awaited: times });
        }
        let response = Moments { count: times, sum: total.share, squares: 0 };
        self.blocks.push((key, BlockTotal { at, times, branches: totals, response }));
    }

    /// The work of a branch among all calls of its fork: after its offset, its calls.
    fn branch(&mut self, branch: &[usize], all: &[usize]) -> WorkTotal {
        let mut work = WorkTotal::default();
        let labels = &self.weave.labels;
        let offset = all.iter().map(|other| self.later(*other, branch[0])).fold(0.0, f64::max);
        let first = &labels[branch[0]].1;
        let mut delay = offset * first.invocations as f64;
        for (place, &call) in branch.iter().enumerate() {
            let (label, total) = labels[call];
            if place > 0 {
                let before = &labels[branch[place - 1]].1;
                let mean = before.duration.mean().unwrap_or(0.0);
                let gap = (self.later(branch[place - 1], call) - mean).max(0.0);
                delay += gap * total.invocations.min(before.invocations) as f64;
            }
            work.visits = work.visits.max(total.invocations);
            match label.to {
                Some(to) => self.give(&mut work, to, &total),
                // What the invocation works itself meanwhile.
                None => {
                    work.exclusive.merge(&total.duration);
                    self.own.sum = Seconds(self.own.sum.0 - total.duration.sum.0);
                }
            }
        }
        work.delay = Seconds::from_f64(delay);
        work
    }

    /// By how much a call begins after another on the mean, where it does; 0 where they were not seen together.
    fn later(&self, first: usize, second: usize) -> f64 {
        let (left, right) = (self.weave.labels[first].0, self.weave.labels[second].0);
        let (pair, later) = match self.pairs.get(&(left, right)) {
            Some(pair) => (pair, pair.later),
            None => match self.pairs.get(&(right, left)) {
                Some(pair) => (pair, pair.earlier),
                None => return 0.0,
            },
        };
        later.as_f64() / pair.both.max(1) as f64
    }

    /// Takes the requests of a label from the whole into a part.
    fn give(&mut self, part: &mut WorkTotal, to: EntryIndex, call: &CallTotal) {
        let kind = (RequestKind::Synchronous, to);
        if let Some(left) = self.whole.requests.get_mut(&kind) {
            left.count = left.count.saturating_sub(call.requests.count);
            if left.count == 0 {
                self.whole.requests.shift_remove(&kind);
            }
        }
        part.requests.entry(kind).or_default().merge(&call.requests);
        let on_the_way = self.whole.network.count.min(call.requests.count);
        let seen = Moments { count: if call.network.0 > 0 { on_the_way } else { 0 }, sum: call.network, squares: 0 };
        self.whole.network.count -= seen.count;
        self.whole.network.sum = Seconds(self.whole.network.sum.0 - seen.sum.0);
        part.network.merge(&seen);
    }

    /// Gives the rest to the segments.
    pub(super) fn finish(mut self) -> Self {
        let calls = std::mem::take(&mut self.calls);
        for (at, calls) in calls {
            let mut part = self.segments.remove(&at).unwrap_or_default();
            for &call in &calls {
                let (label, total) = self.weave.labels[call];
                if let Some(to) = label.to {
                    self.give(&mut part, to, &total);
                }
            }
            for (kind, request) in &mut part.requests {
                request.squares = self.squares(*kind, &calls);
            }
            self.segments.insert(at, part);
        }
        // The own time before the first call of each segment's successor is known; what is left comes last.
        let known: i128 = self.segments.values().map(|part| part.exclusive.sum.0).sum();
        let all = self.own.sum.0.max(0);
        if let Some(mut last) = self.segments.last_entry() {
            let last = last.get_mut();
            last.exclusive.sum = Seconds(last.exclusive.sum.0 + (all - known).max(0));
        }
        let known = known.max(all);
        let activities = std::mem::take(&mut self.whole.activities);
        let first = self.segments.keys().next().copied();
        for (at, part) in &mut self.segments {
            let own = &mut part.exclusive;
            if known > all && known > 0 {
                own.sum = Seconds((own.sum.0 as f64 * (all as f64 / known as f64)) as i128);
            }
            // Each part varies as the whole does.
            let ratio = if all > 0 { own.sum.0 as f64 / all as f64 } else { 0.0 };
            own.squares = (self.own.squares as f64 * ratio * ratio) as i128;
            own.count = self.own.count;
            part.visits = self.whole.visits;
            // Processor time that was measured is where the time is; what was executed belongs to the first segment.
            let ratio = if all > 0 { ratio } else { f64::from(u8::from(Some(*at) == first)) };
            for (name, total) in &activities {
                let cpu = Moments {
                    count: total.cpu.count,
                    sum: Seconds((total.cpu.sum.0 as f64 * ratio).round() as i128),
                    squares: (total.cpu.squares as f64 * ratio * ratio) as i128,
                };
                let count = if Some(*at) == first { total.count } else { 0 };
                part.activities.insert(*name, ActivityTotal { count, cpu });
            }
            if Some(*at) == first {
                part.network.merge(&self.whole.network);
                part.pauses.merge(&self.whole.pauses);
                part.delay = part.delay.plus(self.whole.delay);
                for (kind, request) in self.whole.requests.drain(..) {
                    part.requests.entry(kind).or_default().merge(&request);
                }
            }
        }
        self
    }

    /// The sum over invocations of the squared number of requests of a kind by these calls.
    fn squares(&self, (_, to): (RequestKind, EntryIndex), calls: &[usize]) -> u64 {
        let of: Vec<&(CallLabel, CallTotal)> =
            calls.iter().map(|call| &self.weave.labels[*call]).filter(|(label, _)| label.to == Some(to)).collect();
        let own: u64 = of.iter().map(|(_, call)| call.requests.squares).sum();
        let mut twice = 0;
        for (place, (left, _)) in of.iter().enumerate() {
            for (right, _) in &of[place + 1..] {
                let pair = self.pairs.get(&(*left, *right)).or_else(|| self.pairs.get(&(*right, *left)));
                twice += pair.map_or(0, |pair| pair.both);
            }
        }
        own.saturating_add(2 * twice)
    }
}
