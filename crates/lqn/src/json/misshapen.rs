//! All places at which a document is sound JSON but of another shape than a model.
//!
//! The parser stops at the first. So the document is taken apart: each element of its lists is read by itself, and where it
//! cannot be, something sound of its name takes its place, so that the rest can be looked at.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::codes;
use crate::findings::Findings;
use crate::json::shape::{self, Document};
use dyelog_diagnostic::{Diagnostic, similar};

/// What is left of a document when all that cannot be read was reported and taken out.
pub(super) fn salvage(mut document: Value, findings: &mut Findings) -> Option<Document> {
    let fields = document.as_object_mut()?;
    let mut processors = taken(fields, "processors");
    elements::<shape::Processor>("processors", processors.as_mut(), findings, &|name| {
        Some(json!({ "name": name, "scheduling": "fcfs" }))
    });
    let mut groups = taken(fields, "groups");
    elements::<shape::Group>("groups", groups.as_mut(), findings, &|_| None);
    let mut tasks = taken(fields, "tasks");
    let runs_on = processors.iter().flatten().find_map(name_of).unwrap_or_default().to_owned();
    for (task, index) in tasks.iter_mut().flatten().zip(0usize..) {
        self::task(task, &format!("tasks[{index}]"), &runs_on, findings);
    }
    if let Some(tasks) = &mut tasks {
        tasks.retain(|task| !task.is_null());
    }
    for (key, list) in [("processors", &processors), ("tasks", &tasks)] {
        // Without its elements the document still has to have the list.
        if list.is_some() {
            fields.insert(key.to_owned(), json!([]));
        }
    }
    if !is_read::<Document>(&document, "", findings) {
        document = json!({ "dyelog-model": super::VERSION });
    }
    let fields = document.as_object_mut()?;
    for (key, list) in [("processors", processors), ("groups", groups), ("tasks", tasks)] {
        fields.insert(key.to_owned(), Value::Array(list.unwrap_or_default()));
    }
    serde_json::from_value(document).ok()
}

/// Takes a list out of an object, where it is one.
fn taken(fields: &mut Map<String, Value>, key: &str) -> Option<Vec<Value>> {
    if !fields.get(key)?.is_array() {
        return None;
    }
    match fields.shift_remove(key) {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    }
}

fn name_of(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}

/// Whether the value is of that shape; reports where it is not.
fn is_read<T: DeserializeOwned>(value: &Value, path: &str, findings: &mut Findings) -> bool {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(value.clone()) else { return true };
    let inner = error.path().to_string();
    let place = match (path, inner.as_str()) {
        (_, ".") => path.to_owned(),
        ("", inner) => inner.to_owned(),
        (path, inner) if inner.starts_with('[') => format!("{path}{inner}"),
        (path, inner) => format!("{path}.{inner}"),
    };
    let text = error.inner().to_string();
    let place = findings.item(place);
    findings.push(with_hint(Diagnostic::error(codes::SYNTAX, place, text)));
    false
}

/// Reads the elements of a list each by itself; what cannot be read is replaced or taken out.
fn elements<T: DeserializeOwned>(
    path: &str,
    list: Option<&mut Vec<Value>>,
    findings: &mut Findings,
    instead: &dyn Fn(&str) -> Option<Value>,
) {
    let Some(list) = list else { return };
    for (element, index) in list.iter_mut().zip(0usize..) {
        if !is_read::<T>(element, &format!("{path}[{index}]"), findings) {
            *element = name_of(element).and_then(instead).unwrap_or_default();
        }
    }
    list.retain(|element| !element.is_null());
}

/// Reads a task without its lists, and each element of these.
fn task(task: &mut Value, path: &str, runs_on: &str, findings: &mut Findings) {
    let Some(fields) = task.as_object_mut() else {
        is_read::<shape::Task>(task, path, findings);
        *task = Value::Null;
        return;
    };
    let [mut entries, mut activities, mut precedences] =
        ["entries", "activities", "precedences"].map(|key| taken(fields, key));
    let named = |name: &str| Some(json!({ "name": name }));
    elements::<shape::Entry>(&format!("{path}.entries"), entries.as_mut(), findings, &named);
    elements::<shape::Activity>(&format!("{path}.activities"), activities.as_mut(), findings, &named);
    elements::<shape::Precedence>(&format!("{path}.precedences"), precedences.as_mut(), findings, &|_| None);
    if !is_read::<shape::Task>(task, path, findings) {
        *task = match name_of(task) {
            Some(name) => json!({ "name": name, "processor": runs_on, "scheduling": "fcfs" }),
            None => Value::Null,
        };
    }
    if let Some(fields) = task.as_object_mut() {
        for (key, list) in [("entries", entries), ("activities", activities), ("precedences", precedences)] {
            fields.insert(key.to_owned(), Value::Array(list.unwrap_or_default()));
        }
    }
}

/// The parser's error, with a hint where a field or word is nearly right.
pub(super) fn with_hint(diagnostic: Diagnostic) -> Diagnostic {
    // "unknown field `a`, expected one of `b`, `c`" and its like: words in odd positions stand in quotes.
    let hint = diagnostic.message.starts_with("unknown ").then(|| {
        let mut words = diagnostic.message.split('`').skip(1).step_by(2);
        let written = words.next()?;
        similar(written, words).map(|near| format!("did you mean `{near}`?"))
    });
    match hint.flatten() {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}
