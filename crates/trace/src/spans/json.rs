//! Reading JSON without building it: visitors that hand each member of an object to the code that knows its meaning.
//!
//! All of them are lenient: a value of another type than expected is skipped and told, never an error. Nothing recurses
//! but along the fixed shape of the format; what is skipped is skipped without recursion.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What kind of value was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// `null`, or nothing.
    #[default]
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Whole,
    /// Another number.
    Float,
    /// A string.
    Text,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// The name of a member: part of the text, or on the stack where it was written with escapes or comes from a stream.
enum Key<'t> {
    Text(&'t str),
    /// A longer name than any that means something is cut short; that of a tag of Jaeger, which may be a member, has seldom a third of the room.
    Copied {
        bytes: [u8; LONGEST_KEY],
        length: usize,
    },
}

const LONGEST_KEY: usize = 120;

impl Key<'_> {
    /// The name; empty where it was cut within a character.
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Copied { bytes, length } => std::str::from_utf8(&bytes[..*length]).unwrap_or_default(),
        }
    }
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
        Ok(Key::Text(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
        let mut bytes = [0; LONGEST_KEY];
        let length = text.len().min(LONGEST_KEY);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Ok(Key::Copied { bytes, length })
    }
}

/// Takes the members of an object.
pub trait Members {
    /// Takes one member: reads its value from `map`, in any case.
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Takes the elements of an array.
pub trait Elements {
    /// Takes one element; false where there is none left.
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error>;
}

/// Hands an object to its taker.
pub struct ObjectOf<'a, T>(pub &'a mut T);

/// Hands an array to its taker.
pub struct ArrayOf<'a, T>(pub &'a mut T);

/// Hands an object or an array to its taker.
pub struct EitherOf<'a, T>(pub &'a mut T);

/// Reads a number, string, `true`, `false` or `null` into a buffer that is used again and again.
pub struct ScalarInto<'a>(pub &'a mut Scalar);

/// Reads a value of an attribute, wrapped as OTLP does (`{"intValue": …}`) or plain.
pub struct AnyValueInto<'a>(pub &'a mut Scalar);

/// A value that is neither object nor array.
#[derive(Clone, Debug, Default)]
pub struct Scalar {
    /// What it is; `Array` and `Object` where it was something larger, which was skipped.
    pub shape: Shape,
    text: String,
    /// Wide enough for identifiers above 2^63.
    whole: i128,
    float: f64,
}

impl Scalar {
    /// The text of a string or whole number.
    pub fn text(&mut self) -> Option<&str> {
        use fmt::Write as _;
        match self.shape {
            Shape::Text => {}
            Shape::Whole => {
                self.text.clear();
                write!(self.text, "{}", self.whole).expect("writing to a string cannot fail");
            }
            _ => return None,
        }
        Some(&self.text)
    }

    /// A whole number, also where it is written as a string or as `1.0`.
    pub fn whole(&self) -> Option<i64> {
        match self.shape {
            Shape::Whole => Some(clamped(self.whole)),
            Shape::Float => Some(self.float as i64),
            Shape::Text => {
                let text = self.text.trim();
                text.parse()
                    .ok()
                    .or_else(|| text.parse::<u64>().ok().map(|_| i64::MAX))
                    .or_else(|| float(text).map(|f| f as i64))
            }
            _ => None,
        }
    }

    /// A number, also where it is written as a string.
    pub fn float(&self) -> Option<f64> {
        match self.shape {
            Shape::Whole => Some(self.whole as f64),
            Shape::Float => Some(self.float),
            Shape::Text => float(self.text.trim()),
            _ => None,
        }
    }

    /// Whether it is `true`.
    pub fn truth(&self) -> bool {
        self.shape == Shape::Bool && self.whole != 0
    }

    fn set(&mut self, shape: Shape) -> Shape {
        self.shape = shape;
        shape
    }

    /// Takes a string.
    pub fn set_text(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.set(Shape::Text);
    }

    /// Takes a whole number.
    pub fn set_whole(&mut self, number: i128) {
        self.whole = number;
        self.set(Shape::Whole);
    }

    /// Takes another number.
    pub fn set_float(&mut self, number: f64) {
        self.float = number;
        self.set(Shape::Float);
    }

    /// Takes `true` or `false`.
    pub fn set_bool(&mut self, truth: bool) {
        self.whole = i128::from(truth);
        self.set(Shape::Bool);
    }

    /// Takes note of something larger, or of nothing.
    pub fn set_shape(&mut self, shape: Shape) {
        self.set(shape);
    }

    /// Takes a value of a JSON document.
    pub fn set_value(&mut self, value: &serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::Null => self.set_shape(Shape::Null),
            Value::Bool(truth) => self.set_bool(*truth),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => self.set_whole(whole.into()),
                (_, Some(whole)) => self.set_whole(whole.into()),
                _ => self.set_float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => self.set_text(text),
            Value::Array(_) => self.set_shape(Shape::Array),
            Value::Object(_) => self.set_shape(Shape::Object),
        }
    }
}

fn clamped(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn float(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Implements the parts of [`Visitor`] for values that are not wanted: they are skipped, and their shape is returned.
macro_rules! skip {
    ($($shape:ident),*) => { $(skip!(@ $shape);)* };
    (@ scalars) => {
        fn visit_str<E: Error>(self, _: &str) -> Result<Shape, E> { Ok(Shape::Text) }
        skip!(@ numbers);
    };
    (@ numbers) => {
        fn visit_i64<E: Error>(self, _: i64) -> Result<Shape, E> { Ok(Shape::Whole) }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Shape, E> { Ok(Shape::Whole) }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Shape, E> { Ok(Shape::Float) }
        fn visit_bool<E: Error>(self, _: bool) -> Result<Shape, E> { Ok(Shape::Bool) }
        fn visit_unit<E: Error>(self) -> Result<Shape, E> { Ok(Shape::Null) }
    };
    (@ array) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Shape::Array)
        }
    };
    (@ object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Shape::Object)
        }
    };
    (@ expecting) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("any value") }
    };
}

macro_rules! seed {
    ($name:ident, $bound:ident $(+ $more:ident)?) => {
        impl<'de, T: $bound $(+ $more)?> DeserializeSeed<'de> for $name<'_, T> {
            type Value = Shape;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
                deserializer.deserialize_any(self)
            }
        }
    };
}

seed!(ObjectOf, Members);
seed!(ArrayOf, Elements);
seed!(EitherOf, Members + Elements);

fn take_members<'de, A: MapAccess<'de>>(taker: &mut impl Members, map: &mut A) -> Result<Shape, A::Error> {
    while let Some(key) = map.next_key_seed(KeySeed)? {
        taker.member(key.text(), map)?;
    }
    Ok(Shape::Object)
}

fn take_elements<'de, A: SeqAccess<'de>>(taker: &mut impl Elements, seq: &mut A) -> Result<Shape, A::Error> {
    while taker.element(seq)? {}
    Ok(Shape::Array)
}

impl<'de, T: Members> Visitor<'de> for ObjectOf<'_, T> {
    type Value = Shape;
    skip!(expecting, scalars, array);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        take_members(self.0, &mut map)
    }
}

impl<'de, T: Elements> Visitor<'de> for ArrayOf<'_, T> {
    type Value = Shape;
    skip!(expecting, scalars, object);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        take_elements(self.0, &mut seq)
    }
}

impl<'de, T: Members + Elements> Visitor<'de> for EitherOf<'_, T> {
    type Value = Shape;
    skip!(expecting, scalars);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        take_members(self.0, &mut map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        take_elements(self.0, &mut seq)
    }
}

/// Implements the parts of [`Visitor`] for a value that goes into the [`Scalar`] in field 0.
macro_rules! fill {
    () => {
        fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
            self.0.set_text(text);
            Ok(Shape::Text)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Shape, E> {
            self.0.set_whole(number.into());
            Ok(Shape::Whole)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Shape, E> {
            self.0.set_whole(number.into());
            Ok(Shape::Whole)
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Shape, E> {
            self.0.set_float(number);
            Ok(Shape::Float)
        }

        fn visit_bool<E: Error>(self, truth: bool) -> Result<Shape, E> {
            self.0.set_bool(truth);
            Ok(Shape::Bool)
        }

        fn visit_unit<E: Error>(self) -> Result<Shape, E> {
            Ok(self.0.set(Shape::Null))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(self.0.set(Shape::Array))
        }
    };
}

macro_rules! scalar_seed {
    ($name:ident) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = Shape;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
                deserializer.deserialize_any(self)
            }
        }
    };
}

scalar_seed!(ScalarInto);
scalar_seed!(AnyValueInto);

impl<'de> Visitor<'de> for ScalarInto<'_> {
    type Value = Shape;
    skip!(expecting);
    fill!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.0.set(Shape::Object))
    }
}

impl<'de> Visitor<'de> for AnyValueInto<'_> {
    type Value = Shape;
    skip!(expecting);
    fill!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        self.0.set(Shape::Object);
        while let Some(key) = map.next_key_seed(KeySeed)? {
            match key.text() {
                "stringValue" | "intValue" | "doubleValue" | "boolValue" | "string_value" | "int_value"
                | "double_value" | "bool_value" | "Value" => {
                    map.next_value_seed(ScalarInto(self.0))?;
                }
                _ => skip(&mut map)?,
            }
        }
        Ok(self.0.shape)
    }
}

/// Hands a string to a function, without a copy; other values are skipped.
pub struct TextTo<F>(pub F);

impl<'de, F: FnOnce(&str)> DeserializeSeed<'de> for TextTo<F> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnOnce(&str)> Visitor<'de> for TextTo<F> {
    type Value = Shape;
    skip!(expecting, numbers, array, object);

    fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
        (self.0)(text);
        Ok(Shape::Text)
    }
}

/// Skips the value of a member.
pub fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}
