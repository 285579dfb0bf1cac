//! Interlock: customers who never meet because they are there on behalf of the same customer.
//!
//! While a thread works for a customer of a reference task, that customer waits for it and can be nowhere else, nor can
//! any other thread that works for it, unless it forked. So of the customers that a thread finds at a server, those
//! behind whom the same customer of a source would have to stand are taken out, in the proportion in which each source
//! causes the load (compare Franks 1999, chapter 4). Branches of one fork, on the other hand, meet more often than
//! chance would have it, since they begin together.

use crate::layered::chains::{Lanes, Root};
use crate::layered::submodels::Layer;

/// By lane of another group: what part of a group's activity is on behalf of one of the customers or threads in it, who
/// waits.
pub(crate) type Shares = Vec<(usize, f64)>;

/// For how long a lane is active in a cycle of its group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    /// In all.
    pub time: f64,
    /// Without what it waits for its branches.
    pub alone: f64,
    /// Of a branch: how much of its time its parent is at work, too.
    pub beside: f64,
}

/// What the fractions depend on.
pub(crate) struct Overlap<'a> {
    pub lanes: &'a Lanes,
    /// By group.
    pub shares: &'a [Shares],
    /// By group: the part of its activity in which someone waits for it.
    pub blocking: &'a [f64],
    /// By group: the part of its visits to stations at which someone waits for it, or has just had the reply.
    pub arriving: &'a [f64],
    /// By group: mean time of a cycle.
    pub cycles: &'a [f64],
    /// By lane, where there are branches.
    pub activity: &'a [Activity],
    /// By first lane of the branches: whether what the fork takes is known.
    pub together: &'a [Option<(f64, f64)>],
}

/// More pairs of lanes than this are left alone: in so large a layer each is a small part.
const MOST_PAIRS: usize = 40_000;
/// Smaller fractions do not matter.
const LEAST: f64 = 1e-3;

/// `(chain, other chain, fraction)` for a layer, as [`crate::mva::Network::unseen`] wants it.
pub(crate) fn unseen(layer: &Layer, overlap: &Overlap) -> Vec<(usize, usize, f64)> {
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
    if matches!(overlap.lanes.groups[group].root, Root::Stream { .. }) {
        return 0.0;
    }
    if group == other_group && lane != other {
        return of_one(lane, other, overlap, true);
    }
    // Sources exclude each other as alternatives; a thread that both work for implies the source behind it.
    let (mut sources, mut threads) = (0.0, 0.0_f64);
    for (behind, share) in away(lane, overlap) {
        for (others_behind, other_share) in self::behind(other, overlap) {
            let common = overlap.lanes.lanes[behind].group;
            if common == overlap.lanes.lanes[others_behind].group {
                let met = share * other_share * of_one(behind, others_behind, overlap, false);
                if matches!(overlap.lanes.groups[common].root, Root::Customers(_)) {
                    sources += met;
                } else {
                    threads = threads.max(met);
                }
            }
        }
    }
    sources.max(threads).min(1.0)
}

/// Of two lanes of a group: the part of the customers in the second that one in the first never finds, since it is there
/// itself. Branches of a fork it may find, and directly more often than chance would have it, as it may those that go on
/// beside it; what those that share servers wait for each other is known.
fn of_one(lane: usize, other: usize, overlap: &Overlap, directly: bool) -> f64 {
    let group = overlap.lanes.lanes[lane].group;
    let population = overlap.lanes.groups[group].population;
    let met = match related(lane, other, overlap.lanes) {
        Related::Branches(..) if !directly => return 0.0,
        Related::Branches(.., first) if overlap.together[first].is_some() => 0.0,
        Related::Branches(lane, other, _) => 1.0 / overlap.activity[lane].time.max(overlap.activity[other].time),
        Related::Parent(parent, branch) => {
            let (parent, branch) = (overlap.activity[parent], overlap.activity[branch]);
            branch.beside.min(parent.alone) / (parent.alone * branch.time)
        }
        Related::Not => 0.0,
    };
    let more = if met.is_finite() { met * overlap.cycles[group] } else { 0.0 };
    (1.0 - more).max(-50.0) / population
}

/// What two lanes of a group are to each other.
enum Related {
    /// They belong to these branches of one fork, whose first lane is that.
    Branches(usize, usize, usize),
    /// One of them is this one, the other belongs to that branch of it.
    Parent(usize, usize),
    /// Nothing.
    Not,
}

fn related(lane: usize, other: usize, lanes: &Lanes) -> Related {
    let up = |lane: usize| std::iter::successors(Some(lane), |lane| lanes.lanes[*lane].parent.map(|parent| parent.0));
    let below =
        |top: usize, lane: usize| up(lane).find(|lane| lanes.lanes[*lane].parent.is_some_and(|parent| parent.0 == top));
    if lane == other {
        return Related::Not;
    }
    if let Some(branch) = below(lane, other) {
        return Related::Parent(lane, branch);
    }
    if let Some(branch) = below(other, lane) {
        return Related::Parent(other, branch);
    }
    let mut pairs = up(lane).flat_map(|lane| up(other).map(move |other| (lane, other)));
    let found = pairs.find_map(|(lane, other)| {
        let fork =
            lanes.lanes[lane].fork.filter(|_| lane != other && lanes.lanes[lane].fork == lanes.lanes[other].fork);
        fork.map(|first| Related::Branches(lane, other, first))
    });
    found.unwrap_or(Related::Not)
}

/// Who is sure to be nowhere else as the lane comes to a station, itself included, with the part of its visits for which
/// that holds: whoever is blocked, or has just had the reply.
fn away<'a>(lane: usize, overlap: &'a Overlap) -> impl Iterator<Item = (usize, f64)> + 'a {
    held(lane, overlap, overlap.arriving)
}

/// Who is blocked while the lane is active, itself included, with the part of its activity for which that holds.
fn behind<'a>(lane: usize, overlap: &'a Overlap) -> impl Iterator<Item = (usize, f64)> + 'a {
    held(lane, overlap, overlap.blocking)
}

fn held<'a>(lane: usize, overlap: &'a Overlap, parts: &[f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
    let group = overlap.lanes.lanes[lane].group;
    let part = parts[group];
    overlap.shares[group].iter().map(move |&(behind, share)| (behind, share * part)).chain([(lane, 1.0)])
}
