//! What must neither stop the program nor pass in silence.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dyelog_probe::{Call, Form, Function, Mode, Recorder, StartError, spawn};

use crate::support::{Memory, alone, paths, profile, record};

static OUTER: Function = Function::new("Adverse", "outer");
static INNER: Function = Function::new("Adverse", "inner");

#[test]
fn a_panic_ends_the_calls_that_it_leaves() {
    let ((), recorded) = record(Mode::Both, || {
        let caught = catch_unwind(|| {
            let _outer = OUTER.enter();
            let _inner = INNER.enter();
            panic!("on purpose");
        });
        assert!(caught.is_err());
        drop(OUTER.enter());
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let future = OUTER.run(async {
                let _inner = INNER.enter();
                panic!("on purpose");
            });
            futures_util::FutureExt::now_or_never(future)
        }));
        assert!(polled.is_err());
        let thread = {
            let _outer = OUTER.enter();
            spawn(|| {
                let _inner = INNER.enter();
                panic!("on purpose");
            })
            .join()
        };
        assert!(thread.is_err());
        drop(OUTER.enter());
    });
    let expected = [
        ("Adverse::outer", 5),
        ("Adverse::outer > Adverse::inner", 2),
        ("Adverse::outer > threads of Adverse::outer", 1),
        ("Adverse::outer > threads of Adverse::outer > Adverse::inner", 1),
    ];
    assert_eq!(recorded.sound(), paths(&expected));
}

/// Something that makes a call when its thread ends.
struct AtExit;

impl Drop for AtExit {
    fn drop(&mut self) {
        let _outer = OUTER.enter();
        let call = INNER.call();
        drop(INNER.serve(call.carrier()));
    }
}

thread_local! {
    static EARLY: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

#[test]
fn destructors_at_the_end_of_a_thread_are_recorded() {
    const THREADS: u64 = 20;
    let ((), recorded) = record(Mode::Both, || {
        for _ in 0..THREADS {
            std::thread::spawn(|| {
                // One is set up before the probes of the thread, one after: whatever the order of destructors, one of them comes when those are gone.
                EARLY.with(|slot| *slot.borrow_mut() = Some(AtExit));
                drop(OUTER.enter());
                LATE.with(|slot| *slot.borrow_mut() = Some(AtExit));
            })
            .join()
            .expect("it does not panic");
        }
    });
    let found = recorded.sound();
    assert_eq!(found.iter().filter(|(path, _)| path.ends_with("outer")).map(|(_, n)| n).sum::<u64>(), 3 * THREADS);
    assert_eq!(found.iter().filter(|(path, _)| path.ends_with("inner")).map(|(_, n)| n).sum::<u64>(), 2 * THREADS);
}

#[test]
fn threads_that_come_and_go_lose_nothing() {
    const THREADS: u64 = 5000;
    let ((), recorded) = record(Mode::Both, || {
        for _ in 0..THREADS / 10 {
            let some: Vec<_> = (0..10).map(|_| std::thread::spawn(|| drop(OUTER.enter()))).collect();
            for thread in some {
                thread.join().expect("it does not panic");
            }
        }
    });
    assert_eq!(recorded.sound(), paths(&[("Adverse::outer", THREADS)]));
}

#[test]
fn ends_in_a_wrong_place_are_counted() {
    let ((), recorded) = record(Mode::Both, || {
        let (outer, inner) = (OUTER.enter(), INNER.enter());
        drop(outer);
        drop(inner);
        let kept: Call = OUTER.enter();
        std::mem::forget(kept);
    });
    assert_eq!(recorded.summary.misplaced, 1, "{}", recorded.summary);
    assert!(!recorded.profile().abnormal.is_empty());
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = bytes.len().min(self.0);
        self.0 -= some;
        if some == 0 { Err(io::Error::other("the disk is full")) } else { Ok(some) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn outputs_that_fail_are_told_and_others_go_on() {
    let _alone = alone();
    let good = Memory::default();
    let recorder = Recorder::of("test")
        .sink(Form::Binary, Full(500))
        .file(Form::Lines, "/no/such/folder/records")
        .sink(Form::Binary, good.clone())
        .start()
        .expect("tests take turns");
    for _ in 0..1000 {
        drop(OUTER.enter());
    }
    let summary = recorder.finish();
    assert_eq!((summary.records, summary.unwritten), (2000, 4000), "{summary}");
    assert_eq!(summary.errors.len(), 2, "{summary}");
    assert!(summary.to_string().contains("the disk is full") && summary.to_string().contains("/no/such/folder"));
    assert_eq!(profile(&good.bytes()).operations, 1000);
}

#[test]
fn a_process_has_one_recorder_and_another_after_it() {
    let _alone = alone();
    let first = Recorder::of("first").sink(Form::Binary, io::sink()).start().expect("tests take turns");
    let across = OUTER.enter();
    assert_eq!(Recorder::of("second").start().expect_err("one runs"), StartError::Running);
    assert_eq!(first.finish().records, 1);
    let memory = Memory::default();
    let second = Recorder::of("second").sink(Form::Lines, memory.clone()).start().expect("the first one ended");
    drop(INNER.enter());
    // Its recorder is gone: it is no part of this one.
    drop(across);
    drop(INNER.enter());
    let summary = second.finish();
    assert!(summary.is_clean(), "{summary}");
    assert_eq!(profile(&memory.bytes()).operations, 2);
}
