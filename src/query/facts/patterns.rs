//! Which texts a regular expression finds a place in: decided where it is asked, for no list has them all.

use std::cell::RefCell;
use std::ops::ControlFlow;

use regex_lite::Regex;
use rustc_hash::FxHashMap;

use crate::datalog::value::Value;
use crate::query::facts::TraceFacts;
use crate::query::patterns::{self, Read};

/// The expressions that were asked so far, and those that were read before.
#[derive(Default)]
pub(super) struct Patterns<'a> {
    asked: RefCell<FxHashMap<Value, Option<Regex>>>,
    read: Option<&'a Read>,
}

impl<'a> TraceFacts<'a> {
    /// With expressions that were read already, once for all operations.
    #[must_use]
    pub(in crate::query) fn with_patterns(mut self, read: &'a Read) -> Self {
        self.patterns.read = Some(read);
        self
    }

    /// The row of a text and an expression, if that finds a place in it. Questions ask with both known only.
    pub(super) fn regex(&self, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let (Some(text), Some(expression)) = (pattern[0], pattern[1]) else { return };
        let (Some(symbol), Some(written)) = (text.as_symbol(), expression.as_symbol()) else { return };
        let mut known = self.patterns.asked.borrow_mut();
        // One that cannot be read finds nothing; those in rules are reported before anything is asked.
        let regex = known.entry(expression).or_insert_with(|| {
            let written = self.text(written);
            let before = self.patterns.read.and_then(|read| read.get(&written));
            before.cloned().or_else(|| patterns::read(&written).ok())
        });
        if regex.as_ref().is_some_and(|regex| regex.is_match(&self.text(symbol))) {
            drop(known);
            let _ = out(&[text, expression]);
        }
    }
}

/// One row where both are known. Elsewhere there would be no end of them, so that it is asked last.
pub(super) fn estimate(bound: u32) -> u64 {
    if bound == 0b11 { 1 } else { u64::MAX }
}
