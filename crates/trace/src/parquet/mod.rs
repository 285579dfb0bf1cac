//! Parquet files: columns, row groups, pages.
//!
//! Whatever is read of a file is checked before it is used. A row group is in memory, and what is packed is unpacked a page at a time.

mod column;
mod packing;
mod rows;
mod schema;
mod thrift;
mod values;

use std::fmt;
use std::ops::Range;
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
    pub root: Field,
    groups: Vec<Struct<'f>>,
}

/// Bytes of a file, and where they begin in it.
#[derive(Clone, Copy)]
pub(crate) struct Part<'f> {
    pub bytes: &'f [u8],
    pub begin: u64,
}

/// How many bytes at the end of a file say where the others are that tell of it.
pub(crate) const END: u64 = 8;

/// Where the bytes lie that tell of a file of that length with these last bytes.
pub(crate) fn footer(last: &[u8], length: u64) -> Result<Range<u64>, Malformed> {
    let body = last.strip_suffix(MAGIC).ok_or(Malformed("it does not end as such files do: is it complete?"))?;
    let own = body.last_chunk().map(|own| u32::from_le_bytes(*own)).ok_or(Malformed::SHORT)?;
    let end = length.checked_sub(END).ok_or(Malformed::SHORT)?;
    Ok(end.checked_sub(own.into()).ok_or(Malformed::SHORT)?..end)
}

impl<'f> File<'f> {
    /// Reads what a file says about itself ([`footer`]).
    pub fn open(footer: &'f [u8]) -> Result<Self, Malformed> {
        let (footer, _) = structure(footer)?;
        let root = schema::tree(footer.list(2))?;
        let groups = footer.list(4).iter().filter_map(|group| match group {
            Value::Struct(group) => Some(group.clone()),
            _ => None,
        });
        Ok(Self { root, groups: groups.collect() })
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Where a group lies in a file of that length.
    pub fn place(&self, group: usize, length: u64) -> Range<u64> {
        let chunks = self.groups[group].list(1).iter().filter_map(|chunk| match chunk {
            Value::Struct(chunk) => column::place(chunk).ok(),
            _ => None,
        });
        // What lies behind the end is found to be missing when it is read.
        let within = chunks.filter(|place| place.end <= length);
        within.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end)).unwrap_or_default()
    }

    /// The rows of a group, which lies in that part, with the columns that are wanted.
    pub fn rows<'a>(
        &'a self,
        group: usize,
        part: Part<'a>,
        wanted: fn(&[&str]) -> bool,
    ) -> Result<Rows<'a>, Malformed> {
        Rows::open(part, &self.root, &self.groups[group], wanted)
    }
}
