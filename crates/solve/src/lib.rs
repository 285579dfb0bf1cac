//! Solvers: from a model to its results.
//!
//! [`layered`] finds the steady state by mean value analysis in layers. The work is divided so:
//!
//! - `strategy` says which solver answers: [`solve()`];
//! - `prepare/`: checks, activity graphs, replicas, the model in a topological order; the assembly of results;
//! - `numeric/`: Anderson acceleration, order statistics, Erlang's formulas, sparse Markov chains;
//! - `mva/` solves queueing networks and knows nothing of layers;
//! - `layered/`: chains and submodels, phase times, interlock, thread pools, fork-join, warm starts, the outer iteration;
//! - `heuristics` states each rule beyond product form, and switches it off;
//! - `ctmc/` solves small models exactly, by the Markov chain of their states.
//!
//! [`simulate()`] finds it by discrete events; its folder describes its parts.
//!
//! [`layered_from`] starts from where it stood with a like model; [`bounds`] tells what limits a model, without a solution.
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

pub mod bounds;
pub mod codes;
mod ctmc;
pub mod heuristics;
mod layered;
mod mva;
mod numeric;
mod prepare;
mod simulate;
mod strategy;

pub use layered::warm_start::WarmStart;
pub use layered::{LayeredOptions, Observer};
pub use numeric::caps::capped_slowdown;
pub use numeric::erlang::erlang_c;
pub use numeric::order_statistics::order_statistic;
pub use simulate::{
    Probe, Progress, Random, SKETCH_ERROR, SimulateOptions, Watcher, observe, simulate, simulate_watched, student,
};
pub use strategy::{Method, Solution, SolveOptions, layered, layered_from, solve};
