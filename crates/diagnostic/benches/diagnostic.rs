//! Interning names beside a plain map of std, and rendering findings beside writing their bare messages.
//!
//! `cargo bench -p dyelog-diagnostic`. Prints figures and is none of divan's. The two that are compared take turns, so that other load meets
//! both alike, and what counts is the median of the turns' ratios.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use dyelog_diagnostic::names::Names;
use dyelog_diagnostic::{Code, Diagnostic, Place, Renderer, Sources};

const TURNS: usize = 11;
/// How often names are given, and how many of them differ.
const GIVEN: usize = 1_000_000;
const DISTINCT: usize = 10_000;
/// Files with a finding on each of their lines.
const FILES: usize = 100;
const LINES: usize = 100;

fn main() {
    names();
    findings();
}

fn names() {
    let given: Vec<String> =
        (0..GIVEN).map(|number| format!("GET /orders/{}", number % DISTINCT * 7919 % DISTINCT)).collect();
    let interned = || {
        let mut names = Names::new();
        let sum: usize = given.iter().map(|name| names.intern(name).index()).sum();
        (sum, names.len())
    };
    // Its numbers begin at 1, too: 0 is that of the empty string.
    let plain = || {
        let mut names = HashMap::from([(String::new(), 0_u32)]);
        let mut sum = 0;
        for name in &given {
            let number = if let Some(number) = names.get(name) {
                *number
            } else {
                let number = names.len() as u32;
                names.insert(name.clone(), number);
                number
            };
            sum += number as usize;
        }
        (sum, names.len())
    };
    assert_eq!(interned(), plain(), "both give the same numbers");
    compare("10^6 names, 10^4 of them distinct: interned", "by a map of std", interned, plain);
}

fn findings() {
    const UNKNOWN_TASK: Code = Code("X001");

    let mut sources = Sources::new();
    let mut findings = Vec::new();
    for file in 0..FILES {
        let name = format!("shop-{file}.toml");
        let mut text = String::new();
        for line in 0..LINES {
            text.push_str("calls = ");
            let start = text.len();
            writeln!(text, "\"servr{line}\"").expect("a string takes all");
            let place = Place::Range { file: name.as_str().into(), start, end: text.len() - 1 };
            let finding = Diagnostic::error(UNKNOWN_TASK, place, format!("there is no task `servr{line}`"))
                .with_note("calls name tasks of the model")
                .with_hint(format!("did you mean `server{line}`?"));
            findings.push(finding);
        }
        sources.insert(name.into(), text.into());
    }
    let rendered = || Renderer { color: false }.render_all(&findings, &sources);
    let bare = || {
        let mut text = String::new();
        for finding in &findings {
            writeln!(text, "{}", finding.message).expect("a string takes all");
        }
        text
    };
    assert!(rendered().ends_with(&format!("{} errors\n", FILES * LINES)), "all are rendered");
    compare("10^4 findings: rendered", "bare messages", rendered, bare);
}

/// Prints the medians over several turns: milliseconds of both, and the ratio of the two in a turn.
fn compare<A, B>(ours: &str, other: &str, mut first: impl FnMut() -> A, mut second: impl FnMut() -> B) {
    let turns: Vec<[f64; 2]> = (0..TURNS).map(|_| [milliseconds(&mut first), milliseconds(&mut second)]).collect();
    let median = |of: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[TURNS / 2]
    };
    let (first, second, ratio) = (median(|turn| turn[0]), median(|turn| turn[1]), median(|turn| turn[0] / turn[1]));
    println!("{ours} {first:.2} ms, {other} {second:.2} ms, ratio {ratio:.2}");
}

fn milliseconds<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let result = black_box(run());
    let taken = start.elapsed().as_secs_f64();
    drop(result);
    taken * 1e3
}
