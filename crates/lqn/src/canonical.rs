//! One form for models that mean the same, so that every language gives back what it was given.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::{
    ActivityId, Body, Call, CallKind, EntryId, Fork, Histogram, Join, Model, Multiplicity, Precedence, Scheduling, Work,
};

impl Model {
    /// The same model in the form that readers give: entries and activities numbered in the order of their tasks; servers
    /// without limit as delays; phases without an empty tail, one at least; calls to one entry added up, without those
    /// made never, in the order in which the phases first make them; cv², rates and quanta only where they say something;
    /// replies in order; lists of one activity as sequences, and none without any.
    #[must_use]
    pub fn into_canonical(mut self) -> Self {
        self.renumber();
        for processor in &mut self.processors {
            normalize_servers(&mut processor.scheduling, &mut processor.multiplicity);
            if !matches!(processor.scheduling, Scheduling::ProcessorSharing | Scheduling::CompletelyFair) {
                processor.quantum = None;
            }
        }
        for task in &mut self.tasks {
            normalize_servers(&mut task.scheduling, &mut task.multiplicity);
            // The suite writes a length of 0 where the queue has no bound.
            task.queue_length = task.queue_length.filter(|&length| length > 0);
            task.precedences.retain_mut(normalize_precedence);
        }
        for entry in &mut self.entries {
            entry.open_arrival_rate = entry.open_arrival_rate.filter(|&rate| rate != 0.0);
            entry.forwarding.retain(|forwarding| forwarding.probability != 0.0);
            entry.histograms.retain_mut(|(_, histogram)| normalize_histogram(histogram));
            entry.histograms.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| order(&left.1, &right.1)));
            entry.histograms.dedup();
            if let Body::Phases(phases) = &mut entry.body {
                normalize_phases(phases);
            }
        }
        for activity in &mut self.activities {
            normalize_work(&mut activity.work);
            activity.replies.sort_unstable();
            activity.replies.dedup();
            activity.histograms.retain_mut(normalize_histogram);
            activity.histograms.sort_by(order);
            activity.histograms.dedup();
        }
        self
    }

    fn entry_order(&self) -> Order {
        Order::new(self.tasks.iter().flat_map(|task| &task.entries).map(|id| id.0), self.entries.len())
    }

    fn activity_order(&self) -> Order {
        Order::new(self.tasks.iter().flat_map(|task| &task.activities).map(|id| id.0), self.activities.len())
    }

    /// The number of each entry in canonical form.
    pub(super) fn canonical_entries(&self) -> Vec<usize> {
        self.entry_order().new.into_iter().map(|number| number as usize).collect()
    }

    /// The number of each activity in canonical form.
    pub(super) fn canonical_activities(&self) -> Vec<usize> {
        self.activity_order().new.into_iter().map(|number| number as usize).collect()
    }

    /// Numbers entries and activities in the order of their tasks; those that no task lists come last.
    fn renumber(&mut self) {
        let (entries, activities) = (self.entry_order(), self.activity_order());
        if entries.is_identity() && activities.is_identity() {
            return;
        }
        let entry = |id: &mut EntryId| id.0 = entries.moved(id.0);
        let activity = |id: &mut ActivityId| id.0 = activities.moved(id.0);
        let work = |work: &mut Work| work.calls.iter_mut().for_each(|call| entry(&mut call.to));
        for task in &mut self.tasks {
            task.entries.iter_mut().for_each(entry);
            task.activities.iter_mut().for_each(activity);
            for precedence in &mut task.precedences {
                precedence.each_activity_mut(activity);
            }
        }
        for own in &mut self.entries {
            own.forwarding.iter_mut().for_each(|forwarding| entry(&mut forwarding.to));
            match &mut own.body {
                Body::Phases(phases) => phases.iter_mut().for_each(work),
                Body::Activities(start) => activity(start),
            }
        }
        for own in &mut self.activities {
            work(&mut own.work);
            own.replies.iter_mut().for_each(entry);
        }
        entries.apply(&mut self.entries);
        activities.apply(&mut self.activities);
    }
}

/// A new numbering.
struct Order {
    /// By old number, the new one.
    new: Vec<u32>,
}

impl Order {
    fn new(listed: impl Iterator<Item = u32>, count: usize) -> Self {
        let mut new = vec![u32::MAX; count];
        let mut next = 0;
        let mut number = |old: u32| {
            if let Some(place) = new.get_mut(old as usize)
                && *place == u32::MAX
            {
                *place = next;
                next += 1;
            }
        };
        listed.for_each(&mut number);
        (0..count as u32).for_each(&mut number);
        Self { new }
    }

    fn is_identity(&self) -> bool {
        self.new.iter().enumerate().all(|(old, &new)| old == new as usize)
    }

    /// The new number; a number of nothing stays as it is.
    fn moved(&self, old: u32) -> u32 {
        self.new.get(old as usize).copied().unwrap_or(old)
    }

    fn apply<T>(&self, elements: &mut Vec<T>) {
        let mut numbered: Vec<(u32, T)> = self.new.iter().copied().zip(elements.drain(..)).collect();
        numbered.sort_by_key(|&(number, _)| number);
        elements.extend(numbered.into_iter().map(|(_, element)| element));
    }
}

impl Precedence {
    fn each_activity_mut(&mut self, mut visit: impl FnMut(&mut ActivityId)) {
        match &mut self.join {
            Join::Sequence(activity) => visit(activity),
            Join::And { activities, .. } | Join::Or(activities) => activities.iter_mut().for_each(&mut visit),
        }
        match &mut self.fork {
            None => {}
            Some(Fork::Sequence(activity)) => visit(activity),
            Some(Fork::And(activities)) => activities.iter_mut().for_each(visit),
            Some(Fork::Or(branches)) => branches.iter_mut().for_each(|(_, activity)| visit(activity)),
            Some(Fork::Loop { bodies, end }) => {
                for (_, activity) in bodies {
                    visit(activity);
                }
                end.iter_mut().for_each(visit);
            }
        }
    }
}

/// A delay has servers without limit, and where there is no limit nothing queues.
fn normalize_servers(scheduling: &mut Scheduling, multiplicity: &mut Multiplicity) {
    let queues = matches!(
        scheduling,
        Scheduling::Fcfs
            | Scheduling::HeadOfLine
            | Scheduling::PreemptivePriority
            | Scheduling::Random
            | Scheduling::ProcessorSharing
    );
    if *scheduling == Scheduling::Delay {
        *multiplicity = Multiplicity::Infinite;
    } else if queues && *multiplicity == Multiplicity::Infinite {
        *scheduling = Scheduling::Delay;
    }
}

/// Brings lists of one activity to sequences; whether the precedence says anything then.
fn normalize_precedence(precedence: &mut Precedence) -> bool {
    if let Join::And { activities, quorum: None } | Join::Or(activities) = &precedence.join
        && let [only] = activities[..]
    {
        precedence.join = Join::Sequence(only);
    }
    if let Join::And { quorum, .. } = &mut precedence.join {
        *quorum = quorum.filter(|&quorum| quorum > 0);
    }
    match &precedence.fork {
        Some(Fork::And(activities)) if activities.is_empty() => precedence.fork = None,
        Some(Fork::Or(branches)) if branches.is_empty() => precedence.fork = None,
        Some(Fork::And(activities)) if activities.len() == 1 => {
            precedence.fork = Some(Fork::Sequence(activities[0]));
        }
        Some(Fork::Loop { bodies, end }) if bodies.is_empty() => precedence.fork = end.map(Fork::Sequence),
        _ => {}
    }
    match &precedence.join {
        Join::Sequence(_) => precedence.fork.is_some(),
        Join::And { activities, .. } | Join::Or(activities) => !activities.is_empty(),
    }
}

/// Without bins there is no begin, and without an end nothing is asked for; whether something is.
fn normalize_histogram(histogram: &mut Histogram) -> bool {
    if histogram.bins == 0 {
        histogram.from = 0.0;
    }
    histogram.bins > 0 || histogram.to != 0.0
}

/// Those without bins first.
fn order(left: &Histogram, right: &Histogram) -> Ordering {
    let ends = |own: &Histogram, other: &Histogram| own.from.total_cmp(&other.from).then(own.to.total_cmp(&other.to));
    left.bins.cmp(&right.bins).then_with(|| ends(left, right))
}

fn normalize_work(work: &mut Work) {
    work.cv2 = work.cv2.filter(|&cv2| cv2 != 1.0);
    work.think_cv2 = work.think_cv2.filter(|&cv2| cv2 != 1.0);
    add_up(&mut work.calls);
}

fn normalize_phases(phases: &mut Vec<Work>) {
    phases.iter_mut().for_each(normalize_work);
    while phases.len() > 1 && phases.last().is_some_and(|phase| *phase == Work::default()) {
        phases.pop();
    }
    if phases.is_empty() {
        phases.push(Work::default());
    }
    if phases.len() > 1 {
        let mut first: FxHashMap<(EntryId, CallKind), usize> = FxHashMap::default();
        for call in phases.iter().flat_map(|phase| &phase.calls) {
            let next = first.len();
            first.entry((call.to, call.kind)).or_insert(next);
        }
        for phase in phases {
            phase.calls.sort_by_key(|call| first[&(call.to, call.kind)]);
        }
    }
}

/// Makes one call of those of a kind to an entry, and none of those that are never made.
fn add_up(calls: &mut Vec<Call>) {
    let mut seen: BTreeMap<(EntryId, CallKind), usize> = BTreeMap::new();
    let mut kept: Vec<Call> = Vec::with_capacity(calls.len());
    for call in calls.drain(..) {
        if let Some(&place) = seen.get(&(call.to, call.kind)) {
            kept[place].mean += call.mean;
        } else {
            seen.insert((call.to, call.kind), kept.len());
            kept.push(call);
        }
    }
    kept.retain(|call| call.mean != 0.0);
    *calls = kept;
}
