//! Random programs that write the records of their run and know what they spent.

use std::collections::BTreeMap;

use proptest::prelude::*;

/// What a function does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Spends time.
    Work(u16),
    /// Calls a function, in one of four kinds.
    Call(CallKind, u8, Vec<Step>),
    /// Starts a thread.
    Spawn(Vec<Step>),
}

/// How a function is called.
#[derive(Clone, Copy, Debug)]
pub enum CallKind {
    /// And waited for, in another thread.
    Remote,
    /// The same, with a chain of its own for the skeleton.
    Split,
    /// Not waited for.
    OneWay,
    /// In the same thread.
    Collocated,
}

/// Roots of chains, and what sets their names apart.
#[derive(Clone, Debug)]
pub struct Program {
    roots: Vec<Vec<Step>>,
    prefix: &'static str,
}

/// What a node spent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub invocations: u64,
    pub own: i64,
    pub descendent: i64,
    pub inclusive_once: i64,
}

/// What a program knows of itself, by function and whether it is the threads of it.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub nodes: BTreeMap<(String, bool), Known>,
}

impl Truth {
    pub fn total(&self) -> i64 {
        self.nodes.values().map(|known| known.own).sum()
    }
}

pub fn any() -> impl Strategy<Value = Program> {
    let leaf = (0..500u16).prop_map(Step::Work);
    let step = leaf.prop_recursive(5, 24, 4, |inner| {
        let kind = prop::sample::select(vec![CallKind::Remote, CallKind::Split, CallKind::OneWay, CallKind::Collocated]);
        prop_oneof![
            1 => (0..500u16).prop_map(Step::Work),
            4 => (kind, 0..4u8, prop::collection::vec(inner.clone(), 0..4)).prop_map(|(kind, f, body)| Step::Call(kind, f, body)),
            1 => prop::collection::vec(inner, 0..3).prop_map(Step::Spawn),
        ]
    });
    let call =
        (prop::collection::vec(step, 1..4), 0..4u8).prop_map(|(body, f)| vec![Step::Call(CallKind::Remote, f, body)]);
    prop::collection::vec(call, 1..3).prop_map(|roots| Program { roots, prefix: "" })
}

impl Program {
    pub fn named(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// The records of its run, and the truth.
    pub fn run(&self) -> (Vec<String>, Truth) {
        let mut run = Run { lines: Vec::new(), truth: Truth::default(), prefix: self.prefix, threads: 0, chains: 0 };
        for (number, root) in self.roots.iter().enumerate() {
            let mut chain = Chain { name: format!("{}root{number}", self.prefix), event: 0 };
            let mut thread = Thread { number: 0, cpu: 1000 };
            run.body(root, None, &mut chain, &mut thread, &mut Vec::new());
        }
        (run.lines, run.truth)
    }
}

struct Chain {
    name: String,
    event: u32,
}

struct Thread {
    number: u32,
    cpu: i64,
}

struct Run {
    lines: Vec<String>,
    truth: Truth,
    prefix: &'static str,
    threads: u32,
    chains: u32,
}

type Node = (String, bool);

impl Run {
    /// Runs steps; gives what they spent themselves, and what they called.
    fn body(
        &mut self,
        steps: &[Step],
        owner: Option<&str>,
        chain: &mut Chain,
        thread: &mut Thread,
        open: &mut Vec<Node>,
    ) -> (i64, i64) {
        let (mut own, mut called) = (0, 0);
        for step in steps {
            match step {
                Step::Work(time) if owner.is_some() => {
                    thread.cpu += i64::from(*time);
                    own += i64::from(*time);
                }
                Step::Work(_) => {}
                Step::Call(kind, function, body) => {
                    let function = format!("{}f{function}", self.prefix);
                    called += self.call(*kind, &function, body, chain, thread, open);
                }
                Step::Spawn(body) => {
                    let Some(owner) = owner else { continue };
                    let (mut child, mut new) = (self.chain(None), self.thread());
                    chain.event += 1;
                    let cpu = probe(&mut new);
                    self.lines.push(format!(
                        "{{\"thread_start\":\"{}\",\"parent_thread\":\"{}\",\"chain\":\"{}\",\"event\":{},\"child\":\"{}\",{}",
                        new.number, thread.number, chain.name, chain.event, child.name, tail(&new, cpu)
                    ));
                    let node = (owner.to_owned(), true);
                    let outer = !open.contains(&node);
                    open.push(node.clone());
                    let (spent, beneath) = self.body(body, Some(owner), &mut child, &mut new, open);
                    open.pop();
                    child.event += 1;
                    let cpu = probe(&mut new);
                    self.lines.push(format!(
                        "{{\"thread_end\":\"{}\",\"chain\":\"{}\",\"event\":{},{}",
                        new.number,
                        child.name,
                        child.event,
                        tail(&new, cpu)
                    ));
                    self.know(node, outer, spent, beneath);
                    called += spent + beneath;
                }
            }
        }
        (own, called)
    }

    fn call(
        &mut self,
        kind: CallKind,
        function: &str,
        body: &[Step],
        chain: &mut Chain,
        thread: &mut Thread,
        open: &mut Vec<Node>,
    ) -> i64 {
        let node = (function.to_owned(), false);
        let outer = !open.contains(&node);
        open.push(node.clone());
        let (spent, beneath) = match kind {
            CallKind::Collocated => {
                self.probe("stub_start", function, ",\"collocated\":true", chain, thread);
                let found = self.body(body, Some(function), chain, thread, open);
                self.probe("stub_end", function, ",\"collocated\":true", chain, thread);
                found
            }
            CallKind::Remote => {
                let mut server = self.thread();
                self.probe("stub_start", function, "", chain, thread);
                thread.cpu += 7;
                self.probe("skel_start", function, "", chain, &mut server);
                let found = self.body(body, Some(function), chain, &mut server, open);
                self.probe("skel_end", function, "", chain, &mut server);
                self.probe("stub_end", function, "", chain, thread);
                found
            }
            CallKind::Split | CallKind::OneWay => {
                let mut server = self.thread();
                let oneway = matches!(kind, CallKind::OneWay);
                let mut child = self.chain((!oneway).then(|| format!("{}.{}", chain.name, chain.event + 1)));
                let more = format!(",\"oneway\":true,\"child\":\"{}\"", child.name);
                self.probe("stub_start", function, if oneway { &more } else { "" }, chain, thread);
                thread.cpu += 7;
                self.probe("skel_start", function, "", &mut child, &mut server);
                let found = self.body(body, Some(function), &mut child, &mut server, open);
                self.probe("skel_end", function, "", &mut child, &mut server);
                self.probe("stub_end", function, "", chain, thread);
                found
            }
        };
        open.pop();
        self.know(node, outer, spent, beneath);
        spent + beneath
    }

    fn know(&mut self, node: Node, outer: bool, own: i64, beneath: i64) {
        let known = self.truth.nodes.entry(node).or_default();
        known.invocations += 1;
        known.own += own;
        known.descendent += beneath;
        known.inclusive_once += if outer { own + beneath } else { 0 };
    }

    fn thread(&mut self) -> Thread {
        self.threads += 1;
        Thread { number: self.threads, cpu: i64::from(self.threads) * 100 }
    }

    fn chain(&mut self, name: Option<String>) -> Chain {
        self.chains += 1;
        Chain { name: name.unwrap_or_else(|| format!("{}child{}", self.prefix, self.chains)), event: 0 }
    }

    fn probe(&mut self, probe_name: &str, function: &str, more: &str, chain: &mut Chain, thread: &mut Thread) {
        chain.event += 1;
        let cpu = probe(thread);
        self.lines.push(format!(
            "{{\"chain\":\"{}\",\"event\":{},\"probe\":\"{probe_name}\",\"interface\":\"I\",\"function\":\"{function}\"{more},\"thread\":\"{}\",{}",
            chain.name, chain.event, thread.number, tail(thread, cpu)
        ));
    }
}

fn probe(thread: &mut Thread) -> [i64; 2] {
    let begin = thread.cpu;
    thread.cpu += 3;
    [begin, thread.cpu]
}

fn tail(thread: &Thread, [begin, end]: [i64; 2]) -> String {
    format!("\"processor\":\"host{}\",\"cpu\":[{begin},{end}]}}", thread.number % 3)
}

/// Brings lines into an order that a number decides.
pub fn shuffle(lines: &mut [String], mut seed: u64) {
    for place in (1..lines.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        lines.swap(place, (seed >> 33) as usize % (place + 1));
    }
}

fn between<'a>(line: &'a str, start: &str, end: char) -> &'a str {
    let rest = &line[line.find(start).expect("the key is there") + start.len()..];
    &rest[..rest.find(end).expect("the value ends")]
}

/// The number of a record.
pub fn event(line: &str) -> &str {
    between(line, "\"event\":", ',')
}

/// The chain of a record.
pub fn chain(line: &str) -> &str {
    between(line, "\"chain\":\"", '"')
}

/// The record with another number.
pub fn renumber(line: &str, number: &str) -> String {
    line.replacen(&format!("\"event\":{}", event(line)), &format!("\"event\":{number}"), 1)
}
