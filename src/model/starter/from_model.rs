//! What a complete model says of load, tasks and processors, as a configuration for traces of the same system.

use std::fmt::Write as _;

use crate::lqn::{Body, Dispatching, Entry, Model, Multiplicity, Processor, Scheduling, Task};
use crate::model::config::scheduling_name;
use crate::model::load::{quoted, toml_key};

/// Writes a commented configuration with the settings of a model. Read back, it gives no warning.
pub fn starter_from_model(model: &Model) -> String {
    let mut text = String::from(
        "# The settings of a model, for traces of the same system. Names should be those that the traces give:\n\
         # `dyelog config check` with this file and the traces tells of those that they do not show.\n",
    );
    text.push_str("\n# The load of each scenario: customers with a think time, or arrivals at a rate.\n");
    for task in model.tasks.iter().filter(|task| task.scheduling.is_source()) {
        scenario(&mut text, task);
    }
    for (entry, rate) in model.entries.iter().filter_map(|entry| Some((entry, entry.open_arrival_rate?))) {
        let name = &entry.name;
        let _ = write!(
            text,
            "\n[scenario.{}]\n# open arrivals at entry {}\nrate = {rate:?}\n",
            toml_key(name),
            quoted(name)
        );
    }
    text.push_str("\n# Tasks: where they run, and how many requests they serve at once.\n");
    for task in model.tasks.iter().filter(|task| !task.scheduling.is_source()) {
        service(&mut text, task, &model.processors[task.processor.index()]);
    }
    text.push_str("\n# Processors.\n");
    let mut used = vec![false; model.processors.len()];
    for task in model.tasks.iter().filter(|task| !task.scheduling.is_source()) {
        used[task.processor.index()] = true;
    }
    for (processor, _) in model.processors.iter().zip(used).filter(|(_, used)| *used) {
        host(&mut text, processor);
    }
    text.push_str(
        "\n# Processor time of an invocation. What stands here goes before what was measured, so all of it stands in comments.\n\
         [demand.entry]\n",
    );
    for entry in &model.entries {
        if !model.tasks[entry.task.index()].scheduling.is_source() {
            demand(&mut text, entry);
        }
    }
    text
}

fn scenario(text: &mut String, task: &Task) {
    let name = task.name.strip_prefix("Cu_").unwrap_or(&task.name);
    let _ = writeln!(text, "\n[scenario.{}]", toml_key(name));
    match task.multiplicity {
        Multiplicity::Finite(customers) => {
            let _ = writeln!(text, "population = {}", u64::from(customers) * u64::from(task.replicas));
        }
        Multiplicity::Infinite => text.push_str("# customers without limit\n"),
    }
    let _ = writeln!(text, "think_time = {}", seconds(task.think_time));
}

fn service(text: &mut String, task: &Task, processor: &Processor) {
    let _ = write!(text, "\n[task.{}]\nprocessor = {}\n", toml_key(&task.name), quoted(&processor.name));
    match task.multiplicity {
        _ if task.scheduling == Scheduling::Delay => text.push_str("threads = \"infinite\"\n"),
        Multiplicity::Infinite => text.push_str("threads = \"infinite\"\n"),
        Multiplicity::Finite(threads) => {
            let _ = writeln!(text, "threads = {threads}");
        }
    }
    match task.scheduling {
        Scheduling::Fcfs | Scheduling::Delay => {}
        Scheduling::HeadOfLine => text.push_str("scheduling = \"hol\"\n"),
        _ => text.push_str("# the model has a scheduling that a configuration does not\n"),
    }
    if task.priority != 0 {
        let _ = writeln!(text, "priority = {}", task.priority);
    }
    replicas(text, task.replicas);
    if task.dispatching != Dispatching::FanOut {
        let _ = writeln!(text, "dispatching = \"{}\"", task.dispatching.word());
    }
}

fn host(text: &mut String, processor: &Processor) {
    let _ = writeln!(text, "\n[processor.{}]", toml_key(&processor.name));
    match processor.multiplicity {
        Multiplicity::Infinite => text.push_str("multiplicity = \"infinite\"\n"),
        Multiplicity::Finite(servers) => {
            let _ = writeln!(text, "multiplicity = {servers}");
        }
    }
    match scheduling_name(processor.scheduling) {
        Some(name) => {
            let _ = writeln!(text, "scheduling = \"{name}\"");
        }
        None => text.push_str("# the model has a scheduling that a configuration does not\n"),
    }
    if let Some(quantum) = processor.quantum {
        let _ = writeln!(text, "quantum = {}", seconds(quantum));
    }
    if processor.speed != 1.0 {
        let _ = writeln!(text, "speed = {:?}", processor.speed);
    }
    replicas(text, processor.replicas);
}

fn replicas(text: &mut String, replicas: u32) {
    if replicas != 1 {
        let _ = writeln!(text, "replicas = {replicas}");
    }
}

fn demand(text: &mut String, entry: &Entry) {
    let name = toml_key(&entry.name);
    let Body::Phases(phases) = &entry.body else {
        let _ = writeln!(text, "# {name} has activities");
        return;
    };
    let of = |phase: usize| phases.get(phase).map_or(0.0, |work| work.demand);
    let _ = write!(text, "# {name} = {}", seconds(of(0)));
    let later = of(1) + of(2);
    let _ = if later > 0.0 { writeln!(text, "    # and {} after the reply", seconds(later)) } else { writeln!(text) };
}

fn seconds(value: f64) -> String {
    format!("\"{value} s\"")
}
