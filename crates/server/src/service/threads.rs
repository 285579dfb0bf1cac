//! The thread that writes the journal, and the one that follows it.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use tokio::sync::mpsc;

use super::{Busy, Command, GROUP, Inbox, PAUSE, RETRY, Shared};
use crate::journal::Journal;
use crate::journal::medium::Medium;
use crate::store::{Store, StoreError};
use crate::worker::{Worker, WorkerError};

/// Writes what comes to the journal, as much at a time as there is.
pub(super) fn write<M: Medium>(mut journal: Journal<M>, mut received: Inbox<Command>, shared: &Shared) {
    loop {
        // Where health is asked before anything is sent, nothing would come that shows that there is room again.
        let look = || {
            if shared.status().unwritable.is_some() && journal.has_room() {
                shared.status().unwritable = None;
            }
        };
        let Some(first) = received.next_or(&shared.writing, look) else { return };
        let (mut records, mut answers) = (Vec::new(), Vec::new());
        let mut stop = false;
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Append(record, done) => {
                    records.push(record);
                    answers.push(done);
                }
                Command::Forget(position) => {
                    // Segments that could not be removed are tried again with the next checkpoint.
                    let _ = journal.forget_before(position);
                }
                Command::Stop => stop = true,
            }
            next = if records.len() < GROUP { received.next_at_hand() } else { None };
        }
        let outcome = journal.append(&records).map_err(|error| Busy::Unwritable(error.to_string()));
        shared.synced.store(journal.end(), Ordering::Release);
        if !records.is_empty() {
            let why = |error: &Busy| match error {
                Busy::Unwritable(why) => format!("the journal cannot be written: {why}"),
                Busy::Behind | Busy::Stopping => String::new(),
            };
            shared.status().unwritable = outcome.as_ref().err().map(why);
        }
        shared.wake();
        // Those that are answered give back the memory of their bodies.
        drop(records);
        for done in answers {
            // The sender may have gone away. That the payload is there does no harm: it is known if it comes again.
            let _ = done.send(outcome.clone());
        }
        if stop {
            return;
        }
    }
}

/// Follows the journal until the service stops.
pub(super) fn follow<M: Medium>(
    mut worker: Worker<M>,
    mut store: Store,
    shared: &Shared,
    commands: &mpsc::Sender<Command>,
) {
    if let Err(error) = follow_until_stopped(&mut worker, &mut store, shared, commands) {
        shared.status().fault = Some(error.to_string());
    }
}

fn follow_until_stopped<M: Medium>(
    worker: &mut Worker<M>,
    store: &mut Store,
    shared: &Shared,
    commands: &mpsc::Sender<Command>,
) -> Result<(), WorkerError> {
    let mut rolled_up = Instant::now();
    loop {
        let stopping = shared.stopping.load(Ordering::Acquire);
        let end = shared.synced.load(Ordering::Acquire);
        let mut stepped = false;
        while !worker.is_due() && worker.step(end)? {
            stepped = true;
            tell(worker, shared);
        }
        if shared.status().unwritable.is_some() {
            worker.interrupted();
        }
        worker.advance(shared.now());
        tell(worker, shared);
        let waiting = std::mem::take(&mut *shared.initialise.lock().unwrap_or_else(PoisonError::into_inner));
        if !waiting.is_empty() {
            let outcome = initialise(worker, store, shared).map_err(|error| {
                if matches!(error, WorkerError::Store(StoreError::Uncertain(_))) {
                    settle(worker, store, shared, &error);
                }
                error.to_string()
            });
            tell(worker, shared);
            for done in waiting {
                // What waited may have gone away.
                let _ = done.send(outcome.clone());
            }
            stepped = true;
        }
        let at_end = stopping && worker.position() >= end;
        if worker.is_due() || at_end {
            worker.fold();
            match shared.turn.take(|| worker.checkpoint(store)) {
                Ok(needed) => {
                    shared.status().fault = None;
                    // Where the channel is full, the next checkpoint says it.
                    let _ = commands.try_send(Command::Forget(needed));
                }
                Err(_) if at_end => return Ok(()),
                Err(error @ WorkerError::Store(StoreError::Uncertain(_))) => settle(worker, store, shared, &error),
                Err(error) => {
                    // The journal has it all: what was acknowledged waits until the store can be written again.
                    shared.status().fault = Some(error.to_string());
                    thread::sleep(RETRY);
                }
            }
            tell(worker, shared);
        }
        if at_end {
            return Ok(());
        }
        let mut roll_up = || shared.turn.take(|| store.roll_up(shared.age.now(worker.clock()), worker.retention()));
        if rolled_up.elapsed() > RETRY && !matches!(roll_up(), Ok(true)) {
            rolled_up = Instant::now() + 30 * RETRY;
        }
        if !stepped {
            thread::park_timeout(PAUSE);
        }
    }
}

/// Finds out what the store has, where it may have taken a checkpoint or not: what came later is in the journal.
fn settle<M: Medium>(worker: &mut Worker<M>, store: &Store, shared: &Shared, error: &WorkerError) {
    shared.status().fault = Some(error.to_string());
    while worker.take_up(store).is_err() {
        if shared.stopping.load(Ordering::Acquire) {
            return;
        }
        thread::sleep(RETRY);
    }
    // Where the store took it, nothing is left to write that would tell that all is well: what comes would be refused for good.
    shared.status().fault = None;
}

/// Uses up all that was received, and deletes what came of it.
fn initialise<M: Medium>(worker: &mut Worker<M>, store: &mut Store, shared: &Shared) -> Result<(), WorkerError> {
    let end = shared.synced.load(Ordering::Acquire);
    while worker.step(end)? {
        tell(worker, shared);
    }
    worker.give_out_all();
    worker.fold();
    shared.turn.take(|| {
        worker.checkpoint(store)?;
        store.clear()?;
        worker.forget();
        Ok(())
    })
}

fn tell<M: Medium>(worker: &Worker<M>, shared: &Shared) {
    shared.read.store(worker.position(), Ordering::Release);
    let mut status = shared.status();
    status.counts = worker.counts();
    (status.open_traces, status.open_bytes) = worker.open();
    let (series, no_room) = worker.series();
    status.series = series;
    if status.no_room.as_deref() != no_room {
        status.no_room = no_room.map(str::to_owned);
    }
    if status.offending != *worker.offending() {
        status.offending.clone_from(worker.offending());
    }
    if status.other_services.as_ref() != worker.other_services() {
        status.other_services = worker.other_services().cloned();
    }
    if status.ahead != *worker.ahead() {
        status.ahead.clone_from(worker.ahead());
    }
    drop(status);
    shared.working.beat();
}
