//! The state machine that turns the events of a chain into calls (2003 §3.1, Figure 4).
//!
//! With 1 for the stub start, 2 for the skeleton start, 3 for the skeleton end and 4 for the stub end: 1 is followed by 2, or by 4 if the
//! call is one-way; 2 by the 1 of a child or by its own 3; 3 by its own 4, or by the end of a one-way chain; 4 by the 1 of a sibling, by
//! the 3 of its parent, or by the end. A fused start is followed by a child or by its own end. Anything else is abnormal: it is named,
//! and the machine goes on with the next record. To lose as little as can be, it first closes calls that lost their end:
//! as many as lie within the call that the record belongs to.
//!
//! The papers number the probes differently. In the numbers above, what a function spent itself is (2002 Eq. 1, 2003 §3.2)
//! `begin of 3 − end of 2 − Σ over children (end of 4 − begin of 1)`; Eq. 2 of 2002, on threads, is printed with the sign turned round.

use crate::abnormal::{Counts, Kind, Spot};
use crate::calls::{Call, CallTree};
use crate::context::{ContextTree, Key, NONE, NOWHERE};
use crate::groups::GroupTable;
use crate::latency::{Latency, NO_TIME, Queue, Statistics};
use crate::record::{ChainId, Name, Probe, Reading, Record, SiteId, Tables};
use rustc_hash::FxHashMap;

/// How many calls outwards a record that does not fit is tried.
const REACH: usize = 256;

/// Which clock times are taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Processor time, if the first records have it, else the clock on the wall.
    #[default]
    Auto,
    /// Processor time.
    Cpu,
    /// The clock on the wall: waiting counts as well.
    Wall,
}

/// How a chain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing of it was read yet.
    New,
    /// With a call of the Global Virtual Main.
    Root,
    /// With the skeleton of a one-way call.
    OneWay,
    /// With the skeleton of a call whose stub is in another chain.
    Remote,
    /// With a thread.
    Thread,
}

/// Where a chain hangs in another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    context: u32,
    call: u32,
    site: SiteId,
    waiting: u32,
    spot: Spot,
    role: Role,
    begun: bool,
    /// Whether its chain must be there; that of a call that was given up need not.
    required: bool,
    /// The kind of the call around it, for the printed latency: false under the skeleton of a one-way call.
    synchronous: bool,
    outside: Reading,
}

/// A chain while it is read.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) role: Role,
    pub(crate) id: ChainId,
    /// The number that comes next; 0 before the first.
    pub(crate) next: u64,
    pub(crate) link: u32,
    pub(crate) stack: Vec<Frame>,
}

impl Chain {
    pub(crate) fn new(id: ChainId) -> Self {
        Self { role: Role::New, id, next: 0, link: NONE, stack: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// After 1.
    Called,
    /// After 2, or a fused start: within the function.
    Running,
    /// After 3.
    Returned,
}

/// A call that is open.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the records of the call")]
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    site: SiteId,
    /// The site of its stub start, and the number of that record, or of the start of the thread, in the chain of the caller.
    caller: Option<SiteId>,
    at: u32,
    context: u32,
    call: u32,
    waiting: u32,
    state: State,
    oneway: bool,
    fused: bool,
    thread: bool,
    /// Whether there was a stub start.
    stub: bool,
    /// Whether its own time cannot be told any more.
    lossy: bool,
    spot: Spot,
    /// The clock at the beginning of the stub start, and at the end of the last probe before the function ran.
    called: i64,
    started: i64,
    children: i64,
    time: i64,
    /// The wall clock where its latency begins.
    from: i64,
    outside: Reading,
    inside: Reading,
    /// Probes: the first one of the stub; its own in the skeleton; all beneath; of those beneath the ones in stubs.
    first: i64,
    own: i64,
    beneath: i64,
    stubs: i64,
}

/// What is known of a site, looked up once.
#[derive(Clone, Copy, Debug)]
struct SiteInfo {
    function: u32,
    plain: u32,
    object: Name,
    group: u16,
}

/// The machine and what it makes of all chains.
pub(crate) struct Machine {
    pub(crate) tables: Tables,
    pub(crate) groups: GroupTable,
    pub(crate) contexts: ContextTree,
    pub(crate) statistics: Vec<Statistics>,
    pub(crate) counts: Counts,
    pub(crate) waiting: Queue,
    pub(crate) calls: Option<CallTree>,
    keep_calls: usize,
    pub(crate) links: Vec<Link>,
    /// Chains that were linked while others were read, for the driver to go on with.
    pub(crate) linked: Vec<(ChainId, u32, Record)>,
    /// Roots: calls and threads of the Global Virtual Main.
    pub(crate) operations: u64,
    pub(crate) cancelled: u64,
    /// Interface, function, object of each function; the first is the Global Virtual Main.
    pub(crate) functions: Vec<[Name; 3]>,
    numbers: FxHashMap<[Name; 3], u32>,
    plain: FxHashMap<[Name; 2], u32>,
    sites: Vec<SiteInfo>,
    pub(crate) latency: Latency,
    pub(crate) wall: bool,
}

impl Machine {
    pub(crate) fn new(groups: GroupTable, latency: Latency, keep_calls: usize) -> Self {
        Self {
            tables: Tables::new(),
            groups,
            contexts: ContextTree::default(),
            statistics: vec![Statistics::default(); 2],
            counts: Counts::default(),
            waiting: Queue::default(),
            calls: (keep_calls > 0).then(CallTree::default),
            keep_calls,
            links: Vec::new(),
            linked: Vec::new(),
            operations: 0,
            cancelled: 0,
            functions: vec![[Name(0); 3]],
            numbers: FxHashMap::default(),
            plain: FxHashMap::default(),
            sites: Vec::new(),
            latency,
            wall: false,
        }
    }

    fn clock(&self, record: &Record) -> Reading {
        if self.wall { record.wall } else { record.cpu }
    }

    /// Looks up the sites that were met since.
    pub(crate) fn learn_sites(&mut self) {
        for number in self.sites.len()..self.tables.sites().len() {
            let site = self.tables.sites()[number];
            let plain = self.plain.len() as u32;
            let plain = *self.plain.entry([site.interface, site.function]).or_insert(plain);
            let next = self.functions.len() as u32;
            let names = [site.interface, site.function, site.object];
            // Threads have no function; their sites never stand for one.
            let function = if site.function.0 == 0 { 0 } else { *self.numbers.entry(names).or_insert(next) };
            if function == next {
                self.functions.push(names);
                self.statistics.resize(self.functions.len() * 2, Statistics::default());
            }
            let group = self.groups.of(site.processor, &self.tables);
            self.sites.push(SiteInfo { function, plain, object: site.object, group });
        }
    }

    fn site(&self, site: SiteId) -> SiteInfo {
        self.sites[site.0 as usize]
    }

    /// Whether two sites are of one function. A stub that does not know the object fits any.
    fn same(&self, one: SiteId, other: SiteId) -> bool {
        let (one, other) = (self.site(one), self.site(other));
        one.function == other.function || one.plain == other.plain && (one.object.0 == 0 || other.object.0 == 0)
    }

    /// Of two sites of one function, that which knows the object; else the second.
    fn better(&self, stub: SiteId, skeleton: SiteId) -> u32 {
        if self.site(skeleton).object.0 == 0 { self.site(stub).function } else { self.site(skeleton).function }
    }

    /// Says that events are missing before the next one.
    pub(crate) fn gap(&mut self, chain: &mut Chain, missing: u64, record: &Record) {
        self.counts.add(Kind::Lost, missing, Spot::of(record));
        if let Some(top) = chain.stack.last_mut() {
            top.lossy = true;
        }
    }

    /// Takes the next record of a chain.
    pub(crate) fn step(&mut self, chain: &mut Chain, record: &Record) {
        for reading in [record.wall, record.cpu] {
            if reading.end < reading.begin {
                self.counts.one(Kind::ClockBackwards, Spot::of(record));
            }
        }
        match record.probe {
            Probe::StubStart => self.stub_start(chain, record),
            Probe::SkelStart => self.skel_start(chain, record),
            Probe::SkelEnd => self.skel_end(chain, record),
            Probe::StubEnd => self.stub_end(chain, record),
            Probe::ThreadStart => self.thread_start(chain, record),
            Probe::ThreadEnd => self.thread_end(chain, record),
        }
        if chain.role == Role::Thread && record.probe != Probe::ThreadStart {
            self.branch_probe(chain, record);
        }
    }

    fn unexpected(&mut self, record: &Record) {
        self.counts.one(Kind::unexpected(record.probe), Spot::of(record));
    }

    fn stub_start(&mut self, chain: &mut Chain, record: &Record) {
        let fits = chain.stack.last().map_or(chain.role == Role::Root, |top| top.state == State::Running);
        if !fits {
            self.unexpected(record);
            self.back_into_a_function(chain);
        }
        let clock = self.clock(record);
        let mut frame = Frame::new(record);
        frame.stub = true;
        frame.caller = Some(record.site);
        frame.oneway = record.is(Record::ONEWAY);
        frame.fused = record.is(Record::COLLOCATED);
        frame.called = clock.begin;
        frame.from = record.wall.end;
        frame.first = record.wall.duration();
        frame.outside.begin = record.wall.end;
        if chain.stack.is_empty() && chain.role == Role::Root {
            self.operations += 1;
        }
        if frame.fused {
            let info = self.site(record.site);
            frame.inside.begin = record.wall.end;
            frame.started = clock.end;
            self.enter(chain, &mut frame, info.function, info.group);
        } else if frame.oneway {
            self.link(chain, record, Role::OneWay, record.child);
        }
        chain.stack.push(frame);
    }

    fn skel_start(&mut self, chain: &mut Chain, record: &Record) {
        let clock = self.clock(record);
        let info = self.site(record.site);
        if let Some(top) = chain.stack.last()
            && top.state == State::Called
            && !top.oneway
            && self.same(top.site, record.site)
        {
            let mut frame = chain.stack.pop().expect("it was just looked at");
            let function = self.better(frame.site, record.site);
            frame.started = clock.end;
            frame.own = record.wall.duration();
            frame.inside.begin = record.wall.end;
            frame.site = record.site;
            self.enter(chain, &mut frame, function, info.group);
            chain.stack.push(frame);
            return;
        }
        let begins =
            chain.stack.is_empty() && matches!(chain.role, Role::OneWay | Role::Remote) && self.begin_link(chain);
        let mut function = info.function;
        if begins {
            let stub = self.links[chain.link as usize].site;
            function = self.better(stub, record.site);
            if !self.same(stub, record.site) {
                function = info.function;
                self.counts.one(Kind::Mismatched, Spot::of(record));
            }
        } else {
            self.unexpected(record);
            self.back_into_a_function(chain);
        }
        let mut frame = Frame::new(record);
        frame.state = State::Running;
        frame.started = clock.end;
        frame.from = record.wall.end;
        frame.inside.begin = record.wall.end;
        frame.own = record.wall.duration();
        if begins {
            let link = &self.links[chain.link as usize];
            (frame.caller, frame.at) = (Some(link.site), link.spot.event);
        }
        self.enter(chain, &mut frame, function, info.group);
        if begins {
            self.name_remote(chain, &frame);
        }
        chain.stack.push(frame);
    }

    /// Marks that the chain has its skeleton start; false if it had it before.
    fn begin_link(&mut self, chain: &Chain) -> bool {
        !std::mem::replace(&mut self.links[chain.link as usize].begun, true)
    }

    fn skel_end(&mut self, chain: &mut Chain, record: &Record) {
        let fits = |machine: &Self, frame: &Frame, state: State| {
            frame.state == state
                && !frame.fused
                && !frame.oneway
                && !frame.thread
                && machine.same(frame.site, record.site)
        };
        if !chain.stack.last().is_some_and(|top| fits(self, top, State::Running)) {
            self.unexpected(record);
            let found = self.outwards(chain, true, |machine, frame| {
                fits(machine, frame, State::Running) || fits(machine, frame, State::Called)
            });
            if !found {
                return;
            }
        }
        let Some(mut frame) = chain.stack.pop() else { return };
        if frame.state == State::Called {
            let info = self.site(record.site);
            let function = self.better(frame.site, record.site);
            frame.lossy = true;
            self.enter(chain, &mut frame, function, info.group);
        }
        frame.time = self.spent(&frame, record);
        frame.own = sum([frame.own, record.wall.duration()]);
        frame.inside.end = record.wall.begin;
        frame.state = State::Returned;
        if !frame.stub && chain.stack.is_empty() && matches!(chain.role, Role::OneWay | Role::Remote) {
            self.end_of_chain(chain, frame, record);
        } else {
            chain.stack.push(frame);
        }
    }

    /// What a function spent itself, now that it ends; [`NO_TIME`] where it cannot be told.
    fn spent(&self, frame: &Frame, end: &Record) -> i64 {
        let clock = self.clock(end);
        if frame.lossy || frame.started == NO_TIME || !clock.is_some() {
            return NO_TIME;
        }
        clock.begin.checked_sub(frame.started).and_then(|time| time.checked_sub(frame.children)).unwrap_or(NO_TIME)
    }

    fn stub_end(&mut self, chain: &mut Chain, record: &Record) {
        let fused = record.is(Record::COLLOCATED);
        let fits = |machine: &Self, frame: &Frame| {
            let state = match frame.state {
                State::Running => fused && frame.fused,
                State::Called | State::Returned => !fused,
            };
            state && frame.stub && machine.same(frame.site, record.site)
        };
        let cancelled = record.is(Record::CANCELLED);
        self.cancelled += u64::from(cancelled);
        if !chain.stack.last().is_some_and(|top| fits(self, top)) {
            if !cancelled {
                self.unexpected(record);
            }
            let found = self.outwards(chain, !cancelled, |machine, frame| {
                !frame.thread && frame.stub && frame.fused == fused && machine.same(frame.site, record.site)
            });
            if !found {
                return;
            }
        }
        let Some(mut frame) = chain.stack.pop() else { return };
        let complete = match frame.state {
            State::Called => frame.oneway || self.elsewhere(chain, &mut frame, cancelled, record),
            State::Running if frame.fused => {
                frame.time = self.spent(&frame, record);
                frame.inside.end = record.wall.begin;
                true
            }
            State::Running => false,
            State::Returned => true,
        };
        self.leave(chain, frame, Some(record), complete);
    }

    /// A synchronous call from 1 to 4: its function ran in a chain of its own, called after the stub start; false where it rather is
    /// among the records that are missing.
    fn elsewhere(&mut self, chain: &Chain, frame: &mut Frame, cancelled: bool, record: &Record) -> bool {
        if frame.lossy {
            self.unexpected(record);
            let info = self.site(frame.site);
            self.enter(chain, frame, info.function, NOWHERE);
            return false;
        }
        if frame.waiting == NONE {
            frame.waiting = self.waiting.open();
        }
        let name = format!("{}.{}", self.tables.chain_text(chain.id), frame.spot.event);
        let child = self.tables.chain(&name);
        let (context, call) = self.inside_of(chain);
        let site = frame.site;
        self.links.push(Link {
            context,
            call,
            site,
            waiting: frame.waiting,
            spot: frame.spot,
            role: Role::Remote,
            begun: false,
            required: !cancelled,
            synchronous: true,
            outside: Reading { begin: frame.from, end: record.wall.begin },
        });
        self.linked.push((child, self.links.len() as u32 - 1, *record));
        true
    }

    fn thread_start(&mut self, chain: &mut Chain, record: &Record) {
        let fits = chain.stack.last().map_or(chain.role == Role::Root, |top| top.state == State::Running);
        if !fits {
            self.unexpected(record);
            self.back_into_a_function(chain);
        }
        if chain.stack.is_empty() && chain.role == Role::Root {
            self.operations += 1;
        }
        self.link(chain, record, Role::Thread, record.child);
    }

    fn thread_end(&mut self, chain: &mut Chain, record: &Record) {
        let cancelled = record.is(Record::CANCELLED);
        self.cancelled += u64::from(cancelled);
        let open = chain.stack.first().is_some_and(|frame| frame.thread);
        if !open || chain.stack.len() > 1 && !cancelled {
            self.unexpected(record);
        }
        if !open {
            return;
        }
        while chain.stack.len() > 1 {
            self.close_open(chain, !cancelled);
        }
        let Some(mut frame) = chain.stack.pop() else { return };
        frame.time = self.spent(&frame, record);
        frame.inside.end = record.wall.begin;
        self.leave(chain, frame, Some(record), true);
    }

    /// Notes that another chain hangs here.
    fn link(&mut self, chain: &mut Chain, record: &Record, role: Role, child: ChainId) {
        let (context, call) = self.inside_of(chain);
        let mut waiting = NONE;
        let wanted = role == Role::Thread && self.latency == Latency::Net && record.wall.is_some()
            || role == Role::OneWay && self.latency == Latency::Paper;
        let synchronous = chain.stack.last().is_none_or(|top| top.stub);
        if let (true, Some(top)) = (wanted, chain.stack.last_mut()) {
            if top.waiting == NONE {
                top.waiting = self.waiting.open();
            }
            waiting = top.waiting;
        }
        self.links.push(Link {
            context,
            call,
            site: record.site,
            waiting,
            spot: Spot::of(record),
            role,
            begun: false,
            required: true,
            synchronous,
            outside: Reading::NONE,
        });
        let number = self.links.len() as u32 - 1;
        self.linked.push((child, number, *record));
    }

    /// Gives a chain its place; false, and it is told, where it has one already or was read without.
    pub(crate) fn attach(&mut self, chain: &mut Chain, number: u32) -> bool {
        let link = &self.links[number as usize];
        let (role, spot) = (link.role, link.spot);
        if chain.role != Role::New {
            self.links[number as usize].begun = true;
            self.counts.one(Kind::ChildTwice, spot);
            return false;
        }
        chain.role = role;
        chain.link = number;
        if role == Role::Thread {
            self.begin_link(chain);
        }
        true
    }

    /// Begins a thread, whose first record lies in the chain of its parent.
    pub(crate) fn begin_thread(&mut self, chain: &mut Chain, start: &Record) {
        let link = &self.links[chain.link as usize];
        let (context, call, at) = (link.context, link.call, link.spot.event);
        let key = self.contexts.key(context as usize).threads();
        let mut frame = Frame::new(start);
        frame.state = State::Running;
        frame.thread = true;
        frame.at = at;
        frame.started = self.clock(start).end;
        frame.from = start.wall.end;
        frame.inside.begin = start.wall.end;
        frame.context = self.contexts.child(context, key, self.site(start.site).group);
        self.contexts.enter(frame.context);
        let group = self.site(start.site).group;
        frame.call = self.open_call(&frame, call, key, group, true);
        chain.stack.push(frame);
        self.branch_probe(chain, start);
    }

    /// A probe in the chain of a branch slows the call that waits for the branch.
    fn branch_probe(&mut self, chain: &Chain, record: &Record) {
        let link = &self.links[chain.link as usize];
        if link.waiting == NONE || !record.wall.is_some() || self.latency == Latency::Paper {
            return;
        }
        let same_clock = self.site(link.site).group == self.site(record.site).group;
        let waiting = self.waiting.at(link.waiting);
        if same_clock {
            waiting.branches.push((record.wall.begin, record.wall.end.max(record.wall.begin)));
        } else {
            waiting.beneath = sum([waiting.beneath, record.wall.duration()]);
        }
    }

    /// The innermost function that is open: its context and its call.
    fn inside_of(&self, chain: &Chain) -> (u32, u32) {
        match chain.stack.iter().rev().find(|frame| frame.context != NONE) {
            Some(frame) => (frame.context, frame.call),
            None if chain.link != NONE => {
                let link = &self.links[chain.link as usize];
                (link.context, link.call)
            }
            None => (0, NONE),
        }
    }

    /// Enters a function.
    fn enter(&mut self, chain: &Chain, frame: &mut Frame, function: u32, group: u16) {
        let (context, call) = self.inside_of(chain);
        let key = Key::function(function);
        frame.state = State::Running;
        frame.context = self.contexts.child(context, key, group);
        self.contexts.enter(frame.context);
        let detached = chain.stack.is_empty() && chain.role == Role::OneWay;
        frame.call = self.open_call(frame, call, key, group, detached);
    }

    fn open_call(&mut self, frame: &Frame, parent: u32, key: Key, group: u16, detached: bool) -> u32 {
        let Some(calls) = &mut self.calls else { return NONE };
        if calls.calls().len() >= self.keep_calls {
            self.calls = None;
            return NONE;
        }
        let Spot { chain, event, .. } = frame.spot;
        calls.open(Call {
            parent,
            group,
            key,
            site: frame.site,
            caller: frame.caller,
            chain,
            event,
            at: frame.at,
            collocated: frame.fused,
            detached,
            complete: false,
            time: None,
            outside: Reading::NONE,
            inside: Reading::NONE,
        })
    }

    /// Closes what lost its end, up to where a call can start.
    fn back_into_a_function(&mut self, chain: &mut Chain) {
        while let Some(top) = chain.stack.last() {
            match top.state {
                State::Running => return,
                State::Called if !top.oneway => {
                    let Some(mut frame) = chain.stack.pop() else { return };
                    let info = self.site(frame.site);
                    frame.lossy = true;
                    self.enter(chain, &mut frame, info.function, info.group);
                    chain.stack.push(frame);
                    return;
                }
                State::Called | State::Returned => self.close_open(chain, true),
            }
        }
    }

    /// Looks outwards for the call that a record belongs to and closes what lies within; false if there is none.
    fn outwards(&mut self, chain: &mut Chain, tell: bool, fits: impl Fn(&Self, &Frame) -> bool) -> bool {
        let within = chain.stack.iter().rev().take(REACH).position(|frame| fits(self, frame));
        for _ in 0..within.unwrap_or(0) {
            self.close_open(chain, tell);
        }
        within.is_some()
    }

    /// Closes the innermost call, which has no end.
    fn close_open(&mut self, chain: &mut Chain, tell: bool) {
        let Some(mut frame) = chain.stack.pop() else { return };
        if tell {
            self.counts.one(Kind::Unfinished, frame.spot);
        }
        if frame.context == NONE && !frame.oneway {
            let info = self.site(frame.site);
            self.enter(chain, &mut frame, info.function, NOWHERE);
        }
        self.leave(chain, frame, None, false);
    }

    /// Closes all that is open when the chain is read to its end.
    pub(crate) fn close_all(&mut self, chain: &mut Chain) {
        while !chain.stack.is_empty() {
            self.close_open(chain, true);
        }
    }

    /// The end of the function that a chain began with.
    fn end_of_chain(&mut self, chain: &mut Chain, frame: Frame, end: &Record) {
        let link = &self.links[chain.link as usize];
        let (waiting, synchronous, oneway) = (link.waiting, link.synchronous, link.role == Role::OneWay);
        if waiting != NONE {
            let caller = self.waiting.at(waiting);
            match (oneway, synchronous) {
                (false, _) => {
                    caller.own = sum([caller.own, frame.own]);
                    caller.beneath = sum([caller.beneath, frame.beneath]);
                }
                // As printed, the probes 2 and 3 of a one-way call are taken off a synchronous caller.
                (true, true) => caller.beneath = sum([caller.beneath, frame.own]),
                (true, false) => {}
            }
        }
        self.leave(chain, frame, Some(end), true);
    }

    /// Leaves a call: what it spent goes to its context, its probes and its share of the clock to the call around it.
    fn leave(&mut self, chain: &mut Chain, mut frame: Frame, end: Option<&Record>, complete: bool) {
        let key = (frame.context != NONE).then(|| self.contexts.key(frame.context as usize));
        let base = chain.stack.is_empty().then_some(chain.role);
        let last = end.map_or(0, |record| record.wall.duration());
        if let Some(record) = end.filter(|_| frame.stub) {
            frame.outside.end = record.wall.begin;
        }
        if let Some(key) = key {
            self.spend(&frame, key, complete);
        }
        self.latency_of(chain, &frame, key, base, end.filter(|_| complete));
        if let Some(around) = chain.stack.last_mut() {
            let clock = end.map_or(Reading::NONE, |end| if self.wall { end.wall } else { end.cpu });
            if frame.stub && frame.called != NO_TIME && clock.is_some() {
                around.children = around.children.saturating_add(clock.end.saturating_sub(frame.called));
            } else {
                around.lossy = true;
            }
            around.beneath = sum([around.beneath, frame.first, last, frame.own, frame.beneath]);
            around.stubs = sum([around.stubs, frame.first, last, frame.stubs]);
        }
    }

    fn spend(&mut self, frame: &Frame, key: Key, complete: bool) {
        let mut time = Some(frame.time).filter(|time| *time != NO_TIME);
        if complete && time.is_none() {
            self.counts.one(Kind::Unmeasured, frame.spot);
        }
        if time.is_some_and(|time| time < 0) {
            self.counts.one(Kind::NegativeTime, frame.spot);
            time = None;
        }
        if let Some(spent) = time {
            if self.contexts.spend(frame.context, spent) {
                self.statistics[key.index()].time.add(spent);
            } else {
                self.counts.one(Kind::Overflow, frame.spot);
            }
        }
        if let Some(calls) = self.calls.as_mut().filter(|_| frame.call != NONE) {
            let call = &mut calls.calls[frame.call as usize];
            (call.time, call.complete, call.inside) = (time, complete, frame.inside);
            if frame.stub {
                call.outside = frame.outside;
            }
        }
    }

    fn latency_of(
        &mut self,
        chain: &mut Chain,
        frame: &Frame,
        key: Option<Key>,
        base: Option<Role>,
        end: Option<&Record>,
    ) {
        let remote = base == Some(Role::Remote) && !frame.stub;
        let skeleton_only = !frame.stub && !frame.thread;
        let interval = match end {
            Some(end) if frame.from != NO_TIME && end.wall.is_some() && !frame.oneway && !remote => {
                end.wall.begin.checked_sub(frame.from)
            }
            _ => None,
        };
        let overhead = match self.latency {
            // Between the ends of a skeleton, or of a fused call, its own probes do not lie.
            Latency::Net if skeleton_only || frame.fused => frame.beneath,
            Latency::Net => sum([frame.own, frame.beneath]),
            Latency::Paper if skeleton_only => frame.stubs,
            Latency::Paper => frame.beneath,
        };
        let net = interval.map(|interval| interval.saturating_sub(overhead));
        if frame.waiting == NONE {
            if let (Some(key), Some(net)) = (key, net) {
                self.statistics[key.index()].latency.add(net);
            }
            return;
        }
        let mut parent = NONE;
        if let Some(around) = chain.stack.last_mut() {
            if around.waiting == NONE {
                around.waiting = self.waiting.open();
            }
            parent = around.waiting;
        } else if chain.link != NONE && base != Some(Role::OneWay) {
            parent = self.links[chain.link as usize].waiting;
        }
        let waiting = self.waiting.at(frame.waiting);
        waiting.parent = parent;
        waiting.key = key.or(waiting.key);
        waiting.base = net.unwrap_or(NO_TIME);
        waiting.window = (frame.from, end.map_or(NO_TIME, |end| end.wall.begin));
    }

    /// Names the function of a call that ran in a chain of its own, so that its latency has a place to go.
    fn name_remote(&mut self, chain: &Chain, frame: &Frame) {
        let Link { role, waiting, outside, .. } = self.links[chain.link as usize];
        if role != Role::Remote {
            return;
        }
        let key = self.contexts.key(frame.context as usize);
        self.waiting.at(waiting).key.get_or_insert(key);
        if let Some(calls) = &mut self.calls {
            calls.calls[frame.call as usize].outside = outside;
        }
    }

    /// Calls whose function left no record: they were made all the same.
    pub(crate) fn close_links(&mut self) {
        for number in 0..self.links.len() {
            let Link { begun, required, role, site, spot, context, waiting, .. } = self.links[number];
            if begun || role == Role::Thread {
                continue;
            }
            let kind = if role == Role::OneWay { Kind::LostChain } else { Kind::MissingSkeleton };
            if required {
                self.counts.one(kind, spot);
            }
            let key = Key::function(self.site(site).function);
            let child = self.contexts.child(context, key, NOWHERE);
            self.contexts.enter(child);
            if role == Role::Remote {
                self.waiting.at(waiting).key.get_or_insert(key);
            }
        }
    }
}

/// The sum of durations, at most the longest there is.
fn sum<const N: usize>(parts: [i64; N]) -> i64 {
    parts.into_iter().fold(0, i64::saturating_add)
}

impl Frame {
    fn new(record: &Record) -> Self {
        Self {
            site: record.site,
            caller: None,
            at: record.event,
            context: NONE,
            call: NONE,
            waiting: NONE,
            state: State::Called,
            oneway: false,
            fused: false,
            thread: false,
            stub: false,
            lossy: false,
            spot: Spot::of(record),
            called: NO_TIME,
            started: NO_TIME,
            children: 0,
            time: NO_TIME,
            from: NO_TIME,
            outside: Reading::NONE,
            inside: Reading::NONE,
            first: 0,
            own: 0,
            beneath: 0,
            stubs: 0,
        }
    }
}
