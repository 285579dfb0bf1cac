//! From sums by bins to estimates with intervals: batch means.
//!
//! Every figure is a ratio of two sums, such as time over number of invocations, or number over simulated time. Batches of
//! all replications together give its variance by the residuals of the ratio (Law, 2015, §9.5). Where residuals of
//! neighbouring batches go together, the variance is raised for it, as in Tafazzoli, Wilson, Lada and Steiger (2011).

use super::series::Series;

/// Batches of each replication.
const BATCHES: usize = 12;

/// One batch: its sums and how long it is.
#[derive(Clone, Debug)]
struct Batch {
    sums: Vec<f64>,
    time: f64,
    /// Whether it is the first of its replication.
    first: bool,
}

/// An estimate with its half width.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub value: f64,
    /// Of the 95 % confidence interval; infinite where nothing can be said.
    pub half_width: f64,
}

impl Estimate {
    /// The half width in terms of the value; zero where both are.
    pub fn relative(self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.value.abs() }
    }

    /// Of the figure times a constant.
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, half_width: self.half_width * factor.abs() }
    }
}

/// The batches of all replications.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    batches: Vec<Batch>,
    /// Simulated time, over all replications.
    pub time: f64,
}

impl Batches {
    /// Adds what a replication has after so many bins of warm-up.
    pub fn add(&mut self, series: &Series, warm_up: usize) {
        let left = series.len().saturating_sub(warm_up);
        let size = left / BATCHES;
        if size == 0 {
            return;
        }
        // What does not fill a batch goes to the warm-up.
        let begin = series.len() - size * BATCHES;
        for batch in 0..BATCHES {
            let mut sums = vec![0.0; series.sums.len()];
            for bin in 0..size {
                for (sum, value) in sums.iter_mut().zip(series.bin(begin + batch * size + bin)) {
                    *sum += value;
                }
            }
            let time = size as f64 * series.width();
            self.time += time;
            self.batches.push(Batch { sums, time, first: batch == 0 });
        }
    }

    /// The sum of those sums over a second.
    pub fn rate(&self, sums: &[usize]) -> Estimate {
        self.ratio(|batch| sums.iter().map(|sum| batch.sums[*sum]).sum(), |batch| batch.time)
    }

    /// One sum for each of another.
    pub fn mean(&self, sum: usize, count: usize) -> Estimate {
        self.ratio(|batch| batch.sums[sum], |batch| batch.sums[count])
    }

    fn ratio(&self, upper: impl Fn(&Batch) -> f64, lower: impl Fn(&Batch) -> f64) -> Estimate {
        let (mut above, mut below) = (0.0, 0.0);
        for batch in &self.batches {
            above += upper(batch);
            below += lower(batch);
        }
        if below <= 0.0 {
            return Estimate::default();
        }
        let value = above / below;
        let (mut squares, mut products, mut last) = (0.0, 0.0, 0.0);
        for batch in &self.batches {
            let residual = upper(batch) - value * lower(batch);
            squares += residual * residual;
            if !batch.first {
                products += residual * last;
            }
            last = residual;
        }
        // What is left of a constant are rounding errors.
        if squares.sqrt() <= 1e-12 * above.abs() {
            return Estimate { value, half_width: 0.0 };
        }
        let count = self.batches.len() as f64;
        let replications = self.batches.iter().filter(|batch| batch.first).count() as f64;
        let correlation = (products / squares * count / (count - replications)).min(0.9);
        // Less than that is chance.
        let raised = if correlation > 0.5 / count.sqrt() { (1.0 + correlation) / (1.0 - correlation) } else { 1.0 };
        let variance = squares * count / (count - 1.0) * raised / (below * below);
        Estimate { value, half_width: student(self.batches.len() - 1) * variance.sqrt() }
    }
}

/// The 0.975 quantile of Student's t distribution (Hill, 1970, algorithm 396): to four digits from three degrees of freedom on.
pub fn student(degrees: usize) -> f64 {
    const NORMAL: f64 = 1.959_963_984_540_054;
    match degrees {
        0 => f64::INFINITY,
        1 => 12.706_204_736_174_7,
        2 => 4.302_652_729_749_46,
        _ => {
            let n = degrees as f64;
            let z2 = NORMAL * NORMAL;
            // Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5).
            let g1 = (z2 + 1.0) / 4.0;
            let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
            let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
            let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
            NORMAL * (1.0 + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::series::Series;
    use super::{Batches, student};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in
            [(1, 12.7062), (2, 4.3027), (5, 2.5706), (10, 2.2281), (30, 2.0423), (63, 1.9983), (1000, 1.9623)]
        {
            assert!((student(degrees) - expected).abs() < 3e-3, "{degrees}: {}", student(degrees));
        }
    }

    /// A series of 256 bins whose first sum is a moving mean of noise about 1, whose second counts.
    fn series(random: &mut Random, memory: f64) -> Series {
        let mut series = Series::new(2, 1.0);
        let mut state = 0.0;
        for bin in 0..256 {
            state = memory * state + (random.exponential() - 1.0);
            series.sums[0] = 5.0 + state;
            series.sums[1] = 5.0;
            series.close_until(f64::from(bin + 1));
        }
        series
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        for memory in [0.0, 0.5, 0.8] {
            let mut random = Random::new(17, 0);
            let trials = 1_000;
            let covered = (0..trials)
                .filter(|_| {
                    let mut batches = Batches::default();
                    for _ in 0..4 {
                        batches.add(&series(&mut random, memory), 0);
                    }
                    let found = batches.mean(0, 1);
                    (found.value - 1.0).abs() <= found.half_width
                })
                .count();
            let part = covered as f64 / f64::from(trials);
            assert!((0.925..=0.975).contains(&part), "{part} at {memory}");
        }
    }
}
