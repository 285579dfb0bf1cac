//! The dynamic system call graph (DSCG): every call, not merged.

use crate::context::{Key, NONE, NOWHERE};
use crate::record::{ChainId, Reading, SiteId};

/// One call, or one thread.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub(crate) parent: u32,
    pub(crate) group: u16,
    /// What was called.
    pub key: Key,
    /// Where it runs: the site of its skeleton, of its fused stub, or of the start of the thread.
    pub site: SiteId,
    /// The site of its stub start, where there is one: where its caller runs.
    pub caller: Option<SiteId>,
    /// The chain of that record.
    pub chain: ChainId,
    /// The number of that record in the chain.
    pub event: u32,
    /// The number of its stub start, or of the start of the thread, in the chain of its caller: calls of one caller are in this order.
    pub at: u32,
    /// Whether it runs in the thread of its caller.
    pub collocated: bool,
    /// Whether its caller does not wait: a one-way call or a thread.
    pub detached: bool,
    /// Whether all that belongs to it was met.
    pub complete: bool,
    /// Nanoseconds that it spent itself, if they can be told.
    pub time: Option<i64>,
    /// From the end of the first stub probe to the beginning of the last, on the caller's clock.
    pub outside: Reading,
    /// From the end of the first skeleton probe to the beginning of the last, on the clock of the function.
    pub inside: Reading,
}

/// All calls in the order in which they were met. Calls of the Global Virtual Main have no parent.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    pub(crate) calls: Vec<Call>,
}

impl CallTree {
    /// All calls.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The call that made a call; none for a root.
    pub fn parent(&self, call: usize) -> Option<usize> {
        Some(self.calls[call].parent).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    /// The processor group that a call runs on, by its place in [`crate::Profile::groups`]; none where it is not known.
    pub fn group(&self, call: usize) -> Option<usize> {
        Some(self.calls[call].group).filter(|group| *group != NOWHERE).map(usize::from)
    }

    /// Numbers groups by their place.
    pub(crate) fn settle(&mut self, places: &[u16]) {
        for call in self.calls.iter_mut().filter(|call| call.group != NOWHERE) {
            call.group = places[usize::from(call.group)];
        }
    }

    pub(crate) fn open(&mut self, call: Call) -> u32 {
        self.calls.push(call);
        self.calls.len() as u32 - 1
    }
}
