//! The journal read from a position on, while it grows.

use std::io;

use super::damaged;
use super::medium::Medium;
use super::record::{self, Record};

/// Reads records in order.
pub struct Reader<M: Medium> {
    medium: M,
    /// Where the segment that is open begins.
    open: Option<(u64, M::Handle)>,
    position: u64,
}

impl<M: Medium> Reader<M> {
    /// From a position, at which a record begins.
    pub fn at(medium: M, position: u64) -> Self {
        Self { medium, open: None, position }
    }

    /// Where the next record begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next record and its position, if it ends at or before `end`.
    ///
    /// # Errors
    /// When the medium fails, or the record is damaged.
    pub fn next(&mut self, end: u64) -> io::Result<Option<(u64, Record)>> {
        if self.position >= end {
            return Ok(None);
        }
        loop {
            let (start, handle) = match &mut self.open {
                Some((start, handle)) => (*start, handle),
                closed => {
                    let segments = self.medium.segments()?;
                    let start = segments.into_iter().rev().find(|start| *start <= self.position);
                    let start = start.ok_or_else(|| damaged(&format!("what is at {} is missing", self.position)))?;
                    let (start, handle) = closed.insert((start, self.medium.open(start)?));
                    (*start, handle)
                }
            };
            if let Some(record) = record::read(handle, self.position - start)? {
                let at = self.position;
                self.position += record.length() as u64;
                return Ok(Some((at, record)));
            }
            // The end of a segment, if another begins here.
            if start == self.position || !self.medium.segments()?.contains(&self.position) {
                return Err(damaged(&format!("the record at {} is damaged", self.position)));
            }
            self.open = None;
        }
    }
}
