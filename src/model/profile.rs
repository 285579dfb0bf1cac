//! Usage profiles: one customer of several scenarios, in proportion.

use std::sync::Arc;

use crate::lqn::submodel::{EntryTotal, Moments, ScenarioTotal, Seconds};
use crate::model::config::ProfileSettings;
use crate::model::load;
use crate::model::parts::{Customer, take_in};

/// Up to which numbers counts are kept exact, so that means come out as they were written.
const EXACT: u128 = 1 << 52;

/// The customer of a profile: the customers of its scenarios, each so often as its proportion says. `None` where the traces
/// show none of them.
///
/// Counts are scaled to a common number of operations, and stay whole. So 60 % of one scenario and 40 % of another, of
/// which 10 and 7 operations were seen, become 42 and 28 of 70: everything after that is as if they had been seen.
pub fn customer(name: &str, profile: &ProfileSettings, customers: &[Customer]) -> Option<Customer> {
    let members: Vec<(&Customer, f64)> = customers
        .iter()
        .filter_map(|customer| Some((customer, profile.proportions.get(&*customer.scenario)?.weight)))
        .filter(|(customer, weight)| *weight > 0.0 && customer.total.invocations > 0)
        .collect();
    let (first, _) = *members.first()?;
    let seen: Vec<u64> = members.iter().map(|(customer, _)| customer.total.invocations).collect();
    let weights: Vec<f64> = members.iter().map(|(_, weight)| *weight).collect();
    let factors = factors(&weights, &seen);
    let mut total = EntryTotal {
        invocations: 0,
        work: indexmap::IndexMap::default(),
        witnesses: Vec::new(),
        ..first.total.clone()
    };
    let mut scenario_total = ScenarioTotal::default();
    for ((customer, _), factor) in members.iter().zip(&factors) {
        take_in(&mut total, &times(&customer.total, *factor));
        let mut seen = customer.scenario_total.clone();
        scale(&mut seen.response, *factor);
        seen.responses.scale(*factor);
        scenario_total.merge(&seen);
    }
    let sum: f64 = weights.iter().sum();
    Some(Customer {
        scenario: name.into(),
        scenario_total,
        first: first.first,
        total,
        load: load::configured(profile.rate, profile.population, profile.think_time),
        members: members.iter().map(|(customer, weight)| (Arc::clone(&customer.scenario), weight / sum)).collect(),
    })
}

/// Whole factors by which numbers of operations become proportional to weights.
fn factors(weights: &[f64], seen: &[u64]) -> Vec<u64> {
    exact_factors(weights, seen).unwrap_or_else(|| {
        // Weights of many digits, or many operations: close to what was written.
        let wanted: Vec<f64> = weights.iter().zip(seen).map(|(weight, seen)| weight / *seen as f64).collect();
        let largest = wanted.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        wanted.iter().map(|wanted| ((wanted / largest * (1_u64 << 40) as f64).round() as u64).max(1)).collect()
    })
}

fn exact_factors(weights: &[f64], seen: &[u64]) -> Option<Vec<u64>> {
    let decimals =
        weights.iter().map(|weight| format!("{weight}").split_once('.').map_or(0, |(_, part)| part.len())).max()?;
    let scale = 10_f64.powi(i32::try_from(decimals).ok().filter(|decimals| *decimals <= 9)?);
    let whole: Vec<u128> = weights.iter().map(|weight| (weight * scale).round() as u128).collect();
    let mut common: u128 = 1;
    for &seen in seen {
        let seen = u128::from(seen);
        common = common / gcd(common, seen) * seen;
        if common > EXACT {
            return None;
        }
    }
    let factors: Vec<u128> = whole.iter().zip(seen).map(|(whole, seen)| whole * (common / u128::from(*seen))).collect();
    let shared = factors.iter().copied().fold(0, gcd).max(1);
    let sum: u128 = factors.iter().zip(seen).map(|(factor, seen)| factor / shared * u128::from(*seen)).sum();
    (sum <= EXACT).then(|| factors.iter().map(|factor| (factor / shared) as u64).collect())
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The same seen so many times.
fn times(total: &EntryTotal, factor: u64) -> EntryTotal {
    let mut total = total.clone();
    let by = |count: &mut u64| *count = count.saturating_mul(factor);
    let moments = |moments: &mut Moments| scale(moments, factor);
    by(&mut total.invocations);
    for work in total.work.values_mut() {
        by(&mut work.visits);
        moments(&mut work.exclusive);
        moments(&mut work.network);
        moments(&mut work.pauses);
        for activity in work.activities.values_mut() {
            by(&mut activity.count);
            moments(&mut activity.cpu);
        }
        for request in work.requests.values_mut() {
            by(&mut request.count);
            by(&mut request.squares);
        }
    }
    total
}

fn scale(moments: &mut Moments, factor: u64) {
    moments.count = moments.count.saturating_mul(factor);
    moments.sum = Seconds(moments.sum.0.saturating_mul(i128::from(factor)));
    moments.squares = moments.squares.saturating_mul(i128::from(factor));
}

#[cfg(test)]
mod tests {
    use super::factors;

    #[test]
    fn factors_are_whole_and_keep_proportions() {
        assert_eq!(factors(&[0.6, 0.4], &[10, 7]), [21, 20]);
        assert_eq!(factors(&[1.0, 1.0], &[5, 5]), [1, 1]);
        assert_eq!(factors(&[3.0, 1.0], &[1, 1]), [3, 1]);
        let close = factors(&[1.0 / 3.0, 2.0 / 3.0], &[999_983, 1_000_003]);
        let part = (close[0] * 999_983) as f64 / (close[0] * 999_983 + close[1] * 1_000_003) as f64;
        assert!((part - 1.0 / 3.0).abs() < 1e-9, "{part}");
    }
}
