//! Operations and their spans as base facts. A relation's rows are made when it is first asked for.

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::datalog::base::{BaseFacts, BaseRelation, Type};
use crate::datalog::value::Value;
use crate::diagnostic::Diagnostics;
use crate::names::Name;
use crate::query::dominators;
use crate::query::matched::Matched;
use crate::query::schema::{self, ENTRY, EVENT, OPERATION, Own, SPAN};
use crate::query::table::Table;
use crate::query::tree::Tree;
use crate::tlc::Rules;
use crate::tlc::facts::{GraphFacts, RELATIONS};
use crate::trace::recorded::SpanKind;
use crate::trace::retained::{Attribute, Data};
use crate::trace::toeg::NONE;
use crate::trace::{Event, NodeId, SpanTree, Toeg, TraceNames};

/// An operation with its spans, where it is of spans.
#[derive(Debug)]
pub struct Questioned {
    /// Its graph.
    pub toeg: Toeg,
    /// Its spans.
    pub spans: Option<SpanTree>,
}

/// One operation among the facts, with the numbers at which its own begin.
struct Part<'a> {
    operation: &'a Questioned,
    graph: GraphFacts<'a>,
    first_node: u32,
    first_span: u32,
    matched: OnceCell<Matched>,
}

/// The facts about operations: of one, or of all of a trace.
pub struct TraceFacts<'a> {
    names: &'a TraceNames,
    rules: &'a Rules,
    parts: Vec<Part<'a>>,
    tables: Vec<OnceCell<Table>>,
    /// Texts that the trace's names lack; their numbers follow those of the names.
    texts: RefCell<Texts>,
    events: OnceCell<Vec<(u32, u32)>>,
    first_entries: OnceCell<Vec<u32>>,
    orders: OnceCell<Vec<Ordered<'a>>>,
    failure: RefCell<Option<Diagnostics>>,
}

#[derive(Default)]
struct Texts {
    all: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u32>,
}

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

impl<'a> TraceFacts<'a> {
    /// Facts about operations. The rules are those that templates match by.
    pub fn new(operations: impl Iterator<Item = &'a Questioned>, names: &'a TraceNames, rules: &'a Rules) -> Self {
        let (mut first_node, mut first_span) = (0, 0);
        let parts = operations.map(|operation| {
            let graph = GraphFacts::new(&operation.toeg, names);
            let part = Part { operation, graph, first_node, first_span, matched: OnceCell::new() };
            first_node += operation.toeg.len() as u32;
            first_span += operation.spans.as_ref().map_or(0, |tree| tree.spans.len()) as u32;
            part
        });
        let parts = parts.collect();
        let count = schema::schema().names().count();
        Self {
            names,
            rules,
            parts,
            tables: std::iter::repeat_with(OnceCell::new).take(count).collect(),
            texts: RefCell::default(),
            events: OnceCell::new(),
            first_entries: OnceCell::new(),
            orders: OnceCell::new(),
            failure: RefCell::default(),
        }
    }

    /// Why the templates could not be matched, if they could not.
    pub fn failure(&self) -> Option<Diagnostics> {
        self.failure.borrow_mut().take()
    }

    /// A symbol's text.
    pub fn text(&self, symbol: Name) -> Arc<str> {
        match symbol.index().checked_sub(self.names.names.len()) {
            Some(own) => self.texts.borrow().all.get(own).map_or_else(|| "".into(), Arc::clone),
            None => self.names.names.shared(symbol),
        }
    }

    fn intern(&self, text: &str) -> Value {
        if let Some(name) = self.names.names.get(text) {
            return Value::symbol(name);
        }
        let mut texts = self.texts.borrow_mut();
        let Texts { all, numbers } = &mut *texts;
        let first = self.names.names.len();
        if let Some(number) = numbers.get(text) {
            return Value::symbol(Name(*number));
        }
        let number = u32::try_from(first + all.len()).expect("fewer than 2^32 distinct texts fit in memory");
        let text: Arc<str> = text.into();
        all.push(Arc::clone(&text));
        numbers.insert(text, number);
        Value::symbol(Name(number))
    }

    /// What a number of a column of that type is called; `None` where it is a number.
    pub fn label(&self, kind: Type, value: Value) -> Option<String> {
        let number = u32::try_from(value.as_integer()?).ok()?;
        Some(match kind {
            Type::Node => {
                let part = self.part(|part| part.first_node + part.operation.toeg.len() as u32, number)?;
                let event = part.operation.toeg.event(number - part.first_node);
                format!("{},{}", event.thread, event.index)
            }
            SPAN => self.span(number)?.to_string(),
            EVENT => {
                let (span, place) = *self.events.get_or_init(|| self.event_places()).get(number as usize)?;
                format!("{}/{place}", self.span(span)?)
            }
            OPERATION => self.parts.get(number as usize)?.operation.toeg.operation().run.to_string(),
            ENTRY => {
                let firsts = self.first_entries.get_or_init(|| self.entries_before());
                let place = firsts.partition_point(|first| *first <= number);
                format!("E{}", number - firsts[place.checked_sub(1)?])
            }
            _ => return None,
        })
    }

    /// The part that a number lies in, by where the numbers of each part end.
    fn part(&self, end: impl Fn(&Part<'a>) -> u32, number: u32) -> Option<&Part<'a>> {
        self.parts.get(self.parts.partition_point(|part| end(part) <= number))
    }

    fn span(&self, number: u32) -> Option<&Arc<str>> {
        let part = self.part(Part::end_of_spans, number)?;
        let tree = part.operation.spans.as_ref()?;
        Some(&tree.spans.get(number.checked_sub(part.first_span)? as usize)?.id)
    }

    /// For each event, its span and its place among the events of that, from 1.
    fn event_places(&self) -> Vec<(u32, u32)> {
        let mut places = Vec::new();
        for (part, tree) in self.trees() {
            for span in 0..tree.spans.len() as u32 {
                let count = tree.events(span).len() as u32;
                places.extend((1..=count).map(|place| (part.first_span + span, place)));
            }
        }
        places
    }

    /// For each operation, the number of its first entry.
    fn entries_before(&self) -> Vec<u32> {
        let mut next = 0;
        let first = self.parts.iter().map(|part| {
            let first = next;
            next += self.matched(part).entries.len() as u32;
            first
        });
        first.collect()
    }

    fn trees(&self) -> impl Iterator<Item = (&Part<'a>, &'a SpanTree)> {
        self.parts.iter().filter_map(|part| Some((part, part.operation.spans.as_ref()?)))
    }

    fn matched<'s>(&'s self, part: &'s Part<'a>) -> &'s Matched {
        part.matched.get_or_init(|| {
            Matched::of(self.rules, self.names, &part.operation.toeg).unwrap_or_else(|failure| {
                self.failure.borrow_mut().get_or_insert(failure);
                Matched::default()
            })
        })
    }

    fn table(&self, relation: BaseRelation) -> &Table {
        self.tables[relation.0 as usize].get_or_init(|| {
            let mut table = Table::new(schema::schema().columns(relation).1.len());
            match schema::own(relation) {
                Some(own) => self.fill(own, &mut table),
                None => self.fill_graph(relation, &mut table),
            }
            table
        })
    }

    /// The graphs of several operations, with the nodes of each numbered behind those before.
    fn fill_graph(&self, relation: BaseRelation, table: &mut Table) {
        let columns = RELATIONS[relation.0 as usize].1;
        for part in &self.parts {
            part.graph.lookup(relation, &vec![None; columns.len()], &mut |row| {
                let shifted = row.iter().zip(columns).map(|(value, kind)| match (kind, value.as_integer()) {
                    (Type::Node, Some(node)) => Value::from(node as u32 + part.first_node),
                    _ => *value,
                });
                table.push(&shifted.collect::<Vec<_>>());
                ControlFlow::Continue(())
            });
        }
    }

    fn fill(&self, own: Own, table: &mut Table) {
        match own {
            Own::Operation => {
                for (number, part) in (0..).zip(&self.parts) {
                    let operation = part.operation.toeg.operation();
                    table.push(&[Value::from(number), operation.scenario.into(), self.intern(&operation.run)]);
                }
            }
            Own::NodeOperation => {
                for (number, part) in (0_u32..).zip(&self.parts) {
                    let nodes = 0..part.operation.toeg.len() as NodeId;
                    nodes.for_each(|node| table.push(&[Value::from(part.first_node + node), Value::from(number)]));
                }
            }
            Own::SpanOperation => {
                for (number, part) in (0_u32..).zip(&self.parts) {
                    let spans = part.operation.spans.as_ref().map_or(0, |tree| tree.spans.len()) as u32;
                    (0..spans).for_each(|span| table.push(&[Value::from(part.first_span + span), Value::from(number)]));
                }
            }
            Own::Time => self.of_nodes(table, |part, event| {
                let start = part.operation.toeg.operation().start.unwrap_or(0);
                let time = Value::float((event.time * SECOND).round())?.as_integer()?;
                Value::integer(start.checked_add(time)?)
            }),
            Own::Cpu => self.of_nodes(table, |_, event| Value::float((event.cpu * SECOND).round())),
            Own::NodeSpan => self.of_nodes(table, |part, event| {
                let spans = &part.operation.spans.as_ref()?.spans;
                ((event.origin as usize) < spans.len()).then(|| Value::from(part.first_span + event.origin))
            }),
            Own::Match | Own::MatchNode | Own::MatchValue | Own::Entry | Own::Request | Own::Owner => {
                self.fill_matches(own, table);
            }
            Own::Dominator => {
                for part in &self.parts {
                    let immediate = dominators::immediate(&part.operation.toeg);
                    for (node, above) in (0..).zip(immediate).filter(|(_, above)| *above != NONE) {
                        table.push(&[Value::from(part.first_node + above), Value::from(part.first_node + node)]);
                    }
                }
            }
            Own::Event | Own::EventAttr => self.fill_events(own, table),
            Own::Child
            | Own::Order
            | Own::Depth
            | Own::SelfTime
            | Own::Union
            | Own::Concurrency
            | Own::Gap
            | Own::Critical => self.fill_derived(own, table),
            _ => self.fill_spans(own, table),
        }
    }

    /// Which spans lie above which, by their order, without a row kept.
    fn ancestors(&self, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let orders = self.orders.get_or_init(|| self.trees().map(|(part, tree)| Ordered::of(part, tree)).collect());
        let number = |value: Value| value.as_integer().and_then(|number| u32::try_from(number).ok());
        for ordered in orders {
            // What is known and is no span of this tree has no row in it.
            let own = |value: Option<Value>| value.map(|value| number(value).and_then(|number| ordered.own(number)));
            let (above, below) = match (own(pattern[0]), own(pattern[1])) {
                (Some(None), _) | (_, Some(None)) => continue,
                (above, below) => (above.flatten(), below.flatten()),
            };
            let mut give =
                |above: u32, below: u32| out(&[Value::from(ordered.first + above), Value::from(ordered.first + below)]);
            let flow = match (above, below) {
                (Some(above), Some(below)) if ordered.is_above(above, below) => give(above, below),
                (Some(_), Some(_)) => ControlFlow::Continue(()),
                (Some(above), None) => ordered.below(above).try_for_each(|below| give(above, below)),
                (None, Some(below)) => ordered.above(below).try_for_each(|above| give(above, below)),
                (None, None) => (0..ordered.order.len() as u32)
                    .try_for_each(|below| ordered.above(below).try_for_each(|above| give(above, below))),
            };
            if flow.is_break() {
                return;
            }
        }
    }

    fn estimate_ancestors(&self, bound: u32) -> u64 {
        /// Trees of calls are so deep, about.
        const DEPTH: u64 = 8;
        let spans = self.trees().map(|(_, tree)| tree.spans.len() as u64).sum::<u64>().max(1);
        match bound {
            0 => spans * DEPTH,
            3 => 1,
            _ => DEPTH,
        }
    }

    fn of_nodes(&self, table: &mut Table, value: impl Fn(&Part<'a>, &Event) -> Option<Value>) {
        for part in &self.parts {
            for node in 0..part.operation.toeg.len() as NodeId {
                if let Some(value) = value(part, part.operation.toeg.event(node)) {
                    table.push(&[Value::from(part.first_node + node), value]);
                }
            }
        }
    }

    fn fill_spans(&self, own: Own, table: &mut Table) {
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

    fn fill_events(&self, own: Own, table: &mut Table) {
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
                        let time = event.time.unwrap_or(tree.spans[span as usize].start);
                        table.push(&[this, of, event.name.into(), Value::integer(time).unwrap_or(Value::from(0))]);
                    }
                }
            }
        }
    }

    fn fill_derived(&self, own: Own, table: &mut Table) {
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

    fn fill_matches(&self, own: Own, table: &mut Table) {
        let (mut first_match, mut first_entry) = (1_u32, 0_u32);
        for part in &self.parts {
            let matched = self.matched(part);
            let node = |node: NodeId| Value::from(part.first_node + node);
            let entry = |entry: u32| Value::from(first_entry + entry);
            for (number, one) in (first_match..).zip(&matched.matches) {
                let number = Value::from(number);
                match own {
                    Own::Match => table.push(&[number, self.intern(&one.template)]),
                    Own::MatchNode => {
                        one.nodes.iter().for_each(|(name, id)| table.push(&[number, self.intern(name), node(*id)]));
                    }
                    Own::MatchValue => {
                        for (name, value) in &one.values {
                            if let Some(value) = value.value(self.names) {
                                table.push(&[number, self.intern(name), value]);
                            }
                        }
                    }
                    _ => {}
                }
            }
            match own {
                Own::Entry => {
                    for (number, one) in (0..).zip(&matched.entries) {
                        let task = one.task.map_or(Name::NONE, |task| self.names.task(task).name);
                        let interaction = self.intern(one.interaction.label());
                        table.push(&[entry(number), task.into(), one.service.into(), interaction]);
                    }
                }
                Own::Request => matched.requests.iter().for_each(|(from, to)| table.push(&[entry(*from), entry(*to)])),
                Own::Owner => matched.owners.iter().for_each(|(id, owner)| table.push(&[node(*id), entry(*owner)])),
                _ => {}
            }
            first_match += matched.matches.len() as u32;
            first_entry += matched.entries.len() as u32;
        }
    }
}

impl Part<'_> {
    fn end_of_spans(&self) -> u32 {
        self.first_span + self.operation.spans.as_ref().map_or(0, |tree| tree.spans.len()) as u32
    }
}

/// A tree of spans in its order.
struct Ordered<'a> {
    first: u32,
    tree: &'a SpanTree,
    order: Vec<(u32, u32)>,
    /// The spans in the order of their first numbers.
    by_pre: Vec<u32>,
}

impl<'a> Ordered<'a> {
    fn of(part: &Part<'_>, tree: &'a SpanTree) -> Self {
        let order = Tree::of(tree).order();
        let mut by_pre = vec![0; order.len()];
        for (span, (pre, _)) in (0..).zip(&order) {
            by_pre[*pre as usize - 1] = span;
        }
        Self { first: part.first_span, tree, order, by_pre }
    }

    /// The number within the tree; `None` where it is of another one.
    fn own(&self, number: u32) -> Option<u32> {
        let own = number.checked_sub(self.first)?;
        ((own as usize) < self.order.len()).then_some(own)
    }

    fn is_above(&self, above: u32, below: u32) -> bool {
        let (one, other) = (self.order[above as usize], self.order[below as usize]);
        one.0 < other.0 && one.1 > other.1
    }

    /// What lies below a span follows it, up to the first that does not.
    fn below(&self, above: u32) -> impl Iterator<Item = u32> {
        let next = self.order[above as usize].0 as usize;
        self.by_pre[next..].iter().copied().take_while(move |below| self.is_above(above, *below))
    }

    fn above(&self, below: u32) -> impl Iterator<Item = u32> {
        let parent = |span: u32| self.tree.spans[span as usize].parent;
        std::iter::successors(parent(below), move |span| parent(*span))
    }
}

fn kind_label(kind: SpanKind) -> &'static str {
    if kind == SpanKind::Unspecified { "unspecified" } else { kind.label() }
}

impl BaseFacts for TraceFacts<'_> {
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) {
        match &*self.parts {
            // The graph of one operation answers by itself, without a table.
            [only] if schema::own(relation).is_none() => only.graph.lookup(relation, pattern, out),
            _ if schema::own(relation) == Some(Own::Ancestor) => self.ancestors(pattern, out),
            _ => self.table(relation).lookup(pattern, out),
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        match &*self.parts {
            [only] if schema::own(relation).is_none() => only.graph.estimate(relation, bound),
            _ if schema::own(relation) == Some(Own::Ancestor) => self.estimate_ancestors(bound),
            _ => self.table(relation).estimate(bound),
        }
    }

    fn symbol(&self, text: &str) -> Option<Value> {
        Some(self.intern(text))
    }
}
