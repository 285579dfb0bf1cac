//! Lines of a stream, block by block, without an allocation a line.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// How much is read at once, in bytes.
const BLOCK: usize = 256 * 1024;

/// No line may be longer than this, in bytes: a file without line ends must not fill the memory.
pub(crate) const LONGEST: usize = 1024 * 1024;

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its bytes.
    Text(&'a [u8]),
    /// It was longer than [`LONGEST`] and is skipped.
    TooLong,
}

/// The lines of an input. Numbers count from 1.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What is read and not yet given out.
    pending: Range<usize>,
    ended: bool,
    number: u32,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; BLOCK], pending: 0..0, ended: false, number: 0 }
    }

    /// The number of the line that was given out last.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The next line, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let Some(found) = self.find()? else { return Ok(None) };
        self.number = self.number.saturating_add(1);
        let Some(range) = found else { return Ok(Some(Line::TooLong)) };
        let mut line = &self.buffer[range];
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        Ok(Some(Line::Text(line.strip_suffix(b"\r").unwrap_or(line))))
    }

    /// Where the next line lies in the buffer; `Some(None)` is one that is too long.
    #[expect(clippy::option_option, reason = "no line and no room for the line are two things")]
    fn find(&mut self) -> io::Result<Option<Option<Range<usize>>>> {
        let mut scanned = self.pending.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[scanned..self.pending.end]) {
                let range = self.pending.start..scanned + at;
                self.pending.start = range.end + 1;
                return Ok(Some(Some(range)));
            }
            if self.ended {
                let range = self.pending.clone();
                self.pending.start = self.pending.end;
                return Ok((!range.is_empty()).then_some(Some(range)));
            }
            if self.pending.len() > LONGEST {
                self.skip_line()?;
                return Ok(Some(None));
            }
            let known = self.pending.len();
            self.fill()?;
            scanned = self.pending.start + known;
        }
    }

    /// Moves what is pending to the front and reads behind it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.pending.clone(), 0);
        self.pending = 0..self.pending.len();
        if self.buffer.len() - self.pending.end < BLOCK / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.pending.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.pending.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Drops everything up to the next line end.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.pending.clone()]) {
                self.pending.start += at + 1;
                return Ok(());
            }
            self.pending = 0..0;
            if self.ended {
                return Ok(());
            }
            self.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: impl Read) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(input);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().expect("memory does not fail") {
            seen.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong => None,
            });
        }
        assert_eq!(seen.len(), lines.number() as usize);
        seen
    }

    /// Gives one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn line_ends_and_byte_order_mark() {
        let text = b"\xef\xbb\xbfa\r\n\nb\n\xef\xbb\xbfc";
        let expected: Vec<_> = [&b"a"[..], b"", b"b", b"\xef\xbb\xbfc"].map(|line| Some(line.to_vec())).into();
        assert_eq!(all(&text[..]), expected);
        assert_eq!(all(Drip(text)), expected);
        assert_eq!(all(&b""[..]), vec![]);
    }

    #[test]
    fn a_line_without_end_is_skipped() {
        let mut text = vec![b'x'; 3 * LONGEST];
        text.extend_from_slice(b"\nshort\n");
        assert_eq!(all(&text[..]), vec![None, Some(b"short".to_vec())]);
        assert_eq!(all(&text[..2 * LONGEST]), vec![None]);
    }
}
