//! A server that is left running, its clock moved by hand: what it keeps of each time as that gets old.

use dyelog_server::answer::Answer;
use dyelog_server::metered::Metered;
use dyelog_server::store::{Interval, LEVELS};

use crate::conservation::Server;
use crate::store::without_stays;
use crate::support::{Recorded, SECOND, of_file, request, trace};

const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// The begin of a day.
const BEGIN: u64 = 19_000 * DAY;

/// How often a server looks for what has grown old.
const STEP: u64 = HOUR;

/// Three minutes of traces that begin in the hour of that number.
fn burst(hour: u64) -> Vec<Recorded> {
    let one = |number: u64| trace(10 * hour + number, BEGIN + hour * HOUR + number * 45 * SECOND, &[3, 4 + number]);
    (0..4).flat_map(one).collect()
}

/// Runs until an hour, with traces in each sixth one; gives all spans. Nothing is kept for longer than that.
fn run(server: &mut Server, hours: std::ops::Range<u64>, retention: u64) -> Vec<Recorded> {
    let mut all = Vec::new();
    for hour in hours {
        server.now = BEGIN + hour * HOUR;
        if hour.is_multiple_of(6) {
            let spans = burst(hour);
            server.now += 4 * 60 * SECOND;
            server.receive(request(&spans));
            server.finish();
            all.extend(spans);
        }
        while server.store.roll_up(server.now, retention).unwrap() {}
    }
    all
}

fn intervals(server: &Server) -> Vec<Interval> {
    server.store.intervals(0, u64::MAX).unwrap()
}

fn spans(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|own| own.spans).sum()
}

/// The level that an interval is of at most, and at least, by its end.
fn is_as_long_as_its_age(own: &Interval, now: u64) -> bool {
    let age = now - (own.start + own.length);
    let place = LEVELS.iter().position(|level| level.length == own.length).expect("it has the length of a level");
    // It became so long when what it is made of was old enough, and becomes longer at the next look.
    let made = place == 0 || age + own.length >= LEVELS[place - 1].stays;
    made && age <= LEVELS[place].stays.saturating_add(STEP)
}

#[test]
fn all_that_was_received_is_there_at_each_age() {
    let mut server = Server::new();
    let whole = |server: &Server, from: u64, to: u64| {
        let (submodel, merge) = server.store.period(from, to).unwrap().expect("it was recorded");
        Answer::of(submodel, &merge, &Metered::default()).unwrap().agreement().unwrap()
    };
    let mut all = run(&mut server, 0..24, u64::MAX);
    let first_day = whole(&server, BEGIN, BEGIN + DAY);
    let mut lengths = Vec::new();
    // What comes late grows old from when it came.
    let late_day = BEGIN / DAY + 3;
    for day in 1..=45_u64 {
        all.extend(run(&mut server, 24 * day..24 * (day + 1), u64::MAX));
        let found = intervals(&server);
        let wrong = found.iter().find(|own| own.start / DAY != late_day && !is_as_long_as_its_age(own, server.now));
        assert_eq!(wrong, None, "day {day}");
        assert_eq!(spans(&found), all.len() as u64, "day {day}");
        lengths.extend(found.iter().map(|own| own.length));
        if day == 20 {
            // A trace of long ago belongs to its own day.
            let late = trace(9_999, late_day * DAY + 30 * SECOND, &[3, 4]);
            let own_day = |server: &Server| server.period(late_day * DAY, (late_day + 1) * DAY);
            let before = own_day(&server);
            server.receive(request(&late));
            server.finish();
            assert_ne!(own_day(&server), before);
            all.extend(late);
        }
    }
    // It went through all of them; at the end of a day nothing is new.
    assert!(LEVELS[1..].iter().all(|level| lengths.contains(&level.length)));
    let kept = server.period(BEGIN, u64::MAX).unwrap();
    assert!(without_stays(&kept) == without_stays(&of_file(&all)));
    // The model of a day is what it was on that day.
    let aged = whole(&server, BEGIN, BEGIN + DAY);
    assert_eq!(aged.len(), first_day.len());
    for (old, new) in first_day.iter().zip(&aged) {
        assert_eq!((&old.scenario, old.rate, old.measured), (&new.scenario, new.rate, new.measured));
        let (before, after) = (old.predicted.unwrap(), new.predicted.unwrap());
        assert!((after / before - 1.0).abs() < 0.01, "{before} is {after}");
    }
}

#[test]
fn what_is_older_than_it_is_kept_goes_and_nothing_else() {
    let mut server = Server::new();
    let retention = 10 * DAY;
    let mut all = run(&mut server, 0..24, retention);
    for day in 1..=25_u64 {
        all.extend(run(&mut server, 24 * day..24 * (day + 1), retention));
        let found = intervals(&server);
        let oldest = server.now - retention;
        assert!(found.iter().all(|own| own.start + own.length + STEP >= oldest), "day {day}: {found:?}");
        // An hour that reaches beyond the border stays as a whole.
        let kept = all.iter().filter(|(_, span)| span.start_time_unix_nano / HOUR * HOUR + HOUR >= oldest).count();
        assert_eq!(spans(&found), kept as u64, "day {day}");
        assert_eq!(server.worker.counts().folded, all.len() as u64);
    }
    assert!(spans(&intervals(&server)) < all.len() as u64 / 2);
    // What is received of a time before that is kept for a day at least, and then goes.
    let late = trace(9_999, BEGIN + 30 * SECOND, &[3, 4]);
    server.receive(request(&late));
    server.finish();
    let is_there = |server: &Server| server.store.period(BEGIN, BEGIN + HOUR).unwrap().is_some();
    run(&mut server, 24 * 26..24 * 27, retention);
    assert!(is_there(&server));
    run(&mut server, 24 * 27..24 * 37, retention);
    assert!(!is_there(&server));
}
