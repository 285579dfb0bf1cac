//! One message of traces, and what templates on events made of it.

use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::pipeline::messages::Messages;
use crate::same::explain::{Explaining, MessageStudy, Wanted};
use crate::same::{self, Rules};
use crate::trace::TraceNames;

/// A message that was looked for.
#[derive(Clone, Debug)]
pub struct SoughtMessage {
    /// What was made of it; none where the traces do not have it.
    pub study: Option<MessageStudy>,
    /// The line of a message that is nearest to the one that was looked for.
    pub near: Option<u32>,
    /// The names of tasks.
    pub names: TraceNames,
}

impl Messages {
    /// Looks for a message, and studies what templates make of it; threads are guessed where that is asked for.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn explain(
        mut self,
        rules: &Arc<Rules>,
        wanted: &Wanted,
        guess_threads: bool,
    ) -> Result<SoughtMessage, Diagnostics> {
        let guess = guess_threads || self.services;
        let (mut study, mut near) = (None, None::<u32>);
        let make = |files| Explaining::new(Arc::clone(rules), same::Options::default(), files, wanted.clone());
        let threads = self.each(guess, make, |explaining, names, _| {
            let (found, _) = explaining.finish(names);
            match found {
                Ok(found) => study = study.take().or(Some(found)),
                Err(line) => {
                    let apart = |line: &u32| line.abs_diff(wanted.line);
                    near = near.into_iter().chain(line).min_by_key(apart);
                }
            }
        })?;
        Ok(SoughtMessage { study, near, names: threads.unwrap_or(self.names) })
    }
}
