//! Operations that failed, and calls that were made once more, as far as traces tell.

use std::cmp::Reverse;

use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::Model;
use crate::lqn::submodel::{EntryTotal, ScenarioTotal, SubModel};
use crate::model::load::toml_key;
use crate::model::parts::Parts;
use crate::model::{Origins, codes};

/// How many of a kind are named.
const SHOWN: usize = 6;

/// The fewest operations that look like a sample.
const FEWEST: u64 = 20;

/// Of the invocations of an entry, (1, 100) and more that clients gave up change how responses grow with the load.
const GIVEN_UP: (u64, u64) = (1, 100);

/// The fewest of these.
const FEW: u64 = 5;

/// What calls that end by a timeout make of more load.
enum Timeouts {
    /// Clients ask once more, so that longer responses are more load.
    Grow,
    /// Clients wait no longer, so that responses grow less than those of whom they ask.
    Cut,
}

impl Timeouts {
    fn of(total: &EntryTotal) -> Option<Self> {
        let is_many = |calls: u64| {
            u128::from(calls) * u128::from(GIVEN_UP.1) >= u128::from(total.invocations) * u128::from(GIVEN_UP.0)
                && calls >= FEW
        };
        match total.given_up {
            calls if is_many(calls.min(total.retries)) => Some(Self::Grow),
            calls if is_many(calls) => Some(Self::Cut),
            _ => None,
        }
    }
}

/// Whether operations look like a sample that prefers failures: systems that fail so often are rarer than these.
pub fn is_biased(total: &ScenarioTotal) -> bool {
    total.operations >= FEWEST && total.failures.saturating_mul(20) >= total.operations.saturating_mul(19)
}

/// Counts them by scenario and by entry.
pub fn note(parts: &Parts<'_>, sub: &SubModel, model: &Model, origins: &Origins) -> Option<Diagnostic> {
    let total: (u64, u64) = parts
        .customers
        .iter()
        .fold((0, 0), |sum, own| (sum.0 + own.scenario_total.failures, sum.1 + own.scenario_total.operations));
    let entries = model.entries.iter().zip(&origins.entries).map(|(entry, origin)| (entry, sub.entry(origin.total)));
    let mut entries: Vec<_> =
        entries.filter(|(_, total)| total.failures + total.given_up + total.retries > 0).collect();
    if total.0 == 0 && entries.is_empty() {
        return None;
    }
    let message = match total {
        (0, all) => format!("calls failed, or were made once more, but none of {all} operations failed"),
        (failed, all) => format!("{failed} of {all} operations failed"),
    };
    let mut note = Diagnostic::new(Severity::Note, codes::FAILURES, Place::Nowhere, message);
    let mut failing: Vec<_> = parts.customers.iter().filter(|own| own.scenario_total.failures > 0).collect();
    failing.sort_by_key(|own| Reverse(own.scenario_total.failures));
    let scenarios = failing.iter().map(|own| {
        let total = &own.scenario_total;
        format!("scenario `{}`: {} of {} failed", own.scenario, total.failures, total.operations)
    });
    entries.sort_by_key(|(_, total)| Reverse(total.failures + total.given_up + total.retries));
    let timeouts = entries.iter().filter_map(|(entry, total)| Some((&*entry.name, Timeouts::of(total)?)));
    let timeouts: Vec<(&str, Timeouts)> = timeouts.take(SHOWN).collect();
    let entries = entries.iter().map(|(entry, total)| {
        let again = if total.retries > 0 { format!("; {} were tried once more", total.retries) } else { String::new() };
        let given_up = match total.given_up {
            0 => String::new(),
            calls => format!("; {calls} failed for their client alone, as where a timeout ends first"),
        };
        let (failed, all) = (total.failures, total.invocations);
        format!("entry `{}`: {failed} of {all} invocations failed{given_up}{again}", entry.name)
    });
    for line in scenarios.take(SHOWN).chain(entries.take(SHOWN)) {
        note = note.with_note(line);
    }
    for own in failing.iter().filter(|own| is_biased(&own.scenario_total)).take(SHOWN) {
        note.severity = Severity::Warning;
        let name = &own.scenario;
        note = note
            .with_note(format!(
                "scenario `{name}` looks like a sample that prefers failures, which tells of structure and not of rates"
            ))
            .with_hint(format!("set its load, such as `rate`, under `[scenario.{}]`", toml_key(name)));
    }
    // A sampler that keeps failures, and few of the others, leaves as many: nothing but the rate tells.
    let is_doubtful = |total: &ScenarioTotal| {
        let many = total.operations >= FEWEST && total.failures.saturating_mul(5) >= total.operations;
        many && !is_biased(total) && total.sampled.operations == 0
    };
    for own in failing.iter().filter(|own| is_doubtful(&own.scenario_total)).take(SHOWN) {
        note.severity = Severity::Warning;
        let (name, total) = (&own.scenario, &own.scenario_total);
        note = note.with_note(format!(
            "{} of scenario `{name}` failed: a sampler that keeps failures and a part of the others leaves as many, and the rate would be a lower bound",
            percent(total.failures as f64 / total.operations as f64)
        ));
    }
    for (entry, timeouts) in timeouts {
        note.severity = Severity::Warning;
        note = note.with_note(match timeouts {
            Timeouts::Grow => format!(
                "calls of `{entry}` that end by a timeout are made once more while it still works on them: longer responses make more of these, so that answers for more load are too good"
            ),
            Timeouts::Cut => format!(
                "calls of `{entry}` end by a timeout while it still works on them: its callers wait no longer than that, so that their responses to more load are too long"
            ),
        });
    }
    Some(note.with_note("they count like all others: what they cost is part of demands, and of the mean response"))
}
