//! The shape of the JSON form: elements lie in each other as in the model and name each other.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields to its predicates by reference")]

use serde::{Deserialize, Serialize};

/// A whole model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// Version of the form.
    #[serde(rename = "dyelog-model")]
    pub(super) version: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) comment: String,
    #[serde(default)]
    pub(super) parameters: Parameters,
    pub(super) processors: Vec<Processor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<Group>,
    pub(super) tasks: Vec<Task>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) calibration: Option<super::calibration::Shape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    pub(super) convergence: f64,
    pub(super) iteration_limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) print_interval: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) underrelaxation: Option<f64>,
    /// Names and values, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) pragmas: Vec<(String, String)>,
}

impl Default for Parameters {
    fn default() -> Self {
        crate::Parameters::default().into()
    }
}

impl From<crate::Parameters> for Parameters {
    fn from(parameters: crate::Parameters) -> Self {
        let crate::Parameters { convergence, iteration_limit, print_interval, underrelaxation, pragmas } = parameters;
        Self { convergence, iteration_limit, print_interval, underrelaxation, pragmas }
    }
}

impl From<Parameters> for crate::Parameters {
    fn from(parameters: Parameters) -> Self {
        let Parameters { convergence, iteration_limit, print_interval, underrelaxation, pragmas } = parameters;
        Self { convergence, iteration_limit, print_interval, underrelaxation, pragmas }
    }
}

/// A number of servers: `4` or `"infinite"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number from 1 or \"infinite\"")]
pub(super) enum Multiplicity {
    Finite(u32),
    Word(Infinite),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Infinite {
    Infinite,
}

/// For numbers that are 1 unless given.
fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

fn unit() -> f64 {
    1.0
}

fn is_unit(value: &f64) -> bool {
    *value == 1.0
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_default_priority(value: &i32) -> bool {
    *value == 0
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Processor {
    pub(super) name: String,
    pub(super) scheduling: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quantum: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) multiplicity: Option<Multiplicity>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) replicas: u32,
    #[serde(default = "unit", skip_serializing_if = "is_unit")]
    pub(super) speed: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) processor: String,
    pub(super) share: f64,
    #[serde(default)]
    pub(super) cap: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) processor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    pub(super) scheduling: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) multiplicity: Option<Multiplicity>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) replicas: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dispatching: Option<String>,
    #[serde(default, skip_serializing_if = "is_default_priority")]
    pub(super) priority: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) think_time: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queue_length: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fan_in: Vec<Fan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) fan_out: Vec<Fan>,
    #[serde(default)]
    pub(super) entries: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) activities: Vec<Activity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) precedences: Vec<Precedence>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fan {
    pub(super) task: String,
    pub(super) number: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) open_arrival_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) semaphore: Option<String>,
    /// Either phases …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phases: Option<Vec<Work>>,
    /// … or the first activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_activity: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) forwarding: Vec<Forwarding>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) histograms: Vec<Histogram>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Histogram {
    /// Of an entry; the first one where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<u8>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) from: f64,
    pub(super) to: f64,
    #[serde(default)]
    pub(super) bins: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forwarding {
    pub(super) to: String,
    pub(super) probability: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Work {
    pub(super) demand: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cv2: Option<f64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) think_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) think_cv2: Option<f64>,
    #[serde(skip_serializing_if = "CallOrder::is_stochastic")]
    pub(super) call_order: CallOrder,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CallOrder {
    #[default]
    Stochastic,
    Deterministic,
    Bernoulli,
}

impl CallOrder {
    fn is_stochastic(&self) -> bool {
        *self == Self::Stochastic
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) to: String,
    pub(super) kind: CallKind,
    pub(super) mean: f64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CallKind {
    Synchronous,
    Asynchronous,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Activity {
    pub(super) name: String,
    #[serde(default)]
    pub(super) work: Work,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) replies: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) histograms: Vec<Histogram>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Precedence {
    pub(super) join: Join,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fork: Option<Fork>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Join {
    Sequence(String),
    And(AndJoin),
    Or(Vec<String>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AndJoin {
    pub(super) activities: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quorum: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fork {
    Sequence(String),
    And(Vec<String>),
    Or(Vec<Branch>),
    Loop(Loop),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Branch {
    pub(super) activity: String,
    pub(super) probability: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Loop {
    pub(super) bodies: Vec<LoopBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopBody {
    pub(super) activity: String,
    pub(super) mean: f64,
}
