//! The assembly of a model: processors, tasks and entries first, then what entries do, then what is fitted to the traces.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::diagnostic::quantity::counted;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::sketch::Quantiles;
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, RequestKind};
use crate::lqn::{
    Body, EntryId, Forwarding, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};
use crate::model::body::{Bodies, is_answered};
use crate::model::clones::Clones;
use crate::model::config::{Configuration, DemandValues, Network};
use crate::model::demand::{DemandSource, Demands, is_measured};
use crate::model::forks::{ForkDelays, SharedForks};
use crate::model::joins::{Seen, Woven};
use crate::model::load::{Recording, is_least_rate};
use crate::model::naming::{Unique, entry_names, task_label};
use crate::model::origins::quantiles;
use crate::model::parts::{Customer, Parts, scenario_of};
use crate::model::servers::{OwnTime, Traced};
use crate::model::slices::{self, Site};
use crate::model::{
    EntryOrigin, Load, LoadReason, OpenServers, Origins, ScenarioOrigin, TaskOrigin, WorkDoubt, chance, clocks, clones,
    codes, joins, replicas,
};

/// The load of each scenario, and why it is that.
pub(super) type Loads = Vec<(Load, LoadReason)>;

/// A model in the making.
pub(super) struct Assembly<'a> {
    parts: &'a Parts<'a>,
    configuration: &'a Configuration,
    traced: &'a Traced,
    demands: Demands<'a>,
    model: Model,
    origins: Origins,
    findings: Vec<Diagnostic>,
    entries: Targets,
    clones: &'a Clones,
    /// How the response of each entry of the model differs from that of all its invocations, as a factor.
    response_scales: Vec<f64>,
    /// Whether there are forks whose joins were seen in time.
    joins: bool,
    /// Entries with such, in order.
    woven: Vec<Woven>,
    processors: IndexMap<String, ProcessorId>,
    task_names: Unique,
    /// By task.
    activity_names: Vec<Unique>,
    processor_names: Unique,
}

/// Entries of the model by index in the sub-model.
struct Targets {
    all: Vec<Option<EntryId>>,
    /// Clones, by caller and by what they are clones of.
    cloned: BTreeMap<(EntryIndex, EntryIndex), EntryId>,
}

impl Targets {
    /// That of an entry, or of its clone for a caller.
    fn of(&self, entry: EntryIndex, caller: Option<EntryIndex>) -> Option<EntryId> {
        caller.map_or(self.all[entry.index()], |caller| self.cloned.get(&(caller, entry)).copied())
    }

    /// All of them as a caller has them.
    fn as_called_by(&self, caller: EntryIndex) -> Cow<'_, [Option<EntryId>]> {
        let mut all = Cow::Borrowed(&self.all[..]);
        for ((_, entry), clone) in self.cloned.range((caller, EntryIndex(0))..=(caller, EntryIndex(u32::MAX))) {
            all.to_mut()[entry.index()] = Some(*clone);
        }
        all
    }
}

/// What responds otherwise than it did, with nobody queueing anywhere.
struct Off {
    /// Entries, with what their response is short of, seconds.
    entries: Vec<(EntryIndex, f64)>,
    /// Scenarios by number, with the response that they have, seconds. Those whose response does not follow from traces alone are left out.
    scenarios: Vec<(usize, f64)>,
}

/// A model that is made.
pub(super) struct Assembled {
    pub model: Model,
    pub origins: Origins,
    pub findings: Vec<Diagnostic>,
}

impl<'a> Assembly<'a> {
    /// Makes the model under these loads, by scenario. Clones are those that were found before under other loads; what is found beside is added.
    pub(super) fn build(
        parts: &'a Parts<'a>,
        configuration: &'a Configuration,
        traced: &'a Traced,
        demands: &'a DemandValues,
        loads: &Loads,
        clones: &mut Clones,
    ) -> Assembled {
        for _ in 0..clones::ROUNDS {
            let (built, off) = Assembly::build_with(parts, configuration, traced, demands, loads, clones);
            let mut found = false;
            for (caller, missing) in off.entries {
                found |= clones.add_for_entry(parts, traced, caller, missing);
            }
            for (customer, response) in off.scenarios {
                found |= clones.add_for_scenario(parts, traced, &parts.customers[customer], response);
            }
            if !found {
                return built;
            }
        }
        Assembly::build_with(parts, configuration, traced, demands, loads, clones).0
    }

    /// The same with these clones of entries. Gives with it what responds otherwise than it did.
    fn build_with(
        parts: &'a Parts<'a>,
        configuration: &'a Configuration,
        traced: &'a Traced,
        demands: &'a DemandValues,
        loads: &Loads,
        clones: &'a Clones,
    ) -> (Assembled, Off) {
        let build = |solves: bool| Self::try_build(parts, configuration, traced, demands, loads, (clones, solves));
        // Where the solver tells nothing, forks are fitted as those of independent branches.
        let solves = traced.forks.as_ref().map_or(!traced.is_of_loads, |forks| forks.is_solved);
        build(solves).or_else(|| build(false)).expect("it needs no solver")
    }

    /// The same, with forks that share processors left to the solver, or not; `None` where it does not solve them.
    fn try_build(
        parts: &'a Parts<'a>,
        configuration: &'a Configuration,
        traced: &'a Traced,
        demands: &'a DemandValues,
        loads: &Loads,
        (clones, solves): (&'a Clones, bool),
    ) -> Option<(Assembled, Off)> {
        let mut builder = Self {
            parts,
            configuration,
            traced,
            demands: Demands::new(&parts.sub.names, &configuration.demand, demands),
            model: Model { comment: comment(parts), ..Model::default() },
            origins: Origins::default(),
            findings: Vec::new(),
            entries: Targets { all: vec![None; parts.sub.entries().len()], cloned: BTreeMap::new() },
            clones,
            response_scales: Vec::new(),
            joins: parts.sub.entries().iter().flat_map(|entry| entry.blocks.values()).any(|own| own.response.count > 0),
            woven: Vec::new(),
            processors: IndexMap::new(),
            task_names: Unique::default(),
            activity_names: Vec::new(),
            processor_names: Unique::default(),
        };
        builder.frame(loads);
        builder.fill(loads);
        let (off, shared, seen) = builder.fit(solves);
        builder.share_own_time();
        builder.divide_uneven();
        builder.cap();
        let missing = shared.fit(&mut builder.model, &builder.woven, &seen, traced.forks.as_ref())?;
        builder.origins.forks = ForkDelays { is_solved: solves, missing };
        builder.origins.divided = traced.hosts().next().is_some();
        let name = |entry: EntryIndex, caller: Option<EntryIndex>| {
            builder.entries.of(entry, caller).map(|id| Arc::clone(&builder.model.entries[id.index()].name))
        };
        let notes = clones.notes(parts, name, |caller| builder.caller_name(caller));
        builder.findings.extend(builder.demands.findings());
        builder.findings.extend(notes);
        replicas::spread(&mut builder.model);
        Some((Assembled { model: builder.model, origins: builder.origins, findings: builder.findings }, off))
    }

    /// Processors, tasks and entries without their bodies: closed customers first, then the rest in canonical order.
    fn frame(&mut self, loads: &Loads) {
        let sub = self.parts.sub;
        for (customer, (load, _)) in self.parts.customers.iter().zip(loads) {
            if let Load::Closed { population, think_time } = *load {
                let task = self.customer(customer, population, think_time);
                let name = Arc::clone(&self.model.tasks[task.index()].name);
                self.entry(name, task, customer.first, &customer.total);
            }
        }
        let names = entry_names(sub, &self.parts.entries);
        let mut task: Option<(TaskId, &EntryTotal)> = None;
        let mut entry_names = Unique::default();
        for entry in &self.model.entries {
            entry_names.claim(&entry.name);
        }
        for (&index, name) in self.parts.entries.iter().zip(&names) {
            let total = sub.entry(index);
            // Canonical order keeps the entries of a task together.
            let id = match task {
                Some((id, last)) if (last.task, last.instance) == (total.task, total.instance) => id,
                _ => self.service(sub.names.text(total.task), total.instance),
            };
            task = Some((id, total));
            let entry = self.entry(entry_names.claim(name), id, index, total);
            self.entries.all[index.index()] = Some(entry);
        }
        for &index in &self.parts.entries {
            for caller in self.clones.callers(index) {
                self.clone_entry(index, caller, &mut entry_names);
            }
        }
    }

    /// Lets tasks use no more of shared processors than quotas leave them.
    fn cap(&mut self) {
        for (name, id) in &self.processors {
            let own = &self.model.processors[id.index()];
            let settings = self.configuration.processors.get(name);
            let quota = settings
                .and_then(|settings| settings.quota)
                .or_else(|| self.traced.quota(name))
                .or_else(|| self.configuration.quotas.get(name).copied());
            let Some(cores) = quota.filter(|_| own.scheduling == Scheduling::ProcessorSharing) else { continue };
            // A processor that is shared takes any quota.
            let _ = self.model.set_cap(*id, Some(cores));
        }
    }

    /// The name of an entry that calls, or the scenario whose customer it is.
    fn caller_name(&self, caller: EntryIndex) -> String {
        match self.entries.of(caller, None) {
            Some(caller) => self.model.entries[caller.index()].name.to_string(),
            None => scenario_of(self.parts.sub, self.parts.sub.entry(caller)),
        }
    }

    /// An entry for one caller, beside the one for all others.
    fn clone_entry(&mut self, index: EntryIndex, caller: EntryIndex, names: &mut Unique) {
        let Some(original) = self.entries.of(index, None) else { return };
        let crate::lqn::Entry { name, task, .. } = &self.model.entries[original.index()];
        let (name, task) = (Arc::clone(name), *task);
        let by = self.caller_name(caller);
        let total = self.parts.sub.entry(index);
        let id = self.entry(names.claim(&format!("{name} for {by}")), task, index, total);
        self.entries.cloned.insert((caller, index), id);
        for (id, caller) in [(id, Some(caller)), (original, None)] {
            if let Some((calls, time)) = self.clones.seen(self.parts, index, caller) {
                let origin = &mut self.origins.entries[id.index()];
                (origin.invocations, origin.observed_response) = (calls, (calls > 0).then_some(time));
                // Quantiles are known of all invocations together.
                origin.observed_quantiles = Quantiles::default();
            }
        }
    }

    /// A scenario's reference task, on a processor of its own without queueing.
    fn customer(&mut self, customer: &Customer, population: u32, think_time: f64) -> TaskId {
        let name = self.task_names.claim(&format!("Cu_{}", customer.scenario));
        let processor = ProcessorId::from(self.model.processors.len());
        self.model.processors.push(Processor {
            name: self.processor_names.claim(&name),
            scheduling: Scheduling::Delay,
            quantum: None,
            multiplicity: Multiplicity::Infinite,
            replicas: 1,
            speed: 1.0,
        });
        let scheduling = Scheduling::Reference;
        let multiplicity = Multiplicity::Finite(population);
        let origin = TaskOrigin { identifier: Arc::clone(&customer.scenario), instance: 1, customer: true };
        self.task(Task { multiplicity, think_time, ..Task::new(&name, processor, scheduling) }, origin)
    }

    fn service(&mut self, identifier: &str, instance: u32) -> TaskId {
        let settings = self.configuration.tasks.get(identifier);
        let name = self.task_names.claim(&task_label(identifier, instance));
        let processor =
            self.processor(settings.and_then(|settings| settings.processor.as_deref()).unwrap_or(identifier));
        let configured = settings.and_then(|settings| settings.scheduling);
        let named = self.parts.sub.names.get(identifier);
        let pool = named.and_then(|name| self.traced.pool(name));
        // Connections of an instance are of no use to others. That is as it is with copies where nothing queues for what they lead to.
        let is_delay = self.model.processors[processor.index()].multiplicity == Multiplicity::Infinite;
        let copies = pool.map_or(1, |pool| if is_delay { pool.copies } else { 1 });
        let seen = || {
            let instances = named.and_then(|name| self.parts.sub.instances.get(&name).copied());
            // Each instance has threads, connections are counted already.
            let is_of_threads = pool.is_some_and(|pool| pool.of.is_none());
            let each = self.configuration.instances.get(identifier).filter(|_| is_of_threads).copied().unwrap_or(1);
            let of_pool = || pool.map(|pool| pool.threads.saturating_mul(pool.copies / copies).saturating_mul(each));
            instances.or_else(of_pool).map(Multiplicity::Finite)
        };
        let threads =
            settings.and_then(|settings| settings.threads).or_else(seen).or(self.configuration.defaults.threads);
        let (scheduling, multiplicity) = match (configured, threads) {
            (Some(Scheduling::Delay), _) | (_, None | Some(Multiplicity::Infinite)) => {
                (Scheduling::Delay, Multiplicity::Infinite)
            }
            (configured, Some(threads)) => (configured.unwrap_or(Scheduling::Fcfs), threads),
        };
        let priority = settings.and_then(|settings| settings.priority).unwrap_or(0);
        let is_threads_given = settings.is_some_and(|settings| settings.threads.is_some());
        let replicas =
            settings.and_then(|settings| settings.replicas).unwrap_or(if is_threads_given { 1 } else { copies });
        let dispatching = settings.and_then(|settings| settings.dispatching).unwrap_or_default();
        let task = Task { multiplicity, priority, replicas, dispatching, ..Task::new(&name, processor, scheduling) };
        self.task(task, TaskOrigin { identifier: identifier.into(), instance, customer: false })
    }

    fn task(&mut self, task: Task, origin: TaskOrigin) -> TaskId {
        let id = TaskId::from(self.model.tasks.len());
        self.model.tasks.push(task);
        self.activity_names.push(Unique::default());
        self.origins.tasks.push(origin);
        id
    }

    fn processor(&mut self, name: &str) -> ProcessorId {
        if let Some(&id) = self.processors.get(name) {
            return id;
        }
        let defaults = &self.configuration.defaults;
        let settings = self.configuration.processors.get(name);
        let scheduling = settings
            .and_then(|settings| settings.scheduling)
            .or(defaults.scheduling)
            .or_else(|| self.traced.scheduling(name))
            .unwrap_or(Scheduling::ProcessorSharing);
        let given = settings.and_then(|settings| settings.multiplicity).or(defaults.multiplicity);
        let is_bound = self.configuration.bounds.contains(name);
        let given = given.filter(|_| !(is_bound && self.traced.uses_others(name)));
        let multiplicity = given
            .or_else(|| self.traced.servers(name, settings.and_then(|settings| settings.replicas).unwrap_or(1)))
            // Where too little was seen to tell, sharing alone delays nobody: as many tasks on processors of their own would not wait for each other.
            .or_else(|| self.configuration.tenants.get(name).map(|tasks| Multiplicity::Finite(*tasks)))
            .unwrap_or(Multiplicity::Finite(1));
        let infinite = scheduling == Scheduling::Delay || multiplicity == Multiplicity::Infinite;
        let id = ProcessorId::from(self.model.processors.len());
        let own_name = self.processor_names.claim(name);
        if let (None, Multiplicity::Finite(servers), Some(least)) =
            (given, multiplicity, self.traced.open_servers(name))
        {
            self.origins.open_servers.insert(own_name.to_string(), OpenServers { servers, least });
        }
        if let (None, Multiplicity::Infinite, Some(least)) = (given, multiplicity, self.traced.delay_servers(name)) {
            self.origins.delays.insert(own_name.to_string(), least);
        }
        if let Some(quantum) = self.traced.quantum(name) {
            self.origins.quanta.insert(own_name.to_string(), quantum);
        }
        self.model.processors.push(Processor {
            name: own_name,
            scheduling: if infinite { Scheduling::Delay } else { scheduling },
            quantum: settings.and_then(|settings| settings.quantum),
            multiplicity: if infinite { Multiplicity::Infinite } else { multiplicity },
            replicas: settings.and_then(|settings| settings.replicas).unwrap_or(1),
            speed: settings.and_then(|settings| settings.speed).unwrap_or(1.0),
        });
        self.processors.insert(name.to_owned(), id);
        id
    }

    fn entry(&mut self, name: Arc<str>, task: TaskId, index: EntryIndex, total: &EntryTotal) -> EntryId {
        let id = EntryId::from(self.model.entries.len());
        self.model.entries.push(crate::lqn::Entry {
            name,
            task,
            priority: None,
            open_arrival_rate: None,
            semaphore: None,
            body: Body::Phases(Vec::new()),
            forwarding: Vec::new(),
            histograms: Vec::new(),
        });
        self.model.tasks[task.index()].entries.push(id);
        self.response_scales.push(1.0);
        self.origins.entries.push(EntryOrigin {
            total: index,
            interaction: total.interaction,
            invocations: total.invocations,
            observed_response: total.response.mean(),
            observed_quantiles: quantiles(&total.response, &total.responses),
            batches: total.batches.costs(),
            sources: Vec::new(),
            own_time: OwnTime::WHOLE,
            doubt: WorkDoubt::NONE,
            witnesses: total.witnesses.clone(),
        });
        id
    }

    /// Bodies, forwarding and loads.
    fn fill(&mut self, loads: &Loads) {
        let mut customers = self.parts.customers.iter().zip(loads);
        let recording = Recording::of(self.parts.sub);
        let mut next = 0;
        for (customer, (load, reason)) in customers.by_ref() {
            let mut origin = ScenarioOrigin {
                name: Arc::clone(&customer.scenario),
                operations: customer.scenario_total.operations,
                failures: customer.scenario_total.failures,
                load: *load,
                reason: *reason,
                observed_response: customer.scenario_total.response.mean(),
                clock_doubt: clocks::doubt(&customer.scenario_total),
                observed_quantiles: quantiles(&customer.scenario_total.response, &customer.scenario_total.responses),
                response_error: chance::response_error(&customer.scenario_total, &recording),
                interarrival_cv2: chance::interarrival_cv2(&customer.scenario_total, &recording),
                observed_rate: recording.rate(&customer.scenario_total),
                rate_error: chance::rate_error(&customer.scenario_total, &recording),
                is_least_rate: is_least_rate(&customer.scenario_total),
                context: None,
                customer: None,
                first: Vec::new(),
                members: customer.members.clone(),
            };
            if !origin.members.is_empty() {
                // Operations are weighted: they are no longer so many samples.
                origin.observed_quantiles.p95_interval = None;
                (origin.response_error, origin.rate_error) = (None, None);
            }
            match load {
                Load::Closed { .. } => {
                    let entry = EntryId::from(next);
                    next += 1;
                    origin.customer = Some(self.model.entries[entry.index()].task);
                    self.body(entry, &customer.total, customer.first, None);
                }
                Load::Open { rate } => origin.first = self.open(customer, *rate),
            }
            self.origins.scenarios.push(origin);
        }
        for &index in &self.parts.entries {
            if let Some(entry) = self.entries.of(index, None) {
                let total = self.parts.sub.entry(index);
                self.forward(entry, total, index);
                self.moved_waits(entry, total);
                self.untimed_delays(entry, total);
                self.body(entry, total, index, None);
            }
        }
        for (&(caller, index), &clone) in &self.entries.cloned.clone() {
            let total = self.parts.sub.entry(index);
            if let Some(original) = self.entries.of(index, None) {
                let forwarding = self.model.entries[original.index()].forwarding.clone();
                self.model.entries[clone.index()].forwarding = forwarding;
            }
            self.body(clone, total, index, Some(caller));
        }
    }

    /// The body of an entry, or of its clone for a caller.
    fn body(&mut self, entry: EntryId, total: &EntryTotal, index: EntryIndex, caller: Option<EntryIndex>) {
        let task = self.model.entries[entry.index()].task;
        let identifier = Arc::clone(&self.origins.tasks[task.index()].identifier);
        // What is set for an entry holds for its clones.
        let named = self.entries.of(index, None).unwrap_or(entry);
        let given = self.demands.of_entry(&self.model.entries[named.index()].name, total);
        self.demands.muted = given.is_some();
        let entries = self.entries.as_called_by(index);
        let network = Network::of(self.configuration, &self.origins.tasks[task.index()]);
        let joins = self.joins;
        let mut bodies = Bodies {
            demands: &mut self.demands,
            entries: &entries,
            identifier: &identifier,
            network,
            joins,
            measured: is_measured(total),
        };
        let names = &mut self.activity_names[task.index()];
        let before = self.model.activities.len();
        let mut made = bodies.make(total, entry, task, &mut self.model, names, &mut self.origins.activities);
        self.demands.muted = false;
        if let Some(seconds) = given {
            made.give(seconds, &mut self.model.activities[before..], &mut self.origins.activities[before..]);
        } else if total.interaction != Interaction::Customer {
            let phases: &mut [Work] = if let Body::Phases(phases) = &mut made.body { phases } else { &mut [] };
            let own_work = phases.first().map_or(0.0, |work| work.demand);
            let scale = self.clones.scale(self.parts, index, caller, own_work);
            scale.apply(phases, &mut self.model.activities[before..], made.woven.as_mut());
            self.response_scales[entry.index()] = scale.response;
        }
        self.model.entries[entry.index()].body = made.body;
        self.woven.extend(made.woven);
        self.origins.entries[entry.index()].sources = made.sources;
    }

    /// Fits what the model cannot know of forks, and of calls that take longer for some than for others, to the traced responses. Gives what responds
    /// otherwise than it did even so, forks that are left to the solver, and what was seen.
    fn fit(&mut self, solves: bool) -> (Off, SharedForks, Vec<Seen>) {
        self.woven.sort_by_key(|woven| woven.entry);
        // The model queues for threads by itself.
        let waited = self.traced.waited(self.parts.sub);
        let seen: Vec<Seen> = (0..self.model.entries.len())
            .map(|at| {
                let origin = &self.origins.entries[at];
                let task = &self.origins.tasks[self.model.entries[at].task.index()];
                let from_traces =
                    |source: &DemandSource| matches!(source, DemandSource::Exclusive | DemandSource::None);
                let is_traced = origin.sources.iter().all(from_traces)
                    && Network::of(self.configuration, task) == Network::Traced
                    && origin.interaction != Interaction::Customer;
                let response = self.parts.sub.entry(origin.total).response.mean();
                let waited = waited[origin.total.index()];
                let response = response.map(|mean| (mean - waited) * self.response_scales[at]);
                Seen { response, is_estimated: waited > 0.0, is_traced }
            })
            .collect();
        let owners: Vec<EntryId> = self.origins.activities.iter().map(|origin| origin.entry).collect();
        let shared = if solves { SharedForks::of(&self.model, &owners, &self.woven) } else { SharedForks::none() };
        let left = seen.iter().enumerate().map(|(at, own)| {
            let is_traced = own.is_traced && !shared.forking.contains(&EntryId::from(at));
            Seen { is_traced, ..*own }
        });
        let fitted = joins::fit(&mut self.model, &owners, &self.woven, &left.collect::<Vec<_>>());
        for entry in &fitted.sent {
            let name = &self.model.entries[entry.index()].name;
            let message = format!("parallel calls of `{name}` ended sooner together than independent ones can");
            self.findings.push(
                Diagnostic::warning(codes::SENT_BRANCH, Place::Nowhere, message)
                    .with_note("the model waits for a part of the calls of the branch that ends first, or for none, and sends the others: only so does it respond as was traced")
                    .with_note("calls that are sent delay nobody under more load, whatever they do in the system")
                    .with_hint("parallel calls that wait in one queue have this effect, and so have lost spans, as `dyelog trace check` tells them"),
            );
        }
        // A clone has the response that the caller was seen to wait for.
        let entries = self.parts.entries.iter().filter_map(|&index| {
            let missing = fitted.missing[self.entries.of(index, None)?.index()];
            (missing != 0.0).then_some((index, missing))
        });
        let scenarios = self.parts.customers.iter().enumerate().filter_map(|(number, customer)| {
            let entries = self.entries.as_called_by(customer.first);
            let per = customer.total.invocations.max(1) as f64;
            let mut calls = customer.total.requested();
            let response = calls.try_fold(0.0, |sum, (to, count)| {
                Some(sum + fitted.responses[entries[to.index()]?.index()]? * count as f64 / per)
            });
            response.filter(|_| customer.members.is_empty()).map(|response| (number, response))
        });
        (Off { entries: entries.collect(), scenarios: scenarios.collect() }, shared, seen)
    }

    /// Divides the time in which entries work by themselves: what was queueing in the traces the model's servers make of themselves.
    fn share_own_time(&mut self) {
        for (entry, origin) in self.model.entries.iter_mut().zip(&mut self.origins.entries) {
            let own = self.traced.own(origin.total);
            origin.own_time = own;
            if own == OwnTime::WHOLE {
                continue;
            }
            if let Body::Phases(phases) = &mut entry.body {
                let exclusive = phases.iter_mut().zip(&origin.sources);
                exclusive
                    .filter(|(_, source)| **source == DemandSource::Exclusive)
                    .for_each(|(work, _)| own.divide(work));
            }
        }
        for (activity, origin) in self.model.activities.iter_mut().zip(&self.origins.activities) {
            if origin.source == DemandSource::Exclusive {
                self.origins.entries[origin.entry.index()].own_time.divide(&mut activity.work);
            }
        }
    }

    /// Makes sequences of entries whose work lies unevenly between their calls, where each slice of it queues by itself.
    fn divide_uneven(&mut self) {
        for (at, origin) in self.origins.entries.iter().enumerate() {
            let names = &mut self.activity_names[self.model.entries[at].task.index()];
            let site = Site { model: &mut self.model, names, origins: &mut self.origins.activities };
            self.woven.extend(slices::divide(EntryId::from(at), origin, site));
        }
        self.woven.sort_by_key(|woven| woven.entry);
    }

    /// Forwarding of an entry, as probabilities per invocation.
    fn forward(&mut self, entry: EntryId, total: &EntryTotal, index: EntryIndex) {
        let mut counts: BTreeMap<EntryId, u64> = BTreeMap::new();
        let entries = self.entries.as_called_by(index);
        for work in total.work.values() {
            for ((kind, to), request) in &work.requests {
                if let (RequestKind::Forward, Some(to)) = (kind, entries[to.index()]) {
                    *counts.entry(to).or_default() += request.count;
                }
            }
        }
        let sum: u64 = counts.values().sum();
        if sum == 0 {
            return;
        }
        let name = Arc::clone(&self.model.entries[entry.index()].name);
        let label = total.interaction.label();
        if !is_answered(total.interaction) {
            let message = format!("entry `{name}` forwards requests that have no waiting caller");
            let note = format!("it is of type {label}, so the model sends them asynchronously");
            self.findings.push(
                Diagnostic::new(Severity::Note, codes::FORWARDS_UNANSWERED, Place::Nowhere, message).with_note(note),
            );
            return;
        }
        let all = total.invocations.max(1);
        if sum > all {
            let message = format!("entry `{name}` forwards {sum} times in {all} invocations");
            self.findings.push(
                Diagnostic::warning(codes::FORWARDS_TOO_OFTEN, Place::Nowhere, message)
                    .with_note(
                        "a request can be passed on at most once: the probabilities are scaled down to add up to 1",
                    )
                    .with_hint("`--merge structure` keeps entries that forward apart from those that do not"),
            );
        } else if sum < all {
            let message = format!("entry `{name}` forwards {sum} of {all} requests and answers the others itself");
            self.findings.push(
                Diagnostic::new(Severity::Note, codes::FORWARDS_AND_REPLIES, Place::Nowhere, message)
                    .with_hint("`--merge structure` keeps the two ways apart"),
            );
        }
        let per = sum.max(all) as f64;
        self.model.entries[entry.index()].forwarding =
            counts.into_iter().map(|(to, count)| Forwarding { to, probability: count as f64 / per }).collect();
    }

    /// Says where the model waits for branches at another place than the traces do.
    fn moved_waits(&mut self, entry: EntryId, total: &EntryTotal) {
        if total.moved_waits > 0 {
            let name = &self.model.entries[entry.index()].name;
            let message = format!(
                "parallel branches of entry `{name}` cross, in {} of its {} invocations: they are joined at the later place",
                total.moved_waits, total.invocations
            );
            self.findings.push(Diagnostic::new(Severity::Note, codes::MOVED_WAIT, Place::Nowhere, message).with_note(
                "forks and joins of a layered model lie in each other, so its responses are a little longer",
            ));
        }
    }

    /// Says which delays the model lacks.
    fn untimed_delays(&mut self, entry: EntryId, total: &EntryTotal) {
        if total.untimed_delays > 0 {
            let name = &self.model.entries[entry.index()].name;
            let count = counted(total.untimed_delays, "delay");
            let message = format!("{count} of entry `{name}` left out of the model: their length is not known");
            let finding = Diagnostic::warning(codes::UNTIMED_DELAYS, Place::Nowhere, message)
                .with_note("`addDelay` measures from the node before, of the same visit, up to the one that it names")
                .with_hint("give the events times (`t=`), and name a node that another one of the visit comes before");
            self.findings.push(finding);
        }
    }

    /// Open arrivals in place of a customer: its requests, at its rate. Gives the synchronous ones.
    fn open(&mut self, customer: &Customer, rate: f64) -> Vec<(EntryId, f64)> {
        let total = &customer.total;
        let per = total.invocations.max(1) as f64;
        let mut counts: BTreeMap<(EntryId, bool), u64> = BTreeMap::new();
        let entries = self.entries.as_called_by(customer.first);
        for ((kind, to), request) in total.work.values().flat_map(|work| &work.requests) {
            if let Some(to) = entries[to.index()] {
                *counts.entry((to, *kind == RequestKind::Synchronous)).or_default() += request.count;
            }
        }
        for (&(to, _), &count) in &counts {
            let arrivals = &mut self.model.entries[to.index()].open_arrival_rate;
            *arrivals = Some(arrivals.unwrap_or(0.0) + rate * count as f64 / per);
        }
        self.demands.doubting = false;
        let measured = is_measured(total);
        let own: BTreeSet<_> = total
            .work
            .values()
            .filter(|work| self.demands.of(&customer.scenario, work, total.invocations, measured).0 > 0.0)
            .map(|work| work.visits)
            .collect();
        self.demands.doubting = true;
        if !own.is_empty() {
            let message =
                format!("work of the customer of scenario `{}` is left out under open arrivals", customer.scenario);
            self.findings.push(
                Diagnostic::warning(codes::CUSTOMER_WORK, Place::Nowhere, message)
                    .with_note("open arrivals have no customer task that could do it")
                    .with_hint("give the scenario a `population` and a `think_time`"),
            );
        }
        counts.into_iter().filter(|((_, waits), _)| *waits).map(|((to, _), count)| (to, count as f64 / per)).collect()
    }
}

/// What the model's first line says.
fn comment(parts: &Parts<'_>) -> String {
    let scenarios: Vec<String> = parts
        .customers
        .iter()
        .map(|customer| format!("{} of {}", customer.scenario_total.operations, customer.scenario))
        .collect();
    const SHOWN: usize = 5;
    let more = if scenarios.len() > SHOWN {
        format!(" and {} more scenarios", scenarios.len() - SHOWN)
    } else {
        String::new()
    };
    format!("operations traced: {}{more}", scenarios[..scenarios.len().min(SHOWN)].join(", "))
}
