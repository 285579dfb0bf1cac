//! Whether instances of a task that came later take longer for the same work, or less long, than those that were there before: a version is rolled out, or machines are replaced.
//!
//! Instances are put in the order in which they came. Of all ways to part that order in two, the one is taken in which the paces of both ([`crate::model::pace`]) differ most clearly.
//! While both are there the system is in neither state, so that the recording has three parts.

use std::collections::BTreeMap;

use super::work::Changed;
use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::SubModel;
use crate::model::codes;
use crate::model::load::short;
use crate::model::pace::{self, Levels, Pace};
use crate::names::Name;

/// New instances take so many times as long as old ones, or these as long as new ones (ours).
const DIFFERS: f64 = 1.15;

/// By so many standard errors: many ways to part instances are tried.
const CLEAR: f64 = 5.0;

/// When an instance was there.
struct Life<'s> {
    name: &'s str,
    first: i64,
    last: i64,
}

/// Old instances and new ones.
struct Rollout {
    /// How many were old, and how many are new.
    counts: (usize, usize),
    /// New ones take so many times as long.
    factor: f64,
    /// The first invocation of a new one, nanoseconds from the trace's epoch.
    from: i64,
    /// The last of an old one.
    until: i64,
}

/// Where new instances of tasks take longer than old ones, or less long, by the name of the task.
pub(super) fn changed(sub: &SubModel) -> Vec<Changed> {
    let mut tasks: BTreeMap<&str, BTreeMap<Name, Life<'_>>> = BTreeMap::new();
    for (replica, seen) in sub.deployment.replicas().filter(|(replica, _)| replica.instance.is_some()) {
        let life = Life { name: sub.names.text(replica.instance), first: seen.first, last: seen.last };
        let own = tasks.entry(sub.names.text(replica.task)).or_default();
        let own = own.entry(replica.instance).or_insert(life);
        (own.first, own.last) = (own.first.min(seen.first), own.last.max(seen.last));
    }
    let begin = sub.scenarios.values().filter_map(|total| total.first_start).min().unwrap_or_default();
    let of = |(task, lives): (&str, BTreeMap<Name, Life<'_>>)| {
        let mut lives: Vec<Life<'_>> = lives.into_values().collect();
        lives.sort_unstable_by_key(|own| (own.first, own.last, own.name));
        let first_end = lives.iter().map(|own| own.last).min()?;
        // All were there together.
        if lives.last()?.first <= first_end {
            return None;
        }
        let levels = pace::levels(sub, task, |replica| replica.instance);
        let rollout = Rollout::of(&lives, &levels)?;
        let borders = vec![(rollout.from, 0), (rollout.until.max(rollout.from).saturating_add(1), 0)];
        Some(Changed { task: task.to_owned(), finding: rollout.finding(task, begin), borders })
    };
    tasks.into_iter().filter_map(of).collect()
}

impl Rollout {
    /// Of instances in the order in which they came.
    fn of(lives: &[Life<'_>], levels: &BTreeMap<&str, Levels>) -> Option<Self> {
        let sum = |lives: &[Life<'_>]| {
            lives.iter().filter_map(|own| levels.get(own.name)).fold(Levels::default(), |mut sum, own| {
                sum.merge(own);
                sum
            })
        };
        let mut best: Option<(f64, Self)> = None;
        for at in 1..lives.len() {
            let (old, new) = lives.split_at(at);
            let paces: BTreeMap<bool, Pace> = pace::compared(BTreeMap::from([(false, sum(old)), (true, sum(new))]));
            let (Some(before), Some(after)) = (paces.get(&false), paces.get(&true)) else { continue };
            let (factor, error) = (after.factor / before.factor, before.error.hypot(after.error));
            let clear = factor.ln().abs() / error;
            let from = new.iter().map(|own| own.first).min()?;
            let until = old.iter().map(|own| own.last).max()?;
            if clear > CLEAR && factor.ln().abs() > DIFFERS.ln() && best.as_ref().is_none_or(|(most, _)| clear > *most)
            {
                best = Some((clear, Self { counts: (old.len(), new.len()), factor, from, until }));
            }
        }
        best.map(|(_, rollout)| rollout)
    }

    fn finding(&self, task: &str, begin: i64) -> Diagnostic {
        let seconds = |at: i64| short(at.saturating_sub(begin).max(0) as f64 * 1e-9);
        let times = short((self.factor * 100.0).round() / 100.0);
        let message = format!(
            "instances of `{task}` that came later take {times} times as long as those before for the same work"
        );
        Diagnostic::warning(codes::NOT_STEADY, Place::Nowhere, message)
            .with_note(format!(
                "{} were there before, until {} s of the recording, and {} came from {} s on: another version, or other machines",
                self.counts.0,
                seconds(self.until),
                self.counts.1,
                seconds(self.from)
            ))
    }
}
