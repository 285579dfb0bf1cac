//! Explanations: what was made of a node and why, and which nodes an element of the model was made of.

pub mod coverage;
pub mod element;
pub mod evidence;
pub mod facts;
mod failure;
pub mod message;
pub mod node;
mod reading;
mod view;
pub mod why_not;

pub use view::place_words;

use view::{Described, match_words};
