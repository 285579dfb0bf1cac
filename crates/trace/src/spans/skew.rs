//! Clocks that differ, per pair of machines or services.
//!
//! A server works within the time that its client waits. Where it seems not to, its clock is off, and by the same amount in
//! all calls between the two: each call bounds the amount from both sides, and the amount that satisfies most calls is
//! taken. Calls whose server took longer than the client waited have a second phase and bound nothing. Nothing is moved
//! where no offset satisfies more calls than none does.
//!
//! Without a client half, only the time of the calling visit bounds the amount, and work that is simply deferred looks the
//! same; so there an offset is taken only if three calls agree on it.

use rustc_hash::FxHashMap;

use crate::spans::model::Clock;

/// The bounds that calls set on the offset between two clocks.
#[derive(Debug, Default)]
struct Bounds {
    strong: Vec<(i64, i64)>,
    weak: Vec<(i64, i64)>,
}

/// Collects bounds, then offsets.
#[derive(Debug, Default)]
pub struct Skew {
    bounds: FxHashMap<(Clock, Clock), Bounds>,
    offsets: FxHashMap<(Clock, Clock), i64>,
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
        let low = call.outer.0.saturating_sub(call.inner.0);
        let high = call.outer.1.saturating_sub(call.inner.1);
        let bounds = self.bounds.entry((call.from, call.to)).or_default();
        if low <= high {
            if call.client { bounds.strong.push((low, high)) } else { bounds.weak.push((low, high)) }
        }
    }

    /// Decides on the offsets.
    pub fn fit(&mut self) {
        for (pair, bounds) in &mut self.bounds {
            let offset = if bounds.strong.is_empty() {
                best(&mut bounds.weak).filter(|best| {
                    let all = bounds.weak.len();
                    all >= 3 && best.satisfied * 10 >= all * 9 && best.satisfied_by_none * 2 < all
                })
            } else {
                best(&mut bounds.strong)
            };
            if let Some(best) = offset.filter(|best| best.satisfied > best.satisfied_by_none) {
                self.offsets.insert(*pair, best.offset);
            }
        }
        self.bounds.clear();
    }

    /// What to add to times of the second clock to compare them with the first.
    pub fn offset(&self, from: Clock, to: Clock) -> i64 {
        self.offsets.get(&(from, to)).copied().unwrap_or(0)
    }

    /// All offsets but those of zero, in no particular order.
    pub fn offsets(&self) -> impl Iterator<Item = (Clock, Clock, i64)> + '_ {
        self.offsets.iter().map(|((from, to), offset)| (*from, *to, *offset))
    }
}

struct Best {
    offset: i64,
    satisfied: usize,
    satisfied_by_none: usize,
}

/// The middle of the first range that satisfies most bounds.
fn best(bounds: &mut [(i64, i64)]) -> Option<Best> {
    let satisfied_by_none = bounds.iter().filter(|(low, high)| *low <= 0 && 0 <= *high).count();
    // A bound opens at its low end and closes behind its high end.
    let mut edges: Vec<(i64, bool)> = bounds.iter().flat_map(|(low, high)| [(*low, false), (*high, true)]).collect();
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
    found.map(|(satisfied, low, high)| Best { offset: low + (high - low) / 2, satisfied, satisfied_by_none })
}
