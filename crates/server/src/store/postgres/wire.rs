//! Messages of PostgreSQL's protocol, version 3: statements with values, in binary form.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};

use super::super::StoreError;
use super::super::database::{Row, Take, Value};

/// How long an answer may be, as in PostgreSQL itself.
const LONGEST: usize = 1 << 30;
/// How many statements stay prepared.
const MOST_PREPARED: usize = 256;

/// What bytes go through.
pub trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// Why something was not done.
#[derive(Debug)]
pub enum Fault {
    /// The server says so; the connection can be used further.
    Refused(String),
    /// The connection is broken.
    Broken(String),
    /// Taking a row failed.
    Taking(StoreError),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Broken(format!("the connection to PostgreSQL broke: {error}"))
    }
}

/// What cannot be understood.
pub fn garbled() -> Fault {
    Fault::Broken("what answers does not speak as PostgreSQL does".to_owned())
}

/// A statement that is prepared: its name, and the types of what it finds.
#[derive(Clone, Debug, Default)]
struct Prepared {
    name: String,
    types: Vec<u32>,
}

/// A connection.
pub struct Wire {
    stream: BufReader<Box<dyn Stream>>,
    prepared: HashMap<String, Prepared>,
    out: Vec<u8>,
    body: Vec<u8>,
}

impl Wire {
    /// Over a stream on which nothing was said yet.
    pub fn over(stream: Box<dyn Stream>) -> Self {
        Self { stream: BufReader::new(stream), prepared: HashMap::new(), out: Vec::new(), body: Vec::new() }
    }

    /// Appends a message: its kind, and what it holds.
    pub fn put(&mut self, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(kind);
        self.put_headless(fill);
    }

    /// Appends a message without a kind: the first one is.
    pub fn put_headless(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let at = self.out.len();
        self.out.extend([0; 4]);
        fill(&mut self.out);
        let length = ((self.out.len() - at) as u32).to_be_bytes();
        self.out[at..at + 4].copy_from_slice(&length);
    }

    /// Sends what was appended.
    pub fn send(&mut self) -> Result<(), Fault> {
        let stream = self.stream.get_mut();
        let sent = stream.write_all(&self.out).and_then(|()| stream.flush());
        self.out.clear();
        Ok(sent?)
    }

    /// The kind of the next message that is not about something else, and its content.
    pub fn next(&mut self) -> Result<(u8, &[u8]), Fault> {
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let length = length.checked_sub(4).filter(|length| *length <= LONGEST).ok_or_else(garbled)?;
            self.body.clear();
            // Memory grows with what comes, not with what is announced.
            let read = (&mut self.stream).take(length as u64).read_to_end(&mut self.body)?;
            if read < length {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            // Notices, settings and notifications come at any time.
            if !matches!(head[0], b'N' | b'S' | b'A') {
                return Ok((head[0], &self.body));
            }
        }
    }

    /// Carries out several statements without values; says what the last one was.
    pub fn script(&mut self, sql: &str) -> Result<String, Fault> {
        self.put(b'Q', |out| put_text(out, sql));
        self.send()?;
        let (mut tag, mut refused) = (String::new(), None);
        loop {
            match self.next()? {
                (b'C', body) => text_of(body)?.0.clone_into(&mut tag),
                (b'E', body) => refused = refused.or(Some(reason(body))),
                (b'Z', _) => return refused.map_or(Ok(tag), |why| Err(Fault::Refused(why))),
                _ => {}
            }
        }
    }

    /// Carries out a statement and gives what it finds; says how many rows it concerned.
    pub fn ask(&mut self, sql: &str, values: &[Value<'_>], take: Take<'_>) -> Result<usize, Fault> {
        let known = self.prepared.get(sql).cloned();
        let is_new = known.is_none();
        let mut own = known.unwrap_or_default();
        if is_new {
            if self.prepared.len() >= MOST_PREPARED {
                self.script("DEALLOCATE ALL")?;
                self.prepared.clear();
            }
            own.name = format!("s{}", self.prepared.len());
            self.prepare(&own.name, sql, values);
        }
        self.bind(&own.name, values);
        self.send()?;
        let (mut changed, mut fault) = (0, None);
        loop {
            match self.next()? {
                (b'T', body) => own.types = types_of(body)?,
                // Of what stays the rows are read, so that the next answer is the next question's.
                (b'D', body) if fault.is_none() => fault = take_row(body, &own.types, take).err(),
                (b'C', body) => changed = count_of(text_of(body)?.0),
                (b'E', body) => fault = fault.or(Some(Fault::Refused(reason(body)))),
                (b'Z', _) => break,
                _ => {}
            }
        }
        match fault {
            // It may not have been prepared: its name is taken again.
            Some(fault) if is_new => {
                self.put(b'C', |out| {
                    out.push(b'S');
                    put_text(out, &own.name);
                });
                self.put(b'S', |_| ());
                self.send()?;
                while self.next()?.0 != b'Z' {}
                Err(fault)
            }
            Some(fault) => Err(fault),
            None => {
                if is_new {
                    self.prepared.insert(sql.to_owned(), own);
                }
                Ok(changed)
            }
        }
    }

    fn prepare(&mut self, name: &str, sql: &str, values: &[Value<'_>]) {
        self.put(b'P', |out| {
            put_text(out, name);
            put_text(out, sql);
            out.extend((values.len() as u16).to_be_bytes());
            for value in values {
                out.extend(type_of(value).to_be_bytes());
            }
        });
        self.put(b'D', |out| {
            out.push(b'S');
            put_text(out, name);
        });
    }

    /// Binds, executes and ends the question: values and results are in binary form.
    fn bind(&mut self, name: &str, values: &[Value<'_>]) {
        self.put(b'B', |out| {
            put_text(out, "");
            put_text(out, name);
            out.extend([0, 1, 0, 1]);
            out.extend((values.len() as u16).to_be_bytes());
            for value in values {
                put_value(out, value);
            }
            out.extend([0, 1, 0, 1]);
        });
        self.put(b'E', |out| {
            put_text(out, "");
            out.extend([0; 4]);
        });
        self.put(b'S', |_| ());
    }
}

/// Appends text as the protocol ends it. None here has a zero byte inside: names are checked where they come in.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    let mut put = |bytes: &[u8]| {
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend(bytes);
    };
    match value {
        Value::Null => out.extend((-1_i32).to_be_bytes()),
        Value::Number(number) => put(&number.to_be_bytes()),
        Value::Real(number) => put(&number.to_be_bytes()),
        Value::Text(text) => put(text.as_bytes()),
        Value::Bytes(bytes) => put(bytes),
    }
}

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const FLOAT8: u32 = 701;
const VOID: u32 = 2278;

fn type_of(value: &Value<'_>) -> u32 {
    match value {
        Value::Null => 0,
        Value::Number(_) => INT8,
        Value::Real(_) => FLOAT8,
        Value::Text(_) => TEXT,
        Value::Bytes(_) => BYTEA,
    }
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), Fault> {
    bytes.split_at_checked(at).ok_or_else(garbled)
}

/// Text that ends with a zero byte, and what follows.
pub fn text_of(bytes: &[u8]) -> Result<(&str, &[u8]), Fault> {
    let at = bytes.iter().position(|byte| *byte == 0).ok_or_else(garbled)?;
    Ok((std::str::from_utf8(&bytes[..at]).map_err(|_| garbled())?, &bytes[at + 1..]))
}

/// The first four bytes as a number, and what follows.
pub fn number_of(bytes: &[u8]) -> Result<(i32, &[u8]), Fault> {
    let (own, rest) = split(bytes, 4)?;
    Ok((i32::from_be_bytes(own.try_into().map_err(|_| garbled())?), rest))
}

/// The types of the columns that a description has.
fn types_of(body: &[u8]) -> Result<Vec<u32>, Fault> {
    let (count, mut rest) = split(body, 2)?;
    let count = u16::from_be_bytes([count[0], count[1]]);
    let mut types = Vec::with_capacity(count.into());
    for _ in 0..count {
        // Table and column, type, its size, what modifies it, and its form.
        let (described, after) = split(text_of(rest)?.1, 18)?;
        types.push(number_of(&described[6..])?.0.cast_unsigned());
        rest = after;
    }
    Ok(types)
}

fn take_row(body: &[u8], types: &[u32], take: Take<'_>) -> Result<(), Fault> {
    let (_, mut rest) = split(body, 2)?;
    let mut values = Vec::with_capacity(types.len());
    for own in types {
        let (length, after) = number_of(rest)?;
        let Ok(length) = usize::try_from(length) else {
            values.push(Value::Null);
            rest = after;
            continue;
        };
        let (bytes, after) = split(after, length)?;
        values.push(read_value(*own, bytes)?);
        rest = after;
    }
    take(&Row(&values)).map_err(Fault::Taking)
}

fn read_value(own: u32, bytes: &[u8]) -> Result<Value<'_>, Fault> {
    let eight = || <[u8; 8]>::try_from(bytes).map_err(|_| garbled());
    Ok(match own {
        BOOL => Value::Number(i64::from(bytes == [1])),
        BYTEA => Value::Bytes(bytes),
        INT8 => Value::Number(i64::from_be_bytes(eight()?)),
        INT4 => Value::Number(number_of(bytes)?.0.into()),
        TEXT => Value::Text(std::str::from_utf8(bytes).map_err(|_| garbled())?),
        FLOAT8 => Value::Real(f64::from_be_bytes(eight()?)),
        VOID => Value::Null,
        _ => return Err(Fault::Refused(format!("a column is of type {own}, which is not known here"))),
    })
}

/// How many rows a statement concerned, by what it says in the end: `INSERT 0 1`.
fn count_of(tag: &str) -> usize {
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// What an error says for people: the message, and its code.
pub fn reason(mut body: &[u8]) -> String {
    let (mut message, mut code) = ("", "");
    while let Some((kind, rest)) = body.split_first()
        && *kind != 0
        && let Ok((text, rest)) = text_of(rest)
    {
        match kind {
            b'M' => message = text,
            b'C' => code = text,
            _ => {}
        }
        body = rest;
    }
    format!("PostgreSQL says: {message} ({code})")
}
