//! A configuration to start from: what the traces show, with every choice that was made for want of one.

mod from_model;

pub use from_model::starter_from_model;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::diagnostic::quantity::{milliseconds, time};
use crate::lqn::submodel::{Interaction, Moments, SubModel};
use crate::lqn::{Dispatching, Model, Multiplicity, Task};
use crate::model::load::{Recording, observed_rate, quoted, short, toml_key};
use crate::model::{Configuration, Host, Load, LoadReason, Origins, ScenarioOrigin, deployment, network};

/// The least think time of suggested customers, seconds.
const THINK_TIME: f64 = 1.0;

/// Writes a commented configuration for a model that was completed without one. Read back, it gives no warning and leaves
/// the model as it is, but for rates, which have four digits.
///
/// A configuration gives no more than what metrics tell, which stands in no file.
pub fn starter(sub: &SubModel, configuration: &Configuration, model: &Model, origins: &Origins) -> String {
    let mut text = String::from(
        "# What traces cannot tell. Every setting here is the one that is taken where there is none: change what you know\n\
         # better, and leave out what you do not.\n",
    );
    text.push_str("\n# The load of each scenario: customers with a think time, or arrivals at a rate.\n");
    for scenario in &origins.scenarios {
        scenario_of(&mut text, sub, scenario);
    }
    let mut seen = Moments::default();
    sub.entries().iter().flat_map(|entry| entry.work.values()).for_each(|work| seen.merge(&work.network));
    if let Some(mean) = network::latency(sub.entries().iter(), sub.scenarios.values(), &seen) {
        let _ = write!(
            text,
            "\n# Network latency per call: {} as measured. It delays callers and loads no processor. \"traced\", \"none\", or a time per call;\n\
             # a task can have its own.\n[defaults]\nnetwork = \"traced\"\n",
            milliseconds(mean)
        );
    }
    text.push_str("\n# Tasks: where they run, and how many requests they serve at once.\n");
    let placed = deployment::placed(sub, configuration).configuration;
    let found = crate::model::traced(sub, configuration);
    let found: BTreeMap<&String, &Host> = found.hosts().collect();
    let mut processors: BTreeMap<&str, &Task> = BTreeMap::new();
    let mut tasks: BTreeSet<&str> = BTreeSet::new();
    for (task, origin) in model.tasks.iter().zip(&origins.tasks) {
        // Further instances of a task take the settings of the first.
        if origin.customer || !tasks.insert(&origin.identifier) {
            continue;
        }
        let settings = placed.tasks.get(&*origin.identifier);
        let processor = settings.and_then(|own| own.processor.as_deref()).unwrap_or(&origin.identifier);
        processors.entry(processor).or_insert(task);
        let threads = servers(task.multiplicity);
        let key = toml_key(&origin.identifier);
        let _ = write!(text, "\n[task.{key}]\nprocessor = {}\nthreads = {threads}\n", quoted(processor));
        if task.replicas > 1 {
            let _ = writeln!(text, "replicas = {}    # so many instances were there together", task.replicas);
            if task.dispatching != Dispatching::FanOut {
                let _ = writeln!(text, "dispatching = \"{}\"    # by where requests went", task.dispatching.word());
            }
        }
    }
    text.push_str("\n# Processors. Tasks that share a machine should name the same one.\n");
    for (name, task) in &processors {
        let own = &model.processors[task.processor.index()];
        let source = match (placed.processors.get(*name), found.get(&(*name).to_owned())) {
            (Some(told), host) if told.multiplicity.is_some() && host.is_none_or(|host| host.bound.is_none()) => {
                "    # cores, as resources of spans or metrics tell them".to_owned()
            }
            (_, Some(host)) => format!("    # found from how long work took beside other work: {}", host.described()),
            (_, None) => String::new(),
        };
        let servers = servers(own.multiplicity);
        let _ =
            write!(text, "\n[processor.{}]\nmultiplicity = {servers}{source}\nscheduling = \"ps\"\n", toml_key(name));
        if let Some(cores) = model.cap(task.processor) {
            let _ = writeln!(text, "quota = {}    # so many servers may be busy on the mean of 100 ms", short(cores));
        }
        if own.replicas > 1 {
            let _ = writeln!(text, "replicas = {}", own.replicas);
        }
    }
    demands(&mut text, sub);
    text
}

fn scenario_of(text: &mut String, sub: &SubModel, scenario: &ScenarioOrigin) {
    let _ = write!(text, "\n[scenario.{}]\n# seen {}", toml_key(&scenario.name), times(scenario.operations));
    if let Some(response) = scenario.observed_response {
        let _ = write!(text, ", mean response {}", time(response));
    }
    match scenario.load {
        Load::Open { rate } => {
            let _ = writeln!(text, ", {} a second", short(rate));
            let _ = writeln!(text, "rate = \"{}/s\"", short(rate));
            let response = scenario.observed_response.unwrap_or(0.0);
            let population = (rate * (response + THINK_TIME)).ceil().max(1.0);
            // Little's law: so many are underway or thinking.
            let think_time = population / rate - response;
            text.push_str("# about as many operations come from these customers:\n");
            let _ = writeln!(text, "# population = {population}\n# think_time = \"{}\"", duration(think_time));
        }
        Load::Closed { population, think_time } => {
            let why = match scenario.reason {
                LoadReason::Assumed => "; one at a time, since nothing tells how often they begin",
                LoadReason::Configured | LoadReason::Observed => "",
            };
            let _ = writeln!(text, "{why}\npopulation = {population}\nthink_time = \"{}\"", duration(think_time));
            let total = sub.names.get(&scenario.name).and_then(|name| sub.scenarios.get(&name));
            let recording = Recording::of(sub);
            let observed = total.and_then(|total| observed_rate(total, &recording));
            let rate = observed.map_or_else(|| "10".to_owned(), short);
            let _ = writeln!(text, "# or arrivals, whatever happened to those before:\n# rate = \"{rate}/s\"");
        }
    }
}

/// What activities there are, and what is known of them. All of it stands in comments.
fn demands(text: &mut String, sub: &SubModel) {
    let mut activities: BTreeMap<&str, (u64, Moments)> = BTreeMap::new();
    let mut measured_otherwise = false;
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        for work in entry.work.values() {
            measured_otherwise |= work.exclusive.count > 0;
            for (name, total) in work.activities.iter().filter(|(name, _)| name.is_some()) {
                let own = activities.entry(sub.names.text(*name)).or_default();
                own.0 += total.count;
                own.1.merge(&total.cpu);
            }
        }
    }
    text.push_str("\n# Processor time of activities, where it was not measured.\n");
    if measured_otherwise {
        text.push_str("# Without it, the time is taken in which a task waits for no other.\n");
    }
    text.push_str("[demand]\n# default = \"1 ms\"\n");
    if activities.is_empty() {
        return;
    }
    text.push_str("\n[demand.activity]\n");
    for (name, (count, cpu)) in &activities {
        let _ = match cpu.mean() {
            Some(mean) => writeln!(text, "# {} is measured: {} on average", toml_key(name), time(mean)),
            None => writeln!(text, "# {} = \"1 ms\"    # seen {}", toml_key(name), times(*count)),
        };
    }
}

/// Servers or threads as a value.
fn servers(multiplicity: Multiplicity) -> String {
    match multiplicity {
        Multiplicity::Infinite => "\"infinite\"".to_owned(),
        Multiplicity::Finite(count) => count.to_string(),
    }
}

/// A time as a value, in four digits.
fn duration(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 1.0 {
        format!("{} ms", short(seconds * 1e3))
    } else {
        format!("{} s", short(seconds))
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
