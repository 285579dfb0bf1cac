//! What part of the work of a host was traced, and in what time.

use std::collections::BTreeMap;

use crate::lqn::submodel::EntryIndex;
use crate::model::load::{self, Recording};
use crate::model::parts::{Customer, Parts};

/// What the traces were recorded of.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The probability with which an operation was traced.
    pub probability: f64,
    /// For how long operations were traced, seconds.
    pub seconds: f64,
    /// By entry, for how many an invocation stands, where scenarios were sampled in different ways.
    weights: BTreeMap<EntryIndex, f64>,
}

impl Observed {
    /// Of all scenarios together; `None` where no rate is known.
    pub fn of(parts: &Parts<'_>) -> Option<Self> {
        // The scenario whose operations took most time together tells for how long the traces were recorded: a burst may have more of them in no time.
        let time = |customer: &&Customer| customer.scenario_total.response.sum.as_f64();
        let largest = parts.customers.iter().max_by(|one, other| time(one).total_cmp(&time(other)))?;
        let total = &largest.scenario_total;
        let (rate, weight) =
            (Recording::of_operations(parts.sub.scenarios.values()).rate(total)?, load::weight(total).max(1.0));
        let seconds = total.operations as f64 * weight / rate;
        // What operations did whose first span alone was lost was seen.
        let sampled = |customer: &Customer| load::sampled_weight(&customer.scenario_total).max(1.0);
        let own = sampled(largest);
        let alike = parts.customers.iter().all(|customer| (sampled(customer) / own - 1.0).abs() < ALIKE);
        let (probability, weights) = if alike {
            (1.0 / own, BTreeMap::new())
        } else {
            let operations = parts.customers.iter().map(|customer| customer.scenario_total.operations as f64);
            let stood = parts.customers.iter().map(|own| own.scenario_total.operations as f64 * sampled(own));
            let probability = operations.sum::<f64>() / stood.sum::<f64>();
            (probability, by_callers(parts, sampled))
        };
        Some(Self { probability, seconds, weights })
    }

    /// The same for the invocations of these entries.
    pub fn at<'e>(&self, parts: &Parts<'_>, entries: impl IntoIterator<Item = &'e EntryIndex>) -> Self {
        let mut at = Self { weights: BTreeMap::new(), ..*self };
        let (mut seen, mut stood) = (0.0, 0.0);
        for entry in entries {
            let Some(weight) = self.weights.get(entry) else { continue };
            let own = parts.sub.entry(*entry).own_time();
            (seen, stood) = (seen + own, stood + own * weight);
        }
        if stood > 0.0 {
            at.probability = seen / stood;
        }
        at
    }

    /// How many invocations of an entry were at work on average, of those that were traced.
    pub fn present(&self, parts: &Parts<'_>, index: EntryIndex) -> f64 {
        parts.sub.entry(index).own_time() / self.seconds
    }

    /// The same of several entries together.
    pub fn all_present<'e>(&self, parts: &Parts<'_>, entries: impl IntoIterator<Item = &'e EntryIndex>) -> f64 {
        entries.into_iter().map(|index| self.present(parts, *index)).sum()
    }
}

/// Numbers of operations that stand for one differ by less, as a part, where one sampler kept them.
const ALIKE: f64 = 1e-6;

/// A figure of customers for each entry: the mean of those who call it, by how often they do. Entries in circles are left out.
pub fn by_callers(parts: &Parts<'_>, of: impl Fn(&Customer) -> f64) -> BTreeMap<EntryIndex, f64> {
    let mut callers: BTreeMap<EntryIndex, usize> = BTreeMap::new();
    for (to, _) in parts.entries.iter().flat_map(|entry| parts.sub.entry(*entry).requested()) {
        *callers.entry(to).or_default() += 1;
    }
    let mut sums: BTreeMap<EntryIndex, (f64, f64)> = BTreeMap::new();
    let add = |sums: &mut BTreeMap<EntryIndex, (f64, f64)>, to: EntryIndex, count: u64, weight: f64| {
        let (seen, stood) = sums.entry(to).or_default();
        (*seen, *stood) = (*seen + count as f64, *stood + count as f64 * weight);
    };
    for customer in &parts.customers {
        customer.total.requested().for_each(|(to, count)| add(&mut sums, to, count, of(customer)));
    }
    let mut weights = BTreeMap::new();
    let mut open: Vec<EntryIndex> =
        parts.entries.iter().copied().filter(|entry| !callers.contains_key(entry)).collect();
    while let Some(entry) = open.pop() {
        let (seen, stood) = sums.get(&entry).copied().unwrap_or_default();
        let weight = if seen > 0.0 { stood / seen } else { 1.0 };
        weights.insert(entry, weight);
        for (to, count) in parts.sub.entry(entry).requested() {
            add(&mut sums, to, count, weight);
            let left = callers.entry(to).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                open.push(to);
            }
        }
    }
    weights
}
