//! Sets of rows of one width: dense numbers in the order of arrival, found by their content.

use crate::value::Value;

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// Distinct rows, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Rows {
    width: usize,
    count: u32,
    values: Vec<Value>,
    /// Open addressing: row numbers, or [`NONE`]. Length is a power of two, or 0.
    slots: Vec<u32>,
}

impl Rows {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn row(&self, number: u32) -> &[Value] {
        let start = number as usize * self.width;
        &self.values[start..start + self.width]
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Value>() + self.slots.capacity() * size_of::<u32>()
    }

    /// The number of a row, and whether it is new.
    pub(super) fn insert(&mut self, row: &[Value]) -> (u32, bool) {
        debug_assert_eq!(row.len(), self.width, "all rows have the set's width");
        if (self.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let slot = self.slot(row);
        if self.slots[slot] != NONE {
            return (self.slots[slot], false);
        }
        let number = self.count;
        self.slots[slot] = number;
        self.values.extend_from_slice(row);
        self.count += 1;
        (number, true)
    }

    /// The number of a row that is in the set.
    pub(super) fn find(&self, row: &[Value]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let number = self.slots[self.slot(row)];
        (number != NONE).then_some(number)
    }

    /// The slot that holds the row, or the empty one where it belongs.
    fn slot(&self, row: &[Value]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(row) as usize & mask;
        while self.slots[slot] != NONE && self.row(self.slots[slot]) != row {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(4);
        self.slots.clear();
        self.slots.resize(size, NONE);
        for number in 0..self.count {
            let mut slot = hash(self.row(number)) as usize & (size - 1);
            while self.slots[slot] != NONE {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = number;
        }
    }
}

/// Multiply and fold: neighbouring numbers must not land in neighbouring slots, or probing would crawl.
fn hash(row: &[Value]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
    for value in row {
        let product = u128::from(hash ^ value.bits()) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        hash = (product as u64) ^ ((product >> 64) as u64) ^ hash.rotate_left(23);
    }
    hash ^ (hash >> 32)
}
