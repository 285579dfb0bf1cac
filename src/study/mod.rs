//! Questions to a model that take many solutions, and comparisons of what was found.
//!
//! - [`sweep`] solves a model over a grid of values; [`figure`] names what is read from each solution.
//! - [`effect`] tells which changes make no difference.
//! - [`search`] finds the value, or the cheapest choice, that meets goals.
//! - [`bottleneck`] tells what limits a model.
//! - [`backlog`] solves the rest of a model whose consumers of asynchronous messages are overloaded.
//! - [`headroom`] follows each source of load up to saturation.
//! - [`outlook`] tells what there is to know first of a solution.
//! - [`impact`] tells what a change of processor time does to responses and saturation.
//! - [`calibration`] fits one model to several loads.
//! - [`validation`] holds a model against traces of other loads, as [`at_load`] makes it; [`interval`] tells how far it may be off, and `doubt` by chance.
//! - [`scenario`] gives what is predicted for scenarios, [`unlike`] holds that against what was traced and looks for the cause.
//! - [`open_servers`] tells which answers hang on a number of servers that traces leave open.
//! - [`utilization`] tells how far the busy part of processors may be from that of the system.
//! - [`percentiles`] tells where predicted ones are unlike the traced ones.
//! - [`comparison`] tells what differs between two models or two sets of results.
//! - [`golden`] holds the text of a model against the accepted one.
//! - [`services`] tells what services are asked for, and which call which, with rates and latencies.
//! - [`waterfall`] lays out one operation on its axis of time, with its critical path.
//! - [`agreement`] tells how far messages alone lead to the interactions that templates see.

pub mod agreement;
pub mod at_load;
pub mod backlog;
mod batches;
pub mod bottleneck;
pub mod calibration;
pub mod comparison;
mod doubt;
pub mod effect;
pub mod figure;
pub mod golden;
pub mod headroom;
pub mod impact;
pub mod interval;
pub mod open_servers;
pub mod outlook;
pub mod percentiles;
pub mod scenario;
pub mod search;
pub mod services;
pub mod significance;
pub mod sweep;
pub mod unlike;
pub mod utilization;
pub mod validation;
pub mod waterfall;

pub use percentiles::percentiles_unlike_traced;
pub use scenario::{ScenarioResult, about_scenarios, few_operations};
pub use unlike::unlike_traced;
