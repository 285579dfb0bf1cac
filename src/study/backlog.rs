//! Consumers of asynchronous messages that get more of them than they serve. Nobody waits for such a consumer: its backlog grows for as
//! long as one looks, and the rest of the system goes on as if it were served.

use crate::diagnostic::quantity::number;
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::results::{Caller, Results};
use crate::lqn::{Body, CallKind, EntryId, Model, Multiplicity, TaskId, Work};
use crate::model::{Origins, codes};
use crate::study::batches::least_work;

/// How busy an overloaded consumer is in the model that is solved in place of one without a steady state.
const FULL: f64 = 0.98;

/// The part of its messages that a consumer gets while what it takes for one is looked at.
const FEW: f64 = 0.01;

/// Solutions until what consumers take for a message does not change any more.
const ROUNDS: usize = 4;

/// Parts of messages that differ by less are the same.
const SAME: f64 = 1e-3;

/// A consumer that gets more than it serves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Backlog {
    /// The consumer.
    pub task: TaskId,
    /// Messages that come, per second.
    pub arrivals: f64,
    /// Messages that it serves at most, per second.
    pub served: f64,
}

impl Backlog {
    /// A warning of it.
    pub fn finding(&self, model: &Model) -> Diagnostic {
        let name = &model.tasks[self.task.index()].name;
        let (arrivals, served) = (number(self.arrivals), number(self.served));
        let grows = number(self.arrivals - self.served);
        let message =
            format!("`{name}` gets {arrivals} messages a second and serves {served}: its backlog grows by {grows}/s");
        Diagnostic::warning(codes::BACKLOG, Place::Nowhere, message)
            .with_note("all else is solved as if it kept up: nobody waits for it")
    }
}

/// The solution of a model that has no steady state only since consumers are overloaded: what these do is that of consumers which are
/// just below saturation. One that takes messages in batches has larger ones instead, which cost less a message, until these are as large as the largest that was traced; only
/// beyond does its backlog grow. `None` where there are no such consumers, or something else is overloaded, too.
///
/// # Errors
/// Those of the solver.
pub fn beside_backlogs(
    model: &Model,
    origins: Option<&Origins>,
    solver: &mut dyn FnMut(&Model) -> Result<Results, Diagnostics>,
) -> Result<Option<(Results, Vec<Backlog>)>, Diagnostics> {
    let consumers = consumers(model);
    if consumers.is_empty() {
        return Ok(None);
    }
    let least = least_work(model, origins);
    let mut parts = vec![1.0; model.tasks.len()];
    for task in &consumers {
        parts[task.index()] = FEW;
    }
    let mut found = Full::default();
    for _ in 0..ROUNDS {
        let results = solver(&with_parts(model, &parts))?;
        if !results.convergence.converged {
            return Ok(None);
        }
        let Some((next, full)) = loads(model, &consumers, &parts, &least, &results) else { return Ok(None) };
        let settled = parts.iter().zip(&next).all(|(own, next)| (own - next).abs() < SAME);
        if settled {
            return Ok((!full.is_empty()).then(|| (at_capacity(model, results, &full), full.backlogs)));
        }
        (parts, found) = (next, full);
    }
    let results = solver(&with_parts(model, &parts))?;
    let beside = results.convergence.converged && !found.is_empty();
    Ok(beside.then(|| (at_capacity(model, results, &found), found.backlogs)))
}

/// Consumers that work all the time.
#[derive(Debug, Default)]
struct Full {
    /// Those that get more than they serve.
    backlogs: Vec<Backlog>,
    /// Those that serve all that they get in larger batches, with the part of it that they serve in batches of the traced size.
    in_batches: Vec<(TaskId, f64)>,
}

impl Full {
    fn is_empty(&self) -> bool {
        self.backlogs.is_empty() && self.in_batches.is_empty()
    }
}

/// The results in which overloaded consumers do what they can: they serve as much as they have room for, and what waits for them waits for ever, unless they serve all of it in
/// larger batches.
fn at_capacity(model: &Model, mut results: Results, full: &Full) -> Results {
    let overloaded = |task: TaskId| full.backlogs.iter().any(|backlog| backlog.task == task);
    let all = full.backlogs.iter().map(|backlog| (backlog.task, FULL));
    for (id, served) in all.chain(full.in_batches.iter().copied()) {
        let task = &model.tasks[id.index()];
        let own = &mut results.tasks[id.index()];
        results.processors[task.processor.index()].utilization += own.processor_utilization * (1.0 / FULL - 1.0);
        own.throughput /= served;
        own.processor_utilization /= FULL;
        own.utilization = task.multiplicity.servers();
    }
    for (entry, own) in model.entries.iter().zip(&mut results.entries) {
        if let Some((_, served)) = full.in_batches.iter().find(|(task, _)| *task == entry.task) {
            own.throughput /= served;
            own.processor_utilization /= FULL;
        }
    }
    for (entry, own) in model.entries.iter().zip(&mut results.entries).filter(|(entry, _)| overloaded(entry.task)) {
        own.throughput /= FULL;
        own.processor_utilization /= FULL;
        if model.tasks[entry.task.index()].multiplicity == Multiplicity::Infinite {
            own.service[0] = f64::INFINITY;
            own.utilization = f64::INFINITY;
        } else {
            own.utilization /= FULL;
        }
    }
    for (activity, own) in model.activities.iter().zip(&mut results.activities).filter(|(own, _)| overloaded(own.task))
    {
        own.throughput /= FULL;
        if model.tasks[activity.task.index()].multiplicity == Multiplicity::Infinite {
            own.service = f64::INFINITY;
        }
    }
    for call in results.calls.iter_mut().filter(|call| overloaded(model.entries[call.to.index()].task)) {
        call.waiting = f64::INFINITY;
    }
    results
}

/// Tasks that get nothing but asynchronous messages.
fn consumers(model: &Model) -> Vec<TaskId> {
    let mut sent = vec![false; model.tasks.len()];
    let mut waited_for = vec![false; model.tasks.len()];
    let task = |entry: EntryId| model.entries[entry.index()].task.index();
    for (_, call) in calls(model) {
        match call.kind {
            CallKind::Asynchronous => sent[task(call.to)] = true,
            CallKind::Synchronous => waited_for[task(call.to)] = true,
        }
    }
    for entry in &model.entries {
        for to in &entry.forwarding {
            waited_for[task(to.to)] = true;
        }
        waited_for[entry.task.index()] |= entry.open_arrival_rate.is_some();
    }
    let is_consumer = |id: &TaskId| {
        let source = model.tasks[id.index()].scheduling.is_source();
        sent[id.index()] && !waited_for[id.index()] && !source
    };
    (0..model.tasks.len()).map(TaskId::from).filter(is_consumer).collect()
}

/// All calls, and what makes them.
fn calls(model: &Model) -> impl Iterator<Item = (Caller, &crate::lqn::Call)> {
    let phases = model.entries.iter().enumerate().flat_map(|(place, entry)| {
        let works: &[Work] = match &entry.body {
            Body::Phases(works) => works,
            Body::Activities(_) => &[],
        };
        works
            .iter()
            .flat_map(move |work| work.calls.iter().map(move |call| (Caller::Phase(EntryId::from(place), 1), call)))
    });
    let activities = model.activities.iter().enumerate().flat_map(|(place, activity)| {
        activity.work.calls.iter().map(move |call| (Caller::Activity(place.into()), call))
    });
    phases.chain(activities)
}

/// The model in which consumers get these parts of their messages.
fn with_parts(model: &Model, parts: &[f64]) -> Model {
    let mut model = model.clone();
    let part: Vec<f64> = model.entries.iter().map(|entry| parts[entry.task.index()]).collect();
    let phases = model.entries.iter_mut().flat_map(|entry| match &mut entry.body {
        Body::Phases(works) => &mut works[..],
        Body::Activities(_) => &mut [],
    });
    let works = phases.chain(model.activities.iter_mut().map(|activity| &mut activity.work));
    for call in works.flat_map(|work| &mut work.calls).filter(|call| call.kind == CallKind::Asynchronous) {
        call.mean *= part[call.to.index()];
    }
    model
}

/// The parts of their messages that consumers serve in batches of the traced size, by task, and which of them work all the time; `least` are the parts of their work in the largest
/// batches. `None` where a consumer shares an overloaded processor with others, which it then holds up.
fn loads(
    model: &Model,
    consumers: &[TaskId],
    parts: &[f64],
    least: &[f64],
    results: &Results,
) -> Option<(Vec<f64>, Full)> {
    let mut arrivals = vec![0.0; model.tasks.len()];
    for (caller, call) in calls(model).filter(|(_, call)| call.kind == CallKind::Asynchronous) {
        let throughput = match caller {
            Caller::Phase(entry, _) | Caller::Forward(entry) => results.entries[entry.index()].throughput,
            Caller::Activity(activity) => results.activities[activity.index()].throughput,
        };
        arrivals[model.entries[call.to.index()].task.index()] += throughput * call.mean;
    }
    // Of threads and of processors, if all messages were served.
    let mut threads = vec![0.0; model.tasks.len()];
    let mut processors: Vec<f64> = results.processors.iter().map(|result| result.utilization).collect();
    for &task in consumers {
        let (own, part) = (&results.tasks[task.index()], parts[task.index()]);
        let more = 1.0 / part - 1.0;
        threads[task.index()] = own.utilization / part / model.tasks[task.index()].multiplicity.servers();
        processors[model.tasks[task.index()].processor.index()] += more * own.processor_utilization;
    }
    let mut next = vec![1.0; model.tasks.len()];
    let mut full = Full::default();
    for &task in consumers {
        let processor = model.tasks[task.index()].processor;
        let servers = model.processors[processor.index()].multiplicity;
        let of_processor = match servers {
            Multiplicity::Infinite => 0.0,
            Multiplicity::Finite(servers) => processors[processor.index()] / f64::from(servers),
        };
        let shared = model
            .tasks
            .iter()
            .enumerate()
            .any(|(place, other)| other.processor == processor && !consumers.contains(&TaskId::from(place)));
        if of_processor >= 1.0 && shared {
            return None;
        }
        let load = threads[task.index()].max(of_processor);
        if load >= 1.0 {
            next[task.index()] = FULL / load;
            let arrivals = arrivals[task.index()];
            match load * least[task.index()] {
                load if load >= 1.0 => full.backlogs.push(Backlog { task, arrivals, served: arrivals / load }),
                _ => full.in_batches.push((task, FULL / load)),
            }
        }
    }
    Some((next, full))
}
