//! The nodes of the summary graph (CCSG), its tree of primary links, and the graph of differences (CCDG).

use serde::Serialize;

use crate::callgraph::change::{Changed, Impact};
use crate::callgraph::{Arc, Graph, Moments, Node, NodeKind};
use crate::report::call_graph::page::names::Names;
use crate::report::call_graph::page::order::{BreadthFirst, ROOT};
use crate::report::call_graph::sum;

/// A vector over processor groups that has most of its coordinates 0: group, nanoseconds, group, nanoseconds.
type Sparse = Vec<i64>;

/// Count, mean, deviation, least and greatest of a quantity in nanoseconds; empty where nothing is known.
pub(super) fn moments(moments: &Moments) -> Vec<f64> {
    let Some((min, max)) = moments.min().zip(moments.max()) else { return Vec::new() };
    let rounded = |value: f64| (value * 10.0).round() / 10.0;
    vec![moments.count() as f64, rounded(moments.mean()), rounded(moments.deviation()), min as f64, max as f64]
}

/// Nodes of the CCSG, by number. Other trees point to them.
#[derive(Debug, Serialize)]
pub(super) struct Nodes {
    kind: Vec<&'static str>,
    interface: Vec<usize>,
    function: Vec<usize>,
    object: Vec<usize>,
    invocations: Vec<u64>,
    own: Vec<Sparse>,
    descendent: Vec<Sparse>,
    inclusive: Vec<Sparse>,
    time: Vec<Vec<f64>>,
    latency: Vec<Vec<f64>>,
}

impl Nodes {
    pub(super) fn of(graph: &Graph, names: &mut Names) -> Self {
        fn all<T>(graph: &Graph, value: impl FnMut(&Node) -> T) -> Vec<T> {
            graph.nodes.iter().map(value).collect()
        }
        Self {
            kind: all(graph, |node| node.kind.name()),
            interface: all(graph, |node| names.number(&node.interface)),
            function: all(graph, |node| names.number(&node.function)),
            object: all(graph, |node| names.number(&node.object)),
            invocations: all(graph, |node| node.invocations),
            own: all(graph, |node| sparse(&node.own)),
            descendent: all(graph, |node| sparse(&node.descendent)),
            inclusive: all(graph, |node| sparse(&node.inclusive_once)),
            time: all(graph, |node| moments(&node.statistics.time)),
            latency: all(graph, |node| moments(&node.statistics.latency)),
        }
    }
}

fn sparse(vector: &[i128]) -> Sparse {
    let known = vector.iter().enumerate().filter(|(_, value)| **value != 0);
    known.flat_map(|(group, value)| [group as i64, clamped(*value)]).collect()
}

/// Under deep recursion a descendent is more than 64 bits hold; no eye tells it from the greatest that they do.
fn clamped(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// A tree of nodes of the CCSG, and the links beside the tree.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    steps: Vec<usize>,
    /// The node of each row.
    node: Vec<usize>,
    /// How often the parent calls the row.
    count: Vec<u64>,
    /// Links that are not of the tree: from node, to node, count.
    secondary: Vec<[u64; 3]>,
    /// Before and after a change, of each row: itself, descendent, inclusive. Empty in the CCSG.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<[[Sparse; 2]; 3]>,
}

impl Summary {
    /// The CCSG by its primary links.
    pub(super) fn ccsg(graph: &Graph) -> Self {
        let nodes: Vec<usize> = (0..graph.nodes.len()).collect();
        Self::of(graph, &nodes, &graph.arcs)
    }

    /// The CCDG: what a change reaches, by a breadth-first walk along its links.
    pub(super) fn ccdg(impact: &Impact) -> Self {
        let graph = &impact.before;
        let main = graph.nodes.iter().position(|node| node.kind == NodeKind::Main).unwrap_or(0);
        let mut nodes: Vec<usize> = impact.deltas.iter().map(|delta| delta.node).collect();
        if !nodes.contains(&main) {
            nodes.push(main);
        }
        let mut delta_of = vec![None; graph.nodes.len()];
        for delta in &impact.deltas {
            delta_of[delta.node] = Some(delta);
        }
        let mut summary = Self::of(graph, &nodes, &impact.arcs);
        let pair = |changed: &Changed| [sparse(&changed.before), sparse(&changed.after)];
        let changed = summary.node.iter().map(|node| {
            delta_of[*node].map_or_else(Default::default, |delta| {
                [pair(&delta.own), pair(&delta.descendent), pair(&delta.inclusive_once)]
            })
        });
        summary.changed = changed.collect();
        summary
    }

    /// The tree that a breadth-first walk along links makes of nodes; primary links go before others.
    fn of(graph: &Graph, nodes: &[usize], arcs: &[Arc]) -> Self {
        let mut row = vec![ROOT; graph.nodes.len()];
        // The Global Virtual Main is the root, whatever place its name gives it.
        let mut order: Vec<usize> = nodes.to_vec();
        order.sort_by_key(|node| (graph.nodes[*node].kind != NodeKind::Main, *node));
        for (place, node) in order.iter().enumerate() {
            row[*node] = place;
        }
        let links: Vec<&Arc> = arcs.iter().filter(|arc| row[arc.from] != ROOT && row[arc.to] != ROOT).collect();
        let (parents, tree_links) = spanning(&row, &links, order.len());
        let inclusive = |row: usize| sum(&graph.nodes[order[row]].inclusive_once);
        let tree = BreadthFirst::of(&parents, |one, other| {
            inclusive(other).cmp(&inclusive(one)).then(order[one].cmp(&order[other]))
        });
        let count = |row: &usize| tree_links[*row].map_or(0, |link| links[link].count);
        let mut primary = vec![false; links.len()];
        for link in tree_links.iter().flatten() {
            primary[*link] = true;
        }
        let secondary = links.iter().zip(&primary).filter(|(_, primary)| !**primary);
        Self {
            node: tree.nodes.iter().map(|row| order[*row]).collect(),
            count: tree.nodes.iter().map(count).collect(),
            steps: tree.steps,
            secondary: secondary.map(|(arc, _)| [arc.from as u64, arc.to as u64, arc.count]).collect(),
            changed: Vec::new(),
        }
    }
}

/// For each row its parent and the link from it. Rows that no link reaches hang under the root.
fn spanning(row: &[usize], links: &[&Arc], rows: usize) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut starts = vec![0usize; rows + 1];
    for link in links {
        starts[row[link.from] + 1] += 1;
    }
    for place in 0..rows {
        starts[place + 1] += starts[place];
    }
    let mut outgoing = vec![0; links.len()];
    let mut next = starts.clone();
    for (number, link) in links.iter().enumerate() {
        outgoing[next[row[link.from]]] = number;
        next[row[link.from]] += 1;
    }
    let (mut parents, mut by) = (vec![ROOT; rows], vec![None; rows]);
    let mut queue = vec![0];
    let mut at = 0;
    while let Some(&from) = queue.get(at) {
        at += 1;
        let mut mine: Vec<usize> = outgoing[starts[from]..starts[from + 1]].to_vec();
        mine.sort_by_key(|link| (!links[*link].primary, *link));
        for link in mine {
            let to = row[links[link].to];
            if to != 0 && parents[to] == ROOT {
                (parents[to], by[to]) = (from, Some(link));
                queue.push(to);
            }
        }
    }
    for parent in parents[1..].iter_mut().filter(|parent| **parent == ROOT) {
        *parent = 0;
    }
    (parents, by)
}
