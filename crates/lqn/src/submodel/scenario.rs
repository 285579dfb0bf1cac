//! What is kept of a scenario: how many operations, when they ran, how long they took, and how they were sampled.

use super::Moments;
use crate::kept_ids::KeptIds;
use crate::sketch::Sketch;
use crate::starts::Starts;
use crate::stays::Stays;

/// Traces by clocks that tell no date, such as those that count from the beginning of a recording: each was recorded for itself, however
/// their times compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undated {
    /// How many traces.
    pub traces: u64,
    /// Operations that start in them.
    pub operations: u64,
    /// From the first start to the last in each, nanoseconds, all together.
    pub nanoseconds: u64,
}

impl Undated {
    fn merge(&mut self, other: &Self) {
        self.traces = self.traces.saturating_add(other.traces);
        self.operations = self.operations.saturating_add(other.operations);
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }
}

/// A scenario, over all its operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioTotal {
    /// How many operations.
    pub operations: u64,
    /// How many of these are parts of operations only, whose beginning was lost.
    pub fragments: u64,
    /// How many of the fragments are all that is left of their operation.
    pub headless: u64,
    /// How many of the fragments are further parts of operations of which that was all.
    pub pieces: u64,
    /// How many of the fragments work on messages whose senders were not recorded.
    pub unlinked: u64,
    /// Of how many of these nothing was recorded of the sender's trace.
    pub apart: u64,
    /// How many spans of all were lost and inferred from others.
    pub mended: u64,
    /// How many operations more there were whose first span was lost. Completion counts them.
    pub beheaded: u64,
    /// How many of all failed, as far as traces tell.
    pub failures: u64,
    /// How many of all a sampler kept for what they are, such as slow or failed, as far as traces tell.
    pub chosen: u64,
    /// How many of all come from files that end too early and lack operations of all times.
    pub truncated: u64,
    /// How many of all were kept by a sampler that tells no probability, such as one that limits rates.
    pub unweighed: u64,
    /// The most traces a second that such a sampler keeps of a process, in thousandths; 0 where none tells it.
    pub limit: u64,
    /// How they were sampled, as far as traces tell.
    pub sampled: Sampled,
    /// The trace identifiers of those that tell nothing of it.
    pub ids: KeptIds,
    /// The trace identifiers of those that tell it.
    pub told_ids: KeptIds,
    /// The probability with which all were kept, as trace identifiers of this and other scenarios show it. Completion settles it; it is not saved.
    pub settled: Option<Settled>,
    /// Earliest and latest start of an operation, nanoseconds from the trace's epoch, where known.
    pub first_start: Option<i64>,
    /// Latest start.
    pub last_start: Option<i64>,
    /// Latest end.
    pub last_end: Option<i64>,
    /// Where between the earliest and the latest the others started; sub-models that were saved without it have nothing here.
    pub starts: Starts,
    /// What of it is by clocks that tell no date.
    pub undated: Undated,
    /// Response times of operations that have times: from the first event to the root thread's last.
    pub response: Moments,
    /// The step of the clocks, nanoseconds: the greatest number, from a million on, of which all times within operations are multiples. 1
    /// where there is none or no trace has it, 0 where all times are 0.
    pub grain: u64,
    /// How these times are spread; sub-models that were saved without it have nothing here.
    pub responses: Sketch,
    /// When operations were under way that are whole, from their begin to their response; sub-models that were saved without it have nothing here.
    pub stays: Stays,
    /// How many customers were seen at most to begin operations, each of them one after another; 0 where nobody tells.
    pub clients: u64,
    /// Times from the end of a customer's operation to the start of its next.
    pub think: Moments,
}

/// The greatest common divisor of two steps of clocks, nanoseconds. 0 is a multiple of every step. A divisor below 1 ms counts as 1: such a clock is fine enough.
#[must_use]
pub fn common_step(one: u64, other: u64) -> u64 {
    const LEAST: u64 = 1_000_000;
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    if (1..LEAST).contains(&one) { 1 } else { one }
}

impl ScenarioTotal {
    /// Takes in all operations of the other.
    pub fn merge(&mut self, other: &Self) {
        let least = |left: Option<i64>, right: Option<i64>| left.into_iter().chain(right).min();
        self.operations += other.operations;
        self.fragments += other.fragments;
        self.headless += other.headless;
        self.pieces += other.pieces;
        self.unlinked += other.unlinked;
        self.apart += other.apart;
        self.mended = self.mended.saturating_add(other.mended);
        self.beheaded += other.beheaded;
        self.failures += other.failures;
        self.chosen += other.chosen;
        self.truncated += other.truncated;
        self.unweighed += other.unweighed;
        self.limit = self.limit.max(other.limit);
        self.sampled.merge(&other.sampled);
        self.ids.merge(&other.ids);
        self.told_ids.merge(&other.told_ids);
        self.first_start = least(self.first_start, other.first_start);
        self.last_start = self.last_start.max(other.last_start);
        self.last_end = self.last_end.max(other.last_end);
        self.starts.merge(&other.starts);
        self.undated.merge(&other.undated);
        self.response.merge(&other.response);
        self.grain = common_step(self.grain, other.grain);
        self.responses.merge(&other.responses);
        self.stays.merge(&other.stays);
        self.clients = self.clients.max(other.clients);
        self.think.merge(&other.think);
    }
}

/// Of how many operations those stand that were kept in sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How many operations it is known of.
    pub operations: u64,
    /// Of how many these stand, in thousandths.
    pub thousandths: u64,
    /// The sum of the squares of how many each stands for, in thousandths; 0 of sub-models that were saved without it.
    pub squares: u64,
    /// As many arrivals tell the rate as well as counted requests do; 0 where none were counted.
    pub counted: u64,
}

/// What all scenarios together tell of the sampling of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Trace identifiers show the probability with which they were kept, in millionths of a millionth.
    Kept(u64),
    /// Others of its service were sampled in several ways, and its own trace identifiers are too few to tell.
    Mixed,
    /// They were kept for what they are, so that their trace identifiers tell nothing of the others.
    Chosen,
}

impl Settled {
    /// Parts of a probability.
    const PARTS: f64 = 1e12;

    /// Kept with that probability.
    #[must_use]
    pub fn kept(probability: f64) -> Self {
        Self::Kept((probability.clamp(0.0, 1.0) * Self::PARTS).round() as u64)
    }

    /// That probability, where it is known.
    #[must_use]
    pub fn probability(self) -> Option<f64> {
        match self {
            Self::Kept(parts) => Some(parts as f64 / Self::PARTS),
            Self::Mixed | Self::Chosen => None,
        }
    }
}

impl Sampled {
    /// Takes in an operation that stands for so many.
    pub fn add(&mut self, weight: f64) {
        self.add_alike(1, weight);
    }

    /// Takes in operations that stand for so many each.
    pub fn add_alike(&mut self, operations: u64, weight: f64) {
        let thousandths = |weight: f64| (operations as f64 * weight * 1000.0).round() as u64;
        self.operations = self.operations.saturating_add(operations);
        self.thousandths = self.thousandths.saturating_add(thousandths(weight));
        self.squares = self.squares.saturating_add(thousandths(weight * weight));
    }

    /// As how many operations that stand for equally many these tell a rate.
    pub fn effective(&self) -> f64 {
        if self.squares == 0 {
            return self.operations as f64;
        }
        let sum = self.thousandths as f64 / 1000.0;
        (sum * sum / (self.squares as f64 / 1000.0)).min(self.operations as f64)
    }

    /// How many operations one stands for on the mean, of those that record it; `None` where none does.
    pub fn mean_weight(&self) -> Option<f64> {
        (self.operations > 0).then(|| self.thousandths as f64 / 1000.0 / self.operations as f64)
    }

    fn merge(&mut self, other: &Self) {
        self.operations = self.operations.saturating_add(other.operations);
        self.thousandths = self.thousandths.saturating_add(other.thousandths);
        self.squares = self.squares.saturating_add(other.squares);
        self.counted = self.counted.saturating_add(other.counted);
    }
}
