//! Nodes by their task node counters.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use dyelog_trace::toeg::NONE;
use dyelog_trace::{NodeId, Toeg};

/// The nodes of one operation by task and task node counter. Made when it is first asked, in time linear in the nodes.
#[derive(Clone, Debug, Default)]
pub struct TaskCounters(OnceCell<FxHashMap<(u32, u32), NodeId>>);

impl TaskCounters {
    /// The node with that counter on the task of that number; [`NONE`] where there is none.
    pub fn at(&self, toeg: &Toeg, task: i64, counter: i64) -> NodeId {
        let (Ok(task), Ok(counter)) = (u32::try_from(task), u32::try_from(counter)) else { return NONE };
        let nodes = self.0.get_or_init(|| {
            let events = (0..toeg.len() as NodeId).map(|node| (toeg.event(node), node));
            events.map(|(event, node)| ((event.task.0, event.counter), node)).collect()
        });
        nodes.get(&(task, counter)).copied().unwrap_or(NONE)
    }
}
