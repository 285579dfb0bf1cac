//! Times without operations: a server knows that it would have taken them in.

use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::{Configuration, Load, complete};

use crate::conservation::Server;
use crate::support::{BEGIN, SECOND, request, trace};

/// A minute, in which a server has nothing to do or is off.
const MINUTE: u64 = 60 * SECOND;

/// A server that has followed for ten minutes when a job of 60 operations runs within a second, and goes on for ten more.
fn with_a_job() -> Server {
    let mut server = Server::new();
    idle(&mut server, 10);
    for number in 0..60 {
        server.receive(request(&trace(number, server.now - SECOND + number * SECOND / 60, &[1])));
    }
    idle(&mut server, 10);
    server
}

fn idle(server: &mut Server, minutes: u64) {
    for _ in 0..=2 * minutes {
        server.work();
        if server.worker.is_due() {
            server.checkpoint();
        }
        server.now += MINUTE / 2;
    }
    server.now -= MINUTE / 2;
}

/// The rate of the one scenario of a period, and the codes and messages that tell of it.
fn rate(server: &Server, from: u64, to: u64) -> (f64, Vec<String>) {
    let (sub, merge) = server.store.period(from, to).unwrap().unwrap();
    // What is exported tells it, too.
    let (read, _) = saved::parse(&"test".into(), &saved::write(&sub, &merge)).unwrap();
    assert_eq!(read.observed, sub.observed);
    let (_, findings, origins) = complete(&read, &Configuration::default()).unwrap();
    let scenario = &origins.scenarios[0];
    let rate = match scenario.load {
        Load::Open { rate } => rate,
        // None of its operations overlap.
        Load::Closed { population, think_time } => {
            f64::from(population) / (think_time + scenario.observed_response.unwrap())
        }
    };
    (rate, findings.into_iter().map(|own| own.message).collect())
}

#[test]
fn the_rate_of_a_job_is_that_of_the_period() {
    let server = with_a_job();
    let (mean, told) = rate(&server, BEGIN, BEGIN + 20 * MINUTE);
    // The last seconds may still be on their way.
    assert!((mean - 60.0 / 1200.0).abs() < 0.002, "{mean}");
    let words = "goes on for 0.9833 s of a period of";
    assert!(told.iter().any(|own| own.contains(words)), "{told:?}");
    // Of a period that begins and ends with what is there, operations alone tell.
    let (alone, told) = rate(&server, 0, u64::MAX);
    assert!((alone - 60.0).abs() < 0.1, "{alone}");
    assert!(told.iter().all(|own| !own.contains("of a period of")), "{told:?}");
}

#[test]
fn a_server_that_was_off_knows_nothing_of_that_time() {
    let mut server = with_a_job();
    server.now += 100 * MINUTE;
    server.start_again();
    idle(&mut server, 10);
    let (mean, _) = rate(&server, BEGIN, server.now);
    assert!((mean - 60.0 / 1800.0).abs() < 0.002, "{mean}");
    // A short restart is no time of which nothing is known.
    server.now += MINUTE / 2;
    server.start_again();
    idle(&mut server, 10);
    let times = server.store.observed(BEGIN, server.now).unwrap();
    assert_eq!(times.len(), 2, "{times:?}");
    // Nor is one in which nothing could be taken in: all that is written then is up to its begin.
    server.checkpoint();
    for _ in 0..20 {
        server.now += MINUTE / 2;
        server.worker.interrupted();
        server.work();
        server.checkpoint();
    }
    idle(&mut server, 10);
    let off = server.store.observed(BEGIN, server.now).unwrap();
    assert_eq!((off.len(), &off[..1]), (3, &times[..1]), "{off:?}");
    // What is deleted was not observed.
    server.store.delete(BEGIN + 15 * MINUTE, BEGIN + 18 * MINUTE).unwrap();
    let seconds = |times: Vec<(u64, u64)>| times.iter().map(|(from, to)| (to - from) / SECOND).sum::<u64>();
    let left = server.store.observed(BEGIN, server.now).unwrap();
    assert_eq!(seconds(off) - seconds(left.clone()), 180);
    // What is deleted stays so, also where it is of a short while ago.
    let end = server.now - MINUTE;
    server.store.delete(end - MINUTE, end).unwrap();
    server.now += MINUTE;
    server.work();
    server.checkpoint();
    assert_eq!(seconds(server.store.observed(BEGIN, server.now).unwrap()), seconds(left));
}

/// What was recorded earlier and is sent now has the rate that a file tells.
#[test]
fn what_is_sent_later_has_the_rate_of_its_recording() {
    let mut server = Server::new();
    idle(&mut server, 10);
    let before = BEGIN - 60 * MINUTE;
    for number in 0..600 {
        server.receive(request(&trace(number, before + number * SECOND / 10, &[1])));
    }
    idle(&mut server, 10);
    let (own, told) = rate(&server, before - MINUTE, server.now);
    assert!((own - 10.0).abs() < 0.1, "{own}");
    assert!(told.iter().all(|own| !own.contains("of a period of")), "{told:?}");
}

#[test]
fn a_steady_load_has_the_rate_of_its_traces() {
    let mut server = Server::new();
    for number in 0..1200 {
        if number % 10 == 0 {
            server.now = BEGIN + number * SECOND / 2;
            server.work();
        }
        server.receive(request(&trace(number, BEGIN + number * SECOND / 2, &[1])));
    }
    idle(&mut server, 1);
    let (from, to) = (BEGIN + MINUTE - MINUTE / 3, BEGIN + 5 * MINUTE);
    assert!(!server.store.observed(from, to).unwrap().is_empty());
    let (sub, _) = server.store.period(from, to).unwrap().unwrap();
    let of = |sub: &SubModel| complete(sub, &Configuration::default()).unwrap().2.scenarios[0].load;
    let mut as_a_file = sub.clone();
    as_a_file.observed.clear();
    assert_eq!(of(&sub), of(&as_a_file));
}
