//! `dyelog model`.

use clap::{Args, ValueEnum};
use dyelog::diagnostic::quantity::counted;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::Language;
use dyelog::model::Configuration;
use dyelog::report;

use crate::cli::args::{KEPT_SPANS, OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, source};

/// Arguments of `dyelog model`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a model of the bundled trace, in the text language of the LQN tool suite" => "dyelog model traces/shop.otlp.jsonl -o shop.lqn",
    "in tables for people, with users and processors as they are" => "dyelog model traces/shop.otlp.jsonl --config examples/shop/shop.toml --format text",
    "one model of several traces" => "dyelog model traces/figure-3.angio traces/figure-4.angio",
    "what a trace shows, without a configuration, to merge with others" => "dyelog model traces/figure-3.angio --format submodel -o figure-3.json",
    "a model file in another language" => "dyelog model shop.lqn -o shop.lqnx",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The model's language; that of the output file's extension where not given, else lqn
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Sub-models: how many spans are kept at most, so that those of other files complete their operations [default: 1000000]
    #[arg(long, value_name = "COUNT")]
    keep_spans: Option<usize>,
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
    /// A sub-model: counts and sums of what the traces show, to merge or to configure later
    Submodel,
}

impl Arguments {
    fn form(&self) -> Result<Format, Failure> {
        let forms: [(&[&str], Format); 4] = [
            (&["lqn"], Format::Lqn),
            (&["lqnx", "xml"], Format::Lqnx),
            (&["json"], Format::Json),
            (&["txt"], Format::Text),
        ];
        output::form_of(self.format, &self.output, &forms)
    }
}

/// Makes a model of traces, or puts a model into another language.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let form = arguments.form()?;
    if form == Format::Submodel {
        return submodel(arguments, terminal);
    }
    if arguments.keep_spans.is_some() {
        let message = "`--keep-spans` is for sub-models: no other form of a model keeps spans";
        return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
            .with_hint("`--format submodel` makes one")
            .into());
    }
    let source = source::load(&arguments.source, terminal)?;
    let language = match form {
        Format::Lqn => Some(Language::Lqn),
        Format::Lqnx => Some(Language::Lqnx),
        Format::Json => Some(Language::Json),
        // A sub-model is no model, and written above.
        Format::Text | Format::Submodel => None,
    };
    let text = match language {
        Some(language) => language.write(&source.model),
        None => report::model::text(&source.model, source.origins.as_ref(), terminal.look(&arguments.output)),
    };
    let unsaid = language.map_or(0, |language| language.unsaid_delays(&source.model));
    if unsaid > 0 {
        let delays = counted(unsaid as u64, "delay");
        terminal.remark(&format!(
            "not exponential, as text and XML take it: {delays}; `--format json` keeps how they vary"
        ));
    }
    let unsaid = language.map_or(0, |language| language.unsaid_dispatching(&source.model));
    if unsaid > 0 {
        let tasks = counted(unsaid as u64, "task");
        terminal.remark(&format!(
            "dispatching, which text and XML cannot say: requests to the copies of {tasks}; `--format json` keeps it"
        ));
    }
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

/// Writes what traces show. A configuration may group names and accept findings; the rest of it is for the model that is made later.
fn submodel(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let SourceArguments { files, reading, reduce, config, utilisation } = &arguments.source;
    input::check_stdin_once(files.iter().chain(&reduce.rules).chain(config))?;
    let (configuration, _) = source::configuration(config.as_deref(), terminal)?;
    let of_traces = Configuration {
        group: configuration.group.clone(),
        accept: configuration.accept.clone(),
        ..Configuration::default()
    };
    if configuration != of_traces || !utilisation.files.is_empty() {
        let message = "a sub-model holds what traces show: `--utilisation`, and all of a configuration but `group` and `accept`, belong to the model that is made of it";
        return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).into());
    }
    let most = arguments.keep_spans.unwrap_or(KEPT_SPANS);
    let summed = source::submodel(files, (reading, reduce), &configuration, most, terminal)?;
    output::write(&arguments.output, &summed.saved())?;
    Ok(Exit::Ok)
}
