//! Asymptotic bounds of a model that could be solved: what limits its sources of load, without a solution.
//!
//! The bounds themselves are [`dyelog_lqn::bounds`]; here the model is checked as a solver would.

use dyelog_diagnostic::Diagnostics;
use dyelog_lqn::bounds;
use dyelog_lqn::model::Model;

use crate::prepare::plan::analyse;

pub use dyelog_lqn::bounds::{ArrivalBounds, Limit, Resource, Room, SourceBounds};

/// The asymptotic bounds of each closed source of load.
///
/// # Errors
/// When the model cannot be solved at all.
pub fn bounds(model: &Model) -> Result<Vec<SourceBounds>, Diagnostics> {
    Ok(bounds::bounds(&analyse(model)?))
}

/// The asymptotic bounds of open arrivals, of each by itself and of all together.
///
/// # Errors
/// When the model cannot be solved at all.
pub fn arrivals(model: &Model) -> Result<(Vec<ArrivalBounds>, Vec<Room>), Diagnostics> {
    Ok(bounds::arrivals(&analyse(model)?))
}
