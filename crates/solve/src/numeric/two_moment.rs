//! The distribution of a given mean and squared coefficient of variation c², one for all solvers.
//!
//! - c² = 0: a constant.
//! - c² from 1/10 to 1: exponential stages in a row, of one rate. There are k of them, or k − 1 with some probability, where
//!   1/k ≤ c² ≤ 1/(k − 1) (Tijms 1986, the mixture of Erlang distributions). c² = 1 is one stage, the exponential distribution.
//! - c² below 1/10: a constant, and then ten stages.
//! - c² above 1: a mixture of two exponential distributions with balanced means (Whitt 1982).
//!
//! The family is continuous in c². The simulator samples it, the Markov chain runs through its stages, and the layers take its
//! Laplace transform and its tail. Times are in seconds and rates per second.

/// The most stages in a row.
pub(crate) const MOST_STAGES: usize = 10;
/// A c² that counts as 0, and a distance from another value that counts as none.
const ZERO: f64 = 1e-12;
const NEAR: f64 = 1e-9;
/// 1/φ − 1 is bounded by the exponential of this.
const MOST_EXPONENT: f64 = 600.0;

/// A distribution of times, by its first two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Distribution {
    /// Always that time.
    Constant(f64),
    /// A constant, then stages in a row.
    Stages {
        /// What is there before the first stage.
        constant: f64,
        /// Rate of each stage.
        rate: f64,
        /// The number of stages.
        count: usize,
        /// The probability that there is one stage fewer.
        fewer: f64,
    },
    /// One of two exponential times: probabilities and means, the longer one last.
    Mixture([(f64, f64); 2]),
}

/// A stage as a Markov chain sees it: its rate, and the probability that another one follows.
pub(crate) type Phase = (f64, f64);

/// A part of a tail P(X > t): Σ wₙ (rate·t)ⁿ/n! exp(−rate·t), for n from 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TailPart {
    pub rate: f64,
    pub weights: Vec<f64>,
}

impl Distribution {
    /// The distribution of that mean and c²; what is shorter than any number is none.
    pub fn new(mean: f64, cv2: f64) -> Self {
        if mean <= 1e-300 || cv2 <= ZERO {
            return Self::Constant(mean.max(0.0));
        }
        let stages = |constant: f64, rate: f64, count: usize, fewer: f64| Self::Stages { constant, rate, count, fewer };
        if (cv2 - 1.0).abs() <= NEAR {
            return stages(0.0, 1.0 / mean, 1, 0.0);
        }
        if cv2 > 1.0 {
            let first = f64::midpoint(1.0, ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
            // Of a variation beyond all measure the second branch never comes.
            let second = (1.0 - first).max(f64::EPSILON);
            return Self::Mixture([first, second].map(|part| (part, mean / (2.0 * part))));
        }
        let most = MOST_STAGES as f64;
        if cv2 * most < 1.0 - NEAR {
            let moving = mean * (cv2 * most).sqrt();
            return stages(mean - moving, most / moving, MOST_STAGES, 0.0);
        }
        let count = (1.0 / cv2 - NEAR).ceil().clamp(2.0, most);
        let root = (count * (1.0 + cv2) - count * count * cv2).max(0.0).sqrt();
        let fewer = (count * cv2 - root) / (1.0 + cv2);
        let fewer = if fewer > ZERO { fewer.min(1.0) } else { 0.0 };
        stages(0.0, (count - fewer) / mean, count as usize, fewer)
    }

    /// The distribution of that mean and variance.
    pub fn of_variance(mean: f64, variance: f64) -> Self {
        Self::new(mean, if mean > 1e-300 { variance / (mean * mean) } else { 0.0 })
    }

    /// What is there at least.
    pub fn constant(&self) -> f64 {
        match *self {
            Self::Constant(mean) => mean,
            Self::Stages { constant, .. } => constant,
            Self::Mixture(_) => 0.0,
        }
    }

    /// 1/φ − 1, where φ is the Laplace transform at that rate: the odds that an exponential time of the rate is shorter.
    pub fn odds(&self, rate: f64) -> f64 {
        match *self {
            Self::Constant(mean) => (mean * rate).min(MOST_EXPONENT).exp_m1(),
            Self::Stages { count: 1, rate: own, .. } => rate / own,
            Self::Stages { constant, rate: own, count, fewer } => {
                let each = rate / own;
                let exponent = constant * rate + count as f64 * each.ln_1p() - (fewer * each).ln_1p();
                exponent.min(MOST_EXPONENT).exp_m1()
            }
            Self::Mixture(branches) => {
                let (mut shorter, mut longer) = (0.0, 0.0);
                for (part, mean) in branches {
                    longer += part / (1.0 + rate * mean);
                    shorter += part * rate * mean / (1.0 + rate * mean);
                }
                shorter / longer
            }
        }
    }

    /// The phases that a Markov chain runs through, from the first one; `None` where a constant has none.
    ///
    /// A mixture is the faster branch, after which the slower one follows with some probability: there is no choice before the
    /// first phase.
    pub fn phases(&self) -> Option<Vec<Phase>> {
        match *self {
            Self::Constant(_) => None,
            Self::Stages { constant, .. } if constant > 0.0 => None,
            Self::Stages { rate, count, fewer, .. } => {
                let goes_on = |place: usize| match count - place {
                    1 => 0.0,
                    2 => 1.0 - fewer,
                    _ => 1.0,
                };
                Some((0..count).map(|place| (rate, goes_on(place))).collect())
            }
            Self::Mixture([(_, fast), (rare, slow)]) => {
                Some(vec![(1.0 / fast, rare * (1.0 - fast / slow)), (1.0 / slow, 0.0)])
            }
        }
    }

    /// What may still be left at a time after the constant part, as a function of the time since then.
    pub fn tail_from(&self, time: f64) -> Vec<TailPart> {
        match *self {
            Self::Constant(_) => Vec::new(),
            Self::Stages { constant, rate, count, fewer } => {
                // By stages that have ended by then: a Poisson number.
                let mut ended = vec![0.0; count];
                let passed = rate * (time - constant).max(0.0);
                let mut probability = (-passed).exp();
                for (number, ended) in ended.iter_mut().enumerate() {
                    *ended = probability;
                    probability *= passed / (number + 1) as f64;
                }
                let more_than = |stages: usize| if stages + 1 < count { 1.0 } else { 1.0 - fewer };
                let left = |stages: usize| (stages..count).map(|all| more_than(all) * ended[all - stages]).sum();
                vec![TailPart { rate, weights: (0..count).map(left).collect() }]
            }
            Self::Mixture(branches) => branches
                .iter()
                .map(|(part, mean)| TailPart { rate: 1.0 / mean, weights: vec![part * (-time / mean).exp()] })
                .collect(),
        }
    }

    /// The probability that it takes longer than that time.
    pub fn tail(&self, time: f64) -> f64 {
        self.left(time).0
    }

    /// The probability that it takes longer than that time, and the mean of what is left then, 0 where nothing is.
    pub fn left(&self, time: f64) -> (f64, f64) {
        match *self {
            Self::Constant(mean) => (f64::from(u8::from(time < mean)), (mean - time).max(0.0)),
            Self::Stages { constant, rate, count, fewer } => {
                let stages = count as f64 - fewer;
                if time < constant {
                    return (1.0, constant - time + stages / rate);
                }
                let passed = rate * (time - constant);
                let mut ended = (-passed).exp();
                let (mut longer, mut left) = (0.0, 0.0);
                for number in 0..count {
                    let remaining = (count - number) as f64 - fewer;
                    longer += ended * remaining.min(1.0);
                    left += ended * remaining;
                    ended *= passed / (number + 1) as f64;
                }
                (longer, left / rate)
            }
            Self::Mixture(branches) => branches.iter().fold((0.0, 0.0), |(longer, left), (part, mean)| {
                let own = part * (-time / mean).exp();
                (longer + own, left + own * mean)
            }),
        }
    }

    /// Times where the tail falls steeply: an integral over it is better taken in parts that end there.
    pub fn steep(&self) -> Vec<f64> {
        match *self {
            Self::Constant(mean) => vec![mean],
            Self::Stages { constant, rate, .. } if constant > 0.0 => {
                vec![constant, constant + 2.5 * MOST_STAGES as f64 / rate]
            }
            Self::Stages { rate, count, .. } => vec![2.5 * count as f64 / rate],
            Self::Mixture([(_, fast), (_, slow)]) => vec![3.0 * fast, 3.0 * slow],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Distribution, MOST_STAGES};

    const VARIATIONS: [f64; 14] = [0.0, 1e-3, 0.07, 0.1, 0.11, 0.25, 0.3, 0.5, 0.7, 0.999, 1.0, 1.001, 3.0, 40.0];

    /// Mean and second moment, by phases from the last one.
    fn moments(phases: &[(f64, f64)]) -> (f64, f64) {
        phases.iter().rev().fold((0.0, 0.0), |(mean, square), (rate, goes_on)| {
            let (own, rest, rest2) = (1.0 / rate, goes_on * mean, goes_on * square);
            (own + rest, 2.0 * own * own + 2.0 * own * rest + rest2)
        })
    }

    #[test]
    fn phases_have_the_two_moments() {
        for cv2 in VARIATIONS {
            let found = Distribution::new(3.0, cv2);
            let Some(phases) = found.phases() else {
                assert!(cv2 < 1.0 / MOST_STAGES as f64, "{cv2}");
                continue;
            };
            let (mean, square) = moments(&phases);
            assert!((mean - 3.0).abs() < 1e-9, "{cv2}: {mean}");
            assert!((square - 9.0 * (1.0 + cv2)).abs() < 1e-8 * (1.0 + cv2), "{cv2}: {square}");
        }
    }

    #[test]
    fn the_tail_has_the_two_moments() {
        for cv2 in VARIATIONS {
            let found = Distribution::new(3.0, cv2);
            let begin = found.constant();
            let (mut mean, mut square) = (begin, begin * begin);
            for part in found.tail_from(begin) {
                for (n, weight) in part.weights.iter().enumerate() {
                    mean += weight / part.rate;
                    square += weight * 2.0 * (begin + (n + 1) as f64 / part.rate) / part.rate;
                }
            }
            assert!((mean - 3.0).abs() < 1e-9, "{cv2}: {mean}");
            assert!((square - 9.0 * (1.0 + cv2)).abs() < 1e-8 * (1.0 + cv2), "{cv2}: {square}");
        }
    }

    #[test]
    fn every_form_is_one_distribution() {
        for cv2 in VARIATIONS {
            let found = Distribution::new(3.0, cv2);
            for time in [0.0, 0.4, 1.7, 2.9, 3.1, 8.0] {
                // The mean of what is left is the integral of the tail.
                let (tail, left) = found.left(time);
                let step = 1e-6;
                let slope = (found.left(time + step).1 - left) / step;
                assert!((slope + tail).abs() < 1e-3, "{cv2} at {time}: {slope} and {tail}");
                if time >= found.constant() {
                    let parts: f64 = found.tail_from(time).iter().map(|part| part.weights[0]).sum();
                    assert!((parts - tail).abs() < 1e-12, "{cv2} at {time}: {parts} and {tail}");
                }
            }
            // The transform at a rate, by phases: each ends first, or the exponential time does.
            for rate in [1e-9, 0.01, 1.0, 50.0] {
                let Some(phases) = found.phases() else { continue };
                let transform = phases
                    .iter()
                    .rev()
                    .fold(1.0, |rest, (own, goes_on)| own / (own + rate) * (1.0 - goes_on + goes_on * rest));
                let odds = found.odds(rate);
                assert!((odds - (1.0 - transform) / transform).abs() < 1e-6 * (1.0 + odds), "{cv2} at {rate}: {odds}");
            }
        }
    }

    #[test]
    fn it_is_continuous_in_the_variation() {
        for cv2 in [1e-9, 0.1, 1.0 / 9.0, 1.0 / 3.0, 0.5, 1.0] {
            let [below, above] = [cv2 * (1.0 - 1e-7), cv2 * (1.0 + 1e-7)].map(|cv2| Distribution::new(1.0, cv2));
            for rate in [0.1, 1.0, 10.0] {
                assert!((below.odds(rate) / above.odds(rate) - 1.0).abs() < 1e-5, "{cv2} at {rate}");
            }
        }
    }
}
