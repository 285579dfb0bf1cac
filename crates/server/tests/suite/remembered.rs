//! Sums that are remembered from one question to the next change no answer.

use std::sync::Arc;

use dyelog::lqn::saved;
use dyelog_server::answer::Answer;
use dyelog_server::late;
use dyelog_server::metered::Metered;
use dyelog_server::parts::Parts;
use dyelog_server::period::Period;
use dyelog_server::store::{LEVELS, Store, Sums};

use crate::home::Home;
use crate::support::{BEGIN, SECOND, of_file, trace};

const LENGTH: u64 = LEVELS[0].length;

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
