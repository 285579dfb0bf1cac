//! Sub-models that are imported: the intervals that they become, and what those are as they get old.

use std::fs;
use std::process::Command;

use dyelog::lqn::saved;
use dyelog_server::period::{Imported, imported};
use dyelog_server::store::{LEVELS, Store};

use crate::home::Home;
use crate::store::without_stays;
use crate::support::{BEGIN, SECOND, of_file, trace};

const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// The begin of a day.
const MIDNIGHT: u64 = BEGIN / DAY * DAY;
/// No interval is deleted.
const FOREVER: u64 = 3650 * DAY;

/// What a file has of traces that begin so long after midnight.
fn file(number: u64, begins: &[u64]) -> String {
    let traces = begins.iter().zip(number..);
    of_file(&traces.flat_map(|(begin, number)| trace(number, MIDNIGHT + begin, &[3, 4])).collect::<Vec<_>>())
}

fn import(store: &mut Store, text: &str, now: u64) -> (u64, u64) {
    let Imported { submodel, merge, start, length } = imported("saved.json", text).unwrap();
    store.add_whole((start, length), now, &submodel, &merge).unwrap();
    (start - MIDNIGHT, length)
}

/// The begins, after midnight, and lengths of all intervals.
fn intervals(store: &Store) -> Vec<(u64, u64)> {
    store.intervals(0, u64::MAX).unwrap().iter().map(|own| (own.start - MIDNIGHT, own.length)).collect()
}

/// All but stays of what a period has.
fn kept(store: &Store, from: u64, to: u64) -> Option<String> {
    let found = store.period(MIDNIGHT + from, MIDNIGHT + to).unwrap();
    found.map(|(submodel, merge)| without_stays(&saved::write(&submodel, &merge)))
}

fn age(store: &mut Store, now: u64, retention: u64) {
    while store.roll_up(MIDNIGHT + now, retention).unwrap() {}
}

#[test]
fn an_import_that_crosses_a_border_rolls_up_where_it_begins() {
    imports_that_cross_borders_in(&Home::file());
}

pub fn imports_that_cross_borders_in(home: &Home) {
    let mut store = home.open();
    // 50 seconds, of which 10 are in one minute of an hour that ends there, and 40 in the next.
    let begin = 10 * HOUR - 10 * SECOND;
    let crossing = file(0, &[begin, begin + 45 * SECOND]);
    assert_eq!(import(&mut store, &crossing, MIDNIGHT + begin), (begin, 50 * SECOND));
    // Intervals of the server lie on either side.
    let beside = [file(10, &[10 * HOUR - 30 * SECOND]), file(20, &[10 * HOUR + 20 * SECOND])];
    for text in &beside {
        assert_eq!(import(&mut store, text, MIDNIGHT + begin).1, LEVELS[0].length);
    }
    let all = kept(&store, 0, DAY).unwrap();
    let together = |texts: &[&String]| {
        let mut texts = texts.iter().map(|text| saved::parse(&"test".into(), text).unwrap());
        let (mut sum, merge) = texts.next().unwrap();
        texts.for_each(|(more, _)| sum.merge(&more));
        Some(without_stays(&saved::write(&sum, &merge)))
    };
    // A period has all of an interval that reaches into it.
    assert_eq!(kept(&store, 10 * HOUR, 10 * HOUR + 10 * SECOND), together(&[&crossing]));
    for (level, expected) in LEVELS[1..].iter().zip([
        [(10 * HOUR - 60 * SECOND, 60 * SECOND), (10 * HOUR, 60 * SECOND)],
        [(10 * HOUR - 600 * SECOND, 600 * SECOND), (10 * HOUR, 600 * SECOND)],
        [(9 * HOUR, HOUR), (10 * HOUR, HOUR)],
    ]) {
        let shorter = LEVELS[LEVELS.iter().position(|own| own == level).unwrap() - 1];
        age(&mut store, 11 * HOUR + shorter.stays, FOREVER);
        assert_eq!(intervals(&store), expected);
        // It is in the first of them alone, and all is there once.
        let [(first, _), (second, length)] = expected;
        assert_eq!(kept(&store, first, second), together(&[&crossing, &beside[0]]), "{level:?}");
        assert_eq!(kept(&store, second, second + length), together(&[&beside[1]]), "{level:?}");
        assert_eq!(kept(&store, 0, DAY).unwrap(), all);
    }
    age(&mut store, 2 * DAY + LEVELS[3].stays, FOREVER);
    assert_eq!(intervals(&store), [(0, DAY)]);
    assert_eq!(kept(&store, 0, DAY).unwrap(), all);
}

#[test]
fn an_import_of_days_stays_as_it_is() {
    imports_of_days_in(&Home::file());
}

pub fn imports_of_days_in(home: &Home) {
    let mut store = home.open();
    // A day and a half, from an evening to a morning.
    let (begin, last) = (18 * HOUR, 18 * HOUR + DAY + 12 * HOUR - 10 * SECOND);
    let days = file(0, &[begin, begin + DAY, last]);
    assert_eq!(import(&mut store, &days, MIDNIGHT + last), (begin, 36 * HOUR));
    // What the server received in the same time grows old beside it.
    let received: Vec<String> =
        (0..6).map(|number| file(10 + number, &[begin + number * 6 * HOUR + 5 * SECOND])).collect();
    for text in &received {
        import(&mut store, text, MIDNIGHT + last);
    }
    let all = kept(&store, 0, 3 * DAY).unwrap();
    for level in &LEVELS[..4] {
        age(&mut store, 4 * DAY + level.stays, FOREVER);
        assert!(intervals(&store).contains(&(begin, 36 * HOUR)), "{:?}", intervals(&store));
        assert_eq!(kept(&store, 0, 3 * DAY).unwrap(), all, "{level:?}");
    }
    assert_eq!(intervals(&store), [(0, DAY), (begin, 36 * HOUR), (DAY, DAY), (2 * DAY, DAY)]);
    // It is there until its end, however long ago it began.
    let without = "sub-models of the third day";
    let third = kept(&store, begin + 36 * HOUR, 3 * DAY).expect(without);
    assert!(third.len() < kept(&store, begin + 36 * HOUR - SECOND, 3 * DAY).expect(without).len());
    // It goes when its end is older than what is kept.
    let old = begin + 36 * HOUR + 60 * DAY;
    age(&mut store, old, 60 * DAY);
    assert!(intervals(&store).contains(&(begin, 36 * HOUR)));
    age(&mut store, old + SECOND, 60 * DAY);
    assert!(!intervals(&store).contains(&(begin, 36 * HOUR)));
}

#[test]
fn no_import_is_longer_than_two_days() {
    let folder = tempfile::tempdir().unwrap();
    let (store, saved) = (folder.path().join("store.db"), folder.path().join("saved.json"));
    let import = |last: u64| {
        fs::write(&saved, file(0, &[0, last])).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyelog-server"));
        let output = command.args(["period", "import", "--store"]).args([&store, &saved]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // Of two days and a second, the last operation starts in the interval that begins there.
    let (code, told) = import(2 * DAY);
    assert_eq!(code, Some(2), "{told}");
    let words = "its operations started within 49 hours, and an interval of a store is 48 hours long at most
  hint: import an export of each day";
    assert!(told.contains(words), "{told}");
    // Nothing was stored of it.
    assert!(!store.exists() || Store::read(&store).unwrap().intervals(0, u64::MAX).unwrap().is_empty());
    assert_eq!(import(2 * DAY - SECOND), (Some(0), String::new()));
    let there = Store::read(&store).unwrap();
    assert_eq!(intervals(&there), [(0, 2 * DAY)]);
}
