//! Solvers: from a model to its results.
//!
//! [`layered`] finds the steady state by mean value analysis in layers. The work is divided so:
//!
//! - `check` refuses what cannot be solved and names what will be taken for something simpler;
//! - `activities` reduces activity graphs to strands, `plan` a model to entries in a topological order;
//! - `replicas` unfolds copies of tasks and processors;
//! - `lanes` finds who circulates, `layers` which of them share stations;
//! - `mva/` solves queueing networks and knows nothing of all this;
//! - `times` and `maximum` turn waits into times of phases and forks, `forks` has those whose branches share servers,
//!   `unseen` holds the interlock;
//! - `chain/` solves small models exactly, by their states;
//! - `layered` iterates over the layers of others, `report` reads the results off.
//!
//! [`simulate()`] finds it by discrete events; its parts are told in its folder.
//!
//! [`layered_from`] starts from where it stood with a like model, and [`sweep`](sweep::sweep) solves many;
//! [`bottleneck`] tells what limits a model; [`search`] finds the value of a parameter that just meets a goal.

mod activities;
pub mod bottleneck;
mod chain;
mod check;
pub mod codes;
mod forks;
mod lanes;
mod layered;
mod layers;
mod maximum;
mod mixing;
mod mva;
mod plan;
mod pools;
mod replicas;
mod report;
pub mod search;
mod simulate;
pub mod sweep;
mod times;
mod unseen;

pub use layered::{LayeredOptions, Observer, Standing, layered, layered_from, layered_observed};
pub use maximum::until;
pub use simulate::{Progress, SKETCH_ERROR, SimulateOptions, Watcher, simulate, simulate_watched};
pub use simulate::{TraceOptions, Traced, trace, trace_messages, trace_spans};
