//! Spans that came not long ago, to know those that come again.

use std::collections::{HashSet, VecDeque};

/// Digests of the last spans.
#[derive(Debug, Default)]
pub struct Recent {
    known: HashSet<u64>,
    /// In the order in which they are forgotten: by the row of the store that holds them.
    rows: VecDeque<(i64, Vec<u64>)>,
    /// Those that are in no row yet.
    new: Vec<u64>,
}

/// How many are remembered at least: about 35 MB. With the rows that come in seconds of much load there are still no more than the 1.8 million that a table of 2^21
/// places holds: one of twice the size would take 40 MB more.
const MOST: usize = 1_100_000;

impl Recent {
    /// Takes in the digest of a span; whether it is new.
    pub fn take(&mut self, fingerprint: u64) -> bool {
        let new = self.known.insert(fingerprint);
        if new {
            self.new.push(fingerprint);
        }
        new
    }

    /// Restores a row of the store.
    pub fn restore(&mut self, row: i64, bytes: &[u8]) {
        let words = bytes.chunks_exact(8).map(|word| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            u64::from_le_bytes(bytes)
        });
        let row_of: Vec<u64> = words.collect();
        self.known.extend(&row_of);
        self.rows.push_back((row, row_of));
    }

    /// The bytes of the next row and its number, where there is anything new.
    pub fn next_row(&self) -> Option<(i64, Vec<u8>)> {
        let number = self.rows.back().map_or(0, |(number, _)| number + 1);
        (!self.new.is_empty()).then(|| (number, self.new.iter().flat_map(|word| word.to_le_bytes()).collect()))
    }

    /// The greatest row that is no longer needed once the next is there.
    pub fn expired(&self) -> Option<i64> {
        let mut rest = self.known.len();
        let enough = |(_, row): &&(i64, Vec<u64>)| {
            rest -= row.len();
            rest >= MOST
        };
        self.rows.iter().take_while(enough).last().map(|(number, _)| *number)
    }

    /// The next row is in the store, and rows up to `expired` are not.
    pub fn stored(&mut self, expired: Option<i64>) {
        let number = self.rows.back().map_or(0, |(number, _)| number + 1);
        if !self.new.is_empty() {
            self.rows.push_back((number, std::mem::take(&mut self.new)));
        }
        while self.rows.front().is_some_and(|(number, _)| Some(*number) <= expired) {
            let (_, row) = self.rows.pop_front().expect("there is one");
            for word in row {
                self.known.remove(&word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Recent};

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
}
