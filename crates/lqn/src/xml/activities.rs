//! Phases and activities.

use crate::builder::Caller;
use crate::findings::fault;
use crate::xml::read::{Reader, asks_for_reports};
use crate::xml::tree::{Element, at};
use crate::{
    ActivityId, Body, Call, CallKind, CallOrder, EntryId, Fork, Histogram, Join, Precedence, TaskId, Work, codes,
};
use dyelog_diagnostic::Diagnostic;

const PHASE: [&str; 7] =
    ["name", "phase", "host-demand-mean", "host-demand-cvsq", "think-time", "max-service-time", "call-order"];
const ACTIVITY: [&str; 7] =
    ["name", "bound-to-entry", "host-demand-mean", "host-demand-cvsq", "think-time", "max-service-time", "call-order"];
/// What a distribution has of wishes, then of results.
const DISTRIBUTION: [&str; 10] =
    ["number-bins", "min", "max", "phase", "mid-point", "bin-size", "mean", "std-dev", "skew", "kurtosis"];
/// Bins of a distribution that does not say how many.
const USUAL_BINS: u32 = 20;

impl<'t> Reader<'t> {
    /// The phases of an entry.
    pub(super) fn phases(&mut self, entry: EntryId, element: &'t Element) {
        for child in self.tree.children(element) {
            if &*child.name != "activity" {
                self.unknown_element(child, element, &["activity"]);
                continue;
            }
            self.know_attributes(child, &PHASE);
            let phase = match self.count(child, "phase", 1) {
                Some(phase @ 1..=3) => phase as usize,
                Some(phase) => {
                    let message = format!("there are three phases at most, this is phase {phase}");
                    self.report(child, fault(codes::BAD_NUMBER, message));
                    continue;
                }
                None => 1,
            };
            let (work, histograms) = self.work(child, Caller::Phase(entry, phase));
            let histograms = histograms.into_iter().map(|own| (phase as u8, own));
            self.builder.model.entries[entry.index()].histograms.extend(histograms);
            if let Some(own) = self.builder.phase(entry, phase - 1) {
                *own = work;
            } else {
                let name = &self.builder.model.entries[entry.index()].name;
                let message = format!("the entry `{name}` is made of activities and has no phases");
                self.report(child, fault(codes::CONTRADICTION, message));
            }
        }
    }

    /// What a phase or activity does, and the distributions that are asked for.
    fn work(&mut self, element: &'t Element, caller: Caller) -> (Work, Vec<Histogram>) {
        let limit = self.number(element, "max-service-time").unwrap_or_default();
        let mut histograms: Vec<Histogram> = Histogram::beyond(limit).into_iter().collect();
        let mut work = Work {
            demand: self.number(element, "host-demand-mean").unwrap_or_default(),
            cv2: self.number(element, "host-demand-cvsq"),
            think_time: self.number(element, "think-time").unwrap_or_default(),
            think_cv2: None,
            call_order: match element.attribute("call-order") {
                Some("DETERMINISTIC") => CallOrder::Deterministic,
                None | Some("STOCHASTIC") => CallOrder::Stochastic,
                Some(other) => {
                    let error = fault(codes::SYNTAX, format!("there is no call order `{other}`"));
                    let error = error.with_similar(other, ["STOCHASTIC", "DETERMINISTIC"]);
                    self.report(element, Box::new(error));
                    CallOrder::Stochastic
                }
            },
            calls: Vec::new(),
        };
        for child in self.tree.children(element) {
            let kind = match &*child.name {
                "synch-call" => CallKind::Synchronous,
                "asynch-call" => CallKind::Asynchronous,
                "service-time-distribution" => {
                    histograms.push(self.histogram(child));
                    continue;
                }
                name if asks_for_reports(name) => {
                    self.reports += 1;
                    continue;
                }
                _ => {
                    self.unknown_element(child, element, &["synch-call", "asynch-call"]);
                    continue;
                }
            };
            self.know_attributes(child, &["dest", "calls-mean", "fanin", "fanout"]);
            let name = self.required(child, "dest");
            let to = self.builder.entry(name);
            let mean = self.number(child, "calls-mean").unwrap_or_default();
            let Some(to) = self.checked(child, to) else { continue };
            if !self.builder.first_call(caller, to, kind) {
                let message = format!("the calls to `{name}` are given a second time; both numbers are added up");
                let warning = Diagnostic::warning(codes::REPEATED, at(child, &self.findings), message);
                self.findings.push(warning);
            }
            work.calls.push(Call { to, kind, mean });
        }
        (work, histograms)
    }

    /// A `service-time-distribution`; what it may have of results is left out.
    pub(super) fn histogram(&mut self, element: &'t Element) -> Histogram {
        self.know_attributes(element, &DISTRIBUTION);
        self.reports += self.tree.children(element).count() as u64;
        let from = self.number(element, "min").unwrap_or_default();
        let to = self.number(element, "max").unwrap_or_default();
        Histogram { from, to, bins: self.count(element, "number-bins", 0).unwrap_or(USUAL_BINS) }
    }

    /// The activities of a task: first all names, then what they do and how they follow each other.
    pub(super) fn task_activities(&mut self, task: TaskId, element: &'t Element) {
        let mut declared = Vec::new();
        for child in self.tree.children(element).filter(|child| &*child.name == "activity") {
            let name = self.required(child, "name");
            self.builder.here = (child.line, child.column);
            let added = self.builder.add_activity(task, name);
            if let Some(activity) = self.checked(child, added) {
                declared.push((activity, child));
            }
        }
        for (activity, child) in declared {
            self.know_attributes(child, &ACTIVITY);
            let (work, histograms) = self.work(child, Caller::Activity(activity));
            let own = &mut self.builder.model.activities[activity.index()];
            (own.work, own.histograms) = (work, histograms);
            if let Some(entry) = child.attribute("bound-to-entry") {
                self.bind(task, activity, entry, child);
            }
        }
        for child in self.tree.children(element) {
            match &*child.name {
                "activity" => {}
                "precedence" => self.precedence(task, child),
                "reply-entry" => self.replies(task, child),
                _ => self.unknown_element(child, element, &["activity", "precedence", "reply-entry"]),
            }
        }
    }

    /// Makes the activity the first of the entry.
    fn bind(&mut self, task: TaskId, activity: ActivityId, name: &str, element: &Element) {
        let entry = self.builder.entry(name);
        let Some(entry) = self.checked(element, entry) else { return };
        let own = &mut self.builder.model.entries[entry.index()];
        let message = if own.task != task {
            format!("the entry `{name}` is another task's")
        } else if matches!(own.body, Body::Activities(first) if first != activity) {
            format!("the entry `{name}` begins with another activity already")
        } else {
            own.body = Body::Activities(activity);
            return;
        };
        self.report(element, fault(codes::CONTRADICTION, message));
    }

    fn replies(&mut self, task: TaskId, element: &'t Element) {
        self.know_attributes(element, &["name"]);
        let name = self.required(element, "name");
        let entry = self.builder.entry(name);
        let Some(entry) = self.checked(element, entry) else { return };
        for child in self.tree.children(element) {
            if &*child.name != "reply-activity" {
                self.unknown_element(child, element, &["reply-activity"]);
            } else if let Some(activity) = self.activity_named(task, child) {
                self.builder.model.activities[activity.index()].replies.push(entry);
            }
        }
    }

    fn activity_named(&mut self, task: TaskId, element: &Element) -> Option<ActivityId> {
        let name = self.required(element, "name");
        let activity = self.builder.activity(task, name);
        self.checked(element, activity)
    }

    fn precedence(&mut self, task: TaskId, element: &'t Element) {
        const KNOWN: [&str; 7] = ["pre", "pre-AND", "pre-OR", "post", "post-AND", "post-OR", "post-LOOP"];
        let mut join = None;
        let mut fork = None;
        for child in self.tree.children(element) {
            let repeated = match &*child.name {
                "pre" | "pre-AND" | "pre-OR" => join.replace(self.join(task, child)).is_some(),
                "post" | "post-AND" | "post-OR" | "post-LOOP" => fork.replace(self.fork(task, child)).is_some(),
                _ => {
                    self.unknown_element(child, element, &KNOWN);
                    false
                }
            };
            if repeated {
                self.report(child, fault(codes::CONTRADICTION, "a precedence has one `pre` and one `post`"));
            }
        }
        match join {
            Some(Some(join)) => {
                let precedence = Precedence { join, fork: fork.flatten() };
                self.builder.model.tasks[task.index()].precedences.push(precedence);
            }
            Some(None) => {}
            None => self.report(element, fault(codes::SYNTAX, "a precedence needs one of `pre`, `pre-AND`, `pre-OR`")),
        }
    }

    /// The activities named in an element, each with the number in one of its attributes.
    fn list(&mut self, task: TaskId, element: &'t Element, number: Option<&str>) -> Vec<(f64, ActivityId)> {
        let mut list = Vec::with_capacity(element.children.len());
        for child in self.tree.children(element) {
            if asks_for_reports(&child.name) {
                self.reports += 1;
                continue;
            }
            if &*child.name != "activity" {
                self.unknown_element(child, element, &["activity"]);
                continue;
            }
            match number {
                Some(number) => self.know_attributes(child, &["name", number]),
                None => self.know_attributes(child, &["name"]),
            }
            let value = number.and_then(|number| self.number(child, number)).unwrap_or(1.0);
            if let Some(activity) = self.activity_named(task, child) {
                list.push((value, activity));
            }
        }
        if list.is_empty() {
            self.report(element, fault(codes::SYNTAX, format!("the element `{}` names no activity", element.name)));
        }
        list
    }

    fn plain_list(&mut self, task: TaskId, element: &'t Element) -> Vec<ActivityId> {
        self.list(task, element, None).into_iter().map(|(_, activity)| activity).collect()
    }

    /// The one activity of a `pre` or `post`.
    fn single(&mut self, task: TaskId, element: &'t Element) -> Option<ActivityId> {
        self.know_attributes(element, &[]);
        let list = self.plain_list(task, element);
        if list.len() > 1 {
            let message = format!("the element `{}` names more than one activity", element.name);
            self.report(element, fault(codes::SYNTAX, message));
        }
        list.first().copied()
    }

    fn join(&mut self, task: TaskId, element: &'t Element) -> Option<Join> {
        match &*element.name {
            "pre" => self.single(task, element).map(Join::Sequence),
            "pre-AND" => {
                self.know_attributes(element, &["quorum"]);
                let quorum = self.count(element, "quorum", 0).filter(|&quorum| quorum > 0);
                Some(Join::And { activities: self.plain_list(task, element), quorum })
            }
            _ => {
                self.know_attributes(element, &[]);
                Some(Join::Or(self.plain_list(task, element)))
            }
        }
    }

    fn fork(&mut self, task: TaskId, element: &'t Element) -> Option<Fork> {
        match &*element.name {
            "post" => self.single(task, element).map(Fork::Sequence),
            "post-AND" => {
                self.know_attributes(element, &[]);
                Some(Fork::And(self.plain_list(task, element)))
            }
            "post-OR" => {
                self.know_attributes(element, &[]);
                Some(Fork::Or(self.list(task, element, Some("prob"))))
            }
            _ => {
                self.know_attributes(element, &["end"]);
                let end = element.attribute("end").map(|name| self.builder.activity(task, name));
                let end = end.and_then(|end| self.checked(element, end));
                Some(Fork::Loop { bodies: self.list(task, element, Some("count")), end })
            }
        }
    }
}
