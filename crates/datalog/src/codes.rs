//! The stable codes of findings about rule files: `R001`–`R019` syntax, `R020`–`R039` rules and conditions,
//! `R040`–`R049` evaluation. Templates have theirs in `dyelog-templates`.

use dyelog_diagnostic::Code;

/// A character that the language has no use for.
pub const CHARACTER: Code = Code("R001");
/// A string without its closing quote on the same line.
pub const OPEN_STRING: Code = Code("R002");
/// An escape that strings do not have.
pub const ESCAPE: Code = Code("R003");
/// A whole number that 64 bits do not hold.
pub const NUMBER: Code = Code("R004");
/// Something else was expected here.
pub const UNEXPECTED: Code = Code("R005");
/// A bracket or brace is never closed.
pub const UNCLOSED: Code = Code("R006");
/// A word that is no keyword of this place.
pub const KEYWORD: Code = Code("R007");
/// A type label that is none of `Be`, `Ac`, `Ed`, `Fk`, `Jn`.
pub const KIND: Code = Code("R008");
/// Arithmetic or blocks within one another, deeper than the limit.
pub const NESTING: Code = Code("R009");
/// A section that the template already has.
pub const SECTION_AGAIN: Code = Code("R010");
/// A construct that the language has, but not at this place.
pub const MISPLACED: Code = Code("R011");
/// A used file that is not there.
pub const NO_FILE: Code = Code("R012");
/// A rule file, or a set of them, beyond the limit of size.
pub const TOO_LARGE: Code = Code("R013");
/// More errors in one file than are worth showing.
pub const TOO_MANY: Code = Code("R014");
/// A comment for tools that cannot be read.
pub const DIRECTIVE: Code = Code("R015");
/// A lint that is allowed where it does not come up.
pub const ALLOWED_IN_VAIN: Code = Code("R016");

/// A relation that neither the rules nor the facts define.
pub const RELATION: Code = Code("R020");
/// More or fewer arguments than the relation has columns.
pub const ARITY: Code = Code("R021");
/// A number where a symbol or a node belongs, or the like.
pub const TYPE: Code = Code("R022");
/// A variable that nothing gives a value.
pub const UNSAFE: Code = Code("R023");
/// A relation that depends on its own negation or aggregate.
pub const UNSTRATIFIED: Code = Code("R024");
/// Two templates of one name.
pub const TEMPLATE_AGAIN: Code = Code("R025");
/// A relation that nothing uses.
pub const UNUSED: Code = Code("R026");
/// A variable that occurs once.
pub const ONCE: Code = Code("R027");
/// A template without `order`.
pub const ORDER: Code = Code("R028");
/// A rule for a relation of the facts.
pub const BASE_RULE: Code = Code("R029");
/// A rule beyond a limit of size: columns, literals, or variables of an aggregate.
pub const RULE_SIZE: Code = Code("R030");
/// A variable with an index in a rule.
pub const INDEXED: Code = Code("R031");
/// A relation or a column that `output` names twice.
pub const OUTPUT: Code = Code("R032");
/// A relation of another file that does not export it to this one.
pub const PRIVATE: Code = Code("R033");
/// A name that means two relations in one file.
pub const NAME_AGAIN: Code = Code("R034");
/// A recursion that never ends.
pub const ENDLESS: Code = Code("R035");
/// A body, or a relation, that never holds.
pub const NEVER: Code = Code("R036");
/// A rule that stands twice.
pub const RULE_AGAIN: Code = Code("R037");
/// A literal or an aggregate that says nothing.
pub const IN_VAIN: Code = Code("R039");
/// A `use` that brings nothing that is used.
pub const UNUSED_USE: Code = Code("R038");

/// The rules keep more rows than the limit allows.
pub const ROW_LIMIT: Code = Code("R040");
/// The rules look at more rows than the limit allows.
pub const STEP_LIMIT: Code = Code("R041");
/// Least or greatest values of a recursion that get better for ever.
pub const NO_BEST: Code = Code("R045");
