//! The activities of an entry that has parallel branches: segments of strands, and the forks and joins of the blocks between them.
//!
//! Strands lie in blocks and blocks on strands, as deep as the traces show; nothing here recurses.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::lqn::submodel::{BlockTotal, Branch, EntryTotal, Position, WorkTotal};
use crate::lqn::{Activity, ActivityId, CallOrder, EntryId, Fork, Join, Model, Precedence, TaskId, Work};
use crate::model::body::{At, Bodies, is_answered, phase_of};
use crate::model::demand::DemandSource;
use crate::model::joins::{Woven, WovenFork};
use crate::model::naming::Unique;
use crate::model::origins::ActivityOrigin;

/// Names of activities show the path to them as long as it is no longer than this.
const LONGEST_PATH: usize = 48;

/// Where the activities of an entry go.
pub struct Site<'g> {
    /// The entry.
    pub entry: EntryId,
    /// Its task.
    pub task: TaskId,
    /// The model.
    pub model: &'g mut Model,
    /// The task's names of activities.
    pub names: &'g mut Unique,
    /// Origins of activities, beside those of the model.
    pub origins: &'g mut Vec<ActivityOrigin>,
}

/// An activity graph in the making.
pub struct Graph<'g, 'b, 'a> {
    bodies: &'g mut Bodies<'b, 'a>,
    total: &'g EntryTotal,
    site: Site<'g>,
    /// Work by strand, phase and stage.
    segments: Vec<At<'g>>,
    /// Blocks by strand, phase and stage, with their keys.
    blocks: Vec<Keyed<'g>>,
    /// The last activity of the first phase, by strand.
    replies_at: FxHashMap<Option<Branch>, ActivityId>,
    sources: Vec<(f64, DemandSource)>,
    /// What the delays of its forks are fitted to, where traces tell.
    woven: Woven,
    /// Blocks that are still to be drawn, the next one last.
    open: Vec<Place>,
    paths: usize,
}

/// A block with its key.
type Keyed<'g> = (u64, &'g BlockTotal);

/// The order in which positions are drawn.
fn order(at: Position) -> (Option<Branch>, u8, u32) {
    (at.branch, phase_of(at), at.stage)
}

/// Which of a list, sorted by strands, are those of a strand.
fn of_strand<T>(list: &[T], strand: Option<Branch>, at: impl Fn(&T) -> Position) -> Range<usize> {
    list.partition_point(|one| at(one).branch < strand)..list.partition_point(|one| at(one).branch <= strand)
}

/// A place for a block: between two activities, one of those seen there or none.
struct Place {
    before: ActivityId,
    after: ActivityId,
    blocks: Range<usize>,
    /// How often the strand came here.
    times: u64,
    /// What its names begin with.
    path: Arc<str>,
}

/// Whether a branch is a request and nothing else: then it makes that request once, however few were seen.
fn is_request(work: &WorkTotal, times: u64) -> bool {
    let nothing_else = work.activities.is_empty() && work.exclusive.count == 0;
    nothing_else
        && work.requests.len() == 1
        && work.requests.values().all(|request| request.count == times && request.squares == times)
}

/// The first and the last activity of something.
#[derive(Clone, Copy)]
struct Ends {
    first: ActivityId,
    last: ActivityId,
}

/// How the branches of a block end.
#[derive(Default)]
struct Roles {
    /// Waited for.
    all: Vec<Ends>,
    /// So many of these are waited for.
    some: Vec<Ends>,
    quorum: u32,
    /// Never waited for.
    none: Vec<Ends>,
}

impl<'g, 'b, 'a> Graph<'g, 'b, 'a> {
    /// Draws the graph of an entry; gives its first activity, all demands with their sources, and what was seen of its forks.
    pub fn draw(
        bodies: &'g mut Bodies<'b, 'a>,
        total: &'g EntryTotal,
        mut segments: Vec<At<'g>>,
        site: Site<'g>,
    ) -> (ActivityId, Vec<(f64, DemandSource)>, Woven) {
        segments.sort_unstable_by_key(|(at, _)| order(*at));
        let mut blocks: Vec<Keyed<'g>> = total.blocks.iter().map(|(key, block)| (*key, block)).collect();
        blocks.sort_unstable_by_key(|(key, block)| (order(block.at), *key));
        let (replies_at, sources, open) = (FxHashMap::default(), Vec::new(), Vec::new());
        let woven = Woven { entry: site.entry, segments: Vec::new(), forks: Vec::new() };
        let mut graph = Self { bodies, total, site, segments, blocks, replies_at, sources, woven, open, paths: 0 };
        let start = graph.strand(None, total.invocations, "").first;
        while let Some(place) = graph.open.pop() {
            graph.place(&place);
        }
        if is_answered(total.interaction) {
            let replying = graph.replying(start);
            let entry = graph.site.entry;
            graph.site.model.activities[replying.index()].replies.push(entry);
        }
        (start, graph.sources, graph.woven)
    }

    /// Draws the segments of a strand that is come to so often; its blocks are to be drawn later.
    fn strand(&mut self, of: Option<Branch>, times: u64, path: &str) -> Ends {
        let path = self.shortened(path);
        let mut segments = of_strand(&self.segments, of, |(at, _)| *at);
        let mut blocks = of_strand(&self.blocks, of, |(_, block)| block.at);
        let mut ends: Option<Ends> = None;
        let mut places: Vec<Place> = Vec::new();
        loop {
            let stop = |at: Position| (phase_of(at), at.stage);
            let segment = self.segments[segments.clone()].first().map(|(at, _)| stop(*at));
            let block = self.blocks[blocks.clone()].first().map(|(_, block)| stop(block.at));
            let Some(mut here) = segment.into_iter().chain(block).min() else { break };
            // There is something before the first block, and the strand of the entry begins in its first phase.
            if ends.is_none() && (of.is_none() || block == Some(here)) {
                here = (1, 0);
            }
            let (phase, stage) = here;
            let done = (segment == Some(here)).then(|| self.segments[segments.start]);
            segments.start += usize::from(done.is_some());
            let role = match (&ends, of) {
                (None, Some(_)) => path.to_string(),
                _ => joined(&path, &format!("s{stage}{}", of_phase(phase))),
            };
            let segment = self.segment(&role, done, times);
            if let Some(Ends { last, .. }) = ends {
                let count = self.blocks[blocks.clone()].iter().take_while(|(_, block)| stop(block.at) == here).count();
                if count > 0 {
                    let path = joined(&path, &format!("b{stage}{}", of_phase(phase))).into();
                    let blocks = blocks.start..blocks.start + count;
                    places.push(Place { before: last, after: segment, blocks, times, path });
                } else {
                    self.precede(Join::Sequence(last), Fork::Sequence(segment));
                }
                blocks.start += count;
            }
            if phase == 1 {
                self.replies_at.insert(of, segment);
            }
            if of.is_none() {
                self.woven.segments.push((phase, segment));
            }
            ends = Some(Ends { first: ends.map_or(segment, |ends| ends.first), last: segment });
        }
        self.open.extend(places.into_iter().rev());
        ends.unwrap_or_else(|| {
            let role = if of.is_some() { path.to_string() } else { "s0".to_owned() };
            let only = self.segment(&role, None, times);
            Ends { first: only, last: only }
        })
    }

    fn segment(&mut self, role: &str, done: Option<At<'g>>, times: u64) -> ActivityId {
        let (mut work, source) = self.bodies.work(self.total, done.iter().map(|(_, work)| *work), times);
        if done.is_some_and(|(at, done)| at.branch.is_some() && is_request(done, times)) {
            work.call_order = CallOrder::Deterministic;
        }
        self.activity(role, work, done.map(|(at, _)| at), source)
    }

    /// One block between two activities: its branches in parallel, or one of its alternatives, or none.
    fn place(&mut self, place: &Place) {
        let Place { before, after, ref blocks, times, ref path } = *place;
        let blocks: Vec<Keyed<'g>> = self.blocks[blocks.clone()].to_vec();
        let taken: u64 = blocks.iter().map(|(_, block)| block.times).sum();
        let all = times.max(taken).max(1);
        if let [(key, block)] = blocks[..]
            && taken == all
        {
            let roles = self.branches(key, block, &format!("{path}."));
            self.keep(key, block, &roles, after, 1.0);
            self.fork_and_join(before, roles, after, path);
            return;
        }
        let mut alternatives = Vec::new();
        let mut ends = Vec::new();
        for (number, (key, block)) in (1..).zip(&blocks) {
            let path = format!("{path}x{number}");
            let roles = self.branches(*key, block, &format!("{path}."));
            let alternative = if let ([single], [], []) = (&roles.all[..], &roles.some[..], &roles.none[..]) {
                *single
            } else {
                let first = self.connection(&format!("{path}.fork"));
                let last = self.connection(&format!("{path}.join"));
                self.keep(*key, block, &roles, last, block.times as f64 / all as f64);
                self.fork_and_join(first, roles, last, &path);
                Ends { first, last }
            };
            alternatives.push((block.times as f64 / all as f64, alternative.first));
            ends.push(alternative.last);
        }
        if taken < all {
            let skip = self.connection(&format!("{path}.skip"));
            alternatives.push(((all - taken) as f64 / all as f64, skip));
            ends.push(skip);
        }
        self.precede(Join::Sequence(before), Fork::Or(alternatives));
        self.precede(Join::Or(ends), Fork::Sequence(after));
    }

    /// Draws the branches of a block.
    fn branches(&mut self, key: u64, block: &BlockTotal, path: &str) -> Roles {
        let mut roles = Roles::default();
        let waited: u64 = block.branches.iter().filter(|branch| !branch.own).map(|branch| branch.awaited).sum();
        let waited = (waited + block.times / 2) / block.times.max(1);
        // One that was late whenever it was seen differs from one without a waiting caller in being like others.
        let known: BTreeSet<u64> = block
            .branches
            .iter()
            .filter(|branch| branch.awaited > 0 && branch.content != 0)
            .map(|branch| branch.content)
            .collect();
        let mut either = Vec::new();
        for (number, branch) in (0..).zip(&block.branches) {
            let ends =
                self.strand(Some(Branch { block: key, branch: number }), block.times, &format!("{path}{}", number + 1));
            if branch.own {
                roles.all.push(ends);
            } else if branch.awaited > 0 || known.contains(&branch.content) {
                either.push(ends);
            } else {
                roles.none.push(ends);
            }
        }
        if either.len() as u64 > waited && waited > 0 {
            (roles.some, roles.quorum) = (either, waited as u32);
        } else {
            let own = std::mem::replace(&mut roles.all, either);
            roles.all.extend(own);
        }
        roles
    }

    /// Notes how long a fork was seen to take.
    fn keep(&mut self, key: u64, block: &BlockTotal, roles: &Roles, after: ActivityId, visits: f64) {
        let Some(seen) = block.response.mean() else { return };
        let offset = |number: usize| {
            let of = Some(Branch { block: key, branch: number as u32 });
            let segments = &self.segments[of_strand(&self.segments, of, |(at, _)| *at)];
            segments.iter().map(|(_, work)| work.delay.as_f64()).sum::<f64>() / block.times.max(1) as f64
        };
        let branches = roles.all.iter().enumerate().map(|(number, ends)| (ends.first, offset(number))).collect();
        let phase = phase_of(block.at);
        self.woven.forks.push(WovenFork { phase, visits, branches, after, seen });
    }

    fn fork_and_join(&mut self, before: ActivityId, roles: Roles, after: ActivityId, path: &str) {
        let Roles { mut all, some, quorum, none } = roles;
        let mut begun: Vec<ActivityId> = Vec::new();
        let mut joins: Vec<(Join, ActivityId)> = Vec::new();
        let any = Join::And { activities: some.iter().map(|ends| ends.last).collect(), quorum: Some(quorum) };
        let first_of_some = some.iter().map(|ends| ends.first);
        if all.is_empty() && !some.is_empty() {
            begun.extend(first_of_some);
            joins.push((any, after));
        } else if !some.is_empty() {
            // What the strand does itself is waited for in any case.
            let first = self.connection(&format!("{path}.fork"));
            let last = self.connection(&format!("{path}.quorum"));
            self.precede(Join::Sequence(first), fork(first_of_some.collect()));
            joins.push((any, last));
            all.push(Ends { first, last });
        }
        if all.is_empty() {
            // Nobody waits: the strand goes on beside the branches.
            begun.extend(some.is_empty().then_some(after));
        } else {
            begun.extend(all.iter().map(|ends| ends.first));
            begun.sort_unstable();
            let mut ended: Vec<ActivityId> = all.iter().map(|ends| ends.last).collect();
            ended.sort_unstable();
            let join = match ended[..] {
                [single] => Join::Sequence(single),
                _ => Join::And { activities: ended, quorum: None },
            };
            joins.push((join, after));
        }
        begun.extend(none.iter().map(|ends| ends.first));
        begun.sort_unstable();
        self.precede(Join::Sequence(before), fork(begun));
        for (join, after) in joins {
            self.precede(join, Fork::Sequence(after));
        }
    }

    /// The activity after which the entry replies: the last of the first phase. That may lie in a block, where the entry replies
    /// while branches go on.
    fn replying(&self, start: ActivityId) -> ActivityId {
        let mut at: Option<Branch> = None;
        let mut invocations = self.total.invocations;
        let mut replies_at = start;
        for _ in 0..=self.blocks.len() {
            replies_at = self.replies_at.get(&at).copied().unwrap_or(replies_at);
            let blocks = &self.blocks[of_strand(&self.blocks, at, |(_, block)| block.at)];
            let first = blocks.partition_point(|(_, block)| phase_of(block.at) == 1);
            let Some((key, block)) = blocks[..first].last() else { break };
            let Some(number) = block.branches.iter().position(|branch| branch.own) else { break };
            let own = Some(Branch { block: *key, branch: number as u32 });
            let later = self.segments[of_strand(&self.segments, own, |(at, _)| *at)].last();
            if block.times != invocations || later.is_none_or(|(at, _)| phase_of(*at) == 1) {
                break;
            }
            (at, invocations) = (own, block.times);
        }
        replies_at
    }

    /// An activity that holds the graph together.
    fn connection(&mut self, role: &str) -> ActivityId {
        self.activity(role, Work::default(), None, DemandSource::None)
    }

    fn activity(&mut self, role: &str, work: Work, position: Option<Position>, source: DemandSource) -> ActivityId {
        let Site { entry, task, ref mut model, ref mut names, ref mut origins } = self.site;
        let id = ActivityId::from(model.activities.len());
        let wanted = format!("{}.{role}", model.entries[entry.index()].name);
        let name: Arc<str> = names.claim(&wanted);
        self.sources.push((work.demand, source));
        model.activities.push(Activity { work, ..Activity::new(&name, task) });
        model.tasks[task.index()].activities.push(id);
        origins.push(ActivityOrigin { entry, position, source });
        id
    }

    fn precede(&mut self, join: Join, fork: Fork) {
        let Site { task, ref mut model, .. } = self.site;
        model.tasks[task.index()].precedences.push(Precedence { join, fork: Some(fork) });
    }

    /// A path as names begin with it: numbers stand for what is very deep.
    fn shortened(&mut self, path: &str) -> Arc<str> {
        if path.len() <= LONGEST_PATH {
            return path.into();
        }
        self.paths += 1;
        format!("deep{}", self.paths).into()
    }
}

fn of_phase(phase: u8) -> String {
    if phase > 1 { format!("p{phase}") } else { String::new() }
}

fn joined(path: &str, more: &str) -> String {
    if path.is_empty() { more.to_owned() } else { format!("{path}.{more}") }
}

fn fork(activities: Vec<ActivityId>) -> Fork {
    match activities[..] {
        [single] => Fork::Sequence(single),
        _ => Fork::And(activities),
    }
}
