//! Messages as a table.

use std::io::{self, Write};

use crate::TraceNames;
use crate::messages::{MessageStep, What};

/// The first line of a table of messages.
pub const HEADER: &str = "sender,receiver,time,sent,message";

/// The first line of a table of messages that tells the threads of tasks apart.
pub const THREADED_HEADER: &str = "sender,receiver,time,sent,message,sender_thread,receiver_thread";

/// Writes a message as a row that tells the threads of tasks apart: instances, which have names of their own otherwise.
///
/// # Errors
/// Those of the writer.
pub fn write_threaded(writer: &mut dyn Write, names: &TraceNames, step: &MessageStep) -> io::Result<()> {
    let What::Message { from, to, label, sent, .. } = step.what else { return Ok(()) };
    let (from, to) = (names.task(from), names.task(to));
    field(writer, names.names.text(from.name))?;
    writer.write_all(b",")?;
    field(writer, names.names.text(to.name))?;
    write!(writer, ",{},{sent},", step.time)?;
    field(writer, names.names.text(label))?;
    writeln!(writer, ",{},{}", from.instance, to.instance)
}

/// Writes a step as a row, where it is a message.
///
/// # Errors
/// Those of the writer.
pub fn write_message(writer: &mut dyn Write, names: &TraceNames, step: &MessageStep) -> io::Result<()> {
    let (What::Message { from, to, label, sent, .. } | What::Receive { from, to, label, sent, .. }) = step.what else {
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
