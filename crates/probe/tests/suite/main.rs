//! What probes leave, read by the analysis that it is for.

mod adverse;
mod killed;
mod layers;
mod observers;
mod programs;
mod support;
mod tasks;
mod threads;
