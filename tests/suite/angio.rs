//! The native formats: reading, writing, errors, compressed input, and how formats are told apart.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::trace::angio::{write_jsonl, write_text};
use dyelog::trace::detect::detect;
use dyelog::trace::{Event, Extent, Format, Kind, Operation, Origins, ReadOptions, ReadReport, TraceNames, read};
use proptest::prelude::*;

use crate::support::shared;

/// The shape of Figure 3 of the 1998 paper, with all attributes.
const FIGURE_3: &str = "\
operation a run=1 start=1700000000000000001
a,1,1,Be | A,1
a,1,2,Ac | A,2 name=lookup t=0.0012 cpu=0.0003
a,1,3,Ac | A,3
a,1,4,Ac | B,1 op=\"GET /item\"
a,1,5,Fk(a,2) | B,2
a,1,6,Jn(a,2) | B,3
a,1,7,Ac | A,4
a,1,8,Ed | A,5
a,2,1,Be | C,1 instance=2
a,2,2,Ed | C,2 instance=2
";

struct Outcome {
    report: Result<ReadReport, Diagnostics>,
    names: TraceNames,
    operations: Vec<Operation>,
}

impl Outcome {
    fn report(&self) -> &ReadReport {
        self.report.as_ref().expect("the reading goes to the end")
    }

    fn written(&self, format: Format) -> String {
        let mut output = Vec::new();
        for operation in &self.operations {
            match format {
                Format::Angio => write_text(&mut output, &self.names, operation),
                _ => write_jsonl(&mut output, &self.names, operation),
            }
            .expect("memory takes everything");
        }
        String::from_utf8(output).expect("both forms are UTF-8")
    }
}

fn read_from(format: Option<Format>, strict: bool, input: impl Read + Send) -> Outcome {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut sink = |_: &TraceNames, operation| {
        operations.push(operation);
        ControlFlow::Continue(())
    };
    let report = read("t", input, &ReadOptions { format, strict, ..ReadOptions::default() }, &mut names, &mut sink);
    Outcome { report, names, operations }
}

fn read_text(text: &str) -> Outcome {
    read_from(Some(Format::Angio), false, text.as_bytes())
}

/// Findings as a list that a person can read.
fn listed(findings: &[Diagnostic]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place = match &finding.place {
            Place::Line { line, column, .. } => format!("{line}:{column}"),
            Place::File { .. } => "file".to_owned(),
            other => format!("{other:?}"),
        };
        let _ = write!(text, "{place} {} {}", finding.code, finding.message);
        for note in &finding.notes {
            let _ = write!(text, " ({note})");
        }
        for hint in &finding.hints {
            let _ = write!(text, " -> {hint}");
        }
        text.push('\n');
    }
    text
}

#[test]
fn both_forms_read_and_write_the_same() {
    let text = read_from(None, true, FIGURE_3.as_bytes());
    assert_eq!((text.report().operations, text.report().events, text.report().records), (1, 10, 10));
    let event = &text.operations[0].events[1];
    assert_eq!((event.time, event.cpu, event.origin), (0.0012, 0.0003, 3));
    assert_eq!(text.names.names.text(event.activity), "lookup");
    assert_eq!(text.names.task_label(text.operations[0].events[9].task), "C.2");
    assert_eq!(text.written(Format::Angio), FIGURE_3);

    let lines = text.written(Format::AngioJsonl);
    insta::assert_snapshot!(lines, @r#"
    {"operation":"a","run":"1","start":1700000000000000001}
    {"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}
    {"j":"a","k":1,"m":2,"l":"Ac","i":"A","v":2,"name":"lookup","t":0.0012,"cpu":0.0003}
    {"j":"a","k":1,"m":3,"l":"Ac","i":"A","v":3}
    {"j":"a","k":1,"m":4,"l":"Ac","i":"B","v":1,"op":"GET /item"}
    {"j":"a","k":1,"m":5,"l":"Fk","fork":2,"i":"B","v":2}
    {"j":"a","k":1,"m":6,"l":"Jn","join":2,"i":"B","v":3}
    {"j":"a","k":1,"m":7,"l":"Ac","i":"A","v":4}
    {"j":"a","k":1,"m":8,"l":"Ed","i":"A","v":5}
    {"j":"a","k":2,"m":1,"l":"Be","i":"C","v":1,"instance":2}
    {"j":"a","k":2,"m":2,"l":"Ed","i":"C","v":2,"instance":2}
    "#);
    let again = read_from(None, true, lines.as_bytes());
    assert_eq!(again.written(Format::Angio), FIGURE_3);
}

#[test]
fn white_space_comments_quotes_and_line_ends_are_free() {
    let text = "\u{feff}# a comment\r\n\r\n  operation   \"a b\"\trun=\"x\\\"\\\\\\u{e9}\"  # the first\r\n\
                \"a b\" , 1 ,1, Be|\"T,1\",1 name=#no\r\n";
    let outcome = read_text(text);
    insta::assert_snapshot!(listed(&outcome.report().findings), @r#"
    4:31 T010 expected a value (found `#no`) -> a value that begins with `#` needs double quotes
    3:0 T015 operation `a b` run `x\"\\é` is set aside (lines of it that cannot be read: 1)
    "#);
    let outcome = read_text(&text.replace("name=#no", "name=f(x)=#1 # end"));
    assert_eq!(
        outcome.written(Format::Angio),
        "operation \"a b\" run=\"x\\\"\\\\é\"\n\"a b\",1,1,Be | \"T,1\",1 name=f(x)=#1\n"
    );
}

#[test]
fn every_damaged_line_is_told_with_its_place() {
    let bad = "\
a,1,1,Be | A,1
operation a run=1
a,1,1 Be | A,1
a,1,0,Be | A,1
a,1,4294967296,Be | A,1
a,1,-1,Be | A,1
a,1,1,Bx | A,1
a,1,1,Fk | A,1
a,1,1,Fk(b,2) | A,1
operation b run=1
b,1,1,Jn(b,2 | A,1
b,1,1,Be , A,1
b,1,1,Be | A
";
    let outcome = read_text(bad);
    assert_eq!(outcome.operations.len(), 0);
    let mut findings = outcome.report().findings.clone();
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    insta::assert_snapshot!(listed(&findings), @"
    1:1 T012 no operation is open here -> open one with a line `operation SCENARIO run=RUN` before its labels
    2:0 T015 operation `a` run `1` is set aside (lines of it that cannot be read: 7)
    3:7 T010 expected `,` (found `Be`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    4:5 T010 this is 0, but counters begin at 1 (found `0,Be`)
    5:5 T010 this number is too large (found `4294967296,Be`) -> numbers go up to 4294967295
    6:5 T010 expected a whole number (found `-1,Be`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    7:7 T010 expected the type of the node (found `Bx`) -> types are `Be`, `Ac`, `Ed`, `Fk(scenario,thread)` and `Jn(scenario,thread)`
    8:10 T010 expected `(`, the scenario and the thread that is forked or joined (found `|`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    9:10 T010 this names another scenario (found `b,2)`) -> a fork or join stays within its scenario: write `Fk(scenario,thread)`
    10:0 T015 operation `b` run `1` is set aside (lines of it that cannot be read: 3)
    11:14 T010 expected `)` (found `|`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    12:10 T010 expected `|` between the thread's part and the task's part (found `,`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    13:13 T010 expected `,` (the line ends here) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    ");
    let strict = read_from(Some(Format::Angio), true, bad.as_bytes());
    assert!(strict.report.is_err_and(|errors| errors.0.len() > 10));
}

#[test]
fn damaged_attributes_and_headers_are_told_with_their_place() {
    let bad = "\
operation b run=1
b,1,1,Be | A,1 t=NaN
b,1,1,Be | A,1 t=-1
b,1,1,Be | A,1 cpu=1e999
b,1,1,Be | A,1 t=1 t=2
b,1,1,Be | A,1x
b,1,1,Be | \"A,1
operation c run=1
c,1,1,Be | \"\\q\",1
c,1,1,Be | A,1 nonsense
c,1,1,Be | A,1 =x
operation
operation d
d,1,1,Be | A,1
operation e runn=1
operation f run=1 start=soon
operation g run=1 run=2
";
    let outcome = read_text(bad);
    assert_eq!(outcome.operations.len(), 0);
    let mut findings = outcome.report().findings.clone();
    findings.sort_by(|a, b| a.place.cmp(&b.place));
    insta::assert_snapshot!(listed(&findings), @r#"
    1:0 T015 operation `b` run `1` is set aside (lines of it that cannot be read: 6)
    2:18 T010 this time is not a finite number (found `NaN`) -> leave the attribute out where there is no value
    3:18 T010 this time is negative (found `-1`) -> times count from the start of the operation
    4:20 T010 this time is not a finite number (found `1e999`) -> leave the attribute out where there is no value
    5:20 T010 this attribute is given twice (found `t=2`) -> keep one of them
    6:15 T010 expected a whole number (found `x`) -> a label is written `scenario,thread,counter,TYPE | task,counter`, such as `a,1,2,Ac | A,2`
    7:12 T010 the name has no closing quote (found `\"A,1`)
    8:0 T015 operation `c` run `1` is set aside (lines of it that cannot be read: 3)
    9:13 T010 there is no such escape (found `\\q\",1`) -> escapes are `\"`, `\\`, `\n`, `\r`, `\t` and `\u{hex}`
    10:24 T010 expected `=` and the value of the attribute (the line ends here) -> attributes are written `key=value`, with white space between them
    11:16 T010 expected an attribute (found `=x`) -> attributes are written `key=value`, with white space between them
    12:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 0)
    12:10 T010 expected the name of the scenario (the line ends here) -> an operation is opened by `operation SCENARIO run=RUN`
    13:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 1)
    15:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 0)
    16:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 0)
    17:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 0)
    "#);
    insta::assert_debug_snapshot!(outcome.report().counted, @r#"
    {
        "line that cannot be read": 14,
        "operation with lines that cannot be read": 7,
    }
    "#);
}

#[test]
fn a_damaged_line_sets_aside_its_operation_and_no_other() {
    let text = format!("{FIGURE_3}operation b run=2\nb,1,1,Be | A,1\nb,1,2,Zz | A,2\n{FIGURE_3}");
    let outcome = read_text(&text);
    assert_eq!(outcome.report().operations, 2);
    assert_eq!(outcome.report().counted["operation with lines that cannot be read"], 1);
    assert_eq!(outcome.report().counted["line that cannot be read"], 1);
    let jsonl = read_text(FIGURE_3).written(Format::AngioJsonl);
    let text = format!("{jsonl}{{\"operation\":\"b\",\"run\":2}}\n{{\"j\":\"b\",\"k\":1.5}}\n{jsonl}");
    let outcome = read_from(None, false, text.as_bytes());
    assert_eq!(outcome.report().operations, 2);
    insta::assert_snapshot!(listed(&outcome.report().findings), @r#"
    13:16 T010 invalid type: floating point `1.5`, expected u32 -> a line is `{"operation":"a","run":"1"}` or `{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}`
    12:0 T015 operation `b` run `2` is set aside (lines of it that cannot be read: 1)
    "#);
}

#[test]
fn damaged_json_lines_are_told() {
    let bad = r#"{"operation":"a","run":"1"}
{"j":"a","k":1,"m":1,"l":"Be","i":"A"}
{"j":"a","k":1,"m":0,"l":"Be","i":"A","v":1}
{"j":"a","k":1,"m":1,"l":"Fk","i":"A","v":1}
{"j":"a","k":1,"m":1,"l":"Be","fork":1,"i":"A","v":1}
{"j":"a","k":1,"m":1,"l":"Xx","i":"A","v":1}
{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1,"t":-1}
{"j":"a","k":-1,"m":1,"l":"Be","i":"A","v":1}
{"j":"b","k":1,"m":1,"l":"Be","i":"A","v":1}
[1]
{"operation":"a"}
{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}
{"operation":"a","run":[]}
{"operation":"a","run":"2","rnu":1}
{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1,"nam":"x"}
"#;
    let outcome = read_from(Some(Format::AngioJsonl), false, bad.as_bytes());
    insta::assert_snapshot!(listed(&outcome.report().findings), @r#"
    2:0 T010 the node has no `v`
    3:0 T010 `m` is 0, but counters begin at 1
    4:0 T010 a node of type `Fk` has the forked thread in `fork`
    5:0 T010 `fork` belongs to nodes of type `Fk` only, and `join` to `Jn`
    6:0 T010 the type `l` is none of `Be`, `Ac`, `Ed`, `Fk` and `Jn`
    7:0 T010 `t` is negative
    8:15 T010 invalid value: integer `-1`, expected u32 -> a line is `{"operation":"a","run":"1"}` or `{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}`
    9:1 T013 this node is of scenario `b` (the operation that is open is of scenario `a`) -> an operation has one scenario; open another operation for this node
    10:0 T010 invalid type: sequence, expected an object -> a line is `{"operation":"a","run":"1"}` or `{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}`
    1:0 T015 operation `a` run `1` is set aside (lines of it that cannot be read: 9)
    11:0 T010 the operation has no `run`
    11:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 1)
    13:25 T010 invalid type: sequence, expected a string -> a line is `{"operation":"a","run":"1"}` or `{"j":"a","k":1,"m":1,"l":"Be","i":"A","v":1}`
    14:0 T014 there is no attribute `rnu`; it is left out -> did you mean `run`?
    13:0 T015 the operation that begins here is set aside (the line that opens it cannot be read; labels in it: 0)
    15:0 T014 there is no attribute `nam`; it is left out -> did you mean `name`?
    "#);
    assert_eq!(outcome.report().operations, 1);
}

#[test]
fn attributes_that_are_not_known_are_counted_with_a_suggestion() {
    let outcome = read_text("operation a run=1\na,1,1,Be | A,1 nmae=x cpu=1 colour=\"dark red\"\n");
    assert_eq!(outcome.report().operations, 1);
    insta::assert_snapshot!(listed(&outcome.report().findings), @"
    2:16 T014 there is no attribute `nmae`; it is left out -> did you mean `name`?
    2:29 T014 there is no attribute `colour`; it is left out
    ");
}

#[test]
fn counters_that_run_across_operations_are_ranked_anew() {
    let operation =
        |run: u32, first: u32| format!("operation a run={run}\na,1,1,Be | A,{first}\na,1,2,Ed | A,{}\n", first + 1);
    let outcome = read_text(&format!("{}{}{}", operation(1, 1), operation(2, 3), operation(3, 5)));
    let counters: Vec<_> = outcome.operations.iter().map(|op| (op.events[0].counter, op.events[1].counter)).collect();
    assert_eq!(counters, [(1, 2); 3]);
    assert_eq!(outcome.report().counted["operation whose task counters were ranked anew"], 2);

    // A recording that begins late, with operations that overlap in time.
    let overlapping =
        "operation a run=1\na,1,1,Be | A,17\na,1,2,Ed | A,20\noperation a run=2\na,1,1,Be | A,18\na,1,2,Ed | A,19\n";
    let outcome = read_text(overlapping);
    assert_eq!(outcome.operations.iter().map(|op| op.events[1].counter).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn damage_is_never_ranked_away() {
    let unchanged = |text: &str| {
        let outcome = read_text(text);
        let outcome_text = outcome.written(Format::Angio);
        assert_eq!(outcome_text, text);
        assert!(outcome.report().counted.is_empty(), "{:?}", outcome.report().counted);
    };
    let good = "operation a run=1\na,1,1,Be | A,1\na,1,2,Ac | A,2\na,1,3,Ed | A,3\n";
    // The first event of the task is lost, and its thread shows it.
    unchanged("operation a run=1\na,1,2,Ac | A,2\na,1,3,Ed | A,3\n");
    // The threads are complete, but the counters came before: they count per operation.
    unchanged(&format!("{good}operation a run=2\na,1,1,Be | A,2\na,1,2,Ed | A,3\n"));
    // A gap after a counter 1, and a repeat.
    unchanged("operation a run=1\na,1,1,Be | A,1\na,1,2,Ed | A,3\n");
    unchanged("operation a run=1\na,1,1,Be | A,2\na,1,2,Ed | A,2\n");
}

#[test]
fn compressed_input_is_unpacked_and_damage_to_it_is_told() {
    let text = FIGURE_3.repeat(3000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory takes everything");
    let gzip = gzip.finish().expect("memory takes everything");
    let zstd = zstd::encode_all(text.as_bytes(), 1).expect("memory takes everything");
    for packed in [&gzip, &zstd] {
        assert_eq!(read_from(None, true, &packed[..]).report().operations, 3000);
        for end in [5, 30, packed.len() / 2, packed.len() - 1] {
            let errors = read_from(None, true, &packed[..end]).report.expect_err("it is not complete");
            assert_eq!(errors.0[0].code.0, "T002", "{errors:?}");
        }
        let errors = read_from(None, false, &packed[..5]).report.expect_err("there is nothing in it");
        assert_eq!(errors.0[0].code.0, "T002", "{errors:?}");
        let mut damaged = packed.clone();
        for byte in &mut damaged[20..] {
            *byte ^= 0x55;
        }
        let errors = read_from(None, false, &damaged[..]).report.expect_err("it is damaged");
        assert!(matches!(errors.0[0].code.0, "T002" | "T004"), "{errors:?}");
    }
    // The good part is used, and what is lost is told.
    let half = read_from(None, false, &gzip[..gzip.len() / 2]);
    let report = half.report();
    assert!((100..3000).contains(&report.operations), "{}", report.operations);
    assert_eq!(report.counted.get("archive that ends too early"), Some(&1), "{:?}", report.counted);
    // Two archives one after the other are one file.
    let twice = [gzip.clone(), gzip].concat();
    assert_eq!(read_from(None, true, &twice[..]).report().operations, 6000);
}

#[test]
fn an_input_that_fails_is_an_error_that_tells_how_far_it_came() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the cable is out"))
        }
    }
    let input = b"operation a run=1\n".chain(Failing);
    let errors = read_from(Some(Format::Angio), false, input).report.expect_err("it fails");
    insta::assert_snapshot!(listed(&errors.0), @"
    file T001 the input cannot be read further: the cable is out (complete operations before: 0; `a` run `1`, which begins in line 1, is not complete)
    ");
}

#[test]
fn no_input_is_refused_with_silence_or_panic() {
    for end in 0..=FIGURE_3.len() {
        read_from(Some(Format::Angio), false, &FIGURE_3.as_bytes()[..end]).report();
    }
    let jsonl = read_text(FIGURE_3).written(Format::AngioJsonl);
    for end in 0..=jsonl.len() {
        read_from(Some(Format::AngioJsonl), false, &jsonl.as_bytes()[..end]).report();
    }
    let mut state = 1u64;
    let rubbish: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(3 << 20)
    .collect();
    for format in [Format::Angio, Format::AngioJsonl] {
        let outcome = read_from(Some(format), false, &rubbish[..]);
        assert!(outcome.operations.is_empty() && !outcome.report().counted.is_empty());
    }
    let errors = read_from(None, false, &rubbish[..]).report.expect_err("it is nothing");
    assert_eq!(errors.0[0].code.0, "T004");
    assert_eq!(read_from(None, false, &b" \n"[..]).report.expect_err("it is empty").0[0].code.0, "T003");
    assert_eq!(read_text("# nothing\n").report().counted["file without an operation"], 1);
}

#[test]
fn formats_are_told_by_content() {
    let cases: [(&str, Format); 15] = [
        ("# comment\n\noperation a run=1\n", Format::Angio),
        ("a,1,1,Be | A,1\n", Format::Angio),
        ("operation a runn=1\n", Format::Angio),
        ("{ \"operation\" : \"a\", \"run\":\"1\"}\n", Format::AngioJsonl),
        ("{\"resourceSpans\":[", Format::Otlp),
        ("{\"trace\":{\"batches\":[", Format::Otlp),
        ("{\"data\":[{\"traceID\":\"1\"", Format::Jaeger),
        ("{\"index\":{}}\n{\"traceID\":\"1\",\"operation\":\"x\"}", Format::Jaeger),
        ("[[{\"traceId\":\"1\",\"id\":\"2\"}]]", Format::Zipkin),
        ("$0;1;1.9;KIEKER\n", Format::Kieker),
        ("trace_id,span_id,parent_span_id,service\n", Format::SpansCsv),
        ("Sender,Receiver,Time\na,b,1\n", Format::Messages),
        ("{\"sender\":\"a\",\"receiver\":\"b\",\"time\":1}\n", Format::Messages),
        ("time;event;process;message\n", Format::Events),
        ("       0   server   server( 3): server created.\n", Format::Lqsim),
    ];
    for (text, format) in cases {
        assert_eq!(detect("t", text.as_bytes()), Ok(format), "{text}");
    }
}

#[test]
fn what_is_no_trace_is_described() {
    let cases: [&[u8]; 12] = [
        b"hello\nworld",
        b"{\"resourceLogs\":[]}",
        b"{\"resource_metrics\":[]}",
        b"{\"data\":[{\"parent\":\"a\",\"child\":\"b\",\"callCount\":3}]}",
        b"# HELP requests_total\n# TYPE requests_total counter\nrequests_total 3\n",
        // No clock, though it is an object of numbers.
        b"{\"a\": 1}",
        b"{\n  \"name\": \"x\",\n  \"limits\": {\"size\": 1}\n}\n",
        b"[]",
        b"<?xml version=\"1.0\"?>",
        b"\x00\x01\x02",
        b"PK\x03\x04rest",
        b"\xff\xfea\0b\0",
    ];
    let findings: Vec<_> = cases.iter().flat_map(|text| detect("t", text).expect_err("it is no trace").0).collect();
    insta::assert_snapshot!(listed(&findings), @"
    file T004 the format of this file is not recognised (it is text that begins with `hello`) -> name the format with `--from FORMAT` if it is one of those that can be read
    file T004 the format of this file is not recognised (it is logs of OpenTelemetry, without spans) -> export the traces themselves
    file T004 the format of this file is not recognised (it is metrics of OpenTelemetry, without spans) -> export the traces themselves
    file T004 the format of this file is not recognised (it is a dependency graph: who calls whom how often, without the calls) -> export the traces themselves
    file T004 the format of this file is not recognised (it is metrics, as Prometheus has them) -> export the traces themselves
    file T004 the format of this file is not recognised (it is JSON with the keys `a`, and none that tells a format) -> name the format with `--from FORMAT` if it is one of those that can be read
    file T004 the format of this file is not recognised (it is JSON with the keys `name`, `limits`, `size`, and none that tells a format) -> name the format with `--from FORMAT` if it is one of those that can be read
    file T003 there is no trace in this file (it is an export, and its list of traces is empty) -> export again with a wider range of time, or of another service
    file T004 the format of this file is not recognised (it is XML or HTML) -> a model is solved with `dyelog solve MODEL`; it is no trace
    file T004 the format of this file is not recognised (it is binary, and no format of traces begins so) -> export OpenTelemetry traces as OTLP, in its JSON or protobuf encoding
    file T004 the format of this file is not recognised (it is a zip archive) -> unpack it first
    file T004 the format of this file is not recognised (it is text in UTF-16) -> save it as UTF-8
    ");
}

#[test]
fn spans_that_the_sdk_for_go_prints_are_spans() {
    let line = b"{\"Name\":\"query\",\"SpanContext\":{\"TraceID\":\"1\",\"SpanID\":\"2\"},\"StartTime\":\"2026-02-14T17:43:50Z\"}";
    assert_eq!(detect("t", line), Ok(dyelog::trace::Format::Otlp));
    // As protobuf's own writers give the names out.
    let named = br#"{"resource_spans":[{"scope_spans":[{"spans":[]}]}]}"#;
    assert_eq!(detect("t", named), Ok(dyelog::trace::Format::Otlp));
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn reference_traces_are_told_apart() {
    let folder = shared("traces");
    let cases = [
        ("derived/hotel-load25-200/base.otlp.json.gz", Format::Otlp),
        ("derived/hotel-load25-200/base.otlp.jsonl.gz", Format::Otlp),
        ("derived/hotel-load25-200/base.tempo-protojson.json.gz", Format::Otlp),
        ("derived/hotel-load25-200/base.jaeger.json.gz", Format::Jaeger),
        ("derived/hotel-load25-200/base.zipkin2.json.gz", Format::Zipkin),
        ("derived/hotel-load25-200/base.zipkin2-shared.json.gz", Format::Zipkin),
        ("derived/hotel-load25-200/base.csv.gz", Format::SpansCsv),
        ("zipkin/zipkin-lens/messaging-kafka.json", Format::Zipkin),
        ("zipkin/train-ticket-v1/zipkin_log/case1/success/example.json", Format::Zipkin),
        ("jaeger/crisp-testcases/1.json", Format::Jaeger),
        ("jaeger/jaeger-ui-fixtures/TraceGraph__testTrace.json", Format::Jaeger),
        ("otlp/motel-known-topology/single-trace-otlp.json", Format::Otlp),
        ("message-traces/lqsim/01-sanity/trace.txt.gz", Format::Lqsim),
    ];
    for (file, format) in cases {
        let bytes = std::fs::read(folder.join(file)).expect("the index lists it");
        let mut head = Vec::new();
        if bytes.starts_with(b"\x1f\x8b") {
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut head).expect("it is whole");
        } else {
            head = bytes;
        }
        assert_eq!(detect(file, &head), Ok(format), "{file}");
    }
}

/// Any name, the odd ones among them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[A-Za-z][A-Za-z0-9_.-]{0,6}",
        1 => any::<String>(),
        1 => prop::sample::select(vec!["", "#", "a b", "a\"b\\", "\u{feff}", "é\u{a0}", "a,b|c(d)=e", "\r\n\t\0", "operation"])
            .prop_map(str::to_owned),
    ]
}

fn time() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(0.0),
        0.0..1e4,
        any::<u64>()
            .prop_map(|bits| f64::from_bits(bits >> 1))
            .prop_map(|time| { if time.is_finite() { time } else { 1e300 } })
    ]
}

type RawEvent = (u32, u32, u8, u32, String, (u32, u32), (String, String), (f64, f64, f64));

fn event() -> impl Strategy<Value = RawEvent> {
    let instance = prop_oneof![3 => Just(1u32), 1 => 1..=u32::MAX];
    let attributes = (name(), name());
    (
        any::<u32>(),
        1..=u32::MAX,
        0..5u8,
        any::<u32>(),
        name(),
        (1..=u32::MAX, instance),
        attributes,
        (time(), time(), time()),
    )
}

fn build(names: &mut TraceNames, raw: &[(String, String, Option<i64>, Vec<RawEvent>)]) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (scenario, run, start, events) in raw {
        let mut built = Vec::new();
        for (thread, index, kind, other, task, (counter, instance), (activity, service), (time, cpu, pause)) in events {
            let kind = [Kind::Begin, Kind::Activity, Kind::End, Kind::Fork(*other), Kind::Join(*other)][*kind as usize];
            built.push(Event {
                activity: names.names.intern(activity),
                service: names.names.intern(service),
                time: *time,
                cpu: *cpu,
                pause: *pause,
                ..Event::new(*thread, *index, kind, names.intern_task(task, *instance), *counter)
            });
        }
        // A thread that is not complete keeps the reader from ranking random counters anew.
        built.push(Event::new(7, 2, Kind::Activity, names.intern_task("x", 1), 1));
        operations.push(Operation {
            scenario: names.names.intern(scenario),
            run: run.as_str().into(),
            file: Arc::from("t"),
            line: 0,
            start: *start,
            weight: None,
            weight_given: false,
            extent: Extent::Whole,
            origins: Origins::Lines,
            events: built,
        });
    }
    operations
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(
        raw in prop::collection::vec((name(), name(), any::<Option<i64>>(), prop::collection::vec(event(), 0..12)), 1..5)
    ) {
        let mut names = TraceNames::new();
        let operations = build(&mut names, &raw);
        let written = Outcome { report: Ok(ReadReport::default()), names, operations };
        for format in [Format::Angio, Format::AngioJsonl] {
            let text = written.written(format);
            let again = read_from(Some(format), true, text.as_bytes());
            prop_assert_eq!(again.report().operations, raw.len() as u64);
            prop_assert!(again.report().counted.is_empty());
            // Texts are equal exactly where all names, numbers and bits of times are.
            prop_assert_eq!(&again.written(format), &text);
            for other in [Format::Angio, Format::AngioJsonl] {
                prop_assert_eq!(again.written(other), written.written(other));
            }
            for (before, after) in written.operations.iter().zip(&again.operations) {
                prop_assert_eq!(&before.run, &after.run);
                prop_assert_eq!(before.start, after.start);
                for (a, b) in before.events.iter().zip(&after.events) {
                    prop_assert_eq!((a.thread, a.index, a.kind, a.counter), (b.thread, b.index, b.kind, b.counter));
                    prop_assert_eq!((a.time.to_bits(), a.cpu.to_bits()), (b.time.to_bits(), b.cpu.to_bits()));
                    prop_assert_eq!(written.names.task_label(a.task), again.names.task_label(b.task));
                    prop_assert_eq!(written.names.names.text(a.activity), again.names.names.text(b.activity));
                    prop_assert_eq!(written.names.names.text(a.service), again.names.names.text(b.service));
                }
            }
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "(operation [ab\"]{1,3} run=1\n|a,[0-9]{1,2},1,(Be|Fk\\(a,2\\)|.{0,3}) \\| .{1,9}\n|.{0,20}\n){0,8}") {
        for format in [None, Some(Format::Angio), Some(Format::AngioJsonl)] {
            let _ = read_from(format, false, text.as_bytes());
        }
    }
}
