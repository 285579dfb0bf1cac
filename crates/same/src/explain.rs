//! What templates made of one message, and why others did not: for explanations.
//!
//! [`Explaining`] takes the steps of a trace like [`Same`], and studies the message of one line. Whenever an event is about that message, or about
//! the occurrence that it began, each template is tried apart; the nearest try in each role is kept. Nothing of this runs
//! where nobody asks.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::driver::{Options, Same};
use crate::forest::{Forest, NONE};
use crate::record::{Occurrence, Record};
use crate::rules::Rules;
use dyelog_diagnostic::names::Name;
use dyelog_trace::messages::{MessageStep, StepSink, What};
use dyelog_trace::{ReadReport, TaskId, TraceNames};

/// A value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// An occurrence.
    Occurrence(Occurrence),
    /// A message of that task that has not arrived yet.
    InTransit(TaskId),
    /// A task.
    Task(TaskId),
    /// A number.
    Number(u64),
}

/// A variable with its value; a path has several.
pub type Bound = (Arc<str>, Vec<Is>);

/// Why a step of a template fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The state has nothing there.
    Nothing {
        /// What was looked up.
        function: &'static str,
        /// Of what.
        of: Is,
    },
    /// A look-up gives another value than the variable has.
    Other {
        /// What it gives.
        found: Is,
        /// What the variable is.
        wanted: Is,
    },
    /// No arcs lead from one to the other.
    NoPath {
        /// The upper end.
        from: Is,
        /// The lower end.
        to: Is,
    },
    /// An arc is there, or is not.
    Arc {
        /// From where, if that is asked.
        parent: Option<Is>,
        /// To where, if that is asked.
        child: Option<Is>,
        /// Whether there is one.
        is_there: bool,
    },
    /// The message has not arrived.
    InTransit(Is),
    /// An occurrence is live, or is not.
    Live(Is, bool),
    /// The sender of the message to an occurrence may wait for the reply, or does not.
    Waiting(Is, bool),
    /// Two values compare otherwise.
    Compare(Is, Is),
    /// The message has another name, or the one that is excluded.
    Named,
    /// A relation of the file holds of two occurrences, or does not.
    Relation(Is, Is, bool),
}

/// A step that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What is written there.
    pub text: String,
    /// Why it fails.
    pub why: Why,
}

/// How near a template came to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Try {
    /// The template, by its number.
    pub template: u16,
    /// The variable that stands for the occurrence that the message began; none where the message is the event.
    pub role: Option<String>,
    /// How many steps hold.
    pub passed: usize,
    /// How many there are.
    pub steps: usize,
    /// The step that fails; none where all hold.
    pub stop: Option<Stop>,
    /// What the variables are.
    pub bound: Vec<Bound>,
    /// The message that arrived last, by its number in the order of reception.
    pub at: u32,
    /// Whether the template was carried out there.
    pub committed: bool,
    /// The template that was carried out instead.
    pub taken_by: Option<u16>,
}

/// A template that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Firing {
    /// The template, by its number.
    pub template: u16,
    /// What the event is about.
    pub event: Vec<Is>,
    /// What the variables are.
    pub bound: Vec<Bound>,
    /// The message that arrived last, by its number in the order of reception.
    pub at: u32,
    /// Whether it explained the message that is studied: the arc of that message is retired.
    pub explains: bool,
}

/// What became of a message beside the templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aside {
    /// It replies to a request that is lost, and changes nothing.
    Stray,
    /// It closes a cycle, but messages of its kind are requests: what it would reply to was a reply itself, of which the request is lost.
    Request,
    /// A template said in transit that nobody replies to it.
    Explained,
    /// No template matches it.
    Unmatched,
    /// It was sent and never received.
    Lost,
}

/// An interaction that a message is part of.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// The interaction.
    pub record: Record,
    /// Which of its messages it is, from 0.
    pub place: usize,
    /// The files and lines of its messages.
    pub lines: Vec<(Arc<str>, u32)>,
}

/// What was made of a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageStudy {
    /// Its number in the order of reception, from 1; 0 of one that was never received.
    pub number: u32,
    /// The file.
    pub file: Arc<str>,
    /// The line there.
    pub line: u32,
    /// The occurrence that sent it, or the task.
    pub from: Is,
    /// The task that received it.
    pub to: Option<TaskId>,
    /// What it says.
    pub label: Name,
    /// When it was sent, seconds, where the trace tells.
    pub sent: Option<f64>,
    /// When it arrived, seconds, where the trace tells.
    pub received: Option<f64>,
    /// The occurrence that it began.
    pub begun: Option<Occurrence>,
    /// What became of it beside the templates.
    pub aside: Option<Aside>,
    /// The templates that were carried out at it, then those that explained it later.
    pub firings: Vec<Firing>,
    /// For each template and role the nearest try; the nearest first.
    pub tries: Vec<Try>,
    /// The interactions that it is part of.
    pub parts: Vec<Part>,
    /// The lines of all messages by their numbers, less one.
    lines: Vec<(Arc<str>, u32)>,
}

impl MessageStudy {
    /// The file and line of a message by its number.
    pub fn line_of(&self, number: u32) -> Option<&(Arc<str>, u32)> {
        self.lines.get((number as usize).checked_sub(1)?)
    }
}

/// Which message is studied.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The file, as it is shown; any where it is not given.
    pub file: Option<String>,
    /// The line there, of its reception or its sending.
    pub line: u32,
    /// The template to be tried; all where it is not given.
    pub template: Option<u16>,
}

/// What is watched while messages come.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The template to be tried; all where it is not given.
    pub only: Option<u16>,
    /// Whether the message that is delivered is the one.
    pub is_now: bool,
    /// The number of the message that is delivered.
    pub current: u32,
    /// The node that the message began, and the number of the message; 0 before that.
    pub node: (u32, u32),
    /// Who sent it.
    pub from: Option<Is>,
    pub begun: Option<Occurrence>,
    pub aside: Option<Aside>,
    pub firings: Vec<Firing>,
    pub tries: Vec<Try>,
    /// The template that is carried out now.
    pub firing: Option<Firing>,
    /// Tries at this event.
    pub pending: Vec<usize>,
    /// Whether the message's arc was there as the event came.
    pub had_arc: bool,
}

impl Watch {
    /// Whether the occurrence that the message began is there.
    pub fn is_begun(&self, forest: &Forest) -> bool {
        let (node, number) = self.node;
        number != 0 && forest.is_occurrence(node) && forest.message_of(node) == number
    }

    /// Whether an arc leads to it.
    pub fn has_arc(&self, forest: &Forest) -> bool {
        self.is_begun(forest) && forest.parent_of(self.node.0) != NONE
    }

    /// Keeps a try where none came nearer in that role.
    pub fn keep(&mut self, new: Try) {
        let rank = |one: &Try| (one.committed, one.stop.is_none(), one.passed);
        let known = self.tries.iter().position(|one| (one.template, &one.role) == (new.template, &new.role));
        match known {
            Some(place) if rank(&self.tries[place]) < rank(&new) => {
                self.tries[place] = new;
                self.pending.push(place);
            }
            Some(_) => {}
            None => {
                self.tries.push(new);
                self.pending.push(self.tries.len() - 1);
            }
        }
    }
}

/// The analysis of one trace, with a study of one message.
#[derive(Debug)]
pub struct Explaining {
    same: Same,
    wanted: Wanted,
    files: Vec<Arc<str>>,
    /// By message in the order of reception.
    lines: Vec<(u16, u32)>,
    /// The message as it is sent: its token.
    token: Option<u32>,
    found: Option<MessageStudy>,
    /// The line of a message that is next to the one that is wanted.
    near: Option<u32>,
}

impl Explaining {
    /// By these rules.
    pub fn new(rules: Arc<Rules>, options: Options, files: Vec<Arc<str>>, wanted: Wanted) -> Self {
        let mut same = Same::with(rules, Options { records: true, ..options }, files.clone());
        same.watch(Watch { only: wanted.template, ..Watch::default() });
        Self { same, wanted, files, lines: Vec::new(), token: None, found: None, near: None }
    }

    /// The study of the message, or the nearest line that has one; and what there is to say about the trace.
    pub fn finish(self, names: &TraceNames) -> (Result<MessageStudy, Option<u32>>, ReadReport) {
        let Self { mut same, files, lines, found, near, .. } = self;
        let watch = same.unwatch();
        let analysis = same.finish(names);
        let Some(mut study) = found else { return (Err(near), analysis.findings) };
        let line = |(file, line): &(u16, u32)| (files.get(usize::from(*file)).cloned().unwrap_or_default(), *line);
        study.lines = lines.iter().map(line).collect();
        if study.number != 0 {
            (study.begun, study.firings, study.tries) = (watch.begun, watch.firings, watch.tries);
            study.aside = watch.aside.or(study.aside);
            study.from = watch.from.unwrap_or(study.from);
        }
        let rank = |one: &Try| (!one.committed, one.role.is_some(), one.stop.is_some(), one.steps - one.passed);
        study.tries.sort_by(|one, other| rank(one).cmp(&rank(other)).then(one.template.cmp(&other.template)));
        let parts = analysis.records.into_iter().filter_map(|record| {
            let place = record.messages.iter().position(|number| *number == study.number && *number != 0)?;
            let lines = record.messages.iter().filter_map(|number| study.line_of(*number).cloned()).collect();
            Some(Part { record, place, lines })
        });
        study.parts = parts.collect();
        (Ok(study), analysis.findings)
    }

    fn is_line(&self, step: &MessageStep) -> bool {
        let file = self.files.get(usize::from(step.file));
        let of_file = self.wanted.file.as_ref().is_none_or(|wanted| file.is_some_and(|file| **file == **wanted));
        self.found.is_none() && of_file && step.line == self.wanted.line
    }

    fn study(&self, step: &MessageStep, (from, to, label): (TaskId, Option<TaskId>, Name), sent: f64) -> MessageStudy {
        let known = |time: f64| time.is_finite().then_some(time);
        MessageStudy {
            number: 0,
            file: self.files.get(usize::from(step.file)).cloned().unwrap_or_default(),
            line: step.line,
            from: Is::Task(from),
            to,
            label,
            sent: known(sent),
            received: known(step.time),
            begun: None,
            aside: None,
            firings: Vec::new(),
            tries: Vec::new(),
            parts: Vec::new(),
            lines: Vec::new(),
        }
    }
}

impl StepSink for Explaining {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        let is_line = self.is_line(step);
        let mut is_now = false;
        match step.what {
            What::Message { from, to, label, sent, .. } => {
                is_now = is_line;
                if is_now {
                    self.found = Some(self.study(step, (from, Some(to), label), sent));
                }
            }
            What::Receive { from, to, token, label, sent, .. } => {
                is_now = is_line || self.token == Some(token);
                if is_now {
                    self.found = Some(self.study(step, (from, Some(to), label), sent));
                    self.token = None;
                }
            }
            What::Send { from, token, to, label } if is_line => {
                let received = MessageStep { time: f64::NAN, ..*step };
                let study = self.study(&received, (from, to, label), step.time);
                self.found = Some(MessageStudy { aside: Some(Aside::Lost), ..study });
                self.token = Some(token);
            }
            What::Lost(token) if self.token == Some(token) => self.token = None,
            What::Send { .. } | What::Lost(_) | What::Other(_) => {}
        }
        if matches!(step.what, What::Message { .. } | What::Receive { .. })
            && self.near.is_none_or(|near| step.line.abs_diff(self.wanted.line) < near.abs_diff(self.wanted.line))
        {
            self.near = Some(step.line);
        }
        let number = self.same.received();
        self.same.studies(is_now);
        let flow = self.same.step(names, step);
        self.same.studies(false);
        if self.same.received() > number {
            self.lines.push((step.file, step.line));
            if let Some(study) = self.found.as_mut().filter(|_| is_now) {
                study.number = self.same.received();
            }
        }
        flow
    }
}
