//! Trees of calls, whose interactions are known, from their messages alone.

use dyelog_same::{Options, Same};
use dyelog_trace::{ReadOptions, TraceNames, messages, open};
use proptest::prelude::*;

/// A call, by the calls that its server makes in turn.
#[derive(Clone, Debug)]
struct Call(Vec<Call>);

fn call() -> impl Strategy<Value = Call> {
    Just(Call(Vec::new())).prop_recursive(4, 40, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Call))
}

/// The messages of sequential calls as a table. Each call has a server of its own.
struct Table {
    text: String,
    servers: usize,
    time: usize,
}

impl Table {
    fn of(calls: &[Call]) -> Self {
        let mut table = Self { text: "sender,receiver,time\n".to_owned(), servers: 0, time: 0 };
        for call in calls {
            table.call("user", call);
        }
        table
    }

    fn call(&mut self, client: &str, call: &Call) {
        self.servers += 1;
        let server = format!("server{}", self.servers);
        self.message(client, &server);
        for inner in &call.0 {
            self.call(&server, inner);
        }
        self.message(&server, client);
    }

    fn message(&mut self, from: &str, to: &str) {
        self.time += 1;
        self.text.push_str(&format!("{from},{to},{}\n", self.time));
    }
}

proptest! {
    #[test]
    fn each_call_of_a_tree_is_a_synchronous_interaction(calls in prop::collection::vec(call(), 1..5)) {
        let table = Table::of(&calls);
        let trace = open("messages.csv", table.text.as_bytes(), &ReadOptions::default()).expect("it is a trace");
        let mut names = TraceNames::new();
        let mut same = Same::new(Options::default(), vec!["messages.csv".into()]);
        messages::read_all(vec![trace.messages().expect("of messages")], &mut names, &mut same).expect("it is read");
        let analysis = same.finish(&names);
        prop_assert_eq!(analysis.messages, 2 * table.servers as u64);
        prop_assert_eq!(analysis.counts, [table.servers as u64, 0, 0]);
    }
}
