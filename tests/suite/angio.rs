//! The native formats: reading, writing, errors.

use std::ops::ControlFlow;

use dyelog::diagnostic::Diagnostics;
use dyelog::trace::{Format, Operation, ReadOptions, ReadReport, TraceNames, read};

/// Figure 3 of the 1998 paper.
const FIGURE_3: &str = "\
operation a run=1
a,1,1,Be      | A,1
a,1,2,Ac      | A,2   name=lookup t=0.0012 cpu=0.0003
a,1,3,Ac      | A,3
a,1,4,Ac      | B,1   op=\"GET /item\"
a,1,5,Fk(a,2) | B,2
a,1,6,Ac      | B,3
a,1,7,Ac      | A,4
a,1,8,Ed      | A,5
a,2,1,Be      | C,1   instance=2
a,2,2,Ed      | C,2   instance=2
";

fn read_as(
    format: Option<Format>,
    text: &[u8],
    strict: bool,
) -> (Result<ReadReport, Diagnostics>, TraceNames, Vec<Operation>) {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let report =
        read("t.angio", text, &ReadOptions { format, strict }, &mut names, &mut |_: &TraceNames, operation| {
            operations.push(operation);
            ControlFlow::Continue(())
        });
    (report, names, operations)
}

#[test]
fn the_figure_reads() {
    let (report, names, operations) = read_as(None, FIGURE_3.as_bytes(), true);
    let report = report.expect("it is well written");
    assert_eq!((report.operations, report.events, report.records), (1, 10, 10));
    let event = &operations[0].events[1];
    assert_eq!((event.time, event.cpu, event.origin), (0.0012, 0.0003, 3));
    assert_eq!(names.names.text(event.activity), "lookup");
    assert_eq!(names.task_label(operations[0].events[9].task), "C.2");
}
