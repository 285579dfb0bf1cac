//! Forks whose branches queue for one processor.
//!
//! Such branches begin together and delay each other, so that they queue for longer than requests that come by chance, and end sooner together than independent ones. Solvers follow both.
//! So neither are offsets of such forks fitted as those of independent branches, nor is a delay what the formula of one queue leaves of the time that was traced. It is what the solver leaves
//! of that, from the entries that call nobody up to the scenarios.

use std::collections::{BTreeMap, BTreeSet};

use crate::lqn::results::{EntryResult, Results};
use crate::lqn::{ActivityId, EntryId, Model, ProcessorId, Scheduling};
use crate::model::joins::{Seen, Woven, called, callees_first, correct};
use crate::solve::{SolveOptions, solve};

/// Models whose entries wait for each other in more levels are left to the formula of one queue: the solver is asked once a level.
const MOST_LEVELS: usize = 12;

/// What the solver left of the traced time of such forks, as the system was traced. A question about another load or other processors changes none of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkDelays {
    /// Whether the solver told it.
    pub(super) is_solved: bool,
    /// By name of the entry: by how much it responded sooner than it did, seconds.
    pub(super) missing: BTreeMap<String, f64>,
}

/// Processors that branches of a fork share, and what is fitted for them.
pub struct SharedForks {
    /// Entries that have such forks.
    pub forking: BTreeSet<EntryId>,
    /// By level, entries that run on such processors, or wait for entries that do: those that they wait for are in levels before theirs.
    levels: Vec<Vec<EntryId>>,
}

impl SharedForks {
    /// None of them.
    pub fn none() -> Self {
        Self { forking: BTreeSet::new(), levels: Vec::new() }
    }

    /// Of a model; none of one with copies, which get their requests later. `owners` has the entry of each activity, `woven` is in the order of entries.
    pub fn of(model: &Model, owners: &[EntryId], woven: &[Woven]) -> Self {
        let called = called(model, owners);
        let order = callees_first(&called);
        let own = |entry: usize| {
            let processor = model.tasks[model.entries[entry].task.index()].processor;
            let shares = model.processors[processor.index()].scheduling == Scheduling::ProcessorSharing;
            shares.then_some(processor)
        };
        let mut visited: Vec<BTreeSet<ProcessorId>> = vec![BTreeSet::new(); model.entries.len()];
        for &entry in &order {
            let mut all: BTreeSet<ProcessorId> = own(entry).into_iter().collect();
            all.extend(called[entry].iter().flat_map(|to| visited[to.index()].clone()));
            visited[entry] = all;
        }
        let (mut forking, mut processors) = (BTreeSet::new(), BTreeSet::new());
        for own in woven {
            for fork in &own.forks {
                let of = |branch: &ActivityId| -> BTreeSet<ProcessorId> {
                    let calls = &model.activities[branch.index()].work.calls;
                    calls.iter().flat_map(|call| visited[call.to.index()].clone()).collect()
                };
                let mut met: BTreeSet<ProcessorId> = BTreeSet::new();
                for (branch, _) in &fork.branches {
                    let of = of(branch);
                    let both: Vec<ProcessorId> = of.intersection(&met).copied().collect();
                    if !both.is_empty() {
                        forking.insert(own.entry);
                        processors.extend(both);
                    }
                    met.extend(of);
                }
            }
        }
        let mut level: Vec<Option<usize>> = vec![None; model.entries.len()];
        for &entry in &order {
            let below = called[entry].iter().filter_map(|to| level[to.index()]).max();
            let is_there = own(entry).is_some_and(|processor| processors.contains(&processor));
            level[entry] = below.map(|below| below + 1).or(is_there.then_some(0));
        }
        let most = level.iter().flatten().max().map_or(0, |most| most + 1);
        let has_copies = model.tasks.iter().any(|task| task.replicas > 1);
        if forking.is_empty() || most > MOST_LEVELS || has_copies {
            return Self::none();
        }
        let of = |own: usize| (0..level.len()).filter(|at| level[*at] == Some(own)).map(EntryId::from).collect();
        Self { forking, levels: (0..most).map(of).collect() }
    }

    /// Fits delays to responses as the solver predicts them, or as they were fitted before; `None` where the solver tells nothing, since a model may have no steady state.
    pub fn fit(
        &self,
        model: &mut Model,
        woven: &[Woven],
        seen: &[Seen],
        known: Option<&ForkDelays>,
    ) -> Option<BTreeMap<String, f64>> {
        let mut found = BTreeMap::new();
        for level in &self.levels {
            let solved = if known.is_none() { Some(steady(model)?) } else { None };
            for &entry in level {
                let name = &model.entries[entry.index()].name;
                let missing = match (&solved, known) {
                    (None, known) => known.and_then(|known| known.missing.get(&**name).copied()),
                    (Some(results), _) => missing(&seen[entry.index()], &results.entries[entry.index()]),
                };
                let Some(missing) = missing else { continue };
                found.insert(name.to_string(), missing);
                let of = woven.binary_search_by_key(&entry, |own| own.entry).ok().map(|place| &woven[place]);
                correct(model, entry, of, missing, 0.0);
            }
        }
        Some(found)
    }
}

/// By how much an entry responds sooner than it did, seconds, where traces tell all of its time.
fn missing(seen: &Seen, result: &EntryResult) -> Option<f64> {
    match (seen.response, seen.is_traced, seen.is_estimated) {
        (Some(response), true, false) => Some(response - result.service[0]),
        _ => None,
    }
}

/// The results of a model that has a steady state.
fn steady(model: &Model) -> Option<Results> {
    let results = solve(model, &SolveOptions::default(), None, &mut ()).ok()?.results;
    (results.convergence.converged && !results.convergence.saturated).then_some(results)
}
