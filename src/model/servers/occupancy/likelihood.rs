//! How likely lengths of stays are with a number of servers and an order of service.

use super::{BATCH, Occupancy, Seen};

/// No more bins of one width than so many of them, and so many are in the median of lengths at most.
const LINEAR: usize = 512;
const IN_MEDIAN: f64 = 64.0;

/// So many medians have bins of one width; what is beyond has quarters of octaves.
const MEDIANS: f64 = 8.0;
const QUARTERS: usize = 4 * 31;

/// The bin of stays that cannot have ended when they did.
const OUT: u16 = u16::MAX;

/// The density of such a stay, relative to the mean length (ours): one of so many.
const IMPOSSIBLE: f64 = 0.001;

/// What is served in less time is nothing, nanoseconds.
const NOTHING: f64 = 1.0;

/// Multiples of the golden ratio fill an interval evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// What differs from a host where nobody waits by no more than so many standard errors differs by chance (ours).
const BY_CHANCE: f64 = 1.0;

/// No more stays than so many count for how likely their lengths are (ours): real hosts serve nearly, not quite, in an order that has a name.
pub const INDEPENDENT: f64 = 1000.0;

impl Occupancy {
    /// The logarithm of how likely lengths of stays are, per stay, relative to a host where nobody waits; nearer to that by what may be chance.
    ///
    /// With the right servers and order, what stays had are independent times of service of one distribution. So the density of a stay's length is that of its service, times the
    /// rate at which service grew with the stay when it ended: the part of a server that it had (change of variables). The distribution is the histogram of what stays of its kind
    /// had: a plug-in estimate of the differential entropy (Beirlant, Dudewicz, Györfi and van der Meulen, 1997). A rate of 0 is that of a stay which cannot
    /// have ended so. The error follows from batches of stays that come one after the other (Vuong, Econometrica 57, 1989, with batch means).
    pub(super) fn likelihood(&self, scale: &Scale, had: &[f64], rates: &[f64]) -> f64 {
        let (likelihood, error) = self.likelihood_with_error(scale, had, rates);
        (likelihood.abs() - BY_CHANCE * error).max(0.0).copysign(likelihood)
    }

    /// The same as it is, with its standard error.
    pub(super) fn likelihood_with_error(&self, scale: &Scale, had: &[f64], rates: &[f64]) -> (f64, f64) {
        let (mut sum, mut squares, mut count) = (0.0_f64, 0.0_f64, 0_usize);
        let (mut batch, mut in_batch) = (0.0_f64, 0_usize);
        for own in self.likelihoods(scale, had, rates, |_| self.mean_length).into_iter().flatten() {
            (batch, in_batch, count) = (batch + own, in_batch + 1, count + 1);
            if in_batch == BATCH {
                (sum, squares) = (sum + batch, squares + batch * batch);
                (batch, in_batch) = (0.0, 0);
            }
        }
        let count = count.max(1) as f64;
        ((sum + batch) / count, squares.sqrt() / count)
    }

    /// The same of each recorded stay; `None` of one whose kind tells nothing. One that cannot have ended when it did is unlikely relative to a usual length, nanoseconds.
    pub(super) fn likelihoods(
        &self,
        scale: &Scale,
        had: &[f64],
        rates: &[f64],
        usual: impl Fn(&Seen) -> f64,
    ) -> Vec<Option<f64>> {
        let (bins, densities) = self.densities(scale, had, rates);
        let of = |(place, (stay, rate)): (usize, (&Seen, f64))| {
            if !self.telling[stay.kind] || self.is_blurred[stay.kind] {
                return None;
            }
            let rate = if rate > 0.0 && rate < 1.0 { rate.ln() } else { 0.0 };
            let density = match bins[place] {
                OUT => (IMPOSSIBLE / usual(stay)).ln(),
                bin => densities[stay.kind][usize::from(bin)],
            };
            Some(density + rate - scale.alone[place])
        };
        self.recorded(rates.iter().copied()).enumerate().map(of).collect()
    }

    /// The scale of bins by ratio.
    pub(super) fn scale_by_ratio(&self) -> Scale {
        self.scale(Bins::by_ratio)
    }

    /// The scale of bins by difference, which is made once it is asked for.
    pub(super) fn scale_by_difference(&self) -> &Scale {
        self.by_difference.get_or_init(|| self.scale(Bins::by_difference))
    }

    fn scale(&self, bins: fn(&mut [u64], f64) -> Bins) -> Scale {
        let mut lengths: Vec<Vec<u64>> = vec![Vec::new(); self.grains.len()];
        self.recorded(std::iter::repeat(())).for_each(|(stay, ())| lengths[stay.kind].push(stay.length()));
        let bins = lengths.iter_mut().zip(&self.grains).map(|(lengths, grain)| bins(lengths, *grain)).collect();
        let mut scale = Scale { bins, alone: Vec::new() };
        let lengths: Vec<f64> = self.seen.iter().map(|stay| stay.length() as f64).collect();
        let (bins, densities) = self.densities(&scale, &lengths, &vec![1.0; lengths.len()]);
        let recorded = self.recorded(std::iter::repeat(()));
        scale.alone = recorded.zip(bins).map(|((stay, ()), bin)| self.density(&densities, stay.kind, bin)).collect();
        scale
    }

    /// The same scale for the same stays without so many nanoseconds of each. Their likelihood is relative to their whole lengths.
    pub(super) fn scale_without(&self, scale: &Scale, elsewhere: u64) -> Scale {
        let all = self.recorded(std::iter::repeat(())).zip(&scale.alone);
        let left = all.filter(|((stay, ()), _)| stay.length() > elsewhere);
        Scale { bins: scale.bins.clone(), alone: left.map(|(_, alone)| *alone).collect() }
    }

    /// The bin of what each recorded stay had, and by kind and bin the logarithm of the density.
    fn densities(&self, scale: &Scale, had: &[f64], rates: &[f64]) -> (Vec<u16>, Vec<Vec<f64>>) {
        let mut counts = vec![Vec::new(); scale.bins.len()];
        let mut all = vec![0.0_f64; scale.bins.len()];
        let mut bins = Vec::with_capacity(self.dated);
        let mut blur = 0.0_f64;
        for (stay, (had, rate)) in self.recorded(had.iter().zip(rates)) {
            let of_kind = &scale.bins[stay.kind];
            all[stay.kind] += 1.0;
            // Clocks that step make lengths look alike: they are blurred by a step.
            blur = (blur + GOLDEN).fract();
            // Nothing is served in no time.
            if *rate <= 0.0 || *had < NOTHING {
                bins.push(OUT);
                continue;
            }
            let bin = of_kind.of(had + self.grains[stay.kind] * (blur - 0.5));
            bins.push(bin as u16);
            let counts: &mut Vec<u32> = &mut counts[stay.kind];
            if counts.len() <= bin {
                counts.resize(bin + 1, 0);
            }
            counts[bin] += 1;
        }
        let of_kind = |((counts, of_kind), all): ((&Vec<u32>, &Bins), &f64)| {
            let of_bin = |(bin, own): (usize, &u32)| match f64::from(*own) {
                0.0 => 0.0,
                // The histogram fits those that it is made of: half a count less for each bin (Miller and Madow).
                own => (own / (all * of_kind.width(bin))).ln() - 0.5 / own,
            };
            counts.iter().enumerate().map(of_bin).collect()
        };
        (bins, counts.iter().zip(&scale.bins).zip(&all).map(of_kind).collect())
    }

    /// The logarithm of the density of a recorded stay.
    fn density(&self, densities: &[Vec<f64>], kind: usize, bin: u16) -> f64 {
        if bin == OUT { (IMPOSSIBLE / self.mean_length).ln() } else { densities[kind][usize::from(bin)] }
    }
}

/// Bins of what stays had, and what they make of lengths.
#[derive(Debug, Default)]
pub(super) struct Scale {
    /// By kind.
    bins: Vec<Bins>,
    /// By recorded stay, the logarithm of the density of its length where nobody waits.
    alone: Vec<f64>,
}

/// Bins of what stays of a kind had: some of one width, then quarters of octaves.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    /// The width of the first, nanoseconds.
    width: f64,
    /// How many are as wide.
    linear: usize,
}

impl Bins {
    /// Quarters of octaves, for stays of these lengths by a clock of that step. All stays of half the time are as likely: numbers of servers are compared so.
    fn by_ratio(lengths: &mut [u64], grain: f64) -> Self {
        Self { width: least_width(quartile(lengths, 2), grain), linear: 1 }
    }

    /// Bins of one width, as wide as Freedman and Diaconis (1981) have it by the quartiles. All stays without a time that is the same for all are as likely.
    fn by_difference(lengths: &mut [u64], grain: f64) -> Self {
        let [first, median, third] = [1, 2, 3].map(|number| quartile(lengths, number));
        let width = least_width(median, grain).max(2.0 * (third - first) / (lengths.len().max(1) as f64).cbrt());
        Self { width, linear: ((MEDIANS * median / width).ceil() as usize).clamp(1, LINEAR) }
    }

    /// The bin of a time.
    fn of(&self, time: f64) -> usize {
        let linear = self.linear as f64;
        let time = time / self.width;
        if time < linear {
            return time.max(0.0) as usize;
        }
        // The exponent and the first two bits of the mantissa.
        let quarters = ((time / linear).to_bits() >> 50) as usize - (1023 << 2);
        self.linear + quarters.min(QUARTERS - 1)
    }

    /// How wide a bin is, nanoseconds.
    fn width(&self, bin: usize) -> f64 {
        let beyond = |quarters: usize| self.linear as f64 * ((quarters / 4) as f64).exp2() / 4.0;
        self.width * bin.checked_sub(self.linear).map_or(1.0, beyond)
    }
}

/// A quartile of lengths; 0 where there are none.
fn quartile(lengths: &mut [u64], number: usize) -> f64 {
    match lengths.len().checked_sub(1) {
        Some(last) => *lengths.select_nth_unstable(number * last / 4).1 as f64,
        None => 0.0,
    }
}

/// Bins are no narrower, nanoseconds.
fn least_width(median: f64, grain: f64) -> f64 {
    (median / IN_MEDIAN).max(grain).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Bins, LINEAR, OUT, QUARTERS};

    #[test]
    fn bins_lie_side_by_side() {
        let bins = Bins { width: 2.0, linear: 32 };
        assert_eq!([-5.0, 1.9, 2.0, 63.9, 64.0, 1e30].map(|time| bins.of(time)), [0, 0, 1, 31, 32, 31 + QUARTERS]);
        assert!(LINEAR + QUARTERS < usize::from(OUT));
        let mut end = 0.0;
        for number in 0..32 + QUARTERS {
            assert_eq!(bins.of(end), number);
            end += bins.width(number);
        }
    }

    #[test]
    fn bins_are_as_wide_as_quartiles_and_clocks_have_it() {
        let of = |lengths: &[u64], grain: f64| {
            let mut lengths = lengths.to_vec();
            let (ratio, bins) = (Bins::by_ratio(&mut lengths, grain), Bins::by_difference(&mut lengths, grain));
            assert_eq!(ratio.linear, 1);
            (ratio.width, bins.width, bins.linear)
        };
        // Quartiles of 2000 and 6000, and eight stays.
        assert_eq!(of(&[1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000], 0.0), (62.5, 4000.0, 8));
        assert_eq!(of(&[6400; 8], 0.0), (100.0, 100.0, 512));
        assert_eq!(of(&[6400; 8], 1000.0), (1000.0, 1000.0, 52));
        assert_eq!(of(&[], 0.0), (1.0, 1.0, 1));
    }
}
