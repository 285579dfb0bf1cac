//! Goals: what a figure is to be below or above.

use std::fmt;
use std::ops::Range;

use crate::diagnostic::quantity::{number, significant};
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::results::Results;
use crate::lqn::{EntryId, Model, Multiplicity, Scheduling};
use crate::model::parameter::{Kind, Path};
use crate::model::{Load, Origins, codes};
use crate::study::figure::{Measure, Quantity};
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

    fn holds(self, value: f64, bound: f64) -> bool {
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

/// What a goal is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// A mean.
    Mean(Measure),
    /// The busy part of all servers or threads.
    Part(Measure),
    /// A percentile of response times, which only a simulation tells.
    Percentile {
        /// `scenario`, `task` or `entry`.
        element: &'static str,
        /// Its name.
        name: String,
        /// The part of all responses, as 0.95.
        part: f64,
    },
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean(measure) | Self::Part(measure) => measure.fmt(f),
            Self::Percentile { element, name, part } => {
                // The name is quoted where it has to be; the percentile may have a point of its own.
                write!(f, "{}.p{}", Path::of(&[element, name]), number(100.0 * part))
            }
        }
    }
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
        let figures = figures(figure.trim(), model, origins)?;
        let goals = figures.into_iter().map(|figure| Self::bounded(figure, relation, bound.trim()));
        goals.collect::<Result<_, _>>().map_err(|why| refused(text, &why))
    }

    fn bounded(figure: Figure, relation: Relation, bound: &str) -> Result<Self, String> {
        let (kind, quantity) = match &figure {
            Figure::Percentile { .. } => (Kind::Time, Quantity::Response),
            Figure::Mean(measure) | Figure::Part(measure) => (kind(measure.quantity), measure.quantity),
        };
        if let (Quantity::Utilization, Some(percent), Figure::Mean(measure)) =
            (quantity, bound.strip_suffix('%'), &figure)
        {
            let percent: f64 = percent.trim().parse().map_err(|_| format!("`{bound}` is no number"))?;
            let bound = Kind::Number.check(percent / 100.0)?;
            return Ok(Self { figure: Figure::Part(measure.clone()), relation, bound });
        }
        match kind.parse(bound)? {
            crate::model::parameter::Value::Number(bound) => Ok(Self { figure, relation, bound }),
            _ => Err(format!("`{bound}` is no bound: give a number")),
        }
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        match &self.figure {
            Figure::Percentile { .. } => "s",
            Figure::Part(_) => "part",
            Figure::Mean(measure) => measure.quantity.unit(),
        }
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
        let number = |value: f64| significant(value, digits, PLAIN);
        match self.unit() {
            "part" => format!("{} %", number(100.0 * value)),
            "1/s" => format!("{}/s", number(value)),
            unit => format!("{} {unit}", number(value)),
        }
    }

    /// The part of all responses, if it is about a percentile.
    pub fn part(&self) -> Option<f64> {
        match self.figure {
            Figure::Percentile { part, .. } => Some(part),
            _ => None,
        }
    }

    /// How results stand to it.
    pub fn evaluate(&self, model: &Model, results: &Results, origins: Option<&Origins>) -> Reached {
        let (value, half_width) = match &self.figure {
            Figure::Mean(measure) => {
                (measure.of(model, results, origins), half_width(measure, model, results, origins))
            }
            Figure::Part(measure) => {
                let servers = servers(measure, model);
                let scaled = |value: Option<f64>| value.map(|value| value / servers);
                (scaled(measure.of(model, results, origins)), scaled(half_width(measure, model, results, origins)))
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

/// The figures that a text names.
fn figures(text: &str, model: &Model, origins: Option<&Origins>) -> Result<Vec<Figure>, Diagnostic> {
    let path = Path::parse(text)?;
    // A percentile may have a point in it: `p99.9`.
    let names = path.names();
    let last = match &names[..] {
        [_, _, rest @ ..] if !rest.is_empty() => rest.join("."),
        _ => names.join("."),
    };
    let part = percent(&last).map(|percent| percent / 100.0);
    if part.is_some_and(|part| !(part > 0.0 && part < 1.0)) {
        return Err(refused(text, "percentiles lie between 0 and 100"));
    }
    let whole = names.join(".");
    if names.len() == 1 || percent(&whole).is_some() {
        let found = of_all(&whole, part, model, origins);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    if let [element, name, _, ..] = &names[..]
        && let Some(part) = part
    {
        let known = Measure::known(model, origins);
        let found = known.iter().find(|own| own.element == *element && own.name == *name && own.element != "processor");
        if let Some(found) = found {
            if entry_of(found.element, &found.name, model, origins).is_none() {
                return Err(refused(text, "there are no response times of its own to be seen")
                    .with_note("percentiles are told of entries, of reference tasks of one entry, and of scenarios that begin with one request"));
            }
            return Ok(vec![Figure::Percentile { element: found.element, name: found.name.clone(), part }]);
        }
    }
    let alone = [Quantity::Response, Quantity::Throughput, Quantity::Utilization].map(Quantity::name);
    Measure::parse(text, model, origins).map(|measure| vec![Figure::Mean(measure)]).map_err(|error| match names[..] {
        [quantity] => error.with_similar(quantity, alone),
        _ => error,
    })
}

/// The figures that a quantity alone stands for.
fn of_all(quantity: &str, part: Option<f64>, model: &Model, origins: Option<&Origins>) -> Vec<Figure> {
    let usual = || Measure::usual(model, origins).into_iter();
    if quantity == Quantity::Utilization.name() {
        let limited = model.processors.iter().filter(|processor| {
            processor.scheduling != Scheduling::Delay && processor.multiplicity != Multiplicity::Infinite
        });
        let measure =
            |name: &str| Measure { element: "processor", name: name.to_owned(), quantity: Quantity::Utilization };
        return limited.map(|processor| Figure::Mean(measure(&processor.name))).collect();
    }
    if let Some(part) = part {
        let sources = usual().filter(|measure| measure.quantity == Quantity::Response);
        return sources
            .map(|measure| Figure::Percentile { element: measure.element, name: measure.name, part })
            .collect();
    }
    usual().filter(|measure| measure.quantity.name() == quantity).map(Figure::Mean).collect()
}

/// The number of `p95` or `p99.9`.
fn percent(text: &str) -> Option<f64> {
    text.strip_prefix('p')?.parse().ok()
}

fn kind(quantity: Quantity) -> Kind {
    match quantity {
        Quantity::Response | Quantity::Service => Kind::Time,
        Quantity::Throughput => Kind::Rate,
        Quantity::Utilization => Kind::Number,
    }
}

/// The servers of a processor or the threads of a task; of an entry, those of its task.
fn servers(measure: &Measure, model: &Model) -> f64 {
    let multiplicity = match measure.element {
        "processor" => model.processor_named(&measure.name).map(|id| model.processors[id.index()].multiplicity),
        "task" => model.task_named(&measure.name).map(|id| model.tasks[id.index()].multiplicity),
        _ => {
            let entry = model.entry_named(&measure.name).map(|id| &model.entries[id.index()]);
            entry.map(|entry| model.tasks[entry.task.index()].multiplicity)
        }
    };
    match multiplicity {
        Some(Multiplicity::Finite(servers)) => f64::from(servers),
        _ => f64::INFINITY,
    }
}

/// Half of a simulated figure's interval: what the figure moves by when all that it is made of do by half of theirs.
fn half_width(measure: &Measure, model: &Model, results: &Results, origins: Option<&Origins>) -> Option<f64> {
    let widths = results.half_widths()?;
    let mut moved = results.clone();
    for (own, width) in moved.processors.iter_mut().zip(&widths.processors) {
        own.utilization += width.utilization;
    }
    for (own, width) in moved.tasks.iter_mut().zip(&widths.tasks) {
        own.throughput += width.throughput;
        own.utilization += width.utilization;
    }
    for (own, width) in moved.entries.iter_mut().zip(&widths.entries) {
        own.throughput += width.throughput;
        own.utilization += width.utilization;
        own.service.iter_mut().zip(&width.service).for_each(|(own, width)| *own += width);
        own.open_response = own.open_response.map(|own| own + width.open_response.unwrap_or(f64::INFINITY));
    }
    let (here, there) = (measure.of(model, results, origins)?, measure.of(model, &moved, origins)?);
    let width = (there - here).abs();
    Some(if width.is_nan() { f64::INFINITY } else { width })
}

/// The entry whose responses are those of an element.
fn entry_of(element: &str, name: &str, model: &Model, origins: Option<&Origins>) -> Option<EntryId> {
    let only = |task: crate::lqn::TaskId| match model.tasks[task.index()].entries[..] {
        [entry] if model.tasks[task.index()].scheduling == Scheduling::Reference => Some(entry),
        _ => None,
    };
    match element {
        "entry" => model.entry_named(name),
        "task" => only(model.task_named(name)?),
        _ => {
            let mut scenarios = origins?.scenarios.iter();
            let scenario = scenarios.find(|own| own.table() == element && *own.name == *name)?;
            match (scenario.load, scenario.customer, &scenario.first[..]) {
                (Load::Closed { .. }, Some(task), _) => only(task),
                (Load::Open { .. }, _, [(entry, requests)]) if (requests - 1.0).abs() < 1e-9 => Some(*entry),
                _ => None,
            }
        }
    }
}

fn percentile(
    element: &str,
    name: &str,
    part: f64,
    model: &Model,
    results: &Results,
    origins: Option<&Origins>,
) -> (Option<f64>, Option<f64>) {
    let found = || {
        let entry = entry_of(element, name, model, origins)?;
        let all = &results.simulated.as_ref()?.percentiles;
        let own = all.iter().find(|percentiles| percentiles.entry == entry)?;
        own.values.iter().find(|value| (value.part - part).abs() < 1e-12)
    };
    match found() {
        Some(found) => (Some(found.time), Some(found.half_width.unwrap_or(f64::INFINITY))),
        None => (None, None),
    }
}

fn refused(text: &str, why: &str) -> Diagnostic {
    Diagnostic::error(codes::GOAL, Place::Nowhere, format!("`{}` is no goal: {why}", text.trim()))
        .with_hint("write such as `scenario.order.response < 200 ms`, `processor.db.utilization <= 80%`, `throughput > 5/s` or `p95 < 0.5 s`")
}
