//! Recursion over the least or greatest value of each key.
//!
//! The rounds find all keys, and which row's value rests on which. Values are then settled along these edges, components
//! of rows that rest on each other in topological order: where there is no circle, each row is worked off once, with its
//! final value. Within a component the best rows go first (as Dijkstra has it), and after some time in turn (as
//! Bellman and Ford have it), which bounds the work where going down makes values better.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::eval::evaluator::{Exhausted, Run};
use crate::eval::rows::NONE;
use crate::eval::whole::plan::WholePlan;
use crate::eval::whole::run::Whole;
use crate::value::Value;

/// Rows of a level under common numbers, and what rests on each.
struct Graph {
    /// The relations, and the number of each one's first row.
    offsets: Vec<(u32, u32)>,
    rows: u32,
    /// Where each row's successors begin; one more than rows.
    starts: Vec<u32>,
    successors: Vec<u32>,
}

impl Graph {
    fn number(&self, (relation, row): (u32, u32)) -> u32 {
        let place = self.offsets.iter().find(|(other, _)| *other == relation);
        place.expect("a relation of the level").1 + row
    }

    fn row(&self, number: u32) -> (u32, u32) {
        let place = self.offsets.partition_point(|(_, first)| *first <= number) - 1;
        let (relation, first) = self.offsets[place];
        (relation, number - first)
    }

    fn after(&self, number: u32) -> &[u32] {
        &self.successors[self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize]
    }

    /// The strongly connected component of each row (Tarjan, without recursion). A component has a higher number than all
    /// that can be reached from it. And the rows, component by component.
    fn components(&self) -> (Vec<u32>, Vec<u32>) {
        let rows = self.rows as usize;
        let (mut index, mut low) = (vec![NONE; rows], vec![0; rows]);
        let mut component = vec![NONE; rows];
        let (mut stack, mut order) = (Vec::new(), Vec::with_capacity(rows));
        let (mut next, mut components) = (0, 0);
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..self.rows {
            if index[root as usize] != NONE {
                continue;
            }
            calls.push((root, self.starts[root as usize]));
            while let Some((node, edge)) = calls.pop() {
                let place = node as usize;
                if index[place] == NONE {
                    (index[place], low[place]) = (next, next);
                    next += 1;
                    stack.push(node);
                }
                if edge < self.starts[place + 1] {
                    let other = self.successors[edge as usize];
                    calls.push((node, edge + 1));
                    if index[other as usize] == NONE {
                        calls.push((other, self.starts[other as usize]));
                    } else if component[other as usize] == NONE {
                        low[place] = low[place].min(index[other as usize]);
                    }
                    continue;
                }
                if low[place] == index[place] {
                    while let Some(member) = stack.pop() {
                        component[member as usize] = components;
                        order.push(member);
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
                if let Some((caller, _)) = calls.last() {
                    let caller = *caller as usize;
                    low[caller] = low[caller].min(low[place]);
                }
            }
        }
        (component, order)
    }
}

/// Rows of a component whose values have become better since they were worked off.
struct Queue {
    heap: BinaryHeap<(Rank, Reverse<u32>)>,
    turns: VecDeque<u32>,
    waiting: Vec<bool>,
    /// How many more rows are taken by rank.
    ranked: usize,
}

/// A value by how good it is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Greatest(Value),
    Least(Reverse<Value>),
}

impl Whole<'_, '_> {
    /// Brings the values of a level to their best.
    pub(super) fn settle(&mut self, members: &[u32], plans: &[WholePlan]) -> Run<()> {
        let graph = self.graph(members);
        let (component, mut order) = graph.components();
        order.reverse(); // what others rest on comes first
        self.settling = true;
        let mut before: Vec<u32> = vec![NONE; graph.rows as usize];
        let mut waiting = vec![false; graph.rows as usize];
        let mut start = 0;
        while start < order.len() {
            let here = component[order[start] as usize];
            let end = start + order[start..].partition_point(|row| component[*row as usize] == here);
            let rows = &order[start..end];
            start = end;
            if let [only] = rows
                && !graph.after(*only).contains(only)
            {
                if !graph.after(*only).is_empty() {
                    self.fire(graph.row(*only), plans)?;
                    self.better.clear();
                }
                continue;
            }
            let mut queue = Queue { heap: BinaryHeap::new(), turns: VecDeque::new(), waiting, ranked: rows.len() * 8 };
            for row in rows {
                self.enqueue(&graph, *row, &mut queue);
            }
            self.component(&graph, &component, rows.len(), &mut queue, &mut before, plans)?;
            waiting = queue.waiting;
        }
        self.settling = false;
        for member in members.iter().filter(|member| self.rules.derived[**member as usize].best.is_some()) {
            self.index_again(*member);
        }
        Ok(())
    }

    fn component(
        &mut self,
        graph: &Graph,
        component: &[u32],
        size: usize,
        queue: &mut Queue,
        before: &mut [u32],
        plans: &[WholePlan],
    ) -> Run<()> {
        let linear = plans.iter().all(|plan| plan.sources.len() < 2);
        let mut improved = 0;
        while let Some(row) = queue.pop() {
            self.fire(graph.row(row), plans)?;
            let better = std::mem::take(&mut self.better);
            for head in &better {
                let head_row = graph.number(*head);
                if component[head_row as usize] != component[row as usize] {
                    continue;
                }
                before[head_row as usize] = row;
                improved += 1;
                self.enqueue(graph, head_row, queue);
                // A value that rests on itself and has become better will do so for ever.
                if linear && improved % size == 0 && circle(before, head_row, size) {
                    return Err(Exhausted::Endless(self.culprit(head.0)));
                }
            }
            self.better = better;
            self.better.clear();
        }
        Ok(())
    }

    /// A rule by which the best values of a relation rest on others.
    fn culprit(&self, relation: u32) -> u32 {
        let rules = &self.rules.derived[relation as usize].rules;
        let recursive = rules.iter().find(|rule| !self.recursive(relation, **rule).is_empty());
        self.rules.rules[*recursive.expect("it rests on itself by one") as usize].source
    }

    fn enqueue(&self, graph: &Graph, number: u32, queue: &mut Queue) {
        let (relation, row) = graph.row(number);
        let best = self.rules.derived[relation as usize].best.expect("edges are between best values");
        let value = self.tables[self.table_of(relation)].cell(row, best.column);
        let rank = if best.greatest { Rank::Greatest(value) } else { Rank::Least(Reverse(value)) };
        if queue.ranked > 0 {
            queue.waiting[number as usize] = true;
            queue.heap.push((rank, Reverse(number)));
        } else if !queue.waiting[number as usize] {
            queue.waiting[number as usize] = true;
            queue.turns.push_back(number);
        }
    }

    /// Works off the rules that begin with this row.
    fn fire(&mut self, (relation, row): (u32, u32), plans: &[WholePlan]) -> Run<()> {
        self.window = (row, row + 1);
        for plan in plans.iter().filter(|plan| plan.delta == Some(relation) && !plan.sources.is_empty()) {
            let mut registers = vec![Value::from(0); plan.registers];
            self.go(plan, 0, &mut registers)?;
        }
        Ok(())
    }

    fn graph(&mut self, members: &[u32]) -> Graph {
        let (mut offsets, mut rows) = (Vec::new(), 0);
        for member in members.iter().filter(|member| self.rules.derived[**member as usize].best.is_some()) {
            offsets.push((*member, rows));
            rows += self.tables[self.table_of(*member)].len() as u32;
        }
        let mut graph = Graph { offsets, rows, starts: vec![0; rows as usize + 1], successors: Vec::new() };
        let edges = std::mem::take(&mut self.edges);
        for [source, _] in &edges {
            let number = graph.number(*source) as usize;
            graph.starts[number + 1] += 1;
        }
        for row in 0..rows as usize {
            graph.starts[row + 1] += graph.starts[row];
        }
        let mut places = graph.starts.clone();
        graph.successors = vec![0; edges.len()];
        for [source, head] in &edges {
            let place = &mut places[graph.number(*source) as usize];
            graph.successors[*place as usize] = graph.number(*head);
            *place += 1;
        }
        graph
    }

    /// Values have changed under the table's indexes.
    fn index_again(&mut self, relation: u32) {
        let table = self.table_of(relation);
        self.tables[table].index_again();
    }
}

impl Queue {
    fn pop(&mut self) -> Option<u32> {
        while let Some((_, Reverse(row))) = self.heap.pop() {
            // A row whose value has become better since stands further ahead as well.
            if std::mem::take(&mut self.waiting[row as usize]) {
                self.ranked = self.ranked.saturating_sub(1);
                return Some(row);
            }
        }
        let row = self.turns.pop_front()?;
        self.waiting[row as usize] = false;
        Some(row)
    }
}

/// Whether the way back from a row along what its value came from does not end.
fn circle(before: &[u32], row: u32, size: usize) -> bool {
    let mut at = row;
    for _ in 0..=size {
        at = before[at as usize];
        if at == NONE {
            return false;
        }
    }
    true
}
