//! What was measured of the tasks that share a processor, each by itself: that is their processor time, however long their invocations were there.
//!
//! Where all of them were measured, their sum is how busy the processor was. Where only some were, the times of spans tell what the others used.

use std::collections::BTreeMap;

use crate::lqn::submodel::EntryIndex;
use crate::model::config::Configuration;
use crate::model::parts::Parts;
use crate::model::servers::Load;
use crate::model::servers::observed::Observed;
use crate::names::Name;

/// How busy a task kept a processor that not all of its tasks were measured on.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskBusy {
    /// The task.
    pub task: String,
    /// How many servers it was measured to keep busy.
    pub measured: f64,
    /// How many of these are demand: what is more than its spans can have been is load that was not traced.
    pub used: f64,
    /// How many it kept busy by the times of spans alone.
    pub alone: f64,
}

/// Processor time of the tasks of one processor, by how long invocations were there and by what was measured of tasks.
#[derive(Clone, Debug, Default)]
pub struct OfTasks {
    /// By task that was measured, how many times as much it used as the stays of its invocations make of it.
    factors: BTreeMap<Name, f64>,
    /// What was measured of some, where nothing is known of the others.
    pub some: Vec<TaskBusy>,
    /// How many servers were busy.
    pub busy: f64,
}

impl OfTasks {
    /// Of tasks with these entries. `imputed` gives the part of its stays for which the entry at a place is taken to use the processor: services of one processor do not all
    /// use it for the same part.
    pub fn of(
        parts: &Parts<'_>,
        configuration: &Configuration,
        (entries, imputed): (&[EntryIndex], impl Fn(usize) -> f64),
        (observed, load): (&Observed, &Load),
    ) -> Self {
        // By task: for how long its invocations were there, and for how long at work.
        let mut there: BTreeMap<Name, (f64, f64)> = BTreeMap::new();
        for (place, index) in entries.iter().enumerate() {
            let present = observed.present(parts, *index) / observed.probability;
            let own = there.entry(parts.sub.entry(*index).task).or_default();
            *own = (own.0 + present, own.1 + (imputed(place) * load.scale).min(1.0) * present);
        }
        let text = |task: Name| parts.sub.names.text(task);
        let measured = |task: Name| configuration.measured.tasks.get(text(task)).copied();
        let told: BTreeMap<Name, f64> = there.keys().filter_map(|task| Some((*task, measured(*task)?))).collect();
        let all: f64 = told.values().sum();
        let is_whole = told.len() == there.len();
        let least = f64::MIN_POSITIVE;
        let mut found = Self { busy: load.busy, ..Self::default() };
        for (task, measured) in told {
            let (present, alone) = there[&task];
            let used = match is_whole {
                true => measured * load.busy / all.max(least),
                false if observed.probability < 1.0 => measured.min(present),
                false => measured.min(alone),
            };
            found.factors.insert(task, used / alone.max(least));
            if !is_whole {
                found.busy += used - alone;
                found.some.push(TaskBusy { task: text(task).to_owned(), measured, used, alone });
            }
        }
        found
    }

    /// How many times as much a task used as the stays of its invocations make of it, where that was measured.
    pub fn factor(&self, task: Name) -> Option<f64> {
        self.factors.get(&task).copied()
    }
}
