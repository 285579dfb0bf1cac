//! When an entry's invocations did their own work, or when operations of a scenario were under way: enough of it to see how many were
//! there together, however many there are.
//!
//! What is kept is whole stretches of time, not single stays: of a part of all stays, drawn one by one, nobody could tell how many
//! others were there. Time is cut into periods of 8.6 s; these have an order that a digest of their number gives, and stays come
//! in the order of their periods and, within one, of their begin. The first [`MOST`] in that order are kept. That set depends on
//! nothing but the stays, so that [`Stays::merge`] gives the same in whatever order parts come together.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The most stays that are kept of an entry or a scenario.
pub const MOST: usize = 8192;

/// The most ways and visits that are kept of an entry.
pub const MOST_VISITS: usize = 4096;

/// The logarithm of a period's length in nanoseconds, to the base of two: 8.6 s.
pub const PERIOD: u32 = 33;

/// In the place of a part's number: nobody recorded when that was.
pub const UNDATED: u32 = u32::MAX;

/// A stretch of an invocation's own work, or an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Its begin, nanoseconds from the trace's epoch.
    pub start: i64,
    /// Its length, nanoseconds.
    pub length: u64,
    /// The how-manieth of the invocation it is, from 0; [`UNDATED`] of one that stands for work of which nobody recorded when it was done.
    pub part: u32,
    /// What tells the instance that did the work from others of its task; 0 where nothing does.
    pub site: u32,
}

impl Stay {
    /// Its end.
    pub fn end(&self) -> i64 {
        self.start.saturating_add_unsigned(self.length)
    }

    /// Where its begin lies in the order of periods and times.
    pub fn rank(&self) -> Rank {
        Rank::of(self.start)
    }

    /// By this stays are in order.
    fn key(&self) -> (Rank, u64, u32, u32) {
        (self.rank(), self.length, self.part, self.site)
    }

    fn order(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A time in the order of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    period: u64,
    start: i64,
}

impl Rank {
    fn of(start: i64) -> Self {
        Self { period: mixed((start >> PERIOD) as u64), start }
    }
}

/// The stays of an entry or a scenario: no more than so many.
#[derive(Clone, Debug, Default)]
pub struct Stays<const KEPT: usize = MOST> {
    seen: u64,
    /// Up to twice as many as are kept in the end, in no order.
    some: Vec<Stay>,
    /// The rank from which on none is kept, where fewer were to be kept ([`Stays::keep`]).
    cut: Option<Rank>,
    /// The rank beyond which none is kept, since as many as are kept at most come before it.
    full: Option<Rank>,
    /// Whether these are those that are kept, in their order.
    is_sorted: bool,
}

impl<const KEPT: usize> Stays<KEPT> {
    /// From what was saved, with the begin of the first that was left out by [`Stays::keep`]; `None` where more are kept than were
    /// seen, or than can be.
    pub(crate) fn of_saved(seen: u64, kept: Vec<Stay>, cut: Option<i64>) -> Option<Self> {
        let count = kept.len() as u64;
        let cut = cut.map(Rank::of);
        let sound = kept.len() <= KEPT
            && (seen == count || seen > count && (kept.len() == KEPT || cut.is_some()))
            && cut.is_none_or(|cut| kept.iter().all(|stay| stay.rank() < cut));
        sound.then_some(Self { seen, some: kept, cut, full: None, is_sorted: false })
    }

    /// The begin of the first that was left out by [`Stays::keep`].
    pub fn cut(&self) -> Option<i64> {
        self.cut.map(|cut| cut.start)
    }

    /// Keeps fewer: no more than so many, the first in the order of periods and times.
    pub fn keep(&mut self, most: usize) {
        let kept = self.kept();
        if let Some(first_out) = kept.get(most) {
            self.keep_before(first_out.rank());
        }
    }

    /// Keeps only those before a rank.
    pub fn keep_before(&mut self, cut: Rank) {
        if self.cut.is_none_or(|own| cut < own) {
            self.some.retain(|stay| stay.rank() < cut);
            self.cut = Some(cut);
        }
    }

    /// How many there were.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many are in memory.
    pub fn size(&self) -> usize {
        self.some.len()
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.some.capacity() * size_of::<Stay>()
    }

    /// Takes in a stay.
    pub fn add(&mut self, stay: Stay) {
        self.seen = self.seen.saturating_add(1);
        self.push(stay);
    }

    fn push(&mut self, stay: Stay) {
        let rank = stay.rank();
        if self.cut.is_none_or(|cut| rank < cut) && self.full.is_none_or(|full| rank <= full) {
            self.some.push(stay);
            self.is_sorted = false;
            self.thin();
        }
    }

    /// Takes in all stays of the other.
    pub fn merge(&mut self, other: &Self) {
        self.seen = self.seen.saturating_add(other.seen);
        if let Some(cut) = other.cut {
            self.keep_before(cut);
        }
        if self.some.len() + other.some.len() < 2 * KEPT {
            // There is room for all of them.
            let before = self.some.len();
            match (self.cut, self.full) {
                (None, None) => self.some.extend_from_slice(&other.some),
                (cut, full) => {
                    let stays = |stay: &&Stay| {
                        let rank = stay.rank();
                        cut.is_none_or(|cut| rank < cut) && full.is_none_or(|full| rank <= full)
                    };
                    self.some.extend(other.some.iter().filter(stays));
                }
            }
            self.is_sorted &= self.some.len() == before;
            return;
        }
        self.some.reserve(other.some.len().min((2 * KEPT).saturating_sub(self.some.len())));
        for stay in &other.some {
            self.push(*stay);
        }
    }

    /// Those that are kept, in the order of time, by stretches of time of which none was left out. What begins before a stretch is not in it.
    pub fn stretches(&self, before: Option<Rank>) -> Vec<Vec<Stay>> {
        let is_before = |rank: Rank| before.is_none_or(|before| rank < before);
        let mut kept = self.kept();
        kept.retain(|stay| is_before(stay.rank()));
        // Those of a period are in order already.
        kept.sort_by(|left, right| left.start.cmp(&right.start).then_with(|| left.order(right)));
        let is_whole = |period: i64| is_before(Rank::of((period << PERIOD) | ((1 << PERIOD) - 1)));
        let follows = |left: &Stay, right: &Stay| {
            let [earlier, later] = [left, right].map(|stay| stay.start >> PERIOD);
            before.is_none() || earlier == later || earlier + 1 == later && is_whole(earlier)
        };
        kept.chunk_by(follows).map(<[Stay]>::to_vec).collect()
    }

    fn thin(&mut self) {
        if self.some.len() >= 2 * KEPT {
            let (_, last, _) = self.some.select_nth_unstable_by(KEPT - 1, Stay::order);
            self.full = Some(last.rank());
            self.some.truncate(KEPT);
        }
    }

    /// Those that are kept, in the order of periods and times.
    pub fn kept(&self) -> Vec<Stay> {
        self.in_order().into_owned()
    }

    /// The same, of its own where they are sorted ([`Stays::sort`]).
    pub fn in_order(&self) -> Cow<'_, [Stay]> {
        if self.is_sorted {
            return Cow::Borrowed(&self.some);
        }
        let mut kept = self.some.clone();
        if !kept.is_sorted_by(|left, right| left.order(right).is_le()) {
            put_in_order(&mut kept);
        }
        kept.truncate(KEPT);
        Cow::Owned(kept)
    }

    /// Sorts the stays that are kept: [`Stays::kept`] and [`Stays::complete_before`] sort them no more.
    pub fn sort(&mut self) {
        if !self.is_sorted {
            self.some = self.kept();
            self.is_sorted = true;
            self.full = self.some.last().filter(|_| self.some.len() == KEPT).map(Stay::rank).or(self.full);
        }
    }

    /// Changes each that is kept, but for its begin, which decides whether it is.
    pub fn change(&mut self, change: impl Fn(&mut Stay)) {
        self.sort();
        self.some.iter_mut().for_each(change);
        // Of those that begin at one time the order may be another one.
        self.is_sorted = self.some.is_sorted_by(|left, right| left.order(right).is_le());
    }

    /// The rank before which all stays are among those that are kept; `None` where none was left out.
    pub fn complete_before(&self) -> Option<Rank> {
        let last = || {
            let is_full = self.some.len() >= KEPT;
            if self.is_sorted {
                return self.some.last().filter(|_| is_full).map(Stay::rank);
            }
            is_full.then(|| self.some.clone().select_nth_unstable_by(KEPT - 1, Stay::order).1.rank())
        };
        let full = (self.seen > KEPT as u64).then(last).flatten();
        [self.cut, full].into_iter().flatten().min()
    }
}

/// Those before a rank of stays in their order ([`Stays::in_order`]); all of them where there is none.
pub fn before(stays: &[Stay], rank: Option<Rank>) -> &[Stay] {
    let count = rank.map_or(stays.len(), |rank| stays.partition_point(|stay| stay.rank() < rank));
    &stays[..count]
}

/// Two that keep the same, in whatever order it came.
impl<const KEPT: usize> PartialEq for Stays<KEPT> {
    fn eq(&self, other: &Self) -> bool {
        self.seen == other.seen && self.cut == other.cut && self.kept() == other.kept()
    }
}

impl<const KEPT: usize> Eq for Stays<KEPT> {}

/// Sorts stays: periods first, by numbers with the place of each stay, which move in place of stays, and then what is of one period.
fn put_in_order(stays: &mut Vec<Stay>) {
    let period = |(place, stay): (usize, &Stay)| (u128::from(stay.rank().period) << 64) | place as u128;
    let mut periods: Vec<u128> = stays.iter().enumerate().map(period).collect();
    periods.sort_unstable();
    let mut sorted: Vec<Stay> = periods.iter().map(|own| stays[*own as u64 as usize]).collect();
    // Two periods have two numbers.
    for own in sorted.chunk_by_mut(|left, right| left.start >> PERIOD == right.start >> PERIOD) {
        let within = |stay: &Stay| (stay.start, stay.length, stay.part, stay.site);
        if !own.is_sorted_by_key(within) {
            own.sort_unstable_by_key(within);
        }
    }
    *stays = sorted;
}

/// The finaliser of splitmix64: neighbours come to lie anywhere.
fn mixed(number: u64) -> u64 {
    let state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MOST, Stay, Stays};

    fn of(stays: &[Stay]) -> Stays {
        let mut all = Stays::default();
        for stay in stays {
            all.add(*stay);
        }
        all
    }

    fn many(count: u64, step: u64) -> Vec<Stay> {
        let stay = |number: u64| Stay {
            start: (number * step) as i64,
            length: number % 7,
            part: (number % 3) as u32,
            site: 0,
        };
        (0..count).map(stay).collect()
    }

    #[test]
    fn whole_stretches_are_kept() {
        let all = of(&many(100_000, 1_000_000));
        let (kept, before) = (all.kept(), all.complete_before().expect("some were left out"));
        assert_eq!((all.seen(), kept.len()), (100_000, MOST));
        let within = many(100_000, 1_000_000).into_iter().filter(|stay| stay.rank() < before).count();
        assert_eq!(within, MOST - 1);
    }

    #[test]
    fn fewer_are_kept_in_whole_stretches_too() {
        let stays = many(50_000, 1_000_000);
        let (left, right) = stays.split_at(20_000);
        let (mut cut, rest) = (of(left), of(right));
        cut.keep(100);
        assert_eq!((cut.kept().len(), cut.seen()), (100, 20_000));
        cut.merge(&rest);
        let before = cut.complete_before().expect("some were left out");
        let within = |stays: &[Stay]| stays.iter().filter(|stay| stay.rank() < before).count();
        assert_eq!(within(&stays), within(&cut.kept()));
        let saved: Stays = Stays::of_saved(cut.seen(), cut.kept(), cut.cut()).expect("it is sound");
        assert_eq!((saved.complete_before(), saved.kept()), (Some(before), cut.kept()));
    }

    #[test]
    fn stretches_have_all_of_their_time() {
        // 1,000 a second: a period has more than are kept; and 100 a second: it has fewer.
        for step in [1_000_000, 10_000_000] {
            let stays = many(100_000, step);
            let all = of(&stays);
            let before = all.complete_before();
            let stretches = all.stretches(before);
            assert!(stretches.iter().map(Vec::len).sum::<usize>() > MOST / 2, "{step}");
            for stretch in stretches {
                let within = stretch[0].start..=stretch[stretch.len() - 1].start;
                let there = stays.iter().filter(|stay| within.contains(&stay.start)).count();
                assert_eq!(there, stretch.len(), "{step}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// However stays are parted, and in whatever order the parts come together: the same.
        #[test]
        fn parts_come_together_in_any_order(
            count in 0..60_000_u64, step in prop_oneof![0..10_u64, 1_000..10_000_000_u64], at in 0..60_000_usize, turn in 0..60_000_usize
        ) {
            let stays = many(count, step);
            let whole = of(&stays);
            let (left, right) = stays.split_at(at.min(stays.len()));
            for (one, other) in [(left, right), (right, left)] {
                let mut sum = of(one);
                sum.merge(&of(other));
                prop_assert_eq!(sum.kept(), whole.kept());
                prop_assert_eq!(sum.seen(), count);
            }
            let mut turned = stays.clone();
            turned.rotate_left(turn % stays.len().max(1));
            prop_assert_eq!(of(&turned).kept(), whole.kept());
        }
    }
}
