//! Layered queueing networks: the model's types and its languages.
//!
//! [`model`] holds a complete model as the LQN tool suite understands it, [`submodel`] the mergeable summary of what
//! traces show, from which a complete model is made. [`parse_any`] reads and [`Language`] writes `.lqn` text, `.lqnx` XML
//! and versioned JSON; [`lint`] finds what keeps a model from being solved.
//!
//! What can be said of a model without a solution: [`flow`] walks along activity graphs, [`invocation`] reduces them to strands,
//! [`operational`] finds visit ratios and demands, and [`bounds`] what limits throughput.
//!
//! # Example
//!
//! ```
//! use dyelog_lqn::{Language, parse_any};
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
//! let (model, findings) = parse_any("server.lqn", text)?;
//! assert!(findings.is_empty());
//! assert_eq!(&*model.tasks[1].name, "server");
//!
//! // The languages say the same.
//! let xml = Language::Lqnx.write(&model);
//! let (again, _) = parse_any("server.lqnx", &xml)?;
//! assert_eq!(again.tasks, model.tasks);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

pub mod batches;
pub mod bounds;
mod builder;
pub mod calibration;
mod canonical;
pub mod codes;
pub mod deployment;
pub mod digest;
mod findings;
pub mod flow;
pub mod invocation;
pub mod json;
pub mod kept_ids;
mod labels;
mod language;
pub mod layout;
pub mod lint;
pub mod model;
pub mod operational;
mod places;
pub mod results;
pub mod saved;
mod scheduling;
pub mod self_wait;
pub mod sketch;
pub mod starts;
pub mod stays;
pub mod submodel;
pub mod terms;
pub mod text;
pub mod timing;
pub mod together;
pub mod xml;

pub use calibration::Calibration;
pub use language::{Language, Loaded, parse_any, read_any};
pub use model::*;
pub use places::Places;
