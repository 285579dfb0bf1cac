//! Spans that are missing, repeated, or contradict each other.

use std::ops::ControlFlow;

use dyelog::trace::{Operation, ReadOptions, TraceNames, read};
use insta::assert_snapshot;

use super::dsl::{counted, events};

#[test]
fn duplicates_and_pieces() {
    let table = "
        a - web server GET   0 100
        a - web server GET   0 100
        b a web client call 10  60
        b a web client call 10  10 noend
        c b db  server find 15  55
        c b db  server find 15  55
    ";
    assert_snapshot!(events(table), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | db,1 op="find"
    1,5,Ac | db,2
    1,6,Ac | web,4
    1,7,Ed | web,5
    "#);
    assert_snapshot!(counted(table), @r"
    duplicate span: 2
    span recorded in pieces: 1
    span without an end: 1
    ");
}

#[test]
fn client_and_server_that_share_an_identifier() {
    assert_eq!(
        events(
            "
            a - web server GET   0 100
            b a web client call 10  60
            b a db  server call 15  55
            d b db  client disk 20  50 peer.service=disk
        "
        ),
        events(
            "
            a - web server GET   0 100
            b a web client call 10  60
            c b db  server call 15  55
            d c db  client disk 20  50 peer.service=disk
        "
        )
    );
}

#[test]
fn several_roots_are_several_operations() {
    assert_snapshot!(events("
        a - web server GET   0 100
        b - web server PUT  50  60
    "), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ed | web,3
    operation "web PUT" run=0000000000000001.2
    1,1,Be | web,1 op="PUT"
    1,2,Ac | web,2
    1,3,Ed | web,3
    "#);
}

#[test]
fn a_missing_parent_that_several_name_becomes_the_root() {
    let table = "
        b f web client one 10 40 peer.service=x
        d f web client two 50 70 peer.service=y
    ";
    assert_snapshot!(events(table), @r#"
    operation "web" run=0000000000000001
    1,1,Be | web,1
    1,2,Ac | web,2
    1,3,Ac | web,3
    1,4,Ac | x,1 op="one"
    1,5,Ac | x,2
    1,6,Ac | web,4
    1,7,Ac | web,5
    1,8,Ac | y,1 op="two"
    1,9,Ac | y,2
    1,10,Ac | web,6
    1,11,Ed | web,7
    "#);
    assert_snapshot!(counted(table), @r"
    call without a server span: 2
    lost parent, taken as a root: 1
    ");
}

#[test]
fn pieces_of_traces_that_lost_their_first_service_are_one_operation() {
    let traces = |lost: bool| {
        let whole = "
            T/a - web  server GET    0 100
            T/b a web  client call  10  40
            T/c b shop server call  12  38
            T/d a web  client pay   50  90
            T/e d bank server pay   52  88
            T/f a web  producer log 91  92
            T/g f mail consumer log 120 130
        ";
        let left = |line: &&str| !lost || !line.contains(" web ");
        (1..=3)
            .flat_map(|trace| whole.lines().filter(left).map(move |line| line.replace('T', &trace.to_string()) + "\n"))
            .collect::<String>()
    };
    let outcome = super::dump::read("otlp", super::dsl::otlp(&traces(true)).as_bytes()).expect("it can be read");
    assert_eq!(outcome.operations.len(), 3);
    let names: Vec<&str> = outcome.operations.iter().map(|own| outcome.names.names.text(own.scenario)).collect();
    assert_eq!(names, ["unknown_service"; 3]);
    assert_eq!(counted(&traces(true)).matches("put above its pieces: 3").count(), 1);
    // A trace that has its first span says that the service was not lost: a piece is a piece.
    let mixed = traces(true) + &traces(false).replace("1/", "9/").replace("2/", "8/").replace("3/", "7/");
    assert!(!counted(&mixed).contains("put above its pieces"));
}

#[test]
fn a_lost_server_span_is_put_back_where_only_one_call_fits() {
    let whole = "
        a - web  server GET    0 100
        b a web  client call  10  60
        c b shop server call  15  55
        d c shop client find  20  30 peer.service=db
        e c shop client find  35  45 peer.service=db
        f a web  client other 70  90 peer.service=x
    ";
    let damaged = whole.lines().filter(|line| !line.contains("c b")).collect::<Vec<_>>().join("\n");
    assert_eq!(events(&damaged), events(whole));
    assert!(counted(&damaged).contains("lost parent, restored: 1"));
}

#[test]
fn a_lost_client_span_is_put_back_where_only_one_visit_calls_that_service() {
    let whole = "
        a   - web  server GET    0 100
        b   a web  client call  10  60
        c   b shop server call  15  55
        2/a - web  server GET  200 300
        2/b a web  client call 210 260
        2/c b shop server call 215 255
    ";
    let damaged = whole.lines().filter(|line| !line.contains("2/b")).collect::<Vec<_>>().join("\n");
    assert_eq!(events(&damaged), events(whole));
    assert!(counted(&damaged).contains("lost parent, restored: 1"));
}

#[test]
fn a_circle_of_parents_is_cut() {
    let table = "
        a b web server GET 0 100
        b a web internal x 10 60
    ";
    assert_snapshot!(events(table), @r#"
    operation "web GET" run=0000000000000001
    1,1,Be | web,1 op="GET"
    1,2,Ac | web,2
    1,3,Ac | web,3 name="x"
    1,4,Ed | web,4
    "#);
    assert_snapshot!(counted(table), @"circle of parents: 1");
}

#[test]
fn negative_and_missing_durations_are_counted() {
    assert_snapshot!(counted("
        a - web server   GET  0 100
        b a web internal x   60  10
        c a web internal y   70  70 noend
        d a web internal z   80  80
    "), @r"
    span that ends before it starts: 1
    span without an end: 1
    ");
}

#[test]
fn an_end_that_cannot_be_is_named() {
    // 40 years in milliseconds.
    let table = "
        a - web server   GET  0 1262304000000
        b a web internal x   10 60
    ";
    assert_snapshot!(counted(table), @"span that ends years after it starts: 1");
    assert_eq!(codes(table), ["T106"]);
}

#[test]
fn the_order_of_spans_does_not_matter() {
    let table = "
        a - web server GET   0 100
        b a web client one  10  40 peer.service=x
        d a web client two  10  40 peer.service=x
        e a web client two  50  60
        f e shop server two 51  59
    ";
    let reversed = table.lines().rev().collect::<Vec<_>>().join("\n");
    assert_eq!(events(table), events(&reversed));
}

/// The findings of a table of spans, by their codes.
fn codes(table: &str) -> Vec<&'static str> {
    super::dsl::read_rows(table).report.findings.iter().map(|finding| finding.code.0).collect()
}

#[test]
fn cpu_times_that_cannot_be_are_counted() {
    let table = "
        a - web server GET   0 100000 cpu.time=0.09
        b - web server GET   0 100000 cpu.time=90000
        c - web server GET   0 100000 cpu.time=-0.01
        d - web server GET   0 0      cpu.time=0.01
    ";
    assert_snapshot!(counted(table), @r"
    CPU time far above the duration: 1
    CPU time that is negative: 1
    ");
    let found = codes(table);
    assert!(found.contains(&"T117") && found.contains(&"T118"), "{found:?}");
}

#[test]
fn times_in_another_unit_are_told_of() {
    let span = |start: &str, end: &str| {
        let text = format!(
            "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"1\",\"spanId\":\"2\",\"name\":\"n\",\"kind\":2,\
             \"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\"}}]}}]}}]}}"
        );
        let mut ignore = |_: &TraceNames, _: Operation| ControlFlow::Continue(());
        let read = read("t", text.as_bytes(), &ReadOptions::default(), &mut TraceNames::new(), &mut ignore);
        read.expect("it is a trace").findings.iter().any(|finding| finding.code.0 == "T119")
    };
    assert!(span("1771190203988", "1771190203999"), "milliseconds");
    assert!(span("1771190203", "1771190204"), "seconds");
    assert!(span("9000000000000000000", "9000000000000000001"), "too large");
    assert!(!span("1771190203988000000", "1771190203999000000"), "nanoseconds");
    assert!(!span("1000", "2000"), "from the start of a program");
}

/// What is read of a text that is cut off after so many bytes: spans given out and what was counted, or the first code.
fn cut_off(text: &str, end: usize, strict: bool) -> Result<(usize, u64), &'static str> {
    let (mut spans, mut names) = (0, TraceNames::new());
    let mut sink = |_: &TraceNames, operation: Operation| {
        let dyelog::trace::Origins::Items(items) = &operation.origins else { unreachable!("these are spans") };
        spans += items.iter().filter(|item| item.service.is_some()).count();
        assert!(items.iter().all(|item| item.service.is_some()), "a span of nobody");
        ControlFlow::Continue(())
    };
    let options = ReadOptions { strict, ..ReadOptions::default() };
    match read("cut", &text.as_bytes()[..end], &options, &mut names, &mut sink) {
        Ok(report) => Ok((spans, report.counted.get("document that ends too early").copied().unwrap_or(0))),
        Err(found) => Err(found.0[0].code.0),
    }
}

/// Of a document that is cut off the spans before its end are used, those alone of which it is known who recorded them.
#[test]
fn the_good_part_of_a_document_that_is_cut_off_is_used() {
    let span = |trace: u32, id: u32| {
        format!(
            r#"{{"traceId":"{trace:032x}","spanId":"{id:016x}","name":"n","kind":2,"startTimeUnixNano":"{id}000","endTimeUnixNano":"{id}900"}}"#
        )
    };
    let own =
        |service: &str| format!(r#"{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}}"#);
    let spans: Vec<String> = (1..=4).map(|number| span(number, number)).collect();
    let before = format!(
        r#"{{"resourceSpans":[{{"resource":{},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
        own("web"),
        spans.join(",")
    );
    let behind = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}],"resource":{}}},{{"scopeSpans":[{{"spans":[{}]}}],"resource":{}}}]}}"#,
        spans[..2].join(","),
        own("web"),
        spans[2..].join(","),
        own("db")
    );
    let jaeger = |number: u32| {
        format!(
            r#"{{"traceID":"{number:x}","spans":[{{"traceID":"{number:x}","spanID":"{number:x}","operationName":"o","processID":"p","startTime":{number}0,"duration":5}}],"processes":{{"p":{{"serviceName":"web"}}}}}}"#
        )
    };
    let traces = format!(r#"{{"data":[{}]}}"#, (1..=4).map(jaeger).collect::<Vec<_>>().join(","));
    for text in [&before, &behind, &traces] {
        assert_eq!(cut_off(text, text.len(), false), Ok((4, 0)));
        assert_eq!(cut_off(text, text.len() - 1, true), Err("T101"));
        let mut most = 0;
        for end in 1..text.len() {
            match cut_off(text, end, false) {
                Ok((spans, told)) => {
                    assert!(told == 1 && spans >= most, "{spans} spans of {end} bytes after {most}");
                    most = spans;
                }
                Err(code) => assert!(most == 0 && matches!(code, "T101" | "T004" | "T102" | "T003"), "{end}: {code}"),
            }
        }
        assert!(most >= 3, "{most} spans of\n{text}");
    }
}
