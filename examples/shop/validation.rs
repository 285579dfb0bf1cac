//! The tests of the papers, on the shop: how far what its records say agrees with what is measured otherwise. Runs that are compared take turns, so that
//! what disturbs the machine disturbs all; figures are medians of runs.
//!
//! 1. Processor time of each function, with all services in one process and in four (2003 §4: up to 43.8% apart).
//! 2. Latency of each call, from records and by hand, in the same runs and in runs without probes (2003 §4: within 60%).
//! 3. Throughput with probes and without.
//! 4. The impact of a change: a handler's work is halved, predicted from records before, measured after (2002 §4).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use dyelog::callgraph::change::Change;
use dyelog::callgraph::{Granularity, Graph, Input, Options, analyse};
use dyelog::model::Configuration;
use dyelog::pipeline::{self, Profiled};
use dyelog::solve::{LayeredOptions, layered};

/// How the shop's host and its services are, for the model; who uses it comes behind.
const CONFIGURATION: &str = "
[processor.shop-host-1]
multiplicity = 2
scheduling = \"ps\"
[task.gateway]
processor = \"shop-host-1\"
threads = 16
[task.catalog]
processor = \"shop-host-1\"
threads = 4
[task.inventory]
processor = \"shop-host-1\"
threads = 2
[task.payment]
processor = \"shop-host-1\"
threads = 1
";

/// What is less than this, in milliseconds, is glue around the work of the shop.
const LARGE: f64 = 0.1;

/// The activity whose work is halved.
const HALVED: &str = "look up product";

/// A run of the shop.
struct Run {
    /// What its records say, where probes were on.
    profile: Option<Profiled>,
    /// Mean time of calls by hand, milliseconds.
    by_hand: BTreeMap<String, f64>,
    /// Of each scenario: mean response in milliseconds, and requests per second.
    seen: BTreeMap<String, (f64, f64)>,
}

impl Run {
    fn throughput(&self) -> f64 {
        self.seen.values().map(|(_, rate)| rate).sum()
    }

    /// By function, the mean processor time of an invocation itself, and its mean latency; milliseconds.
    fn functions(&self) -> BTreeMap<String, (f64, f64)> {
        let Some(profiled) = &self.profile else { return BTreeMap::new() };
        let graph = Graph::of(&profiled.profile, &Granularity::default());
        let of = |nanoseconds: f64| nanoseconds / 1e6;
        let figures = |node: &dyelog::callgraph::Node| {
            (node.label(), (of(node.statistics.time.mean()), of(node.statistics.latency.mean())))
        };
        graph.nodes.iter().filter(|node| !node.function.is_empty()).map(figures).collect()
    }
}

/// Runs the shop with these arguments; with `probes`, records go to a folder of the run.
fn run(arguments: &str, probes: bool, halve: bool) -> anyhow::Result<Run> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments.split_whitespace());
    if probes {
        command.arg("--calls").arg(folder.path());
    }
    if halve {
        command.args(["--halve", HALVED]);
    }
    let output = command.output()?;
    let text = String::from_utf8(output.stderr)?;
    ensure!(output.status.success(), "the shop failed:\n{text}");
    let mut run = Run { profile: None, by_hand: BTreeMap::new(), seen: BTreeMap::new() };
    for line in text.lines() {
        if let Some((name, rest)) = line.strip_prefix("by hand ").and_then(|line| line.split_once(" | ")) {
            let mean = rest.rsplit("| ").next().and_then(|mean| mean.trim_end_matches(" ms").parse().ok());
            run.by_hand.insert(name.to_owned(), mean.context("a time by hand")?);
        } else if line.starts_with("GET ") || line.starts_with("POST ") {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [method, route, _, _, _, response, rate] = words[..] {
                run.seen.insert(format!("gateway::{method} {route}"), (response.parse()?, rate.parse()?));
            }
        }
    }
    if probes {
        run.profile = Some(read(folder.path())?);
    }
    Ok(run)
}

fn read(folder: &Path) -> anyhow::Result<Profiled> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        inputs.push(Input::new(path.display().to_string(), File::open(&path)?));
    }
    let options = Options { keep_calls: usize::MAX, ..Options::default() };
    let profile = analyse(inputs, &options).map_err(|found| anyhow::anyhow!("{found:?}"))?;
    ensure!(profile.abnormal.is_empty(), "the records are damaged: {:?}", profile.abnormal);
    Ok(profile.into())
}

/// The median of what each run says of each name that all of them know.
fn medians(runs: &[BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flatten() {
        all.entry(name.clone()).or_default().push(*value);
    }
    all.retain(|_, values| values.len() == runs.len());
    all.into_iter().map(|(name, values)| (name, median(values))).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// Prints two columns and how far the second is from the first.
fn compare(title: &str, columns: [&str; 2], left: &BTreeMap<String, f64>, right: &BTreeMap<String, f64>) {
    println!("\n{title}\n{:<44}{:>14}{:>14}{:>10}", "", columns[0], columns[1], "apart");
    let (mut most, mut most_of_large): (f64, f64) = (0.0, 0.0);
    for (name, one) in left {
        let Some(other) = right.get(name) else { continue };
        let apart = 100.0 * (other / one - 1.0);
        println!("{name:<44}{one:>14.4}{other:>14.4}{apart:>+9.1}%");
        most = most.max(apart.abs());
        if *one >= LARGE {
            most_of_large = most_of_large.max(apart.abs());
        }
    }
    println!("at most {most:.1}% apart; {most_of_large:.1}% where it is {LARGE} or more");
}

/// All of the tests, with so many runs of each kind.
pub fn run_all(rounds: usize) -> anyhow::Result<()> {
    processes_and_latencies(rounds)?;
    throughput(rounds)?;
    for (share, think) in [("about half", 110.0), ("about 80%", 60.0)] {
        impact(rounds, share, think)?;
    }
    Ok(())
}

fn processes_and_latencies(rounds: usize) -> anyhow::Result<()> {
    const LOAD: &str = "--requests 400 --users 6 --think 60";
    let [mut one, mut four, mut latency, mut by_hand, mut in_bare] = [const { Vec::new() }; 5];
    for _ in 0..rounds {
        let (in_one, in_four) = (run(LOAD, true, false)?, run(&format!("{LOAD} --processes 4"), true, false)?);
        let bare = run(&format!("{LOAD} --processes 4"), false, false)?;
        let part = |run: &Run, latency: bool| -> BTreeMap<String, f64> {
            let functions = run.functions().into_iter();
            functions.map(|(name, (own, response))| (name, if latency { response } else { own })).collect()
        };
        one.push(part(&in_one, false));
        four.push(part(&in_four, false));
        latency.push(part(&in_four, true));
        by_hand.push(in_four.by_hand);
        in_bare.push(bare.by_hand);
    }
    compare("processor time of an invocation itself, ms", ["one process", "four"], &medians(&one), &medians(&four));
    let (by_hand, in_bare, latency) = (medians(&by_hand), medians(&in_bare), medians(&latency));
    compare("latency of a call in the same runs, ms", ["by hand", "records"], &by_hand, &latency);
    compare("latency of a call, by hand in runs without probes, ms", ["by hand", "records"], &in_bare, &latency);
    Ok(())
}

fn throughput(rounds: usize) -> anyhow::Result<()> {
    // Users who hardly think: as much as the machine takes.
    const LOAD: &str = "--requests 2000 --users 12 --think 1";
    let (mut bare, mut probed) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 2 {
        bare.push(run(LOAD, false, false)?.throughput());
        probed.push(run(LOAD, true, false)?.throughput());
    }
    let name = |value: f64| BTreeMap::from([("requests per second".to_owned(), value)]);
    compare("throughput", ["without probes", "with"], &name(median(bare)), &name(median(probed)));
    Ok(())
}

/// One handler's work halved, at the load that users make who think so many milliseconds.
fn impact(rounds: usize, share: &str, think: f64) -> anyhow::Result<()> {
    let load = format!("--requests 600 --users 24 --think {think} --processes 4");
    let function = format!("catalog::{HALVED}");
    let change = Change::parse("change", &format!("reduction by 50% to function {{ \"{function}\" }};"))
        .map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let users = [("GET /product/{id}", 16), ("POST /checkout/{id}", 8)].map(|(name, population)| {
        format!("[scenario.\"gateway::{name}\"]\npopulation = {population}\nthink_time = \"{think} ms\"\n")
    });
    let text = format!("{CONFIGURATION}{}", users.concat());
    let (configuration, _) =
        Configuration::parse(&"configuration".into(), &text).map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let mut columns: [Vec<BTreeMap<String, f64>>; 4] = Default::default();
    for _ in 0..rounds {
        let (before, after) = (run(&load, true, false)?, run(&load, true, true)?);
        let profile = before.profile.as_ref().context("probes were on")?;
        let solver = |model: &dyelog::lqn::Model| layered(model, &LayeredOptions::default());
        let found = pipeline::impact(profile, &change, &Granularity::default(), &configuration, solver, &mut ());
        let found = found.map_err(|found| anyhow::anyhow!("{found:?}"))?;
        let own = |run: &Run| -> anyhow::Result<f64> {
            Ok(run.functions().get(&function).with_context(|| format!("records of {function}"))?.0)
        };
        let mut predicted = BTreeMap::from([(function.clone(), own(&before)? / 2.0)]);
        let mut change_predicted = BTreeMap::new();
        for scenario in &found.scenarios {
            let (Some(old), Some(new)) = (scenario.before.response, scenario.after.response) else { continue };
            predicted.insert(scenario.name.clone(), new * 1000.0);
            change_predicted.insert(scenario.name.clone(), new / old);
        }
        let functions = after.functions();
        let mut measured = BTreeMap::from([(function.clone(), own(&after)?)]);
        let mut change_measured = BTreeMap::new();
        for (name, (_, latency)) in functions.into_iter().filter(|(name, _)| change_predicted.contains_key(name)) {
            change_measured.insert(name.clone(), latency / before.functions().get(&name).context("it was there")?.1);
            measured.insert(name, latency);
        }
        for (column, of) in columns.iter_mut().zip([predicted, measured, change_predicted, change_measured]) {
            column.push(of);
        }
    }
    let [predicted, measured, change_predicted, change_measured] = columns.map(|column| medians(&column));
    let title = format!("`{HALVED}` halved at {share} of the load: processor time and responses after it, ms");
    compare(&title, ["measured", "predicted"], &measured, &predicted);
    compare("the same responses, as a share of before", ["measured", "predicted"], &change_measured, &change_predicted);
    Ok(())
}
