//! The plan of one template, tried step by step: small, slow, and able to tell where it stopped.
//!
//! It follows the plan as `dyelog rules plan` shows it, and knows nothing of the program that the plans together are made into.
//! A test holds the two to the same matches.

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::counters::TaskCounters;
use crate::matcher::{Argument, Relations, Walked, label_field, tag};
use crate::plan::{
    Edge, Expression, ExpressionPart, Field, KindTag, Loop, MAX_SEQUENCES, RelationArgument, RoundCondition, Slot,
    TemplatePlan, TemplateStep, Value, apply,
};
use crate::visits::Visits;
use dyelog_datalog::ast::{Comparison, Quantifier};
use dyelog_diagnostic::names::Name;
use dyelog_trace::toeg::{NONE, Thread};
use dyelog_trace::{Kind, NodeId, Toeg, TraceNames};

/// Part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPart {
    /// The kind of the glue node.
    Glue,
    /// Steps before the first repetition, or all.
    Head,
    /// A round.
    Round,
    /// Steps after the rounds.
    Tail,
    /// Steps after no round at all.
    TailOfNone,
}

/// The step that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// In which part of the plan.
    pub part: PlanPart,
    /// Of which sequence, where it is of one.
    pub sequence: usize,
    /// Which step of it.
    pub step: usize,
    /// Rounds that had been walked.
    pub rounds: u32,
    /// Why it failed.
    pub why: Why,
}

impl Failure {
    /// The step of the plan that failed; none for the kind of the glue node.
    pub fn step_of<'p>(&self, plan: &'p TemplatePlan) -> Option<&'p TemplateStep> {
        let steps = match self.part {
            PlanPart::Glue => return None,
            PlanPart::Head => &plan.head,
            PlanPart::Round => &plan.repetitions.get(self.sequence)?.steps,
            PlanPart::Tail => &plan.repetitions.get(self.sequence)?.tail,
            PlanPart::TailOfNone => plan.repetitions.get(self.sequence)?.tail_of_none.as_ref()?,
        };
        steps.get(self.step)
    }
}

/// Why a step fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A node is of another kind.
    Kind {
        /// The register it was to go to.
        to: Slot,
        /// The node.
        node: NodeId,
        /// The kind that is needed.
        wanted: KindTag,
    },
    /// The way leads to no node.
    Nothing {
        /// The register it was to go to.
        to: Slot,
    },
    /// The node is another match's.
    Taken {
        /// The register it was to go to.
        to: Slot,
        /// The node.
        node: NodeId,
    },
    /// Two values do not compare so; [`None`] where an expression has none.
    Values(Option<i64>, Option<i64>),
    /// Two nodes that must be different are one.
    OneNode(NodeId),
    /// A relation does not hold, or holds where it must not; its arguments.
    Relation(Vec<Option<Argument>>),
    /// A node lacks the attribute that is asked for.
    Unnamed(NodeId),
    /// An argument of a relation has no value.
    NoValue,
    /// A condition on every round does not hold of one.
    OfRound {
        /// Of how many rounds before it in the order of the walk it holds.
        before: u32,
        /// Which of its steps failed.
        step: usize,
        /// Why.
        why: Box<Why>,
        /// The nodes by register, those of the rounds that it speaks of among them.
        slots: Vec<NodeId>,
    },
    /// A condition on some round holds of none.
    OfNoRound,
    /// A template starts at a node where it must not.
    Starts(NodeId),
    /// The sequence was followed for as long as matching follows any.
    Budget,
}

/// How far a plan got at a glue node.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The glue node.
    pub glue: NodeId,
    /// The nodes by register; [`NONE`] where it did not get to one.
    pub slots: Vec<NodeId>,
    /// The nodes of the rounds, of one sequence after the other, round 1 first where the plan fits, else in the order in which they
    /// were walked.
    pub rounds: Vec<NodeId>,
    /// Where the sequences are among them.
    pub sequences: [Walked; MAX_SEQUENCES],
    /// Steps passed, of [`Attempt::steps`]. A round counts once.
    pub passed: usize,
    /// Steps that there are, the kind of the glue node the first of them.
    pub steps: usize,
    /// The first step that failed; [`None`] where the plan fits.
    pub failure: Option<Failure>,
}

impl Attempt {
    /// The register in which a node is, or to which the step that failed would have put it.
    pub fn register_of(&self, node: NodeId) -> Option<Slot> {
        let bound = self.slots.iter().position(|slot| *slot == node).map(|slot| slot as Slot);
        let refused = match &self.failure {
            Some(Failure { why: Why::Kind { to, node: found, .. } | Why::Taken { to, node: found }, .. }) => {
                (*found == node).then_some(*to)
            }
            _ => None,
        };
        bound.or(refused)
    }
}

/// What plans are tried on.
pub struct Trial<'a> {
    /// All plans of the rules.
    pub plans: &'a [TemplatePlan],
    /// The graph.
    pub toeg: &'a Toeg,
    /// Names of the trace.
    pub names: &'a TraceNames,
    /// Relations of the rules.
    pub relations: &'a dyn Relations,
    /// How many more rounds may be walked.
    pub budget: Cell<u64>,
    visits: Visits,
    counters: TaskCounters,
    /// Which templates start where, as far as `!starts` asked.
    starting: RefCell<FxHashMap<(u16, NodeId), bool>>,
}

impl<'a> Trial<'a> {
    /// With a budget of so many rounds.
    pub fn new(
        plans: &'a [TemplatePlan],
        toeg: &'a Toeg,
        names: &'a TraceNames,
        relations: &'a dyn Relations,
        budget: u64,
    ) -> Self {
        Self {
            plans,
            toeg,
            names,
            relations,
            budget: budget.into(),
            visits: Visits::default(),
            counters: TaskCounters::default(),
            starting: RefCell::default(),
        }
    }

    /// Tries a template at a glue node; `taken` tells the nodes that are not free.
    pub fn attempt(&self, template: usize, glue: NodeId, taken: &dyn Fn(NodeId) -> bool) -> Attempt {
        let plan = &self.plans[template];
        let of_rounds = |repetition: &Loop| repetition.steps.len() + repetition.tail.len();
        let rounds: usize = plan.repetitions.iter().map(of_rounds).sum();
        let mut run = Run {
            trial: self,
            plan,
            taken,
            carry: Vec::new(),
            running: 0,
            seen: 0,
            furthest: None,
            attempt: Attempt {
                glue,
                slots: vec![NONE; plan.slot_names.len().max(1)],
                rounds: Vec::new(),
                sequences: [Walked::default(); MAX_SEQUENCES],
                passed: 0,
                steps: 1 + plan.head.len() + rounds,
                failure: None,
            },
        };
        run.whole();
        run.attempt
    }
}

struct Run<'r, 'a> {
    trial: &'r Trial<'a>,
    plan: &'r TemplatePlan,
    taken: &'r dyn Fn(NodeId) -> bool,
    carry: Vec<i64>,
    /// The number of the round at hand.
    running: i64,
    /// Conditions on some round that have held of one.
    seen: u64,
    /// What got furthest of what does not fit.
    furthest: Option<Furthest>,
    attempt: Attempt,
}

/// What fits of a sequence.
struct Fits {
    count: u32,
    slots: Vec<NodeId>,
    /// The nodes of later sequences' rounds.
    later: Vec<NodeId>,
    sequences: [Walked; MAX_SEQUENCES],
}

/// Where rounds and what follows them stopped.
struct Furthest {
    passed: usize,
    failure: Failure,
    slots: Vec<NodeId>,
    /// How many nodes of rounds there were; those themselves, where there are several sequences.
    nodes: usize,
    rounds: Option<Vec<NodeId>>,
    sequences: [Walked; MAX_SEQUENCES],
}

/// How many steps passed, and why the next did not.
struct Stop {
    passed: usize,
    why: Why,
}

impl Run<'_, '_> {
    fn whole(&mut self) {
        let glue = self.attempt.glue;
        let kind = tag(self.trial.toeg.event(glue).kind);
        if self.plan.glue_kind != KindTag::Any && self.plan.glue_kind != kind {
            let why = Why::Kind { to: 0, node: glue, wanted: self.plan.glue_kind };
            self.attempt.failure = Some(Failure { part: PlanPart::Glue, sequence: 0, step: 0, rounds: 0, why });
            return;
        }
        self.attempt.slots[0] = glue;
        let plan = self.plan;
        let head = self.steps(&plan.head);
        self.attempt.passed = 1 + head.as_ref().map_or_else(|stop| stop.passed, |()| plan.head.len());
        if let Err(stop) = head {
            let failure = Failure { part: PlanPart::Head, sequence: 0, step: stop.passed, rounds: 0, why: stop.why };
            self.attempt.failure = Some(failure);
            return;
        }
        if plan.repetitions.is_empty() || self.repetition(0, self.attempt.passed) {
            self.attempt.passed = self.attempt.steps;
        } else if let Some(furthest) = self.furthest.take() {
            self.attempt.slots = furthest.slots;
            match furthest.rounds {
                Some(rounds) => self.attempt.rounds = rounds,
                None => self.attempt.rounds.truncate(furthest.nodes),
            }
            self.attempt.sequences = furthest.sequences;
            self.attempt.passed = furthest.passed;
            self.attempt.failure = Some(furthest.failure);
        }
    }

    /// Notes a failure. Of what gets equally far, the last: further on in the sequence.
    fn note(&mut self, passed: usize, failure: Failure) {
        if self.furthest.as_ref().is_none_or(|furthest| passed >= furthest.passed) {
            let Attempt { slots, rounds, sequences, .. } = &self.attempt;
            self.furthest = Some(Furthest {
                passed,
                failure,
                slots: slots.clone(),
                nodes: rounds.len(),
                rounds: (self.plan.repetitions.len() > 1).then(|| rounds.clone()),
                sequences: *sequences,
            });
        }
    }

    /// As [`crate::matcher`] does it: no round where that is allowed and fits, then one after the other up to the first
    /// number that fits, or the last where the longest is wanted; later sequences anew for each number.
    fn repetition(&mut self, number: usize, before: usize) -> bool {
        let plan = self.plan;
        let repetition = &plan.repetitions[number];
        let start = self.attempt.rounds.len();
        self.attempt.sequences[number] = Walked { start: start as u32, count: 0 };
        let mut best: Option<Fits> = None;
        if let (Some(none), 0) = (&repetition.tail_of_none, repetition.min) {
            match self.steps(none) {
                Ok(()) => {
                    let (slots, sequences) = (self.attempt.slots.clone(), self.attempt.sequences);
                    best = Some(Fits { count: 0, slots, later: Vec::new(), sequences });
                }
                Err(stop) => {
                    let part = PlanPart::TailOfNone;
                    let failure = Failure { part, sequence: number, step: stop.passed, rounds: 0, why: stop.why };
                    self.note(before + stop.passed, failure);
                }
            }
        }
        if best.is_none() || repetition.longest {
            self.rounds(number, before, &mut best);
        }
        let Some(best) = best else {
            // Where it stopped, the rounds of the only sequence still tell.
            if plan.repetitions.len() > 1 {
                self.attempt.rounds.truncate(start);
            }
            return false;
        };
        let size = repetition.nodes.len();
        let end = start + best.count as usize * size;
        self.attempt.slots = best.slots;
        self.attempt.sequences = best.sequences;
        if repetition.longest {
            self.attempt.rounds.truncate(end);
            self.attempt.rounds.extend(best.later);
        }
        if repetition.backward {
            let rounds = &mut self.attempt.rounds[start..end];
            rounds.reverse();
            rounds.chunks_mut(size.max(1)).for_each(<[NodeId]>::reverse);
        }
        true
    }

    fn rounds(&mut self, number: usize, before: usize, best: &mut Option<Fits>) {
        let plan = self.plan;
        let repetition = &plan.repetitions[number];
        let start = self.attempt.sequences[number].start;
        self.set_carry(&repetition.carry, repetition.carried_before);
        self.seen &= !repetition.noted;
        let mut rounds = 0;
        loop {
            self.running = i64::from(rounds) + 1;
            let failed =
                |part, stop: Stop, rounds| Failure { part, sequence: number, step: stop.passed, rounds, why: stop.why };
            if let Err(stop) = self.steps(&repetition.steps) {
                // Between two rounds nothing new is known.
                let passed = if rounds == 0 { stop.passed } else { repetition.steps.len() };
                if rounds == 0 || rounds < repetition.min {
                    self.note(before + passed, failed(PlanPart::Round, stop, rounds));
                }
                return;
            }
            let budget = self.trial.budget.get();
            if budget == 0 {
                let stop = Stop { passed: 0, why: Why::Budget };
                self.note(before + repetition.steps.len(), failed(PlanPart::Round, stop, rounds));
                return;
            }
            self.trial.budget.set(budget - 1);
            rounds += 1;
            let nodes = repetition.nodes.iter().map(|slot| self.attempt.slots[*slot as usize]);
            let nodes: Vec<NodeId> = nodes.collect();
            self.attempt.rounds.extend(nodes);
            self.attempt.sequences[number] = Walked { start, count: rounds };
            if rounds >= repetition.min {
                let end = self.attempt.rounds.len();
                let passed = before + repetition.steps.len();
                let fits = match self.steps(&repetition.tail) {
                    Ok(()) if number + 1 == plan.repetitions.len() => true,
                    Ok(()) => self.repetition(number + 1, passed + repetition.tail.len()),
                    Err(stop) => {
                        self.note(passed + stop.passed, failed(PlanPart::Tail, stop, rounds));
                        false
                    }
                };
                if fits {
                    let longest = repetition.longest;
                    let later = if longest { self.attempt.rounds.split_off(end) } else { Vec::new() };
                    let (slots, sequences) = (self.attempt.slots.clone(), self.attempt.sequences);
                    *best = Some(Fits { count: rounds, slots, later, sequences });
                    if !longest {
                        return;
                    }
                }
            }
            self.set_carry(&repetition.next_carry, repetition.carried_before);
        }
    }

    /// Sets what a sequence carries, behind what those before it do.
    fn set_carry(&mut self, values: &[Value], before: u8) {
        let next: Vec<i64> = values.iter().map(|value| self.value(*value)).collect();
        self.carry.truncate(before.into());
        self.carry.extend(next);
    }

    fn steps(&mut self, steps: &[TemplateStep]) -> Result<(), Stop> {
        for (passed, step) in steps.iter().enumerate() {
            self.step(step).map_err(|why| Stop { passed, why })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &TemplateStep) -> Result<(), Why> {
        match step {
            TemplateStep::Go { to, edge, kind, consumed } => self.go(*to, *edge, *kind, *consumed),
            TemplateStep::Equal(left, right) => {
                compare(Some(self.value(*left)), Comparison::Equal, Some(self.value(*right)))
            }
            TemplateStep::Compare(left, comparison, right) => {
                compare(Some(self.value(*left)), *comparison, Some(self.value(*right)))
            }
            TemplateStep::CompareExpressions(left, comparison, right) => {
                compare(self.expression(left), *comparison, self.expression(right))
            }
            TemplateStep::Distinct(left, right) => {
                let (left, right) = (self.slot(*left), self.slot(*right));
                if left == right { Err(Why::OneNode(left)) } else { Ok(()) }
            }
            TemplateStep::Named(slot, field) => {
                let name = self.value(Value::Field(*slot, *field, 0));
                if name == i64::from(Name::NONE.0) { Err(Why::Unnamed(self.slot(*slot))) } else { Ok(()) }
            }
            TemplateStep::Holds { negated, relation, arguments } => {
                let arguments: Result<Vec<Option<Argument>>, Why> =
                    arguments.iter().map(|argument| self.argument(argument)).collect();
                let arguments = arguments?;
                if self.trial.relations.holds(relation, &arguments) == *negated {
                    Err(Why::Relation(arguments))
                } else {
                    Ok(())
                }
            }
            TemplateStep::NotStarts(template, slot) => {
                let node = self.slot(*slot);
                let free = |_| false;
                let known = self.trial.starting.borrow().get(&(*template, node)).copied();
                let starts = known.unwrap_or_else(|| {
                    let starts = self.trial.attempt(*template as usize, node, &free).failure.is_none();
                    self.trial.starting.borrow_mut().insert((*template, node), starts);
                    starts
                });
                if starts { Err(Why::Starts(node)) } else { Ok(()) }
            }
            TemplateStep::Round(condition) => self.round(condition),
            TemplateStep::Rounds(condition) => self.all_rounds(condition),
            TemplateStep::Seen(number) if self.seen >> number & 1 != 0 => Ok(()),
            TemplateStep::Seen(_) => Err(Why::OfNoRound),
            TemplateStep::Recall(recall) => {
                let walked = self.attempt.sequences[usize::from(recall.sequence)];
                let place = recall.place(walked.count, self.running).map(|place| walked.start as usize + place);
                match place.and_then(|place| self.attempt.rounds.get(place)) {
                    Some(node) => {
                        self.attempt.slots[recall.to as usize] = *node;
                        Ok(())
                    }
                    None => Err(Why::Nothing { to: recall.to }),
                }
            }
            TemplateStep::Apart(slots) => {
                let fixed = slots.iter().map(|slot| self.slot(*slot));
                let mut nodes: Vec<NodeId> = fixed.chain(self.attempt.rounds.iter().copied()).collect();
                let left = self.trial.budget.get().checked_sub(nodes.len() as u64);
                self.trial.budget.set(left.unwrap_or(0));
                left.ok_or(Why::Budget)?;
                nodes.sort_unstable();
                match nodes.windows(2).find(|two| two[0] == two[1]) {
                    Some(two) => Err(Why::OneNode(two[0])),
                    None => Ok(()),
                }
            }
        }
    }

    /// A condition on the round that is being walked, and maybe the one walked before.
    fn round(&mut self, condition: &RoundCondition) -> Result<(), Why> {
        let some = condition.quantifier == Quantifier::Some;
        if condition.pair {
            let start = self.attempt.sequences[usize::from(condition.sequence)].start as usize;
            let before = self.attempt.rounds.len().checked_sub(condition.size.into());
            let Some(before) = before.filter(|before| *before >= start) else { return Ok(()) };
            self.put_round(&condition.here, before);
        }
        match self.steps(&condition.steps) {
            Ok(()) => {
                self.seen |= u64::from(some) << condition.number;
                Ok(())
            }
            Err(_) if some => Ok(()),
            // Why the round itself fails is why its step does.
            Err(stop) if !condition.pair && condition.steps.len() == 1 => Err(stop.why),
            Err(stop) => {
                let walked = self.attempt.sequences[usize::from(condition.sequence)].count;
                Err(self.of_round(walked, stop))
            }
        }
    }

    /// A condition on rounds that have been walked.
    fn all_rounds(&mut self, condition: &RoundCondition) -> Result<(), Why> {
        let some = condition.quantifier == Quantifier::Some;
        let walked = self.attempt.sequences[usize::from(condition.sequence)];
        let start = walked.start as usize;
        for (before, (number, here, next)) in (0..).zip(condition.places(walked.count)) {
            let budget = self.trial.budget.get();
            if budget == 0 {
                return Err(Why::Budget);
            }
            self.trial.budget.set(budget - 1);
            self.running = number;
            self.put_round(&condition.here, start + here);
            self.put_round(&condition.next, start + next);
            match self.steps(&condition.steps) {
                Ok(()) if some => return Ok(()),
                Err(stop) if !some => return Err(self.of_round(before, stop)),
                _ => {}
            }
        }
        if some { Err(Why::OfNoRound) } else { Ok(()) }
    }

    fn of_round(&self, before: u32, stop: Stop) -> Why {
        let slots = self.attempt.slots.clone();
        Why::OfRound { before, step: stop.passed, why: Box::new(stop.why), slots }
    }

    fn put_round(&mut self, nodes: &[(Slot, u8)], from: usize) {
        for (to, node) in nodes {
            self.attempt.slots[*to as usize] = self.attempt.rounds[from + usize::from(*node)];
        }
    }

    fn go(&mut self, to: Slot, edge: Edge, wanted: KindTag, consumed: bool) -> Result<(), Why> {
        let toeg = self.trial.toeg;
        let node = match edge {
            Edge::InThread(from, delta) => toeg.step_in_thread(self.slot(from), delta),
            Edge::InTask(from, delta) => self.in_task(from, delta),
            Edge::BeginOf(from) => match toeg.event(self.slot(from)).kind {
                Kind::Fork(thread) => toeg.thread(thread).map_or(NONE, |thread| thread.first),
                _ => NONE,
            },
            Edge::ForkOfThreadOf(from) => toeg.thread_of(self.slot(from)).fork,
            Edge::First(thread) => self.thread(thread).map_or(NONE, |thread| thread.first),
            Edge::Last(thread) => self.thread(thread).map_or(NONE, |thread| thread.last),
            Edge::Accepted(thread, position) => match self.at(thread, position) {
                NONE => NONE,
                node => self.trial.visits.accepted_at(toeg, node),
            },
            Edge::Fork(thread) => self.thread(thread).map_or(NONE, |thread| thread.fork),
            Edge::Join(thread) => self.thread(thread).map_or(NONE, |thread| thread.join),
            Edge::At(thread, position) => self.at(thread, position),
            Edge::OnTask(task, counter) => self.trial.counters.at(toeg, self.value(task), self.value(counter)),
        };
        if node == NONE {
            return Err(Why::Nothing { to });
        }
        if wanted != KindTag::Any && tag(toeg.event(node).kind) != wanted {
            return Err(Why::Kind { to, node, wanted });
        }
        if consumed && (self.taken)(node) {
            return Err(Why::Taken { to, node });
        }
        self.attempt.slots[to as usize] = node;
        Ok(())
    }

    fn at(&self, thread: Value, position: Value) -> NodeId {
        let position = self.value(position);
        let Some(thread) = self.thread(thread) else { return NONE };
        let length = i64::from(thread.last - thread.first) + 1;
        if (1..=length).contains(&position) { thread.first + (position - 1) as NodeId } else { NONE }
    }

    fn in_task(&self, from: Slot, delta: i32) -> NodeId {
        let toeg = self.trial.toeg;
        let mut node = self.slot(from);
        for _ in 0..delta.unsigned_abs() {
            if node == NONE {
                return NONE;
            }
            node = if delta > 0 { toeg.next_in_task(node) } else { toeg.previous_in_task(node) };
        }
        node
    }

    fn slot(&self, slot: Slot) -> NodeId {
        self.attempt.slots[slot as usize]
    }

    fn thread(&self, id: Value) -> Option<&Thread> {
        self.trial.toeg.thread(u32::try_from(self.value(id)).ok()?)
    }

    fn value(&self, value: Value) -> i64 {
        match value {
            Value::Field(slot, field, offset) => self.field(slot, field).saturating_add(offset),
            Value::Carry(number, offset) => {
                self.carry.get(number as usize).copied().unwrap_or(0).saturating_add(offset)
            }
            Value::Integer(value) => value,
            Value::Symbol(symbol) => self.symbol(symbol).map_or(-1, |name| i64::from(name.0)),
            Value::Count(sequence, offset) => {
                let walked = self.attempt.sequences.get(usize::from(sequence)).copied().unwrap_or_default();
                i64::from(walked.count).saturating_add(offset)
            }
            Value::Running(offset) => self.running.saturating_add(offset),
        }
    }

    fn field(&self, slot: Slot, field: Field) -> i64 {
        let node = self.slot(slot);
        match field {
            Field::TaskName => i64::from(self.task_name(node).0),
            field => label_field(self.trial.toeg, node, field),
        }
    }

    fn task_name(&self, node: NodeId) -> Name {
        self.trial.names.task(self.trial.toeg.event(node).task).name
    }

    /// The trace's name that a symbol of the plan is.
    fn symbol(&self, symbol: u32) -> Option<Name> {
        self.trial.names.names.get(self.plan.symbols.get(symbol as usize)?)
    }

    fn expression(&self, expression: &Expression) -> Option<i64> {
        let mut stack: Vec<i64> = Vec::new();
        for part in &expression.0 {
            let value = match part {
                ExpressionPart::Value(value) => self.value(*value),
                ExpressionPart::Apply(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    apply(*operator, left, right)?
                }
            };
            stack.push(value);
        }
        stack.pop()
    }

    /// An argument of a relation: bound or free, or none where it has no value.
    fn argument(&self, argument: &RelationArgument) -> Result<Option<Argument>, Why> {
        let toeg = self.trial.toeg;
        Ok(Some(match argument {
            RelationArgument::Integer(value) => Argument::Integer(self.value(*value)),
            RelationArgument::TaskName(slot) => Argument::Name(self.task_name(self.slot(*slot))),
            RelationArgument::Name(slot, Field::Service) => Argument::Name(toeg.event(self.slot(*slot)).service),
            RelationArgument::Name(slot, _) => Argument::Name(toeg.event(self.slot(*slot)).activity),
            RelationArgument::Symbol(symbol) => self.symbol(*symbol).map_or(Argument::Unknown, Argument::Name),
            RelationArgument::Computed(expression) => {
                Argument::Integer(self.expression(expression).ok_or(Why::NoValue)?)
            }
            RelationArgument::Free => return Ok(None),
        }))
    }
}

fn compare(left: Option<i64>, comparison: Comparison, right: Option<i64>) -> Result<(), Why> {
    let holds = match (left, right) {
        (Some(left), Some(right)) => comparison.holds(left, right),
        _ => false,
    };
    if holds { Ok(()) } else { Err(Why::Values(left, right)) }
}
