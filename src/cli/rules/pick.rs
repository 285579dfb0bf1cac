//! A template by its name.

use std::path::PathBuf;

use dyelog::datalog::ast::Template;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::tlc::Rules;

use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input, rule_files};

/// Rule files with the shipped ones behind them.
pub fn load(files: &[PathBuf], terminal: &mut Terminal) -> Result<Rules, Failure> {
    input::check_stdin_once(files)?;
    let rules = rule_files::load(files, &mut terminal.sources)?;
    terminal.report(&rule_files::about_the_users(&rules));
    Ok(rules)
}

/// The template of that name.
pub fn template<'r>(rules: &'r Rules, name: &str) -> Result<&'r Template, Failure> {
    let mut all = rules.program().templates.iter();
    all.clone().find(|template| &*template.name.value == name).ok_or_else(|| {
        let names: Vec<&str> = all.by_ref().map(|template| &*template.name.value).collect();
        let message = format!("there is no template `{name}`");
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        finding.with_note(format!("there are {}", names.join(", "))).with_similar(name, names).into()
    })
}
