//! MessagePack, in which tracers send traces: lists of lists of spans (`v0.3`, `v0.4`), and a table of strings with spans whose texts are
//! places in it (`v0.5`); and maps whose `chunks` have lists of spans (`v0.7`).

use std::io::{self, ErrorKind, Read};

use serde_json::{Map, Number, Value};

/// How deep values may lie in each other.
const DEEPEST: usize = 24;

/// The members of a span of `v0.5`, in their order; the first three are texts, as is the last one.
const MEMBERS: [&str; 12] = [
    "service",
    "name",
    "resource",
    "trace_id",
    "span_id",
    "parent_id",
    "start",
    "duration",
    "error",
    "meta",
    "metrics",
    "type",
];

/// Whether a file begins with a list of lists of spans, or of strings and such lists, or with a map of chunks.
pub(super) fn is_traces(head: &[u8]) -> bool {
    let is_list = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, 0x90..=0x9f | 0xdc | 0xdd));
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    if head.first().is_some_and(|byte| is_map(*byte)) {
        return has(b"chunks") && has(b"trace_id") && has(b"span_id");
    }
    if !is_list(head.first()) {
        return false;
    }
    let mut input = head;
    let mut reader = Reader(&mut input);
    let mut lists = || {
        reader.list()?;
        reader.list()
    };
    lists().is_ok()
        && (has(b"trace_id") && has(b"span_id")
            || head[0] == 0x92 && matches!(input.first(), Some(0xa0..=0xbf | 0xd9..=0xdb)))
}

fn is_map(marker: u8) -> bool {
    matches!(marker, 0x80..=0x8f | 0xde | 0xdf)
}

/// Hands each span to a taker, or each payload.
pub(super) fn spans(input: &mut dyn Read, mut take: impl FnMut(Map<String, Value>)) -> io::Result<()> {
    let mut reader = Reader(input);
    loop {
        let Some(first) = reader.first()? else { return Ok(()) };
        if is_map(first) {
            if let Value::Object(payload) = reader.value_of(first, 0)? {
                take(payload);
            }
            continue;
        }
        let lists = reader.length(first)?;
        let mut strings: Option<Vec<String>> = None;
        for number in 0..lists {
            let marker = reader.byte()?;
            let count = reader.length(marker)?;
            for place in 0..count {
                let value = reader.value(0)?;
                match value {
                    Value::Object(span) => take(span),
                    Value::String(text) if number == 0 && lists == 2 && (place == 0 || strings.is_some()) => {
                        strings.get_or_insert_default().push(text);
                    }
                    // A trace of `v0.5`.
                    Value::Array(trace) => {
                        let strings = strings.as_deref().unwrap_or_default();
                        trace.iter().filter_map(|span| by_places(span, strings)).for_each(&mut take);
                    }
                    _ => return Err(malformed("a span is neither a map nor a list")),
                }
            }
        }
    }
}

/// A span whose texts are places in a table.
fn by_places(span: &Value, strings: &[String]) -> Option<Map<String, Value>> {
    let text = |value: &Value| strings.get(usize::try_from(value.as_u64()?).ok()?).cloned();
    let fields = span.as_array()?;
    let members = MEMBERS.iter().zip(fields).map(|(name, value)| {
        let value = match *name {
            "service" | "name" | "resource" | "type" => text(value).map_or(Value::Null, Value::String),
            "meta" | "metrics" => {
                let pairs = value.as_object().into_iter().flatten();
                let named = pairs.filter_map(|(key, value)| {
                    let key = text(&Value::from(key.parse::<u64>().ok()?))?;
                    let value = if *name == "meta" { Value::String(text(value)?) } else { value.clone() };
                    Some((key, value))
                });
                Value::Object(named.collect())
            }
            _ => value.clone(),
        };
        ((*name).to_owned(), value)
    });
    Some(members.collect())
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

struct Reader<'r>(&'r mut dyn Read);

impl Reader<'_> {
    /// The first byte of what comes next; `None` at the end.
    fn first(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let read = (&mut *self.0).take(1).read_exact(&mut byte);
        match read {
            Ok(()) => Ok(Some(byte[0])),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn number<const N: usize>(&mut self) -> io::Result<u64> {
        Ok(self.bytes::<N>()?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// The begin of a list: its length.
    fn list(&mut self) -> io::Result<u64> {
        let marker = self.byte()?;
        self.length(marker)
    }

    fn length(&mut self, marker: u8) -> io::Result<u64> {
        match marker {
            0x90..=0x9f => Ok(u64::from(marker & 0x0f)),
            0xdc => self.number::<2>(),
            0xdd => self.number::<4>(),
            // No traces.
            0xc0 => Ok(0),
            _ => Err(malformed("a list of spans is no list")),
        }
    }

    /// A text of so many bytes; what is no text comes as far as it is one.
    fn text(&mut self, length: u64) -> io::Result<Value> {
        let mut bytes = Vec::new();
        if (&mut *self.0).take(length).read_to_end(&mut bytes)? as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn value(&mut self, depth: usize) -> io::Result<Value> {
        if depth > DEEPEST {
            return Err(malformed("values are nested too deep"));
        }
        let marker = self.byte()?;
        self.value_of(marker, depth)
    }

    /// The value that begins with this byte.
    fn value_of(&mut self, marker: u8, depth: usize) -> io::Result<Value> {
        let float = |number: f64| Number::from_f64(number).map_or(Value::Null, Value::Number);
        Ok(match marker {
            0x00..=0x7f => Value::from(marker),
            0xe0..=0xff => Value::from(marker.cast_signed()),
            0xc0 => Value::Null,
            0xc2 | 0xc3 => Value::Bool(marker == 0xc3),
            0xca => float(f64::from(f32::from_bits(self.number::<4>()? as u32))),
            0xcb => float(f64::from_bits(self.number::<8>()?)),
            0xcc => Value::from(self.number::<1>()?),
            0xcd => Value::from(self.number::<2>()?),
            0xce => Value::from(self.number::<4>()?),
            0xcf => Value::from(self.number::<8>()?),
            0xd0 => Value::from((self.number::<1>()? as u8).cast_signed()),
            0xd1 => Value::from((self.number::<2>()? as u16).cast_signed()),
            0xd2 => Value::from((self.number::<4>()? as u32).cast_signed()),
            0xd3 => Value::from(self.number::<8>()?.cast_signed()),
            0xa0..=0xbf => self.text(u64::from(marker & 0x1f))?,
            0xd9 | 0xc4 => self.sized_text::<1>()?,
            0xda | 0xc5 => self.sized_text::<2>()?,
            0xdb | 0xc6 => self.sized_text::<4>()?,
            0x90..=0x9f | 0xdc | 0xdd => {
                let mut items = Vec::new();
                for _ in 0..self.length(marker)? {
                    items.push(self.value(depth + 1)?);
                }
                Value::Array(items)
            }
            0x80..=0x8f => self.map(u64::from(marker & 0x0f), depth)?,
            0xde => {
                let length = self.number::<2>()?;
                self.map(length, depth)?
            }
            0xdf => {
                let length = self.number::<4>()?;
                self.map(length, depth)?
            }
            // Values of types of their own: nothing that a span has.
            0xd4..=0xd8 => self.skip(1 + (1 << (marker - 0xd4)))?,
            0xc7 => self.sized_skip::<1>()?,
            0xc8 => self.sized_skip::<2>()?,
            0xc9 => self.sized_skip::<4>()?,
            _ => return Err(malformed("a value is of no type")),
        })
    }

    fn sized_text<const N: usize>(&mut self) -> io::Result<Value> {
        let length = self.number::<N>()?;
        self.text(length)
    }

    fn sized_skip<const N: usize>(&mut self) -> io::Result<Value> {
        let length = self.number::<N>()?;
        self.skip(length + 1)
    }

    fn skip(&mut self, length: u64) -> io::Result<Value> {
        let skipped = io::copy(&mut (&mut *self.0).take(length), &mut io::sink())?;
        if skipped == length { Ok(Value::Null) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    fn map(&mut self, length: u64, depth: usize) -> io::Result<Value> {
        let mut members = Map::new();
        for _ in 0..length {
            let key = match self.value(depth + 1)? {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                _ => return Err(malformed("a member has no name")),
            };
            let value = self.value(depth + 1)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
