//! From a plan whose calls are decided to the events of an operation.
//!
//! | interaction | events, a on the calling side, b on the called one |
//! |---|---|
//! | synchronous | `Ac` a, `Ac` b … `Ac` b, `Ac` a, in one thread |
//! | second phase | `Ac` a, `Ac` b … `Fk(k)` b, `Ac` b … `Ed` b; `Be` a in k, `Ac` a |
//! | forwarded | `Ac` a, `Ac` b … `Fk(k)` b … `Ed` b; `Be` c in k, `Ac` c … `Fk(k')` c … `Ed` c; `Be` a in k', `Ac` a |
//! | asynchronous | `Fk(k)` a, `Ac` a; `Be` b in k, `Ac` b … `Ed` b |
//! | parallel | `Fk(k1)` `Fk(k2)` a; in each `Be` a, its calls, `Ed` a; then `Jn(k1)` `Jn(k2)` a, `Ac` a |
//! | late: the first visit ends before it | a call is asynchronous; what overlaps other work, and local work with the calls within it, is in a branch that no node joins |
//!
//! An `Ac` follows each node that is no activity itself and after which the task goes on, so that the time it works from
//! there belongs to an activity. The accept node carries the service (`op`) and the CPU time of the visit.
//!
//! Nodes are numbered depth first along the tree of visits, which is one of the orders that causality leaves open: the
//! nodes of a visit, of a branch or of a second phase lie side by side in their task, and what follows a send in its task is
//! the return from it. A visit of a service that is already being visited by one of its callers is another instance of the task.
//! Times are those of the spans, put off where they would contradict causality.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::spans::call_semantics::{Tolerance, late};
use crate::spans::plan::{CallKind, Item, NONE, SpanPlan, What};
use crate::{Event, Kind, Task, TaskId, TraceNames, VisitEvidence};
use dyelog_diagnostic::names::Name;

/// What is still to be done, last first.
#[derive(Clone, Copy, Debug)]
enum VisitStep {
    /// The items `at..end` of the sorted ones, of which some may overlap.
    Items { at: u32, end: u32 },
    /// The items `at..end` of a branch, one after the other.
    Branch { at: u32, end: u32 },
    /// The callee of an item replies.
    Reply { item: u32 },
    /// The callee of an item replies and goes on.
    ReplyEarly { item: u32 },
    /// A visit of a chain passes the request of `call` on, or replies as its last.
    Hop { visit: u32, call: u32 },
    /// The next visit of a chain begins in a new thread.
    HopBegin { visit: u32, call: u32, thread: u32 },
    /// The calling visit of an item goes on in a thread.
    Resume { item: u32, thread: u32 },
    /// The calling visit of an item goes on in a thread that it had left.
    Continue { item: u32, thread: u32 },
    /// A visit ends its thread.
    End { visit: u32 },
    /// A visit is over.
    Leave { visit: u32 },
    /// A branch of a visit begins in its thread; its items are a range of the branches' list.
    BranchBegin { visit: u32, slot: u32 },
    /// A branch ends.
    BranchEnd { visit: u32, slot: u32 },
    /// What comes next comes in that thread.
    Switch { thread: u32 },
    /// A visit waits for its branches `first..last`.
    Join { visit: u32, first: u32, last: u32 },
}

/// A branch of a visit: its items in the list of all branches, and its thread, first and last.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    end: u32,
    thread: u32,
    span: u32,
    time: i64,
    /// Whether the visit waits for it.
    awaited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    nodes: u32,
    time: i64,
}

/// Writes operations; its buffers are used again for each.
#[derive(Debug, Default)]
pub struct Emitter {
    events: Vec<Event>,
    threads: Vec<Thread>,
    counters: FxHashMap<TaskId, u32>,
    open: FxHashMap<Name, u32>,
    tasks: Vec<TaskId>,
    steps: Vec<VisitStep>,
    slots: Vec<Slot>,
    branch_items: Vec<u32>,
    current: u32,
    origin: i64,
    tolerance: Tolerance,
    /// The first visit has ended by then, and does not wait for what ends later.
    late: i64,
    /// How many spans there are, and what visits begin at that have none of their own: the span that tells of each, and how it is known.
    spans: u32,
    made_up: Vec<(u32, VisitEvidence)>,
}

/// What an emission reads.
struct Run<'a> {
    e: &'a mut Emitter,
    plan: &'a SpanPlan,
    names: &'a mut TraceNames,
}

/// Two items follow each other, and do not run side by side, where they overlap by no more than this part of the shorter one (ours),
const HARDLY: i64 = 20;

/// and by no more than this, nanoseconds.
const LATE_END: i64 = 1_000_000;

/// Branches that are looked at for one that has ended but for such an overlap.
const LOOKED_AT: usize = 8;

impl Emitter {
    /// The events of an operation of so many spans, and its start in nanoseconds. `tolerance` says from when on items overlap.
    pub fn emit(
        &mut self,
        plan: &SpanPlan,
        names: &mut TraceNames,
        tolerance: Tolerance,
        spans: usize,
    ) -> (Vec<Event>, i64) {
        self.events = Vec::with_capacity(plan.visits.len() * 4 + plan.items.len() * 2 + 4);
        self.threads.clear();
        self.counters.clear();
        self.open.clear();
        self.tasks.clear();
        self.tasks.resize(plan.visits.len(), TaskId(u32::MAX));
        self.steps.clear();
        self.slots.clear();
        self.branch_items.clear();
        self.origin = plan.visits[0].start;
        self.tolerance = tolerance;
        self.late = late(plan, tolerance);
        self.spans = spans as u32;
        self.made_up.clear();
        let origin = self.origin;
        let mut run = Run { e: self, plan, names };
        run.operation();
        (std::mem::take(&mut self.events), origin)
    }

    /// Of the operation that was emitted last, what visits begin at that have no span of their own, after all spans: the span that tells of it, and how.
    pub fn made_up(&self) -> &[(u32, VisitEvidence)] {
        &self.made_up
    }
}

impl Run<'_> {
    fn operation(&mut self) {
        self.e.current = self.new_thread(self.e.origin);
        self.begin(0);
        self.e.steps.push(VisitStep::End { visit: 0 });
        self.items_of(self.plan.visits[0].scope);
        while let Some(step) = self.e.steps.pop() {
            self.step(step);
        }
    }

    fn step(&mut self, step: VisitStep) {
        match step {
            VisitStep::Items { at, end } => self.items(at, end),
            VisitStep::Branch { at, end } => {
                if at < end {
                    self.e.steps.push(VisitStep::Branch { at: at + 1, end });
                    self.item(self.e.branch_items[at as usize]);
                }
            }
            VisitStep::Reply { item } => self.reply(item),
            VisitStep::ReplyEarly { item } => self.reply_early(item),
            VisitStep::Hop { visit, call } => self.hop(visit, call),
            VisitStep::HopBegin { visit, call, thread } => {
                self.e.current = thread;
                self.enter(visit);
                self.begin_entered(visit);
                self.e.steps.push(VisitStep::Leave { visit });
                self.hop_items(visit, call);
            }
            VisitStep::Resume { item, thread } => {
                self.e.current = thread;
                let visit = self.caller(item);
                let (end, span) = (self.item_at(item).end, self.item_at(item).span);
                self.node(Kind::Begin, visit, end, span);
                self.node(Kind::Activity, visit, end, span);
            }
            VisitStep::Continue { item, thread } => {
                self.e.current = thread;
                let visit = self.caller(item);
                let (left, span) = (self.left_at(item), self.item_at(item).span);
                self.node(Kind::Activity, visit, left, span);
            }
            VisitStep::End { visit } => {
                let of = &self.plan.visits[visit as usize];
                // Late items end on threads of their own.
                let end = if visit == 0 && of.extent > self.e.late { of.end } else { of.extent };
                self.node(Kind::End, visit, end, of.span);
            }
            VisitStep::Leave { visit } => self.leave(visit),
            VisitStep::BranchBegin { visit, slot } => {
                let Slot { first, end, thread, span, time, .. } = self.e.slots[slot as usize];
                self.e.current = thread;
                self.node(Kind::Begin, visit, time, span);
                self.e.steps.push(VisitStep::BranchEnd { visit, slot });
                self.e.steps.push(VisitStep::Branch { at: first, end });
            }
            VisitStep::BranchEnd { visit, slot } => {
                let last = self.e.branch_items[self.e.slots[slot as usize].end as usize - 1];
                let (end, span) = (self.left_at(last), self.item_at(last).span);
                self.node(Kind::End, visit, end, span);
                // A call within the branch may have left it on another thread.
                self.e.slots[slot as usize].thread = self.e.current;
            }
            VisitStep::Switch { thread } => self.e.current = thread,
            VisitStep::Join { visit, first, last } => self.join(visit, first, last),
        }
    }

    /// The items of a scope, or those of them that come before or after a time, are to be done.
    fn items_of(&mut self, scope: u32) {
        let scope = &self.plan.scopes[scope as usize];
        self.e.steps.push(VisitStep::Items { at: scope.first, end: scope.last });
    }

    fn items(&mut self, at: u32, end: u32) {
        if at >= end {
            return;
        }
        let cluster = self.cluster(at, end);
        self.e.steps.push(VisitStep::Items { at: cluster, end });
        let first = self.plan.sorted[at as usize];
        let is_call = matches!(self.item_at(first).what, What::Call(_));
        if cluster == at + 1 && (is_call || !self.is_late(first)) {
            self.item(first);
        } else {
            self.fork(at, cluster);
        }
    }

    fn sorted(&self, at: u32) -> &Item {
        &self.plan.items[self.plan.sorted[at as usize] as usize]
    }

    fn item_at(&self, item: u32) -> &Item {
        &self.plan.items[item as usize]
    }

    fn caller(&self, item: u32) -> u32 {
        self.plan.scopes[self.item_at(item).scope as usize].visit
    }

    /// Whether the first visit does that, and ends before it. Another visit has answered by then, and what it does from there on is its second phase.
    fn is_late(&self, item: u32) -> bool {
        let own = self.item_at(item);
        let is_waited_for = matches!(
            own.what,
            What::Activity | What::Call(CallKind::Synchronous | CallKind::SecondPhase | CallKind::Forwarded)
        );
        let scope = &self.plan.scopes[own.scope as usize];
        is_waited_for && own.end > self.e.late && scope.visit == 0 && !scope.detached
    }

    /// When a visit begins what runs beside an item's scope from a time on. What begins after the first visit has ended was handed on before that, and its end is not put off.
    fn forks_at(&self, item: u32, start: i64) -> i64 {
        let scope = &self.plan.scopes[self.item_at(item).scope as usize];
        let is_over = scope.visit == 0 && !scope.detached && start > self.e.late;
        if is_over { self.plan.visits[0].end } else { start }
    }

    /// When a visit goes on after an item: at its end, but for a call whose answer comes too late.
    fn left_at(&self, item: u32) -> i64 {
        let own = self.item_at(item);
        match own.what {
            What::Call(_) if self.is_late(item) => self.forks_at(item, own.start),
            What::Call(_) => self.forks_at(item, own.end),
            _ => own.end,
        }
    }

    /// From when on a time counts as after another, where an item is involved.
    fn tolerance(&self, item: &Item) -> i64 {
        if item.client { self.e.tolerance.resolution } else { self.e.tolerance.slack }
    }

    /// Whether an item comes after another and does not run beside it. Spans may end a little after the answer was handed on.
    fn is_after(&self, item: &Item, before: &Item) -> bool {
        let overlap = before.end.saturating_sub(item.start);
        let length = |own: &Item| own.end.saturating_sub(own.start);
        let hardly = (length(item).min(length(before)) / HARDLY).min(LATE_END);
        overlap <= self.tolerance(before).max(self.tolerance(item)).max(hardly)
    }

    /// One past the last of the items from `at` on that overlap, each some other before it.
    fn cluster(&self, at: u32, end: u32) -> u32 {
        // What the visit waits for last; it goes on beside what is late.
        let is_late = |at: u32| self.is_late(self.plan.sorted[at as usize]);
        let mut last = self.sorted(at);
        let mut waits = !is_late(at);
        let mut next = at + 1;
        while next < end {
            let item = self.sorted(next);
            let tolerance = self.tolerance(last).max(self.tolerance(item));
            let is_apart =
                if waits { self.is_after(item, last) } else { item.start.saturating_add(tolerance) >= last.start };
            if is_apart {
                break;
            }
            if (!waits || item.end > last.end) && !is_late(next) {
                (last, waits) = (item, true);
            }
            next += 1;
        }
        next
    }

    /// Items that overlap are done in as many branches as it takes, each behind the one that ended last before it, and each that is late on one of its own.
    fn fork(&mut self, at: u32, end: u32) {
        let visit = self.plan.scopes[self.sorted(at).scope as usize].visit;
        let mut branches: Vec<Vec<u32>> = Vec::new();
        let mut free: BTreeSet<(i64, usize)> = BTreeSet::new();
        for position in at..end {
            let item = self.sorted(position);
            if self.is_late(self.plan.sorted[position as usize]) {
                branches.push(vec![self.plan.sorted[position as usize]]);
                continue;
            }
            let from = (item.start.saturating_add(self.tolerance(item)), usize::MAX);
            let hardly_before = (item.start.saturating_add(LATE_END), usize::MAX);
            let last = |branch: usize| branches[branch].last().map(|last| self.item_at(*last));
            let is_before = |(_, branch): &&(i64, usize)| last(*branch).is_some_and(|last| self.is_after(item, last));
            let late = free.range(from..hardly_before.max(from)).rev().take(LOOKED_AT).find(is_before);
            let branch = late.or_else(|| free.range(..=from).next_back()).copied();
            let branch = if let Some(key) = branch {
                free.remove(&key);
                key.1
            } else {
                branches.push(Vec::new());
                branches.len() - 1
            };
            branches[branch].push(self.plan.sorted[position as usize]);
            free.insert((item.end, branch));
        }
        if branches.len() == 1 && !self.is_late(branches[0][0]) {
            let first = self.e.branch_items.len() as u32;
            self.e.branch_items.extend(&branches[0]);
            self.e.steps.push(VisitStep::Branch { at: first, end: self.e.branch_items.len() as u32 });
            return;
        }
        let first_slot = self.e.slots.len() as u32;
        for branch in &branches {
            let first = self.e.branch_items.len() as u32;
            self.e.branch_items.extend(branch);
            let end = self.e.branch_items.len() as u32;
            let (time, span) = (self.item_at(branch[0]).start, self.item_at(branch[0]).span);
            let thread = self.fork_node(visit, self.forks_at(branch[0], time), span);
            let awaited = !self.is_late(branch[0]);
            self.e.slots.push(Slot { first, end, thread, span, time, awaited });
        }
        let last_slot = self.e.slots.len() as u32;
        self.e.steps.push(VisitStep::Join { visit, first: first_slot, last: last_slot });
        self.e.steps.push(VisitStep::Switch { thread: self.e.current });
        self.e.steps.extend((first_slot..last_slot).rev().map(|slot| VisitStep::BranchBegin { visit, slot }));
    }

    fn join(&mut self, visit: u32, first: u32, last: u32) {
        for slot in first..last {
            let slot = self.e.slots[slot as usize];
            if !slot.awaited {
                continue;
            }
            let ended = self.e.threads[slot.thread as usize - 1].time;
            self.node(Kind::Join(slot.thread), visit, ended, slot.span);
        }
        let (time, span) = (self.e.threads[self.e.current as usize - 1].time, self.e.slots[last as usize - 1].span);
        self.node(Kind::Activity, visit, time, span);
    }

    fn item(&mut self, index: u32) {
        let visit = self.caller(index);
        let item = self.item_at(index);
        let (start, end, span, name, callee, inner, waits) =
            (item.start, item.end, item.span, item.name, item.callee, item.inner, item.waits);
        // A call that only its server recorded has no CPU time of its own.
        let item_cpu = if item.client { item.cpu } else { f64::NAN };
        match item.what {
            What::Activity | What::Poll => {
                let polls = item.what == What::Poll;
                self.node(Kind::Activity, visit, start, span);
                (self.last().activity, self.last().cpu) = (name, item_cpu);
                if polls {
                    let first = if inner == NONE { end } else { self.plan.scopes[inner as usize].start };
                    let until = end.min(first).max(start);
                    self.last().pause =
                        if until > start { until.saturating_sub(start) as f64 * 1e-9 } else { f64::NAN };
                    // The time after it is no idle time.
                    self.node(Kind::Activity, visit, until, span);
                }
                if inner != NONE {
                    self.items_of(inner);
                }
            }
            What::Call(call_kind) if call_kind.is_sent() || self.is_late(index) => {
                let thread = self.fork_node(visit, self.forks_at(index, start), span);
                if call_kind.is_sent() && waits {
                    self.node(Kind::Activity, visit, start, span);
                    self.last().pause = end.saturating_sub(start) as f64 * 1e-9;
                }
                self.e.steps.push(VisitStep::Continue { item: index, thread: self.e.current });
                self.e.steps.push(VisitStep::Leave { visit: callee });
                self.e.steps.push(VisitStep::End { visit: callee });
                self.e.current = thread;
                self.begin(callee);
                self.items_of(self.plan.visits[callee as usize].scope);
            }
            What::Call(call_kind) => {
                self.node(Kind::Activity, visit, start, span);
                self.last().cpu = item_cpu;
                self.enter(callee);
                self.accept(callee);
                match call_kind {
                    CallKind::SecondPhase => {
                        self.e.steps.push(VisitStep::ReplyEarly { item: index });
                        let scope = &self.plan.scopes[self.plan.visits[callee as usize].scope as usize];
                        let until = self.second_phase(callee, self.replies_at(index));
                        self.e.steps.push(VisitStep::Items { at: scope.first, end: until });
                    }
                    CallKind::Forwarded => {
                        self.e.steps.push(VisitStep::Leave { visit: callee });
                        self.hop_items(callee, index);
                    }
                    _ => {
                        self.e.steps.push(VisitStep::Reply { item: index });
                        self.items_of(self.plan.visits[callee as usize].scope);
                    }
                }
            }
        }
    }

    /// When the callee of an item replies.
    fn replies_at(&self, item: u32) -> i64 {
        let item = self.item_at(item);
        self.plan.visits[item.callee as usize].end.min(item.end)
    }

    /// The first of a visit's sorted items that ends after it has replied.
    fn second_phase(&self, visit: u32, reply: i64) -> u32 {
        let scope = &self.plan.scopes[self.plan.visits[visit as usize].scope as usize];
        let own = &self.plan.visits[visit as usize];
        let one_clock = own.caller != NONE && self.plan.visit_of(self.item_at(own.caller)).clock == own.clock;
        // By one clock that counts in steps, what shows to end later does; were it put before the answer, this would be put off.
        let slack = if one_clock && self.e.tolerance.grain > 0 { 0 } else { self.e.tolerance.slack };
        let comes_after = |item: &Item| {
            // By one clock, what begins when the answer is out comes after it.
            item.end > reply.saturating_add(slack)
                || one_clock && item.start >= reply.saturating_add(self.e.tolerance.grain) && item.end > item.start
        };
        (scope.first..scope.last).find(|at| comes_after(self.sorted(*at))).unwrap_or(scope.last)
    }

    fn reply(&mut self, index: u32) {
        let item = self.item_at(index);
        let (callee, end, span) = (item.callee, item.end, item.span);
        let of = self.plan.visits[callee as usize].span;
        self.node(Kind::Activity, callee, self.replies_at(index), of);
        self.leave(callee);
        let visit = self.caller(index);
        self.node(Kind::Activity, visit, end, span);
    }

    fn reply_early(&mut self, index: u32) {
        let callee = self.item_at(index).callee;
        let of = &self.plan.visits[callee as usize];
        let reply = self.replies_at(index);
        let thread = self.fork_node(callee, reply, of.span);
        self.node(Kind::Activity, callee, reply, of.span);
        self.e.steps.push(VisitStep::Resume { item: index, thread });
        self.e.steps.push(VisitStep::Leave { visit: callee });
        self.e.steps.push(VisitStep::End { visit: callee });
        let from = self.second_phase(callee, reply);
        self.e.steps.push(VisitStep::Items { at: from, end: self.plan.scopes[of.scope as usize].last });
    }

    /// The items of a visit of a chain up to the point where it passes the request on.
    fn hop_items(&mut self, visit: u32, call: u32) {
        let scope = &self.plan.scopes[self.plan.visits[visit as usize].scope as usize];
        self.e.steps.push(VisitStep::Hop { visit, call });
        self.e.steps.push(VisitStep::Items { at: scope.first, end: self.hop_at(visit, call) });
    }

    /// The position of the sorted item by which a visit passes the request on, or from which on it comes after the reply.
    fn hop_at(&self, visit: u32, call: u32) -> u32 {
        let of = &self.plan.visits[visit as usize];
        let scope = &self.plan.scopes[of.scope as usize];
        if of.forward == NONE {
            return self.second_phase(visit, of.end.min(self.item_at(call).end));
        }
        let sorted = &self.plan.sorted[scope.first as usize..scope.last as usize];
        let key = (self.item_at(of.forward).place(), of.forward);
        scope.first + sorted.partition_point(|item| (self.item_at(*item).place(), *item) < key) as u32
    }

    fn hop(&mut self, visit: u32, call: u32) {
        let of = &self.plan.visits[visit as usize];
        let last = self.plan.scopes[of.scope as usize].last;
        let at = self.hop_at(visit, call);
        let (time, rest) = if of.forward == NONE {
            (of.end.min(self.item_at(call).end), at)
        } else {
            (self.item_at(of.forward).start, at + 1)
        };
        let thread = self.fork_node(visit, time, of.span);
        if rest < last || of.extent > time.saturating_add(self.e.tolerance.resolution) {
            self.node(Kind::Activity, visit, time, of.span);
        }
        self.e.steps.push(if of.forward == NONE {
            VisitStep::Resume { item: call, thread }
        } else {
            VisitStep::HopBegin { visit: self.item_at(of.forward).callee, call, thread }
        });
        self.e.steps.push(VisitStep::End { visit });
        self.e.steps.push(VisitStep::Items { at: rest, end: last });
    }

    fn enter(&mut self, visit: u32) {
        let service = self.plan.visits[visit as usize].service;
        let open = self.e.open.entry(service).or_insert(0);
        *open += 1;
        self.e.tasks[visit as usize] = self.names.intern_task_named(Task { name: service, instance: *open });
    }

    fn leave(&mut self, visit: u32) {
        if let Some(open) = self.e.open.get_mut(&self.plan.visits[visit as usize].service) {
            *open -= 1;
        }
    }

    fn begin(&mut self, visit: u32) {
        self.enter(visit);
        self.begin_entered(visit);
    }

    fn begin_entered(&mut self, visit: u32) {
        let of = &self.plan.visits[visit as usize];
        let origin = self.origin_of(visit);
        self.node(Kind::Begin, visit, of.start, origin);
        self.last().service = of.operation;
        self.node(Kind::Activity, visit, of.start, of.span);
        self.last().cpu = of.cpu;
    }

    /// What a visit begins at.
    fn origin_of(&mut self, visit: u32) -> u32 {
        let of = &self.plan.visits[visit as usize];
        if of.evidence == VisitEvidence::Recorded {
            return of.span;
        }
        self.e.made_up.push((of.span, of.evidence));
        self.e.spans + self.e.made_up.len() as u32 - 1
    }

    fn accept(&mut self, visit: u32) {
        let of = &self.plan.visits[visit as usize];
        let origin = self.origin_of(visit);
        self.node(Kind::Activity, visit, of.start, origin);
        let last = self.last();
        (last.service, last.cpu) = (of.operation, of.cpu);
    }

    fn last(&mut self) -> &mut Event {
        self.e.events.last_mut().expect("a node was emitted just before")
    }

    fn new_thread(&mut self, time: i64) -> u32 {
        self.e.threads.push(Thread { nodes: 0, time });
        self.e.threads.len() as u32
    }

    fn fork_node(&mut self, visit: u32, time: i64, span: u32) -> u32 {
        let thread = self.e.threads.len() as u32 + 1;
        let time = self.node(Kind::Fork(thread), visit, time, span);
        self.new_thread(time)
    }

    /// Emits a node of a visit in the current thread; gives the time it got.
    fn node(&mut self, kind: Kind, visit: u32, time: i64, span: u32) -> i64 {
        let task = self.e.tasks[visit as usize];
        let counter = self.e.counters.entry(task).or_insert(0);
        *counter += 1;
        let thread = &mut self.e.threads[self.e.current as usize - 1];
        thread.nodes += 1;
        thread.time = thread.time.max(time);
        let mut event = Event::new(self.e.current, thread.nodes, kind, task, *counter);
        event.time = thread.time.saturating_sub(self.e.origin) as f64 / 1e9;
        event.origin = span;
        let time = thread.time;
        self.e.events.push(event);
        time
    }
}
