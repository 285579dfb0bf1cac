//! Sub-models in a form that is quick to read: numbers of variable length for what there is much of, and JSON for the rest.
//!
//! A store merges hundreds of sub-models for one answer, and words of digits took most of the time. What there is much of, times and what depends on them, stands behind
//! the JSON, in the order of its scenarios and entries, column by column. A sub-model that is read is the same as from JSON.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::Document;
use super::read::{Reader, damaged, misshapen, of_document, other_version};
use super::write::{Part, shaped};
use crate::sketch::Sketch;
use crate::starts::{Starts, Stretch};
use crate::stays::{Stay, Stays};
use crate::submodel::{EntryIndex, EntryTotal, Moments, ScenarioTotal, Seconds, SubModel, WITNESSES, Witness};
use dyelog_diagnostic::Diagnostics;

/// What it begins with: no JSON does.
const BEGIN: u8 = 0;
/// The version that is read and written.
const VERSION: u8 = 1;

/// Packs a sub-model; `merge` says how its entries were merged.
pub fn pack(sub: &SubModel, merge: &str) -> Vec<u8> {
    let head = serde_json::to_vec(&shaped(sub, merge, None, Part::Head)).unwrap_or_default();
    let mut out = Out { bytes: vec![BEGIN, VERSION], ..Out::default() };
    out.number(head.len() as u64);
    out.bytes.extend(head);
    let mut scenarios: Vec<(&str, &ScenarioTotal)> =
        sub.scenarios.iter().map(|(name, total)| (sub.names.text(*name), total)).collect();
    scenarios.sort_by_key(|(name, _)| *name);
    let order = sub.canonical_order();
    let mut rest = Out::default();
    for (_, total) in scenarios {
        rest.starts(&total.starts);
        rest.sketch(&total.responses);
        rest.stays(&total.stays);
    }
    for index in order {
        let entry = sub.entry(index);
        rest.sketch(&entry.responses);
        rest.stays(&entry.stays);
        rest.stays(&entry.visits);
        rest.witnesses(&entry.witnesses);
    }
    out.number(rest.texts.len() as u64);
    for text in &rest.texts {
        out.number(text.len() as u64);
        out.bytes.extend(text.as_bytes());
    }
    out.bytes.extend(rest.bytes);
    out.bytes
}

/// Reads a packed sub-model, or one in JSON; gives with it how its entries were merged.
///
/// # Errors
/// As [`super::parse`].
pub fn unpack(name: &Arc<str>, bytes: &[u8]) -> Result<(SubModel, String), Diagnostics> {
    let Some(rest) = bytes.strip_prefix(&[BEGIN]) else {
        let text = std::str::from_utf8(bytes).map_err(|_| damaged(name))?;
        return super::parse(name, text);
    };
    let (version, rest) = rest.split_first().ok_or_else(|| damaged(name))?;
    if *version != VERSION {
        return Err(other_version(name, &version.to_string()).into());
    }
    let mut input = In { rest, texts: Vec::new() };
    let head = input.bytes().and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(|| damaged(name))?;
    let document: Document = serde_json::from_str(head).map_err(|error| misshapen(name, head, &error))?;
    let (mut sub, merge) = of_document(Reader::of(name), document)?;
    input.fill(&mut sub).filter(|()| input.rest.is_empty()).ok_or_else(|| damaged(name))?;
    Ok((sub, merge))
}

/// What is written.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    /// Texts in the order in which they first come.
    texts: IndexSet<Arc<str>, FxBuildHasher>,
}

impl Out {
    fn number(&mut self, number: u64) {
        self.wide(u128::from(number));
    }

    fn wide(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// From one time to the next, whatever they are.
    fn since(&mut self, before: i64, time: i64) {
        let later = time.wrapping_sub(before);
        self.number(((later << 1) ^ (later >> 63)).cast_unsigned());
    }

    fn moments(&mut self, moments: &Moments) {
        self.number(moments.count);
        for number in [moments.sum.0, moments.squares] {
            self.wide(((number << 1) ^ (number >> 127)).cast_unsigned());
        }
    }

    fn starts(&mut self, starts: &Starts) {
        let cells = starts.cells();
        self.number(cells.len() as u64);
        if cells.is_empty() {
            return;
        }
        self.number(u64::from(starts.shift()));
        let mut before = 0;
        for cell in cells {
            self.since(before, cell.first);
            self.number(cell.last.abs_diff(cell.first));
            self.number(cell.operations);
            before = cell.last;
        }
        for cell in cells {
            self.moments(&cell.response);
        }
    }

    fn sketch(&mut self, sketch: &Sketch) {
        self.number(sketch.buckets().count() as u64);
        let mut before = 0;
        for (bucket, _) in sketch.buckets() {
            self.number(u64::from(bucket - before));
            before = bucket;
        }
        for (_, count) in sketch.buckets() {
            self.number(count);
        }
    }

    fn stays<const KEPT: usize>(&mut self, stays: &Stays<KEPT>) {
        self.number(stays.seen());
        if stays.seen() == 0 {
            return;
        }
        let mut kept = stays.kept();
        kept.sort_unstable_by_key(|stay| (stay.start, stay.length, stay.part, stay.site));
        let is_told = kept.iter().any(|stay| stay.site != 0);
        self.number(u64::from(stays.cut().is_some()) + 2 * u64::from(is_told));
        if let Some(cut) = stays.cut() {
            self.since(0, cut);
        }
        self.number(kept.len() as u64);
        let mut before = 0;
        for stay in &kept {
            self.since(before, stay.start);
            before = stay.start;
        }
        for stay in &kept {
            self.number(stay.length);
        }
        for stay in &kept {
            self.number(u64::from(stay.part));
        }
        for stay in kept.iter().filter(|_| is_told) {
            self.number(u64::from(stay.site));
        }
    }

    fn text(&mut self, text: &Arc<str>) {
        let (place, _) = self.texts.insert_full(Arc::clone(text));
        self.number(place as u64);
    }

    fn witnesses(&mut self, witnesses: &[Witness]) {
        self.number(witnesses.len() as u64);
        for Witness { scenario, run, thread, index, file, item } in witnesses {
            for text in [scenario, run, file, item] {
                self.text(text);
            }
            for number in [thread, index] {
                self.number(u64::from(*number));
            }
        }
    }
}

/// What is read. Nothing comes back where it ends too early or has what cannot be.
struct In<'b> {
    rest: &'b [u8],
    texts: Vec<Arc<str>>,
}

impl<'b> In<'b> {
    fn fill(&mut self, sub: &mut SubModel) -> Option<()> {
        for _ in 0..self.count()? {
            let text = std::str::from_utf8(self.bytes()?).ok()?;
            self.texts.push(text.into());
        }
        for total in sub.scenarios.values_mut() {
            total.starts = self.starts()?;
            total.responses = self.sketch(total.response.count)?;
            total.stays = self.stays(total.operations)?;
        }
        for number in 0..sub.entries().len() {
            let entry = sub.entry_mut(EntryIndex(number as u32));
            entry.responses = self.sketch(entry.response.count)?;
            entry.stays = self.stays(super::MOST)?;
            entry.visits = self.stays(super::MOST)?;
            self.witnesses(entry)?;
        }
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        const LAST: u64 = 0x8080_8080_8080_8080;
        let Some(eight) = self.rest.first_chunk::<8>() else { return u64::try_from(self.wide()?).ok() };
        let eight = u64::from_le_bytes(*eight);
        // The last byte of a number has no highest bit. Nearly all have eight bytes at most, which are read at once.
        let length = (!eight & LAST).trailing_zeros() / 8 + 1;
        if length > 8 {
            return u64::try_from(self.wide()?).ok();
        }
        self.rest = &self.rest[length as usize..];
        // Seven bits of each byte, then fourteen of two, then twenty-eight of four.
        let sevens = eight & (u64::MAX >> (64 - 8 * length)) & !LAST;
        let pairs = (sevens & 0x007f_007f_007f_007f) | ((sevens & 0x7f00_7f00_7f00_7f00) >> 1);
        let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
        Some((fours & 0x0fff_ffff) | ((fours & 0x0fff_ffff_0000_0000) >> 4))
    }

    fn wide(&mut self) -> Option<u128> {
        let (mut low, mut number) = (0_u64, 0_u128);
        for (place, &byte) in self.rest.iter().enumerate().take(19) {
            let part = u64::from(byte & 0x7f);
            // Nearly all fit nine bytes.
            match place {
                ..9 => low |= part << (7 * place),
                18 if part > 3 => return None,
                _ => number |= u128::from(part) << (7 * place),
            }
            if byte < 0x80 {
                self.rest = &self.rest[place + 1..];
                return Some(number | u128::from(low));
            }
        }
        None
    }

    /// How many follow: each has a byte at least.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(bytes)
    }

    fn since(&mut self, before: i64) -> Option<i64> {
        let number = self.number()?;
        Some(before.wrapping_add((number >> 1).cast_signed() ^ -(number & 1).cast_signed()))
    }

    fn moments(&mut self) -> Option<Moments> {
        let count = self.number().filter(|count| *count <= super::MOST)?;
        let mut signed = || self.wide().map(|number| (number >> 1).cast_signed() ^ -(number & 1).cast_signed());
        let (sum, squares) = (Seconds(signed()?), signed()?);
        Some(Moments { count, sum, squares })
    }

    fn starts(&mut self) -> Option<Starts> {
        let count = self.count()?;
        if count == 0 {
            return Some(Starts::default());
        }
        let shift = self.small()?;
        let (mut cells, mut before) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let first = self.since(before)?;
            before = first.checked_add_unsigned(self.number()?)?;
            let operations = self.number().filter(|count| *count <= super::MOST)?;
            cells.push(Stretch { first, last: before, operations, response: Moments::default() });
        }
        for cell in &mut cells {
            cell.response = self.moments()?;
        }
        Starts::of_cells(shift, cells)
    }

    fn sketch(&mut self, most: u64) -> Option<Sketch> {
        let count = self.count()?;
        let (mut buckets, mut before) = (Vec::with_capacity(count), 0_u32);
        for _ in 0..count {
            before = before.checked_add(self.small()?)?;
            buckets.push((before, 0));
        }
        for (_, count) in &mut buckets {
            *count = self.number()?;
        }
        Sketch::of_buckets(buckets).filter(|sketch| sketch.len() <= most)
    }

    fn stays<const KEPT: usize>(&mut self, most: u64) -> Option<Stays<KEPT>> {
        let seen = self.number().filter(|seen| *seen <= most)?;
        if seen == 0 {
            return Some(Stays::default());
        }
        let marks = self.number()?;
        let cut = if marks & 1 == 1 { Some(self.since(0)?) } else { None };
        let count = self.count()?;
        let (mut kept, mut before) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            before = self.since(before)?;
            kept.push(Stay { start: before, length: 0, part: 0, site: 0 });
        }
        for stay in &mut kept {
            stay.length = self.number()?;
        }
        self.smalls(kept.iter_mut().map(|stay: &mut Stay| &mut stay.part))?;
        if marks & 2 == 2 {
            self.smalls(kept.iter_mut().map(|stay| &mut stay.site))?;
        }
        Stays::of_saved(seen, kept, cut)
    }

    /// Numbers that are below 128 mostly: eight of these are read at once.
    fn smalls<'s>(&mut self, mut places: impl ExactSizeIterator<Item = &'s mut u32>) -> Option<()> {
        const LARGE: u64 = 0x8080_8080_8080_8080;
        loop {
            while let Some(eight) = self.rest.first_chunk::<8>()
                && places.len() >= eight.len()
                && u64::from_le_bytes(*eight) & LARGE == 0
            {
                for byte in eight {
                    *places.next()? = u32::from(*byte);
                }
                self.rest = &self.rest[eight.len()..];
            }
            match places.next() {
                Some(place) => *place = self.small()?,
                None => return Some(()),
            }
        }
    }

    fn witnesses(&mut self, entry: &mut EntryTotal) -> Option<()> {
        let count = self.number().filter(|count| *count <= WITNESSES as u64)?;
        for _ in 0..count {
            let mut text = || {
                let place = usize::try_from(self.number()?).ok()?;
                self.texts.get(place).cloned()
            };
            let (scenario, run, file, item) = (text()?, text()?, text()?, text()?);
            let (thread, index) = (self.small()?, self.small()?);
            entry.add_witness(&Witness { scenario, run, thread, index, file, item });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{In, Out, pack, unpack};
    use crate::saved;
    use crate::stays::{Stay, Stays};
    use crate::submodel::{EntryKey, Interaction, Moments, Seconds, SubModel, Witness};

    /// One with all that is packed, from the first time that there can be to the last.
    fn example() -> SubModel {
        let mut sub = SubModel::new();
        let (task, service) = (sub.names.intern("a task"), sub.names.intern("GET /x"));
        let scenario = sub.names.intern("scenario");
        let index = sub.ensure_entry(EntryKey(7), task, 1, Interaction::Rendezvous, service);
        let entry = sub.entry_mut(index);
        entry.invocations = 300;
        for number in 0..300_u64 {
            let start = (number * 31_000_007) as i64;
            let stay = Stay { start, length: number * number * 1013, part: (number % 3) as u32, site: 0 };
            entry.stays.add(stay);
            entry.visits.add(Stay { site: (number % 2) as u32 + 300, ..stay });
            entry.response.add(number as f64 * 1e-3);
            entry.responses.add(number as f64 * 1e-3);
        }
        for start in [i64::MIN, -5, i64::MAX] {
            entry.stays.add(Stay { start, length: u64::MAX, part: u32::MAX, site: u32::MAX });
        }
        entry.stays.keep(200);
        let text: Arc<str> = "same".into();
        for number in 0..2 {
            let (scenario, file, item) = (Arc::clone(&text), Arc::clone(&text), "ä".into());
            let run = number.to_string().into();
            entry.add_witness(&Witness { scenario, run, thread: 1, index: number, file, item });
        }
        let total = sub.scenarios.entry(scenario).or_default();
        total.operations = 300;
        for number in 0..300_u64 {
            let (start, response) = ((number * 31_000_007) as i64, number as f64 * 0.7);
            total.starts.add(start, Some(response));
            total.response.add(response);
            total.responses.add(response);
            total.stays.add(Stay { start, length: number, part: 0, site: 0 });
        }
        sub
    }

    #[test]
    fn what_is_packed_is_read_as_it_was() {
        for sub in [SubModel::new(), example()] {
            let packed = pack(&sub, "name");
            let (read, merge) = unpack(&"here".into(), &packed).expect("it was packed here");
            assert_eq!((saved::write(&read, &merge), &*merge), (saved::write(&sub, "name"), "name"));
            // JSON is read, too.
            let text = saved::write(&sub, "name");
            let (read, _) = unpack(&"here".into(), text.as_bytes()).expect("it was written here");
            assert_eq!(saved::write(&read, "name"), text);
        }
    }

    #[test]
    fn what_is_damaged_is_refused_and_does_no_harm() {
        let packed = pack(&example(), "name");
        for length in 0..packed.len() {
            assert!(unpack(&"here".into(), &packed[..length]).is_err(), "{length}");
        }
        assert!(unpack(&"here".into(), &[packed.clone(), vec![0]].concat()).is_err());
        for place in 0..packed.len() {
            let mut other = packed.clone();
            other[place] ^= 0x55;
            // It is another one, or none.
            let _ = unpack(&"here".into(), &other);
        }
        let mut newer = packed;
        newer[1] = 2;
        let found = unpack(&"here".into(), &newer).expect_err("it is newer");
        assert!(found.0[0].message.contains("version 2"), "{found:?}");
    }

    #[test]
    fn numbers_of_any_size_come_back() {
        for number in [0, 0x7f, 0x80, u128::from(u64::MAX), 1 << 63, u128::MAX - 1, u128::MAX] {
            let mut out = Out::default();
            out.wide(number);
            assert_eq!(In { rest: &out.bytes, texts: Vec::new() }.wide(), Some(number));
        }
        let least = Moments { count: 1, sum: Seconds(i128::MIN), squares: i128::MAX };
        let mut out = Out::default();
        out.moments(&least);
        assert_eq!(In { rest: &out.bytes, texts: Vec::new() }.moments(), Some(least));
        for number in (0..64).flat_map(|bits| [u64::MAX >> bits, 1 << bits, 0x1234_5678_9abc_def0 >> bits]) {
            for behind in [0, 9] {
                let mut out = Out::default();
                out.number(number);
                out.bytes.extend(vec![0xff; behind]);
                let mut input = In { rest: &out.bytes, texts: Vec::new() };
                assert_eq!((input.number(), input.rest.len()), (Some(number), behind));
            }
        }
        // More than 128 bits, and more than 64 where there are no more.
        assert_eq!(In { rest: &[0xff; 20], texts: Vec::new() }.wide(), None);
        let wide = [[0x80; 9].as_slice(), &[2]].concat();
        assert_eq!(In { rest: &wide, texts: Vec::new() }.number(), None);
        // More stays than there are bytes.
        assert_eq!(In { rest: &[9, 0, 9, 2], texts: Vec::new() }.stays::<8192>(100), None::<Stays>);
    }
}
