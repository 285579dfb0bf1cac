//! The grammar of one line of `.angio` text.
//!
//! Parsers are functions in nom's form. They borrow from the line and give out plain values, so that reading a line allocates
//! nothing; a name keeps its quotes until its text is asked for.

use std::borrow::Cow;

use nom::bytes::complete::tag;
use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult, Parser};

use crate::Kind;

/// The attributes of a label, for suggestions.
pub(crate) const ATTRIBUTES: [&str; 6] = ["name", "op", "t", "cpu", "pause", "instance"];

/// The attributes of an `operation` line, for suggestions.
const HEADER_ATTRIBUTES: [&str; 2] = ["run", "start"];

/// What one line says.
#[derive(Debug, PartialEq)]
pub(crate) enum Statement<'a> {
    /// Nothing: white space or a comment.
    Blank,
    /// `operation SCENARIO run=RUN`.
    Header(Header<'a>),
    /// A node label.
    Label(Label<'a>),
}

/// What opens an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header<'a> {
    pub(crate) scenario: Word<'a>,
    pub(crate) run: Word<'a>,
    pub(crate) start: Option<i64>,
}

/// A node label `j,k,m,l | i,v` with its attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Label<'a> {
    pub(crate) scenario: Word<'a>,
    pub(crate) thread: u32,
    pub(crate) index: u32,
    pub(crate) kind: Kind,
    pub(crate) task: Word<'a>,
    pub(crate) counter: u32,
    pub(crate) instance: u32,
    pub(crate) activity: Option<Word<'a>>,
    pub(crate) service: Option<Word<'a>>,
    pub(crate) time: f64,
    pub(crate) cpu: f64,
    pub(crate) pause: f64,
}

/// A name as it is written, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    raw: &'a str,
    /// Whether there are escapes in it, all of them good ones.
    escaped: bool,
}

impl<'a> Word<'a> {
    /// A name without escapes.
    pub(crate) fn plain(raw: &'a str) -> Self {
        Self { raw, escaped: false }
    }

    /// The name that it stands for.
    pub(crate) fn text(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut text = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = rest.find('\\') {
            text.push_str(&rest[..at]);
            rest = match escape(&rest[at..]) {
                Ok((rest, character)) => {
                    text.push(character);
                    rest
                }
                Err(_) => "",
            };
        }
        text.push_str(rest);
        Cow::Owned(text)
    }
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    /// How many bytes of the line were left where it went wrong.
    pub(crate) left: usize,
    /// What was expected or is wrong there, and what to do about it, which may be empty. Behind one reference: results of
    /// parsers are passed about for every field of every line.
    pub(crate) words: &'static [&'static str; 2],
}

/// An attribute that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// How many bytes of the line were left at its key.
    pub(crate) left: usize,
    /// Its key.
    pub(crate) key: String,
}

impl ParseError<&str> for Slip {
    fn from_error_kind(input: &str, _: ErrorKind) -> Self {
        Self { left: input.len(), words: &["unexpected text", ""] }
    }

    fn append(_: &str, _: ErrorKind, other: Self) -> Self {
        other
    }
}

type Parsed<'a, T> = IResult<&'a str, T, Slip>;

#[cold]
fn slip<T>(at: &str, words: &'static [&'static str; 2]) -> Result<T, Err<Slip>> {
    Err(Err::Error(Slip { left: at.len(), words }))
}

const SHAPE: &str = "a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`";
const QUOTES: &str = "write names with spaces or any of `,|()=\"` in double quotes";

/// The class of bytes that may stand in a name without quotes.
const BARE: u8 = 1;
/// The class of bytes that may stand in the value of an attribute without quotes.
const BARE_VALUE: u8 = 2;

/// The classes of each byte.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0u8;
    loop {
        let visible = byte > b' ' && byte != 0x7f && byte != b'"';
        if visible {
            classes[byte as usize] |= BARE_VALUE;
        }
        if visible && !matches!(byte, b',' | b'|' | b'(' | b')' | b'=') {
            classes[byte as usize] |= BARE;
        }
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Whether a byte may stand in a name without quotes.
pub(crate) fn is_bare(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & BARE != 0
}

/// Whether a byte may stand in the value of an attribute without quotes.
pub(crate) fn is_bare_value(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & BARE_VALUE != 0
}

/// What a line says; attributes that are not known go to `unknown`.
pub(crate) fn statement<'a>(line: &'a [u8], unknown: &mut Vec<Unknown>) -> Result<Statement<'a>, Slip> {
    match std::str::from_utf8(line) {
        Ok(text) => parse(text, unknown).map(|(_, statement)| statement).map_err(first),
        Err(error) => {
            // What is not UTF-8 may stand in a comment only.
            let (good, bad) = line.split_at(error.valid_up_to());
            let text = std::str::from_utf8(good).unwrap_or_default();
            match parse(text, unknown) {
                Ok((comment, statement)) if !comment.is_empty() => Ok(statement),
                Err(Err::Error(slip)) if slip.left > 0 => Err(Slip { left: slip.left + bad.len(), ..slip }),
                _ => Err(Slip { left: bad.len(), words: &["this is not UTF-8 text", "save the file as UTF-8"] }),
            }
        }
    }
}

fn first(error: Err<Slip>) -> Slip {
    match error {
        Err::Error(slip) | Err::Failure(slip) => slip,
        Err::Incomplete(_) => Slip { left: 0, words: &["the line ends too early", ""] },
    }
}

/// What a line says, and the comment at its end.
fn parse<'a>(line: &'a str, unknown: &mut Vec<Unknown>) -> Parsed<'a, Statement<'a>> {
    let line = blank(line);
    if at_end(line, true) {
        return Ok((line, Statement::Blank));
    }
    if line.as_bytes()[0] == b'o'
        && let Some(rest) = keyword(line)
    {
        return header(rest).map(|(rest, header)| (rest, Statement::Header(header)));
    }
    label(line, unknown).map(|(rest, label)| (rest, Statement::Label(label)))
}

/// Whether nothing but a comment is left; a comment needs white space before it.
fn at_end(rest: &str, spaced: bool) -> bool {
    match rest.as_bytes().first() {
        None => true,
        Some(b'#') => spaced,
        Some(_) => false,
    }
}

/// What is behind the word `operation`, if it stands alone (a scenario may have that name).
fn keyword(line: &str) -> Option<&str> {
    let (rest, _) = tag::<_, _, Slip>("operation").parse(line).ok()?;
    let after = blank(rest);
    let alone = rest.is_empty() || after.len() < rest.len();
    (alone && !after.starts_with(',')).then_some(after)
}

fn header(rest: &str) -> Parsed<'_, Header<'_>> {
    const SHAPE: &str = "an operation is opened by `operation SCENARIO run=RUN`";
    if at_end(rest, true) {
        return slip(rest, &["expected the name of the scenario", SHAPE]);
    }
    let (mut rest, scenario) = name(rest)?;
    let (mut run, mut start) = (None, None);
    loop {
        let next = blank(rest);
        if at_end(next, next.len() < rest.len()) {
            break;
        }
        let (at, key) = attribute_key(rest, next)?;
        rest = match key {
            "run" if run.is_none() => put(&mut run, value(at).map(some)?),
            "start" if start.is_none() => put(&mut start, nanoseconds(at).map(some)?),
            "run" | "start" => return slip(next, &["this is given twice", "keep one of them"]),
            _ => {
                const WHAT: &str = "an `operation` line has no such attribute";
                return match dyelog_diagnostic::similar(key, HEADER_ATTRIBUTES) {
                    Some("run") => slip(next, &[WHAT, "did you mean `run`?"]),
                    Some(_) => slip(next, &[WHAT, "did you mean `start`?"]),
                    None => slip(next, &[WHAT, "an `operation` line takes `run=` and `start=` only"]),
                };
            }
        };
    }
    match run {
        Some(run) => Ok((blank(rest), Header { scenario, run, start })),
        None => slip(rest, &["expected `run=` and the identifier of the run", SHAPE]),
    }
}

fn some<T>((rest, value): (&str, T)) -> (&str, Option<T>) {
    (rest, Some(value))
}

/// Puts what was parsed in its place and gives what is left.
fn put<'a, T>(place: &mut T, (rest, value): (&'a str, T)) -> &'a str {
    *place = value;
    rest
}

fn label<'a>(line: &'a str, unknown: &mut Vec<Unknown>) -> Parsed<'a, Label<'a>> {
    let (rest, scenario) = name(line)?;
    let (rest, thread) = number(comma(rest)?)?;
    let (rest, index) = counter(comma(rest)?)?;
    let (rest, kind) = kind(comma(rest)?, scenario)?;
    let (rest, task) =
        name(separator(rest, b'|', &["expected `|` between the thread's part and the task's part", SHAPE])?)?;
    let (rest, counter) = counter(comma(rest)?)?;
    let mut label = Label {
        scenario,
        thread,
        index,
        kind,
        task,
        counter,
        instance: 0,
        activity: None,
        service: None,
        time: f64::NAN,
        cpu: f64::NAN,
        pause: f64::NAN,
    };
    let rest = attributes(rest, &mut label, unknown)?;
    label.instance = label.instance.max(1);
    Ok((rest, label))
}

fn attributes<'a>(mut rest: &'a str, label: &mut Label<'a>, unknown: &mut Vec<Unknown>) -> Result<&'a str, Err<Slip>> {
    loop {
        let next = blank(rest);
        if at_end(next, next.len() < rest.len()) {
            return Ok(next);
        }
        let (at, key) = attribute_key(rest, next)?;
        let again = match key {
            "name" => label.activity.is_some(),
            "op" => label.service.is_some(),
            "t" => !label.time.is_nan(),
            "cpu" => !label.cpu.is_nan(),
            "pause" => !label.pause.is_nan(),
            "instance" => label.instance != 0,
            _ => false,
        };
        if again {
            return slip(next, &["this attribute is given twice", "keep one of them"]);
        }
        rest = match key {
            "name" => put(&mut label.activity, value(at).map(some)?),
            "op" => put(&mut label.service, value(at).map(some)?),
            "t" => put(&mut label.time, seconds(at)?),
            "cpu" => put(&mut label.cpu, seconds(at)?),
            "pause" => put(&mut label.pause, seconds(at)?),
            "instance" => put(&mut label.instance, counter(at)?),
            _ => {
                unknown.push(Unknown { left: next.len(), key: key.to_owned() });
                value(at)?.0
            }
        };
    }
}

/// What is behind white space within a line.
#[inline]
fn blank(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() && matches!(bytes[at], b' ' | b'\t') {
        at += 1;
    }
    &rest[at..]
}

#[inline]
fn separator<'a>(rest: &'a str, byte: u8, words: &'static [&'static str; 2]) -> Result<&'a str, Err<Slip>> {
    let rest = blank(rest);
    match rest.as_bytes().first() {
        Some(&found) if found == byte => Ok(blank(&rest[1..])),
        _ => slip(rest, words),
    }
}

#[inline]
fn comma(rest: &str) -> Result<&str, Err<Slip>> {
    separator(rest, b',', &["expected `,`", SHAPE])
}

#[inline]
fn number(at: &str) -> Parsed<'_, u32> {
    let bytes = at.as_bytes();
    let (mut end, mut number) = (0, 0u64);
    // Ten digits fit a 64-bit number, and none of eleven is one of 32 bits.
    while end < bytes.len().min(11) && bytes[end].is_ascii_digit() {
        number = 10 * number + u64::from(bytes[end] - b'0');
        end += 1;
    }
    if end == 0 || bytes.get(end).is_some_and(|byte| is_bare(*byte) && !byte.is_ascii_digit()) {
        return slip(&at[end..], &["expected a whole number", SHAPE]);
    }
    match u32::try_from(number) {
        Ok(number) if end < 11 => Ok((&at[end..], number)),
        _ => slip(at, &["this number is too large", "numbers go up to 4294967295"]),
    }
}

/// A counter, which begins at one.
#[inline]
fn counter(at: &str) -> Parsed<'_, u32> {
    match number(at)? {
        (_, 0) => slip(at, &["this is 0, but counters begin at 1", ""]),
        parsed => Ok(parsed),
    }
}

#[inline]
fn kind<'a>(at: &'a str, scenario: Word<'a>) -> Parsed<'a, Kind> {
    const TYPES: &str = "types are `Be`, `Ac`, `Ed`, `Fk(scenario,thread)` and `Jn(scenario,thread)`";
    match at.as_bytes() {
        [b'A', b'c', ..] => Ok((&at[2..], Kind::Activity)),
        [b'B', b'e', ..] => Ok((&at[2..], Kind::Begin)),
        [b'E', b'd', ..] => Ok((&at[2..], Kind::End)),
        [b'F', b'k', ..] => target(&at[2..], scenario).map(|(rest, thread)| (rest, Kind::Fork(thread))),
        [b'J', b'n', ..] => target(&at[2..], scenario).map(|(rest, thread)| (rest, Kind::Join(thread))),
        _ => slip(at, &["expected the type of the node", TYPES]),
    }
}

/// The `(j,k')` of a fork or join; `j` is the scenario of the line.
fn target<'a>(rest: &'a str, scenario: Word<'a>) -> Parsed<'a, u32> {
    let at = separator(rest, b'(', &["expected `(`, the scenario and the thread that is forked or joined", SHAPE])?;
    let (rest, found) = name(at)?;
    if found != scenario && found.text() != scenario.text() {
        return slip(
            at,
            &["this names another scenario", "a fork or join stays within its scenario: write `Fk(scenario,thread)`"],
        );
    }
    let (rest, thread) = number(comma(rest)?)?;
    Ok((separator(rest, b')', &["expected `)`", SHAPE])?, thread))
}

/// A name, bare or in quotes.
#[inline]
fn name(rest: &str) -> Parsed<'_, Word<'_>> {
    match rest.as_bytes().first() {
        Some(b'"') => quoted(rest),
        Some(b'#') => slip(rest, &["expected a name", "a name that begins with `#` needs double quotes"]),
        _ => bare(rest, BARE, &["expected a name", QUOTES]),
    }
}

/// The value of an attribute, bare or in quotes.
#[inline]
fn value(rest: &str) -> Parsed<'_, Word<'_>> {
    match rest.as_bytes().first() {
        Some(b'"') => quoted(rest),
        Some(b'#') => slip(rest, &["expected a value", "a value that begins with `#` needs double quotes"]),
        _ => bare(rest, BARE_VALUE, &["expected a value", QUOTES]),
    }
}

#[inline]
fn bare<'a>(at: &'a str, class: u8, words: &'static [&'static str; 2]) -> Parsed<'a, Word<'a>> {
    let bytes = at.as_bytes();
    let mut end = 0;
    while end < bytes.len() && CLASSES[usize::from(bytes[end])] & class != 0 {
        end += 1;
    }
    if end == 0 {
        return slip(at, words);
    }
    let (word, rest) = at.split_at(end);
    Ok((rest, Word::plain(word)))
}

fn quoted(at: &str) -> Parsed<'_, Word<'_>> {
    let mut rest = &at[1..];
    let mut escaped = false;
    loop {
        let Some(stop) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
            return slip(at, &["the name has no closing quote", ""]);
        };
        if rest.as_bytes()[stop] == b'"' {
            let raw = &at[1..at.len() - rest.len() + stop];
            return Ok((&rest[stop + 1..], Word { raw, escaped }));
        }
        escaped = true;
        rest = escape(&rest[stop..])?.0;
    }
}

fn escape(at: &str) -> Parsed<'_, char> {
    const KNOWN: &str = "escapes are `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` and `\\u{hex}`";
    let plain = match at.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let parsed = at[2..].strip_prefix('{').and_then(|rest| {
                let close = rest.bytes().take(9).position(|byte| byte == b'}')?;
                let digits = &rest[..close];
                let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                (!digits.starts_with('+')).then_some((&rest[close + 1..], character))
            });
            return match parsed {
                Some(parsed) => Ok(parsed),
                None => slip(at, &["this escape names no character", KNOWN]),
            };
        }
        _ => return slip(at, &["there is no such escape", KNOWN]),
    };
    Ok((&at[2..], plain))
}

/// The key of an attribute at `next` and its `=`; `before` is where the white space in front of it began.
#[inline]
fn attribute_key<'a>(before: &str, next: &'a str) -> Parsed<'a, &'a str> {
    const SHAPE: &str = "attributes are written `key=value`, with white space between them";
    if before.len() == next.len() {
        return slip(next, &["expected white space", SHAPE]);
    }
    let (rest, key) = bare(next, BARE, &["expected an attribute", SHAPE])?;
    match rest.strip_prefix('=') {
        Some(rest) => Ok((rest, key.raw)),
        None => slip(rest, &["expected `=` and the value of the attribute", SHAPE]),
    }
}

/// A number of seconds.
#[inline]
fn seconds(at: &str) -> Parsed<'_, f64> {
    if let Some(parsed) = short_decimal(at) {
        return Ok(parsed);
    }
    let (rest, word) = value(at)?;
    match word.raw.parse::<f64>() {
        Err(_) => slip(at, &["expected a number of seconds", "such as `0.0012` or `1.2e-3`"]),
        Ok(time) if !time.is_finite() => {
            slip(at, &["this time is not a finite number", "leave the attribute out where there is no value"])
        }
        Ok(time) if time < 0.0 => slip(at, &["this time is negative", "times count from the start of the operation"]),
        // Adding zero turns a negative zero into a plain one.
        Ok(time) => Ok((rest, time + 0.0)),
    }
}

/// A decimal of at most 15 digits and no exponent, which the division of two exact numbers rounds right.
#[inline]
fn short_decimal(at: &str) -> Option<(&str, f64)> {
    const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let bytes = at.as_bytes();
    let (mut end, mut digits, mut number, mut point) = (0, 0, 0u64, None);
    while end < bytes.len() {
        match bytes[end] {
            byte @ b'0'..=b'9' => {
                number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                digits += 1;
            }
            b'.' if point.is_none() => point = Some(digits),
            byte if is_bare_value(byte) || byte == b'"' => return None,
            _ => break,
        }
        end += 1;
    }
    if !(1..=15).contains(&digits) {
        return None;
    }
    Some((&at[end..], number as f64 / POWERS[digits - point.unwrap_or(digits)]))
}

fn nanoseconds(at: &str) -> Parsed<'_, i64> {
    let (rest, word) = value(at)?;
    match word.raw.parse() {
        Ok(start) => Ok((rest, start)),
        Err(_) => slip(at, &["expected a whole number of nanoseconds", "such as `start=1700000000000000000`"]),
    }
}
