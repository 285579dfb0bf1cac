//! Fitting a model to the responses under several loads, with the solver in the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::Model;
use crate::lqn::sketch::NORMAL;
use crate::model::{Configuration, codes, complete};
use crate::solve::{SolveOptions, WarmStart, solve};
use crate::study::at_load::{ScenarioLoad, at_load, responses, solved_at};
use crate::study::calibration::CalibrationLoad;
use crate::study::calibration::forms::Shaped;
use crate::study::outlook::simulated;

/// Parts of own times that are tried as demand, relative to what the times of spans tell.
const PARTS: [f64; 6] = [1.0, 0.85, 0.75, 0.5, 1.15, 1.35];

/// Steps to the length with which responses are as long as measured.
const STEPS: u32 = 4;

/// Responses grow by no more than so many times the part by which lengths do: near saturation, steps are to be long enough.
const STEEPEST: f64 = 10.0;

/// Responses that are as long as measured to within this part on the mean are long enough.
const NEAR: f64 = 1e-3;

/// The standard deviation of the logarithm of the part that is demand, relative to what the times of spans tell. Ours; a prior.
const PRIOR: f64 = 0.15;

/// The standard deviation of predicted responses, as a part of them: what solvers and the form of the model leave out. Ours.
const SOLVER: f64 = 0.01;

/// Models whose misfit exceeds the least by up to this fit as well: the 95 % quantile of chi-squared with one degree of freedom, as in a profile likelihood.
const AS_WELL: f64 = 3.84;

/// Parts that the times of spans make so unlikely, in standard deviations, are not told as fitting.
const UNLIKELY: f64 = 2.0;

/// A model without a steady state is off by so much.
const UNSTEADY: f64 = 10.0;

/// What was measured under a load.
#[derive(Clone, Debug)]
pub struct Target {
    /// The load.
    pub loads: Vec<ScenarioLoad>,
    /// Mean responses of scenarios.
    responses: BTreeMap<Arc<str>, MeasuredResponse>,
    /// Mean responses of entries, seconds.
    entries: BTreeMap<Arc<str>, f64>,
}

/// A mean response that was measured.
#[derive(Clone, Copy, Debug)]
struct MeasuredResponse {
    /// Seconds.
    mean: f64,
    /// Its standard error, as a part of it, were responses independent: what is nearest to all loads is taken.
    error: f64,
    /// Its standard error, as a part of it, where a queue that is long stays so for a while: what lies within it may be so.
    strays: f64,
}

/// How far a predicted response is from the measured one.
#[derive(Clone, Copy, Debug)]
struct Miss {
    /// The logarithm of their ratio.
    log: f64,
    /// Its standard deviation, were responses independent.
    deviation: f64,
    /// Its standard deviation where they are not.
    strays: f64,
}

/// How own times are changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The part that is demand, relative to what the times of spans tell; the rest is delay.
    pub part: f64,
    /// How long they are, relative to those of spans.
    pub length: f64,
    /// How far the part is from those that the form makes likely, in standard deviations.
    pub unlikely: f64,
    /// By how much responses are off: the root of the mean square, as a part of responses.
    pub error: f64,
    /// The misfit: squares of how far responses, the part and the length are off, each in standard deviations.
    pub misfit: f64,
    /// The same where responses depend on those before.
    pub by_chance: f64,
}

impl Fitted {
    /// The same where own times are so many times as long.
    #[must_use]
    pub fn longer(self, times: f64) -> Self {
        Self { length: self.length * times, ..self }
    }

    /// Whether its misfit is less than that of the other one by more than chance makes it.
    pub fn is_much_better_than(&self, other: &Self) -> bool {
        self.misfit + AS_WELL < other.misfit
    }

    /// Whether it fits about as well as the best one of so many responses. Where even that one misses by more than standard deviations tell, these are too
    /// small by the same factor for all (the Birge ratio).
    pub fn fits_as_well_as(&self, best: &Self, responses: usize) -> bool {
        let scale = (best.by_chance / responses.max(1) as f64).max(1.0);
        self.by_chance <= best.by_chance + AS_WELL * scale && self.unlikely <= UNLIKELY
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
        let scenarios = origins.scenarios.iter().filter_map(|own| {
            let total = load.submodel.names.get(&own.name).and_then(|name| load.submodel.scenarios.get(&name));
            let error = total.and_then(|total| {
                let (cv2, count) = (total.response.cv2()?, total.response.count);
                Some((cv2.max(0.0) / count.max(1) as f64).sqrt())
            });
            let error = error.unwrap_or_default();
            let strays = own.response_error.map_or(error, |own| error.max(own / NORMAL));
            let mean = own.observed_response.filter(|mean| *mean > 0.0)?;
            Some((Arc::clone(&own.name), MeasuredResponse { mean, error, strays }))
        });
        let entries = model.entries.iter().zip(&origins.entries);
        let entries = entries.filter_map(|(entry, own)| Some((Arc::clone(&entry.name), own.observed_response?)));
        Ok(Self { loads, responses: scenarios.collect(), entries: entries.collect() })
    }

    /// By scenario: its rate, and the responses that a model predicts and that were measured.
    pub fn compared(&self, model: &Model) -> Vec<(Arc<str>, f64, Option<f64>, f64)> {
        let predicted = solved_at(model, &self.loads).map(|(at, results)| responses(&at, &results)).unwrap_or_default();
        let of = |load: &ScenarioLoad| {
            let measured = self.responses.get(&load.name)?.mean;
            Some((Arc::clone(&load.name), load.rate, predicted.get(&load.name).copied(), measured))
        };
        self.loads.iter().filter_map(of).collect()
    }

    /// How many times as long the scenarios take in a simulation of a model as its solution says, as the mean of logarithms; `None` where either has no steady state.
    pub fn approximated(&self, model: &Model, threads: usize) -> Option<f64> {
        let (at, results) = solved_at(model, &self.loads)?;
        let solved = responses(&at, &results);
        let simulated = responses(&at, &simulated(&at.model, &[], threads)?);
        let ratio = |name: &Arc<str>| Some((simulated.get(name)? / solved.get(name)?).ln());
        let ratios: Vec<f64> = self.responses.keys().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect();
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }

    /// How many responses were measured.
    pub fn responses(&self) -> usize {
        self.responses.len()
    }

    /// Logarithms of predicted responses relative to measured ones, with their standard deviations; none without a steady state. The solver starts where
    /// it stood with the last like model.
    fn misses(&self, model: &Model, warm: &mut Option<WarmStart>) -> Option<Vec<Miss>> {
        let at = at_load(model, &self.loads);
        let found = solve(&at.model, &SolveOptions::default(), warm.take(), &mut ()).ok()?;
        if found.results.convergence.converged {
            *warm = Some(found.warm_start);
        }
        let predicted = responses(&at, &found.results);
        let measured = self.responses.iter().filter(|(name, _)| self.loads.iter().any(|load| load.name == **name));
        let miss = |(name, own): (&Arc<str>, &MeasuredResponse)| {
            let log = (predicted.get(name)? / own.mean).ln();
            Some(Miss { log, deviation: own.error.hypot(SOLVER), strays: own.strays.hypot(SOLVER) })
        };
        measured.map(miss).collect()
    }
}

/// The lengths that fit, for each part that is tried, under some of the loads.
pub fn fits(shaped: &Shaped, targets: &[Target], loads: &[usize]) -> Vec<Fitted> {
    // One load does not tell how much of a time grows with it.
    let is_open = shaped.is_divisible() && loads.len() > 1 && !shaped.is_of_one_load();
    let mut parts = if is_open { PARTS.to_vec() } else { PARTS[..1].to_vec() };
    parts.extend(shaped.least_part().filter(|least| is_open && !PARTS.contains(least)));
    let mut warm: Vec<Option<WarmStart>> = vec![None; loads.len()];
    let fitted = parts.into_iter().filter_map(|part| fitted(shaped, targets, loads, part, &mut warm));
    fitted.collect()
}

/// The length that fits, where that part is demand. The solver starts where it stood under each load.
fn fitted(
    shaped: &Shaped,
    targets: &[Target],
    loads: &[usize],
    part: f64,
    warm: &mut [Option<WarmStart>],
) -> Option<Fitted> {
    let beyond = shaped.least_part().map_or(part.ln(), |least| part.ln() - part.ln().clamp(least.ln(), 0.0));
    let unlikely = (beyond / PRIOR).abs();
    let mut best: Option<Fitted> = None;
    let mut length = 1.0_f64;
    // Logarithms of the last length and of its miss: the secant leads to the next one.
    let mut before: Option<(f64, f64)> = None;
    for _ in 0..STEPS {
        let model = shaped.adjusted(Fitted { part, length, unlikely, error: 0.0, misfit: 0.0, by_chance: 0.0 });
        let all = loads.iter().zip(warm.iter_mut()).map(|(load, warm)| targets[*load].misses(&model, warm));
        let misses = all.collect::<Option<Vec<Vec<Miss>>>>().map(|all| all.concat());
        let is_steady = misses.is_some();
        let (error, misfit, by_chance, mean) = match misses.filter(|misses| !misses.is_empty()) {
            Some(misses) => {
                let sum = |of: fn(&Miss) -> f64| misses.iter().map(of).sum::<f64>();
                let weighted = sum(|own| own.log / own.deviation.powi(2)) / sum(|own| own.deviation.powi(-2));
                let error = (sum(|own| own.log.powi(2)) / misses.len() as f64).sqrt();
                let by_chance = sum(|own| (own.log / own.strays).powi(2));
                (error, sum(|own| (own.log / own.deviation).powi(2)), by_chance, weighted)
            }
            None => (UNSTEADY, UNSTEADY, UNSTEADY, 0.2),
        };
        let of_form = unlikely.powi(2) + (length.ln() / shaped.length_varies()).powi(2);
        let (misfit, by_chance) = (misfit + of_form, by_chance + of_form);
        if error < UNSTEADY && best.is_none_or(|best| misfit < best.misfit) {
            best = Some(Fitted { part, length, unlikely, error, misfit, by_chance });
        }
        if mean.abs() < NEAR {
            break;
        }
        let at = length.ln();
        let slope = before.map_or(1.0, |(other, miss)| (mean - miss) / (at - other));
        // Responses grow at least as lengths do, and more where there are queues.
        let slope = if slope.is_finite() { slope.clamp(1.0, STEEPEST) } else { 1.0 };
        before = is_steady.then_some((at, mean));
        length = (length * (-mean / slope).exp()).clamp(0.1, 10.0);
    }
    best
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
