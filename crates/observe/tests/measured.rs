//! Demands of servers that were measured, whose truth is known: files of the SARDE study, which lie beside the project.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use dyelog_observe::change::changes;
use dyelog_observe::demand::{Method, estimate};
use dyelog_observe::observation::{Input, Observation, Operation, Process, Service};
use dyelog_observe::period::Period;
use dyelog_observe::{HostLoad, Resource, operations, samples};

/// An observer's interval, and a second, nanoseconds.
const INTERVAL: i64 = 10 * SECOND;
const SECOND: i64 = 1_000_000_000;

fn folder() -> PathBuf {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/demands");
    // A worktree lies one folder deeper.
    if near.is_dir() { near } else { Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces/demands") }
}

fn lines(name: &str) -> Vec<Vec<String>> {
    let file = std::fs::File::open(folder().join(name)).expect("the reference data lies beside the project");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is gzip");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

/// What an observer in the server would have reported every ten seconds.
fn observed(run: &str) -> Vec<Observation> {
    let process = Process { application: "a".into(), host: "h".into(), program: run.into(), id: 1, started: 0 };
    let cpu = lines(&format!("{run}.cpu.csv.gz"));
    let last = number(&cpu.last().expect("it was measured")[0]) as i64 * SECOND / INTERVAL;
    let empty = |place: i64| Observation::empty(process.clone(), place * INTERVAL, (place + 1) * INTERVAL);
    let mut intervals: Vec<Observation> = (0..=last).map(empty).collect();
    for row in cpu {
        let place = number(&row[0]) as i64 * SECOND / INTERVAL;
        intervals[place as usize].resources.cpu += (number(&row[1]) * 1e9) as u64;
    }
    for row in lines(&format!("{run}.requests.csv.gz")) {
        let place = (number(&row[0]) * 1e9) as i64 / INTERVAL;
        let Some(interval) = intervals.get_mut(place as usize) else { continue };
        let input = Input { operation: Operation::new("I", &row[1]), service: Service::Synchronous };
        interval.inputs.entry(input).or_default().add(number(&row[2]));
    }
    intervals
}

fn truth() -> BTreeMap<String, BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(folder().join("TRUTH.tsv")).expect("the reference data lies beside the project");
    let mut truth: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let row: Vec<&str> = line.split('\t').collect();
        truth.entry(row[0].to_owned()).or_default().insert(row[1].to_owned(), number(row[2]));
    }
    truth
}

#[test]
#[ignore = "needs the reference data beside the checkout"]
fn demands_of_measured_servers_are_found() {
    let mut by_method: BTreeMap<Method, (Vec<f64>, usize)> = BTreeMap::new();
    let mut drawn_alike = 0.0;
    for (run, truth) in truth() {
        let observations = observed(&run);
        let period = Period::of(&observations, 0, i64::MAX);
        let processes: Vec<_> = period.processes.iter().collect();
        let operations = operations(&processes);
        let load = HostLoad::of(&period, "h", 1.0);
        let samples = samples(&processes, &operations, &load, Resource::Processor);
        let estimates = estimate(operations.len(), &samples, Some(1));
        for candidate in &estimates.candidates {
            let (errors, covered) = by_method.entry(candidate.method).or_default();
            for (operation, demand) in operations.iter().zip(&candidate.demands) {
                let truth = truth[&*operation.name];
                errors.push((demand.mean / truth - 1.0).abs());
                let width = demand.half_width.expect("there are enough intervals");
                *covered += usize::from((demand.mean - truth).abs() <= width);
                if candidate.method == Method::Shrunk {
                    println!(
                        "{run} {} {:+.1}% ± {:.1}%",
                        operation.name,
                        100.0 * (demand.mean / truth - 1.0),
                        100.0 * width / truth
                    );
                    // What the mean of so many exponential demands is off by itself.
                    let count: u64 = samples.iter().map(|sample| sample.counts[0]).sum();
                    drawn_alike += (2.0 / std::f64::consts::PI / count as f64).sqrt();
                }
            }
        }
    }
    let figures = by_method.iter_mut().map(|(method, (errors, covered))| {
        errors.sort_by(f64::total_cmp);
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let p95 = errors[(0.95 * count) as usize];
        println!(
            "{}: mean {:.2}%, p95 {:.2}%, covered {:.1}%",
            method.label(),
            100.0 * mean,
            100.0 * p95,
            100.0 * *covered as f64 / count
        );
        (*method, (mean, p95, *covered as f64 / count))
    });
    let figures: BTreeMap<Method, (f64, f64, f64)> = figures.collect();
    println!("the demands that were drawn are off their mean by {:.2}%", 100.0 * drawn_alike / 39.0);
    let (mean, p95, covered) = figures[&Method::Shrunk];
    // Measured: 2.03 %, 5.25 %, and 38 of 39.
    assert!(mean <= 0.021 && p95 <= 0.054, "{mean} {p95}");
    assert!((0.95..=0.98).contains(&covered), "{covered}");
}

#[test]
#[ignore = "needs the reference data beside the checkout"]
fn servers_that_stay_the_same_show_no_change() {
    for run in truth().keys() {
        let observations = observed(run);
        let last = observations.last().expect("it was measured").to;
        let found = changes(&Period::of(&observations, 0, last), &|_| 1.0);
        assert!(found.is_empty(), "{run}: {found:?}");
    }
}
