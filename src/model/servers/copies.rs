//! Which copy of a host each instance of its tasks is at.

use std::collections::{BTreeMap, BTreeSet};

use crate::lqn::deployment::{Replica, Seen};
use crate::lqn::submodel::EntryIndex;
use crate::model::config::Configuration;
use crate::model::parts::Parts;
use crate::names::Name;

/// An instance that takes the place of another may be there beside it for this part of the shorter of both lives.
const HANDED_OVER: f64 = 0.05;

/// Which copy of a host each instance is at, by the number that tells instances apart; nothing where there are no copies, or it cannot be told.
pub fn copies(
    parts: &Parts<'_>,
    configuration: &Configuration,
    processor: &str,
    entries: &[EntryIndex],
) -> BTreeMap<u32, usize> {
    let replicas = configuration.processors.get(processor).and_then(|settings| settings.replicas).unwrap_or(1);
    let tasks: BTreeSet<Name> = entries.iter().map(|index| parts.sub.entry(*index).task).collect();
    let by = |copy: fn(&Replica) -> Name| {
        let mut lives: BTreeMap<Name, Life> = BTreeMap::new();
        for (replica, seen, site) in parts.sub.deployment.sites().filter(|(replica, ..)| tasks.contains(&replica.task))
        {
            lives.entry(copy(replica)).or_default().add(seen, site);
        }
        if replicas > 1 { placed(lives.into_values().collect(), replicas as usize) } else { None }
    };
    // Instances are at one copy where they are on one machine.
    let instances = if tasks.len() > 1 { None } else { by(|replica| replica.instance) };
    instances.or_else(|| by(|replica| replica.machine)).unwrap_or_default()
}

/// When something was there that is a copy of a host for that time: from its first invocation to its last.
#[derive(Default)]
struct Life {
    first: i64,
    last: i64,
    sites: Vec<u32>,
}

impl Life {
    fn add(&mut self, seen: &Seen, site: u32) {
        let is_new = self.sites.is_empty();
        self.first = if is_new { seen.first } else { self.first.min(seen.first) };
        self.last = if is_new { seen.last } else { self.last.max(seen.last) };
        self.sites.push(site);
    }

    fn length(&self) -> u64 {
        self.first.abs_diff(self.last)
    }
}

/// At which of so many copies each site is. One that begins when another has ended takes its place, as a process that was started again does; `None` where more were there together.
fn placed(mut lives: Vec<Life>, copies: usize) -> Option<BTreeMap<u32, usize>> {
    if lives.len() < copies {
        return None;
    }
    lives.sort_unstable_by(|left, right| {
        (left.first, left.last, &left.sites).cmp(&(right.first, right.last, &right.sites))
    });
    let (mut places, mut ends): (BTreeMap<u32, usize>, Vec<&Life>) = (BTreeMap::new(), Vec::with_capacity(copies));
    for life in &lives {
        let copy = if ends.len() < copies {
            ends.push(life);
            ends.len() - 1
        } else {
            let (copy, before) = ends.iter().enumerate().min_by_key(|(_, before)| before.last)?;
            let overlap = before.last.saturating_sub(life.first).max(0) as f64;
            // One is started while another still ends what it has begun.
            if overlap > HANDED_OVER * before.length().min(life.length()) as f64 {
                return None;
            }
            ends[copy] = life;
            copy
        };
        places.extend(life.sites.iter().map(|site| (*site, copy)));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Life, placed};

    fn lives(of: &[(i64, i64)]) -> Vec<Life> {
        let life = |(site, (first, last)): (usize, &(i64, i64))| Life {
            first: *first,
            last: *last,
            sites: vec![site as u32 + 1],
        };
        of.iter().enumerate().map(life).collect()
    }

    #[test]
    fn instances_that_follow_each_other_are_at_one_copy() {
        let places = |of, copies| placed(lives(of), copies);
        let all = |of: [usize; 4]| Some(BTreeMap::from([(1, of[0]), (2, of[1]), (3, of[2]), (4, of[3])]));
        // Two recordings of two instances each.
        assert_eq!(places(&[(0, 100), (1, 99), (500, 600), (501, 600)], 2), all([0, 1, 1, 0]));
        // One after the other is started again while the old one ends its last invocations.
        assert_eq!(places(&[(0, 100), (1, 200), (98, 290), (199, 300)], 2), all([0, 1, 0, 1]));
        assert_eq!(places(&[(0, 100), (1, 99), (50, 300), (60, 300)], 2), None);
        assert_eq!(places(&[(0, 100)], 2), None);
        assert_eq!(places(&[(0, 9), (0, 9), (0, 9), (0, 9)], 4), all([0, 1, 2, 3]));
    }
}
