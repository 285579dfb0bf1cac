//! A model under the load that other traces were recorded with.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lqn::results::{Caller, Results};
use crate::lqn::{CallKind, EntryId, Model, Multiplicity, Scheduling, TaskId};
use crate::model::{Load, LoadReason, Origins, ScenarioOrigin};
use crate::solve::{SolveOptions, solve};
use crate::study::ScenarioResult;

/// Solutions that look for the think time with which customers make a rate.
const SOLUTIONS: u32 = 30;

/// How near the throughput of customers has to come to the rate, as a part of it.
const NEAR: f64 = 1e-3;

/// The load of a scenario, and where its requests go.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioLoad {
    /// The scenario's name.
    pub name: Arc<str>,
    /// The load.
    pub load: Load,
    /// Operations per second.
    pub rate: f64,
    /// Requests of an operation to entries, by their names.
    pub first: Vec<(Arc<str>, f64)>,
}

impl ScenarioLoad {
    /// The loads that a model of traces has, where the traces have a rate. Of others the name is given.
    pub fn all(model: &Model, origins: &Origins) -> (Vec<Self>, Vec<Arc<str>>) {
        let (mut loads, mut unknown) = (Vec::new(), Vec::new());
        for scenario in &origins.scenarios {
            let rate = scenario.observed_rate.or(match scenario.load {
                Load::Open { rate } => Some(rate),
                Load::Closed { population, think_time } => {
                    let cycle = think_time + scenario.observed_response.unwrap_or(0.0);
                    (scenario.reason != LoadReason::Assumed && cycle > 0.0).then(|| f64::from(population) / cycle)
                }
            });
            let first = match scenario.customer {
                Some(task) => requests_of(model, task),
                None => scenario.first.clone(),
            };
            let first = first.iter().map(|(entry, mean)| (Arc::clone(&model.entries[entry.index()].name), *mean));
            match rate {
                Some(rate) if rate > 0.0 => loads.push(Self {
                    name: Arc::clone(&scenario.name),
                    load: scenario.load,
                    rate,
                    first: first.collect(),
                }),
                _ => unknown.push(Arc::clone(&scenario.name)),
            }
        }
        (loads, unknown)
    }
}

/// Requests of a customer's cycle that are waited for.
fn requests_of(model: &Model, customer: TaskId) -> Vec<(EntryId, f64)> {
    let mut first: BTreeMap<EntryId, f64> = BTreeMap::new();
    for request in model.requests().filter(|request| request.kind == Some(CallKind::Synchronous)) {
        let caller = match request.from {
            Caller::Phase(entry, _) | Caller::Forward(entry) => model.entries[entry.index()].task,
            Caller::Activity(activity) => model.activities[activity.index()].task,
        };
        if caller == customer {
            *first.entry(request.to).or_default() += request.mean;
        }
    }
    first.into_iter().collect()
}

/// A model under some load, and what its scenarios are.
#[derive(Clone, Debug, Default)]
pub struct AtLoad {
    /// The model.
    pub model: Model,
    /// Scenarios that it has; nothing else is known of where its elements come from.
    pub origins: Origins,
    /// Why others cannot be had.
    pub missing: Vec<String>,
}

/// The model under these loads. Scenarios are found by the names of their customers, else by those of the entries that they begin with.
pub fn at_load(model: &Model, loads: &[ScenarioLoad]) -> AtLoad {
    let mut at = AtLoad { model: model.clone(), ..AtLoad::default() };
    for entry in &mut at.model.entries {
        entry.open_arrival_rate = None;
    }
    let mut steered: Vec<(TaskId, f64)> = Vec::new();
    let mut met: Vec<TaskId> = Vec::new();
    for load in loads {
        if let Some(task) = customer_of(model, &load.name) {
            met.push(task);
            match load.load {
                Load::Closed { population, think_time } => set_customers(&mut at.model, task, population, think_time),
                Load::Open { rate } => steered.push((task, rate)),
            }
            // Customers that make the rate of arrivals are customers still.
            let own = &at.model.tasks[task.index()];
            let population = match own.multiplicity {
                Multiplicity::Finite(population) => population,
                Multiplicity::Infinite => u32::MAX,
            };
            let closed = Load::Closed { population, think_time: own.think_time };
            at.origins.scenarios.push(scenario(load, closed, Some(task), Vec::new()));
            continue;
        }
        let found: Option<Vec<(EntryId, f64)>> =
            load.first.iter().map(|(name, mean)| model.entry_named(name).map(|entry| (entry, *mean))).collect();
        match found.filter(|found| !found.is_empty()) {
            Some(found) => {
                for (entry, mean) in &found {
                    // A rate is that of each copy.
                    let copies = model.copies_of(*entry);
                    let arrivals = &mut at.model.entries[entry.index()].open_arrival_rate;
                    *arrivals = Some(arrivals.unwrap_or(0.0) + load.rate * mean / copies);
                }
                at.origins.scenarios.push(scenario(load, Load::Open { rate: load.rate }, None, found));
            }
            None => at.missing.push(format!(
                "scenario `{}`: the model has neither customers of that name nor the entries that it begins with",
                load.name
            )),
        }
    }
    for (number, task) in model.tasks.iter().enumerate() {
        if task.scheduling == Scheduling::Reference && !met.contains(&TaskId::from(number)) {
            at.missing.push(format!("the model has customers `{}`, and the traces have none such", task.name));
        }
    }
    steer(&mut at, &steered);
    at
}

fn scenario(load: &ScenarioLoad, own: Load, customer: Option<TaskId>, first: Vec<(EntryId, f64)>) -> ScenarioOrigin {
    ScenarioOrigin {
        name: Arc::clone(&load.name),
        operations: 0,
        failures: 0,
        load: own,
        reason: LoadReason::Observed,
        observed_response: None,
        clock_doubt: 0.0,
        observed_quantiles: crate::lqn::sketch::Quantiles::default(),
        response_error: None,
        interarrival_cv2: None,
        observed_rate: Some(load.rate),
        rate_error: None,
        is_least_rate: false,
        context: None,
        customer,
        first,
        members: Vec::new(),
    }
}

/// The customers of a scenario, whose task has its name.
fn customer_of(model: &Model, scenario: &str) -> Option<TaskId> {
    let own = model.tasks.iter().position(|task| {
        task.scheduling == Scheduling::Reference
            && (*task.name == *scenario || task.name.strip_prefix("Cu_") == Some(scenario))
    });
    own.map(TaskId::from)
}

fn set_customers(model: &mut Model, task: TaskId, population: u32, think_time: f64) {
    let task = &mut model.tasks[task.index()];
    (task.multiplicity, task.think_time) = (Multiplicity::Finite(population.max(1)), think_time);
}

/// Gives customers the think time with which they make as many operations as arrived, by Little's law. With more customers than are ever
/// there they are as good as open arrivals.
fn steer(at: &mut AtLoad, steered: &[(TaskId, f64)]) {
    if steered.is_empty() {
        return;
    }
    for &(task, rate) in steered {
        let own = &mut at.model.tasks[task.index()];
        own.think_time = own.multiplicity.servers() / rate;
    }
    let mut warm_start = None;
    for _ in 0..SOLUTIONS {
        let Ok(found) = solve(&at.model, &SolveOptions::default(), warm_start.take(), &mut ()) else { return };
        let mut far = false;
        for &(task, rate) in steered {
            let result = &found.results.tasks[task.index()];
            let own = &mut at.model.tasks[task.index()];
            let response = result.response().unwrap_or(0.0);
            far |= (result.throughput / rate - 1.0).abs() > NEAR;
            own.think_time = (own.multiplicity.servers() / rate - response).max(0.0);
        }
        if !far {
            return;
        }
        warm_start = found.results.convergence.converged.then_some(found.warm_start);
    }
    at.missing.push("the model's customers are too few to make the rate that was measured".to_owned());
}

/// The results of a model under these loads: by scenario, with the model that was solved.
pub fn solved_at(model: &Model, loads: &[ScenarioLoad]) -> Option<(AtLoad, Results)> {
    let at = at_load(model, loads);
    let results = solve(&at.model, &SolveOptions::default(), None, &mut ()).ok()?.results;
    Some((at, results))
}

/// Mean responses of scenarios by their names; none where there is no steady state.
pub fn responses(at: &AtLoad, results: &Results) -> BTreeMap<Arc<str>, f64> {
    let scenarios = ScenarioResult::all(&at.model, results, &at.origins);
    scenarios.iter().filter_map(|own| Some((Arc::clone(&own.origin.name), own.response?))).collect()
}
