//! The order in which a rule's body is worked off, given which columns of its head are known.

use crate::ast::{Aggregate, Comparison};
use crate::base::{BaseFacts, BaseRelation};
use crate::eval::number::{Calculation, shifted};
use crate::eval::program::{Literal, Relation, Rule, Term};
use crate::value::Value;

/// What a row of a look-up must have or gives in one column.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    /// Anything.
    Any,
    /// This value, known before the look-up.
    Known(Expression),
    /// The value minus the offset goes into the register.
    Bind(u32, i64),
    /// What an earlier column of the same row put into the register, plus the offset.
    Same(u32, i64),
}

/// Something to compute from registers.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Constant(Value),
    Register(u32, i64),
    Arithmetic(Box<Expression>, Calculation, Box<Expression>),
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub(super) enum GoalStep {
    /// Each row of a base relation; if `exists`, the first will do.
    Base { relation: BaseRelation, arguments: Vec<Argument>, exists: bool },
    /// Each row of a goal: what its bound columns are, and what its free ones give.
    Goal { goal: u32, key: Vec<Expression>, free: Vec<Argument> },
    /// No row of a base relation.
    NoBase { relation: BaseRelation, arguments: Vec<Argument> },
    /// No row of a goal.
    NoGoal { goal: u32, key: Vec<Expression> },
    /// A comparison between known values.
    Compare(Expression, Comparison, Expression),
    /// The value minus the offset goes into the register.
    Assign(u32, i64, Expression),
    /// An aggregate over a goal whose bound columns are the group; the last free column is the value.
    Aggregate { goal: u32, function: Aggregate, group: Vec<u32>, result: Argument },
}

/// How to get a rule's rows for given values of some columns of its head.
#[derive(Debug)]
pub(super) struct GoalPlan {
    pub(super) rule: u32,
    /// The goal that its rows answer.
    pub(super) goal: u32,
    pub(super) registers: usize,
    /// The goal's bound columns, and where their values go.
    pub(super) given: Vec<Argument>,
    pub(super) steps: Vec<GoalStep>,
    /// Bound columns that could not be solved for a variable: their place in the key, and what must equal it.
    pub(super) checks: Vec<(usize, Expression)>,
    /// The free columns.
    pub(super) result: Vec<Expression>,
    /// The literal of the rule's body behind each step.
    pub(super) order: Vec<usize>,
}

/// What planning asks of its caller: the facts, strings as values, and numbers for goals.
pub(super) struct Context<'c> {
    pub(super) facts: &'c dyn BaseFacts,
    pub(super) symbols: &'c [Value],
    /// The number of the goal for a relation with these columns bound.
    pub(super) goal: &'c mut dyn FnMut(u32, u32) -> u32,
    /// Whether a relation and the rule's own depend on each other.
    pub(super) recursive: &'c dyn Fn(u32) -> bool,
}

/// Where a register's value comes from. Questions must not breed questions for ever: a relation that is asked, however
/// deep in a recursion, is never asked for a value that arithmetic made of a question's own values. `up(X + 1) :- up(X), X
/// < 8.` asked for 3 would otherwise ask for 2, 1, 0, -1, … although only a few rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// From rows, constants, or arithmetic over these: there are only so many.
    Rows,
    /// From the question.
    Question,
    /// By arithmetic from the question.
    Made,
}

/// Rows to expect of a goal with all, some or none of its columns known. Nothing is known about rules in general: a goal
/// is asked before a scan, and after look-ups of a few rows.
const ALL_KNOWN: u64 = 8;
const SOME_KNOWN: u64 = 1_000;
const NONE_KNOWN: u64 = 10_000_000;

/// What is known while the literals of a rule are put in order.
pub(super) struct Planner<'p, 'c> {
    context: &'p mut Context<'c>,
    /// What is known of each register.
    bound: Vec<Option<Origin>>,
}

/// Plans a rule for the goal number `goal`, which asks for the columns outside the bit mask `mask`.
pub(super) fn plan(number: u32, rule: &Rule, goal: u32, mask: u32, context: &mut Context<'_>) -> GoalPlan {
    let mut planner = Planner::new(rule, context);
    let (mut given, mut late) = (Vec::new(), Vec::new());
    for (_, term) in rule.head.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1) {
        let place = given.len();
        let mut argument = planner.argument(term, &mut Vec::new());
        if matches!(argument, Argument::Any) {
            late.push((place, term)); // arithmetic: computed at the end and compared
        }
        if let Argument::Known(Expression::Register(register, offset)) = argument {
            argument = Argument::Same(register, offset); // an earlier column of the key
        }
        if let Argument::Bind(register, offset) = argument {
            planner.bound[register as usize] = Some(if offset == 0 { Origin::Question } else { Origin::Made });
        }
        given.push(argument);
    }
    let mut left: Vec<usize> = (0..rule.body.len()).collect();
    let (mut steps, mut order) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let cheapest = (0..left.len()).min_by_key(|place| planner.cost(&rule.body[left[*place]]));
        let literal = left.remove(cheapest.expect("some are left"));
        let step = planner.step(&rule.body[literal]);
        steps.push(step);
        order.push(literal);
    }
    let checks = late.into_iter().map(|(place, term)| (place, planner.expression(term))).collect();
    let free = rule.head.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 0);
    let result = free.map(|(_, term)| planner.expression(term)).collect();
    let mut plan =
        GoalPlan { rule: number, goal, registers: rule.registers.len(), given, steps, checks, result, order };
    mark_existence(&mut plan);
    plan
}

impl<'p, 'c> Planner<'p, 'c> {
    /// For a rule of which nothing is known yet.
    pub(super) fn new(rule: &Rule, context: &'p mut Context<'c>) -> Self {
        Self { context, bound: vec![None; rule.registers.len()] }
    }

    pub(super) fn known(&self, term: &Term) -> bool {
        match term {
            Term::Any => false,
            Term::Constant(_) | Term::Fraction(_) => true,
            Term::Register(register, _) => self.bound[*register as usize].is_some(),
            Term::Arithmetic(left, _, right) => self.known(left) && self.known(right),
        }
    }

    /// Whether a term has a variable that is known.
    pub(super) fn joins(&self, term: &Term) -> bool {
        match term {
            Term::Any | Term::Constant(_) | Term::Fraction(_) => false,
            Term::Register(register, _) => self.bound[*register as usize].is_some(),
            // No deeper than the parser allows.
            Term::Arithmetic(left, _, right) => self.joins(left) || self.joins(right),
        }
    }

    pub(super) fn mask(&self, terms: &[Term]) -> u32 {
        terms.iter().enumerate().map(|(column, term)| u32::from(self.known(term)) << column).sum()
    }

    /// The columns of a relation that a question may ask about.
    fn question_mask(&self, relation: u32, terms: &[Term]) -> u32 {
        let wild = (self.context.recursive)(relation);
        let asked = |term: &Term| self.known(term) && !(wild && self.origin(term) == Origin::Made);
        terms.iter().enumerate().map(|(column, term)| u32::from(asked(term)) << column).sum()
    }

    /// Where the value of a known term comes from.
    fn origin(&self, term: &Term) -> Origin {
        match term {
            Term::Any | Term::Constant(_) | Term::Fraction(_) => Origin::Rows,
            Term::Register(register, offset) => match self.bound[*register as usize] {
                Some(Origin::Rows) | None => Origin::Rows,
                Some(Origin::Question) if *offset == 0 => Origin::Question,
                _ => Origin::Made,
            },
            Term::Arithmetic(left, _, right) => match (self.origin(left), self.origin(right)) {
                (Origin::Rows, Origin::Rows) => Origin::Rows,
                _ => Origin::Made,
            },
        }
    }

    /// Rows to expect of a literal; the greatest number where it cannot be asked yet.
    fn cost(&self, literal: &Literal) -> u64 {
        match literal {
            Literal::Compare(left, comparison, right) => {
                if self.decides(left, *comparison, right) {
                    0
                } else {
                    u64::MAX
                }
            }
            Literal::Holds(Relation::Base(relation), terms) => {
                self.context.facts.estimate(*relation, self.mask(terms)).min(u64::MAX - 2) + 1
            }
            Literal::Holds(Relation::Derived(relation), terms) => {
                match (self.question_mask(*relation, terms).count_ones() as usize, terms.len()) {
                    (known, all) if known == all => ALL_KNOWN,
                    (0, _) => NONE_KNOWN,
                    _ => SOME_KNOWN,
                }
            }
            Literal::Fails(relation, terms) => match relation {
                _ if !self.deniable(terms) => u64::MAX,
                Relation::Base(_) => 1,
                Relation::Derived(_) => ALL_KNOWN - 1,
            },
            Literal::Aggregate { group, .. } => {
                let ready = group.iter().all(|register| self.knows(*register));
                if ready { ALL_KNOWN } else { u64::MAX }
            }
        }
    }

    /// Whether a comparison can be made, or solved for what is not known.
    pub(super) fn decides(&self, left: &Term, comparison: Comparison, right: &Term) -> bool {
        let solvable = |unknown: &Term, known: &Term| {
            comparison == Comparison::Equal && matches!(unknown, Term::Register(..)) && self.known(known)
        };
        (self.known(left) && self.known(right)) || solvable(left, right) || solvable(right, left)
    }

    /// Whether all columns of a literal that must not hold are known, but for its wildcards.
    pub(super) fn deniable(&self, terms: &[Term]) -> bool {
        terms.iter().all(|term| matches!(term, Term::Any) || self.known(term))
    }

    pub(super) fn knows(&self, register: u32) -> bool {
        self.bound[register as usize].is_some()
    }

    fn step(&mut self, literal: &Literal) -> GoalStep {
        match literal {
            Literal::Compare(left, comparison, right) => self.comparison(left, *comparison, right),
            Literal::Holds(Relation::Base(relation), terms) => {
                let arguments = self.arguments(terms);
                self.confirm(terms);
                GoalStep::Base { relation: *relation, arguments, exists: false }
            }
            Literal::Fails(Relation::Base(relation), terms) => {
                GoalStep::NoBase { relation: *relation, arguments: self.arguments(terms) }
            }
            Literal::Holds(Relation::Derived(relation), terms) => {
                let (goal, key, rest) = self.goal(*relation, terms);
                let free = self.arguments(&rest);
                self.confirm(terms);
                GoalStep::Goal { goal, key, free }
            }
            Literal::Fails(Relation::Derived(relation), terms) => {
                let (goal, key, _) = self.goal(*relation, terms);
                GoalStep::NoGoal { goal, key }
            }
            Literal::Aggregate { function, relation, group, result } => {
                let mask = (1u64 << group.len()) - 1; // the group stands first
                let goal = (self.context.goal)(*relation, mask as u32);
                let result = self.argument(&Term::Register(*result, 0), &mut Vec::new());
                self.bind(&result);
                GoalStep::Aggregate { goal, function: *function, group: group.clone(), result }
            }
        }
    }

    /// The goal for a relation with what is known, the known values, and the terms of the other columns.
    fn goal(&mut self, relation: u32, terms: &[Term]) -> (u32, Vec<Expression>, Vec<Term>) {
        let mask = self.question_mask(relation, terms);
        let goal = (self.context.goal)(relation, mask);
        let columns = terms.iter().enumerate();
        let key = columns.clone().filter(|(column, _)| mask >> column & 1 == 1).map(|(_, term)| self.expression(term));
        let rest = columns.filter(|(column, _)| mask >> column & 1 == 0).map(|(_, term)| term.clone());
        (goal, key.collect(), rest.collect())
    }

    pub(super) fn comparison(&mut self, left: &Term, comparison: Comparison, right: &Term) -> GoalStep {
        let (unknown, known) = if self.known(left) { (right, left) } else { (left, right) };
        match unknown {
            Term::Register(register, offset) if !self.known(unknown) => {
                let step = GoalStep::Assign(*register, *offset, self.expression(known));
                let origin = match self.origin(known) {
                    Origin::Question if *offset != 0 => Origin::Made,
                    origin => origin,
                };
                self.bound[*register as usize] = Some(origin);
                step
            }
            _ => GoalStep::Compare(self.expression(left), comparison, self.expression(right)),
        }
    }

    pub(super) fn arguments(&mut self, terms: &[Term]) -> Vec<Argument> {
        let mut new = Vec::new();
        let arguments: Vec<Argument> = terms.iter().map(|term| self.argument(term, &mut new)).collect();
        for argument in &arguments {
            self.bind(argument);
        }
        arguments
    }

    /// `new` collects the registers that this row itself binds.
    pub(super) fn argument(&self, term: &Term, new: &mut Vec<u32>) -> Argument {
        match term {
            Term::Any | Term::Arithmetic(..) if !self.known(term) => Argument::Any,
            Term::Register(register, offset) if !self.known(term) => {
                if new.contains(register) {
                    return Argument::Same(*register, *offset);
                }
                new.push(*register);
                Argument::Bind(*register, *offset)
            }
            _ => Argument::Known(self.expression(term)),
        }
    }

    pub(super) fn bind(&mut self, argument: &Argument) {
        if let Argument::Bind(register, _) = argument {
            self.bound[*register as usize] = Some(Origin::Rows);
        }
    }

    /// What a row has been found for is one of the rows' values from here on.
    fn confirm(&mut self, terms: &[Term]) {
        for term in terms {
            if let Term::Register(register, _) = term {
                self.bound[*register as usize] = Some(Origin::Rows);
            }
        }
    }

    pub(super) fn expression(&self, term: &Term) -> Expression {
        match term {
            // Safe rules have no wildcard here; nothing equals what nothing is known about.
            Term::Any => Expression::Constant(Value::own(u32::MAX)),
            Term::Constant(value) => {
                Expression::Constant(value.as_own().map_or(*value, |number| self.context.symbols[number as usize]))
            }
            Term::Fraction(value) => Expression::Constant(*value),
            Term::Register(register, offset) => Expression::Register(*register, *offset),
            Term::Arithmetic(left, operator, right) => {
                Expression::Arithmetic(Box::new(self.expression(left)), *operator, Box::new(self.expression(right)))
            }
        }
    }
}

/// A look-up whose new values nothing reads afterwards only has to find one row.
fn mark_existence(plan: &mut GoalPlan) {
    let mut read = vec![false; plan.registers];
    plan.result.iter().chain(plan.checks.iter().map(|(_, check)| check)).for_each(|e| e.registers(&mut read));
    for step in plan.steps.iter_mut().rev() {
        match step {
            GoalStep::Base { arguments, exists, .. } => {
                let useful = |argument: &Argument| matches!(argument, Argument::Bind(r, _) if read[*r as usize]);
                *exists = !arguments.iter().any(useful);
                for argument in arguments.iter() {
                    argument.registers(&mut read);
                }
            }
            GoalStep::NoBase { arguments, .. } => arguments.iter().for_each(|argument| argument.registers(&mut read)),
            GoalStep::Goal { key, .. } | GoalStep::NoGoal { key, .. } => {
                for expression in key.iter() {
                    expression.registers(&mut read);
                }
            }
            GoalStep::Compare(left, _, right) => {
                left.registers(&mut read);
                right.registers(&mut read);
            }
            GoalStep::Assign(_, _, expression) => expression.registers(&mut read),
            GoalStep::Aggregate { group, result, .. } => {
                for register in group.iter() {
                    read[*register as usize] = true;
                }
                result.registers(&mut read);
            }
        }
    }
}

impl Argument {
    pub(super) fn registers(&self, read: &mut [bool]) {
        match self {
            Self::Known(expression) => expression.registers(read),
            Self::Same(register, _) => read[*register as usize] = true,
            Self::Any | Self::Bind(..) => {}
        }
    }
}

impl Expression {
    pub(super) fn registers(&self, read: &mut [bool]) {
        match self {
            Self::Constant(_) => {}
            Self::Register(register, _) => read[*register as usize] = true,
            Self::Arithmetic(left, _, right) => {
                left.registers(read);
                right.registers(read);
            }
        }
    }

    /// The value; none where it is no number within range.
    pub(super) fn value(&self, registers: &[Value]) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Register(register, 0) => Some(registers[*register as usize]),
            Self::Register(register, offset) => shifted(registers[*register as usize], *offset),
            Self::Arithmetic(left, operator, right) => operator.apply(left.value(registers)?, right.value(registers)?),
        }
    }

    /// Whether nothing is computed.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Register(_, 0))
    }

    /// Whether it has no value although all of it are numbers: it divides by 0, or leaves their range.
    pub(super) fn fails(&self, registers: &[Value]) -> bool {
        match self {
            Self::Constant(_) | Self::Register(_, 0) => false,
            Self::Register(register, offset) => {
                let value = registers[*register as usize];
                value.as_number().is_some() && shifted(value, *offset).is_none()
            }
            Self::Arithmetic(left, operator, right) => match (left.value(registers), right.value(registers)) {
                (Some(left), Some(right)) => {
                    left.as_number().and(right.as_number()).is_some() && operator.apply(left, right).is_none()
                }
                _ => left.fails(registers) || right.fails(registers),
            },
        }
    }
}
