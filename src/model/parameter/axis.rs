//! The values of a sweep: lists and ranges.

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::{Kind, Value};

/// More values than these are a slip.
const MOST: usize = 100_000;

/// The values that a parameter takes one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What the parameter takes.
    pub kind: Kind,
    /// The values.
    pub values: Vec<Value>,
}

impl Axis {
    /// Reads a list, or ranges, or both: `1,2,4,8`, `2.5 ms,5 ms`, `1..20`, `1..100 step 5`, `1 ms..5 ms in 9`,
    /// `1..1000 log 20`, `x1..x4 in 7`, `+0%,+10%`.
    ///
    /// `A..B` goes in steps of one, `step S` in steps of S, `in N` in N values at equal distances, `log N` in N values at
    /// equal ratios; both ends are among them where the steps meet them. Values that count something are rounded, and what
    /// is twice there then comes once.
    ///
    /// # Errors
    /// When a value cannot be read or a range has no end.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, Diagnostic> {
        let mut values: Vec<Value> = Vec::new();
        for part in text.split(',') {
            let found = if kind == Kind::Word { kind.parse(part).map(|value| vec![value]) } else { range(kind, part) };
            values.extend(found.map_err(|why| refused(text, &why))?);
            if values.len() > MOST {
                return Err(refused(text, &format!("these are more than {MOST} values")));
            }
        }
        values.dedup();
        Ok(Self { kind, values })
    }
}

/// A value, or a range of them.
fn range(kind: Kind, text: &str) -> Result<Vec<Value>, String> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(vec![kind.parse(text)?]) };
    let (last, how) = spacing(rest);
    let (first, last) = (kind.parse(first)?, kind.parse(last)?);
    let (from, to, times) = match (&first, &last) {
        (Value::Number(from), Value::Number(to)) => (*from, *to, false),
        (Value::Times(from), Value::Times(to)) => (*from, *to, true),
        _ => return Err("both ends of a range are numbers, or both are relative".to_owned()),
    };
    let numbers = match how {
        Spacing::Ones if times || kind == Kind::Time || kind == Kind::Rate => {
            return Err("this range needs `step S`, `in N` or `log N`".to_owned());
        }
        Spacing::Ones => steps(from, to, 1.0)?,
        Spacing::Step(step) => match if times { Kind::Number.parse(step)? } else { kind.parse(step)? } {
            Value::Number(step) => steps(from, to, step)?,
            _ => return Err(format!("`{step}` is no step")),
        },
        Spacing::In(count) => spread(count, |part| from + part * (to - from))?,
        Spacing::Log(_) if !(from > 0.0 && to > 0.0) => return Err("equal ratios need ends above zero".to_owned()),
        Spacing::Log(count) => spread(count, |part| (from.ln() + part * (to.ln() - from.ln())).exp())?,
    };
    numbers
        .into_iter()
        .map(|number| if times { Ok(Value::Times(number)) } else { kind.check(kind.round(number)).map(Value::Number) })
        .collect()
}

enum Spacing<'t> {
    Ones,
    Step(&'t str),
    In(&'t str),
    Log(&'t str),
}

/// The end of a range, and how to get there.
fn spacing(text: &str) -> (&str, Spacing<'_>) {
    for (word, make) in [(" step ", Spacing::Step as fn(_) -> _), (" in ", Spacing::In), (" log ", Spacing::Log)] {
        if let Some((end, how)) = text.split_once(word) {
            return (end, make(how));
        }
    }
    (text, Spacing::Ones)
}

fn steps(from: f64, to: f64, step: f64) -> Result<Vec<f64>, String> {
    if step <= 0.0 {
        return Err("a step is above zero".to_owned());
    }
    let count = ((to - from).abs() / step * (1.0 + 1e-12)).floor();
    if count >= MOST as f64 {
        return Err(format!("these are more than {MOST} values"));
    }
    let step = if to < from { -step } else { step };
    Ok((0..=count as usize).map(|number| tidy(from + number as f64 * step)).collect())
}

fn spread(count: &str, at: impl Fn(f64) -> f64) -> Result<Vec<f64>, String> {
    let count: usize = count
        .trim()
        .parse()
        .ok()
        .filter(|count| (2..=MOST).contains(count))
        .ok_or_else(|| format!("`{}` is no number of values from 2 to {MOST}", count.trim()))?;
    Ok((0..count).map(|number| tidy(at(number as f64 / (count - 1) as f64))).collect())
}

/// The number with the twelve digits that count, so that 0.1 · 3 is 0.3.
fn tidy(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

fn refused(text: &str, why: &str) -> Diagnostic {
    Diagnostic::error(codes::SWEEP, Place::Nowhere, format!("`{}` cannot be swept over: {why}", text.trim()))
        .with_hint("write a list such as `1,2,4`, or a range such as `1..20`, `1..100 step 5`, `1 ms..5 ms in 9` or `1..1000 log 20`")
}

#[cfg(test)]
mod tests {
    use super::Axis;
    use crate::model::parameter::{Kind, Value};

    fn numbers(kind: Kind, text: &str) -> Vec<f64> {
        let axis = Axis::parse(kind, text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
        axis.values.iter().map(|value| value.number().expect("a number")).collect()
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(numbers(Kind::Count, "1..5"), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(numbers(Kind::Count, "5..1 step 2, 8"), [5.0, 3.0, 1.0, 8.0]);
        assert_eq!(numbers(Kind::Count, "1..4 log 9"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(numbers(Kind::Time, "2.5 ms,5 ms"), [0.0025, 0.005]);
        assert_eq!(numbers(Kind::Time, "0.1..0.3 step 0.1"), [0.1, 0.2, 0.3]);
        assert_eq!(numbers(Kind::Time, "1 ms..2 ms in 3"), [0.001, 0.0015, 0.002]);
        assert_eq!(numbers(Kind::Rate, "60/min"), [1.0]);
        assert_eq!(numbers(Kind::Number, "1..1000 log 4"), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(Axis::parse(Kind::Servers, "2,inf").map(|axis| axis.values[1].clone()), Ok(Value::Infinite));
        let times = Axis::parse(Kind::Time, "x0.5,+10%,-20 %").expect("relative values").values;
        assert_eq!(times, [Value::Times(0.5), Value::Times(1.1), Value::Times(0.8)]);
        let words = Axis::parse(Kind::Word, "host 1,'host-2'").expect("words").values;
        assert_eq!(words, [Value::Word("host 1".into()), Value::Word("host-2".into())]);
    }

    #[test]
    fn what_cannot_be_swept() {
        for (kind, text) in [
            (Kind::Count, ""),
            (Kind::Count, "0..3"),
            (Kind::Count, "1.5"),
            (Kind::Count, "1..1e9"),
            (Kind::Count, "1..5 step 0"),
            (Kind::Count, "1..5 in 1"),
            (Kind::Time, "1 ms..5 ms"),
            (Kind::Time, "-1"),
            (Kind::Time, "0..1 log 3"),
            (Kind::Time, "1..x2 in 3"),
            (Kind::Rate, "0"),
            (Kind::Number, "nan"),
            (Kind::Number, "-150%"),
        ] {
            assert!(Axis::parse(kind, text).is_err(), "{text}");
        }
    }
}
