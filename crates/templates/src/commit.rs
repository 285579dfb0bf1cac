//! Commits matches: carries out what a template does, and keeps whose each node is.

#![expect(clippy::inline_always, reason = "parts of one loop over all nodes, apart for reading")]

use std::collections::VecDeque;

use crate::driver::{
    AWAITED, Branch, BranchKind, Context, Entry, EntryNumber, Irregularity, Outcome, PHASE_MASK, PHASE_SHIFT, Request,
    THEN_NEXT_PHASE, UNKNOWN, UNOWNED, WAITED,
};
use crate::effects::{Cell, Consumed, Effect, Effects, Owner, TriggerPlace};
use crate::matcher::{Match, PROCESSED, label_field};
use crate::plan::{ModelNode, ModelValue, Position, Slot, TemplatePlan, Value};
use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::Interaction;
use dyelog_trace::toeg::NONE;
use dyelog_trace::{Kind, NodeId, TaskId, Toeg};

/// What has come of an operation so far, and the triggers that are left.
pub(super) struct Commit<'a> {
    toeg: &'a Toeg,
    pub(super) outcome: Outcome,
    pub(super) queue: VecDeque<NodeId>,
    /// Entries with an index, by variable.
    cells: Vec<Vec<EntryNumber>>,
}

/// A match that is being committed.
#[derive(Clone, Copy)]
struct This<'f> {
    effects: &'f Effects,
    found: &'f Match,
    glue: NodeId,
    context: Context,
    /// The number of the first entry that it makes.
    first_entry: EntryNumber,
    /// The round that a `for` is at.
    running: i64,
}

impl<'a> Commit<'a> {
    pub(super) fn new(toeg: &'a Toeg, plans: &[TemplatePlan]) -> Self {
        let count = toeg.len();
        let widest = plans.iter().map(|plan| plan.effects.variables as usize).max().unwrap_or(0);
        Self {
            toeg,
            outcome: Outcome { flags: vec![0; count], owner: vec![UNKNOWN; count], ..Outcome::default() },
            queue: VecDeque::new(),
            cells: vec![Vec::new(); widest],
        }
    }

    /// Finds out where a node is, and notes it.
    #[inline(always)]
    pub(super) fn enter(&mut self, node: NodeId) -> Context {
        let entry = self.outcome.owner[node as usize];
        if entry != UNKNOWN {
            return Context { entry, phase: self.outcome.phase(node), branch: self.branch(node) };
        }
        let context = self.context_of(node);
        self.put(node, context);
        context
    }

    /// The context of a node that nobody knows yet.
    #[inline(always)]
    fn context_of(&mut self, node: NodeId) -> Context {
        let event = self.toeg.event(node);
        let previous = self.toeg.previous_in_thread(node);
        if previous != NONE && self.toeg.event(previous).task == event.task {
            return self.context_after(previous);
        }
        self.outcome.irregular.push((Irregularity::Stray, node));
        // The thread came back to a task of which it had left a visit open.
        let before = self.toeg.previous_in_task(node);
        if before != NONE && self.toeg.event(before).thread == event.thread {
            return self.context_after(before);
        }
        Context::fresh(UNOWNED)
    }

    /// The context of what follows a node in its visit.
    #[inline(always)]
    fn context_after(&self, node: NodeId) -> Context {
        let entry = match self.outcome.owner[node as usize] {
            UNKNOWN => UNOWNED,
            entry => entry,
        };
        let next = self.outcome.flags[node as usize] & THEN_NEXT_PHASE != 0;
        let phase = (self.outcome.phase(node) + u8::from(next)).min(3);
        Context { entry, phase, branch: self.branch(node) }
    }

    #[inline]
    fn branch(&self, node: NodeId) -> u32 {
        self.outcome.branch.get(node as usize).copied().unwrap_or(0)
    }

    /// Puts a node where it is found to be. Without branches so far, it is in none.
    #[inline(always)]
    fn put(&mut self, node: NodeId, context: Context) {
        let Outcome { flags, owner, branch, .. } = &mut self.outcome;
        let flags = &mut flags[node as usize];
        owner[node as usize] = context.entry;
        *flags = (*flags & !PHASE_MASK) | ((context.phase - 1) << PHASE_SHIFT);
        if let Some(branch) = branch.get_mut(node as usize) {
            *branch = context.branch;
        }
    }

    /// Carries out all that a match does, then consumes its nodes.
    #[inline]
    pub(super) fn all(&mut self, effects: &Effects, found: &Match, glue: NodeId, context: Context) {
        let first_entry = self.outcome.entries.len() as EntryNumber;
        let mut this = This { effects, found, glue, context, first_entry, running: 0 };
        if effects.variables != 0 {
            self.cells.iter_mut().for_each(Vec::clear);
        }
        self.effects(&effects.list, &this);
        for &consumed in &effects.consumed {
            let node = found.slot(consumed.slot);
            if consumed.slot == 0 {
                self.process(node, consumed.marks);
            } else {
                self.consume(node, consumed, &this);
            }
        }
        if !found.rounds.is_empty() {
            for (sequence, own) in effects.rounds.iter().enumerate() {
                for (number, round) in found.of_sequence(sequence, own.len()).chunks(own.len().max(1)).enumerate() {
                    this.running = number as i64 + 1;
                    for (&consumed, &node) in own.iter().zip(round) {
                        self.consume(node, consumed, &this);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn consume(&mut self, node: NodeId, consumed: Consumed, this: &This<'_>) {
        let context = self.whose_context(consumed.entry, this);
        let Outcome { flags, owner, branch, .. } = &mut self.outcome;
        let (flags, owner, branch) =
            (&mut flags[node as usize], &mut owner[node as usize], branch.get_mut(node as usize));
        let mut now = *flags | PROCESSED | consumed.marks;
        // A branch's begin has been put into its branch before.
        if branch.as_ref().is_none_or(|branch| **branch == 0) || *owner == UNKNOWN {
            *owner = context.entry;
            now = (now & !PHASE_MASK) | ((context.phase - 1) << PHASE_SHIFT);
            if let Some(branch) = branch {
                *branch = context.branch;
            }
        }
        *flags = now;
        if now & AWAITED != 0 {
            self.release(node);
        }
        if consumed.entry == Owner::Nobody {
            self.disowned(node);
        }
    }

    /// Tells of a visit for which the template has no entry, at its first node.
    #[cold]
    fn disowned(&mut self, node: NodeId) {
        let previous = self.toeg.previous_in_thread(node);
        let told = previous != NONE
            && self.toeg.event(previous).task == self.toeg.event(node).task
            && self.outcome.owner[previous as usize] == UNOWNED;
        if !told {
            self.outcome.irregular.push((Irregularity::Stray, node));
        }
    }

    /// Consumes the glue node, which is where it is, whatever the template says.
    #[inline(always)]
    pub(super) fn process(&mut self, node: NodeId, marks: u8) {
        let flags = &mut self.outcome.flags[node as usize];
        *flags |= PROCESSED | marks;
        if *flags & AWAITED != 0 {
            self.release(node);
        }
    }

    /// Puts the trigger back that has waited for a fork.
    #[cold]
    fn release(&mut self, fork: NodeId) {
        if let Kind::Fork(thread) = self.toeg.event(fork).kind
            && let Some(thread) = self.toeg.thread(thread)
        {
            self.queue.push_back(thread.first);
        }
    }

    #[inline(always)]
    fn effects(&mut self, effects: &[Effect], this: &This<'_>) {
        for effect in effects {
            match effect {
                Effect::Call { interaction, accepted_at } => self.call(*interaction, *accepted_at, this),
                Effect::Next { begin, task_of, counter_of, more, entry } => {
                    let node = this.found.slot(*begin) + 1;
                    let event = self.toeg.event(node);
                    let task = self.toeg.event(this.found.slot(*task_of)).task;
                    let counter = self.toeg.event(this.found.slot(*counter_of)).counter;
                    let labelled = event.task == task && event.counter.wrapping_sub(counter) == *more;
                    self.trigger(node, labelled, *entry, this);
                }
                other => self.any_effect(other, this),
            }
        }
    }

    /// Carries out an effect of those that are rare.
    #[inline(never)]
    fn any_effect(&mut self, effect: &Effect, this: &This<'_>) {
        match effect {
            Effect::Call { .. } | Effect::Next { .. } => self.effects(std::slice::from_ref(effect), this),
            Effect::NewEntry { cell, interaction, task, accepted_at } => {
                self.new_entry(*cell, *interaction, *task, *accepted_at, this);
            }
            Effect::Request(from, to) => {
                let at = if *from == Owner::Trigger { this.glue } else { NONE };
                let request = Request { from: self.whose(*from, this), to: self.whose(*to, this), at };
                self.outcome.requests.push(request);
            }
            Effect::Mark(node, flags) => {
                if let Some(marked) = self.outcome.flags.get_mut(this.node(*node) as usize) {
                    *marked |= flags;
                }
            }
            Effect::Trigger { place, task, counter, entry } => {
                if let Some(node) = self.place(*place, this) {
                    self.trigger(node, self.is_labelled(node, *task, *counter, this), *entry, this);
                }
            }
            Effect::Branch { entry, begin, join } => self.add_branch(*entry, *begin, *join, this),
            Effect::Alternative { entry, fork, join } => self.alternative(*entry, *fork, *join, this),
            Effect::Barrier(node) => {
                let node = this.node(*node);
                if let Some(flags) = self.outcome.flags.get_mut(node as usize) {
                    *flags |= WAITED;
                    self.outcome.barriers.push(node);
                }
            }
            Effect::ForkRequest { from, to, fork, join } => self.fork_request(*from, *to, *fork, *join, this),
            Effect::For(sequence, from, body) => {
                for running in *from..=i64::from(this.found.count(*sequence)) {
                    let this = This { running, ..*this };
                    for effect in body {
                        self.any_effect(effect, &this);
                    }
                }
            }
        }
    }

    #[inline(never)]
    fn add_branch(&mut self, entry: Owner, begin: ModelNode, join: Option<ModelNode>, this: &This<'_>) {
        let (begin, join) = (this.node(begin), join.map_or(NONE, |join| this.node(join)));
        // A round that there is not has no branch.
        if begin == NONE {
            return;
        }
        let context = self.whose_context(entry, this);
        let entry = context.entry;
        let fork = self.toeg.thread_of(begin).fork;
        self.outcome.branches.push(Branch { entry, fork, join, kind: BranchKind::Thread });
        let branch = self.outcome.branches.len() as u32;
        self.outcome.branch.resize(self.toeg.len(), 0);
        self.put(begin, Context { branch, ..context });
        if join != NONE {
            self.put(join, context);
        }
    }

    /// A branch of an entry that requests another one.
    #[inline(never)]
    fn fork_request(&mut self, from: Owner, to: Owner, fork: ModelNode, join: Option<ModelNode>, this: &This<'_>) {
        let (fork, join) = (this.node(fork), join.map_or(NONE, |join| this.node(join)));
        let context = self.whose_context(from, this);
        if fork == NONE {
            return;
        }
        let kind = BranchKind::Request(self.outcome.requests.len() as u32);
        self.outcome.requests.push(Request { from: context.entry, to: self.whose(to, this), at: fork });
        self.outcome.branches.push(Branch { entry: context.entry, fork, join, kind });
        if join != NONE {
            self.put(join, context);
            self.outcome.flags[join as usize] |= WAITED;
        }
    }

    #[inline(never)]
    fn alternative(&mut self, entry: Owner, fork: ModelNode, join: ModelNode, this: &This<'_>) {
        let (fork, join) = (this.node(fork), this.node(join));
        let context = self.whose_context(entry, this);
        if fork != NONE && join != NONE {
            self.put(join, context);
            self.outcome.branches.push(Branch { entry: context.entry, fork, join, kind: BranchKind::Alternative });
        }
    }

    /// Opens an entry for a request by the trigger's.
    #[inline(always)]
    fn call(&mut self, interaction: Interaction, accepted_at: Slot, this: &This<'_>) {
        let to = self.outcome.entries.len() as EntryNumber;
        let accepted_at = this.found.slot(accepted_at);
        let event = self.toeg.event(accepted_at);
        let entry = Entry { task: Some(event.task), interaction, service: event.service, accepted_at };
        self.outcome.entries.push(entry);
        self.outcome.requests.push(Request { from: this.context.entry, to, at: this.glue });
    }

    #[inline(never)]
    fn new_entry(
        &mut self,
        cell: Option<Cell>,
        interaction: Interaction,
        task: Option<ModelValue>,
        accepted_at: Option<ModelNode>,
        this: &This<'_>,
    ) {
        let number = self.outcome.entries.len() as EntryNumber;
        let accepted_at = accepted_at.map_or(NONE, |node| this.node(node));
        let (mut own, mut service) = (TaskId(0), Name::NONE);
        if accepted_at != NONE {
            let event = self.toeg.event(accepted_at);
            (own, service) = (event.task, event.service);
        }
        let task = task.map_or(own, |task| TaskId(self.value(task, this) as u32));
        self.outcome.entries.push(Entry { task: Some(task), interaction, service, accepted_at });
        if let Some(cell) = cell
            && let Ok(place) = usize::try_from(this.position(cell.position))
        {
            let cells = &mut self.cells[cell.variable as usize];
            if cells.len() <= place {
                cells.resize(place + 1, UNKNOWN);
            }
            cells[place] = number;
        }
    }

    /// The node of a trigger; `None` where its thread has none.
    fn place(&self, place: TriggerPlace, this: &This<'_>) -> Option<NodeId> {
        let (first, last, offset) = match place {
            TriggerPlace::After(begin, offset) => {
                let begin = this.node(begin);
                if offset == 1 {
                    // Threads end with an end.
                    return (begin != NONE).then(|| begin + 1);
                }
                let thread = self.toeg.thread_of(begin);
                (thread.first, thread.last, i64::from(offset))
            }
            TriggerPlace::At(thread, position) => {
                let thread = self.toeg.thread(u32::try_from(self.value(thread, this)).ok()?)?;
                (thread.first, thread.last, self.value(position, this) - 1)
            }
        };
        (0..=i64::from(last - first)).contains(&offset).then(|| first + offset as NodeId)
    }

    /// Whether a node has that task and that counter.
    fn is_labelled(
        &self,
        node: NodeId,
        task: Option<ModelValue>,
        counter: Option<ModelValue>,
        this: &This<'_>,
    ) -> bool {
        let event = self.toeg.event(node);
        let is = |wanted: Option<ModelValue>, has: u32| {
            wanted.is_none_or(|wanted| self.value(wanted, this) == i64::from(has))
        };
        is(task, event.task.0) && is(counter, event.counter)
    }

    /// Puts a trigger on the list, and notes whose it is if nobody knows yet.
    #[inline(always)]
    fn trigger(&mut self, node: NodeId, labelled: bool, entry: Owner, this: &This<'_>) {
        self.queue.push_back(node);
        if !labelled {
            self.outcome.irregular.push((Irregularity::WrongTrigger, node));
        } else if !self.outcome.is_processed(node) && self.outcome.owner[node as usize] == UNKNOWN {
            let context = self.whose_context(entry, this);
            let before = self.toeg.previous_in_thread(node);
            let branch = if before == NONE { context.branch } else { self.branch(before).max(context.branch) };
            self.put(node, Context { branch, ..context });
        }
    }

    #[inline(always)]
    fn whose_context(&self, whose: Owner, this: &This<'_>) -> Context {
        let (own, fresh) = (this.context, Context::fresh(self.whose(whose, this)));
        if whose == Owner::Trigger { own } else { fresh }
    }

    #[inline(always)]
    fn whose(&self, whose: Owner, this: &This<'_>) -> EntryNumber {
        match whose {
            Owner::Cell(cell) => self.in_cell(this.effects.cells[cell as usize], this),
            Owner::Trigger => this.context.entry,
            Owner::Fresh(place) => this.first_entry + EntryNumber::from(place),
            Owner::Nobody => UNOWNED,
        }
    }

    /// The entry in a cell.
    #[inline(never)]
    fn in_cell(&self, cell: Cell, this: &This<'_>) -> EntryNumber {
        usize::try_from(this.position(cell.position))
            .ok()
            .and_then(|place| self.cells[cell.variable as usize].get(place).copied())
            .unwrap_or(UNOWNED)
    }

    #[inline]
    fn value(&self, value: ModelValue, this: &This<'_>) -> i64 {
        let (node, field, offset) = match value {
            ModelValue::Fixed(Value::Field(slot, field, offset)) => (this.found.slot(slot), field, offset),
            ModelValue::Fixed(Value::Integer(value)) => return value,
            ModelValue::Fixed(Value::Carry(..) | Value::Symbol(_) | Value::Count(..) | Value::Running(_)) => return -1,
            ModelValue::Round { node, position, field, offset } => (this.round_node(node, position), field, offset),
        };
        if node == NONE { -1 } else { label_field(self.toeg, node, field).saturating_add(offset) }
    }
}

impl This<'_> {
    #[inline]
    fn position(&self, position: Position) -> i64 {
        match position {
            Position::At(place) => place,
            Position::Running(offset) => self.running.saturating_add(offset),
            Position::Count(sequence, offset) => i64::from(self.found.count(sequence)).saturating_add(offset),
        }
    }

    #[inline]
    fn node(&self, node: ModelNode) -> NodeId {
        match node {
            ModelNode::Fixed(slot) => self.found.slot(slot),
            ModelNode::Round { node, position } => self.round_node(node, position),
        }
    }

    fn round_node(&self, node: u8, position: Position) -> NodeId {
        let mut node = usize::from(node);
        let mut sequences = self.effects.rounds.iter().map(Vec::len).enumerate();
        let own = sequences.find(|(_, size)| {
            let own = node < *size;
            node -= if own { 0 } else { *size };
            own
        });
        let Some((sequence, size)) = own else { return NONE };
        let round = self.position(position).saturating_sub(1);
        let place = |round: usize| {
            let own = self.found.of_sequence(sequence, size);
            round.checked_mul(size).and_then(|place| own.get(place.checked_add(node)?)).copied()
        };
        usize::try_from(round).ok().and_then(place).unwrap_or(NONE)
    }
}
