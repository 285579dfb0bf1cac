//! How messages lie in a file, told by its first bytes.

use super::wire::{Shape, fits, varint};

/// How messages lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One message, `TracesData` or a request, or several without anything between them.
    Bare,
    /// Each message after its length, a number of variable length: `writeDelimitedTo` of the languages' libraries.
    Delimited,
    /// Each message after its length in four bytes, highest first: the file exporter of the Collector. A message may be packed by
    /// itself with zstd.
    Prefixed,
}

/// How many bytes are too few to be told apart where they are cut off.
const FEW: usize = 32;

/// The first bytes of a message that is packed with zstd.
pub(super) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

impl Framing {
    /// That of a file that begins so; `None` where it is no OTLP.
    ///
    /// Each framing is tried, and the bytes must be messages of the known shape down to spans as far as the head goes.
    pub fn of(head: &[u8]) -> Option<Self> {
        // A few bytes that are cut off are anything, blank lines before a text among them.
        if request(head, head.len() > FEW) {
            return Some(Self::Bare);
        }
        if let Some((length, rest)) = varint(head)
            && let Ok(length) = usize::try_from(length)
            && length > 1
            && request(&rest[..rest.len().min(length)], rest.len() < length)
        {
            return Some(Self::Delimited);
        }
        let (length, rest) = head.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let message = &rest[..rest.len().min(length)];
        let packed = length > ZSTD.len() && message.starts_with(ZSTD);
        (packed || length > 1 && request(message, rest.len() < length)).then_some(Self::Prefixed)
    }
}

const RESOURCE: &[(u64, Shape)] = &[(1, Shape::Message(KEY_VALUE)), (2, Shape::Number), (3, Shape::Bytes)];
const KEY_VALUE: &[(u64, Shape)] = &[(1, Shape::Bytes), (2, Shape::Bytes)];
const SCOPE: &[(u64, Shape)] =
    &[(1, Shape::Bytes), (2, Shape::Bytes), (3, Shape::Message(KEY_VALUE)), (4, Shape::Number)];
const SPAN: &[(u64, Shape)] = &[
    (1, Shape::Bytes),
    (2, Shape::Bytes),
    (3, Shape::Bytes),
    (4, Shape::Bytes),
    (5, Shape::Bytes),
    (6, Shape::Number),
    (7, Shape::Fixed64),
    (8, Shape::Fixed64),
    (9, Shape::Message(KEY_VALUE)),
    (10, Shape::Number),
    (11, Shape::Bytes),
    (12, Shape::Number),
    (13, Shape::Bytes),
    (14, Shape::Number),
    (15, Shape::Bytes),
    (16, Shape::Fixed32),
];
const SCOPE_SPANS: &[(u64, Shape)] = &[(1, Shape::Message(SCOPE)), (2, Shape::Message(SPAN)), (3, Shape::Bytes)];
const RESOURCE_SPANS: &[(u64, Shape)] = &[
    (1, Shape::Message(RESOURCE)),
    (2, Shape::Message(SCOPE_SPANS)),
    (3, Shape::Bytes),
    // What `scope_spans` was called before.
    (1000, Shape::Message(SCOPE_SPANS)),
];
const REQUEST: &[(u64, Shape)] = &[(1, Shape::Message(RESOURCE_SPANS))];

/// Whether bytes are a request, or the beginning of one where `cut`. An empty resource alone tells nothing.
fn request(bytes: &[u8], cut: bool) -> bool {
    bytes.len() > 4 && fits(bytes, REQUEST, cut)
}
