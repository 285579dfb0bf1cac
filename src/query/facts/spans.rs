//! Facts about spans: what was recorded of each, and what follows from where they lie and when they ran.

use crate::datalog::value::Value;
use crate::names::Name;
use crate::query::facts::{SECOND, TraceFacts};
use crate::query::schema::Own;
use crate::query::table::Table;
use crate::query::tree::Tree;
use crate::trace::recorded::SpanKind;
use crate::trace::retained::{Attribute, Data};

impl TraceFacts<'_> {
    pub(super) fn fill_spans(&self, own: Own, table: &mut Table) {
        for (part, tree) in self.trees() {
            for (place, span) in (0_u32..).zip(&tree.spans) {
                let restored = tree.is_restored(place);
                if restored && !matches!(own, Own::Parent | Own::Root | Own::Restored | Own::SpanId) {
                    continue;
                }
                let number = Value::from(part.first_span + place);
                let named = |name: Name| name.is_some().then(|| Value::symbol(name));
                let second = match own {
                    Own::Span => {
                        table.push(&[number, span.service.into(), span.name.into()]);
                        continue;
                    }
                    Own::Restored => {
                        if restored {
                            table.push(&[number]);
                        }
                        continue;
                    }
                    Own::Orphan => {
                        if span.orphan {
                            table.push(&[number]);
                        }
                        continue;
                    }
                    Own::Root => {
                        if span.parent.is_none() {
                            table.push(&[number]);
                        }
                        continue;
                    }
                    Own::Attr | Own::Resource => {
                        let attributes = if own == Own::Attr { tree.attributes(place) } else { tree.resource(place) };
                        self.push_attributes(number, attributes, table);
                        continue;
                    }
                    Own::Link => {
                        for (trace, id) in &span.links {
                            table.push(&[number, self.intern(trace), self.intern(id)]);
                        }
                        continue;
                    }
                    Own::SpanId => Some(self.intern(&span.id)),
                    Own::Parent => span.parent.map(|parent| Value::from(part.first_span + parent)),
                    Own::SpanKind => Some(self.intern(kind_label(span.kind))),
                    Own::Start => Value::integer(span.start),
                    Own::End => Value::integer(span.end),
                    Own::RecordedStart => Value::integer(span.start.saturating_sub(span.shift)),
                    Own::RecordedEnd => Value::integer(span.end.saturating_sub(span.shift)),
                    Own::Duration => Value::integer(span.end - span.start),
                    Own::Status => Some(self.intern(tree.status(place).label())),
                    Own::Host => named(span.host),
                    Own::Instance => named(span.instance),
                    Own::Peer => named(span.peer),
                    Own::SpanCpu => Value::float((span.cpu * SECOND).round()),
                    _ => None,
                };
                if let Some(second) = second {
                    table.push(&[number, second]);
                }
            }
        }
    }

    fn push_attributes(&self, of: Value, attributes: &[Attribute], table: &mut Table) {
        for attribute in attributes {
            let value = match attribute.value {
                Data::Text(text) => Some(Value::symbol(text)),
                Data::Whole(number) => Some(Value::integer(number).unwrap_or_else(|| self.intern(&number.to_string()))),
                Data::Float(number) => Value::float(number),
                Data::Bool(truth) => Some(self.intern(if truth { "true" } else { "false" })),
            };
            if let Some(value) = value {
                table.push(&[of, attribute.key.into(), value]);
            }
        }
    }

    pub(super) fn fill_events(&self, own: Own, table: &mut Table) {
        let mut number = 0_u32;
        for (part, tree) in self.trees() {
            for span in 0..tree.spans.len() as u32 {
                for event in tree.events(span) {
                    let (this, of) = (Value::from(number), Value::from(part.first_span + span));
                    number += 1;
                    if own == Own::EventAttr {
                        self.push_attributes(this, tree.event_attributes(event), table);
                    } else {
                        // An event without a time is taken to have happened as its span began.
                        let span = &tree.spans[span as usize];
                        let recorded = event.time.unwrap_or(span.start.saturating_sub(span.shift));
                        if own == Own::RecordedTime {
                            let time = Value::integer(recorded).unwrap_or(Value::from(0));
                            table.push(&[this, time]);
                            continue;
                        }
                        let time = recorded.saturating_add(span.shift);
                        table.push(&[this, of, event.name.into(), Value::integer(time).unwrap_or(Value::from(0))]);
                    }
                }
            }
        }
    }

    pub(super) fn fill_derived(&self, own: Own, table: &mut Table) {
        let time = |time: i64| Value::integer(time).unwrap_or(Value::from(0));
        for (part, spans) in self.trees() {
            let tree = Tree::of(spans);
            let number = |span: u32| Value::from(part.first_span + span);
            match own {
                Own::Order => {
                    for (span, (pre, post)) in (0..).zip(tree.order()) {
                        table.push(&[number(span), Value::from(pre), Value::from(post)]);
                    }
                }
                Own::Depth => {
                    (0..).zip(tree.depth()).for_each(|(span, depth)| table.push(&[number(span), Value::from(depth)]));
                }
                Own::Critical => {
                    for (span, from, to) in tree.critical() {
                        table.push(&[number(span), time(from), time(to)]);
                    }
                }
                _ => {
                    for span in 0..spans.spans.len() as u32 {
                        match own {
                            Own::Child => {
                                for (place, &child) in (1_u32..).zip(tree.children(span)) {
                                    table.push(&[number(span), number(child), Value::from(place)]);
                                }
                            }
                            _ if spans.is_restored(span) => {}
                            Own::Gap => tree.gaps(span, |from, to| table.push(&[number(span), time(from), time(to)])),
                            Own::SelfTime => table.push(&[number(span), time(tree.own_and_covered(span).0)]),
                            Own::Union => table.push(&[number(span), time(tree.own_and_covered(span).1)]),
                            _ => table.push(&[number(span), Value::from(tree.concurrency(span) as u32)]),
                        }
                    }
                }
            }
        }
    }
}

fn kind_label(kind: SpanKind) -> &'static str {
    if kind == SpanKind::Unspecified { "unspecified" } else { kind.label() }
}
