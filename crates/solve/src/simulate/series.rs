//! What was counted and summed, by bins of simulated time.
//!
//! Bins are as many as fit in a fixed memory: when they are full, neighbours are added up and bins become twice as wide.

/// Numbers kept in all bins of a series.
const MEMORY: usize = 1 << 20;
/// Most bins.
const MOST_BINS: usize = 512;
/// Fewest room for bins.
const FEWEST_BINS: usize = 64;

/// Sums by bin.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Of the bin under way.
    pub sums: Vec<f64>,
    /// When it ends.
    pub bin_end: f64,
    width: f64,
    bins: Vec<f64>,
    count: usize,
    most: usize,
}

impl Series {
    /// Of so many sums, with bins that wide at first.
    pub fn new(sums: usize, width: f64) -> Self {
        let fit = (MEMORY / sums.max(1)).clamp(FEWEST_BINS, MOST_BINS);
        let most = if fit.is_power_of_two() { fit } else { fit.next_power_of_two() / 2 };
        Self { sums: vec![0.0; sums], bin_end: width, width, bins: Vec::new(), count: 0, most }
    }

    /// Closes all bins that end by this time.
    #[cold]
    pub fn close_until(&mut self, time: f64) {
        while time >= self.bin_end {
            if self.count == self.most {
                self.halve();
                continue;
            }
            self.bins.extend_from_slice(&self.sums);
            self.sums.fill(0.0);
            self.count += 1;
            self.bin_end = (self.count + 1) as f64 * self.width;
        }
    }

    /// Adds neighbours up. The number of bins is even.
    fn halve(&mut self) {
        let size = self.sums.len();
        for pair in 0..self.count / 2 {
            for sum in 0..size {
                self.bins[pair * size + sum] =
                    self.bins[2 * pair * size + sum] + self.bins[(2 * pair + 1) * size + sum];
            }
        }
        self.count /= 2;
        self.bins.truncate(self.count * size);
        self.width *= 2.0;
        // The bin under way has just begun, where the last one ended.
        self.bin_end = (self.count + 1) as f64 * self.width;
    }

    /// Complete bins.
    pub fn len(&self) -> usize {
        self.count
    }

    /// How long a bin is.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The sums of a bin.
    pub fn bin(&self, number: usize) -> &[f64] {
        let size = self.sums.len();
        &self.bins[number * size..(number + 1) * size]
    }
}

/// Where the warm-up ends by MSER (White, 1997; on batches of five, MSER-5: White, Cobb and Spratt, 2000): the number of
/// leading values to leave out so that the standard error of the mean of the others is least. Here each value is already
/// that of a bin of many events. `None` where it would be more than half of them: there is no steady state to be seen yet.
pub(super) fn warm_up(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < 10 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let (mut best, mut least) = (count, f64::INFINITY);
    for start in (0..count).rev() {
        let value = values[start] - mean;
        sum += value;
        squares += value * value;
        let left = (count - start) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        // The last few values agree with each other by chance.
        if count - start >= 5 && error <= least {
            least = error;
            best = start;
        }
    }
    (best <= count / 2).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::{Series, warm_up};

    #[test]
    fn bins_keep_all_that_was_summed() {
        let mut series = Series::new(2, 1.0);
        let mut time = 0.0;
        for _ in 0..10_000 {
            time += 0.77;
            if time >= series.bin_end {
                series.close_until(time);
            }
            series.sums[0] += 1.0;
            series.sums[1] += time;
        }
        let count: f64 = (0..series.len()).map(|bin| series.bin(bin)[0]).sum();
        let expected = (series.len() as f64 * series.width() / 0.77).floor();
        assert!((count - expected).abs() <= 1.0, "{count} for {expected}");
        assert!(series.len() >= 256 && series.len() <= 512);
    }

    #[test]
    fn the_warm_up_is_found() {
        let mut random = Random::new(3, 0);
        let values: Vec<f64> = (0..400)
            .map(|bin| random.exponential() + if bin < 60 { 20.0 - f64::from(bin) / 3.0 } else { 0.0 })
            .collect();
        let found = warm_up(&values).expect("there is a steady state");
        assert!((50..=80).contains(&found), "{found}");
        let flat: Vec<f64> = (0..400).map(|_| random.exponential()).collect();
        assert!(warm_up(&flat).expect("there is a steady state") < 200);
        let growing: Vec<f64> = (0..400).map(f64::from).collect();
        assert_eq!(warm_up(&growing), None);
    }
}
