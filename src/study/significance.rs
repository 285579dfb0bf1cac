//! Which differences between two models of traces are more than what chance makes of so few invocations.

use std::collections::HashMap;

use crate::lqn::{Body, Model, Work};
use crate::model::Origins;
use crate::study::comparison::{Datum, Difference, activity_name, request_name};

/// A difference is more than chance from so many standard errors on: of hundreds of values, chance brings hardly one so far.
const CLEAR: f64 = 3.0;

/// The variance of a variance, relative to its square, times the number of samples: that of exponential times (ours).
const OF_VARIATION: f64 = 8.0;

/// Where work is a smaller part of own time, its variation is hardly known (ours).
const LEAST_PART: f64 = 0.05;

/// So few operations tell nothing of chance: what differs between them is told, all of it.
const ENOUGH: u64 = 100;

/// What a number of a model comes from.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// How often: invocations, or calls.
    count: f64,
    /// The relative standard error of its rate.
    rate: f64,
    /// The same of work and calls.
    chance: f64,
    /// What part of its own time an invocation works: queues are in the spread of that time, and what is left without them is off by as much as all of it.
    part: f64,
    /// How long an invocation takes on the mean, seconds: what is left of that for a delay is off by as much as all of it.
    response: f64,
}

/// The relative standard errors of the numbers of a model. One that was no trace, or of few operations, has none.
#[derive(Debug, Default)]
pub struct Errors {
    by_element: HashMap<(String, String), Seen>,
}

impl Errors {
    /// Of the numbers of a model that was made of traces.
    pub fn of(model: &Model, origins: &Origins) -> Self {
        let mut errors = Self::default();
        if origins.scenarios.iter().map(|own| own.operations).sum::<u64>() < ENOUGH {
            return errors;
        }
        let of_entry = |number: usize| {
            let own = origins.entries.get(number)?;
            let response = own.observed_response.unwrap_or(0.0);
            let (count, part) = (own.invocations as f64, own.own_time.processor.max(LEAST_PART));
            Some(Seen { count, rate: own.doubt.rate, chance: own.doubt.chance, part, response })
        };
        for (number, entry) in model.entries.iter().enumerate() {
            let Some(seen) = of_entry(number) else { continue };
            errors.add("entry", entry.name.to_string(), seen);
            if let Body::Phases(phases) = &entry.body {
                for (phase, work) in phases.iter().enumerate() {
                    errors.requests(model, &entry.name, phase + 1, work, seen);
                }
            }
        }
        for (activity, origin) in model.activities.iter().zip(&origins.activities) {
            let Some(seen) = of_entry(origin.entry.index()) else { continue };
            errors.add("activity", activity_name(model, activity), seen);
            errors.requests(model, &activity.name, 1, &activity.work, seen);
        }
        errors
    }

    fn add(&mut self, kind: &str, name: String, seen: Seen) {
        self.by_element.insert((kind.to_owned(), name), seen);
    }

    fn requests(&mut self, model: &Model, from: &str, phase: usize, work: &Work, caller: Seen) {
        for call in &work.calls {
            let count = caller.count * call.mean;
            // Calls that only some invocations make are as many as chance has it.
            let chance = caller.chance.max(1.0 / count.sqrt());
            self.add("request", request_name(model, from, phase, call), Seen { count, chance, ..caller });
        }
    }

    /// The standard error of a value of an element, or the relative one of how often the element was seen at all.
    fn of_value(&self, difference: &Difference, value: f64) -> Option<f64> {
        let seen = self.by_element.get(&(difference.kind.clone(), difference.name.clone()))?;
        Some(match difference.value.as_deref() {
            None => 1.0 / seen.count.sqrt(),
            Some("arrivals") => seen.rate * value,
            Some(name) if name.contains("variation") => (OF_VARIATION / seen.count).sqrt() / seen.part * value,
            Some(name) if name.ends_with("delay") => (seen.chance * value).hypot(seen.response / seen.count.sqrt()),
            Some(_) => seen.chance * value,
        })
    }
}

/// Parts differences that are more than chance from those that are not, by the errors of both models.
pub fn apart(differences: Vec<Difference>, before: &Errors, after: &Errors) -> (Vec<Difference>, Vec<Difference>) {
    differences.into_iter().partition(|own| !is_within(own, before, after))
}

/// Whether chance makes as much of a difference.
fn is_within(difference: &Difference, before: &Errors, after: &Errors) -> bool {
    let number = |datum: &Option<Datum>| match datum {
        Some(Datum::Number(value)) => Some(*value),
        Some(Datum::Word(_)) => None,
        None => Some(0.0),
    };
    let values = [number(&difference.before), number(&difference.after)];
    let of = |errors: &Errors, value: Option<f64>| errors.of_value(difference, value.unwrap_or(0.0));
    let errors = [of(before, values[0]), of(after, values[1])];
    if errors == [None, None] {
        return false;
    }
    if difference.value.is_none() {
        // What came or went was not seen at all in the other one.
        return errors.into_iter().flatten().any(|relative| CLEAR * relative > 1.0);
    }
    let [Some(left), Some(right)] = values else { return false };
    let [before, after] = errors.map(Option::unwrap_or_default);
    (left - right).abs() <= CLEAR * before.hypot(after)
}
