//! What happens at moments, in the order of time.

/// The places of moments, nanoseconds, in the order of time; at one moment the first place first.
pub fn order_of(moments: impl ExactSizeIterator<Item = i64>) -> Vec<usize> {
    // Numbers of one word each are compared in less time than what they are of.
    let key = |(place, moment): (usize, i64)| (u128::from(rising(moment)) << 64) | place as u128;
    let mut keys: Vec<u128> = moments.enumerate().map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| key as u64 as usize).collect()
}

/// A number that grows with a time.
pub fn rising(moment: i64) -> u64 {
    moment.cast_unsigned() ^ (1 << 63)
}

/// All of these in the order of their moments; those of one moment in the order of a key.
pub fn in_order<T: Clone, K: Ord>(all: &[T], moment: impl Fn(&T) -> i64, key: impl Fn(&T) -> K) -> Vec<T> {
    let places = order_of(all.iter().map(&moment));
    let mut sorted: Vec<T> = places.into_iter().map(|place| all[place].clone()).collect();
    for together in sorted.chunk_by_mut(|left, right| moment(left) == moment(right)) {
        if together.len() > 1 {
            together.sort_by_key(&key);
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{in_order, order_of};

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(all in prop::collection::vec((prop_oneof![-3..3_i64, any::<i64>()], 0..3_u8), 0..60)) {
            let numbered: Vec<(usize, (i64, u8))> = all.into_iter().enumerate().collect();
            let mut expected = numbered.clone();
            expected.sort_by_key(|(_, own)| *own);
            prop_assert_eq!(in_order(&numbered, |(_, own)| own.0, |(_, own)| own.1), expected);
            let mut expected = numbered.clone();
            expected.sort_by_key(|(_, own)| own.0);
            let found = order_of(numbered.iter().map(|(_, own)| own.0));
            prop_assert_eq!(found, expected.into_iter().map(|(place, _)| place).collect::<Vec<_>>());
        }
    }
}
