//! A distribution of times in bounded memory, as a mergeable summary.

use crate::submodel::Share;

/// Buckets to a factor of two are 2 to this power.
const FINENESS: u32 = 6;
/// How far a quantile may be from that of all values, relatively: half of a bucket's width.
pub const SKETCH_ERROR: f64 = 1.0 / (1 << (FINENESS + 1)) as f64;
/// Values are resolved between two to the power of minus this and two to its power. No response of a system lies beyond.
const RANGE: u32 = 60;
/// The number of buckets.
const BUCKETS: usize = (2 * RANGE as usize) << FINENESS;
/// What the bits of the least value are cut to.
const FIRST: usize = (1023 - RANGE as usize) << FINENESS;

/// Counts of values in buckets whose width is in proportion to the value, as in an HDR histogram: 64 buckets for each
/// factor of two between the least and the greatest value.
///
/// Counts are whole and buckets are the same for all, so that [`Sketch::merge`] is associative and commutative, and sketches of the same
/// values are equal in whatever order these came. A quantile is within [`SKETCH_ERROR`] of that of all values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    zeros: u64,
    /// The bucket of the first count. The first count and the last are of some value.
    first: usize,
    counts: Vec<u64>,
    total: u64,
}

/// The usual quantiles of times, seconds; `None` where too few values lie beyond one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// The median.
    pub p50: Option<f64>,
    /// The value that 95 of 100 do not exceed.
    pub p95: Option<f64>,
    /// The value that 99 of 100 do not exceed.
    pub p99: Option<f64>,
    /// The 95 % interval of `p95`, as [`Sketch::interval`] gives it; `None` of what was not measured.
    pub p95_interval: Option<(f64, f64)>,
}

/// The fewest values beyond a quantile that is given.
const BEYOND: f64 = 1.0;
/// The standard normal quantile of a 95 % interval.
pub const NORMAL: f64 = 1.96;

impl Sketch {
    /// From counts of buckets, in the order of these, as [`Sketch::buckets`] gives them; `None` where they cannot be.
    pub(crate) fn of_buckets(buckets: impl IntoIterator<Item = (u32, u64)>) -> Option<Self> {
        let mut sketch = Self::default();
        let mut last = None;
        for (number, count) in buckets {
            let number = number as usize;
            if last.is_some_and(|last| last >= number) || number > BUCKETS || count == 0 {
                return None;
            }
            last = Some(number);
            sketch.total = sketch.total.checked_add(count)?;
            match number.checked_sub(1) {
                Some(bucket) => sketch.widen(bucket, count),
                None => sketch.zeros = count,
            }
        }
        Some(sketch)
    }

    /// Numbers of buckets with how many values are in each, in the order of values; number 0 has those that are zero.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let counts = self.counts.iter().enumerate().map(|(place, count)| ((self.first + place + 1) as u32, *count));
        std::iter::once((0, self.zeros)).chain(counts).filter(|(_, count)| *count > 0)
    }

    /// As text: two numbers a bucket, as [`Sketch::buckets`] gives them; empty where there is no value.
    pub fn text(&self) -> String {
        let words: Vec<String> = self.buckets().map(|(bucket, count)| format!("{bucket} {count}")).collect();
        words.join(" ")
    }

    /// From such a text; `None` where it is none.
    pub fn of_text(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let mut buckets = Vec::new();
        while let Some(bucket) = words.next() {
            buckets.push((bucket.parse().ok()?, words.next()?.parse().ok()?));
        }
        Self::of_buckets(buckets)
    }

    /// Takes in a value, in seconds. What is not positive counts as zero.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.total += 1;
        if value > 0.0 {
            let bucket = ((value.to_bits() >> (52 - FINENESS)) as usize).saturating_sub(FIRST).min(BUCKETS - 1);
            match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
                Some(count) => *count += 1,
                None => self.widen(bucket, 1),
            }
        } else {
            self.zeros += 1;
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

    /// Counts each value so many times.
    pub fn scale(&mut self, factor: u64) {
        if factor == 0 {
            return self.clear();
        }
        for count in self.counts.iter_mut().chain([&mut self.zeros]) {
            *count = count.saturating_mul(factor);
        }
        self.total = self.counts.iter().fold(self.zeros, |sum, count| sum.saturating_add(*count));
    }

    /// Keeps so many of each so many values, evenly: their sum is rounded, not each count.
    pub fn thin(&mut self, part: u64, whole: u64) {
        let mut share = Share::new(part, whole);
        let left: Vec<(u32, u64)> = self.buckets().map(|(bucket, count)| (bucket, share.of(count))).collect();
        *self = Self::of_buckets(left.into_iter().filter(|(_, count)| *count > 0)).unwrap_or_default();
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// The usual quantiles, where at least one value lies beyond them.
    pub fn quantiles(&self) -> Quantiles {
        let of = |part: f64| self.quantile(part).filter(|_| self.total as f64 * (1.0 - part) >= BEYOND - 1e-9);
        let p95 = of(0.95);
        Quantiles { p50: of(0.5), p95, p99: of(0.99), p95_interval: p95.and_then(|_| self.interval(0.95)) }
    }

    /// The 95 % interval of a quantile, its values taken to be independent: between two order statistics, whose ranks are the normal
    /// approximation of the binomial ones (David and Nagaraja, Order Statistics, 2003, §7.1). The upper end is infinite where no value
    /// has such a rank.
    pub fn interval(&self, part: f64) -> Option<(f64, f64)> {
        let count = self.total as f64;
        let half = NORMAL * (count * part * (1.0 - part)).sqrt();
        let at = |rank: f64| self.quantile(rank / count);
        let (low, high) = ((part * count - half).floor().max(1.0), (part * count + half).ceil());
        Some((at(low)?, if high > count { f64::INFINITY } else { at(high)? }))
    }

    /// How many values lie below this one, as if those of a bucket were spread evenly.
    pub fn below(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let edge = |bucket: usize| f64::from_bits(((FIRST + bucket) as u64) << (52 - FINENESS));
        // The bucket of the value, which may be before the first and beyond the last: those below it lie below the value.
        let bucket = ((value.to_bits() >> (52 - FINENESS)) as usize).saturating_sub(FIRST);
        let place = bucket.saturating_sub(self.first).min(self.counts.len());
        let whole: u64 = self.counts[..place].iter().fold(0, |sum, count| sum.saturating_add(*count));
        let part = self.counts.get(place).filter(|_| bucket >= self.first).map_or(0.0, |count| {
            let (low, high) = (edge(bucket), edge(bucket + 1));
            *count as f64 * ((value - low) / (high - low)).clamp(0.0, 1.0)
        });
        self.zeros as f64 + (whole as f64 + part)
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
            seen = seen.saturating_add(*count);
            if rank <= seen {
                let edge = |bucket: usize| f64::from_bits(((FIRST + bucket) as u64) << (52 - FINENESS));
                return Some(0.5 * (edge(self.first + place) + edge(self.first + place + 1)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SKETCH_ERROR, Sketch};

    fn of(values: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        for value in values {
            sketch.add(*value);
        }
        sketch
    }

    #[test]
    fn what_no_system_has_is_survived() {
        let sketch = of(&[f64::NAN, -1.0, 0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY]);
        assert_eq!(sketch.len(), 6);
        assert_eq!(sketch.quantile(0.5), Some(0.0));
        assert!(sketch.quantile(1.0).is_some_and(f64::is_finite));
        assert_eq!(Sketch::default().quantile(0.5), None);
    }

    #[test]
    fn buckets_that_cannot_be_are_refused() {
        assert!(Sketch::of_buckets([(3, 1), (3, 1)]).is_none());
        assert!(Sketch::of_buckets([(3, 0)]).is_none());
        assert!(Sketch::of_buckets([(u32::MAX, 1)]).is_none());
        assert!(Sketch::of_buckets([(1, u64::MAX), (2, 1)]).is_none());
    }

    fn time() -> impl Strategy<Value = f64> {
        prop_oneof![1 => Just(0.0), 9 => (-9.0..3.0_f64).prop_map(|power| 10.0_f64.powf(power))]
    }

    /// 200 samples of 200 exponential times; a nominal interval holds the true quantile in 95 of 100.
    #[test]
    fn intervals_hold_the_quantile_as_often_as_they_say() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let truth = -(0.05_f64.ln());
        let holds = (0..200).filter(|_| {
            let values: Vec<f64> = (0..200).map(|_| -uniform().ln()).collect();
            let (low, high) = of(&values).interval(0.95).expect("there are values");
            low <= truth && truth <= high
        });
        let holds = holds.count();
        assert!((184..=200).contains(&holds), "{holds} of 200");
        assert_eq!(of(&[1.0; 20]).interval(0.95).map(|(_, high)| high), Some(f64::INFINITY));
        assert_eq!(Sketch::default().interval(0.5), None);
    }

    proptest! {
        /// However values are parted, and in whatever order the parts come together: the same, and so from its buckets.
        #[test]
        fn parts_come_together_in_any_order(values in prop::collection::vec(time(), 0..300), at in 0..300_usize) {
            let whole = of(&values);
            let (left, right) = values.split_at(at.min(values.len()));
            for (one, other) in [(left, right), (right, left)] {
                let mut sum = of(one);
                sum.merge(&of(other));
                prop_assert_eq!(&sum, &whole);
            }
            prop_assert_eq!(Sketch::of_text(&whole.text()), Some(whole.clone()));
            let (mut twice, mut scaled) = (whole.clone(), whole.clone());
            twice.merge(&whole);
            scaled.scale(2);
            prop_assert_eq!(&twice, &scaled);
            scaled.thin(1, 2);
            prop_assert_eq!(scaled, whole);
        }

        #[test]
        fn quantiles_are_within_the_stated_error(values in prop::collection::vec(time(), 1..300), part in 0.0..=1.0_f64) {
            let found = of(&values).quantile(part).expect("there are values");
            let mut values = values;
            values.sort_by(f64::total_cmp);
            let exact = values[((part * values.len() as f64).ceil() as usize).max(1) - 1];
            prop_assert!((found - exact).abs() <= SKETCH_ERROR * exact, "{found} for {exact}");
        }
    }
}
