//! Records written to files: in the binary form, and as JSON Lines.

mod binary;
mod lines;

use std::fmt;
use std::io::Write;

use crate::buffer::{Chunk, Raw};
use crate::clock::{NONE, Scale};

pub(crate) use lines::escaped;

/// A form of records; `dyelog` reads both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// At most 24 bytes a record, names apart: the form of `dyelog-wire`.
    Binary,
    /// JSON Lines: a record a line, for people to read.
    Lines,
}

/// The process that records.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) process: String,
    pub(crate) processor: String,
}

/// What the header says.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) clock: &'static str,
    /// Nanoseconds of a probe, of each clock that it reads.
    pub(crate) cost: Vec<(&'static str, u64)>,
}

impl Header {
    /// Each value as JSON: epoch, clock, cost of a probe.
    fn values(&self) -> [String; 3] {
        let cost: Vec<String> = self.cost.iter().map(|(clock, cost)| format!("\"{clock}\":{cost}")).collect();
        ["\"unix\"".to_owned(), format!("\"{}\"", self.clock), format!("{{{}}}", cost.join(","))]
    }
}

/// The times of a record in nanoseconds: begin and end on the wall, and of the thread.
#[derive(Clone, Copy, Debug)]
struct Times {
    wall: Option<(i64, i64)>,
    cpu: Option<i64>,
}

impl Times {
    fn of(raw: &Raw, scale: Scale) -> Self {
        let stamp = raw.stamp;
        let wall = (stamp.begin != NONE).then(|| (scale.nanoseconds(stamp.begin), scale.nanoseconds(stamp.end)));
        Self { wall, cpu: Some(stamp.cpu).filter(|cpu| *cpu != NONE) }
    }
}

enum Encoder {
    Binary(Box<binary::Encoder>),
    Lines(lines::Encoder),
}

/// A file that records go to.
pub(crate) struct Output {
    name: String,
    encoder: Encoder,
    sink: Box<dyn Write + Send>,
    pending: Vec<u8>,
    /// Records that wait to be written, that were written, and that never will be.
    records: u64,
    written: u64,
    failed: Option<String>,
    unwritten: u64,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("name", &self.name).field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Output {
    pub(crate) fn new(
        form: Form,
        name: String,
        sink: Box<dyn Write + Send>,
        process: &Process,
        header: &Header,
        scale: Scale,
    ) -> Self {
        let mut pending = Vec::new();
        let encoder = match form {
            Form::Binary => Encoder::Binary(Box::new(binary::Encoder::new(process, header, scale, &mut pending))),
            Form::Lines => Encoder::Lines(lines::Encoder::new(process, header, scale, &mut pending)),
        };
        Self { name, encoder, sink, pending, records: 0, written: 0, failed: None, unwritten: 0 }
    }

    /// An output that could not be opened: what goes to it is counted.
    pub(crate) fn broken(mut self, why: String) -> Self {
        self.failed = Some(why);
        self
    }

    /// Takes the records of a thread.
    pub(crate) fn chunk(&mut self, thread: &str, chunk: &Chunk) {
        let count = chunk.records.len() as u64;
        if self.failed.is_some() {
            self.unwritten += count;
            return;
        }
        self.records += count;
        match &mut self.encoder {
            Encoder::Binary(encoder) => encoder.chunk(thread, chunk, &mut self.pending),
            Encoder::Lines(encoder) => encoder.chunk(thread, chunk, &mut self.pending),
        }
    }

    /// Takes what the process has used so far.
    pub(crate) fn process_time(&mut self, time: i64) {
        if self.failed.is_none() {
            match &mut self.encoder {
                Encoder::Binary(encoder) => encoder.process_time(time, &mut self.pending),
                Encoder::Lines(encoder) => encoder.process_time(time, &mut self.pending),
            }
        }
    }

    /// Writes out what it took once it is much.
    pub(crate) fn write_if_full(&mut self) {
        if self.pending.len() > 1 << 20 {
            self.flush();
        }
    }

    /// Writes out what it took. After an error nothing more is written: the file ends with what was whole.
    pub(crate) fn flush(&mut self) {
        if self.failed.is_none()
            && !self.pending.is_empty()
            && let Err(error) = self.sink.write_all(&self.pending).and_then(|()| self.sink.flush())
        {
            self.failed = Some(error.to_string());
            self.unwritten += std::mem::take(&mut self.records);
        }
        self.written += std::mem::take(&mut self.records);
        self.pending.clear();
        self.pending.shrink_to(1 << 20);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// What went wrong, with its name.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(|why| format!("{}: {why}", self.name))
    }

    /// Records that were written, and that were not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written, self.unwritten)
    }
}
