//! Finding a table's rows by the values of some columns.

use std::mem::size_of;

use crate::eval::rows::{NONE, Rows};
use crate::value::Value;

/// For each value of some columns, the rows that have it as a list by next-pointers, the latest first.
#[derive(Debug)]
pub(super) struct Index {
    /// The columns.
    pub(super) columns: Vec<usize>,
    heads: Heads,
    next: Vec<u32>,
}

/// Where the lists begin.
#[derive(Debug)]
enum Heads {
    /// One column of ids: the lists by the id less the least one.
    Dense { least: u32, first: Vec<u32> },
    /// Anything: the lists by the number of the key.
    Keys { keys: Rows, first: Vec<u32> },
}

impl Index {
    /// An empty one. Ids of a single column between `ids` may be looked up without hashing.
    pub(super) fn new(columns: Vec<usize>, ids: Option<(u32, u32)>) -> Self {
        let heads = match ids.filter(|_| columns.len() == 1) {
            Some((least, greatest)) => Heads::Dense { least, first: vec![NONE; (greatest - least) as usize + 1] },
            None => Heads::Keys { keys: Rows::new(columns.len()), first: Vec::new() },
        };
        Self { columns, heads, next: Vec::new() }
    }

    /// Adds a row with these values of its columns. Row numbers may come in any order.
    pub(super) fn add(&mut self, row: u32, key: &[Value]) {
        if self.next.len() <= row as usize {
            self.next.resize(row as usize + 1, NONE);
        }
        if let Heads::Dense { least, first } = &mut self.heads {
            let place = key[0].narrow().and_then(|id| id.checked_sub(*least)).map(|place| place as usize);
            match place.filter(|place| *place < first.len()) {
                Some(place) => self.next[row as usize] = std::mem::replace(&mut first[place], row),
                None => {
                    self.widen();
                    self.add(row, key);
                }
            }
        } else if let Heads::Keys { keys, first } = &mut self.heads {
            let (number, new) = keys.insert(key);
            if new {
                first.push(NONE);
            }
            self.next[row as usize] = std::mem::replace(&mut first[number as usize], row);
        }
    }

    /// The first row with this key, or [`NONE`].
    #[inline]
    pub(super) fn first(&self, key: &[Value]) -> u32 {
        match &self.heads {
            Heads::Dense { least, first } => {
                let place = key[0].narrow().and_then(|id| id.checked_sub(*least));
                place.and_then(|place| first.get(place as usize)).copied().unwrap_or(NONE)
            }
            Heads::Keys { keys, first } => keys.find(key).map_or(NONE, |number| first[number as usize]),
        }
    }

    /// The row after this one in its list, or [`NONE`].
    #[inline]
    pub(super) fn next(&self, row: u32) -> u32 {
        self.next[row as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        let heads = match &self.heads {
            Heads::Dense { first, .. } => first.capacity() * size_of::<u32>(),
            Heads::Keys { keys, first } => keys.bytes() + first.capacity() * size_of::<u32>(),
        };
        heads + self.next.capacity() * size_of::<u32>()
    }

    /// From ids to anything.
    fn widen(&mut self) {
        let Heads::Dense { least, first } = &self.heads else { return };
        let mut keys = Rows::new(1);
        let mut heads = Vec::new();
        for (place, row) in first.iter().enumerate().filter(|(_, row)| **row != NONE) {
            keys.insert(&[Value::from_narrow(least + place as u32)]);
            heads.push(*row);
        }
        self.heads = Heads::Keys { keys, first: heads };
    }
}
