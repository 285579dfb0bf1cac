//! Times as traces tell them, or do not.

/// A time by the clock of a trace, seconds. It may be unknown: where a trace does not tell it.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp(f64);

impl Timestamp {
    /// Where the trace does not tell.
    pub const UNKNOWN: Self = Self(f64::NAN);

    /// A time as readers of traces give it, seconds; no number where the trace does not tell.
    pub fn read(seconds: f64) -> Self {
        Self(seconds)
    }

    /// Seconds, where they are known.
    pub fn known(self) -> Option<f64> {
        if self.0.is_nan() { None } else { Some(self.0) }
    }

    /// Whether the trace tells.
    pub fn is_known(self) -> bool {
        !self.0.is_nan()
    }

    /// Seconds from an earlier time to this one; `None` where one of them is unknown.
    pub fn since(self, earlier: Self) -> Option<f64> {
        Self(self.0 - earlier.0).known()
    }

    /// The later one; where one is unknown, the other.
    pub fn later(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The earlier one; where one is unknown, the other.
    pub fn earlier(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

/// A duration as readers of traces give it, seconds: `None` for no number, which stands for what the trace does not tell.
pub fn duration(seconds: f64) -> Option<f64> {
    (!seconds.is_nan()).then_some(seconds)
}

/// When a message left and arrived.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// When it left.
    pub sent: Timestamp,
    /// When it arrived.
    pub arrived: Timestamp,
    /// Its network latency by the clocks of its ends, seconds, where both are known.
    pub took: Option<f64>,
}

impl Timing {
    /// Of what is not known.
    pub const UNKNOWN: Self = Self { sent: Timestamp::UNKNOWN, arrived: Timestamp::UNKNOWN, took: None };
}
