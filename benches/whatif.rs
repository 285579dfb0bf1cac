//! Sweeps over a model of eleven tasks on three processors, as that of the case study: points from their neighbours'
//! solutions against points from scratch.

use std::time::Instant;

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Forwarding, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task,
    TaskId, Work,
};
use dyelog::solve::sweep::{Grid, SweepOptions, sweep};

/// Customers who call the heads of two pipelines of ten tasks in opposite directions; the fourth asks an eleventh task.
fn model(customers: u32, translate: f64) -> Model {
    let mut model = Model::default();
    model.processors.push(Processor::new("customers", Scheduling::Delay));
    for number in 1..4 {
        model.processors.push(Processor::new(&format!("p{number}"), Scheduling::ProcessorSharing));
    }
    let mut add = |name: &str, processor: u32, scheduling: Scheduling, entries: u32| {
        let task = TaskId::from(model.tasks.len());
        model.tasks.push(Task::new(name, ProcessorId(processor), scheduling));
        for number in 0..entries {
            let id = EntryId::from(model.entries.len());
            model.tasks[task.index()].entries.push(id);
            let mut entry = Entry::new(&format!("{name}.{number}"), task);
            entry.body = Body::Phases(vec![Work { demand: 0.001, ..Work::default() }]);
            model.entries.push(entry);
        }
    };
    add("customers", 0, Scheduling::Reference, 1);
    for number in 0..10 {
        add(&format!("t{number}"), [1, 1, 1, 1, 3, 3, 2, 2, 2, 2][number], Scheduling::Fcfs, 2);
    }
    add("translate", 3, Scheduling::Fcfs, 1);
    let last = EntryId::from(model.entries.len() - 1);
    let call = |to: EntryId, mean: f64| Call { to, kind: CallKind::Synchronous, mean };
    // Entries of task n are 2n + 1 on the way there and 2n + 2 on the way back.
    let ways: [Vec<usize>; 2] =
        [(0..10).map(|task| 2 * task + 1).collect(), (0..10).rev().map(|task| 2 * task + 2).collect()];
    for way in &ways {
        for pair in way.windows(2) {
            model.entries[pair[0]].forwarding = vec![Forwarding { to: EntryId::from(pair[1]), probability: 1.0 }];
        }
    }
    let heads = ways.map(|way| call(EntryId::from(way[0]), 2.0)).to_vec();
    model.entries[0].body = Body::Phases(vec![Work { calls: heads, ..Work::default() }]);
    model.entries[7].body = Body::Phases(vec![Work { demand: 0.001, calls: vec![call(last, 0.5)], ..Work::default() }]);
    model.entries[last.index()].body = Body::Phases(vec![Work { demand: translate, ..Work::default() }]);
    model.tasks[0].multiplicity = Multiplicity::Finite(customers);
    model.tasks[0].think_time = 1.0;
    model
}

fn main() {
    let even = |from: f64, to: f64, count: u32| -> Vec<f64> {
        (0..count).map(|step| from + (to - from) * f64::from(step) / f64::from(count - 1)).collect()
    };
    for (name, demands, customers) in [
        ("1,000 demands, 40 customers", even(0.0025, 0.005, 1000), vec![40.0]),
        ("1 to 100 customers, 10 demands", even(0.0025, 0.005, 10), even(1.0, 100.0, 100)),
        ("1 to 1,000 customers, one demand", vec![0.0025], even(1.0, 1000.0, 1000)),
    ] {
        let one = |axis: &[f64]| axis.len() == 1;
        let axes = if one(&customers) { [customers, demands] } else { [demands, customers] };
        let swapped = one(&axes[0]) && axes[0][0] >= 1.0;
        let seconds = |warm: bool, every: usize| {
            let thin = |axis: &[f64]| axis.iter().copied().step_by(if axis.len() > 10 { every } else { 1 }).collect();
            let grid = Grid { axes: axes.iter().map(|axis| thin(axis)).collect() };
            let build = |at: &[usize]| {
                let values = [grid.axes[0][at[0]], grid.axes[1][at[1]]];
                let (customers, demand) = if swapped { (values[0], values[1]) } else { (values[1], values[0]) };
                Ok(model(customers as u32, demand))
            };
            let start = Instant::now();
            let options = SweepOptions { warm, ..SweepOptions::default() };
            let found = sweep(&grid, &options, build, |_: &Model, results| results.convergence.converged, &|| ());
            let converged = found.iter().filter(|point| matches!(point, Ok(true))).count();
            (start.elapsed().as_secs_f64(), found.len(), converged)
        };
        let (warm, points, converged) = seconds(true, 1);
        // From scratch a tenth of the points tells enough.
        let (cold, of, _) = seconds(false, 10);
        let (warm_rate, cold_rate) = (points as f64 / warm, of as f64 / cold);
        println!(
            "{name}: {points} points in {warm:.3} s on one core ({converged} converged), {warm_rate:.0} points/s; from \
             scratch {cold_rate:.0} points/s: {:.1} times as fast",
            warm_rate / cold_rate
        );
    }
}
