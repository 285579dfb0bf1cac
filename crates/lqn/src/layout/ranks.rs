//! Which arcs are turned round, and which rank each box gets.

use crate::layout::{Graph, Wish};

/// Ranks of boxes.
pub(super) struct Ranks {
    /// The rank of each box, 0 at the top.
    pub of: Vec<usize>,
    /// How many ranks there are.
    pub count: usize,
    /// Which arcs run against the ranks.
    pub reversed: Vec<bool>,
}

/// Ranks by longest path; a box that has more arcs below than above then goes down towards them.
pub(super) fn ranks(graph: &Graph) -> Ranks {
    let mut below: Vec<Vec<(usize, usize)>> = vec![Vec::new(); graph.boxes.len()];
    for (number, arc) in graph.arcs.iter().enumerate() {
        if arc.from.0 != arc.to.0 {
            below[arc.from.0].push((number, arc.to.0));
        }
    }
    let (reversed, order) = depth_first(graph, &below);
    let arc_ends: Vec<(usize, usize)> = graph
        .arcs
        .iter()
        .zip(&reversed)
        .map(|(arc, &turned)| if turned { (arc.to.0, arc.from.0) } else { (arc.from.0, arc.to.0) })
        .collect();
    let mut down = vec![Vec::new(); graph.boxes.len()];
    let mut up = vec![Vec::new(); graph.boxes.len()];
    for &(upper, lower) in arc_ends.iter().filter(|(upper, lower)| upper != lower) {
        down[upper].push(lower);
        up[lower].push(upper);
    }
    let mut of = vec![0; graph.boxes.len()];
    for &shape in &order {
        for &lower in &down[shape] {
            of[lower] = of[lower].max(of[shape] + 1);
        }
    }
    let mut last = of.iter().copied().max().unwrap_or(0);
    let bottom = |shape: usize| graph.boxes[shape].wish == Wish::Bottom;
    // What must be lowest stands below whatever else is on the last rank.
    if (0..of.len()).any(bottom) && (0..of.len()).any(|shape| !bottom(shape) && of[shape] == last) {
        last += 1;
    }
    for &shape in order.iter().rev() {
        if bottom(shape) {
            of[shape] = last;
        } else if graph.boxes[shape].wish == Wish::Free && down[shape].len() > up[shape].len() {
            of[shape] = down[shape].iter().map(|&lower| of[lower] - 1).min().unwrap_or(of[shape]);
        }
    }
    Ranks { count: last + 1, of, reversed }
}

/// Walks depth first; arcs back to where the walk still is are turned round. Gives a topological order of the rest, too.
fn depth_first(graph: &Graph, below: &[Vec<(usize, usize)>]) -> (Vec<bool>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Closed,
    }
    let mut seen = vec![Seen::Not; graph.boxes.len()];
    let mut reversed = vec![false; graph.arcs.len()];
    let mut finished = Vec::with_capacity(graph.boxes.len());
    let mut has_callers = vec![false; graph.boxes.len()];
    for arc in graph.arcs.iter().filter(|arc| arc.from.0 != arc.to.0) {
        has_callers[arc.to.0] = true;
    }
    let (callers, others): (Vec<usize>, Vec<usize>) = (0..graph.boxes.len()).partition(|&shape| !has_callers[shape]);
    for start in callers.into_iter().chain(others) {
        if seen[start] != Seen::Not {
            continue;
        }
        seen[start] = Seen::Open;
        let mut stack = vec![(start, 0)];
        while let Some((shape, next)) = stack.last_mut() {
            let Some(&(arc, lower)) = below[*shape].get(*next) else {
                seen[*shape] = Seen::Closed;
                finished.push(*shape);
                stack.pop();
                continue;
            };
            *next += 1;
            match seen[lower] {
                Seen::Open => reversed[arc] = true,
                Seen::Closed => {}
                Seen::Not => {
                    seen[lower] = Seen::Open;
                    stack.push((lower, 0));
                }
            }
        }
    }
    finished.reverse();
    (reversed, finished)
}
