//! OTLP in its protobuf encoding.
//!
//! Told apart by the first bytes ([`frames`]): one message (`TracesData`, a request, what Tempo answers), messages that follow
//! each other with their lengths before them, the records of the Collector's file exporter, packed or not. What is in a message is
//! what the JSON encoding has; fields that are not known are skipped.
//!
//! A megabyte of them, or one message that is larger, is read at a time. A message that cannot be read is
//! left out where its end is known, and ends the reading where it is not; what came before is used.

mod frames;
pub(crate) mod wire;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use crate::codes;
use crate::read::{failed, nothing_in};
use crate::retained::Status;
use crate::spans::attributes::{Attributes, Meaning, meaning};
use crate::spans::builder::Builder;
use crate::spans::formats::{Content, SpanFormat};
use crate::spans::ids::{SpanId, TraceId};
use crate::spans::json::{Scalar, Shape};
use crate::spans::model::{Link, Span, SpanKind};
use crate::spans::parts::{Fault, read_in_order};
use crate::spans::sampling::of_trace_state;
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use frames::{Framing, ZSTD};
use wire::{Fields, Malformed, Value};

/// The format.
pub(super) const FORMAT: SpanFormat = SpanFormat {
    format: crate::Format::OtlpProto,
    title: "OTLP",
    content: &[Content::Binary],
    detect: |_, head| Framing::of(head.bytes).is_some(),
    read: |builder, input, strict| read(builder, BufReader::with_capacity(HEAD, input), strict),
    together: None,
};

/// How much is looked at to tell how messages lie.
const HEAD: usize = 64 << 10;

/// The largest message that is unpacked, in bytes.
const UNPACKED: u64 = 256 << 20;

/// About how large a block is that is read by itself, in bytes.
const BLOCK: usize = 1 << 20;

/// Messages that lie behind each other.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    messages: Vec<Message>,
}

/// A message of a block.
struct Message {
    place: std::ops::Range<usize>,
    /// Where it begins in its file.
    offset: u64,
    /// Whether it is a `ResourceSpans`, and not a request.
    is_resource: bool,
}

fn read(builder: &mut Builder<'_>, mut input: BufReader<&mut dyn Read>, strict: bool) -> Result<(), Diagnostics> {
    let file = Arc::clone(&builder.file);
    let head = input.fill_buf().map_err(|error| failed(&file, &error))?;
    if head.is_empty() {
        return Err(nothing_in(&file).into());
    }
    // A head that tells nothing is read as a bare message, so that its fault has a place.
    let framing = Framing::of(head).unwrap_or(Framing::Bare);
    let (mut offset, mut ended, mut broken) = (0, false, None);
    let next = || {
        let mut block = Block::default();
        while !ended && block.bytes.len() < BLOCK {
            let (at, begin) = (offset, block.bytes.len());
            let found =
                next(&mut input, framing, &mut block.bytes, &mut offset).map_err(|error| failed(&file, &error))?;
            match found {
                Found::End => ended = true,
                Found::Skipped => block.bytes.truncate(begin),
                Found::Broken(why) => (ended, broken) = (true, Some((at, why))),
                Found::Resource | Found::Request => block.messages.push(Message {
                    place: begin..block.bytes.len(),
                    offset: at,
                    is_resource: matches!(found, Found::Resource),
                }),
            }
        }
        Ok((!block.messages.is_empty()).then_some(block))
    };
    read_in_order(builder, strict, next, read_block)?;
    let Some((at, why)) = broken else { return Ok(()) };
    let finding = bad_message(&file, at, why);
    if strict || builder.count() == 0 {
        return Err(finding.into());
    }
    count_bad(builder, finding, "what comes after it was not read");
    Ok(())
}

fn read_block(builder: &mut Builder<'_>, block: &Block, strict: bool) -> Result<(), Fault> {
    for message in &block.messages {
        let before = (builder.spans.spans.len(), builder.spans.links.len());
        let bytes = &block.bytes[message.place.clone()];
        let read = if message.is_resource {
            resource_spans(builder, bytes).map_err(|Malformed| NO_MESSAGE)
        } else {
            request(builder, bytes)
        };
        let Err(why) = read else { continue };
        builder.truncate(before);
        let finding = bad_message(&builder.file, message.offset, why);
        if strict {
            return Err(Fault::Fatal(finding.into()));
        }
        count_bad(builder, finding, "this message was left out");
    }
    Ok(())
}

fn bad_message(file: &Arc<str>, offset: u64, why: &str) -> Diagnostic {
    let place = Place::Item { file: Arc::clone(file), item: format!("byte {offset}") };
    Diagnostic::error(codes::BAD_MESSAGE, place, why)
}

fn count_bad(builder: &mut Builder<'_>, finding: Diagnostic, note: &str) {
    builder
        .report
        .count("message that cannot be read", || Diagnostic { severity: Severity::Warning, ..finding.with_note(note) });
}

/// What comes next in a file.
enum Found {
    /// Nothing.
    End,
    /// A field that is of no concern.
    Skipped,
    /// A `ResourceSpans`, in the buffer.
    Resource,
    /// A request, in the buffer.
    Request,
    /// Something whose end cannot be told.
    Broken(&'static str),
}

const NO_MESSAGE: &str = "this is no OTLP message";
const CUT: &str = "the file ends within a message";

/// Reads the next part of a file behind what is in the buffer.
fn next(input: &mut impl BufRead, framing: Framing, message: &mut Vec<u8>, offset: &mut u64) -> io::Result<Found> {
    let (length, found) = match framing {
        Framing::Bare => {
            let before = *offset;
            let Some(key) = stream_varint(input, offset)? else { return end(input, *offset > before) };
            match key & 7 {
                0 => return Ok(stream_varint(input, offset)?.map_or(Found::Broken(CUT), |_| Found::Skipped)),
                1 => (8, Found::Skipped),
                5 => (4, Found::Skipped),
                2 => {
                    let Some(length) = stream_varint(input, offset)? else { return Ok(Found::Broken(CUT)) };
                    (length, if key >> 3 == 1 { Found::Resource } else { Found::Skipped })
                }
                _ => return Ok(Found::Broken(NO_MESSAGE)),
            }
        }
        Framing::Delimited => {
            let before = *offset;
            match stream_varint(input, offset)? {
                Some(length) => (length, Found::Request),
                None => return end(input, *offset > before),
            }
        }
        Framing::Prefixed => {
            let mut length = Vec::with_capacity(4);
            *offset += input.take(4).read_to_end(&mut length)? as u64;
            match <[u8; 4]>::try_from(length.as_slice()) {
                Ok(length) => (u32::from_be_bytes(length).into(), Found::Request),
                Err(_) if length.is_empty() => return Ok(Found::End),
                Err(_) => return Ok(Found::Broken(CUT)),
            }
        }
    };
    let read = input.take(length).read_to_end(message)? as u64;
    *offset += read;
    Ok(if read < length { Found::Broken(CUT) } else { found })
}

/// Where a number was expected and none is: the end, or bytes that are none. `begun` says whether some of it was read.
fn end(input: &mut impl BufRead, begun: bool) -> io::Result<Found> {
    Ok(match (input.fill_buf()?.is_empty(), begun) {
        (true, false) => Found::End,
        (true, true) => Found::Broken(CUT),
        (false, _) => Found::Broken(NO_MESSAGE),
    })
}

/// A number of variable length; `None` at the end of the input, or where it is too long and its last byte is left in place.
fn stream_varint(input: &mut impl BufRead, offset: &mut u64) -> io::Result<Option<u64>> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let Some(&byte) = input.fill_buf()?.first() else { return Ok(None) };
        if shift == 63 && byte > 1 {
            return Ok(None);
        }
        input.consume(1);
        *offset += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// A request of a frame of its own, packed or not.
fn request(builder: &mut Builder<'_>, message: &[u8]) -> Result<(), &'static str> {
    let unpacked;
    let message = if message.starts_with(ZSTD) {
        unpacked = unpack(message).ok_or("this message is packed with zstd, and damaged or too large")?;
        &unpacked
    } else {
        message
    };
    let mut fields = Fields::of(message);
    let malformed = |Malformed| NO_MESSAGE;
    while let Some((number, value)) = fields.next().map_err(malformed)? {
        if number == 1 {
            resource_spans(builder, value.bytes()).map_err(malformed)?;
        }
    }
    Ok(())
}

fn unpack(message: &[u8]) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(message).ok()?;
    let length = decoder.take(UNPACKED + 1).read_to_end(&mut unpacked).ok()? as u64;
    (length <= UNPACKED).then_some(unpacked)
}

/// `ResourceSpans`
fn resource_spans(builder: &mut Builder<'_>, message: &[u8]) -> Result<(), Malformed> {
    builder.resource.clear();
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            let mut resource = Fields::of(value.bytes());
            while let Some((number, value)) = resource.next()? {
                if number == 1 {
                    let Builder { resource, scalar, names, .. } = &mut *builder;
                    key_value(resource, scalar, names, value.bytes())?;
                }
            }
        }
    }
    let mut signed = Span::default();
    builder.resource_recorder().sign(&mut signed);
    let resource = builder.keep_resource();
    let first = builder.spans.spans.len();
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        if matches!(number, 2 | 1000) {
            let mut scope = Fields::of(value.bytes());
            while let Some((number, value)) = scope.next()? {
                match number {
                    1 => instrumentation_scope(builder, value.bytes())?,
                    2 => span(builder, signed, value.bytes())?,
                    _ => {}
                }
            }
        }
    }
    builder.belongs(first..builder.spans.spans.len(), resource);
    Ok(())
}

/// `InstrumentationScope`: a collector that samples says there by which policy; nothing else of it is of use.
fn instrumentation_scope(builder: &mut Builder<'_>, message: &[u8]) -> Result<(), Malformed> {
    let mut own = Attributes::default();
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        if number == 3 {
            key_value(&mut own, &mut builder.scalar, builder.names, value.bytes())?;
        }
    }
    builder.resource.sampling.take_policy(own.sampling);
    Ok(())
}

/// `Span`
fn span(builder: &mut Builder<'_>, mut span: Span, message: &[u8]) -> Result<(), Malformed> {
    builder.open();
    let service = span.service;
    span.first_link = builder.spans.links.len() as u32;
    let (mut times, mut state) = ([None, None], &b""[..]);
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => span.trace = trace_id(builder, value.bytes()),
            2 => span.id = span_id(builder, value.bytes()),
            3 => state = value.bytes(),
            4 => span.parent = span_id(builder, value.bytes()),
            5 => span.name = builder.names.intern(&String::from_utf8_lossy(value.bytes())),
            6 => span.kind = kind(value.number()),
            7 | 8 => {
                let time = i64::try_from(value.number()).unwrap_or(i64::MAX);
                times[number as usize - 7] = (time != 0).then_some(time);
            }
            9 => {
                let Builder { attributes, scalar, names, .. } = &mut *builder;
                key_value(attributes, scalar, names, value.bytes())?;
            }
            11 if builder.wanted().events => event(builder, value.bytes())?,
            13 => link(builder, value.bytes())?,
            15 => builder.open.status = status(value.bytes())?,
            // Bit 8: it is known whether the parent is remote; bit 9: it is.
            16 => span.remote = value.number() & 0x300 == 0x300,
            _ => {}
        }
    }
    span.links = builder.spans.links.len() as u32 - span.first_link;
    if !state.is_empty() {
        span.weight = of_trace_state(&String::from_utf8_lossy(state), span.trace);
    }
    builder.apply_attributes(&mut span);
    // As in the JSON encoding, the resource says whose a span is where it says anything.
    if service.is_some() {
        span.service = service;
    }
    builder.finish(span, times[0], times[1]);
    Ok(())
}

pub(super) fn kind(number: u64) -> SpanKind {
    match number {
        1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => SpanKind::Unspecified,
    }
}

/// 16 bytes; an identifier of another length is known by its digits.
pub(super) fn trace_id(builder: &mut Builder<'_>, bytes: &[u8]) -> TraceId {
    match <[u8; 16]>::try_from(bytes) {
        Ok(bytes) => TraceId(u128::from_be_bytes(bytes)),
        Err(_) => builder.spans.trace_id(&digits(bytes)),
    }
}

/// 8 bytes; an identifier of another length is known by its digits.
pub(super) fn span_id(builder: &mut Builder<'_>, bytes: &[u8]) -> SpanId {
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) => SpanId(u64::from_be_bytes(bytes)),
        Err(_) => builder.spans.span_id(&digits(bytes)),
    }
}

pub(super) fn digits(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

/// `Status`
fn status(message: &[u8]) -> Result<Status, Malformed> {
    let mut fields = Fields::of(message);
    let mut status = Status::Unset;
    while let Some((number, value)) = fields.next()? {
        if number == 3 {
            status = match value.number() {
                1 => Status::Ok,
                2 => Status::Error,
                _ => Status::Unset,
            };
        }
    }
    Ok(status)
}

/// `Span.Event`
fn event(builder: &mut Builder<'_>, message: &[u8]) -> Result<(), Malformed> {
    builder.event.clear();
    let (mut name, mut time) = (Name::NONE, None);
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => time = i64::try_from(value.number()).ok().filter(|time| *time != 0),
            2 => name = builder.names.intern(&String::from_utf8_lossy(value.bytes())),
            3 => {
                let Builder { event, scalar, names, .. } = &mut *builder;
                key_value(event, scalar, names, value.bytes())?;
            }
            _ => {}
        }
    }
    builder.close_event(name, time);
    Ok(())
}

/// `Span.Link`
pub(super) fn link(builder: &mut Builder<'_>, message: &[u8]) -> Result<(), Malformed> {
    let mut link = Link { trace: TraceId::NONE, span: SpanId::NONE };
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => link.trace = trace_id(builder, value.bytes()),
            2 => link.span = span_id(builder, value.bytes()),
            _ => {}
        }
    }
    if link.span.is_some() {
        builder.spans.links.push(link);
    }
    Ok(())
}

/// `KeyValue`
fn key_value(
    attributes: &mut Attributes,
    scalar: &mut Scalar,
    names: &mut Names,
    message: &[u8],
) -> Result<(), Malformed> {
    let (mut key, mut value) = (&b""[..], None);
    let mut fields = Fields::of(message);
    while let Some((number, field)) = fields.next()? {
        match number {
            1 => key = field.bytes(),
            2 => value = Some(field.bytes()),
            _ => {}
        }
    }
    let (Some(value), Ok(key)) = (value, std::str::from_utf8(key)) else { return Ok(()) };
    if attributes.keeping.is_none() && meaning(key) == Meaning::Nothing {
        return Ok(());
    }
    scalar.set_shape(Shape::Null);
    let mut fields = Fields::of(value);
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, Value::Bytes(text)) => scalar.set_text(&String::from_utf8_lossy(text)),
            (2, Value::Varint(truth)) => scalar.set_bool(truth != 0),
            (3, Value::Varint(number)) => scalar.set_whole(number.cast_signed().into()),
            (4, Value::Fixed64(bits)) => scalar.set_float(f64::from_bits(bits)),
            (5, _) => scalar.set_shape(Shape::Array),
            (6 | 7, _) => scalar.set_shape(Shape::Object),
            _ => {}
        }
    }
    attributes.offer(key, scalar, names);
    Ok(())
}
