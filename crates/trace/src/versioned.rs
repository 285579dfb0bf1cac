//! Reports as JSON, with the version of their form.

use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Versioned<'r, R> {
    version: u32,
    #[serde(flatten)]
    report: &'r R,
}

/// A report's fields, and before them the version of its form. A report has strings, numbers, lists and maps with text keys
/// only, so nothing of it is refused.
pub(super) fn versioned(version: u32, report: &impl Serialize) -> Value {
    serde_json::to_value(Versioned { version, report }).unwrap_or_default()
}
