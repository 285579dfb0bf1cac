//! The stable codes of findings of SAME.

use crate::diagnostic::Code;

/// Interactions were not complete when the trace ended.
pub const UNFINISHED: Code = Code("T150");
/// Memory ran out for interactions that never end.
pub const GIVEN_UP: Code = Code("T151");
/// A rule of SAME would have to be searched for.
pub const NOT_WALKABLE: Code = Code("R042");
