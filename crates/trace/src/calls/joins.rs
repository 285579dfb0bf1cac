//! Where functions wait for their threads.

use dyelog_callgraph::{Call, CallTree, Key};
use rustc_hash::FxHashMap;

/// In so many of a hundred invocations a call has to begin after threads have ended for it to wait for them.
const MOST: u64 = 98;

/// By function and call: how often the call came after threads of the function, and how often all of these had ended.
#[derive(Default)]
pub struct Joins(FxHashMap<[Key; 2], (u64, u64)>);

impl Joins {
    /// Takes an invocation in, by its calls and threads in order.
    pub fn invocation(&mut self, calls: &CallTree, function: usize, children: &[u32]) {
        let mut ended: Option<i64> = None;
        for child in children {
            let call = &calls.calls()[*child as usize];
            if call.key.is_thread() {
                if waits(calls, *child as usize) {
                    let end = if call.inside.is_some() { call.inside.end } else { i64::MAX };
                    ended = Some(ended.map_or(end, |others| others.max(end)));
                }
            } else if let Some(ended) = ended {
                let (all, after) = self.0.entry([calls.calls()[function].key, call.key]).or_default();
                *all += 1;
                *after += u64::from(begin(call).is_some_and(|begin| ended <= begin));
            }
        }
    }

    /// Whether a call of a function waits for the threads that the function started before.
    pub fn before(&self, function: Key, call: Key) -> bool {
        self.0.get(&[function, call]).is_some_and(|(all, after)| after * 100 >= all * MOST)
    }
}

/// Whether the function that a thread belongs to waits for it at all.
pub fn waits(calls: &CallTree, thread: usize) -> bool {
    let around = calls.parent(thread).map(|parent| calls.calls()[parent].inside);
    let (Some(around), own) = (around, calls.calls()[thread].inside) else { return false };
    !around.is_some() || !own.is_some() || own.end <= around.end
}

/// When a call begins, on the clock of its caller; that is not known of one-way calls.
fn begin(call: &Call) -> Option<i64> {
    let interval = if call.collocated { call.inside } else { call.outside };
    Some(interval.begin).filter(|_| interval.is_some() && !call.detached)
}
