//! The load of a scenario: as configured, else as observed, else one customer.

use std::fmt;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::ScenarioTotal;
use crate::model::codes;
use crate::model::stability::Overload;

/// The fewest operations from which a rate is estimated.
const ENOUGH: u64 = 10;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Load {
    /// Customers who ask, wait for the response and think.
    Closed {
        /// How many.
        population: u32,
        /// Mean time to think, seconds.
        think_time: f64,
    },
    /// Operations that arrive whatever happened to those before.
    Open {
        /// Per second.
        rate: f64,
    },
}

impl Load {
    /// What is assumed where nothing is known: one operation at a time, each on its own.
    pub const ALONE: Self = Self::Closed { population: 1, think_time: 0.0 };
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { population: 1, think_time } if *think_time == 0.0 => {
                f.write_str("one customer without think time")
            }
            Self::Closed { population, think_time } => {
                let customers = if *population == 1 { "customer" } else { "customers" };
                write!(f, "{population} {customers}, think time {} s", short(*think_time))
            }
            Self::Open { rate } => write!(f, "open arrivals, {}/s", short(*rate)),
        }
    }
}

/// Why a load was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadReason {
    /// The configuration says so.
    Configured,
    /// The traces show it.
    Observed,
    /// Nobody tells.
    Assumed,
}

/// The load that settings give.
pub fn configured(rate: Option<f64>, population: Option<u32>, think_time: Option<f64>) -> Option<Load> {
    match (rate, population, think_time) {
        (Some(rate), _, _) => Some(Load::Open { rate }),
        (None, None, None) => None,
        (None, population, think_time) => {
            Some(Load::Closed { population: population.unwrap_or(1), think_time: think_time.unwrap_or(0.0) })
        }
    }
}

/// The customers that were seen to ask one after another, each waiting for the answer.
pub fn observed_customers(total: &ScenarioTotal) -> Option<Load> {
    let population = u32::try_from(total.clients).ok().filter(|clients| *clients > 0)?;
    let waits = total.response.count > 0;
    waits.then(|| Load::Closed { population, think_time: total.think.mean().unwrap_or(0.0) })
}

/// Says that customers were taken from the traces.
pub fn customers_note(scenario: &str, load: Load, total: &ScenarioTotal) -> Diagnostic {
    note(format!("scenario `{scenario}` gets {load}"))
        .with_note(format!(
            "so many tasks were seen to begin its {} operations, and to wait for their end",
            total.operations
        ))
        .with_hint(hint(scenario))
}

/// The rate at which operations were seen to start: so many intervals between the first start and the last.
pub fn observed_rate(total: &ScenarioTotal) -> Option<f64> {
    let window = total.last_start?.checked_sub(total.first_start?)?;
    (total.operations >= ENOUGH && window > 0).then(|| (total.operations - 1) as f64 / (window as f64 * 1e-9))
}

/// Says that a load was taken from the traces.
pub fn observed_note(scenario: &str, rate: f64, total: &ScenarioTotal) -> Diagnostic {
    let window = match (total.first_start, total.last_start) {
        (Some(first), Some(last)) => last.saturating_sub(first) as f64 * 1e-9,
        _ => 0.0,
    };
    note(format!("scenario `{scenario}` gets open arrivals of {}/s", short(rate)))
        .with_note(format!("{} operations were seen to start within {} s", total.operations, short(window)))
        .with_hint(hint(scenario))
}

/// Says that a load was assumed, and why.
pub fn assumed_note(scenario: &str, total: &ScenarioTotal) -> Diagnostic {
    let why = if total.operations < ENOUGH {
        match total.operations {
            1 => "one operation does not tell a rate".to_owned(),
            operations => format!("{operations} operations are too few to tell a rate"),
        }
    } else {
        "the traces do not tell when operations started".to_owned()
    };
    note(format!("scenario `{scenario}` gets one customer without think time")).with_note(why).with_hint(hint(scenario))
}

/// Says that the observed rate was not used, and why.
pub fn overload_warning(scenario: &str, rate: f64, overload: &Overload) -> Diagnostic {
    let why = match &overload.element {
        Some(element) => {
            format!("{element} would be busy {} % of the time", short(overload.utilization * 100.0))
        }
        None => "entries wait for each other in a circle, so that utilisations cannot be told".to_owned(),
    };
    let message = format!(
        "scenario `{scenario}` gets one customer without think time, not the observed {}/s, which the model cannot sustain",
        short(rate)
    );
    Diagnostic::warning(codes::LOAD_NOT_SUSTAINED, Place::Nowhere, message)
        .with_note(why)
        .with_hint("give processors their `multiplicity`, tasks their `threads`, or activities their CPU demand")
        .with_hint(hint(scenario))
}

fn note(message: String) -> Diagnostic {
    Diagnostic::new(Severity::Note, codes::LOAD_CHOSEN, Place::Nowhere, message)
}

fn hint(scenario: &str) -> String {
    format!("set `population` and `think_time`, or `rate`, under `[scenario.{}]`", toml_key(scenario))
}

/// A name as a key of TOML.
pub fn toml_key(name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { name.to_owned() } else { quoted(name) }
}

/// A text as a string of TOML.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(character))),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A number with four digits that count.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
