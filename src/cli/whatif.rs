//! `dyelog whatif`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::model::codes;
use dyelog::model::parameter::{Subject, check_axis, check_change};
use dyelog::report::plot::{self, Ink};
use dyelog::report::whatif;
use dyelog::study::figure::Figure;
use dyelog::study::sweep::{self, Before, State, Table, WrittenQuestion};

use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output::{self, Output};
use crate::cli::progress::Progress;
use crate::cli::source::{self, Questioned};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome};

/// Arguments of `dyelog whatif`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "more processors everywhere" => "dyelog whatif traces/shop.otlp.jsonl --vary defaults.multiplicity=1..4",
    "a faster one, as a picture" =>
    "dyelog whatif traces/shop.otlp.jsonl --vary processor.payment.speed=1,2,4 --format svg -o p.svg",
    "a single thread, and how busy it is then" =>
    "dyelog whatif traces/shop.otlp.jsonl --set task.payment.threads=1 --show task.payment",
    "which parameters there are" => "dyelog whatif traces/shop.otlp.jsonl --list",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// A parameter to vary and its values: `PATH=1,2,4`, `PATH=1..20`, `PATH=1..100 step 5`, `PATH=1 ms..5 ms in 9`,
    /// `PATH=1..1000 log 20`, `PATH=x1,x2,+10%`. Given twice: every value of the one with every value of the other
    #[arg(long, value_name = "PATH=VALUES")]
    vary: Vec<String>,
    /// A parameter to change for all points; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// A figure to show in place of response times and throughputs: `scenario.S`, `profile.P`, `task.T`, `entry.E` or `processor.P`,
    /// followed by `.response`, `.throughput`, `.utilization` or `.service` where it is not the usual one; `response`, `throughput` and
    /// `p95` alone are those of all loads, `utilization` that of all processors. Percentiles, as `scenario.S.p95`, are simulated; may be
    /// repeated. Means of traces have 95% intervals, but in sweeps of more than 256 points
    #[arg(long, value_name = "FIGURE")]
    show: Vec<String>,
    /// Another trace or model to ask the same of, side by side; may be repeated
    #[arg(long, value_name = "TRACE|MODEL")]
    against: Vec<PathBuf>,
    /// List the parameters that there are, with their values
    #[arg(long, conflicts_with_all = ["vary", "show", "against"])]
    list: bool,
    /// The form of the results; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Draw plots for the terminal with plain letters
    #[arg(long)]
    ascii: bool,
    /// Solve each point from scratch and not from its neighbour's solution: slower, the same within the solver's bound
    #[arg(long)]
    cold: bool,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// JSON
    Json,
    /// A row each point
    Csv,
    /// Curves as a picture
    Svg,
    /// Curves for the terminal
    Plot,
}

/// Asks what if.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = if arguments.list {
        output::only(&arguments.output, &["txt"])?;
        Format::Text
    } else {
        output::form(arguments.format, Format::Text, &arguments.output)?
    };
    let own: &[&str] = match format {
        Format::Json => &["json"],
        Format::Csv => &["csv"],
        Format::Svg => &["svg"],
        Format::Text | Format::Plot => &["txt"],
    };
    output::check_ending(&arguments.output, own, terminal);
    well_formed([
        gather(arguments.set.iter().map(|text| check_change(text))),
        gather(arguments.vary.iter().map(|text| check_axis(text))),
        gather(arguments.show.iter().map(|text| Figure::check(text))),
        gather(std::iter::once(if arguments.list { Ok(()) } else { check_form(arguments, format) })),
    ])?;
    let own = &arguments.source.files[..];
    let sets: Vec<&[PathBuf]> = [own].into_iter().chain(arguments.against.chunks(1)).collect();
    let subjects = source::subjects(&sets, &arguments.source, terminal)?;
    let mut subjects: Vec<(String, Questioned)> = sets.iter().map(|files| name(files)).zip(subjects).collect();
    let written = WrittenQuestion { set: &arguments.set, vary: &arguments.vary, show: &arguments.show };
    let before = |(_, questioned): &(String, Questioned)| Before::of(&questioned.subject, &written);
    let before: Vec<_> = if arguments.list { Vec::new() } else { subjects.iter().map(before).collect() };
    let asks_percentiles = arguments.show.iter().any(|text| Figure::is_percentile(text));
    let simulating = asks_percentiles.then(|| arguments.source.reduce.thread_count());
    for (name, questioned) in &mut subjects {
        if !arguments.list {
            terminal.report(&questioned.unlike_traced(simulating));
        }
        set(&mut questioned.subject, &arguments.set, terminal).map_err(|failure| match failure {
            Failure::Input(errors) if sets.len() > 1 => {
                Failure::Input(errors.into_iter().map(|error| error.with_note(format!("in {name}"))).collect())
            }
            failure => failure,
        })?;
    }
    if !arguments.list {
        subjects.iter().try_for_each(|(_, questioned)| questioned.check())?;
    }
    let mut output = Output::open(&arguments.output)?;
    if arguments.list {
        output.text(&list(&subjects[0].1.subject))?;
        output.finish()?;
        return Ok(Exit::Ok);
    }
    let subjects: Vec<(String, Subject)> =
        subjects.into_iter().map(|(name, questioned)| (name, questioned.subject)).collect();
    let table = ask(arguments, &written, (&subjects, &before), terminal)?;
    let text = match format {
        Format::Text => whatif::text(&table, terminal.look(&arguments.output)),
        Format::Json => whatif::json(&table),
        Format::Csv => whatif::csv(&table),
        Format::Svg => plot::svg(&whatif::plots(&table)),
        Format::Plot => {
            let ink = if arguments.ascii { Ink::Ascii } else { Ink::Braille };
            plot::terminal(&whatif::plots(&table), terminal.look(&arguments.output).width, ink)
        }
    };
    output.text(&text)?;
    output.finish()?;
    Ok(verdict(&table, terminal))
}

/// Refuses arguments that no model could make sense of, before one is read or made.
pub fn well_formed(checked: impl IntoIterator<Item = (Vec<()>, Vec<Diagnostic>)>) -> Result<(), Failure> {
    let errors: Vec<Diagnostic> = checked.into_iter().flat_map(|(_, errors)| errors).collect();
    if errors.is_empty() { Ok(()) } else { Err(Failure::Input(errors)) }
}

/// Makes the changes that hold for all points, and reports those that make no difference and what they bring up.
pub fn set(subject: &mut Subject, texts: &[String], terminal: &Terminal) -> Result<(), Failure> {
    terminal.report(&sweep::set(subject, texts)?);
    Ok(())
}

/// What went well, and what went wrong.
pub fn gather<T>(found: impl Iterator<Item = Result<T, Diagnostic>>) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut well, mut wrong) = (Vec::new(), Vec::new());
    for found in found {
        match found {
            Ok(found) => well.push(found),
            Err(error) => wrong.push(error),
        }
    }
    (well, wrong)
}

fn ask(
    arguments: &Arguments,
    written: &WrittenQuestion<'_>,
    (subjects, before): (&[(String, Subject)], &[Before]),
    terminal: &Terminal,
) -> Result<Table, Failure> {
    let question = written.of(subjects, arguments.source.reduce.thread_count(), !arguments.cold)?;
    let progress = Progress::steps("solving", Some((question.grid().len() * subjects.len()) as u64));
    for (_, subject) in subjects {
        terminal.report(&question.without_effect(subject));
        terminal.report(&Vec::from_iter(sweep::far_from_traced(&question, subject)));
    }
    let (table, findings) = question.answer(subjects, before, &|| progress.advance(1));
    progress.done();
    terminal.report(&findings);
    Ok(table)
}

/// Refuses a plot along no axis.
fn check_form(arguments: &Arguments, format: Format) -> Result<(), Diagnostic> {
    if arguments.vary.is_empty() && matches!(format, Format::Svg | Format::Plot) {
        let message = "a plot needs a parameter that is varied: `--vary PATH=VALUES`";
        return Err(Diagnostic::error(codes::SWEEP, Place::Nowhere, message));
    }
    Ok(())
}

/// Tells of points that cannot be relied on.
fn verdict(table: &Table, terminal: &Terminal) -> Exit {
    let all = table.points.len();
    // How many there are of a kind, and the reason of the first.
    let those = |wanted: fn(&State) -> bool| {
        let states = table.points.iter().map(|point| &point.state).filter(|state| wanted(state));
        (states.clone().count(), states.clone().find_map(State::reason))
    };
    let (failed, first) = those(|state| matches!(state, State::Failed(_)));
    if let Some(reason) = first {
        terminal.say(&format!("{failed} of {all} points have no solution; the first: {reason}\n"));
        if failed == all {
            return Exit::Input;
        }
    }
    let (doubtful, first) = those(|state| matches!(state, State::Doubtful(_)));
    if let Some(reason) = first {
        terminal.say(&format!("{doubtful} of {all} points did not converge; the first: {reason}\n"));
    }
    let (behind, first) = those(|state| matches!(state, State::Backlog(_)));
    if let Some(reason) = first {
        terminal.say(&format!(
            "at {behind} of {all} points consumers get more messages than they serve, and all else is solved as if they kept up; the first: {reason}\n"
        ));
    }
    if failed + doubtful + behind > 0 { Exit::NotConverged } else { Exit::Ok }
}

/// The parameters that there are: one a line, with its value where it has one.
pub fn list(subject: &Subject) -> String {
    let mut text = String::new();
    for (path, kind) in subject.paths() {
        let value = subject.number(&path, kind).map(|number| {
            let unit = kind.unit();
            format!(" = {number}{}{unit}", if unit.is_empty() { "" } else { " " })
        });
        text.push_str(&format!("{path}{}\n", value.unwrap_or_default()));
    }
    text
}

/// What a subject is called: its first file.
fn name(files: &[PathBuf]) -> String {
    files.first().map(|file| file.display().to_string()).unwrap_or_default()
}
