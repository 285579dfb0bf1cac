//! The dynamic system call graph (DSCG): every call, not merged.

use crate::context::{Key, NONE};
use crate::record::{ChainId, Reading, SiteId};

/// One call, or one thread.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub(crate) parent: u32,
    /// What was called.
    pub key: Key,
    /// The site of its first record.
    pub site: SiteId,
    /// The chain of that record.
    pub chain: ChainId,
    /// The number of that record in the chain.
    pub event: u32,
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

    pub(crate) fn open(&mut self, call: Call) -> u32 {
        self.calls.push(call);
        self.calls.len() as u32 - 1
    }
}
