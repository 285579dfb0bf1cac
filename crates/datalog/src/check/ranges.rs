//! Which numbers a term may have, as far as its operators and what is known of its variables tell.

use crate::ast::{Comparison, Operator, Term, Variable};

/// An interval that has all the numbers that a term may have, and maybe more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    low: f64,
    high: f64,
    /// Whether the ends themselves are left out.
    open: [bool; 2],
    /// Whether all of them are whole, as evaluation takes them: there `/` goes towards zero.
    whole: bool,
}

/// Whole numbers beyond this are not all told apart.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Range {
    /// All numbers.
    pub(super) const ANY: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY, open: [false; 2], whole: false };
    /// All whole numbers.
    pub(super) const WHOLE: Self = Self { whole: true, ..Self::ANY };

    /// Whole numbers from `least` on.
    #[must_use]
    pub(super) fn from(least: i64) -> Self {
        Self { low: Self::whole(least).low, ..Self::WHOLE }
    }

    fn whole(number: i64) -> Self {
        Self::between(number as f64, number as f64, true)
    }

    /// With ends that are rounded outwards where numbers are not told apart.
    fn between(low: f64, high: f64, whole: bool) -> Self {
        let low = if low.abs() > EXACT { low.next_down() } else { low };
        let high = if high.abs() > EXACT { high.next_up() } else { high };
        if low.is_nan() || high.is_nan() {
            return Self { whole, ..Self::ANY };
        }
        Self { low, high, open: [false; 2], whole }
    }

    /// The numbers of a term; arithmetic that has no value adds none.
    pub(super) fn of(term: &Term, variable: &dyn Fn(&Variable) -> Self) -> Self {
        match term {
            Term::Integer(number) => Self::whole(*number),
            Term::Float(number) => Self::between(*number, *number, false),
            Term::Variable(name, 0) => variable(name),
            Term::Variable(name, offset) => variable(name).add(Self::whole(*offset)),
            // No deeper than the parser allows.
            Term::Arithmetic(left, operator, right) => {
                let (left, right) = (Self::of(&left.value, variable), Self::of(&right.value, variable));
                match operator {
                    Operator::Add => left.add(right),
                    Operator::Subtract => left.add(right.times(Self::whole(-1))),
                    Operator::Multiply => left.times(right),
                    Operator::Divide => left.over(right),
                    Operator::Remainder => left.remainder(right),
                }
            }
            Term::Symbol(_) | Term::Wildcard => Self::ANY,
        }
    }

    fn add(self, other: Self) -> Self {
        Self::between(self.low + other.low, self.high + other.high, self.whole && other.whole)
    }

    fn times(self, other: Self) -> Self {
        // An end without bound times 0 is 0: each number has a bound.
        let product = |one: f64, other: f64| if one == 0.0 || other == 0.0 { 0.0 } else { one * other };
        let ends = [
            product(self.low, other.low),
            product(self.low, other.high),
            product(self.high, other.low),
            product(self.high, other.high),
        ];
        let low = ends.into_iter().fold(f64::INFINITY, f64::min);
        let high = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Self::between(low, high, self.whole && other.whole)
    }

    fn over(self, divisor: Self) -> Self {
        let whole = self.whole && divisor.whole;
        let Some(by) = divisor.only().filter(|by| *by != 0.0) else { return Self { whole, ..Self::ANY } };
        let (one, other) = (self.low / by, self.high / by);
        let (low, high) = (one.min(other), one.max(other));
        if whole { Self::between(low.trunc(), high.trunc(), true) } else { Self::between(low, high, false) }
    }

    fn remainder(self, divisor: Self) -> Self {
        let whole = self.whole && divisor.whole;
        let Some(by) = divisor.only().filter(|by| *by != 0.0) else { return Self { whole, ..Self::ANY } };
        let most = if whole { by.abs() - 1.0 } else { by.abs() };
        let least = if self.low >= 0.0 { 0.0 } else { -most };
        Self::between(least, most, whole)
    }

    /// The only number.
    fn only(self) -> Option<f64> {
        (self.low == self.high && self.low.abs() <= EXACT).then_some(self.low)
    }

    /// Whether there is no number.
    pub(super) fn is_empty(self) -> bool {
        self.low > self.high || (self.low == self.high && self.open != [false; 2])
    }

    /// Those numbers for which a comparison with some number of another range holds.
    #[must_use]
    pub(super) fn compared(self, comparison: Comparison, with: Self) -> Self {
        let mut range = self;
        let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
        if matches!(comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal) {
            let open = strict || with.open[1];
            if with.high < range.high || (with.high == range.high && open) {
                (range.high, range.open[1]) = (with.high, open);
            }
        }
        if matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual | Comparison::Equal) {
            let open = strict || with.open[0];
            if with.low > range.low || (with.low == range.low && open) {
                (range.low, range.open[0]) = (with.low, open);
            }
        }
        if range.whole && range.low.is_finite() && range.low.abs() <= EXACT {
            let next = if range.open[0] { range.low.floor() + 1.0 } else { range.low.ceil() };
            (range.low, range.open[0]) = (next, false);
        }
        if range.whole && range.high.is_finite() && range.high.abs() <= EXACT {
            let next = if range.open[1] { range.high.ceil() - 1.0 } else { range.high.floor() };
            (range.high, range.open[1]) = (next, false);
        }
        range
    }

    /// Whether no two numbers of two ranges compare so.
    pub(super) fn never(self, comparison: Comparison, other: Self) -> bool {
        match comparison {
            Comparison::NotEqual => self.only().is_some_and(|only| other.only() == Some(only)),
            Comparison::Equal => {
                let broken = |one: Self, other: Self| one.whole && other.only().is_some_and(|only| only.fract() != 0.0);
                self.compared(comparison, other).is_empty() || broken(self, other) || broken(other, self)
            }
            _ => self.compared(comparison, other).is_empty(),
        }
    }
}
