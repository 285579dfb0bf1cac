//! Production and staging in one recording.

use std::fs;
use std::path::Path;

use crate::submodel::run;

/// The recorded shop, of which each resource says so, with trace identifiers that begin so.
fn shop(attribute: &str, value: &str, begin: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/shop.otlp.jsonl");
    let text = fs::read_to_string(path).expect("the golden trace is there");
    let told = format!(r#""resource":{{"attributes":[{{"key":"{attribute}","value":{{"stringValue":"{value}"}}}},"#);
    let text = text.replace(r#""resource":{"attributes":["#, &told);
    let mut parts = text.split(r#""traceId":""#);
    let first = parts.next().expect("there is a first part").to_owned();
    parts.fold(first, |all, part| format!("{all}\"traceId\":\"{begin}{}", &part[begin.len()..]))
}

fn model(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(folder, &[&["model", "--format", "json"], arguments].concat())
}

#[test]
fn services_of_several_deployments_are_told_and_one_can_be_taken() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    for (attribute, option) in [
        ("deployment.environment.name", "--environment"),
        ("deployment.environment", "--environment"),
        ("service.namespace", "--namespace"),
        ("k8s.namespace.name", "--namespace"),
    ] {
        let (production, staging) = (shop(attribute, "production", "aa"), shop(attribute, "staging", "bb"));
        fs::write(at.join("production.jsonl"), &production).expect("there is room");
        fs::write(at.join("all.jsonl"), format!("{staging}{production}")).expect("there is room");
        let (_, alone, own) = model(at, &["production.jsonl"]);
        assert!(!own.contains("T142"), "{own}");
        let (_, both, told) = model(at, &["all.jsonl"]);
        assert_ne!(both, alone);
        assert!(told.contains("warning[T142]: services of 2 ") && told.contains("`production` has 50 %"), "{told}");
        assert!(told.contains(&format!("`{option} production` takes the spans of that one")), "{told}");
        let (code, chosen, told) = model(at, &["all.jsonl", option, "production"]);
        assert_eq!((code, chosen.replace("all.jsonl", "production.jsonl")), (0, alone.clone()), "{told}");
        assert!(!told.contains("T142"), "{told}");
        let (_, _, told) = run(at, &["trace", "stat", "all.jsonl", option, "production"]);
        assert!(told.contains("note[T142]: `") && told.contains("left out: ") && told.contains("`staging`"), "{told}");
    }
}

#[test]
fn spans_that_name_no_deployment_stay_and_other_names_take_none() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = folder.path();
    let plain = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/shop.otlp.jsonl");
    let (_, alone, _) = model(at, &[plain]);
    let (_, taken, told) = model(at, &[plain, "--environment", "production"]);
    assert_eq!(taken, alone);
    assert!(told.contains("warning[T142]") && told.contains("of those that are taken name none"), "{told}");
    fs::write(at.join("staging.jsonl"), shop("deployment.environment", "staging", "bb")).expect("there is room");
    let (code, _, told) = model(at, &["staging.jsonl", "--environment", "production"]);
    assert!(code != 0 && told.contains("takes 0 of ") && told.contains("`staging`"), "{code}: {told}");
    // What was summed up does not tell whose spans it is of.
    let (code, ..) = run(at, &["model", plain, "--format", "submodel", "-o", "shop.json"]);
    assert_eq!(code, 0);
    let (code, _, told) = model(at, &["shop.json", "--environment", "production"]);
    assert!(code == 2 && told.contains("--environment"), "{code}: {told}");
}
