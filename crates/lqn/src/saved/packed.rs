//! Sub-models in a form that is quick to read: numbers of variable length.
//!
//! A store merges hundreds of sub-models for one answer, and words of digits took most of the time. What there is much of, times and what depends on them, stands behind
//! the rest, in the order of scenarios and entries, column by column. A sub-model that is read is the same as from JSON.

mod head;

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::Document;
use super::read::{Reader, damaged, misshapen, of_document, other_version};
use crate::sketch::Sketch;
use crate::starts::{Starts, Stretch};
use crate::stays::{Stay, Stays};
use crate::submodel::{EntryIndex, EntryTotal, Moments, ScenarioTotal, Seconds, SubModel, WITNESSES, Witness};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Name;

/// What it begins with: no JSON does.
const BEGIN: u8 = 0;
/// What follows the version, from the second one on: no other file begins so.
const MARK: &[u8] = b"dyelog";
/// The version of packed sub-models that is written.
pub const VERSION: u8 = 4;
/// An earlier one, which is read, too: sub-models do not tell when operations were taken in, nor how many requests were counted.
const WITHOUT_TIMES: u8 = 3;
/// One before that, which is read, too: scenarios do not tell how many a sampler kept without a probability.
const WITHOUT_LIMITS: u8 = 2;
/// One before that, which is read, too: JSON stands in the place of the head.
const WITH_JSON: u8 = 1;

/// Packs a sub-model; `merge` says how its entries were merged.
pub fn pack(sub: &SubModel, merge: &str) -> Vec<u8> {
    let mut scenarios: Vec<(Name, &ScenarioTotal)> = sub.scenarios.iter().map(|(name, total)| (*name, total)).collect();
    scenarios.sort_by_key(|(name, _)| sub.names.text(*name));
    let order = sub.canonical_order();
    let mut rest = Out::default();
    rest.head(sub, &scenarios, &order);
    rest.columns(sub, &scenarios, &order);
    rest.after(VERSION, merge)
}

/// Whether what begins so is meant to be a packed sub-model.
pub fn is_packed(head: &[u8]) -> bool {
    matches!(head, [BEGIN, _, rest @ ..] if rest.starts_with(MARK))
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
    let mut input = In { version: *version, ..In::of(rest) };
    let (sub, merge) = match *version {
        VERSION | WITHOUT_TIMES | WITHOUT_LIMITS => rest.strip_prefix(MARK).and_then(|rest| {
            input.rest = rest;
            input.whole()
        }),
        WITH_JSON => {
            let head = input.words().ok_or_else(|| damaged(name))?;
            let document: Document = serde_json::from_str(head).map_err(|error| misshapen(name, head, &error))?;
            let (mut sub, merge) = of_document(Reader::of(name), document)?;
            input.texts().and_then(|()| input.fill(&mut sub)).map(|()| (sub, merge))
        }
        other => return Err(other_version(name, &other.to_string()).into()),
    }
    .filter(|_| input.rest.is_empty())
    .ok_or_else(|| damaged(name))?;
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
    /// All of it, after its version, words, and the texts that it names.
    fn after(self, version: u8, words: &str) -> Vec<u8> {
        let mut out = Self { bytes: vec![BEGIN, version], ..Self::default() };
        if version != WITH_JSON {
            out.bytes.extend(MARK);
        }
        out.words(words);
        out.number(self.texts.len() as u64);
        for text in &self.texts {
            out.words(text);
        }
        out.bytes.extend(self.bytes);
        out.bytes
    }

    fn words(&mut self, words: &str) {
        self.number(words.len() as u64);
        self.bytes.extend(words.as_bytes());
    }

    /// What there is much of.
    fn columns(&mut self, sub: &SubModel, scenarios: &[(Name, &ScenarioTotal)], order: &[EntryIndex]) {
        for (_, total) in scenarios {
            self.starts(&total.starts);
            self.sketch(&total.responses);
            self.stays(&total.stays);
        }
        for index in order {
            let entry = sub.entry(*index);
            self.sketch(&entry.responses);
            self.stays(&entry.stays);
            self.stays(&entry.visits);
            self.witnesses(&entry.witnesses);
        }
    }

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
    version: u8,
    rest: &'b [u8],
    texts: Vec<Arc<str>>,
    /// Of each text its name in the sub-model, where it was looked up.
    names: Vec<Option<Name>>,
}

impl<'b> In<'b> {
    fn of(rest: &'b [u8]) -> Self {
        Self { version: VERSION, rest, texts: Vec::new(), names: Vec::new() }
    }

    fn whole(&mut self) -> Option<(SubModel, String)> {
        let merge = self.words()?.to_owned();
        self.texts()?;
        let mut sub = self.head()?;
        self.fill(&mut sub)?;
        Some((sub, merge))
    }

    fn texts(&mut self) -> Option<()> {
        for _ in 0..self.count()? {
            let text = self.words()?;
            self.texts.push(text.into());
        }
        Some(())
    }

    /// The columns of what has been read of a sub-model.
    fn fill(&mut self, sub: &mut SubModel) -> Option<()> {
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

    fn words(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
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

    use super::{In, Out, VERSION, WITH_JSON, WITHOUT_LIMITS, WITHOUT_TIMES, is_packed, pack, unpack};
    use crate::deployment::{Replica, Seen};
    use crate::saved;
    use crate::sketch::Sketch;
    use crate::starts::Starts;
    use crate::stays::{Stay, Stays};
    use crate::submodel::{
        BlockTotal, Branch, BranchTotal, EntryIndex, EntryKey, Interaction, Moments, Position, RequestKind,
        RequestTotal, Sampled, Seconds, SubModel, Undated, Witness,
    };
    use crate::timing::{CallLabel, CallTotal, PairTotal};
    use dyelog_diagnostic::names::Name;

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
        entry.response.squares = i128::MAX;
        entry.failures = 7;
        filled(&mut sub, index);
        let total = sub.scenarios.entry(scenario).or_default();
        total.operations = 300;
        (total.fragments, total.unlinked, total.apart, total.truncated, total.clients) = (9, 5, 4, 3, 2);
        (total.unweighed, total.limit) = (6, 2500);
        total.sampled = Sampled { operations: 200, thousandths: 1 << 40, squares: u64::MAX, counted: 1 << 40 };
        total.undated = Undated { traces: 1, operations: 2, nanoseconds: u64::MAX };
        (total.first_start, total.last_end, total.grain) = (Some(i64::MIN), Some(i64::MAX), 0);
        (0..20).for_each(|id: u128| total.ids.add(id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)));
        total.think.add(-2.5);
        for number in 0..300_u64 {
            let (start, response) = ((number * 31_000_007) as i64, number as f64 * 0.7);
            total.starts.add(start, Some(response));
            total.response.add(response);
            total.responses.add(response);
            total.stays.add(Stay { start, length: number, part: 0, site: 0 });
        }
        sub
    }

    /// What one of few systems has: another entry with all kinds of calls of the first, blocks, batches, and instances.
    fn filled(sub: &mut SubModel, to: EntryIndex) {
        let [task, machine, activity] = ["another", "a machine", "read"].map(|name| sub.names.intern(name));
        let none = Name::NONE;
        let index = sub.ensure_entry(EntryKey(u128::MAX), task, 2, Interaction::Asynchronous, none);
        sub.instances.extend([(task, 3), (machine, 1)]);
        for (instance, cores) in [(task, 0), (machine, 1500)] {
            let seen = Seen { first: -5, last: i64::MAX, invocations: 12, cores };
            sub.deployment.see(
                &sub.names,
                Replica { task, instance, machine: if cores > 0 { machine } else { none } },
                &seen,
            );
        }
        sub.deployment.cut_at(u64::MAX);
        let entry = sub.entry_mut(index);
        (entry.invocations, entry.silent, entry.retries) = (40, 3, 2);
        entry.way.add(1e-3);
        entry.batches.add(5, 0.25);
        let branch = |own| BranchTotal { content: u64::MAX - 1, own, awaited: 3 };
        let block = BlockTotal { times: 40, branches: vec![branch(true), branch(false)], ..BlockTotal::default() };
        let inner = Position { stage: 1, branch: Some(Branch { block: 1 << 63, branch: 1 }), phase: 2 };
        let outer = Position { stage: 1, branch: None, phase: 1 };
        entry.blocks.insert(1 << 63, BlockTotal { at: outer, ..block.clone() });
        entry.blocks.insert(3, BlockTotal { at: inner, ..block });
        let kinds = [RequestKind::Synchronous, RequestKind::Asynchronous, RequestKind::Forward];
        for (at, kind) in [outer, inner, Position { stage: 0, ..outer }].into_iter().zip(kinds) {
            let work = entry.work.entry(at).or_default();
            work.visits = 40;
            work.exclusive.add(0.125);
            let activity = work.activities.entry(activity).or_default();
            (activity.count, activity.cpu) = (9, Moments::of(Seconds(-1)));
            work.requests.insert((kind, to), RequestTotal { count: 80, squares: 160 });
            work.requests.insert((kind, index), RequestTotal { count: 1, squares: 1 });
        }
        let label = |to, ordinal| CallLabel { phase: 1, kind: RequestKind::Synchronous, to, ordinal };
        let labels = [label(Some(to), 2), label(None, 0), label(Some(to), 1)];
        for own in labels {
            let time = Seconds(i128::from(own.ordinal) - (1 << 70));
            let requests = RequestTotal { count: 40, squares: 1 << 59 };
            let call = CallTotal { invocations: 40, requests, start: time, network: time, ..CallTotal::default() };
            entry.calls.insert(own, CallTotal { duration: Moments::of(time), ..call });
        }
        let pair = PairTotal { both: 40, before: 39, after: 1, later: Seconds(5), earlier: Seconds(-6) };
        entry.pairs.extend([((labels[1], labels[2]), pair), ((labels[2], labels[0]), pair)]);
    }

    /// The order of what has one.
    fn named(sub: &SubModel) -> String {
        let texts = |names: &mut dyn Iterator<Item = Name>| names.map(|name| sub.names.text(name).to_owned()).collect();
        let mut all: Vec<Vec<String>> =
            vec![texts(&mut sub.scenarios.keys().copied()), texts(&mut sub.instances.keys().copied())];
        for entry in sub.entries() {
            let work = entry.work.values().flat_map(|work| work.requests.keys());
            let blocks: Vec<_> = entry.blocks.keys().collect();
            let orders = (entry.work.keys(), work.collect::<Vec<_>>(), blocks, entry.calls.keys(), entry.pairs.keys());
            all.push(vec![format!("{:?} {orders:?}", entry.key)]);
        }
        format!("{all:?}")
    }

    /// As earlier programs packed it.
    fn with_json(sub: &SubModel) -> Vec<u8> {
        let mut scenarios: Vec<_> = sub.scenarios.iter().map(|(name, total)| (*name, total)).collect();
        scenarios.sort_by_key(|(name, _)| sub.names.text(*name));
        let mut rest = Out::default();
        rest.columns(sub, &scenarios, &sub.canonical_order());
        let mut head = sub.clone();
        for total in head.scenarios.values_mut() {
            (total.starts, total.responses, total.stays) = (Starts::default(), Sketch::default(), Stays::default());
        }
        for number in 0..head.entries().len() {
            let entry = head.entry_mut(EntryIndex(number as u32));
            (entry.responses, entry.stays, entry.visits) = (Sketch::default(), Stays::default(), Stays::default());
            entry.witnesses.clear();
        }
        rest.after(WITH_JSON, &saved::write(&head, "name"))
    }

    #[test]
    fn what_is_packed_is_read_as_it_was() {
        for sub in [SubModel::new(), example()] {
            let packed = pack(&sub, "name");
            assert!(is_packed(&packed) && !is_packed(b"\0\x02dye") && !is_packed(b"{}"));
            let (read, merge) = unpack(&"here".into(), &packed).expect("it was packed here");
            assert_eq!((saved::write(&read, &merge), &*merge), (saved::write(&sub, "name"), "name"));
            // All stands in the same order, so that sums are the same to the last bit.
            let (plain, _) =
                unpack(&"here".into(), saved::write(&sub, "name").as_bytes()).expect("it was written here");
            assert_eq!(named(&read), named(&plain));
            let (earlier, merge) = unpack(&"here".into(), &with_json(&sub)).expect("it is read, too");
            assert_eq!((saved::write(&earlier, &merge), &*merge), (saved::write(&sub, "name"), "name"));
            // JSON is read, too.
            let text = saved::write(&sub, "name");
            let (read, _) = unpack(&"here".into(), text.as_bytes()).expect("it was written here");
            assert_eq!(saved::write(&read, "name"), text);
        }
    }

    /// One as earlier programs had it.
    fn earlier() -> SubModel {
        let mut sub = example();
        sub.scenarios.values_mut().for_each(|total| total.sampled.counted = 0);
        sub
    }

    /// Takes out what was not there before: no times at which operations were taken in, and no counted requests.
    fn remove_times(packed: &mut Vec<u8>, of: &SubModel) {
        let with = |times: &[(i64, i64)], counted: u64| {
            let mut sub = of.clone();
            sub.observe(times);
            sub.scenarios.values_mut().for_each(|total| total.sampled.counted = counted);
            pack(&sub, "name")
        };
        let without = with(&[], 0);
        for other in [with(&[], 1), with(&[(1, 2)], 0)] {
            let at = without.iter().zip(&other).position(|(one, other)| one != other).expect("it is in it");
            assert_eq!(packed.remove(at), 0);
        }
    }

    #[test]
    fn times_at_which_operations_were_taken_in_come_back() {
        let mut sub = example();
        sub.observe(&[(-5, 7), (i64::MIN, -9), (8, i64::MAX)]);
        let (read, merge) = unpack(&"here".into(), &pack(&sub, "name")).expect("it was packed here");
        assert_eq!(read.observed, [(i64::MIN, -9), (-5, 7), (8, i64::MAX)]);
        assert_eq!(saved::write(&read, &merge), saved::write(&sub, "name"));
    }

    #[test]
    fn what_was_packed_without_times_is_read() {
        let mut packed = pack(&earlier(), "name");
        remove_times(&mut packed, &earlier());
        packed[1] = WITHOUT_TIMES;
        let (read, merge) = unpack(&"here".into(), &packed).expect("it is read, too");
        assert_eq!(saved::write(&read, &merge), saved::write(&earlier(), "name"));
    }

    /// What earlier programs packed has nothing of samplers that tell no probability, and stands otherwise as now.
    #[test]
    fn what_was_packed_without_limits_is_read() {
        let limited = |limit| {
            let mut sub = earlier();
            let total = sub.scenarios.values_mut().next().expect("there is one");
            (total.unweighed, total.limit) = (0, limit);
            sub
        };
        let of = limited(0);
        let [mut packed, other] = [&of, &limited(1)].map(|sub| pack(sub, "name"));
        let at = packed.iter().zip(&other).position(|(one, other)| one != other).expect("the limit is in it");
        // One of what was not there before either stands before them.
        remove_times(&mut packed, &of);
        packed.drain(at - 2..at);
        packed[1] = WITHOUT_LIMITS;
        let (read, merge) = unpack(&"here".into(), &packed).expect("it is read, too");
        assert_eq!(saved::write(&read, &merge), saved::write(&of, "name"));
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
        newer[1] = VERSION + 1;
        let found = unpack(&"here".into(), &newer).expect_err("it is newer");
        assert!(found.0[0].message.contains("version 5"), "{found:?}");
    }

    #[test]
    fn numbers_of_any_size_come_back() {
        for number in [0, 0x7f, 0x80, u128::from(u64::MAX), 1 << 63, u128::MAX - 1, u128::MAX] {
            let mut out = Out::default();
            out.wide(number);
            assert_eq!(In::of(&out.bytes).wide(), Some(number));
        }
        let least = Moments { count: 1, sum: Seconds(i128::MIN), squares: i128::MAX };
        let mut out = Out::default();
        out.moments(&least);
        assert_eq!(In::of(&out.bytes).moments(), Some(least));
        for number in (0..64).flat_map(|bits| [u64::MAX >> bits, 1 << bits, 0x1234_5678_9abc_def0 >> bits]) {
            for behind in [0, 9] {
                let mut out = Out::default();
                out.number(number);
                out.bytes.extend(vec![0xff; behind]);
                let mut input = In::of(&out.bytes);
                assert_eq!((input.number(), input.rest.len()), (Some(number), behind));
            }
        }
        // More than 128 bits, and more than 64 where there are no more.
        assert_eq!(In::of(&[0xff; 20]).wide(), None);
        let wide = [[0x80; 9].as_slice(), &[2]].concat();
        assert_eq!(In::of(&wide).number(), None);
        // More stays than there are bytes.
        assert_eq!(In::of(&[9, 0, 9, 2]).stays::<8192>(100), None::<Stays>);
    }
}
