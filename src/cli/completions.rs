//! `dyelog completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::args::{Cli, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::{Failure, Outcome};

/// Arguments of `dyelog completions`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "bash, for one user" => "dyelog completions bash -o dyelog.bash",
    "fish" => "dyelog completions fish -o dyelog.fish",
    "zsh, into a folder of $fpath" => "dyelog completions zsh -o _dyelog",
})]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    #[command(flatten)]
    output: OutputArguments,
}

/// Writes a completion script.
pub fn run(arguments: &Arguments) -> Outcome {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "dyelog", &mut script);
    let mut output = Output::open(&arguments.output)?;
    output.attempt(|writer| writer.write_all(&script))?;
    output.finish()?;
    Ok::<_, Failure>(Exit::Ok)
}
