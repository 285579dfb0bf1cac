//! Reading of typed values out of TOML, with a place for every finding.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::{Dispatching, Multiplicity, Scheduling};
use crate::model::codes;
use crate::model::config::Network;
use crate::model::config::expression::{Expression, Source};
use crate::model::config::quantity::Quantity;
use crate::model::config::units;

/// A value with its place.
pub type Item<'i> = Spanned<DeValue<'i>>;
/// A key with its place.
pub type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

/// Names of orders of service, as in the XML model language and as people call them.
const SCHEDULINGS: [(&str, Scheduling); 9] = [
    ("ps", Scheduling::ProcessorSharing),
    ("fcfs", Scheduling::Fcfs),
    ("fifo", Scheduling::Fcfs),
    ("hol", Scheduling::HeadOfLine),
    ("pp", Scheduling::PreemptivePriority),
    ("pri", Scheduling::PreemptivePriority),
    ("rand", Scheduling::Random),
    ("inf", Scheduling::Delay),
    ("delay", Scheduling::Delay),
];

/// The name of an order of service that a processor can have.
pub fn scheduling_name(scheduling: Scheduling) -> Option<&'static str> {
    SCHEDULINGS.iter().find(|(_, own)| *own == scheduling).map(|(name, _)| *name)
}

/// Reads values and gathers what is wrong with them.
pub struct Reader<'f> {
    file: &'f Arc<str>,
    text: &'f str,
    /// What is wrong so far.
    pub findings: Vec<Diagnostic>,
}

impl<'f> Reader<'f> {
    /// A reader of that file with that text.
    pub fn new(file: &'f Arc<str>, text: &'f str) -> Self {
        Self { file, text, findings: Vec::new() }
    }

    /// The place of a byte range.
    pub fn place(&self, span: Range<usize>) -> Place {
        Place::Range { file: Arc::clone(self.file), start: span.start, end: span.end }
    }

    /// An unknown key.
    pub fn unknown(&mut self, key: &Key<'_>, inside: &str, known: &[&str]) {
        let written = key.get_ref();
        let finding = Diagnostic::warning(
            codes::UNKNOWN_KEY,
            self.place(key.span()),
            format!("unknown key `{written}` in {inside}"),
        )
        .with_note(format!("it is ignored; known here are {}", list(known)))
        .with_similar(written, known.iter().copied());
        self.findings.push(finding);
    }

    /// A table.
    pub fn table<'t, 'i>(&mut self, item: &'t Item<'i>, what: &str) -> Option<&'t DeTable<'i>> {
        let table = item.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(item, what, "a table");
        }
        table
    }

    /// A text.
    pub fn text(&mut self, item: &Item<'_>, what: &str) -> Option<String> {
        let text = item.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(item, what, "a string");
        }
        text.map(str::to_owned)
    }

    /// A list of texts.
    pub fn texts(&mut self, item: &Item<'_>, what: &str) -> Vec<String> {
        let Some(list) = item.get_ref().as_array() else {
            self.wrong_type(item, what, "a list of strings");
            return Vec::new();
        };
        list.iter().filter_map(|item| self.text(item, &format!("an element of {what}"))).collect()
    }

    /// A time, zero or more, in seconds.
    pub fn seconds(&mut self, item: &Item<'_>, what: &str) -> Option<f64> {
        let value = self.quantity(item, what, "a time such as \"2 ms\", or a number of seconds", units::seconds)?;
        self.demand_that(item, value >= 0.0, what, "a time is not negative").then_some(value)
    }

    /// A network latency.
    pub fn network(&mut self, item: &Item<'_>) -> Option<Network> {
        match item.get_ref() {
            DeValue::String(text) if &**text == "traced" => Some(Network::Traced),
            DeValue::String(text) if &**text == "none" => Some(Network::Each(0.0)),
            _ => {
                let expected = "\"traced\", \"none\", a time such as \"2 ms\", or a number of seconds";
                let value = self.quantity(item, "`network`", expected, units::seconds)?;
                self.demand_that(item, value >= 0.0, "`network`", "a time is not negative")
                    .then_some(Network::Each(value))
            }
        }
    }

    /// A number, a time or arithmetic on them. `None` where it cannot be read.
    pub fn expression(&mut self, item: &Item<'_>, what: &str) -> Option<Expression> {
        let place = self.place(item.span());
        match item.get_ref() {
            DeValue::String(text) => {
                // Places within the text are known where it stands in the file as it is.
                let span = item.span();
                let quote =
                    if self.text.get(span.clone()).is_some_and(|raw| raw.starts_with("\"\"\"")) { 3 } else { 1 };
                let start = span.start + quote;
                let as_it_is = self.text.get(start..).is_some_and(|rest| rest.starts_with(&**text));
                let source = Source { place, start: as_it_is.then_some(start) };
                Expression::parse(text, source).map_err(|finding| self.findings.push(finding)).ok()
            }
            other => match number(other) {
                Some(value) if value.is_finite() => Some(Expression::literal(Quantity::number(value), place)),
                Some(_) => {
                    self.demand_that(item, false, what, "it is a finite number");
                    None
                }
                None => {
                    self.wrong_type(item, what, "a number, a time such as \"2 ms\", or arithmetic in quotes");
                    None
                }
            },
        }
    }

    /// A number of zero or more.
    pub fn weight(&mut self, item: &Item<'_>, what: &str) -> Option<f64> {
        let Some(value) = number(item.get_ref()) else {
            self.wrong_type(item, what, "a number");
            return None;
        };
        self.demand_that(item, value.is_finite() && value >= 0.0, what, "it is a finite number, not below zero")
            .then_some(value)
    }

    /// A rate above zero, per second.
    pub fn rate(&mut self, item: &Item<'_>, what: &str) -> Option<f64> {
        let value = self.quantity(item, what, "a rate such as \"12/s\", or a number per second", units::rate)?;
        self.demand_that(item, value > 0.0, what, "a rate is above zero").then_some(value)
    }

    /// A number above zero.
    pub fn factor(&mut self, item: &Item<'_>, what: &str) -> Option<f64> {
        let Some(value) = number(item.get_ref()) else {
            self.wrong_type(item, what, "a number");
            return None;
        };
        self.demand_that(item, value.is_finite() && value > 0.0, what, "it is a finite number above zero")
            .then_some(value)
    }

    /// A whole number of at least one.
    pub fn count(&mut self, item: &Item<'_>, what: &str) -> Option<u32> {
        let value = self.integer(item, what)?;
        let count = u32::try_from(value).ok().filter(|count| *count >= 1);
        self.demand_that(item, count.is_some(), what, "it is at least 1 and below 2^32");
        count
    }

    /// A whole number.
    pub fn whole(&mut self, item: &Item<'_>, what: &str) -> Option<i32> {
        let value = self.integer(item, what)?;
        let whole = i32::try_from(value).ok();
        self.demand_that(item, whole.is_some(), what, "it lies between -2^31 and 2^31");
        whole
    }

    /// A whole number of at least one, or `"infinite"`.
    pub fn multiplicity(&mut self, item: &Item<'_>, what: &str) -> Option<Multiplicity> {
        match item.get_ref().as_str() {
            Some("infinite" | "inf") => Some(Multiplicity::Infinite),
            Some(_) => {
                self.wrong_type(item, what, "a whole number or \"infinite\"");
                None
            }
            None => self.count(item, what).map(Multiplicity::Finite),
        }
    }

    /// An order of service among those that `allowed` admits.
    pub fn scheduling(&mut self, item: &Item<'_>, what: &str, allowed: &[Scheduling]) -> Option<Scheduling> {
        let text = self.text(item, what)?;
        let written = text.to_lowercase();
        let known = SCHEDULINGS.iter().filter(|(_, scheduling)| allowed.contains(scheduling));
        if let Some((_, scheduling)) = known.clone().find(|(name, _)| *name == written) {
            return Some(*scheduling);
        }
        let names: Vec<&str> = known.map(|(name, _)| *name).collect();
        let finding =
            Diagnostic::error(codes::VALUE, self.place(item.span()), format!("unknown order of service `{text}`"))
                .with_note(format!("known for {what} are {}", list(&names)))
                .with_similar(&text, names.iter().copied());
        self.findings.push(finding);
        None
    }

    /// How requests come to the copies of a task.
    pub fn dispatching(&mut self, item: &Item<'_>) -> Option<Dispatching> {
        let text = self.text(item, "`dispatching`")?;
        if let Some((_, dispatching)) = Dispatching::WORDS.iter().find(|(name, _)| *name == text.to_lowercase()) {
            return Some(*dispatching);
        }
        let names = Dispatching::WORDS.map(|(name, _)| name);
        let finding =
            Diagnostic::error(codes::VALUE, self.place(item.span()), format!("unknown way of dispatching `{text}`"))
                .with_note(format!("known are {}", list(&names)))
                .with_similar(&text, names);
        self.findings.push(finding);
        None
    }

    fn integer(&mut self, item: &Item<'_>, what: &str) -> Option<i64> {
        let Some(integer) = item.get_ref().as_integer() else {
            self.wrong_type(item, what, "a whole number");
            return None;
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        self.demand_that(item, value.is_some(), what, "the number is too large");
        value
    }

    fn quantity(
        &mut self,
        item: &Item<'_>,
        what: &str,
        expected: &str,
        parse: fn(&str) -> Result<f64, String>,
    ) -> Option<f64> {
        let value = match item.get_ref() {
            DeValue::String(text) => parse(text),
            other => match number(other) {
                Some(value) => Ok(value),
                None => {
                    self.wrong_type(item, what, expected);
                    return None;
                }
            },
        };
        match value {
            Ok(value) => self.demand_that(item, value.is_finite(), what, "it is a finite number").then_some(value),
            Err(why) => {
                let finding = Diagnostic::error(
                    codes::VALUE,
                    self.place(item.span()),
                    format!("{what} has a value that means nothing"),
                )
                .with_note(why)
                .with_hint(format!("write {expected}"));
                self.findings.push(finding);
                None
            }
        }
    }

    fn wrong_type(&mut self, item: &Item<'_>, what: &str, expected: &str) {
        let found = item.get_ref().type_str();
        let finding =
            Diagnostic::error(codes::TYPE, self.place(item.span()), format!("{what} has a value of the wrong type"))
                .with_label(format!("this is of type {found}"))
                .with_hint(format!("write {expected}"));
        self.findings.push(finding);
    }

    fn demand_that(&mut self, item: &Item<'_>, holds: bool, what: &str, rule: &str) -> bool {
        if !holds {
            let finding = Diagnostic::error(codes::VALUE, self.place(item.span()), format!("{what} is out of range"))
                .with_note(rule.to_owned());
            self.findings.push(finding);
        }
        holds
    }
}

/// Names in one sentence.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) => {
            // Whole numbers of any size; what is too large for 64 bits is rounded.
            i128::from_str_radix(integer.as_str(), integer.radix()).ok().map(|value| value as f64)
        }
        DeValue::Float(float) => float.as_str().parse().ok(),
        _ => None,
    }
}
