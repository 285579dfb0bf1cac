//! An input in blocks that can be parsed each by itself: whole lines, or elements of the list that makes up a document.
//!
//! Where elements end is guessed from how the first two lie: `},{"resource"` as a rule, with the white space of the file. A guess that is wrong
//! shows as a block that is no JSON. Where all blocks are JSON, all guesses were right: lists with a comma between them are a list.

use std::io::{self, Read};
use std::sync::Arc;

use memchr::memmem;
use serde::de::IgnoredAny;

use super::{At, HELD};
use crate::read::failed;
use dyelog_diagnostic::Diagnostics;

/// About how large a block is, in bytes.
const BLOCK: usize = 1 << 20;

/// Bytes that can be parsed by themselves.
pub(super) struct Block {
    pub bytes: Vec<u8>,
    /// Where they begin in their file.
    pub at: At,
}

/// Adds more of an input; false at its end.
fn more(input: &mut dyn Read, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.reserve(BLOCK + 1);
    Ok(input.take(BLOCK as u64).read_to_end(bytes)? == BLOCK)
}

fn newlines(bytes: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', bytes).count()).unwrap_or(u32::MAX)
}

/// An input as blocks of whole lines.
pub(super) struct Lines<'i> {
    file: Arc<str>,
    input: &'i mut dyn Read,
    /// The beginning of the next block.
    begun: Vec<u8>,
    line: u32,
    ended: bool,
}

impl<'i> Lines<'i> {
    pub fn new(file: &Arc<str>, input: &'i mut dyn Read) -> Self {
        Self { file: Arc::clone(file), input, begun: Vec::new(), line: 0, ended: false }
    }

    /// The next block.
    pub fn next(&mut self) -> Result<Option<Block>, Diagnostics> {
        let mut bytes = std::mem::take(&mut self.begun);
        while !self.ended {
            let from = bytes.len();
            self.ended = !more(self.input, &mut bytes).map_err(|error| failed(&self.file, &error))?;
            if let Some(last) = memchr::memrchr(b'\n', &bytes[from..]).filter(|_| !self.ended) {
                self.begun = bytes.split_off(from + last + 1);
                break;
            }
        }
        let at = At { line: self.line, column: 0 };
        self.line = self.line.saturating_add(newlines(&bytes));
        Ok((!bytes.is_empty()).then_some(Block { bytes, at }))
    }
}

/// A document that is one list, as blocks of its elements, each a document like it.
pub(super) struct Elements<'i> {
    file: Arc<str>,
    input: &'i mut dyn Read,
    /// What comes before the elements of each block.
    opening: Vec<u8>,
    /// What comes behind them.
    closing: &'static [u8],
    /// What lies between two elements: the last byte of the one, a comma at this place, and the beginning of the other.
    between: Vec<u8>,
    comma: usize,
    /// The beginning of the next block, and where that lies.
    begun: Vec<u8>,
    at: At,
    ended: bool,
}

fn blank(bytes: &[u8]) -> usize {
    bytes.len() - bytes.trim_ascii_start().len()
}

/// Behind a byte that may have white space before it.
fn behind(bytes: &[u8], byte: u8, from: usize) -> Option<usize> {
    let at = from + blank(bytes.get(from..)?);
    (bytes.get(at) == Some(&byte)).then_some(at + 1)
}

/// Behind a key, and the key.
fn key(bytes: &[u8], from: usize) -> Option<(usize, &[u8])> {
    let begin = behind(bytes, b'"', from)?;
    let length = memchr::memchr(b'"', &bytes[begin..])?;
    Some((begin + length + 1, &bytes[begin..begin + length]))
}

impl<'i> Elements<'i> {
    /// A document that begins so, if it is a list or an object whose first member is one of these lists; `input` gives all of it.
    pub fn of(file: &Arc<str>, names: &[&str], head: &[u8], input: &'i mut dyn Read) -> Option<Self> {
        let (opened, opening, closing): (_, _, &[u8]) = if let Some(opened) = behind(head, b'[', 0) {
            (opened, b"[".to_vec(), b"]")
        } else {
            let (at, name) = key(head, behind(head, b'{', 0)?)?;
            let name = names.iter().find(|own| own.as_bytes() == name)?;
            let opened = behind(head, b'[', behind(head, b':', at)?)?;
            (opened, format!("{{\"{name}\":[").into_bytes(), b"]}")
        };
        let mut first = serde_json::Deserializer::from_slice(&head[opened..]).into_iter::<IgnoredAny>();
        first.next()?.ok()?;
        let end = opened + first.byte_offset();
        let comma = behind(head, b',', end)?;
        let (next, _) = key(head, behind(head, b'{', comma)?)?;
        let begin = end.checked_sub(1).filter(|last| head[*last] == b'}')?;
        let between = head[begin..next].to_vec();
        let mut own = Self {
            file: Arc::clone(file),
            input,
            opening,
            closing,
            between,
            comma: comma - 1 - begin,
            begun: Vec::new(),
            at: At::default(),
            ended: false,
        };
        own.input.take(opened as u64).read_to_end(&mut Vec::new()).ok()?;
        own.skip(&head[..opened]);
        Some(own)
    }

    /// Goes behind bytes that come next.
    fn skip(&mut self, bytes: &[u8]) {
        self.at.line = self.at.line.saturating_add(newlines(bytes));
        match memchr::memrchr(b'\n', bytes) {
            Some(last) => self.at.column = (bytes.len() - last - 1) as i64,
            None => self.at.column += bytes.len() as i64,
        }
    }

    /// Where the block's bytes begin, as the parser counts, which sees the opening first.
    fn opened_at(&self) -> At {
        At { column: self.at.column - self.opening.len() as i64, ..self.at }
    }

    /// The next block; none where elements do not lie as the first ones any more, or at the end.
    pub fn next(&mut self) -> Result<Option<Block>, Diagnostics> {
        let opening = self.opening.len();
        let mut bytes = Vec::with_capacity(opening + self.begun.len() + BLOCK + 2);
        bytes.extend_from_slice(&self.opening);
        bytes.append(&mut self.begun);
        while !self.ended && bytes.len() < HELD as usize {
            self.ended = !more(self.input, &mut bytes).map_err(|error| failed(&self.file, &error))?;
            let Some(at) = memmem::rfind(&bytes[opening..], &self.between) else { continue };
            let end = opening + at + 1;
            self.begun.extend_from_slice(&bytes[end + self.comma..]);
            bytes.truncate(end);
            let at = self.opened_at();
            self.skip(&bytes[opening..]);
            let gap = self.between[1..=self.comma].to_vec();
            self.skip(&gap);
            bytes.extend_from_slice(self.closing);
            return Ok(Some(Block { bytes, at }));
        }
        self.begun = bytes.split_off(opening);
        Ok(None)
    }

    /// What was not read, as the rest of a document: blocks that were taken, what was read beyond them, the rest of the input; and where that
    /// begins.
    pub fn rest(mut self, blocks: Vec<Block>) -> (Vec<u8>, &'i mut dyn Read, At) {
        let at = blocks.first().map_or_else(|| self.opened_at(), |block| block.at);
        let mut rest = self.opening.clone();
        for block in blocks {
            rest.extend_from_slice(&block.bytes[self.opening.len()..block.bytes.len() - self.closing.len()]);
            rest.extend_from_slice(&self.between[1..=self.comma]);
        }
        rest.append(&mut self.begun);
        (rest, self.input, at)
    }
}
