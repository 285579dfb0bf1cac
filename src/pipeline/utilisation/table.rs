//! Utilisation as CSV: a column a resource, or a row each resource and time.

use indexmap::IndexMap;

use crate::model::utilisation::{Metrics, Series, Unit};
use crate::pipeline::utilisation::requests::{self, Growth};
use crate::pipeline::utilisation::{Fault, Found, ValueUnit, time};

/// Endings of headings that tell a unit.
const UNITS: [(&str, ValueUnit); 13] = [
    ("millicores", ValueUnit::Millicores),
    ("mcores", ValueUnit::Millicores),
    ("mcpu", ValueUnit::Millicores),
    ("cores", ValueUnit::Cores),
    ("percent", ValueUnit::Percent),
    ("pct", ValueUnit::Percent),
    ("%", ValueUnit::Percent),
    ("ratio", ValueUnit::Ratio),
    ("seconds_total", ValueUnit::Seconds),
    ("seconds", ValueUnit::Seconds),
    ("utilisation", ValueUnit::Ratio),
    ("utilization", ValueUnit::Ratio),
    ("busy", ValueUnit::Ratio),
];

/// Headings of a column with names of resources.
const RESOURCE: [&str; 10] =
    ["resource", "processor", "service", "service_name", "name", "host", "container", "pod", "instance", "host_name"];

/// Headings of values, beside those that begin with a name.
const VALUE: [&str; 3] = ["value", "usage", "cpu"];

/// What a column is.
enum Column {
    Time(Option<f64>),
    Resource,
    /// Of a resource, where the heading names one.
    Value(String, Option<ValueUnit>),
    /// Requests that a service served.
    Requests(String, Growth),
}

/// Reads a table.
pub(super) fn read(text: &str, unit: Option<ValueUnit>) -> Found {
    let first = text.lines().next().unwrap_or_default();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|own| first.bytes().filter(|byte| byte == own).count());
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter.unwrap_or(b',')).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| Fault::new(format!("this is no CSV: {error}")))?.clone();
    let columns: Vec<Column> = header.iter().map(column).collect();
    if !columns.iter().any(|own| matches!(own, Column::Time(_))) {
        let hint = "the first line names the columns: `time`, then one for each processor, such as `web (%)`";
        return Err(Fault { hint, ..Fault::new("there is no column `time`") }.at(1));
    }
    let is_long = columns.iter().any(|own| matches!(own, Column::Resource));
    let mut gathered: IndexMap<(String, usize), Series> = IndexMap::new();
    let mut served: IndexMap<(String, usize), Vec<(f64, f64)>> = IndexMap::new();
    for record in reader.records() {
        let record = record.map_err(|error| Fault::new(format!("this is no CSV: {error}")))?;
        let line = record.position().map_or(0, csv::Position::line);
        let (mut at, mut resource) = (None, String::new());
        for (own, field) in columns.iter().zip(&record) {
            match own {
                Column::Time(unit) if at.is_none() => {
                    let wrong = || Fault::new(format!("`{field}` is no time")).at(line);
                    at = Some(time::seconds(field, *unit).ok_or_else(wrong)?);
                }
                Column::Resource if resource.is_empty() => field.trim().clone_into(&mut resource),
                _ => {}
            }
        }
        let Some(at) = at else { continue };
        for (place, (own, field)) in columns.iter().zip(&record).enumerate() {
            let (Column::Value(name, _) | Column::Requests(name, _)) = own else { continue };
            let field = field.trim();
            if field.is_empty() || field.eq_ignore_ascii_case("nan") || field.eq_ignore_ascii_case("null") {
                continue;
            }
            let wrong = || Fault::new(format!("`{field}` is no number")).at(line);
            let (field, unit_of_own) = match field.strip_suffix('%') {
                Some(field) => (field.trim(), Some(ValueUnit::Percent)),
                None => (field, if let Column::Value(_, own) = own { *own } else { None }),
            };
            let value: f64 = field.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(wrong)?;
            let heading = header.get(place).unwrap_or_default();
            let name = if is_long { &resource } else { name };
            if matches!(columns[place], Column::Requests(..)) {
                served.entry((name.clone(), place)).or_default().push((at, value));
                continue;
            }
            let (unit, factor) = unit.or(unit_of_own).ok_or_else(|| Fault::no_unit(heading).at(1))?.scale();
            let series = gathered.entry((name.clone(), place)).or_insert_with(|| empty(heading, name, unit));
            if series.unit != unit {
                return Err(
                    Fault { unit: true, ..Fault::new(format!("values of `{heading}` have several units")) }.at(line)
                );
            }
            series.samples.push((at, value * factor));
        }
    }
    let served = served.into_iter().filter_map(|((name, place), samples)| {
        let Column::Requests(_, growth) = &columns[place] else { return None };
        Some(requests::of_column(header.get(place).unwrap_or_default(), &name, *growth, samples))
    });
    Ok(Metrics { series: gathered.into_values().collect(), requests: served.collect(), ..Metrics::default() })
}

fn empty(heading: &str, name: &str, unit: Unit) -> Series {
    let resources = if name.is_empty() { Vec::new() } else { vec![name.to_owned()] };
    Series { file: "".into(), metric: heading.to_owned(), resources, mode: String::new(), unit, samples: Vec::new() }
}

/// What a heading says.
fn column(heading: &str) -> Column {
    let lower = heading.trim().to_lowercase();
    let word = lower.split(['(', '[', ' ']).next().unwrap_or_default();
    for name in ["timestamp", "time", "date", "ts", "end_s", "start_s"] {
        if let Some(rest) = word.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('_'))
        {
            return Column::Time(time_unit(&lower));
        }
    }
    if RESOURCE.contains(&&*lower) {
        return Column::Resource;
    }
    if let Some((name, growth)) = requests::heading(heading) {
        return Column::Requests(name, growth);
    }
    let mut rest = heading.trim();
    let mut unit = None;
    // A unit may come in brackets behind what the value is: `web utilisation (%)`.
    loop {
        let bare = rest.trim_end_matches([')', ']', ' ', '_', '.', ':']).trim_end();
        let lower = bare.to_lowercase();
        let own = UNITS.iter().find(|(ending, _)| lower.ends_with(ending));
        let cut = match own {
            Some((ending, own)) => {
                unit = unit.or(Some(*own));
                ending.len()
            }
            None => match VALUE.iter().find(|ending| {
                lower == **ending || lower.ends_with(&format!("_{ending}")) || lower.ends_with(&format!(" {ending}"))
            }) {
                Some(ending) => ending.len(),
                None => break,
            },
        };
        // Lower case may be longer or shorter in some languages; then nothing is cut.
        let Some(shorter) = bare.len().checked_sub(cut).and_then(|end| bare.get(..end)) else { break };
        rest = shorter.trim_end_matches(['(', '[', ' ', '_', '.', ':', '-']);
    }
    Column::Value(rest.trim().to_owned(), unit)
}

/// The unit that the heading of times names.
fn time_unit(lower: &str) -> Option<f64> {
    let ends = |unit: &str| lower.ends_with(&format!("_{unit}")) || lower.contains(&format!("({unit})"));
    [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
        .into_iter()
        .find(|(unit, _)| ends(unit))
        .map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::model::utilisation::Unit;
    use crate::pipeline::utilisation::ValueUnit;

    #[test]
    fn headings_tell_resources_and_units() {
        let of = |heading: &str| {
            let found = read(&format!("time_s,{heading}\n0,50\n1,50\n"), None).ok()?.series.remove(0);
            Some((found.resources.first().cloned().unwrap_or_default(), found.unit, found.samples[0].1))
        };
        assert_eq!(of("utilisation"), Some((String::new(), Unit::Share, 50.0)));
        assert_eq!(of("web (%)"), Some(("web".to_owned(), Unit::Share, 0.5)));
        assert_eq!(of("web_utilization_percent"), Some(("web".to_owned(), Unit::Share, 0.5)));
        assert_eq!(of("web cpu [millicores]"), Some(("web".to_owned(), Unit::Cores, 0.05)));
        assert_eq!(of("db_cpu_seconds_total"), Some(("db".to_owned(), Unit::Seconds, 50.0)));
        assert_eq!(of("web"), None);
    }

    #[test]
    fn rows_may_name_their_resource() {
        let text = "time,resource,value\n0,web,0.5\n0,db,0.25\n10,web,0.5\n";
        let found = read(text, Some(ValueUnit::Cores)).expect("it is sound").series;
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].resources[0].as_str(), found[0].samples.len()), ("web", 2));
        let fault = read(text, None).expect_err("no unit");
        assert!(fault.unit, "{}", fault.message);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let fault = read("time,web (%)\n0,50\n1,fifty\n", None).expect_err("no number");
        assert_eq!(fault.line, Some(3));
        assert!(read("web (%)\n50\n", None).is_err());
        assert!(read("", None).is_err());
    }
}
