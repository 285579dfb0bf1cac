//! What became of the spans that were received: none is lost without a count.

use serde::{Deserialize, Serialize};

/// Numbers of spans. What was received is folded, open, set aside, refused or a duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Spans that came in requests that were acknowledged.
    pub received: u64,
    /// Spans of which a model was made.
    pub folded: u64,
    /// Spans of traces to which more may come.
    pub open: u64,
    /// Spans that no model could be made of, with impossible times or in messages that cannot be read, and those of other environments.
    pub set_aside: u64,
    /// How many of these name another environment than the one that is taken.
    pub other_environment: u64,
    /// Spans without usable identifiers.
    pub refused: u64,
    /// Spans that had been received already.
    pub duplicate: u64,
    /// Traces that were folded without their root or some parent.
    pub incomplete_traces: u64,
    /// Parts of traces that came after the rest of their trace was folded, and had no root.
    pub late_parts: u64,
    /// The spans of these.
    pub late_spans: u64,
    /// How often the clock of the server's machine was found to have been ahead, when it came back.
    pub set_back: u64,
    /// When that was last, nanoseconds since 1970, and what the clock had shown.
    pub set_back_at: Option<(u64, u64)>,
    /// Requests with metrics.
    pub metric_requests: u64,
    /// Points of metrics that came.
    pub metric_points: u64,
    /// Points that tell rates or utilisation.
    pub used_points: u64,
    /// Points that came before, or after a later one.
    pub late_points: u64,
    /// Points with impossible times or values, or of one series too many.
    pub set_aside_points: u64,
    /// Points that say that nothing was recorded.
    pub no_value_points: u64,
    /// Points that do not say when they were taken, or could not be read.
    pub refused_points: u64,
    /// Points of one series too many.
    pub no_room_points: u64,
    /// When the first and the last of these came, nanoseconds since 1970.
    pub no_room: Option<(u64, u64)>,
}

impl Counts {
    /// Whether all that was received is accounted for.
    pub fn are_conserved(&self) -> bool {
        self.received == self.folded + self.open + self.set_aside + self.refused + self.duplicate
    }
}
