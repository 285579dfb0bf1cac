//! The grammar of one line of `.angio` text.
//!
//! It works on bytes and borrows from the line, so that reading a line allocates nothing unless a name has escapes.

use std::borrow::Cow;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::char;
use nom::error::{ErrorKind, ParseError};
use nom::{Err, IResult, Parser};

use crate::trace::Kind;

/// The attributes of a label, for suggestions.
pub(crate) const ATTRIBUTES: [&str; 5] = ["name", "op", "t", "cpu", "instance"];

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
#[derive(Debug, PartialEq)]
pub(crate) struct Header<'a> {
    pub(crate) scenario: Cow<'a, str>,
    pub(crate) run: Cow<'a, str>,
    pub(crate) start: Option<i64>,
}

/// A node label `j,k,m,l | i,v` with its attributes.
#[derive(Debug, PartialEq)]
pub(crate) struct Label<'a> {
    pub(crate) scenario: Cow<'a, str>,
    pub(crate) thread: u32,
    pub(crate) index: u32,
    pub(crate) kind: Kind,
    pub(crate) task: Cow<'a, str>,
    pub(crate) counter: u32,
    pub(crate) instance: u32,
    pub(crate) activity: Option<Cow<'a, str>>,
    pub(crate) service: Option<Cow<'a, str>>,
    pub(crate) time: f64,
    pub(crate) cpu: f64,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    /// How many bytes of the line were left where it went wrong.
    pub(crate) left: usize,
    /// What was expected there, or what is wrong with what is there.
    pub(crate) message: &'static str,
    /// What to do about it; may be empty.
    pub(crate) hint: &'static str,
}

/// An attribute that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// How many bytes of the line were left at its key.
    pub(crate) left: usize,
    /// Its key.
    pub(crate) key: String,
}

impl ParseError<&[u8]> for Slip {
    fn from_error_kind(input: &[u8], _: ErrorKind) -> Self {
        Self { left: input.len(), message: "unexpected text", hint: "" }
    }

    fn append(_: &[u8], _: ErrorKind, other: Self) -> Self {
        other
    }
}

type Parsed<'a, T> = IResult<&'a [u8], T, Slip>;

fn slip<T>(at: &[u8], message: &'static str, hint: &'static str) -> Parsed<'static, T> {
    Err(Err::Error(Slip { left: at.len(), message, hint }))
}

const SHAPE: &str = "a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`";
const QUOTES: &str = "write names with spaces or any of `,|()=\"` in double quotes";

/// Whether a byte may stand in a name without quotes.
pub(crate) fn is_bare(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !matches!(byte, b',' | b'|' | b'(' | b')' | b'"' | b'=')
}

/// Whether a byte may stand in the value of an attribute without quotes.
pub(crate) fn is_bare_value(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && byte != b'"'
}

/// What a line says; attributes that are not known go to `unknown`.
pub(crate) fn statement<'a>(line: &'a [u8], unknown: &mut Vec<Unknown>) -> Result<Statement<'a>, Slip> {
    parse(line, unknown).map_err(|error| match error {
        Err::Error(slip) | Err::Failure(slip) => slip,
        Err::Incomplete(_) => Slip { left: 0, message: "the line ends too early", hint: "" },
    })
}

fn parse<'a>(line: &'a [u8], unknown: &mut Vec<Unknown>) -> Result<Statement<'a>, Err<Slip>> {
    let (line, ()) = blank(line)?;
    if at_end(line, true) {
        return Ok(Statement::Blank);
    }
    if let Ok((rest, ())) = keyword(line) {
        return header(rest).map(Statement::Header);
    }
    label(line, unknown).map(Statement::Label)
}

/// Whether nothing but a comment is left; a comment needs white space before it.
fn at_end(rest: &[u8], spaced: bool) -> bool {
    match rest.first() {
        None => true,
        Some(b'#') => spaced,
        Some(_) => false,
    }
}

/// The word `operation`, with white space and no comma behind it (a scenario may have that name).
fn keyword(line: &[u8]) -> Parsed<'_, ()> {
    let (rest, _) = tag(&b"operation"[..]).parse(line)?;
    let (after, ()) = blank(rest)?;
    if after.first() == Some(&b',') || (rest.len() == after.len() && !rest.is_empty()) {
        return slip(line, "expected a label", SHAPE);
    }
    Ok((after, ()))
}

fn header(rest: &[u8]) -> Result<Header<'_>, Err<Slip>> {
    const SHAPE: &str = "an operation is opened by `operation SCENARIO run=RUN`";
    if at_end(rest, true) {
        return slip(rest, "expected the name of the scenario", SHAPE).map(|(_, never)| never);
    }
    let (mut rest, scenario) = name(rest)?;
    let (mut run, mut start) = (None, None);
    loop {
        let (next, ()) = blank(rest)?;
        if at_end(next, next.len() < rest.len()) {
            break;
        }
        let (value_at, key) = attribute_key(rest, next)?;
        rest = match key {
            "run" if run.is_none() => set(&mut run, value(value_at)?),
            "start" if start.is_none() => set(&mut start, nanoseconds(value_at)?),
            "run" | "start" => return slip(next, "this is given twice", "keep one of them").map(|(_, never)| never),
            _ => {
                let hint = match crate::diagnostic::similar(key, HEADER_ATTRIBUTES) {
                    Some("run") => "did you mean `run`?",
                    Some(_) => "did you mean `start`?",
                    None => "an `operation` line takes `run=` and `start=` only",
                };
                return slip(next, "an `operation` line has no such attribute", hint).map(|(_, never)| never);
            }
        };
    }
    match run {
        Some(run) => Ok(Header { scenario, run, start }),
        None => slip(rest, "expected `run=` and the identifier of the run", SHAPE).map(|(_, never)| never),
    }
}

fn set<'a, T>(place: &mut Option<T>, (rest, value): (&'a [u8], T)) -> &'a [u8] {
    *place = Some(value);
    rest
}

fn label<'a>(line: &'a [u8], unknown: &mut Vec<Unknown>) -> Result<Label<'a>, Err<Slip>> {
    let (rest, scenario) = name(line)?;
    let (rest, ()) = comma(rest)?;
    let (rest, thread) = number(rest)?;
    let (rest, ()) = comma(rest)?;
    let (rest, index) = counter(rest)?;
    let (rest, ()) = comma(rest)?;
    let (rest, kind) = kind(rest, &scenario)?;
    let (rest, ()) = separator(rest, b'|', "expected `|` between the thread's part and the task's part")?;
    let (rest, task) = name(rest)?;
    let (rest, ()) = comma(rest)?;
    let (rest, counter) = counter(rest)?;
    let label = Label {
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
    };
    attributes(rest, label, unknown)
}

fn attributes<'a>(
    mut rest: &'a [u8],
    mut label: Label<'a>,
    unknown: &mut Vec<Unknown>,
) -> Result<Label<'a>, Err<Slip>> {
    const TWICE: &str = "this attribute is given twice";
    loop {
        let (next, ()) = blank(rest)?;
        if at_end(next, next.len() < rest.len()) {
            break;
        }
        let (value_at, key) = attribute_key(rest, next)?;
        let again = match key {
            "name" => label.activity.is_some(),
            "op" => label.service.is_some(),
            "t" => !label.time.is_nan(),
            "cpu" => !label.cpu.is_nan(),
            "instance" => label.instance != 0,
            _ => false,
        };
        if again {
            return slip(next, TWICE, "keep one of them").map(|(_, never)| never);
        }
        rest = match key {
            "name" => set(&mut label.activity, value(value_at)?),
            "op" => set(&mut label.service, value(value_at)?),
            "t" => put(&mut label.time, seconds(value_at)?),
            "cpu" => put(&mut label.cpu, seconds(value_at)?),
            "instance" => put(&mut label.instance, counter(value_at)?),
            _ => {
                unknown.push(Unknown { left: next.len(), key: key.to_owned() });
                value(value_at)?.0
            }
        };
    }
    label.instance = label.instance.max(1);
    Ok(label)
}

fn put<'a, T>(place: &mut T, (rest, value): (&'a [u8], T)) -> &'a [u8] {
    *place = value;
    rest
}

/// White space within a line.
fn blank(rest: &[u8]) -> Parsed<'_, ()> {
    // Most often there is none or one.
    match rest {
        [b' ' | b'\t', second, ..] if !matches!(second, b' ' | b'\t') => Ok((&rest[1..], ())),
        [b' ' | b'\t', ..] => take_while(|byte| matches!(byte, b' ' | b'\t')).map(|_| ()).parse(rest),
        _ => Ok((rest, ())),
    }
}

fn separator<'a>(rest: &'a [u8], byte: u8, message: &'static str) -> Parsed<'a, ()> {
    let (rest, ()) = blank(rest)?;
    match rest.first() {
        Some(&found) if found == byte => blank(&rest[1..]),
        _ => slip(rest, message, SHAPE),
    }
}

fn comma(rest: &[u8]) -> Parsed<'_, ()> {
    separator(rest, b',', "expected `,`")
}

fn number(rest: &[u8]) -> Parsed<'_, u32> {
    match nom::character::complete::u32::<_, Slip>.parse(rest) {
        Ok((rest, _)) if rest.first().is_some_and(|byte| is_bare(*byte)) => {
            slip(rest, "expected a whole number", SHAPE)
        }
        Ok(parsed) => Ok(parsed),
        Err(_) if rest.first().is_some_and(u8::is_ascii_digit) => {
            slip(rest, "this number is too large", "numbers go up to 4294967295")
        }
        Err(_) => slip(rest, "expected a whole number", SHAPE),
    }
}

/// A counter, which begins at one.
fn counter(at: &[u8]) -> Parsed<'_, u32> {
    match number(at)? {
        (_, 0) => slip(at, "this is 0, but counters begin at 1", ""),
        parsed => Ok(parsed),
    }
}

fn kind<'a>(at: &'a [u8], scenario: &str) -> Parsed<'a, Kind> {
    let simple = |word: &'static [u8], kind: Kind| tag::<_, _, Slip>(word).map(move |_| kind);
    let parsed = alt((
        simple(b"Ac", Kind::Activity),
        simple(b"Be", Kind::Begin),
        simple(b"Ed", Kind::End),
        simple(b"Fk", Kind::Fork(0)),
        simple(b"Jn", Kind::Join(0)),
    ))
    .parse(at);
    let Ok((rest, kind)) = parsed else {
        return slip(
            at,
            "expected the type of the node",
            "types are `Be`, `Ac`, `Ed`, `Fk(scenario,thread)` and `Jn(scenario,thread)`",
        );
    };
    match kind {
        Kind::Fork(_) => target(rest, scenario).map(|(rest, thread)| (rest, Kind::Fork(thread))),
        Kind::Join(_) => target(rest, scenario).map(|(rest, thread)| (rest, Kind::Join(thread))),
        kind => Ok((rest, kind)),
    }
}

/// The `(j,k')` of a fork or join; `j` is the scenario of the line.
fn target<'a>(rest: &'a [u8], scenario: &str) -> Parsed<'a, u32> {
    let (at, ()) = separator(rest, b'(', "expected `(`, the scenario and the thread that is forked or joined")?;
    let (rest, found) = name(at)?;
    if found != scenario {
        return slip(at, "this names another scenario", "a fork or join stays within its scenario");
    }
    let (rest, ()) = comma(rest)?;
    let (rest, thread) = number(rest)?;
    let (rest, ()) = separator(rest, b')', "expected `)`")?;
    Ok((rest, thread))
}

/// A name, bare or in quotes.
fn name(rest: &[u8]) -> Parsed<'_, Cow<'_, str>> {
    match rest.first() {
        Some(b'"') => quoted(rest),
        Some(b'#') => slip(rest, "expected a name", "a name that begins with `#` needs double quotes"),
        _ => bare(rest, is_bare, "expected a name"),
    }
}

/// The value of an attribute, bare or in quotes.
fn value(rest: &[u8]) -> Parsed<'_, Cow<'_, str>> {
    match rest.first() {
        Some(b'"') => quoted(rest),
        Some(b'#') => slip(rest, "expected a value", "a value that begins with `#` needs double quotes"),
        _ => bare(rest, is_bare_value, "expected a value"),
    }
}

fn bare<'a>(at: &'a [u8], allowed: fn(u8) -> bool, message: &'static str) -> Parsed<'a, Cow<'a, str>> {
    let Ok((rest, word)) = take_while1::<_, _, Slip>(allowed).parse(at) else {
        return slip(at, message, QUOTES);
    };
    match std::str::from_utf8(word) {
        Ok(word) => Ok((rest, Cow::Borrowed(word))),
        Err(error) => slip(&at[error.valid_up_to()..], "this is not UTF-8 text", "save the file as UTF-8"),
    }
}

fn quoted(at: &[u8]) -> Parsed<'_, Cow<'_, str>> {
    const CLOSE: &str = "the name has no closing quote";
    let (mut rest, _) = char('"').parse(at)?;
    let mut text: Cow<'_, [u8]> = Cow::Borrowed(b"");
    loop {
        let Some(stop) = memchr::memchr2(b'"', b'\\', rest) else { return slip(at, CLOSE, "") };
        if text.is_empty() {
            text = Cow::Borrowed(&rest[..stop]);
        } else {
            text.to_mut().extend_from_slice(&rest[..stop]);
        }
        if rest[stop] == b'"' {
            rest = &rest[stop + 1..];
            break;
        }
        let (next, character) = escape(&rest[stop..])?;
        text.to_mut().extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = next;
    }
    let text = match text {
        Cow::Borrowed(text) => std::str::from_utf8(text).map(Cow::Borrowed).ok(),
        Cow::Owned(text) => String::from_utf8(text).map(Cow::Owned).ok(),
    };
    match text {
        Some(text) => Ok((rest, text)),
        None => slip(at, "this is not UTF-8 text", "save the file as UTF-8"),
    }
}

fn escape(at: &[u8]) -> Parsed<'_, char> {
    const KNOWN: &str = "escapes are `\\\"`, `\\\\`, `\\n`, `\\r`, `\\t` and `\\u{hex}`";
    let plain = match at.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let digits = at.get(2..).and_then(|rest| rest.strip_prefix(b"{")).and_then(|rest| {
                let close = rest.iter().take(9).position(|byte| *byte == b'}')?;
                let digits = std::str::from_utf8(&rest[..close]).ok()?;
                let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                (!digits.starts_with('+')).then_some((&rest[close + 1..], character))
            });
            return match digits {
                Some(parsed) => Ok(parsed),
                None => slip(at, "this escape names no character", KNOWN),
            };
        }
        _ => return slip(at, "there is no such escape", KNOWN),
    };
    Ok((&at[2..], plain))
}

/// The key of an attribute at `next` and its `=`; `before` is where the white space in front of it began.
fn attribute_key<'a>(before: &[u8], next: &'a [u8]) -> Parsed<'a, &'a str> {
    const SHAPE: &str = "attributes are written `key=value`, with white space between them";
    if before.len() == next.len() {
        return slip(next, "expected white space", SHAPE);
    }
    let Ok((rest, key)) = take_while1::<_, _, Slip>(is_bare).parse(next) else {
        return slip(next, "expected an attribute", SHAPE);
    };
    let Ok((rest, _)) = char::<_, Slip>('=').parse(rest) else {
        return slip(rest, "expected `=` and the value of the attribute", SHAPE);
    };
    match std::str::from_utf8(key) {
        Ok(key) => Ok((rest, key)),
        Err(_) => slip(next, "this is not UTF-8 text", "save the file as UTF-8"),
    }
}

/// A number of seconds.
fn seconds(at: &[u8]) -> Parsed<'_, f64> {
    let (rest, word) = value(at)?;
    match word.parse::<f64>() {
        Err(_) => slip(at, "expected a number of seconds", "such as `0.0012` or `1.2e-3`"),
        Ok(time) if !time.is_finite() => {
            slip(at, "this time is not a finite number", "leave the attribute out where there is no value")
        }
        Ok(time) if time < 0.0 => slip(at, "this time is negative", "times count from the start of the operation"),
        // Adding zero turns a negative zero into a plain one.
        Ok(time) => Ok((rest, time + 0.0)),
    }
}

fn nanoseconds(at: &[u8]) -> Parsed<'_, i64> {
    let (rest, word) = value(at)?;
    match word.parse() {
        Ok(start) => Ok((rest, start)),
        Err(_) => slip(at, "expected a whole number of nanoseconds", "such as `start=1700000000000000000`"),
    }
}
