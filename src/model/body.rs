//! What an entry does: phases where its work is a sequence, a graph of activities where it has parallel branches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::lqn::submodel::{EntryTotal, Interaction, Position, RequestKind, WorkTotal};
use crate::lqn::{Activity, ActivityId, Body, Call, CallKind, EntryId, Fork, Join, Model, Precedence, TaskId, Work};
use crate::model::demand::{DemandSource, Demands};
use crate::model::naming::Unique;
use crate::model::origins::ActivityOrigin;
use crate::model::variability;

/// What is needed to make bodies.
pub struct Bodies<'b, 'a> {
    /// Derives demands.
    pub demands: &'b mut Demands<'a>,
    /// The model's entries, by index in the sub-model.
    pub entries: &'b [Option<EntryId>],
    /// The task identifier.
    pub identifier: &'b str,
}

/// What of an entry the bodies' builder found beside the body.
pub struct Made {
    /// The body.
    pub body: Body,
    /// Where its demand comes from, by phase, or one for a graph.
    pub sources: Vec<DemandSource>,
    /// All its work per invocation, whatever its position.
    pub total: Work,
}

impl Made {
    /// Makes the demand of an invocation what the configuration says: at its start, and nothing after that.
    pub fn give(&mut self, seconds: f64, activities: &mut [Activity], origins: &mut [ActivityOrigin]) {
        let works = match &mut self.body {
            Body::Phases(phases) => phases.iter_mut().collect::<Vec<_>>(),
            Body::Activities(_) => activities.iter_mut().map(|activity| &mut activity.work).collect(),
        };
        for (number, work) in works.into_iter().enumerate() {
            work.demand = if number == 0 { seconds } else { 0.0 };
            work.cv2 = None;
        }
        let sources = self.sources.iter_mut().chain(origins.iter_mut().map(|origin| &mut origin.source));
        sources.for_each(|source| *source = DemandSource::None);
        let firsts = [self.sources.first_mut(), origins.first_mut().map(|origin| &mut origin.source)];
        for first in firsts.into_iter().flatten() {
            *first = DemandSource::Function;
        }
        self.total.demand = seconds;
    }
}

impl Bodies<'_, '_> {
    /// The body of an entry. Activities go into the model and its task; their origins are pushed beside them.
    pub fn make(
        &mut self,
        total: &EntryTotal,
        entry: EntryId,
        task: TaskId,
        model: &mut Model,
        names: &mut Unique,
        origins: &mut Vec<ActivityOrigin>,
    ) -> Made {
        let mut positions: Vec<At<'_>> = total.work.iter().map(|(at, work)| (*at, work)).collect();
        positions.sort_unstable_by_key(|(at, _)| *at);
        self.demands.doubting = false;
        let (everything, _) = self.work(total, positions.iter().map(|(_, work)| *work), total.invocations);
        self.demands.doubting = true;
        if positions.iter().all(|(at, _)| at.branch.is_none()) {
            let (phases, sources) = self.phases(total, &positions);
            return Made { body: Body::Phases(phases), sources, total: everything };
        }
        let mut graph = Graph { bodies: self, total, entry, task, model, names, origins, sources: Vec::new() };
        let start = graph.draw(&positions);
        let sources = main_sources(&graph.sources);
        Made { body: Body::Activities(start), sources, total: everything }
    }

    fn phases(&mut self, total: &EntryTotal, positions: &[At<'_>]) -> (Vec<Work>, Vec<DemandSource>) {
        let last = positions.iter().map(|(at, _)| phase_of(*at)).max().unwrap_or(1);
        (1..=last)
            .map(|phase| {
                let parts = positions.iter().filter(|(at, _)| phase_of(*at) == phase).map(|(_, work)| *work);
                self.work(total, parts, total.invocations)
            })
            .unzip()
    }

    /// Work that was done so many times, on average.
    fn work<'w>(
        &mut self,
        total: &EntryTotal,
        parts: impl Iterator<Item = &'w WorkTotal>,
        times: u64,
    ) -> (Work, DemandSource) {
        let mut work = Work::default();
        let mut source = DemandSource::None;
        let mut calls: Vec<((EntryId, CallKind), u64)> = Vec::new();
        let mut sources = Vec::new();
        for part in parts {
            let (demand, from) = self.demands.of(self.identifier, part, times);
            work.demand += demand;
            source = source.max(from);
            sources.push((part, from));
            for ((kind, to), request) in &part.requests {
                if let (Some(kind), Some(to)) = (call_kind(*kind, total.interaction), self.entries[to.index()]) {
                    calls.push(((to, kind), request.count));
                }
            }
        }
        let per = times.max(1) as f64;
        calls.sort_unstable_by_key(|(call, _)| *call);
        let call = |same: &[((EntryId, CallKind), u64)]| {
            let (to, kind) = same[0].0;
            Call { to, kind, mean: same.iter().map(|(_, count)| count).sum::<u64>() as f64 / per }
        };
        work.calls = calls.chunk_by(|left, right| left.0 == right.0).map(call).collect();
        variability::observe(&mut work, &sources, times, self.demands.alphabet());
        (work, source)
    }
}

/// How a request shows in the model; `None` for one that is forwarded. Where no requester waits there is no reply to leave
/// to others, so passing on is sending.
fn call_kind(kind: RequestKind, interaction: Interaction) -> Option<CallKind> {
    match kind {
        RequestKind::Synchronous => Some(CallKind::Synchronous),
        RequestKind::Forward if is_answered(interaction) => None,
        RequestKind::Forward | RequestKind::Asynchronous => Some(CallKind::Asynchronous),
    }
}

/// Whether somebody waits for the reply of an entry of that type.
pub fn is_answered(interaction: Interaction) -> bool {
    matches!(interaction, Interaction::Rendezvous | Interaction::Forwarding)
}

/// An activity graph in the making.
struct Graph<'g, 'b, 'a> {
    bodies: &'g mut Bodies<'b, 'a>,
    total: &'g EntryTotal,
    entry: EntryId,
    task: TaskId,
    model: &'g mut Model,
    names: &'g mut Unique,
    origins: &'g mut Vec<ActivityOrigin>,
    sources: Vec<(f64, DemandSource)>,
}

/// The sources of a hundredth of all demand or more, in the order of trust: branches that do nothing but call have a few
/// microseconds of their own, which are not worth a word.
fn main_sources(parts: &[(f64, DemandSource)]) -> Vec<DemandSource> {
    let mut demands: BTreeMap<DemandSource, f64> = BTreeMap::new();
    for (demand, source) in parts {
        *demands.entry(*source).or_default() += demand;
    }
    let all: f64 = demands.values().sum();
    let main: Vec<DemandSource> = demands
        .into_iter()
        .filter(|(source, demand)| *source != DemandSource::None && *demand >= 0.01 * all)
        .map(|(source, _)| source)
        .collect();
    if main.is_empty() { vec![DemandSource::None] } else { main }
}

/// Work at a position.
type At<'w> = (Position, &'w WorkTotal);

/// The phase of a position, from 1 to 3.
fn phase_of(at: Position) -> u8 {
    at.phase.clamp(1, 3)
}

impl Graph<'_, '_, '_> {
    /// Draws segments and blocks in their order, phase by phase; gives the first activity. Positions come in their order.
    fn draw(&mut self, positions: &[At<'_>]) -> ActivityId {
        let start = self.segment(0, 1, positions);
        let mut tail = start;
        let mut ordered = positions.to_vec();
        ordered.sort_by_key(|(at, _)| (phase_of(*at), at.stage));
        let phases = ordered.last().map_or(1, |(at, _)| phase_of(*at));
        for phase in 1..=phases {
            let from = ordered.partition_point(|(at, _)| phase_of(*at) < phase);
            let to = ordered.partition_point(|(at, _)| phase_of(*at) <= phase);
            // Stages may be sparse, so they are taken as they come, not counted.
            for here in ordered[from..to].chunk_by(|(left, _), (right, _)| left.stage == right.stage) {
                let stage = here[0].0.stage;
                let branches = &here[here.partition_point(|(at, _)| at.branch.is_none())..];
                let block_of = |at: &At<'_>| at.0.branch.map(|branch| branch.block);
                let blocks: Vec<&[At<'_>]> =
                    branches.chunk_by(|left, right| block_of(left) == block_of(right)).collect();
                let has_work = here.iter().any(|(at, _)| at.branch.is_none() && at.phase == phase);
                if !blocks.is_empty() {
                    let segment = self.segment(stage, phase, positions);
                    self.block(tail, &blocks, segment);
                    tail = segment;
                } else if has_work && (stage, phase) != (0, 1) {
                    let segment = self.segment(stage, phase, positions);
                    self.precede(Join::Sequence(tail), Fork::Sequence(segment));
                    tail = segment;
                }
            }
            if phase == 1 && is_answered(self.total.interaction) {
                self.model.activities[tail.index()].replies.push(self.entry);
            }
        }
        start
    }

    /// One block between two activities: its branches in parallel, or one of its alternatives, or none.
    fn block(&mut self, before: ActivityId, blocks: &[&[At<'_>]], after: ActivityId) {
        let visits = |branches: &[At<'_>]| branches.iter().map(|(_, work)| work.visits).max().unwrap_or(0);
        let taken: u64 = blocks.iter().map(|branches| visits(branches)).sum();
        let all = self.total.invocations.max(taken).max(1);
        if blocks.len() == 1 && taken == all {
            for branches in blocks {
                let activities = self.branches(branches, "", taken);
                self.precede(Join::Sequence(before), fork(&activities));
                self.precede(join(activities), Fork::Sequence(after));
            }
            return;
        }
        let mut alternatives = Vec::new();
        let mut ends = Vec::new();
        for (number, branches) in blocks.iter().enumerate() {
            let times = visits(branches);
            let stage = branches[0].0.stage;
            let mark = format!("x{}", number + 1);
            let activities = self.branches(branches, &mark, times);
            let (first, last) = if let [single] = activities[..] {
                (single, single)
            } else {
                let first = self.activity(format_args!("fork{stage}{mark}"), Work::default(), None, DemandSource::None);
                let last = self.activity(format_args!("join{stage}{mark}"), Work::default(), None, DemandSource::None);
                self.precede(Join::Sequence(first), fork(&activities));
                self.precede(join(activities), Fork::Sequence(last));
                (first, last)
            };
            alternatives.push((times as f64 / all as f64, first));
            ends.push(last);
        }
        if taken < all {
            let stage = blocks.first().map_or(0, |branches| branches[0].0.stage);
            let skip = self.activity(format_args!("skip{stage}"), Work::default(), None, DemandSource::None);
            alternatives.push(((all - taken) as f64 / all as f64, skip));
            ends.push(skip);
        }
        self.precede(Join::Sequence(before), Fork::Or(alternatives));
        self.precede(Join::Or(ends), Fork::Sequence(after));
    }

    fn branches(&mut self, branches: &[At<'_>], mark: &str, times: u64) -> Vec<ActivityId> {
        branches
            .iter()
            .enumerate()
            .map(|(number, (at, work))| {
                let (done, source) = self.bodies.work(self.total, std::iter::once(*work), times);
                let phase = if at.phase > 1 { format!("p{}", at.phase) } else { String::new() };
                let role = format_args!("b{}{phase}{mark}.{}", at.stage, number + 1);
                self.activity(role, done, Some(*at), source)
            })
            .collect()
    }

    /// The activity of a segment, with no work where the traces show none.
    fn segment(&mut self, stage: u32, phase: u8, positions: &[At<'_>]) -> ActivityId {
        let at = Position { stage, branch: None, phase };
        let done = positions.binary_search_by_key(&at, |(at, _)| *at).ok().map(|place| positions[place].1);
        let (work, source) = self.bodies.work(self.total, done.into_iter(), self.total.invocations);
        let phase = if phase > 1 { format!("p{phase}") } else { String::new() };
        self.activity(format_args!("s{stage}{phase}"), work, done.is_some().then_some(at), source)
    }

    fn activity(
        &mut self,
        role: fmt::Arguments<'_>,
        work: Work,
        position: Option<Position>,
        source: DemandSource,
    ) -> ActivityId {
        let id = ActivityId::from(self.model.activities.len());
        let wanted = format!("{}.{role}", self.model.entries[self.entry.index()].name);
        let name: Arc<str> = self.names.claim(&wanted);
        self.sources.push((work.demand, source));
        self.model.activities.push(Activity { name, task: self.task, work, replies: Vec::new() });
        self.model.tasks[self.task.index()].activities.push(id);
        self.origins.push(ActivityOrigin { entry: self.entry, position, source });
        id
    }

    fn precede(&mut self, join: Join, fork: Fork) {
        self.model.tasks[self.task.index()].precedences.push(Precedence { join, fork: Some(fork) });
    }
}

fn fork(activities: &[ActivityId]) -> Fork {
    match activities {
        [single] => Fork::Sequence(*single),
        several => Fork::And(several.to_vec()),
    }
}

fn join(activities: Vec<ActivityId>) -> Join {
    match activities[..] {
        [single] => Join::Sequence(single),
        _ => Join::And { activities, quorum: None },
    }
}
