//! Searches for a value that meets goals: what is asked, what each evaluation found, and the answer with its evidence.

mod alternatives;
pub mod bisection;
mod cost;
mod evaluation;
mod goal;
pub mod line;
pub mod order;
mod questions;
mod sure;

pub use alternatives::{Alternative, alternatives, choices, idle_costs};
pub use bisection::{Aim, Verdict};
pub use cost::Cost;
pub use evaluation::{Busy, Evaluation, Evaluator, Method};
pub use goal::{Goal, Reached, Relation};

pub use crate::study::figure::Figure;
pub use questions::Along;
pub use sure::{Sure, Surely};

use crate::model::parameter::{Kind, Value};
use crate::study::sweep::State;

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
#[non_exhaustive]
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
    /// How sure the answer is, where figures have intervals.
    pub sure: Option<Sure>,
}

/// A point that was tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    pub evaluation: Evaluation,
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

/// What an approximate solver leaves open between points that are solved by different methods, relative to a figure.
const APPROXIMATE: f64 = 2.5e-3;

impl Search {
    /// Whether all values were tried.
    pub fn is_complete(&self) -> bool {
        !self.open && self.points.len() as u64 == self.among
    }

    /// Whether the values tried meet the goals, those without a verdict left out.
    fn told(&self) -> Vec<bool> {
        let told = self.points.iter().filter(|point| point.verdict != Verdict::Unknown);
        told.map(|point| point.verdict == Verdict::Met).collect()
    }

    /// How often the verdict changes along the values tried, as far as anybody can tell.
    pub fn changes(&self) -> usize {
        self.told().windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// Of how many ranges the values tried that meet the goals are, as far as anybody can tell.
    pub fn ranges(&self) -> usize {
        self.told().chunk_by(|left, right| left == right).filter(|range| range[0]).count()
    }

    /// Whether a solver with an error of its own solved the points that decide: the answer and what is beside it, else all.
    pub fn is_approximate(&self) -> bool {
        let deciding = |(place, _): &(usize, &Point)| {
            self.answer.is_none() || self.answer == Some(*place) || self.beyond == Some(*place)
        };
        self.points.iter().enumerate().filter(deciding).any(|(_, point)| !point.evaluation.exact)
    }

    /// The change of a figure between two points that counts as none, relative to it; `None` where intervals tell.
    pub fn level(&self) -> Option<f64> {
        let exact = self.points.iter().all(|point| point.evaluation.exact);
        (self.solver == "layered").then_some(2.0 * if exact { goal::OPEN } else { APPROXIMATE })
    }

    /// How the figure of a goal goes along the values tried, as far as solver or intervals can tell; `None` where fewer than two
    /// of them have one.
    pub fn trend(&self, goal: usize) -> Option<Trend> {
        let mut trend = Trend::Stays;
        // The last figure that was certainly another one.
        let mut last: Option<(f64, f64)> = None;
        let steady = self.points.iter().filter(|point| point.evaluation.state == State::Converged);
        let figures: Vec<(f64, &Reached)> = steady
            .filter_map(|point| point.evaluation.reached.get(goal))
            .filter_map(|reached| Some((reached.value?, reached)))
            .collect();
        if figures.len() < 2 {
            return None;
        }
        let level = self.level().unwrap_or(2.0 * goal::OPEN);
        for (value, reached) in figures {
            let room = reached.half_width.filter(|width| width.is_finite()).unwrap_or(0.5 * level * value.abs());
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
        Some(trend)
    }

    /// Which of these alternatives is the answer.
    pub fn chosen<'a>(&self, all: &'a [Alternative]) -> Option<&'a Alternative> {
        let point = &self.points[self.answer?];
        let is_it = |own: &&Alternative| {
            let values = own.changes.iter().map(|change| &change.value);
            own.name == point.name && values.eq(&point.values)
        };
        all.iter().find(is_it)
    }

    /// Points that decide the answer and that no solver could tell: beside it, or cheaper than it; all where there is no answer.
    pub fn unclear(&self) -> usize {
        let doubtful = |point: &&Point| point.verdict == Verdict::Unknown && point.evaluation.state != State::Converged;
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
