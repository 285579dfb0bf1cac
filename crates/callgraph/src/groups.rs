//! Processor groups: the coordinates of vectors of processor time (2002 §3).

use crate::codes;
use crate::record::{Name, Tables};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use rustc_hash::{FxHashMap, FxHashSet};

/// Which processors count as one; every other processor is a group of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorGroups {
    groups: Vec<(String, Vec<String>)>,
}

impl ProcessorGroups {
    /// Groups by name, each with its processors.
    ///
    /// # Errors
    /// `G006` when a name comes twice, a processor is in two groups, or a group is empty.
    pub fn new(groups: Vec<(String, Vec<String>)>) -> Result<Self, Diagnostics> {
        let mut faults = Vec::new();
        let mut owner: FxHashMap<&str, &str> = FxHashMap::default();
        let mut names: FxHashSet<&str> = FxHashSet::default();
        let mut fault = |message: String| faults.push(Diagnostic::error(codes::BAD_GROUP, Place::Nowhere, message));
        for (name, processors) in &groups {
            if !names.insert(name) {
                fault(format!("there are two processor groups `{name}`"));
            }
            if processors.is_empty() {
                fault(format!("the processor group `{name}` has no processors"));
            }
            for processor in processors {
                if let Some(other) = owner.insert(processor, name) {
                    fault(format!("the processor `{processor}` is in the groups `{other}` and `{name}`"));
                }
            }
        }
        for (name, _) in &groups {
            if owner.get(name.as_str()).is_some_and(|group| group != name) {
                fault(format!("`{name}` is a processor group, and a processor of another one"));
            }
        }
        if faults.is_empty() { Ok(Self { groups }) } else { Err(Diagnostics(faults)) }
    }
}

/// The group of each processor that was met, numbered as they come.
#[derive(Clone, Debug)]
pub(crate) struct GroupTable {
    names: Vec<String>,
    given: usize,
    of: FxHashMap<String, u16>,
    known: FxHashMap<Name, u16>,
}

/// The name of the group of records that do not tell their processor.
const UNKNOWN: &str = "unknown";

impl GroupTable {
    pub(crate) fn new(groups: &ProcessorGroups) -> Self {
        let mut of = FxHashMap::default();
        for (number, (_, processors)) in groups.groups.iter().enumerate() {
            of.extend(processors.iter().map(|processor| (processor.clone(), number as u16)));
        }
        let names: Vec<String> = groups.groups.iter().map(|(name, _)| name.clone()).collect();
        Self { given: names.len(), names, of, known: FxHashMap::default() }
    }

    /// The group of a processor. Beyond 65,534 groups the others share the last one.
    pub(crate) fn of(&mut self, processor: Name, tables: &Tables) -> u16 {
        if let Some(&group) = self.known.get(&processor) {
            return group;
        }
        let text = Some(tables.text(processor)).filter(|text| !text.is_empty()).unwrap_or(UNKNOWN);
        let next = self.names.len().min(usize::from(u16::MAX) - 1) as u16;
        let group = *self.of.entry(text.to_owned()).or_insert(next);
        if usize::from(group) == self.names.len() {
            // A group may be called like a processor outside of it only by a slip; they are told apart all the same.
            let taken = self.names.iter().any(|name| name == text);
            self.names.push(if taken { format!("{text} (processor)") } else { text.to_owned() });
        }
        self.known.insert(processor, group);
        group
    }

    /// The groups in the order in which they are shown: those given as they were given, the others by name; and the place of each
    /// number in it.
    pub(crate) fn shown(&self) -> (Vec<String>, Vec<u16>) {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order[self.given..].sort_by(|a, b| self.names[*a].cmp(&self.names[*b]));
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number] = place as u16;
        }
        (order.into_iter().map(|number| self.names[number].clone()).collect(), places)
    }
}
