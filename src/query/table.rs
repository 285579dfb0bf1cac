//! Rows of a relation, found by the values of any column.

use std::cell::OnceCell;
use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashMap;

use crate::datalog::value::Value;

/// Where the rows of each value of a column are.
#[derive(Debug)]
struct Index {
    places: FxHashMap<Value, (u32, u32)>,
    rows: Vec<u32>,
}

/// Rows of one relation. Indices are made when they are first asked for.
#[derive(Debug)]
pub(super) struct Table {
    arity: usize,
    values: Vec<Value>,
    indices: Vec<OnceCell<Index>>,
}

impl Table {
    pub(super) fn new(arity: usize) -> Self {
        Self { arity, values: Vec::new(), indices: std::iter::repeat_with(OnceCell::new).take(arity).collect() }
    }

    pub(super) fn push(&mut self, row: &[Value]) {
        debug_assert_eq!(row.len(), self.arity, "rows have the relation's columns");
        self.values.extend_from_slice(row);
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() / self.arity
    }

    pub(super) fn row(&self, number: usize) -> &[Value] {
        &self.values[number * self.arity..][..self.arity]
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[Value]> {
        self.values.chunks_exact(self.arity)
    }

    fn index(&self, column: usize) -> &Index {
        self.indices[column].get_or_init(|| {
            let mut counts: FxHashMap<Value, (u32, u32)> = FxHashMap::default();
            for row in self.rows() {
                counts.entry(row[column]).or_default().1 += 1;
            }
            let mut next = 0;
            let mut seen = vec![0_u32; self.len()];
            for row in self.rows() {
                let place = counts.get_mut(&row[column]).expect("each value was counted");
                if place.1 & TAKEN == 0 {
                    (place.0, next, place.1) = (next, next + place.1, TAKEN);
                }
            }
            for (number, row) in (0..).zip(self.rows()) {
                let place = counts.get_mut(&row[column]).expect("each value was counted");
                let count = place.1 & !TAKEN;
                seen[(place.0 + count) as usize] = number;
                place.1 = TAKEN | (count + 1);
            }
            for place in counts.values_mut() {
                place.1 &= !TAKEN;
            }
            Index { places: counts, rows: seen }
        })
    }

    fn with(&self, column: usize, value: Value) -> &[u32] {
        let index = self.index(column);
        let (first, count) = index.places.get(&value).copied().unwrap_or_default();
        &index.rows[first as usize..][..count as usize]
    }

    /// Gives each row that agrees with the pattern.
    pub(super) fn lookup(&self, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let bound = pattern.iter().enumerate().filter_map(|(column, value)| Some((column, (*value)?)));
        let fewest = bound.map(|(column, value)| self.with(column, value)).min_by_key(|rows| rows.len());
        let mut give = |row: &[Value]| {
            let agrees = row.iter().zip(pattern).all(|(value, wanted)| wanted.is_none_or(|wanted| wanted == *value));
            if agrees { out(row) } else { ControlFlow::Continue(()) }
        };
        let _ = match fewest {
            Some(rows) => rows.iter().try_for_each(|row| give(self.row(*row as usize))),
            None => self.rows().try_for_each(give),
        };
    }

    /// How many rows to expect where these columns are known.
    pub(super) fn estimate(&self, bound: u32) -> u64 {
        let columns: Range<usize> = 0..self.arity;
        let known = columns.filter(|column| bound & 1 << column != 0);
        let groups = known.map(|column| self.index(column).places.len()).max().unwrap_or(1);
        (self.len() / groups.max(1)).max(1) as u64
    }
}

/// Marks a value whose rows have their place.
const TAKEN: u32 = 1 << 31;
