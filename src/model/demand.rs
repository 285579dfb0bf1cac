//! How much work there is, and its source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{ActivityTotal, EntryTotal, Seconds, WorkTotal};
use crate::model::codes;
use crate::model::config::{DemandSettings, DemandValues, Setting};
use crate::model::naming::Alphabet;
use crate::names::{Name, Names};

/// Where a demand comes from: the first of these that is known (design of the project, in the order of trust).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DemandSource {
    /// Nobody tells; it is zero.
    #[default]
    None,
    /// CPU demand measured on the events.
    Cpu,
    /// Resource functions of the configuration.
    Function,
    /// Time between events in which the task was not waiting for another one. It includes whatever queueing there was.
    Exclusive,
}

impl fmt::Display for DemandSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Cpu => "cpu",
            Self::Function => "function",
            Self::Exclusive => "exclusive time",
        })
    }
}

/// Whether some event of an entry carries its CPU demand. It decides for the entry as a whole: a service whose CPU time was
/// measured when it accepted a request did not do more of it in the branches that it forked.
pub fn is_measured(total: &EntryTotal) -> bool {
    let mut activities = total.work.values().flat_map(|work| work.activities.values());
    activities.any(|activity| activity.cpu.count > 0)
}

/// The processor time that was measured of all invocations of an entry, seconds.
pub fn measured_time(total: &EntryTotal) -> f64 {
    let activities = total.work.values().flat_map(|work| work.activities.values());
    activities.map(|activity| activity.cpu.sum.as_f64()).sum()
}

/// Derives demands, and gathers what is doubtful about them.
pub struct Demands<'a> {
    names: &'a Names,
    alphabet: Alphabet,
    settings: &'a DemandSettings,
    values: &'a DemandValues,
    /// Whether another setting decides on the demand of the entry at hand.
    pub muted: bool,
    /// Settings that decided on some demand.
    used: BTreeSet<Setting>,
    /// Settings of entries that were measured.
    measured: BTreeSet<String>,
    /// Whether doubts are gathered.
    pub doubting: bool,
    /// Activities that no resource function covers, by task and activity, with their executions.
    uncovered: BTreeMap<(String, String), u64>,
    /// Activities that carry their CPU on some events only: with it, in all.
    partial: BTreeMap<(String, String), (u64, u64)>,
}

impl<'a> Demands<'a> {
    /// With these names and resource functions.
    pub fn new(names: &'a Names, settings: &'a DemandSettings, values: &'a DemandValues) -> Self {
        Self {
            names,
            alphabet: Alphabet::of(names),
            settings,
            values,
            muted: false,
            used: BTreeSet::new(),
            measured: BTreeSet::new(),
            doubting: true,
            uncovered: BTreeMap::new(),
            partial: BTreeMap::new(),
        }
    }

    /// The demand of an invocation of an entry as the configuration gives it, seconds. Where the entry's own was measured,
    /// that counts.
    pub fn of_entry(&mut self, name: &str, total: &EntryTotal) -> Option<f64> {
        let seconds = self.values.of_entry(name)?;
        if is_measured(total) {
            self.measured.insert(name.to_owned());
            return None;
        }
        Some(seconds)
    }

    /// The order of the names that the work's activities have.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Mean demand of work in seconds per invocation, of which there were `invocations`. `measured` says whether the entry that
    /// it is work of [is measured](is_measured): then what was not counts as nothing, in whatever phase or branch it is.
    pub fn of(&mut self, task: &str, work: &WorkTotal, invocations: u64, measured: bool) -> (f64, DemandSource) {
        let per = invocations.max(1) as f64;
        if measured {
            let mut sum = Seconds::default();
            for (name, total) in &work.activities {
                sum = sum.plus(total.cpu.sum);
                if self.doubting
                    && !self.muted
                    && name.is_some()
                    && total.cpu.count > 0
                    && total.cpu.count < total.count
                {
                    let name = self.names.text(*name).to_owned();
                    let seen = self.partial.entry((task.to_owned(), name)).or_default();
                    seen.0 += total.cpu.count;
                    seen.1 += total.count;
                }
            }
            return (sum.as_f64() / per, DemandSource::Cpu);
        }
        let names = self.names;
        let function = |(name, total): (Name, &ActivityTotal)| {
            let name = names.text(name);
            (name, total.count, self.values.of(task, name))
        };
        let functions: Vec<(&str, u64, Option<f64>)> =
            self.alphabet.activities(work).into_iter().map(function).collect();
        if self.doubting {
            self.used.extend(functions.iter().filter_map(|(name, _, _)| self.values.setting(task, name)));
        }
        if functions.iter().any(|(_, _, seconds)| seconds.is_some()) {
            let mut sum = 0.0;
            for (name, count, seconds) in functions {
                match seconds {
                    Some(seconds) => sum += seconds * count as f64,
                    None if !self.doubting || self.muted => {}
                    None => *self.uncovered.entry((task.to_owned(), name.to_owned())).or_default() += count,
                }
            }
            return (sum / per, DemandSource::Function);
        }
        if work.exclusive.count > 0 {
            // Visits without times are taken to be like those with times.
            let scale = if work.exclusive.count == work.visits || work.visits == 0 {
                1.0
            } else {
                work.visits as f64 / work.exclusive.count as f64
            };
            return (work.exclusive.sum.as_f64() * scale / per, DemandSource::Exclusive);
        }
        (0.0, DemandSource::None)
    }

    /// What is doubtful about the demands given out so far.
    pub fn findings(self) -> Vec<Diagnostic> {
        let mut without_effect = self.without_effect();
        let shown = |name: &str| if name.is_empty() { "without a name".to_owned() } else { format!("`{name}`") };
        let mut findings = Vec::new();
        for ((task, activity), count) in self.uncovered {
            let message = format!("activity {} of task `{task}` has no resource function", shown(&activity));
            findings.push(
                Diagnostic::warning(codes::NO_FUNCTION, Place::Nowhere, message)
                    .with_note(format!(
                        "its {count} executions count as no demand, because others beside it have a function"
                    ))
                    .with_hint("give it one under `[demand.activity]`, or a `default` under `[demand]`"),
            );
        }
        for ((task, activity), (with, all)) in self.partial {
            let message = format!(
                "{with} of {all} events of activity {} of task `{task}` carry their CPU demand",
                shown(&activity)
            );
            findings.push(
                Diagnostic::warning(codes::PARTLY_MEASURED, Place::Nowhere, message)
                    .with_note("the others count as no demand"),
            );
        }
        findings.append(&mut without_effect);
        findings
    }

    /// Functions of activities that the traces show, none of whose executions needs one.
    fn without_effect(&self) -> Vec<Diagnostic> {
        let known = |name: &str| self.names.get(name).is_some();
        let mut unused: Vec<(&Place, String)> = Vec::new();
        for (name, demand) in &self.settings.activities {
            if known(name) && !self.used.contains(&Setting::Activity(name.clone())) {
                unused.push((&demand.place, format!("the function of activity `{name}`")));
            }
        }
        for (task, demands) in self.settings.tasks.iter().filter(|(task, _)| known(task)) {
            for (name, demand) in &demands.activities {
                if known(name) && !self.used.contains(&Setting::TaskActivity(task.clone(), name.clone())) {
                    unused.push((&demand.place, format!("the function of activity `{name}` of task `{task}`")));
                }
            }
        }
        for (name, demand) in self.settings.entries.iter().filter(|(name, _)| self.measured.contains(*name)) {
            unused.push((&demand.place, format!("the demand of entry `{name}`")));
        }
        let warning = |(place, what): (&Place, String)| {
            Diagnostic::warning(codes::FUNCTION_UNUSED, place.clone(), format!("{what} has no effect"))
                .with_note("what the traces measured counts first, and more special settings before more general ones")
                .with_hint("`dyelog whatif --set entry.NAME.demand=…` changes the demand of the finished model")
        };
        unused.into_iter().map(warning).collect()
    }
}
