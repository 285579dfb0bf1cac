//! The stable codes of findings of SAME.

use dyelog_diagnostic::Code;

/// Interactions were not complete when the trace ended.
pub const UNFINISHED: Code = Code("T150");
/// Memory ran out for interactions that never end.
pub const GIVEN_UP: Code = Code("T151");
/// Replies that came for requests that had been given up.
pub const LATE: Code = Code("T152");
/// An event that no thread can be guessed for.
pub const NO_THREAD: Code = Code("T153");
/// Too many kinds of occurrences to have an entry each.
pub const ALIKE: Code = Code("T154");
/// Requests of a kind that is nearly always answered, which were not.
pub const UNANSWERED: Code = Code("T155");
/// Replies of which the requests are lost.
pub const STRAY: Code = Code("T156");
/// A rule of SAME would have to be searched for.
pub const NOT_WALKABLE: Code = Code("R042");
/// Messages that no template matches.
pub const UNMATCHED: Code = Code("T157");
/// What a template finds is not retired.
pub const UNRETIRED: Code = Code("R046");
/// A template replaces the shipped one of its name.
pub const REPLACES: Code = Code("R018");
/// A template that never has its turn.
pub const SHADOWED: Code = Code("R073");
