//! Files of lines: logs and tables.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use crate::codes;
use crate::lines::{Line, Lines};
use crate::read::failed;
use crate::spans::builder::Builder;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// The number and the text of the next line, whatever bytes are in it. What is longer than any record is none.
pub(super) fn next<'l, R: Read>(
    lines: &'l mut Lines<R>,
    file: &Arc<str>,
) -> Result<Option<(u32, Cow<'l, str>)>, Diagnostics> {
    let number = lines.number().saturating_add(1);
    Ok(lines.next().map_err(|error| failed(file, &error))?.map(|line| match line {
        Line::Text(bytes) => (number, String::from_utf8_lossy(bytes)),
        Line::TooLong => (number, Cow::Borrowed("\u{fffd}")),
    }))
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
