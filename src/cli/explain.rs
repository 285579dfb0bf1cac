//! `dyelog explain`.

mod element;
mod fact;
mod node;

use std::path::{Path, PathBuf};

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::report::codes as texts;
use dyelog::trace::NodeName;

use crate::cli::args::{Form, OutputArguments, ReadingArguments, ReduceArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::fact::is_rule_file;
use crate::cli::output;
use crate::cli::query::Bounds;
use crate::cli::source::{self, Source};
use crate::cli::study::{self, OperationArguments};
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::UtilisationArguments;
use crate::cli::{Failure, Outcome, codes, input};

/// Arguments of `dyelog explain`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what a finding means, with an example of what brings it up" => "dyelog explain R070",
    "all codes" => "dyelog explain --list",
    "what was made of the event of a line: template, variables, entry, phase, operations" => "dyelog explain traces/forwarding-1.angio:14",
    "of a message: its interactions, and the templates on events that were carried out" => "dyelog explain traces/same/figure-3a.csv:8",
    "of a span" => "dyelog explain traces/shop.otlp.jsonl --node f7ffa2fb5dfd04f3",
    "where an entry of the model comes from" => "dyelog explain traces/case-study.angio --entry F4",
    "where the number of its requests comes from" => "dyelog explain traces/rpc.angio --request 'client_1 -> find'",
    "why a fact holds that rules derive from a trace, down to its lines" => "dyelog explain examples/rules/calls.dl traces/rpc.angio --fact 'reaches(_, _)'",
    "why a fact about spans holds" => "dyelog explain examples/queries/slow.dl traces/shop.otlp.jsonl --fact 'slow(_, _)'",
    "where a demand comes from" => "dyelog explain traces/rpc.angio --demand find",
})]
pub struct Arguments {
    /// The code of a finding, such as R070; or traces, and with them what of them to explain; or one event, as FILE:LINE;
    /// before traces of which a fact is to be explained, the rule file
    #[arg(value_name = "CODE|TRACE", required_unless_present_any = ["list", "node"])]
    subjects: Vec<PathBuf>,
    /// List all codes
    #[arg(long, conflicts_with_all = ["subjects", "question"])]
    list: bool,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    operation: OperationArguments,
    /// Show all the evidence, not only the first pieces; of facts, all that agree, and without `--fact` all that the rule
    /// file answers with
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    bounds: Bounds,
    /// How many levels of a proof to show; a document has all
    #[arg(long, value_name = "LEVELS", default_value_t = 12)]
    depth: usize,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// A TOML file with what traces cannot tell: load, processors, threads, demands
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    #[command(flatten)]
    output: OutputArguments,
}

/// What of traces to explain.
#[derive(Clone, Debug, Default, Args)]
#[group(id = "question", multiple = false)]
struct Question {
    /// What was made of this node: FILE:LINE, SCENARIO,THREAD,COUNTER or THREAD,COUNTER as in the native format,
    /// |TASK,COUNTER, or the identifier of a span; a message is named by FILE:LINE or LINE
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Where this entry or activity of the model comes from
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,
    /// Where the requests of one entry or activity of the model to an entry come from
    #[arg(long, value_name = "ENTRY -> ENTRY")]
    request: Option<String>,
    /// Why this fact holds, by the rule file before the traces; `_` stands for any value. Nodes are named in double quotes as by `--node`,
    /// spans by their identifiers, messages as FILE:LINE
    #[arg(long, value_name = "FACT")]
    fact: Option<String>,
    /// Where the demand of this entry or activity of the model comes from
    #[arg(long, value_name = "ENTRY")]
    demand: Option<String>,
}

impl Question {
    fn is_none(&self) -> bool {
        [&self.node, &self.entry, &self.request, &self.demand, &self.fact].into_iter().all(Option::is_none)
    }
}

impl Arguments {
    /// The form of the answer, where the output's name was found to be right.
    fn form(&self) -> Form {
        output::form(self.format, Form::Text, &self.output).unwrap_or(Form::Text)
    }
}

/// Explains a code, a node or an element of a model, or lists all codes.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let question = &arguments.question;
    let facts =
        arguments.all && question.is_none() && arguments.subjects.first().is_some_and(|file| is_rule_file(file));
    if question.fact.is_some() || facts {
        fact::explain(arguments, terminal)?;
        return Ok(Exit::Ok);
    }
    arguments.bounds.check_unused()?;
    let text = match &arguments.subjects[..] {
        [] if question.is_none() => match format {
            Form::Text => texts::list(terminal.look(&arguments.output)),
            Form::Json => texts::json(texts::all()),
        },
        [subject] if question.is_none() => {
            let subject = subject.display().to_string();
            let name = NodeName::parse(&subject);
            match name.file() {
                Some(file) if Path::new(file).is_file() => node::explain(arguments, &subject, &[], terminal)?,
                _ => code(&subject, format)?,
            }
        }
        traces if question.is_none() => return Err(no_question(&traces[0]).into()),
        traces => match &question.node {
            Some(name) => node::explain(arguments, name, traces, terminal)?,
            None => element::explain(arguments, traces, terminal)?,
        },
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Ok)
}

/// The model that the traces make.
fn model(arguments: &Arguments, traces: &[PathBuf], terminal: &mut Terminal) -> Result<Source, Failure> {
    if let Some(stdin) = traces.iter().find(|trace| trace.as_path() == Path::new("-")) {
        let place = Place::File { file: input::shown(stdin) };
        let finding = Diagnostic::error(codes::ARGUMENTS, place, "traces to explain are read twice");
        return Err(finding.with_hint("put them into a file").into());
    }
    let whole = SourceArguments {
        files: traces.to_vec(),
        reading: arguments.reading.clone(),
        reduce: arguments.reduce.clone(),
        config: arguments.config.clone(),
        utilisation: UtilisationArguments::default(),
    };
    // What there is to say about the model is not what was asked for.
    let mut ear = Terminal::that_listens();
    let source = source::load(&whole, &mut ear);
    terminal.sources = std::mem::take(&mut ear.sources);
    let source = source?;
    if source.reduced.as_ref().is_none_or(|reduced| reduced.samples.is_none()) {
        let place = Place::File { file: input::shown(&traces[0]) };
        let of_messages = source.reduced.as_ref().is_some_and(|reduced| reduced.interactions.is_some());
        let (message, hint) = if of_messages {
            ("messages have no nodes to explain a model by", "`--node FILE:LINE` explains a message")
        } else {
            ("a model or a sub-model has no nodes to explain it by", "name the traces that it was made of")
        };
        return Err(Diagnostic::error(codes::ARGUMENTS, place, message).with_hint(hint).into());
    }
    Ok(source)
}

/// That it is not said what to explain.
fn no_question(trace: &Path) -> Diagnostic {
    let place = Place::File { file: input::shown(trace) };
    Diagnostic::error(codes::ARGUMENTS, place, "nothing to explain is named")
        .with_hint("`--node NODE`, `--entry ENTRY`, `--request \"ENTRY -> ENTRY\"`, `--demand ENTRY`, or behind a rule file `--fact FACT`")
}

fn code(subject: &str, form: Form) -> Result<String, Failure> {
    let Some(explanation) = texts::find(subject) else {
        if Path::new(subject).exists() {
            return Err(no_question(Path::new(subject)).into());
        }
        let message = if texts::looks_like_code(subject) {
            format!("there is no code `{subject}`")
        } else {
            format!("`{subject}` is no code")
        };
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
            .with_note("a code is a letter and three digits, such as `R070`, as findings show it in brackets")
            .with_hint(match texts::near(subject) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`dyelog explain --list` shows them all".to_owned(),
            });
        return Err(finding.into());
    };
    Ok(match form {
        Form::Text => texts::text(explanation),
        Form::Json => texts::json(std::slice::from_ref(explanation)),
    })
}
