//! Which column of a table means what, as a file says.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::columns::Column;
use crate::codes;
use crate::messages::row::Delimiter;
use crate::spans::model::SpanKind;
use crate::spans::time::from_rfc3339;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, similar};

/// How the columns of a table of spans are read: their names, the units and the epoch of times, how roots are marked, and how the side
/// of a call is marked.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMapping {
    name: Arc<str>,
    pub(super) columns: Vec<(Column, String)>,
    /// Units of times and durations, in nanoseconds.
    pub(super) units: [Option<i64>; 4],
    /// What times count from, in nanoseconds from the Unix epoch.
    pub(super) epoch: i64,
    pub(super) roots: Vec<String>,
    pub(super) absent: Vec<String>,
    pub(super) delimiter: Option<Delimiter>,
    pub(super) header: bool,
    pub(super) kinds: Vec<(String, SpanKind)>,
    pub(super) side: Side,
    /// Whether it ships. Tables may lack what it names besides.
    shipped: bool,
}

/// What tells the side of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    /// Kinds, or nothing.
    #[default]
    Kind,
    /// A row below one of another instance is the server, that one with the same name the client.
    Instance,
    /// The same of services.
    Service,
}

/// Mappings that ship.
const PRESETS: [(&str, &str); 5] = [
    ("deeptralog", include_str!("presets/deeptralog.toml")),
    ("nezha", include_str!("presets/nezha.toml")),
    ("alibaba-2021", include_str!("presets/alibaba-2021.toml")),
    ("alibaba-2022", include_str!("presets/alibaba-2022.toml")),
    ("clickhouse", include_str!("presets/clickhouse.toml")),
];

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    columns: BTreeMap<String, toml::Value>,
    #[serde(default)]
    units: BTreeMap<String, String>,
    epoch: Option<String>,
    #[serde(default)]
    roots: Vec<String>,
    #[serde(default)]
    absent: Vec<String>,
    separator: Option<String>,
    header: Option<bool>,
    #[serde(default)]
    kinds: BTreeMap<String, String>,
    #[serde(default)]
    side: Side,
}

/// What columns are called in the file.
const COLUMNS: [(&str, Column); 22] = [
    ("trace", Column::Trace),
    ("span", Column::Span),
    ("parent", Column::Parent),
    ("service", Column::Service),
    ("instance", Column::Instance),
    ("host", Column::Host),
    ("name", Column::Name),
    ("kind", Column::Kind),
    ("peer", Column::Peer),
    ("start", Column::Start),
    ("end", Column::End),
    ("duration", Column::Duration),
    ("status", Column::Status),
    ("cpu", Column::Cpu),
    ("component", Column::Component),
    ("weight", Column::Weight),
    ("state", Column::State),
    ("attributes", Column::Attributes),
    ("resource", Column::Resource),
    ("path", Column::Path),
    ("caller", Column::Caller),
    ("callee", Column::Callee),
];

/// What has a unit: start, end, duration and CPU time, in this order; `time` is the first three.
const TIMES: [&str; 4] = ["start", "end", "duration", "cpu"];

const UNITS: [(&str, i64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

impl TableMapping {
    /// The names of the mappings that ship.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// One of the mappings that ship.
    ///
    /// # Panics
    /// Never: a test holds that they are sound.
    pub fn preset(name: &str) -> Option<Self> {
        let (name, text) = PRESETS.iter().find(|(own, _)| *own == name)?;
        Some(Self { shipped: true, ..Self::parse(name, text).expect("the mappings that ship are sound") })
    }

    /// The mapping that a file in TOML describes.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let fault = |message: String| Diagnostic::error(codes::BAD_MAPPING, Place::File { file: file.into() }, message);
        let written: Written = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
            let place = Place::Line { file: file.into(), line: u32::try_from(line).unwrap_or(u32::MAX), column: 0 };
            Diagnostics::from(Diagnostic::error(codes::BAD_MAPPING, place, error.message().to_owned()))
        })?;
        let mut found = Vec::new();
        let mut columns = Vec::new();
        for (name, place) in &written.columns {
            match COLUMNS.iter().find(|(known, _)| known == name) {
                Some((_, column)) => match place {
                    toml::Value::String(name) => columns.push((*column, name.clone())),
                    toml::Value::Integer(number) => columns.push((*column, number.to_string())),
                    _ => found.push(fault(format!("the column `{name}` is given neither by a name nor by a number"))),
                },
                None => {
                    found.push(unknown(fault(format!("a table has no column `{name}`")), name, COLUMNS.map(|it| it.0)));
                }
            }
        }
        let mut units = [None; 4];
        for (name, unit) in &written.units {
            let Some((_, unit)) = UNITS.iter().find(|(known, _)| known == unit) else {
                found.push(
                    fault(format!("`{unit}` is no unit of time")).with_hint("the units are `s`, `ms`, `us` and `ns`"),
                );
                continue;
            };
            match TIMES.iter().position(|known| known == name) {
                Some(place) => units[place] = Some(*unit),
                // It comes last in their order, and gives way to what is said of one.
                None if name == "time" => units[..3].iter_mut().for_each(|own| *own = own.or(Some(*unit))),
                None => found.push(unknown(fault(format!("`{name}` has no unit")), name, TIMES)),
            }
        }
        let epoch = written.epoch.as_deref().map_or(Some(0), from_rfc3339);
        if epoch.is_none() {
            found.push(
                fault("the epoch is no date and time".to_owned()).with_hint("write it as `2022-08-23T00:00:00Z`"),
            );
        }
        let delimiter = match written.separator.as_deref() {
            None => None,
            Some(" ") => Some(Delimiter::White),
            Some(text) => match text.as_bytes() {
                [byte] if byte.is_ascii() && *byte != b'"' => Some(Delimiter::Byte(*byte)),
                _ => {
                    found.push(fault("the separator is not one character".to_owned()));
                    None
                }
            },
        };
        let header = written.header.unwrap_or(true);
        if !header && columns.iter().any(|(_, place)| !place.parse::<usize>().is_ok_and(|place| place > 0)) {
            found.push(
                fault("a table without a header has no names of columns".to_owned())
                    .with_hint("give their numbers, from 1 on"),
            );
        }
        let mut kinds = Vec::new();
        for (value, kind) in written.kinds {
            match SpanKind::parse(&kind) {
                SpanKind::Unspecified => found.push(
                    fault(format!("`{kind}` is no kind of spans"))
                        .with_hint("the kinds are `server`, `client`, `producer`, `consumer` and `internal`"),
                ),
                kind => kinds.push((value, kind)),
            }
        }
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        Ok(Self {
            name: file.into(),
            columns,
            units,
            epoch: epoch.unwrap_or(0),
            roots: written.roots,
            absent: written.absent,
            delimiter,
            header,
            kinds,
            side: written.side,
            shipped: false,
        })
    }

    /// Its name, or that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a table may do without a column that it names.
    pub(super) fn may_lack(&self, column: Column) -> bool {
        self.shipped && matches!(column, Column::Component | Column::State | Column::Attributes | Column::Resource)
    }

    /// The mapping that ships, all of whose columns a header has.
    pub(super) fn fitting(header: &[String]) -> Option<Self> {
        let all = PRESETS.iter().filter_map(|(name, _)| Self::preset(name));
        let has = |own: &Self| own.columns.iter().all(|(column, name)| own.may_lack(*column) || header.contains(name));
        let mut fitting = all.filter(has);
        fitting.next()
    }
}

fn unknown<const N: usize>(finding: Diagnostic, name: &str, known: [&'static str; N]) -> Diagnostic {
    match similar(name, known) {
        Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
        None => finding.with_note(format!("these are known: `{}`", known.join("`, `"))),
    }
}
