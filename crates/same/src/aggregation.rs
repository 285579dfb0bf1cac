//! From interaction records to entries (2005 paper, parts C and D), while they come.
//!
//! A *visit* is what a task does for one request: one execution occurrence, or several where the task goes on after its occurrence was
//! explained. A visit is complete when its task has gone on to another, all its requests are explained and all visits that it asked
//! for are complete; then it is added to the entry of its [shape](crate::signatures), and forgotten.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::forest::{End, NONE, Spent};
use crate::loss_inference::Origin;
use crate::record::Link;
use crate::signatures::{Base, EntryMerge, PhaseWork, Signatures, how};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_lqn::submodel::{Interaction, Moments, RequestKind, ScenarioTotal, SubModel, Undated, Witness};
use dyelog_trace::{TaskId, TraceNames};

/// Asked by a customer, of whom nothing else is known.
const CUSTOMER: u32 = u32::MAX - 1;

const EXPLICIT: u8 = 1;
const RELEASED: u8 = 2;
const ANSWERED: u8 = 4;
const DROPPED: u8 = 8;
const PLAIN: u8 = 16;
const SERVER: u8 = 32;
const USED: u8 = 64;

/// Times from here on tell a date, nanoseconds since 1970: it is in 1973. No recording is as long.
const DATED: i64 = 100_000_000_000_000_000;

/// What sums of times may be less than nothing by, seconds, though nothing is wrong with clocks.
const ROUNDING: f64 = 1e-9;

#[derive(Debug, Default)]
struct Visit {
    /// Task and name of the request.
    task: Name,
    label: Name,
    flags: u8,
    /// What must still happen before it is complete.
    open: u32,
    /// The visit that asked for this one, [`NONE`] or [`CUSTOMER`], and where its requests name it.
    parent: u32,
    place: u32,
    /// The customer, where one asked, and how.
    customer: u32,
    how: u32,
    line: u32,
    file: u16,
    /// The number of the kind of message that asked, or [`NONE`].
    kind: u32,
    began: f64,
    since: f64,
    /// All that it did, and what of it in the first phase, once that is known.
    cpu: f64,
    busy: f64,
    first: Option<Spent>,
    timed: bool,
    measured: bool,
    second: bool,
    requests: Vec<(u32, u32)>,
    /// How long its calls were on their way, there and back, by phase; and how long the customer's call was that asked for it.
    ways: Vec<(u8, f64)>,
    way: f64,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct Known {
    current: u32,
    /// Whether the first thing that it was seen to do was to send.
    starts: Option<bool>,
    /// When it was last seen to do anything.
    last: f64,
}

/// What a scenario's customers were seen to do.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    last_end: f64,
}

/// Folds what a forest finds into a sub-model.
#[derive(Debug)]
pub struct Aggregation {
    visits: Vec<Visit>,
    free: Vec<u32>,
    tasks: Vec<Known>,
    /// When threads of a name were last seen to do anything.
    acted: Vec<f64>,
    signatures: Signatures,
    work: Vec<u32>,
    /// Bases that were answered at least once.
    answered: FxHashSet<(Name, Name)>,
    /// Names of tasks that were asked by others.
    invoked: FxHashSet<Name>,
    /// By customer's task name and the request's name.
    scenarios: FxHashMap<(Name, Name), Name>,
    totals: FxHashMap<Name, ScenarioTotal>,
    clients: FxHashMap<(Name, TaskId), Client>,
    /// Customers by scenario.
    owners: FxHashMap<Name, Name>,
    names: Names,
    files: Vec<Arc<str>>,
    /// What each message turned out to be, where that is asked for.
    links: Option<Vec<Link>>,
    /// Requests that were not complete when the trace ended.
    unfinished: u64,
}

/// What is left when a trace has ended.
#[derive(Debug)]
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
            scenarios: FxHashMap::default(),
            totals: FxHashMap::default(),
            clients: FxHashMap::default(),
            owners: FxHashMap::default(),
            names: Names::new(),
            files,
            links: links.then(Vec::new),
            unfinished: 0,
        }
    }

    fn known(&mut self, task: TaskId) -> &mut Known {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, Known { current: NONE, starts: None, last: f64::NAN });
        }
        &mut self.tasks[task.index()]
    }

    fn visit(&mut self, visit: u32) -> &mut Visit {
        &mut self.visits[visit as usize]
    }

    /// A task does something.
    pub fn acts(&mut self, names: &TraceNames, task: TaskId, time: f64) {
        let name = names.task(task).name.index();
        if self.acted.len() <= name {
            self.acted.resize(name + 1, f64::NAN);
        }
        let later = |last: f64| if last.is_nan() || time > last { time } else { last };
        self.acted[name] = later(self.acted[name]);
        let known = self.known(task);
        known.last = later(known.last);
    }

    /// How long a request was on its way to a task that now takes it up: what it waited until the task was done with what it did before
    /// is a queue, of which the model has its own. So it is where the task takes it up at the very moment at which another thread
    /// of it did something: they wait for something that they share, if only for their processor.
    pub fn on_way(&mut self, names: &TraceNames, task: TaskId, (sent, time, took): (f64, f64, f64)) -> f64 {
        let of_all = self.acted.get(names.task(task).name.index()).copied();
        let own = self.known(task).last;
        let waited = of_all.filter(|last| *last >= time).map_or(own, |last| last.min(time)) - sent;
        if waited > 0.0 && took > 0.0 { (took - waited).max(0.0) } else { took }
    }

    /// The visit that an occurrence belongs to which a task opens to send a message; it holds the visit.
    pub fn for_root(&mut self, task: TaskId) -> u32 {
        let known = self.known(task);
        let starts = *known.starts.get_or_insert(true);
        let current = known.current;
        if current == NONE || starts && self.visits[current as usize].flags & EXPLICIT == 0 {
            // It was a customer before it ever served: this is work of its own.
            return NONE;
        }
        self.visit(current).open += 1;
        current
    }

    /// What a visit has done when it sends something.
    pub fn sends(&mut self, visit: u32, time: f64) -> Spent {
        if visit == NONE {
            return Spent::default();
        }
        let visit = self.visit(visit);
        visit.elapse(time);
        Spent { cpu: visit.cpu, busy: visit.busy, second_phase: visit.flags & RELEASED != 0 }
    }

    /// A task begins to serve a message of a kind; gives the visit, which its occurrence holds.
    pub fn accepts(
        &mut self,
        names: &TraceNames,
        task: TaskId,
        (kind, label): (u32, Name),
        time: f64,
        origin: Origin,
    ) -> u32 {
        self.known(task).starts.get_or_insert(false);
        self.leave(task);
        let visit = self.begin(names, task, label, (time, origin), (SERVER, 2));
        self.visit(visit).kind = kind;
        visit
    }

    /// The number of the kind of message that a visit serves, and where that message stands.
    pub fn asked_by(&self, visit: u32) -> (u32, Origin) {
        let visit = &self.visits[visit as usize];
        (visit.kind, (visit.file, visit.line))
    }

    /// Leaves a visit out of the model, and whoever asked for it, and so on.
    pub fn leave_out(&mut self, visit: u32) {
        if visit != NONE {
            self.visit(visit).flags |= DROPPED;
        }
    }

    /// A task begins work that nobody asked for.
    pub fn begins(&mut self, names: &TraceNames, task: TaskId, label: Name, time: f64, origin: Origin) {
        self.known(task).starts.get_or_insert(true);
        self.complete_cycle(names, task, time);
        self.leave(task);
        self.begin(names, task, label, (time, origin), (EXPLICIT, 1));
    }

    fn begin(
        &mut self,
        names: &TraceNames,
        task: TaskId,
        label: Name,
        (time, (file, line)): (f64, Origin),
        (flags, open): (u8, u32),
    ) -> u32 {
        let visit = self.free.pop().unwrap_or_else(|| {
            self.visits.push(Visit::default());
            (self.visits.len() - 1) as u32
        });
        let own = &mut self.visits[visit as usize];
        let mut requests = std::mem::take(&mut own.requests);
        requests.clear();
        let mut ways = std::mem::take(&mut own.ways);
        ways.clear();
        *own = Visit {
            task: names.task(task).name,
            label,
            flags: flags | USED,
            open,
            parent: NONE,
            customer: task.0,
            file,
            line,
            kind: NONE,
            began: time,
            since: time,
            timed: flags & EXPLICIT != 0,
            requests,
            ways,
            way: f64::NAN,
            ..Visit::default()
        };
        self.known(task).current = visit;
        visit
    }

    /// A task is done with what it does.
    pub fn idle(&mut self, task: TaskId, time: f64) {
        let current = self.known(task).current;
        if current == NONE {
            return;
        }
        let visit = self.visit(current);
        if visit.flags & EXPLICIT == 0 {
            visit.elapse(time);
            visit.timed |= !time.is_nan();
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
            visit.second |= visit.flags & RELEASED != 0;
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
    pub fn answered(&mut self, names: &TraceNames, path: &[End], (sent, spent): (f64, Spent), (end, took): (f64, f64)) {
        let Some((client, servers)) = path.split_first() else { return };
        let Some(first) = servers.first() else { return };
        // All the way round, so that what clocks differ by cancels out.
        let way = Some(servers.iter().map(|server| server.took).sum::<f64>() + took).filter(|way| *way > -ROUNDING);
        if client.visit == NONE {
            let scenario = self.scenario(names, client, first.visit);
            self.operation(scenario, client.occurrence.task, first.sent, Some(end));
            if let (Some(way), true) = (way, first.visit != NONE) {
                self.visit(first.visit).way = way.max(0.0);
            }
        } else {
            let visit = self.visit(client.visit);
            visit.ways.extend(way.map(|way| (u8::from(first.second_phase), way.max(0.0))));
            // It was blocked since it sent the request, or did something else that is not told.
            visit.since = end;
        }
        let mut from = *client;
        for (place, server) in servers.iter().enumerate() {
            let kind = if place == 0 { RequestKind::Synchronous } else { RequestKind::Forward };
            let (left, spent) = servers.get(place + 1).map_or((sent, spent), |next| (next.sent, next.spent));
            if server.visit != NONE {
                let visit = self.visit(server.visit);
                visit.flags |= ANSWERED;
                visit.timed |= !left.is_nan();
                if visit.flags & RELEASED == 0 {
                    visit.flags |= RELEASED;
                    visit.first = Some(spent);
                }
                let key = (visit.task, visit.label);
                self.answered.insert(key);
            }
            // What passes a request on does so in its first phase.
            self.request(names, &from, server, kind);
            from = *server;
            from.second_phase = false;
        }
    }

    /// Whether nobody replies to a message because the trace ended before: its like were answered. It is left out, then.
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
            // How long the customer thinks after it is not known.
            let scenario = self.scenario(names, from, to.visit);
            if let Some(client) = self.clients.get_mut(&(scenario, from.occurrence.task))
                && client.last_end <= to.sent
            {
                client.last_end = f64::NAN;
            }
        }
        self.link(from, to, RequestKind::Asynchronous);
    }

    /// A message was sent and nobody replies.
    pub fn unanswered(&mut self, names: &TraceNames, from: &End, to: &End) {
        if from.visit == NONE {
            let scenario = self.scenario(names, from, to.visit);
            self.operation(scenario, from.occurrence.task, to.sent, None);
        }
        self.request(names, from, to, RequestKind::Asynchronous);
    }

    fn request(&mut self, names: &TraceNames, from: &End, to: &End, kind: RequestKind) {
        if to.visit == NONE {
            return;
        }
        let how = how(usize::from(to.second_phase), kind);
        self.link(from, to, kind);
        let child = &mut self.visits[to.visit as usize];
        child.how = how;
        self.invoked.insert(child.task);
        if from.visit == NONE {
            child.parent = CUSTOMER;
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
            parent.second |= to.second_phase;
            parent.requests.push((how, entry.0));
            return;
        }
        let place = self.visits[from.visit as usize].requests.len() as u32;
        let child = self.visit(to.visit);
        (child.parent, child.place) = (from.visit, place);
        let parent = self.visit(from.visit);
        parent.second |= to.second_phase;
        parent.requests.push((how, NONE));
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
        self.scenario_of(names, task, label)
    }

    fn scenario_of(&mut self, names: &TraceNames, task: Name, label: Name) -> Name {
        if let Some(&scenario) = self.scenarios.get(&(task, label)) {
            return scenario;
        }
        let (task_text, label_text) = (names.names.text(task), names.names.text(label));
        let scenario = if label_text.is_empty() || label_text == task_text {
            self.names.intern(task_text)
        } else {
            self.names.intern(&format!("{task_text} {label_text}"))
        };
        self.scenarios.insert((task, label), scenario);
        self.owners.insert(scenario, task);
        scenario
    }

    /// Counts an operation of a scenario.
    fn operation(&mut self, scenario: Name, client: TaskId, start: f64, end: Option<f64>) {
        let total = self.totals.entry(scenario).or_default();
        total.operations += 1;
        if let Some(end) = end
            && end >= start
        {
            total.response.add(end - start);
        }
        let known = self.clients.entry((scenario, client)).or_insert_with(|| {
            total.clients += 1;
            Client { last_end: f64::NAN }
        });
        if start.is_nan() {
            return;
        }
        if start >= known.last_end {
            total.think.add(start - known.last_end);
        }
        // What turns out to be asynchronous does so late.
        known.last_end = known.last_end.max(end.unwrap_or(start));
        let nanoseconds = (start * 1e9) as i64;
        total.first_start = Some(total.first_start.map_or(nanoseconds, |first| first.min(nanoseconds)));
        total.last_start = Some(total.last_start.map_or(nanoseconds, |last| last.max(nanoseconds)));
        total.starts.add(nanoseconds);
        let last = (known.last_end * 1e9) as i64;
        total.last_end = Some(total.last_end.map_or(last, |before| before.max(last)));
    }

    /// The cycle of a customer that tells where it begins is complete.
    fn complete_cycle(&mut self, names: &TraceNames, task: TaskId, time: f64) {
        let current = self.known(task).current;
        if current == NONE || self.visits[current as usize].flags & EXPLICIT == 0 {
            return;
        }
        let visit = self.visit(current);
        visit.elapse(time);
        let (name, label, began) = (visit.task, visit.label, visit.began);
        let scenario = self.scenario_of(names, name, label);
        self.operation(scenario, task, began, Some(time));
    }

    /// Adds complete visits to their entries.
    pub fn settle(&mut self, names: &TraceNames) {
        while let Some(number) = self.work.pop() {
            let mut requests = std::mem::take(&mut self.visits[number as usize].requests);
            let ways = std::mem::take(&mut self.visits[number as usize].ways);
            let visit = &self.visits[number as usize];
            let (parent, place, how_asked, flags) = (visit.parent, visit.place, visit.how, visit.flags);
            if flags & DROPPED == 0 {
                let work = visit.work();
                let (line, file) = (visit.line, visit.file);
                let base = if flags & EXPLICIT != 0 {
                    let (task, label) = (visit.task, visit.label);
                    Base {
                        task: self.scenario_of(names, task, label),
                        label: Name::NONE,
                        interaction: Interaction::Customer,
                    }
                } else {
                    visit.base()
                };
                let texts = if flags & EXPLICIT != 0 { &self.names } else { &names.names };
                let entry = self.signatures.add(texts, base, flags & PLAIN != 0, &mut requests, &work, &ways);
                let files = &self.files;
                self.signatures.witness(entry, || Witness {
                    scenario: "messages".into(),
                    run: "1".into(),
                    thread: 1,
                    index: line,
                    file: files.get(usize::from(file)).map_or_else(|| "".into(), Arc::clone),
                    item: line.to_string().into(),
                });
                if parent == CUSTOMER {
                    let visit = &self.visits[number as usize];
                    let (label, client) = (visit.label, TaskId(visit.customer));
                    let way = [(0, visit.way)];
                    let ways = if visit.way.is_nan() { &[] } else { &way[..] };
                    let scenario = self.scenario_of(names, names.task(client).name, label);
                    let base = Base { task: scenario, label: Name::NONE, interaction: Interaction::Customer };
                    self.signatures.add(&self.names, base, false, &mut [(how_asked, entry.0)], &[None; 2], ways);
                } else if parent != NONE {
                    self.visits[parent as usize].requests[place as usize].1 = entry.0;
                    self.let_go(parent);
                }
            } else if parent != NONE && parent != CUSTOMER {
                // Who asks for what is left out is left out, too.
                self.visits[parent as usize].flags |= DROPPED;
                self.let_go(parent);
            }
            let visit = self.visit(number);
            visit.flags = 0;
            visit.requests = requests;
            visit.ways = ways;
            self.free.push(number);
        }
    }

    /// How many visits are not complete.
    pub fn open(&self) -> usize {
        self.visits.len() - self.free.len()
    }

    /// Lets visits go that wait for others by whom they were asked: these become entries of their own, whatever they ask for.
    pub fn prune(&mut self, names: &TraceNames) {
        for number in 0..self.visits.len() as u32 {
            let Visit { flags, parent, place, .. } = self.visits[number as usize];
            if flags & USED == 0 || parent == NONE || parent == CUSTOMER {
                continue;
            }
            let base = self.visits[number as usize].base();
            let entry = self.signatures.plain(&names.names, base);
            let visit = self.visit(number);
            visit.flags |= PLAIN;
            visit.parent = NONE;
            self.visits[parent as usize].requests[place as usize].1 = entry.0;
            self.let_go(parent);
        }
    }

    /// All that was folded.
    pub fn finish(mut self, names: &TraceNames) -> Aggregated {
        for task in 0..self.tasks.len() as u32 {
            let current = self.tasks[task as usize].current;
            if current != NONE && self.visits[current as usize].flags & EXPLICIT != 0 {
                self.visit(current).flags |= DROPPED;
            }
            self.leave(TaskId(task));
        }
        self.settle(names);
        self.signatures.flush();
        let mut submodel = std::mem::take(&mut self.signatures.submodel);
        forget_no_ways(&mut submodel);
        let mut scenarios: Vec<(Name, ScenarioTotal)> = self.totals.drain().collect();
        scenarios.sort_by(|left, right| self.names.text(left.0).cmp(self.names.text(right.0)));
        for (scenario, mut total) in scenarios {
            total.undated = undated(&total);
            let name = submodel.names.intern(self.names.text(scenario));
            submodel.scenarios.entry(name).or_default().merge(&total);
            if let Some(owner) = self.owners.get(&scenario).filter(|owner| self.invoked.contains(owner)) {
                crate::spontaneous::give(&mut submodel, self.names.text(scenario), names.names.text(*owner));
            }
        }
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

/// What of a trace's scenario is by a clock that tells no date.
fn undated(total: &ScenarioTotal) -> Undated {
    match (total.first_start, total.last_start) {
        (Some(first), Some(last)) if last < DATED => {
            let operations = total.starts.cells().iter().map(|cell| cell.operations).sum();
            Undated { traces: 1, operations, nanoseconds: last.abs_diff(first) }
        }
        _ => Undated::default(),
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

impl Visit {
    fn base(&self) -> Base {
        let interaction = if self.flags & ANSWERED != 0 { Interaction::Rendezvous } else { Interaction::Asynchronous };
        Base { task: self.task, label: self.label, interaction }
    }

    /// The task was not blocked until now.
    fn elapse(&mut self, time: f64) {
        if time > self.since {
            self.busy += time - self.since;
        }
        if !time.is_nan() {
            self.since = time;
        }
    }

    fn work(&self) -> [Option<PhaseWork>; 2] {
        let first = self.first.unwrap_or(Spent { cpu: self.cpu, busy: self.busy, second_phase: false });
        let work = |cpu, busy| PhaseWork {
            cpu: if self.measured { cpu } else { f64::NAN },
            busy: if self.timed { busy } else { f64::NAN },
        };
        let (cpu, busy) = (self.cpu - first.cpu, self.busy - first.busy);
        let second = self.second || cpu > 0.0 || busy > 0.0;
        [Some(work(first.cpu, first.busy)), second.then(|| work(cpu, busy))]
    }
}
