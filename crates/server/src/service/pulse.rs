//! Whether threads are alive.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// How long a thread may be silent before it counts as dead. With the time between two beats it is less than five seconds.
const SILENCE: Duration = Duration::from_millis(4500);
/// How often a thread that waits for something to do is heard of.
pub const BEAT: Duration = Duration::from_millis(250);

/// When a thread was last heard of.
#[derive(Debug)]
pub struct Pulse(Mutex<Instant>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Pulse {
    /// The thread is alive.
    pub fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nothing was heard of the thread for too long.
    pub fn is_silent(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > SILENCE
    }
}

/// What comes to a thread. The thread is heard of while nothing comes.
pub struct Inbox<T> {
    receiver: Receiver<T>,
    clock: Runtime,
}

impl<T> Inbox<T> {
    /// Of a channel.
    ///
    /// # Errors
    /// When the system has no timer.
    pub fn of(receiver: Receiver<T>) -> io::Result<Self> {
        Ok(Self { receiver, clock: Builder::new_current_thread().enable_time().build()? })
    }

    /// Waits for the next; `None` where nothing more can come.
    pub fn next(&mut self, pulse: &Pulse) -> Option<T> {
        self.next_or(pulse, || ())
    }

    /// The same; something else is done at each beat in which nothing comes.
    pub fn next_or(&mut self, pulse: &Pulse, mut idle: impl FnMut()) -> Option<T> {
        loop {
            pulse.beat();
            let receiver = &mut self.receiver;
            if let Ok(next) = self.clock.block_on(async { timeout(BEAT, receiver.recv()).await }) {
                pulse.beat();
                return next;
            }
            idle();
        }
    }

    /// The next, where it is there.
    pub fn next_at_hand(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}
