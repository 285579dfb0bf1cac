//! Files of records, whatever form they are in, read as one stream.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

use crate::binary::{self, Damage, Decoder, Entry, MAGIC};
use crate::codes;
use crate::jsonl::{self, Line};
use crate::record::{Header, ProcessTime, Record, Tables};
use dyelog_diagnostic::{Diagnostic, Place};

/// The longest line; what is longer is no record.
const LONGEST_LINE: usize = 1 << 20;

/// How many findings of a kind are kept; the others are counted.
const KEPT: usize = 10;

/// How many records are taken of one file before the next has its turn, where no clock tells which is behind.
const TURN: u64 = 256;

/// How many chains are known at once by their names when records are rewritten.
const MOST_CHAINS: usize = 1 << 20;

/// Whether a file that begins so holds probe records.
pub fn is_records(head: &[u8]) -> bool {
    if head.starts_with(MAGIC) {
        return true;
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let line = &head[..memchr::memchr(b'\n', head).unwrap_or(head.len())];
    let has = |key: &str| memchr::memmem::find(line, key.as_bytes()).is_some();
    line.starts_with(b"{")
        && (has("\"calls\"")
            || has("\"chain\"") && (has("\"probe\"") || has("\"thread_start\"") || has("\"thread_end\""))
            || has("\"process_cpu\"")
            || has("\"epoch\"") && has("\"clock\""))
}

/// What was met on the way of reading.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The files, in the order given.
    pub files: Vec<Arc<str>>,
    /// The header of each file that has one.
    pub headers: Vec<Header>,
    /// The processor times of processes, as last recorded.
    pub processes: Vec<ProcessTime>,
    /// Records read.
    pub records: u64,
    /// Lines that are no records, and damages of binary files.
    pub unreadable: u64,
    /// What the reader of another format than records left out or changed, and how often.
    pub odd: BTreeMap<&'static str, u64>,
    /// What there is to say, the first ten of each kind.
    pub findings: Vec<Diagnostic>,
    unknown: Vec<String>,
}

impl Reading {
    fn unreadable(&mut self, finding: impl FnOnce() -> Diagnostic) {
        self.unreadable += 1;
        if self.unreadable as usize <= KEPT {
            self.findings.push(finding());
        }
    }

    fn unknown(&mut self, file: &Arc<str>, line: u32, key: &str) {
        if self.unknown.len() < KEPT && !self.unknown.iter().any(|known| known == key) {
            self.unknown.push(key.to_owned());
            let place = Place::Line { file: Arc::clone(file), line, column: 0 };
            let known =
                ["chain", "event", "probe", "interface", "function", "object", "thread", "process", "processor"];
            let more = ["wall", "cpu", "oneway", "child", "collocated", "cancelled", "thread_start", "thread_end"];
            self.findings.push(
                Diagnostic::warning(codes::UNKNOWN_KEY, place, format!("records have no `{key}`; it is left out"))
                    .with_similar(key, known.into_iter().chain(more).chain(["parent_thread", "process_cpu"])),
            );
        }
    }

    fn process(&mut self, time: ProcessTime) {
        match self.processes.iter_mut().find(|known| (known.process, known.processor) == (time.process, time.processor))
        {
            Some(known) => known.cpu = known.cpu.max(time.cpu),
            None => self.processes.push(time),
        }
    }
}

/// A file of records, unpacked.
pub struct Input<'a> {
    name: Arc<str>,
    form: Form<'a>,
    last_wall: i64,
    taken: u64,
    line: u32,
}

enum Form<'a> {
    New(Box<dyn Read + Send + 'a>),
    Lines(Lines<'a>),
    Binary(Box<Decoder<Box<dyn Read + Send + 'a>>>),
    Done,
}

impl<'a> Input<'a> {
    /// A file and its content; archives are unpacked by the caller.
    pub fn new(name: impl Into<Arc<str>>, content: impl Read + Send + 'a) -> Self {
        Self { name: name.into(), form: Form::New(Box::new(content)), last_wall: i64::MIN, taken: 0, line: 0 }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// When the file cannot be read.
    #[inline]
    fn next(&mut self, file: u16, tables: &mut Tables, reading: &mut Reading) -> Result<Option<Record>, Diagnostic> {
        loop {
            let record = match &mut self.form {
                Form::New(_) => {
                    self.open()?;
                    continue;
                }
                Form::Lines(lines) => {
                    let Some(line) = lines.next().map_err(|error| unreadable(&self.name, &error))? else {
                        self.form = Form::Done;
                        continue;
                    };
                    self.line = self.line.saturating_add(1);
                    match line_of(line, self.line, (file, &self.name), tables, reading) {
                        Some(record) => record,
                        None => continue,
                    }
                }
                Form::Binary(decoder) => match decoder.next(tables) {
                    Ok(Entry::Record(record)) => {
                        self.line = self.line.saturating_add(1);
                        record
                    }
                    Ok(Entry::Header(header)) => {
                        tables.header(file, &header);
                        reading.headers.push(header);
                        continue;
                    }
                    Ok(Entry::Process(time)) => {
                        reading.process(time);
                        continue;
                    }
                    Ok(Entry::End) => {
                        self.form = Form::Done;
                        continue;
                    }
                    Err(Damage::Input(error)) => return Err(unreadable(&self.name, &error)),
                    Err(Damage::At(byte, what)) => {
                        let file = Arc::clone(&self.name);
                        reading.unreadable(|| {
                            let place = Place::Item { file, item: format!("byte {byte}") };
                            Diagnostic::warning(
                                codes::DAMAGED,
                                place,
                                format!("{what}; the rest of the file is left out"),
                            )
                            .with_note("a process that is killed leaves its last entry incomplete")
                        });
                        self.form = Form::Done;
                        continue;
                    }
                },
                Form::Done => return Ok(None),
            };
            reading.records += 1;
            self.taken += 1;
            if record.wall.is_some() {
                self.last_wall = record.wall.begin;
            }
            return Ok(Some(Record { file, line: self.line, ..record }));
        }
    }

    fn open(&mut self) -> Result<(), Diagnostic> {
        let Form::New(mut content) = std::mem::replace(&mut self.form, Form::Done) else { return Ok(()) };
        let mut head = Vec::with_capacity(MAGIC.len());
        content
            .by_ref()
            .take(MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|error| unreadable(&self.name, &error))?;
        self.form = if head == MAGIC {
            Form::Binary(Box::new(Decoder::new(content)))
        } else {
            Form::Lines(Lines::new(head, content))
        };
        Ok(())
    }
}

fn unreadable(name: &Arc<str>, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::UNREADABLE, Place::File { file: Arc::clone(name) }, format!("it cannot be read: {error}"))
}

/// What a line is; what is no record is reported.
fn line_of(
    bytes: &[u8],
    number: u32,
    (file, name): (u16, &Arc<str>),
    tables: &mut Tables,
    reading: &mut Reading,
) -> Option<Record> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let bytes = if number == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let bad = |message: &str, column: usize| {
        let place = Place::Line { file: Arc::clone(name), line: number, column: column as u32 };
        Diagnostic::warning(codes::BAD_LINE, place, format!("this line is not a record: {message}"))
    };
    if bytes.len() > LONGEST_LINE {
        reading.unreadable(|| bad("it is longer than 1 MiB", 0));
        return None;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        reading.unreadable(|| bad("it is not UTF-8", 0));
        return None;
    };
    match jsonl::line(text, tables, &mut |key| reading.unknown(name, number, key)) {
        Ok(Line::Record(record)) => return Some(record),
        Ok(Line::Header(header)) => {
            tables.header(file, &header);
            reading.headers.push(header);
        }
        Ok(Line::Process(time)) => reading.process(time),
        Err(fault) => reading.unreadable(|| bad(&fault.message, fault.at + 1)),
    }
    None
}

/// Lines of bytes, in a buffer that grows up to what the longest line needs.
struct Lines<'a> {
    input: Box<dyn Read + Send + 'a>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    ended: bool,
}

impl<'a> Lines<'a> {
    fn new(head: Vec<u8>, input: Box<dyn Read + Send + 'a>) -> Self {
        let filled = head.len();
        let mut buffer = head;
        buffer.resize(1 << 16, 0);
        Self { input, buffer, at: 0, filled, ended: false }
    }

    /// The next line; one that is too long comes cut, but longer than any may be.
    fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let there = &self.buffer[self.at..self.filled];
            if let Some(end) = memchr::memchr(b'\n', &there[searched..]) {
                let start = self.at;
                self.at += searched + end + 1;
                return Ok(Some(&self.buffer[start..start + searched + end]));
            }
            searched = there.len();
            if self.ended {
                let start = self.at;
                self.at = self.filled;
                return Ok((start < self.filled).then(|| &self.buffer[start..self.filled]));
            }
            if searched > LONGEST_LINE + 2 {
                return self.skip_line().map(Some);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> std::io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(count) => {
                    self.filled += count;
                    self.ended = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Drops the rest of a line that is too long.
    fn skip_line(&mut self) -> std::io::Result<&[u8]> {
        let kept = self.buffer[self.at..self.filled].to_vec();
        self.at = self.filled;
        while !self.ended {
            self.at = self.filled;
            self.fill()?;
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.at..self.filled]) {
                self.at += end + 1;
                break;
            }
        }
        // The cut line is kept where it does not overwrite what follows.
        let rest = self.buffer[self.at..self.filled].to_vec();
        self.buffer = kept;
        self.at = self.buffer.len();
        self.buffer.extend_from_slice(&rest);
        self.filled = self.buffer.len();
        Ok(&self.buffer[..self.at])
    }
}

/// Several files as one stream of records: that which is behind by the clock goes first; without clocks, each in turn.
pub struct Merged<'a> {
    inputs: Vec<(u16, Input<'a>)>,
    current: usize,
    left: u64,
}

impl<'a> Merged<'a> {
    /// All of these files.
    ///
    /// # Errors
    /// When there are more than 65,536 of them.
    pub fn new(inputs: Vec<Input<'a>>, reading: &mut Reading) -> Result<Self, Diagnostic> {
        if inputs.len() > usize::from(u16::MAX) + 1 {
            let message = "there are more than 65536 files of records";
            return Err(Diagnostic::error(codes::UNREADABLE, Place::Nowhere, message));
        }
        reading.files = inputs.iter().map(|input| Arc::clone(&input.name)).collect();
        let inputs = inputs.into_iter().enumerate().map(|(number, input)| (number as u16, input)).collect();
        Ok(Self { inputs, current: 0, left: 0 })
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// When a file cannot be read.
    #[inline]
    pub fn next(&mut self, tables: &mut Tables, reading: &mut Reading) -> Result<Option<Record>, Diagnostic> {
        loop {
            if self.left == 0 {
                if self.inputs.is_empty() {
                    return Ok(None);
                }
                let behind = self
                    .inputs
                    .iter()
                    .enumerate()
                    .min_by_key(|(_, (file, input))| (input.last_wall, input.taken, *file));
                self.current = behind.map_or(0, |(place, _)| place);
                self.left = TURN;
            }
            let (file, input) = &mut self.inputs[self.current];
            match input.next(*file, tables, reading)? {
                Some(record) => {
                    self.left -= 1;
                    return Ok(Some(record));
                }
                None => {
                    self.inputs.remove(self.current);
                    self.left = 0;
                }
            }
        }
    }
}

/// A form of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// JSON Lines.
    Lines,
    /// The binary form.
    Binary,
}

/// Rewrites files of records as one file in the given form, in the order in which they stand.
///
/// # Errors
/// When a file cannot be read, or the sink fails (as an error of the input would).
pub fn convert(inputs: Vec<Input<'_>>, target: Target, sink: &mut dyn std::io::Write) -> Result<Reading, Diagnostic> {
    let (mut tables, mut reading) = (Tables::new(), Reading::default());
    let mut writer = binary::Writer::new();
    let (mut text, mut bytes) = (String::new(), Vec::new());
    let mut write = |text: &mut String, bytes: &mut Vec<u8>, all: bool| {
        if all || text.len() + bytes.len() > 1 << 16 {
            sink.write_all(text.as_bytes()).and_then(|()| sink.write_all(bytes)).map_err(|error| {
                Diagnostic::error(codes::UNREADABLE, Place::Nowhere, format!("records cannot be written: {error}"))
            })?;
            text.clear();
            bytes.clear();
        }
        Ok(())
    };
    let (mut headers, mut first) = (0, true);
    for (number, mut input) in inputs.into_iter().enumerate() {
        reading.files.push(Arc::clone(&input.name));
        let mut forget = tables.are_chains_apart();
        loop {
            if tables.chains() > MOST_CHAINS && !tables.are_chains_apart() {
                // A binary file announces each of its chains once, and may come back to it at any time. Lines name their chains.
                match input.form {
                    Form::Binary(_) => tables.keep_chains_apart(),
                    _ => forget = true,
                }
            }
            if std::mem::take(&mut forget) {
                tables.forget_chains();
                writer.forget_chains();
            }
            let record = input.next(number as u16, &mut tables, &mut reading)?;
            // Headers stand before the records that they are about; the first one stands for all.
            if first && (record.is_some() || headers < reading.headers.len()) {
                first = false;
                let header = reading.headers.first().cloned().unwrap_or_default();
                match target {
                    Target::Lines => jsonl::write_header(&header, &mut text),
                    Target::Binary => writer.header(&header, &mut bytes),
                }
            }
            headers = reading.headers.len();
            let Some(record) = record else { break };
            match target {
                Target::Lines => jsonl::write_record(&record, &tables, &mut text),
                Target::Binary => drop(writer.record(&record, &tables, &mut bytes)),
            }
            write(&mut text, &mut bytes, false)?;
        }
    }
    for time in &reading.processes {
        match target {
            Target::Lines => jsonl::write_process(time, &tables, &mut text),
            Target::Binary => writer.process(time, &tables, &mut bytes),
        }
    }
    write(&mut text, &mut bytes, true)?;
    let _ = text.write_str("");
    Ok(reading)
}
