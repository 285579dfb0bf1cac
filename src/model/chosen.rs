//! Samples of operations that were kept for what they are: by policies of tail samplers, or for how long they took.

mod jump;
mod least;
mod limited;
mod waited;

pub use limited::at_fixed_rate;

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::sketch::{SKETCH_ERROR, Sketch};
use crate::lqn::submodel::SubModel;
use crate::model::load::{self, toml_key};
use crate::model::parts::Customer;
use crate::model::{clocks, codes};

/// The fewest operations whose times tell that the shorter ones are missing.
const FEWEST: u64 = 100;
/// The shortest time from which on policies keep operations, seconds. Below it, times end at what the least work takes.
const SHORTEST: f64 = 0.05;
/// First digits of times from which on policies keep operations.
const ROUND: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 8.0];
/// Stretches of times above such a time that are compared are so long, as a part of it.
const STRETCH: f64 = 0.05;
/// The fewest operations in the first of them.
const ENOUGH: f64 = 10.0;
/// The part of operations that may fail where times of several parts tell it.
const FAILED: f64 = 0.05;
/// The fewest operations of several parts whose times tell it.
const FEW: u64 = 60;
/// Their shortest time is at least so long, seconds,
const EDGE: f64 = 0.005;
/// and so many steps of the clock; so is any time from which on more were kept.
const STEPS: f64 = 40.0;
/// Their parts take less than this part of it at the least.
const LESS: f64 = 0.8;
/// So many lie in the first stretch. Of a sum of k parts about k/20 do.
const MANY: f64 = 8.0;
/// Where clients give up after a time, this part of those that take longer or more
const MOST: f64 = 0.5;
/// take no longer than so many times as long (ours).
const HARDLY_LONGER: f64 = 1.15;
/// No other stretch has more than so many times as many.
const FEWER: f64 = 2.0;

/// Says of each scenario whether its operations are no random sample of all.
pub fn findings(sub: &SubModel, customers: &[Customer]) -> Vec<Option<Diagnostic>> {
    // Stretches before and after a jump hold as many steps of the clock as each other where they are long.
    let is_fine = |customer: &Customer, at: f64| at >= STEPS * clocks::step(&customer.scenario_total).unwrap_or(0.0);
    let of = |customer: &Customer| {
        let total = &customer.scenario_total;
        jump::of(&total.responses)
            .filter(|at| is_fine(customer, *at) && !is_timeout(&total.responses, total.failures, *at))
            .filter(|at| !waited::is_waited(sub, customer, *at))
    };
    let limit = limited::of(customers.iter().map(|own| &own.scenario_total));
    let jumps = jump::made_by_sampler(&customers.iter().map(of).collect::<Vec<_>>(), near_round);
    let of = |(customer, jump): (&Customer, Option<f64>)| {
        let alone = || limited::of([&customer.scenario_total].into_iter());
        let is_told = customer.scenario_total.sampled.operations > 0;
        let is_limited = || {
            if customer.scenario_total.unweighed > 0 && load::is_unweighed(&customer.scenario_total) {
                return Some(recorded_finding(customer));
            }
            limit.or_else(alone).filter(|_| !is_told).map(|limit| limited_finding(customer, limit))
        };
        customer.members.is_empty().then(|| finding(sub, customer, jump).or_else(is_limited)).flatten()
    };
    customers.iter().zip(jumps).map(of).collect()
}

/// That a sampler kept so many operations of each second at most.
fn limited_finding(customer: &Customer, limit: u64) -> Diagnostic {
    let scenario = &customer.scenario;
    let message = format!("scenario `{scenario}` looks like a sample of the first {limit} operations of each second");
    let why = "nearly all seconds have as many operations, which begin early in them, and none after that: a sampler that limits rates does so";
    of_part(customer, message, why.to_owned())
}

/// That a sampler kept them which spans name without a probability.
fn recorded_finding(customer: &Customer) -> Diagnostic {
    let message = format!("scenario `{}` was recorded by a sampler that tells no probability", customer.scenario);
    of_part(customer, message, load::unweighed_words(&customer.scenario_total))
}

/// That operations are a part of all, and nobody knows which.
fn of_part(customer: &Customer, message: String, why: String) -> Diagnostic {
    Diagnostic::warning(codes::CHOSEN, Place::Nowhere, message)
        .with_note(why)
        .with_note("the rate is a lower bound, and so are all utilisations: the system may be much nearer to saturation than they say")
        .with_hint(format!(
            "give the rate of all operations, as counters of requests tell it: `rate` under `[scenario.{}]`",
            toml_key(&customer.scenario)
        ))
}

/// Whether a time is one at which clients give up: most operations that take longer take hardly longer, and fail.
fn is_timeout(times: &Sketch, failures: u64, at: f64) -> bool {
    let longer = times.buckets().map(|(_, count)| count).sum::<u64>() as f64 - times.below(at);
    let hardly = times.below(at * HARDLY_LONGER) - times.below(at);
    hardly >= MOST * longer && failures as f64 >= MOST * longer
}

/// The round number that is nearest to a time.
fn near_round(time: f64) -> Option<f64> {
    let power = 10_f64.powi(time.log10().floor() as i32);
    let rounds = ROUND.iter().chain(&[6.0, 7.0, 9.0, 10.0]).map(|digit| digit * power);
    rounds.min_by(|one, other| (one - time).abs().total_cmp(&(other - time).abs()))
}

fn finding(sub: &SubModel, customer: &Customer, jump: Option<f64>) -> Option<Diagnostic> {
    let (scenario, total) = (&*customer.scenario, &customer.scenario_total);
    let (message, what) = if total.chosen > 0 {
        let (chosen, all) = (total.chosen, total.operations);
        let message =
            format!("{chosen} of {all} operations of scenario `{scenario}` were kept by a sampler for what they are");
        (message, "the traces name the policy, and it does not draw at random".to_owned())
    } else if let Some(from) = jump {
        let message = format!(
            "scenario `{scenario}` looks like a sample of slow operations, from {} on, and of a part of the others",
            time(from)
        );
        (message, "from that time on times are more than 2.5 times as frequent as just before".to_owned())
    } else {
        let step = clocks::step(total).unwrap_or(0.0);
        let by_parts = || {
            let edge = edge(&total.responses, total.failures).filter(|edge| *edge >= STEPS * step)?;
            (least::least(sub, customer) < LESS * edge).then_some(edge)
        };
        let least = cut(&total.responses, total.failures).or_else(by_parts)?;
        let message = format!("scenario `{scenario}` looks like a sample of slow operations, from {} on", time(least));
        (message, format!("times begin at {} as if all shorter ones were cut off", time(least)))
    };
    let finding = Diagnostic::warning(codes::CHOSEN, Place::Nowhere, message)
        .with_note(what)
        .with_note("structure can be told from them; the rate is a lower bound, and means are those of such operations and not of all");
    Some(finding.with_hint(format!(
        "take operations that were drawn at random, or set `rate` under `[scenario.{}]`",
        toml_key(scenario)
    )))
}

/// The time from which on operations were kept, where all but failed ones take longer. Times are cut off at a round number, where they are as frequent as a
/// little beyond it: a least time of work begins with few, or with many that met nobody.
fn cut(times: &Sketch, failures: u64) -> Option<f64> {
    let total: u64 = times.buckets().map(|(_, count)| count).sum();
    if total < FEWEST || failures.saturating_mul(2) > total {
        return None;
    }
    let least = times.quantile(0.5 / total as f64)?;
    let middle = times.quantile(0.5)?;
    let from = least.max(SHORTEST).log10().floor() as i32;
    let rounds = (from..=middle.log10().ceil() as i32).flat_map(|power| ROUND.map(|digit| digit * 10_f64.powi(power)));
    let within = |low: f64, high: f64| times.below(high) - times.below(low);
    let is_cut = |round: &f64| {
        // Buckets are a little wide, so that those of shorter times reach beyond it.
        let stretch = |number: f64| within(round * (1.0 + number * STRETCH), round * (1.0 + (number + 1.0) * STRETCH));
        let (first, second) = (stretch(0.0), stretch(1.0));
        let (shorter, most) =
            (times.below(round * 0.98), (2..20).map(|number| stretch(f64::from(number))).fold(0.0, f64::max));
        let noise = 3.0 * (first + second).sqrt();
        *round >= SHORTEST
            && shorter <= failures as f64
            && first >= ENOUGH
            && (first - second).abs() <= noise
            && most <= first + 3.0 * first.sqrt()
    };
    rounds.into_iter().find(is_cut)
}

/// The least time of operations but of failed ones, where times are as frequent right from it on as anywhere. A sum of parts, each of which may be short, begins with few.
fn edge(times: &Sketch, failures: u64) -> Option<f64> {
    let total: u64 = times.buckets().map(|(_, count)| count).sum();
    // Many that fail early are parts of what the others do, and shorter than these.
    if total < FEW || failures as f64 > FAILED * total as f64 {
        return None;
    }
    let least = times.quantile((failures as f64 + 0.5) / total as f64)? * (1.0 - SKETCH_ERROR);
    let stretch = |number: u32| {
        let from = f64::from(number) * STRETCH;
        times.below(least * (1.0 + from + STRETCH)) - times.below(least * (1.0 + from))
    };
    let (first, most) = (stretch(0), (1..20).map(stretch).fold(0.0, f64::max));
    (least >= EDGE && first >= MANY && most <= FEWER * first).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::{cut, edge, is_timeout};
    use crate::lqn::sketch::Sketch;

    /// Exponential times that clients wait for no longer than 60 ms, and a little that they do after that.
    #[test]
    fn times_at_which_clients_give_up_are_no_policy() {
        let time = |number: u32| -0.03 * ((f64::from(number) + 0.5) / 4000.0).ln();
        let capped = of((0..4000).map(|number| time(number).min(0.06) + 0.001 + 0.00001 * f64::from(number % 300)));
        let failures = (0..4000).filter(|number| time(*number) > 0.06).count() as u64;
        assert!(is_timeout(&capped, failures, 0.06));
        assert!(!is_timeout(&capped, failures / 4, 0.06));
        assert!(!is_timeout(&of((0..4000).map(time)), failures, 0.06));
    }

    fn of(times: impl Iterator<Item = f64>) -> Sketch {
        let mut sketch = Sketch::default();
        times.for_each(|time| sketch.add(time));
        sketch
    }

    /// Quantiles of exponential times in an order that does not matter.
    fn exponential(mean: f64) -> impl Iterator<Item = f64> {
        (0..2000).map(move |number| -mean * ((f64::from(number) + 0.5) / 2000.0).ln())
    }

    #[test]
    fn times_that_are_cut_off_are_told_from_those_that_begin() {
        let slow = of(exponential(0.2).filter(|time| *time > 0.5).flat_map(|time| [time, time * 1.001]));
        assert_eq!(cut(&slow, 0), Some(0.5));
        let failed = of(exponential(0.2).filter(|time| *time > 0.5).chain([0.01; 7]).flat_map(|time| [time, time]));
        assert_eq!((cut(&failed, 14), cut(&failed, 3)), (Some(0.5), None));
        // All of them, those beyond a pause, and those of which many meet nobody.
        assert_eq!(cut(&of(exponential(0.2)), 0), None);
        assert_eq!(
            cut(
                &of(exponential(0.02)
                    .zip(exponential(0.03))
                    .map(|(one, other)| 0.1 + one + 0.3 * other * other / 0.03)),
                0
            ),
            None
        );
        assert_eq!(cut(&of(exponential(0.2).map(|time| 0.1 + (time - 0.3).max(0.0))), 0), None);
    }

    /// Operations that fail early are shorter than all others, whose least time is no edge of a sampler.
    #[test]
    fn many_early_failures_make_no_edge() {
        let all = || {
            exponential(0.02).map(|time| 0.006 + time).chain((0..800).map(|number| 0.002 + f64::from(number) * 1e-6))
        };
        assert_eq!(edge(&of(all()), 800), None);
    }

    /// A sum of three times has no edge where it begins, and one anywhere that it is cut off.
    #[test]
    fn an_edge_is_where_many_begin() {
        let parts = || {
            let part = |seed: usize| (0..2000_usize).map(move |number| (number * seed % 2003) as f64 + 0.5);
            let exponential = |uniform: f64| -0.02 * (uniform / 2003.0).ln();
            part(7)
                .zip(part(831))
                .zip(part(1297))
                .map(move |((one, other), third)| exponential(one) + exponential(other) + exponential(third))
        };
        assert_eq!(edge(&of(parts()), 0), None);
        for least in [0.0731, 0.0917, 0.13] {
            let found = edge(&of(parts().filter(|time| *time > least)), 0).expect("it is cut off there");
            assert!((found / least - 1.0).abs() < 0.02, "{found} for {least}");
        }
    }
}
