//! Facts about what templates recognise, and about the sub-model that it makes.

use crate::datalog::value::Value;
use crate::names::Name;
use crate::query::facts::TraceFacts;
use crate::query::schema::Own;
use crate::query::table::Table;
use crate::trace::NodeId;

impl TraceFacts<'_> {
    pub(super) fn fill_matches(&self, own: Own, table: &mut Table) {
        let (mut first_match, mut first_entry) = (1_u32, 0_u32);
        for part in &self.parts {
            let matched = self.matched(part);
            let node = |node: NodeId| Value::from(part.first_node + node);
            let entry = |entry: u32| Value::from(first_entry + entry);
            for (number, one) in (first_match..).zip(&matched.matches) {
                let number = Value::from(number);
                match own {
                    Own::Match => table.push(&[number, self.intern(&one.template)]),
                    Own::MatchNode => {
                        one.nodes.iter().for_each(|(name, id)| table.push(&[number, self.intern(name), node(*id)]));
                    }
                    Own::MatchValue => {
                        for (name, value) in &one.values {
                            if let Some(value) = value.value(self.names) {
                                table.push(&[number, self.intern(name), value]);
                            }
                        }
                    }
                    _ => {}
                }
            }
            match own {
                Own::Entry => {
                    for (number, one) in (0..).zip(&matched.entries) {
                        let task = one.task.map_or(Name::NONE, |task| self.names.task(task).name);
                        let interaction = self.intern(one.interaction.label());
                        table.push(&[entry(number), task.into(), one.service.into(), interaction]);
                    }
                }
                Own::Request => matched.requests.iter().for_each(|(from, to)| table.push(&[entry(*from), entry(*to)])),
                Own::Owner => matched.owners.iter().for_each(|(id, owner)| table.push(&[node(*id), entry(*owner)])),
                _ => {}
            }
            first_match += matched.matches.len() as u32;
            first_entry += matched.entries.len() as u32;
        }
    }
}
