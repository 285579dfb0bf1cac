//! The binary form of probe records (the format `calls`), shared by its writers and its readers.
//!
//! A file is [`MAGIC`] and entries. Each begins with a tag; numbers are LEB128, signed ones zigzag. Names, sites and chains are
//! numbered from 0 as they come, and name 0 is the empty string. A record gives its times as differences from the record before; where
//! that would take more than [`RECORD_BYTES`], the times or the child go ahead in entries of their own, each of which keeps
//! to the limit as well. A file that ends within an entry lost that entry, and nothing before it.
//!
//! ```
//! use dyelog_wire::{CHAIN, MAGIC, RECORD, RecordEntry, SITE, Writer};
//!
//! let (mut writer, mut file) = (Writer::new(), Vec::new());
//! writer.begin(&mut file);
//! writer.text(CHAIN, b"c1", &mut file);
//! writer.site([0; 6], &mut file);
//! let start = RecordEntry { event: 1, wall: Some((1000, 1020)), ..RecordEntry::default() };
//! assert_eq!(writer.record(&start, &mut file), 7);
//! assert!(file.starts_with(MAGIC));
//! assert_eq!((file[8], file[12], file[19] & RECORD), (CHAIN, SITE, RECORD));
//! ```

#![forbid(unsafe_code)]

/// How a binary file begins.
pub const MAGIC: &[u8; 8] = b"dycalls\x01";

/// The most that the entry of a record takes.
pub const RECORD_BYTES: usize = 24;

/// A name: its text.
pub const NAME: u8 = 1;
/// A site: six names, in the order of interface, function, object, thread, process and processor.
pub const SITE: u8 = 2;
/// A chain: its text.
pub const CHAIN: u8 = 3;
/// The header: epoch, clock and cost of a probe, each a text.
pub const HEADER: u8 = 4;
/// The processor time of a process: names of process and processor, nanoseconds.
pub const PROCESS: u8 = 5;
/// The wall clock of the record that follows.
pub const WALL: u8 = 6;
/// The processor time of the record that follows.
pub const CPU: u8 = 7;
/// The child of the record that follows.
pub const CHILD: u8 = 8;
/// The tag of a record: this bit, the probe in the low three, and the bits below.
pub const RECORD: u8 = 0x80;
/// Times on the wall follow.
pub const HAS_WALL: u8 = 0x08;
/// Processor times follow.
pub const HAS_CPU: u8 = 0x10;
/// Flags, and perhaps a child, follow.
pub const HAS_MORE: u8 = 0x20;
/// All clocks were read once.
pub const POINTS: u8 = 0x40;
/// Beside the flags of a record: a child follows.
pub const HAS_CHILD: u8 = 0x80;

/// The call is one-way.
pub const ONEWAY: u8 = 1;
/// The probes of stub and skeleton are fused.
pub const COLLOCATED: u8 = 2;
/// The call or branch was given up.
pub const CANCELLED: u8 = 4;

/// The record before: the next one holds differences from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Last {
    /// The number of its chain.
    pub chain: u32,
    /// Its number in the chain.
    pub event: u32,
    /// The end of its times on the wall, or the last there were, in nanoseconds.
    pub wall: i64,
    /// The same of processor time.
    pub cpu: i64,
}

/// A record, its names and chains by their numbers. Times are begin and end of the probe, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordEntry {
    /// The probe: 0 to 5 for stub start, skeleton start, skeleton end, stub end, thread start and thread end.
    pub probe: u8,
    /// [`ONEWAY`] and its like.
    pub flags: u8,
    /// The site.
    pub site: u32,
    /// The chain.
    pub chain: u32,
    /// Its number in the chain.
    pub event: u32,
    /// The chain that begins here.
    pub child: Option<u32>,
    /// On the wall.
    pub wall: Option<(i64, i64)>,
    /// Of the processor.
    pub cpu: Option<(i64, i64)>,
}

/// Writes entries into buffers that the caller empties. Numbers of names, sites and chains are the caller's.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    last: Last,
    entry: Vec<u8>,
}

impl Writer {
    /// A writer at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the file.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
    }

    /// Writes the header: epoch, clock and cost of a probe.
    pub fn header(&self, values: [&str; 3], out: &mut Vec<u8>) {
        out.push(HEADER);
        for value in values {
            text(value.as_bytes(), out);
        }
    }

    /// Writes a [`NAME`] or a [`CHAIN`].
    pub fn text(&self, tag: u8, content: &[u8], out: &mut Vec<u8>) {
        out.push(tag);
        text(content, out);
    }

    /// Writes a [`SITE`].
    pub fn site(&self, names: [u32; 6], out: &mut Vec<u8>) {
        out.push(SITE);
        for name in names {
            unsigned(name.into(), out);
        }
    }

    /// Writes the processor time of a process on a processor, in nanoseconds.
    pub fn process(&self, names: [u32; 2], cpu: i64, out: &mut Vec<u8>) {
        out.push(PROCESS);
        for name in names {
            unsigned(name.into(), out);
        }
        signed(cpu, out);
    }

    /// Writes a record; gives the bytes of its longest entry.
    pub fn record(&mut self, record: &RecordEntry, out: &mut Vec<u8>) -> usize {
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        self.put(record, &mut entry);
        let mut longest = entry.len();
        if longest > RECORD_BYTES {
            longest = ahead(record, out);
            entry.clear();
            self.put(&RecordEntry { child: None, wall: None, cpu: None, ..*record }, &mut entry);
            longest = longest.max(entry.len());
        }
        out.extend_from_slice(&entry);
        self.entry = entry;
        let Last { wall, cpu, .. } = self.last;
        self.last = Last {
            chain: record.chain,
            event: record.event,
            wall: record.wall.map_or(wall, |(_, end)| end),
            cpu: record.cpu.map_or(cpu, |(_, end)| end),
        };
        longest
    }

    fn put(&self, record: &RecordEntry, out: &mut Vec<u8>) {
        let RecordEntry { probe, flags, site, chain, event, child, wall, cpu } = *record;
        let more = flags | if child.is_some() { HAS_CHILD } else { 0 };
        let points = [wall, cpu].into_iter().flatten().all(|(begin, end)| begin == end);
        let mut tag = RECORD | probe;
        for (bit, set) in
            [(HAS_WALL, wall.is_some()), (HAS_CPU, cpu.is_some()), (HAS_MORE, more != 0), (POINTS, points)]
        {
            tag |= if set { bit } else { 0 };
        }
        out.push(tag);
        if more != 0 {
            out.push(more);
        }
        unsigned(site.into(), out);
        signed(i64::from(chain) - i64::from(self.last.chain), out);
        signed(i64::from(event) - i64::from(self.last.event), out);
        for (reading, before) in [(wall, self.last.wall), (cpu, self.last.cpu)] {
            if let Some((begin, end)) = reading {
                signed(begin.wrapping_sub(before), out);
                if !points {
                    signed(end.wrapping_sub(begin), out);
                }
            }
        }
        if let Some(child) = child {
            unsigned(child.into(), out);
        }
    }
}

/// Writes the times and the child of a record ahead of it; gives the bytes of the longest entry.
fn ahead(record: &RecordEntry, out: &mut Vec<u8>) -> usize {
    let mut longest = 0;
    for (tag, reading) in [(WALL, record.wall), (CPU, record.cpu)] {
        if let Some((begin, end)) = reading {
            let before = out.len();
            out.push(tag);
            signed(begin, out);
            signed(end.wrapping_sub(begin), out);
            longest = longest.max(out.len() - before);
        }
    }
    if let Some(child) = record.child {
        out.push(CHILD);
        unsigned(child.into(), out);
    }
    longest
}

/// Writes a number in LEB128: seven bits a byte, the lowest first.
pub fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a signed number as an unsigned one, small ones of either sign as small ones (zigzag).
pub fn signed(value: i64, out: &mut Vec<u8>) {
    unsigned(((value << 1) ^ (value >> 63)) as u64, out);
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    unsigned(text.len() as u64, out);
    out.extend_from_slice(text);
}
