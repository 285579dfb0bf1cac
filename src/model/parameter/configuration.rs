//! Settings of a configuration by their paths. What a path may lead to, and what a value may be, is left to the reader of
//! configurations: a setting is replaced in the file's table, which is then read again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::lqn::{Multiplicity, TaskId};
use crate::model::config::{Dimension, Setting, units};
use crate::model::parameter::form::{DEFAULTS, PROCESSOR, SCENARIO, TASK};
use crate::model::parameter::{Kind, Path, Value};
use crate::model::{Configuration, Load, LoadReason, Origins, ScenarioOrigin, codes};

/// A configuration as the table that its file holds.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    file: Arc<str>,
    table: toml::Table,
}

impl Settings {
    /// Reads a file.
    pub fn parse(file: &Arc<str>, text: &str) -> Result<Self, Diagnostics> {
        let table = text.parse::<toml::Table>().map_err(|error| {
            let place = Place::File { file: Arc::clone(file) };
            Diagnostic::error(codes::SYNTAX, place, format!("this is not TOML: {}", error.message()))
        })?;
        Ok(Self { file: Arc::clone(file), table })
    }

    /// The configuration.
    pub fn configuration(&self) -> Result<Configuration, Diagnostics> {
        let file: Arc<str> = format!("{} as changed", self.file).into();
        Configuration::parse(&file, &self.table.to_string()).map(|(configuration, _)| configuration).map_err(|found| {
            // The table was written anew: its places are nowhere that anybody could look.
            Diagnostics(found.0.into_iter().map(|finding| Diagnostic { place: Place::Nowhere, ..finding }).collect())
        })
    }

    /// The setting at a path.
    fn get(&self, path: &Path) -> Option<&toml::Value> {
        let (last, tables) = path.0.split_last()?;
        let table = tables.iter().try_fold(&self.table, |table, name| table.get(name)?.as_table())?;
        table.get(last)
    }

    /// The setting at a path as a number; of arithmetic, what it comes to now.
    pub fn number(&self, path: &Path, kind: Kind) -> Option<f64> {
        match self.get(path)? {
            toml::Value::Integer(number) => Some(*number as f64),
            toml::Value::Float(number) => Some(*number),
            toml::Value::String(text) => match kind {
                Kind::Time => units::seconds(text).ok(),
                Kind::Rate => units::rate(text).ok(),
                _ => None,
            }
            .or_else(|| self.worked_out(path)),
            _ => None,
        }
    }

    /// What the arithmetic of a parameter or a demand comes to.
    fn worked_out(&self, path: &Path) -> Option<f64> {
        let configuration = self.configuration().ok()?;
        let setting = match path.names()[..] {
            ["parameters", name] => return Some(configuration.parameters().ok()?.get(name)?.value),
            ["demand", "default"] => Setting::Default,
            ["demand", "activity", activity] => Setting::Activity(activity.to_owned()),
            ["demand", "task", task, "default"] => Setting::TaskDefault(task.to_owned()),
            ["demand", "task", task, "activity", activity] => {
                Setting::TaskActivity(task.to_owned(), activity.to_owned())
            }
            _ => return None,
        };
        configuration.demands().ok()?.at(&setting)
    }

    /// Replaces the setting at a path. A rate takes the place of customers, and customers that of a rate.
    pub fn set(&mut self, path: &Path, kind: Kind, value: &Value) {
        let Some((last, tables)) = path.0.split_last() else { return };
        let time = path.0[0] == "parameters" && self.kind_of(last) == Kind::Time;
        let mut table = &mut self.table;
        for name in tables {
            let inner = table.entry(name.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if !inner.is_table() {
                *inner = toml::Value::Table(toml::Table::new());
            }
            let toml::Value::Table(inner) = inner else { return };
            table = inner;
        }
        if matches!(path.names()[..], ["scenario" | "profile", _, _]) {
            let others: &[&str] = match last.as_str() {
                "rate" => &["population", "think_time"],
                "population" | "think_time" => &["rate"],
                _ => &[],
            };
            for other in others {
                table.remove(*other);
            }
        }
        let value = match value {
            // Arithmetic tells times from numbers.
            Value::Number(number) if time => toml::Value::String(format!("{number} s")),
            Value::Number(number) if matches!(kind, Kind::Count | Kind::Servers | Kind::Whole) => {
                toml::Value::Integer(*number as i64)
            }
            Value::Number(number) | Value::Times(number) => toml::Value::Float(*number),
            Value::Infinite => toml::Value::String("infinite".to_owned()),
            Value::Word(word) => toml::Value::String(word.clone()),
        };
        table.insert(last.clone(), value);
    }

    /// Makes settings of the loads that were chosen, so that a question about something else does not choose others.
    pub fn keep_loads(&mut self, origins: &Origins) {
        for scenario in origins.scenarios.iter().filter(|scenario| scenario.reason != LoadReason::Configured) {
            let path = |key| Path::of(&[scenario.table(), &scenario.name, key]);
            match scenario.load {
                Load::Open { rate } => self.set(&path("rate"), Kind::Rate, &Value::Number(rate)),
                Load::Closed { population, think_time } => {
                    self.set(&path("population"), Kind::Count, &Value::Number(f64::from(population)));
                    self.set(&path("think_time"), Kind::Time, &Value::Number(think_time));
                }
            }
        }
    }

    /// Names of the keys of a table at the top.
    fn keys(&self, table: &str) -> Vec<&str> {
        let inner = self.table.get(table).and_then(toml::Value::as_table);
        inner.map(|table| table.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// What a parameter of resource functions takes: times where it is one now.
    fn kind_of(&self, parameter: &str) -> Kind {
        let value = self.get(&Path::of(&["parameters", parameter]));
        let Some(text) = value.and_then(toml::Value::as_str) else { return Kind::Number };
        let worked_out = || self.configuration().ok()?.parameters().ok()?.get(parameter).map(|value| value.dimension);
        let time =
            text.parse::<f64>().is_err() && (units::seconds(text).is_ok() || worked_out() == Some(Dimension::Time));
        if time { Kind::Time } else { Kind::Number }
    }

    /// All settings that there can be, given what the traces show and the model that they make.
    pub fn known(&self, sub: &SubModel, model: &crate::lqn::Model, origins: &Origins) -> Vec<(Path, Kind)> {
        let mut known = Vec::new();
        let mut add = |names: &[&str], kind: Kind| known.push((Path::of(names), kind));
        for scenario in &origins.scenarios {
            for &(key, kind) in SCENARIO {
                add(&[scenario.table(), &scenario.name, key], kind);
            }
            for (member, _) in &scenario.members {
                add(&["profile", &scenario.name, "scenario", member], Kind::Number);
            }
        }
        let services = || origins.tasks.iter().enumerate().filter(|(_, task)| !task.customer);
        let hosts = services().map(|(number, _)| &*model.processors[model.tasks[number].processor.index()].name);
        let processors: BTreeSet<&str> = hosts.chain(self.keys("processor")).collect();
        for processor in processors {
            for &(key, kind) in PROCESSOR {
                add(&["processor", processor, key], kind);
            }
        }
        let tasks: BTreeSet<&str> = services().map(|(_, task)| &*task.identifier).collect();
        for task in &tasks {
            for &(key, kind) in TASK {
                add(&["task", task, key], kind);
            }
        }
        for &(key, kind) in DEFAULTS {
            add(&["defaults", key], kind);
        }
        add(&["demand", "default"], Kind::Time);
        let services = || sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
        let works = services().flat_map(|entry| entry.work.values().map(move |work| (entry.task, work)));
        let shown: BTreeSet<(&str, &str)> = works
            .flat_map(|(task, work)| work.activities.keys().map(move |activity| (task, *activity)))
            .map(|(task, activity)| (sub.names.text(task), sub.names.text(activity)))
            .filter(|(_, activity)| !activity.is_empty())
            .collect();
        let activities: BTreeSet<&str> = shown.iter().map(|(_, activity)| *activity).collect();
        for activity in activities {
            add(&["demand", "activity", activity], Kind::Time);
        }
        for task in &tasks {
            add(&["demand", "task", task, "default"], Kind::Time);
        }
        for (task, activity) in shown {
            add(&["demand", "task", task, "activity", activity], Kind::Time);
        }
        for parameter in self.keys("parameters") {
            add(&["parameters", parameter], self.kind_of(parameter));
        }
        known
    }
}

/// The path with what may be left out: `demand.lookup` stands for `demand.activity.lookup`.
pub(super) fn in_full(path: &Path) -> Path {
    match path.names()[..] {
        ["parameter", name] => Path::of(&["parameters", name]),
        ["demand", activity] if activity != "default" => Path::of(&["demand", "activity", activity]),
        ["demand", "task", task, activity] if activity != "default" => {
            Path::of(&["demand", "task", task, "activity", activity])
        }
        _ => path.clone(),
    }
}

/// The number that holds where the configuration does not set it.
pub(super) fn unset(path: &Path, model: &crate::lqn::Model, origins: &Origins) -> Option<f64> {
    let count = |multiplicity: Multiplicity| match multiplicity {
        Multiplicity::Finite(count) => Some(f64::from(count)),
        Multiplicity::Infinite => None,
    };
    let task = |name: &str| -> Option<TaskId> {
        let position = origins.tasks.iter().position(|task| !task.customer && &*task.identifier == name)?;
        Some(TaskId::from(position))
    };
    match path.names()[..] {
        [table @ ("scenario" | "profile"), name, key] => {
            let own = |scenario: &&ScenarioOrigin| scenario.table() == table && &*scenario.name == name;
            let scenario = origins.scenarios.iter().find(own)?;
            match (key, scenario.load) {
                ("population", Load::Closed { population, .. }) => Some(f64::from(population)),
                ("think_time", Load::Closed { think_time, .. }) => Some(think_time),
                ("rate", Load::Open { rate }) => Some(rate),
                _ => None,
            }
        }
        ["processor", name, key] => {
            let id = model.processor_named(name)?;
            let processor = &model.processors[id.index()];
            match key {
                "quota" => model.cap(id),
                "multiplicity" => count(processor.multiplicity),
                "speed" => Some(processor.speed),
                "replicas" => Some(f64::from(processor.replicas)),
                _ => None,
            }
        }
        ["task", name, key] => {
            let task = &model.tasks[task(name)?.index()];
            match key {
                "threads" => count(task.multiplicity),
                "replicas" => Some(f64::from(task.replicas)),
                "priority" => Some(f64::from(task.priority)),
                _ => None,
            }
        }
        _ => None,
    }
}
