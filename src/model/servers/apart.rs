//! Whether instances of a task on one machine queue each for itself.
//!
//! A service of an event loop is started as often as its machine has cores. Each of these processes has the use of one core and a queue of its own, whatever the machine has:
//! others of its own instance make an invocation longer, and those of other instances do not. Where threads of all instances share all cores, all others make it longer by as
//! much. So the lengths of stays are regressed on both numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::lqn::stays::{Rank, Stay, UNDATED};
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::model::{deployment, load};
use crate::names::Name;

/// The fewest stays of a kind that tell.
const ENOUGH: f64 = 20.0;

/// By so many standard errors others of the own instance make stays longer than those of other instances do (ours).
const CLEAR: f64 = 4.0;

/// Those of other instances make stays longer by no more than this part of what those of the own one do,
const HARDLY: f64 = 0.25;

/// and by fewer standard errors (ours): where there are more processes than cores, both queue. Under round robin those of others show how many come, and reach five.
const UNCLEAR: f64 = 6.0;

/// Whether instances of a task on one machine queue each for itself; `false` where operations were sampled.
pub fn are_apart(sub: &SubModel, task: &str) -> bool {
    if !sub.scenarios.values().all(load::is_nearly_whole) {
        return false;
    }
    let totals: Vec<&EntryTotal> = deployment::entries_of(sub, task).filter(|entry| entry.stays.seen() > 0).collect();
    let Some(task) = totals.first().map(|entry| entry.task) else { return false };
    let own = sub.deployment.sites().filter(|(replica, ..)| replica.task == task);
    let machines: BTreeMap<u32, Name> = own.map(|(replica, _, site)| (site, replica.machine)).collect();
    let before: Option<Rank> = totals.iter().filter_map(|entry| entry.stays.complete_before()).min();
    let is_kept = |stay: &Stay| before.is_none_or(|before| stay.rank() < before) && stay.part != UNDATED;
    let stays = totals.iter().enumerate().flat_map(|(entry, total)| {
        total.stays.kept().into_iter().filter(is_kept).map(move |stay| ((entry, stay.part), stay))
    });
    Slopes::by(stays.collect(), &machines, |_| ()).values().any(Slopes::are_of_instances)
}

/// By how much a stay is longer for each other one that it found, in standard deviations of stays of its kind.
#[derive(Debug)]
pub(super) struct Slopes {
    /// Of those at its own site,
    own: f64,
    /// and at others on its machine.
    others: f64,
    /// The standard error of the difference,
    error: f64,
    /// and of the second.
    error_of_others: f64,
}

/// Sums over stays of one kind: count, sums, and sums of products of the length and both numbers.
type Moments = (f64, [f64; 3], [[f64; 3]; 3]);

/// A number for each, in their order.
fn numbers<K: Ord>(all: impl IntoIterator<Item = K>) -> BTreeMap<K, usize> {
    all.into_iter().collect::<BTreeSet<K>>().into_iter().zip(0..).collect()
}

impl Slopes {
    /// Of stays with their kinds, by which machine each site is on; kinds of a group are pooled, and groups of which too few tell have none.
    pub fn by<K: Ord + Copy, M: Ord + Copy, G: Ord>(
        mut stays: Vec<(K, Stay)>,
        machines: &BTreeMap<u32, M>,
        group: impl Fn(&K) -> G,
    ) -> BTreeMap<G, Self> {
        // What takes no time meets nobody.
        stays.retain(|(_, stay)| stay.length > 0);
        stays.sort_unstable_by_key(|(kind, stay)| (stay.start, stay.length, *kind, stay.site));
        let mut ends: Vec<(i64, usize)> = stays.iter().map(|(_, stay)| stay.end()).zip(0..).collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let (sites, kept) = (numbers(machines.keys().copied()), numbers(machines.values().copied()));
        let numbered = numbers(stays.iter().map(|(kind, _)| *kind));
        let mut kinds: Vec<Moments> = vec![Moments::default(); numbered.len()];
        let (mut at_site, mut at_machine) = (vec![0.0_f64; sites.len()], vec![0.0_f64; kept.len()]);
        let place = |(_, stay): &(K, Stay)| Some((*sites.get(&stay.site)?, kept[machines.get(&stay.site)?]));
        let places: Vec<Option<(usize, usize)>> = stays.iter().map(place).collect();
        for ((kind, stay), at) in stays.iter().zip(&places) {
            // At one time those that end come first, so that they are not found.
            while let Some((_, number)) = ends.next_if(|(end, _)| *end <= stay.start) {
                if let Some((site, machine)) = places[number] {
                    (at_site[site], at_machine[machine]) = (at_site[site] - 1.0, at_machine[machine] - 1.0);
                }
            }
            let Some((site, machine)) = *at else { continue };
            let (own, all) = (at_site[site], at_machine[machine]);
            let values = [stay.length as f64 * 1e-9, own, all - own];
            let (count, sums, products) = &mut kinds[numbered[kind]];
            *count += 1.0;
            for (one, value) in values.iter().enumerate() {
                sums[one] += value;
                values.iter().enumerate().for_each(|(other, more)| products[one][other] += value * more);
            }
            (at_site[site], at_machine[machine]) = (own + 1.0, all + 1.0);
        }
        // Pooled within kinds, each with the spread of its own lengths.
        let mut groups: BTreeMap<G, [[f64; 3]; 3]> = BTreeMap::new();
        let told = numbered.into_keys().zip(kinds).filter(|(_, (count, ..))| *count >= ENOUGH);
        for (kind, (count, sums, products)) in told {
            let pooled = groups.entry(group(&kind)).or_default();
            let within = |one: usize, other: usize| products[one][other] - sums[one] * sums[other] / count;
            let scale = (within(0, 0) / count).sqrt();
            if scale > 0.0 {
                for (one, row) in pooled.iter_mut().enumerate() {
                    for (other, sum) in row.iter_mut().enumerate() {
                        *sum += within(one, other) / if one == 0 || other == 0 { scale } else { 1.0 };
                    }
                }
            }
        }
        groups.into_iter().filter_map(|(group, pooled)| Some((group, Self::of(pooled)?))).collect()
    }

    /// Of sums of products of the length and both numbers, about their means.
    fn of(pooled: [[f64; 3]; 3]) -> Option<Self> {
        let [_, [_, own, both], [_, _, others]] = pooled;
        // Work of one thread finds no other of its own.
        if own <= 0.0 && others > 0.0 {
            let (slope, error) = (pooled[2][0] / others, others.sqrt().recip());
            return Some(Self { own: 0.0, others: slope, error, error_of_others: error });
        }
        let determinant = own * others - both * both;
        (determinant > f64::EPSILON * own * others).then(|| Self {
            own: (pooled[1][0] * others - pooled[2][0] * both) / determinant,
            others: (pooled[2][0] * own - pooled[1][0] * both) / determinant,
            error: ((own + others + 2.0 * both) / determinant).sqrt(),
            error_of_others: (own / determinant).sqrt(),
        })
    }

    fn are_of_instances(&self) -> bool {
        let is_alone = self.others < HARDLY * self.own && self.others < UNCLEAR * self.error_of_others;
        self.own - self.others > CLEAR * self.error && is_alone
    }

    /// By how much those at other sites make stays longer, in standard errors.
    pub fn of_others(&self) -> f64 {
        self.others / self.error_of_others
    }
}
