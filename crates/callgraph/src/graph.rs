//! The CPU consumption summarization graph (CCSG, 2002 §3): functions and threads as nodes, who called whom as arcs.

use std::collections::{BTreeMap, VecDeque};

use crate::context::{ContextTree, Key};
use crate::latency::Statistics;
use crate::profile::Profile;

/// How fine nodes are (2002 §3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granularity {
    /// Whether objects of an interface are one.
    pub by_interface: bool,
    /// Objects, and interfaces (`Mod::*` for all of a module), whose objects are told apart all the same.
    pub expanded: Vec<String>,
}

impl Granularity {
    /// Whether objects are told apart here.
    fn tells(&self, interface: &str, object: &str) -> bool {
        let named = |chosen: &String| match chosen.strip_suffix('*') {
            Some(prefix) => interface.starts_with(prefix),
            None => chosen == object || chosen == interface,
        };
        !self.by_interface || self.expanded.iter().any(named)
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// The Global Virtual Main, above all that nothing calls.
    Main,
    /// A function of an object, or of all objects of its interface.
    Function,
    /// The threads that a function spawns, and those that they spawn.
    Thread,
}

impl NodeKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Function => "function",
            Self::Thread => "thread",
        }
    }
}

impl NodeKind {
    /// What to call a node: the function with the object, if there is one, and with what the node is if it is no function.
    pub(crate) fn label(self, name: &str, object: &str) -> String {
        let object = if object.is_empty() { String::new() } else { format!(" [{object}]") };
        match self {
            Self::Main | Self::Function => format!("{name}{object}"),
            Self::Thread => format!("threads of {name}{object}"),
        }
    }
}

/// `Mod::Printer::print`, the function alone where it has no interface, and `(main)` for the Global Virtual Main, which has no names.
pub(crate) fn function_name(interface: &str, function: &str) -> String {
    match (interface, function) {
        ("", "") => "(main)".to_owned(),
        ("", function) => function.to_owned(),
        (interface, function) => format!("{interface}::{function}"),
    }
}

/// A node of the CCSG. Vectors have a coordinate for each processor group, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// The interface; of threads, that of the function that spawns them.
    pub interface: String,
    /// The function.
    pub function: String,
    /// The object; empty where objects are not told apart.
    pub object: String,
    /// How many invocations, or threads.
    pub invocations: u64,
    /// What they spent themselves.
    pub own: Vec<i128>,
    /// What all that they called spent, summed over invocations (Eq. 3 and 4). Where a function calls itself, that counts inner
    /// invocations again for each one around them, and so can be more than the whole.
    pub descendent: Vec<i128>,
    /// What outermost invocations spent with all that they called: never more than the whole.
    pub inclusive_once: Vec<i128>,
    /// Of single invocations.
    pub statistics: Statistics,
}

impl Node {
    /// The name of the function, such as `Mod::Printer::print`; of threads, that of the function that spawns them.
    pub fn name(&self) -> String {
        function_name(&self.interface, &self.function)
    }

    /// The name with the object, and with what it is if it is no function: `threads of Mod::Printer::print [p1]`.
    pub fn label(&self) -> String {
        self.kind.label(&self.name(), &self.object)
    }
}

/// An arc of the CCSG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arc {
    /// The caller, by its place among the nodes.
    pub from: usize,
    /// The function called, or the threads spawned.
    pub to: usize,
    /// How many calls or threads.
    pub count: u64,
    /// Whether it is in the tree that a breadth-first walk from the Global Virtual Main makes (2002 §3.3).
    pub primary: bool,
}

/// The CCSG. The first node is the Global Virtual Main; the others are in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The processor groups.
    pub groups: Vec<String>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The arcs, sorted.
    pub arcs: Vec<Arc>,
    /// The node of each key that is met.
    pub(crate) places: Places,
}

/// For each key of a profile that is met, its node; else [`usize::MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places(pub(crate) Vec<usize>);

impl Graph {
    /// Summarises a profile.
    pub fn of(profile: &Profile, granularity: &Granularity) -> Self {
        Self::with_times(profile, &profile.contexts, granularity)
    }

    /// The same of other times in the same paths.
    pub(crate) fn with_times(profile: &Profile, contexts: &ContextTree, granularity: &Granularity) -> Self {
        let (mut nodes, places) = nodes(profile, contexts, granularity);
        let place: Vec<u32> = (0..contexts.len()).map(|node| places.0[contexts.key(node).index()] as u32).collect();
        for node in 1..contexts.len() {
            let owner = &mut nodes[place[node] as usize];
            owner.invocations += contexts.count(node);
            if let Some(group) = contexts.group(node) {
                owner.own[group] += i128::from(contexts.time(node));
            }
        }
        let outermost = outermost(contexts, &place, nodes.len());
        Profile::inclusive(contexts, profile.groups.len(), |group, times| {
            // The descendent and the inclusive of outermost invocations, by node.
            let mut sums = vec![[0i128; 2]; nodes.len()];
            // Most paths spend nothing on most groups.
            for (node, time) in times.iter().enumerate().filter(|(_, time)| **time != 0) {
                let sums = &mut sums[place[node] as usize];
                sums[0] += i128::from(*time);
                sums[1] += i128::from(if outermost[node] { *time } else { 0 });
            }
            for (node, [inclusive, once]) in nodes.iter_mut().zip(sums) {
                node.descendent[group] = inclusive - node.own[group];
                node.inclusive_once[group] = once;
            }
        });
        let arcs = arcs(contexts, &place, &places, nodes.len());
        Self { groups: profile.groups.clone(), nodes, arcs, places }
    }

    /// The node that a function, or the threads under one, belong to; none for what the profile of this graph does not have.
    pub fn node_of(&self, key: Key) -> Option<usize> {
        self.places.0.get(key.index()).copied().filter(|node| *node != usize::MAX)
    }

    /// What the whole system spent, by group: the descendent of the Global Virtual Main.
    pub fn total(&self) -> &[i128] {
        &self.nodes[0].descendent
    }
}

fn nodes(profile: &Profile, contexts: &ContextTree, granularity: &Granularity) -> (Vec<Node>, Places) {
    let mut met = vec![false; profile.statistics.len()];
    for node in 0..contexts.len() {
        met[contexts.key(node).index()] = true;
    }
    let mut named: BTreeMap<[&str; 3], BTreeMap<bool, Vec<usize>>> = BTreeMap::new();
    for index in (0..met.len()).filter(|index| met[*index]) {
        let key = Key(index as u32);
        let [interface, function, object] = profile.names(key);
        let object = if granularity.tells(interface, object) { object } else { "" };
        // The Global Virtual Main has no names; a function of no interface always has one, so the two cannot meet.
        named.entry([interface, function, object]).or_default().entry(key.is_thread()).or_default().push(index);
    }
    let size = profile.groups.len();
    let mut places = vec![usize::MAX; met.len()];
    let mut nodes = Vec::new();
    for ([interface, function, object], kinds) in named {
        for (thread, keys) in kinds {
            let main = keys.contains(&Key::MAIN.index());
            let mut statistics = Statistics::default();
            for key in &keys {
                places[*key] = nodes.len();
                statistics.merge(&profile.statistics[*key]);
            }
            let kind = if main {
                NodeKind::Main
            } else if thread {
                NodeKind::Thread
            } else {
                NodeKind::Function
            };
            nodes.push(Node {
                kind,
                interface: interface.to_owned(),
                function: function.to_owned(),
                object: object.to_owned(),
                invocations: u64::from(main),
                own: vec![0; size],
                descendent: vec![0; size],
                inclusive_once: vec![0; size],
                statistics,
            });
        }
    }
    (nodes, Places(places))
}

/// Which contexts have no context of the same node above them. Walks the tree without recursion: each node is entered and left
/// once, and the nodes that are open are counted.
fn outermost(contexts: &ContextTree, places: &[u32], nodes: usize) -> Vec<bool> {
    let (first, next) = children(contexts);
    let mut open = vec![0u32; nodes];
    let mut outermost = vec![false; contexts.len()];
    let mut node = 0usize;
    loop {
        let place = places[node] as usize;
        outermost[node] = open[place] == 0;
        open[place] += 1;
        if first[node] != u32::MAX {
            node = first[node] as usize;
            continue;
        }
        loop {
            open[places[node] as usize] -= 1;
            if next[node] != u32::MAX {
                node = next[node] as usize;
                break;
            }
            match contexts.parent(node) {
                Some(parent) => node = parent,
                None => return outermost,
            }
        }
    }
}

/// The first child and the next sibling of each context.
pub(crate) fn children(contexts: &ContextTree) -> (Vec<u32>, Vec<u32>) {
    let (mut first, mut next) = (vec![u32::MAX; contexts.len()], vec![u32::MAX; contexts.len()]);
    for node in (1..contexts.len()).rev() {
        if let Some(parent) = contexts.parent(node) {
            next[node] = first[parent];
            first[parent] = node as u32;
        }
    }
    (first, next)
}

/// Sorts by a number of a node, stably and in linear time.
fn by_node(all: &[Counted], nodes: usize, node: impl Fn(&Counted) -> u32) -> Vec<Counted> {
    let mut next = vec![0usize; nodes + 1];
    for one in all {
        next[node(one) as usize + 1] += 1;
    }
    for place in 1..next.len() {
        next[place] += next[place - 1];
    }
    let mut sorted = vec![(0, 0, 0); all.len()];
    for one in all {
        let place = &mut next[node(one) as usize];
        sorted[*place] = *one;
        *place += 1;
    }
    sorted
}

/// How many paths give their arcs at once. Memory is in proportion to it, and to the number of arcs.
const BLOCK: usize = 1 << 17;

/// An arc by its ends, with its count.
type Counted = (u32, u32, u64);

/// The arcs of all paths, sorted.
fn counted_arcs(contexts: &ContextTree, place: &[u32], places: &Places, nodes: usize) -> Vec<Counted> {
    let arc = |node: usize| {
        let parent = contexts.parent(node)?;
        let mut from = place[parent];
        if contexts.key(node).is_thread() && contexts.key(parent).is_thread() {
            // Threads that a thread spawns count on the arc of the function above (2002, Appendix A).
            from = places.0[Key::function(contexts.key(parent).owner() as u32).index()] as u32;
        }
        Some((from, place[node], contexts.count(node)))
    };
    let mut all: Vec<Counted> = Vec::new();
    for first in (1..contexts.len()).step_by(BLOCK) {
        let block: Vec<Counted> = (first..contexts.len().min(first + BLOCK)).filter_map(arc).collect();
        let sorted = by_node(&by_node(&block, nodes, |arc| arc.1), nodes, |arc| arc.0);
        let alone = all.is_empty();
        all.extend(sorted);
        if !alone {
            // Two sorted halves: this merges them.
            all.sort_by_key(|arc| (arc.0, arc.1));
        }
        all.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
    }
    all
}

fn arcs(contexts: &ContextTree, place: &[u32], places: &Places, nodes: usize) -> Vec<Arc> {
    let mut arcs: Vec<Arc> = counted_arcs(contexts, place, places, nodes)
        .into_iter()
        .map(|(from, to, count)| Arc { from: from as usize, to: to as usize, count, primary: false })
        .collect();
    let mut starts = vec![arcs.len(); nodes + 1];
    for (place, arc) in arcs.iter().enumerate().rev() {
        starts[arc.from] = place;
    }
    for node in (0..nodes).rev() {
        starts[node] = starts[node].min(starts[node + 1]);
    }
    let mut seen = vec![false; nodes];
    seen[0] = true;
    let mut queue = VecDeque::from([0usize]);
    while let Some(node) = queue.pop_front() {
        for arc in &mut arcs[starts[node]..starts[node + 1]] {
            if !std::mem::replace(&mut seen[arc.to], true) {
                arc.primary = true;
                queue.push_back(arc.to);
            }
        }
    }
    arcs
}
