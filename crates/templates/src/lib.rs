//! Trace-based load characterization (1998 paper): templates, plans and the control algorithm that turn operations into a
//! sub-model.
//!
//! [`Rules`] are loaded from rule files; a [`Reducer`] takes operations and gives a [`Reduction`]: the mergeable sub-model, what was
//! matched, and what was left over. [`explain`] tells why a template matched somewhere, or why not; [`recognise`] what a single
//! operation comes to.
//!
//! Inside, a rule file's templates become plans; the paper's control algorithm runs over the graph of one operation with one of two
//! engines; [`summary`] folds what came of it.
//!
//! # Example
//!
//! ```
//! use dyelog_lqn::submodel::EntryTotal;
//! use dyelog_templates::{ReduceOptions, Reducer, Rules};
//! use dyelog_trace::{ReadOptions, TraceNames, read};
//!
//! // A client waits for a server: a basic RPC.
//! let text = "operation rpc run=1
//! rpc,1,1,Be | client,1  t=0
//! rpc,1,2,Ac | client,2  t=0.0002 cpu=0.0002
//! rpc,1,3,Ac | server,1  t=0.0004 cpu=0.0005 op=find
//! rpc,1,4,Ac | server,2  t=0.0030 cpu=0.0016
//! rpc,1,5,Ac | client,3  t=0.0032 cpu=0.0001
//! rpc,1,6,Ed | client,4  t=0.0034
//! ";
//! let rules = Rules::shipped();
//! let mut names = TraceNames::new();
//! let mut reducer = Reducer::new(&rules, ReduceOptions { keep_matches: true, ..ReduceOptions::default() });
//! read("rpc.angio", text.as_bytes(), &ReadOptions::default(), &mut names, &mut reducer)?;
//! let reduction = reducer.finish(&names)?;
//!
//! assert!(reduction.matches.iter().any(|row| &*row.template == "basic_rpc"));
//! let of_server = |entry: &&EntryTotal| reduction.submodel.names.text(entry.task) == "server";
//! let entry = reduction.submodel.entries().iter().find(of_server).expect("the server was called");
//! assert_eq!(entry.invocations, 1);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

// Parts of the engine are public for benchmarks and tests that hold it to something, and hidden: they change as it does.
mod barriers;
pub mod check;
pub mod codes;
mod commit;
pub mod counters;
mod detached;
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod effects;
pub mod explain;
pub mod facts;
#[doc(hidden)]
pub mod matcher;
#[doc(hidden)]
pub mod operations;
#[doc(hidden)]
pub mod pattern;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod planner;
#[doc(hidden)]
pub mod program;
pub mod recognise;
pub mod reducer;
#[cfg(feature = "reference")]
#[doc(hidden)]
pub mod reference;
pub mod rules;
pub mod summary;
mod variants;
#[doc(hidden)]
pub mod visits;

pub use reducer::{Bindings, BoundTo, EngineKind, MatchRow, ReduceOptions, Reducer, Reduction};
pub use rules::Rules;
pub use summary::{EntryMerge, Summary};
