//! Asymptotic bounds of a model that could be solved: what limits its sources of load, without a solution.
//!
//! The bounds themselves are [`dyelog_lqn::bounds`]; here the model is checked as a solver would.

use dyelog_diagnostic::Diagnostics;
use dyelog_lqn::model::Model;

use crate::prepare::plan::analyse;

pub use dyelog_lqn::bounds::{ArrivalBounds, AsymptoticBounds, Limit, Resource, Room, SourceBounds};

/// The asymptotic bounds of closed sources of load and of open arrivals.
///
/// # Errors
/// When the model cannot be solved at all.
pub fn bounds(model: &Model) -> Result<AsymptoticBounds<'_>, Diagnostics> {
    Ok(AsymptoticBounds::new(analyse(model)?))
}
