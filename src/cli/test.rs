//! `dyelog test`: golden traces of users.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::report::{self, Look, difference};
use dyelog::study::golden::{self, Outcome as Found};

use crate::cli::args::{OutputArguments, ReadingArguments, ReduceArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::utilisation::UtilisationArguments;
use crate::cli::{Failure, Outcome, codes, input, rule_files, source};

/// Endings of names that make a file a trace; a further `.gz` or `.zst` is taken off first.
const ENDINGS: [&str; 8] =
    [".angio.jsonl", ".angio", ".otlp.jsonl", ".otlp.json", ".jaeger.json", ".jsonl", ".ndjson", ".json"];
/// What the names of accepted models end in.
const ACCEPTED: &str = ".model.snap";
/// Folders within folders are entered so deep.
const DEPTH: usize = 16;

/// Arguments of `dyelog test`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the project's own traces" => "dyelog test traces --snapshots snapshots",
    "one of them, with a rule file: exits with 1 since the model is another one" =>
        "dyelog test traces --snapshots snapshots --filter ackn --rules examples/rules/acknowledged.dl",
})]
pub struct Arguments {
    /// The folder with the traces, searched with the folders in it; rule files right in it are used, too
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The folder of the accepted models, which lie beside their traces where this is not given
    #[arg(long, value_name = "DIR")]
    snapshots: Option<PathBuf>,
    /// Only traces whose path has this in it; may be repeated
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Accept what is found
    #[arg(short = 'U', long, conflicts_with = "review")]
    update: bool,
    /// Show each difference and ask whether to accept it: y, n, or q to stop; answers may be piped in, one a line
    #[arg(short = 'i', long)]
    review: bool,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// The configuration; where none is given, a file beside a trace whose name is the trace's with `.toml`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The form of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    output: OutputArguments,
}

/// Forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// JSON
    Json,
    /// The XML that build servers read
    Junit,
}

/// A trace with the file of its accepted model.
struct Golden {
    trace: PathBuf,
    stem: String,
    accepted: PathBuf,
}

/// Compares the model of each trace with the accepted one.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    if arguments.review && !somebody_is_there() {
        let finding =
            Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "`--review` needs a terminal or piped answers");
        return Err(finding.with_hint("`--update` accepts everything").into());
    }
    let all = traces(arguments)?;
    if all.is_empty() {
        let place = Place::File { file: input::shown(&arguments.folder) };
        let finding = Diagnostic::error(codes::ARGUMENTS, place, "there is no trace to test");
        let note = if arguments.filter.is_empty() {
            format!("names of traces end in {}", ENDINGS.join(", "))
        } else {
            format!("no path of a trace contains {}", arguments.filter.join(" or "))
        };
        return Err(finding.with_note(note).into());
    }
    let reduce = with_rules_of_the_folder(arguments)?;
    check_once(arguments, &reduce, terminal)?;
    let mut outcomes = Vec::new();
    let mut asking = arguments.review;
    for golden in all.iter().filter(|golden| arguments.is_wanted(&golden.trace)) {
        let outcome = match model(golden, arguments, &reduce)? {
            Ok(found) => judge(golden, &found, arguments.update, &mut asking, terminal)?,
            Err(reasons) => Found::Failed(reasons),
        };
        outcomes.push((input::shown(&golden.trace).to_string(), outcome));
    }
    for path in orphans(&all, arguments)?.into_iter().filter(|path| arguments.is_wanted(path)) {
        outcomes.push((input::shown(&path).to_string(), Found::Orphaned));
    }
    if outcomes.is_empty() {
        let place = Place::File { file: input::shown(&arguments.folder) };
        let message =
            format!("no path of a trace or an accepted model has `{}` in it", arguments.filter.join("` or `"));
        let finding = Diagnostic::error(codes::ARGUMENTS, place, message);
        return Err(finding.with_note(format!("traces found there: {}", all.len())).into());
    }
    let text = match arguments.format {
        Form::Text => report::golden::text(&outcomes),
        Form::Json => report::golden::json(&outcomes),
        Form::Junit => report::golden::junit(&outcomes),
    };
    output::write(&arguments.output, &text)?;
    Ok(if outcomes.iter().all(|(_, outcome)| outcome.is_good()) { Exit::Ok } else { Exit::Finding })
}

impl Arguments {
    fn is_wanted(&self, path: &Path) -> bool {
        let shown = input::shown(path);
        self.filter.is_empty() || self.filter.iter().any(|text| shown.contains(text.as_str()))
    }
}

/// Refuses rule files and a configuration that cannot be used: each trace would fail for the same reason.
fn check_once(arguments: &Arguments, reduce: &ReduceArguments, terminal: &mut Terminal) -> Result<(), Failure> {
    rule_files::load(&reduce.rules, &mut terminal.sources)?;
    // What there is to say about it belongs to the traces.
    let mut ear = Terminal::that_listens();
    let read = source::configuration(arguments.config.as_deref(), &mut ear).map(|_| ());
    if read.is_err() {
        terminal.sources = ear.sources;
    }
    read
}

/// The accepted models that no trace belongs to. `NAME.OTHER.model.snap` is one of `NAME`, too, made in another way.
fn orphans(all: &[Golden], arguments: &Arguments) -> Result<Vec<PathBuf>, Failure> {
    let mut folders: Vec<&Path> = match &arguments.snapshots {
        Some(folder) => vec![folder],
        None => all.iter().map(|golden| folder_of(&golden.accepted)).chain([&*arguments.folder]).collect(),
    };
    folders.sort();
    folders.dedup();
    let mut found = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        for path in files(folder)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let Some(name) = name.strip_suffix(ACCEPTED) else { continue };
            let belongs = |golden: &Golden| {
                let accepted = golden.accepted.file_name().unwrap_or_default().to_string_lossy();
                let rest = accepted.strip_suffix(ACCEPTED).and_then(|own| name.strip_prefix(own));
                folder_of(&golden.accepted) == folder_of(&path)
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if !all.iter().any(belongs) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether questions are answered: at a terminal, or by what is piped in.
fn somebody_is_there() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() || stdin.lock().fill_buf().is_ok_and(|answers| !answers.is_empty())
}

/// The arguments by themselves.
#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    arguments: Arguments,
}

/// Accepts the models of a folder's traces as they are; gives back their files.
pub fn accept(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let words = ["test".into(), folder.as_os_str().to_owned(), "--update".into()];
    let arguments = Alone::parse_from(words).arguments;
    let reduce = with_rules_of_the_folder(&arguments)?;
    let mut accepted = Vec::new();
    for golden in traces(&arguments)? {
        if let Ok(found) = model(&golden, &arguments, &reduce)? {
            judge(&golden, &found, true, &mut false, &Terminal::that_listens())?;
            accepted.push(golden.accepted);
        }
    }
    Ok(accepted)
}

/// How to reduce traces: with the rule files given, or with those in the folder.
fn with_rules_of_the_folder(arguments: &Arguments) -> Result<ReduceArguments, Failure> {
    let mut reduce = arguments.reduce.clone();
    if reduce.rules.is_empty() {
        let rules = files(&arguments.folder)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "dl"));
        reduce.rules = rules.collect();
    }
    Ok(reduce)
}

/// The traces of the folder, in the order of their paths.
fn traces(arguments: &Arguments) -> Result<Vec<Golden>, Failure> {
    let mut found = Vec::new();
    let mut open = vec![(arguments.folder.clone(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for path in files(&folder)? {
            if path.is_dir() {
                if depth < DEPTH {
                    open.push((path, depth + 1));
                }
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
            let Some(stem) = ENDINGS.iter().find_map(|ending| plain.strip_suffix(ending)) else { continue };
            let beside = path.parent().unwrap_or(Path::new("."));
            let accepted = match arguments.snapshots.as_deref() {
                // In one folder names have to tell where the traces lie.
                Some(snapshots) => {
                    let here = arguments.folder == Path::new(".");
                    let way = if here { Ok(beside) } else { beside.strip_prefix(&arguments.folder) };
                    let way = way.unwrap_or(Path::new(""));
                    let parts: Vec<_> = way.iter().map(OsStr::to_string_lossy).chain([stem.into()]).collect();
                    snapshots.join(format!("{}{ACCEPTED}", parts.join("-")))
                }
                None => beside.join(format!("{stem}{ACCEPTED}")),
            };
            found.push(Golden { stem: stem.to_owned(), accepted, trace: path });
        }
    }
    found.sort_by(|left, right| left.trace.cmp(&right.trace));
    refuse_shared(&found)?;
    Ok(found)
}

/// Refuses traces that have one accepted model: what is accepted of one would be wrong of the other.
fn refuse_shared(all: &[Golden]) -> Result<(), Failure> {
    let mut owners: BTreeMap<&Path, &Path> = BTreeMap::new();
    let mut errors = Vec::new();
    for golden in all {
        let Some(other) = owners.insert(&golden.accepted, &golden.trace) else { continue };
        let place = Place::File { file: input::shown(&golden.trace) };
        let message = format!("the accepted model of `{}` would be that of this trace, too", input::shown(other));
        let note = format!("both have `{}`", input::shown(&golden.accepted));
        let finding = Diagnostic::error(codes::ARGUMENTS, place, message).with_note(note);
        errors.push(finding.with_hint("give one of them another name: the ending does not count"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::Input(errors)) }
}

/// What a folder holds, hidden files left out, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: &io::Error| {
        let place = Place::File { file: input::shown(folder) };
        Diagnostic::error(codes::UNREADABLE, place, format!("the folder cannot be read: {error}"))
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            // `.` before a path says nothing.
            paths.push(if folder == Path::new(".") { PathBuf::from(entry.file_name()) } else { entry.path() });
        }
    }
    paths.sort();
    Ok(paths)
}

/// The model of a trace as text, the same as `dyelog model --format text` gives, how often each template matched, and what
/// there is to say about it; or why there is none.
fn model(golden: &Golden, arguments: &Arguments, reduce: &ReduceArguments) -> Result<Result<String, String>, Failure> {
    let beside = golden.trace.with_file_name(format!("{}.toml", golden.stem));
    let config = arguments.config.clone().or_else(|| beside.is_file().then_some(beside));
    let files = vec![golden.trace.clone()];
    let (reading, utilisation) = (arguments.reading.clone(), UtilisationArguments::default());
    let whole = SourceArguments { files, reading, reduce: reduce.clone(), config, utilisation };
    let mut ear = Terminal::that_listens();
    Ok(match source::load_with_matches(&whole, &mut ear) {
        Ok(source) => {
            let mut text = report::model::text(&source.model, source.origins.as_ref(), Look::PLAIN);
            let matches = source.reduced.map(|reduced| reduced.reduction.matches).unwrap_or_default();
            if !matches.is_empty() {
                text.push('\n');
                text.push_str(&report::matches::by_template(&matches, Look::PLAIN));
            }
            Ok(golden::with_words(&text, &ear.heard()))
        }
        Err(Failure::Input(diagnostics)) => {
            ear.report(&diagnostics);
            Err(ear.heard())
        }
        Err(other) => return Err(other),
    })
}

/// A file's header, as the snapshots of `insta` have one, and the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text.strip_prefix("---\n").and_then(|rest| rest.find("\n---\n")).map(|end| end + 9);
    text.split_at(end.unwrap_or(0))
}

fn judge(golden: &Golden, found: &str, update: bool, asking: &mut bool, terminal: &Terminal) -> Result<Found, Failure> {
    let file = if golden.accepted.exists() { Some(input::text(&golden.accepted)?.replace("\r\n", "\n")) } else { None };
    let (header, accepted) = file.as_deref().map_or(("", ""), split);
    let same = file.is_some() && accepted.trim_end() == found.trim_end();
    let outcome = match &file {
        Some(_) => Found::Compared(golden::compare(accepted, found)),
        None => Found::New,
    };
    let accept = !same && (update || (*asking && !outcome.is_good() && ask(golden, accepted, found, asking, terminal)));
    if !accept {
        return Ok(outcome);
    }
    let folder = folder_of(&golden.accepted);
    fs::create_dir_all(folder).map_err(|error| {
        let place = Place::File { file: input::shown(folder) };
        Diagnostic::error(codes::UNWRITABLE, place, format!("the folder cannot be made: {error}"))
    })?;
    output::write(
        &OutputArguments { output: Some(golden.accepted.clone()) },
        &format!("{header}{}\n", found.trim_end()),
    )?;
    Ok(Found::Accepted)
}

/// Shows a difference and asks for a decision; after `q` there are no more questions.
fn ask(golden: &Golden, accepted: &str, found: &str, asking: &mut bool, terminal: &Terminal) -> bool {
    terminal.say(&format!("\n{}\n{}", golden.trace.display(), difference::text(accepted, found, 3)));
    loop {
        terminal.say("accept this? [y]es, [n]o, [q]uit: ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).unwrap_or(0);
        match answer.trim() {
            "y" | "yes" | "a" => return true,
            "n" | "no" => return false,
            _ if read == 0 => *asking = false,
            "q" | "quit" => *asking = false,
            _ => continue,
        }
        return false;
    }
}
