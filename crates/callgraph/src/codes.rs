//! The stable codes of findings about probe records and changes. `G0xx` records, `G1xx` changes.

use dyelog_diagnostic::Code;

/// The input could not be read to its end.
pub const UNREADABLE: Code = Code("G001");
/// The input holds no probe records.
pub const NOT_RECORDS: Code = Code("G002");
/// A line is not a record.
pub const BAD_LINE: Code = Code("G003");
/// A record has a key that the format does not know.
pub const UNKNOWN_KEY: Code = Code("G004");
/// A binary file of records is damaged.
pub const DAMAGED: Code = Code("G005");
/// A processor group is not as it should be.
pub const BAD_GROUP: Code = Code("G006");

/// A change is not what the grammar says.
pub const BAD_CHANGE: Code = Code("G101");
/// A change names a processor group that there is not.
pub const UNKNOWN_GROUP: Code = Code("G102");
/// A change names a function that there is not.
pub const UNKNOWN_FUNCTION: Code = Code("G103");
/// A change is by a share that makes no sense.
pub const BAD_SHARE: Code = Code("G104");
/// A renaming is not two names.
pub const BAD_RENAMING: Code = Code("G105");
/// Two runs are measured by different clocks.
pub const OTHER_CLOCK: Code = Code("G106");
/// A limit is not `METRIC > N%`.
pub const BAD_LIMIT: Code = Code("G107");
/// A profile did not keep its calls.
pub const NO_CALLS: Code = Code("G108");
