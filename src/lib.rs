//! dyelog turns execution traces of distributed software into layered queueing network (LQN) performance models, solves
//! them, and answers what-if questions.
//!
//! Data flows down this list of rooms, and imports only ever point up it:
//! [`diagnostic`], [`names`], [`datalog`], [`trace`], [`lqn`], [`tlc`], [`same`], [`query`], [`model`], [`solve`], [`report`].

#![forbid(unsafe_code)]

pub mod datalog;
pub mod diagnostic;
pub mod lqn;
pub mod model;
pub mod names;
pub mod query;
pub mod report;
pub mod same;
pub mod solve;
pub mod tlc;
pub mod trace;
