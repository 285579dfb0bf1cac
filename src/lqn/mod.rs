//! Layered queueing networks: the model's types and its languages.
//!
//! [`model`] holds a complete model as the LQN tool suite understands it, [`submodel`] the mergeable summary of what
//! traces show, from which a complete model is made. [`parse_any`] reads and [`Language`] writes `.lqn` text, `.lqnx` XML
//! and versioned JSON; [`lint`] finds what keeps a model from being solved.

mod builder;
mod canonical;
pub mod codes;
pub mod digest;
mod findings;
pub mod json;
mod labels;
mod language;
pub mod layout;
pub mod lint;
pub mod model;
mod places;
pub mod results;
pub mod saved;
mod scheduling;
pub mod starts;
pub mod submodel;
pub mod text;
pub mod timing;
pub mod xml;

pub use language::{Language, Loaded, parse_any, read_any};
pub use model::*;
pub use places::Places;
