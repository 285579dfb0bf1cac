//! Forks and joins within a visit: what `rules/ext/join.dl` makes of them, and that the languages of models can say it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::process::Command;

use dyelog::lqn::{Fork, Join, Language, Model};
use dyelog::model::{Configuration, Origins, complete};
use dyelog::tlc::{ReduceOptions, Reduction, Rules};

use crate::generator::Random;
use crate::tlc::{bundled, engines_agree, reduce};

const TRACES: [&str; 5] = ["fork-join", "nested-fork", "quorum", "join-in-steps", "unawaited-branch"];

fn model_of(text: &str) -> (Model, Origins, Reduction) {
    let reduction = reduce(text, &Rules::shipped(), ReduceOptions::default());
    assert_eq!(reduction.processed, reduction.nodes, "{text}");
    let (model, _, origins) = complete(&reduction.submodel, &Configuration::default()).expect("there are operations");
    (model, origins, reduction)
}

#[test]
fn models_read_back_and_are_solved() {
    for trace in TRACES {
        let (model, ..) = model_of(&bundled(&format!("{trace}.angio")));
        for language in [Language::Lqn, Language::Lqnx, Language::Json] {
            let text = language.write(&model);
            let (back, warnings) = language.parse("back", &text).expect("what is written can be read");
            assert_eq!(warnings, [], "{trace} {}", language.name());
            assert_eq!(back.into_canonical(), model.clone().into_canonical(), "{trace} {}", language.name());
        }
        let solved = Command::new(env!("CARGO_BIN_EXE_dyelog"))
            .args(["solve", &format!("traces/{trace}.angio"), "--format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("the binary was built for this test");
        assert_eq!(solved.status.code(), Some(0), "{trace}");
        engines_agree(&bundled(&format!("{trace}.angio")));
    }
}

/// A trace of one visit that works, forks and joins, by threads.
#[derive(Default)]
struct Visit {
    /// Labels and what follows them, by thread.
    threads: Vec<Vec<String>>,
    counter: u32,
    works: usize,
    /// For each work, those that come before it.
    before: Vec<BTreeSet<usize>>,
}

impl Visit {
    fn node(&mut self, thread: usize, kind: &str, more: &str) {
        self.counter += 1;
        let index = self.threads[thread - 1].len() + 1;
        let line = format!("s,{thread},{index},{kind} | a,{}{more}", self.counter);
        self.threads[thread - 1].push(line);
    }

    fn thread(&mut self) -> usize {
        self.threads.push(Vec::new());
        self.threads.len()
    }

    /// Adds work after others; it and all before it.
    fn work(&mut self, thread: usize, past: &mut BTreeSet<usize>) {
        self.node(thread, "Ac", &format!(" name=w{} cpu=0.001", self.works));
        self.before.push(past.clone());
        past.insert(self.works);
        self.works += 1;
    }

    /// A strand that works and forks at random; `past` is what came before, and then with it what it waited for.
    fn strand(&mut self, random: &mut Random, thread: usize, depth: usize, past: &mut BTreeSet<usize>) {
        for _ in 0..random.below(4) {
            if depth == 0 || random.below(3) > 0 {
                self.work(thread, past);
            } else {
                self.block(random, thread, depth - 1, past);
            }
        }
    }

    fn block(&mut self, random: &mut Random, thread: usize, depth: usize, past: &mut BTreeSet<usize>) {
        let branches: Vec<usize> = (0..=random.below(4)).map(|_| self.thread()).collect();
        for branch in &branches {
            self.node(thread, &format!("Fk(s,{branch})"), "");
        }
        let begin = past.clone();
        let mut open = branches;
        random.shuffle(&mut open);
        // Waited for in some steps; of one in five, what is left is not waited for.
        let keep = if random.below(5) == 0 { random.below(open.len() + 1) } else { 0 };
        while open.len() > keep {
            self.strand(random, thread, depth, past);
            let count = 1 + random.below(open.len() - keep);
            let joined: Vec<usize> = open.drain(..count).collect();
            for &branch in &joined {
                past.extend(self.branch(random, branch, depth, &begin));
            }
            for branch in joined {
                self.node(thread, &format!("Jn(s,{branch})"), "");
            }
        }
        for branch in open {
            // It does what no other does.
            self.branch(random, branch, depth, &begin);
        }
        // Else what comes next could be a fork at the same place.
        self.work(thread, past);
    }

    fn branch(&mut self, random: &mut Random, branch: usize, depth: usize, begin: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut past = begin.clone();
        self.node(branch, "Be", "");
        self.strand(random, branch, depth, &mut past);
        self.node(branch, "Ed", "");
        past
    }

    fn of(random: &mut Random) -> (Self, String) {
        let mut visit = Self::default();
        let mut past = BTreeSet::new();
        visit.thread();
        visit.node(1, "Be", "");
        visit.work(1, &mut past);
        visit.strand(random, 1, 3, &mut past);
        visit.node(1, "Ed", "");
        let mut text = "operation s run=1\n".to_owned();
        for line in visit.threads.iter().flatten() {
            writeln!(text, "{line}").expect("a string takes all");
        }
        (visit, text)
    }
}

/// Which activities come before which, by the model's precedences.
fn order(model: &Model) -> Vec<BTreeSet<usize>> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); model.activities.len()];
    for precedence in model.tasks.iter().flat_map(|task| &task.precedences) {
        let before: Vec<usize> = match &precedence.join {
            Join::Sequence(activity) => vec![activity.index()],
            Join::And { activities, .. } | Join::Or(activities) => activities.iter().map(|id| id.index()).collect(),
        };
        let after: Vec<usize> = match precedence.fork.as_ref().expect("something follows") {
            Fork::Sequence(activity) => vec![activity.index()],
            Fork::And(activities) => activities.iter().map(|id| id.index()).collect(),
            other => panic!("one run has no alternatives: {other:?}"),
        };
        for from in before {
            next[from].extend(&after);
        }
    }
    (0..next.len())
        .map(|from| {
            let mut seen = BTreeSet::new();
            let mut open = next[from].clone();
            while let Some(at) = open.pop() {
                if seen.insert(at) {
                    open.extend(&next[at]);
                }
            }
            seen
        })
        .collect()
}

/// The activity of the model in which each work is done.
fn places(model: &Model, origins: &Origins, reduction: &Reduction) -> HashMap<usize, usize> {
    let mut places = HashMap::new();
    for (activity, origin) in origins.activities.iter().enumerate() {
        let Some(position) = origin.position else { continue };
        let total = reduction.submodel.entry(origins.entries[origin.entry.index()].total);
        for (name, done) in &total.work[&position].activities {
            let name = reduction.submodel.names.text(*name);
            if let Some(number) = name.strip_prefix('w').and_then(|number| number.parse().ok()) {
                assert_eq!(done.count, 1);
                assert_eq!(places.insert(number, activity), None, "w{number} is done twice");
            }
        }
    }
    assert!(model.activities.len() == origins.activities.len());
    places
}

/// Nested forks, joins in steps and branches without a join come back: the model orders the work that the trace orders, and no other.
#[test]
fn the_graph_orders_what_the_trace_orders() {
    let (mut nested, mut forks) = (0, 0);
    for seed in 0..400 {
        let (visit, text) = Visit::of(&mut Random::new(seed));
        let (model, origins, reduction) = model_of(&text);
        assert_eq!(moved_waits(&reduction), 0, "seed {seed}\n{text}");
        if model.activities.is_empty() {
            continue;
        }
        forks += 1;
        let depth = reduction.submodel.entries().iter().flat_map(|entry| entry.blocks.values());
        nested += usize::from(depth.into_iter().any(|block| block.at.branch.is_some()));
        let places = places(&model, &origins, &reduction);
        let order = order(&model);
        for late in 0..visit.works {
            for early in 0..late {
                let (from, to) = (places[&early], places[&late]);
                let by_model = order[from].contains(&to);
                let by_trace = visit.before[late].contains(&early);
                assert!(
                    if from == to { by_trace } else { by_model == by_trace },
                    "w{early} before w{late}: trace {by_trace}, model {by_model}; seed {seed}\n{text}\n{}",
                    Language::Lqn.write(&model)
                );
            }
        }
        if seed < 60 {
            engines_agree(&text);
        }
    }
    assert!(forks > 150 && nested > 80, "{nested} of {forks} are nested");
}

fn moved_waits(reduction: &Reduction) -> u64 {
    reduction.submodel.entries().iter().map(|entry| entry.moved_waits).sum()
}

/// Branches of one visit, as the joins of the model name them.
fn joins(text: &str) -> Vec<String> {
    let (model, ..) = model_of(text);
    let text = Language::Lqn.write(&model);
    text.lines().filter(|line| line.contains("->")).map(|line| line.trim().trim_end_matches(';').to_owned()).collect()
}

/// `store` forks a branch for each letter: it calls the task of that name. Capital letters are waited for.
fn replicas(runs: &[&str]) -> String {
    let mut text = String::new();
    for (run, branches) in (1..).zip(runs) {
        let mut lines: BTreeMap<(usize, usize), String> = BTreeMap::new();
        let mut counters: HashMap<String, u32> = HashMap::new();
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        let mut node = |thread: usize, kind: String, task: &str| {
            let (counter, length) = (counters.entry(task.to_owned()).or_default(), lengths.entry(thread).or_default());
            (*counter, *length) = (*counter + 1, *length + 1);
            lines.insert((thread, *length), format!("s,{thread},{length},{kind} | {task},{counter}"));
        };
        node(1, "Be".to_owned(), "store");
        for thread in 2..2 + branches.len() {
            node(1, format!("Fk(s,{thread})"), "store");
        }
        for (thread, branch) in (2..).zip(branches.chars()) {
            let task = branch.to_ascii_lowercase().to_string();
            node(thread, "Be".to_owned(), "store");
            for task in ["store", &task, &task, "store"] {
                node(thread, "Ac".to_owned(), task);
            }
            node(thread, "Ed".to_owned(), "store");
        }
        for (thread, _) in (2..).zip(branches.chars()).filter(|(_, branch)| branch.is_uppercase()) {
            node(1, format!("Jn(s,{thread})"), "store");
        }
        node(1, "Ac".to_owned(), "store");
        node(1, "Ed".to_owned(), "store");
        writeln!(text, "operation s run={run}").expect("a string takes all");
        for line in lines.values() {
            writeln!(text, "{line}").expect("a string takes all");
        }
    }
    text
}

#[test]
fn a_quorum_is_told_from_branches_that_nobody_waits_for() {
    let of = |runs: &[&str]| joins(&replicas(runs)).join("; ").replace("\"store_1.", "").replace('"', "");
    // The same is asked three times, and two answers are enough.
    assert_eq!(of(&["XXx"]), "s0 -> b1.1 & b1.2 & b1.3; b1.1 & b1.2 & b1.3 (2) -> s1");
    // Others are asked, and another one is late in each run.
    assert_eq!(of(&["XYz", "XyZ", "xYZ"]), "s0 -> b1.1 & b1.2 & b1.3; b1.1 & b1.2 & b1.3 (2) -> s1");
    // One is never waited for.
    assert_eq!(of(&["XYz", "XYz"]), "s0 -> b1.1 & b1.2 & b1.3; b1.2 & b1.3 -> s1");
    assert_eq!(of(&["xy"]), "s0 -> s1 & b1.1 & b1.2");
    assert_eq!(of(&["XYZ"]), "s0 -> b1.1 & b1.2 & b1.3; b1.1 & b1.2 & b1.3 -> s1");
    // As many as answered: another block each time.
    assert_eq!(of(&["XX", "Xx"]).matches('+').count(), 2);
}

/// One begins while the other runs, and ends after it: both are waited for at the end.
#[test]
fn branches_that_cross_are_joined_at_the_later_place() {
    let text = "operation s run=1\n\
        s,1,1,Be | a,1\ns,1,2,Fk(s,2) | a,2\ns,1,3,Ac | a,3 name=w0 cpu=1\ns,1,4,Fk(s,3) | a,4\n\
        s,2,1,Be | a,5\ns,2,2,Ac | a,6 name=w1 cpu=1\ns,2,3,Ed | a,7\n\
        s,1,5,Jn(s,2) | a,8\ns,1,6,Ac | a,9 name=w2 cpu=1\n\
        s,3,1,Be | a,10\ns,3,2,Ac | a,11 name=w3 cpu=1\ns,3,3,Ed | a,12\n\
        s,1,7,Jn(s,3) | a,13\ns,1,8,Ac | a,14 name=w4 cpu=1\ns,1,9,Ed | a,15\n";
    insta::assert_snapshot!(joins(text).join("\n"), @r#"
    "a_1.s0" -> "a_1.b1.1" & "a_1.b1.2"
    "a_1.b1.1.s1" & "a_1.b1.2" -> "a_1.s1"
    "a_1.b1.1" -> "a_1.b1.1.b1.1" & "a_1.b1.1.b1.2"
    "a_1.b1.1.b1.1" & "a_1.b1.1.b1.2" -> "a_1.b1.1.s1"
    "#);
    let (.., reduction) = model_of(text);
    let (_, findings, _) = complete(&reduction.submodel, &Configuration::default()).expect("there are operations");
    let said: Vec<&str> = findings.iter().filter(|one| one.code.0 == "M031").map(|one| one.message.as_str()).collect();
    assert_eq!(
        said,
        ["parallel branches of entry `a_1` cross, in 1 of its 1 invocations: they are joined at the later place"]
    );
    // Forked the other way round, they lie in each other.
    let nested = text.replace("Fk(s,2)", "Fk(s,0)").replace("Fk(s,3)", "Fk(s,2)").replace("Fk(s,0)", "Fk(s,3)");
    assert_eq!(moved_waits(&model_of(&nested).2), 0);
}

/// A branch that ends without waiting for the one that it forked: the visit waits for both, at one place or at two.
#[test]
fn a_branch_may_be_waited_for_by_another_than_forked_it() {
    let text = "operation s run=1\n\
        s,1,1,Be | a,1\ns,1,2,Fk(s,2) | a,2\n\
        s,2,1,Be | a,3\ns,2,2,Fk(s,3) | a,4\ns,2,3,Ac | a,5 name=w1 cpu=1\ns,2,4,Ed | a,6\n\
        s,3,1,Be | a,7\ns,3,2,Ac | a,8 name=w2 cpu=1\ns,3,3,Ed | a,9\n\
        s,1,3,Jn(s,2) | a,10\ns,1,4,Jn(s,3) | a,11\ns,1,5,Ac | a,12 name=w3 cpu=1\ns,1,6,Ed | a,13\n";
    insta::assert_snapshot!(joins(text).join("\n"), @r#"
    "a_1.s0" -> "a_1.b1.1"
    "a_1.b1.1.s1" -> "a_1.s1"
    "a_1.b1.1" -> "a_1.b1.1.b1.1" & "a_1.b1.1.b1.2"
    "a_1.b1.1.b1.1" & "a_1.b1.1.b1.2" -> "a_1.b1.1.s1"
    "#);
    assert_eq!(moved_waits(&model_of(text).2), 0);
    let later = text.replace("s,1,4,Jn(s,3) | a,11", "s,1,4,Ac | a,11 name=w4 cpu=1").replace(
        "s,1,5,Ac | a,12 name=w3 cpu=1\ns,1,6,Ed | a,13",
        "s,1,5,Jn(s,3) | a,12\ns,1,6,Ac | a,13 name=w3 cpu=1\ns,1,7,Ed | a,14",
    );
    assert_eq!(moved_waits(&model_of(&later).2), 1);
}

/// Spans that overlap, with overlaps within each: three calls, and what is worked meanwhile.
#[test]
fn overlaps_within_overlapping_spans_are_one_fork() {
    let text = crate::spans::dsl::otlp(
        "
        1 - web server   GET   0 20
        2 1 web internal left  1 12
        3 1 web internal right 2 15
        4 2 web client   a     2  8
        5 4 a   server   a     3  7
        6 2 web client   b     3  9
        7 6 b   server   b     4  8
        8 3 web client   c     4 10
        9 8 c   server   c     5  9
        ",
    );
    insta::assert_snapshot!(joins(&text).join("\n").replace("\"GET.", "\""), @r#"
    "s0" -> "b1.1" & "b1.2" & "b1.3" & "b1.4"
    "b1.1" & "b1.2" & "b1.3" & "b1.4" -> "s1"
    "#);
}

/// A chain of branches, each of which forks the next one, and forks that are never done: deep, and no recursion.
#[test]
fn forks_may_be_deep() {
    for (deep, wide) in [(30_000, 1), (1, 30_000)] {
        let mut visit = Visit { threads: vec![Vec::new()], ..Visit::default() };
        let mut ends = Vec::new();
        let mut thread = 1;
        visit.node(1, "Be", "");
        for _ in 0..deep {
            let branches: Vec<usize> = (0..wide).map(|_| visit.thread()).collect();
            for branch in &branches {
                visit.node(thread, &format!("Fk(s,{branch})"), "");
            }
            for &branch in &branches {
                visit.node(branch, "Be", "");
                visit.node(branch, "Ac", "");
            }
            for &branch in &branches[1..] {
                visit.node(branch, "Ed", "");
            }
            ends.push((thread, branches.clone()));
            thread = branches[0];
        }
        for (parent, branches) in ends.into_iter().rev() {
            visit.node(branches[0], "Ed", "");
            for branch in branches {
                visit.node(parent, &format!("Jn(s,{branch})"), "");
            }
        }
        visit.node(1, "Ed", "");
        let mut text = "operation s run=1\n".to_owned();
        visit.threads.iter().flatten().for_each(|line| writeln!(text, "{line}").expect("a string takes all"));
        let (model, _, reduction) = model_of(&text);
        assert_eq!(reduction.submodel.entries().iter().map(|entry| entry.blocks.len()).sum::<usize>(), deep);
        assert!(model.activities.len() > deep.max(wide));
    }
}
