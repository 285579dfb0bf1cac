//! Tests of the command line, end to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run came to.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("CI");
    command
}

fn ran(output: Output) -> Run {
    Run {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).expect("data is text"),
        err: String::from_utf8(output.stderr).expect("words are text"),
    }
}

pub fn run(arguments: &[&str]) -> Run {
    ran(command(arguments).stdin(Stdio::null()).output().expect("it runs"))
}

pub fn fed(arguments: &[&str], input: &str) -> Run {
    assert_cmd_output(assert_cmd::Command::from_std(command(arguments)).write_stdin(input))
}

fn assert_cmd_output(command: &mut assert_cmd::Command) -> Run {
    ran(command.output().expect("it runs"))
}

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a scratch folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("the scratch folder is writable");
        shown(&self.path(name))
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub fn shown(path: &Path) -> String {
    path.to_str().expect("scratch paths are text").to_owned()
}

const FIGURE: &str = "traces/figure-3.angio";

/// An M/M/1 queue and a closed client beside it.
const MODEL: &str = r#"G "two clients" 1e-6 100 -1
P 2
p cpu f
p clients i
-1
T 2
t users r use -1 clients z 4 m 3
t server n serve -1 cpu
-1
E 2
s use 0 -1
y use serve 1 -1
s serve 0.5 0.25 -1
-1
"#;

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["--version"], &["solve", "--help"], &["trace", "check", "--help"]] {
        let run = run(arguments);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{arguments:?}");
        assert!(!run.out.is_empty());
    }
}

#[test]
fn wrong_arguments_exit_with_2() {
    for (arguments, words) in [
        (&[][..], "Usage"),
        (&["sovle"], "solve"),
        (&["model"], "TRACE"),
        (&["model", FIGURE, "--format", "pdf"], "lqnx"),
        (&["model", FIGURE, "--from", "angioo"], "angio"),
        (&["model", FIGURE, "--threads", "0"], "0"),
        (&["model", "-", "-"], "more than once"),
        (&["solve", "-", "--config", "-"], "more than once"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.err);
        assert!(run.err.contains(words), "{arguments:?}: {}", run.err);
        assert_eq!(run.out, "", "{arguments:?}");
    }
}

#[test]
fn a_trace_becomes_a_model_in_every_language() {
    let lqn = run(&["model", FIGURE]);
    assert_eq!(lqn.code, 0, "{}", lqn.err);
    assert!(lqn.out.starts_with("G "), "{}", lqn.out);
    assert!(lqn.err.contains("M011"), "what was assumed is told: {}", lqn.err);
    let folder = Folder::new();
    for (format, begins) in [("lqnx", "<?xml"), ("json", "{"), ("text", "operations traced")] {
        let by_flag = run(&["model", FIGURE, "--format", format]);
        assert_eq!(by_flag.code, 0, "{}", by_flag.err);
        assert!(by_flag.out.starts_with(begins), "{format}: {}", by_flag.out);
        if format != "text" {
            // The extension tells the language, too, and any of them can be read again.
            let file = shown(&folder.path(&format!("m.{format}")));
            assert_eq!(run(&["model", FIGURE, "-o", &file]).code, 0);
            assert_eq!(fs::read_to_string(&file).expect("it was written"), by_flag.out);
            let again = run(&["model", &file]);
            assert_eq!((again.code, again.out), (0, lqn.out.clone()), "{format}: {}", again.err);
        }
    }
    assert_eq!(folder.names(), ["m.json", "m.lqnx"]);
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(FIGURE)).expect("it is there");
    assert_eq!(fed(&["model", "-"], &text).out, run(&["model", FIGURE]).out);
    let solved = fed(&["solve", "-", "--format", "csv"], MODEL);
    assert_eq!(solved.code, 0, "{}", solved.err);
    assert!(solved.out.starts_with("kind,name,metric,value\n"), "{}", solved.out);
}

#[test]
fn small_models_are_solved_by_their_states_unless_none_are_allowed() {
    let folder = Folder::new();
    let model = folder.file("m.lqn", MODEL);
    let exact = run(&["solve", &model]);
    let last = exact.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("solver layered: converged") && last.ends_with(" states); exact"), "{}", exact.out);
    let layers = run(&["solve", &model, "--states", "0"]);
    assert_eq!(layers.code, 0, "{}", layers.err);
    let last = layers.out.lines().last().unwrap_or_default();
    assert!(!last.contains("Markov"), "{last}");
    assert!(last.ends_with("an approximation, which a simulation can check"), "{last}");
}

#[test]
fn results_in_json_have_the_keys_that_scripts_rely_on() {
    let folder = Folder::new();
    let run = run(&["solve", &folder.file("m.lqn", MODEL), "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let document: Value = serde_json::from_str(&run.out).expect("it is JSON");
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&document),
        [
            "dyelog-results",
            "solver",
            "converged",
            "iterations",
            "method",
            "exact",
            "doubts",
            "processors",
            "tasks",
            "entries",
            "calls",
            "outlook"
        ]
    );
    assert_eq!(document["solver"], "layered");
    assert_eq!(document["exact"], true);
    assert_eq!(document["converged"], true);
    assert_eq!(keys(&document["processors"][0]), ["name", "utilization"]);
    assert_eq!(keys(&document["tasks"][0]), ["name", "throughput", "utilization", "processor_utilization"]);
    assert_eq!(
        keys(&document["entries"][1]),
        ["name", "task", "throughput", "service", "utilization", "processor_utilization"]
    );
    assert_eq!(document["entries"][1]["service"].as_array().map(Vec::len), Some(3));
    assert_eq!(keys(&document["calls"][0]), ["from", "to", "kind", "waiting"]);
    assert_eq!(document["calls"][0]["kind"], "sync");
    let throughput = document["tasks"][0]["throughput"].as_f64().expect("a number");
    assert!((0.1..0.75).contains(&throughput), "{throughput}");
}

#[test]
fn what_a_solver_doubts_is_in_its_results() {
    let folder = Folder::new();
    let groups = "p clients i\n-1\nU 1\ng half 0.5 cpu\n-1";
    let model = MODEL.replace("p cpu f", "p cpu c 0.01").replace("p clients i\n-1", groups);
    let model = model.replace("serve -1 cpu", "serve -1 cpu g half");
    assert!(model.contains(groups) && model.ends_with(MODEL.split_once("E 2").expect("entries").1));
    let file = folder.file("m.lqn", &model);
    let json = run(&["solve", &file, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    let doubt = document["doubts"][0].as_str().expect("a doubt").to_owned();
    assert!(doubt.contains("processor sharing"), "{doubt}");
    assert!(json.err.contains(&doubt), "{}", json.err);
    let xml = run(&["solve", &file, "--format", "lqxo"]);
    assert!(xml.out.contains(&format!("<!-- {doubt} -->")), "{}", xml.out);
    let again = run(&["solve", &folder.file("m.lqxo", &xml.out), "--format", "lqxo"]);
    assert_eq!((again.code, again.out), (0, xml.out), "{}", again.err);
}

#[test]
fn models_with_errors_are_not_solved() {
    let folder = Folder::new();
    let broken = MODEL.replace("s serve", "F serve serve 0.7 -1\nF serve serve 0.7 -1\ns serve");
    assert_ne!(broken, MODEL);
    let file = folder.file("m.lqn", &broken);
    let checked = run(&["lqn", "check", &file]);
    assert!(checked.out.contains("error[L111]") && checked.out.contains("error[L103]"), "{}", checked.out);
    let page = shown(&folder.path("page.html"));
    for command in [
        &["solve"][..],
        &["simulate"],
        &["bottleneck"],
        &["whatif"],
        &["search", "--goal", "task.users.response<3", "--largest", "task.users.multiplicity=1..3"],
        &["report", "-o", &page],
    ] {
        let run = run(&[command, &[&file]].concat());
        assert_eq!((run.code, &*run.out), (2, ""), "{command:?}");
        for code in ["error[L111]", "error[L103]"] {
            assert!(run.err.contains(code), "{command:?}: {}", run.err);
        }
    }
}

#[test]
fn a_trace_is_solved_at_once() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[demand]\ndefault = \"10 ms\"\n[scenario.a]\npopulation = 2\nthink_time = 1\n");
    let text = run(&["solve", FIGURE, "--config", &config]);
    assert_eq!(text.code, 0, "{}", text.err);
    for words in ["SCENARIO", "PREDICTED RESPONSE (ms)", "2 customers", "UTILIZATION", "function", "converged"] {
        assert!(text.out.contains(words), "{words} is missing:\n{}", text.out);
    }
    let json = run(&["solve", FIGURE, "--config", &config, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    let response = document["scenarios"][0]["response"].as_f64().expect("a number");
    assert!((0.02..0.2).contains(&response), "{response}");
}

#[test]
fn the_bundled_spans_are_solved_with_and_without_configuration() {
    let alone = run(&["solve", "traces/shop.otlp.jsonl"]);
    assert_eq!(alone.code, 0, "{}", alone.err);
    for words in ["gateway GET /product/{id}", "open arrivals", "PREDICTED RESPONSE (ms)", "payment", "PHASE 2 (ms)"] {
        assert!(alone.out.contains(words), "{words} is missing:\n{}", alone.out);
    }
    let configured = run(&["solve", "traces/shop.otlp.jsonl", "--config", "examples/shop/shop.toml"]);
    assert_eq!(configured.code, 0, "{}", configured.err);
    assert!(!configured.err.contains("M006"), "every setting has an effect: {}", configured.err);
    assert!(configured.out.contains("4 customers"), "{}", configured.out);
}

#[test]
fn a_solver_that_does_not_converge_exits_with_3_and_says_so() {
    let folder = Folder::new();
    let model = MODEL.replace("s serve 0.5 0.25 -1", "s serve 0.5 0.25 -1\na serve 10");
    let run = run(&["solve", &folder.file("m.lqn", &model), "--format", "json"]);
    assert_eq!(run.code, 3, "{}{}", run.out, run.err);
    let document: Value = serde_json::from_str(&run.out).expect("what there is is written");
    assert_eq!(document["converged"], false);
    assert!(run.err.contains("did not converge"), "{}", run.err);
}

#[test]
fn several_errors_are_shown_at_once_and_nothing_is_written() {
    let folder = Folder::new();
    let output = folder.file("m.lqn", "as it was");
    let run_missing = run(&["model", "missing-1.angio", FIGURE, "missing-2.angio", "-o", &output]);
    assert_eq!(run_missing.code, 2);
    for words in ["C001", "missing-1.angio", "missing-2.angio", "2 errors"] {
        assert!(run_missing.err.contains(words), "{words}: {}", run_missing.err);
    }
    let config = folder.file("c.toml", "[task.A]\nthreads = \"x\"\n[demand]\ndefault = \"1 xs\"\n[tsak.B]\n");
    let run_config = run(&["model", FIGURE, "--config", &config, "-o", &output]);
    assert_eq!(run_config.code, 2);
    for words in ["M002", "M020", "M004", "did you mean `task`?", "c.toml:2:11", "2 errors, 1 warning"] {
        assert!(run_config.err.contains(words), "{words}: {}", run_config.err);
    }
    assert_eq!(fs::read_to_string(&output).expect("it is there"), "as it was");
    assert_eq!(folder.names(), ["c.toml", "m.lqn"], "no pieces are left behind");
}

#[test]
fn output_files_appear_whole_or_not_at_all() {
    let folder = Folder::new();
    let nowhere = shown(&folder.path("no/such/folder/m.lqn"));
    for target in [nowhere.as_str(), &shown(folder.0.path())] {
        let run = run(&["model", FIGURE, "-o", target]);
        assert_eq!(run.code, 2, "{}", run.err);
        assert!(run.err.contains("C002"), "{}", run.err);
    }
    let target = folder.file("m.lqn", "old");
    let written = run(&["model", FIGURE, "-o", &target]);
    assert_eq!((written.code, written.out.as_str()), (0, ""));
    assert!(fs::read_to_string(&target).expect("it is there").starts_with("G "));
    assert_eq!(folder.names(), ["m.lqn"]);
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_written_to() {
    let folder = Folder::new();
    let target = folder.file("m.lqn", "old");
    let link = shown(&folder.path("link.lqn"));
    std::os::unix::fs::symlink(&target, &link).expect("the file system has links");
    assert_eq!(run(&["model", FIGURE, "-o", &link]).code, 0);
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert!(fs::read_to_string(&target).expect("it is there").starts_with("G "));
    assert_eq!(run(&["model", FIGURE, "-o", "/dev/null"]).code, 0);
}

#[test]
fn bad_input_is_refused_with_a_reason() {
    let folder = Folder::new();
    fs::write(folder.path("binary"), [0_u8, 159, 146, 150, 0, 1, 2]).expect("writable");
    for (name, text, words) in [
        ("empty", "", "nothing in this file"),
        ("rubbish", "lorem ipsum dolor\n", "not recognised"),
        ("binary", "", "not recognised"),
        ("half.json", "{\"resourceSpans\":[{\"scopeSp", "half.json"),
        ("broken.lqn", "G \"x\" 1e-6 50 -1\nP 1\np\n", "broken.lqn"),
        ("broken.xml", "<lqn-model><processor", "broken.xml"),
    ] {
        let file = if name == "binary" { shown(&folder.path(name)) } else { folder.file(name, text) };
        for subcommand in ["model", "solve"] {
            let run = run(&[subcommand, &file]);
            assert_eq!(run.code, 2, "{subcommand} {name}: {}{}", run.out, run.err);
            assert!(run.err.contains(words), "{subcommand} {name}: {}", run.err);
            assert_eq!(run.out, "", "{subcommand} {name}");
        }
    }
    let empty = Folder::new();
    let folder_itself = run(&["model", &shown(empty.0.path())]);
    assert_eq!(folder_itself.code, 2);
    assert!(folder_itself.err.contains("it is a folder without any files"), "{}", folder_itself.err);
}

#[test]
fn a_folder_is_all_of_its_files() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("log/srv0")).expect("writable");
    fs::create_dir_all(folder.path("log/srv1")).expect("writable");
    let map = "$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    folder.file("log/srv0/kieker.map", map);
    folder.file("log/srv1/kieker.map", map);
    folder.file("log/srv0/1.dat", "$1;1;shop.Shop.main();s;7;1000;9000;srv0;0;0\n");
    folder.file("log/srv1/1.dat", "$1;1;shop.Store.find(int);s;7;2000;5000;srv1;1;1\n");
    let model = run(&["model", &shown(&folder.path("log")), "--format", "text"]);
    assert_eq!(model.code, 0, "{}", model.err);
    assert!(model.out.contains("Shop") && model.out.contains("Store"), "{}", model.out);
    // The map is read where it lies beside the files that are named.
    let named = run(&[
        "model",
        &shown(&folder.path("log/srv0/1.dat")),
        &shown(&folder.path("log/srv1/1.dat")),
        "--format",
        "text",
    ]);
    assert_eq!((named.code, named.out.as_str()), (0, model.out.as_str()), "{}", named.err);
}

#[test]
fn a_log_of_kieker_is_no_model_though_it_begins_like_one() {
    let map = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let log = "$0;-1;1.9-SNAPSHOT;KIEKER;host;1;false;0;NANOSECONDS;1\n$1;1283156545581511026;shop.find();N/A;1;2;3;SRV1;1;1\n";
    for (text, reason) in [(map, "error[T102]: there is no Kieker span"), (log, "error[T121]: the map of this log")] {
        let refused = fed(&["model", "-"], text);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(reason), "{}", refused.err);
    }
    let model = fed(
        &["model", "-", "--format", "text"],
        "$rate = 2\nG \"\" 1e-5 50 -1\nP 0\np p f\n-1\nT 0\nt t n e -1 p\n-1\nE 0\na e $rate\ns e 0.1 -1\n-1\n",
    );
    assert_eq!(model.code, 0, "{}", model.err);
}

#[test]
fn matches_are_listed_in_the_order_in_which_they_were_made() {
    let csv = run(&["matches", FIGURE, "--format", "csv"]);
    assert_eq!(csv.code, 0, "{}", csv.err);
    assert_eq!(csv.out.lines().next(), Some("scenario,run,thread,node,template,entry"));
    assert!(csv.out.contains("a,1,1,3,basic_rpc,E1"), "{}", csv.out);
    let json: Value = serde_json::from_str(&run(&["matches", FIGURE, "--format", "json"]).out).expect("it is JSON");
    assert_eq!(json["matches"].as_array().map(Vec::len), Some(csv.out.lines().count() - 1));
    assert_eq!(
        json["matches"][0]["template"],
        csv.out.lines().nth(1).and_then(|row| row.split(',').nth(4)).unwrap_or_default()
    );
    assert!(run(&["matches", FIGURE]).out.contains("MATCHES"));
    for threads in ["1", "3"] {
        assert_eq!(run(&["matches", FIGURE, "--format", "csv", "--threads", threads]).out, csv.out);
    }
}

/// Three operations: whole, with two nodes lost, and without an end.
const DAMAGED: &str = "operation a run=1\na,1,1,Be | A,1\na,1,2,Ac | A,2\na,1,3,Ed | A,3\n\
                       operation a run=2\na,1,1,Be | A,1\na,1,4,Ac | A,4\na,1,5,Ed | A,5\n";

#[test]
fn damaged_operations_are_a_finding_of_check_and_set_aside_elsewhere() {
    let folder = Folder::new();
    let file = folder.file("t.angio", DAMAGED);
    let checked = run(&["trace", "check", &file]);
    assert_eq!(checked.code, 1, "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("set aside 1"), "{}", checked.out);
    let json = run(&["trace", "check", &file, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!((json.code, &document["set_aside"]), (1, &Value::from(1)));
    assert_eq!(run(&["trace", "check", FIGURE]).code, 0);
    assert_eq!(run(&["trace", "check", &file, "--strict"]).code, 2);
    let model = run(&["model", &file]);
    assert_eq!(model.code, 0, "{}", model.err);
    assert!(model.err.contains("1 set aside"), "{}", model.err);
    let strict = run(&["model", &file, "--strict"]);
    assert_eq!((strict.code, strict.out.as_str()), (2, ""));
}

#[test]
fn conversion_keeps_the_model() {
    let folder = Folder::new();
    let lines = shown(&folder.path("t.jsonl"));
    let converted = run(&["trace", "convert", "traces/two-scenarios.angio", "--to", "angio-jsonl", "-o", &lines]);
    assert_eq!(converted.code, 0, "{}", converted.err);
    let back = run(&["trace", "convert", &lines]);
    assert_eq!(back.code, 0, "{}", back.err);
    let original = run(&["model", "traces/two-scenarios.angio"]).out;
    assert_eq!(run(&["model", &lines]).out, original);
    assert_eq!(fed(&["model", "-"], &back.out).out, original);
}

#[test]
fn rule_files_are_checked() {
    let shipped = run(&["rules", "check"]);
    assert_eq!(shipped.code, 0, "{}{}", shipped.out, shipped.err);
    let printed = run(&["rules", "check", "rules/paper/tlc-1998.dl"]);
    assert_eq!(printed.code, 1, "{}", printed.out);
    assert!(printed.out.contains("tlc-1998.dl"), "{}", printed.out);
    let json = run(&["rules", "check", "rules/paper/tlc-1998.dl", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(json.code, 1);
    assert!(document["errors"].as_u64().is_some_and(|errors| errors > 0), "{}", json.out);
    assert_eq!(run(&["rules", "check", "no-such.dl"]).code, 2);
    let folder = Folder::new();
    let wrong = folder.file("w.dl", "template x {\n  order 1\n  match { e1 = Ax [j, k, m | a, v] }\n}\n");
    let refused = run(&["model", FIGURE, "--rules", &wrong]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{}", refused.err);
    assert!(refused.err.contains("w.dl:3"), "{}", refused.err);
}

#[test]
fn the_two_engines_make_one_model() {
    let plans = run(&["model", "traces/figure-4.angio"]);
    let crepe = run(&["model", "traces/figure-4.angio", "--engine", "crepe"]);
    assert_eq!((crepe.code, crepe.out), (0, plans.out), "{}", crepe.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command(&["matches", FIGURE, "--format", "csv"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let run = ran(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn colour_is_used_when_asked_for() {
    let coloured = |arguments: &[&str]| run(arguments).err.contains('\u{1b}');
    assert!(!coloured(&["model", "missing"]), "standard error is no terminal here");
    assert!(coloured(&["model", "missing", "--color", "always"]));
    assert!(!coloured(&["--color", "never", "model", "missing"]));
}

#[test]
fn completions_are_written() {
    for (shell, words) in [("bash", "_dyelog"), ("zsh", "#compdef dyelog"), ("fish", "complete -c dyelog")] {
        let run = run(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains(words), "{shell}");
    }
}

#[test]
fn models_and_traces_do_not_mix() {
    let folder = Folder::new();
    let (one, two) = (folder.file("one.lqn", MODEL), folder.file("two.lqn", MODEL));
    for files in [[FIGURE, &one], [&one, FIGURE]] {
        let mixed = run(&["solve", files[0], files[1]]);
        assert_eq!(mixed.code, 2, "{}", mixed.err);
        assert!(mixed.err.contains("[C005]") && mixed.err.contains("the two do not mix"), "{}", mixed.err);
    }
    let models = run(&["solve", &one, &two]);
    assert!(models.code == 2 && models.err.contains("more than one model"), "{}", models.err);
}

#[test]
fn a_name_of_another_format_is_told_of() {
    let folder = Folder::new();
    for (name, format, code, told) in [
        ("p.png", &[][..], 2, true),
        ("p.png", &["--format", "svg"], 0, true),
        ("p.svg", &[], 0, false),
        ("p", &[], 0, false),
    ] {
        let drawn = run(&[&["draw", "lqn", FIGURE, "-o", &shown(&folder.path(name))], format].concat());
        assert_eq!((drawn.code, drawn.err.contains("[C007]")), (code, told), "{name}: {}", drawn.err);
    }
    let swept = ["whatif", FIGURE, "--vary", "defaults.multiplicity=1..2", "--format", "svg", "-o"];
    let swept = run(&[&swept[..], &[&shown(&folder.path("p.pdf"))]].concat());
    assert!(swept.err.contains("[C007]"), "{}", swept.err);
}

#[test]
fn a_configuration_to_start_from_suggests_the_rate_that_was_seen() {
    let folder = Folder::new();
    let rows: Vec<String> = (0..11).map(|at| format!("user,server,{0}\nserver,user,{0}.1\n", at * 2)).collect();
    let trace = folder.file("m.csv", &format!("sender,receiver,time\n{}", rows.concat()));
    let started = run(&["config", "init", &trace]);
    assert_eq!(started.code, 0, "{}", started.err);
    assert!(started.out.contains("# rate = \"0.5/s\""), "{}", started.out);
}

#[test]
fn many_findings_of_a_kind_are_counted() {
    let folder = Folder::new();
    let span = |number: u32| {
        format!(
            "{{\"traceId\":\"{number:032x}\",\"spanId\":\"{number:016x}\",\"parentSpanId\":\"00000000000000ff\",\"name\":\"n\",\"kind\":2,\
             \"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"2000\"}}"
        )
    };
    let spans: Vec<String> = (1..=18).map(span).collect();
    let spans = spans.join(",");
    let trace = folder.file("t.json", &format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{spans}]}}]}}]}}"));
    let checked = run(&["trace", "check", &trace]);
    assert_eq!(checked.err.matches("[T111]").count(), 3, "{}", checked.err);
    assert!(checked.err.contains("and 15 more of T111"), "{}", checked.err);
    // The same file again adds no operation.
    let twice = run(&["trace", "check", &trace, &trace]);
    assert!(twice.out.starts_with("operations          18"), "{}", twice.out);
    assert!(twice.out.lines().any(|line| line == "duplicate span                             18"), "{}", twice.out);
}

#[test]
fn without_limit_is_written_with_or_without_the_m() {
    let folder = Folder::new();
    let solved = |name: &str, servers: &str| {
        let text = MODEL
            .replace("p cpu f", &format!("p cpu s {servers}"))
            .replace("serve -1 cpu", &format!("serve -1 cpu {servers}"));
        let solved = run(&["solve", &folder.file(name, &text), "--format", "json"]);
        assert_eq!(solved.code, 0, "{}", solved.err);
        solved.out
    };
    assert_eq!(solved("i.lqn", "i"), solved("mi.lqn", "m i"));
    assert_ne!(solved("m1.lqn", "m 1"), solved("mi.lqn", "m i"));
}
