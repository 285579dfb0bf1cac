//! From a file of records to the summary, beside a raw pass over the same bytes: 195,000 calls of 801 functions in 155 interfaces.

use std::hint::black_box;
use std::time::Instant;

use dyelog_callgraph::{Granularity, Graph, Input, Options, Target, analyse, convert};

const CALLS: u32 = 195_000;

fn main() {
    let text = records(CALLS);
    let mut binary = Vec::new();
    convert(vec![Input::new("text", text.as_bytes())], Target::Binary, &mut binary).expect("records");
    let lines = best(|| {
        text.lines().map(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()).filter(|is| *is).count()
    });
    let bytes = best(|| binary.iter().map(|byte| usize::from(*byte)).sum());
    let json = best(|| summary(text.as_bytes()));
    let packed = best(|| summary(&binary));
    println!("{CALLS} calls, {} records, {} MB as JSON, {} MB binary", 4 * CALLS, text.len() >> 20, binary.len() >> 20);
    println!("JSON to summary    {json:8.3} s; serde_json over the same lines {lines:8.3} s");
    println!("binary to summary  {packed:8.3} s; a sum over the same bytes      {bytes:8.3} s");
}

fn summary(records: &[u8]) -> usize {
    let profile = analyse(vec![Input::new("records", records)], &Options::default()).expect("records");
    assert!(profile.abnormal.is_empty());
    Graph::of(&profile, &Granularity::default()).nodes.len()
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

/// Chains of about ten calls, nested up to four deep.
fn records(calls: u32) -> String {
    let mut text = String::from("{\"calls\":1}\n");
    let (mut chain, mut event, mut seed, mut clock) = (0u32, 0u32, 1u64, 0u64);
    let mut open: Vec<u32> = Vec::new();
    let mut made = 0;
    while made < calls || !open.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut probe = |kind: &str, function: u32, event: &mut u32| {
            *event += 1;
            clock += 700;
            text.push_str(&format!(
                "{{\"chain\":\"c{chain}\",\"event\":{event},\"probe\":\"{kind}\",\"interface\":\"Mod::Interface{}\",\"function\":\"method{function}\",\
                 \"object\":\"o{}\",\"thread\":\"{}\",\"process\":\"p{}\",\"processor\":\"host{}\",\"cpu\":[{clock},{}]}}\n",
                function % 155, function % 176, function % 32, function % 4, function % 4, clock + 300
            ));
        };
        if made < calls && open.len() < 4 && (open.is_empty() || seed >> 63 == 0) {
            let function = (seed >> 33) as u32 % 801;
            probe("stub_start", function, &mut event);
            probe("skel_start", function, &mut event);
            open.push(function);
            made += 1;
        } else if let Some(function) = open.pop() {
            probe("skel_end", function, &mut event);
            probe("stub_end", function, &mut event);
            if open.is_empty() && event > 30 {
                (chain, event) = (chain + 1, 0);
            }
        }
    }
    text
}
