//! Intervals as sums that merge: what all estimators are functions of.

use crate::demand::{NANO, Sample, whole};

/// Weights of intervals are whole numbers of so many parts.
const PARTS: f64 = 65_536.0;
/// However busy the resource was, an interval has some weight.
const LEAST_IDLE: f64 = 0.02;

/// Of more operations than this none is regressed: the Gram matrix grows with their square.
const MOST_REGRESSED: usize = 32;

/// Sums over intervals. Everything is a whole number, so that [`Summary::merge`] is associative and commutative to the last bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many intervals.
    pub intervals: u64,
    /// Counts of operations.
    counts: Vec<i128>,
    /// Products of counts, row by row: the Gram matrix; empty where there are too many operations.
    gram: Vec<i128>,
    /// Products of counts and what was used, in 10^-9 of its unit.
    cross: Vec<i128>,
    /// What was used, in 10^-9 of its unit, and its squares in the 10^-18 of the unit's square.
    used: i128,
    used_squares: i128,
    /// Weighted times in which operations were busy, and weighted counts.
    busy: Vec<i128>,
    busy_counts: Vec<i128>,
}

impl Summary {
    /// Of so many operations and no interval.
    pub fn new(operations: usize) -> Self {
        let zeros = || vec![0; operations];
        Self {
            intervals: 0,
            counts: zeros(),
            gram: if operations <= MOST_REGRESSED { vec![0; operations * operations] } else { Vec::new() },
            cross: zeros(),
            used: 0,
            used_squares: 0,
            busy: zeros(),
            busy_counts: zeros(),
        }
    }

    /// Of intervals.
    pub fn of<'s>(operations: usize, samples: impl IntoIterator<Item = &'s Sample>) -> Self {
        let mut summary = Self::new(operations);
        for sample in samples {
            summary.add(sample);
        }
        summary
    }

    /// Takes in an interval.
    pub fn add(&mut self, sample: &Sample) {
        self.intervals += 1;
        let used = whole(sample.used.max(0.0));
        self.used = self.used.saturating_add(used);
        self.used_squares = self.used_squares.saturating_add(used.saturating_mul(used));
        let idle = (1.0 - sample.load).clamp(LEAST_IDLE, 1.0);
        let weight = (idle * idle * PARTS).round() as i128;
        let operations = self.counts.len();
        for (row, (count, busy)) in sample.counts.iter().zip(&sample.busy).enumerate().take(operations) {
            let count = i128::from(*count);
            self.counts[row] = self.counts[row].saturating_add(count);
            self.cross[row] = self.cross[row].saturating_add(count.saturating_mul(used));
            self.busy[row] = self.busy[row].saturating_add(weight.saturating_mul(whole(busy.max(0.0))));
            self.busy_counts[row] = self.busy_counts[row].saturating_add(weight.saturating_mul(count));
            let line = self.gram.iter_mut().skip(row * operations);
            for (sum, other) in line.zip(sample.counts.iter().take(operations)) {
                *sum = sum.saturating_add(count.saturating_mul(i128::from(*other)));
            }
        }
    }

    /// Takes in all intervals of the other, which is of the same operations.
    pub fn merge(&mut self, other: &Self) {
        self.intervals += other.intervals;
        self.used = self.used.saturating_add(other.used);
        self.used_squares = self.used_squares.saturating_add(other.used_squares);
        let sums = [
            (&mut self.counts, &other.counts),
            (&mut self.gram, &other.gram),
            (&mut self.cross, &other.cross),
            (&mut self.busy, &other.busy),
            (&mut self.busy_counts, &other.busy_counts),
        ];
        for (own, more) in sums {
            for (sum, more) in own.iter_mut().zip(more) {
                *sum = sum.saturating_add(*more);
            }
        }
    }

    /// How many operations there are.
    pub(super) fn operations(&self) -> usize {
        self.counts.len()
    }

    /// How many of them ended at all.
    pub fn invoked(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    /// What was used in all.
    pub fn used(&self) -> f64 {
        self.used as f64 / NANO
    }

    /// The square of what was used, summed up.
    pub(super) fn used_squares(&self) -> f64 {
        self.used_squares as f64 / (NANO * NANO)
    }

    /// How often an operation ended.
    pub(crate) fn count(&self, operation: usize) -> f64 {
        self.counts[operation] as f64
    }

    /// The product of the counts of two operations, summed up.
    pub(super) fn gram(&self, row: usize, column: usize) -> f64 {
        self.gram[row * self.operations() + column] as f64
    }

    /// The product of an operation's count and what was used, summed up.
    pub(super) fn cross(&self, operation: usize) -> f64 {
        self.cross[operation] as f64 / NANO
    }

    /// Whether there are not too many operations to regress.
    pub(super) fn is_regressed(&self) -> bool {
        !self.gram.is_empty()
    }

    /// Whether the time in which operations were busy is known of all that ended.
    pub(crate) fn was_busy(&self) -> bool {
        self.counts.iter().zip(&self.busy).any(|(count, busy)| *count > 0 && *busy > 0)
    }

    /// What the process used, by operation that ended.
    pub(super) fn average(&self) -> Vec<f64> {
        let all: f64 = self.counts.iter().map(|count| *count as f64).sum();
        let mean = if all > 0.0 { self.used() / all } else { 0.0 };
        self.counts.iter().map(|count| if *count > 0 { mean } else { 0.0 }).collect()
    }

    /// What the process used, shared out by the mean time in which operations were busy.
    pub(super) fn shared(&self) -> Vec<f64> {
        let own = |operation: usize| {
            let (busy, count) = (self.busy[operation], self.busy_counts[operation]);
            if count > 0 { busy as f64 / count as f64 } else { 0.0 }
        };
        let own: Vec<f64> = (0..self.operations()).map(own).collect();
        let all: f64 = own.iter().enumerate().map(|(operation, own)| own * self.count(operation)).sum();
        let scale = if all > 0.0 { self.used() / all } else { 0.0 };
        own.into_iter().map(|own| own * scale).collect()
    }

    /// Groups of operations whose counts vary together, with a correlation beyond a limit.
    pub(super) fn together(&self, limit: f64) -> Vec<Vec<usize>> {
        if !self.is_regressed() {
            return Vec::new();
        }
        let intervals = self.intervals as f64;
        let covariance = |row: usize, column: usize| {
            // Exact where counts are multiples of each other: whole numbers until the last step.
            let product = self.gram[row * self.operations() + column].saturating_mul(i128::from(self.intervals));
            product.saturating_sub(self.counts[row].saturating_mul(self.counts[column])) as f64
                / (intervals * intervals)
        };
        let mut group: Vec<usize> = (0..self.operations()).collect();
        for row in 0..self.operations() {
            for column in row + 1..self.operations() {
                let (both, own) = (covariance(row, column), covariance(row, row) * covariance(column, column));
                let is_invoked = self.counts[row] > 0 && self.counts[column] > 0;
                // Counts that never change are multiples of each other, too.
                let is_constant = own <= 0.0
                    && self.intervals > 1
                    && covariance(row, row) <= 0.0
                    && covariance(column, column) <= 0.0;
                if is_invoked && (is_constant || own > 0.0 && both / own.sqrt() > limit) {
                    let (from, to) = (group[column], group[row]);
                    group.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
                }
            }
        }
        let mut groups = vec![Vec::new(); self.operations()];
        for (operation, own) in group.into_iter().enumerate() {
            groups[own].push(operation);
        }
        groups.retain(|group| group.len() > 1);
        groups
    }
}
