//! A model of 1,000 tasks read, written and checked: `cargo bench -p dyelog-lqn`.

use divan::{Bencher, black_box};
use dyelog_lqn::Language;
use dyelog_lqn::lint;
use dyelog_lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};

fn main() {
    divan::main();
}

/// A client, and so many tasks, each of which calls the next two.
fn generate(tasks: u32) -> Model {
    let mut model = Model::default();
    for number in 0..tasks {
        model.processors.push(Processor::new(&format!("p{number}"), Scheduling::ProcessorSharing));
        let scheduling = if number == 0 { Scheduling::Reference } else { Scheduling::Fcfs };
        let mut task = Task::new(&format!("t{number}"), ProcessorId(number), scheduling);
        task.entries = vec![EntryId(number)];
        model.tasks.push(task);
        let next = (number + 1)..tasks.min(number + 3);
        let calls = next.map(|to| Call { to: EntryId(to), kind: CallKind::Synchronous, mean: 0.5 }).collect();
        let mut entry = Entry::new(&format!("e{number}"), TaskId(number));
        entry.body = Body::Phases(vec![Work { demand: 0.001, calls, ..Work::default() }]);
        model.entries.push(entry);
    }
    model
}

const TASKS: u32 = 1000;

#[divan::bench(args = Language::ALL)]
fn write(bencher: Bencher, language: Language) {
    let model = generate(TASKS);
    bencher.bench_local(|| language.write(black_box(&model)).len());
}

#[divan::bench(args = Language::ALL)]
fn read(bencher: Bencher, language: Language) {
    let text = language.write(&generate(TASKS));
    bencher
        .bench_local(|| language.parse("generated", black_box(&text)).expect("it was written just now").0.tasks.len());
}

#[divan::bench]
fn check(bencher: Bencher) {
    let model = generate(TASKS);
    bencher.bench_local(|| lint::check(black_box(&model)).len());
}
