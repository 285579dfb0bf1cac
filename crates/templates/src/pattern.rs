//! Templates in the shape that planning wants: terms solved into variable plus constant, indices classified.

use std::sync::Arc;

use crate::codes;
use crate::plan::{Field, KindTag};
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

/// A template's repetition.
#[derive(Clone, Debug)]
pub struct Round {
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
    /// Nodes outside the repetition, in the order of the text.
    pub nodes: Vec<Node>,
    /// The repetition.
    pub round: Option<Round>,
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
        let nodes = pattern.nodes.iter().chain(pattern.round.iter().flat_map(|round| &round.nodes));
        let is_scenario = |node: &Node| matches!(&node.scenario, Solved::Variable((own, _), _) if **own == *name);
        let finding = if nodes.clone().any(is_scenario) {
            Diagnostic::error(codes::UNBOUND, place, format!("`{name}` is the scenario, which has no value here"))
                .with_note(
                    "matching is local to an operation: all its nodes share one scenario, and a template fits in any",
                )
        } else {
            Diagnostic::error(codes::UNBOUND, place, format!("no node binds `{name}`")).with_similar(name, names)
        };
        self.list.push(finding);
    }

    /// Adds that the template has no node of that name, of which it has `names`.
    pub fn no_node<'n>(&mut self, name: &str, span: Span, names: impl Iterator<Item = &'n str>) {
        let message = format!("the template has no node `{name}`");
        let finding = Diagnostic::error(codes::UNBOUND, self.place(span), message).with_similar(name, names);
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
        let mut round = None;
        let scope = Scope::of(template);
        for item in &template.items {
            match item {
                MatchItem::Node(node) => nodes.push(scope.node(node, false, findings)),
                MatchItem::Repeat(repeat) if round.is_some() => {
                    findings
                        .error(codes::REPEAT_AGAIN, repeat.span, "a second `repeat` in one template")
                        .notes
                        .push("a template has at most one sequence of nodes".to_owned());
                }
                MatchItem::Repeat(repeat) => round = Some(scope.round(repeat, findings)),
                // Taken apart before.
                MatchItem::Choice(_) => {}
            }
        }
        if nodes.is_empty() {
            let message = format!("template `{}` has no glue node", template.name.value);
            let finding = findings.error(codes::NO_NODES, template.name.span, message);
            match round.as_ref().and_then(|round: &Round| round.nodes.first()) {
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
        let all = || nodes.iter().chain(round.iter().flat_map(|round: &Round| &round.nodes));
        let mut seen: Vec<&str> = Vec::new();
        for node in all() {
            if seen.contains(&&*node.name) {
                findings.error(codes::NODE_AGAIN, node.span, format!("a second node named `{}`", node.name));
            }
            seen.push(&node.name);
        }
        check_scenarios(all(), findings);
        let glue = nodes.iter().position(|node| &*node.name == "e1").unwrap_or(0);
        Some(Self { nodes, round, glue })
    }
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
    index: Option<Arc<str>>,
    count: Option<Arc<str>>,
}

impl Scope {
    /// Those of a template.
    pub fn of(template: &Template) -> Self {
        let repeat = template.items.iter().find_map(|item| match item {
            MatchItem::Repeat(repeat) => Some(repeat),
            MatchItem::Node(_) | MatchItem::Choice(_) => None,
        });
        Self {
            index: repeat.map(|repeat| Arc::clone(&repeat.index.value)),
            count: repeat.map(|repeat| Arc::clone(&repeat.count.value)),
        }
    }

    fn round(&self, repeat: &Repeat, findings: &mut Findings<'_>) -> Round {
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
            index: Arc::clone(&repeat.index.value),
            count: Arc::clone(&repeat.count.value),
            min,
            nodes: repeat.nodes.iter().map(|node| self.node(node, true, findings)).collect(),
            span: repeat.span,
        }
    }

    fn node(&self, node: &NodePattern, inside: bool, findings: &mut Findings<'_>) -> Node {
        if node.index.is_some() != inside {
            let message =
                if inside { "a node of a sequence needs an index" } else { "only a node of a sequence has an index" };
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

    fn solve(&self, term: &Spanned<Term>, inside: bool, findings: &mut Findings<'_>) -> Solved {
        match &term.value {
            Term::Wildcard => Solved::Wildcard,
            Term::Integer(value) => Solved::Integer(*value),
            Term::Symbol(name) => Solved::Symbol(Arc::clone(name)),
            Term::Variable(variable, offset) => match self.key(variable, inside) {
                Some(key) => Solved::Variable(key, *offset),
                None => {
                    bad_index(term.span, variable, findings);
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

    /// What a variable's index means; `None` where it means nothing.
    pub fn key(&self, variable: &Variable, inside: bool) -> Option<Key> {
        let at = match &variable.index {
            None => At::Scalar,
            Some(Index { variable: None, offset: 1 }) => At::First,
            Some(Index { variable: Some(name), offset }) if Some(name) == self.index.as_ref() && inside => match offset
            {
                0 => At::Here,
                1 => At::Next,
                _ => return None,
            },
            Some(Index { variable: Some(name), offset }) if Some(name) == self.count.as_ref() => match offset {
                0 => At::Last,
                1 => At::After,
                _ => return None,
            },
            Some(_) => return None,
        };
        Some((Arc::clone(&variable.name), at))
    }

    /// The index variable of the repetition.
    pub fn index(&self) -> Option<&Arc<str>> {
        self.index.as_ref()
    }

    /// The variable that holds the number of rounds.
    pub fn count(&self) -> Option<&Arc<str>> {
        self.count.as_ref()
    }
}

/// Reports an index that means nothing where it stands.
pub fn bad_index(span: Span, variable: &Variable, findings: &mut Findings<'_>) {
    findings
        .error(codes::INDEX, span, format!("this index of `{}` means nothing here", variable.name))
        .notes
        .push("inside the sequence an index is `x` or `x+1`, outside it `1`, `n` or `n+1`".to_owned());
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
