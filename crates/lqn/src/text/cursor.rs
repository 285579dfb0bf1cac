//! Walks over the words of a text.

use std::collections::BTreeMap;

use crate::codes;
use crate::findings::{Fault, Findings, fault};
use crate::text::lexer::{Kind, Token};
use dyelog_diagnostic::{Code, Diagnostic, Place};

/// A place among the words of a text, with the variables defined so far.
pub(super) struct Cursor<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    pub(super) variables: BTreeMap<&'a str, f64>,
    pub(super) findings: Findings,
    /// Words left out because they ask for reports.
    pub(super) reports: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: Vec<Token<'a>>, findings: Findings) -> Self {
        Self { tokens, next: 0, variables: BTreeMap::new(), findings, reports: 0 }
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).copied()
    }

    pub(super) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next + 1).copied()
    }

    pub(super) fn advance(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.next += 1;
        Some(token)
    }

    /// Where the next word stands, or the last one ended.
    pub(super) fn place(&self) -> Place {
        match (self.peek(), self.tokens.last()) {
            (Some(token), _) => self.at(token),
            (None, Some(last)) => self.findings.line(last.line, last.column + last.text.len() as u32),
            (None, None) => self.findings.file(),
        }
    }

    pub(super) fn at(&self, token: Token<'_>) -> Place {
        self.findings.line(token.line, token.column)
    }

    /// An error at a word.
    pub(super) fn error(&self, token: Token<'_>, code: Code, message: impl Into<String>) -> Fault {
        self.located(token, fault(code, message))
    }

    /// The error, at a word.
    pub(super) fn located(&self, token: Token<'_>, mut error: Fault) -> Fault {
        error.place = self.at(token);
        error
    }

    /// The error that the next word is not what should be there.
    pub(super) fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some(token) if token.kind == Kind::Variable => format!("`${}`", token.text),
            Some(token) => format!("`{}`", token.text),
        };
        let mut error = fault(codes::SYNTAX, format!("expected {wanted}, found {found}"));
        error.place = self.place();
        error
    }

    /// Passes over the sign if it is next.
    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is_sign(sign));
        self.next += usize::from(found);
        found
    }

    /// Passes over `-1` if it is next.
    pub(super) fn accept_end(&mut self) -> bool {
        let found = self.peek().is_some_and(|token| token.is_end());
        self.next += usize::from(found);
        found
    }

    /// A name, quoted or not.
    pub(super) fn name(&mut self, wanted: &str) -> Result<Token<'a>, Fault> {
        match self.peek() {
            Some(token) if matches!(token.kind, Kind::Word | Kind::Quoted) => {
                self.next += 1;
                Ok(token)
            }
            // Names such as `7` are rare but they exist.
            Some(token) if matches!(token.kind, Kind::Number(value) if value >= 0.0) => {
                self.next += 1;
                Ok(token)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Whether a number or a variable is next, and no `-1`.
    pub(super) fn at_number(&self) -> bool {
        self.peek().is_some_and(|token| matches!(token.kind, Kind::Number(_) | Kind::Variable) && !token.is_end())
    }

    /// A number or the value of a variable.
    pub(super) fn number(&mut self, wanted: &str) -> Result<f64, Fault> {
        let Some(token) = self.peek() else { return Err(self.unexpected(wanted)) };
        let value = match token.kind {
            Kind::Number(value) => value,
            Kind::Variable => self.variable(token)?,
            _ => return Err(self.unexpected(wanted)),
        };
        self.next += 1;
        if value.is_finite() {
            return Ok(value);
        }
        Err(self.error(token, codes::BAD_NUMBER, format!("`{}` is too large", token.text)))
    }

    /// The value of a variable; the word stays.
    pub(super) fn variable(&self, token: Token<'a>) -> Result<f64, Fault> {
        self.variables.get(token.text).copied().ok_or_else(|| {
            let error = fault(codes::UNKNOWN_VARIABLE, format!("`${}` is not defined", token.text));
            let known = self.variables.keys().copied();
            let mut error = Box::new(error.with_similar(token.text, known));
            error.hints.push(format!("define it before its use: `${} = 1`", token.text));
            self.located(token, error)
        })
    }

    /// A whole number from 0.
    pub(super) fn count(&mut self, wanted: &str) -> Result<u32, Fault> {
        let token = self.peek();
        let value = self.number(wanted)?;
        if (0.0..=f64::from(u32::MAX)).contains(&value) && value.fract() == 0.0 {
            return Ok(value as u32);
        }
        let token = token.expect("a number was read there");
        Err(self.error(token, codes::BAD_NUMBER, format!("expected {wanted}, a whole number from 0, found {value}")))
    }

    /// A whole number of either sign; `-1` alone ends lists and is none.
    pub(super) fn integer(&mut self, wanted: &str) -> Result<i32, Fault> {
        let token = self.peek();
        let value = self.number(wanted)?;
        if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) && value.fract() == 0.0 {
            return Ok(value as i32);
        }
        let token = token.expect("a number was read there");
        Err(self.error(token, codes::BAD_NUMBER, format!("expected {wanted}, a whole number, found {value}")))
    }

    /// A whole number from 1.
    pub(super) fn positive(&mut self, wanted: &str) -> Result<u32, Fault> {
        let token = self.peek();
        match (self.count(wanted)?, token) {
            (0, Some(token)) => Err(self.error(token, codes::BAD_NUMBER, format!("{wanted} must be at least 1"))),
            (value, _) => Ok(value),
        }
    }

    /// Numbers up to `-1`.
    pub(super) fn numbers(&mut self, wanted: &str) -> Result<Vec<f64>, Fault> {
        let mut values = Vec::new();
        while self.at_number() {
            values.push(self.number(wanted)?);
            self.skip_reports();
        }
        if self.accept_end() { Ok(values) } else { Err(self.unexpected(&format!("{wanted} or -1"))) }
    }

    /// Passes over wishes such as `%u $variable`, which ask for a report of a result.
    pub(super) fn skip_reports(&mut self) {
        while self.peek().is_some_and(|token| token.is_sign("%")) {
            self.next += 1;
            self.reports += 1;
            while let Some(token) = self.peek()
                && !token.first
                && !token.is_end()
                && token.kind != Kind::Variable
            {
                self.next += 1;
            }
            while self.peek().is_some_and(|token| token.kind == Kind::Variable && !token.first) {
                self.next += 1;
            }
        }
    }

    /// Reports the error and goes to the next line, past the word at fault.
    pub(super) fn recover(&mut self, error: Diagnostic) {
        self.findings.push(error);
        while let Some(token) = self.peek() {
            if token.first && token.line > self.last_line() {
                return;
            }
            self.next += 1;
        }
    }

    /// The line of the word passed last.
    fn last_line(&self) -> u32 {
        self.next.checked_sub(1).map_or(0, |last| self.tokens[last].line)
    }

    /// Passes over words up to and with a `-1` that begins a line.
    pub(super) fn skip_section(&mut self) {
        while let Some(token) = self.advance() {
            if token.is_end() && token.first {
                return;
            }
        }
    }
}
