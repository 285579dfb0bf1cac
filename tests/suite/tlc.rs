//! Tests of `tlc`: the control algorithm, on the paper's examples and on generated operations.

use dyelog::lqn::submodel::SubModel;
use dyelog::tlc::{MatchRow, ReduceOptions, Reducer, Reduction, Rules};
use dyelog::trace::{ReadOptions, TraceNames, read};

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
            assert!(reduction.findings.counted.is_empty(), "{name}: {:?}", reduction.findings.counted);
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
