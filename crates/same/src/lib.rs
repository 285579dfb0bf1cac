//! SAME: interactions from messages without a dye (2005 paper §3 and §4).
//!
//! Messages come one by one. A forest of interaction trees keeps what no interaction has explained yet; `walk` asks the rules of
//! `rules/same.dl` whether a message is a reply; the forest retires what it explains, and gives out what it found. `aggregation` makes of that
//! the entries of a mergeable sub-model, one for each execution occurrence at first, merged bottom-up as they are complete
//! (parts C and D).
//!
//! Beyond part B of the paper, and only where the trace tells more than messages (§4.5): a task that runs is not blocked; one that is
//! idle has ended its execution occurrence; what it does between its reply and its next request is its second phase.
//! Records are those of the paper in either case. What they come to in the model differs in one more point: an occurrence that
//! the paper opens for a message out of nowhere belongs to the request that its task serves, if it serves one.
//!
//! Where messages are lost, what messages of the same kind are otherwise tells so (`loss_inference`).
//!
//! Tasks must be sequential for that. Where services serve several requests at once, by threads that the trace does not name,
//! [`threads`] guesses them first.
//!
//! What SAME cannot know is where parallel flows join; it takes all branches but the last for asynchronous messages.
//!
//! # Example
//!
//! ```
//! use dyelog_same::{Options, Same};
//! use dyelog_trace::{ReadOptions, TraceNames, messages, open};
//!
//! // Senders, receivers and times, and nothing that says to which request a message belongs.
//! let table = "sender,receiver,time
//! user,shop,1
//! shop,bank,2
//! bank,shop,3
//! shop,user,4
//! ";
//! let trace = open("messages.csv", table.as_bytes(), &ReadOptions::default())?;
//! let mut names = TraceNames::new();
//! let mut same = Same::new(Options::default(), vec!["messages.csv".into()]);
//! messages::read_all(vec![trace.messages()?], &mut names, &mut same)?;
//!
//! // Two calls that wait: the user of the shop, and the shop of the bank.
//! let analysis = same.finish(&names);
//! assert_eq!(analysis.counts, [2, 0, 0]);
//! assert_eq!(analysis.messages, 4);
//! # Ok::<(), dyelog_diagnostic::Diagnostics>(())
//! ```

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod aggregation;
pub mod codes;
mod driver;
pub mod explain;
#[doc(hidden)]
pub mod facts;
#[doc(hidden)]
pub mod forest;
mod loss_inference;
mod record;
pub mod rules;
mod sequence_model;
mod signatures;
mod spontaneous;
pub mod threads;
mod timing;
#[doc(hidden)]
pub mod walk;

pub use driver::{Analysis, Options, Same};
pub use record::{Link, Occurrence, Record, RecordKind};
pub use rules::Rules;
pub use signatures::EntryMerge;
