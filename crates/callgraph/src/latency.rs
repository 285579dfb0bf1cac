//! Latencies whose probes are known only when other chains have been read.
//!
//! The overhead of a call is the sum of the probes within its own chain, which are known when it ends. A call that forks branches, or
//! whose function ran in a chain of its own, waits for those chains; it is settled when all is read.

use crate::context::{Key, NONE};
use crate::moments::Moments;

/// How the overhead of probes is taken off a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// Every probe that ran between begin and end is taken off; where branches overlap, the union of their probes.
    #[default]
    Net,
    /// As printed (2003 §3.2): the function's own probes stay in, and all calls beneath it are taken off by its own kind, four
    /// probes each under a synchronous call, the two of the stub under a one-way call.
    Paper,
}

/// No time.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// A latency that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The call around it that waits as well.
    parent: u32,
    /// What it waits for: its own end, chains, calls within it.
    open: u32,
    pub(crate) key: Option<Key>,
    /// The latency without what is still to come; [`NO_TIME`] where it is not known or not asked for.
    pub(crate) base: i64,
    /// Probes of the function itself in a chain of its own, which the paper leaves in.
    pub(crate) own: i64,
    /// Probes beneath it in other chains.
    pub(crate) beneath: i64,
    /// Its interval on the clock of its branches.
    pub(crate) window: (i64, i64),
    /// Probes of its branches on that clock.
    pub(crate) branches: Vec<(i64, i64)>,
}

impl Waiting {
    /// Probes within it in all.
    fn probes(&mut self) -> (i64, i64) {
        let branches = union(std::mem::take(&mut self.branches), self.window);
        (self.own, self.beneath.saturating_add(branches))
    }
}

/// All latencies that wait. Each is settled as soon as what it waits for is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    all: Vec<Waiting>,
    free: Vec<u32>,
}

impl Queue {
    /// A latency that waits for its own end.
    pub(crate) fn open(&mut self) -> u32 {
        let new = Waiting {
            parent: NONE,
            open: 1,
            key: None,
            base: NO_TIME,
            own: 0,
            beneath: 0,
            window: (NO_TIME, NO_TIME),
            branches: Vec::new(),
        };
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = new;
            return number;
        }
        self.all.push(new);
        self.all.len() as u32 - 1
    }

    pub(crate) fn at(&mut self, number: u32) -> &mut Waiting {
        &mut self.all[number as usize]
    }

    /// Lets it wait for one thing more.
    pub(crate) fn hold(&mut self, number: u32) {
        self.at(number).open += 1;
    }

    /// Lets a latency wait for one within it; [`NONE`] for none around.
    pub(crate) fn nest(&mut self, inner: u32, around: u32) {
        self.at(inner).parent = around;
        if around != NONE {
            self.hold(around);
        }
    }

    /// One thing less to wait for. With nothing left it is settled, and then what waits for it.
    pub(crate) fn release(&mut self, mut number: u32, rule: Latency, mut tell: impl FnMut(Key, i64)) {
        while number != NONE {
            let waiting = self.at(number);
            waiting.open -= 1;
            if waiting.open > 0 {
                return;
            }
            let (own, beneath) = waiting.probes();
            let inside = if rule == Latency::Net { own } else { 0 };
            if let (Some(key), true) = (waiting.key, waiting.base != NO_TIME) {
                tell(key, waiting.base.saturating_sub(inside.saturating_add(beneath)));
            }
            let parent = waiting.parent;
            self.free.push(number);
            if parent != NONE {
                let around = self.at(parent);
                around.beneath = around.beneath.saturating_add(own.saturating_add(beneath));
            }
            number = parent;
        }
    }

    /// Whether none waits.
    pub(crate) fn is_settled(&self) -> bool {
        self.all.len() == self.free.len()
    }
}

/// How much of a window intervals cover together.
fn union(mut intervals: Vec<(i64, i64)>, window: (i64, i64)) -> i64 {
    intervals.sort_unstable();
    let (mut covered, mut reached) = (0i64, window.0);
    for (begin, end) in intervals {
        let (begin, end) = (begin.max(reached), end.min(window.1));
        if end > begin {
            covered = covered.saturating_add(end.saturating_sub(begin));
            reached = end;
        }
    }
    covered
}

/// What is known of the invocations of a function, or of the threads under one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nanoseconds that each spent itself.
    pub time: Moments,
    /// Nanoseconds from begin to end of each, without probes.
    pub latency: Moments,
}

impl Statistics {
    /// Takes in what another has.
    pub fn merge(&mut self, other: &Self) {
        self.time.merge(&other.time);
        self.latency.merge(&other.latency);
    }
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn overlapping_probes_count_once_and_only_inside() {
        assert_eq!(union(vec![(0, 10), (5, 12), (20, 30)], (0, 100)), 22);
        assert_eq!(union(vec![(0, 10), (90, 120)], (5, 100)), 15);
        assert_eq!(union(vec![(0, 10)], (50, 100)), 0);
    }
}
