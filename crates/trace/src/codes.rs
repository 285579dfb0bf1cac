//! The stable codes of findings about traces. `T0xx` reading and quality, `T1xx` spans.

use dyelog_diagnostic::Code;

/// The input could not be read to its end.
pub const UNREADABLE: Code = Code("T001");
/// A compressed input ends early or is damaged.
pub const BAD_ARCHIVE: Code = Code("T002");
/// There is nothing in the input.
pub const EMPTY: Code = Code("T003");
/// The format of the input is not recognised.
pub const UNKNOWN_FORMAT: Code = Code("T004");
/// The input has no operation in it.
pub const NO_OPERATION: Code = Code("T006");
/// A file that was found in a folder or an archive is no trace.
pub const NO_TRACE: Code = Code("T007");
/// What a format that was written cannot hold.
pub const LOST_IN_FORMAT: Code = Code("T008");
/// Spans that memory is not to hold cannot be kept on disk.
pub const SPILL: Code = Code("T009");

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

/// An operation has no events.
pub const NO_EVENTS: Code = Code("T020");
/// A node forks a thread of which there is no event.
pub const DANGLING_FORK: Code = Code("T021");
/// A thread that is not the root begins without a fork.
pub const BEGIN_WITHOUT_FORK: Code = Code("T022");
/// Several threads begin without a fork.
pub const SEVERAL_ROOTS: Code = Code("T023");
/// Every thread is forked by another.
pub const NO_ROOT: Code = Code("T024");
/// A thread is forked more than once.
pub const FORKED_TWICE: Code = Code("T025");
/// A node waits for a thread of which there is no event.
pub const JOIN_OF_UNKNOWN: Code = Code("T026");
/// Two nodes wait for the same thread.
pub const JOINED_TWICE: Code = Code("T027");
/// Thread node counters are missing.
pub const THREAD_GAP: Code = Code("T028");
/// A thread node counter comes again.
pub const THREAD_REPEAT: Code = Code("T029");
/// Task node counters are missing.
pub const TASK_GAP: Code = Code("T030");
/// A task node counter comes again.
pub const TASK_REPEAT: Code = Code("T031");
/// The first node of a thread is no begin.
pub const NO_BEGIN: Code = Code("T032");
/// A thread has no end.
pub const NO_END: Code = Code("T033");
/// A begin stands in the middle of a thread.
pub const BEGIN_INSIDE: Code = Code("T034");
/// A thread goes on after its end.
pub const END_INSIDE: Code = Code("T035");
/// A thread cannot be reached from any root.
pub const UNREACHABLE: Code = Code("T036");
/// Events are causes of themselves.
pub const CYCLE: Code = Code("T037");
/// A counter is zero.
pub const ZERO_COUNTER: Code = Code("T038");
/// A single lost event was restored.
pub const RESTORED: Code = Code("T040");
/// An operation is set aside because it is damaged.
pub const SET_ASIDE: Code = Code("T041");
/// An operation came before, with the same events.
pub const REPEATED: Code = Code("T042");
/// An operation has the run of another one.
pub const REUSED_RUN: Code = Code("T043");
/// A table lacks a column.
pub const NO_COLUMN: Code = Code("T130");
/// A column of a table is not used.
pub const UNUSED_COLUMN: Code = Code("T131");
/// A row of a table, or a line of a log, cannot be read.
pub const BAD_ROW: Code = Code("T132");
/// A message was sent and not received.
pub const NO_RECEPTION: Code = Code("T133");
/// A message was received and not sent.
pub const NO_SENDING: Code = Code("T134");
/// An event stands far from its place in the order of time.
pub const LATE_EVENT: Code = Code("T135");
/// Messages were received before they were sent.
pub const NOT_CAUSAL: Code = Code("T136");
/// A vector clock cannot be used.
pub const BAD_CLOCK: Code = Code("T137");
/// Parallel branches count as one after another.
pub const PARALLEL: Code = Code("T138");
/// Traces of messages and traces of operations were given together, or one where only the other can be used.
pub const MIXED: Code = Code("T139");
/// A message, or half of one, that stands there twice.
pub const TWICE: Code = Code("T140");
/// A message answers another, whose sender waits for it.
pub const ANSWER: Code = Code("T141");
/// The time in spans that send messages counts as waiting.
pub const SENDING: Code = Code("T143");
/// Spans are of several deployments.
pub const DEPLOYMENTS: Code = Code("T142");
/// A document, or a line of it, is not JSON.
pub const BAD_JSON: Code = Code("T101");
/// There is no span in the input.
pub const NO_SPANS: Code = Code("T102");
/// A value is of another type than the format says.
pub const WRONG_TYPE: Code = Code("T103");
/// A span has no identifier.
pub const NO_SPAN_ID: Code = Code("T104");
/// A span has neither start nor end.
pub const NO_TIMES: Code = Code("T105");
/// A span has only one of start and end.
pub const NO_SPAN_END: Code = Code("T106");
/// A span ends before it starts.
pub const NEGATIVE_DURATION: Code = Code("T107");
/// A span does not say which service recorded it.
pub const NO_SERVICE: Code = Code("T108");
/// A span is recorded more than once.
pub const DUPLICATE_SPAN: Code = Code("T109");
/// Two spans of a trace have one identifier.
pub const REUSED_ID: Code = Code("T110");
/// The parent of a span is not in the input.
pub const LOST_PARENT: Code = Code("T111");
/// Spans are their own ancestors.
pub const CIRCLE: Code = Code("T112");
/// A link says nothing about an interaction.
pub const LOOSE_LINK: Code = Code("T113");
/// A message was worked on in a batch.
pub const BATCH: Code = Code("T114");
/// Clocks of two machines differ.
pub const CLOCK_SKEW: Code = Code("T115");
/// One half of a call is not recorded.
pub const LOST_HALF: Code = Code("T116");
/// A CPU time is no time.
pub const BAD_CPU: Code = Code("T117");
/// A span has far more CPU time than it could have used.
pub const MUCH_CPU: Code = Code("T118");
/// The times of a span are in another unit than they are read in.
pub const OTHER_UNIT: Code = Code("T119");
/// A message of a binary trace cannot be read.
pub const BAD_MESSAGE: Code = Code("T120");
/// The map that says what the records of a log are is missing.
pub const NO_MAP: Code = Code("T121");
/// Records that others refer to are missing.
pub const LOST_RECORDS: Code = Code("T122");
/// A record says nothing that is needed.
pub const OTHER_RECORD: Code = Code("T123");
/// Names with identifiers in them are one operation.
pub const GROUPED: Code = Code("T124");
/// A span lies or lasts an impossible time beside the others of its trace.
pub const IMPOSSIBLE_TIME: Code = Code("T125");
/// Clocks of a trace count milliseconds, of which its spans take few.
pub const COARSE_CLOCK: Code = Code("T126");
/// A file that says what the columns of a table mean cannot be used.
pub const BAD_MAPPING: Code = Code("T127");
/// A Parquet file, or a row group of it, cannot be read.
pub const BAD_PARQUET: Code = Code("T128");
/// Attributes stand in columns whose names are not known.
pub const DEDICATED: Code = Code("T129");
/// Probe records do not fit the state machine of causal chains.
pub const CHAIN: Code = Code("T160");
/// A call without an end or a time, so that its operation is left out.
pub const DAMAGED_CALL: Code = Code("T161");
/// A CPU profile cannot be read, or has no processor time.
pub const CPU_PROFILE: Code = Code("T162");
/// No sample of a CPU profile names a span of the trace.
pub const OTHER_PROFILE: Code = Code("T163");

/// Findings that tell how the input was put right, of which nothing was lost: what came twice, and clocks, counters and units
/// that were corrected.
pub const PUT_RIGHT: [Code; 7] = [RANKED_ANEW, REPEATED, DUPLICATE_SPAN, CLOCK_SKEW, OTHER_UNIT, TWICE, GROUPED];
