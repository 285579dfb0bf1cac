//! How long it takes until all, or enough, of several parallel branches have ended.
//!
//! Branches are taken to be independent, each with the [distribution](super::two_moment) of its mean and variance. The time
//! until all have ended is exact for these, where the product of their distributions has few terms.

use crate::numeric::quadrature::to_infinity;
use crate::numeric::two_moment::{Distribution, TailPart};

/// How many weights the distribution of a maximum is written out in at most; beyond, it is integrated numerically.
const TERMS: usize = 2048;

/// Mean and variance of the time until `enough` of the branches, given by mean and variance, have ended.
pub fn order_statistic(branches: &[(f64, f64)], enough: usize) -> (f64, f64) {
    let longest = branches.iter().map(|branch| branch.0).fold(0.0, f64::max);
    if longest <= 0.0 || enough == 0 {
        return (0.0, 0.0);
    }
    if let [only] = branches {
        return *only;
    }
    let times: Vec<Distribution> =
        branches.iter().map(|&(mean, variance)| Distribution::of_variance(mean, variance)).collect();
    let written_out = if enough >= times.len() { until_all(&times) } else { None };
    let (mean, square) = written_out.unwrap_or_else(|| integrated(&times, enough, longest));
    (mean, (square - mean * mean).max(0.0))
}

/// First and second moment of the time until all have ended, in closed form: that is not before the last has passed its
/// constant part, and from there on the product of their distributions is a sum of exponentials and their powers. `None` if of
/// too many.
fn until_all(times: &[Distribution]) -> Option<(f64, f64)> {
    let begin = times.iter().map(Distribution::constant).fold(0.0, f64::max);
    let tails: Vec<Vec<TailPart>> = times.iter().map(|time| time.tail_from(begin)).collect();
    let products = tails.iter().try_fold(1_usize, |terms, parts| terms.checked_mul(parts.len() + 1))?;
    let powers: usize = tails.iter().flatten().map(|part| part.weights.len() - 1).sum();
    if products.checked_mul(powers + 1).is_none_or(|weights| weights > TERMS) {
        return None;
    }
    // The probability that all have ended: the first term is the certainty that they end.
    let mut ended = vec![TailPart { rate: 0.0, weights: vec![1.0] }];
    ended.reserve(products);
    for parts in &tails {
        let known = ended.len();
        for part in parts {
            for index in 0..known {
                let mut both = product(&ended[index], part);
                both.weights.iter_mut().for_each(|weight| *weight = -*weight);
                ended.push(both);
            }
        }
    }
    // The others, negated, are the probability that one still runs.
    let (mut mean, mut square) = (begin, begin * begin);
    for term in &ended[1..] {
        for (power, weight) in term.weights.iter().enumerate() {
            mean -= weight / term.rate;
            square -= weight / term.rate * 2.0 * (begin + (power + 1) as f64 / term.rate);
        }
    }
    Some((mean, square))
}

/// The product of two parts of tails. The weight of a power of the sum is a binomial probability: which of the stages are whose.
fn product(left: &TailPart, right: &TailPart) -> TailPart {
    let rate = left.rate + right.rate;
    let (of_left, of_right) = (left.rate / rate, right.rate / rate);
    let mut weights = vec![0.0; left.weights.len() + right.weights.len() - 1];
    let mut first = 1.0;
    for (n, own) in left.weights.iter().enumerate() {
        let mut binomial = first;
        for (m, other) in right.weights.iter().enumerate() {
            weights[n + m] += own * other * binomial;
            binomial *= of_right * (n + m + 1) as f64 / (m + 1) as f64;
        }
        first *= of_left;
    }
    TailPart { rate, weights }
}

/// First and second moment of the time until enough have ended, by quadrature.
fn integrated(times: &[Distribution], enough: usize, longest: f64) -> (f64, f64) {
    let places: Vec<f64> = times.iter().flat_map(Distribution::steep).collect();
    let mut ended = vec![0.0; times.len() + 1];
    let [mean, square] = to_infinity(places, longest, |time| {
        let running = 1.0 - at_least(times, time, enough, &mut ended);
        [running, 2.0 * time * running]
    });
    (mean, square)
}

/// The probability that at least `enough` have ended by `time`.
fn at_least(times: &[Distribution], time: f64, enough: usize, ended: &mut [f64]) -> f64 {
    if enough >= times.len() {
        return times.iter().map(|branch| 1.0 - branch.tail(time)).product();
    }
    ended.fill(0.0);
    ended[0] = 1.0;
    for (known, branch) in times.iter().enumerate() {
        let probability = 1.0 - branch.tail(time);
        for count in (0..=known).rev() {
            ended[count + 1] += ended[count] * probability;
            ended[count] *= 1.0 - probability;
        }
    }
    ended[enough..].iter().sum()
}

/// Mean and second moment of what is left of a time after another one, 0 where nothing is; both are given by mean and variance.
pub(crate) fn left_after(time: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    let [own, before] = [time, other].map(|(mean, variance)| Distribution::of_variance(mean, variance));
    let scale = time.0.min(other.0);
    if scale <= 0.0 {
        return (time.0, time.1 + time.0 * time.0);
    }
    // By parts: E g(Y) = g(0) + ∫ g'(y) P(Y > y) dy, where g(y) are the moments of what is left after a time y.
    let places = own.steep().into_iter().chain(before.steep()).collect();
    let [shorter, shorter2] = to_infinity(places, scale, |at| {
        let (tail, left) = own.left(at);
        let running = before.tail(at);
        [tail * running, 2.0 * left * running]
    });
    let mean = (time.0 - shorter).clamp(0.0, time.0);
    (mean, (time.1 + time.0 * time.0 - shorter2).max(mean * mean))
}

#[cfg(test)]
mod tests {
    use super::{Distribution, integrated, left_after, order_statistic, until_all};

    #[test]
    fn exponential_branches_have_the_mean_of_their_maximum() {
        // H₃ and the variance of the maximum of three exponentials: 1 + 1/4 + 1/9.
        let (mean, variance) = order_statistic(&[(1.0, 1.0); 3], 3);
        assert!((mean - 11.0 / 6.0).abs() < 1e-12, "{mean}");
        assert!((variance - 49.0 / 36.0).abs() < 1e-12, "{variance}");
    }

    #[test]
    fn constants_end_with_the_longest() {
        let (mean, variance) = order_statistic(&[(1.0, 0.0), (3.0, 0.0), (0.0, 0.0)], 3);
        assert!((mean - 3.0).abs() < 1e-12 && variance < 1e-12, "{mean} {variance}");
    }

    #[test]
    fn the_first_of_constants_and_exponentials() {
        // The shorter of an exponential and a constant of the same mean: 1 − 1/e.
        let (mean, _) = order_statistic(&[(1.0, 1.0), (1.0, 0.0)], 1);
        assert!((mean - (1.0 - (-1.0_f64).exp())).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn the_closed_form_is_what_integration_comes_to() {
        for branches in [
            vec![(1.0, 1.0), (2.0, 1.0)],
            vec![(1.0, 0.25), (1.2, 3.0), (0.0, 0.0)],
            vec![(1.0, 5.0), (1.0, 0.5), (0.3, 0.09), (2.0, 0.01)],
            vec![(1.0, 0.1), (1.0, 0.13), (1.0, 0.02), (2.0, 0.0)],
        ] {
            let times: Vec<Distribution> =
                branches.iter().map(|&(mean, variance)| Distribution::of_variance(mean, variance)).collect();
            let (mean, square) = until_all(&times).expect("few terms");
            let (near_mean, near_square) = integrated(&times, branches.len(), 2.0);
            assert!((mean / near_mean - 1.0).abs() < 1e-6, "{branches:?}: {mean}, integrated {near_mean}");
            assert!((square / near_square - 1.0).abs() < 1e-5, "{branches:?}: {square}, integrated {near_square}");
        }
    }

    #[test]
    fn one_exponential_is_longer_than_another() {
        // With chance 2/3, and then by 2 s.
        let (mean, square) = left_after((2.0, 4.0), (1.0, 1.0));
        assert!((mean - 4.0 / 3.0).abs() < 1e-8, "{mean}");
        assert!((square - 2.0 / 3.0 * 8.0).abs() < 1e-8, "{square}");
        assert!((left_after((2.0, 4.0), (0.0, 0.0)).0 - 2.0).abs() < 1e-12);
        // What is left after a constant, of a constant and of an exponential.
        assert!((left_after((2.0, 0.0), (0.5, 0.0)).0 - 1.5).abs() < 1e-9);
        assert!((left_after((1.0, 1.0), (1.0, 0.0)).0 - (-1.0_f64).exp()).abs() < 1e-9);
    }
}
