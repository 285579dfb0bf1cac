//! What sweeps find: figures of each point, as tables, CSV, JSON and plots.

mod forms;
mod measure;
mod picture;

pub use forms::{csv, json, text};
pub use measure::{Measure, Quantity};
pub use picture::plots;

use crate::model::parameter::{Kind, Value};

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// What a sweep found.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What was varied; the last runs fastest.
    pub axes: Vec<Varied>,
    /// What stands side by side: names of the subjects, one where nothing does.
    pub subjects: Vec<String>,
    /// What was asked for.
    pub measures: Vec<Measure>,
    /// Subject by subject, points in the order of their numbers.
    pub points: Vec<Point>,
}

/// A parameter that was varied.
#[derive(Clone, Debug)]
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
pub struct Point {
    /// Which subject.
    pub subject: usize,
    /// Positions on the axes.
    pub at: Vec<usize>,
    /// A figure for each measure, where there is one.
    pub figures: Vec<Option<f64>>,
    /// How far it can be relied on.
    pub state: State,
}

/// How far a point can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The solver converged.
    Converged,
    /// It did not: what the solver says.
    Doubtful(String),
    /// There is no solution: the reason.
    Failed(String),
}

impl State {
    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Doubtful(_) => "not converged",
            Self::Failed(_) => "failed",
        }
    }
}
