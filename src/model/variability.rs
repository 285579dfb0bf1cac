//! How much work varies from one execution to the next, as far as traces show it.
//!
//! A mean alone is taken by solvers as the mean of an exponential, and calls as geometric in number. Programs are often far
//! more regular than that, and where branches run in parallel, or tasks queue first come, first served, it shows: the mean
//! of the maximum of three exponentials is 1.8 times the mean of one. So they are given what was observed often enough.

use crate::lqn::submodel::{Moments, RequestTotal, WorkTotal};
use crate::lqn::{CallOrder, Work};
use crate::model::demand::DemandSource;
use crate::model::naming::Alphabet;

/// How many executions must have been seen before anything is said of the spread of their times: below, an estimate of a variance is worth
/// less than the customary assumption. Numbers of calls are told from any: a program that made one call in each of three executions
/// is hardly one that makes three in one and none in two others, as a geometric number would have it. A customer, above all, begins an
/// operation once.
const ENOUGH: u64 = 10;

/// Sets the variability of work that was executed so many times: of its slices' length, from the parts with the sources of
/// their demands, and of the number of its calls. `work` has its means already. Where joins were seen in time, few executions must do for
/// times, too: what joins wait for depends on it, and is known.
pub fn observe(
    work: &mut Work,
    calls: &[RequestTotal],
    parts: &[(&WorkTotal, DemandSource)],
    times: u64,
    alphabet: &Alphabet,
    joins: bool,
) {
    if times == 0 {
        return;
    }
    if !calls.is_empty() && calls.iter().all(|request| is_exact(request, times)) {
        work.call_order = CallOrder::Deterministic;
        for call in &mut work.calls {
            call.mean = call.mean.round();
        }
    } else if is_regular(calls, times) {
        work.call_order = CallOrder::Bernoulli;
    }
    if times < ENOUGH && !joins {
        return;
    }
    let variance: Option<f64> = parts.iter().map(|(part, source)| variance(part, *source, times, alphabet)).sum();
    if let Some(variance) = variance
        && work.demand > 0.0
    {
        let number = work.calls.iter().map(|call| call.mean).sum();
        // Requests of one kind are taken as independent of those of another.
        let spread = calls.iter().map(|request| spread_of_calls(request, times)).sum();
        work.cv2 = Some(rounded(of_slice(variance / (work.demand * work.demand), number, spread)));
    }
}

/// The part of a number of calls by which it may miss a whole one, in mean and in variance, and pass for exact: a span in five hundred that was
/// lost makes no program geometric. Ours; it moves no mean by more.
const NEARLY: f64 = 0.002;

/// Whether every execution made the same number of a request, but for a few.
fn is_exact(request: &RequestTotal, times: u64) -> bool {
    let mean = request.count as f64 / times.max(1) as f64;
    let whole = mean.round();
    let variance = request.squares as f64 / times.max(1) as f64 - mean * mean;
    // Squares that are less than any numbers have were not recorded.
    whole >= 1.0 && (mean - whole).abs() <= NEARLY * whole && (-1e-9 * mean * mean..=NEARLY * whole).contains(&variance)
}

/// Whether the numbers of requests vary rather as whole ones, with one more by chance, than as geometric ones: a call that few executions
/// make again, that some leave out, or that was lost in some.
fn is_regular(calls: &[RequestTotal], times: u64) -> bool {
    let (mut as_whole, mut as_geometric) = (0.0, 0.0);
    for request in calls {
        let mean = request.count as f64 / times.max(1) as f64;
        let variance = request.squares as f64 / times.max(1) as f64 - mean * mean;
        // No numbers vary less; their squares were not recorded.
        if variance < mean.fract() * (1.0 - mean.fract()) - 1e-9 * (1.0 + mean * mean) {
            return false;
        }
        as_whole += (variance - mean.fract() * (1.0 - mean.fract())).abs();
        as_geometric += (variance - mean * (1.0 + mean)).abs();
    }
    as_whole < as_geometric
}

/// The variance of the number of a request over the executions.
fn spread_of_calls(request: &RequestTotal, times: u64) -> f64 {
    let times = times.max(1) as f64;
    let mean = request.count as f64 / times;
    (request.squares as f64 / times - mean * mean).max(0.0)
}

/// The variance of a part's demand over the executions, square seconds; `None` where it cannot be told.
fn variance(part: &WorkTotal, source: DemandSource, times: u64, alphabet: &Alphabet) -> Option<f64> {
    match source {
        DemandSource::None => Some(0.0),
        DemandSource::Function => None,
        DemandSource::Exclusive => (part.exclusive.count == part.visits).then(|| spread(&part.exclusive, times)),
        // Activities are taken as independent, and so are the measurements of one in an execution: of these, sums were not kept.
        DemandSource::Cpu => {
            let activities = alphabet.activities(part).into_iter();
            Some(activities.map(|(_, activity)| spread_of_sums(&activity.cpu, times)).sum())
        }
    }
}

/// The variance over so many executions of the sum of the values that each has of a quantity. The number of values is taken as whole, with one
/// more by chance.
fn spread_of_sums(quantity: &Moments, times: u64) -> f64 {
    let number = quantity.count as f64 / times.max(1) as f64;
    let mean = quantity.mean().unwrap_or(0.0);
    let each = spread(quantity, quantity.count);
    number * each + number.fract() * (1.0 - number.fract()) * mean * mean
}

/// The variance of a quantity over so many executions, of which those without a value count as zero.
fn spread(quantity: &Moments, times: u64) -> f64 {
    let times = times.max(1) as f64;
    let mean = quantity.sum.as_f64() / times;
    (quantity.squares as f64 / 1e18 / times - mean * mean).max(0.0)
}

/// The squared coefficient of variation of a slice, of that of the sum of all slices. There is one more slice than calls, all
/// with the same mean; what the number of calls adds by varying is no variance of the slices. That it varies as was seen, and not as
/// a geometric number would, matters: a program whose calls are more regular would seem to have slices without any variance.
fn of_slice(total: f64, calls: f64, spread_of_calls: f64) -> f64 {
    (total * (1.0 + calls) - spread_of_calls / (1.0 + calls)).max(0.0)
}

/// Four digits, more would pretend; what is left of a difference of equal numbers is nothing.
pub fn rounded(value: f64) -> f64 {
    if value <= 1e-6 {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lqn::{Call, CallKind, EntryId};

    fn measured(seconds: &[f64]) -> WorkTotal {
        let mut part = WorkTotal { visits: seconds.len() as u64, ..WorkTotal::default() };
        for &value in seconds {
            part.exclusive.add(value);
        }
        part
    }

    fn work(demand: f64, calls: f64) -> Work {
        let calls = if calls > 0.0 {
            vec![Call { to: EntryId::from(0), kind: CallKind::Synchronous, mean: calls }]
        } else {
            vec![]
        };
        Work { demand, calls, ..Work::default() }
    }

    #[test]
    fn constant_work_has_no_variance_and_a_few_executions_tell_nothing() {
        let mut constant = work(0.002, 0.0);
        observe(
            &mut constant,
            &[],
            &[(&measured(&[0.002; 10]), DemandSource::Exclusive)],
            10,
            &Alphabet::default(),
            false,
        );
        assert_eq!(constant.cv2, Some(0.0));
        let mut few = work(0.002, 0.0);
        observe(&mut few, &[], &[(&measured(&[0.002; 9]), DemandSource::Exclusive)], 9, &Alphabet::default(), false);
        assert_eq!(few.cv2, None);
    }

    #[test]
    fn several_measurements_in_an_execution_vary_less_than_one() {
        let seen = |values: &[f64], times: u64| {
            let mut cpu = Moments::default();
            for value in values {
                cpu.add(*value);
            }
            spread_of_sums(&cpu, times)
        };
        let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 1e-9, "{value}, not {wanted}");
        // Five of 2 s in each execution; 1 s or 3 s, once and twice an execution.
        near(seen(&[2.0; 50], 10), 0.0);
        near(seen(&[1.0, 3.0], 2), 1.0);
        near(seen(&[1.0, 3.0, 1.0, 3.0], 2), 2.0);
        // One or two of 2 s: the number varies alone.
        near(seen(&[2.0; 15], 10), 1.0);
        // In half of the executions: as where the others are zero.
        near(seen(&[2.0; 5], 10), 1.0);
    }

    #[test]
    fn executions_without_work_count_as_zero() {
        // Ten executions, five of which take 2 s: mean 1, variance 1.
        let mut half = work(1.0, 0.0);
        observe(&mut half, &[], &[(&measured(&[2.0; 5]), DemandSource::Exclusive)], 10, &Alphabet::default(), false);
        assert_eq!(half.cv2, Some(1.0));
    }

    #[test]
    fn the_same_number_of_calls_in_each_execution_is_exact() {
        let seen = |count, squares| {
            let mut work = work(1.0, count as f64 / 10.0);
            let (calls, part) = ([RequestTotal { count, squares }], measured(&[1.0; 10]));
            observe(&mut work, &calls, &[(&part, DemandSource::Exclusive)], 10, &Alphabet::default(), false);
            work.call_order
        };
        assert_eq!(seen(20, 40), CallOrder::Deterministic);
        assert_eq!(seen(20, 42), CallOrder::Bernoulli, "one made three and another one made one");
        assert_eq!(seen(5, 5), CallOrder::Bernoulli, "half of them made one");
        assert_eq!(seen(20, 100), CallOrder::Stochastic, "a variance of 6 is that of a geometric number");
        assert_eq!(seen(20, 0), CallOrder::Stochastic, "squares that were not recorded");
    }

    #[test]
    fn few_executions_tell_numbers_of_calls_and_no_spread_of_times() {
        let seen = |times: u64, count, squares| {
            let mut work = work(1.0, count as f64 / times as f64);
            let (calls, part) = ([RequestTotal { count, squares }], measured(&vec![1.0; times as usize]));
            observe(&mut work, &calls, &[(&part, DemandSource::Exclusive)], times, &Alphabet::default(), false);
            (work.call_order, work.cv2)
        };
        assert_eq!(seen(1, 1, 1), (CallOrder::Deterministic, None));
        assert_eq!(seen(4, 8, 16), (CallOrder::Deterministic, None));
        assert_eq!(seen(4, 1, 1), (CallOrder::Bernoulli, None), "one of four made one");
        assert_eq!(seen(4, 4, 16), (CallOrder::Stochastic, None), "one of four made four");
    }

    #[test]
    fn a_lost_call_in_a_thousand_makes_calls_no_less_exact() {
        let seen = |count: u64, squares| {
            let mut work = work(1.0, count as f64 / 1000.0);
            let (calls, part) = ([RequestTotal { count, squares }], measured(&[1.0; 1000]));
            observe(&mut work, &calls, &[(&part, DemandSource::Exclusive)], 1000, &Alphabet::default(), false);
            (work.call_order, work.calls[0].mean)
        };
        assert_eq!(seen(999, 999), (CallOrder::Deterministic, 1.0));
        assert_eq!(seen(1999, 3997), (CallOrder::Deterministic, 2.0));
        assert_eq!(seen(980, 980), (CallOrder::Bernoulli, 0.98));
        assert_eq!(seen(1, 1), (CallOrder::Bernoulli, 0.001));
    }

    #[test]
    fn slices_together_have_the_variance_of_the_whole() {
        // Three exponential slices of a third each: 1/3 in all; exact calls.
        assert!((of_slice(1.0 / 3.0, 2.0, 0.0) - 1.0).abs() < 1e-12);
        // A geometric number of exponential slices is exponential.
        assert!((of_slice(1.0, 3.0, 12.0) - 1.0).abs() < 1e-12);
        // Calls in two phases, each geometric, vary less than one geometric number of the same mean does: 1/4 and 3/4, with slices of
        // 0.4 s and 0.5 s / 1.75. Of the whole, 1 s, the variance is 1/2.
        let slice = of_slice(0.5, 1.0, 0.25 * 1.25 + 0.75 * 1.75);
        assert!((0.1..1.0).contains(&slice), "{slice}");
    }
}
