//! How fast messages become interactions and entries: against reading the file alone, and against part B of the paper by hand.
//!
//! `cargo bench -p dyelog-same`. The input is 500,000 messages between a hundred tasks, as a table: eight clients at once, each of
//! whose requests goes three tasks deep and is passed on in one of four. `stream` takes ten million messages without holding
//! them: its memory is that of the process.

mod by_hand;

use std::fmt::Write as _;
use std::io::Read;
use std::ops::ControlFlow;

use by_hand::ByHand;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use dyelog_same::{Options, Same};
use dyelog_trace::messages::{MessageStep, StepSink, What, read_all, source};
use dyelog_trace::{Format, TraceNames};

fn main() {
    divan::main();
}

const MESSAGES: usize = 500_000;

/// Makes rows of messages for ever: operations of eight clients, their messages in turn.
struct Load {
    clients: Vec<Vec<(String, String)>>,
    made: usize,
    most: usize,
    state: u64,
    text: Vec<u8>,
    given: usize,
}

impl Load {
    fn new(most: usize) -> Self {
        let text = b"sender,receiver,time\n".to_vec();
        Self { clients: vec![Vec::new(); 8], made: 0, most, state: 1, text, given: 0 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    /// The messages of one operation, the last one first. Each client has servers of its own.
    fn operation(&mut self, client: usize) -> Vec<(String, String)> {
        let server = |depth: usize, which: u64| format!("server{}", depth * 30 + client * 3 + which as usize);
        let (first, second, third) = (self.random(3), self.random(3), self.random(3));
        let own = format!("client{client}");
        let (a, b, c) = (server(0, first), server(1, second), server(2, third));
        let mut messages = vec![(own.clone(), a.clone()), (a.clone(), b.clone()), (b.clone(), c.clone())];
        if self.random(4) == 0 {
            messages.push((c, a.clone()));
        } else {
            messages.extend([(c, b.clone()), (b, a.clone())]);
        }
        messages.push((a, own));
        messages.reverse();
        messages
    }

    fn fill(&mut self) {
        self.text.clear();
        self.given = 0;
        let mut text = String::new();
        while self.made < self.most && text.len() < 60_000 {
            let client = self.random(8) as usize;
            if self.clients[client].is_empty() {
                self.clients[client] = self.operation(client);
            }
            let (from, to) = self.clients[client].pop().expect("it was filled");
            writeln!(text, "{from},{to},{}.{:06}", self.made / 1000, self.made % 1000 * 1000)
                .expect("a string takes all");
            self.made += 1;
        }
        self.text = text.into_bytes();
    }
}

impl Read for Load {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.text.len() {
            self.fill();
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn input() -> Vec<u8> {
    let mut bytes = Vec::new();
    Load::new(MESSAGES).read_to_end(&mut bytes).expect("it never fails");
    bytes
}

fn read(input: impl Read + Send, names: &mut TraceNames, sink: &mut dyn StepSink) {
    let source = source("bench", input, Format::Messages, true).expect("a table").expect("messages");
    read_all(vec![source], names, sink).expect("sound rows");
}

#[divan::bench]
fn parse_only(bencher: Bencher) {
    let bytes = input();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut count = 0_u64;
        let mut sink = |_: &TraceNames, step: &MessageStep| {
            count += u64::from(step.line);
            ControlFlow::Continue(())
        };
        read(&bytes[..], &mut TraceNames::new(), &mut sink);
        black_box(count)
    });
}

#[divan::bench]
fn parse_and_analyse(bencher: Bencher) {
    let bytes = input();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut names = TraceNames::new();
        let mut same = Same::new(Options::default(), Vec::new());
        read(&bytes[..], &mut names, &mut same);
        black_box(same.finish(&names))
    });
}

fn steps() -> (TraceNames, Vec<MessageStep>) {
    let mut names = TraceNames::new();
    let mut steps = Vec::new();
    let mut sink = |_: &TraceNames, step: &MessageStep| {
        steps.push(*step);
        ControlFlow::Continue(())
    };
    read(&input()[..], &mut names, &mut sink);
    (names, steps)
}

/// The baseline: trees alone, no template, no entry.
#[divan::bench]
fn part_b_by_hand(bencher: Bencher) {
    let (names, steps) = steps();
    let by_hand = || {
        let mut trees = ByHand::default();
        for step in &steps {
            if let What::Message { from, to, .. } = step.what {
                trees.message(from.0, to.0);
            }
        }
        trees.counts
    };
    let mut same = Same::new(Options::default(), Vec::new());
    for step in &steps {
        let _ = same.step(&names, step);
    }
    // Asynchronous ones apart, of which the end of the trace makes more.
    let (one, other) = (by_hand(), same.finish(&names).counts);
    assert_eq!([one[0], one[2]], [other[0], other[2]]);
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| black_box(by_hand()));
}

#[divan::bench]
fn pass_by_rules(bencher: Bencher) {
    let (names, steps) = steps();
    bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
        let mut same = Same::new(Options::default(), Vec::new());
        for step in &steps {
            let _ = same.step(&names, step);
        }
        black_box(same.finish(&names))
    });
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn stream(bencher: Bencher) {
    const LONG: usize = 10_000_000;
    bencher.counter(ItemsCount::new(LONG)).bench_local(|| {
        let mut names = TraceNames::new();
        let mut same = Same::new(Options::default(), Vec::new());
        read(Load::new(LONG), &mut names, &mut same);
        black_box(same.finish(&names))
    });
}
