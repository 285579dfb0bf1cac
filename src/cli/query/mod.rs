//! `dyelog query`.

mod answer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use dyelog::datalog::eval::Limits;
use dyelog::datalog::syntax;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::pipeline;
use dyelog::query::{self, Answering, Cell, Question, Rows};
use dyelog::report::answers::Kept;
use dyelog::trace::quality::{Gate, Policy, QualityReport};
use dyelog::trace::{ReadReport, TraceNames};

use self::answer::Answer;
use crate::cli::args::ReadingArguments;
use crate::cli::exit::Exit;
use crate::cli::messages::{self, Opened};
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, reduce, rule_files};

/// Arguments of `dyelog query`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the spans that took more than 7 ms" => "dyelog query -e 'slow(S) :- duration(S, D), D > 7000000' traces/shop.otlp.jsonl",
    "the five longest, of all operations" => "dyelog query --relation duration --top 5 --by duration traces/shop.otlp.jsonl",
    "a relation of the facts" => "dyelog query --relation span traces/shop.otlp.jsonl --format csv",
    "a rule file, over all operations at once" => "dyelog query examples/queries/by_service.dl --scope trace traces/shop.otlp.jsonl",
})]
pub struct Arguments {
    /// A rule file, unless `-e` or `--relation` asks already, then trace files, plain or compressed; `-` is standard input
    #[arg(value_name = "FILE.dl|TRACE", required = true)]
    files: Vec<PathBuf>,
    /// A rule, whose relation is shown; may be repeated
    #[arg(short = 'e', value_name = "RULE")]
    rules: Vec<String>,
    /// Show this relation, of the rules or of the facts; may be repeated
    #[arg(long, value_name = "NAME")]
    relation: Vec<String>,
    #[command(flatten)]
    over: Over,
    /// A rule file with templates, which come before the shipped ones; may be repeated
    #[arg(long = "rules", value_name = "FILE")]
    templates: Vec<PathBuf>,
    /// Show only so many rows, those with the largest values of the column of `--by`
    #[arg(long, value_name = "K", requires = "by", value_parser = at_least_one)]
    top: Option<usize>,
    /// The column that `--top` goes by
    #[arg(long, value_name = "COLUMN", requires = "top")]
    by: Option<String>,
    #[command(flatten)]
    reading: ReadingArguments,
    /// The form of the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
    /// Write a file for each relation into this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Over what rules hold, as typed.
#[derive(Clone, Debug, Args)]
pub struct Over {
    #[command(flatten)]
    pub bounds: Bounds,
    /// Messages: tasks serve several requests at once, by threads that the trace does not name; guess which thread a message is of
    #[arg(long)]
    pub guess_threads: bool,
}

/// Over what rules hold, and how much memory they may take.
#[derive(Clone, Debug, Args)]
pub struct Bounds {
    /// Over what rules hold: each operation by itself where not given. `trace` keeps all operations in memory, for rates and for
    /// what lies between operations. Over messages, rules hold over all of them
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub scope: Option<Scope>,
    /// Memory that the rows of rules may take at a time, such as `500MB`: 2GB where not given. The trace itself comes on top
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub max_memory: Option<usize>,
}

impl Bounds {
    /// The limits of an evaluation.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        match self.max_memory {
            Some(bytes) => Limits { bytes, rows: usual.rows.max(bytes / LEAST_ROW), ..usual },
            None => usual,
        }
    }
}

impl Bounds {
    /// Refuses them where no rules are asked.
    pub fn check_unused(&self) -> Result<(), Failure> {
        let given = [(self.scope.is_some(), "--scope"), (self.max_memory.is_some(), "--max-memory")];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, name)) => {
                let message = format!("`{name}` is about facts that rules derive, and none is named");
                let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
                Err(finding.with_hint("name a rule file and a fact, or leave it out").into())
            }
            None => Ok(()),
        }
    }
}

/// How many rows are shown.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("it is how many rows are shown, 1 at least".to_owned()),
        number => number.map_err(|error| error.to_string()),
    }
}

/// No row takes less, in bytes.
const LEAST_ROW: usize = 24;

/// A size in bytes, with `kB`, `MB` or `GB`.
fn memory(text: &str) -> Result<usize, String> {
    let units = [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("B", 1)];
    let lower = text.trim().to_lowercase();
    let found = units.iter().find_map(|(unit, size)| Some((lower.strip_suffix(&unit.to_lowercase())?, *size)));
    let size = found.and_then(|(number, unit)| {
        let number: f64 = number.trim().parse().ok()?;
        let bytes = number * f64::from(unit);
        (number.is_finite() && (1.0..=1e15).contains(&bytes)).then_some(bytes as usize)
    });
    size.ok_or_else(|| "a size is a number with a unit: `500MB`, `2GB`".to_owned())
}

/// Where rows are not shown.
pub struct Unshown;

impl Rows for Unshown {
    fn row(&mut self, _: usize, _: Option<(&str, &str)>, _: &[Cell<'_>]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Over what rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Over each operation by itself; rows begin with its scenario and run
    Operation,
    /// Over all operations at once
    Trace,
}

/// Forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// A row each fact, with a header, as operations come
    Csv,
    /// A document
    Json,
    /// An object a line, as operations come
    Jsonl,
    /// Parquet, typed columns, as operations come; with `-o`
    Parquet,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// Asks a question of traces.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    arguments.output.as_deref().map_or(Ok(()), answer::check_folder)?;
    let (file, traces) = rule_file(arguments)?;
    input::check_stdin_once(traces.iter().chain(file).chain(&arguments.templates))?;
    let (loaded, from) = program(file, &arguments.rules, terminal)?;
    let (opened, scope) = Traces::open(traces, &arguments.reading, &arguments.over)?;
    let question = Question::new(&loaded.program, loaded.diagnostics, from, &arguments.relation, scope)?;
    terminal.report(&rule_files::not_allowed(&loaded.program, &question.warnings));
    let limits = arguments.over.bounds.limits();
    let kept = Kept::new(&question, arguments.top, arguments.by.as_deref(), limits.bytes)?;
    terminal.report(&kept.left_out(&question));
    let question = question.only(|asked| kept.place(asked, scope).is_some() || kept.keeps_all());
    let mut answer = Answer::new(&question, arguments, kept)?;
    let in_order = answer.keeps_all();
    let rules = rule_files::load(&arguments.templates, &mut terminal.sources)?;
    terminal.report(&rule_files::about_the_users(&rules));

    let mut answering = Answering::new(&question, &rules, &mut answer).within(limits).in_order(in_order);
    let (names, read, quality) = opened.read(&mut answering)?;
    let told = answering.finish(&names)?;
    terminal.report_kinds(&read, |_| true);
    reduce::count(&read, "reading", terminal);
    pipeline::tell_quality(&quality, terminal);
    terminal.report(&told.findings);
    answer.finish(&told, &quality, terminal)?;
    Ok(Exit::Ok)
}

/// The rule file, if there is one, and the traces.
fn rule_file(arguments: &Arguments) -> Result<(Option<&PathBuf>, &[PathBuf]), Failure> {
    let asked = !arguments.rules.is_empty() || !arguments.relation.is_empty();
    let is_rules = |file: &Path| file.extension().is_some_and(|ending| ending == "dl");
    let refuse = |message: String, hint: &str| -> Failure {
        Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).with_hint(hint).into()
    };
    match &*arguments.files {
        [first, rest @ ..] if is_rules(first) => match rest {
            [] => Err(refuse(
                "there is no trace to ask".to_owned(),
                "`dyelog query FILE.dl TRACE…`, or `dyelog query -e 'RULE' TRACE…`",
            )),
            rest => Ok((Some(first), rest)),
        },
        traces if asked => Ok((None, traces)),
        [first, ..] => Err(refuse(
            format!("nothing is asked of `{}`", first.display()),
            "name a rule file first, which ends in `.dl`; or ask by `-e 'RULE'` or `--relation NAME`",
        )),
        [] => Err(refuse("there is no trace to ask".to_owned(), "`dyelog query -e 'RULE' TRACE…`")),
    }
}

/// The rules of a file and of the command line, with what they use, and where those of the command line begin.
pub fn program(
    file: Option<&PathBuf>,
    rules: &[String],
    terminal: &mut Terminal,
) -> Result<(syntax::Loaded, usize), Failure> {
    let mut root = String::new();
    for rule in rules {
        let rule = rule.trim();
        // The last dot may be missing; `use` has none.
        let complete = rule.is_empty() || rule.ends_with('.') || (rule.starts_with("use ") && !rule.contains(":-"));
        root.push_str(rule);
        root.push_str(if complete { "\n" } else { ".\n" });
    }
    // Rules of the command line stand behind those of the file, and see all of them.
    let (name, before) = match file {
        Some(file) => {
            let (name, text) = rule_files::text(file)?;
            (name, format!("{text}\n"))
        }
        None => ("-e".into(), String::new()),
    };
    let from = if root.is_empty() { usize::MAX } else { before.len() };
    // Without a file, those that are used lie where the command runs.
    let file = file.map_or(Path::new("-e"), PathBuf::as_path);
    Ok((loaded((&name, (before + &root).into()), file, terminal), from))
}

/// The rules of a text with what they use, which lies beside the file.
pub fn loaded((name, text): (&Arc<str>, Arc<str>), file: &Path, terminal: &mut Terminal) -> syntax::Loaded {
    for (name, text) in query::standard::FILES {
        terminal.sources.insert(name.into(), text.into());
    }
    terminal.sources.insert(Arc::clone(name), Arc::clone(&text));
    let beside = rule_files::Beside::of([file]);
    let loaded = query::standard::load(name, &text, &|used| beside.text(used));
    for (name, text) in beside.read() {
        terminal.sources.insert(name, text);
    }
    loaded
}

/// Traces that are open to be asked.
pub struct Traces<'a> {
    files: &'a [PathBuf],
    reading: &'a ReadingArguments,
    guess_threads: bool,
    opened: Opened,
    progress: Progress,
}

impl<'a> Traces<'a> {
    /// Opens traces, and says over what rules hold, which what they tell decides, too.
    pub fn open(
        files: &'a [PathBuf],
        reading: &'a ReadingArguments,
        over: &Over,
    ) -> Result<(Self, query::Scope), Failure> {
        let progress = Progress::reading(files);
        let opened = messages::open(files, reading, &progress)?;
        if let Opened::Operations(Some(Err(faults))) = &opened {
            // What kind of trace it is nobody knows, so nothing can be said about which relations it has.
            return Err(faults.clone().into());
        }
        let refuse = |message: &str, hint: &str| -> Failure {
            let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
            finding.with_hint(hint).into()
        };
        let scope = match (&opened, over.bounds.scope) {
            (Opened::Messages(..), Some(Scope::Operation)) => {
                return Err(refuse(
                    "`--scope operation` is for traces that tell operations apart, and these tell of messages",
                    "leave it out: rules then hold over all messages",
                ));
            }
            (Opened::Messages(..), _) => query::Scope::Messages,
            (Opened::Operations(_), _) if over.guess_threads => {
                return Err(refuse(
                    "`--guess-threads` is for messages, and these traces tell operations apart",
                    "leave it out: their threads are known",
                ));
            }
            (Opened::Operations(_), Some(Scope::Trace)) => query::Scope::Trace,
            (Opened::Operations(_), _) => query::Scope::Operation,
        };
        Ok((Self { files, reading, guess_threads: over.guess_threads, opened, progress }, scope))
    }

    /// Reads them; damaged operations are set aside.
    pub fn read(self, answering: &mut Answering<'_>) -> Result<(TraceNames, ReadReport, QualityReport), Failure> {
        let Self { files, reading, guess_threads, opened, progress } = self;
        let first = match opened {
            Opened::Operations(first) => first,
            Opened::Messages(messages, _) => {
                let (exchanges, names, report) = messages.exchanges(guess_threads, reading.strict)?;
                let _ = answering.answer_messages(&exchanges, &names);
                return Ok((names, report, QualityReport::default()));
            }
        };
        let mut names = TraceNames::new();
        let mut gate = Gate::new(Policy { strict: reading.strict }, answering);
        let mut errors: Vec<Diagnostic> = Vec::new();
        let report = messages::read_operations(files, first, reading, &progress, &mut names, &mut gate).unwrap_or_else(
            |Diagnostics(found)| {
                errors.extend(found);
                ReadReport::default()
            },
        );
        progress.done();
        let quality = gate.finish();
        if let Err(Diagnostics(found)) = &quality {
            errors.extend(found.iter().cloned());
        }
        match quality {
            Ok(quality) if errors.is_empty() => Ok((names, report, quality)),
            _ => Err(Failure::Input(errors)),
        }
    }
}
