//! Traces of parallel calls whose services share a machine, against the system that made them.

use std::fs;

use serde_json::Value;

use crate::solve::forks::system;
use crate::submodel::run;

/// Spans as they are without measured processor time and machines.
fn stripped(text: &str) -> String {
    let line = |line: &str| {
        let mut request: Value = serde_json::from_str(line).expect("it is JSON");
        for resource in request["resourceSpans"].as_array_mut().expect("a list") {
            let attributes = resource["resource"]["attributes"].as_array_mut().expect("a list");
            attributes.retain(|own| own["key"] == "service.name");
            for span in resource["scopeSpans"][0]["spans"].as_array_mut().expect("a list") {
                span.as_object_mut().expect("an object").remove("attributes");
            }
        }
        request.to_string() + "\n"
    };
    text.lines().map(line).collect()
}

#[test]
fn responses_of_parallel_calls_grow_with_the_load_of_their_machine() {
    let demands = [0.003, 0.004, 0.002, 0.003, 0.004];
    let folder = tempfile::tempdir().expect("a scratch folder");
    let place = |name: &str| folder.path().join(name);
    let services = (0..demands.len()).map(|number| format!("s{number}")).chain(["front".to_owned()]);
    let tasks: Vec<String> = services.map(|name| format!("[task.{name}]\nprocessor = \"box\"\n")).collect();
    fs::write(place("box.toml"), tasks.concat()).expect("there is room");
    for servers in [1, 2] {
        fs::write(place("m.lqn"), system(servers, 0.5, 0.001, &demands, 0.0003)).expect("there is room");
        fs::write(place("more.lqn"), system(servers, 0.7, 0.001, &demands, 0.0003)).expect("there is room");
        let (code, _, words) =
            run(folder.path(), &["simulate", "m.lqn", "--trace", "t.otlp.jsonl", "--operations", "5000", "-q"]);
        assert_eq!(code, 0, "{words}");
        let text = fs::read_to_string(place("t.otlp.jsonl")).expect("it was written");
        fs::write(place("t.otlp.jsonl"), stripped(&text)).expect("there is room");
        let arguments = ["t.otlp.jsonl", "--config", "box.toml", "--format", "json"];
        let (code, solved, words) = run(folder.path(), &[&["solve"], &arguments[..]].concat());
        assert_eq!(code, 0, "{words}");
        let solved: Value = serde_json::from_str(&solved).expect("it is JSON");
        let scenario = &solved["scenarios"][0];
        let (own, traced) = (scenario["response"].as_f64(), scenario["traced_response"].as_f64());
        let off = own.expect("a response") / traced.expect("it was traced") - 1.0;
        assert!(off.abs() < 0.02, "{servers}: {off} at the traced load");
        let rate = ["--vary", "scenario.\"front op\".rate=x1.4", "--show", "response"];
        let (code, swept, words) = run(folder.path(), &[&["whatif"], &arguments[..], &rate].concat());
        assert_eq!(code, 0, "{words}");
        let swept: Value = serde_json::from_str(&swept).expect("it is JSON");
        let predicted = swept["points"][0]["figures"][0].as_f64().expect("a response");
        // Neither does a question about another load fit delays anew: a file of the model answers the same.
        let (code, _, words) =
            run(folder.path(), &[&["model"], &arguments[..3], &["--format", "json", "-o", "model.json"]].concat());
        assert_eq!(code, 0, "{words}");
        let asked = ["whatif", "model.json", "--vary", "entry.op.rate=x1.4", "--format", "json"];
        let (code, of_file, words) = run(folder.path(), &asked);
        assert_eq!(code, 0, "{words}");
        let of_file: Value = serde_json::from_str(&of_file).expect("it is JSON");
        let of_file = of_file["points"][0]["figures"][0].as_f64().expect("a response");
        assert!(
            (of_file / predicted - 1.0).abs() < 2e-3,
            "{servers}: {of_file} s of the file, {predicted} s of traces"
        );
        let (_, simulated, _) = run(folder.path(), &["simulate", "more.lqn", "--format", "json", "-q"]);
        let simulated: Value = serde_json::from_str(&simulated).expect("it is JSON");
        let entries = simulated["entries"].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["name"] == "op").expect("it is there");
        let truth = entry["service"][0].as_f64().or(entry["service"].as_f64()).expect("it takes a time");
        let off = predicted / truth - 1.0;
        assert!(off.abs() < 0.25, "{servers}: {predicted} s for {truth} s with 1.4 times the load");
    }
}
