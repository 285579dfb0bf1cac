//! What readers of traces saw, as text and JSON.

use serde_json::{Value, json};

use crate::diagnostic::quantity::counted;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::report::table::Table;
use crate::trace::{ReadReport, codes};

/// How often readers left out or changed something, by reason; empty where nothing was.
pub fn counted_text(report: &ReadReport) -> String {
    let mut table = Table::new(&["WHILE READING", ">TIMES"]);
    for (reason, times) in &report.counted {
        table.row(vec![(*reason).to_owned(), times.to_string()]);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render(usize::MAX)) }
}

/// The same with the figures of what was read.
pub fn counted_json(report: &ReadReport) -> Value {
    json!({
        "records": report.records,
        "operations": report.operations,
        "events": report.events,
        "counted": report.counted,
    })
}

/// What a format that was written does not hold, of so many spans or operations, as `of` says.
pub fn lost(what: &str, count: u64, of: &str) -> Diagnostic {
    let message = format!("the format does not hold {what}: {} had some", counted(count, of));
    Diagnostic::new(Severity::Note, codes::LOST_IN_FORMAT, Place::Nowhere, message)
}
