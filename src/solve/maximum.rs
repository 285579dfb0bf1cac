//! How long it takes until all, or enough, of several parallel branches have ended.
//!
//! Each branch is taken to be independent with a distribution that has its mean and variance: exponential where the squared
//! coefficient of variation is 1, an exponential after a constant below it, and a balanced mixture of two exponentials
//! (Whitt 1982) above it. For exponential branches the mean of the maximum is exact.

/// Mean and variance of the time until `enough` of the branches, given by mean and variance, have ended.
pub(super) fn until(branches: &[(f64, f64)], enough: usize) -> (f64, f64) {
    let laws: Vec<Law> = branches.iter().map(|&(mean, variance)| Law::new(mean, variance)).collect();
    let longest = branches.iter().map(|branch| branch.0).fold(0.0, f64::max);
    if longest <= 0.0 || enough == 0 {
        return (0.0, 0.0);
    }
    if let [only] = branches {
        return *only;
    }
    // Simpson's rule over t = longest·u/(1−u), which takes [0, ∞) to [0, 1).
    let steps = 400;
    let (mut mean, mut square) = (0.0, 0.0);
    let mut ended = vec![0.0; branches.len() + 1];
    for index in 0..steps {
        let u = f64::from(index) / f64::from(steps);
        let weight = match index {
            0 => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        } / (3.0 * f64::from(steps));
        let time = longest * u / (1.0 - u);
        let slope = longest / ((1.0 - u) * (1.0 - u));
        let running = 1.0 - at_least(&laws, time, enough, &mut ended);
        mean += weight * slope * running;
        square += weight * slope * 2.0 * time * running;
    }
    (mean, (square - mean * mean).max(0.0))
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

/// A distribution by its first two moments.
enum Law {
    Constant(f64),
    /// An exponential with that mean after a constant.
    Shifted {
        shift: f64,
        mean: f64,
    },
    /// Two exponentials with equal share of the mean: probability of the first, both rates.
    Mixed {
        first: f64,
        rates: [f64; 2],
    },
}

impl Law {
    fn new(mean: f64, variance: f64) -> Self {
        if mean <= 0.0 || variance <= 1e-12 * mean * mean {
            return Self::Constant(mean.max(0.0));
        }
        let deviation = variance.sqrt();
        if deviation <= mean * (1.0 + 1e-9) {
            return Self::Shifted { shift: (mean - deviation).max(0.0), mean: deviation };
        }
        let cv2 = variance / (mean * mean);
        let first = f64::midpoint(1.0, ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
        Self::Mixed { first, rates: [2.0 * first / mean, 2.0 * (1.0 - first) / mean] }
    }

    fn ended(&self, time: f64) -> f64 {
        match *self {
            Self::Constant(value) => f64::from(u8::from(time >= value)),
            Self::Shifted { shift, mean } => {
                if time <= shift {
                    0.0
                } else {
                    1.0 - (-(time - shift) / mean).exp()
                }
            }
            Self::Mixed { first, rates } => {
                1.0 - first * (-rates[0] * time).exp() - (1.0 - first) * (-rates[1] * time).exp()
            }
        }
    }
}
