//! Probe records (format `calls`) as operations: each call of the Global Virtual Main is one.
//!
//! | records | events |
//! |---|---|
//! | synchronous call | `Ac` of the caller, `Ac` … `Ac` of the function's process, `Ac` of the caller, in one thread |
//! | collocated call | `Ac` of the caller, with the function's name |
//! | one-way call | `Fk(k)`, `Ac` of the caller; `Be` … `Ed` of the function's process in thread k |
//! | thread, branch | `Fk(k)`, `Ac` of the function; `Be` … `Ed` of the same process in k; `Jn(k)` where the function waits for it |
//!
//! A process is a task. The processor time that a call spent itself is the CPU demand of its first activity, so waiting is no part of it. What
//! a process used beside its functions, as far as records tell, is the work of stubs, skeletons and the runtime. Each end of a call between processes is
//! taken to need the same share of it: half of it before the function or the call, half behind, out of the time on the way. Between processes of one
//! processor the rest of the way is that of the shortest; the others waited for the processor.
//!
//! A function that is away from the processor while it meets no other work waits for what no record names: a lock, a device, a timer. That time is a pause of its
//! first activity, in each invocation as long as in one of those. What functions wait beyond it is queueing, which solvers tell.
//!
//! A thread that ended before its function did is joined: before the first of its later calls that begin, in 98 of 100 invocations, only when all threads
//! before them have ended, else at the function's end. One that ended later, by the clock on the wall, is not. Without that clock all are taken as joined at the end. Clocks of callers and functions need not agree: the interval of a function that does not lie
//! within that of its call is moved to the middle of it.
//!
//! All chains are held in memory until the last record, in proportion to the calls.

mod emit;
mod joins;
mod pauses;
mod runtime;
mod spans;

pub use spans::{SpanCalls, SpanOperations};

use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog_callgraph::{CallTree, Input, Kind as Damage, Options, Profile, analyse};
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place};

use self::emit::Emitter;
use crate::read::{ReadReport, Sink};
use crate::{TraceNames, codes};

/// Reads files of records as one trace.
///
/// # Errors
/// When a file cannot be read to its end, or none holds a record; where `strict`, when anything is damaged.
pub(crate) fn read(
    files: Vec<Input<'_>>,
    strict: bool,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let options = Options { keep_calls: usize::MAX, ..Options::default() };
    let profile = analyse(files, &options)?;
    let calls = profile.calls.as_ref().expect("they were asked for");
    operations_of(&profile, calls, strict, names, sink)
}

/// The operations of an analysis, from its calls or from those that a change made of them.
///
/// # Errors
/// Where `strict`, when anything is damaged.
pub fn operations_of(
    profile: &Profile,
    calls: &CallTree,
    strict: bool,
    names: &mut TraceNames,
    sink: &mut dyn Sink,
) -> Result<ReadReport, Diagnostics> {
    let mut report = ReadReport { records: profile.reading.records, ..ReadReport::default() };
    report.findings.extend(profile.reading.findings.iter().cloned());
    damage(profile, &mut report);
    let mut emitter = Emitter::new(profile, calls);
    for root in 0..calls.calls().len() {
        if calls.parent(root).is_some() {
            continue;
        }
        if let Some(bad) = emitter.damaged(root) {
            report.count("operation with a damaged call", || set_aside(profile, calls, root, bad));
            continue;
        }
        let operation = emitter.operation(root, names);
        report.operations += 1;
        report.events += operation.events.len() as u64;
        if sink.operation(names, operation) == ControlFlow::Break(()) {
            break;
        }
    }
    if strict && !(report.findings.is_empty() && report.counted.is_empty()) {
        return Err(Diagnostics(report.findings));
    }
    Ok(report)
}

/// What did not fit the state machine, by kind.
fn damage(profile: &Profile, report: &mut ReadReport) {
    for abnormal in &profile.abnormal {
        // Lines that are no records have findings of their own.
        if abnormal.kind == Damage::Unreadable {
            report.counted.insert(abnormal.kind.says(), abnormal.count);
            continue;
        }
        let place = abnormal.first.as_ref().map_or(Place::Nowhere, |first| {
            let file = profile.reading.files.get(first.file).cloned().unwrap_or_else(|| "".into());
            Place::Line { file, line: first.line, column: 0 }
        });
        report.count(abnormal.kind.says(), || {
            let finding = Diagnostic::warning(codes::CHAIN, place, abnormal.kind.says());
            match &abnormal.first {
                Some(first) => finding.with_note(format!("first at event {} of chain `{}`", first.event, first.chain)),
                None => finding,
            }
        });
        report.counted.insert(abnormal.kind.says(), abnormal.count);
    }
}

fn set_aside(profile: &Profile, calls: &CallTree, root: usize, bad: usize) -> Diagnostic {
    let (root, bad) = (&calls.calls()[root], &calls.calls()[bad]);
    let chain = |call: &dyelog_callgraph::Call| profile.tables().chain_text(call.chain).to_owned();
    let label = |call: &dyelog_callgraph::Call| profile.label(call.key, false);
    let file: Arc<str> = profile.reading.files.first().cloned().unwrap_or_else(|| "".into());
    let place = Place::Item { file, item: format!("chain {}, event {}", chain(root), root.event) };
    let why = if bad.complete { "its time cannot be told" } else { "it has no end" };
    Diagnostic::warning(codes::DAMAGED_CALL, place, format!("this call of `{}` is left out", label(root)))
        .with_note(format!("`{}` at event {} of chain {}: {why}", label(bad), bad.event, chain(bad)))
}
