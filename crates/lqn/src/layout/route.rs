//! Vertical coordinates, and the lines of arcs.

use crate::layout::Graph;
use crate::layout::proper::{Kind, LABEL_GAP, LABEL_OFFSET, Proper};

/// A rectangle, its sides along the axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rectangle {
    /// Left.
    pub x: f64,
    /// Top.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Rectangle {
    /// Whether they share more than a border.
    pub fn overlaps(&self, other: &Self) -> bool {
        const SLACK: f64 = 1e-6;
        self.x + SLACK < other.x + other.width
            && other.x + SLACK < self.x + self.width
            && self.y + SLACK < other.y + other.height
            && other.y + SLACK < self.y + self.height
    }
}

/// A vertical piece of an arc. Between two of them the arc bends from one to the next with vertical ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Where it is.
    pub x: f64,
    /// Its upper end.
    pub top: f64,
    /// Its lower end.
    pub bottom: f64,
}

/// The line of an arc.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Its vertical pieces from top to bottom; none for an arc from a box to itself.
    pub stretches: Vec<Stretch>,
    /// Whether it runs upwards.
    pub upwards: bool,
    /// Where its label is.
    pub label: Option<Rectangle>,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The width of the whole.
    pub width: f64,
    /// The height of the whole.
    pub height: f64,
    /// Boxes, in the order of the graph.
    pub boxes: Vec<Rectangle>,
    /// Arcs, in the order of the graph.
    pub routes: Vec<Route>,
    /// How many pairs of lines cross.
    pub crossings: u64,
}

/// What the horizontal coordinates leave to be said.
pub(super) fn routes(graph: &Graph, proper: &Proper, x: &[f64]) -> Layout {
    let (tops, heights) = rows(proper, x);
    let left = (0..x.len()).map(|vertex| x[vertex]).fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    let right = (0..x.len()).map(|vertex| x[vertex] + proper.vertices[vertex].width).fold(left, f64::max);
    let mut layout = Layout {
        width: right - left,
        height: tops.last().zip(heights.last()).map_or(0.0, |(top, height)| top + height),
        boxes: vec![Rectangle::default(); graph.boxes.len()],
        routes: vec![Route::default(); graph.arcs.len()],
        crossings: super::order::crossings(proper),
    };
    for (number, vertex) in proper.vertices.iter().enumerate() {
        if let Kind::Shape(shape) = vertex.kind {
            layout.boxes[shape] =
                Rectangle { x: x[number] - left, y: tops[vertex.rank], width: vertex.width, height: vertex.height };
        }
    }
    let mut ends = vec![(0.0, 0.0); graph.arcs.len()];
    for segment in &proper.segments {
        if proper.is_shape(segment.upper) {
            ends[segment.arc].0 = x[segment.upper] + segment.upper_offset - left;
        }
        if proper.is_shape(segment.lower) {
            ends[segment.arc].1 = x[segment.lower] + segment.lower_offset - left;
        }
    }
    for (number, chain) in proper.chains.iter().enumerate() {
        let [first, points @ .., last] = &chain[..] else { continue };
        let route = &mut layout.routes[number];
        route.upwards = proper.reversed[number];
        let upper = &proper.vertices[*first];
        let top = tops[upper.rank];
        route.stretches.push(Stretch { x: ends[number].0, top: top + upper.height, bottom: top + heights[upper.rank] });
        for &point in points {
            let vertex = &proper.vertices[point];
            let (top, mut line) = (tops[vertex.rank], x[point] - left);
            if vertex.kind == Kind::Label {
                line += LABEL_OFFSET;
                route.label = Some(Rectangle {
                    x: line + LABEL_GAP,
                    y: top,
                    width: vertex.width - LABEL_OFFSET - LABEL_GAP,
                    height: vertex.height,
                });
            }
            route.stretches.push(Stretch { x: line, top, bottom: top + heights[vertex.rank] });
        }
        let top = tops[proper.vertices[*last].rank];
        route.stretches.push(Stretch { x: ends[number].1, top, bottom: top });
    }
    layout
}

/// The top and height of each row. Rows are the further apart the further arcs go sideways between them.
fn rows(proper: &Proper, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let heights: Vec<f64> = proper
        .ranks
        .iter()
        .map(|rank| rank.iter().map(|&vertex| proper.vertices[vertex].height).fold(0.0, f64::max))
        .collect();
    let mut sideways = vec![0.0_f64; proper.ranks.len()];
    for segment in &proper.segments {
        let way = x[segment.upper] + segment.upper_offset - x[segment.lower] - segment.lower_offset;
        let gap = &mut sideways[proper.vertices[segment.upper].rank];
        *gap = gap.max(way.abs());
    }
    let boxes: Vec<bool> = proper.ranks.iter().map(|rank| rank.iter().any(|&vertex| proper.is_shape(vertex))).collect();
    let mut tops = Vec::with_capacity(heights.len());
    let mut next = 0.0;
    for rank in 0..heights.len() {
        tops.push(next);
        let least = match (boxes[rank], boxes.get(rank + 1).copied().unwrap_or(false)) {
            (true, true) => 34.0,
            (true, false) => 12.0,
            (false, true) => 20.0,
            (false, false) => 3.0,
        };
        next += heights[rank] + least + (sideways[rank] / 7.0).min(90.0);
    }
    (tops, heights)
}
