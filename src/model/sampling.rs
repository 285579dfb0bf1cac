//! How operations were sampled: settled of all scenarios that one service begins, since one sampler decides on them.
//!
//! Few operations of one scenario do not tell a probability that hundreds of another of the same service do. Where scenarios contradict each other, such as by a
//! sampler that has a probability for each operation, each is taken by itself, and of those with too few operations it is not known.
//!
//! A recorded probability is that of the sampler that recorded it. Where the identifiers of traces fill a smaller part of their range, another one has left out
//! more of them later.

use std::collections::BTreeMap;

use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::kept_ids::KeptIds;
use crate::lqn::submodel::{Interaction, ScenarioTotal, Settled, SubModel};
use crate::model::codes;
use crate::model::load::{is_unweighed, short};
use crate::model::parts::{Customer, scenario_of};
use crate::names::Name;

/// A part of the range of identifiers that is smaller than the recorded probability by no more than this is that.
const ALIKE: f64 = 0.1;
/// Scenarios stand for numbers of operations that differ by more than this factor where they were sampled in different ways.
const MIXED: f64 = 1.5;
/// How many scenarios are named.
const SHOWN: usize = 5;

/// Settles with which probability the operations of each scenario were kept, where their traces do not tell it.
pub fn settle(sub: &mut SubModel) {
    let mut services: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    for entry in sub.entries().iter().filter(|entry| entry.interaction == Interaction::Customer) {
        let begun = entry.work.values().flat_map(|work| work.requests.keys()).map(|(_, to)| sub.entry(*to).task);
        let first = begun.min_by(|one, other| sub.names.text(*one).cmp(sub.names.text(*other)));
        let (Some(service), Some(scenario)) = (first, sub.names.get(&scenario_of(sub, entry))) else { continue };
        let known = sub.scenarios.get(&scenario).is_some_and(by_ids);
        let of_service = services.entry(service).or_default();
        if known && !of_service.contains(&scenario) {
            of_service.push(scenario);
        }
    }
    for scenarios in services.into_values().filter(|scenarios| scenarios.len() > 1) {
        let mut together = KeptIds::default();
        for scenario in &scenarios {
            together.merge(&sub.scenarios[scenario].ids);
        }
        let common = together.sampling().filter(|own| scenarios.iter().all(|name| sub.scenarios[name].ids.agree(*own)));
        let is_known = |name: &Name| sub.scenarios[name].ids.probability().is_some();
        let settled: Vec<Option<Settled>> = match common {
            Some(own) => vec![Some(Settled::kept(own.probability)); scenarios.len()],
            None if scenarios.iter().any(is_known) => {
                scenarios.iter().map(|name| (!is_known(name)).then_some(Settled::Mixed)).collect()
            }
            None => continue,
        };
        for (scenario, settled) in scenarios.iter().zip(settled) {
            if let Some(total) = sub.scenarios.get_mut(scenario) {
                total.settled = settled;
            }
        }
    }
}

/// Whether nothing but the identifiers of its traces tells how a scenario was sampled.
fn by_ids(total: &ScenarioTotal) -> bool {
    total.ids.count > 0 && total.sampled.operations == 0
}

/// What identifiers of traces tell of operations that record for how many they stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FurtherCut {
    /// The part of the range that the identifiers fill.
    pub part: f64,
    /// How many operations one stands for.
    pub weight: f64,
    /// The same, had the two samplers decided otherwise: one by the identifiers as the other, or each by itself.
    pub otherwise: f64,
}

/// Whether fewer operations were kept than they record. A sampler that decides by the same numbers as the one that recorded a probability keeps those of the smaller
/// part; others decide by themselves, so that the probabilities multiply.
pub fn further_cut(total: &ScenarioTotal) -> Option<FurtherCut> {
    let sampled = &total.sampled;
    let recorded = sampled.mean_weight()?;
    let nearly_all = total.told_ids.count.saturating_mul(10) >= sampled.operations.saturating_mul(9);
    if !nearly_all || recorded < 1.0 {
        return None;
    }
    let found = total.told_ids.sampling().filter(|own| own.probability * recorded < 1.0 - ALIKE)?;
    let (alone, both) = (1.0 / found.probability, recorded / found.probability);
    let is_one = found.is_of_tracers() && !total.told_ids.show(1.0 / recorded);
    let (weight, otherwise) = if is_one { (alone, both) } else { (both, alone) };
    Some(FurtherCut { part: found.probability, weight, otherwise })
}

/// Says that scenarios were sampled in different ways, which one model has together.
pub fn finding(customers: &[Customer], weight: impl Fn(&ScenarioTotal) -> Option<f64>) -> Option<Diagnostic> {
    let known: Vec<(&Customer, Option<f64>)> = customers.iter().map(|own| (own, weight(&own.scenario_total))).collect();
    let weights = || known.iter().filter_map(|(_, weight)| *weight);
    let (least, most) = (weights().fold(f64::INFINITY, f64::min), weights().fold(0.0, f64::max));
    let is_known = known.iter().any(|(_, weight)| weight.is_some());
    let is_unknown = |total: &ScenarioTotal| {
        total.settled == Some(Settled::Mixed) || is_known && is_unweighed(total) && weight(total).is_none()
    };
    let unknown = known.iter().filter(|(own, _)| is_unknown(&own.scenario_total)).count();
    // Of counted requests each weight is told by itself.
    let are_counted = customers.iter().any(|own| own.scenario_total.sampled.counted > 0);
    if are_counted || most <= least * MIXED && unknown == 0 {
        return None;
    }
    let message = "scenarios were sampled in different ways".to_owned();
    let mut finding = Diagnostic::warning(codes::MIXED_SAMPLING, Place::Nowhere, message);
    for (own, weight) in known.iter().take(SHOWN) {
        finding = finding.with_note(match weight {
            Some(weight) => format!(
                "of `{}` {} kept, by {}",
                own.scenario,
                if *weight < 1.0 + ALIKE {
                    "all were".to_owned()
                } else {
                    format!("one of {} was", short((weight * 100.0).round() / 100.0))
                },
                if by_ids(&own.scenario_total) { "trace identifiers" } else { "what its spans record" }
            ),
            None => format!("of `{}` it is not known: its rate is a lower bound", own.scenario),
        });
    }
    if known.len() > SHOWN {
        finding = finding.with_note(format!("and {} more", known.len() - SHOWN));
    }
    let operations: f64 = known.iter().map(|(own, _)| own.scenario_total.operations as f64).sum();
    let stands: f64 =
        known.iter().map(|(own, weight)| own.scenario_total.operations as f64 * weight.unwrap_or(1.0)).sum();
    let missing = 1.0 - operations / stands.max(operations);
    if missing > 0.0 {
        finding = finding.with_note(format!(
            "{} of all operations were not traced: how long the others waited for them is known on the mean alone",
            percent(missing)
        ));
    }
    Some(finding.with_hint("record all operations with one probability, or give it by `--sampling`"))
}
