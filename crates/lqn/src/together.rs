//! Work of many parts, done by several threads. Its outcome stands in the order of the parts, however many threads there are.

use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Threads that work on one thing at most.
const THREADS: usize = 4;

/// So many times, stays and the like, keep a thread busy for longer than it takes to start one.
const WORTH: usize = 1 << 13;

/// How many threads work of such a size is for: it is counted in times that are looked at.
pub fn threads(size: usize) -> usize {
    threads_for((size / WORTH) as u64)
}

/// How many threads so many pieces of work are for, of which each is worth one.
pub fn threads_for(pieces: u64) -> usize {
    pieces.clamp(1, THREADS as u64) as usize
}

/// What each part comes to, in the order of the parts.
pub fn each<I: Send, R: Send>(
    threads: usize,
    parts: impl IntoIterator<Item = I, IntoIter: Send>,
    of: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    if threads <= 1 {
        return parts.into_iter().map(of).collect();
    }
    let left = Mutex::new(parts.into_iter().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut found = Vec::new();
        while let Some((place, part)) = next() {
            found.push((place, of(part)));
        }
        found
    };
    let mut found = thread::scope(|scope| {
        // Where a thread cannot be started, the others do its work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|fault| panic::resume_unwind(fault)));
        }
        found
    });
    found.sort_unstable_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, own)| own).collect()
}

/// What two pieces of work come to, where so many threads are worth it at the same time.
#[expect(clippy::missing_panics_doc, reason = "one of the two threads does it")]
pub fn both<L, R: Send>(threads: usize, left: impl FnOnce() -> L, right: impl FnOnce() -> R + Send) -> (L, R) {
    if threads <= 1 {
        return (left(), right());
    }
    let right = Mutex::new(Some(right));
    let take = || right.lock().unwrap_or_else(PoisonError::into_inner).take().map(|right| right());
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, take).ok();
        let left = left();
        let found = other.and_then(|other| other.join().unwrap_or_else(|fault| panic::resume_unwind(fault)));
        (left, found.or_else(take).expect("one of the two threads did it"))
    })
}

#[cfg(test)]
mod tests {
    use std::panic;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{both, each, threads};

    #[test]
    fn the_outcome_is_in_order_by_any_number_of_threads() {
        let squares: Vec<u64> = (0..1000).map(|number| number * number).collect();
        for threads in [0, 1, 2, 3, 8] {
            assert_eq!(each(threads, 0..1000_u64, |number| number * number), squares);
            assert_eq!(both(threads, || 1, || "two"), (1, "two"));
            assert_eq!(each(threads, Vec::<u8>::new(), |_| ()), []);
        }
        // Parts may be changed where they are.
        let mut numbers = [1, 2, 3];
        each(2, &mut numbers, |number| *number += 1);
        assert_eq!(numbers, [2, 3, 4]);
        assert_eq!([0, 100, 1 << 14, usize::MAX].map(threads), [1, 1, 2, 4]);
    }

    #[test]
    fn every_part_is_worked_on_once_and_a_fault_is_handed_on() {
        let count = AtomicUsize::new(0);
        each(4, 0..100, |_| count.fetch_add(1, Ordering::Relaxed));
        assert_eq!(count.into_inner(), 100);
        for threads in [1, 4] {
            assert!(panic::catch_unwind(|| each(threads, 0..9, |number| assert_ne!(number, 7))).is_err());
            assert!(panic::catch_unwind(|| both(threads, || (), || panic!("of a piece of work"))).is_err());
        }
    }
}
