//! What is read: named inputs, opened when it is their turn.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Place};
use crate::pipeline::codes;

/// How many bytes are enough to tell a model from a trace.
pub const HEAD: u64 = 64 * 1024;

/// Something to read from.
pub type Reader = Box<dyn Read + Send>;

/// How an input is opened.
type Opener = Arc<dyn Fn() -> io::Result<Reader> + Send + Sync>;

/// A named input.
#[derive(Clone)]
pub struct Input {
    name: Arc<str>,
    length: Option<u64>,
    opener: Opener,
    found: bool,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).field("length", &self.length).finish_non_exhaustive()
    }
}

impl Input {
    /// Bytes or a text that are at hand, under a name that findings show.
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let content: Arc<[u8]> = content.as_ref().into();
        let length = content.len() as u64;
        let opener = Arc::new(move || Ok(Box::new(io::Cursor::new(Arc::clone(&content))) as Reader));
        Self { name: name.into(), length: Some(length), opener, found: false }
    }

    /// An input that is opened when it is read. With a length, in bytes, it can be opened again and again with one result, as files
    /// can; without, once, as a pipe.
    pub fn opened_by(
        name: &str,
        length: Option<u64>,
        open: impl Fn() -> io::Result<Reader> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), length, opener: Arc::new(open), found: false }
    }

    /// It was found in a folder or an archive: where it is no trace, it is left out.
    #[must_use]
    pub fn found(self) -> Self {
        Self { found: true, ..self }
    }

    /// Whether it was found, and not named.
    pub fn is_found(&self) -> bool {
        self.found
    }

    /// Its name, as findings show it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its length in bytes, where it can be opened again.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Opens it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(&self) -> Result<Reader, Diagnostic> {
        (self.opener)().map_err(|error| unreadable(&self.name, &error))
    }

    /// Its first bytes, and the whole of it, those bytes included.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn peek(&self) -> Result<(Vec<u8>, Reader), Diagnostic> {
        let mut input = self.open()?;
        let mut head = Vec::new();
        input.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| unreadable(&self.name, &error))?;
        let whole = io::Cursor::new(head.clone()).chain(input);
        Ok((head, Box::new(whole)))
    }

    /// Its text.
    ///
    /// # Errors
    /// When it cannot be read, or is not text in UTF-8.
    pub fn text(&self) -> Result<String, Diagnostic> {
        read_text(&self.name, self.open()?)
    }
}

/// The text of an input that is open already.
///
/// # Errors
/// When it cannot be read, or is not text in UTF-8.
pub fn read_text(name: &Arc<str>, input: impl Read) -> Result<String, Diagnostic> {
    text_of(name, read_bytes(name, input)?)
}

/// The bytes of an input that is open already.
///
/// # Errors
/// When it cannot be read.
pub fn read_bytes(name: &Arc<str>, mut input: impl Read) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    Ok(bytes)
}

/// The text of an input that was read.
///
/// # Errors
/// When it is not text in UTF-8.
pub fn text_of(name: &Arc<str>, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = u32::try_from(memchr::memchr_iter(b'\n', good).count() + 1).unwrap_or(u32::MAX);
        let place = Place::Line { file: Arc::clone(name), line, column: 0 };
        let finding = Diagnostic::error(codes::NOT_TEXT, place, "the file is not text in UTF-8");
        match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => finding.with_hint("it begins as UTF-16 does: save it as UTF-8"),
            _ => finding,
        }
    })
}

fn unreadable(name: &Arc<str>, error: &io::Error) -> Diagnostic {
    let place = Place::File { file: Arc::clone(name) };
    Diagnostic::error(codes::UNREADABLE, place, format!("the file cannot be read: {error}"))
}
