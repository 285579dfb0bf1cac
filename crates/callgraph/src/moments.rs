//! Count, sum and sum of squares of a quantity, in integers, so that the order in which it comes never shows.

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

    /// The least value, if there is one.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest value, if there is one.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }
}
