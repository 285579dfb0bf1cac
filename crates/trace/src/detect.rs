//! Which format a trace is in, from its content.

use crate::angio::is_statement;
use crate::messages::{
    self,
    shiviz::{is_clocked, names_its_host},
};
use crate::read::nothing_in;
use crate::spans::formats::{self, Content, Head};
use crate::{Format, codes};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

/// How much of the content is looked at, in bytes.
pub const HEAD: usize = 64 * 1024;

/// Tells the format from the first bytes of a trace, at most [`HEAD`].
///
/// # Errors
/// When there is nothing, or nothing that fits; says what was seen.
pub fn detect(file: &str, head: &[u8]) -> Result<Format, Diagnostics> {
    let head = &head[..head.len().min(HEAD)];
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let place = Place::File { file: file.into() };
    if text.is_empty() {
        return Err(nothing_in(file).into());
    }
    if dyelog_callgraph::is_records(head) {
        return Ok(Format::Calls);
    }
    let spans = Head { bytes: head, text, keys: Keys::none() };
    if let Some(format) = formats::detect(Content::Binary, &spans) {
        return Ok(format);
    }
    let seen = match text[0] {
        _ if magic(head).is_some() => binary(head),
        b'{' | b'[' => match json(text) {
            Ok(format) => return Ok(format),
            // A clock by itself looks like any object of numbers.
            Err(_) if spans.lines().any(names_its_host) => return Ok(Format::Shiviz),
            Err(seen) => match empty_export(text) {
                None => seen,
                Some(what) => {
                    return Err(Diagnostic::error(codes::EMPTY, place, "there is no trace in this file")
                        .with_note(format!("it is an export, and {what} is empty"))
                        .with_hint("export again with a wider range of time, or of another service")
                        .into());
                }
            },
        },
        _ => match lines(text) {
            Some(format) => return Ok(format),
            None if text.contains(&0) => binary(head),
            None => plain(text),
        },
    };
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, place, "the format of this file is not recognised")
        .with_note(seen.note)
        .with_hint(seen.hint.unwrap_or("name the format with `--from FORMAT` if it is one of those that can be read"))
        .into())
}

/// What is empty in a JSON document that holds nothing but an empty list of traces or spans.
fn empty_export(text: &[u8]) -> Option<String> {
    // An export with nothing in it is short; the beginning of a long document is no document.
    let document: serde_json::Value = serde_json::from_slice(text).ok()?;
    let nothing = |value: &serde_json::Value| match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match &document {
        serde_json::Value::Array(items) => items.is_empty().then(|| "its list of traces".to_owned()),
        serde_json::Value::Object(members) => {
            let (name, _) = members.iter().find(|(name, value)| LISTS.contains(&name.as_str()) && nothing(value))?;
            let others = members.values().any(|value| match value {
                serde_json::Value::Array(items) => !items.is_empty(),
                serde_json::Value::Object(members) => !members.is_empty(),
                _ => false,
            });
            (!others).then(|| format!("`{name}`"))
        }
        _ => None,
    }
}

/// Under what names exports list their traces or spans.
const LISTS: [&str; 3] = ["data", "traces", "spans"];

/// What is to say about a content that is no trace.
struct Seen {
    note: String,
    hint: Option<&'static str>,
}

/// The beginnings of files that people take for traces by mistake.
const MAGIC: [(&[u8], &str, &str); 9] = [
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\xfd7zXZ\0", "an xz archive in an archive", "unpack it once"),
    (b"BZh", "a bzip2 archive in an archive", "unpack it once"),
    (b"\x04\x22\x4d\x18", "an lz4 archive", "unpack it first, or pack it with gzip or zstd"),
    (b"\x1f\x8b", "a gzip archive in an archive", "unpack it once"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive in an archive", "unpack it once"),
    (b"\xff\xfe", "text in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "save it as UTF-8"),
    (b"\x89PNG", "a picture", ""),
];

fn magic(head: &[u8]) -> Option<(&'static str, &'static str)> {
    MAGIC.iter().find(|(bytes, ..)| head.starts_with(bytes)).map(|(_, what, hint)| (*what, *hint))
}

fn binary(head: &[u8]) -> Seen {
    match magic(head) {
        Some((what, hint)) => Seen { note: format!("it is {what}"), hint: (!hint.is_empty()).then_some(hint) },
        None => Seen {
            note: "it is binary, and no format of traces begins so".to_owned(),
            hint: Some("export OpenTelemetry traces as OTLP, in its JSON or protobuf encoding"),
        },
    }
}

/// The format of a JSON document or of JSON Lines, by the keys in it.
fn json(text: &[u8]) -> Result<Format, Seen> {
    let keys = Keys::of(text);
    if keys.first_object_has(&["operation", "run"]) || keys.first_object_has(&["j", "k", "m", "l"]) {
        return Ok(Format::AngioJsonl);
    }
    let head = Head { bytes: text, text, keys };
    if let Some(format) = formats::detect(Content::Json, &head) {
        return Ok(format);
    }
    if head.has(&["sender", "receiver"]) {
        return Ok(Format::Messages);
    }
    if head.has(&["event", "process"]) {
        return Ok(Format::Events);
    }
    if head.keys.keys.is_empty() {
        return Err(plain(text));
    }
    let no_trace = NO_TRACES.iter().find(|(names, ..)| head.has(names));
    Err(match no_trace {
        Some((_, what, hint)) => Seen { note: format!("it is {what}"), hint: Some(*hint) },
        None => Seen { note: head.keys.described(), hint: None },
    })
}

/// What other JSON people have beside their traces, by its keys.
const NO_TRACES: [(&[&str], &str, &str); 8] = [
    (&["resourceLogs"], "logs of OpenTelemetry, without spans", EXPORT),
    (&["resource_logs"], "logs of OpenTelemetry, without spans", EXPORT),
    (&["resourceMetrics"], "metrics of OpenTelemetry, without spans", EXPORT),
    (&["resource_metrics"], "metrics of OpenTelemetry, without spans", EXPORT),
    (&["resourceProfiles"], "profiles of OpenTelemetry, without spans", EXPORT),
    (&["resource_profiles"], "profiles of OpenTelemetry, without spans", EXPORT),
    (&["parent", "child", "callCount"], "a dependency graph: who calls whom how often, without the calls", EXPORT),
    (&["resultType", "result"], "an answer of Prometheus: metrics, without spans", EXPORT),
];

const EXPORT: &str = "export the traces themselves";

/// The keys of the objects in the beginning of a JSON text, whether that is complete or not.
pub(crate) struct Keys<'a> {
    /// Depth of nesting and key, in the order of the text.
    keys: Vec<(usize, &'a [u8])>,
    /// How many of the keys come before the first object ends.
    first: usize,
}

impl<'a> Keys<'a> {
    /// Of what is no JSON.
    fn none() -> Self {
        Self { keys: Vec::new(), first: 0 }
    }

    fn of(text: &'a [u8]) -> Self {
        let (mut keys, mut first, mut depth, mut at) = (Vec::new(), None, 0usize, 0);
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                b'{' => depth += 1,
                b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && first.is_none() {
                        first = Some(keys.len());
                    }
                }
                b'"' => {
                    let Some(length) = string_length(&text[at..]) else { break };
                    let string = &text[at..at + length];
                    at += length + 1;
                    if text[at..].trim_ascii_start().first() == Some(&b':') {
                        keys.push((depth, string));
                    }
                }
                _ => {}
            }
        }
        let first = first.unwrap_or(keys.len());
        Self { keys, first }
    }

    /// Whether an object has a key.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|(_, key)| *key == name.as_bytes())
    }

    fn first_object_has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.keys[..self.first].contains(&(1, name.as_bytes())))
    }

    fn described(&self) -> String {
        let mut shown: Vec<String> = Vec::new();
        for (_, key) in &self.keys {
            let key = format!("`{}`", excerpt(key, 30));
            if !shown.contains(&key) {
                shown.push(key);
            }
            if shown.len() == 8 {
                break;
            }
        }
        format!("it is JSON with the keys {}, and none that tells a format", shown.join(", "))
    }
}

/// Where a string ends that begins before `text`.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The format of a text that is not JSON, by its first lines.
fn lines(text: &[u8]) -> Option<Format> {
    let head = Head { bytes: text, text, keys: Keys::none() };
    if head.lines().any(is_statement) {
        return Some(Format::Angio);
    }
    if let Some(format) = formats::detect(Content::Lines, &head) {
        return Some(format);
    }
    if head.lines().take(5).any(is_lqsim) {
        return Some(Format::Lqsim);
    }
    if let Some(format) = head.lines().next().and_then(table) {
        return Some(format);
    }
    if head.lines().any(is_clocked) {
        return Some(Format::Shiviz);
    }
    let opens = |line: &[u8]| line.strip_prefix(b"operation").is_some_and(|rest| rest.starts_with(b" "));
    head.lines().next().is_some_and(opens).then_some(Format::Angio)
}

/// `0.5   client   client( 2): Sending RNV …`.
fn is_lqsim(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut words = line.split_ascii_whitespace();
    let time = words.next().is_some_and(|word| word.parse::<f64>().is_ok());
    let instance = line.split_once("): ").and_then(|(before, _)| before.rsplit_once('('));
    time && words.count() >= 3 && instance.is_some_and(|(_, number)| number.trim().parse::<u32>().is_ok())
}

/// The format of a table of messages or events, by its header.
fn table(header: &[u8]) -> Option<Format> {
    messages::format_of_header(&std::str::from_utf8(header).ok()?.to_ascii_lowercase())
}

fn plain(text: &[u8]) -> Seen {
    if text[0] == b'<' {
        return Seen {
            note: "it is XML or HTML".to_owned(),
            hint: Some("a model is solved with `dyelog solve MODEL`; it is no trace"),
        };
    }
    if text.starts_with(b"# HELP ") || text.starts_with(b"# TYPE ") {
        return Seen { note: "it is metrics, as Prometheus has them".to_owned(), hint: Some(EXPORT) };
    }
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or(text).trim_ascii_end();
    Seen { note: format!("it is text that begins with `{}`", excerpt(line, 60)), hint: None }
}

/// The beginning of some bytes, fit to be shown.
fn excerpt(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * most)]);
    let mut shown: String = text.chars().take(most).flat_map(char::escape_debug).collect();
    if text.chars().count() > most {
        shown.push('…');
    }
    shown
}
