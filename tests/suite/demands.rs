//! Demands that are found from the requests of a measured server, against the demands that are known.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use dyelog::lqn::{Body, Model, Multiplicity};
use dyelog::model::{Configuration, complete, utilisation};
use dyelog::pipeline::{Input, read_utilisation};
use dyelog::study::calibration::{CalibrationLoad, calibrate};

use crate::generator::Random;
use crate::law::reduced;
use crate::servers::{servers, span};
use crate::support::shared;

/// Seconds from the epoch of traces to the first second of a run.
const BEGIN: u64 = 1_700_000_000;

/// Demands by class, seconds, of each run.
type Truth = BTreeMap<String, BTreeMap<String, f64>>;

fn truth() -> Truth {
    let text = fs::read_to_string(shared("traces/demands/TRUTH.tsv")).expect("a file");
    let mut truth = Truth::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(cells[3], "1", "all runs had one core");
        truth.entry(cells[0].to_owned()).or_default().insert(cells[1].to_owned(), cells[2].parse().expect("seconds"));
    }
    truth
}

fn unzipped(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).expect("a file")).read_to_string(&mut text).expect("text");
    text
}

/// A run as spans, with its utilisation where it counts.
fn load(run: &str, is_measured: bool) -> CalibrationLoad {
    let requests = unzipped(&shared(&format!("traces/demands/{run}.requests.csv.gz")));
    let mut random = Random::new(7);
    let mut text = String::new();
    for line in requests.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let nanoseconds = |cell: &str| (cell.parse::<f64>().expect("seconds") * 1e9).round() as u64;
        let end = BEGIN * 1_000_000_000 + nanoseconds(cells[0]);
        let id = (u128::from(random.next()) << 64) | u128::from(random.next());
        span(&mut text, id, cells[1], end - nanoseconds(cells[2]), end);
    }
    let submodel = reduced("t.jsonl", text.as_bytes());
    let mut busy = BTreeMap::new();
    if is_measured {
        let file = Input::new("cpu.csv", unzipped(&shared(&format!("traces/demands/{run}.cpu.csv.gz"))));
        let metrics = read_utilisation(&[file], None).expect("utilisation");
        busy = utilisation::measured(&metrics.series, &submodel, &Configuration::default())
            .expect("of the same time")
            .0
            .processors;
    }
    CalibrationLoad { name: run.to_owned(), submodel, busy }
}

/// The demand of a class in a model, seconds.
fn demand_of(model: &Model, class: &str) -> f64 {
    let entry = model.entry_named(class).expect("each class is an entry");
    match &model.entries[entry.index()].body {
        Body::Phases(phases) => phases.iter().map(|work| work.demand).sum(),
        Body::Activities(_) => panic!("a request is no graph"),
    }
}

/// With a run's own utilisation and without: mean error by load, and whether the server has one core.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn demands_of_a_measured_server_are_found_again() {
    for (is_measured, bar) in [(false, 0.05), (true, 0.03)] {
        let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let (mut runs, mut right) = (0, 0);
        for (run, demands) in truth() {
            let load = load(&run, is_measured);
            let configuration = Configuration {
                measured: utilisation::Measured { processors: load.busy, ..utilisation::Measured::default() },
                ..Configuration::default()
            };
            let (model, _, _) = complete(&load.submodel, &configuration).expect("there are requests");
            runs += 1;
            right += u32::from(servers(&model) == Multiplicity::Finite(1));
            for (class, demand) in &demands {
                let error = demand_of(&model, class) / demand - 1.0;
                println!("{run} {class}, measured: {is_measured}: {:+.1} %", 100.0 * error);
                errors.entry(run[run.len() - 3..].to_owned()).or_default().push(error.abs());
            }
        }
        for (load, errors) in &errors {
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            println!("{load}, measured: {is_measured}: {:.1} % on the mean", 100.0 * mean);
            assert!(mean < bar, "{load}, measured: {is_measured}: {mean}");
        }
        assert!(right * 10 >= runs * 9, "cores of {right} of {runs}");
    }
}

/// Each two loads of a server, together: 95 % intervals hold the known demands. Short requests beside long ones need what traces of single operations tell: the server
/// serves them sooner than a model can say.
#[test]
#[ignore = "needs the reference data, ../shared"]
fn intervals_of_calibrated_demands_hold_the_known_ones() {
    let (mut all, mut held) = (0, 0);
    let truth = truth();
    for experiment in ["exp1", "exp2", "exp4", "exp6", "exp7", "exp9"] {
        for (low, high) in [("u20", "u50"), ("u20", "u80"), ("u50", "u80")] {
            let runs = [low, high].map(|load| format!("{experiment}-{load}"));
            let loads: Vec<CalibrationLoad> = runs.iter().map(|run| load(run, false)).collect();
            let found = calibrate(&loads, &Configuration::default(), 2).expect("there are requests");
            for (class, demand) in &truth[&runs[0]] {
                let entry = found.entries.iter().find(|entry| *entry.name == **class).expect("each class is an entry");
                let (from, to) = (entry.interval.low / demand - 1.0, entry.interval.high / demand - 1.0);
                let is_held = from <= 0.0 && 0.0 <= to;
                let off = entry.demand / demand - 1.0;
                println!(
                    "{experiment} {low} {high} {class}: {:+.1} %, {:+.1} to {:+.1}",
                    100.0 * off,
                    100.0 * from,
                    100.0 * to
                );
                (all, held) = (all + 1, held + u32::from(is_held));
            }
        }
    }
    println!("{held} of {all}");
    assert!(held * 10 >= all * 9, "{held} of {all}");
}
