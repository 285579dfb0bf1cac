//! How sure an answer is: whether goals are met at the worse ends of 95 % intervals, too.

use crate::diagnostic::Diagnostic;
use crate::model::parameter::{Among, Axis, Bounds, Change, Kind, Path, Value};
use crate::study::interval::Interval;
use crate::study::search::bisection::{Aim, SearchOptions, Tried, Verdict, search};
use crate::study::search::questions::{line, value};
use crate::study::search::{Along, Evaluator, Goal, Method, Relation, Search};
use crate::study::sweep::{Before, Question, State, SweepOptions, far_from_traced, given};

/// Digits of a value that is sure, where values are no whole numbers: each that is tried takes many solutions.
const DIGITS: u32 = 2;
/// Fewer values than these are told apart by as many digits as the answer.
const FEW: u64 = 10;

/// How sure an answer is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sure {
    /// By goal, the interval of its figure at the answer, where it has one.
    pub intervals: Vec<Option<Interval>>,
    /// Whether these meet all goals.
    pub is_met: bool,
    /// Of a search along one parameter, the outermost value whose intervals do, where there is one.
    pub value: Option<Value>,
}

/// What an evaluator finds with intervals.
#[derive(Clone, Copy, Debug)]
pub struct Surely<'a> {
    /// Tries points.
    pub evaluator: Evaluator<'a>,
    /// What the subject was before anything was set.
    pub before: &'a Before,
    /// What was set, in words.
    pub set: &'a [String],
}

impl Surely<'_> {
    /// How sure the answer of a search along one parameter is; `None` without answer or intervals.
    pub fn along(&self, path: &Path, bounds: &Bounds, along: Along, found: &Search) -> Option<Sure> {
        let answer = match found.points[found.answer?].values[..] {
            [Value::Number(number)] => number,
            [Value::Infinite] => f64::INFINITY,
            _ => return None,
        };
        let at = |number: f64| [Change { path: path.clone(), value: value(number) }];
        let intervals = self.intervals(&at(answer)).filter(|own| is_any(own))?;
        if self.is_met(&intervals) {
            return Some(Sure { intervals, is_met: true, value: Some(value(answer)) });
        }
        let bounds = Bounds { among: inside(&bounds.among, along.aim, answer), ..bounds.clone() };
        let options = SearchOptions { aim: along.aim, start: Some(answer), checks: 0 };
        let rough = line(&bounds, along.digits.min(DIGITS));
        let line = if rough.end() < FEW { line(&bounds, along.digits) } else { rough };
        let found = search(&line, &options, |number| {
            let is_met = is_inside(along.aim, answer, number)
                && self.intervals(&at(number)).is_some_and(|own| self.is_met(&own));
            let verdict = if is_met { Verdict::Met } else { Verdict::Missed };
            Tried { verdict, missed: if is_met { Vec::new() } else { vec![0] }, told: () }
        });
        let sure = found.answer.map(|place| value(line.value(place)));
        Some(Sure { intervals, is_met: false, value: sure })
    }

    /// How sure a choice is.
    pub fn of(&self, changes: &[Change]) -> Option<Sure> {
        let intervals = self.intervals(changes).filter(|own| is_any(own))?;
        let is_met = self.is_met(&intervals);
        Some(Sure { intervals, is_met, value: None })
    }

    /// Warns where an answer is about far more load than was traced.
    pub fn far_from_traced(&self, changes: &[Change]) -> Option<Diagnostic> {
        far_from_traced(&self.question(changes, SweepOptions::default()), self.evaluator.subject)
    }

    /// The goals' figures at a point.
    fn question(&self, changes: &[Change], options: SweepOptions) -> Question {
        let axis = |change: &Change| {
            let values = vec![change.value.clone()];
            (change.path.clone(), Axis { kind: Kind::Number, values })
        };
        let measures = self.evaluator.goals.iter().map(|goal| goal.figure.clone()).collect();
        Question { axes: changes.iter().map(axis).collect(), measures, options }
    }

    /// The intervals of the goals' figures at a point; of one that is certain, from it to it. `None` where the point has no solution in layers.
    fn intervals(&self, changes: &[Change]) -> Option<Vec<Option<Interval>>> {
        let Evaluator { subject, goals, method } = self.evaluator;
        let Method::Layered(options) = method else { return None };
        let given = self.set.iter().filter_map(|text| given(text, subject));
        let given = given.chain(changes.iter().map(|change| change.path.clone())).collect();
        let options = SweepOptions { solver: options.clone().into(), given, ..SweepOptions::default() };
        let mut points = self.question(changes, options).answer_solved(subject, self.before);
        let point = points.pop().filter(|point| point.state == State::Converged)?;
        let interval = |number: usize| {
            let figure = point.figures[number]?;
            Some(point.intervals.get(number).copied().flatten().unwrap_or(Interval { low: figure, high: figure }))
        };
        Some((0..goals.len()).map(interval).collect())
    }

    fn is_met(&self, intervals: &[Option<Interval>]) -> bool {
        let met = |(goal, own): (&Goal, &Option<Interval>)| own.is_some_and(|own| goal.is_met_by(own));
        self.evaluator.goals.iter().zip(intervals).all(met)
    }
}

/// Whether any of these intervals is one.
fn is_any(intervals: &[Option<Interval>]) -> bool {
    intervals.iter().flatten().any(|own| own.low < own.high)
}

/// Whether a value is the answer, or on the side where goals are expected to be met.
fn is_inside(aim: Aim, answer: f64, value: f64) -> bool {
    if aim == Aim::Largest { value <= answer } else { value >= answer }
}

/// Values up to the answer, on the side where goals are expected to be met.
fn inside(among: &Among, aim: Aim, answer: f64) -> Among {
    match among {
        Among::Listed(values) => {
            Among::Listed(values.iter().copied().filter(|value| is_inside(aim, answer, *value)).collect())
        }
        Among::From(first, _) if aim == Aim::Largest => Among::From(*first, Some(answer)),
        Among::From(_, last) => Among::From(answer, *last),
    }
}

impl Goal {
    /// Whether all of an interval meets it.
    fn is_met_by(&self, interval: Interval) -> bool {
        let worse = match self.relation {
            Relation::Below | Relation::AtMost => interval.high,
            Relation::Above | Relation::AtLeast => interval.low,
        };
        self.relation.holds(worse, self.bound)
    }
}
