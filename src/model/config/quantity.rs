//! Values of parameters and expressions: numbers and times.

use std::fmt;

/// What a value measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A number without a unit.
    Number,
    /// A time.
    Time,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "a number",
            Self::Time => "a time",
        })
    }
}

/// A number, or a time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The value; of a time, in seconds.
    pub value: f64,
    /// What it measures.
    pub dimension: Dimension,
}

impl Quantity {
    /// A number without a unit.
    pub fn number(value: f64) -> Self {
        Self { value, dimension: Dimension::Number }
    }

    /// A time in seconds.
    pub fn seconds(value: f64) -> Self {
        Self { value, dimension: Dimension::Time }
    }
}
