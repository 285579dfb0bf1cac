//! dyelog turns execution traces of distributed software into layered queueing network (LQN) performance models, solves
//! them, and answers what-if questions.
//!
//! What stands alone is a crate of its own, and here by its short name: [`diagnostic`] with [`names`], [`datalog`], [`trace`],
//! [`lqn`], [`solve`], [`tlc`] (templates) and [`same`]. This package makes the product of them: [`recording`], [`model`],
//! [`study`], [`report`]; imports only ever point up that list.

#![forbid(unsafe_code)]

pub use dyelog_datalog as datalog;
pub use dyelog_diagnostic as diagnostic;
pub use dyelog_diagnostic::names;
pub use dyelog_lqn as lqn;
pub use dyelog_same as same;
pub use dyelog_solve as solve;
pub use dyelog_templates as tlc;
pub use dyelog_trace as trace;

pub mod model;
pub mod recording;
pub mod report;
pub mod study;
