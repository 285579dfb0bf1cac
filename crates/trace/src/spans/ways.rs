//! Network latency of calls to services that record no spans but call others that do, and of the calls that these make: that of other calls of the same system.
//!
//! Of a call to such a service only the time is known for which its client waits, and of a call that it makes only that of the server. Were all of the rest taken for its work, a quick
//! service would work for longer than it does, and seem to have more servers, since latency is the same however many are there.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::spans::classify::TreeView;
use crate::spans::plan::{CallKind, Item, SpanPlan, What};
use dyelog_diagnostic::names::Name;

/// From fewer calls nothing follows.
const ENOUGH: i128 = 10;

/// Latencies, both ways, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    sum: i128,
    count: i128,
}

impl Ways {
    fn add(&mut self, way: i64) {
        (self.sum, self.count) = (self.sum + i128::from(way), self.count + 1);
    }

    fn mean(&self) -> Option<i64> {
        (self.count >= ENOUGH).then(|| i64::try_from(self.sum / self.count).unwrap_or(i64::MAX))
    }
}

/// How long calls are on their way, and which services record no spans.
#[derive(Debug, Default)]
pub struct OnTheWay {
    /// By service that calls or is called.
    of: FxHashMap<Name, Ways>,
    all: Ways,
    /// By service that did not record spans of a call, the shortest time for which a client waited: no latency is longer.
    shortest: FxHashMap<Name, i64>,
    /// Of these, those that were seen to call others.
    call: FxHashSet<Name>,
    /// Services that record spans.
    recorded: FxHashSet<Name>,
}

fn waits(item: &Item) -> bool {
    item.what == What::Call(CallKind::Open)
}

impl OnTheWay {
    /// Takes in the calls of a tree.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView) {
        self.recorded.extend(plan.visits.iter().filter(|visit| !visit.unrecorded).map(|visit| visit.service));
        for item in plan.items.iter().filter(|item| waits(item) && item.client) {
            let callee = &plan.visits[item.callee as usize];
            let waited = item.end.saturating_sub(item.start);
            if callee.unrecorded {
                let shortest = self.shortest.entry(callee.service).or_insert(i64::MAX);
                *shortest = waited.min(*shortest);
                if tree.spans[callee.span as usize].lost {
                    self.call.insert(callee.service);
                }
                continue;
            }
            let way = waited.saturating_sub(callee.end.saturating_sub(callee.start)).max(0);
            for service in [plan.visit_of(item).service, callee.service] {
                self.of.entry(service).or_default().add(way);
            }
            self.all.add(way);
        }
    }

    /// Says of the calls of a tree that go to such services, or come from them, how long they are on their way.
    pub fn tell(&self, plan: &mut SpanPlan) {
        for at in 0..plan.items.len() {
            let item = &plan.items[at];
            if !waits(item) {
                continue;
            }
            let (caller, callee) = (plan.visit_of(item), &plan.visits[item.callee as usize]);
            let way = if item.client && callee.unrecorded && callee.on_the_way == 0 && self.is_silent(callee.service) {
                let shortest = self.shortest.get(&callee.service).copied().unwrap_or(0);
                self.way(caller.service).min(shortest)
            } else if !item.client && caller.unrecorded && self.is_silent(caller.service) {
                self.way(callee.service)
            } else {
                continue;
            };
            let callee = item.callee as usize;
            plan.visits[callee].on_the_way = way.max(0);
        }
    }

    /// Whether a service records no spans though it calls others.
    pub fn is_silent(&self, service: Name) -> bool {
        self.call.contains(&service) && !self.recorded.contains(&service)
    }

    fn way(&self, service: Name) -> i64 {
        self.of.get(&service).and_then(Ways::mean).or_else(|| self.all.mean()).unwrap_or(0)
    }
}
