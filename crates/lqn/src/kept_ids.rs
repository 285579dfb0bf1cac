//! The probability with which operations were kept, read off the identifiers of their traces, as a mergeable summary.
//!
//! Ratio samplers decide by the trace identifier: they keep those for which a number in [0, 1) made of it is below the probability. The
//! identifiers that were kept fill only that part of the range. With n of them the probability is the greatest number times (n + 1)/n,
//! within about 1 % from 1,000 on. A few tell it, too, where they lie too low for chance. Numbers that are not spread evenly below the greatest tell nothing: identifiers that
//! hold a time, or that are counted. Sources: the samplers of Jaeger, OpenTelemetry, Datadog and Zipkin.

/// The fewest identifiers that tell whether all were kept.
pub const ENOUGH: u64 = 100;
/// The fewest that tell a probability, where they could not lie so low by chance.
const FEWEST: u64 = 10;
/// The chance with which so few may lie as low by themselves, of one sampler.
const CHANCE: f64 = 1e-5;
/// From this probability on all were kept: n evenly spread numbers lie below it with a chance of 0.95^n.
const ALL: f64 = 0.95;
/// The least probability that identifiers tell: those that are counted, or short, lie below.
const LEAST: f64 = 1e-4;
/// How many standard errors the mean of evenly spread numbers may be off.
const ERRORS: f64 = 4.0;

/// The numbers that samplers make of identifiers.
const SAMPLERS: [fn(u128) -> u64; 8] = [
    // Jaeger's clients.
    |id| (id as u64) << 1,
    // OpenTelemetry for Go, older: the first 63 bits of an identifier. It keeps no negative numbers below one half, as .NET's does.
    |id| (id >> 64) as u64,
    // OpenTelemetry for Java, Zipkin's collector.
    |id| (id as u64 as i64).unsigned_abs() << 1,
    // OpenTelemetry for .NET.
    |id| ((id >> 64) as u64 as i64).unsigned_abs() << 1,
    // OpenTelemetry for Python and Go, whose identifiers have 128 bits. Shorter ones have 63 bits often, and fill but half of its range.
    |id| if id >> 64 == 0 { u64::MAX } else { id as u64 },
    // OpenTelemetry for JavaScript.
    |id| ((id ^ (id >> 32) ^ (id >> 64) ^ (id >> 96)) as u64) << 32,
    // OpenTelemetry's probability sampler, and the proportional one of its collector.
    |id| !((id as u64) << 8),
    // Datadog.
    |id| (id as u64).wrapping_mul(1_111_111_111_111_111_111),
];

/// Samplers that take 64 bits of a half as they are: of the first and of the last half.
const UNSIGNED: [usize; 2] = [1, 4];

/// What a ratio sampler did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Which of the samplers that are known.
    pub sampler: usize,
    /// The probability with which it kept traces.
    pub probability: f64,
}

impl Sampling {
    /// Whether tracers that record their probability decide by the same number: Jaeger's clients and OpenTelemetry's probability sampler.
    #[must_use]
    pub fn is_of_tracers(self) -> bool {
        const TRACERS: [usize; 2] = [0, 6];
        TRACERS.contains(&self.sampler)
    }
}

/// What identifiers make of one sampler's numbers, in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The greatest.
    pub greatest: u32,
    /// Their sum.
    pub sum: u128,
}

/// Identifiers of traces that were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptIds {
    /// How many.
    pub count: u64,
    /// By sampler.
    pub numbers: [Numbers; SAMPLERS.len()],
}

impl KeptIds {
    /// Takes in an identifier.
    pub fn add(&mut self, id: u128) {
        self.count += 1;
        for (own, sampler) in self.numbers.iter_mut().zip(&SAMPLERS) {
            let number = (sampler(id) >> 32) as u32;
            own.greatest = own.greatest.max(number);
            own.sum = own.sum.saturating_add(number.into());
        }
    }

    /// Takes in all identifiers of the other.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        for (own, other) in self.numbers.iter_mut().zip(&other.numbers) {
            own.greatest = own.greatest.max(other.greatest);
            own.sum = own.sum.saturating_add(other.sum);
        }
    }

    /// The probability with which these were kept; 1 where they fill the range, `None` where nothing can be told.
    pub fn probability(&self) -> Option<f64> {
        self.sampling().map(|own| own.probability)
    }

    /// The same, and of which sampler's numbers it is that of.
    pub fn sampling(&self) -> Option<Sampling> {
        if self.count < FEWEST {
            return None;
        }
        let all = if self.count < ENOUGH { CHANCE.powf(1.0 / self.count as f64) } else { ALL };
        // One sampler's part can look like a greater part of another's.
        let part = |(sampler, own)| Some(Sampling { sampler, probability: self.one(own)? });
        let numbers = self.in_range();
        let parts = numbers.iter().enumerate().filter_map(part).filter(|own| own.probability < all);
        let fills = || self.one(&self.numbers[0]).filter(|_| self.count >= ENOUGH);
        parts
            .min_by(|left, right| left.probability.total_cmp(&right.probability))
            .or_else(|| fills().map(|_| Sampling { sampler: 0, probability: 1.0 }))
    }

    /// The probability with which these and others together were kept, where a sampler kept these, and the others fill the rest of the range. Others that were let in by themselves lie anywhere
    /// in it. `None` where too few tell one from the other, or nothing was left out.
    pub fn completed_by(&self, others: &Self) -> Option<f64> {
        let own = self.sampling()?;
        let mut together = *self;
        together.merge(others);
        let (count, numbers) = (together.count as f64, together.in_range());
        let numbers = &numbers[own.sampler];
        let all = Self::of_numbers(numbers, count).filter(|all| own.probability < ALL * all)?;
        let mean = numbers.sum as f64 / count / 2.0_f64.powi(32) / all;
        // The mean, were the others spread over all of the range.
        let part = self.count as f64 / count;
        let by_themselves = 0.5 * (part * own.probability / all + 1.0 - part);
        (others.count >= FEWEST && mean - by_themselves > ERRORS / (12.0 * count).sqrt()).then_some(if all < ALL {
            all
        } else {
            1.0
        })
    }

    /// Whether they may be what a sampler leaves that others show, however few they are.
    pub fn agree(&self, with: Sampling) -> bool {
        let Sampling { sampler, probability } = with;
        if self.count == 0 {
            return true;
        }
        if probability >= 1.0 {
            return self.probability().is_none_or(|own| own >= 1.0);
        }
        let (own, count) = (&self.in_range()[sampler], self.count as f64);
        let part = |number: f64| number / 2.0_f64.powi(32) / probability;
        let (greatest, mean) = (part(own.greatest.into()), part(own.sum as f64 / count));
        // One beyond the range was not kept by that sampler. The probability is known to about one part in as many as there are numbers.
        greatest <= 1.0 + ERRORS / count
            && greatest.powf(count) >= CHANCE
            && (mean - 0.5).abs() <= ERRORS / (12.0 * count).sqrt()
    }

    /// Whether one of the samplers shows about this probability.
    pub fn show(&self, probability: f64) -> bool {
        let near = |part: f64| (part / probability - 1.0).abs() <= ERRORS / (self.count.max(1) as f64);
        self.count >= ENOUGH && self.in_range().iter().filter_map(|own| self.one(own)).any(near)
    }

    /// The numbers by sampler, as parts of the range that identifiers have. Jaeger's clients for Go make both halves of 63 bits, without a sampler: the numbers of those that take a half as it is
    /// fill the lower half of their range then.
    #[must_use]
    pub fn in_range(&self) -> [Numbers; SAMPLERS.len()] {
        let mut numbers = self.numbers;
        let halves = UNSIGNED.map(|sampler| &self.numbers[sampler]);
        let is_positive = halves.iter().all(|own| own.greatest <= u32::MAX / 2);
        // One sampler decides by one half of an identifier alone. Times that stand in front are not even.
        let is_half = |own: f64| (2.0 * own).powf(self.count as f64) >= CHANCE;
        if self.count >= FEWEST && is_positive && halves.iter().any(|own| self.one(own).is_some_and(is_half)) {
            for sampler in UNSIGNED {
                let Numbers { greatest, sum } = numbers[sampler];
                numbers[sampler] = Numbers { greatest: 2 * greatest, sum: sum.saturating_mul(2) };
            }
        }
        numbers
    }

    fn one(&self, own: &Numbers) -> Option<f64> {
        Self::of_numbers(own, self.count as f64)
    }

    /// The probability with which so many were kept, by one sampler's numbers.
    fn of_numbers(own: &Numbers, count: f64) -> Option<f64> {
        let greatest = f64::from(own.greatest) / 2.0_f64.powi(32);
        let probability = (greatest * (count + 1.0) / count).min(1.0);
        if probability < LEAST {
            return None;
        }
        let mean = own.sum as f64 / count / 2.0_f64.powi(32);
        let even = (mean / greatest - 0.5).abs() <= ERRORS / (12.0 * count).sqrt();
        even.then_some(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptIds, SAMPLERS};

    /// Numbers that look random.
    fn ids() -> impl Iterator<Item = u128> {
        let mut state = 7_u64;
        let mut next = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        std::iter::repeat_with(move || (u128::from(next()) << 64) | u128::from(next()))
    }

    fn probability(ids: impl Iterator<Item = u128>) -> Option<f64> {
        let mut kept = KeptIds::default();
        ids.for_each(|id| kept.add(id));
        kept.probability()
    }

    #[test]
    fn each_sampler_shows() {
        for (place, sampler) in SAMPLERS.iter().enumerate() {
            for part in [0.01, 0.3, 0.7] {
                let kept = ids().filter(|id| sampler(*id) as f64 / 2.0_f64.powi(64) < part);
                let found = probability(kept.take(1000)).expect("there are enough");
                assert!((found / part - 1.0).abs() < 0.01, "{place}: {found} for {part}");
            }
        }
    }

    /// The older sampler of OpenTelemetry for Go takes the first 63 bits: it keeps no negative numbers below one half. .NET's keeps as many of them.
    #[test]
    fn a_half_of_the_range_tells_samplers_apart() {
        let first = |id: u128| (id >> 64) as u64;
        for part in [0.1, 0.3, 0.6] {
            let go = ids().filter(|id| first(*id) as f64 / 2.0_f64.powi(64) < part);
            let net = ids().filter(|id| (first(*id) as i64).unsigned_abs() as f64 / 2.0_f64.powi(63) < part);
            for found in [probability(go.take(625)), probability(net.take(625))] {
                assert!((found.expect("there are enough") / part - 1.0).abs() < 0.01, "{found:?} for {part}");
            }
        }
    }

    /// Both halves of identifiers of Jaeger's clients for Go are positive numbers. That is no sampler's work.
    #[test]
    fn halves_of_63_bits_are_no_samples() {
        let positive = || ids().map(|id| id & !(1 << 63 | 1 << 127));
        assert_eq!(probability(positive().take(1000)), Some(1.0));
        assert_eq!(probability(positive().take(40)), None);
        let found = probability(positive().filter(|id| (*id as u64) < (1 << 63) / 10 * 3).take(1000));
        assert!((found.expect("there are enough") / 0.3 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_few_that_lie_low_were_sampled() {
        let found = probability(ids().filter(|id| (*id as u64) << 1 < u64::MAX / 10).take(13));
        assert!((0.05..0.13).contains(&found.expect("chance does not bring thirteen so low")), "{found:?}");
        for first in 0..2000 {
            let few = probability(ids().skip(50 * first).take(10 + first % 40));
            assert_eq!(few, None, "{first}");
        }
    }

    #[test]
    fn what_a_sampler_left_out_completes_what_it_kept() {
        let kept = |which: &dyn Fn(u64) -> bool, count: usize| {
            let mut kept = KeptIds::default();
            ids().filter(|id| which((*id as u64) << 1)).take(count).for_each(|id| kept.add(id));
            kept
        };
        let one = u64::MAX as f64;
        for (part, count) in [(0.1, 3000.0), (0.3, 1500.0), (0.7, 1000.0), (0.9, 3000.0)] {
            let low = kept(&|number| (number as f64) < part * one, (count * part) as usize);
            let rest = kept(&|number| (number as f64) >= part * one, (count * (1.0 - part)) as usize);
            let all = low.completed_by(&rest).unwrap_or_else(|| panic!("{part}: they are all"));
            assert!(all > 0.99, "{part}: {all}");
            // As many of others lie anywhere.
            let others = kept(&|_| true, (count * (1.0 - part)) as usize);
            assert_eq!(low.completed_by(&others), None, "{part}");
        }
        let all = kept(&|_| true, 1000);
        assert_eq!(all.completed_by(&all), None);
    }

    #[test]
    fn what_was_not_sampled_is_not_taken_for_it() {
        assert_eq!(probability(ids().take(1000)), Some(1.0));
        // Of 63 bits, of 64 bits, and counted ones.
        assert_eq!(probability(ids().map(|id| id >> 65).take(1000)), Some(1.0));
        assert_eq!(probability(ids().map(|id| id >> 64).take(1000)), Some(1.0));
        assert_eq!(probability(1..1000), None);
        // A time in front.
        assert_eq!(probability(ids().zip(0..1000).map(|(id, at)| (id >> 32) | ((0x6500_0000 + at) << 96))), Some(1.0));
        assert_eq!(probability(ids().take(20)), None);
    }
}
