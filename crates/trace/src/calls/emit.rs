//! From the calls of an operation to its events.

use std::sync::Arc;

use dyelog_callgraph::{Call, CallTree, Profile, SiteId};
use dyelog_diagnostic::names::Name;
use rustc_hash::FxHashMap;

use super::joins::{Joins, waits};
use super::pauses::Pauses;
use super::runtime::{Intervals, Runtime};
use crate::recorded::SpanKind;
use crate::{Event, Extent, Kind, Operation, Origins, SpanItem, Task, TaskId, TraceNames};

/// What is still to be done, last first.
enum EmitStep {
    /// A call of the innermost scope.
    Call(usize),
    /// The function of a synchronous call replies.
    Return(usize),
    /// A function that nobody waits for ends, or a thread does; its caller goes on in that thread of events.
    End(usize, u32),
    /// The caller of the whole operation ends.
    EndOfRoot(usize),
}

/// What calls are made from: a function that runs, a thread of one, or the caller of the operation.
struct Scope {
    task: TaskId,
    /// Threads that it waits for at its end, each with the call it is.
    joined: Vec<(u32, usize)>,
    /// What is added to its times, so that they are on the clock of the operation; nanoseconds.
    shift: i64,
}

/// Writes operations; its buffers are used again for each.
pub struct Emitter<'a> {
    profile: &'a Profile,
    calls: &'a CallTree,
    runtime: Runtime<'a>,
    pauses: Pauses,
    joins: Joins,
    /// The calls that each call makes, in order; `first[n]..first[n + 1]` are those of the call n.
    children: Vec<u32>,
    first: Vec<u32>,
    /// By call, the first call of it and beneath it that cannot be used; the number of calls where all can.
    bad: Vec<u32>,
    events: Vec<Event>,
    items: Vec<SpanItem>,
    /// By call, its place among the items of its operation.
    item_of: Vec<u32>,
    /// Of each thread of the operation: its events, and the time of the last one in seconds, NaN where it has none.
    threads: Vec<(u32, f64)>,
    counters: FxHashMap<TaskId, u32>,
    /// How often each process is being visited now.
    open: FxHashMap<Name, u32>,
    scopes: Vec<Scope>,
    current: u32,
    origin: i64,
}

impl<'a> Emitter<'a> {
    pub fn new(profile: &'a Profile, calls: &'a CallTree) -> Self {
        let all = calls.calls();
        let mut order: Vec<u32> = (0..all.len() as u32).filter(|call| calls.parent(*call as usize).is_some()).collect();
        order.sort_by_key(|call| (calls.parent(*call as usize), all[*call as usize].at, *call));
        let mut first = vec![0u32; all.len() + 1];
        for call in &order {
            if let Some(parent) = calls.parent(*call as usize) {
                first[parent + 1] += 1;
            }
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut emitter = Self {
            profile,
            calls,
            runtime: Runtime::of(profile),
            pauses: Pauses::new(profile),
            joins: Joins::default(),
            children: order,
            first,
            bad: Vec::new(),
            events: Vec::new(),
            items: Vec::new(),
            item_of: vec![u32::MAX; all.len()],
            threads: Vec::new(),
            counters: FxHashMap::default(),
            open: FxHashMap::default(),
            scopes: Vec::new(),
            current: 0,
            origin: 0,
        };
        emitter.bad = emitter.bad_calls();
        for call in 0..all.len() {
            let children = &emitter.children[emitter.first[call] as usize..emitter.first[call + 1] as usize];
            emitter.joins.invocation(calls, call, children);
        }
        emitter
    }

    /// A call of an operation that cannot be used, if there is one.
    pub fn damaged(&self, root: usize) -> Option<usize> {
        Some(self.bad[root] as usize).filter(|bad| *bad < self.calls.calls().len())
    }

    fn bad_calls(&self) -> Vec<u32> {
        let all = self.calls.calls();
        let none = all.len() as u32;
        let unusable = |call: &Call| !call.complete || (call.time.is_none() && !self.profile.wall);
        let mut bad: Vec<u32> =
            all.iter().enumerate().map(|(place, call)| if unusable(call) { place as u32 } else { none }).collect();
        // Calls are met after what makes them.
        for call in (0..all.len()).rev() {
            if let Some(parent) = self.calls.parent(call) {
                bad[parent] = bad[parent].min(bad[call]);
            }
        }
        bad
    }

    fn call(&self, call: usize) -> &'a Call {
        &self.calls.calls()[call]
    }

    fn process(&self, site: SiteId) -> &'a str {
        let tables = self.profile.tables();
        let site = tables.of(site);
        let names = [site.process, site.processor];
        names.into_iter().map(|name| tables.text(name)).find(|text| !text.is_empty()).unwrap_or("process")
    }

    /// The operation that a call of the Global Virtual Main is.
    pub fn operation(&mut self, root: usize, names: &mut TraceNames) -> Operation {
        self.threads.clear();
        self.counters.clear();
        self.open.clear();
        let call = self.call(root);
        let (outside, inside) = (call.outside, call.inside);
        let start = [outside, inside].into_iter().find(|interval| interval.is_some()).map(|interval| interval.begin);
        self.origin = start.unwrap_or(0);
        self.current = self.new_thread();
        match call.caller.filter(|_| !call.collocated && !call.key.is_thread()) {
            Some(site) => {
                let caller = self.enter(self.process(site), names);
                self.scopes.push(Scope { task: caller, joined: Vec::new(), shift: 0 });
                let item = self.item(root, names);
                self.node(Kind::Begin, outside.begin, item);
                self.run(vec![EmitStep::EndOfRoot(root), EmitStep::Call(root)], names);
            }
            None => {
                let task = self.enter(self.process(call.site), names);
                let item = self.item(root, names);
                self.scopes.push(Scope { task, joined: Vec::new(), shift: 0 });
                self.node(Kind::Begin, inside.begin, item);
                self.last().service = names.names.intern(&self.profile.label(call.key, false));
                self.node(Kind::Activity, inside.begin, item);
                self.works(call, true);
                let mut steps = vec![EmitStep::EndOfRoot(root)];
                self.calls_of(root, &mut steps);
                self.run(steps, names);
            }
        }
        let chain = self.profile.tables().chain_text(call.chain);
        // A chain that begins with a skeleton was begun by a stub whose record is lost.
        let headless = call.caller.is_none() && !call.collocated && !call.key.is_thread();
        // Only the first call of a chain has the chain for itself.
        let run: Arc<str> = if call.at == 1 { chain.into() } else { format!("{chain}.{}", call.at).into() };
        Operation {
            scenario: names.names.intern(&self.profile.label(call.key, false)),
            run,
            file: self.profile.reading.files.first().cloned().unwrap_or_else(|| "".into()),
            line: 0,
            start,
            weight: None,
            weight_given: false,
            extent: if headless { Extent::Headless } else { Extent::Whole },
            origins: Origins::Items(std::mem::take(&mut self.items)),
            events: std::mem::take(&mut self.events),
        }
    }

    fn run(&mut self, mut steps: Vec<EmitStep>, names: &mut TraceNames) {
        while let Some(step) = steps.pop() {
            match step {
                EmitStep::Call(call) => self.make(call, &mut steps, names),
                EmitStep::Return(place) => {
                    self.join(|_, _| true);
                    let Intervals { outside, inside } = self.runtime.intervals(self.call(place));
                    let item = self.item(place, names);
                    self.node(Kind::Activity, inside.end, item);
                    self.leave(names);
                    self.node(Kind::Activity, outside.end, item);
                }
                EmitStep::End(place, back) => {
                    self.join(|_, _| true);
                    let call = self.call(place);
                    let item = self.item(place, names);
                    self.node(Kind::End, call.inside.end, item);
                    let ended = self.current;
                    if call.key.is_thread() {
                        self.scopes.pop();
                        if waits(self.calls, place) {
                            self.scope().joined.push((ended, place));
                        }
                    } else {
                        self.leave(names);
                    }
                    self.current = back;
                    let time = self.latest();
                    self.node_at(Kind::Activity, time, item);
                    self.last().cpu = of_caller(&self.runtime, call);
                }
                EmitStep::EndOfRoot(root) => {
                    self.join(|_, _| true);
                    let call = self.call(root);
                    let end = if call.outside.is_some() { call.outside.end } else { call.inside.end };
                    let item = self.item(root, names);
                    self.node(Kind::End, end, item);
                    self.leave(names);
                }
            }
        }
    }

    /// The innermost scope makes a call.
    fn make(&mut self, place: usize, steps: &mut Vec<EmitStep>, names: &mut TraceNames) {
        let call = self.call(place);
        if let Some(function) = self.calls.parent(place)
            && !call.key.is_thread()
            && self.joins.before(self.call(function).key, call.key)
        {
            self.join(|calls, thread| calls.parent(thread) == Some(function));
        }
        let item = self.item(place, names);
        let label = names.names.intern(&self.profile.label(call.key, false));
        if call.collocated {
            self.node(Kind::Activity, call.inside.begin, item);
            self.last().activity = label;
            self.works(call, false);
            self.calls_of(place, steps);
            return;
        }
        if call.detached {
            let thread = self.new_thread();
            let mut shift = self.scope().shift;
            let forked = self.latest();
            if call.key.is_thread() {
                self.node(Kind::Fork(thread), call.inside.begin, item);
            } else {
                self.node_at(Kind::Fork(thread), forked, item);
                shift = self.not_before(forked, call.inside.begin, shift);
            }
            steps.push(EmitStep::End(place, self.current));
            self.current = thread;
            let task =
                if call.key.is_thread() { self.scope().task } else { self.enter(self.process(call.site), names) };
            self.scopes.push(Scope { task, joined: Vec::new(), shift });
            self.node(Kind::Begin, call.inside.begin, item);
            if !call.key.is_thread() {
                self.last().service = label;
            }
            self.node(Kind::Activity, call.inside.begin, item);
            self.works(call, false);
            self.calls_of(place, steps);
            return;
        }
        let intervals = self.runtime.intervals(call);
        self.node(Kind::Activity, intervals.outside.begin, item);
        self.last().cpu = of_caller(&self.runtime, call);
        let shift = self.shift(intervals);
        let task = self.enter(self.process(call.site), names);
        self.scopes.push(Scope { task, joined: Vec::new(), shift });
        self.node(Kind::Activity, intervals.inside.begin, item);
        self.last().service = label;
        self.works(call, false);
        steps.push(EmitStep::Return(place));
        self.calls_of(place, steps);
    }

    fn calls_of(&self, call: usize, steps: &mut Vec<EmitStep>) {
        let range = self.first[call] as usize..self.first[call + 1] as usize;
        steps.extend(self.children[range].iter().rev().map(|child| EmitStep::Call(*child as usize)));
    }

    /// What is added to the times of a function, so that it runs within its call.
    fn shift(&self, Intervals { outside, inside }: Intervals) -> i64 {
        let around = self.scopes.last().map_or(0, |scope| scope.shift);
        if !outside.is_some() || !inside.is_some() {
            return around;
        }
        let outside = [outside.begin, outside.end].map(|time| time.saturating_add(around));
        let fits = inside.begin.saturating_add(around) >= outside[0] && inside.end.saturating_add(around) <= outside[1];
        if fits {
            return around;
        }
        let middle = |begin: i64, end: i64| begin.saturating_add(end.saturating_sub(begin) / 2);
        middle(outside[0], outside[1]).saturating_sub(middle(inside.begin, inside.end))
    }

    /// The same for a function that nobody waits for: it does not run before it was called, at a time of the operation in seconds.
    fn not_before(&self, called: f64, begin: i64, shift: i64) -> i64 {
        if called.is_nan() || begin == i64::MIN {
            return shift;
        }
        let called = ((called * 1e9) as i64).saturating_add(self.origin);
        shift.max(called.saturating_sub(begin))
    }

    /// The innermost scope waits for those of its threads that `which` tells.
    fn join(&mut self, which: impl Fn(&CallTree, usize) -> bool) {
        let calls = self.calls;
        let all = std::mem::take(&mut self.scope().joined);
        let (joined, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, place)| which(calls, *place));
        self.scope().joined = others;
        // The last one first: forks and joins then lie in each other.
        for (thread, place) in joined.into_iter().rev() {
            let time = self.call(place).inside.end;
            let item = self.item_of[place];
            self.node(Kind::Join(thread), time, item);
            let time = self.latest();
            self.node_at(Kind::Activity, time, item);
        }
    }

    /// Says at the last node what a call does itself: the processor time that it spent, with what its process took beside it, and its pauses. Nothing
    /// where times are of the clock on the wall.
    fn works(&mut self, call: &Call, root: bool) {
        let Some(time) = call.time.filter(|_| !self.profile.wall) else { return };
        let beside = self.runtime.of_function(call, root);
        // Work of the process beside the function is time off its thread, but no pause.
        let pause = self.pauses.of(call, self.profile.tables().chain_text(call.chain)).saturating_sub(beside);
        let event = self.last();
        event.cpu = time.saturating_add(beside) as f64 * 1e-9;
        event.pause = if pause > 0 { pause as f64 * 1e-9 } else { f64::NAN };
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the operation is a scope")
    }

    fn last(&mut self) -> &mut Event {
        self.events.last_mut().expect("a node was written")
    }

    fn new_thread(&mut self) -> u32 {
        self.threads.push((0, f64::NAN));
        self.threads.len() as u32
    }

    /// A visit of a process begins; one that is being visited already has another instance.
    fn enter(&mut self, process: &str, names: &mut TraceNames) -> TaskId {
        let name = names.names.intern(process);
        let open = self.open.entry(name).or_default();
        *open += 1;
        names.intern_task_named(Task { name, instance: *open })
    }

    fn leave(&mut self, names: &TraceNames) {
        let scope = self.scopes.pop().expect("a visit is a scope");
        if let Some(open) = self.open.get_mut(&names.task(scope.task).name) {
            *open -= 1;
        }
    }

    /// The item that events of a call come from.
    fn item(&mut self, place: usize, names: &mut TraceNames) -> u32 {
        if self.item_of[place] != u32::MAX {
            return self.item_of[place];
        }
        let call = self.call(place);
        let chain = self.profile.tables().chain_text(call.chain);
        let kind = if call.collocated || call.key.is_thread() { SpanKind::Internal } else { SpanKind::Server };
        self.items.push(SpanItem {
            id: format!("{chain}/{}", call.event).into(),
            service: names.names.intern(self.process(call.site)),
            name: names.names.intern(&self.profile.label(call.key, false)),
            kind,
            ..SpanItem::default()
        });
        self.item_of[place] = self.items.len() as u32 - 1;
        self.item_of[place]
    }

    /// The time of the last event of the thread, on the clock of the operation, in seconds.
    fn latest(&self) -> f64 {
        self.threads[self.current as usize - 1].1
    }

    /// An event of the innermost scope at a time of its clock, in nanoseconds.
    fn node(&mut self, kind: Kind, time: i64, item: u32) {
        let shift = self.scopes.last().map_or(0, |scope| scope.shift);
        let known = time != i64::MIN && time != i64::MAX;
        let time = if known { time.saturating_add(shift).saturating_sub(self.origin) as f64 * 1e-9 } else { f64::NAN };
        self.node_at(kind, time, item);
    }

    fn node_at(&mut self, kind: Kind, time: f64, item: u32) {
        let task = self.scope().task;
        let (index, latest) = &mut self.threads[self.current as usize - 1];
        // Times never go back within a thread; what is not known is not made up. `max` takes the other one for NaN.
        let time = if time.is_nan() { time } else { time.max(*latest) };
        (*index, *latest) = (*index + 1, latest.max(time));
        let counter = self.counters.entry(task).or_default();
        *counter += 1;
        let mut event = Event::new(self.current, *index, kind, task, *counter);
        event.time = time;
        event.origin = item;
        self.events.push(event);
    }
}

/// Seconds of processor time that the process of a caller takes beside its functions; NaN for none.
fn of_caller(runtime: &Runtime<'_>, call: &Call) -> f64 {
    let time = runtime.of_caller(call);
    if time > 0 { time as f64 * 1e-9 } else { f64::NAN }
}
