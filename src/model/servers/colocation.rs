//! Tasks on one machine that no trace names.
//!
//! Services of a test bed often run in containers on one machine, and their spans name none, or their container. On its processor each makes the work of the others longer. With machines of their
//! own they would not: then what a stay has of its machine does not depend on the others, and lengths of stays are likelier with a machine for each. So both are made of the same stays, and likelihoods are
//! compared stay by stay, in batches of neighbours (Vuong, Econometrica 57, 1989).
//!
//! The thresholds are ours. Of 60 simulated systems with machines of their own, of many kinds, none came to more than 0.9 standard errors; of 48 with one machine of one to four cores and
//! two to six services, all did to more than 4 but seven of those with four cores at 30 % busy.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::stays::{Rank, Stay, UNDATED};
use crate::lqn::submodel::{EntryIndex, EntryTotal, SubModel};
use crate::lqn::together;
use crate::model::config::Configuration;
use crate::model::parts::Parts;
use crate::model::servers::apart::Slopes;
use crate::model::servers::evidence::Asked;
use crate::model::servers::fit::{Fit, Known, fitted};
use crate::model::servers::joint::LoadTraces;
use crate::model::servers::observed::Observed;
use crate::model::servers::occupancy::{BATCH, INDEPENDENT, Occupancy};
use crate::model::servers::{ENOUGH, early, hosts_of, kind, waits};
use crate::model::utilisation::Busy;
use crate::model::{codes, fragments, weave};

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
const MOST: usize = 32;

/// How many tasks are named.
const SHOWN: usize = 8;

/// Pairs are made of no more tasks than so many: those with most work.
const PAIRED: usize = 8;

/// Tasks that share a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Colocated {
    /// Their names, in order.
    pub tasks: Vec<String>,
    /// How much likelier lengths of stays are with one machine than with one for each, as the logarithm of a ratio.
    pub likelier: f64,
}

impl Colocated {
    /// The name of the machine's processor.
    pub fn processor(&self) -> String {
        format!("machine of {}", self.tasks.first().map_or("", String::as_str))
    }

    /// Which tasks share it, and what tells that.
    fn described(&self) -> String {
        let shown: Vec<String> = self.tasks.iter().take(SHOWN).map(|task| format!("`{task}`")).collect();
        let more = match self.tasks.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (tasks, machine) = (shown.join(", "), self.processor());
        format!(
            "{tasks}{more} run on `{machine}`: the times of their work are e^{:.0} times as likely as with a machine for each",
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
    /// How likely each of its stays is.
    likely: Vec<f64>,
    against: f64,
}

/// Tasks on one machine, and how much likelier their stays are there than at machines of their own.
struct Together {
    /// By task, then by stay.
    gains: Vec<Vec<f64>>,
    /// Whether work queues there, waits for nothing else, and little speaks against that.
    is_busy: bool,
    /// How much less speaks against it, beside how likely lengths are.
    against: f64,
}

/// Tasks that share a machine by how long their stays are, where neither traces nor the configuration say where they run, and all operations were traced.
pub fn found(sub: &SubModel, configuration: &Configuration) -> Vec<Colocated> {
    let unnamed = unnamed(sub, configuration);
    if unnamed.len() < 2 {
        return Vec::new();
    }
    let decided = weave::decided(sub);
    let mut parts = Parts::of_decided(&decided);
    let lost = parts.leave_out_fragments();
    let lost = fragments::lost_part(&lost, &parts);
    let Some(observed) = Observed::of(&parts).filter(|observed| observed.probability >= 1.0) else { return Vec::new() };
    let mut hosts = hosts_of(&parts, configuration);
    hosts.retain(|name, entries| unnamed.contains(&**name) && waits::is_recorded(&parts, entries));
    let mut hosts: Vec<(String, Vec<EntryIndex>)> = hosts.into_iter().collect();
    if hosts.len() > MOST {
        let work = |entries: &[EntryIndex]| entries.iter().map(|index| observed.present(&parts, *index)).sum::<f64>();
        hosts.sort_by(|one, other| work(&other.1).total_cmp(&work(&one.1)));
        hosts.truncate(MOST);
        hosts.sort();
    }
    let at = At { parts: &parts, observed: &observed, lost, before: before(&parts, &hosts) };
    if hosts.len() < 2 || !at.are_slowed(&hosts) {
        return Vec::new();
    }
    let alone = together::each(sub.threads(), &hosts, |own| at.alone(own));
    let mut left: Vec<Alone<'_>> = alone.into_iter().flatten().collect();
    let mut found = Vec::new();
    while let Some((group, others)) = at.group(left) {
        found.push(group);
        left = others;
    }
    found
}

/// The same of several loads: what that load shows which tells most.
pub fn most_telling(loads: &[LoadTraces<'_>]) -> Vec<Colocated> {
    let all = loads.iter().map(|(sub, configuration)| found(sub, configuration));
    let likelier = |found: &[Colocated]| found.iter().map(|own| own.likelier).sum::<f64>();
    all.reduce(|best, own| if likelier(&own) > likelier(&best) { own } else { best }).unwrap_or_default()
}

/// Tasks of which nothing says where they run: no setting, no measurement, and no name of a machine.
fn unnamed<'s>(sub: &'s SubModel, configuration: &Configuration) -> BTreeSet<&'s str> {
    if configuration.defaults.multiplicity.is_some() || configuration.defaults.scheduling.is_some() {
        return BTreeSet::new();
    }
    let is_set = |task: &str| {
        configuration.tasks.get(task).is_some_and(|own| own.processor.is_some() || own.replicas.is_some())
            || configuration.processors.contains_key(task)
            || configuration.cores.contains_key(task)
            || configuration.measured.processors.contains_key(task)
    };
    let mut tasks: BTreeSet<&str> = sub.entries().iter().map(|entry| sub.names.text(entry.task)).collect();
    tasks.retain(|task| !is_set(task));
    let mut instances: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (replica, seen) in sub.deployment.replicas() {
        let (task, machine) = (sub.names.text(replica.task), sub.names.text(replica.machine));
        let own = instances.entry(task).or_default();
        own.insert(sub.names.text(replica.instance));
        if own.len() > 1 || seen.cores > 0 || !(machine.is_empty() || is_container(machine, task)) {
            tasks.remove(task);
        }
    }
    tasks
}

/// Whether a name is that of a container and not of a machine: what Docker and Kubernetes call their host by.
fn is_container(name: &str, task: &str) -> bool {
    let is_digest = matches!(name.len(), 12 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_pod = name.strip_prefix(task).is_some_and(|rest| rest.starts_with(['-', '_', '.']));
    is_digest || is_pod
}

/// Where stays of one of these hosts were too many to be kept, those of others count for the same stretches of time only.
fn before(parts: &Parts<'_>, hosts: &[(String, Vec<EntryIndex>)]) -> Option<Rank> {
    let entries = hosts.iter().flat_map(|(_, entries)| entries);
    Occupancy::complete_before(&entries.map(|index| parts.sub.entry(*index)).collect::<Vec<_>>())
}

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
    fn are_slowed(&self, hosts: &[(String, Vec<EntryIndex>)]) -> bool {
        let is_kept = |stay: &Stay| self.before.is_none_or(|before| stay.rank() < before) && stay.part != UNDATED;
        let mut stays = Vec::new();
        for (host, (_, entries)) in hosts.iter().enumerate() {
            for (entry, total) in self.totals(entries).into_iter().enumerate() {
                let own = total.stays.kept().into_iter().filter(is_kept);
                stays.extend(own.map(|stay| ((host, entry, stay.part), Stay { site: host as u32, ..stay })));
            }
        }
        let one_machine = (0..hosts.len()).map(|host| (host as u32, ())).collect();
        Slopes::by(stays, &one_machine, |(host, ..)| *host).values().any(|slopes| slopes.of_others() > SLOWED)
    }

    /// How likely each stay is with servers of their own for these entries, in the order of begins, with the number of its entry.
    fn likely(&self, entries: &[EntryIndex]) -> Option<(Fit, Vec<(usize, f64)>)> {
        let occupancy = Occupancy::of_before(&self.totals(entries), &BTreeMap::new(), self.before);
        if occupancy.stays() < ENOUGH || !occupancy.is_whole(1.0) {
            return None;
        }
        let seen: f64 = entries.iter().map(|index| self.observed.present(self.parts, *index)).sum();
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
        let (fit, likely) = self.likely(entries)?;
        let likely = likely.into_iter().map(|(_, own)| own).collect();
        Some(Alone { name, entries, likely, against: fit.against })
    }

    fn together(&self, all: &[Alone<'_>], group: &[usize]) -> Option<Together> {
        let tasks: Vec<&Alone<'_>> = group.iter().map(|number| &all[*number]).collect();
        let entries: Vec<EntryIndex> = tasks.iter().flat_map(|task| task.entries).copied().collect();
        let (fit, likely) = self.likely(&entries)?;
        let mut of_task: Vec<usize> = Vec::with_capacity(entries.len());
        for (number, task) in tasks.iter().enumerate() {
            of_task.extend(std::iter::repeat_n(number, task.entries.len()));
        }
        let mut gains: Vec<Vec<f64>> = tasks.iter().map(|task| Vec::with_capacity(task.likely.len())).collect();
        for (entry, likely) in likely {
            let (task, own) = (tasks[of_task[entry]], &mut gains[of_task[entry]]);
            // Both have the same stays in the same order.
            own.push(likely - task.likely.get(own.len())?);
        }
        let against = tasks.iter().map(|task| task.against).sum::<f64>() - fit.against;
        let is_busy = !fit.is_delay && fit.busy.is_none() && fit.against < MISFIT;
        Some(Together { gains, is_busy, against })
    }

    /// Some of these tasks that share a machine, and the others; `None` where none do.
    fn group<'n>(&self, tasks: Vec<Alone<'n>>) -> Option<(Colocated, Vec<Alone<'n>>)> {
        let (mut group, likelier) = self.of_all(&tasks).or_else(|| self.of_pairs(&tasks))?;
        group.sort_unstable();
        let found = group.iter().map(|number| tasks[*number].name.to_owned()).collect();
        let others = tasks.into_iter().enumerate().filter(|(number, _)| group.binary_search(number).is_err());
        Some((Colocated { tasks: found, likelier }, others.map(|(_, task)| task).collect()))
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
        let work = |number: &usize| {
            all[*number].entries.iter().map(|index| self.observed.present(self.parts, *index)).sum::<f64>()
        };
        let mut tasks: Vec<usize> = (0..all.len()).collect();
        tasks.sort_by(|one, other| work(other).total_cmp(&work(one)));
        let busiest = &tasks[..tasks.len().min(PAIRED)];
        let pairs = busiest
            .iter()
            .enumerate()
            .flat_map(|(place, one)| busiest[place + 1..].iter().map(move |other| vec![*one, *other]));
        let pairs = together::each(self.parts.sub.threads(), pairs, |pair| Some((self.together(all, &pair)?, pair)));
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
