//! The binary form of records, which probes write: entries of [`dyelog_wire`] to and from the tables of records.

use std::io::Read;

use dyelog_wire::{
    CHAIN, CHILD, CPU, HAS_CHILD, HAS_CPU, HAS_MORE, HAS_WALL, HEADER, Last, NAME, POINTS, PROCESS, RECORD,
    RecordEntry, SITE, WALL,
};
use rustc_hash::FxHashMap;

use crate::record::{ChainId, Header, Name, Probe, ProcessTime, Reading, Record, Site, SiteId, Tables};

pub use dyelog_wire::{MAGIC, RECORD_BYTES};

/// The longest name, in bytes; a longer one is damage.
const LONGEST_NAME: u64 = 1 << 20;

/// No number.
const UNKNOWN: u32 = u32::MAX;

/// Writes records in the binary form into a buffer that the caller empties.
#[derive(Debug, Default)]
pub struct Writer {
    names: FxHashMap<Name, u32>,
    sites: FxHashMap<SiteId, u32>,
    /// The numbers that chains were announced with, [`UNKNOWN`] for none, and how many announcements there were.
    chains: Vec<u32>,
    announced: u32,
    entries: dyelog_wire::Writer,
    begun: bool,
}

impl Writer {
    /// A writer at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.begun {
            self.begun = true;
            self.entries.begin(out);
            self.names.insert(Name(0), 0);
        }
    }

    /// Writes the header.
    pub fn header(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.begin(out);
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        let values = [&header.epoch, &header.clock, &header.probe_cost].map(value);
        self.entries.header([&values[0], &values[1], &values[2]], out);
    }

    /// Writes the processor time of a process.
    pub fn process(&mut self, time: &ProcessTime, tables: &Tables, out: &mut Vec<u8>) {
        self.begin(out);
        let (process, processor) = (self.name(time.process, tables, out), self.name(time.processor, tables, out));
        self.entries.process([process, processor], time.cpu, out);
    }

    /// Writes a record, and before it what names it needs; gives the bytes of its longest entry.
    pub fn record(&mut self, record: &Record, tables: &Tables, out: &mut Vec<u8>) -> usize {
        self.begin(out);
        let site = self.site(record.site, tables, out);
        let chain = self.chain(record.chain, tables, out);
        let child = (record.child != ChainId::NONE).then(|| self.chain(record.child, tables, out));
        let times = |reading: Reading| reading.is_some().then_some((reading.begin, reading.end));
        let entry = RecordEntry {
            probe: record.probe as u8,
            flags: record.flags,
            site,
            chain,
            event: record.event,
            child,
            wall: times(record.wall),
            cpu: times(record.cpu),
        };
        self.entries.record(&entry, out)
    }

    fn name(&mut self, name: Name, tables: &Tables, out: &mut Vec<u8>) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.names.entry(name).or_insert(next);
        if number == next {
            self.entries.text(NAME, tables.text(name).as_bytes(), out);
        }
        number
    }

    fn site(&mut self, site: SiteId, tables: &Tables, out: &mut Vec<u8>) -> u32 {
        if let Some(&number) = self.sites.get(&site) {
            return number;
        }
        let Site { interface, function, object, thread, process, processor } = tables.of(site);
        let names = [interface, function, object, thread, process, processor].map(|name| self.name(name, tables, out));
        self.entries.site(names, out);
        let number = self.sites.len() as u32;
        self.sites.insert(site, number);
        number
    }

    fn chain(&mut self, chain: ChainId, tables: &Tables, out: &mut Vec<u8>) -> u32 {
        let place = chain.0 as usize;
        if self.chains.len() <= place {
            self.chains.resize(place + 1, UNKNOWN);
        }
        if self.chains[place] == UNKNOWN {
            self.chains[place] = self.announced;
            self.announced = self.announced.checked_add(1).expect("a file has fewer than 2^32 chains");
            self.entries.text(CHAIN, tables.chain_to_write(chain).as_bytes(), out);
        }
        self.chains[place]
    }

    /// Forgets all chains, as the tables did; those that go on are announced again.
    pub(crate) fn forget_chains(&mut self) {
        self.chains.clear();
    }
}

/// What an entry came to.
pub(crate) enum Entry {
    Record(Record),
    Header(Header),
    Process(ProcessTime),
    End,
}

/// What is wrong with a binary file, at which byte of it.
#[derive(Debug)]
pub(crate) enum Damage {
    Input(std::io::Error),
    At(u64, &'static str),
}

/// Reads the binary form; the magic was read before.
pub(crate) struct Decoder<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    filled: usize,
    /// Bytes before the buffer.
    passed: u64,
    names: Vec<Name>,
    sites: Vec<SiteId>,
    chains: Vec<ChainId>,
    last: Last,
    wall: Reading,
    cpu: Reading,
    child: ChainId,
}

/// The bytes that are at hand when an entry without text is decoded, but for the end of the file.
const AT_HAND: usize = 128;

impl<R: Read> Decoder<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; 1 << 16].into_boxed_slice(),
            at: 0,
            filled: 0,
            passed: MAGIC.len() as u64,
            names: vec![Name(0)],
            sites: Vec::new(),
            chains: Vec::new(),
            last: Last::default(),
            wall: Reading::NONE,
            cpu: Reading::NONE,
            child: ChainId::NONE,
        }
    }

    /// The next record, header or process; dictionary entries on the way go into the tables.
    #[inline]
    pub(crate) fn next(&mut self, tables: &mut Tables) -> Result<Entry, Damage> {
        loop {
            if self.filled - self.at < AT_HAND {
                self.fill()?;
                if self.filled == self.at {
                    return Ok(Entry::End);
                }
            }
            let tag = self.byte()?;
            if tag & RECORD != 0 {
                return self.record(tag, tables).map(Entry::Record);
            }
            match tag {
                NAME => {
                    let text = self.text()?;
                    self.names.push(tables.name(&text));
                }
                SITE => {
                    let [interface, function, object, thread, process, processor] = self.six_names()?;
                    let site = Site { interface, function, object, thread, process, processor };
                    self.sites.push(tables.site(site));
                }
                CHAIN => {
                    let text = self.text()?;
                    self.chains.push(tables.chain(&text));
                }
                HEADER => return self.header().map(Entry::Header),
                PROCESS => {
                    let (process, processor) = (self.name()?, self.name()?);
                    let cpu = self.signed()?;
                    return Ok(Entry::Process(ProcessTime { process, processor, cpu: cpu.max(0) }));
                }
                WALL => self.wall = self.reading()?,
                CPU => self.cpu = self.reading()?,
                CHILD => self.child = self.chain()?,
                _ => return Err(self.damage("no entry begins so")),
            }
        }
    }

    #[inline]
    fn record(&mut self, tag: u8, tables: &Tables) -> Result<Record, Damage> {
        let Some(&probe) = Probe::ALL.get(usize::from(tag & 7)) else {
            return Err(self.damage("there is no such probe"));
        };
        let more = if tag & HAS_MORE != 0 { self.byte()? } else { 0 };
        let site = self.unsigned()?;
        let Some(&site) = self.sites.get(site as usize) else { return Err(self.damage("a site is not announced")) };
        let number = i64::from(self.last.chain).wrapping_add(self.signed()?);
        let Some(&chain) = usize::try_from(number).ok().and_then(|number| self.chains.get(number)) else {
            return Err(self.damage("a chain is not announced"));
        };
        let event = i64::from(self.last.event).wrapping_add(self.signed()?);
        let Some(event) = u32::try_from(event).ok().filter(|event| *event > 0) else {
            return Err(self.damage("an event has an impossible number"));
        };
        self.last.chain = number as u32;
        self.last.event = event;
        let mut wall = std::mem::replace(&mut self.wall, Reading::NONE);
        let mut cpu = std::mem::replace(&mut self.cpu, Reading::NONE);
        if tag & HAS_WALL != 0 {
            wall = self.difference(self.last.wall, tag & POINTS != 0)?;
        }
        if tag & HAS_CPU != 0 {
            cpu = self.difference(self.last.cpu, tag & POINTS != 0)?;
        }
        if wall.is_some() {
            self.last.wall = wall.end;
        }
        if cpu.is_some() {
            self.last.cpu = cpu.end;
        }
        let mut child = std::mem::replace(&mut self.child, ChainId::NONE);
        if more & HAS_CHILD != 0 {
            child = self.chain()?;
        }
        let flags = more & (Record::ONEWAY | Record::COLLOCATED | Record::CANCELLED);
        let (oneway, collocated) = (flags & Record::ONEWAY != 0, flags & Record::COLLOCATED != 0);
        let begins = probe == Probe::ThreadStart || probe == Probe::StubStart && oneway;
        let thread = matches!(probe, Probe::ThreadStart | Probe::ThreadEnd);
        let nameless = tables.of(site).function == Name(0);
        let stub = matches!(probe, Probe::StubStart | Probe::StubEnd);
        if begins != (child != ChainId::NONE) || thread != nameless || collocated && (oneway || !stub) {
            return Err(self.damage("a record contradicts itself"));
        }
        Ok(Record { chain, event, site, child, wall, cpu, line: 0, file: 0, probe, flags })
    }

    #[inline]
    fn difference(&mut self, before: i64, point: bool) -> Result<Reading, Damage> {
        let begin = before.wrapping_add(self.signed()?);
        let end = if point { begin } else { begin.wrapping_add(self.signed()?) };
        self.sound(Reading { begin, end })
    }

    fn reading(&mut self) -> Result<Reading, Damage> {
        let begin = self.signed()?;
        let end = begin.wrapping_add(self.signed()?);
        self.sound(Reading { begin, end })
    }

    #[inline]
    fn sound(&self, reading: Reading) -> Result<Reading, Damage> {
        let latest = crate::jsonl::LATEST;
        let possible = |time: i64| time > -latest && time < latest;
        if possible(reading.begin) && possible(reading.end) {
            Ok(reading)
        } else {
            Err(self.damage("a time is impossible"))
        }
    }

    fn header(&mut self) -> Result<Header, Damage> {
        let mut value = || self.text().map(|text| Some(text).filter(|text| !text.is_empty()));
        Ok(Header { epoch: value()?, clock: value()?, probe_cost: value()? })
    }

    fn six_names(&mut self) -> Result<[Name; 6], Damage> {
        let mut names = [Name(0); 6];
        for name in &mut names {
            *name = self.name()?;
        }
        Ok(names)
    }

    fn name(&mut self) -> Result<Name, Damage> {
        let number = self.unsigned()?;
        self.names.get(number as usize).copied().ok_or_else(|| self.damage("a name is not announced"))
    }

    fn chain(&mut self) -> Result<ChainId, Damage> {
        let number = self.unsigned()?;
        self.chains.get(number as usize).copied().ok_or_else(|| self.damage("a chain is not announced"))
    }

    fn damage(&self, what: &'static str) -> Damage {
        Damage::At(self.passed + self.at as u64, what)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Damage> {
        if self.at == self.filled {
            self.fill()?;
            if self.at == self.filled {
                return Err(self.damage("the file ends within an entry"));
            }
        }
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    #[inline]
    fn unsigned(&mut self) -> Result<u64, Damage> {
        // Most numbers have a byte or two.
        if let &[low, high, ..] = &self.buffer[self.at..self.filled] {
            if low < 0x80 {
                self.at += 1;
                return Ok(u64::from(low));
            }
            if high < 0x80 {
                self.at += 2;
                return Ok(u64::from(low & 0x7f) | u64::from(high) << 7);
            }
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Result<u64, Damage> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.damage("a number is too long"))
    }

    #[inline]
    fn signed(&mut self) -> Result<i64, Damage> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn text(&mut self) -> Result<String, Damage> {
        let length = self.unsigned()?;
        if length > LONGEST_NAME {
            return Err(self.damage("a name is too long"));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        while bytes.len() < length as usize {
            let at_hand = &self.buffer[self.at..self.filled];
            let taken = at_hand.len().min(length as usize - bytes.len());
            bytes.extend_from_slice(&at_hand[..taken]);
            self.at += taken;
            if bytes.len() < length as usize {
                bytes.push(self.byte()?);
            }
        }
        String::from_utf8(bytes).map_err(|_| self.damage("a name is not UTF-8"))
    }

    fn fill(&mut self) -> Result<(), Damage> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.passed += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        while self.filled < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Damage::Input(error)),
            }
        }
        Ok(())
    }
}
