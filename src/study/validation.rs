//! What a model predicts, held against what traces that it was not made of have measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::lqn::results::Results;
use crate::lqn::submodel::SubModel;
use crate::lqn::{Model, Multiplicity, Scheduling};
use crate::model::utilisation::Busy;
use crate::model::{Configuration, complete, placed_as_in, traced};
use crate::solve::bounds::Resource;
use crate::solve::{SolveOptions, solve};
use crate::study::about_scenarios;
use crate::study::at_load::{AtLoad, ScenarioLoad, at_load, responses};
use crate::study::figure::{Figure, Measure, Quantity};
use crate::study::interval::{Interval, others, solutions};
use crate::study::outlook::{first_to_saturate, simulated as simulated_model};

/// The part of all responses whose longest is compared.
const PART: f64 = 0.95;

/// A figure that was predicted, and measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Compared {
    /// What the model says.
    pub predicted: Option<f64>,
    /// The interval of that, of a calibrated model.
    pub interval: Option<Interval>,
    /// What was measured.
    pub measured: Option<f64>,
    /// The 95 % interval of that, by how measurements vary.
    pub measured_interval: Option<Interval>,
}

/// How a prediction compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The prediction is near enough.
    Near,
    /// It is not, but its interval and that of the measurement meet. Without an interval, it is the figure itself that lies in the other's.
    Inside,
    /// Neither.
    Off,
    /// One of the two is missing.
    Unknown,
}

impl Compared {
    /// By how much the prediction is off, as a part of what was measured.
    pub fn error(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| *measured > 0.0)?;
        Some(self.predicted? / measured - 1.0)
    }

    /// How it compares, where predictions may be off by this part of what was measured.
    pub fn verdict(&self, tolerance: f64) -> Verdict {
        let (Some(error), Some(measured)) = (self.error(), self.measured) else { return Verdict::Unknown };
        let point = |value| Interval { low: value, high: value };
        let predicted = self.interval.or(self.predicted.map(point));
        let measured = self.measured_interval.unwrap_or(point(measured));
        if error.abs() <= tolerance {
            Verdict::Near
        } else if predicted.is_some_and(|interval| interval.meets(measured.low, measured.high)) {
            Verdict::Inside
        } else {
            Verdict::Off
        }
    }
}

/// A scenario under the load of some traces.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioValidation {
    /// Its name.
    pub name: Arc<str>,
    /// Operations per second that were measured.
    pub rate: f64,
    /// Operations per second.
    pub throughput: Compared,
    /// Mean responses, seconds.
    pub response: Compared,
    /// Responses that 95 of 100 do not exceed, seconds. That of the model is simulated, and its interval is in proportion to that of the mean.
    pub p95: Compared,
}

/// A processor under the load of some traces.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyValidation {
    /// Its name.
    pub name: Arc<str>,
    /// Servers that are busy on the mean.
    pub busy: Compared,
    /// Whether what was measured was, and not worked out from the times of spans.
    pub is_measured: bool,
}

/// What saturates first as all loads grow in proportion.
#[derive(Clone, Debug, PartialEq)]
pub struct SaturationValidation {
    /// What it is.
    pub resource: Resource,
    /// How many times the load of the traces saturates it.
    pub factor: f64,
    /// The interval of that, of a calibrated model.
    pub interval: Option<Interval>,
}

/// A model held against the traces of one load.
#[derive(Clone, Debug)]
pub struct LoadValidation {
    /// The name of the traces.
    pub against: String,
    /// The model under their load.
    pub model: Model,
    /// By scenario.
    pub scenarios: Vec<ScenarioValidation>,
    /// By processor with a limit.
    pub processors: Vec<BusyValidation>,
    /// What saturates first.
    pub saturation: Option<SaturationValidation>,
    /// What cannot be compared, and why.
    pub missing: Vec<String>,
    /// Whether the solver met its bound.
    pub is_converged: bool,
}

/// Traces of one load.
pub struct Measured<'m> {
    /// Their name.
    pub name: String,
    /// What they show.
    pub submodel: &'m SubModel,
    /// Servers that were measured to be busy, by the name of the processor.
    pub busy: BTreeMap<String, Busy>,
}

/// Holds a model against the traces of one load. The configuration is that of the traces; what it says of loads is left out.
///
/// # Errors
/// When the traces show nothing, or the model cannot be solved under their load.
pub fn validate(
    model: &Model,
    measured: &Measured<'_>,
    configuration: &Configuration,
    threads: usize,
) -> Result<LoadValidation, Diagnostics> {
    let configuration = placed_as_in(model, measured.submodel, without_loads(configuration));
    let (seen, _, origins) = complete(measured.submodel, &configuration)?;
    let (loads, unknown) = ScenarioLoad::all(&seen, &origins);
    let mut at = at_load(model, &loads);
    let mut missing = std::mem::take(&mut at.missing);
    missing.extend(unknown.iter().map(|name| format!("scenario `{name}`: the traces do not tell its rate")));
    let results = solve(&at.model, &SolveOptions::default(), None, &mut ())
        .map_err(|errors| about_scenarios(&at.model, Some(&at.origins), errors))?
        .results;
    if results.convergence.saturated {
        missing.push("the model has no steady state under this load, so that it predicts no responses".to_owned());
    }
    let (others, error) = others(model);
    let others: Vec<Option<Other>> = Other::all(&others, &loads);
    let simulated = simulated(&at, &results, threads);
    let own = Other::read(&at, &results);
    let scenarios = loads.iter().filter(|load| at.origins.scenarios.iter().any(|own| own.name == load.name));
    let scenarios = scenarios.map(|load| {
        let response = own.responses.get(&load.name).copied();
        let interval = (!others.is_empty()).then_some(()).and(response).map(|response| {
            let figures: Vec<Option<f64>> =
                others.iter().map(|other| other.as_ref()?.responses.get(&load.name).copied()).collect();
            Interval::of(response, &figures, error)
        });
        let scenario = origins.scenarios.iter().find(|own| own.name == load.name);
        let p95 = simulated.as_ref().and_then(|simulated| {
            let figure = Figure::Percentile { element: "scenario", name: load.name.to_string(), part: PART };
            figure.of(&at.model, simulated, Some(&at.origins))
        });
        let part = p95.zip(response).map(|(p95, response)| p95 / response);
        ScenarioValidation {
            name: Arc::clone(&load.name),
            rate: load.rate,
            throughput: Compared {
                predicted: throughput(&at, &results, &load.name),
                measured: Some(load.rate),
                measured_interval: scenario
                    .and_then(|own| own.rate_error)
                    .map(|error| Interval::around(load.rate, load.rate * error)),
                interval: None,
            },
            response: Compared {
                predicted: response,
                interval,
                measured: scenario.and_then(|own| own.observed_response),
                measured_interval: scenario
                    .and_then(|own| Some(Interval::within(own.observed_response?, own.response_error?))),
            },
            p95: Compared {
                predicted: p95,
                interval: interval.zip(part).map(|(own, part)| Interval { low: own.low * part, high: own.high * part }),
                measured: scenario.and_then(|own| own.observed_quantiles.p95),
                measured_interval: scenario
                    .and_then(|own| own.observed_quantiles.p95_interval)
                    .map(|(low, high)| Interval { low, high }),
            },
        }
    });
    let scenarios = scenarios.collect();
    let processors = busy(&at, &results, measured, &configuration, &others);
    let saturation = first_to_saturate(&at.model, &results, None).map(|first| {
        let factors: Vec<Option<f64>> = others.iter().map(|other| other.as_ref()?.factor).collect();
        let interval = (!others.is_empty()).then(|| Interval::of(first.factor, &factors, error));
        SaturationValidation { resource: first.resource, factor: first.factor, interval }
    });
    let is_converged = results.convergence.converged;
    let against = measured.name.clone();
    Ok(LoadValidation { against, model: at.model, scenarios, processors, saturation, missing, is_converged })
}

/// What a model that fits as well says of the load.
struct Other {
    responses: BTreeMap<Arc<str>, f64>,
    busy: BTreeMap<Arc<str>, f64>,
    factor: Option<f64>,
}

impl Other {
    /// Of models; `None` without a steady state.
    fn all(models: &[Model], loads: &[ScenarioLoad]) -> Vec<Option<Self>> {
        let at: Vec<AtLoad> = models.iter().map(|model| at_load(model, loads)).collect();
        let found = solutions(at.iter().map(|at| &at.model));
        let read = |(at, results): (&AtLoad, Option<Results>)| {
            let steady = results.filter(|results| !results.convergence.saturated)?;
            Some(Self::read(at, &steady))
        };
        at.iter().zip(found).map(read).collect()
    }

    fn read(at: &AtLoad, results: &Results) -> Self {
        let processors = at.model.processors.iter().zip(&results.processors);
        Self {
            responses: responses(at, results),
            busy: processors.map(|(own, result)| (Arc::clone(&own.name), result.utilization)).collect(),
            factor: first_to_saturate(&at.model, results, None).map(|first| first.factor),
        }
    }
}

/// The configuration of the traces, whose own load counts.
fn without_loads(configuration: &Configuration) -> Configuration {
    let mut configuration = configuration.clone();
    for settings in configuration.scenarios.values_mut() {
        (settings.rate, settings.population, settings.think_time) = (None, None, None);
    }
    configuration.profiles.clear();
    configuration
}

fn throughput(at: &AtLoad, results: &Results, scenario: &str) -> Option<f64> {
    let measure = Measure { element: "scenario", name: scenario.to_owned(), quantity: Quantity::Throughput };
    measure.of(&at.model, results, Some(&at.origins))
}

fn simulated(at: &AtLoad, results: &Results, threads: usize) -> Option<Results> {
    if results.convergence.saturated || at.origins.scenarios.is_empty() {
        return None;
    }
    simulated_model(&at.model, &[PART], threads)
}

/// How busy processors are: as measured, else as the times of spans show it.
fn busy(
    at: &AtLoad,
    results: &Results,
    measured: &Measured<'_>,
    configuration: &Configuration,
    others: &[Option<Other>],
) -> Vec<BusyValidation> {
    let traced = traced(measured.submodel, configuration);
    let limited = at
        .model
        .processors
        .iter()
        .zip(&results.processors)
        .filter(|(own, _)| own.multiplicity != Multiplicity::Infinite && own.scheduling != Scheduling::Delay);
    let all = limited.map(|(processor, result)| {
        let copies = f64::from(processor.copies());
        let servers = copies * processor.multiplicity.servers();
        let given = measured.busy.get(&*processor.name).map(|busy| busy.cores(servers));
        let seen = traced.hosts().find(|(name, _)| **name == *processor.name);
        let seen = seen.map(|(_, host)| host.utilization * f64::from(host.servers));
        let predicted = (!results.convergence.saturated).then_some(result.utilization * copies);
        let figures: Vec<Option<f64>> =
            others.iter().map(|other| other.as_ref()?.busy.get(&processor.name).map(|busy| busy * copies)).collect();
        let interval = predicted.filter(|_| !others.is_empty()).map(|own| Interval::of(own, &figures, 0.0));
        BusyValidation {
            name: Arc::clone(&processor.name),
            busy: Compared { predicted, interval, measured: given.or(seen), measured_interval: None },
            is_measured: given.is_some(),
        }
    });
    all.collect()
}
