//! Relations of which evaluation finds each row once, so that nothing has to tell which rows are new.
//!
//! That is so where one rule gives the rows, no rule reads them, and a row of the relation tells from which row of each literal it came. A
//! product of a million rows thus needs no memory.

use crate::ast::Comparison;
use crate::base::BaseSchema;
use crate::eval::program::{CompiledRules, Literal, Relation, Rule, Term};

/// Marks the relations of which each row is found once.
pub(super) fn find(rules: &mut CompiledRules, schema: &BaseSchema) {
    let mut read = vec![false; rules.derived.len()];
    for needed in rules.rules.iter().flat_map(|rule| &rule.body).filter_map(Literal::derived) {
        read[needed as usize] = true;
    }
    for (relation, read) in read.into_iter().enumerate() {
        let derived = &rules.derived[relation];
        let once = match derived.rules[..] {
            [only] => {
                !read
                    && !derived.aggregate
                    && derived.best.is_none()
                    && derived.facts.rows.is_empty()
                    && tells_all(&rules.rules[only as usize], schema)
            }
            _ => false,
        };
        rules.derived[relation].once = once;
    }
}

/// Whether a row of the head tells from which row of each literal it came.
fn tells_all(rule: &Rule, schema: &BaseSchema) -> bool {
    let mut told = vec![false; rule.registers.len()];
    for register in rule.head.iter().filter_map(Term::register) {
        told[register as usize] = true;
    }
    // Each pass tells one literal more at least, and bodies are short.
    let mut open: Vec<&Literal> = rule.body.iter().collect();
    loop {
        let before = open.len();
        open.retain(|literal| !tells(literal, &mut told, schema));
        if open.len() == before {
            return !open.iter().any(|literal| matches!(literal, Literal::Holds(..)));
        }
    }
}

/// Whether the known registers of a rule determine the row of a literal; then its other registers are known, too.
fn tells(literal: &Literal, told: &mut [bool], schema: &BaseSchema) -> bool {
    let is_told = |term: &Term, told: &[bool]| match term {
        Term::Any | Term::Arithmetic(..) => false,
        Term::Constant(_) | Term::Fraction(_) => true,
        Term::Register(register, _) => told[*register as usize],
    };
    let terms: Vec<&Term> = match literal {
        // Facts may have a row twice, but where a column tells rows apart.
        Literal::Holds(Relation::Base(base), terms) => {
            let keys = schema.keys(*base);
            if !keys.iter().any(|key| terms.get(*key).is_some_and(|term| is_told(term, told))) {
                return false;
            }
            terms.iter().collect()
        }
        Literal::Holds(Relation::Derived(_), terms) => {
            return terms.iter().all(|term| is_told(term, told));
        }
        Literal::Compare(left, Comparison::Equal, right) if is_told(left, told) || is_told(right, told) => {
            vec![left, right]
        }
        _ => return false,
    };
    for register in terms.into_iter().filter_map(Term::register) {
        told[register as usize] = true;
    }
    true
}
