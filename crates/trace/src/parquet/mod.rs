//! Parquet files: columns, row groups, pages, read from memory.
//!
//! Whatever is read of a file is checked before it is used. What is packed is unpacked a page at a time.

mod column;
mod rows;
mod schema;
mod thrift;
mod values;

use std::fmt;
use std::sync::Arc;

pub(crate) use rows::{Node, Rows, View};
pub(crate) use schema::{Field, FieldContent, Logical, Physical};
use thrift::{Struct, Value, structure};

/// How files begin and end.
pub(crate) const MAGIC: &[u8] = b"PAR1";

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);

impl Malformed {
    const SHORT: Self = Self("it ends where more should come");
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Arc<[u8]>),
}

/// A file of which the columns are known.
pub(crate) struct File<'f> {
    bytes: &'f [u8],
    pub root: Field,
    groups: Vec<Struct<'f>>,
}

impl<'f> File<'f> {
    /// Reads what a file says about itself.
    pub fn open(bytes: &'f [u8]) -> Result<Self, Malformed> {
        let body = bytes.strip_suffix(MAGIC).ok_or(Malformed("it does not end as such files do: is it complete?"))?;
        let (body, length) = body.split_last_chunk::<4>().ok_or(Malformed::SHORT)?;
        let length = u32::from_le_bytes(*length) as usize;
        let begin = body.len().checked_sub(length).ok_or(Malformed::SHORT)?;
        let (footer, _) = structure(&body[begin..])?;
        let root = schema::tree(footer.list(2))?;
        let groups = footer.list(4).iter().filter_map(|group| match group {
            Value::Struct(group) => Some(group.clone()),
            _ => None,
        });
        Ok(Self { bytes, root, groups: groups.collect() })
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The rows of a group, with the columns that are wanted.
    pub fn rows(&self, group: usize, wanted: fn(&[&str]) -> bool) -> Result<Rows<'_>, Malformed> {
        Rows::open(self.bytes, &self.root, &self.groups[group], wanted)
    }
}
