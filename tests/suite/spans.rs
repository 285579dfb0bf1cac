//! Tests of `trace::spans`: the reading of OTLP and Jaeger JSON.

#[path = "spans/cases.rs"]
mod cases;
#[path = "spans/damage.rs"]
mod damage;
#[path = "spans/dsl.rs"]
mod dsl;
#[path = "spans/dump.rs"]
mod dump;
#[path = "spans/hotel.rs"]
mod hotel;
