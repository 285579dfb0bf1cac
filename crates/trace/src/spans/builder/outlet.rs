//! Where spans go before their input ends: on, or to where they wait until all of their traces was read.

use std::io;

use super::Builder;
use crate::spans::files::cannot_spill;
use crate::spans::model::Spans;
use crate::spans::store::{Spill, Store};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Names;

/// Takes spans that nothing changes any more.
pub(super) type Outlet<'a> = Box<dyn FnMut(Spans, &mut Names) + 'a>;

/// Spans that wait until all of their traces was read.
pub(super) struct Held {
    store: Store,
    failure: Option<io::Error>,
}

/// So many spans are handed on at once, at least.
const PART: usize = 1 << 14;

impl Builder<'_> {
    /// Hands on the spans so far where they are many. Nothing may refer to them any more.
    pub fn hand_on(&mut self) {
        if self.spans.spans.len() < PART {
            return;
        }
        if self.held.is_some() {
            self.hold();
        } else if self.outlet.is_some() {
            let part = self.take_spans();
            self.hand_on_read(part);
        }
    }

    /// Lets the spans so far wait.
    fn hold(&mut self) {
        let part = self.take_spans();
        let Some(Held { store, failure }) = &mut self.held else { return };
        self.handed_on += part.spans.len();
        if failure.is_none() {
            *failure = store.append(part).err();
        }
    }

    /// The spans so far, which are no longer those of the builder.
    pub(crate) fn take_spans(&mut self) -> Spans {
        let next = Spans {
            files: self.spans.files.clone(),
            kept: self.spans.kept.is_some().then(Box::default),
            ..Spans::default()
        };
        std::mem::replace(&mut self.spans, next)
    }

    /// From now on spans that are handed on wait until all of their traces was read.
    pub(crate) fn hold_traces(&mut self) {
        // Those that are finished take as much again.
        let spill = self.spill.clone().map(|spill| Spill { memory: spill.memory / 2, ..spill });
        self.held = Some(Held { store: Store::by_low_bits(spill), failure: None });
        self.passes_on = false;
    }

    /// Finishes all spans that were held, in batches of whole traces, and hands them on. A batch lies among the spans of the builder, alone. Many
    /// come in the order of the low bits of their traces.
    ///
    /// # Errors
    /// When spans cannot be written to the disk where they wait, or read from there.
    pub(crate) fn finish_traces(&mut self, mut finish: impl FnMut(&mut Self)) -> Result<(), Diagnostics> {
        if self.handed_on == 0 {
            self.held = None;
            finish(self);
            return Ok(());
        }
        self.hold();
        let Some(Held { store, failure }) = self.held.take() else { return Ok(()) };
        self.handed_on = 0;
        let finished = failure.map_or(Ok(()), Err).and_then(|()| {
            store.batches(|batch, _| {
                self.spans = batch;
                finish(self);
                let batch = self.take_spans();
                self.hand_on_read(batch);
                Ok(())
            })
        });
        finished.map(drop).map_err(|error| cannot_spill(&error).into())
    }

    /// The same in the middle of a document, where that may be.
    pub(crate) fn hand_on_within(&mut self) {
        if self.within && self.waiting.is_empty() && self.open_tables == 0 {
            self.hand_on();
        }
    }

    /// Hands on spans of this input that were read elsewhere.
    pub(crate) fn hand_on_read(&mut self, part: Spans) {
        if self.held.is_some() {
            // Few spans stay in the order of the input, however they were read.
            self.spans.append(part);
            self.hand_on();
            return;
        }
        match &mut self.outlet {
            Some(outlet) => {
                self.handed_on += part.spans.len();
                outlet(part, self.names);
            }
            None => self.spans.append(part),
        }
    }

    /// Hands on spans of this input that were read elsewhere, with names of their own.
    pub(crate) fn pass_on(&mut self, part: Spans, names: &mut Names) {
        self.handed_on += part.spans.len();
        if let Some(outlet) = &mut self.outlet {
            outlet(part, names);
        }
    }
}
