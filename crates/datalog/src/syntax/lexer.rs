//! Rule text to tokens with byte positions. Never fails: what it does not know becomes a [`TokenKind::Bad`] token.

use nom::branch::alt;
use nom::bytes::complete::{tag, take, take_while, take_while1};
use nom::character::complete::{char, one_of, satisfy};
use nom::combinator::{opt, recognize, value};
use nom::sequence::{pair, preceded};
use nom::{IResult, Parser};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A name or keyword: a letter or underscore, then letters, digits, underscores and primes.
    Word,
    /// A whole number without a sign.
    Number,
    /// A number with a fraction, an exponent or both, without a sign: `1.5`, `2e-3`.
    Float,
    /// A string with both its quotes.
    Text,
    /// A string that ends with its line instead of a quote.
    OpenText,
    /// `//` to the end of the line.
    Comment,
    /// `///` to the end of the line.
    Doc,
    /// `_`
    Underscore,
    /// `(`
    OpenRound,
    /// `)`
    CloseRound,
    /// `[`
    OpenSquare,
    /// `]`
    CloseSquare,
    /// `{`
    OpenCurly,
    /// `}`
    CloseCurly,
    /// `,`
    Comma,
    /// `|`
    Bar,
    /// `.`
    Dot,
    /// `..`
    Range,
    /// `:`
    Colon,
    /// `:=`
    Define,
    /// `:-`
    If,
    /// `!`
    Not,
    /// `=` or `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// A run of characters that no token begins with.
    Bad,
}

impl TokenKind {
    /// Whether it is a comment, be it one of documentation or not.
    pub fn is_comment(self) -> bool {
        matches!(self, Self::Comment | Self::Doc)
    }
}

/// A token and its bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// All tokens of a text, comments included, in order. The text must be shorter than 4 GiB.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    loop {
        rest = rest.trim_start_matches(char::is_whitespace);
        if rest.is_empty() {
            return found;
        }
        let start = text.len() - rest.len();
        let (after, kind) = token(rest).unwrap_or_else(|_| bad(rest));
        let end = text.len() - after.len();
        found.push(Token { kind, start: start as u32, end: end as u32 });
        rest = after;
    }
}

type Lexed<'t> = IResult<&'t str, TokenKind>;

fn token(input: &str) -> Lexed<'_> {
    alt((word, number, comment, string, long_sign, short_sign)).parse(input)
}

fn word(input: &str) -> Lexed<'_> {
    let (rest, word) = recognize(pair(
        satisfy(|c| c.is_alphabetic() || c == '_'),
        take_while(|c: char| c.is_alphanumeric() || c == '_' || c == '\''),
    ))
    .parse(input)?;
    Ok((rest, if word == "_" { TokenKind::Underscore } else { TokenKind::Word }))
}

/// A dot belongs to a number only between digits: `1..n` is a range, and `p(1).` ends a rule.
fn number(input: &str) -> Lexed<'_> {
    let (rest, _) = digits(input)?;
    let fraction = recognize(pair(char('.'), digits)).parse(rest);
    let (rest, float) = fraction.map_or((rest, false), |(after, _)| (after, true));
    let sign = opt(one_of::<_, _, nom::error::Error<&str>>("+-"));
    let exponent = recognize((one_of("eE"), sign, digits)).parse(rest);
    Ok(match exponent {
        Ok((after, _)) => (after, TokenKind::Float),
        Err(_) => (rest, if float { TokenKind::Float } else { TokenKind::Number }),
    })
}

fn digits(input: &str) -> IResult<&str, &str> {
    take_while1(|c: char| c.is_ascii_digit()).parse(input)
}

/// `///` is a doc comment, but a ruler of four slashes or more is not.
fn comment(input: &str) -> Lexed<'_> {
    let (rest, line) = recognize(preceded(tag("//"), take_while(|c| c != '\n'))).parse(input)?;
    let doc = line.starts_with("///") && !line.starts_with("////");
    Ok((rest, if doc { TokenKind::Doc } else { TokenKind::Comment }))
}

fn string(input: &str) -> Lexed<'_> {
    let (mut rest, _) = tag("\"").parse(input)?;
    loop {
        let (after, _) = take_while(|c| c != '"' && c != '\\' && c != '\n').parse(rest)?;
        rest = match after.as_bytes() {
            [b'"', ..] => return Ok((&after[1..], TokenKind::Text)),
            [b'\\', next, ..] if *next != b'\n' => take(2usize).parse(after)?.0,
            [b'\\', ..] => return Ok((&after[1..], TokenKind::OpenText)),
            _ => return Ok((after, TokenKind::OpenText)),
        };
    }
}

fn long_sign(input: &str) -> Lexed<'_> {
    alt((
        value(TokenKind::Range, tag("..")),
        value(TokenKind::Define, tag(":=")),
        value(TokenKind::If, tag(":-")),
        value(TokenKind::Equal, tag("==")),
        value(TokenKind::NotEqual, tag("!=")),
        value(TokenKind::LessOrEqual, tag("<=")),
        value(TokenKind::GreaterOrEqual, tag(">=")),
    ))
    .parse(input)
}

fn short_sign(input: &str) -> Lexed<'_> {
    let (rest, sign) = satisfy(|c| sign(c).is_some()).parse(input)?;
    Ok((rest, sign_kind(sign)))
}

fn sign_kind(c: char) -> TokenKind {
    sign(c).unwrap_or(TokenKind::Bad)
}

fn sign(c: char) -> Option<TokenKind> {
    Some(match c {
        '(' => TokenKind::OpenRound,
        ')' => TokenKind::CloseRound,
        '[' => TokenKind::OpenSquare,
        ']' => TokenKind::CloseSquare,
        '{' => TokenKind::OpenCurly,
        '}' => TokenKind::CloseCurly,
        ',' => TokenKind::Comma,
        '|' => TokenKind::Bar,
        '.' => TokenKind::Dot,
        ':' => TokenKind::Colon,
        '!' => TokenKind::Not,
        '=' => TokenKind::Equal,
        '<' => TokenKind::Less,
        '>' => TokenKind::Greater,
        '+' => TokenKind::Plus,
        '-' => TokenKind::Minus,
        '*' => TokenKind::Star,
        '/' => TokenKind::Slash,
        '%' => TokenKind::Percent,
        _ => return None,
    })
}

/// A run of characters that nothing begins with, as one token, so that it is reported once.
fn bad(input: &str) -> (&str, TokenKind) {
    let known = |c: char| c.is_whitespace() || c.is_alphabetic() || c.is_ascii_digit() || "_\"".contains(c);
    let end =
        input.char_indices().skip(1).find(|&(_, c)| known(c) || sign(c).is_some()).map_or(input.len(), |(at, _)| at);
    (&input[end..], TokenKind::Bad)
}
