//! Sub-models and configuration put together into a complete model (1998 paper §6, 2005 paper §4 parts C and D).
//!
//! [`complete`] turns the sums of a [`SubModel`](crate::lqn::submodel::SubModel) into means, gives tasks their processors
//! and threads, scenarios their load and work its demand, and keeps in [`Origins`] where each element came from.
//! What traces cannot tell comes from a [`Configuration`]; what neither tells is decided here, and said in a note.

pub(crate) mod alike;
mod assembly;
mod body;
mod certainty;
mod chance;
mod chosen;
mod clocks;
mod clones;
pub mod codes;
mod complete;
pub mod config;
mod connections;
pub mod contexts;
mod demand;
mod deployment;
mod dispatching;
mod explained;
mod forks;
mod fragments;
mod graph;
mod joins;
mod load;
mod moments;
mod naming;
mod network;
mod origins;
mod outcomes;
mod pace;
pub mod parameter;
mod parts;
mod pools;
mod population;
mod profile;
mod replicas;
pub mod requests;
mod sampling;
mod servers;
mod slices;
mod stability;
mod starter;
pub(crate) mod stationarity;
mod ticks;
mod unused;
pub mod utilisation;
mod variability;
mod weave;

pub use certainty::WorkDoubt;
pub use complete::{complete, complete_as_traced, traced};
pub use config::Configuration;
pub use demand::DemandSource;
pub use deployment::placed_as_in;
pub use explained::{ActivityPart, DelayPart, DemandPart, Explained, RequestPart};
pub use forks::ForkDelays;
pub use load::{Load, LoadReason, rates_depend_on_observed};
pub use origins::{ActivityOrigin, EntryOrigin, OpenServers, Origins, ScenarioOrigin, TaskOrigin};
pub use servers::{Colocated, Discipline, Form, Host, Joint, LoadTraces, Machine, OwnTime, Traced};
pub use starter::{starter, starter_from_model};
pub use stationarity::series;
pub use unused::check as unknown_names;
