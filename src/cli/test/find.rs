//! What there is to test in a folder: traces with their accepted models, and the rule files that each of them goes by.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::pipeline::{Meter, open_one};

use super::Arguments;
use crate::cli::reduce::reading;
use crate::cli::{Failure, codes, input};

/// Endings of names that make a file a trace; a further `.gz` or `.zst` is taken off first.
pub const ENDINGS: [&str; 8] =
    [".angio.jsonl", ".angio", ".otlp.jsonl", ".otlp.json", ".jaeger.json", ".jsonl", ".ndjson", ".json"];
/// Endings of tables, logs and texts, which are traces where their content is.
pub const TABLES: [&str; 3] = [".csv", ".txt", ".log"];
/// What the names of accepted models end in.
const ACCEPTED: &str = ".model.snap";
/// Folders within folders are entered so deep.
const DEPTH: usize = 16;

/// A trace with the file of its accepted model.
pub struct Golden {
    pub trace: PathBuf,
    pub stem: String,
    pub accepted: PathBuf,
    /// Whether it has messages without operations, which templates have no part in.
    pub messages: bool,
}

/// What a folder has to test.
#[derive(Default)]
pub struct Found {
    /// Traces, in the order of their paths.
    pub traces: Vec<Golden>,
    /// Rule files by the folder that they lie in.
    pub rules: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Tables and texts that are no traces.
    pub others: Vec<PathBuf>,
}

impl Found {
    /// The rule files that lie in the folder of a trace, or else in the nearest folder above it.
    pub fn rules_for(&self, trace: &Path) -> &[PathBuf] {
        let mut folder = trace;
        while let Some(above) = folder.parent() {
            if let Some(files) = self.rules.get(above) {
                return files;
            }
            folder = above;
        }
        &[]
    }
}

/// What a folder and the folders in it have to test.
pub fn search(arguments: &Arguments) -> Result<Found, Failure> {
    let mut found = Found::default();
    for path in tree(&arguments.folder)? {
        if path.extension().is_some_and(|ending| ending == "dl") {
            found.rules.entry(path.parent().unwrap_or(Path::new("")).to_owned()).or_default().push(path);
            continue;
        }
        let Some((stem, table)) = stem(&path) else { continue };
        let beside = path.parent().unwrap_or(Path::new(""));
        let accepted = match arguments.snapshots.as_deref() {
            // In one folder names have to tell where the traces lie.
            Some(snapshots) => {
                let here = arguments.folder == Path::new(".");
                let way = if here { Ok(beside) } else { beside.strip_prefix(&arguments.folder) };
                let way = way.unwrap_or(Path::new(""));
                let parts: Vec<_> = way.iter().map(OsStr::to_string_lossy).chain([stem.as_str().into()]).collect();
                snapshots.join(format!("{}{ACCEPTED}", parts.join("-")))
            }
            None => beside.join(format!("{stem}{ACCEPTED}")),
        };
        let meter: Arc<dyn Meter> = Arc::new(());
        let format =
            open_one(&input::input(&path), None, &reading(&arguments.reading), &meter).map(|open| open.format());
        // What was once accepted as a trace is one, whatever became of it.
        if table && format.is_err() && !accepted.exists() {
            found.others.push(path);
            continue;
        }
        let messages = format.is_ok_and(dyelog::trace::Format::has_messages);
        found.traces.push(Golden { trace: path, stem, accepted, messages });
    }
    found.traces.sort_by(|left, right| left.trace.cmp(&right.trace));
    refuse_shared(&found.traces)?;
    Ok(found)
}

/// The name of a trace without its ending, and whether its content has to say that it is one.
pub fn stem(path: &Path) -> Option<(String, bool)> {
    let name = path.file_name()?.to_string_lossy();
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let without = |endings: &[&str]| endings.iter().find_map(|ending| plain.strip_suffix(ending)).map(str::to_owned);
    without(&ENDINGS).map(|stem| (stem, false)).or_else(|| Some((without(&TABLES)?, true)))
}

/// Whether a test reads a file, by its name: traces, rule files, configurations, accepted models.
pub fn is_read(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    [".dl", ".toml", ACCEPTED].iter().any(|ending| name.ends_with(ending)) || stem(path).is_some()
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

/// The accepted models that no trace belongs to. `NAME.OTHER.model.snap` is one of `NAME`, too, made in another way.
pub fn orphans(all: &[Golden], arguments: &Arguments) -> Result<Vec<PathBuf>, Failure> {
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
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The files of a folder and of the folders in it, hidden ones left out, sorted.
pub fn tree(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for path in files(&folder)? {
            if !path.is_dir() {
                found.push(path);
            } else if depth < DEPTH {
                open.push((path, depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
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
