//! Integrals from 0 to infinity of functions that fall, by Gauss and Legendre's rule with 16 nodes.

/// Positive nodes on [−1, 1] and their weights.
const NODES: [(f64, f64); 8] = [
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
];
/// More parts than these are not integrated by themselves.
const MOST_PARTS: usize = 24;

/// The integrals of both functions over [0, ∞), in parts that end at the given places. Beyond the last place, the scale is that of
/// the functions' tail.
pub(crate) fn to_infinity(mut places: Vec<f64>, scale: f64, mut of: impl FnMut(f64) -> [f64; 2]) -> [f64; 2] {
    places.retain(|place| *place > 0.0 && place.is_finite());
    places.sort_by(f64::total_cmp);
    places.dedup();
    if places.len() > MOST_PARTS {
        let all = std::mem::take(&mut places);
        places.extend((0..MOST_PARTS).map(|part| all[(part + 1) * (all.len() - 1) / MOST_PARTS]));
    }
    let mut sums = [0.0; 2];
    let mut add = |weight: f64, values: [f64; 2]| {
        sums[0] += weight * values[0];
        sums[1] += weight * values[1];
    };
    let mut from = 0.0;
    for &to in &places {
        for half in [[from, f64::midpoint(from, to)], [f64::midpoint(from, to), to]] {
            nodes(half, |at, weight| add(weight, of(at)));
        }
        from = to;
    }
    // The rest as a function of u in [0, 1), by t = from + scale u / (1 − u).
    for part in 0..4 {
        nodes([f64::from(part) / 4.0, f64::from(part + 1) / 4.0], |u, weight| {
            let rest = 1.0 - u;
            add(weight * scale / (rest * rest), of(from + scale * u / rest));
        });
    }
    sums
}

/// Places and weights in an interval.
fn nodes([from, to]: [f64; 2], mut at: impl FnMut(f64, f64)) {
    let (middle, half) = (f64::midpoint(from, to), 0.5 * (to - from));
    for (node, weight) in NODES {
        at(middle - half * node, half * weight);
        at(middle + half * node, half * weight);
    }
}

#[cfg(test)]
mod tests {
    use super::to_infinity;

    #[test]
    fn exponentials_and_steps_are_integrated() {
        let [first, second] = to_infinity(vec![2.0], 1.0, |at| [(-at).exp(), f64::from(u8::from(at < 2.0)) * at]);
        assert!((first - 1.0).abs() < 1e-9, "{first}");
        assert!((second - 2.0).abs() < 1e-12, "{second}");
    }
}
