//! Whether every reference leads somewhere, and names are borne once.

use rustc_hash::FxHashSet;

use crate::lint::Lint;
use crate::{ActivityId, Body, EntryId, Precedence, Task, Work, codes};

/// Counts of the model's elements.
#[derive(Clone, Copy)]
struct Sizes {
    processors: usize,
    groups: usize,
    tasks: usize,
    entries: usize,
    activities: usize,
}

/// All activities that a precedence names.
pub(super) fn activities_of(precedence: &Precedence) -> impl Iterator<Item = ActivityId> {
    precedence.join.activities().iter().copied().chain(precedence.followers())
}

/// Reports references to nothing, and elements that another than their owner lists.
pub(super) fn check(lint: &mut Lint<'_>) {
    let model = lint.model;
    let sizes = Sizes {
        processors: model.processors.len(),
        groups: model.groups.len(),
        tasks: model.tasks.len(),
        entries: model.entries.len(),
        activities: model.activities.len(),
    };
    for group in &model.groups {
        if group.processor.index() >= sizes.processors {
            dangling(lint, format!("group `{}`", group.name), "a processor");
        }
    }
    for task in &model.tasks {
        if let Some(what) = task_leads_to_nothing(task, sizes) {
            dangling(lint, format!("task `{}`", task.name), what);
        }
    }
    for entry in &model.entries {
        let item = || format!("entry `{}`", entry.name);
        let works: &[Work] = if let Body::Phases(phases) = &entry.body { phases } else { &[] };
        if entry.task.index() >= sizes.tasks {
            dangling(lint, item(), "a task");
        } else if matches!(entry.body, Body::Activities(first) if first.index() >= sizes.activities) {
            dangling(lint, item(), "an activity");
        } else if entry.forwarding.iter().any(|forwarding| forwarding.to.index() >= sizes.entries)
            || works.iter().any(|work| calls_nothing(work, sizes))
        {
            dangling(lint, item(), "an entry");
        }
    }
    for activity in &model.activities {
        let item = || format!("activity `{}`", activity.name);
        if activity.task.index() >= sizes.tasks {
            dangling(lint, item(), "a task");
        } else if calls_nothing(&activity.work, sizes)
            || activity.replies.iter().any(|entry| entry.index() >= sizes.entries)
        {
            dangling(lint, item(), "an entry");
        }
    }
    if lint.findings.is_empty() {
        ownership(lint);
    }
}

fn calls_nothing(work: &Work, sizes: Sizes) -> bool {
    work.calls.iter().any(|call| call.to.index() >= sizes.entries)
}

/// What a task refers to that is not there.
fn task_leads_to_nothing(task: &Task, sizes: Sizes) -> Option<&'static str> {
    let activities = task.activities.iter().copied().chain(task.precedences.iter().flat_map(activities_of));
    if task.processor.index() >= sizes.processors {
        Some("a processor")
    } else if task.group.is_some_and(|group| group.index() >= sizes.groups) {
        Some("a group")
    } else if task.fan_in.iter().chain(&task.fan_out).any(|(other, _)| other.index() >= sizes.tasks) {
        Some("a task")
    } else if task.entries.iter().any(|entry| entry.index() >= sizes.entries) {
        Some("an entry")
    } else if activities.into_iter().any(|activity| activity.index() >= sizes.activities) {
        Some("an activity")
    } else {
        None
    }
}

fn dangling(lint: &mut Lint<'_>, item: String, what: &str) {
    let message = format!("the {item} refers to {what} that is not in the model");
    lint.error(codes::DANGLING, item, message);
}

/// Whether each element is listed once, by its owner, and what belongs together lies in one task.
fn ownership(lint: &mut Lint<'_>) {
    let model = lint.model;
    let mut entries = vec![0u32; model.entries.len()];
    let mut activities = vec![0u32; model.activities.len()];
    for (task, index) in model.tasks.iter().zip(0usize..) {
        for id in &task.entries {
            entries[id.index()] += 1 + u32::from(model.entries[id.index()].task != index.into());
        }
        for id in &task.activities {
            activities[id.index()] += 1 + u32::from(model.activities[id.index()].task != index.into());
        }
        if let Some(group) = task.group
            && model.groups[group.index()].processor != task.processor
        {
            let message = format!("the task `{}` is in a group of another processor than its own", task.name);
            lint.error(codes::DANGLING, format!("task `{}`", task.name), message);
        }
        let foreign = |id: &ActivityId| model.activities[id.index()].task != index.into();
        let strange = task.precedences.iter().flat_map(activities_of).find(foreign);
        if let Some(id) = strange {
            let message = format!("a precedence of the task `{}` names the {}", task.name, lint.activity(id));
            lint.error(codes::DANGLING, format!("task `{}`", task.name), message);
        }
    }
    for (&times, index) in entries.iter().zip(0usize..) {
        let id = EntryId::from(index);
        let entry = &model.entries[index];
        if times != 1 {
            let message = format!("the entry `{}` is not listed once by its task", entry.name);
            lint.error(codes::DANGLING, lint.entry(id), message);
        }
        if matches!(entry.body, Body::Activities(first) if model.activities[first.index()].task != entry.task) {
            let message = format!("the entry `{}` begins with an activity of another task", entry.name);
            lint.error(codes::DANGLING, lint.entry(id), message);
        }
    }
    for (&times, index) in activities.iter().zip(0usize..) {
        let id = ActivityId::from(index);
        let activity = &model.activities[index];
        if times != 1 {
            let message = format!("the activity `{}` is not listed once by its task", activity.name);
            lint.error(codes::DANGLING, lint.activity(id), message);
        }
        let foreign = activity.replies.iter().find(|entry| model.entries[entry.index()].task != activity.task);
        if let Some(&entry) = foreign {
            let message =
                format!("the activity `{}` answers the {}, which is another task's", activity.name, lint.entry(entry));
            lint.error(codes::DANGLING, lint.activity(id), message);
        }
    }
}

/// Reports names that two elements of a kind bear.
pub(super) fn names(lint: &mut Lint<'_>) {
    let model = lint.model;
    let mut found: Vec<(String, String)> = Vec::new();
    let mut collect = |kind: &str, names: &mut dyn Iterator<Item = &str>| {
        let mut seen = FxHashSet::default();
        let twice = names.filter(|name| !seen.insert(*name));
        found.extend(twice.map(|name| (format!("{kind} `{name}`"), format!("there are two of the name `{name}`"))));
    };
    collect("processor", &mut model.processors.iter().map(|processor| &*processor.name));
    collect("group", &mut model.groups.iter().map(|group| &*group.name));
    collect("task", &mut model.tasks.iter().map(|task| &*task.name));
    collect("entry", &mut model.entries.iter().map(|entry| &*entry.name));
    for task in &model.tasks {
        let names = task.activities.iter().map(|id| &*model.activities[id.index()].name);
        collect("activity", &mut names.into_iter());
    }
    for (item, message) in found {
        lint.error(codes::DUPLICATE_NAME, item, message);
    }
}
