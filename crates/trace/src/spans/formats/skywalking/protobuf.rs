//! Protocol Buffers, in which agents report segments (`SegmentObject`, `SegmentCollection` of `language-agent/Tracing.proto`).
//!
//! One segment is read at a time, whatever the size of the file.

use std::io::{self, BufRead, ErrorKind, Read};

use serde_json::{Map, Value as Json};

use crate::spans::formats::otlp_proto::wire::{Fields, Malformed, Shape, Value, fits, varint};
use crate::spans::formats::protobuf::{field, malformed, number, text, value};

const PAIR: &[(u64, Shape)] = &[(1, Shape::Bytes), (2, Shape::Bytes)];
const REFERENCE: &[(u64, Shape)] = &[
    (1, Shape::Number),
    (2, Shape::Bytes),
    (3, Shape::Bytes),
    (4, Shape::Number),
    (5, Shape::Bytes),
    (6, Shape::Bytes),
    (7, Shape::Bytes),
    (8, Shape::Bytes),
];
const LOG: &[(u64, Shape)] = &[(1, Shape::Number), (2, Shape::Message(PAIR))];
const SPAN: &[(u64, Shape)] = &[
    (1, Shape::Number),
    (2, Shape::Number),
    (3, Shape::Number),
    (4, Shape::Number),
    (5, Shape::Message(REFERENCE)),
    (6, Shape::Bytes),
    (7, Shape::Bytes),
    (8, Shape::Number),
    (9, Shape::Number),
    (10, Shape::Number),
    (11, Shape::Number),
    (12, Shape::Message(PAIR)),
    (13, Shape::Message(LOG)),
    (14, Shape::Number),
];
const SEGMENT: &[(u64, Shape)] = &[
    (1, Shape::Bytes),
    (2, Shape::Bytes),
    (3, Shape::Message(SPAN)),
    (4, Shape::Bytes),
    (5, Shape::Bytes),
    (6, Shape::Number),
];
const COLLECTION: &[(u64, Shape)] = &[(1, Shape::Message(SEGMENT))];

/// How segments lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One, or several without anything between them.
    Alone,
    /// In one or several collections, without anything between them.
    Collected,
    /// Each after its length, a number of variable length.
    Delimited,
    /// In collections, each of which comes after its length.
    DelimitedCollections,
}

impl Framing {
    /// That of a file that begins so; `None` where it is no segment down to its first span.
    pub fn of(head: &[u8]) -> Option<Self> {
        if is_segment(head, true) {
            return Some(Self::Alone);
        }
        if is_collection(head, true) {
            return Some(Self::Collected);
        }
        let (length, rest) = varint(head)?;
        let message = &rest[..rest.len().min(usize::try_from(length).ok()?)];
        let cut = (message.len() as u64) < length;
        if is_segment(message, cut) {
            return Some(Self::Delimited);
        }
        is_collection(message, cut).then_some(Self::DelimitedCollections)
    }
}

fn is_collection(bytes: &[u8], cut: bool) -> bool {
    let Some(body) = bytes.strip_prefix(b"\x0a") else { return false };
    let Some((length, body)) = varint(body) else { return false };
    let first = &body[..body.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    is_segment(first, cut && (first.len() as u64) < length) && fits(bytes, COLLECTION, cut)
}

/// Whether bytes are a segment, or the beginning of one where `cut`: first its identifiers, which are texts, then a span that begins at a time.
fn is_segment(bytes: &[u8], cut: bool) -> bool {
    let mut fields = Fields::of(bytes);
    for wanted in [1, 2] {
        let Ok(Some((number, Value::Bytes(text)))) = fields.next() else { return false };
        let printable = |byte: &u8| byte.is_ascii_graphic();
        if number != wanted || text.is_empty() || !text.iter().all(printable) {
            return false;
        }
    }
    // The first span may be cut off.
    let rest = fields.rest();
    let Some((key, body)) = varint(rest) else { return false };
    let Some((length, body)) = varint(body) else { return false };
    let span = &body[..body.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    key == 3 << 3 | 2 && begins_at_a_time(span) && fits(bytes, SEGMENT, cut)
}

/// Whether a span has a start behind its numbers, in milliseconds since 1970: one of our days is above 2^39.
fn begins_at_a_time(span: &[u8]) -> bool {
    let mut fields = Fields::of(span);
    while let Ok(Some((field, value))) = fields.next() {
        if field == 3 {
            return value.number() >> 39 != 0;
        }
    }
    false
}

/// Hands on each segment, as it is in JSON.
pub(super) fn segments(
    input: &mut dyn BufRead,
    framing: Framing,
    mut take: impl FnMut(Map<String, Json>),
) -> io::Result<()> {
    match framing {
        Framing::Alone => {
            let (mut body, mut segment) = (Vec::new(), Segment::default());
            let end = loop {
                let put = match value(input, &mut body) {
                    Ok(None) => break Ok(()),
                    Ok(Some((number, value))) => {
                        // Its trace comes first, so that another one's begins the next segment.
                        if number == 1 && !segment.spans.is_empty() {
                            take(std::mem::take(&mut segment).whole());
                        }
                        segment.put(number, value).map_err(malformed)
                    }
                    Err(error) => Err(error),
                };
                if put.is_err() {
                    break put;
                }
            };
            if end.is_ok() || !segment.spans.is_empty() {
                take(segment.whole());
            }
            return end;
        }
        Framing::Collected => {
            while let Some((number, body)) = field(input)? {
                if number == 1 {
                    take(segment(&body).map_err(malformed)?);
                }
            }
        }
        Framing::Delimited | Framing::DelimitedCollections => {
            while !input.fill_buf()?.is_empty() {
                let length = number(input)?;
                if framing == Framing::DelimitedCollections {
                    let mut message = Read::take(&mut *input, length);
                    segments(&mut message, Framing::Collected, &mut take as &mut dyn FnMut(_))?;
                    if message.limit() > 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    continue;
                }
                let mut body = Vec::new();
                if Read::take(&mut *input, length).read_to_end(&mut body)? as u64 != length {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                take(segment(&body).map_err(malformed)?);
            }
        }
    }
    Ok(())
}

/// A segment, field by field.
#[derive(Default)]
struct Segment {
    members: Map<String, Json>,
    spans: Vec<Json>,
}

impl Segment {
    fn put(&mut self, number: u64, value: Value<'_>) -> Result<(), Malformed> {
        let (name, value) = match (number, value) {
            (1, Value::Bytes(own)) => ("traceId", text(own).into()),
            (2, Value::Bytes(own)) => ("traceSegmentId", text(own).into()),
            (3, Value::Bytes(own)) => {
                self.spans.push(Json::Object(span(own)?));
                return Ok(());
            }
            (4, Value::Bytes(own)) => ("service", text(own).into()),
            (5, Value::Bytes(own)) => ("serviceInstance", text(own).into()),
            (6, own) => ("isSizeLimited", (own.number() != 0).into()),
            _ => return Ok(()),
        };
        self.members.insert(name.to_owned(), value);
        Ok(())
    }

    fn whole(mut self) -> Map<String, Json> {
        self.members.insert("spans".to_owned(), self.spans.into());
        self.members
    }
}

fn segment(bytes: &[u8]) -> Result<Map<String, Json>, Malformed> {
    let (mut segment, mut fields) = (Segment::default(), Fields::of(bytes));
    while let Some((number, value)) = fields.next()? {
        segment.put(number, value)?;
    }
    Ok(segment.whole())
}

fn span(bytes: &[u8]) -> Result<Map<String, Json>, Malformed> {
    let (mut refs, mut tags) = (Vec::new(), Vec::new());
    let zeros = ["spanId", "parentSpanId", "spanType", "spanLayer"];
    let mut span = members(bytes, &zeros, |number, value| {
        Ok(match (number, value) {
            (1, own) => Some(("spanId", signed(own))),
            (2, own) => Some(("parentSpanId", signed(own))),
            (3, own) => Some(("startTime", signed(own))),
            (4, own) => Some(("endTime", signed(own))),
            (5, Value::Bytes(own)) => {
                refs.push(Json::Object(reference(own)?));
                None
            }
            (6, Value::Bytes(own)) => Some(("operationName", text(own).into())),
            (7, Value::Bytes(own)) => Some(("peer", text(own).into())),
            (8, own) => Some(("spanType", signed(own))),
            (9, own) => Some(("spanLayer", signed(own))),
            (11, own) => Some(("isError", (own.number() != 0).into())),
            (12, Value::Bytes(own)) => {
                tags.push(Json::Object(members(own, &[], |number, value| {
                    let name = if number == 1 { "key" } else { "value" };
                    Ok((number < 3).then(|| (name, text(value.bytes()).into())))
                })?));
                None
            }
            _ => None,
        })
    })?;
    span.insert("refs".to_owned(), refs.into());
    span.insert("tags".to_owned(), tags.into());
    Ok(span)
}

fn reference(bytes: &[u8]) -> Result<Map<String, Json>, Malformed> {
    members(bytes, &["parentSpanId"], |number, value| {
        Ok(match (number, value) {
            (2, Value::Bytes(own)) => Some(("traceId", text(own).into())),
            (3, Value::Bytes(own)) => Some(("parentTraceSegmentId", text(own).into())),
            (4, own) => Some(("parentSpanId", signed(own))),
            _ => None,
        })
    })
}

/// The members of an object; what is 0 need not be written.
fn members(
    bytes: &[u8],
    zeros: &[&str],
    mut member: impl FnMut(u64, Value<'_>) -> Result<Option<(&'static str, Json)>, Malformed>,
) -> Result<Map<String, Json>, Malformed> {
    let mut members: Map<String, Json> = zeros.iter().map(|name| ((*name).to_owned(), 0.into())).collect();
    let mut fields = Fields::of(bytes);
    while let Some((number, value)) = fields.next()? {
        members.extend(member(number, value)?.map(|(name, value)| (name.to_owned(), value)));
    }
    Ok(members)
}

/// A number that may be negative.
fn signed(value: Value<'_>) -> Json {
    value.number().cast_signed().into()
}
