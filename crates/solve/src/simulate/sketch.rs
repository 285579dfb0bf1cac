//! A distribution of times in bounded memory.

/// Buckets to a factor of two are 2 to this power.
const FINENESS: u32 = 6;
/// How far a quantile may be from that of all values, relatively: half of a bucket's width.
pub const SKETCH_ERROR: f64 = 1.0 / (1 << (FINENESS + 1)) as f64;

/// Counts of values in buckets whose width is in proportion to the value, as in an HDR histogram: at most 64 buckets for each
/// factor of two between the least and the greatest value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sketch {
    zeros: u64,
    /// The bucket of the first count.
    first: usize,
    counts: Vec<u64>,
    total: u64,
}

impl Sketch {
    /// Takes in a value that is not negative.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.total += 1;
        if value <= 0.0 {
            self.zeros += 1;
            return;
        }
        let bucket = (value.to_bits() >> (52 - FINENESS)) as usize;
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.widen(bucket, 1),
        }
    }

    #[cold]
    fn widen(&mut self, bucket: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += count;
    }

    /// Takes in all values of the other.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        self.total += other.total;
        for (place, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bucket = other.first + place;
            match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
                Some(own) => *own += count,
                None => self.widen(bucket, *count),
            }
        }
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.zeros = 0;
        self.total = 0;
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// The value that this part of all values does not exceed, to within [`SKETCH_ERROR`].
    pub fn quantile(&self, part: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((part * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = self.zeros;
        if rank <= seen {
            return Some(0.0);
        }
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if rank <= seen {
                let edge = |bucket: usize| f64::from_bits((bucket as u64) << (52 - FINENESS));
                return Some(0.5 * (edge(self.first + place) + edge(self.first + place + 1)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::{SKETCH_ERROR, Sketch};

    #[test]
    fn quantiles_are_within_the_stated_error() {
        let mut random = Random::new(11, 0);
        let (mut left, mut right) = (Sketch::default(), Sketch::default());
        let mut values = Vec::new();
        for number in 0..50_000 {
            let value = if number % 100 == 0 { 0.0 } else { random.exponential() * 1e-3 };
            values.push(value);
            if number % 3 == 0 { &mut left } else { &mut right }.add(value);
        }
        left.merge(&right);
        values.sort_by(f64::total_cmp);
        assert_eq!(left.len(), 50_000);
        for part in [0.001, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let exact = values[((part * 50_000.0_f64).ceil() as usize).max(1) - 1];
            let found = left.quantile(part).expect("there are values");
            assert!((found - exact).abs() <= SKETCH_ERROR * exact, "{part}: {found} for {exact}");
        }
        assert_eq!(Sketch::default().quantile(0.5), None);
    }
}
