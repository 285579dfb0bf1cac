//! Reading the native formats, against a raw scan of the same bytes: lines found with `memchr`, fields split at commas.
//!
//! `cargo bench -p dyelog-trace --bench angio`. The scan is what any reader of this text pays at least.

use std::fmt::Write;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use dyelog_trace::angio::{read_jsonl, read_text, write_jsonl};
use dyelog_trace::quality::{Gate, Policy};
use dyelog_trace::{Operation, TraceNames};

fn main() {
    divan::main();
}

const LINES: usize = 1_000_000;

/// Operations of a client that calls four servers in turn, a thousand events each.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    for run in 1..=LINES / 1000 {
        let _ = writeln!(text, "operation browse run={run}");
        let mut counters = [0u32; 5];
        let mut index = 0;
        let mut node = |text: &mut String, kind: &str, task: usize| {
            index += 1;
            counters[task] += 1;
            let name = ["client", "frontend", "catalogue", "basket", "payment"][task];
            let time = f64::from(index) * 1e-4;
            let _ = writeln!(text, "browse,1,{index},{kind} | {name},{}  name=step t={time:.4}", counters[task]);
        };
        node(&mut text, "Be", 0);
        node(&mut text, "Ac", 0);
        for visit in 0..249 {
            let server = 1 + visit % 4;
            node(&mut text, "Ac", server);
            node(&mut text, "Ac", server);
            node(&mut text, "Ac", 0);
            node(&mut text, "Ac", 0);
        }
        node(&mut text, "Ac", 0);
        node(&mut text, "Ed", 0);
    }
    text
});

static JSON_LINES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut output = Vec::new();
    let mut sink = |names: &TraceNames, operation: Operation| {
        write_jsonl(&mut output, names, &operation).expect("memory takes everything");
        ControlFlow::Continue(())
    };
    read_text("bench", TEXT.as_bytes(), true, &mut TraceNames::new(), &mut sink).expect("it is well written");
    output
});

#[divan::bench(sample_count = 10, sample_size = 1)]
fn raw_scan(bencher: Bencher<'_, '_>) {
    let text = TEXT.as_bytes();
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::of_slice(text)).bench(|| {
        let mut fields = 0usize;
        let mut from = 0;
        while let Some(at) = memchr::memchr(b'\n', &black_box(text)[from..]) {
            fields += text[from..from + at].split(|byte| *byte == b',').map(|field| field.len().min(1)).sum::<usize>();
            from += at + 1;
        }
        fields
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn angio(bencher: Bencher<'_, '_>) {
    let text = TEXT.as_bytes();
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::of_slice(text)).bench(|| {
        let mut sink = |_: &TraceNames, operation: Operation| {
            black_box(operation);
            ControlFlow::Continue(())
        };
        read_text("bench", text, true, &mut TraceNames::new(), &mut sink).expect("it is well written").events
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn angio_through_the_quality_gate(bencher: Bencher<'_, '_>) {
    let text = TEXT.as_bytes();
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::of_slice(text)).bench(|| {
        let mut sink = |_: &TraceNames, operation: Operation| {
            black_box(operation);
            ControlFlow::Continue(())
        };
        let mut gate = Gate::new(Policy::default(), &mut sink);
        read_text("bench", text, true, &mut TraceNames::new(), &mut gate).expect("it is well written");
        let report = gate.finish().expect("the policy is lenient");
        assert_eq!(report.set_aside, 0);
        report
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn angio_jsonl(bencher: Bencher<'_, '_>) {
    let text = &JSON_LINES[..];
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::of_slice(text)).bench(|| {
        let mut sink = |_: &TraceNames, operation: Operation| {
            black_box(operation);
            ControlFlow::Continue(())
        };
        read_jsonl("bench", text, true, &mut TraceNames::new(), &mut sink).expect("it is well written").events
    });
}
