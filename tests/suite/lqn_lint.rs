//! What the lint says of models.

use dyelog::diagnostic::{Place, Severity};
use dyelog::lqn::{
    Activity, ActivityId, Body, Call, CallKind, Entry, EntryId, Fork, Join, Language, Model, Precedence, Processor,
    ProcessorId, Scheduling, Task, TaskId, Work, lint, parse_any, read_any, text,
};
use proptest::prelude::*;

use crate::lqn::references;
use crate::lqn_strategy;

/// Severity (`E` or `W`), code and item of each finding.
fn findings(model: &Model) -> Vec<(char, &'static str, String)> {
    lint::check(model)
        .into_iter()
        .map(|finding| {
            let letter = if finding.severity == Severity::Error { 'E' } else { 'W' };
            match finding.place {
                Place::Item { item, .. } => (letter, finding.code.0, item),
                other => panic!("a finding of the lint has the place {other:?}"),
            }
        })
        .collect()
}

const SOUND: &str = r#"G "sound" 1e-5 50 -1
P 1
  p cpu f
-1
T 3
  t user r go -1 cpu m 3
  t shop n sell -1 cpu
  t disk n read write -1 cpu
-1
E 4
  s go 1 -1
  y go sell 2 -1
  A sell ask
  s read 0.5 -1
  F read write 0.5 -1
  s write 0.5 -1
-1
A shop
  s ask 1
  s one 1
  y one read 1
  s two 1
  s cash 1
  s card 1
  s coin 1
  s done 1
:
  ask -> one & two;
  one & two -> cash;
  cash -> (0.4) card + (0.6) coin;
  card + coin -> done;
  done[sell]
-1
"#;

#[test]
fn a_sound_model_gives_no_findings() {
    assert_eq!(findings(&text::parse("sound", SOUND).unwrap().0), []);
}

#[test]
fn the_example_gives_no_findings() {
    let loaded = read_any("tiers", include_str!("../../examples/tiers.lqn")).unwrap();
    assert_eq!((loaded.findings, findings(&loaded.model)), (Vec::new(), Vec::new()));
}

#[test]
fn findings_have_the_lines_of_their_elements_in_every_language() {
    let (model, _) =
        text::parse("sound", &SOUND.replace("s write 0.5", "s write -0.5").replace("done[sell]", "done")).unwrap();
    for language in Language::ALL {
        let source = language.write(&model);
        let loaded = language.read("sound", &source).unwrap();
        let mut found = lint::check(&loaded.model);
        loaded.places.locate(&mut found);
        assert_eq!(found.len(), 2);
        for (finding, name) in found.iter().zip(["write", "sell"]) {
            let Place::Line { line, column, .. } = finding.place else { panic!("{finding:?}") };
            let told = source.lines().nth(line as usize - 1).unwrap();
            assert!(told[column as usize - 1..].contains(name), "{language:?} {line}:{column} {told}");
        }
    }
}

/// Entries that share one long graph, and call each other's task: nothing is quadratic in them.
#[test]
fn shared_graphs_are_looked_at_within_bounds() {
    const COUNT: usize = 20_000;
    let mut model = graph(COUNT, Vec::new());
    model.tasks[0].precedences = (0..COUNT - 1)
        .map(|from| Precedence {
            join: Join::Sequence(ActivityId::from(from)),
            fork: Some(Fork::Sequence(ActivityId::from(from + 1))),
        })
        .collect();
    model.tasks[0].scheduling = Scheduling::Fcfs;
    model.activities[COUNT - 1].work = calling(0);
    model.tasks[0].entries.clear();
    model.entries.clear();
    for index in 0..COUNT {
        model.tasks[0].entries.push(index.into());
        let body = Body::Activities(ActivityId::from(index));
        let open_arrival_rate = Some(1.0);
        model.entries.push(Entry { body, open_arrival_rate, ..Entry::new(&format!("e{index}"), TaskId(0)) });
    }
    assert!(findings(&model).iter().any(|finding| finding.1 == "L114"));
}

#[test]
#[ignore = "needs the reference data, ../shared"]
fn reference_models_have_no_errors() {
    for (name, source) in references() {
        let (model, _) = parse_any(&name, &source).unwrap();
        let errors: Vec<_> = findings(&model).into_iter().filter(|finding| finding.0 == 'E').collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn faults_are_named() {
    type Case<'a> = (&'a str, &'a str, &'a str, &'a [(char, &'a str, &'a str)]);
    let cases: [Case; 22] = [
        ("no load", "user r go", "user n go", &[('E', "L102", "model"), ('W', "L115", "entry `go`")]),
        ("a circle of calls", "s write 0.5", "y write read 1 -1\n  s write 0.5", &[('E', "L103", "entry `read`")]),
        ("a call to oneself", "s write 0.5", "y write write 1 -1\n  s write 0.5", &[('E', "L103", "entry `write`")]),
        (
            "a circle through activities",
            "s write 0.5",
            "y write sell 1 -1\n  s write 0.5",
            &[('E', "L103", "entry `sell`")],
        ),
        (
            "a circle of messages",
            "s write 0.5",
            "z write read 1 -1\n  s write 0.5",
            &[('W', "L110", "entry `read`"), ('W', "L103", "entry `read`")],
        ),
        ("a negative demand", "s write 0.5", "s write -0.5", &[('E', "L104", "demand of entry `write`")]),
        ("a negative speed", "p cpu f", "p cpu f R -2", &[('E', "L104", "speed of processor `cpu`")]),
        (
            "negative cv²",
            "s write 0.5",
            "c write -2 -1\n  s write 0.5",
            &[('E', "L104", "squared coefficient of variation of entry `write`")],
        ),
        (
            "an exact half call",
            "s go 1",
            "f go 1 -1\n  y go write 0.5 -1\n  s go 1",
            &[('W', "L104", "number of calls to `write` of entry `go`")],
        ),
        (
            "a quorum too large",
            "one & two ->",
            "one & two (3) ->",
            &[('E', "L104", "precedence of activity `one` of task `shop`")],
        ),
        (
            "forwarding above 1",
            "F read write 0.5",
            "F read write 1.5",
            &[
                ('E', "L105", "probability of forwarding to `write` of entry `read`"),
                ('E', "L111", "probability of forwarding to `write` of entry `read`"),
            ],
        ),
        (
            "forwarding too much",
            "F read write 0.5 -1",
            "F read write 0.6 -1 F read write 0.6 -1",
            &[('E', "L111", "probability of forwarding to `write` of entry `read`")],
        ),
        (
            "branches that miss 1",
            "(0.4) card",
            "(0.3) card",
            &[('E', "L105", "precedence of activity `cash` of task `shop`")],
        ),
        ("a task without entries", "t disk", "t idle n -1 cpu\n  t disk", &[('E', "L106", "task `idle`")]),
        ("no reply", "done[sell]", "done", &[('E', "L107", "entry `sell`")]),
        ("an activity apart", "  s one 1", "  s lost 1\n  s one 1", &[('E', "L108", "activity `lost` of task `shop`")]),
        (
            "a reference task called",
            "s write 0.5",
            "y write go 1 -1\n  s write 0.5",
            &[('E', "L109", "entry `go`"), ('E', "L103", "entry `go`")],
        ),
        ("a reference task that forwards", "s go 1", "F go write 0.5 -1\n  s go 1", &[('E', "L109", "entry `go`")]),
        ("calls of both kinds", "s go 1", "z go sell 1 -1\n  s go 1", &[('W', "L110", "entry `sell`")]),
        (
            "a join of branches",
            "ask -> one & two",
            "ask -> (0.5) one + (0.5) two",
            &[('E', "L112", "activity `one` of task `shop`")],
        ),
        (
            "a circle of activities",
            "done[sell]",
            "done[sell] -> ask",
            &[('E', "L113", "activity `ask` of task `shop`"), ('E', "L114", "activity `ask` of task `shop`")],
        ),
        (
            "two ways on",
            "done[sell]",
            "ask -> card;\n  done[sell]",
            &[('E', "L114", "activity `ask` of task `shop`"), ('E', "L114", "activity `card` of task `shop`")],
        ),
    ];
    for (what, old, new, expected) in cases {
        assert!(SOUND.contains(old), "{what}: the model has no `{old}`");
        let (model, _) =
            text::parse(what, &SOUND.replacen(old, new, 1)).unwrap_or_else(|errors| panic!("{what}: {errors}"));
        let found = findings(&model);
        let found: Vec<_> = found.iter().map(|(letter, code, item)| (*letter, *code, item.as_str())).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn nested_forks_may_be_joined_crosswise() {
    let source = SOUND.replace(
        "  ask -> one & two;\n  one & two -> cash;\n  cash -> (0.4) card + (0.6) coin;\n  card + coin -> done;",
        "  ask -> one & two;\n  one -> cash & card;\n  card -> coin;\n  coin & two -> done;",
    );
    assert_eq!(findings(&text::parse("crosswise", &source).unwrap().0), []);
    let sequence = SOUND.replace(
        "  ask -> one & two;\n  one & two -> cash;\n  cash -> (0.4) card + (0.6) coin;\n  card + coin -> done;",
        "  ask -> one & two;\n  one -> cash & card;\n  card -> coin;\n  cash & coin & one -> done;",
    );
    let found = findings(&text::parse("sequence", &sequence).unwrap().0);
    assert!(found.iter().any(|finding| finding.1 == "L112" || finding.1 == "L114"), "{found:?}");
}

#[test]
fn indices_of_nothing_are_reported_alone() {
    let sound = text::parse("sound", SOUND).unwrap().0;
    type Damage = fn(&mut Model);
    let damages: [(&str, Damage); 10] = [
        ("task `user`", |model| model.tasks[0].processor = ProcessorId(9)),
        ("task `user`", |model| model.tasks[0].entries.push(EntryId(99))),
        ("task `shop`", |model| model.tasks[1].activities.push(ActivityId(99))),
        ("task `shop`", |model| model.tasks[1].precedences[0].join = Join::Sequence(ActivityId(99))),
        ("task `disk`", |model| model.tasks[2].fan_in.push((TaskId(9), 1))),
        ("entry `go`", |model| model.entries[0].task = TaskId(9)),
        ("entry `sell`", |model| model.entries[1].body = Body::Activities(ActivityId(99))),
        ("entry `read`", |model| model.entries[2].forwarding[0].to = EntryId(99)),
        ("activity `one`", |model| model.activities[1].work.calls[0].to = EntryId(99)),
        ("entry `go`", |model| model.tasks[0].entries.clear()),
    ];
    for (item, damage) in damages {
        let mut model = sound.clone();
        damage(&mut model);
        assert_eq!(findings(&model), [('E', "L101", item.to_owned())]);
        // The writers take it as well, though nothing reads it.
        for language in dyelog::lqn::Language::ALL {
            language.write(&model);
        }
    }
}

/// A model of one task of the given graph.
fn graph(activities: usize, precedences: Vec<Precedence>) -> Model {
    let mut task = Task::new("client", ProcessorId(0), Scheduling::Reference);
    task.think_time = 1.0;
    task.entries = vec![EntryId(0)];
    task.activities = (0..activities).map(ActivityId::from).collect();
    task.precedences = precedences;
    let activity = |index: usize| Activity::new(&format!("a{index}"), TaskId(0));
    Model {
        processors: vec![Processor::new("cpu", Scheduling::Fcfs)],
        tasks: vec![task],
        entries: vec![Entry { body: Body::Activities(ActivityId(0)), ..Entry::new("go", TaskId(0)) }],
        activities: (0..activities).map(activity).collect(),
        ..Model::default()
    }
}

#[test]
fn deep_models_do_not_exhaust_the_stack() {
    const DEPTH: usize = 100_000;
    let sequence = |from: usize| Precedence {
        join: Join::Sequence(ActivityId::from(from)),
        fork: Some(Fork::Sequence(ActivityId::from(from + 1))),
    };
    assert_eq!(findings(&graph(DEPTH, (0..DEPTH - 1).map(sequence).collect())), []);
    // Forks in forks, all joined at once.
    let fork = |level: usize| Precedence {
        join: Join::Sequence(ActivityId::from(2 * level)),
        fork: Some(Fork::And(vec![ActivityId::from(2 * level + 1), ActivityId::from(2 * level + 2)])),
    };
    let mut nested: Vec<Precedence> = (0..DEPTH / 2).map(fork).collect();
    let ends = (0..DEPTH / 2).map(|level| ActivityId::from(2 * level + 1)).chain([ActivityId::from(DEPTH)]);
    let join = Join::And { activities: ends.collect(), quorum: None };
    nested.push(Precedence { join, fork: Some(Fork::Sequence(ActivityId::from(DEPTH + 1))) });
    assert_eq!(findings(&graph(DEPTH + 2, nested)), []);
    // A chain of calls.
    let mut chain = graph(1, Vec::new());
    chain.entries[0].body = Body::Phases(vec![calling(1)]);
    chain.tasks[0].activities.clear();
    chain.activities.clear();
    for index in 1..DEPTH {
        let task = TaskId::from(index);
        let mut own = Task::new(&format!("t{index}"), ProcessorId(0), Scheduling::Fcfs);
        own.entries = vec![EntryId::from(index)];
        chain.tasks.push(own);
        let work = if index + 1 < DEPTH { calling(index + 1) } else { Work { demand: 1.0, ..Work::default() } };
        chain.entries.push(Entry { body: Body::Phases(vec![work]), ..Entry::new(&format!("e{index}"), task) });
    }
    assert_eq!(findings(&chain), []);
    chain.entries[DEPTH - 1].body = Body::Phases(vec![calling(1)]);
    assert_eq!(findings(&chain), [('E', "L103", "entry `e1`".to_owned())]);
}

fn calling(to: usize) -> Work {
    Work { calls: vec![Call { to: to.into(), kind: CallKind::Synchronous, mean: 1.0 }], ..Work::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Random graphs of blocks are sound, whatever else the models lack.
    #[test]
    fn graphs_made_of_blocks_are_sound(model in lqn_strategy::model()) {
        for (_, code, item) in findings(&model) {
            prop_assert!(!["L101", "L108", "L112", "L113", "L114"].contains(&code), "{code} {item}");
        }
    }
}

#[test]
fn faults_point_to_their_records() {
    for (old, new, line) in [
        ("s write 0.5", "s write -0.5", "  s write -0.5 -1"),
        ("F read write 0.5", "F read write 1.5", "  F read write 1.5 -1"),
        ("y go sell 2", "y go sell -2", "  y go sell -2 -1"),
        ("s two 1", "s two -1.5", "  s two -1.5"),
        ("(0.4) card", "(0.3) card", "  cash -> (0.3) card + (0.6) coin;"),
        ("one & two ->", "one & two (3) ->", "  one & two (3) -> cash;"),
    ] {
        let source = SOUND.replacen(old, new, 1);
        let loaded = read_any("sound", &source).unwrap();
        let mut found = lint::check(&loaded.model);
        loaded.places.locate(&mut found);
        let Place::Line { line: number, .. } = found[0].place else { panic!("{found:?}") };
        assert_eq!(source.lines().nth(number as usize - 1), Some(line), "{found:?}");
    }
}

#[test]
fn an_order_of_calls_is_0_or_1() {
    for (record, column) in [("f go 2 -1\n  s go 1", 3), ("f go 0.5 -1\n  s go 1", 3)] {
        let errors = text::parse("order", &SOUND.replacen("s go 1", record, 1)).unwrap_err().0;
        assert_eq!((errors.len(), errors[0].code.0), (1, "L004"), "{errors:?}");
        assert!(matches!(errors[0].place, Place::Line { column: found, .. } if found == column), "{errors:?}");
    }
}
