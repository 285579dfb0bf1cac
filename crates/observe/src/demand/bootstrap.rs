//! How far estimates may be off: blocks of intervals are drawn again and again, since neighbours are alike (Künsch, 1989).

use dyelog_lqn::sketch::NORMAL;
use dyelog_solve::Random;

use crate::demand::{Method, Sample, Summary, means};

/// How often blocks are drawn.
const DRAWS: u64 = 200;
/// Most blocks, and the fewest that tell anything.
const BLOCKS: usize = 128;
const FEWEST: usize = 6;
/// Intervals of a block at least.
const LENGTH: usize = 3;

/// Half the width of the 95 % interval of each method's demands; `None` where there are too few intervals.
pub(super) fn half_widths(
    operations: usize,
    samples: &[&Sample],
    methods: &[Method],
    together: &[Vec<usize>],
    seed: u64,
) -> Option<Vec<Vec<f64>>> {
    let count = (samples.len() / LENGTH).min(BLOCKS);
    if count < FEWEST {
        return None;
    }
    let block = |number: usize| &samples[number * samples.len() / count..(number + 1) * samples.len() / count];
    let blocks: Vec<Summary> =
        (0..count).map(|number| Summary::of(operations, block(number).iter().copied())).collect();
    let mut sums = vec![vec![(0.0, 0.0); operations]; methods.len()];
    for draw in 0..DRAWS {
        let mut random = Random::new(seed, draw);
        let mut drawn = Summary::new(operations);
        for _ in 0..count {
            drawn.merge(&blocks[random.below(count)]);
        }
        for (method, sums) in methods.iter().zip(&mut sums) {
            for (sum, mean) in sums.iter_mut().zip(means(&drawn, *method, together)) {
                *sum = (sum.0 + mean, sum.1 + mean * mean);
            }
        }
    }
    let draws = DRAWS as f64;
    // A sample of so few blocks varies by less than they do.
    let few = (count as f64 / (count - 1) as f64).sqrt();
    let width = |(sum, squares): &(f64, f64)| {
        let mean = sum / draws;
        NORMAL * few * (squares / draws - mean * mean).max(0.0).sqrt()
    };
    Some(sums.iter().map(|sums| sums.iter().map(width).collect()).collect())
}
