//! The plans of all templates as one program for a small machine.
//!
//! For each kind of glue node the program tries the templates in order. Steps that a template begins with like the one
//! before it are run once for both: a step that fails goes on at the next template that does not share it. The most
//! frequent steps have instructions of their own, which read nothing but registers and one node.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::datalog::ast::Comparison;
use crate::tlc::plan::{Edge, Expression, ExpressionPart, Field, KindTag, Plan, RelationArgument, Slot, Step, Value};

/// Kinds of nodes, a bit each: bit n for the kind with [`kind_index`] n.
pub type Kinds = u8;

/// The number of a kind, from 0.
pub fn kind_index(tag: KindTag) -> usize {
    match tag {
        KindTag::Begin => 0,
        KindTag::Activity => 1,
        KindTag::End => 2,
        KindTag::Fork => 3,
        KindTag::Join | KindTag::Any => 4,
    }
}

fn kinds(tag: KindTag) -> Kinds {
    if tag == KindTag::Any { 0b1_1111 } else { 1 << kind_index(tag) }
}

/// How an instruction comes to a node. Those with kinds bind it, if it is of one of these and free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the next node in the thread.
    NextInThread(Slot, Slot, Kinds),
    /// To the previous node in the thread.
    PreviousInThread(Slot, Slot, Kinds),
    /// To the next node in the task.
    NextInTask(Slot, Slot, Kinds),
    /// To the first node of the thread that a fork starts.
    BeginOf(Slot, Slot, Kinds),
    /// To the node that waits for the thread that a fork starts.
    JoinOf(Slot, Slot, Kinds),
    /// To the first node of a node's thread.
    BeginOfThreadOf(Slot, Slot, Kinds),
    /// To the fork of a node's thread.
    ForkOfThreadOf(Slot, Slot, Kinds),
    /// To a node that is bound already.
    Stay(Slot),
    /// Nowhere: any other step, by its number.
    Step(u32),
    /// Nowhere: walks the repetition of a template; with it the template fits.
    Repeat(u16),
    /// Nowhere: the template fits.
    Accept(u16),
    /// Nowhere: no template fits.
    Reject,
}

/// How the node that an instruction comes to compares with a bound one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Anyhow.
    Any,
    /// On the same task.
    SameTask,
    /// On another task.
    OtherTask,
    /// With a larger task node counter.
    Later,
    /// With the next task node counter.
    Next,
    /// On the same task with a larger counter.
    LaterInTask,
    /// On the same task with the next counter.
    NextInTask,
    /// On the thread that the bound node starts.
    InThreadStarted,
    /// On another thread than the bound node starts.
    OutOfThreadStarted,
}

/// An instruction. When it succeeds, the next one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// How it comes to a node.
    pub way: Way,
    /// How that node must compare.
    pub test: Test,
    /// With which node.
    pub with: Slot,
    /// Where to go on when it fails.
    pub otherwise: u32,
}

impl Instruction {
    fn new(way: Way) -> Self {
        Self { way, test: Test::Any, with: 0, otherwise: REJECT }
    }

    /// The node that it comes to.
    fn comes_to(self) -> Option<Slot> {
        match self.way {
            Way::NextInThread(_, to, _)
            | Way::PreviousInThread(_, to, _)
            | Way::NextInTask(_, to, _)
            | Way::BeginOf(_, to, _)
            | Way::JoinOf(_, to, _)
            | Way::BeginOfThreadOf(_, to, _)
            | Way::ForkOfThreadOf(_, to, _)
            | Way::Stay(to) => Some(to),
            Way::Step(_) | Way::Repeat(_) | Way::Accept(_) | Way::Reject => None,
        }
    }

    /// Takes a test in, if it can.
    fn take(&mut self, node: Slot, test: Test, with: Slot) -> bool {
        if self.comes_to() != Some(node) || (self.test != Test::Any && self.with != with) {
            return false;
        }
        self.test = match (self.test, test) {
            (Test::Any, test) => test,
            (Test::SameTask, Test::Later) | (Test::Later, Test::SameTask) => Test::LaterInTask,
            (Test::SameTask, Test::Next) | (Test::Next, Test::SameTask) => Test::NextInTask,
            _ => return false,
        };
        self.with = with;
        true
    }
}

/// Where the parts of a repetition are.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// The least number of rounds.
    pub min: u32,
    /// Whether rounds run from n down to 1.
    pub backward: bool,
    /// Whether the largest number of rounds is wanted.
    pub longest: bool,
    /// What is carried, before the first round.
    pub carry: Vec<Value>,
    /// What is carried into the next round.
    pub next_carry: Vec<Value>,
    /// The registers of one round's nodes, in the order of the text.
    pub nodes: Vec<Slot>,
    /// One round.
    pub round: u32,
    /// What follows some rounds.
    pub tail: u32,
    /// What follows no round, where that is allowed.
    pub tail_of_none: Option<u32>,
}

/// All templates, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The instructions. The first one rejects.
    pub code: Vec<Instruction>,
    /// Where to begin at a glue node, by the number of its kind.
    pub starts: [u32; 5],
    /// Where to begin for one template only.
    pub single: Vec<u32>,
    /// The kinds of glue nodes of each template.
    pub glue_kinds: Vec<Kinds>,
    /// The repetition of each template.
    pub repetitions: Vec<Option<Repetition>>,
    /// Steps without an instruction of their own.
    pub steps: Vec<Step>,
    /// Symbols that are compared with.
    pub symbols: IndexSet<Arc<str>>,
}

const REJECT: u32 = 0;

/// Among how many steps an equal one is looked for.
const NEIGHBOURS: usize = 256;

impl Program {
    /// The program of plans, given the numbers of those to try for each kind of glue node, in order.
    pub fn of(plans: &[Plan], by_kind: &[Vec<u16>; 5]) -> Self {
        let mut program = Self { code: vec![Instruction::new(Way::Reject)], ..Self::default() };
        let heads: Vec<Vec<Instruction>> = plans.iter().map(|plan| program.steps(plan, &plan.head)).collect();
        for (number, plan) in plans.iter().enumerate() {
            let repetition = program.repetition(plan, number as u16);
            program.repetitions.push(repetition);
            program.glue_kinds.push(kinds(plan.glue_kind));
            let start = program.in_order(&heads, &[number as u16]);
            program.single.push(start);
        }
        program.starts = std::array::from_fn(|kind| program.in_order(&heads, &by_kind[kind]));
        program
    }

    /// Templates tried in order. What fails in a step goes on at the next template that does not begin with that step.
    fn in_order(&mut self, heads: &[Vec<Instruction>], templates: &[u16]) -> u32 {
        let start = self.code.len() as u32;
        // Instructions whose other way is not known yet, with the number of steps before each.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut before: &[Instruction] = &[];
        for &template in templates {
            let head = &heads[template as usize];
            let shared = if open.is_empty() { 0 } else { head.iter().zip(before).take_while(|(a, b)| a == b).count() };
            let here = self.code.len() as u32;
            while let Some((place, _)) = open.pop_if(|(_, depth)| *depth >= shared) {
                self.code[place].otherwise = here;
            }
            let repeats = self.repetitions[template as usize].is_some();
            let ways = repeats.then_some(Way::Repeat(template)).into_iter().chain([Way::Accept(template)]);
            let last: Vec<Instruction> = ways.map(Instruction::new).collect();
            for (depth, &instruction) in head.iter().chain(&last).enumerate().skip(shared) {
                open.push((self.code.len(), depth));
                self.code.push(instruction);
            }
            before = head;
        }
        if templates.is_empty() { REJECT } else { start }
    }

    fn repetition(&mut self, plan: &Plan, template: u16) -> Option<Repetition> {
        let repetition = plan.repetition.as_ref()?;
        Some(Repetition {
            min: repetition.min,
            backward: repetition.backward,
            longest: repetition.longest,
            carry: repetition.carry.clone(),
            next_carry: repetition.next_carry.clone(),
            nodes: repetition.nodes.clone(),
            round: self.straight(plan, &repetition.steps, template),
            tail: self.straight(plan, &plan.tail, template),
            tail_of_none: plan.tail_of_none.as_ref().map(|steps| self.straight(plan, steps, template)),
        })
    }

    /// Steps of which all must succeed.
    fn straight(&mut self, plan: &Plan, steps: &[Step], template: u16) -> u32 {
        let start = self.code.len() as u32;
        let steps = self.steps(plan, steps);
        self.code.extend(steps.into_iter().chain([Instruction::new(Way::Accept(template))]));
        start
    }

    /// The instructions of steps: comparisons become part of the step before where they can.
    fn steps(&mut self, plan: &Plan, steps: &[Step]) -> Vec<Instruction> {
        let mut list: Vec<Instruction> = Vec::with_capacity(steps.len());
        for step in steps {
            if let Some(way) = way(step) {
                list.push(Instruction::new(way));
            } else if let Some((node, test, with)) = test(step) {
                let symmetric = matches!(test, Test::SameTask | Test::OtherTask);
                let taken = list
                    .last_mut()
                    .is_some_and(|last| last.take(node, test, with) || (symmetric && last.take(with, test, node)));
                if !taken {
                    list.push(Instruction { test, with, ..Instruction::new(Way::Stay(node)) });
                }
            } else {
                list.push(Instruction::new(Way::Step(self.step(plan, step))));
            }
        }
        list
    }

    /// The number of a step without an instruction of its own.
    fn step(&mut self, plan: &Plan, step: &Step) -> u32 {
        let step = self.with_own_symbols(plan, step);
        // Equal steps have equal numbers, so that templates can share them; neighbours do.
        let known = self.steps.iter().enumerate().rev().take(NEIGHBOURS).find(|(_, other)| **other == step);
        let known = known.map(|(number, _)| number);
        known.unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() - 1
        }) as u32
    }

    /// Plans number their symbols each for itself, the program numbers them all.
    fn with_own_symbols(&mut self, plan: &Plan, step: &Step) -> Step {
        let mut step = step.clone();
        let mut renumber = |symbol: &mut u32| {
            let name = Arc::clone(&plan.symbols[*symbol as usize]);
            *symbol = self.symbols.insert_full(name).0 as u32;
        };
        let mut value = |value: &mut Value| {
            if let Value::Symbol(symbol) = value {
                renumber(symbol);
            }
        };
        match &mut step {
            Step::Equal(left, right) | Step::Compare(left, _, right) => [left, right].into_iter().for_each(value),
            Step::CompareExpressions(Expression(left), _, Expression(right)) => {
                for part in left.iter_mut().chain(right) {
                    if let ExpressionPart::Value(part) = part {
                        value(part);
                    }
                }
            }
            Step::Holds { arguments, .. } => {
                for argument in arguments {
                    if let RelationArgument::Symbol(symbol) = argument {
                        renumber(symbol);
                    }
                }
            }
            Step::Go { .. } | Step::Distinct(..) | Step::NotStarts(..) => {}
        }
        step
    }
}

/// The way of a step that has an instruction of its own.
fn way(step: &Step) -> Option<Way> {
    let Step::Go { to, edge, kind, consumed: true } = step else { return None };
    let (to, kinds) = (*to, kinds(*kind));
    Some(match *edge {
        Edge::InThread(from, 1) => Way::NextInThread(from, to, kinds),
        Edge::InThread(from, -1) => Way::PreviousInThread(from, to, kinds),
        Edge::InTask(from, 1) => Way::NextInTask(from, to, kinds),
        Edge::BeginOf(from) => Way::BeginOf(from, to, kinds),
        Edge::Join(Value::Field(from, Field::Target, 0)) => Way::JoinOf(from, to, kinds),
        Edge::First(Value::Field(from, Field::Thread, 0)) => Way::BeginOfThreadOf(from, to, kinds),
        Edge::ForkOfThreadOf(from) | Edge::Fork(Value::Field(from, Field::Thread, 0)) => {
            Way::ForkOfThreadOf(from, to, kinds)
        }
        _ => return None,
    })
}

/// The test of a step that has one of its own: how a node compares with another.
fn test(step: &Step) -> Option<(Slot, Test, Slot)> {
    let (left, comparison, right) = match step {
        Step::Equal(left, right) => (left, Comparison::Equal, right),
        Step::Compare(left, comparison, right) => (left, *comparison, right),
        _ => return None,
    };
    if let (Value::Field(left, Field::Counter, 0), Comparison::Equal, Value::Field(right, Field::Counter, 1)) =
        (*left, comparison, *right)
    {
        return Some((left, Test::Next, right));
    }
    let (Value::Field(left, field, 0), Value::Field(right, other, 0)) = (*left, *right) else { return None };
    Some(match (field, comparison, other) {
        (Field::Task, Comparison::Equal, Field::Task) => (left, Test::SameTask, right),
        (Field::Task, Comparison::NotEqual, Field::Task) => (left, Test::OtherTask, right),
        (Field::Counter, Comparison::Greater, Field::Counter) => (left, Test::Later, right),
        (Field::Counter, Comparison::Less, Field::Counter) => (right, Test::Later, left),
        (Field::Thread, Comparison::Equal, Field::Target) => (left, Test::InThreadStarted, right),
        (Field::Target, Comparison::Equal, Field::Thread) => (right, Test::InThreadStarted, left),
        (Field::Thread, Comparison::NotEqual, Field::Target) => (left, Test::OutOfThreadStarted, right),
        (Field::Target, Comparison::NotEqual, Field::Thread) => (right, Test::OutOfThreadStarted, left),
        _ => return None,
    })
}
