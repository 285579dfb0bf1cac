//! The control algorithm (1998 paper §5.2, Figure 5) and the modelling operations that it carries out.
//!
//! Trigger nodes come first in, first out. From a trigger the walk goes along the thread; at each node the templates are
//! tried in order, and the first whose nodes are all unprocessed commits. What the paper leaves open:
//!
//! - *The entry of a node* goes from node to node along the thread as long as the task stays the same; every step to
//!   another task is part of a match, which says whose the next node is. So frames nest, whatever calls back.
//! - *Phase* goes along in the same way, from the node that `phase2` names.
//! - A trigger at the begin of a thread waits until the fork of that thread has been processed: causes come first.
//! - Each node is walked over once, so the whole is linear in the nodes.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::commit::Commit;
use crate::matcher::{Match, Matcher, PROCESSED, Registers};
use crate::plan::TemplatePlan;
use crate::{barriers, detached};
use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::Interaction;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, TaskId, Toeg};

/// Number of an entry within one operation, in the order in which they are made; the paper's E0, E1, ….
pub type EntryNumber = u32;

/// A node whose entry is not known yet.
pub const UNKNOWN: EntryNumber = EntryNumber::MAX;
/// A node on a task that the thread came to with no request that a template recognises.
pub const UNOWNED: EntryNumber = EntryNumber::MAX - 1;

/// What follows this node in its visit is of the next phase.
pub const THEN_NEXT_PHASE: u8 = 2;
/// The node's activity is counted.
pub const ACTIVITY: u8 = 4;
/// A trigger waits for this fork.
pub const AWAITED: u8 = 8;
/// Where the phase minus one stands in the flags: two bits.
pub const PHASE_SHIFT: u8 = 4;
/// The bits of the flags that hold the phase.
pub const PHASE_MASK: u8 = 0b11 << PHASE_SHIFT;
/// Up to this node its task waited for a request.
pub const WAITED: u8 = 64;
/// Up to this node its task waited for time to pass.
pub const DELAYED: u8 = 128;

/// An entry of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The task; [`None`] for the customer.
    pub task: Option<TaskId>,
    /// The type of interaction.
    pub interaction: Interaction,
    /// The service's name.
    pub service: Name,
    /// The node that accepts the request; [`NONE`] for the customer.
    pub accepted_at: NodeId,
}

/// A request of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client.
    pub from: EntryNumber,
    /// The server.
    pub to: EntryNumber,
    /// The node of the requester at which it is made; [`NONE`] where it is passed on by a new entry.
    pub at: NodeId,
}

/// A parallel branch of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The entry.
    pub entry: EntryNumber,
    /// The node of the entry that forks it.
    pub fork: NodeId,
    /// The node that waits for it; [`NONE`] where the template does not say it: then it is the one that joins the thread on which
    /// the branch ends, if any does.
    pub join: NodeId,
    /// Whose nodes are on it.
    pub kind: BranchKind,
}

/// What a parallel branch consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// The thread that its fork starts.
    Thread,
    /// The request of that number, and no node.
    Request(u32),
    /// Nothing: it says where what the entry does itself is an alternative to something else.
    Alternative,
    /// The requests of the meeting of that number, one after the other.
    Meeting(u32),
    /// Nothing: its request is part of a meeting.
    Met,
}

/// Requests of one entry whose servers wait for each other at barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The nodes of the entry at which they are made.
    pub forks: Vec<NodeId>,
    /// The nodes that wait for their ends.
    pub joins: Vec<NodeId>,
    /// Of each server, whether something waits for its end.
    pub awaited: Vec<bool>,
    /// Numbers of requests: up to the first barrier, from there to the next, and so on, each with one for each server.
    pub stages: Vec<Vec<u32>>,
}

/// What can be wrong with a node after matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Irregularity {
    /// No template matches it.
    Unmatched,
    /// The thread came here from another task with no recognised request.
    Stray,
    /// A trigger named it by a label that it does not have.
    WrongTrigger,
    /// Matching stopped early for the operation.
    Budget,
    /// A wait for other entries that cannot be put into the model.
    Barrier,
    /// A wait for another entry that no template recognises.
    Wait,
}

/// A match that has been committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// The template.
    pub plan: &'a TemplatePlan,
    /// The nodes.
    pub found: &'a Match,
    /// The glue node.
    pub glue: NodeId,
    /// The entry that owns it.
    pub entry: EntryNumber,
}

/// Is told of every committed match, in order.
pub trait Observer {
    /// A match was committed.
    fn committed(&mut self, toeg: &Toeg, committed: &Committed<'_>);
}

/// Wants to know nothing.
impl Observer for () {
    fn committed(&mut self, _: &Toeg, _: &Committed<'_>) {}
}

/// Finds the match to commit at a glue node.
pub trait Engine {
    /// The first template in order that fits with unprocessed nodes only.
    fn first_match(&mut self, glue: NodeId, flags: &[u8], found: &mut Match) -> bool;
}

/// Our engine: the program of the plans.
pub struct Plans<'a> {
    /// Runs it.
    pub matcher: Matcher<'a>,
    registers: Registers<'a>,
}

impl<'a> Plans<'a> {
    /// With a matcher.
    pub fn new(matcher: Matcher<'a>) -> Self {
        let registers = Registers::of(matcher.toeg);
        Self { matcher, registers }
    }
}

impl Engine for Plans<'_> {
    #[inline]
    fn first_match(&mut self, glue: NodeId, flags: &[u8], found: &mut Match) -> bool {
        self.matcher.first_at(glue, flags, &mut self.registers, found)
    }
}

/// What the control algorithm makes of an operation.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A byte of flags a node.
    pub flags: Vec<u8>,
    /// The entry that owns each node, or [`UNKNOWN`] or [`UNOWNED`].
    pub owner: Vec<EntryNumber>,
    /// Which branch each node is in, as an index plus one; 0 for none. Empty where there are no branches.
    pub branch: Vec<u32>,
    /// Entries, the customer first.
    pub entries: Vec<Entry>,
    /// Requests, in the order in which they were recognised.
    pub requests: Vec<Request>,
    /// Parallel branches.
    pub branches: Vec<Branch>,
    /// Nodes at which entries wait for each other.
    pub barriers: Vec<NodeId>,
    /// What the last entries are: what an entry does after a barrier, and after how many of its own.
    pub parts: Vec<(EntryNumber, u32)>,
    /// What barriers make of requests.
    pub meetings: Vec<Meeting>,
    /// What is not as it should be.
    pub irregular: Vec<(Irregularity, NodeId)>,
    /// Nodes that templates gave to entries of other tasks, the first of each visit, with the number of the template.
    pub misplaced: Vec<(NodeId, Option<u16>)>,
}

impl Outcome {
    /// The phase of a node, from 1.
    #[inline]
    pub fn phase(&self, node: NodeId) -> u8 {
        ((self.flags[node as usize] & PHASE_MASK) >> PHASE_SHIFT) + 1
    }

    /// Whether a match has consumed a node.
    #[inline]
    pub fn is_processed(&self, node: NodeId) -> bool {
        self.flags[node as usize] & PROCESSED != 0
    }

    /// The entry of which an entry is a part, and after how many barriers; itself and 0 where it is all of it or its first part.
    #[inline]
    pub fn part(&self, entry: EntryNumber) -> (EntryNumber, u32) {
        let whole = self.entries.len() - self.parts.len();
        let part = (entry as usize).checked_sub(whole).and_then(|part| self.parts.get(part));
        part.copied().unwrap_or((entry, 0))
    }
}

/// The entry, phase and branch in which a node is.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) entry: EntryNumber,
    pub(super) phase: u8,
    pub(super) branch: u32,
}

impl Context {
    /// The begin of a visit.
    pub(super) fn fresh(entry: EntryNumber) -> Self {
        Self { entry, phase: 1, branch: 0 }
    }
}

struct Driver<'a, E, O: ?Sized> {
    toeg: &'a Toeg,
    plans: &'a [TemplatePlan],
    engine: &'a mut E,
    observer: &'a mut O,
    commit: Commit<'a>,
    deferred: VecDeque<NodeId>,
    /// For each thread, from which node on it has been walked.
    walked_from: Vec<NodeId>,
    found: Match,
    /// Nodes that templates of which only a trace can tell gave to entries of other tasks.
    given: FxHashMap<NodeId, u16>,
}

/// Runs the control algorithm over the graph of one operation.
pub fn run<E: Engine, O: Observer + ?Sized>(
    toeg: &Toeg,
    plans: &[TemplatePlan],
    engine: &mut E,
    observer: &mut O,
) -> Outcome {
    let mut driver = Driver {
        toeg,
        plans,
        engine,
        observer,
        commit: Commit::new(toeg, plans),
        deferred: VecDeque::new(),
        walked_from: toeg.threads().iter().map(|thread| thread.last + 1).collect(),
        found: Match::default(),
        given: FxHashMap::default(),
    };
    driver.start();
    driver.all_triggers();
    driver.left_over();
    driver.lost_waits();
    if plans.iter().any(|plan| plan.effects.unsure) {
        driver.misplaced();
    }
    let mut outcome = driver.commit.outcome;
    if !outcome.barriers.is_empty() {
        barriers::split(toeg, &mut outcome);
    }
    detached::put_off(toeg, &mut outcome);
    outcome
}

impl<E: Engine, O: Observer + ?Sized> Driver<'_, E, O> {
    /// Figure 5, line 1: the customer, the first entry, the request between them, the first trigger.
    fn start(&mut self) {
        let root = self.toeg.root();
        let event = self.toeg.event(root);
        let customer = Entry { task: None, interaction: Interaction::Customer, service: Name::NONE, accepted_at: NONE };
        let first = Entry {
            task: Some(event.task),
            interaction: Interaction::Rendezvous,
            service: event.service,
            accepted_at: root,
        };
        let outcome = &mut self.commit.outcome;
        outcome.entries.extend([customer, first]);
        outcome.requests.push(Request { from: 0, to: 1, at: NONE });
        outcome.owner[root as usize] = 1;
        self.commit.queue.push_back(root);
    }

    fn all_triggers(&mut self) {
        loop {
            while let Some(trigger) = self.commit.queue.pop_front() {
                if !self.awaits_its_fork(trigger) {
                    self.walk(trigger);
                }
            }
            // Triggers whose forks nothing will process: take them as they are, one at a time.
            let Some(trigger) = self.deferred.pop_front() else { return };
            self.walk(trigger);
        }
    }

    /// A begin node is left until its fork is processed: only then is it known what the thread is for. The fork then
    /// puts it back.
    fn awaits_its_fork(&mut self, trigger: NodeId) -> bool {
        let outcome = &mut self.commit.outcome;
        if self.toeg.event(trigger).kind != Kind::Begin || outcome.is_processed(trigger) {
            return false;
        }
        let fork = self.toeg.thread_of(trigger).fork;
        if fork == NONE || outcome.is_processed(fork) {
            return false;
        }
        outcome.flags[fork as usize] |= AWAITED;
        self.deferred.push_back(trigger);
        true
    }

    /// Figure 5, lines 4 to 9: along the thread from a trigger.
    fn walk(&mut self, trigger: NodeId) {
        let from = &mut self.walked_from[self.toeg.thread_number(trigger)];
        if *from <= trigger {
            return;
        }
        let end = std::mem::replace(from, trigger);
        for node in trigger..end {
            if !self.commit.outcome.is_processed(node) {
                self.visit(node);
            }
        }
    }

    /// Figure 5, lines 6 and 7.
    fn visit(&mut self, glue: NodeId) {
        let context = self.commit.enter(glue);
        if self.engine.first_match(glue, &self.commit.outcome.flags, &mut self.found) {
            let plan = &self.plans[self.found.template as usize];
            self.observer.committed(self.toeg, &Committed { plan, found: &self.found, glue, entry: context.entry });
            match plan.effects.glue_only {
                Some(marks) => self.commit.process(glue, marks),
                None => {
                    let triggers = self.commit.queue.len();
                    self.commit.all(&plan.effects, &self.found, glue, context);
                    if plan.effects.unsure {
                        self.gave(plan, triggers);
                    }
                }
            }
        } else {
            self.commit.outcome.irregular.push((Irregularity::Unmatched, glue));
        }
    }

    /// Notes which nodes of a match, or after its new triggers, are of another task than their entries.
    #[cold]
    fn gave(&mut self, plan: &TemplatePlan, triggers: usize) {
        let Self { commit, found, toeg, given, .. } = self;
        let consumed = plan.effects.consumed.iter().map(|consumed| found.slot(consumed.slot));
        let triggers = commit.queue.iter().skip(triggers).copied();
        for node in consumed.chain(found.rounds.iter().copied()).chain(triggers) {
            if is_misplaced(toeg, &commit.outcome, node) {
                given.insert(node, found.template);
            }
        }
    }

    /// Finds nodes that belong to an entry of another task: the first of each visit, since the rest follows it.
    fn misplaced(&mut self) {
        let outcome = &mut self.commit.outcome;
        for node in 0..self.toeg.len() as NodeId {
            let (owner, task) = (&outcome.owner, self.toeg.event(node).task);
            let previous = self.toeg.previous_in_thread(node);
            let follows = previous != NONE
                && owner[previous as usize] == owner[node as usize]
                && self.toeg.event(previous).task == task;
            if !follows && is_misplaced(self.toeg, outcome, node) {
                outcome.misplaced.push((node, self.given.get(&node).copied()));
            }
        }
    }

    /// Waits for a thread that ends in another visit, of which no template says what they mean for the model.
    fn lost_waits(&mut self) {
        let outcome = &mut self.commit.outcome;
        let before = outcome.irregular.len();
        for thread in self.toeg.threads().iter().filter(|thread| thread.join != NONE) {
            if outcome.flags[thread.join as usize] & (PROCESSED | WAITED) != PROCESSED {
                continue;
            }
            let (own, other) = (outcome.owner[thread.join as usize], outcome.owner[thread.last as usize]);
            if own < UNOWNED && other < UNOWNED && own != other {
                outcome.irregular.push((Irregularity::Wait, thread.join));
            }
        }
        outcome.irregular[before..].sort_unstable_by_key(|(_, node)| *node);
    }

    /// Nodes that no walk came to.
    fn left_over(&mut self) {
        let outcome = &mut self.commit.outcome;
        if outcome.flags.iter().all(|flags| flags & PROCESSED != 0) {
            return;
        }
        let mut known = vec![false; self.toeg.len()];
        for (what, node) in &outcome.irregular {
            known[*node as usize] |= *what == Irregularity::Unmatched;
        }
        for (node, known) in known.into_iter().enumerate() {
            if !known && outcome.flags[node] & PROCESSED == 0 {
                outcome.irregular.push((Irregularity::Unmatched, node as NodeId));
            }
        }
    }
}

/// Whether a node's entry serves another task than the node's.
fn is_misplaced(toeg: &Toeg, outcome: &Outcome, node: NodeId) -> bool {
    let entry = outcome.entries.get(outcome.owner[node as usize] as usize);
    entry.and_then(|entry| entry.task).is_some_and(|serves| serves != toeg.event(node).task)
}
