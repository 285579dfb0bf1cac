//! Models of others with reference results: prints how far the solver is from them.

use std::collections::BTreeMap;
use std::path::Path;

use dyelog::lqn::model::Model;
use dyelog::lqn::parse_any;
use dyelog::solve::{LayeredOptions, layered};

use crate::support::shared;

use super::analytic::figure;

fn parse(path: &Path) -> Option<Model> {
    let source = std::fs::read_to_string(path).ok()?;
    let parsed = parse_any(&path.display().to_string(), &source);
    parsed.map_err(|error| eprintln!("{}: not read: {error}", path.display())).ok().map(|parsed| parsed.0)
}

/// Figures by name with their relative errors, in percent.
type Errors = Vec<(String, f64)>;

/// Errors of one model: task throughputs, entry service times; and how they came about.
fn errors(model: &Model, table: &str, column: &str) -> Option<(Errors, Errors, String)> {
    let results = layered(model, &LayeredOptions::default()).map_err(|error| eprintln!("refused: {error}")).ok()?;
    if std::env::var("DYELOG_CALLS").is_ok() {
        for call in results.calls.iter().filter(|call| call.waiting > 0.0) {
            eprintln!("      {:?} -> {} waits {:.4}", call.from, model.entries[call.to.index()].name, call.waiting);
        }
        for (entry, result) in model.entries.iter().zip(&results.entries) {
            eprintln!("      {} {:.5} {:.4?}", entry.name, result.throughput, result.service);
        }
    }
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next()?.split('\t').collect();
    let exact = header.iter().position(|name| *name == column)?;
    let (mut tasks, mut entries) = (Vec::new(), Vec::new());
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let (kind, name, metric) = (fields[0], fields[1], fields[2]);
        let Some(reference) = fields.get(exact).and_then(|value| value.parse::<f64>().ok()) else { continue };
        if reference <= 1e-9 {
            continue;
        }
        let list = match (kind, metric) {
            ("task", "tput") => &mut tasks,
            ("entry", "svc1" | "svc2") => &mut entries,
            _ => continue,
        };
        if let Some(found) = figure(model, &results, kind, name, metric) {
            list.push((format!("{name}:{metric}"), 100.0 * (found - reference) / reference));
        }
    }
    let convergence = &results.convergence;
    Some((
        tasks,
        entries,
        format!(
            "{} {} {:.0e} {}",
            convergence.converged, convergence.iterations, convergence.residual, convergence.method
        ),
    ))
}

fn spread(values: &mut [f64]) -> String {
    if values.is_empty() {
        return "none".into();
    }
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    format!("median {:6.2}%  p90 {:6.2}%  worst {:6.2}%  ({} figures)", at(0.5), at(0.9), at(1.0), values.len())
}

#[test]
fn reference_models_are_scored() {
    let Some(root) = shared("lqn") else { return };
    let index = std::fs::read_to_string(root.join("INDEX.tsv")).expect("the index is text");
    let mut kinds: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let mut solved = 0;
    for line in index.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, reference) = (fields[0], fields[1]);
        let features = fields.get(2).copied().unwrap_or("");
        if std::env::var("DYELOG_ONLY").is_ok_and(|part| !file.contains(&part)) {
            continue;
        }
        let Some(model) = parse(&root.join("models").join(file)) else { continue };
        let table = root.join("ref").join(file).with_extension("tsv");
        let Ok(table) = std::fs::read_to_string(&table) else { continue };
        let column = if reference.starts_with("petri") { "petri_exact" } else { "lqsim" };
        let Some((tasks, entries, how)) = errors(&model, &table, column) else { continue };
        solved += 1;
        if std::env::var("DYELOG_SHOW").is_ok_and(|part| file.contains(&part)) {
            for (name, error) in tasks.iter().chain(&entries) {
                eprintln!("    {name:30} {error:+8.2}%");
            }
        }
        let worst = |list: &[(String, f64)]| {
            list.iter()
                .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
                .map_or_else(String::new, |worst| format!("{} {:+.1}%", worst.0, worst.1))
        };
        eprintln!("{file:55} {:28} {:32} {how}", worst(&tasks), worst(&entries));
        let mut groups = vec!["all"];
        if reference.starts_with("petri") {
            groups.push("exact reference");
        }
        for (feature, name) in [("phase2", "second phase"), ("and-join", "fork-join"), ("interlock", "interlock")] {
            if features.contains(feature) || file.contains(feature) {
                groups.push(name);
            }
        }
        for group in groups {
            let sums = kinds.entry(group).or_default();
            sums.0.extend(tasks.iter().map(|error| error.1.abs()));
            sums.1.extend(entries.iter().map(|error| error.1.abs()));
        }
    }
    for (kind, (tasks, entries)) in &mut kinds {
        eprintln!("{kind:16} tput {}   service {}", spread(tasks), spread(entries));
    }
    assert!(solved > 0, "no reference model could be solved");
}

#[test]
fn large_models_are_solved_or_say_that_they_are_not() {
    solve_large(&["gen-c10l4t50.lqn", "gen-c20l5t100.lqn"]);
}

#[test]
#[ignore = "takes half a minute without optimisation"]
fn very_large_models_are_solved_or_say_that_they_are_not() {
    solve_large(&["gen-c50l6t500.lqn", "gen-c100l6t1000.lqn"]);
}

fn solve_large(files: &[&str]) {
    let Some(root) = shared("lqn/large") else { return };
    for file in files {
        let model = parse(&root.join(file)).expect("the model is well-formed");
        let begin = std::time::Instant::now();
        let results = layered(&model, &LayeredOptions::default()).expect("the model can be solved");
        eprintln!("{file}: {:.2?}, {:?} {:?}", begin.elapsed(), results.convergence, results.doubts);
        assert!(results.convergence.converged || !results.doubts.is_empty());
    }
}
