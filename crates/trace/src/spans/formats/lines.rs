//! Files of lines: logs and tables.

use std::io::{BufRead, Read};
use std::sync::Arc;

use crate::codes;
use crate::read::failed;
use crate::spans::builder::Builder;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Lines of text, whatever bytes are in it.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    text: String,
    /// The number of the last line, from 1.
    pub number: u32,
}

impl Lines {
    /// The next line. What is longer than any record comes in parts, none of which is one.
    pub fn next(&mut self, file: &Arc<str>, input: &mut dyn BufRead) -> Result<Option<&str>, Diagnostics> {
        self.bytes.clear();
        let read = input.take(LONGEST).read_until(b'\n', &mut self.bytes).map_err(|error| failed(file, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.bytes));
        Ok(Some(self.text.trim_end_matches(['\r', '\n'])))
    }
}

/// Counts a line that cannot be read.
pub(super) fn bad_line(builder: &mut Builder<'_>, line: u32, what: &str, strict: bool) -> Result<(), Diagnostics> {
    let place = Place::Line { file: Arc::clone(&builder.file), line, column: 0 };
    let finding = Diagnostic::error(codes::BAD_ROW, place, what);
    if strict {
        return Err(finding.into());
    }
    builder.report.count("line that cannot be read", || Diagnostic {
        severity: Severity::Warning,
        ..finding.with_note("this line was left out")
    });
    Ok(())
}
