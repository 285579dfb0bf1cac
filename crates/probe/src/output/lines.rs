//! Records as JSON Lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;

use super::{Header, Process, Times};
use crate::buffer::{CANCELLED, COLLOCATED, Chunk, NO_CHAIN, ONEWAY, Probe, Raw};
use crate::clock::Scale;
use crate::function;

pub(crate) struct Encoder {
    scale: Scale,
    /// `,"process":"…","processor":"…"`.
    process: Vec<u8>,
    /// `,"interface":"…","function":"…","object":"…"` of each function.
    functions: HashMap<u32, Vec<u8>>,
}

impl Encoder {
    pub(crate) fn new(process: &Process, header: &Header, scale: Scale, out: &mut Vec<u8>) -> Self {
        let [epoch, clock, cost] = header.values();
        text(&format!("{{\"calls\":1,\"epoch\":{epoch},\"clock\":{clock},\"probe_cost\":{cost}}}\n"), out);
        let mut names = Vec::new();
        field("process", &process.process, &mut names);
        field("processor", &process.processor, &mut names);
        Self { scale, process: names, functions: HashMap::new() }
    }

    pub(crate) fn process_time(&self, time: i64, out: &mut Vec<u8>) {
        out.push(b'{');
        // Without the comma in front.
        out.extend_from_slice(&self.process[1..]);
        text(&format!(",\"process_cpu\":{time}}}\n"), out);
    }

    pub(crate) fn chunk(&mut self, thread: &str, chunk: &Chunk, out: &mut Vec<u8>) {
        for raw in &chunk.records {
            self.record(thread, chunk, raw, out);
        }
    }

    fn record(&mut self, thread: &str, chunk: &Chunk, raw: &Raw, out: &mut Vec<u8>) {
        text("{\"chain\":\"", out);
        chunk.chains[raw.chain as usize].name(out);
        text(&format!("\",\"event\":{}", raw.event), out);
        match raw.probe {
            Probe::ThreadStart => {
                field("thread_start", thread, out);
                if let Some(parent) = chunk.labels.get((raw.function as usize).wrapping_sub(1)) {
                    field("parent_thread", parent, out);
                }
            }
            Probe::ThreadEnd => field("thread_end", thread, out),
            _ => {
                let names = ["stub_start", "skel_start", "skel_end", "stub_end"];
                field("probe", names[raw.probe as usize], out);
                out.extend_from_slice(self.functions.entry(raw.function).or_insert_with(|| function_of(raw.function)));
                field("thread", thread, out);
            }
        }
        out.extend_from_slice(&self.process);
        for (flag, key) in [(ONEWAY, "oneway"), (COLLOCATED, "collocated"), (CANCELLED, "cancelled")] {
            if raw.flags & flag != 0 {
                text(&format!(",\"{key}\":true"), out);
            }
        }
        if raw.child != NO_CHAIN {
            text(",\"child\":\"", out);
            chunk.chains[raw.child as usize].name(out);
            out.push(b'"');
        }
        let times = Times::of(raw, self.scale);
        match times.wall {
            Some((begin, end)) if begin == end => text(&format!(",\"wall\":{begin}"), out),
            Some((begin, end)) => text(&format!(",\"wall\":[{begin},{end}]"), out),
            None => {}
        }
        if let Some(cpu) = times.cpu {
            text(&format!(",\"cpu\":{cpu}"), out);
        }
        text("}\n", out);
    }
}

fn function_of(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, name) in ["interface", "function", "object"].into_iter().zip(function::names(number)) {
        if !name.is_empty() {
            field(key, &name, &mut out);
        }
    }
    out
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
}

fn field(key: &str, value: &str, out: &mut Vec<u8>) {
    text(&format!(",\"{key}\":\"{}\"", escaped(value)), out);
}

/// A string as JSON has it between its quotes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let plain = |character: char| character >= ' ' && character != '"' && character != '\\';
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend([b'\\', character as u8]),
            _ if plain(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            _ => drop(write!(out, "\\u{:04x}", character as u32)),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}
