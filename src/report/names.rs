//! What elements of a model are called where people read of them. Models name by rules of their own what traces have no name for:
//! customers, and the parts of an entry.

use std::borrow::Cow;
use std::sync::Arc;

use crate::lqn::results::Caller;
use crate::lqn::{ActivityId, EntryId, Model, ProcessorId, Scheduling, Task, TaskId};

/// What the names of customers begin with.
const CUSTOMERS: &str = "Cu_";

/// A task: customers are users of their scenario.
pub fn task(model: &Model, id: TaskId) -> Cow<'_, str> {
    let task = &model.tasks[id.index()];
    let scenario = task.name.strip_prefix(CUSTOMERS).filter(|_| task.scheduling == Scheduling::Reference);
    scenario.map_or(Cow::Borrowed(&*task.name), |scenario| format!("users of {scenario}").into())
}

/// A processor: that of customers is what these are.
pub fn processor(model: &Model, id: ProcessorId) -> Cow<'_, str> {
    let name = &model.processors[id.index()].name;
    let customers = |own: &Task| own.scheduling == Scheduling::Reference && own.processor == id && own.name == *name;
    let own = name.starts_with(CUSTOMERS).then(|| model.tasks.iter().position(customers)).flatten();
    own.map_or(Cow::Borrowed(&**name), |number| task(model, TaskId(number as u32)))
}

/// The model with customers, their entries and their processors, and the parts of entries, called as people read of them.
#[must_use]
pub fn for_people(model: &Model) -> Model {
    let mut named = model.clone();
    for (number, own) in model.tasks.iter().enumerate().filter(|(_, own)| own.scheduling == Scheduling::Reference) {
        let name: Arc<str> = task(model, TaskId(number as u32)).into();
        for entry in own.entries.iter().filter(|entry| model.entries[entry.index()].name == own.name) {
            named.entries[entry.index()].name = Arc::clone(&name);
        }
        let processor = &mut named.processors[own.processor.index()];
        if processor.name == own.name {
            processor.name = Arc::clone(&name);
        }
        named.tasks[number].name = name;
    }
    for (number, own) in named.activities.iter_mut().enumerate() {
        own.name = activity(model, ActivityId(number as u32)).into();
    }
    named
}

/// A source of load: the scenario of customers.
pub fn source(model: &Model, id: TaskId) -> &str {
    let name = &*model.tasks[id.index()].name;
    name.strip_prefix(CUSTOMERS).unwrap_or(name)
}

/// An entry: that of customers is what these are.
pub fn entry(model: &Model, id: EntryId) -> Cow<'_, str> {
    let entry = &model.entries[id.index()];
    let owner = &model.tasks[entry.task.index()];
    if owner.scheduling == Scheduling::Reference && entry.name == owner.name {
        task(model, entry.task)
    } else {
        Cow::Borrowed(&*entry.name)
    }
}

/// An activity: the part of its entry that it is, in words.
pub fn activity(model: &Model, id: ActivityId) -> Cow<'_, str> {
    let activity = &model.activities[id.index()];
    let entries = model.tasks[activity.task.index()].entries.iter().map(|entry| &*model.entries[entry.index()].name);
    let own = entries.filter_map(|entry| Some((entry, activity.name.strip_prefix(entry)?.strip_prefix('.')?)));
    let longest = own.max_by_key(|(entry, _)| entry.len());
    longest
        .and_then(|(entry, role)| Some(format!("{entry}, {}", words(role)?).into()))
        .unwrap_or(Cow::Borrowed(&*activity.name))
}

/// The caller.
pub fn caller(model: &Model, caller: Caller) -> Cow<'_, str> {
    match caller {
        Caller::Phase(id, _) | Caller::Forward(id) => entry(model, id),
        Caller::Activity(id) => activity(model, id),
    }
}

/// The words of a role such as `s0`, `b1.2` or `p2.b1x1.join`; `None` where it is no role.
fn words(role: &str) -> Option<String> {
    let mut words = Vec::new();
    for part in role.split('.') {
        let (letter, rest) = part.split_at_checked(1)?;
        let (rest, phase) = rest.split_once('p').unwrap_or((rest, ""));
        words.push(match (letter, part) {
            (_, "fork" | "join" | "quorum" | "skip") => part.to_owned(),
            ("s", _) => format!("step {}", rest.parse::<u32>().ok()?.checked_add(1)?),
            ("p", _) => format!("phase {}", rest.parse::<u32>().ok()?),
            ("b", _) => {
                let (number, variant) = rest.split_once('x').unwrap_or((rest, ""));
                number.parse::<u32>().ok()?;
                if variant.is_empty() { format!("fork {number}") } else { format!("fork {number} way {variant}") }
            }
            _ => format!("branch {}", part.parse::<u32>().ok()?),
        });
        if !phase.is_empty() {
            words.push(format!("phase {}", phase.parse::<u32>().ok()?));
        }
    }
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn roles_are_words() {
        for (role, said) in [
            ("s0", Some("step 1")),
            ("b1.2", Some("fork 1 branch 2")),
            ("b1x2.join", Some("fork 1 way 2 join")),
            ("p2.s0", Some("phase 2 step 1")),
            ("s0p2", Some("step 1 phase 2")),
            ("checkout", None),
            ("", None),
            ("s", None),
            ("s99999999999", None),
            ("é", None),
        ] {
            assert_eq!(words(role).as_deref(), said, "{role}");
        }
    }
}
