//! Figures that a question asks for, by name: means, busy parts and percentiles.

mod measure;

use std::fmt;

use crate::diagnostic::quantity::number;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::results::Results;
use crate::lqn::{EntryId, Model, Multiplicity, Scheduling, TaskId};
use crate::model::parameter::Path;
use crate::model::{Load, Origins, codes};

pub use measure::{Measure, Quantity};

/// A figure of a solution.
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

/// Quantities that, alone, stand for those of all elements that have them.
const ALONE: [Quantity; 3] = [Quantity::Response, Quantity::Throughput, Quantity::Utilization];

impl Figure {
    /// Reads `scenario.order.response`, `processor.db`, `scenario.order.p95` and the like. `response`, `throughput` and `p95` alone
    /// stand for those of every scenario, or every source of load of a model; `utilization` for every processor with a limit.
    ///
    /// # Errors
    /// When it cannot be read, or the model has no such figure.
    pub fn parse(text: &str, model: &Model, origins: Option<&Origins>) -> Result<Vec<Self>, Diagnostic> {
        let (path, part) = read(text)?;
        let names = path.names();
        let whole = names.join(".");
        if names.len() == 1 || percent(&whole).is_some() {
            let found = of_all(&whole, part, model, origins);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        if let ([element, name, _, ..], Some(part)) = (&names[..], part) {
            let known = Measure::known(model, origins);
            let own = |own: &&Measure| own.element == *element && own.name == *name && own.element != "processor";
            if let Some(found) = known.iter().find(own) {
                return Self::percentile_of(found, part, model, origins).map(|figure| vec![figure]);
            }
        }
        Measure::parse(text, model, origins).map(|measure| vec![Self::Mean(measure)]).map_err(|error| match names[..] {
            [quantity] => error.with_similar(quantity, ALONE.map(Quantity::name)),
            _ => error,
        })
    }

    fn percentile_of(of: &Measure, part: f64, model: &Model, origins: Option<&Origins>) -> Result<Self, Diagnostic> {
        if entry_of(of.element, &of.name, model, origins).is_some() {
            return Ok(Self::Percentile { element: of.element, name: of.name.clone(), part });
        }
        let message = format!("`{}.{}` has no response times of its own to be seen", of.element, of.name);
        Err(Diagnostic::error(codes::UNKNOWN_FIGURE, Place::Nowhere, message).with_note(
            "percentiles are known of entries, of reference tasks of one entry, and of scenarios that begin with one request",
        ))
    }

    /// Reads the form of a figure, before there is a model.
    ///
    /// # Errors
    /// When no model has such a figure.
    pub fn check(text: &str) -> Result<(), Diagnostic> {
        let (path, part) = read(text)?;
        match path.names()[..] {
            _ if part.is_some() => Ok(()),
            [quantity] if ALONE.map(Quantity::name).contains(&quantity) => Ok(()),
            [word] if !Measure::elements().contains(&word) => Err(measure::unknown(&path)
                .with_note(
                    "there are `response`, `throughput`, `utilization` and `p95`, and such as `scenario.S.response`",
                )
                .with_similar(word, ALONE.map(Quantity::name))),
            _ => Measure::check(&path),
        }
    }

    /// Whether a text asks for a percentile, which only a simulation tells.
    pub fn is_percentile(text: &str) -> bool {
        read(text).is_ok_and(|(_, part)| part.is_some())
    }

    /// The kind of element that it is of.
    pub fn element(&self) -> &'static str {
        match self {
            Self::Mean(measure) | Self::Part(measure) => measure.element,
            Self::Percentile { element, .. } => element,
        }
    }

    /// The element's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Mean(measure) | Self::Part(measure) => &measure.name,
            Self::Percentile { name, .. } => name,
        }
    }

    /// What of the element it is.
    pub fn quantity(&self) -> Quantity {
        match self {
            Self::Mean(measure) | Self::Part(measure) => measure.quantity,
            Self::Percentile { .. } => Quantity::Response,
        }
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Part(_) => "part",
            _ => self.quantity().unit(),
        }
    }

    /// The part of all responses, if it is a percentile: only a simulation tells it.
    pub fn part(&self) -> Option<f64> {
        match self {
            Self::Percentile { part, .. } => Some(*part),
            _ => None,
        }
    }

    /// The figure in results; `None` where there is none.
    pub fn of(&self, model: &Model, results: &Results, origins: Option<&Origins>) -> Option<f64> {
        match self {
            Self::Mean(measure) => measure.of(model, results, origins),
            Self::Part(measure) => measure.of(model, results, origins).map(|value| value / servers(measure, model)),
            Self::Percentile { element, name, part } => percentile(element, name, *part, model, results, origins).0,
        }
    }
}

/// The path of a figure and, of a percentile, the part of all responses.
fn read(text: &str) -> Result<(Path, Option<f64>), Diagnostic> {
    let path = Path::parse(text)?;
    // A percentile may have a point in it: `p99.9`.
    let last = match &path.names()[..] {
        [_, _, rest @ ..] if !rest.is_empty() => rest.join("."),
        names => names.join("."),
    };
    let part = percent(&last).map(|percent| percent / 100.0);
    if part.is_some_and(|part| !(part > 0.0 && part < 1.0)) {
        return Err(measure::unknown(&path).with_note("percentiles lie between 0 and 100"));
    }
    Ok((path, part))
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

/// The servers of a processor or the threads of a task; of an entry, those of its task.
pub(super) fn servers(measure: &Measure, model: &Model) -> f64 {
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

/// The entry whose responses are those of an element.
fn entry_of(element: &str, name: &str, model: &Model, origins: Option<&Origins>) -> Option<EntryId> {
    let only = |task: TaskId| match model.tasks[task.index()].entries[..] {
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

/// A percentile of a simulation, and half of its interval.
pub(super) fn percentile(
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
