//! Codes of what solvers report.

use dyelog_diagnostic::Code;

/// A number of the model is negative, infinite or not a number.
pub const NUMBER: Code = Code("S001");
/// An element of the model names another that is not there.
pub const REFERENCE: Code = Code("S002");
/// Calls form a cycle.
pub const CYCLE: Code = Code("S003");
/// A source of load is called, or a customer's cycle takes no time at all.
pub const SOURCE: Code = Code("S004");
/// The model uses a feature that the solver cannot do.
pub const UNSUPPORTED: Code = Code("S005");
/// An activity graph has no meaning: it runs in a circle or never begins.
pub const GRAPH: Code = Code("S006");
/// The model unfolds into more work than the solver takes on.
pub const SIZE: Code = Code("S007");
/// The solver found something that is no number. A defect of the solver, not of the model.
pub const BROKEN: Code = Code("S008");
/// A task waits for itself, so that its requests come to a standstill.
pub const STANDSTILL: Code = Code("S009");
