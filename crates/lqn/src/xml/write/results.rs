//! The elements `result-…`.

use rustc_hash::FxHashMap;

use crate::labels::number;
use crate::results::{ActivityResult, Caller, EntryResult, HalfWidths, ProcessorResult, Results, TaskResult};
use crate::xml::write::Writer;
use crate::{ActivityId, Body, CallKind, EntryId, Model, ProcessorId, TaskId};

/// Results of a model, to be found by the numbers that its elements have in canonical form.
pub(super) struct Solved<'a> {
    results: &'a Results,
    half: Option<&'a HalfWidths>,
    /// By canonical number, the number in the results.
    entries: Vec<usize>,
    activities: Vec<usize>,
    /// By caller and called in canonical numbers, the place among the calls.
    calls: FxHashMap<(Caller, EntryId, Option<CallKind>), usize>,
}

impl<'a> Solved<'a> {
    pub(super) fn new(model: &Model, results: &'a Results) -> Self {
        let entries = model.canonical_entries();
        let activities = model.canonical_activities();
        let entry = |id: EntryId| EntryId::from(entries.get(id.index()).copied().unwrap_or(id.index()));
        let activity = |id: ActivityId| ActivityId::from(activities.get(id.index()).copied().unwrap_or(id.index()));
        let mut calls = FxHashMap::default();
        for (call, place) in results.calls.iter().zip(0usize..) {
            let from = match call.from {
                Caller::Phase(own, phase) => Caller::Phase(entry(own), phase),
                Caller::Activity(own) => Caller::Activity(activity(own)),
                Caller::Forward(own) => Caller::Forward(entry(own)),
            };
            calls.entry((from, entry(call.to), call.kind)).or_insert(place);
        }
        Self {
            results,
            half: results.simulated.as_ref().map(|simulated| &simulated.half_widths),
            entries: inverse(&entries),
            activities: inverse(&activities),
            calls,
        }
    }

    fn entry(&self, id: EntryId) -> usize {
        self.entries.get(id.index()).copied().unwrap_or(usize::MAX)
    }
}

/// Old numbers by new ones.
fn inverse(new: &[usize]) -> Vec<usize> {
    let mut old = vec![usize::MAX; new.len()];
    for (&new, number) in new.iter().zip(0usize..) {
        old[new] = number;
    }
    old
}

/// An attribute of an element of results.
type Figure = (&'static str, f64);

const PHASE_UTILIZATIONS: [&str; 3] = ["phase1-utilization", "phase2-utilization", "phase3-utilization"];
const PHASE_SERVICES: [&str; 3] = ["phase1-service-time", "phase2-service-time", "phase3-service-time"];

fn processor(result: &ProcessorResult) -> Vec<Figure> {
    vec![("utilization", result.utilization)]
}

fn task(result: &TaskResult) -> Vec<Figure> {
    vec![
        ("throughput", result.throughput),
        ("utilization", result.utilization),
        ("proc-utilization", result.processor_utilization),
    ]
}

/// Service times of phases stand with the phases, and here where an entry is made of activities.
fn entry(result: &EntryResult, of_activities: bool) -> Vec<Figure> {
    let mut figures = vec![
        ("utilization", result.utilization),
        ("throughput", result.throughput),
        ("proc-utilization", result.processor_utilization),
    ];
    if of_activities {
        let phases = PHASE_SERVICES.into_iter().zip(result.service);
        figures.extend(phases.enumerate().filter(|(phase, (_, time))| *phase == 0 || *time != 0.0).map(|(_, own)| own));
    }
    figures.extend(result.open_response.map(|response| ("open-wait-time", response)));
    figures
}

fn activity(result: &ActivityResult) -> Vec<Figure> {
    vec![
        ("service-time", result.service),
        ("throughput", result.throughput),
        ("utilization", result.throughput * result.service),
    ]
}

impl Writer<'_> {
    /// An element of results, with the half widths of intervals in it.
    fn figures(&mut self, element: &'static str, figures: &[Figure], half: Option<&[Figure]>) {
        self.xml.start(element);
        // What a solver cannot tell is left out.
        for &(name, value) in figures.iter().filter(|figure| figure.1.is_finite()) {
            self.xml.with(name, number(value));
        }
        if let Some(half) = half {
            self.xml.start("result-conf-95");
            for &(name, value) in half.iter().filter(|figure| figure.1.is_finite()) {
                self.xml.with(name, number(value));
            }
            self.xml.end();
        }
        self.xml.end();
    }

    pub(super) fn general_results(&mut self) {
        let Some(solved) = &self.solved else { return };
        let convergence = &solved.results.convergence;
        let bound = match &solved.results.simulated {
            Some(simulated) => simulated.precision,
            None => convergence.residual,
        };
        let bound = if bound.is_finite() { bound } else { 0.0 };
        let solver = format!("dyelog {}", solved.results.solver);
        for caveat in &solved.results.caveats {
            self.xml.comment(caveat);
        }
        self.xml
            .start("result-general")
            .with("solver-info", solver)
            .with("valid", if convergence.converged { "true" } else { "false" })
            .with("conv-val", number(bound))
            .with("iterations", convergence.iterations)
            .end();
    }

    pub(super) fn processor_results(&mut self, id: ProcessorId) {
        let Some(solved) = &self.solved else { return };
        let Some(result) = solved.results.processors.get(id.index()) else { return };
        let half = solved.half.and_then(|half| half.processors.get(id.index())).map(processor);
        self.figures("result-processor", &processor(result), half.as_deref());
    }

    pub(super) fn task_results(&mut self, id: TaskId) {
        let Some(solved) = &self.solved else { return };
        let Some(result) = solved.results.tasks.get(id.index()) else { return };
        let mut figures = task(result);
        let own = &self.model.tasks[id.index()];
        let entries: Vec<&EntryResult> =
            own.entries.iter().filter_map(|&entry| solved.results.entries.get(solved.entry(entry))).collect();
        for (phase, name) in PHASE_UTILIZATIONS.into_iter().enumerate() {
            let busy: f64 = entries.iter().map(|entry| entry.throughput * entry.service[phase]).sum();
            if phase == 0 || busy != 0.0 {
                figures.insert(2 + phase, (name, busy));
            }
        }
        let half = solved.half.and_then(|half| half.tasks.get(id.index())).map(task);
        self.figures("result-task", &figures, half.as_deref());
    }

    pub(super) fn entry_results(&mut self, id: EntryId) {
        let Some(solved) = &self.solved else { return };
        let place = solved.entry(id);
        let Some(result) = solved.results.entries.get(place) else { return };
        let of_activities = matches!(self.model.entries[id.index()].body, Body::Activities(_));
        let half = solved.half.and_then(|half| half.entries.get(place)).map(|half| entry(half, of_activities));
        self.figures("result-entry", &entry(result, of_activities), half.as_deref());
    }

    /// Of a phase or an activity.
    pub(super) fn work_results(&mut self, caller: Caller) {
        let Some(solved) = &self.solved else { return };
        let (figures, half) = match caller {
            Caller::Phase(id, phase) => {
                let (place, phase) = (solved.entry(id), usize::from(phase) - 1);
                let Some(result) = solved.results.entries.get(place) else { return };
                let service = result.service.get(phase).copied().unwrap_or_default();
                let half = solved.half.and_then(|half| half.entries.get(place));
                let half = half.and_then(|half| half.service.get(phase)).map(|&half| vec![("service-time", half)]);
                (vec![("service-time", service), ("utilization", result.throughput * service)], half)
            }
            Caller::Activity(id) => {
                let place = solved.activities.get(id.index()).copied().unwrap_or(usize::MAX);
                let Some(result) = solved.results.activities.get(place) else { return };
                let half = solved.half.and_then(|half| half.activities.get(place));
                let half = half.map(|half| vec![("service-time", half.service), ("throughput", half.throughput)]);
                (activity(result), half)
            }
            Caller::Forward(_) => return,
        };
        self.figures("result-activity", &figures, half.as_deref());
    }

    pub(super) fn call_results(&mut self, from: Caller, to: EntryId, kind: Option<CallKind>) {
        let Some(solved) = &self.solved else { return };
        let Some(&place) = solved.calls.get(&(from, to, kind)) else { return };
        let Some(call) = solved.results.calls.get(place) else { return };
        let mut waiting = call.waiting;
        if kind == Some(CallKind::Asynchronous) {
            let served = solved.results.entries.get(solved.entry(to));
            waiting += served.map_or(0.0, |entry| entry.service[0]);
        }
        let half = solved.half.and_then(|half| half.calls.get(place)).map(|&half| vec![("waiting", half)]);
        self.figures("result-call", &[("waiting", waiting)], half.as_deref());
    }
}
