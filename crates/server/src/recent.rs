//! Spans that came not long ago, to know those that come again.
//!
//! All memory is taken at the start and stays as large: a table that grows has the old one and the new one at a time, just when the load is highest.

use std::collections::VecDeque;

use crate::fixed::Table;

/// Digests of the last spans.
#[derive(Debug)]
pub struct Recent {
    known: Table<u64, ()>,
    /// All that are known, in the order in which they are forgotten. Those of rows stand first.
    order: VecDeque<u64>,
    /// By the row of the store that holds them: how many.
    rows: VecDeque<(i64, usize)>,
    /// How many are in no row yet.
    new: usize,
    /// The number of the next row.
    next: i64,
}

/// How many are remembered at least, where not more than [`ROOM`] less this many come between two checkpoints.
const MOST: usize = 1_100_000;
/// How many are remembered at most: about 30 MB with the table. Where more come between two checkpoints, older ones are forgotten before the store forgets them,
/// and one of these that comes again counts twice.
const ROOM: usize = 3 << 19;
/// The power of two of places for them, of which a quarter stays free.
const PLACES: u32 = 21;

impl Default for Recent {
    fn default() -> Self {
        let (known, order) = (Table::of(PLACES), VecDeque::with_capacity(ROOM));
        Self { known, order, rows: VecDeque::new(), new: 0, next: 0 }
    }
}

impl Recent {
    /// Takes in the digest of a span; whether it is new.
    pub fn take(&mut self, fingerprint: u64) -> bool {
        if self.known.get(fingerprint).is_some() {
            return false;
        }
        self.add(fingerprint);
        self.new += 1;
        true
    }

    /// Restores a row of the store.
    pub fn restore(&mut self, row: i64, bytes: &[u8]) {
        let mut count = 0;
        for word in bytes.chunks_exact(8) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            let word = u64::from_le_bytes(bytes);
            if self.known.get(word).is_none() {
                self.add(word);
                count += 1;
            }
        }
        self.rows.push_back((row, count.min(self.order.len())));
        self.next = row + 1;
    }

    /// Adds one that is not known.
    fn add(&mut self, word: u64) {
        if self.order.len() == ROOM {
            self.forget_first();
        }
        self.known.insert(word, ());
        self.order.push_back(word);
    }

    /// Forgets the oldest row, or the oldest of those that are in none.
    fn forget_first(&mut self) {
        let count = match self.rows.iter_mut().find(|(_, count)| *count > 0) {
            Some((_, count)) => std::mem::take(count),
            None => {
                let count = ROOM / 8;
                self.new = self.new.saturating_sub(count);
                count
            }
        };
        self.forget(count);
    }

    fn forget(&mut self, count: usize) {
        for word in self.order.drain(..count) {
            self.known.remove(word);
        }
    }

    /// The bytes of the next row and its number, where there is anything new.
    pub fn next_row(&self) -> Option<(i64, Vec<u8>)> {
        let new = self.order.range(self.order.len() - self.new..);
        (self.new > 0).then(|| (self.next, new.flat_map(|word| word.to_le_bytes()).collect()))
    }

    /// The greatest row that is no longer needed once the next is there.
    pub fn expired(&self) -> Option<i64> {
        let mut rest = self.order.len();
        let enough = |(_, count): &&(i64, usize)| {
            rest -= count;
            rest >= MOST
        };
        self.rows.iter().take_while(enough).last().map(|(number, _)| *number)
    }

    /// The next row is in the store, and rows up to `expired` are not.
    pub fn stored(&mut self, expired: Option<i64>) {
        if self.new > 0 {
            self.rows.push_back((self.next, std::mem::take(&mut self.new)));
            self.next += 1;
        }
        while let Some((_, count)) = self.rows.front().copied().filter(|(number, _)| Some(*number) <= expired) {
            self.rows.pop_front();
            self.forget(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, ROOM, Recent};

    #[test]
    fn what_is_stored_is_known_again() {
        let mut recent = Recent::default();
        assert!(recent.take(1) && recent.take(2) && !recent.take(1));
        let (row, bytes) = recent.next_row().expect("it has a row");
        recent.stored(None);
        assert_eq!(recent.next_row(), None);
        let mut again = Recent::default();
        again.restore(row, &bytes);
        assert!(!again.take(2) && again.take(3));
        assert_eq!(again.next_row().expect("it has a row").0, row + 1);
    }

    #[test]
    fn the_oldest_are_forgotten_by_the_row() {
        let mut recent = Recent::default();
        for row in 0..3 {
            for number in 0..MOST as u64 / 2 {
                recent.take(row * MOST as u64 + number);
            }
            let expired = recent.expired();
            recent.stored(expired);
        }
        assert!(recent.take(0) && !recent.take(MOST as u64));
    }

    #[test]
    fn memory_stays_as_it_is_however_many_come() {
        let mut recent = Recent::default();
        let (capacity, mut next) = (recent.order.capacity(), 1);
        let word = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Between checkpoints as many as usual come, and far more.
        for count in [300_000; 12].into_iter().chain([2 * ROOM as u64, 300_000, ROOM as u64]) {
            for number in next..next + count {
                assert!(recent.take(word(number)));
            }
            next += count;
            let expired = recent.expired();
            recent.stored(expired);
            assert_eq!(recent.order.capacity(), capacity);
            assert_eq!(recent.rows.iter().map(|(_, count)| count).sum::<usize>(), recent.order.len());
            assert!(!(next - MOST.min(count as usize) as u64..next).any(|number| recent.take(word(number))));
        }
        // What was forgotten is new.
        assert!(recent.take(word(1)));
    }
}
