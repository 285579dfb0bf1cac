//! The simulator against exact answers: how many standard errors it is off, figure by figure.

use std::fmt::Write as _;
use std::path::Path;

use dyelog::lqn::model::Model;
use dyelog::lqn::parse_any;
use dyelog::lqn::results::{Caller, Results};
use dyelog::solve::{SimulateOptions, simulate};

use super::analytic::{figure, read};
use crate::support::shared;

/// The standard normal quantile of a 95 % interval; with 64 batches Student's is hardly more.
const INTERVAL: f64 = 1.998;

fn options(precision: f64) -> SimulateOptions {
    SimulateOptions { precision, events: 20_000_000, threads: 2, ..SimulateOptions::default() }
}

/// The half width of a figure: the same figure of results whose figures are half widths.
fn half_width(model: &Model, results: &Results, kind: &str, name: &str, metric: &str) -> Option<f64> {
    let half = &results.simulated.as_ref()?.half_widths;
    let calls = results.calls.iter().zip(&half.calls);
    let widths = Results {
        processors: half.processors.clone(),
        tasks: half.tasks.clone(),
        entries: half.entries.clone(),
        activities: half.activities.clone(),
        calls: calls
            .map(|(call, waiting)| dyelog::lqn::results::CallResult { waiting: *waiting, ..call.clone() })
            .collect(),
        ..results.clone()
    };
    figure(model, &widths, kind, name, metric)
}

/// Figures of a table of references that `figure` does not have.
fn more(model: &Model, results: &Results, kind: &str, name: &str, metric: &str) -> Option<(f64, f64)> {
    let half = &results.simulated.as_ref()?.half_widths;
    match (kind, metric) {
        ("call", "wait") => {
            let (from, to) = name.split_once("->")?;
            let (entry, phase) = from.split_once('#')?;
            let caller = Caller::Phase(model.entry_named(entry)?, phase.parse().ok()?);
            let target = model.entry_named(to)?;
            let index = results.calls.iter().position(|call| call.from == caller && call.to == target)?;
            let waits = results.calls[index].kind == Some(dyelog::lqn::model::CallKind::Synchronous);
            waits.then(|| (results.calls[index].waiting, half.calls[index]))
        }
        ("entry", "svc3") => {
            let index = model.entry_named(name)?.index();
            Some((results.entries[index].service[2], half.entries[index].service[2]))
        }
        ("call", _) => None,
        _ => Some((figure(model, results, kind, name, metric)?, half_width(model, results, kind, name, metric)?)),
    }
}

struct Score {
    shown: String,
    figures: usize,
    beyond: Vec<String>,
}

impl Score {
    fn add(&mut self, what: &str, exact: f64, found: f64, half_width: f64) {
        let errors = (found - exact) / (half_width / INTERVAL).max(1e-6 * exact.abs());
        let line = format!(
            "{what:64} {exact:12.6} {found:12.6} ± {half_width:9.6} {:+7.3}% {errors:+6.2} standard errors",
            100.0 * (found - exact) / exact
        );
        writeln!(self.shown, "{line}").expect("writing to a string");
        self.figures += 1;
        if errors.abs() > 3.0 {
            self.beyond.push(line);
        }
    }

    fn end(self, name: &str) -> usize {
        eprintln!(
            "{}{name}: {} of {} figures beyond 3 standard errors\n{}",
            self.shown,
            self.beyond.len(),
            self.figures,
            self.beyond.join("\n")
        );
        // One in a hundred, and what chance may add in so few.
        assert!(self.beyond.len() <= 1 + self.figures / 50, "{name}:\n{}", self.beyond.join("\n"));
        self.figures
    }
}

#[test]
fn analytic_models_are_within_three_standard_errors() {
    analytic(0.02);
}

#[test]
#[ignore = "takes minutes: narrow intervals"]
fn analytic_models_are_within_three_narrow_standard_errors() {
    analytic(0.003);
}

fn analytic(precision: f64) {
    let Some(root) = shared("lqn/analytic") else { return };
    let table = std::fs::read_to_string(root.join("EXACT.tsv")).expect("the table is text");
    let mut score = Score { shown: String::new(), figures: 0, beyond: Vec::new() };
    let mut last: Option<(String, Model, Results)> = None;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, kind, name, metric, exact, ..] = fields[..] else { continue };
        let exact: f64 = exact.parse().expect("an exact answer is a number");
        if last.as_ref().is_none_or(|last| last.0 != file) {
            let model = read(&root.parent().expect("the folder has a parent").join(file));
            let results = simulate(&model, &options(precision)).expect("the model can be simulated");
            last = Some((file.to_owned(), model, results));
        }
        let (_, model, results) = last.as_ref().expect("one was just put there");
        let found = figure(model, results, kind, name, metric).expect("the figure is there");
        let half_width = half_width(model, results, kind, name, metric).expect("the figure has an interval");
        score.add(&format!("{file} {kind} {name} {metric}"), exact, found, half_width);
    }
    assert!(score.end("closed forms") > 0);
}

fn parse(path: &Path) -> Option<Model> {
    let source = std::fs::read_to_string(path).ok()?;
    parse_any(&path.display().to_string(), &source).ok().map(|parsed| parsed.0)
}

#[test]
fn exact_models_are_within_three_standard_errors() {
    exact(0.03);
}

#[test]
#[ignore = "takes minutes: narrow intervals"]
fn exact_models_are_within_three_narrow_standard_errors() {
    exact(0.005);
}

fn exact(precision: f64) {
    let Some(root) = shared("lqn") else { return };
    let wanted = std::env::var("DYELOG_ONLY").unwrap_or_default();
    let references = std::env::var("DYELOG_REFERENCE").unwrap_or_else(|_| "petri_exact".into());
    let index = std::fs::read_to_string(root.join("INDEX.tsv")).expect("the index is text");
    let mut score = Score { shown: String::new(), figures: 0, beyond: Vec::new() };
    for line in index.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, reference) = (fields[0], fields[1]);
        // That reference is the one of B01, which is served first come, first served where B11 shares.
        let other = file.ends_with("B11.lqn");
        if (references == "petri_exact") != reference.starts_with("petri") || !file.contains(&wanted) || other {
            continue;
        }
        // Where there are semaphores and quorums, the references measure service times in another way.
        let defined = !file.contains("semaphore") && !file.contains("quorum");
        let Some(model) = parse(&root.join("models").join(file)) else { continue };
        let Ok(table) = std::fs::read_to_string(root.join("ref").join(file).with_extension("tsv")) else { continue };
        let results = match simulate(&model, &options(precision)) {
            Ok(results) => results,
            Err(found) => {
                eprintln!("{file}: {found}");
                continue;
            }
        };
        let mut lines = table.lines();
        let header: Vec<&str> = lines.next().expect("the table has a header").split('\t').collect();
        let column = header.iter().position(|name| *name == references).expect("the table has the column");
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            let (kind, name, metric) = (fields[0], fields[1], fields[2]);
            if !matches!(
                (kind, metric),
                ("task", "tput") | ("entry", "svc1" | "svc2" | "svc3" | "tput") | ("proc", "util")
            ) {
                continue;
            }
            if !defined && metric.starts_with("svc") {
                continue;
            }
            let Some(exact) = fields.get(column).and_then(|value| value.parse::<f64>().ok()) else { continue };
            if exact <= 1e-9 {
                continue;
            }
            if let Some((found, half_width)) = more(&model, &results, kind, name, metric) {
                score.add(&format!("{file} {kind} {name} {metric}"), exact, found, half_width);
            }
        }
    }
    score.end("exact references");
}
