//! Codes of findings about inputs, and about what was asked of them; the command line's own among them.

use crate::diagnostic::Code;

/// A file cannot be read.
pub const UNREADABLE: Code = Code("C001");
/// A file cannot be written.
pub const UNWRITABLE: Code = Code("C002");
/// A file is not text in UTF-8, where text is needed.
pub const NOT_TEXT: Code = Code("C003");
/// Standard input is named more than once.
pub const STDIN_TWICE: Code = Code("C004");
/// Arguments that do not go together.
pub const ARGUMENTS: Code = Code("C005");
/// What was asked about is not there.
pub const NOT_THERE: Code = Code("C006");
/// The name of an output suggests another format.
pub const OTHER_NAME: Code = Code("C007");
/// A template of the user's that replaces a shipped one.
pub const REPLACES: Code = Code("R018");
/// A template of the user's that leaves nothing to shipped ones.
pub const COMES_BEFORE: Code = Code("R019");
