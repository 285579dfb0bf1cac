//! What rules may ask of the graph: base relations over its nodes.

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::matcher::{Argument, Relations};
use crate::visits::Visits;
use dyelog_datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog_datalog::eval::{CompiledRules, Evaluator};
use dyelog_datalog::value::Value;
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Name;
use dyelog_trace::toeg::{NONE, Thread};
use dyelog_trace::{Kind, NodeId, Toeg, TraceNames};

/// The base relations, in the order of their numbers, with their columns and what they say.
pub const RELATIONS: &[(&str, &[Type], &str)] = &[
    ("node", &[Type::Node], "N is a node of the operation"),
    ("thread", &[Type::Node, Type::Integer, Type::Integer], "node N is in thread K at counter M"),
    ("task", &[Type::Node, Type::Symbol, Type::Integer], "node N is on task I at counter V"),
    ("kind", &[Type::Node, Type::Symbol], "node N is of kind \"Be\", \"Ac\", \"Ed\", \"Fk\" or \"Jn\""),
    ("next_in_thread", &[Type::Node, Type::Node], "Y is the next node of X's thread"),
    ("next_in_task", &[Type::Node, Type::Node], "Y is the next node of X's task"),
    ("forks", &[Type::Node, Type::Node], "F forks the thread that begins at B"),
    ("joins", &[Type::Node, Type::Node], "J waits for the thread that ends at E"),
    ("edge", &[Type::Node, Type::Node], "X is an immediate cause of Y: one of the four before"),
    ("name", &[Type::Node, Type::Symbol], "node N has the activity name S"),
    ("op", &[Type::Node, Type::Symbol], "node N has the service name S"),
    (
        "time",
        &[Type::Node, Type::Integer],
        "node N happens at that time, in nanoseconds; clocks of spans that differ are corrected",
    ),
    ("begins", &[Type::Integer, Type::Any, Type::Integer], "thread K begins on task I at counter V"),
    ("ends", &[Type::Integer, Type::Any, Type::Integer], "thread K ends on task I at counter V"),
    (
        "visit",
        &[Type::Integer, Type::Integer, Type::Integer],
        "node M of thread K lies in the visit whose request began thread Q",
    ),
    (
        "accepted",
        &[Type::Integer, Type::Integer, Type::Integer, Type::Integer],
        "node M of thread K lies in the visit that node L of thread Q accepted",
    ),
];

/// The kinds of nodes, as `kind` has them.
pub const KINDS: &[&str] = &["Be", "Ac", "Ed", "Fk", "Jn"];

/// Columns of which each value has one row at most: a node has one place in one thread and on one task, and one next node there.
const KEYS: &[(&str, usize)] = &[
    ("node", 0),
    ("thread", 0),
    ("task", 0),
    ("kind", 0),
    ("next_in_thread", 0),
    ("next_in_thread", 1),
    ("next_in_task", 0),
    ("next_in_task", 1),
    ("forks", 0),
    ("name", 0),
    ("op", 0),
    ("time", 0),
];

/// The schema of [`RELATIONS`].
pub fn schema() -> &'static BaseSchema {
    static SCHEMA: LazyLock<BaseSchema> = LazyLock::new(|| {
        let mut schema = BaseSchema::new();
        for (name, columns, _) in RELATIONS {
            let relation = schema.add(name, columns);
            if *name == "kind" {
                schema.close(relation, 1, KINDS);
            }
            for (_, column) in KEYS.iter().filter(|(keyed, _)| keyed == name) {
                schema.key(relation, *column);
            }
        }
        schema
    });
    &SCHEMA
}

type Index = OnceCell<FxHashMap<Name, Vec<NodeId>>>;

/// The graph of an operation as base facts.
pub struct GraphFacts<'a> {
    toeg: &'a Toeg,
    names: &'a TraceNames,
    by_task: Index,
    by_kind: Index,
    by_activity: Index,
    by_service: Index,
    visits: Visits,
}

impl<'a> GraphFacts<'a> {
    /// Facts of a graph; indices are made when they are first asked for.
    pub fn new(toeg: &'a Toeg, names: &'a TraceNames) -> Self {
        Self {
            toeg,
            names,
            by_task: Index::new(),
            by_kind: Index::new(),
            by_activity: Index::new(),
            by_service: Index::new(),
            visits: Visits::default(),
        }
    }

    fn symbol_of(&self, relation: &str, node: NodeId) -> Name {
        let event = self.toeg.event(node);
        match relation {
            "task" | "begins" | "ends" => self.names.task(event.task).name,
            "kind" => self.names.names.get(event.kind.label()).unwrap_or(Name::NONE),
            "name" => event.activity,
            _ => event.service,
        }
    }

    /// When a node happens, in nanoseconds, where the trace tells.
    fn time(&self, node: NodeId) -> Option<Value> {
        let start = self.toeg.operation().start.unwrap_or(0);
        let time = Value::float((self.toeg.event(node).time * 1e9).round())?.as_integer()?;
        Value::integer(start.checked_add(time)?)
    }

    /// Nodes whose symbol is the given one.
    fn with_symbol(&self, relation: &str, symbol: Name) -> &[NodeId] {
        let index = match relation {
            "task" => &self.by_task,
            "kind" => &self.by_kind,
            "name" => &self.by_activity,
            _ => &self.by_service,
        };
        let index = index.get_or_init(|| {
            let mut index: FxHashMap<Name, Vec<NodeId>> = FxHashMap::default();
            for node in 0..self.toeg.len() as NodeId {
                index.entry(self.symbol_of(relation, node)).or_default().push(node);
            }
            index
        });
        index.get(&symbol).map_or(&[], Vec::as_slice)
    }

    /// Effects of a node (or its causes) by one kind of arc, or by all.
    fn neighbours(&self, relation: &str, node: NodeId, forward: bool) -> Vec<NodeId> {
        let toeg = self.toeg;
        let all = relation == "edge";
        let mut found = Vec::new();
        let event = toeg.event(node);
        let thread = toeg.thread_of(node);
        if all || relation == "next_in_thread" {
            found.push(toeg.step_in_thread(node, if forward { 1 } else { -1 }));
        }
        if all || relation == "next_in_task" {
            found.push(if forward { toeg.next_in_task(node) } else { toeg.previous_in_task(node) });
        }
        if all || relation == "forks" {
            found.push(match event.kind {
                Kind::Fork(child) if forward => toeg.thread(child).map_or(NONE, |thread| thread.first),
                Kind::Begin if !forward => thread.fork,
                _ => NONE,
            });
        }
        if all || relation == "joins" {
            found.push(match event.kind {
                Kind::End if forward => thread.join,
                Kind::Join(child) if !forward => toeg.thread(child).map_or(NONE, |thread| thread.last),
                _ => NONE,
            });
        }
        found.retain(|&other| other != NONE);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn node(&self, value: Value) -> Option<NodeId> {
        let node = u32::try_from(value.as_integer()?).ok()?;
        ((node as usize) < self.toeg.len()).then_some(node)
    }

    /// The nodes that a row may start from, given what of it is known.
    fn candidates(&self, relation: &str, pattern: &[Option<Value>]) -> Vec<NodeId> {
        if let Some(value) = pattern[0] {
            return self.node(value).into_iter().collect();
        }
        match (relation, pattern.get(1).copied().flatten()) {
            ("thread", Some(thread)) => {
                let id = thread.as_integer().and_then(|id| u32::try_from(id).ok());
                id.and_then(|id| self.toeg.thread(id)).map_or(Vec::new(), |thread| thread.nodes().collect())
            }
            ("task" | "kind" | "name" | "op", Some(symbol)) => {
                symbol.as_symbol().map_or(Vec::new(), |symbol| self.with_symbol(relation, symbol).to_vec())
            }
            _ => (0..self.toeg.len() as NodeId).collect(),
        }
    }
}

fn number(value: u32) -> Value {
    Value::integer(i64::from(value)).expect("32 bits fit a value")
}

impl BaseFacts for GraphFacts<'_> {
    fn lookup(
        &self,
        relation: BaseRelation,
        pattern: &[Option<Value>],
        out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>,
    ) {
        let (name, columns, _) = RELATIONS[relation.0 as usize];
        let mut give = |row: &[Value]| {
            let agrees = row.iter().zip(pattern).all(|(value, wanted)| wanted.is_none_or(|wanted| wanted == *value));
            if agrees { out(row) } else { ControlFlow::Continue(()) }
        };
        match name {
            "begins" | "ends" => {
                let id = pattern[0].map(|value| value.as_integer().and_then(|id| u32::try_from(id).ok()));
                let threads = match id {
                    Some(id) => id.and_then(|id| self.toeg.thread(id)).map_or(&[][..], std::slice::from_ref),
                    None => self.toeg.threads(),
                };
                for thread in threads {
                    let node = if name == "begins" { thread.first } else { thread.last };
                    // A template may ask for one instance of a task, by its number; rules see names.
                    let task = match pattern[1].filter(|task| task.as_integer().is_some()) {
                        Some(_) => number(self.toeg.event(node).task.0),
                        None => Value::symbol(self.symbol_of(name, node)),
                    };
                    if give(&[number(thread.id), task, number(self.toeg.event(node).counter)]).is_break() {
                        return;
                    }
                }
            }
            "visit" | "accepted" => {
                let id = pattern[0].map(|value| value.as_integer().and_then(|id| u32::try_from(id).ok()));
                let threads = match id {
                    Some(id) => id.and_then(|id| self.toeg.thread(id)).map_or(&[][..], std::slice::from_ref),
                    None => self.toeg.threads(),
                };
                for node in threads.iter().flat_map(Thread::nodes) {
                    let (event, accepted) = (self.toeg.event(node), self.visits.accepted_at(self.toeg, node));
                    let accepted = self.toeg.event(accepted);
                    let [thread, index] = [event.thread, event.index].map(number);
                    let by = [accepted.thread, accepted.index].map(number);
                    let flow = match name {
                        "accepted" => give(&[thread, index, by[0], by[1]]),
                        _ if accepted.kind == Kind::Begin => give(&[thread, index, by[0]]),
                        _ => ControlFlow::Continue(()),
                    };
                    if flow.is_break() {
                        return;
                    }
                }
            }
            _ if columns == [Type::Node, Type::Node] => {
                let backward = pattern[0].is_none() && pattern[1].is_some();
                let from: Vec<NodeId> = match (pattern[0], pattern[1]) {
                    (Some(value), _) | (None, Some(value)) => self.node(value).into_iter().collect(),
                    (None, None) => (0..self.toeg.len() as NodeId).collect(),
                };
                for node in from {
                    for other in self.neighbours(name, node, !backward) {
                        let (left, right) = if backward { (other, node) } else { (node, other) };
                        if give(&[number(left), number(right)]).is_break() {
                            return;
                        }
                    }
                }
            }
            _ => {
                for node in self.candidates(name, pattern) {
                    let event = self.toeg.event(node);
                    let symbol = || Value::symbol(self.symbol_of(name, node));
                    let flow = match name {
                        "node" => give(&[number(node)]),
                        "thread" => give(&[number(node), number(event.thread), number(event.index)]),
                        "task" => give(&[number(node), symbol(), number(event.counter)]),
                        "time" => match self.time(node) {
                            Some(time) => give(&[number(node), time]),
                            None => ControlFlow::Continue(()),
                        },
                        "kind" => give(&[number(node), symbol()]),
                        // Nodes without a name have no row.
                        _ if self.symbol_of(name, node).is_some() => give(&[number(node), symbol()]),
                        _ => ControlFlow::Continue(()),
                    };
                    if flow.is_break() {
                        return;
                    }
                }
            }
        }
    }

    fn estimate(&self, relation: BaseRelation, bound: u32) -> u64 {
        let all = self.toeg.len() as u64;
        let (name, columns, _) = RELATIONS[relation.0 as usize];
        match (name, bound) {
            (_, bound) if bound & 1 != 0 => 1,
            (_, bound) if columns == [Type::Node, Type::Node] && bound & 2 != 0 => 1,
            ("thread", bound) if bound & 2 != 0 => (all / self.toeg.threads().len().max(1) as u64).max(1),
            ("kind", bound) if bound & 2 != 0 => (all / 5).max(1),
            (_, bound) if bound & 2 != 0 => all.isqrt().max(1),
            _ => all.max(1),
        }
    }

    fn symbol(&self, text: &str) -> Option<Value> {
        self.names.names.get(text).map(Value::symbol)
    }
}

/// Answers templates' conditions by evaluating the rules over the graph.
pub struct RuleRelations<'a> {
    rules: &'a CompiledRules,
    evaluator: RefCell<Evaluator<'a>>,
    failed: RefCell<Option<Diagnostics>>,
}

impl<'a> RuleRelations<'a> {
    /// Relations of the rules over the facts.
    pub fn new(rules: &'a CompiledRules, facts: &'a GraphFacts<'a>) -> Self {
        Self { rules, evaluator: RefCell::new(Evaluator::new(rules, facts)), failed: RefCell::new(None) }
    }

    /// Why evaluation gave up, if it did; the answers after that were all no.
    pub fn failure(&self) -> Option<Diagnostics> {
        self.failed.borrow_mut().take()
    }
}

impl Relations for RuleRelations<'_> {
    fn holds(&self, relation: &str, arguments: &[Option<Argument>]) -> bool {
        let Some(relation) = self.rules.relation(relation) else { return false };
        let mut pattern = Vec::with_capacity(arguments.len());
        for argument in arguments {
            pattern.push(match argument {
                None => None,
                Some(Argument::Integer(value)) => match Value::integer(*value) {
                    Some(value) => Some(value),
                    None => return false,
                },
                Some(Argument::Name(name)) => Some(Value::symbol(*name)),
                Some(Argument::Unknown) => return false,
            });
        }
        match self.evaluator.borrow_mut().any(relation, &pattern) {
            Ok(holds) => holds,
            Err(diagnostics) => {
                self.failed.borrow_mut().get_or_insert(diagnostics);
                false
            }
        }
    }
}

/// No relations: for rules that ask none.
pub struct NoRelations;

impl Relations for NoRelations {
    fn holds(&self, _: &str, _: &[Option<Argument>]) -> bool {
        false
    }
}
