//! What each heuristic of the layered solver is worth: mean relative errors with it and without it, on reference models.
//!
//! Not a benchmark of divan's: prints a table a set of models. Beside our own, `tests/reference`, it takes the folder that
//! `HEURISTICS_MODELS` names, of the same shape. Layers alone are measured: no model is solved by its states.

use std::path::{Path, PathBuf};

use dyelog_lqn::model::Model;
use dyelog_lqn::parse_any;
use dyelog_lqn::results::Results;
use dyelog_solve::heuristics::{Heuristic, Heuristics};
use dyelog_solve::{LayeredOptions, layered};

/// A relative change of an error that counts, in hundredths.
const NOTABLE: f64 = 0.01;

fn main() {
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/reference"));
    let other = std::env::var("HEURISTICS_MODELS").ok().map(PathBuf::from);
    for root in std::iter::once(own).chain(other) {
        let cases = cases(&root);
        println!("== {} models of {}", cases.len(), root.display());
        let with = errors(&cases, Heuristics::default());
        println!("{:26} {:>8} {:>8}   models that are better and worse with it", "", "with", "without");
        for heuristic in Heuristic::ALL {
            let without = errors(&cases, Heuristics::default().without(heuristic));
            let pairs = || with.iter().zip(&without).filter_map(|(with, without)| Some(((*with)?, (*without)?)));
            let count = pairs().count().max(1) as f64;
            let better = pairs().filter(|(with, without)| with + NOTABLE < *without).count();
            let worse = pairs().filter(|(with, without)| *with > without + NOTABLE).count();
            let mean = |sum: f64| sum / count;
            println!(
                "{:26} {:7.3}% {:7.3}%   {better:3} {worse:3}",
                format!("{heuristic:?}"),
                mean(pairs().map(|pair| pair.0).sum()),
                mean(pairs().map(|pair| pair.1).sum()),
            );
        }
    }
}

/// A model and the figures that are known of it: kind, name, metric and value.
struct Case {
    model: Model,
    figures: Vec<(String, String, String, f64)>,
}

fn cases(root: &Path) -> Vec<Case> {
    let index = std::fs::read_to_string(root.join("INDEX.tsv")).unwrap_or_default();
    let case = |line: &str| {
        let mut fields = line.split('\t');
        let (file, reference) = (fields.next()?, fields.next()?);
        let column = match reference {
            "exact" | "simulated" => reference,
            _ if reference.starts_with("petri") => "petri_exact",
            _ => "lqsim",
        };
        let source = std::fs::read_to_string(root.join("models").join(file)).ok()?;
        let table = std::fs::read_to_string(root.join("ref").join(file).with_extension("tsv")).ok()?;
        let (model, _) = parse_any(file, &source).ok()?;
        let mut lines = table.lines();
        let place = lines.next()?.split('\t').position(|name| name == column)?;
        let figures = lines
            .filter_map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                let value: f64 = fields.get(place)?.parse().ok()?;
                (value > 1e-9).then(|| (fields[0].to_owned(), fields[1].to_owned(), fields[2].to_owned(), value))
            })
            .collect();
        Some(Case { model, figures })
    };
    index.lines().skip(1).filter_map(case).collect()
}

/// By model: the mean relative error of its throughputs and service times, in hundredths; none where it is not solved.
fn errors(cases: &[Case], heuristics: Heuristics) -> Vec<Option<f64>> {
    let options = LayeredOptions { states: 0, heuristics, ..LayeredOptions::default() };
    cases
        .iter()
        .map(|case| {
            let results = layered(&case.model, &options).ok()?;
            let found = case.figures.iter().filter_map(|(kind, name, metric, value)| {
                let own = figure(&case.model, &results, kind, name, metric)?;
                Some(100.0 * ((own - value) / value).abs())
            });
            let found: Vec<f64> = found.collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        })
        .collect()
}

fn figure(model: &Model, results: &Results, kind: &str, name: &str, metric: &str) -> Option<f64> {
    match (kind, metric) {
        ("task", "tput") => Some(results.tasks[model.task_named(name)?.index()].throughput),
        ("entry", "svc1") => Some(results.entries[model.entry_named(name)?.index()].service[0]),
        ("entry", "svc2") => Some(results.entries[model.entry_named(name)?.index()].service[1]),
        ("entry", "resp") => results.entries[model.entry_named(name)?.index()].open_response,
        _ => None,
    }
}
