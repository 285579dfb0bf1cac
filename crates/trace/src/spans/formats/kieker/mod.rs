//! Kieker monitoring logs: the map of a folder (`kieker.map`), text (`.dat`) and binary (`.bin`) files, of one or several processes.
//!
//! | what | where from |
//! |---|---|
//! | service | the class of the operation's signature, by its simple name where no other class has that |
//! | name | the method, with the simple names of its parameters' types |
//! | machine | the host that the record or the metadata of its trace names |
//! | caller | executions: the last one with a smaller order index (eoi) and a stack one less deep (ess); events: by nesting |
//! | parallel work | a trace that comes from another one, at a `SplitEvent`; without a `JoinEvent` nobody waits for it |
//! | calls between processes | one trace identifier in the files of both, or `BeforeReceivedRemoteEvent` |
//!
//! - Files are told apart by their first bytes. A data file goes with the map in the same folder; its name tells the folder.
//! - Calls between operations of one class are local work of that class; all others are synchronous calls.
//! - An execution whose caller is missing has a lost parent. Nothing of the log after what it names is guessed.
//! - `CallOperationEvent` says what the events of the callee say. Records of resources and of locks are counted and left out.
//!
//! Records wait until the last file was read: executions on disk where they are many, events in memory, 40 bytes each.

mod log;
mod operations;
mod record;

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use crate::codes;
use crate::read::failed;
use crate::spans::builder::Builder;
use crate::spans::formats::{Content, Piece, SpanFormat};
use crate::spans::time::OUR_DAYS;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};
use log::{FileKind, Log, Map, read_map};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::Kieker,
    title: "Kieker",
    content: &[Content::Lines, Content::Binary],
    detect: |content, head| match content {
        Content::Binary => is_binary(head.bytes),
        _ => head.lines().any(is_kieker),
    },
    read: |builder, input, strict| {
        let name = builder.file.to_string();
        read(builder, vec![Piece { name, input: Box::new(input) }], strict)
    },
    together: Some(read),
};

/// `$1;1412763178834633375;…`, or `$1=kieker.common.record…` of the map file, where the `$` may be missing.
fn is_kieker(line: &[u8]) -> bool {
    let dollar = usize::from(line.starts_with(b"$"));
    let digits = line[dollar..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &line[dollar + digits..];
    digits > 0 && (dollar == 1 && rest.starts_with(b";") || rest.starts_with(b"=kieker."))
}

/// The number of a class in four bytes, and a time of logging of our days, in nanoseconds, in eight.
fn is_binary(head: &[u8]) -> bool {
    let Some((class, rest)) = head.split_first_chunk() else { return false };
    let Some(time) = rest.first_chunk() else { return false };
    let (class, time) = (u32::from_be_bytes(*class), i64::from_be_bytes(*time));
    // From the year 2000 to 2100; no other format begins with two zeros and these.
    class < 1 << 12 && OUR_DAYS.contains(&time)
}

fn read(builder: &mut Builder<'_>, pieces: Vec<Piece<'_>>, strict: bool) -> Result<(), Diagnostics> {
    let mut maps: std::collections::BTreeMap<String, Option<Map>> = std::collections::BTreeMap::new();
    let mut files = Vec::new();
    let whole = Arc::clone(&builder.file);
    for Piece { name, input } in pieces {
        let mut input = BufReader::with_capacity(64 << 10, input);
        let head = input.fill_buf().map_err(|error| failed(&name, &error))?;
        let kind = FileKind::of(head);
        if kind == FileKind::Map {
            builder.file = name.as_str().into();
            read_map(builder, &mut input, maps.entry(folder(&name).to_owned()).or_default(), strict)?;
        } else {
            files.push((name, kind, input));
        }
    }
    if files.is_empty() {
        builder.foreign = Some("the map of a log: name the folder, so that its data are read, too");
    }
    // A log goes on in the next file, by name.
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut log = Log::default();
    builder.hold_traces();
    for (name, kind, mut input) in files {
        builder.file = name.as_str().into();
        let Some(map) = maps.get_mut(folder(&name)).and_then(Option::as_mut) else {
            return Err(no_map(&builder.file).into());
        };
        if kind == FileKind::Text {
            log.read_text(builder, &mut input, map, strict)?;
        } else {
            log.read_binary(builder, &mut input, map, strict)?;
        }
    }
    builder.file = whole;
    operations::spans(builder, log)
}

/// The folder of a file, as its name tells it.
fn folder(name: &str) -> &str {
    name.rfind(['/', '\\']).map_or("", |end| &name[..end])
}

fn no_map(file: &Arc<str>) -> Diagnostic {
    Diagnostic::error(codes::NO_MAP, Place::File { file: Arc::clone(file) }, "the map of this log is missing")
        .with_note("the file `kieker.map` in the folder of a log says what its records are")
        .with_hint("name the folder in place of the file, or `kieker.map` beside it")
}
