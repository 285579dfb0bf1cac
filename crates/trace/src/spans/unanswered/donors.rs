//! Work on messages that stands for work of which no span was recorded: of the same operation, with all that it does and calls.
//!
//! What a consumer does varies, and it calls others. So in place of work that was lost comes what was recorded for another message like it, a different one each time: loads and demands of all that lies
//! below grow with the number of messages, and demands keep their mean and their variance.

use crate::VisitEvidence;
use crate::spans::classify::Knowledge;
use crate::spans::plan::{NONE, SpanPlan, What};
use dyelog_diagnostic::names::Name;

/// So many are kept of each kind.
const KEPT: u64 = 1024;
/// So many items are kept of each kind: fewer works, where they are large.
const MOST_ITEMS: usize = 1 << 12;
/// Beyond the first of them every so manieth takes the place of another one.
const STRIDE: u64 = 16;
/// The largest plan of which one is taken, and the largest one that is kept, in items.
const LARGEST: (usize, usize) = (4096, 256);

/// Work on messages of one kind.
#[derive(Debug, Default)]
pub struct Donors {
    kept: Vec<SpanPlan>,
    items: usize,
    offered: u64,
    given: usize,
}

impl Donors {
    /// Takes in what was done for a message, by the visit that did it and when the message was sent.
    pub fn offer(&mut self, plan: &SpanPlan, visit: u32, sent: i64) {
        let number = self.offered;
        self.offered += 1;
        if (number >= KEPT && !number.is_multiple_of(STRIDE)) || plan.items.len() > LARGEST.0 {
            return;
        }
        let Some(copy) = below(plan, visit, sent) else { return };
        self.items += copy.items.len();
        let most = if self.items > MOST_ITEMS { self.kept.len() as u64 } else { KEPT };
        let turn = if number < KEPT { number } else { number / STRIDE };
        let place = turn % most.max(1);
        match self.kept.get_mut(place as usize) {
            Some(place) => self.items -= std::mem::replace(place, copy).items.len(),
            None => self.kept.push(copy),
        }
    }

    /// Puts the next of them in place of the work on a message, whose item is told; says whether there was one.
    pub fn give(&mut self, plan: &mut SpanPlan, sent: u32, known: &Knowledge<'_>) -> bool {
        let Some(donor) = self.kept.get(self.given % self.kept.len().max(1)) else { return false };
        self.given += 1;
        let first = plan.items.len();
        graft(plan, sent, donor);
        name_peers(plan, first, known);
        true
    }
}

/// A visit that works on a message with all below it, with times from when it was sent; nothing where that is too much.
fn below(plan: &SpanPlan, visit: u32, sent: i64) -> Option<SpanPlan> {
    let root = visit as usize;
    let mut copy = SpanPlan::default();
    let mut visits: Vec<u32> = vec![NONE; plan.visits.len()];
    let mut scopes: Vec<u32> = vec![NONE; plan.scopes.len()];
    let mut items: Vec<u32> = vec![NONE; plan.items.len()];
    copy.visits.push(plan.visits[root].clone());
    visits[root] = 0;
    // Each visit comes after the one that calls it, and each item after those that it is within.
    for (number, visit) in plan.visits.iter().enumerate().skip(root + 1) {
        let caller = plan.items.get(visit.caller as usize).map(|item| plan.scopes[item.scope as usize].visit);
        if caller.is_some_and(|caller| visits[caller as usize] != NONE) {
            visits[number] = copy.visits.len() as u32;
            copy.visits.push(visit.clone());
        }
    }
    for (number, scope) in plan.scopes.iter().enumerate().filter(|(_, scope)| visits[scope.visit as usize] != NONE) {
        scopes[number] = copy.scopes.len() as u32;
        copy.scopes.push(scope.clone());
    }
    for (number, item) in plan.items.iter().enumerate().filter(|(_, item)| scopes[item.scope as usize] != NONE) {
        items[number] = copy.items.len() as u32;
        copy.items.push(item.clone());
    }
    if copy.items.len() > LARGEST.1 {
        return None;
    }
    let place = |new: &[u32], old: u32| new.get(old as usize).copied().unwrap_or(NONE);
    for visit in &mut copy.visits {
        (visit.scope, visit.caller) = (place(&scopes, visit.scope), place(&items, visit.caller));
        for own in [&mut visit.start, &mut visit.end, &mut visit.extent] {
            *own = own.saturating_sub(sent);
        }
    }
    for scope in &mut copy.scopes {
        scope.visit = place(&visits, scope.visit);
    }
    for item in &mut copy.items {
        (item.scope, item.callee, item.inner) =
            (place(&scopes, item.scope), place(&visits, item.callee), place(&scopes, item.inner));
        (item.start, item.end) = (item.start.saturating_sub(sent), item.end.saturating_sub(sent));
    }
    Some(copy)
}

/// Puts work in place of that on a message. Its spans are those of the message: others are not there.
fn graft(plan: &mut SpanPlan, sent: u32, donor: &SpanPlan) {
    let (root, span, time) = {
        let item = &plan.items[sent as usize];
        (item.callee, item.span, item.end)
    };
    let (visits, scopes, items) = (plan.visits.len() as u32, plan.scopes.len() as u32, plan.items.len() as u32);
    // The root takes the place of the lost visit, whose scope is empty.
    let visit_at = |visit: u32| match visit {
        NONE => NONE,
        0 => root,
        other => visits + other - 1,
    };
    let moved = |place: u32, by: u32| if place == NONE { NONE } else { place + by };
    for (number, visit) in (0_u32..).zip(&donor.visits) {
        let mut copy = visit.clone();
        (copy.span, copy.scope, copy.caller) = (span, moved(visit.scope, scopes), moved(visit.caller, items));
        copy.evidence = VisitEvidence::Copied;
        for own in [&mut copy.start, &mut copy.end, &mut copy.extent] {
            *own = own.saturating_add(time);
        }
        if number == 0 {
            copy.caller = sent;
            plan.visits[root as usize] = copy;
        } else {
            plan.visits.push(copy);
        }
    }
    for scope in &donor.scopes {
        let mut copy = scope.clone();
        copy.visit = visit_at(scope.visit);
        plan.scopes.push(copy);
    }
    for item in &donor.items {
        let mut copy = item.clone();
        (copy.span, copy.scope) = (span, moved(item.scope, scopes));
        (copy.callee, copy.inner) = (visit_at(item.callee), moved(item.inner, scopes));
        (copy.start, copy.end) = (copy.start.saturating_add(time), copy.end.saturating_add(time));
        plan.items.push(copy);
    }
}

/// Gives peers without spans the names that all calls together tell, which were not known when the work was kept.
fn name_peers(plan: &mut SpanPlan, first: usize, known: &Knowledge<'_>) {
    for at in first..plan.items.len() {
        let item = &plan.items[at];
        if !matches!(item.what, What::Call(_)) || !item.client || !plan.visits[item.callee as usize].unrecorded {
            continue;
        }
        let (from, peer, callee) =
            (plan.visit_of(item).service, plan.visits[item.callee as usize].service, item.callee as usize);
        let told = if known.unknown.get(&from) == Some(&peer) { Name::NONE } else { peer };
        if let Some(service) = known.learned.get(&(from, told, item.name)) {
            plan.visits[callee].service = *service;
        }
    }
}
