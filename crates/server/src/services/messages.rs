//! Questions and answers of the services, in the form of `proto/performance_data.proto` and in JSON alike.

use dyelog_observe::observation::Process;
use dyelog_observe::period::Estimate as Observed;
use prost::Message;
use serde::{Deserialize, Serialize};

/// No question and no answer.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// That something was done.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Done {
    /// Always.
    #[prost(bool, tag = "1")]
    pub done: bool,
}

/// Whose data, and of which period.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The begin of the period.
    #[prost(string, optional, tag = "1")]
    pub from: Option<String>,
    /// The end of the period.
    #[prost(string, optional, tag = "2")]
    pub to: Option<String>,
    /// Of that application.
    #[prost(string, optional, tag = "3")]
    pub application: Option<String>,
    /// Of that node.
    #[prost(string, optional, tag = "4")]
    pub host: Option<String>,
    /// Of the process with that number at its node.
    #[prost(uint64, optional, tag = "5")]
    pub process: Option<u64>,
}

/// Observations as observers report them.
#[derive(Clone, PartialEq, Message)]
pub struct Report {
    /// JSON.
    #[prost(string, tag = "1")]
    pub document: String,
}

/// What became of a report.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Stored {
    /// Observations that are new.
    #[prost(uint64, tag = "1")]
    pub stored: u64,
    /// Observations that came before.
    #[prost(uint64, tag = "2")]
    pub duplicates: u64,
}

/// How many observations were deleted.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Deleted {
    /// Observations.
    #[prost(uint64, tag = "1")]
    pub deleted: u64,
}

/// Applications.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ApplicationNames {
    /// By name.
    #[prost(string, repeated, tag = "1")]
    pub applications: Vec<String>,
}

/// Processes.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ProcessNames {
    /// In the order of their names.
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<ProcessName>,
}

/// Which process.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ProcessName {
    /// The application that it is a part of.
    #[prost(string, tag = "1")]
    pub application: String,
    /// Its node.
    #[prost(string, tag = "2")]
    pub host: String,
    /// What it runs.
    #[prost(string, tag = "3")]
    pub program: String,
    /// Its number at its node.
    #[prost(uint64, tag = "4")]
    pub process: u64,
    /// When it started, nanoseconds since 1970.
    #[prost(int64, tag = "5")]
    pub started: i64,
}

impl From<&Process> for ProcessName {
    fn from(process: &Process) -> Self {
        Self {
            application: process.application.to_string(),
            host: process.host.to_string(),
            program: process.program.to_string(),
            process: process.id,
            started: process.started,
        }
    }
}

/// What processes did in a period.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Figures {
    /// One each time that a process with this number ran.
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<ProcessFigures>,
}

/// What a process did in a period.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ProcessFigures {
    /// The process.
    #[prost(message, optional, tag = "1")]
    pub process: Option<ProcessName>,
    /// When its first interval begins, nanoseconds since 1970.
    #[prost(int64, tag = "2")]
    pub from: i64,
    /// When its last interval ends.
    #[prost(int64, tag = "3")]
    pub to: i64,
    /// Seconds that were observed.
    #[prost(double, tag = "4")]
    pub seconds: f64,
    /// In how many intervals.
    #[prost(uint64, tag = "5")]
    pub intervals: u64,
    /// Busy processors.
    #[prost(message, optional, tag = "6")]
    pub cpu: Option<Estimate>,
    /// Operations of disks per second.
    #[prost(message, optional, tag = "7")]
    pub disk: Option<Estimate>,
    /// Exported operations.
    #[prost(message, repeated, tag = "8")]
    pub inputs: Vec<OperationFigures>,
    /// Imported operations.
    #[prost(message, repeated, tag = "9")]
    pub outputs: Vec<OperationFigures>,
    /// What of it changes within the period, and when: figures are means of before and after.
    #[prost(string, repeated, tag = "10")]
    pub changes: Vec<String>,
}

/// A figure and its confidence.
#[derive(Clone, Copy, PartialEq, Message, Serialize)]
pub struct Estimate {
    /// The figure.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Half the width of its 95 % confidence interval, where there are enough intervals.
    #[prost(double, optional, tag = "2")]
    pub half_width: Option<f64>,
}

impl From<Observed> for Estimate {
    fn from(Observed { value, half_width }: Observed) -> Self {
        Self { value, half_width }
    }
}

/// An operation in a period.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct OperationFigures {
    /// Its interface.
    #[prost(string, tag = "1")]
    pub interface: String,
    /// Its name.
    #[prost(string, tag = "2")]
    pub operation: String,
    /// How often it ended.
    #[prost(uint64, tag = "3")]
    pub count: u64,
    /// How often in a second.
    #[prost(message, optional, tag = "4")]
    pub rate: Option<Estimate>,
    /// Mean response time, seconds.
    #[prost(message, optional, tag = "5")]
    pub response: Option<Estimate>,
    /// The time that 95 of 100 responses do not exceed, seconds.
    #[prost(double, optional, tag = "6")]
    pub p95: Option<f64>,
    /// Of an exported operation: seconds of a processor.
    #[prost(message, optional, tag = "7")]
    pub cpu: Option<Demand>,
    /// Of an exported operation: operations of disks.
    #[prost(message, optional, tag = "8")]
    pub disk: Option<Demand>,
    /// Of an imported operation: the exported one that called it.
    #[prost(string, tag = "9")]
    pub within: String,
    /// Of an imported operation: its protocol sequence.
    #[prost(string, tag = "10")]
    pub protocol: String,
}

/// What an operation takes of a resource.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Demand {
    /// On the mean.
    #[prost(double, tag = "1")]
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    #[prost(double, optional, tag = "2")]
    pub half_width: Option<f64>,
    /// How it was estimated.
    #[prost(string, tag = "3")]
    pub method: String,
}
