//! A period along time: the figures that its model is made of, block by block.
//!
//! Blocks are the intervals of the store; of very many, neighbours are one. What every figure needs is in the counts and sums of a sub-model, which intervals of any age
//! have in full.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyelog::lqn::submodel::{EntryTotal, Interaction, ScenarioTotal, SubModel};

use crate::deployment::Times;
use crate::store::LEVELS;

/// How many blocks there are at most.
const MOST_BLOCKS: usize = 240;
/// Of how many figures the history is kept.
const MOST_FIGURES: usize = 1 << 14;
const SECOND: f64 = 1e9;

/// A stretch of time. Where nothing was recorded it has no operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its begin, nanoseconds since 1970.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Spans that it has.
    pub spans: u64,
    /// Operations that it has.
    pub operations: u64,
}

impl Block {
    fn without(from: u64, to: u64) -> Self {
        Self { from, to, spans: 0, operations: 0 }
    }

    fn seconds(&self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / SECOND
    }
}

/// A service of a task.
pub type Entry = (Arc<str>, Arc<str>);

/// A figure of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Operations of a scenario in a second.
    Rate(Arc<str>),
    /// Its mean response time.
    Response(Arc<str>),
    /// Work of an invocation.
    Work(Entry),
    /// Requests of an invocation to another entry.
    Calls(Entry, Entry),
    /// Invocations of an instance of a task, of all that the task has: its name, its instance and its machine.
    Instance([Arc<str>; 3]),
}

/// What a block has of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// So many values: seconds, operations or invocations.
    pub count: f64,
    /// Their sum.
    pub sum: f64,
    /// Of work, the sum as it were if all that was under way had shared one server.
    pub share: f64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.share += other.share;
    }
}

/// What an interval adds to a history.
#[derive(Clone, Debug)]
pub struct Glance {
    block: Block,
    cells: Vec<(Figure, Cell)>,
}

impl Glance {
    /// Of an interval: its begin and length, nanoseconds, and what it has.
    pub fn of(start: u64, length: u64, spans: u64, submodel: &SubModel) -> Self {
        let operations = submodel.scenarios.values().map(|total| total.operations).sum();
        let block = Block { from: start, to: start.saturating_add(length), spans, operations };
        let mut own = Self { block, cells: Vec::new() };
        let names = Labels::of(submodel);
        for (name, total) in &submodel.scenarios {
            let name: Arc<str> = submodel.names.text(*name).into();
            let sum = total.operations as f64 * weight(total);
            own.put(Figure::Rate(Arc::clone(&name)), Cell { count: 0.0, sum, share: 0.0 });
            let response = &total.response;
            let cell = Cell { count: response.count as f64, sum: response.sum.as_f64(), share: 0.0 };
            own.put(Figure::Response(name), cell);
        }
        let at_work = at_work(submodel, length as f64 / SECOND);
        for entry in submodel.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
            own.entry(submodel, &names, entry, at_work.get(submodel.names.text(entry.task)).copied().unwrap_or(0.0));
        }
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for (replica, seen) in submodel.deployment.replicas() {
            *totals.entry(submodel.names.text(replica.task)).or_default() += seen.invocations as f64;
        }
        for (replica, seen) in submodel.deployment.replicas() {
            let text = |name| Arc::from(submodel.names.text(name));
            let figure = Figure::Instance([text(replica.task), text(replica.instance), text(replica.machine)]);
            let count = totals.get(submodel.names.text(replica.task)).copied().unwrap_or(0.0);
            own.put(figure, Cell { count, sum: seen.invocations as f64, share: 0.0 });
        }
        own
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        // Names are shared by the figures of an interval, but for a few.
        size_of::<Self>() + self.cells.len() * (size_of::<(Figure, Cell)>() + 16)
    }

    fn put(&mut self, figure: Figure, cell: Cell) {
        self.cells.push((figure, cell));
    }

    fn entry(&mut self, submodel: &SubModel, names: &Labels, entry: &EntryTotal, at_work: f64) {
        let own = names.of_entry(submodel, entry);
        let timed = entry.work.values().map(|work| work.exclusive.count).max().unwrap_or(0);
        let whole = entry.own_time();
        let cell = Cell { count: timed as f64, sum: whole, share: whole / (1.0 + at_work) };
        self.put(Figure::Work(own.clone()), cell);
        let mut calls: BTreeMap<Entry, f64> = BTreeMap::new();
        for ((_, to), requests) in entry.work.values().flat_map(|work| &work.requests) {
            *calls.entry(names.of_entry(submodel, submodel.entry(*to))).or_default() += requests.count as f64;
        }
        let count = entry.invocations as f64;
        for (to, sum) in calls {
            self.put(Figure::Calls(own.clone(), to), Cell { count, sum, share: 0.0 });
        }
    }
}

/// A period, block by block.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order of time.
    pub blocks: Vec<Block>,
    /// Of each figure its cells, as many as there are blocks once it is finished.
    pub figures: BTreeMap<Figure, Vec<Cell>>,
    /// Figures of which nothing is kept, since there are too many.
    pub left_out: u64,
    /// Times at which operations were taken in, whether any came or not. Empty where nothing tells: then they were at any time between the first block and the last.
    observed: Times,
}

impl History {
    /// One of which it is known when operations were taken in.
    pub fn of(observed: Times) -> Self {
        Self { observed, ..Self::default() }
    }

    /// Adds blocks without operations from the last one to a time. They are as long as the last one, unless there were too many: a border lies a few blocks from an end at
    /// least, and one long block without operations would draw those before it into the time without.
    fn go_on_until(&mut self, end: u64) {
        let before = self.blocks.last().map(|last| last.to);
        let silent: Times = match before.filter(|_| self.observed.is_empty()) {
            Some(before) => vec![(before, end)],
            None => {
                let before = before.unwrap_or(0);
                self.observed.iter().map(|(from, to)| ((*from).max(before), (*to).min(end))).collect()
            }
        };
        let silent = silent.into_iter().filter(|(from, to)| from < to);
        let all: u64 = silent.clone().map(|(from, to)| to - from).fold(0, u64::saturating_add);
        let usual = self.blocks.last().map_or(LEVELS[0].length, |last| last.to - last.from);
        let length = usual.max(all / MOST_BLOCKS as u64).max(1);
        for (from, to) in silent {
            let count = (to - from).div_ceil(length);
            let at = |number: u64| from + (u128::from(to - from) * u128::from(number) / u128::from(count)) as u64;
            self.blocks.extend((0..count).map(|number| Block::without(at(number), at(number + 1))));
        }
    }

    /// Takes in an interval that begins no earlier than those before: its begin and length, nanoseconds, and what it has.
    pub fn add(&mut self, start: u64, length: u64, spans: u64, submodel: &SubModel) {
        self.take_in(&Glance::of(start, length, spans, submodel));
    }

    /// The same of what was seen of it.
    pub fn take_in(&mut self, glance: &Glance) {
        let own = glance.block;
        match self.blocks.last_mut() {
            // What came late lies in an interval that was merged before.
            Some(last) if own.from < last.to => {
                last.to = last.to.max(own.to);
                last.spans += own.spans;
                last.operations += own.operations;
            }
            _ => {
                self.go_on_until(own.from);
                self.blocks.push(own);
            }
        }
        for (figure, cell) in &glance.cells {
            self.put(figure, *cell);
        }
        if self.blocks.len() > 2 * MOST_BLOCKS {
            self.halve();
        }
    }

    /// Adds to the last block.
    fn put(&mut self, figure: &Figure, cell: Cell) {
        let is_full = self.figures.len() >= MOST_FIGURES;
        let cells = match self.figures.get_mut(figure) {
            Some(cells) => cells,
            None if is_full => {
                self.left_out += 1;
                return;
            }
            None => self.figures.entry(figure.clone()).or_default(),
        };
        cells.resize(self.blocks.len(), Cell::default());
        if let Some(last) = cells.last_mut() {
            last.add(cell);
        }
    }

    /// Makes one of each two blocks.
    fn halve(&mut self) {
        let join = |pair: &[Block]| {
            let (first, last) = (pair[0], pair[pair.len() - 1]);
            let sum = |of: fn(&Block) -> u64| pair.iter().map(of).sum();
            Block { from: first.from, to: last.to, spans: sum(|own| own.spans), operations: sum(|own| own.operations) }
        };
        self.blocks = self.blocks.chunks(2).map(join).collect();
        for cells in self.figures.values_mut() {
            let join = |pair: &[Cell]| {
                pair.iter().fold(Cell::default(), |mut sum, own| {
                    sum.add(*own);
                    sum
                })
            };
            *cells = cells.chunks(2).map(join).collect();
        }
    }

    /// Completes what depends on all blocks: seconds of rates, and what callers and tasks did where they did not call, or an instance was not there.
    pub fn finish(&mut self) {
        if let Some((_, end)) = self.observed.last() {
            self.go_on_until(*end);
        }
        while self.blocks.len() > MOST_BLOCKS {
            self.halve();
        }
        let blocks = self.blocks.len();
        for (figure, cells) in &mut self.figures {
            cells.resize(blocks, Cell::default());
            if let Figure::Rate(_) = figure {
                for (cell, block) in cells.iter_mut().zip(&self.blocks) {
                    cell.count = block.seconds();
                }
            }
        }
        // An entry that makes no calls in a block has no cell of calls there.
        let mut invocations: BTreeMap<Entry, Vec<f64>> = BTreeMap::new();
        let mut of_tasks: BTreeMap<Arc<str>, Vec<f64>> = BTreeMap::new();
        let raise = |all: &mut Vec<f64>, cells: &[Cell]| {
            all.resize(blocks, 0.0);
            for (own, cell) in all.iter_mut().zip(cells) {
                *own = own.max(cell.count);
            }
        };
        for (figure, cells) in &self.figures {
            match figure {
                Figure::Work(entry) | Figure::Calls(entry, _) => {
                    raise(invocations.entry(entry.clone()).or_default(), cells);
                }
                Figure::Instance([task, ..]) => raise(of_tasks.entry(Arc::clone(task)).or_default(), cells),
                Figure::Rate(_) | Figure::Response(_) => {}
            }
        }
        for (figure, cells) in &mut self.figures {
            let counts = match figure {
                Figure::Calls(entry, _) => &invocations[entry],
                Figure::Instance([task, ..]) => &of_tasks[task],
                Figure::Rate(_) | Figure::Response(_) | Figure::Work(_) => continue,
            };
            for (cell, count) in cells.iter_mut().zip(counts) {
                cell.count = *count;
            }
        }
    }
}

/// For how many operations one stands, where that is known.
fn weight(total: &ScenarioTotal) -> f64 {
    let recorded = total.sampled.mean_weight().filter(|_| total.sampled.operations >= total.operations);
    recorded.unwrap_or(1.0).max(1.0)
}

/// How many invocations of a task were at work at a time on the mean, on each of its instances.
fn at_work(submodel: &SubModel, seconds: f64) -> BTreeMap<&str, f64> {
    let all = |of: fn(&ScenarioTotal) -> f64| submodel.scenarios.values().map(of).sum::<f64>();
    let operations = all(|total| total.operations as f64);
    let weight = if operations > 0.0 { all(|total| total.operations as f64 * weight(total)) / operations } else { 1.0 };
    let mut instances: BTreeMap<&str, f64> = BTreeMap::new();
    for (replica, _) in submodel.deployment.replicas() {
        *instances.entry(submodel.names.text(replica.task)).or_default() += 1.0;
    }
    let mut found: BTreeMap<&str, f64> = BTreeMap::new();
    for entry in submodel.entries() {
        let task = submodel.names.text(entry.task);
        let servers = instances.get(task).copied().unwrap_or(1.0);
        *found.entry(task).or_default() += entry.own_time() * weight / seconds.max(1e-9) / servers;
    }
    found
}

/// What entries are called, made once an interval.
struct Labels(Vec<Arc<str>>);

impl Labels {
    fn of(submodel: &SubModel) -> Self {
        let names = submodel.entries().iter().flat_map(|entry| [entry.task, entry.service]);
        let most = names.map(|name| if name.is_some() { name.index() + 1 } else { 0 }).max().unwrap_or(0);
        let mut all: Vec<Arc<str>> = vec![Arc::from(""); most];
        for name in submodel.entries().iter().flat_map(|entry| [entry.task, entry.service]) {
            if name.is_some() && all[name.index()].is_empty() {
                all[name.index()] = submodel.names.text(name).into();
            }
        }
        Self(all)
    }

    fn of_entry(&self, submodel: &SubModel, entry: &EntryTotal) -> Entry {
        let text = |name: dyelog::diagnostic::names::Name| {
            if name.is_some() { Arc::clone(&self.0[name.index()]) } else { Arc::from(submodel.names.text(name)) }
        };
        (text(entry.task), text(entry.service))
    }
}
