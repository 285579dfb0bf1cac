//! What a file keeps of its recordings beside sums, so that operations of which other files have the rest can be joined.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::Document;
use super::read::Reader;
use super::write::document;
use crate::submodel::SubModel;

/// The most digests of traces that are kept.
const MOST: usize = 4096;

/// Recordings that stay with the sub-model that was made of them.
///
/// The sub-model of a file has the operations of these recordings in it. Where the recordings of several files are joined, their operations
/// are reduced anew, all together, and what has no recording any more ([`Kept::closed`]) is added.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// How the operations were made of the recordings.
    pub made: Made,
    /// How many spans the recordings have.
    pub spans: u64,
    /// The recordings, in a form that those who write them know.
    pub recording: Vec<u8>,
    /// The sums of all operations of which nothing is kept.
    pub closed: SubModel,
    /// Some of the traces that these operations are from.
    pub closed_traces: Sample,
}

/// How operations are made of a recording. Recordings for which it differs are not joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// A digest of the rules.
    pub rules: String,
    /// The patterns by which names of operations are grouped, as `--group` takes them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub group: Vec<String>,
    /// The probability with which operations were said to have been kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sampling: Option<f64>,
}

/// The least of many digests, and how many there are. Parts merge in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// How many.
    pub count: u64,
    /// The least, in order.
    least: Vec<u64>,
}

impl Sample {
    /// The least of these, which are in order and differ.
    pub fn of(digests: impl ExactSizeIterator<Item = u64>) -> Self {
        Self { count: digests.len() as u64, least: digests.take(MOST).collect() }
    }

    /// Takes in the other.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.least.extend(&other.least);
        self.least.sort_unstable();
        self.least.dedup();
        self.least.truncate(MOST);
    }

    /// Whether a digest is among the least.
    pub fn has(&self, digest: u64) -> bool {
        self.least.binary_search(&digest).is_ok()
    }

    /// The least of them, in order.
    pub fn least(&self) -> &[u64] {
        &self.least
    }

    /// Of how many each of the least stands.
    pub fn each(&self) -> f64 {
        if self.least.len() < MOST { 1.0 } else { self.count as f64 / MOST as f64 }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptShape {
    version: u32,
    made: Made,
    spans: u64,
    recording: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    closed: Option<Box<Document>>,
    #[serde(skip_serializing_if = "super::is_zero", default)]
    closed_traces: u64,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    closed_least: Vec<u64>,
}

/// Of the form of what is kept.
const VERSION: u32 = 1;

impl KeptShape {
    pub(super) fn of(kept: &Kept, merge: &str) -> Self {
        let closed = &kept.closed;
        // Where no span is kept these are the sums of the file.
        let has_closed = kept.spans > 0 && !closed.is_empty();
        Self {
            version: VERSION,
            made: kept.made.clone(),
            spans: kept.spans,
            recording: STANDARD.encode(&kept.recording),
            closed: has_closed.then(|| Box::new(document(closed, merge, None))),
            closed_traces: kept.closed_traces.count,
            closed_least: kept.closed_traces.least.clone(),
        }
    }

    pub(super) fn read(&self, whole: &SubModel, merge: &str, reader: &mut Reader<'_>) -> Kept {
        if self.version != VERSION {
            let message = format!("this is version {} of what is kept; version {VERSION} can be read", self.version);
            reader.wrong("kept.version", message);
        }
        let recording = STANDARD.decode(&self.recording).unwrap_or_else(|_| {
            reader.wrong("kept.recording", "this is no base64".to_owned());
            Vec::new()
        });
        if !self.closed_least.is_sorted_by(|one, next| one < next)
            || self.closed_least.len() > MOST
            || self.closed_traces < self.closed_least.len() as u64
        {
            reader.wrong("kept.closed_least", "these are not the least digests of so many traces".to_owned());
        }
        if self.made.sampling.is_some_and(|part| !(part > 0.0 && part <= 1.0)) {
            reader.wrong("kept.made.sampling", "this is no probability above 0".to_owned());
        }
        let closed = self.closed.as_ref().map(|document| {
            if document.kept.is_some() || document.merge != merge {
                reader
                    .wrong("kept.closed", "it keeps something itself, or its entries were merged otherwise".to_owned());
            }
            reader.document(document)
        });
        let closed = if self.spans == 0 { Some(whole.clone()) } else { closed };
        let closed_traces = Sample { count: self.closed_traces, least: self.closed_least.clone() };
        let (made, closed) = (self.made.clone(), closed.unwrap_or_default());
        Kept { made, spans: self.spans, recording, closed, closed_traces }
    }
}
