//! Probes for distributed programs: what calls what, across threads, tasks, processes and hosts, and what each call costs, as records that `dyelog` reads.
//!
//! A program names its functions, puts a probe at the ends of each call, and lets a small text travel with requests. A recorder writes one file a process;
//! all files of a run together are its call graph, its processor time by function, and a performance model of it.
//!
//! ```
//! use dyelog_probe::{Carrier, Form, Function, Mode, Recorder};
//!
//! static PRINT: Function = Function::new("Mod::Printer", "print");
//! static RENDER: Function = Function::new("Mod::Printer", "render");
//!
//! fn client(page: &str) -> usize {
//!     let call = PRINT.call();                              // the stub: until the answer is here
//!     server(page, call.carrier())                          // what travels with the request
//! }
//!
//! fn server(page: &str, carrier: Option<Carrier>) -> usize {
//!     let _call = PRINT.serve(carrier);                     // the skeleton: until the function has run
//!     let _render = RENDER.enter();                         // a call on the same thread
//!     page.len()
//! }
//!
//! let recorder = Recorder::of("demo").mode(Mode::Both).sink(Form::Lines, std::io::sink()).start()?;
//! client("Hello");
//! let summary = recorder.finish();
//! assert_eq!(summary.records, 6);
//! assert!(summary.is_clean(), "{summary}");
//! # Ok::<(), dyelog_probe::StartError>(())
//! ```
//!
//! [`observer`] keeps sums by operation in place of records, and reports them interval by interval.
//!
//! # What there is
//!
//! | a call | guard, for one thread | future, for a task |
//! |---|---|---|
//! | within a thread or task | [`Function::enter`] | [`Function::run`] |
//! | that waits for an answer from elsewhere | [`Function::call`] | [`Function::call_async`] |
//! | that waits for nothing | [`Function::send`] | the same |
//! | that is here | [`Function::serve`] | [`Function::serve_async`] |
//! | a part that runs at the same time | [`spawn`] | [`branch`] |
//! | several parts that are waited for | | [`join!`], [`join_all`] |
//!
//! # What it costs
//!
//! Nothing is formatted, sorted or written where a call is made: a probe reads the clocks and adds 48 bytes to a buffer of its thread. Twenty times a second,
//! and whenever 64 KiB of a thread are full, a thread of the recorder writes them. A process that is killed loses at most 100 ms, or 64 KiB a
//! thread, as long as the disk keeps up. Where nothing records, a probe is one load and one branch.
//!
//! # What can go wrong
//!
//! Nothing of it stops the program. What could not be recorded or written is counted, in the [`Summary`] that [`Recorder::finish`] gives. After a fork of the
//! process without an exec, the child records nothing.
//!
//! The sources are J. Li's papers of 2002 (processor time) and 2003 (global causality).

#![forbid(unsafe_code)]

mod buffer;
mod chain;
mod clock;
mod function;
mod future;
mod guard;
#[cfg(feature = "http")]
mod http;
mod join;
pub mod observer;
mod output;
mod recorder;
mod start;
mod state;
#[cfg(feature = "tower")]
mod tower;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "http")]
pub use crate::http::HEADER;
#[cfg(feature = "tower")]
pub use crate::tower::{CallLayer, CallOut, Outgoing, Serve, ServeLayer};
#[cfg(feature = "tracing")]
pub use crate::tracing::SpanLayer;
pub use chain::{Carrier, LONGEST_NAME, NotACarrier};
pub use clock::{Mode, WallClock};
pub use function::{Function, MOST_FUNCTIONS};
pub use future::{Calling, Closure, Instrumented, Request, branch};
pub use guard::{Call, Stub, spawn, spawn_with};
#[doc(hidden)]
pub use join::Part;
pub use join::join_all;
pub use output::Form;
pub use recorder::{Recorder, Setup, Summary};
pub use start::StartError;
