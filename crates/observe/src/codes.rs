//! Codes of what is found in observations, and in models made of them.

use dyelog_diagnostic::Code;

/// A text that is no observation: broken JSON, a missing field, a word that is not known.
pub const SYNTAX: Code = Code("O001");
/// A version of the JSON form that this release cannot read.
pub const UNKNOWN_VERSION: Code = Code("O002");
/// A number of an observation that cannot be: an interval without length, more than can be counted, sums that contradict each other.
pub const BAD_VALUE: Code = Code("O003");
/// Observations that came before: the same process and the same interval.
pub const DUPLICATE: Code = Code("O004");
/// A system's configuration file that says what cannot be.
pub const SYSTEM: Code = Code("O005");

/// Nothing was observed in the period.
pub const NOTHING: Code = Code("O010");
/// A process that did not report for all of the period.
pub const PARTLY: Code = Code("O011");
/// Demands of operations that change within the period.
pub const CHANGE: Code = Code("O012");
/// Operations whose counts vary together, so that their demands are known together alone.
pub const COLLINEAR: Code = Code("O013");
/// Too few intervals for a regression.
pub const FEW_INTERVALS: Code = Code("O014");
/// Intervals that were left out, since a process used far more or less than its operations take.
pub const OUTLIERS: Code = Code("O015");
/// Numbers whose confidence intervals are wide.
pub const WIDE: Code = Code("O016");
/// Calls of a server that nothing observes: it is a delay in the model.
pub const UNOBSERVED_SERVER: Code = Code("O017");
/// Requests of clients that nothing observes: they are open arrivals in the model.
pub const UNOBSERVED_CLIENTS: Code = Code("O018");
/// Operations of a disk, and nothing that tells its service time.
pub const NO_DISK: Code = Code("O019");
/// An unknown number of cores.
pub const NO_CORES: Code = Code("O020");
/// Calls that the model takes for others than they are.
pub const SIMPLIFIED: Code = Code("O021");
/// Counts that observers could not keep.
pub const LOST: Code = Code("O022");
