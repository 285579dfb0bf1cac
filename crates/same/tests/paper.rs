//! The algorithm of the 2005 paper (§4.3, part B), written as the paper says it, against the templates of `rules/same.dl`.

use std::sync::Arc;

use dyelog_same::{Options, RecordKind, Rules, Same, rules};
use dyelog_trace::{ReadOptions, TraceNames, messages, open};
use proptest::prelude::*;

/// A node of a tree: an execution occurrence.
#[derive(Debug)]
struct Node {
    task: u8,
    number: u32,
    live: bool,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// `kind client server via`, occurrences as `task.number`.
type Row = String;

/// Step after step, with searches through all nodes.
#[derive(Debug, Default)]
struct Paper {
    nodes: Vec<Node>,
    numbers: [u32; 16],
    records: Vec<Row>,
}

impl Paper {
    fn name(&self, node: usize) -> String {
        format!("T{}.{}", self.nodes[node].task, self.nodes[node].number)
    }

    fn live(&self, task: u8) -> Option<usize> {
        self.nodes.iter().position(|node| node.live && node.task == task)
    }

    fn new_node(&mut self, task: u8) -> usize {
        if let Some(old) = self.live(task) {
            self.nodes[old].live = false;
        }
        self.numbers[usize::from(task)] += 1;
        let number = self.numbers[usize::from(task)];
        self.nodes.push(Node { task, number, live: true, parent: None, children: Vec::new() });
        self.nodes.len() - 1
    }

    fn cut(&mut self, child: usize) {
        if let Some(parent) = self.nodes[child].parent.take() {
            self.nodes[parent].children.retain(|other| *other != child);
        }
    }

    fn asynchronous(&mut self, parent: usize, child: usize) {
        self.records.push(format!("async {} {} ", self.name(parent), self.name(child)));
        self.cut(child);
    }

    fn message(&mut self, from: u8, to: u8) {
        let sender = self.live(from).unwrap_or_else(|| self.new_node(from));
        let mut path = vec![sender];
        while let Some(parent) = self.nodes[path[path.len() - 1]].parent {
            path.push(parent);
        }
        let client = self.live(to).filter(|client| *client != sender);
        match client.and_then(|client| path.iter().position(|node| *node == client)) {
            Some(place) => {
                path.truncate(place + 1);
                path.reverse();
                let via: Vec<String> = path[1..place].iter().map(|node| self.name(*node)).collect();
                let kind = if place == 1 { "sync" } else { "forward" };
                self.records.push(format!("{kind} {} {} {}", self.name(path[0]), self.name(sender), via.join(">")));
                for &node in &path[1..] {
                    self.nodes[node].live = false;
                    self.cut(node);
                }
                self.clean();
                // A node that this has isolated.
                let client = &mut self.nodes[path[0]];
                client.live &= client.parent.is_some() || !client.children.is_empty();
            }
            None => {
                let receiver = self.new_node(to);
                self.nodes[receiver].parent = Some(sender);
                self.nodes[sender].children.push(receiver);
            }
        }
        self.clean();
    }

    /// Step 3, until there is nothing to clean up. What the receiver has left is cleaned up before what the sender has given up: leaves
    /// go first.
    fn clean(&mut self) {
        while self.clean_one() {}
    }

    fn clean_one(&mut self) -> bool {
        let leaf = self.nodes.iter().position(|node| !node.live && node.parent.is_some() && node.children.is_empty());
        if let Some((leaf, parent)) = leaf.and_then(|leaf| Some((leaf, self.nodes[leaf].parent?))) {
            self.asynchronous(parent, leaf);
            return true;
        }
        let is_improper = |node: &Node| node.parent.is_none() && node.children.len() > usize::from(node.live);
        let Some(root) = self.nodes.iter().position(is_improper) else { return false };
        self.asynchronous(root, self.nodes[root].children[0]);
        true
    }

    /// The trace ends: what is left is asynchronous.
    fn finish(mut self) -> Vec<Row> {
        for node in 0..self.nodes.len() {
            if let Some(parent) = self.nodes[node].parent {
                self.asynchronous(parent, node);
            }
        }
        self.records.sort();
        self.records
    }
}

fn table(stream: &[(u8, u8)]) -> String {
    let row = |(time, (from, to)): (usize, &(u8, u8))| format!("T{from},T{to},{time}\n");
    std::iter::once("sender,receiver,time\n".to_owned()).chain(stream.iter().enumerate().map(row)).collect()
}

/// What rules make of a stream.
fn records(rules: Arc<Rules>, stream: &[(u8, u8)]) -> Vec<Row> {
    let text = table(stream);
    let trace = open("messages.csv", text.as_bytes(), &ReadOptions::default()).expect("it is a trace");
    let mut names = TraceNames::new();
    let options = Options { records: true, ..Options::default() };
    let mut same = Same::with(rules, options, vec!["messages.csv".into()]);
    messages::read_all(vec![trace.messages().expect("of messages")], &mut names, &mut same).expect("it is read");
    let analysis = same.finish(&names);
    let name = |one: &dyelog_same::Occurrence| format!("{}.{}", names.task_name(one.task), one.number);
    let mut rows: Vec<Row> = analysis
        .records
        .iter()
        .map(|record| {
            let via: Vec<String> = record.via.iter().map(name).collect();
            let kind = match record.kind {
                RecordKind::Sync => "sync",
                RecordKind::Async => "async",
                RecordKind::Forward => "forward",
            };
            format!("{kind} {} {} {}", name(&record.client), name(&record.server), via.join(">"))
        })
        .collect();
    rows.sort();
    rows
}

fn of_paper(stream: &[(u8, u8)]) -> Vec<Row> {
    let mut paper = Paper::default();
    for (from, to) in stream {
        paper.message(*from, *to);
    }
    paper.finish()
}

/// Rules of a user's file.
fn loaded(text: &str) -> Arc<Rules> {
    let loaded = rules::load(&[("own.dl".into(), text.into())], &|_| None);
    Arc::new(loaded.rules.unwrap_or_else(|| panic!("{:?}", loaded.findings)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_rules_say_what_the_paper_says(stream in prop::collection::vec((0..6u8, 0..6u8), 0..80)) {
        prop_assert_eq!(records(Rules::shipped(), &stream), of_paper(&stream));
    }

    /// Messages that are likely to be replies, or to pass a request on.
    #[test]
    fn the_rules_say_what_the_paper_says_of_calls(steps in prop::collection::vec((0..4usize, 0..7u8, 0..10u8), 0..120)) {
        let mut chains = [vec![0_u8], vec![1], vec![2], vec![3]];
        let mut stream = Vec::new();
        for (chain, to, what) in steps {
            let chain = &mut chains[chain];
            let from = chain[chain.len() - 1];
            let up = match what { 0..5 => 1, 5..7 => 2, _ => 0 };
            if up > 0 && chain.len() > up {
                chain.truncate(chain.len() - up);
            } else {
                chain.push(to);
            }
            stream.push((from, chain[chain.len() - 1]));
        }
        prop_assert_eq!(records(Rules::shipped(), &stream), of_paper(&stream));
    }

    /// Rules that retire from the end of a path, and rules that never clean up, still end and tell each message once at most.
    #[test]
    fn other_rules_end(stream in prop::collection::vec((0..5u8, 0..5u8), 0..60)) {
        let backwards = rules::SHIPPED.replace("P[2..n]", "P[n..2]");
        prop_assert_eq!(records(loaded(&backwards), &stream), of_paper(&stream));
        let never: String = rules::SHIPPED.split("/// Step 3").next().expect("there is a beginning").to_owned();
        prop_assert!(records(loaded(&never), &stream).len() <= stream.len());
    }
}

/// A client that asks several times before it gets replies, which come in the order of the requests.
const IN_ORDER: &str = "
/// The reply to the request that waits longest.
template sync_in_order {
  order 1
  on message(U, B)
  match {
    A = task(U)
    W = live(B)
    V = first(W, A)
  }
  where { waiting(V) }
  model { sync(W, V) }
  retire { arc(W, V)  live(V) }
}

template request {
  order 2
  on message(U, B)
  assert { V = live(B)  arc(U, V) }
}
";

#[test]
fn replies_may_be_matched_first_in_first_out() {
    let stream = [(0, 1), (0, 1), (0, 1), (1, 0), (1, 0), (1, 0)];
    assert_eq!(records(loaded(IN_ORDER), &stream), ["sync T0.1 T1.1 ", "sync T0.1 T1.2 ", "sync T0.1 T1.3 "]);
    // The paper takes tasks that send again for such as do not wait.
    assert_eq!(of_paper(&stream).iter().filter(|row| row.starts_with("sync")).count(), 1);
}

#[test]
fn a_message_by_its_name_may_be_what_one_likes() {
    let text = r#"
        use "same.dl"
        template heartbeat { order 0 on message(_, _, M) where { M = "ping" } }
        template notice { order 0 on message(U, B, M) where { M = "note" } assert { V = live(B) } model { async(U, V) } }
    "#;
    let rules = loaded(text);
    let table = "sender,receiver,time,message\na,b,1,ask\nb,a,2,ping\nb,c,3,note\nb,a,4,answer\n";
    let trace = open("messages.csv", table.as_bytes(), &ReadOptions::default()).expect("it is a trace");
    let mut names = TraceNames::new();
    let mut same = Same::with(rules, Options::default(), vec!["messages.csv".into()]);
    messages::read_all(vec![trace.messages().expect("of messages")], &mut names, &mut same).expect("it is read");
    let analysis = same.finish(&names);
    assert_eq!(analysis.counts, [1, 1, 0]);
    let fired: Vec<(&str, u64)> = analysis.templates.iter().map(|one| (&*one.name, one.times)).collect();
    assert!(fired.starts_with(&[("heartbeat", 1), ("notice", 1)]), "{fired:?}");
}

#[test]
fn templates_ask_relations_of_their_file() {
    // Nobody passes a request on: what looks like that is left out.
    let text = format!(
        "use \"same.dl\"\n{}\nby(X, Y) :- arc(P, Y), above(X, P).\nabove(X, Y) :- arc(X, Y), waiting(Y).\n",
        "template never { order 0 on message(U, B) match { W = live(B) path P[1..n] from W to U } where { by(W, U), n = 3 } }"
    );
    let stream = [(0, 1), (1, 2), (2, 0), (2, 1), (1, 0)];
    assert_eq!(records(loaded(&text), &stream), ["sync T0.1 T1.1 ", "sync T1.1 T2.1 "]);
    assert_ne!(records(Rules::shipped(), &stream), records(loaded(&text), &stream));
}
