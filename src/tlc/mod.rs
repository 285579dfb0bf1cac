//! Trace-based load characterization (1998 paper): templates, plans and the control algorithm that turn operations into a
//! sub-model.
//!
//! A rule file's templates become [`plan`]s; the [`driver`] runs the paper's control algorithm over the graph of one
//! operation with one of two engines; [`summary`] folds what came of it into a mergeable sub-model.

pub mod check;
pub mod codes;
mod commit;
pub mod driver;
pub mod effects;
pub mod explain;
pub mod facts;
pub mod matcher;
pub mod operations;
pub mod pattern;
pub mod plan;
pub mod planner;
pub mod program;
pub mod recognise;
pub mod reducer;
pub mod reference;
pub mod rules;
pub mod summary;
pub mod visits;

pub use reducer::{Bindings, BoundTo, EngineKind, MatchRow, ReduceOptions, Reducer, Reduction};
pub use rules::Rules;
pub use summary::{EntryMerge, Summary};
