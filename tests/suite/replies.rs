//! Requests over queues whose answers no span shows: senders wait until the work is done, or work on meanwhile.

use dyelog::lqn::submodel::{Interaction, RequestKind};
use dyelog::lqn::{Model, Multiplicity};
use dyelog::model::{Configuration, complete};

use crate::generator::Random;
use crate::law::reduced;
use crate::lost_services::{busy, report};
use crate::servers::miss;
use crate::waits::{Span, exponential, operation};

/// Operations a second.
const RATE: f64 = 55.0;

/// One request: when it came and was sent, and the work on it.
#[derive(Clone, Copy)]
struct Request {
    came: f64,
    sent: f64,
    begun: f64,
    done: f64,
}

/// Requests for a worker of two threads that takes each for 18 ms on the mean; the sender worked for 4 ms before.
fn requests(seed: u64, count: usize) -> impl Iterator<Item = (Random, Request)> {
    let mut random = Random::new(seed);
    let (mut now, mut free) = (1.0, [0.0_f64; 2]);
    let mut sent: Vec<(f64, f64)> = (0..count)
        .map(|_| {
            now += exponential(&mut random, 1.0 / RATE);
            (now, now + exponential(&mut random, 0.004))
        })
        .collect();
    sent.sort_unstable_by(|one, other| one.1.total_cmp(&other.1));
    sent.into_iter().enumerate().map(move |(number, (came, sent))| {
        let mut random = Random::new(seed * 1_000_000 + number as u64);
        let first = free.iter_mut().min_by(|one, other| one.total_cmp(other)).expect("there are two");
        let begun = first.max(sent + 0.0004);
        *first = begun + exponential(&mut random, 0.018);
        (random, Request { came, sent, begun, done: *first })
    })
}

/// `api` sends each request to `worker`, whose clock is ahead, and answers at the end that is given.
fn recorded(
    requests: impl Iterator<Item = (Random, Request)>,
    ahead: f64,
    end: impl Fn(&mut Random, Request) -> f64,
) -> String {
    let mut text = String::new();
    for (number, (mut random, own)) in requests.enumerate() {
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let spans = [
            of("api", 2, 1, 0, "POST", (own.came, end(&mut random, own))),
            of("api", 4, 2, 1, "resize publish", (own.sent, own.sent + 0.0004)),
            of("worker", 5, 3, 2, "resize process", (own.begun + ahead, own.done + ahead)),
        ];
        operation(&mut text, number, &spans);
    }
    text
}

/// The sender goes on when the work is done, and works for 2 ms.
fn waiting(random: &mut Random, own: Request) -> f64 {
    own.done + 0.0005 + exponential(random, 0.002)
}

/// How many requests of services are of that kind, and how many there are.
fn requests_of(text: &str, kind: RequestKind) -> (u64, u64) {
    let sub = reduced("t.jsonl", text.as_bytes());
    let callers = sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer);
    let requests = callers.flat_map(|entry| entry.work.values()).flat_map(|work| &work.requests);
    requests.fold((0, 0), |(of_kind, all), ((own, _), total)| {
        (of_kind + if *own == kind { total.count } else { 0 }, all + total.count)
    })
}

fn kinds(text: &str) -> Vec<RequestKind> {
    let kinds = [RequestKind::Synchronous, RequestKind::Asynchronous];
    kinds.into_iter().filter(|kind| requests_of(text, *kind).0 > 0).collect()
}

fn told(text: &str, severity: &str) -> usize {
    let of = |own: &&dyelog::diagnostic::Diagnostic| own.code.0 == "T141" && format!("{:?}", own.severity) == severity;
    report(text).findings.iter().filter(of).count()
}

fn modelled(text: &str) -> (Model, f64) {
    let sub = reduced("t.jsonl", text.as_bytes());
    let (model, _, origins) = complete(&sub, &Configuration::default()).expect("there is something to model");
    let miss = miss(&model, &origins);
    (model, miss)
}

#[test]
fn a_sender_that_goes_on_when_the_work_ends_waits_for_it() {
    for (seed, ahead) in [(1, 0.0), (2, 0.0), (3, 0.3), (4, -0.3)] {
        let text = recorded(requests(seed, 3000), ahead, waiting);
        assert_eq!(kinds(&text), [RequestKind::Synchronous], "{seed}");
        assert_eq!((told(&text, "Note"), told(&text, "Warning")), (1, 0), "{seed}");
        let (model, miss) = modelled(&text);
        assert!(miss < 0.1, "{seed}: {miss}");
        let worker = model.tasks.iter().find(|task| &*task.name == "worker").expect("it is there");
        assert_eq!(worker.multiplicity, Multiplicity::Finite(2), "{seed}");
        // 4 ms before the message and 2.5 ms after the work.
        let found = busy(&model, "api");
        assert!((found / (RATE * 0.0065) - 1.0).abs() < 0.1, "{seed}: busy {found}");
    }
}

/// Some give up, some work was not recorded, and there are few of them.
#[test]
fn senders_wait_where_spans_were_lost_and_some_give_up() {
    let text =
        recorded(
            requests(5, 3000),
            0.0,
            |random, own| {
                if random.below(200) == 0 { own.sent + 0.002 } else { waiting(random, own) }
            },
        );
    assert_eq!(told(&text, "Note"), 1);
    let text = recorded(requests(6, 3000), 0.0, waiting);
    let is_kept = |(number, line): &(usize, &str)| !line.contains("\"worker\"") || number * 7919 % 20 != 0;
    let kept: Vec<&str> = text.lines().enumerate().filter(is_kept).map(|(_, line)| line).collect();
    let whole = kept.join("\n");
    assert!(whole.len() < text.len());
    // What stands for lost work may be longer than what was waited for.
    let (waited, all) = requests_of(&whole, RequestKind::Synchronous);
    assert!(all == 3000 && waited * 100 >= all * 99, "{waited} of {all}");
    let found = busy(&modelled(&whole).0, "api");
    assert!((found / (RATE * 0.0065) - 1.0).abs() < 0.1, "busy {found}");
    let few = recorded(requests(7, 60), 0.0, waiting);
    assert_eq!(kinds(&few), [RequestKind::Asynchronous]);
    assert_eq!((told(&few, "Note"), told(&few, "Warning")), (0, 1));
}

/// Work that nobody waits for ends before its sender, and may be longer where that one is.
#[test]
fn a_sender_that_works_on_meanwhile_does_not_wait() {
    type End = fn(&mut Random, Request) -> f64;
    let ends: [(&str, End); 5] = [
        ("long", |random, own| own.done.max(own.sent + 0.3 + exponential(random, 0.03))),
        ("of a fixed time", |_, own| own.sent + 0.4),
        ("short", |random, own| own.sent + exponential(random, 0.003)),
        // Messages of a size that both work on.
        ("twice as long", |_, own| own.sent + 0.005 + 2.0 * (own.done - own.sent)),
        ("long where work is", |random, own| own.done + 0.01 + exponential(random, 4.0 * (own.done - own.begun))),
    ];
    for (name, end) in ends {
        let text = recorded(requests(8, 3000), 0.0, end);
        assert_eq!(kinds(&text), [RequestKind::Asynchronous], "{name}");
        assert_eq!(told(&text, "Note"), 0, "{name}");
    }
}

/// What a sender does beside the work shows that it goes on, and two messages that are sent at once are both waited for.
#[test]
fn what_begins_meanwhile_tells_who_waits() {
    let (mut beside, mut at_once) = (String::new(), String::new());
    for (number, (mut random, own)) in requests(9, 3000).enumerate() {
        let of = |service, kind, id, parent, name, at| Span { service, kind, id, parent, name, at };
        let end = waiting(&mut random, own);
        let process = of("worker", 5, 3, 2, "resize process", (own.begun, own.done));
        let publish = of("api", 4, 2, 1, "resize publish", (own.sent, own.sent + 0.0004));
        let root = of("api", 2, 1, 0, "POST", (own.came, end));
        let read = of("api", 3, 4, 1, "read", (own.sent + 0.0005, own.done));
        operation(&mut beside, number, &[root, publish, process, read]);
        let other = own.sent + 0.0006 + exponential(&mut random, 0.02);
        let last = end + (other - own.done).max(0.0);
        let spans = [
            of("api", 2, 1, 0, "POST", (own.came, last)),
            of("api", 4, 2, 1, "resize publish", (own.sent, own.sent + 0.0002)),
            of("api", 4, 4, 1, "scan publish", (own.sent + 0.0003, own.sent + 0.0004)),
            of("worker", 5, 3, 2, "resize process", (own.begun, own.done)),
            of("scanner", 5, 5, 4, "scan process", (own.sent + 0.0005, other)),
        ];
        operation(&mut at_once, number, &spans);
    }
    assert!(kinds(&beside).contains(&RequestKind::Asynchronous));
    assert_eq!(told(&beside, "Note"), 0);
    assert_eq!(kinds(&at_once), [RequestKind::Synchronous]);
    assert_eq!(told(&at_once, "Note"), 2);
}
