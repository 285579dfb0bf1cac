//! The frames in which messages come and go: headers, an empty line, a body.
//!
//! What comes may be broken. A frame that cannot be read costs itself and no other, and never more memory than a message may have.

use std::io::{self, BufRead, Read, Write};

/// The longest message that is read, in bytes.
pub const LARGEST: u64 = 64 << 20;
/// The longest line of a header.
const LINE: u64 = 4096;
/// The header that tells how long a message is.
const LENGTH: &str = "content-length:";

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The body of a message.
    Body(Vec<u8>),
    /// A frame that cannot be read, and why.
    Broken(String),
}

/// The next frame; `None` at the end of the input.
pub fn next(input: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let mut length: Option<Result<u64, String>> = None;
    let mut strange = false;
    loop {
        let Some(line) = line(input)? else { return Ok(None) };
        let line = line.trim();
        if line.is_empty() {
            match length.take() {
                Some(Ok(length)) => return body(input, length),
                Some(Err(reason)) => return Ok(Some(Frame::Broken(reason))),
                None if strange => return Ok(Some(Frame::Broken("there is no header Content-Length".to_owned()))),
                None => {}
            }
        } else if let Some(at) = line.to_ascii_lowercase().rfind(LENGTH) {
            // Bytes that a message had beyond its length stand before the next header, on its line.
            let number = line[at + LENGTH.len()..].trim();
            length = Some(number.parse().map_err(|_| "Content-Length is no number".to_owned()));
        } else {
            strange = true;
        }
    }
}

/// A line of the header, cut where it is too long; `None` at the end of the input.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(LINE).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    // Of a longer line the end counts: the next header may stand there.
    while bytes.last() != Some(&b'\n') {
        let mut more = Vec::new();
        if input.by_ref().take(LINE).read_until(b'\n', &mut more)? == 0 {
            break;
        }
        bytes.drain(..bytes.len().saturating_sub(64));
        bytes.append(&mut more);
    }
    // Lower case of ASCII alone keeps the length, whatever else stands there.
    Ok(Some(bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect()))
}

fn body(input: &mut impl BufRead, length: u64) -> io::Result<Option<Frame>> {
    if length > LARGEST {
        io::copy(&mut input.by_ref().take(length), &mut io::sink())?;
        return Ok(Some(Frame::Broken(format!("a message has at most {} MiB", LARGEST >> 20))));
    }
    // Memory is taken as bytes come, not as they are promised.
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == length).then_some(Frame::Body(bytes)))
}

/// Writes a message.
pub fn write(output: &mut impl Write, body: &str) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::{Frame, next};

    fn all(text: &str) -> Vec<Frame> {
        let mut input = text.as_bytes();
        std::iter::from_fn(|| next(&mut input).expect("bytes can be read")).collect()
    }

    #[test]
    fn broken_frames_cost_themselves_and_no_other() {
        let good = "Content-Length: 2\r\n\r\n{}";
        let body = || Frame::Body(b"{}".to_vec());
        assert_eq!(all(&format!("{good}\r\n\r\n{good}")), [body(), body()]);
        assert_eq!(all(&format!("content-length:2\nContent-Type: x\n\n{{}}{good}")), [body(), body()]);
        for broken in ["Content-Length: x\r\n\r\n", "Nothing\r\n\r\n", "Content-Length: -1\r\n\r\n"] {
            let found = all(&format!("{broken}{good}"));
            assert!(matches!(&found[..], [Frame::Broken(_), last] if *last == body()), "{broken}: {found:?}");
        }
        // A length that is too short leaves bytes before the next header.
        assert_eq!(all(&format!("Content-Length: 1\r\n\r\n{{}}{good}")), [Frame::Body(b"{".to_vec()), body()]);
        assert_eq!(all(&format!("{}{good}", "x".repeat(100_000))), [body()]);
        assert_eq!(all("Content-Length: 99999999999999\r\n\r\n{}").len(), 1);
        assert_eq!(all("Content-Length: 10\r\n\r\n{}"), []);
    }
}
