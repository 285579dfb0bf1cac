//! What an entry does: phases where its work is a sequence, a graph of activities where it has parallel branches.

use std::collections::BTreeMap;
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
        let positions: BTreeMap<Position, &WorkTotal> = total.work.iter().map(|(at, work)| (*at, work)).collect();
        self.demands.doubting = false;
        let (everything, _) = self.work(total, positions.values().copied(), total.invocations);
        self.demands.doubting = true;
        if positions.keys().all(|at| at.branch.is_none()) {
            let (phases, sources) = self.phases(total, &positions);
            return Made { body: Body::Phases(phases), sources, total: everything };
        }
        let mut graph = Graph { bodies: self, total, entry, task, model, names, origins, sources: Vec::new() };
        let start = graph.draw(&positions);
        let sources = main_sources(&graph.sources);
        Made { body: Body::Activities(start), sources, total: everything }
    }

    fn phases(
        &mut self,
        total: &EntryTotal,
        positions: &BTreeMap<Position, &WorkTotal>,
    ) -> (Vec<Work>, Vec<DemandSource>) {
        let last = positions.keys().map(|at| at.phase.clamp(1, 3)).max().unwrap_or(1);
        (1..=last)
            .map(|phase| {
                let parts = positions.iter().filter(|(at, _)| at.phase.clamp(1, 3) == phase).map(|(_, work)| *work);
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
        let mut calls: BTreeMap<(EntryId, CallKind), u64> = BTreeMap::new();
        let mut sources = Vec::new();
        for part in parts {
            let (demand, from) = self.demands.of(self.identifier, part, times);
            work.demand += demand;
            source = source.max(from);
            sources.push((part, from));
            for ((kind, to), request) in &part.requests {
                if let (Some(kind), Some(to)) = (call_kind(*kind, total.interaction), self.entries[to.index()]) {
                    *calls.entry((to, kind)).or_default() += request.count;
                }
            }
        }
        let per = times.max(1) as f64;
        work.calls = calls.into_iter().map(|((to, kind), count)| Call { to, kind, mean: count as f64 / per }).collect();
        variability::observe(&mut work, &sources, times, self.demands.names());
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

/// Branches of a block with their positions, in order.
type Branches<'w> = Vec<(Position, &'w WorkTotal)>;

impl Graph<'_, '_, '_> {
    /// Draws segments and blocks in their order, phase by phase; gives the first activity.
    fn draw(&mut self, positions: &BTreeMap<Position, &WorkTotal>) -> ActivityId {
        let start = self.segment(0, 1, positions);
        let mut tail = start;
        let phases = positions.keys().map(|at| at.phase.clamp(1, 3)).max().unwrap_or(1);
        for phase in 1..=phases {
            let here = |at: &Position| at.phase.clamp(1, 3) == phase;
            let stages = positions.keys().filter(|at| here(at)).map(|at| at.stage);
            // Stages may be sparse, so they are taken as they come, not counted.
            let stages: std::collections::BTreeSet<u32> = stages.collect();
            for stage in stages {
                let mut blocks: BTreeMap<u64, Branches<'_>> = BTreeMap::new();
                for (at, work) in positions.iter().filter(|(at, _)| here(at) && at.stage == stage) {
                    if let Some(branch) = at.branch {
                        blocks.entry(branch.block).or_default().push((*at, work));
                    }
                }
                let has_work = positions.contains_key(&Position { stage, branch: None, phase });
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
    fn block(&mut self, before: ActivityId, blocks: &BTreeMap<u64, Branches<'_>>, after: ActivityId) {
        let visits = |branches: &Branches<'_>| branches.iter().map(|(_, work)| work.visits).max().unwrap_or(0);
        let taken: u64 = blocks.values().map(visits).sum();
        let all = self.total.invocations.max(taken).max(1);
        if blocks.len() == 1 && taken == all {
            for branches in blocks.values() {
                let activities = self.branches(branches, "", taken);
                self.precede(Join::Sequence(before), fork(&activities));
                self.precede(join(activities), Fork::Sequence(after));
            }
            return;
        }
        let mut alternatives = Vec::new();
        let mut ends = Vec::new();
        for (number, branches) in blocks.values().enumerate() {
            let times = visits(branches);
            let stage = branches[0].0.stage;
            let mark = format!("x{}", number + 1);
            let activities = self.branches(branches, &mark, times);
            let (first, last) = if let [single] = activities[..] {
                (single, single)
            } else {
                let first = self.activity(&format!("fork{stage}{mark}"), Work::default(), None, DemandSource::None);
                let last = self.activity(&format!("join{stage}{mark}"), Work::default(), None, DemandSource::None);
                self.precede(Join::Sequence(first), fork(&activities));
                self.precede(join(activities), Fork::Sequence(last));
                (first, last)
            };
            alternatives.push((times as f64 / all as f64, first));
            ends.push(last);
        }
        if taken < all {
            let stage = blocks.values().next().map_or(0, |branches| branches[0].0.stage);
            let skip = self.activity(&format!("skip{stage}"), Work::default(), None, DemandSource::None);
            alternatives.push(((all - taken) as f64 / all as f64, skip));
            ends.push(skip);
        }
        self.precede(Join::Sequence(before), Fork::Or(alternatives));
        self.precede(Join::Or(ends), Fork::Sequence(after));
    }

    fn branches(&mut self, branches: &Branches<'_>, mark: &str, times: u64) -> Vec<ActivityId> {
        branches
            .iter()
            .enumerate()
            .map(|(number, (at, work))| {
                let (done, source) = self.bodies.work(self.total, std::iter::once(*work), times);
                let phase = if at.phase > 1 { format!("p{}", at.phase) } else { String::new() };
                self.activity(&format!("b{}{phase}{mark}.{}", at.stage, number + 1), done, Some(*at), source)
            })
            .collect()
    }

    /// The activity of a segment, with no work where the traces show none.
    fn segment(&mut self, stage: u32, phase: u8, positions: &BTreeMap<Position, &WorkTotal>) -> ActivityId {
        let at = Position { stage, branch: None, phase };
        let (work, source) =
            self.bodies.work(self.total, positions.get(&at).copied().into_iter(), self.total.invocations);
        let phase = if phase > 1 { format!("p{phase}") } else { String::new() };
        self.activity(&format!("s{stage}{phase}"), work, positions.contains_key(&at).then_some(at), source)
    }

    fn activity(&mut self, role: &str, work: Work, position: Option<Position>, source: DemandSource) -> ActivityId {
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
