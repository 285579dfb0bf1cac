//! Whether numbers mean something.

use crate::lint::Lint;
use crate::{Body, CallOrder, Fork, Forwarding, Join, Model, Multiplicity, Scheduling, Task, Work, codes};

/// How far probabilities may miss 1 where they should add up to it.
pub(super) const TOLERANCE: f64 = 1e-4;

/// Faults of one element, before they are reported.
struct Faults<'a, 'b> {
    lint: &'a mut Lint<'b>,
    item: String,
    /// The part of the element that is looked at, where it has a place of its own.
    part: Option<String>,
}

impl<'a, 'b> Faults<'a, 'b> {
    fn new(lint: &'a mut Lint<'b>, item: String) -> Self {
        Self { lint, item, part: None }
    }

    /// Where something of the element stands: a part of it, else what is called so.
    fn place(&self, what: &str) -> String {
        let bare = ["a ", "the "].iter().find_map(|article| what.strip_prefix(article)).unwrap_or(what);
        format!("{} of {}", self.part.as_deref().unwrap_or(bare), self.item)
    }

    fn bad(&mut self, message: String) {
        let item = self.part.as_ref().map_or_else(|| self.item.clone(), |part| format!("{part} of {}", self.item));
        self.lint.error(codes::BAD_VALUE, item, message);
    }

    /// Zero is fine.
    fn amount(&mut self, what: &str, value: f64) {
        if !(value >= 0.0 && value.is_finite()) {
            let message = format!("{what} of the {} is {value}, but must be 0 or more and finite", self.item);
            self.lint.error(codes::BAD_VALUE, self.place(what), message);
        }
    }

    fn positive(&mut self, what: &str, value: f64) {
        if !(value > 0.0 && value.is_finite()) {
            let message = format!("{what} of the {} is {value}, but must be above 0 and finite", self.item);
            self.lint.error(codes::BAD_VALUE, self.place(what), message);
        }
    }

    fn probability(&mut self, what: &str, value: f64) {
        if !(0.0..=1.0 + TOLERANCE).contains(&value) {
            let message = format!("{what} of the {} is {value}, but must lie between 0 and 1", self.item);
            self.lint.error(codes::BAD_PROBABILITY, self.place(what), message);
        }
    }

    fn servers(&mut self, multiplicity: Multiplicity, replicas: u32) {
        if multiplicity == Multiplicity::Finite(0) || replicas == 0 {
            self.bad(format!("the {} has a multiplicity or a number of replicas of 0", self.item));
        }
    }

    fn work(&mut self, work: &Work) {
        self.amount("a demand", work.demand);
        self.amount("a squared coefficient of variation", work.cv2.unwrap_or(1.0));
        self.amount("a think time", work.think_time);
        self.amount("a squared coefficient of variation of a think time", work.think_cv2.unwrap_or(1.0));
        for call in &work.calls {
            let to = &self.lint.model.entries[call.to.index()].name;
            let what = format!("the number of calls to `{to}`");
            self.amount(&what, call.mean);
            if work.call_order == CallOrder::Deterministic && call.mean.fract() != 0.0 && call.mean.is_finite() {
                let message =
                    format!("the {} makes {} calls to `{to}` exactly, which is no whole number", self.item, call.mean);
                let warning = self.lint.warning(codes::BAD_VALUE, self.place(&what), message);
                warning.hints.push("make the number of calls stochastic".to_owned());
            }
        }
    }
}

/// Reports numbers that mean nothing.
pub(super) fn check(lint: &mut Lint<'_>) {
    let model = lint.model;
    parameters(lint, model);
    for task in &model.tasks {
        task_values(lint, task);
    }
    for entry in &model.entries {
        let mut faults = Faults::new(lint, format!("entry `{}`", entry.name));
        faults.amount("the rate of open arrivals", entry.open_arrival_rate.unwrap_or_default());
        if let Body::Phases(phases) = &entry.body {
            for work in phases {
                faults.work(work);
            }
            if phases.len() > 3 {
                faults.bad(format!(
                    "the entry `{}` has {} phases, but there are three at most",
                    entry.name,
                    phases.len()
                ));
            }
        }
        let to = |forwarding: &Forwarding| {
            format!("the probability of forwarding to `{}`", model.entries[forwarding.to.index()].name)
        };
        for forwarding in &entry.forwarding {
            faults.probability(&to(forwarding), forwarding.probability);
        }
        let total: f64 = entry.forwarding.iter().map(|forwarding| forwarding.probability).sum();
        if let Some(last) = entry.forwarding.last().filter(|_| total > 1.0 + TOLERANCE) {
            let message = format!("the entry `{}` forwards with probabilities that add up to {total}", entry.name);
            let item = faults.place(&to(last));
            lint.error(codes::FORWARDING_OVER_ONE, item, message);
        }
    }
    for (activity, index) in model.activities.iter().zip(0usize..) {
        let item = lint.activity(index.into());
        Faults::new(lint, item).work(&activity.work);
    }
}

fn parameters(lint: &mut Lint<'_>, model: &Model) {
    let mut faults = Faults::new(lint, "model".to_owned());
    faults.amount("the convergence bound", model.parameters.convergence);
    faults.amount("the under-relaxation coefficient", model.parameters.underrelaxation.unwrap_or(1.0));
    for processor in &model.processors {
        let mut faults = Faults::new(lint, format!("processor `{}`", processor.name));
        faults.amount("the quantum", processor.quantum.unwrap_or_default());
        faults.positive("the speed", processor.speed);
        faults.servers(processor.multiplicity, processor.replicas);
        let misplaced = matches!(
            processor.scheduling,
            Scheduling::Reference
                | Scheduling::Burst
                | Scheduling::Polling
                | Scheduling::Semaphore
                | Scheduling::ReadWriteLock
        );
        if misplaced {
            let message = format!("the processor `{}` cannot serve as a task does", processor.name);
            let item = faults.item;
            lint.error(codes::MISPLACED_SCHEDULING, item, message);
        }
    }
    for group in &model.groups {
        Faults::new(lint, format!("group `{}`", group.name)).probability("the share", group.share);
    }
}

fn task_values(lint: &mut Lint<'_>, task: &Task) {
    let mut faults = Faults::new(lint, format!("task `{}`", task.name));
    faults.servers(task.multiplicity, task.replicas);
    faults.amount("the think time", task.think_time);
    if task.entries.is_empty() {
        let item = faults.item.clone();
        faults.lint.error(codes::NO_ENTRIES, item, format!("the task `{}` has no entries", task.name));
    }
    let misplaced =
        matches!(task.scheduling, Scheduling::Random | Scheduling::ProcessorSharing | Scheduling::CompletelyFair);
    if misplaced {
        let message = format!("the task `{}` cannot serve as a processor does", task.name);
        let item = faults.item.clone();
        faults.lint.error(codes::MISPLACED_SCHEDULING, item, message);
    }
    if task.scheduling == Scheduling::Reference && task.multiplicity == Multiplicity::Infinite {
        faults.bad(format!("the reference task `{}` has a population without limit", task.name));
    }
    for precedence in &task.precedences {
        let model = faults.lint.model;
        let first = precedence.join.activities().first().map(|id| &model.activities[id.index()].name);
        faults.part = first.map(|name| format!("precedence of activity `{name}`"));
        if let Join::And { activities, quorum: Some(quorum) } = &precedence.join
            && (*quorum == 0 || *quorum as usize > activities.len())
        {
            faults.bad(format!(
                "a join of the task `{}` waits for {quorum} of {} activities",
                task.name,
                activities.len()
            ));
        }
        match &precedence.fork {
            Some(Fork::Or(branches)) => {
                for &(probability, _) in branches {
                    faults.probability("the probability of a branch", probability);
                }
                let total: f64 = branches.iter().map(|&(probability, _)| probability).sum();
                if (total - 1.0).abs() > TOLERANCE {
                    let message =
                        format!("the branches of a fork of the task `{}` add up to {total}, not to 1", task.name);
                    let item = faults.place("the fork");
                    faults.lint.error(codes::BAD_PROBABILITY, item, message);
                }
            }
            Some(Fork::Loop { bodies, .. }) => {
                for &(mean, _) in bodies {
                    faults.amount("the number of times of a loop", mean);
                }
            }
            _ => {}
        }
    }
}
