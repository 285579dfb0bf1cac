//! The languages of layered queueing networks.

use std::fs;
use std::path::PathBuf;

use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use dyelog::lqn::{
    Entry, Language, Model, Processor, ProcessorId, Scheduling, Task, TaskId, json, parse_any, text, xml,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::lqn_strategy;
use crate::support::shared;

/// All models of the reference data.
pub fn references() -> Vec<(String, String)> {
    let Some(root) = shared("lqn") else { return Vec::new() };
    let mut folders: Vec<PathBuf> = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lqn" || extension == "lqnx") {
                files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(files.len() > 150, "the reference data is there but has only {} models", files.len());
    files.sort();
    files
}

fn read(name: &str, source: &str) -> Model {
    match parse_any(name, source) {
        Ok((model, _)) => model,
        Err(errors) => panic!("{name}: {errors:#?}\n{source}"),
    }
}

/// The model as JSON with tasks and groups in the order of their names: XML nests both in processors, which changes
/// their order and nothing else.
fn unordered(model: &Model) -> Value {
    let mut value: Value = serde_json::from_str(&json::write(model)).unwrap();
    for list in ["tasks", "groups"] {
        if let Some(elements) = value.get_mut(list).and_then(Value::as_array_mut) {
            elements.sort_by_key(|element| element["name"].to_string());
        }
    }
    value
}

/// Written in each language and read again, it is the same.
fn assert_given_back(name: &str, model: &Model) {
    for language in [Language::Lqn, Language::Json] {
        let written = language.write(model);
        assert_eq!(Language::of(&written), Some(language), "{written}");
        let again = read(name, &written);
        assert!(again == *model, "{name} is another model after {language:?}:\n{}", difference(model, &again));
    }
    let nested = read(name, &xml::write(model));
    assert_eq!(unordered(&nested), unordered(model), "{name} in XML");
    assert_eq!(read(name, &xml::write(&nested)), nested, "{name} twice in XML");
    // Across languages: once through all three.
    let around = read(name, &xml::write(&read(name, &json::write(&read(name, &text::write(&nested))))));
    assert_eq!(around, nested, "{name} through all languages");
}

/// Lines of two models' JSON that differ.
fn difference(left: &Model, right: &Model) -> String {
    let (left, right) = (json::write(left), json::write(right));
    let pairs = left.lines().zip(right.lines()).filter(|(left, right)| left != right).take(5);
    pairs.flat_map(|(left, right)| ["- ", left, "\n+ ", right, "\n"]).collect()
}

#[test]
fn every_reference_model_loads_without_complaint() {
    for (name, source) in references() {
        match parse_any(&name, &source) {
            Ok((_, findings)) => {
                let grave: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Note).collect();
                assert!(grave.is_empty(), "{name}: {grave:#?}");
            }
            Err(errors) => panic!("{name}: {errors:#?}"),
        }
    }
}

#[test]
fn every_reference_model_is_given_back_in_every_language() {
    for (name, source) in references() {
        assert_given_back(&name, &read(&name, &source));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_models_are_given_back(model in lqn_strategy::model()) {
        assert_given_back("random", &model);
    }

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

const SHOP: &str = r#"# A small shop.
$think = 2 * (1 + 0.5)
G "shop" 1e-5 50 10 0.9 -1

P 3
  p client i
  p web s 0.1 m 2
  p db f R 2
-1

T 3
  t users r shop -1 client z $think m 20
  t web n order browse -1 web 1 m 10
  t db n query update -1 db
-1

E 5
  s shop 0 -1
  y shop order 0.3 -1
  y shop browse 2 -1
  A order check
  s browse 0.01 0.002 -1
  c browse 2 -1
  y browse query 1 0.5 -1
  s query 0.004 -1
  s update 0.006 -1
  a update 0.5
  f update 1 -1
-1

A web
  s check 0.001
  s pay 0.02
  y pay update 1
  s pack 0.03
  z pack query 1.5
  s done 0.001
:
  check -> pay & pack;
  pay & pack -> done;
  done[order]
-1
"#;

#[test]
fn a_text_as_a_person_writes_it() {
    let model = read("shop", SHOP);
    insta::assert_snapshot!(text::write(&model), @r#"
G "shop" 0.00001 50 10 0.9 -1

P 3
  p client i
  p web s 0.1 m 2
  p db f R 2
-1

T 3
  t users r shop -1 client z 3 m 20
  t web n order browse -1 web 1 m 10
  t db n query update -1 db
-1

E 5
# ---------- users ----------
  s shop 0 -1
  y shop order 0.3 -1
  y shop browse 2 -1
# ---------- web ----------
  A order check
  s browse 0.01 0.002 -1
  c browse 2 -1
  y browse query 1 0.5 -1
# ---------- db ----------
  s query 0.004 -1
  a update 0.5
  s update 0.006 -1
  f update 1 -1
-1

A web
  s check 0.001
  s pay 0.02
  y pay update 1
  s pack 0.03
  z pack query 1.5
  s done 0.001
 :
  check -> pay & pack;
  pay & pack -> done;
  done[order]
-1
"#);
}

const TINY: &str = r#"G "tiny" 1e-5 50 -1
P 1
  p cpu f
-1
T 2
  t user r go -1 cpu m 3
  t disk n read -1 cpu
-1
E 2
  s go 1 -1
  y go read 2 -1
  s read 0.5 -1
  c read 4 -1
-1
"#;

#[test]
fn a_small_model_in_xml() {
    insta::assert_snapshot!(xml::write(&read("tiny", TINY)), @r#"
<?xml version="1.0"?>
<lqn-model name="tiny" description="" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="lqn.xsd">
   <solver-params comment="tiny" conv_val="0.00001" it_limit="50"/>
   <processor name="cpu" scheduling="fcfs">
      <task name="user" scheduling="ref" multiplicity="3">
         <entry name="go" type="PH1PH2">
            <entry-phase-activities>
               <activity name="go_1" phase="1" host-demand-mean="1">
                  <synch-call dest="read" calls-mean="2"/>
               </activity>
            </entry-phase-activities>
         </entry>
      </task>
      <task name="disk" scheduling="fcfs">
         <entry name="read" type="PH1PH2">
            <entry-phase-activities>
               <activity name="read_1" phase="1" host-demand-mean="0.5" host-demand-cvsq="4"/>
            </entry-phase-activities>
         </entry>
      </task>
   </processor>
</lqn-model>
"#);
}

#[test]
fn a_small_model_in_json() {
    insta::assert_snapshot!(json::write(&read("tiny", TINY)), @r#"
{
  "dyelog-model": 1,
  "comment": "tiny",
  "parameters": {
    "convergence": 0.00001,
    "iteration_limit": 50
  },
  "processors": [
    {
      "name": "cpu",
      "scheduling": "fcfs"
    }
  ],
  "tasks": [
    {
      "name": "user",
      "processor": "cpu",
      "scheduling": "ref",
      "multiplicity": 3,
      "entries": [
        {
          "name": "go",
          "phases": [
            {
              "demand": 1.0,
              "calls": [
                {
                  "to": "read",
                  "kind": "synchronous",
                  "mean": 2.0
                }
              ]
            }
          ]
        }
      ]
    },
    {
      "name": "disk",
      "processor": "cpu",
      "scheduling": "fcfs",
      "entries": [
        {
          "name": "read",
          "phases": [
            {
              "demand": 0.5,
              "cv2": 4.0
            }
          ]
        }
      ]
    }
  ]
}
"#);
}

/// Code, line and column of findings.
fn places(outcome: Result<(Model, Vec<Diagnostic>), Diagnostics>) -> Vec<(&'static str, u32, u32)> {
    let findings = match outcome {
        Ok((_, findings)) => findings,
        Err(Diagnostics(findings)) => findings,
    };
    findings
        .iter()
        .map(|finding| match finding.place {
            Place::Line { line, column, .. } => (finding.code.0, line, column),
            _ => (finding.code.0, 0, 0),
        })
        .collect()
}

#[test]
fn faults_of_texts_are_found_where_they_are() {
    let cases: [(&str, &str, &str, &[(&str, u32, u32)]); 19] = [
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
    let cases: [(&str, &str, &str, &[(&str, u32, u32)]); 13] = [
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
        ("an unknown field", "\"demand\"", "\"demnd\"", "L001", "25:21"),
        ("a missing field", "      \"processor\": \"cpu\",\n", "", "L001", "36:5"),
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
            Place::Line { line, column, .. } => format!("{line}:{column}"),
            Place::Item { item, .. } => item.clone(),
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
fn odd_names_stay_apart_in_every_language() {
    let mut model = read("tiny", TINY);
    let names = ["say \"hi\"", "say _hi_", "say \u{7}hi\"", "", "_", "line\nbreak", "say _hi__2"];
    for (index, name) in names.iter().enumerate() {
        let task = TaskId::from(model.tasks.len());
        model.processors.push(Processor::new(name, Scheduling::Fcfs));
        let processor = ProcessorId::from(index + 1);
        model.tasks.push(Task::new(name, processor, Scheduling::Fcfs));
        model.tasks[task.index()].entries.push(model.entries.len().into());
        model.entries.push(Entry::new(name, task));
    }
    let written = |language: Language| -> Vec<String> {
        let again = read("odd", &language.write(&model));
        again.entries.iter().skip(2).map(|entry| entry.name.to_string()).collect()
    };
    let expected = ["say _hi__3", "say _hi_", "say _hi__4", "__2", "_", "line_break", "say _hi__2"];
    assert_eq!(written(Language::Lqn), expected);
    assert_eq!(written(Language::Lqnx), expected);
    assert_eq!(written(Language::Json), names);
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

#[test]
fn a_large_flat_model_is_read_in_linear_time() {
    use std::fmt::Write as _;
    let mut source = "G \"\" 1 1 -1\nP 0\np p f\n-1\nT 0\nt c r c -1 p\n".to_owned();
    for index in 0..20_000 {
        writeln!(source, "t t{index} n e{index} -1 p").unwrap();
    }
    source += "-1\nE 0\n";
    for index in 0..20_000 {
        writeln!(source, "s e{index} 1 -1\ny c e{index} 1 -1").unwrap();
    }
    source += "-1\n";
    let model = read("large", &source);
    assert_eq!(model.tasks.len(), 20_001);
    assert_given_back("large", &model);
}
