//! Well-formedness as relations.
//!
//! Each rule below is one sentence of the 1998 paper's §4. The rules run on operations that the fast screen refuses, to find
//! out why. Facts are numbers: events by index, threads by identifier, tasks by number. Of events with the same label the
//! first stands for all (`ThreadPlace`, `TaskPlace`, `FirstFork`, `FirstJoin`), which keeps every join of the rules linear.

use super::finding::{Fault, Finding};
use super::layout::{Entry, Layout};
use crate::Kind;

mod rules {
    //! The macro makes a module's worth of types, so it has one.

    crepe::crepe! {
        // Facts: an event with thread and thread node counter, or with task and task node counter.
        @input
        pub struct ThreadNode(pub u32, pub u32, pub u32);
        @input
        pub struct TaskNode(pub u32, pub u32, pub u32);
        // The first event at a thread (task) and counter.
        @input
        pub struct ThreadPlace(pub u32, pub u32, pub u32);
        @input
        pub struct TaskPlace(pub u32, pub u32, pub u32);
        // Events by type, with their thread, and the counter or the thread they name.
        @input
        pub struct Begin(pub u32, pub u32, pub u32);
        @input
        pub struct End(pub u32, pub u32, pub u32);
        @input
        pub struct Fork(pub u32, pub u32, pub u32);
        @input
        pub struct FirstFork(pub u32, pub u32);
        @input
        pub struct Join(pub u32, pub u32);
        @input
        pub struct FirstJoin(pub u32, pub u32);
        // A thread and the one with the next higher identifier.
        @input
        pub struct NextThread(pub u32, pub u32);
        // Cause and effect, and the strongly connected component of an event.
        @input
        pub struct Arc(pub u32, pub u32);
        @input
        pub struct Component(pub u32, pub u32);

        struct Thread(u32);
        Thread(k) <- ThreadPlace(k, _, _);

        // Counters begin at one and are dense.
        struct InThread(u32, u32);
        InThread(k, m) <- ThreadPlace(k, m, _);
        @output
        pub struct ThreadGap(pub u32);
        ThreadGap(e) <- ThreadPlace(k, m, e), (m > 1), let before = m - 1, !InThread(k, before);
        @output
        pub struct ThreadRepeat(pub u32);
        ThreadRepeat(e) <- ThreadNode(e, k, m), ThreadPlace(k, m, first), (e != first);

        @output
        pub struct ZeroCounter(pub u32);
        ZeroCounter(e) <- ThreadNode(e, _, m), (m == 0);
        ZeroCounter(e) <- TaskNode(e, _, v), (v == 0);

        struct InTask(u32, u32);
        InTask(i, v) <- TaskPlace(i, v, _);
        @output
        pub struct TaskGap(pub u32);
        TaskGap(e) <- TaskPlace(i, v, e), (v > 1), let before = v - 1, !InTask(i, before);
        @output
        pub struct TaskRepeat(pub u32);
        TaskRepeat(e) <- TaskNode(e, i, v), TaskPlace(i, v, first), (e != first);

        // Each thread starts with a begin node and finishes with an end node.
        struct IsBegin(u32);
        IsBegin(e) <- Begin(e, _, _);
        @output
        pub struct NoBegin(pub u32);
        NoBegin(e) <- ThreadPlace(_, m, e), (m == 1), !IsBegin(e);
        @output
        pub struct BeginInside(pub u32);
        BeginInside(e) <- Begin(e, _, m), (m > 1);

        struct Ends(u32);
        Ends(k) <- End(_, k, _);
        @output
        pub struct NoEnd(pub u32);
        NoEnd(k) <- Thread(k), !Ends(k);
        @output
        pub struct EndInside(pub u32);
        EndInside(e) <- End(e, k, m), (m < u32::MAX), let after = m + 1, InThread(k, after);

        // Threads are connected by fork nodes.
        @output
        pub struct DanglingFork(pub u32);
        DanglingFork(e) <- Fork(e, _, k), !Thread(k);
        @output
        pub struct ForkedTwice(pub u32);
        ForkedTwice(e) <- Fork(e, _, k), FirstFork(k, first), (e != first);
        struct Forked(u32);
        Forked(k) <- Fork(_, _, k);
        struct Unforked(u32);
        Unforked(k) <- Thread(k), !Forked(k);

        // The root is the lowest thread without a fork; the others lack one.
        struct HasUnforkedBefore(u32);
        HasUnforkedBefore(k) <- NextThread(before, k), Unforked(before);
        HasUnforkedBefore(k) <- NextThread(before, k), HasUnforkedBefore(before);
        @output
        pub struct BeginWithoutFork(pub u32);
        BeginWithoutFork(k) <- Unforked(k), HasUnforkedBefore(k);
        struct SomeRoot(u32);
        SomeRoot(0) <- Unforked(_);
        @output
        pub struct NoRoot(pub u32);
        NoRoot(0) <- Thread(_), !SomeRoot(0);

        // A linear recursion: each thread is reached once.
        struct Reached(u32);
        Reached(k) <- Unforked(k);
        Reached(k) <- Reached(parent), Fork(_, parent, k);
        @output
        pub struct Unreachable(pub u32);
        Unreachable(k) <- Thread(k), !Reached(k);

        // A join waits for the end of a thread, and each thread for at most one join.
        @output
        pub struct JoinOfUnknown(pub u32);
        JoinOfUnknown(e) <- Join(e, k), !Thread(k);
        @output
        pub struct JoinedTwice(pub u32);
        JoinedTwice(e) <- Join(e, k), FirstJoin(k, first), (e != first);

        // The graph is acyclic: no arc stays within a component.
        @output
        pub struct Cycle(pub u32);
        Cycle(c) <- Arc(from, to), Component(from, c), Component(to, c);
    }
}

/// The findings of the rules, in order.
pub(crate) fn findings(layout: &Layout<'_>) -> Vec<Finding> {
    let mut runtime = rules::Crepe::new();
    let events = &layout.operation.events;
    runtime.extend(layout.by_thread.iter().map(|node| rules::ThreadNode(node.event, node.group, node.counter)));
    runtime.extend(layout.by_task.iter().map(|node| rules::TaskNode(node.event, node.group, node.counter)));
    runtime.extend(places(&layout.by_thread).map(|node| rules::ThreadPlace(node.group, node.counter, node.event)));
    runtime.extend(places(&layout.by_task).map(|node| rules::TaskPlace(node.group, node.counter, node.event)));
    for (index, event) in (0..).zip(events) {
        match event.kind {
            Kind::Begin => runtime.extend([rules::Begin(index, event.thread, event.index)]),
            Kind::End => runtime.extend([rules::End(index, event.thread, event.index)]),
            Kind::Fork(thread) => runtime.extend([rules::Fork(index, event.thread, thread)]),
            Kind::Join(thread) => runtime.extend([rules::Join(index, thread)]),
            Kind::Activity => {}
        }
    }
    runtime.extend(super::firsts(layout.forks()).map(|(event, thread)| rules::FirstFork(thread, event)));
    runtime.extend(super::firsts(layout.joins()).map(|(event, thread)| rules::FirstJoin(thread, event)));
    let threads: Vec<u32> = layout.threads().map(|thread| thread[0].group).collect();
    runtime.extend(threads.windows(2).map(|pair| rules::NextThread(pair[0], pair[1])));
    let arcs = layout.arcs();
    let components = layout.components(&arcs);
    runtime.extend(arcs.iter().map(|(from, to)| rules::Arc(*from, *to)));
    runtime.extend((0..).zip(&components).map(|(event, component)| rules::Component(event, *component)));
    collect(layout, runtime)
}

/// The first entry of each group and counter.
fn places(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.chunk_by(|a, b| (a.group, a.counter) == (b.group, b.counter)).map(|same| &same[0])
}

/// Runs the rules. What crepe gives out has no order, so it is sorted.
fn collect(layout: &Layout<'_>, runtime: rules::Crepe) -> Vec<Finding> {
    let (
        thread_gap,
        thread_repeat,
        zero_counter,
        task_gap,
        task_repeat,
        no_begin,
        begin_inside,
        no_end,
        end_inside,
        dangling_fork,
        forked_twice,
        begin_without_fork,
        no_root,
        unreachable,
        join_of_unknown,
        joined_twice,
        cycle,
    ) = runtime.run();
    let mut findings = Vec::new();
    let mut add = |fault, events: &mut dyn Iterator<Item = u32>| {
        findings.extend(events.map(|event| Finding::at(fault, event)));
    };
    add(Fault::ThreadRepeat, &mut thread_repeat.iter().map(|found| found.0));
    add(Fault::TaskRepeat, &mut task_repeat.iter().map(|found| found.0));
    add(Fault::ZeroCounter, &mut zero_counter.iter().map(|found| found.0));
    add(Fault::NoBegin, &mut no_begin.iter().map(|found| found.0));
    add(Fault::BeginInside, &mut begin_inside.iter().map(|found| found.0));
    add(Fault::EndInside, &mut end_inside.iter().map(|found| found.0));
    add(Fault::DanglingFork, &mut dangling_fork.iter().map(|found| found.0));
    add(Fault::ForkedTwice, &mut forked_twice.iter().map(|found| found.0));
    add(Fault::JoinOfUnknown, &mut join_of_unknown.iter().map(|found| found.0));
    add(Fault::JoinedTwice, &mut joined_twice.iter().map(|found| found.0));
    add(Fault::Cycle, &mut cycle.iter().map(|found| found.0));
    // What is found of a thread is shown at its first or last event.
    let first = |thread: u32| layout.thread(thread)[0].event;
    add(Fault::NoEnd, &mut no_end.iter().map(|found| layout.last_place(found.0)));
    add(Fault::BeginWithoutFork, &mut begin_without_fork.iter().map(|found| first(found.0)));
    add(Fault::Unreachable, &mut unreachable.iter().map(|found| first(found.0)));
    if let Some(second) = begin_without_fork.iter().map(|found| found.0).min() {
        findings.push(Finding::at(Fault::SeveralRoots, first(second)));
    }
    if !no_root.is_empty() {
        findings.push(Finding::at(Fault::NoRoot, layout.by_thread[0].event));
    }
    findings.extend(thread_gap.iter().map(|found| layout.thread_gap(found.0)));
    findings.extend(task_gap.iter().map(|found| layout.task_gap(found.0)));
    findings.sort_unstable();
    findings
}
