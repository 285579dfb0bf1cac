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
//! let (configuration, findings) = Configuration::parse(&"shop.toml".into(), text).unwrap();
//! assert!(findings.is_empty());
//! assert_eq!(configuration.scenarios["checkout"].think_time, Some(1.0));
//! ```

mod read;
mod reader;
mod units;

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::lqn::{Multiplicity, Scheduling};

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
}

/// What holds for tasks and processors without a setting of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// Threads of a task; infinite where not given.
    pub threads: Option<Multiplicity>,
    /// Servers of a processor.
    pub multiplicity: Multiplicity,
    /// The order of service of processors.
    pub scheduling: Scheduling,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { threads: None, multiplicity: Multiplicity::Finite(1), scheduling: Scheduling::ProcessorSharing }
    }
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
    /// The order of service.
    pub scheduling: Option<Scheduling>,
}

/// A demand with the place where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedDemand {
    /// Where it is written.
    pub place: Place,
    /// Seconds per execution of the activity.
    pub seconds: f64,
}

/// Resource functions: the demand of an execution of an activity. The first of these counts: the activity of the task, the
/// activity, the task's default, the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandSettings {
    /// `[demand] default`.
    pub default: Option<PlacedDemand>,
    /// `[demand.activity]`, by activity name.
    pub activities: BTreeMap<String, PlacedDemand>,
    /// `[demand.task.NAME]`, by task identifier.
    pub tasks: BTreeMap<String, TaskDemands>,
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

impl DemandSettings {
    /// The demand of an execution of an activity, seconds; `activity` is empty for one without a name.
    pub fn of(&self, task: &str, activity: &str) -> Option<f64> {
        let own = self.tasks.get(task);
        own.and_then(|own| own.activities.get(activity))
            .or_else(|| self.activities.get(activity))
            .or_else(|| own.and_then(|own| own.default.as_ref()))
            .or(self.default.as_ref())
            .map(|demand| demand.seconds)
    }
}
