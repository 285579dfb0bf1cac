//! Why a template does not take a node: how near it came, from wherever it could have started.

use std::collections::BTreeMap;

use crate::explain::Study;
use crate::explain::attempt::{Attempt, Trial};
use crate::matcher::Relations;
use crate::plan::Slot;
use crate::recognise::budget;
use dyelog_trace::NodeId;

/// One way in which a template could take a node: in that role, started at that glue node.
#[derive(Clone, Debug, PartialEq)]
pub struct Try {
    /// The register of the plan that would hold the node.
    pub role: Slot,
    /// How far the plan gets with all nodes taken as free.
    pub attempt: Attempt,
    /// Nodes that it came by or needs, and that other matches had consumed when it was the template's turn; by register, and of
    /// rounds without one. With the number of the match.
    pub taken: Vec<(Option<Slot>, NodeId, usize)>,
    /// The match that is this one, where it was committed.
    pub committed: Option<usize>,
}

/// Why a template does not take a node.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyNot {
    /// Which of the rules' plans.
    pub template: u16,
    /// The node.
    pub node: NodeId,
    /// The match that consumed it, whatever its template.
    pub consumer: Option<usize>,
    /// For each role that the node gets into, the nearest miss; the nearest of all first.
    pub tries: Vec<Try>,
}

impl WhyNot {
    /// The match by which the template does take the node.
    pub fn committed(&self) -> Option<usize> {
        self.tries.iter().find_map(|one| one.committed)
    }
}

/// Tries a template at every node of an operation and keeps, for each role in which the node at hand comes up, what got
/// furthest; as the glue node it always comes up. Linear in the nodes but for repetitions, which have the budget of matching.
pub fn why_not(study: &Study<'_>, relations: &dyn Relations, template: u16, node: NodeId) -> WhyNot {
    let toeg = study.toeg;
    let trial = Trial::new(study.rules.plans(), toeg, study.names, relations, budget(toeg));
    let mut nearest: BTreeMap<Slot, Attempt> = BTreeMap::new();
    let all_free = |_| false;
    // The node itself first: where others have used the budget up, it has not gone without.
    for glue in std::iter::once(node).chain((0..toeg.len() as NodeId).filter(|glue| *glue != node)) {
        let attempt = trial.attempt(template as usize, glue, &all_free);
        let Some(role) = role(study, template, &attempt, node) else { continue };
        let better = |other: &Attempt| {
            let rank = |attempt: &Attempt| (attempt.failure.is_none(), attempt.passed);
            rank(&attempt) > rank(other)
        };
        if nearest.get(&role).is_none_or(better) {
            nearest.insert(role, attempt);
        }
    }
    let mut tries: Vec<Try> =
        nearest.into_iter().map(|(role, attempt)| judge(study, template, role, attempt)).collect();
    tries.sort_by_key(|one| {
        let passed = one.attempt.passed;
        (one.committed.is_none(), one.attempt.failure.is_some(), std::cmp::Reverse(passed), one.role)
    });
    WhyNot { template, node, consumer: study.consumer(node), tries }
}

/// The register in which an attempt has a node, or would have it. Of a sequence, the register of the round's node.
fn role(study: &Study<'_>, template: u16, attempt: &Attempt, node: NodeId) -> Option<Slot> {
    if attempt.glue == node {
        return Some(0);
    }
    let plan = &study.rules.plans()[template as usize];
    // Nodes that are looked at only are nobody's role.
    let consumed = |slot: &Slot| {
        plan.effects.consumed.iter().any(|consumed| consumed.slot == *slot)
            || plan.repetitions.iter().any(|repetition| repetition.nodes.contains(slot))
    };
    attempt.register_of(node).filter(consumed).or_else(|| {
        let place = attempt.rounds.iter().position(|other| *other == node)?;
        let (sequence, place) = plan.place_of(place, &attempt.sequences)?;
        let nodes = &plan.repetitions.get(sequence)?.nodes;
        nodes.get(place % nodes.len().max(1)).copied()
    })
}

fn judge(study: &Study<'_>, template: u16, role: Slot, attempt: Attempt) -> Try {
    let plan = &study.rules.plans()[template as usize];
    let committed = study.consumer(attempt.glue).filter(|number| {
        let made = &study.matches[*number];
        made.template == template && made.glue == attempt.glue
    });
    let taken = if committed.is_some() {
        Vec::new()
    } else {
        let fixed = plan.effects.consumed.iter().map(|consumed| {
            let node = attempt.slots.get(consumed.slot as usize).copied();
            (Some(consumed.slot), node.unwrap_or(dyelog_trace::toeg::NONE))
        });
        let rounds = attempt.rounds.iter().map(|node| (None, *node));
        let mut taken: Vec<(Option<Slot>, NodeId, usize)> = fixed
            .chain(rounds)
            .filter(|(_, node)| *node != dyelog_trace::toeg::NONE)
            .filter(|(_, node)| *node == attempt.glue || study.was_taken(*node, attempt.glue))
            .filter_map(|(slot, node)| Some((slot, node, study.consumer(node)?)))
            .collect();
        taken.dedup();
        taken
    };
    Try { role, attempt, taken, committed }
}
