//! Plans: templates turned into navigation over the TOEG.
//!
//! A plan starts at the glue node and reaches every other node along functional edges (next in thread, next in task,
//! fork → begin, …), so that matching is a handful of array look-ups. Variables are gone: each has a *site*, a field of a
//! node that is bound first, and every further occurrence is a comparison with that site.

use std::sync::Arc;

use crate::effects::Effects;
use crate::matcher::Walked;
use dyelog_datalog::ast::{Comparison, Operator, Quantifier, Rule};
use dyelog_datalog::eval::calculated;
use dyelog_lqn::submodel::Interaction;

/// A register that holds a node during a match.
pub type Slot = u8;

/// The most nodes that a template may have, peeked ones included. Conditions on rounds may take a few registers more, up to
/// [`crate::matcher::REGISTERS`].
pub const MAX_SLOTS: usize = 24;

/// The most sequences that a template may have.
pub const MAX_SEQUENCES: usize = 4;

/// What a node pattern says of the type label, without the thread of a fork or join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindTag {
    /// `Be`
    Begin,
    /// `Ac`
    Activity,
    /// `Ed`
    End,
    /// `Fk`
    Fork,
    /// `Jn`
    Join,
    /// Any.
    Any,
}

impl KindTag {
    /// As traces and rules write it; `_` for any.
    pub fn label(self) -> &'static str {
        match self {
            Self::Begin => "Be",
            Self::Activity => "Ac",
            Self::End => "Ed",
            Self::Fork => "Fk",
            Self::Join => "Jn",
            Self::Any => "_",
        }
    }
}

/// A field of a node's label or attributes, as an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Thread identifier k.
    Thread,
    /// Thread node counter m.
    Position,
    /// The thread that a fork starts or a join waits for.
    Target,
    /// Task i (instances are different tasks).
    Task,
    /// Name of the task, whatever its instance: to compare with a symbol.
    TaskName,
    /// Task node counter v.
    Counter,
    /// Activity name.
    Activity,
    /// Service name.
    Service,
    /// The node itself.
    Node,
}

/// Something that has an integer value while a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A field of a bound node plus a constant.
    Field(Slot, Field, i64),
    /// What the repetition carries from one round to the next, plus a constant.
    Carry(u8, i64),
    /// A constant.
    Integer(i64),
    /// A symbol of [`TemplatePlan::symbols`]: the number of that name in the trace.
    Symbol(u32),
    /// How many rounds of a sequence have been walked, plus a constant.
    Count(u8, i64),
    /// The number of the round at hand, plus a constant.
    Running(i64),
}

/// How a node is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// That many places on in the thread of a bound node.
    InThread(Slot, i32),
    /// That many places on in the task of a bound node.
    InTask(Slot, i32),
    /// From a fork to the first node of the thread it starts.
    BeginOf(Slot),
    /// From a node to the fork of its thread.
    ForkOfThreadOf(Slot),
    /// The first node of the thread with that identifier.
    First(Value),
    /// The last node of the thread with that identifier.
    Last(Value),
    /// The node that accepted the visit in which the node at that place of the thread with that identifier lies.
    Accepted(Value, Value),
    /// The node that forks the thread with that identifier.
    Fork(Value),
    /// The node that joins the thread with that identifier.
    Join(Value),
    /// The node at that place of the thread with that identifier.
    At(Value, Value),
    /// The node with that counter on that task.
    OnTask(Value, Value),
}

/// An arithmetic expression over values, in the order of a stack machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(pub Vec<ExpressionPart>);

/// A part of an [`Expression`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpressionPart {
    /// Puts a value on the stack.
    Value(Value),
    /// Takes two values off and puts the result on; the match fails on overflow and on division by zero.
    Apply(Operator),
}

/// The result of an operator, as rules calculate it.
pub fn apply(operator: Operator, left: i64, right: i64) -> Option<i64> {
    let number = dyelog_datalog::value::Value::integer;
    calculated(number(left)?, operator, number(right)?)?.as_integer()
}

/// An argument of a relation in a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum RelationArgument {
    /// Bound: an integer or a node.
    Integer(Value),
    /// Bound: a task, as the symbol of its name.
    TaskName(Slot),
    /// Bound: a name, as a symbol.
    Name(Slot, Field),
    /// Bound: a symbol of [`TemplatePlan::symbols`].
    Symbol(u32),
    /// Bound: computed. Without a value the condition does not hold, negated or not.
    Computed(Expression),
    /// Free: some value.
    Free,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateStep {
    /// Binds a node; fails when there is none, it is of another kind, or (when it would be consumed) is processed.
    Go {
        /// The register.
        to: Slot,
        /// The way.
        edge: Edge,
        /// The kind it must have.
        kind: KindTag,
        /// Whether a match consumes it.
        consumed: bool,
    },
    /// Two values are equal.
    Equal(Value, Value),
    /// Two values compare.
    Compare(Value, Comparison, Value),
    /// Two expressions compare.
    CompareExpressions(Expression, Comparison, Expression),
    /// Two nodes are different.
    Distinct(Slot, Slot),
    /// A node has that attribute.
    Named(Slot, Field),
    /// A relation of the rule file holds, or does not.
    Holds {
        /// Whether it must not.
        negated: bool,
        /// The relation.
        relation: Arc<str>,
        /// Its arguments.
        arguments: Vec<RelationArgument>,
    },
    /// No candidate of a template starts at a node.
    NotStarts(u16, Slot),
    /// Within a round: what has to hold of it, or of it and the round walked before.
    Round(Box<RoundCondition>),
    /// After the rounds: what has to hold of all or some of them.
    Rounds(Box<RoundCondition>),
    /// After the rounds: the [`TemplateStep::Round`] of that number has held of one.
    Seen(u8),
    /// Binds a node of a round that has been walked; fails where there is no such round.
    Recall(Recall),
    /// After the last rounds: the nodes of all sequences and of these registers are different ones.
    Apart(Vec<Slot>),
}

/// A node of a round that has been walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// The register it goes to.
    pub to: Slot,
    /// Of which sequence.
    pub sequence: u8,
    /// How many nodes a round of it has.
    pub size: u8,
    /// Which of these.
    pub node: u8,
    /// Whether its rounds are walked from the last to the first.
    pub backward: bool,
    /// Of which round.
    pub round: Position,
}

impl Recall {
    /// Where the node is among the nodes of the sequence's rounds, in the order of the walk; `running` is the round at hand.
    pub fn place(&self, count: u32, running: i64) -> Option<usize> {
        let count = i64::from(count);
        let round = match self.round {
            Position::At(round) => round,
            Position::Running(offset) => running.saturating_add(offset),
            Position::Count(_, offset) => count.saturating_add(offset),
        };
        if !(1..=count).contains(&round) {
            return None;
        }
        let walked = if self.backward { count - round } else { round - 1 };
        Some(walked as usize * usize::from(self.size) + usize::from(self.node))
    }
}

/// What has to hold of rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundCondition {
    /// Of how many rounds. What has to hold of every round fails with the first of which it does not.
    pub quantifier: Quantifier,
    /// Of conditions on some round, the number of this one.
    pub number: u8,
    /// Whether it speaks of two rounds that follow each other.
    pub pair: bool,
    /// Of which sequence.
    pub sequence: u8,
    /// How many nodes a round has.
    pub size: u8,
    /// After the rounds: how far before and behind a round there must be others for it to be asked.
    pub reach: [i64; 2],
    /// Whether rounds are walked from the last to the first.
    pub backward: bool,
    /// Registers for nodes of the round: which of its nodes goes into which. Within a round, of the one walked before.
    pub here: Vec<(Slot, u8)>,
    /// After the rounds: the same for the round that follows in the sequence.
    pub next: Vec<(Slot, u8)>,
    /// What has to hold.
    pub steps: Vec<TemplateStep>,
}

impl RoundCondition {
    /// The numbers of the rounds that it is asked of, in the order of the walk, and where each begins with the one after it in the
    /// sequence among the nodes of all its rounds in that order.
    pub fn places(&self, rounds: u32) -> impl Iterator<Item = (i64, usize, usize)> {
        let size = usize::from(self.size.max(1));
        let (pair, backward, [least, most]) = (i64::from(self.pair), self.backward, self.reach);
        let rounds = i64::from(rounds);
        let low = 1i64.saturating_sub(least).max(1);
        let high = rounds.saturating_sub(most).min(rounds - pair);
        let place = move |step: i64| {
            let number = if backward { high - step } else { low + step };
            let (here, next) =
                if backward { (rounds - number, rounds - number - pair) } else { (number - 1, number - 1 + pair) };
            (number, here as usize * size, next as usize * size)
        };
        (0..high.saturating_sub(low).saturating_add(1)).map(place)
    }
}

/// Literals of a template's conditions that are asked together: a rule whose head has a column for each bound variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The rule. The name of its head's relation is no name of the language.
    pub rule: Rule,
    /// The literals, as the template has them.
    pub text: Arc<str>,
}

/// A repetition of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The least number of rounds.
    pub min: u32,
    /// Whether rounds run from n down to 1.
    pub backward: bool,
    /// What is carried, before the first round.
    pub carry: Vec<Value>,
    /// One round.
    pub steps: Vec<TemplateStep>,
    /// What is carried into the next round.
    pub next_carry: Vec<Value>,
    /// The registers of one round's nodes, in the order of the text.
    pub nodes: Vec<Slot>,
    /// Whether the largest number of rounds is wanted.
    pub longest: bool,
    /// How many values earlier sequences carry: its own come behind them.
    pub carried_before: u8,
    /// Its conditions on some round, a bit each.
    pub noted: u64,
    /// Steps after its rounds, up to the next sequence.
    pub tail: Vec<TemplateStep>,
    /// Steps after no round at all, where that is allowed.
    pub tail_of_none: Option<Vec<TemplateStep>>,
}

/// A template as navigation.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplatePlan {
    /// The template's name.
    pub name: Arc<str>,
    /// Its place in the order of trial.
    pub order: i64,
    /// The kind of the glue node.
    pub glue_kind: KindTag,
    /// Names of the registers, for explanations.
    pub slot_names: Vec<Arc<str>>,
    /// Symbols that it compares with.
    pub symbols: Vec<Arc<str>>,
    /// Steps before the first repetition, or all.
    pub head: Vec<TemplateStep>,
    /// The repetitions, in the order of the walk.
    pub repetitions: Vec<Loop>,
    /// What conditions ask beside relations of the rule file.
    pub bodies: Vec<Body>,
    /// What a match does.
    pub effects: Effects,
}

/// A round: of a sequence variable, of a node, or the index of an entry under `model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// A constant.
    At(i64),
    /// The running index plus a constant.
    Running(i64),
    /// The number of rounds of a sequence plus a constant.
    Count(u8, i64),
}

/// An entry under `model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryReference {
    /// `E`: the entry of the trigger node.
    Trigger,
    /// An entry of this match.
    New {
        /// The variable.
        variable: u8,
        /// Its index; 0 where it has none.
        position: Position,
    },
    /// None: the template has none for the task of the node.
    Nobody,
}

/// A value under `model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelValue {
    /// As during the match.
    Fixed(Value),
    /// A field of a node of a round plus a constant.
    Round {
        /// Which of the nodes of all sequences' rounds.
        node: u8,
        /// Which round, from 1.
        position: Position,
        /// The field.
        field: Field,
        /// What is added.
        offset: i64,
    },
}

/// A matched node under `model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelNode {
    /// A register.
    Fixed(Slot),
    /// A node of a round.
    Round {
        /// Which of the nodes of all sequences' rounds.
        node: u8,
        /// Which round, from 1.
        position: Position,
    },
}

/// A modelling operation with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// `newEntry`: opens an entry.
    NewEntry {
        /// The entry.
        entry: EntryReference,
        /// The type of interaction.
        interaction: Interaction,
        /// The task.
        task: ModelValue,
    },
    /// `addRequest`
    AddRequest {
        /// The client.
        from: EntryReference,
        /// The server.
        to: EntryReference,
    },
    /// `addActivity`
    AddActivity {
        /// The entry.
        entry: EntryReference,
        /// The node that carries the activity.
        node: ModelNode,
    },
    /// `addDelay`: up to the node, nothing works.
    AddDelay {
        /// The entry.
        entry: EntryReference,
        /// The node at which the time ends.
        node: ModelNode,
    },
    /// `phase2`: what follows the node in its visit is second phase.
    Phase2 {
        /// The last node of the first phase.
        node: ModelNode,
    },
    /// `addTrigger`
    AddTrigger {
        /// Thread.
        thread: ModelValue,
        /// Thread node counter.
        position: ModelValue,
        /// Task; `None` for any.
        task: Option<ModelValue>,
        /// Task node counter; `None` for any.
        counter: Option<ModelValue>,
        /// The entry that owns it.
        entry: EntryReference,
    },
    /// `addBranch` and `forkBranch`: the thread that begins at a node is a branch of the entry, up to the join.
    AddBranch {
        /// The entry.
        entry: EntryReference,
        /// The branch's first node.
        begin: ModelNode,
        /// The node that waits for it, where the template says it.
        join: Option<ModelNode>,
    },
    /// `addAlternative`: what an entry does between two nodes is one of several things that it may do there.
    AddAlternative {
        /// The entry.
        entry: EntryReference,
        /// The node before.
        fork: ModelNode,
        /// The node after.
        join: ModelNode,
    },
    /// `addBarrier`: an entry waits for others, which wait for it.
    AddBarrier {
        /// The entry.
        entry: EntryReference,
        /// The node that waits.
        node: ModelNode,
    },
    /// `awaitRequest` and `forkRequest`: a branch of an entry is a request to another one.
    ForkRequest {
        /// The entry that makes the request.
        from: EntryReference,
        /// The entry that serves it.
        to: EntryReference,
        /// The node at which it is made.
        fork: ModelNode,
        /// The node that waits for its end, where one does.
        join: Option<ModelNode>,
    },
    /// `for x in FROM..n { … }`
    For {
        /// Over the rounds of which sequence.
        sequence: u8,
        /// The first index.
        from: i64,
        /// What is done for each.
        body: Vec<Action>,
    },
}

impl TemplatePlan {
    /// Whether a condition asks a relation of the rule file.
    pub fn asks_relations(&self) -> bool {
        let none = self.repetitions.iter().filter_map(|repetition| repetition.tail_of_none.as_ref()).flatten();
        self.steps().chain(none).any(TemplateStep::asks_relations)
    }

    /// The steps of its head, its rounds and what follows them.
    pub fn steps(&self) -> impl Iterator<Item = &TemplateStep> {
        let rounds = self.repetitions.iter().flat_map(|repetition| repetition.steps.iter().chain(&repetition.tail));
        self.head.iter().chain(rounds)
    }

    /// Of which sequence a node of rounds is, and which of that sequence's nodes, where it stands at that place among all.
    pub fn place_of(&self, place: usize, sequences: &[Walked]) -> Option<(usize, usize)> {
        let own = self.repetitions.len().min(sequences.len());
        let number = sequences[..own].iter().rposition(|walked| walked.count > 0 && walked.start as usize <= place)?;
        Some((number, place - sequences[number].start as usize))
    }

    /// The literals that are asked together by that name.
    pub fn body(&self, relation: &str) -> Option<&Body> {
        self.bodies.iter().find(|body| *body.rule.head.relation.value == *relation)
    }
}

impl TemplateStep {
    fn asks_relations(&self) -> bool {
        match self {
            Self::Holds { .. } => true,
            Self::Round(condition) | Self::Rounds(condition) => condition.steps.iter().any(Self::asks_relations),
            _ => false,
        }
    }
}
