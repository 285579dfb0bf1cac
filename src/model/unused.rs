//! Settings for what the traces do not show.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use crate::diagnostic::{Diagnostic, Place, Severity, similar};
use crate::lqn::Model;
use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::config::{Configuration, PlacedDemand, TaskSettings};
use crate::model::load::toml_key;
use crate::model::{codes, deployment};
use crate::names::Name;

/// Warns of settings that have no effect, each with the name that may have been meant.
pub fn check(sub: &SubModel, configuration: &Configuration) -> Vec<Diagnostic> {
    check_placed(sub, configuration, &deployment::placed(sub, configuration).configuration)
}

/// The same where it is known where tasks run.
pub fn check_placed(sub: &SubModel, configuration: &Configuration, placed: &Configuration) -> Vec<Diagnostic> {
    let texts =
        |names: FxHashSet<Name>| -> BTreeSet<&str> { names.into_iter().map(|name| sub.names.text(name)).collect() };
    let services = || sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    let tasks = texts(services().map(|entry| entry.task).collect());
    let scenarios = texts(sub.scenarios.keys().copied().collect());
    let works = || sub.entries().iter().flat_map(|entry| entry.work.values());
    let activities = texts(works().flat_map(|work| work.activities.keys().copied()).collect());
    let mut processors: BTreeSet<&str> = BTreeSet::new();
    for task in &tasks {
        let settings = placed.tasks.get(*task).and_then(|settings| settings.processor.as_deref());
        processors.insert(settings.unwrap_or(task));
    }
    let (mut findings, mut clashes) = (Vec::new(), Vec::new());
    let mut missing = |what: &str, name: &str, place: &Place, known: &BTreeSet<&str>| {
        if !known.contains(name) {
            findings.push(
                Diagnostic::warning(codes::NOT_IN_TRACES, place.clone(), format!("no {what} is named `{name}`"))
                    .with_note(format!("the setting has no effect; there are {}", some_of(known)))
                    .with_similar(name, known.iter().copied()),
            );
        }
    };
    for (name, settings) in &configuration.scenarios {
        missing("scenario of the traces", name, &settings.place, &scenarios);
        if let Some(customer) = &settings.customer {
            missing("task of the traces", &customer.name, &customer.place, &tasks);
        }
    }
    for (name, profile) in &configuration.profiles {
        if scenarios.contains(name.as_str()) && !profile.proportions.contains_key(name) {
            let message = format!("profile `{name}` has the name of a scenario that is not part of it");
            let finding = Diagnostic::warning(codes::CONTRADICTION, profile.place.clone(), message);
            clashes.push(finding.with_hint("give it another name, so that results can be told apart"));
        }
        for (scenario, part) in &profile.proportions {
            missing("scenario of the traces", scenario, &part.place, &scenarios);
        }
    }
    for (name, settings) in &configuration.tasks {
        missing("task of the traces", name, &settings.place, &tasks);
    }
    for (name, settings) in &configuration.processors {
        missing("processor that a task runs on", name, &settings.place, &processors);
    }
    for (name, demand) in &configuration.demand.activities {
        missing("activity of the traces", name, &demand.place, &activities);
    }
    for (name, demands) in &configuration.demand.tasks {
        missing("task of the traces", name, &demands.place, &tasks);
        for (name, demand) in &demands.activities {
            missing("activity of the traces", name, &demand.place, &activities);
        }
    }
    let customers = configuration.scenarios.values().filter_map(|settings| settings.customer.as_ref());
    let customers: BTreeSet<&str> = customers.map(|customer| customer.name.as_str()).collect();
    for (name, settings) in configuration.tasks.iter().filter(|(name, _)| customers.contains(name.as_str())) {
        let message = format!("task `{name}` is a customer: it has no threads and needs no processor");
        clashes.push(
            Diagnostic::warning(codes::CUSTOMER_SETTING, settings.place.clone(), message)
                .with_note("the setting has no effect"),
        );
    }
    findings.extend(clashes);
    findings.extend(unallocated(&tasks, &customers, configuration, placed));
    findings.extend(near_processors(&tasks, configuration));
    findings.sort_by(|left, right| left.place.cmp(&right.place));
    findings
}

/// Tasks on no processor, where the configuration has a place for others.
fn unallocated(
    tasks: &BTreeSet<&str>,
    customers: &BTreeSet<&str>,
    configuration: &Configuration,
    placed: &Configuration,
) -> Option<Diagnostic> {
    let allocated = |by: &Configuration, task: &str| by.tasks.get(task).is_some_and(|own| own.processor.is_some());
    let tasks = tasks.iter().copied().filter(|task| !customers.contains(task));
    let (with, mut without): (BTreeSet<&str>, BTreeSet<&str>) = tasks.partition(|task| allocated(configuration, task));
    // Traces tell where some run.
    without.retain(|task| !allocated(placed, task));
    if with.is_empty() || without.is_empty() {
        return None;
    }
    let (verb, each) = if without.len() == 1 { ("has", "it gets") } else { ("have", "each gets") };
    let message = format!("{} {verb} no processor, beside tasks that do", some_of(&without));
    Some(
        Diagnostic::warning(codes::UNALLOCATED, Place::Nowhere, message)
            .with_note(format!("{each} one of its own name"))
            .with_hint("set `processor` under `[task.NAME]`"),
    )
}

/// Processors that nothing but a task's setting knows, and whose names are close to those of others: a slip of the pen would make a
/// machine of its own.
fn near_processors(tasks: &BTreeSet<&str>, configuration: &Configuration) -> Vec<Diagnostic> {
    let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
    let settings = || configuration.tasks.iter().filter(|(name, _)| tasks.contains(name.as_str()));
    for processor in settings().filter_map(|(_, settings)| settings.processor.as_deref()) {
        *uses.entry(processor).or_default() += 1;
    }
    // What has a table was meant; of two without one, that which more tasks name.
    let weight = |name: &str| {
        let used = uses.get(name).copied().unwrap_or(0);
        if configuration.processors.contains_key(name) { u32::MAX } else { used }
    };
    let known: BTreeSet<&str> =
        uses.keys().copied().chain(configuration.processors.keys().map(String::as_str)).collect();
    let finding = |(task, settings): (&String, &TaskSettings)| {
        let processor = settings.processor.as_deref().filter(|name| weight(name) != u32::MAX)?;
        // Machines are often numbered.
        let plain = |name: &str| name.replace(|letter: char| letter.is_ascii_digit(), "");
        let others =
            known.iter().copied().filter(|name| weight(name) > weight(processor) && plain(name) != plain(processor));
        let near = similar(processor, others)?;
        let message = format!("task `{task}` runs on processor `{processor}`, which nothing else names");
        Some(
            Diagnostic::new(Severity::Note, codes::NEAR_PROCESSOR, settings.place.clone(), message)
                .with_note("it is a machine of its own, with the settings under `[defaults]`")
                .with_hint(format!(
                    "did you mean `{near}`? Otherwise give it a table `[processor.{}]`",
                    toml_key(processor)
                )),
        )
    };
    settings().filter_map(finding).collect()
}

/// Warns of demands of entries that the model does not have.
pub fn entries(model: &Model, configuration: &Configuration) -> Vec<Diagnostic> {
    let names: BTreeSet<&str> = model.entries.iter().map(|entry| &*entry.name).collect();
    let missing = configuration.demand.entries.iter().filter(|(name, _)| !names.contains(name.as_str()));
    let warning = |(name, demand): (&String, &PlacedDemand)| {
        Diagnostic::warning(
            codes::NOT_IN_TRACES,
            demand.place.clone(),
            format!("no entry of the model is named `{name}`"),
        )
        .with_note(format!("the setting has no effect; there are {}", some_of(&names)))
        .with_similar(name, names.iter().copied())
    };
    missing.map(warning).collect()
}

/// Some names in one sentence.
fn some_of(names: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> =
        names.iter().filter(|name| !name.is_empty()).take(SHOWN).map(|name| format!("`{name}`")).collect();
    match (shown.is_empty(), names.len() > SHOWN) {
        (true, _) => "none".to_owned(),
        (false, true) => format!("{} and others", shown.join(", ")),
        (false, false) => shown.join(", "),
    }
}
