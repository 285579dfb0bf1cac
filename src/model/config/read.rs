//! Reading of configuration files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toml::de::DeTable;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::Scheduling;
use crate::model::codes;
use crate::model::config::expression::{Expression, is_name};
use crate::model::config::load::{self, LoadKeys};
use crate::model::config::profiles;
use crate::model::config::reader::{Item, Key, Reader};
use crate::model::config::{
    Configuration, Defaults, DemandSettings, PlacedDemand, PlacedName, ProcessorSettings, ScenarioSettings,
    TaskDemands, TaskSettings,
};

/// Orders of service that a processor can have here.
const PROCESSOR_SCHEDULINGS: [Scheduling; 6] = [
    Scheduling::ProcessorSharing,
    Scheduling::Fcfs,
    Scheduling::HeadOfLine,
    Scheduling::PreemptivePriority,
    Scheduling::Random,
    Scheduling::Delay,
];

/// Orders of service that a task can have here.
const TASK_SCHEDULINGS: [Scheduling; 3] = [Scheduling::Fcfs, Scheduling::HeadOfLine, Scheduling::Delay];

impl Configuration {
    /// Reads a configuration. Gives warnings beside it, such as unknown keys; all errors at once where it cannot be used.
    pub fn parse(file: &Arc<str>, text: &str) -> Result<(Self, Vec<Diagnostic>), Diagnostics> {
        let (configuration, findings) = Self::read(file, text);
        if findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(findings));
        }
        Ok((configuration, findings))
    }

    /// What of a configuration can be read, and all that there is to say about it: usable only where no finding is an error.
    pub fn read(file: &Arc<str>, text: &str) -> (Self, Vec<Diagnostic>) {
        let mut reader = Reader::new(file, text);
        let (document, slips) = DeTable::parse_recoverable(text);
        for slip in &slips {
            let place = slip.span().map_or_else(|| Place::File { file: Arc::clone(file) }, |span| reader.place(span));
            let message = format!("this is not TOML: {}", slip.message().lines().next().unwrap_or_default());
            reader.findings.push(Diagnostic::error(codes::SYNTAX, place, message));
        }
        let configuration = read(&mut reader, document.get_ref());
        let mut findings = reader.findings;
        // What was misread has one finding; only sound expressions are worked out.
        if let Err(Diagnostics(found)) = configuration.demands() {
            let misread = findings.iter().any(|finding| finding.code == codes::EXPRESSION);
            findings.extend(found.into_iter().filter(|finding| !(misread && finding.code == codes::UNKNOWN_PARAMETER)));
        }
        findings.extend(configuration.unused_parameters());
        findings.extend(profiles::check(&configuration));
        findings.sort_by(|left, right| left.place.cmp(&right.place));
        (configuration, findings)
    }
}

fn read(reader: &mut Reader<'_>, document: &DeTable<'_>) -> Configuration {
    let mut configuration = Configuration::default();
    for (key, item) in document {
        match key.get_ref().as_ref() {
            "group" => configuration.group = reader.texts(item, "`group`"),
            "recording" => configuration.all_of_recording = recording(reader, item),
            "accept" => configuration.accept = accepted(reader, item),
            "defaults" => configuration.defaults = defaults(reader, item),
            "scenario" => configuration.scenarios = named(reader, item, "`scenario`", scenario),
            "processor" => configuration.processors = named(reader, item, "`processor`", processor),
            "task" => configuration.tasks = named(reader, item, "`task`", task),
            "demand" => configuration.demand = demand(reader, item),
            "parameters" => configuration.parameters = parameters(reader, item),
            "profile" => configuration.profiles = named(reader, item, "`profile`", profiles::profile),
            "processor_groups" => configuration.processor_groups = processor_groups(reader, item),
            "cpu_attributes" => configuration.cpu_attributes = cpu_attributes(reader, item),
            _ => {
                let known = [
                    "accept",
                    "group",
                    "recording",
                    "defaults",
                    "scenario",
                    "profile",
                    "processor",
                    "task",
                    "demand",
                    "parameters",
                    "processor_groups",
                    "cpu_attributes",
                ];
                reader.unknown(key, "the configuration", &known);
            }
        }
    }
    configuration
}

/// Whether all of a recording is meant, or its steady part.
fn recording(reader: &mut Reader<'_>, item: &Item<'_>) -> bool {
    let text = reader.text(item, "`recording`").unwrap_or_else(|| "steady".to_owned());
    if !["all", "steady"].contains(&text.as_str()) {
        let place = reader.place(item.span());
        let message = format!("`recording` is `\"steady\"` or `\"all\"`, and not `{}`", clipped(&text));
        reader.findings.push(Diagnostic::error(codes::VALUE, place, message));
    }
    text == "all"
}

/// Codes of notes and warnings, such as `M030`.
fn accepted(reader: &mut Reader<'_>, item: &Item<'_>) -> BTreeSet<String> {
    let codes = reader.texts(item, "`accept`");
    let is_code = |code: &str| {
        let (letter, digits) = code.split_at_checked(1).unwrap_or_default();
        letter.chars().all(|letter| letter.is_ascii_uppercase())
            && digits.len() == 3
            && digits.chars().all(|digit| digit.is_ascii_digit())
    };
    for code in codes.iter().filter(|code| !is_code(code)) {
        let message = format!("`{}` is no code of a finding", clipped(code));
        let place = reader.place(item.span());
        let finding = Diagnostic::error(codes::VALUE, place, message);
        reader
            .findings
            .push(finding.with_hint("codes look like `M030`; they stand in the brackets behind `note` or `warning`"));
    }
    codes.into_iter().collect()
}

/// As much of a text as is worth showing.
fn clipped(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A table of named things.
fn named<T>(
    reader: &mut Reader<'_>,
    item: &Item<'_>,
    what: &str,
    read: fn(&mut Reader<'_>, &Key<'_>, &DeTable<'_>) -> T,
) -> BTreeMap<String, T> {
    let mut things = BTreeMap::new();
    if let Some(table) = reader.table(item, what) {
        for (key, item) in table {
            if let Some(table) = reader.table(item, &format!("`{}`", key.get_ref())) {
                things.insert(key.get_ref().to_string(), read(reader, key, table));
            }
        }
    }
    things
}

fn processor_groups(reader: &mut Reader<'_>, item: &Item<'_>) -> Vec<(String, Vec<String>)> {
    let Some(table) = reader.table(item, "`processor_groups`") else { return Vec::new() };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
        .into_iter()
        .map(|(key, item)| (key.get_ref().to_string(), reader.texts(item, &format!("`{}`", key.get_ref()))))
        .collect()
}

fn cpu_attributes(reader: &mut Reader<'_>, item: &Item<'_>) -> Vec<(String, f64)> {
    let Some(table) = reader.table(item, "`cpu_attributes`") else { return Vec::new() };
    let mut attributes = Vec::new();
    for (key, item) in table {
        let Some(unit) = reader.seconds(item, &format!("`{}`", key.get_ref())) else { continue };
        if unit > 0.0 {
            attributes.push((key.get_ref().to_string(), unit));
        } else {
            let message = format!("1 of `{}` is no time", key.get_ref());
            let finding = Diagnostic::error(codes::VALUE, reader.place(item.span()), message);
            reader.findings.push(finding.with_hint("write how long 1 of it is, such as `\"1 ms\"`"));
        }
    }
    attributes
}

fn defaults(reader: &mut Reader<'_>, item: &Item<'_>) -> Defaults {
    let mut defaults = Defaults::default();
    let Some(table) = reader.table(item, "`defaults`") else { return defaults };
    for (key, item) in table {
        match key.get_ref().as_ref() {
            "threads" => defaults.threads = reader.multiplicity(item, "`threads`"),
            "multiplicity" => defaults.multiplicity = reader.multiplicity(item, "`multiplicity`"),
            "scheduling" => defaults.scheduling = reader.scheduling(item, "processors", &PROCESSOR_SCHEDULINGS),
            "network" => defaults.network = reader.network(item),
            _ => reader.unknown(key, "`defaults`", &["threads", "multiplicity", "scheduling", "network"]),
        }
    }
    defaults
}

fn scenario(reader: &mut Reader<'_>, name: &Key<'_>, table: &DeTable<'_>) -> ScenarioSettings {
    let whose = format!("scenario `{}`", name.get_ref());
    let (mut load, mut customer) = (LoadKeys::default(), None);
    for (key, item) in table {
        match key.get_ref().as_ref() {
            _ if load.take(reader, key, item) => {}
            "customer" => {
                let place = reader.place(item.span());
                customer = reader.text(item, "`customer`").map(|name| PlacedName { place, name });
            }
            _ => reader.unknown(key, &whose, &[&load::KEYS[..], &["customer"]].concat()),
        }
    }
    load.check(reader, &whose);
    let LoadKeys { population, think_time, rate, .. } = load;
    ScenarioSettings { place: reader.place(name.span()), population, think_time, rate, customer }
}

fn parameters(reader: &mut Reader<'_>, item: &Item<'_>) -> BTreeMap<String, Expression> {
    let mut parameters = BTreeMap::new();
    let Some(table) = reader.table(item, "`parameters`") else { return parameters };
    for (key, item) in table {
        let name = key.get_ref();
        if !is_name(name) {
            let message = format!("no expression can use a parameter named `{name}`");
            reader.findings.push(
                Diagnostic::error(codes::VALUE, reader.place(key.span()), message)
                    .with_note("names of parameters are letters, digits and `_`, and begin with no digit"),
            );
        }
        if let Some(expression) = reader.expression(item, &format!("`{name}`")) {
            parameters.insert(name.to_string(), expression);
        }
    }
    parameters
}

fn processor(reader: &mut Reader<'_>, name: &Key<'_>, table: &DeTable<'_>) -> ProcessorSettings {
    let mut settings = ProcessorSettings::at(reader.place(name.span()));
    for (key, item) in table {
        match key.get_ref().as_ref() {
            "multiplicity" => settings.multiplicity = reader.multiplicity(item, "`multiplicity`"),
            "speed" => settings.speed = reader.factor(item, "`speed`"),
            "scheduling" => settings.scheduling = reader.scheduling(item, "processors", &PROCESSOR_SCHEDULINGS),
            "quantum" => settings.quantum = reader.seconds(item, "`quantum`"),
            "replicas" => settings.replicas = reader.count(item, "`replicas`"),
            "quota" => settings.quota = reader.factor(item, "`quota`"),
            _ => {
                let known = ["multiplicity", "speed", "scheduling", "quantum", "replicas", "quota"];
                reader.unknown(key, &format!("processor `{}`", name.get_ref()), &known);
            }
        }
    }
    settings
}

fn task(reader: &mut Reader<'_>, name: &Key<'_>, table: &DeTable<'_>) -> TaskSettings {
    let mut settings = TaskSettings::at(reader.place(name.span()));
    for (key, item) in table {
        match key.get_ref().as_ref() {
            "processor" => settings.processor = reader.text(item, "`processor`"),
            "threads" => settings.threads = reader.multiplicity(item, "`threads`"),
            "priority" => settings.priority = reader.whole(item, "`priority`"),
            "replicas" => settings.replicas = reader.count(item, "`replicas`"),
            "dispatching" => settings.dispatching = reader.dispatching(item),
            "scheduling" => settings.scheduling = reader.scheduling(item, "tasks", &TASK_SCHEDULINGS),
            "network" => settings.network = reader.network(item),
            _ => {
                let known = ["processor", "threads", "priority", "replicas", "dispatching", "scheduling", "network"];
                reader.unknown(key, &format!("task `{}`", name.get_ref()), &known);
            }
        }
    }
    settings
}

fn demand(reader: &mut Reader<'_>, item: &Item<'_>) -> DemandSettings {
    let mut settings = DemandSettings::default();
    let Some(table) = reader.table(item, "`demand`") else { return settings };
    for (key, item) in table {
        match key.get_ref().as_ref() {
            "default" => settings.default = placed(reader, item, "`default`"),
            "activity" => settings.activities = activities(reader, item, "`activity`"),
            "task" => settings.tasks = named(reader, item, "`demand.task`", task_demands),
            "entry" => settings.entries = activities(reader, item, "`entry`"),
            _ => reader.unknown(key, "`demand`", &["default", "activity", "task", "entry"]),
        }
    }
    settings
}

fn task_demands(reader: &mut Reader<'_>, name: &Key<'_>, table: &DeTable<'_>) -> TaskDemands {
    let mut demands = TaskDemands { place: reader.place(name.span()), default: None, activities: BTreeMap::new() };
    for (key, item) in table {
        match key.get_ref().as_ref() {
            "default" => demands.default = placed(reader, item, "`default`"),
            "activity" => demands.activities = activities(reader, item, "`activity`"),
            _ => reader.unknown(key, &format!("the demands of task `{}`", name.get_ref()), &["default", "activity"]),
        }
    }
    demands
}

fn activities(reader: &mut Reader<'_>, item: &Item<'_>, what: &str) -> BTreeMap<String, PlacedDemand> {
    let mut demands = BTreeMap::new();
    if let Some(table) = reader.table(item, what) {
        for (key, item) in table {
            if let Some(expression) = reader.expression(item, &format!("`{}`", key.get_ref())) {
                let place = reader.place(key.span());
                demands.insert(key.get_ref().to_string(), PlacedDemand { place, expression });
            }
        }
    }
    demands
}

fn placed(reader: &mut Reader<'_>, item: &Item<'_>, what: &str) -> Option<PlacedDemand> {
    let place = reader.place(item.span());
    reader.expression(item, what).map(|expression| PlacedDemand { place, expression })
}
