//! Configuration: what traces cannot tell.
//!
//! ```
//! use dyelog::model::Configuration;
//!
//! let text = r#"
//!     [scenario.checkout]
//!     population = 20
//!     think_time = "1 s"
//!
//!     [task.web]
//!     threads = 8
//! "#;
//! let (configuration, findings) = Configuration::parse(&"shop.toml".into(), text).expect("it is TOML");
//! assert!(findings.is_empty());
//! assert_eq!(configuration.scenarios["checkout"].think_time, Some(1.0));
//! ```

mod evaluate;
mod expression;
mod load;
mod profiles;
mod quantity;
mod read;
mod reader;
pub(in crate::model) mod units;

pub use evaluate::{DemandValues, Setting};
pub use expression::Expression;
pub use quantity::{Dimension, Quantity};
pub(super) use reader::scheduling_name;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Place;
use crate::lqn::{Dispatching, Multiplicity, Scheduling};
use crate::model::utilisation::{Cores, Measured};

/// A configuration, all of whose parts may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// `[defaults]`: what holds for tasks and processors without a setting of their own.
    pub defaults: Defaults,
    /// `[scenario.NAME]`.
    pub scenarios: BTreeMap<String, ScenarioSettings>,
    /// `[processor.NAME]`.
    pub processors: BTreeMap<String, ProcessorSettings>,
    /// `[task.NAME]`, by task identifier.
    pub tasks: BTreeMap<String, TaskSettings>,
    /// `[demand]`: resource functions.
    pub demand: DemandSettings,
    /// `[parameters]`: values that resource functions use. See [`Configuration::set_parameter`].
    pub parameters: BTreeMap<String, Expression>,
    /// `[profile.NAME]`: customers that do one scenario or another.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// `[processor_groups]`: processors that call graphs take as one, in the order in which they are written.
    pub processor_groups: Vec<(String, Vec<String>)>,
    /// `[cpu_attributes]`: attributes of spans that call graphs take processor time from, each with the seconds that 1 of it stands for.
    pub cpu_attributes: Vec<(String, f64)>,
    /// `accept`: codes of notes and warnings that are known and need no telling.
    pub accept: BTreeSet<String>,
    /// `recording = "all"`: models are of all of a recording, and not of its steady part.
    pub all_of_recording: bool,
    /// `group`: patterns of names of operations that are one, as `--group` takes them.
    pub group: Vec<String>,
    /// How busy processors were measured to be while traces were recorded. It stands in no file of configuration.
    pub measured: Measured,
    /// How many cores processors have by metrics, those of all copies together, and which metric says so. It stands in no file of configuration.
    pub cores: Cores,
    /// Processors whose `multiplicity` is a number of cores that resources or metrics tell: they have no more servers, and may use fewer. It stands in no file of configuration.
    pub bounds: BTreeSet<String>,
    /// How many cores a copy of a processor may use by resources or metrics, where that is no whole number. It stands in no file of configuration.
    pub quotas: BTreeMap<String, f64>,
    /// How many tasks traces put together on a processor. It stands in no file of configuration.
    pub tenants: BTreeMap<String, u32>,
    /// By task, how many instances each of its copies stands for, where traces show several on a machine.
    pub instances: BTreeMap<String, u32>,
}

/// What holds for tasks and processors without a setting of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// Threads of a task; infinite where not given.
    pub threads: Option<Multiplicity>,
    /// Servers of a processor; as many as the traces show where not given, else one.
    pub multiplicity: Option<Multiplicity>,
    /// The order of service of processors; as the traces show where not given, else sharing.
    pub scheduling: Option<Scheduling>,
    /// The network latency per call; as traced where not given.
    pub network: Option<Network>,
}

/// Network latency of a synchronous call, both ways: time in which its caller waits and no processor works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// As long as the traces show, where they have both halves of calls.
    Traced,
    /// So many seconds a call.
    Each(f64),
}

/// The load of a scenario: closed with a population, or open with a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioSettings {
    /// Where it is written.
    pub place: Place,
    /// How many customers.
    pub population: Option<u32>,
    /// Mean time between a response and the customer's next request, seconds.
    pub think_time: Option<f64>,
    /// Operations that arrive per second.
    pub rate: Option<f64>,
    /// The task that begins the operations and stands for the customer itself: a load generator, the users' terminals. What it
    /// does is the customer's doing, and it is no task of the model.
    pub customer: Option<PlacedName>,
}

/// A name with the place where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedName {
    /// Where it is written.
    pub place: Place,
    /// The name.
    pub name: String,
}

/// A usage profile: one customer that calls the scenarios in proportion.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSettings {
    /// Where it is written.
    pub place: Place,
    /// How many customers.
    pub population: Option<u32>,
    /// Mean time between a response and the customer's next request, seconds.
    pub think_time: Option<f64>,
    /// Operations that arrive per second, of all its scenarios.
    pub rate: Option<f64>,
    /// The scenarios, each with its part of the operations; in reading they are made to add up to 1.
    pub proportions: BTreeMap<String, Proportion>,
}

/// A scenario's part of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Proportion {
    /// Where it is written.
    pub place: Place,
    /// As it is written: relative to the others of the profile.
    pub weight: f64,
}

/// A processor.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorSettings {
    /// Where it is written.
    pub place: Place,
    /// Number of servers.
    pub multiplicity: Option<Multiplicity>,
    /// Work done per second, relative to the processor on which demands were measured.
    pub speed: Option<f64>,
    /// The order of service.
    pub scheduling: Option<Scheduling>,
    /// Quantum of processor sharing, seconds.
    pub quantum: Option<f64>,
    /// Number of copies.
    pub replicas: Option<u32>,
    /// How many servers of each copy may be busy on the mean: a quota of processor time.
    pub quota: Option<f64>,
}

impl ProcessorSettings {
    /// Nothing set, by what stands at a place.
    pub(in crate::model) fn at(place: Place) -> Self {
        Self { place, multiplicity: None, speed: None, scheduling: None, quantum: None, replicas: None, quota: None }
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSettings {
    /// Where it is written.
    pub place: Place,
    /// The processor it runs on; one of its own name where not given.
    pub processor: Option<String>,
    /// Number of threads.
    pub threads: Option<Multiplicity>,
    /// Priority at its processor; higher goes first.
    pub priority: Option<i32>,
    /// Number of copies among which requests are spread evenly.
    pub replicas: Option<u32>,
    /// How requests come to the copies.
    pub dispatching: Option<Dispatching>,
    /// The order of service.
    pub scheduling: Option<Scheduling>,
    /// The network latency of the calls that it makes.
    pub network: Option<Network>,
}

impl TaskSettings {
    /// Nothing set, by what stands at a place.
    pub(in crate::model) fn at(place: Place) -> Self {
        Self {
            place,
            processor: None,
            threads: None,
            priority: None,
            replicas: None,
            dispatching: None,
            scheduling: None,
            network: None,
        }
    }
}

/// A demand with the place where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedDemand {
    /// Where its name is written.
    pub place: Place,
    /// A time per execution of the activity, or per invocation of the entry.
    pub expression: Expression,
}

impl PlacedDemand {
    /// A demand from outside of any file, such as one of a sweep.
    pub fn seconds(seconds: f64) -> Self {
        Self { place: Place::Nowhere, expression: Expression::constant(Quantity::seconds(seconds)) }
    }
}

/// Resource functions: the demand of an execution of an activity. The first of these counts: the activity of the task, the
/// activity, the task's default, the default. [`Configuration::demands`] gives their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandSettings {
    /// `[demand] default`.
    pub default: Option<PlacedDemand>,
    /// `[demand.activity]`, by activity name.
    pub activities: BTreeMap<String, PlacedDemand>,
    /// `[demand.task.NAME]`, by task identifier.
    pub tasks: BTreeMap<String, TaskDemands>,
    /// `[demand.entry]`, by the entry's name in the model: per invocation, whatever its activities.
    pub entries: BTreeMap<String, PlacedDemand>,
}

/// Resource functions of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDemands {
    /// Where it is written.
    pub place: Place,
    /// `default`.
    pub default: Option<PlacedDemand>,
    /// `[demand.task.NAME.activity]`, by activity name.
    pub activities: BTreeMap<String, PlacedDemand>,
}
