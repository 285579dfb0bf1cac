//! Questions to a model that take many solutions: what happens [over a grid of values](sweep), [which value](search) just meets
//! a goal, and [what limits](bottleneck) the model.

pub mod bottleneck;
pub mod search;
pub mod sweep;
