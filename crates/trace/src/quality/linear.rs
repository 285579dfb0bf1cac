//! The same findings as those of the relations, by plain passes over the sorted events.
//!
//! For operations too large for the relations. A property test holds both to the same findings.

use rustc_hash::FxHashSet;

use super::finding::{Fault, Finding};
use super::layout::{Entry, Layout};
use crate::{Event, Kind};

/// The findings, in order.
pub(crate) fn findings(layout: &Layout<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for thread in layout.threads() {
        counters(thread, Fault::ThreadGap, Fault::ThreadRepeat, &mut findings);
        ends(layout, thread, &mut findings);
    }
    for task in layout.by_task.chunk_by(|a, b| a.group == b.group) {
        counters(task, Fault::TaskGap, Fault::TaskRepeat, &mut findings);
    }
    let zero = |event: &Event| event.index == 0 || event.counter == 0;
    let zeros = (0..).zip(&layout.operation.events).filter(|(_, event)| zero(event));
    findings.extend(zeros.map(|(index, _)| Finding::at(Fault::ZeroCounter, index)));
    links(layout, &mut findings);
    roots(layout, &mut findings);
    let arcs = layout.arcs();
    let components = layout.components(&arcs);
    let same = |arc: &&(u32, u32)| components[arc.0 as usize] == components[arc.1 as usize];
    let knots: FxHashSet<u32> = arcs.iter().filter(same).map(|arc| components[arc.0 as usize]).collect();
    findings.extend(knots.into_iter().map(|event| Finding::at(Fault::Cycle, event)));
    findings.sort_unstable();
    findings
}

/// Gaps and repeats of the counters of a thread or task.
fn counters(group: &[Entry], gap: Fault, repeat: Fault, findings: &mut Vec<Finding>) {
    let mut expected = 1;
    for same in group.chunk_by(|a, b| a.counter == b.counter) {
        let counter = same[0].counter;
        if counter > expected {
            findings.push(Finding::gap(gap, same[0].event, (expected, counter - 1)));
        }
        expected = counter.saturating_add(1);
        findings.extend(same[1..].iter().map(|entry| Finding::at(repeat, entry.event)));
    }
}

/// Begins and ends of a thread.
fn ends(layout: &Layout<'_>, thread: &[Entry], findings: &mut Vec<Finding>) {
    let kind = |entry: &Entry| layout.operation.events[entry.event as usize].kind;
    let mut ended = false;
    let mut places = thread.chunk_by(|a, b| a.counter == b.counter).peekable();
    while let Some(same) = places.next() {
        let goes_on = places.peek().is_some_and(|next| next[0].counter - 1 == same[0].counter);
        if same[0].counter == 1 && kind(&same[0]) != Kind::Begin {
            findings.push(Finding::at(Fault::NoBegin, same[0].event));
        }
        for entry in same {
            match kind(entry) {
                Kind::Begin if entry.counter > 1 => findings.push(Finding::at(Fault::BeginInside, entry.event)),
                Kind::End => {
                    ended = true;
                    if goes_on {
                        findings.push(Finding::at(Fault::EndInside, entry.event));
                    }
                }
                _ => {}
            }
        }
    }
    if !ended {
        findings.push(Finding::at(Fault::NoEnd, layout.last_place(thread[0].group)));
    }
}

/// Forks and joins.
fn links(layout: &Layout<'_>, findings: &mut Vec<Finding>) {
    let mut check = |links: &mut dyn Iterator<Item = (u32, u32)>, unknown, twice| {
        let mut seen = FxHashSet::default();
        for (event, thread) in links {
            if layout.thread(thread).is_empty() {
                findings.push(Finding::at(unknown, event));
            }
            if !seen.insert(thread) {
                findings.push(Finding::at(twice, event));
            }
        }
    };
    check(&mut layout.forks(), Fault::DanglingFork, Fault::ForkedTwice);
    check(&mut layout.joins(), Fault::JoinOfUnknown, Fault::JoinedTwice);
}

/// Threads without a fork, and threads that none of these leads to.
fn roots(layout: &Layout<'_>, findings: &mut Vec<Finding>) {
    let forked: FxHashSet<u32> = layout.forks().map(|(_, thread)| thread).collect();
    let unforked: Vec<&[Entry]> = layout.threads().filter(|thread| !forked.contains(&thread[0].group)).collect();
    let lacking = || unforked.iter().skip(1).map(|thread| thread[0].event);
    findings.extend(lacking().map(|event| Finding::at(Fault::BeginWithoutFork, event)));
    findings.extend(lacking().take(1).map(|event| Finding::at(Fault::SeveralRoots, event)));
    if unforked.is_empty() {
        findings.push(Finding::at(Fault::NoRoot, layout.by_thread[0].event));
    }
    let mut reached: FxHashSet<u32> = unforked.iter().map(|thread| thread[0].group).collect();
    let mut open: Vec<u32> = reached.iter().copied().collect();
    while let Some(thread) = open.pop() {
        for entry in layout.thread(thread) {
            if let Kind::Fork(child) = layout.operation.events[entry.event as usize].kind
                && reached.insert(child)
            {
                open.push(child);
            }
        }
    }
    for thread in layout.threads().filter(|thread| !reached.contains(&thread[0].group)) {
        findings.push(Finding::at(Fault::Unreachable, thread[0].event));
    }
}
