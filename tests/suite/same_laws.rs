//! Laws of SAME: its rules mean what the general evaluator makes of them, and nothing makes it slow or large.

use std::fmt::Write as _;

use dyelog::datalog::eval::{Evaluator, compile};
use dyelog::datalog::syntax;
use dyelog::datalog::value::Value;
use dyelog::lqn::saved;
use dyelog::same::facts::{self, Rows};
use dyelog::same::threads::{Threaded, Threads};
use dyelog::same::walk::Walks;
use dyelog::same::{Options, RecordKind, Same};
use dyelog::trace::{ReadOptions, TraceNames, messages};
use proptest::prelude::*;

use crate::same::analyse;

/// Messages among a hundred tasks, in no order at all.
fn disorder(messages: u64) -> String {
    let mut table = String::from("sender,receiver,time\n");
    let mut state = 1_u64;
    for time in 0..messages {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(table, "T{},T{},{time}", (state >> 33) % 100, (state >> 45) % 100).expect("memory does not fail");
    }
    table
}

#[test]
fn kinds_of_occurrences_have_an_end() {
    const MOST: usize = 1 << 16;
    let (analysis, _, _) = analyse(&[("disorder", &disorder(400_000))], Options::default());
    // What has no entry of its own has one for its task and how it was asked.
    let entries = analysis.submodel.entries().len();
    assert!((MOST..MOST + 400).contains(&entries), "{entries}");
    assert!(analysis.findings.findings.iter().any(|finding| finding.code.0 == "T154"));
    let all: u64 = analysis.submodel.entries().iter().map(|entry| entry.invocations).sum();
    assert!(all > 400_000 / 3, "{all}");
}

/// A forest written down: parent, whether it waits, birth.
struct Written(Vec<(Option<u32>, bool, u64)>);

impl dyelog::same::walk::Facts for Written {
    fn parent(&self, node: u32) -> Option<u32> {
        self.0[node as usize].0
    }

    fn waiting(&self, node: u32) -> bool {
        self.0[node as usize].1
    }

    fn born(&self, node: u32) -> u64 {
        self.0[node as usize].2
    }
}

/// Relations as templates on events may ask them: an occurrence above another one, by one arc or by more.
const RELATIONS: &str = "
    asks(X, Y) :- arc(X, Y), waiting(Y).
    itself(X, Y) :- other(Y, X).
    other(X, Y) :- arc(X, Y), waiting(Y).
    other(X, Y) :- itself(Y, X).
    above(X, Y) :- arc(P, Y), born(P, S), born(X, T), S > T, starts(X, P).
    starts(X, Y) :- arc(X, Y), waiting(Y).
    starts(X, Y) :- above(X, Y).
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn walks_answer_as_the_evaluator_does(nodes in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<bool>()), 1..14)) {
        let forest = Written(nodes.iter().enumerate().map(|(number, (parent, root, waiting))| {
            let parent = (number > 0 && *root > 0).then(|| parent.index(number.max(1)) as u32);
            (parent, *waiting, number as u64 + 1)
        }).collect());
        let program = syntax::load("test", RELATIONS, &|_| None).expect("it can be read");
        let walks = Walks::of(&program).expect("it can be walked");
        let compiled = compile(&program, &facts::schema()).expect("it compiles");
        let count = nodes.len() as u32;
        let rows = Rows::of(&forest, 0..count);
        let mut evaluator = Evaluator::new(&compiled, &rows);
        for name in ["asks", "above", "itself"] {
            let goal = walks.goal(name).expect("it is defined");
            let relation = compiled.relation(name).expect("it is defined");
            for left in 0..count {
                for right in 0..count {
                    let expected = evaluator.holds(relation, &[Value::from(left), Value::from(right)]).expect("within limits");
                    prop_assert_eq!(walks.holds(goal, left, right, &forest), expected, "{}({}, {})", name, left, right);
                }
            }
        }
    }

    /// Every message is explained exactly once, and a sub-model depends on messages only.
    #[test]
    fn every_message_is_part_of_one_interaction(messages in prop::collection::vec((0..5u8, 0..5u8), 0..60)) {
        let mut table = String::from("sender,receiver,time\n");
        for (time, (from, to)) in messages.iter().enumerate() {
            writeln!(table, "T{from},T{to},{time}").expect("memory does not fail");
        }
        let (analysis, _, _) = analyse(&[("random", &table)], Options { records: true, ..Options::default() });
        let explained: usize = analysis.records.iter().map(|record| match record.kind {
            RecordKind::Sync => 2,
            RecordKind::Async => 1,
            RecordKind::Forward => record.via.len() + 2,
        }).sum();
        prop_assert_eq!(explained, messages.len());
        let (again, _, _) = analyse(&[("random", &table)], Options::default());
        prop_assert_eq!(saved::write(&analysis.submodel, "name"), saved::write(&again.submodel, "name"));
    }
}

#[test]
fn rules_that_would_be_searched_for_are_refused() {
    for (rule, why) in [
        ("p(X, Y) :- arc(X, Z), arc(Z, Y).", "searched"),
        ("p(X, Y) :- p(X, Y), arc(X, Y).", "last"),
        ("p(X, X) :- arc(X, X).", "two variables"),
        ("p(X, Y) :- arc(X, Y), cousin(X, Y).", "no relation"),
        ("p(X, Y) :- waiting(X), p(Y, X). p(X, Y) :- waiting(Y), p(Y, X).", "second rule"),
    ] {
        let program = syntax::load("test", rule, &|_| None).expect("it can be read");
        let Err(found) = Walks::of(&program) else { panic!("{rule} was taken") };
        assert_eq!(found.0[0].code.0, "R042");
        assert!(found.0[0].message.contains(why), "{rule}: {}", found.0[0].message);
    }
}

/// Analyses 100,000 messages: a pass that looked back over all of them at each would not end.
fn stream(name: &str, message: impl Fn(u32) -> (String, String), expected: Option<[u64; 3]>) {
    let mut table = String::from("sender,receiver,time\n");
    for number in 0..STREAM {
        let (from, to) = message(number);
        writeln!(table, "{from},{to},{number}").expect("memory does not fail");
    }
    let mut guess = Threads::new(Same::new(Options::default(), Vec::new()), TraceNames::new(), false);
    let open = dyelog::trace::open("stream", table.as_bytes(), &ReadOptions::default()).expect("a table");
    messages::read_all(vec![open.messages().expect("messages")], &mut TraceNames::new(), &mut guess)
        .expect("sound rows");
    let Threaded { sink: same, names, .. } = guess.finish();
    assert_eq!(same.finish(&names).messages, u64::from(STREAM), "{name}, by threads");
    let (analysis, _, _) = analyse(&[("stream", &table)], Options::default());
    match expected {
        Some(expected) => assert_eq!(analysis.counts, expected, "{name}"),
        None => assert!(analysis.counts.iter().sum::<u64>() > 0, "{name}"),
    }
}

/// How many visits it takes to look at in guessing the threads of so many messages between any two of fifty services.
fn steps_of_random_messages(count: u32) -> u64 {
    let mut table = String::from("sender,receiver,time\n");
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for number in 0..count {
        let from = random(50);
        let to = (from + 1 + random(49)) % 50;
        writeln!(table, "S{from},S{to},{number}").expect("memory does not fail");
    }
    let mut guess = Threads::new(Same::new(Options::default(), Vec::new()), TraceNames::new(), false);
    let open = dyelog::trace::open("stream", table.as_bytes(), &ReadOptions::default()).expect("a table");
    messages::read_all(vec![open.messages().expect("messages")], &mut TraceNames::new(), &mut guess)
        .expect("sound rows");
    guess.steps()
}

#[test]
fn guessing_the_threads_of_messages_without_any_order_takes_bounded_work() {
    let [some, twice] = [20_000, 40_000].map(|count| (u64::from(count), steps_of_random_messages(count)));
    for (messages, steps) in [some, twice] {
        eprintln!("{messages} messages: {steps} steps, {} each", steps / messages);
        assert!(steps < 1_000 * messages, "{messages} messages: {steps} steps");
    }
    assert!(twice.1 < 3 * some.1, "{some:?}, {twice:?}");
}

const STREAM: u32 = 40_000;

#[test]
fn adversarial_streams_are_analysed() {
    let all_asynchronous = Some([0, u64::from(STREAM), 0]);
    stream("never a reply", |number| ("A".into(), format!("B{}", number % 7)), all_asynchronous);
    stream("to itself", |_| ("A".into(), "A".into()), all_asynchronous);
    // The last one replies to the first: one interaction of all messages.
    let next = |number: u32| if number == STREAM - 1 { "T0".into() } else { format!("T{}", number + 1) };
    stream("a chain of forwards", |number| (format!("T{number}"), next(number)), Some([0, 0, 1]));
    stream("many live tasks", |number| ("A".into(), format!("T{number}")), all_asynchronous);
    stream("pairs", |number| (format!("C{number}"), format!("S{number}")), all_asynchronous);
    let passed_on = |number: u32| (format!("T{}", number % 3), format!("T{}", (number * 7 + 1) % 5));
    stream("tasks that pass on to each other's queues", passed_on, None);
}

#[test]
fn a_sender_that_goes_with_its_clients_occurrence_goes_once() {
    // What the client sent last asks for no reply, since it goes on at once; then it is answered all the same.
    let head = "2.5 client client( 2): Entry client -- Sending SNR to task server, entry server\n\
                2.5 client client( 2): Computing [0.3]\n\
                2.6 server server( 3): Ready.\n\
                2.6 server server( 3): Start activity Entry server - Ph 1.\n";
    let once = "3.5 server server( 3): Entry server -- Reply sent to task client, entry client\n\
                3.5 server server( 3): Waiting.\n\
                3.5 client client( 2): Entry client -- Reply received from task server, entry server\n";
    let again = "6.5 server server( 3): Entry server -- Reply sent to task client, entry client\n\
                 6.5 client client( 2): Entry client -- Reply received from task server, entry server\n";
    for (text, messages) in [(format!("{head}{once}"), 2), (format!("{head}{once}{again}"), 3)] {
        let run = super::cli::fed(&["matches", "-", "--from", "lqsim", "--format", "csv"], &text);
        assert_eq!(run.code, 0, "{}", run.err);
        assert_eq!(run.out.lines().count(), 1 + messages, "each message is told once: {}", run.out);
    }
}

#[test]
fn a_reply_that_never_comes_is_not_made_up_by_the_next() {
    // A service asks one, then another one; once the first does not answer.
    let mut table = String::from("sender,receiver,time,message\n");
    let mut time = 0;
    let mut row = |from: &str, to: &str, message: &str| {
        time += 1;
        writeln!(table, "{from},{to},{time},{message}").expect("memory does not fail");
    };
    for number in 0..200 {
        row("client", "shop", "buy");
        row("shop", "stock", "take");
        if number != 100 {
            row("stock", "shop", "taken");
        }
        row("shop", "bank", "pay");
        row("bank", "shop", "paid");
        row("shop", "client", "bought");
    }
    let mut guess = Threads::new(Same::new(Options::default(), Vec::new()), TraceNames::new(), false);
    let open = dyelog::trace::open("stream", table.as_bytes(), &ReadOptions::default()).expect("a table");
    messages::read_all(vec![open.messages().expect("messages")], &mut TraceNames::new(), &mut guess)
        .expect("sound rows");
    let Threaded { sink: same, names, .. } = guess.finish();
    assert_eq!(same.finish(&names).counts, [599, 1, 0]);
}
