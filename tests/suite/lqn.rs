//! The languages of layered queueing networks.

use std::fs;
use std::path::PathBuf;

use dyelog::diagnostic::Severity;
use dyelog::lqn::results::{
    ActivityResult, CallResult, Caller, Convergence, EntryResult, HalfWidths, ProcessorResult, Results, Simulated,
    TaskResult,
};
use dyelog::lqn::{
    Body, Entry, Histogram, Language, Model, Processor, ProcessorId, Scheduling, Task, TaskId, json, parse_any, text,
    xml,
};
use dyelog::report;
use dyelog::study::comparison::{self, Tolerance};
use proptest::prelude::*;
use serde_json::Value;

use crate::lqn_strategy;
use crate::support::shared;

/// All models of the reference data.
pub fn references() -> Vec<(String, String)> {
    let root = shared("lqn");
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

/// A text that must be a model.
pub fn read(name: &str, source: &str) -> Model {
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
#[ignore = "needs the reference data, ../shared"]
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
#[ignore = "needs the reference data, ../shared"]
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
}

/// A model with something of most of the language.
pub const SHOP: &str = r#"# A small shop.
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

/// A model as small as can be.
pub const TINY: &str = r#"G "tiny" 1e-5 50 -1
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

#[test]
fn histograms_are_kept() {
    let source = "G \"\" 1e-5 50 10 0.9 -1 P 0 p c i p s f -1 T 0 t user r go -1 c t server n work plan -1 s -1
        E 0
        s go 1 -1
        y go work 1 -1
        y go plan 1 -1
        H go 1 0 : 10 50
        H go 2 0 : 5 10 linear
        s work 1 1 -1
        M work 3 0 4 -1
        A plan first
        H plan 1 0.5 : 2.5 4
        -1
        A server
        s first 1
        M first 2
        H first 0 : 1 8
        :
        first[plan]
        -1";
    let model = read("histograms", source);
    let bins = |from, to, bins| Histogram { from, to, bins };
    assert_eq!(model.entries[0].histograms, [(1, bins(0.0, 10.0, 50)), (2, bins(0.0, 5.0, 10))]);
    assert_eq!(model.entries[1].histograms, [(1, bins(0.0, 3.0, 0)), (3, bins(0.0, 4.0, 0))]);
    assert_eq!(model.entries[2].histograms, [(1, bins(0.5, 2.5, 4))]);
    assert_eq!(model.activities[0].histograms, [bins(0.0, 2.0, 0), bins(0.0, 1.0, 8)]);
    assert_given_back("histograms", &model);
    let written = xml::write(&model);
    for part in [
        r#"name="work_1" phase="1" host-demand-mean="1" max-service-time="3""#,
        r#"<service-time-distribution min="0" max="10" number-bins="50"/>"#,
        r#"<service-time-distribution phase="2" min="0" max="5" number-bins="10"/>"#,
        r#"<service-time-distribution phase="1" min="0.5" max="2.5" number-bins="4"/>"#,
    ] {
        assert!(written.contains(part), "{part} in\n{written}");
    }
    let usual = read("usual", &written.replace(r#" number-bins="50""#, ""));
    assert_eq!(usual.entries[0].histograms[0], (1, bins(0.0, 10.0, 20)));
    assert!(parse_any("phase", &source.replace("H go 2", "H go 4")).is_err());
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

#[test]
fn the_examples_of_the_book_load() {
    let page = include_str!("../../book/src/lqn-languages.md");
    let mut examples = 0;
    for (fence, language) in [("```text\n", Language::Lqn), ("```json\n", Language::Json)] {
        for block in page.split(fence).skip(1) {
            let source = block.split("```").next().unwrap_or_default();
            // Optional numbers stand in square brackets there.
            let source = source.replace("[10] [0.9] -1", "10 0.9 -1");
            assert_eq!(Language::of(&source), Some(language));
            let (model, findings) = language.parse("book", &source).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(findings, []);
            assert_eq!(dyelog::lqn::lint::check(&model), []);
            examples += 1;
        }
    }
    assert_eq!(examples, 2);
}

/// Results with a figure of its own at every place, by a model in canonical form.
fn made_up_results(model: &Model, simulated: bool) -> Results {
    let mut state = 1.0_f64;
    let mut next = || {
        state = (state * 1.618_033_988_749_895 + 0.1).rem_euclid(7.0);
        state
    };
    let mut figures = || {
        let processors: Vec<_> = model.processors.iter().map(|_| ProcessorResult { utilization: next() }).collect();
        let task = |next: &mut dyn FnMut() -> f64| TaskResult {
            throughput: next(),
            utilization: next(),
            processor_utilization: next(),
        };
        let tasks: Vec<_> = model.tasks.iter().map(|_| task(&mut next)).collect();
        let entry = |entry: &Entry, next: &mut dyn FnMut() -> f64| {
            let phases = if let Body::Phases(phases) = &entry.body { phases.len() } else { 3 };
            let mut service = [0.0; 3];
            service.iter_mut().take(phases).for_each(|service| *service = next());
            EntryResult {
                throughput: next(),
                service,
                utilization: next(),
                processor_utilization: next(),
                open_response: entry.open_arrival_rate.map(|_| next()),
            }
        };
        let entries: Vec<_> = model.entries.iter().map(|own| entry(own, &mut next)).collect();
        let activities: Vec<_> =
            model.activities.iter().map(|_| ActivityResult { throughput: next(), service: next() }).collect();
        let mut calls = Vec::new();
        let mut call = |from, to, kind| calls.push(CallResult { from, to, kind, waiting: next() });
        for (entry, index) in model.entries.iter().zip(0usize..) {
            if let Body::Phases(phases) = &entry.body {
                for (work, phase) in phases.iter().zip(1u8..) {
                    for own in &work.calls {
                        call(Caller::Phase(index.into(), phase), own.to, Some(own.kind));
                    }
                }
            }
        }
        for (activity, index) in model.activities.iter().zip(0usize..) {
            for own in &activity.work.calls {
                call(Caller::Activity(index.into()), own.to, Some(own.kind));
            }
        }
        for (entry, index) in model.entries.iter().zip(0usize..) {
            let mut said = Vec::new();
            for own in &entry.forwarding {
                if !said.contains(&own.to) {
                    call(Caller::Forward(index.into()), own.to, None);
                    said.push(own.to);
                }
            }
        }
        Results {
            solver: "layered".into(),
            convergence: Convergence {
                converged: true,
                saturated: false,
                iterations: 7,
                residual: 0.001,
                method: "read from a file".into(),
                exact: false,
            },
            processors,
            tasks,
            entries,
            activities,
            calls,
            caveats: Vec::new(),
            simulated: None,
        }
    };
    let mut results = figures();
    if simulated {
        let Results { processors, tasks, entries, activities, calls, .. } = figures();
        let calls = calls.into_iter().map(|call| call.waiting).collect();
        let half_widths = HalfWidths { processors, tasks, entries, activities, calls };
        results.simulated = Some(Simulated { precision: 0.001, half_widths, ..Simulated::default() });
    }
    results
}

/// Results written into a model are read from it, figure by figure, and the model is as it was.
fn assert_results_given_back(name: &str, model: &Model, simulated: bool) {
    let results = made_up_results(model, simulated);
    let written = xml::write_solved(model, &results);
    let (again, read, findings) =
        xml::parse_solved(name, &written).unwrap_or_else(|errors| panic!("{errors}\n{written}"));
    assert_eq!(findings, []);
    assert_eq!(json::write(&again), json::write(&read_xml(name, model)), "{name}: the model");
    let read = read.expect("there are results");
    let tolerance = Tolerance { relative: 1e-9, absolute: 1e-9 };
    let differences =
        comparison::compare(&comparison::solved(model, &results), &comparison::solved(&again, &read), tolerance);
    assert!(differences.is_empty(), "{name}: {}\n{written}", report::comparison::text(&differences, 0, 120));
    let document: Value = serde_json::from_str(&report::json::results(model, &results, None)).expect("it is JSON");
    assert_eq!(comparison::results(&document).expect("it has results"), comparison::solved(model, &results), "{name}");
    let half = |results: &Results| results.simulated.as_ref().map(|simulated| simulated.half_widths.entries.clone());
    assert_eq!(half(&read).is_some(), simulated);
    // Who wants the model only gets it, and is told what was passed over.
    let (alone, findings) = xml::parse(name, &written).unwrap();
    assert_eq!(alone, again);
    assert_eq!(findings.len(), 1);
}

fn read_xml(name: &str, model: &Model) -> Model {
    read(name, &xml::write(model))
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn results_are_read_as_the_tool_suite_writes_them() {
    let root = shared("lqn/models");
    let mut read = 0;
    for (file, entry, throughput, service, waiting) in [
        ("line-forwarding/simple-forwarding.lqnx", "e0", 0.27735, 1.30278, 0.0),
        ("regression/95-async-inf.lqnx", "e1", 4.99713, 20.0115, 18.0115),
    ] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let (model, results, findings) = xml::parse_solved(file, &text).unwrap();
        assert_eq!(findings, []);
        let results = results.expect("there are results");
        assert!(results.convergence.converged && results.convergence.iterations > 0, "{file}");
        let own = &results.entries[model.entry_named(entry).unwrap().index()];
        assert_eq!((own.throughput, own.service[0]), (throughput, service), "{file}");
        assert!(results.calls.iter().any(|call| call.waiting == waiting), "{file}: {:?}", results.calls);
        read += 1;
    }
    assert_eq!(read, 2);
}

#[test]
fn a_small_model_with_results() {
    let model = read("tiny", TINY);
    insta::assert_snapshot!(xml::write_solved(&model, &made_up_results(&model, true)), @r#"
<?xml version="1.0"?>
<lqn-model name="tiny" description="" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="lqn.xsd">
   <solver-params comment="tiny" conv_val="0.00001" it_limit="50">
      <result-general solver-info="dyelog layered" valid="true" conv-val="0.001" iterations="7"/>
   </solver-params>
   <processor name="cpu" scheduling="fcfs">
      <result-processor utilization="1.718033988749895">
         <result-conf-95 utilization="6.185410196625805"/>
      </result-processor>
      <task name="user" scheduling="ref" multiplicity="3">
         <result-task throughput="2.879837387624885" utilization="4.75967477524977" phase1-utilization="22.66289423584937" proc-utilization="0.8013155617496439">
            <result-conf-95 throughput="3.1082039325007216" utilization="5.129179606752252" proc-utilization="1.3991869381279631"/>
         </result-task>
         <entry name="go" type="PH1PH2">
            <result-entry utilization="5.7944271909999445" throughput="3.5193495504995553" proc-utilization="2.4755801403744897">
               <result-conf-95 utilization="2.522793735937956" throughput="5.8236067977892585" proc-utilization="4.18196601135294"/>
            </result-entry>
            <entry-phase-activities>
               <activity name="go_1" phase="1" host-demand-mean="1">
                  <result-activity service-time="6.4395121628746645" utilization="22.66289423584937">
                     <result-conf-95 service-time="3.5373835392737085"/>
                  </result-activity>
                  <synch-call dest="read" calls-mean="2">
                     <result-call waiting="3.760990336999928">
                        <result-conf-95 waiting="0.032623793265385004"/>
                     </result-call>
                  </synch-call>
               </activity>
            </entry-phase-activities>
         </entry>
      </task>
      <task name="disk" scheduling="fcfs">
         <result-task throughput="1.3965558146251391" utilization="2.359674775249773" phase1-utilization="27.683698235648727" proc-utilization="3.918033988749902">
            <result-conf-95 throughput="2.363932022505941" utilization="3.924922359508894" proc-utilization="6.4506577808898244"/>
         </result-task>
         <entry name="read" type="PH1PH2">
            <result-entry utilization="4.010332556124787" throughput="6.742956348249638" proc-utilization="6.588854382000151">
               <result-conf-95 utilization="6.912461180185427" throughput="4.210332556393816" proc-utilization="4.2845971354542325"/>
            </result-entry>
            <entry-phase-activities>
               <activity name="read_1" phase="1" host-demand-mean="0.5" host-demand-cvsq="4">
                  <result-activity service-time="4.10557280900016" utilization="27.683698235648727">
                     <result-conf-95 service-time="6.866563146165886"/>
                  </result-activity>
               </activity>
            </entry-phase-activities>
         </entry>
      </task>
   </processor>
</lqn-model>
"#);
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn results_of_every_reference_model_are_given_back() {
    for (name, source) in references() {
        assert_results_given_back(&name, &read_xml(&name, &read(&name, &source)), false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn results_of_random_models_are_given_back(model in lqn_strategy::model(), simulated in any::<bool>()) {
        assert_results_given_back("random", &read_xml("random", &model), simulated);
    }

    /// Of a model whose elements are in another order than files have them, each gets the figures that are its own.
    #[test]
    fn results_stand_with_what_they_are_of(model in lqn_strategy::model()) {
        let results = made_up_results(&model, false);
        let (again, read, _) = xml::parse_solved("random", &xml::write_solved(&model, &results)).unwrap();
        let read = read.expect("there are results");
        for (entry, own) in model.entries.iter().zip(&results.entries) {
            if let Some(id) = again.entry_named(&entry.name) {
                prop_assert_eq!(read.entries[id.index()].throughput, own.throughput);
            }
        }
    }
}
