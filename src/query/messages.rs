//! Messages of a trace that tells no operations, and the interactions that were recognised among them: what facts about such a trace
//! are made of.

use std::sync::Arc;

use crate::names::Name;
use crate::trace::TaskId;

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The task that sent it.
    pub sender: TaskId,
    /// The task that received it; `None` where none did and its sending does not name one.
    pub receiver: Option<TaskId>,
    /// What it says.
    pub label: Name,
    /// When it was sent, in seconds; NaN where that is not known.
    pub sent: f64,
    /// When it was received, in seconds; NaN where that is not known.
    pub received: f64,
    /// Whether no task received it.
    pub lost: bool,
    /// Where the trace tells of it: a place among [`Exchanges::files`].
    pub file: u32,
    /// The line there, from 1.
    pub line: u32,
}

/// How the client of an interaction goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InteractionKind {
    /// It waits for the reply.
    Synchronous,
    /// There is no reply.
    Asynchronous,
    /// It waits for the reply of the last task to which the request was passed on.
    Forwarded,
}

impl InteractionKind {
    /// Its word, as lists of interactions have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Synchronous => "sync",
            Self::Asynchronous => "async",
            Self::Forwarded => "forward",
        }
    }
}

/// An interaction.
#[derive(Clone, Debug)]
pub struct Interaction {
    /// How its client goes on.
    pub kind: InteractionKind,
    /// The task that began it.
    pub client: TaskId,
    /// The task that replied; of an asynchronous interaction, the one that received the message.
    pub server: TaskId,
    /// Its messages by their numbers: the request, those that passed it on, the reply.
    pub messages: Vec<u32>,
    /// Whether it is taken for asynchronous because the trace ended.
    pub cut_off: bool,
}

/// The messages of traces with what they turned out to be.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    /// Messages in the order of reception; those of a trace that were lost stand behind its others. They count from 1.
    pub messages: Vec<Message>,
    /// For each message, the number of the one that its sender was serving; 0 where there is none.
    pub causes: Vec<u32>,
    /// Interactions in the order in which they were recognised.
    pub interactions: Vec<Interaction>,
    /// The inputs.
    pub files: Vec<Arc<str>>,
}

impl Exchanges {
    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Takes in those of another trace.
    pub fn merge(&mut self, other: Self) {
        let (messages, files) = (self.messages.len() as u32, self.files.len() as u32);
        self.files.extend(other.files);
        self.messages
            .extend(other.messages.into_iter().map(|message| Message { file: message.file + files, ..message }));
        self.causes.extend(other.causes.into_iter().map(|cause| if cause == 0 { 0 } else { cause + messages }));
        self.interactions.extend(other.interactions.into_iter().map(|mut interaction| {
            interaction.messages.iter_mut().for_each(|message| *message += messages);
            interaction
        }));
    }
}
