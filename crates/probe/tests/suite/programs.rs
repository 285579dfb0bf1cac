//! Random programs, whose calls the test knows: what was recorded must be what they did.

use std::collections::BTreeMap;

use dyelog_probe::{Carrier, Function, Instrumented, Mode, branch, spawn};
use proptest::prelude::*;
use tokio::task::yield_now;

use crate::support::record;

static FUNCTIONS: [Function; 3] = [Function::new("P", "a"), Function::new("P", "b"), Function::new("Q", "c")];
const NAMES: [&str; 3] = ["P::a", "P::b", "Q::c"];

#[derive(Clone, Debug)]
enum Step {
    Enter(usize, Vec<Step>),
    Remote(usize, Vec<Step>),
    OneWay(usize, Vec<Step>),
    Fork(Vec<Vec<Step>>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leaf = (0..3usize).prop_map(|function| Step::Enter(function, Vec::new()));
    let step = leaf.prop_recursive(4, 24, 3, |inner| {
        let body = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (0..3usize, body()).prop_map(|(function, body)| Step::Enter(function, body)),
            (0..3usize, body()).prop_map(|(function, body)| Step::Remote(function, body)),
            (0..3usize, body()).prop_map(|(function, body)| Step::OneWay(function, body)),
            prop::collection::vec(body(), 1..3).prop_map(Step::Fork),
        ]
    });
    prop::collection::vec(step, 1..4)
}

/// What the records must say: `around` is the path, `function` the last function on it.
fn truth(steps: &[Step], around: &str, function: &str, found: &mut BTreeMap<String, u64>) {
    let below = |name: &str| if around.is_empty() { name.to_owned() } else { format!("{around} > {name}") };
    for step in steps {
        match step {
            Step::Enter(number, body) | Step::Remote(number, body) | Step::OneWay(number, body) => {
                let path = below(NAMES[*number]);
                *found.entry(path.clone()).or_default() += 1;
                truth(body, &path, NAMES[*number], found);
            }
            // Outside of calls, threads are no part of anything.
            Step::Fork(branches) if function.is_empty() => {
                for branch in branches {
                    truth(branch, "", "", found);
                }
            }
            Step::Fork(branches) => {
                for branch in branches {
                    let path = below(&format!("threads of {function}"));
                    *found.entry(path.clone()).or_default() += 1;
                    truth(branch, &path, function, found);
                }
            }
        }
    }
}

fn on_threads(steps: &[Step]) {
    for step in steps {
        match step {
            Step::Enter(function, body) => {
                let _call = FUNCTIONS[*function].enter();
                on_threads(body);
            }
            Step::Remote(function, body) => {
                let call = FUNCTIONS[*function].call();
                elsewhere(*function, call.carrier(), body);
            }
            Step::OneWay(function, body) => {
                let carrier = FUNCTIONS[*function].send().carrier();
                elsewhere(*function, carrier, body);
            }
            Step::Fork(branches) => {
                let threads: Vec<_> =
                    branches.iter().cloned().map(|branch| spawn(move || on_threads(&branch))).collect();
                for thread in threads {
                    thread.join().expect("it does not panic");
                }
            }
        }
    }
}

fn elsewhere(function: usize, carrier: Option<Carrier>, body: &[Step]) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _call = FUNCTIONS[function].serve(carrier);
            on_threads(body);
        });
    });
}

type Running = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn in_tasks(steps: Vec<Step>) -> Running {
    Box::pin(async move {
        for step in steps {
            match step {
                Step::Enter(function, body) => FUNCTIONS[function].run(in_tasks(body)).await,
                Step::Remote(function, body) => {
                    let request = move |carrier| async move {
                        yield_now().await;
                        served(function, carrier, body).await;
                    };
                    FUNCTIONS[function].call_async(request).await;
                }
                Step::OneWay(function, body) => {
                    let carrier = FUNCTIONS[function].send().carrier();
                    served(function, carrier, body).await;
                }
                Step::Fork(branches) => {
                    let branches: Vec<Instrumented<Running>> =
                        branches.into_iter().map(|body| branch(in_tasks(body))).collect();
                    futures_util::future::join_all(branches).await;
                }
            }
            yield_now().await;
        }
    })
}

async fn served(function: usize, carrier: Option<Carrier>, body: Vec<Step>) {
    let task = tokio::spawn(FUNCTIONS[function].serve_async(carrier, in_tasks(body)));
    task.await.expect("it does not panic");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_of_threads_are_recorded_as_they_ran(program in steps()) {
        let mut expected = BTreeMap::new();
        truth(&program, "", "", &mut expected);
        let ((), recorded) = record(Mode::Both, || on_threads(&program));
        prop_assert_eq!(if expected.is_empty() { BTreeMap::new() } else { recorded.sound() }, expected);
    }

    #[test]
    fn programs_of_tasks_are_recorded_as_they_ran(program in steps()) {
        let mut expected = BTreeMap::new();
        truth(&program, "", "", &mut expected);
        let ((), recorded) = record(Mode::Cpu, || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build();
            runtime.expect("there are threads").block_on(in_tasks(program.clone()));
        });
        prop_assert_eq!(if expected.is_empty() { BTreeMap::new() } else { recorded.sound() }, expected);
    }
}
