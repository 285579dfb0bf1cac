//! How long it takes until all, or enough, of several parallel branches have ended.
//!
//! Each branch is taken to be independent with a distribution that has its mean and variance: exponential where the squared
//! coefficient of variation is 1, an exponential after a constant below it, and a balanced mixture of two exponentials
//! (Whitt 1982) above it. For exponential branches the mean of the maximum is exact.

use crate::numeric::two_moment::balanced;

/// How many exponentials the distribution of a maximum is written out in at most; beyond, it is integrated numerically.
const TERMS: usize = 2048;

/// Mean and variance of the time until `enough` of the branches, given by mean and variance, have ended.
pub fn order_statistic(branches: &[(f64, f64)], enough: usize) -> (f64, f64) {
    let laws: Vec<Law> = branches.iter().map(|&(mean, variance)| Law::new(mean, variance)).collect();
    let longest = branches.iter().map(|branch| branch.0).fold(0.0, f64::max);
    if longest <= 0.0 || enough == 0 {
        return (0.0, 0.0);
    }
    if let [only] = branches {
        return *only;
    }
    let written_out = if enough >= laws.len() { until_all(&laws) } else { None };
    let (mean, square) = written_out.unwrap_or_else(|| integrated(&laws, enough, longest));
    (mean, (square - mean * mean).max(0.0))
}

/// First and second moment of the time until all have ended, in closed form: that is not before the last has passed its
/// constant part, and from there on the product of their distributions is a sum of exponentials. `None` if of too many.
fn until_all(laws: &[Law]) -> Option<(f64, f64)> {
    let terms = laws.iter().map(|law| law.running().count() + 1).try_fold(1_usize, usize::checked_mul)?;
    if terms > TERMS {
        return None;
    }
    let begin = laws.iter().map(|law| law.constant).fold(0.0, f64::max);
    // Factor and rate of each exponential in the probability that all have ended, as a function of the time since `begin`.
    let mut ended = Vec::with_capacity(terms);
    ended.push((1.0, 0.0));
    for law in laws {
        let known = ended.len();
        for Exponential { share, rate } in law.running() {
            let left = share * (-rate * (begin - law.constant)).exp();
            for index in 0..known {
                let (factor, sum) = ended[index];
                ended.push((-factor * left, sum + rate));
            }
        }
    }
    // The first term is the certainty that they end; the others, negated, are the probability that one still runs.
    let (mut mean, mut square) = (begin, begin * begin);
    for &(factor, rate) in &ended[1..] {
        mean -= factor / rate;
        square -= factor / rate * 2.0 * (begin + 1.0 / rate);
    }
    Some((mean, square))
}

/// First and second moment of the time until enough have ended, by Simpson's rule over t = longest·u/(1−u), which takes
/// [0, ∞) to [0, 1).
fn integrated(laws: &[Law], enough: usize, longest: f64) -> (f64, f64) {
    let steps = 400;
    let (mut mean, mut square) = (0.0, 0.0);
    let mut ended = vec![0.0; laws.len() + 1];
    for index in 0..steps {
        let u = f64::from(index) / f64::from(steps);
        let weight = match index {
            0 => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        } / (3.0 * f64::from(steps));
        let time = longest * u / (1.0 - u);
        let slope = longest / ((1.0 - u) * (1.0 - u));
        let running = 1.0 - at_least(laws, time, enough, &mut ended);
        mean += weight * slope * running;
        square += weight * slope * 2.0 * time * running;
    }
    (mean, square)
}

/// The probability that at least `enough` have ended by `time`.
fn at_least(laws: &[Law], time: f64, enough: usize, ended: &mut [f64]) -> f64 {
    if enough >= laws.len() {
        return laws.iter().map(|law| law.ended(time)).product();
    }
    ended.fill(0.0);
    ended[0] = 1.0;
    for (known, law) in laws.iter().enumerate() {
        let probability = law.ended(time);
        for count in (0..=known).rev() {
            ended[count + 1] += ended[count] * probability;
            ended[count] *= 1.0 - probability;
        }
    }
    ended[enough..].iter().sum()
}

/// A distribution by its first two moments: a constant, and then a mixture of at most two exponentials.
struct Law {
    constant: f64,
    /// Shares of 0 are none.
    mixture: [Exponential; 2],
}

#[derive(Clone, Copy)]
struct Exponential {
    share: f64,
    rate: f64,
}

impl Law {
    fn new(mean: f64, variance: f64) -> Self {
        let none = Exponential { share: 0.0, rate: 1.0 };
        // What is next to nothing has no finite rate.
        if mean <= 1e-300 || variance <= 1e-12 * mean * mean {
            return Self { constant: mean.max(0.0), mixture: [none; 2] };
        }
        let deviation = variance.sqrt();
        if deviation <= mean * (1.0 + 1e-9) {
            let only = Exponential { share: 1.0, rate: 1.0 / deviation };
            return Self { constant: (mean - deviation).max(0.0), mixture: [only, none] };
        }
        // Both have an equal part of the mean.
        let cv2 = variance / (mean * mean);
        let mixture = balanced(cv2).map(|share| Exponential { share, rate: 2.0 * share / mean });
        Self { constant: 0.0, mixture }
    }

    /// What it may still do after its constant part.
    fn running(&self) -> impl Iterator<Item = Exponential> {
        self.mixture.into_iter().filter(|part| part.share > 0.0)
    }

    fn ended(&self, time: f64) -> f64 {
        let since = time - self.constant;
        if since < 0.0 {
            return 0.0;
        }
        1.0 - self.running().map(|part| part.share * (-part.rate * since).exp()).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Law, integrated, order_statistic, until_all};

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
    fn the_closed_form_is_what_integration_comes_to() {
        for branches in [
            vec![(1.0, 1.0), (2.0, 1.0)],
            vec![(1.0, 0.25), (1.2, 3.0), (0.0, 0.0)],
            vec![(1.0, 5.0), (1.0, 0.5), (0.3, 0.09), (2.0, 0.01)],
        ] {
            let laws: Vec<Law> = branches.iter().map(|&(mean, variance)| Law::new(mean, variance)).collect();
            let (mean, square) = until_all(&laws).expect("few terms");
            let (near_mean, near_square) = integrated(&laws, branches.len(), 2.0);
            assert!((mean / near_mean - 1.0).abs() < 2e-3, "{branches:?}: {mean}, integrated {near_mean}");
            assert!((square / near_square - 1.0).abs() < 5e-3, "{branches:?}: {square}, integrated {near_square}");
        }
    }
}
