//! How fast the simulator is: entry invocations a second on one core, on a model of two tasks and on larger ones, against the
//! least that a simulator has to do for as many events: draw an exponential, put an event into a queue and take the first out.

use std::collections::BinaryHeap;
use std::sync::LazyLock;
use std::time::Instant;

use dyelog::lqn::text;
use dyelog::solve::{SimulateOptions, simulate};

/// Ten customers who think and call a server, the model of most tutorials.
const TWO_TASKS: &str = r#"
G "two tasks" 1e-05 50 10 0.9 -1
P 2
  p client i
  p server f
-1
T 2
  t client r think -1 client z 10 m 10
  t server n serve -1 server
-1
E 0
  s think 1 -1
  y think serve 1 -1
  s serve 1 -1
-1
"#;

/// As before, with three tiers of threads, a second phase and a shared processor.
const THREE_TIERS: &str = r#"
G "three tiers" 1e-05 50 10 0.9 -1
P 4
  p users i
  p web s 0.01
  p app f m 2
  p db f
-1
T 4
  t users r go -1 users z 5 m 50
  t web n page -1 web m 20
  t app n order list -1 app m 8
  t db n query -1 db m 4
-1
E 0
  s go 0 -1
  y go page 1 -1
  s page 0.02 -1
  y page order 0.2 -1
  y page list 1.1 -1
  s order 0.03 0.02 -1
  y order query 2 1 -1
  s list 0.01 -1
  y list query 3 -1
  s query 0.005 -1
-1
"#;

/// Seconds that this program has been on a processor, where the system tells it in the way of Linux; else those that went by.
fn seconds() -> f64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let begin = *BEGIN;
    let ticks = |stat: String| -> Option<f64> {
        // After the name in brackets, the 12th and 13th are ticks in the program and in the system, by the hundredth.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let [user, system] = [fields.next()?.parse::<f64>().ok()?, fields.next()?.parse::<f64>().ok()?];
        Some((user + system) / 100.0)
    };
    std::fs::read_to_string("/proc/self/stat").ok().and_then(ticks).unwrap_or_else(|| begin.elapsed().as_secs_f64())
}

/// The bare loop: as many events through a heap of as many timers.
fn baseline(events: u64, timers: usize) -> f64 {
    let mut state = 1_u64;
    let mut exponential = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        -(((state >> 11) + 1) as f64 / 9_007_199_254_740_992.0).ln()
    };
    // Times as bits of positive numbers are in their order; the heap has the greatest first.
    let mut heap: BinaryHeap<(u64, usize)> = (0..timers).map(|timer| (!exponential().to_bits(), timer)).collect();
    let begin = seconds();
    for _ in 0..events {
        let Some((time, timer)) = heap.pop() else { break };
        heap.push((!(f64::from_bits(!time) + exponential()).to_bits(), timer));
    }
    let spent = seconds() - begin;
    assert_eq!(heap.len(), timers);
    spent
}

fn main() {
    println!(
        "{:12} {:>10} {:>12} {:>14} {:>14} {:>16}",
        "model", "events", "invocations", "events/s", "invocations/s", "bare loop events/s"
    );
    for (name, source, timers) in [("two tasks", TWO_TASKS, 10), ("three tiers", THREE_TIERS, 60)] {
        let (model, _) = text::parse(name, source).expect("the model is well-formed");
        let options =
            SimulateOptions { precision: 1e-9, replications: 1, events: 8_000_000, ..SimulateOptions::default() };
        let begin = seconds();
        let results = simulate(&model, &options).expect("the model can be simulated");
        let spent = seconds() - begin;
        let simulated = results.simulated.as_ref().expect("it was simulated");
        // Invocations in the time that was measured stand for those in all events.
        let rate: f64 = results.entries.iter().map(|entry| entry.throughput).sum();
        let whole = simulated.time + simulated.warm_up;
        let invocations = rate * whole;
        let events = simulated.events as f64;
        let bare = events / baseline(simulated.events, timers);
        println!(
            "{name:12} {events:10.3e} {invocations:12.3e} {:14.3e} {:14.3e} {bare:16.3e}",
            events / spent,
            invocations / spent
        );
    }
}
