//! The performance data server: receives traces and metrics of a running system, and keeps a mergeable sub-model an interval.
//!
//! A sub-model holds counts and sums, so that the model of any period is the merge of its intervals, without a trace being kept. After
//! G. Qin's performance data server (1996), whose periods are the intervals here.
//!
//! 1. The [`receive`] room takes OTLP over HTTP and gRPC.
//! 2. The [`journal`] has what was received on disk before it is acknowledged.
//! 3. The [`worker`] reads the journal: [`assemble`] gathers the spans of a trace, [`fold`] makes a sub-model of whole traces.
//! 4. The [`store`] takes sub-models, counts and the position in the journal in one transaction, and merges intervals that are past to
//!    longer ones.
//!
//! Beside that, the [`services`] take what observers report, and tell what processes did in any period.
//!
//! ```
//! use dyelog_server::journal::{Journal, Kind, Record, medium::Memory};
//! use dyelog_server::store::Store;
//! use dyelog_server::worker::{Worker, Working};
//!
//! let folder = tempfile::tempdir()?;
//! let mut store = Store::open(&folder.path().join("store.db"))?;
//! let medium = Memory::default();
//! let mut journal = Journal::open(medium.clone(), store.progress()?.position)?;
//! let mut worker = Worker::new(Working::default(), medium, &store)?;
//! journal.append(&[Record { kind: Kind::Traces, received: 1_700_000_000_000_000_000, payload: "".into() }])?;
//! while worker.step(journal.end())? {}
//! worker.checkpoint(&mut store)?;
//! assert_eq!(worker.counts().received, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod access;
pub mod ahead;
pub mod answer;
pub mod aside;
pub mod assemble;
mod buffer;
pub mod client;
pub mod config;
pub mod counts;
pub mod deployment;
mod fixed;
pub mod fold;
pub mod grpc;
pub mod journal;
pub mod late;
mod lately;
pub mod meter;
pub mod metered;
pub mod observed;
pub mod offenders;
pub mod openapi;
mod outline;
pub mod page;
pub mod parts;
mod peers;
pub mod period;
pub mod points;
mod puts;
pub mod receive;
mod recent;
pub mod recorded;
pub mod requests;
pub mod scrape;
pub mod serve;
pub mod service;
pub mod services;
mod sites;
pub mod spans;
pub mod split;
pub mod store;
pub mod tls;
mod told;
mod unread;
pub mod web;
pub mod worker;
