//! dyelog turns execution traces of distributed software into layered queueing network (LQN) performance models, solves
//! them, and answers what-if questions.
//!
//! # A trace in, a prediction out
//!
//! ```
//! use dyelog::pipeline::{Input, Options, model};
//! use dyelog::solve::{LayeredOptions, layered};
//!
//! // The spans of a small shop. The content says which format and compression it has.
//! let spans = std::fs::read("traces/shop.otlp.jsonl")?;
//! let mut findings = Vec::new();
//! let mut shop = model(&[Input::new("shop.otlp.jsonl", spans)], None, &Options::default(), &mut findings)?;
//!
//! // At the load that was traced.
//! let solution = shop.solve(|model| layered(model, &LayeredOptions::default()))?;
//! for scenario in shop.scenarios(&solution) {
//!     let predicted = scenario.response.expect("the load can be served");
//!     let traced = scenario.origin.observed_response.expect("spans have times");
//!     assert!((predicted / traced - 1.0).abs() < 0.05, "{}: {predicted} s, {traced} s", scenario.origin.name);
//! }
//!
//! // At four times that load.
//! for entry in &mut shop.model.entries {
//!     entry.open_arrival_rate = entry.open_arrival_rate.map(|rate| 4.0 * rate);
//! }
//! let busier = shop.solve(|model| layered(model, &LayeredOptions::default()))?;
//! assert!(busier.results.processors.iter().any(|processor| processor.utilization > 0.7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! What stands alone is a crate of its own, and here by its short name:
//!
//! - [`diagnostic`] reports what is wrong and where; [`names`] interns strings.
//! - [`datalog`] is the rule language and its engine.
//! - [`trace`] reads traces and tells their quality.
//! - [`lqn`] has the models, their languages and checks.
//! - [`tlc`] recognises interactions by templates, [`same`] by messages alone.
//! - [`callgraph`] follows causal chains of calls: processor time, latency, the impact of a change.
//! - [`solve`] solves models: mean value analysis in layers, Markov chains, simulation.
//!
//! This package makes the product of them; imports only ever point up this list:
//!
//! - [`query`] answers questions of rules about traces.
//! - [`model`] completes what traces show, by a configuration, to a model.
//! - [`recording`] writes the trace of a simulated run.
//! - [`study`] asks questions that take many solutions.
//! - [`report`] tells results to people and programs.
//! - [`pipeline`] is the way from inputs to a solution.
//! - [`authoring`] checks rule files as their authors write them, with the cases in them, and answers editors.
//!
//! The feature `cli`, on by default, adds the `dyelog` command and what only it needs. The feature `crepe` adds the slow reference engine.

#![forbid(unsafe_code)]

pub use dyelog_callgraph as callgraph;
pub use dyelog_datalog as datalog;
pub use dyelog_diagnostic as diagnostic;
pub use dyelog_diagnostic::names;
pub use dyelog_lqn as lqn;
pub use dyelog_same as same;
pub use dyelog_solve as solve;
pub use dyelog_templates as tlc;
pub use dyelog_trace as trace;

pub mod authoring;
pub mod model;
pub mod pipeline;
pub mod query;
pub mod recording;
pub mod report;
pub mod study;

/// The examples of the book's page on the library.
#[cfg(doctest)]
#[doc = include_str!("../book/src/library.md")]
mod library_page {}
