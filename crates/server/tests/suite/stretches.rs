//! What observers report grows old: sums stay, intervals get longer, and nothing counts twice.

use dyelog_observe::json;
use dyelog_observe::observation::{Input, Observation, Operation, Output, Process, Request, Service};
use dyelog_observe::period::Period;
use dyelog_server::store::{LEVELS, Store, Which};
use rusqlite::Connection;

use crate::home::Home;

const SECOND: i64 = 1_000_000_000;
/// A whole day.
const BEGIN: i64 = 19_000 * 86_400 * SECOND;

/// An interval of ten seconds, so many seconds after the begin.
pub fn observed(id: u64, second: i64) -> Observation {
    let process = Process { application: "a".into(), host: "h".into(), program: "p".into(), id, started: 7 };
    let from = BEGIN + second * SECOND;
    let mut own = Observation::empty(process, from, from + 10 * SECOND);
    own.resources.cpu = 1_000_000 + second as u64;
    own.resources.reads = 3;
    own.threads.most = (second % 5) as u32;
    own.interfaces.entry("I".into()).or_default().insert(format!("tcp:{id}").as_str().into());
    let operation = Operation::new("I", if second % 3 == 0 { "o" } else { "q" });
    let input = Input { operation: operation.clone(), service: Service::Synchronous };
    own.inputs.entry(input).or_default().add(0.01 + second as f64 * 1e-6);
    let output = Output {
        within: Some(operation),
        operation: Operation::new("J", "r"),
        request: Request::Synchronous,
        protocol: "tcp:x".into(),
    };
    own.outputs.entry(output).or_default().add(0.002);
    own
}

/// All that was observed of each process.
fn totals(observations: &[Observation]) -> Vec<Observation> {
    let period = Period::of(observations, i64::MIN, i64::MAX);
    period.processes.into_iter().map(|process| process.total).collect()
}

#[test]
fn sums_stay_while_intervals_get_longer() {
    sums_stay_while_intervals_get_longer_in(&Home::file());
}

pub fn sums_stay_while_intervals_get_longer_in(home: &Home) {
    let mut store = home.open();
    // Two processes, of which one pauses now and then, over half a day.
    let all: Vec<Observation> = (0..1200)
        .flat_map(|number| {
            let pause = if number % 50 > 40 { 300 } else { 0 };
            [observed(1, 35 * number), observed(2, 35 * number + pause)]
        })
        .collect();
    let end = (BEGIN + 100_000 * SECOND).cast_unsigned();
    assert_eq!(store.put_observations(std::slice::from_ref(&all), end).unwrap(), [Ok(2400)]);
    let read = |store: &Store| store.observations(&Which::default(), i64::MIN, i64::MAX).unwrap();
    let expected = totals(&read(&store));
    let mut before = read(&store).len();
    for level in LEVELS.windows(2) {
        let now = end + level[0].stays + level[1].length;
        while store.roll_up(now, u64::MAX).unwrap() {}
        let found = read(&store);
        assert!(found.len() < before, "{level:?}");
        let middle = |own: &Observation| i64::midpoint(own.from, own.to);
        let stretch = |own: &Observation| (own.process.id, middle(own) / level[1].length.cast_signed());
        let mut stretches: Vec<_> = all.iter().map(stretch).collect();
        stretches.sort_unstable();
        stretches.dedup();
        assert_eq!((stretches.len(), totals(&found)), (found.len(), expected.clone()), "{level:?}");
        before = found.len();
        // A report that comes once more is known; one of a time at which nothing came is new.
        assert_eq!(store.put_observations(&[all[100..110].to_vec()], now).unwrap(), [Ok(0)], "{level:?}");
    }
    assert_eq!(before, 2);
    let late = observed(1, 35 * 7 + 12);
    assert_eq!(store.put_observations(&[vec![late.clone()], vec![late]], end).unwrap(), [Ok(1), Ok(0)]);
    // What goes beyond the period stays.
    let noon = BEGIN + 20_000 * SECOND;
    assert_eq!(store.delete_observations(&Which::default(), i64::MIN, noon).unwrap(), 1);
    assert_eq!(read(&store).len(), 2);
    assert_eq!(store.delete_observations(&Which::default(), i64::MIN, i64::MAX).unwrap(), 2);
}

#[test]
fn late_reports_come_to_what_was_merged() {
    late_reports_come_to_what_was_merged_in(&Home::file());
}

pub fn late_reports_come_to_what_was_merged_in(home: &Home) {
    let mut store = home.open();
    let time = |second: i64| (BEGIN + second * SECOND).cast_unsigned();
    store.put_observations(&[vec![observed(1, 0), observed(1, 10), observed(1, 40)]], time(50)).unwrap();
    let later = time(50) + LEVELS[0].stays + LEVELS[1].length;
    while store.roll_up(later, u64::MAX).unwrap() {}
    let read = |store: &Store| store.observations(&Which::default(), i64::MIN, i64::MAX).unwrap();
    assert_eq!(read(&store).len(), 1);
    // What tells of a part of a merged one's time would count it twice.
    for second in [15, 35, 45] {
        let refused = store.put_observations(&[vec![observed(1, 60), observed(1, second)]], later).unwrap();
        assert!(refused[0].as_ref().is_err_and(|why| why.to_string().contains("overlaps another one")), "{second}");
    }
    // What fills the gap waits as others do, then is merged.
    assert_eq!(store.put_observations(&[vec![observed(1, 20), observed(1, 30)]], later).unwrap(), [Ok(2)]);
    while store.roll_up(later, u64::MAX).unwrap() {}
    assert_eq!(read(&store).len(), 3);
    while store.roll_up(later + LEVELS[0].stays + 1, u64::MAX).unwrap() {}
    let found = read(&store);
    assert_eq!((found.len(), found[0].intervals, found[0].covered), (1, 5, 50 * SECOND as u64));
    let whole: Vec<_> = (0..5).map(|number| observed(1, 10 * number)).collect();
    assert_eq!(totals(&found), totals(&whole));
    assert_eq!(store.put_observations(&[whole], later).unwrap(), [Ok(0)]);
}

#[test]
fn a_store_without_stretches_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let reports = json::write(&[observed(1, 0), observed(1, 10)]);
    let mut store = Store::open(&path).unwrap();
    store.put_observations(&[json::parse("test", &reports).unwrap()], 0).unwrap();
    drop(store);
    // As the version before made it.
    let before = "DROP TABLE uptimes; DROP TABLE deployed; DROP TABLE sums; DROP TABLE asides; DROP TABLE answers; DROP INDEX observations_merged; DROP INDEX observations_by_level; ALTER TABLE observations DROP COLUMN level;
        ALTER TABLE observations DROP COLUMN touched; ALTER TABLE observations DROP COLUMN ranges; PRAGMA user_version = 4;";
    Connection::open(&path).unwrap().execute_batch(before).unwrap();
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.reports(0, u64::MAX).unwrap(), Some(reports));
    while store.roll_up((BEGIN + 86_400 * SECOND).cast_unsigned(), u64::MAX).unwrap() {}
    assert_eq!(store.observations(&Which::default(), i64::MIN, i64::MAX).unwrap().len(), 1);
}

#[test]
fn reports_of_long_ago_stay_when_they_came_now() {
    let home = Home::file();
    let mut store = home.open();
    let year = 365 * 24 * 3600 * SECOND.cast_unsigned();
    let now = BEGIN.cast_unsigned() + 10 * year;
    store.put_observations(&[vec![observed(1, 0)]], now).expect("they are written");
    store.put_observations(&[vec![observed(2, 0)]], 0).expect("they are written");
    while store.roll_up(now, year).expect("it is written") {}
    let left = store.processes(&Which::default(), i64::MIN, i64::MAX).expect("it is read");
    assert_eq!(left.iter().map(|process| process.id).collect::<Vec<_>>(), [1]);
}
