//! From a file of records to the summary, beside a raw pass over the same bytes: 195,000 calls of 801 functions in 155 interfaces.
//!
//! `cargo bench -p dyelog-callgraph --bench profile`; with `-- large` a million and ten million calls, each run in a process of its own, with the most
//! memory that it had. Exit code 1 where a bar is missed.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use dyelog_callgraph::{Granularity, Graph, Input, Options, Target, analyse, convert};

const CALLS: u32 = 195_000;
const MOST_MEGABYTES: u64 = 500;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let held = match words[..] {
        ["large"] => large(),
        ["make", shape, calls, file] => make(shape, calls, Path::new(file)),
        ["rewrite", calls, file] => rewrite(calls, Path::new(file)),
        ["measure", shape, calls, "-"] => measure(Generator::new(number(calls), Shape::named(shape)), number(calls)),
        ["measure", _, calls, file] => measure(File::open(file).expect("it was made"), number(calls)),
        // `cargo test --benches` wants to see that it runs, not what it measures.
        _ => beside_a_raw_pass() || !std::env::args().any(|argument| argument == "--bench"),
    };
    ExitCode::from(u8::from(!held))
}

fn number(text: &str) -> u32 {
    text.parse().expect("a number of calls")
}

fn beside_a_raw_pass() -> bool {
    let mut text = String::new();
    Generator::new(CALLS, Shape::Nested).read_to_string(&mut text).expect("it is made here");
    let mut binary = Vec::new();
    convert(vec![Input::new("text", text.as_bytes())], Target::Binary, &mut binary).expect("records");
    let lines = best(|| {
        text.lines().map(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()).filter(|is| *is).count()
    });
    let bytes = best(|| binary.iter().map(|byte| usize::from(*byte)).sum());
    let json = best(|| summary(text.as_bytes()));
    let packed = best(|| summary(&*binary));
    println!("{CALLS} calls, {} records, {} MB as JSON, {} MB binary", 4 * CALLS, text.len() >> 20, binary.len() >> 20);
    println!("JSON to summary    {json:8.3} s, at most 0.5; serde_json over the same lines {lines:8.3} s");
    println!("binary to summary  {packed:8.3} s, at most 0.1; a sum over the same bytes      {bytes:8.3} s");
    json <= 0.5 && packed <= 0.1
}

fn summary<'a>(records: impl Read + Send + 'a) -> usize {
    let profile = analyse(vec![Input::new("records", records)], &Options::default()).expect("records");
    assert!(profile.abnormal.is_empty(), "{:?}", profile.abnormal);
    Graph::of(&profile, &Granularity::default()).nodes.len()
}

/// A million and ten million calls: as JSON, made as they are read, and from a binary file.
fn large() -> bool {
    let own = std::env::current_exe().expect("it runs");
    let folder = std::env::temp_dir().join(format!("dyelog-profile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let file = folder.join("records.calls").display().to_string();
    let run = |arguments: &[&str]| Command::new(&own).args(arguments).status().is_ok_and(|status| status.success());
    let mut held = true;
    let runs = [
        ("nested", "1000000"),
        ("nested", "10000000"),
        ("single", "10000000"),
        ("remote", "1000000"),
        ("remote", "10000000"),
    ];
    for (shape, calls) in runs {
        print!("{shape}, JSON:   ");
        held &= run(&["measure", shape, calls, "-"]);
        print!("{shape}, JSON to binary: ");
        held &= run(&["make", shape, calls, &file]);
        print!("{shape}, binary to JSON: ");
        held &= run(&["rewrite", calls, &file]);
        print!("{shape}, binary: ");
        held &= run(&["measure", shape, calls, &file]);
    }
    // What is left of it lies in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    held
}

fn make(shape: &str, calls: &str, file: &Path) -> bool {
    let mut sink = BufWriter::new(File::create(file).expect("a temporary file"));
    let records = Input::new("records", Generator::new(number(calls), Shape::named(shape)));
    timed(calls, || convert(vec![records], Target::Binary, &mut sink).is_ok())
}

fn rewrite(calls: &str, file: &Path) -> bool {
    let records = Input::new("records", File::open(file).expect("it was made"));
    timed(calls, || convert(vec![records], Target::Lines, &mut std::io::sink()).is_ok())
}

fn measure(records: impl Read + Send, calls: u32) -> bool {
    timed(&calls.to_string(), || summary(records) > 0)
}

fn timed(calls: &str, run: impl FnOnce() -> bool) -> bool {
    let start = Instant::now();
    let held = run();
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    let megabytes: Option<u64> = peak.map(|kilobytes: u64| kilobytes >> 10);
    println!("{calls} calls in {seconds:.2} s, {megabytes:?} MB at most");
    held && megabytes.is_none_or(|megabytes| megabytes < MOST_MEGABYTES)
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

/// How calls are laid into chains.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// About ten calls a chain, in order. Any function calls any other: nearly every call has a path of its own, which is the most that can be.
    Nested,
    /// The same in one chain.
    Single,
    /// Each function in a chain of its own, as between processes, and records in any order within a few thousand. Each function calls four others.
    Remote,
}

impl Shape {
    fn named(name: &str) -> Self {
        match name {
            "remote" => Self::Remote,
            "single" => Self::Single,
            _ => Self::Nested,
        }
    }
}

/// How many records change places.
const SHUFFLED: usize = 1 << 12;

/// Records of random calls, nested up to four deep, made as they are read.
struct Generator {
    shape: Shape,
    calls: u32,
    made: u32,
    roots: u32,
    seed: u64,
    clock: u64,
    /// Functions that are open, with the chains that they are in and the numbers of the last events; at the bottom the root.
    open: Vec<(u32, String, u32)>,
    lines: Vec<String>,
    text: String,
    given: usize,
}

impl Generator {
    fn new(calls: u32, shape: Shape) -> Self {
        let text = String::from("{\"calls\":1}\n");
        let root = vec![(0, format!("{:032x}", 0), 0)];
        Self { shape, calls, made: 0, roots: 0, seed: 1, clock: 0, open: root, lines: Vec::new(), text, given: 0 }
    }

    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 33
    }

    /// An event of the chain of the innermost function, or of the chain of all.
    fn probe(&mut self, kind: &str, function: u32) {
        self.clock += 700;
        let (begin, end) = (self.clock, self.clock + 300);
        let place = if self.shape == Shape::Remote { self.open.len() - 1 } else { 0 };
        let (_, chain, event) = &mut self.open[place];
        *event += 1;
        self.lines.push(format!(
            "{{\"chain\":\"{chain}\",\"event\":{event},\"probe\":\"{kind}\",\"interface\":\"Mod::Interface{}\",\"function\":\"method{function}\",\
             \"object\":\"o{}\",\"thread\":\"{}\",\"process\":\"p{}\",\"processor\":\"host{}\",\"cpu\":[{begin},{end}]}}\n",
            function % 155,
            function % 176,
            function % 32,
            function % 4,
            function % 4
        ));
    }

    /// Makes a call or ends one; false at the end.
    fn more(&mut self) -> bool {
        let random = self.random();
        let depth = self.open.len() - 1;
        if self.made < self.calls && depth < 4 && (depth == 0 || random >> 30 == 0) {
            let function = match self.open[depth] {
                (caller, ..) if self.shape == Shape::Remote && depth > 0 => (caller * 7 + random as u32 % 4) % 801,
                _ => random as u32 % 801,
            };
            self.probe("stub_start", function);
            let (_, chain, event) = &self.open[depth];
            self.open.push((function, format!("{chain}.{event}"), 0));
            self.probe("skel_start", function);
            self.made += 1;
            return true;
        }
        if depth == 0 {
            return false;
        }
        let (function, ..) = self.open[depth];
        self.probe("skel_end", function);
        self.open.pop();
        self.probe("stub_end", function);
        if depth == 1 && self.open[0].2 > 30 && self.shape != Shape::Single {
            self.roots += 1;
            self.open[0] = (0, format!("{:032x}", u128::from(self.roots) << 64 | u128::from(random)), 0);
        }
        true
    }

    fn block(&mut self) {
        while self.lines.len() < SHUFFLED && self.more() {}
        let mut lines = std::mem::take(&mut self.lines);
        if self.shape == Shape::Remote {
            for place in (1..lines.len()).rev() {
                let other = self.random() as usize % (place + 1);
                lines.swap(place, other);
            }
        }
        self.text = lines.concat();
        self.given = 0;
    }
}

impl Read for Generator {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.text.len() {
            self.block();
        }
        let count = buffer.len().min(self.text.len() - self.given);
        buffer[..count].copy_from_slice(&self.text.as_bytes()[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}
