//! What a branch does, in numbers: rounds of a delay and visits.

use crate::layered::chains::{ChainId, Decomposition, Item, NONE};
use crate::layered::fork_join::places::{Loop, Place};
use crate::layered::fork_join::{BranchPart, visits_of};
use crate::layered::phase_times::{ChainTimes, Waits};
use crate::layered::submodels::station;
use crate::mva::{Discipline, Stay};
use crate::numeric::by_id::ById;
use crate::prepare::plan::ModelPlan;

impl Place {
    fn shared(
        plan: &ModelPlan,
        decomposition: &Decomposition,
        chain: ChainId,
        (slot, number): (u32, usize),
        service: f64,
        waits: &Waits,
    ) -> Self {
        let stay = waits.stays[chain][slot as usize];
        let place = decomposition.chains[chain].stations[slot as usize];
        let sharing = station(plan, decomposition, place).discipline == Discipline::Sharing;
        let others = if sharing { (stay.slowdown, waits.there[place]) } else { (0.0, None) };
        Self { slot, station: Some(number), time: service * (1.0 + stay.slowdown), others }
    }
}

/// The numbers of a part.
pub(super) fn of(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    times: &ById<ChainId, ChainTimes>,
    number: ChainId,
    part: &BranchPart,
) -> Loop {
    let chain = &decomposition.chains[number];
    let stays = &waits.stays[number];
    let Some(item) = part.item else { return whole(plan, decomposition, waits, times, number, part) };
    let Item::Step { work, slot: own_slot, .. } = chain.items[item] else {
        return Loop { visits: 0.0, rounds: 1.0, delay: 0.0, own: None, others: Vec::new() };
    };
    let work = &plan.works[work];
    let shared = |slot: u32| part.slots.iter().find(|known| known.0 == slot).map(|known| known.1);
    let stay = |slot: u32| if slot == NONE { Stay::default() } else { stays[slot as usize] };
    let mut delay = work.think + work.slices * stay(own_slot).wait;
    let slice = work.slice * (1.0 + stay(own_slot).slowdown);
    let at = |station: usize, slot: u32, service: f64| {
        Place::shared(plan, decomposition, number, (slot, station), service, waits)
    };
    let own = shared(own_slot).map(|station| at(station, own_slot, work.slice));
    if own.is_none() {
        delay += work.slices * slice;
    }
    let mut others: Vec<(Place, f64)> = Vec::new();
    for item in &chain.items[item + 1..] {
        match *item {
            Item::Call { mean, slot, to, .. } => {
                let service = waits.service[to.index()][0].mean;
                match shared(slot) {
                    Some(station) => {
                        delay += mean * stay(slot).wait;
                        add(&mut others, at(station, slot, service), mean);
                    }
                    None => {
                        let time = stay(slot).wait + service * (1.0 + stay(slot).slowdown);
                        add(&mut others, Place::apart(time), mean);
                    }
                }
            }
            Item::Send { .. } | Item::Flattened { .. } => {}
            Item::Step { .. } | Item::Fork { .. } => break,
        }
    }
    Loop { visits: part.visits, rounds: work.slices, delay: delay / work.slices, own, others }
}

/// Adds visits of a place, to those of the same one if there are any.
fn add(others: &mut Vec<(Place, f64)>, place: Place, mean: f64) {
    if mean <= 0.0 {
        return;
    }
    match others.iter_mut().find(|known| known.0.slot == place.slot) {
        Some((known, visits)) => {
            known.time = (known.time * *visits + place.time * mean) / (*visits + mean);
            *visits += mean;
        }
        None => others.push((place, mean)),
    }
}

/// The numbers of a branch that is one part.
fn whole(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    waits: &Waits,
    times: &ById<ChainId, ChainTimes>,
    number: ChainId,
    part: &BranchPart,
) -> Loop {
    let total: f64 = times[number].entries.first().map_or(0.0, |phases| phases.iter().map(|time| time.mean).sum());
    let mut delay = total;
    let mut rounds = 1.0;
    let mut others = Vec::new();
    for &(slot, station) in &part.slots {
        let Some((visits, service)) = visits_of(plan, decomposition, waits, number, slot) else { continue };
        let place = Place::shared(plan, decomposition, number, (slot, station), service, waits);
        delay -= visits * (place.time + waits.longer[number][slot as usize]);
        rounds += visits;
        others.push((place, visits));
    }
    let delay = if delay > 1e-9 * total { delay / rounds } else { 0.0 };
    Loop { visits: 1.0, rounds, delay, own: None, others }
}
