//! Which column of a table is what.

use std::sync::Arc;

use crate::messages::at;
use crate::messages::row::{Delimiter, Row};
use crate::{Format, codes};
use dyelog_diagnostic::{Diagnostic, similar};

/// What a column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Sender,
    Receiver,
    Time,
    Sent,
    Message,
    Id,
    SenderThread,
    ReceiverThread,
    Event,
    Process,
    Peer,
    Thread,
}

/// How many there are.
pub const COLUMNS: usize = 12;

/// Names that columns have in the field, without case, `_` being a space.
const NAMES: [(&str, Column); 41] = [
    ("sender", Column::Sender),
    ("from", Column::Sender),
    ("caller", Column::Sender),
    ("source", Column::Sender),
    ("src", Column::Sender),
    ("receiver", Column::Receiver),
    ("to", Column::Receiver),
    ("callee", Column::Receiver),
    ("destination", Column::Receiver),
    ("dest", Column::Receiver),
    ("dst", Column::Receiver),
    ("target", Column::Receiver),
    ("time", Column::Time),
    ("timestamp", Column::Time),
    ("ts", Column::Time),
    ("received", Column::Time),
    ("receive time", Column::Time),
    ("sent", Column::Sent),
    ("send time", Column::Sent),
    ("message", Column::Message),
    ("message type", Column::Message),
    ("messagetype", Column::Message),
    ("msg", Column::Message),
    ("label", Column::Message),
    ("operation", Column::Message),
    ("id", Column::Id),
    ("message id", Column::Id),
    ("messageid", Column::Id),
    ("correlation id", Column::Id),
    ("sender thread", Column::SenderThread),
    ("receiver thread", Column::ReceiverThread),
    ("event", Column::Event),
    ("direction", Column::Event),
    ("event type", Column::Event),
    ("eventtype", Column::Event),
    ("process", Column::Process),
    ("task", Column::Process),
    ("component", Column::Process),
    ("peer", Column::Peer),
    ("partner", Column::Peer),
    ("thread", Column::Thread),
];

/// Units of time, and how many make a second.
const UNITS: [(&str, f64); 6] = [("s", 1.0), ("sec", 1.0), ("ms", 1e3), ("us", 1e6), ("µs", 1e6), ("ns", 1e9)];

/// In which units times are: how many make a second, where the name of the column tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    time: Option<f64>,
    sent: Option<f64>,
}

impl Units {
    /// Notes that of a column.
    pub fn set(&mut self, column: Column, unit: f64) {
        *(if column == Column::Sent { &mut self.sent } else { &mut self.time }) = Some(unit);
    }

    /// That of a column: its own, else that of the other one, else seconds.
    pub fn of(&self, column: Column) -> f64 {
        let (own, other) = if column == Column::Sent { (self.sent, self.time) } else { (self.time, self.sent) };
        own.or(other).unwrap_or(1.0)
    }
}

/// Where each column stands, and in which units times are.
#[derive(Clone, Debug)]
pub struct Columns {
    places: [Option<usize>; COLUMNS],
    /// The units of times.
    pub units: Units,
    /// Columns that mean nothing here.
    pub unknown: Vec<String>,
}

impl Columns {
    /// Where a column stands.
    #[inline]
    pub fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    /// Those of JSON objects: every column stands at its own number.
    pub fn of_json() -> Self {
        Self { places: std::array::from_fn(Some), units: Units::default(), unknown: Vec::new() }
    }

    /// Reads the header of a table.
    pub fn of_header(
        file: &Arc<str>,
        line: u32,
        header: &str,
        delimiter: Delimiter,
        format: Format,
    ) -> Result<Self, Diagnostic> {
        let mut columns = Self { places: [None; COLUMNS], units: Units::default(), unknown: Vec::new() };
        for (place, name) in header_names(header, delimiter).into_iter().enumerate() {
            match column_of(&name) {
                Some((column, unit)) if columns.places[column as usize].is_none() => {
                    columns.places[column as usize] = Some(place);
                    if let Some(unit) = unit {
                        columns.units.set(column, unit);
                    }
                }
                Some(_) | None => columns.unknown.push(name),
            }
        }
        let needed = needed(format);
        let missing: Vec<&str> =
            needed.iter().filter(|(_, column)| columns.place(*column).is_none()).map(|(name, _)| *name).collect();
        if missing.is_empty() {
            return Ok(columns);
        }
        let message = format!("the table has no column {}", quoted(&missing));
        let mut finding = Diagnostic::error(codes::NO_COLUMN, at(file, line), message)
            .with_note(format!("the first line must name the columns; needed are {}", quoted(&needed.map_names())));
        let known =
            columns.unknown.iter().find_map(|name| similar(name, missing.iter().copied()).map(|near| (name, near)));
        if let Some((name, near)) = known {
            finding = finding.with_hint(format!("did you mean `{near}` by `{name}`?"));
        }
        Err(finding)
    }
}

trait MapNames {
    fn map_names(&self) -> Vec<&'static str>;
}

impl MapNames for &[(&'static str, Column)] {
    fn map_names(&self) -> Vec<&'static str> {
        self.iter().map(|(name, _)| *name).collect()
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The column of a name and, for a time, its unit: `time_us`, `time (ms)`.
pub fn column_of(name: &str) -> Option<(Column, Option<f64>)> {
    let plain = name.trim().to_lowercase().replace(['_', '-'], " ");
    let find = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
    if let Some(column) = find(&plain) {
        return Some((column, None));
    }
    let (name, unit) = plain.trim_end_matches([')', ']']).rsplit_once([' ', '(', '['])?;
    let (_, unit) = UNITS.iter().find(|(known, _)| *known == unit.trim())?;
    let column = find(name.trim_end_matches([' ', '(', '[']))?;
    matches!(column, Column::Time | Column::Sent).then_some((column, Some(*unit)))
}

/// The names in a header; in aligned text `Message Type` is one.
fn header_names(header: &str, delimiter: Delimiter) -> Vec<String> {
    let mut row = Row::default();
    row.split(header, delimiter);
    let mut names: Vec<String> = (0..row.len()).map(|place| row.get(header, place).to_owned()).collect();
    if delimiter == Delimiter::White
        && let Some(place) = names.windows(2).position(|two| {
            two[0].eq_ignore_ascii_case("message")
                && (two[1].eq_ignore_ascii_case("type") || two[1].eq_ignore_ascii_case("id"))
        })
    {
        let second = names.remove(place + 1);
        names[place] = format!("{} {second}", names[place]);
    }
    names
}

/// Whether a first line is the header of a table of messages or of events.
pub fn format_of_header(header: &str) -> Option<Format> {
    let found: Vec<Column> = header_names(header, Delimiter::of(header))
        .iter()
        .filter_map(|name| column_of(name).map(|(column, _)| column))
        .collect();
    let has = |columns: &[Column]| columns.iter().all(|column| found.contains(column));
    if has(&[Column::Event, Column::Process, Column::Time]) {
        Some(Format::Events)
    } else if has(&[Column::Sender, Column::Receiver, Column::Time]) {
        Some(Format::Messages)
    } else {
        near_format(header, &found)
    }
}

/// The format whose header a first line is but for one column, if a name in it is close to that column's. The reader then says so.
fn near_format(header: &str, found: &[Column]) -> Option<Format> {
    let names = header_names(header, Delimiter::of(header));
    let near = |format: Format| {
        let mut missing = needed(format).iter().filter(|(_, column)| !found.contains(column));
        let (Some((name, _)), None) = (missing.next(), missing.next()) else { return false };
        let mut unknown = names.iter().filter(|own| column_of(own).is_none());
        unknown.any(|own| similar(own, [*name]).is_some())
    };
    [Format::Events, Format::Messages].into_iter().find(|format| near(*format))
}

/// The columns that there must be.
fn needed(format: Format) -> &'static [(&'static str, Column)] {
    match format {
        Format::Events => &[("time", Column::Time), ("event", Column::Event), ("process", Column::Process)],
        _ => &[("sender", Column::Sender), ("receiver", Column::Receiver), ("time", Column::Time)],
    }
}
