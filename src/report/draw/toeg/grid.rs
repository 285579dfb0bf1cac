//! Where nodes stand: a column for each step of causes, a row for each task. Lines between them go through gaps between columns and
//! channels between rows, never through a cell in which another node stands.

use rustc_hash::FxHashMap;

use crate::report::draw::operation::{OperationView, Shown};
use crate::report::draw::svg::Path;
use crate::report::draw::text::SMALL;
use crate::trace::{Kind, NodeId};

/// Half the size of a node.
pub(super) const RADIUS: f64 = 11.0;
/// From the top of a row to the middle of its nodes.
pub(super) const MIDDLE: f64 = 34.0;
/// From the top of a row to the label above its nodes.
pub(super) const CELL_TOP: f64 = 6.0;
/// Room for names of tasks.
pub(super) const NAMES: f64 = 150.0;
const LEFT: f64 = 16.0;
const ROW: f64 = 92.0;
/// How much of that is coloured.
pub(super) const LANE: f64 = ROW - 4.0;
/// Room between columns.
const GAP: f64 = 30.0;

/// The grid.
pub(super) struct Grid {
    /// Column and row of each node that is drawn.
    cells: FxHashMap<NodeId, (usize, usize)>,
    /// Columns with nodes, in each row.
    occupied: Vec<Vec<usize>>,
    /// Left and right of each column.
    columns: Vec<(f64, f64)>,
    /// The match of each node.
    matched: FxHashMap<NodeId, usize>,
}

impl Grid {
    pub fn new(view: &OperationView<'_>, shown: &Shown) -> Self {
        let rows: FxHashMap<_, usize> = shown.tasks.iter().enumerate().map(|(row, &task)| (task, row)).collect();
        let mut levels: Vec<u32> = shown.order.iter().map(|&node| shown.level[node as usize]).collect();
        levels.sort_unstable();
        levels.dedup();
        let mut widths = vec![2.0 * RADIUS + 6.0; levels.len()];
        let mut cells = FxHashMap::default();
        let mut occupied = vec![Vec::new(); shown.tasks.len()];
        for &node in &shown.order {
            let event = view.toeg.event(node);
            let column = levels.partition_point(|&level| level < shown.level[node as usize]);
            let row = rows[&event.task];
            cells.insert(node, (column, row));
            occupied[row].push(column);
            let (upper, lower) = labels(view, node);
            let thread = if event.kind == Kind::Begin { SMALL.width(&format!("thread {}", event.thread)) } else { 0.0 };
            widths[column] = SMALL.width(&upper).max(SMALL.width(&lower)).max(thread).max(widths[column]);
        }
        for row in &mut occupied {
            row.sort_unstable();
        }
        let mut next = LEFT + NAMES;
        let columns = widths
            .into_iter()
            .map(|width| {
                let column = (next, next + width);
                next += width + GAP;
                column
            })
            .collect();
        let matched = view
            .matches
            .iter()
            .enumerate()
            .flat_map(|(number, found)| found.nodes.iter().map(move |&node| (node, number)))
            .collect();
        Self { cells, occupied, columns, matched }
    }

    pub fn right(&self) -> f64 {
        self.columns.last().map_or(LEFT + NAMES, |column| column.1)
    }

    pub fn height(&self) -> f64 {
        self.occupied.len() as f64 * ROW
    }

    /// The number of a node's match.
    pub fn interaction(&self, node: NodeId) -> Option<usize> {
        self.matched.get(&node).copied()
    }

    /// The middle of a node.
    pub fn place(&self, node: NodeId) -> Option<(f64, f64)> {
        let &(column, row) = self.cells.get(&node)?;
        let (left, right) = self.columns[column];
        Some((f64::midpoint(left, right), row_top(row) + MIDDLE))
    }

    /// Whether a row has no node between two columns.
    fn is_free(&self, row: usize, from: usize, to: usize) -> bool {
        let next = self.occupied[row].partition_point(|&column| column <= from);
        self.occupied[row].get(next).is_none_or(|&column| column >= to)
    }

    /// The line from one node to another further right.
    pub fn path(&self, from: NodeId, to: NodeId, top: f64) -> Path {
        let (Some(start), Some(end)) = (self.place(from), self.place(to)) else { return Path::default() };
        let ((first, upper), (last, lower)) = (self.cells[&from], self.cells[&to]);
        let (y, z) = (start.1 + top, end.1 + top);
        let path = Path::from(start.0, y);
        let bend = |path: Path, column: usize, from: f64, to: f64| {
            let (x, next) = (self.columns[column].1, self.columns[column + 1].0);
            let middle = f64::midpoint(x, next);
            path.line(x, from).curve((middle, from), (middle, to), (next, to))
        };
        if first >= last {
            return path.line(end.0, z);
        }
        if upper == lower && self.is_free(upper, first, last) {
            return path.line(end.0, z);
        }
        if upper != lower && self.is_free(lower, first, last) {
            return bend(path, first, y, z).line(end.0, z);
        }
        if upper != lower && self.is_free(upper, first, last) {
            return bend(path, last - 1, y, z).line(end.0, z);
        }
        let channel = top + row_top(lower.max(upper)) - 2.0;
        bend(bend(path, first, y, channel), last - 1, channel, z).line(end.0, z)
    }
}

/// Where a row begins.
pub(super) fn row_top(row: usize) -> f64 {
    row as f64 * ROW
}

/// The two parts of a node's label, `j,k,m,l` and `i,v`. A long scenario name, which is the same for all nodes, is left out.
pub(super) fn labels(view: &OperationView<'_>, node: NodeId) -> (String, String) {
    let event = view.toeg.event(node);
    let scenario = view.names.names.text(view.toeg.operation().scenario);
    let short = scenario.chars().nth(6).is_none();
    let j = if short { format!("{},", SMALL.fit(scenario, 60.0)) } else { String::new() };
    let kind = match event.kind {
        Kind::Fork(thread) | Kind::Join(thread) => format!("({},{j}{thread})", event.kind.label()),
        other => other.label().to_owned(),
    };
    let upper = format!("{j}{},{},{kind}", event.thread, event.index);
    let lower = format!("{},{}", SMALL.fit(&view.names.task_label(event.task), 84.0), event.counter);
    (upper, lower)
}
