//! Tables of messages, `sender,receiver,time[,sent,message,id,…]`, and of send and receive events,
//! `time,event,process[,message,id,peer,thread]`: CSV with `,`, `;` or tabs, text in columns, or JSON Lines with these keys.
//!
//! The first line names the columns. Times are seconds unless the name of the column says otherwise (`time_us`, `time (ms)`).
//! Events are `send` and `receive`; `begin`, `run` and `idle` tell what a task does beside (2005 paper §4.5).

use std::hash::{Hash, Hasher};
use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use crate::lines::{Line, Lines};
use crate::messages::columns::{COLUMNS, Column, Columns, Units, column_of};
use crate::messages::row::{Delimiter, Row};
use crate::messages::threads::Threads;
use crate::messages::{Event, Half, Raw, RawWhat, Source, at};
use crate::read::{failed, nothing_in};
use crate::spans::time::from_rfc3339;
use crate::{Format, ReadReport, TraceNames, codes};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Severity, similar};

/// A table of messages or events.
pub struct Table<R> {
    file: Arc<str>,
    lines: Lines<R>,
    format: Format,
    strict: bool,
    shape: Option<Shape>,
    /// The first line, where it is no header.
    first: Option<String>,
    row: Row,
    threads: Threads,
    report: ReadReport,
}

/// How rows are written.
struct Shape {
    columns: Columns,
    /// `None` for objects of JSON.
    delimiter: Option<Delimiter>,
    /// How many fields a row has at least, and at most: what stands between blanks may be several words.
    least: usize,
    most: usize,
}

/// Why a row cannot be used.
struct Fault {
    message: String,
    hint: Option<String>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

/// Fields of a row by column.
struct Fields<'a> {
    columns: &'a Columns,
    units: Units,
    get: &'a dyn Fn(usize) -> &'a str,
}

impl<'a> Fields<'a> {
    #[inline]
    fn text(&self, column: Column) -> &'a str {
        self.columns.place(column).map_or("", |place| (self.get)(place))
    }

    fn needed(&self, column: Column, name: &str) -> Result<&'a str, Fault> {
        match self.text(column) {
            "" => Err(Fault::new(format!("there is no {name}"))),
            text => Ok(text),
        }
    }

    fn time(&self, column: Column) -> Result<Option<f64>, Fault> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(time) if time.is_finite() => Ok(Some(time / self.units.of(column))),
            _ => match from_rfc3339(text) {
                // Seconds and the rest apart, so that rounding is done once.
                Some(time) => {
                    Ok(Some(time.div_euclid(1_000_000_000) as f64 + time.rem_euclid(1_000_000_000) as f64 / 1e9))
                }
                None => Err(Fault {
                    message: format!("`{}` is no time", shown(text)),
                    hint: Some(
                        "times are numbers of seconds, or of the unit that the column's name gives (`time_us`), or dates \
                         such as `2026-02-15T21:16:43.988Z`"
                            .into(),
                    ),
                }),
            },
        }
    }
}

impl<R: Read> Table<R> {
    /// A table of one of the two formats.
    ///
    /// # Errors
    /// When there is nothing in it, or its header lacks a column.
    pub fn open(file: &str, input: R, format: Format, strict: bool) -> Result<Self, Diagnostics> {
        let mut table = Self {
            file: file.into(),
            lines: Lines::new(input),
            format,
            strict,
            shape: None,
            first: None,
            row: Row::default(),
            threads: Threads::default(),
            report: ReadReport::default(),
        };
        table.shape = Some(table.header()?);
        Ok(table)
    }

    fn header(&mut self) -> Result<Shape, Diagnostics> {
        loop {
            let line = self.lines.next().map_err(|error| failed(&self.file, &error))?;
            let Some(line) = line else {
                return Err(nothing_in(&self.file).into());
            };
            let Line::Text(bytes) = line else { continue };
            let text = String::from_utf8_lossy(bytes);
            if is_blank(&text) {
                continue;
            }
            if text.trim_start().starts_with('[') {
                let place = at(&self.file, self.lines.number());
                return Err(Diagnostic::error(codes::NO_COLUMN, place, "this is an array of JSON, and no table")
                    .with_note("each row must stand on a line of its own")
                    .with_hint("write JSON Lines: an object a line, as `jq -c '.[]'` does")
                    .into());
            }
            if text.trim_start().starts_with('{') {
                self.first = Some(text.into_owned());
                return Ok(Shape { columns: Columns::of_json(), delimiter: None, least: 0, most: 0 });
            }
            let text = text.into_owned();
            let delimiter = Delimiter::of(&text);
            let columns = Columns::of_header(&self.file, self.lines.number(), &text, delimiter, self.format)?;
            let place = at(&self.file, self.lines.number());
            for name in &columns.unknown {
                self.report.count("column without a meaning", || {
                    let message = format!("column `{}` is not used", shown(name));
                    Diagnostic::new(Severity::Note, codes::UNUSED_COLUMN, place.clone(), message)
                });
            }
            let needed = [Column::Sender, Column::Receiver, Column::Time, Column::Event, Column::Process];
            let least = needed.iter().filter_map(|column| columns.place(*column)).max().map_or(0, |place| place + 1);
            let most = if delimiter == Delimiter::White {
                usize::MAX
            } else {
                self.row.split(&text, delimiter);
                self.row.len()
            };
            return Ok(Shape { columns, delimiter: Some(delimiter), least, most });
        }
    }
}

impl<R: Read> Source for Table<R> {
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<Raw>, Diagnostics> {
        let Self { file, lines, format, strict, shape, first, row, threads, report } = self;
        let Some(Shape { columns, delimiter, least, most }) = shape else { return Ok(None) };
        loop {
            let first = first.take();
            let line = match &first {
                Some(text) => Some(Line::Text(text.as_bytes())),
                None => lines.next().map_err(|error| failed(file, &error))?,
            };
            let read = match line {
                None => return Ok(None),
                Some(Line::TooLong) => Err(Fault::new("the line is longer than any row should be")),
                Some(Line::Text(bytes)) => match std::str::from_utf8(bytes) {
                    Err(_) => Err(Fault::new("the line is not text in UTF-8")),
                    Ok(text) if is_blank(text) => continue,
                    Ok(text) => match delimiter {
                        Some(delimiter) => {
                            row.split(text, *delimiter);
                            if row.is_broken() {
                                Err(Fault {
                                    message: "the quotation marks of this row do not pair".into(),
                                    hint: Some(
                                        "a row stands on one line: write line breaks in a field as spaces, and a quotation \
                                         mark in a quoted field twice"
                                            .into(),
                                    ),
                                })
                            } else if row.len() < *least {
                                let (have, fields) = (row.len(), if row.len() == 1 { "field" } else { "fields" });
                                Err(Fault::new(format!("the row has {have} {fields} of {least}")))
                            } else if (*most..row.len()).any(|place| !row.get(text, place).is_empty()) {
                                let have = row.len();
                                Err(Fault {
                                    message: format!("the row has {have} fields, and the table {most} columns"),
                                    hint: Some("write a field in double quotes that has the delimiter in it".into()),
                                })
                            } else {
                                let get = |place| row.get(text, place);
                                event(&Fields { columns, units: columns.units, get: &get }, *format, threads, names)
                            }
                        }
                        None => objects(text).and_then(|(values, units)| {
                            let get = |place: usize| values.get(place).map_or("", String::as_str);
                            event(&Fields { columns, units, get: &get }, *format, threads, names)
                        }),
                    },
                },
            };
            let number = lines.number();
            match read {
                Ok((time, what)) => return Ok(Some(Raw { time, line: number, what })),
                Err(Fault { message, hint }) => {
                    let mut finding = Diagnostic::warning(codes::BAD_ROW, at(file, number), message);
                    finding.hints.extend(hint);
                    if *strict {
                        return Err(Diagnostic { severity: Severity::Error, ..finding }.into());
                    }
                    report.count("row that cannot be read", || finding.with_note("this row was left out"));
                }
            }
        }
    }

    fn report(&mut self) -> &mut ReadReport {
        &mut self.report
    }

    fn file(&self) -> &Arc<str> {
        &self.file
    }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// The values of an object by the numbers of columns, and the units of its times.
fn objects(line: &str) -> Result<([String; COLUMNS], Units), Fault> {
    let object: Value = serde_json::from_str(line).map_err(|error| Fault::new(format!("this is not JSON: {error}")))?;
    let Value::Object(object) = object else { return Err(Fault::new("this is no object")) };
    let mut values: [String; COLUMNS] = std::array::from_fn(|_| String::new());
    let mut units = Units::default();
    for (key, value) in object {
        let Some((column, unit)) = column_of(&key) else { continue };
        let text = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if let Some(unit) = unit {
            units.set(column, unit);
        }
        values[column as usize] = text;
    }
    Ok((values, units))
}

/// What a row says.
fn event(
    fields: &Fields<'_>,
    format: Format,
    threads: &mut Threads,
    names: &mut TraceNames,
) -> Result<(f64, RawWhat), Fault> {
    let time = fields.time(Column::Time)?.ok_or_else(|| Fault::new("there is no time"))?;
    let label = match fields.text(Column::Message) {
        "" => Name::NONE,
        text => names.names.intern(text),
    };
    if format == Format::Messages {
        let from = threads.task(names, fields.needed(Column::Sender, "sender")?, fields.text(Column::SenderThread));
        let to = threads.task(names, fields.needed(Column::Receiver, "receiver")?, fields.text(Column::ReceiverThread));
        let sent = fields.time(Column::Sent)?.unwrap_or(time);
        return Ok((time, RawWhat::Message { from, to, label, sent }));
    }
    let word = fields.needed(Column::Event, "event")?;
    let task = threads.task(names, fields.needed(Column::Process, "process")?, fields.text(Column::Thread));
    let is = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    let received = if is(&["send", "sent", "snd", "s"]) {
        false
    } else if is(&["receive", "received", "recv", "rcv", "r"]) {
        true
    } else if is(&["begin", "start"]) {
        return Ok((time, RawWhat::Other(Event::Begin(task, label))));
    } else if is(&["run", "running", "compute", "activity"]) {
        return Ok((time, RawWhat::Other(Event::Run(task))));
    } else if is(&["idle", "wait", "waiting", "end"]) {
        return Ok((time, RawWhat::Other(Event::Idle(task))));
    } else {
        let known = ["send", "receive", "begin", "run", "idle"];
        let hint = similar(word, known).map_or_else(
            || "events are `send`, `receive`, `begin`, `run` and `idle`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Fault { message: format!("`{}` is no event", shown(word)), hint: Some(hint) });
    };
    let peer = match fields.text(Column::Peer) {
        "" => None,
        peer => Some(names.intern_task(peer, 1)),
    };
    let id = match fields.text(Column::Id) {
        "" => 0,
        text => digest(text),
    };
    Ok((time, RawWhat::Half(Half { received, task, peer, label, id })))
}

/// A digest of an identifier that is not 0.
pub(super) fn digest(text: &str) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish() | 1 << 63
}

/// The beginning of a text, fit to be shown.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().count() > MOST {
        shown.push('…');
    }
    shown
}
