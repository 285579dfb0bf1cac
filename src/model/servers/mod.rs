//! What traces of services tell of their hosts: how many servers each has, and which part of the time in which an invocation works by itself
//! is processor time.
//!
//! Time in which a task waits for no other one holds what it waited for a processor. With k servers, of which each of n that are there has
//! the part min(1, k/n), an invocation's processor time is the integral of that over its own time. With too few servers it comes out too
//! small for invocations that found many others there, with too many servers too large. So the number of servers is the one with which the
//! processor time does not depend on how many others were found ([`Occupancy::served`]). The order of service is found in the same way ([`Discipline`]).

mod apart;
mod busy;
mod colocation;
mod copies;
mod discipline;
mod evidence;
mod fit;
mod host;
mod joint;
mod lasting;
mod latency;
mod machine;
mod observed;
mod occupancy;
mod of_tasks;
mod quotas;
mod sampled;
mod unknown_cores;
mod waits;

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::{EntryIndex, EntryTotal, Interaction, ScenarioTotal, SubModel};
use crate::lqn::together;
use crate::lqn::{Dispatching, Multiplicity, Scheduling, Work};
use crate::model::config::Configuration;
use crate::model::demand::is_measured;
use crate::model::parts::Parts;
use crate::model::pools::{self, Pool};
use crate::model::servers::copies::copies;
use crate::model::servers::fit::{Fit, Known, fitted, is_fewer, without_told};
use crate::model::servers::lasting::Lasting;
use crate::model::servers::observed::Observed;
use crate::model::servers::occupancy::Occupancy;
use crate::model::servers::of_tasks::{OfTasks, TaskBusy};
use crate::model::servers::quotas::{WithQuota, with_quota};
use crate::model::servers::sampled::{offered, waiting};
use crate::model::servers::unknown_cores::UnknownCores;
use crate::model::slices::Slices;
use crate::model::utilisation::Busy;
use crate::model::variability::rounded;
use crate::model::{ForkDelays, codes, load, population};
use crate::names::Name;

/// The fewest stays from which servers are found.
const ENOUGH: usize = 10;

/// Where so many servers of a copy or more let nobody wait, what keeps them busy may be a wait as well: machines that are busy with so much queue now and then (ours).
const MANY: u32 = 8;

/// Clocks and spans that are not quite what a server does let this part of stays end before they had their turn, and as many more as
/// lost spans of calls make waits look like work.
const EARLY: f64 = 0.01;

pub use apart::are_apart;
pub use colocation::{
    Colocated, found as colocated, found_in as colocated_in, note as colocation_note, without_machine,
};
pub use discipline::Discipline;
pub use host::Host;
pub use joint::{Form, Joint, LoadTraces};
pub use machine::Machine;
pub use observed::by_callers;
use waits::Kind;
pub use waits::is_recorded;

/// What was found of hosts, and of the time of entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// By name of the processor.
    hosts: BTreeMap<String, Host>,
    /// By name of the processor, what was measured of some of its tasks.
    tasks: BTreeMap<String, Vec<TaskBusy>>,
    /// By number of the entry in the sub-model.
    own: BTreeMap<EntryIndex, OwnTime>,
    /// The threads of tasks that calls wait for, by task.
    pools: BTreeMap<Name, Pool>,
    /// The least and the most work that other numbers of servers make of it, which fit as well, as parts of what was found.
    work: BTreeMap<EntryIndex, (f64, f64)>,
    /// Entries whose invocations last and only wait.
    lasting: BTreeMap<EntryIndex, Lasting>,
    /// Tasks that share machines which traces do not name.
    pub colocated: Vec<Colocated>,
    /// Whether it is of several loads together, none of which the model is at.
    pub is_of_loads: bool,
    /// Measured parts of all cores that tell nothing, by name of the processor.
    unknown_cores: BTreeMap<String, UnknownCores>,
    /// What the solver left of the traced time of forks whose branches share processors, where a model was made under the load that was traced.
    pub forks: Option<ForkDelays>,
}

/// What is told of all hosts together.
#[derive(Clone, Copy)]
struct Around<'a> {
    parts: &'a Parts<'a>,
    configuration: &'a Configuration,
    observed: &'a Observed,
    candidates: &'a BTreeMap<EntryIndex, Lasting>,
    /// The part of spans that was lost.
    lost: f64,
    /// Whether operations of all scenarios begin whatever is under way, and nothing holds requests back.
    is_open: bool,
    /// Whether all scenarios have customers who wait for answers.
    is_closed: bool,
}

/// What the time is in which an invocation of an entry works by itself, as parts of it. What is left is queueing, which the model shows by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnTime {
    /// Processor time.
    pub processor: f64,
    /// Time beyond that and beyond the queueing that a model with such servers shows.
    pub delay: f64,
    /// How many times as large the squared coefficient of variation of processor time is as that of the whole time: queueing adds to it.
    pub spread: f64,
    /// Where in an invocation its processor time lies, where hosts serve first come, first served, and it is told.
    pub slices: Option<Slices>,
}

impl OwnTime {
    /// All of it is processor time.
    pub const WHOLE: Self = Self { processor: 1.0, delay: 0.0, spread: 1.0, slices: None };

    /// The same of longer time, of which that is so large a part. The rest is a constant latency.
    fn beside(self, part: f64) -> Self {
        let Self { processor, delay, spread, slices } = self;
        let spread = if part > 0.0 { spread / (part * part) } else { spread };
        Self { processor: processor * part, delay: delay * part + (1.0 - part), spread, slices }
    }

    /// Divides work whose demand is all of that time.
    pub fn divide(self, work: &mut Work) {
        work.delay(self.delay * work.demand);
        work.demand *= self.processor;
        let of_slice = self.slices.map(|slices| slices.cv2[3]);
        work.cv2 = work.cv2.map(|cv2| rounded(of_slice.unwrap_or(cv2 * self.spread)));
    }
}

impl Traced {
    /// What the traces tell of a system that is configured so.
    ///
    /// `lost` is the part of spans that was lost, `found` what was found of the times of scenarios.
    pub fn of(parts: &Parts<'_>, configuration: &Configuration, lost: f64, found: &population::Found) -> Self {
        let mut traced = Self { pools: parts.pools.clone(), ..Self::default() };
        let Some(observed) = Observed::of(parts) else { return traced };
        traced.hosts = busy::hosts(parts, configuration, &observed);
        let candidates = lasting::candidates(parts, observed.seconds);
        let loads = loads(parts, &observed, found);
        // A pool holds requests back, whoever sends them.
        let is_open = traced.pools.is_empty() && loads.iter().all(Option::is_none);
        let is_closed = loads.iter().all(Option::is_some);
        let around =
            Around { parts, configuration, observed: &observed, candidates: &candidates, lost, is_open, is_closed };
        let hosts = hosts_of(parts, configuration);
        for own in together::each(parts.sub.threads(), hosts, |(name, entries)| Self::host(around, &name, entries)) {
            traced.hosts.extend(own.hosts);
            traced.tasks.extend(own.tasks);
            traced.own.extend(own.own);
            traced.work.extend(own.work);
            traced.lasting.extend(own.lasting);
            traced.unknown_cores.extend(own.unknown_cores);
        }
        traced
    }

    /// What the traces tell of one host and its entries.
    fn host(around: Around<'_>, name: &str, mut entries: Vec<EntryIndex>) -> Self {
        let Around { parts, configuration, observed, lost, .. } = around;
        let mut traced = Self::default();
        let given = given(configuration, name);
        traced.leave_out_lasting(parts, configuration, (name, &mut entries), around.candidates, (observed, lost));
        let totals: Vec<&EntryTotal> = entries.iter().map(|index| parts.sub.entry(*index)).collect();
        let places = copies(parts, configuration, name, &entries);
        let mut occupancy = Occupancy::of(&totals, &places);
        if occupancy.stays() < ENOUGH {
            return traced;
        }
        if given == Some(Multiplicity::Infinite) {
            return traced;
        }
        let stations = occupancy.stations as f64;
        let observed = observed.at(parts, &entries);
        let probability = observed.probability;
        let mut seen = observed.all_present(parts, &entries);
        let mut busy = configuration.measured.processors.get(name).copied();
        let discipline = Discipline::given(scheduling_given(configuration, name));
        let kind = kind(parts, &entries);
        let early = early(parts, &entries, lost);
        let arrivals = around.is_open.then(|| dispatching(parts, configuration, &entries));
        let mut known = Known { servers: given, discipline, busy, kind, early, arrivals };
        let mut fit = fitted(&occupancy, probability, seen, known);
        if let Some(found) = UnknownCores::of(&fit, &occupancy, (probability, seen), known) {
            (busy, known.busy) = (None, None);
            fit = fitted(&occupancy, probability, seen, known);
            traced.unknown_cores.insert(name.to_owned(), found);
        }
        let told = quotas::told(configuration, name);
        let free = told.and_then(|_| without_told(&fit, &occupancy, (probability, seen), known));
        let (fewer, free) = match free {
            Some(free) if is_fewer(&free, &fit) => (Some(free), None),
            free => (None, free),
        };
        let bound = fewer.is_some().then_some(fit.servers);
        let cores = f64::from(fit.servers) * stations;
        fit = fewer.unwrap_or(fit);
        let throttled = with_quota(&fit, (told, free), &occupancy, (probability, seen), known);
        // A measured share is relative to all cores that metrics or resources tell.
        let uses_others = bound.is_some() || told.is_some() && throttled.is_some();
        let busy = busy.map(|busy| if uses_others { Busy::Cores(busy.cores(cores)) } else { busy });
        let mut quota = configuration.quotas.get(name).copied();
        let (is_throttled, mut stands_still) = (throttled.is_some(), false);
        if let Some(WithQuota { fit: found, cores, stands_still: seen }) = throttled {
            (fit, quota, stands_still) = (found, Some(cores), seen);
        }
        let is_peer = !is_throttled && probability >= 1.0 && !waits::is_recorded(parts, &entries);
        let latency = if is_peer { latency::found(&occupancy, seen, known, &fit) } else { None };
        let (mut left, mut seconds) = (vec![1.0; entries.len()], None);
        if let Some(found) = latency {
            seen *= found.left_of_all;
            (fit, occupancy, left, seconds) = (found.fit, found.occupancy, found.left, Some(found.seconds));
        }
        let machine = if probability >= 1.0 {
            machine::shared(parts, &entries, &places, (&occupancy, &fit), (seen * fit.imputed.all, known))
        } else {
            None
        };
        let there = seen / probability;
        let is_told = busy.is_some();
        let busy = busy.or(fit.busy.map(Busy::Cores));
        if fit.is_delay {
            let host = Host { latency: seconds, ..Host::delay(&fit, &occupancy, there) };
            traced.hosts.insert(name.to_owned(), host);
            return traced;
        }
        let load = match busy {
            Some(busy) => Load::measured(&fit, stations, there, probability < 1.0, busy),
            None => Load::of(&fit, stations, there, probability < 1.0),
        };
        // What was measured is shared out by how long invocations were there, as equal sharing has it.
        let is_shared = busy.is_some() && fit.discipline == Discipline::Sharing;
        let imputed = |place: usize| if is_shared { fit.imputed.all } else { fit.imputed.processor[place] };
        let of_tasks = OfTasks::of(parts, configuration, (&entries, imputed), (&observed, &load));
        let told = |index: &EntryIndex| of_tasks.factor(parts.sub.entry(*index).task);
        if !is_told {
            let (least, most) = load.range(&fit, stations, probability < 1.0 || occupancy.is_sparse());
            let range = (if may_wait(fit.range) { 0.0 } else { least }, most);
            traced.work.extend(entries.iter().filter(|index| told(index).is_none()).map(|index| (*index, range)));
        }
        let mut load = load.as_busy(of_tasks.busy, stations, &fit);
        if let Some(cores) =
            quota.filter(|cores| *cores < f64::from(fit.servers) && fit.discipline == Discipline::Sharing)
        {
            load.queueing = quotas::queueing(&fit, cores, load.busy / stations, &occupancy);
        }
        for (place, &index) in entries.iter().enumerate() {
            let part = imputed(place) * told(&index).unwrap_or(1.0);
            // Of those that were not traced nobody knows how they made others wait.
            let spread = if probability < 1.0 { 1.0 } else { fit.imputed.spread[place] };
            // Closed models queue no longer than the traces did. Open ones queue as Poisson arrivals do.
            let waited = if around.is_closed { 1.0 - imputed(place) } else { 1.0 };
            let stretches = fit.imputed.stretches.get(place);
            let slices = stretches.and_then(|stretches| Slices::of(parts.sub.entry(index), stretches));
            let own = OwnTime { spread, slices, ..load.own_time(part, waited, fit.discipline) };
            traced.own.insert(index, own.beside(left[place]));
        }
        let servers = fit.servers.saturating_mul(occupancy.stations as u32);
        let host = Host {
            servers,
            is_delay: false,
            discipline: fit.discipline,
            copies: occupancy.stations as u32,
            replicas: Some(replicas(configuration, name)),
            range: (given.is_none() || bound.is_some() || is_throttled).then_some(fit.range),
            bound: bound.filter(|_| !is_throttled),
            most: occupancy.most,
            utilization: load.busy / f64::from(servers),
            measured: busy.filter(|_| is_told).map(|busy| busy.cores(f64::from(servers))),
            waits: fit.busy.is_some(),
            or_waits: fit.or_waits.map(|(servers, busy)| (servers, busy / stations)),
            or_works: fit.or_works,
            alone: load.imputed,
            latency: seconds,
            quota,
            is_throttled,
            machine,
            stands_still,
        };
        if !of_tasks.some.is_empty() {
            traced.tasks.insert(name.to_owned(), of_tasks.some);
        }
        traced.hosts.insert(name.to_owned(), host);
        traced
    }

    /// Leaves those entries of a host out that last and only wait.
    fn leave_out_lasting(
        &mut self,
        parts: &Parts<'_>,
        configuration: &Configuration,
        (name, entries): (&str, &mut Vec<EntryIndex>),
        candidates: &BTreeMap<EntryIndex, Lasting>,
        (observed, lost): (&Observed, f64),
    ) {
        let has_demand = |index: &EntryIndex| {
            let service = parts.sub.names.text(parts.sub.entry(*index).service);
            configuration.demand.entries.contains_key(service)
        };
        let (mut lasting, others): (Vec<EntryIndex>, Vec<EntryIndex>) =
            entries.iter().partition(|index| candidates.contains_key(index) && !has_demand(index));
        if lasting.is_empty() {
            return;
        }
        let (too_long, may_wait): (Vec<EntryIndex>, Vec<EntryIndex>) =
            lasting.iter().partition(|index| candidates[*index].is_too_long());
        let score = |entries: &[EntryIndex]| {
            let totals: Vec<&EntryTotal> = entries.iter().map(|index| parts.sub.entry(*index)).collect();
            let occupancy = Occupancy::of(&totals, &copies(parts, configuration, name, entries));
            let observed = observed.at(parts, entries);
            let seen = observed.all_present(parts, entries);
            let known = Known {
                servers: given(configuration, name),
                discipline: Discipline::given(scheduling_given(configuration, name)),
                busy: configuration.measured.processors.get(name).copied(),
                kind: kind(parts, entries),
                early: early(parts, entries, lost),
                arrivals: None,
            };
            (occupancy.stays() >= ENOUGH).then(|| fitted(&occupancy, observed.probability, seen, known).unlikelihood)
        };
        if !may_wait.is_empty() {
            let together = [&others[..], &may_wait].concat();
            let waits = score(&together).zip(score(&others)).is_some_and(|(work, wait)| wait + lasting::RARE < work);
            if !waits {
                lasting = too_long;
            }
        }
        entries.retain(|index| !lasting.contains(index));
        for index in lasting {
            self.own.insert(index, OwnTime { processor: 0.0, delay: 1.0, ..OwnTime::WHOLE });
            self.lasting.insert(index, candidates[&index]);
        }
    }

    /// Says which entries last and only wait.
    pub fn lasting_findings(&self, parts: &Parts<'_>) -> Vec<Diagnostic> {
        lasting::findings(parts, &self.lasting)
    }

    /// The threads of a task, or the connections to it, where calls wait for them.
    pub fn pool(&self, task: Name) -> Option<&Pool> {
        self.pools.get(&task)
    }

    /// How long an invocation of each entry takes for waits for such threads, seconds.
    pub fn waited(&self, sub: &SubModel) -> Vec<f64> {
        pools::waited(sub, &self.pools)
    }

    /// Says whose threads were found.
    pub fn pools_note(&self, sub: &SubModel) -> Option<Diagnostic> {
        pools::note(sub, &self.pools)
    }

    /// Says whose threads may be limited, where clocks hide it and no setting tells.
    pub fn hidden_pools(&self, sub: &SubModel, is_set: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
        pools::hidden(sub, &self.pools, is_set)
    }

    /// The fewest servers that fit a processor, where its servers were found and no number is too large.
    pub fn open_servers(&self, processor: &str) -> Option<u32> {
        let host = self.hosts.get(processor).filter(|host| !host.is_delay)?;
        host.range.filter(|(_, most)| most.is_none()).map(|(least, _)| least)
    }

    /// The fewest servers that fit a processor which was taken for a delay.
    pub fn delay_servers(&self, processor: &str) -> Option<u32> {
        let host = self.hosts.get(processor).filter(|host| host.is_delay)?;
        host.range.map(|(least, _)| least)
    }

    /// Until how many seconds of processor time an invocation goes before all others, at a processor that was found to serve so.
    pub fn quantum(&self, processor: &str) -> Option<f64> {
        match self.hosts.get(processor)?.discipline {
            Discipline::Multilevel(quantum) => Some(quantum as f64 * 1e-9),
            _ => None,
        }
    }

    /// Whether a processor was found to use another number of servers than it has cores.
    pub fn uses_others(&self, processor: &str) -> bool {
        self.hosts.get(processor).is_some_and(|host| host.bound.is_some() || host.is_throttled)
    }

    /// The servers of each copy of a processor, where they were found. Another number of copies than there were has as many servers each; where it is not known how many
    /// there were, they were so many.
    pub fn servers(&self, processor: &str, copies: u32) -> Option<Multiplicity> {
        let servers = |host: &Host| {
            if host.is_delay {
                Multiplicity::Infinite
            } else {
                Multiplicity::Finite(host.servers.div_ceil(host.replicas.unwrap_or(copies).max(1)))
            }
        };
        self.hosts.get(processor).map(servers)
    }

    /// In which order a processor serves, where that was found.
    pub fn scheduling(&self, processor: &str) -> Option<Scheduling> {
        let scheduling = |host: &Host| if host.is_delay { Scheduling::Delay } else { host.discipline.scheduling() };
        self.hosts.get(processor).map(scheduling)
    }

    /// What the own time of an entry is.
    pub fn own(&self, entry: EntryIndex) -> OwnTime {
        self.own.get(&entry).copied().unwrap_or(OwnTime::WHOLE)
    }

    /// The least and the most work that an entry may have by numbers of servers that fit, as parts of what the number taken makes of it.
    pub fn work_range(&self, entry: EntryIndex) -> (f64, f64) {
        self.work.get(&entry).copied().unwrap_or((1.0, 1.0))
    }

    /// How many cores each copy of a processor may use, if it has a quota.
    pub fn quota(&self, processor: &str) -> Option<f64> {
        self.hosts.get(processor)?.quota
    }

    /// How many servers of a copy of each processor may be busy, and the machines of such copies, where these share them.
    pub fn machines(&self) -> BTreeMap<String, (f64, Machine)> {
        let of = |(name, host): (&String, &Host)| {
            let machine = host.machine?;
            let cores = f64::from(machine.cores) * f64::from(machine.count);
            Some((name.clone(), (cores / (machine.part * f64::from(host.copies)), machine)))
        };
        self.hosts.iter().filter_map(of).collect()
    }

    /// How many cores each copy of a processor may use, where it has a quota.
    pub fn quotas(&self) -> BTreeMap<String, f64> {
        self.hosts.iter().filter_map(|(name, host)| Some((name.clone(), host.quota?))).collect()
    }

    /// Warns of processors on which work stands still for a quota.
    pub fn throttled_finding(&self) -> Option<Diagnostic> {
        quotas::finding(&self.hosts)
    }

    /// The hosts whose servers were found or given, by the name of the processor.
    pub fn hosts(&self) -> impl Iterator<Item = (&String, &Host)> {
        self.hosts.iter()
    }

    /// Servers of a copy of each processor that were measured to be busy beyond what traced operations use: by all that runs on its machine, where that was measured beside the processes of services.
    pub fn others(&self, configuration: &Configuration) -> BTreeMap<String, f64> {
        let of = |(name, host): (&String, &Host)| {
            let servers = f64::from(host.servers);
            let whole = configuration.measured.machines.get(name).map(|busy| busy.cores(servers)).or(host.measured)?;
            let others = whole - host.utilization * servers;
            (others > OTHERS * servers).then(|| (name.clone(), others / f64::from(host.copies)))
        };
        self.hosts.iter().filter_map(of).collect()
    }

    /// Names the processors that were measured to be busier than traced operations make them.
    pub fn others_finding(&self, others: &BTreeMap<String, f64>) -> Option<Diagnostic> {
        let short = |value: f64| load::short((value * 1000.0).round() / 1000.0);
        let line = |(name, busy): (&String, &f64)| {
            let used = self
                .hosts
                .get(name)
                .map_or(0.0, |host| host.utilization * f64::from(host.servers) / f64::from(host.copies));
            format!("`{name}`: {} servers more than the {} that traced operations use", short(*busy), short(used))
        };
        let (count, lines) = (others.len(), others.iter().map(line));
        let message = match count {
            1 => "a processor was measured to be busier than traced operations make it".to_owned(),
            _ => format!("{count} processors were measured to be busier than traced operations make them"),
        };
        let finding = Diagnostic::warning(codes::OTHERS, Place::Nowhere, message);
        let told = lines.take(SHOWN).fold(finding, Diagnostic::with_note);
        let told = if count > SHOWN { told.with_note(format!("and {} more", count - SHOWN)) } else { told };
        (count > 0).then(|| {
            told.with_note("the model leaves that out, so that predictions for more load are too fast").with_hint(
                "trace what else runs there; where requests were sampled and traces do not tell, give `--sampling`",
            )
        })
    }

    /// Warns of processors whose measured part of all cores tells nothing.
    pub fn unknown_cores_finding(&self) -> Option<Diagnostic> {
        unknown_cores::finding(self.unknown_cores.iter())
    }

    /// Says of which processors and tasks utilisation was measured, and how far spans explain it.
    pub fn measured_note(&self) -> Option<Diagnostic> {
        let measured: Vec<(&String, &Host, f64)> =
            self.hosts.iter().filter_map(|(name, host)| Some((name, host, host.measured?))).collect();
        let of_host = |(name, host, busy): &(&String, &Host, f64)| {
            format!("`{name}`: {}", explained(*busy, host.alone, host.utilization * f64::from(host.servers)))
        };
        let tasks = || self.tasks.iter().flat_map(|(name, tasks)| tasks.iter().map(move |task| (name, task)));
        let of_task = |(name, own): (&String, &TaskBusy)| {
            format!("`{}` on `{name}`: {}", own.task, explained(own.measured, own.alone, own.used))
        };
        let counted = |count: usize, what: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("one {what}")),
            _ => Some(format!("{count} {many}")),
        };
        let processors = counted(measured.len(), "processor", "processors").map(|words| format!("on {words}"));
        let services = counted(tasks().count(), "service", "services").map(|words| format!("of {words}"));
        let whose: Vec<String> = processors.into_iter().chain(services).collect();
        if whose.is_empty() {
            return None;
        }
        let message = format!("demands {} follow from measured utilisation", whose.join(" and "));
        let told: Vec<String> = measured.iter().map(of_host).chain(tasks().map(of_task)).collect();
        let mut finding = Diagnostic::new(Severity::Note, codes::UTILISATION_USED, Place::Nowhere, message);
        for own in told.iter().take(SHOWN) {
            finding = finding.with_note(own);
        }
        if told.len() > SHOWN {
            finding = finding.with_note(format!("and {} more", told.len() - SHOWN));
        }
        Some(finding)
    }

    /// Says how many servers were found, and what else would fit.
    pub fn note(&self) -> Option<Diagnostic> {
        let is_told = |(_, host): &(&String, &Host)| host.range.is_some() || host.waits;
        let found: Vec<(&String, &Host)> = self.hosts.iter().filter(is_told).collect();
        if found.is_empty() {
            return None;
        }
        let processors = if found.len() == 1 { "processor" } else { "processors" };
        let what = if found.iter().all(|(_, host)| host.waits) { "demands" } else { "servers" };
        let message =
            format!("the {what} of {} {processors} were found from how long work took beside other work", found.len());
        let mut finding = Diagnostic::new(Severity::Note, codes::SERVERS_FOUND, Place::Nowhere, message);
        for (name, host) in found.iter().take(SHOWN) {
            finding = finding.with_note(format!("`{name}`: {}", host.described()));
        }
        if found.len() > SHOWN {
            finding = finding.with_note(format!("and {} more", found.len() - SHOWN));
        }
        Some(finding.with_hint("set `multiplicity` under `[processor.NAME]`, or under `[defaults]` for all"))
    }
}

/// What others use of a processor counts from this part of its servers on (ours): work outside of spans and errors of what was imputed come to as much.
const OTHERS: f64 = 0.05;

/// How many processors are named.
const SHOWN: usize = 12;

/// How much of the servers that were measured to be busy the spans explain: so many were by their times alone, and so many are demand.
fn explained(measured: f64, alone: f64, used: f64) -> String {
    let short = |value: f64| load::short((value * 1000.0).round() / 1000.0);
    let text = format!("{} servers busy, {} by the times of spans alone", short(measured), short(alone));
    if used < measured * 0.999 {
        format!("{text}; {} are of load that was not traced, and no demand of what was", short(measured - used))
    } else {
        text
    }
}

/// A number of cores, to hundredths.
fn hundredths(cores: f64) -> String {
    load::short((cores * 100.0).round() / 100.0)
}

/// Entries that were seen at work, by the processor that they run on. Where processor time was measured, own time beyond it is none, whatever
/// it depends on: such processors are left out.
fn hosts_of(parts: &Parts<'_>, configuration: &Configuration) -> BTreeMap<String, Vec<EntryIndex>> {
    let mut hosts: BTreeMap<String, Vec<EntryIndex>> = BTreeMap::new();
    for &index in &parts.entries {
        let entry = parts.sub.entry(index);
        if entry.stays.seen() > 0 && entry.interaction != Interaction::Customer {
            hosts.entry(host_of(parts, configuration, entry)).or_default().push(index);
        }
    }
    hosts.retain(|_, entries| !entries.iter().any(|index| is_measured(parts.sub.entry(*index))));
    hosts
}

/// The processor that an entry runs on.
fn host_of(parts: &Parts<'_>, configuration: &Configuration, entry: &EntryTotal) -> String {
    let task = parts.sub.names.text(entry.task);
    let settings = configuration.tasks.get(task);
    settings.and_then(|settings| settings.processor.as_deref()).unwrap_or(task).to_owned()
}

/// Whether the time at so many servers that fit a copy may be a wait.
fn may_wait((least, most): (u32, Option<u32>)) -> bool {
    least >= MANY && most.is_none()
}

/// The servers that the configuration gives to a processor, those of all its copies together.
fn given(configuration: &Configuration, processor: &str) -> Option<Multiplicity> {
    let settings = configuration.processors.get(processor);
    if scheduling_given(configuration, processor) == Some(Scheduling::Delay) {
        return Some(Multiplicity::Infinite);
    }
    let copies = replicas(configuration, processor);
    let multiplicity = settings.and_then(|settings| settings.multiplicity).or(configuration.defaults.multiplicity);
    match multiplicity? {
        Multiplicity::Finite(servers) => Some(Multiplicity::Finite(servers.saturating_mul(copies))),
        Multiplicity::Infinite => Some(Multiplicity::Infinite),
    }
}

/// How many copies a processor has by the configuration.
fn replicas(configuration: &Configuration, processor: &str) -> u32 {
    configuration.processors.get(processor).and_then(|settings| settings.replicas).unwrap_or(1)
}

/// The order of service that the configuration gives to a processor.
fn scheduling_given(configuration: &Configuration, processor: &str) -> Option<Scheduling> {
    let settings = configuration.processors.get(processor);
    settings.and_then(|settings| settings.scheduling).or(configuration.defaults.scheduling)
}

/// How a host was loaded.
struct Load {
    /// How many invocations were at work on average, those that were not traced included.
    there: f64,
    /// How many servers were busy.
    busy: f64,
    /// What is to be made of the processor time that was imputed.
    scale: f64,
    /// How long an invocation queues under open arrivals, in units of its processor time.
    queueing: f64,
    /// How many servers were busy by what was imputed.
    imputed: f64,
}

impl Load {
    fn of(fit: &Fit, stations: f64, there: f64, is_sampled: bool) -> Self {
        let busy = Self::traced(fit.servers, fit.imputed.all, stations, there, is_sampled);
        Self::busy(stations, there, busy, there * fit.imputed.all, fit)
    }

    /// How many servers are busy by what was imputed with that number of them. Whom others met that were not traced nobody saw: no more than would respond as was traced.
    fn traced(servers: u32, imputed: f64, stations: f64, there: f64, is_sampled: bool) -> f64 {
        let imputed = there * imputed;
        if is_sampled { imputed.min(stations * offered(f64::from(servers), there / stations)) } else { imputed }
    }

    /// What was measured. Where all operations were traced, what is more than they can have been is load that was not traced.
    fn measured(fit: &Fit, stations: f64, there: f64, is_sampled: bool, measured: Busy) -> Self {
        let servers = f64::from(fit.servers);
        let (imputed, measured) = (there * fit.imputed.all, measured.cores(servers * stations));
        let most = if is_sampled { there } else { imputed };
        Self::busy(stations, there, measured.min(most), imputed, fit)
    }

    /// How many servers are busy at the least and at the most with numbers of them that fit, as parts of how many are.
    fn range(&self, fit: &Fit, stations: f64, is_sparse: bool) -> (f64, f64) {
        let all = fit.fitting.iter();
        let all = all.map(|(servers, imputed)| Self::traced(*servers, *imputed, stations, self.there, is_sparse));
        // Where few were seen together all may be work.
        all.chain(is_sparse.then_some(self.there)).fold((1.0, 1.0), |(least, most): (f64, f64), busy| {
            let part = busy / self.busy.max(f64::MIN_POSITIVE);
            (least.min(part), most.max(part))
        })
    }

    fn busy(stations: f64, there: f64, busy: f64, imputed: f64, fit: &Fit) -> Self {
        let scale = busy / imputed.max(f64::MIN_POSITIVE);
        let each = busy / stations;
        let waiting = waiting(f64::from(fit.servers), each) * fit.imputed.regular(fit.discipline);
        Self { there, busy, scale, queueing: waiting / each.max(f64::MIN_POSITIVE), imputed }
    }

    /// The same scale, where so many servers were busy in the end.
    fn as_busy(&self, busy: f64, stations: f64, fit: &Fit) -> Self {
        Self { scale: self.scale, ..Self::busy(stations, self.there, busy, self.imputed, fit) }
    }

    /// Divides own time of which `imputed` is the part with a processor by the times of spans alone, and `waited` the most that queued for one.
    fn own_time(&self, imputed: f64, waited: f64, discipline: Discipline) -> OwnTime {
        let processor = (imputed * self.scale).min(1.0);
        let queueing = match discipline {
            Discipline::Sharing => processor * self.queueing,
            // Each queues for the part that it was seen to queue of all that the model lets them queue.
            _ => {
                (1.0 - processor)
                    * (self.busy * self.queueing / (self.there - self.busy).max(f64::MIN_POSITIVE)).min(1.0)
            }
        };
        OwnTime { processor, delay: (1.0 - processor - queueing.min(waited)).max(0.0), ..OwnTime::WHOLE }
    }
}

/// The customers of each scenario; `None` of those whose operations begin whatever is under way.
fn loads(parts: &Parts<'_>, observed: &Observed, found: &population::Found) -> Vec<Option<population::Customers>> {
    let rate = |total: &ScenarioTotal| total.operations as f64 / observed.seconds;
    let scenarios: Vec<(&ScenarioTotal, Option<f64>)> = parts
        .customers
        .iter()
        .map(|customer| (&customer.scenario_total, Some(rate(&customer.scenario_total))))
        .collect();
    population::customers(&scenarios, found)
}

/// What is known of a host beside stays: whether it records spans, and which pools tell how few are there together.
fn kind(parts: &Parts<'_>, entries: &[EntryIndex]) -> Kind {
    if !waits::is_recorded(parts, entries) {
        return Kind::Unknown;
    }
    let pool = |index: &EntryIndex| parts.pools.get(&parts.sub.entry(*index).task);
    let all_have = |entries: &[EntryIndex]| entries.iter().all(|index| pool(index).is_some());
    if parts.pools.is_empty() {
        Kind::Works
    } else if entries.iter().all(|index| pool(index).is_some_and(|pool| pool.of.is_none())) {
        Kind::Unknown
    } else if all_have(entries) || callers(parts, entries).is_some_and(|callers| all_have(&callers)) {
        Kind::Limited
    } else {
        Kind::Works
    }
}

/// The entries that call these and wait for them; `None` where others do as well that no entry tells.
fn callers(parts: &Parts<'_>, entries: &[EntryIndex]) -> Option<Vec<EntryIndex>> {
    let is_waited_for = |index: &EntryIndex| parts.sub.entry(*index).interaction == Interaction::Rendezvous;
    let calls = |index: &EntryIndex| parts.sub.entry(*index).requested().any(|(to, _)| entries.contains(&to));
    let all = (0..parts.sub.entries().len()).map(|number| EntryIndex(number as u32));
    let callers: Vec<EntryIndex> = all.filter(calls).collect();
    (entries.iter().all(is_waited_for) && !callers.is_empty()).then_some(callers)
}

/// How requests come to the copies of a host: as to all tasks that these entries are of, else by chance.
fn dispatching(parts: &Parts<'_>, configuration: &Configuration, entries: &[EntryIndex]) -> Dispatching {
    let of = |index: &EntryIndex| {
        let settings = configuration.tasks.get(parts.sub.names.text(parts.sub.entry(*index).task));
        settings.and_then(|settings| settings.dispatching).unwrap_or_default()
    };
    let first = entries.first().map(of).unwrap_or_default();
    if entries.iter().all(|entry| of(entry) == first) { first } else { Dispatching::FanOut }
}

/// The part of stays of a host that may end before they had their turn, where this part of spans was lost.
fn early(parts: &Parts<'_>, entries: &[EntryIndex], lost: f64) -> f64 {
    let totals = || entries.iter().map(|index| parts.sub.entry(*index));
    let invocations: u64 = totals().map(|entry| entry.invocations).sum();
    let calls: u64 = totals().flat_map(EntryTotal::requested).map(|(_, count)| count).sum();
    EARLY + lost * (1.0 + calls as f64 / invocations.max(1) as f64)
}
