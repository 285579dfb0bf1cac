//! Fragments of operations whose first service did not record them, though others did: one that samples by itself before services that record all, or one that lost all spans of some traces.
//!
//! They are told from requests of clients that nobody traces by what they have in common with whole operations. A ratio sampler keeps those whose trace identifiers lie in a part of a range: the
//! fragments then fill the rest of it, and both together are all operations. Where whole operations are a random part, fragments ask for all that whole operations ask for, as often for
//! each of them. Other clients have identifiers anywhere, and ask for other things.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::requested;
use crate::diagnostic::quantity::percent;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::kept_ids::KeptIds;
use crate::lqn::submodel::{EntryIndex, ScenarioTotal};
use crate::model::codes;
use crate::model::load::short;
use crate::model::parts::{Customer, Parts};
use crate::names::Name;

/// The fewest requests of whole operations for an entry, and of fragments for all, that tell what these ask for.
const ENOUGH: f64 = 20.0;
/// The fewest entries: one alone may be what other clients ask for, too.
const ENTRIES: usize = 2;
/// How many standard errors the requests for an entry may be off,
const ERRORS: f64 = 3.0;
/// beside this part of them (ours).
const OFF: f64 = 0.05;

/// A service's operation.
type Service = (Name, Name);

/// What tells that fragments are of the same operations as those that are whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Evidence {
    /// Trace identifiers: the part of their range that whole operations fill, and the part that all together do; whether whole operations record for how many they stand.
    Identifiers { own: f64, all: f64, told: bool },
    /// Requests: for so many entries, each so many times as often as of whole operations, at least and at most.
    Requests { entries: usize, times: (f64, f64) },
}

/// Fragments of operations that a first service did not record.
#[derive(Debug)]
pub(super) struct Rootless {
    /// The first service, or several that others call alike.
    pub tasks: BTreeSet<Name>,
    /// Their scenarios, by number.
    pub scenarios: BTreeSet<usize>,
    /// Their names, each with how many fragments it has.
    names: Vec<(Arc<str>, u64)>,
    /// How many operations they are of.
    pub operations: u64,
    pub evidence: Evidence,
}

/// Of the fragments that `may_be` says: those of operations that some first service did not record.
pub(super) fn find(parts: &Parts<'_>, may_be: impl Fn(&Customer) -> bool) -> Vec<Rootless> {
    let sub = parts.sub;
    let service = |entry: EntryIndex| (sub.entry(entry).task, sub.entry(entry).service);
    let is_whole = |own: &&Customer| own.scenario_total.fragments < own.scenario_total.operations;
    let mut tasks: BTreeMap<Name, BTreeSet<EntryIndex>> = BTreeMap::new();
    for first in parts.customers.iter().filter(is_whole).flat_map(|own| requested(&own.total)) {
        tasks.entry(sub.entry(first).task).or_default().insert(first);
    }
    let every = || (tasks.keys().copied().collect(), tasks.values().flatten().copied().collect());
    let all: Option<(BTreeSet<Name>, BTreeSet<EntryIndex>)> = (tasks.len() > 1).then(every);
    let mut each: Vec<(Name, BTreeSet<EntryIndex>)> = tasks.into_iter().collect();
    each.sort_by_key(|(task, _)| sub.names.text(*task));
    let each: Vec<(BTreeSet<Name>, BTreeSet<EntryIndex>)> =
        each.into_iter().map(|(task, firsts)| (BTreeSet::from([task]), firsts)).collect();
    // Identifiers tell more. Services of which others ask for the same cannot be told apart by what fragments ask for.
    let attempts = each.iter().chain(&all).map(|tasks| (tasks, true));
    let attempts = attempts.chain(all.iter().chain(&each).map(|tasks| (tasks, false)));
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let fragments: Vec<(usize, &Customer)> =
        parts.customers.iter().enumerate().filter(|(_, own)| may_be(own)).collect();
    let of_tasks = |((tasks, firsts), by_ids): (&(BTreeSet<Name>, BTreeSet<EntryIndex>), bool)| {
        let mut whole: BTreeMap<Service, f64> = BTreeMap::new();
        for (to, count) in firsts.iter().flat_map(|first| sub.entry(*first).requested()) {
            *whole.entry(service(to)).or_default() += count as f64;
        }
        let calls = |own: &Customer| {
            let mut first = requested(&own.total).peekable();
            first.peek().is_some() && first.all(|entry| whole.contains_key(&service(entry)))
        };
        let numbered = fragments.iter().copied();
        let (scenarios, fragments): (BTreeSet<usize>, Vec<&Customer>) =
            numbered.filter(|(number, own)| !taken.contains(number) && calls(own)).unzip();
        if fragments.iter().all(|own| own.scenario_total.headless == 0) {
            return None;
        }
        let begins = |own: &&Customer| requested(&own.total).any(|first| firsts.contains(&first));
        let begun: Vec<&Customer> = parts.customers.iter().filter(is_whole).filter(begins).collect();
        let operations = fragments.iter().map(|own| own.scenario_total.headless).sum();
        let ids = Identifiers::of(&begun, &fragments);
        let evidence = if by_ids {
            ids.complete()
        } else {
            let mut asked: BTreeMap<Service, f64> = whole.keys().map(|to| (*to, 0.0)).collect();
            for (to, count) in fragments.iter().flat_map(|own| own.total.requested()) {
                *asked.entry(service(to)).or_default() += count as f64;
            }
            let all: u64 = begun.iter().map(|own| own.scenario_total.operations).sum();
            let pairs: Vec<(f64, f64)> = whole.iter().map(|(to, whole)| (*whole, asked[to])).collect();
            by_requests(&pairs, all as f64, operations as f64).filter(|_| ids.are_alike())
        }?;
        let names = fragments.iter().map(|own| (Arc::clone(&own.scenario), own.scenario_total.fragments)).collect();
        taken.extend(&scenarios);
        Some(Rootless { tasks: tasks.clone(), scenarios, names, operations, evidence })
    };
    attempts.filter_map(of_tasks).collect()
}

/// Trace identifiers of whole operations, and of fragments.
struct Identifiers {
    own: KeptIds,
    others: KeptIds,
    /// Whether whole operations record for how many they stand.
    told: bool,
}

impl Identifiers {
    fn of(whole: &[&Customer], fragments: &[&Customer]) -> Self {
        let merged = |of: &[&Customer], ids: fn(&ScenarioTotal) -> &KeptIds| {
            let mut merged = KeptIds::default();
            for own in of {
                merged.merge(ids(&own.scenario_total));
            }
            merged
        };
        let (untold, told) = (merged(whole, |own| &own.ids), merged(whole, |own| &own.told_ids));
        let mut others = merged(fragments, |own| &own.ids);
        others.merge(&merged(fragments, |own| &own.told_ids));
        let is_told = untold.count < told.count;
        Self { own: if is_told { told } else { untold }, others, told: is_told }
    }

    /// Whether those of fragments fill the part of their range that those of whole operations leave.
    fn complete(&self) -> Option<Evidence> {
        let all = self.own.completed_by(&self.others)?;
        Some(Evidence::Identifiers { own: self.own.probability()?, all, told: self.told })
    }

    /// Whether one sampler may have kept both.
    fn are_alike(&self) -> bool {
        self.own.sampling().is_none_or(|own| self.others.agree(own))
    }
}

/// Whether fragments ask for what whole operations ask for, by pairs of how often both ask for an entry.
fn by_requests(pairs: &[(f64, f64)], whole: f64, fragments: f64) -> Option<Evidence> {
    let (all, asked) = pairs.iter().fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let times = asked / all;
    let telling: Vec<f64> =
        pairs.iter().filter(|own| own.0.min(own.0 * times) >= ENOUGH).map(|own| own.1 / own.0).collect();
    if asked < ENOUGH || telling.len() < ENTRIES {
        return None;
    }
    // As many requests as an operation makes are made or lost together.
    let is_as_often = |own: &f64, found: f64| {
        let expected = own * times;
        let deviation = (expected * (1.0 + times) * (own / whole).max(1.0)).sqrt();
        (found - expected).abs() <= ERRORS * deviation + OFF * expected
    };
    let alike = pairs.iter().all(|(own, found)| is_as_often(own, *found)) && is_as_often(&whole, fragments);
    let (least, most) = telling.iter().fold((f64::INFINITY, 0.0_f64), |of, own| (of.0.min(*own), of.1.max(*own)));
    alike.then_some(Evidence::Requests { entries: telling.len(), times: (least, most) })
}

impl Rootless {
    /// Whether whole operations stand for these already, as they record.
    pub fn is_weighed(&self) -> bool {
        matches!(self.evidence, Evidence::Identifiers { told: true, .. })
    }

    /// Says that these make no load, and what tells it; names so many of the scenarios that they would be.
    pub fn note(&self, parts: &Parts<'_>, shown: usize) -> Diagnostic {
        let mut tasks: Vec<String> =
            self.tasks.iter().map(|task| format!("`{}`", parts.sub.names.text(*task))).collect();
        tasks.sort();
        let tasks = if tasks.len() > shown { "their first services".to_owned() } else { tasks.join(" or ") };
        let message = format!(
            "{} operations lack all spans of {tasks}, their first service: what is left of them makes no load, and rates count them",
            self.operations
        );
        let mut finding = Diagnostic::warning(codes::FRAGMENTS, Place::Nowhere, message);
        for (scenario, count) in self.names.iter().take(shown) {
            finding = finding.with_note(format!("{count} would be a scenario `{scenario}`"));
        }
        if self.names.len() > shown {
            finding = finding.with_note(format!("and {} scenarios more", self.names.len() - shown));
        }
        let short = |number: f64| short((number * 1000.0).round() / 1000.0);
        finding
            .with_note(match self.evidence {
                Evidence::Identifiers { own, all, .. } => format!(
                    "trace identifiers of whole operations fill {} of their range, and those of these the rest of {}: {tasks} samples by itself, and the services behind it record what it leaves out",
                    percent(own),
                    if all < 1.0 { percent(all) } else { "it".to_owned() }
                ),
                Evidence::Requests { entries, times: (least, most) } => format!(
                    "they ask for what whole operations ask for, each of {entries} entries {} to {} times as often: spans of {tasks} were lost, or not all of its instances record. Other clients would ask for other things",
                    short(least),
                    short(most)
                ),
            })
            .with_hint("let services sample as their callers do, as OTEL_TRACES_SAMPLER=parentbased_traceidratio does, and see to the exporter of that service")
    }
}

/// Says which fragments are loads beside whole operations that ask for the same, and what that assumes. Each is a scenario with how many fragments it has, and how many requests there are
/// for what they begin with.
pub(super) fn loads(kept: &[(Arc<str>, u64, u64)], shown: usize) -> Option<Diagnostic> {
    if kept.is_empty() {
        return None;
    }
    let all: u64 = kept.iter().map(|own| own.1).sum();
    let message = format!("{all} operations begin below spans that were not recorded, and are loads of their own");
    let mut finding = Diagnostic::new(Severity::Note, codes::FRAGMENTS, Place::Nowhere, message);
    for (scenario, count, of) in kept.iter().take(shown) {
        finding = finding.with_note(format!(
            "scenario `{scenario}`: {count} of {of} requests, the others by operations that are whole"
        ));
    }
    if kept.len() > shown {
        finding = finding.with_note(format!("and {} scenarios more", kept.len() - shown));
    }
    Some(
        finding
            .with_note("assumed: clients that nobody traces ask for them. They are too many for lost spans, and nothing shows that they are parts of the operations that are whole, as trace identifiers that complete theirs would, or requests for all that these ask for")
            .with_hint("were they parts of these, their load would count twice: record all services by one sampler, and see to exporters that drop spans"),
    )
}

#[cfg(test)]
mod tests {
    use super::by_requests;

    #[test]
    fn other_clients_ask_for_other_things() {
        let same = [(2000.0, 860.0), (1800.0, 790.0), (200.0, 80.0)];
        assert!(by_requests(&same, 2000.0, 860.0).is_some());
        // One that is never asked for, one alone, and each request of its own.
        assert_eq!(by_requests(&[(2000.0, 860.0), (1800.0, 0.0)], 2000.0, 860.0), None);
        assert_eq!(by_requests(&[(2000.0, 860.0), (1800.0, 500.0)], 2000.0, 860.0), None);
        assert_eq!(by_requests(&[(2000.0, 860.0)], 2000.0, 860.0), None);
        assert_eq!(by_requests(&same, 2000.0, 1730.0), None);
        assert_eq!(by_requests(&[(20.0, 9.0), (18.0, 7.0)], 20.0, 9.0), None, "they are few");
    }
}
