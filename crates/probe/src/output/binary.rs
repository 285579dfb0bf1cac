//! Records in the binary form of the format `calls`: entries of [`dyelog_wire`], names, sites and chains announced as they come.

use std::collections::HashMap;

use dyelog_wire::{CHAIN, NAME, RecordEntry, Writer};

use super::{Header, Process, Times};
use crate::buffer::{Chunk, NO_CHAIN, Probe, Raw};
use crate::clock::Scale;
use crate::function;

/// How many numbers of chains, names and sites are remembered; then they are announced anew.
const MOST_REMEMBERED: usize = 1 << 16;

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
    entries: Writer,
}

impl Encoder {
    pub(crate) fn new(process: &Process, header: &Header, scale: Scale, out: &mut Vec<u8>) -> Self {
        let entries = Writer::new();
        entries.begin(out);
        let [epoch, clock, cost] = &header.values();
        entries.header([epoch, clock, cost], out);
        let mut encoder = Self {
            scale,
            process: [0; 2],
            names: HashMap::new(),
            next_name: 1,
            sites: HashMap::new(),
            next_site: 0,
            chains: HashMap::new(),
            next_chain: 0,
            entries,
        };
        encoder.process = [encoder.name(&process.process, out), encoder.name(&process.processor, out)];
        encoder
    }

    pub(crate) fn process_time(&self, time: i64, out: &mut Vec<u8>) {
        self.entries.process(self.process, time, out);
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
        let Times { wall, cpu } = Times::of(raw, self.scale);
        let (probe, cpu) = (raw.probe as u8, cpu.map(|cpu| (cpu, cpu)));
        let entry = RecordEntry { probe, flags: raw.flags, site, chain, event: raw.event, child, wall, cpu };
        self.entries.record(&entry, out);
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
        self.entries.text(NAME, name.as_bytes(), out);
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
        self.entries.site([interface, function, object, thread, self.process[0], self.process[1]], out);
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
        self.entries.text(CHAIN, &name, out);
        self.chains.insert(chain.number, self.next_chain);
        self.next_chain += 1;
        self.next_chain - 1
    }
}
