//! Runs plans over a TOEG: our engine.

use crate::datalog::ast::{Comparison, Operator};
use crate::tlc::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, Loop, MAX_SLOTS, Plan, RelationArgument, Slot, Step, Value,
};
use crate::tlc::visits::Visits;
use crate::trace::toeg::NONE;
use crate::trace::{Event, Kind, NodeId, Toeg, TraceNames};

/// A template that fits at a glue node.
#[derive(Clone, Debug)]
pub struct Match {
    /// Index of the plan.
    pub template: u16,
    /// The registers.
    pub slots: [NodeId; MAX_SLOTS],
    /// The nodes of all rounds, round 1 first.
    pub rounds: Vec<NodeId>,
    /// How many rounds there are.
    pub count: u32,
}

impl Default for Match {
    fn default() -> Self {
        Self { template: 0, slots: [NONE; MAX_SLOTS], rounds: Vec::new(), count: 0 }
    }
}

/// Answers the conditions of a template that ask relations of the rule file.
pub trait Relations {
    /// Whether the relation holds for the arguments; `None` stands for some value.
    fn holds(&self, relation: &str, arguments: &[Option<Argument>]) -> bool;
}

/// A bound argument of a relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// An integer, or a node by its number.
    Integer(i64),
    /// A name of the trace.
    Name(crate::names::Name),
    /// A symbol that the trace does not have.
    Unknown,
}

/// The symbols that plans compare with, as numbers of the trace's names; -1 where the trace does not have them.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Vec<Vec<i64>>);

impl Symbols {
    /// Looks the symbols of all plans up.
    pub fn of(plans: &[Plan], names: &TraceNames) -> Self {
        let number = |symbol: &str| names.names.get(symbol).map_or(-1, |name| i64::from(name.0));
        Self(plans.iter().map(|plan| plan.symbols.iter().map(|symbol| number(symbol)).collect()).collect())
    }
}

/// What a matcher needs to know while it runs.
pub struct Matcher<'a> {
    /// The plans.
    pub plans: &'a [Plan],
    /// The graph.
    pub toeg: &'a Toeg,
    /// Names of the trace.
    pub names: &'a TraceNames,
    /// The plans' symbols.
    pub symbols: &'a Symbols,
    /// Relations of the rule file.
    pub relations: &'a dyn Relations,
    /// How many more rounds of repetitions may be walked in this operation.
    pub budget: std::cell::Cell<u64>,
    /// Which visits the operation's threads go on with.
    pub visits: Visits,
}

/// The kind of a node without its thread.
pub fn tag(kind: Kind) -> KindTag {
    match kind {
        Kind::Begin => KindTag::Begin,
        Kind::Activity => KindTag::Activity,
        Kind::End => KindTag::End,
        Kind::Fork(_) => KindTag::Fork,
        Kind::Join(_) => KindTag::Join,
    }
}

/// A run of one plan.
struct Run<'m, 'a> {
    matcher: &'m Matcher<'a>,
    template: usize,
    processed: Option<&'m [u8]>,
    slots: [NodeId; MAX_SLOTS],
    carry: [i64; 4],
}

/// The bit of a node's flags that says that a match has consumed it.
pub const PROCESSED: u8 = 1;

impl Matcher<'_> {
    /// Tries a template at a glue node. `processed` holds a byte of flags a node; without it, all nodes are free.
    ///
    /// The glue node's kind has been compared by the caller.
    pub fn try_at(&self, template: usize, glue: NodeId, processed: Option<&[u8]>, found: &mut Match) -> bool {
        let plan = &self.plans[template];
        let mut run = Run { matcher: self, template, processed, slots: [NONE; MAX_SLOTS], carry: [0; 4] };
        run.slots[0] = glue;
        if !run.steps(&plan.head) {
            return false;
        }
        found.rounds.clear();
        found.count = 0;
        let good = match &plan.repetition {
            None => true,
            Some(repetition) => run.repeat(plan, repetition, found),
        };
        if good {
            found.template = template as u16;
            found.slots = run.slots;
        }
        good
    }
}

impl Run<'_, '_> {
    fn repeat(&mut self, plan: &Plan, repetition: &Loop, found: &mut Match) -> bool {
        let mut best: Option<(u32, [NodeId; MAX_SLOTS])> = None;
        if let (0, Some(tail)) = (repetition.min, &plan.tail_of_none)
            && self.steps(tail)
        {
            best = Some((0, self.slots));
        }
        if best.is_none() || repetition.longest {
            self.rounds(plan, repetition, found, &mut best);
        }
        let Some((count, slots)) = best else { return false };
        self.slots = slots;
        found.count = count;
        let size = repetition.nodes.len();
        found.rounds.truncate(count as usize * size);
        if repetition.backward {
            // Rounds were walked from the last to the first.
            found.rounds.reverse();
            found.rounds.chunks_mut(size).for_each(<[NodeId]>::reverse);
        }
        true
    }

    fn rounds(
        &mut self,
        plan: &Plan,
        repetition: &Loop,
        found: &mut Match,
        best: &mut Option<(u32, [NodeId; MAX_SLOTS])>,
    ) {
        self.set_carry(&repetition.carry);
        let mut count = 0;
        while self.steps(&repetition.steps) {
            let budget = self.matcher.budget.get();
            if budget == 0 {
                return;
            }
            self.matcher.budget.set(budget - 1);
            count += 1;
            found.rounds.extend(repetition.nodes.iter().map(|slot| self.slots[*slot as usize]));
            if count >= repetition.min && self.steps(&plan.tail) {
                *best = Some((count, self.slots));
                if !repetition.longest {
                    return;
                }
            }
            self.set_carry(&repetition.next_carry);
        }
    }

    fn set_carry(&mut self, values: &[Value]) {
        let mut next = [0; 4];
        for (cell, value) in next.iter_mut().zip(values) {
            *cell = self.value(*value);
        }
        self.carry = next;
    }

    #[inline]
    fn event(&self, slot: Slot) -> &Event {
        self.matcher.toeg.event(self.slots[slot as usize])
    }

    fn steps(&mut self, steps: &[Step]) -> bool {
        for step in steps {
            let good = match step {
                Step::Go { to, edge, kind, consumed } => self.go(*to, *edge, *kind, *consumed),
                Step::Equal(left, right) => self.value(*left) == self.value(*right),
                Step::Compare(left, comparison, right) => holds(self.value(*left), *comparison, self.value(*right)),
                Step::CompareExpressions(left, comparison, right) => {
                    match (self.expression(left), self.expression(right)) {
                        (Some(left), Some(right)) => holds(left, *comparison, right),
                        _ => false,
                    }
                }
                Step::Distinct(left, right) => self.slots[*left as usize] != self.slots[*right as usize],
                Step::Holds { negated, relation, arguments } => self.relation(relation, arguments) != *negated,
                Step::NotStarts(template, slot) => {
                    let plan = &self.matcher.plans[*template as usize];
                    let node = self.slots[*slot as usize];
                    let fits =
                        plan.glue_kind == KindTag::Any || plan.glue_kind == tag(self.matcher.toeg.event(node).kind);
                    !(fits && self.matcher.try_at(*template as usize, node, None, &mut Match::default()))
                }
            };
            if !good {
                return false;
            }
        }
        true
    }

    #[inline]
    fn go(&mut self, to: Slot, edge: Edge, kind: KindTag, consumed: bool) -> bool {
        let toeg = self.matcher.toeg;
        let node = match edge {
            Edge::InThread(from, delta) => toeg.step_in_thread(self.slots[from as usize], delta),
            Edge::InTask(from, 1) => toeg.next_in_task(self.slots[from as usize]),
            Edge::InTask(from, -1) => toeg.previous_in_task(self.slots[from as usize]),
            Edge::InTask(from, delta) => self.far_in_task(from, delta),
            Edge::BeginOf(from) => match self.event(from).kind {
                Kind::Fork(thread) => toeg.thread(thread).map_or(NONE, |thread| thread.first),
                _ => NONE,
            },
            Edge::ForkOfThreadOf(from) => toeg.thread_of(self.slots[from as usize]).fork,
            Edge::First(thread) => self.thread(thread).map_or(NONE, |thread| thread.first),
            Edge::Last(thread) => self.thread(thread).map_or(NONE, |thread| thread.last),
            Edge::Accepted(thread) => {
                self.thread(thread).map_or(NONE, |thread| self.matcher.visits.accepted_at(toeg, thread))
            }
            Edge::Fork(thread) => self.thread(thread).map_or(NONE, |thread| thread.fork),
            Edge::Join(thread) => self.thread(thread).map_or(NONE, |thread| thread.join),
            Edge::At(thread, position) => {
                let position = self.value(position);
                self.thread(thread).map_or(NONE, |thread| {
                    let length = i64::from(thread.last - thread.first) + 1;
                    if (1..=length).contains(&position) { thread.first + (position - 1) as NodeId } else { NONE }
                })
            }
        };
        if node == NONE || (kind != KindTag::Any && tag(toeg.event(node).kind) != kind) {
            return false;
        }
        if consumed && self.processed.is_some_and(|flags| flags[node as usize] & PROCESSED != 0) {
            return false;
        }
        self.slots[to as usize] = node;
        true
    }

    fn far_in_task(&self, from: Slot, delta: i32) -> NodeId {
        let mut node = self.slots[from as usize];
        for _ in 0..delta.unsigned_abs() {
            if node == NONE {
                return NONE;
            }
            node =
                if delta > 0 { self.matcher.toeg.next_in_task(node) } else { self.matcher.toeg.previous_in_task(node) };
        }
        node
    }

    #[inline]
    fn thread(&self, id: Value) -> Option<&crate::trace::toeg::Thread> {
        self.matcher.toeg.thread(u32::try_from(self.value(id)).ok()?)
    }

    #[inline]
    fn value(&self, value: Value) -> i64 {
        match value {
            Value::Field(slot, field, offset) => self.field(slot, field).saturating_add(offset),
            Value::Carry(number, offset) => self.carry[number as usize].saturating_add(offset),
            Value::Integer(value) => value,
            Value::Symbol(symbol) => self.matcher.symbols.0[self.template][symbol as usize],
        }
    }

    #[inline]
    fn field(&self, slot: Slot, field: Field) -> i64 {
        field_of(self.matcher.toeg, self.matcher.names, self.slots[slot as usize], field)
    }

    fn expression(&self, expression: &Expression) -> Option<i64> {
        let mut stack: Vec<i64> = Vec::new();
        for part in &expression.0 {
            match part {
                ExpressionPart::Value(value) => stack.push(self.value(*value)),
                ExpressionPart::Apply(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    stack.push(match operator {
                        Operator::Add => left.checked_add(right)?,
                        Operator::Subtract => left.checked_sub(right)?,
                        Operator::Multiply => left.checked_mul(right)?,
                        Operator::Divide => left.checked_div(right)?,
                        Operator::Remainder => left.checked_rem(right)?,
                    });
                }
            }
        }
        stack.pop()
    }

    fn relation(&self, relation: &str, arguments: &[RelationArgument]) -> bool {
        let names = self.matcher.names;
        let arguments: Vec<Option<Argument>> = arguments
            .iter()
            .map(|argument| match argument {
                RelationArgument::Integer(value) => Some(Argument::Integer(self.value(*value))),
                RelationArgument::TaskName(slot) => Some(Argument::Name(names.task(self.event(*slot).task).name)),
                RelationArgument::Name(slot, Field::Service) => Some(Argument::Name(self.event(*slot).service)),
                RelationArgument::Name(slot, _) => Some(Argument::Name(self.event(*slot).activity)),
                RelationArgument::Symbol(symbol) => {
                    let number = self.matcher.symbols.0[self.template][*symbol as usize];
                    Some(match u32::try_from(number) {
                        Ok(number) => Argument::Name(crate::names::Name(number)),
                        Err(_) => Argument::Unknown,
                    })
                }
                RelationArgument::Free => None,
            })
            .collect();
        self.matcher.relations.holds(relation, &arguments)
    }
}

/// A field of a node, as plans compare it.
#[inline]
pub fn field_of(toeg: &Toeg, names: &TraceNames, node: NodeId, field: Field) -> i64 {
    match field {
        Field::TaskName => i64::from(names.task(toeg.event(node).task).name.0),
        field => label_field(toeg, node, field),
    }
}

/// A field of a node that needs no names: of a task its number, instances told apart.
#[inline]
pub fn label_field(toeg: &Toeg, node: NodeId, field: Field) -> i64 {
    let event = toeg.event(node);
    match field {
        Field::Thread => i64::from(event.thread),
        Field::Position => i64::from(event.index),
        Field::Target => match event.kind {
            Kind::Fork(thread) | Kind::Join(thread) => i64::from(thread),
            _ => -1,
        },
        Field::Task | Field::TaskName => i64::from(event.task.0),
        Field::Counter => i64::from(event.counter),
        Field::Activity => i64::from(event.activity.0),
        Field::Service => i64::from(event.service.0),
        Field::Node => i64::from(node),
    }
}

#[inline]
fn holds(left: i64, comparison: Comparison, right: i64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}
