//! SAME on traces of the LQN simulator, against the models that they come from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use dyelog::lqn::submodel::{Interaction, RequestKind, SubModel};
use dyelog::lqn::{self, Body, Model};
use dyelog::model::{self, Configuration};
use dyelog::same::{Options, Same};
use dyelog::solve;
use dyelog::trace::messages;
use dyelog::trace::{ReadOptions, TraceNames};

use crate::support;

fn recovered(folder: &Path) -> SubModel {
    let file = std::fs::File::open(folder.join("trace.txt.gz")).expect("a trace");
    let open = dyelog::trace::open("trace", file, &ReadOptions::default()).expect("its format is known");
    let mut names = TraceNames::new();
    let mut same = Same::new(Options::default(), vec!["trace".into()]);
    messages::read_all(vec![open.messages().expect("messages")], &mut names, &mut same).expect("it can be read");
    same.finish(&names).submodel
}

fn truth(folder: &Path) -> Model {
    let mut text = String::new();
    std::fs::File::open(folder.join("model.lqnx")).expect("a model").read_to_string(&mut text).expect("text");
    lqn::parse_any("model.lqnx", &text).expect("a sound model").0
}

/// Requests per invocation and forwarding probabilities of the true model, by names of entries.
fn true_requests(model: &Model) -> BTreeMap<(String, String, RequestKind), f64> {
    let mut requests = BTreeMap::new();
    let name = |entry: lqn::EntryId| model.entries[entry.index()].name.to_string();
    for (number, entry) in model.entries.iter().enumerate() {
        let works: Vec<&lqn::Work> = match &entry.body {
            Body::Phases(phases) => phases.iter().collect(),
            Body::Activities(_) => {
                let task = &model.tasks[entry.task.index()];
                task.activities.iter().map(|activity| &model.activities[activity.index()].work).collect()
            }
        };
        let _ = number;
        for work in works {
            for call in &work.calls {
                let kind = match call.kind {
                    lqn::CallKind::Synchronous => RequestKind::Synchronous,
                    lqn::CallKind::Asynchronous => RequestKind::Asynchronous,
                };
                *requests.entry((entry.name.to_string(), name(call.to), kind)).or_default() += call.mean;
            }
        }
        for forwarding in &entry.forwarding {
            requests
                .insert((entry.name.to_string(), name(forwarding.to), RequestKind::Forward), forwarding.probability);
        }
    }
    requests
}

/// What was recovered: mean, and its standard error.
fn seen_requests(sub: &SubModel, model: &Model) -> BTreeMap<(String, String, RequestKind), (f64, f64)> {
    let mut sums: BTreeMap<(String, String, RequestKind), (u64, u64, u64)> = BTreeMap::new();
    for entry in sub.entries() {
        // A customer's scenario is named after its task.
        let own = if entry.interaction == Interaction::Customer {
            let scenario = sub.names.text(entry.task);
            let task = scenario.split(' ').next().expect("a name");
            let task = model.tasks.iter().find(|known| *known.name == *task).expect("a task of the model");
            model.entries[task.entries[0].index()].name.to_string()
        } else {
            sub.names.text(entry.service).to_owned()
        };
        for work in entry.work.values() {
            for ((kind, to), total) in &work.requests {
                let to = sub.names.text(sub.entry(*to).service).to_owned();
                let sum = sums.entry((own.clone(), to, *kind)).or_default();
                *sum = (sum.0 + total.count, sum.1 + total.squares, entry.invocations);
            }
        }
    }
    sums.into_iter()
        .map(|(key, (count, squares, invocations))| {
            let all = invocations as f64;
            let mean = count as f64 / all;
            let variance = (squares as f64 / all - mean * mean).max(0.0);
            (key, (mean, (variance / all).sqrt()))
        })
        .collect()
}

fn each(folders: &[&str], check: impl Fn(&str, &Path)) {
    for name in folders {
        let folder = support::shared(&format!("traces/message-traces/lqsim/{name}"));
        check(name, &folder);
    }
}

const ALL: [&str; 8] = [
    "01-sanity",
    "02-sanity",
    "03-sanity",
    "04-sanity",
    "09-sanity",
    "20-multiserver",
    "31-overtaking",
    "40-activities",
];

#[test]
#[ignore = "needs the reference data, ../shared"]
fn requests_and_kinds_are_those_of_the_model() {
    each(&ALL, |name, folder| {
        let (model, sub) = (truth(folder), recovered(folder));
        let (expected, seen) = (true_requests(&model), seen_requests(&sub, &model));
        let keys = |keys: Vec<&(String, String, RequestKind)>| keys.into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(keys(expected.keys().collect()), keys(seen.keys().collect()), "{name}");
        for (key, mean) in &expected {
            let (seen, error) = seen[key];
            let z = if error > 0.0 { (seen - mean) / error } else { 0.0 };
            eprintln!("{name} {key:?}: true {mean}, seen {seen:.4} ± {error:.4}, off by {z:+.2} standard errors");
            assert!((seen - mean).abs() <= 3.0 * error, "{name} {key:?}: {seen} ± {error}, and not {mean}");
        }
        for task in &model.tasks {
            let count = match task.multiplicity {
                lqn::Multiplicity::Finite(count) => count,
                lqn::Multiplicity::Infinite => continue,
            };
            let known = sub.names.get(&task.name).and_then(|task| sub.instances.get(&task)).copied();
            assert_eq!(known, Some(count), "{name}: threads of {}", task.name);
        }
    });
}

/// Processors as the true model has them: traces do not tell.
fn configuration(model: &Model) -> Configuration {
    let mut text = String::new();
    for task in &model.tasks {
        let processor = &model.processors[task.processor.index()];
        let reference = task.scheduling == lqn::Scheduling::Reference;
        if reference {
            continue;
        }
        text += &format!("[task.\"{}\"]\nprocessor = \"{}\"\n", task.name, processor.name);
    }
    let mut written = std::collections::BTreeSet::new();
    for task in &model.tasks {
        let processor = &model.processors[task.processor.index()];
        if task.scheduling == lqn::Scheduling::Reference || !written.insert(processor.name.to_string()) {
            continue;
        }
        let multiplicity = match processor.multiplicity {
            lqn::Multiplicity::Finite(count) => count.to_string(),
            lqn::Multiplicity::Infinite => "\"infinite\"".to_owned(),
        };
        let scheduling = if processor.scheduling == lqn::Scheduling::Delay { "inf" } else { "fcfs" };
        text += &format!(
            "[processor.\"{}\"]\nmultiplicity = {multiplicity}\nscheduling = \"{scheduling}\"\n",
            processor.name
        );
    }
    Configuration::parse(&"test.toml".into(), &text).expect("a sound configuration").0
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn solved_throughputs_are_those_of_the_run() {
    // Synchronous calls and forwarding only. The run of 03-sanity is short for what happens in it: of a thousand runs of its model over
    // as long a time, solved exactly with what each of them showed, one in seven is off by more than 2 %, with a mean of +0.6 % (cycles that
    // the end cuts off are long ones) and a standard deviation of 1.3 %. This one is at +2.0 %. Ten times as long, the same deviate by 0.4 %.
    each(&["01-sanity", "02-sanity", "03-sanity", "20-multiserver", "31-overtaking"], |name, folder| {
        let (model, sub) = (truth(folder), recovered(folder));
        let (complete, _, _) = model::complete(&sub, &configuration(&model)).expect("a model");
        let total = sub.scenarios.values().next().expect("a scenario");
        let seconds = (total.last_end.expect("times") - total.first_start.expect("times")) as f64 * 1e-9;
        let run = total.operations as f64 / seconds;
        let customer = complete.tasks.iter().position(|task| task.name.starts_with("Cu_")).expect("a customer");
        let results = solve::layered(&complete, &solve::LayeredOptions::default()).expect("it can be solved");
        let solved = results.tasks[customer].throughput;
        let (off, method) = (solved / run - 1.0, &results.convergence.method);
        eprintln!("{name}: solved {solved:.5}/s, the run's own {run:.5}/s, {:+.2} %, {method}", off * 100.0);
        let allowed = if name == "03-sanity" { 0.03 } else { 0.02 };
        assert!(off.abs() < allowed, "{name}: solved {solved}, the run's own {run}, {method}");
    });
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn joins_are_stated_and_not_guessed() {
    each(&["40-activities"], |_, folder| {
        let file = std::fs::File::open(folder.join("trace.txt.gz")).expect("a trace");
        let open = dyelog::trace::open("trace", file, &ReadOptions::default()).expect("its format is known");
        let mut names = TraceNames::new();
        let mut same = Same::new(Options::default(), vec!["trace".into()]);
        let report = messages::read_all(vec![open.messages().expect("messages")], &mut names, &mut same)
            .expect("it can be read");
        assert!(report.findings.iter().any(|finding| finding.code.0 == "T138"), "{:?}", report.findings);
    });
}

/// How far SAME agrees with the templates on each trace of an application, by load: the share of requests, and that where services are
/// taken for sequential tasks.
fn agreement(application: &str) -> Vec<(u32, f64, f64)> {
    let rules = dyelog::tlc::Rules::shipped();
    let folder = support::shared("traces/jaeger/traceweaver");
    let prefix = format!("{application}-load");
    let mut files: Vec<(u32, std::path::PathBuf)> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let load: String = name.strip_prefix(&prefix)?.chars().take_while(char::is_ascii_digit).collect();
            Some((load.parse().ok()?, path))
        })
        .collect();
    files.sort();
    assert!(files.len() >= 2, "the ladder of loads is there: {files:?}");
    let of = |path: &Path| {
        let mut names = TraceNames::new();
        let mut comparison = dyelog::study::agreement::Comparison::new(&rules);
        let file = std::fs::File::open(path).expect("a trace");
        dyelog::trace::read(application, file, &ReadOptions::default(), &mut names, &mut comparison).expect("spans");
        let agreement = comparison.finish(&mut names).expect("it can be compared");
        (agreement.share(), agreement.sequential as f64 / agreement.requests as f64)
    };
    let shares = files.iter().map(|(load, path)| {
        let (share, sequential) = of(path);
        eprintln!("{application} at load {load}: {:.1} %, {:.1} % sequential", share * 100.0, sequential * 100.0);
        (*load, share, sequential)
    });
    shares.collect()
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn agreement_with_templates_is_measured_at_each_load() {
    for (load, share, sequential) in agreement("hotel") {
        assert!(share > 0.98, "hotel at {load}: {share}");
        // Services are no sequential tasks: what goes wrong once stays wrong.
        assert!((0.05..0.6).contains(&sequential), "hotel at {load}: {sequential}");
    }
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn a_guess_that_goes_wrong_does_not_lead_to_the_next() {
    // Calls in parallel, and a service that goes on for the last of five requests, whichever that is.
    for (load, share, _) in agreement("media") {
        let least = if load < 50 { 0.95 } else { 0.87 };
        assert!(share > least, "media at {load}: {share}");
    }
}

/// Two workers of a middle task share a processor, so that each receives the reply to its own call while the other one works: later than it was
/// sent, and not in the order of sending.
fn late_replies(cycles: u32) -> String {
    let mut lines: Vec<(f64, String)> = Vec::new();
    let mut line = |time: f64, (kind, task, number): (&str, &str, u32), text: &str| {
        lines.push((time, format!("{time:>8.6} {kind:>8} {task:>8}({number:>2}): {text}")));
    };
    for cycle in 0..cycles {
        for worker in 0..2_u32 {
            let client = ("client", "client", 2 + worker);
            let [middle, server] = [("worker", "middle", 6 + worker), ("worker", "server", 9 + worker)];
            let begin = f64::from(cycle) * 10.0 + f64::from(worker) * 0.5;
            line(begin, client, "Start activity Entry client - Ph 1.");
            line(begin, client, "Computing [1]");
            let mut asked = begin;
            for (caller, callee) in [(client, middle), (middle, server)] {
                let (from, by) = (caller.1, callee.1);
                asked += 1.0;
                line(asked, caller, &format!("Entry {from} -- Sending RNV to task {by}, entry {by}"));
                line(asked, callee, "Ready.");
                line(
                    asked,
                    callee,
                    &format!("Entry {by} -- Received msg from task {from}, entry {from} (t={asked:.6})"),
                );
                line(asked, callee, &format!("Start activity Entry {by} - Ph 1."));
                line(asked, callee, "Computing [1]");
            }
            let replied = asked + 1.0;
            line(replied, server, "Entry server -- Reply sent to task middle, entry middle");
            line(replied, server, "Waiting.");
            // The second worker goes on first.
            let goes_on = replied + 2.0 - f64::from(worker);
            line(goes_on, middle, "Entry middle -- Reply received from task server, entry server");
            line(goes_on, middle, "Computing [0.5]");
            let replied = goes_on + 0.5;
            line(replied, middle, "Entry middle -- Reply sent to task client, entry client");
            line(replied, middle, "Waiting.");
            line(replied, client, "Entry client -- Reply received from task middle, entry middle");
        }
    }
    lines.sort_by(|left, right| left.0.total_cmp(&right.0));
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

#[test]
fn a_reply_that_its_worker_receives_late_is_the_reply_to_its_call() {
    let text = late_replies(50);
    let open = dyelog::trace::open("trace", std::io::Cursor::new(text.into_bytes()), &ReadOptions::default());
    let mut names = TraceNames::new();
    let mut same = Same::new(Options::default(), vec!["trace".into()]);
    let open = open.expect("its format is known");
    messages::read_all(vec![open.messages().expect("messages")], &mut names, &mut same).expect("it can be read");
    let sub = same.finish(&names).submodel;
    let mut calls: BTreeMap<(String, RequestKind), u64> = BTreeMap::new();
    for work in sub.entries().iter().flat_map(|entry| entry.work.values()) {
        for ((kind, to), total) in &work.requests {
            *calls.entry((sub.names.text(sub.entry(*to).service).to_owned(), *kind)).or_default() += total.count;
        }
    }
    let synchronous = |entry: &str, calls| ((entry.to_owned(), RequestKind::Synchronous), calls);
    // The last cycles of the two customers have no end.
    assert_eq!(calls, BTreeMap::from([synchronous("middle", 98), synchronous("server", 100)]));
}
