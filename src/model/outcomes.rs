//! Operations that failed, and calls that were made once more, as far as traces tell.

use std::cmp::Reverse;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::Model;
use crate::lqn::submodel::SubModel;
use crate::model::parts::Parts;
use crate::model::{Origins, codes};

/// How many of a kind are named.
const SHOWN: usize = 6;

/// Counts them by scenario and by entry.
pub fn note(parts: &Parts<'_>, sub: &SubModel, model: &Model, origins: &Origins) -> Option<Diagnostic> {
    let total: (u64, u64) = parts
        .customers
        .iter()
        .fold((0, 0), |sum, own| (sum.0 + own.scenario_total.failures, sum.1 + own.scenario_total.operations));
    let entries = model.entries.iter().zip(&origins.entries).map(|(entry, origin)| (entry, sub.entry(origin.total)));
    let mut entries: Vec<_> = entries.filter(|(_, total)| total.failures + total.retries > 0).collect();
    if total.0 == 0 && entries.is_empty() {
        return None;
    }
    let message = format!("{} of {} operations failed", total.0, total.1);
    let mut note = Diagnostic::new(Severity::Note, codes::FAILURES, Place::Nowhere, message);
    let mut failing: Vec<_> = parts.customers.iter().filter(|own| own.scenario_total.failures > 0).collect();
    failing.sort_by_key(|own| Reverse(own.scenario_total.failures));
    let scenarios = failing.iter().map(|own| {
        let total = &own.scenario_total;
        format!("scenario `{}`: {} of {} failed", own.scenario, total.failures, total.operations)
    });
    entries.sort_by_key(|(_, total)| Reverse(total.failures + total.retries));
    let entries = entries.iter().map(|(entry, total)| {
        let again = if total.retries > 0 { format!("; {} were tried once more", total.retries) } else { String::new() };
        format!("entry `{}`: {} of {} invocations failed{again}", entry.name, total.failures, total.invocations)
    });
    for line in scenarios.take(SHOWN).chain(entries.take(SHOWN)) {
        note = note.with_note(line);
    }
    Some(note.with_note("they count like all others: what they cost is part of demands, and of the mean response"))
}
