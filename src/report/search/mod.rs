//! Searches for a value that meets goals: what is asked, what each trial found, and the answer with its evidence.

mod ask;
mod choices;
mod cost;
mod forms;
mod goal;
mod trial;

pub use ask::Along;
pub use choices::{Alternative, alternatives, choices};
pub use cost::Cost;
pub use forms::{json, text};
pub use goal::{Figure, Goal, Reached, Relation};
pub use trial::{Busy, Judge, Means, Trial};

use crate::model::parameter::{Kind, Value};
use crate::solve::search::Verdict;

/// The version of the JSON form.
pub const VERSION: u32 = 1;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The largest value.
    Largest,
    /// The smallest value.
    Smallest,
    /// The least cost.
    Cheapest,
}

impl Question {
    /// As it is asked.
    pub fn name(self) -> &'static str {
        match self {
            Self::Largest => "largest",
            Self::Smallest => "smallest",
            Self::Cheapest => "cheapest",
        }
    }
}

/// A search and what it found.
#[derive(Clone, Debug)]
pub struct Search {
    /// What was asked for.
    pub question: Question,
    /// The parameters, by their paths; none where the choices have names.
    pub parameters: Vec<(String, Kind)>,
    /// The goals.
    pub goals: Vec<Goal>,
    /// The solver: `layered` or `simulate`.
    pub solver: &'static str,
    /// What was tried, in the order of values, or of costs.
    pub points: Vec<Point>,
    /// Which point is the answer.
    pub answer: Option<usize>,
    /// Which point is beside it and does not meet the goals.
    pub beyond: Option<usize>,
    /// Among how many values.
    pub among: u64,
    /// Whether values go on beyond the last that was tried.
    pub open: bool,
}

/// A point that was tried.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of a choice that has one.
    pub name: Option<String>,
    /// Values of the parameters.
    pub values: Vec<Value>,
    /// What it costs, where that matters.
    pub cost: Option<f64>,
    /// Whether it meets all goals.
    pub verdict: Verdict,
    /// What was found.
    pub trial: Trial,
}

/// How a figure goes along the values tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// Never down.
    Rises,
    /// Never up.
    Falls,
    /// Neither.
    Stays,
    /// Both.
    Turns,
}

impl Trend {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rises => "rises",
            Self::Falls => "falls",
            Self::Stays => "stays",
            Self::Turns => "turns",
        }
    }
}

/// What a solver leaves open, relative to a figure.
const BOUND: f64 = 1e-4;

impl Search {
    /// Whether all values were tried.
    pub fn is_complete(&self) -> bool {
        !self.open && self.points.len() as u64 == self.among
    }

    /// How often the verdict changes along the values tried.
    pub fn changes(&self) -> usize {
        let met = |point: &Point| point.verdict == Verdict::Met;
        self.points.windows(2).filter(|pair| met(&pair[0]) != met(&pair[1])).count()
    }

    /// How the figure of a goal goes along the values tried, as far as solver or intervals can tell.
    pub fn trend(&self, goal: usize) -> Trend {
        let mut trend = Trend::Stays;
        // The last figure that was certainly another one.
        let mut last: Option<(f64, f64)> = None;
        let steady = self.points.iter().filter(|point| point.trial.state == crate::report::whatif::State::Converged);
        for reached in steady.filter_map(|point| point.trial.reached.get(goal)) {
            let Some(value) = reached.value else { continue };
            let room = reached.half_width.filter(|width| width.is_finite()).unwrap_or(BOUND * value.abs());
            let Some((before, room_before)) = last else {
                last = Some((value, room));
                continue;
            };
            if (value - before).abs() <= room + room_before {
                continue;
            }
            let way = if value > before { Trend::Rises } else { Trend::Falls };
            trend = if trend == Trend::Stays || trend == way { way } else { Trend::Turns };
            last = Some((value, room));
        }
        trend
    }

    /// Points that decide the answer and that no solver could tell: beside it, or cheaper than it; all where there is no answer.
    pub fn unclear(&self) -> usize {
        let doubtful = |point: &&Point| {
            point.verdict == Verdict::Unknown && point.trial.state != crate::report::whatif::State::Converged
        };
        match (self.question, self.answer) {
            (Question::Cheapest, Some(answer)) => {
                let cost = self.points[answer].cost;
                self.points.iter().filter(|point| point.cost < cost).filter(doubtful).count()
            }
            (_, Some(_)) => self.beyond.iter().map(|beyond| &self.points[*beyond]).filter(doubtful).count(),
            (_, None) => self.points.iter().filter(doubtful).count(),
        }
    }
}
