//! What is written is read back, by a reader of its own, and no entry is longer than is promised.

use std::cell::Cell;

use dyelog_wire::{
    CHILD, CPU, HAS_CHILD, HAS_CPU, HAS_MORE, HAS_WALL, MAGIC, POINTS, RECORD, RECORD_BYTES, RecordEntry, WALL, Writer,
};
use proptest::prelude::*;

/// Reads numbers off bytes.
struct Bytes<'b> {
    all: &'b [u8],
    at: Cell<usize>,
}

impl Bytes<'_> {
    fn byte(&self) -> u8 {
        let at = self.at.get();
        self.at.set(at + 1);
        self.all[at]
    }

    fn unsigned(&self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    fn signed(&self) -> i64 {
        let value = self.unsigned();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn pair(&self) -> (i64, i64) {
        let begin = self.signed();
        (begin, begin.wrapping_add(self.signed()))
    }
}

/// The records of a file without names, and the bytes of the longest entry.
fn read(file: &[u8]) -> (Vec<RecordEntry>, usize) {
    let bytes = Bytes { all: file.strip_prefix(MAGIC).expect("it begins as a file does"), at: Cell::new(0) };
    let (mut records, mut longest) = (Vec::<RecordEntry>::new(), 0);
    let (mut wall_end, mut cpu_end) = (0_i64, 0_i64);
    let mut ahead = RecordEntry::default();
    while bytes.at.get() < bytes.all.len() {
        let begin = bytes.at.get();
        match bytes.byte() {
            WALL => ahead.wall = Some(bytes.pair()),
            CPU => ahead.cpu = Some(bytes.pair()),
            CHILD => ahead.child = Some(bytes.unsigned() as u32),
            tag => {
                assert!(tag & RECORD != 0, "no such tag: {tag}");
                let more = if tag & HAS_MORE != 0 { bytes.byte() } else { 0 };
                let before = records.last().copied().unwrap_or_default();
                let mut record = std::mem::take(&mut ahead);
                (record.probe, record.flags) = (tag & 7, more & !HAS_CHILD);
                record.site = bytes.unsigned() as u32;
                record.chain = (i64::from(before.chain) + bytes.signed()) as u32;
                record.event = (i64::from(before.event) + bytes.signed()) as u32;
                let clock = |end: i64| {
                    let begin = end.wrapping_add(bytes.signed());
                    (begin, if tag & POINTS != 0 { begin } else { begin.wrapping_add(bytes.signed()) })
                };
                if tag & HAS_WALL != 0 {
                    record.wall = Some(clock(wall_end));
                }
                if tag & HAS_CPU != 0 {
                    record.cpu = Some(clock(cpu_end));
                }
                if more & HAS_CHILD != 0 {
                    record.child = Some(bytes.unsigned() as u32);
                }
                wall_end = record.wall.map_or(wall_end, |(_, end)| end);
                cpu_end = record.cpu.map_or(cpu_end, |(_, end)| end);
                records.push(record);
            }
        }
        longest = longest.max(bytes.at.get() - begin);
    }
    (records, longest)
}

/// Times near each other, as most are, and any.
fn times() -> impl Strategy<Value = Option<(i64, i64)>> {
    let near = (0..1_000_000_i64, 0..1000_i64).prop_map(|(begin, took)| (begin, begin + took));
    prop::option::of(prop_oneof![4 => near, 1 => any::<(i64, i64)>()])
}

fn record() -> impl Strategy<Value = RecordEntry> {
    let numbers = (0..6_u8, 0..8_u8, any::<u32>(), any::<u32>(), any::<u32>(), prop::option::of(any::<u32>()));
    (numbers, times(), times()).prop_map(|((probe, flags, site, chain, event, child), wall, cpu)| RecordEntry {
        probe,
        flags,
        site,
        chain,
        event,
        child,
        wall,
        cpu,
    })
}

proptest! {
    #[test]
    fn records_come_back_and_no_entry_is_too_long(written in prop::collection::vec(record(), 0..50)) {
        let (mut writer, mut file) = (Writer::new(), Vec::new());
        writer.begin(&mut file);
        let mut said = 0;
        for record in &written {
            said = said.max(writer.record(record, &mut file));
        }
        let (found, longest) = read(&file);
        prop_assert_eq!(&found, &written);
        prop_assert!(longest <= RECORD_BYTES, "an entry of {} bytes", longest);
        prop_assert!(longest <= said, "an entry of {} bytes, and {} were said", longest, said);
    }
}
