//! The stable codes of findings about queries (`Q001`–`Q019`).

use crate::diagnostic::Code;

/// A relation that is asked for and that neither rules nor facts have.
pub const NO_RELATION: Code = Code("Q001");
/// Nothing is asked for.
pub const NOTHING_ASKED: Code = Code("Q002");
/// A constant that the trace does not have in that column.
pub const NOT_IN_TRACE: Code = Code("Q003");
/// A relation without a row.
pub const NO_ROWS: Code = Code("Q004");
/// A template in a file of questions.
pub const TEMPLATE: Code = Code("Q005");
/// A column to order by that no relation has.
pub const NO_COLUMN: Code = Code("Q006");
/// A relation that belongs to one operation, asked over all of a trace.
pub const ONE_OPERATION: Code = Code("Q007");
/// A relation that traces of this sort do not have.
pub const OTHER_SUBJECT: Code = Code("Q009");
/// A number compared with values that are texts.
pub const TEXT_COMPARED: Code = Code("Q010");
/// A number that is written as a text, where values that are numbers are numbers.
pub const QUOTED_NUMBER: Code = Code("Q008");
/// An answer too long to be kept, in a form that is.
pub const TOO_LONG: Code = Code("Q011");
/// A relation that is left out, since it has no column to order by.
pub const NOT_ORDERED: Code = Code("Q012");
/// An aggregate of numbers over values some of which are texts.
pub const TEXTS_AMONG: Code = Code("Q013");
/// A regular expression that cannot be read, or of which nothing says what it looks into.
pub const PATTERN: Code = Code("Q014");
/// Arithmetic without a value, from which nothing follows.
pub const WITHOUT_VALUE: Code = Code("Q015");
