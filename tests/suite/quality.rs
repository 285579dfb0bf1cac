//! The quality of traces: what is found, what is restored, and that large and hostile operations are no trouble.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use dyelog::trace::quality::{
    Fault, Gate, Policy, QualityReport, Verdict, diagnose, diagnose_by_passes, diagnose_by_rules, examine,
};
use dyelog::trace::{Event, Extent, Kind, Operation, Origins, ReadOptions, TaskId, Toeg, TraceNames, read};
use proptest::prelude::*;

/// Reads operations, as they are.
fn operations(text: &str) -> (TraceNames, Vec<Operation>) {
    let mut names = TraceNames::new();
    let mut operations = Vec::new();
    let mut sink = |_: &TraceNames, operation| {
        operations.push(operation);
        ControlFlow::Continue(())
    };
    read("t.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut sink).expect("it can be read");
    (names, operations)
}

/// One operation of scenario `a` from its labels without the scenario, `;` between them.
fn operation(labels: &str) -> (TraceNames, Operation) {
    let (names, mut operations) = operations(&format!("operation a run=1\n{}", lines(labels)));
    (names, operations.remove(0))
}

/// Labels without the scenario, `;` between them, as lines.
fn lines(labels: &str) -> String {
    labels.split(';').fold(String::new(), |lines, label| lines + "a," + label.trim() + "\n")
}

/// A thread that calls another task, forks two threads, and waits for one of them.
const GOOD: &str = "1,1,Be | A,1; 1,2,Ac | A,2; 1,3,Ac | B,1; 1,4,Ac | B,2; 1,5,Fk(a,2) | A,3; 1,6,Fk(a,3) | A,4; \
                    1,7,Jn(a,2) | A,5; 1,8,Ed | A,6; 2,1,Be | C,1; 2,2,Ac | C,2; 2,3,Ed | C,3; 3,1,Be | D,1; 3,2,Ed | D,2";

/// The good operation with one piece of text in place of another.
fn with(from: &str, to: &str) -> (TraceNames, Operation) {
    assert!(GOOD.contains(from));
    operation(GOOD.replacen(from, to, 1).trim_matches([';', ' ']))
}

fn faults(operation: &Operation) -> Vec<Fault> {
    let faults: BTreeSet<_> = diagnose(operation).into_iter().map(|finding| finding.fault).collect();
    faults.into_iter().collect()
}

fn shown((names, operation): &(TraceNames, Operation)) -> String {
    let mut lines: Vec<String> = Vec::new();
    for finding in diagnose(operation) {
        let words = finding.diagnostic(operation, names);
        lines.push(format!("  {} {} ({})", words.code, words.message, words.notes.first().map_or("", String::as_str)));
    }
    lines.join("\n")
}

#[test]
fn good_operations_are_silent() {
    let (names, mut good) = operation(GOOD);
    assert_eq!(diagnose(&good), []);
    assert_eq!(examine(&mut good, &names), Verdict::Sound);
}

#[test]
fn each_damage_is_found() {
    let mutual = "1,1,Be | A,1; 1,2,Ed | A,2; 2,1,Be | B,1; 2,2,Fk(a,3) | B,2; 2,3,Ed | B,3; \
                  3,1,Be | C,1; 3,2,Fk(a,2) | C,2; 3,3,Ed | C,3";
    let (names, mut empty) = operation(GOOD);
    empty.events.clear();
    let empty = (names, empty);
    let (names, mut zero) = operation(GOOD);
    zero.events[0].counter = 0;
    let zero = (names, zero);
    let cases = [
        ("no events", empty),
        ("thread 3 is missing", with("3,1,Be | D,1; 3,2,Ed | D,2", "")),
        ("nothing forks thread 3", with("1,6,Fk(a,3)", "1,6,Ac")),
        ("the root forks itself", with("1,1,Be | A,1;", "1,1,Fk(a,1) | A,1;")),
        ("thread 3 is forked twice", with("2,2,Ac", "2,2,Fk(a,3)")),
        ("an unknown thread is joined", with("1,7,Jn(a,2)", "1,7,Jn(a,9)")),
        ("thread 2 is joined twice, once too early", with("1,2,Ac", "1,2,Jn(a,2)")),
        ("two events are missing", with("1,3,Ac | B,1; 1,4,Ac | B,2;", "")),
        ("a thread counter twice", with("1,3,Ac", "1,2,Ac")),
        ("a task counter twice", with("C,3", "C,2")),
        ("a counter of zero", zero),
        ("no begin", with("2,1,Be", "2,1,Ac")),
        ("no end", with("2,3,Ed", "2,3,Ac")),
        ("begin in mid-thread", with("1,2,Ac", "1,2,Be")),
        ("end in mid-thread", with("2,2,Ac", "2,2,Ed")),
        ("two threads fork each other", operation(mutual)),
        ("the task goes against the thread", with("B,1; 1,4,Ac | B,2", "B,2; 1,4,Ac | B,1")),
    ];
    let text = cases.iter().fold(String::new(), |text, (what, case)| text + what + "\n" + &shown(case) + "\n");
    insta::assert_snapshot!(text, @"
    no events
      T020 the operation has no events ()
    thread 3 is missing
      T021 thread 3 is forked here, but no event of it is there (the event is `a,1,6,Fk(a,3) | A,4`)
    nothing forks thread 3
      T022 thread 3 begins here, but no event forks it (the event is `a,3,1,Be | D,1`)
      T023 the operation has several roots (the event is `a,3,1,Be | D,1`)
    the root forks itself
      T024 the operation has no root (the event is `a,1,1,Fk(a,1) | A,1`)
      T032 the first event of thread 1 is no begin (the event is `a,1,1,Fk(a,1) | A,1`)
      T036 no chain of forks leads from a root to thread 1 (the event is `a,1,1,Fk(a,1) | A,1`)
      T036 no chain of forks leads from a root to thread 2 (the event is `a,2,1,Be | C,1`)
      T036 no chain of forks leads from a root to thread 3 (the event is `a,3,1,Be | D,1`)
      T037 this event comes before itself: causality has a cycle (the event is `a,1,1,Fk(a,1) | A,1`)
    thread 3 is forked twice
      T025 thread 3 is forked here a second time (the event is `a,2,2,Fk(a,3) | C,2`)
    an unknown thread is joined
      T026 thread 9 is waited for here, but no event of it is there (the event is `a,1,7,Jn(a,9) | A,5`)
    thread 2 is joined twice, once too early
      T027 thread 2 is waited for here a second time (the event is `a,1,7,Jn(a,2) | A,5`)
      T037 this event comes before itself: causality has a cycle (the event is `a,1,2,Jn(a,2) | A,2`)
    two events are missing
      T028 thread 1 misses the counters 3 to 4 before this event (the event is `a,1,5,Fk(a,2) | A,3`)
    a thread counter twice
      T028 thread 1 misses the counter 3 before this event (the event is `a,1,4,Ac | B,2`)
      T029 another event of thread 1 has the counter 2 too (the event is `a,1,2,Ac | B,1`)
    a task counter twice
      T031 another event of task `C` has the counter 2 too (the event is `a,2,3,Ed | C,2`)
    a counter of zero
      T038 a counter of this event is zero (the event is `a,1,1,Be | A,0`)
      T030 task `A` misses the counter 1 before this event (the event is `a,1,2,Ac | A,2`)
    no begin
      T032 the first event of thread 2 is no begin (the event is `a,2,1,Ac | C,1`)
    no end
      T033 thread 2 has no end; this is the last event of it (the event is `a,2,3,Ac | C,3`)
    begin in mid-thread
      T034 thread 1 begins in its middle (the event is `a,1,2,Be | A,2`)
    end in mid-thread
      T035 thread 2 goes on after its end (the event is `a,2,2,Ed | C,2`)
    two threads fork each other
      T036 no chain of forks leads from a root to thread 2 (the event is `a,2,1,Be | B,1`)
      T036 no chain of forks leads from a root to thread 3 (the event is `a,3,1,Be | C,1`)
      T037 this event comes before itself: causality has a cycle (the event is `a,2,1,Be | B,1`)
    the task goes against the thread
      T037 this event comes before itself: causality has a cycle (the event is `a,1,3,Ac | B,2`)
    ");
}

/// What examining comes to, for each event of an operation that is dropped in turn.
fn dropped_in_turn(names: &TraceNames, whole: &Operation) -> String {
    let mut text = String::new();
    for lost in 0..whole.events.len() {
        let mut operation = whole.clone();
        let event = operation.events.remove(lost);
        let verdict = match examine(&mut operation, names) {
            Verdict::Sound => panic!("a lost event goes unseen"),
            Verdict::Restored(damage) => {
                let restored = operation.events[operation.events.len() - 1];
                assert_eq!(label(&restored), label(&event));
                assert!(restored.time.is_nan() && restored.cpu.is_nan());
                assert!(Toeg::build(operation).is_ok());
                format!("restored {}", damage.outcome)
            }
            Verdict::Damaged(damage) => damage.outcome,
        };
        text.push_str(&format!("{},{},{:?}: {verdict}\n", event.thread, event.index, event.kind));
    }
    text
}

fn label(event: &Event) -> (u32, u32, Kind, TaskId, u32) {
    (event.thread, event.index, event.kind, event.task, event.counter)
}

#[test]
fn a_lost_event_is_restored_where_only_one_thing_fits() {
    let (names, whole) = operation(GOOD);
    insta::assert_snapshot!(dropped_in_turn(&names, &whole), @"
    1,1,Begin: restored a,1,1,Be | A,1
    1,2,Activity: restored a,1,2,Ac | A,2
    1,3,Activity: restored a,1,3,Ac | B,1
    1,4,Activity: no task shows a gap: the lost event was the last of its task, and the task is not known
    1,5,Fork(2): restored a,1,5,Fk(a,2) | A,3
    1,6,Fork(3): restored a,1,6,Fk(a,3) | A,4
    1,7,Join(2): the lost event may have been an activity as well as the join of thread 2
    1,8,End: whether the thread was cut off or went on, and on which task, is not known
    2,1,Begin: restored a,2,1,Be | C,1
    2,2,Activity: the lost event may have been an activity as well as the join of thread 3
    2,3,End: whether the thread was cut off or went on, and on which task, is not known
    3,1,Begin: restored a,3,1,Be | D,1
    3,2,End: whether the thread was cut off or went on, and on which task, is not known
    ");
    // A chain of calls: each task's last event leaves no gap in the task's counters.
    let (names, whole) = operation(
        "1,1,Be | A,1; 1,2,Ac | A,2; 1,3,Ac | B,1; 1,4,Ac | C,1; 1,5,Ac | C,2; 1,6,Ac | B,2; \
         1,7,Ac | A,3; 1,8,Ed | A,4",
    );
    insta::assert_snapshot!(dropped_in_turn(&names, &whole), @"
    1,1,Begin: restored a,1,1,Be | A,1
    1,2,Activity: restored a,1,2,Ac | A,2
    1,3,Activity: restored a,1,3,Ac | B,1
    1,4,Activity: restored a,1,4,Ac | C,1
    1,5,Activity: no task shows a gap: the lost event was the last of its task, and the task is not known
    1,6,Activity: no task shows a gap: the lost event was the last of its task, and the task is not known
    1,7,Activity: restored a,1,7,Ac | A,3
    1,8,End: whether the thread was cut off or went on, and on which task, is not known
    ");
    // An end and a begin that are not the last of their tasks, and a fork of a thread of lower number than the root.
    let (names, whole) = operation(
        "5,1,Be | A,1; 5,2,Fk(a,2) | A,2; 5,3,Fk(a,6) | A,3; 5,4,Ac | A,4; 5,5,Ed | A,5; \
         2,1,Be | B,1; 2,2,Ed | B,2; 6,1,Be | B,3; 6,2,Ed | B,4",
    );
    insta::assert_snapshot!(dropped_in_turn(&names, &whole), @"
    5,1,Begin: restored a,5,1,Be | A,1
    5,2,Fork(2): restored a,5,2,Fk(a,2) | A,2
    5,3,Fork(6): restored a,5,3,Fk(a,6) | A,3
    5,4,Activity: the lost event may have been an activity as well as the join of thread 2
    5,5,End: whether the thread was cut off or went on, and on which task, is not known
    2,1,Begin: restored a,2,1,Be | B,1
    2,2,End: restored a,2,2,Ed | B,2
    6,1,Begin: restored a,6,1,Be | B,3
    6,2,End: whether the thread was cut off or went on, and on which task, is not known
    ");
}

#[test]
fn two_lost_events_are_not_restored() {
    let (names, whole) = operation(GOOD);
    for first in 0..whole.events.len() {
        for second in 0..first {
            let mut operation = whole.clone();
            operation.events.remove(first);
            operation.events.remove(second);
            if let Verdict::Restored(damage) = examine(&mut operation, &names) {
                panic!("{first} and {second} lost, restored {}", damage.outcome);
            }
        }
    }
}

#[test]
fn the_gate_counts_what_it_sets_aside() {
    let text = format!(
        "operation a run=1\n{}operation a run=2\n{}operation a run=3\n{}",
        lines(GOOD),
        lines(&GOOD.replacen("1,2,Ac | A,2; ", "", 1)),
        lines(&GOOD.replacen("2,3,Ed | C,3", "2,9,Ed | C,3", 1)),
    );
    let mut names = TraceNames::new();
    let mut runs = Vec::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        runs.push(operation.run.to_string());
        ControlFlow::Continue(())
    };
    let mut gate = Gate::new(Policy::default(), &mut sink);
    read("t.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut gate).expect("it can be read");
    let report = gate.finish().expect("the policy is lenient");
    assert_eq!(runs, ["1", "2"]);
    insta::assert_snapshot!(report.text(), @"
    operations           3   sound 1, restored 1, set aside 1
    events              26   and 13 set aside

    code  finding                        findings  operations
    T028  gap in a thread counter               2           2
    T030  gap in a task counter                 1           1

    t.angio:15: operation `a` run `2`: one lost event is restored
      line 17: thread 1 misses the counter 2 before this event [T028]
      line 19: task `A` misses the counter 2 before this event [T030]
      the event is `a,1,2,Ac | A,2`; nothing else fits the gaps
      it has no time, no CPU demand and no names: what was measured there is missing from the model

    t.angio:28: operation `a` run `3` is set aside
      line 39: thread 2 misses the counters 3 to 8 before this event [T028]
      no event is restored: more than one event is lost
    ");
    assert_eq!(report.json()["dyelog-quality"], 1);
    assert_eq!(report.json()["findings"]["T028"]["operations"], 2);

    let mut nothing = |_: &TraceNames, _: Operation| ControlFlow::Continue(());
    let mut gate = Gate::new(Policy { strict: true }, &mut nothing);
    read("t.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut gate).expect("it can be read");
    let errors = gate.finish().expect_err("the policy is strict");
    assert_eq!(errors.0.len(), 1);
    assert_eq!(errors.0[0].code.0, "T041");
}

#[test]
fn operations_that_come_twice() {
    let mut mixed: Vec<&str> = GOOD.split(';').collect();
    mixed.reverse();
    let other = GOOD.replacen("1,8,Ed | A,6", "1,8,Ac | A,6; 1,9,Ed | A,7", 1);
    let text = format!(
        "operation a run=1\n{0}operation a run=2\n{0}operation a run=1\n{1}operation a run=2\n{2}operation a run=2\n{2}",
        lines(GOOD),
        lines(&mixed.join(";")),
        lines(&other),
    );
    let mut names = TraceNames::new();
    let mut runs = Vec::new();
    let mut sink = |_: &TraceNames, operation: Operation| {
        runs.push(format!("{}:{}", operation.run, operation.line));
        ControlFlow::Continue(())
    };
    let mut gate = Gate::new(Policy::default(), &mut sink);
    read("t.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut gate).expect("it can be read");
    let report = gate.finish().expect("the policy is lenient");
    assert_eq!(runs, ["1:1", "2:15", "2:43"]);
    insta::assert_snapshot!(report.text(), @"
    operations           5   sound 3, restored 0, set aside 2
    events              40   and 27 set aside

    code  finding                        findings  operations
    T042  operation that came before            2           2
    T043  run of another operation              1           1

    t.angio:29: operation `a` run `1` is set aside: it came before
      its events are those of an earlier operation with the same scenario and run

    t.angio:58: operation `a` run `2` is set aside: it came before
      its events are those of an earlier operation with the same scenario and run

    t.angio:43: operation `a` run `2` has the run of another operation
      their events differ, so both are used
    ");
    assert_eq!(report.json()["doubtful"][0]["line"], 43);
}

/// An operation without a source.
fn bare(names: &mut TraceNames, events: Vec<Event>) -> Operation {
    let scenario = names.names.intern("a");
    Operation {
        scenario,
        run: "1".into(),
        file: Arc::from("t"),
        line: 1,
        start: None,
        weight: None,
        weight_given: false,
        extent: Extent::Whole,
        origins: Origins::Lines,
        events,
    }
}

#[test]
fn long_threads_and_many_threads_are_no_trouble() {
    let mut names = TraceNames::new();
    let task = names.intern_task("A", 1);
    let count = 100_000;
    // One long thread.
    let mut events: Vec<_> = (1..=count).map(|index| Event::new(1, index, Kind::Activity, task, index)).collect();
    events[0].kind = Kind::Begin;
    events[count as usize - 1].kind = Kind::End;
    let long = bare(&mut names, events);
    // Each thread forks the next.
    let mut events = Vec::new();
    for thread in 1..=count {
        let first = 3 * (thread - 1) + 1;
        let kind = if thread < count { Kind::Fork(thread + 1) } else { Kind::Activity };
        for (index, kind) in (1..).zip([Kind::Begin, kind, Kind::End]) {
            events.push(Event::new(thread, index, kind, task, first + index - 1));
        }
    }
    let deep = bare(&mut names, events);
    for whole in [&long, &deep] {
        assert_eq!(diagnose_by_passes(whole), []);
        assert!(Toeg::build(whole.clone()).is_ok());
        let mut damaged = whole.clone();
        damaged.events.remove(70_001);
        assert!(matches!(examine(&mut damaged, &names), Verdict::Restored(_)));
        // Last before first: a cycle through all.
        let mut cyclic = whole.clone();
        cyclic.events.reverse();
        for (counter, event) in (1..).zip(&mut cyclic.events) {
            event.counter = counter;
        }
        assert_eq!(faults(&cyclic), [Fault::Cycle]);
        // The same label a hundred thousand times.
        let mut same = whole.clone();
        for event in &mut same.events {
            *event = Event::new(1, 7, Kind::Fork(2), task, 7);
        }
        assert!(diagnose(&same).len() >= same.events.len());
    }
    assert_eq!(diagnose_by_rules(&long), []);
}

/// A sound operation in the making.
struct Builder {
    tasks: [TaskId; 4],
    counters: [u32; 4],
    /// Last index, task and whether it goes on, of threads 1, 2, …
    threads: Vec<(u32, usize, bool)>,
    /// Threads that ended and that nobody waits for.
    ended: Vec<u32>,
    events: Vec<Event>,
}

impl Builder {
    fn begin(&mut self, task: usize) {
        self.threads.push((0, task, true));
        self.add(self.threads.len() - 1, Kind::Begin);
    }

    fn add(&mut self, thread: usize, kind: Kind) {
        let (index, task, alive) = &mut self.threads[thread];
        *index += 1;
        *alive = kind != Kind::End;
        self.counters[*task] += 1;
        let number = thread as u32 + 1;
        self.events.push(Event::new(number, *index, kind, self.tasks[*task], self.counters[*task]));
        if kind == Kind::End && thread > 0 {
            self.ended.push(number);
        }
    }
}

/// Builds a sound operation from any list of steps: which thread goes on, how, and where.
fn sound(names: &mut TraceNames, steps: &[(u8, u8, u8)]) -> Operation {
    let tasks = ["A", "B", "C", "D"].map(|name| names.intern_task(name, 1));
    let mut builder = Builder { tasks, counters: [0; 4], threads: Vec::new(), ended: Vec::new(), events: Vec::new() };
    builder.begin(0);
    for (which, how, place) in steps {
        let thread = *which as usize % builder.threads.len();
        if !builder.threads[thread].2 {
            continue;
        }
        match how {
            0..=3 => {
                builder.threads[thread].1 = *place as usize;
                builder.add(thread, Kind::Activity);
            }
            4..=5 => {
                builder.add(thread, Kind::Fork(builder.threads.len() as u32 + 1));
                builder.begin(*place as usize);
            }
            6 => {
                let kind = builder.ended.pop().map_or(Kind::Activity, Kind::Join);
                builder.add(thread, kind);
            }
            _ => builder.add(thread, if thread > 0 { Kind::End } else { Kind::Activity }),
        }
    }
    for thread in 0..builder.threads.len() {
        if builder.threads[thread].2 {
            builder.add(thread, Kind::End);
        }
    }
    bare(names, builder.events)
}

fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec((any::<u8>(), 0..9u8, 0..4u8), 0..40)
}

/// Changes an operation in some way.
fn damage(operation: &mut Operation, (what, which, value): (u8, usize, u32)) {
    if operation.events.is_empty() {
        return;
    }
    let which = which % operation.events.len();
    let event = operation.events[which];
    let changed = &mut operation.events[which];
    match what {
        0 => drop(operation.events.remove(which)),
        1 => operation.events.push(event),
        2 => changed.thread = value,
        3 => changed.index = value,
        4 => changed.counter = value,
        5 => changed.kind = [Kind::Begin, Kind::Activity, Kind::End, Kind::Fork(value), Kind::Join(value)][which % 5],
        6 => changed.index = changed.index.wrapping_sub(value),
        _ => changed.task = TaskId(value % 4),
    }
}

proptest! {
    #[test]
    fn rules_passes_and_screen_agree(
        steps in steps(),
        damages in prop::collection::vec((0..8u8, any::<usize>(), 0..6u32), 0..4),
    ) {
        let mut names = TraceNames::new();
        let mut operation = sound(&mut names, &steps);
        prop_assert_eq!(diagnose(&operation), vec![]);
        for change in damages {
            damage(&mut operation, change);
        }
        let found = diagnose_by_rules(&operation);
        prop_assert_eq!(&found, &diagnose_by_passes(&operation));
        prop_assert_eq!(found.is_empty(), Toeg::build(operation.clone()).is_ok());
        for finding in found {
            finding.diagnostic(&operation, &names);
        }
    }

    #[test]
    fn what_is_restored_is_what_was_lost(steps in steps(), which in any::<usize>()) {
        let mut names = TraceNames::new();
        let whole = sound(&mut names, &steps);
        let mut operation = whole.clone();
        let lost = operation.events.remove(which % whole.events.len());
        match examine(&mut operation, &names) {
            Verdict::Sound => prop_assert!(false, "a lost event goes unseen"),
            Verdict::Restored(_) => prop_assert_eq!(label(&operation.events[operation.events.len() - 1]), label(&lost)),
            Verdict::Damaged(_) => prop_assert_eq!(operation.events.len() + 1, whole.events.len()),
        }
    }

    #[test]
    fn reports_merge_in_any_order(parts in prop::collection::vec((steps(), 0..8u8, any::<usize>(), 0..6u32), 0..6)) {
        let mut names = TraceNames::new();
        let mut reports = Vec::new();
        for (line, (steps, what, which, value)) in (1..).zip(parts) {
            let mut operation = sound(&mut names, &steps);
            operation.line = line;
            damage(&mut operation, (what, which, value));
            let verdict = examine(&mut operation, &names);
            let mut report = QualityReport::default();
            report.record(&operation, &names, &verdict);
            reports.push(report);
        }
        let merged = |reports: &mut dyn Iterator<Item = &QualityReport>| {
            let mut all = QualityReport::default();
            reports.for_each(|report| all.merge(report.clone()));
            all
        };
        let forwards = merged(&mut reports.iter());
        prop_assert_eq!(&forwards, &merged(&mut reports.iter().rev()));
        let (left, right) = reports.split_at(reports.len() / 2);
        prop_assert_eq!(&forwards, &merged(&mut [merged(&mut left.iter()), merged(&mut right.iter())].iter()));
    }
}
