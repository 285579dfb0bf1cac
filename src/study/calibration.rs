//! One model of several loads: demands, servers, delays and kind of load that fit all of them together, and how far predictions may be off.
//!
//! What traces of all loads tell of hosts together ([`Joint`]) makes a model in several [forms](crate::model::Form), where they leave something open. Each form is then
//! fitted with the solver in the loop by two numbers: how much of the time of their own entries is demand and not delay, which decides how responses grow
//! with the load, and how long that time is. Forms that fit as well as the best one, resampled demands, and what came of leaving a load out
//! make the intervals of predictions.

mod fit;
mod forms;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::quantity::{percent, time};
use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::lqn::sketch::NORMAL;
use crate::lqn::submodel::{EntryTotal, SubModel};
use crate::lqn::{Body, Calibration, EntryId, Model};
use crate::model::config::ScenarioSettings;
use crate::model::utilisation::{Busy, Measured};
use crate::model::{Colocated, Configuration, Joint, Load, LoadTraces, Origins, codes};
use crate::study::at_load::ScenarioLoad;
use crate::study::calibration::fit::{Fitted, Target};
use crate::study::calibration::forms::Shaped;
use crate::study::interval::Interval;
use crate::study::sweep::in_parallel;

/// Where simulations of the fitted model take longer or shorter than the solver says by more than this part, own times are fitted to them (ours): the solver is usually nearer.
const APPROXIMATE: f64 = 0.05;

/// Residuals of responses up to this part of them come of how traces vary.
const FITS: f64 = 0.05;

/// The standard deviation of demands that times of spans tell, as a part of them, whatever varies: clocks, rounding, background work, a discipline that
/// is not quite processor sharing. Fitted on 210 measured runs of a server with one core and one to three classes (the SARDE study), where shared time was off by 1.8, 2.1
/// and 2.7 % on the mean at 20, 50 and 80 % busy: a normal error whose mean absolute value is 2.2 % has a standard deviation of 2.75 %.
const METHOD: f64 = 0.0275;

/// Traces of one load.
#[derive(Clone, Debug)]
pub struct CalibrationLoad {
    /// Their name.
    pub name: String,
    /// What they show.
    pub submodel: SubModel,
    /// How busy processors were measured to be.
    pub busy: BTreeMap<String, Busy>,
}

/// A load, and how the model responds under it.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLoad {
    /// The name of the traces.
    pub name: String,
    /// By scenario: its name, its rate, and the responses that were predicted and measured, seconds.
    pub scenarios: Vec<(Arc<str>, f64, Option<f64>, f64)>,
    /// By how much the response was off that was predicted without this load, as a part of what was measured.
    pub left_out: Option<f64>,
}

/// An entry that works, and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedEntry {
    /// Its name.
    pub name: Arc<str>,
    /// Its processor.
    pub processor: Arc<str>,
    /// Processor time of an invocation, seconds.
    pub demand: f64,
    /// The interval of that.
    pub interval: Interval,
    /// Delays of an invocation that are no processor time, seconds.
    pub delay: f64,
    /// By how much its response is off on the mean over loads, as a part of what was measured.
    pub error: Option<f64>,
}

/// A form of the model that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedForm {
    /// What it is.
    pub name: String,
    /// By how much responses of the nearest model in this form are off: the root of the mean square, as a part of responses.
    pub error: f64,
    /// Whether it fits as well as the best one that traces of single operations do not speak against, so that predictions range over it.
    pub fits: bool,
    /// Whether the model has it.
    pub is_taken: bool,
}

/// A model that was calibrated.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The model, with what fits as well.
    pub model: Model,
    /// Where its elements come from.
    pub origins: Origins,
    /// By load.
    pub loads: Vec<FittedLoad>,
    /// By entry, those that take most time first.
    pub entries: Vec<FittedEntry>,
    /// The forms that were tried.
    pub forms: Vec<TriedForm>,
    /// What there is to say.
    pub findings: Vec<Diagnostic>,
}

/// Calibrates a model with traces of several loads, on so many threads: the result does not depend on them.
///
/// # Errors
/// When traces show nothing, when they do not tell a rate, or when a model of them cannot be made or solved.
pub fn calibrate(
    loads: &[CalibrationLoad],
    configuration: &Configuration,
    threads: usize,
) -> Result<Calibrated, Diagnostics> {
    let configurations: Vec<Configuration> = loads
        .iter()
        .map(|load| Configuration {
            measured: Measured { processors: load.busy.clone(), ..Measured::default() },
            ..configuration.clone()
        })
        .collect();
    let mut targets: Vec<Target> = Vec::new();
    for (load, configuration) in loads.iter().zip(&configurations) {
        targets.push(Target::of(load, configuration)?);
    }
    let all = merged(loads);
    let configuration = with_loads(configuration, &targets);
    let traces: Vec<LoadTraces<'_>> = loads.iter().map(|load| &load.submodel).zip(&configurations).collect();
    let joint = Joint::of(&traces);
    let every: Vec<usize> = (0..targets.len()).collect();
    let shaped = Shaped::all(&all, &configuration, &joint, loads.len())?;
    let fits = |own: &Shaped| fit::fits(own, &targets, &every);
    let fitted: Vec<(usize, Vec<Fitted>)> = in_parallel(&shaped, threads, &fits).into_iter().enumerate().collect();
    let best_of = |is_asked: &dyn Fn(&Shaped) -> bool| {
        let asked = fitted.iter().filter(|(number, _)| is_asked(&shaped[*number]));
        let all = asked.flat_map(|(number, own)| own.iter().map(move |fit| (*number, *fit)));
        all.min_by(|left, right| left.1.misfit.total_cmp(&right.1.misfit))
    };
    let Some((best_form, best)) = best_of(&|own| !own.is_doubtful()) else {
        if let Some(refused) = shaped.iter().find_map(Shaped::refused) {
            return Err(refused);
        }
        return Err(Diagnostic::error(
            codes::CALIBRATION,
            Place::Nowhere,
            "no model of these traces has a steady state under their loads",
        )
        .into());
    };
    // Responses to several loads go before what stays at one load tell.
    let (taken_form, taken) = best_of(&|own| !own.is_alternative())
        .filter(|(_, own)| own.is_much_better_than(&best))
        .unwrap_or((best_form, best));
    let plain = shaped[taken_form].adjusted(taken);
    // What the solver makes too short by its approximations is not to make own times too long.
    let approximated: Vec<f64> =
        targets.iter().map(|target| target.approximated(&plain, threads).unwrap_or(0.0)).collect();
    let mean = approximated.iter().sum::<f64>() / approximated.len().max(1) as f64;
    let is_approximate = mean.abs() > APPROXIMATE;
    let times = if is_approximate { (-mean).exp() } else { 1.0 };
    let model = shaped[taken_form].adjusted(taken.longer(times));
    let responses = targets.iter().map(Target::responses).sum();
    let mut others = Vec::new();
    let mut forms = Vec::new();
    for (number, fits) in &fitted {
        let least = fits.iter().map(|fit| fit.error).fold(f64::INFINITY, f64::min);
        let fitting: Vec<&Fitted> = fits.iter().filter(|fit| fit.fits_as_well_as(&best, responses)).collect();
        let (name, fits) = (shaped[*number].name(loads), !fitting.is_empty());
        forms.push(TriedForm { name, error: least, fits, is_taken: *number == taken_form });
        others.extend(fitting.into_iter().map(|fit| shaped[*number].adjusted(fit.longer(times))));
    }
    let resampled = forms::resampled(&model, &all, &shaped[taken_form].origins);
    let mut left_out: Vec<Option<f64>> = vec![None; loads.len()];
    if loads.len() > 1 {
        let off = |number: &usize| without(*number, loads, &configuration, (&traces, joint.colocated()), &targets);
        left_out = in_parallel(&every, threads, &off);
    }
    let error = left_out.iter().flatten().copied().fold(0.0, f64::max);
    let mut findings: Vec<Diagnostic> = joint.colocation_note().into_iter().collect();
    let is_contradicted = loads.len() > 1 && taken.error > FITS;
    if is_contradicted {
        // Each load by itself can be met: the range of these is all that the traces tell.
        for load in 0..loads.len() {
            let own = fit::fits(&shaped[taken_form], &targets, &[load]);
            let nearest = own.iter().min_by(|left, right| left.misfit.total_cmp(&right.misfit));
            others.extend(nearest.map(|fit| shaped[taken_form].adjusted(fit.longer(times))));
        }
        findings.push(contradiction(loads, &targets, taken.error));
    }
    let mut spread: Vec<Model> = others.clone();
    // Under an order of service for which models have no word, responses do not tell how long short work is. Single operations do.
    spread.extend(shaped.iter().find(|own| own.is_best()).map(Shaped::as_traced));
    others.extend(resampled);
    let mut model = model;
    let entries = entries((&model, &plain), &spread, &shaped[taken_form].origins, &all, &targets);
    let loads = loads.iter().zip(&targets).zip(left_out).zip(approximated);
    let loads = loads.map(|(((load, target), left_out), approximated)| {
        let mut scenarios = target.compared(&model);
        let simulated = if is_approximate { approximated.exp() } else { 1.0 };
        for predicted in scenarios.iter_mut().filter_map(|(_, _, predicted, _)| predicted.as_mut()) {
            *predicted *= simulated;
        }
        FittedLoad { name: load.name.clone(), scenarios, left_out }
    });
    let loads = loads.collect();
    if targets.len() < 2 {
        findings.push(one_load());
    }
    model.calibration = Some(Calibration::between(&model, &others, error));
    Ok(Calibrated { model, origins: shaped[taken_form].origins.clone(), loads, entries, forms, findings })
}

fn merged(loads: &[CalibrationLoad]) -> SubModel {
    let mut all = SubModel::new();
    for load in loads {
        all.merge(&load.submodel);
        all.concurrent |= load.submodel.concurrent;
    }
    all
}

/// The configuration with the largest of the loads.
fn with_loads(configuration: &Configuration, targets: &[Target]) -> Configuration {
    let mut configuration = configuration.clone();
    let mut largest: BTreeMap<&str, &ScenarioLoad> = BTreeMap::new();
    for load in targets.iter().flat_map(|target| &target.loads) {
        let own = largest.entry(&load.name).or_insert(load);
        if load.rate > own.rate {
            *own = load;
        }
    }
    for (name, own) in largest {
        let customer = configuration.scenarios.get(name).and_then(|settings| settings.customer.clone());
        let (rate, population, think_time) = match own.load {
            Load::Open { .. } => (Some(own.rate), None, None),
            Load::Closed { population, think_time } => (None, Some(population), Some(think_time)),
        };
        let settings = ScenarioSettings { place: Place::Nowhere, population, think_time, rate, customer };
        configuration.scenarios.insert(name.to_owned(), settings);
    }
    configuration
}

/// By how much the response under a load is off that is predicted from all others.
fn without(
    number: usize,
    loads: &[CalibrationLoad],
    configuration: &Configuration,
    (traces, colocated): (&[LoadTraces<'_>], &[Colocated]),
    targets: &[Target],
) -> Option<f64> {
    let left = |at: &usize| *at != number;
    let kept: Vec<CalibrationLoad> = (0..loads.len()).filter(left).map(|at| loads[at].clone()).collect();
    let traces: Vec<LoadTraces<'_>> = (0..loads.len()).filter(left).map(|at| traces[at]).collect();
    let others: Vec<Target> = (0..loads.len()).filter(left).map(|at| targets[at].clone()).collect();
    let every: Vec<usize> = (0..others.len()).collect();
    let shaped = Shaped::best(&merged(&kept), configuration, &Joint::of_colocated(&traces, colocated)).ok()?;
    let fits = fit::fits(&shaped, &others, &every);
    let best = fits.iter().min_by(|left, right| left.misfit.total_cmp(&right.misfit))?;
    let compared = targets[number].compared(&shaped.adjusted(*best));
    let off = compared.iter().filter_map(|(_, _, predicted, measured)| Some(((*predicted)? / measured - 1.0).abs()));
    off.reduce(f64::max)
}

fn one_load() -> Diagnostic {
    Diagnostic::warning(codes::CALIBRATION_DOUBT, Place::Nowhere, "one load does not tell how responses grow")
        .with_note("intervals are those of forms that fit and of how operations vary; no prediction could be held against another load")
        .with_hint("give traces of a second load, best of one that is much larger")
}

/// That no model with constant demands meets all loads, and which entry grows most.
fn contradiction(loads: &[CalibrationLoad], targets: &[Target], off: f64) -> Diagnostic {
    let rate = |target: &Target| target.loads.iter().map(|load| load.rate).sum::<f64>();
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|left, right| rate(&targets[*left]).total_cmp(&rate(&targets[*right])));
    let (first, last) = (&loads[order[0]], &loads[order[order.len() - 1]]);
    let message =
        format!("no model with constant demands meets all loads: the best one is off by {} on the mean", percent(off));
    let mut finding = Diagnostic::warning(codes::CALIBRATION_DOUBT, Place::Nowhere, message);
    if let Some((name, from, to)) = growing(&first.submodel, &last.submodel) {
        finding = finding.with_note(format!(
            "`{name}` grows most: its own time is {} under {} and {} under {}",
            time(from),
            first.name,
            time(to),
            last.name
        ));
    }
    finding
        .with_note("the system was not the same under all loads: caches, warm-up, other work on its machines, resources that were not traced")
        .with_note("intervals range over models that meet one load each")
        .with_hint("`dyelog trace stat` tells of the recordings; leave out those of another state of the system")
}

/// The entry whose own time grows most, weighted by how often operations call it.
fn growing(first: &SubModel, last: &SubModel) -> Option<(String, f64, f64)> {
    let own = |entry: &EntryTotal| entry.own_time() / entry.invocations.max(1) as f64;
    let operations = last.scenarios.values().map(|total| total.operations).sum::<u64>().max(1) as f64;
    let grown = last.entries().iter().filter_map(|entry| {
        let before = first.entry(first.entry_of(entry.key)?);
        let (from, to) = (own(before), own(entry));
        let service = last.names.text(entry.service);
        let task = last.names.text(entry.task);
        let name = if service.is_empty() { task.to_owned() } else { format!("{task} {service}") };
        Some(((to - from) * entry.invocations as f64 / operations, name, from, to))
    });
    let most = grown.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (most.0 > 0.0).then_some((most.1, most.2, most.3))
}

/// Demands of entries with their intervals.
fn entries(
    (model, fitted): (&Model, &Model),
    others: &[Model],
    origins: &Origins,
    all: &SubModel,
    targets: &[Target],
) -> Vec<FittedEntry> {
    let errors = fit::entry_errors(fitted, targets);
    let mut entries: Vec<(f64, FittedEntry)> = Vec::new();
    for (at, entry) in model.entries.iter().enumerate() {
        let (demand, delay) = own_of(model, at);
        if demand <= 0.0 {
            continue;
        }
        let range: Vec<Option<f64>> = others.iter().map(|other| Some(own_of(other, at).0)).collect();
        let total = all.entry(origins.entries[at].total);
        let varies = NORMAL * (forms::varies(total).powi(2) + METHOD * METHOD).sqrt();
        let processor = model.tasks[entry.task.index()].processor;
        let fitted = FittedEntry {
            name: Arc::clone(&entry.name),
            processor: Arc::clone(&model.processors[processor.index()].name),
            demand,
            interval: Interval::of(demand, &range, varies),
            delay,
            error: errors.get(&entry.name).copied(),
        };
        entries.push((demand * total.invocations as f64, fitted));
    }
    entries.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.name.cmp(&right.1.name)));
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Demand and think time of an entry, of all phases or activities, each counted once.
fn own_of(model: &Model, at: usize) -> (f64, f64) {
    match &model.entries[at].body {
        Body::Phases(phases) => {
            phases.iter().fold((0.0, 0.0), |sum, work| (sum.0 + work.demand, sum.1 + work.think_time))
        }
        Body::Activities(_) => activities_of(model, EntryId::from(at)),
    }
}

/// The same of an entry with a graph of activities: of those that it leads to, by how often they are done.
fn activities_of(model: &Model, entry: EntryId) -> (f64, f64) {
    let prefix = &model.entries[entry.index()].name;
    let task = &model.tasks[model.entries[entry.index()].task.index()];
    let only = task.entries.len() == 1;
    let own = task.activities.iter().map(|id| &model.activities[id.index()]);
    let own = own.filter(|activity| only || activity.name.starts_with(&**prefix));
    own.fold((0.0, 0.0), |sum, activity| (sum.0 + activity.work.demand, sum.1 + activity.work.think_time))
}
