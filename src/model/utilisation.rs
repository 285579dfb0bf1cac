//! Measured utilisation: whose it is, and how busy that was while traces were recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity, similar};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::config::Configuration;
use crate::model::requests::Requests;
use crate::model::{codes, deployment, load};

/// Values of one metric of one resource over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The file that it is from.
    pub file: Arc<str>,
    /// The metric's name.
    pub metric: String,
    /// Names that the resource goes by, the most telling first; none where the file names no resource.
    pub resources: Vec<String>,
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
    /// How busy their machines were in all, where what is above is what processes used: others run there, too.
    pub machines: BTreeMap<String, Busy>,
}

/// Times from here on, in seconds, have a date.
const DATED: f64 = 1e8;

/// A sample stands for at most so many times the usual interval.
const LONG: f64 = 3.0;

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
    let known = Known::of(sub, configuration);
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
        // What was measured at other times belongs to other loads.
        let means = own.iter().filter_map(|series| Some((*series, mean(series, window, shift)?)));
        let means = over_time(means.collect(), window, shift);
        if means.is_empty() {
            return Err(apart(own[0], window, shift).into());
        }
        let sum: f64 = means.iter().map(|own| own.mean).sum();
        let machines = known.machines_of(&processor);
        let seen: BTreeSet<&str> =
            means.iter().filter_map(|own| known.processor(&own.series.resources, &own.series.metric)?.1).collect();
        let is_part = !seen.is_empty() && seen.len() < machines;
        if is_part {
            findings.push(some_machines(own[0], &processor, seen.len(), machines));
        }
        let busy = match own[0].unit {
            Unit::Share => match tasks.get(&processor).filter(|tasks| tasks.len() > 1) {
                // Each process has its share of all processors of its machine.
                Some(tasks) if is_of_process(&own[0].metric) => {
                    let told = by_task(&means, tasks).unwrap_or_default();
                    let silent: Vec<&str> = tasks.iter().copied().filter(|task| !told.contains_key(*task)).collect();
                    if !silent.is_empty() {
                        findings.push(partial(own[0], &processor, &silent));
                        continue;
                    }
                    Busy::Share(told.values().map(TaskMean::share).sum())
                }
                _ => Busy::Share(shared(&means)),
            },
            Unit::Cores | Unit::Seconds => {
                let tasks = tasks.get(&processor).filter(|tasks| tasks.len() > 1);
                let told = tasks.and_then(|tasks| Some((by_task(&means, tasks)?, tasks)));
                if let Some((told, tasks)) = told {
                    let silent: Vec<&str> = tasks.iter().copied().filter(|task| !told.contains_key(*task)).collect();
                    let is_whole = silent.is_empty();
                    measured.tasks.extend(told.into_iter().map(|(task, own)| (task, own.sum)));
                    if !is_whole {
                        findings.push(partial(own[0], &processor, &silent));
                        continue;
                    }
                }
                // What the machines do that were not measured is taken to be what the others do.
                Busy::Cores(if is_part { sum * machines as f64 / seen.len() as f64 } else { sum })
            }
        };
        measured.processors.insert(processor, busy);
    }
    for (processor, own) in whole {
        let means = own.iter().filter_map(|series| Some((*series, mean(series, window, shift)?)));
        let means = over_time(means.collect(), window, shift);
        if !means.is_empty() {
            let is_share = own[0].unit == Unit::Share;
            let cores = || means.iter().map(|own| own.mean).sum();
            let busy = if is_share { Busy::Share(shared(&means)) } else { Busy::Cores(cores()) };
            measured.machines.insert(processor, busy);
        }
    }
    Ok((measured, findings))
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
    let placed = deployment::placed(sub, configuration).configuration;
    let copies = |name: &str| placed.processors.get(name).and_then(|own| own.replicas).unwrap_or(1);
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
    let tasks = &known.tasks;
    let Some(window) = recorded(sub) else { return Vec::new() };
    let fit = |own: &Series| {
        let (processor, machine) = known.processor(&own.resources, &own.metric)?;
        if !is_of(own, processor, tasks) {
            return None;
        }
        mean(own, window, 0.0)?;
        let task = task_of(own, &tasks[processor]).filter(|task| task != processor);
        let names = [Some(&**processor), machine, task];
        let resources = names.into_iter().flatten().map(str::to_owned).collect();
        Some(Series { resources, ..own.clone() })
    };
    let mut fitting: Vec<Series> = series.iter().filter_map(fit).collect();
    fitting.sort_by(|left, right| left.resources[0].cmp(&right.resources[0]));
    fitting
}

/// What processes of a task used.
#[derive(Clone, Copy, Debug, Default)]
struct TaskMean {
    /// All of them together.
    sum: f64,
    /// How many were there together on the mean.
    together: f64,
}

impl TaskMean {
    /// Each on the mean, where values are parts of their machines.
    fn share(&self) -> f64 {
        self.sum / self.together.max(f64::MIN_POSITIVE)
    }
}

/// What was measured of each of these tasks; `None` where it is not known of which of them all of that is.
fn by_task(means: &[OverTime<'_>], tasks: &BTreeSet<&str>) -> Option<BTreeMap<String, TaskMean>> {
    let mut found: BTreeMap<String, TaskMean> = BTreeMap::new();
    for own in means {
        let task = found.entry(task_of(own.series, tasks)?.to_owned()).or_default();
        (task.sum, task.together) = (task.sum + own.mean, task.together + own.part);
    }
    Some(found)
}

/// The task that a metric of a process or container is of.
fn task_of<'t>(series: &Series, tasks: &BTreeSet<&'t str>) -> Option<&'t str> {
    let is_of = |task: &&&str| series.resources.iter().any(|name| name.eq_ignore_ascii_case(task));
    is_of_process(&series.metric).then(|| tasks.iter().find(is_of).copied()).flatten()
}

fn is_of_process(metric: &str) -> bool {
    let metric = metric.replace('.', "_");
    OF_PROCESSES.iter().any(|kind| metric.starts_with(kind))
}

/// The tasks of each processor, by its name.
type Tasks<'s> = BTreeMap<String, BTreeSet<&'s str>>;

/// What a resource of metrics may be.
struct Known<'s> {
    tasks: Tasks<'s>,
    processors: BTreeSet<String>,
    /// The processor that machines are of, by their names in the traces; none of those where tasks of several run.
    machines: BTreeMap<&'s str, String>,
}

impl<'s> Known<'s> {
    fn of(sub: &'s SubModel, configuration: &Configuration) -> Self {
        let placed = &deployment::placed(sub, configuration).configuration;
        let tasks = tasks_of(sub, placed);
        let mut on: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (replica, _) in sub.deployment.replicas().filter(|(replica, _)| replica.machine.is_some()) {
            let processor = processor_of_task(sub.names.text(replica.task), placed);
            on.entry(sub.names.text(replica.machine)).or_default().insert(processor);
        }
        let only = |(machine, mut on): (&'s str, BTreeSet<String>)| {
            let only = if on.len() == 1 { on.pop_first() } else { None };
            Some((machine, only.filter(|only| tasks.contains_key(only))?))
        };
        let machines = on.into_iter().filter_map(only).collect();
        Self { processors: tasks.keys().cloned().collect(), machines, tasks }
    }

    /// The processor that some values are of, by the names of their resource, and the machine, where they are all of a machine.
    fn processor(&self, resources: &[String], metric: &str) -> Option<(&String, Option<&'s str>)> {
        let same = resources.iter().find_map(|own| self.processors.iter().find(|name| name.eq_ignore_ascii_case(own)));
        let of_pod = || resources.iter().find_map(|resource| processor_of(resource, &self.processors));
        // Beside the services that the traces show, others run on a machine, too.
        let placed = || {
            let machine = |resource: &String| self.machines.iter().find(|(machine, _)| is_machine(machine, resource));
            let found = resources.iter().filter(|_| !is_of_process(metric)).find_map(machine);
            found.map(|(machine, processor)| (processor, Some(*machine)))
        };
        let at_machine = |name| (name, placed().filter(|(own, _)| *own == name).and_then(|(_, machine)| machine));
        same.map(at_machine).or_else(placed).or_else(|| of_pod().map(|name| (name, None)))
    }

    /// How many machines a processor is made of.
    fn machines_of(&self, processor: &str) -> usize {
        self.machines.values().filter(|own| *own == processor).count()
    }
}

/// Whether a resource is a machine of that name: as it is, with a port, or with or without its domain.
fn is_machine(machine: &str, resource: &str) -> bool {
    let lower = |name: &str| name.to_ascii_lowercase();
    let (machine, resource) = (lower(machine), lower(resource));
    let host = match resource.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => &*resource,
    };
    let is_address = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_short_of = |short: &str, long: &str| {
        !is_address(long) && long.strip_prefix(short).is_some_and(|domain| domain.starts_with('.'))
    };
    host == machine || is_short_of(host, &machine) || is_short_of(&machine, host)
}

/// The tasks of processors by a configuration in which all tasks are placed.
fn tasks_of<'s>(sub: &'s SubModel, configuration: &Configuration) -> Tasks<'s> {
    let mut tasks = Tasks::new();
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        let task = sub.names.text(entry.task);
        tasks.entry(processor_of_task(task, configuration)).or_default().insert(task);
    }
    tasks
}

fn processor_of_task(task: &str, configuration: &Configuration) -> String {
    let settings = configuration.tasks.get(task);
    settings.and_then(|settings| settings.processor.clone()).unwrap_or_else(|| task.to_owned())
}

/// How metrics begin that tell of one process or container, and not of a machine; with `_` for dots, as Prometheus writes them.
const OF_PROCESSES: [&str; 6] = ["process", "container", "dotnet_process", "jvm", "k8s_container", "k8s_pod"];

/// Whether a metric of a process is of one of the tasks of its processor, as far as can be told. Others run there, too, whom no trace shows.
fn is_of(series: &Series, processor: &str, tasks: &Tasks<'_>) -> bool {
    let own = &tasks[processor];
    let names_processor = || {
        let processors = std::iter::once(processor.to_owned()).collect();
        series.resources.first().is_none_or(|name| processor_of(name, &processors).is_some())
    };
    own.len() == 1 || !is_of_process(&series.metric) || task_of(series, own).is_some() || names_processor()
}

/// Whether metrics are of processes of some of these tasks only: they are not how busy the processor was.
fn is_partial(series: &[&Series], tasks: &BTreeSet<&str>) -> bool {
    let told: BTreeSet<&str> = series.iter().filter_map(|own| task_of(own, tasks)).collect();
    !told.is_empty() && told.len() < tasks.len()
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

type OfProcessors<'s> = BTreeMap<String, Vec<&'s Series>>;

/// Series by processor.
struct Matched<'s> {
    /// Those that tell most of it.
    found: OfProcessors<'s>,
    /// Where those are of processes, others of the whole machine.
    machines: OfProcessors<'s>,
}

/// The series of each processor: those of one metric, of all of it rather than of some of its tasks, of the unit that tells most.
fn matched<'s>(series: &'s [Series], known: &Known<'_>) -> Result<(Matched<'s>, Vec<Diagnostic>), Diagnostics> {
    let Known { tasks, processors, .. } = known;
    let (mut found, mut machines): (OfProcessors<'s>, OfProcessors<'s>) = Default::default();
    let mut errors = Vec::new();
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for own in series {
        if own.resources.is_empty() {
            match processors.iter().next().filter(|_| processors.len() == 1) {
                Some(only) => found.entry(only.clone()).or_default().push(own),
                None => errors.push(unnamed(own, processors)),
            }
            continue;
        }
        let processor = known.processor(&own.resources, &own.metric).map(|(processor, _)| processor);
        if let Some(processor) = processor.filter(|processor| is_of(own, processor, tasks)) {
            found.entry(processor.clone()).or_default().push(own);
            continue;
        }
        let name = &*own.resources[0];
        let near = own.resources.iter().find_map(|name| similar(name, processors.iter().map(String::as_str)));
        match near {
            Some(near) if others.insert(name) => errors.push(
                Diagnostic::error(codes::UTILISATION_RESOURCE, file(own), format!("no processor is named `{name}`"))
                    .with_hint(format!("did you mean `{near}`?")),
            ),
            _ => {
                others.insert(name);
            }
        }
    }
    if found.is_empty() && errors.is_empty() {
        errors.push(none_matched(&series[0], &others, known));
    }
    if !errors.is_empty() {
        return Err(Diagnostics(errors));
    }
    let findings = (!others.is_empty()).then(|| {
        let message = format!("utilisation of {} resources is of no processor of the model", others.len());
        Diagnostic::new(Severity::Note, codes::UTILISATION_RESOURCE, file(&series[0]), message)
            .with_note(format!("among them {}", some(others.iter().copied())))
    });
    for (processor, own) in &mut found {
        let mut kinds: BTreeMap<(Unit, &str), Vec<&Series>> = BTreeMap::new();
        for series in own.iter() {
            kinds.entry((series.unit, series.kind())).or_default().push(series);
        }
        let is_of_machine = |own: &[&Series]| !own.iter().any(|series| is_of_process(&series.metric));
        // What processes used is theirs, and what a machine used may be that of others, too.
        let best = kinds
            .iter()
            .min_by_key(|(_, own)| (is_partial(own, &tasks[processor]), is_of_machine(own)))
            .map(|(kind, _)| *kind);
        *own = best.and_then(|best| kinds.remove(&best)).unwrap_or_default();
        let rest = kinds.into_values().find(|own| is_of_machine(own));
        if let Some(rest) = rest.filter(|_| !is_of_machine(own)) {
            machines.insert(processor.clone(), rest);
        }
        // Beside all of a processor there may be what its pods or machines have of it.
        let is_all = |series: &&Series| series.resources.iter().any(|name| name.eq_ignore_ascii_case(processor));
        if own.iter().any(is_all) {
            own.retain(is_all);
        }
    }
    Ok((Matched { found, machines }, findings.into_iter().collect()))
}

/// The processor that a resource is: of its name, or the deployment that a pod is of.
pub(super) fn processor_of<'p>(resource: &str, processors: &'p BTreeSet<String>) -> Option<&'p String> {
    let same = |name: &&String| name.eq_ignore_ascii_case(resource);
    let pod = |name: &&String| {
        let rest = resource.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        // What a deployment or a stateful set appends has a digit in it, and what another service is called seldom.
        rest.is_some_and(|rest| rest.bytes().any(|byte| byte.is_ascii_digit()) && rest.len() <= 20)
    };
    processors.iter().find(same).or_else(|| processors.iter().filter(pod).max_by_key(|name| name.len()))
}

fn unnamed(series: &Series, processors: &BTreeSet<String>) -> Diagnostic {
    let message = format!("`{}` does not tell which processor it is of, and there are several", series.metric);
    Diagnostic::error(codes::UTILISATION_RESOURCE, file(series), message)
        .with_note(format!("there are {}", some(processors.iter().map(String::as_str))))
        .with_hint("name the column after the processor, as `web (%)`, or add a column `resource`")
}

fn none_matched(series: &Series, others: &BTreeSet<&str>, known: &Known<'_>) -> Diagnostic {
    let told = Diagnostic::error(codes::UTILISATION_RESOURCE, file(series), "no resource is a processor of the model")
        .with_note(format!("utilisation is of {}", some(others.iter().copied())))
        .with_note(format!("processors are {}", some(known.processors.iter().map(String::as_str))));
    let told = if known.machines.is_empty() {
        told
    } else {
        told.with_note(format!("machines are {}", some(known.machines.keys().copied())))
    };
    told.with_hint("name the processors of tasks so: `processor` under `[task.NAME]`")
}

/// That some of the machines of a processor stand for all of them.
fn some_machines(series: &Series, processor: &str, seen: usize, machines: usize) -> Diagnostic {
    let message = format!("`{}` is of {seen} of the {machines} machines of processor `{processor}`", series.metric);
    Diagnostic::new(Severity::Note, codes::UTILISATION_RESOURCE, file(series), message)
        .with_note("the others are taken to be as busy")
}

/// Some of the names.
fn some<'n>(names: impl Iterator<Item = &'n str> + Clone) -> String {
    const SHOWN: usize = 8;
    let count = names.clone().count();
    let shown: Vec<String> = names.take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
    format!("{}{more}", shown.join(", "))
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

/// The mean within a stretch of time: of a counter its growth, of other values what they are for as long as they stand.
fn mean(series: &Series, (from, to): (f64, f64), shift: f64) -> Option<f64> {
    let samples = &series.samples;
    let step = usual_step(samples).unwrap_or(0.0);
    let within = |time: f64| time + shift >= from - step && time + shift <= to + step;
    if series.unit == Unit::Seconds {
        let own: Vec<(f64, f64)> = samples.iter().copied().filter(|(time, _)| within(*time)).collect();
        let (first, last) = (own.first()?, own.last()?);
        // A counter that falls was set back to zero.
        let grown: f64 =
            own.windows(2).map(|pair| if pair[1].1 >= pair[0].1 { pair[1].1 - pair[0].1 } else { pair[1].1 }).sum();
        return (last.0 > first.0).then(|| grown / (last.0 - first.0));
    }
    let (mut sum, mut seconds) = (0.0, 0.0);
    for (place, (time, value)) in samples.iter().enumerate() {
        let length = samples.get(place + 1).map_or(step, |next| (next.0 - time).min(LONG * step)).max(0.0);
        let (begin, end) = ((time + shift).max(from), (time + shift + length).min(to));
        let part = if length > 0.0 { (end - begin).max(0.0) } else { f64::from(u8::from(begin <= end)) };
        sum += value * part;
        seconds += part;
    }
    (seconds > 0.0).then(|| sum / seconds)
}

/// The mean of a series over all of the time in which any of several was measured.
#[derive(Clone, Copy, Debug)]
struct OverTime<'s> {
    series: &'s Series,
    mean: f64,
    /// The part of that time in which it was measured itself.
    part: f64,
}

/// Means over all of the time in which any of the series was measured: processes that follow each other do not add up.
fn over_time<'s>(means: Vec<(&'s Series, f64)>, window: (f64, f64), shift: f64) -> Vec<OverTime<'s>> {
    let lives: Vec<(f64, f64)> = means.iter().map(|(series, _)| life(series, window, shift)).collect();
    let mut ordered = lives.clone();
    ordered.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut all, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in ordered {
        all += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    let own = |((series, mean), (from, to)): ((&'s Series, f64), (f64, f64))| {
        let part = if all > 0.0 { (to - from) / all } else { 1.0 };
        OverTime { series, mean: mean * part, part }
    };
    means.into_iter().zip(lives).map(own).collect()
}

/// The busy part of machines that are alike, each of which has a series.
fn shared(means: &[OverTime<'_>]) -> f64 {
    let (busy, together) = means.iter().fold((0.0, 0.0), |sum, own| (sum.0 + own.mean, sum.1 + own.part));
    busy / together
}

/// From when to when a series tells within a stretch of time: from a sample's usual interval before its first one to one after its last; of one sample nobody knows.
fn life(series: &Series, (from, to): (f64, f64), shift: f64) -> (f64, f64) {
    let step = usual_step(&series.samples).unwrap_or(0.0);
    let Some((first, last)) =
        series.samples.first().zip(series.samples.last()).filter(|(first, last)| last.0 > first.0)
    else {
        return (from, to);
    };
    let within = |time: f64| (time + shift).clamp(from, to);
    (within(first.0 - step), within(last.0 + step))
}

/// The median interval between samples.
fn usual_step(samples: &[(f64, f64)]) -> Option<f64> {
    let mut steps: Vec<f64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
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

#[cfg(test)]
mod tests {
    use super::{Series, Unit, is_machine, mean, over_time, processor_of};

    fn series(unit: Unit, samples: &[(f64, f64)]) -> Series {
        let samples = samples.to_vec();
        Series { file: "u.csv".into(), metric: "cpu".to_owned(), resources: Vec::new(), unit, samples }
    }

    #[test]
    fn counters_grow_and_are_set_back() {
        let own = series(Unit::Seconds, &[(0.0, 100.0), (10.0, 105.0), (20.0, 1.0), (30.0, 6.0)]);
        assert_eq!(mean(&own, (0.0, 30.0), 0.0), Some(11.0 / 30.0));
        assert_eq!(mean(&own, (100.0, 130.0), 0.0), None);
    }

    #[test]
    fn values_count_while_they_stand_within_the_traces() {
        let own = series(Unit::Cores, &[(0.0, 9.0), (10.0, 1.0), (20.0, 3.0), (30.0, 9.0)]);
        assert_eq!(mean(&own, (10.0, 30.0), 0.0), Some(2.0));
        assert_eq!(mean(&own, (1010.0, 1030.0), 1000.0), Some(2.0));
    }

    #[test]
    fn processes_that_follow_each_other_do_not_add_up() {
        let cores = |from: i32, to: i32| {
            let samples: Vec<(f64, f64)> = (from..=to).map(|time| (f64::from(time), 0.5)).collect();
            series(Unit::Cores, &samples)
        };
        let of = |all: &[Series]| {
            let means: Vec<(&Series, f64)> = all.iter().map(|own| (own, 0.5)).collect();
            let means = over_time(means, (0.0, 100.0), 0.0);
            (means.iter().map(|own| own.mean).sum::<f64>(), means.iter().map(|own| own.part).sum::<f64>())
        };
        let near = |(busy, together): (f64, f64), truth: f64| {
            assert!(
                (busy / truth - 0.5).abs() < 0.01 && (together / truth - 1.0).abs() < 0.02,
                "{busy} {together} {truth}"
            );
        };
        near(of(&[cores(1, 99), cores(3, 100)]), 2.0);
        near(of(&[cores(1, 49), cores(50, 99)]), 1.0);
        near(of(&[cores(1, 99), cores(50, 99)]), 1.5);
        // What was measured in a part of the time only stands for all of it.
        near(of(&[cores(30, 60)]), 1.0);
    }

    #[test]
    fn pods_are_of_their_deployment() {
        let known = ["geo", "geo-cache", "web"].map(str::to_owned).into();
        let of = |name: &str| processor_of(name, &known).map(String::as_str);
        assert_eq!(of("geo-6455488cd8-9pdxx"), Some("geo"));
        assert_eq!(of("geo-cache-0"), Some("geo-cache"));
        assert_eq!(of("WEB"), Some("web"));
        assert_eq!(of("geo-store"), None);
    }

    #[test]
    fn machines_go_by_names_with_ports_and_domains() {
        let same = ["db1", "DB1", "db1:9100", "db1.example.com", "db1.example.com:9100"];
        assert!(same.iter().all(|name| is_machine("db1", name)));
        assert!(is_machine("db1.example.com", "db1") && is_machine("10.0.0.1", "10.0.0.1:9100"));
        assert!(!is_machine("10.0.0.1", "10") && !is_machine("10", "10.0.0.1"));
        assert!(!["db", "db10", "db1-x", "db1x.example.com"].iter().any(|name| is_machine("db1", name)));
    }
}
