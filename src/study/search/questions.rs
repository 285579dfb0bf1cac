//! Searching: the line or the choices, with evaluations in the place of numbers.

use crate::model::parameter::{Among, Bounds, Change, Kind, Path, Value};
use crate::solve::WarmStart;
use crate::study::search::bisection::{Found, SearchOptions, Tried, search};
use crate::study::search::line::Line;
use crate::study::search::order::{Choice, cheapest};
use crate::study::search::{Aim, Verdict};
use crate::study::search::{Alternative, Evaluation, Evaluator, Method, Point, Question, Search};
use crate::study::sweep::State;

/// So many choices are solved in layers at a time, whatever the number of threads.
const AT_A_TIME: usize = 16;

/// How to look for the value of one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Along {
    /// For the largest or the smallest.
    pub aim: Aim,
    /// Values to try besides, on both sides of the answer.
    pub checks: usize,
    /// Significant digits of values that are no whole numbers.
    pub digits: u32,
}

impl Evaluator<'_> {
    /// Looks for the largest or the smallest value of a parameter that meets the goals. `told` hears of every evaluation.
    ///
    /// In layers, each point is solved from where the solver stood with the one before. The points that decide are then solved
    /// from scratch; should one come out otherwise, all are.
    pub fn along(&self, path: &Path, bounds: &Bounds, along: Along, told: &dyn Fn()) -> Search {
        let line = line(bounds, along.digits);
        let options = SearchOptions { aim: along.aim, start: bounds.present, checks: along.checks };
        let at = |number: f64| [Change { path: path.clone(), value: value(number) }];
        let from_scratch = |number: f64| {
            told();
            self.tried(self.attempt(&at(number), &mut None))
        };
        let mut warm_start: Option<WarmStart> = None;
        let mut found = search(&line, &options, |number| {
            told();
            self.tried(self.attempt(&at(number), &mut warm_start))
        });
        if matches!(self.method, Method::Layered(_)) && !confirmed(&line, &mut found, &from_scratch) {
            found = search(&line, &options, from_scratch);
        }
        let place = |wanted: Option<u64>| found.tried.keys().position(|place| Some(*place) == wanted);
        let (answer, beyond) = (place(found.answer), place(found.beyond));
        let (among, open) = (found.end + 1, line.is_open());
        let points = found.tried.into_iter().map(|(place, tried)| Point {
            name: None,
            values: vec![value(line.value(place))],
            cost: None,
            verdict: tried.verdict,
            evaluation: tried.told,
        });
        Search {
            question: if along.aim == Aim::Largest { Question::Largest } else { Question::Smallest },
            parameters: vec![(path.to_string(), bounds.kind)],
            goals: self.goals.to_vec(),
            solver: self.solver(),
            points: points.collect(),
            answer,
            beyond,
            among,
            open,
            sure: None,
        }
    }

    /// Looks for the cheapest of several; of those that cost the same, for the one with the most to spare. They are tried from
    /// scratch, by so many threads, which change nothing in what is found.
    pub fn among(&self, all: &[Alternative], threads: usize, told: &(dyn Fn() + Sync)) -> Search {
        let costs: Vec<f64> = all.iter().map(|own| own.cost).collect();
        // A simulation has threads of its own, and takes too long to be made in vain.
        let (at_a_time, threads) =
            if matches!(self.method, Method::Layered(_)) { (AT_A_TIME, threads) } else { (1, 1) };
        let tried = cheapest(&costs, at_a_time, threads, &|number| {
            told();
            self.attempt(&all[number].changes, &mut None)
        });
        let point = |choice: Choice<Evaluation>| {
            let own = &all[choice.number];
            let values = own.changes.iter().map(|change| change.value.clone());
            Point {
                name: own.name.clone(),
                values: values.collect(),
                cost: Some(own.cost),
                verdict: choice.verdict,
                evaluation: choice.told,
            }
        };
        let points: Vec<Point> = tried.into_iter().map(point).collect();
        let mut answer: Option<usize> = None;
        for (place, own) in points.iter().enumerate().filter(|(_, point)| point.verdict == Verdict::Met) {
            let better = |best: &Point| own.cost == best.cost && own.evaluation.margin() > best.evaluation.margin();
            if answer.is_none_or(|best| better(&points[best])) {
                answer = Some(place);
            }
        }
        let named = all.iter().any(|own| own.name.is_some());
        let kind = |value: &Value| if matches!(value, Value::Word(_)) { Kind::Word } else { Kind::Number };
        let parameters = all
            .first()
            .filter(|_| !named)
            .map(|own| own.changes.iter().map(|change| (change.path.to_string(), kind(&change.value))).collect());
        Search {
            question: Question::Cheapest,
            parameters: parameters.unwrap_or_default(),
            goals: self.goals.to_vec(),
            solver: self.solver(),
            points,
            answer,
            beyond: None,
            among: all.len() as u64,
            open: false,
            sure: None,
        }
    }

    /// An evaluation with the goals that it misses. To have a solution in a steady state counts as one more.
    fn tried(&self, (verdict, evaluation): (Verdict, Evaluation)) -> Tried<Evaluation> {
        let missed = if evaluation.state == State::Converged {
            let missed = evaluation.reached.iter().enumerate().filter(|(_, reached)| reached.verdict != Verdict::Met);
            missed.map(|(goal, _)| goal).collect()
        } else {
            vec![self.goals.len()]
        };
        Tried { verdict, missed, told: evaluation }
    }

    fn solver(&self) -> &'static str {
        match self.method {
            Method::Layered(_) => "layered",
            Method::Simulated(_) => "simulate",
        }
    }
}

/// Whether the points that decide come out the same from scratch; what they come to then stands in the place of what was found.
fn confirmed(line: &Line, found: &mut Found<Evaluation>, from_scratch: &dyn Fn(f64) -> Tried<Evaluation>) -> bool {
    for place in [found.answer, found.beyond].into_iter().flatten() {
        let again = from_scratch(line.value(place));
        if found.tried.get(&place).is_some_and(|tried| tried.verdict != again.verdict) {
            return false;
        }
        found.tried.insert(place, again);
    }
    true
}

pub(super) fn line(bounds: &Bounds, digits: u32) -> Line {
    match &bounds.among {
        Among::Listed(values) => Line::Listed(values.clone()),
        Among::From(first, last) => match (bounds.kind, last) {
            (Kind::Time | Kind::Rate | Kind::Number, Some(last)) if *last > 0.0 => {
                Line::Digits { digits, first: *first, last: *last }
            }
            (_, last) => Line::Whole { first: *first, last: *last },
        },
    }
}

pub(super) fn value(number: f64) -> Value {
    if number.is_finite() { Value::Number(number) } else { Value::Infinite }
}
