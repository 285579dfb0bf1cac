//! Reading, and what to look at.

use std::fmt::Write as _;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dyelog::diagnostic::Diagnostics;
use dyelog::pipeline::{Input, Meter, Reading, read_operations};
use dyelog::trace::spans::{self, SpanOptions};
use dyelog::trace::{Format, Kind, Operation, ReadReport, Toeg, TraceNames};

/// What a reader gave.
#[derive(Debug)]
pub struct Outcome {
    pub names: TraceNames,
    pub operations: Vec<Operation>,
    pub report: ReadReport,
}

/// Reads by the reader that the file's name calls for, and checks that every operation is well-formed.
pub fn read(file: &str, input: impl Read) -> Result<Outcome, Diagnostics> {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut sink = |_: &TraceNames, operation| {
        operations.push(operation);
        ControlFlow::Continue(())
    };
    let options = SpanOptions::default();
    let named = |parts: &[&str]| parts.iter().any(|part| file.contains(part));
    let format = if named(&["/jaeger/", ".jaeger.", "otlp2jaeger-out"]) || file == "jaeger" {
        Format::Jaeger
    } else if named(&["zipkin"]) {
        Format::Zipkin
    } else if named(&[".csv"]) {
        Format::SpansCsv
    } else {
        Format::Otlp
    };
    let report = spans::read(format, file, input, options, &mut names, &mut sink)?;
    for operation in &operations {
        assert_well_formed(&names, operation);
    }
    Ok(Outcome { names, operations, report })
}

/// Reads several files as one trace, as commands do.
pub fn read_together(files: &[String]) -> Result<Outcome, Diagnostics> {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut sink = |_: &TraceNames, operation| {
        operations.push(operation);
        ControlFlow::Continue(())
    };
    let inputs: Vec<Input> =
        files.iter().enumerate().map(|(at, text)| Input::new(&format!("{at}.json"), text)).collect();
    let meter: Arc<dyn Meter> = Arc::new(());
    let report = read_operations(&inputs, None, &Reading::default(), &meter, &mut names, &mut sink)?;
    Ok(Outcome { names, operations, report })
}

/// Reads a file, unpacked where its name says so.
pub fn read_file(path: &Path) -> Result<Outcome, Diagnostics> {
    let name = path.to_string_lossy();
    let bytes = std::fs::read(path).expect("the file can be read");
    if name.ends_with(".gz") {
        read(&name, flate2::read::MultiGzDecoder::new(bytes.as_slice()))
    } else {
        read(&name, bytes.as_slice())
    }
}

/// What any operation must be: a TOEG, dense counters, each thread from `Be` to `Ed`, times that follow causality.
pub fn assert_well_formed(names: &TraceNames, operation: &Operation) {
    let graph = Toeg::build(operation.clone());
    assert!(graph.is_ok(), "no TOEG:\n{}", dump_operation(names, operation, Show::Times));
    let mut threads = std::collections::BTreeMap::<u32, Vec<&dyelog::trace::Event>>::new();
    let mut tasks = std::collections::BTreeMap::<u32, Vec<u32>>::new();
    for event in &operation.events {
        threads.entry(event.thread).or_default().push(event);
        tasks.entry(event.task.0).or_default().push(event.counter);
    }
    let mut forked = std::collections::BTreeMap::new();
    for event in &operation.events {
        if let Kind::Fork(thread) = event.kind {
            assert!(forked.insert(thread, event.time).is_none(), "a thread is forked twice");
        }
    }
    for (at, (thread, events)) in threads.iter_mut().enumerate() {
        assert_eq!(*thread as usize, at + 1, "threads are numbered from 1");
        events.sort_by_key(|event| event.index);
        assert!(events.iter().enumerate().all(|(at, event)| event.index as usize == at + 1), "dense in the thread");
        assert_eq!(events[0].kind, Kind::Begin);
        assert_eq!(events.last().expect("never empty").kind, Kind::End);
        assert!(events.windows(2).all(|pair| pair[0].time <= pair[1].time), "time goes on");
        match forked.remove(thread) {
            Some(time) => assert!(time <= events[0].time, "a thread begins after its fork"),
            None => assert_eq!(*thread, 1),
        }
    }
    assert!(forked.is_empty(), "every fork has its thread");
    for counters in tasks.values_mut() {
        counters.sort_unstable();
        assert!(counters.iter().enumerate().all(|(at, counter)| *counter as usize == at + 1), "dense in the task");
    }
}

/// What is shown of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// Label, names, time.
    Times,
    /// Label and names.
    Structure,
}

/// An operation a block, an event a line.
pub fn dump(outcome: &Outcome, show: Show) -> String {
    outcome.operations.iter().map(|operation| dump_operation(&outcome.names, operation, show)).collect()
}

pub fn dump_operation(names: &TraceNames, operation: &Operation, show: Show) -> String {
    let text = |name| names.names.text(name);
    let mut out = format!("operation {:?} run={}", text(operation.scenario), operation.run);
    if show == Show::Times {
        write!(out, " start={}", operation.start.unwrap_or(-1)).expect("a string takes all");
    }
    out.push('\n');
    for event in &operation.events {
        let kind = match event.kind {
            Kind::Begin => "Be".to_owned(),
            Kind::Activity => "Ac".to_owned(),
            Kind::End => "Ed".to_owned(),
            Kind::Fork(thread) => format!("Fk({thread})"),
            Kind::Join(thread) => format!("Jn({thread})"),
        };
        let task = names.task_label(event.task);
        write!(out, "{},{},{kind} | {task},{}", event.thread, event.index, event.counter).expect("a string takes all");
        if event.service.is_some() {
            write!(out, " op={:?}", text(event.service)).expect("a string takes all");
        }
        if event.activity.is_some() {
            write!(out, " name={:?}", text(event.activity)).expect("a string takes all");
        }
        if !event.cpu.is_nan() {
            write!(out, " cpu={}", event.cpu).expect("a string takes all");
        }
        if show == Show::Times {
            write!(out, " t={}", event.time).expect("a string takes all");
            if event.pause > 0.0 {
                write!(out, " pause={}", event.pause).expect("a string takes all");
            }
        }
        out.push('\n');
    }
    out
}
