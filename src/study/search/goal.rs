//! Goals: what a figure is to be below or above.

use std::fmt;
use std::ops::Range;

use crate::diagnostic::quantity::{for_people, significant};
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::parameter::Kind;
use crate::model::{Origins, codes};
use crate::study::figure::{Figure, Quantity, percentile, servers};
use crate::study::search::Verdict;

/// What a solver leaves open, relative to a figure: one that is as near to its bound is taken to be there.
pub(super) const OPEN: f64 = 1e-4;

/// Digits that count, and how many more may where these do not tell a figure from its bound.
const DIGITS: u8 = 4;
const MOST_DIGITS: u8 = 12;
/// Powers of ten that are written without an exponent.
const PLAIN: Range<i32> = -6..15;

/// How a figure is to stand to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Relation {
    const ALL: [(&'static str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Below), (">", Self::Above)];

    /// As it is written.
    pub fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, own)| *own == self).map_or("", |(sign, _)| sign)
    }

    pub(super) fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Below | Self::Above if is_level(value, bound) => false,
            Self::AtMost | Self::AtLeast if is_level(value, bound) => true,
            Self::Below => value < bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::AtLeast => value >= bound,
        }
    }

    /// Whether less is better.
    fn is_upper(self) -> bool {
        matches!(self, Self::Below | Self::AtMost)
    }
}

/// Whether no solver could tell a figure from its bound.
fn is_level(value: f64, bound: f64) -> bool {
    (value - bound).abs() <= OPEN * bound.abs()
}

/// A figure and its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The figure.
    pub figure: Figure,
    /// How it is to stand to the bound.
    pub relation: Relation,
    /// The bound: seconds, per second, busy servers, or a part of 1.
    pub bound: f64,
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.figure, self.relation.sign(), self.shown(self.bound))
    }
}

/// How a figure stands to its goal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reached {
    /// The figure, where there is one.
    pub value: Option<f64>,
    /// Half of its 95 % interval where it was simulated; infinite where nothing is known of it.
    pub half_width: Option<f64>,
    /// Whether the goal is met; of what was simulated, whether it is beyond the interval.
    pub verdict: Verdict,
    /// By how much, relative to the bound; negative where it is missed.
    pub margin: f64,
}

impl Reached {
    /// There is no figure.
    pub(super) fn nothing(verdict: Verdict) -> Self {
        Self { value: None, half_width: None, verdict, margin: f64::NEG_INFINITY }
    }

    /// Whether the figure is that of the bound, as far as a solver can tell.
    pub fn is_level(&self, goal: &Goal) -> bool {
        self.half_width.is_none() && self.value.is_some_and(|value| is_level(value, goal.bound))
    }
}

impl Goal {
    /// Reads goals such as `scenario.order.response < 200 ms`, `processor.db.utilization <= 80 %`, `task.users.throughput > 5/s` or
    /// `scenario.order.p95 < 0.5 s`. A quantity alone, as in `response < 200 ms`, stands for that of every scenario, or every
    /// source of load of a model; `utilization` for every processor with a limit.
    ///
    /// # Errors
    /// When it cannot be read, or there is no such figure.
    pub fn parse(text: &str, model: &Model, origins: Option<&Origins>) -> Result<Vec<Self>, Diagnostic> {
        let (figure, relation, bound) = split(text).ok_or_else(|| refused(text, "it has no `<`, `<=`, `>` or `>=`"))?;
        let figures = Figure::parse(figure.trim(), model, origins)?;
        let goals = figures.into_iter().map(|figure| Self::bounded(figure, relation, bound.trim()));
        goals.collect::<Result<_, _>>().map_err(|why| refused(text, &why))
    }

    fn bounded(figure: Figure, relation: Relation, bound: &str) -> Result<Self, String> {
        let quantity = figure.quantity();
        if let (Quantity::Utilization, Some(percent), Figure::Mean(measure)) =
            (quantity, bound.strip_suffix('%'), &figure)
        {
            let percent: f64 = percent.trim().parse().map_err(|_| format!("`{bound}` is no number"))?;
            let bound = Kind::Number.check(percent / 100.0)?;
            return Ok(Self { figure: Figure::Part(measure.clone()), relation, bound });
        }
        match kind(quantity).parse(bound)? {
            crate::model::parameter::Value::Number(bound) => Ok(Self { figure, relation, bound }),
            _ => Err(format!("`{bound}` is no bound: give a number")),
        }
    }

    /// Reads the form of a goal, before there is a model.
    ///
    /// # Errors
    /// When no model could have it.
    pub fn check(text: &str) -> Result<(), Diagnostic> {
        let (figure, _, bound) = split(text).ok_or_else(|| refused(text, "it has no `<`, `<=`, `>` or `>=`"))?;
        Figure::check(figure.trim())?;
        let bound = bound.trim();
        let number = bound.strip_suffix('%').map_or(bound, str::trim);
        if Kind::Number.parse(number).is_ok() || Kind::Rate.parse(number).is_ok() {
            return Ok(());
        }
        Kind::Time.parse(number).map(drop).map_err(|why| refused(text, &why))
    }

    /// Whether a text is a goal of a percentile.
    pub fn is_of_percentile(text: &str) -> bool {
        split(text).is_some_and(|(figure, ..)| Figure::is_percentile(figure.trim()))
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        self.figure.unit()
    }

    /// A value of the figure, with its unit, for people.
    pub fn shown(&self, value: f64) -> String {
        self.with_digits(value, DIGITS)
    }

    /// A value of the figure as [`Goal::shown`], with as many digits as tell it from the bound.
    pub fn shown_apart(&self, value: f64) -> String {
        let apart = |digits: &u8| self.with_digits(value, *digits) != self.with_digits(self.bound, *digits);
        self.with_digits(value, (DIGITS..=MOST_DIGITS).find(apart).unwrap_or(DIGITS))
    }

    fn with_digits(&self, value: f64, digits: u8) -> String {
        let (scale, unit) = for_people(self.unit());
        let number = significant(scale * value, digits, PLAIN);
        if unit == "1/s" { format!("{number}/s") } else { format!("{number} {unit}") }
    }

    /// The part of all responses, if it is about a percentile.
    pub fn part(&self) -> Option<f64> {
        self.figure.part()
    }

    /// How results stand to it.
    pub fn evaluate(&self, model: &Model, results: &Results, origins: Option<&Origins>) -> Reached {
        let (value, half_width) = match &self.figure {
            Figure::Mean(measure) => (measure.of(model, results, origins), measure.half_width(model, results, origins)),
            Figure::Part(measure) => {
                let servers = servers(measure, model);
                let scaled = |value: Option<f64>| value.map(|value| value / servers);
                (scaled(measure.of(model, results, origins)), scaled(measure.half_width(model, results, origins)))
            }
            Figure::Percentile { element, name, part } => percentile(element, name, *part, model, results, origins),
        };
        let Some(found) = value.filter(|value| value.is_finite()) else {
            return Reached::nothing(Verdict::Unknown);
        };
        let verdict = match half_width {
            // An interval that reaches over the bound says nothing.
            Some(width) if (found - self.bound).abs() <= width && width > 0.0 => Verdict::Unknown,
            _ if self.relation.holds(found, self.bound) => Verdict::Met,
            _ => Verdict::Missed,
        };
        let left = if self.relation.is_upper() { self.bound - found } else { found - self.bound };
        let margin = if self.bound == 0.0 { left } else { left / self.bound.abs() };
        Reached { value, half_width, verdict, margin }
    }
}

/// The figure, the sign and the bound of a goal; signs in quotation marks belong to names.
fn split(text: &str) -> Option<(&str, Relation, &str)> {
    let mut quote = None;
    for (place, character) in text.char_indices() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '<' | '>') => {
                let (sign, relation) = Relation::ALL.iter().find(|(sign, _)| text[place..].starts_with(sign))?;
                return Some((&text[..place], *relation, &text[place + sign.len()..]));
            }
            _ => {}
        }
    }
    None
}

fn kind(quantity: Quantity) -> Kind {
    match quantity {
        Quantity::Response | Quantity::Service => Kind::Time,
        Quantity::Throughput => Kind::Rate,
        Quantity::Utilization => Kind::Number,
    }
}

fn refused(text: &str, why: &str) -> Diagnostic {
    Diagnostic::error(codes::GOAL, Place::Nowhere, format!("`{}` is no goal: {why}", text.trim()))
        .with_hint("write such as `scenario.order.response < 200 ms`, `processor.db.utilization <= 80%`, `throughput > 5/s` or `p95 < 0.5 s`")
}
