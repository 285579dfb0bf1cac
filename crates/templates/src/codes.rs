//! The stable codes of findings about templates (`R050`–`R089`) and about matching (`R090`–`R099`).

use dyelog_diagnostic::Code;

/// A node that no functional edge ties to the glue node.
pub const NOT_NAVIGABLE: Code = Code("R050");
/// A template without nodes.
pub const NO_NODES: Code = Code("R051");
/// Two nodes of one name.
pub const NODE_AGAIN: Code = Code("R052");
/// More nodes than a plan has registers for.
pub const TOO_MANY_NODES: Code = Code("R053");
/// A second `repeat` in one template.
pub const REPEAT_AGAIN: Code = Code("R054");
/// A `repeat` without `min`.
pub const REPEAT_WITHOUT_MIN: Code = Code("R055");
/// A term that is not a variable plus a constant, where only such can be solved.
pub const NOT_LINEAR: Code = Code("R056");
/// An index that the place does not allow.
pub const INDEX: Code = Code("R057");
/// A variable under `model` or `where` that no node binds.
pub const UNBOUND: Code = Code("R058");
/// A variable of a node pattern that is used once.
pub const USED_ONCE: Code = Code("R059");
/// Scenarios that differ within one template: matching is local to an operation.
pub const SCENARIO: Code = Code("R060");
/// An attribute that nodes do not have.
pub const ATTRIBUTE: Code = Code("R061");
/// A modelling operation that is not in the registry.
pub const OPERATION: Code = Code("R062");
/// The wrong number of arguments of a modelling operation.
pub const ARGUMENTS: Code = Code("R063");
/// An argument of the wrong type.
pub const ARGUMENT_TYPE: Code = Code("R064");
/// A type of interaction that there is not.
pub const INTERACTION: Code = Code("R065");
/// An entry that no `newEntry` makes, or that is used before.
pub const ENTRY: Code = Code("R066");
/// `newEntry` on a task on which no node of the template runs.
pub const ENTRY_TASK: Code = Code("R067");
/// `newEntry` on a task that another entry of the match serves, where nothing says whose its nodes are.
pub const ENTRY_TASK_AGAIN: Code = Code("R068");
/// `phase2` of a thread, task and counter that are no node of the template.
pub const PHASE_NODE: Code = Code("R069");
/// A matched thread, other than the glue node's, that nothing goes on with.
pub const ABANDONED_THREAD: Code = Code("R070");
/// Two templates of one order that can match the same glue node.
pub const ORDER_AGAIN: Code = Code("R071");
/// A template that can never match because one before it always does.
pub const SHADOWED: Code = Code("R073");
/// A template named by `starts` that there is not, or that leads back to itself.
pub const STARTS: Code = Code("R074");
/// Two nodes on different tasks that may be the same task.
pub const SAME_TASK: Code = Code("R077");
/// A reply that is not said to come after its request.
pub const UNORDERED: Code = Code("R078");
/// Work of one task given to an entry of another.
pub const WRONG_TASK: Code = Code("R079");
/// A node on a task that no entry of the template serves.
pub const NO_ENTRY: Code = Code("R080");
/// An entry that is requested twice.
pub const REQUESTED_AGAIN: Code = Code("R081");
/// An entry that nobody requests.
pub const NOT_REQUESTED: Code = Code("R082");
/// A node that is work of another entry already.
pub const CLAIMED_AGAIN: Code = Code("R083");
/// A node that forks two branches or waits for two.
pub const SAME_NODE: Code = Code("R085");

/// Conditions that can never hold together.
pub const NEVER: Code = Code("R084");

/// A condition or statement that no combination of alternatives keeps.
pub const BETWEEN_ALTERNATIVES: Code = Code("R086");
/// A template with more combinations of alternatives than are tried.
pub const TOO_MANY_ALTERNATIVES: Code = Code("R087");

/// A delay that is the wait for an answer.
pub const DELAY_OF_ANSWER: Code = Code("R088");
/// A glue node that is not the first of the text.
pub const GLUE_LATER: Code = Code("R089");

/// A node that no template matches.
pub const UNMATCHED: Code = Code("R090");
/// A thread that moves to another task with no request that a template recognises.
pub const UNOWNED: Code = Code("R091");
/// A trigger that names a node of another label than the trace has there.
pub const TRIGGER: Code = Code("R092");
/// Matching an operation took more steps than a linear search may.
pub const BUDGET: Code = Code("R093");
/// The reference engine was asked for with rules that it does not have.
pub const ENGINE: Code = Code("R094");
/// A barrier that the model leaves out.
pub const BARRIER: Code = Code("R096");
/// A wait for another visit that the model leaves out.
pub const LOST_WAIT: Code = Code("R097");
/// A match gave work of one task to an entry of another.
pub const MISPLACED: Code = Code("R095");
