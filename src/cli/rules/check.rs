//! `dyelog rules check`.

use std::path::PathBuf;

use clap::Args;
use dyelog::authoring::{Checked, Sort, cases};
use dyelog::diagnostic::quantity::counted;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, Report, Severity};
use dyelog::report;
use dyelog::report::table::Table;

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::test::find;
use crate::cli::{Failure, Outcome, codes, input, rule_files};

/// Arguments of `dyelog rules check`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a rule file of your own" => "dyelog rules check examples/rules/acknowledged.dl",
    "a file of questions" => "dyelog rules check examples/queries/by_service.dl",
    "all rule files of a folder" => "dyelog rules check examples",
    "the paper's table as printed, which has slips: exits with 1" => "dyelog rules check rules/paper/tlc-1998.dl",
})]
pub struct Arguments {
    /// Rule files, each checked as if it alone were given under `--rules`, or folders with such; the shipped ones where none is given
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells what is wrong with rule files.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    input::check_stdin_once(&arguments.files)?;
    let files = expanded(&arguments.files)?;
    let sets: Vec<&[PathBuf]> = if files.is_empty() { vec![&[]] } else { files.chunks(1).collect() };
    let mut findings: Vec<Diagnostic> = Vec::new();
    let mut unreadable: Vec<Diagnostic> = Vec::new();
    let mut table = Table::new(&["FILE", ">TEMPLATES", ">CASES", ">ERRORS", ">WARNINGS"]);
    let mut last = None;
    for files in &sets {
        let checked = match rule_files::check(files, &mut terminal.sources) {
            Ok(checked) => checked,
            // A file that cannot be read is no finding about rules.
            Err(Diagnostics(found)) => {
                unreadable.extend(found);
                continue;
            }
        };
        table.row(vec![
            files.first().map(|file| input::shown(file).to_string()).unwrap_or_default(),
            own_templates(&checked),
            checked.cases.to_string(),
            checked.count(Severity::Error).to_string(),
            checked.count(Severity::Warning).to_string(),
        ]);
        // A finding about a file that several of them use is shown once.
        let new = checked.findings.iter().filter(|finding| !findings.contains(finding));
        let new: Vec<Diagnostic> = new.cloned().collect();
        findings.extend(new);
        last = Some(checked);
    }
    if !unreadable.is_empty() {
        findings.extend(unreadable);
        return Err(Diagnostics(findings).into());
    }
    let text = match format {
        Form::Text if sets.len() > 1 => {
            let table = table.render(terminal.look(&arguments.output));
            let findings = if findings.is_empty() { String::new() } else { terminal.render(&findings) + "\n" };
            format!("{findings}{table}")
        }
        Form::Text if findings.is_empty() => nothing_to_say(last.as_ref(), arguments.files.is_empty()),
        Form::Text => terminal.render(&findings),
        Form::Json => report::json::diagnostics(&Report::new(&findings, &terminal.sources)),
    };
    output::write(&arguments.output, &text)?;
    let wrong = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if wrong { Exit::Finding } else { Exit::Ok })
}

/// How many templates a file has; nothing of one with errors.
fn own_templates(checked: &Checked) -> String {
    match &checked.sort {
        Sort::Templates(Some(rules)) => (0..rules.plans().len())
            .filter(|plan| rules.first_of(*plan) == *plan && rules.is_of_user(*plan))
            .count()
            .to_string(),
        Sort::Questions(_) => "0".to_owned(),
        Sort::Events(rules) => rules.as_ref().map(|rules| rules.names().len().to_string()).unwrap_or_default(),
        Sort::Templates(None) => String::new(),
    }
}

fn nothing_to_say(checked: Option<&Checked>, shipped: bool) -> String {
    let what = if shipped { "the shipped files" } else { "the file" };
    let cases = cases::summary(checked.map_or(0, |checked| checked.cases));
    match checked.map(|checked| &checked.sort) {
        Some(Sort::Questions(relations)) => {
            let relations = counted(*relations as u64, "relation");
            format!("no findings: {what} loaded, {relations} for `dyelog query`{cases}\n")
        }
        Some(Sort::Templates(Some(rules))) => {
            format!(
                "no findings: {what} loaded, {} templates with the shipped ones{cases}\n",
                rules.program().templates.len()
            )
        }
        Some(Sort::Events(Some(rules))) => {
            let templates = counted(rules.names().len() as u64, "template");
            format!("no findings: {what} loaded, {templates} on events in traces of messages{cases}\n")
        }
        _ => "no findings\n".to_owned(),
    }
}

/// The files, with those that folders and the folders in them have.
fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        let all = find::tree(path)?.into_iter();
        files.extend(all.filter(|file| file.extension().is_some_and(|ending| ending == "dl")));
        if files.len() == before {
            let place = Place::File { file: input::shown(path) };
            let finding = Diagnostic::error(codes::ARGUMENTS, place, "there is no rule file in this folder");
            return Err(finding.with_note("names of rule files end in `.dl`").into());
        }
    }
    Ok(files)
}
