//! Why a recorder or an observer cannot start.

use std::fmt;

/// Why a recorder or an observer cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// One of its kind runs already; a process has one at most.
    Running,
    /// The system refuses its thread.
    Thread(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("one of this process runs already"),
            Self::Thread(why) => write!(f, "the system refuses its thread: {why}"),
        }
    }
}

impl std::error::Error for StartError {}
