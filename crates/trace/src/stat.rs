//! What is in traces, in figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use crate::versioned::versioned;
use crate::{Kind, Operation, TraceNames};

/// Counts of traces, in all and by scenario. Two of them merge into one, in any order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TraceStat {
    /// Everything together.
    pub all: Figures,
    /// By scenario name.
    pub scenarios: BTreeMap<String, Figures>,
}

/// Counts of some operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Operations.
    pub operations: u64,
    /// Events.
    pub events: u64,
    /// Threads, those of each operation by themselves.
    pub threads: u64,
    /// Names of tasks, with `.2` and so on for further instances.
    pub tasks: BTreeSet<String>,
    /// Events by type.
    pub kinds: Kinds,
    /// Events with a time.
    pub timed: u64,
    /// Events with a CPU demand.
    pub measured: u64,
    /// Time from the first to the last event of an operation, of those that have times.
    pub durations: Durations,
    /// Nanoseconds from the Unix epoch to the first event, of operations that tell.
    pub first: Option<i64>,
    /// Nanoseconds from the Unix epoch to the last event, of operations that tell.
    pub last: Option<i64>,
}

/// Events by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kinds {
    /// `Be`.
    pub begin: u64,
    /// `Ac`.
    pub activity: u64,
    /// `Ed`.
    pub end: u64,
    /// `Fk`.
    pub fork: u64,
    /// `Jn`.
    pub join: u64,
}

/// Lengths of time in nanoseconds, which add up the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The shortest.
    pub min: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}

impl TraceStat {
    /// The version of the JSON form.
    pub const VERSION: u32 = 1;

    /// Counts an operation.
    pub fn add(&mut self, names: &TraceNames, operation: &Operation) {
        let figures = Figures::of(names, operation);
        let scenario = names.names.text(operation.scenario);
        if let Some(known) = self.scenarios.get_mut(scenario) {
            known.merge(&figures);
        } else {
            self.scenarios.insert(scenario.to_owned(), figures.clone());
        }
        self.all.merge(&figures);
    }

    /// Takes in what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        for (scenario, figures) in &other.scenarios {
            self.scenarios.entry(scenario.clone()).or_default().merge(figures);
        }
    }

    /// The counts as text, for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let several = self.scenarios.len() > 1;
        let scenarios =
            self.scenarios.iter().map(|(name, figures)| (format!("scenario {}", name.escape_debug()), figures));
        for (index, (title, figures)) in
            several.then(|| ("all".to_owned(), &self.all)).into_iter().chain(scenarios).enumerate()
        {
            let gap = if index > 0 { "\n" } else { "" };
            let _ = write!(text, "{gap}{title}\n{}", figures.text());
        }
        if text.is_empty() {
            text.push_str("no operations\n");
        }
        text
    }

    /// The counts as JSON; `dyelog-stat` is the version of their form.
    pub fn json(&self) -> serde_json::Value {
        versioned("dyelog-stat", Self::VERSION, self)
    }
}

impl Figures {
    fn of(names: &TraceNames, operation: &Operation) -> Self {
        let mut figures = Self { operations: 1, events: operation.events.len() as u64, ..Self::default() };
        let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut threads = Vec::with_capacity(operation.events.len());
        let mut tasks = Vec::with_capacity(operation.events.len());
        for event in &operation.events {
            threads.push(event.thread);
            tasks.push(event.task);
            *figures.kinds.of(event.kind) += 1;
            figures.measured += u64::from(!event.cpu.is_nan());
            if !event.time.is_nan() {
                figures.timed += 1;
                first = first.min(event.time);
                last = last.max(event.time);
            }
        }
        threads.sort_unstable();
        threads.dedup();
        figures.threads = threads.len() as u64;
        tasks.sort_unstable();
        tasks.dedup();
        figures.tasks = tasks.into_iter().map(|task| names.task_label(task)).collect();
        if figures.timed > 0 {
            figures.durations.add(nanoseconds(last - first).unsigned_abs());
            figures.first = operation.start.map(|start| start.saturating_add(nanoseconds(first)));
            figures.last = operation.start.map(|start| start.saturating_add(nanoseconds(last)));
        }
        figures
    }

    fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.events += other.events;
        self.threads += other.threads;
        for task in &other.tasks {
            if !self.tasks.contains(task) {
                self.tasks.insert(task.clone());
            }
        }
        self.kinds.merge(other.kinds);
        self.timed += other.timed;
        self.measured += other.measured;
        self.durations.merge(other.durations);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.into_iter().chain(other.last).max();
    }

    fn text(&self) -> String {
        let kinds = self.kinds;
        let mut text = format!("  operations {:>12}\n", self.operations);
        let _ = writeln!(
            text,
            "  events     {:>12}   Be {}, Ac {}, Ed {}, Fk {}, Jn {}",
            self.events, kinds.begin, kinds.activity, kinds.end, kinds.fork, kinds.join
        );
        let _ = writeln!(text, "  threads    {:>12}", self.threads);
        let _ = writeln!(text, "  tasks      {:>12}   {}", self.tasks.len(), listed(&self.tasks));
        let _ = writeln!(text, "  with time  {:>12}", self.timed);
        let _ = writeln!(text, "  with CPU   {:>12}", self.measured);
        let durations = self.durations;
        if let (Some(min), Some(max)) = (durations.min, durations.max) {
            let mean = durations.sum as f64 / durations.count as f64;
            let [min, mean, max] = [min as f64, mean, max as f64].map(|nanoseconds| nanoseconds * 1e-6);
            let _ = writeln!(text, "  duration   {mean:>12.3} ms a mean operation, from {min:.3} ms to {max:.3} ms");
        }
        if let (Some(first), Some(last)) = (self.first, self.last) {
            let _ = writeln!(text, "  span       {:>12.6} s in all", last.saturating_sub(first) as f64 * 1e-9);
        }
        text
    }
}

/// The first names of a set.
fn listed(names: &BTreeSet<String>) -> String {
    const SHOWN: usize = 12;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| name.escape_debug().to_string()).collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// Seconds as whole nanoseconds.
fn nanoseconds(seconds: f64) -> i64 {
    // A float beyond the range becomes its nearest end.
    (seconds * 1e9).round() as i64
}

impl Kinds {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Begin => &mut self.begin,
            Kind::Activity => &mut self.activity,
            Kind::End => &mut self.end,
            Kind::Fork(_) => &mut self.fork,
            Kind::Join(_) => &mut self.join,
        }
    }

    fn merge(&mut self, other: Self) {
        self.begin += other.begin;
        self.activity += other.activity;
        self.end += other.end;
        self.fork += other.fork;
        self.join += other.join;
    }
}

impl Durations {
    fn add(&mut self, duration: u64) {
        self.merge(Self { count: 1, sum: duration, min: Some(duration), max: Some(duration) });
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.into_iter().chain(other.max).max();
    }
}
