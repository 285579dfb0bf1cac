//! How far approximations of the solver matter to answers: a simulation of the same model makes fewer.

use crate::diagnostic::quantity::time;
use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::Subject;
use crate::solve::{SimulateOptions, SolveOptions};
use crate::study::figure::{Figure, Quantity};
use crate::study::outlook::{is_far, simulated};
use crate::study::sweep::{Point, Question, State, SweepOptions, Table};

/// Responses differ where they do by more than this part of the simulated one, and by more than its interval (ours): twice what the solver is usually off by.
const FAR: f64 = 0.1;

/// So many points are simulated at most, where approximations matter (ours): each takes some seconds.
const MOST_POINTS: usize = 16;

/// Half of the interval that they are simulated to, as a part of figures.
const PRECISION: f64 = 0.02;

/// Puts simulated figures in the place of the solver's where these differ from a simulation of the same model, and warns of it. Tables with more points than 16 stay as they are.
pub fn checked(question: &Question, subjects: &[(String, Subject)], mut table: Table) -> (Table, Option<Diagnostic>) {
    let Some(worst) = unlike_simulated(question, subjects, &table) else { return (table, None) };
    if table.points.len() > MOST_POINTS {
        let hint = "ask for a percentile as well, as `--show p95`: then all figures are simulated";
        let finding = worst.finding(&table).with_hint(hint);
        return (table, Some(finding));
    }
    let solver = SolveOptions::from(SimulateOptions { precision: PRECISION, ..SimulateOptions::default() });
    let options = SweepOptions { solver, has_intervals: false, ..question.options.clone() };
    let again = Question { options, ..question.clone() }.ask(subjects, &|| ());
    let (all, mut simulated) = (table.points.len(), 0);
    for (own, again) in table.points.iter_mut().zip(again.points) {
        // Simulations that are less sure than they were asked to be are nearer all the same.
        let is_solved = matches!(again.state, State::Converged | State::Doubtful(_));
        if own.state == State::Converged && is_solved && again.figures.iter().all(Option::is_some) {
            // What is uncertain makes as large a part of the simulated figures.
            let moved = own.figures.iter().zip(&again.figures).zip(&own.intervals).map(|((own, again), interval)| {
                let factor = again.zip(own.filter(|own| *own > 0.0)).map(|(again, own)| again / own);
                interval.map(|interval| interval.times(factor.unwrap_or(1.0)))
            });
            own.intervals = moved.collect();
            (own.figures, own.is_simulated) = (again.figures, true);
            simulated += 1;
        }
    }
    let which = if simulated == all { "figures".to_owned() } else { format!("figures of {simulated} of {all} points") };
    // A simulation that takes longer is surer: the finding tells what the table shows.
    let worst = Worst { simulated: worst.shown(&table).unwrap_or(worst.simulated), ..worst };
    if worst.part() < FAR {
        // It agrees with the solver after all.
        return (table, None);
    }
    let finding = worst.finding(&table).with_note(format!("{which} are those of simulations"));
    (table, Some(finding))
}

/// The mean response at which the solver is farthest from a simulation, seconds.
#[derive(Clone, Copy)]
struct Worst {
    point: usize,
    measure: usize,
    solved: f64,
    simulated: f64,
}

impl Worst {
    /// The figure that a table shows for it, where that is simulated.
    fn shown(&self, table: &Table) -> Option<f64> {
        let point = &table.points[self.point];
        point.figures[self.measure].filter(|_| point.is_simulated)
    }

    fn part(&self) -> f64 {
        (self.simulated / self.solved).ln().abs()
    }

    fn finding(&self, table: &Table) -> Diagnostic {
        let (measure, solved, simulated) = (&table.measures[self.measure], time(self.solved), time(self.simulated));
        let message = format!(
            "the solver's approximations matter here: {measure} is {solved}, and {simulated} in a simulation of the same model"
        );
        Diagnostic::warning(codes::UNLIKE_SIMULATED, Place::Nowhere, message)
    }
}

/// Where the response of a point differs most from a simulation of the same model. Of each subject the point is looked at at which its operations take longest, since queues are longest
/// there; where that shows nothing the one at which they take least time, since simulations near saturation are unsure.
fn unlike_simulated(question: &Question, subjects: &[(String, Subject)], table: &Table) -> Option<Worst> {
    // Percentiles are simulated anyway.
    if table.measures.iter().any(|measure| measure.part().is_some()) {
        return None;
    }
    let responses: Vec<usize> = (0..table.measures.len()).filter(|at| is_response(&table.measures[*at])).collect();
    let extremes = |subject: usize| {
        let all = table.points.iter().enumerate();
        let all = all.filter(|(_, point)| point.subject == subject && point.state == State::Converged);
        let time = |point: &Point| responses.iter().filter_map(|at| point.figures[*at]).sum::<f64>();
        let mut all: Vec<(f64, usize)> =
            all.map(|(number, point)| (time(point), number)).filter(|(time, _)| *time > 0.0).collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
        let last = all.len().saturating_sub(1).max(1);
        [all.first().copied(), all.get(last).copied()].into_iter().flatten().map(|(_, number)| number)
    };
    let mut worst: Option<Worst> = None;
    for (number, (_, subject)) in subjects.iter().enumerate() {
        let found = extremes(number).find_map(|point| {
            let asked = subject.ask(&question.changes(&table.points[point].at)).ok()?;
            let results = simulated(&asked.model, &[], question.options.threads)?;
            let unlike = responses.iter().filter_map(|&at| {
                let Figure::Mean(measure) = &table.measures[at] else { return None };
                let mean = measure.of(&asked.model, &results, asked.origins.as_ref())?;
                let solved = table.points[point].figures[at]?;
                let width = measure.half_width(&asked.model, &results, asked.origins.as_ref()).unwrap_or(f64::INFINITY);
                is_far(solved, (mean, width), FAR).then_some(Worst { point, measure: at, solved, simulated: mean })
            });
            unlike.max_by(|one, other| one.part().total_cmp(&other.part()))
        });
        worst = worst.into_iter().chain(found).reduce(|one, other| if other.part() > one.part() { other } else { one });
    }
    worst
}

/// Whether a figure is a mean response.
pub(super) fn is_response(measure: &Figure) -> bool {
    matches!(measure, Figure::Mean(measure) if measure.quantity == Quantity::Response)
}
