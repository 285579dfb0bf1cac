//! Files to read, `-` being standard input.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::pipeline::{Input, Reader};

use crate::cli::{Failure, archive, codes, glob, stdin};

/// The name of a file as diagnostics show it.
pub fn shown(path: &Path) -> Arc<str> {
    if is_stdin(path) { "standard input".into() } else { path.display().to_string().into() }
}

/// Whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file as an input of the library.
pub fn input(path: &Path) -> Input {
    let regular = || std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let length = (!is_stdin(path)).then(regular).flatten().map(|file| file.len());
    let own = path.to_owned();
    Input::opened_by(&shown(path), length, move || opened(&own))
}

/// Files as inputs of the library. A folder stands for all files in it and in its folders, and a pattern for those whose names fit, both in the order of
/// their names; an archive (tar, zip) for those in it. What is no trace among them is left out later. A file that lies beside one and says what is in it is
/// read, too.
pub fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    let patterns = |path: &PathBuf| {
        let is_pattern = !is_stdin(path) && glob::is_pattern(&path.to_string_lossy()) && !path.exists();
        let fitting = if is_pattern { glob::files(path) } else { Vec::new() };
        if fitting.is_empty() { vec![path.clone()] } else { fitting }
    };
    let named: Vec<PathBuf> = paths.iter().flat_map(patterns).collect();
    let mut known: HashSet<PathBuf> = named.iter().cloned().collect();
    let with_companion = |path: &PathBuf| {
        let beside = companion(path).filter(|beside| known.insert(beside.clone()));
        [inputs_of(path), beside.iter().map(|beside| input(beside).found()).collect()].concat()
    };
    named.iter().flat_map(with_companion).collect()
}

/// The file beside a piece of a log of Kieker, or of a block of Tempo, that says what is in it.
fn companion(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy();
    let is_log = name.split('.').skip(1).any(|part| matches!(part, "dat" | "bin"));
    let companions: &[&str] = match &*name {
        "data.parquet" => &["meta.json"],
        _ if is_log => &["kieker.map", "tpmon.map"],
        _ => &[],
    };
    companions.iter().map(|name| path.with_file_name(name)).find(|beside| beside.is_file())
}

/// How many bytes a path stands for: those of a file, or of all files of a folder or a pattern; `None` where that is not known.
pub fn length(path: &Path) -> Option<u64> {
    let length = |file: PathBuf| std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    let all = || if path.exists() { files_of(path) } else { glob::files(path) };
    (!is_stdin(path)).then(all).filter(|files| !files.is_empty())?.into_iter().map(length).sum()
}

fn inputs_of(path: &Path) -> Vec<Input> {
    if is_stdin(path) {
        return inputs_of_stdin(path);
    }
    let is_folder = path.is_dir();
    let each = |file: PathBuf| {
        let regular = std::fs::metadata(&file).is_ok_and(|own| own.is_file());
        let (name, own) = (shown(&file), file.clone());
        let inside = regular.then(|| archive::inputs(&name, move || File::open(&own))).flatten();
        let inside = inside.filter(|own| !own.is_empty());
        inside.unwrap_or_else(|| vec![if is_folder { input(&file).found() } else { input(&file) }])
    };
    files_of(path).into_iter().flat_map(each).collect()
}

fn inputs_of_stdin(path: &Path) -> Vec<Input> {
    let name = shown(path);
    let kept = || stdin::archive().and_then(|kept| kept.ok_or_else(|| io::ErrorKind::NotFound.into()));
    match stdin::archive() {
        Ok(None) => vec![input(path)],
        // What is like an archive and has no files is read as it is, and refused as such.
        Ok(Some(kept_now)) => archive::inputs(&name, kept).filter(|own| !own.is_empty()).unwrap_or_else(|| {
            vec![Input::opened_by(&name, Some(kept_now.length()), move || Ok(Box::new(kept()?) as Reader))]
        }),
        Err(error) => {
            let (kind, message) = (error.kind(), error.to_string());
            vec![Input::opened_by(&name, None, move || Err(io::Error::new(kind, message.clone())))]
        }
    }
}

/// The files of a folder, but for hidden ones; the path itself where it is none, or there is nothing to read in it.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
            // A link to a folder may lead round in a circle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ if entry.path().is_dir() => {}
                _ => files.push(entry.path()),
            }
        }
    }
    files.sort();
    if files.is_empty() { vec![path.to_owned()] } else { files }
}

fn opened(path: &Path) -> io::Result<Reader> {
    if is_stdin(path) {
        return Ok(stdin::open());
    }
    let file = File::open(path)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(io::Error::other("it is a folder without any files"));
    }
    Ok(Box::new(file))
}

/// Opens a file.
pub fn open(path: &Path) -> Result<Reader, Diagnostic> {
    input(path).open()
}

/// The first bytes of a file, and the whole of it, those bytes included.
pub fn peek(path: &Path) -> Result<(Vec<u8>, Reader), Diagnostic> {
    input(path).peek()
}

/// The text of a file.
pub fn text(path: &Path) -> Result<String, Diagnostic> {
    input(path).text()
}

/// Refuses to read standard input twice.
pub fn check_stdin_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    if paths.into_iter().filter(|path| is_stdin(path)).count() > 1 {
        let message = "standard input is named more than once, but can be read only once";
        return Err(Diagnostic::error(codes::STDIN_TWICE, Place::Nowhere, message).into());
    }
    Ok(())
}
