//! Whether the sender of a message waits until the broker has taken it.
//!
//! A PRODUCER span lasts until the message is acknowledged. Most clients wait for that; some go on meanwhile, and a callback closes the span. No attribute tells which. What the other
//! spans show does: a sender that goes on begins something else during the span, or ends before it.

use rustc_hash::FxHashMap;

use crate::spans::classify::TreeView;
use crate::spans::plan::{Item, NONE, SpanPlan, Visit};
use crate::spans::unanswered::is_message;
use crate::{ReadReport, codes};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::quantity::{milliseconds, percent};
use dyelog_diagnostic::{Diagnostic, Place};

/// Senders go on where more than one of so many spans outlasts what it is in (ours, as for second phases).
pub(super) const OUTLAST: u64 = 50;
/// The same of spans during which something else begins (ours): fewer is what goes on in the background of a sender that waits.
const BEGIN: u64 = 5;
/// What begins, or ends, by one part in so many of the span from its end, begins with it, or ends with it.
pub(super) const HARDLY: i64 = 20;
/// Waiting for less than one part in so many of the visits that send is not worth a word.
const WORTH: i128 = 20;

/// The messages or calls of an operation of a service, by the name of their spans.
pub(super) type Kind = (Name, Name, Name);

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    count: u64,
    /// How many outlast what they are in, and during how many something else begins.
    outlast: u64,
    begin: u64,
    /// How long the spans take, and the visits that they are in, nanoseconds.
    taken: i128,
    visits: i128,
}

impl Sent {
    fn is_waited_for(&self) -> bool {
        self.outlast.saturating_mul(OUTLAST) <= self.count && self.begin.saturating_mul(BEGIN) <= self.count
    }
}

/// What the spans of messages show.
#[derive(Debug, Default)]
pub struct Sends {
    kinds: FxHashMap<Kind, Sent>,
}

/// Whether a span may be a wait: it lasts, and no processor time was measured in it.
fn may_wait(item: &Item) -> bool {
    is_message(item) && item.end > item.start && item.cpu.is_nan()
}

impl Sends {
    /// Takes in the messages of a tree; its times are as recorded, by clocks that count such steps, nanoseconds.
    pub fn observe(&mut self, plan: &SpanPlan, tree: &TreeView, step: i64) {
        if !plan.items.iter().any(may_wait) {
            return;
        }
        let lasts = |item: &&Item| item.client && item.end > item.start && !is_message(item);
        let mut begins: Vec<(u32, i64)> =
            plan.items.iter().filter(lasts).map(|item| (item.scope, item.start)).collect();
        begins.sort_unstable();
        for item in plan.items.iter().filter(|item| may_wait(item)) {
            let visit = plan.visit_of(item);
            let taken = item.end.saturating_sub(item.start);
            // A begin and a duration are rounded each.
            let margin = (taken / HARDLY).max(2 * step);
            let later = (item.scope, item.start.saturating_add(margin));
            let next = begins.get(begins.partition_point(|begin| *begin <= later));
            let begins_another =
                next.is_some_and(|next| next.0 == item.scope && next.1 < item.end.saturating_sub(margin));
            let sent = self.kinds.entry(kind_of(visit, item)).or_default();
            sent.count += 1;
            sent.begin += u64::from(begins_another);
            sent.outlast += u64::from(outlasts(tree, item, margin));
            sent.taken += i128::from(taken);
            sent.visits += if visit.unrecorded { 0 } else { i128::from(visit.end.saturating_sub(visit.start).max(0)) };
        }
    }

    /// Marks the messages of a tree whose senders wait. To others sending takes no time.
    pub fn tell(&self, plan: &mut SpanPlan) {
        for at in 0..plan.items.len() {
            let item = &plan.items[at];
            if may_wait(item) {
                let visit = plan.visit_of(item);
                let waits = self.kinds.get(&kind_of(visit, item)).is_some_and(Sent::is_waited_for);
                let last = if visit.unrecorded { item.end } else { item.end.min(visit.end.max(item.start)) };
                let item = &mut plan.items[at];
                (item.waits, item.end) = (waits, if waits { last } else { item.start });
            }
        }
    }

    /// Says how long senders wait, where that is much of what they do.
    pub fn report(&self, names: &Names, report: &mut ReadReport) {
        let text = |name: Name| names.text(name).escape_debug();
        // An operation without a name is what is left of one that was lost.
        let is_worth = |((_, operation, _), sent): &(&Kind, &Sent)| {
            let is_much = sent.visits > 0 && sent.taken * WORTH >= sent.visits;
            operation.is_some() && is_much && sent.is_waited_for()
        };
        let mut told: Vec<(&Kind, &Sent)> = self.kinds.iter().filter(is_worth).collect();
        told.sort_by_key(|((service, operation, message), _)| {
            [*service, *operation, *message].map(|name| names.text(name))
        });
        for ((service, operation, message), sent) in told {
            report.count("messages whose senders wait until they are taken", || {
                let each = milliseconds(sent.taken as f64 / sent.count as f64 * 1e-9);
                let part = percent(sent.taken as f64 / sent.visits as f64);
                let (service, operation, message) = (text(*service), text(*operation), text(*message));
                let title = format!("time in the {} spans `{message}` counts as waiting, not as work of `{service}`", sent.count);
                Diagnostic::warning(codes::SENDING, Place::Nowhere, title)
                    .with_note(format!("mean of such a span: {each}, {part} of `{operation}`, which sends the message"))
                    .with_note(format!("if `{service}` works on meanwhile, its demand is up to {each} higher per message"))
                    .with_hint("a client that goes on while the message is sent shows so by a span of what it does then; else set the demand under `[demand.entry]`")
            });
        }
    }
}

pub(super) fn kind_of(visit: &Visit, item: &Item) -> Kind {
    (visit.service, visit.operation, item.name)
}

/// Whether a message takes longer than the span around it, which has gone on.
fn outlasts(tree: &TreeView, item: &Item, margin: i64) -> bool {
    let parent = tree.parents[item.span as usize];
    if parent == NONE {
        return false;
    }
    let (own, around) = (&tree.spans[item.span as usize], &tree.spans[parent as usize]);
    let is_around = around.service == own.service && !around.kind.calls() && !own.follows;
    is_around && item.end > around.end.saturating_add(margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_that_go_on_do_not_count() {
        let waits = |count, outlast, begin| Sent { count, outlast, begin, ..Sent::default() }.is_waited_for();
        assert!(waits(100, 2, 20));
        assert!(!waits(100, 3, 0));
        assert!(!waits(100, 0, 21));
        assert!(!waits(1, 1, 0));
    }
}
