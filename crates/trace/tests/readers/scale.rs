//! What neither the memory that spans may take nor the number of threads changes: everything that comes out.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog_trace::retained::Keys;
use dyelog_trace::spans::{Scratch, Spill};
use dyelog_trace::{Operation, ReadOptions, ReadReport, Sink, SpanTree, TraceNames, Traces, Wanted, open};
use proptest::prelude::*;

/// All that comes out, as text.
#[derive(Default)]
pub struct Told {
    pub text: String,
    wanted: Arc<Wanted>,
}

impl Told {
    /// Nothing yet; keeps what is wanted of spans.
    pub fn of(wanted: &Arc<Wanted>) -> Self {
        Self { wanted: Arc::clone(wanted), ..Self::default() }
    }
}

impl Sink for Told {
    fn operation(&mut self, names: &TraceNames, operation: Operation) -> ControlFlow<()> {
        let scenario = names.names.text(operation.scenario);
        let Operation { run, start, weight, extent, events, .. } = &operation;
        writeln!(self.text, "{scenario} {run} {start:?} {weight:?} {extent:?}").expect("a string");
        for event in events {
            let (task, at) = (names.task_name(event.task), (event.thread, event.index, event.counter));
            writeln!(self.text, "  {task} {at:?} {:?} {:?} {:?}", event.kind, event.time, event.cpu).expect("a string");
        }
        ControlFlow::Continue(())
    }

    fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted)
    }

    fn spans(&mut self, names: &TraceNames, tree: SpanTree) {
        let text = |name| names.names.text(name);
        for (at, span) in (0..).zip(&tree.spans) {
            let mut pairs: Vec<String> = Vec::new();
            for own in tree.attributes(at).iter().chain(tree.resource(at)) {
                let value = match own.value {
                    dyelog_trace::retained::Data::Text(name) => text(name).to_owned(),
                    other => format!("{other:?}"),
                };
                pairs.push(format!("{}={value}", text(own.key)));
            }
            let events: Vec<&str> = tree.events(at).iter().map(|event| text(event.name)).collect();
            let (id, parent, links) = (&span.id, span.parent, &span.links);
            let (service, name, status) = (text(span.service), text(span.name), tree.status(at));
            let (restored, shift) = (tree.is_restored(at), span.shift);
            writeln!(
                self.text,
                "    {id} {parent:?} {service} {name} {status:?} {links:?} {pairs:?} {events:?} {restored} {shift}"
            )
            .expect("a string");
        }
    }
}

pub fn all() -> Arc<Wanted> {
    Arc::new(Wanted {
        spans: true,
        attributes: Keys::All,
        resources: Keys::All,
        events: true,
        event_attributes: Keys::All,
        links: true,
    })
}

pub fn told(
    input: &[u8],
    wanted: &Arc<Wanted>,
    memory: Option<u64>,
    threads: usize,
) -> Result<(String, ReadReport), String> {
    let spill = memory.map(|memory| Spill { scratch: Scratch::new(tempfile::tempfile), memory });
    let options = ReadOptions { spill, threads, ..ReadOptions::default() };
    let mut sink = Told::of(wanted);
    let read = dyelog_trace::read("t", input, &options, &mut TraceNames::new(), &mut sink);
    read.map(|report| (sink.text, report)).map_err(|found| found.to_string())
}

/// What comes out of files of one trace.
pub fn told_files(files: &[(&str, &[u8])], options: &ReadOptions) -> (String, ReadReport) {
    let (mut names, mut sink) = (TraceNames::new(), Told::of(&all()));
    let mut traces = Traces::new(options, &sink);
    for (name, bytes) in files {
        let open = open(name, std::io::Cursor::new(bytes.to_vec()), options).expect("its format is known");
        traces.take(open, &mut names, &mut sink).expect("it reads");
    }
    let report = traces.finish(&mut names, &mut sink).expect("it reads");
    (sink.text, report)
}

/// A small span: trace, identifier, parent, service, kind, start, duration, link, whether it failed.
type Small = (u8, u8, u8, u8, u8, u16, u16, Option<(u8, u8)>, bool);

fn line(spans: &[Small]) -> String {
    line_in_steps(spans, 1000)
}

/// The same by a clock that counts in steps of so many nanoseconds.
fn line_in_steps(spans: &[Small], step: u64) -> String {
    let mut blocks = String::new();
    for (at, &(trace, id, parent, service, kind, start, duration, link, failed)) in spans.iter().enumerate() {
        let begin = 1_700_000_000_000_000_000 + u64::from(trace) * 1_000_000_000 + u64::from(start) * step;
        let end = begin + u64::from(duration) * step;
        let link = link.map_or(String::new(), |(trace, span)| {
            format!(
                r#","links":[{{"traceId":"{:032x}","spanId":"{:016x}"}}]"#,
                u32::from(trace) + 1,
                u32::from(span) + 1
            )
        });
        let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
        let comma = if at == 0 { "" } else { "," };
        write!(
            blocks,
            r#"{comma}{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"s{service}"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"{:016x}","parentSpanId":"{parent}","name":"GET /item/{id}","kind":{kind},"startTimeUnixNano":"{begin}","endTimeUnixNano":"{end}","status":{{"code":{}}},"attributes":[{{"key":"number","value":{{"intValue":"{id}"}}}}],"events":[{{"name":"e{id}","timeUnixNano":"{begin}"}}]{link}}}]}}]}}"#,
            u32::from(trace) + 1,
            u32::from(id) + 1,
            if failed { 2 } else { 0 },
        )
        .expect("a string");
    }
    format!("{{\"resourceSpans\":[{blocks}]}}\n")
}

fn small_spans() -> impl Strategy<Value = Vec<Small>> {
    let link = prop::option::weighted(0.1, (0..12_u8, 0..20_u8));
    let span = (0..12_u8, 0..20_u8, 0..22_u8, 0..4_u8, 0..6_u8, 0..5000_u16, 0..5000_u16, link, any::<bool>());
    prop::collection::vec(span, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Spans that go to disk give the operations, in the order, that spans in memory give, and the same counts.
    #[test]
    fn memory_changes_nothing(
        mut spans in small_spans(),
        memory in 0..8000_u64,
        keep in any::<bool>(),
        rootless in any::<bool>(),
        step in prop::sample::select(vec![1000, 1_000_000, 10_000_000]),
    ) {
        // The first spans of traces name parents that are nowhere.
        for span in spans.iter_mut().filter(|span| rootless && span.2 == 0) {
            span.2 = 30 + span.1;
        }
        let text: String = spans.chunks(3).map(|spans| line_in_steps(spans, step)).collect();
        let wanted = if keep { all() } else { Arc::default() };
        let (held, report) = told(text.as_bytes(), &wanted, None, 1).expect("it reads");
        let (spilled, of_spilled) = told(text.as_bytes(), &wanted, Some(memory), 1).expect("it reads");
        prop_assert_eq!(held, spilled);
        prop_assert_eq!(&report.counted, &of_spilled.counted);
        // Which of many findings are shown first may differ where traces are linked.
        if report.found(dyelog_trace::codes::LOOSE_LINK) + report.found(dyelog_trace::codes::BATCH) == 0
            && spans.iter().all(|span| span.7.is_none())
        {
            prop_assert_eq!(report, of_spilled);
        }
    }
}

/// What is decided of all traces together is decided alike of batches of them: that none has its first span, how fine clocks count, and that one drifts.
#[test]
fn memory_changes_nothing_that_all_traces_tell() {
    let both = |what: &str, text: &str| {
        let held = told(text.as_bytes(), &all(), None, 1).expect("it reads");
        for memory in [0, 5000] {
            assert!(
                told(text.as_bytes(), &all(), Some(memory), 2).expect("it reads") == held,
                "{what}, {memory} bytes"
            );
        }
        held.1
    };
    let pieces = |trace: u8| {
        let piece = |id: u8| -> Small { (trace, id, 100 + id, id, 2, u16::from(id) * 50, 40, None, false) };
        line_in_steps(&[piece(1), piece(2), (trace, 3, 2, 3, 2, 60, 10, None, false)], 1_000_000)
    };
    let rootless = (0..60).map(pieces).collect::<String>();
    let report = both("rootless", &rootless);
    assert_eq!(report.counted["lost first span of a trace, put above its pieces"], 60);
    assert_eq!(report.counted["file whose clocks count more than milliseconds"], 1);
    let whole = line(&[(200, 1, 0, 1, 2, 0, 4000, None, false), (200, 2, 2, 2, 2, 100, 200, None, false)]);
    let report = both("with one that is whole", &(rootless + &whole));
    assert!(!report.counted.contains_key("lost first span of a trace, put above its pieces"));
    let off = |trace: u8| {
        let called: Small = (trace, 2, 2, 2, 2, u16::from(trace) * 20 + 100, 300, None, false);
        line(&[(trace, 1, 0, 1, 2, 1000, 600, None, false), called])
    };
    let report = both("a drift", &(0..250).map(off).collect::<String>());
    assert_eq!(report.counted["clocks that differ"], 1);
}

/// Requests of several megabytes.
fn many(number: u32) -> Vec<String> {
    let spans = |request: u32| -> Vec<Small> {
        let one = |at: u32| {
            let (trace, id) = ((request * 7 % 250) as u8, (at * 5 + request % 5) as u8);
            (trace, id, (at * 3) as u8, (at % 4) as u8, (at % 6) as u8, (request % 4000) as u16, 500, None, at == 3)
        };
        (0..12).map(one).collect()
    };
    (0..number).map(|request| line(&spans(request))).collect()
}

fn same_for_all_threads(what: &str, input: &[u8]) {
    for wanted in [Arc::default(), all()] {
        let one = told(input, &wanted, None, 1);
        for (threads, memory) in [(2, None), (5, None), (3, Some(100_000))] {
            assert!(told(input, &wanted, memory, threads) == one, "{what}: {threads} threads, {memory:?}");
        }
    }
}

#[test]
fn threads_change_nothing_of_lines() {
    let mut lines = many(900);
    assert!(lines.iter().map(String::len).sum::<usize>() > 3 << 20, "it is no work for several threads");
    same_for_all_threads("sound lines", lines.concat().as_bytes());
    lines[100] = "{\"resourceSpans\":[{\"scopeSpans\"\n".into();
    lines[700] = "\n\n nonsense \n".into();
    same_for_all_threads("damaged lines", lines.concat().as_bytes());
}

#[test]
fn threads_change_nothing_of_a_document() {
    let requests = many(900);
    let elements: Vec<&str> = requests
        .iter()
        .map(|line| line.trim().trim_start_matches("{\"resourceSpans\":[").trim_end_matches("]}"))
        .collect();
    let compact = format!("{{\"resourceSpans\":[{}]}}", elements.join(","));
    same_for_all_threads("compact", compact.as_bytes());
    same_for_all_threads("cut off", &compact.as_bytes()[..compact.len() * 3 / 4]);
    let pretty = format!("{{\n \"batches\" : [\n  {}\n ]\n}}\n", elements.join(",\n  "));
    same_for_all_threads("with lines", pretty.as_bytes());
    same_for_all_threads("with lines, cut off", &pretty.as_bytes()[..pretty.len() * 2 / 3]);
    same_for_all_threads("two documents", format!("{compact}\n{compact}").as_bytes());
    same_for_all_threads("a list of requests", format!("[{}]", requests.join(",")).as_bytes());
    for at in [10, compact.len() / 3, compact.len() - 3] {
        let mut broken = compact.clone().into_bytes();
        broken[at] = 7;
        same_for_all_threads("broken", &broken);
    }
}

/// What looks like the end of an element may lie in a text.
#[test]
fn the_end_of_an_element_in_a_text_is_none() {
    let requests = many(900);
    let elements: Vec<String> = requests
        .iter()
        .map(|line| {
            let element = line.trim().trim_start_matches("{\"resourceSpans\":[").trim_end_matches("]}");
            element.replace("\"stringValue\":\"s1\"", r#""stringValue":"}]}]},{\"resource\"""#)
        })
        .collect();
    let compact = format!("{{\"resourceSpans\":[{}]}}", elements.join(","));
    same_for_all_threads("ends in texts", compact.as_bytes());
}

/// Traces of Jaeger: where the table of processes stands before the spans, every other time; some spans are of a process that is in no table.
fn of_jaeger(traces: u32) -> Vec<String> {
    let one = |trace: u32| {
        let span = |at: u32| {
            let start = 1_700_000_000_000_000_u64 + u64::from(trace) * 10_000 + u64::from(at) * 10;
            let reference = match at {
                0 => String::new(),
                _ => format!(r#"{{"refType":"CHILD_OF","traceID":"{trace:x}","spanID":"{:x}"}}"#, at / 3 + 1),
            };
            format!(
                r#"{{"traceID":"{trace:x}","spanID":"{:x}","operationName":"get {}","references":[{reference}],"startTime":{start},"duration":{},"processID":"p{}","tags":[{{"key":"n","type":"int64","value":{at}}}]}}"#,
                at + 1,
                at % 5,
                4000 - at * 20,
                at % 3 + u32::from(trace % 40 == 7),
            )
        };
        let spans: Vec<String> = (0..60).map(span).collect();
        let process = |key: &u32| {
            format!(
                r#""p{key}":{{"serviceName":"s{}","tags":[{{"key":"ip","value":"10.0.0.{key}"}}]}}"#,
                (trace + key) % 7
            )
        };
        let processes: Vec<String> = (0..3).collect::<Vec<u32>>().iter().map(process).collect();
        let (spans, processes) = (spans.join(","), processes.join(","));
        if trace.is_multiple_of(2) {
            format!(r#"{{"traceID":"{trace:x}","spans":[{spans}],"processes":{{{processes}}}}}"#)
        } else {
            format!(r#"{{"traceID":"{trace:x}","processes":{{{processes}}},"spans":[{spans}]}}"#)
        }
    };
    (1..=traces).map(one).collect()
}

/// Spans of Jaeger are handed on while their document is read, and lines are read by several threads.
#[test]
fn jaeger_is_read_in_parts() {
    let traces = of_jaeger(700);
    let document = format!(r#"{{"data":[{}],"total":0}}"#, traces.join(",\n"));
    assert!(traces.len() * 60 > 1 << 15, "it is one part");
    same_for_all_threads("a document", document.as_bytes());
    same_for_all_threads("lines", traces.join("\n").as_bytes());
    let (by_lines, _) = told(traces.join("\n").as_bytes(), &all(), None, 1).expect("it reads");
    let (by_document, report) = told(document.as_bytes(), &all(), None, 1).expect("it reads");
    assert!(by_lines == by_document && by_lines.contains("\"ip=10.0.0.2\""));
    assert_eq!(report.records, 700 * 60);
    let cut = &document.as_bytes()[..document.len() - 3000];
    same_for_all_threads("cut off", cut);
    let (_, report) = told(cut, &all(), Some(1000), 1).expect("it reads");
    assert_eq!(report.counted["document that ends too early"], 1);
}
