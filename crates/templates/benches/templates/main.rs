//! Cost of templates: plans against the same templates written by hand, over graphs of 10^6 nodes.
//!
//! `cargo bench -p dyelog-templates --bench templates`. Prints the ratios first: plans to hand-written ones in time and
//! memory, one long thread to all interactions, and templates that come as files of a user to the same ones shipped. Each
//! turn runs the two that are compared one right after the other, so that other load meets both alike, and what counts is
//! the median of the turns' ratios. Then what divan measures of each. `DYELOG_NODES` asks for another number of nodes.

#[path = "../../../../tests/suite/generator.rs"]
mod generator;

mod by_hand;
mod memory;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use dyelog_datalog::syntax;
use dyelog_templates::Rules;
use dyelog_templates::counters::TaskCounters;
use dyelog_templates::driver::{self, Committed, Observer, Outcome, Plans};
use dyelog_templates::facts::NoRelations;
use dyelog_templates::matcher::{Matcher, Starting, Symbols};
use dyelog_templates::rules::shipped_text;
use dyelog_templates::visits::Visits;
use dyelog_trace::{NodeId, Toeg, TraceNames};
use generator::{Generator, Mix, Shape};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const TURNS: usize = 41;

/// A graph with its names.
struct Graph {
    names: TraceNames,
    toeg: Toeg,
}

/// How many nodes a graph has, about.
fn nodes() -> usize {
    std::env::var("DYELOG_NODES").ok().and_then(|nodes| nodes.parse().ok()).unwrap_or(1_000_000)
}

/// The templates that are written by hand too.
const FILES: &str = "use \"tlc.dl\"\nuse \"ext/join.dl\"\n";

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let program = syntax::load("(templates)", FILES, &shipped_text).expect("the shipped rule files parse");
    Rules::of_program(program).expect("the shipped rule files load")
});
/// All rules that are loaded by default.
static SHIPPED: LazyLock<Rules> = LazyLock::new(|| with_files(&[]));
/// The same, each as a file of the user, as `--rules` takes it.
static OF_USER: LazyLock<Rules> = LazyLock::new(|| {
    let file = |name: &str| (Arc::from(format!("own/{name}")), shipped_text(name).expect("it ships"));
    with_files(&["tlc.dl", "ext/join.dl", "ext/continued.dl"].map(file))
});
/// All interactions that the templates of `FILES` know.
static MIXED: LazyLock<Graph> =
    LazyLock::new(|| Graph::new(Shape { tasks: 500, depth: 8, continued: false, ..Shape::default() }));
static LOOP: LazyLock<Graph> = LazyLock::new(|| Graph::new(Shape { mix: Mix::Loop, tasks: 500, ..Shape::default() }));

fn with_files(files: &[(Arc<str>, Arc<str>)]) -> Rules {
    Rules::with_user_files(files, &|_| None).expect("the shipped rule files load")
}

impl Graph {
    fn new(shape: Shape) -> Self {
        let mut generator = Generator::new(1, shape);
        let operation = generator.operation("1", nodes()).operation;
        let toeg = Toeg::build(operation).expect("what is generated is well-formed");
        Self { names: generator.names, toeg }
    }

    fn plans(&self, rules: &Rules, observer: &mut impl Observer) -> Outcome {
        let (program, toeg) = (rules.code(), &self.toeg);
        let symbols = Symbols::of(program, &self.names);
        let budget = u64::MAX.into();
        let matcher = Matcher {
            program,
            toeg,
            names: &self.names,
            symbols: &symbols,
            relations: &NoRelations,
            budget,
            visits: Visits::default(),
            counters: TaskCounters::default(),
            starting: Starting::default(),
        };
        let mut engine = Plans::new(matcher);
        driver::run(toeg, rules.plans(), &mut engine, observer)
    }

    fn by_hand(&self) -> Outcome {
        by_hand::run(&self.toeg, |_, _| {})
    }

    /// Both find the same matches, entries and requests.
    fn check(&self) {
        let mut committed = Note(Vec::new());
        let outcome = self.plans(&RULES, &mut committed);
        let mut found: Vec<(&str, NodeId)> = Vec::new();
        let result = by_hand::run(&self.toeg, |template, glue| found.push((by_hand::NAMES[template], glue)));
        let planned: Vec<(&str, NodeId)> =
            committed.0.iter().map(|&(plan, glue)| (&*RULES.plans()[plan].name, glue)).collect();
        let first = planned.iter().zip(&found).position(|(plan, hand)| plan != hand);
        assert_eq!(first.map(|place| (planned[place], found[place])), None, "the first difference");
        assert!(planned == found, "both find the same matches in the same order");
        assert!(outcome.flags == result.flags, "both mark nodes alike: processed, activity, phase");
        assert!(outcome.owner == result.owner, "both give nodes to the same entries");
        assert!(outcome.branch == result.branch && outcome.branches == result.branches, "both make the same branches");
        assert!(outcome.entries == result.entries, "both make the same entries");
        assert!(outcome.requests == result.requests, "both make the same requests");
        assert_eq!((&outcome.irregular, &result.irregular), (&Vec::new(), &Vec::new()));
        println!(
            "  {} nodes, {} threads, {} matches, {} entries: the same by plans and by hand",
            self.toeg.len(),
            self.toeg.threads().len(),
            found.len(),
            result.entries.len()
        );
    }
}

struct Note(Vec<(usize, NodeId)>);

impl Observer for Note {
    fn committed(&mut self, _: &Toeg, committed: &Committed<'_>) {
        self.0.push((committed.found.template as usize, committed.glue));
    }
}

/// The medians over several turns: seconds of the first, of the second, and the ratio of the two in a turn.
fn in_turns<A, B>(mut first: impl FnMut() -> A, mut second: impl FnMut() -> B) -> [f64; 3] {
    let turns = (0..TURNS).map(|_| {
        let (first, second) = (time(&mut first).as_secs_f64(), time(&mut second).as_secs_f64());
        [first, second, first / second]
    });
    let turns: Vec<[f64; 3]> = turns.collect();
    std::array::from_fn(|what| {
        let mut values: Vec<f64> = turns.iter().map(|turn| turn[what]).collect();
        values.sort_by(f64::total_cmp);
        values[TURNS / 2]
    })
}

fn time<T>(run: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    let result = divan::black_box(run());
    let taken = begin.elapsed();
    drop(result);
    taken
}

fn compare(title: &str, graph: &Graph) -> f64 {
    println!("{title}");
    graph.check();
    let nodes = graph.toeg.len() as f64;
    let [plans, hand, ratio] = in_turns(|| graph.plans(&RULES, &mut ()), || graph.by_hand());
    let (_, plans_bytes) = memory::peak_of(|| graph.plans(&RULES, &mut ()));
    let (_, hand_bytes) = memory::peak_of(|| graph.by_hand());
    let (plans, hand) = (plans * 1e9 / nodes, hand * 1e9 / nodes);
    println!("  time:   plans {plans:.1} ns/node, by hand {hand:.1} ns/node, ratio {ratio:.2} (bar 1.5)");
    let ratio = plans_bytes as f64 / hand_bytes as f64;
    let (plans_bytes, hand_bytes) = (plans_bytes as f64 / nodes, hand_bytes as f64 / nodes);
    println!(
        "  memory: plans {plans_bytes:.1} B/node, by hand {hand_bytes:.1} B/node at the peak, ratio {ratio:.2} (bar 2)"
    );
    plans
}

/// Templates that a user gives must cost no more than those that ship.
fn compare_with_users(title: &str, graph: &Graph) {
    let names = |rules: &Rules| rules.plans().iter().map(|plan| plan.name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(names(&SHIPPED), names(&OF_USER));
    let entries = |rules: &Rules| graph.plans(rules, &mut ()).entries;
    assert!(entries(&SHIPPED) == entries(&OF_USER), "both make the same entries");
    let [of_user, shipped, ratio] = in_turns(|| graph.plans(&OF_USER, &mut ()), || graph.plans(&SHIPPED, &mut ()));
    let (of_user, shipped) = (of_user * 1e3, shipped * 1e3);
    println!("  {title}: by --rules {of_user:.1} ms, shipped {shipped:.1} ms, ratio {ratio:.2} (bar 1.1)");
}

fn main() {
    let mixed = compare("all interactions, 500 tasks", &MIXED);
    let looping = compare("a client that calls in a loop, one thread", &LOOP);
    println!("loop to mixed, plans: {:.2} times the cost per node (bar 2)", looping / mixed);
    println!("templates that the user gives, to the same ones shipped");
    compare_with_users("all interactions", &MIXED);
    compare_with_users("calls in a loop", &LOOP);
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn mixed_by_plans() -> Outcome {
    MIXED.plans(&RULES, &mut ())
}

#[divan::bench(sample_count = 5)]
fn mixed_by_hand() -> Outcome {
    MIXED.by_hand()
}

#[divan::bench(sample_count = 5)]
fn loop_by_plans() -> Outcome {
    LOOP.plans(&RULES, &mut ())
}

#[divan::bench(sample_count = 5)]
fn loop_by_hand() -> Outcome {
    LOOP.by_hand()
}
