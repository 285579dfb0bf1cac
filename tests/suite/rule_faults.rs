//! Faulty rule files, each with what is said of it written under the places it is said of.
//!
//! The cases lie in `rule_faults.dl`. `INSTA_UPDATE=always` writes what is said now; read it before you keep it.

use std::fmt::Write;
use std::sync::Arc;

use dyelog::authoring::has_event_templates;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use dyelog::same::rules as same_rules;
use dyelog::tlc::Rules;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/rule_faults.dl");
const MARK: &str = "//~";

/// All that is said of a text as a user's file, in the order of its places.
fn findings(text: &str) -> Vec<Diagnostic> {
    let file = (Arc::from("case.dl"), Arc::from(text));
    let loaded = || same_rules::load(std::slice::from_ref(&file), &|_| None);
    let mut found = match Rules::with_user_files(std::slice::from_ref(&file), &|_| None) {
        _ if has_event_templates(&file) => loaded().findings,
        Ok(rules) => rules.warnings().to_vec(),
        Err(Diagnostics(found)) => found,
    };
    found.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.code.cmp(&b.code)));
    found
}

/// The text with a line under each that findings begin in: where they are, their code and words.
fn annotated(text: &str) -> String {
    let found = findings(text);
    let mut out = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        out.push_str(line);
        let end = start + line.len();
        for finding in &found {
            let Place::Range { file, start: first, end: last } = &finding.place else { continue };
            let begins_here = (start..end).contains(first) || (end == text.len() && *first == end);
            if &**file != "case.dl" || !begins_here {
                continue;
            }
            let before = text[start..(*first).min(end)].chars().count();
            let width = text[(*first).min(end)..(*last).min(end)].trim_end_matches('\n').chars().count();
            let more = if *last > end { "…" } else { "" };
            let level = if finding.severity == Severity::Error { "error" } else { "warning" };
            let marks = if width == 0 { "|".to_owned() } else { "^".repeat(width) };
            // Under the place; what begins before there is room for that is marked by an arrow.
            let gap = if before < MARK.len() { "<".to_owned() } else { " ".repeat(before - MARK.len()) };
            let (code, message) = (finding.code, &finding.message);
            let _ = writeln!(out, "{MARK}{gap}{marks}{more} {level} {code}: {message}");
        }
        start = end;
    }
    out
}

fn plain(case: &str) -> String {
    case.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect()
}

#[test]
fn every_fault_is_told_once_at_its_place() {
    let text = std::fs::read_to_string(FILE).expect("the cases are there");
    let mut cases = text.split("\n//= ");
    let head = cases.next().unwrap_or_default();
    let mut now = head.to_owned();
    let mut codes = std::collections::BTreeSet::new();
    let mut count = 0;
    for case in cases {
        let (title, body) = case.split_once('\n').expect("a case has a title");
        let body = plain(body);
        let said = annotated(&body);
        assert!(said.contains(MARK), "{title}: nothing is wrong with it");
        codes.extend(findings(&body).into_iter().map(|finding| finding.code));
        let _ = write!(now, "\n//= {title}\n{said}");
        count += 1;
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(FILE, &now).expect("the tests are writable");
        return;
    }
    for (was, is) in text.lines().zip(now.lines()) {
        assert_eq!(was, is, "in rule_faults.dl");
    }
    assert_eq!(text.len(), now.len());
    assert!(count >= 40 && codes.len() >= 35, "{count} cases with {} codes", codes.len());
}
