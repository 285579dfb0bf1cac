//! Threads of a task, as sequential instances of it.

use rustc_hash::FxHashMap;

use crate::event::Task;
use crate::{TaskId, TraceNames};
use dyelog_diagnostic::names::Name;

/// Gives the threads of each task instance numbers, from 1 in the order of arrival.
#[derive(Debug, Default)]
pub struct Threads {
    known: FxHashMap<(Name, Name), TaskId>,
    counts: FxHashMap<Name, u32>,
}

impl Threads {
    /// The task of a name and a thread, which is empty where tasks have one only.
    pub fn task(&mut self, names: &mut TraceNames, name: &str, thread: &str) -> TaskId {
        if thread.is_empty() {
            return names.intern_task(name, 1);
        }
        let key = (names.names.intern(name), names.names.intern(thread));
        *self.known.entry(key).or_insert_with(|| {
            let count = self.counts.entry(key.0).or_default();
            *count += 1;
            names.intern_task_named(Task { name: key.0, instance: *count })
        })
    }
}
