//! The graph of a task's activities, laid out within the task by the same layout as the model.

use rustc_hash::FxHashMap;

use crate::lqn::layout::{Graph, Layout, Link, Port, Shape, Wish};
use crate::lqn::{ActivityId, Body, EntryId, Fork, Join};
use crate::report::draw::lqn::numbers::{activity_demand, short};
use crate::report::draw::lqn::tasks::{LINE, SLANT, TaskBox};
use crate::report::draw::lqn::view::{Caller, View};
use crate::report::draw::text::{PLAIN, SMALL};

/// What a box within a task is.
pub(super) enum GraphPart {
    /// The row of compartments.
    Row,
    /// An activity, with its lines.
    Activity(ActivityId, Vec<String>),
    /// Where several follow or come together: `&`, `+`, or a loop's `*`.
    Operator(String),
    /// Where a request leaves the task.
    Exit,
}

/// An activity graph within its task.
pub(super) struct Inner {
    pub parts: Vec<GraphPart>,
    pub layout: Layout,
    /// Labels of the layout's arcs.
    pub labels: Vec<String>,
    /// Which arcs lead to an exit, and for which requests.
    pub arc_exits: Vec<bool>,
    pub width: f64,
    pub height: f64,
    /// Where the row of compartments begins.
    pub row_at: f64,
    /// Where each exit is along the foot of the layout, in the order of the requests of the task; the last is for the processor.
    pub exits: Vec<f64>,
}

struct Builder<'a> {
    view: &'a View<'a>,
    graph: Graph,
    parts: Vec<GraphPart>,
    labels: Vec<String>,
    arc_exits: Vec<bool>,
    boxes: FxHashMap<ActivityId, usize>,
}

/// Lays out the activities of a task under its compartments.
pub(super) fn lay_out(view: &View<'_>, made: &TaskBox, seconds: bool) -> Inner {
    let mut builder = Builder {
        view,
        graph: Graph::default(),
        parts: Vec::new(),
        labels: Vec::new(),
        arc_exits: Vec::new(),
        boxes: FxHashMap::default(),
    };
    builder.row(made);
    let task = view.task(made.task);
    for &id in task.activities.iter().filter(|id| id.index() < view.model.activities.len()) {
        builder.activity(id, seconds);
    }
    for (place, one) in made.compartments.iter().enumerate() {
        if let Some(first) = one.entry.and_then(|entry| starts(view, entry)) {
            builder.arc((0, place), first, String::new());
        }
    }
    for precedence in &task.precedences {
        builder.precedence(&precedence.join, precedence.fork.as_ref());
    }
    let exits = builder.exits(made);
    let layout = builder.graph.layout();
    let at = |shape: usize| layout.boxes[shape].x + layout.boxes[shape].width / 2.0;
    Inner {
        width: layout.width.max(made.width),
        height: layout.height + 4.0,
        row_at: layout.boxes[0].x,
        exits: exits.into_iter().map(at).collect(),
        parts: builder.parts,
        labels: builder.labels,
        arc_exits: builder.arc_exits,
        layout,
    }
}

fn starts(view: &View<'_>, entry: EntryId) -> Option<ActivityId> {
    match view.model.entries[entry.index()].body {
        Body::Activities(first) => Some(first),
        Body::Phases(_) => None,
    }
}

impl Builder<'_> {
    fn part(&mut self, part: GraphPart, width: f64, height: f64, wish: Wish) -> usize {
        self.parts.push(part);
        let middle = (width / 2.0, width / 2.0);
        self.graph.boxes.push(Shape { width, height, ports: vec![Port { top: middle, bottom: middle }], wish });
        self.parts.len() - 1
    }

    fn row(&mut self, made: &TaskBox) {
        let row = self.part(GraphPart::Row, made.width, made.row_height, Wish::Top);
        self.graph.boxes[row].ports = made
            .compartments
            .iter()
            .map(|one| {
                let side = (one.from + SLANT + 6.0, (one.to + SLANT / 2.0 - 6.0).max(one.from + SLANT + 6.0));
                Port { top: side, bottom: side }
            })
            .collect();
    }

    fn activity(&mut self, id: ActivityId, seconds: bool) {
        let activity = &self.view.model.activities[id.index()];
        let mut lines = vec![PLAIN.fit(&activity.name, 170.0)];
        let demand = activity_demand(&activity.work, seconds);
        lines.push(match &activity.replies[..] {
            [] => demand,
            [_] => format!("{demand} replies"),
            several => format!("{demand} {} replies", several.len()),
        });
        let width = lines.iter().enumerate().map(|(place, line)| if place == 0 { PLAIN } else { SMALL }.width(line));
        let width = width.fold(40.0, f64::max) + 14.0;
        let shape = self.part(GraphPart::Activity(id, lines), width, 2.0 * LINE + 8.0, Wish::Free);
        self.graph.boxes[shape].ports = vec![Port { top: (10.0, width - 10.0), bottom: (10.0, width - 10.0) }];
        self.boxes.insert(id, shape);
    }

    fn link(&mut self, from: (usize, usize), to: (usize, usize), label: String, exit: bool) {
        let size = (!label.is_empty()).then(|| (SMALL.width(&label), SMALL.height()));
        self.graph.arcs.push(Link { from, to, label: size });
        self.labels.push(label);
        self.arc_exits.push(exit);
    }

    fn arc(&mut self, from: (usize, usize), to: ActivityId, label: String) {
        if let Some(&to) = self.boxes.get(&to) {
            self.link(from, (to, 0), label, false);
        }
    }

    fn operator(&mut self, sign: String) -> usize {
        let size = (PLAIN.width(&sign) + 8.0).max(18.0);
        self.part(GraphPart::Operator(sign), size, 18.0, Wish::Free)
    }

    /// One arc of the graph of activities: what is joined, what follows.
    fn precedence(&mut self, join: &Join, fork: Option<&Fork>) {
        let Some(source) = self.join(join) else { return };
        match fork {
            None => {}
            Some(Fork::Sequence(next)) => self.arc((source, 0), *next, String::new()),
            Some(Fork::And(branches)) => {
                let sign = self.operator("&".to_owned());
                self.link((source, 0), (sign, 0), String::new(), false);
                for &branch in branches {
                    self.arc((sign, 0), branch, String::new());
                }
            }
            Some(Fork::Or(branches)) => {
                let sign = self.operator("+".to_owned());
                self.link((source, 0), (sign, 0), String::new(), false);
                for &(share, branch) in branches {
                    self.arc((sign, 0), branch, short(share));
                }
            }
            Some(Fork::Loop { bodies, end }) => {
                let sign = self.operator("*".to_owned());
                self.link((source, 0), (sign, 0), String::new(), false);
                for &(times, body) in bodies {
                    self.arc((sign, 0), body, format!("{}×", short(times)));
                }
                if let Some(end) = end {
                    self.arc((sign, 0), *end, "then".to_owned());
                }
            }
        }
    }

    /// The box that stands for what is joined.
    fn join(&mut self, join: &Join) -> Option<usize> {
        let (activities, sign) = match join {
            Join::Sequence(activity) => return self.boxes.get(activity).copied(),
            Join::And { activities, quorum: None } => (activities, "&".to_owned()),
            Join::And { activities, quorum: Some(quorum) } => (activities, format!("& {quorum}")),
            Join::Or(activities) => (activities, "+".to_owned()),
        };
        let sign = self.operator(sign);
        for activity in activities {
            if let Some(&from) = self.boxes.get(activity) {
                self.link((from, 0), (sign, 0), String::new(), false);
            }
        }
        Some(sign)
    }

    /// A way out for each request of the task, and one to its processor.
    fn exits(&mut self, made: &TaskBox) -> Vec<usize> {
        let view = self.view;
        let mut exits = Vec::new();
        for requests in view.requests.iter().filter(|requests| requests.task == made.task) {
            let exit = self.part(GraphPart::Exit, 8.0, 0.0, Wish::Bottom);
            exits.push(exit);
            if view.model.entries[requests.to.index()].task == made.task {
                continue;
            }
            let from = match requests.from {
                Caller::Activity(id) => self.boxes.get(&id).map(|&shape| (shape, 0)),
                Caller::Entry(id) => {
                    made.compartments.iter().position(|one| one.entry == Some(id)).map(|port| (0, port))
                }
            };
            if let Some(from) = from {
                self.link(from, (exit, 0), String::new(), true);
            }
        }
        let exit = self.part(GraphPart::Exit, 8.0, 0.0, Wish::Bottom);
        if made.own.is_none() && !view.is_left_out(view.task(made.task).processor) {
            self.link((0, made.compartments.len() - 1), (exit, 0), String::new(), true);
        }
        exits.push(exit);
        exits
    }
}
