//! Calls that each execution makes alike, and choices, in reports of programs that are known to make them so.

use dyelog_lqn::lint;
use dyelog_lqn::model::{Body, CallOrder, Fork, Model};
use dyelog_observe::model::{Options, build};
use dyelog_observe::observation::{Input, Observation, Operation, Output, Process, Request, Service};
use dyelog_observe::period::Period;
use dyelog_observe::system::System;
use dyelog_solve::{LayeredOptions, Random, layered};

const SECOND: i64 = 1_000_000_000;
const SECONDS: usize = 120;
const THREADS: u32 = 5;

/// Reports of clients that make these calls in each cycle, as a function says.
fn reports(seed: u64, calls: impl Fn(&mut Random) -> Vec<&'static str>) -> Vec<Observation> {
    let process = Process { application: "a".into(), host: "h".into(), program: "client".into(), id: 1, started: 0 };
    let cycle = Operation::new("", "cycle");
    let mut intervals: Vec<Observation> = (0..SECONDS as i64)
        .map(|second| {
            let mut own = Observation::empty(process.clone(), second * SECOND, (second + 1) * SECOND);
            own.threads.configured = Some(THREADS);
            own.resources.cpu = 10_000_000;
            own
        })
        .collect();
    let mut random = Random::new(seed, 0);
    for _ in 0..THREADS {
        let mut now = 0.0;
        while now < SECONDS as f64 {
            now += 0.05 * random.exponential();
            let begin = now;
            let at = |now: f64| (now as usize).min(SECONDS - 1);
            for name in calls(&mut random) {
                let took = 0.03 * random.exponential();
                now += took;
                let output = Output {
                    within: Some(cycle.clone()),
                    operation: Operation::new("S", name),
                    request: Request::Synchronous,
                    protocol: "".into(),
                };
                if now < SECONDS as f64 {
                    intervals[at(now)].outputs.entry(output).or_default().add(took);
                }
            }
            if now < SECONDS as f64 {
                let input = Input { operation: cycle.clone(), service: Service::Cycle };
                intervals[at(now)].inputs.entry(input).or_default().add(now - begin);
            }
        }
    }
    intervals
}

fn model(reports: &[Observation]) -> Model {
    let period = Period::of(reports, 0, SECONDS as i64 * SECOND);
    let system = System::parse("system.toml", "[nodes.h]\ncores = 1\n").unwrap();
    let found = build(&period, &system, &Options::default()).unwrap().model;
    assert!(lint::check(&found).is_empty(), "{:?}", lint::check(&found));
    layered(&found, &LayeredOptions::default()).unwrap();
    found
}

/// Calls whose number is exact, by name, and the probabilities of choices.
fn regular(model: &Model) -> (Vec<(String, f64)>, Vec<Vec<f64>>) {
    let task = &model.tasks[model.task_named("client").unwrap().index()];
    let in_phases = task.entries.iter().flat_map(|entry| match &model.entries[entry.index()].body {
        Body::Phases(phases) => phases.iter().collect(),
        Body::Activities(_) => Vec::new(),
    });
    let in_activities = task.activities.iter().map(|activity| &model.activities[activity.index()].work);
    let work = in_phases.chain(in_activities).filter(|work| work.call_order == CallOrder::Deterministic);
    let name = |call: &dyelog_lqn::model::Call| model.entries[call.to.index()].name.to_string();
    let mut exact: Vec<(String, f64)> = work.flat_map(|work| &work.calls).map(|call| (name(call), call.mean)).collect();
    exact.sort_by(|left, right| left.0.cmp(&right.0));
    let choices = task.precedences.iter().filter_map(|precedence| match &precedence.fork {
        Some(Fork::Or(branches)) => Some(branches.iter().map(|(part, _)| *part).collect()),
        _ => None,
    });
    (exact, choices.collect())
}

fn names(exact: &[(String, f64)]) -> Vec<(&str, f64)> {
    exact
        .iter()
        .map(|(name, number)| (name.trim_start_matches("S.").trim_end_matches("-unobserved"), *number))
        .collect()
}

#[test]
fn calls_that_are_always_made_are_exact() {
    for seed in 0..20 {
        let (exact, choices) = regular(&model(&reports(seed, |_| vec!["one", "two", "two"])));
        assert_eq!((names(&exact), choices.len()), (vec![("one", 1.0), ("two", 2.0)], 0), "{seed}");
    }
}

#[test]
fn calls_that_exclude_each_other_are_a_choice() {
    for seed in 0..20 {
        let found = model(&reports(seed, |random| {
            let one = if random.uniform() < 0.7 { "often" } else { "seldom" };
            vec![one, "always"]
        }));
        let (exact, choices) = regular(&found);
        assert_eq!(names(&exact), [("always", 1.0), ("often", 1.0), ("seldom", 1.0)], "{seed}");
        assert!(matches!(&choices[..], [one] if one.len() == 2 && (one[0] - 0.7).abs() < 0.05), "{seed}: {choices:?}");
    }
}

#[test]
fn calls_that_are_drawn_each_time_are_not() {
    for seed in 0..20 {
        // As many as one on the mean: none, or two; and two that may be made together.
        let (exact, choices) = regular(&model(&reports(seed, |random| {
            let mut calls = if random.uniform() < 0.5 { Vec::new() } else { vec!["one", "one"] };
            calls.extend((random.uniform() < 0.7).then_some("often"));
            calls.extend((random.uniform() < 0.3).then_some("seldom"));
            calls
        })));
        assert_eq!((names(&exact), choices.len()), (vec![], 0), "{seed}");
        // One in fifty executions makes no call.
        let (exact, _) =
            regular(&model(&reports(seed, |random| if random.uniform() < 0.02 { vec![] } else { vec!["one"] })));
        assert_eq!(names(&exact), [], "{seed}");
    }
}

#[test]
fn too_little_says_nothing() {
    let few: Vec<Observation> = reports(1, |_| vec!["one"]).into_iter().take(5).collect();
    assert_eq!(regular(&model(&few)), (vec![], vec![]));
}
