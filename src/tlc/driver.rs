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

use crate::lqn::submodel::Interaction;
use crate::names::Name;
use crate::tlc::matcher::{Match, Matcher, PROCESSED, label_field, tag};
use crate::tlc::plan::{Action, EntryReference, KindTag, ModelNode, ModelValue, Plan, Position, Value};
use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId, TaskId, Toeg};

/// Number of an entry within one operation, in the order in which they are made; the paper's E0, E1, ….
pub type EntryNumber = u32;

/// A node whose entry is not known yet.
pub const UNKNOWN: EntryNumber = EntryNumber::MAX;
/// A node on a task that the thread came to with no request that a template recognises.
pub const STRAY: EntryNumber = EntryNumber::MAX - 1;

/// What follows this node in its visit is of the next phase.
pub const THEN_NEXT_PHASE: u8 = 2;
/// The node's activity is counted.
pub const ACTIVITY: u8 = 4;
/// A trigger waits for this fork.
const AWAITED: u8 = 8;
/// Where the phase minus one stands in the flags: two bits.
const PHASE_SHIFT: u8 = 4;
const PHASE_MASK: u8 = 0b11 << PHASE_SHIFT;

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
    /// Who requests.
    pub from: EntryNumber,
    /// Who serves.
    pub to: EntryNumber,
    /// The node of the requester at which it is made; [`NONE`] where it is passed on by a new entry.
    pub at: NodeId,
}

/// A parallel branch of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The entry.
    pub entry: EntryNumber,
    /// Its first node.
    pub begin: NodeId,
    /// The node that waits for it.
    pub join: NodeId,
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
}

/// A match that has been committed.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// The template.
    pub plan: &'a Plan,
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

/// Our engine: plans tried in order.
pub struct Plans<'a> {
    /// Runs them.
    pub matcher: Matcher<'a>,
    /// Indices of plans by the kind of glue node, in order.
    pub by_kind: &'a [Vec<u16>; 5],
}

/// Which list of [`Plans::by_kind`] serves a kind.
pub fn kind_index(tag: KindTag) -> usize {
    match tag {
        KindTag::Begin => 0,
        KindTag::Activity => 1,
        KindTag::End => 2,
        KindTag::Fork => 3,
        KindTag::Join | KindTag::Any => 4,
    }
}

impl Engine for Plans<'_> {
    fn first_match(&mut self, glue: NodeId, flags: &[u8], found: &mut Match) -> bool {
        let kind = tag(self.matcher.toeg.event(glue).kind);
        self.by_kind[kind_index(kind)]
            .iter()
            .any(|&template| self.matcher.try_at(template as usize, glue, Some(flags), found))
    }
}

/// What the control algorithm makes of an operation.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A byte of flags a node.
    pub flags: Vec<u8>,
    /// The entry that owns each node, or [`UNKNOWN`] or [`STRAY`].
    pub owner: Vec<EntryNumber>,
    /// Which branch each node is in, as an index plus one; 0 for none. Empty where there are no branches.
    pub branch: Vec<u32>,
    /// Entries, the customer first.
    pub entries: Vec<Entry>,
    /// Requests, in the order in which they were recognised.
    pub requests: Vec<Request>,
    /// Parallel branches.
    pub branches: Vec<Branch>,
    /// What is not as it should be.
    pub irregular: Vec<(Irregularity, NodeId)>,
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
}

/// The entry, phase and branch in which a node is.
#[derive(Clone, Copy)]
struct Context {
    entry: EntryNumber,
    phase: u8,
    branch: u32,
}

struct Driver<'a, E, O: ?Sized> {
    toeg: &'a Toeg,
    plans: &'a [Plan],
    engine: &'a mut E,
    observer: &'a mut O,
    outcome: Outcome,
    queue: VecDeque<NodeId>,
    waiting: FxHashMap<NodeId, Vec<NodeId>>,
    deferred: VecDeque<NodeId>,
    /// For each thread, from which node on it has been walked.
    walked_from: Vec<NodeId>,
    entry_variables: Vec<Vec<EntryNumber>>,
    found: Match,
    running: i64,
}

/// Runs the control algorithm over the graph of one operation.
pub fn run<E: Engine, O: Observer + ?Sized>(toeg: &Toeg, plans: &[Plan], engine: &mut E, observer: &mut O) -> Outcome {
    let count = toeg.len();
    let outcome = Outcome { flags: vec![0; count], owner: vec![UNKNOWN; count], ..Outcome::default() };
    let widest = plans.iter().map(|plan| plan.entry_variables as usize).max().unwrap_or(0);
    let mut driver = Driver {
        toeg,
        plans,
        engine,
        observer,
        outcome,
        queue: VecDeque::new(),
        waiting: FxHashMap::default(),
        deferred: VecDeque::new(),
        walked_from: toeg.threads().iter().map(|thread| thread.last + 1).collect(),
        entry_variables: vec![Vec::new(); widest],
        found: Match::default(),
        running: 0,
    };
    driver.start();
    driver.all_triggers();
    driver.left_over();
    driver.outcome
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
        self.outcome.entries.extend([customer, first]);
        self.outcome.requests.push(Request { from: 0, to: 1, at: NONE });
        self.outcome.owner[root as usize] = 1;
        self.queue.push_back(root);
    }

    fn all_triggers(&mut self) {
        loop {
            while let Some(trigger) = self.queue.pop_front() {
                if self.awaits_its_fork(trigger) {
                    continue;
                }
                self.walk(trigger);
            }
            // Triggers whose forks nothing will process: take them as they are, one at a time.
            let Some(trigger) = self.deferred.pop_front() else { return };
            self.walk(trigger);
        }
    }

    /// A begin node is left until its fork is processed: only then is it known what the thread is for.
    fn awaits_its_fork(&mut self, trigger: NodeId) -> bool {
        if self.toeg.event(trigger).kind != Kind::Begin || self.outcome.is_processed(trigger) {
            return false;
        }
        let fork = self.toeg.thread_of(trigger).fork;
        if fork == NONE || self.outcome.is_processed(fork) {
            return false;
        }
        self.outcome.flags[fork as usize] |= AWAITED;
        self.waiting.entry(fork).or_default().push(trigger);
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
            if !self.outcome.is_processed(node) {
                self.visit(node);
            }
        }
    }

    fn visit(&mut self, node: NodeId) {
        let context = self.context_of(node);
        self.set_context(node, context);
        let mut found = std::mem::take(&mut self.found);
        if self.engine.first_match(node, &self.outcome.flags, &mut found) {
            self.commit(node, context, &found);
        } else {
            self.outcome.irregular.push((Irregularity::Unmatched, node));
        }
        self.found = found;
    }

    fn context_of(&mut self, node: NodeId) -> Context {
        let own = self.outcome.owner[node as usize];
        if own != UNKNOWN {
            return Context { entry: own, phase: self.outcome.phase(node), branch: self.branch(node) };
        }
        let previous = self.toeg.previous_in_thread(node);
        let task = self.toeg.event(node).task;
        if previous != NONE && self.toeg.event(previous).task == task {
            return self.context_after(previous);
        }
        self.outcome.irregular.push((Irregularity::Stray, node));
        // The thread came back to a task of which it had left a visit open.
        let before = self.toeg.previous_in_task(node);
        if before != NONE && self.toeg.event(before).thread == self.toeg.event(node).thread {
            return self.context_after(before);
        }
        Context { entry: STRAY, phase: 1, branch: 0 }
    }

    fn branch(&self, node: NodeId) -> u32 {
        self.outcome.branch.get(node as usize).copied().unwrap_or(0)
    }

    /// The context of what follows a node in its visit.
    fn context_after(&self, node: NodeId) -> Context {
        let entry = match self.outcome.owner[node as usize] {
            UNKNOWN => STRAY,
            entry => entry,
        };
        let phase = self.outcome.phase(node);
        let next = self.outcome.flags[node as usize] & THEN_NEXT_PHASE != 0;
        Context { entry, phase: if next { (phase + 1).min(3) } else { phase }, branch: self.branch(node) }
    }

    fn set_context(&mut self, node: NodeId, context: Context) {
        self.outcome.owner[node as usize] = context.entry;
        let flags = &mut self.outcome.flags[node as usize];
        *flags = (*flags & !PHASE_MASK) | ((context.phase - 1) << PHASE_SHIFT);
        if context.branch != 0 || !self.outcome.branch.is_empty() {
            self.outcome.branch.resize(self.toeg.len(), 0);
            self.outcome.branch[node as usize] = context.branch;
        }
    }

    /// Figure 5, lines 6 and 7.
    fn commit(&mut self, glue: NodeId, context: Context, found: &Match) {
        let plans = self.plans;
        let plan = &plans[found.template as usize];
        for variable in &mut self.entry_variables {
            variable.clear();
        }
        self.observer.committed(self.toeg, &Committed { plan, found, glue, entry: context.entry });
        self.act(&plan.actions, plan, found, glue, context);
        for &(slot, owner) in &plan.owners {
            let node = found.slots[slot as usize];
            self.consume(node, owner, glue, context, found);
        }
        let size = plan.loop_owners.len();
        for (number, &node) in found.rounds.iter().enumerate() {
            self.running = (number / size) as i64 + 1;
            self.consume(node, plan.loop_owners[number % size], glue, context, found);
        }
    }

    fn consume(&mut self, node: NodeId, owner: EntryReference, glue: NodeId, context: Context, found: &Match) {
        let entry = self.entry(owner, context, found);
        if node != glue {
            let context =
                if owner == EntryReference::Trigger { context } else { Context { entry, phase: 1, branch: 0 } };
            // A branch's begin has been put into its branch by `addBranch`.
            if self.branch(node) == 0 || self.outcome.owner[node as usize] == UNKNOWN {
                self.set_context(node, context);
            }
        }
        let flags = &mut self.outcome.flags[node as usize];
        *flags |= PROCESSED;
        if *flags & AWAITED != 0 {
            for trigger in self.waiting.remove(&node).unwrap_or_default() {
                self.queue.push_back(trigger);
            }
        }
    }

    fn act(&mut self, actions: &[Action], plan: &Plan, found: &Match, glue: NodeId, context: Context) {
        for action in actions {
            match action {
                Action::NewEntry { entry, interaction, task } => {
                    self.new_entry(*entry, *interaction, *task, plan, found);
                }
                Action::AddRequest { from, to } => {
                    let at = if *from == EntryReference::Trigger { glue } else { NONE };
                    let request =
                        Request { from: self.entry(*from, context, found), to: self.entry(*to, context, found), at };
                    self.outcome.requests.push(request);
                }
                Action::AddActivity { node, .. } => {
                    let node = self.node(*node, found);
                    self.outcome.flags[node as usize] |= ACTIVITY;
                }
                Action::Phase2 { node } => {
                    let node = self.node(*node, found);
                    self.outcome.flags[node as usize] |= THEN_NEXT_PHASE;
                }
                Action::AddTrigger { thread, position, task, counter, entry } => {
                    let label = [Some(*thread), Some(*position), *task, *counter]
                        .map(|value| value.map(|value| self.value(value, found)));
                    let by = if *entry == EntryReference::Trigger {
                        context
                    } else {
                        Context { entry: self.entry(*entry, context, found), phase: 1, branch: 0 }
                    };
                    self.add_trigger(label, by);
                }
                Action::AddBranch { entry, begin, join } => {
                    let (begin, join) = (self.node(*begin, found), self.node(*join, found));
                    let entry = self.entry(*entry, context, found);
                    self.outcome.branches.push(Branch { entry, begin, join });
                    let branch = self.outcome.branches.len() as u32;
                    self.set_context(begin, Context { entry, phase: context.phase, branch });
                    self.set_context(join, context);
                }
                Action::For { from, body } => {
                    for index in (*from).max(1)..=i64::from(found.count) {
                        self.running = index;
                        self.act(body, plan, found, glue, context);
                    }
                }
            }
        }
    }

    fn new_entry(
        &mut self,
        entry: EntryReference,
        interaction: Interaction,
        task: ModelValue,
        plan: &Plan,
        found: &Match,
    ) {
        let EntryReference::New { variable, position } = entry else { return };
        let number = self.outcome.entries.len() as EntryNumber;
        let accepted_at = self.accepting_node(entry, plan, found);
        let task = TaskId(self.value(task, found) as u32);
        let service = if accepted_at == NONE { Name::NONE } else { self.toeg.event(accepted_at).service };
        self.outcome.entries.push(Entry { task: Some(task), interaction, service, accepted_at });
        let place = self.position(position, found) as usize;
        let cells = &mut self.entry_variables[variable as usize];
        if cells.len() <= place {
            cells.resize(place + 1, UNKNOWN);
        }
        cells[place] = number;
    }

    /// The first node of the match that the entry owns.
    fn accepting_node(&self, entry: EntryReference, plan: &Plan, found: &Match) -> NodeId {
        if let Some((slot, _)) = plan.owners.iter().find(|(_, owner)| *owner == entry) {
            return found.slots[*slot as usize];
        }
        let size = plan.loop_owners.len();
        match plan.loop_owners.iter().position(|owner| *owner == entry) {
            Some(node) => found.rounds.get((self.running as usize - 1) * size + node).copied().unwrap_or(NONE),
            None => NONE,
        }
    }

    fn add_trigger(&mut self, [thread, position, task, counter]: [Option<i64>; 4], context: Context) {
        let (Some(thread), Some(position)) = (thread, position) else { return };
        let Some(thread) = u32::try_from(thread).ok().and_then(|id| self.toeg.thread(id)) else { return };
        let offset = position - 1;
        if offset < 0 || offset > i64::from(thread.last - thread.first) {
            return;
        }
        let node = thread.first + offset as NodeId;
        let event = self.toeg.event(node);
        if task.is_some_and(|task| task != i64::from(event.task.0))
            || counter.is_some_and(|counter| counter != i64::from(event.counter))
        {
            self.outcome.irregular.push((Irregularity::WrongTrigger, node));
            self.queue.push_back(node);
            return;
        }
        if !self.outcome.is_processed(node) && self.outcome.owner[node as usize] == UNKNOWN {
            let before = self.toeg.previous_in_thread(node);
            let branch = if before == NONE { context.branch } else { self.branch(before).max(context.branch) };
            self.set_context(node, Context { branch, ..context });
        }
        self.queue.push_back(node);
    }

    fn entry(&self, reference: EntryReference, context: Context, found: &Match) -> EntryNumber {
        match reference {
            EntryReference::Trigger => context.entry,
            EntryReference::New { variable, position } => {
                let place = self.position(position, found);
                usize::try_from(place)
                    .ok()
                    .and_then(|place| self.entry_variables[variable as usize].get(place).copied())
                    .unwrap_or(STRAY)
            }
        }
    }

    fn position(&self, position: Position, found: &Match) -> i64 {
        match position {
            Position::At(place) => place,
            Position::Running(offset) => self.running + offset,
            Position::Count(offset) => i64::from(found.count) + offset,
        }
    }

    fn node(&self, node: ModelNode, found: &Match) -> NodeId {
        match node {
            ModelNode::Fixed(slot) => found.slots[slot as usize],
            ModelNode::Round { node, position } => self.round_node(node, position, found),
        }
    }

    fn round_node(&self, node: u8, position: Position, found: &Match) -> NodeId {
        let size = found.rounds.len().checked_div(found.count as usize).unwrap_or(0);
        let round = self.position(position, found) - 1;
        usize::try_from(round)
            .ok()
            .and_then(|round| found.rounds.get(round * size + node as usize).copied())
            .unwrap_or(NONE)
    }

    fn value(&self, value: ModelValue, found: &Match) -> i64 {
        let field = |node: NodeId, field, offset: i64| {
            if node == NONE { -1 } else { label_field(self.toeg, node, field).saturating_add(offset) }
        };
        match value {
            ModelValue::Fixed(Value::Field(slot, name, offset)) => field(found.slots[slot as usize], name, offset),
            ModelValue::Fixed(Value::Integer(value)) => value,
            ModelValue::Fixed(Value::Carry(..) | Value::Symbol(_)) => -1,
            ModelValue::Round { node, position, field: name, offset } => {
                field(self.round_node(node, position, found), name, offset)
            }
        }
    }

    /// Nodes that no walk came to.
    fn left_over(&mut self) {
        let known: rustc_hash::FxHashSet<NodeId> = self
            .outcome
            .irregular
            .iter()
            .filter(|(what, _)| *what == Irregularity::Unmatched)
            .map(|(_, node)| *node)
            .collect();
        for node in 0..self.toeg.len() as NodeId {
            if !self.outcome.is_processed(node) && !known.contains(&node) {
                self.outcome.irregular.push((Irregularity::Unmatched, node));
            }
        }
    }
}
