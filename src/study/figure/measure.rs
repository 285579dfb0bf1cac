//! Means of elements, by name.

use std::fmt;

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::results::Results;
use crate::lqn::{Model, Multiplicity, Scheduling, TaskId};
use crate::model::parameter::Path;
use crate::model::{Origins, codes};
use crate::study::ScenarioResult;

/// What is measured of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Mean response time, seconds.
    Response,
    /// Per second.
    Throughput,
    /// Mean number of busy servers or threads.
    Utilization,
    /// Service time of all phases, seconds.
    Service,
}

impl Quantity {
    const ALL: [(&'static str, Self); 4] = [
        ("response", Self::Response),
        ("throughput", Self::Throughput),
        ("utilization", Self::Utilization),
        ("service", Self::Service),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Response | Self::Service => "s",
            Self::Throughput => "1/s",
            Self::Utilization => "busy",
        }
    }
}

/// A figure of an element: `scenario.order.response`, `processor.db.utilization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// `scenario`, `profile`, `task`, `entry` or `processor`.
    pub element: &'static str,
    /// Its name.
    pub name: String,
    /// What of it.
    pub quantity: Quantity,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Path::of(&[self.element, &self.name, self.quantity.name()]).fmt(f)
    }
}

/// What there is of each kind of element; the first is meant where none is named.
const OF: [(&str, &[Quantity]); 5] = [
    ("scenario", &[Quantity::Response, Quantity::Throughput]),
    ("profile", &[Quantity::Response, Quantity::Throughput]),
    ("task", &[Quantity::Utilization, Quantity::Throughput, Quantity::Response]),
    ("entry", &[Quantity::Service, Quantity::Throughput, Quantity::Utilization, Quantity::Response]),
    ("processor", &[Quantity::Utilization]),
];

impl Measure {
    /// What is measured where nothing is asked for: response and throughput of each scenario, or of each reference task and
    /// open entry of a model.
    pub fn usual(model: &Model, origins: Option<&Origins>) -> Vec<Self> {
        let both = [Quantity::Response, Quantity::Throughput];
        let of =
            |element: &'static str, name: &str| both.map(|quantity| Self { element, name: name.to_owned(), quantity });
        if let Some(origins) = origins {
            return origins.scenarios.iter().flat_map(|own| of(own.table(), &own.name)).collect();
        }
        let sources = model.tasks.iter().filter(|task| task.scheduling == Scheduling::Reference);
        let open = model.entries.iter().filter(|entry| entry.open_arrival_rate.is_some());
        sources.flat_map(|task| of("task", &task.name)).chain(open.flat_map(|entry| of("entry", &entry.name))).collect()
    }

    /// Half of a simulated figure's interval: what the figure moves by when all that it is made of do by half of theirs.
    pub fn half_width(&self, model: &Model, results: &Results, origins: Option<&Origins>) -> Option<f64> {
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
        let (here, there) = (self.of(model, results, origins)?, self.of(model, &moved, origins)?);
        let width = (there - here).abs();
        Some(if width.is_nan() { f64::INFINITY } else { width })
    }

    /// Reads `processor.db`, `entry.lookup.throughput` and the like.
    ///
    /// # Errors
    /// When the model has no such element, or there is no such figure of it.
    pub fn parse(text: &str, model: &Model, origins: Option<&Origins>) -> Result<Self, Diagnostic> {
        let path = Path::parse(text)?;
        let known = Self::known(model, origins);
        let found = match path.names()[..] {
            [element, name] => known.iter().find(|own| own.element == element && own.name == name),
            [element, name, quantity] => {
                known.iter().find(|own| own.element == element && own.name == name && own.quantity.name() == quantity)
            }
            _ => None,
        };
        found.cloned().ok_or_else(|| {
            let mut shown: Vec<String> = known.iter().map(ToString::to_string).collect();
            let few: Vec<String> = shown.iter().take(8).map(|name| format!("`{name}`")).collect();
            shown.extend(known.iter().map(|own| Path::of(&[own.element, &own.name]).to_string()));
            unknown(&path)
                .with_note(format!("there are such as {}", few.join(", ")))
                .with_similar(&path.to_string(), shown.iter().map(String::as_str))
        })
    }

    /// Reads the form of a mean, before there is a model.
    ///
    /// # Errors
    /// When no model has it.
    pub(super) fn check(path: &Path) -> Result<(), Diagnostic> {
        let names = path.names();
        let own = OF.iter().find(|(element, _)| names.first() == Some(element)).map(|(_, quantities)| *quantities);
        let Some(quantities) = own else {
            let listed =
                format!("figures are those of {}", Self::elements().map(|name| format!("`{name}`")).join(", "));
            return Err(unknown(path).with_note(listed).with_similar(names[0], Self::elements()));
        };
        let known: Vec<&str> = quantities.iter().map(|quantity| quantity.name()).collect();
        match names[..] {
            [_, _] => Ok(()),
            [_, _, quantity] if known.contains(&quantity) => Ok(()),
            _ => Err(unknown(path)
                .with_note(format!("{} has {}", names[0], known.join(", ")))
                .with_similar(names.last().copied().unwrap_or_default(), known)),
        }
    }

    /// The kinds of elements.
    pub(super) fn elements() -> [&'static str; 5] {
        OF.map(|(element, _)| element)
    }

    /// All figures that there are.
    pub fn known(model: &Model, origins: Option<&Origins>) -> Vec<Self> {
        let mut known = Vec::new();
        for (element, quantities) in OF {
            let names: Vec<&str> = match element {
                "scenario" | "profile" => {
                    let scenarios = origins.iter().flat_map(|origins| &origins.scenarios);
                    scenarios.filter(|own| own.table() == element).map(|own| &*own.name).collect()
                }
                "task" => model.tasks.iter().map(|task| &*task.name).collect(),
                "entry" => model.entries.iter().map(|entry| &*entry.name).collect(),
                _ => model.processors.iter().map(|processor| &*processor.name).collect(),
            };
            for name in names {
                known.extend(quantities.iter().map(|&quantity| Self { element, name: name.to_owned(), quantity }));
            }
        }
        known
    }

    /// The figure in results; `None` where the element is not there or has no such figure.
    pub fn of(&self, model: &Model, results: &Results, origins: Option<&Origins>) -> Option<f64> {
        match self.element {
            "scenario" | "profile" => {
                let scenarios = ScenarioResult::all(model, results, origins?);
                let is_it =
                    |own: &&ScenarioResult<'_>| own.origin.table() == self.element && *own.origin.name == *self.name;
                let own = scenarios.iter().find(is_it)?;
                match self.quantity {
                    Quantity::Response => own.response,
                    _ => Some(own.throughput),
                }
            }
            "task" => {
                let task = model.task_named(&self.name)?;
                let result = &results.tasks[task.index()];
                match self.quantity {
                    Quantity::Utilization => Some(result.utilization),
                    Quantity::Throughput => Some(result.throughput),
                    _ => response(model, results, task),
                }
            }
            "entry" => {
                let result = &results.entries[model.entry_named(&self.name)?.index()];
                Some(match self.quantity {
                    Quantity::Utilization => result.utilization,
                    Quantity::Throughput => result.throughput,
                    Quantity::Service => result.service.iter().sum(),
                    Quantity::Response => return result.open_response,
                })
            }
            _ => Some(results.processors[model.processor_named(&self.name)?.index()].utilization),
        }
    }
}

/// The time of a customer's cycle without thinking (Little's law).
fn response(model: &Model, results: &Results, task: TaskId) -> Option<f64> {
    let own = &model.tasks[task.index()];
    match own.multiplicity {
        Multiplicity::Finite(_) if own.scheduling == Scheduling::Reference => results.tasks[task.index()].response(),
        _ => None,
    }
}

/// That there is no such figure.
pub(super) fn unknown(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FIGURE, Place::Nowhere, format!("there is no figure `{path}`"))
}
