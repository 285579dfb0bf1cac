//! Tests of `trace::spans`: the reading of OTLP and Jaeger JSON.

#[path = "spans/cases.rs"]
mod cases;
#[path = "spans/clocks.rs"]
mod clocks;
#[path = "spans/damage.rs"]
mod damage;
#[path = "spans/dsl.rs"]
pub mod dsl;
#[path = "spans/dump.rs"]
mod dump;
#[path = "spans/files.rs"]
mod files;
#[path = "spans/flavours.rs"]
mod flavours;
#[path = "spans/hotel.rs"]
mod hotel;
#[path = "spans/laws.rs"]
mod laws;
mod misread;
