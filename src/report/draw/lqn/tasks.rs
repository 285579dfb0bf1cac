//! The shape of a task: compartments, what stands in them, and where arcs may touch.

use crate::lqn::layout::{Port, Shape, Wish};
use crate::lqn::results::Results;
use crate::lqn::{EntryId, ProcessorId, Scheduling, TaskId};
use crate::report::draw::lqn::activities::{self, Inner};
use crate::report::draw::lqn::numbers::{braces, entry_demands, percent, short, time};
use crate::report::draw::lqn::view::View;
use crate::report::draw::text::{Face, NAME, PLAIN, SMALL};

/// How far the top of a parallelogram is to the right of its foot.
pub(super) const SLANT: f64 = 12.0;
/// Room left and right of text in a compartment.
const PAD: f64 = 9.0;
/// Room above the first and below the last line.
const PAD_Y: f64 = 6.0;
/// From line to line.
pub(super) const LINE: f64 = 15.0;
/// The most that a name may take.
const NAME_WIDTH: f64 = 190.0;

/// A line of text in a compartment.
pub(super) struct Line {
    pub face: Face,
    pub dim: bool,
    pub text: String,
}

/// A compartment.
pub(super) struct Compartment {
    /// From where to where, at the foot of the row of compartments.
    pub from: f64,
    pub to: f64,
    pub lines: Vec<Line>,
    pub entry: Option<EntryId>,
}

/// How busy something is.
#[derive(Clone, Copy)]
pub(super) struct Busy {
    /// Mean number of busy servers.
    pub servers: f64,
    /// Their share of all; `None` where there are as many as needed.
    pub share: Option<f64>,
}

impl Busy {
    fn of(servers: f64, capacity: f64) -> Self {
        Self { servers, share: capacity.is_finite().then_some(servers / capacity) }
    }

    /// The class of its colour, from 1 to 6. What is far from its limit is cool: orange begins at 80 %, red at 95 %, as in text.
    pub fn class(self) -> Option<u8> {
        Some(match self.share? {
            share if share < 0.2 => 1,
            share if share < 0.4 => 2,
            share if share < 0.6 => 3,
            share if share < 0.8 => 4,
            share if share < 0.95 => 5,
            _ => 6,
        })
    }

    /// As it is printed.
    pub fn text(self) -> String {
        match self.share {
            Some(share) => format!("{} busy", percent(share)),
            None => format!("{} busy", short(self.servers)),
        }
    }
}

/// An ellipse beside a task: its own processor.
pub(super) struct Ellipse {
    pub processor: ProcessorId,
    pub lines: Vec<Line>,
    pub width: f64,
    pub height: f64,
}

/// A task ready to be placed.
pub(super) struct TaskBox {
    pub task: TaskId,
    pub compartments: Vec<Compartment>,
    /// Of the row of compartments.
    pub row_height: f64,
    /// Of the parallelogram.
    pub width: f64,
    pub height: f64,
    /// Where compartments begin, at the foot of the row.
    pub base: f64,
    pub inner: Option<Inner>,
    /// Its processor, where no other task is on it.
    pub own: Option<Ellipse>,
    /// Requests to itself, a line each, under the parallelogram's right.
    pub to_itself: Vec<String>,
}

/// How far an own processor stands from its task.
pub(super) const BESIDE: f64 = 16.0;

impl TaskBox {
    pub fn new(view: &View<'_>, task: TaskId, results: Option<&Results>, seconds: bool) -> Self {
        let mut compartments: Vec<Compartment> =
            view.entries(task).map(|entry| compartment(entry_lines(view, entry, seconds), Some(entry))).collect();
        compartments.push(compartment(task_lines(view, task, results, seconds), None));
        let mut next = 0.0;
        for one in &mut compartments {
            let width = one.to;
            (one.from, one.to) = (next, next + width);
            next += width;
        }
        let lines = compartments.iter().map(|one| one.lines.len()).max().unwrap_or(1);
        let row_height = lines as f64 * LINE + 2.0 * PAD_Y;
        let mut made = Self {
            task,
            compartments,
            row_height,
            width: next + SLANT,
            height: row_height,
            base: 0.0,
            inner: None,
            own: own_processor(view, task, results),
            to_itself: to_itself(view, task),
        };
        // What stands beside a task is no higher than it, so that arcs from below the one never begin below the other.
        let beside = made.own.as_ref().map_or(0.0, |own| own.height).max(made.to_itself.len() as f64 * LINE);
        made.row_height = made.row_height.max(beside);
        made.height = made.row_height;
        if view.shows_activities(task) {
            let inner = activities::lay_out(view, &made, seconds);
            made.width = inner.width + 2.0 * SLANT;
            made.height = inner.height;
            made.base = inner.row_at + SLANT / 2.0;
            made.inner = Some(inner);
            // The row goes from side to side.
            let (first, last) = (-made.base, made.width - SLANT - made.base);
            if let Some(one) = made.compartments.first_mut() {
                one.from = first;
            }
            if let Some(one) = made.compartments.last_mut() {
                one.to = last;
            }
        }
        made
    }

    /// Where a compartment's border is at some height, from the left and top of the task.
    pub fn border(&self, at: f64, y: f64) -> f64 {
        self.base + at + SLANT * (1.0 - y / self.height)
    }

    /// The task as the layout sees it: first the ports of its entries, then one for the task itself, then those of activities.
    pub fn shape(&self, view: &View<'_>) -> Shape {
        let inset = |from: f64, to: f64| {
            if to - from > 24.0 { (from + 8.0, to - 8.0) } else { (f64::midpoint(from, to), f64::midpoint(from, to)) }
        };
        let mut ports: Vec<Port> = self
            .compartments
            .iter()
            .map(|one| Port {
                top: inset(self.border(one.from, 0.0), self.border(one.to, 0.0)),
                bottom: inset(self.border(one.from, self.height), self.border(one.to, self.height)),
            })
            .collect();
        let exits = self.inner.iter().flat_map(|inner| &inner.exits);
        ports.extend(exits.map(|&x| Port { top: (x + SLANT, x + SLANT), bottom: (x + SLANT, x + SLANT) }));
        let beside = self.own.as_ref().map_or(0.0, |own| BESIDE + own.width);
        let below = self.to_itself.iter().map(|text| SMALL.width(text)).fold(0.0, f64::max);
        Shape {
            width: (self.width + beside + if below > 0.0 { 26.0 + below } else { 0.0 }).max(self.width),
            height: self.height,
            ports,
            wish: match view.task(self.task).scheduling {
                Scheduling::Reference | Scheduling::Burst => Wish::Top,
                _ => Wish::Free,
            },
        }
    }
}

fn compartment(lines: Vec<Line>, entry: Option<EntryId>) -> Compartment {
    let width = lines.iter().map(|line| line.face.width(&line.text)).fold(38.0, f64::max);
    // Room for the slant, too: half of it on each side is enough, since lines are centred on it.
    Compartment { from: 0.0, to: width + 2.0 * PAD + SLANT / 2.0, lines, entry }
}

fn plain(text: String) -> Line {
    Line { face: PLAIN, dim: false, text }
}

fn dim(text: String) -> Line {
    Line { face: SMALL, dim: true, text }
}

fn name(text: &str) -> Line {
    Line { face: NAME, dim: false, text: NAME.fit(text, NAME_WIDTH) }
}

fn entry_lines(view: &View<'_>, entry: EntryId, seconds: bool) -> Vec<Line> {
    let entry = &view.model.entries[entry.index()];
    let mut lines = vec![plain(PLAIN.fit(&entry.name, NAME_WIDTH))];
    lines.push(match entry_demands(entry, seconds) {
        Some(demands) => dim(demands),
        None if view.shows_activities(entry.task) => dim(String::new()),
        None => dim("activities".to_owned()),
    });
    lines
}

fn task_lines(view: &View<'_>, id: TaskId, results: Option<&Results>, seconds: bool) -> Vec<Line> {
    let task = view.task(id);
    let mut lines = vec![name(&task.name)];
    let mut about = braces(task.multiplicity, task.replicas);
    if task.think_time > 0.0 {
        let space = if about.is_empty() { "" } else { " " };
        about = format!("{about}{space}Z = {}", time(task.think_time, seconds));
    }
    if task.priority != 0 {
        let space = if about.is_empty() { "" } else { " " };
        about = format!("{about}{space}priority {}", task.priority);
    }
    if !about.is_empty() {
        lines.push(dim(about));
    }
    if let Some(busy) = busy_task(view, id, results) {
        lines.push(dim(busy.text()));
    } else if let (Some(result), Scheduling::Reference) =
        (results.and_then(|results| results.tasks.get(id.index())), task.scheduling)
    {
        lines.push(dim(
            format!("{}/s", short(result.throughput)).replace("/s", if seconds { "/s" } else { " per time" })
        ));
    }
    lines
}

/// How busy a task's threads are. Users of a reference task are not busy, they wait.
pub(super) fn busy_task(view: &View<'_>, id: TaskId, results: Option<&Results>) -> Option<Busy> {
    let task = view.task(id);
    if task.scheduling.is_source() {
        return None;
    }
    // Without a steady state ever more threads are.
    let steady = results.filter(|results| !results.convergence.saturated)?;
    steady.tasks.get(id.index()).map(|result| Busy::of(result.utilization, task.multiplicity.servers()))
}

/// How busy a processor is.
pub(super) fn busy_processor(view: &View<'_>, id: ProcessorId, results: Option<&Results>) -> Option<Busy> {
    results?.processors.get(id.index()).map(|result| Busy::of(result.utilization, view.model.capacity(id)))
}

fn own_processor(view: &View<'_>, task: TaskId, results: Option<&Results>) -> Option<Ellipse> {
    let processor = view.task(task).processor;
    if view.is_left_out(processor) {
        return None;
    }
    // A processor is its task's own only if the whole model has no other task on it.
    let alone = view.tasks_on.get(processor.index()) == Some(&1);
    (alone && processor.index() < view.model.processors.len()).then(|| ellipse(view, processor, results))
}

/// A processor: its name, how many servers, how busy.
pub(super) fn ellipse(view: &View<'_>, id: ProcessorId, results: Option<&Results>) -> Ellipse {
    let processor = &view.model.processors[id.index()];
    let mut lines = vec![plain(PLAIN.fit(&processor.name, 130.0))];
    let servers = braces(processor.multiplicity, processor.replicas);
    if !servers.is_empty() {
        lines.push(dim(servers));
    }
    if let Some(busy) = busy_processor(view, id, results) {
        lines.push(dim(busy.text()));
    }
    let wide = lines.iter().map(|line| line.face.width(&line.text)).fold(20.0, f64::max);
    let high = lines.len() as f64 * LINE;
    // The smallest ellipse of these proportions around the text.
    Ellipse { processor: id, lines, width: (wide + 4.0) * 1.3, height: (high + 2.0) * 1.45 }
}

fn to_itself(view: &View<'_>, task: TaskId) -> Vec<String> {
    view.requests
        .iter()
        .filter(|requests| requests.task == task && view.model.entries[requests.to.index()].task == task)
        .map(|requests| {
            let to = SMALL.fit(&view.model.entries[requests.to.index()].name, 110.0);
            format!("{to} {}", super::numbers::means(&requests.means))
        })
        .take(40)
        .collect()
}
