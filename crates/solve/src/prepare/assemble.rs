//! From the state of the layered solver to results, element by element.

use dyelog_lqn::model::{Model, Scheduling, SemaphoreRole};
use dyelog_lqn::results::{ActivityResult, CallResult, Convergence, EntryResult, ProcessorResult, Results, TaskResult};

use crate::layered::chains::{ChainId, ClientId, ClientKind, Item};
use crate::layered::state::Solver;
use crate::prepare::caveats as model_caveats;
use crate::prepare::plan::ModelPlan;

/// A sum of values by weight.
#[derive(Clone, Copy, Default)]
struct Mean {
    weight: f64,
    sum: f64,
}

impl Mean {
    fn add(&mut self, weight: f64, value: f64) {
        self.weight += weight;
        self.sum += weight * value;
    }

    fn value(self) -> f64 {
        if self.weight > 0.0 { self.sum / self.weight } else { 0.0 }
    }
}

/// Results of the solver's present state.
pub(crate) fn results(solver: &Solver, mut convergence: Convergence) -> Results {
    let plan = solver.plan;
    let model = plan.model;
    let mut sums = Sums {
        phases: vec![[Mean::default(); 3]; model.entries.len()],
        works: vec![Mean::default(); plan.works.len()],
        busy: vec![0.0; model.entries.len()],
        rows: vec![Mean::default(); plan.rows.len()],
        answers: vec![Mean::default(); model.entries.len()],
    };
    for client in solver.decomposition.clients.ids() {
        sums.add_client(solver, client);
    }
    sums.add_open(solver);
    let mut entries: Vec<EntryResult> = Vec::with_capacity(model.entries.len());
    for (index, entry) in model.entries.iter().enumerate() {
        let throughput = if plan.is_source(entry.task) {
            sums.phases[index][0].weight
        } else {
            solver.rates.waited[index] + solver.rates.sent[index]
        };
        let service = sums.phases[index].map(Mean::value);
        entries.push(EntryResult {
            throughput,
            service,
            utilization: throughput * service.iter().sum::<f64>(),
            processor_utilization: sums.busy[index],
            open_response: entry.open_arrival_rate.filter(|rate| *rate > 0.0).map(|_| sums.answers[index].value()),
        });
    }
    let (tasks, processors) = by_task_and_processor(model, &entries);
    let activities = (0..model.activities.len())
        .map(|index| {
            let work = sums.works[plan.first_activity + index];
            ActivityResult { throughput: work.weight, service: work.value() }
        })
        .collect();
    let calls = calls(plan, &entries, |row| sums.rows[row].value());
    let mut caveats = caveats(solver, &convergence);
    beyond_caps(plan, &tasks, &mut convergence, &mut caveats);
    Results {
        solver: "layered".into(),
        convergence,
        processors,
        tasks,
        entries,
        activities,
        calls,
        caveats,
        simulated: None,
    }
}

/// Rows of calls with the wait of each. There is none where it is no more than what rounding makes of the service that follows.
pub(crate) fn calls(plan: &ModelPlan, entries: &[EntryResult], wait: impl Fn(usize) -> f64) -> Vec<CallResult> {
    let rows = plan.rows.iter().enumerate();
    rows.map(|(row, &(from, to, kind))| {
        let (wait, service) = (wait(row), entries[to.index()].service[0]);
        CallResult { from, to, kind, waiting: if wait < 1e-12 * service { 0.0 } else { wait } }
    })
    .collect()
}

/// Tells of groups that would take more of their processor than their cap lets them, where the solver leaves caps out.
fn beyond_caps(plan: &ModelPlan, tasks: &[TaskResult], convergence: &mut Convergence, caveats: &mut Vec<String>) {
    let model = plan.model;
    let is_open = (0..model.tasks.len()).all(|task| !plan.is_source(task.into()));
    for (number, group) in model.groups.iter().enumerate().filter(|(_, group)| group.cap) {
        if plan.caps[group.processor.index()].is_some() {
            continue;
        }
        let processor = &model.processors[group.processor.index()];
        let most = group.share * processor.multiplicity.servers();
        let members = model.tasks.iter().zip(tasks).filter(|(task, _)| task.group == Some(number.into()));
        let busy: f64 = members.map(|(_, result)| result.processor_utilization).sum();
        if busy < most * (1.0 - 1e-9) || busy <= 0.0 {
            continue;
        }
        convergence.converged = false;
        convergence.saturated |= is_open;
        let end = if is_open { "there is no steady state" } else { "do not rely on the results" };
        caveats.push(format!(
            "group `{}` would keep {busy:.3} servers of processor `{}` busy, and its cap leaves it {most:.3}: {end}",
            group.name, processor.name
        ));
    }
}

/// Results of tasks and processors from those of their entries.
pub(crate) fn by_task_and_processor(model: &Model, entries: &[EntryResult]) -> (Vec<TaskResult>, Vec<ProcessorResult>) {
    let tasks: Vec<TaskResult> = model
        .tasks
        .iter()
        .map(|task| {
            let of =
                |value: fn(&EntryResult) -> f64| task.entries.iter().map(|id| value(&entries[id.index()])).sum::<f64>();
            // A lock is used once for each time that it is taken, however it is given back.
            let uses = task.entries.iter().filter(|id| !gives_back(model.entries[id.index()].semaphore));
            TaskResult {
                throughput: uses.map(|id| entries[id.index()].throughput).sum(),
                utilization: of(|entry| entry.utilization),
                processor_utilization: of(|entry| entry.processor_utilization),
            }
        })
        .collect();
    let mut processors = vec![ProcessorResult::default(); model.processors.len()];
    for (task, result) in model.tasks.iter().zip(&tasks) {
        processors[task.processor.index()].utilization += result.processor_utilization;
    }
    (tasks, processors)
}

/// Whether requests of that role give back what another one took.
pub(crate) fn gives_back(role: Option<SemaphoreRole>) -> bool {
    matches!(role, Some(SemaphoreRole::Signal | SemaphoreRole::ReadUnlock | SemaphoreRole::WriteUnlock))
}

struct Sums {
    phases: Vec<[Mean; 3]>,
    works: Vec<Mean>,
    busy: Vec<f64>,
    rows: Vec<Mean>,
    /// Response of open arrivals.
    answers: Vec<Mean>,
}

impl Sums {
    fn add_client(&mut self, solver: &Solver, client: ClientId) {
        let rate = solver.rates.throughputs[client];
        let found = &solver.decomposition.clients[client];
        let later = matches!(found.kind, ClientKind::Open { later: true, .. });
        for number in found.chains.ids() {
            let chain = &solver.decomposition.chains[number];
            let times = &solver.times[number];
            if times.entries.is_empty() {
                continue;
            }
            for (position, reach) in chain.reach.iter().enumerate() {
                let weight = rate * solver.rates.flows[number][position];
                let entry = reach.entry.index();
                if reach.strand == 0 {
                    for (phase, time) in times.entries[position].iter().enumerate() {
                        // An entry's phases may be executed by different clients: the first by its callers, the later
                        // ones beside them.
                        let own = phase == 0 || phase_runs_here(solver, number, position);
                        if own && !(later && position == 0 && phase == 0) {
                            self.phases[entry][phase].add(weight, time.mean);
                        }
                    }
                    if let ClientKind::Open { entry: root, later: false } = found.kind
                        && root == reach.entry
                        && position == 0
                    {
                        self.answers[entry].add(weight, times.entries[0][0].mean);
                    }
                }
                self.add_items(solver, number, position, weight);
            }
        }
    }

    fn add_items(&mut self, solver: &Solver, number: ChainId, position: usize, weight: f64) {
        let chain = &solver.decomposition.chains[number];
        let reach = &chain.reach[position];
        let stays = &solver.waits.all(number);
        let mut executions = 0.0;
        for index in reach.items.clone() {
            match chain.items[index] {
                Item::Step { work, visits, .. } => {
                    executions = weight * visits;
                    let planned = &solver.plan.works[work];
                    self.works[work].add(executions, solver.times[number].items[index]);
                    self.busy[reach.entry.index()] += executions * planned.slices * planned.slice;
                }
                Item::Call { mean, slot, row, .. } => {
                    self.rows[row].add(executions * mean, stays[slot as usize].wait);
                }
                Item::Flattened { mean, row, .. } => self.rows[row].add(executions * mean, 0.0),
                Item::Send { mean, to, row } => {
                    self.rows[row].add(executions * mean, solver.open_stays[to.index()].wait);
                }
                Item::Fork { .. } => {}
            }
        }
    }

    /// Response of open arrivals at tasks that queue, and the part of forwarded ones that comes later.
    fn add_open(&mut self, solver: &Solver) {
        for (index, entry) in solver.plan.entries.iter().enumerate() {
            if entry.open <= 0.0 {
                continue;
            }
            let queues = solver.decomposition.queues[entry.task.index()];
            if queues {
                let response = solver.open_stays[index].wait + self.phases[index][0].value();
                self.answers[index].add(entry.open, response);
            }
            let on: f64 = entry
                .forwards
                .iter()
                .map(|&(to, probability, row)| {
                    let wait = solver.open_stays[to.index()].wait;
                    self.rows[row].add(entry.open * probability, wait);
                    probability * (wait + self.phases[to.index()][0].value())
                })
                .sum();
            let weight = self.answers[index].weight;
            self.answers[index].sum += weight * on;
        }
    }
}

/// Whether the chain executes the later phases of its entry.
fn phase_runs_here(solver: &Solver, chain: ChainId, position: usize) -> bool {
    let found = &solver.decomposition.chains[chain];
    found.parent.is_none()
        && match solver.decomposition.clients[found.client].kind {
            ClientKind::Customers(task) | ClientKind::Threads(task) => {
                position < solver.plan.model.tasks[task.index()].entries.len()
            }
            ClientKind::Open { .. } => position == 0,
        }
}

fn caveats(solver: &Solver, convergence: &Convergence) -> Vec<String> {
    let mut caveats = solver.plan.caveats.clone();
    let mut names = solver.inner.saturated.clone();
    names.sort();
    names.dedup();
    for name in names {
        caveats.push(format!(
            "{name} is saturated: more open requests arrive than it can serve, so there is no steady state"
        ));
    }
    if !convergence.converged && solver.inner.saturated.is_empty() {
        caveats.push(format!(
            "did not converge: the last iteration still changed results by {:.1e}",
            convergence.residual
        ));
    }
    caveats.extend(model_caveats::of_sources(solver.plan.model));
    for entry in &solver.plan.entries {
        let task = &solver.plan.model.tasks[entry.task.index()];
        if solver.decomposition.queues[entry.task.index()] && task.scheduling == Scheduling::ProcessorSharing {
            caveats.push(format!("task `{}`: its order of service is taken as processor sharing", task.name));
        }
    }
    if solver.rates.throughputs.iter().all(|rate| *rate <= 0.0) {
        caveats.push("there is no load: no reference task and no open arrivals".into());
    }
    caveats.dedup();
    caveats
}

/// Whether all figures are numbers.
pub(crate) fn is_sound(results: &Results) -> bool {
    let fine = |value: f64| value.is_finite() && value >= 0.0;
    results.processors.iter().all(|result| fine(result.utilization))
        && results
            .tasks
            .iter()
            .all(|result| fine(result.throughput) && fine(result.utilization) && fine(result.processor_utilization))
        && results.entries.iter().all(|result| {
            fine(result.throughput)
                && result.service.iter().all(|time| fine(*time))
                && fine(result.utilization)
                && fine(result.processor_utilization)
                && result.open_response.is_none_or(fine)
        })
        && results.activities.iter().all(|result| fine(result.throughput) && fine(result.service))
        && results.calls.iter().all(|result| fine(result.waiting))
}
