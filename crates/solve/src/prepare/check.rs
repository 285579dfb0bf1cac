//! What the solver asks of a model before it starts, and what it will take for something simpler.

use dyelog_diagnostic::{Code, Diagnostic, Diagnostics, Place};
use dyelog_lqn::model::{Body, EntryId, Fork, Model, Multiplicity, Task, Work};
use dyelog_lqn::operational::OperationalAnalysis;
use dyelog_lqn::self_wait::self_waits;

use crate::codes;
use crate::prepare::plan::MOST;

/// Enough errors to show at once.
pub(crate) const MOST_ERRORS: usize = 100;
/// How many tasks that wait for themselves are named beside the first.
const SHOWN: usize = 5;

/// Finds what keeps a model from being solved at all.
pub(crate) fn check(model: &Model) -> Result<(), Diagnostics> {
    let mut findings = Findings(Vec::new());
    references(model, &mut findings);
    if findings.0.is_empty() {
        numbers(model, &mut findings);
        sources(model, &mut findings);
    }
    if findings.0.is_empty() { Ok(()) } else { Err(Diagnostics(findings.0)) }
}

struct Findings(Vec<Diagnostic>);

impl Findings {
    fn add(&mut self, code: Code, message: String) {
        if self.0.len() < MOST_ERRORS {
            self.0.push(Diagnostic::error(code, Place::Nowhere, message));
        }
    }

    fn number(&mut self, value: f64, what: &dyn Fn() -> String) {
        if !(value.is_finite() && (0.0..=1e100).contains(&value)) {
            self.add(codes::NUMBER, format!("{} is {value}, not a number from 0 to 1e100", what()));
        }
    }
}

fn references(model: &Model, findings: &mut Findings) {
    let (tasks, entries, activities) = (model.tasks.len(), model.entries.len(), model.activities.len());
    let mut missing = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            findings.add(codes::REFERENCE, what());
        }
    };
    for task in &model.tasks {
        let name = &task.name;
        missing(task.processor.index() < model.processors.len(), &|| format!("task `{name}` runs on no processor"));
        missing(task.entries.iter().all(|id| id.index() < entries), &|| format!("task `{name}` has an unknown entry"));
        missing(task.activities.iter().all(|id| id.index() < activities), &|| {
            format!("task `{name}` has an unknown activity")
        });
        missing(task.fan_out.iter().all(|fan| fan.0.index() < tasks), &|| format!("task `{name}` fans out to no task"));
        let known = task.precedences.iter().all(|precedence| {
            let mut named = precedence.join.activities().iter().copied().chain(precedence.followers());
            named.all(|id| id.index() < activities)
        });
        missing(known, &|| format!("a precedence of task `{name}` has an unknown activity"));
    }
    let calls = |work: &Work| work.calls.iter().all(|call| call.to.index() < entries);
    for entry in &model.entries {
        let name = &entry.name;
        missing(entry.task.index() < tasks, &|| format!("entry `{name}` belongs to no task"));
        missing(entry.forwarding.iter().all(|forward| forward.to.index() < entries), &|| {
            format!("entry `{name}` forwards to no entry")
        });
        match &entry.body {
            Body::Phases(phases) => {
                missing(phases.iter().all(calls), &|| format!("entry `{name}` calls no entry"));
                missing(phases.len() <= 3, &|| format!("entry `{name}` has {} phases, more than 3", phases.len()));
            }
            Body::Activities(start) => {
                missing(start.index() < activities, &|| format!("entry `{name}` starts with no activity"));
            }
        }
    }
    for activity in &model.activities {
        let name = &activity.name;
        missing(activity.task.index() < tasks, &|| format!("activity `{name}` belongs to no task"));
        missing(calls(&activity.work), &|| format!("activity `{name}` calls no entry"));
    }
}

fn numbers(model: &Model, findings: &mut Findings) {
    for processor in &model.processors {
        let name = &processor.name;
        findings.number(processor.speed, &|| format!("the speed of processor `{name}`"));
        if processor.speed == 0.0 {
            findings.add(codes::NUMBER, format!("the speed of processor `{name}` is 0"));
        }
    }
    for task in &model.tasks {
        findings.number(task.think_time, &|| format!("the think time of task `{}`", task.name));
        let probabilities = task.precedences.iter().flat_map(|precedence| match &precedence.fork {
            Some(Fork::Or(branches) | Fork::Loop { bodies: branches, .. }) => branches.as_slice(),
            _ => &[],
        });
        for (value, activity) in probabilities {
            let name = &model.activities[activity.index()].name;
            findings.number(*value, &|| format!("the probability or count of activity `{name}`"));
        }
    }
    for entry in &model.entries {
        let name = &entry.name;
        findings.number(entry.open_arrival_rate.unwrap_or(0.0), &|| format!("the arrival rate of entry `{name}`"));
        let total: f64 = entry.forwarding.iter().map(|forward| forward.probability).sum();
        for forward in &entry.forwarding {
            findings.number(forward.probability, &|| format!("a forwarding probability of entry `{name}`"));
        }
        if total > 1.0 + 1e-6 {
            findings.add(
                codes::NUMBER,
                format!("forwarding probabilities of entry `{name}` add up to {total}, more than 1"),
            );
        }
        if let Body::Phases(phases) = &entry.body {
            for work in phases {
                work_numbers(work, &format!("entry `{name}`"), findings);
            }
        }
    }
    for activity in &model.activities {
        work_numbers(&activity.work, &format!("activity `{}`", activity.name), findings);
    }
}

fn work_numbers(work: &Work, whose: &str, findings: &mut Findings) {
    findings.number(work.demand, &|| format!("a demand of {whose}"));
    findings.number(work.think_time, &|| format!("a think time of {whose}"));
    findings.number(work.think_cv2.unwrap_or(1.0), &|| {
        format!("a squared coefficient of variation of a think time of {whose}")
    });
    findings.number(work.cv2.unwrap_or(1.0), &|| format!("a squared coefficient of variation of {whose}"));
    for call in &work.calls {
        findings.number(call.mean, &|| format!("a number of calls of {whose}"));
    }
}

fn sources(model: &Model, findings: &mut Findings) {
    let is_source = |entry: EntryId| {
        let task = model.entries[entry.index()].task;
        model.tasks[task.index()].scheduling.is_source()
    };
    for task in &model.tasks {
        if task.scheduling.is_source() && task.multiplicity == Multiplicity::Infinite {
            findings.add(codes::SOURCE, format!("the population of reference task `{}` is infinite", task.name));
        }
    }
    let called = |work: &Work, findings: &mut Findings| {
        for call in &work.calls {
            if is_source(call.to) {
                let entry = &model.entries[call.to.index()];
                findings.add(codes::SOURCE, format!("entry `{}` of a reference task is called", entry.name));
            }
        }
    };
    for entry in &model.entries {
        if let Body::Phases(phases) = &entry.body {
            for work in phases {
                called(work, findings);
            }
        }
        if model.tasks[entry.task.index()].scheduling.is_source()
            && (entry.open_arrival_rate.unwrap_or(0.0) > 0.0 || !entry.forwarding.is_empty())
        {
            findings.add(
                codes::SOURCE,
                format!("entry `{}` of a reference task has open arrivals or forwards", entry.name),
            );
        }
        for forward in &entry.forwarding {
            if is_source(forward.to) {
                let name = &model.entries[forward.to.index()].name;
                findings.add(codes::SOURCE, format!("entry `{name}` of a reference task is forwarded to"));
            }
        }
    }
    for activity in &model.activities {
        called(&activity.work, findings);
    }
}

/// What only the states of the whole model can tell.
pub(crate) fn beyond_layers(model: &Model) -> Vec<Diagnostic> {
    let lock = |task: &&Task| {
        task.scheduling.is_lock() || task.entries.iter().any(|id| model.entries[id.index()].semaphore.is_some())
    };
    let error = |task: &Task| {
        let what = format!("task `{}` is a lock, and the model cannot be solved exactly", task.name);
        Diagnostic::error(codes::UNSUPPORTED, Place::Nowhere, what)
            .with_note(
                "layers do not know locks: what is held is released by another request than the one that took it",
            )
            .with_hint("the simulator can do locks")
    };
    model.tasks.iter().filter(lock).map(error).collect()
}

/// Why a solution is no number. Where a task waits for itself, what its requests wait for grows with each step, as the wait itself does: a standstill has no finite times.
/// Else it is a defect of the solver.
pub(crate) fn without_numbers(model: &Model, found: &str) -> Diagnostics {
    let analysis = OperationalAnalysis::new(model, MOST).ok();
    let waits = analysis.as_ref().map(self_waits).unwrap_or_default();
    let Some(first) = waits.first() else {
        return Diagnostic::error(codes::BROKEN, Place::Nowhere, found)
            .with_hint("please report this model: it has met a defect of the solver")
            .into();
    };
    let entry = |id: EntryId| &model.entries[id.index()].name;
    let message = format!(
        "requests come to a standstill: task `{}` waits for itself, since a call of entry `{}` leads to its entry `{}`",
        model.tasks[first.task.index()].name,
        entry(first.from),
        entry(first.to)
    );
    let error = Diagnostic::error(codes::STANDSTILL, Place::Nowhere, message).with_note(if first.threads == 1 {
        "while its one thread waits, none is left to answer".to_owned()
    } else {
        format!("while all of its {} threads wait, none is left to answer", first.threads)
    });
    let others: Vec<String> =
        waits[1..].iter().take(SHOWN).map(|own| format!("`{}`", model.tasks[own.task.index()].name)).collect();
    let error = match waits.len() - 1 {
        0 => error,
        count if count > SHOWN => error.with_note(format!("so do {} and {} more", others.join(", "), count - SHOWN)),
        _ => error.with_note(format!("so do {}", others.join(", "))),
    };
    error.with_hint("split the task, or give it threads without limit").into()
}
