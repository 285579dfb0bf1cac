//! Operations and their spans, or messages, as base facts. A relation's rows are made when it is first asked for.

mod ancestors;
mod matches;
mod messages;
mod naming;
mod patterns;
mod spans;

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::datalog::base::{BaseFacts, BaseRelation, Type};
use crate::datalog::value::Value;
use crate::diagnostic::Diagnostics;
use crate::names::Name;
use crate::query::dominators;
use crate::query::facts::ancestors::Ordered;
use crate::query::facts::patterns::Patterns;
use crate::query::matched::Matched;
use crate::query::messages::Exchanges;
use crate::query::schema::{self, Own};
use crate::query::table::Table;
use crate::tlc::Rules;
use crate::tlc::facts::{GraphFacts, RELATIONS};
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
struct OperationFacts<'a> {
    operation: &'a Questioned,
    graph: GraphFacts<'a>,
    first_node: u32,
    first_span: u32,
    matched: OnceCell<Matched>,
}

/// The facts about operations, of one or of all of a trace, or about the messages of one.
pub struct TraceFacts<'a> {
    names: &'a TraceNames,
    rules: &'a Rules,
    parts: Vec<OperationFacts<'a>>,
    exchanges: Option<&'a Exchanges>,
    tables: Vec<OnceCell<Table>>,
    /// Texts that the trace's names lack; their numbers follow those of the names.
    texts: RefCell<Texts>,
    events: OnceCell<Vec<(u32, u32)>>,
    first_entries: OnceCell<Vec<u32>>,
    orders: OnceCell<Vec<Ordered<'a>>>,
    patterns: Patterns<'a>,
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
            let part = OperationFacts { operation, graph, first_node, first_span, matched: OnceCell::new() };
            first_node += operation.toeg.len() as u32;
            first_span += operation.spans.as_ref().map_or(0, |tree| tree.spans.len()) as u32;
            part
        });
        Self::of(parts.collect(), None, names, rules)
    }

    /// Facts about messages.
    pub fn about_messages(exchanges: &'a Exchanges, names: &'a TraceNames, rules: &'a Rules) -> Self {
        Self::of(Vec::new(), Some(exchanges), names, rules)
    }

    fn of(
        parts: Vec<OperationFacts<'a>>,
        exchanges: Option<&'a Exchanges>,
        names: &'a TraceNames,
        rules: &'a Rules,
    ) -> Self {
        let count = schema::schema().names().count();
        Self {
            names,
            rules,
            parts,
            exchanges,
            tables: std::iter::repeat_with(OnceCell::new).take(count).collect(),
            texts: RefCell::default(),
            events: OnceCell::new(),
            first_entries: OnceCell::new(),
            orders: OnceCell::new(),
            patterns: Patterns::default(),
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

    /// The trees of spans.
    pub(super) fn span_trees(&self) -> impl Iterator<Item = &'a SpanTree> {
        self.trees().map(|(_, tree)| tree)
    }

    fn trees(&self) -> impl Iterator<Item = (&OperationFacts<'a>, &'a SpanTree)> {
        self.parts.iter().filter_map(|part| Some((part, part.operation.spans.as_ref()?)))
    }

    fn matched<'s>(&'s self, part: &'s OperationFacts<'a>) -> &'s Matched {
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
            match (schema::own(relation), self.exchanges) {
                (Some(own), Some(exchanges)) => self.fill_messages(own, exchanges, &mut table),
                (Some(own), None) => self.fill(own, &mut table),
                (None, _) => self.fill_graph(relation, &mut table),
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
            Own::Event | Own::EventAttr | Own::RecordedTime => self.fill_events(own, table),
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

    fn of_nodes(&self, table: &mut Table, value: impl Fn(&OperationFacts<'a>, &Event) -> Option<Value>) {
        for part in &self.parts {
            for node in 0..part.operation.toeg.len() as NodeId {
                if let Some(value) = value(part, part.operation.toeg.event(node)) {
                    table.push(&[Value::from(part.first_node + node), value]);
                }
            }
        }
    }
}

impl OperationFacts<'_> {
    fn end_of_spans(&self) -> u32 {
        self.first_span + self.operation.spans.as_ref().map_or(0, |tree| tree.spans.len()) as u32
    }
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
            _ if schema::own(relation) == Some(Own::Regex) => self.regex(pattern, out),
            _ => self.table(relation).lookup(pattern, out),
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        match &*self.parts {
            [only] if schema::own(relation).is_none() => only.graph.estimate(relation, bound),
            _ if schema::own(relation) == Some(Own::Ancestor) => self.estimate_ancestors(bound),
            _ if schema::own(relation) == Some(Own::Regex) => patterns::estimate(bound),
            _ => self.table(relation).estimate(bound),
        }
    }

    fn symbol(&self, text: &str) -> Option<Value> {
        Some(self.intern(text))
    }
}
