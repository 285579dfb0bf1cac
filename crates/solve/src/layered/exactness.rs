//! How a model was solved, and whether that is exact.

use crate::layered::chains::{Client, ClientKind, Decomposition, Item};
use crate::layered::submodels::Layer;
use crate::mva::Method;
use crate::prepare::plan::ModelPlan;
use dyelog_lqn::model::{Body, Entry, Scheduling};

use super::state::Solver;

impl Solver<'_> {
    /// Whether the result, once it has converged, has no error but rounding: at most one network was solved, by a method without an
    /// error of its own, and nothing was taken for something simpler. It says so where that is sure, not wherever it is so.
    pub(super) fn is_exact(&self) -> bool {
        let (plan, decomposition) = (self.plan, self.decomposition);
        let queues = self.inner.methods.iter().flatten().count();
        let splits = |item: &Item| match item {
            Item::Fork { .. } => true,
            Item::Send { .. } => queues > 0,
            Item::Step { .. } | Item::Call { .. } | Item::Flattened { .. } => false,
        };
        let apart = !decomposition.chains.iter().flat_map(|chain| &chain.items).any(splits);
        plan.caveats.is_empty()
            && plan.arrivals.is_empty()
            && plan.caps.iter().all(Option::is_none)
            && apart
            && (queues == 0 || queues == 1 && self.is_one_network())
    }

    /// Solves each layer once, and tells whether the result would be exact: what tells it does not depend on how far the iteration has come.
    pub(crate) fn is_exact_after_a_sweep(&mut self) -> bool {
        self.sweep(true, 1.0).is_finite() && self.is_exact()
    }

    /// Whether all queues are in one network that says just what the model does.
    fn is_one_network(&self) -> bool {
        let (plan, decomposition) = (self.plan, self.decomposition);
        let goes_on = |client: &Client| matches!(client.kind, ClientKind::Open { later: true, .. });
        // Threads that queue themselves have been put to a mean, and so have loops and choices.
        let queues = |client: &Client| {
            matches!(client.kind, ClientKind::Threads(_))
                && client.chains.ids().any(|chain| !decomposition.chains[chain].stations.is_empty())
        };
        let plain = |entry: &Entry| matches!(entry.body, Body::Phases(_));
        let forwards = plan.entries.iter().any(|entry| !entry.forwards.is_empty());
        let by_rank = |scheduling| matches!(scheduling, Scheduling::HeadOfLine | Scheduling::PreemptivePriority);
        let (tasks, entries) = (&plan.model.tasks, &plan.model.entries);
        let ranked = plan.model.processors.iter().any(|processor| by_rank(processor.scheduling))
            || tasks.iter().any(|task| by_rank(task.scheduling));
        let alike = tasks.windows(2).all(|two| two[0].priority == two[1].priority)
            && entries.windows(2).all(|two| two[0].priority == two[1].priority);
        self.inner.exact.iter().all(|exact| *exact)
            && !decomposition.clients.iter().any(|client| goes_on(client) || queues(client))
            && entries.iter().all(plain)
            && !forwards
            && (alike || !ranked)
    }

    pub(super) fn method(&self) -> String {
        let layers = self.inner.methods.iter().flatten().count();
        let mut words = Vec::new();
        for (method, name) in [
            (Method::Formula, "open formulas"),
            (Method::Exact, "exact convolution"),
            (Method::Corrected, "convolution with approximate corrections"),
            (Method::Linearizer, "Linearizer"),
            (Method::Schweitzer, "Schweitzer's approximation"),
        ] {
            if self.inner.methods.iter().flatten().any(|used| *used == method) {
                words.push(name);
            }
        }
        if words.is_empty() {
            return "sums, as nothing queues".into();
        }
        format!("{} in {layers} layer{}", words.join(", "), if layers == 1 { "" } else { "s" })
    }
}

/// Whether all customers of a layer do one thing there, once.
pub(super) fn passes_once(plan: &ModelPlan, decomposition: &Decomposition, layer: &Layer) -> bool {
    layer.chains.iter().all(|&chain| match decomposition.chains[chain].items[..] {
        [] => true,
        [Item::Step { work, visits, .. }] => visits == 1.0 && plan.works[work].slices == 1.0,
        _ => false,
    })
}
