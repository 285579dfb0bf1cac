//! Dominators of the graph of an operation: the nodes that every way from the root to a node passes.

use crate::trace::toeg::NONE;
use crate::trace::{Kind, NodeId, Toeg};

/// By node, its immediate dominator; [`NONE`] of the root and of what no way leads to.
///
/// The graph has no circles, so one pass in topological order is enough: the immediate dominator of a node is the nearest common
/// ancestor of its causes in the tree of dominators. Each node keeps a pointer that jumps far up that tree, which makes
/// that search logarithmic in its depth (Myers, *An applicative random-access stack*, 1983).
pub(super) fn immediate(toeg: &Toeg) -> Vec<NodeId> {
    let count = toeg.len();
    let mut waiting: Vec<u32> = (0..count as NodeId).map(|node| causes(toeg, node).count() as u32).collect();
    let mut tree = Tree { above: vec![NONE; count], jump: vec![NONE; count], depth: vec![0; count] };
    let mut ready: Vec<NodeId> = (0..count as NodeId).filter(|node| waiting[*node as usize] == 0).collect();
    while let Some(node) = ready.pop() {
        let common = causes(toeg, node).reduce(|one, other| tree.common(one, other));
        if let Some(above) = common.filter(|above| *above != NONE) {
            tree.hang(node, above);
        } else {
            tree.jump[node as usize] = node;
        }
        for effect in effects(toeg, node) {
            waiting[effect as usize] -= 1;
            if waiting[effect as usize] == 0 {
                ready.push(effect);
            }
        }
    }
    tree.above
}

struct Tree {
    above: Vec<NodeId>,
    jump: Vec<NodeId>,
    depth: Vec<u32>,
}

impl Tree {
    fn hang(&mut self, node: NodeId, above: NodeId) {
        let (place, up) = (node as usize, above as usize);
        self.above[place] = above;
        self.depth[place] = self.depth[up] + 1;
        let first = self.jump[up];
        let second = self.jump[first as usize];
        let depth = |node: NodeId| self.depth[node as usize];
        let even = depth(above) - depth(first) == depth(first) - depth(second);
        self.jump[place] = if even && first != above { second } else { above };
    }

    /// The nearest common ancestor; [`NONE`] where the two are in trees of their own.
    fn common(&self, one: NodeId, other: NodeId) -> NodeId {
        if one == NONE || other == NONE {
            return NONE;
        }
        let (mut low, mut high) = (one, other);
        if self.depth[low as usize] < self.depth[high as usize] {
            (low, high) = (high, low);
        }
        let target = self.depth[high as usize];
        while self.depth[low as usize] > target {
            let jump = self.jump[low as usize];
            low = if self.depth[jump as usize] >= target { jump } else { self.above[low as usize] };
        }
        while low != high {
            let (left, right) = (self.jump[low as usize], self.jump[high as usize]);
            (low, high) =
                if left == right { (self.above[low as usize], self.above[high as usize]) } else { (left, right) };
            if low == NONE || high == NONE {
                return NONE;
            }
        }
        low
    }
}

fn causes(toeg: &Toeg, node: NodeId) -> impl Iterator<Item = NodeId> {
    let outer = match toeg.event(node).kind {
        Kind::Begin => toeg.thread_of(node).fork,
        Kind::Join(child) => toeg.thread(child).map_or(NONE, |thread| thread.last),
        _ => NONE,
    };
    distinct([toeg.previous_in_thread(node), toeg.previous_in_task(node), outer])
}

fn effects(toeg: &Toeg, node: NodeId) -> impl Iterator<Item = NodeId> {
    let outer = match toeg.event(node).kind {
        Kind::Fork(child) => toeg.thread(child).map_or(NONE, |thread| thread.first),
        Kind::End => toeg.thread_of(node).join,
        _ => NONE,
    };
    distinct([toeg.next_in_thread(node), toeg.next_in_task(node), outer])
}

fn distinct(mut nodes: [NodeId; 3]) -> impl Iterator<Item = NodeId> {
    nodes.sort_unstable();
    let mut last = NONE;
    nodes.into_iter().filter(move |node| *node != NONE && std::mem::replace(&mut last, *node) != *node)
}
