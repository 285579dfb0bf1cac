//! `dyelog serve` and `dyelog period`, which are the work of another program: `dyelog-server`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::exit::Exit;
use crate::cli::{Outcome, codes};

/// Arguments of `dyelog serve`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(after_long_help = examples! {
    "receive OTLP on this machine, at the ports that SDKs send to" => "dyelog serve --store shop.db",
    "what else there is to set" => "dyelog serve --help",
})]
pub struct Serve {
    /// Arguments of `dyelog-server`, `--help` among them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Arguments of `dyelog period`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(after_long_help = examples! {
    "what was recorded in the last hour" => "dyelog period list --store shop.db --from -1h",
    "the last quarter of an hour, solved" => "dyelog period solve --store shop.db --from -15m -- --format json",
})]
pub struct Period {
    /// Arguments of `dyelog-server period`, `--help` among them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Serves until it is stopped.
pub fn serve(arguments: &Serve) -> Outcome {
    start(Command::new(program()).args(&arguments.arguments))
}

/// Asks about a period of what a server recorded.
pub fn period(arguments: &Period) -> Outcome {
    start(Command::new(program()).arg("period").args(&arguments.arguments))
}

/// The server's program: beside this one, else where programs lie.
fn program() -> PathBuf {
    let name = format!("dyelog-server{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(&name)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

fn start(command: &mut Command) -> Outcome {
    match run(command) {
        Ok(exit) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "`dyelog-server` is neither beside this program nor on the path";
            Err(Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message)
                .with_note("the server is a program of its own, since it brings a database and an HTTP stack")
                .with_hint("`cargo build --release -p dyelog-server` builds it")
                .into())
        }
        Err(error) => {
            let message = format!("`dyelog-server` cannot be started: {error}");
            Err(Diagnostic::error(codes::UNREADABLE, Place::Nowhere, message).into())
        }
    }
}

/// Becomes that program, so that signals and exit codes are its own. Comes back only where it cannot be started.
#[cfg(unix)]
fn run(command: &mut Command) -> io::Result<Exit> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}

/// Runs that program to its end.
#[cfg(not(unix))]
fn run(command: &mut Command) -> io::Result<Exit> {
    Ok(match command.status()?.code() {
        Some(0) => Exit::Ok,
        Some(1) => Exit::Finding,
        Some(3) => Exit::NotConverged,
        _ => Exit::Input,
    })
}
