//! A piece of a request, a message of OTLP in JSON, written in binary form as it is read.
//!
//! It is read as protocol buffers define it (<https://protobuf.dev/programming-guides/json/>): any field may be `null`, numbers may be strings, `NaN` and the infinities
//! are numbers, enums may be names, fields have two names, and what nobody knows is left out. The messages themselves are never in memory, however many there are in so few bytes.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::schema::{Field, GAUGE, Kind, METRIC, Many, Message, POINTS};

/// Base64 in both alphabets, with what fills it up or without.
const BASE64: [GeneralPurpose; 2] = {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [GeneralPurpose::new(&alphabet::STANDARD, config), GeneralPurpose::new(&alphabet::URL_SAFE, config)]
};

/// Bytes of a piece.
#[derive(Debug, Default)]
pub struct Piece {
    bytes: Vec<u8>,
    /// How many there may be.
    most: usize,
    /// Whether that was too few.
    is_full: bool,
}

/// What a message has in front of what it holds, while nobody knows how long that becomes.
const LENGTH: usize = 1;

impl Piece {
    /// Without bytes, of which there may be so many.
    pub fn up_to(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether something had no room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Begins anew, with a message that is a field of that number.
    ///
    /// # Errors
    /// When the text is none of that shape. An empty message stands in its place.
    pub fn message(&mut self, number: u8, message: &'static Message, json: &RawValue) -> serde_json::Result<()> {
        self.bytes.clear();
        self.field(number, |own| own.read(message, json))
    }

    /// The same of a metric. Where it cannot be read, it has as many points without content.
    pub fn metric(&mut self, number: u8, json: &RawValue) -> serde_json::Result<()> {
        if self.message(number, &METRIC, json).is_ok() || self.is_full {
            return Ok(());
        }
        self.bytes.clear();
        self.field(number, |own| {
            own.field(GAUGE, |own| (0..points(json)).try_for_each(|_| own.field(POINTS, |_| Ok(()))))
        })
    }

    fn read(&mut self, message: &'static Message, json: &RawValue) -> serde_json::Result<()> {
        let mut reader = serde_json::Deserializer::from_str(json.get());
        // What comes after it is no part of the text.
        MessageOf { piece: self, message }.deserialize(&mut reader)
    }

    fn put<E: Error>(&mut self, more: &[u8]) -> Result<(), E> {
        let needed = self.bytes.len() + more.len();
        if needed > self.most {
            self.is_full = true;
            return Err(E::custom("there is no room"));
        }
        if needed > self.bytes.capacity() {
            let room = needed.max(self.bytes.capacity().saturating_mul(2).min(self.most));
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    fn number<E: Error>(&mut self, number: u64) -> Result<(), E> {
        let (bytes, length) = varint(number);
        self.put(&bytes[..length])
    }

    fn head<E: Error>(&mut self, number: u8, wire: u64) -> Result<(), E> {
        self.number((u64::from(number) << 3) | wire)
    }

    /// Writes a field whose length is known when it ends. Where it fails, it is there without content.
    fn field<E: Error>(&mut self, number: u8, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        self.head(number, 2)?;
        self.put(&[0; LENGTH])?;
        let begin = self.bytes.len();
        let written = write(self).and_then(|()| {
            let length = self.bytes.len() - begin;
            let (bytes, taken) = varint(length as u64);
            // Most are short, and need no more room for that.
            let more = taken - LENGTH;
            if more > 0 {
                self.put(&bytes[..more])?;
                self.bytes.copy_within(begin..begin + length, begin + more);
            }
            self.bytes[begin - LENGTH..begin + more].copy_from_slice(&bytes[..taken]);
            Ok(())
        });
        if written.is_err() {
            self.bytes.truncate(begin);
        }
        written
    }
}

/// A number of variable length, and how many bytes it takes.
fn varint(mut number: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut length) = ([0; 10], 1);
    while number >= 0x80 {
        bytes[length - 1] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length - 1] = number as u8;
    (bytes, length)
}

/// How many points a metric has, one at least.
fn points(metric: &RawValue) -> usize {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Metric<'a> {
        #[serde(borrow)]
        gauge: Option<&'a RawValue>,
        #[serde(borrow)]
        sum: Option<&'a RawValue>,
        #[serde(borrow)]
        histogram: Option<&'a RawValue>,
        #[serde(borrow, alias = "exponential_histogram")]
        exponential_histogram: Option<&'a RawValue>,
        #[serde(borrow)]
        summary: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data<'a> {
        #[serde(borrow, default, alias = "data_points")]
        data_points: Option<&'a RawValue>,
    }
    let metric: Metric<'_> = serde_json::from_str(metric.get()).unwrap_or_default();
    let Metric { gauge, sum, histogram, exponential_histogram, summary } = metric;
    let of = |data: &RawValue| {
        let points = serde_json::from_str::<Data<'_>>(data.get()).ok()?.data_points?;
        // Such a list takes no memory.
        serde_json::from_str::<Vec<IgnoredAny>>(points.get()).ok()
    };
    let all = [gauge, sum, histogram, exponential_histogram, summary].into_iter().flatten().filter_map(of);
    all.map(|points| points.len()).sum::<usize>().max(1)
}

/// The members of an object, written as the fields of a message.
struct MessageOf<'p> {
    piece: &'p mut Piece,
    message: &'static Message,
}

impl<'de> DeserializeSeed<'de> for MessageOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

/// The name of a member, in the input's own bytes where it has no escapes.
#[derive(Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

impl<'de> Visitor<'de> for MessageOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { piece, message } = self;
        let mut known = 0_u32;
        while let Some(Key(name)) = members.next_key()? {
            let Some((place, field)) = message.field(&name) else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            if known & (1 << place) != 0 {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            known |= 1 << place;
            members.next_value_seed(FieldOf { piece: &mut *piece, field, place: Place::Member })?;
        }
        Ok(())
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is that of a member.
    Member,
    /// It is one of a list.
    Element,
    /// It is one of a list of numbers, which have no heads of their own.
    Packed,
}

/// A value of a field.
struct FieldOf<'p> {
    piece: &'p mut Piece,
    field: &'static Field,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for FieldOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// A number as it is written.
#[derive(Clone, Copy)]
enum Written {
    Whole(i128),
    Float(f64),
}

impl Written {
    /// Of a text.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "NaN" => Some(Self::Float(f64::NAN)),
            "Infinity" => Some(Self::Float(f64::INFINITY)),
            "-Infinity" => Some(Self::Float(f64::NEG_INFINITY)),
            _ => {
                let float = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Float);
                text.parse().ok().map(Self::Whole).or_else(float)
            }
        }
    }

    /// The number where it is a whole one of that type.
    fn whole<N: TryFrom<i128>>(self) -> Option<N> {
        let whole = match self {
            Self::Whole(number) => number,
            // No such number has more digits.
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e20 => number as i128,
            Self::Float(_) => return None,
        };
        whole.try_into().ok()
    }

    fn float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl FieldOf<'_> {
    fn is_list(&self) -> bool {
        self.field.many != Many::One && self.place == Place::Member
    }

    fn wrong<E: Error>(&self, found: Unexpected<'_>) -> E {
        E::invalid_type(found, self)
    }

    /// The head of a value that stands alone.
    fn head<E: Error>(&mut self, wire: u64) -> Result<(), E> {
        if self.place == Place::Packed { Ok(()) } else { self.piece.head(self.field.number, wire) }
    }

    fn varint<E: Error>(&mut self, number: u64) -> Result<(), E> {
        self.head(0)?;
        self.piece.number(number)
    }

    fn fixed<E: Error>(&mut self, bytes: [u8; 8]) -> Result<(), E> {
        self.head(1)?;
        self.piece.put(&bytes)
    }

    fn bytes<E: Error>(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.head(2)?;
        self.piece.number(bytes.len() as u64)?;
        self.piece.put(bytes)
    }

    /// Writes a number; `None` where none can be there, or no such one.
    fn written<E: Error>(&mut self, number: Written) -> Option<Result<(), E>> {
        Some(match self.field.kind {
            _ if self.is_list() => return None,
            // Negative ones are as long as those of 64 bits.
            Kind::Int32 | Kind::Enum(_) => self.varint(i64::from(number.whole::<i32>()?) as u64),
            Kind::Int64 => self.varint(number.whole::<i64>()? as u64),
            Kind::Uint32 => self.varint(number.whole::<u32>()?.into()),
            Kind::Uint64 => self.varint(number.whole()?),
            Kind::Sint32 => {
                let own: i32 = number.whole()?;
                self.varint((((own << 1) ^ (own >> 31)) as u32).into())
            }
            Kind::Fixed32 => {
                let own: u32 = number.whole()?;
                self.head(5).and_then(|()| self.piece.put(&own.to_le_bytes()))
            }
            Kind::Fixed64 => self.fixed(number.whole::<u64>()?.to_le_bytes()),
            Kind::Sfixed64 => self.fixed(number.whole::<i64>()?.to_le_bytes()),
            Kind::Double => self.fixed(number.float().to_le_bytes()),
            Kind::Text | Kind::Bytes | Kind::Id | Kind::Bool | Kind::Message(_) => return None,
        })
    }
}

impl<'de> Visitor<'de> for FieldOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.field.kind {
            _ if self.is_list() => "an array",
            Kind::Text => "a string",
            Kind::Bytes => "bytes in base64",
            Kind::Id => "an identifier in hexadecimal digits",
            Kind::Bool => "a boolean",
            Kind::Double => "a number",
            Kind::Enum(_) => "the number of an enum, or its name",
            Kind::Message(_) => "an object",
            _ => "a whole number that is in range",
        })
    }

    /// The default of each field.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if self.place == Place::Member { Ok(()) } else { Err(self.wrong(Unexpected::Unit)) }
    }

    fn visit_bool<E: Error>(mut self, truth: bool) -> Result<(), E> {
        match self.field.kind {
            Kind::Bool if !self.is_list() => self.varint(truth.into()),
            _ => Err(self.wrong(Unexpected::Bool(truth))),
        }
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        let written = self.written(Written::Whole(number.into()));
        written.unwrap_or_else(|| Err(self.wrong(Unexpected::Signed(number))))
    }

    fn visit_u64<E: Error>(mut self, number: u64) -> Result<(), E> {
        let written = self.written(Written::Whole(number.into()));
        written.unwrap_or_else(|| Err(self.wrong(Unexpected::Unsigned(number))))
    }

    fn visit_f64<E: Error>(mut self, number: f64) -> Result<(), E> {
        let written = self.written(Written::Float(number));
        written.unwrap_or_else(|| Err(self.wrong(Unexpected::Float(number))))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        let written = match self.field.kind {
            _ if self.is_list() => None,
            Kind::Text => Some(self.bytes(text.as_bytes())),
            Kind::Bytes => BASE64.iter().find_map(|own| own.decode(text).ok()).map(|own| self.bytes(&own)),
            Kind::Id => from_hex(text).map(|own| self.bytes(&own)),
            Kind::Enum(own) => own.number(text.trim()).and_then(|own| self.written(Written::Whole(own.into()))),
            _ => Written::parse(text).and_then(|own| self.written(own)),
        };
        written.unwrap_or_else(|| Err(self.wrong(Unexpected::Str(text))))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        match self.field.kind {
            Kind::Message(message) if !self.is_list() => {
                self.piece.field(self.field.number, |piece| MessageOf { piece, message }.visit_map(members))
            }
            _ => Err(self.wrong(Unexpected::Map)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if !self.is_list() {
            return Err(self.wrong(Unexpected::Seq));
        }
        let Self { piece, field, .. } = self;
        let mut all = |piece: &mut Piece, place| {
            while list.next_element_seed(FieldOf { piece: &mut *piece, field, place })?.is_some() {}
            Ok(())
        };
        match (field.kind, field.many) {
            (Kind::Message(message), Many::Lenient) => {
                while let Some(element) = list.next_element::<&RawValue>()? {
                    let read = piece.field(field.number, |own| own.read(message, element));
                    if piece.is_full {
                        return read.map_err(A::Error::custom);
                    }
                }
                Ok(())
            }
            (Kind::Message(_) | Kind::Text, _) => all(piece, Place::Element),
            _ => piece.field(field.number, |piece| all(piece, Place::Packed)),
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some(((digit(pair[0])? << 4) | digit(*pair.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValueList, any_value};
    use opentelemetry_proto::tonic::metrics::v1::{
        Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ScopeMetrics, metric,
    };
    use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span};
    use prost::Message as _;
    use serde_json::value::RawValue;

    use super::{METRIC, Piece};
    use crate::receive::schema::SPAN;

    fn span(json: &str) -> Option<Span> {
        let mut piece = Piece::up_to(1 << 20);
        let json: &RawValue = serde_json::from_str(json).expect(json);
        let read = piece.message(2, &SPAN, json);
        let mut scope = ScopeSpans::decode(piece.bytes()).expect("it is a message");
        let span = scope.spans.pop().expect("there is one");
        // What cannot be read is empty.
        assert!(read.is_ok() || span == Span::default());
        read.ok().map(|()| span)
    }

    fn metric(json: &str) -> Metric {
        let mut piece = Piece::up_to(1 << 20);
        piece.metric(2, serde_json::from_str(json).expect(json)).expect("it has room");
        ScopeMetrics::decode(piece.bytes()).expect("it is a message").metrics.pop().expect("there is one")
    }

    #[test]
    fn any_field_may_be_null_and_has_two_names() {
        let all = r#"{"traceId":null,"spanId":null,"traceState":null,"parentSpanId":null,"name":null,"kind":null,"startTimeUnixNano":null,
            "endTimeUnixNano":null,"attributes":null,"droppedAttributesCount":null,"events":null,"droppedEventsCount":null,"links":null,
            "droppedLinksCount":null,"status":null,"flags":null,"new":null}"#;
        assert_eq!(span(all), Some(Span::default()));
        let inner = r#"{"attributes":[{"key":null,"value":null},{"value":{"stringValue":null}}],"events":[{"attributes":null,"name":null}],
            "links":[{"traceId":null,"attributes":null}],"status":{"code":null,"message":null}}"#;
        let found = span(inner).expect("it is one");
        assert_eq!((found.attributes.len(), found.events.len(), found.links.len()), (2, 1, 1));
        // An element of a list has no default.
        assert_eq!(
            [r#"{"links":[null]}"#, r#"{"attributes":[null]}"#, "null", "[]", "7"].map(span),
            [const { None }; 5]
        );
        let named = r#"{"trace_id":"0A","parent_span_id":"ff","start_time_unix_nano":"5","kind":2,"dropped_attributes_count":1}"#;
        let usual = r#"{"traceId":"0a","parentSpanId":"FF","startTimeUnixNano":5,"kind":"SPAN_KIND_SERVER","droppedAttributesCount":"1"}"#;
        assert!(span(named).is_some() && span(named) == span(usual));
        assert_eq!(span(r#"{"spanId":"00","span_id":"00"}"#), None);
        assert_eq!(
            metric(r#"{"exponential_histogram":{"data_points":[{"time_unix_nano":"5"}]}}"#),
            metric(r#"{"exponentialHistogram":{"dataPoints":[{"timeUnixNano":5}]}}"#)
        );
    }

    #[test]
    fn values_of_attributes_are_those_of_protocol_buffers() {
        use any_value::Value::{
            ArrayValue as Array, BoolValue, BytesValue, DoubleValue, IntValue, KvlistValue, StringValue,
        };
        let value = |json: &str| {
            let found = span(&format!(r#"{{"events":[{{"attributes":[{{"key":"a","value":{json}}}]}}]}}"#));
            found.map(|own| own.events[0].attributes[0].value.clone())
        };
        let of = |value| Some(Some(AnyValue { value: Some(value) }));
        for (json, wanted) in [
            (r#"{"arrayValue":{}}"#, Array(ArrayValue::default())),
            (r#"{"arrayValue":{"values":[]}}"#, Array(ArrayValue::default())),
            (r#"{"arrayValue":{"values":null}}"#, Array(ArrayValue::default())),
            (r#"{"arrayValue":{"values":[{}]}}"#, Array(ArrayValue { values: vec![AnyValue::default()] })),
            (r#"{"kvlistValue":{}}"#, KvlistValue(KeyValueList::default())),
            (r#"{"doubleValue":"Infinity"}"#, DoubleValue(f64::INFINITY)),
            (r#"{"doubleValue":"-Infinity"}"#, DoubleValue(f64::NEG_INFINITY)),
            (r#"{"doubleValue":"1.5"}"#, DoubleValue(1.5)),
            (r#"{"doubleValue":3}"#, DoubleValue(3.0)),
            (r#"{"intValue":3.0}"#, IntValue(3)),
            (r#"{"intValue":"-3"}"#, IntValue(-3)),
            (r#"{"intValue":"1e2"}"#, IntValue(100)),
            (r#"{"intValue":"9223372036854775807"}"#, IntValue(i64::MAX)),
            (r#"{"intValue":-9223372036854775808}"#, IntValue(i64::MIN)),
            (r#"{"boolValue":false}"#, BoolValue(false)),
            (r#"{"stringValue":"","new":{"a":[null]}}"#, StringValue(String::new())),
            (r#"{"bytesValue":"-_8="}"#, BytesValue(vec![0xfb, 0xff])),
            (r#"{"bytesValue":"+/8"}"#, BytesValue(vec![0xfb, 0xff])),
        ] {
            assert_eq!(value(json), of(wanted), "{json}");
        }
        let nan = value(r#"{"doubleValue":"NaN"}"#).flatten().and_then(|own| own.value);
        assert!(matches!(nan, Some(DoubleValue(number)) if number.is_nan()));
        assert_eq!(
            (value("{}"), value(r#"{"new":1}"#)),
            (Some(Some(AnyValue::default())), Some(Some(AnyValue::default())))
        );
        for json in [
            r#"{"intValue":3.5}"#,
            r#"{"intValue":"9223372036854775808"}"#,
            r#"{"intValue":""}"#,
            r#"{"intValue":true}"#,
            r#"{"intValue":"NaN"}"#,
            r#"{"doubleValue":"inf"}"#,
            r#"{"doubleValue":" 1"}"#,
            r#"{"boolValue":1}"#,
            r#"{"stringValue":1}"#,
            r#"{"arrayValue":[]}"#,
            r#"{"kvlistValue":{"values":{}}}"#,
            r#"{"bytesValue":"?"}"#,
            "7",
        ] {
            assert_eq!(value(json), None, "{json}");
        }
        let deep = format!("{}1{}", r#"{"arrayValue":{"values":["#.repeat(10_000), "]}}".repeat(10_000));
        assert_eq!(value(&deep), None);
    }

    #[test]
    fn enums_by_name_are_those_by_number() {
        let both = |kind: &str, code: &str| {
            let json = format!(r#"{{"name":"n","k\u0069nd":{kind},"status":{{"message":"m","code":{code}}}}}"#);
            span(&json).map(|span| (span.kind, span.status.map(|own| own.code)))
        };
        let names = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
        for (number, name) in (0..).zip(names) {
            for spelled in
                [format!(r#""SPAN_KIND_{name}""#), format!("\"{}\"", name.to_lowercase()), number.to_string()]
            {
                assert_eq!(both(&spelled, "0").expect(&spelled), (number, Some(0)));
            }
        }
        for (number, name) in (0..).zip(["UNSET", "OK", "ERROR"]) {
            let spelled = format!(r#""STATUS_CODE_{name}""#);
            assert_eq!(both("1", &spelled).expect(&spelled), (1, Some(number)));
        }
        assert_eq!([both(r#""x""#, "0"), both("1", r#""x""#), both("5000000000", "0")], [None; 3]);
        let of = |kind: &str, temporality: &str| {
            metric(&format!(
                r#"{{"name":"m","{kind}":{{"aggregationTemporality":{temporality},"dataPoints":[{{"timeUnixNano":"5"}}]}}}}"#
            ))
        };
        for kind in ["sum", "histogram", "exponentialHistogram"] {
            assert_eq!(of(kind, r#""AGGREGATION_TEMPORALITY_DELTA""#), of(kind, "1"));
            assert_eq!(of(kind, r#""AGGREGATION_TEMPORALITY_CUMULATIVE""#), of(kind, "2"));
        }
    }

    #[test]
    fn metrics_are_written_as_they_are_read_at_once() {
        let point = r#""attributes":[{"key":"k","value":{"boolValue":true}}],"startTimeUnixNano":"1","timeUnixNano":"2","flags":1"#;
        let exemplars =
            r#""exemplars":[{"timeUnixNano":"3","asInt":"-4","spanId":"0102","traceId":"03","filteredAttributes":[]}]"#;
        let count = r#""count":"3","sum":2.5"#;
        let buckets = r#"{"offset":-3,"bucketCounts":["1","300"]}"#;
        for data in [
            format!(r#""gauge":{{"dataPoints":[{{{point},{exemplars},"asDouble":0.0}},{{{point},"asInt":"-7"}}]}}"#),
            format!(
                r#""sum":{{"dataPoints":[{{{point},"asInt":"7"}}],"aggregationTemporality":1,"isMonotonic":true}}"#
            ),
            format!(
                r#""histogram":{{"dataPoints":[{{{point},{count},{exemplars},"bucketCounts":["1","2"],"explicitBounds":[0.5],"min":0.0,"max":4.0}}],"aggregationTemporality":2}}"#
            ),
            format!(
                r#""exponentialHistogram":{{"dataPoints":[{{{point},{count},{exemplars},"scale":-2,"zeroCount":"1","positive":{buckets},"negative":{buckets},"min":-1.0,"max":1.0,"zeroThreshold":0.25}}],"aggregationTemporality":2}}"#
            ),
            format!(
                r#""summary":{{"dataPoints":[{{{point},{count},"quantileValues":[{{"quantile":0.5,"value":1.5}}]}}]}}"#
            ),
        ] {
            let json = format!(
                r#"{{"name":"m","description":"d","unit":"s",{data},"metadata":[{{"key":"k","value":{{"doubleValue":1.5}}}}]}}"#
            );
            let wanted: Metric = serde_json::from_str(&json).expect(&json);
            assert_eq!(metric(&json), wanted);
        }
    }

    #[test]
    fn points_that_cannot_be_read_leave_the_others() {
        let gauge = |points| Some(metric::Data::Gauge(Gauge { data_points: points }));
        let number = |time_unix_nano| NumberDataPoint { time_unix_nano, ..NumberDataPoint::default() };
        let found = metric(
            r#"{"name":"m","gauge":{"dataPoints":[{"timeUnixNano":"5","flags":0},{"timeUnixNano":"x","asDouble":1},null,{"timeUnixNano":6}]}}"#,
        );
        assert_eq!(found.name, "m");
        assert_eq!(found.data, gauge(vec![number(5), number(0), number(0), number(6)]));
        // A metric that cannot be read has as many points without content.
        let three = r#""dataPoints":[{"timeUnixNano":"5"},{},7]"#;
        for (json, points) in [
            (format!(r#"{{"name":7,"sum":{{{three}}}}}"#), 3),
            (format!(r#"{{"histogram":{{"aggregationTemporality":"x",{three}}}}}"#), 3),
            (r#"{"name":7,"exponential_histogram":{"data_points":[{},{}]}}"#.to_owned(), 2),
            (r#"{"summary":{"dataPoints":{}}}"#.to_owned(), 1),
            ("null".to_owned(), 1),
            ("[]".to_owned(), 1),
        ] {
            assert_eq!(metric(&json), Metric { data: gauge(vec![number(0); points]), ..Metric::default() }, "{json}");
        }
        // A sum that is not a number tells as much.
        let sum = metric(
            r#"{"histogram":{"dataPoints":[{"timeUnixNano":5,"count":5,"sum":"NaN","min":"Infinity","bucketCounts":[5]}]}}"#,
        );
        let Some(metric::Data::Histogram(Histogram { data_points, .. })) = sum.data else { panic!("it is one") };
        assert!(matches!(&data_points[..], [HistogramDataPoint { count: 5, sum: Some(sum), .. }] if sum.is_nan()));
    }

    #[test]
    fn what_is_larger_than_it_may_be_has_no_room() {
        let json = format!(r#"{{"histogram":{{"dataPoints":[{{"bucketCounts":[{}0]}}]}}}}"#, "0,".repeat(1000));
        let mut piece = Piece::up_to(2 * json.len());
        let raw: &RawValue = serde_json::from_str(&json).expect("it is JSON");
        assert!(piece.metric(2, raw).is_ok() && piece.is_full() && piece.bytes().len() <= 2 * json.len());
        let mut piece = Piece::up_to(4 * json.len());
        assert!(piece.message(2, &METRIC, raw).is_ok() && !piece.is_full());
    }
}
