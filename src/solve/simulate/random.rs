//! Random numbers and the distributions of the simulator.
//!
//! All is made of additions, multiplications, divisions and square roots, which give the same bits on every machine. The
//! logarithm of the standard library does not, so there is one here.

/// The xoshiro256++ generator (Blackman and Vigna, 2021), seeded through splitmix64 as its authors advise.
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 4]);

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

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -logarithm(((self.next() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0))
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
pub(super) enum Times {
    /// None at all.
    Zero,
    /// Always the mean.
    Constant(f64),
    /// Exponential of that mean.
    Exponential(f64),
    /// Gamma, less variable than exponential.
    Gamma { shape: f64, scale: f64 },
    /// Two exponentials of balanced means, more variable than one.
    Hyper { first: f64, means: [f64; 2] },
}

impl Times {
    /// Of that mean and squared coefficient of variation.
    pub fn new(mean: f64, cv2: f64) -> Self {
        if mean <= 0.0 {
            Self::Zero
        } else if cv2 <= 1e-6 {
            Self::Constant(mean)
        } else if (cv2 - 1.0).abs() < 1e-9 {
            Self::Exponential(mean)
        } else if cv2 < 1.0 {
            Self::Gamma { shape: 1.0 / cv2, scale: mean * cv2 }
        } else {
            let first = 0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
            // Of a variation beyond all measure the rare exponential never comes.
            let second = (1.0 - first).max(f64::EPSILON);
            Self::Hyper { first, means: [mean / (2.0 * first), mean / (2.0 * second)] }
        }
    }

    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Zero => 0.0,
            Self::Exponential(mean) => mean * random.exponential(),
            Self::Constant(mean) => mean,
            Self::Gamma { shape, scale } => scale * random.gamma(shape),
            Self::Hyper { first, means } => {
                let which = usize::from(random.uniform() >= first);
                means[which] * random.exponential()
            }
        }
    }
}

/// The natural logarithm of a positive normal number, to the last bit or two: the method of fdlibm.
#[inline]
pub(super) fn logarithm(value: f64) -> f64 {
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
    use super::{Random, Times, logarithm};

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
    fn distributions_have_their_moments() {
        for cv2 in [0.0, 0.1, 0.5, 1.0, 1.5, 4.0, 20.0] {
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
