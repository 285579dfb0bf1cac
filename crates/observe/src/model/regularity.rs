//! Calls that each execution makes alike, and choices of one call among several.
//!
//! Reports hold sums over many intervals. If each execution makes the same number of calls, the counts of calls and of executions never differ by
//! more than what is under way. If the number is random, the difference drifts. The same holds for the sum of calls that exclude each
//! other. Solvers assume geometric numbers of calls otherwise, and overestimate queues.

use std::collections::BTreeMap;

use dyelog_lqn::model::{Activity, ActivityId, Body, Call, CallOrder, EntryId, Fork, Join, Precedence, TaskId, Work};

use crate::model::Draft;
use crate::model::devices::NodeDevices;
use crate::model::entities::{Added, Entity};
use crate::observation::{Observation, Output};
use crate::samples::Resource;

/// How far a number of calls may be from a whole one, relative to it: one failed request in five hundred is no randomness.
const NEARLY: f64 = 0.002;
/// The same for disk operations; the system adds some of its own.
const NEARLY_DISK: f64 = 0.01;
/// How far an estimate of disk operations may be from the whole number that it is tested for.
const CLOSE: f64 = 0.15;
/// Executions per thread below which nothing is decided.
const ENOUGH: f64 = 100.0;
/// The most calls among which choices are sought: the search tries all 2^n subsets.
const MOST: usize = 8;

/// The outputs behind each call, by caller and callee; only outputs with one callee.
pub(super) type Links<'p> = BTreeMap<(EntryId, EntryId), Vec<&'p Output>>;

/// A call, and how many of it an interval had.
struct Link<'p> {
    to: EntryId,
    outputs: Vec<&'p Output>,
    /// Of one execution, on the mean.
    mean: f64,
}

impl Link<'_> {
    fn count(&self, interval: &Observation) -> f64 {
        let times = self.outputs.iter().filter_map(|output| interval.outputs.get(*output));
        times.map(|times| times.moments.count as f64).sum()
    }
}

/// Tells what is regular about the calls of an entity's entries.
pub(super) fn set(draft: &mut Draft, entity: &Entity<'_>, added: &Added, links: &Links<'_>, node: &NodeDevices) {
    let whole = disk_operations(draft, entity, added, node);
    let entries = if entity.is_client { &added.entries[..1] } else { &added.entries[..] };
    for (operation, entry) in entries.iter().enumerate() {
        let executions = entity.completions(operation);
        if executions < ENOUGH * f64::from(added.threads) * entity.processes.len() as f64 {
            continue;
        }
        let own = links.range((*entry, EntryId::from(0_usize))..).take_while(|((from, _), _)| from == entry);
        let links = own.filter(|(_, outputs)| !outputs.is_empty()).map(|((_, to), outputs)| {
            let mut link = Link { to: *to, outputs: outputs.clone(), mean: 0.0 };
            link.mean = link.count(&entity.total) / executions;
            link
        });
        // Calls of other kinds or to several places are not all of a link.
        let calls = draft.work(*entry).calls.clone();
        let links = links.filter(|link| {
            let same: Vec<&Call> = calls.iter().filter(|call| call.to == link.to).collect();
            matches!(same[..], [one] if (one.mean - link.mean).abs() <= 1e-9 * link.mean)
        });
        let (exact, some): (Vec<Link<'_>>, Vec<Link<'_>>) = links.partition(|link| {
            let number = link.mean.round();
            let differ = |interval: &Observation| link.count(interval) - number * entity.ended(operation, interval);
            number >= 1.0 && stays(entity, added, number, NEARLY * number * executions, differ)
        });
        let mut fixed: Vec<(EntryId, f64)> = exact.iter().map(|link| (link.to, link.mean.round())).collect();
        let choices = choices(entity, added, operation, some);
        let name = draft.name(*entry);
        for (to, number) in &fixed {
            let call = format!("{name} > {}", draft.name(*to));
            draft.tell(&call, "calls", *number, "each execution makes as many");
        }
        for (to, part) in choices.iter().flatten() {
            let call = format!("{name} > {}", draft.name(*to));
            draft.tell(&call, "calls", *part, "each execution makes one of such calls");
        }
        if let Some(visits) = &whole {
            draft.tell(&name, "disk operations", visits[operation], "each execution makes as many");
            fixed.extend(node.only_disk().map(|disk| (disk, visits[operation])));
        }
        draft.regular(*entry, added.task, &fixed, &choices, entity.is_client);
    }
}

/// How many disk operations each operation makes, where it always makes as many.
fn disk_operations(draft: &mut Draft, entity: &Entity<'_>, added: &Added, node: &NodeDevices) -> Option<Vec<f64>> {
    let disk = node.only_disk().filter(|_| !entity.is_client)?;
    let estimate = |entry: &EntryId| {
        let calls = draft.work(*entry).calls.iter().filter(|call| call.to == disk);
        calls.map(|call| call.mean).sum::<f64>()
    };
    let estimates: Vec<f64> = added.entries.iter().map(estimate).collect();
    let numbers: Vec<f64> = estimates.iter().map(|estimate| estimate.round()).collect();
    let close = |(estimate, number): (&f64, &f64)| (estimate - number).abs() <= CLOSE * number.max(1.0);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let used = Resource::Disk.used(&entity.total);
    let executions: f64 = (0..numbers.len()).map(|operation| entity.completions(operation)).sum();
    let enough = executions >= ENOUGH * f64::from(added.threads) && most >= 1.0;
    let differ = |interval: &Observation| {
        let explained = numbers.iter().enumerate().map(|(number, visits)| visits * entity.ended(number, interval));
        Resource::Disk.used(interval) - explained.sum::<f64>()
    };
    let all =
        enough && estimates.iter().zip(&numbers).all(close) && stays(entity, added, most, NEARLY_DISK * used, differ);
    all.then_some(numbers)
}

/// Whether a difference stays within what is under way, at most so much of each thread, and a slack.
fn stays(entity: &Entity<'_>, added: &Added, most: f64, slack: f64, differ: impl Fn(&Observation) -> f64) -> bool {
    entity.processes.iter().all(|process| {
        // What was under way in a gap is not known.
        let gaps = process.intervals.windows(2).filter(|pair| pair[1].from > pair[0].to).count();
        let allowed = most * f64::from(added.threads) * (1 + gaps) as f64 + slack;
        let (mut sum, mut low, mut high) = (0.0_f64, 0.0_f64, 0.0_f64);
        process.intervals.iter().all(|interval| {
            sum += differ(interval);
            (low, high) = (low.min(sum), high.max(sum));
            high - low <= allowed
        })
    })
}

/// Groups of calls of which each execution makes one, the smallest first; each call with its probability.
fn choices(entity: &Entity<'_>, added: &Added, operation: usize, some: Vec<Link<'_>>) -> Vec<Vec<(EntryId, f64)>> {
    let executions = entity.completions(operation);
    let mut left: Vec<Link<'_>> = some.into_iter().filter(|link| link.mean < 1.0).collect();
    let mut found = Vec::new();
    while (2..=MOST).contains(&left.len()) {
        let mut sets: Vec<u32> = (1..1_u32 << left.len()).filter(|set| set.count_ones() > 1).collect();
        sets.sort_by_key(|set| set.count_ones());
        let is_in = |set: u32, place: usize| set >> place & 1 == 1;
        let one = sets.into_iter().find(|set| {
            let of = |value: &dyn Fn(&Link<'_>) -> f64| -> f64 {
                left.iter().enumerate().filter(|(place, _)| is_in(*set, *place)).map(|(_, link)| value(link)).sum()
            };
            let differ = |interval: &Observation| of(&|link| link.count(interval)) - entity.ended(operation, interval);
            stays(entity, added, 1.0, NEARLY * executions, differ)
        });
        let Some(set) = one else { break };
        let places = left.into_iter().enumerate();
        let (taken, others): (Vec<_>, Vec<_>) = places.partition(|(place, _)| is_in(set, *place));
        let all: f64 = taken.iter().map(|(_, link)| link.mean).sum();
        found.push(taken.into_iter().map(|(_, link)| (link.to, link.mean / all)).collect());
        left = others.into_iter().map(|(_, link)| link).collect();
    }
    found
}

impl Draft {
    /// Makes an entry's calls regular: so many of some, and of each choice one.
    fn regular(
        &mut self,
        entry: EntryId,
        task: TaskId,
        fixed: &[(EntryId, f64)],
        choices: &[Vec<(EntryId, f64)>],
        is_client: bool,
    ) {
        let is_chosen = |to: EntryId| choices.iter().flatten().any(|(own, _)| *own == to);
        let number = |to: EntryId| fixed.iter().find(|(own, _)| *own == to).map(|(_, number)| *number);
        let work = std::mem::take(self.work(entry));
        let mut calls: Vec<Call> = work.calls.iter().filter(|call| !is_chosen(call.to)).cloned().collect();
        for call in &mut calls {
            call.mean = number(call.to).unwrap_or(call.mean);
        }
        calls.retain(|call| call.mean > 0.0);
        let (exact, some): (Vec<Call>, Vec<Call>) = calls.into_iter().partition(|call| number(call.to).is_some());
        if choices.is_empty() && (exact.is_empty() || some.is_empty()) {
            let call_order = if exact.is_empty() { work.call_order } else { CallOrder::Deterministic };
            let calls = if exact.is_empty() { some } else { exact };
            *self.work(entry) = Work { calls, call_order, ..work };
            return;
        }
        // The demand is cut into slices by all calls, wherever these stand.
        let numbers = |calls: &[Call]| calls.iter().map(|call| call.mean).sum::<f64>();
        let slice = work.demand / (1.0 + numbers(&exact) + numbers(&some) + choices.len() as f64);
        let mut steps = Vec::new();
        let mut first = 1.0;
        for (calls, call_order) in [(some, CallOrder::Stochastic), (exact, CallOrder::Deterministic)] {
            if !calls.is_empty() {
                let demand = slice * (numbers(&calls) + std::mem::take(&mut first));
                steps.push(self.step(entry, task, Work { demand, call_order, calls, ..Work::default() }));
            }
        }
        if steps.is_empty() {
            steps.push(self.step(entry, task, Work { demand: slice, ..Work::default() }));
        }
        for pair in steps.windows(2) {
            self.follow(task, Join::Sequence(pair[0]), Fork::Sequence(pair[1]));
        }
        let begin = steps[0];
        let mut last = steps[steps.len() - 1];
        for choice in choices {
            let branches: Vec<(f64, ActivityId)> = choice
                .iter()
                .map(|(to, part)| {
                    let call = work.calls.iter().find(|call| call.to == *to).expect("what is chosen is called");
                    let calls = vec![Call { mean: 1.0, ..call.clone() }];
                    let call_order = CallOrder::Deterministic;
                    (*part, self.step(entry, task, Work { call_order, calls, ..Work::default() }))
                })
                .collect();
            let after = self.step(entry, task, Work { demand: slice, ..Work::default() });
            let ends = branches.iter().map(|(_, branch)| *branch).collect();
            self.follow(task, Join::Sequence(last), Fork::Or(branches));
            self.follow(task, Join::Or(ends), Fork::Sequence(after));
            last = after;
        }
        if !is_client {
            self.model.activities[last.index()].replies.push(entry);
        }
        self.model.entries[entry.index()].body = Body::Activities(begin);
    }

    fn step(&mut self, entry: EntryId, task: TaskId, work: Work) -> ActivityId {
        let id = ActivityId::from(self.model.activities.len());
        let name = format!("{}:{}", self.name(entry), self.model.tasks[task.index()].activities.len() + 1);
        self.model.activities.push(Activity { work, ..Activity::new(&name, task) });
        self.model.tasks[task.index()].activities.push(id);
        id
    }

    fn follow(&mut self, task: TaskId, join: Join, fork: Fork) {
        self.model.tasks[task.index()].precedences.push(Precedence { join, fork: Some(fork) });
    }

    /// Says of a number how regular it is.
    fn tell(&mut self, element: &str, quantity: &str, value: f64, how: &str) {
        let mut own = self.sources.iter_mut().filter(|own| own.element == element && own.quantity == quantity);
        if let Some(source) = own.next() {
            source.value = value;
            source.from = format!("{}; {how}", source.from);
        }
    }
}
