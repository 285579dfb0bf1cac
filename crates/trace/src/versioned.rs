//! Reports as JSON, with the version of their form.

use serde::Serialize;
use serde_json::{Map, Value};

/// A report's fields, and before them its kind with the version of its form. A report has strings, numbers, lists and maps with
/// text keys only, so nothing of it is refused.
pub(super) fn versioned(kind: &str, version: u32, report: &impl Serialize) -> Value {
    let mut document = Map::new();
    document.insert(kind.to_owned(), version.into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(report) {
        document.extend(fields);
    }
    Value::Object(document)
}
