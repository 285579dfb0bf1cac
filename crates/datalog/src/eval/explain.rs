//! Why a row holds: the first way in which it was found, as a graph in which each row stands once.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ast::Aggregate;
use crate::base::BaseRelation;
use crate::eval::evaluator::Evaluator;
use crate::eval::number::shifted;
use crate::eval::plan::{Argument, Expression, GoalStep};
use crate::eval::program::{Literal, Relation, Term};
use crate::eval::rows::NONE;
use crate::eval::steps::unify;
use crate::eval::store::Reason;
use crate::eval::whole::{Premise, Proof};
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
    /// How many further rows an aggregate ranges over.
    pub left_out: usize,
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
    /// It came to hold by a row that a better one has replaced since: the one that it is a premise of, or one that rests on that.
    Replaced,
    /// The value that an aggregate has; its relation and row are what it ranges over, as far as that is known. The premises
    /// of a `min`, `max` or percentile have the value, those of others are the first rows.
    Aggregate(Aggregate, Option<Value>),
}

/// What may be the premise of several rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Known {
    /// An answer, by its goal and number.
    Answer(u32, u32),
    /// A row of a relation that is computed whole.
    Closed(u32, u32),
    /// An aggregate of the answers to a question, by goal and question.
    Aggregate(u32, u32, Aggregate),
}

struct Explaining<'e, 'p> {
    evaluator: &'e mut Evaluator<'p>,
    /// Premises that an aggregate may have.
    aggregated: usize,
    steps: Vec<DerivationStep>,
    places: FxHashMap<Known, usize>,
    open: Vec<Known>,
}

impl Evaluator<'_> {
    /// Why a row holds, if it does. An aggregate has up to so many premises; what is left out is counted.
    ///
    /// # Errors
    /// When a limit is reached.
    ///
    /// # Panics
    /// When the evaluator was made without [`Evaluator::with_explanations`].
    pub fn explain(
        &mut self,
        relation: Relation,
        row: &[Value],
        aggregated: usize,
    ) -> Result<Option<Derivation>, Diagnostics> {
        assert!(self.explains(), "explanations have to be asked for before the first question");
        if !self.holds(relation, row)? {
            return Ok(None);
        }
        let known: Vec<Option<Value>> = row.iter().copied().map(Some).collect();
        let Relation::Derived(number) = relation else {
            let step = DerivationStep::new(relation, known, Cause::Given);
            return Ok(Some(Derivation { steps: vec![step] }));
        };
        let (goal, question) = self.solve(number, &known, true)?;
        let first = self.store.at(goal, question).answers.first;
        let mut explaining = Explaining {
            evaluator: self,
            aggregated,
            steps: Vec::new(),
            places: FxHashMap::default(),
            open: Vec::new(),
        };
        explaining.answer(goal, first);
        while let Some(known) = explaining.open.pop() {
            match known {
                Known::Answer(goal, answer) => explaining.premises(goal, answer),
                Known::Closed(relation, row) => explaining.closed_premises(relation, row)?,
                Known::Aggregate(goal, question, function) => explaining.aggregated(goal, question, function),
            }
        }
        Ok(Some(Derivation { steps: explaining.steps }))
    }
}

impl DerivationStep {
    fn new(relation: Relation, row: Vec<Option<Value>>, because: Cause) -> Self {
        Self { relation, row, because, premises: Vec::new(), left_out: 0 }
    }
}

impl Explaining<'_, '_> {
    fn push(&mut self, relation: Relation, row: Vec<Option<Value>>, because: Cause) -> usize {
        self.steps.push(DerivationStep::new(relation, row, because));
        self.steps.len() - 1
    }

    /// The place of something that gets its premises later.
    fn later(&mut self, known: Known, relation: u32, row: Vec<Option<Value>>, because: Cause) -> usize {
        let place = self.push(Relation::Derived(relation), row, because);
        self.places.insert(known, place);
        self.open.push(known);
        place
    }

    /// The place of an answer's row.
    fn answer(&mut self, number: u32, answer: u32) -> usize {
        let known = Known::Answer(number, answer);
        if let Some(place) = self.places.get(&known) {
            return *place;
        }
        let goal = &self.evaluator.store.goals[number as usize];
        let relation = goal.relation;
        let rule = match &goal.reasons[answer as usize] {
            Reason::Fact(rule) => *rule,
            Reason::Closed(row) => return self.closed(relation, *row),
            Reason::Plan(plan, _) => {
                self.evaluator.rules.rules[self.evaluator.plans[*plan as usize].rule as usize].source
            }
        };
        let stored = goal.answers.row(answer);
        let question = stored[0].as_integer().expect("answers begin with their question's number") as u32;
        let mut given = goal.keys.row(question).iter();
        let mut free = stored[1..].iter();
        let arity = goal.free + goal.mask.count_ones() as usize;
        let column = |column| if goal.mask >> column & 1 == 1 { given.next() } else { free.next() };
        let row = (0..arity).map(column).map(Option::<&Value>::copied).collect();
        self.later(known, relation, row, Cause::Rule(rule as usize))
    }

    /// The place of a row of a relation that is computed whole.
    fn closed(&mut self, relation: u32, row: u32) -> usize {
        let known = Known::Closed(relation, row);
        if let Some(place) = self.places.get(&known) {
            return *place;
        }
        let (rules, closed) = (self.evaluator.rules, &self.evaluator.closed[&relation]);
        let derived = &rules.derived[relation as usize];
        let because = match closed.proofs.get(row as usize) {
            Some(Some(Proof::Fact(rule))) => Cause::Rule(*rule as usize),
            Some(Some(Proof::Rule { rule, .. })) => Cause::Rule(rules.rules[*rule as usize].source as usize),
            _ => Cause::Replaced,
        };
        let row = (0..derived.arity).map(|column| Some(closed.table.cell(row, column))).collect();
        self.later(known, relation, row, because)
    }

    /// The place of a row of a relation's own level that a rule needed.
    fn premise(&mut self, premise: Premise) -> usize {
        if !premise.replaced {
            return self.closed(premise.relation, premise.row);
        }
        let closed = &self.evaluator.closed[&premise.relation];
        let arity = self.evaluator.rules.derived[premise.relation as usize].arity;
        let row = (0..arity).map(|column| Some(closed.table.cell(premise.row, column))).collect();
        self.push(Relation::Derived(premise.relation), row, Cause::Replaced)
    }

    fn premises(&mut self, goal: u32, answer: u32) {
        let Reason::Plan(number, registers) = &self.evaluator.store.goals[goal as usize].reasons[answer as usize]
        else {
            return;
        };
        let plan = Arc::clone(&self.evaluator.plans[*number as usize]);
        let registers = registers.clone();
        let mut premises: Vec<(usize, usize)> = Vec::new();
        for (step, literal) in plan.steps.iter().zip(&plan.order) {
            let place = match step {
                GoalStep::Base { relation, arguments, .. } => {
                    let row = arguments.iter().map(|argument| argument.value(&registers)).collect();
                    Some(self.base(*relation, row, Cause::Given))
                }
                GoalStep::NoBase { relation, arguments } => {
                    let row = arguments.iter().map(|argument| argument.value(&registers)).collect();
                    Some(self.base(*relation, row, Cause::Absent))
                }
                GoalStep::Goal { goal, key, free } => {
                    let found = self.find(*goal, key, free, &registers);
                    found.map(|found| self.answer(*goal, found))
                }
                GoalStep::NoGoal { goal, key } => Some(self.absent(*goal, key, &registers)),
                GoalStep::Aggregate { goal, group, function, result } => {
                    let key: Vec<Value> = group.iter().map(|register| registers[*register as usize]).collect();
                    self.aggregate(*goal, &key, *function, result.value(&registers))
                }
                GoalStep::Compare(..) | GoalStep::Assign(..) => None,
            };
            premises.extend(place.map(|place| (*literal, place)));
        }
        premises.sort_by_key(|(literal, _)| *literal); // in the order of the text
        let place = self.places[&Known::Answer(goal, answer)];
        self.steps[place].premises = premises.into_iter().map(|(_, place)| place).collect();
    }

    /// Rows of its own level are known by their numbers; what lies below is asked for.
    fn closed_premises(&mut self, relation: u32, row: u32) -> Result<(), Diagnostics> {
        let rules = self.evaluator.rules;
        let Some(Some(Proof::Rule { rule, registers, sources })) =
            self.evaluator.closed[&relation].proofs.get(row as usize)
        else {
            return Ok(());
        };
        let (rule, registers, sources) = (*rule, registers.clone(), sources.clone());
        let mut premises = Vec::new();
        for (place, literal) in rules.rules[rule as usize].body.iter().enumerate() {
            if let Some(premise) = sources.iter().find(|premise| premise.literal == place) {
                premises.push(self.premise(*premise));
                continue;
            }
            match literal {
                Literal::Holds(Relation::Base(relation), terms) => {
                    premises.push(self.base(*relation, self.terms(terms, &registers), Cause::Given));
                }
                Literal::Holds(Relation::Derived(relation), terms) => {
                    let pattern = self.terms(terms, &registers);
                    let (goal, question) = self.evaluator.solve(*relation, &pattern, true)?;
                    let answers = self.evaluator.store.at(goal, question).answers;
                    premises.extend((!answers.is_empty()).then(|| self.answer(goal, answers.first)));
                }
                Literal::Fails(relation, terms) => {
                    premises.push(self.push(*relation, self.terms(terms, &registers), Cause::Absent));
                }
                Literal::Aggregate { function, relation, group, result } => {
                    let key: Vec<Value> = group.iter().map(|register| registers[*register as usize]).collect();
                    let mut pattern: Vec<Option<Value>> = key.iter().copied().map(Some).collect();
                    pattern.resize(rules.derived[*relation as usize].arity, None);
                    let (goal, _) = self.evaluator.solve(*relation, &pattern, false)?;
                    premises.extend(self.aggregate(goal, &key, *function, Some(registers[*result as usize])));
                }
                Literal::Compare(..) => {}
            }
        }
        let place = self.places[&Known::Closed(relation, row)];
        self.steps[place].premises = premises;
        Ok(())
    }

    /// What a literal's columns are with these registers; none where any value does.
    fn terms(&self, terms: &[Term], registers: &[Value]) -> Vec<Option<Value>> {
        terms.iter().map(|term| term.value(&self.evaluator.symbols, registers)).collect()
    }

    /// The place of an aggregate over the answers to a question.
    fn aggregate(&mut self, goal: u32, key: &[Value], function: Aggregate, value: Option<Value>) -> Option<usize> {
        let found = &self.evaluator.store.goals[goal as usize];
        let known = Known::Aggregate(goal, found.keys.find(key)?, function);
        if let Some(place) = self.places.get(&known) {
            return Some(*place);
        }
        let mut row: Vec<Option<Value>> = key.iter().copied().map(Some).collect();
        row.resize(key.len() + found.free, None);
        Some(self.later(known, found.relation, row, Cause::Aggregate(function, value)))
    }

    /// Gives an aggregate its premises.
    fn aggregated(&mut self, goal: u32, question: u32, function: Aggregate) {
        let place = self.places[&Known::Aggregate(goal, question, function)];
        let best = match self.steps[place].because {
            Cause::Aggregate(Aggregate::Min | Aggregate::Max | Aggregate::Percentile(_), value) => value,
            _ => None,
        };
        let found = &self.evaluator.store.goals[goal as usize];
        let (mut shown, mut rows) = (Vec::new(), 0);
        let mut answer = found.questions[question as usize].answers.first;
        while answer != NONE {
            rows += 1;
            let gives = best.is_none() || found.answers.row(answer).last().copied() == best;
            if gives && shown.len() < self.aggregated {
                shown.push(answer);
            }
            answer = found.next[answer as usize];
        }
        self.steps[place].left_out = rows - shown.len();
        self.steps[place].premises = shown.into_iter().map(|answer| self.answer(goal, answer)).collect();
    }

    /// A row of the facts that agrees with what is known, or that there is none.
    fn base(&mut self, relation: BaseRelation, mut row: Vec<Option<Value>>, cause: Cause) -> usize {
        if cause == Cause::Given && row.contains(&None) {
            let pattern = row.clone();
            self.evaluator.facts.lookup(relation, &pattern, &mut |found| {
                row = found.iter().copied().map(Some).collect();
                ControlFlow::Break(())
            });
        }
        self.push(Relation::Base(relation), row, cause)
    }

    fn absent(&mut self, goal: u32, key: &[Expression], registers: &[Value]) -> usize {
        let found = &self.evaluator.store.goals[goal as usize];
        let mut known = key.iter().map(|expression| expression.value(registers));
        let arity = found.free + found.mask.count_ones() as usize;
        let column = |column| if found.mask >> column & 1 == 1 { known.next().flatten() } else { None };
        let row = (0..arity).map(column).collect();
        self.push(Relation::Derived(found.relation), row, Cause::Absent)
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

impl Term {
    /// The value; none where any would do. `symbols` are the program's strings as values of the facts.
    fn value(&self, symbols: &[Value], registers: &[Value]) -> Option<Value> {
        match self {
            Self::Any => None,
            Self::Constant(value) => Some(value.as_own().map_or(*value, |own| symbols[own as usize])),
            Self::Fraction(value) => Some(*value),
            Self::Register(register, offset) => shifted(registers[*register as usize], *offset),
            // No deeper than the parser allows.
            Self::Arithmetic(left, operator, right) => {
                operator.apply(left.value(symbols, registers)?, right.value(symbols, registers)?)
            }
        }
    }
}
