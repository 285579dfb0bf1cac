//! Names of chains, which are given up once nothing can go on with them.
//!
//! A chain keeps its number for good, so that a record that comes late still finds it. Names lie in pages; where all chains of a page are given up,
//! the page keeps a hash of each in place of its text, or the text, packed, of those that may go on.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

/// How many names a page has.
pub(crate) const PAGE: usize = 256;

/// No number.
const FREE: u32 = u32::MAX;

/// How an entry of a page that is given up begins: with a hash, with a text, with a text whose first 32 characters are hexadecimal digits.
const HASH: u8 = 0;
const TEXT: u8 = 1;
const DIGITS: u8 = 2;

/// Names by number, and numbers by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChainNames {
    pages: Vec<Page>,
    count: usize,
    /// Numbers by hash, open addressing.
    slots: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    packed: bool,
}

impl Page {
    fn entry(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[start as usize..self.ends[place] as usize]
    }

    /// The text, where it is kept.
    fn text(&self, place: usize) -> Option<Cow<'_, str>> {
        let entry = self.entry(place);
        if !self.packed {
            return Some(String::from_utf8_lossy(entry));
        }
        match entry.split_first() {
            Some((&TEXT, text)) => Some(String::from_utf8_lossy(text)),
            Some((&DIGITS, packed)) => {
                let (digits, rest) = packed.split_at(16);
                let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
                let mut text: String = digits.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
                text.push_str(&String::from_utf8_lossy(rest));
                Some(Cow::Owned(text))
            }
            _ => None,
        }
    }

    fn hash(&self, place: usize) -> u64 {
        match self.text(place) {
            Some(text) => hash(text.as_bytes()),
            None => self.entry(place)[1..].iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte)),
        }
    }

    /// Whether it is this name, whose hash is known.
    fn is(&self, place: usize, name: &str, hash: u64) -> bool {
        if !self.packed {
            return self.entry(place) == name.as_bytes();
        }
        match self.text(place) {
            Some(text) => text == name,
            None => self.hash(place) == hash,
        }
    }
}

impl ChainNames {
    /// The text of a number; empty where it is given up.
    pub(crate) fn text(&self, number: usize) -> &str {
        let page = &self.pages[number / PAGE];
        if page.packed { "" } else { std::str::from_utf8(page.entry(number % PAGE)).unwrap_or_default() }
    }

    /// The text of a number, where it is known.
    pub(crate) fn name(&self, number: usize) -> Option<Cow<'_, str>> {
        self.pages[number / PAGE].text(number % PAGE)
    }

    fn slot(&self, name: &str, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != FREE {
            let number = self.slots[slot] as usize;
            if self.pages[number / PAGE].is(number % PAGE, name, hash) {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        Some(self.slots[self.slot(name, hash(name.as_bytes()))]).filter(|number| *number != FREE)
    }

    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if (self.count + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let slot = self.slot(name, hash(name.as_bytes()));
        if self.slots[slot] == FREE {
            self.slots[slot] = self.push(name);
        }
        self.slots[slot]
    }

    fn push(&mut self, name: &str) -> u32 {
        let number = u32::try_from(self.count).ok().filter(|number| *number != FREE);
        if self.count.is_multiple_of(PAGE) {
            let (bytes, ends) = (Vec::with_capacity(PAGE * name.len().min(64)), Vec::with_capacity(PAGE));
            self.pages.push(Page { bytes, ends, packed: false });
        }
        let page = self.pages.last_mut().expect("it was made");
        page.bytes.extend_from_slice(name.as_bytes());
        page.ends.push(page.bytes.len() as u32);
        self.count += 1;
        number.expect("fewer than 2^32 chains fit in memory")
    }

    /// A number of its own for a name, also where the name has one. Names are packed, and cannot be found.
    pub(crate) fn append(&mut self, name: &str) -> u32 {
        let number = self.push(name);
        if self.count.is_multiple_of(PAGE) {
            self.give_up(number as usize / PAGE, |_| true);
        }
        number
    }

    /// Packs all names; none can be found any more.
    pub(crate) fn pack(&mut self) {
        self.slots = Vec::new();
        for page in 0..self.pages.len() {
            self.give_up(page, |_| true);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let mut slots = vec![FREE; size];
        for number in 0..self.count {
            let mut slot = self.pages[number / PAGE].hash(number % PAGE) as usize & (size - 1);
            while slots[slot] != FREE {
                slot = (slot + 1) & (size - 1);
            }
            slots[slot] = number as u32;
        }
        self.slots = slots;
    }

    /// Gives up a full page of names but for those that `keep` asks for, by their places.
    pub(crate) fn give_up(&mut self, page: usize, keep: impl Fn(usize) -> bool) {
        let page = &mut self.pages[page];
        if page.packed || page.ends.len() < PAGE {
            return;
        }
        let (mut bytes, mut ends) = (Vec::with_capacity(PAGE * 9), Vec::with_capacity(PAGE));
        for place in 0..PAGE {
            let entry = page.entry(place);
            if !keep(place) {
                bytes.push(HASH);
                bytes.extend(hash(entry).to_be_bytes());
            } else if let Some((digits, rest)) = digits(entry) {
                bytes.push(DIGITS);
                bytes.extend(digits);
                bytes.extend_from_slice(rest);
            } else {
                bytes.push(TEXT);
                bytes.extend_from_slice(entry);
            }
            ends.push(bytes.len() as u32);
        }
        bytes.shrink_to_fit();
        *page = Page { bytes, ends, packed: true };
    }
}

/// The 32 hexadecimal digits that a name begins with, in 16 bytes, and what follows.
fn digits(name: &[u8]) -> Option<([u8; 16], &[u8])> {
    let (digits, rest) = name.split_at_checked(32)?;
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut packed = [0; 16];
    for (byte, pair) in packed.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some((packed, rest))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{ChainNames, PAGE};

    #[test]
    fn names_that_are_given_up_keep_their_numbers() {
        let mut names = ChainNames::default();
        let name = |number: usize| match number % 3 {
            0 => format!("{number:032x}.{number}"),
            1 => format!("c{number}"),
            _ => String::from("é").repeat(number),
        };
        for number in 0..3 * PAGE {
            assert_eq!(names.intern(&name(number)), number as u32);
        }
        names.give_up(1, |place| !place.is_multiple_of(2));
        for number in 3 * PAGE..10 * PAGE {
            names.intern(&name(number));
        }
        for number in 0..10 * PAGE {
            assert_eq!(names.find(&name(number)), Some(number as u32));
            let gone = number / PAGE == 1;
            assert_eq!(names.text(number), if gone { String::new() } else { name(number) });
            let kept = !gone || !(number % PAGE).is_multiple_of(2);
            assert_eq!(names.name(number).as_deref(), Some(&*name(number)).filter(|_| kept));
        }
        assert_eq!(names.find("other"), None);
    }
}
