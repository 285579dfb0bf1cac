//! The layered solver on generated models of growing size.

use dyelog_lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};
use dyelog_solve::{LayeredOptions, layered};

fn main() {
    divan::main();
}

/// A small linear congruential generator: the same models on any machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("the remainder is below a 32-bit limit")
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * f64::from(self.below(1 << 20)) / f64::from(1_u32 << 20)
    }
}

/// Clients, then layers of tasks of one to five threads that call tasks of lower layers.
fn generate(clients: u32, tasks: u32, layers: u32) -> Model {
    let mut numbers = Numbers(u64::from(tasks));
    let mut model = Model::default();
    let processors = tasks.div_ceil(2).max(1);
    model.processors.push(Processor::new("clients", Scheduling::Delay));
    for index in 0..processors {
        model.processors.push(Processor::new(&format!("p{index}"), Scheduling::ProcessorSharing));
    }
    for index in 0..clients + tasks {
        let source = index < clients;
        let processor = if source { 0 } else { 1 + numbers.below(processors) };
        let scheduling = if source { Scheduling::Reference } else { Scheduling::Fcfs };
        let mut task = Task::new(&format!("t{index}"), ProcessorId(processor), scheduling);
        task.multiplicity = Multiplicity::Finite(if source { 10 } else { 1 + numbers.below(5) });
        task.think_time = if source { numbers.between(20.0, 60.0) } else { 0.0 };
        task.entries = vec![EntryId(index)];
        model.tasks.push(task);
        let mut entry = Entry::new(&format!("e{index}"), TaskId(index));
        let layer = if source { 0 } else { 1 + (index - clients) * layers / tasks };
        // The first task of the next layer; calls go there or below.
        let next = clients + (layer * tasks).div_ceil(layers);
        let mut calls = Vec::new();
        if layer < layers && next < clients + tasks {
            for _ in 0..2 {
                let to = next + numbers.below((clients + tasks - next).min(tasks.div_ceil(layers)));
                calls.push(Call { to: EntryId(to), kind: CallKind::Synchronous, mean: numbers.between(0.2, 0.8) });
            }
        }
        let demand = if source { 0.0 } else { numbers.between(0.05, 0.3) };
        entry.body = Body::Phases(vec![Work { demand, calls, ..Work::default() }]);
        model.entries.push(entry);
    }
    model
}

#[divan::bench(args = [(2, 8, 2), (10, 50, 4), (100, 1000, 6)], sample_count = 5, sample_size = 1)]
fn generated(bencher: divan::Bencher, (clients, tasks, layers): (u32, u32, u32)) {
    let model = generate(clients, tasks, layers);
    bencher.bench_local(|| layered(divan::black_box(&model), &LayeredOptions::default()).expect("it can be solved"));
}
