//! Whatever way spans come in, and wherever the server dies on the way: each counts once.

use dyelog::lqn::saved;
use dyelog_server::journal::medium::{Handle as _, Medium as _, Memory};
use dyelog_server::journal::{Journal, Kind, Record};
use dyelog_server::store::Store;
use dyelog_server::worker::{Worker, Working};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::home::Home;
use crate::support::{BEGIN, Recorded, SECOND, of_file, request, trace};

/// A server without its network, which can be killed.
struct Server {
    home: Home,
    memory: Memory,
    journal: Journal<Memory>,
    store: Store,
    worker: Worker<Memory>,
    now: u64,
}

impl Server {
    fn new() -> Self {
        Self::at(Home::file())
    }

    fn at(home: Home) -> Self {
        let memory = Memory::default();
        let store = home.open();
        let journal = Journal::open(memory.clone(), 0).unwrap();
        let worker = Worker::new(Working::default(), memory.clone(), &store).unwrap();
        Self { home, memory, journal, store, worker, now: BEGIN }
    }

    fn receive(&mut self, payload: Vec<u8>) {
        self.journal.append(&[Record { kind: Kind::Traces, received: self.now, payload: payload.into() }]).unwrap();
    }

    fn work(&mut self) {
        while self.worker.step(self.journal.end()).unwrap() {}
        self.worker.advance(self.now);
        assert!(self.worker.counts().are_conserved(), "{:?}", self.worker.counts());
    }

    fn checkpoint(&mut self) {
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

    fn start_again(&mut self) {
        self.store = self.home.open();
        let floor = self.store.progress().unwrap().position;
        self.journal = Journal::open(self.memory.clone(), floor).unwrap();
        self.worker = Worker::new(Working::default(), self.memory.clone(), &self.store).unwrap();
        assert!(self.worker.counts().are_conserved(), "{:?}", self.worker.counts());
    }

    fn finish(&mut self) {
        self.work();
        self.now += 40 * SECOND;
        self.work();
        self.checkpoint();
    }

    fn period(&self, from: u64, to: u64) -> Option<String> {
        let (submodel, merge) = self.store.period(from, to).unwrap()?;
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

fn traces() -> impl Strategy<Value = Vec<Recorded>> {
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
        spans in traces().prop_shuffle(), lost in prop_oneof![2 => Just(0_usize), 1 => 1..3_usize], steps in proptest::collection::vec(step(), 1..60)
    ) {
        law(Server::new(), &spans, lost, steps)?;
    }
}

/// Whatever happens to a server, its model is that of the same spans in a file.
fn law(mut server: Server, spans: &[Recorded], lost: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let delivered = &spans[lost.min(spans.len() - 1)..];
    let mut left = delivered;
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
    let counts = server.worker.counts();
    prop_assert_eq!((counts.received, counts.folded, counts.open), (sent, delivered.len() as u64, 0));
    // The other half of a call, where it is missing, is guessed from the traces that are folded together.
    if delivered.len() == spans.len() {
        prop_assert_eq!(server.period(0, u64::MAX).unwrap(), of_file(delivered));
    }
    server.die(b"");
    prop_assert_eq!(server.worker.counts(), counts);
    Ok(())
}

/// The same law of stores elsewhere.
pub fn it_holds_in(homes: impl Fn() -> Home, cases: u32) {
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) });
    let cases = (traces().prop_shuffle(), 0..3_usize, proptest::collection::vec(step(), 1..60));
    runner.run(&cases, |(spans, lost, steps)| law(Server::at(homes()), &spans, lost, steps)).unwrap();
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
