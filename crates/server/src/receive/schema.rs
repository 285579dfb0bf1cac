//! The messages of OTLP, as their JSON form names them: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use dyelog::trace::recorded::SpanKind;
use dyelog::trace::retained::Status;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;

/// A message.
#[derive(Debug)]
pub struct Message {
    fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// In JSON; the original name, with underscores, is taken as well.
    name: &'static str,
    pub number: u8,
    pub kind: Kind,
    pub many: Many,
}

/// How often a field may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// At most once.
    One,
    /// A list.
    List,
    /// A list, in which an element that cannot be read is one without content and leaves the others.
    Lenient,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    /// In base64.
    Bytes,
    /// An identifier, in hexadecimal digits.
    Id,
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    /// Of 32 bits, in zigzag.
    Sint32,
    Fixed32,
    Fixed64,
    Sfixed64,
    Double,
    Enum(Enum),
    Message(&'static Message),
}

/// Enums, which are numbers or names.
#[derive(Clone, Copy, Debug)]
pub enum Enum {
    Kind,
    Status,
    Temporality,
}

impl Enum {
    /// The number behind a name, in the spellings that readers of files take.
    pub fn number(self, name: &str) -> Option<i32> {
        let is_unset = |ending: &str| name.to_ascii_lowercase().ends_with(ending);
        match self {
            Self::Kind => match SpanKind::parse(name) {
                SpanKind::Internal => Some(1),
                SpanKind::Server => Some(2),
                SpanKind::Client => Some(3),
                SpanKind::Producer => Some(4),
                SpanKind::Consumer => Some(5),
                SpanKind::Unspecified => is_unset("unspecified").then_some(0),
            },
            Self::Status => match Status::parse(name) {
                Status::Ok => Some(1),
                Status::Error => Some(2),
                Status::Unset => is_unset("unset").then_some(0),
            },
            Self::Temporality => AggregationTemporality::from_str_name(name).map(|own| own as i32),
        }
    }
}

impl Message {
    /// The field of a name, and its place among all.
    pub fn field(&self, name: &str) -> Option<(usize, &'static Field)> {
        let all = || self.fields.iter().enumerate();
        all().find(|(_, own)| own.name == name).or_else(|| all().find(|(_, own)| is_named(own.name, name)))
    }
}

/// Whether a name is that of a field, as JSON or as the definition of messages has it: `spanId`, `span_id`.
pub fn is_named(field: &str, name: &str) -> bool {
    let original = || {
        field
            .bytes()
            .flat_map(|byte| byte.is_ascii_uppercase().then_some(b'_').into_iter().chain([byte.to_ascii_lowercase()]))
    };
    field == name || name.contains('_') && name.bytes().eq(original())
}

const fn one(name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, many: Many::One }
}

const fn list(name: &'static str, number: u8, kind: Kind) -> Field {
    Field { name, number, kind, many: Many::List }
}

const fn message(name: &'static str, number: u8, of: &'static Message) -> Field {
    one(name, number, Kind::Message(of))
}

const fn messages(name: &'static str, number: u8, of: &'static Message) -> Field {
    list(name, number, Kind::Message(of))
}

const fn points(of: &'static Message) -> Field {
    Field { many: Many::Lenient, ..messages("dataPoints", POINTS, of) }
}

/// The fields of a metric that is a gauge, and of all kinds of metrics that are their points.
pub const GAUGE: u8 = 5;
pub const POINTS: u8 = 1;

static ANY_VALUE: Message = Message {
    fields: &[
        one("stringValue", 1, Kind::Text),
        one("boolValue", 2, Kind::Bool),
        one("intValue", 3, Kind::Int64),
        one("doubleValue", 4, Kind::Double),
        message("arrayValue", 5, &ARRAY_VALUE),
        message("kvlistValue", 6, &KEY_VALUE_LIST),
        one("bytesValue", 7, Kind::Bytes),
        one("stringValueStrindex", 8, Kind::Int32),
    ],
};

static ARRAY_VALUE: Message = Message { fields: &[messages("values", 1, &ANY_VALUE)] };

static KEY_VALUE_LIST: Message = Message { fields: &[messages("values", 1, &KEY_VALUE)] };

static KEY_VALUE: Message = Message {
    fields: &[one("key", 1, Kind::Text), message("value", 2, &ANY_VALUE), one("keyStrindex", 3, Kind::Int32)],
};

static ENTITY_REF: Message = Message {
    fields: &[
        one("schemaUrl", 1, Kind::Text),
        one("type", 2, Kind::Text),
        list("idKeys", 3, Kind::Text),
        list("descriptionKeys", 4, Kind::Text),
    ],
};

pub static RESOURCE: Message = Message {
    fields: &[
        messages("attributes", 1, &KEY_VALUE),
        one("droppedAttributesCount", 2, Kind::Uint32),
        messages("entityRefs", 3, &ENTITY_REF),
    ],
};

pub static SCOPE: Message = Message {
    fields: &[
        one("name", 1, Kind::Text),
        one("version", 2, Kind::Text),
        messages("attributes", 3, &KEY_VALUE),
        one("droppedAttributesCount", 4, Kind::Uint32),
    ],
};

pub static SPAN: Message = Message {
    fields: &[
        one("traceId", 1, Kind::Id),
        one("spanId", 2, Kind::Id),
        one("traceState", 3, Kind::Text),
        one("parentSpanId", 4, Kind::Id),
        one("name", 5, Kind::Text),
        one("kind", 6, Kind::Enum(Enum::Kind)),
        one("startTimeUnixNano", 7, Kind::Fixed64),
        one("endTimeUnixNano", 8, Kind::Fixed64),
        messages("attributes", 9, &KEY_VALUE),
        one("droppedAttributesCount", 10, Kind::Uint32),
        messages("events", 11, &EVENT),
        one("droppedEventsCount", 12, Kind::Uint32),
        messages("links", 13, &LINK),
        one("droppedLinksCount", 14, Kind::Uint32),
        message("status", 15, &STATUS),
        one("flags", 16, Kind::Fixed32),
    ],
};

static EVENT: Message = Message {
    fields: &[
        one("timeUnixNano", 1, Kind::Fixed64),
        one("name", 2, Kind::Text),
        messages("attributes", 3, &KEY_VALUE),
        one("droppedAttributesCount", 4, Kind::Uint32),
    ],
};

static LINK: Message = Message {
    fields: &[
        one("traceId", 1, Kind::Id),
        one("spanId", 2, Kind::Id),
        one("traceState", 3, Kind::Text),
        messages("attributes", 4, &KEY_VALUE),
        one("droppedAttributesCount", 5, Kind::Uint32),
        one("flags", 6, Kind::Fixed32),
    ],
};

static STATUS: Message = Message { fields: &[one("message", 2, Kind::Text), one("code", 3, Kind::Enum(Enum::Status))] };

pub static METRIC: Message = Message {
    fields: &[
        one("name", 1, Kind::Text),
        one("description", 2, Kind::Text),
        one("unit", 3, Kind::Text),
        message("gauge", GAUGE, &GAUGE_DATA),
        message("sum", 7, &SUM),
        message("histogram", 9, &HISTOGRAM),
        message("exponentialHistogram", 10, &EXPONENTIAL_HISTOGRAM),
        message("summary", 11, &SUMMARY),
        messages("metadata", 12, &KEY_VALUE),
    ],
};

const TEMPORALITY: Field = one("aggregationTemporality", 2, Kind::Enum(Enum::Temporality));

static GAUGE_DATA: Message = Message { fields: &[points(&NUMBER_POINT)] };

static SUM: Message = Message { fields: &[points(&NUMBER_POINT), TEMPORALITY, one("isMonotonic", 3, Kind::Bool)] };

static HISTOGRAM: Message = Message { fields: &[points(&HISTOGRAM_POINT), TEMPORALITY] };

static EXPONENTIAL_HISTOGRAM: Message = Message { fields: &[points(&EXPONENTIAL_HISTOGRAM_POINT), TEMPORALITY] };

static SUMMARY: Message = Message { fields: &[points(&SUMMARY_POINT)] };

const START: Field = one("startTimeUnixNano", 2, Kind::Fixed64);
const TIME: Field = one("timeUnixNano", 3, Kind::Fixed64);
const COUNT: Field = one("count", 4, Kind::Fixed64);
const SUM_OF_VALUES: Field = one("sum", 5, Kind::Double);

static NUMBER_POINT: Message = Message {
    fields: &[
        START,
        TIME,
        one("asDouble", 4, Kind::Double),
        messages("exemplars", 5, &EXEMPLAR),
        one("asInt", 6, Kind::Sfixed64),
        messages("attributes", 7, &KEY_VALUE),
        one("flags", 8, Kind::Uint32),
    ],
};

static HISTOGRAM_POINT: Message = Message {
    fields: &[
        START,
        TIME,
        COUNT,
        SUM_OF_VALUES,
        list("bucketCounts", 6, Kind::Fixed64),
        list("explicitBounds", 7, Kind::Double),
        messages("exemplars", 8, &EXEMPLAR),
        messages("attributes", 9, &KEY_VALUE),
        one("flags", 10, Kind::Uint32),
        one("min", 11, Kind::Double),
        one("max", 12, Kind::Double),
    ],
};

static EXPONENTIAL_HISTOGRAM_POINT: Message = Message {
    fields: &[
        messages("attributes", 1, &KEY_VALUE),
        START,
        TIME,
        COUNT,
        SUM_OF_VALUES,
        one("scale", 6, Kind::Sint32),
        one("zeroCount", 7, Kind::Fixed64),
        message("positive", 8, &BUCKETS),
        message("negative", 9, &BUCKETS),
        one("flags", 10, Kind::Uint32),
        messages("exemplars", 11, &EXEMPLAR),
        one("min", 12, Kind::Double),
        one("max", 13, Kind::Double),
        one("zeroThreshold", 14, Kind::Double),
    ],
};

static BUCKETS: Message = Message { fields: &[one("offset", 1, Kind::Sint32), list("bucketCounts", 2, Kind::Uint64)] };

static SUMMARY_POINT: Message = Message {
    fields: &[
        START,
        TIME,
        COUNT,
        SUM_OF_VALUES,
        messages("quantileValues", 6, &QUANTILE),
        messages("attributes", 7, &KEY_VALUE),
        one("flags", 8, Kind::Uint32),
    ],
};

static QUANTILE: Message = Message { fields: &[one("quantile", 1, Kind::Double), one("value", 2, Kind::Double)] };

static EXEMPLAR: Message = Message {
    fields: &[
        one("timeUnixNano", 2, Kind::Fixed64),
        one("asDouble", 3, Kind::Double),
        one("spanId", 4, Kind::Id),
        one("traceId", 5, Kind::Id),
        one("asInt", 6, Kind::Sfixed64),
        messages("filteredAttributes", 7, &KEY_VALUE),
    ],
};
