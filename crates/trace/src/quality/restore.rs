//! The one event that was lost, where only one thing can have been lost. What that means: see the room's page.

use rustc_hash::FxHashSet;

use super::finding::{Fault, Finding};
use super::layout::Layout;
use crate::{Event, Kind, Operation, Origins, TaskId};

/// The signs of a loss.
#[derive(Default)]
struct Signs {
    thread_gap: Option<Finding>,
    no_end: Option<Finding>,
    task_gap: Option<Finding>,
    without_fork: Option<Finding>,
}

/// A place for an event.
#[derive(Clone, Copy)]
struct Gap {
    thread: u32,
    index: u32,
    task: TaskId,
    counter: u32,
}

const SEVERAL: &str = "more than one event is lost";

/// The event to put back, or why there is none.
pub(crate) fn lost_event(operation: &Operation, findings: &[Finding]) -> Result<Event, String> {
    let signs = Signs::of(findings)?;
    let gap = signs.gap(operation)?;
    let layout = Layout::new(operation);
    let kind = match (gap.index == 1, signs.no_end.is_some(), signs.without_fork) {
        (true, _, None) => Kind::Begin,
        (_, true, None) => Kind::End,
        (true, _, Some(_)) | (_, true, Some(_)) => return Err(SEVERAL.to_owned()),
        (false, false, Some(lacking)) => Kind::Fork(forked_from(&layout, gap.thread, &lacking)?),
        (false, false, None) => match possible_join(&layout, gap) {
            None => Kind::Activity,
            Some(thread) => {
                return Err(format!("the lost event may have been an activity as well as the join of thread {thread}"));
            }
        },
    };
    let mut event = Event::new(gap.thread, gap.index, kind, gap.task, gap.counter);
    event.origin = match operation.origins {
        Origins::Lines => operation.line,
        Origins::Items(_) => u32::MAX,
    };
    let mut whole = operation.clone();
    whole.events.push(event);
    if super::diagnose_by_passes(&whole).is_empty() {
        Ok(event)
    } else {
        Err("the gaps of thread and task do not fit together".to_owned())
    }
}

impl Signs {
    fn of(findings: &[Finding]) -> Result<Self, String> {
        let mut signs = Self::default();
        for finding in findings {
            let sign = match finding.fault {
                Fault::ThreadGap => &mut signs.thread_gap,
                Fault::NoEnd => &mut signs.no_end,
                Fault::TaskGap => &mut signs.task_gap,
                Fault::BeginWithoutFork => &mut signs.without_fork,
                Fault::SeveralRoots => continue,
                _ => return Err("there is other damage than a lost event".to_owned()),
            };
            if sign.replace(*finding).is_some() || finding.missing_count() > 1 {
                return Err(SEVERAL.to_owned());
            }
        }
        Ok(signs)
    }

    /// Where the event is missing.
    fn gap(&self, operation: &Operation) -> Result<Gap, String> {
        let event = |finding: &Finding| finding.event.map(|event| operation.events[event as usize]);
        let (thread, index) = match (self.thread_gap, self.no_end) {
            (Some(_), Some(_)) => return Err(SEVERAL.to_owned()),
            (Some(gap), None) => (event(&gap).map(|event| event.thread), Some(gap.missing.0)),
            (None, Some(last)) => {
                (event(&last).map(|event| event.thread), event(&last).and_then(|event| event.index.checked_add(1)))
            }
            (None, None) => return Err("no thread lacks an event".to_owned()),
        };
        let Some(task_gap) = self.task_gap else {
            return Err(if self.no_end.is_some() {
                "whether the thread was cut off or went on, and on which task, is not known".to_owned()
            } else {
                "no task shows a gap: the lost event was the last of its task, and the task is not known".to_owned()
            });
        };
        match (thread, index, event(&task_gap)) {
            (Some(thread), Some(index), Some(after)) => {
                Ok(Gap { thread, index, task: after.task, counter: task_gap.missing.0 })
            }
            _ => Err(SEVERAL.to_owned()),
        }
    }
}

/// Which of the two threads without a fork one that descends from the other can have forked.
fn forked_from(layout: &Layout<'_>, thread: u32, lacking: &Finding) -> Result<u32, String> {
    let forked: FxHashSet<u32> = layout.forks().map(|(_, thread)| thread).collect();
    let root = layout.threads().map(|thread| thread[0].group).find(|thread| !forked.contains(thread));
    let lacking = lacking.event.map(|event| layout.operation.events[event as usize].thread);
    let (Some(root), Some(lacking)) = (root, lacking) else { return Err(SEVERAL.to_owned()) };
    let mut below = FxHashSet::from_iter([lacking]);
    let mut open = vec![lacking];
    while let Some(parent) = open.pop() {
        for entry in layout.thread(parent) {
            if let Kind::Fork(child) = layout.operation.events[entry.event as usize].kind
                && below.insert(child)
            {
                open.push(child);
            }
        }
    }
    Ok(if below.contains(&thread) { root } else { lacking })
}

/// A thread that an event in the gap can have waited for: one that does not end after it, and is not joined. Its fork may be
/// anywhere else: it comes before the join by way of the thread's end.
fn possible_join(layout: &Layout<'_>, gap: Gap) -> Option<u32> {
    let joined: FxHashSet<u32> = layout.joins().map(|(_, thread)| thread).collect();
    if layout.forks().all(|(_, thread)| joined.contains(&thread)) {
        return None;
    }
    let next = |counter: u32| counter.checked_add(1);
    let in_thread =
        next(gap.index).and_then(|index| layout.thread(gap.thread).iter().find(|entry| entry.counter == index));
    let in_task = next(gap.counter).and_then(|counter| {
        let key = (gap.task.0, counter);
        let at = layout.by_task.partition_point(|entry| (entry.group, entry.counter) < key);
        layout.by_task.get(at).filter(|entry| (entry.group, entry.counter) == key)
    });
    let following = in_thread.into_iter().chain(in_task).map(|entry| entry.event).collect();
    let after = reachable(layout.operation.events.len(), &layout.arcs(), following);
    let candidates = layout.forks().filter(|(_, thread)| {
        let ends_after = layout.thread(*thread).last().is_some_and(|last| after[last.event as usize]);
        !ends_after && !joined.contains(thread)
    });
    candidates.map(|(_, thread)| thread).min()
}

/// What can be reached over arcs from some events, these included.
fn reachable(count: usize, arcs: &[(u32, u32)], from: Vec<u32>) -> Vec<bool> {
    let mut sorted = arcs.to_vec();
    sorted.sort_unstable();
    let mut reached = vec![false; count];
    let mut open = from;
    while let Some(event) = open.pop() {
        if std::mem::replace(&mut reached[event as usize], true) {
            continue;
        }
        let first = sorted.partition_point(|arc| arc.0 < event);
        open.extend(sorted[first..].iter().take_while(|arc| arc.0 == event).map(|arc| arc.1));
    }
    reached
}
