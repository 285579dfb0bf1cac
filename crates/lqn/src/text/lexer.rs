//! Words of the text language.

use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while1};
use nom::character::complete::{char, digit1, one_of};
use nom::combinator::{map, opt, recognize};
use nom::sequence::{delimited, pair, preceded};
use nom::{IResult, Parser};

use crate::codes;
use crate::findings::{Findings, fault};

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a key letter.
    Word,
    /// A text in quotation marks, which may serve as a name and is never a key letter.
    Quoted,
    /// A number.
    Number(f64),
    /// `$name`; its text is the name.
    Variable,
    /// A sign; its text is the sign.
    Sign,
}

/// One word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Line, from 1.
    pub(super) line: u32,
    /// Column in bytes, from 1.
    pub(super) column: u32,
    /// Whether it is the first of its line.
    pub(super) first: bool,
}

impl Token<'_> {
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether it is the key letter.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    /// Whether it is `-1`, which ends lists and sections.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.kind, Kind::Number(_)) && self.text == "-1"
    }
}

/// The words of a text, and the wishes in its `#pragma name=value` lines.
pub(super) struct Words<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    pub(super) pragmas: Vec<(String, String)>,
}

/// Splits a text; characters that start no word are errors and passed over.
pub(super) fn words<'a>(text: &'a str, findings: &mut Findings) -> Words<'a> {
    let mut words = Words { tokens: Vec::with_capacity(text.len() / 6), pragmas: Vec::new() };
    for (number, line) in text.split('\n').enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        line_words(line, number, findings, &mut words);
    }
    words
}

fn line_words<'a>(line: &'a str, number: u32, findings: &mut Findings, words: &mut Words<'a>) {
    let mut rest = line;
    let mut first = true;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return;
        }
        let column = u32::try_from(line.len() - rest.len() + 1).unwrap_or(u32::MAX);
        if let Some(comment) = rest.strip_prefix('#') {
            words.pragmas.extend(pragma(comment));
            return;
        }
        if let Ok((after, (kind, text))) = token(rest) {
            words.tokens.push(Token { kind, text, line: number, column, first });
            first = false;
            rest = after;
        } else {
            let place = findings.line(number, column);
            let stray = rest.chars().next().unwrap_or_default();
            let mut error = if stray == '"' {
                fault(codes::SYNTAX, "this text has no closing quotation mark on its line")
            } else {
                fault(codes::SYNTAX, format!("the character {stray:?} starts no word of the language"))
            };
            error.place = place;
            findings.push(*error);
            // One report a line: what follows is most likely as foreign.
            return;
        }
    }
}

/// `pragma name=value` of a comment.
fn pragma(comment: &str) -> Option<(String, String)> {
    let wish = comment.strip_prefix("pragma").filter(|wish| wish.starts_with(char::is_whitespace))?;
    let (name, value) = wish.split_once('=')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

fn in_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '.' || character == '@'
}

/// Digits with a point and an exponent where given. Not by nom's `digit0`: at the end of a text its rest lies at the
/// wrong place, and `recognize` cuts there.
fn unsigned(input: &str) -> IResult<&str, &str> {
    let exponent = || opt((one_of("eE"), opt(one_of("+-")), digit1));
    alt((
        recognize((digit1, opt(pair(char('.'), opt(digit1))), exponent())),
        recognize((char('.'), digit1, exponent())),
    ))
    .parse(input)
}

/// A number that no name goes on from, as in `1stTask`.
fn number(input: &str) -> IResult<&str, (Kind, &str)> {
    let (rest, text) = recognize(pair(opt(one_of("+-")), unsigned)).parse(input)?;
    match text.parse() {
        Ok(value) if !rest.starts_with(in_name) => Ok((rest, (Kind::Number(value), text))),
        _ => Err(nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Float))),
    }
}

fn token(input: &str) -> IResult<&str, (Kind, &str)> {
    let quoted = delimited(char('"'), map(opt(is_not("\"")), Option::unwrap_or_default), char('"'));
    let variable = preceded(char('$'), take_while1(|character: char| character.is_alphanumeric() || character == '_'));
    alt((
        number,
        map(take_while1(in_name), |text| (Kind::Word, text)),
        map(quoted, |text| (Kind::Quoted, text)),
        map(variable, |text| (Kind::Variable, text)),
        map(tag("->"), |text| (Kind::Sign, text)),
        map(recognize(one_of(":;,&+*/^-=()[]{}%|!<>?~")), |text| (Kind::Sign, text)),
    ))
    .parse(input)
}
