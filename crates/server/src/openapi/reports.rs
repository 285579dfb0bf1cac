//! Schemas of what observers report. What is read is in `dyelog_observe::json`.

use serde_json::{Value, json};

use super::{object, of};

/// Reports as observers write them.
pub(super) fn observations() -> Value {
    let mut own = object(json!({
        "dyelog-observations": { "const": 1 },
        "observations": { "type": "array", "items": of("Observation") },
    }));
    own["description"] = json!("What observers report; several such documents may follow one another.");
    own
}

/// An object of which only some members must be there, and that has no others.
fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A schema with words.
fn said(mut schema: Value, words: &str) -> Value {
    schema["description"] = json!(words);
    schema
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": 1_u64 << 40 })
}

fn name() -> Value {
    json!({ "type": "string", "maxLength": 1024 })
}

/// What a process did.
pub(super) fn observation() -> Value {
    let time = || json!({ "type": "integer" });
    let (number, list) =
        (json!({ "type": "integer", "minimum": 0 }), |of: Value| json!({ "type": "array", "items": of }));
    let named = |words: &str| said(json!({ "type": "string", "minLength": 1, "maxLength": 1024 }), words);
    let properties = json!({
        "application": named("The application that the process is a part of."),
        "host": named("Its node."),
        "program": named("What it runs."),
        "process": said(number.clone(), "Its number at its node."),
        "started": said(time(), "When it started, nanoseconds since 1970."),
        "managed": said(json!({ "type": "boolean" }), "Whether it has an observer; false where it is looked at from outside. True unless given."),
        "from": said(time(), "Begin of the interval, nanoseconds since 1970."),
        "to": said(time(), "Its end, after its begin."),
        "covered": said(json!({ "type": "integer", "minimum": 1 }), "How many nanoseconds of it were observed; all of them unless given."),
        "intervals": said(count(), "How many intervals are one here; one unless given."),
        "threads": said(number.clone(), "How many threads serve, where that is set."),
        "most_threads": said(number, "How many served at a time, at most."),
        "resources": said(of("Resources"), "What the process took in the interval."),
        "interfaces": said(
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": name() } }),
            "By exported interface, its protocol sequences."
        ),
        "inputs": said(list(of("Input")), "Exported operations that ended in the interval."),
        "outputs": said(list(of("Output")), "Imported operations that ended in the interval."),
        "lost": said(count(), "How many operations were not counted."),
    });
    said(
        closed(&properties, &["application", "host", "program", "process", "from", "to"]),
        "What one process did in an interval.",
    )
}

/// What it took.
pub(super) fn resources() -> Value {
    let bytes = || json!({ "type": "integer", "minimum": 0 });
    let properties = json!({
        "cpu_ns": said(bytes(), "Processor time, nanoseconds."),
        "reads": said(count(), "Operations of disks that read."),
        "writes": said(count(), "Operations of disks that write."),
        "read_bytes": bytes(),
        "written_bytes": bytes(),
        "received_bytes": bytes(),
        "sent_bytes": bytes(),
    });
    closed(&properties, &[])
}

/// What inputs and outputs have in common: the operation, and times from its begin to its end.
fn timed(mut others: Value, required: &[&str]) -> Value {
    let digits = || json!({ "type": "string", "pattern": "^[0-9]+$" });
    let own = json!({
        "interface": name(),
        "operation": said(json!({ "type": "string", "minLength": 1, "maxLength": 1024 }), "Its name."),
        "count": said(count(), "How often it ended."),
        "femtoseconds": said(digits(), "The sum of all times, 10^-15 s; digits, since it may exceed what numbers of JSON hold."),
        "squares": said(digits(), "The sum of their squares, 10^-18 s²."),
        "responses": said(
            json!({ "type": "string" }),
            "Their histogram, two numbers a bucket and of `count` times in all; without it, percentiles are not known."
        ),
    });
    let all = own.as_object().cloned().unwrap_or_default();
    others.as_object_mut().expect("it is an object").extend(all);
    closed(&others, &[&["interface", "operation", "count", "femtoseconds", "squares"], required].concat())
}

/// An exported operation.
pub(super) fn input() -> Value {
    let service = said(
        json!({ "enum": ["cycle", "sync", "async", "forwarding"] }),
        "How it is served: a client's cycle, the caller waits, it does not, or the request is passed on.",
    );
    timed(json!({ "service": service }), &["service"])
}

/// An imported operation.
pub(super) fn output() -> Value {
    let request = said(
        json!({ "enum": ["sync", "async", "deferred"] }),
        "How it is called: the caller waits, it does not, or it waits later.",
    );
    let within = said(
        json!({ "type": "array", "prefixItems": [name(), name()], "minItems": 2, "maxItems": 2 }),
        "Interface and name of the exported operation that called it.",
    );
    timed(
        json!({ "request": request, "within": within, "protocol": said(name(), "Its protocol sequence.") }),
        &["request"],
    )
}
