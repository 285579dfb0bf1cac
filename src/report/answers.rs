//! Answers to queries as text, CSV, JSON and JSON lines. Scripts rely on the names of columns and keys.

mod kept;

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::datalog::base::Type;
use crate::query::{Asked, Cell, Scope, Told, schema};
use crate::report::Look;
use crate::report::parquet::{Kind, Parquet};
use crate::report::table::Table;
use crate::trace::quality::QualityReport;

pub use kept::Kept;

/// A row of an answer that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Scenario and run, where the scope is an operation.
    pub operation: Option<(String, String)>,
    /// The values.
    pub cells: Vec<Cell<'static>>,
}

impl Row {
    /// Of what is given out.
    pub fn of(operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> Self {
        let owned = |cell: &Cell<'_>| match cell {
            Cell::Whole(number) => Cell::Whole(*number),
            Cell::Float(number) => Cell::Float(*number),
            Cell::Text(text) => Cell::Text(text.to_string().into()),
        };
        let operation = operation.map(|(scenario, run)| (scenario.to_owned(), run.to_owned()));
        Self { operation, cells: cells.iter().map(owned).collect() }
    }

    /// The value of a column among those that are shown: scenario and run first, where the scope is an operation.
    pub fn at(&self, column: usize) -> Cell<'_> {
        let keys = if self.operation.is_some() { 2 } else { 0 };
        match (&self.operation, column) {
            (Some((scenario, _)), 0) => Cell::Text(scenario.as_str().into()),
            (Some((_, run)), 1) => Cell::Text(run.as_str().into()),
            _ => self.cells[column - keys].clone(),
        }
    }

    /// What it takes in memory, in bytes, and as much again for what is written of it.
    pub fn bytes(&self) -> usize {
        let text = |text: &str| text.len() + 16;
        let cell = |cell: &Cell<'_>| size_of::<Cell<'_>>() + if let Cell::Text(own) = cell { text(own) } else { 0 };
        let key = self.key().map_or(0, |(scenario, run)| text(scenario) + text(run));
        2 * (size_of::<Self>() + 16 + key + self.cells.iter().map(cell).sum::<usize>())
    }

    fn key(&self) -> Option<(&str, &str)> {
        self.operation.as_ref().map(|(scenario, run)| (&**scenario, &**run))
    }
}

/// The names of the columns: scenario and run first, where the scope is an operation.
pub fn columns(asked: &Asked, scope: Scope) -> Vec<String> {
    let own = asked.columns.iter().map(|column| {
        let taken = scope == Scope::Operation && matches!(&*column.name, "scenario" | "run");
        if taken { format!("{}_2", column.name) } else { column.name.to_string() }
    });
    let key: &[&str] = if scope == Scope::Operation { &["scenario", "run"] } else { &[] };
    key.iter().map(|name| (*name).to_owned()).chain(own).collect()
}

/// How a value is written in text and CSV. Very large and very small numbers have an exponent.
pub fn written(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Whole(number) => number.to_string(),
        Cell::Float(number) if *number == 0.0 || (1e-6..1e16).contains(&number.abs()) => number.to_string(),
        Cell::Float(number) => format!("{number:e}"),
        Cell::Text(text) => text.to_string(),
    }
}

fn value(cell: &Cell<'_>) -> Value {
    match cell {
        Cell::Whole(number) => json!(number),
        Cell::Float(number) => json!(number),
        Cell::Text(text) => json!(text),
    }
}

/// A row as an object, by the names of the columns.
fn object(columns: &[String], operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> Map<String, Value> {
    let key = operation.into_iter().flat_map(|(scenario, run)| [json!(scenario), json!(run)]);
    columns.iter().cloned().zip(key.chain(cells.iter().map(value))).collect()
}

/// The cells of a row, scenario and run among them.
pub fn with_key<'r>(
    operation: Option<(&'r str, &'r str)>,
    cells: &'r [Cell<'_>],
) -> impl Iterator<Item = Cell<'r>> + 'r {
    let key = operation.into_iter().flat_map(|(scenario, run)| [scenario, run]);
    let own = cells.iter().map(|cell| match cell {
        Cell::Whole(number) => Cell::Whole(*number),
        Cell::Float(number) => Cell::Float(*number),
        Cell::Text(text) => Cell::Text(Cow::Borrowed(text)),
    });
    key.map(|text| Cell::Text(Cow::Borrowed(text))).chain(own)
}

/// A relation as a table of Parquet. A column has numbers where its type has nothing else, or where it numbers what has no name;
/// attributes, which may be anything, are texts.
pub fn parquet(asked: &Asked, scope: Scope) -> Parquet {
    let columns = columns(asked, scope);
    let keys = columns.len() - asked.columns.len();
    let own = asked.columns.iter().map(|column| match column.kind {
        Type::Integer | schema::MATCH | schema::MESSAGE | schema::INTERACTION => Kind::Whole,
        Type::Number => Kind::Float,
        _ => Kind::Text,
    });
    let kinds = std::iter::repeat_n(Kind::Text, keys).chain(own);
    Parquet::new(columns.into_iter().zip(kinds).collect())
}

/// Writes the header of a relation as CSV.
///
/// # Errors
/// When the output fails.
pub fn csv_header(out: &mut dyn Write, columns: &[String]) -> io::Result<()> {
    csv_row(out, columns.iter().map(String::as_str))
}

/// Writes a row as CSV.
///
/// # Errors
/// When the output fails.
pub fn csv(out: &mut dyn Write, operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> io::Result<()> {
    let texts: Vec<String> = cells.iter().map(written).collect();
    let key = operation.into_iter().flat_map(|(scenario, run)| [scenario, run]);
    csv_row(out, key.chain(texts.iter().map(String::as_str)))
}

fn csv_row<'t>(out: &mut dyn Write, fields: impl Iterator<Item = &'t str>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let fields: Vec<&str> = fields.collect();
    // A relation without columns holds or not: its row is an empty field.
    writer.write_record(if fields.is_empty() { vec![""] } else { fields }).map_err(io::Error::other)?;
    let line = writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    out.write_all(&line)
}

/// Writes a row as a line of JSON, with the name of its relation.
///
/// # Errors
/// When the output fails.
pub fn json_line(
    out: &mut dyn Write,
    relation: &str,
    columns: &[String],
    operation: Option<(&str, &str)>,
    cells: &[Cell<'_>],
) -> io::Result<()> {
    let row = object(columns, operation, cells);
    writeln!(out, "{}", json!({ "relation": relation, "row": row }))
}

/// A table of a relation's rows.
pub fn text(asked: &Asked, scope: Scope, rows: &[Row], look: impl Into<Look>) -> String {
    let numbers = |place: usize| match asked.columns.get(place).map(|column| column.kind) {
        Some(Type::Integer | Type::Number) => true,
        Some(Type::Any) => rows.iter().all(|row| !matches!(row.cells[place], Cell::Text(_))),
        _ => false,
    };
    let columns = columns(asked, scope);
    let keys = columns.len() - asked.columns.len();
    let headings: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let heading = name.to_uppercase();
            if place >= keys && numbers(place - keys) { format!(">{heading}") } else { heading }
        })
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    if headings.is_empty() {
        return if rows.is_empty() { "does not hold\n".to_owned() } else { "holds\n".to_owned() };
    }
    let mut table = Table::new(&headings);
    for row in rows {
        let key = row.key().into_iter().flat_map(|(scenario, run)| [scenario.to_owned(), run.to_owned()]);
        table.row(key.chain(row.cells.iter().map(written)).collect::<Vec<String>>());
    }
    table.render(look.into())
}

/// Writes a document of all relations, with how many operations were asked about: row by row, since there may be many.
///
/// # Errors
/// When the output fails.
pub fn json(
    out: &mut dyn Write,
    asked: &[Asked],
    scope: Scope,
    rows: &[Vec<Row>],
    told: &Told,
    quality: &QualityReport,
) -> io::Result<()> {
    let mut document = json!({
        "dyelog-query": 1,
        "scope": match scope {
            Scope::Operation => "operation",
            Scope::Trace => "trace",
            Scope::Messages => "messages",
        },
    });
    if scope == Scope::Messages {
        document["messages"] = json!(told.messages);
    } else {
        document["operations"] = operations(told, quality);
    }
    open_list(out, &document, 0, "relations")?;
    for (place, (asked, rows)) in asked.iter().zip(rows).enumerate() {
        let columns = columns(asked, scope);
        next_of_list(out, place, 2)?;
        open_list(out, &json!({ "name": &*asked.name, "columns": columns }), 2, "rows")?;
        for (place, row) in rows.iter().enumerate() {
            next_of_list(out, place, 4)?;
            out.write_all(indented(&Value::Object(object(&columns, row.key(), &row.cells)), 4).as_bytes())?;
        }
        close_list(out, rows.is_empty(), 2)?;
    }
    close_list(out, asked.is_empty(), 0)?;
    writeln!(out)
}

/// Two spaces for each level.
fn margin(level: usize) -> String {
    "  ".repeat(level)
}

/// A value over several lines, the first of which stands where it is written.
fn indented(value: &Value, level: usize) -> String {
    // No text has a line break of its own: JSON escapes it.
    format!("{value:#}").replace('\n', &format!("\n{}", margin(level)))
}

/// Writes an object without its end, and the beginning of a list as its last value.
fn open_list(out: &mut dyn Write, object: &Value, level: usize, name: &str) -> io::Result<()> {
    let text = indented(object, level);
    let open = text.strip_suffix('}').unwrap_or(&text).trim_end();
    write!(out, "{open},\n{}\"{name}\": [", margin(level + 1))
}

fn next_of_list(out: &mut dyn Write, place: usize, level: usize) -> io::Result<()> {
    write!(out, "{}\n{}", if place > 0 { "," } else { "" }, margin(level))
}

/// Writes the end of the list and of the object that it is the last value of.
fn close_list(out: &mut dyn Write, is_empty: bool, level: usize) -> io::Result<()> {
    if !is_empty {
        write!(out, "\n{}", margin(level + 1))?;
    }
    write!(out, "]\n{}}}", margin(level))
}

/// How many operations were asked about, and which were not.
fn operations(told: &Told, quality: &QualityReport) -> Value {
    json!({
        "asked": told.operations,
        "restored": quality.restored + told.restored,
        "set_aside": quality.set_aside,
    })
}
