//! What a tree of spans means: visits of services, and what each visit does.

use crate::VisitEvidence;
use crate::spans::model::Clock;
use dyelog_diagnostic::names::Name;

/// No visit, scope or item.
pub const NONE: u32 = u32::MAX;

/// One period of work of a service on one request or message.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The service, which becomes the task.
    pub service: Name,
    /// What is asked of it, which names the entry.
    pub operation: Name,
    /// The span it is read from, as a position in the tree.
    pub span: u32,
    /// The clock of its times.
    pub clock: Clock,
    /// Start and end in nanoseconds; corrected once its calls are decided.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// CPU time in seconds; NaN where not given.
    pub cpu: f64,
    /// The items of the visit itself.
    pub scope: u32,
    /// The item by which it is called; [`NONE`] for the first of an operation.
    pub caller: u32,
    /// Whether its own span was not recorded, so that its times follow from what it does.
    pub unrecorded: bool,
    /// When its last work ends.
    pub extent: i64,
    /// The item by which it forwards the request; [`NONE`] where it replies itself.
    pub forward: u32,
    /// Whether a caller other than its sender waits for its answer: a SERVER span below a PRODUCER.
    pub answers: bool,
    /// Network latency of its calls, both ways, where it was lost and calls like its own show it.
    pub on_the_way: i64,
    /// What to add to the times of its clock.
    pub shift: i64,
    /// How it is known.
    pub evidence: VisitEvidence,
}

/// A sequence of items: those of a visit, or those within one activity of it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The visit it belongs to.
    pub visit: u32,
    /// The item that it is within; [`NONE`] for the items of the visit itself.
    pub within: u32,
    /// Whether it is within an item that the first visit does not wait for; it waits for its own calls.
    pub detached: bool,
    /// Start of the earliest and end of the last item.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// Start of the last item that takes any time.
    pub latest: i64,
    /// Its items in [`SpanPlan::sorted`].
    pub first: u32,
    /// One past the last of them.
    pub last: u32,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Work of the visit's own, or a wrapper around further items.
    Activity,
    /// Waiting for messages.
    Poll,
    /// Another visit is made to happen.
    Call(CallKind),
}

/// How a visit makes another one happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Not decided yet; the caller seems to wait.
    Open,
    /// Not decided yet whether the request is forwarded; the caller does not wait.
    Deferred,
    /// A message whose sender waits for the work on it, and goes on at the item's end at the latest.
    Answered,
    /// The caller waits for the reply.
    Synchronous,
    /// The caller waits for a reply after which the server goes on.
    SecondPhase,
    /// The caller waits for a reply that comes from further down a chain of forwarders.
    Forwarded,
    /// One hop of such a chain.
    Hop,
    /// The caller does not wait.
    Asynchronous,
}

impl CallKind {
    /// Whether the caller goes on at once.
    pub fn is_sent(self) -> bool {
        matches!(self, Self::Asynchronous | Self::Deferred | Self::Hop)
    }
}

/// One thing that a visit does.
#[derive(Clone, Debug)]
pub struct Item {
    /// The scope it belongs to.
    pub scope: u32,
    /// What it is.
    pub what: What,
    /// The span it is read from, as a position in the tree.
    pub span: u32,
    /// The span's name.
    pub name: Name,
    /// Start and end at the calling side, in nanoseconds.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// CPU time that the span used itself, in seconds; NaN where not measured.
    pub cpu: f64,
    /// The visit it calls.
    pub callee: u32,
    /// The items within it.
    pub inner: u32,
    /// Whether the calling side recorded it; else its times are those of the visit.
    pub client: bool,
    /// Of a message: whether its sender waits until it is taken.
    pub waits: bool,
}

/// The visits and items of one operation.
#[derive(Clone, Debug, Default)]
pub struct SpanPlan {
    /// Each after the one that called it.
    pub visits: Vec<Visit>,
    /// Scopes.
    pub scopes: Vec<Scope>,
    /// Each after the one that it is within or below.
    pub items: Vec<Item>,
    /// The items by scope and start.
    pub sorted: Vec<u32>,
}

impl Item {
    /// Where it lies in the order of time. What takes no time that its clock shows comes before what begins then and lasts.
    pub fn place(&self) -> (i64, bool) {
        (self.start, self.end > self.start)
    }
}

impl SpanPlan {
    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.visits.clear();
        self.scopes.clear();
        self.items.clear();
        self.sorted.clear();
    }

    /// A new scope of a visit, within an item of it or [`NONE`].
    fn add_scope(&mut self, visit: u32, within: u32) -> u32 {
        self.scopes.push(Scope {
            visit,
            within,
            detached: false,
            start: i64::MAX,
            end: i64::MIN,
            latest: i64::MIN,
            first: 0,
            last: 0,
        });
        self.scopes.len() as u32 - 1
    }

    /// A new scope within an item, for what it does.
    pub fn open(&mut self, item: u32) -> u32 {
        let visit = self.scopes[self.items[item as usize].scope as usize].visit;
        let inner = self.add_scope(visit, item);
        self.items[item as usize].inner = inner;
        inner
    }

    /// A new item.
    pub fn add_item(&mut self, item: Item) -> u32 {
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    /// A new visit with a scope of its own.
    pub fn add_visit(&mut self, mut visit: Visit) -> u32 {
        let number = self.visits.len() as u32;
        visit.scope = self.add_scope(number, NONE);
        self.visits.push(visit);
        number
    }

    /// The visit that an item is part of.
    pub fn visit_of(&self, item: &Item) -> &Visit {
        &self.visits[self.scopes[item.scope as usize].visit as usize]
    }

    /// By scope, when the visit ends, or the last local span around it that outlasts the visit, as recorded.
    pub fn ends_around(&self, ends: &mut Vec<i64>) {
        ends.clear();
        for scope in &self.scopes {
            // A scope comes after the one that it is within.
            let end = match self.items.get(scope.within as usize) {
                Some(within) => ends[within.scope as usize].max(within.end),
                None => self.visits[scope.visit as usize].end,
            };
            ends.push(end);
        }
    }

    /// By span, what was added to its times when the plan was settled. Spans that the plan has no use for go with their parents, which
    /// come before them.
    pub fn shifts(&self, parents: &[u32]) -> Vec<i64> {
        let mut known: Vec<Option<i64>> = vec![None; parents.len()];
        for visit in &self.visits {
            known[visit.span as usize] = Some(visit.shift);
        }
        // The span of a call that was not seen at its server stands for both halves, and for all that was put in place of lost work: its times are those of the calling side,
        // which comes first.
        for item in self.items.iter().rev() {
            let visit = if item.client { self.visit_of(item) } else { &self.visits[item.callee as usize] };
            known[item.span as usize] = Some(visit.shift);
        }
        let mut shifts = Vec::with_capacity(parents.len());
        for (known, &parent) in known.into_iter().zip(parents) {
            let inherited = if parent == NONE { 0 } else { shifts[parent as usize] };
            shifts.push(known.unwrap_or(inherited));
        }
        shifts
    }

    /// Sorts the items into their scopes.
    pub fn lay_out(&mut self) {
        self.sorted.clear();
        self.sorted.extend(0..self.items.len() as u32);
        let items = &self.items;
        self.sorted
            .sort_unstable_by_key(|index| (items[*index as usize].scope, items[*index as usize].place(), *index));
        for scope in &mut self.scopes {
            (scope.first, scope.last) = (0, 0);
        }
        for (at, index) in self.sorted.iter().enumerate() {
            let scope = &mut self.scopes[self.items[*index as usize].scope as usize];
            if scope.last == 0 {
                scope.first = at as u32;
            }
            scope.last = at as u32 + 1;
        }
    }
}
