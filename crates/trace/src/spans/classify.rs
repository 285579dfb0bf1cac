//! The decision table, first part: which span is a visit, which a call, which an activity.
//!
//! | span | becomes |
//! |---|---|
//! | SERVER, CONSUMER | a visit; in the service of its parent, an activity of the same visit, unless the parent is known to be remote |
//! | CLIENT, PRODUCER | a call of the visit that it is in |
//! | CLIENT whose only further call is one CLIENT child in the same service, which lies within it | one call, which takes as long as the inner span; the outer is an activity around it, for what else it does is work of the caller |
//! | CLIENT with several calls below it, or several server halves | an activity around as many calls (retries, redirects); calls that are alike are of the peer of the span around them |
//! | CLIENT after another one like it that failed | a call; the time since the other one's end is a wait (back-off), not work |
//! | CLIENT, PRODUCER without a server half | a call of a visit at the peer; where spans of another service hang directly below it, these are the visit |
//! | INTERNAL, none | an activity where the service is its parent's, else a visit whose calling half is missing |
//! | none, in a trace without any kinds, with one child that is in another service | the calling half of that child |
//! | FOLLOWS_FROM | a visit, also within one service |
//! | SERVER below a PRODUCER | a visit that answers a client further up, which waits: the request was forwarded |
//! | receive, poll (messaging) | idle time of the visit, not a call |
//! | INTERNAL below a CLIENT, without calls of its own | an activity just before the call |

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::VisitEvidence;
use crate::spans::model::{Messaging, Span, SpanKind};
use crate::spans::plan::{CallKind, Item, NONE, SpanPlan, Visit, What};
use dyelog_diagnostic::names::Name;

/// One tree of spans in breadth-first order.
#[derive(Debug, Default)]
pub struct TreeView {
    /// The spans.
    pub spans: Vec<Span>,
    /// The position of the parent of each; of the first, [`NONE`].
    pub parents: Vec<u32>,
    /// The positions of the children of each, which lie side by side.
    pub children: Vec<(u32, u32)>,
    /// Whether there is any call below a span.
    calls_below: Vec<bool>,
    /// Whether the tree has any kinds but INTERNAL.
    kinds: bool,
}

impl TreeView {
    /// Derives what follows from spans and parents.
    pub fn finish(&mut self) {
        let count = self.spans.len();
        self.children.clear();
        self.children.resize(count, (0, 0));
        self.calls_below.clear();
        self.calls_below.resize(count, false);
        self.kinds = self.spans.iter().any(|span| span.kind.calls() || span.kind.serves());
        for at in (1..count).rev() {
            let parent = self.parents[at] as usize;
            let (span, above) = (&self.spans[at], &self.spans[parent]);
            if span.kind.calls() && !span.polls()
                || span.service != above.service
                || span.follows
                || self.calls_below[at]
            {
                self.calls_below[parent] = true;
            }
            let (first, last) = &mut self.children[parent];
            if *last == 0 {
                *last = at as u32 + 1;
            }
            *first = at as u32;
        }
        self.own_cpu();
        for at in 1..count as u32 {
            self.spans[at as usize].retry |= self.backs_off_since(at).is_some();
        }
    }

    /// Since when a call waits to be made once more: since the end of the one before it, which was like it and failed, where nothing else of their parent goes on.
    fn backs_off_since(&self, at: u32) -> Option<i64> {
        let before = at.checked_sub(1)?;
        let siblings = self.children_of(self.parents[at as usize]);
        if !siblings.contains(&before) {
            return None;
        }
        let (first, again) = (self.span(before), self.span(at));
        let is_alike = first.kind.calls()
            && first.kind == again.kind
            && (first.service, first.name, first.peer) == (again.service, again.name, again.peer);
        let goes_on =
            before.checked_sub(1).is_some_and(|other| siblings.contains(&other) && self.span(other).end > first.end);
        (first.failed && is_alike && !goes_on && first.end <= again.start).then_some(first.end)
    }

    /// Takes from each span's CPU time that of the spans within it. A CPU time is read off a thread's clock at both ends
    /// of a span, so what spans of the same service within it used is counted twice.
    fn own_cpu(&mut self) {
        let mut within = vec![0.0; self.spans.len()];
        for at in (0..self.spans.len()).rev() {
            let measured = self.spans[at].cpu;
            let all = if measured.is_nan() { within[at] } else { measured };
            self.spans[at].cpu = (measured - within[at]).max(0.0);
            if measured.is_nan() {
                self.spans[at].cpu = f64::NAN;
            }
            let span = &self.spans[at];
            if at > 0
                && !span.kind.serves()
                && !span.follows
                && span.service == self.spans[self.parents[at] as usize].service
            {
                within[self.parents[at] as usize] += all;
            }
        }
    }

    fn children_of(&self, at: u32) -> std::ops::Range<u32> {
        let (first, last) = self.children[at as usize];
        first..last
    }

    fn span(&self, at: u32) -> &Span {
        &self.spans[at as usize]
    }
}

/// The peer of a call that has no server half, where other calls like it in the same input do have one.
pub type Learned = FxHashMap<(Name, Name, Name), Name>;

/// What cannot be read off the tree itself.
pub struct Knowledge<'a> {
    /// Peers by calling service, peer attribute and span name.
    pub learned: &'a Learned,
    /// What a peer is called of which nothing is known, by calling service.
    pub unknown: &'a FxHashMap<Name, Name>,
}

/// How often something had to be made up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missing {
    /// Calls without a server half.
    pub servers: u64,
    /// Visits without a client half.
    pub clients: u64,
    /// CLIENT spans with several server halves.
    pub several: u64,
    /// Polls.
    pub polls: u64,
    /// Polls without anything else in their operations, which are none.
    pub idle: u64,
    /// Waits before a call is made once more.
    pub back_offs: u64,
}

/// A call whose calling half is seen at one or more levels.
struct Levels {
    /// The position of the span that names the call.
    outer: u32,
    /// The position of the span next to the other side.
    inner: u32,
    /// The position of the span that the call takes as long as.
    timed: u32,
    /// Whether any of them is a PRODUCER.
    deferred: bool,
}

struct Builder<'a> {
    tree: &'a TreeView,
    known: &'a Knowledge<'a>,
    plan: &'a mut SpanPlan,
    missing: Missing,
    /// Visits that were made up for spans of another service, by the position of their parent.
    unrecorded: FxHashMap<(u32, Name), u32>,
    /// The peer of each call within a calling span around several that are alike.
    around: FxHashMap<u32, Name>,
    queue: VecDeque<(u32, u32)>,
}

/// Reads the visits and items off a tree. Times are as recorded, call kinds open.
pub fn classify(tree: &TreeView, known: &Knowledge<'_>, plan: &mut SpanPlan) -> Missing {
    plan.clear();
    let mut builder = Builder {
        tree,
        known,
        plan,
        missing: Missing::default(),
        unrecorded: FxHashMap::default(),
        around: FxHashMap::default(),
        queue: VecDeque::new(),
    };
    builder.root();
    while let Some((at, scope)) = builder.queue.pop_front() {
        builder.place(at, scope);
    }
    builder.missing
}

impl Builder<'_> {
    fn root(&mut self) {
        let root = self.tree.span(0);
        // What waits for a message is no work, so that it lies within a visit, as a call does.
        let calls = root.kind.calls() || root.polls();
        let visit = self.visit(0, NONE, NONE);
        self.plan.visits[visit as usize].unrecorded = calls;
        let scope = self.plan.visits[visit as usize].scope;
        if calls {
            self.queue.push_back((0, scope));
        } else {
            self.enter_children(0, scope);
        }
    }

    fn enter_children(&mut self, at: u32, scope: u32) {
        self.queue.extend(self.tree.children_of(at).map(|child| (child, scope)));
    }

    /// A visit that is read off a span, called by an item whose span is `client`.
    fn visit(&mut self, at: u32, caller: u32, client: u32) -> u32 {
        let span = self.tree.span(at);
        let operation = if span.name.is_some() || client == NONE { span.name } else { self.tree.span(client).name };
        self.plan.add_visit(Visit {
            service: span.service,
            operation,
            span: at,
            clock: span.clock(),
            start: span.start,
            end: span.end,
            cpu: span.cpu,
            scope: NONE,
            caller,
            unrecorded: false,
            extent: span.end,
            forward: NONE,
            answers: false,
            on_the_way: 0,
            shift: 0,
            evidence: VisitEvidence::Recorded,
        })
    }

    fn item(&mut self, scope: u32, what: What, at: u32) -> u32 {
        let span = self.tree.span(at);
        let (name, start, end, cpu) = (span.name, span.start, span.end, span.cpu);
        self.plan.add_item(Item {
            scope,
            what,
            span: at,
            name,
            start,
            end,
            cpu,
            callee: NONE,
            inner: NONE,
            client: true,
            waits: false,
        })
    }

    /// An item that calls `visit`; `at` is its calling half, or where there is none the span of the visit.
    fn call(&mut self, scope: u32, at: u32, visit: u32, client: bool, deferred: bool) {
        let call_kind = if deferred { CallKind::Deferred } else { CallKind::Open };
        let item = self.item(scope, What::Call(call_kind), at);
        (self.plan.items[item as usize].callee, self.plan.items[item as usize].client) = (visit, client);
        self.plan.visits[visit as usize].caller = item;
    }

    /// Puts a span into the scope of the visit that its parent belongs to.
    fn place(&mut self, at: u32, scope: u32) {
        let span = self.tree.span(at);
        let same = span.service == self.plan.visits[self.plan.scopes[scope as usize].visit as usize].service;
        if span.kind.calls() && !span.polls() || same && self.is_unmarked_call(at) {
            let scope = if same { scope } else { self.foreign(at, scope) };
            if let Some(since) = self.tree.backs_off_since(at) {
                self.missing.back_offs += 1;
                let item = self.item(scope, What::Poll, at);
                let item = &mut self.plan.items[item as usize];
                (item.start, item.end, item.name, item.cpu) = (since, self.tree.span(at).start, Name::NONE, f64::NAN);
            }
            self.place_call(at, scope);
        } else if !same || span.follows || span.kind.serves() && span.remote {
            let visit = self.visit(at, NONE, NONE);
            let deferred = span.follows;
            self.call(scope, at, visit, false, deferred);
            self.missing.clients += u64::from(!deferred);
            self.enter_children(at, self.plan.visits[visit as usize].scope);
        } else if span.polls() {
            self.missing.polls += 1;
            self.activity(at, scope, What::Poll);
        } else {
            self.activity(at, scope, What::Activity);
        }
    }

    fn activity(&mut self, at: u32, scope: u32, what: What) {
        let item = self.item(scope, what, at);
        if !self.tree.children_of(at).is_empty() {
            let inner = self.plan.open(item);
            self.enter_children(at, inner);
        }
    }

    /// Whether a span of a trace without kinds is the calling half of its only child.
    fn is_unmarked_call(&self, at: u32) -> bool {
        let span = self.tree.span(at);
        let children = self.tree.children_of(at);
        at != 0
            && !span.follows
            && matches!(span.kind, SpanKind::Unspecified | SpanKind::Internal)
            && !self.tree.kinds
            && children.len() == 1
            && self.tree.span(children.start).service != span.service
    }

    /// The scope of a visit that was not recorded: a span of another service calls out of it.
    fn foreign(&mut self, at: u32, scope: u32) -> u32 {
        let key = (self.tree.parents[at as usize], self.tree.span(at).service);
        if let Some(&visit) = self.unrecorded.get(&key) {
            return self.plan.visits[visit as usize].scope;
        }
        let visit = self.unrecorded_visit(at, NONE);
        self.unrecorded.insert(key, visit);
        self.call(scope, at, visit, false, false);
        self.missing.clients += 1;
        self.missing.servers += 1;
        self.plan.visits[visit as usize].scope
    }

    fn unrecorded_visit(&mut self, at: u32, client: u32) -> u32 {
        let visit = self.visit(at, NONE, NONE);
        let made_up = &mut self.plan.visits[visit as usize];
        made_up.unrecorded = true;
        made_up.cpu = f64::NAN;
        made_up.operation = if client == NONE { Name::NONE } else { self.tree.span(client).name };
        visit
    }

    /// A calling span, in the scope of a visit of its own service.
    fn place_call(&mut self, at: u32, scope: u32) {
        let mut inner = at;
        let (mut halves, mut calls, mut locals) = (Vec::new(), Vec::new(), Vec::new());
        let mut asides = Vec::new();
        loop {
            let span = self.tree.span(inner);
            halves.clear();
            calls.clear();
            locals.clear();
            for child in self.tree.children_of(inner) {
                let below = self.tree.span(child);
                if below.kind.serves() || below.service != span.service || below.follows {
                    halves.push(child);
                } else if below.kind.calls() && !below.polls() {
                    calls.push(child);
                } else {
                    locals.push(child);
                }
            }
            let quiet = locals.iter().all(|local| !self.tree.calls_below[*local as usize]);
            if !halves.is_empty() || calls.len() != 1 || !quiet {
                break;
            }
            asides.append(&mut locals);
            inner = calls[0];
        }
        if halves.is_empty() {
            let quiet = locals.iter().all(|local| !self.tree.calls_below[*local as usize]);
            if !calls.is_empty() || !quiet {
                return self.wrap(at, inner, scope);
            }
        }
        let levels = self.levels(at, inner);
        let mut scope = scope;
        if levels.timed != at {
            scope = self.activity_around(at, scope);
            self.queue.extend(asides.drain(..).map(|child| (child, scope)));
        }
        // What else hangs below the call is no part of it; what makes no calls happens just before.
        let (loud, mut quiet): (Vec<u32>, Vec<u32>) =
            locals.into_iter().partition(|local| self.tree.calls_below[*local as usize]);
        asides.append(&mut quiet);
        self.aside(levels.timed, scope, asides);
        self.queue.extend(loud.into_iter().chain(calls).map(|child| (child, scope)));
        if halves.is_empty() {
            self.call_peer(&levels, scope);
        } else {
            self.answer(&levels, scope, &halves);
        }
    }

    /// What a call seen from `at` down to `inner` is. What an ORM does around the span of its driver is work of the caller;
    /// of a message that is sent, and where the inner span does not lie within the outer, the outer span is the call.
    fn levels(&self, at: u32, inner: u32) -> Levels {
        let mut levels = Levels { outer: at, inner, timed: at, deferred: false };
        let mut sends = false;
        let mut level = inner;
        loop {
            let span = self.tree.span(level);
            levels.deferred |= span.kind == SpanKind::Producer;
            sends |= span.messaging == Messaging::Send;
            if level == at {
                break;
            }
            level = self.tree.parents[level as usize];
        }
        let (outer, call) = (self.tree.span(at), self.tree.span(inner));
        if !levels.deferred && !sends && outer.start <= call.start && call.end <= outer.end {
            levels.timed = inner;
        }
        levels
    }

    /// Activities without calls below a calling span: all happen, for what they matter, when the call begins.
    fn aside(&mut self, at: u32, scope: u32, mut spans: Vec<u32>) {
        let time = self.tree.span(at).start;
        let mut next = 0;
        while next < spans.len() {
            let what = if self.tree.span(spans[next]).polls() { What::Poll } else { What::Activity };
            let item = self.item(scope, what, spans[next]);
            (self.plan.items[item as usize].start, self.plan.items[item as usize].end) = (time, time);
            spans.extend(self.tree.children_of(spans[next]));
            next += 1;
        }
    }

    /// A calling span around several calls is an activity.
    fn wrap(&mut self, at: u32, inner: u32, scope: u32) {
        let within = self.activity_around(at, scope);
        let children = self.tree.children_of(inner);
        let what = |child: u32| {
            let span = self.tree.span(child);
            (span.kind, span.name, span.peer)
        };
        let peer = self.tree.span(at).peer;
        if peer.is_some() && children.clone().all(|child| what(child) == what(children.start)) {
            self.around.extend(children.map(|child| (child, peer)));
        }
        self.enter_children(inner, within);
    }

    /// An activity that is read off a calling span; returns the scope within it.
    fn activity_around(&mut self, at: u32, scope: u32) -> u32 {
        let item = self.item(scope, What::Activity, at);
        self.plan.open(item)
    }

    /// A call of which only the calling half is there.
    fn call_peer(&mut self, levels: &Levels, scope: u32) {
        let (outer, span) = (*self.tree.span(levels.outer), *self.tree.span(levels.inner));
        self.missing.servers += 1;
        let visit = self.unrecorded_visit(levels.timed, levels.outer);
        let around = self.around.get(&levels.outer).copied();
        let peer = around.unwrap_or(if outer.peer.is_some() { outer.peer } else { span.peer });
        let learned =
            [&outer, &span].iter().find_map(|half| self.known.learned.get(&(half.service, half.peer, half.name)));
        let made_up = &mut self.plan.visits[visit as usize];
        made_up.service = match learned {
            Some(service) => *service,
            None if peer.is_some() => peer,
            None => self.known.unknown.get(&outer.service).copied().unwrap_or(outer.service),
        };
        let deferred = levels.deferred || outer.messaging == Messaging::Send || span.messaging == Messaging::Send;
        if deferred {
            made_up.start = outer.end;
        }
        self.call(scope, levels.timed, visit, true, deferred);
    }

    /// A call with the spans of the other side.
    fn answer(&mut self, levels: &Levels, scope: u32, halves: &[u32]) {
        let &Levels { outer, timed, deferred, .. } = levels;
        let mut visits: Vec<(u32, bool)> = Vec::new();
        let mut by_service: FxHashMap<Name, u32> = FxHashMap::default();
        let mut of_service: FxHashMap<Name, u32> = FxHashMap::default();
        for &half in halves {
            *of_service.entry(self.tree.span(half).service).or_default() += 1;
        }
        let serves = |span: &Span| span.kind.serves() || span.follows;
        for &half in halves.iter().filter(|half| serves(self.tree.span(**half))) {
            let span = self.tree.span(half);
            let late = deferred || span.follows || span.kind == SpanKind::Consumer;
            // In place of a span that was lost another one was put, which knows what hangs on it and no more.
            let visit = if span.lost { self.unrecorded_visit(half, outer) } else { self.visit(half, NONE, outer) };
            self.missing.servers += u64::from(span.lost);
            self.plan.visits[visit as usize].answers = deferred && span.kind == SpanKind::Server && !span.follows;
            by_service.entry(self.tree.span(half).service).or_insert(visit);
            visits.push((visit, late));
            self.enter_children(half, self.plan.visits[visit as usize].scope);
        }
        for &half in halves.iter().filter(|half| !serves(self.tree.span(**half))) {
            let span = self.tree.span(half);
            if let Some(&visit) = by_service.get(&span.service) {
                self.queue.push_back((half, self.plan.visits[visit as usize].scope));
            } else if of_service[&span.service] == 1 && !span.kind.calls() {
                let visit = self.visit(half, NONE, outer);
                visits.push((visit, deferred));
                self.enter_children(half, self.plan.visits[visit as usize].scope);
            } else {
                let visit = self.unrecorded_visit(half, outer);
                self.missing.servers += 1;
                by_service.insert(span.service, visit);
                visits.push((visit, deferred));
                self.queue.push_back((half, self.plan.visits[visit as usize].scope));
            }
        }
        if visits.len() == 1 || visits.iter().all(|(_, late)| *late) {
            for (visit, late) in visits {
                self.call(scope, timed, visit, true, late);
            }
            return;
        }
        // Retries below one CLIENT span, or a proxy that is not traced: as many calls.
        self.missing.several += 1;
        let within = self.activity_around(timed, scope);
        for (visit, late) in visits {
            let span = self.plan.visits[visit as usize].span;
            self.call(within, span, visit, false, late);
        }
    }
}
