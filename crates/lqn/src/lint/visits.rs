//! How often activities are done, once an entry is invoked.

use rustc_hash::FxHashMap;

use crate::{ActivityId, Fork, Join, Model, Task};

/// The precedence of its task by which each activity leads on, by position; of several the first.
pub fn leaving(model: &Model) -> Vec<Option<usize>> {
    let mut leaving = vec![None; model.activities.len()];
    for task in &model.tasks {
        for (precedence, number) in task.precedences.iter().zip(0usize..) {
            for &activity in precedence.join.activities() {
                leaving[activity.index()].get_or_insert(number);
            }
        }
    }
    leaving
}

/// How many activities are looked at in a model, those that several entries share as often as they do: beyond that nothing is
/// said of how often they are done.
pub const BUDGET: usize = 5_000_000;

/// The mean number of times that each activity is done in one invocation of an entry that begins with `first`; `None` where
/// they follow each other in a circle, or where the budget is spent. `leaving` is of the whole model.
pub fn visits(
    task: &Task,
    first: ActivityId,
    leaving: &[Option<usize>],
    budget: &mut usize,
) -> Option<FxHashMap<ActivityId, f64>> {
    // How many of the activities before each precedence are reached and not yet counted.
    let mut missing: FxHashMap<usize, usize> = FxHashMap::default();
    let mut reached: FxHashMap<ActivityId, usize> = FxHashMap::default();
    let mut next = vec![first];
    reached.insert(first, 0);
    while let Some(activity) = next.pop() {
        *budget = budget.checked_sub(1)?;
        let Some(number) = leaving[activity.index()] else { continue };
        let waiting = missing.entry(number).or_default();
        *waiting += 1;
        if *waiting > 1 {
            continue;
        }
        for follower in task.precedences[number].followers() {
            let sources = reached.entry(follower).or_insert_with(|| {
                next.push(follower);
                0
            });
            *sources += 1;
        }
    }
    let mut done: FxHashMap<ActivityId, f64> = FxHashMap::default();
    let mut coming: FxHashMap<ActivityId, f64> = FxHashMap::default();
    coming.insert(first, 1.0);
    let mut ready = if reached[&first] == 0 { vec![first] } else { Vec::new() };
    while let Some(activity) = ready.pop() {
        done.insert(activity, coming[&activity]);
        let Some(number) = leaving[activity.index()] else { continue };
        let waiting = missing.entry(number).or_default();
        *waiting = waiting.saturating_sub(1);
        if *waiting > 0 {
            continue;
        }
        let precedence = &task.precedences[number];
        let counted = precedence.join.activities().iter().filter_map(|before| done.get(before));
        let times = match precedence.join {
            Join::Or(_) => counted.sum(),
            // All branches of a fork are done equally often.
            Join::Sequence(_) | Join::And { .. } => counted.copied().fold(0.0, f64::max),
        };
        let mut arrive = |follower: ActivityId, times: f64| {
            *coming.entry(follower).or_default() += times;
            let sources = reached.entry(follower).or_default();
            *sources = sources.saturating_sub(1);
            if *sources == 0 {
                ready.push(follower);
            }
        };
        match &precedence.fork {
            None => {}
            Some(Fork::Sequence(follower)) => arrive(*follower, times),
            Some(Fork::And(followers)) => followers.iter().for_each(|&follower| arrive(follower, times)),
            Some(Fork::Or(branches)) => {
                // One of them is taken; where probabilities miss 1, that is reported as such.
                let total: f64 = branches.iter().map(|&(part, _)| part).sum();
                let times = if total > 0.0 { times / total } else { 0.0 };
                for &(part, follower) in branches {
                    arrive(follower, part * times);
                }
            }
            Some(Fork::Loop { bodies, end }) => {
                for &(mean, follower) in bodies {
                    arrive(follower, mean * times);
                }
                if let Some(end) = end {
                    arrive(*end, times);
                }
            }
        }
    }
    (done.len() == reached.len()).then_some(done)
}
