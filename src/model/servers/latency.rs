//! The constant latency of calls to peers that record no spans: network, connection handling, a proxy.
//!
//! The time of a call to such a peer holds the way there and back. Taken for demand, it makes servers look busier than they are, and predicted queues too long. A
//! server tells it from work: the next one begins as soon as the one before has left, while it is on the way. So of the latencies that no call is shorter than, the one
//! is taken with which lengths of stays are likeliest. It is the same for all calls: what varies cannot be told from work.

use crate::model::servers::fit::{CLEARLY, Fit, Known, fitted, unlikelihood_by_difference};
use crate::model::servers::occupancy::Occupancy;

/// A constant latency beside servers is so much less likely than none, as minus the logarithm of a weight (ours): all peers have some.
const LATENCY: f64 = 1.0;

/// Calls may be shorter than the latency by chance of errors: one in so many (ours).
const SHORTER: f64 = 0.001;

/// Latencies that are tried first, as parts of the shortest call.
const COARSE: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// Latencies that are tried beside the best of these.
const FINE: f64 = 0.125;

/// Latencies are no less than so many steps of the clock.
const STEPS: f64 = 4.0;

/// A latency that is a smaller part of the time of calls changes no answer (ours).
const LEAST: f64 = 0.02;

/// The part of calls that take longer than the latency, at least (ours).
const LEFT: f64 = 0.99;

/// Stays without a constant latency.
pub(super) struct Latency {
    pub fit: Fit,
    pub occupancy: Occupancy,
    /// The part of the time of its calls that is left to each entry.
    pub left: Vec<f64>,
    /// The part of the time of all calls that is left.
    pub left_of_all: f64,
    /// Seconds.
    pub seconds: f64,
    /// As a part of the shortest call.
    part: f64,
    /// Minus the logarithm of how likely it is.
    unlikelihood: f64,
}

/// The latency that explains stays clearly better than none.
pub(super) fn found(occupancy: &Occupancy, seen: f64, known: Known, fit: &Fit) -> Option<Latency> {
    let is_asked = known.busy.is_none() && occupancy.is_whole(1.0);
    if !is_asked {
        return None;
    }
    let shortest = occupancy.shortest(SHORTER) as f64;
    if COARSE[0] * shortest < STEPS * occupancy.grain() {
        return None;
    }
    let tried = |part: f64| {
        let nanoseconds = (shortest * part) as u64;
        let (without, left) = occupancy.without(nanoseconds);
        let left_of_all = without.own() / occupancy.own();
        // Where many calls are as short as the shortest, these are served in that time.
        let are_left = without.stays() as f64 >= LEFT * occupancy.stays() as f64;
        let told = are_left && left_of_all > 0.0 && 1.0 - left_of_all >= LEAST;
        if !told {
            return None;
        }
        let seen = seen * left_of_all;
        let fit = fitted(&without, 1.0, seen, known);
        let seconds = nanoseconds as f64 * 1e-9;
        let unlikelihood = unlikelihood_by_difference(&fit, &without, seen, known);
        let is_work = !fit.is_delay;
        is_work.then_some(Latency { fit, occupancy: without, left, left_of_all, seconds, part, unlikelihood })
    };
    let likelier = |one: &Latency, other: &Latency| one.unlikelihood.total_cmp(&other.unlikelihood);
    let best = COARSE.into_iter().filter_map(tried).min_by(likelier)?;
    let beside = [best.part - FINE, best.part + FINE].into_iter().filter(|part| *part > 0.0 && *part <= 1.0);
    let best = std::iter::once(best).chain(beside.filter_map(tried)).min_by(likelier)?;
    let without = unlikelihood_by_difference(fit, occupancy, seen, known);
    (best.unlikelihood + LATENCY + CLEARLY < without).then_some(best)
}
