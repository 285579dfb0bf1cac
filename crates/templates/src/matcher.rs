//! Runs the program of the templates over a TOEG: our engine.

#![expect(clippy::inline_always, reason = "part of one loop over all instructions, apart for reading")]

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::counters::TaskCounters;
use crate::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, MAX_SEQUENCES, MAX_SLOTS, RelationArgument, RoundCondition, Slot,
    TemplateStep, Value, apply,
};
use crate::program::{Instruction, Repetition, Routine, Target, TemplateProgram, Test, Way, kind_index};
use crate::visits::Visits;
use dyelog_datalog::ast::Quantifier;
use dyelog_diagnostic::names::Name;
use dyelog_trace::toeg::{NONE, Thread};
use dyelog_trace::{Event, Kind, NodeId, Toeg, TraceNames};

/// How many registers there are: a power of two, so that a register's number is never out of bounds.
pub const REGISTERS: usize = MAX_SLOTS.next_power_of_two();

/// A template that fits at a glue node.
#[derive(Clone, Debug)]
pub struct Match {
    /// Index of the plan.
    pub template: u16,
    /// The registers. Those that the template does not use hold what was tried before.
    pub slots: [NodeId; REGISTERS],
    /// The nodes of all rounds, of one sequence after the other, round 1 first.
    pub rounds: Vec<NodeId>,
    /// Where the sequences are among them.
    pub sequences: [Walked; MAX_SEQUENCES],
}

/// The rounds of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Where they begin among the nodes of all rounds.
    pub start: u32,
    /// How many there are.
    pub count: u32,
}

impl Default for Match {
    fn default() -> Self {
        Self {
            template: 0,
            slots: [NONE; REGISTERS],
            rounds: Vec::new(),
            sequences: [Walked::default(); MAX_SEQUENCES],
        }
    }
}

impl Match {
    /// The node in a register.
    #[inline]
    pub fn slot(&self, slot: Slot) -> NodeId {
        self.slots[slot as usize % REGISTERS]
    }

    /// How many rounds a sequence has.
    pub fn count(&self, sequence: u8) -> u32 {
        self.sequences.get(usize::from(sequence)).map_or(0, |walked| walked.count)
    }

    /// The nodes of a sequence's rounds, which have so many each.
    pub fn of_sequence(&self, sequence: usize, size: usize) -> &[NodeId] {
        let Some(walked) = self.sequences.get(sequence) else { return &[] };
        let start = walked.start as usize;
        self.rounds.get(start..start + walked.count as usize * size).unwrap_or_default()
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
    Name(Name),
    /// A symbol that the trace does not have.
    Unknown,
}

/// The symbols that a program compares with, as numbers of the trace's names; -1 where the trace does not have them.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Vec<i64>);

impl Symbols {
    /// Looks the program's symbols up.
    pub fn of(program: &TemplateProgram, names: &TraceNames) -> Self {
        let number = |symbol: &str| names.names.get(symbol).map_or(-1, |name| i64::from(name.0));
        Self(program.symbols.iter().map(|symbol| number(symbol)).collect())
    }
}

/// What a matcher needs to know while it runs.
pub struct Matcher<'a> {
    /// The templates.
    pub program: &'a TemplateProgram,
    /// The graph.
    pub toeg: &'a Toeg,
    /// Names of the trace.
    pub names: &'a TraceNames,
    /// The program's symbols.
    pub symbols: &'a Symbols,
    /// Relations of the rule file.
    pub relations: &'a dyn Relations,
    /// How many more rounds of repetitions may be walked in this operation.
    pub budget: Cell<u64>,
    /// Which visits the operation's threads go on with.
    pub visits: Visits,
    /// The operation's nodes by task node counter.
    pub counters: TaskCounters,
    /// Which templates start where, as far as conditions asked.
    pub starting: Starting,
}

/// Which templates have a candidate at which nodes of an operation.
#[derive(Debug, Default)]
pub struct Starting(RefCell<FxHashMap<(u16, NodeId), bool>>);

/// What the registers hold beside nodes.
pub struct Registers<'a> {
    /// The events of the nodes.
    events: [&'a Event; REGISTERS],
    /// What repetitions carry from one round to the next, one after the other.
    carry: Vec<i64>,
    /// What one will carry then.
    next_carry: Vec<i64>,
    /// The number of the round at hand.
    running: i64,
    /// Which conditions on some round have held of one, a bit each.
    seen: u64,
}

impl<'a> Registers<'a> {
    /// Registers for a graph, with anything in them.
    pub fn of(toeg: &'a Toeg) -> Self {
        Self {
            events: [toeg.event(toeg.root()); REGISTERS],
            carry: Vec::new(),
            next_carry: Vec::new(),
            running: 0,
            seen: 0,
        }
    }
}

/// The kind of a node without its thread.
#[inline]
pub fn tag(kind: Kind) -> KindTag {
    match kind {
        Kind::Begin => KindTag::Begin,
        Kind::Activity => KindTag::Activity,
        Kind::End => KindTag::End,
        Kind::Fork(_) => KindTag::Fork,
        Kind::Join(_) => KindTag::Join,
    }
}

/// The bit of a node's flags that says that a match has consumed it.
pub const PROCESSED: u8 = 1;

impl<'a> Matcher<'a> {
    /// Tries one template at a glue node. `processed` holds a byte of flags a node; without it, all nodes are free.
    pub fn try_at(&self, template: usize, glue: NodeId, processed: Option<&[u8]>, found: &mut Match) -> bool {
        let kind = kind_index(tag(self.toeg.event(glue).kind));
        let start = self.program.single[template];
        self.program.glue_kinds[template] >> kind & 1 != 0
            && self.run(start, glue, processed.unwrap_or_default(), &mut Registers::of(self.toeg), found)
    }

    /// Whether a template has a candidate at a glue node, whatever has been processed. Each is asked once. Recursion is as deep
    /// as templates ask for each other, which the checks limit.
    fn starts(&self, template: u16, glue: NodeId) -> bool {
        if let Some(known) = self.starting.0.borrow().get(&(template, glue)) {
            return *known;
        }
        let starts = self.try_at(template.into(), glue, None, &mut Match::default());
        self.starting.0.borrow_mut().insert((template, glue), starts);
        starts
    }

    /// Finds the first template in order that fits at a glue node.
    #[inline]
    pub fn first_at(&self, glue: NodeId, flags: &[u8], registers: &mut Registers<'a>, found: &mut Match) -> bool {
        let kind = kind_index(tag(self.toeg.event(glue).kind));
        self.run(self.program.starts[kind], glue, flags, registers, found)
    }

    #[inline(always)]
    fn run(&self, start: Target, glue: NodeId, flags: &[u8], registers: &mut Registers<'a>, found: &mut Match) -> bool {
        registers.events[0] = self.toeg.event(glue);
        found.slots[0] = glue;
        if !found.rounds.is_empty() {
            found.rounds.clear();
            found.sequences = [Walked::default(); MAX_SEQUENCES];
        }
        let events = &self.toeg.operation().events;
        let mut run = Run { matcher: self, events, flags, registers, found };
        match run.from(start) {
            Some(template) => {
                found.template = template;
                true
            }
            None => false,
        }
    }
}

/// The code that carries out an instruction. There is one for each way and test, so that neither is looked up in a run.
pub(super) type CarryOut = for<'r, 'm, 'a, 'i> fn(&'r mut Run<'m, 'a>, &'i Instruction) -> bool;

/// The code for an instruction.
pub(super) fn carry_out(instruction: &Instruction) -> CarryOut {
    match instruction.way {
        Way::NextInThread => of_test::<{ Way::NextInThread as usize }>(instruction.test),
        Way::PreviousInThread => of_test::<{ Way::PreviousInThread as usize }>(instruction.test),
        Way::NextInTask => of_test::<{ Way::NextInTask as usize }>(instruction.test),
        Way::BeginOf => of_test::<{ Way::BeginOf as usize }>(instruction.test),
        Way::JoinOf => of_test::<{ Way::JoinOf as usize }>(instruction.test),
        Way::BeginOfThreadOf => of_test::<{ Way::BeginOfThreadOf as usize }>(instruction.test),
        Way::ForkOfThreadOf => of_test::<{ Way::ForkOfThreadOf as usize }>(instruction.test),
        Way::Stay => of_test::<{ Way::Stay as usize }>(instruction.test),
        Way::Step => of_both::<{ Way::Step as usize }, { Test::Any as usize }>,
        Way::Repeat => of_both::<{ Way::Repeat as usize }, { Test::Any as usize }>,
    }
}

fn of_test<const WAY: usize>(test: Test) -> CarryOut {
    match test {
        Test::Any => of_both::<WAY, { Test::Any as usize }>,
        Test::SameTask => of_both::<WAY, { Test::SameTask as usize }>,
        Test::OtherTask => of_both::<WAY, { Test::OtherTask as usize }>,
        Test::Later => of_both::<WAY, { Test::Later as usize }>,
        Test::Next => of_both::<WAY, { Test::Next as usize }>,
        Test::LaterInTask => of_both::<WAY, { Test::LaterInTask as usize }>,
        Test::NextInTask => of_both::<WAY, { Test::NextInTask as usize }>,
        Test::InThreadStarted => of_both::<WAY, { Test::InThreadStarted as usize }>,
        Test::OutOfThreadStarted => of_both::<WAY, { Test::OutOfThreadStarted as usize }>,
    }
}

fn of_both<const WAY: usize, const TEST: usize>(run: &mut Run<'_, '_>, instruction: &Instruction) -> bool {
    run.go_and_test(const { Way::ALL[WAY] }, const { Test::ALL[TEST] }, instruction)
}

/// What fits of a sequence.
struct Best {
    /// How many rounds.
    count: u32,
    /// The registers.
    slots: [NodeId; REGISTERS],
    /// The nodes of later sequences' rounds.
    later: Vec<NodeId>,
    /// Where those are.
    walked: [Walked; MAX_SEQUENCES],
}

/// A run of the program at one glue node.
pub(super) struct Run<'m, 'a> {
    matcher: &'m Matcher<'a>,
    events: &'a [Event],
    /// Empty where all nodes are free.
    flags: &'m [u8],
    registers: &'m mut Registers<'a>,
    found: &'m mut Match,
}

impl<'a> Run<'_, 'a> {
    /// Runs instructions until it is known which template fits, or that none does.
    #[inline(always)]
    fn from(&mut self, start: Target) -> Option<u16> {
        let code = &self.matcher.program.code[..];
        let mut at = start;
        while let Some(Routine { carry_out, instruction }) = at.routine(code) {
            if carry_out(self, instruction) {
                at = instruction.then;
            } else {
                // Keeps this a branch. As a choice between two values the next instruction would wait for the node that
                // this one looks at, where the processor can guess and go on.
                std::hint::black_box(());
                at = instruction.otherwise;
            }
        }
        at.accepted()
    }

    /// Goes a way to a node, and tests where it comes to.
    #[inline(always)]
    fn go_and_test(&mut self, way: Way, test: Test, instruction: &Instruction) -> bool {
        let Instruction { from, to, .. } = *instruction;
        let node = match way {
            // Threads are runs of nodes that begin with a begin and end with an end.
            Way::NextInThread if self.event(from).kind == Kind::End => NONE,
            Way::NextInThread => self.found.slot(from) + 1,
            Way::PreviousInThread if self.event(from).kind == Kind::Begin => NONE,
            Way::PreviousInThread => self.found.slot(from) - 1,
            Way::NextInTask => self.matcher.toeg.next_in_task(self.found.slot(from)),
            Way::BeginOf => self.started(from).map_or(NONE, |thread| thread.first),
            Way::JoinOf => self.started(from).map_or(NONE, |thread| thread.join),
            Way::BeginOfThreadOf => self.thread_of(from).map_or(NONE, |thread| thread.first),
            Way::ForkOfThreadOf => self.thread_of(from).map_or(NONE, |thread| thread.fork),
            Way::Stay => return passes(test, self.event(to), self.event(instruction.with)),
            Way::Step => return self.step(instruction.number),
            Way::Repeat => return self.repeat(instruction.number),
        };
        // NONE is beyond all nodes.
        let Some(event) = self.events.get(node as usize) else { return false };
        if instruction.kinds >> kind_index(tag(event.kind)) & 1 == 0 {
            return false;
        }
        self.found.slots[to as usize % REGISTERS] = node;
        self.registers.events[to as usize % REGISTERS] = event;
        // Most nodes that would fit are free, so that is asked last: flags lie elsewhere in memory.
        passes(test, event, self.event(instruction.with))
            && self.flags.get(node as usize).is_none_or(|flags| flags & PROCESSED == 0)
    }

    #[inline]
    fn event(&self, slot: Slot) -> &'a Event {
        self.registers.events[slot as usize % REGISTERS]
    }

    /// The thread that a fork starts, or that a join waits for.
    #[inline]
    fn started(&self, slot: Slot) -> Option<&'a Thread> {
        match self.event(slot).kind {
            Kind::Fork(thread) | Kind::Join(thread) => self.matcher.toeg.thread(thread),
            _ => None,
        }
    }

    #[inline]
    fn thread_of(&self, slot: Slot) -> Option<&'a Thread> {
        self.matcher.toeg.thread(self.event(slot).thread)
    }

    #[inline(never)]
    fn all(&mut self, start: Target) -> bool {
        self.from(start).is_some()
    }

    /// Walks a sequence and what follows it. Later ones are walked anew for each number of its rounds, up to the first number that
    /// fits, or the last where the longest is wanted.
    #[inline(never)]
    fn repeat(&mut self, number: u32) -> bool {
        let program = self.matcher.program;
        let repetition = &program.repetitions[number as usize];
        let own = usize::from(repetition.sequence);
        if own == 0 {
            self.found.rounds.clear();
        }
        let start = self.found.rounds.len();
        self.found.sequences[own] = Walked { start: start as u32, count: 0 };
        let none = repetition.tail_of_none.is_some_and(|tail| repetition.min == 0 && self.all(tail));
        let mut best = none.then(|| Best {
            count: 0,
            slots: self.found.slots,
            later: Vec::new(),
            walked: [Walked::default(); MAX_SEQUENCES],
        });
        if !none || repetition.longest {
            self.rounds(repetition, start, &mut best);
        }
        let found = &mut *self.found;
        let Some(best) = best else {
            found.rounds.truncate(start);
            found.sequences[own] = Walked::default();
            return false;
        };
        let size = repetition.nodes.len();
        let end = start + best.count as usize * size;
        found.slots = best.slots;
        if repetition.longest {
            found.rounds.truncate(end);
            found.rounds.extend(best.later);
            found.sequences[own + 1..].copy_from_slice(&best.walked[own + 1..]);
        }
        found.sequences[own].count = best.count;
        if repetition.backward {
            // Rounds were walked from the last to the first.
            let rounds = &mut found.rounds[start..end];
            rounds.reverse();
            rounds.chunks_mut(size).for_each(<[NodeId]>::reverse);
        }
        true
    }

    fn rounds(&mut self, repetition: &Repetition, start: usize, best: &mut Option<Best>) {
        let own = usize::from(repetition.sequence);
        self.set_carry(&repetition.carry, repetition.carried_before);
        self.registers.seen &= !repetition.noted;
        let mut count = 0;
        loop {
            self.registers.running = i64::from(count) + 1;
            if !self.all(repetition.round) {
                return;
            }
            let budget = self.matcher.budget.get();
            if budget == 0 {
                return;
            }
            self.matcher.budget.set(budget - 1);
            count += 1;
            let found = &mut *self.found;
            found.sequences[own] = Walked { start: start as u32, count };
            found.rounds.extend(repetition.nodes.iter().map(|slot| found.slots[*slot as usize % REGISTERS]));
            let end = found.rounds.len();
            if count >= repetition.min && self.all(repetition.tail) {
                let found = &mut *self.found;
                let later = if repetition.longest { found.rounds.split_off(end) } else { Vec::new() };
                *best = Some(Best { count, slots: found.slots, later, walked: found.sequences });
                if !repetition.longest {
                    return;
                }
            }
            self.set_carry(&repetition.next_carry, repetition.carried_before);
        }
    }

    /// Sets what a sequence carries, behind what those before it do.
    fn set_carry(&mut self, values: &[Value], before: u8) {
        // Values may be what is carried now.
        let mut next = std::mem::take(&mut self.registers.next_carry);
        next.clear();
        next.extend(values.iter().map(|value| self.value(*value)));
        self.registers.carry.truncate(before.into());
        self.registers.carry.extend_from_slice(&next);
        self.registers.next_carry = next;
    }

    #[inline(never)]
    fn step(&mut self, number: u32) -> bool {
        let program = self.matcher.program;
        self.passes(&program.steps[number as usize])
    }

    fn passes(&mut self, step: &TemplateStep) -> bool {
        match step {
            TemplateStep::Go { to, edge, kind, consumed } => self.go(*to, *edge, *kind, *consumed),
            TemplateStep::Equal(left, right) => self.value(*left) == self.value(*right),
            TemplateStep::Compare(left, comparison, right) => comparison.holds(self.value(*left), self.value(*right)),
            TemplateStep::CompareExpressions(left, comparison, right) => {
                match (self.expression(left), self.expression(right)) {
                    (Some(left), Some(right)) => comparison.holds(left, right),
                    _ => false,
                }
            }
            TemplateStep::Distinct(left, right) => self.found.slot(*left) != self.found.slot(*right),
            TemplateStep::Named(slot, field) => self.field(*slot, *field) != i64::from(Name::NONE.0),
            TemplateStep::Holds { negated, relation, arguments } => {
                self.relation(relation, arguments) == Some(!*negated)
            }
            TemplateStep::NotStarts(template, slot) => {
                let node = self.found.slot(*slot);
                !self.matcher.starts(*template, node)
            }
            TemplateStep::Round(condition) => self.round(condition),
            TemplateStep::Rounds(condition) => self.all_rounds(condition),
            TemplateStep::Seen(number) => self.registers.seen >> number & 1 != 0,
            TemplateStep::Recall(recall) => {
                let walked = self.found.sequences[usize::from(recall.sequence)];
                let place = recall.place(walked.count, self.registers.running);
                let place = place.map(|place| walked.start as usize + place);
                let Some(&node) = place.and_then(|place| self.found.rounds.get(place)) else { return false };
                self.put(recall.to, node);
                true
            }
            TemplateStep::Apart(slots) => self.apart(slots),
        }
    }

    /// Whether the nodes of all sequences and of these registers are different ones.
    fn apart(&self, slots: &[Slot]) -> bool {
        let fixed = slots.iter().map(|slot| self.found.slot(*slot));
        let mut nodes: Vec<NodeId> = fixed.chain(self.found.rounds.iter().copied()).collect();
        let Some(left) = self.matcher.budget.get().checked_sub(nodes.len() as u64) else {
            self.matcher.budget.set(0);
            return false;
        };
        self.matcher.budget.set(left);
        nodes.sort_unstable();
        nodes.windows(2).all(|two| two[0] != two[1])
    }

    /// Puts a node into a register.
    fn put(&mut self, to: Slot, node: NodeId) {
        self.found.slots[to as usize % REGISTERS] = node;
        self.registers.events[to as usize % REGISTERS] = self.matcher.toeg.event(node);
    }

    /// What has to hold of the round that is being walked.
    fn round(&mut self, condition: &RoundCondition) -> bool {
        let some = condition.quantifier == Quantifier::Some;
        if some && self.registers.seen >> condition.number & 1 != 0 {
            return true;
        }
        if condition.pair {
            let start = self.found.sequences[usize::from(condition.sequence)].start as usize;
            let before = self.found.rounds.len().checked_sub(condition.size.into());
            // The first round has none before it.
            let Some(before) = before.filter(|before| *before >= start) else { return true };
            self.put_round(&condition.here, before);
        }
        let holds = condition.steps.iter().all(|step| self.passes(step));
        if some {
            self.registers.seen |= u64::from(holds) << condition.number;
        }
        holds || some
    }

    /// What has to hold of rounds that have been walked.
    fn all_rounds(&mut self, condition: &RoundCondition) -> bool {
        let some = condition.quantifier == Quantifier::Some;
        let walked = self.found.sequences[usize::from(condition.sequence)];
        let start = walked.start as usize;
        for (number, here, next) in condition.places(walked.count) {
            let budget = self.matcher.budget.get();
            if budget == 0 {
                return false;
            }
            self.matcher.budget.set(budget - 1);
            self.registers.running = number;
            self.put_round(&condition.here, start + here);
            self.put_round(&condition.next, start + next);
            if condition.steps.iter().all(|step| self.passes(step)) == some {
                return some;
            }
        }
        !some
    }

    /// Puts nodes of the round that begins there among all nodes of rounds into registers.
    fn put_round(&mut self, nodes: &[(Slot, u8)], from: usize) {
        for (to, node) in nodes {
            let node = self.found.rounds[from + usize::from(*node)];
            self.put(*to, node);
        }
    }

    fn go(&mut self, to: Slot, edge: Edge, kind: KindTag, consumed: bool) -> bool {
        let toeg = self.matcher.toeg;
        let node = match edge {
            Edge::InThread(from, delta) => toeg.step_in_thread(self.found.slot(from), delta),
            Edge::InTask(from, delta) => self.in_task(from, delta),
            Edge::BeginOf(from) => match self.event(from).kind {
                Kind::Fork(_) => self.started(from).map_or(NONE, |thread| thread.first),
                _ => NONE,
            },
            Edge::ForkOfThreadOf(from) => self.thread_of(from).map_or(NONE, |thread| thread.fork),
            Edge::First(thread) => self.thread(thread).map_or(NONE, |thread| thread.first),
            Edge::Last(thread) => self.thread(thread).map_or(NONE, |thread| thread.last),
            Edge::Accepted(thread, position) => match self.at(thread, position) {
                NONE => NONE,
                node => self.matcher.visits.accepted_at(toeg, node),
            },
            Edge::Fork(thread) => self.thread(thread).map_or(NONE, |thread| thread.fork),
            Edge::Join(thread) => self.thread(thread).map_or(NONE, |thread| thread.join),
            Edge::At(thread, position) => self.at(thread, position),
            Edge::OnTask(task, counter) => self.matcher.counters.at(toeg, self.value(task), self.value(counter)),
        };
        let Some(event) = self.events.get(node as usize) else { return false };
        if kind != KindTag::Any && tag(event.kind) != kind {
            return false;
        }
        if consumed && self.flags.get(node as usize).is_some_and(|flags| flags & PROCESSED != 0) {
            return false;
        }
        self.found.slots[to as usize % REGISTERS] = node;
        self.registers.events[to as usize % REGISTERS] = event;
        true
    }

    fn at(&self, thread: Value, position: Value) -> NodeId {
        let position = self.value(position);
        let Some(thread) = self.thread(thread) else { return NONE };
        let length = i64::from(thread.last - thread.first) + 1;
        if (1..=length).contains(&position) { thread.first + (position - 1) as NodeId } else { NONE }
    }

    fn in_task(&self, from: Slot, delta: i32) -> NodeId {
        let toeg = self.matcher.toeg;
        let mut node = self.found.slot(from);
        for _ in 0..delta.unsigned_abs() {
            if node == NONE {
                return NONE;
            }
            node = if delta > 0 { toeg.next_in_task(node) } else { toeg.previous_in_task(node) };
        }
        node
    }

    #[inline]
    fn thread(&self, id: Value) -> Option<&'a Thread> {
        self.matcher.toeg.thread(u32::try_from(self.value(id)).ok()?)
    }

    #[inline]
    fn value(&self, value: Value) -> i64 {
        match value {
            Value::Field(slot, field, offset) => self.field(slot, field).saturating_add(offset),
            Value::Carry(number, offset) => {
                self.registers.carry.get(number as usize).map_or(0, |value| value.saturating_add(offset))
            }
            Value::Integer(value) => value,
            Value::Symbol(symbol) => self.matcher.symbols.0[symbol as usize],
            Value::Count(sequence, offset) => i64::from(self.found.count(sequence)).saturating_add(offset),
            Value::Running(offset) => self.registers.running.saturating_add(offset),
        }
    }

    #[inline]
    fn field(&self, slot: Slot, field: Field) -> i64 {
        match field {
            Field::TaskName => i64::from(self.matcher.names.task(self.event(slot).task).name.0),
            Field::Node => i64::from(self.found.slot(slot)),
            field => event_field(self.event(slot), field),
        }
    }

    fn expression(&self, expression: &Expression) -> Option<i64> {
        let mut stack: Vec<i64> = Vec::new();
        for part in &expression.0 {
            match part {
                ExpressionPart::Value(value) => stack.push(self.value(*value)),
                ExpressionPart::Apply(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    stack.push(apply(*operator, left, right)?);
                }
            }
        }
        stack.pop()
    }

    /// Whether a relation holds; none where an argument has no value.
    fn relation(&self, relation: &str, arguments: &[RelationArgument]) -> Option<bool> {
        let names = self.matcher.names;
        let mut values: Vec<Option<Argument>> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match argument {
                RelationArgument::Integer(value) => Some(Argument::Integer(self.value(*value))),
                RelationArgument::TaskName(slot) => Some(Argument::Name(names.task(self.event(*slot).task).name)),
                RelationArgument::Name(slot, Field::Service) => Some(Argument::Name(self.event(*slot).service)),
                RelationArgument::Name(slot, _) => Some(Argument::Name(self.event(*slot).activity)),
                RelationArgument::Symbol(symbol) => {
                    let number = self.matcher.symbols.0[*symbol as usize];
                    Some(match u32::try_from(number) {
                        Ok(number) => Argument::Name(Name(number)),
                        Err(_) => Argument::Unknown,
                    })
                }
                RelationArgument::Computed(expression) => Some(Argument::Integer(self.expression(expression)?)),
                RelationArgument::Free => None,
            });
        }
        Some(self.matcher.relations.holds(relation, &values))
    }
}

/// A field of a node that needs no names: of a task its number, instances told apart.
#[inline]
pub fn label_field(toeg: &Toeg, node: NodeId, field: Field) -> i64 {
    if field == Field::Node { i64::from(node) } else { event_field(toeg.event(node), field) }
}

/// A field of an event; -1 where it has none.
#[inline]
fn event_field(event: &Event, field: Field) -> i64 {
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
        Field::Node => -1,
    }
}

#[inline(always)]
fn passes(test: Test, event: &Event, with: &Event) -> bool {
    match test {
        Test::Any => true,
        Test::SameTask => event.task == with.task,
        Test::OtherTask => event.task != with.task,
        Test::Later => event.counter > with.counter,
        Test::Next => event.counter == with.counter + 1,
        Test::LaterInTask => event.task == with.task && event.counter > with.counter,
        Test::NextInTask => event.task == with.task && event.counter == with.counter + 1,
        Test::InThreadStarted => starts(with, event.thread),
        Test::OutOfThreadStarted => !starts(with, event.thread),
    }
}

/// Whether a node starts that thread, or waits for it.
fn starts(event: &Event, thread: u32) -> bool {
    matches!(event.kind, Kind::Fork(target) | Kind::Join(target) if target == thread)
}
