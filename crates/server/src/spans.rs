//! A request of the OTLP trace service taken apart, span by span, without a copy.

use std::borrow::Cow;

use dyelog::lqn::digest::Digest;
use dyelog::trace::protobuf::{Fields, Malformed, Value};

/// Lists and maps nest no deeper in the values of attributes.
const DEEPEST: u32 = 64;

/// The kind of digests of spans.
const SPAN: u64 = 0x5350;

/// The kinds of spans that serve: a call, and a message.
const SERVING: [u64; 2] = [2, 5];
/// The kinds of spans that ask: a call, and a message.
const ASKING: [u64; 2] = [3, 4];

/// Which side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asks another service.
    Asks,
    /// It serves who asked.
    Serves,
    /// Neither.
    Within,
}

/// What the server needs to know of a span, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct SpanBytes<'a> {
    /// The trace.
    pub trace: u128,
    /// The span.
    pub id: u64,
    /// Its parent; 0 for a root.
    pub parent: u64,
    /// What it is of a call, as OTLP numbers it.
    pub kind: u64,
    /// Its start, nanoseconds since 1970.
    pub start: u64,
    /// Its end, likewise; 0 where it says none.
    pub end: u64,
    /// Its name.
    pub name: &'a [u8],
    /// A digest of what makes it the same as another: its identifiers, kind, name and times.
    pub fingerprint: u64,
    /// The message.
    pub bytes: &'a [u8],
}

impl SpanBytes<'_> {
    /// Which side of a call it is.
    pub fn role(&self) -> Role {
        match self.kind {
            kind if ASKING.contains(&kind) => Role::Asks,
            kind if SERVING.contains(&kind) => Role::Serves,
            _ => Role::Within,
        }
    }
}

/// A span, or one without usable identifiers.
pub type Found<'a> = Result<SpanBytes<'a>, NoIdentifier>;

/// A span whose identifier, or that of its trace, is missing or of a wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoIdentifier;

/// Gives each span of a request, with the bytes of its resource.
///
/// # Errors
/// When the bytes are no such request. Spans before the fault were given.
pub fn each_span<'a>(request: &'a [u8], mut take: impl FnMut(&[u8], Found<'a>)) -> Result<(), Malformed> {
    let mut fields = Fields::of(request);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            resource_spans(message(value)?, &mut take)?;
        }
    }
    Ok(())
}

/// The resource of a group of spans or of metrics.
pub fn resource_of(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let mut resource: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            let part = message(value)?;
            key_values(part, 1)?;
            // A message that comes twice is both in one.
            if resource.is_empty() { resource = Cow::Borrowed(part) } else { resource.to_mut().extend(part) }
        }
    }
    Ok(resource)
}

fn resource_spans<'a>(bytes: &'a [u8], take: &mut impl FnMut(&[u8], Found<'a>)) -> Result<(), Malformed> {
    let resource = resource_of(bytes)?;
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        // 1000 is what `scope_spans` was called before.
        if matches!(number, 2 | 1000) {
            let mut scope = Fields::of(message(value)?);
            while let Some((number, value)) = scope.next()? {
                if number == 2 {
                    take(&resource, span(message(value)?)?);
                }
            }
        }
    }
    Ok(())
}

fn span(bytes: &[u8]) -> Result<Found<'_>, Malformed> {
    let (mut trace, mut id, mut parent, mut name) = (&b""[..], &b""[..], &b""[..], &b""[..]);
    let (mut kind, mut start, mut end) = (0, 0, 0);
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => trace = message(value)?,
            2 => id = message(value)?,
            4 => parent = message(value)?,
            5 => name = message(value)?,
            6 => kind = value.number(),
            7 => start = value.number(),
            8 => end = value.number(),
            9 => key_value(message(value)?, 0)?,
            11 => key_values(message(value)?, 3)?,
            13 => key_values(message(value)?, 4)?,
            15 => key_values(message(value)?, u64::MAX)?,
            _ => {}
        }
    }
    let ids = (<[u8; 16]>::try_from(trace), <[u8; 8]>::try_from(id));
    let parent = if parent.is_empty() { Ok([0; 8]) } else { <[u8; 8]>::try_from(parent) };
    let (Ok(trace), Ok(id), Ok(parent)) = (ids.0, ids.1, parent) else { return Ok(Err(NoIdentifier)) };
    let (trace, id) = (u128::from_be_bytes(trace), u64::from_be_bytes(id));
    if trace == 0 || id == 0 {
        return Ok(Err(NoIdentifier));
    }
    let parent = u64::from_be_bytes(parent);
    let words = [trace as u64, (trace >> 64) as u64, id, parent, kind, start, end];
    // Digests are stored: they must be the same in later versions of this program.
    let digest = words.into_iter().fold(Digest::of(SPAN), Digest::word).bytes(name);
    Ok(Ok(SpanBytes { trace, id, parent, kind, start, end, name, fingerprint: digest.short(), bytes }))
}

/// A span that is known to be sound.
pub fn sound(bytes: &[u8]) -> Option<SpanBytes<'_>> {
    span(bytes).ok()?.ok()
}

/// The trace of a span that is known to be sound.
pub fn trace_of(span: &[u8]) -> Option<u128> {
    let mut fields = Fields::of(span);
    while let Ok(Some((number, value))) = fields.next() {
        if let (1, Value::Bytes(trace)) = (number, value) {
            return trace.try_into().ok().map(u128::from_be_bytes);
        }
    }
    None
}

/// Checks a message of which one field holds attributes.
pub(crate) fn key_values(bytes: &[u8], attributes: u64) -> Result<(), Malformed> {
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == attributes {
            key_value(message(value)?, 0)?;
        }
    }
    Ok(())
}

/// Checks an attribute, whose value lies so deep in another.
pub(crate) fn key_value(bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == 2 {
            any_value(message(value)?, depth)?;
        }
    }
    Ok(())
}

fn any_value(bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    if depth > DEEPEST {
        return Err(Malformed);
    }
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        if !matches!(number, 5 | 6) {
            continue;
        }
        let mut values = Fields::of(message(value)?);
        while let Some((inner, value)) = values.next()? {
            match (number, inner) {
                (5, 1) => any_value(message(value)?, depth + 1)?,
                (6, 1) => key_value(message(value)?, depth + 1)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// The bytes of a field that has no others.
pub(crate) fn message(value: Value<'_>) -> Result<&[u8], Malformed> {
    if let Value::Bytes(bytes) = value { Ok(bytes) } else { Err(Malformed) }
}

/// Appends a field that holds bytes.
pub fn put_field(into: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    put_head(into, number, bytes.len());
    into.extend(bytes);
}

/// Appends what stands before such a field's bytes.
pub fn put_head(into: &mut Vec<u8>, number: u8, length: usize) {
    into.push((number << 3) | 2);
    put_number(into, length as u64);
}

/// Spans of one resource as a part of a request.
pub fn put_spans(request: &mut Vec<u8>, resource: &[u8], spans: &[u8]) {
    // A message of its own would be a copy of all spans.
    let length = [resource, spans].iter().map(|part| 1 + length_of(part.len()) + part.len()).sum();
    put_head(request, 1, length);
    put_field(request, 1, resource);
    put_field(request, 2, spans);
}

/// How many bytes a number of variable length takes.
fn length_of(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// Appends a number of variable length.
pub fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
