//! Sweeps over the case study of the 1998 paper, from its trace and its configuration: points from their neighbours'
//! solutions against points from scratch. The bar is a thousand points a second on one core, the making of each model
//! included.

use std::sync::Arc;
use std::time::Instant;

use dyelog::model::parameter::{Asked, Change, Subject, Value};
use dyelog::study::sweep::{Grid, SweepOptions, sweep};
use dyelog::tlc::{ReduceOptions, Reducer, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};

const TRACE: &str = include_str!("../traces/case-study.angio");
const CONFIGURATION: &str = include_str!("../examples/case-study.toml");

fn case_study() -> Subject {
    let rules = Rules::shipped();
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(&rules, ReduceOptions::default());
    read("case-study.angio", TRACE.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer)
        .expect("it is golden");
    let submodel = reducer.finish(&names).expect("it is golden").submodel;
    let file = Arc::from("case-study.toml");
    Subject::of_traces(submodel, &file, CONFIGURATION, true).expect("it is a model")
}

fn main() {
    let subject = case_study();
    for (name, asked) in [
        ("1,000 demands, 20 customers", vec!["parameters.translation=2.5 ms..5 ms in 1000"]),
        ("1 to 1,000 customers", vec!["scenario.set-up.population=1..1000"]),
        (
            "1 to 100 customers, 10 demands",
            vec!["parameters.translation=2.5 ms..5 ms in 10", "scenario.set-up.population=1..100"],
        ),
        (
            "10 populations, 100 demands",
            vec!["scenario.set-up.population=5..50 step 5", "parameters.translation=2.5 ms..5 ms in 100"],
        ),
    ] {
        let axes: Vec<_> = asked.iter().map(|text| subject.axis(text).expect("it is a parameter")).collect();
        let seconds = |warm: bool, every: usize| {
            let thin = |axis: &[Value]| -> Vec<Value> {
                axis.iter().step_by(if axis.len() > 10 { every } else { 1 }).cloned().collect()
            };
            let values: Vec<Vec<Value>> = axes.iter().map(|(_, axis)| thin(&axis.values)).collect();
            let numbers = |axis: &Vec<Value>| axis.iter().filter_map(Value::number).collect();
            let grid = Grid { axes: values.iter().map(numbers).collect() };
            let build = |at: &[usize]| {
                let change = |(axis, at): (usize, &usize)| Change {
                    path: axes[axis].0.clone(),
                    value: values[axis][*at].clone(),
                };
                subject.ask(&at.iter().enumerate().map(change).collect::<Vec<_>>())
            };
            let start = Instant::now();
            let options = SweepOptions { warm, ..SweepOptions::default() };
            let read = |_: &Asked, results: &dyelog::lqn::results::Results| {
                (results.convergence.converged, results.convergence.iterations)
            };
            let found: Vec<(bool, u32)> = sweep(&grid, &options, build, read, &|| ()).into_iter().flatten().collect();
            let taken = start.elapsed().as_secs_f64();
            let converged = found.iter().filter(|(converged, _)| *converged).count();
            let iterations: u32 = found.iter().map(|(_, iterations)| iterations).sum();
            (taken, found.len(), converged, f64::from(iterations) / found.len() as f64)
        };
        let (warm, points, converged, steps) = seconds(true, 1);
        // From scratch a tenth of the points tells enough.
        let (cold, of, _, cold_steps) = seconds(false, 10);
        let (warm_rate, cold_rate) = (points as f64 / warm, of as f64 / cold);
        println!(
            "{name}: {points} points in {warm:.3} s on one core ({converged} converged, {steps:.1} iterations each), \
             {warm_rate:.0} points/s; from scratch {cold_rate:.0} points/s ({cold_steps:.1} iterations): {:.1} times as fast",
            warm_rate / cold_rate
        );
    }
    let start = Instant::now();
    for _ in 0..1000 {
        std::hint::black_box(subject.ask(&[]).expect("it is a model"));
    }
    println!("making 1,000 models: {:.3} s", start.elapsed().as_secs_f64());
}
