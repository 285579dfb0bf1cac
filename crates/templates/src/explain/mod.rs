//! Why the templates made of a trace what they made of it, and why not something else.
//!
//! A [`Study`] is one operation with all that was committed in it and when. From it follow the variables of a match and what
//! it [`did`](fn@done), and, the other way round, the [`evidence`] for an entry or a request of the model. [`why_not`] runs
//! the plan of one template by itself, step by step, in an evaluator that is small, slow and tells where it stopped.

pub mod attempt;
mod coverage;
mod done;
pub mod evidence;
mod near;
mod study;
mod variables;
mod why_not;

pub use coverage::{Count, Coverage, Unprocessed};
pub use done::{Caused, Done, done};
pub use near::{Is, Nearest, nearest};
pub use study::{Made, Studies, Study};
pub use variables::{Bound, Variable, Variables};
pub use why_not::{Try, WhyNot, why_not};
