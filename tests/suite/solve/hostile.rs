//! Models that a careless solver breaks on.

use std::sync::Arc;

use dyelog::lqn::model::{
    Body, Call, CallKind, Entry, EntryId, Model, Multiplicity, Processor, ProcessorId, Scheduling, Task, TaskId, Work,
};
use dyelog::solve::{LayeredOptions, layered};

use super::closed_forms::model;

/// A model with one client whose entry calls `widths` and in which entry i calls i+1 where `chained`, on tasks of their own.
fn chain(length: u32, threads: Multiplicity, chained: bool) -> Model {
    let mut model = Model::default();
    for (index, name) in [(0, "client"), (1, "server")] {
        let scheduling = if index == 0 { Scheduling::Delay } else { Scheduling::ProcessorSharing };
        model.processors.push(Processor::new(name, scheduling));
    }
    for index in 0..=length {
        let source = index == 0;
        let mut task = Task::new(
            &format!("t{index}"),
            ProcessorId(u32::from(!source)),
            if source { Scheduling::Reference } else { Scheduling::Fcfs },
        );
        task.multiplicity = if source { Multiplicity::Finite(3) } else { threads };
        task.think_time = 1.0;
        task.entries = vec![EntryId(index)];
        model.tasks.push(task);
        let mut entry = Entry::new(&format!("e{index}"), TaskId(index));
        let call = |to| Call { to: EntryId(to), kind: CallKind::Synchronous, mean: 1.0 };
        let calls = match (chained, source) {
            (true, _) if index < length => vec![call(index + 1)],
            (false, true) => (1..=length).map(call).collect(),
            _ => Vec::new(),
        };
        entry.body = Body::Phases(vec![Work { demand: 1e-6, calls, ..Work::default() }]);
        model.entries.push(entry);
    }
    model
}

#[test]
fn a_deep_chain_of_calls_needs_no_stack() {
    let model = chain(100_000, Multiplicity::Infinite, true);
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    assert!(results.convergence.converged, "{:?}", results.convergence);
    assert!((results.tasks[100_000].throughput - results.tasks[0].throughput).abs() < 1e-6);
}

#[test]
fn many_entries_are_no_trouble() {
    let model = chain(100_000, Multiplicity::Infinite, false);
    let results = layered(&model, &LayeredOptions::default()).expect("it can be solved");
    assert!(results.convergence.converged, "{:?}", results.convergence);
}

#[test]
fn a_deep_chain_of_single_threads_ends() {
    let model = chain(300, Multiplicity::Finite(1), true);
    let results = layered(&model, &LayeredOptions::default()).expect("it has an answer");
    assert!(results.tasks[0].throughput > 0.0);
}

#[test]
fn huge_populations_are_solved() {
    let text = "P 0 p client i p a f -1 T 0 t client r go -1 client z 100 m 1000000 t a n work -1 a m 50 -1
                E 0 s go 1 -1 y go work 2 -1 s work 0.01 -1 -1";
    let results = layered(&model(text), &LayeredOptions::default()).expect("it can be solved");
    let throughput = results.tasks[0].throughput;
    assert!((throughput - 50.0).abs() < 0.5, "{throughput}: the processor's bound is 50; {:?}", results.convergence);
}

#[test]
fn zero_demands_are_fine_as_long_as_the_source_takes_time() {
    let text = "P 0 p client i p a f -1 T 0 t client r go -1 client z 2 m 4 t a n work -1 a -1
                E 0 s go 0 -1 y go work 1 -1 s work 0 -1 -1";
    let results = layered(&model(text), &LayeredOptions::default()).expect("it can be solved");
    assert!((results.tasks[0].throughput - 2.0).abs() < 1e-6, "{:?}", results.tasks);
    assert_eq!(results.entries[1].service[0], 0.0);
}

#[test]
fn a_cycle_that_takes_no_time_is_refused() {
    let text = "P 0 p client i p a f -1 T 0 t client r go -1 client m 4 t a n work -1 a -1
                E 0 s go 0 -1 y go work 1 -1 s work 0 -1 -1";
    let error = layered(&model(text), &LayeredOptions::default()).expect_err("its throughput is infinite");
    assert!(error.to_string().contains("S004") && error.to_string().contains("`client`"), "{error}");
}

#[test]
fn calls_in_a_cycle_are_refused_by_name() {
    let mut cyclic = chain(5, Multiplicity::Infinite, true);
    let Body::Phases(phases) = &mut cyclic.entries[5].body else { unreachable!("entries of the test have phases") };
    phases[0].calls.push(Call { to: EntryId(3), kind: CallKind::Synchronous, mean: 0.5 });
    let error = layered(&cyclic, &LayeredOptions::default()).expect_err("it waits for itself");
    assert!(error.to_string().contains("S003") && error.to_string().contains("e3 → e4 → e5"), "{error}");
}

#[test]
fn a_task_that_waits_for_itself_until_nothing_moves_is_named() {
    let text = |threads: &str, load: &str| {
        format!(
            "P 0 p cpu i -1 T 0 t shop n buy price -1 cpu {threads} t stock n look -1 cpu -1
             E 0 a buy {load} s buy 1 -1 y buy look 1 -1 s look 1 -1 y look price 1 -1 s price 1 -1 -1"
        )
    };
    for (threads, load) in [("", "0.1"), ("", "0.2"), ("m 2", "0.9")] {
        let told = layered(&model(&text(threads, load)), &LayeredOptions::default());
        let error = told.expect_err("the waits of its thread have no end").to_string();
        assert!(error.contains("S009") && error.contains("`shop`") && error.contains("`price`"), "{error}");
    }
    // Threads without limit are never all out.
    layered(&model(&text("i", "0.1")), &LayeredOptions::default()).expect("one more thread answers");
}

#[test]
fn numbers_that_are_none_are_refused_all_at_once() {
    let mut broken = chain(3, Multiplicity::Infinite, true);
    for (entry, demand) in [(1, f64::NAN), (2, -1.0), (3, f64::INFINITY)] {
        let Body::Phases(phases) = &mut broken.entries[entry].body else {
            unreachable!("entries of the test have phases")
        };
        phases[0].demand = demand;
    }
    broken.processors[1].speed = 0.0;
    let error = layered(&broken, &LayeredOptions::default()).expect_err("these are no numbers");
    assert_eq!(error.0.iter().filter(|finding| finding.code.0 == "S001").count(), 4, "{error}");
}

#[test]
fn dangling_indices_are_refused() {
    let mut broken = chain(3, Multiplicity::Infinite, true);
    broken.entries[2].task = TaskId(77);
    broken.tasks[1].processor = ProcessorId(9);
    let error = layered(&broken, &LayeredOptions::default()).expect_err("they lead nowhere");
    assert!(error.0.iter().all(|finding| finding.code.0 == "S002") && error.0.len() == 2, "{error}");
}

#[test]
fn nothing_at_all_has_no_load() {
    let results = layered(&Model::default(), &LayeredOptions::default()).expect("an empty model has an empty answer");
    assert!(results.caveats.iter().any(|doubt| doubt.contains("no load")), "{:?}", results.caveats);
}

#[test]
fn names_may_be_anything() {
    let mut odd = chain(2, Multiplicity::Finite(1), true);
    odd.tasks[1].name = Arc::from("");
    odd.tasks[2].name = Arc::from("\u{0}→`");
    assert!(layered(&odd, &LayeredOptions::default()).is_ok());
}

#[test]
fn second_phases_without_limit_do_not_stop_the_flow() {
    // A first guess of the throughput fills the processor with second phases several times over.
    for scheduling in ["f", "h", "p"] {
        let model = model(&format!(
            "P 0 p a i p b {scheduling} -1 T 0 t user r go -1 a m 9 t front n f -1 a t back i w -1 b -1
             E 0 y go f 1 -1 s f 0.3 -1 y f w 0.8 -1 s w 0.5 0.7 -1 -1"
        ));
        let results =
            layered(&model, &LayeredOptions { states: 0, ..LayeredOptions::default() }).expect("it is solved");
        let throughput = results.tasks[0].throughput;
        assert!((0.5..1.05).contains(&throughput), "{scheduling}: {throughput} {:?}", results.caveats);
    }
}

#[test]
fn what_a_cap_makes_impossible_is_told() {
    for (rate, fine) in [(0.05, true), (0.3, false)] {
        let model = model(&format!(
            "P 0 p a c 0.01 -1 U 0 g gold 0.9 c a g cheap 0.1 c a -1 T 0 t one i x -1 a g gold t two i y -1 a g cheap -1
             E 0 a x 0.2 s x 1 -1 a y {rate} s y 1 -1 -1"
        ));
        let results = layered(&model, &LayeredOptions::default()).expect("it is solved");
        assert_eq!((results.convergence.converged, results.convergence.saturated), (fine, !fine), "{rate}");
        assert_eq!(results.caveats.iter().any(|doubt| doubt.contains("group `cheap`")), !fine, "{:?}", results.caveats);
        let told = dyelog::lqn::lint::check(&model);
        assert_eq!(told.iter().any(|finding| finding.code.0 == "L118"), !fine, "{told:?}");
    }
}
