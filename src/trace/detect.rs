//! Which format a trace is in, from its content.

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::trace::{Format, codes};

/// How much of the content is looked at, in bytes.
pub const HEAD: usize = 64 * 1024;

/// Tells the format from the first bytes of a trace.
///
/// # Errors
/// When there is nothing, or nothing that fits; says what was seen.
pub fn detect(file: &str, head: &[u8]) -> Result<Format, Diagnostics> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let place = Place::File { file: file.into() };
    if text.is_empty() {
        return Err(Diagnostic::error(codes::EMPTY, place, "there is nothing in this file").into());
    }
    if text.starts_with(b"{") && memchr::memmem::find(text, b"\"operation\"").is_some() {
        return Ok(Format::AngioJsonl);
    }
    if memchr::memmem::find(text, b"\"resourceSpans\"").is_some() {
        return Ok(Format::Otlp);
    }
    if memchr::memmem::find(text, b"\"traceID\"").is_some() {
        return Ok(Format::Jaeger);
    }
    if memchr::memmem::find(text, b"operation ").is_some() {
        return Ok(Format::Angio);
    }
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, place, "the format of this file is not recognised").into())
}
