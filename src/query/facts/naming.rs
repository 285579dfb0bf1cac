//! What facts are about, by the names that people use, and where the trace tells of it.

use std::sync::Arc;

use crate::datalog::base::Type;
use crate::datalog::value::Value;
use crate::diagnostic::Place;
use crate::query::facts::{OperationFacts, TraceFacts};
use crate::query::schema::{ENTRY, EVENT, MESSAGE, OPERATION, SPAN};
use crate::trace::{NodeId, NodeName, SpanTree};

impl<'a> TraceFacts<'a> {
    /// What a number of a column of that type is called; `None` where it is a number.
    pub fn label(&self, kind: Type, value: Value) -> Option<String> {
        let number = u32::try_from(value.as_integer()?).ok()?;
        Some(match kind {
            Type::Node => {
                let (part, node) = self.part_of_node(number)?;
                let event = part.operation.toeg.event(node);
                format!("{},{}", event.thread, event.index)
            }
            SPAN => self.span(number)?.to_string(),
            EVENT => {
                let (span, place) = *self.event_places().get(number as usize)?;
                format!("{}/{place}", self.span(span)?)
            }
            OPERATION => self.parts.get(number as usize)?.operation.toeg.operation().run.to_string(),
            ENTRY if self.exchanges.is_some() => format!("E{number}"),
            ENTRY => {
                let firsts = self.first_entries();
                let place = firsts.partition_point(|first| *first <= number);
                format!("E{}", number - firsts[place.checked_sub(1)?])
            }
            _ => return None,
        })
    }

    /// Where the trace tells of what a number of a column of that type stands for; `None` where it stands for nothing that has a place.
    /// Formats of spans tell no lines: the place is the identifier of the span in its file.
    pub fn place(&self, kind: Type, value: Value) -> Option<Place> {
        let number = u32::try_from(value.as_integer()?).ok()?;
        match kind {
            Type::Node => {
                let (part, node) = self.part_of_node(number)?;
                let operation = part.operation.toeg.operation();
                Some(operation.place(part.operation.toeg.event(node)))
            }
            SPAN => self.place_of_span(number),
            EVENT => self.place_of_span(self.event_places().get(number as usize)?.0),
            OPERATION => {
                let file = Arc::clone(&self.parts.get(number as usize)?.operation.toeg.operation().file);
                Some(Place::File { file })
            }
            // An entry has the number of the message that opens it.
            MESSAGE | ENTRY => {
                let exchanges = self.exchanges?;
                let message = exchanges.messages.get(number.checked_sub(1)? as usize)?;
                let file = Arc::clone(exchanges.files.get(message.file as usize)?);
                Some(Place::Line { file, line: message.line, column: 0 })
            }
            _ => None,
        }
    }

    /// The numbers of that type that a text names: a node as [`NodeName`] reads it, a span by its identifier, an event as
    /// `SPAN/NUMBER`, an operation by its run, an entry as `E3`, a message as `FILE:LINE`. `None` where texts name nothing of that type.
    pub fn named(&self, kind: Type, text: &str) -> Option<Vec<Value>> {
        Some(match kind {
            Type::Node => {
                let name = NodeName::parse(text);
                let nodes = self.parts.iter().flat_map(|part| {
                    let found = name.find(&part.operation.toeg, self.names);
                    found.into_iter().map(|node| Value::from(part.first_node + node))
                });
                nodes.collect()
            }
            MESSAGE => {
                let Some((file, line)) = text.rsplit_once(':') else { return Some(Vec::new()) };
                let (Some(exchanges), Ok(line)) = (self.exchanges, line.parse::<u32>()) else {
                    return Some(Vec::new());
                };
                let is_there =
                    |file_number: u32| exchanges.files.get(file_number as usize).is_some_and(|name| **name == *file);
                let messages = (1_u32..).zip(&exchanges.messages);
                let there = messages.filter(|(_, message)| message.line == line && is_there(message.file));
                there.map(|(number, _)| Value::from(number)).collect()
            }
            SPAN | EVENT | OPERATION | ENTRY => {
                let numbers = (0..self.count(kind)).map(Value::from);
                numbers.filter(|value| self.label(kind, *value).as_deref() == Some(text)).collect()
            }
            _ => return None,
        })
    }

    /// The names of all that there is of a type; none where it is named by numbers.
    pub fn labels(&self, kind: Type) -> impl Iterator<Item = String> {
        let count = if matches!(kind, SPAN | EVENT | OPERATION | ENTRY) { self.count(kind) } else { 0 };
        (0..count).filter_map(move |number| self.label(kind, Value::from(number)))
    }

    /// Numbers of a type are below this.
    fn count(&self, kind: Type) -> u32 {
        match kind {
            SPAN => self.parts.last().map_or(0, OperationFacts::end_of_spans),
            EVENT => self.event_places().len() as u32,
            OPERATION => self.parts.len() as u32,
            ENTRY => match self.exchanges {
                Some(exchanges) => exchanges.len() as u32 + 1,
                None => {
                    let last = self.parts.last().map_or(0, |part| self.matched(part).entries.len() as u32);
                    self.first_entries().last().copied().unwrap_or(0) + last
                }
            },
            _ => 0,
        }
    }

    fn part_of_node(&self, number: u32) -> Option<(&OperationFacts<'a>, NodeId)> {
        let part = self.part(|part| part.first_node + part.operation.toeg.len() as u32, number)?;
        Some((part, number - part.first_node))
    }

    /// The part that a number lies in, by where the numbers of each part end.
    fn part(&self, end: impl Fn(&OperationFacts<'a>) -> u32, number: u32) -> Option<&OperationFacts<'a>> {
        self.parts.get(self.parts.partition_point(|part| end(part) <= number))
    }

    fn part_of_span(&self, number: u32) -> Option<(&OperationFacts<'a>, &'a SpanTree, u32)> {
        let part = self.part(OperationFacts::end_of_spans, number)?;
        Some((part, part.operation.spans.as_ref()?, number.checked_sub(part.first_span)?))
    }

    fn span(&self, number: u32) -> Option<&Arc<str>> {
        let (_, tree, span) = self.part_of_span(number)?;
        Some(&tree.spans.get(span as usize)?.id)
    }

    /// No place tells of what stands in for a missing span.
    fn place_of_span(&self, number: u32) -> Option<Place> {
        let (part, tree, span) = self.part_of_span(number)?;
        let item = tree.spans.get(span as usize)?.id.to_string();
        let file = Arc::clone(&part.operation.toeg.operation().file);
        (!tree.is_restored(span)).then_some(Place::Item { file, item })
    }

    /// For each event, its span and its place among the events of that, from 1.
    fn event_places(&self) -> &[(u32, u32)] {
        self.events.get_or_init(|| {
            let mut places = Vec::new();
            for (part, tree) in self.trees() {
                for span in 0..tree.spans.len() as u32 {
                    let count = tree.events(span).len() as u32;
                    places.extend((1..=count).map(|place| (part.first_span + span, place)));
                }
            }
            places
        })
    }

    fn first_entries(&self) -> &[u32] {
        self.first_entries.get_or_init(|| self.entries_before())
    }
}
