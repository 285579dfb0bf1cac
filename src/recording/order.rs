//! An order of events in which the branches of a visit come one after the other.
//!
//! A task node counter counts what is done in a task as if one thread did it. The branches of a visit are therefore counted one
//! after the other, each where it was forked, though they went on at once. What they asked of others has to be counted in
//! that order, too: a task that answered the second branch and then the first one would say that the one comes before the
//! other, and the visit would say the opposite, so that each came before itself.
//!
//! So the events are played again. An event waits for its causes and for what its visit counts before it; a visit begins when
//! no other one is in its instance of the task. Of those that could be next, the one that happened first is. Where tasks call
//! each other in one direction only, a visit waits for visits further down, and one of them can always go on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::trace::{Event, Kind};

use super::wanted::NONE;

/// Events in an order, by number, and visits which need another instance of their task, as everyone waited for someone else.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub events: Vec<u32>,
    pub apart: Vec<u32>,
}

/// An instance of a task: whether a visit is in it, and the first events of those that wait for it.
#[derive(Clone, Debug, Default)]
struct Instance {
    busy: bool,
    waiting: BinaryHeap<Reverse<u32>>,
}

/// What has to happen before an event, and what waits for it.
#[derive(Clone, Copy, Debug)]
struct Arcs {
    visit: u32,
    causes: u8,
    first: bool,
    next_in_visit: u32,
    next_in_thread: u32,
    /// The begin of the thread that it forks, or the wait for the thread that it ends.
    other: u32,
}

/// An order of all events, which come in that of time, and are of so many threads. Of each visit the events in the order in which
/// it counts them.
pub(super) fn one_after_the_other(events: &[Event], visits: &[Vec<u32>], threads: usize) -> Order {
    let arcs = arcs(events, visits, threads);
    let mut waits: Vec<u8> = arcs.iter().map(|arcs| arcs.causes).collect();
    let task = |event: u32| events[event as usize].task.index();
    let mut instances = vec![Instance::default(); events.iter().map(|event| event.task.index() + 1).max().unwrap_or(0)];
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..events.len() as u32).filter(|event| waits[*event as usize] == 0).map(Reverse).collect();
    let mut order = Order::default();
    let mut apart = vec![false; visits.len()];
    loop {
        while let Some(Reverse(event)) = ready.pop() {
            let Arcs { visit, first, next_in_visit, next_in_thread, other, .. } = arcs[event as usize];
            let instance = &mut instances[task(event)];
            let shared = !apart[visit as usize];
            if first && shared {
                if instance.busy {
                    instance.waiting.push(Reverse(event));
                    continue;
                }
                instance.busy = true;
            }
            order.events.push(event);
            if next_in_visit == NONE && shared {
                instance.busy = false;
                ready.extend(instance.waiting.pop());
            }
            for next in [next_in_visit, next_in_thread, other] {
                if next != NONE {
                    waits[next as usize] -= 1;
                    if waits[next as usize] == 0 {
                        ready.push(Reverse(next));
                    }
                }
            }
        }
        let stuck = instances.iter_mut().filter(|instance| !instance.waiting.is_empty());
        let Some(earliest) = stuck.max_by_key(|instance| instance.waiting.peek().copied()) else { break };
        let Some(Reverse(event)) = earliest.waiting.pop() else { break };
        let visit = arcs[event as usize].visit;
        apart[visit as usize] = true;
        order.apart.push(visit);
        ready.push(Reverse(event));
    }
    order
}

fn arcs(events: &[Event], visits: &[Vec<u32>], threads: usize) -> Vec<Arcs> {
    let nothing = Arcs { visit: NONE, causes: 0, first: false, next_in_visit: NONE, next_in_thread: NONE, other: NONE };
    let mut arcs = vec![nothing; events.len()];
    for (number, visit) in visits.iter().enumerate() {
        for (place, event) in visit.iter().enumerate() {
            let own = &mut arcs[*event as usize];
            own.visit = number as u32;
            own.first = place == 0;
            own.causes += u8::from(place > 0);
            own.next_in_visit = visit.get(place + 1).copied().unwrap_or(NONE);
        }
    }
    // By thread: the event that forked it, and its last event so far.
    let (mut forked_by, mut last) = (vec![NONE; threads + 1], vec![NONE; threads + 1]);
    for (number, event) in events.iter().enumerate() {
        let (own, thread) = (number as u32, event.thread as usize);
        let before = if last[thread] == NONE { forked_by[thread] } else { last[thread] };
        if before != NONE {
            let arc = &mut arcs[before as usize];
            *(if last[thread] == NONE { &mut arc.other } else { &mut arc.next_in_thread }) = own;
            arcs[number].causes += 1;
        }
        last[thread] = own;
        match event.kind {
            Kind::Fork(forked) => forked_by[forked as usize] = own,
            Kind::Join(ended) if last[ended as usize] != NONE => {
                arcs[last[ended as usize] as usize].other = own;
                arcs[number].causes += 1;
            }
            _ => {}
        }
    }
    arcs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TaskId;

    fn event(thread: u32, kind: Kind, task: u32) -> Event {
        Event::new(thread, 0, kind, TaskId(task), 0)
    }

    #[test]
    fn what_branches_ask_comes_in_their_order() {
        use Kind::{Activity, Begin, End, Fork, Join};
        // Task 0 forks threads 2 and 3; that in 3 is the first to be answered by task 1.
        let events = [
            event(1, Begin, 0),
            event(1, Fork(2), 0),
            event(2, Begin, 0),
            event(1, Fork(3), 0),
            event(3, Begin, 0),
            event(3, Activity, 0),
            event(3, Activity, 1),
            event(3, Activity, 0),
            event(2, Activity, 0),
            event(2, Activity, 1),
            event(2, Activity, 0),
            event(2, End, 0),
            event(3, End, 0),
            event(1, Join(2), 0),
            event(1, Join(3), 0),
            event(1, End, 0),
        ];
        let visits = [vec![0, 1, 2, 8, 10, 11, 3, 4, 5, 7, 12, 13, 14, 15], vec![6], vec![9]];
        let order = one_after_the_other(&events, &visits, 3);
        assert_eq!(order.events, [0, 1, 2, 8, 9, 10, 11, 3, 4, 5, 6, 7, 12, 13, 14, 15]);
        assert!(order.apart.is_empty());
    }

    #[test]
    fn who_waits_in_a_circle_gets_another_instance() {
        use Kind::{Activity, Begin, End, Fork};
        // In threads 2 and 3 tasks 1 and 2 call each other, each from a visit that is begun before the other one is done.
        let events = [
            event(1, Begin, 0),
            event(1, Fork(2), 0),
            event(1, Fork(3), 0),
            event(2, Begin, 1),
            event(3, Begin, 2),
            event(2, Activity, 2),
            event(3, Activity, 1),
            event(2, End, 1),
            event(3, End, 2),
            event(1, End, 0),
        ];
        let visits = [vec![0, 1, 2, 9], vec![3, 7], vec![4, 8], vec![5], vec![6]];
        let order = one_after_the_other(&events, &visits, 3);
        assert_eq!(order.apart, [3]);
        assert_eq!(order.events, [0, 1, 2, 3, 4, 9, 5, 7, 6, 8]);
    }
}
