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
//! [`layered_from`] starts from where it stood with a like model; [`bottleneck`] tells what limits a model.
//!
//! # Example
//!
//! ```
//! use dyelog_lqn::parse_any;
//! use dyelog_solve::{LayeredOptions, SimulateOptions, layered, simulate};
//!
//! let text = r#"
//! G "users and a server" 1e-5 50 -1
//! P 2
//!   p desks i
//!   p server f
//! -1
//! T 2
//!   t users r visit -1 desks z 2 m 10
//!   t server n serve -1 server
//! -1
//! E 2
//!   s visit 0 -1
//!   y visit serve 1 -1
//!   s serve 0.1 -1
//! -1
//! "#;
//! let (model, _) = parse_any("server.lqn", text)?;
//! let results = layered(&model, &LayeredOptions::default())?;
//!
//! // The machine repairman: ten users, who think for 2 s and are served for 0.1 s.
//! let cycle = results.tasks[0].response().expect("users go round");
//! assert!((results.tasks[0].throughput - 10.0 / (2.0 + cycle)).abs() < 1e-4);
//!
//! // The simulator says the same, within its intervals.
//! let simulated = simulate(&model, &SimulateOptions::default())?;
//! assert!((simulated.tasks[0].throughput / results.tasks[0].throughput - 1.0).abs() < 0.02);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

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
mod simulate;
mod times;
mod unseen;

pub use layered::{LayeredOptions, Observer, Standing, layered, layered_from, layered_observed};
pub use simulate::{Probe, Progress, SKETCH_ERROR, SimulateOptions, Watcher, observe, simulate, simulate_watched};
