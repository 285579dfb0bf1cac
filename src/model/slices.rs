//! Where in an invocation its processor time lies: before its first call, after its last one, or in between.
//!
//! Phases spread it evenly over the slices between calls. First come, first served, each slice queues by itself: 9 ms before a call and 1 ms after it wait for about half as long
//! as twice 5 ms that vary as much. So entries of such processors whose slices are uneven become a sequence of activities.

use std::sync::Arc;

use crate::lqn::submodel::{EntryTotal, Position, RequestKind, Seconds};
use crate::lqn::timing::{CallLabel, CallTotal};
use crate::lqn::{Activity, ActivityId, Body, CallKind, EntryId, Fork, Join, Model, Precedence, Scheduling, Work};
use crate::model::body::is_answered;
use crate::model::demand::DemandSource;
use crate::model::joins::Woven;
use crate::model::naming::Unique;
use crate::model::variability::rounded;
use crate::model::{ActivityOrigin, EntryOrigin};

/// Where in its entry all of a sequence is.
const WHOLE: Position = Position { stage: 0, branch: None, phase: 1 };

/// Slices are uneven where one differs from an even one by more than this part of the whole (ours).
const UNEVEN: f64 = 0.1;

/// Stretches that are seen in this part of invocations are those of all (ours, as calls that are in order).
const ALL: f64 = 0.98;

/// Two ways to measure a part of a time agree to within this part of the whole, and half of it is next to nothing (ours).
const AGREES: f64 = 0.05;
const LITTLE: f64 = AGREES / 2.0;

/// A part that is only rounding.
const NOTHING: f64 = 1e-9;

/// A stretch that waits for less than this part of what others wait for did not queue (ours).
const QUEUES: f64 = 0.5;

/// The stretches of own work between calls, the how-manieth of an invocation each: what all invocations together had of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// How many there were.
    pub count: usize,
    /// How long they were together.
    pub length: f64,
    /// How long they had a processor.
    pub had: f64,
    /// The sum of the squares of that.
    pub squares: f64,
}

impl Stretch {
    /// How long one waited.
    fn wait(&self) -> f64 {
        (self.length - self.had) / self.count.max(1) as f64
    }

    fn and(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            length: self.length + other.length,
            had: self.had + other.had,
            squares: self.squares + other.squares,
        }
    }

    /// The squared coefficient of variation of the time with a processor.
    fn cv2(&self) -> f64 {
        (self.count as f64 * self.squares / (self.had * self.had).max(f64::MIN_POSITIVE) - 1.0).max(0.0)
    }
}

/// Parts of an invocation's processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slices {
    /// What comes before its first call.
    pub before: f64,
    /// What lies between its calls.
    pub between: f64,
    /// What comes after its last one.
    pub after: f64,
    /// Short stretches that did not queue, as the way of an answer to who closes the span: a delay.
    pub beside: f64,
    /// Squared coefficients of variation of the first slice, of the last, of those between them, and of any slice.
    pub cv2: [f64; 4],
}

impl Slices {
    /// Of an entry with such stretches; `None` where it is not told, as where invocations differ in what they do first.
    pub fn of(total: &EntryTotal, stretches: &[Stretch]) -> Option<Self> {
        let is_waited = |label: &CallLabel| label.kind == RequestKind::Synchronous && label.phase == 1;
        let calls = || total.calls.iter().filter(|(label, _)| is_waited(label)).map(|(_, call)| call);
        let start = |call: &CallTotal| call.start.as_f64() / call.invocations.max(1) as f64;
        // Of those that begin together one has the time before all of them.
        let first = calls()
            .min_by(|left, right| start(left).total_cmp(&start(right)).then_with(|| right.lead.cmp(&left.lead)))?;
        let own = total.own_time();
        let leads = calls().map(|call| call.lead).fold(Seconds::default(), Seconds::plus).as_f64();
        let is_sequence = total.blocks.is_empty() && total.work.keys().all(|at| at.phase <= 1);
        let all = stretches.iter().fold(Stretch::default(), Stretch::and);
        let last = stretches.iter().rposition(|own| own.count > 0)?;
        let [count, of_last] = [stretches[0].count, stretches[last].count].map(|count| count as f64);
        // The last place that is told apart may have several stretches of an invocation.
        let is_of_all = of_last >= ALL * count && of_last * ALL <= count;
        if !is_sequence || own <= 0.0 || all.length <= 0.0 || all.had <= 0.0 || !is_of_all {
            return None;
        }
        // What spans of calls tell of the time before the first and after the last one.
        let told = [first.lead.as_f64() / own, 1.0 - leads / own];
        let long = [0, last].into_iter().zip(told).filter(|(_, told)| *told >= LITTLE);
        let long = long.fold(Stretch::default(), |sum, (at, _)| sum.and(&stretches[at]));
        let queues = |stretch: Stretch| long.wait() > 0.0 && stretch.wait() >= QUEUES * long.wait();
        let part = |told: f64, at: usize| match stretches[at] {
            stretch if told >= LITTLE => {
                ((stretch.length / all.length - told).abs() < AGREES).then_some(stretch.had / all.had)
            }
            // Of one stretch alone the other end is told.
            stretch if last > 0 && stretch.length < LITTLE * all.length && queues(stretch) => {
                Some(stretch.had / all.had)
            }
            _ => Some(0.0),
        };
        let (before, after) = (part(told[0], 0)?, part(told[1], last)?);
        let middle = stretches.get(1..last).unwrap_or_default().iter().fold(Stretch::default(), Stretch::and);
        let rest = (1.0 - before - after).max(0.0);
        let is_beside = rest < LITTLE && !(middle.count > 0 && queues(middle));
        let (between, beside) = if is_beside { (0.0, rest) } else { (rest, 0.0) };
        // Where the rest is no more than rounding there is none.
        let beside = if beside < NOTHING { 0.0 } else { beside };
        let any = stretches.iter().filter(|own| own.had >= LITTLE * all.had);
        let any = any.fold(Stretch::default(), Stretch::and);
        let cv2 = [stretches[0].cv2(), stretches[last].cv2(), middle.cv2(), any.cv2()];
        Some(Self { before, between, after, beside, cv2 })
    }
}

/// Where activities go that an entry is divided into.
pub struct Site<'s> {
    /// The model.
    pub model: &'s mut Model,
    /// Names of activities of the entry's task.
    pub names: &'s mut Unique,
    /// Origins of activities, beside those of the model.
    pub origins: &'s mut Vec<ActivityOrigin>,
}

/// Makes a sequence of an entry whose slices are uneven, and queue each by itself; gives its activities.
pub fn divide(entry: EntryId, origin: &EntryOrigin, site: Site<'_>) -> Option<Woven> {
    let slices = origin.own_time.slices?;
    let Site { model, names, origins } = site;
    let task = model.entries[entry.index()].task;
    let processor = &model.processors[model.tasks[task.index()].processor.index()];
    let is_in_line = matches!(processor.scheduling, Scheduling::Fcfs | Scheduling::HeadOfLine | Scheduling::Random);
    let Body::Phases(phases) = &model.entries[entry.index()].body else { return None };
    let ([work], [DemandSource::Exclusive]) = (&phases[..], &origin.sources[..]) else { return None };
    let waits = work.calls.iter().filter(|call| call.kind == CallKind::Synchronous);
    let calls: f64 = waits.map(|call| call.mean).sum();
    let even = 1.0 / (1.0 + work.calls.iter().map(|call| call.mean).sum::<f64>());
    let is_uneven = (slices.before - even).abs().max((slices.after - even).abs()) > UNEVEN;
    if !is_in_line || !is_uneven || calls <= 0.0 || work.demand <= 0.0 {
        return None;
    }
    let mut between = work.clone();
    let demand = work.demand;
    let parts = [slices.before, slices.between, slices.after];
    between.demand = demand * parts[1];
    between.delay(demand * slices.beside);
    between.cv2 = (between.demand > 0.0).then(|| rounded(slices.cv2[2]));
    let slice = |part: f64, cv2: f64| Work { demand: demand * part, cv2: Some(rounded(cv2)), ..Work::default() };
    let [first, last, ..] = slices.cv2;
    let sequence = [("before", slice(parts[0], first)), ("calls", between), ("after", slice(parts[2], last))];
    let is_there = |(role, work): &(&str, Work)| *role == "calls" || work.demand > 0.0;
    let mut segments: Vec<(u8, ActivityId)> = Vec::new();
    for (role, work) in sequence.into_iter().filter(is_there) {
        let id = ActivityId::from(model.activities.len());
        let name: Arc<str> = names.claim(&format!("{}.{role}", model.entries[entry.index()].name));
        let source = if work.demand > 0.0 { DemandSource::Exclusive } else { DemandSource::None };
        model.activities.push(Activity { work, ..Activity::new(&name, task) });
        model.tasks[task.index()].activities.push(id);
        origins.push(ActivityOrigin { entry, position: Some(WHOLE), source });
        if let Some((_, last)) = segments.last() {
            let precedence = Precedence { join: Join::Sequence(*last), fork: Some(Fork::Sequence(id)) };
            model.tasks[task.index()].precedences.push(precedence);
        }
        segments.push((1, id));
    }
    let ((_, first), (_, last)) = (segments.first()?, segments.last()?);
    if is_answered(origin.interaction) {
        model.activities[last.index()].replies.push(entry);
    }
    model.entries[entry.index()].body = Body::Activities(*first);
    Some(Woven { entry, segments, forks: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::{Slices, Stretch};
    use crate::lqn::submodel::{
        EntryIndex, EntryKey, EntryTotal, Interaction, Moments, Position, RequestKind, Seconds, SubModel, WorkTotal,
    };
    use crate::lqn::timing::{CallLabel, CallTotal};

    fn nothing() -> EntryTotal {
        let mut sub = SubModel::new();
        let name = sub.names.intern("a");
        let index = sub.ensure_entry(EntryKey(1), name, 1, Interaction::Rendezvous, name);
        sub.entry(index).clone()
    }

    /// An entry that works for so many seconds before a call and after it, on the mean of 100 invocations.
    fn entry(before: f64, after: f64) -> EntryTotal {
        let mut total = nothing();
        let call = CallTotal { invocations: 100, lead: Seconds::from_f64(100.0 * before), ..CallTotal::default() };
        let label = CallLabel { phase: 1, kind: RequestKind::Synchronous, to: Some(EntryIndex(0)), ordinal: 1 };
        total.calls.insert(label, call);
        let exclusive = Moments { count: 100, sum: Seconds::from_f64(100.0 * (before + after)), squares: 0 };
        let at = Position { stage: 0, branch: None, phase: 1 };
        total.work.insert(at, WorkTotal { exclusive, ..WorkTotal::default() });
        total
    }

    fn stretch(length: f64, had: f64) -> Stretch {
        Stretch { count: 100, length, had, squares: 2.0 * had * had / 100.0 }
    }

    #[test]
    fn waits_count_for_no_slice() {
        // Of 14 s before the call and 6 s after it, 5 s are waits each.
        let slices = Slices::of(&entry(0.14, 0.06), &[stretch(14.0, 9.0), stretch(6.0, 1.0)]).expect("it is told");
        assert!((slices.before - 0.9).abs() < 1e-9 && (slices.after - 0.1).abs() < 1e-9, "{slices:?}");
        assert!((slices.cv2[0] - 1.0).abs() < 1e-9, "{slices:?}");
    }

    #[test]
    fn what_comes_first_may_be_the_call() {
        let slices = Slices::of(&entry(0.0, 0.06), &[stretch(6.0, 1.0)]).expect("it is told");
        assert_eq!((slices.before, slices.after), (0.0, 1.0));
        let slices = Slices::of(&entry(0.06, 0.0), &[stretch(6.0, 1.0)]).expect("it is told");
        assert_eq!((slices.before, slices.after), (1.0, 0.0));
    }

    #[test]
    fn short_stretches_queue_as_others_do_or_are_a_delay() {
        let short = [stretch(14.0, 9.0), stretch(0.1, 0.1)];
        let slices = Slices::of(&entry(0.14, 0.001), &short).expect("it is told");
        assert!(slices.after == 0.0 && slices.beside > 0.01, "{slices:?}");
        let short = [stretch(600.0, 9.0), stretch(5.1, 0.1)];
        let slices = Slices::of(&entry(6.0, 0.05), &short).expect("it is told");
        assert_eq!(slices.after, 0.0, "{slices:?}");
        let short = [stretch(600.0, 300.0), stretch(12.1, 0.1)];
        let small = Slices::of(&entry(6.0, 0.1), &short).expect("it is told");
        assert_eq!(small.after, 0.0, "it waits for a tenth of what others wait for");
        let queues = [stretch(600.0, 590.0), stretch(10.1, 0.1)];
        let small = Slices::of(&entry(6.0, 0.1), &queues).expect("it is told");
        assert!(small.after > 0.0 && small.beside == 0.0, "{small:?}");
    }

    #[test]
    fn stretches_that_are_no_slices_tell_nothing() {
        // What the spans of calls say is something else.
        assert_eq!(Slices::of(&entry(0.02, 0.18), &[stretch(14.0, 9.0), stretch(6.0, 1.0)]), None);
        assert_eq!(Slices::of(&nothing(), &[]), None);
    }
}
