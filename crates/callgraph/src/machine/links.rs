//! Where a chain hangs in another: one-way calls, functions in chains of their own, threads.

use crate::abnormal::{Kind, Spot};
use crate::context::{Key, NONE, NOWHERE};
use crate::latency::Latency;
use crate::machine::{Chain, Frame, Link, Machine, Role, State, sum};
use crate::record::{ChainId, Reading, Record};

impl Machine {
    /// Makes a link; the latency that waits for it waits for one thing more.
    fn new_link(&mut self, chain: &mut Chain, link: Link) -> u32 {
        chain.links += 1;
        if link.waiting != NONE {
            self.waiting.hold(link.waiting);
        }
        if let Some(number) = self.free_links.pop() {
            self.links[number as usize] = link;
            return number;
        }
        self.links.push(link);
        self.links.len() as u32 - 1
    }

    /// Whether a chain has its skeleton start, or needs none; also where nothing hangs in the link any more.
    pub(crate) fn has_begun(&self, link: u32) -> bool {
        self.links.get(link as usize).is_none_or(|link| link.begun)
    }

    /// Nothing waits for the chain of a link any more.
    pub(super) fn release_link(&mut self, link: u32) {
        let waiting = self.links.get_mut(link as usize).map_or(NONE, |link| std::mem::replace(&mut link.waiting, NONE));
        self.settle(waiting);
    }

    /// Gives up a link.
    pub(crate) fn free_link(&mut self, link: u32) {
        self.release_link(link);
        if let Some(freed) = self.links.get_mut(link as usize) {
            freed.begun = true;
            self.freed.push(freed.spot.chain);
            self.free_links.push(link);
        }
    }

    /// Marks that the chain has its skeleton start; false if it had it before.
    pub(super) fn begin_link(&mut self, chain: &Chain) -> bool {
        self.links.get_mut(chain.link as usize).is_some_and(|link| !std::mem::replace(&mut link.begun, true))
    }

    /// A synchronous call from 1 to 4: its function ran in a chain of its own, called after the stub start; false where it rather is
    /// among the records that are missing.
    pub(super) fn elsewhere(&mut self, chain: &mut Chain, frame: &mut Frame, cancelled: bool, record: &Record) -> bool {
        let name = self.tables.chain_name(chain.id).map(|chain| format!("{chain}.{}", frame.spot.event));
        // A chain without a name was over long ago.
        let Some(name) = name.filter(|_| !frame.lossy) else {
            self.unexpected(record);
            let info = self.site(frame.site);
            self.enter(chain, frame, info.function, NOWHERE);
            return false;
        };
        if frame.waiting == NONE {
            frame.waiting = self.waiting.open();
        }
        let child = self.tables.chain(&name);
        let (context, call) = self.inside_of(chain);
        let site = frame.site;
        let link = Link {
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
        };
        let number = self.new_link(chain, link);
        self.linked.push((child, number, *record));
        true
    }

    /// Notes that another chain hangs here.
    pub(super) fn link(&mut self, chain: &mut Chain, record: &Record, role: Role, child: ChainId) {
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
        let link = Link {
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
        };
        let number = self.new_link(chain, link);
        self.linked.push((child, number, *record));
    }

    /// Gives a chain its place; false, with a finding, where it has one already or was read without.
    pub(crate) fn attach(&mut self, chain: &mut Chain, number: u32) -> bool {
        let link = &self.links[number as usize];
        let (role, spot) = (link.role, link.spot);
        if chain.role != Role::New {
            self.free_link(number);
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
    pub(super) fn branch_probe(&mut self, chain: &Chain, record: &Record) {
        let Some(link) = self.links.get(chain.link as usize) else { return };
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

    /// The end of the function that a chain began with.
    pub(super) fn end_of_chain(&mut self, chain: &mut Chain, frame: Frame, end: &Record) {
        let link = self.links.get(chain.link as usize).filter(|link| link.waiting != NONE);
        if let Some(&Link { waiting, synchronous, role, .. }) = link {
            let oneway = role == Role::OneWay;
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

    /// Names the function of a call that ran in a chain of its own, so that its latency has a place to go.
    pub(super) fn name_remote(&mut self, chain: &Chain, frame: &Frame) {
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
        for number in 0..self.links.len() as u32 {
            if !self.has_begun(number) {
                self.close_link(number);
            }
        }
    }

    /// A call whose function left no record.
    pub(crate) fn close_link(&mut self, number: u32) {
        let Link { required, role, site, spot, context, waiting, .. } = self.links[number as usize];
        let kind = if role == Role::OneWay { Kind::LostChain } else { Kind::MissingSkeleton };
        if required {
            self.counts.one(kind, spot);
        }
        let key = Key::function(self.site(site).function);
        let child = self.contexts.child(context, key, NOWHERE);
        self.contexts.enter(child);
        if role == Role::Remote && waiting != NONE {
            self.waiting.at(waiting).key.get_or_insert(key);
        }
        self.free_link(number);
    }
}
