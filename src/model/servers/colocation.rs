//! Tasks on one machine that no trace names.
//!
//! Services of a test bed often run in containers on one machine, and their spans name none, or their container. On its processor each makes the work of the others longer. With machines of their
//! own they would not: then what a stay has of its machine does not depend on the others, and lengths of stays are likelier with a machine for each. So both are made of the same stays, and likelihoods are
//! compared stay by stay, in batches of neighbours (Vuong, Econometrica 57, 1989).
//!
//! The thresholds are ours. Of 755 simulated traces with a machine for each service, without their names, none came to more than 0.9 standard errors where little spoke against one machine. Of 35 systems
//! drawn at random, with two to six services on one to five machines, 32 were found as they are; of the others, two parts, and one machine with hardly any work was put to another.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::stays::{Rank, Stay, UNDATED};
use crate::lqn::submodel::{EntryIndex, EntryTotal, SubModel};
use crate::lqn::together;
use crate::model::config::Configuration;
use crate::model::parts::Parts;
use crate::model::servers::apart::Slopes;
use crate::model::servers::evidence::Asked;
use crate::model::servers::fit::{Fit, Known, fitted, without_waits};
use crate::model::servers::joint::LoadTraces;
use crate::model::servers::lasting::{self, Lasting};
use crate::model::servers::observed::Observed;
use crate::model::servers::occupancy::{BATCH, INDEPENDENT, Occupancy};
use crate::model::servers::{ENOUGH, early, hosts_of, kind, waits};
use crate::model::utilisation::Busy;
use crate::model::{codes, deployment, fragments, weave};

/// Others make the stays of a task longer by so many standard errors where it is worth to look whether they share a machine.
const SLOWED: f64 = 3.0;

/// One machine is likelier by so many standard errors,
const CLEAR: f64 = 3.0;

/// and by so much, as the logarithm of a ratio: as much as fewer servers than cores are.
const LIKELIER: f64 = 8.0;

/// What speaks against one machine by itself, beside how likely lengths are, comes to no more: where neither one nor several fit, one that fits less badly tells nothing.
const MISFIT: f64 = 16.0;

/// A task whose own stays are less likely by so many standard errors is at a machine of its own.
const APART: f64 = 3.0;

/// No more tasks than so many are looked at: those with most work.
const MOST: usize = 256;

/// No more stays than so many are looked at, of all tasks together.
const LOOKED: usize = 1 << 16;

/// Pairs are made of no more tasks than so many: those with most work.
const PAIRED: usize = 8;

/// Tasks that share a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Colocated {
    /// Their names, in order.
    pub tasks: Vec<String>,
    /// The name of the machine's processor: that of the first task is in it.
    pub processor: String,
    /// How much likelier lengths of stays are with one machine than with one for each, as the logarithm of a ratio.
    pub likelier: f64,
}

impl Colocated {
    /// Those tasks of it that a configuration says nothing of; `None` where fewer than two are left.
    pub fn left_by(&self, configuration: &Configuration) -> Option<Self> {
        let left = self.tasks.iter().filter(|task| !is_set(task, configuration));
        let tasks: Vec<String> = left.cloned().collect();
        (tasks.len() > 1).then(|| Self { tasks, ..self.clone() })
    }

    /// Which tasks share it, and what tells that.
    fn described(&self) -> String {
        format!(
            "{} run on `{}`: the times of their work are e^{:.0} times as likely as with a machine for each",
            deployment::listed(self.tasks.iter().map(String::as_str)),
            self.processor,
            self.likelier
        )
    }
}

/// Says which tasks share machines that traces do not name.
pub fn note(found: &[Colocated]) -> Option<Diagnostic> {
    let message = "tasks share machines that traces do not name: others there make the work of each longer";
    let note = Diagnostic::new(Severity::Note, codes::DEPLOYMENT, Place::Nowhere, message);
    let note = found.iter().fold(note, |note, own| note.with_note(own.described()));
    let hint = "set `processor` under `[task.NAME]`, to the name of the task where it has a machine of its own";
    (!found.is_empty()).then(|| note.with_hint(hint))
}

/// A task with a machine of its own.
struct Alone<'n> {
    name: &'n str,
    entries: &'n [EntryIndex],
    /// How likely each of its stays is; `None` of one that tells nothing.
    likely: Vec<Option<f64>>,
    against: f64,
}

/// Tasks on one machine, and how much likelier their stays are there than at machines of their own.
struct Together {
    /// By task, then by stay.
    gains: Vec<Vec<f64>>,
    /// Whether work queues there, and little speaks against that.
    is_busy: bool,
    /// How much less speaks against it, beside how likely lengths are.
    against: f64,
}

/// Tasks that share a machine by how long their stays are, where neither traces nor the configuration say where they run, and all operations were traced.
pub fn found(sub: &SubModel, configuration: &Configuration) -> Vec<Colocated> {
    if without_machine(sub, configuration).len() < 2 {
        return Vec::new();
    }
    let decided = weave::decided(sub);
    let mut parts = Parts::of_decided(&decided);
    let lost = parts.leave_out_fragments();
    parts.configure(configuration, &mut Vec::new());
    found_in(&parts, configuration, fragments::lost_part(&lost, &parts))
}

/// The same of parts that are configured, where this part of spans was lost.
pub fn found_in(parts: &Parts<'_>, configuration: &Configuration, lost: f64) -> Vec<Colocated> {
    let unnamed = without_machine(parts.sub, configuration);
    let Some(observed) = Observed::of(parts).filter(|own| own.probability >= 1.0 && unnamed.len() > 1) else {
        return Vec::new();
    };
    let lasting = lasting::candidates(parts, observed.seconds);
    let only_waits = |index: &EntryIndex| lasting.get(index).is_some_and(Lasting::is_too_long);
    let mut hosts = hosts_of(parts, configuration);
    for entries in hosts.values_mut() {
        entries.retain(|index| !only_waits(index));
    }
    hosts.retain(|name, entries| unnamed.contains(&**name) && waits::is_recorded(parts, entries));
    let mut hosts: Vec<(String, Vec<EntryIndex>)> = hosts.into_iter().collect();
    if hosts.len() > MOST {
        let work = |host: &(String, Vec<EntryIndex>)| observed.all_present(parts, &host.1);
        hosts.sort_by(|one, other| work(other).total_cmp(&work(one)));
        hosts.truncate(MOST);
        hosts.sort();
    }
    let at = At { parts, observed: &observed, lost, before: before(parts, &hosts) };
    let entries: Vec<&[EntryIndex]> = hosts.iter().map(|(_, entries)| &entries[..]).collect();
    if hosts.len() < 2 || !at.are_slowed(&entries) {
        return Vec::new();
    }
    let alone = together::each(parts.sub.threads(), &hosts, |own| at.alone(own));
    let mut left: Vec<Alone<'_>> = alone.into_iter().flatten().collect();
    let mut found = Vec::new();
    while let Some((group, others)) = at.group(left) {
        found.push(group);
        left = others;
    }
    found
}

/// The same of several loads: what that load shows which tells most, of tasks that no load names a machine of.
pub fn most_telling(loads: &[LoadTraces<'_>]) -> Vec<Colocated> {
    let all = loads.iter().map(|(sub, configuration)| found(sub, configuration));
    let likelier = |found: &[Colocated]| found.iter().map(|own| own.likelier).sum::<f64>();
    let best = all.reduce(|best, own| if likelier(&own) > likelier(&best) { own } else { best }).unwrap_or_default();
    let unnamed: Vec<(BTreeSet<&str>, BTreeSet<&str>)> =
        loads.iter().map(|(sub, configuration)| (tasks_of(sub), without_machine(sub, configuration))).collect();
    let is_free = |task: &String| unnamed.iter().all(|(all, free)| free.contains(&**task) || !all.contains(&**task));
    best.into_iter().filter(|own| own.tasks.iter().all(is_free)).collect()
}

/// The names of all tasks.
fn tasks_of(sub: &SubModel) -> BTreeSet<&str> {
    sub.entries().iter().map(|entry| sub.names.text(entry.task)).collect()
}

/// Tasks of which nothing says where they run: no setting, no measurement, and no name of a machine.
pub fn without_machine<'s>(sub: &'s SubModel, configuration: &Configuration) -> BTreeSet<&'s str> {
    // Of more instances than are kept nobody knows all.
    if configuration.defaults.multiplicity.is_some()
        || configuration.defaults.scheduling.is_some()
        || sub.deployment.is_cut()
    {
        return BTreeSet::new();
    }
    // Others were put beside these.
    let chosen: BTreeSet<&str> = configuration.tasks.values().filter_map(|own| own.processor.as_deref()).collect();
    let named = deployment::named(sub);
    let mut tasks = tasks_of(sub);
    tasks.retain(|task| !is_set(task, configuration) && !chosen.contains(task) && !named.contains(task));
    tasks
}

/// Whether a configuration, or what was measured, says where a task runs, or what it runs on.
fn is_set(task: &str, configuration: &Configuration) -> bool {
    configuration.tasks.get(task).is_some_and(|own| own.processor.is_some() || own.replicas.is_some())
        || configuration.processors.contains_key(task)
        || configuration.cores.contains_key(task)
        || configuration.measured.processors.contains_key(task)
}

/// Where stays of one of these hosts were too many to be kept, those of others count for the same stretches of time only; and all together are no more than [`LOOKED`].
fn before(parts: &Parts<'_>, hosts: &[(String, Vec<EntryIndex>)]) -> Option<Rank> {
    let entries = hosts.iter().flat_map(|(_, entries)| entries);
    let totals: Vec<&EntryTotal> = entries.map(|index| parts.sub.entry(*index)).collect();
    let complete = Occupancy::complete_before(&totals);
    if totals.iter().map(|total| total.stays.size()).sum::<usize>() <= LOOKED {
        return complete;
    }
    let kept = totals.iter().flat_map(|total| total.stays.kept()).map(|stay| stay.rank());
    let mut ranks: Vec<Rank> = kept.filter(|rank| complete.is_none_or(|before| *rank < before)).collect();
    if ranks.len() <= LOOKED {
        return complete;
    }
    Some(*ranks.select_nth_unstable(LOOKED).1)
}

/// How likely each stay is, with the number of its entry; `None` of one that tells nothing.
type Likely = Vec<(usize, Option<f64>)>;

/// How servers are found: those of one machine explain all by themselves, those of a machine for each with waits for something else.
type Fitting = fn(&Occupancy, f64, f64, Known) -> Fit;

/// What is the same for all hosts that are looked at.
struct At<'a> {
    parts: &'a Parts<'a>,
    observed: &'a Observed,
    lost: f64,
    before: Option<Rank>,
}

impl At<'_> {
    fn totals(&self, entries: &[EntryIndex]) -> Vec<&EntryTotal> {
        entries.iter().map(|index| self.parts.sub.entry(*index)).collect()
    }

    /// Whether others make the stays of any task longer, beside those at the task itself.
    fn are_slowed(&self, hosts: &[&[EntryIndex]]) -> bool {
        let is_kept = |stay: &Stay| self.before.is_none_or(|before| stay.rank() < before) && stay.part != UNDATED;
        let mut stays = Vec::new();
        for (host, entries) in hosts.iter().enumerate() {
            for (entry, total) in self.totals(entries).into_iter().enumerate() {
                let kept = total.stays.in_order();
                let own = kept.iter().filter(|stay| is_kept(stay));
                stays.extend(own.map(|stay| ((host, entry, stay.part), Stay { site: host as u32, ..*stay })));
            }
        }
        let one_machine = (0..hosts.len()).map(|host| (host as u32, ())).collect();
        Slopes::by(stays, &one_machine, |(host, ..)| *host).values().any(|slopes| slopes.of_others() > SLOWED)
    }

    /// How likely each stay is with servers of their own for these entries, in the order of begins, with the number of its entry.
    fn likely(&self, entries: &[EntryIndex], fitted: Fitting) -> Option<(Fit, Likely)> {
        let occupancy = Occupancy::of_before(&self.totals(entries), &BTreeMap::new(), self.before);
        if occupancy.stays() < ENOUGH || !occupancy.is_whole(1.0) {
            return None;
        }
        let seen = self.observed.all_present(self.parts, entries);
        let (kind, early) = (kind(self.parts, entries), early(self.parts, entries, self.lost));
        let known = Known { servers: None, discipline: None, busy: None, kind, early, arrivals: None };
        let fit = fitted(&occupancy, 1.0, seen, known);
        let busy = fit.busy.map(Busy::Cores);
        let may_wait = busy.is_some();
        let asked = Asked { occupancy: &occupancy, probability: 1.0, seen, busy, early, arrivals: None, may_wait };
        let served = occupancy.served(fit.discipline, &asked.share(fit.servers), fit.servers);
        Some((fit, occupancy.likelihood_of_each(&served)))
    }

    fn alone<'n>(&self, (name, entries): &'n (String, Vec<EntryIndex>)) -> Option<Alone<'n>> {
        let (fit, likely) = self.likely(entries, fitted)?;
        let likely = likely.into_iter().map(|(_, own)| own).collect();
        Some(Alone { name, entries, likely, against: fit.against })
    }

    fn together(&self, all: &[Alone<'_>], group: &[usize]) -> Option<Together> {
        let tasks: Vec<&Alone<'_>> = group.iter().map(|number| &all[*number]).collect();
        let entries: Vec<EntryIndex> = tasks.iter().flat_map(|task| task.entries).copied().collect();
        let (fit, likely) = self.likely(&entries, without_waits)?;
        let mut of_task: Vec<usize> = Vec::with_capacity(entries.len());
        for (number, task) in tasks.iter().enumerate() {
            of_task.extend(std::iter::repeat_n(number, task.entries.len()));
        }
        let mut gains: Vec<Vec<f64>> = tasks.iter().map(|task| Vec::with_capacity(task.likely.len())).collect();
        for (entry, likely) in likely {
            let (task, own) = (tasks[of_task[entry]], &mut gains[of_task[entry]]);
            // Both have the same stays in the same order. What tells nothing with either is no gain.
            let alone = *task.likely.get(own.len())?;
            own.push(likely.zip(alone).map_or(0.0, |(likely, alone)| likely - alone));
        }
        let against = tasks.iter().map(|task| task.against).sum::<f64>() - fit.against;
        let is_busy = !fit.is_delay && fit.against < MISFIT;
        Some(Together { gains, is_busy, against })
    }

    /// Some of these tasks that share a machine, and the others; `None` where none do.
    fn group<'n>(&self, tasks: Vec<Alone<'n>>) -> Option<(Colocated, Vec<Alone<'n>>)> {
        let (mut group, likelier) = self.of_all(&tasks).or_else(|| self.of_pairs(&tasks))?;
        group.sort_unstable();
        let found: Vec<String> = group.iter().map(|number| tasks[*number].name.to_owned()).collect();
        let processor = self.processor_of(&found);
        let others = tasks.into_iter().enumerate().filter(|(number, _)| group.binary_search(number).is_err());
        Some((Colocated { tasks: found, processor, likelier }, others.map(|(_, task)| task).collect()))
    }

    /// The name of the processor of a machine that these tasks share: no task has it.
    fn processor_of(&self, tasks: &[String]) -> String {
        let names = tasks_of(self.parts.sub);
        let mut name = format!("machine of {}", tasks.first().map_or("", String::as_str));
        while names.contains(&*name) {
            name.insert_str(0, "the ");
        }
        name
    }

    /// All of these tasks but those that are clearly at a machine of their own. Half of these go at a time.
    fn of_all(&self, all: &[Alone<'_>]) -> Option<(Vec<usize>, f64)> {
        let mut group: Vec<usize> = (0..all.len()).collect();
        while group.len() > 1 {
            let together = self.together(all, &group)?;
            let gains = together.gains.iter().map(|gains| errors(sums(gains)));
            let mut apart: Vec<(f64, usize)> = gains.zip(group.iter().copied()).filter(|own| own.0 < -APART).collect();
            if apart.is_empty() {
                return together.likelier().map(|likelier| (group, likelier));
            }
            apart.sort_by(|one, other| one.0.total_cmp(&other.0));
            apart.truncate(apart.len().div_ceil(2));
            group.retain(|number| !apart.iter().any(|(_, apart)| apart == number));
        }
        None
    }

    /// The two of these tasks that most clearly share a machine, and those with which it is likelier still. Pairs are of those with most work.
    fn of_pairs(&self, all: &[Alone<'_>]) -> Option<(Vec<usize>, f64)> {
        let work = |number: &usize| self.observed.all_present(self.parts, all[*number].entries);
        let mut tasks: Vec<usize> = (0..all.len()).collect();
        tasks.sort_by(|one, other| work(other).total_cmp(&work(one)));
        let busiest = &tasks[..tasks.len().min(PAIRED)];
        let pairs = busiest
            .iter()
            .enumerate()
            .flat_map(|(place, one)| busiest[place + 1..].iter().map(move |other| vec![*one, *other]));
        let tried = |pair: Vec<usize>| {
            let is_asked = self.are_slowed(&[all[pair[0]].entries, all[pair[1]].entries]);
            if is_asked { Some((self.together(all, &pair)?, pair)) } else { None }
        };
        let pairs = together::each(self.parts.sub.threads(), pairs, tried);
        let told = pairs.into_iter().flatten().filter_map(|(own, pair)| Some((own.likelier()?, own, pair)));
        let (mut likelier, mut together, mut group) = told.max_by(|one, other| one.0.total_cmp(&other.0))?;
        for number in tasks {
            if group.contains(&number) {
                continue;
            }
            group.push(number);
            let more = self.together(all, &group).filter(|more| more.is_likelier_than(&together));
            match more.and_then(|more| Some((more.likelier()?, more))) {
                Some(more) => (likelier, together) = more,
                None => {
                    group.pop();
                }
            }
        }
        Some((group, likelier))
    }
}

/// The sum over stays, and that of squares of batches.
fn sums(gains: &[f64]) -> (f64, f64) {
    let batches = gains.chunks(BATCH).map(|batch| batch.iter().sum::<f64>());
    batches.fold((0.0, 0.0), |(sum, squares), batch| (sum + batch, squares + batch * batch))
}

/// A sum of gains in standard errors.
fn errors((sum, squares): (f64, f64)) -> f64 {
    if squares > 0.0 { sum / squares.sqrt() } else { 0.0 }
}

impl Together {
    /// How much likelier one machine is, where that is clear.
    fn likelier(&self) -> Option<f64> {
        let add = |one: (f64, f64), gains: &Vec<f64>| {
            let own = sums(gains);
            (one.0 + own.0, one.1 + own.1)
        };
        let all = self.gains.iter().fold((0.0, 0.0), add);
        let stays: usize = self.gains.iter().map(Vec::len).sum();
        let likelier = all.0 * (INDEPENDENT / stays.max(1) as f64).min(1.0) + self.against.min(0.0);
        (self.is_busy && errors(all) > CLEAR && likelier > LIKELIER && self.against > -LIKELIER).then_some(likelier)
    }

    /// Whether it is likelier than without the last of its tasks.
    fn is_likelier_than(&self, without: &Self) -> bool {
        let all = |own: &Self| own.gains.iter().flatten().sum::<f64>();
        all(self) > all(without)
    }
}
