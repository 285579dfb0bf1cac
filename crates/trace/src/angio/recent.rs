//! Names met lately, found faster than in the table of all names.

use std::sync::Arc;

/// How many are kept.
const SLOTS: usize = 256;

/// A small table from texts to their numbers in which a new text takes the place of an old one.
pub(crate) struct Recent<T> {
    slots: Vec<Option<(Arc<str>, T)>>,
}

impl<T: Copy> Recent<T> {
    pub(crate) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| None).collect() }
    }

    /// The number of a text, and where it is not kept, what `find` says.
    #[inline]
    pub(crate) fn get(&mut self, text: &str, find: impl FnOnce(&str) -> (Arc<str>, T)) -> T {
        let slot = &mut self.slots[place(text)];
        match slot {
            Some((kept, number)) if **kept == *text => *number,
            _ => {
                let found = find(text);
                let number = found.1;
                *slot = Some(found);
                number
            }
        }
    }
}

#[inline]
fn place(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [] => 0,
        [first, .., last] => {
            let middle = usize::from(bytes[bytes.len() / 2]);
            (bytes.len() ^ (usize::from(*first) << 1) ^ (usize::from(*last) << 3) ^ (middle << 5)) % SLOTS
        }
        [only] => usize::from(*only) % SLOTS,
    }
}
