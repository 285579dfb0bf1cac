//! Writes the text language, laid out as the tool suite does.

mod flow;

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::labels::{Labels, number};
use crate::scheduling::{PROCESSOR_LETTERS, ROLE_LETTERS, TASK_LETTERS, word};
use crate::{
    Body, Call, CallKind, CallOrder, Entry, EntryId, Histogram, Model, Multiplicity, Parameters, Processor, Scheduling,
    Task, Work,
};

/// The model as a text, in canonical form (see [`Model::into_canonical`]).
///
/// Names that are no plain words stand in quotation marks; those that cannot stand there are mapped, the same way as in
/// the XML language. The comment loses line breaks and quotation marks. Where a priority is negative, all are raised by
/// the same amount.
pub fn write(model: &Model) -> String {
    let model = model.clone().into_canonical();
    let labels = Labels::new(&model);
    let least = |priorities: &mut dyn Iterator<Item = i32>| priorities.min().unwrap_or(0).min(0);
    let mut writer = Writer {
        model: &model,
        labels: &labels,
        text: String::new(),
        task_raise: least(&mut model.tasks.iter().map(|task| task.priority)).unsigned_abs(),
        entry_raise: least(&mut model.entries.iter().filter_map(|entry| entry.priority)).unsigned_abs(),
    };
    writer.general();
    writer.processors();
    writer.groups();
    writer.tasks();
    writer.entries();
    writer.activities();
    writer.text
}

struct Writer<'a> {
    model: &'a Model,
    labels: &'a Labels<'a>,
    text: String,
    /// What every task priority is raised by.
    task_raise: u32,
    /// What every entry priority is raised by.
    entry_raise: u32,
}

/// A name as a word of the language: quoted where it is no plain word of two letters or more (one letter may be a key).
fn quoted(name: &str) -> Cow<'_, str> {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if starts && plain && name.len() > 1 { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{name}\"")) }
}

/// A number that shows its point, which tells an under-relaxation coefficient from a print interval.
fn pointed(value: f64) -> String {
    let text = number(value);
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

impl Writer<'_> {
    /// Adds a line; writing to a string cannot fail.
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("a string takes all that is written");
        self.text.push('\n');
    }

    fn general(&mut self) {
        let Parameters { convergence, iteration_limit, print_interval, underrelaxation, pragmas } =
            &self.model.parameters;
        for (name, value) in pragmas {
            let (name, value) = (one_line(name), one_line(value));
            self.line(format_args!("#pragma {}={}", name.trim(), value.trim()));
        }
        let comment = one_line(&self.model.comment).replace('"', "'");
        let mut line = format!("G \"{comment}\" {} {iteration_limit}", number(*convergence));
        if let Some(interval) = print_interval {
            write!(line, " {interval}").expect("a string takes all that is written");
        }
        if let Some(coefficient) = underrelaxation {
            write!(line, " {}", pointed(*coefficient)).expect("a string takes all that is written");
        }
        self.line(format_args!("{line} -1\n"));
    }

    fn processors(&mut self) {
        self.line(format_args!("P {}", self.model.processors.len()));
        let model = self.model;
        for (processor, index) in model.processors.iter().zip(0usize..) {
            let name = quoted(self.labels.processor(index.into()));
            self.line(format_args!("  p {name} {}", processor_options(processor)));
        }
        self.line(format_args!("-1\n"));
    }

    fn groups(&mut self) {
        let model = self.model;
        if model.groups.is_empty() {
            return;
        }
        self.line(format_args!("U {}", model.groups.len()));
        for (group, index) in model.groups.iter().zip(0usize..) {
            let name = quoted(self.labels.group(index.into()));
            let processor = quoted(self.labels.processor(group.processor));
            let cap = if group.cap { " c" } else { "" };
            self.line(format_args!("  g {name} {}{cap} {processor}", number(group.share)));
        }
        self.line(format_args!("-1\n"));
    }

    fn tasks(&mut self) {
        let model = self.model;
        self.line(format_args!("T {}", model.tasks.len()));
        for (task, index) in model.tasks.iter().zip(0usize..) {
            let name = quoted(self.labels.task(index.into()));
            let options = self.task_options(task);
            self.line(format_args!("  t {name} {options}"));
        }
        for (task, index) in model.tasks.iter().zip(0usize..) {
            let name = quoted(self.labels.task(index.into()));
            for (from, number) in &task.fan_in {
                self.line(format_args!("  I {} {name} {number}", quoted(self.labels.task(*from))));
            }
            for (to, number) in &task.fan_out {
                self.line(format_args!("  O {name} {} {number}", quoted(self.labels.task(*to))));
            }
        }
        self.line(format_args!("-1\n"));
    }

    fn task_options(&self, task: &Task) -> String {
        let letter = if task.scheduling == Scheduling::Fcfs { "n" } else { letter_of(&TASK_LETTERS, task.scheduling) };
        let mut line = letter.to_owned();
        for &entry in &task.entries {
            line += &format!(" {}", quoted(self.labels.entry(entry)));
        }
        line += &format!(" -1 {}", quoted(self.labels.processor(task.processor)));
        let priority = raised(task.priority, self.task_raise);
        if priority != 0 {
            line += &format!(" {priority}");
        }
        if task.think_time != 0.0 {
            line += &format!(" z {}", number(task.think_time));
        }
        if let Some(length) = task.queue_length {
            line += &format!(" q {length}");
        }
        line += &multiplicity(task.multiplicity, task.scheduling);
        if task.replicas != 1 {
            line += &format!(" r {}", task.replicas);
        }
        if let Some(group) = task.group {
            line += &format!(" g {}", quoted(self.labels.group(group)));
        }
        line
    }

    fn entries(&mut self) {
        let model = self.model;
        self.line(format_args!("E {}", model.entries.len()));
        for (task, index) in model.tasks.iter().zip(0usize..) {
            self.line(format_args!("# ---------- {} ----------", self.labels.task(index.into())));
            for &id in &task.entries {
                if let Some(entry) = model.entries.get(id.index()) {
                    self.entry(entry, id);
                }
            }
        }
        self.line(format_args!("-1"));
    }

    fn entry(&mut self, entry: &Entry, id: EntryId) {
        let labels = self.labels;
        let name = quoted(labels.entry(id));
        if let Some(letter) = entry.semaphore.and_then(|role| word(&ROLE_LETTERS, role)) {
            self.line(format_args!("  {letter} {name}"));
        }
        if let Some(priority) = entry.priority {
            self.line(format_args!("  p {name} {}", raised(priority, self.entry_raise)));
        }
        if let Some(rate) = entry.open_arrival_rate {
            self.line(format_args!("  a {name} {}", number(rate)));
        }
        match &entry.body {
            Body::Activities(first) => {
                self.line(format_args!("  A {name} {}", quoted(labels.activity(*first))));
            }
            Body::Phases(phases) => self.phases(&name, phases),
        }
        for (phase, Histogram { from, to, bins }) in &entry.histograms {
            if *bins == 0 {
                let before = "0 ".repeat(usize::from(*phase).saturating_sub(1));
                self.line(format_args!("  M {name} {before}{} -1", number(*to)));
            } else {
                self.line(format_args!("  H {name} {phase} {} : {} {bins}", number(*from), number(*to)));
            }
        }
        for forwarding in &entry.forwarding {
            let to = quoted(labels.entry(forwarding.to));
            self.line(format_args!("  F {name} {to} {} -1", number(forwarding.probability)));
        }
    }

    fn phases(&mut self, name: &str, phases: &[Work]) {
        self.list('s', name, phases, |_| true, |work| number(work.demand));
        self.list('c', name, phases, |work| work.cv2.is_some(), |work| number(work.cv2.unwrap_or(1.0)));
        self.list('Z', name, phases, |work| work.think_time != 0.0, |work| number(work.think_time));
        let deterministic = |work: &Work| work.call_order == CallOrder::Deterministic;
        self.list('f', name, phases, deterministic, |work| u8::from(deterministic(work)).to_string());
        for (to, kind, means) in rows(phases) {
            let letter = call_letter(kind);
            let means = means.iter().map(|&mean| number(mean)).collect::<Vec<_>>().join(" ");
            self.line(format_args!("  {letter} {name} {} {means} -1", quoted(self.labels.entry(to))));
        }
    }

    /// A record of one number a phase, up to the last phase that has something to say.
    fn list(
        &mut self,
        letter: char,
        name: &str,
        phases: &[Work],
        says: impl Fn(&Work) -> bool,
        value: impl Fn(&Work) -> String,
    ) {
        let Some(last) = phases.iter().rposition(says) else { return };
        let values = phases[..=last].iter().map(value).collect::<Vec<_>>().join(" ");
        self.line(format_args!("  {letter} {name} {values} -1"));
    }
}

/// The calls of all phases, one row an entry called, in the order in which phases first make them.
fn rows(phases: &[Work]) -> Vec<(EntryId, CallKind, Vec<f64>)> {
    let mut rows: indexmap::IndexMap<(EntryId, CallKind), Vec<f64>, rustc_hash::FxBuildHasher> =
        indexmap::IndexMap::default();
    for (phase, work) in phases.iter().enumerate() {
        for &Call { to, kind, mean } in &work.calls {
            let row = rows.entry((to, kind)).or_default();
            row.resize(phase, 0.0);
            row.push(mean);
        }
    }
    rows.into_iter().map(|((to, kind), means)| (to, kind, means)).collect()
}

fn call_letter(kind: CallKind) -> char {
    match kind {
        CallKind::Synchronous => 'y',
        CallKind::Asynchronous => 'z',
    }
}

/// The letter of a scheduling, or that of first come, first served where the language has none here.
fn letter_of(letters: &[(&'static str, Scheduling)], scheduling: Scheduling) -> &'static str {
    word(letters, scheduling).unwrap_or("f")
}

fn processor_options(processor: &Processor) -> String {
    let mut line = letter_of(&PROCESSOR_LETTERS, processor.scheduling).to_owned();
    if let Some(quantum) = processor.quantum {
        line += &format!(" {}", number(quantum));
    }
    line += &multiplicity(processor.multiplicity, processor.scheduling);
    if processor.replicas != 1 {
        line += &format!(" r {}", processor.replicas);
    }
    if processor.speed != 1.0 {
        line += &format!(" R {}", number(processor.speed));
    }
    line
}

fn multiplicity(multiplicity: Multiplicity, scheduling: Scheduling) -> String {
    match multiplicity {
        Multiplicity::Infinite if scheduling == Scheduling::Delay => String::new(),
        Multiplicity::Infinite => " i".to_owned(),
        Multiplicity::Finite(1) => String::new(),
        Multiplicity::Finite(number) => format!(" m {number}"),
    }
}

/// A priority, which this language has from 0 only.
fn raised(priority: i32, by: u32) -> i32 {
    priority.checked_add_unsigned(by).unwrap_or(i32::MAX)
}

/// The text without line breaks and other control characters.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
