//! Whose the nodes of a match are.
//!
//! Work belongs to an entry of the task that does it: the 1998 paper (§5.1) deduces the task of an activity from its entry. So each
//! node goes to the entry that serves its task. Where several entries of a match do (a server that is asked twice), the template
//! tells them apart: by `addActivity`, `addBranch` or `forkBranch` of the node, else by an `addTrigger` that goes on with the node's
//! thread.

use std::sync::Arc;

use crate::codes;
use crate::operations::Compiler;
use crate::pattern::{At, Node, Scope, Solved};
use crate::plan::{EntryReference, Position};
use dyelog_datalog::ast::{Comparison, Condition, Index, Span, Template, Term};
use dyelog_diagnostic::Label;

/// A task, as the terms of a template name it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Task {
    /// Any, or a task by its name, of which there may be several instances.
    Open(Option<Arc<str>>),
    /// The value of a variable, with its index where it has one.
    Bound(Arc<str>, Option<Position>),
}

/// Whether two terms name one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// They do.
    Same,
    /// A trace will tell.
    Unsure,
    /// Nothing says so.
    Different,
}

impl Task {
    /// The task that a pattern's term names, where the indices `x` and `x+1` count from that round.
    pub(super) fn of(term: &Solved, round: Position) -> Self {
        match term {
            Solved::Symbol(name) => Self::Open(Some(Arc::clone(name))),
            Solved::Variable((name, at), 0) => Self::Bound(Arc::clone(name), index(*at, round)),
            // That a task is no number is reported where types are checked.
            Solved::Wildcard | Solved::Integer(_) | Solved::Variable(..) => Self::Open(None),
        }
    }

    /// Whether that is the other one, where variables of these names differ by a condition.
    fn agrees(&self, other: &Self, apart: &[[Arc<str>; 2]]) -> Agreement {
        match (self, other) {
            (Self::Open(Some(left)), Self::Open(Some(right))) if left != right => Agreement::Different,
            (Self::Open(_), _) | (_, Self::Open(_)) => Agreement::Unsure,
            (left, right) if left == right => Agreement::Same,
            (Self::Bound(left, _), Self::Bound(right, _)) => {
                let differ = apart.iter().any(|[one, two]| (one, two) == (left, right) || (two, one) == (left, right));
                if differ { Agreement::Different } else { Agreement::Unsure }
            }
        }
    }
}

/// The sequence of a number of rounds that a variable's index names: that of the variable, so it need not be said.
const ANY: u8 = 0;

fn index(at: At, round: Position) -> Option<Position> {
    match at {
        At::First => Some(Position::At(1)),
        At::Last => Some(Position::Count(ANY, 0)),
        At::After => Some(Position::Count(ANY, 1)),
        At::Here => Some(round),
        At::Next => Some(match round {
            Position::At(place) => Position::At(place.saturating_add(1)),
            Position::Running(offset) => Position::Running(offset.saturating_add(1)),
            Position::Count(of, offset) => Position::Count(of, offset.saturating_add(1)),
        }),
        At::Across(_, offset) => Some(Position::Running(offset)),
        At::Scalar | At::Further(_) | At::Nth(_) | At::FromLast(_) => None,
    }
}

/// Names of variables that conditions of the template say differ.
pub(super) fn names_apart(template: &Template) -> Vec<[Arc<str>; 2]> {
    let scope = Scope::of(template);
    let pair = |condition: &Condition| match condition {
        Condition::Compare(left, Comparison::NotEqual, right) => match (&left.value, &right.value) {
            // Of two that have an index each it is not said which of the one differ from which of the other.
            (Term::Variable(left, 0), Term::Variable(right, 0)) if left.index.is_none() || right.index.is_none() => {
                let of_all = |index: &Option<Index>| {
                    index.as_ref().is_none_or(|index| {
                        index.offset == 0
                            && index.variable.as_ref().is_some_and(|name| scope.with_index(name).is_some())
                    })
                };
                (of_all(&left.index) && of_all(&right.index)).then(|| [Arc::clone(&left.name), Arc::clone(&right.name)])
            }
            _ => None,
        },
        _ => None,
    };
    template.conditions.iter().filter_map(|condition| pair(&condition.value)).collect()
}

/// A node of the pattern: outside the sequence or of its rounds, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Outside.
    Fixed(usize),
    /// Of each round.
    Round(usize),
}

/// That work is an entry's, by an operation.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) entry: EntryReference,
    pub(super) task: Task,
    pub(super) what: Work,
    pub(super) span: Span,
}

/// What an operation gives to an entry.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A node of the match, and of a sequence of which round.
    Node(Which, Position),
    /// What follows on a thread.
    Thread(Solved),
}

/// Whose a node is.
struct Claim {
    node: Which,
    entry: EntryReference,
    /// Whether an operation is about the work of that node, not about what follows on its thread.
    work: bool,
    span: Span,
}

/// What operations give, node by node.
type Claims = Vec<Claim>;

impl Compiler<'_, '_, '_> {
    /// The node of the pattern.
    pub(super) fn pattern_node(&self, which: Which) -> &Node {
        match which {
            Which::Fixed(number) => &self.pattern.nodes[number],
            Which::Round(number) => self.pattern.of_rounds().nth(number).expect("it is a node of a round"),
        }
    }

    /// The task of an entry.
    fn entry_task(&self, entry: EntryReference) -> Task {
        let EntryReference::New { variable, position } = entry else {
            return Task::of(&self.pattern.nodes[self.pattern.glue].task, Position::At(0));
        };
        let name = &self.variables[variable as usize];
        let mut made = self.made.iter().filter(|made| made.name == *name);
        match (made.next(), made.next()) {
            (Some(only), None) => Task::of(&only.task, position),
            _ => {
                let here = self.made.iter().find(|made| made.name == *name && made.position == position);
                here.map_or(Task::Open(None), |made| Task::of(&made.task, position))
            }
        }
    }

    /// Whether an entry serves a task.
    fn serves(&self, entry: EntryReference, task: &Task) -> Agreement {
        self.entry_task(entry).agrees(task, &self.apart)
    }

    /// The entries of a match, as a node of each round sees them.
    fn entries(&self) -> Vec<EntryReference> {
        let made = self.made.iter().map(|made| self.reference(&made.name, made.position));
        std::iter::once(EntryReference::Trigger).chain(made).collect()
    }

    fn reference(&self, name: &Arc<str>, position: Position) -> EntryReference {
        let variable = self.variables.iter().position(|other| other == name).unwrap_or(0) as u8;
        EntryReference::New { variable, position }
    }

    /// An entry in the words of the template.
    fn entry_words(&self, entry: EntryReference) -> String {
        let EntryReference::New { variable, position } = entry else { return "`E`".to_owned() };
        let name = &self.variables[variable as usize];
        let index = |variable: &str, offset: i64| match offset {
            0 => format!("`{name}[{variable}]`"),
            offset => format!("`{name}[{variable}{offset:+}]`"),
        };
        match position {
            Position::At(0) if self.made.iter().all(|made| made.name != *name || made.position == position) => {
                format!("`{name}`")
            }
            Position::At(place) => format!("`{name}[{place}]`"),
            Position::Running(offset) => {
                let made = self.made.iter().find(|made| made.name == *name).and_then(|made| made.sequence);
                index(made.and_then(|made| self.scope.index(made)).map_or("x", |index| index), offset)
            }
            Position::Count(of, offset) => index(self.scope.counts().nth(of.into()).map_or("n", |count| count), offset),
        }
    }

    /// Holds an operation to work on the right task, once all entries are known; what only a trace can tell is checked there.
    fn check_task(&mut self, given: &Given) -> bool {
        let Given { entry, task, what, span } = given;
        let serves = self.serves(*entry, task);
        let serving = self.entries().into_iter().find(|other| self.serves(*other, task) == Agreement::Same);
        if serves == Agreement::Same || serves == Agreement::Unsure && serving.is_none() {
            self.unsure |= serves == Agreement::Unsure;
            return true;
        }
        let (own, words) = (self.entry_task(*entry), self.entry_words(*entry));
        let what = match what {
            Work::Node(which, _) => format!("node `{}`", self.pattern_node(*which).name),
            Work::Thread(_) => "the trigger".to_owned(),
        };
        let hint = match serving {
            Some(serving) => format!("the entry of {} is {}", task_words(task), self.entry_words(serving)),
            None => format!("open an entry for it: `… := newEntry(…, {})`", bare_words(task)),
        };
        let message = format!("{what} runs on {}, and entry {words} is one of {}", task_words(task), task_words(&own));
        let finding = self.findings.error(codes::WRONG_TASK, *span, message);
        finding.notes.push("work belongs to an entry of the task that does it".to_owned());
        finding.hints.push(hint);
        false
    }

    /// Whose nodes are by what the operations say.
    fn claims(&mut self) -> Claims {
        let mut claims = Claims::new();
        for given in std::mem::take(&mut self.given) {
            if !self.check_task(&given) {
                continue;
            }
            match &given.what {
                Work::Node(which, position) => self.claim(&given, *which, *position, &mut claims),
                Work::Thread(thread) => self.follow(&given, thread, &mut claims),
            }
        }
        claims
    }

    fn claim(&mut self, given: &Given, which: Which, position: Position, claims: &mut Claims) {
        let name = &self.pattern_node(which).name;
        if which == Which::Fixed(self.pattern.glue) && given.entry != EntryReference::Trigger {
            let message = format!("node `{name}` is the glue node, which is work of `E`");
            let finding = self.findings.error(codes::CLAIMED_AGAIN, given.span, message);
            finding.notes.push("whose the glue node is was known before the template was tried".to_owned());
            return;
        }
        // Of one round only, it tells nothing of the others.
        if matches!(which, Which::Round(_)) && position != Position::Running(0) {
            return;
        }
        let Some(other) = claims.iter().find(|claim| claim.work && claim.node == which) else {
            claims.push(Claim { node: which, entry: given.entry, work: true, span: given.span });
            return;
        };
        if other.entry != given.entry {
            let message = format!("node `{name}` is work of {} already", self.entry_words(other.entry));
            let first = self.findings.place(other.span);
            let finding = self.findings.error(codes::CLAIMED_AGAIN, given.span, message);
            finding.labels.push(Label { place: first, text: "said here".to_owned() });
        }
    }

    /// A trigger goes on with a thread as work of an entry: nodes of the match on that thread and task are the entry's, too.
    fn follow(&self, given: &Given, thread: &Solved, claims: &mut Claims) {
        let here = |node: &Node, round: Position| node.thread == *thread && Task::of(&node.task, round) == given.task;
        let fixed = self.pattern.nodes.iter().enumerate().filter(|(_, node)| here(node, Position::At(0)));
        let nodes = self.pattern.of_rounds().enumerate();
        let rounds = nodes.filter(|(_, node)| here(node, Position::Running(0)));
        let which = fixed.map(|(number, _)| Which::Fixed(number)).chain(rounds.map(|(number, _)| Which::Round(number)));
        for node in which {
            if !claims.iter().any(|claim| !claim.work && claim.node == node && claim.entry == given.entry) {
                claims.push(Claim { node, entry: given.entry, work: false, span: given.span });
            }
        }
    }

    /// Whose each node is: those outside the sequence, and those of a round. Where the operations are not `sound`, what may follow
    /// from that is not told.
    pub(super) fn owners(&mut self, sound: bool) -> (Vec<EntryReference>, Vec<EntryReference>) {
        let claims = self.claims();
        let fixed = (0..self.pattern.nodes.len()).map(Which::Fixed).collect::<Vec<_>>();
        let rounds = 0..self.pattern.of_rounds().count();
        let rounds = rounds.map(Which::Round).collect::<Vec<_>>();
        let mut undecided = Vec::new();
        let mut owners = |compiler: &mut Self, nodes: &[Which]| -> Vec<EntryReference> {
            nodes.iter().map(|which| compiler.owner(*which, &claims, sound, &mut undecided)).collect()
        };
        let (fixed, rounds) = (owners(self, &fixed), owners(self, &rounds));
        self.check_entries(&fixed, &rounds, &undecided);
        (fixed, rounds)
    }

    fn owner(
        &mut self,
        which: Which,
        claims: &[Claim],
        sound: bool,
        undecided: &mut Vec<(Which, Vec<EntryReference>)>,
    ) -> EntryReference {
        if which == Which::Fixed(self.pattern.glue) {
            return EntryReference::Trigger;
        }
        let mine = |work: bool| claims.iter().find(|claim| claim.node == which && claim.work == work);
        if let Some(claim) = mine(true) {
            return claim.entry;
        }
        let node = self.pattern_node(which);
        let task = Task::of(&node.task, Position::Running(0));
        let (name, span) = (Arc::clone(&node.name), node.span);
        let all = self.entries();
        let of = |wanted: Agreement| all.iter().copied().filter(|entry| self.serves(*entry, &task) == wanted).collect();
        let (sure, unsure): (Vec<EntryReference>, Vec<EntryReference>) = (of(Agreement::Same), of(Agreement::Unsure));
        match (&sure[..], &unsure[..]) {
            ([one], _) => *one,
            ([], []) if !sound => EntryReference::Nobody,
            ([], []) => {
                let message = format!("no entry of the template serves {}, on which `{name}` runs", task_words(&task));
                let finding = self.findings.warning(codes::NO_ENTRY, span, message);
                finding.notes.push("its work is in no entry, and missing from the model".to_owned());
                finding.hints.push(format!("open an entry for it: `… := newEntry(…, {})`", bare_words(&task)));
                EntryReference::Nobody
            }
            ([], [first, ..]) => {
                self.unsure = true;
                mine(false).map_or(*first, |claim| claim.entry)
            }
            ([first, ..], _) => match mine(false) {
                Some(claim) => claim.entry,
                None => {
                    let first = *first;
                    undecided.push((which, sure));
                    first
                }
            },
        }
    }

    /// Each entry is opened for a visit, so it needs a node; where several serve a task, the template says whose each node is.
    fn check_entries(
        &mut self,
        fixed: &[EntryReference],
        rounds: &[EntryReference],
        undecided: &[(Which, Vec<EntryReference>)],
    ) {
        for number in 0..self.made.len() {
            let (name, position, span) = (&self.made[number].name, self.made[number].position, self.made[number].span);
            let own = self.reference(name, position);
            let others = self.entries();
            let task = self.entry_task(own);
            let before: Vec<EntryReference> = others
                .into_iter()
                .take(number + 1)
                .filter(|other| self.serves(*other, &task) == Agreement::Same)
                .collect();
            let Some(other) = before.first() else { continue };
            let words = self.entry_words(*other);
            let open = undecided.iter().find(|(_, entries)| entries.contains(&own));
            if fixed.contains(&own) || rounds.contains(&own) {
                let Some((which, _)) = open else { continue };
                let node = Arc::clone(&self.pattern_node(*which).name);
                self.findings
                    .error(
                        codes::ENTRY_TASK_AGAIN,
                        span,
                        format!(
                            "{words} and {} serve one task, and nothing says whose `{node}` is",
                            self.entry_words(own)
                        ),
                    )
                    .hints
                    .push(format!("say it by `addActivity(…, {node})`"));
            } else {
                self.findings
                    .error(
                        codes::ENTRY_TASK_AGAIN,
                        span,
                        format!(
                            "{words} serves this task already, and no node is said to be of {}",
                            self.entry_words(own)
                        ),
                    )
                    .hints
                    .push(
                        "a second entry on one task needs nodes of its own: say which by `addActivity` or `addTrigger`"
                            .to_owned(),
                    );
            }
        }
    }

    /// An entry is one visit, for one request.
    pub(super) fn check_requested_once(&mut self, to: EntryReference, at: Span) {
        if to == EntryReference::Trigger {
            self.findings
                .error(codes::REQUESTED_AGAIN, at, "`E` is requested by the match that opened it")
                .notes
                .push("an entry is one visit: a second request would count its work twice".to_owned());
            return;
        }
        if let Some((_, first)) = self.requested.iter().find(|(other, _)| overlap(*other, to)) {
            let (first, words) = (self.findings.place(*first), self.entry_words(to));
            let finding =
                self.findings.error(codes::REQUESTED_AGAIN, at, format!("entry {words} is requested a second time"));
            finding.labels.push(Label { place: first, text: "the first time".to_owned() });
            finding.notes.push("an entry is one visit: a second request would count its work twice".to_owned());
            finding.hints.push("open an entry for each visit, and say by `addActivity` whose each node is".to_owned());
            return;
        }
        self.requested.push((to, at));
    }

    /// Entries that nobody asks for would be in no model.
    pub(super) fn check_requested(&mut self) {
        for number in 0..self.made.len() {
            let (name, position, span) = (&self.made[number].name, self.made[number].position, self.made[number].span);
            let own = self.reference(name, position);
            if !self.requested.iter().any(|(to, _)| overlap(*to, own)) {
                let words = self.entry_words(own);
                self.findings
                    .warning(codes::NOT_REQUESTED, span, format!("nobody requests entry {words}"))
                    .hints
                    .push("add `addRequest(E, …)`, by the entry that it works for".to_owned());
            }
        }
    }
}

/// Whether two references may be to one entry.
fn overlap(left: EntryReference, right: EntryReference) -> bool {
    let (EntryReference::New { variable, position }, EntryReference::New { variable: other, position: place }) =
        (left, right)
    else {
        return left == right;
    };
    let of_round = |position: Position| !matches!(position, Position::At(0));
    variable == other && (position == place || (of_round(position) && of_round(place)))
}

/// A task in words: `task `b``.
fn task_words(task: &Task) -> String {
    match task {
        Task::Open(None) => "some task".to_owned(),
        Task::Open(Some(name)) => format!("task \"{name}\""),
        Task::Bound(..) => format!("task `{}`", bare_words(task)),
    }
}

/// A task as it is written.
fn bare_words(task: &Task) -> String {
    let index = |variable: &str, offset: i64| match offset {
        0 => format!("[{variable}]"),
        offset => format!("[{variable}{offset:+}]"),
    };
    match task {
        Task::Open(None) => "_".to_owned(),
        Task::Open(Some(name)) => format!("\"{name}\""),
        Task::Bound(name, place) => {
            let index = place.map_or_else(String::new, |place| match place {
                Position::At(place) => format!("[{place}]"),
                Position::Running(offset) => index("x", offset),
                Position::Count(_, offset) => index("n", offset),
            });
            format!("{name}{index}")
        }
    }
}
