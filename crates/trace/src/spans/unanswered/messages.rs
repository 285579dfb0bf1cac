//! Messages that no span worked on: how many there are, and whether what was lost is their work.

use super::{Answering, ENOUGH, Known, Unanswered};
use crate::spans::plan::{Item, SpanPlan};
use dyelog_diagnostic::names::{Name, Names};

/// So many pairs tell who works on messages where as much work is there without its message as messages without work.
const PAIRS: u64 = 3;
/// So many messages alike, and more, may be sent for each that was worked on: of fewer it is not clear that the others go there, too.
const SENT: u64 = 20;

/// Spans that were lost one by one lack no more than so many times their part of messages their work.
const ONE_BY_ONE: f64 = 3.0;
/// Work is kept of so many operations.
const MOST_KINDS: usize = 256;

/// Messages alike, some of which no span worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// The service that sends them.
    pub sender: Name,
    /// The name of the spans that do.
    pub message: Name,
    /// Who works on most of them.
    pub answering: Answering,
    /// How many were sent.
    pub sent: u64,
    /// How many of them no span worked on.
    pub lost: u64,
    /// Whether these count as worked on like the others.
    pub counted: bool,
    /// Whether there is as much work on messages whose sender's trace was not recorded.
    pub apart: bool,
}

impl Unanswered {
    /// Takes in a tree that works on a message whose sender is not known.
    pub fn observe_unlinked(&mut self, plan: &SpanPlan) {
        let work = &plan.visits[0];
        *self.unlinked.entry((work.service, work.operation)).or_default() += 1;
    }

    /// Takes in a tree that works on a message of whose sender's trace nothing is there.
    pub fn observe_apart(&mut self, plan: &SpanPlan) {
        let work = &plan.visits[0];
        *self.apart.entry((work.service, work.operation)).or_default() += 1;
        self.offer_visit(plan, 0, work.start);
    }

    /// Takes in work that may stand for such that was lost.
    pub(super) fn offer(&mut self, plan: &SpanPlan, sent: &Item) {
        self.offer_visit(plan, sent.callee, sent.end);
    }

    /// The same of the visit that does it, for a message of that time.
    fn offer_visit(&mut self, plan: &SpanPlan, visit: u32, sent: i64) {
        let work = &plan.visits[visit as usize];
        let answering = (work.service, work.operation);
        if self.donors.len() < MOST_KINDS || self.donors.contains_key(&answering) {
            self.donors.entry(answering).or_default().offer(plan, visit, sent);
        }
    }

    /// Whether so many messages lack the work on them that it was not lost span by span, and nothing is left of what it caused.
    pub(super) fn lack_whole_work(&self, known: &Known) -> bool {
        let sent = (known.answered() + known.unanswered).max(1);
        let torn: u64 = known.most.iter().filter_map(|((service, _), _)| self.torn.get(service)).sum();
        known.unanswered as f64 > ONE_BY_ONE * self.lost * sent as f64 && 2 * torn < known.unanswered
    }

    /// Whether messages lack the spans that worked on them: enough others have some, and what has lost its sender is not their work.
    pub(super) fn lack_consumers(&self, known: &Known) -> bool {
        let answered = known.answered();
        let unlinked: u64 = known.most.iter().filter_map(|(answering, _)| self.unlinked.get(answering)).sum();
        let enough = answered >= ENOUGH && known.unanswered <= answered.saturating_mul(SENT);
        (enough || answered >= PAIRS && self.are_apart(known)) && 2 * unlinked < known.unanswered
    }

    /// Whether messages and the work on them were recorded apart: there are about as many without work as there is work without its sender's trace. Where each trace is
    /// sampled by itself, few of both come together.
    fn are_apart(&self, known: &Known) -> bool {
        let apart: u64 = known.most.iter().filter_map(|(answering, _)| self.apart.get(answering)).sum();
        2 * apart >= known.unanswered && apart <= 2 * known.unanswered
    }

    /// Messages some of which no span worked on while work on others was recorded, by the names of their senders. What has lost its sender may be the work on them.
    pub fn unreceived(&self, names: &Names) -> Vec<Unreceived> {
        let mut all: Vec<Unreceived> = Vec::new();
        let any = self.known.iter().filter(|((_, operation, ..), known)| !operation.is_some() && known.sent > 0);
        for (&(sender, _, _, message), known) in any {
            let Some((answering, _)) = known.most.first().copied() else { continue };
            let counted = known.answered() > 2 * known.unanswered || self.lack_consumers(known);
            let explained = self.unlinked.get(&answering).is_some_and(|unlinked| 2 * unlinked >= known.unanswered);
            if known.unanswered > 0 && (counted || !explained) {
                let (sent, lost, apart) = (known.sent, known.unanswered, self.are_apart(known));
                all.push(Unreceived { sender, message, answering, sent, lost, counted, apart });
            }
        }
        let text =
            |own: &Unreceived| [own.sender, own.message, own.answering.0, own.answering.1].map(|name| names.text(name));
        all.sort_by(|one, next| text(one).cmp(&text(next)).then(one.sent.cmp(&next.sent)));
        all
    }
}
