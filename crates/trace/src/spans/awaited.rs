//! Whether callers wait for the answers to their calls.
//!
//! A CLIENT span lasts until the answer is there, and its caller may have answered before: it made the call and went on. Where the call happens to be short it lies within the visit all the
//! same. So calls of a kind are looked at together. Where a caller waits, what is left of its visit when it makes the call grows by all that the call takes longer: the slope of one
//! on the other is 1. Where it does not, the slope is 0. A local span that outlasts its visit is work that goes on when the visit has answered, and waits for its own calls. Where the first of several answers is waited for, another call of the visit that began beside it has ended in time.

use rustc_hash::FxHashMap;

use crate::spans::classify::TreeView;
use crate::spans::plan::{CallKind, Item, SpanPlan, What};
use crate::spans::sends::{HARDLY, Kind, OUTLAST, kind_of};
use dyelog_diagnostic::names::Name;

/// Callers go on where most calls of the first visit begin after it, of so many or more (ours).
const SEVERAL: u64 = 10;

/// They do where calls outlast the visit as messages do ([`OUTLAST`]),
/// of so many or more,
const ENOUGH: u64 = 100;
/// the slope is less than this, by so many standard errors (ours),
const FLAT: f64 = 0.25;
const ERRORS: f64 = 3.0;
/// and in no more than one of so many of those another call of that name ended in time.
const RIVALS: u64 = 20;

/// Sums over calls of a kind: what they take, and what is left of the visit, microseconds. Whole numbers, so that no order matters.
#[derive(Clone, Copy, Debug, Default)]
struct Called {
    count: u64,
    outlast: u64,
    rivals: u64,
    /// Calls that begin when the first visit of an operation is over, which are not counted else.
    behind: u64,
    taken: i128,
    left: i128,
    taken_squares: i128,
    left_squares: i128,
    products: i128,
}

impl Called {
    fn add(&mut self, taken: i64, left: i64) {
        let (taken, left) = (i128::from(taken / 1000), i128::from(left / 1000));
        self.count += 1;
        (self.taken, self.left) = (self.taken + taken, self.left + left);
        self.taken_squares += taken * taken;
        self.left_squares += left * left;
        self.products += taken * left;
    }

    fn is_left_alone(&self) -> bool {
        if self.behind >= SEVERAL && self.behind > self.count {
            return true;
        }
        let is_seen = self.count >= ENOUGH && self.outlast.saturating_mul(OUTLAST) > self.count;
        if !is_seen || self.rivals.saturating_mul(RIVALS) > self.outlast {
            return false;
        }
        let count = self.count as f64;
        let [taken, left] = [self.taken, self.left].map(|sum| sum as f64 / count);
        let variance = (self.taken_squares as f64 / count - taken * taken).max(0.0);
        let of_left = (self.left_squares as f64 / count - left * left).max(0.0);
        let slope = (self.products as f64 / count - taken * left) / variance.max(f64::MIN_POSITIVE);
        let error = (of_left / (variance.max(f64::MIN_POSITIVE) * count)).sqrt();
        variance > 0.0 && slope + ERRORS * error < FLAT
    }
}

/// What the spans of calls show.
#[derive(Debug, Default)]
pub struct Awaited {
    kinds: FxHashMap<Kind, Called>,
    /// By scope of the tree at hand, when the work ends that calls of it may hold up.
    ends: Vec<i64>,
}

/// Whether a span is a call that its caller may wait for.
fn may_be_awaited(item: &Item) -> bool {
    item.client && item.what == What::Call(CallKind::Open) && item.end > item.start
}

impl Awaited {
    /// Takes in the calls of a tree; its times are as recorded.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView) {
        let Self { kinds, ends } = self;
        plan.ends_around(ends);
        let end = |item: &Item| ends[item.scope as usize];
        let outlasts = |item: &Item| {
            let margin = item.end.saturating_sub(item.start) / HARDLY;
            item.end > end(item).saturating_add(margin)
        };
        let is_seen = |item: &&Item| {
            may_be_awaited(item) && !plan.visit_of(item).unrecorded && !tree.spans[item.span as usize].lost
        };
        // What begins behind the visit is work that goes on when it has answered.
        let counts = |item: &&Item| is_seen(item) && item.start < end(item);
        let visit_of = |item: &Item| plan.scopes[item.scope as usize].visit;
        // By visit and name, when the last call ended that ended in time.
        let mut ended: FxHashMap<(u32, Name), i64> = FxHashMap::default();
        if plan.items.iter().filter(counts).any(&outlasts) {
            for item in plan.items.iter().filter(counts).filter(|item| item.end <= end(item)) {
                let last = ended.entry((visit_of(item), item.name)).or_insert(i64::MIN);
                *last = (*last).max(item.end);
            }
        }
        let is_behind = |item: &&Item| is_seen(item) && visit_of(item) == 0 && item.start >= end(item);
        for item in plan.items.iter().filter(is_behind) {
            kinds.entry(kind_of(plan.visit_of(item), item)).or_default().behind += 1;
        }
        for item in plan.items.iter().filter(counts) {
            let visit = plan.visit_of(item);
            let called = kinds.entry(kind_of(visit, item)).or_default();
            called.add(item.end.saturating_sub(item.start), end(item).saturating_sub(item.start));
            if outlasts(item) {
                called.outlast += 1;
                let last = ended.get(&(visit_of(item), item.name));
                called.rivals += u64::from(last.is_some_and(|last| *last > item.start));
            }
        }
    }

    /// Marks the calls of a tree for which no caller waits. To make one takes no time.
    pub fn tell(&self, plan: &mut SpanPlan) {
        for at in 0..plan.items.len() {
            let item = &plan.items[at];
            if may_be_awaited(item) {
                let kind = kind_of(plan.visit_of(item), item);
                if self.kinds.get(&kind).is_some_and(Called::is_left_alone) {
                    let item = &mut plan.items[at];
                    (item.what, item.end) = (What::Call(CallKind::Deferred), item.start);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Called;

    fn called(left_of: impl Fn(i64) -> i64) -> Called {
        let mut called = Called::default();
        for number in 0..1000_i64 {
            let taken = 1_000_000 + number * 7919 % 1000 * 10_000;
            let left = left_of(taken);
            called.add(taken, left);
            called.outlast += u64::from(taken > left);
        }
        called
    }

    #[test]
    fn what_is_left_grows_with_calls_that_are_waited_for() {
        assert!(called(|_| 4_000_000).is_left_alone());
        // It gives up some of them.
        assert!(
            !called(|taken| taken.min(9_000_000) + 500_000 - i64::from(taken % 40_000 == 0) * 2_000_000)
                .is_left_alone()
        );
        // None outlasts the visit.
        assert!(!called(|_| 20_000_000).is_left_alone());
        assert!(Called { count: 9, behind: 10, ..Called::default() }.is_left_alone());
        let quorum = Called { rivals: 500, ..called(|_| 4_000_000) };
        assert!(!quorum.is_left_alone());
    }
}
