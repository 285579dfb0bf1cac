//! Records as JSON Lines: a scanner of flat objects that keeps up with the disk, and the writer.
//!
//! A line is scanned once, and strings are taken as they lie in it. Only what is rare (escapes) is handed to `serde_json`.

use std::borrow::Cow;

use crate::record::{ChainId, Header, Probe, ProcessTime, Reading, Record, Site, SiteId, Tables};

/// Times beyond this are no times: 146 years of nanoseconds.
pub(crate) const LATEST: i64 = 1 << 62;

/// What a line holds.
#[derive(Debug)]
pub(crate) enum Line {
    /// A record whose file and line are still to be filled in.
    Record(Record),
    /// The header.
    Header(Header),
    /// The processor time of a process.
    Process(ProcessTime),
}

/// What is wrong with a line, and at which byte of it, from 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// The values of a line that are given.
#[derive(Default)]
struct Fields<'a> {
    chain: Option<Cow<'a, str>>,
    event: Option<i64>,
    probe: Option<Cow<'a, str>>,
    names: [Option<Cow<'a, str>>; 6],
    child: Option<Cow<'a, str>>,
    parent_thread: Option<Cow<'a, str>>,
    thread_start: Option<Cow<'a, str>>,
    thread_end: Option<Cow<'a, str>>,
    wall: Option<Reading>,
    cpu: Option<Reading>,
    process_cpu: Option<i64>,
    flags: u8,
    header: Header,
    is_header: bool,
}

const INTERFACE: usize = 0;
const FUNCTION: usize = 1;
const OBJECT: usize = 2;
const THREAD: usize = 3;
const PROCESS: usize = 4;
const PROCESSOR: usize = 5;

/// Reads one line; `unknown` is called with each key that the format does not know.
pub(crate) fn line(text: &str, tables: &mut Tables, unknown: &mut dyn FnMut(&str)) -> Result<Line, Fault> {
    let mut fields = Fields::default();
    let mut scanner = Scanner { text, bytes: text.as_bytes(), at: 0 };
    scanner.object(&mut fields, unknown)?;
    fields.into_line(tables).map_err(|message| Fault { at: 0, message })
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { at: self.at, message: message.into() })
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        self.blanks();
        if self.bytes.get(self.at) == Some(&byte) {
            self.at += 1;
            return Ok(());
        }
        self.fault(format!("`{}` is missing here", byte as char))
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.blanks();
        let is = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is);
        is
    }

    fn object(&mut self, fields: &mut Fields<'a>, unknown: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        self.expect(b'{')?;
        let mut seen = 0u32;
        if !self.next_is(b'}') {
            loop {
                self.blanks();
                let start = self.at;
                let key = self.string()?;
                self.expect(b':')?;
                self.blanks();
                let bit = self.value(&key, fields, unknown)?;
                if bit != 0 && seen & bit != 0 {
                    self.at = start;
                    return self.fault(format!("`{key}` is given twice"));
                }
                seen |= bit;
                if !self.next_is(b',') {
                    break;
                }
            }
            self.expect(b'}')?;
        }
        self.blanks();
        if self.at < self.bytes.len() { self.fault("there is more after the record") } else { Ok(()) }
    }

    /// Takes the value of a key; gives a bit of its own to each known key.
    fn value(&mut self, key: &str, fields: &mut Fields<'a>, unknown: &mut dyn FnMut(&str)) -> Result<u32, Fault> {
        let bit = match key {
            "chain" => (fields.chain = Some(self.name()?), 0).1,
            "event" => (fields.event = Some(self.integer()?), 1).1,
            "probe" => (fields.probe = Some(self.name()?), 2).1,
            "interface" => (fields.names[INTERFACE] = Some(self.name()?), 3).1,
            "function" => (fields.names[FUNCTION] = Some(self.name()?), 4).1,
            "object" => (fields.names[OBJECT] = Some(self.name()?), 5).1,
            "thread" => (fields.names[THREAD] = Some(self.name()?), 6).1,
            "process" => (fields.names[PROCESS] = Some(self.name()?), 7).1,
            "processor" => (fields.names[PROCESSOR] = Some(self.name()?), 8).1,
            "wall" => (fields.wall = self.reading()?, 9).1,
            "cpu" => (fields.cpu = self.reading()?, 10).1,
            "child" => (fields.child = Some(self.name()?), 11).1,
            "oneway" => (fields.flags |= self.flag(Record::ONEWAY)?, 12).1,
            "collocated" => (fields.flags |= self.flag(Record::COLLOCATED)?, 13).1,
            "cancelled" => (fields.flags |= self.flag(Record::CANCELLED)?, 14).1,
            "thread_start" => (fields.thread_start = Some(self.name()?), 15).1,
            "thread_end" => (fields.thread_end = Some(self.name()?), 16).1,
            "parent_thread" => (fields.parent_thread = Some(self.name()?), 17).1,
            "process_cpu" => (fields.process_cpu = Some(self.integer()?), 18).1,
            "calls" => (fields.is_header = self.version()?, 19).1,
            "epoch" => (fields.header.epoch = Some(self.raw()?.to_owned()), 20).1,
            "clock" => (fields.header.clock = Some(self.raw()?.to_owned()), 21).1,
            "probe_cost" => (fields.header.probe_cost = Some(self.raw()?.to_owned()), 22).1,
            _ => {
                self.raw()?;
                unknown(key);
                return Ok(0);
            }
        };
        Ok(1 << bit)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return self.fault("a string is needed here");
        }
        let start = self.at + 1;
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'"' => {
                    self.at = at + 1;
                    return Ok(Cow::Borrowed(&self.text[start..at]));
                }
                b'\\' => return self.escaped(),
                0..=0x1f => break,
                _ => at += 1,
            }
        }
        self.fault("this string has no end")
    }

    fn escaped(&mut self) -> Result<Cow<'a, str>, Fault> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') => break,
                Some(_) => at += 1,
                None => return self.fault("this string has no end"),
            }
        }
        let Some(text) = self.text.get(start..=at) else { return self.fault("this string has no end") };
        match serde_json::from_str::<String>(text) {
            Ok(text) => {
                self.at = at + 1;
                Ok(Cow::Owned(text))
            }
            Err(_) => self.fault("this string is not JSON"),
        }
    }

    /// A name; numbers are taken as they are written, since threads and objects often are numbers.
    fn name(&mut self) -> Result<Cow<'a, str>, Fault> {
        match self.bytes.get(self.at) {
            Some(b'0'..=b'9' | b'-') => self.raw().map(Cow::Borrowed),
            _ => self.string(),
        }
    }

    fn integer(&mut self) -> Result<i64, Fault> {
        let start = self.at;
        let negative = self.bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let digits = self.at;
        let mut value = 0i64;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let stray = matches!(self.bytes.get(self.at), Some(b'.' | b'e' | b'E'));
        if digits == self.at || stray {
            self.at = start;
            return self.fault("a whole number is needed here");
        }
        if value >= LATEST {
            self.at = start;
            return self.fault("this number is too large");
        }
        Ok(if negative { -value } else { value })
    }

    /// A clock reading: `[begin, end]`, one number, or `null` for none.
    fn reading(&mut self) -> Result<Option<Reading>, Fault> {
        if self.word("null") {
            return Ok(None);
        }
        if !self.next_is(b'[') {
            let once = self.integer()?;
            return Ok(Some(Reading { begin: once, end: once }));
        }
        self.blanks();
        let begin = self.integer()?;
        self.expect(b',')?;
        self.blanks();
        let end = self.integer()?;
        self.expect(b']')?;
        Ok(Some(Reading { begin, end }))
    }

    fn word(&mut self, word: &str) -> bool {
        let is = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn flag(&mut self, flag: u8) -> Result<u8, Fault> {
        if self.word("true") {
            Ok(flag)
        } else if self.word("false") {
            Ok(0)
        } else {
            self.fault("`true` or `false` is needed here")
        }
    }

    fn version(&mut self) -> Result<bool, Fault> {
        let start = self.at;
        if self.integer()? == 1 {
            return Ok(true);
        }
        self.at = start;
        self.fault("this version of the format is not known; version 1 is")
    }

    /// Any value, as it is written.
    fn raw(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        let mut open = 0usize;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => drop(self.string()?),
                Some(b'{' | b'[') => (open += 1, self.at += 1).1,
                Some(b'}' | b']') if open > 0 => (open -= 1, self.at += 1).1,
                Some(b',' | b'}' | b']') | None if open == 0 => break,
                None => return self.fault("the record has no end"),
                Some(_) => self.at += 1,
            }
        }
        let text = self.text[start..self.at].trim_end();
        // What is skipped is JSON all the same.
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(text),
            Err(_) => {
                self.at = start;
                self.fault("this value is not JSON")
            }
        }
    }
}

impl Fields<'_> {
    fn into_line(mut self, tables: &mut Tables) -> Result<Line, String> {
        let shape = [self.probe.is_some(), self.thread_start.is_some(), self.thread_end.is_some()];
        match shape.iter().filter(|given| **given).count() {
            0 => return self.into_other(tables),
            1 => {}
            _ => return Err("a record has one of `probe`, `thread_start` and `thread_end`".to_owned()),
        }
        let probe = match &self.probe {
            Some(name) => Probe::named(name).filter(|probe| *probe < Probe::ThreadStart).ok_or_else(|| {
                format!("there is no probe `{name}`: `stub_start`, `skel_start`, `skel_end`, `stub_end`")
            })?,
            None if self.thread_start.is_some() => Probe::ThreadStart,
            None => Probe::ThreadEnd,
        };
        self.check(probe)?;
        if let Some(thread) = self.thread_start.take().or(self.thread_end.take()) {
            self.names[THREAD] = Some(thread);
            self.names[OBJECT] = self.parent_thread.take();
        }
        let chain = self.chain.as_deref().filter(|chain| !chain.is_empty()).ok_or("`chain` is missing")?;
        let chain = tables.chain(chain);
        let event = self.event.ok_or("`event` is missing")?;
        let event = u32::try_from(event).ok().filter(|event| *event > 0);
        let event = event.ok_or("`event` is a whole number from 1 to 4294967295")?;
        let child = match self.child.as_deref() {
            Some("") => return Err("`child` is empty".to_owned()),
            Some(child) => tables.chain(child),
            None => ChainId::NONE,
        };
        Ok(Line::Record(Record {
            chain,
            event,
            site: self.site(tables),
            child,
            wall: self.wall.unwrap_or(Reading::NONE),
            cpu: self.cpu.unwrap_or(Reading::NONE),
            line: 0,
            file: 0,
            probe,
            flags: self.flags,
        }))
    }

    /// Refuses what a record of its kind cannot have.
    fn check(&self, probe: Probe) -> Result<(), String> {
        let missing = |what: &str| Err(format!("`{what}` is missing"));
        let stray = |what: &str| Err(format!("`{what}` does not belong to `{}`", probe.name()));
        let (oneway, collocated) = (self.flags & Record::ONEWAY != 0, self.flags & Record::COLLOCATED != 0);
        let thread = matches!(probe, Probe::ThreadStart | Probe::ThreadEnd);
        let stub = matches!(probe, Probe::StubStart | Probe::StubEnd);
        let begins_chain = probe == Probe::ThreadStart || probe == Probe::StubStart && oneway;
        if !thread && self.names[FUNCTION].as_deref().is_none_or(str::is_empty) {
            return missing("function");
        }
        if thread && (self.names[FUNCTION].is_some() || self.names[INTERFACE].is_some()) {
            return stray("function");
        }
        if collocated && !stub {
            return stray("collocated");
        }
        if collocated && oneway {
            return Err("a call is one-way or collocated, not both".to_owned());
        }
        if begins_chain && self.child.is_none() {
            return missing("child");
        }
        if !begins_chain && self.child.is_some() {
            return stray("child");
        }
        if self.parent_thread.is_some() && probe != Probe::ThreadStart {
            return stray("parent_thread");
        }
        Ok(())
    }

    fn site(&self, tables: &mut Tables) -> SiteId {
        let mut name =
            |which: usize| self.names[which].as_deref().map_or(crate::record::Name(0), |text| tables.name(text));
        let site = Site {
            interface: name(INTERFACE),
            function: name(FUNCTION),
            object: name(OBJECT),
            thread: name(THREAD),
            process: name(PROCESS),
            processor: name(PROCESSOR),
        };
        tables.site(site)
    }

    fn into_other(self, tables: &mut Tables) -> Result<Line, String> {
        if let Some(cpu) = self.process_cpu {
            if cpu < 0 {
                return Err("`process_cpu` is negative".to_owned());
            }
            let process = self.names[PROCESS].as_deref().ok_or("`process` is missing")?;
            let processor = self.names[PROCESSOR].as_deref().unwrap_or_default();
            return Ok(Line::Process(ProcessTime {
                process: tables.name(process),
                processor: tables.name(processor),
                cpu,
            }));
        }
        if self.is_header || self.header != Header::default() {
            return Ok(Line::Header(self.header));
        }
        Err("a record has one of `probe`, `thread_start` and `thread_end`".to_owned())
    }
}

/// Writes the header; the line says that records follow, and in which version.
pub fn write_header(header: &Header, out: &mut String) {
    out.push_str("{\"calls\":1");
    for (key, value) in [("epoch", &header.epoch), ("clock", &header.clock), ("probe_cost", &header.probe_cost)] {
        if let Some(value) = value {
            out.push_str(&format!(",\"{key}\":{value}"));
        }
    }
    out.push_str("}\n");
}

/// Writes the processor time of a process.
pub fn write_process(time: &ProcessTime, tables: &Tables, out: &mut String) {
    out.push_str("{\"process\":");
    quoted(tables.text(time.process), out);
    if time.processor.0 != 0 {
        out.push_str(",\"processor\":");
        quoted(tables.text(time.processor), out);
    }
    out.push_str(&format!(",\"process_cpu\":{}}}\n", time.cpu));
}

/// Writes a record as a line.
pub fn write_record(record: &Record, tables: &Tables, out: &mut String) {
    let site = tables.of(record.site);
    let text = |key: &str, value: &str, out: &mut String| {
        if !value.is_empty() {
            out.push_str(if out.ends_with('{') { "\"" } else { ",\"" });
            out.push_str(key);
            out.push_str("\":");
            quoted(value, out);
        }
    };
    out.push('{');
    let thread = matches!(record.probe, Probe::ThreadStart | Probe::ThreadEnd);
    if thread {
        out.push_str(&format!("\"{}\":", record.probe.name()));
        quoted(tables.text(site.thread), out);
        text("parent_thread", tables.text(site.object), out);
    }
    text("chain", &tables.chain_to_write(record.chain), out);
    out.push_str(&format!(",\"event\":{}", record.event));
    if !thread {
        text("probe", record.probe.name(), out);
        text("interface", tables.text(site.interface), out);
        text("function", tables.text(site.function), out);
        text("object", tables.text(site.object), out);
        text("thread", tables.text(site.thread), out);
    }
    text("process", tables.text(site.process), out);
    text("processor", tables.text(site.processor), out);
    for (flag, key) in
        [(Record::ONEWAY, "oneway"), (Record::COLLOCATED, "collocated"), (Record::CANCELLED, "cancelled")]
    {
        if record.is(flag) {
            out.push_str(&format!(",\"{key}\":true"));
        }
    }
    text("child", &tables.chain_to_write(record.child), out);
    for (key, reading) in [("wall", record.wall), ("cpu", record.cpu)] {
        if reading.is_some() && reading.begin == reading.end {
            out.push_str(&format!(",\"{key}\":{}", reading.begin));
        } else if reading.is_some() {
            out.push_str(&format!(",\"{key}\":[{},{}]", reading.begin, reading.end));
        }
    }
    out.push_str("}\n");
}

/// Writes a string as JSON has it.
pub(crate) fn quoted(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
    }
}
