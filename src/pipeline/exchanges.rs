//! Messages with the interactions that SAME recognises among them, for questions.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::query::Exchanges;
use crate::query::messages::{Interaction, InteractionKind, Message};
use crate::same::{self, Record, RecordKind, Same};
use crate::trace::messages::{MessageStep, StepSink, What};
use crate::trace::{ReadReport, TraceNames};

/// Hears the steps of one trace, and hands them on to SAME.
#[derive(Debug)]
pub(super) struct Recorder {
    same: Same,
    heard: Exchanges,
    /// Messages that were sent and not received yet, by token.
    on_way: Vec<Option<Message>>,
    lost: Vec<Message>,
}

impl Recorder {
    /// For a trace of those files.
    pub(super) fn new(files: Vec<Arc<str>>) -> Self {
        let options = same::Options { records: true, causes: true, ..same::Options::default() };
        let same = Same::new(options, files.clone());
        Self { same, heard: Exchanges { files, ..Exchanges::default() }, on_way: Vec::new(), lost: Vec::new() }
    }

    /// What was heard, and what SAME has to say about it.
    pub(super) fn finish(self, names: &TraceNames) -> (Exchanges, ReadReport) {
        let Self { same, mut heard, on_way, lost } = self;
        let analysis = same.finish(names);
        heard.messages.extend(lost.into_iter().chain(on_way.into_iter().flatten()));
        heard.causes = analysis.causes;
        heard.causes.resize(heard.messages.len(), 0);
        heard.interactions = analysis.records.into_iter().map(interaction).collect();
        (heard, analysis.findings)
    }
}

fn interaction(record: Record) -> Interaction {
    let kind = match record.kind {
        RecordKind::Sync => InteractionKind::Synchronous,
        RecordKind::Async => InteractionKind::Asynchronous,
        RecordKind::Forward => InteractionKind::Forwarded,
    };
    let Record { messages, cut_off, .. } = record;
    Interaction { kind, client: record.client.task, server: record.server.task, messages, cut_off }
}

impl StepSink for Recorder {
    fn step(&mut self, names: &TraceNames, step: &MessageStep) -> ControlFlow<()> {
        let (file, line) = (u32::from(step.file), step.line);
        match step.what {
            What::Message { from, to, label, sent, .. } | What::Receive { from, to, label, sent, .. } => {
                if let What::Receive { token, .. } = step.what {
                    self.on_way[token as usize] = None;
                }
                let (receiver, received) = (Some(to), step.time);
                let message = Message { sender: from, receiver, label, sent, received, lost: false, file, line };
                self.heard.messages.push(message);
            }
            What::Send { from, token, to, label } => {
                let place = token as usize;
                if self.on_way.len() <= place {
                    self.on_way.resize(place + 1, None);
                }
                let (sent, received) = (step.time, f64::NAN);
                self.on_way[place] =
                    Some(Message { sender: from, receiver: to, label, sent, received, lost: true, file, line });
            }
            What::Lost(token) => self.lost.extend(self.on_way[token as usize].take()),
            What::Other(_) => {}
        }
        self.same.step(names, step)
    }
}
