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

mod account;
pub(crate) mod builder;
mod links;
mod recovery;

use crate::abnormal::{Counts, Kind, Spot};
use crate::calls::{Call, CallTree};
use crate::context::{ContextTree, Key, NONE};
use crate::groups::GroupTable;
use crate::latency::{Latency, NO_TIME, Queue, Statistics};
use crate::record::{ChainId, Name, Probe, Reading, Record, SiteId, Tables};
use rustc_hash::FxHashMap;

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
    /// How many links lead from it to other chains.
    pub(crate) links: u32,
    pub(crate) stack: Vec<Frame>,
}

impl Chain {
    pub(crate) fn new(id: ChainId) -> Self {
        Self { role: Role::New, id, next: 0, link: NONE, links: 0, stack: Vec::new() }
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
    /// Nanoseconds of the processor that its probes took beside all functions.
    probes: i64,
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
    links: Vec<Link>,
    free_links: Vec<u32>,
    /// The chains that links led from which are no more, for the driver to know.
    pub(crate) freed: Vec<ChainId>,
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
            free_links: Vec::new(),
            freed: Vec::new(),
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
            self.sites.push(SiteInfo { function, plain, object: site.object, group, probes: 0 });
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

    /// Takes the next record of a chain.
    pub(crate) fn step(&mut self, chain: &mut Chain, record: &Record) {
        for reading in [record.wall, record.cpu] {
            if reading.end < reading.begin {
                self.counts.one(Kind::ClockBackwards, Spot::of(record));
            }
        }
        self.count_probe(record);
        if chain.role == Role::Thread && record.probe != Probe::ThreadStart {
            self.branch_probe(chain, record);
        }
        match record.probe {
            Probe::StubStart => self.stub_start(chain, record),
            Probe::SkelStart => self.skel_start(chain, record),
            Probe::SkelEnd => self.skel_end(chain, record),
            Probe::StubEnd => self.stub_end(chain, record),
            Probe::ThreadStart => self.thread_start(chain, record),
            Probe::ThreadEnd => self.thread_end(chain, record),
        }
    }

    /// Adds what a probe took beside all functions: between its two readings; of one reading half of what it costs, unless function and caller share
    /// the thread, so that all of the probe is within them.
    fn count_probe(&mut self, record: &Record) {
        let Reading { begin, end } = record.cpu;
        let beside = match end > begin {
            true => end.saturating_sub(begin),
            false if record.cpu.is_some() && !record.is(Record::COLLOCATED) => self.tables.probe_cost(record.file) / 2,
            false => return,
        };
        let probes = &mut self.sites[record.site.0 as usize].probes;
        *probes = probes.saturating_add(beside);
    }

    /// What probes took beside all functions, by process and processor, and by the number of the group.
    pub(crate) fn probes(&self) -> impl Iterator<Item = ([Name; 2], u16, i64)> {
        let sites = self.sites.iter().zip(self.tables.sites()).filter(|(info, _)| info.probes > 0);
        sites.map(|(info, site)| ([site.process, site.processor], info.group, info.probes))
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
        let around = self.inside_of(chain);
        if let Some(frame) = chain.stack.last_mut()
            && frame.state == State::Called
            && !frame.oneway
            && self.same(frame.site, record.site)
        {
            let function = self.better(frame.site, record.site);
            frame.started = clock.end;
            frame.own = record.wall.duration();
            frame.inside.begin = record.wall.end;
            frame.site = record.site;
            self.enter_within(around, false, frame, function, info.group);
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
        let around = self.inside_of(chain);
        let Some(frame) = chain.stack.last_mut() else { return };
        if frame.state == State::Called {
            let info = self.site(record.site);
            let function = self.better(frame.site, record.site);
            frame.lossy = true;
            self.enter_within(around, false, frame, function, info.group);
        }
        frame.time = self.spent(frame, record);
        frame.own = sum([frame.own, record.wall.duration()]);
        frame.inside.end = record.wall.begin;
        frame.state = State::Returned;
        if !frame.stub
            && chain.stack.len() == 1
            && matches!(chain.role, Role::OneWay | Role::Remote)
            && let Some(frame) = chain.stack.pop()
        {
            self.end_of_chain(chain, frame, record);
        }
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
        let detached = chain.stack.is_empty() && chain.role == Role::OneWay;
        self.enter_within(self.inside_of(chain), detached, frame, function, group);
    }

    fn enter_within(
        &mut self,
        (context, call): (u32, u32),
        detached: bool,
        frame: &mut Frame,
        function: u32,
        group: u16,
    ) {
        let key = Key::function(function);
        frame.state = State::Running;
        frame.context = self.contexts.child(context, key, group);
        self.contexts.enter(frame.context);
        frame.call = self.open_call(frame, call, key, group, detached);
    }

    fn open_call(&mut self, frame: &Frame, parent: u32, key: Key, group: u16, detached: bool) -> u32 {
        let Spot { chain, event, .. } = frame.spot;
        self.keep(|| Call {
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
