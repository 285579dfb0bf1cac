//! Intervals that grow old, and what a store refuses.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::EntryIndex;
use dyelog_server::answer::Answer;
use dyelog_server::metered::Metered;
use dyelog_server::store::{LEVELS, Store, StoreError};
use opentelemetry_proto::tonic::trace::v1::Span;

use crate::home::Home;
use crate::support::{BEGIN, Recorded, SECOND, of_file, trace};

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
    // Of stays fewer are kept; all else stays.
    let without_stays = |text: &str| {
        let (mut sub, merge) = saved::parse(&"test".into(), text).unwrap();
        for index in 0..sub.entries().len() {
            sub.entry_mut(EntryIndex(index as u32)).stays.keep(0);
        }
        saved::write(&sub, &merge)
    };
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

/// Ten minutes of a service with two workers that are 75 % busy, interval by interval.
fn two_workers() -> Vec<(u64, Vec<Recorded>)> {
    let mut state = 11_u64;
    let mut exponential = |mean: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        -mean * ((((state >> 11) + 1) as f64) / 2.0_f64.powi(53)).ln()
    };
    let mut intervals: Vec<(u64, Vec<Recorded>)> = (0..60).map(|at| (BEGIN + at * 10 * SECOND, Vec::new())).collect();
    let (mut at, mut free, mut number) = (0.0, [0.0_f64; 2], 0);
    while at < 599.0 {
        at += exponential(1.0 / 30.0);
        free.sort_by(f64::total_cmp);
        let end = free[0].max(at) + exponential(0.05);
        free[0] = end;
        let milliseconds = ((end - at) * 1e3).round().max(1.0) as u64;
        let start = BEGIN + (at * 1e9) as u64;
        let interval = ((at / 10.0) as usize).min(59);
        // Identifiers as samplers leave them: spread over their range.
        let id = u128::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes();
        let spans = trace(number, start, &[milliseconds]).into_iter();
        intervals[interval].1.extend(spans.map(|(service, span)| (service, Span { trace_id: id.to_vec(), ..span })));
        number += 1;
    }
    intervals
}

#[test]
fn servers_that_were_found_stay_found_when_intervals_get_longer() {
    let home = Home::file();
    let mut store = home.open();
    for (start, spans) in two_workers() {
        let (submodel, merge) = saved::parse(&"test".into(), &of_file(&spans)).expect("it was just made");
        store.add(start, start, &submodel, &merge).expect("it is written");
    }
    let servers = |store: &Store| {
        let (submodel, merge) = store.period(0, u64::MAX).expect("it is read").expect("it has intervals");
        let answer = Answer::of(submodel, &merge, &Metered::default()).expect("it is a model");
        let busy = answer.busiest().expect("it is solved");
        let bytes: u64 = store.intervals(0, u64::MAX).expect("it is read").iter().map(|own| own.bytes).sum();
        let stock = busy.into_iter().find(|(name, ..)| name == "stock").expect("it is asked");
        println!("{stock:?} {bytes} bytes");
        stock
    };
    let fresh = servers(&store);
    assert!((fresh.2 - 2.0).abs() < 1e-9 && (fresh.1 - 1.5).abs() < 0.15, "{fresh:?}");
    let mut now = BEGIN + 600 * SECOND;
    for level in LEVELS.iter().take(4) {
        now = now.max(BEGIN + 600 * SECOND + level.stays.saturating_add(level.length).saturating_add(SECOND));
        while store.roll_up(now, u64::MAX).expect("it is written") {}
        let old = servers(&store);
        assert!((old.2 - 2.0).abs() < 1e-9 && (old.1 - 1.5).abs() < 0.15, "{old:?} at {level:?}");
    }
}
