//! The interface definition tree (IDT): modules, interfaces, functions, and what implements them where.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::callgraph::{Graph, Key, Moments, Profile};
use crate::report::call_graph::page::names::Names;
use crate::report::call_graph::page::order::{BreadthFirst, ROOT};
use crate::report::call_graph::page::summary::moments;

const MODULE: u8 = 1;
const INTERFACE: u8 = 2;
const FUNCTION: u8 = 3;
const IMPLEMENTATION: u8 = 4;

/// Columns of the tree. The first row is above all modules.
#[derive(Debug, Default, Serialize)]
pub(super) struct Idt {
    steps: Vec<usize>,
    /// 0 above all, 1 a module, 2 an interface, 3 a function, 4 the object that implements it on a processor group.
    kind: Vec<u8>,
    name: Vec<usize>,
    /// Of implementations: the node of the CCSG, the processor group (-1 where it is not known) and the invocations.
    node: Vec<i64>,
    group: Vec<i64>,
    count: Vec<u64>,
    /// Of functions and implementations: their own time, and latency where it is known.
    time: Vec<Vec<f64>>,
    latency: Vec<Vec<f64>>,
}

/// A row while the tree is made.
#[derive(Debug, Default)]
struct Row {
    kind: u8,
    name: String,
    node: Option<usize>,
    group: Option<usize>,
    count: u64,
    time: Moments,
    latency: Moments,
}

struct Builder {
    rows: Vec<Row>,
    parents: Vec<usize>,
    numbers: FxHashMap<(usize, u8, String), usize>,
}

impl Idt {
    pub(super) fn of(profile: &Profile, graph: &Graph, names: &mut Names) -> Self {
        let mut builder = Builder { rows: vec![Row::default()], parents: vec![ROOT], numbers: FxHashMap::default() };
        for (key, groups) in implementations(profile) {
            let [interface, function, object] = profile.names(key);
            let row = builder.function(interface, function);
            let statistics = profile.statistics(key);
            builder.rows[row].time.merge(&statistics.time);
            builder.rows[row].latency.merge(&statistics.latency);
            for (group, mut leaf) in groups {
                builder.rows[row].count += leaf.count;
                (leaf.name, leaf.node, leaf.group) = (object.to_owned(), graph.node_of(key), group);
                builder.rows.push(leaf);
                builder.parents.push(row);
            }
        }
        builder.finish(names)
    }
}

impl Builder {
    fn child(&mut self, parent: usize, kind: u8, name: &str) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry((parent, kind, name.to_owned())).or_insert(next);
        if number == next {
            self.rows.push(Row { kind, name: name.to_owned(), ..Row::default() });
            self.parents.push(parent);
        }
        number
    }

    /// The row of a function, beneath its interface and modules.
    fn function(&mut self, interface: &str, function: &str) -> usize {
        let mut row = 0;
        let mut parts = interface.split("::").peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                row = self.child(row, if parts.peek().is_some() { MODULE } else { INTERFACE }, part);
            }
        }
        self.child(row, FUNCTION, function)
    }

    fn finish(self, names: &mut Names) -> Idt {
        let rows = &self.rows;
        let tree = BreadthFirst::of(&self.parents, |one, other| {
            let by = |row: usize| (rows[row].kind, &rows[row].name, rows[row].group, row);
            by(one).cmp(&by(other))
        });
        let mut idt = Idt { steps: tree.steps, ..Idt::default() };
        for row in tree.nodes.iter().map(|row| &rows[*row]) {
            idt.kind.push(row.kind);
            idt.name.push(names.number(&row.name));
            idt.node.push(row.node.map_or(-1, |node| node as i64));
            idt.group.push(row.group.map_or(-1, |group| group as i64));
            idt.count.push(row.count);
            idt.time.push(moments(&row.time));
            idt.latency.push(moments(&row.latency));
        }
        idt
    }
}

/// Each function of an object, by the processor groups that it runs on. The moments of one that runs on several need its single calls: without
/// these they are known of the function as a whole alone.
fn implementations(profile: &Profile) -> BTreeMap<Key, BTreeMap<Option<usize>, Row>> {
    let contexts = &profile.contexts;
    let mut known: BTreeMap<Key, BTreeMap<Option<usize>, Row>> = BTreeMap::new();
    for path in (1..contexts.len()).filter(|path| !contexts.key(*path).is_thread()) {
        let row = known.entry(contexts.key(path)).or_default().entry(contexts.group(path)).or_default();
        row.kind = IMPLEMENTATION;
        row.count += contexts.count(path);
    }
    let places = |groups: &BTreeMap<Option<usize>, Row>| groups.keys().flatten().count();
    for (key, groups) in known.iter_mut().filter(|(_, groups)| places(groups) == 1) {
        let statistics = profile.statistics(*key);
        for row in groups.iter_mut().filter(|(group, _)| group.is_some()).map(|(_, row)| row) {
            (row.time, row.latency) = (statistics.time, statistics.latency);
        }
    }
    let Some(calls) = &profile.calls else { return known };
    for (place, call) in calls.calls().iter().enumerate() {
        let groups = known.get_mut(&call.key).filter(|groups| places(groups) > 1);
        let row = groups.and_then(|groups| groups.get_mut(&calls.group(place)));
        if let Some((row, time)) = row.zip(call.time) {
            row.time.add(time);
        }
    }
    known
}
