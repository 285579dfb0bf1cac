//! Reports of observers, queued for the store: those that come together are one transaction.

use std::io;
use std::sync::Arc;

use dyelog_observe::observation::Observation;
use tokio::sync::{mpsc, oneshot};

use crate::service::{Inbox, Pulse, Turn, wall_clock};
use crate::store::Store;

/// How many reports wait at most, and are stored together.
const GROUP: usize = 512;

struct Put {
    observations: Vec<Observation>,
    /// How many of them are new, or why they could not be stored.
    done: oneshot::Sender<Result<u64, NotPut>>,
}

/// Why a report was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPut {
    /// It is of a time of which the store has another one of the same process.
    Overlaps(String),
    /// It could not be written.
    Unwritable(String),
}

/// Takes reports in.
pub struct Puts(mpsc::Sender<Put>);

impl Puts {
    /// Takes turns with others that write to a store. The second is what stores them, on a thread of its own.
    ///
    /// # Errors
    /// When the system has no timer.
    pub fn to(store: Store, turn: Arc<Turn>, pulse: Arc<Pulse>) -> io::Result<(Self, impl FnOnce() + Send + 'static)> {
        let (sender, receiver) = mpsc::channel(GROUP);
        let receiver = Inbox::of(receiver)?;
        Ok((Self(sender), move || follow(store, receiver, &turn, &pulse)))
    }

    /// Stores a report; says how many of its observations are new. They are on disk when this returns.
    pub async fn put(&self, observations: Vec<Observation>) -> Result<u64, NotPut> {
        let stops = || NotPut::Unwritable("the server stops".to_owned());
        let (done, answer) = oneshot::channel();
        self.0.send(Put { observations, done }).await.map_err(|_| stops())?;
        answer.await.unwrap_or_else(|_| Err(stops()))
    }
}

/// Stores what comes, as much at a time as there is, until nothing more can come.
fn follow(mut store: Store, mut receiver: Inbox<Put>, turn: &Turn, pulse: &Pulse) {
    while let Some(first) = receiver.next(pulse) {
        let (mut groups, mut answers) = (vec![first.observations], vec![first.done]);
        while groups.len() < GROUP
            && let Some(next) = receiver.next_at_hand()
        {
            groups.push(next.observations);
            answers.push(next.done);
        }
        let stored = turn.take(|| store.put_observations(&groups, wall_clock()));
        match stored {
            // A sender may have gone away. That its report is there does no harm: it is known if it comes again.
            Ok(counts) => answers.into_iter().zip(counts).for_each(|(done, new)| {
                drop(done.send(new.map_err(|overlap| NotPut::Overlaps(overlap.to_string()))));
            }),
            Err(error) => {
                let why = format!("the store cannot be written: {error}");
                for done in answers {
                    let _ = done.send(Err(NotPut::Unwritable(why.clone())));
                }
            }
        }
    }
}
