//! Delays of entries: pauses that events tell and templates state, by invocation.

use std::fmt::Write;

use dyelog::lqn::{Body, Work};
use dyelog::pipeline::{self, Input, Listener, Options};
use dyelog::tlc::Rules;
use proptest::prelude::*;

/// A call of `web` for each list of pauses, seconds: the operation has a node for each, after 1 ms of work.
fn calls(visits: &[Vec<f64>]) -> String {
    let mut text = String::new();
    for (run, pauses) in visits.iter().enumerate() {
        let mut time = 0.0;
        let _ =
            writeln!(text, "operation call run={}\ncall,1,1,Be | client,1 t=0\ncall,1,2,Ac | client,2 t=0", run + 1);
        let mut counter = 3;
        for (place, pause) in pauses.iter().chain([&0.0]).enumerate() {
            let _ =
                writeln!(text, "call,1,{counter},Ac | web,{} t={time:.6} cpu=0.001 op=serve pause={pause}", place + 1);
            time += 0.001 + pause;
            counter += 1;
        }
        let _ = writeln!(text, "call,1,{counter},Ac | web,{} t={time:.6}", pauses.len() + 2);
        let _ = writeln!(text, "call,1,{},Ac | client,3 t={time:.6}", counter + 1);
        let _ = writeln!(text, "call,1,{},Ed | client,4 t={time:.6}\n", counter + 2);
    }
    text
}

/// The first phase of the entry that a task has, and the codes of what was found.
fn work_of(task: &str, trace: &str, rules: Option<&str>) -> (Work, Vec<&'static str>) {
    let mut findings = Vec::new();
    let text = rules.unwrap_or_default();
    let load = |_: &mut dyn Listener| Rules::with_user_files(&[("own.dl".into(), text.into())], &|_| None);
    let mut options = Options::default();
    if rules.is_some() {
        options.rules = Some(&load);
    }
    let source = pipeline::model(&[Input::new("t.angio", trace)], None, &options, &mut findings).expect("a model");
    let number = source.model.tasks.iter().position(|own| &*own.name == task).expect("the task is there");
    let entry = source.model.entries.iter().find(|entry| entry.task.index() == number).expect("it has an entry");
    let Body::Phases(phases) = &entry.body else { panic!("phases: {entry:?}") };
    (phases[0].clone(), findings.iter().map(|finding| finding.code.0).collect())
}

/// Mean and squared coefficient of variation.
fn spread(sums: &[f64]) -> (f64, f64) {
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / sums.len() as f64;
    (mean, variance / (mean * mean))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn delays_vary_as_the_sums_of_invocations_do(
        visits in prop::collection::vec(prop::collection::vec(1..400_u32, 0..4), 1..12)
            .prop_filter("something pauses", |visits| visits.iter().any(|own| !own.is_empty()))
    ) {
        let visits: Vec<Vec<f64>> =
            visits.iter().map(|own| own.iter().map(|pause| f64::from(*pause) / 1e3).collect()).collect();
        let sums: Vec<f64> = visits.iter().map(|own| own.iter().sum()).collect();
        let (mean, cv2) = spread(&sums);
        let (work, _) = work_of("web", &calls(&visits), None);
        prop_assert!((work.think_time - mean).abs() < 1e-9, "{work:?}, {mean}");
        prop_assert!(work.think_cv2.is_some_and(|own| (own - cv2).abs() < 1e-6 * cv2.max(1.0)), "{work:?}, {cv2}");
    }
}

/// A request that is given up at once, at an activity `timeout`; what is recorded of it is up to the caller.
fn given_up(fork: &str, timeout: &str) -> String {
    format!(
        "operation ask run=1
ask,1,1,Be | shop,1 t=0 op=ask
ask,1,2,Fk(ask,2) | shop,2 {fork}
ask,1,3,Ac | shop,3 name=timeout {timeout}
ask,1,4,Ac | shop,4 name=tell
ask,1,5,Ed | shop,5
ask,2,1,Be | pay,1 op=charge
ask,2,2,Ac | pay,2 cpu=0.01
ask,2,3,Ed | pay,3
"
    )
}

const RETRY: &str = include_str!("../../rules/ext/retry.dl");

#[test]
fn work_and_pauses_before_a_timeout_are_no_part_of_its_delay() {
    for (fork, think_time) in [("t=0", 0.2), ("t=0 pause=0.05", 0.2), ("t=0 cpu=0.05", 0.15)] {
        let (work, codes) = work_of("shop", &given_up(fork, "t=0.2"), Some(RETRY));
        assert!((work.think_time - think_time).abs() < 1e-9, "{fork}: {work:?}");
        assert!(!codes.contains(&"M056"), "{codes:?}");
    }
}

#[test]
fn a_delay_that_no_time_tells_is_missed() {
    let (work, codes) = work_of("shop", &given_up("", ""), Some(RETRY));
    assert_eq!((work.think_time, codes.contains(&"M056")), (0.0, true), "{codes:?}");
}
