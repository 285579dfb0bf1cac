//! Relations that templates on events ask, answered by walking up a tree.
//!
//! The general evaluator keeps answers, and may not see facts change. Here facts change with every message, and every question is
//! whether something holds of two known occurrences. Rules of a certain form need no search for that: each literal of a body looks up
//! the one row that can match, by a functional edge, or compares what is known, and a call of another rule stands last. Such rules
//! are compiled to steps over registers, and calls to jumps, so that a question costs as much as the way that it walks and
//! no memory at all. Rules of another form are refused when they are loaded.
//!
//! The evaluator gives the same answers from a copy of the facts, slowly; a test holds the two together.

use std::sync::Arc;

use crate::codes;
use dyelog_datalog::ast::{Atom, Comparison, Condition, Program, Rule, Term};
use dyelog_diagnostic::{Diagnostic, Diagnostics};

/// What the rules ask of the trees.
pub trait Facts {
    /// `arc(P, C)`: the parent of a node.
    fn parent(&self, node: u32) -> Option<u32>;
    /// `waiting(C)`.
    fn waiting(&self, node: u32) -> bool;
    /// `born(N, S)`.
    fn born(&self, node: u32) -> u64;
}

/// A register.
type Register = u8;

#[derive(Clone, Copy, Debug)]
enum WalkStep {
    /// The parent of a node must be what a register holds, or is put there.
    Arc {
        child: Register,
        parent: Register,
        bind: bool,
    },
    Born {
        node: Register,
        number: Register,
        bind: bool,
    },
    Waiting {
        node: Register,
        holds: bool,
    },
    Compare {
        left: Register,
        how: Comparison,
        right: Register,
    },
    /// Goes on as another relation, of two registers.
    Jump {
        relation: u8,
        left: Register,
        right: Register,
    },
}

/// Rules that are ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Walks {
    names: Vec<Arc<str>>,
    /// The clauses of each relation, in the order of the text, but for one with a call, which is last.
    relations: Vec<Vec<Vec<WalkStep>>>,
}

/// A relation of two occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal(u8);

/// How many registers there are.
const REGISTERS: usize = 16;

impl Walks {
    /// Rules of a program.
    ///
    /// # Errors
    /// Where a rule would have to be searched for.
    pub fn of(program: &Program) -> Result<Self, Diagnostics> {
        let mut walks = Self { names: Vec::new(), relations: Vec::new() };
        for rule in &program.rules {
            let name = &rule.head.relation.value;
            if !walks.names.contains(name) {
                walks.names.push(Arc::clone(name));
                walks.relations.push(Vec::new());
            }
        }
        let mut findings = Vec::new();
        for rule in &program.rules {
            match walks.clause(rule) {
                Ok((relation, clause)) => {
                    let goes_on = |clause: &Vec<WalkStep>| matches!(clause.last(), Some(WalkStep::Jump { .. }));
                    if goes_on(&clause) && walks.relations[relation].iter().any(goes_on) {
                        // Both would have to be tried.
                        let message =
                            format!("a second rule of `{}` that goes on as another relation", rule.head.relation.value);
                        findings.push(Diagnostic::error(codes::NOT_WALKABLE, program.place(rule.head.span), message));
                    }
                    walks.relations[relation].push(clause);
                }
                Err((span, message)) => {
                    let place = program.place(span);
                    findings.push(Diagnostic::error(codes::NOT_WALKABLE, place, message));
                }
            }
        }
        if !findings.is_empty() {
            return Err(Diagnostics(findings));
        }
        for clauses in &mut walks.relations {
            clauses.sort_by_key(|clause| matches!(clause.last(), Some(WalkStep::Jump { .. })));
        }
        Ok(walks)
    }

    /// The relation of this name.
    pub fn goal(&self, name: &str) -> Option<Goal> {
        self.names.iter().position(|known| **known == *name).map(|place| Goal(place as u8))
    }

    fn clause(&self, rule: &Rule) -> Result<(usize, Vec<WalkStep>), (dyelog_datalog::ast::Span, String)> {
        let mut registers: Vec<Arc<str>> = Vec::new();
        for argument in &rule.head.arguments {
            match &argument.value {
                Term::Variable(variable, 0) if !registers.contains(&variable.name) => {
                    registers.push(Arc::clone(&variable.name));
                }
                _ => return Err((argument.span, "the head of a rule of SAME has two variables".to_owned())),
            }
        }
        if registers.len() != 2 || self.names.len() > usize::from(u8::MAX) {
            return Err((rule.head.span, "the head of a rule of SAME has two variables".to_owned()));
        }
        let mut steps = Vec::new();
        for (place, condition) in rule.body.iter().enumerate() {
            let last = place + 1 == rule.body.len();
            let step = match &condition.value {
                Condition::Compare(left, how, right) => {
                    match (known(&registers, &left.value), known(&registers, &right.value)) {
                        (Some(left), Some(right)) => Ok(WalkStep::Compare { left, how: *how, right }),
                        _ => Err("both sides must be variables that are known here".to_owned()),
                    }
                }
                Condition::Atom { negated, atom } => self.atom(&mut registers, atom, *negated, last),
                _ => Err("rules of SAME have atoms and comparisons only".to_owned()),
            };
            steps.push(step.map_err(|message| (condition.span, message))?);
        }
        let relation = self.names.iter().position(|name| *name == rule.head.relation.value);
        Ok((relation.expect("all heads were gathered before"), steps))
    }

    fn atom(&self, registers: &mut Vec<Arc<str>>, atom: &Atom, negated: bool, last: bool) -> Result<WalkStep, String> {
        let name = &*atom.relation.value;
        let mut argument = |place: usize| -> Result<(Register, bool), String> {
            let Some(Term::Variable(variable, 0)) = atom.arguments.get(place).map(|term| &term.value) else {
                return Err(format!("`{name}` needs variables here"));
            };
            let known = registers.iter().position(|known| *known == variable.name);
            let register = known.unwrap_or(registers.len());
            if known.is_none() {
                if registers.len() == REGISTERS {
                    return Err("a rule of SAME has at most 16 variables".to_owned());
                }
                registers.push(Arc::clone(&variable.name));
            }
            Ok((register as Register, known.is_some()))
        };
        let search = || format!("`{name}` would have to be searched for: no bound variable determines its row");
        match (name, atom.arguments.len()) {
            ("arc", 2) if !negated => {
                let (child, is_known) = argument(1)?;
                let (parent, bound) = argument(0)?;
                if is_known { Ok(WalkStep::Arc { child, parent, bind: !bound }) } else { Err(search()) }
            }
            ("born", 2) if !negated => {
                let (node, is_known) = argument(0)?;
                let (number, bound) = argument(1)?;
                if is_known { Ok(WalkStep::Born { node, number, bind: !bound }) } else { Err(search()) }
            }
            ("waiting", 1) => {
                let (node, is_known) = argument(0)?;
                if is_known { Ok(WalkStep::Waiting { node, holds: !negated }) } else { Err(search()) }
            }
            (_, 2) if self.names.iter().any(|known| **known == *name) => {
                let ((left, one), (right, two)) = (argument(0)?, argument(1)?);
                let relation = self.names.iter().position(|known| **known == *name).expect("it was just found") as u8;
                match (negated, last, one && two) {
                    (false, true, true) => Ok(WalkStep::Jump { relation, left, right }),
                    (true, ..) => Err(format!("`{name}` cannot be negated here")),
                    (_, false, _) => Err(format!("`{name}` must stand last in its rule")),
                    (_, _, false) => Err(search()),
                }
            }
            _ => Err(format!("there is no relation `{name}` of so many columns")),
        }
    }

    /// Whether a relation holds of two nodes.
    pub fn holds(&self, goal: Goal, left: u32, right: u32, facts: &impl Facts) -> bool {
        let mut registers = [0_u64; REGISTERS];
        (registers[0], registers[1]) = (u64::from(left), u64::from(right));
        let mut relation = goal.0;
        // The state at some jump before. Where it comes again nothing new comes, and what holds by itself alone does not hold.
        let (mut known, mut jumps, mut until) = ((relation, registers[0], registers[1]), 0_u64, 1_u64);
        'relation: loop {
            'clause: for clause in &self.relations[usize::from(relation)] {
                for step in clause {
                    let holds = match *step {
                        WalkStep::Arc { child, parent, bind } => {
                            match facts.parent(registers[usize::from(child)] as u32) {
                                Some(found) if bind => {
                                    registers[usize::from(parent)] = u64::from(found);
                                    true
                                }
                                Some(found) => registers[usize::from(parent)] == u64::from(found),
                                None => false,
                            }
                        }
                        WalkStep::Born { node, number, bind } => {
                            let found = facts.born(registers[usize::from(node)] as u32);
                            let place = &mut registers[usize::from(number)];
                            if bind {
                                *place = found;
                            }
                            *place == found
                        }
                        WalkStep::Waiting { node, holds } => {
                            facts.waiting(registers[usize::from(node)] as u32) == holds
                        }
                        WalkStep::Compare { left, how, right } => {
                            how.holds(registers[usize::from(left)], registers[usize::from(right)])
                        }
                        WalkStep::Jump { relation: next, left, right } => {
                            (registers[0], registers[1]) =
                                (registers[usize::from(left)], registers[usize::from(right)]);
                            relation = next;
                            let state = (relation, registers[0], registers[1]);
                            if state == known {
                                return false;
                            }
                            jumps += 1;
                            if jumps == until {
                                (known, jumps, until) = (state, 0, until.saturating_mul(2));
                            }
                            continue 'relation;
                        }
                    };
                    if !holds {
                        continue 'clause;
                    }
                }
                return true;
            }
            return false;
        }
    }
}

fn known(registers: &[Arc<str>], term: &Term) -> Option<Register> {
    match term {
        Term::Variable(variable, 0) => {
            registers.iter().position(|known| *known == variable.name).map(|place| place as Register)
        }
        _ => None,
    }
}
