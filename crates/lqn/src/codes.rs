//! Stable codes of what the readers and the lint say.

use dyelog_diagnostic::Code;

/// What is written cannot be understood: a word out of place, broken XML or JSON.
pub const SYNTAX: Code = Code("L001");
/// A name that nothing bears.
pub const UNKNOWN_NAME: Code = Code("L002");
/// A name that two elements of a kind bear.
pub const DUPLICATE_NAME: Code = Code("L003");
/// A number that is too large, no whole number where one is needed, or none at all.
pub const BAD_NUMBER: Code = Code("L004");
/// An element, attribute or word that the language does not have; it is left out.
pub const UNKNOWN_WORD: Code = Code("L005");
/// Something that is no part of a model and was left out: results, reports, histograms.
pub const SKIPPED: Code = Code("L006");
/// A `$variable` without a definition.
pub const UNKNOWN_VARIABLE: Code = Code("L007");
/// A document nested too deep.
pub const TOO_DEEP: Code = Code("L008");
/// The text is in none of the languages.
pub const UNKNOWN_LANGUAGE: Code = Code("L009");
/// A version of the JSON form that this release cannot read.
pub const UNKNOWN_VERSION: Code = Code("L010");
/// A variable with several values, of which the first is taken.
pub const SWEEP: Code = Code("L011");
/// Said twice of one element; calls are added up, of other statements the last holds.
pub const REPEATED: Code = Code("L012");
/// Two statements that contradict each other; one of them is left out.
pub const CONTRADICTION: Code = Code("L013");

/// A reference to an element that is not there, or that is another's.
pub const DANGLING: Code = Code("L101");
/// Nothing drives the model: no reference task and no open arrivals.
pub const NO_LOAD: Code = Code("L102");
/// Entries that call each other in a circle.
pub const CALL_CYCLE: Code = Code("L103");
/// A number that means nothing: negative, infinite or not a number.
pub const BAD_VALUE: Code = Code("L104");
/// Probabilities that are above 1 or do not add up to 1.
pub const BAD_PROBABILITY: Code = Code("L105");
/// A task without entries.
pub const NO_ENTRIES: Code = Code("L106");
/// An activity graph that never replies to a caller that waits.
pub const NO_REPLY: Code = Code("L107");
/// An activity that nothing leads to.
pub const UNREACHABLE: Code = Code("L108");
/// A reference task that is called, or that answers or forwards.
pub const REFERENCE_CALLED: Code = Code("L109");
/// An entry that is called both synchronously and asynchronously.
pub const MIXED_CALLS: Code = Code("L110");
/// Forwarding probabilities that add up to more than 1.
pub const FORWARDING_OVER_ONE: Code = Code("L111");
/// A join of activities that do not run in parallel.
pub const JOIN_WITHOUT_FORK: Code = Code("L112");
/// Activities that follow each other in a circle.
pub const ACTIVITY_CYCLE: Code = Code("L113");
/// An activity in two precedences on the same side.
pub const AMBIGUOUS_FLOW: Code = Code("L114");
/// An entry that nothing calls.
pub const NEVER_CALLED: Code = Code("L115");
/// An order of service that an element of this kind cannot have.
pub const MISPLACED_SCHEDULING: Code = Code("L116");
/// An entry that is called, but only by what no load reaches.
pub const NOT_REACHED: Code = Code("L117");
/// A processor, a task or a group with a cap that open arrivals alone keep busy all the time.
pub const SATURATED: Code = Code("L118");
/// A reference task whose cycles take no time.
pub const TIMELESS: Code = Code("L119");
/// A processor or group without tasks.
pub const UNUSED: Code = Code("L120");
/// An entry without demand and calls.
pub const IDLE_ENTRY: Code = Code("L121");
/// A value that nobody heeds where it stands: a think time, a priority, a fan, a group.
pub const UNHEEDED: Code = Code("L122");
/// Numbers of replicas and fans that do not fit together.
pub const REPLICATION: Code = Code("L123");
/// An entry made of activities that does not answer once in each invocation.
pub const NOT_ONE_REPLY: Code = Code("L124");
/// A fork whose branches are never joined.
pub const NEVER_JOINED: Code = Code("L125");
/// A task whose threads wait for a further thread of the same task.
pub const SELF_WAIT: Code = Code("L126");
/// A lock whose entries are not the parts that it needs.
pub const LOCK_ROLES: Code = Code("L127");
