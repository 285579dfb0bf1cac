//! From a file of records to the summary, beside a raw pass over the same bytes: 195,000 calls of 801 functions in 155 interfaces.

use std::hint::black_box;
use std::io::Read;
use std::time::Instant;

use dyelog_callgraph::{Granularity, Graph, Input, Options, Target, analyse, convert};

const CALLS: u32 = 195_000;

fn main() {
    if std::env::args().any(|argument| argument == "large") {
        return large();
    }
    let mut text = String::new();
    Generator::new(CALLS).read_to_string(&mut text).expect("it is made here");
    let mut binary = Vec::new();
    convert(vec![Input::new("text", text.as_bytes())], Target::Binary, &mut binary).expect("records");
    let lines = best(|| {
        text.lines().map(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()).filter(|is| *is).count()
    });
    let bytes = best(|| binary.iter().map(|byte| usize::from(*byte)).sum());
    let json = best(|| summary(text.as_bytes()));
    let packed = best(|| summary(&*binary));
    println!("{CALLS} calls, {} records, {} MB as JSON, {} MB binary", 4 * CALLS, text.len() >> 20, binary.len() >> 20);
    println!("JSON to summary    {json:8.3} s; serde_json over the same lines {lines:8.3} s");
    println!("binary to summary  {packed:8.3} s; a sum over the same bytes      {bytes:8.3} s");
}

fn summary<'a>(records: impl Read + Send + 'a) -> usize {
    let profile = analyse(vec![Input::new("records", records)], &Options::default()).expect("records");
    assert!(profile.abnormal.is_empty());
    Graph::of(&profile, &Granularity::default()).nodes.len()
}

/// A million and ten million calls, made as they are read: `cargo bench --bench profile -- large`.
fn large() {
    for calls in [1_000_000, 10_000_000] {
        let start = Instant::now();
        summary(Generator::new(calls));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak unknown");
        println!(
            "{calls} calls in {:.2} s, the making of their records included; {peak}",
            start.elapsed().as_secs_f64()
        );
    }
}

/// The shortest of five runs, in seconds.
fn best(mut run: impl FnMut() -> usize) -> f64 {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Records of random calls, made as they are read: chains of about ten calls, nested up to four deep.
struct Generator {
    calls: u32,
    made: u32,
    chain: u32,
    event: u32,
    seed: u64,
    clock: u64,
    open: Vec<u32>,
    text: String,
    given: usize,
}

impl Generator {
    fn new(calls: u32) -> Self {
        let text = String::from("{\"calls\":1}\n");
        Self { calls, made: 0, chain: 0, event: 0, seed: 1, clock: 0, open: Vec::new(), text, given: 0 }
    }

    fn probe(&mut self, kind: &str, function: u32) {
        self.event += 1;
        self.clock += 700;
        let (chain, event, begin, end) = (self.chain, self.event, self.clock, self.clock + 300);
        self.text.push_str(&format!(
            "{{\"chain\":\"c{chain}\",\"event\":{event},\"probe\":\"{kind}\",\"interface\":\"Mod::Interface{}\",\"function\":\"method{function}\",\
             \"object\":\"o{}\",\"thread\":\"{}\",\"process\":\"p{}\",\"processor\":\"host{}\",\"cpu\":[{begin},{end}]}}\n",
            function % 155,
            function % 176,
            function % 32,
            function % 4,
            function % 4
        ));
    }

    /// Writes two records more; false at the end.
    fn more(&mut self) -> bool {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if self.made < self.calls && self.open.len() < 4 && (self.open.is_empty() || self.seed >> 63 == 0) {
            let function = (self.seed >> 33) as u32 % 801;
            self.probe("stub_start", function);
            self.probe("skel_start", function);
            self.open.push(function);
            self.made += 1;
            return true;
        }
        let Some(function) = self.open.pop() else { return false };
        self.probe("skel_end", function);
        self.probe("stub_end", function);
        if self.open.is_empty() && self.event > 30 {
            (self.chain, self.event) = (self.chain + 1, 0);
        }
        true
    }
}

impl Read for Generator {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.text.len() {
            self.text.clear();
            self.given = 0;
            while self.text.len() < buffer.len() && self.more() {}
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text.as_bytes()[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}
