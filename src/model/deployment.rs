//! Where traces say that tasks run: instances, machines and cores become settings where the configuration has none.
//!
//! Instances that were there together are replicas; those that follow each other are one that was started again. Tasks of which all instances are on the
//! same machines share these machines' processors. So do tasks that share machines in part, as pods on the nodes of a cluster do, where these machines have as much work as
//! each other, and each task is on half of them or more: the model spreads each of them over all of these.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::names::Name;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::deployment::{Replica, Seen};
use crate::lqn::submodel::{EntryTotal, Interaction, SubModel};
use crate::lqn::{Dispatching, Model, Multiplicity, Task};
use crate::model::config::{Configuration, ProcessorSettings, TaskSettings};
use crate::model::demand::is_measured;
use crate::model::pace::{self, Pace};
use crate::model::servers::{self, Colocated, are_apart};
use crate::model::{codes, dispatching};

/// An identifier of which instances have fewer invocations each, on the mean, names something else: a request, a connection.
const FEWEST_EACH: u64 = 10;

/// An instance that does less than this part of what the busiest one does in as much time is none that requests are spread over.
const STRAY: f64 = 0.02;

/// A machine has much more work than others from so many times the mean on,
const UNEVEN: f64 = 1.15;

/// and by so many standard errors: chance alone gives one of many machines the most.
const CLEAR: f64 = 5.0;

/// How many of a kind are named.
const SHOWN: usize = 8;

/// What traces tell of the instances of a task.
#[derive(Debug, Default)]
struct Instances<'s> {
    /// Those that were there together, on the mean over the time in which any was.
    together: u32,
    /// How many there were at all.
    seen: usize,
    /// Whether identifiers are of something else.
    are_requests: bool,
    machines: BTreeSet<&'s str>,
    /// Whether several were on one machine, and each was seen to have a queue of its own.
    are_apart: bool,
    /// Whether several of those that were there together were on one machine, and share it.
    share_machines: bool,
    /// How many were on each machine at a time, on the mean.
    on_each: u32,
    /// By machine, else by instance where none names one, how many invocations were there; nothing where some name none, or came and went.
    spread: BTreeMap<&'s str, u64>,
    /// Of an instance, in thousandths; 0 where not told.
    cores: u32,
}

impl Instances<'_> {
    /// The own time of an invocation on the mean, seconds.
    fn own_time_each(&self, sub: &SubModel, task: &str) -> f64 {
        let work = entries_of(sub, task).map(EntryTotal::own_time).sum::<f64>();
        work / self.spread.values().sum::<u64>().max(1) as f64
    }
}

/// What traces tell of instances and machines.
#[derive(Debug)]
pub struct Placed {
    /// The configuration with it.
    pub configuration: Configuration,
    /// Notes that say so.
    pub findings: Vec<Diagnostic>,
    /// By processor, how many times as busy as the mean of its copies the busiest one is, where that is much.
    pub uneven: BTreeMap<String, f64>,
}

/// Places tasks on processors where the configuration does not.
pub fn placed(sub: &SubModel, configuration: &Configuration) -> Placed {
    placed_together(sub, configuration, &servers::colocated(sub, configuration))
}

/// The same where it is known which tasks share machines that traces do not name.
pub fn placed_together(sub: &SubModel, configuration: &Configuration, colocated: &[Colocated]) -> Placed {
    let colocated: Vec<Colocated> = colocated.iter().filter_map(|own| own.left_by(configuration)).collect();
    let mut placing = Placing { placed: configuration.clone(), colocated: colocated.clone(), ..Placing::default() };
    let tasks = instances(sub);
    // A user who says where one task runs keeps it there. One who says what its own processor is like, or gives it other copies than there are machines,
    // lets it have a processor of its own.
    let settings = |task: &str| configuration.tasks.get(task);
    let is_free = |task: &str| settings(task).is_none_or(|own| own.processor.is_none());
    let may_share = |task: &str, machines: usize| {
        let copies = settings(task).and_then(|own| own.replicas);
        is_free(task)
            && !configuration.processors.contains_key(task)
            && copies.is_none_or(|copies| copies as usize == machines)
    };
    let tenants = tenants(&tasks);
    let mut on: OnMachines<'_> = BTreeMap::new();
    let can_share =
        |(task, own): &(&&str, &Instances<'_>)| !own.machines.is_empty() && may_share(task, own.machines.len());
    for (task, own) in tasks.iter().filter(can_share) {
        on.entry(own.machines.clone()).or_default().push(task);
    }
    let has_own = |task: &str| settings(task).is_some_and(|own| own.replicas.is_some() || own.threads.is_some());
    let crowds = Crowds::of(sub, &tasks, is_free);
    let joined = join_even(&mut on, &crowds, &tasks, has_own);
    for (machines, alone) in on.iter().filter(|(_, tasks)| tasks.len() == 1) {
        if machines.iter().any(|machine| tenants[machine] > 1) {
            placing.partly.push(format!("{} on {}", listed(alone.iter().copied()), listed(machines.iter().copied())));
        }
    }
    on.retain(|_, sharing| sharing.len() > 1);
    let mut shared: BTreeSet<&str> = BTreeSet::new();
    for own in &colocated {
        shared.extend(own.tasks.iter().map(String::as_str));
        placing.put_on(&own.processor, own.tasks.iter().map(String::as_str), 1);
    }
    for (machines, sharing) in &on {
        let cores = told_alike(sharing.iter().map(|task| tasks[task].cores));
        let processor = processor_of(machines);
        let is_given = configuration.defaults.multiplicity.is_some()
            || configuration.processors.get(&processor).is_some_and(|own| own.multiplicity.is_some());
        if cores.is_none() && !is_given && sharing.iter().any(|task| measured(sub, task)) {
            placing.apart.push(format!("{} tasks on {}", sharing.len(), listed(machines.iter().copied())));
            continue;
        }
        shared.extend(sharing);
        placing.share(&processor, machines, sharing, cores, joined.contains(machines));
    }
    let on_each = tasks.iter().filter(|(_, own)| own.on_each > 1);
    placing.placed.instances.extend(on_each.map(|(task, own)| ((*task).to_owned(), own.on_each)));
    for (task, _) in tasks.iter().filter(|(_, own)| own.together > 1) {
        placing.dispatch(task, dispatching::of(sub, task));
    }
    for (task, own) in &tasks {
        if own.are_requests {
            placing.unclear.push(format!("`{task}`: {} identifiers", own.seen));
        } else if !shared.contains(task) && is_free(task) {
            placing.replicate(task, own);
        }
    }
    let alone = tasks.iter().filter(|(task, own)| own.together > 1 && !shared.contains(*task) && is_free(task));
    let alone = alone.map(|(task, _)| ((*task).to_owned(), vec![*task]));
    let sharing = on.iter().filter(|(machines, tasks)| machines.len() > 1 && shared.contains(tasks[0]));
    let sharing = sharing.map(|(machines, tasks)| (processor_of(machines), tasks.clone()));
    for (processor, tenants) in alone.chain(sharing) {
        let mut loads: BTreeMap<&str, MachineLoad> = BTreeMap::new();
        for task in tenants {
            let (spread, each) = (&tasks[task].spread, tasks[task].own_time_each(sub, task));
            let paces = if spread.is_empty() { BTreeMap::new() } else { pace::of(sub, task) };
            for (machine, invocations) in spread {
                loads.entry(machine).or_default().add(*invocations, each, paces.get(machine));
            }
        }
        if let Some((line, factor)) = uneven(&processor, &loads) {
            placing.uneven.push(line);
            placing.factors.insert(processor, factor);
        }
    }
    let of_their_own = tasks.keys().filter(|task| !shared.contains(*task) && is_free(task));
    let hosts = of_their_own.map(|task| ((*task).to_owned(), vec![*task]));
    let shared_hosts = on.iter().filter(|(_, tasks)| shared.contains(tasks[0]));
    let shared_hosts = shared_hosts.map(|(machines, tasks)| (processor_of(machines), tasks.clone()));
    for (processor, tenants) in hosts.chain(shared_hosts) {
        if let Some((line, factor)) = crowds.beside(&processor, &tenants) {
            placing.crowded.push(line);
            let own = placing.factors.entry(processor).or_insert(1.0);
            *own = own.max(factor);
        }
    }
    for (processor, (cores, metric)) in &configuration.cores {
        placing.bound(processor, *cores, metric, configuration);
    }
    placing.finish()
}

/// A configuration with tasks on the processors that a model has them on, where neither it nor the traces say where they run.
pub fn placed_as_in(model: &Model, sub: &SubModel, mut configuration: Configuration) -> Configuration {
    let free = servers::without_machine(sub, &configuration);
    let of_model = |task: &&Task| free.contains(&*task.name);
    let processor = |task: &Task| model.processors[task.processor.index()].name.to_string();
    let placed: Vec<(String, String)> =
        model.tasks.iter().filter(of_model).map(|task| (task.name.to_string(), processor(task))).collect();
    for (task, processor) in placed {
        configuration.tasks.entry(task).or_insert_with(|| TaskSettings::at(Place::Nowhere)).processor = Some(processor);
    }
    configuration
}

#[derive(Debug, Default)]
struct Placing {
    placed: Configuration,
    replicas: Vec<String>,
    dispatched: Vec<String>,
    uneven: Vec<String>,
    crowded: Vec<String>,
    factors: BTreeMap<String, f64>,
    sharing: Vec<String>,
    colocated: Vec<Colocated>,
    joined: Vec<String>,
    cores: Vec<String>,
    counted: Vec<String>,
    apart: Vec<String>,
    partly: Vec<String>,
    unclear: Vec<String>,
}

impl Placing {
    /// Puts tasks on the processors of machines.
    fn share(
        &mut self,
        processor: &str,
        machines: &BTreeSet<&str>,
        tasks: &[&str],
        cores: Option<u32>,
        is_joined: bool,
    ) {
        let copies = u32::try_from(machines.len()).unwrap_or(u32::MAX);
        self.put_on(processor, tasks.iter().copied(), copies);
        self.processor(processor, copies, cores);
        let line = format!("{} run on {}", listed(tasks.iter().copied()), listed(machines.iter().copied()));
        if is_joined { self.joined.push(line) } else { self.sharing.push(line) }
    }

    /// Puts tasks on a processor that they share, and that has so many copies.
    fn put_on<'t>(&mut self, processor: &str, tasks: impl ExactSizeIterator<Item = &'t str>, copies: u32) {
        self.placed.tenants.insert(processor.to_owned(), u32::try_from(tasks.len()).unwrap_or(u32::MAX));
        for task in tasks {
            let settings = self.placed.tasks.entry(task.to_owned()).or_insert_with(|| TaskSettings::at(Place::Nowhere));
            settings.processor = Some(processor.to_owned());
            settings.replicas = (copies > 1).then_some(copies);
        }
    }

    /// Makes so many of a task and its processor as there were instances together, unless it is said how many there are of either.
    fn replicate(&mut self, task: &str, own: &Instances<'_>) {
        let of_task = self.placed.tasks.get(task).and_then(|settings| settings.replicas);
        let of_processor = self.placed.processors.get(task).and_then(|settings| settings.replicas);
        let given = of_task.or(of_processor);
        let copies = given.unwrap_or(own.together);
        if copies > 1 {
            let settings = self.placed.tasks.entry(task.to_owned()).or_insert_with(|| TaskSettings::at(Place::Nowhere));
            settings.replicas.get_or_insert(copies);
        }
        if own.together > 1 && given.is_none() {
            let times = if own.share_machines {
                format!(" machines, of {} instances", own.seen)
            } else if own.are_apart {
                " instances, each with a queue of its own on its machine".to_owned()
            } else if own.seen > own.together as usize {
                format!(" instances at a time, of {} that came and went", own.seen)
            } else {
                " instances".to_owned()
            };
            self.replicas.push(format!("`{task}`: {}{times}", own.together));
        }
        // The number of cores is that of one instance, not of its machine.
        let cores = Some(own.cores).filter(|cores| *cores > 0 && !own.share_machines);
        if copies > 1 || cores.is_some() {
            self.processor(task, copies, cores);
        }
    }

    /// Lets requests come to the copies of a task as they were seen to, unless it is configured.
    fn dispatch(&mut self, task: &str, dispatching: Dispatching) {
        let Some(word) = dispatching.told() else { return };
        let settings = self.placed.tasks.entry(task.to_owned()).or_insert_with(|| TaskSettings::at(Place::Nowhere));
        if settings.dispatching.is_none() {
            settings.dispatching = Some(dispatching);
            self.dispatched.push(format!("`{task}`: {word}"));
        }
    }

    fn processor(&mut self, name: &str, copies: u32, cores: Option<u32>) {
        let settings =
            self.placed.processors.entry(name.to_owned()).or_insert_with(|| ProcessorSettings::at(Place::Nowhere));
        if copies > 1 {
            settings.replicas.get_or_insert(copies);
        }
        let is_given = settings.multiplicity.is_some() || self.placed.defaults.multiplicity.is_some();
        let Some(cores) = cores.filter(|_| !is_given) else { return };
        let told = f64::from(cores) / 1000.0;
        settings.multiplicity = Some(Multiplicity::Finite(cores.div_ceil(1000)));
        self.placed.bounds.insert(name.to_owned());
        let quota = self.quota(name, told);
        self.cores.push(format!("`{name}`: {told} cores{quota}"));
    }

    /// Gives a processor no more servers than metrics say that it has, where the configuration gives none.
    fn bound(&mut self, name: &str, cores: f64, metric: &str, configuration: &Configuration) {
        let given = configuration.processors.get(name).and_then(|settings| settings.multiplicity);
        if given.or(configuration.defaults.multiplicity).is_some() {
            return;
        }
        let settings =
            self.placed.processors.entry(name.to_owned()).or_insert_with(|| ProcessorSettings::at(Place::Nowhere));
        let each = cores / f64::from(settings.replicas.unwrap_or(1).max(1));
        let servers = (each.ceil().min(f64::from(u32::MAX)) as u32).max(1);
        if let Some(Multiplicity::Finite(told)) = settings.multiplicity
            && self.placed.quotas.get(name).copied().unwrap_or(f64::from(told)) <= each
        {
            return;
        }
        settings.multiplicity = Some(Multiplicity::Finite(servers));
        self.placed.bounds.insert(name.to_owned());
        let short = (each * 1000.0).round() / 1000.0;
        let quota = self.quota(name, each);
        self.counted.push(format!("`{name}`: {short} cores by {metric}{quota}"));
    }

    /// Keeps how many cores a processor has where that is no whole number of servers; what is to be said of it.
    fn quota(&mut self, name: &str, cores: f64) -> &'static str {
        self.placed.quotas.remove(name);
        if cores.fract() == 0.0 {
            return "";
        }
        self.placed.quotas.insert(name.to_owned(), cores);
        ", a quota"
    }

    fn finish(self) -> Placed {
        let mut notes = Vec::new();
        let mut say = |message: &str, list: &[String], hint: &str| {
            if list.is_empty() {
                return;
            }
            let mut note = Diagnostic::new(Severity::Note, codes::DEPLOYMENT, Place::Nowhere, message);
            for line in list.iter().take(SHOWN) {
                note = note.with_note(line.clone());
            }
            if list.len() > SHOWN {
                note = note.with_note(format!("and {} more", list.len() - SHOWN));
            }
            notes.push(note.with_hint(hint));
        };
        say(
            "tasks have as many replicas as instances were there together, by their identifiers or hosts",
            &self.replicas,
            "set `replicas` under `[task.NAME]` and `[processor.NAME]`",
        );
        say(
            "requests are dispatched to the instances of tasks, by where they went",
            &self.dispatched,
            "set `dispatching` under `[task.NAME]`",
        );
        say(
            "tasks share processors, since all of their instances name the same machines",
            &self.sharing,
            "set `processor` under `[task.NAME]`",
        );
        say(
            "tasks share processors, each as if it ran on all of these machines: their instances are on some of them, and these have as much work as each other",
            &self.joined,
            "set `processor` under `[task.NAME]`",
        );
        say("resources say how many cores there are", &self.cores, "set `multiplicity` under `[processor.NAME]`");
        say("metrics say how many cores there are", &self.counted, "set `multiplicity` under `[processor.NAME]`");
        say(
            "tasks name one machine and keep processors of their own: their processor time was measured, and the number of cores of the machine is not known",
            &self.apart,
            "set `processor` under `[task.NAME]`, and `multiplicity` under `[processor.MACHINE]`",
        );
        say(
            "tasks keep processors of their own, though others run on some of their machines, since not all of their instances are on the same",
            &self.partly,
            "set `processor` under `[task.NAME]` where they disturb each other",
        );
        say(
            "identifiers of instances count no replicas: each has but a few invocations",
            &self.unclear,
            "set `replicas` under `[task.NAME]` and `[processor.NAME]`",
        );
        if !self.uneven.is_empty() {
            let message = "copies that the model takes as alike do not have as much work as each other";
            let mut warning = Diagnostic::warning(codes::UNEVEN_COPIES, Place::Nowhere, message);
            for line in self.uneven.iter().take(SHOWN) {
                warning = warning.with_note(line.clone());
            }
            notes.push(warning.with_hint(
                "read utilisation and headroom of the busiest copy from these factors; `processor` under `[task.NAME]` separates services",
            ));
        }
        if !self.crowded.is_empty() {
            let message = "machines have more work than the model lets their processors have";
            let mut warning = Diagnostic::warning(codes::UNEVEN_COPIES, Place::Nowhere, message);
            for line in self.crowded.iter().take(SHOWN) {
                warning = warning.with_note(line.clone());
            }
            notes.push(warning.with_hint(
                "read utilisation and headroom of these processors from these factors; `processor` under `[task.NAME]` puts services together",
            ));
        }
        notes.extend(servers::colocation_note(&self.colocated));
        Placed { configuration: self.placed, findings: notes, uneven: self.factors }
    }
}

/// Tasks by the machines that their instances are on.
type OnMachines<'s> = BTreeMap<BTreeSet<&'s str>, Vec<&'s str>>;

/// Takes tasks together that share machines in part, where all of these have about as much work as each other, and each task is on half of them or more; gives the machines of such tasks.
/// A task of which the configuration tells copies or threads keeps them.
fn join_even<'s>(
    on: &mut OnMachines<'s>,
    crowds: &Crowds<'s>,
    tasks: &BTreeMap<&'s str, Instances<'s>>,
    has_own: impl Fn(&str) -> bool,
) -> BTreeSet<BTreeSet<&'s str>> {
    let mut groups: Vec<(BTreeSet<&'s str>, Vec<&BTreeSet<&'s str>>)> = Vec::new();
    for machines in on.keys() {
        let (apart, touching): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(all, _)| all.is_disjoint(machines));
        groups = apart;
        let (mut all, mut parts) = (machines.clone(), vec![machines]);
        for (others, own) in touching {
            all.extend(others);
            parts.extend(own);
        }
        groups.push((all, parts));
    }
    let are_even = |all: &BTreeSet<&str>, parts: &[&BTreeSet<&str>]| {
        let together: BTreeSet<&str> = parts.iter().flat_map(|machines| &on[*machines]).copied().collect();
        // One that is on few of them keeps these busy alone, whatever all others do.
        let is_spread = |task: &&str| {
            let own = &tasks[task];
            !own.spread.is_empty() && 2 * own.machines.len() >= all.len() && !has_own(task)
        };
        let loads: Vec<f64> = all.iter().map(|machine| crowds.work_of(machine, &together)).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        together.iter().all(is_spread) && loads.iter().all(|load| *load <= UNEVEN * mean)
    };
    groups.retain(|(all, parts)| parts.len() > 1 && are_even(all, parts));
    let joined: OnMachines<'s> = groups
        .into_iter()
        .map(|(all, parts)| {
            let mut together: Vec<&str> = parts.iter().flat_map(|machines| &on[*machines]).copied().collect();
            together.sort_unstable();
            (all, together)
        })
        .collect();
    on.retain(|machines, _| !joined.keys().any(|all| !all.is_disjoint(machines)));
    let machines = joined.keys().cloned().collect();
    on.extend(joined);
    machines
}

/// The work of a machine.
#[derive(Debug, Default)]
struct MachineLoad {
    invocations: u64,
    /// Seconds that all machines take for it on the mean.
    work: f64,
    /// Seconds that it takes itself.
    busy: f64,
    /// The variance of that.
    variance: f64,
}

impl MachineLoad {
    /// More invocations, of so many seconds each.
    fn add(&mut self, invocations: u64, each: f64, pace: Option<&Pace>) {
        let (factor, error) = pace.map_or((1.0, 0.0), |pace| (pace.factor, pace.error));
        let (count, work) = (invocations as f64, invocations as f64 * each);
        self.invocations += invocations;
        self.work += work;
        self.busy += work * factor;
        self.variance += (work * factor).powi(2) * (1.0 / count.max(1.0) + error * error);
    }
}

/// The work on each machine, by task: seconds of invocations' own time.
#[derive(Debug)]
struct Crowds<'s>(BTreeMap<&'s str, BTreeMap<&'s str, f64>>);

impl<'s> Crowds<'s> {
    /// That of the tasks which the configuration does not place.
    fn of(sub: &SubModel, tasks: &BTreeMap<&'s str, Instances<'s>>, is_free: impl Fn(&str) -> bool) -> Self {
        let mut machines: BTreeMap<&'s str, BTreeMap<&'s str, f64>> = BTreeMap::new();
        for (task, own) in tasks.iter().filter(|(task, own)| !own.machines.is_empty() && is_free(task)) {
            let each = own.own_time_each(sub, task);
            for (machine, invocations) in own.spread.iter().filter(|(machine, _)| own.machines.contains(*machine)) {
                *machines.entry(machine).or_default().entry(task).or_default() += *invocations as f64 * each;
            }
        }
        Self(machines)
    }

    /// The work of some tasks on a machine, seconds.
    fn work_of(&self, machine: &str, tasks: &BTreeSet<&str>) -> f64 {
        let work = self.0.get(machine).into_iter().flatten();
        work.filter(|(task, _)| tasks.contains(*task)).map(|(_, work)| work).sum()
    }

    /// Says which machine of a processor has work of others, too, that the model leaves to processors of their own, where that is much, and how many times as busy as the mean copy it is.
    /// Only the processor that has at least half of the machine's work names it.
    fn beside(&self, processor: &str, tenants: &[&str]) -> Option<(String, f64)> {
        let own = |work: &BTreeMap<&str, f64>| tenants.iter().filter_map(|task| work.get(task)).sum::<f64>();
        let machines = self.0.iter().map(|(machine, work)| (*machine, own(work), work.values().sum::<f64>(), work));
        let machines: Vec<_> = machines.filter(|(_, own, ..)| *own > 0.0).collect();
        let mean = machines.iter().map(|(_, own, ..)| own).sum::<f64>() / machines.len().max(1) as f64;
        let (machine, own, all, work) = machines.into_iter().max_by(|left, right| left.2.total_cmp(&right.2))?;
        let factor = all / mean;
        (own >= all / 2.0 && all > own * UNEVEN && factor > UNEVEN).then(|| {
            let others: Vec<&str> = work.keys().filter(|task| !tenants.contains(*task)).copied().collect();
            let line = format!(
                "`{processor}`: {} on `{machine}`, too, and the model has a processor of its own for each: `{machine}` is {factor:.2} times as busy as the model has it, and \
                 saturates at {:.2} of the load that saturates the model",
                listed(others.into_iter()),
                1.0 / factor
            );
            (line, factor)
        })
    }
}

/// Says how much busier than on average the busiest of the copies of a processor is, where that is much, and how many times as busy.
fn uneven(processor: &str, loads: &BTreeMap<&str, MachineLoad>) -> Option<(String, f64)> {
    let mean = |of: fn(&MachineLoad) -> f64| loads.values().map(of).sum::<f64>() / loads.len().max(1) as f64;
    let (all, copies) = (mean(|own| own.busy), loads.len());
    let (machine, most) = loads.iter().max_by(|left, right| left.1.busy.total_cmp(&right.1.busy))?;
    let (factor, share, pace) = (most.busy / all, most.work / mean(|own| own.work), most.busy / most.work);
    let is_clear = (factor - 1.0) * most.busy > CLEAR * factor * most.variance.sqrt();
    (all > 0.0 && factor > UNEVEN && is_clear).then(|| {
        let why = if (pace - 1.0).abs() < UNEVEN - 1.0 {
            format!("has {share:.2} times the mean work of its {copies} copies")
        } else {
            format!(
                "has {share:.2} times the mean work of its {copies} copies, and takes {pace:.2} times as long as they do for the same"
            )
        };
        let line = format!(
            "`{processor}`: `{machine}` {why}: it is {factor:.2} times as busy as the model has it, and saturates at {:.2} of the load that saturates the model",
            1.0 / factor
        );
        (line, factor)
    })
}

/// What an instance is at: its machine, else itself.
pub(super) fn site(replica: &Replica) -> Name {
    if replica.machine.is_some() { replica.machine } else { replica.instance }
}

/// By machine, how many tasks have instances on it.
fn tenants<'s>(tasks: &BTreeMap<&'s str, Instances<'s>>) -> BTreeMap<&'s str, usize> {
    let mut tenants: BTreeMap<&str, usize> = BTreeMap::new();
    for machine in tasks.values().flat_map(|own| &own.machines) {
        *tenants.entry(machine).or_default() += 1;
    }
    tenants
}

/// Tasks of which traces tell the machine, its cores, or several instances.
pub(super) fn named(sub: &SubModel) -> BTreeSet<&str> {
    let tasks = instances(sub);
    let tenants = tenants(&tasks);
    let is_machine = |name: &&str, task: &str| tenants[*name] > 1 || !is_container(name, task);
    let is_named = |(task, own): &(&&str, &Instances<'_>)| {
        own.together > 1 || own.cores > 0 || own.machines.iter().any(|name| is_machine(name, task))
    };
    tasks.iter().filter(is_named).map(|(task, _)| *task).collect()
}

/// Whether the name of a host is that of a container and not of a machine: a digest of Docker's, or a pod of a deployment of Kubernetes.
fn is_container(name: &str, task: &str) -> bool {
    let is_digest = matches!(name.len(), 12 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_part = |part: &str, least: usize| {
        (least..=10).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_suffix = |rest: &str| rest.split_once('-').is_some_and(|(set, pod)| is_part(set, 8) && is_part(pod, 5));
    let is_pod = name.strip_prefix(task).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_suffix);
    is_digest || is_pod
}

/// By task.
fn instances(sub: &SubModel) -> BTreeMap<&str, Instances<'_>> {
    let mut seen: BTreeMap<&str, Vec<(&Replica, &Seen)>> = BTreeMap::new();
    let named = sub.deployment.replicas().map(|(replica, _)| replica).filter(|replica| replica.machine.is_some());
    let named: BTreeSet<(Name, Name)> = named.map(|replica| (replica.task, replica.instance)).collect();
    // An instance whose machine some spans leave out is no other one.
    let is_repeated = |own: &Replica| !own.machine.is_some() && named.contains(&(own.task, own.instance));
    for (replica, own) in sub.deployment.replicas().filter(|(replica, _)| !is_repeated(replica)) {
        seen.entry(sub.names.text(replica.task)).or_default().push((replica, own));
    }
    let of = |(task, own): (_, Vec<(&Replica, &Seen)>)| {
        let invocations: u64 = own.iter().map(|(_, seen)| seen.invocations).sum();
        let machine = |(replica, _): &(&Replica, &Seen)| sub.names.text(replica.machine);
        let machines: BTreeSet<&str> = own.iter().map(machine).filter(|name| !name.is_empty()).collect();
        let are_requests = own.len() > 1 && invocations < FEWEST_EACH * own.len() as u64;
        let together = if are_requests { 1 } else { together(&own) };
        let mut spread: BTreeMap<&str, u64> = BTreeMap::new();
        for (replica, seen) in &own {
            *spread.entry(sub.names.text(site(replica))).or_default() += seen.invocations;
        }
        let are_alike = own.windows(2).all(|two| two[0].0.machine.is_some() == two[1].0.machine.is_some());
        if are_requests || !are_alike || own.len() > together as usize {
            spread.clear();
        }
        let on_fewer = !spread.is_empty() && spread.len() < together as usize;
        let are_apart = on_fewer && are_apart(sub, task);
        if are_apart {
            spread = own.iter().map(|(replica, seen)| (sub.names.text(replica.instance), seen.invocations)).collect();
        }
        let share_machines = on_fewer && !are_apart;
        let instances = Instances {
            together: if share_machines { spread.len() as u32 } else { together },
            seen: own.len(),
            are_requests,
            are_apart,
            share_machines,
            on_each: if share_machines { (together / spread.len().max(1) as u32).max(1) } else { 1 },
            spread,
            machines: if are_requests || are_apart { BTreeSet::new() } else { machines },
            cores: told_alike(own.iter().map(|(_, seen)| seen.cores)).unwrap_or(0),
        };
        (task, instances)
    };
    seen.into_iter().map(of).collect()
}

/// How many instances there were on the mean, over the time in which there was one. An identifier with hardly any of the invocations is none of them, however long
/// it was there: a health check, a span of another process.
fn together(own: &[(&Replica, &Seen)]) -> u32 {
    // Instances do alike in as much time: one that was there for a tenth of it does a tenth.
    let busiest = own.iter().map(|(_, seen)| seen.invocations).max().unwrap_or(0);
    let longest = own.iter().map(|(_, seen)| seen.first.abs_diff(seen.last)).max().unwrap_or(0);
    let counts = |seen: &Seen| {
        let part = seen.first.abs_diff(seen.last) as f64 / longest.max(1) as f64;
        seen.invocations as f64 >= STRAY * busiest as f64 * part
    };
    let own = own.iter().filter(|(_, seen)| counts(seen));
    let mut lives: Vec<(i64, i64)> = own.map(|(_, seen)| (seen.first, seen.last)).collect();
    lives.sort_unstable();
    let (mut all, mut covered, mut until) = (0_u128, 0_u128, i64::MIN);
    for (first, last) in lives {
        all += u128::from(first.abs_diff(last));
        if last > until {
            covered += u128::from(last.abs_diff(first.max(until)));
            until = last;
        }
    }
    if covered == 0 { 1 } else { ((all as f64 / covered as f64).round() as u32).max(1) }
}

/// The number that all of those name which name one.
fn told_alike(mut cores: impl Iterator<Item = u32>) -> Option<u32> {
    let first = cores.next().filter(|cores| *cores > 0)?;
    cores.all(|other| other == first).then_some(first)
}

/// The entries of a task.
pub(super) fn entries_of<'s>(sub: &'s SubModel, task: &str) -> impl Iterator<Item = &'s EntryTotal> {
    sub.entries()
        .iter()
        .filter(move |entry| entry.interaction != Interaction::Customer && sub.names.text(entry.task) == task)
}

/// Whether processor time of the task was measured.
fn measured(sub: &SubModel, task: &str) -> bool {
    entries_of(sub, task).any(is_measured)
}

fn processor_of(machines: &BTreeSet<&str>) -> String {
    let first = machines.first().copied().unwrap_or_default();
    match machines.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} +{}", more - 1),
    }
}

pub(super) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let count = names.len();
    let shown: Vec<String> = names.take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
