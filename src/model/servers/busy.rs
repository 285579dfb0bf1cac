//! Servers of hosts on which processor time was measured: how busy they were bounds their number from below.
//!
//! Where traces carry processor time, own time beyond it is whatever threads waited for. It tells of queueing at most: so a host has the fewest servers with which no
//! more queue than waited (M/M/k), and one server where that is enough to do the work at all.

use std::collections::{BTreeMap, BTreeSet};

use crate::lqn::submodel::{EntryIndex, Interaction};
use crate::model::config::Configuration;
use crate::model::demand::{is_measured, measured_time};
use crate::model::parts::Parts;
use crate::model::servers::discipline::Discipline;
use crate::model::servers::fit::MOST_SERVERS;
use crate::model::servers::observed::Observed;
use crate::model::servers::sampled::waiting;
use crate::model::servers::{Host, given, host_of, replicas};

/// The hosts that one server would be too few for, by name.
pub fn hosts(parts: &Parts<'_>, configuration: &Configuration, observed: &Observed) -> BTreeMap<String, Host> {
    let mut entries: BTreeMap<String, BTreeSet<EntryIndex>> = BTreeMap::new();
    for &index in &parts.entries {
        let entry = parts.sub.entry(index);
        if entry.interaction != Interaction::Customer && is_measured(entry) {
            entries.entry(host_of(parts, configuration, entry)).or_default().insert(index);
        }
    }
    let mut found = BTreeMap::new();
    for (name, entries) in entries {
        if given(configuration, &name).is_some() {
            continue;
        }
        let observed = observed.at(parts, &entries);
        let per_second = observed.seconds * observed.probability;
        let busy: f64 = entries.iter().map(|index| measured_time(parts.sub.entry(*index))).sum::<f64>() / per_second;
        let there: f64 = observed.all_present(parts, &entries) / observed.probability;
        let copies = replicas(configuration, &name);
        let each = busy / f64::from(copies);
        if each < 1.0 || !each.is_finite() {
            continue;
        }
        let first = each.floor() as usize + 1;
        let queued = (there / f64::from(copies) - each).max(0.0);
        let enough = |servers: &usize| waiting(*servers as f64, each) <= queued;
        let servers = (first..first.saturating_add(MOST_SERVERS)).find(enough).unwrap_or(first) as u32;
        let all = servers.saturating_mul(copies);
        let host = Host {
            servers: all,
            is_delay: false,
            discipline: Discipline::Sharing,
            copies,
            replicas: Some(copies),
            range: Some((first as u32, None)),
            most: there.ceil().max(2.0) as usize,
            utilization: busy / f64::from(all),
            measured: None,
            waits: false,
            or_waits: None,
            or_works: None,
            bound: None,
            alone: busy,
            latency: None,
            quota: None,
            is_throttled: false,
            machine: None,
            stands_still: false,
        };
        found.insert(name, host);
    }
    found
}
