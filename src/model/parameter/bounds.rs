//! Where the value of a parameter is looked for.

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::subject::NO_VALUE;
use crate::model::parameter::{Kind, Path, Value};

/// Without a range, a parameter that is no count is looked for so many times below and above its present value.
const AROUND: f64 = 1000.0;
/// A range without an end goes so many times as far as it begins; from zero, [`AROUND`] times as far as the present value.
const BEYOND: f64 = 1e6;

/// Values among which one is looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// What the parameter takes: never words.
    pub kind: Kind,
    /// The value that it has now.
    pub present: Option<f64>,
    /// The values.
    pub among: Among,
}

/// The values themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum Among {
    /// All from one to another; as far as it takes where there is no other, which only whole numbers can do.
    From(f64, Option<f64>),
    /// These, ascending; infinity is the lack of a limit.
    Listed(Vec<f64>),
}

impl Bounds {
    /// Whether a text gives values one by one.
    pub(super) fn are_listed(text: &str) -> bool {
        text.contains(',') || [" step ", " in ", " log "].iter().any(|word| text.contains(word)) || !text.contains("..")
    }

    /// Values one by one.
    pub(super) fn listed(path: &Path, kind: Kind, values: &[Value], present: Option<f64>) -> Result<Self, Diagnostic> {
        let numbers: Option<Vec<f64>> = values.iter().map(Value::number).collect();
        let mut numbers = numbers.ok_or_else(|| words(path))?;
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        Ok(Self { kind, present, among: Among::Listed(numbers) })
    }

    /// A range, or all that the parameter takes.
    pub(super) fn parse(path: &Path, kind: Kind, text: Option<&str>, present: Option<f64>) -> Result<Self, Diagnostic> {
        if kind == Kind::Word {
            return Err(words(path));
        }
        let counts = matches!(kind, Kind::Count | Kind::Servers);
        let (from, to) = match text.and_then(|text| text.split_once("..")) {
            Some((from, to)) => {
                let number = |text: &str| match kind.parse(text) {
                    Ok(Value::Number(number)) => Ok(number),
                    Ok(Value::Times(factor)) => present
                        .map(|present| kind.round(factor * present))
                        .ok_or_else(|| NO_VALUE.to_owned())
                        .and_then(|number| kind.check(number)),
                    Ok(_) => Err(format!("`{}` is no number; give `inf` in a list", text.trim())),
                    Err(why) => Err(why),
                };
                let read = |text| number(text).map_err(|why| refused(path, &why));
                let from = read(from)?;
                (from, if to.trim().is_empty() { None } else { Some(read(to)?) })
            }
            None if counts => (1.0, None),
            None => match present.filter(|present| *present > 0.0 && kind != Kind::Whole) {
                Some(present) => (present / AROUND, Some(present * AROUND)),
                None => return Err(refused(path, "nobody knows where to look")),
            },
        };
        let to = match to {
            None if counts || kind == Kind::Whole => None,
            None if from > 0.0 => Some(from * BEYOND),
            None => match present.filter(|present| *present > 0.0) {
                Some(present) => Some(present * AROUND),
                None => return Err(refused(path, "a range from zero needs an end where there is no value yet")),
            },
            to => to,
        };
        if to.is_some_and(|to| to < from) {
            return Err(refused(path, "the range ends below where it begins"));
        }
        Ok(Self { kind, present, among: Among::From(from, to) })
    }
}

fn words(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::SEARCH, Place::Nowhere, format!("`{path}` takes names, of which none is the largest"))
        .with_hint("compare several by `--cheapest`, with a `--cost` of each")
}

fn refused(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error(codes::SEARCH, Place::Nowhere, format!("`{path}` cannot be searched: {why}"))
        .with_hint(format!("write a range such as `{path}=1..100`, or a list of values"))
}
