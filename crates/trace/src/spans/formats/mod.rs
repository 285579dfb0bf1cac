//! The formats that spans come in: one file or folder each, which says how the format is told apart and how it is read.
//!
//! To add one: a variant of [`Format`], a file here with its `FORMAT`, a line in [`REGISTRY`], and a fuzz target.

mod chrome;
mod datadog;
mod elastic;
mod go;
mod honeycomb;
mod jaeger;
mod kieker;
mod lines;
mod otlp;
pub(crate) mod otlp_proto;
mod parquet;
mod protobuf;
mod python;
mod records;
mod skywalking;
mod table;
mod xray;
mod zipkin;

use std::io::Read;

use crate::detect::Keys;
use crate::format::Format;
use crate::spans::builder::Builder;
use dyelog_diagnostic::Diagnostics;

pub(crate) use jaeger::Reference;
pub use table::TableMapping;

/// A format of spans.
pub(crate) struct SpanFormat {
    /// Which one.
    pub format: Format,
    /// What findings call it.
    pub title: &'static str,
    /// What its files are made of.
    pub content: &'static [Content],
    /// Whether a file that is made of that and begins so is of this format. The first format of [`REGISTRY`] that says so is taken.
    pub detect: fn(Content, &Head<'_>) -> bool,
    /// Reads one input. Where `strict`, a record that cannot be read is an error.
    pub read: fn(&mut Builder<'_>, &mut dyn Read, strict: bool) -> Result<(), Diagnostics>,
    /// Reads the files of a trace that lies in several.
    pub together: Option<ReadTogether>,
}

/// Reads the files of one trace.
type ReadTogether = fn(&mut Builder<'_>, Vec<Piece<'_>>, strict: bool) -> Result<(), Diagnostics>;

/// One of the files of a trace that lies in several.
pub(crate) struct Piece<'a> {
    /// Its name, with its folder.
    pub name: String,
    /// What is in it.
    pub input: Box<dyn Read + 'a>,
}

/// What files are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON documents.
    Json,
    /// Lines of text.
    Lines,
    /// Bytes.
    Binary,
}

/// The beginning of a file.
pub(crate) struct Head<'a> {
    /// As it is.
    pub bytes: &'a [u8],
    /// Without a byte order mark and white space before it.
    pub text: &'a [u8],
    /// The keys of objects in it, where it is JSON.
    pub keys: Keys<'a>,
}

/// How many lines with something on them are looked at: a damaged line must not hide the format of the others.
const LINES: usize = 50;

impl Head<'_> {
    /// The first lines with something on them, without comments.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines.filter(|line| !line.is_empty() && line[0] != b'#').take(LINES)
    }

    /// Whether objects have all of these keys.
    pub fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.keys.has(key))
    }

    /// Whether objects have any of these keys.
    pub fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.keys.has(key))
    }
}

/// All formats of spans, in the order in which they are tried.
pub(crate) static REGISTRY: [&SpanFormat; 13] = [
    &otlp::FORMAT,
    &otlp_proto::FORMAT,
    &skywalking::FORMAT,
    &honeycomb::FORMAT,
    &datadog::FORMAT,
    &elastic::FORMAT,
    &xray::FORMAT,
    &chrome::FORMAT,
    &jaeger::FORMAT,
    &zipkin::FORMAT,
    &kieker::FORMAT,
    &parquet::FORMAT,
    &table::FORMAT,
];

/// The format of spans that a file of that content begins as.
pub(crate) fn detect(content: Content, head: &Head<'_>) -> Option<Format> {
    REGISTRY.iter().find(|own| own.content.contains(&content) && (own.detect)(content, head)).map(|own| own.format)
}

/// How a format of spans is read; `None` for what has no spans.
pub(crate) fn of(format: Format) -> Option<&'static SpanFormat> {
    REGISTRY.iter().copied().find(|own| own.format == format)
}
