//! Discrete-event simulation of a model's exact meaning.
//!
//! - `program` turns a model into tables, `engine` runs them, `stations` are its processors, `timers` the events to come;
//! - `random` has the generator and the distributions, `series` sums by bins of time, `lqn::sketch` distributions of times;
//! - `probe` shows each event to an observer: [`observe`];
//! - `estimate` makes intervals, `run` decides how long to simulate, `report` gives the results.
//!
//! # The meaning of a model
//!
//! A phase or an activity is cut into slices of processor time by its calls: a geometric number of slices, one more on average
//! than calls, where calls are stochastic; exactly as many as there are calls, and one more, where they are deterministic. A
//! slice is exponential, or has the squared coefficient of variation given: 0 is constant, below 1 stages in a row, above 1
//! hyperexponential with balanced means (`numeric/two_moment.rs`). A think time of a phase is an exponential delay before its
//! first slice. A thread is busy until the last phase ends and every branch of every fork has, also those that a quorum did not wait for. Bodies of loops
//! run a geometric number of times. Each slice is a request of its own to the processor; which one goes on first when a
//! request is answered, the server in its next phase or the client, is left to chance, and so is the order of branches. Copies of
//! tasks call copies as fan-outs say; results are those of one copy. Processor sharing is ideal: quanta are infinitely
//! small.

mod engine;
mod estimate;
mod pool;
mod probe;
mod program;
pub(crate) mod random;
mod report;
mod run;
mod series;
mod sharing;
mod stations;
mod timers;

pub use dyelog_lqn::sketch::SKETCH_ERROR;
pub use estimate::student;
pub use probe::Probe;
pub use random::Random;
pub use run::{Progress, SimulateOptions, Watcher, observe, simulate, simulate_watched};
