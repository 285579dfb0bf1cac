//! The files of a log: maps, text and binary.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::record::{Binary, Event, Execution, Line, Record, What, record};
use crate::codes;
use crate::lines::Lines;
use crate::read::failed;
use crate::spans::builder::Builder;
use crate::spans::formats::lines::{bad_line, next};
use dyelog_diagnostic::names::Name;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// What a log holds, of all processes.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The signatures of its operations.
    pub signatures: FxHashSet<Name>,
    pub events: Vec<Event>,
    /// The host of a trace, and where in another it begins.
    pub traces: FxHashMap<i64, Origin>,
}

/// Where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// The trace that it comes from; itself where it is none.
    pub parent: i64,
    /// The place in that trace.
    pub order: i32,
    /// Whether it came from another process.
    pub remote: bool,
    pub host: Name,
}

/// The map of a folder: what numbers stand for. Also the unit of the times in its files, nanoseconds.
#[derive(Debug)]
pub(super) struct Map {
    strings: FxHashMap<i64, String>,
    unit: i64,
}

/// What a file of a log is, by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Map,
    Text,
    Binary,
}

impl FileKind {
    pub fn of(head: &[u8]) -> Self {
        let line = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        if line.starts_with(b"$") || line.first().is_some_and(u8::is_ascii_digit) {
            let digits = line.iter().skip(usize::from(line[0] == b'$')).position(|byte| !byte.is_ascii_digit());
            let after = digits.and_then(|digits| line.get(digits + usize::from(line[0] == b'$')));
            return if after == Some(&b'=') { Self::Map } else { Self::Text };
        }
        if head.contains(&0) { Self::Binary } else { Self::Text }
    }
}

/// Reads a map into that of its folder.
pub(super) fn read_map(
    builder: &mut Builder<'_>,
    input: &mut dyn BufRead,
    map: &mut Option<Map>,
    strict: bool,
) -> Result<(), Diagnostics> {
    let map = map.get_or_insert_with(|| Map { strings: FxHashMap::default(), unit: 1 });
    let mut lines = Lines::new(input);
    while let Some((number, line)) = next(&mut lines, &builder.file)? {
        if line.trim().is_empty() {
            continue;
        }
        let entry = line.strip_prefix('$').unwrap_or(&line).split_once('=');
        match entry.and_then(|(number, text)| Some((number.trim().parse().ok()?, unescaped(text)))) {
            Some((key, text)) => {
                map.strings.insert(key, text);
            }
            None => bad_line(builder, number, "this line of the map is no entry `$number=text`", strict)?,
        }
    }
    Ok(())
}

/// A text of a map without its escapes.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match (next, next == '\\') {
            (_, true) => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (next, false) => plain.push(next),
        }
    }
    plain
}

impl Log {
    /// Reads a file of text: a record a line.
    pub fn read_text(
        &mut self,
        builder: &mut Builder<'_>,
        input: &mut dyn BufRead,
        map: &mut Map,
        strict: bool,
    ) -> Result<(), Diagnostics> {
        let Map { strings, unit } = map;
        let mut lines = Lines::new(input);
        while let Some((number, line)) = next(&mut lines, &builder.file)? {
            if line.trim().is_empty() {
                continue;
            }
            let mut fields = line.split(';');
            let class = fields.next().unwrap_or_default();
            let class = class.strip_prefix('$').unwrap_or(class).trim().parse().ok();
            let Some(class) = class.and_then(|number| strings.get(&number)) else {
                bad_line(builder, number, "the map does not have the class of this record", strict)?;
                continue;
            };
            let fields = Line(fields.skip(1).collect());
            match record(class, &fields, builder.names) {
                Some(found) => self.take(builder, found, class, unit),
                None => bad_line(builder, number, &format!("this is no record `{class}`"), strict)?,
            }
        }
        Ok(())
    }

    /// Reads a binary file: numbers of classes and records without lengths.
    pub fn read_binary(
        &mut self,
        builder: &mut Builder<'_>,
        input: &mut dyn BufRead,
        map: &mut Map,
        strict: bool,
    ) -> Result<(), Diagnostics> {
        let Map { strings, unit } = map;
        let file = Arc::clone(&builder.file);
        let (mut bytes, mut offset) = (Vec::new(), 0_u64);
        loop {
            let fail = |error: io::Error| Diagnostics::from(failed(&file, &error));
            bytes.clear();
            let length = (&mut *input).take(12).read_to_end(&mut bytes).map_err(fail)?;
            if length == 0 {
                return Ok(());
            }
            let class = bytes.first_chunk().map(|bytes| i64::from(i32::from_be_bytes(*bytes)));
            let class = class.filter(|_| length == 12).and_then(|number| strings.get(&number));
            let body = class.map(String::as_str).and_then(Binary::length);
            let (Some(class), Some(body)) = (class, body) else {
                let what = match class {
                    _ if length < 12 => "the file ends within a record".to_owned(),
                    None => "the map does not have the class of this record".to_owned(),
                    Some(class) => format!("the length of a record `{class}` is not known"),
                };
                return broken(builder, offset, &what, strict);
            };
            bytes.clear();
            let read = (&mut *input).take(body as u64).read_to_end(&mut bytes).map_err(fail)?;
            if read < body {
                return broken(builder, offset, "the file ends within a record", strict);
            }
            let fields = Binary::new(class, &bytes, strings).expect("its length is known");
            match record(class, &fields, builder.names) {
                Some(found) => self.take(builder, found, class, unit),
                None => return broken(builder, offset, &format!("this is no record `{class}`"), strict),
            }
            offset += 12 + body as u64;
        }
    }

    fn take(&mut self, builder: &mut Builder<'_>, record: Record, class: &str, unit: &mut i64) {
        let scale = *unit;
        let scaled = |time: i64| time.saturating_mul(scale);
        match record {
            Record::Unit(own) => *unit = own,
            Record::Execution(own) => {
                builder.report.records += 1;
                self.signature(own.signature);
                let own = Execution { start: scaled(own.start), end: scaled(own.end), ..own };
                builder.open();
                builder.spans.spans.push(own.held());
                builder.close();
                builder.hand_on();
            }
            Record::Event(event) => {
                builder.report.records += 1;
                self.signature(event.signature);
                self.events.push(Event { time: scaled(event.time), ..event });
            }
            Record::Trace { trace, host, parent, order } => {
                let parent = if order < 0 { trace } else { parent };
                let origin = self.traces.entry(trace).or_insert(Origin { parent, order, remote: false, host });
                origin.host = host;
            }
            Record::Received { time, caller, caller_order, trace, order } => {
                builder.report.records += 1;
                let time = scaled(time);
                self.events.push(Event { trace, order, time, what: What::Forks, signature: Name::NONE });
                let host = self.traces.get(&trace).map_or(Name::NONE, |origin| origin.host);
                self.traces.insert(trace, Origin { parent: caller, order: caller_order, remote: true, host });
            }
            Record::Monitor => lock(builder),
            Record::Call => {}
            Record::Other => left_out(builder, "record of another kind", class),
        }
    }
}

impl Log {
    fn signature(&mut self, signature: Name) {
        if signature.is_some() {
            self.signatures.insert(signature);
        }
    }
}

/// Counts a record of a lock. Who waits has no processor, but models have no place for it: a lock is held by another operation, which is not told.
fn lock(builder: &mut Builder<'_>) {
    const REASON: &str = "record of a lock";
    if builder.report.counted.contains_key(REASON) {
        builder.report.tally(REASON, 1);
        return;
    }
    let place = Place::File { file: Arc::clone(&builder.file) };
    builder.report.count(REASON, || {
        Diagnostic::new(Severity::Note, codes::OTHER_RECORD, place, "records of locks (`Monitor…Event`) were left out")
            .with_note("the time in which an operation waits for a lock stays part of its own time")
    });
}

fn left_out(builder: &mut Builder<'_>, reason: &'static str, class: &str) {
    let place = Place::File { file: Arc::clone(&builder.file) };
    builder.report.count(reason, || {
        let message = format!("records `{class}` tell nothing of calls and were left out");
        Diagnostic::new(Severity::Note, codes::OTHER_RECORD, place, message)
    });
}

/// Ends the reading of a binary file; what came before is used.
fn broken(builder: &mut Builder<'_>, offset: u64, what: &str, strict: bool) -> Result<(), Diagnostics> {
    let place = Place::Item { file: Arc::clone(&builder.file), item: format!("byte {offset}") };
    let finding = Diagnostic::error(codes::BAD_MESSAGE, place, what);
    if strict {
        return Err(finding.into());
    }
    builder.report.count("rest of a binary log", || Diagnostic {
        severity: Severity::Warning,
        ..finding.with_note("records of a binary log have no lengths: what comes after this one was not read")
    });
    Ok(())
}
