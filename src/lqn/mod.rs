//! Layered queueing networks: the model's types and its languages.
//!
//! [`model`] holds a complete model as the LQN tool suite understands it, [`submodel`] the mergeable summary of what
//! traces show, from which a complete model is made. `.lqn` text, `.lqnx` XML and versioned JSON are read and written here.

mod builder;
mod canonical;
pub mod codes;
mod findings;
mod labels;
pub mod model;
pub mod results;
mod scheduling;
pub mod submodel;
pub mod text;

pub use model::*;
