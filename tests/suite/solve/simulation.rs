//! The simulator against exact answers: how many standard errors it is off, figure by figure.

use std::fmt::Write as _;
use std::path::Path;

use dyelog::lqn::model::{Body, Model, Scheduling};
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
    figure(model, &results.half_widths()?, kind, name, metric)
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

#[derive(Default)]
struct Score {
    shown: String,
    figures: usize,
    covered: usize,
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
        self.covered += usize::from(errors.abs() <= INTERVAL);
        if errors.abs() > 3.0 {
            self.beyond.push(line);
        }
    }

    fn tell(&self, name: &str) {
        eprintln!(
            "{}{name}: {} of {} figures beyond 3 standard errors, {:.2} % within the interval\n{}",
            self.shown,
            self.beyond.len(),
            self.figures,
            100.0 * self.covered as f64 / self.figures.max(1) as f64,
            self.beyond.join("\n")
        );
    }

    /// Holds it to one figure in a hundred.
    fn end(&self, name: &str) -> usize {
        self.tell(name);
        assert!(self.beyond.len() <= self.figures / 100, "{name}:\n{}", self.beyond.join("\n"));
        self.figures
    }
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn analytic_models_are_within_three_standard_errors() {
    analytic(0.02);
}

#[test]
#[ignore = "takes minutes: narrow intervals"]
fn analytic_models_are_within_three_narrow_standard_errors() {
    analytic(0.003);
}

fn analytic(precision: f64) {
    let root = shared("lqn/analytic");
    let table = std::fs::read_to_string(root.join("EXACT.tsv")).expect("the table is text");
    let mut score = Score::default();
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
#[ignore = "needs the reference data, ../shared"]
fn exact_models_are_within_three_standard_errors() {
    exact(0.03, 4);
}

#[test]
#[ignore = "takes minutes: narrow intervals"]
fn exact_models_are_within_three_narrow_standard_errors() {
    exact(0.005, 1);
}

/// By how much a table of references contradicts itself: the largest part by which the throughput of an entry differs from what
/// its callers ask of it. None of models whose copies and activities make that another sum.
fn imbalance(model: &Model, throughput: &dyn Fn(&str) -> Option<f64>) -> f64 {
    let copied =
        model.tasks.iter().any(|task| task.replicas > 1) || model.processors.iter().any(|own| own.replicas > 1);
    let has_activities = model.entries.iter().any(|entry| matches!(entry.body, Body::Activities(_)));
    if copied || has_activities {
        return 0.0;
    }
    let mut asked: Vec<Option<f64>> =
        model.entries.iter().map(|entry| Some(entry.open_arrival_rate.unwrap_or(0.0))).collect();
    for entry in &model.entries {
        let Body::Phases(phases) = &entry.body else { continue };
        let calls = phases.iter().flat_map(|work| &work.calls).map(|call| (call.to, call.mean));
        for (to, mean) in calls.chain(entry.forwarding.iter().map(|forward| (forward.to, forward.probability))) {
            let sum = &mut asked[to.index()];
            *sum = sum.zip(throughput(&entry.name)).map(|(sum, rate)| sum + rate * mean);
        }
    }
    let called = model
        .entries
        .iter()
        .zip(asked)
        .filter(|(entry, _)| model.tasks[entry.task.index()].scheduling != Scheduling::Reference);
    let differences = called.filter_map(|(entry, asked)| Some((asked? / throughput(&entry.name)? - 1.0).abs()));
    differences.fold(0.0, f64::max)
}

/// References further out of balance than this are not exact.
const BALANCED: f64 = 1e-3;

fn exact(precision: f64, seeds: u64) {
    let root = shared("lqn");
    let wanted = std::env::var("DYELOG_ONLY").unwrap_or_default();
    let references = std::env::var("DYELOG_REFERENCE").unwrap_or_else(|_| "petri_exact".into());
    let index = std::fs::read_to_string(root.join("INDEX.tsv")).expect("the index is text");
    let (mut score, mut doubtful) = (Score::default(), Score::default());
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
        let mut runs = Vec::new();
        for seed in 1..=seeds {
            match simulate(&model, &SimulateOptions { seed, ..options(precision) }) {
                Ok(results) => runs.push(results),
                Err(found) => eprintln!("{file}: {found}"),
            }
        }
        let mut lines = table.lines();
        let header: Vec<&str> = lines.next().expect("the table has a header").split('\t').collect();
        let column = header.iter().position(|name| *name == references).expect("the table has the column");
        let throughput = |name: &str| -> Option<f64> {
            let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<&str>>());
            rows.find(|row| row[..3] == ["entry", name, "tput"])?.get(column)?.parse().ok()
        };
        let out_of_balance = imbalance(&model, &throughput);
        let score = if out_of_balance > BALANCED {
            eprintln!("{file}: the reference contradicts itself by {:.2} %", 100.0 * out_of_balance);
            &mut doubtful
        } else {
            &mut score
        };
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
            for results in &runs {
                if let Some((found, half_width)) = more(&model, results, kind, name, metric) {
                    score.add(&format!("{file} {kind} {name} {metric}"), exact, found, half_width);
                }
            }
        }
    }
    doubtful.tell("references that contradict themselves");
    if score.end("exact references") > 1000 {
        let covered = score.covered as f64 / score.figures as f64;
        assert!((0.93..=0.97).contains(&covered), "{covered}");
    }
}
