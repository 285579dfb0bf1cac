//! Horizontal coordinates.
//!
//! With the rows above and below held still, a row's best place is a least-squares problem: each vertex has a wish (the mean of
//! where its segments would be straight) and a weight, and neighbours keep their order and distance. Measured from where the row
//! would be if it were packed, that is isotonic regression, and pooling adjacent violators solves it exactly in one pass. Rows take
//! turns until little moves.

use crate::layout::Graph;
use crate::layout::proper::{Kind, LABEL_OFFSET, Proper};

/// Turns in which rows follow the row above, then the row below.
const FOLLOWING: usize = 6;
/// Turns in which rows heed both.
const BALANCING: usize = 10;
/// How far apart arcs that share a port stand, at most.
const PORT_STEP: f64 = 26.0;

/// Which segments a turn heeds.
#[derive(Clone, Copy, PartialEq)]
enum Heed {
    Above,
    Below,
    Both,
}

/// The left of each vertex. Moves the ends of arcs along their ports, too.
pub(super) fn place(graph: &Graph, proper: &mut Proper) -> Vec<f64> {
    let mut x = vec![0.0; proper.vertices.len()];
    for rank in &proper.ranks {
        let packed = packed(proper, rank);
        let middle =
            packed.last().zip(rank.last()).map_or(0.0, |(last, &vertex)| (last + proper.vertices[vertex].width) / 2.0);
        for (&vertex, left) in rank.iter().zip(&packed) {
            x[vertex] = left - middle;
        }
    }
    for turn in 0..FOLLOWING {
        down(proper, &mut x, Heed::Above);
        up(proper, &mut x, Heed::Below);
        if turn % 2 == 1 {
            spread_ports(graph, proper, &x);
        }
    }
    for turn in 0..BALANCING {
        down(proper, &mut x, Heed::Both);
        up(proper, &mut x, Heed::Both);
        if turn % 3 == 2 {
            spread_ports(graph, proper, &x);
        }
    }
    straighten(proper, &mut x);
    x
}

fn down(proper: &Proper, x: &mut [f64], heed: Heed) {
    for rank in 0..proper.ranks.len() {
        place_row(proper, rank, x, heed);
    }
}

fn up(proper: &Proper, x: &mut [f64], heed: Heed) {
    for rank in (0..proper.ranks.len()).rev() {
        place_row(proper, rank, x, heed);
    }
}

/// The least distance between the right of one vertex and the left of the next.
fn distance(proper: &Proper, left: usize, right: usize) -> f64 {
    match (proper.vertices[left].kind, proper.vertices[right].kind) {
        (Kind::Shape(_), Kind::Shape(_)) => 30.0,
        (Kind::Shape(_), _) | (_, Kind::Shape(_)) => 16.0,
        (Kind::Label, _) => 9.0,
        (Kind::Pass, Kind::Label | Kind::Pass) => 7.0,
    }
}

/// The left of each vertex of a row, packed from zero.
fn packed(proper: &Proper, rank: &[usize]) -> Vec<f64> {
    let mut next = 0.0;
    let mut lefts = Vec::with_capacity(rank.len());
    for (place, &vertex) in rank.iter().enumerate() {
        if place > 0 {
            next += distance(proper, rank[place - 1], vertex);
        }
        lefts.push(next);
        next += proper.vertices[vertex].width;
    }
    lefts
}

/// Puts a row where its neighbours want it.
fn place_row(proper: &Proper, rank: usize, x: &mut [f64], heed: Heed) {
    let row = &proper.ranks[rank];
    let packed = packed(proper, row);
    // Pools: how many vertices, their weight, and where they stand beyond the packed row.
    let mut pools: Vec<(usize, f64, f64)> = Vec::with_capacity(row.len());
    for (&vertex, left) in row.iter().zip(&packed) {
        let (weight, wish) = wish(proper, vertex, x, heed);
        let mut pool = (1, weight, wish - left);
        while let Some(&(count, weight, place)) = pools.last() {
            if place <= pool.2 {
                break;
            }
            let sum = weight + pool.1;
            pool = (count + pool.0, sum, (place * weight + pool.2 * pool.1) / sum);
            pools.pop();
        }
        pools.push(pool);
    }
    let mut places = pools.iter().flat_map(|&(count, _, place)| std::iter::repeat_n(place, count));
    for (&vertex, left) in row.iter().zip(&packed) {
        x[vertex] = left + places.next().unwrap_or_default();
    }
}

/// The weight of a vertex and where it would like its left to be.
fn wish(proper: &Proper, vertex: usize, x: &[f64], heed: Heed) -> (f64, f64) {
    let own = &proper.vertices[vertex];
    let (mut weight, mut sum) = (0.0, 0.0);
    if heed != Heed::Below || own.down.is_empty() {
        for &number in &own.up {
            let segment = &proper.segments[number];
            weight += segment.weight;
            sum += segment.weight * (x[segment.upper] + segment.upper_offset - segment.lower_offset);
        }
    }
    if heed != Heed::Above || own.up.is_empty() {
        for &number in &own.down {
            let segment = &proper.segments[number];
            weight += segment.weight;
            sum += segment.weight * (x[segment.lower] + segment.lower_offset - segment.upper_offset);
        }
    }
    if weight == 0.0 { (1e-3, x[vertex]) } else { (weight, sum / weight) }
}

/// Arcs that share a port stand side by side, in the order of where they go.
fn spread_ports(graph: &Graph, proper: &mut Proper, x: &[f64]) {
    // Box, port, lower side?; where the other end is; the segment.
    let mut ends: Vec<((usize, usize, bool), f64, usize)> = Vec::new();
    for (arc, chain) in proper.chains.iter().enumerate() {
        if chain.is_empty() {
            continue;
        }
        let link = &graph.arcs[arc];
        let (upper, lower) = if proper.reversed[arc] { (link.to, link.from) } else { (link.from, link.to) };
        let own = |number: &&usize| proper.segments[**number].arc == arc;
        let below_first = &proper.vertices[chain[1]].up;
        let above_last = &proper.vertices[chain[chain.len() - 2]].down;
        let start = below_first.iter().find(own).copied();
        let end = above_last.iter().find(own).copied();
        let (Some(start), Some(end)) = (start, end) else { continue };
        let (from, to) = (&proper.segments[start], &proper.segments[end]);
        ends.push(((upper.0, upper.1, true), x[from.lower] + from.lower_offset, start));
        ends.push(((lower.0, lower.1, false), x[to.upper] + to.upper_offset, end));
    }
    ends.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2)));
    for group in ends.chunk_by(|one, other| one.0 == other.0) {
        let (shape, port, lower) = group[0].0;
        let port = graph.boxes[shape].ports[port];
        let (left, right) = if lower { port.bottom } else { port.top };
        let step = ((right - left) / group.len() as f64).min(PORT_STEP);
        let start = f64::midpoint(left, right) - step * (group.len() - 1) as f64 / 2.0;
        for (turn, &(_, _, number)) in group.iter().enumerate() {
            let offset = start + step * turn as f64;
            let segment = &mut proper.segments[number];
            if lower {
                segment.upper_offset = offset;
            } else {
                segment.lower_offset = offset;
            }
        }
    }
}

/// Long arcs: as many points in a row as can stand exactly below each other do.
fn straighten(proper: &Proper, x: &mut [f64]) {
    let line = |vertex: usize| if proper.vertices[vertex].kind == Kind::Label { LABEL_OFFSET } else { 0.0 };
    let mut ends = vec![(f64::NAN, f64::NAN); proper.chains.len()];
    for segment in &proper.segments {
        if proper.is_shape(segment.upper) {
            ends[segment.arc].0 = x[segment.upper] + segment.upper_offset;
        }
        if proper.is_shape(segment.lower) {
            ends[segment.arc].1 = x[segment.lower] + segment.lower_offset;
        }
    }
    for (arc, chain) in proper.chains.iter().enumerate() {
        let Some(points) = chain.get(1..chain.len().saturating_sub(1)) else { continue };
        let mut start = 0;
        while start < points.len() {
            let mut room = free(proper, points[start], x, line(points[start]));
            let mut end = start + 1;
            while let Some(&vertex) = points.get(end) {
                let next = free(proper, vertex, x, line(vertex));
                let both = (room.0.max(next.0), room.1.min(next.1));
                if both.0 > both.1 {
                    break;
                }
                room = both;
                end += 1;
            }
            let stretch = &points[start..end];
            let mean = stretch.iter().map(|&vertex| x[vertex] + line(vertex)).sum::<f64>() / stretch.len() as f64;
            // Best of all below where the arc begins or above where it ends: that saves a bend.
            let straight = |wanted: bool, end: f64| (wanted && room.0 <= end && end <= room.1).then_some(end);
            let target = straight(start == 0, ends[arc].0)
                .or_else(|| straight(end == points.len(), ends[arc].1))
                .unwrap_or_else(|| mean.clamp(room.0, room.1));
            for &vertex in stretch {
                x[vertex] = target - line(vertex);
            }
            start = end;
        }
    }
}

/// From where to where the line of a point may move.
fn free(proper: &Proper, vertex: usize, x: &[f64], line: f64) -> (f64, f64) {
    let own = &proper.vertices[vertex];
    let row = &proper.ranks[own.rank];
    let left = own.position.checked_sub(1).map_or(f64::NEG_INFINITY, |place| {
        x[row[place]] + proper.vertices[row[place]].width + distance(proper, row[place], vertex)
    });
    let right =
        row.get(own.position + 1).map_or(f64::INFINITY, |&next| x[next] - distance(proper, vertex, next) - own.width);
    // Rounding must not turn the room inside out.
    (left.min(x[vertex]) + line, right.max(x[vertex]) + line)
}
