//! The tools for writers of rule files, end to end.

use std::fs;

use serde_json::Value;

use crate::cli::{Folder, fed, run};

const UNTIDY: &str =
    "// mine\ntemplate t{order -1 match{e1=Ac[j,k,m|a,v]{name:\"x\"}}model{addActivity(E,e1)}} // end\n";

#[test]
fn fmt_changes_what_is_untidy_and_leaves_alone_what_is_broken() {
    let folder = Folder::new();
    let (untidy, broken) = (folder.file("untidy.dl", UNTIDY), folder.file("broken.dl", "template t{ order }"));
    let checked = run(&["rules", "fmt", "--check", &untidy]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    assert!(checked.out.contains("untidy.dl is not in the one style") && checked.out.contains("- template t{"));
    assert_eq!(fs::read_to_string(&untidy).expect("it is there"), UNTIDY);
    let both = run(&["rules", "fmt", &broken, &untidy]);
    assert_eq!((both.code, both.out.as_str()), (2, ""));
    assert!(both.err.contains("R005") && both.err.contains("broken.dl"), "{}", both.err);
    assert_eq!(fs::read_to_string(&broken).expect("it is there"), "template t{ order }");
    let tidy = fs::read_to_string(&untidy).expect("it is there");
    assert!(tidy.starts_with("// mine\ntemplate t {\n  order -1\n") && tidy.ends_with("}  // end\n"), "{tidy}");
    assert_eq!(run(&["rules", "fmt", "--check", &untidy]).code, 0);
    assert_eq!(fed(&["rules", "fmt", "-"], UNTIDY).out, tidy);
    assert_eq!(run(&["rules", "fmt", "no-such.dl"]).code, 2);
}

#[test]
fn codes_are_explained() {
    let text = run(&["explain", "r070"]);
    assert_eq!(text.code, 0);
    assert!(text.out.starts_with("R070: A thread that nothing goes on with\n"), "{}", text.out);
    let json = run(&["explain", "--list", "--format", "json"]);
    let list: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert!(list["codes"].as_array().is_some_and(|list| list.iter().any(|entry| entry["code"] == "R070")));
    assert!(run(&["explain", "--list"]).out.contains("R070"));
    for (subject, told) in [("R999", "there is no code"), ("nonsense", "is no code"), ("RO70", "did you mean `R070`?")]
    {
        let refused = run(&["explain", subject]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(told), "{}", refused.err);
    }
}

/// The project's own traces, by the command that users have.
#[test]
fn the_golden_traces_are_validated() {
    let all = run(&["test", "traces", "--snapshots", "snapshots"]);
    assert_eq!((all.code, all.err.as_str()), (0, ""), "{}", all.out);
    assert!(all.out.contains("validated  traces/shop.otlp.jsonl") && !all.out.contains("different"), "{}", all.out);
    let other = &["--filter", "acknowledged", "--rules", "examples/rules/acknowledged.dl"];
    let own = run(&[&["test", "traces", "--snapshots", "snapshots"][..], other].concat());
    assert_eq!(own.code, 1);
    for told in ["different  traces/acknowledged.angio", "missing  ", "1 trace: 1 different"] {
        assert!(own.out.contains(told), "{told}: {}", own.out);
    }
}

#[test]
fn what_is_found_is_accepted_when_asked_for() {
    let folder = Folder::new();
    folder.file("call.angio", &fs::read_to_string("traces/rpc.angio").expect("it is bundled"));
    let root = crate::cli::shown(&folder.path(""));
    let new = run(&["test", &root]);
    assert_eq!(new.code, 1);
    assert!(new.out.contains("no model of it is accepted yet") && new.out.contains("1 trace: 1 new"), "{}", new.out);
    let accepted = run(&["test", &root, "--update"]);
    assert_eq!((accepted.code, folder.names().join(" ").as_str()), (0, "call.angio call.model.snap"));
    assert_eq!(run(&["test", &root]).code, 0);
    let kept = fs::read_to_string(folder.path("call.model.snap")).expect("it was accepted");
    folder.file("call.model.snap", &kept.replace("2.1", "2.2").replace("client_1      find  ", "client_1      seek  "));
    let different = run(&["test", &root]);
    assert_eq!(different.code, 1);
    assert!(different.out.contains("1 noisy, 1 missing, 1 wrong"), "{}", different.out);
    let json = run(&["test", &root, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(document["traces"][0]["outcome"], "different");
    assert_eq!(document["traces"][0]["noisy"].as_array().map(Vec::len), Some(1));
    let junit = run(&["test", &root, "--format", "junit"]);
    assert!(junit.out.contains("tests=\"1\" failures=\"1\"") && junit.out.contains("&gt;") == junit.out.contains(">&"));
    // A configuration beside the trace is its own.
    folder.file("call.toml", "[task.server]\nthreads = 7\n");
    run(&["test", &root, "-U"]);
    assert!(fs::read_to_string(folder.path("call.model.snap")).expect("it is there").contains("FCFS              7"));
    let asked = run(&["test", &root, "--review"]);
    assert_eq!(asked.code, 2, "nobody is there to be asked");
    assert_eq!(run(&["test", &crate::cli::shown(&folder.path("no-such-folder"))]).code, 2);
    let empty = Folder::new();
    assert_eq!(run(&["test", &crate::cli::shown(&empty.path(""))]).code, 2);
}

/// What fails is never accepted, and what all traces fail for is told once.
#[test]
fn failures_are_not_accepted() {
    let folder = Folder::new();
    let trace = fs::read_to_string("traces/rpc.angio").expect("it is bundled");
    let (root, snapshot) = (crate::cli::shown(&folder.path("")), |name: &str| folder.path(name).exists());
    folder.file("a.angio", &trace);
    folder.file("b.angio", "operation x run=1\nx,1,1,Be | a\n");
    for how in ["-U", "--format=text"] {
        let tested = run(&["test", &root, how]);
        assert_eq!((tested.code, snapshot("b.model.snap")), (1, false), "{}", tested.out);
        assert!(tested.out.contains("failed     ") && tested.out.contains(" 1 failed"), "{}", tested.out);
        assert!(tested.out.contains("  error[M007]") && tested.out.contains("b.angio:2"), "{}", tested.out);
    }
    let json: Value = serde_json::from_str(&run(&["test", &root, "--format", "json"]).out).expect("it is JSON");
    assert_eq!((&json["traces"][0]["outcome"], &json["traces"][1]["outcome"]), (&"validated".into(), &"failed".into()));
    assert!(json["traces"][1]["reasons"].as_str().is_some_and(|reasons| reasons.contains("error[M007]")));
    assert!(run(&["test", &root, "--format", "junit"]).out.contains("<failure message=\"failed\">"));
    // A failure is asked about by nobody.
    assert!(!fed(&["test", &root, "--review"], "y\ny\n").err.contains("accept this?"));

    folder.file("b.angio", &trace);
    let rules = folder.file("mine.dl", "template t { order -1 match {");
    let broken = run(&["test", &root, "-U"]);
    assert_eq!((broken.code, broken.out.as_str(), snapshot("b.model.snap")), (2, "", false));
    assert_eq!(broken.err.matches("error[R").count(), broken.err.matches("mine.dl:1").count(), "{}", broken.err);
    assert!(broken.err.matches("error[R").count() <= 2, "{}", broken.err);
    fs::remove_file(rules).expect("it is there");
    let config = folder.file("c.toml.txt", "= 1");
    let broken = run(&["test", &root, "-U", "--config", &config]);
    assert_eq!((broken.code, broken.err.matches("error[M001]").count()), (2, 1), "{}", broken.err);
}

/// A template that no longer matches where it did, and a trace that is gone.
#[test]
fn what_vanishes_is_told() {
    let folder = Folder::new();
    let root = crate::cli::shown(&folder.path(""));
    folder.file("multi.angio", &fs::read_to_string("traces/multicast.angio").expect("it is bundled"));
    let rules = fs::read_to_string("rules/ext/multicast.dl").expect("it is shipped");
    folder.file("multi.dl", &rules);
    let accepted = run(&["test", &root, "-U"]);
    assert_eq!(accepted.code, 0, "{}{}", accepted.out, accepted.err);
    // With another operation's name the shipped templates make the same model.
    folder.file("multi.dl", &rules.replace("a != u[x],", "a != u[x], op(e2, \"none\"),"));
    let silent = run(&["test", &root]);
    assert_eq!(silent.code, 1, "{}{}", silent.out, silent.err);
    assert!(silent.out.contains("missing  template multicast  2") && !silent.out.contains("entry "), "{}", silent.out);
    folder.file("multi.dl", &rules);
    assert_eq!(run(&["test", &root]).code, 0);

    // Another way to make a model of a trace is no orphan; the model of a trace that is gone is one.
    folder.file("multi.other-way.model.snap", "");
    assert_eq!(run(&["test", &root]).code, 0);
    let gone = folder.file("gone.model.snap", "");
    let told = run(&["test", &root, "-U"]);
    assert_eq!(told.code, 1);
    assert!(
        told.out.contains(&format!("missing    {gone}  an accepted model whose trace is gone: delete it")),
        "{}",
        told.out
    );
    assert!(told.out.contains("1 trace: 1 validated; 1 accepted model whose trace is missing\n"), "{}", told.out);
    let filtered = run(&["test", &root, "--filter", "gone.model"]);
    assert_eq!((filtered.code, filtered.out.ends_with("\n1 accepted model whose trace is missing\n")), (1, true));
    let none = run(&["test", &root, "--filter", "nosuch"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("no path of a trace or an accepted model has `nosuch` in it"), "{}", none.err);
}

/// One accepted model for two traces would never settle; a folder for accepted models need not be there; a configuration
/// that cannot be used fails the trace that it lies beside, and others go on; what is no trace is called so.
#[test]
fn a_folder_of_odds_is_told_of() {
    let folder = Folder::new();
    let trace = fs::read_to_string("traces/rpc.angio").expect("it is bundled");
    let root = crate::cli::shown(&folder.path(""));
    folder.file("a.angio", &trace);
    let twin = folder.file("a.jsonl", "{}\n");
    let shared = run(&["test", &root, "-U"]);
    assert_eq!((shared.code, shared.out.as_str(), folder.names().join(" ").as_str()), (2, "", "a.angio a.jsonl"));
    for told in [twin.as_str(), "a.angio", "a.model.snap"] {
        assert!(shared.err.contains(told), "{told}: {}", shared.err);
    }
    fs::remove_file(twin).expect("it is there");
    folder.file("b.angio", &trace);
    folder.file("b.toml", "[task.server\n");
    folder.file("package.json", "{\"a\": 1}\n");
    let snapshots = crate::cli::shown(&folder.path("snaps/models"));
    let tested = run(&["test", &root, "--snapshots", &snapshots, "-U"]);
    assert_eq!((tested.code, tested.err.as_str()), (1, ""), "{}", tested.out);
    assert!(tested.out.contains("error[M001]") && tested.out.contains("error[T004]"), "{}", tested.out);
    assert!(tested.out.ends_with("\n3 traces: 1 accepted, 2 failed\n"), "{}", tested.out);
    assert!(folder.path("snaps/models/a.model.snap").exists());
}

#[test]
fn models_and_results_are_compared_by_name() {
    let folder = Folder::new();
    let file = |name: &str| crate::cli::shown(&folder.path(name));
    let (model, results) = (file("shop.lqnx"), file("a.json"));
    assert_eq!(run(&["model", "traces/shop.otlp.jsonl", "-o", &model]).code, 0);
    let same = run(&["diff", &model, "traces/shop.otlp.jsonl"]);
    assert_eq!((same.code, same.out.as_str()), (0, "no difference\n"));
    let differ = run(&["diff", "traces/forwarding-1.angio", "traces/forwarding-2.angio"]);
    assert_eq!(differ.code, 1);
    for word in ["vanished  request", "appeared  forward", "changed   entry"] {
        assert!(differ.out.contains(word), "{word}: {}", differ.out);
    }
    run(&["solve", "traces/rpc.angio", "--format", "json", "-o", &results]);
    let text = fs::read_to_string(&results).expect("it was written");
    let changed = folder.file("b.json", &text.replacen("0.125", "0.126", 1));
    assert_eq!(run(&["diff", &results, &results]).code, 0);
    assert_eq!(run(&["diff", &results, &changed]).code, 1);
    assert_eq!(run(&["diff", &results, &changed, "--tolerance", "1%"]).code, 0);
    assert_eq!(run(&["diff", &results, &changed, "--absolute", "0.01"]).code, 0);
    let json = run(&["diff", &results, &changed, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    assert_eq!(document["differences"][0]["value"], "utilization");
    assert_eq!(document["differences"][0]["after"], 0.126);
    assert_eq!(run(&["diff", &model, &results]).code, 2, "a model and results have nothing to compare");
    // Whoever found them: only figures count.
    let simulated = file("c.json");
    run(&["solve", "traces/rpc.angio", "--solver", "simulate", "--format", "json", "-o", &simulated]);
    let near = run(&["diff", &results, &simulated, "--tolerance", "10%"]);
    assert_eq!((near.code, near.out.as_str()), (0, "no difference\n"), "{}", near.err);
    let exact = run(&["diff", &results, &simulated]);
    assert!(exact.code == 1 && !exact.out.contains("half_width") && !exact.out.contains("seed"), "{}", exact.out);
    assert_eq!(run(&["diff", &model, &model, "--tolerance", "much"]).code, 2);
    // All solvers have the same figures, of open loads, too; what only one side has did not change.
    let config = folder.file("open.toml", "[scenario.rpc]\nrate = 1\n[defaults]\nthreads = 4\n");
    let (analytic, simulated) = (file("d.json"), file("e.json"));
    let open = ["solve", "traces/rpc.angio", "--config", &config, "--format", "json", "-o"];
    run(&[&open[..], &[analytic.as_str()]].concat());
    run(&[&open[..], &[simulated.as_str(), "--solver", "simulate"]].concat());
    let text = fs::read_to_string(&analytic).expect("it was written");
    assert!(text.contains("\"open_response\""), "{text}");
    let near = run(&["diff", &analytic, &simulated, "--tolerance", "10%", "--absolute", "0.01"]);
    assert_eq!((near.code, near.out.as_str()), (0, "no difference\n"), "{}", near.err);
    let mut document: Value = serde_json::from_str(&text).expect("it is JSON");
    for entry in document["entries"].as_array_mut().expect("a list") {
        entry.as_object_mut().expect("an object").remove("open_response");
    }
    let lacking = folder.file("f.json", &document.to_string());
    assert!(run(&["diff", &analytic, &lacking]).out.contains("vanished  entries"));
    assert!(run(&["diff", &lacking, &analytic]).out.contains("appeared  entries"));
}

/// What traces have no name for is called in words where people read of it, and as in the model for programs.
#[test]
fn parts_of_entries_and_customers_are_called_in_words() {
    let shop = "traces/shop.otlp.jsonl";
    let compared = |more: &[&str]| run(&[&["diff", shop, "traces/figure-3.angio"], more].concat()).out;
    let text = compared(&[]);
    assert!(text.contains("GET /product/{id}, fork 1 branch 1") && text.contains("users of a"), "{text}");
    assert!(!text.contains(".b1.1") && !text.contains("Cu_"), "{text}");
    assert!(compared(&["--format", "json"]).contains("GET /product/{id}.b1.1"));
    let page = run(&["report", shop, "-o", "-"]).out;
    assert!(page.contains("GET /product/{id}, step 1") && !page.contains("GET /product/{id}.s0"));
    let told = run(&["explain", shop, "--entry", "GET /product/{id}"]).out;
    assert!(told.contains("demand, activity GET /product/{id}, step 1:") && !told.contains(".s0"), "{told}");
    // Either name is understood.
    let [words, model] =
        ["GET /product/{id}, step 1", "GET /product/{id}.s0"].map(|name| run(&["explain", shop, "--demand", name]));
    assert!(words.code == 0 && words.out == model.out, "{}{}", words.out, words.err);
    // Whoever solves it.
    for command in [&["bottleneck"][..], &["whatif"], &["draw", "lqn", "--results"]] {
        let refused = run(&[command, &["traces/figure-3.angio"]].concat()).err;
        let is_told = refused.contains("operations of scenario `a` take no time in the model");
        assert!(is_told && !refused.contains("Cu_a"), "{refused}");
    }
}

/// Where more arrives than is served, times and busy threads grow for as long as one looks: there are none.
#[test]
fn without_a_steady_state_there_are_no_times() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[scenario.\"gateway GET /product/{id}\"]\nrate = \"3000/s\"\n");
    let solved = run(&["solve", "traces/shop.otlp.jsonl", "--config", &config]);
    assert!(solved.out.contains("there is no steady state"), "{}{}", solved.out, solved.err);
    let entry = solved.out.lines().find(|line| line.starts_with("POST /checkout/{id}")).expect("there is a row");
    assert!(entry.matches('–').count() >= 3, "{entry}");
    let page = run(&["report", "traces/shop.otlp.jsonl", "--config", &config, "-o", "-"]).out;
    let table = &page[page.find("time from acceptance to reply").expect("there is a table")..];
    assert!(table[..table.find("</table>").expect("it ends")].contains("–"));
}

/// Two recordings of one system differ by chance: what is within the intervals of both is counted. What takes longer is listed.
#[test]
fn differences_within_their_intervals_are_counted() {
    let folder = Folder::new();
    let recorded = |name: &str, seed: u64, slower: f64| {
        let mut stays = crate::servers::station(seed, 1, 0.2, 1000);
        for (begin, end) in &mut stays {
            *end = *begin + (*end - *begin) * slower;
        }
        folder.file(name, &crate::servers::spans(&stays, 1, |_| true))
    };
    let (before, like, slower) =
        (recorded("a.jsonl", 1, 1.0), recorded("b.jsonl", 2, 1.0), recorded("c.jsonl", 3, 1.5));
    let same = run(&["diff", &before, &like]);
    assert!(same.code == 1 && !same.out.contains("demand") && !same.out.contains("arrivals"), "{}", same.out);
    assert!(same.out.contains("within their intervals"), "{}", same.out);
    let differ = run(&["diff", &before, &slower]);
    assert!(differ.out.contains("phase 1 demand"), "{}", differ.out);
    let json = run(&["diff", &before, &like, "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    let all = document["differences"].as_array().expect("a list");
    assert!(all.iter().any(|own| own["value"] == "phase 1 demand" && own["within_interval"] == true), "{}", json.out);
}

#[test]
fn templates_are_drawn_and_described() {
    for template in ["basic_rpc", "nested_async_rpc", "forwarding", "parallel_branch", "begin"] {
        let svg = run(&["rules", "draw", template]);
        assert_eq!(svg.code, 0, "{}", svg.err);
        assert!(svg.out.starts_with("<svg ") && svg.out.ends_with("</svg>\n") && svg.out.contains(">e1</text>"));
        let mut reader = quick_xml::Reader::from_str(&svg.out);
        while !matches!(reader.read_event().expect("it is XML"), quick_xml::events::Event::Eof) {}
    }
    assert!(run(&["rules", "draw", "forwarding"]).out.contains("repeat x in 1..n, at least 1"));
    let unknown = run(&["rules", "draw", "forwardin"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean `forwarding`?"), "{}", unknown.err);
    let page = run(&["rules", "doc", "rules/tlc.dl"]).out;
    for told in ["## basic_rpc", "| e2 | `[j, k, m+1, Ac \\| b, w2]` |", "- `a != b`", "| `begins/3` |", "| `phase2` |"]
    {
        assert!(page.contains(told), "{told}: {page}");
    }
    assert!(!page.contains("parallel_branch"), "only the file itself is told of");
}

#[test]
fn a_new_template_passes_its_test() {
    let folder = Folder::new();
    let root = crate::cli::shown(&folder.path(""));
    let made = run(&["rules", "new", "ping", "--folder", &root]);
    assert_eq!(made.code, 0, "{}", made.err);
    let ping = crate::cli::shown(&folder.path("ping"));
    let tested = run(&["test", &ping]);
    assert_eq!(tested.code, 0, "{}{}", tested.out, tested.err);
    let (rules, trace) = (format!("{ping}/ping.dl"), format!("{ping}/ping.angio"));
    let matches = run(&["matches", &trace, "--rules", &rules, "--format", "csv"]);
    assert!(matches.out.contains(",ping,"), "{}", matches.out);
    let checked = run(&["rules", "check", &rules]);
    assert!(checked.out.starts_with("no findings"), "{}", checked.out);
    // The test is one of the template: without it another one matches.
    let kept = fs::read_to_string(&rules).expect("it was made");
    fs::remove_file(&rules).expect("it is there");
    let without = run(&["test", &ping]);
    assert_eq!(without.code, 1, "{}", without.out);
    assert!(without.out.contains("  missing  template ping  1\n"), "{}", without.out);
    fs::write(&rules, kept).expect("the folder is ours");
    assert_eq!(run(&["rules", "fmt", "--check", &rules]).code, 0);
    assert_eq!(run(&["rules", "new", "ping", "--folder", &root]).code, 2, "it is there already");
    assert_eq!(run(&["rules", "new", "a-b", "--folder", &root]).code, 2);
}

#[test]
fn plans_are_told_in_words() {
    let plan = run(&["rules", "plan", "async_rpc"]).out;
    for told in [
        "e1 is the glue node: Fk",
        "e2 is the next node of e1's thread: Ed",
        "the first node of the thread that e1 forks",
    ] {
        assert!(plan.contains(told), "{told}: {plan}");
    }
    let forwarding = run(&["rules", "plan", "forwarding"]).out;
    assert!(forwarding.contains("then from the last round to the first, at least 1:"), "{forwarding}");
    let json = run(&["rules", "plan", "--format", "json"]);
    let document: Value = serde_json::from_str(&json.out).expect("it is JSON");
    let plans = document.as_array().expect("a list");
    assert!(plans.len() >= 11);
    for plan in plans {
        assert!(plan["glue"]["node"] == "e1" && plan["steps"].is_array(), "{plan}");
    }
    assert_eq!(run(&["rules", "plan", "no_such"]).code, 2);
}

/// Three traces in a folder, each accepted but for a figure; the folder with its name.
fn three_to_review() -> (Folder, String) {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.file(&format!("{name}.angio"), &fs::read_to_string("traces/rpc.angio").expect("it is bundled"));
    }
    let root = crate::cli::shown(&folder.path(""));
    assert_eq!(run(&["test", &root, "--update"]).code, 0);
    for name in ["a", "b", "c"] {
        let file = format!("{name}.model.snap");
        let kept = fs::read_to_string(folder.path(&file)).expect("it was accepted");
        folder.file(&file, &kept.replace("2.1", "7.7"));
    }
    (folder, root)
}

#[test]
fn differences_are_reviewed_one_after_the_other() {
    let changed = |folder: &Folder| -> Vec<bool> {
        let is = |name: &str| {
            let kept = fs::read_to_string(folder.path(&format!("{name}.model.snap"))).expect("it is there");
            !kept.contains("7.7")
        };
        ["a", "b", "c"].map(is).to_vec()
    };
    let (folder, root) = three_to_review();
    let asked = fed(&["test", &root, "--review"], "y\nn\ny\n");
    assert_eq!((asked.code, changed(&folder)), (1, vec![true, false, true]), "{}", asked.err);
    assert_eq!(asked.err.matches("accept this? [y]es, [n]o, [q]uit: ").count(), 3);
    assert!(asked.err.contains("7.7") && asked.err.contains("2.1"), "{}", asked.err);
    assert!(asked.out.contains("2 accepted") && asked.out.contains("1 different"), "{}", asked.out);
    // What is left is asked about again; all accepted is good.
    let again = fed(&["test", &root, "-i"], "yes\n");
    assert_eq!((again.code, changed(&folder)), (0, vec![true, true, true]), "{}", again.err);

    // `q` ends the questions, not the test; so does the end of the answers.
    for answers in ["y\nq\n", "y\n", "what?\n\ny\nq"] {
        let (folder, root) = three_to_review();
        let asked = fed(&["test", &root, "--review"], answers);
        assert_eq!((asked.code, changed(&folder)), (1, vec![true, false, false]), "{answers:?}: {}", asked.err);
        assert!(asked.out.contains("2 different"), "{answers:?}: {}", asked.out);
    }
    let (folder, root) = three_to_review();
    let nobody = fed(&["test", &root, "--review"], "");
    assert_eq!((nobody.code, changed(&folder)), (2, vec![false; 3]));
    assert!(nobody.err.contains("needs a terminal"), "{}", nobody.err);
}

#[test]
fn several_rule_files_are_checked_with_totals() {
    let folder = Folder::new();
    let wrong = folder.file(
        "wrong.dl",
        "use \"none.dl\"\ntemplate t { order -1 match { e1 = Ac [j, k, m | a, v] } where { u > 1 } }",
    );
    let right = folder.file("right.dl", "template t { order -1 match { e1 = Ac [j, k, m | a, v] { name: \"x\" } } }");
    let both = run(&["rules", "check", &wrong, &right]);
    assert_eq!(both.code, 1);
    let rows: Vec<Vec<&str>> = both.out.lines().rev().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec![&*right, "1", "0", "0", "0"],
            vec![&*wrong, "0", "2", "0"],
            vec!["FILE", "TEMPLATES", "CASES", "ERRORS", "WARNINGS"]
        ]
    );
    assert!(both.out.contains("R012") && both.out.contains("R058"), "{}", both.out);
    let good = run(&["rules", "check", &right, &right]);
    assert_eq!((good.code, good.out.lines().count()), (0, 3), "{}", good.out);
}

#[test]
fn a_new_template_does_not_take_a_shipped_name() {
    let folder = Folder::new();
    let root = crate::cli::shown(&folder.path(""));
    for name in ["activity", "multicast"] {
        let refused = run(&["rules", "new", name, "--folder", &root]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("is the name of a shipped template"), "{}", refused.err);
    }
    assert!(folder.names().is_empty());
}
