//! Files of metrics, that is of utilisation, of cores and of requests: CSV, Prometheus text and query results, OTLP metrics, told apart by their content.

mod capacity;
mod metric;
mod otlp;
mod prometheus;
mod requests;
mod table;
mod time;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::model::codes;
use crate::model::requests::Requests;
use crate::model::utilisation::{Capacity, Metrics, Series, Unit};
use crate::pipeline::input::{Input, read_text};
use crate::trace;

/// What values are, where a file does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUnit {
    /// A part of all cores, 0 to 1.
    Ratio,
    /// A part of all cores, 0 to 100.
    Percent,
    /// Busy cores.
    Cores,
    /// Thousandths of busy cores.
    Millicores,
    /// Processor time since some begin, a counter.
    Seconds,
}

impl ValueUnit {
    /// The unit that series have, and what values are multiplied by.
    fn scale(self) -> (Unit, f64) {
        match self {
            Self::Ratio => (Unit::Share, 1.0),
            Self::Percent => (Unit::Share, 0.01),
            Self::Cores => (Unit::Cores, 1.0),
            Self::Millicores => (Unit::Cores, 0.001),
            Self::Seconds => (Unit::Seconds, 1.0),
        }
    }
}

/// What a metric measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Names of what it is of, the most telling first.
    pub resources: Vec<String>,
    /// Of what kind of processor time it is, as [`Series::mode`] has it.
    pub mode: String,
    /// What its values are, once they are multiplied.
    pub unit: Unit,
    /// What values are multiplied by.
    pub factor: f64,
}

/// What a metric with these labels measures; `None` where it is no utilisation, or its unit is not known.
pub fn measure(name: &str, unit: &str, labels: &[(String, String)]) -> Option<Measure> {
    let metric::Known::Utilisation(own) = metric::known(name, unit) else { return None };
    let of = || labels.iter().map(|(name, value)| (&**name, &**value));
    let (unit, factor) = metric::unit_of(name, own, of()).scale();
    metric::counts(name, of()).then(|| Measure {
        resources: metric::resources(&of()),
        mode: metric::mode(of()),
        unit,
        factor,
    })
}

/// The requests that a histogram or sum with these labels counts, by times in seconds and counts since some begin; `None` where it counts something else.
pub fn counter(name: &str, labels: &[(String, String)], samples: Vec<(f64, f64)>) -> Option<Requests> {
    let of = labels.iter().map(|(name, value)| (&**name, &**value));
    requests::series(name, requests::known(name, true)?, &of, samples)
}

/// Whether a metric with these labels says how many cores there are.
pub fn counts_cores(name: &str, labels: &[(String, String)]) -> bool {
    let of = labels.iter().map(|(name, value)| (&**name, &**value));
    capacity::Counted::default().take(name, &of, f64::NAN)
}

/// How many cores there are by series of metrics, each with its labels and the last of its values: by those that say so, and by those that there is one
/// of for each processor.
pub fn cores_of<'s>(series: impl IntoIterator<Item = (&'s str, &'s [(String, String)], f64)>) -> Vec<Capacity> {
    let mut counted = capacity::Counted::default();
    for (name, labels, value) in series {
        counted.take(name, &labels.iter().map(|(name, value)| (&**name, &**value)), value);
    }
    counted.finish()
}

/// A line of Prometheus' text.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposed {
    /// The metric.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
    /// When it was measured, seconds since 1970; where it is not said, when it was fetched.
    pub seconds: Option<f64>,
}

/// What was scraped once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition {
    /// Its lines.
    pub lines: Vec<Exposed>,
    /// How many lines are none of Prometheus' text, and the number of the first one.
    pub unread: Option<(usize, usize)>,
}

/// The lines of what was scraped once.
pub fn exposition(text: &str) -> Exposition {
    prometheus::exposition(text)
}

/// No service has served more requests.
const MOST: f64 = 1e15;

/// A part of all cores may lie so far above 1 by how it was sampled.
const ABOVE: f64 = 1.05;

/// Reads files of utilisation, packed or not. The unit is that of values whose file does not tell theirs.
///
/// # Errors
/// What keeps files from being read; values that cannot be of their unit; units that are not known.
pub fn read_utilisation(files: &[Input], unit: Option<ValueUnit>) -> Result<Metrics, Diagnostics> {
    let mut all = Metrics::default();
    let mut errors = Vec::new();
    for file in files {
        match read(file, unit) {
            Ok(found) => {
                all.series.extend(found.series);
                all.cores.extend(found.cores);
                all.requests.extend(found.requests);
            }
            Err(Diagnostics(found)) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(all) } else { Err(Diagnostics(errors)) }
}

fn read(file: &Input, unit: Option<ValueUnit>) -> Result<Metrics, Diagnostics> {
    let name = Arc::clone(file.name());
    let content = trace::unpacked(file.open()?)
        .map_err(|error| fault(&name, &format!("the file cannot be unpacked: {error}")))?;
    let text = read_text(&name, content)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let begin = text.trim_start();
    let found = if begin.starts_with(['{', '[']) && begin.contains("\"resourceMetrics\"") {
        otlp::read(text, unit)
    } else if begin.starts_with(['{', '[']) {
        prometheus::read_query(text, unit)
    } else if prometheus::is_exposition(begin) {
        prometheus::read_text(text, unit)
    } else {
        table::read(text, unit)
    };
    let mut found = found.map_err(|Fault { line, unit, message, hint }| {
        let code = if unit { codes::UTILISATION_UNIT } else { codes::UTILISATION };
        let place = match line {
            Some(line) => Place::Line { file: Arc::clone(&name), line, column: 0 },
            None => Place::File { file: Arc::clone(&name) },
        };
        let finding = Diagnostic::error(code, place, message);
        if hint.is_empty() { finding } else { finding.with_hint(hint) }
    })?;
    found.series.retain(|own| !own.samples.is_empty());
    let once = found.requests.iter().map(|own| own.metric.clone()).next();
    for own in &mut found.requests {
        own.file = Arc::clone(&name);
        own.samples.retain(|sample| sample.0.is_finite() && (0.0..=MOST).contains(&sample.1));
        own.samples.sort_by(|left, right| left.0.total_cmp(&right.0));
        own.samples.dedup_by(|next, last| next.0 <= last.0);
    }
    // What was read once did not grow.
    found.requests.retain(|own| own.samples.len() > 1);
    if found == Metrics::default() {
        return Err(match once {
            Some(metric) => fault(&name, &format!("`{metric}` was read once, and tells no rate")).with_hint(
                "save several scrapes with their times, or ask the HTTP API for a range: `/api/v1/query_range`",
            ),
            None => fault(&name, "the file has no values of utilisation, and counts neither cores nor requests"),
        }
        .into());
    }
    let mut errors = Vec::new();
    for own in &mut found.series {
        own.file = Arc::clone(&name);
        own.samples.sort_by(|left, right| left.0.total_cmp(&right.0));
        errors.extend(doubt(own));
    }
    for own in &mut found.cores {
        own.file = Arc::clone(&name);
    }
    if errors.is_empty() { Ok(found) } else { Err(Diagnostics(errors)) }
}

fn fault(name: &Arc<str>, message: &str) -> Diagnostic {
    Diagnostic::error(codes::UTILISATION, Place::File { file: Arc::clone(name) }, message)
}

/// Why values cannot be of their unit.
fn doubt(series: &Series) -> Option<Diagnostic> {
    let place = Place::File { file: Arc::clone(&series.file) };
    let of = |message: String| Diagnostic::error(codes::UTILISATION_UNIT, place.clone(), message);
    let values = || series.samples.iter().map(|sample| sample.1);
    if values().any(|value| value < 0.0) {
        return Some(of(format!("`{}` has values below zero", series.metric)));
    }
    let most = values().fold(0.0, f64::max);
    (series.unit == Unit::Share && most > ABOVE).then(|| {
        of(format!("`{}` is a part of all cores, and goes up to {most}", series.metric)).with_hint(
            "name the unit in the header, as `web (%)` or `web (cores)`, or by `--utilisation-unit`; percent of one core is hundredths of a core",
        )
    })
}

/// Why a file cannot be read.
#[derive(Debug)]
struct Fault {
    line: Option<u32>,
    /// Whether it is about a unit.
    unit: bool,
    message: String,
    hint: &'static str,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { line: None, unit: false, message: message.into(), hint: "" }
    }

    fn at(self, line: u64) -> Self {
        Self { line: u32::try_from(line).ok(), ..self }
    }

    /// A unit is not known.
    fn no_unit(metric: &str) -> Self {
        let hint = "name it in the header, as `web (%)` or `web (cores)`, or by `--utilisation-unit`";
        Self { unit: true, hint, ..Self::new(format!("the unit of `{metric}` is not known")) }
    }
}

/// What a file tells.
type Found = Result<Metrics, Fault>;
