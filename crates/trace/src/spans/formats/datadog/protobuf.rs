//! Protocol Buffers, in which the agent sends traces on (`AgentPayload`, and the `TracerPayload` of one tracer).
//!
//! One tracer's payload is read at a time, whatever the size of the file.

use std::io::{self, BufRead};

use serde_json::{Map, Value as Json};

use crate::spans::formats::otlp_proto::wire::{Fields, Malformed, Shape, Value, fits, varint};
use crate::spans::formats::protobuf::{field, malformed, text};

const PAIR: &[(u64, Shape)] = &[(1, Shape::Bytes), (2, Shape::Bytes)];
const METRIC: &[(u64, Shape)] = &[(1, Shape::Bytes), (2, Shape::Fixed64)];
const SPAN: &[(u64, Shape)] = &[
    (1, Shape::Bytes),
    (2, Shape::Bytes),
    (3, Shape::Bytes),
    (4, Shape::Number),
    (5, Shape::Number),
    (6, Shape::Number),
    (7, Shape::Number),
    (8, Shape::Number),
    (9, Shape::Number),
    (10, Shape::Message(PAIR)),
    (11, Shape::Message(METRIC)),
    (12, Shape::Bytes),
    (13, Shape::Message(PAIR)),
    (14, Shape::Bytes),
    (15, Shape::Bytes),
];
const CHUNK: &[(u64, Shape)] =
    &[(1, Shape::Number), (2, Shape::Bytes), (3, Shape::Message(SPAN)), (4, Shape::Message(PAIR)), (5, Shape::Number)];
const TRACER: &[(u64, Shape)] = &[
    (1, Shape::Bytes),
    (2, Shape::Bytes),
    (3, Shape::Bytes),
    (4, Shape::Bytes),
    (5, Shape::Bytes),
    (6, Shape::Message(CHUNK)),
    (7, Shape::Message(PAIR)),
    (8, Shape::Bytes),
    (9, Shape::Bytes),
    (10, Shape::Bytes),
];
const AGENT: &[(u64, Shape)] = &[
    (1, Shape::Bytes),
    (2, Shape::Bytes),
    (5, Shape::Message(TRACER)),
    (6, Shape::Message(PAIR)),
    (7, Shape::Bytes),
    (8, Shape::Fixed64),
    (9, Shape::Fixed64),
    (10, Shape::Number),
    (11, Shape::Bytes),
];

/// How many bytes are too few to be told apart where they are cut off.
const FEW: usize = 64;

/// Which message a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Payloads of several tracers.
    Agent,
    /// The payload of one.
    Tracer,
}

impl Message {
    /// The message that begins so, if it is one of these: its fields have their types, down to a span.
    pub fn of(head: &[u8]) -> Option<Self> {
        let cut = head.len() > FEW;
        let is = |shape, path: &[u64]| reaches(head, path) && fits(head, shape, cut);
        if is(AGENT, &[5, 6, 3]) {
            return Some(Self::Agent);
        }
        is(TRACER, &[6, 3]).then_some(Self::Tracer)
    }
}

/// Whether fields of these numbers lie in each other, the last of which is a span with identifiers and a start.
fn reaches(bytes: &[u8], path: &[u64]) -> bool {
    let (mut rest, mut seen) = (bytes, 0_u32);
    while let Some((key, after)) = varint(rest) {
        rest = match key & 7 {
            0 => {
                let Some((number, after)) = varint(after) else { break };
                seen |= u32::from(number > 0 && key >> 3 < 32) << (key >> 3).min(31);
                after
            }
            1 => after.get(8..).unwrap_or_default(),
            2 => {
                let Some((length, body)) = varint(after) else { break };
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(body.len());
                if path.first() == Some(&(key >> 3)) && reaches(&body[..length], &path[1..]) {
                    return true;
                }
                &body[length..]
            }
            _ => return false,
        };
    }
    let wanted = 1 << 4 | 1 << 5 | 1 << 7;
    path.is_empty() && seen & wanted == wanted
}

/// What a payload holds, member by member.
pub(super) enum Item {
    /// A list of spans, with what is said of all of them.
    Chunk(Map<String, Json>),
    /// The machine that the spans of the chunks before it are of.
    End(Map<String, Json>),
    /// A payload in a form that is not read.
    Other,
}

/// Hands on what a message holds.
pub(super) fn items(input: &mut dyn BufRead, message: Message, mut take: impl FnMut(Item)) -> io::Result<()> {
    let (mut host, mut tracer) = (String::new(), Tracer::default());
    while let Some((field, body)) = field(input)? {
        match (message, field) {
            (Message::Agent, 1) => host = text(&body),
            (Message::Agent, 5) => {
                let mut tracer = Tracer::default();
                let mut fields = Fields::of(&body);
                while let Some((field, value)) = fields.next().map_err(malformed)? {
                    tracer.field(field, value.bytes(), &mut take).map_err(malformed)?;
                }
                tracer.end(&host, &mut take);
            }
            (Message::Agent, 11) => take(Item::Other),
            (Message::Tracer, _) => tracer.field(field, &body, &mut take).map_err(malformed)?,
            _ => {}
        }
    }
    if message == Message::Tracer {
        tracer.end("", &mut take);
    }
    Ok(())
}

/// The payload of one tracer.
#[derive(Default)]
struct Tracer {
    host: String,
}

impl Tracer {
    fn field(&mut self, field: u64, body: &[u8], take: &mut impl FnMut(Item)) -> Result<(), Malformed> {
        match field {
            6 => take(Item::Chunk(chunk(body)?)),
            9 => self.host = text(body),
            _ => {}
        }
        Ok(())
    }

    fn end(self, host: &str, take: &mut impl FnMut(Item)) {
        let host = if self.host.is_empty() { host.to_owned() } else { self.host };
        take(Item::End(Map::from_iter([("hostname".to_owned(), Json::String(host))])));
    }
}

fn chunk(bytes: &[u8]) -> Result<Map<String, Json>, Malformed> {
    let (mut members, mut spans) = (Map::new(), Vec::new());
    let mut fields = Fields::of(bytes);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Value::Varint(number)) => {
                members.insert("priority".to_owned(), Json::from(number.cast_signed()));
            }
            (3, Value::Bytes(body)) => spans.push(Json::Object(span(body)?)),
            _ => {}
        }
    }
    members.insert("spans".to_owned(), Json::Array(spans));
    Ok(members)
}

fn span(bytes: &[u8]) -> Result<Map<String, Json>, Malformed> {
    let mut members = Map::new();
    let (mut meta, mut metrics, mut links) = (Map::new(), Map::new(), Vec::new());
    let mut fields = Fields::of(bytes);
    while let Some((field, value)) = fields.next()? {
        let texts = [(1, "service"), (2, "name"), (3, "resource"), (12, "type")];
        let numbers = [(4, "trace_id"), (5, "span_id"), (6, "parent_id")];
        let signed = [(7, "start"), (8, "duration"), (9, "error")];
        let of = |names: &[(u64, &'static str)]| names.iter().find(|own| own.0 == field).map(|own| own.1.to_owned());
        match (field, value) {
            (10, Value::Bytes(body)) => {
                let (key, value) = pair(body)?;
                meta.insert(key, Json::String(text(value.bytes())));
            }
            (11, Value::Bytes(body)) => {
                let (key, value) = pair(body)?;
                metrics.insert(key, Json::from(f64::from_bits(value.number())));
            }
            (14, Value::Bytes(body)) => links.push(link(body)?),
            (_, Value::Bytes(body)) => members.extend(of(&texts).map(|name| (name, Json::String(text(body))))),
            (_, Value::Varint(number)) => {
                members.extend(of(&numbers).map(|name| (name, Json::from(number))));
                members.extend(of(&signed).map(|name| (name, Json::from(number.cast_signed()))));
            }
            _ => {}
        }
    }
    members.extend(
        [("meta", Json::Object(meta)), ("metrics", Json::Object(metrics)), ("span_links", Json::Array(links))]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(members)
}

/// An entry of a map.
fn pair(bytes: &[u8]) -> Result<(String, Value<'_>), Malformed> {
    let (mut key, mut own) = (String::new(), Value::Varint(0));
    let mut fields = Fields::of(bytes);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => key = text(value.bytes()),
            2 => own = value,
            _ => {}
        }
    }
    Ok((key, own))
}

/// A link: the low half of the trace, the high one, the span.
fn link(bytes: &[u8]) -> Result<Json, Malformed> {
    let mut members = Map::new();
    let mut fields = Fields::of(bytes);
    while let Some((field, value)) = fields.next()? {
        let name = match field {
            1 => "trace_id",
            3 => "span_id",
            _ => continue,
        };
        members.insert(name.to_owned(), Json::from(value.number()));
    }
    Ok(Json::Object(members))
}
