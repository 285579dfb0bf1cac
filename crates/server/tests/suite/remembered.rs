//! Sums that are remembered from one question to the next, or stand in the database, change no answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dyelog::lqn::saved;
use dyelog_server::answer::Answer;
use dyelog_server::late;
use dyelog_server::metered::Metered;
use dyelog_server::parts::Parts;
use dyelog_server::period::Period;
use dyelog_server::store::{LEVELS, Location, Store, Sums};

use crate::home::Home;
use crate::program::Program;
use crate::support::{BEGIN, Recorded, SECOND, of_file, request, trace};

const LENGTH: u64 = LEVELS[0].length;
const MINUTE: u64 = LEVELS[1].length;

/// The answers on a period: its sub-model, its parts, and its model.
fn told(store: &Store, from: u64, to: u64) -> Option<(String, Parts, String)> {
    let (parts, submodel, merge) = Parts::with_whole(store, Period { from, to }).unwrap()?;
    let saved = saved::write(&submodel, &merge);
    assert_eq!(store.period(from, to).unwrap().map(|(sub, merge)| saved::write(&sub, &merge)), Some(saved.clone()));
    let model = Answer::of(submodel, &merge, &Metered::default()).unwrap().lqn();
    Some((saved, parts, model))
}

/// Adds operations of an interval.
fn add(store: &mut Store, begin: u64, number: u64, touched: u64) {
    let spans: Vec<_> = (0..4)
        .flat_map(|own| trace(1000 * number + own, begin + (2 * own + 1) * SECOND, &[2 + (number + own) % 5, 3]))
        .collect();
    let (sub, merge) = saved::parse(&"test".into(), &of_file(&spans)).unwrap();
    store.add(begin, touched, &sub, &merge).unwrap();
}

#[test]
fn what_is_remembered_changes_no_answer() {
    what_is_remembered_changes_no_answer_in(&Home::file());
}

pub fn what_is_remembered_changes_no_answer_in(home: &Home) {
    let mut store = home.open();
    let sums: Arc<Sums> = Arc::default();
    let remembering = home.open().remembering(Arc::clone(&sums));
    let begin = BEGIN / LEVELS[2].length * LEVELS[2].length;
    let end = begin + 60 * LENGTH;
    let same = |store: &Store, what: &str| {
        for (from, to) in [(begin, end), (0, u64::MAX), (begin + 35 * SECOND, end - 95 * SECOND), (end, end + LENGTH)] {
            let expected = told(store, from, to);
            for which in ["first", "again"] {
                assert_eq!(told(&remembering, from, to), expected, "{what}, {which}: {from} to {to}");
            }
        }
    };
    for number in 0..60 {
        add(&mut store, begin + number * LENGTH, number, begin + number * LENGTH);
    }
    assert!(told(&store, begin, end).is_some());
    same(&store, "at first");
    // What comes late to an interval, and the first of it to another stretch.
    add(&mut store, begin + 14 * LENGTH, 70, end);
    add(&mut store, end, 71, end + LENGTH);
    same(&store, "late");
    store.delete(begin + 20 * LENGTH, begin + 22 * LENGTH).unwrap();
    same(&store, "deleted");
    while store.roll_up(end + LEVELS[0].stays + LEVELS[1].length, u64::MAX).unwrap() {
        same(&store, "rolled up in part");
    }
    assert!(store.intervals(begin, end).unwrap().iter().all(|own| own.length == LEVELS[1].length));
    same(&store, "rolled up");
    assert_eq!(late::headless(&store.period(begin, end).unwrap().unwrap().0), 0);
}

/// Adds an operation to an interval of a minute.
fn add_minute(store: &mut Store, begin: u64, number: u64, touched: u64) {
    let spans = trace(number, begin + 3 * SECOND, &[2 + number % 5, 3]);
    let (sub, merge) = saved::parse(&"test".into(), &of_file(&spans)).unwrap();
    store.add_whole((begin, MINUTE), touched, &sub, &merge).unwrap();
}

#[test]
fn sums_in_the_database_change_no_answer() {
    let home = Home::file();
    let Location::File(path) = &home.location else { unreachable!("it is a file") };
    let copy = home.folder.path().join("copy.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let count = || connection.query_row("SELECT COUNT(*) FROM sums", [], |row| row.get::<_, i64>(0)).unwrap();
    let mut counts = Vec::new();
    sums_in_the_database_change_no_answer_in(&home, |period| {
        let _ = std::fs::remove_file(&copy);
        connection.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        rusqlite::Connection::open(&copy).unwrap().execute("DELETE FROM sums", []).unwrap();
        counts.push(count());
        Some(told(&Store::read(&copy).unwrap(), period.0, period.1))
    });
    // Of sixty stretches two are added to. Then three are deleted, and two in part.
    assert_eq!(counts, [0, 60, 58, 60, 55, 57]);
}

/// `truth` tells what the answer is without any sums, where it can.
pub fn sums_in_the_database_change_no_answer_in(
    home: &Home,
    mut truth: impl FnMut((u64, u64)) -> Option<Option<(String, Parts, String)>>,
) {
    let mut store = home.open();
    let begin = BEGIN / LEVELS[4].length * LEVELS[4].length;
    let end = begin + 720 * MINUTE;
    let mut same = |store: &Store, what: &str| {
        let found = told(store, begin, end);
        if let Some(truth) = truth((begin, end)) {
            assert_eq!(found, truth, "{what}");
        }
        found
    };
    for number in 0..720 {
        add_minute(&mut store, begin + number * MINUTE, number, end);
    }
    let before = same(&store, "at first");
    let now = end + 2 * LEVELS[0].stays;
    while store.roll_up(now, u64::MAX).unwrap() {}
    assert_eq!(same(&store, "summed"), before);
    // What comes late, to an interval of the length that the others have there, and as the first of a shorter one.
    add_minute(&mut store, begin + 100 * MINUTE, 1000, now);
    add_minute(&mut store, begin + 300 * MINUTE, 1001, now);
    add(&mut store, begin + 500 * MINUTE, 1002, now);
    let late = same(&store, "late");
    assert_ne!(late, before);
    while store.roll_up(now + MINUTE, u64::MAX).unwrap() {}
    assert_eq!(same(&store, "late, and summed"), late);
    store.delete(begin + 29 * MINUTE, begin + 80 * MINUTE).unwrap();
    assert_ne!(same(&store, "deleted"), late);
    while store.roll_up(now + 2 * MINUTE, u64::MAX).unwrap() {}
    same(&store, "deleted, and summed");
}

#[test]
fn intervals_without_a_sum_do_not_hold_up_others() {
    let home = Home::file();
    let mut store = home.open();
    let begin = BEGIN / LEVELS[4].length * LEVELS[4].length;
    for number in 0..36 {
        add_minute(&mut store, begin + number * MINUTE, number, begin);
    }
    let (sub, _) = store.period(begin, begin + MINUTE).unwrap().unwrap();
    store.add_whole((begin + MINUTE, MINUTE), begin, &sub, "structure").unwrap();
    while store.roll_up(begin + 3 * LEVELS[0].stays, u64::MAX).unwrap() {}
    let Location::File(path) = &home.location else { unreachable!("it is a file") };
    let sizes = "SELECT SUM(LENGTH(content) > 0), COUNT(*) FROM sums";
    let found = rusqlite::Connection::open(path).unwrap();
    let found = found.query_row(sizes, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap();
    assert_eq!(found, (2, 3));
    assert!(store.period(begin, begin + 36 * MINUTE).is_err());
    assert!(store.period(begin + 12 * MINUTE, begin + 36 * MINUTE).unwrap().is_some());
}

/// Where a period begins and ends within the same intervals is no matter, and answers that differ have states that do.
#[test]
fn periods_of_one_state_have_one_answer() {
    let home = Home::file();
    let mut store = home.open();
    let begin = BEGIN / LEVELS[4].length * LEVELS[4].length;
    let told_and_state = |store: &Store, from: u64, to: u64| (store.state(from, to).unwrap(), told(store, from, to));
    for number in 0..60 {
        add_minute(&mut store, begin + number * MINUTE, number, begin);
    }
    let end = begin + 60 * MINUTE;
    let whole = told_and_state(&store, begin, end);
    for (from, to) in [(begin - MINUTE, end), (begin + SECOND, end - SECOND), (0, u64::MAX)] {
        assert_eq!(told_and_state(&store, from, to), whole, "{from} to {to}");
    }
    for (from, to) in [(begin + MINUTE, end), (begin, end - MINUTE)] {
        let other = told_and_state(&store, from, to);
        assert!(other.0 != whole.0 && other.1 != whole.1, "{from} to {to}");
    }
    // Of a long period a stretch adds to the history as one only where all of it lies in the period.
    for number in 60..720 {
        add_minute(&mut store, begin + number * MINUTE, number, begin);
    }
    let end = begin + 720 * MINUTE;
    let whole = told_and_state(&store, begin, end);
    assert_eq!(told_and_state(&store, begin - MINUTE, end + MINUTE), whole);
    let within = told_and_state(&store, begin + SECOND, end);
    assert_ne!(within.0, whole.0);
    assert_eq!(told_and_state(&store, begin + 2 * SECOND, end + SECOND), within);
}

/// The time since a moment moves along, and what is there stays the same.
#[test]
fn a_period_that_moves_along_is_told_again_until_something_comes() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.1"]);
    let put = |spans: &[Recorded], folded: u64| {
        assert_eq!(program.put(&request(spans)).unwrap().status, 200);
        let begin = Instant::now();
        while program.ask("GET", "/v1/intervals", &[], b"").unwrap().text().matches("start").count() < 2
            || program.figure("dyelog_spans{state=\"folded\"}") < folded
        {
            assert!(begin.elapsed() < Duration::from_secs(20), "not folded in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let ask = |period: &str| {
        let answer = program.ask("GET", &format!("/v1/period/solution?{period}"), &[], b"").unwrap();
        assert_eq!(answer.status, 200);
        answer.text()
    };
    let figures =
        || ["remembered", "made"].map(|how| program.figure(&format!("dyelog_period_answers_total{{how=\"{how}\"}}")));
    let spans: Vec<Recorded> = (0..12).flat_map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    put(&spans, 60);
    // Ages ago, and each time later than the time before.
    let first = ask("from=-20000d");
    assert_eq!([ask("from=-20000d"), ask("from=-19999d"), ask("from=-20000d&to=now")], [&*first; 3]);
    assert_eq!(figures(), [3, 1]);
    // Times to the second, within the same intervals.
    assert_eq!([ask("from=2023-11-14T22:13:21Z"), ask("from=2023-11-14T22:13:28Z")], [&*first; 2]);
    assert_eq!(figures(), [5, 1]);
    assert_ne!(ask("from=2023-11-14T22:13:30Z"), first);
    assert_eq!(figures(), [5, 2]);
    put(&trace(40, BEGIN + 5 * SECOND, &[30]), 63);
    let begin = Instant::now();
    // A checkpoint brings it to the store.
    while ask("from=-20000d") == first {
        assert!(begin.elapsed() < Duration::from_secs(20), "not told in time");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(figures()[1], 3);
}

/// A difference depends on both of its periods.
#[test]
fn a_difference_is_told_again_until_either_period_changes() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&folder.path().join("store.db"), &["--grace", "0.1"]);
    let put = |spans: &[Recorded], folded: u64| {
        assert_eq!(program.put(&request(spans)).unwrap().status, 200);
        let begin = Instant::now();
        while program.figure("dyelog_spans{state=\"folded\"}") < folded {
            assert!(begin.elapsed() < Duration::from_secs(20), "not folded in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let figures =
        || ["remembered", "made"].map(|how| program.figure(&format!("dyelog_period_answers_total{{how=\"{how}\"}}")));
    let (first, second) = ("2023-11-14T22:13:20Z", "2023-11-14T22:13:30Z");
    let ask = |from: &str, to: &str| {
        let path = format!("/v1/period/difference?from={from}&to={second}&other_from={second}&other_to={to}");
        let answer = program.ask("GET", &path, &[], b"").unwrap();
        (answer.status, answer.text())
    };
    let spans: Vec<Recorded> = (0..20).flat_map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    put(&spans, 60);
    let begin = Instant::now();
    let told = loop {
        let told = ask(first, "2023-11-14T22:13:40Z");
        if told.0 == 200 {
            break told;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{told:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let made = figures()[1];
    assert_eq!(ask(first, "2023-11-14T22:13:40Z"), told);
    assert_eq!(figures()[1], made);
    // Each of both periods changes.
    for (number, late, folded) in [(40, BEGIN + 5 * SECOND, 63), (41, BEGIN + 15 * SECOND, 66)] {
        let before = ask(first, "2023-11-14T22:13:40Z");
        put(&trace(number, late, &[30]), folded);
        let begin = Instant::now();
        while ask(first, "2023-11-14T22:13:40Z") == before {
            assert!(begin.elapsed() < Duration::from_secs(20), "not told in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Answers are remembered for as long as nothing comes to their period that changes them.
#[test]
fn an_answer_is_told_again_until_something_comes_late() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let start = || Program::start(&path, &["--grace", "0.1"]);
    let program = start();
    let put = |program: &Program, spans: &[Recorded], folded: u64| {
        assert_eq!(program.put(&request(spans)).unwrap().status, 200);
        let begin = Instant::now();
        while program.figure("dyelog_spans{state=\"folded\"}") + program.figure("dyelog_spans{state=\"set_aside\"}")
            < folded
        {
            assert!(begin.elapsed() < Duration::from_secs(20), "not folded in time");
            std::thread::sleep(Duration::from_millis(50));
        }
        // A checkpoint brings it to the store.
        std::thread::sleep(Duration::from_millis(2500));
    };
    let forms = ["model", "solution", "report"];
    let period = "from=2023-11-14T22:13:20Z&to=2023-11-14T22:14:20Z";
    let ask = |program: &Program| {
        forms.map(|form| {
            let answer = program.ask("GET", &format!("/v1/period/{form}?{period}"), &[], b"").unwrap();
            (answer.status, answer.text())
        })
    };
    let spans: Vec<Recorded> = (0..12).flat_map(|number| trace(number, BEGIN + number * SECOND, &[3, 4])).collect();
    put(&program, &spans, 60);
    let first = ask(&program);
    assert!(first.iter().all(|(status, _)| *status == 200), "{first:?}");
    assert_eq!(ask(&program), first);
    // It lies in an interval that was asked about.
    put(&program, &trace(40, BEGIN + 5 * SECOND, &[30]), 63);
    let late = ask(&program);
    assert!(first.iter().zip(&late).all(|(first, late)| first != late), "{late:?}");
    assert_eq!(ask(&program), late);
    let mut backwards = trace(41, BEGIN + 5 * SECOND, &[]);
    backwards[0].1.end_time_unix_nano = backwards[0].1.start_time_unix_nano - 1;
    put(&program, &backwards, 64);
    let aside = ask(&program);
    assert!(aside[0].1.contains("T107") && !late[0].1.contains("T107"), "{aside:?}");
    program.stop();
    // One that remembers nothing says the same.
    let program = start();
    assert_eq!(ask(&program), aside);
    assert_eq!(program.ask("DELETE", "/v1/period?from=0", &[], b"").unwrap().status, 200);
    assert!(ask(&program).iter().all(|(status, _)| *status == 404));
}
