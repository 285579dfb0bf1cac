//! Which variables and columns have no numbers with a fraction, as evaluation has it from the rules.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ast::{Aggregate, Atom, Comparison, Condition, Rule, Spanned, Term};
use crate::base::Type;
use crate::check::{Checker, atoms};

/// For each column of each relation that rules define: whether it may hold a fraction.
pub(super) type Fractions = Vec<Vec<bool>>;

impl Checker<'_> {
    /// Where fractions may be, from the bodies on to the heads.
    pub(super) fn fractions(&self) -> Fractions {
        let arity = |relation: u32| self.scopes.first(relation).arguments.len();
        let mut columns: Fractions =
            (0..self.scopes.len() as u32).map(|relation| vec![false; arity(relation)]).collect();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); columns.len()];
        for (number, rule) in self.program.rules.iter().enumerate() {
            atoms(&rule.body, &mut |atom, _| {
                if let Some(relation) = self.scopes.relation(&atom.relation) {
                    readers[relation as usize].push(number);
                }
            });
        }
        let mut open: Vec<usize> = (0..self.program.rules.len()).rev().collect();
        let mut waiting = vec![true; open.len()];
        while let Some(number) = open.pop() {
            waiting[number] = false;
            let rule: &Rule = &self.program.rules[number];
            let Some(head) = self.scopes.relation(&rule.head.relation) else { continue };
            let whole = self.whole_variables(&rule.body, &columns);
            let mut changed = false;
            for (column, term) in rule.head.arguments.iter().enumerate() {
                let Some(known) = columns[head as usize].get_mut(column) else { continue };
                changed |= !*known && may(&term.value, &whole);
                *known |= may(&term.value, &whole);
            }
            if changed {
                for reader in &readers[head as usize] {
                    if !std::mem::replace(&mut waiting[*reader], true) {
                        open.push(*reader);
                    }
                }
            }
        }
        columns
    }

    /// The variables of a body that are whole for sure where they are numbers.
    pub(super) fn whole_variables<'b>(
        &self,
        body: &'b [Spanned<Condition>],
        columns: &Fractions,
    ) -> FxHashSet<&'b str> {
        // Those of atoms, with whether one of their columns has no fractions.
        let mut given: FxHashMap<&str, bool> = FxHashMap::default();
        for condition in body {
            match &condition.value {
                Condition::Atom { negated: false, atom } => {
                    for (column, term) in atom.arguments.iter().enumerate() {
                        if let Term::Variable(variable, _) = &term.value {
                            *given.entry(&variable.name).or_default() |= !self.may_column(atom, column, columns);
                        }
                    }
                }
                Condition::Aggregate { result, function, over, body } => {
                    let whole = match (function, over) {
                        (Aggregate::Count, _) => true,
                        (Aggregate::Mean, _) | (_, None) => false,
                        (_, Some(over)) => !may(&over.value, &self.whole_variables(body, columns)),
                    };
                    *given.entry(&result.value).or_default() |= whole;
                }
                _ => {}
            }
        }
        let equations = body.iter().filter_map(|condition| match &condition.value {
            Condition::Compare(left, Comparison::Equal, right) => Some([(left, right), (right, left)]),
            _ => None,
        });
        let equations: Vec<_> = equations
            .flatten()
            .filter_map(|(unknown, other)| match &unknown.value {
                Term::Variable(variable, _) if !given.contains_key(&*variable.name) => Some((&*variable.name, other)),
                _ => None,
            })
            .collect();
        // As evaluation has it: what equations alone give is whole where each of them gives a whole number.
        let of_atoms = given.iter().filter(|(_, whole)| **whole).map(|(name, _)| *name);
        let mut whole: FxHashSet<&str> = of_atoms.chain(equations.iter().map(|(name, _)| *name)).collect();
        loop {
            let may = equations.iter().find(|(name, other)| whole.contains(name) && may(&other.value, &whole));
            match may {
                Some((name, _)) => drop(whole.remove(name)),
                None => return whole,
            }
        }
    }

    fn may_column(&self, atom: &Atom, column: usize, columns: &Fractions) -> bool {
        if let Some(base) = self.schema.get(&atom.relation.value) {
            let kinds = self.schema.columns(base).1;
            return kinds.get(column).is_none_or(|kind| matches!(kind, Type::Number | Type::Any));
        }
        let relation = self.scopes.relation(&atom.relation).map(|relation| &columns[relation as usize]);
        relation.and_then(|columns| columns.get(column)).copied().unwrap_or(true)
    }
}

fn may(term: &Term, whole: &FxHashSet<&str>) -> bool {
    match term {
        Term::Wildcard | Term::Integer(_) | Term::Symbol(_) => false,
        Term::Float(_) => true,
        Term::Variable(variable, _) => !whole.contains(&*variable.name),
        // No deeper than the parser allows.
        Term::Arithmetic(left, _, right) => may(&left.value, whole) || may(&right.value, whole),
    }
}
