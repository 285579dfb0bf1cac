//! From a reader's operations to a sub-model, with what was found on the way.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::lqn::submodel::SubModel;
use crate::tlc::codes;
use crate::tlc::driver::{self, Committed, Irregularity, Observer, Outcome, Plans};
use crate::tlc::matcher::{Argument, Matcher, Relations, Symbols};
use crate::tlc::rules::Rules;
use crate::tlc::summary::{EntryMerge, Summary};
use crate::trace::{NodeId, Operation, ReadReport, Sink, Toeg, TraceNames};

/// Which engine matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// Ours: plans.
    #[default]
    Plans,
    /// The reference, compiled by crepe from the shipped rule files; slow and hungry.
    Crepe,
}

/// How to reduce.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReduceOptions {
    /// How entries are told apart.
    pub merge: EntryMerge,
    /// Which engine matches.
    pub engine: EngineKind,
}
