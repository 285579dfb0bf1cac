//! Usage profiles: reading, and what is wrong with them.

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::diagnostic::{Diagnostic, Severity};
use crate::model::codes;
use crate::model::config::load::{self, LoadKeys};
use crate::model::config::reader::{Key, Reader};
use crate::model::config::{Configuration, ProfileSettings, Proportion};

/// Reads a profile.
pub fn profile(reader: &mut Reader<'_>, name: &Key<'_>, table: &DeTable<'_>) -> ProfileSettings {
    let whose = format!("profile `{}`", name.get_ref());
    let (mut load, mut proportions) = (LoadKeys::default(), BTreeMap::new());
    for (key, item) in table {
        match key.get_ref().as_ref() {
            _ if load.take(reader, key, item) => {}
            "scenario" => {
                let Some(table) = reader.table(item, "`scenario`") else { continue };
                for (key, item) in table {
                    if let Some(weight) = reader.weight(item, &format!("`{}`", key.get_ref())) {
                        let place = reader.place(key.span());
                        proportions.insert(key.get_ref().to_string(), Proportion { place, weight });
                    }
                }
            }
            _ => reader.unknown(key, &whose, &[&load::KEYS[..], &["scenario"]].concat()),
        }
    }
    load.check(reader, &whose);
    let LoadKeys { population, think_time, rate, .. } = load;
    ProfileSettings { place: reader.place(name.span()), population, think_time, rate, proportions }
}

/// What is wrong with profiles, taken together with the rest.
pub fn check(configuration: &Configuration) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for (name, profile) in &configuration.profiles {
        let sum: f64 = profile.proportions.values().map(|part| part.weight).sum();
        if sum <= 0.0 {
            let message = format!("profile `{name}` has no scenario");
            findings.push(
                Diagnostic::error(codes::PROPORTIONS, profile.place.clone(), message)
                    .with_hint(format!("give it some under `[profile.{name}.scenario]`, each with its proportion")),
            );
        } else if (sum - 1.0).abs() > 1e-6 {
            let message = format!("the proportions of profile `{name}` add up to {}", short(sum));
            findings.push(
                Diagnostic::new(Severity::Note, codes::PROPORTIONS, profile.place.clone(), message)
                    .with_note("they are taken relative to their sum"),
            );
        }
        for (scenario, part) in &profile.proportions {
            let Some(own) = configuration.scenarios.get(scenario) else { continue };
            if own.population.is_some() || own.think_time.is_some() || own.rate.is_some() {
                let message = format!("scenario `{scenario}` has a load of its own and is part of profile `{name}`");
                findings.push(
                    Diagnostic::error(codes::CONTRADICTION, part.place.clone(), message)
                        .with_place(own.place.clone(), "its own load")
                        .with_hint("leave one of them out"),
                );
            }
        }
    }
    findings
}

fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
