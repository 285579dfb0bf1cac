//! The command line: arguments, files, terminal, exit codes. No logic.
//!
//! A subcommand is a file. It takes its arguments and a [`Terminal`], writes data to an [`output::Output`], reports words
//! through the terminal and says how it [`Exit`]s, or fails with [`Failure`].

/// The part of a command's help that shows it at work: what each line does, and the line. Every line is run by a test, in a
/// folder that has the project's `traces/`, `examples/`, `rules/` and `snapshots/`.
macro_rules! examples {
    ($($does:literal => $line:literal),+ $(,)?) => {
        concat!("\u{1b}[1m\u{1b}[4mExamples:\u{1b}[0m", $("\n  # ", $does, "\n  ", $line),+)
    };
}

mod archive;
pub mod args;
mod bottleneck;
mod calibrate;
mod compare;
mod completions;
mod config;
mod coverage;
mod diff;
mod draw;
mod exit;
mod explain;
mod fact;
mod glob;
mod groups;
mod impact;
mod input;
mod interrupt;
mod lqn;
mod man;
mod matches;
mod merge;
mod message;
mod messages;
mod model;
mod output;
mod profile;
mod progress;
mod query;
mod reduce;
mod report;
mod rule_files;
mod rules;
mod search;
mod server;
mod simulate;
mod solve;
mod source;
mod stdin;
mod study;
mod terminal;
mod test;
mod told;
mod trace;
mod utilisation;
mod validate;
mod whatif;
mod why_not;

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches};
use dyelog::diagnostic::{Diagnostic, Diagnostics};
use dyelog::pipeline::codes;

use self::args::{Cli, Command, OUTPUT_FILE};
use self::exit::Exit;
use self::terminal::Terminal;

/// Why a subcommand could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// Its input cannot be used.
    Input(Vec<Diagnostic>),
    /// The reader of its output went away, which is no error.
    Closed,
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Input(diagnostics.0)
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Input(vec![diagnostic])
    }
}

/// What a subcommand gives back.
pub type Outcome = Result<Exit, Failure>;

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way, too. Where they cannot be printed there is nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { Exit::Input.into() } else { Exit::Ok.into() };
        }
    };
    let mut terminal = Terminal::new(arguments.cli.color, arguments.cli.quiet);
    panic::set_hook(Box::new(terminal::report_panic));
    // The hook has told the story; all that is left is to say it in the exit code.
    panic::catch_unwind(AssertUnwindSafe(|| run(&arguments, &mut terminal))).unwrap_or(Exit::Bug).into()
}

/// The whole command line, as clap knows it.
fn command() -> clap::Command {
    Cli::command()
}

/// The arguments, and the file that they name to be written.
struct Parsed {
    cli: Cli,
    output: Option<PathBuf>,
}

fn parse() -> Result<Parsed, clap::Error> {
    let width = terminal::width().min(groups::WIDTH);
    let mut command = groups::grouped(command(), width).color(help_color(std::env::args_os()));
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok(Parsed { cli, output: output_file(&matches) })
}

/// What `-o` names, of whichever command. It is looked at before any work is done.
fn output_file(matches: &ArgMatches) -> Option<PathBuf> {
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    innermost.try_get_one::<PathBuf>(OUTPUT_FILE).ok().flatten().cloned()
}

/// Whether help and complaints about arguments have colour, which is asked for by one of these arguments.
fn help_color(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let asked = arguments.iter().enumerate().find_map(|(place, argument)| match argument.as_str() {
        "--color" => arguments.get(place + 1).map(String::as_str),
        argument => argument.strip_prefix("--color="),
    });
    match asked {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

fn run(arguments: &Parsed, terminal: &mut Terminal) -> Exit {
    let writable = arguments.output.as_deref().map_or(Ok(()), output::check);
    let outcome = writable.and_then(|()| dispatch(&arguments.cli.command, terminal));
    terminal.say_accepted();
    match outcome {
        Ok(exit) => exit,
        Err(Failure::Closed) => Exit::Ok,
        Err(Failure::Input(diagnostics)) => {
            terminal.report(&diagnostics);
            Exit::Input
        }
    }
}

fn dispatch(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Model(arguments) => model::run(arguments, terminal),
        Command::Solve(arguments) => solve::run(arguments, terminal),
        Command::Search(arguments) => search::run(arguments, terminal),
        Command::Bottleneck(arguments) => bottleneck::run(arguments, terminal),
        Command::Simulate(arguments) => simulate::run(arguments, terminal),
        Command::Whatif(arguments) => whatif::run(arguments, terminal),
        Command::Calibrate(arguments) => calibrate::run(arguments, terminal),
        Command::Validate(arguments) => validate::run(arguments, terminal),
        Command::Report(arguments) => report::run(arguments, terminal),
        Command::Serve(arguments) => server::serve(arguments),
        Command::Period(arguments) => server::period(arguments),
        Command::Profile(arguments) => profile::run(arguments, terminal),
        Command::Impact(arguments) => impact::run(arguments, terminal),
        Command::Query(arguments) => query::run(arguments, terminal),
        Command::Matches(arguments) => matches::run(arguments, terminal),
        Command::Merge(arguments) => merge::run(arguments, terminal),
        Command::Config(command) => config::run(command, terminal),
        Command::Draw(command) => draw::run(command, terminal),
        Command::Trace(command) => trace::run(command, terminal),
        Command::Lqn(command) => lqn::run(command, terminal),
        Command::Rules(command) => rules::run(command, terminal),
        Command::Compare(arguments) => compare::run(arguments, terminal),
        Command::Diff(arguments) => diff::run(arguments, terminal),
        Command::Test(arguments) => test::run(arguments, terminal),
        Command::Explain(arguments) => explain::run(arguments, terminal),
        Command::WhyNot(arguments) => why_not::run(arguments, terminal),
        Command::Coverage(arguments) => coverage::run(arguments, terminal),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    }
}
