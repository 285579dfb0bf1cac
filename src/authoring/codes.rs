//! Codes of findings about the cases that stand in rule files.

use crate::diagnostic::Code;

/// A case that does not hold.
pub const CASE: Code = Code("R017");
