//! Templates in the shape that planning wants: terms solved into variable plus constant, indices classified.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::codes;
use crate::plan::{Field, KindTag, MAX_SEQUENCES};
use dyelog_datalog::ast::{
    Condition, Index, KindPattern, MatchItem, NodePattern, Program, Repeat, Span, Spanned, Template, Term, Variable,
};
use dyelog_datalog::scope::Scopes;
use dyelog_diagnostic::{Code, Diagnostic, Place};

/// What the index of a variable says, seen from where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// No index.
    Scalar,
    /// `[x]`, inside the repetition.
    Here,
    /// `[x+1]`, inside the repetition.
    Next,
    /// `[1]`
    First,
    /// `[n]`
    Last,
    /// `[n+1]`
    After,
    /// `[x+2]`, `[x-1]`: so many rounds further on.
    Further(i64),
    /// `[2]`: the round of that number.
    Nth(i64),
    /// `[n-1]`: so many rounds after the last one; negative.
    FromLast(i64),
    /// `[y+1]` of what belongs to an earlier sequence: its round that has the number of a round of this one, plus a constant.
    Across(u8, i64),
}

/// A variable with the meaning of its index.
pub type Key = (Arc<str>, At);

/// A term of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Solved {
    /// `_`
    Wildcard,
    /// A whole number.
    Integer(i64),
    /// A name.
    Symbol(Arc<str>),
    /// A variable plus a constant.
    Variable(Key, i64),
}

/// A node pattern.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// The type label.
    pub kind: KindTag,
    /// The thread of a fork or join; a wildcard for other kinds.
    pub target: Solved,
    /// Scenario.
    pub scenario: Solved,
    /// Thread.
    pub thread: Solved,
    /// Thread node counter.
    pub position: Solved,
    /// Task.
    pub task: Solved,
    /// Task node counter.
    pub counter: Solved,
    /// Attributes.
    pub attributes: Vec<(Field, Solved)>,
    /// Where it stands.
    pub span: Span,
}

impl Node {
    /// Its terms with the fields they speak of, scenario left out.
    pub fn terms(&self) -> impl Iterator<Item = (Field, &Solved)> {
        [
            (Field::Target, &self.target),
            (Field::Thread, &self.thread),
            (Field::Position, &self.position),
            (Field::Task, &self.task),
            (Field::Counter, &self.counter),
        ]
        .into_iter()
        .chain(self.attributes.iter().map(|(field, term)| (*field, term)))
    }
}

/// A repetition of a template.
#[derive(Clone, Debug)]
pub struct Round {
    /// Which of the template's, from 0.
    pub number: usize,
    /// How many nodes the rounds of those before it have.
    pub first: usize,
    /// The index variable.
    pub index: Arc<str>,
    /// The variable that holds the number of rounds.
    pub count: Arc<str>,
    /// The least number of rounds.
    pub min: u32,
    /// The nodes of a round.
    pub nodes: Vec<Node>,
    /// Where it stands.
    pub span: Span,
}

/// The nodes of a template.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Nodes outside the repetitions, in the order of the text.
    pub nodes: Vec<Node>,
    /// The repetitions, in the order of the text.
    pub rounds: Vec<Round>,
    /// Which of the nodes is the glue node: `e1`, else the first.
    pub glue: usize,
}

/// Collects findings about one template of a program.
pub struct Findings<'p> {
    program: &'p Program,
    /// What names of relations mean.
    pub scopes: Scopes<'p>,
    /// The findings.
    pub list: Vec<Diagnostic>,
}

impl<'p> Findings<'p> {
    /// None yet.
    pub fn new(program: &'p Program) -> Self {
        Self { program, scopes: Scopes::of(program), list: Vec::new() }
    }

    /// The program that the template is of.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// The place of a span.
    pub fn place(&self, span: Span) -> Place {
        place(self.program, span)
    }

    /// Adds an error.
    ///
    /// # Panics
    /// Never: it hands out what it has just pushed.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        let place = self.place(span);
        self.list.push(Diagnostic::error(code, place, message));
        self.list.last_mut().expect("one was pushed")
    }

    /// Adds that no node binds a variable, of which `names` are bound.
    pub fn unbound<'n>(&mut self, name: &str, span: Span, pattern: &Pattern, names: impl Iterator<Item = &'n str>) {
        let place = self.place(span);
        let mut nodes = pattern.all();
        let is_scenario = |node: &Node| matches!(&node.scenario, Solved::Variable((own, _), _) if **own == *name);
        let finding = if nodes.any(is_scenario) {
            Diagnostic::error(codes::UNBOUND, place, format!("`{name}` is the scenario, which has no value here"))
                .with_note(
                    "matching is local to an operation: all its nodes share one scenario, and a template fits in any",
                )
        } else {
            Diagnostic::error(codes::UNBOUND, place, format!("no node binds `{name}`"))
                .with_similar(name, slips(name, names))
        };
        self.list.push(finding);
    }

    /// Adds that the template has no node of that name, of which it has `names`.
    pub fn no_node<'n>(&mut self, name: &str, span: Span, names: impl Iterator<Item = &'n str>) {
        let message = format!("the template has no node `{name}`");
        let finding =
            Diagnostic::error(codes::UNBOUND, self.place(span), message).with_similar(name, slips(name, names));
        self.list.push(finding);
    }

    /// Adds a warning.
    ///
    /// # Panics
    /// Never: it hands out what it has just pushed.
    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        let place = self.place(span);
        self.list.push(Diagnostic::warning(code, place, message));
        self.list.last_mut().expect("one was pushed")
    }
}

/// The place of a span of a program.
pub fn place(program: &Program, span: Span) -> Place {
    match program.files.get(span.file as usize) {
        Some(file) => Place::Range { file: Arc::clone(&file.name), start: span.start as usize, end: span.end as usize },
        None => Place::Nowhere,
    }
}

impl Pattern {
    /// The pattern of a template; findings say what is wrong with it, `None` when there is nothing to plan.
    pub fn of(template: &Template, findings: &mut Findings<'_>) -> Option<Self> {
        let mut nodes = Vec::new();
        let mut rounds: Vec<Round> = Vec::new();
        let scope = Scope::of(template);
        for item in &template.items {
            match item {
                MatchItem::Node(node) => nodes.push(scope.node(node, None, findings)),
                MatchItem::Repeat(repeat) => {
                    if clash(&rounds, repeat, findings) {
                        return None;
                    }
                    let first = rounds.last().map_or(0, |round| round.first + round.nodes.len());
                    rounds.push(scope.round(rounds.len(), first, repeat, findings));
                }
                // Taken apart before.
                MatchItem::Choice(_) => {}
            }
        }
        if nodes.is_empty() {
            let message = format!("template `{}` has no glue node", template.name.value);
            let finding = findings.error(codes::NO_NODES, template.name.span, message);
            match rounds.iter().find_map(|round| round.nodes.first()) {
                Some(first) => {
                    finding.notes.push(
                        "matching starts at a node outside `repeat`, from which its rounds are walked".to_owned(),
                    );
                    finding.hints.push(format!(
                        "put the node with which the interaction begins before the `repeat`, such as the one before `{}`",
                        first.name
                    ));
                }
                None => finding.hints.push("write `match { e1 = Ac [j, k, m | a, v] }`".to_owned()),
            }
            return None;
        }
        for round in rounds.iter().rev().skip(1).filter(|round| round.min == 0) {
            let message = "a `repeat` that another one follows has at least one round";
            let finding = findings.error(codes::REPEAT_WITHOUT_MIN, round.span, message);
            finding.hints.push(format!("write `repeat {} in 1..{} min 1`", round.index, round.count));
        }
        let all = || nodes.iter().chain(rounds.iter().flat_map(|round| &round.nodes));
        let mut seen: Vec<&str> = Vec::new();
        for node in all() {
            if seen.contains(&&*node.name) {
                findings.error(codes::NODE_AGAIN, node.span, format!("a second node named `{}`", node.name));
            }
            seen.push(&node.name);
        }
        check_scenarios(all(), findings);
        let glue = nodes.iter().position(|node| &*node.name == "e1").unwrap_or(0);
        Some(Self { nodes, rounds, glue })
    }

    /// The nodes of all rounds, by their numbers.
    pub fn of_rounds(&self) -> impl Iterator<Item = &Node> + Clone {
        self.rounds.iter().flat_map(|round| &round.nodes)
    }

    /// All nodes, those outside the repetitions first.
    pub fn all(&self) -> impl Iterator<Item = &Node> + Clone {
        self.nodes.iter().chain(self.of_rounds())
    }

    /// The repetition of a node of rounds.
    pub fn round_of(&self, node: usize) -> Option<&Round> {
        self.rounds.iter().find(|round| (round.first..round.first + round.nodes.len()).contains(&node))
    }
}

/// Tells of a `repeat` that cannot stand beside those before it.
fn clash(before: &[Round], repeat: &Repeat, findings: &mut Findings<'_>) -> bool {
    let own = [&repeat.index, &repeat.count];
    let taken = |name: &Arc<str>| before.iter().any(|round| round.index == *name || round.count == *name);
    if let Some(name) = own.into_iter().find(|name| taken(&name.value)) {
        let message = format!("`{}` is the index or number of another `repeat`", name.value);
        let finding = findings.error(codes::REPEAT_AGAIN, name.span, message);
        finding.notes.push("each sequence of a template has an index and a number of rounds of its own".to_owned());
        finding
            .hints
            .push("choose another name; that two numbers are equal is a condition, such as `m = n`".to_owned());
        return true;
    }
    if before.len() == MAX_SEQUENCES {
        let message = format!("more than {MAX_SEQUENCES} `repeat` in one template");
        let finding = findings.error(codes::REPEAT_AGAIN, repeat.span, message);
        finding.notes.push("the number of rounds of each is tried for each number of those before it".to_owned());
        return true;
    }
    false
}

/// Matching is local to an operation: all nodes share one scenario variable.
fn check_scenarios<'n>(nodes: impl Iterator<Item = &'n Node>, findings: &mut Findings<'_>) {
    let mut first: Option<&Solved> = None;
    for node in nodes {
        if let Solved::Integer(_) | Solved::Symbol(_) = node.scenario {
            let finding = findings.error(codes::SCENARIO, node.span, format!("node `{}` names a scenario", node.name));
            finding.notes.push("matching is local to an operation, and a template fits in any scenario".to_owned());
            finding.hints.push("write a variable, such as `j`".to_owned());
            continue;
        }
        if node.scenario == Solved::Wildcard {
            continue;
        }
        match first {
            None => first = Some(&node.scenario),
            Some(other) if *other == node.scenario => {}
            Some(_) => {
                findings
                    .error(codes::SCENARIO, node.span, format!("node `{}` is of another scenario", node.name))
                    .notes
                    .push("matching is local to an operation: all nodes of a template share one scenario".to_owned());
            }
        }
    }
}

/// The names of a template's index variables.
pub struct Scope {
    sequences: Vec<Sequence>,
}

/// The names of a sequence.
struct Sequence {
    index: Arc<str>,
    count: Arc<str>,
    /// Its nodes, and the variables that it is the first to name with its index.
    names: BTreeSet<Arc<str>>,
}

impl Scope {
    /// Those of a template.
    pub fn of(template: &Template) -> Self {
        let mut sequences: Vec<Sequence> = Vec::new();
        for item in &template.items {
            let MatchItem::Repeat(repeat) = item else { continue };
            let (index, count) = (Arc::clone(&repeat.index.value), Arc::clone(&repeat.count.value));
            let mut names: BTreeSet<Arc<str>> = repeat.nodes.iter().map(|node| Arc::clone(&node.name.value)).collect();
            for term in repeat.nodes.iter().flat_map(NodePattern::terms) {
                if let Term::Variable(Variable { name, index: Some(own) }, _) = &term.value
                    && own.variable.as_ref() == Some(&index)
                    && sequences.iter().all(|before| !before.names.contains(name))
                {
                    names.insert(Arc::clone(name));
                }
            }
            sequences.push(Sequence { index, count, names });
        }
        Self { sequences }
    }

    fn round(&self, number: usize, first: usize, repeat: &Repeat, findings: &mut Findings<'_>) -> Round {
        let min = match &repeat.min {
            Some(min) => u32::try_from(min.value).unwrap_or_else(|_| {
                findings.error(codes::INDEX, min.span, "a number of rounds cannot be negative");
                0
            }),
            None => {
                findings
                    .warning(
                        codes::REPEAT_WITHOUT_MIN,
                        repeat.span,
                        "`repeat` without `min` also matches no round at all",
                    )
                    .hints
                    .push(format!("write `repeat {} in 1..{} min 1`", repeat.index.value, repeat.count.value));
                0
            }
        };
        Round {
            number,
            first,
            index: Arc::clone(&repeat.index.value),
            count: Arc::clone(&repeat.count.value),
            min,
            nodes: repeat.nodes.iter().map(|node| self.node(node, Some(number), findings)).collect(),
            span: repeat.span,
        }
    }

    fn node(&self, node: &NodePattern, inside: Option<usize>, findings: &mut Findings<'_>) -> Node {
        if node.index.is_some() != inside.is_some() {
            let message = if inside.is_some() {
                "a node of a sequence needs an index"
            } else {
                "only a node of a sequence has an index"
            };
            findings.error(codes::INDEX, node.name.span, message);
        }
        let mut solve = |term: &Spanned<Term>| self.solve(term, inside, findings);
        let wildcard = Solved::Wildcard;
        let (kind, target) = match &node.kind.value {
            KindPattern::Begin => (KindTag::Begin, wildcard),
            KindPattern::Activity => (KindTag::Activity, wildcard),
            KindPattern::End => (KindTag::End, wildcard),
            KindPattern::Fork(target) => (KindTag::Fork, solve(target)),
            KindPattern::Join(target) => (KindTag::Join, solve(target)),
            KindPattern::Any => (KindTag::Any, wildcard),
        };
        let (scenario, thread, position) = (solve(&node.scenario), solve(&node.thread), solve(&node.position));
        let (task, counter) = (solve(&node.task), solve(&node.counter));
        let mut attributes = Vec::new();
        for (name, term) in &node.attributes {
            let field = match &*name.value {
                "name" => Field::Activity,
                "op" => Field::Service,
                other => {
                    let place = findings.place(name.span);
                    let message = format!("nodes have no attribute `{other}` to match");
                    let finding =
                        Diagnostic::error(codes::ATTRIBUTE, place, message).with_similar(other, ["name", "op"]);
                    findings.list.push(finding.with_note("`name` is the activity's name, `op` that of the service"));
                    continue;
                }
            };
            if attributes.iter().any(|(known, _)| *known == field) {
                findings
                    .error(
                        codes::ATTRIBUTE,
                        name.span,
                        format!("a second `{}` of node `{}`", name.value, node.name.value),
                    )
                    .notes
                    .push("a node has one activity name and one service name".to_owned());
                continue;
            }
            attributes.push((field, self.solve(term, inside, findings)));
        }
        let name = Arc::clone(&node.name.value);
        Node { name, kind, target, scenario, thread, position, task, counter, attributes, span: node.span }
    }

    fn solve(&self, term: &Spanned<Term>, inside: Option<usize>, findings: &mut Findings<'_>) -> Solved {
        match &term.value {
            Term::Wildcard => Solved::Wildcard,
            Term::Integer(value) => Solved::Integer(*value),
            Term::Symbol(name) => Solved::Symbol(Arc::clone(name)),
            Term::Variable(variable, _) if variable.index.is_none() && self.is_number_of_rounds(&variable.name) => {
                let message = format!("`{}` is a number of rounds, and no field of a node", variable.name);
                let finding = findings.error(codes::INDEX, term.span, message);
                finding.hints.push("name the field with another variable and compare the two under `where`".to_owned());
                Solved::Wildcard
            }
            Term::Variable(variable, offset) => match self.key(variable) {
                Some(key) if self.may_stand(&key, inside) => Solved::Variable(key, *offset),
                key => {
                    bad_index(term.span, variable, findings);
                    if let (Some((_, At::Further(_) | At::Nth(_) | At::FromLast(_))), Some(last)) =
                        (key, findings.list.last_mut())
                    {
                        last.hints.push("name the field with a variable and compare the two under `where`".to_owned());
                    }
                    Solved::Wildcard
                }
            },
            Term::Float(_) | Term::Arithmetic(..) => {
                findings
                    .error(codes::NOT_LINEAR, term.span, "a pattern can only say a variable plus or minus a constant")
                    .hints
                    .push("name the field with a variable and put the arithmetic under `where`".to_owned());
                Solved::Wildcard
            }
        }
    }

    /// Whether a name is the index or the number of rounds of a sequence.
    fn is_number_of_rounds(&self, name: &Arc<str>) -> bool {
        self.sequences.iter().any(|sequence| [&sequence.index, &sequence.count].contains(&name))
    }

    /// Whether a variable with that index may stand in a node of that sequence, or outside.
    fn may_stand(&self, (name, at): &Key, inside: Option<usize>) -> bool {
        let own = self.sequence_of(name);
        match at {
            At::Scalar | At::First => true,
            At::Here | At::Next => inside.is_some() && own == inside,
            At::Last | At::After => inside.is_none() || own <= inside,
            At::Across(sequence, _) => inside == Some((*sequence).into()),
            At::Further(_) | At::Nth(_) | At::FromLast(_) => false,
        }
    }

    /// What a variable's index means; `None` where it means nothing.
    pub fn key(&self, variable: &Variable) -> Option<Key> {
        let at = match &variable.index {
            None => At::Scalar,
            Some(Index { variable: None, offset: 1 }) => At::First,
            Some(Index { variable: None, offset }) if *offset > 1 => At::Nth(*offset),
            Some(Index { variable: None, .. }) => return None,
            Some(Index { variable: Some(name), offset }) => {
                let own = self.sequence_of(&variable.name);
                if let Some(sequence) = self.sequences.iter().position(|sequence| sequence.index == *name) {
                    match offset {
                        _ if own.is_some_and(|own| own < sequence) => At::Across(sequence as u8, *offset),
                        _ if own.is_some_and(|own| own > sequence) => return None,
                        0 => At::Here,
                        1 => At::Next,
                        offset => At::Further(*offset),
                    }
                } else {
                    let sequence = self.sequences.iter().position(|sequence| sequence.count == *name)?;
                    match offset {
                        _ if own.is_some_and(|own| own != sequence) => return None,
                        0 => At::Last,
                        1 => At::After,
                        offset if *offset < 0 => At::FromLast(*offset),
                        _ => return None,
                    }
                }
            }
        };
        Some((Arc::clone(&variable.name), at))
    }

    /// The sequence that a node or a variable with an index belongs to: the first one that names it.
    pub fn sequence_of(&self, name: &str) -> Option<usize> {
        self.sequences.iter().position(|sequence| sequence.names.contains(name))
    }

    /// The sequence of the round that an index speaks of, where it speaks of one at hand.
    pub fn at_hand(&self, (name, at): &Key) -> Option<usize> {
        match at {
            At::Here | At::Next | At::Further(_) => self.sequence_of(name),
            At::Across(sequence, _) => Some((*sequence).into()),
            _ => None,
        }
    }

    /// The sequence with that index variable.
    pub fn with_index(&self, name: &str) -> Option<usize> {
        self.sequences.iter().position(|sequence| *sequence.index == *name)
    }

    /// The sequence with that number of rounds.
    pub fn with_count(&self, name: &str) -> Option<usize> {
        self.sequences.iter().position(|sequence| *sequence.count == *name)
    }

    /// The index variable of a sequence.
    pub fn index(&self, sequence: usize) -> Option<&Arc<str>> {
        self.sequences.get(sequence).map(|sequence| &sequence.index)
    }

    /// The index variables of all sequences.
    pub fn indices(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sequences.iter().map(|sequence| &sequence.index)
    }

    /// The variables that hold the numbers of rounds.
    pub fn counts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.sequences.iter().map(|sequence| &sequence.count)
    }
}

/// Reports an index that means nothing where it stands.
pub fn bad_index(span: Span, variable: &Variable, findings: &mut Findings<'_>) {
    findings
        .error(codes::INDEX, span, format!("this index of `{}` means nothing here", variable.name))
        .notes
        .push("inside the sequence an index is `x` or `x+1`, outside it `1`, `n` or `n+1`; under `where` also `x+2`, `2` or `n-1`".to_owned());
}

/// The variables of a condition.
pub fn condition_terms(condition: &Condition) -> Vec<&Spanned<Term>> {
    let mut terms = Vec::new();
    match condition {
        Condition::Compare(left, _, right) => terms.extend([left, right]),
        Condition::Atom { atom, .. } => terms.extend(&atom.arguments),
        Condition::NotStarts { node, .. } => terms.push(node),
        Condition::Rounds { body, .. } => terms.extend(body.iter().flat_map(|part| condition_terms(&part.value))),
        Condition::Aggregate { over, body, .. } => {
            terms.extend(over);
            terms.extend(body.iter().flat_map(|part| condition_terms(&part.value)));
        }
    }
    // Arithmetic is nested at most as deep as the parser allows.
    let mut flat = Vec::new();
    while let Some(term) = terms.pop() {
        match &term.value {
            Term::Arithmetic(left, _, right) => terms.extend([&**left, &**right]),
            _ => flat.push(term),
        }
    }
    flat.reverse();
    flat
}

/// The names that one may be a slip of. A letter alone is as near to each other letter, which tells nothing.
pub fn slips<'n>(written: &str, names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = &'n str> {
    let alone = written.chars().count() == 1;
    names.filter(move |name| !alone || name.eq_ignore_ascii_case(written))
}
