//! Prometheus: results of its HTTP API, and text as it is scraped.

use indexmap::IndexMap;
use serde::Deserialize;

use crate::model::utilisation::{Metrics, Series};
use crate::pipeline::utilisation::capacity::Counted;
use crate::pipeline::utilisation::metric::{Known, counts, known, mode, resources, unit_of};
use crate::pipeline::utilisation::{Exposed, Exposition, Fault, Found, ValueUnit, requests, time};

/// The labels of a series, in the order in which they are written.
type Labels = IndexMap<String, String>;

/// A metric's name and labels.
type Key = (String, Vec<(String, String)>);

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    metric: Labels,
    #[serde(default)]
    values: Vec<(f64, String)>,
    value: Option<(f64, String)>,
}

/// Reads the answer to a query.
pub(super) fn read_query(text: &str, unit: Option<ValueUnit>) -> Found {
    let answer: Answer = serde_json::from_str(text).map_err(|error| {
        let fault = Fault::new(format!("this is neither an answer of Prometheus nor OTLP metrics: {error}"));
        fault.at(error.line() as u64)
    })?;
    let (mut found, mut counted) = (Metrics::default(), Counted::default());
    for row in answer.data.result {
        let mut labels = row.metric;
        let name = labels.shift_remove("__name__").unwrap_or_default();
        let all = row.values.into_iter().chain(row.value);
        let samples =
            all.filter_map(|(time, value)| Some((time, value.parse().ok().filter(|value: &f64| value.is_finite())?)));
        let samples: Vec<(f64, f64)> = samples.collect();
        let last = samples.last().map_or(f64::NAN, |sample| sample.1);
        let of = labels.iter().map(|(name, value)| (&**name, &**value));
        if let Some(known) = requests::known(&name, false) {
            found.requests.extend(requests::series(&name, known, &of, samples));
        } else if !counted.take(&name, &of, last) {
            found.series.extend(series(&name, &labels, samples, unit)?);
        }
    }
    found.cores = counted.finish();
    Ok(found)
}

/// A series, where it counts.
fn series(
    name: &str,
    labels: &Labels,
    samples: Vec<(f64, f64)>,
    unit: Option<ValueUnit>,
) -> Result<Option<Series>, Fault> {
    let of = || labels.iter().map(|(name, value)| (&**name, &**value));
    let unit = match (known(name, ""), unit) {
        (Known::Other, _) => return Ok(None),
        (Known::Utilisation(own), _) => own,
        (Known::Unknown, Some(unit)) => unit,
        (Known::Unknown, None) => return Err(Fault::no_unit(if name.is_empty() { "the values" } else { name })),
    };
    if !counts(name, of()) {
        return Ok(None);
    }
    let (unit, factor) = unit_of(name, unit, of()).scale();
    let samples = samples.into_iter().map(|(time, value)| (time, value * factor)).collect();
    let (file, metric) = ("".into(), name.to_owned());
    Ok(Some(Series { file, metric, resources: resources(&of()), mode: mode(of()), unit, samples }))
}

/// Whether a text is what is scraped: comments on metrics, or a name with labels and a value.
pub(super) fn is_exposition(text: &str) -> bool {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.starts_with("# HELP") || line.starts_with("# TYPE") || line.starts_with("# UNIT") || sample(line).is_some()
}

/// Reads what was scraped, once or several times, with its times.
pub(super) fn read_text(text: &str, unit: Option<ValueUnit>) -> Found {
    let mut counted = Counted::default();
    let mut gathered: IndexMap<Key, Vec<(f64, f64)>> = IndexMap::new();
    let mut without_time = None;
    for (number, line) in (1_u64..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, labels, value, at)) = sample(line) else {
            return Err(
                Fault::new("this is no line of Prometheus' text: `name{label=\"value\"} number time`").at(number)
            );
        };
        let of = labels.iter().map(|(name, value)| (&**name, &**value));
        let of_use = requests::known(name, false).is_some() || known(name, "") != Known::Other;
        if counted.take(name, &of, value) || !of_use {
            continue;
        }
        match at {
            Some(at) if value.is_finite() => {
                let key = (name.to_owned(), labels.into_iter().collect());
                gathered.entry(key).or_default().push((at, value));
            }
            Some(_) => {}
            None => without_time = without_time.or(Some(number)),
        }
    }
    let mut found = Metrics { cores: counted.finish(), ..Metrics::default() };
    if let (true, Some(line)) = (gathered.is_empty() && found.cores.is_empty(), without_time) {
        let hint = "save several scrapes with their times, or ask the HTTP API for a range: `/api/v1/query_range`";
        return Err(
            Fault { hint, ..Fault::new("values have no times, so that nobody knows when they were measured") }.at(line)
        );
    }
    for ((name, labels), samples) in gathered {
        match requests::known(&name, false) {
            Some(known) => {
                let of = labels.iter().map(|(name, value)| (&**name, &**value));
                found.requests.extend(requests::series(&name, known, &of, samples));
            }
            None => found.series.extend(series(&name, &labels.into_iter().collect(), samples, unit)?),
        }
    }
    Ok(found)
}

/// The lines of what was scraped once.
pub(super) fn exposition(text: &str) -> Exposition {
    let mut found = Exposition::default();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Some((name, labels, value, seconds)) => {
                let (name, labels) = (name.to_owned(), labels.into_iter().collect());
                found.lines.push(Exposed { name, labels, value, seconds });
            }
            None => found.unread = Some(found.unread.map_or((1, number), |(count, first)| (count + 1, first))),
        }
    }
    found
}

/// A line's name, labels, value and time.
fn sample(line: &str) -> Option<(&str, Labels, f64, Option<f64>)> {
    let end = line.find(|character: char| character == '{' || character.is_whitespace())?;
    let name = &line[..end];
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.');
    if name.is_empty() || !name.bytes().all(is_name) || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    let (labels, rest) = match line[end..].strip_prefix('{') {
        Some(rest) => self::labels(rest)?,
        None => (Labels::new(), &line[end..]),
    };
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    let at = match words.next() {
        None | Some("#") => None,
        // Milliseconds in the older form, seconds in OpenMetrics: their sizes tell.
        Some(word) => Some(time::seconds(word, None)?),
    };
    Some((name, labels, value, at))
}

/// The labels behind an opening brace, and what follows the closing one.
fn labels(text: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let mut value = String::new();
        let quoted = after.trim_start().strip_prefix('"')?;
        let mut characters = quoted.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.trim().to_owned(), value);
        rest = quoted[end + 1..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
}
