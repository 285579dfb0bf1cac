//! Files to read, `-` being standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::{Failure, codes};

/// How many bytes are enough to tell a model from a trace.
pub const HEAD: u64 = 64 * 1024;

/// The name of a file as diagnostics show it.
pub fn shown(path: &Path) -> Arc<str> {
    if is_stdin(path) { "standard input".into() } else { path.display().to_string().into() }
}

/// Whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens a file.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>, Diagnostic> {
    if is_stdin(path) {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) if file.metadata().is_ok_and(|metadata| metadata.is_dir()) => {
            Err(unreadable(path, &io::Error::other("it is a folder")))
        }
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The first bytes of a file, and the whole of it, those bytes included.
pub fn peek(path: &Path) -> Result<(Vec<u8>, Box<dyn Read + Send>), Diagnostic> {
    let mut input = open(path)?;
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| unreadable(path, &error))?;
    let whole = io::Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

/// The text of a file.
pub fn text(path: &Path) -> Result<String, Diagnostic> {
    read_text(path, open(path)?)
}

/// The text of a file that is open already.
pub fn read_text(path: &Path, mut input: impl Read) -> Result<String, Diagnostic> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = u32::try_from(memchr::memchr_iter(b'\n', good).count() + 1).unwrap_or(u32::MAX);
        let place = Place::Line { file: shown(path), line, column: 0 };
        let finding = Diagnostic::error(codes::NOT_TEXT, place, "the file is not text in UTF-8");
        match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => finding.with_hint("it begins as UTF-16 does: save it as UTF-8"),
            _ => finding,
        }
    })
}

/// Refuses to read standard input twice.
pub fn check_stdin_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    if paths.into_iter().filter(|path| is_stdin(path)).count() > 1 {
        let message = "standard input is named more than once, but can be read only once";
        return Err(Diagnostic::error(codes::STDIN_TWICE, Place::Nowhere, message).into());
    }
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::UNREADABLE, Place::File { file: shown(path) }, format!("the file cannot be read: {error}"))
}
