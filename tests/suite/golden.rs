//! Golden traces: what is made of every file in `traces/`, as text that a person can read, in `snapshots/`.
//!
//! A snapshot is accepted only after it has been compared with the comments of its trace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// What the program writes for these arguments, and after it what it says and how it ends where there is anything to say.
fn dyelog(arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dyelog"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary was built for this test");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    let mut words = text(output.stderr);
    if output.status.code() != Some(0) {
        words += &format!("exit code {:?}\n", output.status.code());
    }
    (text(output.stdout), words)
}

fn accept(name: &str, (data, words): &(String, String)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let text = dyelog::study::golden::with_words(data, words);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// A model with how often each template matched, as `dyelog test` accepts it: counted here by the rows of all matches.
fn accept_model(name: &str, arguments: &[&str]) {
    let (mut model, words) = dyelog(&[&["model"][..], arguments, &["--format", "text"]].concat());
    let without = |word: &&&str| {
        std::path::Path::new(word).extension().is_none_or(|found| found != "toml") && **word != "--config"
    };
    let kept: Vec<&str> = arguments.iter().filter(without).copied().collect();
    let (rows, _) = dyelog(&[&["matches"][..], &kept, &["--format", "csv"]].concat());
    let mut times = BTreeMap::<String, u64>::new();
    for row in csv::Reader::from_reader(rows.as_bytes()).deserialize::<BTreeMap<String, String>>() {
        let mut row = row.expect("a row of the columns that the header names");
        *times.entry(row.remove("template").unwrap_or_default()).or_default() += 1;
    }
    let width = times.keys().map(String::len).chain([8]).max().unwrap_or(8);
    model += &format!("\n{:<width$}  MATCHES\n", "TEMPLATE");
    for (template, times) in times {
        model += &format!("{template:<width$}  {times:>7}\n");
    }
    accept(name, &(model, words));
}

/// The model of a written trace, and each of its matches.
fn written(trace: &str) {
    let file = format!("traces/{trace}.angio");
    accept_model(&format!("{trace}.model"), &[&file]);
    accept(&format!("{trace}.matches"), &dyelog(&["matches", &file, "--format", "csv"]));
}

/// The model of a recorded trace, and how often each template matched in each scenario.
fn recorded(file: &str, name: &str) {
    let file = format!("traces/{file}");
    accept_model(&format!("{name}.model"), &[&file]);
    let (rows, words) = dyelog(&["matches", &file, "--format", "csv"]);
    let mut times = BTreeMap::<(String, String, String), u64>::new();
    for row in csv::Reader::from_reader(rows.as_bytes()).deserialize::<BTreeMap<String, String>>() {
        let mut row = row.expect("a row of the columns that the header names");
        let mut column = |name: &str| row.remove(name).unwrap_or_default();
        *times.entry((column("scenario"), column("template"), column("entry"))).or_default() += 1;
    }
    let mut counted = String::new();
    for ((scenario, template, entry), times) in times {
        counted += &format!("{times:>5}  {scenario:<20}  {template:<16}  {entry}\n");
    }
    accept(&format!("{name}.matches"), &(counted, words));
}

macro_rules! golden {
    ($($test:ident: $function:ident($file:literal $(, $name:literal)?);)*) => {
        $(#[test] fn $test() { $function($file $(, $name)?); })*

        /// Every trace but those of the macro's list would go untested.
        #[test]
        fn every_trace_is_golden() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/traces");
            let present: BTreeSet<String> = std::fs::read_dir(folder)
                .expect("the traces lie in the repository")
                .map(|entry| entry.expect("a folder entry").file_name().to_string_lossy().into_owned())
                // Traces of messages and probe records have tests of their own.
                .filter(|name| name != "README.md" && name != "same" && name != "calls")
                .map(|name| name.trim_end_matches(".angio").to_owned())
                .collect();
            let tested: BTreeSet<String> = [$($file),*].map(str::to_owned).into();
            assert_eq!(present, tested);
            let readme = std::fs::read_to_string(format!("{folder}/README.md")).expect("it is there");
            for name in &tested {
                assert!(readme.contains(&format!("| `{name}")), "traces/README.md does not say where {name} comes from");
            }
        }
    };
}

golden! {
    figure_3: written("figure-3");
    figure_4: written("figure-4");
    rpc: written("rpc");
    rpc_phase2: written("rpc-phase2");
    async_rpc: written("async-rpc");
    nested_async_rpc: written("nested-async-rpc");
    forwarding_1: written("forwarding-1");
    forwarding_2: written("forwarding-2");
    forwarding_3: written("forwarding-3");
    asynchronous: written("asynchronous");
    activity: written("activity");
    rpc_in_rpc_phase2: written("rpc-in-rpc-phase2");
    async_rpc_in_forwarder: written("async-rpc-in-forwarder");
    async_forwarding: written("async-forwarding");
    rpc_phase2_in_forwarder: written("rpc-phase2-in-forwarder");
    forwarding_in_forwarder: written("forwarding-in-forwarder");
    call_back: written("call-back");
    reply_on_another_thread: written("reply-on-another-thread");
    self_call: written("self-call");
    lost_reply: written("lost-reply");
    fork_join: written("fork-join");
    nested_fork: written("nested-fork");
    quorum: written("quorum");
    join_in_steps: written("join-in-steps");
    unawaited_branch: written("unawaited-branch");
    multicast: written("multicast");
    future: written("future");
    publish: written("publish");
    streaming: written("streaming");
    breaker: written("breaker");
    retry: written("retry");
    batch: written("batch");
    barrier: written("barrier");
    two_scenarios: written("two-scenarios");
    acknowledged: written("acknowledged");
    case_study: written("case-study");
    shop: recorded("shop.otlp.jsonl", "shop");
}

/// The guide on writing templates: with the user's rule file the acknowledgement is no entry any more.
#[test]
fn acknowledged_with_its_own_template() {
    with_rules("acknowledged", "examples/rules/acknowledged.dl", "own-rule");
}

/// An extension that is shipped but not loaded by default: the matches differ, and the model is the same.
#[test]
fn multicast_with_its_extension() {
    with_rules("multicast", "ext/multicast.dl", "extension");
    let model = |rules: &[&'static str]| {
        let (model, _) = dyelog(&[&["model", "traces/multicast.angio", "--format", "lqn"], rules].concat());
        model
    };
    assert_eq!(model(&["--rules", "ext/multicast.dl"]), model(&[]));
}

/// Extensions that are shipped but not loaded by default.
#[test]
fn with_their_extensions() {
    for trace in ["publish", "streaming", "breaker", "retry", "batch", "barrier"] {
        with_rules(trace, &format!("ext/{trace}.dl"), "extension");
    }
}

fn with_rules(trace: &str, rules: &str, how: &str) {
    let file = format!("traces/{trace}.angio");
    accept_model(&format!("{trace}.{how}.model"), &[&file, "--rules", rules]);
    let matches = dyelog(&["matches", &file, "--rules", rules, "--format", "csv"]);
    accept(&format!("{trace}.{how}.matches"), &matches);
}

/// The case study of the 1998 paper with its configuration: the model of its Figure 9.
#[test]
fn case_study_configured() {
    let arguments = ["traces/case-study.angio", "--config", "examples/case-study.toml"];
    accept_model("case-study.configured.model", &arguments);
}
