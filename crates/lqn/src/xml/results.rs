//! Reads the elements `result-…` of a document whose model is known.

use rustc_hash::FxHashMap;

use crate::findings::{Findings, fault};
use crate::results::{
    ActivityResult, CallResult, Caller, Convergence, EntryResult, HalfWidths, ProcessorResult, Results, Simulated,
    TaskResult,
};
use crate::xml::tree::{Element, Tree, at};
use crate::{ActivityId, Body, CallKind, EntryId, Model, codes};

/// The results; `None` where the document has none.
pub(super) fn read(tree: &Tree, model: &Model, findings: &mut Findings) -> Option<Results> {
    let mut reader = Reader {
        tree,
        findings,
        names: Names::of(model),
        values: Figures::of(model),
        half: Figures::of(model),
        intervals: false,
        any: false,
    };
    let root = tree.root();
    for processor in tree.children(root).filter(|child| &*child.name == "processor") {
        reader.processor(processor);
    }
    let mut general = tree.children(root).filter(|child| &*child.name == "solver-params");
    let general = general.find_map(|child| tree.result(child, "result-general"));
    if !reader.any && general.is_none() {
        return None;
    }
    let convergence = Convergence {
        converged: general.and_then(|general| general.attribute("valid")).is_none_or(is_true),
        saturated: false,
        iterations: general.and_then(|general| reader.number(general, "iterations")).unwrap_or_default() as u32,
        residual: general.and_then(|general| reader.number(general, "conv-val")).unwrap_or_default(),
        method: "read from a file".to_owned(),
        exact: false,
    };
    let told = general.and_then(|general| general.attribute("solver-info")).unwrap_or("unknown");
    let solver = told.strip_prefix("dyelog ").unwrap_or(told).to_owned().into();
    let Reader { mut values, mut half, intervals, .. } = reader;
    let calls = values.calls(model, true);
    let simulated = intervals.then(|| {
        let widths = half.calls(model, false).into_iter().map(|call| call.waiting).collect();
        let half_widths = HalfWidths {
            processors: half.processors,
            tasks: half.tasks,
            entries: half.entries,
            activities: half.activities,
            calls: widths,
        };
        Simulated { precision: convergence.residual, half_widths, ..Simulated::default() }
    });
    let Figures { processors, tasks, entries, activities, .. } = values;
    Some(Results { solver, convergence, processors, tasks, entries, activities, calls, caveats: Vec::new(), simulated })
}

fn is_true(word: &str) -> bool {
    matches!(word, "true" | "1" | "yes" | "YES" | "TRUE")
}

/// Elements of a model by name.
struct Names<'m> {
    model: &'m Model,
    processors: FxHashMap<&'m str, usize>,
    tasks: FxHashMap<&'m str, usize>,
    entries: FxHashMap<&'m str, usize>,
}

fn by_name<'m>(names: impl Iterator<Item = &'m std::sync::Arc<str>>) -> FxHashMap<&'m str, usize> {
    names.zip(0usize..).map(|(name, index)| (&**name, index)).collect()
}

impl<'m> Names<'m> {
    fn of(model: &'m Model) -> Self {
        Self {
            model,
            processors: by_name(model.processors.iter().map(|own| &own.name)),
            tasks: by_name(model.tasks.iter().map(|own| &own.name)),
            entries: by_name(model.entries.iter().map(|own| &own.name)),
        }
    }
}

/// Figures as they are found.
struct Figures {
    processors: Vec<ProcessorResult>,
    tasks: Vec<TaskResult>,
    entries: Vec<EntryResult>,
    activities: Vec<ActivityResult>,
    waiting: FxHashMap<(Caller, EntryId, Option<CallKind>), f64>,
}

impl Figures {
    fn of(model: &Model) -> Self {
        Self {
            processors: vec![ProcessorResult::default(); model.processors.len()],
            tasks: vec![TaskResult::default(); model.tasks.len()],
            entries: vec![EntryResult::default(); model.entries.len()],
            activities: vec![ActivityResult::default(); model.activities.len()],
            waiting: FxHashMap::default(),
        }
    }

    /// One a call of the model, in the order of results; what asynchronous calls wait for may include service.
    fn calls(&mut self, model: &Model, served: bool) -> Vec<CallResult> {
        let mut calls = Vec::new();
        let mut add = |from: Caller, to: EntryId, kind: Option<CallKind>| {
            let mut waiting = self.waiting.get(&(from, to, kind)).copied().unwrap_or_default();
            if served && kind == Some(CallKind::Asynchronous) {
                waiting -= self.entries[to.index()].service[0];
            }
            calls.push(CallResult { from, to, kind, waiting });
        };
        for (entry, index) in model.entries.iter().zip(0usize..) {
            if let Body::Phases(phases) = &entry.body {
                for (work, phase) in phases.iter().zip(1u8..) {
                    for call in &work.calls {
                        add(Caller::Phase(index.into(), phase), call.to, Some(call.kind));
                    }
                }
            }
        }
        for (activity, index) in model.activities.iter().zip(0usize..) {
            for call in &activity.work.calls {
                add(Caller::Activity(index.into()), call.to, Some(call.kind));
            }
        }
        for (entry, index) in model.entries.iter().zip(0usize..) {
            for forwarding in &entry.forwarding {
                add(Caller::Forward(index.into()), forwarding.to, None);
            }
        }
        calls
    }
}

struct Reader<'t, 'm, 'f> {
    tree: &'t Tree,
    findings: &'f mut Findings,
    names: Names<'m>,
    values: Figures,
    half: Figures,
    /// Whether any interval was found.
    intervals: bool,
    /// Whether any figure was found.
    any: bool,
}

impl<'t> Reader<'t, '_, '_> {
    /// The attribute as a number. Solvers write what they could not find out as `nan`, which is as good as nothing.
    fn number(&mut self, element: &Element, name: &str) -> Option<f64> {
        let text = element.attribute(name)?.trim();
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Some(value),
            Ok(_) => None,
            Err(_) => {
                let mut error = fault(codes::BAD_NUMBER, format!("`{name}=\"{text}\"` is no number"));
                error.place = at(element, self.findings);
                self.findings.push(*error);
                None
            }
        }
    }

    /// The element of results within another, and that of its 95 % intervals.
    fn result(&mut self, of: &'t Element, name: &str) -> Option<(&'t Element, Option<&'t Element>)> {
        let found = self.tree.result(of, name)?;
        let interval = self.tree.result(found, "result-conf-95");
        self.any = true;
        self.intervals |= interval.is_some();
        Some((found, interval))
    }

    /// Reads figures, and those of the intervals, into their places.
    fn both<T>(
        &mut self,
        found: (&'t Element, Option<&'t Element>),
        places: impl Fn(&mut Figures) -> &mut T,
        set: impl Fn(&mut Self, &'t Element, &mut T),
    ) where
        T: Clone,
    {
        let mut own = places(&mut self.values).clone();
        set(self, found.0, &mut own);
        *places(&mut self.values) = own;
        if let Some(interval) = found.1 {
            let mut own = places(&mut self.half).clone();
            set(self, interval, &mut own);
            *places(&mut self.half) = own;
        }
    }

    fn processor(&mut self, element: &'t Element) {
        let name = element.attribute("name").unwrap_or_default();
        if let Some(&index) = self.names.processors.get(name)
            && let Some(found) = self.result(element, "result-processor")
        {
            self.both(
                found,
                |figures| &mut figures.processors[index],
                |reader, element, own| {
                    own.utilization = reader.number(element, "utilization").unwrap_or_default();
                },
            );
        }
        let tree = self.tree;
        for child in tree.children(element) {
            match &*child.name {
                "task" => self.task(child),
                "group" => tree.children(child).filter(|inner| &*inner.name == "task").for_each(|task| self.task(task)),
                _ => {}
            }
        }
    }

    fn task(&mut self, element: &'t Element) {
        let name = element.attribute("name").unwrap_or_default();
        let Some(&index) = self.names.tasks.get(name) else { return };
        if let Some(found) = self.result(element, "result-task") {
            self.both(
                found,
                |figures| &mut figures.tasks[index],
                |reader, element, own| {
                    own.throughput = reader.number(element, "throughput").unwrap_or_default();
                    own.utilization = reader.number(element, "utilization").unwrap_or_default();
                    own.processor_utilization = reader.number(element, "proc-utilization").unwrap_or_default();
                },
            );
        }
        let tree = self.tree;
        for child in tree.children(element) {
            match &*child.name {
                "entry" => self.entry(child),
                "task-activities" => self.activities(index, child),
                _ => {}
            }
        }
    }

    fn entry(&mut self, element: &'t Element) {
        let name = element.attribute("name").unwrap_or_default();
        let Some(&index) = self.names.entries.get(name) else { return };
        if let Some(found) = self.result(element, "result-entry") {
            self.both(
                found,
                |figures| &mut figures.entries[index],
                |reader, element, own| {
                    own.throughput = reader.number(element, "throughput").unwrap_or_default();
                    own.utilization = reader.number(element, "utilization").unwrap_or_default();
                    own.processor_utilization = reader.number(element, "proc-utilization").unwrap_or_default();
                    own.open_response = reader.number(element, "open-wait-time");
                    for (phase, name) in PHASE_SERVICES.into_iter().enumerate() {
                        own.service[phase] = reader.number(element, name).unwrap_or(own.service[phase]);
                    }
                },
            );
        }
        let tree = self.tree;
        for child in tree.children(element) {
            match &*child.name {
                "forwarding" => self.call(child, Caller::Forward(index.into()), None),
                "entry-phase-activities" => {
                    for phase in tree.children(child).filter(|phase| &*phase.name == "activity") {
                        self.phase(phase, index.into());
                    }
                }
                _ => {}
            }
        }
    }

    fn phase(&mut self, element: &'t Element, entry: EntryId) {
        let phase =
            element.attribute("phase").and_then(|phase| phase.trim().parse::<u8>().ok()).unwrap_or(1).clamp(1, 3);
        if let Some(found) = self.result(element, "result-activity") {
            self.both(
                found,
                |figures| &mut figures.entries[entry.index()].service[usize::from(phase) - 1],
                |reader, element, own| *own = reader.number(element, "service-time").unwrap_or_default(),
            );
        }
        self.calls(element, Caller::Phase(entry, phase));
    }

    fn activities(&mut self, task: usize, element: &'t Element) {
        let model = self.names.model;
        let own = &model.tasks[task].activities;
        let names: FxHashMap<&str, ActivityId> =
            own.iter().map(|&id| (&*model.activities[id.index()].name, id)).collect();
        let tree = self.tree;
        for child in tree.children(element).filter(|child| &*child.name == "activity") {
            let Some(&id) = names.get(child.attribute("name").unwrap_or_default()) else { continue };
            if let Some(found) = self.result(child, "result-activity") {
                self.both(
                    found,
                    |figures| &mut figures.activities[id.index()],
                    |reader, element, own| {
                        own.service = reader.number(element, "service-time").unwrap_or_default();
                        let busy = reader.number(element, "utilization");
                        // Some solvers tell how busy an activity is, and not how often it is done.
                        let throughput = busy.filter(|_| own.service > 0.0).map(|busy| busy / own.service);
                        own.throughput = reader.number(element, "throughput").or(throughput).unwrap_or_default();
                    },
                );
            }
            self.calls(child, Caller::Activity(id));
        }
    }

    fn calls(&mut self, element: &'t Element, from: Caller) {
        let tree = self.tree;
        for child in tree.children(element) {
            match &*child.name {
                "synch-call" => self.call(child, from, Some(CallKind::Synchronous)),
                "asynch-call" => self.call(child, from, Some(CallKind::Asynchronous)),
                _ => {}
            }
        }
    }

    fn call(&mut self, element: &'t Element, from: Caller, kind: Option<CallKind>) {
        let Some(&to) = self.names.entries.get(element.attribute("dest").unwrap_or_default()) else { return };
        if let Some(found) = self.result(element, "result-call") {
            let key = (from, EntryId::from(to), kind);
            self.both(
                found,
                |figures| figures.waiting.entry(key).or_default(),
                |reader, element, own| *own = reader.number(element, "waiting").unwrap_or_default(),
            );
        }
    }
}

const PHASE_SERVICES: [&str; 3] = ["phase1-service-time", "phase2-service-time", "phase3-service-time"];
