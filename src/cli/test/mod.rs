//! `dyelog test`: golden traces of users.

pub mod find;
mod judge;
mod watch;

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Parser, ValueEnum};
use dyelog::authoring::{cases, has_event_templates};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::report;
use dyelog::study::golden::{Outcome as Judged, Tested};

use self::find::{ENDINGS, Found, Golden, TABLES};
use self::judge::{judge, model};
use crate::cli::args::{OutputArguments, ReadingArguments, ReduceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, Outcome, codes, input, rule_files, source};

/// Arguments of `dyelog test`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "the project's own traces" => "dyelog test traces --snapshots snapshots",
    "one of them, with a rule file: exits with 1 since the model is another one" =>
        "dyelog test traces --snapshots snapshots --filter ackn --rules examples/rules/acknowledged.dl",
})]
pub struct Arguments {
    /// The folder with the traces, searched with the folders in it. A trace goes by the rule files of its folder, or of the nearest one
    /// above it that has some
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The folder of the accepted models, which lie beside their traces where this is not given
    #[arg(long, value_name = "DIR")]
    snapshots: Option<PathBuf>,
    /// Only traces whose path has this in it; may be repeated
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Accept what is found; refused where the environment has CI, since nobody reads there what is accepted
    #[arg(short = 'U', long, conflicts_with = "review")]
    update: bool,
    /// Show each difference and ask whether to accept it: y, n, or q to stop; answers may be piped in, one a line
    #[arg(short = 'i', long)]
    review: bool,
    /// Run again whenever a file of the folder, of the snapshots or beside the rule files changes, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["update", "review"])]
    watch: bool,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    reduce: ReduceArguments,
    /// The configuration; where none is given, a file beside a trace whose name is the trace's with `.toml`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The form of the report; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
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

/// Compares the model of each trace with the accepted one.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    if arguments.review && !somebody_is_there() {
        let finding =
            Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, "`--review` needs a terminal or piped answers");
        return Err(finding.with_hint("`--update` accepts everything").into());
    }
    if arguments.update && is_build_server() {
        let message = "`--update` is refused where CI is set in the environment";
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message)
            .with_note("a build that accepts what it finds tests nothing")
            .with_hint("accept where the difference is read, and commit the snapshots");
        return Err(finding.into());
    }
    if arguments.watch {
        return watch::watch(arguments, terminal, |terminal| once(arguments, terminal));
    }
    once(arguments, terminal)
}

/// One run over all traces.
fn once(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = output::form(arguments.format, Form::Text, &arguments.output)?;
    let found = find::search(arguments)?;
    let mut tested = cases(arguments, &found, terminal)?;
    if found.traces.is_empty() && tested.is_empty() {
        let place = Place::File { file: input::shown(&arguments.folder) };
        let finding = Diagnostic::error(codes::ARGUMENTS, place, "there is no trace to test");
        let note = format!("names of traces end in {}", ENDINGS.join(", "));
        let tables = format!("names that end in {} count where the content is a trace", TABLES.join(", "));
        return Err(finding.with_note(note).with_note(tables).into());
    }
    check_once(arguments, &found, terminal)?;
    let mut asking = arguments.review;
    for golden in found.traces.iter().filter(|golden| arguments.is_wanted(&golden.trace)) {
        let began = Instant::now();
        let outcome = match model(golden, arguments, &arguments.reduce_for(golden, &found))? {
            Ok(text) => judge(golden, &text, arguments.update, &mut asking, terminal)?,
            Err(reasons) => Judged::Failed(reasons),
        };
        let (name, seconds) = (input::shown(&golden.trace).to_string(), began.elapsed().as_secs_f64());
        tested.push(Tested { name, outcome, seconds });
    }
    for path in find::orphans(&found.traces, arguments)?.into_iter().filter(|path| arguments.is_wanted(path)) {
        tested.push(Tested { name: input::shown(&path).to_string(), outcome: Judged::Orphaned, seconds: 0.0 });
    }
    if tested.is_empty() {
        let place = Place::File { file: input::shown(&arguments.folder) };
        let message =
            format!("no path of a trace or an accepted model has `{}` in it", arguments.filter.join("` or `"));
        let finding = Diagnostic::error(codes::ARGUMENTS, place, message);
        return Err(finding.with_note(format!("traces found there: {}", found.traces.len())).into());
    }
    say_left_out(arguments, &found, terminal);
    let text = match format {
        Form::Text => report::golden::text(&tested),
        Form::Json => report::golden::json(&tested),
        Form::Junit => report::golden::junit(&tested),
    };
    output::write(&arguments.output, &text)?;
    Ok(if tested.iter().all(|one| one.outcome.is_good()) { Exit::Ok } else { Exit::Finding })
}

/// What became of the cases in the rule files that are given, or lie in the folder.
fn cases(arguments: &Arguments, found: &Found, terminal: &mut Terminal) -> Result<Vec<Tested>, Failure> {
    let given = &arguments.reduce.rules;
    let sets: Vec<&Vec<PathBuf>> = if given.is_empty() { found.rules.values().collect() } else { vec![given] };
    let mut tested = Vec::new();
    for files in sets {
        let texts = rule_files::texts(files)?;
        let wanted = files.iter().zip(&texts).filter(|(path, _)| arguments.is_wanted(path));
        let cases: Vec<_> = wanted.map(|(_, (file, text))| (file, cases::of(file, text))).collect();
        if cases.iter().all(|(_, cases)| cases.is_empty()) {
            continue;
        }
        let mut source = |file, text| terminal.sources.insert(file, text);
        let of_events = |wanted: bool| {
            let chosen = files.iter().zip(&texts).filter(|(_, text)| has_event_templates(text) == wanted);
            chosen.map(|(path, text)| (path.clone(), text.clone())).unzip::<_, _, Vec<PathBuf>, Vec<_>>()
        };
        let (of_nodes, node_texts) = of_events(false);
        let rules = rule_files::load_texts(&node_texts, &of_nodes, &mut source)?;
        let (event_files, _) = of_events(true);
        let events =
            if event_files.is_empty() { None } else { Some(rule_files::load_events(&event_files, &mut source)?) };
        for (file, case) in cases.iter().flat_map(|(file, cases)| cases.iter().map(move |case| (*file, case))) {
            let began = Instant::now();
            let is_of_events = texts.iter().any(|text| text.0 == *file && has_event_templates(text));
            let judged = match events.as_ref().filter(|_| is_of_events) {
                Some(events) => cases::judge_messages(events, file, case),
                None => cases::judge(&rules, file, case),
            };
            let outcome = match judged {
                None => Judged::Held,
                Some(finding) => Judged::Broken(terminal.plain(&finding)),
            };
            let name = format!("{file}:{} {}", case.line, cases::title(case));
            tested.push(Tested { name, outcome, seconds: began.elapsed().as_secs_f64() });
        }
    }
    Ok(tested)
}

/// Whether this is a build, by the variable that build servers set.
fn is_build_server() -> bool {
    std::env::var_os("CI").is_some_and(|value| !["", "0", "false"].contains(&&*value.to_string_lossy().to_lowercase()))
}

/// Tells which tables and texts were taken for something else than traces.
fn say_left_out(arguments: &Arguments, found: &Found, terminal: &Terminal) {
    let others: Vec<_> = found.others.iter().filter(|path| arguments.is_wanted(path)).collect();
    if let [first, rest @ ..] = &others[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        terminal.remark(&format!("left out, since the content is no trace: `{}`{more}", input::shown(first)));
    }
}

impl Arguments {
    fn is_wanted(&self, path: &Path) -> bool {
        let shown = input::shown(path);
        self.filter.is_empty() || self.filter.iter().any(|text| shown.contains(text.as_str()))
    }

    /// How a trace is reduced: with the rule files given, or with those that lie beside it. Messages take those with templates on events,
    /// all others the rest.
    fn reduce_for(&self, golden: &Golden, found: &Found) -> ReduceArguments {
        let mut reduce = self.reduce.clone();
        if reduce.rules.is_empty() {
            reduce.rules = found.rules_for(&golden.trace).to_vec();
        }
        // Loading reports a file that cannot be read.
        let of_events = |path: &PathBuf| rule_files::text(path).is_ok_and(|text| has_event_templates(&text));
        reduce.rules.retain(|path| of_events(path) == golden.messages);
        reduce
    }
}

/// Refuses rule files and a configuration that cannot be used: each trace would fail for the same reason.
fn check_once(arguments: &Arguments, found: &Found, terminal: &mut Terminal) -> Result<(), Failure> {
    let wanted = found.traces.iter().filter(|golden| arguments.is_wanted(&golden.trace));
    let sets: BTreeSet<(bool, Vec<PathBuf>)> =
        wanted.map(|golden| (golden.messages, arguments.reduce_for(golden, found).rules)).collect();
    Diagnostics::gather(sets.iter().filter(|(_, set)| !set.is_empty()).map(|(messages, set)| {
        let mut source = |file, text| terminal.sources.insert(file, text);
        if *messages {
            rule_files::load_events(set, &mut source).map(drop)
        } else {
            rule_files::load_telling(set, &mut source).map(drop)
        }
    }))?;
    // What there is to say about it belongs to the traces.
    let mut ear = Terminal::that_listens();
    let read = source::configuration(arguments.config.as_deref(), &mut ear).map(|_| ());
    if read.is_err() {
        terminal.sources = ear.sources;
    }
    read
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
    let found = find::search(&arguments)?;
    let mut accepted = Vec::new();
    for golden in &found.traces {
        if let Ok(text) = model(golden, &arguments, &arguments.reduce_for(golden, &found))? {
            judge(golden, &text, true, &mut false, &Terminal::that_listens())?;
            accepted.push(golden.accepted.clone());
        }
    }
    Ok(accepted)
}
