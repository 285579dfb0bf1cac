//! The case study of the 1998 paper (§7): from its trace to the curves of its Figure 10.

use std::fmt::Write as _;

use dyelog::lqn::submodel::SubModel;
use dyelog::model::{Configuration, complete};
use dyelog::solve::{LayeredOptions, layered};
use dyelog::tlc::{ReduceOptions, Rules};

use crate::tlc::{bundled, reduce};

/// CPU time of one set-up at each of the processors 1 and 2, seconds: four tasks, each with two visits of two entries.
const LARGEST_DEMAND: f64 = 0.016;
/// Time between set-ups of one subscriber, seconds.
const THINK_TIME: f64 = 1.0;
/// Subscribers.
const LOADS: [u32; 11] = [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

fn submodel() -> SubModel {
    reduce(&bundled("case-study.angio"), &Rules::shipped(), ReduceOptions::default()).submodel
}

fn configuration(population: u32, translation: &str) -> Configuration {
    let text = include_str!("../../examples/case-study.toml")
        .replace("population = 20", &format!("population = {population}"))
        .replace("\"2.5 ms\"", &format!("\"{translation}\""));
    Configuration::parse(&"case-study.toml".into(), &text).expect("the example is sound").0
}

/// Set-ups per second, and the mean response time of one, for each load.
fn curve(sub: &SubModel, translation: &str) -> Vec<(f64, f64)> {
    let points = LOADS.iter().map(|&population| {
        let (model, findings, _) =
            complete(sub, &configuration(population, translation)).expect("there is an operation");
        assert_eq!(findings, [], "the configuration says all that there is to say");
        let results = layered(&model, &LayeredOptions::default()).expect("the model can be solved");
        assert!(results.convergence.converged, "{population} subscribers");
        let customer = model.task_named("Cu_set-up").expect("there is a customer");
        let throughput = results.tasks[customer.index()].throughput;
        (throughput, f64::from(population) / throughput - THINK_TIME)
    });
    points.collect()
}

#[test]
fn the_curves_of_figure_10() {
    let sub = submodel();
    let (fast, slow) = (curve(&sub, "2.5 ms"), curve(&sub, "5 ms"));
    for (curve, alone) in [(&fast, 0.0425), (&slow, 0.045)] {
        assert!((curve[0].1 - alone).abs() < 1e-6, "alone, nobody waits: {:?}", curve[0]);
        assert!(curve.windows(2).all(|pair| pair[0].1 < pair[1].1), "more load takes longer: {curve:?}");
        assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0), "more subscribers set up more: {curve:?}");
        for (&population, &(throughput, response)) in LOADS.iter().zip(curve.iter()) {
            let population = f64::from(population);
            let bound = (population / (alone + THINK_TIME)).min(1.0 / LARGEST_DEMAND);
            assert!(throughput <= bound * (1.0 + 1e-6), "{throughput} at {population} is beyond the bound {bound}");
            assert!(response >= (population * LARGEST_DEMAND - THINK_TIME) * (1.0 - 1e-6));
        }
        let last = curve[curve.len() - 1].0;
        assert!(last > 0.9 / LARGEST_DEMAND, "{last} is far from saturation");
    }
    assert!(fast.iter().zip(&slow).all(|(fast, slow)| fast.1 < slow.1), "slower translation takes longer");
    let mut table = String::from("subscribers   2.5 ms: 1/s       s     5 ms: 1/s       s\n");
    for ((population, fast), slow) in LOADS.iter().zip(&fast).zip(&slow) {
        let _ = writeln!(table, "{population:11} {:13.2} {:8.4} {:13.2} {:8.4}", fast.0, fast.1, slow.0, slow.1);
    }
    insta::assert_snapshot!(table, @r"
    subscribers   2.5 ms: 1/s       s     5 ms: 1/s       s
              1          0.96   0.0425          0.96   0.0450
             10          9.53   0.0488          9.50   0.0526
             20         18.91   0.0577         18.80   0.0636
             30         28.05   0.0697         27.81   0.0788
             40         36.82   0.0865         36.33   0.1010
             50         44.97   0.1118         44.03   0.1357
             60         52.04   0.1530         50.27   0.1936
             70         57.25   0.2227         54.22   0.2910
             80         60.10   0.3312         56.01   0.4284
             90         61.23   0.4699         56.47   0.5939
            100         61.61   0.6231         56.50   0.7700
    ");
}
