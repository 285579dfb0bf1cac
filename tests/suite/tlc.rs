//! Tests of `tlc`: the control algorithm, on the paper's examples and on generated operations.

use dyelog::lqn::submodel::SubModel;
use dyelog::tlc::counters::TaskCounters;
use dyelog::tlc::{EngineKind, MatchRow, ReduceOptions, Reducer, Reduction, Rules};
use dyelog::trace::{Operation, ReadOptions, Toeg, TraceNames, read};

/// Reduces a native trace and keeps the matches.
pub fn reduce(text: &str, rules: &Rules, options: ReduceOptions) -> Reduction {
    let mut names = TraceNames::new();
    let mut reducer = Reducer::new(rules, ReduceOptions { keep_matches: true, ..options });
    read("test.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer)
        .expect("the trace is readable");
    reducer.finish(&names).expect("the trace is reduced")
}

/// A trace of the project.
pub fn bundled(name: &str) -> String {
    let path = format!("{}/traces/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn shown(row: &MatchRow) -> String {
    let entry = row.entry.map_or("-".to_owned(), |entry| format!("E{entry}"));
    format!("{},{} {} {entry}", row.thread, row.node, row.template)
}

fn summary(submodel: &SubModel) -> Vec<String> {
    let mut lines = Vec::new();
    for index in submodel.canonical_order() {
        let entry = submodel.entry(index);
        lines.push(format!("{} {} x{}", entry.interaction.label(), submodel.names.text(entry.task), entry.invocations));
    }
    lines
}

/// The seven worked steps of the 1998 paper's §5.2, in order, with its entries E0 to E3.
#[test]
fn the_worked_steps_of_figure_3() {
    let rules = Rules::shipped();
    let reduction = reduce(&bundled("figure-3.angio"), &rules, ReduceOptions::default());
    let steps: Vec<String> = reduction.matches.iter().map(shown).collect();
    assert_eq!(
        steps,
        [
            "1,1 begin E1",
            "1,2 activity E1",
            "1,3 basic_rpc E1",
            "1,5 asynchronous E2",
            "1,8 end E1",
            "2,2 activity E3",
            "2,3 end E3"
        ]
    );
    assert_eq!(summary(&reduction.submodel), ["Cu a x1", "R A x1", "R B x1", "A C x1"]);
    assert_eq!(reduction.processed, reduction.nodes);
}

/// Every node of every sound bundled trace is processed exactly once, and nothing is stray.
#[test]
fn every_node_of_the_bundled_traces_is_processed() {
    let rules = Rules::shipped();
    assert_eq!(rules.warnings(), []);
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/traces")).expect("traces are there") {
        let path = entry.expect("the folder is readable").path();
        if path.extension().is_some_and(|extension| extension == "angio") {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            let reduction = reduce(&bundled(&name), &rules, ReduceOptions::default());
            assert_eq!(reduction.processed, reduction.nodes, "{name}");
            // Tasks that meet at a barrier wait for each other, which takes `ext/barrier.dl`.
            let lost = if name == "barrier.angio" { 4 } else { 0 };
            let told = reduction.findings.counted.values().sum::<u64>();
            assert_eq!(told, lost, "{name}: {:?}", reduction.findings.counted);
        }
    }
}

/// The slips of Table 1 as printed, found from its text alone.
#[test]
fn the_printed_table_shows_its_slips() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/paper/tlc-1998.dl")).expect("it is there");
    let program = dyelog::datalog::syntax::load("tlc-1998.dl", &text, &|_| None).expect("it parses");
    let (_, findings) = dyelog::tlc::rules::compile_all(&program);
    let line = |start: usize| text[..start].matches('\n').count() + 1;
    let shown: Vec<String> = findings
        .iter()
        .map(|finding| {
            let at = match &finding.place {
                dyelog::diagnostic::Place::Range { start, end, .. } => {
                    format!("{:3} {}", line(*start), &text[*start..(*end).min(start + 60)])
                }
                other => format!("{other:?}"),
            };
            format!("{at}\n    {} {}: {}", finding.severity, finding.code, finding.message)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// All candidates by our plans, in the reference's shape: template, nodes outside the repetition, rounds.
fn candidates_by_plans(toeg: &Toeg, names: &TraceNames, rules: &Rules) -> Vec<(String, Vec<u32>, Vec<u32>)> {
    use dyelog::tlc::facts::NoRelations;
    use dyelog::tlc::matcher::{Match, Matcher, Starting, Symbols, tag};
    use dyelog::tlc::visits::Visits;
    let symbols = Symbols::of(rules.code(), names);
    let plans = rules.plans();
    let matcher = Matcher {
        program: rules.code(),
        toeg,
        names,
        symbols: &symbols,
        relations: &NoRelations,
        budget: u64::MAX.into(),
        visits: Visits::default(),
        counters: TaskCounters::default(),
        starting: Starting::default(),
    };
    let mut all = Vec::new();
    let mut found = Match::default();
    for node in 0..u32::try_from(toeg.len()).expect("few nodes") {
        for (number, plan) in plans.iter().enumerate() {
            if plan.glue_kind == tag(toeg.event(node).kind) && matcher.try_at(number, node, None, &mut found) {
                let nodes = plan.effects.consumed.iter().map(|node| found.slot(node.slot)).collect();
                all.push((plan.name.to_string(), nodes, found.rounds.clone()));
            }
        }
    }
    all.sort();
    all
}

/// Holds the plans to the reference: the same candidates (of a repetition the one with fewest rounds), and the same
/// committed matches.
pub fn engines_agree(text: &str) {
    use dyelog::tlc::reference::Candidates;
    let rules = Rules::shipped();
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut collect = |_: &TraceNames, operation: Operation| {
        operations.push(operation);
        std::ops::ControlFlow::Continue(())
    };
    read("test.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut collect).expect("it is readable");
    for operation in operations {
        let Ok(toeg) = Toeg::build(operation) else { continue };
        let candidates = Candidates::of(&toeg);
        let mut reference: Vec<(String, Vec<u32>, Vec<u32>)> = Vec::new();
        for found in &candidates.found {
            let nodes: Vec<u32> = found.nodes.iter().map(|&node| u32::try_from(node).expect("a node")).collect();
            reference.push((found.template.to_owned(), nodes, candidates.rounds_of(found)));
        }
        // Of candidates at one glue node, the one with fewest rounds.
        reference.sort_by(|left, right| (&left.0, left.1[0], left.2.len()).cmp(&(&right.0, right.1[0], right.2.len())));
        reference.dedup_by(|right, left| left.0 == right.0 && left.1[0] == right.1[0]);
        reference.sort();
        assert_same(&candidates_by_plans(&toeg, &names, &rules), &reference);
    }
    let ours = reduce(text, &rules, ReduceOptions::default());
    let theirs = reduce(text, &rules, ReduceOptions { engine: EngineKind::Crepe, ..ReduceOptions::default() });
    assert_eq!(ours.matches, theirs.matches);
    assert_eq!(summary(&ours.submodel), summary(&theirs.submodel));
}

/// Both lists are sorted.
fn assert_same(ours: &[(String, Vec<u32>, Vec<u32>)], reference: &[(String, Vec<u32>, Vec<u32>)]) {
    let only = |left: &[(String, Vec<u32>, Vec<u32>)], right: &[(String, Vec<u32>, Vec<u32>)]| {
        let missing = left.iter().filter(|candidate| right.binary_search(candidate).is_err());
        missing.take(5).cloned().collect::<Vec<_>>()
    };
    let (only_ours, only_theirs) = (only(ours, reference), only(reference, ours));
    assert!(
        only_ours.is_empty() && only_theirs.is_empty(),
        "plans only: {only_ours:?}\nreference only: {only_theirs:?}"
    );
}

#[test]
fn both_engines_agree_on_the_bundled_traces() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/traces")).expect("traces are there") {
        let path = entry.expect("the folder is readable").path();
        if path.extension().is_some_and(|extension| extension == "angio") {
            engines_agree(&std::fs::read_to_string(&path).expect("it is readable"));
        }
    }
}
