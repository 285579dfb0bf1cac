//! Models of a running system: what observers report of it, and the layered queueing network of any period.
//!
//! The parts, in the order of the flow:
//!
//! - [`observation`]: what an observer reports of a process and an interval; it merges. [`json`] reads and writes it.
//! - [`period`]: the observations of a period, by process, with confidence intervals.
//! - [`demand`]: what operations take of a resource of which only the process's total was measured.
//! - [`change`]: moments at which demands change or processes come and go.
//! - [`system`]: the configuration file: processors, disks, threads.
//! - [`model`]: the layered queueing network of a period, with the source of each number, and its validation.
//!
//! The source is M. Qin and others, *Automatic Generation of Performance Models for Distributed Application Systems* (1996); sections are of that
//! paper.
//!
//! # Example
//!
//! ```
//! use dyelog_observe::demand::{Method, Sample, estimate};
//!
//! // Two operations, of which only the processor time of both together was measured.
//! let interval = |reads: u64, writes: u64| Sample {
//!     counts: vec![reads, writes],
//!     busy: vec![0.010 * reads as f64, 0.030 * writes as f64],
//!     used: 0.010 * reads as f64 + 0.030 * writes as f64,
//!     load: 0.5,
//! };
//! let intervals: Vec<Sample> = (0..30).map(|number| interval(20 + number % 7, 10 + number % 4)).collect();
//! let estimates = estimate(2, &intervals, Some(1));
//! let demands = &estimates.by(Method::Shrunk).demands;
//! assert!((demands[1].mean - 0.030).abs() < 1e-6);
//! ```

#![forbid(unsafe_code)]

pub mod change;
pub mod codes;
pub mod demand;
pub mod json;
pub mod model;
pub mod observation;
pub mod period;
mod samples;
pub mod system;

pub use samples::{HostLoad, Resource, by_device, operations, samples};
