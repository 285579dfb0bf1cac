//! Where a model, at the load that was traced, does not respond as the traces did, and why.
//!
//! The model is solved twice more, without any queueing: as it is, and with all of the time in which services worked by themselves as demand. The second one takes what
//! was traced, unless calls, forks or lost spans are why. What lies between the two queued in the traces. So a cause is told where it is the cause; where several may
//! be, they are named as such.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::quantity::{number, time};
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::results::Results;
use crate::lqn::{Body, CallKind, EntryId, Model, Multiplicity, Scheduling, TaskId, Work};
use crate::model::contexts::Context;
use crate::model::{DemandSource, Load, LoadReason, Origins, OwnTime, ScenarioOrigin, codes};
use crate::solve::bounds::Resource;
use crate::solve::{SolveOptions, solve};
use crate::study::bottleneck::busiest;
use crate::study::outlook::Outlook;
use crate::study::scenario::{ScenarioResult, has_few_operations, is_about};

/// How far a prediction under a configured load may lie from what was traced, as a share of it, before it is worth a word.
const TOLERANCE: f64 = 0.2;

/// The same where the load is the traced one itself.
const AS_TRACED: f64 = 0.05;

/// Where the model, at the load that was traced, does not respond as the traces did: a model that cannot tell what was seen should
/// not be trusted with what was not. A configured load is that of the traces where as many operations come of it. `outlook` has the
/// responses that a simulation predicts: where these are as traced, the solver's approximation is the cause.
pub fn unlike_traced(
    model: &Model,
    results: &Results,
    origins: &Origins,
    outlook: Option<&Outlook>,
) -> Vec<Diagnostic> {
    let scenarios = ScenarioResult::all(model, results, origins);
    // The traces do not tell how one scenario responds under another load of the others.
    if !scenarios.iter().all(ScenarioResult::has_traced_load) {
        return Vec::new();
    }
    let assumed = scenarios.iter().any(|scenario| scenario.origin.reason == LoadReason::Assumed);
    let (unqueued, whole) = (OnceCell::new(), OnceCell::new());
    let causes = Causes { model, results, origins, outlook, assumed, unqueued, whole };
    let found = scenarios.iter().filter_map(|scenario| Some((scenario.throughput, causes.finding(scenario)?)));
    of_the_busiest(found.collect(), "responses")
}

/// The most scenarios that get a finding each.
const SHOWN: usize = 8;

/// Findings of the scenarios with the highest throughput, in their order, and one that counts the rest. Each comes with the throughput of its scenario.
pub(super) fn of_the_busiest(found: Vec<(f64, Diagnostic)>, what: &str) -> Vec<Diagnostic> {
    let more = found.len().saturating_sub(SHOWN);
    let rest = found.first().filter(|_| more > 0).map(|(_, finding)| {
        let message = format!("predicted {what} of {more} more scenarios are unlike the traced ones");
        Diagnostic::warning(finding.code, Place::Nowhere, message)
            .with_note(format!("findings above name the {SHOWN} scenarios with the highest throughput"))
            .with_hint("the table shows all of them, predicted beside traced")
    });
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|left, right| found[*right].0.total_cmp(&found[*left].0));
    let shown: BTreeSet<usize> = order.into_iter().take(SHOWN).collect();
    let shown = found.into_iter().enumerate().filter(|(number, _)| shown.contains(number));
    shown.map(|(_, (_, finding))| finding).chain(rest).collect()
}

/// How a prediction differs from what was traced, in words.
pub(super) fn compared(scenario: &str, what: &str, predicted: f64, traced: f64) -> String {
    let percent = ((predicted / traced - 1.0).abs() * 100.0).round();
    let way = if predicted < traced { "below" } else { "above" };
    let (predicted, traced) = (time(predicted), time(traced));
    format!("scenario `{scenario}`: predicted {what} {predicted} is {percent} % {way} the traced {traced}")
}

/// What may be why a prediction is unlike what was traced.
struct Causes<'c> {
    model: &'c Model,
    results: &'c Results,
    origins: &'c Origins,
    /// What a simulation predicts, too.
    outlook: Option<&'c Outlook>,
    /// Whether a load is assumed.
    assumed: bool,
    /// The model without queueing.
    unqueued: OnceCell<Option<(Model, Results)>>,
    /// The same with all of the time in which services worked by themselves.
    whole: OnceCell<Option<(Model, Results)>>,
}

/// A response that was predicted, and the traced one, seconds.
#[derive(Clone, Copy)]
struct Gap {
    predicted: f64,
    traced: f64,
}

impl Gap {
    /// Whether a figure that leaves out a part of the model is as far from what was traced, and to the same side.
    fn is_left(self, without: f64) -> bool {
        let (gap, left) = (self.predicted - self.traced, without - self.traced);
        gap * left > 0.0 && left.abs() > gap.abs() / 2.0
    }
}

impl Causes<'_> {
    fn finding(&self, scenario: &ScenarioResult<'_>) -> Option<Diagnostic> {
        let origin = scenario.origin;
        let gap = Gap { predicted: scenario.response?, traced: origin.observed_response? };
        let Gap { predicted, traced } = gap;
        let load = match (origin.reason, origin.observed_rate) {
            (LoadReason::Observed, _) => "at the traced load".to_owned(),
            (LoadReason::Configured, Some(rate)) => {
                let (own, rate) = (number(scenario.throughput), number(rate));
                format!("though the configured load, {own} operations a second, is about the traced one, {rate}")
            }
            (LoadReason::Assumed, _) => "at the load that is assumed".to_owned(),
            (LoadReason::Configured, None) => return None,
        };
        let tolerance = if origin.reason == LoadReason::Configured { TOLERANCE } else { AS_TRACED };
        // The mean of few operations is off by chance.
        let chance = origin.response_error.filter(|_| has_few_operations(origin)).map_or(0.0, f64::exp_m1);
        let tolerance = tolerance.max(chance);
        if traced <= 0.0 || (predicted - traced).abs() <= (traced * tolerance).max(origin.clock_doubt) {
            return None;
        }
        let message = format!("{}, {load}", compared(&origin.name, "response", predicted, traced));
        let finding = Diagnostic::warning(codes::UNLIKE_TRACED, Place::Nowhere, message);
        let too_many = |rate| scenario.throughput > rate && !is_about(scenario.throughput, rate);
        if let (true, LoadReason::Observed, Some(rate)) = (predicted > traced, origin.reason, origin.observed_rate)
            && too_many(rate)
        {
            let why = format!(
                "the model's customers make {} operations a second, and {} were traced: it has more load than the system had",
                number(scenario.throughput),
                number(rate)
            );
            return Some(finding.with_note(why).with_hint(LOAD));
        }
        let loads = self.outlook.into_iter().flat_map(|outlook| &outlook.loads);
        let simulated = loads.filter(|load| *load.name == *origin.name).find_map(|load| load.simulated_response);
        // A simulation that is twice as near leaves less than half of it to explain.
        let near = (traced * tolerance).max((predicted - traced).abs() / 2.0);
        if let Some(simulated) = simulated.filter(|other| (other - traced).abs() <= near) {
            let why =
                format!("the solver's approximation is why: a simulation of the same model takes {}", time(simulated));
            return Some(finding.with_note(why).with_hint("`--solver simulate` solves by simulation"));
        }
        Some(if predicted < traced { self.below(finding, origin, gap) } else { self.above(finding, origin, gap) })
    }

    /// What the scenario takes in the model without any queueing, seconds.
    fn alone(&self, origin: &ScenarioOrigin) -> Option<f64> {
        let (model, results) = self.unqueued.get_or_init(|| without_queues(self.model.clone())).as_ref()?;
        ScenarioResult::one(model, results, origin).response
    }

    /// The same where all of the time in which services worked by themselves is demand.
    fn with_own_time(&self, origin: &ScenarioOrigin) -> Option<f64> {
        let made = || without_queues(with_own_time(self.model, self.origins));
        let (model, results) = self.whole.get_or_init(made).as_ref()?;
        ScenarioResult::one(model, results, origin).response
    }

    fn comes_from(&self, source: DemandSource) -> bool {
        self.origins.entries.iter().any(|entry| entry.sources.contains(&source))
    }

    /// What queues in the model, and what queued in the traces; `None` where traces do not tell.
    fn queueing(&self, origin: &ScenarioOrigin, gap: Gap) -> Option<String> {
        if !self.origins.divided {
            return None;
        }
        let alone = self.alone(origin)?;
        let (own, traced) = ((gap.predicted - alone).max(0.0), (self.with_own_time(origin)? - alone).max(0.0));
        let most = self.busiest_of(origin).filter(|_| own > traced);
        let named = most.map(|(resource, part)| self.named(resource, part));
        let most = named.map(|busy| format!(", most of all for {busy}")).unwrap_or_default();
        Some(format!(
            "its operations queue for {} in the model{most}, and for {} in the traces, as far as the servers that were found tell",
            time(own),
            time(traced)
        ))
    }

    /// The busiest of the elements that operations of the scenario wait for.
    fn busiest_of(&self, origin: &ScenarioOrigin) -> Option<(Resource, f64)> {
        let mut most: Option<(Resource, f64)> = None;
        let waited_for = self.waited_for(origin);
        let task_of = |entry: &EntryId| self.model.entries[entry.index()].task;
        let processors =
            waited_for.iter().map(|entry| Resource::Processor(self.model.tasks[task_of(entry).index()].processor));
        let is_customer = |task: &TaskId| self.model.tasks[task.index()].scheduling == Scheduling::Reference;
        let tasks = waited_for.iter().map(task_of).filter(|task| !is_customer(task));
        for resource in processors.chain(tasks.map(Resource::Task)) {
            let part = resource.utilization(self.model, self.results);
            if part > 0.0 && most.is_none_or(|(_, least)| part > least) {
                most = Some((resource, part));
            }
        }
        most
    }

    /// That new work goes first where operations of the scenario queue most, and that the model lets all share.
    fn new_goes_first(&self, origin: &ScenarioOrigin) -> Option<String> {
        let (Resource::Processor(id), _) = self.busiest_of(origin)? else { return None };
        let name = &self.model.processors[id.index()].name;
        let quantum = self.origins.quanta.get(&**name)?;
        Some(format!(
            "`{name}` serves the first {} of each invocation before all others, and the model serves all equally: shorter work queues less than predicted, longer work more",
            time(*quantum)
        ))
    }

    /// The entries that operations of the scenario wait for.
    fn waited_for(&self, origin: &ScenarioOrigin) -> BTreeSet<EntryId> {
        let mut calls: BTreeMap<EntryId, Vec<EntryId>> = BTreeMap::new();
        let waits = |work: &Work| -> Vec<EntryId> {
            let waits = work.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
            waits.map(|call| call.to).collect()
        };
        for (number, entry) in self.model.entries.iter().enumerate() {
            let own = calls.entry(EntryId::from(number)).or_default();
            own.extend(entry.forwarding.iter().map(|forwarding| forwarding.to));
            if let Body::Phases(phases) = &entry.body {
                own.extend(phases.iter().flat_map(waits));
            }
        }
        for (activity, of) in self.model.activities.iter().zip(&self.origins.activities) {
            calls.entry(of.entry).or_default().extend(waits(&activity.work));
        }
        let customer = origin.customer.and_then(|task| self.model.tasks.get(task.index()));
        let mut left: Vec<EntryId> = origin.first.iter().map(|(entry, _)| *entry).collect();
        left.extend(customer.into_iter().flat_map(|task| &task.entries));
        let mut found: BTreeSet<EntryId> = BTreeSet::new();
        while let Some(entry) = left.pop() {
            if found.insert(entry) {
                left.extend(calls.get(&entry).into_iter().flatten());
            }
        }
        found
    }

    /// The busiest element of the model.
    fn busiest(&self) -> Option<String> {
        let busy = busiest(self.model, self.results)?;
        Some(self.named(busy.resource, busy.part))
    }

    fn named(&self, resource: Resource, part: f64) -> String {
        let name = match resource {
            Resource::Processor(id) => format!("processor `{}`", self.model.processors[id.index()].name),
            Resource::Task(id) => format!("the threads of `{}`", self.model.tasks[id.index()].name),
        };
        format!("{name}, {} % busy", (100.0 * part).round())
    }

    /// Why a prediction is too low, and what to do about it.
    fn below(&self, finding: Diagnostic, origin: &ScenarioOrigin, gap: Gap) -> Diagnostic {
        if self.comes_from(DemandSource::Function) {
            return finding
                .with_note("demands of the configuration are less than what was traced")
                .with_hint("see to the functions under `[demand]`");
        }
        let is_structure = self.with_own_time(origin).is_none_or(|whole| gap.is_left(whole));
        if is_structure && let Some(why) = shared(origin, gap.predicted - gap.traced) {
            return finding.with_note(why);
        }
        let has_cpu = self.comes_from(DemandSource::Cpu);
        if is_structure && !has_cpu && !works(self.model).any(|work| work.think_time > 0.0) {
            return finding.with_note("the model has no network latency").with_hint(
                "set `network` under `[defaults]`: \"traced\" where traces have both halves of calls, or a time per call",
            );
        }
        if has_cpu {
            return finding
                .with_note("measured CPU leaves out what tasks wait for beside other tasks: pools, locks, disks")
                .with_hint(
                    "give pools their `threads`, and tasks that share a machine one `processor`; for other waits, read the model for \
                     differences, not for totals",
                );
        }
        if is_structure {
            return finding.with_note("some of the traced time is neither demand nor network latency").with_hint(
                "`dyelog trace check` tells what of the traces could not be used; else read the model for differences, not for totals",
            );
        }
        match self.queueing(origin, gap) {
            Some(queueing) => finding
                .with_note(queueing)
                .with_note(self.new_goes_first(origin).unwrap_or_else(|| BURSTS.to_owned()))
                .with_hint(LOAD),
            None => finding,
        }
    }

    /// Why a prediction is too high: what the scenario takes without any queueing tells whether queueing is why.
    fn above(&self, finding: Diagnostic, origin: &ScenarioOrigin, gap: Gap) -> Diagnostic {
        let Some(alone) = self.alone(origin) else { return finding };
        if self.assumed && alone - gap.traced <= (gap.predicted - gap.traced) / 2.0 {
            let why = "operations meet others in the model, at a rate that no trace tells; those that were traced met none, or fewer";
            return finding.with_note(why).with_hint(LOAD);
        }
        if gap.is_left(alone) {
            let finding =
                finding.with_note(format!("queueing is not why: without any the model takes {}", time(alone)));
            if let Some(why) = shared(origin, alone - gap.traced) {
                return finding.with_note(why);
            }
            return if self.comes_from(DemandSource::Function) {
                finding.with_hint("see to the functions under `[demand]`: they ask for more than what was traced")
            } else {
                finding
            };
        }
        if let Some(cv2) =
            origin.interarrival_cv2.filter(|cv2| *cv2 < REGULAR && matches!(origin.load, Load::Open { .. }))
        {
            return finding
                .with_note(format!(
                    "operations begin at regular intervals, as a load generator of constant rate lets them (squared coefficient of variation {}), and the model lets them begin at \
                     random: it has more queueing than the traces",
                    format_args!("{cv2:.2}")
                ))
                .with_hint("users come at random: for their load, the prediction is the better one");
        }
        if let Some(queueing) = self.queueing(origin, gap) {
            let finding = finding.with_note(queueing);
            if let Some(why) = self.new_goes_first(origin) {
                return finding.with_note(why).with_hint("utilisation and what saturates first do not depend on that order; read responses as changes from one prediction to another");
            }
            let has_copies = self.model.processors.iter().any(|own| own.replicas > 1);
            let in_turn = if has_copies { "requests that copies get in turn and not by chance, " } else { "" };
            return finding
                .with_note(format!(
                    "one of these may be why: {in_turn}a pool or a lock that holds requests back before they get there, more servers than were found, \
                     invocations that wait within their spans for something that was not traced, customers that wait for their response, or load that is counted twice",
                ))
                .with_hint("give the pool its `threads`, or the processor its `multiplicity`, where you know them");
        }
        let Some(busy) = self.busiest() else { return finding };
        let finding =
            finding.with_note(format!("the model queues, most of all for {busy}; without, it takes {}", time(alone)));
        let finding = if self.comes_from(DemandSource::Exclusive) {
            finding.with_note("exclusive time includes the queueing there was, and counts in full as processor time")
        } else {
            finding
        };
        finding.with_hint("set the servers of processors (`multiplicity`), or trace under light load")
    }
}

/// That an entry takes another time when others call it, where that makes most of a gap, in seconds.
fn shared(origin: &ScenarioOrigin, gap: f64) -> Option<String> {
    let Context { caller, callee, here, in_all, error } = origin.context.as_ref()?;
    (error * gap > 0.0 && error.abs() > gap.abs() / 2.0).then(|| {
        format!(
            "`{callee}` takes {} when `{caller}` calls it, and {} on the mean of all calls: an entry has one demand for all callers",
            time(*here),
            time(*in_all)
        )
    })
}

/// Times between arrivals with a smaller squared coefficient of variation are regular: queues are about half as long as those of random arrivals then (Kingman 1961).
const REGULAR: f64 = 0.3;

/// Why operations may queue for longer than predicted.
const BURSTS: &str = "one of these may be why: arrivals that come in bursts, work that varies more than the model takes it to, or more arrivals than were counted";

/// What to do where the load is not that of the traces.
const LOAD: &str = "set `rate`, or `population` and `think_time`, of the scenario";

/// A model in which nothing ever queues, with its results.
pub(super) fn without_queues(mut model: Model) -> Option<(Model, Results)> {
    for processor in &mut model.processors {
        (processor.scheduling, processor.multiplicity) = (Scheduling::Delay, Multiplicity::Infinite);
    }
    for task in model.tasks.iter_mut().filter(|task| task.scheduling != Scheduling::Reference) {
        (task.scheduling, task.multiplicity) = (Scheduling::Delay, Multiplicity::Infinite);
    }
    let found = solve(&model, &SolveOptions::default(), None, &mut ()).ok()?;
    Some((model, found.results))
}

/// The model with the queueing that was traced as demand: delays are in it already.
fn with_own_time(model: &Model, origins: &Origins) -> Model {
    let mut model = model.clone();
    let grow = |work: &mut Work, own: OwnTime| {
        if own.processor > 0.0 {
            work.demand *= ((1.0 - own.delay) / own.processor).max(1.0);
        }
    };
    for (entry, origin) in model.entries.iter_mut().zip(&origins.entries) {
        if let Body::Phases(phases) = &mut entry.body {
            let sources = phases.iter_mut().zip(&origin.sources);
            let exclusive = sources.filter(|(_, source)| **source == DemandSource::Exclusive);
            exclusive.for_each(|(work, _)| grow(work, origin.own_time));
        }
    }
    for (activity, origin) in model.activities.iter_mut().zip(&origins.activities) {
        if origin.source == DemandSource::Exclusive {
            grow(&mut activity.work, origins.entries[origin.entry.index()].own_time);
        }
    }
    model
}

/// All work of a model.
fn works(model: &Model) -> impl Iterator<Item = &Work> {
    let phases = model.entries.iter().flat_map(|entry| match &entry.body {
        Body::Phases(phases) => &phases[..],
        Body::Activities(_) => &[],
    });
    phases.chain(model.activities.iter().map(|activity| &activity.work))
}

#[cfg(test)]
mod tests {
    use super::{Gap, compared};

    #[test]
    fn what_is_left_without_a_part_of_the_model_is_not_caused_by_it() {
        let above = Gap { predicted: 1.2, traced: 1.0 };
        assert!(above.is_left(1.15) && !above.is_left(1.05) && !above.is_left(0.7));
        let below = Gap { predicted: 0.8, traced: 1.0 };
        assert!(below.is_left(0.85) && !below.is_left(0.95) && !below.is_left(1.3));
    }

    #[test]
    fn figures_are_compared_in_one_way() {
        let told = compared("shop", "p95", 0.2, 0.1);
        assert_eq!(told, "scenario `shop`: predicted p95 200 ms is 100 % above the traced 100 ms");
    }
}
