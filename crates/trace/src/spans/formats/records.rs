//! JSON whose records are small: each is built in memory and handed on, the lists that hold them are streamed.

use std::borrow::Cow;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use crate::spans::attributes::Meaning;
use crate::spans::builder::Builder;
use crate::spans::input;
use crate::spans::json::{EitherOf, Elements, Members, Scalar, Shape};
use crate::spans::time::from_rfc3339;

/// What a format makes of its records, and what it remembers of them until the last one was read.
pub(super) trait Records: Default {
    /// The members that hold records, or objects and lists that do.
    const HOLDERS: &'static [&'static str];

    /// Those of the holders behind which an object says something of the spans in them.
    const DESCRIBED: &'static [&'static str] = &[];

    /// Whether a document may end without its closing brackets.
    const OPEN_ENDED: bool = false;

    /// Takes a record.
    fn record(&mut self, builder: &mut Builder<'_>, record: Record<'_>);

    /// How many records there are that can be used.
    fn usable(&self, builder: &Builder<'_>) -> usize {
        builder.count()
    }

    /// Forgets what it remembers of the spans behind the first so many of the input, which are left out.
    fn truncate(&mut self, _spans: usize) {}
}

/// The documents of a format of records.
#[derive(Default)]
pub(super) struct Documents<R>(pub R);

impl<R: Records> input::Format for Documents<R> {
    const OPEN_ENDED: bool = R::OPEN_ENDED;

    fn document<'de, D: Deserializer<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        deserializer: D,
    ) -> Result<(), D::Error> {
        let mut node = Node::new(builder, &mut self.0);
        let shape = EitherOf(&mut node).deserialize(deserializer)?;
        node.finish();
        if shape != Shape::Array {
            builder.expect(Shape::Object, shape, "document");
        }
        Ok(())
    }

    fn usable(&self, builder: &Builder<'_>) -> usize {
        self.0.usable(builder)
    }

    fn truncate(&mut self, spans: usize) {
        self.0.truncate(spans);
    }
}

/// An object that is a record, or holds some.
struct Node<'r, 'n, R> {
    builder: &'r mut Builder<'n>,
    format: &'r mut R,
    record: Map<String, Value>,
    /// Whether it may still say something of spans that were read.
    describes: bool,
}

impl<'r, 'n, R: Records> Node<'r, 'n, R> {
    fn new(builder: &'r mut Builder<'n>, format: &'r mut R) -> Self {
        Self { builder, format, record: Map::new(), describes: false }
    }

    fn finish(self) {
        if !self.record.is_empty() {
            self.format.record(self.builder, Record(&self.record));
        }
        self.builder.open_tables -= usize::from(self.describes);
    }
}

impl<R: Records> Elements for Node<'_, '_, R> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut node = Node::new(self.builder, self.format);
        let Some(shape) = seq.next_element_seed(EitherOf(&mut node))? else { return Ok(false) };
        node.finish();
        self.builder.hand_on_within();
        if shape != Shape::Array {
            self.builder.expect(Shape::Object, shape, "record");
        }
        Ok(true)
    }
}

impl<R: Records> Members for Node<'_, '_, R> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if R::HOLDERS.contains(&key) {
            if !self.describes && R::DESCRIBED.contains(&key) {
                self.describes = true;
                self.builder.open_tables += 1;
            }
            let mut node = Node::new(self.builder, self.format);
            map.next_value_seed(EitherOf(&mut node))?;
            node.finish();
        } else {
            self.record.insert(key.to_owned(), map.next_value()?);
        }
        Ok(())
    }
}

/// An object whose members are looked at leniently: a number may be written as a text, and the other way round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>(pub &'a Map<String, Value>);

impl<'a> Record<'a> {
    /// An object; `None` for any other value.
    pub fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// The first of some members that is there and not `null`.
    pub fn any(self, keys: &[&str]) -> Option<&'a Value> {
        keys.iter().find_map(|key| self.0.get(*key).filter(|value| !value.is_null()))
    }

    /// Whether it has a member, of whatever value.
    pub fn has(self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The value at a path of members; `None` where one of them is missing or no object.
    pub fn at(self, path: &[&str]) -> Option<&'a Value> {
        let (last, above) = path.split_last()?;
        let holder = above.iter().try_fold(self, |record, key| Self::of(record.0.get(*key)?))?;
        holder.0.get(*last).filter(|value| !value.is_null())
    }

    /// The object at a member.
    pub fn object(self, key: &str) -> Option<Self> {
        self.0.get(key).and_then(Self::of)
    }

    /// The elements of the list at a member; none where it is no list.
    pub fn list(self, key: &str) -> &'a [Value] {
        self.0.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The first of some members that is there, as a text.
    pub fn text(self, keys: &[&str]) -> Cow<'a, str> {
        self.any(keys).map(text_of).unwrap_or_default()
    }

    /// The first of some members that is there, as a whole number.
    pub fn whole(self, keys: &[&str]) -> Option<i64> {
        self.any(keys).and_then(|value| scalar(value).whole())
    }

    /// The first of some members that is there, as a number.
    pub fn float(self, keys: &[&str]) -> Option<f64> {
        self.any(keys).and_then(|value| scalar(value).float())
    }

    /// Whether a member is `true`.
    pub fn truth(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool) == Some(true)
    }
}

/// A text or number as a text; empty for anything else.
pub(super) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(number.to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// A value as what readers of attributes take.
pub(super) fn scalar(value: &Value) -> Scalar {
    let mut scalar = Scalar::default();
    scalar.set_value(value);
    scalar
}

/// A number of units as nanoseconds, to the nearest one, of the digits as they are written: a float holds seconds of our days to no
/// better than 0.2 µs. A text may be a date, too.
pub(super) fn time(value: &Value, unit: i64) -> Option<i64> {
    let text = text_of(value);
    let exact = || {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 30 {
            return None;
        }
        let part = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse::<f64>().ok()? };
        let sum = whole.parse::<i64>().ok()?.saturating_mul(unit);
        Some(sum.saturating_add((part * unit as f64).round() as i64))
    };
    let rounded = || text.parse().ok().filter(|number: &f64| number.is_finite());
    exact()
        .or_else(|| rounded().map(|number| (number * unit as f64).round() as i64))
        .or_else(|| value.as_str().and_then(from_rfc3339))
}

/// Takes the members of an object as attributes of the span that is being read, with a prefix before their keys; a member of an
/// object within it has both keys, joined by a dot.
pub(super) fn attributes(builder: &mut Builder<'_>, prefix: &str, record: Record<'_>) {
    for (key, value) in record.0 {
        let key = if prefix.is_empty() { Cow::Borrowed(key.as_str()) } else { Cow::Owned(format!("{prefix}.{key}")) };
        match Record::of(value) {
            // The parser bounds how deep objects lie in each other.
            Some(within) => attributes(builder, &key, within),
            None => {
                builder.scalar.set_value(value);
                builder.attribute(&key);
            }
        }
    }
}

/// Takes a text as an attribute that tells something, where it is not empty.
pub(super) fn tell(builder: &mut Builder<'_>, meaning: Meaning, text: &str) {
    if !text.is_empty() {
        builder.scalar.set_text(text);
        builder.attributes.take(meaning, &mut builder.scalar);
    }
}
