//! The conditions of a template taken apart: what its names stand for, and which literals are asked together.
//!
//! Names that no node binds are *open*: they take any value for which all literals hold that share them. Such literals are one
//! body, asked as a rule is. What speaks of the nodes of a round is asked once a round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::codes;
use crate::pattern::{At, Findings, Key, Node, Pattern, Scope, Solved, bad_index, condition_terms, slips};
use crate::planner::FUNCTIONAL_RELATIONS;
use dyelog_datalog::ast::{Atom, Condition, Quantifier, Span, Spanned, Statement, Template, Term, Variable};
use dyelog_diagnostic::{Diagnostic, Label};

/// When a unit of conditions is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Of the nodes outside the sequence, or of its ends.
    Once,
    /// Of every round.
    Every,
    /// Of some round.
    Some,
}

/// Literals that share open variables; one literal where it has none.
pub(super) type Literals<'t> = Vec<&'t Spanned<Condition>>;

/// Literals of a block, or those outside blocks: when they are asked, and of the rounds of which sequence.
type Block<'t> = (When, Option<usize>, Literals<'t>);

/// Literals speak of rounds of several sequences, which has been told.
struct Several;

/// What is decided at one time.
#[derive(Clone, Debug)]
pub(super) struct Unit<'t> {
    pub(super) when: When,
    /// Of the rounds of which sequence.
    pub(super) sequence: Option<usize>,
    /// Its bodies, of which all must hold: of one round, where it is about some round.
    pub(super) bodies: Vec<Literals<'t>>,
    /// Whether it is a relation that the planner turns into navigation.
    pub(super) navigates: bool,
}

/// What a name of a condition stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A node outside the sequence.
    Node,
    /// A node of a round.
    RoundNode(At),
    /// The number of rounds of a sequence.
    Count(usize),
    /// A variable that a node or a navigating relation binds.
    Bound(Key),
    /// A variable that nothing binds.
    Open,
    /// Nothing: an index that says nothing here.
    BadIndex,
    /// The number of the round at hand of a sequence.
    Index(usize),
    /// A node of a round, or a node outside, with the wrong kind of index.
    WrongIndex,
    /// With an index, but nothing in the sequence has that name.
    NotOfRounds,
}

/// What the names of a template's conditions stand for.
pub(super) struct Meanings<'t> {
    template: &'t Template,
    pattern: &'t Pattern,
    scope: Scope,
    /// What nodes and navigating relations bind.
    bound: Vec<Key>,
    /// Variables that follow from round to round by an equation.
    equations: Vec<Arc<str>>,
    /// Names of which it has been told that nothing binds them.
    told: Vec<Arc<str>>,
}

impl<'t> Meanings<'t> {
    pub(super) fn of(template: &'t Template, pattern: &'t Pattern, equations: Vec<Arc<str>>) -> Self {
        let bound = pattern.all().flat_map(Node::terms).filter_map(|(_, term)| match term {
            Solved::Variable(key, _) => Some(key.clone()),
            _ => None,
        });
        Self { template, pattern, scope: Scope::of(template), bound: bound.collect(), equations, told: Vec::new() }
    }

    /// What a variable stands for.
    pub(super) fn of_variable(&self, variable: &Variable) -> Meaning {
        let name = &variable.name;
        let outer = self.pattern.nodes.iter().any(|node| node.name == *name);
        let inner = self.pattern.of_rounds().any(|node| node.name == *name);
        let Some(key) = self.scope.key(variable) else { return Meaning::BadIndex };
        if outer {
            return if key.1 == At::Scalar { Meaning::Node } else { Meaning::WrongIndex };
        }
        if inner {
            return match key.1 {
                At::Scalar => Meaning::WrongIndex,
                At::After => Meaning::NotOfRounds,
                at => Meaning::RoundNode(at),
            };
        }
        if key.1 == At::Scalar
            && let Some(sequence) = self.scope.with_count(name)
        {
            return Meaning::Count(sequence);
        }
        if self.binds(&key) {
            return Meaning::Bound(key);
        }
        if key.1 != At::Scalar {
            return Meaning::NotOfRounds;
        }
        self.scope.with_index(name).map_or(Meaning::Open, Meaning::Index)
    }

    fn binds(&self, (name, at): &Key) -> bool {
        let has = |at: At| self.bound.iter().any(|(other, own)| other == name && *own == at);
        let follows = || has(At::Here) && self.equations.contains(name);
        match at {
            At::Scalar | At::Here => has(*at),
            At::Next => has(At::Next) || has(At::Here),
            At::First | At::Last => has(*at) || has(At::Here),
            At::After => has(*at) || has(At::Next) || follows(),
            At::Further(_) | At::Nth(_) | At::FromLast(_) | At::Across(..) => has(At::Here),
        }
    }

    /// The open variables of a condition, each time they stand there.
    pub(super) fn open<'c>(&self, condition: &'c Condition) -> Vec<(&'c Arc<str>, Span)> {
        let terms = condition_terms(condition).into_iter();
        let open = terms.filter_map(|term| match &term.value {
            Term::Variable(variable, _) if self.of_variable(variable) == Meaning::Open => {
                Some((&variable.name, term.span))
            }
            _ => None,
        });
        open.collect()
    }

    /// Whether a condition speaks of a round.
    pub(super) fn of_round(&self, condition: &Condition) -> bool {
        !self.at_hand(condition).is_empty()
    }

    /// The sequences of whose round at hand a condition speaks.
    fn at_hand(&self, condition: &Condition) -> BTreeSet<usize> {
        let of = |variable: &Variable| match self.of_variable(variable) {
            Meaning::RoundNode(at) => self.scope.at_hand(&(Arc::clone(&variable.name), at)),
            Meaning::Bound(key) => self.scope.at_hand(&key),
            Meaning::Index(sequence) => Some(sequence),
            _ => None,
        };
        let terms = condition_terms(condition).into_iter();
        terms
            .filter_map(|term| if let Term::Variable(variable, _) = &term.value { of(variable) } else { None })
            .collect()
    }

    /// How far before and behind a round literals speak of others of its sequence.
    pub(super) fn reach(&self, bodies: &[Literals<'_>]) -> [i64; 2] {
        let mut reach = [0, 0];
        for term in bodies.iter().flatten().flat_map(|literal| condition_terms(&literal.value)) {
            if let Term::Variable(variable, _) = &term.value
                && let Meaning::RoundNode(At::Further(further)) | Meaning::Bound((_, At::Further(further))) =
                    self.of_variable(variable)
            {
                reach = [reach[0].min(further), reach[1].max(further)];
            }
        }
        reach
    }

    /// Whether literals speak of a round and of others, which not every round has.
    fn of_several(&self, bodies: &[Literals<'_>]) -> bool {
        if self.reach(bodies) != [0, 0] {
            return true;
        }
        let next = |variable: &Variable| match self.of_variable(variable) {
            Meaning::RoundNode(At::Next) => true,
            Meaning::Bound(key @ (_, At::Next)) => !self.bound.contains(&key) && !self.equations.contains(&key.0),
            _ => false,
        };
        bodies
            .iter()
            .flatten()
            .flat_map(|literal| condition_terms(&literal.value))
            .any(|term| matches!(&term.value, Term::Variable(variable, _) if next(variable)))
    }

    /// Takes the conditions apart; what is wrong with their names is among the findings.
    pub(super) fn units(&mut self, findings: &mut Findings<'_>) -> Vec<Unit<'t>> {
        let scopes = self.scopes(findings);
        let mut units = Vec::new();
        let mut left: Vec<Block<'t>> = Vec::new();
        for (when, block, literals) in scopes {
            let good = literals.into_iter().filter(|literal| self.names_are_known(&literal.value, findings));
            left.push((when, block, good.collect()));
        }
        self.navigation(&mut left, &mut units);
        self.open_once(&left, &units, findings);
        for (when, block, literals) in left {
            let bodies = self.joined(literals);
            // What is one condition holds of one round, or of every round that it can be asked of.
            if when == When::Some || (block.is_some() && self.of_several(&bodies)) {
                if let Ok(sequence) = self.one_sequence(block, &bodies, findings) {
                    units.push(Unit { when, sequence, bodies, navigates: false });
                }
                continue;
            }
            for body in bodies {
                let bodies = vec![body];
                let Ok(sequence) = self.one_sequence(block, &bodies, findings) else { continue };
                let when = if sequence.is_some() { When::Every } else { When::Once };
                units.push(Unit { when, sequence, bodies, navigates: false });
            }
        }
        // What can be decided at the same time is decided in the order of the text.
        units.sort_by_key(|unit| unit.bodies.iter().flatten().map(|literal| literal.span).min());
        units
    }

    /// The one sequence of whose rounds literals speak, if any; says so where they speak of several.
    fn one_sequence(
        &self,
        block: Option<usize>,
        bodies: &[Literals<'t>],
        findings: &mut Findings<'_>,
    ) -> Result<Option<usize>, Several> {
        let mut own = block;
        for literal in bodies.iter().flatten() {
            for sequence in self.at_hand(&literal.value) {
                if *own.get_or_insert(sequence) != sequence {
                    let finding = findings.error(codes::INDEX, literal.span, "this speaks of rounds of two sequences");
                    finding.notes.push("a condition is asked of each round of one sequence".to_owned());
                    let [one, other] = [own.unwrap_or(0), sequence].map(|sequence| self.scope.index(sequence));
                    if let (Some(one), Some(other)) = (one, other) {
                        let (one, other) = if own < Some(sequence) { (one, other) } else { (other, one) };
                        finding.hints.push(format!(
                            "name the round of the earlier sequence by the index of the later one: `[{other}]` instead of `[{one}]`"
                        ));
                    }
                    return Err(Several);
                }
            }
        }
        Ok(own)
    }

    /// The conditions outside blocks, then those of each block, with the sequence of whose rounds it is.
    fn scopes(&self, findings: &mut Findings<'_>) -> Vec<Block<'t>> {
        let mut outside = Vec::new();
        let mut scopes = Vec::new();
        for condition in &self.template.conditions {
            let Condition::Rounds { quantifier, index, body } = &condition.value else {
                outside.push(condition);
                continue;
            };
            let word = quantifier.word();
            match (self.scope.with_index(&index.value), self.scope.index(0)) {
                (None, None) => {
                    let message = format!("`{word} {}` without a sequence", index.value);
                    let finding = findings.error(codes::INDEX, index.span, message);
                    finding.notes.push("it speaks of the rounds of a `repeat`, and the template has none".to_owned());
                }
                (None, Some(own)) => {
                    let message = format!("`{}` is not the index of the sequence", index.value);
                    let finding = findings.error(codes::INDEX, index.span, message);
                    finding.hints.push(format!("write `{word} {own} {{ … }}`"));
                }
                (Some(sequence), _) => {
                    let own = &index.value;
                    if !body.iter().any(|literal| {
                        self.of_round(&literal.value)
                            || !self.names_are_known(&literal.value, &mut Findings::new(findings.program()))
                    }) {
                        let message = format!("nothing within `{word} {own}` speaks of a round");
                        let finding = findings.error(codes::INDEX, condition.span, message);
                        finding.hints.push(format!(
                            "name a node or variable of the sequence with the index `{own}`, or put the conditions outside"
                        ));
                    }
                    let when = if *quantifier == Quantifier::Every { When::Every } else { When::Some };
                    scopes.push((when, Some(sequence), body.iter().collect()));
                }
            }
        }
        scopes.insert(0, (When::Once, None, outside));
        scopes
    }

    /// Whether each name of a condition can mean something; says so where one cannot.
    fn names_are_known(&self, condition: &Condition, findings: &mut Findings<'_>) -> bool {
        let mut good = true;
        if let Condition::Compare(left, _, right) = condition {
            for (one, other) in [(left, right), (right, left)] {
                if let (Term::Variable(variable, _), Term::Symbol(_)) = (&one.value, &other.value)
                    && matches!(self.of_variable(variable), Meaning::Count(_) | Meaning::Index(_))
                {
                    let message = format!("`{}` is a number, and is compared with a name", variable.name);
                    findings.error(dyelog_datalog::codes::TYPE, other.span, message);
                    good = false;
                }
            }
        }
        for term in condition_terms(condition) {
            let Term::Variable(variable, _) = &term.value else { continue };
            if let Condition::NotStarts { .. } = condition
                && matches!(
                    self.of_variable(variable),
                    Meaning::Open | Meaning::Bound(_) | Meaning::Count(_) | Meaning::Index(_)
                )
            {
                findings.no_node(&variable.name, term.span, self.pattern.all().map(|node| &*node.name));
                good = false;
                continue;
            }
            let name = &variable.name;
            let own = self.scope.sequence_of(name).unwrap_or(0);
            let sequence = self.scope.index(own).map_or("x", |index| index);
            match self.of_variable(variable) {
                Meaning::Node | Meaning::RoundNode(_) | Meaning::Count(_) | Meaning::Index(_) | Meaning::Bound(_) => {
                    continue;
                }
                Meaning::Open if !self.is_scenario(name) => continue,
                Meaning::Open => self.unbound(name, term.span, findings),
                Meaning::BadIndex => bad_index(term.span, variable, findings),
                Meaning::WrongIndex if variable.index.is_none() => {
                    let finding =
                        findings.error(codes::INDEX, term.span, format!("`{name}` is one node in each round"));
                    finding
                        .hints
                        .push(format!("write `{name}[{sequence}]`, or `{name}[1]` for that of the first round"));
                }
                Meaning::WrongIndex => {
                    let finding =
                        findings.error(codes::INDEX, term.span, format!("`{name}` is one node and takes no index"));
                    finding.hints.push(format!("write `{name}`"));
                }
                Meaning::NotOfRounds => self.not_of_rounds(variable, term.span, findings),
            }
            good = false;
        }
        let program = findings.program();
        if let Condition::NotStarts { template, .. } = condition
            && program.templates.iter().all(|other| other.name.value != template.value)
            && !program.lost.may_define(&template.value)
        {
            let place = findings.place(template.span);
            let message = format!("there is no template `{}`", template.value);
            let names = program.templates.iter().map(|other| &*other.name.value);
            let finding = Diagnostic::error(codes::STARTS, place, message).with_similar(&template.value, names);
            findings.list.push(finding);
            good = false;
        }
        good
    }

    fn is_scenario(&self, name: &Arc<str>) -> bool {
        self.pattern.all().any(|node| matches!(&node.scenario, Solved::Variable((own, _), _) if own == name))
    }

    fn not_of_rounds(&self, variable: &Variable, span: Span, findings: &mut Findings<'_>) {
        if self.pattern.rounds.is_empty() {
            bad_index(span, variable, findings);
            return;
        }
        let name = &variable.name;
        let place = findings.place(span);
        let of_rounds = self.bound.iter().filter(|(_, at)| *at != At::Scalar).map(|(name, _)| &**name);
        let nodes = self.pattern.of_rounds().map(|node| &*node.name);
        let message = format!(
            "no node of the sequence binds `{}`",
            dyelog_datalog::syntax::print_term(&Term::Variable(variable.clone(), 0))
        );
        let mut finding = Diagnostic::error(codes::UNBOUND, place, message);
        if self.bound.iter().any(|(other, at)| other == name && *at == At::Scalar) {
            finding = finding.with_hint(format!("`{name}` has one value for all rounds: write it without an index"));
        } else if self.bound.iter().any(|(other, at)| other == name && *at == At::Next) {
            finding =
                finding.with_note(format!("the nodes of a round have `{name}` with the index of the next round alone"));
            finding = finding.with_hint("name it in a node of the round, too, with the index of that round");
        } else {
            finding = finding.with_similar(name, slips(name, of_rounds.chain(nodes)));
        }
        findings.list.push(finding);
    }

    pub(super) fn unbound(&self, name: &Arc<str>, span: Span, findings: &mut Findings<'_>) {
        let nodes = self.pattern.nodes.iter().map(|node| &*node.name);
        let count = self.scope.counts().map(|count| &**count);
        let names = self.bound.iter().map(|(name, _)| &**name).chain(nodes).chain(count);
        findings.unbound(name, span, self.pattern, names);
    }

    /// Takes relations out that the planner turns into navigation: what decides their rows is bound. They bind the rest.
    fn navigation(&mut self, left: &mut [Block<'t>], units: &mut Vec<Unit<'t>>) {
        loop {
            let before = units.len();
            for (when, block, literals) in left.iter_mut() {
                let together = [literals.clone()];
                if *when == When::Some || (block.is_some() && self.of_several(&together)) {
                    continue;
                }
                let place = literals.iter().position(|literal| self.navigates(&literal.value));
                if let Some(place) = place {
                    let literal = literals.remove(place);
                    let sequence = block.or_else(|| self.at_hand(&literal.value).first().copied());
                    self.take(&literal.value);
                    let when = if sequence.is_some() { When::Every } else { *when };
                    units.push(Unit { when, sequence, bodies: vec![vec![literal]], navigates: true });
                }
            }
            if units.len() == before {
                return;
            }
        }
    }

    fn navigates(&self, condition: &Condition) -> bool {
        let Condition::Atom { negated: false, atom } = condition else { return false };
        let Some(deciding) = deciding(atom) else { return false };
        let (decide, decided) = atom.arguments.split_at(deciding);
        let known = |term: &Spanned<Term>| match &term.value {
            Term::Integer(_) => true,
            Term::Variable(variable, _) => matches!(self.of_variable(variable), Meaning::Bound(_)),
            _ => false,
        };
        // In a round, an open variable is sought anew each time; navigation would bind it for all of them.
        let plain = |term: &Spanned<Term>| match &term.value {
            Term::Arithmetic(..) => false,
            Term::Variable(variable, _) => match self.of_variable(variable) {
                Meaning::Bound(_) => true,
                Meaning::Open => !self.of_round(condition),
                _ => false,
            },
            _ => true,
        };
        decide.iter().all(known) && decided.iter().all(plain)
    }

    fn take(&mut self, condition: &Condition) {
        for term in condition_terms(condition) {
            if let Term::Variable(variable, _) = &term.value
                && self.of_variable(variable) == Meaning::Open
            {
                self.bound.push((Arc::clone(&variable.name), At::Scalar));
            }
        }
    }

    /// A name that stands once ties nothing together: a slip, or a wildcard in disguise.
    fn open_once(&mut self, left: &[Block<'t>], units: &[Unit<'t>], findings: &mut Findings<'_>) {
        let mut seen: BTreeMap<&Arc<str>, Vec<(usize, Span)>> = BTreeMap::new();
        let mut told = Vec::new();
        for (scope, (_, _, literals)) in left.iter().enumerate() {
            for (name, span) in literals.iter().flat_map(|literal| self.open(&literal.value)) {
                seen.entry(name).or_default().push((scope, span));
            }
        }
        for (name, places) in &seen {
            if let [(_, span)] = places[..] {
                self.once(name, span, findings);
                told.push(Arc::clone(name));
            } else if let Some((_, span)) = places.iter().find(|(scope, _)| *scope != places[0].0) {
                let first = findings.place(places[0].1);
                let message = format!("`{name}` is sought in two places");
                let finding = findings.error(codes::UNBOUND, *span, message);
                finding.labels.push(Label { place: first, text: "and here".to_owned() });
                finding.notes.push(format!(
                    "no node binds `{name}`: within `every` and `some` it is sought anew in each round, and may be another value there"
                ));
                finding.hints.push("put the literals that share it into one block, or into a rule".to_owned());
            }
        }
        self.navigated_once(units, findings);
        self.told = told;
    }

    /// Whether it has been told of a name in these literals that nothing binds it.
    pub(super) fn is_told(&self, literals: &Literals<'_>) -> bool {
        literals.iter().flat_map(|literal| self.open(&literal.value)).any(|(name, _)| self.told.contains(name))
    }

    fn once(&self, name: &Arc<str>, span: Span, findings: &mut Findings<'_>) {
        self.unbound(name, span, findings);
        if let Some(finding) = findings.list.last_mut() {
            finding.notes.push(format!("`{name}` stands once: no other literal says what it is"));
            finding.hints.push("write `_` where any value will do".to_owned());
        }
    }

    /// The same of names that only a navigating relation binds.
    fn navigated_once(&self, units: &[Unit<'t>], findings: &mut Findings<'_>) {
        let of_nodes: Vec<&Key> = self
            .pattern
            .all()
            .flat_map(Node::terms)
            .filter_map(|(_, term)| match term {
                Solved::Variable(key, _) => Some(key),
                _ => None,
            })
            .collect();
        let mut times: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let conditions = self.template.conditions.iter();
        for term in conditions.flat_map(|condition| condition_terms(&condition.value)) {
            if let Term::Variable(variable, _) = &term.value {
                *times.entry(&variable.name).or_default() += 1;
            }
        }
        for literal in units.iter().filter(|unit| unit.navigates).flat_map(|unit| &unit.bodies).flatten() {
            for term in condition_terms(&literal.value) {
                let Term::Variable(variable, _) = &term.value else { continue };
                let name = &variable.name;
                let of_node = of_nodes.iter().any(|(other, _)| other == name);
                if !of_node && times.get(name) == Some(&1) && !names(&self.template.statements, name) {
                    self.once(name, term.span, findings);
                }
            }
        }
    }

    /// Literals that share open variables, in the order of the text.
    fn joined(&self, literals: Literals<'t>) -> Vec<Literals<'t>> {
        // For each literal an earlier one of its body, or itself; and the last literal with each name.
        let mut earlier: Vec<usize> = (0..literals.len()).collect();
        let mut last: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for (number, literal) in literals.iter().enumerate() {
            for (name, _) in self.open(&literal.value) {
                if let Some(other) = last.insert(name, number) {
                    let (one, other) = (first(&mut earlier, number), first(&mut earlier, other));
                    earlier[one.max(other)] = one.min(other);
                }
            }
        }
        let mut bodies: BTreeMap<usize, Literals<'t>> = BTreeMap::new();
        for (number, literal) in literals.into_iter().enumerate() {
            bodies.entry(first(&mut earlier, number)).or_default().push(literal);
        }
        bodies.into_values().collect()
    }
}

/// The first literal of the body that one belongs to.
fn first(earlier: &mut [usize], mut number: usize) -> usize {
    while earlier[number] != number {
        earlier[number] = earlier[earlier[number]];
        number = earlier[number];
    }
    number
}

/// How many arguments of a relation that is navigation decide the others.
pub(super) fn deciding(atom: &Atom) -> Option<usize> {
    let this =
        |relation: &&(&str, usize, usize)| *relation.0 == *atom.relation.value && relation.1 == atom.arguments.len();
    FUNCTIONAL_RELATIONS.iter().find(this).map(|relation| relation.2)
}

/// Whether statements name a variable.
fn names(statements: &[Statement], name: &str) -> bool {
    let mut found = false;
    crate::check::statement_terms(statements, &mut |term| {
        dyelog_datalog::check::variables(&term.value, &mut |other| found |= **other == *name);
    });
    found
}

/// How many registers navigating relations may take.
pub(super) fn may_navigate(template: &Template) -> usize {
    let mut open: Vec<&Spanned<Condition>> = template.conditions.iter().collect();
    let mut count = 0;
    while let Some(condition) = open.pop() {
        match &condition.value {
            Condition::Atom { negated: false, atom } => count += usize::from(deciding(atom).is_some()),
            Condition::Rounds { body, .. } => open.extend(body),
            _ => {}
        }
    }
    count
}
