//! `dyelog rules plan`.

use std::path::PathBuf;

use clap::Args;
use dyelog::report;

use crate::cli::Outcome;
use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::terminal::Terminal;

/// Arguments of `dyelog rules plan`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "how the nodes of basic RPC are reached" => "dyelog rules plan basic_rpc",
    "the plans of all templates" => "dyelog rules plan --format json",
})]
pub struct Arguments {
    /// The template; all where none is given
    #[arg(value_name = "TEMPLATE")]
    template: Option<String>,
    /// A rule file to look in before the shipped ones; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Tells how each node of a template is reached.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let rules = pick::load(&arguments.rules, terminal)?;
    let mut plans: Vec<_> = rules.plans().iter().collect();
    if let Some(name) = &arguments.template {
        pick::template(&rules, name)?;
        plans.retain(|plan| *plan.name == **name);
    }
    plans.sort_by_key(|plan| plan.order);
    let text = match format {
        Form::Text => report::plan::text(&plans, rules.plans()),
        Form::Json => report::plan::json(&plans, rules.plans()),
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}
