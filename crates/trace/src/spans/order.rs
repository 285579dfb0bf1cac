//! In which order the spans of a file lie: whether what a file has lost behind its end began later than all the rest, or at any time.
//!
//! A file that ends too early lacks the end of its recording where spans lie in it by time, in either direction: rates are those of a shorter recording. Where they
//! lie by the identifiers of traces or in no order, as exports of searches do, it lacks a part of the operations of every second, and rates come out too low.

/// So many blocks are compared; twice as many are kept, and merged by pairs when there are more.
const BLOCKS: usize = 16;
/// Of so many spans and more, blocks tell the order.
const ENOUGH: u64 = 8 * BLOCKS as u64;

/// The earliest and the latest start of spans that follow each other in a file.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: i64,
    last: i64,
}

impl Block {
    fn join(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The starts of a file's spans, by where they lie in it.
#[derive(Debug)]
pub(super) struct Order {
    blocks: Vec<Block>,
    /// How many spans a block has, and how many are counted so far.
    size: u64,
    count: u64,
}

impl Default for Order {
    fn default() -> Self {
        Self { blocks: Vec::new(), size: 1, count: 0 }
    }
}

impl Order {
    /// Takes in the start of the next span.
    pub fn add(&mut self, start: i64) {
        let own = Block { first: start, last: start };
        match self.blocks.last_mut().filter(|_| !self.count.is_multiple_of(self.size)) {
            Some(block) => *block = block.join(own),
            None => {
                if self.blocks.len() == 2 * BLOCKS {
                    self.blocks = self.blocks.chunks(2).map(|pair| pair[0].join(pair[1])).collect();
                    self.size *= 2;
                }
                self.blocks.push(own);
            }
        }
        self.count += 1;
    }

    /// Whether what would follow lies at the same times as what is there: most blocks have starts among those of the last quarter.
    pub fn is_by_no_time(&self) -> bool {
        let (before, last) = self.blocks.split_at(self.blocks.len() - self.blocks.len() / 4);
        let Some(last) = last.iter().copied().reduce(Block::join).filter(|_| self.count >= ENOUGH) else {
            return false;
        };
        2 * before.iter().filter(|block| block.meets(last)).count() > before.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    fn is_by_no_time(starts: impl Iterator<Item = i64>) -> bool {
        let mut order = Order::default();
        for start in starts {
            order.add(start);
        }
        order.is_by_no_time()
    }

    #[test]
    fn spans_by_time_are_told_from_others() {
        for count in [200, 1_000, 31_077] {
            // Spans of a trace, and exporters, run a little ahead of each other.
            let by_time = |at: i64| at * 1_000 + at * 7_919 % 20_000;
            assert!(!is_by_no_time((0..count).map(by_time)), "{count}");
            assert!(!is_by_no_time((0..count).rev().map(by_time)), "{count}, the latest first");
            let with_pause = |at: i64| by_time(at) + if at > count * 9 / 10 { 10_000 * count } else { 0 };
            assert!(!is_by_no_time((0..count).map(with_pause)), "{count}, a pause");
            assert!(is_by_no_time((0..count).map(|at| at * 7_919 % 10_007)), "{count}, in no order");
            assert!(is_by_no_time((0..count).map(|at| at % (count / 3))), "{count}, a service after the other");
        }
        assert!(!is_by_no_time((0..20).map(|at| at * 7 % 20)), "too few to tell");
        assert!(!is_by_no_time(std::iter::empty()));
    }
}
