//! Interlock: customers that never meet because they are there on behalf of the same customer.
//!
//! While a thread works for a customer of a reference task, that customer waits for it and can be nowhere else, nor can
//! any other thread that works for it, unless it forked. So of the customers that a thread finds at a server, those
//! behind whom the same customer of a source would have to stand are taken out, in the proportion in which each source
//! causes the load (compare Franks 1999, chapter 4). Branches of one fork, on the other hand, meet more often than
//! chance would have it, since they begin together.

use crate::layered::chains::{ChainId, ClientId, ClientKind, Decomposition};
use crate::layered::submodels::Layer;
use crate::mva;
use crate::numeric::by_id::{ById, Id};

/// By chain of another client: what part of a client's activity is on behalf of one of the customers or threads in it, which
/// waits.
pub(crate) type Shares = Vec<(ChainId, f64)>;

/// For how long a chain is active in a cycle of its client.
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
    pub decomposition: &'a Decomposition,
    /// By client.
    pub shares: &'a ById<ClientId, Shares>,
    /// By client: the part of its activity in which someone waits for it.
    pub blocking: &'a ById<ClientId, f64>,
    /// By client: the part of its visits to stations at which someone waits for it, or has just had the reply.
    pub arriving: &'a ById<ClientId, f64>,
    /// By client: mean time of a cycle.
    pub cycles: &'a ById<ClientId, f64>,
    /// By chain, where there are branches.
    pub activity: &'a ById<ChainId, Activity>,
    /// By first chain of the branches: whether what the fork takes is known.
    pub together: &'a ById<ChainId, Option<(f64, f64)>>,
}

/// More pairs of chains than this are left alone: in so large a layer each is a small part.
const MOST_PAIRS: usize = 40_000;
/// Smaller fractions do not matter.
const LEAST: f64 = 1e-3;

/// `(place, other place, fraction)` for a layer, as [`crate::mva::Network::interlock`] wants it.
pub(crate) fn interlock_fractions(layer: &Layer, overlap: &Overlap) -> Vec<(mva::ChainId, mva::ChainId, f64)> {
    let mut result = Vec::new();
    if layer.chains.len() * layer.chains.len() > MOST_PAIRS {
        return result;
    }
    for (place, &chain) in layer.chains.iter().enumerate() {
        for (other_place, &other) in layer.chains.iter().enumerate() {
            let fraction = fraction(chain, other, overlap);
            // A lone customer is not seen by itself in any case.
            let own = place == other_place
                && fraction
                    <= 1.0 / overlap.decomposition.clients[overlap.decomposition.chains[chain].client].population
                        + 1e-9;
            if fraction.abs() > LEAST && !own {
                result.push((mva::ChainId::at(place), mva::ChainId::at(other_place), fraction));
            }
        }
    }
    result
}

fn fraction(chain: ChainId, other: ChainId, overlap: &Overlap) -> f64 {
    let (client, other_client) =
        (overlap.decomposition.chains[chain].client, overlap.decomposition.chains[other].client);
    if matches!(overlap.decomposition.clients[client].kind, ClientKind::Open { .. }) {
        return 0.0;
    }
    if client == other_client && chain != other {
        return of_one(chain, other, overlap, true);
    }
    // Sources exclude each other as alternatives; a thread that both work for implies the source behind it.
    let (mut sources, mut threads) = (0.0, 0.0_f64);
    for (behind, share) in blocked_on_arrival(chain, overlap) {
        for (others_behind, other_share) in blocked_while_active(other, overlap) {
            let common = overlap.decomposition.chains[behind].client;
            if common == overlap.decomposition.chains[others_behind].client {
                let met = share * other_share * of_one(behind, others_behind, overlap, false);
                if matches!(overlap.decomposition.clients[common].kind, ClientKind::Customers(_)) {
                    sources += met;
                } else {
                    threads = threads.max(met);
                }
            }
        }
    }
    sources.max(threads).min(1.0)
}

/// Of two chains of a client: the part of the customers in the second that one in the first never finds, since it is there
/// itself. Branches of a fork it may find, and directly more often than chance would have it, as it may those that go on
/// beside it; what those that share servers wait for each other is known.
fn of_one(chain: ChainId, other: ChainId, overlap: &Overlap, directly: bool) -> f64 {
    let client = overlap.decomposition.chains[chain].client;
    let population = overlap.decomposition.clients[client].population;
    let met = match related(chain, other, overlap.decomposition) {
        Related::Branches(..) if !directly => return 0.0,
        Related::Branches(.., first) if overlap.together[first].is_some() => 0.0,
        Related::Branches(chain, other, _) => 1.0 / overlap.activity[chain].time.max(overlap.activity[other].time),
        Related::Parent(parent, branch) => {
            let (parent, branch) = (overlap.activity[parent], overlap.activity[branch]);
            branch.beside.min(parent.alone) / (parent.alone * branch.time)
        }
        Related::Not => 0.0,
    };
    let more = if met.is_finite() { met * overlap.cycles[client] } else { 0.0 };
    (1.0 - more).max(-50.0) / population
}

/// What two chains of a client are to each other.
enum Related {
    /// They belong to these branches of one fork, whose first chain is that.
    Branches(ChainId, ChainId, ChainId),
    /// One of them is this one, the other belongs to that branch of it.
    Parent(ChainId, ChainId),
    /// Nothing.
    Not,
}

fn related(chain: ChainId, other: ChainId, decomposition: &Decomposition) -> Related {
    let up = |chain: ChainId| {
        std::iter::successors(Some(chain), |chain| decomposition.chains[*chain].parent.map(|parent| parent.0))
    };
    let below = |top: ChainId, chain: ChainId| {
        up(chain).find(|chain| decomposition.chains[*chain].parent.is_some_and(|parent| parent.0 == top))
    };
    if chain == other {
        return Related::Not;
    }
    if let Some(branch) = below(chain, other) {
        return Related::Parent(chain, branch);
    }
    if let Some(branch) = below(other, chain) {
        return Related::Parent(other, branch);
    }
    let mut pairs = up(chain).flat_map(|chain| up(other).map(move |other| (chain, other)));
    let found = pairs.find_map(|(chain, other)| {
        let fork = decomposition.chains[chain]
            .fork
            .filter(|_| chain != other && decomposition.chains[chain].fork == decomposition.chains[other].fork);
        fork.map(|first| Related::Branches(chain, other, first))
    });
    found.unwrap_or(Related::Not)
}

/// The chains that are sure to be nowhere else as the chain comes to a station, itself included, with the part of its visits for which
/// that holds. They are blocked, or have just had the reply.
fn blocked_on_arrival<'a>(chain: ChainId, overlap: &'a Overlap) -> impl Iterator<Item = (ChainId, f64)> + 'a {
    blocked(chain, overlap, overlap.arriving)
}

/// The chains that are blocked while the chain is active, itself included, with the part of its activity for which that holds.
fn blocked_while_active<'a>(chain: ChainId, overlap: &'a Overlap) -> impl Iterator<Item = (ChainId, f64)> + 'a {
    blocked(chain, overlap, overlap.blocking)
}

fn blocked<'a>(
    chain: ChainId,
    overlap: &'a Overlap,
    parts: &ById<ClientId, f64>,
) -> impl Iterator<Item = (ChainId, f64)> + 'a {
    let client = overlap.decomposition.chains[chain].client;
    let part = parts[client];
    overlap.shares[client].iter().map(move |&(behind, share)| (behind, share * part)).chain([(chain, 1.0)])
}
