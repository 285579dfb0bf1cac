//! From batches to results.

use dyelog_lqn::model::EntryId;
use dyelog_lqn::results::{
    ActivityResult, CallResult, Convergence, EntryResult, HalfWidths, Percentile, Percentiles, ProcessorResult,
    Results, Simulated, TaskResult,
};

use dyelog_lqn::sketch::{SKETCH_ERROR, Sketch};

use super::engine::Stop;
use super::estimate::{Estimate, student};
use super::program::{ENTRY_SUMS, OPEN, PROCESSOR_TIME};
use super::random::Times;
use super::run::{Run, SimulateOptions};
use crate::prepare::assemble::gives_back;

/// Responses beyond a percentile without which nobody can tell how sure it is: so many in each replication.
const BEYOND: f64 = 5.0;

/// Figures with their half widths, split in two.
fn split(estimates: [Estimate; 3]) -> ([f64; 3], [f64; 3]) {
    (estimates.map(|estimate| estimate.value), estimates.map(|estimate| estimate.half_width))
}

pub(super) fn results(run: &Run, options: &SimulateOptions) -> Results {
    let program = run.program;
    let model = program.model;
    let batches = &run.batches;
    let copies = |task: usize| f64::from(program.tasks[task].instances.count);
    let mut half = HalfWidths::default();
    let mut entries = Vec::with_capacity(model.entries.len());
    for (number, entry) in program.entries.iter().enumerate() {
        let sum = number * ENTRY_SUMS;
        let per_copy = 1.0 / copies(entry.task as usize);
        let throughput = batches.rate(&[sum]).times(per_copy);
        let (service, service_half) = split([1, 2, 3].map(|phase| batches.mean(sum + phase, sum)));
        let busy = batches.rate(&[sum + 1, sum + 2, sum + 3]).times(per_copy);
        let processor = batches.rate(&[sum + PROCESSOR_TIME]).times(per_copy);
        let open = (entry.open != Times::Zero).then(|| batches.mean(sum + OPEN + 1, sum + OPEN));
        entries.push(EntryResult {
            throughput: throughput.value,
            service,
            utilization: busy.value,
            processor_utilization: processor.value,
            open_response: open.map(|open| open.value),
        });
        half.entries.push(EntryResult {
            throughput: throughput.half_width,
            service: service_half,
            utilization: busy.half_width,
            processor_utilization: processor.half_width,
            open_response: open.map(|open| open.half_width),
        });
    }
    let mut tasks = Vec::with_capacity(model.tasks.len());
    for (number, task) in model.tasks.iter().enumerate() {
        let rate = |of: &[usize]| {
            // A request to give a semaphore or a lock back is not one of its own.
            let counted = |id: &&EntryId| of != [0] || !gives_back(program.entries[id.index()].role);
            let entries = task.entries.iter().filter(counted);
            let sums: Vec<usize> =
                entries.flat_map(|id| of.iter().map(move |sum| id.index() * ENTRY_SUMS + sum)).collect();
            batches.rate(&sums).times(1.0 / copies(number))
        };
        let [throughput, busy, processor] = [rate(&[0]), rate(&[1, 2, 3]), rate(&[PROCESSOR_TIME])];
        let row = |part: fn(Estimate) -> f64| TaskResult {
            throughput: part(throughput),
            utilization: part(busy),
            processor_utilization: part(processor),
        };
        tasks.push(row(|estimate| estimate.value));
        half.tasks.push(row(|estimate| estimate.half_width));
    }
    let mut processors = Vec::with_capacity(model.processors.len());
    let mut sums: Vec<Vec<usize>> = vec![Vec::new(); model.processors.len()];
    for task in &model.tasks {
        sums[task.processor.index()].extend(task.entries.iter().map(|id| id.index() * ENTRY_SUMS + PROCESSOR_TIME));
    }
    for (processor, sums) in model.processors.iter().zip(&sums) {
        let busy = batches.rate(sums).times(1.0 / f64::from(processor.copies()));
        processors.push(ProcessorResult { utilization: busy.value });
        half.processors.push(ProcessorResult { utilization: busy.half_width });
    }
    let mut activities = Vec::with_capacity(model.activities.len());
    for (number, activity) in model.activities.iter().enumerate() {
        let sum = program.layout.activities + 2 * number;
        let throughput = batches.rate(&[sum]).times(1.0 / copies(activity.task.index()));
        let service = batches.mean(sum + 1, sum);
        activities.push(ActivityResult { throughput: throughput.value, service: service.value });
        half.activities.push(ActivityResult { throughput: throughput.half_width, service: service.half_width });
    }
    let mut calls = Vec::with_capacity(program.rows.len());
    for (number, &(from, to, kind)) in program.rows.iter().enumerate() {
        let sum = program.layout.calls + 2 * number;
        let waiting = batches.mean(sum + 1, sum);
        calls.push(CallResult { from, to, kind, waiting: waiting.value });
        half.calls.push(waiting.half_width);
    }
    Results {
        solver: "simulate".into(),
        convergence: convergence(run, options),
        processors,
        tasks,
        entries,
        activities,
        calls,
        caveats: caveats(run, options),
        simulated: Some(simulated(run, options, half)),
    }
}

fn simulated(run: &Run, options: &SimulateOptions, half_widths: HalfWidths) -> Simulated {
    let mut percentiles = Vec::new();
    for entry in 0..run.program.entries.len() {
        let parts = || run.replications.iter().map(|replication| &replication.engine.sketches[entry]);
        let mut all = Sketch::default();
        parts().for_each(|part| all.merge(part));
        if !all.is_empty() {
            let sketches: Vec<&Sketch> = parts().collect();
            let values = options.parts.iter().filter_map(|part| percentile(*part, &all, &sketches)).collect();
            percentiles.push(Percentiles { entry: EntryId::from(entry), count: all.len(), values });
        }
    }
    let warm_ups = run.replications.iter().map(|replication| {
        let series = &replication.engine.series;
        replication.warm_up.unwrap_or(series.len() / 2) as f64 * series.width()
    });
    Simulated {
        seed: options.seed,
        replications: run.replications.len() as u32,
        events: events(run),
        time: run.batches.time,
        warm_up: warm_ups.fold(0.0, f64::max),
        precision: run.precision,
        half_widths,
        percentiles,
    }
}

/// A percentile of all responses, with an interval from those of replications, which are independent of each other.
fn percentile(part: f64, all: &Sketch, replications: &[&Sketch]) -> Option<Percentile> {
    let time = all.quantile(part)?;
    let enough = |sketch: &&&Sketch| sketch.len() as f64 * (1.0 - part).min(part) >= BEYOND;
    let own: Vec<f64> = replications.iter().filter(enough).filter_map(|sketch| sketch.quantile(part)).collect();
    let half_width = (own.len() == replications.len() && own.len() > 1).then(|| {
        let count = own.len() as f64;
        let mean = own.iter().sum::<f64>() / count;
        let variance = own.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        student(own.len() - 1) * (variance / count).sqrt() + SKETCH_ERROR * time
    });
    Some(Percentile { part, time, half_width })
}

fn events(run: &Run) -> u64 {
    run.replications.iter().map(|replication| replication.engine.events).sum()
}

fn convergence(run: &Run, options: &SimulateOptions) -> Convergence {
    let fine = run.replications.iter().all(|replication| replication.stop == Stop::Done);
    Convergence {
        converged: fine && run.precision <= options.precision,
        saturated: run.replications.iter().any(|replication| matches!(replication.stop, Stop::Grows(_))),
        iterations: run.replications.len() as u32,
        residual: run.precision,
        method: format!("{} events in {} replications, seed {}", events(run), run.replications.len(), options.seed),
        exact: false,
    }
}

fn caveats(run: &Run, options: &SimulateOptions) -> Vec<String> {
    let model = run.program.model;
    let mut caveats = run.program.caveats.clone();
    for replication in &run.replications {
        match replication.stop {
            Stop::Grows(instance) => {
                let task = &model.tasks[run.program.instances[instance as usize].task as usize];
                caveats.push(format!(
                    "requests pile up at task `{}`: more arrive than are served, there or further on, so there is no steady state",
                    task.name
                ));
            }
            Stop::Deadlock => {
                caveats.push("all requests wait for each other: the system has come to a standstill".into());
            }
            Stop::Idle => caveats.push("there is no load: no reference task and no open arrivals".into()),
            Stop::Done | Stop::Stands => {}
        }
        if replication.stop != Stop::Done {
            return caveats;
        }
    }
    if run.replications.iter().any(|replication| replication.warm_up.is_none()) {
        caveats.push(format!(
            "no steady state was found in {} events; figures are those of the second half of the simulation",
            events(run)
        ));
    } else if run.precision > options.precision {
        let why = if run.ended { "ended before" } else { "made all its events before" };
        caveats.push(format!(
            "the simulation {why} it reached the precision asked for: {:.2} % instead of {:.2} %",
            100.0 * run.precision,
            100.0 * options.precision
        ));
    }
    caveats
}
