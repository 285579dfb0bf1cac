//! What an entry does: phases where its work is a sequence, a graph of activities where it has parallel branches.

use std::collections::BTreeMap;

use crate::lqn::submodel::{EntryTotal, Interaction, Position, RequestKind, RequestTotal, WorkTotal};
use crate::lqn::{Activity, Body, Call, CallKind, EntryId, Model, TaskId, Work};
use crate::model::config::Network;
use crate::model::demand::{DemandSource, Demands};
use crate::model::graph::{Graph, Site};
use crate::model::joins::Woven;
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
    /// The network latency of calls.
    pub network: Network,
    /// Whether joins were seen in time.
    pub joins: bool,
    /// Whether some event of the entry at hand carries its processor time.
    pub measured: bool,
}

/// What of an entry the bodies' builder found beside the body.
pub struct Made {
    /// The body.
    pub body: Body,
    /// Where its demand comes from, by phase, or one for a graph.
    pub sources: Vec<DemandSource>,
    /// What was seen of its forks, where it is a graph.
    pub woven: Option<Woven>,
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
        if total.blocks.is_empty() {
            let (phases, sources) = self.phases(total, &positions);
            return Made { body: Body::Phases(phases), sources, woven: None };
        }
        let (start, sources, woven) = Graph::draw(self, total, positions, Site { entry, task, model, names, origins });
        let sources = main_sources(&sources);
        let woven = total.blocks.values().all(|block| block.response.count > 0).then_some(woven);
        Made { body: Body::Activities(start), sources, woven }
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
    pub(super) fn work<'w>(
        &mut self,
        total: &EntryTotal,
        parts: impl Iterator<Item = &'w WorkTotal>,
        times: u64,
    ) -> (Work, DemandSource) {
        let mut work = Work::default();
        let mut source = DemandSource::None;
        let mut calls: Vec<((EntryId, CallKind), RequestTotal)> = Vec::new();
        let mut sources = Vec::new();
        // Of delays: the variance of pauses, and all else.
        let (mut paused, mut others) = (None, 0.0);
        for part in parts {
            let (demand, from) = self.demands.of(self.identifier, part, times, self.measured);
            // Where calls in sequence overlap a little, that is time which the invocation does not work.
            let delay = part.delay.as_f64() / times.max(1) as f64;
            let overlap = if from == DemandSource::Exclusive { (-delay).clamp(0.0, demand) } else { 0.0 };
            work.demand += demand - overlap;
            source = source.max(from);
            sources.push((part, from));
            let other = self.network.delay(part, times) + delay.max(0.0);
            work.think_time += other + pause(part, times);
            others += other;
            if part.pauses.count > 0 {
                *paused.get_or_insert(0.0) += pause_variance(part, times);
            }
            for ((kind, to), request) in &part.requests {
                if let (Some(kind), Some(to)) = (call_kind(*kind, total.interaction), self.entries[to.index()]) {
                    calls.push(((to, kind), *request));
                }
            }
        }
        // What else delays is taken as exponential, and pauses beside it that are hardly any of it.
        let spread = |paused: f64| (paused + others * others) / (work.think_time * work.think_time);
        work.think_cv2 = paused.filter(|_| work.think_time - others > HARDLY * others).map(spread);
        let per = times.max(1) as f64;
        calls.sort_unstable_by_key(|(call, _)| *call);
        let call = |same: &[((EntryId, CallKind), RequestTotal)]| {
            let (to, kind) = same[0].0;
            Call { to, kind, mean: same.iter().map(|(_, request)| request.count).sum::<u64>() as f64 / per }
        };
        work.calls = calls.chunk_by(|left, right| left.0 == right.0).map(call).collect();
        let calls: Vec<RequestTotal> = calls.into_iter().map(|(_, request)| request).collect();
        variability::observe(&mut work, &calls, &sources, times, self.demands.alphabet(), self.joins);
        (work, source)
    }
}

/// Pauses count where they are more than this part of what else delays (ours): how they vary shows in nothing else.
const HARDLY: f64 = 0.05;

/// How long one of so many invocations pauses here, seconds.
pub fn pause(work: &WorkTotal, times: u64) -> f64 {
    work.pauses.sum.as_f64() / times.max(1) as f64
}

/// The variance of that from one of so many invocations to another, square seconds.
fn pause_variance(work: &WorkTotal, times: u64) -> f64 {
    let mean = pause(work, times);
    let each = work.pauses.mean().unwrap_or(0.0);
    let cv2 = work.pauses.cv2().unwrap_or(0.0);
    let square = (cv2 + 1.0) * each * each * work.pauses.count as f64 / times.max(1) as f64;
    (square - mean * mean).max(0.0)
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

/// Whether a caller waits for the reply of an entry of that type.
pub fn is_answered(interaction: Interaction) -> bool {
    matches!(interaction, Interaction::Rendezvous | Interaction::Forwarding)
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
pub type At<'w> = (Position, &'w WorkTotal);

/// The phase of a position, from 1 to 3.
pub fn phase_of(at: Position) -> u8 {
    at.phase.clamp(1, 3)
}
