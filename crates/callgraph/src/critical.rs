//! The critical path of an operation: what its duration is made of, from its end backwards.
//!
//! At each moment the path is in the work that ended last before the moment from which the path was followed: a call that was waited for, a thread,
//! a one-way call. What runs beside it has slack and is not on the path. The end of an operation is the end of all its work, one-way calls and threads
//! included. Every nanosecond between begin and end belongs to one call, either to its function or to the way to its function and back.
//!
//! Clocks of processors differ. A function that was waited for lies in the middle of its call, as the caller's clock has it, where the two run on
//! different processors. Nothing tells this of one-way calls and threads: their clocks are taken as they are, and nothing begins before what started it.

use std::collections::BTreeMap;

use crate::calls::{Call, CallTree};
use crate::context::Key;
use crate::graph::Graph;
use crate::profile::Profile;
use crate::record::{Reading, Tables};

/// A stretch of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The call, by its place in [`Profile::calls`].
    pub call: usize,
    /// Nanoseconds from the begin of the operation.
    pub begin: i64,
    /// The same of its end.
    pub end: i64,
    /// Whether it is between caller and function, and not in the function.
    pub transit: bool,
}

/// Nanoseconds on critical paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnPath {
    /// Within functions.
    pub own: i128,
    /// Between callers and functions.
    pub transit: i128,
}

/// The critical paths of all operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPaths {
    /// How many operations have one.
    pub operations: u64,
    /// How many have none, for want of times on the wall.
    pub untimed: u64,
    /// The sum of their lengths, in nanoseconds.
    pub length: i128,
    /// By function, or threads of one, in no order that means anything.
    pub on_path: BTreeMap<Key, OnPath>,
    /// The path of the longest operation, from its begin to its end; stretches follow each other without a gap.
    pub longest: Vec<Stretch>,
}

impl CriticalPaths {
    /// The critical paths of a profile that kept its calls; none for one that did not.
    pub fn of(profile: &Profile) -> Option<Self> {
        let calls = profile.calls.as_ref()?;
        let timeline = Timeline::of(calls, profile.tables());
        let mut paths = Self::default();
        let mut longest: Option<(i64, usize)> = None;
        let name = |root: usize| {
            let call = &calls.calls()[root];
            (profile.tables().chain_text(call.chain), call.event)
        };
        for root in (0..calls.calls().len()).filter(|call| calls.parent(*call).is_none()) {
            let Some(window) = timeline.whole[root] else {
                paths.untimed += 1;
                continue;
            };
            paths.operations += 1;
            paths.length += i128::from(window.length());
            timeline.walk(root, |stretch| {
                let on_path = paths.on_path.entry(calls.calls()[stretch.call].key).or_default();
                let time = if stretch.transit { &mut on_path.transit } else { &mut on_path.own };
                *time += i128::from(stretch.end - stretch.begin);
            });
            // Of equally long ones the first by name, whatever the order of the records.
            let ahead = longest.is_none_or(|(length, other)| {
                length.cmp(&window.length()).then_with(|| name(root).cmp(&name(other))).is_lt()
            });
            if ahead {
                longest = Some((window.length(), root));
            }
        }
        if let Some((_, root)) = longest {
            timeline.walk(root, |stretch| paths.longest.push(stretch));
            paths.longest.reverse();
        }
        Some(paths)
    }

    /// Nanoseconds by node of a summary, in the order of the nodes.
    pub fn by_node(&self, graph: &Graph) -> BTreeMap<usize, OnPath> {
        let mut nodes: BTreeMap<usize, OnPath> = BTreeMap::new();
        for (key, time) in &self.on_path {
            let Some(node) = graph.node_of(*key) else { continue };
            let sum = nodes.entry(node).or_default();
            (sum.own, sum.transit) = (sum.own + time.own, sum.transit + time.transit);
        }
        nodes
    }
}

/// An interval in nanoseconds; it never ends before it begins.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: i64,
    end: i64,
}

impl Window {
    fn of(reading: Reading) -> Option<Self> {
        let known = reading.begin != i64::MIN && reading.end != i64::MIN;
        // Beyond a century and a half from the epoch nothing is a time on the wall, and differences would not fit.
        let sound = |time: i64| time.unsigned_abs() < i64::MAX as u64 / 2;
        (known && sound(reading.begin) && sound(reading.end))
            .then(|| Self { begin: reading.begin, end: reading.end.max(reading.begin) })
    }

    fn shifted(self, shift: i64) -> Self {
        Self { begin: self.begin.saturating_add(shift), end: self.end.saturating_add(shift) }
    }

    fn length(self) -> i64 {
        self.end.saturating_sub(self.begin)
    }
}

/// All calls on the clock of their operation.
struct Timeline<'a> {
    calls: &'a [Call],
    /// From stub to stub, or from begin to end of what has no stub.
    outer: Vec<Option<Window>>,
    /// The function itself.
    inner: Vec<Option<Window>>,
    /// The function and all that it started.
    whole: Vec<Option<Window>>,
    /// For each call its children with the ends at which they may be joined, the last first.
    ends: Vec<(i64, u32)>,
    starts: Vec<usize>,
}

impl<'a> Timeline<'a> {
    fn of(tree: &'a CallTree, tables: &Tables) -> Self {
        let calls = tree.calls();
        let (outer, inner) = windows(tree, tables);
        let mut whole = outer.clone();
        for call in (0..calls.len()).rev() {
            let Some((window, parent)) = whole[call].zip(tree.parent(call)) else { continue };
            if let Some(around) = &mut whole[parent] {
                around.end = around.end.max(window.end);
            }
        }
        let mut timeline = Self { calls, outer, inner, whole, ends: Vec::new(), starts: vec![0; calls.len() + 1] };
        timeline.list_ends(tree);
        timeline
    }

    /// When each child may be joined: when all that it started has ended and, if it was waited for, when it returned.
    fn list_ends(&mut self, tree: &CallTree) {
        let ends = |call: usize| {
            let (outer, whole) = (self.outer[call]?, self.whole[call]?);
            let returned = (!self.calls[call].detached && outer.end < whole.end).then_some(outer.end);
            Some([Some(whole.end), returned])
        };
        let mut listed: Vec<(u32, i64, u32)> = Vec::with_capacity(self.calls.len());
        for call in 0..self.calls.len() {
            let Some(parent) = tree.parent(call) else { continue };
            listed.extend(ends(call).into_iter().flatten().flatten().map(|end| (parent as u32, end, call as u32)));
        }
        // Children of one call are in the order of their stubs, whatever the order of the records.
        let at = |call: u32| (self.calls[call as usize].at, call);
        listed.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then(other.1.cmp(&one.1)).then_with(|| at(other.2).cmp(&at(one.2)))
        });
        for (parent, ..) in &listed {
            self.starts[*parent as usize + 1] += 1;
        }
        for call in 0..self.calls.len() {
            self.starts[call + 1] += self.starts[call];
        }
        self.ends = listed.into_iter().map(|(_, end, call)| (end, call)).collect();
    }

    /// Follows the path of an operation from its end to its begin.
    fn walk(&self, root: usize, mut tell: impl FnMut(Stretch)) {
        let Some(whole) = self.whole[root] else { return };
        let mut tell = |call: usize, begin: i64, end: i64, transit: bool| {
            if begin < end {
                let [begin, end] = [begin, end].map(|time| time.saturating_sub(whole.begin));
                tell(Stretch { call, begin, end, transit });
            }
        };
        let mut open = vec![PathStep { call: root, floor: whole.begin, now: whole.end, next: self.starts[root] }];
        while let Some(step) = open.last_mut() {
            let call = step.call;
            let joined = self.ends[step.next..self.starts[call + 1]].iter().position(|(end, _)| *end <= step.now);
            let Some(place) = joined.filter(|place| self.ends[step.next + place].0 > step.floor) else {
                self.tell_own(call, step.floor, step.now, &mut tell);
                open.pop();
                continue;
            };
            let (end, child) = self.ends[step.next + place];
            step.next += place + 1;
            self.tell_own(call, end, step.now, &mut tell);
            let begin = self.outer[child as usize].map_or(end, |window| window.begin);
            let floor = begin.clamp(step.floor, end);
            step.now = floor;
            open.push(PathStep { call: child as usize, floor, now: end, next: self.starts[child as usize] });
        }
    }

    /// A stretch of a call itself: what lies outside of the function is the way to it or back, or from it to a function that it started one-way.
    fn tell_own(&self, call: usize, begin: i64, end: i64, tell: &mut impl FnMut(usize, i64, i64, bool)) {
        let Some(inner) = self.inner[call] else {
            tell(call, begin, end, true);
            return;
        };
        let (into, out) = (inner.begin.clamp(begin, end), inner.end.clamp(begin, end));
        tell(call, out, end, true);
        tell(call, into, out, false);
        tell(call, begin, into, true);
    }
}

/// A call that the path is in: it covers what lies between `floor` and `now`, and looks at ends from `next` on.
struct PathStep {
    call: usize,
    floor: i64,
    now: i64,
    next: usize,
}

/// Windows of all calls and of their functions, on the clock of the call at the root.
fn windows(tree: &CallTree, tables: &Tables) -> (Vec<Option<Window>>, Vec<Option<Window>>) {
    let calls = tree.calls();
    let (mut outer, mut inner) = (vec![None; calls.len()], vec![None; calls.len()]);
    // What has to be added to the clock of each function.
    let mut shifts = vec![0i64; calls.len()];
    for (number, call) in calls.iter().enumerate() {
        let parent = tree.parent(number);
        let around = parent.map_or(0, |parent| shifts[parent]);
        let (outside, inside) = (Window::of(call.outside), Window::of(call.inside));
        let processor = |site| tables.of(site).processor;
        let same_clock = call.caller.is_none_or(|caller| processor(caller) == processor(call.site));
        shifts[number] = match (outside, inside) {
            (Some(outside), Some(inside)) if !(same_clock && within(inside, outside)) => {
                around.saturating_add(middle(outside).saturating_sub(middle(inside)))
            }
            (None, Some(inside)) => {
                let begun = parent
                    .and_then(|parent| inner[parent].or(outer[parent]))
                    .map_or(i64::MIN, |window: Window| window.begin);
                around.saturating_add(begun.saturating_sub(inside.begin.saturating_add(around)).max(0))
            }
            _ => around,
        };
        inner[number] = inside.map(|window| window.shifted(shifts[number]));
        outer[number] = outside.map(|window| window.shifted(around)).or(inner[number]);
    }
    (outer, inner)
}

fn within(inside: Window, outside: Window) -> bool {
    outside.begin <= inside.begin && inside.end <= outside.end
}

fn middle(window: Window) -> i64 {
    window.begin + window.length() / 2
}
