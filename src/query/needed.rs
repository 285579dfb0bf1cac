//! What of a program an answer needs: the rules that the relations which are asked for stand on.

use crate::datalog::ast::{Atom, Condition, Program, Rule, Spanned};
use crate::datalog::eval::Relation;
use crate::datalog::scope::Scopes;

/// The rules, in the order of the text.
pub(super) fn rules<'p>(program: &'p Program, asked: impl Iterator<Item = Relation>) -> Vec<&'p Rule> {
    let scopes = Scopes::of(program);
    let heads: Vec<Option<u32>> = program.rules.iter().map(|rule| scopes.relation(&rule.head.relation)).collect();
    let mut of: Vec<Vec<usize>> = vec![Vec::new(); scopes.len()];
    for (rule, head) in heads.iter().enumerate() {
        if let Some(head) = head {
            of[*head as usize].push(rule);
        }
    }
    let mut reached = vec![false; scopes.len()];
    let mut open: Vec<u32> = Vec::new();
    let mut reach = |relation: u32, open: &mut Vec<u32>| {
        if !std::mem::replace(&mut reached[relation as usize], true) {
            open.push(relation);
        }
    };
    for relation in asked {
        if let Relation::Derived(number) = relation {
            reach(number, &mut open);
        }
    }
    while let Some(relation) = open.pop() {
        for rule in &of[relation as usize] {
            body_atoms(&program.rules[*rule].body, &mut |atom: &'p Atom| {
                if let Some(number) = scopes.relation(&atom.relation) {
                    reach(number, &mut open);
                }
            });
        }
    }
    let needed = heads.iter().zip(&program.rules).filter(|(head, _)| head.is_some_and(|head| reached[head as usize]));
    needed.map(|(_, rule)| rule).collect()
}

/// Calls `found` with each atom of the bodies of rules, those within aggregates among them.
pub(super) fn atoms<'p>(rules: &[&'p Rule], found: &mut dyn FnMut(&'p Atom)) {
    for rule in rules {
        body_atoms(&rule.body, found);
    }
}

/// The atoms of a body.
pub(super) fn body_atoms<'p>(body: &'p [Spanned<Condition>], found: &mut dyn FnMut(&'p Atom)) {
    for condition in body {
        match &condition.value {
            Condition::Atom { atom, .. } => found(atom),
            Condition::Aggregate { body, .. } | Condition::Rounds { body, .. } => body_atoms(body, found),
            Condition::Compare(..) | Condition::NotStarts { .. } => {}
        }
    }
}
