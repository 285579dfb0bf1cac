//! Why a row holds: the first way in which it was found, as a graph in which each row stands once.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;

use crate::ast::Aggregate;
use crate::base::BaseRelation;
use crate::eval::evaluator::Evaluator;
use crate::eval::number::shifted;
use crate::eval::plan::{Argument, Expression, Step};
use crate::eval::program::Relation;
use crate::eval::rows::NONE;
use crate::eval::steps::unify;
use crate::eval::store::Reason;
use crate::value::Value;
use dyelog_diagnostic::Diagnostics;

/// How a row came about. Element 0 is the row asked about; premises are further elements, and no row is among its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// The rows, each once.
    pub steps: Vec<DerivationStep>,
}

/// A row and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivationStep {
    /// The relation.
    pub relation: Relation,
    /// The row; `None` where any value does.
    pub row: Vec<Option<Value>>,
    /// What makes it hold.
    pub because: Cause,
    /// The places of the rows that it rests on.
    pub premises: Vec<usize>,
}

/// What makes a row hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The facts say so.
    Given,
    /// The rule with this place in [`crate::ast::Program::rules`].
    Rule(usize),
    /// It does not hold: that is the premise.
    Absent,
    /// The value that an aggregate has over its premises; its relation and row are what it ranges over, as far as that
    /// is known.
    Aggregate(Aggregate, Option<Value>),
}

/// An answer, by its goal and number.
type Answer = (u32, u32);

struct Explaining<'e, 'p> {
    evaluator: &'e Evaluator<'p>,
    steps: Vec<DerivationStep>,
    places: FxHashMap<Answer, usize>,
    open: Vec<Answer>,
}

impl Evaluator<'_> {
    /// Why a row holds, if it does.
    ///
    /// # Errors
    /// When a limit is reached.
    ///
    /// # Panics
    /// When the evaluator was made without [`Evaluator::with_explanations`].
    pub fn explain(&mut self, relation: Relation, row: &[Value]) -> Result<Option<Derivation>, Diagnostics> {
        assert!(self.explains(), "explanations have to be asked for before the first question");
        if !self.holds(relation, row)? {
            return Ok(None);
        }
        let known: Vec<Option<Value>> = row.iter().copied().map(Some).collect();
        let Relation::Derived(number) = relation else {
            let step = DerivationStep { relation, row: known, because: Cause::Given, premises: Vec::new() };
            return Ok(Some(Derivation { steps: vec![step] }));
        };
        let (goal, question) = self.solve(number, &known, true)?;
        let first = self.store.at(goal, question).answers.first;
        let mut explaining =
            Explaining { evaluator: self, steps: Vec::new(), places: FxHashMap::default(), open: Vec::new() };
        explaining.answer((goal, first));
        while let Some(answer) = explaining.open.pop() {
            explaining.premises(answer);
        }
        Ok(Some(Derivation { steps: explaining.steps }))
    }
}

impl Explaining<'_, '_> {
    /// The place of an answer's row, which gets its premises later.
    fn answer(&mut self, answer: Answer) -> usize {
        if let Some(place) = self.places.get(&answer) {
            return *place;
        }
        let goal = &self.evaluator.store.goals[answer.0 as usize];
        let stored = goal.answers.row(answer.1);
        let question = stored[0].as_integer().expect("answers begin with their question's number") as u32;
        let mut known = goal.keys.row(question).iter();
        let mut free = stored[1..].iter();
        let arity = goal.free + goal.mask.count_ones() as usize;
        let column = |column| if goal.mask >> column & 1 == 1 { known.next() } else { free.next() };
        let row = (0..arity).map(column).map(Option::<&Value>::copied).collect();
        let rule = match &goal.reasons[answer.1 as usize] {
            Reason::Fact(rule) => *rule,
            Reason::Plan(plan, _) => {
                self.evaluator.rules.rules[self.evaluator.plans[*plan as usize].rule as usize].source
            }
        };
        let relation = Relation::Derived(goal.relation);
        let because = Cause::Rule(rule as usize);
        self.places.insert(answer, self.steps.len());
        self.steps.push(DerivationStep { relation, row, because, premises: Vec::new() });
        self.open.push(answer);
        self.steps.len() - 1
    }

    fn premises(&mut self, answer: Answer) {
        let evaluator = self.evaluator;
        let Reason::Plan(number, registers) = &evaluator.store.goals[answer.0 as usize].reasons[answer.1 as usize]
        else {
            return;
        };
        let plan = &evaluator.plans[*number as usize];
        let mut premises: Vec<(usize, usize)> = Vec::new();
        for (step, literal) in plan.steps.iter().zip(&plan.order) {
            match step {
                Step::Base { relation, arguments, .. } => {
                    let place = self.base(*relation, arguments, registers, Cause::Given);
                    premises.push((*literal, place));
                }
                Step::NoBase { relation, arguments } => {
                    let place = self.base(*relation, arguments, registers, Cause::Absent);
                    premises.push((*literal, place));
                }
                Step::Goal { goal, key, free } => {
                    let found = self.find(*goal, key, free, registers);
                    let place = found.map(|found| self.answer((*goal, found)));
                    premises.extend(place.map(|place| (*literal, place)));
                }
                Step::NoGoal { goal, key } => {
                    let place = self.absent(*goal, key, registers);
                    premises.push((*literal, place));
                }
                Step::Aggregate { goal, group, function, result } => {
                    let key: Vec<Value> = group.iter().map(|register| registers[*register as usize]).collect();
                    let place = self.aggregate(*goal, &key, *function, result.value(registers));
                    premises.push((*literal, place));
                }
                Step::Compare(..) | Step::Assign(..) => {}
            }
        }
        premises.sort_by_key(|(literal, _)| *literal); // in the order of the text
        let place = self.places[&answer];
        self.steps[place].premises = premises.into_iter().map(|(_, place)| place).collect();
    }

    /// An aggregate over the answers to a question.
    fn aggregate(&mut self, goal: u32, key: &[Value], function: Aggregate, value: Option<Value>) -> usize {
        let found = &self.evaluator.store.goals[goal as usize];
        let mut row: Vec<Option<Value>> = key.iter().copied().map(Some).collect();
        row.resize(key.len() + found.free, None);
        let relation = Relation::Derived(found.relation);
        let place = self.steps.len();
        let because = Cause::Aggregate(function, value);
        self.steps.push(DerivationStep { relation, row, because, premises: Vec::new() });
        let answers = self.answers(goal, key);
        let premises = answers.into_iter().map(|answer| self.answer((goal, answer))).collect();
        self.steps[place].premises = premises;
        place
    }

    fn base(&mut self, relation: BaseRelation, arguments: &[Argument], registers: &[Value], cause: Cause) -> usize {
        let mut row: Vec<Option<Value>> = arguments.iter().map(|argument| argument.value(registers)).collect();
        if cause == Cause::Given && row.contains(&None) {
            let pattern = row.clone();
            self.evaluator.facts.lookup(relation, &pattern, &mut |found| {
                row = found.iter().copied().map(Some).collect();
                ControlFlow::Break(())
            });
        }
        let relation = Relation::Base(relation);
        self.steps.push(DerivationStep { relation, row, because: cause, premises: Vec::new() });
        self.steps.len() - 1
    }

    fn absent(&mut self, goal: u32, key: &[Expression], registers: &[Value]) -> usize {
        let found = &self.evaluator.store.goals[goal as usize];
        let mut known = key.iter().map(|expression| expression.value(registers));
        let arity = found.free + found.mask.count_ones() as usize;
        let column = |column| if found.mask >> column & 1 == 1 { known.next().flatten() } else { None };
        let row = (0..arity).map(column).collect();
        let relation = Relation::Derived(found.relation);
        self.steps.push(DerivationStep { relation, row, because: Cause::Absent, premises: Vec::new() });
        self.steps.len() - 1
    }

    /// The first answer that agrees with the registers. It was known before what rests on it.
    fn find(&self, goal: u32, key: &[Expression], free: &[Argument], registers: &[Value]) -> Option<u32> {
        let key: Option<Vec<Value>> = key.iter().map(|expression| expression.value(registers)).collect();
        let key = key?;
        let found = &self.evaluator.store.goals[goal as usize];
        let question = found.keys.find(&key)?;
        let exact: Option<Vec<Value>> = free.iter().map(|argument| argument.value(registers)).collect();
        if let Some(exact) = exact {
            let row: Vec<Value> = std::iter::once(Value::from(question)).chain(exact).collect();
            return found.answers.find(&row);
        }
        let answers = self.answers(goal, &key);
        answers.into_iter().find(|answer| {
            let mut trial = registers.to_vec();
            unify(free, &found.answers.row(*answer)[1..], &mut trial) && trial == registers
        })
    }

    fn answers(&self, goal: u32, key: &[Value]) -> Vec<u32> {
        let goal = &self.evaluator.store.goals[goal as usize];
        let Some(question) = goal.keys.find(key) else { return Vec::new() };
        let mut answers = Vec::new();
        let mut answer = goal.questions[question as usize].answers.first;
        while answer != NONE {
            answers.push(answer);
            answer = goal.next[answer as usize];
        }
        answers
    }
}

impl Argument {
    /// The column's value in a row that gave these registers; none where any would do.
    fn value(&self, registers: &[Value]) -> Option<Value> {
        match self {
            Self::Any => None,
            Self::Known(expression) => expression.value(registers),
            Self::Bind(register, offset) | Self::Same(register, offset) => {
                shifted(registers[*register as usize], *offset)
            }
        }
    }
}
