//! The tests of the papers, on the shop: how far what its records say agrees with what is measured otherwise. Runs that are compared take turns, so that
//! what disturbs the machine disturbs all; figures are medians of runs, with the least and the largest. Before each run that counts, requests are made that do
//! not: the first ones open connections and load code, which each process does for itself.
//!
//! 1. Processor time of each function, with all services in one process and in four (2003 §4: up to 43.8% apart).
//! 2. Latency of each call, from records and by hand, in the same runs and in runs without probes (2003 §4: within 60%).
//! 3. Throughput with probes and without.
//! 4. The impact of a change: a handler's work is halved, predicted from records before, measured after (2002 §4).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use dyelog::callgraph::change::Change;
use dyelog::callgraph::{Granularity, Graph, Input, Moments, Options, analyse};
use dyelog::model::Configuration;
use dyelog::pipeline::{self, Profiled};
use dyelog::solve::{LayeredOptions, layered};

/// How the shop's host and its services are, for the model; who uses it comes behind. First come, first served: no piece of work takes as long as a time slice of the
/// system, and the records show none that was interrupted (its time on the wall is its processor time).
const CONFIGURATION: &str = "
[processor.shop-host-1]
multiplicity = 2
scheduling = \"fcfs\"
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
[task.users]
processor = \"shop-host-1\"
threads = 24
";

/// What is less than this, in milliseconds, is glue around the work of the shop.
const LARGE: f64 = 0.1;

/// Percent by which functions may be apart.
const NEAR: f64 = 5.0;

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
fn run_shop(arguments: &str, probes: bool, halve: bool) -> anyhow::Result<Run> {
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

/// By name, what each run says; names that some run does not know are left out.
type Columns = BTreeMap<String, Vec<f64>>;

fn columns(runs: Vec<BTreeMap<String, f64>>) -> Columns {
    let count = runs.len();
    let mut all = Columns::new();
    for (name, value) in runs.into_iter().flatten() {
        all.entry(name).or_default().push(value);
    }
    all.retain(|_, values| values.len() == count);
    all
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// The median, and in brackets the least and the largest.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.4} ({least:.4} to {largest:.4})", median(values))
}

/// Prints two columns, how far the second is from the first, and its interval of 95% over the pairs of runs.
fn compare(title: &str, heads: [&str; 2], left: &Columns, right: &Columns) {
    println!("\n{title}\n{:<48}{:>34}{:>34}{:>10}{:>20}", "", heads[0], heads[1], "apart", "95% of the mean");
    let (mut most, mut most_of_large): (f64, f64) = (0.0, 0.0);
    let (mut near, mut all) = (0, 0);
    for (name, one) in left {
        let Some(other) = right.get(name) else { continue };
        let apart = 100.0 * (median(other) / median(one) - 1.0);
        let pairs: Vec<f64> = one.iter().zip(other).map(|(one, other)| 100.0 * (other / one - 1.0)).collect();
        let (mean, half) = interval(&pairs);
        let chance = format!("{mean:+.1}% ± {half:.1}%");
        println!("{name:<48}{:>34}{:>34}{apart:>+9.1}%{chance:>20}", spread(one), spread(other));
        (near, all) = (near + u32::from(apart.abs() <= NEAR || mean.abs() <= half), all + 1);
        most = most.max(apart.abs());
        if median(one) >= LARGE {
            most_of_large = most_of_large.max(apart.abs());
        }
    }
    println!("at most {most:.1}% apart; {most_of_large:.1}% where it is {LARGE} or more");
    println!("within {NEAR}%, or within chance: {near} of {all}");
}

/// The mean of these and the half width of its interval of 95%.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut moments = Moments::default();
    for value in values {
        // Whole millionths.
        moments.add((value * 1e6) as i64);
    }
    (moments.mean() / 1e6, moments.half_width().map_or(f64::INFINITY, |half| half / 1e6))
}

/// One of the comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    Processes,
    Throughput,
    HalfLoad,
    HighLoad,
}

/// Makes all of the comparisons, or one of them, with so many runs of each kind.
pub fn run(rounds: usize, part: Option<Part>) -> anyhow::Result<()> {
    for one in [Part::Processes, Part::Throughput, Part::HalfLoad, Part::HighLoad] {
        if part.is_some_and(|part| part != one) {
            continue;
        }
        match one {
            Part::Processes => processes_and_latencies(rounds)?,
            Part::Throughput => throughput(rounds)?,
            Part::HalfLoad => impact(rounds, 70.0)?,
            Part::HighLoad => impact(rounds, 37.0)?,
        }
    }
    Ok(())
}

fn processes_and_latencies(rounds: usize) -> anyhow::Result<()> {
    const LOAD: &str = "--warm-up 200 --requests 800 --users 6 --think 30";
    let [mut one, mut again, mut four, mut latency, mut by_hand, mut in_bare] = [const { Vec::new() }; 6];
    for _ in 0..rounds {
        let (in_one, in_four) =
            (run_shop(LOAD, true, false)?, run_shop(&format!("{LOAD} --processes 4"), true, false)?);
        let bare = run_shop(&format!("{LOAD} --processes 4"), false, false)?;
        let in_one_again = run_shop(LOAD, true, false)?;
        let part = |run: &Run, latency: bool| -> BTreeMap<String, f64> {
            let functions = run.functions().into_iter();
            functions.map(|(name, (own, response))| (name, if latency { response } else { own })).collect()
        };
        one.push(part(&in_one, false));
        again.push(part(&in_one_again, false));
        four.push(part(&in_four, false));
        latency.push(part(&in_four, true));
        by_hand.push(in_four.by_hand);
        in_bare.push(bare.by_hand);
    }
    let one = columns(one);
    // How far two runs of one kind are apart is what no comparison can tell.
    compare("processor time of an invocation itself, ms", ["one process", "again"], &one, &columns(again));
    compare("processor time of an invocation itself, ms", ["one process", "four"], &one, &columns(four));
    let (by_hand, in_bare, latency) = (columns(by_hand), columns(in_bare), columns(latency));
    compare("latency of a call in the same runs, ms", ["by hand", "records"], &by_hand, &latency);
    compare("latency of a call, by hand in runs without probes, ms", ["by hand", "records"], &in_bare, &latency);
    Ok(())
}

fn throughput(rounds: usize) -> anyhow::Result<()> {
    // Users who hardly think: as much as the machine takes.
    const LOAD: &str = "--warm-up 300 --requests 3000 --users 12 --think 1";
    let (mut bare, mut probed) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 2 {
        bare.push(run_shop(LOAD, false, false)?.throughput());
        probed.push(run_shop(LOAD, true, false)?.throughput());
    }
    let name = |values: Vec<f64>| BTreeMap::from([("requests per second".to_owned(), values)]);
    compare("throughput", ["without probes", "with"], &name(bare), &name(probed));
    Ok(())
}

/// One handler's work halved, at the load that users make who think so many milliseconds. Each round has users of its own, the same before and after the change.
fn impact(rounds: usize, think: f64) -> anyhow::Result<()> {
    let function = format!("catalog::{HALVED}");
    let change = Change::parse("change", &format!("reduction by 50% to function {{ \"{function}\" }};"))
        .map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let users = [("GET /product/{id}", 16), ("POST /checkout/{id}", 8)].map(|(name, population)| {
        format!("[scenario.\"gateway::{name}\"]\npopulation = {population}\nthink_time = \"{think} ms\"\n")
    });
    let text = format!("{CONFIGURATION}{}", users.concat());
    let (configuration, _) =
        Configuration::parse(&"configuration".into(), &text).map_err(|found| anyhow::anyhow!("{found:?}"))?;
    let (mut all, mut shares): ([Vec<BTreeMap<String, f64>>; 6], _) = (Default::default(), Vec::new());
    for round in 0..rounds {
        let load = format!(
            "--seed {} --warm-up 200 --requests 3000 --users 24 --think {think} --processes 4 --record-users",
            round + 1
        );
        let (before, after) = (run_shop(&load, true, false)?, run_shop(&load, true, true)?);
        let profile = before.profile.as_ref().context("probes were on")?;
        let solver = |model: &dyelog::lqn::Model| layered(model, &LayeredOptions::default());
        let found = pipeline::impact(profile, &change, &Granularity::default(), &configuration, solver, &mut ());
        let found = found.map_err(|found| anyhow::anyhow!("{found:?}"))?;
        let own = |run: &Run| -> anyhow::Result<f64> {
            Ok(run.functions().get(&function).with_context(|| format!("records of {function}"))?.0)
        };
        let [mut seen, mut modelled, mut measured, mut expected, mut seen_change, mut model_change] =
            [const { BTreeMap::new() }; 6];
        measured.insert(function.clone(), own(&after)?);
        expected.insert(function.clone(), own(&before)? / 2.0);
        let (old, new) = (before.functions(), after.functions());
        for scenario in &found.scenarios {
            let name = &scenario.name;
            let figures = (scenario.before.response, scenario.after.response, scenario.expected());
            let (Some(model_before), Some(model_after), Some(response)) = figures else {
                let (model, records) = (scenario.before.throughput, scenario.measured.throughput.unwrap_or(0.0));
                bail!("{name}: {model:.0} operations a second in the model, {records:.0} in the records");
            };
            let latency = |run: &BTreeMap<String, (f64, f64)>| Some(run.get(name)?.1);
            let (earlier, later) = latency(&old).zip(latency(&new)).context("both runs have it")?;
            seen.insert(name.clone(), earlier);
            modelled.insert(name.clone(), model_before * 1000.0);
            measured.insert(name.clone(), later);
            expected.insert(name.clone(), response * 1000.0);
            seen_change.insert(name.clone(), later / earlier);
            model_change.insert(name.clone(), model_after / model_before);
            shares.extend(scenario.before.saturation.map(|saturation| 100.0 * scenario.before.throughput / saturation));
        }
        for (runs, of) in all.iter_mut().zip([seen, modelled, measured, expected, seen_change, model_change]) {
            runs.push(of);
        }
    }
    let [seen, modelled, measured, expected, seen_change, model_change] = all.map(columns);
    let load = format!("at {:.0}% of the load that the host takes", median(&shares));
    compare(&format!("before the change, {load}: responses, ms"), ["measured", "model"], &seen, &modelled);
    let title = format!("`{HALVED}` halved {load}: processor time and responses after it, ms");
    compare(&title, ["measured", "expected"], &measured, &expected);
    compare("the same responses, as a share of before", ["measured", "model"], &seen_change, &model_change);
    Ok(())
}
