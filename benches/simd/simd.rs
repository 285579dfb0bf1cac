//! How fast spans are read from OTLP JSON, against bare parses of the same bytes by parsers that work on many bytes at once.
//!
//! `cargo run --release`, in this folder. The input is that of the benchmark `readers` of `dyelog-trace`, a request a line. Each way is run in turn,
//! and the least of its times is shown, also as a multiple of the best bare parse.

#[path = "../../crates/trace/benches/otlp/mod.rs"]
mod otlp;

use std::hint::black_box;
use std::time::{Duration, Instant};

use dyelog_diagnostic::names::Names;
use dyelog_trace::Format;
use dyelog_trace::spans::{self, SpanOptions};
use otlp::{SPANS, bare, count, lines_of};

/// How often each way is run.
const RUNS: usize = 7;

type Way = (&'static str, fn(&[u8]) -> usize);

const WAYS: [Way; 5] = [
    ("spans of dyelog, one thread", |bytes| read(bytes, 1)),
    ("spans of dyelog, two threads", |bytes| read(bytes, 2)),
    ("bare, serde_json", |bytes| parsed(bytes, |line| serde_json::from_slice(line).expect("it is sound"))),
    ("bare, sonic-rs", |bytes| parsed(bytes, |line| sonic_rs::from_slice(line).expect("it is sound"))),
    // It writes into the text that it parses, which has to be copied.
    ("bare, simd-json", |bytes| {
        parsed(bytes, |line| simd_json::serde::from_slice(&mut line.to_vec()).expect("it is sound"))
    }),
];

fn read(bytes: &[u8], threads: usize) -> usize {
    let options = SpanOptions { strict: true, threads, ..SpanOptions::default() };
    let read = spans::collect_with(Format::Otlp, "bench", bytes, &options, &mut Names::new());
    read.expect("it is sound").0.spans.len()
}

fn parsed(bytes: &[u8], parse: fn(&[u8]) -> bare::Request) -> usize {
    let all: Vec<bare::Request> = lines_of(bytes).map(parse).collect();
    all.iter().map(count).sum()
}

fn main() {
    let lines = otlp::lines();
    let mut least = [Duration::MAX; WAYS.len()];
    for _ in 0..RUNS {
        for ((_, way), least) in WAYS.iter().zip(&mut least) {
            let begin = Instant::now();
            assert_eq!(way(black_box(&lines)), SPANS);
            *least = begin.elapsed().min(*least);
        }
    }
    let bare = least[2..].iter().min().expect("there are some").as_secs_f64();
    for ((what, _), least) in WAYS.iter().zip(least) {
        let seconds = least.as_secs_f64();
        let rate = lines.len() as f64 / 1e6 / seconds;
        println!("{what:<32} {:>8.1} ms {rate:>8.0} MB/s {:>6.2}", seconds * 1e3, seconds / bare);
    }
}
