//! How likely lengths of stays are with a number of servers and an order of service.

use super::{BATCH, Occupancy};

/// Bins of what stays had: quarters of octaves from a nanosecond on, with one for all that is shorter.
const BINS: usize = 4 * 60;

/// The bin of stays that cannot have ended when they did.
const OUT: usize = BINS + 1;

/// The density of such a stay, relative to the mean length (ours): one of so many.
const IMPOSSIBLE: f64 = 0.001;

/// Multiples of the golden ratio fill an interval evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// What differs from a host where nobody waits by no more than so many standard errors differs by chance (ours).
const BY_CHANCE: f64 = 1.0;

impl Occupancy {
    /// The logarithm of how likely lengths of stays are, per stay, relative to a host where nobody waits; nearer to that by what may be chance.
    ///
    /// With the right servers and order, what stays had are independent times of service of one distribution. So the density of a stay's length is that of its service, times the
    /// rate at which service grew with the stay when it ended: the part of a server that it had (change of variables). The distribution is the histogram of what stays of its kind
    /// had, in quarters of octaves: a plug-in estimate of the differential entropy (Beirlant, Dudewicz, Györfi and van der Meulen, 1997). A rate of 0 is that of a stay which cannot
    /// have ended so. The error follows from batches of stays that come one after the other (Vuong, Econometrica 57, 1989, with batch means).
    pub(super) fn likelihood(&self, had: &[f64], rates: &[f64]) -> f64 {
        let (likelihood, error) = self.likelihood_with_error(had, rates);
        (likelihood.abs() - BY_CHANCE * error).max(0.0).copysign(likelihood)
    }

    /// The same as it is, with its standard error.
    pub(super) fn likelihood_with_error(&self, had: &[f64], rates: &[f64]) -> (f64, f64) {
        let (bins, densities) = self.densities(had, rates);
        let (mut sum, mut squares, mut count) = (0.0_f64, 0.0_f64, 0_usize);
        let (mut batch, mut in_batch) = (0.0_f64, 0_usize);
        for (place, (stay, rate)) in self.recorded(rates.iter().copied()).enumerate() {
            if !self.telling[stay.kind] {
                continue;
            }
            let rate = if rate > 0.0 && rate < 1.0 { rate.ln() } else { 0.0 };
            let own = densities[stay.kind][usize::from(bins[place])] + rate - self.alone[place];
            (batch, in_batch, count) = (batch + own, in_batch + 1, count + 1);
            if in_batch == BATCH {
                (sum, squares) = (sum + batch, squares + batch * batch);
                (batch, in_batch) = (0.0, 0);
            }
        }
        let count = count.max(1) as f64;
        ((sum + batch) / count, squares.sqrt() / count)
    }

    /// The logarithm of the density of the length of each recorded stay where nobody waits.
    pub(super) fn densities_alone(&self) -> Vec<f64> {
        let lengths: Vec<f64> = self.seen.iter().map(|stay| stay.length() as f64).collect();
        let (bins, densities) = self.densities(&lengths, &vec![1.0; lengths.len()]);
        let recorded = self.recorded(std::iter::repeat(()));
        recorded.zip(bins).map(|((stay, ()), bin)| densities[stay.kind][usize::from(bin)]).collect()
    }

    /// The bin of what each recorded stay had, and by kind and bin the logarithm of the density.
    fn densities(&self, had: &[f64], rates: &[f64]) -> (Vec<u8>, Vec<Vec<f64>>) {
        let mut counts = vec![Vec::new(); self.grains.len()];
        let mut bins = Vec::with_capacity(self.dated);
        let mut blur = 0.0_f64;
        for (stay, (had, rate)) in self.recorded(had.iter().zip(rates)) {
            let grain = self.grains[stay.kind];
            // Clocks that step make lengths look alike: they are blurred by a step.
            blur = (blur + GOLDEN).fract();
            let bin = if *rate > 0.0 { bin(had + grain * (blur - 0.5), grain) } else { OUT };
            bins.push(bin as u8);
            let counts: &mut Vec<u32> = &mut counts[stay.kind];
            if counts.is_empty() {
                counts.resize(BINS + 2, 0);
            }
            counts[bin] += 1;
        }
        let of_kind = |(counts, grain): (&Vec<u32>, &f64)| {
            let all: f64 = counts.iter().map(|count| f64::from(*count)).sum();
            let of_bin = |(bin, own): (usize, &u32)| match (bin, *own) {
                (_, 0) => 0.0,
                (OUT, _) => (IMPOSSIBLE / self.mean_length).ln(),
                (_, own) => (f64::from(own) / (all * width(bin, *grain))).ln(),
            };
            counts.iter().enumerate().map(of_bin).collect()
        };
        (bins, counts.iter().zip(&self.grains).map(of_kind).collect())
    }
}

/// The bin of a time: by the exponent and the first two bits of the mantissa.
fn bin(time: f64, grain: f64) -> usize {
    if time < grain.max(1.0) {
        return 0;
    }
    let quarters = (time.to_bits() >> 50) as usize - (1023 << 2);
    quarters.min(BINS - 1) + 1
}

/// How wide a bin is, nanoseconds.
fn width(bin: usize, grain: f64) -> f64 {
    match bin.checked_sub(1) {
        None => grain.max(1.0),
        Some(quarters) => ((quarters / 4) as f64).exp2() / 4.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{BINS, OUT, bin, width};

    #[test]
    fn bins_are_quarters_of_octaves() {
        assert_eq!((bin(0.0, 0.0), bin(-5.0, 0.0), bin(999.0, 1000.0)), (0, 0, 0));
        assert_eq!((bin(1.0, 0.0), bin(1.25, 0.0), bin(1.9, 0.0), bin(2.0, 0.0)), (1, 2, 4, 5));
        assert_eq!(bin(1e30, 0.0), BINS);
        assert!(OUT <= usize::from(u8::MAX));
        // Bins lie side by side.
        let mut end = 1.0;
        for number in 1..=BINS {
            assert_eq!(bin(end, 0.0), number);
            end += width(number, 0.0);
        }
    }
}
