//! Whole relations by our evaluator and by ascent; reachability by ours and by crepe, on the same graphs.
//!
//! `cargo bench -p dyelog-datalog`. From one node: ours asks `reach(0, Y)`, crepe is given the same question as a rule, since
//! it has no goals. Whether one node reaches the other: ours asks `reach(0, n)`.

use std::ops::ControlFlow;

use divan::{Bencher, black_box};
use dyelog_datalog::base::{BaseFacts, BaseRelation, BaseSchema, Type};
use dyelog_datalog::eval::{CompiledRules, Evaluator, compile};
use dyelog_datalog::syntax::load;
use dyelog_datalog::value::Value;

#[path = "datalog/whole.rs"]
mod whole;

fn main() {
    // Figures that compare come first, unless single benchmarks are asked for.
    if std::env::args().skip(1).all(|argument| argument.starts_with("--")) {
        whole::compare();
    }
    divan::main();
}

/// Nodes of a chain, and the sides of a grid with as many nodes.
const CHAIN: u32 = 100_000;
const SIDE: u32 = 316;

/// A graph as lists of successors and predecessors.
struct Graph {
    after: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
}

impl Graph {
    fn new(nodes: u32, edges: &[(u32, u32)]) -> Self {
        let mut graph = Self { after: vec![Vec::new(); nodes as usize], before: vec![Vec::new(); nodes as usize] };
        for (from, to) in edges {
            graph.after[*from as usize].push(*to);
            graph.before[*to as usize].push(*from);
        }
        graph
    }
}

impl BaseFacts for Graph {
    fn lookup(&self, _: BaseRelation, pattern: &[Option<Value>], out: &mut dyn FnMut(&[Value]) -> ControlFlow<()>) {
        let number = |value: Value| usize::try_from(value.as_integer()?).ok();
        match (pattern[0].and_then(number), pattern[1].and_then(number)) {
            (Some(from), to) => {
                for next in &self.after[from] {
                    let fits = to.is_none_or(|to| to == *next as usize);
                    if fits && out(&[Value::from(from as u32), Value::from(*next)]).is_break() {
                        return;
                    }
                }
            }
            (None, Some(to)) => {
                for previous in &self.before[to] {
                    if out(&[Value::from(*previous), Value::from(to as u32)]).is_break() {
                        return;
                    }
                }
            }
            (None, None) => {
                for (from, all) in self.after.iter().enumerate() {
                    for next in all {
                        if out(&[Value::from(from as u32), Value::from(*next)]).is_break() {
                            return;
                        }
                    }
                }
            }
        }
    }

    fn estimate(&self, _: BaseRelation, bound: u32) -> u64 {
        if bound == 0 { self.after.len() as u64 } else { 2 }
    }

    fn symbol(&self, _: &str) -> Option<Value> {
        None
    }
}

fn edges(shape: &str) -> (u32, Vec<(u32, u32)>) {
    if shape == "chain" {
        return (CHAIN, (1..CHAIN).map(|node| (node - 1, node)).collect());
    }
    let mut edges = Vec::new();
    for row in 0..SIDE {
        for column in 0..SIDE {
            let node = row * SIDE + column;
            edges.extend((column + 1 < SIDE).then_some((node, node + 1)));
            edges.extend((row + 1 < SIDE).then_some((node, node + SIDE)));
        }
    }
    (SIDE * SIDE, edges)
}

fn rules() -> CompiledRules {
    let text = "reach(X, Y) :- edge(X, Y). reach(X, Z) :- reach(X, Y), edge(Y, Z).";
    let mut schema = BaseSchema::new();
    schema.add("edge", &[Type::Node, Type::Node]);
    let program = load("bench.dl", text, &|_| None).expect("the rules can be read");
    compile(&program, &schema).expect("the rules are sound")
}

#[divan::bench(args = ["chain", "grid"], sample_count = 10)]
fn ours_from_one_node(bencher: Bencher, shape: &str) {
    let (nodes, edges) = edges(shape);
    let (rules, graph) = (rules(), Graph::new(nodes, &edges));
    let reach = rules.relation("reach").expect("it has rules");
    bencher.bench(|| {
        let rows = Evaluator::new(&rules, &graph).query(reach, &[Some(Value::from(0)), None]);
        assert_eq!(rows.expect("no limit is reached").len(), nodes as usize - 1);
    });
}

#[divan::bench(args = ["chain", "grid"], sample_count = 10)]
fn ours_between_two_nodes(bencher: Bencher, shape: &str) {
    let (nodes, edges) = edges(shape);
    let (rules, graph) = (rules(), Graph::new(nodes, &edges));
    let reach = rules.relation("reach").expect("it has rules");
    bencher.bench(|| {
        let holds = Evaluator::new(&rules, &graph).holds(reach, &[Value::from(0), Value::from(nodes - 1)]);
        assert!(holds.expect("no limit is reached"));
    });
}

mod reference {
    use crepe::crepe;

    crepe! {
        @input
        #[derive(Debug)]
        pub struct Edge(pub u32, pub u32);
        @input
        #[derive(Debug)]
        pub struct From(pub u32);
        @output
        #[derive(Debug)]
        pub struct Reached(pub u32);

        Reached(y) <- From(x), Edge(x, y);
        Reached(z) <- Reached(y), Edge(y, z);
    }

    pub fn run(edges: &[(u32, u32)]) -> usize {
        let mut runtime = Crepe::new();
        runtime.extend(edges.iter().map(|(from, to)| Edge(*from, *to)));
        runtime.extend([From(0)]);
        let (reached,) = runtime.run();
        reached.len()
    }
}

#[divan::bench(args = ["chain", "grid"], sample_count = 10)]
fn crepe_from_one_node(bencher: Bencher, shape: &str) {
    let (nodes, edges) = edges(shape);
    bencher.bench(|| assert_eq!(reference::run(black_box(&edges)), nodes as usize - 1));
}
