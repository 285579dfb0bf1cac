//! The readers of spans, a module a format: fixtures written by hand, damage, and what reference data must give.

mod archive;
mod console;
mod damage;
mod kieker;
mod otlp_proto;
mod parquet;
mod reference;
mod scale;
mod show;
mod skywalking;
mod suppliers;
mod table;
mod waiting;
mod zipkin;
