//! JSON whose records are small: each is built in memory and handed on, the lists that hold them are streamed.

use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use crate::spans::builder::Builder;
use crate::spans::input;
use crate::spans::json::{EitherOf, Elements, Members, Shape};

/// What a format makes of its records.
pub(super) trait Records {
    /// The members that hold records, or objects and lists that do.
    const HOLDERS: &'static [&'static str];

    /// Takes a record.
    fn record(builder: &mut Builder<'_>, record: &Map<String, Value>);
}

/// The documents of a format of records.
pub(super) struct Documents<R>(PhantomData<R>);

impl<R: Records> input::Format for Documents<R> {
    fn document<'de, D: Deserializer<'de>>(builder: &mut Builder<'_>, deserializer: D) -> Result<(), D::Error> {
        let mut node = Node::<R>::new(builder);
        let shape = EitherOf(&mut node).deserialize(deserializer)?;
        node.finish();
        if shape != Shape::Array {
            builder.expect(Shape::Object, shape, "document");
        }
        Ok(())
    }
}

/// An object that is a record, or holds some.
struct Node<'r, 'n, R> {
    builder: &'r mut Builder<'n>,
    record: Map<String, Value>,
    format: PhantomData<R>,
}

impl<'r, 'n, R: Records> Node<'r, 'n, R> {
    fn new(builder: &'r mut Builder<'n>) -> Self {
        Self { builder, record: Map::new(), format: PhantomData }
    }

    fn finish(self) {
        if !self.record.is_empty() {
            R::record(self.builder, &self.record);
        }
    }
}

impl<R: Records> Elements for Node<'_, '_, R> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, seq: &mut A) -> Result<bool, A::Error> {
        let mut node = Node::<R>::new(self.builder);
        let Some(shape) = seq.next_element_seed(EitherOf(&mut node))? else { return Ok(false) };
        node.finish();
        if shape != Shape::Array {
            self.builder.expect(Shape::Object, shape, "record");
        }
        Ok(true)
    }
}

impl<R: Records> Members for Node<'_, '_, R> {
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if R::HOLDERS.contains(&key) {
            let mut node = Node::<R>::new(self.builder);
            map.next_value_seed(EitherOf(&mut node))?;
            node.finish();
        } else {
            self.record.insert(key.to_owned(), map.next_value()?);
        }
        Ok(())
    }
}
