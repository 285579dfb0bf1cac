//! What if: parameters of one or several subjects varied, and figures read from each solution.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lqn::Model;
use crate::lqn::results::Results;
use crate::model::parameter::{Asked, Axis, Change, Path, Subject, Value};
use crate::model::{Load, ScenarioOrigin};
use crate::solve::{Method, solve};
use crate::study::about_scenarios;
use crate::study::backlog::beside_backlogs;
use crate::study::doubt::{self, Observed};
use crate::study::effect::no_difference;
use crate::study::figure::Figure;
use crate::study::interval::{Interval, figures_of, others, solutions, widened};
use crate::study::sweep::{Grid, Point, State, SweepOptions, Table, Varied, sweep};

/// Figures of a point, their intervals, and how far they can be relied on.
type Read = (Vec<Option<f64>>, Vec<Option<Interval>>, State);

/// Which parameters are varied, and what is read.
#[derive(Clone, Debug)]
pub struct Question {
    /// The parameters with their values: every value of the one with every value of the others.
    pub axes: Vec<(Path, Axis)>,
    /// The figures.
    pub measures: Vec<Figure>,
    /// How points are solved.
    pub options: SweepOptions,
}

/// Points of a sweep of traces whose figures have intervals (ours): each is solved up to 11 times more.
pub(super) const MOST_POINTS: usize = 256;

/// What a question leaves to traces.
struct Left<'q> {
    question: &'q Question,
    subject: &'q Subject,
}

impl Left<'_> {
    fn is_given(&self, path: &[&str]) -> bool {
        self.question.options.given.iter().any(|own| own.names() == path)
    }
}

impl Observed for Left<'_> {
    fn scenario(&self, own: &ScenarioOrigin) -> Option<&ScenarioOrigin> {
        self.subject.observed(own)
    }

    fn is_rate(&self, own: &ScenarioOrigin) -> bool {
        let traced = self.subject.observed(own).is_some_and(|traced| matches!(traced.load, Load::Open { .. }));
        traced && !self.is_given(&[own.table(), &own.name, "rate"])
    }

    fn is_told(&self, entry: &str) -> bool {
        self.is_given(&["entry", entry, "demand"])
    }
}

impl Question {
    /// The points.
    pub fn grid(&self) -> Grid {
        Grid { axes: self.axes.iter().map(|(_, axis)| places(&axis.values)).collect() }
    }

    /// Warnings of parameters that are varied and make no difference to a subject.
    pub fn without_effect(&self, subject: &Subject) -> Vec<Diagnostic> {
        let model = |axis: usize, end: usize| {
            let mut at = vec![0; self.axes.len()];
            at[axis] = end;
            subject.ask(&self.changes(&at)).ok().map(|asked| asked.model)
        };
        let idle = self.axes.iter().enumerate().filter(|(number, (_, axis))| {
            let last = axis.values.len().saturating_sub(1);
            last > 0 && model(*number, 0).is_some_and(|first| model(*number, last).is_some_and(|last| first == last))
        });
        idle.map(|(_, (path, _))| no_difference(&path.to_string())).collect()
    }

    /// Asks the same of each subject. `told` hears of every point that is solved, from any thread.
    pub fn ask(&self, subjects: &[(String, Subject)], told: &(dyn Fn() + Sync)) -> Table {
        let points = subjects.iter().enumerate().flat_map(|(number, (_, subject))| self.points(number, subject, told));
        self.table(subjects.iter().map(|(name, _)| name.clone()).collect(), points.collect())
    }

    /// The points of the subject of that number.
    pub(super) fn points(&self, number: usize, subject: &Subject, told: &(dyn Fn() + Sync)) -> Vec<Point> {
        let grid = self.grid();
        let build = |at: &[usize]| subject.ask(&self.changes(at));
        let read = |asked: &Asked, results: &Results| self.read(subject, asked, results);
        let found = sweep(&grid, &self.options, build, read, told).into_iter().enumerate();
        let is_simulated = self.options.solver.method == Method::Simulation;
        let point = |(place, found): (usize, Result<Read, Diagnostics>)| {
            let (figures, intervals, state) = found.unwrap_or_else(|reasons| self.failed(subject, reasons));
            Point { subject: number, at: grid.point(place), figures, intervals, state, is_simulated }
        };
        found.map(point).collect()
    }

    /// What was found of subjects of these names.
    pub(super) fn table(&self, subjects: Vec<String>, points: Vec<Point>) -> Table {
        let varied = self.axes.iter().map(|(path, axis)| Varied {
            path: path.to_string(),
            kind: axis.kind,
            values: axis.values.clone(),
        });
        Table { axes: varied.collect(), subjects, measures: self.measures.clone(), points }
    }

    pub(super) fn changes(&self, at: &[usize]) -> Vec<Change> {
        let values = self.axes.iter().zip(at);
        values.map(|((path, axis), at)| Change { path: path.clone(), value: axis.values[*at].clone() }).collect()
    }

    fn read(&self, subject: &Subject, asked: &Asked, results: &Results) -> Read {
        let beside = self.beside_backlogs(asked, results);
        let results = beside.as_ref().map_or(results, |(results, _)| results);
        let state = match &beside {
            Some((_, backlogs)) if !backlogs.is_empty() => State::Backlog(backlogs.clone()),
            _ if results.convergence.converged => State::Converged,
            _ => State::Doubtful(results.caveats.join("; ")),
        };
        let figure = |measure: &Figure| {
            // Where more arrives than is served, figures grow for as long as one looks: there are none.
            if results.convergence.saturated {
                return None;
            }
            measure.of(&asked.model, results, asked.origins.as_ref()).filter(|figure| figure.is_finite())
        };
        let figures: Vec<Option<f64>> = self.measures.iter().map(figure).collect();
        let intervals = match &asked.origins {
            Some(origins) if self.options.has_intervals && self.grid().len() <= MOST_POINTS => {
                let left = Left { question: self, subject };
                doubt::intervals((&asked.model, origins), results, (&self.measures, &figures), &left)
            }
            Some(_) => Vec::new(),
            None => self.intervals(asked, &figures),
        };
        (figures, intervals, state)
    }

    /// The solution where nothing but consumers of messages is overloaded, and what these have to catch up with.
    fn beside_backlogs(&self, asked: &Asked, results: &Results) -> Option<(Results, String)> {
        if !results.convergence.saturated {
            return None;
        }
        let options = &self.options.solver;
        let mut solver = |model: &Model| solve(model, options, None, &mut ()).map(|solution| solution.results);
        let (results, backlogs) = beside_backlogs(&asked.model, asked.origins.as_ref(), &mut solver).ok().flatten()?;
        let told: Vec<String> = backlogs.iter().map(|backlog| backlog.finding(&asked.model).message).collect();
        Some((results, told.join("; ")))
    }

    /// What models that fit as well as a calibrated one make of the figures. Percentiles have none: each would take a simulation.
    fn intervals(&self, asked: &Asked, figures: &[Option<f64>]) -> Vec<Option<Interval>> {
        let (others, error) = others(&asked.model);
        if others.is_empty() {
            return Vec::new();
        }
        let found = solutions(&others);
        let interval = |(number, figure): (usize, &Option<f64>)| {
            let measure = &self.measures[number];
            let figure = figure.filter(|_| measure.part().is_none())?;
            let own = figures_of(&others, &found, measure, asked.origins.as_ref());
            Some(Interval::of(figure, &own, widened(measure.quantity(), error)))
        };
        figures.iter().enumerate().map(interval).collect()
    }

    fn failed(&self, subject: &Subject, reasons: Diagnostics) -> Read {
        let Asked { model, origins, .. } = subject.base();
        let reasons = about_scenarios(model, origins.as_ref(), reasons);
        (vec![None; self.measures.len()], Vec::new(), State::Failed(reasons.to_string()))
    }
}

/// Where values lie on their axis: numbers where they are, places in the list otherwise.
fn places(values: &[Value]) -> Vec<f64> {
    let numbers: Option<Vec<f64>> =
        values.iter().map(|value| value.number().filter(|number| number.is_finite())).collect();
    numbers.unwrap_or_else(|| (0..values.len()).map(|place| place as f64).collect())
}
