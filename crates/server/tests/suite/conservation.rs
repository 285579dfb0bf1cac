//! Whatever way spans come in, and wherever the server dies on the way: each counts once.

use std::collections::BTreeMap;

use dyelog::lqn::saved;
use dyelog::lqn::submodel::{EntryTotal, Interaction, SubModel};
use dyelog_server::aside::Why;
use dyelog_server::journal::medium::{Handle as _, Medium as _, Memory};
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::period::Period;
use dyelog_server::recorded;
use dyelog_server::store::Store;
use dyelog_server::worker::{Worker, Working};
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::home::Home;
use crate::support::{BEGIN, Recorded, SECOND, of_file, request, trace};

/// A server without its network, which can be killed.
pub struct Server {
    pub home: Home,
    memory: Memory,
    journal: Journal<Memory>,
    pub store: Store,
    pub worker: Worker<Memory>,
    pub now: u64,
}

impl Server {
    pub fn new() -> Self {
        Self::at(Home::file())
    }

    fn at(home: Home) -> Self {
        let memory = Memory::default();
        let store = home.open();
        let journal = Journal::open(memory.clone(), 0).unwrap();
        let worker = Worker::new(Working::default(), memory.clone(), &store).unwrap();
        Self { home, memory, journal, store, worker, now: BEGIN }
    }

    pub fn receive(&mut self, payload: Vec<u8>) {
        self.journal.append(&[Record { kind: Kind::Traces, received: self.now, payload: payload.into() }]).unwrap();
    }

    pub fn work(&mut self) {
        while self.worker.step(self.journal.end()).unwrap() {}
        self.worker.advance(self.now);
        assert!(self.worker.counts().are_conserved(), "{:?}", self.worker.counts());
    }

    pub fn checkpoint(&mut self) {
        let needed = self.worker.checkpoint(&mut self.store).unwrap();
        self.journal.forget_before(needed).unwrap();
    }

    /// Dies in the middle of a write, with whatever was not committed, and starts again.
    fn die(&mut self, torn: &[u8]) {
        let last = self.memory.segments().unwrap().pop().unwrap();
        let mut handle = self.memory.open(last).unwrap();
        handle.append(torn).unwrap();
        handle.sync().unwrap();
        self.start_again();
    }

    pub fn start_again(&mut self) {
        self.store = self.home.open();
        let floor = self.store.progress().unwrap().position;
        self.journal = Journal::open(self.memory.clone(), floor).unwrap();
        self.worker = Worker::new(Working::default(), self.memory.clone(), &self.store).unwrap();
        assert!(self.worker.counts().are_conserved(), "{:?}", self.worker.counts());
    }

    pub fn finish(&mut self) {
        self.work();
        self.now += 40 * SECOND;
        self.work();
        self.checkpoint();
    }

    /// What operations of a period make of it, whenever they were taken in.
    pub fn period(&self, from: u64, to: u64) -> Option<String> {
        let (mut submodel, merge) = self.store.period(from, to).unwrap()?;
        submodel.observed.clear();
        Some(saved::write(&submodel, &merge))
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// So many of the spans that are left are sent, and arrive so many times.
    Send { spans: usize, times: usize },
    /// The journal is read.
    Work,
    /// A checkpoint is written.
    Checkpoint,
    /// The server dies, with part of a record at the end of its journal.
    Die(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..12_usize, 1..3_usize).prop_map(|(spans, times)| Step::Send { spans, times }),
        2 => Just(Step::Work),
        1 => Just(Step::Checkpoint),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Step::Die),
    ]
}

pub fn traces() -> impl Strategy<Value = Vec<Recorded>> {
    let one = (0..35_u64, proptest::collection::vec(1..40_u64, 0..4));
    proptest::collection::vec(one, 1..12).prop_map(|traces| {
        let numbered = traces.iter().enumerate();
        numbered.flat_map(|(number, (at, calls))| trace(number as u64, BEGIN + at * SECOND, calls)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_model_is_that_of_the_same_spans_in_a_file(
        spans in traces().prop_shuffle(), missing in missing(), steps in proptest::collection::vec(step(), 1..60)
    ) {
        law(Server::new(), &spans, missing, steps)?;
    }
}

#[test]
fn spans_that_end_before_they_begin_or_years_later_are_set_aside() {
    let mut server = Server::new();
    let mut spans: Vec<Recorded> = (0..4).flat_map(|number| trace(number, BEGIN + number * SECOND, &[2])).collect();
    let begin = spans[0].1.start_time_unix_nano;
    spans[0].1.end_time_unix_nano = 0;
    spans[3].1.end_time_unix_nano = begin - 1;
    spans[6].1.end_time_unix_nano = begin + 3650 * 24 * 3600 * SECOND;
    spans[9].1.end_time_unix_nano = spans[9].1.start_time_unix_nano;
    server.receive(request(&spans));
    server.finish();
    let counts = server.worker.counts();
    assert_eq!((counts.received, counts.set_aside, counts.folded), (12, 3, 9));
}

/// A period tells what was set aside of it, and why, however old it is.
#[test]
fn a_period_tells_what_was_set_aside_of_it() {
    let mut server = Server::new();
    let minute = 60 * SECOND;
    let mut spans: Vec<Recorded> = (0..4).flat_map(|number| trace(number, BEGIN + number * minute, &[2])).collect();
    // Of the second minute one ends before it begins, of the third one in ten years; when one of the fourth began is not known.
    spans[3].1.end_time_unix_nano = spans[3].1.start_time_unix_nano - 1;
    spans[6].1.end_time_unix_nano = BEGIN + 3650 * 24 * 3600 * SECOND;
    spans[9].1.start_time_unix_nano = 7;
    server.receive(request(&spans));
    server.finish();
    let told = |store: &Store, from: u64, to: u64| {
        let period = Period { from: BEGIN + from * minute, to: BEGIN + to * minute };
        recorded::Recorded::of(store, period).unwrap().expect("there is something").missing
    };
    let of = |missing: &[String], words: &str| missing.iter().filter(|own| own.contains(words)).count();
    let backwards = "warning[T107]: 1 span of this period were set aside";
    for (from, to, wanted) in [(0, 1, [0, 0]), (1, 2, [1, 0]), (2, 3, [0, 1]), (0, 4, [1, 1])] {
        let missing = told(&server.store, from, to);
        let found = [backwards, "end more than a day after they came"].map(|words| of(&missing, words));
        assert_eq!(found, wanted, "{from} {to}: {missing:?}");
    }
    let came = recorded::Recorded::of(&server.store, Period { from: 0, to: u64::MAX }).unwrap().unwrap().missing;
    assert_eq!(of(&came, "of unknown time, they came in this period"), 1, "{came:?}");
    // They grow old with their intervals, and go with them.
    let now = BEGIN + 3 * 3600 * SECOND;
    while server.store.roll_up(now, 24 * 3600 * SECOND).unwrap() {}
    assert_eq!(of(&told(&server.store, 1, 2), backwards), 1);
    server.store.delete(BEGIN, BEGIN + 24 * 3600 * SECOND).unwrap();
    assert!(!server.store.set_aside(BEGIN, BEGIN + 3600 * SECOND).unwrap().contains_key(&Why::Backwards));
    while server.store.roll_up(now + 3 * 24 * 3600 * SECOND, 24 * 3600 * SECOND).unwrap() {}
    assert!(server.store.set_aside(0, u64::MAX).unwrap().is_empty());
}

#[test]
fn spans_that_were_open_when_their_journal_went_are_set_aside() {
    let mut server = Server::new();
    server.receive(request(&trace(0, BEGIN, &[2])[..2]));
    server.work();
    server.checkpoint();
    assert_eq!(server.worker.counts().open, 2);
    let floor = server.store.progress().unwrap().position;
    let memory = Memory::default();
    server.journal = Journal::open(memory.clone(), floor).unwrap();
    server.worker = Worker::new(Working::default(), memory, &server.store).unwrap();
    assert_eq!(server.worker.lost(), 2);
    server.receive(request(&trace(1, BEGIN, &[2])));
    server.finish();
    let counts = server.worker.counts();
    assert_eq!((counts.received, counts.set_aside, counts.folded), (5, 2, 3));
    // What the store has not read cannot be passed over.
    let memory = Memory::default();
    Journal::open(memory.clone(), 1 << 20).unwrap();
    let refused = Worker::new(Working::default(), memory, &server.store).err().expect("it is refused").to_string();
    assert!(
        refused.contains("the journal is damaged: it begins at 1048576, but the store read it only up to"),
        "{refused}"
    );
}

/// How many spans never come, and how many come an hour late.
fn missing() -> impl Strategy<Value = (usize, usize)> {
    let some = || prop_oneof![2 => Just(0_usize), 2 => 1..6_usize];
    (some(), some())
}

/// The model of spans in files, one for each interval: what is known of an interval is what its own spans tell.
fn of_files(spans: &[Recorded]) -> String {
    let mut begins: BTreeMap<Vec<u8>, (bool, u64)> = BTreeMap::new();
    for (_, span) in spans {
        let root = span.parent_span_id.is_empty();
        let start = (!root, span.start_time_unix_nano);
        let known = begins.entry(span.trace_id.clone()).or_insert(start);
        *known = start.min(*known);
    }
    let mut intervals: BTreeMap<u64, Vec<Recorded>> = BTreeMap::new();
    for recorded in spans {
        let (_, start) = begins[&recorded.1.trace_id];
        intervals.entry(start - start % (10 * SECOND)).or_default().push(recorded.clone());
    }
    let mut sum: Option<(SubModel, String)> = None;
    for spans in intervals.values() {
        let (submodel, merge) = saved::parse(&"test".into(), &of_file(spans)).expect("it was just made");
        match &mut sum {
            None => sum = Some((submodel, merge)),
            Some((own, _)) => own.merge(&submodel),
        }
    }
    let (submodel, merge) = sum.expect("there are spans");
    saved::write(&submodel, &merge)
}

/// What holds of spans that come late, whichever they are, wherever the server died and whatever else was lost: an operation is counted with its
/// root, at its time and with its response time, and an entry with its own spans.
///
/// How long a caller worked is another matter: a call that came late looked like work when the caller was folded, and a sub-model is a sum. And
/// who called an entry is known only where both sides of such a call were remembered, which they are not beyond the end of the server. So
/// entries that were made up, and operations without a beginning, may be there beside those that are checked here. Of halves that come whole, one
/// process late, [`crate::late`] has more.
fn each_span_counts_once(period: &str, delivered: &[Recorded]) -> Result<(), TestCaseError> {
    let (sub, _) = saved::parse(&"test".into(), period).expect("it was just written");
    for (scenario, name) in [("shop browse", "browse"), ("shop order", "order")] {
        let roots: Vec<_> = delivered.iter().map(|(_, span)| span).filter(|span| span.name == name).collect();
        let total = sub.scenarios.iter().find(|(own, _)| sub.names.text(**own) == scenario).map(|(_, total)| total);
        let whole = total.map_or(0, |total| total.operations - total.fragments);
        prop_assert_eq!(whole, roots.len() as u64, "{}", scenario);
        if let Some(total) = total.filter(|total| total.fragments == 0) {
            let nanoseconds = |span: &&Span| i128::from(span.end_time_unix_nano - span.start_time_unix_nano);
            let times = roots.iter().map(nanoseconds).sum::<i128>() * 1_000_000;
            prop_assert_eq!((total.response.count, total.response.sum.0), (whole, times), "{}", scenario);
            let operations: u64 = total.starts.cells().iter().map(|cell| cell.operations).sum();
            prop_assert_eq!(operations, whole, "{}", scenario);
        }
    }
    for (task, service) in [("shop", "browse"), ("shop", "order"), ("stock", "find"), ("prices", "find")] {
        let spans = delivered.iter().filter(|(own, span)| *own == task && span.name == service);
        let is_it = |entry: &&EntryTotal| {
            entry.interaction != Interaction::Customer
                && (sub.names.text(entry.task), sub.names.text(entry.service)) == (task, service)
        };
        let recorded = sub.entries().iter().filter(is_it).map(|entry| entry.invocations - entry.inferred).sum::<u64>();
        prop_assert_eq!(recorded, spans.clone().count() as u64, "{} of {}", service, task);
        // These call nobody: all their time is work.
        if service == "find" {
            let own = sub.entries().iter().filter(is_it).flat_map(|entry| entry.work.values());
            let worked: i128 = own.map(|work| work.exclusive.sum.0).sum();
            let nanoseconds = |(_, span): &Recorded| i128::from(span.end_time_unix_nano - span.start_time_unix_nano);
            prop_assert_eq!(worked, spans.map(nanoseconds).sum::<i128>() * 1_000_000, "{} of {}", service, task);
        }
    }
    Ok(())
}

/// Whatever happens to a server, its model is that of the same spans in a file.
fn law(
    mut server: Server,
    spans: &[Recorded],
    (lost, late): (usize, usize),
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let delivered = &spans[lost.min(spans.len() - 1)..];
    let (in_time, late) = delivered.split_at(delivered.len() - late.min(delivered.len() - 1));
    let mut left = in_time;
    let mut sent = 0;
    for step in steps {
        // All of it is within the grace.
        server.now += 10_000_000;
        match step {
            Step::Send { spans, times } => {
                let (now, later) = left.split_at(spans.min(left.len()));
                left = later;
                for _ in 0..times {
                    server.receive(request(now));
                    sent += now.len() as u64;
                }
            }
            Step::Work => server.work(),
            Step::Checkpoint => {
                server.work();
                server.checkpoint();
            }
            Step::Die(torn) => server.die(&torn),
        }
    }
    server.receive(request(left));
    sent += left.len() as u64;
    server.finish();
    if !late.is_empty() {
        server.now += 3600 * SECOND;
        server.receive(request(late));
        // And once more: that changes nothing.
        server.receive(request(late));
        sent += 2 * late.len() as u64;
        server.finish();
    }
    let counts = server.worker.counts();
    prop_assert_eq!((counts.received, counts.folded, counts.open), (sent, delivered.len() as u64, 0));
    let period = server.period(0, u64::MAX).expect("it has spans");
    if late.is_empty() {
        prop_assert_eq!(&period, &of_files(in_time));
    } else {
        each_span_counts_once(&period, delivered)?;
    }
    // What is missing is guessed from what lies in the same interval; where nothing is, all intervals together come to the same.
    if delivered.len() == spans.len() && late.is_empty() {
        prop_assert_eq!(period, of_file(delivered));
    }
    server.die(b"");
    prop_assert_eq!(server.worker.counts(), counts);
    Ok(())
}

/// The same law of stores elsewhere.
pub fn it_holds_in(homes: impl Fn() -> Home, cases: u32) {
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) });
    let cases = (traces().prop_shuffle(), missing(), proptest::collection::vec(step(), 1..60));
    runner
        .run(&cases, |(spans, missing, steps)| law(Server::at(homes()), &spans, missing, steps))
        .expect("the law holds");
}

/// SDKs send what they have every five seconds, each process at a time of its own: what it called may come so much after an operation.
#[test]
fn spans_of_another_process_come_five_seconds_later() {
    let mut server = Server::new();
    let spans: Vec<Recorded> = (0..20).flat_map(|number| trace(number, BEGIN + number * SECOND / 4, &[3, 5])).collect();
    let (first, later): (Vec<_>, Vec<_>) = spans.iter().cloned().partition(|(service, _)| *service == "shop");
    server.receive(request(&first));
    for _ in 0..10 {
        server.now += SECOND / 2;
        server.work();
        server.checkpoint();
    }
    server.receive(request(&later));
    server.finish();
    assert_eq!(server.period(0, u64::MAX).expect("it has spans"), of_file(&spans));
}

#[test]
fn each_interval_has_the_model_of_its_own_traces() {
    each_interval_has_the_model_of_its_own_traces_in(Home::file());
}

pub fn each_interval_has_the_model_of_its_own_traces_in(home: Home) {
    let mut server = Server::at(home);
    let minute = |number: u64| -> Vec<Recorded> {
        (0..6).flat_map(|at| trace(10 * number + at, BEGIN + (number * 60 + at * 9) * SECOND, &[3, 5 + at])).collect()
    };
    // The later one comes first, and the earlier one an hour late.
    server.receive(request(&minute(1)));
    server.work();
    server.now += 3600 * SECOND;
    server.receive(request(&minute(0)));
    server.finish();
    for number in [0, 1] {
        let from = BEGIN + number * 60 * SECOND;
        assert_eq!(server.period(from, from + 60 * SECOND).unwrap(), of_file(&minute(number)));
    }
    assert_eq!(server.period(BEGIN + 200 * SECOND, u64::MAX), None);
}

#[test]
fn a_thousand_power_cuts_lose_nothing_that_was_acknowledged() {
    let mut server = Server::new();
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut acknowledged, mut number) = (0, 0);
    for _ in 0..1000 {
        for _ in 0..random(4) {
            server.now += SECOND / 10;
            server.receive(request(&trace(number, server.now, &[1 + random(20)])));
            (acknowledged, number) = (acknowledged + 3, number + 1);
            match random(4) {
                0 => server.work(),
                1 => {
                    server.work();
                    server.checkpoint();
                }
                _ => {}
            }
        }
        // A request that is not synced, and so not acknowledged, is partly there, and spoilt in part.
        let mut bytes = request(&trace(1 << 40, server.now, &[3]));
        bytes.truncate(random(200) as usize);
        let last = server.memory.segments().unwrap().pop().unwrap();
        server.memory.open(last).unwrap().append(&bytes).unwrap();
        server.memory.cut_power(random(200) as usize, random(50) as usize);
        server.start_again();
    }
    server.finish();
    let counts = server.worker.counts();
    assert_eq!((counts.received, counts.folded, counts.duplicate, counts.open), (acknowledged, acknowledged, 0, 0));
}

/// The clock of a machine may be years ahead until the network sets it right.
#[test]
fn a_clock_that_was_years_ahead_holds_nothing_up() {
    let mut server = Server::new();
    let year = 365 * 24 * 3600 * SECOND;
    let right = server.now;
    server.now += 5 * year;
    let spans = |number: u64, start: u64| request(&trace(number, start, &[2]));
    server.receive(spans(1, right));
    server.work();
    server.now += 8 * SECOND;
    server.work();
    server.checkpoint();
    server.receive(spans(2, right + 10 * SECOND));
    server.work();
    // It comes back, with a trace that is still open; and the server starts again.
    server.start_again();
    server.now = right + 20 * SECOND;
    server.receive(spans(3, right + 20 * SECOND));
    server.receive(spans(4, right + 3 * year));
    server.work();
    server.now += 3 * SECOND;
    server.work();
    assert!(server.worker.is_due());
    server.finish();
    let counts = server.worker.counts();
    assert_eq!((counts.folded, counts.set_aside, counts.open, counts.set_back), (9, 3, 0, 1));
    assert_eq!(counts.set_back_at.map(|(at, _)| at), Some(right + 20 * SECOND));
    assert_eq!(server.store.progress().unwrap().clock, server.now);
    // What was written meanwhile grows old.
    let later = server.now + 2 * 3600 * SECOND;
    while server.store.roll_up(later, year).unwrap() {}
    let intervals = server.store.intervals(0, u64::MAX).unwrap();
    assert_eq!(intervals.iter().map(|own| (own.length / SECOND, own.spans)).collect::<Vec<_>>(), [(60, 9)]);
}
