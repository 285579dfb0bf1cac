//! Threads that reduce while the reader reads.
//!
//! Batches of operations go to the threads in turn, and their reports come back in the same order, so that what is kept in
//! order does not depend on which thread is quicker. A thread has at most [`QUEUED`] batches before it, which bounds the
//! memory: where reading is faster, it waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::reducer::worker::{Report, Worker};
use crate::reducer::{Pending, ReduceOptions};
use crate::rules::Rules;
use dyelog_trace::TraceNames;
use dyelog_trace::event::Additions;

/// How many batches a thread may have before it, the one at hand included.
const QUEUED: usize = 2;

/// Operations, and the names that the reader has met since the batch that went to the same thread before.
struct Batch {
    operations: Vec<Pending>,
    additions: Additions,
}

/// A thread, and the channels to and from it.
struct Channels {
    batches: Sender<Batch>,
    reports: Receiver<Report>,
    thread: JoinHandle<Worker>,
    /// How many names and tasks it knows.
    names: usize,
    tasks: usize,
}

/// The threads, in the order in which they get batches.
pub(super) struct Workers {
    list: Vec<Channels>,
    /// Batches given out, and reports taken back.
    given: usize,
    taken: usize,
}

impl Workers {
    /// Starts so many threads; `None` where the system gives none.
    pub(super) fn start(count: usize, rules: &Arc<Rules>, options: ReduceOptions) -> Option<Self> {
        let list: Vec<Channels> = (0..count).map_while(|_| Channels::start(Arc::clone(rules), options)).collect();
        (!list.is_empty()).then_some(Self { list, given: 0, taken: 0 })
    }

    /// Gives out a batch; the reports that came back meanwhile go to `take`, in order.
    pub(super) fn give(&mut self, operations: Vec<Pending>, names: &TraceNames, take: &mut dyn FnMut(Report)) {
        while self.given - self.taken >= QUEUED * self.list.len() {
            self.take_one(take);
        }
        let at = self.given % self.list.len();
        let channels = &mut self.list[at];
        let additions = names.additions(channels.names, channels.tasks);
        (channels.names, channels.tasks) = (names.names.len(), names.task_count());
        if channels.batches.send(Batch { operations, additions }).is_err() {
            self.fail(at);
        }
        self.given += 1;
    }

    /// Ends all threads once they are through; what they have made, in order.
    pub(super) fn finish(mut self, take: &mut dyn FnMut(Report)) -> Vec<Worker> {
        while self.taken < self.given {
            self.take_one(take);
        }
        let join = |channels: Channels| {
            drop(channels.batches);
            channels.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        self.list.into_iter().map(join).collect()
    }

    fn take_one(&mut self, take: &mut dyn FnMut(Report)) {
        let at = self.taken % self.list.len();
        match self.list[at].reports.recv() {
            Ok(report) => take(report),
            Err(_) => self.fail(at),
        }
        self.taken += 1;
    }

    /// Passes on the panic of a thread that ended before its time.
    fn fail(&mut self, at: usize) {
        let Channels { batches, thread, .. } = self.list.swap_remove(at);
        drop(batches);
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Channels {
    fn start(rules: Arc<Rules>, options: ReduceOptions) -> Option<Self> {
        let (batches, received) = channel::<Batch>();
        let (made, reports) = channel();
        let work = move || {
            let mut names = TraceNames::new();
            let mut worker = Worker::new(options);
            while let Ok(batch) = received.recv() {
                names.add(&batch.additions);
                for one in batch.operations {
                    worker.take(&rules, options, &names, one);
                }
                if made.send(worker.report()).is_err() {
                    break;
                }
            }
            worker
        };
        let thread = std::thread::Builder::new().name("reduce".to_owned()).spawn(work).ok()?;
        Some(Self { batches, reports, thread, names: 0, tasks: 0 })
    }
}
