//! Enums of OTLP in JSON by their names, where the specification asks for their numbers: some senders write what libraries for protocol buffers make of them.
//!
//! What reads a span or a metric is given numbers. Only the objects that have such a member, or hold one that has, are looked into.

use std::borrow::Cow;
use std::fmt;

use dyelog::trace::recorded::SpanKind;
use dyelog::trace::retained::Status;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// A value in which enums may stand by their names.
#[derive(Debug)]
pub struct Named<M>(pub M);

impl<'de, M: Deserialize<'de>> Deserialize<'de> for Named<M> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        M::deserialize(Within(from)).map(Self)
    }
}

/// Of what enum a member of an object is.
#[derive(Clone, Copy)]
enum Enum {
    Kind,
    Status,
    Temporality,
}

impl Enum {
    /// The number behind a name, in the spellings that readers of files take.
    fn number(self, name: &str) -> Option<i32> {
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

/// What a member of an object is.
#[derive(Clone, Copy)]
enum Member {
    /// An enum.
    Enum(Enum),
    /// An object that has one.
    Holder,
    /// Something else.
    Other,
}

impl Member {
    fn of(name: &str) -> Self {
        match name {
            "kind" => Self::Enum(Enum::Kind),
            "code" => Self::Enum(Enum::Status),
            "aggregationTemporality" => Self::Enum(Enum::Temporality),
            "status" | "sum" | "histogram" | "exponentialHistogram" => Self::Holder,
            _ => Self::Other,
        }
    }
}

/// What is looked into: a deserializer, a visitor, a seed.
struct Within<T>(T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Within<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Within(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Within(visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Within(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Within(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Members { members, next: Member::Other })
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Within(value))
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Within(from))
    }
}

/// The members of an object.
struct Members<A> {
    members: A,
    /// What the next value is.
    next: Member,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(Key(name)) = self.members.next_key()? else { return Ok(None) };
        self.next = Member::of(&name);
        let name: CowStrDeserializer<'_, A::Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.next {
            Member::Enum(own) => seed.deserialize(self.members.next_value_seed(Number(own))?.into_deserializer()),
            Member::Holder => self.members.next_value_seed(Within(seed)),
            Member::Other => self.members.next_value_seed(seed),
        }
    }
}

/// The name of a member, in the input's own bytes where it has no escapes.
#[derive(Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

/// An enum by number or name.
struct Number(Enum);

impl<'de> DeserializeSeed<'de> for Number {
    type Value = i32;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<i32, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Number {
    type Value = i32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number of an enum, or its name")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i32, E> {
        i32::try_from(number).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i32, E> {
        i32::try_from(number).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<i32, E> {
        self.0.number(name.trim()).ok_or_else(|| E::custom(format!("`{name}` is no name of an enum")))
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::metrics::v1::Metric;
    use opentelemetry_proto::tonic::trace::v1::Span;

    use super::Named;

    #[test]
    fn enums_by_name_are_those_by_number() {
        let span = |kind: &str, code: &str| {
            let json = format!(
                r#"{{"name":"n","k\u0069nd":{kind},"status":{{"message":"m","code":{code}}},"attributes":[]}}"#
            );
            serde_json::from_str::<Named<Span>>(&json).map(|Named(span)| (span.kind, span.status.map(|own| own.code)))
        };
        let names = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
        for (number, name) in (0..).zip(names) {
            for spelled in
                [format!(r#""SPAN_KIND_{name}""#), format!("\"{}\"", name.to_lowercase()), number.to_string()]
            {
                assert_eq!(span(&spelled, "0").expect(&spelled), (number, Some(0)));
            }
        }
        for (number, name) in (0..).zip(["UNSET", "OK", "ERROR"]) {
            let spelled = format!(r#""STATUS_CODE_{name}""#);
            assert_eq!(span("1", &spelled).expect(&spelled), (1, Some(number)));
        }
        assert!(span(r#""x""#, "0").is_err() && span("1", r#""x""#).is_err() && span("5000000000", "0").is_err());
        assert_eq!(serde_json::from_str::<Named<Span>>(r#"{"status":null}"#).expect("it has none").0.status, None);
        let metric = |kind: &str, temporality: &str| {
            let json = format!(
                r#"{{"name":"m","{kind}":{{"aggregationTemporality":{temporality},"dataPoints":[{{"timeUnixNano":"5"}}]}}}}"#
            );
            serde_json::from_str::<Named<Metric>>(&json).expect(&json).0
        };
        for kind in ["sum", "histogram", "exponentialHistogram"] {
            assert_eq!(metric(kind, r#""AGGREGATION_TEMPORALITY_DELTA""#), metric(kind, "1"));
            assert_eq!(metric(kind, r#""AGGREGATION_TEMPORALITY_CUMULATIVE""#), metric(kind, "2"));
        }
    }
}
