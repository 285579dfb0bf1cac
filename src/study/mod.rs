//! Questions to a model that take many solutions: what happens [over a grid of values](sweep), and [which value](search) just meets
//! a goal.

pub mod search;
pub mod sweep;
