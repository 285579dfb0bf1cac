//! A small shop, instrumented as a user of dyelog would instrument services, and a load generator that runs it and records what it does: spans by the
//! OpenTelemetry SDK for Rust, and the records of dyelog's own probes.
//!
//! ```sh
//! cargo run --release --example shop -- --out shop.otlp.jsonl
//! cargo run --release --example shop -- --calls shop-calls --processes 4
//! ```
//!
//! A gateway, a catalog, an inventory and a payment service talk HTTP over loopback; a mailer takes orders from a queue. What
//! each does is in [`services`], how it is instrumented in [`telemetry`] and [`service`]; `README.md` draws it.

mod client;
mod load;
mod processes;
mod service;
mod services;
mod telemetry;
mod validation;
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use dyelog_probe::{Form, Mode, Recorder};

use crate::processes::Processes;
use crate::services::{Addresses, Role};
use crate::telemetry::TraceFile;
use crate::validation::Part;

/// Run the shop under load, record what it does, and print what was measured.
#[derive(Parser)]
struct Args {
    /// The trace file to write: OTLP JSON, one export request a line.
    #[arg(long, conflicts_with = "processes")]
    out: Option<PathBuf>,
    /// The folder to write the records of probes to: one file a process.
    #[arg(long)]
    calls: Option<PathBuf>,
    /// What the probes read.
    #[arg(long, default_value = "both")]
    mode: ProbeMode,
    /// In how many processes the services run.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["1", "4"]))]
    processes: Option<String>,
    /// How many requests to make in all.
    #[arg(long, default_value_t = 200)]
    requests: u64,
    /// How many requests to make before, at a rate that leaves time for each, of which nothing is recorded or measured.
    #[arg(long, default_value_t = 0)]
    warm_up: u64,
    /// The users record their calls as well, so that their processor time is known.
    #[arg(long, requires = "calls")]
    record_users: bool,
    /// How many users make them; of every three, two browse and one buys.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=1000))]
    users: u32,
    /// Mean of the exponential think time between two requests of a user, in milliseconds.
    #[arg(long, default_value_t = 30.0)]
    think: f64,
    /// Seed of the users' choices and think times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// An activity whose work is halved, such as `look up product`.
    #[arg(long)]
    halve: Option<String>,
    /// Compares what records say with what is measured otherwise, in so many runs of each kind, and does nothing else.
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u16).range(1..))]
    validate: Option<u16>,
    /// Of these comparisons, only one.
    #[arg(long, requires = "validate")]
    part: Option<Part>,
    /// Runs one service for another process of the shop, until its standard input ends.
    #[arg(long, hide = true)]
    role: Option<Role>,
    /// Where the services listen that this one calls: `ROLE=ADDRESS`.
    #[arg(long, hide = true, value_parser = role_address)]
    at: Vec<(Role, SocketAddr)>,
}

/// [`Mode`] on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ProbeMode {
    Wall,
    Cpu,
    Both,
}

fn role_address(text: &str) -> Result<(Role, SocketAddr), String> {
    let (role, address) = text.split_once('=').ok_or("it is ROLE=ADDRESS")?;
    let role = clap::ValueEnum::from_str(role, true)?;
    Ok((role, address.parse().map_err(|error| format!("{error}"))?))
}

impl Args {
    /// Turns the probes on, if they are asked for.
    fn recorder(&self, process: &str) -> anyhow::Result<Option<Recorder>> {
        let Some(folder) = &self.calls else { return Ok(None) };
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mode = match self.mode {
            ProbeMode::Wall => Mode::Wall,
            ProbeMode::Cpu => Mode::Cpu,
            ProbeMode::Both => Mode::Both,
        };
        let path = folder.join(format!("{process}.calls"));
        Ok(Some(Recorder::of(process).processor(telemetry::HOST).mode(mode).file(Form::Binary, path).start()?))
    }

    fn plan(&self, gateway: SocketAddr) -> load::Plan {
        let Self { requests, users, think, seed, record_users: probed, .. } = *self;
        load::Plan { gateway, requests, users, think: think / 1000.0, seed, probed }
    }

    /// Makes the requests before those that count.
    async fn warm_up(&self, gateway: SocketAddr) -> anyhow::Result<()> {
        if self.warm_up > 0 {
            load::run(&load::Plan { requests: self.warm_up, probed: false, ..self.plan(gateway) }).await?;
            // Second phases and the queue still work.
            tokio::time::sleep(SETTLED).await;
        }
        Ok(())
    }
}

/// After so long nothing of a light load is at work any more.
const SETTLED: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(rounds) = args.validate {
        return tokio::task::spawn_blocking(move || validation::run(rounds.into(), args.part)).await?;
    }
    if let Some(activity) = &args.halve {
        ensure!(work::halve(activity), "the shop has no activity `{activity}`");
    }
    if args.processes.as_deref() == Some("4") {
        return in_four_processes(&args).await;
    }
    let name = args.role.map_or("shop".to_owned(), |role| format!("{role:?}").to_lowercase());
    let file = match &args.out {
        Some(out) => Some(TraceFile::create(out).with_context(|| format!("cannot create {}", out.display()))?),
        None => None,
    };
    let roles = args.role.map_or(Role::ALL.to_vec(), |role| vec![role]);
    let mut addresses = Addresses::default();
    for (role, address) in &args.at {
        addresses.set(*role, *address);
    }
    let shop = services::start(file.as_ref(), &roles, addresses).await?;

    let mut recorder = None;
    let mut record = || {
        work::forget_times();
        recorder = args.recorder(&name)?;
        anyhow::Ok(())
    };
    let results = match args.role {
        Some(role) => {
            processes::serve_until_told(shop.addresses.of(role)?, record).await?;
            None
        }
        None => {
            let gateway = shop.addresses.of(Role::Gateway)?;
            args.warm_up(gateway).await?;
            record()?;
            Some(load::run(&args.plan(gateway)).await?)
        }
    };

    // What was asked for has been answered, but second phases and the queue still work: let them finish, then flush.
    shop.finish().await?;
    if let Some(file) = file {
        file.finish().context("cannot write the trace")?;
    }
    if let Some(results) = results {
        eprint!("{results}");
    }
    eprint!("{}", work::timed_table());
    if let Some(recorder) = recorder {
        eprintln!("{name}: {}", recorder.finish());
    }
    Ok(())
}

async fn in_four_processes(args: &Args) -> anyhow::Result<()> {
    let mut shop = Processes::start()?;
    let gateway = shop.gateway()?;
    args.warm_up(gateway).await?;
    shop.record()?;
    let recorder = if args.record_users { args.recorder("users")? } else { None };
    let results = load::run(&args.plan(gateway)).await?;
    eprint!("{results}");
    if let Some(recorder) = recorder {
        eprintln!("users: {}", recorder.finish());
    }
    shop.finish()
}
