//! From interaction records to entries (2005 paper, parts C and D), while they come.
//!
//! A *visit* is what a task does for one request: one execution occurrence, or several where the task goes on after its occurrence was
//! explained. A visit is complete when its task has gone on to another, all its requests are explained and all visits that it asked
//! for are complete; then it is added to the entry of its shape (`signatures`), and forgotten.

mod scenarios;
mod visit;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::forest::{End, NONE, Reply, Spent};
use crate::loss_inference::Origin;
use crate::record::Link;
use crate::signatures::{Base, EntryMerge, PENDING, Request, Signatures, Way};
use crate::timing::{Timestamp, Timing};
use dyelog_diagnostic::names::Name;
use dyelog_lqn::submodel::{EntryIndex, Moments, RequestKind, SubModel, Witness};
use dyelog_trace::{TaskId, TraceNames};

use scenarios::Scenarios;
use visit::{Grouping, Inclusion, Parent, Role, Visit};

/// What sums of times may be less than nothing by, seconds, though nothing is wrong with clocks. Ours: clocks tell nanoseconds.
const ROUNDING: f64 = 1e-9;

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct TaskState {
    current: u32,
    /// Whether the first thing that it was seen to do was to send.
    starts: Option<bool>,
    /// When it was last seen to do anything.
    last: Timestamp,
}

/// A request that a task begins to serve.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The number of the kind of message.
    pub kind: u32,
    /// Its name.
    pub label: Name,
    /// When it arrived.
    pub time: Timestamp,
    /// Where it stands.
    pub origin: Origin,
}

/// A visit that began there.
fn at(Origin { file, line }: Origin) -> Visit {
    Visit { line, file, ..Visit::default() }
}

/// Folds what a forest finds into a sub-model.
#[derive(Debug)]
pub struct Aggregation {
    visits: Vec<Visit>,
    free: Vec<u32>,
    tasks: Vec<TaskState>,
    /// When threads of a name were last seen to do anything.
    acted: Vec<Timestamp>,
    signatures: Signatures,
    work: Vec<u32>,
    /// Bases that were answered at least once.
    answered: FxHashSet<(Name, Name)>,
    /// Names of tasks that were asked by others.
    invoked: FxHashSet<Name>,
    scenarios: Scenarios,
    files: Vec<Arc<str>>,
    /// What each message turned out to be, where that is asked for.
    links: Option<Vec<Link>>,
    /// Requests that were not complete when the trace ended.
    unfinished: u64,
}

/// What is left when a trace has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Aggregated {
    /// The sub-model.
    pub submodel: SubModel,
    /// What each message turned out to be, where that was asked for.
    pub links: Vec<Link>,
    /// Requests that were not complete when the trace ended.
    pub unfinished: u64,
    /// Occurrences that had to be taken for alike, whatever they ask for.
    pub alike: u64,
}

impl Aggregation {
    /// Nothing folded yet.
    pub fn new(merge: EntryMerge, files: Vec<Arc<str>>, links: bool) -> Self {
        Self {
            visits: Vec::new(),
            free: Vec::new(),
            tasks: Vec::new(),
            acted: Vec::new(),
            signatures: Signatures::new(merge),
            work: Vec::new(),
            answered: FxHashSet::default(),
            invoked: FxHashSet::default(),
            scenarios: Scenarios::new(),
            files,
            links: links.then(Vec::new),
            unfinished: 0,
        }
    }

    fn known(&mut self, task: TaskId) -> &mut TaskState {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, TaskState { current: NONE, starts: None, last: Timestamp::UNKNOWN });
        }
        &mut self.tasks[task.index()]
    }

    fn visit(&mut self, visit: u32) -> &mut Visit {
        &mut self.visits[visit as usize]
    }

    /// A task does something.
    pub fn acts(&mut self, names: &TraceNames, task: TaskId, time: Timestamp) {
        let name = names.task(task).name.index();
        if self.acted.len() <= name {
            self.acted.resize(name + 1, Timestamp::UNKNOWN);
        }
        self.acted[name] = self.acted[name].later(time);
        let known = self.known(task);
        known.last = known.last.later(time);
    }

    /// How long a request took to a task that now takes it up: what it waited until the task was done with what it did before
    /// is a queue, of which the model has its own. So it is where the task takes it up at the very moment at which another thread
    /// of it did something: they wait for something that they share, if only for their processor.
    pub fn on_way(&mut self, names: &TraceNames, task: TaskId, timing: &Timing) -> Option<f64> {
        let Timing { sent, arrived, took } = *timing;
        let of_all = self.acted.get(names.task(task).name.index()).copied();
        let of_all = of_all.filter(|last| last.since(arrived).is_some_and(|after| after >= 0.0));
        let free = of_all.map_or(self.known(task).last, |last| last.earlier(arrived));
        match (took, free.since(sent)) {
            (Some(took), Some(waited)) if waited > 0.0 && took > 0.0 => Some((took - waited).max(0.0)),
            _ => took,
        }
    }

    /// The visit that an occurrence belongs to which a task opens to send a message; it holds the visit.
    pub fn for_root(&mut self, task: TaskId) -> u32 {
        let known = self.known(task);
        let starts = *known.starts.get_or_insert(true);
        let current = known.current;
        if current == NONE || starts && !self.visits[current as usize].is_customer() {
            // It was a customer before it ever served: this is work of its own.
            return NONE;
        }
        self.visit(current).open += 1;
        current
    }

    /// What a visit has done when it sends something.
    pub fn sends(&mut self, visit: u32, time: Timestamp) -> Spent {
        if visit == NONE {
            return Spent::default();
        }
        let visit = self.visit(visit);
        visit.elapse(time);
        Spent { cpu: visit.cpu, busy: visit.busy, second_phase: visit.is_released() }
    }

    /// A task begins to serve a message of a kind; gives the visit, which its occurrence holds.
    pub fn accepts(&mut self, names: &TraceNames, task: TaskId, request: Accepted) -> u32 {
        self.known(task).starts.get_or_insert(false);
        self.leave(task);
        let Accepted { kind, label, time, origin } = request;
        // Its task holds it, and its occurrence.
        self.begin(names, task, Visit { label, role: Role::Server, open: 2, kind, began: time, ..at(origin) })
    }

    /// The number of the kind of message that a visit serves, and where that message stands.
    pub fn asked_by(&self, visit: u32) -> (u32, Origin) {
        let visit = &self.visits[visit as usize];
        (visit.kind, Origin { file: visit.file, line: visit.line })
    }

    /// Leaves a visit out of the model, its caller, and so on.
    pub fn leave_out(&mut self, visit: u32) {
        if visit != NONE {
            self.visit(visit).inclusion = Inclusion::LeftOut;
        }
    }

    /// A task begins work of its own.
    pub fn begins(&mut self, names: &TraceNames, task: TaskId, label: Name, time: Timestamp, origin: Origin) {
        self.known(task).starts.get_or_insert(true);
        self.complete_cycle(names, task, time);
        self.leave(task);
        let visit = Visit { label, role: Role::Customer, open: 1, timed: true, began: time, ..at(origin) };
        self.begin(names, task, visit);
    }

    /// Puts a visit in a free place, and in its task.
    fn begin(&mut self, names: &TraceNames, task: TaskId, mut visit: Visit) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.visits.push(Visit::default());
            (self.visits.len() - 1) as u32
        });
        let own = &mut self.visits[place as usize];
        let mut requests = std::mem::take(&mut own.requests);
        requests.clear();
        let mut ways = std::mem::take(&mut own.ways);
        ways.clear();
        visit.task = names.task(task).name;
        (visit.customer, visit.since, visit.requests, visit.ways) = (task.0, visit.began, requests, ways);
        *own = visit;
        self.known(task).current = place;
        place
    }

    /// A task is done with what it does.
    pub fn idle(&mut self, task: TaskId, time: Timestamp) {
        let current = self.known(task).current;
        if current == NONE {
            return;
        }
        let visit = self.visit(current);
        if !visit.is_customer() {
            visit.elapse(time);
            visit.timed |= time.is_known();
            self.leave(task);
        }
    }

    /// A task uses its processor.
    pub fn computes(&mut self, task: TaskId, seconds: f64) {
        let current = self.known(task).current;
        if current != NONE {
            let visit = self.visit(current);
            visit.cpu += seconds;
            visit.measured = true;
            visit.note_second(visit.is_released());
        }
    }

    /// A task goes on to something else.
    fn leave(&mut self, task: TaskId) {
        let current = std::mem::replace(&mut self.known(task).current, NONE);
        if current != NONE {
            self.let_go(current);
        }
    }

    /// A visit has one reason less to be kept.
    pub fn let_go(&mut self, visit: u32) {
        let visit_data = self.visit(visit);
        visit_data.open -= 1;
        if visit_data.open == 0 {
            self.work.push(visit);
        }
    }

    /// A visit has one reason more to be kept.
    pub fn hold(&mut self, visit: u32) {
        self.visit(visit).open += 1;
    }

    /// A request was answered, by the last of those that it was passed on to.
    pub fn answered(&mut self, names: &TraceNames, path: &[End], reply: &Reply) {
        let Some((client, servers)) = path.split_first() else { return };
        let Some(first) = servers.first() else { return };
        // All the way round, so that what clocks differ by cancels out.
        let there: Option<f64> = servers.iter().map(|server| server.timing.took).sum();
        let way = there.zip(reply.timing.took).map(|(there, back)| there + back).filter(|way| *way > -ROUNDING);
        if client.visit == NONE {
            let scenario = self.scenario(names, client, first.visit);
            self.scenarios.count(scenario, client.occurrence.task, first.timing.sent, Some(reply.timing.arrived));
            if let (Some(way), true) = (way, first.visit != NONE) {
                self.visit(first.visit).way = Some(way.max(0.0));
            }
        } else {
            let visit = self.visit(client.visit);
            visit.ways.extend(way.map(|way| Way { phase: usize::from(first.second_phase), seconds: way.max(0.0) }));
            // It was blocked since it sent the request, or did something else that is not told.
            visit.since = reply.timing.arrived;
        }
        let mut from = *client;
        for (place, server) in servers.iter().enumerate() {
            let kind = if place == 0 { RequestKind::Synchronous } else { RequestKind::Forward };
            let next = servers.get(place + 1);
            let (left, spent) = next.map_or((reply.timing.sent, reply.spent), |next| (next.timing.sent, next.spent));
            if server.visit != NONE {
                let visit = self.visit(server.visit);
                visit.answered = true;
                visit.timed |= left.is_known();
                visit.first.get_or_insert(spent);
                let key = (visit.task, visit.label);
                self.answered.insert(key);
            }
            // What passes a request on does so in its first phase.
            self.request(names, &from, server, kind);
            from = *server;
            from.second_phase = false;
        }
    }

    /// Whether a message has no reply because the trace ended before: others of its kind were answered. It is left out, then.
    pub fn ends_before(&mut self, from: &End, to: &End) -> bool {
        let child = self.visit(to.visit);
        let key = (child.task, child.label);
        let unfinished = self.answered.contains(&key);
        if unfinished {
            self.unfinished += 1;
            self.leave_out(to.visit);
            self.leave_out(from.visit);
        }
        unfinished
    }

    /// A message was sent that is lost, or the reply to it. Nothing that it is part of tells how the system works.
    pub fn lost(&mut self, names: &TraceNames, from: &End, to: &End) {
        self.leave_out(to.visit);
        self.leave_out(from.visit);
        if from.visit == NONE {
            let scenario = self.scenario(names, from, to.visit);
            self.scenarios.lose(scenario, from.occurrence.task, to.timing.sent);
        }
        self.link(from, to, RequestKind::Asynchronous);
    }

    /// A message was sent and has no reply.
    pub fn unanswered(&mut self, names: &TraceNames, from: &End, to: &End) {
        if from.visit == NONE {
            let scenario = self.scenario(names, from, to.visit);
            self.scenarios.count(scenario, from.occurrence.task, to.timing.sent, None);
        }
        self.request(names, from, to, RequestKind::Asynchronous);
    }

    fn request(&mut self, names: &TraceNames, from: &End, to: &End, kind: RequestKind) {
        if to.visit == NONE {
            return;
        }
        let asked = Request { phase: usize::from(to.second_phase), kind, entry: PENDING };
        self.link(from, to, kind);
        let child = &mut self.visits[to.visit as usize];
        child.asked = asked;
        self.invoked.insert(child.task);
        if from.visit == NONE {
            child.parent = Parent::Customer;
            child.customer = from.occurrence.task.0;
            return;
        }
        let base = child.base();
        if from.visit == to.visit {
            return;
        }
        if self.signatures.is_named(base) {
            let entry = self.signatures.plain(&names.names, base);
            let parent = self.visit(from.visit);
            parent.note_second(to.second_phase);
            parent.requests.push(Request { entry, ..asked });
            return;
        }
        let place = self.visits[from.visit as usize].requests.len() as u32;
        self.visit(to.visit).parent = Parent::Visit { visit: from.visit, place };
        let parent = self.visit(from.visit);
        parent.note_second(to.second_phase);
        parent.requests.push(asked);
        parent.open += 1;
    }

    fn link(&mut self, from: &End, to: &End, kind: RequestKind) {
        if let Some(links) = &mut self.links {
            let cause = if from.visit == NONE { 0 } else { self.visits[from.visit as usize].line };
            links.push(Link { message: to.line, kind, cause });
        }
    }

    /// The scenario of a customer's request.
    fn scenario(&mut self, names: &TraceNames, client: &End, first: u32) -> Name {
        let task = names.task(client.occurrence.task).name;
        let label = if first == NONE { Name::NONE } else { self.visits[first as usize].label };
        self.scenarios.of(names, task, label)
    }

    /// The cycle of a customer that tells where it begins is complete.
    fn complete_cycle(&mut self, names: &TraceNames, task: TaskId, time: Timestamp) {
        let current = self.known(task).current;
        if current == NONE || !self.visits[current as usize].is_customer() {
            return;
        }
        let visit = self.visit(current);
        visit.elapse(time);
        let (name, label, began) = (visit.task, visit.label, visit.began);
        let scenario = self.scenarios.of(names, name, label);
        self.scenarios.count(scenario, task, began, Some(time));
    }

    /// Adds complete visits to their entries.
    pub fn take_complete(&mut self, names: &TraceNames) {
        while let Some(number) = self.work.pop() {
            let mut requests = std::mem::take(&mut self.visits[number as usize].requests);
            let ways = std::mem::take(&mut self.visits[number as usize].ways);
            let parent = self.visits[number as usize].parent;
            match (self.visits[number as usize].inclusion, parent) {
                (Inclusion::Included, _) => {
                    let entry = self.add(names, number, &mut requests, &ways);
                    match parent {
                        Parent::Customer => self.add_customer(names, number, entry),
                        Parent::Visit { visit, place } => {
                            self.visits[visit as usize].requests[place as usize].entry = entry;
                            self.let_go(visit);
                        }
                        Parent::None => {}
                    }
                }
                // What asks for something that is left out is left out, too.
                (Inclusion::LeftOut, Parent::Visit { visit, .. }) => {
                    self.leave_out(visit);
                    self.let_go(visit);
                }
                (Inclusion::LeftOut, _) => {}
            }
            let visit = self.visit(number);
            (visit.role, visit.requests, visit.ways) = (Role::Free, requests, ways);
            self.free.push(number);
        }
    }

    /// Adds a complete visit to its entry.
    fn add(&mut self, names: &TraceNames, number: u32, requests: &mut [Request], ways: &[Way]) -> EntryIndex {
        let visit = &self.visits[number as usize];
        let (line, file, task, label) = (visit.line, visit.file, visit.task, visit.label);
        let (work, is_plain) = (visit.work(), visit.grouping == Grouping::Base);
        let (texts, base) = if visit.is_customer() {
            let scenario = self.scenarios.of(names, task, label);
            (&self.scenarios.names, Base::customer(scenario))
        } else {
            (&names.names, visit.base())
        };
        let entry = self.signatures.add(texts, base, is_plain, requests, &work, ways);
        let files = &self.files;
        self.signatures.witness(entry, || Witness {
            scenario: "messages".into(),
            run: "1".into(),
            thread: 1,
            index: line,
            file: files.get(usize::from(file)).map_or_else(|| "".into(), Arc::clone),
            item: line.to_string().into(),
        });
        entry
    }

    /// Adds what the customer did that asked for a visit, whose entry is known now.
    fn add_customer(&mut self, names: &TraceNames, number: u32, entry: EntryIndex) {
        let visit = &self.visits[number as usize];
        let (label, client, asked, way) = (visit.label, TaskId(visit.customer), visit.asked, visit.way);
        let scenario = self.scenarios.of(names, names.task(client).name, label);
        let way = way.map(|seconds| Way { phase: 0, seconds });
        let requests = &mut [Request { entry, ..asked }];
        self.signatures.add(
            &self.scenarios.names,
            Base::customer(scenario),
            false,
            requests,
            &[None; 2],
            way.as_slice(),
        );
    }

    /// How many visits are not complete.
    pub fn open(&self) -> usize {
        self.visits.len() - self.free.len()
    }

    /// Lets visits go that wait for the visits that asked for them: these become entries of their own, whatever they ask for.
    pub fn prune(&mut self, names: &TraceNames) {
        for number in 0..self.visits.len() as u32 {
            let visit = &self.visits[number as usize];
            let (Parent::Visit { visit: parent, place }, true) = (visit.parent, visit.role != Role::Free) else {
                continue;
            };
            let entry = self.signatures.plain(&names.names, visit.base());
            let visit = self.visit(number);
            (visit.grouping, visit.parent) = (Grouping::Base, Parent::None);
            self.visits[parent as usize].requests[place as usize].entry = entry;
            self.let_go(parent);
        }
    }

    /// All that was folded.
    pub fn finish(mut self, names: &TraceNames) -> Aggregated {
        for task in 0..self.tasks.len() as u32 {
            let current = self.tasks[task as usize].current;
            if current != NONE && self.visits[current as usize].is_customer() {
                self.leave_out(current);
            }
            self.leave(TaskId(task));
        }
        self.take_complete(names);
        self.signatures.flush();
        let mut submodel = std::mem::take(&mut self.signatures.submodel);
        forget_no_ways(&mut submodel);
        self.scenarios.add_to(&mut submodel, names, &self.invoked);
        for number in 0..names.task_count() as u32 {
            let task = names.task(TaskId(number));
            if self.tasks.len() > number as usize && self.tasks[number as usize].starts.is_some() {
                let name = submodel.names.intern(names.names.text(task.name));
                let most = submodel.instances.entry(name).or_default();
                *most = (*most).max(task.instance);
            }
        }
        let links = self.links.unwrap_or_default();
        Aggregated { submodel, links, unfinished: self.unfinished, alike: self.signatures.alike }
    }
}

/// Where every message was received when it was sent, there is one time of each, and nothing was seen of ways.
fn forget_no_ways(submodel: &mut SubModel) {
    let works = submodel.entries().iter().flat_map(|entry| entry.work.values());
    if works.map(|work| work.network.sum.0).any(|sum| sum > 0) {
        return;
    }
    for index in submodel.canonical_order() {
        submodel.entry_mut(index).work.values_mut().for_each(|work| work.network = Moments::default());
    }
}
