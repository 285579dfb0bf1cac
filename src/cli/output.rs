//! Where data goes: standard output, or a file that appears only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use dyelog::diagnostic::{Diagnostic, Place};

use crate::cli::args::OutputArguments;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, interrupt};

/// A place for data.
pub struct Output {
    sink: Sink,
    name: String,
}

enum Sink {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A device or a pipe, which cannot be replaced.
    Direct(BufWriter<File>),
    /// A file beside its final place.
    Beside(Box<Beside>),
}

struct Beside {
    writer: Option<BufWriter<File>>,
    path: PathBuf,
    target: PathBuf,
}

/// Writes a whole text to where `-o` asks for, standard output otherwise.
pub fn write(arguments: &OutputArguments, text: &str) -> Result<(), Failure> {
    let mut output = Output::open(arguments)?;
    output.text(text)?;
    output.finish()
}

/// Refuses a file that cannot be written, before any work is done for it; leaves nothing behind.
pub fn check(path: &Path) -> Result<(), Failure> {
    // A pipe ends for its reader when it is opened and closed; a device may do anything.
    let direct = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if direct || path == Path::new("-") {
        return Ok(());
    }
    open(path).map(drop).map_err(|error| unwritable(&path.display().to_string(), &error).into())
}

/// The form that was asked for, else that of the output file's ending, else the usual one.
pub fn form<F: ValueEnum + Copy>(given: Option<F>, usual: F, arguments: &OutputArguments) -> Result<F, Failure> {
    let endings = |form: F| form.to_possible_value().map_or(&[][..], |value| endings(value.get_name()));
    let others = F::value_variants().iter().copied().filter(|form| endings(*form) != endings(usual));
    let forms: Vec<(&[&str], F)> = std::iter::once(usual).chain(others).map(|form| (endings(form), form)).collect();
    form_of(given, arguments, &forms)
}

/// Endings of the files of a form that arguments name so.
fn endings(form: &str) -> &'static [&'static str] {
    match form {
        "text" | "plot" => &["txt"],
        "json" => &["json"],
        "jsonl" => &["jsonl"],
        "csv" => &["csv"],
        "xml" | "junit" => &["xml"],
        "svg" => &["svg"],
        "dot" => &["dot", "gv"],
        "folded" => &["folded"],
        "pprof" => &["pprof", "pb"],
        "markdown" => &["md"],
        "roff" => &["1", "man", "roff"],
        _ => &[],
    }
}

/// Refuses an output file with another ending than these, which are those of all that a command writes.
pub fn only(arguments: &OutputArguments, endings: &[&str]) -> Result<(), Failure> {
    let Some(ending) = arguments.output.as_deref().and_then(Path::extension) else { return Ok(()) };
    let ending = ending.to_string_lossy().to_lowercase();
    if endings.contains(&&*ending) { Ok(()) } else { Err(unknown_ending(arguments, &ending, endings, false)) }
}

/// That a file has an ending of no form that can be written, and which there are.
fn unknown_ending(arguments: &OutputArguments, ending: &str, endings: &[&str], is_chosen: bool) -> Failure {
    let known: Vec<String> = endings.iter().map(|own| format!("`.{own}`")).collect();
    let path = arguments.output.as_deref().unwrap_or_else(|| Path::new("-"));
    let place = Place::File { file: path.display().to_string().into() };
    let message = format!("`.{ending}` is the ending of no form that can be written");
    let finding = Diagnostic::error(codes::OTHER_NAME, place, message);
    let finding = finding.with_note(format!("the endings are {}", known.join(", ")));
    let finding = if is_chosen {
        finding.with_hint("name the form by `--format`")
    } else if known.iter().any(|own| own == "`.svg`") {
        finding.with_hint("name it `.svg`; browsers and `rsvg-convert` make other pictures of it")
    } else {
        finding.with_hint(format!("name it {}", known[0]))
    };
    finding.into()
}

/// The form that was asked for, else that of the output file's ending; `forms` gives the endings of each, the first of which
/// is that of a file without one.
pub fn form_of<F: Copy>(given: Option<F>, arguments: &OutputArguments, forms: &[(&[&str], F)]) -> Result<F, Failure> {
    if let Some(form) = given {
        return Ok(form);
    }
    let usual = forms[0].1;
    let Some(path) = arguments.output.as_deref() else { return Ok(usual) };
    let Some(ending) = path.extension() else { return Ok(usual) };
    let ending = ending.to_string_lossy().to_lowercase();
    let own = forms.iter().find(|(endings, _)| endings.contains(&&*ending)).map(|(_, form)| *form);
    let known: Vec<&str> = forms.iter().flat_map(|(own, _)| *own).copied().collect();
    own.ok_or_else(|| unknown_ending(arguments, &ending, &known, true))
}

/// Endings of files by which programs tell their format.
const ENDINGS: [&str; 16] =
    ["svg", "png", "jpg", "jpeg", "gif", "webp", "bmp", "pdf", "ps", "eps", "dot", "gv", "json", "csv", "html", "htm"];

/// Warns where the output's name has the ending of another format than the one that is written, whose own are given.
pub fn check_ending(arguments: &OutputArguments, own: &[&str], terminal: &Terminal) {
    let Some(path) = arguments.output.as_deref() else { return };
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    if own.contains(&&*ending) || !ENDINGS.contains(&&*ending) {
        return;
    }
    let place = Place::File { file: path.display().to_string().into() };
    let message = format!("what is written is {}, whatever the name of the file says", own[0].to_uppercase());
    let finding = Diagnostic::warning(codes::OTHER_NAME, place, message);
    terminal.report(&[if own.contains(&"svg") {
        finding.with_hint("name it `.svg`; browsers and `rsvg-convert` make other pictures of it")
    } else {
        finding.with_hint(format!("name it `.{}`", own[0]))
    }]);
}

impl Output {
    /// Opens what `-o` asks for, standard output otherwise.
    pub fn open(arguments: &OutputArguments) -> Result<Self, Failure> {
        let Some(path) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) else {
            return Ok(Self {
                sink: Sink::Stdout(BufWriter::new(io::stdout().lock())),
                name: "standard output".to_owned(),
            });
        };
        let name = path.display().to_string();
        match open(path) {
            Ok(sink) => Ok(Self { sink, name }),
            Err(error) => Err(unwritable(&name, &error).into()),
        }
    }

    /// Writes a whole text.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.attempt(|writer| writer.write_all(text.as_bytes()))
    }

    /// Writes by means of a function.
    pub fn attempt<T>(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T, Failure> {
        let result = match &mut self.sink {
            Sink::Stdout(writer) => write(writer),
            Sink::Direct(writer) => write(writer),
            Sink::Beside(beside) => match &mut beside.writer {
                Some(writer) => write(writer),
                None => Err(io::Error::other("already finished")),
            },
        };
        result.map_err(|error| failure(&self.name, &error))
    }

    /// Puts everything in its place.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.attempt(|writer| writer.flush())?;
        if let Sink::Beside(beside) = &mut self.sink {
            beside.place().map_err(|error| failure(&self.name, &error))?;
        }
        Ok(())
    }
}

impl Beside {
    fn place(&mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
        }
        fs::rename(&self.path, &self.target)?;
        interrupt::forget(&self.path);
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // Given up before it was complete: nobody shall find the pieces.
            let _ = fs::remove_file(&self.path);
            interrupt::forget(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<Sink> {
    // A link keeps pointing where it pointed: what it points at is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = match fs::metadata(&target) {
        Ok(metadata) if metadata.is_dir() => return Err(io::Error::other("it is a folder")),
        Ok(metadata) if !metadata.is_file() => {
            return Ok(Sink::Direct(BufWriter::new(File::options().write(true).open(&target)?)));
        }
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut name = OsString::from(".");
    name.push(target.file_name().ok_or_else(|| io::Error::other("it names no file"))?);
    name.push(format!(".{}.part", std::process::id()));
    let beside = target.with_file_name(name);
    interrupt::remember(&beside);
    let file =
        File::options().write(true).create_new(true).open(&beside).inspect_err(|_| interrupt::forget(&beside))?;
    let sink = Beside { writer: Some(BufWriter::new(file)), path: beside, target };
    if let Some(metadata) = existing {
        if metadata.permissions().readonly() {
            return Err(io::Error::from(ErrorKind::PermissionDenied));
        }
        fs::set_permissions(&sink.path, metadata.permissions())?;
    }
    Ok(Sink::Beside(Box::new(sink)))
}

fn failure(name: &str, error: &io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe { Failure::Closed } else { unwritable(name, error).into() }
}

fn unwritable(name: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::error(
        codes::UNWRITABLE,
        Place::File { file: name.into() },
        format!("the output cannot be written: {error}"),
    )
}
