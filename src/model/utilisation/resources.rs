//! Whose a metric is: the processor, the machine or the service that its resource names.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity, similar};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::config::Configuration;
use crate::model::utilisation::{Series, Unit, file};
use crate::model::{codes, deployment};

/// Whether a metric is of a process or container, and not of a machine.
pub fn is_of_process(metric: &str) -> bool {
    let metric = metric.replace('.', "_");
    OF_PROCESSES.iter().any(|kind| metric.starts_with(kind))
}

/// The tasks of each processor, by its name.
pub type Tasks<'s> = BTreeMap<String, BTreeSet<&'s str>>;

/// What a resource of metrics may be.
pub struct Known<'s> {
    /// The configuration with what traces tell of instances and machines.
    pub placed: Configuration,
    pub tasks: Tasks<'s>,
    processors: BTreeSet<String>,
    /// The processor that machines are of, by their names in the traces; none of those where tasks of several run.
    machines: BTreeMap<&'s str, String>,
    /// On how many machines tasks of a processor run, those of several included.
    machine_counts: BTreeMap<String, usize>,
    /// The task that an instance is of, by its name in the traces.
    instances: BTreeMap<&'s str, &'s str>,
    /// The names of all tasks: there may be very many series to look for them.
    task_names: BTreeSet<String>,
}

impl<'s> Known<'s> {
    /// Of tasks of which each has a processor, where neither traces nor the configuration say otherwise.
    pub fn of(sub: &'s SubModel, configuration: &Configuration) -> Self {
        Self::placed(sub, deployment::placed_together(sub, configuration, &[]).configuration)
    }

    /// What these series may be of. Times may tell that tasks share a machine; but a column that is called after a task, and is of no process, is of a processor of that name.
    pub fn of_series(sub: &'s SubModel, configuration: &Configuration, series: &[Series]) -> Self {
        let apart = Self::of(sub, configuration);
        let is_named = |name: &String| apart.task_names.contains(name);
        if series.iter().any(|own| !is_of_process(&own.metric) && own.resources.iter().any(is_named)) {
            return apart;
        }
        Self::placed(sub, deployment::placed(sub, configuration).configuration)
    }

    fn placed(sub: &'s SubModel, placed: Configuration) -> Self {
        let tasks = tasks_of(sub, &placed);
        let mut on: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (replica, _) in sub.deployment.replicas().filter(|(replica, _)| replica.machine.is_some()) {
            let processor = processor_of_task(sub.names.text(replica.task), &placed);
            on.entry(sub.names.text(replica.machine)).or_default().insert(processor);
        }
        let mut machine_counts: BTreeMap<String, usize> = BTreeMap::new();
        for processor in on.values().flatten() {
            *machine_counts.entry(processor.clone()).or_default() += 1;
        }
        // What tasks share, or machines are called, tells of no task.
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (own, _) in sub.deployment.replicas().filter(|(replica, _)| replica.instance.is_some()) {
            named.entry(sub.names.text(own.instance)).or_default().insert(sub.names.text(own.task));
        }
        let of_one = |(name, mut of): (&'s str, BTreeSet<&'s str>)| {
            let is_its_own = of.len() == 1 && !on.contains_key(name);
            Some((name, of.pop_first().filter(|_| is_its_own)?))
        };
        let instances = named.into_iter().filter_map(of_one).collect();
        let only = |(machine, mut on): (&'s str, BTreeSet<String>)| {
            let only = if on.len() == 1 { on.pop_first() } else { None };
            Some((machine, only.filter(|only| tasks.contains_key(only))?))
        };
        let machines = on.into_iter().filter_map(only).collect();
        let processors = tasks.keys().cloned().collect();
        let task_names = tasks.values().flatten().map(|task| (*task).to_owned()).collect();
        Self { placed, tasks, processors, machines, machine_counts, instances, task_names }
    }

    /// The processor that some values are of, by the names of their resource, and the machine, where they are all of a machine.
    pub fn processor(&self, resources: &[String], metric: &str) -> Option<(&String, Option<&'s str>)> {
        let same = resources.iter().find_map(|own| self.processors.iter().find(|name| name.eq_ignore_ascii_case(own)));
        let of_pod = || resources.iter().find_map(|resource| processor_of(resource, &self.processors));
        // Beside the services that the traces show, others run on a machine, too.
        let placed = || {
            let machine = |resource: &String| self.machines.iter().find(|(machine, _)| is_machine(machine, resource));
            let found = resources.iter().filter(|_| !is_of_process(metric)).find_map(machine);
            found.map(|(machine, processor)| (processor, Some(*machine)))
        };
        let at_machine = |name| (name, placed().filter(|(own, _)| *own == name).and_then(|(_, machine)| machine));
        let of_task = || {
            let task = self.task(resources, metric)?;
            self.tasks.iter().find(|(_, tasks)| tasks.contains(task)).map(|(name, _)| name)
        };
        let of_its_own = || of_task().or_else(of_pod).map(|name| (name, None));
        same.map(at_machine).or_else(placed).or_else(of_its_own)
    }

    /// The task whose process or container a metric is of: by its name, by that of an instance, or by that of a pod.
    fn task(&self, resources: &[String], metric: &str) -> Option<&'s str> {
        if !is_of_process(metric) {
            return None;
        }
        let all = || self.tasks.values().flatten().copied();
        let same = resources.iter().find_map(|own| all().find(|task| task.eq_ignore_ascii_case(own)));
        let instance = || resources.iter().find_map(|own| self.instances.get(&**own).copied());
        let of_pod = || {
            let found = resources.iter().find_map(|own| processor_of(own, &self.task_names))?;
            all().find(|task| task == found)
        };
        same.or_else(instance).or_else(of_pod)
    }

    /// The task of these that a series is of.
    pub fn task_of(&self, series: &Series, tasks: &BTreeSet<&str>) -> Option<&'s str> {
        self.task(&series.resources, &series.metric).filter(|task| tasks.contains(task))
    }

    /// Whether a metric of a process is of one of the tasks of its processor, as far as can be told. Others run there, too, whom no trace shows.
    fn is_of(&self, series: &Series, processor: &str) -> bool {
        let own = &self.tasks[processor];
        let names_processor = || {
            let processors = std::iter::once(processor.to_owned()).collect();
            series.resources.first().is_none_or(|name| processor_of(name, &processors).is_some())
        };
        own.len() == 1 || !is_of_process(&series.metric) || self.task_of(series, own).is_some() || names_processor()
    }

    /// Whether metrics are of processes of some of the tasks of a processor only: they are not how busy it was.
    fn is_partial(&self, series: &[&Series], processor: &str) -> bool {
        let tasks = &self.tasks[processor];
        let told: BTreeSet<&str> = series.iter().filter_map(|own| self.task_of(own, tasks)).collect();
        !told.is_empty() && told.len() < tasks.len()
    }

    /// The processor that a series is of, and the machine as above; `None` also where it is of a process of none of the processor's tasks.
    pub fn whose(&self, series: &Series) -> Option<(&String, Option<&'s str>)> {
        let found = self.processor(&series.resources, &series.metric);
        found.filter(|(processor, _)| self.is_of(series, processor))
    }

    /// On how many machines tasks of a processor run.
    pub fn machines_of(&self, processor: &str) -> usize {
        self.machine_counts.get(processor).copied().unwrap_or(0)
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

/// Series by processor.
pub type OfProcessors<'s> = BTreeMap<String, Vec<&'s Series>>;

/// Series that were matched with processors.
pub struct Matched<'s> {
    /// Those that tell most of it.
    pub found: OfProcessors<'s>,
    /// Where those are of processes, others of the whole machine.
    pub machines: OfProcessors<'s>,
}

/// The series of each processor: those of one metric, of all of it rather than of some of its tasks, of the unit that tells most.
pub fn matched<'s>(series: &'s [Series], known: &Known<'_>) -> Result<(Matched<'s>, Vec<Diagnostic>), Diagnostics> {
    let Known { processors, .. } = known;
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
        if let Some((processor, _)) = known.whose(own) {
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
            .min_by_key(|(_, own)| (known.is_partial(own, processor), is_of_machine(own)))
            .map(|(kind, _)| *kind);
        *own = best.and_then(|best| kinds.remove(&best)).unwrap_or_default();
        let rest = kinds.into_values().find(|own| is_of_machine(own));
        if let Some(rest) = rest.filter(|_| !is_of_machine(own)) {
            machines.insert(processor.clone(), rest);
        }
        // Series of the whole processor go before those of its pods or machines.
        let is_all = |series: &&Series| series.resources.iter().any(|name| name.eq_ignore_ascii_case(processor));
        if own.iter().any(is_all) {
            own.retain(is_all);
        }
    }
    Ok((Matched { found, machines }, findings.into_iter().collect()))
}

/// The processor that a resource is: of its name, or the deployment that a pod is of.
pub fn processor_of<'p>(resource: &str, processors: &'p BTreeSet<String>) -> Option<&'p String> {
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

/// Some of the names.
pub fn some<'n>(names: impl Iterator<Item = &'n str> + Clone) -> String {
    const SHOWN: usize = 8;
    let count = names.clone().count();
    let shown: Vec<String> = names.take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{is_machine, processor_of};

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
