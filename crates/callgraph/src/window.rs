//! Records in any order within a window, brought into the order of their chains.
//!
//! Records wait until as many more were read as the window has. Then chains are read on, each as far as its numbers go without a gap;
//! a gap before a record that has waited long enough is a loss. A chain that hangs in another one waits until that is read so far, at most
//! two windows long. A chain with no open call that was not met for two windows is laid to rest. So memory is bounded by the window and by the calls
//! that are open, and each record is looked at a bounded number of times.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::abnormal::{Kind, Spot};
use crate::chains::Chains;
use crate::context::NONE;
use crate::machine::{Chain, Frame, Machine, Measure, Role};
use crate::pending::Pending;
use crate::record::{ChainId, Probe, Reading, Record, Tables};

/// The most records that room is made for at once.
const RESERVED: usize = 1 << 21;

/// How many turns a chain waits for the one that it hangs in.
const PATIENCE: u32 = 2;

/// How many calls wait at most for functions of which no record came yet; where there are more, the functions of the oldest ones left none.
const MOST_AWAITED: usize = 1 << 20;

/// How many open calls a chain may have whose stack is kept as small as can be.
const SHALLOW: usize = 64;

/// All chains and the records that wait.
pub(crate) struct Window {
    size: usize,
    pending: Pending,
    chains: Chains,
    /// Chains without an open call, and the turns in which they were read last.
    idle: VecDeque<(ChainId, u32)>,
    /// Links whose chains may not have begun, in the order in which they were made.
    awaited: VecDeque<(u32, ChainId)>,
    measure: Measure,
    turn: u32,
    spare: Vec<Frame>,
}

/// The waiting records of a chain, as a range of an order.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    chain: ChainId,
    start: u32,
    count: u32,
    /// Whether one of them has waited long enough.
    due: bool,
    done: bool,
}

impl Window {
    pub(crate) fn new(size: usize, measure: Measure) -> Self {
        Self {
            size: size.clamp(1, 1 << 30),
            pending: Pending::default(),
            chains: Chains::default(),
            idle: VecDeque::new(),
            awaited: VecDeque::new(),
            measure,
            turn: 0,
            spare: Vec::new(),
        }
    }

    /// Takes a record.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, machine: &mut Machine) {
        if record.child != ChainId::NONE {
            self.chains.at(record.child).announced = true;
        }
        self.pending.push(&record, self.size.saturating_mul(2).min(RESERVED));
        if self.pending.len() >= self.size.saturating_mul(2) {
            let due = self.pending.len() - self.size;
            self.turn(machine, due, false);
        }
    }

    /// Reads all chains to their ends.
    pub(crate) fn finish(mut self, machine: &mut Machine) {
        let due = self.pending.len();
        self.turn(machine, due, true);
        for slot in self.chains.all_live() {
            machine.close_all(&mut slot.chain);
        }
        machine.close_links();
    }

    fn turn(&mut self, machine: &mut Machine, due: usize, last: bool) {
        self.turn += 1;
        machine.learn_sites();
        if self.turn == 1 {
            machine.wall = match self.measure {
                Measure::Auto => !self.pending.have_cpu(),
                Measure::Cpu => false,
                Measure::Wall => true,
            };
        }
        let pending = std::mem::take(&mut self.pending);
        let (mut buckets, mut order) = self.sort_by_chain(&pending, due);
        let mut kept: Vec<u32> = Vec::new();
        let mut work: Vec<u32> =
            (0..buckets.len() as u32).rev().filter(|bucket| buckets[*bucket as usize].due).collect();
        let mut blocked: Vec<u32> = Vec::new();
        let mut forced = false;
        loop {
            while let Some(number) = work.pop() {
                let bucket = buckets[number as usize];
                if bucket.done {
                    continue;
                }
                let range = bucket.start as usize..(bucket.start + bucket.count) as usize;
                if !self.ready(bucket.chain, &order[range.clone()], &pending, machine, forced) {
                    blocked.push(number);
                    continue;
                }
                forced = false;
                buckets[number as usize].done = true;
                self.read(bucket.chain, &mut order[range], &pending, due, machine, &mut kept);
                for (child, link, record) in std::mem::take(&mut machine.linked) {
                    self.attach(child, link, &record, machine, &buckets, &mut work);
                }
            }
            // What waited too long, or has nothing more to wait for, is read where it is.
            let turn = self.turn;
            blocked.retain(|number| !buckets[*number as usize].done);
            blocked.sort_by(|one, other| {
                let name = |number: u32| machine.tables.chain_text(buckets[number as usize].chain);
                name(*other).cmp(name(*one))
            });
            let patient = |number: &u32| {
                let since = self.chains.live(buckets[*number as usize].chain).map_or(0, |slot| slot.waits_since);
                !last && turn - since < PATIENCE
            };
            let Some(place) = blocked.iter().rposition(|number| !patient(number)) else { break };
            work.push(blocked.remove(place));
            forced = true;
        }
        for bucket in buckets.iter().filter(|bucket| !bucket.done) {
            kept.extend(&order[bucket.start as usize..(bucket.start + bucket.count) as usize]);
        }
        self.pending = pending;
        self.pending.keep(&kept);
        self.give_up_waiting(machine);
        self.lay_to_rest(machine);
    }

    /// Reads a chain on.
    fn read(
        &mut self,
        id: ChainId,
        order: &mut [u32],
        pending: &Pending,
        due: usize,
        machine: &mut Machine,
        kept: &mut Vec<u32>,
    ) {
        let mut chain = std::mem::replace(&mut self.chains.at(id).chain, Chain::new(id));
        // Most chains have no open call between turns; one stack serves them all.
        if chain.stack.capacity() == 0 {
            chain.stack = std::mem::take(&mut self.spare);
        }
        read_on(&mut chain, order, pending, due, machine, kept);
        if chain.stack.is_empty() {
            self.spare = std::mem::take(&mut chain.stack);
            self.idle.push_back((id, self.turn));
        } else if chain.stack.len() <= SHALLOW && chain.stack.capacity() > chain.stack.len() {
            let open = chain.stack.drain(..).collect();
            self.spare = std::mem::replace(&mut chain.stack, open);
        }
        self.chains.at(id).chain = chain;
    }

    /// Of calls whose functions left no record so far, closes the oldest where there are too many.
    fn give_up_waiting(&mut self, machine: &mut Machine) {
        while self.awaited.len() > MOST_AWAITED {
            let Some((link, child)) = self.awaited.pop_front() else { return };
            let waits = self.chains.live(child).is_some_and(|slot| slot.chain.link == link);
            if waits && !machine.has_begun(link) {
                self.chains.at(child).chain.link = NONE;
                machine.close_link(link);
                self.idle.push_back((child, self.turn));
            }
        }
    }

    /// Lays chains to rest that were not met for a while, and then those that they hung in.
    fn lay_to_rest(&mut self, machine: &mut Machine) {
        let mut work = Vec::new();
        loop {
            for parent in machine.freed.drain(..) {
                let links = &mut self.chains.at(parent).chain.links;
                *links = links.saturating_sub(1);
                work.push(parent);
            }
            let Some(id) = work.pop().or_else(|| self.next_idle()) else { return };
            if self.may_rest(id, machine) {
                let link = std::mem::replace(&mut self.chains.at(id).chain.link, NONE);
                self.chains.rest(id, machine.calls.is_none().then_some(&mut machine.tables));
                machine.free_link(link);
            }
        }
    }

    /// The next chain that was without an open call when it was read, a while ago.
    fn next_idle(&mut self) -> Option<ChainId> {
        let (id, since) = *self.idle.front()?;
        if self.turn - since < PATIENCE {
            return None;
        }
        self.idle.pop_front();
        Some(id)
    }

    /// Whether nothing is known of a chain but where it goes on.
    fn may_rest(&self, id: ChainId, machine: &Machine) -> bool {
        let Some(slot) = self.chains.live(id) else { return false };
        let chain = &slot.chain;
        let is_over = chain.role != Role::New && chain.stack.is_empty() && chain.links == 0;
        is_over
            && self.turn - slot.turn >= PATIENCE
            && u32::try_from(chain.next).is_ok()
            && machine.has_begun(chain.link)
            && !machine.counts.name(id)
    }

    /// Sorts the places of records by chain, stably.
    fn sort_by_chain(&mut self, pending: &Pending, due: usize) -> (Vec<Bucket>, Vec<u32>) {
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut bucket_of = Vec::with_capacity(pending.len());
        let turn = self.turn;
        // Records of a chain come many at a time.
        let mut recent = (ChainId::NONE, 0);
        for (place, record) in pending.heads().iter().enumerate() {
            if record.chain != recent.0 {
                let slot = self.chains.at(record.chain);
                if slot.turn != turn {
                    slot.turn = turn;
                    slot.bucket = buckets.len() as u32;
                    buckets.push(Bucket { chain: record.chain, start: 0, count: 0, due: false, done: false });
                }
                recent = (record.chain, slot.bucket);
            }
            let bucket = &mut buckets[recent.1 as usize];
            bucket.count += 1;
            bucket.due |= place < due;
            bucket_of.push(recent.1);
        }
        let mut start = 0;
        for bucket in &mut buckets {
            bucket.start = start;
            start += bucket.count;
        }
        let mut order = vec![0u32; pending.len()];
        let mut next: Vec<u32> = buckets.iter().map(|bucket| bucket.start).collect();
        for (place, bucket) in bucket_of.into_iter().enumerate() {
            let next = &mut next[bucket as usize];
            order[*next as usize] = place as u32;
            *next += 1;
        }
        (buckets, order)
    }

    /// Whether a chain can be read: it began before, or it is known where it begins.
    fn ready(&mut self, id: ChainId, places: &[u32], pending: &Pending, machine: &mut Machine, forced: bool) -> bool {
        let turn = self.turn;
        let slot = self.chains.at(id);
        if slot.chain.role != Role::New {
            return true;
        }
        let Some(first) = places.iter().min_by_key(|place| pending.head(**place).event) else { return true };
        let first = pending.head(*first);
        if !forced {
            let waits = slot.announced || first.probe == Probe::SkelStart && stub_chain(id, &machine.tables).is_some();
            if waits {
                if slot.waits_since == 0 {
                    slot.waits_since = turn;
                }
                return false;
            }
        }
        slot.chain.role = Role::Root;
        if forced || first.probe == Probe::SkelStart {
            machine.counts.one(Kind::OrphanChain, first.spot());
        }
        true
    }

    fn attach(
        &mut self,
        child: ChainId,
        link: u32,
        record: &Record,
        machine: &mut Machine,
        buckets: &[Bucket],
        work: &mut Vec<u32>,
    ) {
        let turn = self.turn;
        let slot = self.chains.at(child);
        if !machine.attach(&mut slot.chain, link) {
            return;
        }
        if !machine.has_begun(link) {
            self.awaited.push_back((link, child));
        }
        if slot.chain.role == Role::Thread {
            machine.begin_thread(&mut slot.chain, record);
        }
        if slot.turn == turn && buckets[slot.bucket as usize].due {
            work.push(slot.bucket);
        }
    }
}

/// The chain that a sub-chain such as `c1.5` was called from, by its name.
fn stub_chain(id: ChainId, tables: &Tables) -> Option<ChainId> {
    let (chain, event) = tables.chain_text(id).rsplit_once('.')?;
    event.parse::<u32>().ok()?;
    tables.find_chain(chain)
}

/// Reads a chain on, as far as its numbers go, and over gaps up to the last record that is due.
fn read_on(
    chain: &mut Chain,
    order: &mut [u32],
    pending: &Pending,
    due: usize,
    machine: &mut Machine,
    kept: &mut Vec<u32>,
) {
    let event_of = |place: u32| pending.head(place).event;
    if !order.is_sorted_by_key(|place| event_of(*place)) {
        order.sort_by_key(|place| event_of(*place));
    }
    let last_due = order.iter().rposition(|place| (*place as usize) < due);
    let mut place = 0;
    while place < order.len() {
        let event = event_of(order[place]);
        let same = order[place..].iter().take_while(|other| event_of(**other) == event).count();
        let claims = &mut order[place..place + same];
        if same > 1 {
            claims.sort_by(|one, other| compare(&pending.record(*one), &pending.record(*other), &machine.tables));
        }
        let expected = if chain.next == 0 { u64::from(event.min(1)) } else { chain.next };
        if u64::from(event) > expected && last_due.is_none_or(|last| place > last) {
            kept.extend(&order[place..]);
            return;
        }
        let first = &pending.record(claims[0]);
        let mut taken = false;
        match u64::from(event).cmp(&expected) {
            Ordering::Less => machine.counts.one(Kind::Late, Spot::of(first)),
            Ordering::Equal => taken = true,
            Ordering::Greater => {
                machine.gap(chain, u64::from(event) - expected, first);
                taken = true;
            }
        }
        if taken {
            machine.step(chain, first);
            chain.next = u64::from(event) + 1;
        }
        for (before, claim) in claims.iter().zip(claims.iter().skip(1)) {
            let same = compare(&pending.record(*before), &pending.record(*claim), &machine.tables) == Ordering::Equal;
            machine.counts.one(if same { Kind::Duplicate } else { Kind::Conflict }, pending.head(*claim).spot());
        }
        place += same;
    }
}

/// Compares what two records say, whatever order they came in.
fn compare(one: &Record, other: &Record, tables: &Tables) -> Ordering {
    let times = |record: &Record| {
        let Reading { begin, end } = record.cpu;
        (record.probe, record.flags, begin, end, record.wall)
    };
    let names = |record: &Record| {
        let site = tables.of(record.site);
        [site.interface, site.function, site.object, site.thread, site.process, site.processor]
            .map(|name| tables.text(name))
    };
    times(one)
        .cmp(&times(other))
        .then_with(|| if one.site == other.site { Ordering::Equal } else { names(one).cmp(&names(other)) })
        .then_with(|| tables.chain_text(one.child).cmp(tables.chain_text(other.child)))
}
