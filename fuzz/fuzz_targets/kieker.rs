#![no_main]
//! Whatever is read as a log of Kieker gives well-formed operations or a reason, and never panics.

use std::ops::ControlFlow;

use dyelog::trace::{Format, Operation, ReadOptions, Toeg, TraceNames, Traces, open};
use libfuzzer_sys::fuzz_target;

/// The classes that records name by their numbers.
const MAP: &[u8] = b"$0=kieker.common.record.misc.KiekerMetadataRecord
$1=kieker.common.record.controlflow.OperationExecutionRecord
$2=kieker.common.record.flow.trace.TraceMetadata
$3=kieker.common.record.flow.trace.operation.BeforeOperationEvent
$4=kieker.common.record.flow.trace.operation.AfterOperationEvent
$5=kieker.common.record.flow.trace.concurrency.SplitEvent
$6=kieker.common.record.flow.trace.concurrency.JoinEvent
$7=kieker.common.record.remotecontrol.BeforeReceivedRemoteEvent
$8=kieker.common.record.flow.trace.concurrency.monitor.MonitorRequestEvent
$9=kieker.common.record.flow.trace.concurrency.monitor.MonitorEntryEvent
";

fuzz_target!(|data: &[u8]| {
    let mut names = TraceNames::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        assert!(Toeg::build(operation).is_ok(), "an operation that is no graph");
        ControlFlow::Continue(())
    };
    let options = ReadOptions { format: Some(Format::Kieker), ..ReadOptions::default() };
    let mut traces = Traces::new(&options, &sink);
    for bytes in [MAP, data] {
        let open = open("fuzz", bytes, &options).expect("a format that is given");
        traces.take(open, &mut names, &mut sink).expect("the pieces of a log are read in the end");
    }
    if let Err(reasons) = traces.finish(&mut names, &mut sink) {
        assert!(!reasons.0.is_empty());
    }
});
