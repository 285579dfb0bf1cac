//! Call graphs of distributed, multi-threaded programs from the records of probes in stubs and skeletons: who called whom across threads,
//! processes and processors, what each function spent itself and through others, and what a change would come to.
//!
//! ```
//! use dyelog_callgraph::{Granularity, Graph, Input, Options, analyse, change, write};
//!
//! let records = r#"{"calls":1}
//! {"chain":"c","event":1,"probe":"stub_start","interface":"Shop","function":"buy","processor":"web","cpu":[0,1]}
//! {"chain":"c","event":2,"probe":"skel_start","interface":"Shop","function":"buy","processor":"db","cpu":[100,101]}
//! {"chain":"c","event":3,"probe":"skel_end","interface":"Shop","function":"buy","processor":"db","cpu":[1101,1102]}
//! {"chain":"c","event":4,"probe":"stub_end","interface":"Shop","function":"buy","processor":"web","cpu":[9,10]}
//! "#;
//! let profile = analyse(vec![Input::new("records", records.as_bytes())], &Options::default())?;
//! let graph = Graph::of(&profile, &Granularity::default());
//! assert_eq!(graph.groups, ["db", "web"]);
//! assert_eq!(graph.total(), [1000, 0]);
//! assert_eq!(write::folded(&profile, false), "db;Shop::buy 1000\n");
//!
//! let change = change::Change::parse("change", "reduction by 30% to function { Shop::buy };")?;
//! let impact = change::impact(&profile, &change, &Granularity::default())?;
//! assert_eq!(impact.after.total(), [700, 0]);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```
//!
//! # What comes out
//!
//! Chains are followed by the state machine of the 2003 paper. What does not fit is named and counted, and the machine goes on with the next record.
//! Records may come in any order within a window, from several files. Calls are merged by path as they are read, and a chain that is over leaves a few bytes, so memory
//! grows with the number of different paths and of open calls; nothing recurses, however deep the calls.
//!
//! Latencies are without the probes inside them; `Latency::Paper` is the formula as printed (2003 §3.2). Where it says "the total number of child
//! functions" it is read as all calls beneath, at any depth.
//!
//! [`CriticalPaths`] says what the durations of operations are made of, from their ends backwards. It needs single calls ([`Options::keep_calls`]) with
//! times on the wall.

#![forbid(unsafe_code)]

mod abnormal;
pub mod binary;
mod calls;
mod chain_names;
mod chains;
pub mod change;
pub mod codes;
mod context;
mod critical;
pub mod diff;
mod graph;
mod groups;
mod input;
mod jsonl;
mod latency;
mod machine;
mod moments;
mod pending;
mod profile;
mod record;
mod window;
pub mod write;

pub use abnormal::{Abnormal, First, Kind};
pub use calls::{Call, CallTree};
pub use context::{ContextTree, Key};
pub use critical::{CriticalPaths, OnPath, Stretch};
pub use graph::{Arc, Granularity, Graph, Node, NodeKind};
pub use groups::ProcessorGroups;
pub use input::{Input, Reading, Target, convert, is_records};
pub use jsonl::{write_header, write_process, write_record};
pub use latency::{Latency, Statistics};
pub use machine::Measure;
pub use machine::builder::{Builder, Made, WholeCall};
pub use moments::Moments;
pub use profile::{Options, Profile, analyse};
pub use record::{ChainId, Header, Name, Probe, ProcessTime, Reading as ClockReading, Record, Site, SiteId, Tables};
