//! Writes the XML language, laid out as the tool suite does, with results or without.

mod results;

use std::fmt::Display;

use crate::labels::{Labels, number};
use crate::results::{Caller, Results};
use crate::scheduling::{ROLE_WORDS, WORDS, word};
use crate::xml::write::results::Solved;
use crate::{
    Activity, ActivityId, Body, CallKind, CallOrder, Entry, EntryId, Fork, GroupId, Histogram, Join, Model,
    Multiplicity, Precedence, ProcessorId, Scheduling, SemaphoreRole, Task, TaskId, Work,
};

/// The model as a document, in canonical form (see [`Model::into_canonical`]). Names that XML cannot carry are mapped,
/// the same way as in the text language.
pub fn write(model: &Model) -> String {
    document(model, None)
}

/// The same with results of the model, as elements `result-…` within the elements that they are of. Names and meanings are
/// those of the tool suite: the waiting of asynchronous calls and open arrivals includes the service that they wait for. Half
/// widths of a simulation stand in `result-conf-95`.
pub fn write_solved(model: &Model, results: &Results) -> String {
    document(model, Some(results))
}

fn document(model: &Model, results: Option<&Results>) -> String {
    let solved = results.map(|results| Solved::new(model, results));
    let model = model.clone().into_canonical();
    let labels = Labels::new(&model);
    let mut writer = Writer { model: &model, labels: &labels, solved, xml: Xml::new() };
    writer.document();
    writer.xml.text
}

/// A document in the making.
struct Xml {
    text: String,
    open: Vec<&'static str>,
    /// Whether the last tag written is a start tag that still lacks its bracket.
    in_tag: bool,
}

impl Xml {
    fn new() -> Self {
        Self { text: "<?xml version=\"1.0\"?>\n".to_owned(), open: Vec::new(), in_tag: false }
    }

    fn start(&mut self, name: &'static str) -> &mut Self {
        if self.in_tag {
            self.text.push_str(">\n");
        }
        self.text.push_str(&"   ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        self.open.push(name);
        self.in_tag = true;
        self
    }

    /// An attribute of the element just started.
    fn with(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.text.push_str(&format!(" {name}=\"{}\"", escaped(&value.to_string())));
        self
    }

    fn with_some(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.with(name, value);
        }
        self
    }

    /// Words for people.
    fn comment(&mut self, words: &str) {
        if self.in_tag {
            self.text.push_str(">\n");
            self.in_tag = false;
        }
        self.text.push_str(&"   ".repeat(self.open.len()));
        // Two hyphens would end it.
        let words = words.replace(is_no_text, " ").replace("--", "-\u{2010}");
        self.text.push_str(&format!("<!-- {words} -->\n"));
    }

    fn end(&mut self) {
        let name = self.open.pop().expect("what ends was started");
        if self.in_tag {
            self.text.push_str("/>\n");
        } else {
            self.text.push_str(&"   ".repeat(self.open.len()));
            self.text.push_str(&format!("</{name}>\n"));
        }
        self.in_tag = false;
    }
}

/// Whether XML cannot carry a character.
fn is_no_text(character: char) -> bool {
    character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// The text as it may stand in an attribute. Control characters, which XML cannot carry, become spaces.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\r' | '\t' => safe.push_str(&format!("&#{};", u32::from(character))),
            _ if is_no_text(character) => safe.push(' '),
            _ => safe.push(character),
        }
    }
    safe
}

/// What lies directly in a processor.
#[derive(Clone, Default)]
struct Contents {
    groups: Vec<GroupId>,
    tasks: Vec<TaskId>,
}

/// What lies in what.
struct Inside {
    processors: Vec<Contents>,
    /// Tasks by group.
    groups: Vec<Vec<TaskId>>,
}

struct Writer<'a> {
    model: &'a Model,
    labels: &'a Labels<'a>,
    solved: Option<Solved<'a>>,
    xml: Xml,
}

impl Writer<'_> {
    fn document(&mut self) {
        self.xml
            .start("lqn-model")
            .with("name", &self.model.comment)
            .with("description", "")
            .with("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
            .with("xsi:noNamespaceSchemaLocation", "lqn.xsd");
        self.parameters();
        let inside = self.inside();
        for (contents, index) in inside.processors.iter().zip(0usize..) {
            self.processor(index.into(), contents, &inside.groups);
        }
        self.xml.end();
    }

    /// What lies in each processor and group, found once.
    fn inside(&self) -> Inside {
        let model = self.model;
        let mut inside = Inside {
            processors: vec![Contents::default(); model.processors.len()],
            groups: vec![Vec::new(); model.groups.len()],
        };
        for (group, index) in model.groups.iter().zip(0usize..) {
            if let Some(processor) = inside.processors.get_mut(group.processor.index()) {
                processor.groups.push(index.into());
            }
        }
        for (task, index) in model.tasks.iter().zip(0usize..) {
            // A task whose group is another processor's cannot stand in it; the lint tells of it.
            let group = task
                .group
                .filter(|group| model.groups.get(group.index()).is_some_and(|group| group.processor == task.processor));
            match (group, inside.processors.get_mut(task.processor.index())) {
                (Some(group), Some(_)) => inside.groups[group.index()].push(index.into()),
                (None, Some(processor)) => processor.tasks.push(index.into()),
                (_, None) => {}
            }
        }
        inside
    }

    fn parameters(&mut self) {
        let parameters = &self.model.parameters;
        self.xml
            .start("solver-params")
            .with("comment", &self.model.comment)
            .with("conv_val", number(parameters.convergence))
            .with("it_limit", parameters.iteration_limit)
            .with_some("underrelax_coeff", parameters.underrelaxation.map(number))
            .with_some("print_int", parameters.print_interval);
        for (name, value) in &parameters.pragmas {
            self.xml.start("pragma").with("param", name).with("value", value).end();
        }
        self.general_results();
        self.xml.end();
    }

    fn processor(&mut self, id: ProcessorId, contents: &Contents, groups: &[Vec<TaskId>]) {
        let processor = &self.model.processors[id.index()];
        self.xml
            .start("processor")
            .with("name", self.labels.processor(id))
            .with("scheduling", scheduling(processor.scheduling))
            .with_some("quantum", processor.quantum.map(number))
            .with_some("multiplicity", multiplicity(processor.multiplicity, processor.scheduling))
            .with_some("replication", (processor.replicas != 1).then_some(processor.replicas))
            .with_some("speed-factor", (processor.speed != 1.0).then(|| number(processor.speed)));
        self.processor_results(id);
        for &group in &contents.groups {
            self.group(group, &groups[group.index()]);
        }
        for &task in &contents.tasks {
            self.task(task);
        }
        self.xml.end();
    }

    fn group(&mut self, id: GroupId, tasks: &[TaskId]) {
        let group = &self.model.groups[id.index()];
        self.xml
            .start("group")
            .with("name", self.labels.group(id))
            .with("share", number(group.share))
            .with("cap", group.cap);
        for &task in tasks {
            self.task(task);
        }
        self.xml.end();
    }

    fn task(&mut self, id: TaskId) {
        let task = &self.model.tasks[id.index()];
        self.xml
            .start("task")
            .with("name", self.labels.task(id))
            .with("scheduling", scheduling(task.scheduling))
            .with_some("multiplicity", multiplicity(task.multiplicity, task.scheduling))
            .with_some("replication", (task.replicas != 1).then_some(task.replicas))
            .with_some("queue-length", task.queue_length)
            .with_some("think-time", (task.think_time != 0.0).then(|| number(task.think_time)))
            .with_some("priority", (task.priority != 0).then_some(task.priority));
        self.task_results(id);
        for (from, number) in &task.fan_in {
            self.xml.start("fan-in").with("source", self.labels.task(*from)).with("value", number).end();
        }
        for (to, number) in &task.fan_out {
            self.xml.start("fan-out").with("dest", self.labels.task(*to)).with("value", number).end();
        }
        for &entry in &task.entries {
            if let Some(own) = self.model.entries.get(entry.index()) {
                self.entry(own, entry);
            }
        }
        if !task.activities.is_empty() {
            self.activities(task);
        }
        self.xml.end();
    }

    fn entry(&mut self, entry: &Entry, id: EntryId) {
        let name = self.labels.entry(id);
        let kind = if matches!(entry.body, Body::Phases(_)) { "PH1PH2" } else { "NONE" };
        self.xml
            .start("entry")
            .with("name", name)
            .with("type", kind)
            .with_some("priority", entry.priority)
            .with_some("open-arrival-rate", entry.open_arrival_rate.map(number));
        if let Some(role) = entry.semaphore {
            let attribute =
                if matches!(role, SemaphoreRole::Signal | SemaphoreRole::Wait) { "semaphore" } else { "rwlock" };
            self.xml.with_some(attribute, word(&ROLE_WORDS, role));
        }
        self.entry_results(id);
        let phases = if let Body::Phases(phases) = &entry.body { phases.len() } else { 0 };
        for (phase, histogram) in entry.histograms.iter().filter(|(phase, _)| usize::from(*phase) > phases) {
            self.histogram(histogram, Some(*phase));
        }
        for forwarding in &entry.forwarding {
            let to = self.labels.entry(forwarding.to);
            self.xml.start("forwarding").with("dest", to).with("prob", number(forwarding.probability));
            self.call_results(Caller::Forward(id), forwarding.to, None);
            self.xml.end();
        }
        if let Body::Phases(phases) = &entry.body {
            self.xml.start("entry-phase-activities");
            for (work, phase) in phases.iter().zip(1u8..) {
                self.xml.start("activity").with("name", format_args!("{name}_{phase}")).with("phase", phase);
                let histograms = entry.histograms.iter().filter(|(own, _)| *own == phase).map(|(_, own)| own);
                self.work(work, histograms, Caller::Phase(id, phase));
            }
            self.xml.end();
        }
        self.xml.end();
    }

    /// The rest of an `activity` element.
    fn work<'h>(&mut self, work: &Work, histograms: impl Iterator<Item = &'h Histogram> + Clone, caller: Caller) {
        let limit = histograms.clone().find(|own| own.bins == 0);
        self.xml
            .with("host-demand-mean", number(work.demand))
            .with_some("host-demand-cvsq", work.cv2.map(number))
            .with_some("think-time", (work.think_time != 0.0).then(|| number(work.think_time)))
            .with_some("max-service-time", limit.map(|own| number(own.to)))
            .with_some("call-order", (work.call_order == CallOrder::Deterministic).then_some("DETERMINISTIC"));
        self.work_results(caller);
        for histogram in histograms.filter(|own| Some(*own) != limit) {
            self.histogram(histogram, None);
        }
        for call in &work.calls {
            let element = match call.kind {
                CallKind::Synchronous => "synch-call",
                CallKind::Asynchronous => "asynch-call",
            };
            let to = self.labels.entry(call.to);
            self.xml.start(element).with("dest", to).with("calls-mean", number(call.mean));
            self.call_results(caller, call.to, Some(call.kind));
            self.xml.end();
        }
        self.xml.end();
    }

    fn histogram(&mut self, histogram: &Histogram, phase: Option<u8>) {
        self.xml.start("service-time-distribution").with_some("phase", phase);
        self.xml.with("min", number(histogram.from)).with("max", number(histogram.to));
        self.xml.with("number-bins", histogram.bins).end();
    }

    fn activities(&mut self, task: &Task) {
        let model = self.model;
        let known: Vec<(ActivityId, &Activity)> = task
            .activities
            .iter()
            .filter_map(|&id| model.activities.get(id.index()).map(|activity| (id, activity)))
            .collect();
        let mut starts: Vec<(ActivityId, EntryId)> = Vec::new();
        for &entry in &task.entries {
            if let Some(Entry { body: Body::Activities(first), .. }) = model.entries.get(entry.index()) {
                starts.push((*first, entry));
            }
        }
        starts.sort_unstable();
        self.xml.start("task-activities");
        for &(id, activity) in &known {
            let first = starts.partition_point(|&(start, _)| start < id);
            let entry =
                starts.get(first).filter(|&&(start, _)| start == id).map(|&(_, entry)| self.labels.entry(entry));
            self.xml.start("activity").with("name", self.labels.activity(id)).with_some("bound-to-entry", entry);
            self.work(&activity.work, activity.histograms.iter(), Caller::Activity(id));
        }
        for precedence in &task.precedences {
            self.precedence(precedence);
        }
        let mut replies: Vec<(EntryId, ActivityId)> =
            known.iter().flat_map(|&(id, activity)| activity.replies.iter().map(move |&entry| (entry, id))).collect();
        replies.sort_unstable();
        for answers in replies.chunk_by(|left, right| left.0 == right.0) {
            self.xml.start("reply-entry").with("name", self.labels.entry(answers[0].0));
            for &(_, activity) in answers {
                self.xml.start("reply-activity").with("name", self.labels.activity(activity)).end();
            }
            self.xml.end();
        }
        self.xml.end();
    }

    fn precedence(&mut self, precedence: &Precedence) {
        self.xml.start("precedence");
        match &precedence.join {
            Join::Sequence(activity) => self.plain_list("pre", &[*activity], None),
            Join::And { activities, quorum } => self.plain_list("pre-AND", activities, *quorum),
            Join::Or(activities) => self.plain_list("pre-OR", activities, None),
        }
        match &precedence.fork {
            None => {}
            Some(Fork::Sequence(activity)) => self.plain_list("post", &[*activity], None),
            Some(Fork::And(activities)) => self.plain_list("post-AND", activities, None),
            Some(Fork::Or(branches)) => {
                self.xml.start("post-OR");
                self.counted_list("prob", branches);
            }
            Some(Fork::Loop { bodies, end }) => {
                let end = end.map(|end| self.labels.activity(end));
                self.xml.start("post-LOOP").with_some("end", end);
                self.counted_list("count", bodies);
            }
        }
        self.xml.end();
    }

    fn plain_list(&mut self, element: &'static str, activities: &[ActivityId], quorum: Option<u32>) {
        self.xml.start(element).with_some("quorum", quorum);
        for &activity in activities {
            self.xml.start("activity").with("name", self.labels.activity(activity)).end();
        }
        self.xml.end();
    }

    /// The activities of the element just started, and its end.
    fn counted_list(&mut self, attribute: &str, activities: &[(f64, ActivityId)]) {
        for &(value, activity) in activities {
            let name = self.labels.activity(activity);
            self.xml.start("activity").with("name", name).with(attribute, number(value)).end();
        }
        self.xml.end();
    }
}

fn scheduling(scheduling: Scheduling) -> &'static str {
    word(&WORDS, scheduling).expect("every scheduling has a word")
}

fn multiplicity(multiplicity: Multiplicity, scheduling: Scheduling) -> Option<String> {
    match multiplicity {
        Multiplicity::Infinite if scheduling == Scheduling::Delay => None,
        Multiplicity::Infinite => Some("@infinity".to_owned()),
        Multiplicity::Finite(1) => None,
        Multiplicity::Finite(number) => Some(number.to_string()),
    }
}
