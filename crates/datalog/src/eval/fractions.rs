//! Which columns may hold numbers with a fraction. There `/` is exact; between whole numbers it goes towards zero.
//!
//! That is decided from the rules alone, never from the values met: `Total / Count` must not turn into a division towards
//! zero in the one trace whose total happens to be whole. What a column may hold follows from the facts' columns, from
//! numbers written with a dot or an exponent, from `mean`, and from exact division, along the rules from body to head.

use crate::ast::{Aggregate, Comparison};
use crate::base::{BaseSchema, Type};
use crate::eval::number::Calculation;
use crate::eval::program::{CompiledRules, Literal, Relation, Rule, Term};

/// For each column of each relation: whether it may hold a fraction.
struct Columns {
    base: Vec<Vec<bool>>,
    derived: Vec<Vec<bool>>,
    /// Of relations that aggregates range over: the same of the variables that the aggregate's rule gives it.
    given: Vec<Vec<bool>>,
}

/// Makes each division exact whose operands may have a fraction, and notes the columns of relations that may have one.
pub(super) fn find(rules: &mut CompiledRules, schema: &BaseSchema) {
    let base = schema.names().map(|name| {
        let relation = schema.get(name).expect("the name comes from the schema");
        schema.columns(relation).1.iter().map(|kind| matches!(kind, Type::Number | Type::Any)).collect()
    });
    let derived = rules.derived.iter().map(|relation| {
        let mut columns = relation.fractions.clone();
        columns.resize(relation.arity, false);
        columns
    });
    let given = vec![Vec::new(); rules.derived.len()];
    let mut columns = Columns { base: base.collect(), derived: derived.collect(), given };
    // What is needed comes first, so that few passes are: one, but for recursion.
    let mut order: Vec<usize> = (0..rules.derived.len()).collect();
    order.sort_by_key(|relation| rules.derived[*relation].level);
    loop {
        let mut changed = false;
        for relation in &order {
            for rule in &rules.derived[*relation].rules {
                let rule = &rules.rules[*rule as usize];
                let registers = columns.registers(*relation, rule);
                changed |= columns.give(rule, &registers);
                for (column, term) in rule.head.iter().enumerate() {
                    let known = &mut columns.derived[*relation][column];
                    changed |= !*known && may(term, &registers);
                    *known |= may(term, &registers);
                }
            }
        }
        if !changed {
            break;
        }
    }
    let heads = rules.derived.iter().enumerate();
    let heads: Vec<(usize, u32)> =
        heads.flat_map(|(relation, derived)| derived.rules.iter().map(move |rule| (relation, *rule))).collect();
    for (relation, rule) in heads {
        let rule = &mut rules.rules[rule as usize];
        let registers = columns.registers(relation, rule);
        let Rule { head, body, .. } = rule;
        for term in head.iter_mut() {
            exact(term, &registers);
        }
        for literal in body {
            match literal {
                Literal::Holds(_, terms) | Literal::Fails(_, terms) => {
                    for term in terms.iter_mut() {
                        exact(term, &registers);
                    }
                }
                Literal::Compare(left, _, right) => {
                    exact(left, &registers);
                    exact(right, &registers);
                }
                Literal::Aggregate { .. } => {}
            }
        }
    }
    for (derived, columns) in rules.derived.iter_mut().zip(columns.derived) {
        derived.fractions = columns;
    }
}

impl Columns {
    fn of(&self, relation: Relation) -> &[bool] {
        match relation {
            Relation::Base(base) => &self.base[base.0 as usize],
            Relation::Derived(number) => &self.derived[number as usize],
        }
    }

    /// Hands on to the insides of a rule's aggregates which of the variables that they share with it may hold a fraction.
    fn give(&mut self, rule: &Rule, registers: &[bool]) -> bool {
        let mut changed = false;
        for literal in &rule.body {
            let Literal::Aggregate { relation, group, .. } = literal else { continue };
            let given = &mut self.given[*relation as usize];
            given.resize(group.len(), false);
            for (known, register) in given.iter_mut().zip(group) {
                changed |= !*known && registers[*register as usize];
                *known |= registers[*register as usize];
            }
        }
        changed
    }

    /// Which registers of a relation's rule may hold a fraction. What stands in several columns must be in all of them.
    fn registers(&self, relation: usize, rule: &Rule) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; rule.registers.len()];
        // The first columns of what an aggregate ranges over are the variables that it shares with its rule.
        for (term, fraction) in rule.head.iter().zip(&self.given[relation]) {
            if let Some(register) = term.register() {
                known[register as usize] = Some(*fraction);
            }
        }
        for literal in &rule.body {
            match literal {
                Literal::Holds(relation, terms) => {
                    for (term, column) in terms.iter().zip(self.of(*relation)) {
                        if let Term::Register(register, _) = term {
                            let known = &mut known[*register as usize];
                            *known = Some(known.unwrap_or(true) && *column);
                        }
                    }
                }
                Literal::Aggregate { function, relation, result, .. } => {
                    known[*result as usize] = Some(match function {
                        Aggregate::Count => false,
                        Aggregate::Mean => true,
                        _ => self.derived[*relation as usize].last().is_some_and(|column| *column),
                    });
                }
                Literal::Fails(..) | Literal::Compare(..) => {}
            }
        }
        let given: Vec<bool> = known.iter().map(Option::is_some).collect();
        let mut registers: Vec<bool> = known.into_iter().map(|known| known.unwrap_or(false)).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for literal in &rule.body {
                let Literal::Compare(left, Comparison::Equal, right) = literal else { continue };
                for (unknown, other) in [(left, right), (right, left)] {
                    if let Term::Register(register, _) = unknown
                        && !given[*register as usize]
                        && !registers[*register as usize]
                        && may(other, &registers)
                    {
                        registers[*register as usize] = true;
                        changed = true;
                    }
                }
            }
        }
        registers
    }
}

fn may(term: &Term, registers: &[bool]) -> bool {
    match term {
        Term::Any | Term::Constant(_) => false,
        Term::Fraction(_) => true,
        Term::Register(register, _) => registers[*register as usize],
        Term::Arithmetic(left, _, right) => may(left, registers) || may(right, registers),
    }
}

fn exact(term: &mut Term, registers: &[bool]) {
    let Term::Arithmetic(left, calculation, right) = term else { return };
    exact(left, registers);
    exact(right, registers);
    if *calculation == Calculation::DivideWhole && (may(left, registers) || may(right, registers)) {
        *calculation = Calculation::Divide;
    }
}
