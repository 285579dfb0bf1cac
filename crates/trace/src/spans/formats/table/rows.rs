//! The rows of a table: lines, but for those that a field in quotes holds together.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use super::super::lines::next;
use crate::lines::{LONGEST, Lines};
use crate::messages::row::{Delimiter, Row};
use dyelog_diagnostic::Diagnostics;

/// A field goes over no more lines than this: a mark without its other half must not swallow the table.
const MOST_LINES: usize = 50;

/// Reads rows.
pub(super) struct Rows<R> {
    lines: Lines<R>,
    /// Lines that were looked at, and belong to no row before them.
    waiting: VecDeque<(u32, String)>,
    /// The row.
    pub line: String,
    /// Its first line.
    pub number: u32,
}

impl<R: Read> Rows<R> {
    pub fn new(input: R) -> Self {
        Self { lines: Lines::new(input), waiting: VecDeque::new(), line: String::new(), number: 0 }
    }

    /// Goes to the next line; tells whether there is one.
    pub fn next_line(&mut self, file: &Arc<str>) -> Result<bool, Diagnostics> {
        if let Some((number, line)) = self.waiting.pop_front() {
            (self.number, self.line) = (number, line);
            return Ok(true);
        }
        let Some((number, line)) = next(&mut self.lines, file)? else { return Ok(false) };
        self.line.clear();
        self.line.push_str(&line);
        self.number = number;
        Ok(true)
    }

    /// Splits the line into as many fields as there are columns, with the lines after it where a field in quotes goes on there.
    pub fn split(
        &mut self,
        row: &mut Row,
        delimiter: Delimiter,
        columns: usize,
        file: &Arc<str>,
    ) -> Result<(), Diagnostics> {
        row.split(&self.line, delimiter);
        if row.is_open() && !self.join(row, delimiter, columns, file)? {
            row.split(&self.line, delimiter);
        }
        Ok(())
    }

    /// Whether lines were found that end the field in quotes.
    fn join(
        &mut self,
        row: &mut Row,
        delimiter: Delimiter,
        columns: usize,
        file: &Arc<str>,
    ) -> Result<bool, Diagnostics> {
        let marks = |line: &str| memchr::memchr_iter(b'"', line.as_bytes()).count();
        let (mut whole, mut taken, mut open) = (self.line.clone(), Vec::new(), marks(&self.line) % 2 == 1);
        while open && taken.len() < MOST_LINES && whole.len() < LONGEST {
            let line = match self.waiting.pop_front() {
                Some(line) => line,
                None => match next(&mut self.lines, file)? {
                    Some((number, line)) => (number, line.into_owned()),
                    None => break,
                },
            };
            whole.push('\n');
            whole.push_str(&line.1);
            open ^= marks(&line.1) % 2 == 1;
            taken.push(line);
        }
        row.split(&whole, delimiter);
        let ends = !open && !row.is_open() && row.len() == columns;
        if ends {
            self.line = whole;
        } else {
            // In their order, before those that wait already.
            taken.into_iter().rev().for_each(|line| self.waiting.push_front(line));
        }
        Ok(ends)
    }
}
