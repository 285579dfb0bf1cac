//! The order in which a rule's body is joined when all its rows are wanted, and how each literal finds its rows.

use crate::ast::Comparison;
use crate::base::BaseRelation;
use crate::eval::evaluator::Run;
use crate::eval::plan::{self, Argument, Context, Expression, Planner};
use crate::eval::program::{Literal, Relation, Rule, Term};
use crate::eval::whole::run::Whole;
use crate::value::Value;

/// Columns of a row that are not known before it is found, and what becomes of them.
pub(super) type Cells = Vec<(usize, Argument)>;

#[derive(Debug)]
pub(super) enum WholeStep {
    /// Each row that was new in the last round.
    Delta {
        table: usize,
        cells: Cells,
        row: Option<u32>,
    },
    /// Each row.
    Scan {
        table: usize,
        cells: Cells,
        row: Option<u32>,
        exists: bool,
    },
    /// Each row with this key.
    Probe {
        table: usize,
        index: usize,
        key: Vec<Expression>,
        cells: Cells,
        row: Option<u32>,
        exists: bool,
    },
    /// Whether this row is there, or (`false`) is not.
    Has {
        table: usize,
        row: Vec<Expression>,
        holds: bool,
    },
    /// No row with this key.
    Without {
        table: usize,
        index: usize,
        key: Vec<Expression>,
    },
    /// Each row that the facts have, asked for where few are needed; or (`false`) that there is none.
    Ask {
        relation: BaseRelation,
        arguments: Vec<Argument>,
        exists: bool,
        holds: bool,
    },
    Compare(Expression, Comparison, Expression),
    Assign(u32, i64, Expression),
    /// The aggregate of a group.
    Total {
        totals: usize,
        group: Vec<u32>,
        result: Argument,
    },
}

/// A literal of the rule's own level, and the register with the number of its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) literal: usize,
    pub(super) relation: u32,
    pub(super) register: u32,
}

/// How a rule's rows are found, from all rows or from those that are new of one literal.
#[derive(Debug)]
pub(super) struct WholePlan {
    pub(super) rule: u32,
    /// The relation that the rows are of.
    pub(super) head: u32,
    /// The relation whose new rows it begins with.
    pub(super) delta: Option<u32>,
    pub(super) registers: usize,
    pub(super) steps: Vec<WholeStep>,
    /// The literal of the rule's body behind each step.
    pub(super) order: Vec<usize>,
    /// Steps that share no known column with what comes before them.
    pub(super) products: Vec<bool>,
    pub(super) result: Vec<Expression>,
    /// Recursive literals of which the row's number is kept.
    pub(super) sources: Vec<Source>,
    /// Whether its rows are those of a single group, which go to no table.
    pub(super) inside: bool,
    /// The number of the first step's counter.
    pub(super) counters: usize,
}

/// Rows to expect of a relation that is still growing.
const GROWING: u64 = 1_000_000;

impl Whole<'_, '_> {
    /// Plans a rule that begins with the new rows of a literal, if one is given.
    pub(super) fn plan(&mut self, head: u32, number: u32, delta: Option<usize>) -> Run<WholePlan> {
        self.plan_given(head, number, delta, &[])
    }

    /// The same where some registers are known beforehand.
    pub(super) fn plan_given(&mut self, head: u32, number: u32, delta: Option<usize>, given: &[u32]) -> Run<WholePlan> {
        let rules = self.rules;
        let rule = &rules.rules[number as usize];
        let (facts, symbols) = (self.facts, self.symbols);
        let mut context =
            Context { facts, symbols, goal: &mut |_, _| unreachable!("no goals here"), recursive: &|_| false };
        let mut planner = Planner::new(rule, &mut context);
        for register in given {
            planner.bind(&Argument::Bind(*register, 0));
        }
        let mut left: Vec<usize> = (0..rule.body.len()).collect();
        let mut plan = WholePlan {
            rule: number,
            head,
            delta: None,
            registers: rule.registers.len(),
            steps: Vec::new(),
            order: Vec::new(),
            products: Vec::new(),
            result: Vec::new(),
            sources: Vec::new(),
            inside: false,
            counters: 0,
        };
        let mut outer = 1.0_f64;
        if let Some(literal) = delta {
            let Literal::Holds(Relation::Derived(relation), terms) = &rule.body[literal] else {
                unreachable!("only recursive literals have new rows")
            };
            let (relation, row) = (*relation, self.source(literal, *relation, &mut plan));
            let cells = cells(planner.arguments(terms), 0);
            plan.steps.push(WholeStep::Delta { table: self.table_of(relation), cells, row });
            plan.delta = Some(relation);
            plan.order.push(literal);
            plan.products.push(false);
            left.retain(|other| *other != literal);
            outer = GROWING as f64;
        }
        while !left.is_empty() {
            let costs = left.iter().map(|literal| self.cost(&planner, head, &rule.body[*literal]));
            let (place, cost) = costs.enumerate().min_by_key(|(_, cost)| *cost).expect("some are left");
            let literal = left.remove(place);
            let product = match &rule.body[literal] {
                Literal::Holds(_, terms) => outer > 1.0 && cost > 2 && !terms.iter().any(|term| planner.joins(term)),
                _ => false,
            };
            let step = self.literal(&mut planner, rule, literal, outer, &mut plan)?;
            plan.steps.push(step);
            plan.order.push(literal);
            plan.products.push(product);
            if matches!(rule.body[literal], Literal::Holds(..)) {
                outer *= cost as f64;
            }
        }
        plan.result = rule.head.iter().map(|term| planner.expression(term)).collect();
        mark_existence(&mut plan);
        Ok(plan)
    }

    /// The register for a row's number, where the order of work or a proof depends on it.
    fn source(&self, literal: usize, relation: u32, plan: &mut WholePlan) -> Option<u32> {
        let derived = &self.rules.derived;
        let (head, read) = (&derived[plan.head as usize], &derived[relation as usize]);
        let best = head.best.is_some() && read.best.is_some();
        if head.level != read.level || !(best || self.proofs.is_some()) {
            return None;
        }
        let register = plan.registers as u32;
        plan.registers += 1;
        plan.sources.push(Source { literal, relation, register });
        Some(register)
    }

    /// Rows to expect of a literal; the greatest number where it cannot be looked at yet.
    fn cost(&self, planner: &Planner<'_, '_>, head: u32, literal: &Literal) -> u64 {
        match literal {
            Literal::Compare(left, comparison, right) => {
                if planner.decides(left, *comparison, right) {
                    0
                } else {
                    u64::MAX
                }
            }
            Literal::Holds(Relation::Base(relation), terms) => {
                self.facts.estimate(*relation, planner.mask(terms)).min(u64::MAX - 2) + 1
            }
            Literal::Holds(Relation::Derived(relation), terms) => {
                let derived = &self.rules.derived;
                let growing = derived[*relation as usize].level == derived[head as usize].level;
                let rows = self.tables[self.table_of(*relation)].len() as u64;
                let rows = if growing { rows.max(GROWING) } else { rows };
                match (planner.mask(terms).count_ones() as usize, terms.len()) {
                    (known, all) if known == all => 1,
                    (0, _) => rows + 1,
                    (known, all) => (rows as f64).powf(1.0 - known as f64 / all as f64) as u64 + 1,
                }
            }
            Literal::Fails(_, terms) if planner.deniable(terms) => 1,
            Literal::Aggregate { group, .. } if group.iter().all(|register| planner.knows(*register)) => 1,
            Literal::Fails(..) | Literal::Aggregate { .. } => u64::MAX,
        }
    }

    fn literal(
        &mut self,
        planner: &mut Planner<'_, '_>,
        rule: &Rule,
        literal: usize,
        outer: f64,
        plan: &mut WholePlan,
    ) -> Run<WholeStep> {
        Ok(match &rule.body[literal] {
            Literal::Compare(left, comparison, right) => match planner.comparison(left, *comparison, right) {
                plan::GoalStep::Assign(register, offset, expression) => WholeStep::Assign(register, offset, expression),
                plan::GoalStep::Compare(left, comparison, right) => WholeStep::Compare(left, comparison, right),
                _ => unreachable!("a comparison becomes one of these"),
            },
            Literal::Holds(Relation::Base(relation), terms) => {
                let (constants, asked) = self.subset(planner, *relation, terms, outer);
                if asked {
                    let arguments = planner.arguments(terms);
                    return Ok(WholeStep::Ask { relation: *relation, arguments, exists: false, holds: true });
                }
                let table = self.base_table(*relation, constants)?;
                self.rows(planner, table, terms, None)
            }
            Literal::Holds(Relation::Derived(relation), terms) => {
                let table = self.table_of(*relation);
                let row = self.source(literal, *relation, plan);
                if row.is_none() && terms.iter().all(|term| planner.known(term)) {
                    let row = terms.iter().map(|term| planner.expression(term)).collect();
                    return Ok(WholeStep::Has { table, row, holds: true });
                }
                self.rows(planner, table, terms, row)
            }
            Literal::Fails(relation, terms) => {
                let table = match relation {
                    Relation::Base(relation) => {
                        let (constants, asked) = self.subset(planner, *relation, terms, outer);
                        if asked {
                            let arguments = planner.arguments(terms);
                            return Ok(WholeStep::Ask { relation: *relation, arguments, exists: true, holds: false });
                        }
                        self.base_table(*relation, constants)?
                    }
                    Relation::Derived(relation) => {
                        let table = self.table_of(*relation);
                        if terms.iter().all(|term| planner.known(term)) {
                            let row = terms.iter().map(|term| planner.expression(term)).collect();
                            return Ok(WholeStep::Has { table, row, holds: false });
                        }
                        table
                    }
                };
                let (columns, key) = key(planner, terms);
                WholeStep::Without { table, index: self.tables[table].index(&columns), key }
            }
            Literal::Aggregate { function, relation, group, result } => {
                let result = planner.argument(&Term::Register(*result, 0), &mut Vec::new());
                planner.bind(&result);
                WholeStep::Total {
                    totals: self.totals(*relation, *function, group.len())?,
                    group: group.clone(),
                    result,
                }
            }
        })
    }

    fn rows(&mut self, planner: &mut Planner<'_, '_>, table: usize, terms: &[Term], row: Option<u32>) -> WholeStep {
        let mask = planner.mask(terms);
        let (columns, key) = key(planner, terms);
        let cells = cells(planner.arguments(terms), mask);
        if columns.is_empty() {
            return WholeStep::Scan { table, cells, row, exists: false };
        }
        WholeStep::Probe { table, index: self.tables[table].index(&columns), key, cells, row, exists: false }
    }

    /// What of a base relation a literal is about whatever the registers are; and whether to ask for single rows of it
    /// instead of reading all that.
    fn subset(
        &self,
        planner: &Planner<'_, '_>,
        relation: BaseRelation,
        terms: &[Term],
        outer: f64,
    ) -> (Vec<Option<Value>>, bool) {
        let constant = |term: &Term| match term {
            Term::Constant(_) | Term::Fraction(_) => planner.expression(term).value(&[]),
            _ => None,
        };
        let constants: Vec<Option<Value>> = terms.iter().map(constant).collect();
        let fixed = constants.iter().enumerate().map(|(column, value)| u32::from(value.is_some()) << column).sum();
        let few = outer * 4.0 < self.facts.estimate(relation, fixed) as f64;
        (constants, few && planner.mask(terms) != fixed)
    }
}

/// The known columns and their values.
fn key(planner: &Planner<'_, '_>, terms: &[Term]) -> (Vec<usize>, Vec<Expression>) {
    let known = terms.iter().enumerate().filter(|(_, term)| planner.known(term));
    known.map(|(column, term)| (column, planner.expression(term))).unzip()
}

/// The columns outside the bit mask that say or give something.
fn cells(arguments: Vec<Argument>, mask: u32) -> Cells {
    let columns = arguments.into_iter().enumerate();
    columns.filter(|(column, argument)| mask >> column & 1 == 0 && !matches!(argument, Argument::Any)).collect()
}

/// A literal whose new values nothing reads afterwards only has to find one row.
fn mark_existence(plan: &mut WholePlan) {
    let mut read = vec![false; plan.registers];
    for source in &plan.sources {
        read[source.register as usize] = true;
    }
    plan.result.iter().for_each(|expression| expression.registers(&mut read));
    for step in plan.steps.iter_mut().rev() {
        let useful = |argument: &Argument, read: &[bool]| matches!(argument, Argument::Bind(r, _) if read[*r as usize]);
        match step {
            WholeStep::Scan { cells, row, exists, .. } => {
                *exists = row.is_none() && !cells.iter().any(|(_, argument)| useful(argument, &read));
                for (_, argument) in cells.iter() {
                    argument.registers(&mut read);
                }
            }
            WholeStep::Probe { key, cells, row, exists, .. } => {
                *exists = row.is_none() && !cells.iter().any(|(_, argument)| useful(argument, &read));
                for (_, argument) in cells.iter() {
                    argument.registers(&mut read);
                }
                for expression in key.iter() {
                    expression.registers(&mut read);
                }
            }
            WholeStep::Delta { cells, .. } => cells.iter().for_each(|(_, argument)| argument.registers(&mut read)),
            WholeStep::Has { row: key, .. } | WholeStep::Without { key, .. } => {
                for expression in key.iter() {
                    expression.registers(&mut read);
                }
            }
            WholeStep::Ask { arguments, exists, .. } => {
                *exists = !arguments.iter().any(|argument| useful(argument, &read));
                for argument in arguments.iter() {
                    argument.registers(&mut read);
                }
            }
            WholeStep::Compare(left, _, right) => {
                left.registers(&mut read);
                right.registers(&mut read);
            }
            WholeStep::Assign(_, _, expression) => expression.registers(&mut read),
            WholeStep::Total { group, result, .. } => {
                for register in group.iter() {
                    read[*register as usize] = true;
                }
                result.registers(&mut read);
            }
        }
    }
}
