//! A question as it is written: parameters, values and figures in words, held against the subjects that it is asked of.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::codes;
use crate::model::parameter::{Axis, Change, Kind, Path, Subject, Value};
use crate::solve::{SimulateOptions, SolveOptions};
use crate::study::effect::{brought_up, idle};
use crate::study::figure::{Figure, Measure};
use crate::study::sweep::{Question, SweepOptions};

/// More points than these are refused.
const MOST: usize = 1_000_000;
/// Parameters that a table has room for.
const MOST_AXES: usize = 2;

/// What is varied and shown, in words.
#[derive(Clone, Copy, Debug)]
pub struct WrittenQuestion<'a> {
    /// Changes of all points: `PATH=VALUE`.
    pub set: &'a [String],
    /// Parameters with their values: `PATH=VALUES`.
    pub vary: &'a [String],
    /// Figures; the usual ones of all subjects where there are none.
    pub show: &'a [String],
}

impl WrittenQuestion<'_> {
    /// The question, of subjects on which the changes have been made already. All names are looked up in the first subject; the others
    /// must have the parameters that are varied.
    ///
    /// # Errors
    /// All that is wrong with the words.
    pub fn of(&self, subjects: &[(String, Subject)], threads: usize, warm: bool) -> Result<Question, Diagnostics> {
        let mut errors = Vec::new();
        if self.vary.len() > MOST_AXES {
            let message = "at most two parameters can be varied at a time";
            errors.push(Diagnostic::error(codes::SWEEP, Place::Nowhere, message));
        }
        let Some(((_, first), others)) = subjects.split_first() else {
            let options = SweepOptions { threads, warm, ..SweepOptions::default() };
            return Ok(Question { axes: Vec::new(), measures: Vec::new(), options });
        };
        let axes = kept(self.vary.iter().map(|text| first.axis(text)), &mut errors);
        let set: Vec<Path> = self.set.iter().filter_map(|text| Some(first.change(text).ok()?.path)).collect();
        let set: BTreeSet<String> = set.iter().map(Path::to_string).collect();
        let varied = || axes.iter().map(|(path, _)| path);
        errors.extend(given_twice(varied().chain(varied().filter(|path| set.contains(&path.to_string())))));
        let base = first.base();
        let parsed = self.show.iter().map(|text| Figure::parse(text, &base.model, base.origins.as_ref()));
        let mut measures: Vec<Figure> = kept(parsed, &mut errors).into_iter().flatten().collect();
        for (name, other) in others {
            let missing = varied().filter_map(|path| other.parameter(path).err());
            errors.extend(missing.map(|error| error.with_note(format!("in {name}"))));
        }
        if !errors.is_empty() {
            return Err(Diagnostics(errors));
        }
        if measures.is_empty() {
            measures = usual(subjects);
        }
        let given = self.set.iter().chain(self.vary).filter_map(|text| given(text, first)).collect();
        let options = SweepOptions { solver: solver(&measures), threads, warm, given, ..SweepOptions::default() };
        let question = Question { axes, measures, options };
        let count = question.grid().len();
        if count > MOST {
            let message = format!("the sweep has {count} points, more than {MOST}");
            return Err(Diagnostic::error(codes::SWEEP, Place::Nowhere, message).into());
        }
        Ok(question)
    }
}

/// Makes changes in words. Gives warnings of those that make no difference, and what there is to say about the changed model that was
/// not there to say before.
///
/// # Errors
/// All that is wrong with the words; else why there is no model with all changes.
pub fn set(subject: &mut Subject, texts: &[String]) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut errors = Vec::new();
    let changes: Vec<Change> = kept(texts.iter().map(|text| subject.change(text)), &mut errors);
    errors.extend(given_twice(changes.iter().map(|change| &change.path)));
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    let before = subject.base().findings.clone();
    let mut findings = idle(subject, &changes)?;
    subject.set(&changes)?;
    findings.extend(brought_up(&before, &subject.base().findings));
    Ok(findings)
}

/// The parameter of a text, where its value is no multiple of what is there: it is certain.
pub(in crate::study) fn given(text: &str, subject: &Subject) -> Option<Path> {
    let (path, values) = Path::split(text).ok()?;
    let relative = Axis::parse(Kind::Number, values.strip_prefix('=')?);
    let is_relative = |axis: Axis| axis.values.iter().all(|value| matches!(value, Value::Times(_)));
    let (path, _) = subject.parameter(&path).ok()?;
    (!relative.is_ok_and(is_relative)).then_some(path)
}

/// What went well; what went wrong is added to the errors.
fn kept<T>(found: impl Iterator<Item = Result<T, Diagnostic>>, errors: &mut Vec<Diagnostic>) -> Vec<T> {
    found.filter_map(|found| found.map_err(|error| errors.push(error)).ok()).collect()
}

/// Errors of parameters that are given more than one value.
fn given_twice<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<Diagnostic> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    paths.for_each(|path| *seen.entry(path.to_string()).or_default() += 1);
    let twice = seen.into_iter().filter(|(_, times)| *times > 1);
    let error = |(path, times)| {
        let message = format!("`{path}` is given {times} times");
        Diagnostic::error(codes::CONTRADICTION, Place::Nowhere, message)
            .with_hint("set or vary it once; `--vary` takes lists and ranges of values")
    };
    twice.map(error).collect()
}

/// The usual figures of all subjects, each once.
fn usual(subjects: &[(String, Subject)]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (_, subject) in subjects {
        for measure in Measure::usual(&subject.base().model, subject.base().origins.as_ref()) {
            let figure = Figure::Mean(measure);
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
    }
    figures
}

/// How points are solved: in layers, unless a percentile is asked for, which only a simulation tells.
fn solver(figures: &[Figure]) -> SolveOptions {
    let mut parts: Vec<f64> = figures.iter().filter_map(Figure::part).collect();
    if parts.is_empty() {
        return SolveOptions::default();
    }
    parts.sort_by(f64::total_cmp);
    parts.dedup();
    SolveOptions::from(SimulateOptions { parts, ..SimulateOptions::default() })
}
