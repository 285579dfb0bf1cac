//! Models of periods: structure and numbers of small systems that are known.

use std::collections::BTreeSet;

use dyelog_lqn::lint;
use dyelog_lqn::model::{CallKind, Multiplicity, Scheduling};
use dyelog_observe::change::{What, changes, parts};
use dyelog_observe::demand::{Method, Sample, estimate};
use dyelog_observe::model::{Options, PeriodModel, Subject, build};
use dyelog_observe::observation::{Input, Observation, Operation, Output, Process, Request, Service, Times};
use dyelog_observe::period::Period;
use dyelog_observe::system::System;
use dyelog_solve::{LayeredOptions, Random, layered};

const SECOND: i64 = 1_000_000_000;

fn process(program: &str, id: u64) -> Process {
    Process { application: "shop".into(), host: "host1".into(), program: program.into(), id, started: 0 }
}

fn times(count: u64, mean: f64) -> Times {
    let mut times = Times::default();
    (0..count).for_each(|_| times.add(mean));
    times
}

/// Ten-second intervals of a process, each filled by its number.
fn intervals(program: &str, id: u64, count: i64, fill: impl Fn(&mut Observation, i64)) -> Vec<Observation> {
    let one = |number: i64| {
        let mut own = Observation::empty(process(program, id), 10 * number * SECOND, 10 * (number + 1) * SECOND);
        fill(&mut own, number);
        own
    };
    (0..count).map(one).collect()
}

fn serve(own: &mut Observation, operation: &Operation, service: Service, count: u64, mean: f64) {
    own.inputs.insert(Input { operation: operation.clone(), service }, times(count, mean));
}

fn call(
    own: &mut Observation,
    within: Option<&Operation>,
    operation: &Operation,
    request: Request,
    at: &str,
    count: u64,
    mean: f64,
) {
    let output = Output { within: within.cloned(), operation: operation.clone(), request, protocol: at.into() };
    own.outputs.insert(output, times(count, mean));
}

fn cpu(own: &mut Observation, seconds: f64) {
    own.resources.cpu = (seconds * 1e9) as u64;
}

/// Three clients, a front that calls a store, as the paper's Figure 1.
fn three_tiers(count: i64) -> Vec<Observation> {
    let (cycle, find, read) =
        (Operation::new("", "cycle"), Operation::new("Front", "find"), Operation::new("Store", "read"));
    let mut all = Vec::new();
    for id in 1..=3 {
        all.extend(intervals("client", id, count, |own, _| {
            serve(own, &cycle, Service::Cycle, 5, 0.5);
            call(own, Some(&cycle), &find, Request::Synchronous, "tcp:host1:1", 10, 0.2);
            cpu(own, 0.1);
        }));
    }
    all.extend(intervals("front", 10, count, |own, _| {
        own.interfaces.insert("Front".into(), BTreeSet::from(["tcp:host1:1".into()]));
        own.threads.configured = Some(3);
        serve(own, &find, Service::Synchronous, 30, 0.15);
        call(own, Some(&find), &read, Request::Synchronous, "tcp:host1:2", 60, 0.03);
        cpu(own, 1.5);
    }));
    all.extend(intervals("store", 11, count, |own, _| {
        own.interfaces.insert("Store".into(), BTreeSet::from(["tcp:host1:2".into()]));
        own.threads.most = 2;
        serve(own, &read, Service::Synchronous, 60, 0.025);
        cpu(own, 0.6);
        own.resources.reads = 120;
    }));
    all
}

fn system() -> System {
    System::parse("system.toml", "[nodes.host1]\ncores = 1\n[nodes.host1.disks.main]\nservice = 0.004\n").unwrap()
}

fn built(all: &[Observation], last: i64) -> PeriodModel {
    build(&Period::of(all, 0, 10 * last * SECOND), &system(), &Options::default()).unwrap()
}

fn said(model: &PeriodModel) -> Vec<&str> {
    model.findings.iter().map(|finding| finding.code.0).collect()
}

#[test]
fn three_tiers_become_a_layered_network() {
    let found = built(&three_tiers(30), 30);
    let model = &found.model;
    assert_eq!(said(&found), Vec::<&str>::new());
    assert!(lint::check(model).is_empty(), "{:?}", lint::check(model));
    let task = |name: &str| &model.tasks[model.task_named(name).unwrap().index()];
    let work = |name: &str| match &model.entries[model.entry_named(name).unwrap().index()].body {
        dyelog_lqn::Body::Phases(phases) => &phases[0],
        dyelog_lqn::Body::Activities(_) => unreachable!(),
    };
    assert_eq!(
        (task("client").multiplicity, task("client").scheduling),
        (Multiplicity::Finite(3), Scheduling::Reference)
    );
    // Of 10 s, five cycles of 0.5 s each leave 7.5 s.
    assert!((task("client").think_time - 1.5).abs() < 1e-9);
    assert_eq!(
        (task("front").multiplicity, task("store").multiplicity),
        (Multiplicity::Finite(3), Multiplicity::Finite(2))
    );
    assert_eq!(task("front").scheduling, Scheduling::Fcfs);
    assert!((work("client.cycle").demand - 0.02).abs() < 1e-9);
    assert!((work("Front.find").demand - 0.05).abs() < 1e-9);
    assert!((work("Store.read").demand - 0.01).abs() < 1e-9);
    let calls = |name: &str| -> Vec<(&str, f64, CallKind)> {
        work(name).calls.iter().map(|call| (&*model.entries[call.to.index()].name, call.mean, call.kind)).collect()
    };
    assert_eq!(calls("client.cycle"), [("Front.find", 2.0, CallKind::Synchronous)]);
    assert_eq!(calls("Front.find"), [("Store.read", 2.0, CallKind::Synchronous)]);
    assert_eq!(calls("Store.read"), [("host1.main.operation", 2.0, CallKind::Synchronous)]);
    assert!(model.processors.iter().all(|processor| processor.scheduling == Scheduling::ProcessorSharing));
    // Every number has its source.
    for (element, quantity) in [
        ("client", "think time"),
        ("client", "multiplicity"),
        ("Front.find", "demand"),
        ("client.cycle > Front.find", "calls"),
        ("Store.read", "disk operations"),
        ("host1", "multiplicity"),
        ("host1.main", "demand"),
    ] {
        assert!(
            found.sources.iter().any(|source| source.element == element && source.quantity == quantity),
            "{element} {quantity}"
        );
    }
    let results = layered(model, &LayeredOptions::default()).unwrap();
    let compared = found.compare(&results);
    assert!(
        compared.iter().any(|one| matches!(one.subject, Subject::Cycle(_)) && (one.measured.value - 0.5).abs() < 1e-9)
    );
    assert!(compared.iter().all(|one| one.predicted.is_some()));
    let busy = compared.iter().find(|one| matches!(one.subject, Subject::Processor(_))).unwrap();
    assert!((busy.measured.value - 0.24).abs() < 1e-9, "{busy:?}");
}

#[test]
fn what_nothing_observes_is_in_the_model() {
    let (read, log) = (Operation::new("Store", "read"), Operation::new("Log", "append"));
    let mut all = intervals("store", 1, 30, |own, _| {
        serve(own, &read, Service::Synchronous, 40, 0.02);
        call(own, Some(&read), &log, Request::Synchronous, "tcp:elsewhere:9", 40, 0.005);
        call(own, None, &log, Request::Synchronous, "tcp:elsewhere:9", 2, 0.005);
        cpu(own, 0.4);
    });
    for (id, seconds, reads) in [(50, 1.0, 0), (51, 0.0, 100), (52, 0.4, 100), (53, 1.0, 0)] {
        all.extend(intervals("batch", id, 30, |own, _| {
            own.managed = false;
            cpu(own, seconds);
            own.resources.reads = reads;
        }));
    }
    let found = built(&all, 30);
    assert_eq!(said(&found), ["O017", "O018"]);
    let model = &found.model;
    let entry = |name: &str| &model.entries[model.entry_named(name).unwrap().index()];
    assert!((entry("Store.read").open_arrival_rate.unwrap() - 4.0).abs() < 1e-9);
    let delay = &model.tasks[entry("Log.append-unobserved").task.index()];
    assert_eq!(delay.multiplicity, Multiplicity::Infinite);
    let population = |name: &str| model.tasks[model.task_named(name).unwrap().index()].multiplicity;
    assert_eq!(population("host1.unmanaged-cpu"), Multiplicity::Finite(2));
    assert_eq!(population("host1.unmanaged-disk"), Multiplicity::Finite(1));
    assert_eq!(population("host1.unmanaged-mixed"), Multiplicity::Finite(1));
    assert_eq!(population("store.background"), Multiplicity::Finite(1));
    let results = layered(model, &LayeredOptions::default()).unwrap();
    // Measured: 0.04 of the store, twice 0.1 and 0.04 of the others.
    let processor = model.processor_named("host1").unwrap().index();
    assert!(
        (results.processors[processor].utilization - 0.28).abs() < 0.01,
        "{}",
        results.processors[processor].utilization
    );
}

#[test]
fn unobserved_clients_of_several_servers_are_told_apart() {
    let read = Operation::new("Store", "read");
    let serves = |own: &mut Observation, _| serve(own, &read, Service::Synchronous, 40, 0.02);
    let found = built(&[intervals("store", 1, 30, serves), intervals("store", 2, 30, serves)].concat(), 30);
    assert_eq!(said(&found), ["O018", "O018"]);
    let told: Vec<&str> = found.findings.iter().map(|finding| &*finding.message).collect();
    assert!(told[0] != told[1] && told.iter().all(|own| own.contains("of `store")), "{told:?}");
}

#[test]
fn forwarding_and_asynchronous_requests_are_told_apart() {
    let (cycle, ask, answer, note) = (
        Operation::new("", "c"),
        Operation::new("A", "ask"),
        Operation::new("B", "answer"),
        Operation::new("C", "note"),
    );
    let mut all = intervals("client", 1, 30, |own, _| {
        serve(own, &cycle, Service::Cycle, 10, 0.3);
        call(own, Some(&cycle), &ask, Request::Synchronous, "", 10, 0.3);
    });
    all.extend(intervals("front", 2, 30, |own, _| {
        serve(own, &ask, Service::Forwarding, 10, 0.1);
        call(own, Some(&ask), &answer, Request::Asynchronous, "", 10, 0.0);
        cpu(own, 1.0);
    }));
    all.extend(intervals("back", 3, 30, |own, _| {
        serve(own, &answer, Service::Synchronous, 10, 0.1);
        call(own, Some(&answer), &note, Request::Asynchronous, "", 5, 0.0);
        cpu(own, 1.0);
    }));
    all.extend(intervals("log", 4, 30, |own, _| {
        serve(own, &note, Service::Asynchronous, 5, 0.1);
        cpu(own, 0.5);
    }));
    let found = built(&all, 30);
    assert_eq!(said(&found), Vec::<&str>::new());
    let entry = |name: &str| &found.model.entries[found.model.entry_named(name).unwrap().index()];
    let forwarded = &entry("A.ask").forwarding;
    assert_eq!((forwarded.len(), forwarded[0].probability), (1, 1.0));
    let dyelog_lqn::Body::Phases(phases) = &entry("B.answer").body else { unreachable!() };
    assert_eq!((phases[0].calls[0].kind, phases[0].calls[0].mean), (CallKind::Asynchronous, 0.5));
    assert!(layered(&found.model, &LayeredOptions::default()).unwrap().convergence.converged);
}

#[test]
fn a_period_is_split_where_a_demand_changes_or_a_process_appears() {
    let (one, other) = (Operation::new("I", "one"), Operation::new("I", "other"));
    let mut random = Random::new(1, 0);
    let rates: Vec<(u64, u64)> =
        (0..60).map(|_| (20 + random.below(20) as u64, 20 + random.below(20) as u64)).collect();
    let mut all = intervals("server", 1, 60, |own, number| {
        let (first, second) = rates[number as usize];
        let slow = if number < 30 { 0.02 } else { 0.03 };
        serve(own, &one, Service::Synchronous, first, 0.02);
        serve(own, &other, Service::Synchronous, second, slow);
        cpu(own, 0.01 * first as f64 + 0.5 * slow * second as f64);
    });
    let late = intervals("late", 2, 60, |own, _| serve(own, &Operation::new("J", "x"), Service::Synchronous, 1, 0.1));
    all.extend(late.into_iter().skip(45));
    let period = Period::of(&all, 0, 600 * SECOND);
    let found = changes(&period, &|_| 1.0);
    let at: Vec<i64> = found.iter().map(|change| change.at / SECOND).collect();
    assert_eq!(at, [300, 450], "{found:?}");
    let What::Demand { operation, before, after, .. } = &found[0].what else { panic!("{found:?}") };
    assert_eq!(operation, &other);
    assert!((before - 0.01).abs() < 1e-3 && (after - 0.015).abs() < 1e-3, "{before} {after}");
    assert!(matches!(&found[1].what, What::Appears(process) if &*process.program == "late"));
    let lengths: Vec<f64> = parts(&period, &found).iter().map(Period::seconds).collect();
    assert_eq!(lengths, [300.0, 150.0, 150.0]);
    let said: Vec<_> = built(&all, 60).findings.iter().map(|finding| finding.code.0).collect();
    assert!(said.contains(&"O012") && said.contains(&"O011"), "{said:?}");
}

#[test]
fn the_special_cases_of_regression_are_told() {
    let sample = |counts: [u64; 3], used: f64| Sample {
        counts: counts.to_vec(),
        busy: vec![0.01 * counts[0] as f64, 0.02 * counts[1] as f64, 0.04 * counts[2] as f64],
        used,
        load: 0.3,
    };
    // Fewer intervals than operations: the average of the process, and shares.
    let few = estimate(3, &[sample([1, 2, 1], 0.4), sample([2, 1, 3], 0.6)], Some(1));
    assert!(few.too_few);
    assert_eq!(few.by(Method::Average).demands[0].mean, 0.1);
    assert_eq!(few.by(Method::Regression).method, few.candidates[0].method);
    // Multiples of each other are combined, and what was never invoked takes nothing.
    let intervals: Vec<Sample> =
        (1..40).map(|n| sample([n % 9 + 1, 2 * (n % 9 + 1), 0], 0.05 * (n % 9 + 1) as f64)).collect();
    let combined = estimate(3, &intervals, Some(1));
    assert_eq!(combined.together, [vec![0, 1]]);
    let regression = &combined.by(Method::Regression).demands;
    assert!((regression[0].mean - 0.01).abs() < 1e-9 && (regression[1].mean - 0.02).abs() < 1e-9, "{regression:?}");
    assert!(combined.candidates.iter().all(|candidate| candidate.demands[2].mean == 0.0));
    // One interval in which something else ran changes nothing.
    let mut random = Random::new(2, 0);
    let mut spiky: Vec<Sample> = (0..60)
        .map(|_| {
            let counts = [random.below(30) as u64, random.below(30) as u64, random.below(30) as u64];
            sample(counts, 0.01 * counts[0] as f64 + 0.02 * counts[1] as f64 + 0.04 * counts[2] as f64)
        })
        .collect();
    spiky[17].used += 9.0;
    let robust = estimate(3, &spiky, Some(1));
    assert_eq!(robust.left_out, 1);
    for method in [Method::Shrunk, Method::Shared, Method::Regression] {
        let found: Vec<f64> = robust.by(method).demands.iter().map(|demand| demand.mean).collect();
        assert!((found[0] - 0.01).abs() < 1e-4 && (found[2] - 0.04).abs() < 1e-4, "{method:?} {found:?}");
    }
}

/// Where busy times mislead, since one operation waits without using anything, the intervals tell.
#[test]
fn regression_overrules_shares_that_mislead() {
    let mut random = Random::new(3, 0);
    let sample = |random: &mut Random| {
        let counts = [random.below(100) as u64, random.below(100) as u64];
        let used = 0.01 * counts[0] as f64 + 0.01 * counts[1] as f64;
        Sample {
            counts: counts.to_vec(),
            busy: vec![0.01 * counts[0] as f64, 0.05 * counts[1] as f64],
            used: used * (0.95 + 0.1 * random.uniform()),
            load: 0.2,
        }
    };
    let samples: Vec<Sample> = (0..120).map(|_| sample(&mut random)).collect();
    let found = estimate(2, &samples, Some(1));
    let off = |method| (found.by(method).demands[0].mean / 0.01 - 1.0).abs();
    assert!(off(Method::Shared) > 0.5 && off(Method::Shrunk) < 0.03, "{found:?}");
}

#[test]
fn a_process_that_observes_itself_is_counted_once() {
    let mut all = three_tiers(30);
    all.extend(intervals("front", 10, 30, |own, _| {
        own.process.started = 7;
        own.managed = false;
        cpu(own, 1.5);
    }));
    assert_eq!(built(&all, 30).model, built(&three_tiers(30), 30).model);
}

#[test]
fn nothing_and_nonsense_are_refused() {
    let finding = build(&Period::of(&[], 0, SECOND), &System::default(), &Options::default()).unwrap_err();
    assert_eq!(finding.0[0].code.0, "O010");
    for text in [
        "[nodes.h]\ncores = 0",
        "[nodes.h]\ncroes = 1",
        "[nodes.h.disks.d]\nservice = -1.0",
        "[programs.p]\nthreads = 0",
        "=",
    ] {
        assert_eq!(System::parse("s.toml", text).unwrap_err().0[0].code.0, "O005", "{text}");
    }
}
