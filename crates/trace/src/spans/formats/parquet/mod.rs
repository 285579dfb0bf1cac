//! Parquet files: tables of spans, a row a span, and blocks of Tempo, a row a trace.
//!
//! - The columns of the file tell which of the two it is. Columns of tables are known as those of text are ([`table`](super::table));
//!   columns of time bring their units.
//! - The file `meta.json` beside `data.parquet` names the attributes that a block of Tempo keeps in columns of their own ([`tempo`]).
//!
//! Of a large file one row group is in memory as it is packed, and one page of each column unpacked.

mod source;
mod tempo;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use serde_json::Value;

use super::table::Table;
use crate::codes;
use crate::messages::row::Row;
use crate::parquet::{Datum, END, FieldContent, File, Logical, MAGIC, Malformed, Node, Part, Physical, footer};
use crate::read::failed;
use crate::spans::builder::Builder;
use crate::spans::formats::{Content, Piece, SpanFormat};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use source::Source;
use tempo::Dedicated;

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Parquet,
    title: "Parquet",
    content: &[Content::Binary, Content::Json],
    detect: |content, head| match content {
        Content::Binary => head.bytes.starts_with(MAGIC),
        _ => head.has(&["format", "blockID", "tenantID"]),
    },
    read: |builder, input, strict| {
        let name = builder.file.to_string();
        read(builder, vec![Piece { name, input: Box::new(input) }], strict)
    },
    together: Some(read),
};

fn read(builder: &mut Builder<'_>, pieces: Vec<Piece<'_>>, strict: bool) -> Result<(), Diagnostics> {
    let whole = Arc::clone(&builder.file);
    let (mut blocks, mut files) = (BTreeMap::new(), Vec::new());
    for Piece { name, mut input } in pieces {
        let mut bytes = Vec::new();
        input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut bytes).map_err(|error| failed(&name, &error))?;
        if bytes == MAGIC {
            files.push((name, input));
            continue;
        }
        input.read_to_end(&mut bytes).map_err(|error| failed(&name, &error))?;
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(meta) => drop(blocks.insert(folder(&name).to_owned(), Dedicated::of(&meta))),
            Err(error) => {
                return Err(refused(
                    &name.as_str().into(),
                    &format!("what a block says about itself is no JSON: {error}"),
                )
                .into());
            }
        }
    }
    if files.is_empty() {
        builder.foreign =
            Some("what a block of Tempo says about itself: name the folder, so that `data.parquet` is read, too");
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, input) in files {
        let mut source = Source::of(&mut MAGIC.chain(input), builder.spill.as_ref().map(|spill| &spill.scratch))
            .map_err(|error| failed(&name, &error))?;
        builder.file = name.as_str().into();
        one_file(builder, &mut source, blocks.get(folder(&name)), strict)?;
    }
    builder.file = whole;
    Ok(())
}

/// The folder of a file, as its name tells it.
fn folder(name: &str) -> &str {
    name.rfind(['/', '\\']).map_or("", |end| &name[..end])
}

fn refused(file: &Arc<str>, what: &str) -> Diagnostic {
    Diagnostic::error(codes::BAD_PARQUET, Place::File { file: Arc::clone(file) }, what.to_owned())
}

fn one_file(
    builder: &mut Builder<'_>,
    source: &mut Source,
    dedicated: Option<&Dedicated>,
    strict: bool,
) -> Result<(), Diagnostics> {
    let file = Arc::clone(&builder.file);
    let fault = |Malformed(what)| refused(&file, &format!("this Parquet file cannot be read: {what}"));
    let broken = |error: &io::Error| failed(&file, error);
    let length = source.length();
    let last = source.part(length.saturating_sub(END)..length).map_err(|error| broken(&error))?;
    let place = footer(&last, length).map_err(fault)?;
    let about = source.part(place).map_err(|error| broken(&error))?.into_owned();
    let parquet = File::open(&about).map_err(fault)?;
    let is_tempo = ["TraceID", "rs"].iter().all(|name| parquet.root.fields().iter().any(|field| field.name == *name));
    let mut table = if is_tempo { None } else { Some(Columns::of(builder, &parquet)?) };
    for group in 0..parquet.groups() {
        let before = builder.count();
        let place = parquet.place(group, length);
        let begin = place.start;
        let bytes = source.part(place).map_err(|error| broken(&error))?;
        let part = Part { bytes: &bytes, begin };
        let read = match &mut table {
            Some(table) => table.group(builder, &parquet, (group, part), strict),
            None => tempo::group(builder, &parquet, (group, part), dedicated).map_err(|what| fault(what).into()),
        };
        let Err(found) = read else { continue };
        if strict {
            return Err(found);
        }
        let read = builder.count() - before;
        for finding in found.0 {
            builder.report.count("row group that cannot be read", || Diagnostic {
                severity: Severity::Warning,
                ..finding.with_note(format!("{read} spans of row group {group} are used; the rest of it is lost"))
            });
        }
    }
    if let Some(table) = table {
        table.table.finish(builder)?;
    }
    Ok(())
}

/// The columns of a table.
struct Columns {
    table: Table,
    /// Where each lies among the fields of the file, and what its values mean.
    shown: Vec<(usize, Physical, Logical)>,
}

impl Columns {
    fn of(builder: &mut Builder<'_>, parquet: &File<'_>) -> Result<Self, Diagnostics> {
        let (mut names, mut shown) = (Vec::new(), Vec::new());
        for (place, field) in parquet.root.fields().iter().enumerate() {
            // Lists and groups are no fields of a row.
            if let (FieldContent::Column(_, physical, logical), false) = (&field.content, field.repeated) {
                names.push(field.name.clone());
                shown.push((place, *physical, *logical));
            }
        }
        let mut table = Table::of(builder, &names)?;
        for (column, (_, _, logical)) in shown.iter().enumerate() {
            if let Logical::Time(unit) = logical {
                table.set_unit(column, *unit);
            }
        }
        Ok(Self { table, shown })
    }

    fn group(
        &mut self,
        builder: &mut Builder<'_>,
        parquet: &File<'_>,
        (group, part): (usize, Part<'_>),
        strict: bool,
    ) -> Result<(), Diagnostics> {
        let file = Arc::clone(&builder.file);
        let fault = |Malformed(what)| refused(&file, &format!("this Parquet file cannot be read: {what}"));
        let mut rows = parquet.rows(group, part, |path| path.len() == 1).map_err(fault)?;
        let (mut row, mut line, mut number) = (Row::default(), String::new(), 0u64);
        while let Some(node) = rows.next().map_err(fault)? {
            number += 1;
            let Node::Group(nodes) = &node else { continue };
            let fields = self.shown.iter().map(|(place, physical, logical)| match nodes.get(*place) {
                Some(Node::Value(value)) => text_of(value, *physical, *logical),
                _ => Cow::Borrowed(""),
            });
            row.join(&mut line, fields);
            if let Err(what) = self.table.row(builder, &row, &line) {
                let place = Place::Item { file: Arc::clone(&file), item: format!("row {number} of row group {group}") };
                let finding = Diagnostic::error(codes::BAD_ROW, place, what);
                if strict {
                    return Err(finding.into());
                }
                builder.report.count("row that cannot be read", || Diagnostic {
                    severity: Severity::Warning,
                    ..finding.with_note("this row was left out")
                });
            }
            builder.hand_on();
        }
        Ok(())
    }
}

/// A value as the field of a text would show it; bytes as hexadecimal digits.
fn text_of(value: &Datum, physical: Physical, logical: Logical) -> Cow<'_, str> {
    match value {
        Datum::Null => Cow::Borrowed(""),
        Datum::Bool(truth) => Cow::Borrowed(if *truth { "true" } else { "false" }),
        Datum::Int(number) if logical == Logical::Unsigned && physical == Physical::Int32 => {
            Cow::Owned((*number as u32).to_string())
        }
        Datum::Int(number) if logical == Logical::Unsigned => Cow::Owned(number.cast_unsigned().to_string()),
        Datum::Int(number) => Cow::Owned(number.to_string()),
        Datum::Double(number) => Cow::Owned(number.to_string()),
        Datum::Bytes(bytes) => {
            let plain = matches!(physical, Physical::Bytes) || logical == Logical::Text;
            match std::str::from_utf8(bytes) {
                Ok(text) if plain && !text.contains(char::is_control) => Cow::Borrowed(text),
                _ => Cow::Owned(super::otlp_proto::digits(bytes)),
            }
        }
    }
}
