//! Records in the binary form of the format `calls`: the magic, then entries, each with a tag. Numbers are LEB128, signed ones zigzag.
//!
//! Names, sites and chains are numbered from 0 as they come, and name 0 is the empty string. A record has its times as differences from the record
//! before it. Where that takes more than 24 bytes, times and child go ahead in entries of their own.

use std::collections::HashMap;

use super::{Header, Process, Times};
use crate::buffer::{Chunk, NO_CHAIN, Probe, Raw};
use crate::clock::Scale;
use crate::function;

const MAGIC: &[u8; 8] = b"dycalls\x01";
const LONGEST_RECORD: usize = 24;

const NAME: u8 = 1;
const SITE: u8 = 2;
const CHAIN: u8 = 3;
const HEADER: u8 = 4;
const PROCESS: u8 = 5;
const WALL: u8 = 6;
const CPU: u8 = 7;
const CHILD: u8 = 8;
const RECORD: u8 = 0x80;
const HAS_WALL: u8 = 0x08;
const HAS_CPU: u8 = 0x10;
const HAS_MORE: u8 = 0x20;
const POINTS: u8 = 0x40;
const HAS_CHILD: u8 = 0x80;

/// How many numbers of chains, names and sites are remembered; then they are announced anew.
const MOST_REMEMBERED: usize = 1 << 16;

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    chain: u32,
    event: u32,
    wall: i64,
    cpu: i64,
}

pub(crate) struct Encoder {
    scale: Scale,
    process: [u32; 2],
    names: HashMap<String, u32>,
    next_name: u32,
    /// By thread, function and starting thread.
    sites: HashMap<[u32; 3], u32>,
    next_site: u32,
    chains: HashMap<u64, u32>,
    next_chain: u32,
    last: Last,
    entry: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(process: &Process, header: &Header, scale: Scale, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(MAGIC);
        out.push(HEADER);
        for value in header.values() {
            text(value.as_bytes(), out);
        }
        let mut encoder = Self {
            scale,
            process: [0; 2],
            names: HashMap::new(),
            next_name: 1,
            sites: HashMap::new(),
            next_site: 0,
            chains: HashMap::new(),
            next_chain: 0,
            last: Last::default(),
            entry: Vec::new(),
        };
        encoder.process = [encoder.name(&process.process, out), encoder.name(&process.processor, out)];
        encoder
    }

    pub(crate) fn process_time(&self, time: i64, out: &mut Vec<u8>) {
        out.push(PROCESS);
        for name in self.process {
            unsigned(u64::from(name), out);
        }
        signed(time, out);
    }

    pub(crate) fn chunk(&mut self, thread: &str, chunk: &Chunk, out: &mut Vec<u8>) {
        let thread = self.name(thread, out);
        // Consecutive records of a thread mostly share chain and site.
        let (mut chain, mut site) = ((NO_CHAIN, 0), ([NO_CHAIN; 3], 0));
        for raw in &chunk.records {
            if chain.0 != raw.chain {
                chain = (raw.chain, self.chain(chunk, raw.chain, out));
            }
            let child = (raw.child != NO_CHAIN).then(|| self.chain(chunk, raw.child, out));
            let key = match raw.probe {
                Probe::ThreadStart => {
                    let parent = chunk.labels.get((raw.function as usize).wrapping_sub(1));
                    let parent = parent.map_or(0, |label| self.name(label, out));
                    [thread, 0, parent]
                }
                Probe::ThreadEnd => [thread, 0, 0],
                _ => [thread, raw.function, 0],
            };
            if site.0 != key {
                site = (key, self.site(key, out));
            }
            self.record(raw, chain.1, site.1, child, out);
        }
    }

    fn record(&mut self, raw: &Raw, chain: u32, site: u32, child: Option<u32>, out: &mut Vec<u8>) {
        let times = Times::of(raw, self.scale);
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        self.entry(raw, [site, chain], child, times, &mut entry);
        if entry.len() > LONGEST_RECORD {
            if let Some((begin, end)) = times.wall {
                out.push(WALL);
                signed(begin, out);
                signed(end.wrapping_sub(begin), out);
            }
            if let Some(cpu) = times.cpu {
                out.push(CPU);
                signed(cpu, out);
                signed(0, out);
            }
            if let Some(child) = child {
                out.push(CHILD);
                unsigned(u64::from(child), out);
            }
            entry.clear();
            self.entry(raw, [site, chain], None, Times { wall: None, cpu: None }, &mut entry);
        }
        out.extend_from_slice(&entry);
        self.entry = entry;
        let Last { wall, cpu, .. } = self.last;
        self.last = Last {
            chain,
            event: raw.event,
            wall: times.wall.map_or(wall, |(_, end)| end),
            cpu: times.cpu.unwrap_or(cpu),
        };
    }

    fn entry(&self, raw: &Raw, [site, chain]: [u32; 2], child: Option<u32>, times: Times, out: &mut Vec<u8>) {
        let more = raw.flags | if child.is_some() { HAS_CHILD } else { 0 };
        let points = times.wall.is_none_or(|(begin, end)| begin == end);
        let mut tag = RECORD | raw.probe as u8;
        let bits =
            [(HAS_WALL, times.wall.is_some()), (HAS_CPU, times.cpu.is_some()), (HAS_MORE, more != 0), (POINTS, points)];
        for (bit, set) in bits {
            tag |= if set { bit } else { 0 };
        }
        out.push(tag);
        if more != 0 {
            out.push(more);
        }
        unsigned(u64::from(site), out);
        signed(i64::from(chain) - i64::from(self.last.chain), out);
        signed(i64::from(raw.event) - i64::from(self.last.event), out);
        let readings = [(times.wall, self.last.wall), (times.cpu.map(|cpu| (cpu, cpu)), self.last.cpu)];
        for (reading, before) in readings {
            if let Some((begin, end)) = reading {
                signed(begin.wrapping_sub(before), out);
                if !points {
                    signed(end.wrapping_sub(begin), out);
                }
            }
        }
        if let Some(child) = child {
            unsigned(u64::from(child), out);
        }
    }

    fn name(&mut self, name: &str, out: &mut Vec<u8>) -> u32 {
        if name.is_empty() {
            return 0;
        }
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        if self.names.len() >= MOST_REMEMBERED {
            self.names.clear();
        }
        out.push(NAME);
        text(name.as_bytes(), out);
        self.names.insert(name.to_owned(), self.next_name);
        self.next_name += 1;
        self.next_name - 1
    }

    fn site(&mut self, key: [u32; 3], out: &mut Vec<u8>) -> u32 {
        if let Some(&number) = self.sites.get(&key) {
            return number;
        }
        let [thread, function, parent] = key;
        let [interface, function, object] = match function {
            0 => [0, 0, parent],
            _ => function::names(function).map(|name| self.name(&name, out)),
        };
        if self.sites.len() >= MOST_REMEMBERED {
            self.sites.clear();
        }
        out.push(SITE);
        for name in [interface, function, object, thread, self.process[0], self.process[1]] {
            unsigned(u64::from(name), out);
        }
        self.sites.insert(key, self.next_site);
        self.next_site += 1;
        self.next_site - 1
    }

    fn chain(&mut self, chunk: &Chunk, place: u32, out: &mut Vec<u8>) -> u32 {
        let chain = &chunk.chains[place as usize];
        if let Some(&number) = self.chains.get(&chain.number) {
            return number;
        }
        if self.chains.len() >= MOST_REMEMBERED {
            self.chains.clear();
        }
        let mut name = Vec::with_capacity(40);
        chain.name(&mut name);
        out.push(CHAIN);
        text(&name, out);
        self.chains.insert(chain.number, self.next_chain);
        self.next_chain += 1;
        self.next_chain - 1
    }
}

fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn signed(value: i64, out: &mut Vec<u8>) {
    unsigned(((value << 1) ^ (value >> 63)) as u64, out);
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    unsigned(text.len() as u64, out);
    out.extend_from_slice(text);
}
