//! From the tree to a model: first all names, then what refers to them.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::findings::{Findings, fault};
use crate::scheduling::{ROLE_WORDS, meaning};
use crate::text::definitions;
use crate::xml::tree::{Element, Tree};
use crate::{EntryId, Forwarding, Group, GroupId, Loaded, Processor, ProcessorId, Task, TaskId, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity};

/// A reader in the middle of a tree.
pub(super) struct Reader<'t> {
    pub(super) tree: &'t Tree,
    pub(super) builder: Builder,
    pub(super) findings: Findings,
    pub(super) variables: BTreeMap<String, f64>,
    /// Elements left out because they ask for reports.
    pub(super) reports: u64,
    tasks: Vec<(TaskId, &'t Element)>,
    entries: Vec<(EntryId, &'t Element)>,
}

/// Elements that ask for reports or steer a tool; of distributions those that are not of phases or activities.
pub(super) fn asks_for_reports(name: &str) -> bool {
    matches!(
        name,
        "service-time-distribution" | "queue-length-distribution" | "histogram-bin" | "run-control" | "plot-control"
    ) || name.starts_with("spex-")
}

/// Reads the model.
pub(super) fn model(name: &str, tree: &Tree, findings: Findings) -> Result<Loaded, Diagnostics> {
    let (tasks, entries) = (Vec::new(), Vec::new());
    let (builder, variables) = (Builder::new(), BTreeMap::new());
    let mut reader = Reader { tree, builder, findings, variables, reports: 0, tasks, entries };
    let root = tree.root();
    if &*root.name == "lqn-model" {
        reader.root(root);
    } else {
        let message = format!("the root element is `{}` where `lqn-model` is expected", root.name);
        reader.report(root, fault(codes::SYNTAX, message));
    }
    let Reader { builder, mut findings, reports, .. } = reader;
    for (number, what) in [(tree.results, "elements of results"), (reports, "wishes for reports of results")] {
        if number > 0 {
            let place = findings.file();
            let message = format!("{number} {what} were passed over");
            findings.push(Diagnostic::new(Severity::Note, codes::SKIPPED, place, message));
        }
    }
    findings.loaded(builder.finish(name))
}

impl<'t> Reader<'t> {
    fn root(&mut self, root: &'t Element) {
        const KNOWN: [&str; 2] = ["solver-params", "processor"];
        self.know_attributes(root, &["name", "description", "lqn-schema-version", "lqncore-schema-version"]);
        for child in self.tree.children(root).filter(|child| &*child.name == "spex-parameters") {
            self.variables.extend(definitions(&child.text));
        }
        for child in self.tree.children(root) {
            match &*child.name {
                "solver-params" => self.parameters(child),
                "processor" => self.processor(child),
                "spex-parameters" => {}
                name if asks_for_reports(name) => self.reports += 1,
                _ => self.unknown_element(child, root, &KNOWN),
            }
        }
        for (task, element) in std::mem::take(&mut self.tasks) {
            self.task_contents(task, element);
        }
        for (entry, element) in std::mem::take(&mut self.entries) {
            self.entry_contents(entry, element);
        }
    }

    fn parameters(&mut self, element: &'t Element) {
        self.know_attributes(element, &["comment", "conv_val", "it_limit", "print_int", "underrelax_coeff"]);
        let convergence = self.number(element, "conv_val");
        let limit = self.count(element, "it_limit", 0);
        let interval = self.count(element, "print_int", 0);
        let coefficient = self.number(element, "underrelax_coeff");
        let model = &mut self.builder.model;
        element.attribute("comment").unwrap_or_default().clone_into(&mut model.comment);
        let parameters = &mut model.parameters;
        parameters.convergence = convergence.unwrap_or(parameters.convergence);
        parameters.iteration_limit = limit.unwrap_or(parameters.iteration_limit);
        parameters.print_interval = interval;
        parameters.underrelaxation = coefficient;
        for child in self.tree.children(element) {
            if &*child.name == "pragma" {
                let pragma = (self.required(child, "param").to_owned(), self.required(child, "value").to_owned());
                self.builder.model.parameters.pragmas.push(pragma);
            } else {
                self.unknown_element(child, element, &["pragma"]);
            }
        }
    }

    fn processor(&mut self, element: &'t Element) {
        self.know_attributes(
            element,
            &["name", "scheduling", "quantum", "multiplicity", "replication", "speed-factor"],
        );
        let mut processor = Processor::new(self.required(element, "name"), self.scheduling(element));
        processor.quantum = self.number(element, "quantum");
        processor.multiplicity = self.multiplicity(element).unwrap_or(processor.multiplicity);
        processor.replicas = self.count(element, "replication", 1).unwrap_or(1);
        processor.speed = self.number(element, "speed-factor").unwrap_or(1.0);
        self.builder.here = (element.line, element.column);
        let added = self.builder.add_processor(processor);
        // Its tasks are read even where the processor is no good: they are named elsewhere.
        let id = self.checked(element, added).unwrap_or(ProcessorId(0));
        for child in self.tree.children(element) {
            match &*child.name {
                "task" => self.task(child, id, None),
                "group" => self.group(child, id),
                _ => self.unknown_element(child, element, &["task", "group"]),
            }
        }
    }

    fn group(&mut self, element: &'t Element, processor: ProcessorId) {
        self.know_attributes(element, &["name", "share", "cap"]);
        let name = self.required(element, "name").into();
        let share = self.number(element, "share").unwrap_or_default();
        let cap = matches!(element.attribute("cap"), Some("1" | "true" | "yes" | "YES"));
        self.builder.here = (element.line, element.column);
        let added = self.builder.add_group(Group { name, processor, share, cap });
        let group = self.checked(element, added);
        for child in self.tree.children(element) {
            match &*child.name {
                "task" => self.task(child, processor, group),
                _ => self.unknown_element(child, element, &["task"]),
            }
        }
    }

    fn task(&mut self, element: &'t Element, processor: ProcessorId, group: Option<GroupId>) {
        self.know_attributes(
            element,
            &[
                "name",
                "scheduling",
                "multiplicity",
                "replication",
                "queue-length",
                "think-time",
                "priority",
                "activity-graph",
                "initially",
            ],
        );
        let mut task = Task::new(self.required(element, "name"), processor, self.scheduling(element));
        task.group = group;
        task.multiplicity = self.multiplicity(element).unwrap_or(task.multiplicity);
        task.replicas = self.count(element, "replication", 1).unwrap_or(1);
        task.queue_length = self.count(element, "queue-length", 0);
        task.think_time = self.number(element, "think-time").unwrap_or_default();
        task.priority = self.integer(element, "priority").unwrap_or_default();
        self.builder.here = (element.line, element.column);
        let added = self.builder.add_task(task);
        let id = match self.checked(element, added) {
            Some(id) => {
                self.tasks.push((id, element));
                id
            }
            // A second task of a name: its entries exist, else every mention of them would be an error.
            None => match self.builder.task(element.attribute("name").unwrap_or_default()) {
                Ok(first) => first,
                Err(_) => return,
            },
        };
        for child in self.tree.children(element).filter(|child| &*child.name == "entry") {
            let name = self.required(child, "name");
            self.builder.here = (child.line, child.column);
            let added = self.builder.add_entry(id, name);
            if let Some(entry) = self.checked(child, added) {
                self.entries.push((entry, child));
            }
        }
    }

    fn task_contents(&mut self, task: TaskId, element: &'t Element) {
        for child in self.tree.children(element) {
            match &*child.name {
                "entry" => {}
                "fan-in" => self.fan(task, child, "source"),
                "fan-out" => self.fan(task, child, "dest"),
                "task-activities" => self.task_activities(task, child),
                name if asks_for_reports(name) => self.reports += 1,
                _ => self.unknown_element(child, element, &["entry", "fan-in", "fan-out", "task-activities"]),
            }
        }
    }

    fn fan(&mut self, task: TaskId, element: &'t Element, other: &str) {
        self.know_attributes(element, &[other, "value"]);
        let name = self.required(element, other);
        let named = self.builder.task(name);
        let value = self.count(element, "value", 0).unwrap_or(1);
        if let Some(named) = self.checked(element, named) {
            let task = &mut self.builder.model.tasks[task.index()];
            let list = if other == "source" { &mut task.fan_in } else { &mut task.fan_out };
            list.push((named, value));
        }
    }

    fn entry_contents(&mut self, id: EntryId, element: &'t Element) {
        self.know_attributes(element, &["name", "type", "priority", "open-arrival-rate", "semaphore", "rwlock"]);
        let priority = self.integer(element, "priority");
        let rate = self.number(element, "open-arrival-rate");
        let role = element.attribute("semaphore").or_else(|| element.attribute("rwlock"));
        let meant = role.map(|word| {
            meaning(&ROLE_WORDS, word).ok_or_else(|| {
                let error = fault(codes::SYNTAX, format!("there is no part `{word}` in a lock"));
                Box::new(error.with_similar(word, ROLE_WORDS.iter().map(|&(known, _)| known)))
            })
        });
        let role = meant.and_then(|role| self.checked(element, role));
        let entry = &mut self.builder.model.entries[id.index()];
        entry.priority = priority;
        entry.open_arrival_rate = rate;
        entry.semaphore = role;
        for child in self.tree.children(element) {
            match &*child.name {
                "forwarding" => self.forwarding(id, child),
                "entry-phase-activities" => self.phases(id, child),
                "service-time-distribution" => {
                    let phase = self.count(child, "phase", 1).unwrap_or(1).min(3) as u8;
                    let histogram = self.histogram(child);
                    self.builder.model.entries[id.index()].histograms.push((phase, histogram));
                }
                name if asks_for_reports(name) => self.reports += 1,
                _ => self.unknown_element(child, element, &["forwarding", "entry-phase-activities"]),
            }
        }
    }

    fn forwarding(&mut self, entry: EntryId, element: &'t Element) {
        self.know_attributes(element, &["dest", "prob"]);
        let name = self.required(element, "dest");
        let to = self.builder.entry(name);
        let probability = self.number(element, "prob").unwrap_or(1.0);
        if let Some(to) = self.checked(element, to) {
            self.builder.model.entries[entry.index()].forwarding.push(Forwarding { to, probability });
        }
    }
}
