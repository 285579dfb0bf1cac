//! Exact sums of seconds: integers, so that adding is associative and commutative to the last bit.

/// Femtoseconds in a second.
const FEMTO: f64 = 1e15;
/// Square nanoseconds in a square second.
const NANO_SQUARED: f64 = 1e18;

/// A sum of seconds, exact: an integer number of femtoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub i128);

impl Seconds {
    /// From seconds, rounded to the femtosecond. What is not a number counts as nothing.
    pub fn from_f64(seconds: f64) -> Self {
        Self(whole(seconds * FEMTO))
    }

    /// In seconds.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / FEMTO
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The nearest whole number, halves away from zero, and 0 for what is not a number: `value.round() as i128` without the calls
/// of functions that it comes to on many machines.
#[inline]
fn whole(value: f64) -> i128 {
    narrow(value).map_or_else(|| value.round() as i128, i128::from)
}

/// The same where it surely fits.
#[inline]
fn narrow(value: f64) -> Option<i64> {
    /// Two to the power of 63.
    const WIDE: f64 = 9_223_372_036_854_775_808.0;
    (value.abs() < WIDE).then(|| {
        let cut = value as i64;
        // Exact: above 2^52 there is no fraction, below it the difference fits.
        let rest = value - cut as f64;
        cut + i64::from(rest >= 0.5) - i64::from(rest <= -0.5)
    })
}

/// Count, sum and sum of squares of a quantity in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: Seconds,
    /// The sum of their squares, in 10^-18 square seconds.
    pub squares: i128,
}

impl Moments {
    /// Those of a single value.
    pub fn of(seconds: Seconds) -> Self {
        Self { count: 1, sum: seconds, squares: whole(seconds.as_f64() * seconds.as_f64() * NANO_SQUARED) }
    }

    /// Takes in a value in seconds.
    pub fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum = self.sum.plus(Seconds::from_f64(seconds));
        self.squares = self.squares.saturating_add(whole(seconds * seconds * NANO_SQUARED));
    }

    /// The sum and the squares of a single value, where they fit 64 bits.
    #[inline]
    pub fn of_one(seconds: f64) -> Option<(i64, i64)> {
        Some((narrow(seconds * FEMTO)?, narrow(seconds * seconds * NANO_SQUARED)?))
    }

    /// Takes in all values of the other.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.plus(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// As many values, with the same mean and spread.
    #[must_use]
    pub fn extended(&self, count: u64) -> Self {
        let scale = |sum: i128| {
            let of = i128::from(self.count.max(1));
            sum / of * i128::from(count) + sum % of * i128::from(count) / of
        };
        Self { count, sum: Seconds(scale(self.sum.0)), squares: scale(self.squares) }
    }

    /// The same values, each longer by that.
    #[must_use]
    pub fn lengthened(&self, by: Seconds) -> Self {
        let mixed = whole(2.0 * by.as_f64() * self.sum.as_f64() * NANO_SQUARED);
        let own = Self::of(by).extended(self.count);
        let squares = self.squares.saturating_add(mixed).saturating_add(own.squares);
        Self { count: self.count, sum: self.sum.plus(own.sum), squares }
    }

    /// The mean, where there is any value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_f64() / self.count as f64)
    }

    /// The squared coefficient of variation, where there are two values or more and the mean is positive.
    pub fn cv2(&self) -> Option<f64> {
        let mean = self.mean()?;
        (self.count > 1 && mean > 0.0)
            .then(|| ((self.squares as f64 / NANO_SQUARED / self.count as f64) / (mean * mean) - 1.0).max(0.0))
    }
}

/// The same share of counts one after the other. What is rounded is their sum: shares of parts come to the share of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    part: u64,
    whole: u64,
    seen: u64,
    given: u64,
}

impl Share {
    /// So many of each so many, all at most; all where that is of nothing.
    pub(crate) fn new(part: u64, whole: u64) -> Self {
        Self { part: part.min(whole), whole, seen: 0, given: 0 }
    }

    /// The share of the next count, no more than it.
    pub(crate) fn of(&mut self, count: u64) -> u64 {
        if self.whole == 0 {
            return count;
        }
        self.seen = self.seen.saturating_add(count);
        let (part, whole) = (u128::from(self.part), u128::from(self.whole));
        let all = u64::try_from((u128::from(self.seen) * part + whole / 2) / whole).unwrap_or(u64::MAX);
        let share = all.saturating_sub(self.given).min(count);
        self.given += share;
        share
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Moments, Seconds, Share, whole};

    proptest! {
        #[test]
        fn shares_come_to_the_share_of_the_sum(
            counts in prop::collection::vec(0..1000_u64, 0..20), whole in 1..1000_u64, part in 0..1000_u64
        ) {
            let part = part.min(whole);
            let mut share = Share::new(part, whole);
            let shares: Vec<u64> = counts.iter().map(|count| share.of(*count)).collect();
            prop_assert!(shares.iter().zip(&counts).all(|(share, count)| share <= count));
            let all: u64 = counts.iter().sum();
            prop_assert_eq!(shares.iter().sum::<u64>(), (all * part + whole / 2) / whole);
        }
    }

    #[test]
    fn each_value_is_longer_by_as_much() {
        let (mut before, mut after) = (Moments::default(), Moments::default());
        for value in [0.001, 0.5, 3.0] {
            before.add(value);
            after.add(value + 0.25);
        }
        let found = before.lengthened(Seconds::from_f64(0.25));
        assert_eq!((found.count, found.sum), (after.count, after.sum));
        assert!((found.squares - after.squares).abs() < 1_000_000, "{found:?}, not {after:?}");
    }

    #[test]
    fn rounding_is_that_of_the_standard_library() {
        let mut values =
            vec![0.0, 0.5, 0.499_999_999_999_999_94, 1.5, 2.5, 1e15 + 0.5, 4.5e15 + 0.5, 9e15, 9.2e18, 9.3e18, 1e30];
        values.extend([f64::MAX, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE]);
        let mut state = 1u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            values.push(f64::from_bits(state));
            values.push((state >> 12) as f64 / f64::from(1u32 << (state % 31)));
        }
        for value in values {
            assert_eq!(whole(value), value.round() as i128, "{value:e}");
            assert_eq!(whole(-value), (-value).round() as i128, "-{value:e}");
        }
    }
}
