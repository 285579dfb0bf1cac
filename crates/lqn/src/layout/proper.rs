//! The graph with a point in every rank that an arc passes, before and after rows for labels have been put in.

use crate::layout::ranks::Ranks;
use crate::layout::{Graph, Port};

/// What stands in a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A box.
    Shape(usize),
    /// Where an arc passes.
    Pass,
    /// Where an arc passes, with its label.
    Label,
}

/// Something in a rank.
#[derive(Clone, Debug)]
pub(super) struct Vertex {
    pub kind: Kind,
    pub rank: usize,
    pub width: f64,
    pub height: f64,
    /// Its place in its rank's order.
    pub position: usize,
    /// Segments above.
    pub up: Vec<usize>,
    /// Segments below.
    pub down: Vec<usize>,
}

/// A piece of an arc between neighbouring ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub arc: usize,
    pub upper: usize,
    pub lower: usize,
    /// Where it touches, from the left of the vertex.
    pub upper_offset: f64,
    pub lower_offset: f64,
    /// How much it wants to be straight.
    pub weight: f64,
}

/// A graph whose arcs go from rank to rank.
#[derive(Clone, Debug)]
pub(super) struct Proper {
    pub vertices: Vec<Vertex>,
    pub segments: Vec<Segment>,
    /// Vertices of each rank, in order.
    pub ranks: Vec<Vec<usize>>,
    /// The chain of each arc, its upper box first and its lower box last; empty for an arc from a box to itself.
    pub chains: Vec<Vec<usize>>,
    /// Which arcs run upwards.
    pub reversed: Vec<bool>,
}

/// How far an arc's line is from the left of its label's row.
pub(super) const LABEL_OFFSET: f64 = 2.0;
/// How far the label is from the line.
pub(super) const LABEL_GAP: f64 = 4.0;
/// The most rows of labels between two ranks.
const ROWS: usize = 12;
/// What a passing line takes, with the room beside it.
const PASS: f64 = 7.0;

/// The middle of a port.
fn middle(side: (f64, f64)) -> f64 {
    f64::midpoint(side.0, side.1)
}

impl Proper {
    /// The graph with passing points only.
    pub fn without_labels(graph: &Graph, ranks: &Ranks) -> Self {
        let mut proper = Self::build(graph, ranks, &vec![0; ranks.count], |_| None);
        for rank in 0..proper.ranks.len() {
            proper.number(rank);
        }
        proper
    }

    /// The graph with rows for labels, in an order that follows that of `coarse`.
    pub fn with_labels(graph: &Graph, ranks: &Ranks, coarse: &Self) -> Self {
        let gaps = label_gaps(graph, coarse);
        let mut places: Vec<Option<(usize, usize)>> = vec![None; graph.arcs.len()];
        let mut rows = vec![0; ranks.count];
        let mut order_in_gap = vec![Vec::new(); ranks.count];
        let widest = coarse.ranks.iter().map(|rank| coarse.width(rank)).fold(600.0, f64::max);
        let mut by_gap: Vec<Vec<usize>> = vec![Vec::new(); ranks.count];
        for (number, segment) in coarse.segments.iter().enumerate() {
            by_gap[coarse.vertices[segment.upper].rank].push(number);
        }
        for (gap, segments) in by_gap.iter_mut().enumerate() {
            segments.sort_by_key(|&number| {
                let segment = &coarse.segments[number];
                (coarse.upper_key(segment), coarse.lower_key(segment), number)
            });
            let arcs: Vec<usize> = segments.iter().map(|&number| coarse.segments[number].arc).collect();
            let labelled: Vec<usize> = arcs.iter().copied().filter(|&arc| gaps[arc] == Some(gap)).collect();
            rows[gap] = rows_for(graph, &labelled, arcs.len(), widest);
            for (turn, &arc) in labelled.iter().enumerate() {
                places[arc] = Some((gap, turn % rows[gap]));
            }
            order_in_gap[gap] = arcs;
        }
        let mut fine = Self::build(graph, ranks, &rows, |arc| places[arc]);
        fine.take_order(ranks, &rows, coarse, &order_in_gap);
        fine
    }

    fn build(graph: &Graph, ranks: &Ranks, rows: &[usize], place: impl Fn(usize) -> Option<(usize, usize)>) -> Self {
        let mut base = Vec::with_capacity(ranks.count);
        let mut next = 0;
        for &own in rows {
            base.push(next);
            next += 1 + own;
        }
        let count = base.last().map_or(0, |last| last + 1);
        let mut proper = Self {
            vertices: Vec::new(),
            segments: Vec::new(),
            ranks: vec![Vec::new(); count],
            chains: Vec::with_capacity(graph.arcs.len()),
            reversed: ranks.reversed.clone(),
        };
        for (number, shape) in graph.boxes.iter().enumerate() {
            proper.vertex(Kind::Shape(number), base[ranks.of[number]], shape.width, shape.height);
        }
        for (number, arc) in graph.arcs.iter().enumerate() {
            let mut chain = Vec::new();
            if arc.from.0 != arc.to.0 {
                let (upper, lower) = if ranks.reversed[number] { (arc.to, arc.from) } else { (arc.from, arc.to) };
                let label = place(number).map(|(gap, row)| base[gap] + 1 + row);
                chain.push(upper.0);
                for rank in base[ranks.of[upper.0]] + 1..base[ranks.of[lower.0]] {
                    chain.push(match (label, arc.label) {
                        (Some(at), Some((width, height))) if at == rank => {
                            let width = LABEL_OFFSET + LABEL_GAP + width;
                            proper.vertex(Kind::Label, rank, width, height)
                        }
                        _ => proper.vertex(Kind::Pass, rank, 0.0, 0.0),
                    });
                }
                chain.push(lower.0);
                let ports: (Port, Port) = (graph.boxes[upper.0].ports[upper.1], graph.boxes[lower.0].ports[lower.1]);
                proper.chain(number, &chain, (middle(ports.0.bottom), middle(ports.1.top)));
            }
            proper.chains.push(chain);
        }
        proper
    }

    fn vertex(&mut self, kind: Kind, rank: usize, width: f64, height: f64) -> usize {
        let number = self.vertices.len();
        self.vertices.push(Vertex { kind, rank, width, height, position: 0, up: Vec::new(), down: Vec::new() });
        self.ranks[rank].push(number);
        number
    }

    fn chain(&mut self, arc: usize, chain: &[usize], ends: (f64, f64)) {
        let last = chain.len() - 2;
        for (step, pair) in chain.windows(2).enumerate() {
            let offset = |proper: &Self, vertex: usize| match proper.vertices[vertex].kind {
                Kind::Label => LABEL_OFFSET,
                Kind::Pass | Kind::Shape(_) => 0.0,
            };
            let segment = Segment {
                arc,
                upper: pair[0],
                lower: pair[1],
                upper_offset: if step == 0 { ends.0 } else { offset(self, pair[0]) },
                lower_offset: if step == last { ends.1 } else { offset(self, pair[1]) },
                weight: match (step == 0, step == last) {
                    (true, true) => 1.0,
                    (false, false) => 8.0,
                    _ => 2.0,
                },
            };
            let number = self.segments.len();
            self.segments.push(segment);
            self.vertices[pair[0]].down.push(number);
            self.vertices[pair[1]].up.push(number);
        }
    }

    /// Writes down the places that a rank's order gives.
    pub fn number(&mut self, rank: usize) {
        for (position, &vertex) in self.ranks[rank].iter().enumerate() {
            self.vertices[vertex].position = position;
        }
    }

    /// The order of what is in both graphs from the coarse one; in rows of labels that of the arcs between the ranks.
    fn take_order(&mut self, ranks: &Ranks, rows: &[usize], coarse: &Self, order_in_gap: &[Vec<usize>]) {
        let mut next = 0;
        // How far each arc's chain has been followed, in both graphs.
        let mut step = vec![0; self.chains.len()];
        for rank in 0..ranks.count {
            self.ranks[next] = coarse.ranks[rank]
                .iter()
                .map(|&vertex| match coarse.vertices[vertex].kind {
                    // Boxes come first in both graphs.
                    Kind::Shape(number) => number,
                    Kind::Pass | Kind::Label => {
                        let arc = coarse.segments[coarse.vertices[vertex].up[0]].arc;
                        self.chains[arc][step[arc]]
                    }
                })
                .collect();
            self.number(next);
            let gap = &order_in_gap[rank];
            for row in 1..=rows[rank] {
                self.ranks[next + row] = gap
                    .iter()
                    .map(|&arc| {
                        step[arc] += 1;
                        self.chains[arc][step[arc]]
                    })
                    .collect();
                self.number(next + row);
            }
            for &arc in gap {
                step[arc] += 1;
            }
            next += 1 + rows[rank];
        }
    }

    /// How wide a rank is when packed.
    fn width(&self, rank: &[usize]) -> f64 {
        rank.iter().map(|&vertex| self.vertices[vertex].width + if self.is_shape(vertex) { 30.0 } else { PASS }).sum()
    }

    pub fn is_shape(&self, vertex: usize) -> bool {
        matches!(self.vertices[vertex].kind, Kind::Shape(_))
    }

    /// Where a segment touches the rank above it: place in the order, then share of the width.
    pub fn upper_key(&self, segment: &Segment) -> u64 {
        key(&self.vertices[segment.upper], segment.upper_offset)
    }

    /// Where a segment touches the rank below it.
    pub fn lower_key(&self, segment: &Segment) -> u64 {
        key(&self.vertices[segment.lower], segment.lower_offset)
    }
}

fn key(vertex: &Vertex, offset: f64) -> u64 {
    let share = if vertex.width > 0.0 { (offset / vertex.width).clamp(0.0, 1.0) } else { 0.5 };
    ((vertex.position as u64) << 16) | (share * 65535.0) as u64
}

/// Between which ranks each arc gets its label: where fewest have theirs yet, the highest of equals.
fn label_gaps(graph: &Graph, coarse: &Proper) -> Vec<Option<usize>> {
    let mut load: Vec<f64> = vec![0.0; coarse.ranks.len()];
    let mut gaps = vec![None; graph.arcs.len()];
    for (number, arc) in graph.arcs.iter().enumerate() {
        let (Some((width, _)), [first, .., last]) = (arc.label, &coarse.chains[number][..]) else { continue };
        let (top, bottom) = (coarse.vertices[*first].rank, coarse.vertices[*last].rank);
        // Only near the caller: a label far from both ends says little.
        let candidates = top..bottom.min(top + 3);
        let Some(gap) = candidates.min_by(|&one, &other| load[one].total_cmp(&load[other])) else { continue };
        load[gap] += width;
        gaps[number] = Some(gap);
    }
    gaps
}

/// In how many rows labels are put, so that they take no more room than the widest rank of boxes if that can be.
fn rows_for(graph: &Graph, labelled: &[usize], passing: usize, widest: f64) -> usize {
    if labelled.is_empty() {
        return 0;
    }
    let width: f64 = labelled.iter().filter_map(|&arc| graph.arcs[arc].label).map(|(width, _)| width + 14.0).sum();
    let needed = |rows: usize| width / rows as f64 + passing as f64 * (1.0 - 1.0 / rows as f64) * PASS;
    (1..ROWS).find(|&rows| needed(rows) <= widest).unwrap_or(ROWS)
}
