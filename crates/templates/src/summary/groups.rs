//! Numbers put together by group, in memory that is used again.

/// The numbers 0, 1, 2, … sorted by their group, those of a group in order.
#[derive(Debug, Default)]
pub(super) struct Groups {
    numbers: Vec<u32>,
    offsets: Vec<u32>,
}

impl Groups {
    /// No numbers in any group.
    pub(super) fn clear(&mut self) {
        self.offsets.clear();
    }

    /// Sorts the numbers below `count` into that many groups; numbers without a group are left out.
    pub(super) fn fill(&mut self, groups: usize, count: usize, of: impl Fn(u32) -> Option<usize>) {
        // Counts stand two places on, and move one place down while the numbers go to theirs.
        self.offsets.clear();
        self.offsets.resize(groups + 2, 0);
        for number in 0..count as u32 {
            if let Some(group) = of(number) {
                self.offsets[group + 2] += 1;
            }
        }
        for place in 2..groups + 2 {
            self.offsets[place] += self.offsets[place - 1];
        }
        self.numbers.clear();
        self.numbers.resize(self.offsets[groups + 1] as usize, 0);
        for number in 0..count as u32 {
            if let Some(group) = of(number) {
                let next = &mut self.offsets[group + 1];
                self.numbers[*next as usize] = number;
                *next += 1;
            }
        }
    }

    /// The numbers of a group.
    #[inline]
    pub(super) fn of(&self, group: usize) -> &[u32] {
        match (self.offsets.get(group), self.offsets.get(group + 1)) {
            (Some(&from), Some(&to)) => &self.numbers[from as usize..to as usize],
            _ => &[],
        }
    }
}
