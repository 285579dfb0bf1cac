//! What all recorders need.

use crate::lqn::model::{Model, TaskId};

/// No element.
pub(super) const NONE: u32 = u32::MAX;

/// Whether the task is a source of load.
pub(super) fn is_source(model: &Model, task: TaskId) -> bool {
    model.tasks[task.index()].scheduling.is_source()
}

/// Which operations a probe writes down: so many, after so many others.
#[derive(Debug)]
pub(super) struct Wanted {
    first: u64,
    last: u64,
    begun: u64,
    ended: bool,
    /// Operations that were written down whole.
    pub done: u64,
}

impl Wanted {
    pub fn new(skip: u64, operations: u64) -> Self {
        Self { first: skip, last: skip.saturating_add(operations), begun: 0, ended: operations == 0, done: 0 }
    }

    /// An operation begins; its number among those wanted, from 0, if it is one of them.
    pub fn begins(&mut self) -> Option<u64> {
        let number = self.begun;
        self.begun += 1;
        ((self.first..self.last).contains(&number) && !self.ended).then(|| number - self.first)
    }

    /// Nobody wants more.
    pub fn stop(&mut self) {
        self.ended = true;
    }

    pub fn satisfied(&self) -> bool {
        self.ended || self.done + self.first >= self.last
    }
}

/// Notes what a number stands for from now on; numbers that were not met yet stand for nothing.
pub(super) fn note<T: Copy>(notes: &mut Vec<T>, number: u32, note: T, nothing: T) {
    if notes.len() <= number as usize {
        notes.resize(number as usize + 1, nothing);
    }
    notes[number as usize] = note;
}
