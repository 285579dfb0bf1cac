//! Two models, or two sets of results, compared element by element: what appeared, what vanished, what changed.

use indexmap::IndexMap;
use serde_json::Value;

use crate::diagnostic::quantity::number;
use crate::lqn::results::Results;
use crate::lqn::terms::{arc, kind, multiplicity, scheduling};
use crate::lqn::{Activity, Body, Call, CallKind, Model, Work};

/// A value of an element.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A number, which may differ a little.
    Number(f64),
    /// A word, which may not.
    Word(String),
}

/// Elements by what they are and what they are called, such as `("entry", "find")`, each with its values by name.
pub type Elements = IndexMap<(String, String), IndexMap<String, Datum>>;

/// How far numbers may be apart and still count as the same: whichever allows more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// In parts of the larger of the two.
    pub relative: f64,
    /// In the number's unit.
    pub absolute: f64,
}

impl Tolerance {
    fn allows(self, left: f64, right: f64) -> bool {
        let apart = (left - right).abs();
        left == right || apart <= self.absolute || apart <= self.relative * left.abs().max(right.abs())
    }
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// What the element is, such as `entry`.
    pub kind: String,
    /// What it is called.
    pub name: String,
    /// Which of its values; `None` where the whole element came or went.
    pub value: Option<String>,
    /// What it was; `None` where it was not there.
    pub before: Option<Datum>,
    /// What it is; `None` where it is not there any more.
    pub after: Option<Datum>,
    /// Whether it appeared, vanished or changed.
    pub what: What,
}

/// How something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Only the second has it.
    Appeared,
    /// Only the first has it.
    Vanished,
    /// Both have it, with other values.
    Changed,
}

impl What {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Appeared => "appeared",
            Self::Vanished => "vanished",
            Self::Changed => "changed",
        }
    }
}

/// The elements of a model.
pub fn model(model: &Model) -> Elements {
    let mut all = Listing(Elements::new());
    for processor in &model.processors {
        let mut values = all.element("processor", &processor.name);
        values.word("scheduling", scheduling(processor.scheduling));
        values.word("servers", &multiplicity(processor.multiplicity));
        values.number("replicas", f64::from(processor.replicas));
        values.number("speed", processor.speed);
        values.number("quantum", processor.quantum.unwrap_or(0.0));
    }
    for task in &model.tasks {
        let mut values = all.element("task", &task.name);
        values.word("processor", &model.processors[task.processor.index()].name);
        values.word("scheduling", scheduling(task.scheduling));
        values.word("threads", &multiplicity(task.multiplicity));
        values.number("replicas", f64::from(task.replicas));
        if let Some(word) = task.dispatching.told() {
            values.word("dispatching", word);
        }
        values.number("priority", f64::from(task.priority));
        values.number("think time", task.think_time);
    }
    for entry in &model.entries {
        let mut values = all.element("entry", &entry.name);
        values.word("task", &model.tasks[entry.task.index()].name);
        values.number("arrivals", entry.open_arrival_rate.unwrap_or(0.0));
        match &entry.body {
            Body::Phases(phases) => {
                for (phase, work) in phases.iter().enumerate() {
                    values.work(&format!("phase {} ", phase + 1), work);
                }
            }
            Body::Activities(first) => values.word("first activity", &model.activities[first.index()].name),
        }
        if let Body::Phases(phases) = &entry.body {
            for (phase, work) in phases.iter().enumerate() {
                all.requests(model, &entry.name, phase + 1, work);
            }
        }
        for forwarding in &entry.forwarding {
            let name = format!("{} -> {}", entry.name, model.entries[forwarding.to.index()].name);
            all.element(kind(None::<CallKind>), &name).number("probability", forwarding.probability);
        }
    }
    for activity in &model.activities {
        let mut values = all.element("activity", &activity_name(model, activity));
        values.work("", &activity.work);
        let replies: Vec<&str> = activity.replies.iter().map(|entry| &*model.entries[entry.index()].name).collect();
        values.word("replies to", &replies.join(", "));
        all.requests(model, &activity.name, 1, &activity.work);
    }
    for task in &model.tasks {
        for precedence in &task.precedences {
            all.element("order", &format!("{}: {}", task.name, arc(model, precedence)));
        }
    }
    all.0
}

/// What an activity is called as an element.
pub(super) fn activity_name(model: &Model, activity: &Activity) -> String {
    format!("{}: {}", model.tasks[activity.task.index()].name, activity.name)
}

/// What calls from one place to another are called as an element.
pub(super) fn request_name(model: &Model, from: &str, phase: usize, call: &Call) -> String {
    let phase = if phase > 1 { format!(", phase {phase}") } else { String::new() };
    let to = &model.entries[call.to.index()].name;
    format!("{from} -> {to} ({}{phase})", kind(Some(call.kind)))
}

struct Listing(Elements);

struct Values<'v>(&'v mut IndexMap<String, Datum>);

impl Listing {
    fn element(&mut self, kind: &str, name: &str) -> Values<'_> {
        Values(self.0.entry((kind.to_owned(), name.to_owned())).or_default())
    }

    fn requests(&mut self, model: &Model, from: &str, phase: usize, work: &Work) {
        for call in &work.calls {
            let values = self.element("request", &request_name(model, from, phase, call)).0;
            // Calls to one entry from one place add up.
            match values.entry("mean number".to_owned()).or_insert(Datum::Number(0.0)) {
                Datum::Number(sum) => *sum += call.mean,
                Datum::Word(_) => {}
            }
        }
    }
}

impl Values<'_> {
    fn number(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), Datum::Number(value));
    }

    /// A figure that a solver found; nothing where it is infinite or no number.
    fn found(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.number(name, value);
        }
    }

    fn word(&mut self, name: &str, word: &str) {
        self.0.insert(name.to_owned(), Datum::Word(word.to_owned()));
    }

    fn work(&mut self, phase: &str, work: &Work) {
        self.number(&format!("{phase}demand"), work.demand);
        if work.think_time != 0.0 {
            self.number(&format!("{phase}delay"), work.think_time);
        }
        if let Some(cv2) = work.cv2 {
            self.number(&format!("{phase}variation"), cv2);
        }
        if let Some(cv2) = work.think_cv2 {
            self.number(&format!("{phase}variation of the delay"), cv2);
        }
    }
}

/// Sections of results that are about no element of the model: the version of the form, what a solver says of its own results, and
/// what is repeated there.
const APART: [&str; 3] = ["dyelog-results", "doubts", "outlook"];

/// The elements of results, as `dyelog solve --format json` writes them; `None` where the document is none.
pub fn results(document: &Value) -> Option<Elements> {
    let sections = document.as_object().filter(|document| document.contains_key("solver"))?;
    let mut all = Listing(Elements::new());
    for (section, value) in sections.iter().filter(|(section, _)| !APART.contains(&section.as_str())) {
        let Some(rows) = value.as_array() else {
            match section.as_str() {
                // Which solver found the results, and in how many steps, is no difference.
                "solver" | "iterations" | "method" | "exact" => {}
                "simulation" => percentiles(value, &mut all),
                _ => flatten(section, value, all.element("solution", "").0),
            }
            continue;
        };
        for row in rows {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
            let name = match row.get("name").and_then(Value::as_str) {
                Some(name) => name.to_owned(),
                None => format!("{} -> {} ({})", text("from"), text("to"), text("kind")),
            };
            let values = all.element(section, &name).0;
            for (key, value) in row.as_object().into_iter().flatten() {
                if !["name", "from", "to", "kind", "half_width"].contains(&key.as_str()) {
                    flatten(key, value, values);
                }
            }
        }
    }
    Some(all.0)
}

/// The elements of results: those that [`results`] finds in their JSON.
pub fn solved(model: &Model, results: &Results) -> Elements {
    let mut all = Listing(Elements::new());
    all.element("solution", "").word("converged", &results.convergence.converged.to_string());
    for (processor, result) in model.processors.iter().zip(&results.processors) {
        all.element("processors", &processor.name).found("utilization", result.utilization);
    }
    for (task, result) in model.tasks.iter().zip(&results.tasks) {
        let mut values = all.element("tasks", &task.name);
        values.found("throughput", result.throughput);
        values.found("utilization", result.utilization);
        values.found("processor_utilization", result.processor_utilization);
    }
    for (entry, result) in model.entries.iter().zip(&results.entries) {
        let mut values = all.element("entries", &entry.name);
        values.word("task", &model.tasks[entry.task.index()].name);
        values.found("throughput", result.throughput);
        for (phase, time) in result.service.iter().enumerate() {
            values.found(&format!("service {}", phase + 1), *time);
        }
        values.found("utilization", result.utilization);
        values.found("processor_utilization", result.processor_utilization);
        if let Some(response) = result.open_response {
            values.found("open_response", response);
        }
    }
    for call in &results.calls {
        let (from, to) = (model.caller(call.from), &model.entries[call.to.index()].name);
        all.element("calls", &format!("{from} -> {to} ({})", kind(call.kind))).found("waiting", call.waiting);
    }
    let simulated = results.simulated.iter().filter(|simulated| simulated.replications > 0);
    for percentiles in simulated.flat_map(|simulated| &simulated.percentiles) {
        let mut values = all.element(RESPONSES, &model.entries[percentiles.entry.index()].name);
        for found in &percentiles.values {
            values.found(&percentile_name(found.part), found.time);
        }
    }
    all.0
}

/// Percentiles of response times, by entry and part.
fn percentiles(simulation: &Value, all: &mut Listing) {
    let rows = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    for response in rows(simulation, "responses") {
        let entry = response.get("entry").and_then(Value::as_str).unwrap_or_default();
        let values = all.element(RESPONSES, entry).0;
        for percentile in rows(&response, "percentiles") {
            if let (Some(part), Some(time)) =
                (percentile.get("part").and_then(Value::as_f64), percentile.get("time").and_then(Value::as_f64))
            {
                values.insert(percentile_name(part), Datum::Number(time));
            }
        }
    }
}

/// What a percentile is called.
fn percentile_name(part: f64) -> String {
    format!("{} %", number(part * 100.0))
}

/// A value under a name; the parts of lists are numbered, those of objects named. Not deeper than results are.
fn flatten(name: &str, value: &Value, into: &mut IndexMap<String, Datum>) {
    let mut open = vec![(name.to_owned(), value)];
    while let Some((name, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Array(parts) => {
                open.extend(parts.iter().enumerate().rev().map(|(at, part)| (format!("{name} {}", at + 1), part)));
            }
            Value::Object(parts) => {
                open.extend(parts.iter().rev().map(|(key, part)| (format!("{name} {key}"), part)));
            }
            Value::Number(number) => drop(into.insert(name, Datum::Number(number.as_f64().unwrap_or(f64::NAN)))),
            Value::Bool(_) | Value::String(_) => {
                let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                into.insert(name, Datum::Word(word));
            }
        }
    }
}

/// Elements that only a simulation finds.
const RESPONSES: &str = "responses";

/// What differs between two sets of elements: what vanished and changed in the order of the first, then what appeared in that
/// of the second.
pub fn compare(before: &Elements, after: &Elements, tolerance: Tolerance) -> Vec<Difference> {
    let mut found = Vec::new();
    let whole = |(kind, name): &(String, String), what| Difference {
        kind: kind.clone(),
        name: name.clone(),
        value: None,
        before: None,
        after: None,
        what,
    };
    let simulated = |elements: &Elements| elements.keys().any(|(kind, _)| kind == RESPONSES);
    let both = simulated(before) == simulated(after);
    let comparable = |key: &(String, String)| both || key.0 != RESPONSES;
    for (key, old) in before.iter().filter(|(key, _)| comparable(key)) {
        let Some(new) = after.get(key) else {
            found.push(whole(key, What::Vanished));
            continue;
        };
        let added = new.keys().filter(|value| !old.contains_key(*value));
        for value in old.keys().chain(added) {
            let (left, right) = (old.get(value), new.get(value));
            let same = match (left, right) {
                (Some(Datum::Number(left)), Some(Datum::Number(right))) => tolerance.allows(*left, *right),
                _ => left == right,
            };
            if !same {
                let what = match (left, right) {
                    (None, _) => What::Appeared,
                    (_, None) => What::Vanished,
                    _ => What::Changed,
                };
                let (before, after) = (left.cloned(), right.cloned());
                found.push(Difference { value: Some(value.clone()), before, after, ..whole(key, what) });
            }
        }
    }
    let new = after.keys().filter(|key| !before.contains_key(*key) && comparable(key));
    found.extend(new.map(|key| whole(key, What::Appeared)));
    found
}
