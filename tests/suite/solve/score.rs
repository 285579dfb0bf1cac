//! How far the layered solver is from reference models, by family, and how long it takes.
//!
//! `SCORE_ONLY=part` takes the models whose names have the part, `SCORE_SHOW=1` prints a row each model, `SCORE_STATES=n` sets
//! how many states are taken for few; with 0 all is left to the layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use dyelog::lqn::model::{CallKind, Model};
use dyelog::lqn::parse_any;
use dyelog::lqn::results::{CallResult, Caller, Results};
use dyelog::solve::{LayeredOptions, layered};

/// What the environment asks for.
pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What the environment asks for, else the default.
pub fn options() -> LayeredOptions {
    let states = setting("SCORE_STATES").and_then(|count| count.parse().ok());
    let default = LayeredOptions::default();
    LayeredOptions { states: states.unwrap_or(default.states), ..default }
}

/// A figure of a model, and by how many percent it is off.
type Figure = (String, f64);

/// Of task throughputs, entry service times, and waits of calls.
type Figures = [Vec<Figure>; 3];

/// How far off a solver is, by family of models.
#[derive(Default)]
pub struct Score {
    /// Of task throughputs and entry service times.
    pub families: BTreeMap<&'static str, [Vec<Figure>; 2]>,
    times: Vec<(f64, String)>,
    refused: Vec<String>,
}

impl Score {
    /// Solves the reference models in a folder whose names have the part.
    pub fn of(root: &Path, part: &str, options: &LayeredOptions) -> Option<Self> {
        let index = std::fs::read_to_string(root.join("INDEX.tsv")).ok()?;
        let mut score = Self::default();
        let mut seen = BTreeSet::new();
        for line in index.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            if fields[0].contains(part) && seen.insert(fields[0]) {
                score.model(root, fields[0], fields[1], fields.get(2).copied().unwrap_or(""), options);
            }
        }
        for figures in score.families.values_mut().flatten() {
            figures.sort_by(|left, right| left.1.total_cmp(&right.1));
        }
        Some(score)
    }

    /// A quantile of a family's relative errors, percent: of task throughputs (0) or entry service times (1).
    pub fn at(&self, family: &str, kind: usize, part: f64) -> f64 {
        let list = self.families.get(family).map_or(&[][..], |kinds| &kinds[kind]);
        list.get((list.len().saturating_sub(1) as f64 * part).round() as usize).map_or(0.0, |figure| figure.1)
    }

    /// Models that could not be read or solved, with the reason.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    fn model(&mut self, root: &Path, file: &str, reference: &str, features: &str, options: &LayeredOptions) {
        let Ok(source) = std::fs::read_to_string(root.join("models").join(file)) else { return };
        let Ok(table) = std::fs::read_to_string(root.join("ref").join(file).with_extension("tsv")) else { return };
        let model = match parse_any(file, &source) {
            Ok((model, _)) => model,
            Err(error) => return self.refused.push(format!("{file}: {error}")),
        };
        let begin = Instant::now();
        let results = match layered(&model, options) {
            Ok(results) => results,
            Err(error) => return self.refused.push(format!("{file}: {error}")),
        };
        let time = begin.elapsed().as_secs_f64() * 1e3;
        self.times.push((time, file.to_owned()));
        let column = match reference {
            "exact" | "simulated" => reference,
            _ if reference.starts_with("petri") => "petri_exact",
            _ => "lqsim",
        };
        let found = errors(&model, &results, &table, column);
        if setting("SCORE_SHOW").is_some() {
            println!(
                "{file}  {time:.2} ms  {} in {} iterations",
                results.convergence.method, results.convergence.iterations
            );
            for (name, error) in found.iter().flatten().filter(|figure| figure.1.abs() > 0.5) {
                println!("    {name:40} {error:+8.2}%");
            }
        }
        for family in families(file, column.ends_with("exact"), features) {
            let own = self.families.entry(family).or_default();
            for (all, figures) in own.iter_mut().zip(&found) {
                all.extend(figures.iter().map(|(name, error)| (format!("{file} {name}"), error.abs())));
            }
        }
    }

    /// Prints tables.
    pub fn print(&mut self) {
        for (family, figures) in &self.families {
            for (kind, (what, list)) in ["task throughput", "entry service"].iter().zip(figures).enumerate() {
                let [median, p90, worst] = [0.5, 0.9, 1.0].map(|part| self.at(family, kind, part));
                println!(
                    "{family:12} {what:16} median {median:6.2}%  p90 {p90:6.2}%  worst {worst:6.2}%  of {}",
                    list.len()
                );
                if *family == "all" {
                    for (name, error) in list.iter().rev().take(12).filter(|figure| figure.1 > 5.0) {
                        println!("    {error:6.1}%  {name}");
                    }
                }
            }
        }
        self.times.sort_by(|left, right| left.0.total_cmp(&right.0));
        if let Some(median) = self.times.get(self.times.len() / 2) {
            println!("time of {} models: median {:.2} ms, the slowest:", self.times.len(), median.0);
        }
        for (time, file) in self.times.iter().rev().take(6) {
            println!("    {time:8.2} ms  {file}");
        }
        for refused in &self.refused {
            println!("refused: {refused}");
        }
    }
}

/// Whether a family's figures are within bars, percent: median and 90th percentile of task throughputs, then of entry
/// service times.
pub fn within(score: &Score, bars: &[(&str, [f64; 4])]) {
    for (family, bars) in bars {
        let found = [(0, 0.5), (0, 0.9), (1, 0.5), (1, 0.9)].map(|(kind, part)| score.at(family, kind, part));
        assert!(found.iter().zip(bars).all(|(found, bar)| found <= bar), "{family}: {found:.2?} for {bars:?}");
    }
}

fn families(file: &str, exact: bool, features: &str) -> Vec<&'static str> {
    let has = |feature: &str| features.contains(feature) || file.contains(feature);
    let mut families = vec!["all"];
    let kinds =
        [("phase2", "second phase"), ("and-join", "fork-join"), ("interlock", "interlock"), ("async", "messages")];
    let special = ["open", "async", "forwarding", "semaphore", "rwlock", "replication", "pri", "cv2", "activities"];
    families.extend(kinds.iter().filter(|kind| has(kind.0)).map(|kind| kind.1));
    if families.len() == 1 && !special.iter().any(|feature| has(feature)) {
        families.push("plain");
    }
    if exact {
        families.push("exact");
    }
    families
}

/// By how much task throughputs and entry service times are off.
fn errors(model: &Model, results: &Results, table: &str, column: &str) -> Figures {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let place = header.iter().position(|name| *name == column);
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let reference = place.and_then(|place| fields.get(place)?.parse::<f64>().ok());
        let Some(reference) = reference.filter(|value| *value > 1e-9) else { continue };
        let (kind, value) = match (fields[0], fields[2]) {
            ("task", "tput") => (0, model.task_named(fields[1]).map(|task| results.tasks[task.index()].throughput)),
            ("entry", metric @ ("svc1" | "svc2")) => {
                let phase = usize::from(metric == "svc2");
                (1, model.entry_named(fields[1]).map(|entry| results.entries[entry.index()].service[phase]))
            }
            ("entry", "resp") => {
                (1, model.entry_named(fields[1]).and_then(|entry| results.entries[entry.index()].open_response))
            }
            ("call", "wait") => (2, waiting(model, results, fields[1])),
            _ => continue,
        };
        if let Some(value) = value {
            found[kind].push((format!("{}:{}", fields[1], fields[2]), 100.0 * (value - reference) / reference));
        }
    }
    found
}

/// The wait of a synchronous call of a phase, by what tables call it.
fn waiting(model: &Model, results: &Results, name: &str) -> Option<f64> {
    let (from, to) = name.split_once("->")?;
    let (entry, phase) = from.split_once('#')?;
    let caller = Caller::Phase(model.entry_named(entry)?, phase.parse().ok()?);
    let target = model.entry_named(to)?;
    let made =
        |call: &&CallResult| call.from == caller && call.to == target && call.kind == Some(CallKind::Synchronous);
    results.calls.iter().find(made).map(|call| call.waiting)
}
