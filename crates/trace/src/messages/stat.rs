//! What is in message traces, in figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::TraceNames;
use crate::messages::{Event, MessageStep, StepSink, What};

/// Counts of message traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Messages {
    /// Messages, both halves of which are known.
    pub messages: u64,
    /// Messages from a task to itself.
    pub to_itself: u64,
    /// Other events: begins, runs, idling, use of processors.
    pub events: u64,
    /// Tasks.
    pub tasks: BTreeSet<String>,
    /// Messages by sender and receiver.
    pub pairs: BTreeMap<String, u64>,
    /// Processor time, seconds, where the trace tells.
    pub computed: f64,
    /// The first time, seconds.
    pub first: Option<f64>,
    /// The last time, seconds.
    pub last: Option<f64>,
}

/// Counts steps as they come.
#[derive(Debug, Default)]
pub struct MessageStat {
    figures: Messages,
    pairs: rustc_hash::FxHashMap<(u32, u32), u64>,
    seen: Vec<bool>,
}

impl MessageStat {
    fn seen(&mut self, names: &TraceNames, task: crate::TaskId) {
        if self.seen.len() <= task.index() {
            self.seen.resize(task.index() + 1, false);
        }
        if !std::mem::replace(&mut self.seen[task.index()], true) {
            self.figures.tasks.insert(names.task_label(task));
        }
    }

    /// The counts.
    pub fn finish(mut self, names: &TraceNames) -> Messages {
        for ((from, to), count) in self.pairs {
            let label = |task| names.task_label(crate::TaskId(task));
            self.figures.pairs.insert(format!("{} > {}", label(from), label(to)), count);
        }
        self.figures
    }
}

impl StepSink for MessageStat {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        if !step.time.is_nan() {
            let first = self.figures.first.get_or_insert(step.time);
            *first = first.min(step.time);
            let last = self.figures.last.get_or_insert(step.time);
            *last = last.max(step.time);
        }
        match step.what {
            What::Message { from, to, .. } | What::Receive { from, to, .. } => {
                self.figures.messages += 1;
                self.figures.to_itself += u64::from(from == to);
                *self.pairs.entry((from.0, to.0)).or_default() += 1;
                self.seen(names, from);
                self.seen(names, to);
            }
            What::Send { from, .. } => self.seen(names, from),
            What::Lost(_) => {}
            What::Other(event) => {
                self.figures.events += 1;
                let task = match event {
                    Event::Begin(task, _) | Event::Run(task) | Event::Idle(task) => task,
                    Event::Compute(task, seconds) => {
                        self.figures.computed += seconds;
                        task
                    }
                };
                self.seen(names, task);
            }
        }
        ControlFlow::Continue(())
    }
}

impl Messages {
    /// The counts as text, for people.
    pub fn text(&self) -> String {
        const SHOWN: usize = 12;
        let mut text = format!("  messages   {:>12}   {} to itself\n", self.messages, self.to_itself);
        let mut tasks: Vec<String> =
            self.tasks.iter().take(SHOWN).map(|task| task.escape_debug().to_string()).collect();
        if self.tasks.len() > SHOWN {
            tasks.push("…".to_owned());
        }
        let _ = writeln!(text, "  events     {:>12}", self.events);
        let _ = writeln!(text, "  tasks      {:>12}   {}", self.tasks.len(), tasks.join(", "));
        if self.computed > 0.0 {
            let _ = writeln!(text, "  CPU        {:>12.6} s", self.computed);
        }
        if let (Some(first), Some(last)) = (self.first, self.last) {
            let _ = writeln!(text, "  span       {:>12.6} s in all", last - first);
        }
        let mut pairs: Vec<(&String, &u64)> = self.pairs.iter().collect();
        pairs.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
        for (pair, count) in pairs.iter().take(SHOWN) {
            let _ = writeln!(text, "  {count:>23}   {}", pair.escape_debug());
        }
        if pairs.len() > SHOWN {
            let _ = writeln!(text, "  and {} more pairs of tasks", pairs.len() - SHOWN);
        }
        text
    }

    /// The counts as JSON.
    pub fn json(&self) -> serde_json::Value {
        // Strings, numbers and maps with text keys have nothing that JSON could not hold.
        serde_json::to_value(self).unwrap_or_default()
    }
}
