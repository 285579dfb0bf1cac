//! The reader of `.angio` text.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::assemble::Assembler;
use super::grammar::{Slip, Statement, statement};
use crate::lines::{LONGEST, Line, Lines};
use crate::read::failed;
use crate::{ReadReport, Sink, TraceNames, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// Reads `.angio` text and gives its operations to the sink, in the order of the file.
///
/// A damaged line sets its operation aside; it is counted and the first ones are kept as findings.
///
/// # Errors
/// When the input fails; and, where `strict`, when a line cannot be read.
pub fn read_text(
    file: &str,
    input: impl Read,
    strict: bool,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut lines = Lines::new(input);
    let mut assembler = Assembler::new(file, strict, names, sink);
    let mut unknown = Vec::new();
    loop {
        let number = lines.number().saturating_add(1);
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return assembler.finish(),
            Err(error) => return Err(assembler.broken(failed(file, &error))),
        };
        let Line::Text(text) = line else {
            let finding = long_line(assembler.place(number, 0));
            assembler.bad_line("line that cannot be read", finding);
            continue;
        };
        let flow = match statement(text, &mut unknown) {
            Ok(Statement::Blank) => ControlFlow::Continue(()),
            Ok(Statement::Header(header)) => assembler.open(number, &header),
            Ok(Statement::Label(label)) => {
                if let Err(finding) = assembler.label(number, &label) {
                    assembler.bad_line("line that belongs to no operation", *finding);
                }
                ControlFlow::Continue(())
            }
            Err(slip) => {
                let finding = bad_line(text, &slip, assembler.place(number, text.len() - slip.left + 1));
                if text.trim_ascii_start().starts_with(b"operation") && !text.contains(&b'|') {
                    assembler.bad_header(number, finding)
                } else {
                    assembler.bad_line("line that cannot be read", finding);
                    ControlFlow::Continue(())
                }
            }
        };
        for slip in unknown.drain(..) {
            let column = text.len() - slip.left + 1;
            let place = Place::Line { file: Arc::from(file), line: number, column: column as u32 };
            assembler.unknown_attribute(&slip.key, || place);
        }
        if flow.is_break() {
            return Ok(assembler.stopped());
        }
    }
}

fn long_line(place: Place) -> Diagnostic {
    Diagnostic::warning(codes::LONG_LINE, place, "this line is too long")
        .with_note(format!("no line may be longer than {LONGEST} bytes"))
        .with_hint("is this a text file?")
}

fn bad_line(text: &[u8], slip: &Slip, place: Place) -> Diagnostic {
    let [message, hint] = slip.words;
    let rest: String = String::from_utf8_lossy(&text[text.len() - slip.left..]).chars().take(20).collect();
    let finding = Diagnostic::warning(codes::BAD_LINE, place, *message);
    let finding = match rest.split_ascii_whitespace().next() {
        Some(word) => finding.with_note(format!("found `{}`", word.escape_debug())),
        None => finding.with_note("the line ends here"),
    };
    if hint.is_empty() { finding } else { finding.with_hint(*hint) }
}
