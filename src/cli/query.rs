//! `dyelog query`.

use std::cell::RefCell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use dyelog::datalog::syntax;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place, similar};
use dyelog::pipeline;
use dyelog::query::{self, Answering, Asked, Cell, Question, Rows};
use dyelog::report::answers::{self, Row};
use dyelog::trace::quality::{Gate, Policy, QualityReport};
use dyelog::trace::{ReadReport, TraceNames};

use crate::cli::args::{OutputArguments, ReadingArguments};
use crate::cli::exit::Exit;
use crate::cli::messages::{self, Opened};
use crate::cli::output::Output;
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
    /// Over what rules hold: `trace` keeps all operations in memory, for rates and for what lies between operations
    #[arg(long, value_enum, value_name = "SCOPE", default_value_t = Scope::Operation)]
    scope: Scope,
    /// A rule file with templates, which come before the shipped ones; may be repeated
    #[arg(long = "rules", value_name = "FILE")]
    templates: Vec<PathBuf>,
    /// Show only so many rows, those with the largest values of the column of `--by`
    #[arg(long, value_name = "K", requires = "by")]
    top: Option<usize>,
    /// The column that `--top` sorts by
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

/// Over what rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Over each operation by itself; rows begin with its scenario and run
    Operation,
    /// Over all operations at once
    Trace,
}

impl From<Scope> for query::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Operation => Self::Operation,
            Scope::Trace => Self::Trace,
        }
    }
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
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
        }
    }
}

/// Asks a question of traces.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let (file, traces) = rule_file(arguments)?;
    input::check_stdin_once(traces.iter().chain(file).chain(&arguments.templates))?;
    let question = question(file, arguments, terminal)?;
    terminal.report(&question.warnings);
    let kept = Kept::new(&question, arguments)?;
    let question = question.only(|asked| kept.by.is_none() || kept.place(asked).is_some());
    let mut answer = Answer::new(&question, arguments, kept)?;
    let rules = rule_files::load(&arguments.templates, &mut terminal.sources)?;
    terminal.report(&rule_files::about_the_users(&rules));

    let mut names = TraceNames::new();
    let mut answering = Answering::new(&question, &rules, &mut answer);
    let (read, quality) = read(traces, &arguments.reading, &mut names, &mut answering)?;
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
    match &*arguments.files {
        [first, rest @ ..] if !asked || is_rules(first) => match rest {
            [] => Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "there is no trace to ask")
                .with_hint("`dyelog query FILE.dl TRACE…`, or `dyelog query -e 'RULE' TRACE…`")
                .into()),
            rest => Ok((Some(first), rest)),
        },
        traces => Ok((None, traces)),
    }
}

fn question(file: Option<&PathBuf>, arguments: &Arguments, terminal: &mut Terminal) -> Result<Question, Failure> {
    let (loaded, from) = program(file, &arguments.rules, terminal)?;
    let scope = arguments.scope.into();
    Ok(Question::new(&loaded.program, loaded.diagnostics, from, &arguments.relation, scope)?)
}

/// The rules of a file and of the command line, with what they use, and where those of the command line begin.
pub fn program(
    file: Option<&PathBuf>,
    rules: &[String],
    terminal: &mut Terminal,
) -> Result<(syntax::Loaded, usize), Failure> {
    for (name, text) in query::standard::FILES {
        terminal.sources.insert(name.into(), text.into());
    }
    let mut root = String::new();
    for rule in rules {
        let rule = rule.trim();
        // The last dot may be missing; `use` has none.
        let complete = rule.is_empty() || rule.ends_with('.') || (rule.starts_with("use ") && !rule.contains(":-"));
        root.push_str(rule);
        root.push_str(if complete { "\n" } else { ".\n" });
    }
    // Rules of the command line stand behind those of the file, and see all of them.
    let (name, before): (Arc<str>, String) = match file {
        Some(file) => (input::shown(file), input::text(file)? + "\n"),
        None => ("-e".into(), String::new()),
    };
    let from = if root.is_empty() { usize::MAX } else { before.len() };
    let text: Arc<str> = (before + &root).into();
    terminal.sources.insert(Arc::clone(&name), Arc::clone(&text));
    let folder = file.and_then(|file| file.parent());
    let found = RefCell::new(Vec::new());
    let resolve = |used: &str| -> Option<Arc<str>> {
        if let Some(text) = query::standard::text(used) {
            return Some(text);
        }
        let text: Arc<str> = std::fs::read_to_string(folder.unwrap_or(Path::new("")).join(used)).ok()?.into();
        found.borrow_mut().push((Arc::<str>::from(used), Arc::clone(&text)));
        Some(text)
    };
    let loaded = syntax::read(&name, &text, &resolve);
    for (name, text) in found.into_inner() {
        terminal.sources.insert(name, text);
    }
    Ok((loaded, from))
}

/// Reads traces of operations; damaged operations are set aside.
pub fn read(
    traces: &[PathBuf],
    reading: &ReadingArguments,
    names: &mut TraceNames,
    answering: &mut Answering<'_>,
) -> Result<(ReadReport, QualityReport), Failure> {
    let progress = Progress::reading(traces);
    let mut first = match messages::open(traces, reading, &progress)? {
        Opened::Operations(first) => first,
        Opened::Messages(..) => {
            let place = Place::File { file: input::shown(&traces[0]) };
            return Err(Diagnostic::error(codes::ARGUMENTS, place, "this trace has messages, not operations")
                .with_note("facts are about operations and their spans, which a trace of messages does not tell apart")
                .with_hint("`dyelog matches` lists the interactions among messages")
                .into());
        }
    };
    let mut gate = Gate::new(Policy { strict: reading.strict }, answering);
    let mut report = ReadReport::default();
    let mut errors: Vec<Diagnostic> = Vec::new();
    for file in traces {
        let opened = first.take().unwrap_or_else(|| messages::open_one(file, reading, &progress));
        match opened.and_then(|open| open.operations(names, &mut gate)) {
            Ok(read) => report.merge(read),
            Err(Diagnostics(found)) => errors.extend(found),
        }
    }
    progress.done();
    let quality = gate.finish();
    if let Err(Diagnostics(found)) = &quality {
        errors.extend(found.iter().cloned());
    }
    match quality {
        Ok(quality) if errors.is_empty() => Ok((report, quality)),
        _ => Err(Failure::Input(errors)),
    }
}

/// Rows that are kept until all have come.
struct Kept {
    rows: Vec<Vec<Row>>,
    /// How many are kept, and the column that decides which.
    top: Option<usize>,
    by: Option<String>,
}

impl Kept {
    fn new(question: &Question, arguments: &Arguments) -> Result<Self, Failure> {
        let kept = Self { rows: Vec::new(), top: arguments.top, by: arguments.by.clone() };
        let Some(by) = &kept.by else { return Ok(kept) };
        if question.asked.iter().any(|asked| kept.place(asked).is_some()) {
            return Ok(kept);
        }
        let message = format!("no relation that is shown has a column `{by}`");
        let finding = Diagnostic::error(query::codes::NO_COLUMN, Place::Nowhere, message);
        let all: Vec<&str> =
            question.asked.iter().flat_map(|asked| &asked.columns).map(|column| &*column.name).collect();
        Err(match similar(by, all.iter().copied()) {
            Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
            None => finding.with_note(format!("they have {}", all.join(", "))),
        }
        .into())
    }

    fn place(&self, asked: &Asked) -> Option<usize> {
        asked.columns.iter().position(|column| Some(&*column.name) == self.by.as_deref())
    }

    /// Keeps a row; of more than twice as many as are wanted, the lesser half goes.
    fn take(&mut self, relation: usize, place: Option<usize>, row: Row) {
        let rows = &mut self.rows[relation];
        rows.push(row);
        if let (Some(top), Some(place)) = (self.top, place)
            && rows.len() >= top.saturating_mul(2).max(64)
        {
            largest(rows, place, top);
        }
    }
}

/// The rows with the largest values, largest first; equal ones as they came.
fn largest(rows: &mut Vec<Row>, place: usize, top: usize) {
    rows.sort_by(|left, right| compare(&right.cells[place], &left.cells[place]));
    rows.truncate(top);
}

/// Numbers by size, texts by letters and before numbers.
fn compare(left: &Cell<'_>, right: &Cell<'_>) -> std::cmp::Ordering {
    let number = |cell: &Cell<'_>| match cell {
        Cell::Whole(number) => Some(*number as f64),
        Cell::Float(number) => Some(*number),
        Cell::Text(_) => None,
    };
    match (left, right) {
        (Cell::Whole(left), Cell::Whole(right)) => left.cmp(right),
        (Cell::Text(left), Cell::Text(right)) => left.cmp(right),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.total_cmp(&right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        },
    }
}

/// Where rows go.
struct Answer<'q> {
    question: &'q Question,
    format: Format,
    columns: Vec<Vec<String>>,
    /// By relation, where there is a folder; else one.
    outputs: Vec<Output>,
    names: Vec<PathBuf>,
    kept: Kept,
    failure: Option<Failure>,
}

impl<'q> Answer<'q> {
    fn new(question: &'q Question, arguments: &Arguments, mut kept: Kept) -> Result<Self, Failure> {
        kept.rows = vec![Vec::new(); question.asked.len()];
        let columns: Vec<Vec<String>> =
            question.asked.iter().map(|asked| answers::columns(asked, question.scope)).collect();
        let format = arguments.format;
        if format == Format::Csv && question.asked.len() > 1 && arguments.output.is_none() {
            let names: Vec<&str> = question.asked.iter().map(|asked| &*asked.name).collect();
            let message = format!("{} relations do not go into one table", names.len());
            return Err(Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
                .with_note(format!("they are {}", names.join(", ")))
                .with_hint(
                    "`--relation NAME` shows one, `-o DIR` writes a file for each, `--format json` takes them all",
                )
                .into());
        }
        let mut answer =
            Self { question, format, columns, outputs: Vec::new(), names: Vec::new(), kept, failure: None };
        if let Some(folder) = &arguments.output {
            std::fs::create_dir_all(folder).map_err(|error| {
                let place = Place::File { file: folder.display().to_string().into() };
                Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}"))
            })?;
            for asked in &question.asked {
                answer.names.push(folder.join(format!("{}.{}", asked.name, format.ending())));
            }
            for name in &answer.names {
                answer.outputs.push(Output::open(&OutputArguments { output: Some(name.clone()) })?);
            }
        } else {
            answer.outputs.push(Output::open(&OutputArguments { output: None })?);
        }
        if format == Format::Csv {
            for place in 0..question.asked.len() {
                let Self { outputs, columns, .. } = &mut answer;
                outputs[place].attempt(|out| answers::csv_header(out, &columns[place]))?;
            }
        }
        Ok(answer)
    }

    fn keeps(&self) -> bool {
        self.kept.top.is_some() || matches!(self.format, Format::Text | Format::Json)
    }

    fn write(&mut self, relation: usize, key: Option<(&str, &str)>, cells: &[Cell<'_>]) -> Result<(), Failure> {
        let Self { outputs, columns, question, format, .. } = self;
        let place = if outputs.len() > 1 { relation } else { 0 };
        let name = &question.asked[relation].name;
        outputs[place].attempt(|out: &mut dyn Write| match format {
            Format::Jsonl => answers::json_line(out, name, &columns[relation], key, cells),
            _ => answers::csv(out, key, cells),
        })
    }

    fn finish(mut self, told: &query::Told, quality: &QualityReport, terminal: &Terminal) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let asked = &self.question.asked;
        let mut rows = std::mem::take(&mut self.kept.rows);
        for (rows, asked) in rows.iter_mut().zip(asked) {
            if let (Some(top), Some(place)) = (self.kept.top, self.kept.place(asked)) {
                largest(rows, place, top);
            }
        }
        let scope = self.question.scope;
        match self.format {
            Format::Csv | Format::Jsonl => {
                for (relation, rows) in rows.iter().enumerate() {
                    for row in rows {
                        let key = row.operation.as_ref().map(|(scenario, run)| (&**scenario, &**run));
                        self.write(relation, key, &row.cells)?;
                    }
                }
            }
            Format::Json if self.names.is_empty() => {
                self.outputs[0].text(&answers::json(asked, scope, &rows, told, quality))?;
            }
            Format::Json => {
                for (place, output) in self.outputs.iter_mut().enumerate() {
                    let (asked, rows) = (&asked[place..=place], &rows[place..=place]);
                    output.text(&answers::json(asked, scope, rows, told, quality))?;
                }
            }
            Format::Text => {
                let look = terminal.look(&OutputArguments { output: self.names.first().cloned() });
                for (place, asked) in asked.iter().enumerate() {
                    let table = answers::text(asked, scope, &rows[place], look);
                    let several = self.names.is_empty() && self.question.asked.len() > 1;
                    let gap = if several && place > 0 { "\n" } else { "" };
                    let heading = if several { format!("{gap}{}\n", asked.name) } else { String::new() };
                    let output = if self.names.is_empty() { 0 } else { place };
                    self.outputs[output].text(&format!("{heading}{table}"))?;
                }
            }
        }
        self.outputs.into_iter().try_for_each(Output::finish)
    }
}

impl Rows for Answer<'_> {
    fn row(&mut self, relation: usize, operation: Option<(&str, &str)>, cells: &[Cell<'_>]) -> ControlFlow<()> {
        if self.keeps() {
            let place = self.kept.place(&self.question.asked[relation]);
            self.kept.take(relation, place, Row::of(operation, cells));
            return ControlFlow::Continue(());
        }
        match self.write(relation, operation, cells) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}
