//! Distributions of a given mean and squared coefficient of variation c².
//!
//! Above c² = 1 every solver but the Markov chain takes the hyperexponential with balanced means; the chain takes Marie's two
//! stages, which need no choice before the first. Below it each takes the form that its own equations have a closed answer for:
//! order statistics a constant and an exponential, residual times a sum of two exponentials, the Markov chain equal stages, and
//! the simulator and all Laplace transforms gamma. All of them have the same two moments.

/// The probabilities of the two branches of a hyperexponential distribution with balanced means (Whitt 1982), for c² above 1. Branch
/// i has the mean `mean / (2·p_i)`.
pub(crate) fn balanced(cv2: f64) -> [f64; 2] {
    let first = f64::midpoint(1.0, ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
    [first, 1.0 - first]
}

/// Weights and means of two exponentials whose weighted tails are those of the distribution: a mixture of two, or the tail of a sum
/// of two, where one weight is negative. A sum of two has a c² of at least one half; below it, that of 0.51 is taken.
pub(crate) fn two_exponentials(mean: f64, variance: f64) -> [(f64, f64); 2] {
    let cv2 = variance / (mean * mean);
    if cv2 > 1.0 {
        return balanced(cv2).map(|share| (share, mean / (2.0 * share)));
    }
    let spread = (2.0 * cv2.max(0.51) - 1.0).sqrt();
    let (long, short) = (mean * f64::midpoint(1.0, spread), mean * f64::midpoint(1.0, -spread));
    if short <= 1e-9 * long {
        return [(1.0, mean), (0.0, mean)];
    }
    [(long / (long - short), long), (-short / (long - short), short)]
}

/// The Laplace transform of a gamma distribution: the probability that an exponential time of that rate is longer.
pub(crate) fn gamma_transform(mean: f64, variance: f64, rate: f64) -> f64 {
    if mean <= 0.0 {
        return 1.0;
    }
    let shape = mean * mean / variance.max(1e-6 * mean * mean);
    (-(rate * mean / shape).ln_1p() * shape).exp()
}

/// Exponential stages in a row: after each but the last, the service ends there with some probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stages {
    /// Rate of the first stage.
    pub first: f64,
    /// Rate of each further stage.
    pub further: f64,
    /// The number of stages.
    pub count: usize,
    /// The probability that the first stage is not the last; all others go on surely.
    pub goes_on: f64,
}

/// Stages with that mean and c²: two for c² above 1 (Marie 1980), as many equal ones as are needed below it (Sauer and Chandy
/// 1975).
pub(crate) fn stages(mean: f64, cv2: f64) -> Stages {
    if (cv2 - 1.0).abs() < 1e-9 {
        return Stages { first: 1.0 / mean, further: 1.0 / mean, count: 1, goes_on: 0.0 };
    }
    if cv2 > 1.0 {
        return Stages { first: 2.0 / mean, further: 1.0 / (mean * cv2), count: 2, goes_on: 1.0 / (2.0 * cv2) };
    }
    let n = (1.0 / cv2 - 1e-9).ceil().max(2.0);
    let only = (2.0 * n * cv2 + n - 2.0 - (n * n + 4.0 - 4.0 * n * cv2).sqrt()) / (2.0 * (cv2 + 1.0) * (n - 1.0));
    let rate = (n - only * (n - 1.0)) / mean;
    Stages { first: rate, further: rate, count: n as usize, goes_on: 1.0 - only }
}

#[cfg(test)]
mod tests {
    use super::{balanced, stages, two_exponentials};

    #[test]
    fn two_exponentials_have_the_mean_and_variance() {
        for cv2 in [0.6, 0.9, 1.0, 3.0] {
            let lengths = two_exponentials(2.0, 4.0 * cv2);
            let moment = |power: i32| lengths.iter().map(|(share, mean)| share * mean.powi(power)).sum::<f64>();
            assert!((moment(0) - 1.0).abs() < 1e-9, "{cv2}");
            assert!((moment(1) - 2.0).abs() < 1e-9, "{cv2}");
            assert!((2.0 * moment(2) - 4.0 * (1.0 + cv2)).abs() < 1e-9, "{cv2}");
        }
    }

    #[test]
    fn every_form_has_the_same_two_moments() {
        for cv2 in [0.1, 0.3, 0.5, 0.8, 1.0, 1.7, 12.0] {
            let found = stages(3.0, cv2);
            // Backwards from the last stage: mean and second moment of what is left.
            let (mut mean, mut square) = (0.0, 0.0);
            for stage in (0..found.count).rev() {
                let (rate, on) = if stage == 0 { (found.first, found.goes_on) } else { (found.further, 1.0) };
                let (own, rest, rest2) = (1.0 / rate, on * mean, on * square);
                (mean, square) = (own + rest, 2.0 * own * own + 2.0 * own * rest + rest2);
            }
            assert!((mean - 3.0).abs() < 1e-9, "{cv2}: {mean}");
            assert!((square - 9.0 * (1.0 + cv2)).abs() < 1e-8, "{cv2}: {square}");
            if cv2 > 1.0 {
                let means = balanced(cv2).map(|share| (share, 3.0 / (2.0 * share)));
                let square: f64 = means.iter().map(|(share, mean)| 2.0 * share * mean * mean).sum();
                assert!((square - 9.0 * (1.0 + cv2)).abs() < 1e-8, "{cv2}: {square}");
            }
        }
    }
}
