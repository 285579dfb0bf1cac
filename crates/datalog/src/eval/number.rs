//! Arithmetic on values, and aggregates of them.

use crate::ast::{Aggregate, Operator};
use crate::value::Value;

/// An arithmetic operator, once it is known which numbers it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calculation {
    Add,
    Subtract,
    Multiply,
    /// Of numbers that may have a fraction: exact, as far as floats are.
    Divide,
    /// Of whole numbers: towards zero.
    DivideWhole,
    Remainder,
}

impl From<Operator> for Calculation {
    fn from(operator: Operator) -> Self {
        match operator {
            Operator::Add => Self::Add,
            Operator::Subtract => Self::Subtract,
            Operator::Multiply => Self::Multiply,
            Operator::Divide => Self::DivideWhole,
            Operator::Remainder => Self::Remainder,
        }
    }
}

/// The result of an operator, of a quotient of whole numbers that towards zero; none on overflow, division by zero and beyond the range.
pub fn calculated(left: Value, operator: Operator, right: Value) -> Option<Value> {
    Calculation::from(operator).apply(left, right)
}

impl Calculation {
    /// The result; none of symbols, by zero, or out of range.
    pub(super) fn apply(self, left: Value, right: Value) -> Option<Value> {
        if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
            let number = match self {
                Self::Add => left.checked_add(right),
                Self::Subtract => left.checked_sub(right),
                Self::Multiply => left.checked_mul(right),
                Self::Divide if right == 0 => None,
                Self::Divide => return Value::float(left as f64 / right as f64),
                Self::DivideWhole => left.checked_div(right),
                Self::Remainder => left.checked_rem(right),
            };
            return Value::integer(number?);
        }
        let (left, right) = (left.as_number()?, right.as_number()?);
        Value::float(match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide | Self::DivideWhole => left / right,
            Self::Remainder => left % right,
        })
    }
}

/// A number plus an offset; a symbol only where the offset is 0.
pub(super) fn shifted(value: Value, offset: i64) -> Option<Value> {
    if offset == 0 {
        return Some(value);
    }
    match value.as_integer() {
        Some(number) => Value::integer(number.checked_add(offset)?),
        None => Value::float(value.as_float()? + offset as f64),
    }
}

/// A number minus an offset; a symbol only where the offset is 0.
pub(super) fn unshifted(value: Value, offset: i64) -> Option<Value> {
    if offset == 0 {
        return Some(value);
    }
    match value.as_integer() {
        Some(number) => Value::integer(number.checked_sub(offset)?),
        None => Value::float(value.as_float()? - offset as f64),
    }
}

/// An aggregate of values that come in any order: the result does not depend on it.
#[derive(Debug)]
pub(super) struct Total {
    function: Aggregate,
    count: i64,
    whole: i128,
    /// The best so far of min and max.
    best: Option<Value>,
    /// What is added or ranked at the end, in order.
    kept: Vec<Value>,
    /// Whether a symbol was among them, of which there is no aggregate but the count.
    failed: bool,
}

impl Total {
    pub(super) fn new(function: Aggregate) -> Self {
        Self { function, count: 0, whole: 0, best: None, kept: Vec::new(), failed: false }
    }

    /// Takes in the value of one more binding.
    pub(super) fn add(&mut self, value: Value) {
        self.count += 1;
        match self.function {
            Aggregate::Count => return,
            Aggregate::Min => self.best = Some(self.best.map_or(value, |best| best.min(value))),
            Aggregate::Max => self.best = Some(self.best.map_or(value, |best| best.max(value))),
            Aggregate::Percentile(_) => self.kept.push(value),
            Aggregate::Sum | Aggregate::Mean => match value.as_integer() {
                Some(number) => self.whole += i128::from(number),
                None => self.kept.push(value),
            },
        }
        self.failed |= value.as_number().is_none();
    }

    /// The aggregate; none where it is over nothing (but count and sum), over symbols, or out of range.
    pub(super) fn value(mut self) -> Option<Value> {
        if self.failed {
            return None;
        }
        match self.function {
            Aggregate::Count => Value::integer(self.count),
            Aggregate::Min | Aggregate::Max => self.best,
            Aggregate::Sum if self.kept.is_empty() => Value::integer(i64::try_from(self.whole).ok()?),
            Aggregate::Sum => Value::float(self.sum()),
            Aggregate::Mean if self.count == 0 => None,
            Aggregate::Mean => Value::float(self.sum() / self.count as f64),
            Aggregate::Percentile(percent) => {
                let rank = (self.kept.len() * usize::from(percent)).div_ceil(100);
                self.kept.sort_unstable();
                self.kept.get(rank.checked_sub(1)?).copied()
            }
        }
    }

    /// Fractions from the least to the greatest, then the whole numbers: always in one order, and compensated.
    fn sum(&mut self) -> f64 {
        self.kept.sort_unstable();
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        let fractions = self.kept.iter().filter_map(|value| value.as_float());
        for number in fractions.chain([self.whole as f64]) {
            let next = sum + number;
            // Neumaier: what the smaller of the two lost.
            lost += if sum.abs() >= number.abs() { (sum - next) + number } else { (number - next) + sum };
            sum = next;
        }
        if lost.is_finite() { sum + lost } else { sum }
    }
}
