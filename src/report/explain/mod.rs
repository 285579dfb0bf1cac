//! Explanations: what was made of a node and why, and which nodes an element of the model was made of.

pub mod coverage;
mod failure;
mod view;
pub mod why_not;

pub use view::place_words;
use view::{Described, match_words};
