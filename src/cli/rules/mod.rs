//! `dyelog rules`.

mod doc;
mod draw;
mod format;
mod new;
pub mod pick;
mod plan;
mod profile;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use dyelog::diagnostic::quantity::counted;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use dyelog::report;
use dyelog::report::table::Table;

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, codes, input, query, rule_files};

/// The subcommands of `dyelog rules`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report what is wrong with rule files; exits with 1 where there is an error
    Check(CheckArguments),
    /// Put rule files into one style, comments and all
    Fmt(format::Arguments),
    /// Tell how the nodes of a template are reached
    Plan(plan::Arguments),
    /// Measure what each rule and literal costs over traces: rows, rounds, time, cartesian products
    Profile(profile::Arguments),
    /// Draw a template as the paper's Table 1 does, as SVG
    Draw(draw::Arguments),
    /// Write what a rule file says as a page of a manual, in Markdown
    Doc(doc::Arguments),
    /// Make a template to start from, with a golden trace that passes its test
    New(new::Arguments),
}

/// Arguments of `dyelog rules check`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a rule file of your own" => "dyelog rules check examples/rules/acknowledged.dl",
    "a file of questions" => "dyelog rules check examples/queries/by_service.dl",
    "the paper's table as printed, which has slips: exits with 1" => "dyelog rules check rules/paper/tlc-1998.dl",
})]
pub struct CheckArguments {
    /// Rule files, each checked as if it alone were given under `--rules`; the shipped ones where none is given
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The form of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Runs a subcommand of `dyelog rules`.
pub fn run(command: &Command, terminal: &mut Terminal) -> Outcome {
    match command {
        Command::Check(arguments) => check(arguments, terminal),
        Command::Fmt(arguments) => format::run(arguments, terminal),
        Command::Plan(arguments) => plan::run(arguments, terminal),
        Command::Profile(arguments) => profile::run(arguments, terminal),
        Command::Draw(arguments) => draw::run(arguments, terminal),
        Command::Doc(arguments) => doc::run(arguments, terminal),
        Command::New(arguments) => new::run(arguments, terminal),
    }
}

fn check(arguments: &CheckArguments, terminal: &mut Terminal) -> Outcome {
    input::check_stdin_once(&arguments.files)?;
    let sets: Vec<&[PathBuf]> =
        if arguments.files.is_empty() { vec![&[]] } else { arguments.files.chunks(1).collect() };
    let mut findings: Vec<Diagnostic> = Vec::new();
    let mut table = Table::new(&["FILE", ">TEMPLATES", ">ERRORS", ">WARNINGS"]);
    let mut loaded = String::new();
    for files in &sets {
        let checked = Checked::of(files, terminal);
        let found = checked.found;
        let count = |severity| found.iter().filter(|finding| finding.severity == severity).count().to_string();
        table.row(vec![
            files.first().map(|file| input::shown(file).to_string()).unwrap_or_default(),
            checked.own.map(|own| own.to_string()).unwrap_or_default(),
            count(Severity::Error),
            count(Severity::Warning),
        ]);
        loaded = checked.loaded;
        // What several of them use is told once.
        let new: Vec<Diagnostic> = found.into_iter().filter(|finding| !findings.contains(finding)).collect();
        findings.extend(new);
    }
    // A file that cannot be read is no finding about rules.
    let unusable = [codes::UNREADABLE, codes::NOT_TEXT];
    if findings.iter().any(|finding| unusable.contains(&finding.code)) {
        return Err(Diagnostics(findings).into());
    }
    let text = match arguments.format {
        Form::Text if sets.len() > 1 => {
            let table = table.render(terminal.look(&arguments.output));
            let findings = if findings.is_empty() { String::new() } else { terminal.render(&findings) + "\n" };
            format!("{findings}{table}")
        }
        Form::Text if findings.is_empty() => {
            let what = if arguments.files.is_empty() { "the shipped files" } else { "the file" };
            format!("nothing to say: {what} loaded, {loaded}\n")
        }
        Form::Text => terminal.render(&findings),
        Form::Json => report::json::diagnostics(&Report::new(&findings, &terminal.sources)),
    };
    output::write(&arguments.output, &text)?;
    let wrong = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if wrong { Exit::Finding } else { Exit::Ok })
}

/// What came of checking a file, or the shipped ones.
struct Checked {
    /// How many templates it has; none where it did not load.
    own: Option<usize>,
    /// What was loaded, in words.
    loaded: String,
    found: Vec<Diagnostic>,
}

impl Checked {
    /// Of at most one file: as one of templates, or where only questions can use it, as one of these.
    fn of(files: &[PathBuf], terminal: &mut Terminal) -> Self {
        let texts: Vec<rule_files::Text> = match files.iter().map(|file| rule_files::text(file)).collect() {
            Ok(texts) => texts,
            Err(unreadable) => return Self { own: None, loaded: String::new(), found: vec![unreadable] },
        };
        if let ([file], [(name, text)]) = (files, &*texts) {
            let loaded = query::loaded((name, Arc::clone(text)), file, terminal);
            if let Some(found) = dyelog::query::check(&loaded.program, &loaded.diagnostics) {
                let own = loaded.program.rules.iter().filter(|rule| rule.head.span.file == 0);
                let names: BTreeSet<&str> = own.map(|rule| &*rule.head.relation.value).collect();
                let loaded = format!("{} for `dyelog query`", counted(names.len() as u64, "relation"));
                return Self { own: Some(0), loaded, found };
            }
        }
        match rule_files::load_texts(&texts, files, &mut |file, text| terminal.sources.insert(file, text)) {
            Ok(rules) => {
                let all = rules.plans().len();
                let own = (0..all).filter(|plan| rules.is_of_user(*plan)).count();
                let loaded = format!("{all} templates with the shipped ones");
                Self { own: Some(own), loaded, found: rules.warnings().to_vec() }
            }
            Err(Diagnostics(found)) => Self { own: None, loaded: String::new(), found },
        }
    }
}
