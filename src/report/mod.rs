//! Models and results in the forms that people and programs read: text, JSON and CSV.
//!
//! Nothing here prints: each function gives a text. Times are in seconds and rates per second, in the text as in the machine
//! forms; a utilisation is a mean number of busy servers.

pub mod agreement;
pub mod answers;
pub mod bottleneck;
pub mod calibration;
pub mod call_graph;
pub mod codes;
pub mod comparison;
pub mod csv;
pub mod difference;
pub mod draw;
mod escape;
pub mod explain;
pub mod golden;
pub mod html;
pub mod interactions;
pub mod json;
mod look;
pub mod markup;
pub mod matches;
pub mod model;
pub mod names;
pub mod outlook;
pub mod parquet;
pub mod plan;
pub mod plot;
pub mod results;
pub mod rule_docs;
pub mod rule_profile;
pub mod search;
pub mod services;
pub mod skeleton;
pub mod table;
pub mod trace;
pub mod validation;
pub mod waterfall;
pub mod whatif;

pub use look::{Look, Tone};
