//! SAME: the load that messages show, and how long they were on their way.

use std::fmt::Write as _;

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{Moments, RequestKind, SubModel};
use dyelog::model::{Configuration, Load, complete};
use dyelog::same::Options;

use crate::cli::{Folder, run, shown};
use crate::model::has;
use crate::same::analyse;

const HEADER: &str = "sender,receiver,time,message,sender_thread,receiver_thread\n";

/// An operation of a thread of the client, which takes 50 ms of the server.
fn operation(thread: u32, start: f64) -> (f64, String) {
    (start, format!("C,S,{start},a,{thread},{thread}\nS,C,{},,{thread},{thread}\n", start + 0.05))
}

fn table(mut operations: Vec<(f64, String)>) -> String {
    operations.sort_by(|left, right| left.0.total_cmp(&right.0));
    HEADER.chars().chain(operations.into_iter().flat_map(|(_, rows)| rows.chars().collect::<Vec<_>>())).collect()
}

fn load(table: &str) -> (Load, Vec<dyelog::diagnostic::Diagnostic>) {
    let (analysis, ..) = analyse(&[("t", table)], Options::default());
    let (_, findings, origins) = complete(&analysis.submodel, &Configuration::default()).expect("there are operations");
    (origins.scenarios[0].load, findings)
}

/// A thread that asks all the time, and eight that were there for a moment.
fn bursts() -> Vec<(f64, String)> {
    let steady = (0..500).map(|number| operation(1, 1.0 + 0.2 * f64::from(number)));
    let short = |thread: u32| [0.0, 0.08].map(|later| operation(thread, 50.0 + 0.01 * f64::from(thread) + later));
    steady.chain((2..10).flat_map(short)).collect()
}

#[test]
fn threads_that_come_and_go_are_as_many_as_were_there() {
    let (load, findings) = load(&table(bursts()));
    let Load::Closed { population: 1, think_time } = load else { panic!("{load:?}") };
    let rate = 515.0 / 99.8;
    assert!((1.0 / (think_time + 0.05) - rate).abs() < 1e-6, "{think_time}");
    let told = findings.iter().find(|finding| finding.code.0 == "M011").expect("a note");
    assert!(told.notes[0].starts_with("9 tasks or threads were seen to begin its 516 operations"), "{told:?}");
    assert!(told.notes[1].contains("the traced 5.16 operations a second"), "{told:?}");
}

#[test]
fn threads_that_are_there_all_the_time_are_customers() {
    // Which do not begin at once, and do not end at once.
    let of =
        |thread: u32| (0..20).map(move |number| operation(thread, 0.3 * f64::from(thread) + 1.05 * f64::from(number)));
    let (load, findings) = load(&table((1..4).flat_map(of).collect()));
    let Load::Closed { population: 3, think_time } = load else { panic!("{load:?}") };
    assert!((think_time - 1.0).abs() < 1e-9, "{think_time}");
    assert!(findings.iter().any(|finding| finding.notes.iter().any(|note| note.starts_with("so many tasks"))));
}

#[test]
fn threads_that_come_for_little_are_open_arrivals() {
    let once = (0..100).map(|number| operation(number + 1, f64::from(number))).collect();
    let thrice = (0..100).map(|number| operation(number / 3 + 1, f64::from(number) * 0.2)).collect();
    for (operations, rate) in [(once, 1.0), (thrice, 5.0)] {
        let (load, findings) = load(&table(operations));
        let Load::Open { rate: found } = load else { panic!("{load:?}") };
        assert!((found - rate).abs() < 1e-6, "{found}");
        assert!(findings.iter().any(|finding| finding.notes.iter().any(|note| note.contains("came and went"))));
    }
}

#[test]
fn traces_that_begin_at_zero_were_not_recorded_at_once() {
    let once = (0..100).map(|number| operation(number + 1, f64::from(number))).collect();
    for operations in [bursts(), once] {
        let analysed = |later: f64| {
            let moved = operations.iter().map(|(start, rows)| {
                let fields = |row: &str| {
                    let mut fields: Vec<String> = row.split(',').map(str::to_owned).collect();
                    fields[2] = (fields[2].parse::<f64>().expect("a time") + later).to_string();
                    fields.join(",") + "\n"
                };
                (*start, rows.lines().map(fields).collect::<String>())
            });
            analyse(&[("t", &table(moved.collect()))], Options::default()).0
        };
        let load = |analysis: &dyelog::same::Analysis| {
            complete(&analysis.submodel, &Configuration::default()).expect("there are operations").2.scenarios[0].load
        };
        let alone = load(&analysed(0.0));
        // Six times, without a date, or on six days.
        for day in [0.0, 86_400.0] {
            let mut all = analysed(if day > 0.0 { 1e9 } else { 0.0 });
            for number in 1..6 {
                all.merge(analysed(f64::from(number) * day + if day > 0.0 { 1e9 } else { 0.0 }));
            }
            let near = match (alone, load(&all)) {
                (Load::Open { rate: one }, Load::Open { rate: other }) => (one - other).abs() < 1e-6,
                (
                    Load::Closed { population: one, think_time: thinks },
                    Load::Closed { population: other, think_time: other_thinks },
                ) => one == other && (thinks - other_thinks).abs() < 1e-6,
                _ => false,
            };
            assert!(near, "{day}: {alone:?}, {:?}", load(&all));
        }
        let saved = saved::write(&analysed(0.0).submodel, "name");
        assert!(saved.contains("\"undated\"") && !saved::write(&analysed(1e9).submodel, "name").contains("undated"));
    }
}

/// What is simulated, written as messages and made a model again has the load that was simulated.
#[test]
fn customers_come_back_from_a_simulated_trace() {
    let folder = Folder::new();
    let model = folder.file(
        "m.lqn",
        "G \"m\" 1e-6 50 -1\nP 2\n p pu i\n p pw s\n-1\nT 2\n t users r go -1 pu z 1 m 8\n t web n home -1 pw m 4\n-1\n\
         E 2\n s go 0 -1\n y go home 1 -1\n s home 0.04 -1\n-1\n",
    );
    let trace = shown(&folder.path("t.csv"));
    let simulated = run(&["simulate", &model, "--trace", &trace, "--operations", "2000"]);
    assert_eq!(simulated.code, 0, "{}", simulated.err);
    let solved = run(&["solve", &trace, "--format", "json"]);
    let results: serde_json::Value = serde_json::from_str(&solved.out).expect("JSON");
    let scenario = &results["scenarios"][0];
    assert_eq!(scenario["load"]["population"].as_u64(), Some(8), "{}{}", solved.out, solved.err);
    let think = scenario["load"]["think_time"].as_f64().expect("seconds");
    assert!((think - 1.0).abs() < 0.1, "{think}");
    // What requests waited for a thread is no time on their way.
    assert!(!solved.err.contains("M032"), "{}", solved.err);
}

/// Of all entries of a task, or of a scenario's customer.
fn ways(sub: &SubModel, task: &str) -> Moments {
    let mut all = Moments::default();
    let own = sub.entries().iter().filter(|entry| sub.names.text(entry.task) == task);
    own.flat_map(|entry| entry.work.values()).for_each(|work| all.merge(&work.network));
    all
}

/// How many calls of a task were seen on their way, and how long in all, in milliseconds.
fn of_task(parts: &[(&str, &str)], task: &str) -> (u64, f64) {
    let (analysis, ..) = analyse(parts, Options::default());
    let ways = ways(&analysis.submodel, task);
    (ways.count, (ways.sum.as_f64() * 1e6).round() / 1e3)
}

#[test]
fn messages_with_two_times_are_on_their_way() {
    let of = |rows: &str, task: &str| of_task(&[("t", &format!("sender,receiver,sent,time\n{rows}"))], task);
    let call = "C,W,1,1.02\nW,D,1.03,1.05\nD,W,1.07,1.08\nW,C,1.09,1.1\n";
    assert_eq!(of(call, "C"), (1, 30.0));
    assert_eq!(of(call, "W"), (1, 30.0));
    assert_eq!(of(call, "D"), (0, 0.0));
    // All the way round: to the first server, on to the second, and back.
    assert_eq!(of("C,W,1,1.02\nW,D,1.03,1.05\nD,C,1.07,1.08\n", "C"), (1, 50.0));
    // What nobody replies to delays nobody.
    assert_eq!(of("C,W,1,1.02\nW,L,1.03,1.05\nW,C,1.09,1.1\n", "W"), (0, 0.0));
    // One time of each message tells nothing.
    assert_eq!(of("C,W,1,1\nW,C,2,2\n", "C"), (0, 0.0));
    // A thread that takes up a request at the moment at which another one replies has waited for that.
    let threads = "sender,receiver,sent,time,receiver_thread,sender_thread\n";
    let shared = "C,W,1,1.01,1,1\nW,C,2,2,1,1\nE,W,1.5,2,2,1\nW,E,3,3.03,1,2\n";
    assert_eq!(of_task(&[("t", &format!("{threads}{shared}"))], "E"), (1, 30.0));
    // The second request waits in the queue of the server until 2; of that the way is not part.
    assert_eq!(of("C,W,1,1.01\nE,W,1.5,2.02\nW,C,2,2.01\nW,E,3,3.03\n", "E"), (1, 50.0));
}

#[test]
fn clocks_that_differ_cancel_out_on_the_way_round() {
    for offset in [0.0, -0.015, 0.3, 7.0] {
        let at = |time: f64| time + offset;
        let client = "time,event,process,id\n1,send,C,a\n1.1,receive,C,b\n";
        let server = format!("time,event,process,id\n{},receive,W,a\n{},send,W,b\n", at(1.02), at(1.07));
        let found = of_task(&[("client", client), ("server", &server)], "C");
        // Where the reply seems to come before it was sent, the order of the two is lost with it.
        let expected = if offset > 0.03 { None } else { Some((1, 50.0)) };
        assert!(expected.is_none_or(|expected| expected == found), "{offset}: {found:?}");
    }
}

#[test]
fn a_delay_is_kept_as_traced_and_predicted() {
    let folder = Folder::new();
    let mut rows = "sender,receiver,sent,time\n".to_owned();
    for start in (1..=12).map(f64::from) {
        let row =
            |from: &str, to: &str, sent: f64, time: f64| format!("{from},{to},{},{}\n", start + sent, start + time);
        rows += &row("C", "W", 0.0, 0.02);
        rows += &row("W", "D", 0.03, 0.05);
        rows += &row("D", "W", 0.07, 0.09);
        rows += &row("W", "C", 0.1, 0.12);
    }
    let trace = folder.file("t.csv", &rows);
    let response = |config: &str| {
        let solved = run(&["solve", &trace, "--config", &folder.file("c.toml", config), "--format", "json"]);
        let results: serde_json::Value = serde_json::from_str(&solved.out).expect("JSON");
        (results["scenarios"][0]["response"].as_f64().expect("seconds"), solved.err)
    };
    let (kept, said) = response("");
    assert!((kept - 0.12).abs() < 1e-6 && said.contains("M032") && !said.contains("M030"), "{kept}: {said}");
    let (chosen, said) = response("[defaults]\nnetwork = \"traced\"\n");
    assert!((chosen - 0.12).abs() < 1e-6 && !said.contains("M006"), "{chosen}: {said}");
    let (without, said) = response("[defaults]\nnetwork = \"none\"\n");
    assert!((without - 0.04).abs() < 1e-6 && said.contains("M030"), "{without}: {said}");
    let (analysis, ..) = analyse(&[("t", &rows)], Options::default());
    let (_, findings, _) = complete(&analysis.submodel, &Configuration::default()).expect("there are operations");
    assert!(has(&findings, "M032", "latency per call: 40 ms (measured)"), "{findings:?}");
}

/// So many operations: a web server asks a database twice.
fn twice_asked(operations: u32) -> Vec<String> {
    let operation = |start: u32| {
        [("C", "W", 0), ("W", "D", 10), ("D", "W", 30), ("W", "D", 40), ("D", "W", 60), ("W", "C", 70)]
            .map(|(from, to, at)| format!("{from},{to},{start}.{at:03}\n"))
    };
    (1..=operations).flat_map(operation).collect()
}

/// The codes, places and words of what is told of a table of messages.
fn told(rows: &[String]) -> Vec<(String, String, String)> {
    let table = format!("sender,receiver,time\n{}", rows.concat());
    let (analysis, report, _) = analyse(&[("t", &table)], Options::default());
    let all = report.findings.into_iter().chain(analysis.findings.findings);
    all.map(|finding| (finding.code.0.to_owned(), format!("{:?}", finding.place), finding.message)).collect()
}

#[test]
fn messages_that_are_missing_are_told_of() {
    let whole = twice_asked(20);
    assert_eq!(told(&whole), []);
    // Of the fifth operation, the first reply of the database.
    let mut lost = whole;
    lost.remove(4 * 6 + 2);
    let found = told(&lost);
    let of = |words: &str| found.iter().find(|(code, _, message)| code == "T155" && message.contains(words));
    let (_, place, message) = of("from `W` to `D`").unwrap_or_else(|| panic!("{found:?}"));
    assert!(message.starts_with("1 of 40 messages") && place.contains("line: 27"), "{place}: {message}");
}

/// So many operations of a shop, each row with the name of its message, but for those rows of operations that are lost.
fn bought(operations: u32, named: bool, lost: &[(u32, usize)]) -> String {
    let rows = [
        ("client,shop,buy", 0.0),
        ("shop,stock,take", 0.01),
        ("stock,shop,taken", 0.03),
        ("shop,bank,pay", 0.04),
        ("bank,shop,paid", 0.09),
        ("shop,client,bought", 0.1),
    ];
    let mut table = format!("sender,receiver{},time\n", if named { ",message" } else { "" });
    for operation in 0..operations {
        for (_, (row, at)) in rows.iter().enumerate().filter(|(place, _)| !lost.contains(&(operation, *place))) {
            let row = if named { row } else { row.rsplit_once(',').expect("three fields").0 };
            writeln!(table, "{row},{:.3}", f64::from(operation) + at).expect("memory does not fail");
        }
    }
    table
}

/// Entries of the model of a table, with their invocations and exclusive time, milliseconds; and the codes of findings.
fn entries(table: &str) -> (Vec<(String, u64, f64)>, Vec<&'static str>) {
    let (analysis, ..) = analyse(&[("t", table)], Options::default());
    let submodel = &analysis.submodel;
    let entries = submodel.canonical_order().into_iter().map(|index| {
        let entry = submodel.entry(index);
        let busy: f64 = entry.work.values().map(|work| work.exclusive.sum.as_f64()).sum();
        let name = format!("{} {:?}", submodel.names.text(entry.service), entry.interaction);
        (name, entry.invocations, (busy * 1e3 / entry.invocations as f64).round())
    });
    (entries.collect(), analysis.findings.findings.iter().map(|finding| finding.code.0).collect())
}

#[test]
fn lost_messages_leave_no_trace_in_the_model() {
    let (whole, told) = entries(&bought(100, true, &[]));
    assert!(told.is_empty() && whole.len() == 4, "{told:?}: {whole:?}");
    let demands = |entries: &[(String, u64, f64)]| -> Vec<(String, f64)> {
        entries.iter().map(|(name, _, demand)| (name.clone(), *demand)).collect()
    };
    // One of each row, early and late; and some together.
    for place in 0..6 {
        for early in [4, 50] {
            let (left, told) = entries(&bought(100, true, &[(early, place)]));
            assert_eq!(demands(&left), demands(&whole), "{place} of {early}: {told:?}");
            let expected = if [0, 1, 3].contains(&place) { "T156" } else { "T155" };
            assert!(told == [expected], "{place} of {early}: {told:?}");
            assert!(left.iter().all(|(_, count, _)| *count >= 97), "{left:?}");
        }
    }
}

#[test]
fn requests_and_replies_of_which_one_is_lost_find_back_to_their_parts() {
    // Of a request without a name to an idle task nothing tells but what comes after it, three times.
    let (analysis, ..) = analyse(&[("t", &bought(100, false, &[(50, 0)]))], Options::default());
    let of = |from: &str, to: &str| {
        let submodel = &analysis.submodel;
        let answered = submodel.entries().iter().filter(|entry| submodel.names.text(entry.task) == from);
        let requests = answered.flat_map(|entry| entry.work.values().flat_map(|work| &work.requests));
        requests
            .filter(|((kind, other), _)| {
                *kind == RequestKind::Synchronous && submodel.names.text(submodel.entry(*other).task) == to
            })
            .map(|(_, total)| total.count)
            .sum::<u64>()
    };
    assert!(
        of("client", "shop") >= 95 && of("shop", "client") <= 3,
        "{}, {}",
        of("client", "shop"),
        of("shop", "client")
    );
    assert!(analysis.findings.findings.iter().any(|finding| finding.code.0 == "T156"));
    // What a server asks its client now and then is no such thing.
    let mut table = String::from("sender,receiver,time\n");
    for time in 0..40 {
        table += &format!("A,B,{time}\nB,A,{time}.1\n");
        if time == 30 {
            table += &format!("B,A,{time}.2\nA,B,{time}.3\n");
        }
    }
    let (analysis, ..) = analyse(&[("t", &table)], Options::default());
    assert_eq!((analysis.counts, analysis.findings.findings.len()), ([41, 0, 0], 0), "{:?}", analysis.findings);
}

#[test]
fn rows_that_stand_there_twice_are_told_of() {
    let mut rows = twice_asked(3);
    rows.insert(7, rows[6].clone());
    let found = told(&rows);
    assert!(found.iter().any(|(code, place, _)| code == "T140" && place.contains("line: 9")), "{found:?}");
    // The same at another time, or of another thread, is another message.
    let apart = "sender,receiver,time,sender_thread\nA,B,1,1\nA,B,1,2\nA,B,2,1\n";
    let (_, report, _) = analyse(&[("t", apart)], Options::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let halves = "time,event,process,id\n1,send,A,x\n1,send,A,x\n2,receive,B,x\n";
    let (_, report, _) = analyse(&[("t", halves)], Options::default());
    assert_eq!(report.counted["row that stands there twice"], 1);
}

#[test]
fn work_of_which_the_end_is_not_seen_is_told_of() {
    let mut rows = "sender,receiver,time,message\n".to_owned();
    for start in 1..=12 {
        rows += &format!("C,W,{start},go\nW,L,{start}.05,log\nW,C,{start}.1,\n");
    }
    let (analysis, ..) = analyse(&[("t", &rows)], Options::default());
    let findings = |configuration: &str| {
        let configuration = Configuration::parse(&"c".into(), configuration).expect("it is sound").0;
        complete(&analysis.submodel, &configuration).expect("there are operations").1
    };
    assert!(has(&findings(""), "M035", "the work of `log`"), "{:?}", findings(""));
    assert!(!has(&findings("[demand.entry]\nlog = \"5 ms\"\n"), "M035", ""));
}
