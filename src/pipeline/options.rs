//! How traces are read and reduced.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::Diagnostics;
use crate::model::utilisation::Metrics;
use crate::pipeline::listener::Listener;
use crate::same;
use crate::tlc::{EngineKind, EntryMerge, Rules};
use crate::trace::messages::clocks::Correction;
use crate::trace::spans::{Deployment, Grouping, Spill, TableMapping};
use crate::trace::{Format, ReadOptions};

/// How traces are read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reading {
    /// Their format; where it is not given, the content tells.
    pub format: Option<Format>,
    /// Whether damage is an error.
    pub strict: bool,
    /// Spans: the probability with which operations were kept; where it is not given, the traces tell.
    pub sampling: Option<f64>,
    /// Spans: how names of operations are grouped.
    pub grouping: Grouping,
    /// Spans: those of which deployment are taken.
    pub deployment: Deployment,
    /// Tables of spans: what their columns mean; where it is not given, their names tell.
    pub table: Option<Arc<TableMapping>>,
    /// Spans: where they go that are more than memory is to hold; where it is not given, memory holds all.
    pub spill: Option<Spill>,
    /// How many threads may read. The result does not depend on it; 0 stands for 1.
    pub threads: usize,
    /// Messages: whether the inputs are parts of one trace, recorded on several machines.
    pub one_trace: bool,
    /// Messages: what is added to the times of inputs and tasks.
    pub clocks: Vec<Correction>,
}

impl Reading {
    /// What of it readers of traces take.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            strict: self.strict,
            sampling: self.sampling,
            grouping: self.grouping.clone(),
            deployment: self.deployment.clone(),
            table: self.table.clone(),
            spill: self.spill.clone(),
            threads: self.threads,
        }
    }
}

/// How interactions are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Analysis {
    /// By templates over operations, which a dye tells apart ([`tlc`](crate::tlc)).
    Templates,
    /// By trees over messages; a dye that is there is left out ([`same`](crate::same)).
    Messages,
}

/// Loads rules, and tells the listener of their texts.
pub type RuleLoader<'r> = &'r dyn Fn(&mut dyn Listener) -> Result<Rules, Diagnostics>;

/// Loads templates on events, and tells the listener of their texts.
pub type EventRuleLoader<'r> = &'r dyn Fn(&mut dyn Listener) -> Result<Arc<same::Rules>, Diagnostics>;

/// How inputs are made into a sub-model.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options<'r> {
    /// How traces are read.
    pub reading: Reading,
    /// How entries are merged.
    pub merge: EntryMerge,
    /// Whether invocations that a service recorded nothing of are [apart](crate::lqn::submodel::EntryKey::apart) from those that it recorded, for who
    /// waits for the rest of traces.
    pub is_silent_apart: bool,
    /// How interactions are recognised; where it is not given, the traces tell.
    pub analysis: Option<Analysis>,
    /// Messages: whether tasks serve several requests at once, by threads that are to be guessed.
    pub guess_threads: bool,
    /// Which engine matches templates.
    pub engine: EngineKind,
    /// How many threads may work. The result does not depend on it.
    pub threads: usize,
    /// What is kept of each match of a template, and of each interaction among messages.
    pub keep_matches: Keep,
    /// How busy processors were measured to be while the traces were recorded, for the model that is made of them.
    pub utilisation: Metrics,
    /// Up to how many spans the sub-model keeps, so that operations whose spans lie in several files become whole where sub-models merge;
    /// none where the sub-model is not to be saved.
    pub keep_spans: Option<usize>,
    /// Operations: those that start in this time alone, nanoseconds from the epoch of the traces.
    pub within: Option<Range<i64>>,
    /// Rules of the user's beside the shipped ones; loaded when traces turn out to need templates.
    pub rules: Option<RuleLoader<'r>>,
    /// Rules of the user's in place of the shipped ones; loaded when traces turn out to be of messages.
    pub event_rules: Option<EventRuleLoader<'r>>,
}

/// What is kept of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// A row each.
    Rows,
    /// A row each, with what it binds.
    Bindings,
}

impl From<bool> for Keep {
    fn from(rows: bool) -> Self {
        if rows { Self::Rows } else { Self::Nothing }
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            reading: Reading::default(),
            merge: EntryMerge::Name,
            is_silent_apart: false,
            analysis: None,
            guess_threads: false,
            engine: EngineKind::Plans,
            threads: 1,
            keep_matches: Keep::Nothing,
            utilisation: Metrics::default(),
            keep_spans: None,
            within: None,
            rules: None,
            event_rules: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("reading", &self.reading)
            .field("merge", &self.merge)
            .field("is_silent_apart", &self.is_silent_apart)
            .field("analysis", &self.analysis)
            .field("guess_threads", &self.guess_threads)
            .field("engine", &self.engine)
            .field("threads", &self.threads)
            .field("keep_matches", &self.keep_matches)
            .field("utilisation", &self.utilisation.series.len())
            .field("keep_spans", &self.keep_spans)
            .field("within", &self.within)
            .field("rules", &self.rules.is_some())
            .field("event_rules", &self.event_rules.is_some())
            .finish()
    }
}
