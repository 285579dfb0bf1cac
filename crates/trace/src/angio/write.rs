//! Writers of both native forms. What they write, the readers read back the same.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::grammar::{is_bare, is_bare_value};
use crate::{Event, Kind, Operation, TraceNames};
use dyelog_diagnostic::names::Name;

/// Writes an operation as `.angio` text, its nodes in the order that they have.
///
/// # Errors
/// When the output fails, and when a time is negative or infinite, which the format does not have.
pub fn write_text(output: &mut impl Write, names: &TraceNames, operation: &Operation) -> io::Result<()> {
    let mut scenario = String::new();
    word(&mut scenario, names.names.text(operation.scenario), is_bare);
    let mut line = format!("operation {scenario} run=");
    word(&mut line, &operation.run, is_bare_value);
    if let Some(start) = operation.start {
        let _ = write!(line, " start={start}");
    }
    line.push('\n');
    output.write_all(line.as_bytes())?;
    for event in &operation.events {
        line.clear();
        label(&mut line, names, &scenario, event)?;
        output.write_all(line.as_bytes())?;
    }
    Ok(())
}

// Writing to a string cannot fail, so the results of `write!` carry nothing here.
fn label(line: &mut String, names: &TraceNames, scenario: &str, event: &Event) -> io::Result<()> {
    let _ = write!(line, "{scenario},{},{},", event.thread, event.index);
    let _ = match event.kind {
        Kind::Begin => write!(line, "Be"),
        Kind::Activity => write!(line, "Ac"),
        Kind::End => write!(line, "Ed"),
        Kind::Fork(thread) => write!(line, "Fk({scenario},{thread})"),
        Kind::Join(thread) => write!(line, "Jn({scenario},{thread})"),
    };
    line.push_str(" | ");
    let task = names.task(event.task);
    word(line, names.names.text(task.name), is_bare);
    let _ = write!(line, ",{}", event.counter);
    if task.instance != 1 {
        let _ = write!(line, " instance={}", task.instance);
    }
    for (key, value) in [("name", event.activity), ("op", event.service)] {
        if value.is_some() {
            let _ = write!(line, " {key}=");
            word(line, names.names.text(value), is_bare_value);
        }
    }
    for (key, value) in [("t", event.time), ("cpu", event.cpu), ("pause", event.pause)] {
        if let Some(value) = seconds(value)? {
            let _ = write!(line, " {key}={value:?}");
        }
    }
    line.push('\n');
    Ok(())
}

/// A time that can be written, or `None` where there is none.
fn seconds(value: f64) -> io::Result<Option<f64>> {
    if value.is_nan() {
        Ok(None)
    } else if value.is_finite() && value >= 0.0 {
        Ok(Some(value + 0.0))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the time {value} cannot be written")))
    }
}

/// A name, in quotes where it needs them.
fn word(line: &mut String, text: &str, allowed: fn(u8) -> bool) {
    let bare = !text.is_empty()
        && !text.starts_with(['#', '\u{feff}'])
        && text.bytes().all(allowed)
        && !text
            .contains(|character: char| !character.is_ascii() && (character.is_control() || character.is_whitespace()));
    if bare {
        line.push_str(text);
        return;
    }
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            character if character.is_control() => {
                let _ = write!(line, "\\u{{{:x}}}", character as u32);
            }
            character => line.push(character),
        }
    }
    line.push('"');
}

#[derive(Serialize)]
struct HeaderRecord<'a> {
    operation: &'a str,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
}

#[derive(Serialize)]
struct LabelRecord<'a> {
    j: &'a str,
    k: u32,
    m: u32,
    l: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    join: Option<u32>,
    i: &'a str,
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<f64>,
}

/// Writes an operation as JSON Lines, its nodes in the order that they have.
///
/// # Errors
/// When the output fails, and when a time is negative or infinite, which the format does not have.
pub fn write_jsonl(output: &mut impl Write, names: &TraceNames, operation: &Operation) -> io::Result<()> {
    let scenario = names.names.text(operation.scenario);
    let header = HeaderRecord { operation: scenario, run: &operation.run, start: operation.start };
    serde_json::to_writer(&mut *output, &header)?;
    output.write_all(b"\n")?;
    for event in &operation.events {
        let (l, fork, join) = match event.kind {
            Kind::Begin => ("Be", None, None),
            Kind::Activity => ("Ac", None, None),
            Kind::End => ("Ed", None, None),
            Kind::Fork(thread) => ("Fk", Some(thread), None),
            Kind::Join(thread) => ("Jn", None, Some(thread)),
        };
        let task = names.task(event.task);
        let given = |name: Name| name.is_some().then(|| names.names.text(name));
        let record = LabelRecord {
            j: scenario,
            k: event.thread,
            m: event.index,
            l,
            fork,
            join,
            i: names.names.text(task.name),
            v: event.counter,
            instance: (task.instance != 1).then_some(task.instance),
            name: given(event.activity),
            op: given(event.service),
            t: seconds(event.time)?,
            cpu: seconds(event.cpu)?,
            pause: seconds(event.pause)?,
        };
        serde_json::to_writer(&mut *output, &record)?;
        output.write_all(b"\n")?;
    }
    Ok(())
}
