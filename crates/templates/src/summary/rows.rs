//! Small tables of sums, one or two an entry.
//!
//! An invocation adds to a handful of rows of its entry, and the next one to those of another. So what counts is how many
//! places in memory a row takes to find: here one, next to the others of its entry. A row holds narrow sums, which almost
//! all fit; the few that do not are kept elsewhere in full width.

use dyelog_lqn::submodel::{ActivityTotal, Moments, RequestTotal, Seconds};

/// A row that is free: no key is that.
const FREE: u64 = u64::MAX;

/// Rows by key. An open hash table whose rows hold their keys.
#[derive(Clone, Debug)]
pub(super) struct Rows<V> {
    /// None, or a power of two, at least a quarter of them free.
    rows: Vec<(u64, V)>,
    taken: usize,
}

impl<V> Default for Rows<V> {
    fn default() -> Self {
        Self { rows: Vec::new(), taken: 0 }
    }
}

impl<V: Copy + Default> Rows<V> {
    /// The row of a key, which must not be `u64::MAX`, made now if there is none yet.
    #[inline]
    pub(super) fn at(&mut self, key: u64) -> &mut V {
        if self.taken * 4 >= self.rows.len() * 3 {
            self.grow();
        }
        let place = self.place(key);
        let row = &mut self.rows[place];
        if row.0 == FREE {
            row.0 = key;
            self.taken += 1;
        }
        &mut row.1
    }

    /// Fetches what a look at that key will read first; what it gives means nothing.
    #[inline]
    pub(super) fn touch(&self, key: u64) -> u64 {
        self.rows.get(self.first(key)).map_or(0, |row| row.0)
    }

    /// Where the search for a key begins.
    #[inline]
    fn first(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.rows.len().wrapping_sub(1)
    }

    /// Where a key is, or belongs.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let mask = self.rows.len() - 1;
        let mut place = self.first(key);
        while self.rows[place].0 != key && self.rows[place].0 != FREE {
            place = (place + 1) & mask;
        }
        place
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.rows.len() * 2).max(4);
        for row in std::mem::replace(&mut self.rows, vec![(FREE, V::default()); size]) {
            if row.0 != FREE {
                let place = self.place(row.0);
                self.rows[place] = row;
            }
        }
    }

    /// All rows, in the order of their keys.
    pub(super) fn into_sorted(self) -> Vec<(u64, V)> {
        let mut rows = self.rows;
        rows.retain(|row| row.0 != FREE);
        rows.sort_unstable_by_key(|row| row.0);
        rows
    }
}

/// How often, and the sums of what was measured, in as many bits as almost all need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    count: u32,
    values: u32,
    sum: i64,
    squares: i64,
}

impl Tally {
    /// With so many more, and a value in seconds unless that is NaN; `None` where that is too much.
    #[inline]
    pub(super) fn with(self, count: u32, value: f64) -> Option<Self> {
        let count = self.count.checked_add(count)?;
        if value.is_nan() {
            return Some(Self { count, ..self });
        }
        let (sum, squares) = Moments::of_one(value)?;
        Some(Self {
            count,
            values: self.values.checked_add(1)?,
            sum: self.sum.checked_add(sum)?,
            squares: self.squares.checked_add(squares)?,
        })
    }

    /// In full width.
    pub(super) fn wide(self) -> ActivityTotal {
        let (count, sum, squares) = (u64::from(self.values), Seconds(self.sum.into()), self.squares.into());
        ActivityTotal { count: self.count.into(), cpu: Moments { count, sum, squares } }
    }
}

/// How many requests, and the sum of their squared numbers, in as many bits as almost all need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestTally {
    count: u32,
    squares: u32,
}

impl RequestTally {
    /// With these; `None` where that is too much.
    #[inline]
    pub(super) fn with(self, more: &RequestTotal) -> Option<Self> {
        Some(Self {
            count: self.count.checked_add(u32::try_from(more.count).ok()?)?,
            squares: self.squares.checked_add(u32::try_from(more.squares).ok()?)?,
        })
    }

    /// In full width.
    pub(super) fn wide(self) -> RequestTotal {
        RequestTotal { count: self.count.into(), squares: self.squares.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_again_and_come_in_order() {
        let mut rows = Rows::<u32>::default();
        for key in (0..1000).rev().chain((0..1000).step_by(2)) {
            *rows.at(key << 32) += 1;
        }
        let expected: Vec<(u64, u32)> = (0..1000).map(|key| (key << 32, if key % 2 == 0 { 2 } else { 1 })).collect();
        assert_eq!(rows.into_sorted(), expected);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        // 5000 s are 5e18 fs, which is below 2^63, and their square is not.
        assert!(Tally::default().with(1, 5000.0).is_none());
        let mut more = ActivityTotal { count: 1, ..ActivityTotal::default() };
        more.cpu.add(3.0);
        let once = Tally::default().with(1, 3.0).expect("that much fits");
        assert_eq!((once.wide().count, once.wide().cpu), (1, more.cpu));
        assert!(once.with(1, 3.0).is_none(), "twice 9e18");
        assert_eq!(once.with(2, f64::NAN).map(|tally| tally.wide().count), Some(3));
        assert!(once.with(u32::MAX, f64::NAN).is_none());
        let many = RequestTotal { count: 1 << 17, squares: 1 << 34 };
        assert!(RequestTally::default().with(&many).is_none());
    }
}
