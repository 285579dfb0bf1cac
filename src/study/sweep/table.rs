//! What a sweep finds: figures of each point, and how far they can be relied on.

use crate::model::parameter::{Kind, Value};
use crate::study::figure::Figure;
use crate::study::interval::Interval;

/// What a sweep found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Table {
    /// What was varied; the last runs fastest.
    pub axes: Vec<Varied>,
    /// What stands side by side: names of the subjects, one where nothing does.
    pub subjects: Vec<String>,
    /// What was asked for.
    pub measures: Vec<Figure>,
    /// Subject by subject, points in the order of their numbers.
    pub points: Vec<Point>,
}

/// A parameter that was varied.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Varied {
    /// Its path.
    pub path: String,
    /// What it takes.
    pub kind: Kind,
    /// Its values.
    pub values: Vec<Value>,
}

/// A point of a sweep.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Point {
    /// Which subject.
    pub subject: usize,
    /// Positions on the axes.
    pub at: Vec<usize>,
    /// A figure for each measure, where there is one.
    pub figures: Vec<Option<f64>>,
    /// Of a calibrated model and of traces, the interval of each of these, where it has one; else nothing.
    pub intervals: Vec<Option<Interval>>,
    /// How far it can be relied on.
    pub state: State,
    /// Whether a simulation tells its figures.
    pub is_simulated: bool,
}

/// How far a point can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The solver converged.
    Converged,
    /// It did but for consumers of messages that get more than they serve: which, and by how much their backlogs grow. All else is solved.
    Backlog(String),
    /// It did not: what the solver says.
    Doubtful(String),
    /// There is no solution: the reason.
    Failed(String),
}

impl State {
    /// Why it is not to be relied on, or not in all.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Converged => None,
            Self::Backlog(reason) | Self::Doubtful(reason) | Self::Failed(reason) => Some(reason),
        }
    }

    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Backlog(_) => "backlog grows",
            Self::Doubtful(_) => "not converged",
            Self::Failed(_) => "failed",
        }
    }
}
