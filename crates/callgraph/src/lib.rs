#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod abnormal;
pub mod binary;
mod calls;
pub mod change;
pub mod codes;
mod context;
mod graph;
mod groups;
mod input;
mod jsonl;
mod latency;
mod machine;
mod moments;
mod profile;
mod record;
mod window;
pub mod write;

pub use abnormal::{Abnormal, First, Kind};
pub use calls::{Call, CallTree};
pub use context::{ContextTree, Key};
pub use graph::{Arc, Granularity, Graph, Node, NodeKind};
pub use groups::ProcessorGroups;
pub use input::{Input, Reading, Target, convert, is_records};
pub use jsonl::{write_header, write_process, write_record};
pub use latency::{Latency, Statistics};
pub use machine::Measure;
pub use moments::Moments;
pub use profile::{Options, Profile, analyse};
pub use record::{ChainId, Header, Name, Probe, ProcessTime, Reading as ClockReading, Record, Site, SiteId, Tables};
