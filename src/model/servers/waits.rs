//! Hosts where nothing queues: a work takes as long beside many others as alone.
//!
//! A peer that only waits, such as a service of somebody else or one that sleeps, looks like a host with as many servers as were ever busy together. Taken for that it
//! would queue as soon as one more came, which no trace shows. So it competes with numbers of servers as one more explanation: a delay. Two things tell of it. Of as many servers as
//! were ever busy together, a part of all arrivals finds none that is free (Erlang's C): where that many were due and none came, there are no such servers. And a peer
//! that records no spans of its own is as likely a delay as a server: nothing is known of it but how long its callers wait.

use crate::lqn::submodel::{EntryIndex, Interaction, RequestKind, WorkTotal};
use crate::model::parts::Parts;
use crate::model::servers::fit::unlikelihood;
use crate::model::servers::occupancy::Occupancy;
use crate::solve::erlang_c;

/// A delay fits that is off by no more than so many standard errors: it competes with others, that may fit less.
pub const FITS: f64 = 3.0;

/// A service that records its spans works, and seldom only waits: the logarithm of 20.
const RARE: f64 = 2.996;

/// What is known of a host beside stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It records no spans of its own, or holds threads of a pool that calls wait for: it works or waits, and how few are there together tells of the threads.
    Unknown,
    /// It records spans, and pools of connections to it, or of all that call it, tell how few are there together: that nobody waits says little of its servers.
    Limited,
    /// It records spans.
    Works,
}

/// How unlikely it is that a host is a delay, as minus the logarithm of a weight; `None` where nothing can tell.
pub fn unlikelihood_of_delay(most_together: usize, known: Kind) -> Option<f64> {
    // What never was there together shows no queue, whatever there is.
    let most = (most_together > 1).then_some(most_together as u32)?;
    Some(match known {
        Kind::Unknown => 0.0,
        Kind::Limited | Kind::Works => unlikelihood(most) + RARE,
    })
}

/// How many arrivals were due to find all of so many servers busy, where none did; `present` are at work on average. It is minus the logarithm of how likely that is.
/// Where a pool limits a host none are: those that have to wait do not come.
pub fn due_to_wait(occupancy: &Occupancy, servers: u32, present: f64, kind: Kind) -> f64 {
    let each = present / occupancy.stations as f64;
    // Those at work keep all servers busy, or more.
    if kind == Kind::Limited || (servers as usize) < occupancy.most || occupancy.most < 2 || each >= f64::from(servers)
    {
        return 0.0;
    }
    occupancy.stays() as f64 * erlang_c(f64::from(servers), each)
}

/// Whether entries of a host recorded spans of their own. Calls to those that did show network latency, or it is time in which they pause; those that did not make no calls.
pub fn is_recorded(parts: &Parts<'_>, entries: &[EntryIndex]) -> bool {
    let works = |index: &EntryIndex| {
        let entry = parts.sub.entry(*index);
        let tells = |work: &WorkTotal| !work.requests.is_empty() || work.pauses.count > 0;
        entry.interaction != Interaction::Rendezvous || entry.work.values().any(tells)
    };
    if entries.iter().any(works) {
        return true;
    }
    let calls = parts.sub.entries().iter().flat_map(|caller| &caller.calls);
    let mut asked = false;
    for (label, call) in calls.filter(|(label, _)| label.kind == RequestKind::Synchronous) {
        if label.to.is_some_and(|to| entries.contains(&to)) {
            if call.network.0 != 0 {
                return true;
            }
            asked = true;
        }
    }
    !asked
}

#[cfg(test)]
mod tests {
    use super::{Kind, RARE, unlikelihood_of_delay};
    use crate::model::servers::fit::unlikelihood;

    #[test]
    fn what_was_never_there_together_tells_nothing() {
        assert_eq!(unlikelihood_of_delay(1, Kind::Unknown), None);
        assert_eq!(unlikelihood_of_delay(3, Kind::Unknown), Some(0.0));
        assert_eq!(unlikelihood_of_delay(3, Kind::Works), Some(unlikelihood(3) + RARE));
    }
}
