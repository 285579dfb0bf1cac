//! Periods in which something changes are split there.

use std::process::Command;

use dyelog::lqn::saved;
use dyelog_observe::observation::{Input, Observation, Operation, Process, Service as Served};
use dyelog_observe::system::System;
use dyelog_server::answer::Answer;
use dyelog_server::parts::{History, Parts};
use dyelog_server::period::Period;
use dyelog_server::split::Split;
use dyelog_server::store::{LEVELS, Store};

use crate::program::Program;
use crate::support::{BEGIN, Recorded, SECOND, of_file, trace};

const LENGTH: u64 = LEVELS[0].length;
const ALL: Period = Period { from: 0, to: u64::MAX };

/// Numbers that look random, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn word(&mut self) -> u64 {
        (self.below(1 << 31) << 33) | (self.below(1 << 31) << 2)
    }
}

/// What an operation does in an interval: how many there are, the time of each call, and the instance of `stock` that is asked.
struct Load {
    count: u64,
    call: u64,
    calls: u64,
    instances: u64,
}

const USUAL: Load = Load { count: 24, call: 6, calls: 1, instances: 1 };

/// The parts of so many intervals.
fn parts(intervals: u64, of: impl Fn(u64) -> Load) -> Parts {
    let (_folder, store) = recorded(intervals, of);
    Parts::of(&store, ALL).expect("it is read").expect("it has intervals")
}

/// A store of so many intervals, and its folder.
fn recorded(intervals: u64, of: impl Fn(u64) -> Load) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(&folder.path().join("store.db")).expect("a store");
    let (mut chance, mut identifiers) = (Chance(7), Chance(3));
    for number in 0..intervals {
        let begin = BEGIN + number * LENGTH;
        let load = of(number);
        let count = load.count + chance.below(load.count / 3 + 1);
        let mut spans: Vec<Recorded> = Vec::new();
        for own in 0..count {
            let start = begin + chance.below(9 * SECOND);
            // Around the time of the call, by as much as itself.
            let calls: Vec<u64> = (0..load.calls).map(|_| load.call / 2 + chance.below(load.call + 1)).collect();
            let instance = ["stock#1", "stock#2", "stock#3"][chance.below(load.instances) as usize];
            let more = trace(number * 1000 + own, start, &calls).into_iter();
            // As SDKs draw them: identifiers of a part of a range tell of a sampler.
            let identifier = [identifiers.word(), identifiers.word()].map(u64::to_be_bytes).concat();
            spans.extend(more.map(|(service, mut span)| {
                span.trace_id.clone_from(&identifier);
                (if service == "shop" { "shop" } else { instance }, span)
            }));
        }
        if spans.is_empty() {
            continue;
        }
        let (submodel, merge) = saved::parse(&"test".into(), &of_file(&spans)).expect("it was just made");
        store.add(begin, begin, &submodel, &merge).expect("it is written");
    }
    (folder, store)
}

/// That there are two parts, and the second begins with such an interval; what changes there.
fn split_at(parts: &Parts, interval: u64) -> String {
    assert_eq!(parts.borders.len(), 1, "{parts:?}");
    let border = &parts.borders[0];
    assert!(border.at.abs_diff(BEGIN + interval * LENGTH) <= LENGTH, "{parts:?}");
    assert_eq!(parts.parts.len(), 2);
    // Intervals in which the change may be are in neither.
    assert!(parts.parts[0].to < border.at + LENGTH && parts.parts[1].from > border.at - LENGTH, "{parts:?}");
    border.what.join("\n")
}

#[test]
fn what_stays_the_same_is_one_part() {
    let parts = parts(60, |_| USUAL);
    assert_eq!((parts.parts.len(), parts.borders.len()), (1, 0), "{parts:?}");
    assert_eq!((parts.parts[0].from, parts.parts[0].to), (BEGIN, BEGIN + 60 * LENGTH));
}

#[test]
fn work_that_changes_splits_a_period_though_rates_stay() {
    let parts = parts(60, |number| Load { call: if number < 36 { 6 } else { 12 }, ..USUAL });
    let what = split_at(&parts, 36);
    assert!(
        what.contains("the own time of `find` at `stock` with waits for its processor goes from 5.98 ms to 12.2 ms"),
        "{what}"
    );
    assert!(!what.contains("the rate of"), "{what}");
}

#[test]
fn parts_are_held_against_models_of_their_own() {
    let (_folder, mut store) = recorded(60, |number| Load { call: if number < 36 { 6 } else { 12 }, ..USUAL });
    let period = Period { from: BEGIN, to: BEGIN + 60 * LENGTH };
    let compared = Split::of(&mut store, period).expect("it is read").held();
    // Findings tell of bursts of starts, too.
    let moments: Vec<&String> = compared.changes.iter().filter(|own| own.starts_with("at ")).collect();
    assert_eq!((compared.parts.len(), moments.len(), compared.left_out), (2, 1, 0), "{compared:?}");
    assert!(moments[0].contains("goes from 5.98 ms to 12.2 ms"), "{compared:?}");
    for (part, (_, held)) in compared.parts.iter().enumerate() {
        let held = held.as_ref().expect("it is solved");
        let (measured, predicted) = held[0].measured.zip(held[0].predicted).expect("it was timed");
        // The call, and 5 ms of the operation and around it.
        let meant = [0.011, 0.017][part];
        assert!((measured / meant - 1.0).abs() < 0.05 && (predicted / measured - 1.0).abs() < 0.05, "{compared:?}");
    }
    let (_folder, mut store) = recorded(60, |_| USUAL);
    let compared = Split::of(&mut store, period).expect("it is read").held();
    // A finding tells of bursts of starts. Nothing changes.
    let moments = compared.changes.iter().filter(|own| own.starts_with("at ")).count();
    assert_eq!((compared.parts.len(), moments, &*compared.parts[0].0), (1, 0, ""), "{compared:?}");
}

#[test]
fn whoever_asks_about_a_period_with_a_change_in_it_is_told() {
    let (folder, store) = recorded(60, |number| Load { call: if number < 36 { 6 } else { 12 }, ..USUAL });
    drop(store);
    let path = folder.path().join("store.db");
    let explain = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        let output = command.args(["period", "explain", "--store"]).arg(&path).args(arguments).output();
        String::from_utf8_lossy(&output.expect("it starts").stderr).into_owned()
    };
    // Of what was added by hand no trace is kept, but what changes is known.
    let told = explain(&[]);
    assert!(told.starts_with("warning: the period has 2 parts, and its model is of their mean\n  at 2023-"), "{told}");
    assert!(
        told.contains("the own time of `find` at `stock` with waits for its processor goes from 5.98 ms to 12.2 ms"),
        "{told}"
    );
    assert!(!explain(&["--part", "1"]).contains("warning"));
    let program = Program::start(&path, &[]);
    let steady = "other_from=2023-11-14T22:13:20Z&other_to=2023-11-14T22:18:20Z";
    let told = program.ask("GET", &format!("/v1/period/difference?{steady}"), &[], b"").expect("it answers").text();
    assert!(told.starts_with("# of the first period:\n# warning[M051]: the period has 2 parts"), "{told}");
    assert!(!told.contains("# of the other period:\n# warning[M051]: the period has"), "{told}");
    let alone = program.ask("GET", "/v1/period/difference", &[], b"").expect("it answers");
    assert_eq!(alone.status, 400, "{}", alone.text());
}

#[test]
fn calls_that_change_split_a_period() {
    let parts = parts(60, |number| Load { calls: if number < 24 { 1 } else { 2 }, ..USUAL });
    let what = split_at(&parts, 24);
    assert!(what.contains("calls `find` at `stock` 2 times in place of 1"), "{what}");
}

#[test]
fn levels_that_change_split_a_period_and_leave_coefficients() {
    let parts = parts(60, |number| Load { count: if number < 30 { 24 } else { 60 }, ..USUAL });
    let what = split_at(&parts, 30);
    assert!(what.contains("the rate of `shop browse` goes from") && !what.contains("the own time of"), "{what}");
}

#[test]
fn instances_that_appear_or_leave_split_a_period() {
    let more = parts(60, |number| Load { instances: if number < 30 { 2 } else { 3 }, ..USUAL });
    let what = split_at(&more, 30);
    assert!(what.contains("the instance `3` of `stock` appears") && !what.contains("leaves"), "{what}");
    let fewer = parts(60, |number| Load { instances: if number < 30 { 3 } else { 2 }, ..USUAL });
    let what = split_at(&fewer, 30);
    assert!(what.contains("the instance `3` of `stock` leaves"), "{what}");
}

#[test]
fn services_that_appear_split_a_period() {
    let parts = parts(60, |number| Load { calls: u64::from(number >= 20), ..USUAL });
    let what = split_at(&parts, 20);
    assert!(what.contains("`stock` appears"), "{what}");
}

#[test]
fn a_gap_and_few_intervals_do_no_harm() {
    let few = parts(3, |_| USUAL);
    assert_eq!(few.parts.len(), 1);
    let none = parts(40, |number| Load { count: if (10..25).contains(&number) { 0 } else { 24 }, ..USUAL });
    assert!(none.parts.iter().all(|part| part.operations > 0), "{none:?}");
}

/// Reports of ten seconds of a process whose operation takes so much of a processor, seconds, by the number of the interval; none where it is away.
fn reports(id: u64, program: &str, intervals: u64, demand: impl Fn(u64) -> Option<f64>) -> Vec<Observation> {
    let process = Process { application: "a".into(), host: "h".into(), program: program.into(), id, started: 0 };
    let mut chance = Chance(id);
    let one = |number: u64| {
        let from = (BEGIN + number * LENGTH).cast_signed();
        let mut own = Observation::empty(process.clone(), from, from + LENGTH.cast_signed());
        let demand = demand(number)?;
        let operation = Operation::new("I", "o");
        let times = own.inputs.entry(Input { operation, service: Served::Synchronous }).or_default();
        for _ in 0..80 + chance.below(20) {
            // Around its mean by a half of it.
            let time = demand * (0.5 + chance.below(1001) as f64 / 1000.0);
            times.add(time);
            own.resources.cpu += (time * 1e9) as u64;
        }
        Some(own)
    };
    (0..intervals).filter_map(one).collect()
}

#[test]
fn demands_that_change_and_processes_that_leave_split_a_period_of_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(&folder.path().join("store.db")).expect("a store");
    let of = |store: &Store| {
        let found = dyelog_server::parts::json(store, ALL, &System::default()).expect("it is read");
        found.expect("it has reports")["observed"].clone()
    };
    store.put_observations(&[reports(1, "steady", 60, |_| Some(0.01))], BEGIN).expect("they are written");
    let steady = of(&store);
    assert_eq!(
        (steady["parts"].as_array().map(Vec::len), steady["changes"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
    let slower = reports(2, "slower", 60, |number| Some(if number < 20 { 0.004 } else { 0.008 }));
    let leaves = reports(3, "leaves", 60, |number| (number < 40).then_some(0.01));
    store.put_observations(&[slower, leaves], BEGIN).expect("they are written");
    let found = of(&store);
    assert_eq!(found["parts"].as_array().map(Vec::len), Some(3), "{found:#}");
    let text = found["changes"].to_string();
    assert!(text.contains("`I.o` of `slower` takes") || text.contains("of `slower` takes 8."), "{text}");
    assert!(text.contains("`leaves` (3) leaves"), "{text}");
}

/// The model and the solution of a period tell a change within it.
#[test]
fn a_change_is_told_with_the_model_and_the_solution() {
    for (changes, intervals) in [(true, 40), (false, 40)] {
        let (_folder, store) = recorded(intervals, |number| Load {
            call: if changes && number >= 20 { 3 * USUAL.call } else { USUAL.call },
            ..USUAL
        });
        let (submodel, merge) = store.period(ALL.from, ALL.to).expect("it is read").expect("it has intervals");
        let metered = store.metered(ALL.from, ALL.to).expect("it is read");
        let mut answer = Answer::of(submodel, &merge, &metered).expect("it is modelled");
        answer.tell(Parts::of(&store, ALL).expect("it is read").and_then(|parts| parts.finding()));
        let told = "the period has 2 parts, and its model is of their mean";
        let model = answer.lqn();
        assert_eq!(model.contains(&format!("# warning[M051]: {told}\n")), changes, "{model}");
        assert!(dyelog::lqn::parse_any(&std::sync::Arc::from("model"), &model).is_ok(), "{model}");
        let solution: serde_json::Value =
            serde_json::from_str(&answer.solved().expect("it is solved")).expect("it is JSON");
        let findings = solution["findings"].as_array().expect("it has findings");
        assert_eq!(findings.iter().any(|own| own["message"] == told), changes, "{findings:?}");
        assert!(findings.iter().any(|own| own["code"] == "M011"), "{findings:?}");
        assert!(solution["outlook"]["loads"].is_array());
    }
}

/// What was sent ends before the server was up, or while it is: a time without operations has blocks as one with them has.
#[test]
fn a_rate_that_ends_is_told_where_it_ends() {
    let (_folder, store) = recorded(25, |_| USUAL);
    let end = BEGIN / LENGTH * LENGTH + 25 * LENGTH;
    for observed in [
        (end + 5 * LENGTH, end + 10 * LENGTH),
        (end + 5 * LENGTH, end + 105 * LENGTH),
        (end - 25 * LENGTH, end + 4 * LENGTH),
    ] {
        let mut history = History::of(vec![observed]);
        store.period_by_interval(0, u64::MAX, |glance| history.take_in(glance)).unwrap();
        history.finish();
        let found = Parts::in_history(&history);
        let [border] = &found.borders[..] else { panic!("{observed:?}: {found:?}") };
        assert_eq!(border.at, observed.0.max(end), "{observed:?}: {found:?}");
        let words = border.what.iter().find(|own| own.contains("the rate of")).unwrap();
        let rates = words.split_once(" goes from ").unwrap().1.strip_suffix(" a second").unwrap();
        let (before, after) = rates.split_once(" to ").unwrap();
        let part = found.parts[0];
        let rate = part.operations as f64 * SECOND as f64 / (part.to - part.from) as f64;
        assert!((before.parse::<f64>().unwrap() / rate - 1.0).abs() < 0.05, "{words}, of {rate}");
        assert!(after.parse::<f64>().unwrap() < 0.1, "{words}");
    }
}
