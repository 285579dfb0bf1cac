//! Drawing a model of 100 tasks and 1,000 calls. The baseline is the same model written for Graphviz, whose own layout (`dot -Tsvg`)
//! takes what it takes on top.

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};
use dyelog::report::draw::lqn::{LqnOptions, dot, svg};

fn main() {
    divan::main();
}

/// Tasks of three entries each, and so many calls from earlier to later ones.
fn generate(tasks: u32, calls: u32) -> Model {
    let mut state = 1_u64;
    let mut below = |bound: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % u64::from(bound)).expect("the remainder is below a 32-bit limit")
    };
    let mut model = Model::default();
    for number in 0..tasks.div_ceil(4) {
        model.processors.push(Processor::new(&format!("node-{number}"), Scheduling::ProcessorSharing));
    }
    for number in 0..tasks {
        let scheduling = if number < 5 { Scheduling::Reference } else { Scheduling::Fcfs };
        let mut task = Task::new(&format!("service-{number}"), ProcessorId(number / 4), scheduling);
        task.entries = (0..3).map(|entry| EntryId(3 * number + entry)).collect();
        for &id in &task.entries {
            let mut entry = Entry::new(&format!("operation-{}", id.0), TaskId(number));
            entry.body = Body::Phases(vec![Work { demand: 0.001, ..Work::default() }]);
            model.entries.push(entry);
        }
        model.tasks.push(task);
    }
    for _ in 0..calls {
        let from = below(3 * (tasks - 1));
        let next = 3 * (from / 3 + 1);
        let to = EntryId(next + below(3 * tasks - next));
        if let Body::Phases(phases) = &mut model.entries[from as usize].body {
            phases[0].calls.push(Call { to, kind: CallKind::Synchronous, mean: 1.0 });
        }
    }
    model
}

const SIZES: [(u32, u32); 3] = [(10, 40), (100, 300), (100, 1000)];

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn as_svg(bencher: divan::Bencher, (tasks, calls): (u32, u32)) {
    let model = generate(tasks, calls);
    bencher.bench_local(|| svg(divan::black_box(&model), None, &LqnOptions::default()).text.len());
}

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn as_dot(bencher: divan::Bencher, (tasks, calls): (u32, u32)) {
    let model = generate(tasks, calls);
    bencher.bench_local(|| dot(divan::black_box(&model), None, &LqnOptions::default()).text.len());
}
