//! Trees in breadth-first order: parents before children, and the children of each node side by side.

use std::cmp::Ordering;

/// No parent.
pub(super) const ROOT: usize = usize::MAX;

/// A tree in breadth-first order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BreadthFirst {
    /// For each place in the order, the node that stands there.
    pub(super) nodes: Vec<usize>,
    /// For each place but the first, how far the place of its parent lies behind that of the place before: mostly 0 or 1.
    pub(super) steps: Vec<usize>,
}

impl BreadthFirst {
    /// Puts a tree in order. The first node is the root, which every node reaches by its parents; `compare` orders children of one parent.
    pub(super) fn of(parents: &[usize], compare: impl Fn(usize, usize) -> Ordering) -> Self {
        let mut starts = vec![0usize; parents.len() + 1];
        for parent in parents.iter().filter(|parent| **parent != ROOT) {
            starts[parent + 1] += 1;
        }
        for node in 0..parents.len() {
            starts[node + 1] += starts[node];
        }
        let mut children = vec![0; starts[parents.len()]];
        let mut next = starts.clone();
        for (node, parent) in parents.iter().enumerate().filter(|(_, parent)| **parent != ROOT) {
            children[next[*parent]] = node;
            next[*parent] += 1;
        }
        let (mut nodes, mut steps) = (vec![0], Vec::with_capacity(parents.len()));
        let (mut place, mut last) = (0, 0);
        while let Some(&node) = nodes.get(place) {
            let siblings = &mut children[starts[node]..starts[node + 1]];
            siblings.sort_by(|one, other| compare(*one, *other));
            for child in siblings {
                nodes.push(*child);
                steps.push(place - last);
                last = place;
            }
            place += 1;
        }
        Self { nodes, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::{BreadthFirst, ROOT};

    #[test]
    fn children_stand_side_by_side_in_their_order() {
        //   0 → 3, 1; 1 → 2; 3 → 5, 4
        let tree = BreadthFirst::of(&[ROOT, 0, 1, 0, 3, 3], |one, other| other.cmp(&one));
        assert_eq!(tree, BreadthFirst { nodes: vec![0, 3, 1, 5, 4, 2], steps: vec![0, 0, 1, 0, 1] });
    }
}
