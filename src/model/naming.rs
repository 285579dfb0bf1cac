//! Names of tasks and entries: readable, unique, and dependent on nothing but what the elements are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::lqn::submodel::{ActivityTotal, EntryIndex, Interaction, SubModel, WorkTotal};
use crate::names::{Name, Names};

/// The alphabetical order of names: sums of floats depend on their order, so what they are over comes in that of its names.
#[derive(Debug, Default)]
pub struct Alphabet {
    /// The place of each name.
    places: Vec<u32>,
}

impl Alphabet {
    /// Of these names.
    pub fn of(names: &Names) -> Self {
        let mut order: Vec<Name> = (0..names.len() as u32).map(Name).collect();
        order.sort_unstable_by_key(|name| names.text(*name));
        let mut places = vec![0; order.len()];
        for (place, name) in (0..).zip(order) {
            places[name.index()] = place;
        }
        Self { places }
    }

    /// The activities of work in the order of their names.
    pub fn activities<'w>(&self, work: &'w WorkTotal) -> Vec<(Name, &'w ActivityTotal)> {
        let mut activities: Vec<(Name, &ActivityTotal)> =
            work.activities.iter().map(|(name, total)| (*name, total)).collect();
        activities.sort_unstable_by_key(|(name, _)| self.places.get(name.index()));
        activities
    }
}

/// Hands out names, adding `~2`, `~3` … where one is taken already.
#[derive(Debug, Default)]
pub struct Unique {
    taken: FxHashSet<Arc<str>>,
    next: FxHashMap<Arc<str>, u32>,
}

impl Unique {
    /// The name itself where it is free, else with the least number that is.
    pub fn claim(&mut self, wanted: &str) -> Arc<str> {
        let wanted: Arc<str> = wanted.into();
        if self.taken.insert(Arc::clone(&wanted)) {
            return wanted;
        }
        let next = self.next.entry(Arc::clone(&wanted)).or_insert(2);
        loop {
            let name: Arc<str> = format!("{wanted}~{next}").into();
            *next += 1;
            if self.taken.insert(Arc::clone(&name)) {
                return name;
            }
        }
    }
}

/// How a task is shown: its identifier, with `.2` and so on for further instances.
pub fn task_label(identifier: &str, instance: u32) -> String {
    if instance <= 1 { identifier.to_owned() } else { format!("{identifier}.{instance}") }
}

/// Names of the entries, in their order, which must be canonical.
///
/// An entry is named after its service, else after its task with a number. Within a task an asynchronous or forwarding
/// entry beside another of the same service has its type added, several of one type a number. Where entries
/// of several tasks would have one name, the names of their tasks keep them apart.
pub fn entry_names(model: &SubModel, entries: &[EntryIndex]) -> Vec<Arc<str>> {
    let within = names_within_tasks(model, entries);
    let mut users: HashMap<&str, BTreeSet<(Name, u32)>> = HashMap::new();
    for (&index, name) in entries.iter().zip(&within) {
        let entry = model.entry(index);
        users.entry(name).or_default().insert((entry.task, entry.instance));
    }
    let mut unique = Unique::default();
    entries
        .iter()
        .zip(&within)
        .map(|(&index, name)| {
            let entry = model.entry(index);
            if users[name.as_str()].len() > 1 {
                let task = task_label(model.names.text(entry.task), entry.instance);
                unique.claim(&format!("{task}.{name}"))
            } else {
                unique.claim(name)
            }
        })
        .collect()
}

fn names_within_tasks(model: &SubModel, entries: &[EntryIndex]) -> Vec<String> {
    type Service = (Name, u32, Name);
    let mut kinds: HashMap<Service, BTreeMap<Interaction, u32>> = HashMap::new();
    for &index in entries {
        let entry = model.entry(index);
        *kinds.entry((entry.task, entry.instance, entry.service)).or_default().entry(entry.interaction).or_default() +=
            1;
    }
    let mut numbers: HashMap<(Service, Option<Interaction>), u32> = HashMap::new();
    entries
        .iter()
        .map(|&index| {
            let entry = model.entry(index);
            let service = (entry.task, entry.instance, entry.service);
            let mut number = |kind: Option<Interaction>| {
                let number = numbers.entry((service, kind)).or_default();
                *number += 1;
                *number
            };
            if !entry.service.is_some() {
                let task = task_label(model.names.text(entry.task), entry.instance);
                return format!("{task}_{}", number(None));
            }
            let mut name = model.names.text(entry.service).to_owned();
            let beside = &kinds[&service];
            if beside.len() > 1 && entry.interaction != Interaction::Rendezvous {
                name.push('.');
                name.push_str(entry.interaction.label());
            }
            if beside[&entry.interaction] > 1 {
                name.push_str(&format!("_{}", number(Some(entry.interaction))));
            }
            name
        })
        .collect()
}
