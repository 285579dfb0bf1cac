//! Copies of tasks: requests spread evenly among them.

use crate::lqn::{Body, CallOrder, EntryId, Model, Multiplicity, Task, TaskId, Work};

/// Makes the callers of replicated tasks spread their requests: fan-out and fan-in between every caller and callee, and
/// so many fewer requests to each copy. A processor of a replicated task that has no copies of its own gets as many.
///
/// In the LQN language a caller with a fan-out of `f` makes its mean number of requests to each of `f` copies. Where it makes an exact number in all, it
/// still does: chance decides which copy gets each ([`CallOrder::Bernoulli`]).
pub fn spread(model: &mut Model) {
    if model.tasks.iter().all(|task| task.replicas <= 1)
        && model.processors.iter().all(|processor| processor.replicas <= 1)
    {
        return;
    }
    let mut tenants = vec![0_usize; model.processors.len()];
    for task in &model.tasks {
        tenants[task.processor.index()] += 1;
    }
    for task in &model.tasks {
        let processor = &mut model.processors[task.processor.index()];
        let finite = processor.multiplicity != Multiplicity::Infinite;
        if tenants[task.processor.index()] == 1 && processor.replicas == 1 && finite {
            processor.replicas = task.replicas;
        }
    }
    let owner: Vec<TaskId> = model.entries.iter().map(|entry| entry.task).collect();
    let replicas: Vec<u32> = model.tasks.iter().map(Task::copies).collect();
    let mut pairs: Vec<(TaskId, TaskId)> = Vec::new();
    let mut spread_calls = |from: TaskId, work: &mut Work| {
        for call in &mut work.calls {
            let to = owner[call.to.index()];
            let (out, _) = fans(replicas[from.index()], replicas[to.index()]);
            call.mean /= f64::from(out);
            if call.mean.fract() != 0.0 && work.call_order == CallOrder::Deterministic {
                work.call_order = CallOrder::Bernoulli;
            }
            pairs.push((from, to));
        }
    };
    for entry in &mut model.entries {
        if let Body::Phases(phases) = &mut entry.body {
            for work in phases {
                spread_calls(entry.task, work);
            }
        }
    }
    for activity in &mut model.activities {
        spread_calls(activity.task, &mut activity.work);
    }
    for number in 0..model.entries.len() {
        let from = owner[number];
        let to: Vec<EntryId> = model.entries[number].forwarding.iter().map(|forwarding| forwarding.to).collect();
        for (place, to) in to.into_iter().enumerate() {
            let to = owner[to.index()];
            let (out, _) = fans(replicas[from.index()], replicas[to.index()]);
            model.entries[number].forwarding[place].probability /= f64::from(out);
            pairs.push((from, to));
        }
        if let Some(rate) = &mut model.entries[number].open_arrival_rate {
            *rate /= f64::from(replicas[from.index()]);
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    for (from, to) in pairs {
        let (out, into) = fans(replicas[from.index()], replicas[to.index()]);
        if out > 1 {
            model.tasks[from.index()].fan_out.push((to, out));
        }
        if into > 1 {
            model.tasks[to.index()].fan_in.push((from, into));
        }
    }
}

/// Fan-out and fan-in between so many callers and so many callees: the least with which all are used alike.
fn fans(callers: u32, callees: u32) -> (u32, u32) {
    let (mut a, mut b) = (callers, callees);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (callees / a, callers / a)
}
