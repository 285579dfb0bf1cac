//! Count, sum and sum of squares of a quantity, in integers, so that the order in which it comes never shows.

/// 1.96: the 97.5th percentile of the normal distribution, for intervals of 95 %.
pub(crate) const NORMAL_95: f64 = 1.959_963_984_540_054;

/// The same percentile of Student's distribution with 1 to 10 degrees of freedom.
const FEW: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// The same with any number of degrees from 1 on; beyond the table by the first terms of its expansion around the normal one (Abramowitz and Stegun, 26.7.5).
fn student_95(degrees: u64) -> f64 {
    if let Some(known) = usize::try_from(degrees - 1).ok().and_then(|place| FEW.get(place)) {
        return *known;
    }
    let (z, degrees) = (NORMAL_95, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + (first + (second + third / degrees) / degrees) / degrees
}

/// What is kept of the values of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    sum: i128,
    squares: u128,
    min: i64,
    max: i64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, min: i64::MAX, max: i64::MIN }
    }
}

impl Moments {
    /// Takes a value in.
    pub fn add(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        self.squares = self.squares.saturating_add(u128::from(value.unsigned_abs()).pow(2));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Takes in what another has; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// Their mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The variance of a sample; 0 with fewer than two values.
    pub fn variance(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        // Exact where the squares leave room for it, so that equal values have no deviation at all.
        let spread = match (self.squares.checked_mul(count), self.sum.unsigned_abs().checked_pow(2)) {
            (Some(whole), Some(square)) => whole.saturating_sub(square) as f64 / count as f64,
            _ => (self.squares as f64 - self.sum as f64 * self.mean()).max(0.0),
        };
        spread / (self.count - 1) as f64
    }

    /// The standard deviation of a sample.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Half of the 95 % interval around the mean, by Student's distribution; none with fewer than two values.
    pub fn half_width(&self) -> Option<f64> {
        let degrees = self.count.checked_sub(1).filter(|degrees| *degrees > 0)?;
        Some(student_95(degrees) * (self.variance() / self.count as f64).sqrt())
    }

    /// The least value, if there is one.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest value, if there is one.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Moments, student_95};

    #[test]
    fn intervals_are_those_of_the_tables() {
        for (degrees, expected) in [(1, 12.706), (10, 2.228), (11, 2.201), (20, 2.086), (60, 2.000), (1_000_000, 1.960)]
        {
            assert!((student_95(degrees) - expected).abs() < 0.001, "{degrees}: {}", student_95(degrees));
        }
        assert!(FEW.is_sorted_by(|one, next| one > next) && FEW[9] > student_95(11));
        let mut moments = Moments::default();
        assert_eq!(moments.half_width(), None);
        moments.add(10);
        assert_eq!(moments.half_width(), None);
        // Two values: the mean is 11, its standard error 1.
        moments.add(12);
        assert!((moments.half_width().expect("two values") - 12.706).abs() < 1e-9);
    }
}
