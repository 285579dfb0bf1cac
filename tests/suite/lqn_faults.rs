//! What the readers and the lint of models say of faulty input.
//!
//! Whole models lie in `lqn_faults.models`, each with what is said of it under the lines it is said of. `INSTA_UPDATE=always`
//! writes what is said now; read it before you keep it.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use dyelog::lqn::{Language, Model, json, lint, parse_any, read_any, text, xml};
use proptest::prelude::*;

use crate::lqn::{SHOP, TINY, read};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/lqn_faults.models");
const MARK: &str = "//~";

/// All that is said of a model, in the order of its places.
fn said_of(text: &str) -> Vec<Diagnostic> {
    let mut found = match read_any("case", text) {
        Ok(loaded) => {
            let mut doubtful = lint::check(&loaded.model);
            loaded.places.locate(&mut doubtful);
            [loaded.findings, doubtful].concat()
        }
        Err(Diagnostics(found)) => found,
    };
    found.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.code.cmp(&b.code)));
    found
}

/// The text with a line under each that findings are about: where, their severity, code and words; then those on the whole file.
fn annotated(text: &str) -> String {
    let found = said_of(text);
    let mut out = String::new();
    for (line_text, number) in text.split_inclusive('\n').zip(1u32..) {
        out.push_str(line_text);
        if !line_text.ends_with('\n') {
            out.push('\n');
        }
        for finding in &found {
            let Place::Line { line, column, .. } = finding.place else { continue };
            if line == number {
                let (severity, code, message) = (finding.severity, finding.code, &finding.message);
                let gap = " ".repeat((column as usize).saturating_sub(1 + MARK.len()));
                let mark = if (column as usize) > MARK.len() { "^" } else { "<" };
                let _ = writeln!(out, "{MARK}{gap}{mark} {severity} {code}: {message}");
            }
        }
    }
    let lines = text.split_inclusive('\n').count() as u32;
    for finding in &found {
        match &finding.place {
            Place::Line { line, .. } if *line <= lines => {}
            Place::Line { .. } => {
                let _ =
                    writeln!(out, "{MARK} after the end: {} {}: {}", finding.severity, finding.code, finding.message);
            }
            _ => {
                let _ = writeln!(out, "{MARK} the file: {} {}: {}", finding.severity, finding.code, finding.message);
            }
        }
    }
    out
}

fn plain(case: &str) -> String {
    case.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect()
}

/// Titles and texts of the cases.
fn cases(text: &str) -> Vec<(&str, String)> {
    let cases = text.split("\n//= ").skip(1);
    cases
        .map(|case| {
            let (title, body) = case.split_once('\n').expect("a case has a title");
            (title, plain(body))
        })
        .collect()
}

#[test]
fn every_fault_is_told_once_at_its_place() {
    let text = std::fs::read_to_string(FILE).expect("the cases are there");
    let mut now = text.split("\n//= ").next().unwrap_or_default().to_owned();
    let mut codes = std::collections::BTreeSet::new();
    let cases = cases(&text);
    for (title, body) in &cases {
        let said = annotated(body);
        assert!(said.contains(MARK), "{title}: nothing is wrong with it");
        codes.extend(said_of(body).into_iter().map(|finding| finding.code));
        let _ = write!(now, "\n//= {title}\n{said}");
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(FILE, &now).expect("the tests are writable");
        return;
    }
    for (was, is) in text.lines().zip(now.lines()) {
        assert_eq!(was, is, "in lqn_faults.models");
    }
    assert_eq!(text.len(), now.len());
    assert!(cases.len() >= 60 && codes.len() >= 25, "{} cases with {} codes", cases.len(), codes.len());
}

#[test]
fn a_faulty_model_ends_with_exit_code_2_and_all_its_errors() {
    let text = std::fs::read_to_string(FILE).expect("the cases are there");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("case");
    for (title, body) in cases(&text) {
        let errors: Vec<Diagnostic> =
            said_of(&body).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
        std::fs::write(&path, &body).expect("the scratch folder is writable");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
            let output = command.args(arguments).arg(&path).stdin(Stdio::null()).output().expect("it runs");
            (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        };
        let (code, said) = run(&["lqn", "check"]);
        assert!(matches!(code, Some(1 | 2)), "{title}: {code:?} {said}");
        for error in &errors {
            assert!(said.contains(&format!("error[{}]", error.code)), "{title}: {} is missing in {said}", error.code);
        }
        // What cannot be read cannot be solved; what can be read is refused where it means nothing.
        let (code, said) = run(&["solve"]);
        if read_any("case", &body).is_err() {
            assert_eq!(code, Some(2), "{title}: {said}");
        } else {
            assert!(matches!(code, Some(0 | 2 | 3)), "{title}: {code:?} {said}");
        }
    }
}

#[test]
fn wrong_encodings_are_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("model.lqn");
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(TINY.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let latin: Vec<u8> = TINY.replace("tiny", "t\u{ef}ny").chars().map(|letter| letter as u8).collect();
    for (what, bytes, said) in [("UTF-16", wide, "UTF-16"), ("Latin-1", latin, "UTF-8"), ("rubbish", vec![0; 100], "")]
    {
        std::fs::write(&path, &bytes).expect("the scratch folder is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog"));
        let output = command.args(["lqn", "check"]).arg(&path).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{what}: {text}");
        assert!(text.contains(said) && text.contains("model.lqn"), "{what}: {text}");
    }
}

/// Code, line and column of findings.
fn places(outcome: Result<(Model, Vec<Diagnostic>), Diagnostics>) -> Vec<(&'static str, u32, u32)> {
    let findings = match outcome {
        Ok((_, findings)) | Err(Diagnostics(findings)) => findings,
    };
    findings
        .iter()
        .map(|finding| match finding.place {
            Place::Line { line, column, .. } => (finding.code.0, line, column),
            _ => (finding.code.0, 0, 0),
        })
        .collect()
}

/// What is wrong, what to replace in a sound model, by what, and the findings expected.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, u32, u32)]);

#[test]
fn faults_of_texts_are_found_where_they_are() {
    let cases: [Case; 20] = [
        ("a misspelt processor", "-1 client z", "-1 cliant z", &[("L002", 12, 21)]),
        ("a misspelt entry", "y shop order 0.3", "y shop oder 0.3", &[("L002", 19, 10)]),
        ("two tasks of a name", "t db n", "t users n", &[("L003", 14, 5)]),
        ("two processors of a name", "p db f", "p web f", &[("L003", 8, 5), ("L002", 14, 26)]),
        ("two entries of a name", "query update -1", "order query update -1", &[("L003", 14, 10)]),
        ("half a thread", "m 10", "m 1.5", &[("L004", 13, 35)]),
        ("no thread", "m 10", "m 0", &[("L004", 13, 35)]),
        ("a number too large", "m 10", "m 1e10", &[("L004", 13, 35)]),
        ("a demand that is none", "s query 0.004 -1", "s query fast -1", &[("L001", 25, 11)]),
        ("an unknown record", "  s query", "  k query", &[("L001", 25, 3)]),
        ("four phases", "s query 0.004", "s query 1 2 3 4", &[("L001", 25, 3)]),
        ("an unknown variable", "z $think", "z $thunk", &[("L007", 12, 30)]),
        ("an unknown scheduling", "p web s", "p web x", &[("L001", 7, 9)]),
        ("phases of activities", "  s update", "  s order 1 -1\n  s update", &[("L013", 26, 3)]),
        ("an unknown activity", "pay & pack -> done", "pay & sack -> done", &[("L002", 40, 9)]),
        ("an unknown first activity", "A order check", "A order chuck", &[("L002", 21, 11)]),
        ("calls said twice", "  s query", "  y shop order 1 -1\n  s query", &[("L012", 25, 3)]),
        ("a text without its end", "done[order]\n-1\n", "done[order]", &[("L001", 41, 14)]),
        (
            "a list without its end",
            "shop -1 client",
            "shop client",
            &[("L001", 12, 27), ("L002", 18, 5), ("L002", 19, 5), ("L002", 20, 5)],
        ),
        ("a section without its end", "-1\n\nT 3", "T 3", &[("L001", 9, 1)]),
    ];
    for (what, right, wrong, expected) in cases {
        assert!(SHOP.contains(right), "{what}: the model has no `{right}`");
        assert_eq!(places(text::parse("faulty", &SHOP.replacen(right, wrong, 1))), expected, "{what}");
    }
}

#[test]
fn one_mistake_does_not_hide_the_next() {
    let source = SHOP.replace("p db f R 2", "p db f R two").replace("s query 0.004", "s quary 0.004");
    let source = source.replace("done[order]", "done[ordre]");
    assert_eq!(
        places(text::parse("faulty", &source)),
        [("L001", 8, 12), ("L002", 14, 26), ("L002", 25, 5), ("L002", 41, 8)]
    );
}

#[test]
fn a_misspelt_name_brings_a_hint() {
    let errors = text::parse("faulty", &SHOP.replace("y shop order", "y shop ordr")).unwrap_err();
    assert_eq!(errors.0[0].hints, ["did you mean `order`?"]);
    let source = xml::write(&read("tiny", TINY)).replace("calls-mean", "calls-meen");
    let (_, warnings) = xml::parse("faulty", &source).unwrap();
    assert_eq!(warnings[0].hints, ["did you mean `calls-mean`?"]);
    let source = json::write(&read("tiny", TINY)).replace("\"demand\"", "\"demnd\"");
    assert_eq!(json::parse("faulty", &source).unwrap_err().0[0].hints, ["did you mean `demand`?"]);
}

#[test]
fn faults_of_xml_are_found_where_they_are() {
    let cases: [Case; 13] = [
        ("an unknown attribute", "host-demand-cvsq", "host-demand-cv2", &[("L005", 17, 16)]),
        ("an unknown element", "synch-call", "sync-call", &[("L005", 9, 19)]),
        ("an unknown entry", "dest=\"read\"", "dest=\"raed\"", &[("L002", 9, 19)]),
        ("no name", "<task name=\"user\"", "<task", &[("L001", 5, 7)]),
        ("no number", "host-demand-mean=\"1\"", "host-demand-mean=\"one\"", &[("L004", 8, 16)]),
        ("an infinite number", "host-demand-mean=\"1\"", "host-demand-mean=\"inf\"", &[("L004", 8, 16)]),
        ("half a thread", "multiplicity=\"3\"", "multiplicity=\"1.5\"", &[("L004", 5, 7)]),
        ("a fourth phase", "phase=\"1\"", "phase=\"4\"", &[("L004", 8, 16)]),
        ("an unknown scheduling", "scheduling=\"ref\"", "scheduling=\"rev\"", &[("L001", 5, 7)]),
        ("two tasks of a name", "<task name=\"disk\"", "<task name=\"user\"", &[("L003", 14, 7)]),
        ("an entity", "comment=\"tiny\"", "comment=\"&bomb;\"", &[("L001", 3, 4)]),
        ("an unclosed element", "</lqn-model>", "", &[("L001", 2, 1)]),
        ("another document", "lqn-model", "html", &[("L001", 2, 1)]),
    ];
    let right = xml::write(&read("tiny", TINY));
    for (what, old, new, expected) in cases {
        let wrong = if what == "another document" { right.replace(old, new) } else { right.replacen(old, new, 1) };
        assert!(right != wrong, "{what}: the model has no `{old}`");
        assert_eq!(places(xml::parse("faulty", &wrong)), expected, "{what}");
    }
}

#[test]
fn faults_of_json_are_found_where_they_are() {
    let cases: [(&str, &str, &str, &str, &str); 8] = [
        ("an unknown field", "\"demand\"", "\"demnd\"", "L001", "tasks[0].entries[0].phases[0].demnd"),
        ("a missing field", "      \"processor\": \"cpu\",\n", "", "L001", "tasks[0]"),
        (
            "an unknown entry",
            "\"to\": \"read\"",
            "\"to\": \"raed\"",
            "L002",
            "tasks[0].entries[0].phases[0].calls[0].to",
        ),
        ("an unknown processor", "\"processor\": \"cpu\"", "\"processor\": \"gpu\"", "L002", "tasks[0].processor"),
        ("two tasks of a name", "\"name\": \"disk\"", "\"name\": \"user\"", "L003", "tasks[1].name"),
        ("an unknown scheduling", "\"ref\"", "\"rev\"", "L001", "tasks[0].scheduling"),
        ("a later version", "\"dyelog-model\": 1", "\"dyelog-model\": 2", "L010", "dyelog-model"),
        ("no thread", "\"multiplicity\": 3", "\"multiplicity\": 0", "L004", "tasks[0].multiplicity"),
    ];
    let right = json::write(&read("tiny", TINY));
    for (what, old, new, code, place) in cases {
        assert!(right.contains(old), "{what}: the model has no `{old}`");
        let errors = json::parse("faulty", &right.replacen(old, new, 1)).unwrap_err();
        let found = match &errors.0[0].place {
            Place::Line { line, column, .. } if errors.0[0].label.is_empty() => format!("{line}:{column}"),
            Place::Line { .. } => errors.0[0].label.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!((errors.0[0].code.0, found.as_str()), (code, place), "{what}: {errors:?}");
    }
}

#[test]
fn what_is_no_part_of_a_model_is_counted() {
    let source = xml::write(&read("tiny", TINY))
        .replace("</lqn-model>", "<result-general valid=\"YES\"><mva-info core=\"4\"/></result-general></lqn-model>");
    let (model, findings) = xml::parse("solved", &source).unwrap();
    assert_eq!(model, read("tiny", TINY));
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].code.0, findings[0].severity), ("L006", Severity::Note));
    assert_eq!(findings[0].message, "2 elements of results were passed over");
    let source = format!("{TINY}R 1\n  $0 = 2\n  $t = %u user\n-1\n").replace("p cpu f", "p cpu f %u $busy");
    let (model, findings) = text::parse("reporting", &source).unwrap();
    assert_eq!(model, read("tiny", TINY));
    assert_eq!(findings[0].message, "2 wishes for reports of results were passed over");
}

#[test]
fn variables_are_replaced() {
    let definitions = "$a = 3\n$b = ($a + 1) * 2 - 10 / 5 ^ 1\n$c = -$b\n$d = $a -1\n$e = [4, 5, 6]\n$f = [1:9, 2]\n";
    let source = format!("{definitions}{TINY}").replace("m 3", "m $a").replace("go 1 -1", "go $b $d $e -1");
    let (model, findings) = text::parse("variables", &source).unwrap();
    let phases = match &model.entries[0].body {
        dyelog::lqn::Body::Phases(phases) => phases.iter().map(|work| work.demand).collect(),
        dyelog::lqn::Body::Activities(_) => Vec::new(),
    };
    assert_eq!(phases, [6.0, 2.0, 4.0]);
    assert_eq!(places(Ok((model, findings))), [("L011", 5, 1), ("L011", 6, 1)]);
}

#[test]
fn every_prefix_of_a_model_is_read_or_refused() {
    let model = read("shop", SHOP);
    for source in [SHOP.to_owned(), text::write(&model), xml::write(&model), json::write(&model)] {
        for end in (0..source.len()).filter(|&end| source.is_char_boundary(end)) {
            if let Err(errors) = parse_any("cut", &source[..end]) {
                assert!(errors.0.iter().any(|error| error.severity == Severity::Error));
            }
        }
    }
}

#[test]
fn hostile_documents_are_refused_quickly() {
    let deep_xml = "<lqn-model>".to_owned() + &"<processor name=\"p\">".repeat(100_000);
    assert_eq!(places(xml::parse("deep", &deep_xml))[0].0, "L008");
    let results = "<lqn-model>".to_owned() + &"<result-task>".repeat(100_000);
    assert_eq!(places(xml::parse("results", &results)), [("L001", 1, 1)]);
    let deep_json = "{\"dyelog-model\":".to_owned() + &"[".repeat(100_000);
    assert_eq!(places(json::parse("deep", &deep_json))[0].0, "L001");
    let deep_text = "$x = ".to_owned() + &"(".repeat(100_000) + "1";
    assert_eq!(places(text::parse("deep", &deep_text))[0].0, "L001");
    let powers = "$x = 1".to_owned() + &"^1".repeat(100_000) + "\nG";
    assert_eq!(places(text::parse("powers", &powers))[0].0, "L001");
    let strangers = TINY.replace("s go", &"y go nobody 1 -1\ny nobody go 1 -1\n".repeat(50_000));
    assert_eq!(places(text::parse("strangers", &strangers))[0].0, "L002");
    let bomb = "<!DOCTYPE b [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><lqn-model name=\"&b;\"/>";
    assert_eq!(places(xml::parse("bomb", bomb))[0].0, "L001");
    let counts = TINY.replace("P 1", "P 4000000000").replace("m 3", "m 4000000000");
    assert_eq!(read("counts", &counts).tasks.len(), 2);
    let rubbish: String = (0..100_000u32).map(|index| char::from((index * 7919 % 251) as u8)).collect();
    for language in Language::ALL {
        assert!(language.parse("rubbish", &rubbish).is_err());
    }
    let Err(errors) = text::parse("wrong", &"x\n".repeat(100_000)) else { panic!("no model") };
    assert!(errors.0.len() <= 101, "a wrong file does not give a message a line");
    for source in ["", "\n", "#", "{}", "<a/>", "\u{feff}", "P", "G", "$", "-1", "\""] {
        assert!(parse_any("little", source).is_err(), "{source:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(source in "\\PC{0,200}") {
        for language in Language::ALL {
            let _ = language.parse("noise", &source);
        }
    }

    /// Words of the language in any order come nearer to the parser's inner states than noise does.
    #[test]
    fn no_sequence_of_words_makes_a_reader_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "G", "\"c\"", "P", "U", "T", "E", "A", "R", "C", "-1", "1", "0.5", "p", "t", "s", "y", "z", "F", "a", "f",
                "m", "i", "r", "n", "e1", "t1", "p1", ":", "->", ";", "&", "+", "(", ")", "[", "]", "*", ",", "$x", "=",
                "\n", "%", "I", "O", "q", "g", "H", "M",
            ]),
            0..60,
        ),
    ) {
        let source = words.join(" ");
        let _ = text::parse("words", &source);
    }
}
