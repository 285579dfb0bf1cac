//! Parameters and resource functions worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::codes;
use crate::model::config::quantity::{Dimension, Quantity};
use crate::model::config::{Configuration, PlacedDemand};

/// Demands of resource functions in seconds per execution, as [`DemandSettings`](super::DemandSettings) has them as
/// expressions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandValues {
    default: Option<f64>,
    activities: BTreeMap<String, f64>,
    tasks: BTreeMap<String, TaskValues>,
    entries: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct TaskValues {
    default: Option<f64>,
    activities: BTreeMap<String, f64>,
}

/// Which setting decides on a demand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `[demand.task.NAME.activity]`
    TaskActivity(String, String),
    /// `[demand.activity]`
    Activity(String),
    /// `default` of `[demand.task.NAME]`
    TaskDefault(String),
    /// `default` of `[demand]`
    Default,
}

impl DemandValues {
    /// The demand of an execution of an activity, seconds; `activity` is empty for one without a name.
    pub fn of(&self, task: &str, activity: &str) -> Option<f64> {
        let own = self.tasks.get(task);
        own.and_then(|own| own.activities.get(activity).copied())
            .or_else(|| self.activities.get(activity).copied())
            .or_else(|| own.and_then(|own| own.default))
            .or(self.default)
    }

    /// Which setting decides on the demand of an activity of a task.
    pub fn setting(&self, task: &str, activity: &str) -> Option<Setting> {
        let own = self.tasks.get(task);
        if own.is_some_and(|own| own.activities.contains_key(activity)) {
            return Some(Setting::TaskActivity(task.to_owned(), activity.to_owned()));
        }
        if self.activities.contains_key(activity) {
            return Some(Setting::Activity(activity.to_owned()));
        }
        if own.is_some_and(|own| own.default.is_some()) {
            return Some(Setting::TaskDefault(task.to_owned()));
        }
        self.default.map(|_| Setting::Default)
    }

    /// The demand that a setting gives, whether or not it decides on any, seconds.
    pub fn at(&self, setting: &Setting) -> Option<f64> {
        match setting {
            Setting::TaskActivity(task, activity) => self.tasks.get(task)?.activities.get(activity).copied(),
            Setting::Activity(activity) => self.activities.get(activity).copied(),
            Setting::TaskDefault(task) => self.tasks.get(task)?.default,
            Setting::Default => self.default,
        }
    }

    /// The demand of an invocation of an entry, seconds.
    pub fn of_entry(&self, entry: &str) -> Option<f64> {
        self.entries.get(entry).copied()
    }
}

impl Configuration {
    /// Gives a parameter another value, such as one of a sweep.
    ///
    /// # Errors
    /// When the configuration has no such parameter, or one that measures something else.
    pub fn set_parameter(&mut self, name: &str, value: Quantity) -> Result<(), Diagnostic> {
        let before = self.parameters().ok().and_then(|values| values.get(name).copied());
        let Some(parameter) = self.parameters.get_mut(name) else {
            let message = format!("there is no parameter `{name}`");
            let finding = Diagnostic::error(codes::UNKNOWN_PARAMETER, crate::diagnostic::Place::Nowhere, message);
            return Err(finding.with_similar(name, self.parameters.keys().map(String::as_str)));
        };
        if let Some(before) = before
            && before.dimension != value.dimension
        {
            let message = format!("parameter `{name}` is {}, not {}", before.dimension, value.dimension);
            return Err(Diagnostic::error(codes::UNITS, parameter.place().clone(), message));
        }
        *parameter = crate::model::config::Expression::constant(value);
        Ok(())
    }

    /// The values of all parameters.
    ///
    /// # Errors
    /// All that is wrong with them: parameters that are not there or lead back to themselves, units, divisions by zero.
    pub fn parameters(&self) -> Result<BTreeMap<String, Quantity>, Diagnostics> {
        let mut findings = Vec::new();
        let values = self.parameter_values(&mut findings);
        if findings.is_empty() { Ok(values) } else { Err(Diagnostics(findings)) }
    }

    /// The demands of all resource functions, as the parameters are now.
    ///
    /// # Errors
    /// All that is wrong with parameters and demands.
    pub fn demands(&self) -> Result<DemandValues, Diagnostics> {
        let mut findings = Vec::new();
        let parameters = self.parameter_values(&mut findings);
        let mut seconds = |demand: &PlacedDemand| demand_of(demand, &parameters, self, &mut findings);
        let mut all = |demands: &BTreeMap<String, PlacedDemand>| -> BTreeMap<String, f64> {
            demands.iter().filter_map(|(name, demand)| Some((name.clone(), seconds(demand)?))).collect()
        };
        let settings = &self.demand;
        let values = DemandValues {
            activities: all(&settings.activities),
            entries: all(&settings.entries),
            tasks: settings
                .tasks
                .iter()
                .map(|(name, task)| {
                    let default = task.default.as_ref().map(|demand| BTreeMap::from([(String::new(), demand.clone())]));
                    let default = default.and_then(|default| all(&default).pop_first()).map(|(_, value)| value);
                    (name.clone(), TaskValues { default, activities: all(&task.activities) })
                })
                .collect(),
            default: settings.default.as_ref().and_then(&mut seconds),
        };
        if findings.is_empty() { Ok(values) } else { Err(Diagnostics(findings)) }
    }

    /// Values in the order in which parameters need each other, without recursion.
    fn parameter_values(&self, findings: &mut Vec<Diagnostic>) -> BTreeMap<String, Quantity> {
        let mut values: BTreeMap<String, Quantity> = BTreeMap::new();
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for root in self.parameters.keys() {
            let mut open: Vec<&str> = vec![root];
            while let Some(&name) = open.last() {
                if done.contains(name) {
                    open.pop();
                    continue;
                }
                let expression = &self.parameters[name];
                let needed = expression
                    .parameters()
                    .find(|(needed, _)| self.parameters.contains_key(&***needed) && !done.contains(&***needed));
                if let Some((needed, place)) = needed {
                    let needed = self.parameters.get_key_value(&**needed).map_or("", |(key, _)| key.as_str());
                    if let Some(start) = open.iter().position(|other| *other == needed) {
                        findings.push(circle(&open[start..], needed, place));
                        done.extend(open.drain(start..));
                    } else {
                        open.push(needed);
                    }
                    continue;
                }
                self.unknown_parameters(expression, findings);
                match expression.value(&|name| values.get(name).copied()) {
                    Ok(Some(value)) => {
                        values.insert(name.to_owned(), value);
                    }
                    Ok(None) => {}
                    Err(finding) => findings.push(finding),
                }
                done.insert(name);
                open.pop();
            }
        }
        values
    }

    fn unknown_parameters(&self, expression: &crate::model::config::Expression, findings: &mut Vec<Diagnostic>) {
        for (name, place) in expression.parameters() {
            if !self.parameters.contains_key(&**name) {
                let finding =
                    Diagnostic::error(codes::UNKNOWN_PARAMETER, place, format!("there is no parameter `{name}`"));
                let known: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
                let finding = finding.with_similar(name, known.iter().copied());
                findings.push(finding.with_hint("give it a value under `[parameters]`"));
            }
        }
    }

    /// Warnings of parameters that nothing uses.
    pub(super) fn unused_parameters(&self) -> Vec<Diagnostic> {
        let demands = &self.demand;
        let tasks = demands.tasks.values().flat_map(|task| task.default.iter().chain(task.activities.values()));
        let demands = demands.default.iter().chain(demands.activities.values()).chain(demands.entries.values());
        let expressions = demands.chain(tasks).map(|demand| &demand.expression).chain(self.parameters.values());
        let used: BTreeSet<&Arc<str>> =
            expressions.flat_map(|expression| expression.parameters().map(|(name, _)| name)).collect();
        let used: BTreeSet<&str> = used.into_iter().map(|name| &**name).collect();
        self.parameters
            .iter()
            .filter(|(name, _)| !used.contains(name.as_str()))
            .map(|(name, expression)| {
                let message = format!("nothing uses parameter `{name}`");
                Diagnostic::warning(codes::UNUSED_PARAMETER, expression.place().clone(), message)
                    .with_hint("use it in a demand or in another parameter, or take it out")
            })
            .collect()
    }
}

fn demand_of(
    demand: &PlacedDemand,
    parameters: &BTreeMap<String, Quantity>,
    configuration: &Configuration,
    findings: &mut Vec<Diagnostic>,
) -> Option<f64> {
    configuration.unknown_parameters(&demand.expression, findings);
    let place = || demand.expression.place().clone();
    match demand.expression.value(&|name| parameters.get(name).copied()) {
        Ok(None) => None,
        Err(finding) => {
            findings.push(finding);
            None
        }
        // A number that stands alone is one of seconds, as everywhere in the file.
        Ok(Some(value)) if value.dimension == Dimension::Number && demand.expression.as_constant().is_none() => {
            findings.push(
                Diagnostic::error(codes::UNITS, place(), "a demand is a time, and this is a number")
                    .with_hint("give one of its parts a unit, such as `0.1 ms * rows`"),
            );
            None
        }
        Ok(Some(value)) if value.value < 0.0 => {
            let message = format!("this demand is negative: {} s", value.value);
            findings
                .push(Diagnostic::error(codes::VALUE, place(), message).with_hint("`max(0 ms, …)` keeps it from that"));
            None
        }
        Ok(Some(value)) => Some(value.value),
    }
}

fn circle(names: &[&str], again: &str, place: crate::diagnostic::Place) -> Diagnostic {
    let way: Vec<String> = names.iter().chain([&again]).map(|name| format!("`{name}`")).collect();
    Diagnostic::error(codes::PARAMETER_CIRCLE, place, "parameters that need each other have no value")
        .with_note(way.join(" needs "))
}
