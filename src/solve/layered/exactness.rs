//! How a model was solved, and whether that is exact.

use crate::solve::lanes::{Group, Item, Lanes, Root};
use crate::solve::layers::Layer;
use crate::solve::mva::Method;
use crate::solve::plan::Plan;

use super::Solver;

impl Solver<'_> {
    /// Whether no method had an error of its own, in one layer at most, and nothing is done at a time by several on behalf
    /// of one.
    pub(super) fn is_exact(&self) -> bool {
        let queues = self.methods.iter().flatten().count();
        let splits = |item: &Item| match item {
            Item::Fork { .. } => true,
            Item::Send { .. } => queues > 0,
            Item::Step { .. } | Item::Call { .. } | Item::Inline { .. } => false,
        };
        let goes_on = |group: &Group| queues > 0 && matches!(group.root, Root::Stream { later: true, .. });
        queues <= 1
            && self.exact.iter().all(|exact| *exact)
            && !self.lanes.groups.iter().any(goes_on)
            && !self.lanes.lanes.iter().flat_map(|lane| &lane.items).any(splits)
    }

    pub(super) fn method(&self) -> String {
        let layers = self.methods.iter().flatten().count();
        let mut words = Vec::new();
        for (method, name) in [
            (Method::Formula, "open formulas"),
            (Method::Exact, "exact convolution"),
            (Method::Corrected, "convolution with approximate corrections"),
            (Method::Linearizer, "Linearizer"),
            (Method::Schweitzer, "Schweitzer's approximation"),
        ] {
            if self.methods.iter().flatten().any(|used| *used == method) {
                words.push(name);
            }
        }
        if words.is_empty() {
            return "sums, as nothing queues".into();
        }
        format!("{} in {layers} layer{}", words.join(", "), if layers == 1 { "" } else { "s" })
    }
}

/// Whether all who come to a layer do one thing there, once.
pub(super) fn passes_once(plan: &Plan, lanes: &Lanes, layer: &Layer) -> bool {
    layer.lanes.iter().all(|&lane| match lanes.lanes[lane].items[..] {
        [] => true,
        [Item::Step { work, visits, .. }] => visits == 1.0 && plan.works[work].slices == 1.0,
        _ => false,
    })
}
