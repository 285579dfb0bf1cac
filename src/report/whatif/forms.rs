//! Sweeps as text, CSV and JSON.

use serde_json::{Value as Json, json};

use crate::diagnostic::quantity::{for_people, number};
use crate::model::parameter::Value;
use crate::report::csv::Rows;
use crate::report::json::{ends, pretty, value};
use crate::report::look::Look;
use crate::report::table::Table as Drawn;
use crate::report::validation::between;
use crate::report::whatif::VERSION;
use crate::study::sweep::{Point, State, Table};

/// Intervals that are so narrow, as a part of the figure to both sides, are left out of the text (ours): the digits of figures are about as sure.
const NARROW: f64 = 0.005;

/// A table for people.
pub fn text(table: &Table, look: Look) -> String {
    let mut headings = Vec::new();
    if table.subjects.len() > 1 {
        headings.push("MODEL".to_owned());
    }
    for axis in &table.axes {
        let (_, unit) = for_people(axis.kind.unit());
        headings.push(if unit.is_empty() { format!(">{}", axis.path) } else { format!(">{} ({unit})", axis.path) });
    }
    headings.extend(table.measures.iter().map(|measure| format!(">{measure} ({})", for_people(measure.unit()).1)));
    headings.push("STATE".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut drawn = Drawn::new(&headings);
    for point in &table.points {
        let mut cells: Vec<String> = Vec::new();
        if table.subjects.len() > 1 {
            cells.push(table.subjects[point.subject].clone());
        }
        cells.extend(table.axes.iter().zip(values(table, point)).map(|(axis, value)| match value {
            Value::Number(value) => number(*value * for_people(axis.kind.unit()).0),
            other => other.to_string(),
        }));
        let missing = if point.state == State::Converged { "" } else { "–" };
        for (place, figure) in point.figures.iter().enumerate() {
            let range = point.intervals.get(place).copied().flatten();
            let (scale, _) = for_people(table.measures[place].unit());
            let shown = |value: f64| number(value * scale);
            let told = range.filter(|own| figure.is_some_and(|figure| own.is_wider(figure, NARROW)));
            let range = told.map(|own| format!(" ({})", between(own, shown))).unwrap_or_default();
            cells.push(figure.map_or_else(|| missing.to_owned(), |figure| shown(figure) + &range));
        }
        // Nothing to say of those that are as they should be.
        cells.push(if point.state == State::Converged { String::new() } else { point.state.word().to_uppercase() });
        drawn.row(cells);
    }
    drawn.render(look)
}

/// Whether a figure of the point has an interval.
fn has_interval(point: &Point) -> bool {
    point.intervals.iter().any(Option::is_some)
}

/// The values of a point's parameters.
fn values<'t>(table: &'t Table, point: &'t Point) -> impl Iterator<Item = &'t Value> {
    table.axes.iter().zip(&point.at).map(|(axis, at)| &axis.values[*at])
}

/// A row each point: the subject where there are several, the parameters by their paths, the figures by their names, and
/// `state`, which is `converged`, `backlog grows`, `not converged` or `failed`. Of a calibrated model and of traces each figure has `FIGURE.low` and `FIGURE.high` behind all figures, empty where there is no interval, and `inf` for an upper end that is not known. Seconds and per second, with all digits.
pub fn csv(table: &Table) -> String {
    let mut header = Vec::new();
    if table.subjects.len() > 1 {
        header.push("model".to_owned());
    }
    header.extend(table.axes.iter().map(|axis| axis.path.clone()));
    header.extend(table.measures.iter().map(ToString::to_string));
    let has_intervals = table.points.iter().any(has_interval);
    if has_intervals {
        header.extend(table.measures.iter().flat_map(|own| [format!("{own}.low"), format!("{own}.high")]));
    }
    header.push("state".to_owned());
    let mut rows = Rows::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for point in &table.points {
        let mut fields: Vec<String> = Vec::new();
        if table.subjects.len() > 1 {
            fields.push(table.subjects[point.subject].clone());
        }
        fields.extend(values(table, point).map(ToString::to_string));
        fields.extend(point.figures.iter().map(|figure| figure.map(|figure| figure.to_string()).unwrap_or_default()));
        if has_intervals {
            for place in 0..table.measures.len() {
                let own = point.intervals.get(place).copied().flatten();
                let ends = own.map(|own| [own.low.to_string(), own.high.to_string()]);
                fields.extend(ends.unwrap_or_default());
            }
        }
        fields.push(point.state.word().to_owned());
        rows.add(&fields.iter().map(String::as_str).collect::<Vec<_>>());
    }
    rows.finish()
}

/// One JSON document, ending in a newline: `{"dyelog-sweep": 1, "parameters": [{"path", "unit", "values"}], "figures":
/// [{"name", "unit"}], "models": […], "points": [{"model", "at": [positions], "values": […], "figures": […], "state",
/// "reason"}]}`. Points of a calibrated model and of traces have `"intervals": [[low, high]]` as well, one a figure, null where there is none; an upper end that is not known is null.
pub fn json(table: &Table) -> String {
    let axes = table.axes.iter().map(|axis| {
        json!({ "path": axis.path, "unit": axis.kind.unit(), "values": axis.values.iter().map(value).collect::<Json>() })
    });
    let measures = table.measures.iter().map(|measure| json!({ "name": measure.to_string(), "unit": measure.unit() }));
    let points = table.points.iter().map(|point| {
        let mut document = json!({
            "model": table.subjects[point.subject],
            "at": point.at,
            "values": values(table, point).map(value).collect::<Json>(),
            "figures": point.figures,
            "state": point.state.word(),
        });
        if let (true, Json::Object(document)) = (has_interval(point), &mut document) {
            document.insert("intervals".into(), point.intervals.iter().copied().map(ends).collect());
        }
        if let (Some(reason), Json::Object(document)) = (point.state.reason(), &mut document) {
            document.insert("reason".into(), json!(reason));
        }
        document
    });
    pretty(&json!({
        "dyelog-sweep": VERSION,
        "models": table.subjects,
        "parameters": axes.collect::<Json>(),
        "figures": measures.collect::<Json>(),
        "points": points.collect::<Json>(),
    }))
}
