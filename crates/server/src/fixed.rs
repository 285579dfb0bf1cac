//! A table of a fixed size.
//!
//! A table that grows has the old one and the new one in memory at a time. The one of the standard library does so where as many come as go, too: it counts the places of
//! those that went as taken.

use std::hash::{BuildHasher as _, RandomState};

/// What is looked up.
pub trait Key: Copy + Eq {
    /// What a place without a key holds.
    const FREE: Self;

    /// Its bits.
    fn words(self) -> [u64; 2];
}

impl Key for u64 {
    const FREE: Self = 0;

    fn words(self) -> [u64; 2] {
        [self, 0]
    }
}

impl Key for u128 {
    const FREE: Self = 0;

    fn words(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }
}

/// Each key is at the first free place at or after its own.
#[derive(Debug)]
pub struct Table<K, V> {
    keys: Box<[K]>,
    values: Box<[V]>,
    /// The value of the key that marks free places, where it is in the table.
    of_free: Option<V>,
    /// Where keys belong differs from one start to the next: nobody can send such as belong to one place.
    seeds: [u64; 2],
    shift: u32,
}

impl<K: Key, V: Copy + Default> Table<K, V> {
    /// With as many places as two to a power. A quarter of them at least must stay free.
    pub fn of(power: u32) -> Self {
        Self {
            keys: vec![K::FREE; 1 << power].into(),
            values: vec![V::default(); 1 << power].into(),
            of_free: None,
            seeds: [1_u8, 2].map(|number| RandomState::new().hash_one(number) | 1),
            shift: u64::BITS - power,
        }
    }

    /// The value of a key.
    pub fn get(&self, key: K) -> Option<V> {
        if key == K::FREE {
            return self.of_free;
        }
        let place = self.place(key);
        (self.keys[place] == key).then(|| self.values[place])
    }

    /// Sets the value of a key; gives the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if key == K::FREE {
            return self.of_free.replace(value);
        }
        let place = self.place(key);
        let before = (self.keys[place] == key).then(|| self.values[place]);
        (self.keys[place], self.values[place]) = (key, value);
        before
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: K) {
        if key == K::FREE {
            self.of_free = None;
            return;
        }
        let mut free = self.place(key);
        if self.keys[free] != key {
            return;
        }
        // What stands behind it moves up, unless it would come to stand before its own place. So nothing is left that marks where a key was.
        let mut next = self.after(free);
        while self.keys[next] != K::FREE {
            let own = self.own_place(self.keys[next]);
            let from_own = |place: usize| place.wrapping_sub(own) % self.keys.len();
            if from_own(free) < from_own(next) {
                (self.keys[free], self.values[free]) = (self.keys[next], self.values[next]);
                free = next;
            }
            next = self.after(next);
        }
        self.keys[free] = K::FREE;
    }

    fn own_place(&self, key: K) -> usize {
        let ([low, high], [first, second]) = (key.words(), self.seeds);
        (low.wrapping_mul(first).wrapping_add(high.wrapping_mul(second)) >> self.shift) as usize
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) % self.keys.len()
    }

    /// Where a key is, or where it would be put.
    fn place(&self, key: K) -> usize {
        let mut place = self.own_place(key);
        while self.keys[place] != K::FREE && self.keys[place] != key {
            place = self.after(place);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use super::Table;

    #[test]
    fn it_is_a_map_whichever_places_keys_belong_to() {
        // Keys that belong to few places, the last one among them.
        let mut table: Table<u128, u64> = Table { seeds: [1, 1], ..Table::of(8) };
        let (mut map, mut order) = (HashMap::new(), VecDeque::new());
        for number in 0..20_000_u64 {
            let key = u128::from(((number * number % 7).wrapping_sub(3) << 56) | (number * number / 7 % 40));
            assert_eq!(table.get(key), map.get(&key).copied());
            let before = map.insert(key, number);
            assert_eq!(table.insert(key, number), before);
            if before.is_none() {
                order.push_back(key);
            }
            if order.len() > 190 {
                let old = order.pop_front().expect("there are many");
                map.remove(&old);
                table.remove(old);
                table.remove(old);
            }
            assert!(order.iter().all(|own| table.get(*own) == map.get(own).copied()));
        }
    }
}
