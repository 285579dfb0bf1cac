//! Entries that are cloned for a caller (procedure cloning; Cooper, Hall, Kennedy 1993).
//!
//! An entry of a model has one demand for all callers. Where it takes longer for a caller than for others, the caller gets a delay, and where it takes less,
//! the caller's delays are shortened ([`joins`](crate::model::joins)). Where that does not do, the caller gets a clone of the entry. Traces tell how long the entry takes
//! for that caller, and not why. So the difference is in the clone's own work, as far as there is enough of it, and else in its work and its calls in proportion. The
//! original has what is left, so that all of them together have the work and the calls that were traced.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::quantity::{counted, milliseconds};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::lqn::submodel::{EntryIndex, Interaction};
use crate::lqn::{Activity, CallOrder, Work};
use crate::model::contexts;
use crate::model::joins::Woven;
use crate::model::parts::{Customer, Parts};
use crate::model::{Traced, codes};

/// Rounds in which entries are cloned: those of a caller may be called by a clone.
pub const ROUNDS: usize = 8;
/// A caller responds too late or too soon where it does by this part of what was traced.
const OFF: f64 = 0.004;
/// A call makes that worth a clone where it has this part in it.
const PART: f64 = 0.1;
/// The most clones that notes name.
const SHOWN: usize = 5;
/// What is left of own work at least, where that alone makes the difference.
const LEAST_WORK: f64 = 0.05;
/// Where more than this part of own time is no work, calls may differ by that.
const QUEUED: f64 = 0.1;

/// A clone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cloned {
    /// Calls of that caller.
    calls: u64,
    /// How long each takes, seconds.
    time: f64,
}

/// The clones of a model: by what is called, and by its caller. The caller of a scenario is the first of its customer's entries.
#[derive(Debug, Default)]
pub struct Clones {
    of: BTreeMap<EntryIndex, BTreeMap<EntryIndex, Cloned>>,
}

/// How an entry's first phase differs from that of all its invocations, as factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Of its own work.
    pub work: f64,
    /// Of its calls and delays.
    pub calls: f64,
    /// Of its response.
    pub response: f64,
    /// Of the mean square of its work relative to its square mean: what all invocations differ by is more than what those of a clone do.
    pub squares: f64,
}

impl Scale {
    /// An entry without clones.
    pub const WHOLE: Self = Self { work: 1.0, calls: 1.0, response: 1.0, squares: 1.0 };

    /// Makes the work of an entry that of the clone: `phases` in their order, or the activities of a graph.
    pub fn apply(self, phases: &mut [Work], activities: &mut [Activity], woven: Option<&mut Woven>) {
        if self == Self::WHOLE {
            return;
        }
        for (number, work) in
            phases.iter_mut().chain(activities.iter_mut().map(|activity| &mut activity.work)).enumerate()
        {
            // Own work alone differs in the first phase, which is what callers wait for.
            if self.calls != 1.0 || number == 0 {
                work.demand *= self.work;
                work.cv2 = work.cv2.map(|cv2| ((1.0 + cv2) * self.squares - 1.0).max(0.0));
            }
            work.think_time *= self.calls;
            work.calls.iter_mut().for_each(|call| call.mean *= self.calls);
            if self.calls != 1.0 {
                work.call_order = CallOrder::Stochastic;
            }
        }
        for fork in woven.into_iter().flat_map(|woven| &mut woven.forks) {
            fork.seen *= self.calls;
            fork.branches.iter_mut().for_each(|(_, offset)| *offset *= self.calls);
        }
    }
}

impl Clones {
    /// Those of an entry, by caller.
    pub fn callers(&self, entry: EntryIndex) -> impl Iterator<Item = EntryIndex> + '_ {
        self.of.get(&entry).into_iter().flat_map(|clones| clones.keys().copied())
    }

    /// Whether a caller has a clone of an entry.
    pub fn has(&self, caller: EntryIndex, entry: EntryIndex) -> bool {
        self.of.get(&entry).is_some_and(|clones| clones.contains_key(&caller))
    }

    /// How often the clone of a caller, or the original, is called, and how long it takes, seconds.
    pub fn seen(&self, parts: &Parts<'_>, entry: EntryIndex, caller: Option<EntryIndex>) -> Option<(u64, f64)> {
        let clones = self.of.get(&entry)?;
        if let Some(caller) = caller {
            return clones.get(&caller).map(|own| (own.calls, own.time));
        }
        let total = parts.sub.entry(entry);
        let all = total.invocations;
        let calls = clones.values().map(|own| own.calls).sum::<u64>().min(all);
        let taken: f64 = clones.values().map(|own| own.calls as f64 * own.time).sum();
        let left = all - calls;
        let time = (total.response.mean()? * all as f64 - taken).max(0.0) / left.max(1) as f64;
        Some((left, time))
    }

    /// What the clone of a caller, or the original, is of the entry as it was traced.
    pub fn scale(&self, parts: &Parts<'_>, entry: EntryIndex, caller: Option<EntryIndex>, own_work: f64) -> Scale {
        let (Some((_, time)), Some(mean)) = (self.seen(parts, entry, caller), parts.sub.entry(entry).response.mean())
        else {
            return Scale::WHOLE;
        };
        let response = if mean > 0.0 { time / mean } else { 1.0 };
        let each = self.callers(entry).map(Some).chain([None]);
        let each: Vec<(u64, f64)> =
            each.filter_map(|other| self.seen(parts, entry, other)).filter(|(calls, _)| *calls > 0).collect();
        let by_work = |time: f64| (own_work + time - mean) / own_work;
        let is_enough = own_work > 0.0 && each.iter().all(|(_, time)| by_work(*time) > LEAST_WORK);
        let part = |time: f64| if is_enough { by_work(time) } else { time / mean.max(f64::MIN_POSITIVE) };
        let all = each.iter().map(|(calls, _)| *calls).sum::<u64>() as f64;
        // All are taken to vary alike (law of total variance).
        let squares = 1.0 / each.iter().map(|(calls, time)| *calls as f64 / all * part(*time).powi(2)).sum::<f64>();
        Scale { work: part(time), calls: if is_enough { 1.0 } else { response }, response, squares: squares.min(1.0) }
    }

    /// Clones what a caller's response, which is off by so much, is off by. Tells whether there is anything.
    pub fn add_for_entry(&mut self, parts: &Parts<'_>, traced: &Traced, caller: EntryIndex, missing: f64) -> bool {
        let total = parts.sub.entry(caller);
        let Some(response) = total.response.mean() else { return false };
        if missing.abs() <= OFF * response {
            return false;
        }
        let calls: Vec<contexts::Call> = contexts::calls(parts, total).collect();
        let mut found = false;
        for call in calls {
            // What answers too late by the model takes less time for this caller than for those without a clone.
            let without = self.seen(parts, call.to, None).map_or(0.0, |(_, time)| time - call.in_all);
            let times = call.times(1.0 / total.invocations.max(1) as f64);
            let error = call.error(times) + without * times;
            let is_cause = error * missing < 0.0 && error.abs() >= PART * missing.abs();
            found |= is_cause && self.add(parts, traced, caller, call.to, (call.count, call.here));
        }
        found
    }

    /// The same for a scenario whose operations are one call each, where its response by the model is so much.
    pub fn add_for_scenario(&mut self, parts: &Parts<'_>, traced: &Traced, customer: &Customer, response: f64) -> bool {
        let [(to, count)] = customer.total.requested().collect::<Vec<_>>()[..] else { return false };
        let seen = &customer.scenario_total.response;
        let waits = parts.sub.entry(to).interaction == Interaction::Rendezvous;
        let Some(mean) = seen.mean().filter(|_| waits && count == customer.total.invocations) else { return false };
        (response - mean).abs() > OFF * mean && self.add(parts, traced, customer.first, to, (count, mean))
    }

    fn add(
        &mut self,
        parts: &Parts<'_>,
        traced: &Traced,
        caller: EntryIndex,
        to: EntryIndex,
        (calls, time): (u64, f64),
    ) -> bool {
        let total = parts.sub.entry(to);
        let Some(mean) = total.response.mean() else { return false };
        // Where it queues, what is within reach of its queue tells nothing. Delays may be queueing that the servers do not explain.
        let queued = 1.0 - traced.own(to).processor.min(1.0);
        let within = queued > QUEUED && time > mean * (1.0 - 2.0 * queued) && time < mean * (1.0 + 2.0 * queued);
        // What is left for others is not nothing: the last caller has the original.
        let cloned: u64 = self.of.get(&to).into_iter().flatten().map(|(_, own)| own.calls).sum();
        if calls == 0 || cloned + calls >= total.invocations || within || self.has(caller, to) {
            return false;
        }
        self.of.entry(to).or_default().insert(caller, Cloned { calls, time });
        true
    }

    /// Says which entries have clones. `name` gives the name of an entry, or of its clone for a caller, and `caller_name` that of a caller.
    pub fn notes(
        &self,
        parts: &Parts<'_>,
        name: impl Fn(EntryIndex, Option<EntryIndex>) -> Option<Arc<str>>,
        caller_name: impl Fn(EntryIndex) -> String,
    ) -> Vec<Diagnostic> {
        let note = |message| Diagnostic::new(Severity::Note, codes::CLONE, Place::Nowhere, message);
        let all = self.of.iter().flat_map(|(entry, clones)| clones.iter().map(|(caller, own)| (*entry, *caller, own)));
        let told = |(entry, caller, own): (EntryIndex, EntryIndex, &Cloned)| {
            let (_, others) = self.seen(parts, entry, None)?;
            let (original, clone, by) = (name(entry, None)?, name(entry, Some(caller))?, caller_name(caller));
            let (here, others) = (milliseconds(own.time), milliseconds(others));
            Some(
                note(format!("`{original}` takes {here} for `{by}` and {others} for others"))
                    .with_note(format!("`{by}` has a clone of it, `{clone}`: traces tell how long it takes there, and not whether its own work or its calls differ"))
                    .with_hint("`--merge none` keeps the entries of different places in a scenario apart, with what each does"),
            )
        };
        let mut notes: Vec<Diagnostic> = all.filter_map(told).collect();
        if notes.len() > SHOWN {
            let more = notes.len() - SHOWN;
            notes.truncate(SHOWN);
            notes.push(note(format!(
                "{} more for callers for which they take another time",
                counted(more as u64, "clone")
            )));
        }
        notes
    }
}
