//! The plans of all templates as one program for a small machine.
//!
//! For each kind of glue node the program tries the templates in order. Steps that a template begins with like the one
//! before it are run once for both: a step that fails goes on at the next template that does not share it. The most
//! frequent steps have instructions of their own, which read nothing but registers and one node.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::matcher::{CarryOut, carry_out};
use crate::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, Loop, RelationArgument, Slot, TemplatePlan, TemplateStep, Value,
};
use dyelog_datalog::ast::Comparison;

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

/// How an instruction comes to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the next node in the thread.
    NextInThread,
    /// To the previous node in the thread.
    PreviousInThread,
    /// To the next node in the task.
    NextInTask,
    /// To the first node of the thread that a fork starts.
    BeginOf,
    /// To the node that waits for the thread that a fork starts.
    JoinOf,
    /// To the first node of a node's thread.
    BeginOfThreadOf,
    /// To the fork of a node's thread.
    ForkOfThreadOf,
    /// To a node that is bound already.
    Stay,
    /// Nowhere: any other step, by its number.
    Step,
    /// Nowhere: walks a repetition, by its number, and those that follow it; with it the template fits.
    Repeat,
}

impl Way {
    /// All ways, by their numbers.
    pub const ALL: [Self; 10] = [
        Self::NextInThread,
        Self::PreviousInThread,
        Self::NextInTask,
        Self::BeginOf,
        Self::JoinOf,
        Self::BeginOfThreadOf,
        Self::ForkOfThreadOf,
        Self::Stay,
        Self::Step,
        Self::Repeat,
    ];
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

impl Test {
    /// All tests, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Any,
        Self::SameTask,
        Self::OtherTask,
        Self::Later,
        Self::Next,
        Self::LaterInTask,
        Self::NextInTask,
        Self::InThreadStarted,
        Self::OutOfThreadStarted,
    ];

    /// Both at once, where there is a test for that.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, test) => Some(test),
            (Self::SameTask, Self::Later) | (Self::Later, Self::SameTask) => Some(Self::LaterInTask),
            (Self::SameTask, Self::Next) | (Self::Next, Self::SameTask) => Some(Self::NextInTask),
            _ => None,
        }
    }

    /// Whether it is the same with the nodes exchanged.
    fn is_symmetric(self) -> bool {
        matches!(self, Self::SameTask | Self::OtherTask)
    }
}

/// Where a run goes on: at an instruction, or nowhere, since it is known which template fits, or that none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(u32);

impl Target {
    /// No template fits.
    pub const REJECT: Self = Self(u32::MAX);
    /// Beyond all instructions: that template fits whose number is added.
    const ACCEPT: u32 = 1 << 31;

    fn accept(template: u16) -> Self {
        Self(Self::ACCEPT + u32::from(template))
    }

    /// The routine there; [`None`] where the run has ended.
    #[inline]
    pub(super) fn routine(self, code: &[Routine]) -> Option<&Routine> {
        code.get(self.0 as usize)
    }

    /// The template that fits, where the run has ended.
    #[inline]
    pub fn accepted(self) -> Option<u16> {
        (self != Self::REJECT).then_some(self.0 as u16)
    }
}

/// An instruction: goes a way to a node, binds it if it is of one of some kinds and free, and compares it with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// How it comes to a node.
    pub way: Way,
    /// From which node.
    pub from: Slot,
    /// The register that the node is bound to, or where it is already.
    pub to: Slot,
    /// The kinds that it may be of.
    pub kinds: Kinds,
    /// How it must compare.
    pub test: Test,
    /// With which node.
    pub with: Slot,
    /// Of a step or of a template.
    pub number: u32,
    /// Where to go on when it succeeds.
    pub then: Target,
    /// Where to go on when it fails.
    pub otherwise: Target,
}

/// An instruction with the code that carries it out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Routine {
    pub(super) carry_out: CarryOut,
    pub(super) instruction: Instruction,
}

impl Instruction {
    fn new(way: Way, from: Slot, to: Slot, kinds: Kinds) -> Self {
        let (then, otherwise) = (Target::REJECT, Target::REJECT);
        Self { way, from, to, kinds, test: Test::Any, with: 0, number: 0, then, otherwise }
    }

    fn numbered(way: Way, number: u32) -> Self {
        Self { number, ..Self::new(way, 0, 0, 0) }
    }

    /// The node that it comes to.
    fn comes_to(self) -> Option<Slot> {
        (!matches!(self.way, Way::Step | Way::Repeat)).then_some(self.to)
    }

    /// Takes a test in, if it can.
    fn take(&mut self, node: Slot, test: Test, with: Slot) -> bool {
        if self.comes_to() != Some(node) || (self.test != Test::Any && self.with != with) {
            return false;
        }
        let Some(both) = self.test.and(test) else { return false };
        (self.test, self.with) = (both, with);
        true
    }
}

/// Where the parts of a repetition are.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// Which of its template's, from 0.
    pub sequence: u8,
    /// How many values those before it carry.
    pub carried_before: u8,
    /// Its conditions on some round, a bit each.
    pub noted: u64,
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
    pub round: Target,
    /// What follows some rounds.
    pub tail: Target,
    /// What follows no round, where that is allowed.
    pub tail_of_none: Option<Target>,
}

/// All templates, ready to run.
#[derive(Clone, Debug)]
pub struct TemplateProgram {
    /// The instructions.
    pub(super) code: Vec<Routine>,
    /// Where to begin at a glue node, by the number of its kind.
    pub starts: [Target; 5],
    /// Where to begin for one template only.
    pub single: Vec<Target>,
    /// The kinds of glue nodes of each template.
    pub glue_kinds: Vec<Kinds>,
    /// The repetitions of all templates.
    pub repetitions: Vec<Repetition>,
    /// The first of each template.
    first_repetition: Vec<Option<u32>>,
    /// Steps without an instruction of their own.
    pub steps: Vec<TemplateStep>,
    /// Symbols that are compared with.
    pub symbols: IndexSet<Arc<str>>,
}

impl Default for TemplateProgram {
    fn default() -> Self {
        Self {
            code: Vec::new(),
            starts: [Target::REJECT; 5],
            single: Vec::new(),
            glue_kinds: Vec::new(),
            repetitions: Vec::new(),
            first_repetition: Vec::new(),
            steps: Vec::new(),
            symbols: IndexSet::new(),
        }
    }
}

/// Among how many steps an equal one is looked for.
const NEIGHBOURS: usize = 256;

impl TemplateProgram {
    /// The program of plans, given the numbers of those to try for each kind of glue node, in order.
    pub fn of(plans: &[TemplatePlan], by_kind: &[Vec<u16>; 5]) -> Self {
        let mut program = Self::default();
        let heads: Vec<Vec<Instruction>> = plans.iter().map(|plan| program.steps(plan, &plan.head)).collect();
        for (number, plan) in plans.iter().enumerate() {
            let first = program.walks(plan, number as u16);
            program.first_repetition.push(first);
            program.glue_kinds.push(kinds(plan.glue_kind));
            let start = program.in_order(&heads, &[number as u16]);
            program.single.push(start);
        }
        program.starts = std::array::from_fn(|kind| program.in_order(&heads, &by_kind[kind]));
        program
    }

    /// Templates tried in order. What fails in a step goes on at the next template that does not begin with that step.
    fn in_order(&mut self, heads: &[Vec<Instruction>], templates: &[u16]) -> Target {
        let mut start = Target::REJECT;
        // Instructions whose other way is not known yet, with the number of steps before each.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut before: &[Instruction] = &[];
        for (number, &template) in templates.iter().enumerate() {
            let head = &heads[template as usize];
            let shared = if open.is_empty() { 0 } else { head.iter().zip(before).take_while(|(a, b)| a == b).count() };
            let repeat =
                self.first_repetition[template as usize].map(|first| Instruction::numbered(Way::Repeat, first));
            let first = self.code.len();
            let here = self.chain(head[shared..].iter().copied().chain(repeat), template);
            while let Some((place, _)) = open.pop_if(|(_, depth)| *depth >= shared) {
                self.code[place].instruction.otherwise = here;
            }
            open.extend((first..self.code.len()).map(|place| (place, shared + place - first)));
            if number == 0 {
                start = here;
            }
            if open.is_empty() {
                // This one always fits.
                break;
            }
            before = head;
        }
        start
    }

    /// Adds instructions of which all must succeed; with them the template fits.
    fn chain(&mut self, instructions: impl IntoIterator<Item = Instruction>, template: u16) -> Target {
        let first = self.code.len();
        let routine = |instruction: Instruction| Routine { carry_out: carry_out(&instruction), instruction };
        self.code.extend(instructions.into_iter().map(routine));
        let end = self.code.len();
        let target = |place| if place < end { Target(place as u32) } else { Target::accept(template) };
        for place in first..end {
            self.code[place].instruction.then = target(place + 1);
        }
        target(first)
    }

    /// The repetitions of a plan, each with the next one in what follows it. Gives back the number of the first.
    fn walks(&mut self, plan: &TemplatePlan, template: u16) -> Option<u32> {
        let mut next = None;
        for (sequence, repetition) in plan.repetitions.iter().enumerate().rev() {
            let repetition = self.repetition(plan, (sequence as u8, repetition), template, next);
            next = Some(self.repetitions.len() as u32);
            self.repetitions.push(repetition);
        }
        next
    }

    fn repetition(
        &mut self,
        plan: &TemplatePlan,
        (sequence, repetition): (u8, &Loop),
        template: u16,
        next: Option<u32>,
    ) -> Repetition {
        Repetition {
            sequence,
            carried_before: repetition.carried_before,
            noted: repetition.noted,
            min: repetition.min,
            backward: repetition.backward,
            longest: repetition.longest,
            carry: repetition.carry.clone(),
            next_carry: repetition.next_carry.clone(),
            nodes: repetition.nodes.clone(),
            round: self.straight(plan, &repetition.steps, template, None),
            tail: self.straight(plan, &repetition.tail, template, next),
            tail_of_none: repetition.tail_of_none.as_ref().map(|steps| self.straight(plan, steps, template, next)),
        }
    }

    /// Steps of which all must succeed, and then a repetition.
    fn straight(&mut self, plan: &TemplatePlan, steps: &[TemplateStep], template: u16, then: Option<u32>) -> Target {
        let steps = self.steps(plan, steps);
        self.chain(steps.into_iter().chain(then.map(|then| Instruction::numbered(Way::Repeat, then))), template)
    }

    /// The instructions of steps: comparisons become part of the step before where they can.
    fn steps(&mut self, plan: &TemplatePlan, steps: &[TemplateStep]) -> Vec<Instruction> {
        let mut list: Vec<Instruction> = Vec::with_capacity(steps.len());
        for step in steps {
            if let Some(instruction) = going(step) {
                list.push(instruction);
            } else if let Some((node, test, with)) = test(step) {
                let symmetric = test.is_symmetric();
                let taken = list
                    .last_mut()
                    .is_some_and(|last| last.take(node, test, with) || (symmetric && last.take(with, test, node)));
                if !taken {
                    list.push(Instruction { test, with, ..Instruction::new(Way::Stay, node, node, 0) });
                }
            } else {
                list.push(Instruction::numbered(Way::Step, self.step(plan, step)));
            }
        }
        list
    }

    /// The number of a step without an instruction of its own.
    fn step(&mut self, plan: &TemplatePlan, step: &TemplateStep) -> u32 {
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
    fn with_own_symbols(&mut self, plan: &TemplatePlan, step: &TemplateStep) -> TemplateStep {
        if let TemplateStep::Round(condition) | TemplateStep::Rounds(condition) = step {
            let mut condition = condition.clone();
            condition.steps = condition.steps.iter().map(|step| self.with_own_symbols(plan, step)).collect();
            return if matches!(step, TemplateStep::Round(_)) {
                TemplateStep::Round(condition)
            } else {
                TemplateStep::Rounds(condition)
            };
        }
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
            TemplateStep::Equal(left, right) | TemplateStep::Compare(left, _, right) => {
                [left, right].into_iter().for_each(value);
            }
            TemplateStep::CompareExpressions(Expression(left), _, Expression(right)) => {
                for part in left.iter_mut().chain(right) {
                    if let ExpressionPart::Value(part) = part {
                        value(part);
                    }
                }
            }
            TemplateStep::Holds { arguments, .. } => {
                for argument in arguments {
                    if let RelationArgument::Symbol(symbol) = argument {
                        renumber(symbol);
                    }
                }
            }
            TemplateStep::Go { .. }
            | TemplateStep::Distinct(..)
            | TemplateStep::Named(..)
            | TemplateStep::NotStarts(..)
            | TemplateStep::Round(_)
            | TemplateStep::Rounds(_)
            | TemplateStep::Seen(_)
            | TemplateStep::Recall(_)
            | TemplateStep::Apart(_) => {}
        }
        step
    }
}

/// The instruction of a step that has a way of its own.
fn going(step: &TemplateStep) -> Option<Instruction> {
    let TemplateStep::Go { to, edge, kind, consumed: true } = step else { return None };
    let (way, from) = match *edge {
        Edge::InThread(from, 1) => (Way::NextInThread, from),
        Edge::InThread(from, -1) => (Way::PreviousInThread, from),
        Edge::InTask(from, 1) => (Way::NextInTask, from),
        Edge::BeginOf(from) => (Way::BeginOf, from),
        Edge::Join(Value::Field(from, Field::Target, 0)) => (Way::JoinOf, from),
        Edge::First(Value::Field(from, Field::Thread, 0)) => (Way::BeginOfThreadOf, from),
        Edge::ForkOfThreadOf(from) | Edge::Fork(Value::Field(from, Field::Thread, 0)) => (Way::ForkOfThreadOf, from),
        _ => return None,
    };
    Some(Instruction::new(way, from, *to, kinds(*kind)))
}

/// The test of a step that has one of its own: how a node compares with another.
fn test(step: &TemplateStep) -> Option<(Slot, Test, Slot)> {
    let (left, comparison, right) = match step {
        TemplateStep::Equal(left, right) => (left, Comparison::Equal, right),
        TemplateStep::Compare(left, comparison, right) => (left, *comparison, right),
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
