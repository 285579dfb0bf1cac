//! Names as a file can carry them, and numbers.
//!
//! A name may hold whatever a trace holds. Files carry every name but those that are empty or have a quotation mark or
//! a control character: these characters become `_`, and where another element of the kind bears that name already,
//! `_2`, `_3` and so on are added. The mapping is the same in every language, and no two names become one.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{ActivityId, EntryId, GroupId, Model, ProcessorId, TaskId};

/// What stands for an element that is not there; the lint tells of it.
const NOTHING: &str = "undefined";

/// The names of a model's elements as they are written.
pub(super) struct Labels<'a> {
    processors: Vec<Cow<'a, str>>,
    groups: Vec<Cow<'a, str>>,
    tasks: Vec<Cow<'a, str>>,
    entries: Vec<Cow<'a, str>>,
    activities: Vec<Cow<'a, str>>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let mut activities: Vec<Cow<'a, str>> =
            model.activities.iter().map(|activity| Cow::Borrowed(&*activity.name)).collect();
        // Activities need names that differ within their task only.
        for task in &model.tasks {
            let own: Vec<ActivityId> =
                task.activities.iter().copied().filter(|id| id.index() < activities.len()).collect();
            let names = own.iter().map(|id| &model.activities[id.index()].name);
            for (id, name) in own.iter().zip(carried(names)) {
                activities[id.index()] = name;
            }
        }
        Self {
            processors: carried(model.processors.iter().map(|processor| &processor.name)),
            groups: carried(model.groups.iter().map(|group| &group.name)),
            tasks: carried(model.tasks.iter().map(|task| &task.name)),
            entries: carried(model.entries.iter().map(|entry| &entry.name)),
            activities,
        }
    }

    pub(super) fn processor(&self, id: ProcessorId) -> &str {
        self.processors.get(id.index()).map_or(NOTHING, |name| name)
    }

    pub(super) fn group(&self, id: GroupId) -> &str {
        self.groups.get(id.index()).map_or(NOTHING, |name| name)
    }

    pub(super) fn task(&self, id: TaskId) -> &str {
        self.tasks.get(id.index()).map_or(NOTHING, |name| name)
    }

    pub(super) fn entry(&self, id: EntryId) -> &str {
        self.entries.get(id.index()).map_or(NOTHING, |name| name)
    }

    pub(super) fn activity(&self, id: ActivityId) -> &str {
        self.activities.get(id.index()).map_or(NOTHING, |name| name)
    }
}

/// Whether no language can carry the character in a name.
fn is_forbidden(character: char) -> bool {
    character == '"' || character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// The names of one kind of elements as they are written.
fn carried<'a>(names: impl Iterator<Item = &'a Arc<str>> + Clone) -> Vec<Cow<'a, str>> {
    let is_carried = |name: &str| !name.is_empty() && !name.contains(is_forbidden);
    if names.clone().all(|name| is_carried(name)) {
        return names.map(|name| Cow::Borrowed(&**name)).collect();
    }
    let mut taken: FxHashSet<String> = names.clone().filter(|name| is_carried(name)).map(ToString::to_string).collect();
    let mut next: FxHashMap<String, u32> = FxHashMap::default();
    names
        .map(|name| {
            if is_carried(name) {
                return Cow::Borrowed(&**name);
            }
            let base = if name.is_empty() { "_".to_owned() } else { name.replace(is_forbidden, "_") };
            let number = next.entry(base.clone()).or_insert(1);
            let mut free = if *number == 1 { base.clone() } else { format!("{base}_{number}") };
            while !taken.insert(free.clone()) {
                *number += 1;
                free = format!("{base}_{number}");
            }
            Cow::Owned(free)
        })
        .collect()
}

/// A number that reads back as the same; `-1` gets a point, since alone it ends lists in the text language.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if value == -1.0 {
        "-1.0".to_owned()
    } else if size != 0.0 && !(1e-5..1e16).contains(&size) && size.is_finite() {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}
