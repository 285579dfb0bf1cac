//! A small shop, instrumented with the OpenTelemetry SDK for Rust as a user of dyelog would instrument services, and a load
//! generator that runs it and records a trace of it.
//!
//! ```sh
//! cargo run --release --example shop -- --out shop.otlp.jsonl
//! ```
//!
//! A gateway, a catalog, an inventory and a payment service talk HTTP over loopback; a mailer takes orders from a queue. What
//! each does is in [`services`], how it is instrumented in [`telemetry`] and [`service`]; `README.md` draws it.

mod load;
mod service;
mod services;
mod telemetry;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

use crate::telemetry::TraceFile;

/// Run the shop under load, record its trace, and print what was measured.
#[derive(Parser)]
struct Args {
    /// The trace file to write: OTLP JSON, one export request a line.
    #[arg(long)]
    out: PathBuf,
    /// How many requests to make in all.
    #[arg(long, default_value_t = 200)]
    requests: u64,
    /// How many users make them; of every three, two browse and one buys.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=1000))]
    users: u32,
    /// Mean of the exponential think time between two requests of a user, in milliseconds.
    #[arg(long, default_value_t = 30.0)]
    think: f64,
    /// Seed of the users' choices and think times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let file = TraceFile::create(&args.out).with_context(|| format!("cannot create {}", args.out.display()))?;
    let shop = services::start(&file).await?;

    let plan = load::Plan {
        gateway: shop.gateway,
        requests: args.requests,
        users: args.users,
        think: args.think / 1000.0,
        seed: args.seed,
    };
    let results = load::run(&plan).await?;

    // What was asked for has been answered, but second phases and the queue still work: let them finish, then flush.
    shop.finish().await?;
    file.finish().context("cannot write the trace")?;
    eprint!("{results}");
    Ok(())
}
