//! OTLP in JSON, put into its binary form.
//!
//! A request is read piece by piece: a span, a metric, a resource, a scope. So the largest body takes little more than itself and what is made of it.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::body::{FOR_SMALL, Share, TOGETHER, add};
use super::piece::Piece;
use super::schema::{Message, RESOURCE, SCOPE, SPAN, is_named};
use super::{LARGEST, Refusal};
use crate::buffer::Buffer;
use crate::journal::Kind;
use crate::spans::put_field;

/// How many times its own memory a piece takes while it is read.
const GROWTH: usize = 3;
/// What a small one may take: of lists of digits, each is up to four times as long in binary form.
const SMALL: usize = 16 << 10;
/// The longest piece that is read: beside the largest body, and all that is made of it, no longer one would ever fit.
const LONGEST: usize = (TOGETHER - FOR_SMALL - 2 * LARGEST) / GROWTH;

/// The same request in binary form.
pub async fn binary(kind: Kind, json: Bytes, mut share: Share) -> Result<(Bytes, Share), Refusal> {
    // What reads it takes an array for an object with its members in order.
    if json.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Refusal::Malformed("the body is no OTLP request: it is no JSON object".to_owned()));
    }
    let read = move || {
        let bytes = written(kind, &json, &mut share)?;
        Ok((bytes, share))
    };
    let cut = |_| Refusal::Busy("the server stops".to_owned());
    tokio::task::spawn_blocking(read).await.map_err(cut)?
}

fn written(kind: Kind, json: &[u8], share: &mut Share) -> Result<Bytes, Refusal> {
    let longest = longest_piece(json);
    if longest > LONGEST {
        return Err(Refusal::TooLarge);
    }
    let most = (GROWTH * longest).max(SMALL);
    share.grow(most)?;
    // What will not fit is not begun. It is about as long as what it is made of.
    share.reserve(json.len())?;
    let mut out = Out { kind, bytes: Buffer::up_to(LARGEST), piece: Piece::up_to(most), share, refusal: None };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let outcome = Level { out: &mut out, depth: 0 }.deserialize(&mut reader).and_then(|()| reader.end());
    match (out.refusal, outcome) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(Refusal::Malformed(format!("the body is no OTLP request: {error}"))),
        (None, Ok(())) => Ok(out.bytes.freeze()),
    }
}

/// How many bytes the longest piece has that is read at once: a span, a metric, a resource or a scope.
fn longest_piece(json: &[u8]) -> usize {
    /// How deep these lie within objects and arrays.
    const PIECES: [usize; 3] = [4, 6, 7];
    let (mut depth, mut longest) = (0_usize, 0);
    // Where a piece begins, and how deep.
    let mut piece: Option<(usize, usize)> = None;
    let mut bytes = json.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                while let Some((_, byte)) = bytes.next().filter(|(_, byte)| **byte != b'"') {
                    // What is escaped ends no text.
                    if *byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if piece.is_none() && *byte == b'{' && PIECES.contains(&depth) {
                    piece = Some((at, depth));
                }
            }
            b'}' | b']' => {
                if let Some((from, _)) = piece.filter(|(_, own)| *own == depth) {
                    longest = longest.max(at + 1 - from);
                    piece = None;
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    piece.map_or(longest, |(from, _)| longest.max(json.len() - from))
}

/// What is written.
struct Out<'s> {
    kind: Kind,
    bytes: Buffer,
    /// A piece, which is written here first.
    piece: Piece,
    share: &'s mut Share,
    /// Why no more is written.
    refusal: Option<Refusal>,
}

/// How many bytes the length of a message has whose end is not known when it begins.
const LENGTH: usize = 4;

impl Out<'_> {
    /// The names of the lists, from outside to inside.
    fn lists(&self) -> [&'static str; 3] {
        match self.kind {
            Kind::Traces => ["resourceSpans", "scopeSpans", "spans"],
            Kind::Metrics => ["resourceMetrics", "scopeMetrics", "metrics"],
        }
    }

    fn add<E: Error>(&mut self, bytes: &[u8]) -> Result<(), E> {
        add(&mut self.bytes, bytes, self.share).map_err(|refusal| {
            self.refusal = Some(refusal);
            E::custom("there is no room")
        })
    }

    /// Begins a message that is a field of that number; where its content begins.
    fn begin<E: Error>(&mut self, number: u8) -> Result<usize, E> {
        self.add(&[[(number << 3) | 2].as_slice(), &[0; LENGTH]].concat())?;
        Ok(self.bytes.len())
    }

    /// Ends a message whose content begins there.
    fn end(&mut self, begin: usize) {
        let mut length = self.bytes.len() - begin;
        // A number of variable length may have more bytes than it needs.
        let bytes: [u8; LENGTH] = std::array::from_fn(|place| {
            let byte = (length & 0x7f) as u8 | if place + 1 < LENGTH { 0x80 } else { 0 };
            length >>= 7;
            byte
        });
        self.bytes.replace(begin - LENGTH, &bytes);
    }

    /// Writes what a piece became.
    fn piece<E: Error>(&mut self, write: impl FnOnce(&mut Piece) -> serde_json::Result<()>) -> Result<(), E> {
        let mut piece = std::mem::take(&mut self.piece);
        let written = write(&mut piece).map_err(E::custom);
        let added = if piece.is_full() {
            self.refusal = Some(Refusal::TooLarge);
            Err(E::custom("there is no room"))
        } else {
            written.and_then(|()| self.add(piece.bytes()))
        };
        self.piece = piece;
        added
    }

    /// Writes a message as a field of that number, where there is one.
    fn message<E: Error>(&mut self, number: u8, message: &'static Message, json: &RawValue) -> Result<(), E> {
        if json.get() == "null" { Ok(()) } else { self.piece(|piece| piece.message(number, message, json)) }
    }
}

/// The number of the field that has lists within others.
const LIST: u8 = 2;

/// An object so deep within the lists.
struct Level<'o, 's> {
    out: &'o mut Out<'s>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Level<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { out, depth } = self;
        // The outermost one is the request itself; the field that holds the next ones is the first of it, and else the second.
        let begin = match depth {
            0 => None,
            1 => Some(out.begin(1)?),
            _ => Some(out.begin(LIST)?),
        };
        let list = out.lists()[depth];
        let mut known = [false; 4];
        while let Some(name) = members.next_key::<String>()? {
            let number = match (depth, &*name) {
                (_, name) if is_named(list, name) => LIST,
                (1, "resource") | (2, "scope") => 1,
                (1 | 2, name) if is_named("schemaUrl", name) => 3,
                _ => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if std::mem::replace(&mut known[usize::from(number)], true) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            match (number, depth) {
                (1, 1) => out.message(1, &RESOURCE, members.next_value()?)?,
                (1, _) => out.message(1, &SCOPE, members.next_value()?)?,
                (3, _) => {
                    let mut field = Vec::new();
                    put_field(&mut field, 3, members.next_value::<Option<String>>()?.unwrap_or_default().as_bytes());
                    out.add(&field)?;
                }
                _ => members.next_value_seed(List { out: &mut *out, depth })?,
            }
        }
        if let Some(begin) = begin {
            out.end(begin);
        }
        Ok(())
    }
}

/// The list of an object so deep within the lists.
struct List<'o, 's> {
    out: &'o mut Out<'s>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    /// The default of each field.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { out, depth } = self;
        match (depth, out.kind) {
            (2, Kind::Traces) => {
                while let Some(json) = list.next_element::<&RawValue>()? {
                    // A span that cannot be read has no identifiers, and is refused as one without them: the others are taken.
                    out.piece(|piece| piece.message(LIST, &SPAN, json).or(Ok(())))?;
                }
                Ok(())
            }
            (2, Kind::Metrics) => {
                while let Some(json) = list.next_element::<&RawValue>()? {
                    // The same holds of its points.
                    out.piece(|piece| piece.metric(LIST, json))?;
                }
                Ok(())
            }
            _ => {
                while list.next_element_seed(Level { out: &mut *out, depth: depth + 1 })?.is_some() {}
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use bytes::Bytes;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use prost::Message as _;

    use super::{LONGEST, binary, longest_piece};
    use crate::journal::Kind;
    use crate::receive::body::Budget;
    use crate::receive::{LARGEST, Refusal};
    use crate::spans::each_span;

    async fn read(kind: Kind, json: String) -> Result<Bytes, Refusal> {
        let (json, share) = Budget::default().read(Body::from(json), None).await?;
        binary(kind, json, share).await.map(|(bytes, _)| bytes)
    }

    const RESOURCE: &str =
        r#"{"attributes":[{"key":"service.name","value":{"stringValue":"a \"b\" {[ é"}}],"droppedAttributesCount":1}"#;

    fn span(number: u64) -> String {
        format!(
            r#"{{"traceId":"5b8efff798038103d269b633813fc6{:02x}","spanId":"eee19b7ec3c1b1{:02x}","name":"GET /\\","kind":2,
            "startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","new":[{{"x":{{}}}}],
            "attributes":[{{"key":"k","value":{{"arrayValue":{{"values":[{{"intValue":"7"}}]}}}}}}],"status":{{}}}}"#,
            number % 256,
            number % 256
        )
    }

    #[tokio::test]
    async fn requests_are_written_as_they_are_read_at_once() {
        let spans = format!("[{},{}]", span(1), span(2));
        let traces = [
            "{}".to_owned(),
            r#" {"resourceSpans":[],"other":[{}]}"#.to_owned(),
            r#"{"resourceSpans":[{},{"resource":null,"scopeSpans":[{},{"scope":null,"spans":[]}]}]}"#.to_owned(),
            // Members in another order, with escapes in a name, beside others that nobody knows.
            format!(
                r#"{{"resourceSpans":[{{"scopeSpans":[{{"\u0073pans":{spans},"schemaUrl":"s","scope":{{"name":"n","version":"1"}},"z":"]"}},
                {{"spans":{spans}}}],"schemaUrl":"r","resource":{RESOURCE}}},{{"scopeSpans":[{{"spans":{spans}}}]}}]}}"#
            ),
        ];
        for json in traces {
            let wanted: ExportTraceServiceRequest = serde_json::from_str(&json).expect("it is a request");
            let bytes = read(Kind::Traces, json).await.expect("it is a request");
            assert_eq!(ExportTraceServiceRequest::decode(&bytes[..]), Ok(wanted.clone()));
            let count = |bytes: &[u8]| {
                let mut count = 0;
                each_span(bytes, |resource, span| count += usize::from(span.is_ok()) * (1 + resource.len()))
                    .map(|()| count)
            };
            assert_eq!(count(&bytes).ok(), count(&wanted.encode_to_vec()).ok());
        }
        let metric = r#"{"name":"m","unit":"s","histogram":{"aggregationTemporality":2,"dataPoints":[
            {"count":"3","sum":2.5,"bucketCounts":["1","2"],"explicitBounds":[0.5],"timeUnixNano":"5"}]}}"#;
        let json = format!(
            r#"{{"resourceMetrics":[{{"resource":{RESOURCE},"scopeMetrics":[{{"metrics":[{metric},{metric}]}}]}}]}}"#
        );
        let wanted: ExportMetricsServiceRequest = serde_json::from_str(&json).expect("it is a request");
        let bytes = read(Kind::Metrics, json).await.expect("it is a request");
        assert_eq!(ExportMetricsServiceRequest::decode(&bytes[..]), Ok(wanted));
    }

    #[tokio::test]
    async fn any_field_of_a_request_may_be_null_and_has_two_names() {
        let span = span(1);
        let wanted = format!(
            r#"{{"resourceSpans":[{{"resource":{{}},"schemaUrl":"","scopeSpans":[{{"scope":{{}},"schemaUrl":"","spans":[{span}]}},{{}}]}},{{}}]}}"#
        );
        let json = format!(
            r#"{{"resource_spans":[{{"resource":{{"attributes":null}},"schema_url":null,"scope_spans":[{{"scope":{{"attributes":null,"name":null}},"schemaUrl":null,
            "spans":[{span}]}},{{"spans":null}}]}},{{"scopeSpans":null,"resource":null}}]}}"#
        );
        let wanted: ExportTraceServiceRequest = serde_json::from_str(&wanted).expect("it is a request");
        let bytes = read(Kind::Traces, json).await.expect("it is a request");
        assert_eq!(ExportTraceServiceRequest::decode(&bytes[..]), Ok(wanted));
        assert_eq!(read(Kind::Traces, r#"{"resourceSpans":null}"#.to_owned()).await.expect("it is one"), Bytes::new());
    }

    #[tokio::test]
    async fn what_is_no_request_is_refused() {
        for json in [
            "",
            "[]",
            "{",
            "{}}",
            "null",
            r#"{"resourceSpans":{}}"#,
            r#"{"resourceSpans":[[]]}"#,
            r#"{"resourceSpans":[],"resourceSpans":[]}"#,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{}"#,
            r#"{"resourceSpans":[{"resource":7}]}"#,
            r#"{"resourceSpans":[null]}"#,
            r#"{"resourceSpans":[{"schemaUrl":7}]}"#,
            r#"{"resourceSpans":[{"resource":{"attributes":{}}}]}"#,
            r#"{"resourceSpans":[],"resource_spans":[]}"#,
        ] {
            let refusal = read(Kind::Traces, json.to_owned()).await.expect_err(json);
            assert!(matches!(refusal, Refusal::Malformed(_)), "{json}: {refusal:?}");
        }
    }

    #[test]
    fn the_longest_piece_is_found() {
        let span = span(1);
        let json = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{}},{span},{{"a":1}}]}}]}}]}}"#);
        assert_eq!(longest_piece(json.as_bytes()), span.len());
        let json = format!(
            r#"{{"x":"{{[\"","resourceSpans":[{{"resource":{RESOURCE},"scopeSpans":[{{"scope":{{"name":"n"}}}}]}}]}}"#
        );
        assert_eq!(longest_piece(json.as_bytes()), RESOURCE.len());
        // What ends too early may become longer.
        assert_eq!(longest_piece(br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"#), 8);
    }

    #[tokio::test]
    async fn bodies_of_the_largest_size_are_taken() {
        let (begin, end) = (r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#, "]}]}]}");
        let mut json = begin.to_owned();
        let mut count = 0;
        while json.len() + 1 + span(count).len() + end.len() <= LARGEST {
            if count > 0 {
                json.push(',');
            }
            json += &span(count);
            count += 1;
        }
        json += end;
        json += &" ".repeat(LARGEST - json.len());
        let bytes = read(Kind::Traces, json.clone()).await.expect("it has the largest size");
        let mut found = 0;
        each_span(&bytes, |_, span| found += u64::from(span.is_ok())).expect("it is a request");
        assert_eq!(found, count);
        assert_eq!(read(Kind::Traces, json + " ").await, Err(Refusal::TooLarge));
        // No piece of it may be so long that what it says would take more memory than there is.
        for (length, is_taken) in [(LONGEST - 100, true), (LONGEST + 1, false)] {
            let json = format!(r#"{begin}{{"name":"{}"}}{end}"#, "x".repeat(length));
            assert_eq!(read(Kind::Traces, json).await.is_ok(), is_taken, "{length}");
        }
    }
}
