//! Consumers that take messages in batches: what they serve when batches are as large as the largest that was traced.

use std::borrow::Cow;

use crate::lqn::batches::BatchCosts;
use crate::lqn::{Body, EntryId, Model, Task, TaskId};
use crate::model::Origins;
use crate::solve::bounds::Resource;

fn costs(origins: Option<&Origins>, entry: EntryId) -> Option<BatchCosts> {
    origins?.entries.get(entry.index())?.batches
}

/// The work of each task in such batches, as a part of what it is in the batches that were traced: 1 where there are none.
pub(in crate::study) fn least_work(model: &Model, origins: Option<&Origins>) -> Vec<f64> {
    let least = |entry: &EntryId| costs(origins, *entry).map_or(1.0, |costs| costs.least());
    let of = |task: &Task| task.entries.iter().map(least).reduce(f64::max).unwrap_or(1.0);
    model.tasks.iter().map(of).collect()
}

/// How many times as much a resource serves in batches without end as in the largest that was traced; `None` where no consumer of batches works there.
pub(in crate::study) fn beyond_largest(model: &Model, origins: Option<&Origins>, resource: Resource) -> Option<f64> {
    let works_there = |place: &usize| match resource {
        Resource::Processor(processor) => model.tasks[*place].processor == processor,
        Resource::Task(task) => task.index() == *place,
    };
    let entries = (0..model.tasks.len()).filter(works_there).flat_map(|place| &model.tasks[place].entries);
    let costs = entries.filter_map(|entry| costs(origins, *entry));
    costs.map(|costs| costs.of_message(costs.most as f64) / costs.message).reduce(f64::max)
}

/// The model in which batches are as large as the largest that was traced.
pub(in crate::study) fn in_largest_batches<'m>(model: &'m Model, origins: Option<&Origins>) -> Cow<'m, Model> {
    let parts = least_work(model, origins);
    if parts.iter().all(|part| *part >= 1.0) {
        return Cow::Borrowed(model);
    }
    let mut model = model.clone();
    let part = |task: TaskId| parts[task.index()];
    for entry in &mut model.entries {
        if let Body::Phases(works) = &mut entry.body {
            for work in works {
                work.demand *= part(entry.task);
            }
        }
    }
    for activity in &mut model.activities {
        activity.work.demand *= part(activity.task);
    }
    Cow::Owned(model)
}
