//! Identifiers of traces and spans as numbers, from any of their spellings.
//!
//! A text of hexadecimal digits is a number, whatever its case and its leading zeros: `5B8E…`, `5b8e…` and `0000…5b8e…` are the
//! same. Texts of 24 and 12 characters that end in `=` are base64 of 16 and 8
//! bytes. Anything else (`trace-123`) becomes a number by hashing, and its text is kept to be shown.

use std::fmt;

/// A trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u128);

/// A span within a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub u64);

impl TraceId {
    /// No trace.
    pub const NONE: Self = Self(0);

    /// Whether it stands for a trace.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The identifier, and whether its text has to be kept.
    pub fn parse(text: &str) -> (Self, bool) {
        let (number, odd) = parse(text, 24, 32);
        (Self(number), odd)
    }
}

impl SpanId {
    /// No span.
    pub const NONE: Self = Self(0);

    /// Whether it stands for a span.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The identifier, and whether its text has to be kept.
    pub fn parse(text: &str) -> (Self, bool) {
        let (number, odd) = parse(text, 12, 16);
        let folded = (number as u64) ^ ((number >> 64) as u64);
        (Self(if odd { folded.max(1) } else { number as u64 }), odd)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >> 64 == 0 { write!(f, "{:016x}", self.0) } else { write!(f, "{:032x}", self.0) }
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The number behind `text`, and whether it came from hashing.
fn parse(text: &str, base64_length: usize, hex_length: usize) -> (u128, bool) {
    let text = text.trim();
    if text.is_empty() {
        return (0, false);
    }
    // Base64 of 16 or 8 bytes always ends in padding, which no hexadecimal number does.
    let base64 = (text.len() == base64_length && text.ends_with('=')).then(|| base64(text)).flatten();
    if let Some(number) = base64.or_else(|| if text.len() <= hex_length { hex(text) } else { None }) {
        return (number, false);
    }
    (hash(text).max(1), true)
}

fn hex(text: &str) -> Option<u128> {
    text.bytes().try_fold(0_u128, |number, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// 16 bytes in 22 digits or 8 bytes in 11, each padded to whole groups of four.
fn base64(text: &str) -> Option<u128> {
    let digits = text.trim_end_matches('=');
    // The digits hold more bits than the bytes; the last one gives only its upper bits.
    let (bits_of_last, surplus) = match (digits.len(), text.len()) {
        (22, 24) => (2, 4),
        (11, 12) => (4, 2),
        _ => return None,
    };
    let (last, head) = digits.as_bytes().split_last()?;
    let number = head.iter().try_fold(0_u128, |number, &byte| Some(number << 6 | digit(byte)?))?;
    Some(number << bits_of_last | digit(*last)? >> surplus)
}

fn digit(byte: u8) -> Option<u128> {
    Some(u128::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

/// FNV-1a of 128 bits: the same on every machine, and no table of arrival decides the order of what it numbers.
fn hash(text: &str) -> u128 {
    text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::{SpanId, TraceId};

    #[test]
    fn spellings_of_one_identifier_are_one_number() {
        let trace = |text| TraceId::parse(text);
        let wanted = (TraceId(0x2020_2d6c_6c17_bfe5), false);
        assert_eq!(trace("20202d6c6c17bfe5"), wanted);
        assert_eq!(trace("000000000000000020202d6c6c17bfe5"), wanted);
        assert_eq!(trace("20202D6C6C17BFE5"), wanted);
        assert_eq!(trace("AAAAAAAAAAAgIC1sbBe/5Q=="), wanted);
        assert_eq!(SpanId::parse("Xuf6lULir9s="), (SpanId(0x5ee7_fa95_42e2_afdb), false));
        assert_eq!(SpanId::parse("5ee7fa9542e2afdb"), (SpanId(0x5ee7_fa95_42e2_afdb), false));
        assert_eq!(SpanId::parse("//////////8="), (SpanId(u64::MAX), false));
        assert_eq!(trace("/////////////////////w=="), (TraceId(u128::MAX), false));
    }

    #[test]
    fn other_texts_are_hashed_and_told_apart() {
        let (a, odd) = SpanId::parse("span-1");
        assert!(odd && a.is_some());
        assert_ne!(a, SpanId::parse("span-2").0);
        assert_eq!(SpanId::parse(""), (SpanId::NONE, false));
        assert_eq!(SpanId::parse("0000000000000000"), (SpanId::NONE, false));
        // A number too long for a span is not cut short.
        assert!(SpanId::parse("00000000000000000000000000000001").1);
    }
}
