//! Measured utilisation: whose it is, and how busy that was while traces were recorded.

mod over_time;
mod plausible;
mod resources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::lqn::submodel::SubModel;
use crate::model::config::Configuration;
use crate::model::requests::Requests;
use crate::model::utilisation::over_time::{OverTime, Total, mean, over_time};
pub(super) use crate::model::utilisation::resources::processor_of;
use crate::model::utilisation::resources::{Known, Matched, is_of_process, matched, some};
use crate::model::{codes, load};

/// Values of one metric of one resource over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The file that it is from.
    pub file: Arc<str>,
    /// The metric's name.
    pub metric: String,
    /// Names that the resource goes by, the most telling first; none where the file names no resource.
    pub resources: Vec<String>,
    /// Of what kind of processor time it is, as `user` or `system`, where a series tells one of several that add up; empty elsewhere.
    pub mode: String,
    /// What the values are.
    pub unit: Unit,
    /// Times, in seconds, and values, in the order of times.
    pub samples: Vec<(f64, f64)>,
}

impl Series {
    /// The metric without the resource's name, which headings of tables have in them.
    fn kind(&self) -> &str {
        let name = self.resources.first().map_or("", |name| &**name);
        self.metric.strip_prefix(name).unwrap_or(&self.metric)
    }
}

/// How many cores a metric says that there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The file that it is from.
    pub file: Arc<str>,
    /// The metric's name.
    pub metric: String,
    /// Names that the resource goes by, the most telling first.
    pub resources: Vec<String>,
    /// Cores that it may use at most.
    pub cores: f64,
    /// Whether it is a limit of its own: those of several instances add up. Processors are counted by all that use them.
    pub is_limit: bool,
}

/// What files of metrics tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// How busy they were.
    pub series: Vec<Series>,
    /// How many cores they have.
    pub cores: Vec<Capacity>,
    /// How many requests services served.
    pub requests: Vec<Requests>,
}

/// How many cores processors have by metrics, those of all copies together, and which metric says so.
pub type Cores = BTreeMap<String, (f64, String)>;

/// What values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Processor time used since some begin, seconds: a counter.
    Seconds,
    /// Cores that are busy.
    Cores,
    /// The busy part of all cores.
    Share,
}

/// How busy a processor was measured to be, on the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Busy {
    /// Servers.
    Cores(f64),
    /// The part of its servers, however many these are.
    Share(f64),
}

impl Busy {
    /// In servers, of so many.
    pub fn cores(self, servers: f64) -> f64 {
        match self {
            Self::Cores(cores) => cores,
            Self::Share(share) => share * servers,
        }
    }
}

/// How busy the processors of a system were measured to be, on the mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// By processor.
    pub processors: BTreeMap<String, Busy>,
    /// How many servers tasks that share a processor kept busy, each of which was measured by itself. Where some were not, the processor is not among those above.
    pub tasks: BTreeMap<String, f64>,
    /// Utilisation of whole machines by processor, where `processors` and `tasks` have that of processes only.
    pub machines: BTreeMap<String, Busy>,
}

/// Times from here on, in seconds, have a date.
const DATED: f64 = 1e8;

/// How busy processors were while the traces were recorded, and what there is to say about that.
///
/// # Errors
/// When a resource is hardly another than a processor whose name is close to its own, no resource is a processor of the model, or nothing was
/// measured while the traces were recorded.
pub fn measured(
    series: &[Series],
    sub: &SubModel,
    configuration: &Configuration,
) -> Result<(Measured, Vec<Diagnostic>), Diagnostics> {
    let Some(first) = series.first() else { return Ok((Measured::default(), Vec::new())) };
    let known = Known::of_series(sub, configuration, series);
    let tasks = &known.tasks;
    let (Matched { found, machines: whole }, mut findings) = matched(series, &known)?;
    let Some(window) = recorded(sub) else {
        let message = "the traces have no times that utilisation could be compared with";
        return Err(Diagnostic::error(codes::UTILISATION_TIME, file(first), message).into());
    };
    let shift = shift(series, window);
    if shift != 0.0 {
        let message = "times of the utilisation have no date, and are taken to begin with the traces";
        findings.push(Diagnostic::new(Severity::Note, codes::UTILISATION_TIME, file(first), message));
    }
    let mut measured = Measured::default();
    for (processor, own) in found {
        let mut means = over_time(&own, window, shift);
        if means.is_empty() {
            return Err(apart(own[0], window, shift).into());
        }
        let there = tasks.get(&processor).and_then(|tasks| plausible::there(sub, tasks, window));
        findings.extend(there.and_then(|there| plausible::as_percent(&mut means, there, &processor)));
        let machines = known.machines_of(&processor);
        let seen: BTreeSet<&str> = means.iter().filter_map(|own| known.whose(own.series)?.1).collect();
        let is_part = !seen.is_empty() && seen.len() < machines;
        if is_part {
            findings.push(some_machines(own[0], &processor, seen.len(), machines));
        }
        let is_share = own[0].unit == Unit::Share;
        let sharing = tasks.get(&processor).filter(|tasks| tasks.len() > 1);
        // A process's share is that of all processors of its machine: shares of no known task are no utilisation of the whole.
        let is_apart = is_share && is_of_process(&own[0].metric);
        let by_task =
            sharing.and_then(|tasks| Some((by_task(&known, &means, tasks).or(is_apart.then(BTreeMap::new))?, tasks)));
        if let Some((told, tasks)) = &by_task {
            let silent: Vec<&str> = tasks.iter().copied().filter(|task| !told.contains_key(*task)).collect();
            if !is_share {
                measured.tasks.extend(told.iter().map(|(task, total)| (task.clone(), total.sum)));
            }
            if !silent.is_empty() {
                findings.push(partial(own[0], &processor, &silent));
                continue;
            }
        }
        let busy = match (Total::of(&means).busy(own[0].unit), by_task) {
            (Busy::Share(_), Some((told, _))) => Busy::Share(told.values().map(Total::share).sum()),
            // Machines without metrics are taken to be as busy as those with.
            (Busy::Cores(sum), _) if is_part => Busy::Cores(sum * machines as f64 / seen.len() as f64),
            (busy, _) => busy,
        };
        let is_given = is_given(configuration, &processor);
        if let (Busy::Cores(cores), Some(there), false) = (busy, there, is_given)
            && let Some(error) = plausible::beyond(own[0], &processor, cores, there)
        {
            return Err(error.into());
        }
        measured.processors.insert(processor, busy);
    }
    for (processor, own) in whole {
        let means = over_time(&own, window, shift);
        if !means.is_empty() {
            measured.machines.insert(processor, Total::of(&means).busy(own[0].unit));
        }
    }
    Ok((measured, findings))
}

/// Whether settings, resources or metrics tell how many servers a processor has.
fn is_given(configuration: &Configuration, processor: &str) -> bool {
    let settings = configuration.processors.get(processor);
    settings.and_then(|own| own.multiplicity).or(configuration.defaults.multiplicity).is_some()
        || configuration.cores.contains_key(processor)
}

/// That what was measured of some of the services on a processor is left out, where how busy processors were is all that counts.
pub fn left_out(measured: &Measured, sub: &SubModel, configuration: &Configuration) -> Vec<Diagnostic> {
    let is_told = |task: &&str| measured.tasks.contains_key(*task);
    let told = |(processor, tasks): (String, BTreeSet<&str>)| {
        let some = some(tasks.iter().copied().filter(is_told));
        let is_left_out = !measured.processors.contains_key(&processor) && tasks.iter().any(is_told);
        let message = format!("what was measured of {some} alone on processor `{processor}` is left out");
        is_left_out.then(|| {
            Diagnostic::warning(codes::UTILISATION_RESOURCE, Place::Nowhere, message)
                .with_note("calibration knows how busy whole processors were")
        })
    };
    Known::of(sub, configuration).tasks.into_iter().filter_map(told).collect()
}

/// How many cores the processors of a system have by metrics, those of all copies of a processor together, and which metric says so. Each is a bound: of several
/// the least holds.
pub fn cores(told: &[Capacity], sub: &SubModel, configuration: &Configuration) -> Cores {
    let known = Known::of(sub, configuration);
    let copies = |name: &str| known.placed.processors.get(name).and_then(|own| own.replicas).unwrap_or(1);
    let mut by_metric: BTreeMap<(&String, &str), Vec<&Capacity>> = BTreeMap::new();
    for own in told {
        if let Some((name, _)) = known.processor(&own.resources, &own.metric) {
            by_metric.entry((name, &own.metric)).or_default().push(own);
        }
    }
    let mut found = Cores::new();
    for ((name, metric), own) in by_metric {
        let most = own.iter().map(|capacity| capacity.cores).fold(0.0, f64::max);
        let sum: f64 = own.iter().map(|capacity| capacity.cores).sum();
        let each = f64::from(copies(name));
        // Limits of instances that traces tell apart are those of as many copies, however many came and went.
        let all = match own[0].is_limit {
            true if each > 1.0 => sum / own.len() as f64 * each,
            true => sum,
            false => most * each,
        };
        let least = found.entry(name.clone()).or_insert((f64::INFINITY, String::new()));
        if all < least.0 {
            *least = (all, format!("`{metric}` in {}", own[0].file));
        }
    }
    found
}

/// Those of the series that tell how busy processors of a sub-model were while it was recorded, each of them with the names of its processor
/// and of the task whose process it is of, and no others. What nothing of it has to do with is left out: servers of metrics send all that they have.
pub fn fitting(series: &[Series], sub: &SubModel) -> Vec<Series> {
    let known = Known::of(sub, &Configuration::default());
    let Some(window) = recorded(sub) else { return Vec::new() };
    let fit = |own: &Series| {
        let (processor, machine) = known.whose(own)?;
        mean(own, window, 0.0)?;
        let task = known.task_of(own, &known.tasks[processor]).filter(|task| task != processor);
        let names = [Some(&**processor), machine, task];
        let resources = names.into_iter().flatten().map(str::to_owned).collect();
        Some(Series { resources, ..own.clone() })
    };
    let mut fitting: Vec<Series> = series.iter().filter_map(fit).collect();
    fitting.sort_by(|left, right| left.resources[0].cmp(&right.resources[0]));
    fitting
}

/// The total of each of these tasks; `None` where a series is of none of them.
fn by_task<'s>(
    known: &Known<'_>,
    means: &[OverTime<'s>],
    tasks: &BTreeSet<&str>,
) -> Option<BTreeMap<String, Total<'s>>> {
    let mut found: BTreeMap<String, Total<'s>> = BTreeMap::new();
    for own in means {
        found.entry(known.task_of(own.series, tasks)?.to_owned()).or_default().add(own);
    }
    Some(found)
}

/// That these tasks of a processor were not measured, while others were.
fn partial(series: &Series, processor: &str, silent: &[&str]) -> Diagnostic {
    let message = format!("`{}` tells of some of the services on processor `{processor}` only", series.metric);
    let silent = some(silent.iter().copied());
    Diagnostic::new(Severity::Note, codes::UTILISATION_RESOURCE, file(series), message)
        .with_note(format!("nothing tells what {silent} used: that follows from the times of spans"))
        .with_hint("have all of them send it, or send `system.cpu.utilization` of the machine")
}

fn file(series: &Series) -> Place {
    Place::File { file: Arc::clone(&series.file) }
}

/// That some of the machines of a processor stand for all of them.
fn some_machines(series: &Series, processor: &str, seen: usize, machines: usize) -> Diagnostic {
    let message = format!("`{}` is of {seen} of the {machines} machines of processor `{processor}`", series.metric);
    Diagnostic::new(Severity::Note, codes::UTILISATION_RESOURCE, file(series), message)
        .with_note("the others are taken to be as busy")
}

/// From the first start of an operation to the last end, seconds.
fn recorded(sub: &SubModel) -> Option<(f64, f64)> {
    let first = sub.scenarios.values().filter_map(|total| total.first_start).min()?;
    let last = sub.scenarios.values().filter_map(|total| total.last_end.or(total.last_start)).max()?;
    (last > first).then_some((first as f64 * 1e-9, last as f64 * 1e-9))
}

/// What is added to times that have no date, where those of the traces have one.
fn shift(series: &[Series], window: (f64, f64)) -> f64 {
    let times = || series.iter().flat_map(|own| own.samples.iter().map(|sample| sample.0));
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(f64::NEG_INFINITY, f64::max));
    if last < DATED && window.0 >= DATED { window.0 - first } else { 0.0 }
}

fn apart(series: &Series, window: (f64, f64), shift: f64) -> Diagnostic {
    let (first, last) = (series.samples.first(), series.samples.last());
    let own = first.zip(last).map(|(first, last)| (first.0 + shift, last.0 + shift)).unwrap_or_default();
    let message = format!("`{}` was not measured while the traces were recorded", series.metric);
    Diagnostic::error(codes::UTILISATION_TIME, file(series), message)
        .with_note(format!("it was measured from {} s to {} s", load::short(own.0), load::short(own.1)))
        .with_note(format!("the traces are from {} s to {} s", load::short(window.0), load::short(window.1)))
        .with_hint("times are seconds since 1970 in UTC; name the unit in the header, as `time_ms`")
}
