//! Codes of findings about models and their configuration.

use crate::diagnostic::Code;

/// A configuration file is not TOML.
pub const SYNTAX: Code = Code("M001");
/// A setting has a value of the wrong type.
pub const TYPE: Code = Code("M002");
/// A setting has a value that cannot be used: a unit that is not known, a number out of range.
pub const VALUE: Code = Code("M003");
/// A key that is not known.
pub const UNKNOWN_KEY: Code = Code("M004");
/// Settings that contradict each other.
pub const CONTRADICTION: Code = Code("M005");
/// A setting for something that the traces do not show.
pub const NOT_IN_TRACES: Code = Code("M006");
/// The traces show nothing that a model could be made of.
pub const NOTHING: Code = Code("M007");
/// An entry forwards more than once per invocation.
pub const FORWARDS_TOO_OFTEN: Code = Code("M008");
/// An entry forwards some requests and answers others.
pub const FORWARDS_AND_REPLIES: Code = Code("M009");
/// An entry without a requester that waits forwards.
pub const FORWARDS_UNANSWERED: Code = Code("M010");
/// How the load of a scenario was chosen.
pub const LOAD_CHOSEN: Code = Code("M011");
/// The observed rate of a scenario is more than the model can sustain.
pub const LOAD_NOT_SUSTAINED: Code = Code("M012");
/// No demand is known.
pub const NO_DEMAND: Code = Code("M013");
/// Some activities have a resource function, others of the same entry have none.
pub const NO_FUNCTION: Code = Code("M014");
/// Only some events of an activity carry its measured CPU demand.
pub const PARTLY_MEASURED: Code = Code("M015");
/// Entries call each other in a circle.
pub const CYCLE: Code = Code("M016");
/// Work of a customer has no place under open arrivals.
pub const CUSTOMER_WORK: Code = Code("M017");
/// Tasks without a number of threads are taken to have as many as they need.
pub const THREADS_ASSUMED: Code = Code("M018");
/// A task cannot stand for the customer of a scenario.
pub const NOT_THE_CUSTOMER: Code = Code("M019");
/// Arithmetic that cannot be read.
pub const EXPRESSION: Code = Code("M020");
/// Times and numbers where the other is needed.
pub const UNITS: Code = Code("M021");
/// A parameter that the configuration does not have.
pub const UNKNOWN_PARAMETER: Code = Code("M022");
/// Parameters that need each other.
pub const PARAMETER_CIRCLE: Code = Code("M023");
/// A parameter that nothing uses.
pub const UNUSED_PARAMETER: Code = Code("M024");
/// Proportions of a profile that do not add up to 1.
pub const PROPORTIONS: Code = Code("M025");
/// Tasks that the configuration puts on no processor, beside others that it does.
pub const UNALLOCATED: Code = Code("M026");
/// A resource function for work that was measured.
pub const FUNCTION_UNUSED: Code = Code("M027");
/// A setting of a task that stands for a customer.
pub const CUSTOMER_SETTING: Code = Code("M028");
/// A task runs on a processor whose name is close to another's.
pub const NEAR_PROCESSOR: Code = Code("M029");
/// The model, under the load that was traced, does not respond as the traces did.
pub const UNLIKE_TRACED: Code = Code("M030");
/// A wait for parallel branches stands elsewhere than in the traces, since these branches do not lie in each other.
pub const MOVED_WAIT: Code = Code("M031");
/// The network latency of calls was kept as measured.
pub const NETWORK_KEPT: Code = Code("M032");
/// A scenario was recorded in parts that are far from each other in time.
pub const SEVERAL_RECORDINGS: Code = Code("M033");
/// Sub-models have seen the same operation.
pub const SEEN_TWICE: Code = Code("M034");
/// The servers of processors were found from how long work took beside other work.
pub const SERVERS_FOUND: Code = Code("M049");
/// Instances, machines and cores that traces name.
pub const DEPLOYMENT: Code = Code("M050");
/// What is traced changes within the recording.
pub const NOT_STEADY: Code = Code("M051");
/// Operations and invocations that failed, or were tried once more.
pub const FAILURES: Code = Code("M052");
/// Operations that were summed up before all of their spans were there, or may have been.
pub const SUMMED_UP: Code = Code("M053");
/// Clocks count in steps that are no small part of what they measured.
pub const COARSE_TIMES: Code = Code("M055");
/// Delays that templates state and no time tells.
pub const UNTIMED_DELAYS: Code = Code("M056");
/// Scenarios with too few operations for percentiles.
pub const FEW_OPERATIONS: Code = Code("M057");
/// Predicted percentiles at the traced load are far from the traced ones.
pub const UNLIKE_PERCENTILES: Code = Code("M058");
/// The threads of tasks were found from calls that wait for one.
pub const POOLS: Code = Code("M059");
/// Entries whose work is not known, beside others whose times are recorded.
pub const UNSEEN_WORK: Code = Code("M035");
/// Parallel calls end sooner together than independent ones can, so that the model waits for some of them only.
pub const SENT_BRANCH: Code = Code("M036");
/// A few invocations look asynchronous, where callers wait for nearly all others of the same service.
pub const OUTVOTED: Code = Code("M038");
/// Parts of operations whose beginning was lost, which make no load.
pub const FRAGMENTS: Code = Code("M039");
/// A file of utilisation cannot be read.
pub const UTILISATION: Code = Code("M060");
/// Values of utilisation cannot be of their unit, or the unit is not known.
pub const UTILISATION_UNIT: Code = Code("M061");
/// Utilisation of something that is no processor of the model.
pub const UTILISATION_RESOURCE: Code = Code("M062");
/// Utilisation was not measured while the traces were recorded.
pub const UTILISATION_TIME: Code = Code("M063");
/// Demands follow from measured utilisation.
pub const UTILISATION_USED: Code = Code("M064");
/// Rates follow from counted requests.
pub const REQUESTS_COUNTED: Code = Code("M065");
/// Counted requests tell no rate, or contradict what else is known of sampling.
pub const REQUESTS_DOUBTED: Code = Code("M066");
/// Operations were kept for what they are, and are no random sample.
pub const CHOSEN: Code = Code("M067");
/// Many names of operations that were seen a few times differ in a number or an identifier only.
pub const NAMES_ALIKE: Code = Code("M068");
/// Scenarios were sampled in different ways.
pub const MIXED_SAMPLING: Code = Code("M069");
/// A model cannot be calibrated with these traces.
pub const CALIBRATION: Code = Code("M070");
/// Why a calibrated model is to be doubted.
pub const CALIBRATION_DOUBT: Code = Code("M071");
/// A consumer of asynchronous messages gets more of them than it serves.
pub const BACKLOG: Code = Code("M072");
/// Invocations of an entry last and are taken to wait.
pub const LASTING: Code = Code("M073");
/// Machines that are taken as copies of one do not have as much work as each other.
pub const UNEVEN_COPIES: Code = Code("M074");
/// The own time of entries may hold waits for a service that records no spans.
pub const UNSEEN_WAITS: Code = Code("M075");
/// Consumers take messages in batches, and serve more in larger ones.
pub const BATCHES: Code = Code("M076");
/// A caller has a clone of an entry that takes less time for it.
pub const CLONE: Code = Code("M077");
/// A processor was measured to be busier than traced operations make it.
pub const OTHERS: Code = Code("M078");
/// An answer of the solver differs from a simulation of the same model.
pub const UNLIKE_SIMULATED: Code = Code("M079");
/// Work on a processor stands still for a quota of processor time.
pub const QUOTA: Code = Code("M080");
/// A question is about far more load than was traced.
pub const FAR_FROM_TRACED: Code = Code("M081");
/// A path of a parameter cannot be read.
pub const PATH: Code = Code("M040");
/// There is no such parameter.
pub const NO_PARAMETER: Code = Code("M041");
/// A parameter does not take that value.
pub const PARAMETER_VALUE: Code = Code("M042");
/// The values of a sweep cannot be read.
pub const SWEEP: Code = Code("M043");
/// A parameter changes nothing in the model.
pub const NO_EFFECT: Code = Code("M044");
/// There is no such figure of a model.
pub const UNKNOWN_FIGURE: Code = Code("M045");
/// A goal cannot be read.
pub const GOAL: Code = Code("M046");
/// A parameter cannot be searched in that way.
pub const SEARCH: Code = Code("M047");
/// A file of choices cannot be used.
pub const CHOICES: Code = Code("M048");
