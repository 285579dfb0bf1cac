//! Intervals that grow old, and what a store refuses.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::EntryIndex;
use dyelog_server::store::{LEVELS, Store, StoreError};

use crate::home::Home;
use crate::support::{BEGIN, SECOND, of_file, trace};

/// All of a saved sub-model but stays and visits, of which fewer are kept of what is past.
pub fn without_stays(text: &str) -> String {
    let (mut sub, merge) = saved::parse(&"test".into(), text).unwrap();
    for index in 0..sub.entries().len() {
        let entry = sub.entry_mut(EntryIndex(index as u32));
        entry.stays.keep(0);
        entry.visits.keep(0);
    }
    sub.scenarios.values_mut().for_each(|total| total.stays.keep(0));
    saved::write(&sub, &merge)
}

#[test]
fn roll_ups_keep_what_happened() {
    roll_ups_keep_what_happened_in(&Home::file());
}

pub fn roll_ups_keep_what_happened_in(home: &Home) {
    let mut store = home.open();
    let begin = BEGIN / LEVELS[4].length * LEVELS[4].length;
    let mut all = Vec::new();
    for number in 0..200 {
        let start = begin + number * 30 * SECOND;
        let spans = trace(number, start, &[3, 4]);
        let (sub, merge) = saved::parse(&"test".into(), &of_file(&spans)).unwrap();
        store.add(start / LEVELS[0].length * LEVELS[0].length, start, &sub, &merge).unwrap();
        all.extend(spans);
    }
    let (end, forever) = (begin + 200 * 30 * SECOND, 3650 * LEVELS[4].length);
    let whole = |store: &Store| store.period(begin, end).unwrap().map(|(sub, merge)| saved::write(&sub, &merge));
    assert_eq!(whole(&store), Some(of_file(&all)));
    let expected = without_stays(&of_file(&all));
    let mut before = store.intervals(begin, end).unwrap().len();
    for level in LEVELS.windows(2) {
        let now = end + level[0].stays + level[1].length;
        while store.roll_up(now, forever).unwrap() {}
        let intervals = store.intervals(begin, end).unwrap();
        assert!(intervals.len() < before && intervals.iter().all(|interval| interval.length >= level[1].length));
        before = intervals.len();
        assert!(without_stays(&whole(&store).unwrap()) == expected, "{level:?}");
    }
    assert_eq!(before, 1);
    store.roll_up(end + 100 * LEVELS[4].length, 50 * LEVELS[4].length).unwrap();
    assert_eq!(whole(&store), None);
}

#[test]
fn past_intervals_take_few_bytes() {
    let home = Home::file();
    let mut store = home.open();
    let begin = BEGIN / LEVELS[4].length * LEVELS[4].length;
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for interval in 0..12 {
        let start = begin + interval * LEVELS[0].length;
        let spans: Vec<_> = (0..300)
            .flat_map(|number| {
                let calls: Vec<u64> = (0..2 + random(2)).map(|_| 1 + random(30)).collect();
                trace(300 * interval + number, start + random(LEVELS[0].length), &calls)
            })
            .collect();
        let (sub, merge) = saved::parse(&"test".into(), &of_file(&spans)).unwrap();
        store.add(start, start, &sub, &merge).unwrap();
    }
    let most = |store: &Store| store.intervals(begin, u64::MAX).unwrap().iter().map(|own| own.bytes).max().unwrap();
    // What is not past is kept whole.
    assert!(most(&store) > 2 * 4096);
    while store.roll_up(begin + LEVELS[0].stays + LEVELS[2].length, u64::MAX).unwrap() {}
    assert_eq!(store.intervals(begin, u64::MAX).unwrap().len(), 2);
    assert!(most(&store) <= 2 * 4096, "{}", most(&store));
    let (submodel, _) = store.period(begin, u64::MAX).unwrap().unwrap();
    let fewest = submodel.entries().iter().map(|entry| entry.stays.kept().len()).filter(|stays| *stays > 0).min();
    assert!(fewest >= Some(32) && submodel.scenarios.len() == 2, "{fewest:?}");
}

#[test]
fn periods_are_cut_at_intervals() {
    periods_are_cut_at_intervals_in(&Home::file());
}

pub fn periods_are_cut_at_intervals_in(home: &Home) {
    let mut store = home.open();
    let begin = BEGIN / LEVELS[0].length * LEVELS[0].length;
    let (sub, merge) = saved::parse(&"test".into(), &of_file(&trace(1, begin, &[2]))).unwrap();
    for number in 0..3 {
        store.add(begin + number * LEVELS[0].length, begin, &sub, &merge).unwrap();
    }
    let count = |from: u64, to: u64| store.intervals(begin + from * SECOND, begin + to * SECOND).unwrap().len();
    assert_eq!((count(0, 10), count(0, 11), count(9, 10), count(10, 30), count(30, 40)), (1, 2, 1, 2, 0));
    assert_eq!(store.delete(begin + 5 * SECOND, begin + 25 * SECOND).unwrap(), 1);
}

#[test]
fn a_store_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(Store::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Newer(99))));
    let other = folder.path().join("other");
    std::fs::write(&other, "no database, but a text that is longer than the head of one would be").unwrap();
    assert!(Store::open(&other).is_err());
}
