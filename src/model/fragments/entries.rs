//! How far the demand of a single entry may be off where spans were lost.
//!
//! A call of which no span is left looks like work of its caller. On the mean that is put right, but an entry that waits for others for most of its time has little work of its
//! own beside what it waits for: a small part of that is a large part of its demand.

use crate::diagnostic::quantity::percent;
use crate::lqn::sketch::NORMAL;
use crate::lqn::submodel::EntryTotal;
use crate::model::parts::Parts;

/// Entries that are told.
const SHOWN: usize = 5;
/// What is less than this part of a demand is not told by entry.
const TOLD: f64 = 0.05;
/// An entry is told whose demand may be off by so many times the part of spans that was lost.
const BEYOND: f64 = 2.0;

/// The part by which an entry's demand may be off, where this part of spans was lost: were nothing put right, the time of all lost calls would be work. Of few calls more may
/// be lost by chance (95 %).
pub fn doubt(entry: &EntryTotal, lost: f64) -> Option<f64> {
    let own = entry.own_time() / entry.invocations.max(1) as f64;
    let waited = entry.response.mean()? - own;
    let lost = lost + NORMAL * (lost / entry.invocations.max(1) as f64).sqrt();
    (own > 0.0 && waited > 0.0).then(|| lost * (1.0 + waited / own))
}

/// A note on each of the entries whose demands are least certain.
pub(super) fn notes(parts: &Parts<'_>, lost: f64) -> Vec<String> {
    let entries = parts.entries.iter().map(|index| parts.sub.entry(*index));
    let mut doubtful: Vec<(f64, &str, &str)> = entries
        .filter_map(|entry| {
            let name = |name| parts.sub.names.text(name);
            Some((doubt(entry, lost)?, name(entry.task), name(entry.service)))
        })
        .filter(|(doubt, ..)| *doubt > TOLD.max(BEYOND * lost))
        .collect();
    doubtful.sort_by(|one, next| next.0.total_cmp(&one.0).then_with(|| (one.1, one.2).cmp(&(next.1, next.2))));
    let more = doubtful.len().saturating_sub(SHOWN);
    let told = |(doubt, task, service): &(f64, &str, &str)| {
        let known =
            if *doubt < 1.0 { format!("is known to ± {}", percent(*doubt)) } else { "is hardly known".to_owned() };
        format!(
            "the demand of `{service}` of `{task}` {known}, since it mostly waits for others: a wait whose span was lost looks like work"
        )
    };
    let mut notes: Vec<String> = doubtful.iter().take(SHOWN).map(told).collect();
    if more > 0 {
        notes.push(format!("and those of {more} entries more"));
    }
    notes
}
