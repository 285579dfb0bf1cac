//! What the numbers of an entry of a complete model were computed from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostics, Place};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, Moments, Position, RequestKind, SubModel, WorkTotal};
use crate::lqn::{ActivityId, Body, EntryId, Model};
use crate::model::body::pause;
use crate::model::config::{Configuration, Network, Setting};
use crate::model::demand::{DemandSource, Demands, is_measured};
use crate::model::origins::{ActivityOrigin, Origins};
use crate::model::parts::Parts;
use crate::model::weave;

/// An entry of a model with the sums that its numbers are made of.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The sub-model's entries that it stands for: one, or for a customer those of its scenarios and of tasks that stand for it.
    pub members: Vec<EntryIndex>,
    /// Whether it is a customer.
    pub customer: bool,
    /// Their sums.
    pub total: EntryTotal,
    /// Of how many executions the requests are: invocations of the entry, or how often it came to the activity.
    pub times: u64,
    /// Its demand, by position; the demand of a phase is the sum of its parts.
    pub demands: Vec<DemandPart>,
    /// The network latency of its calls, by position, where there is any.
    pub delays: Vec<DelayPart>,
    /// Its requests.
    pub requests: Vec<RequestPart>,
}

/// The demand at one position of an entry.
#[derive(Clone, Debug)]
pub struct DemandPart {
    /// Where in the invocation; [`None`] where the configuration gives the demand of the whole.
    pub position: Option<Position>,
    /// The activity of the model that it is the demand of, where the entry is a graph of activities.
    pub activity: Option<ActivityId>,
    /// Seconds, each of so many `times`.
    pub seconds: f64,
    /// The part of exclusive time that it is.
    pub share: f64,
    /// What sums were divided by: invocations, or how often a branch was taken.
    pub times: u64,
    /// Which source decided.
    pub source: DemandSource,
    /// The setting that decided, where one of the whole entry did.
    pub given: Option<Place>,
    /// Invocations that did work there.
    pub visits: u64,
    /// Exclusive times seen.
    pub exclusive: Moments,
    /// Activities seen, by name.
    pub activities: Vec<ActivityPart>,
}

/// The network latency of the calls at one position of an entry.
#[derive(Clone, Copy, Debug)]
pub struct DelayPart {
    /// Where in the invocation.
    pub position: Position,
    /// The activity of the model that they delay, where the entry is a graph of activities.
    pub activity: Option<ActivityId>,
    /// Seconds, each of so many `times`.
    pub seconds: f64,
    /// What sums were divided by: invocations, or how often a branch was taken.
    pub times: u64,
    /// What decided.
    pub network: Network,
    /// Latencies that were measured, one per call.
    pub seen: Moments,
    /// Times that passed without work, as templates or events say.
    pub pauses: Moments,
}

/// An activity at one position of an entry.
#[derive(Clone, Debug)]
pub struct ActivityPart {
    /// Its name, which may be empty.
    pub name: Arc<str>,
    /// How often it was seen.
    pub count: u64,
    /// Measured CPU times.
    pub cpu: Moments,
    /// Seconds of its resource function and where that is written, where there is one.
    pub function: Option<(f64, Place)>,
}

/// Requests to one entry.
#[derive(Clone, Debug)]
pub struct RequestPart {
    /// The entry of the model.
    pub to: EntryId,
    /// How they were made.
    pub kind: RequestKind,
    /// How many.
    pub count: u64,
    /// How many of them in each phase.
    pub phases: BTreeMap<u8, u64>,
    /// And how many at each position.
    pub positions: BTreeMap<Position, u64>,
}

impl Explained {
    /// What an entry of a model was computed from, the model having been made of that sub-model with that configuration.
    ///
    /// # Errors
    /// When the configuration's demands cannot be worked out.
    pub fn new(
        sub: &SubModel,
        configuration: &Configuration,
        (model, origins): (&Model, &Origins),
        entry: EntryId,
    ) -> Result<Self, Diagnostics> {
        let values = configuration.demands()?;
        let decided = &weave::decided(sub).sub;
        let task = model.entries[entry.index()].task;
        let (identifier, customer) = {
            let origin = &origins.tasks[task.index()];
            (Arc::clone(&origin.identifier), origin.customer)
        };
        let origin = &origins.entries[entry.index()];
        let ((members, total), whole) = if customer {
            let (members, whole) = of_customer(decided, configuration, &identifier, origin.total);
            ((members, whole.clone()), whole)
        } else {
            ((vec![origin.total], decided.entry(origin.total).clone()), sub.entry(origin.total).clone())
        };
        let mut demands = Demands::new(&sub.names, &configuration.demand, &values);
        demands.doubting = false;
        let name = &model.entries[entry.index()].name;
        let measured = is_measured(&total);
        let activity_at = |position: Position| {
            let here = |own: &ActivityOrigin| own.entry == entry && own.position == Some(position);
            origins.activities.iter().position(here).map(ActivityId::from)
        };
        let mut demands = match demands.of_entry(name, &total) {
            Some(seconds) => vec![DemandPart {
                position: None,
                activity: None,
                seconds,
                share: 1.0,
                times: 1,
                source: DemandSource::Function,
                given: configuration.demand.entries.get(&**name).map(|demand| demand.place.clone()),
                visits: total.invocations,
                exclusive: Moments::default(),
                activities: Vec::new(),
            }],
            None => positions(&total)
                .into_iter()
                .map(|(position, work)| {
                    let times = times(&total, position);
                    let (own, source) = demands.of(&identifier, work, times, measured);
                    let share = if source == DemandSource::Exclusive { origin.own_time.processor } else { 1.0 };
                    let seconds = own * share;
                    DemandPart {
                        share,
                        position: Some(position),
                        activity: activity_at(position),
                        seconds,
                        times,
                        source,
                        given: None,
                        visits: work.visits,
                        exclusive: work.exclusive,
                        activities: activities(sub, configuration, &values, &identifier, work),
                    }
                })
                .collect(),
        };
        let network = Network::of(configuration, &origins.tasks[task.index()]);
        let delay = |(position, work): (Position, &WorkTotal)| {
            let times = times(&total, position);
            let activity = activity_at(position);
            let fitted = activity.map(|own| model.activities[own.index()].work.think_time);
            let seconds = fitted.unwrap_or_else(|| network.delay(work, times) + pause(work, times));
            let (seen, pauses) = (work.network, work.pauses);
            (seconds > 0.0).then_some(DelayPart { position, activity, seconds, times, network, seen, pauses })
        };
        let mut delays: Vec<DelayPart> = positions(&total).into_iter().filter_map(delay).collect();
        as_fitted(model, entry, &total, network, &mut demands, &mut delays);
        let requests = requests(&total, origins, &members);
        // What was seen, not how it was put in order: that is what evidence adds up to.
        Ok(Self { times: total.invocations, members, customer, total: whole, demands, delays, requests })
    }

    /// Of one activity of the entry only, which is at that position.
    #[must_use]
    pub fn of_activity(mut self, activity: ActivityId, position: Position) -> Self {
        self.demands.retain(|part| part.activity == Some(activity));
        self.delays.retain(|part| part.activity == Some(activity));
        self.times = self.demands.first().map_or(self.times, |part| part.times);
        for request in &mut self.requests {
            request.count = request.positions.get(&position).copied().unwrap_or(0);
            request.positions.retain(|other, _| *other == position);
            request.phases = BTreeMap::from([(position.phase.clamp(1, 3), request.count)]);
        }
        self.requests.retain(|request| request.count > 0);
        self
    }
}

/// Demands and delays as the model has them, which are fitted to traced responses beyond the sums that they come from.
fn as_fitted(
    model: &Model,
    entry: EntryId,
    total: &EntryTotal,
    network: Network,
    demands: &mut [DemandPart],
    delays: &mut Vec<DelayPart>,
) {
    match &model.entries[entry.index()].body {
        Body::Activities(_) => {
            for part in demands {
                if let (Some(activity), None) = (part.activity, &part.given) {
                    part.seconds = model.activities[activity.index()].work.demand;
                }
            }
        }
        Body::Phases(phases) => {
            for (phase, work) in (1_u8..).zip(phases) {
                let here = |position: Option<Position>| position.map_or(1, |at| at.phase.clamp(1, 3)) == phase;
                let known: f64 = demands.iter().filter(|part| here(part.position)).map(|part| part.seconds).sum();
                let first = demands.iter_mut().find(|part| here(part.position) && part.given.is_none());
                if let Some(first) = first.filter(|_| !is_same(known, work.demand)) {
                    first.seconds += work.demand - known;
                }
                let own = |part: &DelayPart| here(Some(part.position));
                let known: f64 = delays.iter().filter(|part| own(part)).map(|part| part.seconds).sum();
                if is_same(known, work.think_time) {
                    continue;
                }
                let missing = work.think_time - known;
                match delays.iter_mut().find(|part| own(part)) {
                    Some(first) => first.seconds += missing,
                    None => delays.push(DelayPart {
                        position: Position { stage: 0, branch: None, phase },
                        activity: None,
                        seconds: missing,
                        times: total.invocations,
                        network,
                        seen: Moments::default(),
                        pauses: Moments::default(),
                    }),
                }
            }
        }
    }
}

/// Whether two sums of the same seconds differ by no more than their last digits.
fn is_same(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-12 * left.abs().max(right.abs())
}

/// What the sums at a position are divided by: a strand is come to as often as its block.
fn times(total: &EntryTotal, position: Position) -> u64 {
    let block = position.branch.and_then(|branch| total.blocks.get(&branch.block));
    block.map_or(total.invocations, |block| block.times)
}

/// The entries that a customer stands for, and their sums.
fn of_customer(
    sub: &SubModel,
    configuration: &Configuration,
    scenario: &str,
    first: EntryIndex,
) -> (Vec<EntryIndex>, EntryTotal) {
    let mut parts = Parts::new(sub);
    let services = parts.entries.clone();
    parts.configure(configuration, &mut Vec::new());
    let Some(customer) = parts.customers.iter().find(|customer| *customer.scenario == *scenario) else {
        return (vec![first], sub.entry(first).clone());
    };
    let own = |index: &EntryIndex| {
        let entry = sub.entry(*index);
        let of = |name: &str| sub.names.text(entry.task) == name || sub.names.text(entry.service) == name;
        let member = customer.members.iter().any(|(name, _)| of(name));
        entry.interaction == Interaction::Customer && (*index == customer.first || of(scenario) || member)
    };
    let mut members: Vec<EntryIndex> = sub.canonical_order().into_iter().filter(own).collect();
    // Entries of tasks that stand for a customer are no entries of the model; those that this one begins are its own.
    let folded = services.into_iter().filter(|index| !parts.entries.contains(index));
    let begun = |index: &EntryIndex| {
        let works = members.iter().flat_map(|member| sub.entry(*member).work.values());
        works.flat_map(|work| work.requests.keys()).any(|(_, to)| to == index)
    };
    let folded: Vec<EntryIndex> = folded.filter(begun).collect();
    members.extend(folded);
    (members, customer.total.clone())
}

/// Work by position, in order.
fn positions(total: &EntryTotal) -> BTreeMap<Position, &WorkTotal> {
    total.work.iter().map(|(position, work)| (*position, work)).collect()
}

fn activities(
    sub: &SubModel,
    configuration: &Configuration,
    values: &crate::model::config::DemandValues,
    task: &str,
    work: &WorkTotal,
) -> Vec<ActivityPart> {
    let mut activities: Vec<ActivityPart> = work
        .activities
        .iter()
        .map(|(name, seen)| {
            let text = sub.names.shared(*name);
            let place = values.setting(task, &text).map(|setting| place_of(configuration, &setting));
            let function = values.of(task, &text).map(|seconds| (seconds, place.unwrap_or(Place::Nowhere)));
            ActivityPart { name: text, count: seen.count, cpu: seen.cpu, function }
        })
        .collect();
    activities.sort_by(|left, right| left.name.cmp(&right.name));
    activities
}

fn place_of(configuration: &Configuration, setting: &Setting) -> Place {
    let demand = &configuration.demand;
    let found = match setting {
        Setting::TaskActivity(task, activity) => {
            demand.tasks.get(task).and_then(|own| own.activities.get(activity)).map(|own| &own.place)
        }
        Setting::Activity(activity) => demand.activities.get(activity).map(|own| &own.place),
        Setting::TaskDefault(task) => demand.tasks.get(task).and_then(|own| own.default.as_ref()).map(|own| &own.place),
        Setting::Default => demand.default.as_ref().map(|own| &own.place),
    };
    found.cloned().unwrap_or(Place::Nowhere)
}

fn requests(total: &EntryTotal, origins: &Origins, members: &[EntryIndex]) -> Vec<RequestPart> {
    let entries: BTreeMap<EntryIndex, EntryId> = origins
        .entries
        .iter()
        .enumerate()
        .filter(|(_, origin)| origin.interaction != Interaction::Customer)
        .map(|(place, origin)| (origin.total, EntryId::from(place)))
        .collect();
    let mut sums: BTreeMap<(EntryId, RequestKind), BTreeMap<Position, u64>> = BTreeMap::new();
    for (position, work) in &total.work {
        for ((kind, to), request) in &work.requests {
            if let (Some(&entry), false) = (entries.get(to), members.contains(to)) {
                *sums.entry((entry, *kind)).or_default().entry(*position).or_default() += request.count;
            }
        }
    }
    let part = |((to, kind), positions): ((EntryId, RequestKind), BTreeMap<Position, u64>)| {
        let mut phases = BTreeMap::new();
        for (position, count) in &positions {
            *phases.entry(position.phase.clamp(1, 3)).or_default() += count;
        }
        RequestPart { to, kind, count: positions.values().sum(), phases, positions }
    };
    sums.into_iter().map(part).collect()
}
