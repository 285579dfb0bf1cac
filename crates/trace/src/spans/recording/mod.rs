//! The spans of a recording before anything is made of them: as they were read, or as a sub-model keeps them.
//!
//! Which spans an operation has is not known before all files are there, and neither is how clocks differ. So what is to be joined with
//! other files later keeps its spans: [`Recording::encoded`] writes them, [`Recording::decoded`] reads them.

mod encode;
mod parts;

use std::collections::BTreeSet;

use crate::spans::files::cannot_spill;
use crate::spans::ids::TraceId;
use crate::spans::model::Spans;
use crate::spans::store::Store;
use crate::spans::{SpanFiles, SpanOptions};
use crate::{ReadReport, Sink, TraceNames};
use dyelog_diagnostic::Diagnostics;
use dyelog_diagnostic::names::Names;

pub use parts::Waiting;

/// Spans, in memory or on disk, and how operations are to be made of them.
#[derive(Debug)]
pub struct Recording {
    store: Store,
    options: SpanOptions,
}

impl Recording {
    pub(in crate::spans) fn new(store: Store, options: SpanOptions) -> Self {
        Self { store, options }
    }

    /// How many spans there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.store.len() == 0
    }

    /// Gives out the operations that the spans form, in the order of their start.
    ///
    /// # Errors
    /// Where spans are to wait on disk, and cannot.
    pub fn operations(self, names: &mut TraceNames, sink: &mut dyn Sink) -> Result<ReadReport, Diagnostics> {
        let mut files = SpanFiles::new(sink.wanted(), self.options);
        let given = self.store.batches(|spans, _| {
            files.append(spans, names);
            Ok(())
        });
        given.map_err(|error| cannot_spill(&error))?;
        files.operations(names, sink)
    }

    /// All spans as bytes, which depend on nothing but what the spans say, and how many these are: spans that are alike in everything are
    /// written once. All of them are in memory for that.
    ///
    /// # Errors
    /// Where spans that wait on disk cannot be read.
    pub fn encoded(&mut self, names: &Names) -> Result<(u64, Vec<u8>), Diagnostics> {
        let all = self.store.held().map_err(|error| cannot_spill(&error))?;
        Ok(encode::encoded(&all, names))
    }

    /// The spans behind bytes; `None` where no [`Recording::encoded`] wrote these.
    pub fn decoded(bytes: &[u8], names: &mut Names) -> Option<Spans> {
        encode::decoded(bytes, names)
    }
}

/// Digests of the traces that spans are of.
pub fn digests(spans: &Spans) -> BTreeSet<u64> {
    spans.spans.iter().map(|span| digest(span.trace)).collect()
}

/// A number of a trace that looks random, whatever its identifier.
fn digest(trace: TraceId) -> u64 {
    let mix = |word: u64| {
        let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    mix(mix(trace.0 as u64).wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (trace.0 >> 64) as u64)
}
