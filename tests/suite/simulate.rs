//! The simulator: seeds, threads, intervals, limits, locks, and its command.

use std::ops::ControlFlow;

use dyelog::lqn::model::{Body, CallOrder, Model};
use dyelog::lqn::{lint, text};
use dyelog::solve::{LayeredOptions, Progress, SimulateOptions, Watcher, layered, simulate, simulate_watched};

fn read(source: &str) -> Model {
    text::parse("model", source).expect("the model is well-formed").0
}

/// Two layers; the server has a second phase.
const LAYERS: &str = r#"
G "" 1e-05 50 10 0.9 -1
P 3
  p users i
  p app f m 2
  p db s 0.01
-1
T 3
  t users r go -1 users z 2 m 5
  t app n work -1 app m 3
  t db n query -1 db i
-1
E 0
  s go 0 -1
  y go work 1 -1
  s work 0.3 0.1 -1
  y work query 2 0.5 -1
  s query 0.1 -1
-1
"#;

fn open(rate: f64) -> Model {
    read(&format!(
        "G \"\" 1e-05 50 10 0.9 -1\nP 1\n  p server f\n-1\nT 1\n  t server n serve -1 server\n-1\nE 0\n  a serve {rate}\n  s serve 1 -1\n-1\n"
    ))
}

#[test]
fn a_seed_decides_and_threads_do_not() {
    let model = read(LAYERS);
    let with = |seed, threads| {
        let options = SimulateOptions { seed, threads, precision: 0.02, ..SimulateOptions::default() };
        simulate(&model, &options).expect("the model can be simulated")
    };
    let first = with(7, 1);
    assert_eq!(first, with(7, 3));
    assert_eq!(first, with(7, 64));
    assert_ne!(first, with(8, 1));
    assert!(first.convergence.converged);
}

#[test]
fn intervals_cover_as_often_as_they_say() {
    covers(200, 0.03);
}

#[test]
#[ignore = "takes minutes: narrow intervals"]
fn narrow_intervals_cover_as_often_as_they_say() {
    covers(200, 0.005);
}

/// How often intervals hold the exact answer of models that have one.
fn covers(seeds: u64, precision: f64) {
    // Ten users of a server who think for ten seconds: the machine repairman; and the M/M/1 queue.
    let repairman = read(
        "G \"\" 1e-05 50 10 0.9 -1\nP 2\n  p u i\n  p s f\n-1\nT 2\n  t u r go -1 u z 10 m 10\n  t s n serve -1 s\n-1\nE 0\n  s go 0 -1\n  f go 1 -1\n  y go serve 1 -1\n  s serve 1 -1\n-1\n",
    );
    let queue = open(0.5);
    let options = |seed| SimulateOptions { seed, precision, ..SimulateOptions::default() };
    let mut counts = [0; 4];
    for seed in 1..=seeds {
        let results = simulate(&repairman, &options(seed)).expect("the model can be simulated");
        let half = &results.simulated.as_ref().expect("it was simulated").half_widths;
        let within = |value: f64, half: f64, exact: f64| u64::from((value - exact).abs() <= half);
        counts[0] += within(results.tasks[0].throughput, half.tasks[0].throughput, 0.785_417_657);
        counts[1] += within(results.entries[0].service[0], half.entries[0].service[0], 2.732_079_44);
        let results = simulate(&queue, &options(seed)).expect("the model can be simulated");
        let half = &results.simulated.as_ref().expect("it was simulated").half_widths;
        let response = |entry: &dyelog::lqn::results::EntryResult| entry.open_response.expect("there are arrivals");
        counts[2] += within(response(&results.entries[0]), response(&half.entries[0]), 2.0);
        counts[3] += within(results.processors[0].utilization, half.processors[0].utilization, 0.5);
    }
    let parts = counts.map(|count| count as f64 / seeds as f64);
    eprintln!("coverage at ±{precision}: {parts:?}");
    // 95 % of 200 is 190 with a standard deviation of 3.
    assert!(parts.iter().all(|part| (0.91..=0.99).contains(part)), "{parts:?}");
    let mean = parts.iter().sum::<f64>() / 4.0;
    assert!((0.93..=0.97).contains(&mean), "{parts:?}");
}

#[test]
fn queues_that_grow_without_end_are_told_and_do_not_eat_memory() {
    for rate in [1.05, 3.0] {
        let results = simulate(&open(rate), &SimulateOptions::default()).expect("the model can be simulated");
        assert!(!results.convergence.converged);
        let told = results.caveats.iter().any(|doubt| doubt.contains("saturated") || doubt.contains("no steady state"));
        assert!(told, "{:?}", results.caveats);
    }
}

#[test]
fn overloaded_processors_are_busy_all_the_time() {
    // Most of the work of a shared one is for requests that are not done in the end.
    for (scheduling, servers) in [("s", 1), ("s", 3), ("f", 2), ("r", 1)] {
        let model = read(&format!(
            "G \"\" 1e-05 50 10 0.9 -1\nP 1\n  p server {scheduling} m {servers}\n-1\nT 1\n  t server i serve -1 server\n-1\nE 0\n  a serve {}\n  s serve 1 -1\n-1\n",
            2 * servers
        ));
        let options = SimulateOptions { events: 400_000, ..SimulateOptions::default() };
        let results = simulate(&model, &options).expect("the model can be simulated");
        let busy = results.processors[0].utilization / f64::from(servers);
        assert!((0.999..=1.001).contains(&busy), "{scheduling} {servers}: {busy}");
        assert!(!results.convergence.converged && !results.caveats.is_empty());
        assert!(results.entries[0].throughput < 1.1 * f64::from(servers));
    }
}

#[test]
fn standstills_are_told() {
    let deadlock = read(
        "G \"\" 1e-05 50 10 0.9 -1\nP 1\n  p p f\n-1\nT 3\n  t u r go -1 p\n  t a n ea -1 p\n  t b n eb -1 p\n-1\nE 0\n  s go 1 -1\n  y go ea 1 -1\n  s ea 1 -1\n  f ea 1 -1\n  y ea eb 1 -1\n  s eb 1 -1\n  f eb 1 -1\n  y eb ea 1 -1\n-1\n",
    );
    let results = simulate(&deadlock, &SimulateOptions::default()).expect("the model can be simulated");
    assert!(!results.convergence.converged);
    assert!(results.caveats.iter().any(|doubt| doubt.contains("standstill")), "{:?}", results.caveats);
    let idle = read("G \"\" 1e-05 50 10 0.9 -1\nP 1\n  p p f\n-1\nT 1\n  t a n ea -1 p\n-1\nE 0\n  s ea 1 -1\n-1\n");
    let results = simulate(&idle, &SimulateOptions::default()).expect("the model can be simulated");
    assert!(results.caveats.iter().any(|doubt| doubt.contains("no load")), "{:?}", results.caveats);
    let instant = read("G \"\" 1e-05 50 10 0.9 -1\nP 1\n  p p f\n-1\nT 1\n  t u r go -1 p\n-1\nE 0\n  s go 0 -1\n-1\n");
    let found = simulate(&instant, &SimulateOptions::default()).expect_err("time stands still");
    assert_eq!(found.0[0].code.0, "S004");
}

#[test]
fn limits_are_kept_and_told() {
    let options = SimulateOptions { precision: 1e-6, events: 200_000, ..SimulateOptions::default() };
    let results = simulate(&read(LAYERS), &options).expect("the model can be simulated");
    assert!(!results.convergence.converged);
    let events = results.simulated.expect("it was simulated").events;
    assert_eq!(events, 200_000);
    assert!(results.caveats[0].contains("precision"), "{:?}", results.caveats);
    struct Once(u32);
    impl Watcher for Once {
        fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
            assert!(progress.events > 0);
            self.0 += 1;
            ControlFlow::Break(())
        }
    }
    let mut once = Once(0);
    let options = SimulateOptions { precision: 1e-6, ..SimulateOptions::default() };
    let results = simulate_watched(&read(LAYERS), &options, &mut once).expect("the model can be simulated");
    assert_eq!(once.0, 1);
    assert!(!results.convergence.converged && results.caveats[0].contains("ended before"), "{:?}", results.caveats);
}

#[test]
fn percentiles_are_those_of_the_exponential() {
    // The response time of an M/M/1 queue is exponential with mean 1/(1 - 0.5).
    let options = SimulateOptions { precision: 0.005, ..SimulateOptions::default() };
    let results = simulate(&open(0.5), &options).expect("the model can be simulated");
    let simulated = results.simulated.expect("it was simulated");
    for found in &simulated.percentiles[0].values {
        let exact = -2.0 * (1.0 - found.part).ln();
        assert!((found.time - exact).abs() < 0.04 * exact, "{found:?} for {exact}");
    }
}

/// One request of 1 s, which one of two copies gets, takes 1 s: none takes nothing, and none twice as long.
#[test]
fn one_call_that_is_left_to_copies_is_one_call() {
    let mut model = read(
        "G \"\" 1e-05 50 10 0.9 -1\nP 2\n  p own i\n  p far i\n-1\nT 2\n  t web i page -1 own\n  t store i read -1 far r 2\n  \
         O web store 2\n  I store web 1\n-1\nE 2\n  a page 0.5\n  s page 0 -1\n  y page read 0.5 -1\n  s read 1 -1\n  c read 0 -1\n-1\n",
    );
    let Body::Phases(phases) = &mut model.entries[0].body else { panic!("it has phases") };
    phases[0].call_order = CallOrder::Bernoulli;
    let results = simulate(&model, &SimulateOptions::default()).expect("the model can be simulated");
    let simulated = results.simulated.expect("it was simulated");
    for found in simulated.percentiles.iter().flat_map(|own| &own.values) {
        assert!((found.time - 1.0).abs() < 0.02, "{found:?}");
    }
    assert!(!simulated.percentiles.is_empty());
    // Other languages of models cannot say so, nor take it for an error.
    assert!(lint::check(&model).iter().all(|finding| !finding.message.contains("no whole number")));
    assert!(!text::write(&model).contains("  f page"));
}

#[test]
fn locks_have_several_readers_or_one_writer() {
    // Three readers and two writers, each with a processor of its own; the lock has two threads for readers.
    let model = read(
        "G \"\" 1e-05 50 10 0.9 -1\nP 2\n  p own i\n  p lock i\n-1\nT 3\n  t readers r read -1 own z 1 m 3\n  \
         t writers r write -1 own z 2 m 2\n  t lock W rl ru wl wu -1 lock m 2\n-1\nE 6\n  R rl\n  U ru\n  W wl\n  X wu\n  \
         s rl 0.1 -1\n  s ru 0.2 -1\n  s wl 0.1 -1\n  s wu 0.3 -1\n  A read r1\n  A write w1\n-1\n\
         A readers\n  s r1 0\n  f r1 1\n  y r1 rl 1\n  s r2 0.8\n  s r3 0\n  f r3 1\n  y r3 ru 1\n:\n  r1 -> r2;\n  r2 -> r3\n-1\n\
         A writers\n  s w1 0\n  f w1 1\n  y w1 wl 1\n  s w2 0.5\n  s w3 0\n  f w3 1\n  y w3 wu 1\n:\n  w1 -> w2;\n  w2 -> w3\n-1\n",
    );
    let exact = layered(&model, &LayeredOptions::default()).expect("it has few states");
    assert!(exact.convergence.method.starts_with("exact Markov chain"), "{}", exact.convergence.method);
    let options = SimulateOptions { precision: 0.005, ..SimulateOptions::default() };
    let results = simulate(&model, &options).expect("locks are simulated");
    for (task, (found, exact)) in model.tasks.iter().zip(results.tasks.iter().zip(&exact.tasks)) {
        let off = (found.throughput / exact.throughput - 1.0).abs();
        assert!(off < 0.01, "{}: {} for {}", task.name, found.throughput, exact.throughput);
    }
}
