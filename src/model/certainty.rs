//! How far the work of entries may be from what a model has: by chance, by what was lost, and by what servers cannot be told apart.
//!
//! Of few invocations, as sampling leaves, the mean work and the number of calls stray. A wait whose span was lost looks like work. Of a service that records no spans nobody
//! knows how much of a call is work. And where several numbers of servers fit, each makes another part of the time of work.

use std::collections::BTreeMap;

use crate::lqn::sketch::NORMAL;
use crate::lqn::submodel::{EntryIndex, EntryTotal, WorkTotal};
use crate::model::load::Recording;
use crate::model::parts::{Customer, Parts};
use crate::model::servers::{Traced, by_callers};
use crate::model::{DemandSource, chance, fragments};

/// How far the work of an entry may be from what the model has, as parts of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkDoubt {
    /// The least and the most that it may be on average.
    pub range: (f64, f64),
    /// The standard deviation of what its rate is off by; entries of the same operations share it.
    pub rate: f64,
    /// The standard deviation of what its work and the number of its calls are off by beside that.
    pub chance: f64,
}

impl WorkDoubt {
    /// The work is known.
    pub const NONE: Self = Self { range: (1.0, 1.0), rate: 0.0, chance: 0.0 };
}

/// What makes the work of entries uncertain.
pub struct Certainty<'p> {
    parts: &'p Parts<'p>,
    traced: &'p Traced,
    /// The standard deviation of the rate at which each entry is called.
    rates: BTreeMap<EntryIndex, f64>,
    /// How long calls to each entry were on their way, seconds, all together.
    ways: BTreeMap<EntryIndex, f64>,
    /// The part of spans that was lost.
    lost: f64,
}

impl<'p> Certainty<'p> {
    /// Where this part of spans was lost.
    pub fn new(parts: &'p Parts<'p>, traced: &'p Traced, recording: &Recording, lost: f64) -> Self {
        let rate = |customer: &Customer| {
            let total = &customer.scenario_total;
            let alone = 1.0 / (total.operations.max(1) as f64).sqrt();
            chance::rate_error(total, recording).map_or(alone, |error| error / NORMAL)
        };
        let mut ways = BTreeMap::new();
        for (label, call) in parts.entries.iter().flat_map(|index| &parts.sub.entry(*index).calls) {
            if let Some(to) = label.to {
                *ways.entry(to).or_insert(0.0) += call.network.as_f64();
            }
        }
        Self { parts, traced, rates: by_callers(parts, rate), ways, lost }
    }

    /// Of an entry whose demand comes from these sources.
    pub fn of(&self, index: EntryIndex, sources: &[DemandSource]) -> WorkDoubt {
        let entry = self.parts.sub.entry(index);
        let invocations = entry.invocations.max(1) as f64;
        let rate = self.rates.get(&index).copied().unwrap_or(0.0);
        // Calls that only some operations make are as many as chance has it.
        let of_calls = (1.0 / invocations - rate * rate).max(0.0);
        if !sources.contains(&DemandSource::Exclusive) {
            return WorkDoubt { range: (1.0, 1.0), rate, chance: of_calls.sqrt() };
        }
        let known = invocations - (entry.inferred + entry.undated).min(entry.invocations) as f64;
        let chance = (of_calls + variation(entry) / known.max(1.0)).sqrt();
        // Of its own spans at least as many were lost as those of invocations whose calls are there.
        let lost = self.lost.max(entry.inferred as f64 / invocations);
        let lost = if lost > 0.0 { fragments::doubt_of(entry, lost).unwrap_or(0.0) } else { 0.0 };
        let (least, most) = self.traced.work_range(index);
        // What a service waits for that records nothing looks like work, as does a wait for one. Something else may have worked on messages whose work was not recorded.
        let sure = invocations - (entry.silent + entry.undated + entry.may_wait).min(entry.invocations) as f64;
        // Of what nobody recorded but callers all may be work, with what is taken for their way to it.
        let silent = entry.silent as f64 / invocations;
        let way = self.ways.get(&index).copied().unwrap_or(0.0) / entry.own_time().max(f64::MIN_POSITIVE);
        let whole = (1.0 + way) / self.traced.own(index).processor.max(f64::EPSILON);
        let most = most.max(1.0 + silent * (whole - 1.0).max(0.0));
        let range = (least * (1.0 - lost).max(0.0) * sure / invocations, most * (1.0 + lost));
        WorkDoubt { range, rate, chance }
    }
}

/// The squared coefficient of variation of the own time of an invocation; of work at several positions at most, as where all of it varies together.
fn variation(entry: &EntryTotal) -> f64 {
    let invocations = entry.invocations.max(1) as f64;
    let deviation = |work: &WorkTotal| {
        let (mean, visits) = (work.exclusive.mean().unwrap_or(0.0), work.exclusive.count as f64 / invocations);
        let squares = mean * mean * (1.0 + work.exclusive.cv2().unwrap_or(1.0));
        (visits * squares - (visits * mean).powi(2)).max(0.0).sqrt()
    };
    let mean = entry.own_time() / invocations;
    let deviation: f64 = entry.work.values().map(deviation).sum();
    if mean > 0.0 { (deviation / mean).powi(2) } else { 0.0 }
}
