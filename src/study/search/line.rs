//! Values that a search goes over, each with its place: the search itself knows places only.

/// Values in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Whole numbers from one to another; as far as it takes where there is no last one.
    Whole {
        /// The least.
        first: f64,
        /// The greatest.
        last: Option<f64>,
    },
    /// Numbers of so many significant digits: 1.00, 1.01, … 9.99, 10.0, 10.1, … for three. Where the first is zero, the others begin
    /// a millionth below the last.
    Digits {
        /// How many digits, from 1 to 9.
        digits: u32,
        /// The least: zero or more.
        first: f64,
        /// The greatest: above zero.
        last: f64,
    },
    /// These.
    Listed(Vec<f64>),
}

/// An open line of whole numbers is not followed further than this.
const FURTHEST: f64 = 100_000.0;
/// How far below the last value those begin that come after zero.
const SMALL: f64 = 1e-6;

impl Line {
    /// The value at a place.
    pub fn value(&self, place: u64) -> f64 {
        match self {
            Self::Whole { first, .. } => first + place as f64,
            Self::Digits { digits, first, last } => {
                let base = least(*digits, *first, *last);
                match (*first == 0.0, place) {
                    (true, 0) => 0.0,
                    (true, place) => number(*digits, base + place as i64 - 1),
                    (false, place) => number(*digits, base + place as i64),
                }
            }
            Self::Listed(values) => values.get(place as usize).copied().unwrap_or(f64::NAN),
        }
    }

    /// The last place; of an open line the furthest that a search goes.
    pub fn end(&self) -> u64 {
        match self {
            Self::Whole { first, last } => (last.unwrap_or(first + FURTHEST) - first).max(0.0) as u64,
            Self::Digits { digits, first, last } => {
                let end = index(*digits, *last, f64::floor) - least(*digits, *first, *last);
                (end + i64::from(*first == 0.0)).max(0) as u64
            }
            Self::Listed(values) => values.len().saturating_sub(1) as u64,
        }
    }

    /// Whether it goes as far as it takes.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Whole { last: None, .. })
    }

    /// The place of the greatest value that does not exceed this one; the first place if there is none.
    pub fn place(&self, value: f64) -> u64 {
        let (mut low, mut high) = (0, self.end());
        while low < high {
            let middle = high - (high - low) / 2;
            if self.value(middle) <= value { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// From here, the number of places after which a value is about twice as great.
    pub(super) fn doubling(&self, place: u64) -> u64 {
        match self {
            Self::Whole { first, .. } => (first.abs() as u64).saturating_add(place).max(1),
            Self::Digits { digits, .. } => (per_decade(*digits) / 3).max(1) as u64,
            Self::Listed(_) => (place / 2).max(1),
        }
    }
}

fn per_decade(digits: u32) -> i64 {
    9 * 10_i64.pow(digits - 1)
}

/// The number of that index: those of a decade one after the other, then those of the next.
fn number(digits: u32, index: i64) -> f64 {
    let per_decade = per_decade(digits);
    let mantissa = 10_i64.pow(digits - 1) + index.rem_euclid(per_decade);
    let exponent = index.div_euclid(per_decade) - i64::from(digits - 1);
    format!("{mantissa}e{exponent}").parse().unwrap_or(f64::INFINITY)
}

/// The index of a number above zero, rounded to one that has so many digits.
fn index(digits: u32, value: f64, round: fn(f64) -> f64) -> i64 {
    let decade = value.log10().floor() as i64;
    let unit = 10_f64.powi(decade as i32 - (digits as i32 - 1));
    // A mantissa that is whole but for a rounding error is whole.
    let mantissa = value / unit;
    let whole = if (mantissa - mantissa.round()).abs() < 1e-6 { mantissa.round() } else { round(mantissa) };
    decade * per_decade(digits) + whole as i64 - 10_i64.pow(digits - 1)
}

/// The index of the first number above zero.
fn least(digits: u32, first: f64, last: f64) -> i64 {
    if first == 0.0 { index(digits, last * SMALL, f64::ceil) } else { index(digits, first, f64::ceil) }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn values_have_as_many_digits_as_are_asked_for() {
        let line = Line::Digits { digits: 2, first: 0.095, last: 1.2 };
        let values: Vec<f64> = (0..=line.end()).map(|place| line.value(place)).collect();
        assert_eq!(values.first(), Some(&0.095));
        assert_eq!(&values[5..8], [0.1, 0.11, 0.12].map(|value: f64| value).as_slice());
        assert_eq!(values.last(), Some(&1.2));
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn places_lead_back() {
        for line in [
            Line::Whole { first: 3.0, last: Some(90.0) },
            Line::Whole { first: 1.0, last: None },
            Line::Digits { digits: 3, first: 0.001, last: 5.0 },
            Line::Digits { digits: 1, first: 0.0, last: 0.02 },
            Line::Listed(vec![1.0, 2.0, 4.0, f64::INFINITY]),
        ] {
            for place in [0, 1, 2, 3, line.end() / 2, line.end()] {
                assert_eq!(line.place(line.value(place)), place.min(line.end()), "{line:?} {place}");
            }
            assert_eq!(line.place(-1.0), 0);
        }
        assert_eq!(Line::Digits { digits: 3, first: 0.0, last: 2.0 }.value(0), 0.0);
        assert_eq!(Line::Digits { digits: 3, first: 1.0, last: 1.0 }.end(), 0);
    }
}
