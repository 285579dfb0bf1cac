//! Values of parameters, absolute or relative to what is there.

use std::fmt;

use crate::model::config::units;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of at least one.
    Count,
    /// The same, or `infinite`.
    Servers,
    /// A whole number.
    Whole,
    /// A time, such as `2.5 ms`; seconds where it has no unit.
    Time,
    /// A rate, such as `12/s`; per second where it has no unit.
    Rate,
    /// A number of zero or more, such as a mean number of calls.
    Number,
    /// A word or a name.
    Word,
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, in seconds or per second where it has a dimension.
    Number(f64),
    /// Without limit.
    Infinite,
    /// A word or a name.
    Word(String),
    /// So many times what is there.
    Times(f64),
}

impl Kind {
    /// Reads a value.
    ///
    /// # Errors
    /// Words on what is wrong with it.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a value is missing".to_owned());
        }
        if self == Self::Word {
            let quoted = ['"', '\''].iter().find_map(|mark| text.strip_prefix(*mark)?.strip_suffix(*mark));
            return Ok(Value::Word(quoted.unwrap_or(text).to_owned()));
        }
        if let Some(factor) = relative(text) {
            return if factor.is_finite() && factor >= 0.0 {
                Ok(Value::Times(factor))
            } else {
                Err(format!("`{text}` would make it negative"))
            };
        }
        if self == Self::Servers && matches!(text, "infinite" | "inf") {
            return Ok(Value::Infinite);
        }
        let number = match self {
            Self::Time => units::seconds(text)?,
            Self::Rate => units::rate(text)?,
            _ => text.parse::<f64>().map_err(|_| format!("`{text}` is no number"))?,
        };
        self.check(number).map(Value::Number)
    }

    /// The number, if the parameter takes it.
    ///
    /// # Errors
    /// Words on why it does not.
    pub fn check(self, number: f64) -> Result<f64, String> {
        let whole = number.fract() == 0.0 && number.abs() <= f64::from(u32::MAX);
        match self {
            Self::Count | Self::Servers if !(whole && number >= 1.0) => {
                Err(format!("{number} is no whole number from 1"))
            }
            Self::Whole if !whole => Err(format!("{number} is no whole number")),
            Self::Rate if !(number.is_finite() && number > 0.0) => Err(format!("{number} is no rate above zero")),
            _ if !number.is_finite() => Err(format!("{number} is no finite number")),
            Self::Time | Self::Number if number < 0.0 => Err(format!("{number} is negative")),
            _ => Ok(number),
        }
    }

    /// The nearest number that the parameter takes: whole where it counts something.
    pub fn round(self, number: f64) -> f64 {
        match self {
            Self::Count | Self::Servers => number.round().max(1.0),
            Self::Whole => number.round(),
            _ => number,
        }
    }

    /// Its unit, as text for people.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time => "s",
            Self::Rate => "1/s",
            _ => "",
        }
    }
}

/// The factor that `x2`, `*2`, `+10%` and `-5 %` mean.
fn relative(text: &str) -> Option<f64> {
    let factor = |number: &str| number.trim().parse::<f64>().ok();
    if let Some(number) = text.strip_prefix(['x', '×', '*']) {
        return factor(number);
    }
    let number = text.strip_suffix('%').filter(|_| text.starts_with(['+', '-']))?;
    factor(number).map(|percent| 1.0 + percent / 100.0)
}

impl Value {
    /// The number that it is, or that its position among others stands for.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::Times(number) => Some(*number),
            Self::Infinite => Some(f64::INFINITY),
            Self::Word(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Infinite => f.write_str("infinite"),
            Self::Word(word) => f.write_str(word),
            Self::Times(factor) => write!(f, "x{factor}"),
        }
    }
}
