//! The layered queueing network of a period, in the paper's six steps (§5.1).
//!
//! 1. The period is chosen by the caller; [`change`](crate::change) tells where it should be split.
//! 2. Processes come from a [`Period`].
//! 3. Processes and devices become tasks and processors: a process that serves is a first-come first-served task with its threads, clients of one
//!    node and program are one reference task, processors and disks share their time among all. Unmanaged work is CPU-intensive, disk-intensive and
//!    mixed entities of each node (§5.3).
//! 4. Calls follow connections: the protocol sequence of an imported operation is that of the interface which exports it.
//! 5. Visits are ratios of counts, demands are [estimated](crate::demand).
//! 6. Think times are the time of clients outside of their cycles, by cycle.
//!
//! What nothing observes is in the model too: clients as open arrivals, servers as delays. Where a regression fails, demands are the
//! process's average (§5.2). Every number has its [`Source`].

mod choice;
mod connections;
mod demands;
mod devices;
mod entities;
mod regularity;
mod unmanaged;
mod validation;

use std::collections::BTreeSet;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{Entry, EntryId, Model, ProcessorId, Task, TaskId};

use crate::change::{Change, changes};
use crate::codes;
use crate::demand::Method;
use crate::model::connections::Connections;
use crate::model::demands::Demands;
use crate::model::devices::Devices;
use crate::model::entities::{Entity, entities};
use crate::period::{Estimate, Period};
use crate::system::System;

pub use choice::choose;
pub use validation::Comparison;

/// Intervals wider than this part of the figure bring a note.
const WIDE: f64 = 0.1;

/// How a model is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How demands are estimated; `None` for the method that predicts best what it has not seen.
    pub method: Option<Method>,
    /// Where the random numbers of resampling begin.
    pub seed: u64,
}

/// Where a number of the model comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The element: a task, an entry, a processor, or a call as `from > to`.
    pub element: String,
    /// Which of its numbers: `demand`, `calls`, `think time`, `multiplicity`, ….
    pub quantity: &'static str,
    /// The number, seconds where it is a time.
    pub value: f64,
    /// Half the width of its 95 % confidence interval, where that is known.
    pub half_width: Option<f64>,
    /// How it was found, in words.
    pub from: String,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The mean cycle of a client, without thinking, seconds.
    Cycle(TaskId),
    /// The mean time from acceptance to reply of an operation, seconds.
    Operation(EntryId),
    /// Busy processors of a node.
    Processor(ProcessorId),
}

/// A figure that was measured, to hold a solution against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What it is of.
    pub subject: Subject,
    /// The figure.
    pub figure: Estimate,
}

/// The model of a period.
#[derive(Clone, Debug)]
pub struct PeriodModel {
    /// The model.
    pub model: Model,
    /// Where its numbers come from, in the order of elements.
    pub sources: Vec<Source>,
    /// What was measured in the period.
    pub measured: Vec<Measured>,
    /// How demands were estimated.
    pub method: Method,
    /// Changes within the period, which a model of all of it blurs.
    pub changes: Vec<Change>,
    /// What there is to say.
    pub findings: Vec<Diagnostic>,
}

/// A model in the making.
#[derive(Default)]
struct Draft {
    model: Model,
    sources: Vec<Source>,
    measured: Vec<Measured>,
    findings: Vec<Diagnostic>,
    /// Of its entries.
    names: BTreeSet<String>,
}

impl Draft {
    fn source(&mut self, element: &str, quantity: &'static str, value: f64, from: impl Into<String>) {
        let element = element.to_owned();
        self.sources.push(Source { element, quantity, value, half_width: None, from: from.into() });
    }

    fn warn(&mut self, code: dyelog_diagnostic::Code, message: String) -> &mut Diagnostic {
        self.findings.push(Diagnostic::warning(code, Place::Nowhere, message));
        self.findings.last_mut().expect("it was just added")
    }

    fn add_task(&mut self, task: Task) -> TaskId {
        let id = TaskId::from(self.model.tasks.len());
        self.model.tasks.push(task);
        id
    }

    /// Adds an entry of the first of these names that is free.
    fn add_entry(&mut self, task: TaskId, names: &[String]) -> EntryId {
        let last = names.last().expect("an entry has a name");
        let mut tried = names.iter().cloned().chain((2..).map(|number| format!("{last}-{number}")));
        let name = tried.find(|name| self.names.insert(name.clone())).expect("numbers do not end");
        let id = EntryId::from(self.model.entries.len());
        self.model.entries.push(Entry::new(&name, task));
        self.model.tasks[task.index()].entries.push(id);
        id
    }

    /// The only phase of an entry of this model.
    fn work(&mut self, entry: EntryId) -> &mut dyelog_lqn::model::Work {
        match &mut self.model.entries[entry.index()].body {
            dyelog_lqn::model::Body::Phases(phases) => phases.first_mut().expect("an entry has a phase"),
            dyelog_lqn::model::Body::Activities(_) => unreachable!("drafts have no activities"),
        }
    }

    fn name(&self, entry: EntryId) -> String {
        self.model.entries[entry.index()].name.to_string()
    }
}

/// Makes the model of a period.
///
/// # Errors
/// When no process that reports was observed in it.
pub fn build(period: &Period, system: &System, options: &Options) -> Result<PeriodModel, Diagnostics> {
    let method = options.method.unwrap_or_else(|| choose(period, system));
    let mut found = built(period, system, method, Some(options.seed))?;
    let cores = |host: &str| f64::from(system.cores(host).unwrap_or(1));
    found.changes = changes(period, &cores);
    let told = found.changes.iter().map(|change| change.finding(period));
    found.findings.splice(0..0, period.findings().into_iter().chain(told));
    Ok(found)
}

/// The model by one method; without intervals of demands where there is no seed.
fn built(period: &Period, system: &System, method: Method, seed: Option<u64>) -> Result<PeriodModel, Diagnostics> {
    let mut draft = Draft::default();
    let entities: Vec<Entity<'_>> = entities(period);
    if entities.is_empty() {
        let message = "no process reported in the period";
        let finding = Diagnostic::error(codes::NOTHING, Place::Nowhere, message)
            .with_hint("choose a period in which observers report: the first observation tells when they begin");
        return Err(finding.into());
    }
    let devices = Devices::add(&mut draft, period, system);
    let tasks: Vec<_> = entities.iter().map(|entity| entity.add(&mut draft, system, &devices)).collect();
    let demands = Demands { period, method, seed };
    for (entity, added) in entities.iter().zip(&tasks) {
        demands.set(&mut draft, entity, added, &devices);
    }
    let links = Connections::of(&entities, &tasks).add(&mut draft);
    for (entity, added) in entities.iter().zip(&tasks) {
        entity.add_think_time(&mut draft, added);
    }
    for (entity, added) in entities.iter().zip(&tasks) {
        regularity::set(&mut draft, entity, added, &links, devices.of(entity.host()));
    }
    unmanaged::add(&mut draft, period, &devices);
    devices.measure(&mut draft, period);
    let Draft { model, sources, measured, findings, .. } = draft;
    Ok(PeriodModel { model, sources, measured, method, changes: Vec::new(), findings })
}
