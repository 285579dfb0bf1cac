//! Settings for what the traces do not show.

use std::collections::BTreeSet;

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::codes;
use crate::model::config::Configuration;
use crate::names::Name;

/// Warns of settings that have no effect, each with the name that may have been meant.
pub fn check(sub: &SubModel, configuration: &Configuration) -> Vec<Diagnostic> {
    let texts =
        |names: BTreeSet<Name>| -> BTreeSet<&str> { names.into_iter().map(|name| sub.names.text(name)).collect() };
    let services = || sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    let tasks = texts(services().map(|entry| entry.task).collect());
    let scenarios = texts(sub.scenarios.keys().copied().collect());
    let works = || sub.entries().iter().flat_map(|entry| entry.work.values());
    let activities = texts(works().flat_map(|work| work.activities.keys().copied()).collect());
    let mut processors: BTreeSet<&str> = BTreeSet::new();
    for task in &tasks {
        let settings = configuration.tasks.get(*task).and_then(|settings| settings.processor.as_deref());
        processors.insert(settings.unwrap_or(task));
    }
    let mut findings = Vec::new();
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
    findings.sort_by(|left, right| left.place.cmp(&right.place));
    findings
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
