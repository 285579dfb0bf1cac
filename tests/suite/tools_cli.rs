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
    assert!(list.as_array().is_some_and(|list| list.iter().any(|entry| entry["code"] == "R070")));
    assert!(run(&["explain", "--list"]).out.contains("R070"));
    for (subject, told) in [("R999", "there is no code"), ("nonsense", "is no code"), ("RO70", "did you mean `R070`?")]
    {
        let refused = run(&["explain", subject]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(told), "{}", refused.err);
    }
}
