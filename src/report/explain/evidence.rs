//! The evidence for an element of the model: counts of all of it, and examples.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lqn::submodel::{Moments, Position, RequestKind};
use crate::report::explain::Described;
use crate::report::explain::view::traced_ms;
use crate::report::look::Look;
use crate::report::table::Table;
use crate::tlc::explain::Study;
use crate::tlc::explain::evidence::Piece;
use crate::trace::NodeId;
use crate::trace::toeg::NONE;

/// What pieces of evidence were seen: counted, and the first ones kept.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    keep: usize,
    /// How many pieces.
    pub count: u64,
    /// In how many operations.
    pub operations: u64,
    last: Option<u64>,
    /// By the template whose match they are part of; the empty name for what the algorithm itself makes.
    pub templates: BTreeMap<String, u64>,
    /// Seconds of CPU by phase.
    pub cpu: BTreeMap<u8, Moments>,
    /// Exclusive seconds by phase.
    pub exclusive: BTreeMap<u8, Moments>,
    /// Activities by phase.
    pub activities: BTreeMap<u8, u64>,
    examples: Vec<Example>,
}

#[derive(Clone, Debug)]
struct Example {
    cells: Vec<String>,
    json: Value,
}

impl Seen {
    /// Nothing yet; so many examples are kept.
    pub fn new(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Takes in a piece; `operation` is the number of the one that it is of.
    pub fn take(&mut self, study: &Study<'_>, operation: u64, piece: Piece) {
        if self.last != Some(operation) {
            self.last = Some(operation);
            self.operations += 1;
        }
        self.count += 1;
        match piece {
            Piece::Invocation { entry, accepted_at, opened_by } => {
                let template = self.template(study, opened_by);
                let words = || {
                    let cells = vec![format!("E{entry}"), label(study, accepted_at), template.clone()];
                    (cells, json!({ "entry": format!("E{entry}"), "accepted_at": node(study, accepted_at) }))
                };
                self.example(study, accepted_at, opened_by, words);
            }
            Piece::Request { at, accepted_at, kind, made_by, position } => {
                let template = self.template(study, made_by);
                let words = || {
                    let cells = vec![label(study, at), label(study, accepted_at), template.clone()];
                    let json = json!({
                        "at": node(study, at),
                        "accepted_at": node(study, accepted_at),
                        "kind": kind_word(kind),
                        "phase": position.phase,
                    });
                    (cells, json)
                };
                self.example(study, if at == NONE { accepted_at } else { at }, made_by, words);
            }
            Piece::Cpu { node, position: Position { phase, .. }, seconds } => {
                self.cpu.entry(phase).or_default().add(seconds);
                self.work(study, node, phase, "cpu", Some(seconds));
            }
            Piece::Exclusive { node, position: Position { phase, .. }, seconds } => {
                self.exclusive.entry(phase).or_default().add(seconds);
                self.work(study, node, phase, "exclusive", Some(seconds));
            }
            Piece::Network { node, position: Position { phase, .. }, seconds } => {
                self.work(study, node, phase, "on the way", Some(seconds));
            }
            Piece::Pause { node, position: Position { phase, .. }, seconds } => {
                self.work(study, node, phase, "delay", Some(seconds));
            }
            Piece::Activity { node, position: Position { phase, .. } } => {
                *self.activities.entry(phase).or_default() += 1;
                self.work(study, node, phase, "activity", None);
            }
        }
    }

    fn template(&mut self, study: &Study<'_>, number: Option<usize>) -> String {
        let name = number.map(|number| study.plan(&study.matches[number]).name.to_string()).unwrap_or_default();
        *self.templates.entry(name.clone()).or_default() += 1;
        name
    }

    fn work(&mut self, study: &Study<'_>, at: NodeId, phase: u8, what: &str, value: Option<f64>) {
        let number = study.consumer(at);
        let words = || {
            let names = Described::new(study, at).names();
            let time = value.map(traced_ms).unwrap_or_default();
            let cells = vec![label(study, at), phase.to_string(), what.to_owned(), time, names];
            (cells, json!({ "node": node(study, at), "phase": phase, "what": what, "seconds": value }))
        };
        self.example(study, at, number, words);
    }

    fn example(
        &mut self,
        study: &Study<'_>,
        at: NodeId,
        made_by: Option<usize>,
        words: impl FnOnce() -> (Vec<String>, Value),
    ) {
        if self.examples.len() >= self.keep {
            return;
        }
        let (mut cells, mut json) = words();
        let shown = Described::new(study, at);
        cells.extend([study.run().to_string(), shown.span().unwrap_or_default(), shown.place()]);
        json["match"] = match made_by {
            Some(number) => json!({
                "number": number + 1,
                "template": &*study.plan(&study.matches[number]).name,
                "glue": Described::new(study, study.matches[number].glue).stamp(),
            }),
            None => Value::Null,
        };
        self.examples.push(Example { cells, json });
    }

    /// A table of the examples, under these headings for what they are about.
    pub(super) fn table(&self, headings: &[&str], look: Look) -> String {
        if self.examples.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&[headings, &["RUN", "SPAN", "WHERE"]].concat());
        for example in &self.examples {
            table.row(example.cells.clone());
        }
        let mut text = table.render(look);
        let hidden = self.count - self.examples.len() as u64;
        if hidden > 0 {
            text.push_str(&format!("and {hidden} more; `--all` shows them\n"));
        }
        text
    }

    /// By what: `by basic_rpc (12), by asynchronous (3)`.
    pub(super) fn templates_words(&self) -> String {
        let words = |(name, count): (&String, &u64)| match name.as_str() {
            "" => format!("as the first of the operation ({count})"),
            name => format!("by {name} ({count})"),
        };
        self.templates.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn json(&self) -> Value {
        let templates = self.templates.iter().map(|(name, count)| {
            let name = (!name.is_empty()).then_some(name.as_str());
            json!({ "template": name, "count": count })
        });
        json!({
            "count": self.count,
            "operations": self.operations,
            "templates": templates.collect::<Value>(),
            "examples": self.examples.iter().map(|example| example.json.clone()).collect::<Value>(),
        })
    }
}

/// How requests are made, in the words of the machine forms.
pub(super) fn kind_word(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Synchronous => "sync",
        RequestKind::Asynchronous => "async",
        RequestKind::Forward => "forward",
    }
}

fn label(study: &Study<'_>, node: NodeId) -> String {
    if node == NONE { "the customer".to_owned() } else { Described::new(study, node).label() }
}

fn node(study: &Study<'_>, node: NodeId) -> Value {
    if node == NONE { Value::Null } else { Described::new(study, node).json() }
}
