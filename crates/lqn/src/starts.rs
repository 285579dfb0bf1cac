//! When operations started, and how long they took then: enough of it to see the pauses between recordings, and changes within one, however
//! many operations there are.

use crate::submodel::Moments;

/// The most cells that are kept.
const MOST: usize = 64;

/// Starts of operations within cells of time, all of one length.
///
/// The length of a cell is the least power of two, in nanoseconds, at which no more than 64 cells have starts in them. So it
/// depends on the starts alone, and [`Starts::merge`] gives the same in whatever order parts come together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    shift: u32,
    cells: Vec<Stretch>,
}

/// A time in which operations started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first start, nanoseconds from the trace's epoch.
    pub first: i64,
    /// The last.
    pub last: i64,
    /// How many starts there were, these among them.
    pub operations: u64,
    /// Response times of those that have one.
    pub response: Moments,
}

impl Stretch {
    /// Takes in what lies beside it.
    pub fn merge(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.operations += other.operations;
        self.response.merge(&other.response);
    }

    /// From the first start to the last, seconds.
    pub fn seconds(&self) -> f64 {
        self.last.abs_diff(self.first) as f64 * 1e-9
    }
}

impl Starts {
    /// From what was saved; `None` where the cells are not in order, or do not fit their length.
    pub(crate) fn of_cells(shift: u32, cells: Vec<Stretch>) -> Option<Self> {
        let in_place = |cell: &Stretch| {
            cell.first <= cell.last && cell.first >> shift == cell.last >> shift && cell.operations > 0
        };
        let sound = shift < 64
            && cells.len() <= MOST
            && cells.iter().all(in_place)
            && cells.windows(2).all(|pair| pair[0].last >> shift < pair[1].first >> shift);
        sound.then_some(Self { shift, cells })
    }

    /// The logarithm of a cell's length in nanoseconds, to the base of two.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The starts in each cell, in the order of time.
    pub fn cells(&self) -> &[Stretch] {
        &self.cells
    }

    /// Takes in a start, and the response time of that operation in seconds.
    pub fn add(&mut self, start: i64, response: Option<f64>) {
        let mut times = Moments::default();
        if let Some(response) = response {
            times.add(response);
        }
        self.put(Stretch { first: start, last: start, operations: 1, response: times });
        self.fit();
    }

    /// Takes in all starts of the other.
    pub fn merge(&mut self, other: &Self) {
        if other.shift > self.shift {
            self.coarsen(other.shift);
        }
        for cell in &other.cells {
            self.put(*cell);
        }
        self.fit();
    }

    /// Puts in starts that lie within a cell.
    fn put(&mut self, starts: Stretch) {
        let shift = self.shift;
        match self.cells.binary_search_by_key(&(starts.first >> shift), |cell| cell.first >> shift) {
            Ok(at) => self.cells[at].merge(&starts),
            Err(at) => self.cells.insert(at, starts),
        }
    }

    fn fit(&mut self) {
        while self.cells.len() > MOST {
            self.coarsen(self.shift + 1);
        }
    }

    fn coarsen(&mut self, shift: u32) {
        self.shift = shift;
        self.cells.dedup_by(|next, cell| {
            let one = next.first >> shift == cell.first >> shift;
            if one {
                cell.merge(next);
            }
            one
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MOST, Starts};

    fn of(starts: &[i64]) -> Starts {
        let mut all = Starts::default();
        for start in starts {
            all.add(*start, Some(*start as f64 / 7.0));
        }
        all
    }

    fn start() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), 0..1000_i64, 0..1_000_000_000_000_i64]
    }

    proptest! {
        /// However starts are parted, and in whatever order the parts come together: the same.
        #[test]
        fn parts_come_together_in_any_order(
            starts in prop::collection::vec(start(), 0..300), at in 0..300_usize, turn in 0..300_usize
        ) {
            let whole = of(&starts);
            let (left, right) = starts.split_at(at.min(starts.len()));
            let (left, right) = (of(left), of(right));
            for (one, other) in [(&left, &right), (&right, &left)] {
                let mut sum = one.clone();
                sum.merge(other);
                prop_assert_eq!(&sum, &whole);
            }
            let mut turned = starts.clone();
            turned.rotate_left(turn % starts.len().max(1));
            prop_assert_eq!(of(&turned), whole.clone());
            prop_assert!(whole.cells().len() <= MOST);
            let counted = whole.cells().iter().map(|cell| cell.operations).sum::<u64>();
            prop_assert_eq!(counted, starts.len() as u64);
            prop_assert_eq!(Starts::of_cells(whole.shift(), whole.cells().to_vec()), Some(whole.clone()));
        }
    }
}
