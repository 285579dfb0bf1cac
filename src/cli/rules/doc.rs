//! `dyelog rules doc`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use dyelog::authoring::has_event_templates;
use dyelog::diagnostic::{Diagnostics, Severity};
use dyelog::report::rule_docs;
use dyelog::same;

use crate::cli::args::OutputArguments;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, query, rule_files};

/// Arguments of `dyelog rules doc`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a page on the shipped templates" => "dyelog rules doc rules/tlc.dl",
    "one on the templates for messages" => "dyelog rules doc rules/same.dl",
    "one on a library of questions" => "dyelog rules doc rules/std/tree.dl",
    "one on templates of one's own" => "dyelog rules doc examples/rules/acknowledged.dl -o acknowledged.md",
})]
pub struct Arguments {
    /// The rule file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

/// Writes what a rule file says as Markdown.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    output::only(&arguments.output, &["md"])?;
    let (name, text) = rule_files::text(&arguments.file)?;
    if has_event_templates(&(Arc::clone(&name), Arc::clone(&text))) {
        let beside = rule_files::Beside::of([&arguments.file]);
        terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
        let same::rules::Loaded { program, findings, .. } =
            same::rules::load(&[(Arc::clone(&name), text)], &|used| beside.text(used));
        if findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(findings).into());
        }
        let number = program.files.iter().position(|file| file.name == name).unwrap_or_default();
        output::write(&arguments.output, &rule_docs::markdown(&program, number as u32))?;
        return Ok(Exit::Ok);
    }
    let loaded = query::loaded((&name, Arc::clone(&text)), &arguments.file, terminal);
    if let Some(found) = dyelog::query::check(&loaded.program, &loaded.diagnostics) {
        if found.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Diagnostics(found).into());
        }
        terminal.report(&found);
        output::write(&arguments.output, &rule_docs::markdown(&loaded.program, 0))?;
        return Ok(Exit::Ok);
    }
    let files = std::slice::from_ref(&arguments.file);
    let rules = rule_files::load_texts(&[(Arc::clone(&name), text)], files, &mut |file, text| {
        terminal.sources.insert(file, text);
    })?;
    terminal.report(&rule_files::about_the_users(&rules));
    let files = &rules.program().files;
    let number = files.iter().position(|file| file.name == name).unwrap_or_default();
    output::write(&arguments.output, &rule_docs::markdown(rules.program(), number as u32))?;
    Ok(Exit::Ok)
}
