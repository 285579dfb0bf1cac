//! Clocks that differ, per pair of machines or services.
//!
//! A server works within the time that its client waits. Where it seems not to, its clock is off, and by the same amount in
//! all calls between the two: each call bounds the amount from both sides, and the amount that satisfies most calls is
//! taken (the classical bounds of clock synchronisation, of all calls at once). A server that takes longer than its client waits has a second
//! phase; such a call only says that the server began while the client waited, and proposes no offset. Nothing is moved
//! where no offset satisfies more calls than none does. Where servers have second phases, those may be why a server ends after its client: then an offset is taken only if hardly
//! any server does so with it.
//!
//! Clocks drift, and are set. Where an offset of its own for each of several periods of time satisfies at least 5% more of the calls, the
//! offset goes from the one to the next in straight lines.
//!
//! Without a client half, only the time of the calling visit bounds the amount, and work that is simply deferred looks the
//! same; so there an offset is taken only if three calls agree on it, and a drift only if one straight line satisfies nearly all calls, and clearly more
//! than any offset does that does not change.
//!
//! What names one machine has one clock. Where calls between services that name the same one contradict that, by more than clocks stray and most of them
//! alike, the name is no machine's, and each of them has a clock of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::spans::model::Clock;
use crate::spans::pipeline::SLACK;
use dyelog_diagnostic::names::Name;

/// The fewest calls that contradict a common clock.
const ENOUGH: usize = 10;

/// So many calls make a period of time with an offset of its own.
const PERIOD: usize = 20;

/// More periods than that are not told apart.
const MOST_PERIODS: usize = 64;

/// From this part of calls on, servers that take longer than their clients wait tell of second phases: (2, 100).
const SOME: (usize, usize) = (2, 100);

/// No more than this part is hardly any: (10, 100).
const FEW: (usize, usize) = (10, 100);

/// What one call says of the offset between two clocks.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// When, by the callee's clock.
    at: i64,
    low: i64,
    high: i64,
}

impl Bound {
    fn allows(&self, offset: i64) -> bool {
        self.low <= offset && offset <= self.high
    }
}

/// The bounds that calls set on the offset between two clocks.
#[derive(Clone, Debug, Default)]
struct Bounds {
    /// The server works within the client's time.
    strong: Vec<Bound>,
    /// The server works within the time of the calling visit.
    weak: Vec<Bound>,
    /// The server begins within the client's time.
    starts: Vec<Bound>,
}

/// The offset of a clock over time: at each of these times of its own, linear between them.
#[derive(Clone, Debug)]
struct Offset(Vec<(i64, i64)>);

/// Collects bounds, then offsets.
#[derive(Debug, Default)]
pub struct Skew {
    bounds: FxHashMap<(Clock, Clock), Bounds>,
    offsets: FxHashMap<(Clock, Clock), Offset>,
    /// Names of machines whose services have clocks that differ.
    several: FxHashSet<Name>,
}

/// What one call tells about two clocks: start and end at the caller, start and end at the callee.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The caller's clock.
    pub from: Clock,
    /// The callee's clock.
    pub to: Clock,
    /// The time that bounds the callee's.
    pub outer: (i64, i64),
    /// The callee's time.
    pub inner: (i64, i64),
    /// Whether the caller recorded the call itself.
    pub client: bool,
}

impl Skew {
    /// Takes in a call.
    pub fn observe(&mut self, call: Observation) {
        if call.from == call.to {
            return;
        }
        let at = call.inner.0;
        let low = call.outer.0.saturating_sub(call.inner.0);
        let high = call.outer.1.saturating_sub(call.inner.1);
        let bounds = self.bounds.entry((call.from, call.to)).or_default();
        match (low <= high, call.client) {
            (true, true) => bounds.strong.push(Bound { at, low, high }),
            (true, false) => bounds.weak.push(Bound { at, low, high }),
            (false, true) => {
                let high = call.outer.1.saturating_sub(call.inner.0);
                bounds.starts.push(Bound { at, low, high });
            }
            (false, false) => {}
        }
    }

    /// Decides on the offsets.
    pub fn fit(&mut self) {
        let all = std::mem::take(&mut self.bounds);
        let contradict = |((from, to), bounds): (&(Clock, Clock), &Bounds)| {
            from.machine().filter(|machine| to.machine() == Some(*machine) && bounds.contradict_one_clock())
        };
        self.several = all.iter().filter_map(contradict).collect();
        let mut together: FxHashMap<(Clock, Clock), Bounds> = FxHashMap::default();
        for ((from, to), bounds) in all {
            let (from, to) = (self.clock(from), self.clock(to));
            if from != to {
                together.entry((from, to)).or_default().append(bounds);
            }
        }
        for (pair, bounds) in together {
            if let Some(offset) = bounds.offset() {
                self.offsets.insert(pair, offset);
            }
        }
    }

    /// The clock that a span was recorded by: that of its machine, unless the name is that of several.
    pub fn clock(&self, clock: Clock) -> Clock {
        let is_several = clock.machine().is_some_and(|machine| self.several.contains(&machine));
        if is_several { clock.of_service() } else { clock.of_machine() }
    }

    /// Names of machines whose services have clocks that differ, in no particular order.
    pub fn several(&self) -> impl Iterator<Item = Name> + '_ {
        self.several.iter().copied()
    }

    /// What to add to times of the second clock about that one, to compare them with the first.
    pub fn offset(&self, from: Clock, to: Clock, at: i64) -> i64 {
        self.offsets.get(&(from, to)).map_or(0, |offset| offset.at(at))
    }

    /// The least and the greatest offset of all pairs but those of none, in no particular order.
    pub fn offsets(&self) -> impl Iterator<Item = (Clock, Clock, (i64, i64))> + '_ {
        self.offsets.iter().map(|((from, to), Offset(points))| {
            let offsets = || points.iter().map(|(_, offset)| *offset);
            (*from, *to, (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0)))
        })
    }
}

impl Bounds {
    /// Takes in those of other clocks that are the same.
    fn append(&mut self, mut other: Self) {
        self.strong.append(&mut other.strong);
        self.weak.append(&mut other.weak);
        self.starts.append(&mut other.starts);
    }

    /// Whether one clock cannot have had most of the times, and another offset fits nearly all of them.
    fn contradict_one_clock(&self) -> bool {
        let bounds = || self.strong.iter().chain(&self.starts);
        let fit_one = bounds().filter(|bound| bound.low <= SLACK && bound.high >= -SLACK).count();
        let all = bounds().count();
        if self.strong.is_empty() || all < ENOUGH || fit_one * 2 > all {
            return false;
        }
        let Some(offset) = self.clone().offset() else { return false };
        bounds().filter(|bound| bound.allows(offset.at(bound.at))).count() * 10 >= all * 9
    }

    fn offset(self) -> Option<Offset> {
        let Self { strong, weak, starts } = self;
        let allowed = |bounds: &[Bound], offset: &Offset| -> usize {
            bounds.iter().filter(|bound| bound.allows(offset.at(bound.at))).count()
        };
        let none = Offset::constant(0);
        if strong.is_empty() {
            let offset = Offset::constant(best(&weak)?);
            let (satisfied, by_none) = (allowed(&weak, &offset), allowed(&weak, &none));
            let agreed = weak.len() >= 3 && satisfied * 10 >= weak.len() * 9 && by_none * 2 < weak.len();
            if let Some(drift) = Offset::drift(&weak) {
                // Work that is deferred is so by no more as time goes by.
                let by_drift = allowed(&weak, &drift);
                let twentieth = weak.len() / 20;
                if by_drift + twentieth >= weak.len() && by_drift > satisfied.max(by_none) + twentieth {
                    return Some(drift);
                }
            }
            return agreed.then_some(offset);
        }
        let satisfied = |offset: &Offset| allowed(&strong, offset) + allowed(&starts, offset);
        let mut offset = Offset::constant(best(&strong)?);
        let mut most = satisfied(&offset);
        let by_none = satisfied(&none);
        if strong.len() >= 2 * PERIOD && most < strong.len() + starts.len() {
            let mut sorted = strong.clone();
            sorted.sort_unstable_by_key(|bound| (bound.at, bound.low, bound.high));
            let varying = Offset::varying(&sorted);
            let by_varying = satisfied(&varying);
            if by_varying > most + strong.len() / 20 {
                (offset, most) = (varying, by_varying);
            }
        }
        (most > by_none && !second_phases_explain(&strong, &starts, &offset)).then_some(offset)
    }
}

/// Whether second phases are why servers end after their clients: there are some that take longer than their clients wait, no server begins too early, and many end late with the
/// offset, too.
fn second_phases_explain(strong: &[Bound], starts: &[Bound], offset: &Offset) -> bool {
    let early = strong.iter().chain(starts).filter(|bound| bound.low > 0).count();
    let late = |of: &Offset| strong.iter().filter(|bound| bound.high < of.at(bound.at)).count();
    let (by_none, by_offset) = (late(&Offset::constant(0)), late(offset));
    let some = starts.len() * SOME.1 >= (strong.len() + starts.len()) * SOME.0;
    some && early * FEW.1 <= by_none * FEW.0 && by_offset * FEW.1 > by_none * FEW.0
}

impl Offset {
    fn constant(offset: i64) -> Self {
        Self(vec![(0, offset)])
    }

    /// One offset for each of several periods of the same number of calls, which are sorted by time.
    fn varying(sorted: &[Bound]) -> Self {
        let periods = (sorted.len() / PERIOD).clamp(1, MOST_PERIODS);
        let points = sorted.chunks(sorted.len().div_ceil(periods)).filter_map(|period| {
            let middle = period[period.len() / 2].at;
            Some((middle, best(period)?))
        });
        Self(points.collect())
    }

    /// The straight line through the offsets of several periods, by least squares; `None` where there are not enough calls.
    fn drift(bounds: &[Bound]) -> Option<Self> {
        if bounds.len() < 2 * PERIOD {
            return None;
        }
        let mut sorted = bounds.to_vec();
        sorted.sort_unstable_by_key(|bound| (bound.at, bound.low, bound.high));
        let Self(points) = Self::varying(&sorted);
        let (first, last) = (points.first()?.0, points.last()?.0);
        let count = points.len() as f64;
        let since = |time: i64| time.saturating_sub(first) as f64;
        let mean = |of: &dyn Fn(&(i64, i64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (middle, level) = (mean(&|point| since(point.0)), mean(&|point| point.1 as f64));
        let spread = mean(&|point| (since(point.0) - middle).powi(2));
        if spread <= 0.0 {
            return None;
        }
        let slope = mean(&|point| (since(point.0) - middle) * (point.1 as f64 - level)) / spread;
        let at = |time: i64| (time, (level + slope * (since(time) - middle)).round() as i64);
        Some(Self(vec![at(sorted[0].at.min(first)), at(sorted[sorted.len() - 1].at.max(last))]))
    }

    fn at(&self, time: i64) -> i64 {
        let Self(points) = self;
        let after = points.partition_point(|(at, _)| *at <= time);
        match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
            (Some((from, first)), Some(&(to, last))) => {
                let part = time.saturating_sub(from) as f64 / to.saturating_sub(from) as f64;
                first.saturating_add((last.saturating_sub(first) as f64 * part).round() as i64)
            }
            (Some((_, offset)), None) => offset,
            (None, first) => first.map_or(0, |(_, offset)| *offset),
        }
    }
}

/// The middle of the first range that satisfies most bounds.
fn best(bounds: &[Bound]) -> Option<i64> {
    // A bound opens at its low end and closes behind its high end.
    let mut edges: Vec<(i64, bool)> =
        bounds.iter().flat_map(|bound| [(bound.low, false), (bound.high, true)]).collect();
    edges.sort_unstable();
    let mut open = 0_usize;
    let mut found: Option<(usize, i64, i64)> = None;
    for (at, &(edge, closes)) in edges.iter().enumerate() {
        if closes {
            open -= 1;
        } else {
            open += 1;
            if found.is_none_or(|(most, ..)| open > most) {
                let end = edges.get(at + 1).map_or(edge, |next| next.0);
                found = Some((open, edge, end));
            }
        }
    }
    found.map(|(_, low, high)| low + (high - low) / 2)
}
