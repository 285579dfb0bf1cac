//! Arithmetic on times, numbers and parameters, such as `2 ms + 0.1 ms * rows`.
//!
//! ```text
//! expression = term { ("+" | "-") term }
//! term       = factor { ("*" | "/") factor }
//! factor     = "-" factor | NUMBER [ UNIT ] | PARAMETER | ("min" | "max") "(" expression { "," expression } ")"
//!            | "(" expression ")"
//! ```
//!
//! A parsed expression is a list for a stack machine, so that a long one needs no deep recursion; brackets nest at most
//! [`DEEPEST`] deep.

use std::ops::Range;
use std::sync::Arc;

use nom::branch::alt;
use nom::bytes::complete::{take_while, take_while1};
use nom::character::complete::{anychar, char, one_of, satisfy};
use nom::combinator::{opt, recognize, verify};
use nom::sequence::pair;
use nom::{IResult, Parser};

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::config::quantity::{Dimension, Quantity};
use crate::model::config::units;

/// How deep brackets and signs may nest.
const DEEPEST: usize = 64;

/// An expression, with the place where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    source: Source,
    steps: Vec<(StackStep, Range<usize>)>,
}

/// Where an expression is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The whole of it.
    pub place: Place,
    /// Where its first byte stands in its file, if the text is there as it is.
    pub start: Option<usize>,
}

impl Source {
    /// The place of a part of the expression.
    fn part(&self, range: &Range<usize>) -> Place {
        match (&self.place, self.start) {
            (Place::Range { file, .. }, Some(start)) => {
                Place::Range { file: Arc::clone(file), start: start + range.start, end: start + range.end }
            }
            _ => self.place.clone(),
        }
    }
}

/// A step of the stack machine.
#[derive(Clone, Debug, PartialEq)]
enum StackStep {
    Value(Quantity),
    Parameter(Arc<str>),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Least(usize),
    Greatest(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Number(&'t str),
    Name(&'t str),
    Sign(char),
    Other(char),
}

fn digits(input: &str) -> IResult<&str, &str> {
    take_while(|c: char| c.is_ascii_digit()).parse(input)
}

fn number(input: &str) -> IResult<&str, &str> {
    let point = pair(char('.'), digits);
    let exponent = (one_of("eE"), opt(one_of("+-")), take_while1(|c: char| c.is_ascii_digit()));
    let whole = verify(recognize((digits, opt(point))), |text: &str| text.bytes().any(|byte| byte.is_ascii_digit()));
    recognize(pair(whole, opt(exponent))).parse(input)
}

fn name(input: &str) -> IResult<&str, &str> {
    let first = satisfy(|c| c.is_alphabetic() || c == '_' || c == 'µ');
    recognize(pair(first, take_while(|c: char| c.is_alphanumeric() || c == '_'))).parse(input)
}

fn token(input: &str) -> IResult<&str, Token<'_>> {
    alt((
        number.map(Token::Number),
        name.map(Token::Name),
        one_of("+-*/(),").map(Token::Sign),
        anychar.map(Token::Other),
    ))
    .parse(input)
}

/// All tokens with their places.
fn tokens(text: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Ok((after, token)) = token(rest) {
        let start = text.len() - rest.len();
        found.push((token, start..text.len() - after.len()));
        rest = after.trim_start();
    }
    found
}

/// Whether a parameter of that name can be written in an expression.
pub fn is_name(text: &str) -> bool {
    name(text).is_ok_and(|(rest, _)| rest.is_empty())
}

impl Expression {
    /// A value, from outside of any file.
    pub fn constant(value: Quantity) -> Self {
        Self { source: Source { place: Place::Nowhere, start: None }, steps: vec![(StackStep::Value(value), 0..0)] }
    }

    /// A value that is written in a file.
    pub fn literal(value: Quantity, place: Place) -> Self {
        Self { source: Source { place, start: None }, steps: vec![(StackStep::Value(value), 0..0)] }
    }

    /// Reads an expression.
    ///
    /// # Errors
    /// The first thing that is wrong with it, at its place.
    pub fn parse(text: &str, source: Source) -> Result<Self, Diagnostic> {
        let mut parser = Parsing { text, tokens: tokens(text), next: 0, steps: Vec::new(), source: &source };
        parser.expression(0)?;
        if parser.next < parser.tokens.len() {
            return Err(parser.unexpected("an operator or the end"));
        }
        let steps = parser.steps;
        Ok(Self { source, steps })
    }

    /// Where it is written.
    pub fn place(&self) -> &Place {
        &self.source.place
    }

    /// The value, where it is written down as one.
    pub fn as_constant(&self) -> Option<Quantity> {
        match &self.steps[..] {
            [(StackStep::Value(value), _)] => Some(*value),
            _ => None,
        }
    }

    /// The parameters that it uses, with their places.
    pub fn parameters(&self) -> impl Iterator<Item = (&Arc<str>, Place)> {
        self.steps.iter().filter_map(|(step, range)| match step {
            StackStep::Parameter(name) => Some((name, self.source.part(range))),
            _ => None,
        })
    }

    /// Its value, given those of the parameters. `None` where a parameter has none, which has a finding elsewhere.
    ///
    /// # Errors
    /// Units that do not go together, a division by zero, a result beyond all numbers.
    pub fn value(&self, parameter: &dyn Fn(&str) -> Option<Quantity>) -> Result<Option<Quantity>, Diagnostic> {
        let mut stack: Vec<Quantity> = Vec::new();
        for (step, range) in &self.steps {
            let value = match step {
                StackStep::Value(value) => *value,
                StackStep::Parameter(name) => match parameter(name) {
                    Some(value) => value,
                    None => return Ok(None),
                },
                StackStep::Negate => {
                    let value = pop(&mut stack);
                    Quantity { value: -value.value, ..value }
                }
                StackStep::Least(count) | StackStep::Greatest(count) => {
                    let values = stack.split_off(stack.len().saturating_sub(*count));
                    let least = matches!(step, StackStep::Least(_));
                    self.extreme(&values, least, range)?
                }
                StackStep::Add | StackStep::Subtract | StackStep::Multiply | StackStep::Divide => {
                    let right = pop(&mut stack);
                    let left = pop(&mut stack);
                    self.apply(step, left, right, range)?
                }
            };
            if !value.value.is_finite() {
                let message = "the value is too large for a number";
                return Err(Diagnostic::error(codes::VALUE, self.source.part(range), message));
            }
            stack.push(value);
        }
        Ok(Some(pop(&mut stack)))
    }

    fn apply(
        &self,
        step: &StackStep,
        left: Quantity,
        right: Quantity,
        range: &Range<usize>,
    ) -> Result<Quantity, Diagnostic> {
        use Dimension::{Number, Time};
        let (value, words) = match step {
            StackStep::Add => (left.value + right.value, "added to"),
            StackStep::Subtract => (left.value - right.value, "taken from"),
            StackStep::Multiply => (left.value * right.value, "multiplied by"),
            _ => (left.value / right.value, "divided by"),
        };
        let (from, to) = if *step == StackStep::Subtract { (right, left) } else { (left, right) };
        let dimension = match (step, left.dimension, right.dimension) {
            (StackStep::Add | StackStep::Subtract, left, right) if left == right => left,
            (StackStep::Multiply | StackStep::Divide, left, Number) => left,
            (StackStep::Multiply, Number, Time) => Time,
            (StackStep::Divide, Time, Time) => Number,
            _ => {
                let message = format!("{} cannot be {words} {}", from.dimension, to.dimension);
                let finding = Diagnostic::error(codes::UNITS, self.source.part(range), message);
                return Err(match step {
                    StackStep::Add | StackStep::Subtract => finding.with_hint("give the number a unit, such as `2 ms`"),
                    _ => finding.with_note("a time times a number is a time, a time by a time is a number"),
                });
            }
        };
        if *step == StackStep::Divide && right.value == 0.0 {
            return Err(Diagnostic::error(codes::VALUE, self.source.part(range), "this divides by zero"));
        }
        Ok(Quantity { value, dimension })
    }

    fn extreme(&self, values: &[Quantity], least: bool, range: &Range<usize>) -> Result<Quantity, Diagnostic> {
        let dimension = values.first().map_or(Dimension::Number, |value| value.dimension);
        if values.iter().any(|value| value.dimension != dimension) {
            let message = "times and numbers cannot be compared";
            return Err(Diagnostic::error(codes::UNITS, self.source.part(range), message)
                .with_hint("give the number a unit, such as `2 ms`"));
        }
        let all = values.iter().map(|value| value.value);
        let value = if least { all.fold(f64::INFINITY, f64::min) } else { all.fold(f64::NEG_INFINITY, f64::max) };
        Ok(Quantity { value, dimension })
    }
}

fn pop(stack: &mut Vec<Quantity>) -> Quantity {
    // The parser leaves every step as many values as it takes.
    stack.pop().unwrap_or(Quantity::number(0.0))
}

/// An expression being read.
struct Parsing<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Range<usize>)>,
    next: usize,
    steps: Vec<(StackStep, Range<usize>)>,
    source: &'t Source,
}

impl<'t> Parsing<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.next).map(|(token, _)| *token)
    }

    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let Some(Token::Sign(sign)) = self.peek() else { return None };
        signs.contains(&sign).then(|| {
            self.next += 1;
            sign
        })
    }

    fn error(&self, range: &Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(codes::EXPRESSION, self.source.part(range), message)
    }

    fn unexpected(&self, expected: &str) -> Diagnostic {
        match self.tokens.get(self.next) {
            Some((_, range)) => {
                let found = &self.text[range.clone()];
                self.error(range, format!("`{found}` stands where {expected} is expected"))
            }
            None => {
                let end = self.text.len();
                self.error(&(end..end), format!("the expression ends where {expected} is expected"))
            }
        }
    }

    /// From the start of a step to where the reader is.
    fn since(&self, start: usize) -> Range<usize> {
        let end = self.next.checked_sub(1).map_or(start, |last| self.tokens[last].1.end);
        start..end
    }

    fn start(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |(_, range)| range.start)
    }

    fn expression(&mut self, depth: usize) -> Result<(), Diagnostic> {
        let start = self.start();
        self.term(depth)?;
        while let Some(sign) = self.sign(&['+', '-']) {
            self.term(depth)?;
            let step = if sign == '+' { StackStep::Add } else { StackStep::Subtract };
            self.steps.push((step, self.since(start)));
        }
        Ok(())
    }

    fn term(&mut self, depth: usize) -> Result<(), Diagnostic> {
        let start = self.start();
        self.factor(depth)?;
        while let Some(sign) = self.sign(&['*', '/']) {
            self.factor(depth)?;
            let step = if sign == '*' { StackStep::Multiply } else { StackStep::Divide };
            self.steps.push((step, self.since(start)));
        }
        Ok(())
    }

    fn factor(&mut self, depth: usize) -> Result<(), Diagnostic> {
        let start = self.start();
        if depth > DEEPEST {
            return Err(self.error(&(start..start), format!("brackets nest more than {DEEPEST} deep")));
        }
        match self.peek() {
            Some(Token::Sign('-')) => {
                self.next += 1;
                self.factor(depth + 1)?;
                self.steps.push((StackStep::Negate, self.since(start)));
                Ok(())
            }
            Some(Token::Sign('(')) => {
                self.next += 1;
                self.expression(depth + 1)?;
                self.close()
            }
            Some(Token::Number(_)) => self.literal(),
            Some(Token::Name(name)) => {
                self.next += 1;
                if self.sign(&['(']).is_some() {
                    return self.function(name, start, depth);
                }
                self.steps.push((StackStep::Parameter(name.into()), self.since(start)));
                Ok(())
            }
            _ => Err(self.unexpected("a time, a number, a parameter or `(`")),
        }
    }

    fn close(&mut self) -> Result<(), Diagnostic> {
        if self.sign(&[')']).is_some() { Ok(()) } else { Err(self.unexpected("`)`")) }
    }

    fn function(&mut self, name: &str, start: usize, depth: usize) -> Result<(), Diagnostic> {
        let called = start..start + name.len();
        if !matches!(name, "min" | "max") {
            return Err(self
                .error(&called, format!("there is no function `{name}`"))
                .with_note("there are `min` and `max`")
                .with_similar(name, ["min", "max"]));
        }
        let mut count = 1;
        self.expression(depth + 1)?;
        while self.sign(&[',']).is_some() {
            self.expression(depth + 1)?;
            count += 1;
        }
        self.close()?;
        let step = if name == "min" { StackStep::Least(count) } else { StackStep::Greatest(count) };
        self.steps.push((step, self.since(start)));
        Ok(())
    }

    /// A number, with the unit that may follow it.
    fn literal(&mut self) -> Result<(), Diagnostic> {
        let start = self.start();
        self.next += 1;
        let value = if let Some(Token::Name(unit)) = self.peek() {
            self.next += 1;
            let range = self.since(start);
            let seconds = units::seconds(&self.text[range.clone()]).map_err(|why| {
                let place = self.tokens[self.next - 1].1.clone();
                let finding = self.error(&place, why);
                let number = self.text[start..place.start].trim();
                if unit.len() > 3 {
                    finding.with_hint(format!("for a product write `{number} * {unit}`"))
                } else {
                    finding
                }
            })?;
            Quantity::seconds(seconds)
        } else {
            let range = self.since(start);
            let text = &self.text[range.clone()];
            Quantity::number(text.parse().map_err(|_| self.error(&range, format!("`{text}` is no number")))?)
        };
        self.steps.push((StackStep::Value(value), self.since(start)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Expression, Source};
    use crate::diagnostic::Place;
    use crate::model::config::quantity::Quantity;

    fn source() -> Source {
        Source { place: Place::Range { file: "t".into(), start: 100, end: 200 }, start: Some(101) }
    }

    fn value(text: &str) -> Result<Quantity, String> {
        let parameter = |name: &str| match name {
            "rows" => Some(Quantity::number(20.0)),
            "seek" => Some(Quantity::seconds(0.004)),
            _ => None,
        };
        let told = |finding: crate::diagnostic::Diagnostic| match finding.place {
            Place::Range { start, end, .. } => format!("{}..{} {}", start - 101, end - 101, finding.message),
            other => format!("{other:?} {}", finding.message),
        };
        let expression = Expression::parse(text, source()).map_err(told)?;
        expression.value(&parameter).map_err(told)?.ok_or_else(|| "a parameter without a value".to_owned())
    }

    #[test]
    fn values() {
        let time = |text: &str, seconds: f64| {
            let found = value(text).expect(text);
            assert_eq!((found.value, found.dimension), (seconds, Quantity::seconds(0.0).dimension), "{text}");
        };
        time("2 ms", 0.002);
        time("2ms + 0.1 ms*rows", 0.004);
        time("2 * seek - seek / 4", 0.007);
        time("(1 ms + 1 ms) * (rows - 15)", 0.01);
        time("max(seek, 1 ms, 10 us)", 0.004);
        time("min(seek, 1 ms) * 3", 0.003);
        time("--1 s", 1.0);
        time("1 s - 2 s - 3 s", -4.0);
        time("1e-3 s", 0.001);
        assert_eq!(value("seek / 1 ms"), Ok(Quantity::number(4.0)));
        assert_eq!(value("rows / 8 / 2"), Ok(Quantity::number(1.25)));
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, told) in [
            ("", "0..0 the expression ends where a time, a number, a parameter or `(` is expected"),
            ("2 ms +", "6..6 the expression ends where a time, a number, a parameter or `(` is expected"),
            ("2 ms 3", "5..6 `3` stands where an operator or the end is expected"),
            ("(1 + 2", "6..6 the expression ends where `)` is expected"),
            ("1 + # 2", "4..5 `#` stands where a time, a number, a parameter or `(` is expected"),
            ("2 rows", "2..6 `rows` is not a unit of time; units are ns, us, ms, s, min, h and d"),
            ("mean(1, 2)", "0..4 there is no function `mean`"),
            ("1 ms + 2 * rows", "0..15 a time cannot be added to a number"),
            ("rows - 1 ms", "0..11 a time cannot be taken from a number"),
            ("2 + seek * seek", "4..15 a time cannot be multiplied by a time"),
            ("rows / seek", "0..11 a number cannot be divided by a time"),
            ("1 ms / (rows - 20)", "0..18 this divides by zero"),
            ("min(1, 1 ms)", "0..12 times and numbers cannot be compared"),
            ("1e308 * rows", "0..12 the value is too large for a number"),
            ("lost", "a parameter without a value"),
        ] {
            assert_eq!(value(text), Err(told.to_owned()), "{text}");
        }
        assert!(value(&"(".repeat(100_000)).expect_err("too deep").contains("deep"));
        assert!(value(&"-".repeat(100_000)).expect_err("too deep").contains("deep"));
        assert_eq!(value(&format!("1{}", " + 1".repeat(100_000))), Ok(Quantity::number(100_001.0)));
    }
}
