//! How nodes are shown: as the trace names them, with their place, and in the words of spans where they come from spans.

use serde_json::{Value, json};

use crate::diagnostic::Place;
use crate::tlc::driver::UNOWNED;
use crate::tlc::explain::Study;
use crate::tlc::plan::Slot;
use crate::trace::named::node_stamp;
use crate::trace::{Kind, NodeId};

/// A node of a study as it is shown.
#[derive(Clone, Copy)]
pub(super) struct Described<'s, 'a> {
    pub study: &'s Study<'a>,
    pub node: NodeId,
}

impl<'s, 'a> Described<'s, 'a> {
    pub fn new(study: &'s Study<'a>, node: NodeId) -> Self {
        Self { study, node }
    }

    fn event(self) -> &'s crate::trace::Event {
        self.study.toeg.event(self.node)
    }

    /// `scenario,thread,counter`
    pub fn stamp(self) -> String {
        node_stamp(self.study.toeg, &self.study.names.names, self.node)
    }

    /// The kind, with the thread of a fork or join.
    pub fn kind(self) -> String {
        match self.event().kind {
            Kind::Fork(thread) => format!("Fk({thread})"),
            Kind::Join(thread) => format!("Jn({thread})"),
            kind => kind.label().to_owned(),
        }
    }

    pub fn task(self) -> String {
        self.study.names.task_label(self.event().task)
    }

    /// The whole label: `rpc,1,2,Ac | client,2`.
    pub fn label(self) -> String {
        format!("{},{} | {},{}", self.stamp(), self.kind(), self.task(), self.event().counter)
    }

    /// Where it was read.
    pub fn place(self) -> String {
        place_words(&self.study.toeg.operation().place(self.event()))
    }

    /// The span that it was read from: its name, service and kind.
    pub fn span(self) -> Option<String> {
        let span = self.study.toeg.operation().span_of(self.event())?;
        let text = |name| self.study.names.names.text(name);
        Some(format!("{} of {} ({})", text(span.name), text(span.service), span.kind.label()))
    }

    /// Seconds from the beginning of the operation.
    pub fn time(self) -> String {
        traced_ms(self.event().time)
    }

    /// Names of the activity and of the service that is accepted here.
    pub fn names(self) -> String {
        let text = |name| self.study.names.names.text(name);
        let event = self.event();
        let activity = event.activity.is_some().then(|| text(event.activity).to_owned());
        let service = event.service.is_some().then(|| format!("op {}", text(event.service)));
        activity.into_iter().chain(service).collect::<Vec<_>>().join(", ")
    }

    pub fn json(self) -> Value {
        let event = self.event();
        let text = |name: crate::names::Name| name.is_some().then(|| self.study.names.names.text(name));
        let number = |value: f64| value.is_finite().then_some(value);
        let operation = self.study.toeg.operation();
        let owner = self.study.outcome.owner[self.node as usize];
        json!({
            "scenario": self.study.scenario(),
            "run": &**self.study.run(),
            "thread": event.thread,
            "node": event.index,
            "kind": self.kind(),
            "task": self.task(),
            "counter": event.counter,
            "time": number(event.time),
            "cpu": number(event.cpu),
            "pause": number(event.pause),
            "name": text(event.activity),
            "op": text(event.service),
            "entry": (owner < UNOWNED).then(|| format!("E{owner}")),
            "phase": (owner < UNOWNED).then(|| self.study.outcome.phase(self.node)),
            "place": place_json(&operation.place(event)),
            "span": operation.span_of(event).map(|span| json!({
                "id": &*span.id,
                "service": text(span.service),
                "name": text(span.name),
                "kind": span.kind.label(),
            })),
        })
    }
}

/// A time given in seconds, as milliseconds with the digits that were traced; nothing where there is none.
pub(super) fn traced_ms(seconds: f64) -> String {
    if !seconds.is_finite() {
        return String::new();
    }
    // Nanoseconds are the finest that clocks tell.
    let text = format!("{:.6}", seconds * 1e3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A place in one line: `traces/rpc.angio:7`, `shop.jsonl: 7f3a91c2d0e4b856`.
pub fn place_words(place: &Place) -> String {
    match place {
        Place::Nowhere => String::new(),
        Place::File { file } | Place::Range { file, .. } => file.to_string(),
        Place::Line { file, line, .. } => format!("{file}:{line}"),
        Place::Item { file, item } => format!("{file}: {item}"),
    }
}

/// A place for programs.
pub(super) fn place_json(place: &Place) -> Value {
    match place {
        Place::Nowhere => Value::Null,
        Place::File { file } | Place::Range { file, .. } => json!({ "file": &**file }),
        Place::Line { file, line, .. } => json!({ "file": &**file, "line": line }),
        Place::Item { file, item } => json!({ "file": &**file, "item": item }),
    }
}

/// A match by its number: `match 3, basic_rpc at rpc,1,2`.
pub(super) fn match_words(study: &Study<'_>, number: usize) -> String {
    let made = &study.matches[number];
    format!("{} at {}", study.plan(made).name, Described::new(study, made.glue).stamp())
}

/// The role of a node in a match: the template's name for it.
pub(super) fn role_in(study: &Study<'_>, number: usize, node: NodeId) -> String {
    let made = &study.matches[number];
    let plan = study.plan(made);
    if let Some(place) = made.rounds.iter().position(|other| *other == node)
        && let Some((sequence, place)) = plan.place_of(place, &made.sequences)
        && let Some(repetition) = plan.repetitions.get(sequence)
    {
        let size = repetition.nodes.len().max(1);
        return format!("{}[{}]", slot_name(plan, repetition.nodes[place % size]), place / size + 1);
    }
    let consumed = plan.effects.consumed.iter().map(|consumed| consumed.slot);
    let slot = consumed.chain([0]).find(|slot| made.slot(*slot) == node).unwrap_or(0);
    slot_name(plan, slot).to_owned()
}

pub(super) fn slot_name(plan: &crate::tlc::plan::TemplatePlan, slot: Slot) -> &str {
    plan.slot_names.get(slot as usize).map_or("?", |name| name)
}
