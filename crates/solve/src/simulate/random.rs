//! Random numbers and the distributions of the simulator.
//!
//! All is made of additions, multiplications, divisions and square roots, which give the same bits on every machine. The
//! logarithm of the standard library does not, so there is one here.

use crate::numeric::two_moment::Distribution;

/// Layers of the ziggurat: each has the same area, from one density to the next.
const LAYERS: usize = 256;
/// Where the lowest layer becomes the tail, and the area of each layer.
const LAST_END: f64 = 7.697_117_470_131_05;
const AREA: f64 = 3.949_659_822_581_557e-3;

/// Layers under the density of the exponential distribution, the lowest first.
struct Ziggurat {
    /// How far each layer reaches; the lowest as far as it would without a tail. The next one's is where it is surely inside.
    ends: [f64; LAYERS + 1],
    /// The density at the bottom of each layer.
    densities: [f64; LAYERS + 1],
}

static ZIGGURAT: Ziggurat = {
    let (mut ends, mut densities) = ([0.0; LAYERS + 1], [1.0; LAYERS + 1]);
    // Layer and tail together have the area, and the tail has that of the density where it begins.
    ends[0] = LAST_END + 1.0;
    densities[0] = 0.0;
    ends[1] = LAST_END;
    densities[1] = AREA / ends[0];
    let mut layer = 2;
    while layer < LAYERS {
        densities[layer] = densities[layer - 1] + AREA / ends[layer - 1];
        ends[layer] = -logarithm(densities[layer]);
        layer += 1;
    }
    Ziggurat { ends, densities }
};

/// The xoshiro256++ generator (Blackman and Vigna, 2021), seeded through splitmix64 as its authors advise.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of that number of that seed. Streams are independent for all practical purposes.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self([next(), next(), next(), next()])
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform from 0 up to but not including 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform below a number that is not zero, to within 2^-32 of it.
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// Exponential with mean 1, never 0, by the ziggurat method (Marsaglia and Tsang, 2000).
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        loop {
            let bits = self.next();
            let layer = bits as usize % LAYERS;
            let time = ((bits >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0) * ZIGGURAT.ends[layer];
            // 99 of 100 are inside.
            if time < ZIGGURAT.ends[layer + 1] {
                return time;
            }
            if let Some(time) = self.outside(layer, time) {
                return time;
            }
        }
    }

    /// Where a layer of the ziggurat is beyond all of the next one: the time, if it is below the density.
    #[cold]
    fn outside(&mut self, layer: usize, time: f64) -> Option<f64> {
        if layer == 0 {
            // The tail is the whole distribution over again.
            return Some(LAST_END + self.exponential());
        }
        let [low, high] = [ZIGGURAT.densities[layer], ZIGGURAT.densities[layer + 1]];
        let density = low + self.uniform() * (high - low);
        (logarithm(density) < -time).then_some(time)
    }

    /// Standard normal, by the polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * logarithm(square) / square).sqrt();
            }
        }
    }

    /// Gamma with a shape of 1 or more and scale 1 (Marsaglia and Tsang, 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            let u = 1.0 - self.uniform();
            if logarithm(u) < 0.5 * x * x + d - d * v + d * logarithm(v) {
                return d * v;
            }
        }
    }
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    /// None at all.
    Zero,
    /// Always the mean.
    Constant(f64),
    /// Exponential of that mean.
    Exponential(f64),
    /// A constant, and then exponential stages of that scale, of which there is one fewer with some probability.
    Stages { constant: f64, scale: f64, count: f64, fewer: f64 },
    /// Two exponentials of balanced means, more variable than one.
    Hyper { first: f64, means: [f64; 2] },
}

impl Times {
    /// Of that mean and squared coefficient of variation.
    pub fn new(mean: f64, cv2: f64) -> Self {
        match Distribution::new(mean, cv2) {
            Distribution::Constant(mean) if mean <= 0.0 => Self::Zero,
            Distribution::Constant(mean) => Self::Constant(mean),
            Distribution::Stages { count: 1, .. } => Self::Exponential(mean),
            Distribution::Stages { constant, rate, count, fewer } => {
                Self::Stages { constant, scale: 1.0 / rate, count: count as f64, fewer }
            }
            Distribution::Mixture([(first, fast), (_, slow)]) => Self::Hyper { first, means: [fast, slow] },
        }
    }

    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Zero => 0.0,
            Self::Exponential(mean) => mean * random.exponential(),
            Self::Constant(mean) => mean,
            Self::Stages { constant, scale, count, fewer } => {
                let stages = if fewer > 0.0 && random.uniform() < fewer { count - 1.0 } else { count };
                constant + scale * if stages > 1.0 { random.gamma(stages) } else { random.exponential() }
            }
            Self::Hyper { first, means } => {
                let which = usize::from(random.uniform() >= first);
                means[which] * random.exponential()
            }
        }
    }
}

/// The natural logarithm of a positive normal number, to the last bit or two: the method of fdlibm.
#[inline]
pub(crate) const fn logarithm(value: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = value.to_bits();
    // The mantissa is brought between sqrt(1/2) and sqrt(2).
    let shifted = bits.wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_0000_0000);
    let exponent = (shifted >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_0000_0000);
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1 + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half = 0.5 * f * f;
    let k = exponent as f64;
    s * (half + even + odd) + k * LN2_LOW - half + f + k * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::{AREA, LAST_END, LAYERS, Random, Times, ZIGGURAT, logarithm};

    #[test]
    fn the_logarithm_is_that_of_the_standard_library() {
        let mut random = Random::new(1, 0);
        for _ in 0..100_000 {
            let value = random.exponential() * 10_f64.powi((random.below(600) as i32) - 300);
            if value >= f64::MIN_POSITIVE {
                let expected = value.ln();
                assert!((logarithm(value) - expected).abs() <= 4.0 * f64::EPSILON * expected.abs(), "{value:e}");
            }
        }
        assert_eq!(logarithm(1.0), 0.0);
    }

    #[test]
    fn the_generator_is_the_one_of_its_authors() {
        // The first outputs from the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        let outputs = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(outputs.map(|_| random.next()), outputs);
    }

    #[test]
    fn the_ziggurat_ends_in_a_point() {
        let top = ZIGGURAT.densities[LAYERS - 1] + AREA / ZIGGURAT.ends[LAYERS - 1];
        assert!((top - 1.0).abs() < 1e-12, "{top}");
        assert!(ZIGGURAT.ends.windows(2).all(|ends| ends[0] > ends[1]));
        assert_eq!(ZIGGURAT.ends[LAYERS], 0.0);
    }

    #[test]
    fn exponential_times_have_their_distribution() {
        // Counts between quantiles, of the body, of each end and of the tail, against what is expected: χ² with 99 degrees of freedom.
        let mut random = Random::new(11, 2);
        let (count, cells) = (2_000_000, 100);
        let mut found = vec![0_u32; cells];
        let mut tail = 0;
        for _ in 0..count {
            let time = random.exponential();
            assert!(time > 0.0);
            found[((1.0 - (-time).exp()) * cells as f64) as usize % cells] += 1;
            tail += u32::from(time > LAST_END);
        }
        let expected = f64::from(count) / cells as f64;
        let square: f64 = found.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        assert!((54.0..160.0).contains(&square), "{square}");
        let expected = f64::from(count) * (-LAST_END).exp();
        assert!((f64::from(tail) - expected).abs() < 4.0 * expected.sqrt(), "{tail} for {expected}");
    }

    #[test]
    fn distributions_have_their_moments() {
        for cv2 in [0.0, 0.03, 0.1, 0.15, 0.5, 0.8, 1.0, 1.5, 4.0, 20.0] {
            let (times, mut random) = (Times::new(3.0, cv2), Random::new(7, 3));
            let count = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..count {
                let value = times.sample(&mut random);
                assert!(value > 0.0);
                sum += value;
                squares += value * value;
            }
            let mean = sum / f64::from(count);
            let found = squares / f64::from(count) / (mean * mean) - 1.0;
            assert!((mean - 3.0).abs() < 0.02 * (1.0 + cv2.sqrt()), "mean {mean} at {cv2}");
            assert!((found - cv2).abs() < 0.05 * (1.0 + cv2), "variation {found} at {cv2}");
        }
    }
}
