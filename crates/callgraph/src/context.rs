//! The context tree: the DSCG merged by path.
//!
//! Invocations of one function, on one processor group, called along one path from the root, share a node. Sums over invocations
//! (Eq. 3 and 4 of 2002) are sums over nodes, so the tree is all that summaries need, and it grows with the number of paths, not of calls.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// What a context is an execution of: a function, or threads that a function spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(crate) u32);

impl Key {
    /// The Global Virtual Main.
    pub const MAIN: Self = Self(0);

    /// A function.
    pub(crate) fn function(function: u32) -> Self {
        Self(function << 1)
    }

    /// The threads that are spawned under it; those that threads spawn are folded up.
    pub(crate) fn threads(self) -> Self {
        Self(self.0 | 1)
    }

    /// Whether it is the threads of a function.
    pub fn is_thread(self) -> bool {
        self.0 & 1 == 1
    }

    /// The function, or for threads the function that spawned them.
    pub fn owner(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The group of a call whose function left no record, so that it is not known where it ran.
pub(crate) const NOWHERE: u16 = u16::MAX;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// Paths from the Global Virtual Main, with what was spent at their ends. Parents stand before their children.
#[derive(Clone, Debug)]
pub struct ContextTree {
    steps: Vec<ContextStep>,
    count: Vec<u64>,
    time: Vec<i64>,
    slots: Vec<u32>,
    total: i64,
}

/// The last step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContextStep {
    parent: u32,
    key: Key,
    group: u16,
}

impl Default for ContextTree {
    fn default() -> Self {
        Self {
            steps: vec![ContextStep { parent: NONE, key: Key::MAIN, group: NOWHERE }],
            count: vec![1],
            time: vec![0],
            slots: vec![NONE; 1 << 10],
            total: 0,
        }
    }
}

impl ContextTree {
    /// How many paths there are, that of the root among them.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Never: the root is always there.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The path without its last step; none at the root.
    pub fn parent(&self, node: usize) -> Option<usize> {
        Some(self.steps[node].parent).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    /// What runs at the end of the path.
    pub fn key(&self, node: usize) -> Key {
        self.steps[node].key
    }

    /// The processor group it runs on, by its place in [`crate::Profile::groups`]; none at the root and where it is not known.
    pub fn group(&self, node: usize) -> Option<usize> {
        Some(self.steps[node].group).filter(|group| *group != NOWHERE).map(usize::from)
    }

    /// How many invocations, or threads.
    pub fn count(&self, node: usize) -> u64 {
        self.count[node]
    }

    /// Nanoseconds that they spent themselves.
    pub fn time(&self, node: usize) -> i64 {
        self.time[node]
    }

    /// The sum of all times. It fits, and so does that of any part.
    pub fn total(&self) -> i64 {
        self.total
    }

    fn hash(step: ContextStep) -> usize {
        let mut hasher = FxHasher::default();
        hasher.write_u64(u64::from(step.parent) << 32 | u64::from(step.key.0));
        hasher.write_u16(step.group);
        hasher.finish() as usize
    }

    fn slot(&self, step: ContextStep) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = Self::hash(step) & mask;
        while self.slots[slot] != NONE && self.steps[self.slots[slot] as usize] != step {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The child of a node, made now if it is not there, with nothing added to it.
    pub(crate) fn child(&mut self, parent: u32, key: Key, group: u16) -> u32 {
        let step = ContextStep { parent, key, group };
        let slot = self.slot(step);
        if self.slots[slot] != NONE {
            return self.slots[slot];
        }
        let node = u32::try_from(self.steps.len())
            .ok()
            .filter(|node| *node != NONE)
            .expect("fewer than 2^32 paths fit in memory");
        self.slots[slot] = node;
        self.steps.push(step);
        self.count.push(0);
        self.time.push(0);
        if self.steps.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        node
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        self.slots = Vec::new();
        self.slots = vec![NONE; size];
        for node in 1..self.steps.len() {
            // All steps are different.
            let mut slot = Self::hash(self.steps[node]) & (size - 1);
            while self.slots[slot] != NONE {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = node as u32;
        }
    }

    pub(crate) fn enter(&mut self, node: u32) {
        self.count[node as usize] += 1;
    }

    /// Adds what an invocation spent itself; false, and nothing is added, where the sum of all would not fit.
    pub(crate) fn spend(&mut self, node: u32, time: i64) -> bool {
        let Some(total) = self.total.checked_add(time) else { return false };
        self.total = total;
        self.time[node as usize] += time;
        true
    }

    /// Drops what is needed to grow, and numbers groups by their place.
    pub(crate) fn settle(&mut self, places: &[u16]) {
        self.slots = Vec::new();
        for ContextStep { group, .. } in &mut self.steps {
            if *group != NOWHERE {
                *group = places[usize::from(*group)];
            }
        }
    }

    /// The same paths with other times, which must sum to no more than fits.
    pub(crate) fn with_times(&self, time: Vec<i64>) -> Self {
        let total = time.iter().sum();
        Self { time, total, slots: Vec::new(), ..self.clone() }
    }
}
