//! Small traces, written as a table: `id parent service kind name start end [attribute=value …]`, times in milliseconds.
//!
//! `-` stands for no parent, `x/id` for a span of trace x (else of trace `1`, and a parent of its child's), kind `none` for no kind. The attributes
//! `link=x/id`, `follows`, `remote`, `host=…`, `instance=…` and `noend` become what they say in each format.

use serde_json::{Value, json};

use super::dump::{Outcome, Show, dump, read};

/// Of odd microseconds, so that the times do not look as if the clock counted milliseconds.
const EPOCH_US: i64 = 1_700_000_000_000_001;

pub struct Row {
    pub trace: String,
    pub id: String,
    pub parent: Option<(String, String)>,
    pub service: String,
    pub kind: String,
    pub name: String,
    pub start: i64,
    pub end: i64,
    pub attributes: Vec<(String, String)>,
}

fn reference(text: &str, of: &str) -> (String, String) {
    let (trace, id) = text.split_once('/').unwrap_or((of, text));
    (trace.to_owned(), id.to_owned())
}

pub fn rows(table: &str) -> Vec<Row> {
    table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut next = || words.next().unwrap_or_else(|| panic!("too few words: {line}")).to_owned();
            let (trace, id) = reference(&next(), "1");
            let parent = Some(next()).filter(|parent| parent != "-").map(|parent| reference(&parent, &trace));
            let [service, kind, name, start, end] = std::array::from_fn(|_| next());
            let time = |text: String| EPOCH_US + (text.parse::<f64>().expect("a time") * 1000.0) as i64;
            let attributes = words
                .map(|word| word.split_once('=').unwrap_or((word, "")))
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            let name = name.replace('_', " ");
            Row { trace, id, parent, service, kind, name, start: time(start), end: time(end), attributes }
        })
        .collect()
}

impl Row {
    fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn plain(&self) -> impl Iterator<Item = &(String, String)> {
        const SPECIAL: [&str; 6] = ["link", "follows", "remote", "host", "instance", "noend"];
        self.attributes.iter().filter(|(key, _)| !SPECIAL.contains(&key.as_str()))
    }

    fn links(&self) -> Vec<(String, String)> {
        self.attributes.iter().filter(|(key, _)| key == "link").map(|(_, value)| reference(value, "1")).collect()
    }

    pub fn otlp(&self) -> Value {
        let mut resource = vec![json!({"key": "service.name", "value": {"stringValue": self.service}})];
        if let Some(host) = self.get("host") {
            resource.push(json!({"key": "host.name", "value": {"stringValue": host}}));
        }
        if let Some(instance) = self.get("instance") {
            resource.push(json!({"key": "service.instance.id", "value": {"stringValue": instance}}));
        }
        let attributes: Vec<Value> =
            self.plain().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
        let links: Vec<Value> =
            self.links().iter().map(|(trace, span)| json!({"traceId": trace, "spanId": span})).collect();
        let kind = ["none", "internal", "server", "client", "producer", "consumer"]
            .iter()
            .position(|kind| *kind == self.kind)
            .expect("a kind");
        let mut span = json!({
            "traceId": self.trace, "spanId": self.id, "name": self.name, "kind": kind,
            "startTimeUnixNano": (self.start * 1000).to_string(), "endTimeUnixNano": (self.end * 1000).to_string(),
            "attributes": attributes, "links": links,
            "flags": if self.get("remote").is_some() { 0x301 } else { 0x101 },
        });
        if self.get("noend").is_some() {
            span.as_object_mut().expect("an object").shift_remove("endTimeUnixNano");
        }
        if let Some((_, id)) = &self.parent {
            span["parentSpanId"] = json!(id);
        }
        json!({"resource": {"attributes": resource}, "scopeSpans": [{"scope": {}, "spans": [span]}]})
    }

    pub fn jaeger(&self) -> Value {
        let mut references = Vec::new();
        if let Some((trace, id)) = &self.parent {
            let kind = if self.get("follows").is_some() { "FOLLOWS_FROM" } else { "CHILD_OF" };
            references.push(json!({"refType": kind, "traceID": trace, "spanID": id}));
        }
        references.extend(
            self.links().iter().map(|(trace, id)| json!({"refType": "FOLLOWS_FROM", "traceID": trace, "spanID": id})),
        );
        let mut tags: Vec<Value> =
            self.plain().map(|(key, value)| json!({"key": key, "type": "string", "value": value})).collect();
        if self.kind != "none" {
            tags.push(json!({"key": "span.kind", "type": "string", "value": self.kind}));
        }
        let mut process = Vec::new();
        if let Some(host) = self.get("host") {
            process.push(json!({"key": "hostname", "type": "string", "value": host}));
        }
        if let Some(instance) = self.get("instance") {
            process.push(json!({"key": "service.instance.id", "type": "string", "value": instance}));
        }
        let mut span = json!({
            "traceID": self.trace, "spanID": self.id, "operationName": self.name, "references": references,
            "startTime": self.start, "duration": self.end - self.start, "tags": tags, "logs": [],
            "process": {"serviceName": self.service, "tags": process},
        });
        if self.get("noend").is_some() {
            span.as_object_mut().expect("an object").shift_remove("duration");
        }
        span
    }
}

pub fn otlp(table: &str) -> String {
    json!({"resourceSpans": rows(table).iter().map(Row::otlp).collect::<Vec<_>>()}).to_string()
}

pub fn jaeger(table: &str) -> String {
    json!({"data": [{"spans": rows(table).iter().map(Row::jaeger).collect::<Vec<_>>(), "processes": {}}]}).to_string()
}

pub fn read_rows(table: &str) -> Outcome {
    // FOLLOWS_FROM is Jaeger's alone, known remote parents are OTLP's.
    let only_jaeger = table.contains("follows");
    let only_otlp = table.contains("remote");
    let from_jaeger = read("jaeger", jaeger(table).as_bytes()).expect("it can be read");
    let from_otlp = read("otlp", otlp(table).as_bytes()).expect("it can be read");
    if only_jaeger {
        return from_jaeger;
    }
    if !only_otlp {
        assert_eq!(dump(&from_jaeger, Show::Times), dump(&from_otlp, Show::Times), "the formats differ");
    }
    from_otlp
}

/// The events of a small trace, read from both formats.
pub fn events(table: &str) -> String {
    dump(&read_rows(table), Show::Structure)
}

/// The events with their times.
pub fn timed(table: &str) -> String {
    dump(&read_rows(table), Show::Times)
}

/// What was counted.
pub fn counted(table: &str) -> String {
    let report = read_rows(table).report;
    report.counted.iter().fold(String::new(), |text, (reason, times)| text + &format!("{reason}: {times}\n"))
}
