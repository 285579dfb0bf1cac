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
    pub(crate) parent: u32,
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

/// All latencies that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(pub(crate) Vec<Waiting>);

impl Queue {
    pub(crate) fn open(&mut self) -> u32 {
        self.0.push(Waiting {
            parent: NONE,
            key: None,
            base: NO_TIME,
            own: 0,
            beneath: 0,
            window: (NO_TIME, NO_TIME),
            branches: Vec::new(),
        });
        self.0.len() as u32 - 1
    }

    pub(crate) fn at(&mut self, number: u32) -> &mut Waiting {
        &mut self.0[number as usize]
    }

    /// Settles all of them, inner ones first.
    pub(crate) fn settle(mut self, rule: Latency, mut tell: impl FnMut(Key, i64)) {
        let mut inner = vec![0u32; self.0.len()];
        for waiting in self.0.iter().filter(|waiting| waiting.parent != NONE) {
            inner[waiting.parent as usize] += 1;
        }
        let mut ready: Vec<u32> = (0..self.0.len() as u32).filter(|number| inner[*number as usize] == 0).collect();
        while let Some(number) = ready.pop() {
            let waiting = &mut self.0[number as usize];
            let branches = union(std::mem::take(&mut waiting.branches), waiting.window);
            let own = if rule == Latency::Net { waiting.own } else { 0 };
            if let (Some(key), true) = (waiting.key, waiting.base != NO_TIME) {
                tell(key, waiting.base.saturating_sub(own.saturating_add(waiting.beneath).saturating_add(branches)));
            }
            let whole = waiting.own.saturating_add(waiting.beneath).saturating_add(branches);
            let parent = waiting.parent;
            if parent != NONE {
                let around = self.at(parent);
                around.beneath = around.beneath.saturating_add(whole);
                inner[parent as usize] -= 1;
                if inner[parent as usize] == 0 {
                    ready.push(parent);
                }
            }
        }
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
