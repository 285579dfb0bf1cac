//! The command line: arguments, files, exit codes.

mod arenas;
mod commands;
mod period;
mod place;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Receives traces of a running system, and keeps what models of any period need
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "\
An SDK or Collector of OpenTelemetry sends to it with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 \
(HTTP) or http://127.0.0.1:4317 (gRPC)."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Arguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Asks about a period, or deletes it
    Period(period::Arguments),
}

/// What a command could not do, in words.
pub type Outcome = Result<ExitCode, String>;

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        None => serve::run(&cli.serve),
        Some(Command::Period(arguments)) => period::run(arguments),
    };
    outcome.unwrap_or_else(|why| {
        eprintln!("error: {why}");
        ExitCode::from(2)
    })
}
