//! Tests of the server, one binary, a module a subject.

mod conservation;
mod elsewhere;
mod faults;
mod killed;
mod metrics;
mod observers;
mod period;
mod program;
mod receive;
mod services;
mod store;
mod support;
