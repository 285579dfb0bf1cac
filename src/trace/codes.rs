//! The stable codes of findings about traces. `T0xx` reading and quality, `T1xx` spans.

use crate::diagnostic::Code;

/// The input could not be read to its end.
pub const UNREADABLE: Code = Code("T001");
/// A compressed input ends early or is damaged.
pub const BAD_ARCHIVE: Code = Code("T002");
/// There is nothing in the input.
pub const EMPTY: Code = Code("T003");
/// The format of the input is not recognised.
pub const UNKNOWN_FORMAT: Code = Code("T004");
/// The format is recognised, but there is no reader for it yet.
pub const NO_READER: Code = Code("T005");
/// The input has no operation in it.
pub const NO_OPERATION: Code = Code("T006");

/// A line is not what the grammar says.
pub const BAD_LINE: Code = Code("T010");
/// A line is longer than any line should be.
pub const LONG_LINE: Code = Code("T011");
/// A label stands before the line that opens its operation.
pub const NO_HEADER: Code = Code("T012");
/// A label names another scenario than its operation.
pub const OTHER_SCENARIO: Code = Code("T013");
/// An attribute that the format does not know was left out.
pub const UNKNOWN_ATTRIBUTE: Code = Code("T014");
/// An operation is set aside because some of its lines could not be read.
pub const UNREAD_OPERATION: Code = Code("T015");
/// Task node counters that run across operations were ranked anew.
pub const RANKED_ANEW: Code = Code("T016");
