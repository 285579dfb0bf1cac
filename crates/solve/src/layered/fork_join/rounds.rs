//! What a branch does, in numbers: rounds of a delay and visits.

use crate::layered::chains::{ChainId, Decomposition, Item, NONE};
use crate::layered::fork_join::places::{Loop, Place};
use crate::layered::fork_join::{BranchPart, Does, visits_of};
use crate::layered::phase_times::{ChainTimes, Waits};
use crate::layered::submodels::station;
use crate::mva::{Discipline, Stay};
use crate::numeric::by_id::ById;
use crate::prepare::plan::ModelPlan;

/// What the numbers of a branch follow from.
pub(super) struct Loops<'a> {
    pub plan: &'a ModelPlan<'a>,
    pub decomposition: &'a Decomposition,
    pub waits: &'a Waits,
    pub times: &'a ById<ChainId, ChainTimes>,
    pub chain: ChainId,
}

impl Loops<'_> {
    /// The numbers of a part.
    pub fn of(&self, part: &BranchPart) -> Loop {
        let (item, is_shared) = match part.does {
            Does::Step(item) => (item, false),
            Does::Shared(item) => (item, true),
            Does::Fork(item) => {
                let delay = self.times[self.chain].items[item];
                return Loop { visits: part.visits, rounds: 1.0, delay, own: None, others: Vec::new() };
            }
            Does::Rest => return self.rest(part),
            Does::Station => return self.station(part),
            Does::All => return self.all(part),
        };
        let chain = &self.decomposition.chains[self.chain];
        let Item::Step { work, slot: own_slot, .. } = chain.items[item] else {
            return Loop { visits: 0.0, rounds: 1.0, delay: 0.0, own: None, others: Vec::new() };
        };
        let work = &self.plan.works[work];
        let shared = |slot: u32| part.slots.iter().find(|known| known.0 == slot).map(|known| known.1);
        let stay = |slot: u32| if slot == NONE { Stay::default() } else { self.waits.stays[self.chain][slot as usize] };
        let mut delay = work.think + work.slices * stay(own_slot).wait;
        let slice = work.slice * (1.0 + stay(own_slot).slowdown);
        let own = shared(own_slot).map(|station| self.shared((own_slot, station), work.slice));
        if own.is_none() {
            delay += work.slices * slice;
        }
        let mut others: Vec<(Place, f64)> = Vec::new();
        for item in &chain.items[item + 1..] {
            match *item {
                Item::Call { mean, slot, to, .. } => {
                    let service = self.waits.service[to.index()][0].mean;
                    match shared(slot) {
                        Some(station) => {
                            delay += mean * stay(slot).wait;
                            add(&mut others, self.shared((slot, station), service), mean);
                        }
                        None if is_shared => {}
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
        let delay = if is_shared { 0.0 } else { delay / work.slices };
        Loop { visits: part.visits, rounds: work.slices, delay, own, others }
    }

    /// A visit of a shared station.
    fn shared(&self, (slot, number): (u32, usize), service: f64) -> Place {
        let stay = self.waits.stays[self.chain][slot as usize];
        let place = self.decomposition.chains[self.chain].stations[slot as usize];
        let sharing = station(self.plan, self.decomposition, place).discipline == Discipline::Sharing;
        let others = if sharing { (stay.slowdown, self.waits.there[place]) } else { (0.0, None) };
        Place { slot, station: Some(number), time: service * (1.0 + stay.slowdown), others }
    }

    /// All that is not at shared stations: one delay.
    fn rest(&self, part: &BranchPart) -> Loop {
        Loop { visits: 1.0, rounds: 1.0, delay: self.apart(part), own: None, others: Vec::new() }
    }

    /// All that a branch does: as many rounds of a delay and a visit as there are visits on the mean.
    fn all(&self, part: &BranchPart) -> Loop {
        let visits = part.slots.iter().filter_map(|(slot, station)| self.visits(*slot, *station));
        let others: Vec<(Place, f64)> = visits.map(|(visits, place)| (place, visits)).collect();
        let rounds = 1.0 + others.iter().map(|(_, visits)| visits).sum::<f64>();
        Loop { visits: 1.0, rounds, delay: self.apart(part) / rounds, own: None, others }
    }

    /// The mean time that is not at shared stations.
    fn apart(&self, part: &BranchPart) -> f64 {
        let entries = &self.times[self.chain].entries;
        let total: f64 = entries.first().map_or(0.0, |phases| phases.iter().map(|time| time.mean).sum());
        let visits = part.slots.iter().filter_map(|(slot, station)| Some((*slot, self.visits(*slot, *station)?)));
        let longer = &self.waits.longer[self.chain];
        let shared: f64 = visits.map(|(slot, (visits, place))| visits * (place.time + longer[slot as usize])).sum();
        if shared < (1.0 - 1e-9) * total { total - shared } else { 0.0 }
    }

    /// All visits of a shared station as one.
    fn station(&self, part: &BranchPart) -> Loop {
        let found = part.slots.first().and_then(|(slot, station)| self.visits(*slot, *station));
        let (visits, own) = match found {
            Some((visits, place)) => (visits.min(1.0), Some(Place { time: place.time * visits.max(1.0), ..place })),
            None => (0.0, None),
        };
        Loop { visits, rounds: 1.0, delay: 0.0, own, others: Vec::new() }
    }

    /// How often a shared station is visited, and a visit.
    fn visits(&self, slot: u32, station: usize) -> Option<(f64, Place)> {
        let (visits, service) = visits_of(self.plan, self.decomposition, self.waits, self.chain, slot)?;
        Some((visits, self.shared((slot, station), service)))
    }
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
