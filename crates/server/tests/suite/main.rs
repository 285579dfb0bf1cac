//! Tests of the server, one binary, a module a subject.

mod conservation;
mod faults;
mod killed;
mod period;
mod program;
mod receive;
mod store;
mod support;
