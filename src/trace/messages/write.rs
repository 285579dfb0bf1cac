//! Messages as a table.

use std::io::{self, Write};

use crate::trace::TraceNames;
use crate::trace::messages::{Step, What};

/// The first line of a table of messages.
pub const HEADER: &str = "sender,receiver,time,sent,message";

/// Writes a step as a row, where it is a message.
///
/// # Errors
/// Those of the writer.
pub fn write_message(writer: &mut dyn Write, names: &TraceNames, step: &Step) -> io::Result<()> {
    let (What::Message { from, to, label, sent } | What::Receive { from, to, label, sent, .. }) = step.what else {
        return Ok(());
    };
    // An order without times is all that there is.
    let time = if step.time.is_nan() { f64::from(step.line) } else { step.time };
    let sent = if sent.is_nan() { time } else { sent };
    field(writer, &names.task_label(from))?;
    writer.write_all(b",")?;
    field(writer, &names.task_label(to))?;
    write!(writer, ",{time},{sent},")?;
    field(writer, names.names.text(label))?;
    writer.write_all(b"\n")
}

fn field(writer: &mut dyn Write, text: &str) -> io::Result<()> {
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with([' ', '#']) || text.ends_with(' ') {
        let text = text.replace('"', "\"\"").replace(['\n', '\r'], " ");
        return write!(writer, "\"{text}\"");
    }
    writer.write_all(text.as_bytes())
}
