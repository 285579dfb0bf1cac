//! One record of the journal.

use std::io;

use bytes::Bytes;

use super::medium::Handle;
use crate::buffer::Buffer;

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request of the OTLP trace service, in its binary form.
    Traces,
    /// A request of the OTLP metrics service, in its binary form.
    Metrics,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Traces => 1,
            Self::Metrics => 2,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        [Self::Traces, Self::Metrics].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it holds.
    pub kind: Kind,
    /// When it was received, nanoseconds since 1970.
    pub received: u64,
    /// What was received.
    pub payload: Bytes,
}

/// Length and checksum.
const HEAD: usize = 8;
/// Kind and time.
const FACTS: usize = 9;
/// No payload is longer: bodies are limited far below it.
const MOST: usize = 256 << 20;

impl Record {
    /// How many bytes it takes in the journal.
    pub fn length(&self) -> usize {
        HEAD + FACTS + self.payload.len()
    }

    /// Writes what stands before the payload.
    pub(super) fn begin(&self, bytes: &mut Vec<u8>) {
        let length = u32::try_from(self.payload.len()).expect("payloads are limited");
        let facts = self.facts();
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&facts);
        checksum.update(&self.payload);
        bytes.extend(length.to_le_bytes());
        bytes.extend(checksum.finalize().to_le_bytes());
        bytes.extend(facts);
    }

    fn facts(&self) -> [u8; FACTS] {
        let mut facts = [self.kind.byte(); FACTS];
        facts[1..].copy_from_slice(&self.received.to_le_bytes());
        facts
    }
}

/// The record at a place of a segment; `None` where there is no whole one.
pub(super) fn read(handle: &mut impl Handle, at: u64) -> io::Result<Option<Record>> {
    let mut head = [0; HEAD];
    if handle.read(at, &mut head)? < HEAD {
        return Ok(None);
    }
    let word = |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    let (length, checksum) = (word(0) as usize, word(4));
    let rest = handle.length()?.saturating_sub(at + HEAD as u64);
    if length > MOST || (length + FACTS) as u64 > rest {
        return Ok(None);
    }
    let mut body = Buffer::zeros(FACTS + length)?;
    if handle.read(at + HEAD as u64, &mut body)? < body.len() || crc32fast::hash(&body) != checksum {
        return Ok(None);
    }
    let Some(kind) = Kind::of(body[0]) else { return Ok(None) };
    let mut received = [0; 8];
    received.copy_from_slice(&body[1..FACTS]);
    let payload = body.freeze().slice(FACTS..);
    Ok(Some(Record { kind, received: u64::from_le_bytes(received), payload }))
}
