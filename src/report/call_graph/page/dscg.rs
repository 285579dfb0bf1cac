//! The dynamic system call graph (DSCG): every call, or calls merged by path where single calls were too many.

use std::cmp::Ordering;
use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::callgraph::{Call, CallTree, CriticalPaths, Graph, Key, Profile};
use crate::report::call_graph::page::names::{Names, plain};
use crate::report::call_graph::page::order::{BreadthFirst, ROOT};

/// The greatest number of nodes of this tree. Paths beyond it are summed up, where they would stand.
pub const MOST_CALLS: usize = 200_000;

/// Marks of a call.
const COLLOCATED: u8 = 1;
const DETACHED: u8 = 2;
const INCOMPLETE: u8 = 4;

/// Columns of the tree; a row is a call, a path, or a number of paths that are summed up. The first row is the Global Virtual Main.
#[derive(Debug, Default, Serialize)]
pub(super) struct Dscg {
    /// Whether a row is all calls along one path.
    merged: bool,
    /// How many calls or paths there are, those that are summed up among them.
    whole: usize,
    steps: Vec<usize>,
    /// The node of the CCSG; -1 for paths that are summed up.
    node: Vec<i64>,
    /// The place in `sites`; -1 where it is not known.
    site: Vec<i64>,
    /// Nanoseconds spent itself; -1 where they cannot be told.
    own: Vec<i64>,
    /// Calls of a path, or paths that are summed up; empty where each row is one call.
    count: Vec<u64>,
    /// From stub to stub in nanoseconds, -1 where it is not known; empty where no row has it.
    latency: Vec<i64>,
    /// The chain of the first record as the difference from the row before, and the number of that record in its chain.
    chain: Vec<i64>,
    event: Vec<u32>,
    flags: Vec<u8>,
    /// Thread, process, processor and processor group; names by number.
    sites: Vec<[i64; 4]>,
    chains: Vec<String>,
    /// The critical path of the longest operation: row, begin and end in nanoseconds, and 1 on the way to a function or back.
    critical: Vec<[i64; 4]>,
}

impl Dscg {
    pub(super) fn of(profile: &Profile, graph: &Graph, names: &mut Names) -> Self {
        match profile.calls.as_ref().filter(|calls| calls.calls().len() < MOST_CALLS) {
            Some(calls) => of_calls(profile, calls, graph, names),
            None => of_paths(profile, graph),
        }
    }
}

fn node(graph: &Graph, key: Key) -> i64 {
    graph.node_of(key).map_or(-1, |node| node as i64)
}

/// What calls of one caller are in the order of: when they were made; by the clock for those of the Global Virtual Main.
fn compare(profile: &Profile, calls: &CallTree, one: usize, other: usize) -> Ordering {
    let chain = |call: &Call| profile.tables().chain_text(call.chain);
    let begin = |call: &Call| call.outside.begin.max(call.inside.begin);
    let (left, right) = (&calls.calls()[one], &calls.calls()[other]);
    let first = match calls.parent(one) {
        Some(_) => left.at.cmp(&right.at),
        None => begin(left).cmp(&begin(right)),
    };
    first.then_with(|| chain(left).cmp(chain(right))).then(left.event.cmp(&right.event)).then(one.cmp(&other))
}

fn of_calls(profile: &Profile, calls: &CallTree, graph: &Graph, names: &mut Names) -> Dscg {
    let all = calls.calls();
    let parents: Vec<usize> = std::iter::once(ROOT)
        .chain((0..all.len()).map(|call| calls.parent(call).map_or(0, |parent| parent + 1)))
        .collect();
    let tree = BreadthFirst::of(&parents, |one, other| compare(profile, calls, one - 1, other - 1));
    let mut dscg = Dscg { whole: all.len(), steps: tree.steps, ..Dscg::default() };
    let mut sites: HashMap<[i64; 4], i64> = HashMap::new();
    let mut chains: FxHashMap<&str, i64> = FxHashMap::default();
    let mut last = 0;
    dscg.root(graph);
    for &place in &tree.nodes[1..] {
        let call = &all[place - 1];
        let known = profile.tables().of(call.site);
        let mut name = |name| names.number(profile.tables().text(name)) as i64;
        let site = [name(known.thread), name(known.process), name(known.processor)];
        let group = calls.group(place - 1);
        let site = group.map_or([0, 0, 0, -1], |group| [site[0], site[1], site[2], group as i64]);
        let next = sites.len() as i64;
        let number = *sites.entry(site).or_insert(next);
        if number == next {
            dscg.sites.push(site);
        }
        let next = chains.len() as i64;
        let text = profile.tables().chain_text(call.chain);
        let chain = *chains.entry(text).or_insert(next);
        if chain == next {
            dscg.chains.push(plain(text));
        }
        dscg.node.push(node(graph, call.key));
        dscg.site.push(number);
        dscg.own.push(call.time.unwrap_or(-1));
        dscg.latency.push(latency(call));
        dscg.chain.push(chain - last);
        dscg.event.push(call.event);
        dscg.flags.push(flags(call));
        last = chain;
    }
    let mut row_of = vec![0i64; all.len() + 1];
    for (row, node) in tree.nodes.iter().enumerate() {
        row_of[*node] = row as i64;
    }
    let longest = CriticalPaths::of(profile).map(|paths| paths.longest).unwrap_or_default();
    dscg.critical = longest
        .iter()
        .map(|stretch| [row_of[stretch.call + 1], stretch.begin, stretch.end, i64::from(stretch.transit)])
        .collect();
    if dscg.latency.iter().all(|latency| *latency < 0) {
        dscg.latency.clear();
    }
    dscg
}

/// From stub to stub, else within the function, probes included.
fn latency(call: &Call) -> i64 {
    let reading = if call.outside.is_some() && call.outside.end != i64::MIN { call.outside } else { call.inside };
    if !call.complete || reading.begin == i64::MIN || reading.end == i64::MIN {
        return -1;
    }
    reading.end.saturating_sub(reading.begin).max(-1)
}

fn flags(call: &Call) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(call.collocated, COLLOCATED) | flag(call.detached, DETACHED) | flag(!call.complete, INCOMPLETE)
}

impl Dscg {
    /// The row of the Global Virtual Main.
    fn root(&mut self, graph: &Graph) {
        self.node.push(node(graph, Key::MAIN));
        self.site.push(-1);
        self.own.push(0);
        if self.merged {
            self.count.push(1);
        } else {
            self.latency.push(-1);
            self.chain.push(0);
            self.event.push(0);
            self.flags.push(0);
        }
    }
}

/// Paths, those with the greatest times. A path is never left out before those beneath it, since it has their time as well.
fn of_paths(profile: &Profile, graph: &Graph) -> Dscg {
    let contexts = &profile.contexts;
    let mut inclusive: Vec<i64> = (0..contexts.len()).map(|path| contexts.time(path)).collect();
    let mut beneath = vec![1u64; contexts.len()];
    for path in (1..contexts.len()).rev() {
        let parent = contexts.parent(path).expect("only the root has no parent");
        inclusive[parent] += inclusive[path];
        beneath[parent] += beneath[path];
    }
    // Paths come in the order in which records were read; their names and places have to order them instead.
    let labels: Vec<(i64, Option<usize>)> =
        (0..contexts.len()).map(|path| (node(graph, contexts.key(path)), contexts.group(path))).collect();
    let compare = |one: usize, other: usize| {
        inclusive[other].cmp(&inclusive[one]).then_with(|| labels[one].cmp(&labels[other])).then(one.cmp(&other))
    };
    let kept = greatest(&inclusive, MOST_CALLS);
    let (mut rows, mut parents, mut row_of) = (Vec::new(), Vec::new(), vec![ROOT; contexts.len()]);
    let mut others: FxHashMap<usize, (u64, i64)> = FxHashMap::default();
    for path in 0..contexts.len() {
        let parent = contexts.parent(path).map_or(ROOT, |parent| row_of[parent]);
        if kept[path] {
            row_of[path] = rows.len();
            rows.push(path);
            parents.push(parent);
        } else if parent != ROOT {
            let sum = others.entry(parent).or_default();
            *sum = (sum.0 + beneath[path], sum.1 + inclusive[path]);
        }
    }
    let mut sums: Vec<(usize, (u64, i64))> = others.into_iter().collect();
    sums.sort_unstable();
    parents.extend(sums.iter().map(|(parent, _)| *parent));
    let tree = BreadthFirst::of(&parents, |one, other| match (rows.get(one), rows.get(other)) {
        (Some(one), Some(other)) => compare(*one, *other),
        // What is summed up stands last.
        _ => one.cmp(&other),
    });
    let mut dscg = Dscg { merged: true, whole: contexts.len() - 1, steps: tree.steps, ..Dscg::default() };
    dscg.sites = (0..profile.groups.len()).map(|group| [-1, -1, -1, group as i64]).collect();
    dscg.root(graph);
    for &row in &tree.nodes[1..] {
        match rows.get(row) {
            Some(&path) => {
                dscg.node.push(labels[path].0);
                dscg.site.push(labels[path].1.map_or(-1, |group| group as i64));
                dscg.own.push(contexts.time(path));
                dscg.count.push(contexts.count(path));
            }
            None => {
                let (paths, time) = sums[row - rows.len()].1;
                dscg.node.push(-1);
                dscg.site.push(-1);
                dscg.own.push(time);
                dscg.count.push(paths);
            }
        }
    }
    dscg
}

/// Marks so many of the greatest values; of equal ones the first, so that no path is marked before the one that it is beneath.
fn greatest(values: &[i64], most: usize) -> Vec<bool> {
    if values.len() <= most {
        return vec![true; values.len()];
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    let ahead = |one: &usize, other: &usize| values[*other].cmp(&values[*one]).then(one.cmp(other));
    order.select_nth_unstable_by(most - 1, ahead);
    let mut marks = vec![false; values.len()];
    for place in &order[..most] {
        marks[*place] = true;
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::greatest;

    #[test]
    fn of_equal_times_the_path_above_is_kept() {
        assert_eq!(greatest(&[9, 5, 5, 9, 5, 0], 3), [true, true, false, true, false, false]);
        assert_eq!(greatest(&[1, 1], 2), [true, true]);
    }
}
