//! Sets of pairs of small numbers: the rows of relations with one or two columns of ids.

use std::mem::size_of;

/// Pairs of 32-bit numbers. A slot holds 64 neighbouring second numbers of one first number as bits, so that a closure over
/// dense ids takes little more than a bit a pair. One that is scattered takes 16 bytes a pair, twice a plain hash set.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Open addressing; a slot without bits is free. Length is a power of two, or 0.
    slots: Vec<Slot>,
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The first number, and the second one without its last six bits.
    key: u64,
    bits: u64,
}

impl Pairs {
    /// Adds a pair; whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, first: u32, second: u32) -> bool {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let (key, bit) = place(first, second);
        let slot = self.slot(key);
        let found = &mut self.slots[slot];
        self.used += usize::from(found.bits == 0);
        let new = found.bits & bit == 0;
        found.key = key;
        found.bits |= bit;
        new
    }

    pub(super) fn contains(&self, first: u32, second: u32) -> bool {
        let (key, bit) = place(first, second);
        !self.slots.is_empty() && self.slots[self.slot(key)].bits & bit != 0
    }

    /// All pairs, in no order that means anything, but always the same one after the same insertions.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.slots.iter().flat_map(|slot| {
            let bits = (0..64).filter(move |bit| slot.bits >> bit & 1 == 1);
            bits.map(move |bit| ((slot.key >> 32) as u32, (slot.key as u32) << 6 | bit))
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// The slot of a key, or the free one where it belongs. Eight neighbouring keys begin in eight neighbouring slots.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let product = u128::from((key >> 3) ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        let hash = (product as u64) ^ ((product >> 64) as u64);
        let mut slot = ((hash << 3) | ((key ^ (hash >> 58)) & 7)) as usize & mask;
        while self.slots[slot].bits != 0 && self.slots[slot].key != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.bits != 0) {
            let place = self.slot(slot.key);
            self.slots[place] = slot;
        }
    }
}

fn place(first: u32, second: u32) -> (u64, u64) {
    (u64::from(first) << 32 | u64::from(second >> 6), 1 << (second & 63))
}
