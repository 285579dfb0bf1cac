//! `dyelog model`.

use clap::{Args, ValueEnum};
use dyelog::lqn::Language;
use dyelog::report;

use crate::cli::Outcome;
use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::source;
use crate::cli::terminal::Terminal;

/// Arguments of `dyelog model`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a model of the bundled trace, in the text language of the LQN tool suite" => "dyelog model traces/shop.otlp.jsonl -o shop.lqn",
    "in tables for people, with users and processors as they are" => "dyelog model traces/shop.otlp.jsonl --config examples/shop/shop.toml --format text",
    "one model of several traces" => "dyelog model traces/figure-3.angio traces/figure-4.angio",
    "a model file in another language" => "dyelog model shop.lqn -o shop.lqnx",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The model's language; that of the output file's extension where not given, else lqn
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The text language of the LQN tool suite
    Lqn,
    /// The XML language of the LQN tool suite
    Lqnx,
    /// JSON
    Json,
    /// Tables for people, with the source of each demand
    Text,
}

impl Arguments {
    fn form(&self) -> Format {
        let extension = self.output.output.as_deref().and_then(|path| path.extension()).and_then(|name| name.to_str());
        self.format.unwrap_or(match extension {
            Some("lqnx" | "xml") => Format::Lqnx,
            Some("json") => Format::Json,
            Some("txt") => Format::Text,
            _ => Format::Lqn,
        })
    }
}

/// Makes a model of traces, or puts a model into another language.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let source = source::load(&arguments.source, terminal)?;
    let text = match arguments.form() {
        Format::Lqn => Language::Lqn.write(&source.model),
        Format::Lqnx => Language::Lqnx.write(&source.model),
        Format::Json => Language::Json.write(&source.model),
        Format::Text => report::model::text(&source.model, source.origins.as_ref(), terminal.look(&arguments.output)),
    };
    let mut output = Output::open(&arguments.output)?;
    output.text(&text)?;
    output.finish()?;
    Ok(Exit::Ok)
}
