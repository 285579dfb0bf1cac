//! Fitting a model to the responses under several loads, with the solver in the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::Model;
use crate::model::{Configuration, codes, complete};
use crate::solve::{SolveOptions, WarmStart, solve};
use crate::study::at_load::{ScenarioLoad, at_load, responses, solved_at};
use crate::study::calibration::CalibrationLoad;
use crate::study::calibration::forms::Shaped;

/// Parts of own times that are tried as demand, relative to what the times of spans tell.
const PARTS: [f64; 6] = [1.0, 0.85, 0.75, 0.5, 1.15, 1.35];

/// Steps to the length with which responses are as long as measured.
const STEPS: u32 = 4;

/// Responses that are as long as measured to within this part on the mean are long enough.
const NEAR: f64 = 1e-3;

/// What the times of spans tell of the part that is demand is off by about so much: where responses do not tell, it counts.
const PRIOR: f64 = 0.15;

/// The weight of that beside how far responses are off.
const WEIGHT: f64 = 0.01;

/// Models that are off by so much more than the best, as a part of responses, fit as well.
const AS_WELL: f64 = 0.015;

/// Parts that the times of spans make so unlikely, in multiples of [`PRIOR`], are not told as fitting.
const UNLIKELY: f64 = 2.0;

/// A model without a steady state is off by so much.
const UNSTEADY: f64 = 10.0;

/// What was measured under a load.
#[derive(Clone, Debug)]
pub struct Target {
    /// The load.
    pub loads: Vec<ScenarioLoad>,
    /// Mean responses of scenarios, seconds.
    responses: BTreeMap<Arc<str>, f64>,
    /// Mean responses of entries, seconds.
    entries: BTreeMap<Arc<str>, f64>,
}

/// How own times are changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The part that is demand, relative to what the times of spans tell; the rest is delay.
    pub part: f64,
    /// How long they are, relative to those of spans.
    pub length: f64,
    /// By how much responses are off: the root of the mean square, as a part of responses.
    pub error: f64,
    /// The same with how unlikely the part is.
    pub score: f64,
}

impl Fitted {
    /// Whether it fits about as well as the best.
    pub fn fits_as_well_as(&self, best: &Self) -> bool {
        self.error <= best.error + AS_WELL && self.part.ln().abs() <= UNLIKELY * PRIOR
    }
}

impl Target {
    /// Of traces.
    ///
    /// # Errors
    /// When they show nothing, or no rate.
    pub fn of(load: &CalibrationLoad, configuration: &Configuration) -> Result<Self, Diagnostics> {
        let (model, _, origins) = complete(&load.submodel, configuration)?;
        let (loads, unknown) = ScenarioLoad::all(&model, &origins);
        if loads.is_empty() {
            let message = format!("{} do not tell how many operations there were in a second", load.name);
            let mut finding = Diagnostic::error(codes::CALIBRATION, Place::Nowhere, message);
            for name in unknown.iter().take(3) {
                finding = finding.with_note(format!("scenario `{name}` has too few operations, or none with a time"));
            }
            return Err(finding.into());
        }
        let scenarios =
            origins.scenarios.iter().filter_map(|own| Some((Arc::clone(&own.name), own.observed_response?)));
        let entries = model.entries.iter().zip(&origins.entries);
        let entries = entries.filter_map(|(entry, own)| Some((Arc::clone(&entry.name), own.observed_response?)));
        Ok(Self { loads, responses: scenarios.filter(|(_, own)| *own > 0.0).collect(), entries: entries.collect() })
    }

    /// By scenario: its rate, and the responses that a model predicts and that were measured.
    pub fn compared(&self, model: &Model) -> Vec<(Arc<str>, f64, Option<f64>, f64)> {
        let predicted = solved_at(model, &self.loads).map(|(at, results)| responses(&at, &results)).unwrap_or_default();
        let of = |load: &ScenarioLoad| {
            let measured = self.responses.get(&load.name)?;
            Some((Arc::clone(&load.name), load.rate, predicted.get(&load.name).copied(), *measured))
        };
        self.loads.iter().filter_map(of).collect()
    }

    /// Logarithms of predicted responses relative to measured ones; none without a steady state. The solver starts where it stood with the last like
    /// model.
    fn misses(&self, model: &Model, warm: &mut Option<WarmStart>) -> Option<Vec<f64>> {
        let at = at_load(model, &self.loads);
        let found = solve(&at.model, &SolveOptions::default(), warm.take(), &mut ()).ok()?;
        if found.results.convergence.converged {
            *warm = Some(found.warm_start);
        }
        let predicted = responses(&at, &found.results);
        let measured = self.responses.iter().filter(|(name, _)| self.loads.iter().any(|load| load.name == **name));
        measured.map(|(name, measured)| Some((predicted.get(name)? / measured).ln())).collect()
    }
}

/// The lengths that fit, for each part that is tried, under some of the loads.
pub fn fits(shaped: &Shaped, targets: &[Target], loads: &[usize]) -> Vec<Fitted> {
    // One load does not tell how much of a time grows with it.
    let parts =
        if shaped.is_divisible() && loads.len() > 1 && !shaped.is_of_one_load() { &PARTS[..] } else { &PARTS[..1] };
    let fitted = parts.iter().filter_map(|part| fitted(shaped, targets, loads, *part));
    fitted.collect()
}

/// The length that fits, where that part is demand.
fn fitted(shaped: &Shaped, targets: &[Target], loads: &[usize], part: f64) -> Option<Fitted> {
    let mut best: Option<Fitted> = None;
    let mut length = 1.0_f64;
    let mut warm: Vec<Option<WarmStart>> = vec![None; loads.len()];
    for _ in 0..STEPS {
        let model = shaped.adjusted(Fitted { part, length, error: 0.0, score: 0.0 });
        let all = loads.iter().zip(&mut warm).map(|(load, warm)| targets[*load].misses(&model, warm));
        let misses = all.collect::<Option<Vec<Vec<f64>>>>().map(|all| all.concat());
        let (error, mean) = match misses.filter(|misses| !misses.is_empty()) {
            Some(misses) => {
                let count = misses.len() as f64;
                let squares: f64 = misses.iter().map(|miss| miss * miss).sum();
                ((squares / count).sqrt(), misses.iter().sum::<f64>() / count)
            }
            None => (UNSTEADY, 0.2),
        };
        if best.is_none_or(|best| error < best.error) {
            let unlikely = WEIGHT * part.ln() / PRIOR;
            best = Some(Fitted { part, length, error, score: error.hypot(unlikely) });
        }
        if mean.abs() < NEAR {
            break;
        }
        length = (length * (-mean).exp()).clamp(0.1, 10.0);
    }
    best.filter(|best| best.error < UNSTEADY)
}

/// By how much responses of entries are off on the mean over loads.
pub fn entry_errors(model: &Model, targets: &[Target]) -> BTreeMap<Arc<str>, f64> {
    let mut sums: BTreeMap<Arc<str>, (f64, f64)> = BTreeMap::new();
    for target in targets {
        let Some((at, results)) = solved_at(model, &target.loads) else { continue };
        for (entry, result) in at.model.entries.iter().zip(&results.entries) {
            let predicted = result.open_response.unwrap_or(result.service[0]);
            if let Some(measured) = target.entries.get(&entry.name).filter(|measured| **measured > 0.0) {
                let sum = sums.entry(Arc::clone(&entry.name)).or_default();
                *sum = (sum.0 + predicted / measured - 1.0, sum.1 + 1.0);
            }
        }
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}
