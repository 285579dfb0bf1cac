//! Clocks that differ, and by how much is known: events with their times corrected.

use std::str::FromStr;
use std::sync::Arc;

use crate::messages::{Event, Raw, RawWhat, Source};
use crate::{ReadReport, TaskId, TraceNames};
use dyelog_diagnostic::Diagnostics;

/// What is added to all times that one clock told.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// A file, or a task with all its threads.
    pub clock: String,
    /// Seconds.
    pub seconds: f64,
}

impl FromStr for Correction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (clock, seconds) = text.rsplit_once('=').ok_or("it is `NAME=SECONDS`, such as `web.csv=-0.25`")?;
        let seconds = seconds.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite());
        let seconds = seconds.ok_or("behind the `=` stands a number of seconds, such as `-0.25`")?;
        Ok(Self { clock: clock.to_owned(), seconds })
    }
}

/// A source whose clocks are corrected.
pub struct Corrected<'r> {
    source: Box<dyn Source + 'r>,
    of_file: f64,
    corrections: Vec<Correction>,
    /// By task, what is added; NaN where it is not known yet.
    by_task: Vec<f64>,
}

impl<'r> Corrected<'r> {
    /// Of a source and all corrections there are, some of which are for its tasks or itself.
    pub fn new(source: Box<dyn Source + 'r>, corrections: &[Correction]) -> Self {
        let of_file = sum(corrections, source.file());
        Self { source, of_file, corrections: corrections.to_vec(), by_task: Vec::new() }
    }

    fn of(&mut self, names: &TraceNames, task: TaskId) -> f64 {
        if self.by_task.len() <= task.index() {
            self.by_task.resize(task.index() + 1, f64::NAN);
        }
        if self.by_task[task.index()].is_nan() {
            self.by_task[task.index()] = self.of_file + sum(&self.corrections, names.task_name(task));
        }
        self.by_task[task.index()]
    }
}

fn sum(corrections: &[Correction], clock: &str) -> f64 {
    corrections.iter().filter(|correction| correction.clock == clock).map(|correction| correction.seconds).sum()
}

impl Source for Corrected<'_> {
    fn next(&mut self, names: &mut TraceNames) -> Result<Option<Raw>, Diagnostics> {
        let Some(mut raw) = self.source.next(names)? else { return Ok(None) };
        let told = raw.time;
        let task = match &raw.what {
            // Messages are given out where they leave by who merges sources, after this.
            RawWhat::Leaving { .. } => return Ok(Some(raw)),
            RawWhat::Message { to, .. } => *to,
            RawWhat::Half(half) => half.task,
            RawWhat::Other(Event::Begin(task, _) | Event::Run(task) | Event::Idle(task) | Event::Compute(task, _)) => {
                *task
            }
        };
        raw.time += self.of(names, task);
        if let RawWhat::Message { from, sent, .. } = &mut raw.what {
            // Where there is one time only, the receiver told it.
            *sent = if *sent == told { raw.time } else { *sent + self.of(names, *from) };
        }
        Ok(Some(raw))
    }

    fn report(&mut self) -> &mut ReadReport {
        self.source.report()
    }

    fn file(&self) -> &Arc<str> {
        self.source.file()
    }
}
