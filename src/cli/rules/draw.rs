//! `dyelog rules draw`.

use std::path::PathBuf;

use clap::Args;
use dyelog::report::draw;

use crate::cli::Outcome;
use crate::cli::args::OutputArguments;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::rules::pick;
use crate::cli::terminal::Terminal;

/// Arguments of `dyelog rules draw`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "template (iv) of the paper" => "dyelog rules draw forwarding -o forwarding.svg",
    "a template of one's own" =>
        "dyelog rules draw acknowledged --rules examples/rules/acknowledged.dl -o acknowledged.svg",
})]
pub struct Arguments {
    /// The template
    #[arg(value_name = "TEMPLATE")]
    template: String,
    /// A rule file to look in before the shipped ones; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Draws a template as SVG.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    output::only(&arguments.output, &["svg"])?;
    let rules = pick::load(&arguments.rules, terminal)?;
    let template = pick::template(&rules, &arguments.template)?;
    let drawn = draw::template::svg(template, "template");
    output::write(&arguments.output, &drawn.text)?;
    Ok(Exit::Ok)
}
