//! Interlock: customers who never meet because they are there on behalf of the same customer.
//!
//! While a thread works for a customer of a reference task, that customer waits for it and can be nowhere else, nor can
//! any other thread that works for it, unless it forked. So of the customers that a thread finds at a server, those
//! behind whom the same customer of a source would have to stand are taken out, in the proportion in which each source
//! causes the load (compare Franks 1999, chapter 4). Branches of one fork, on the other hand, meet more often than
//! chance would have it, since they begin together.

use super::lanes::{Lanes, Root};
use super::layers::Layer;

/// By other group: what part of a group's activity is on behalf of one of its customers or threads, who waits.
pub(super) type Shares = Vec<(usize, f64)>;

/// What the fractions depend on.
pub(super) struct Overlap<'a> {
    pub lanes: &'a Lanes,
    /// By group.
    pub shares: &'a [Shares],
    /// By group: the part of its activity in which someone waits for it.
    pub blocking: &'a [f64],
    /// By group: mean time of a cycle.
    pub cycles: &'a [f64],
    /// By lane: executions in a cycle, of branches; and mean time of one.
    pub branches: &'a [(f64, f64)],
    /// By first lane of the branches: whether what the fork takes is known.
    pub together: &'a [Option<f64>],
}

/// More pairs of lanes than this are left alone: in so large a layer each is a small part.
const MOST_PAIRS: usize = 40_000;
/// Smaller fractions do not matter.
const LEAST: f64 = 1e-3;

/// `(chain, other chain, fraction)` for a layer, as [`super::mva::Network::unseen`] wants it.
pub(super) fn unseen(layer: &Layer, overlap: &Overlap) -> Vec<(usize, usize, f64)> {
    let mut result = Vec::new();
    if layer.lanes.len() * layer.lanes.len() > MOST_PAIRS {
        return result;
    }
    for (chain, &lane) in layer.lanes.iter().enumerate() {
        for (other_chain, &other) in layer.lanes.iter().enumerate() {
            let fraction = fraction(lane, other, overlap);
            // A lone customer is not seen by itself in any case.
            let own = chain == other_chain
                && fraction <= 1.0 / overlap.lanes.groups[overlap.lanes.lanes[lane].group].population + 1e-9;
            if fraction.abs() > LEAST && !own {
                result.push((chain, other_chain, fraction));
            }
        }
    }
    result
}

fn fraction(lane: usize, other: usize, overlap: &Overlap) -> f64 {
    let (group, other_group) = (overlap.lanes.lanes[lane].group, overlap.lanes.lanes[other].group);
    let population = overlap.lanes.groups[group].population;
    if matches!(overlap.lanes.groups[group].root, Root::Stream { .. }) {
        return 0.0;
    }
    if group == other_group && lane != other {
        let (fork, others_fork) = (overlap.lanes.lanes[lane].fork, overlap.lanes.lanes[other].fork);
        let ((count, time), (_, other_time)) = (overlap.branches[lane], overlap.branches[other]);
        let longer = time.max(other_time);
        // What branches that share servers wait for each other is known.
        let apart =
            fork.is_none() || fork != others_fork || fork.is_some_and(|first| overlap.together[first].is_some());
        if !apart && count * longer > 0.0 {
            return (1.0 - overlap.cycles[group] / (count * longer)).max(-50.0) / population;
        }
        return 1.0 / population;
    }
    // Sources exclude each other as alternatives; a thread that both work for implies the source behind it.
    let (mut sources, mut threads) = (0.0, 0.0_f64);
    for (behind, share) in behind(group, overlap) {
        for (others_behind, other_share) in self::behind(other_group, overlap) {
            if behind == others_behind {
                let met = share * other_share / overlap.lanes.groups[behind].population;
                if matches!(overlap.lanes.groups[behind].root, Root::Customers(_)) {
                    sources += met;
                } else {
                    threads = threads.max(met);
                }
            }
        }
    }
    sources.max(threads).min(1.0)
}

/// Who is blocked while the group is active, itself included, with the part of its activity for which that holds.
fn behind<'a>(group: usize, overlap: &'a Overlap) -> impl Iterator<Item = (usize, f64)> + 'a {
    let blocking = overlap.blocking[group];
    overlap.shares[group].iter().map(move |&(behind, share)| (behind, share * blocking)).chain([(group, 1.0)])
}
