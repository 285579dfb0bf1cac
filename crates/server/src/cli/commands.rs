//! Commands of `dyelog`, run on what a period recorded.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::{self, ExitCode, ExitStatus, Output, Stdio};

use dyelog::diagnostic::quantity::{counted, in_ms};
use dyelog::lqn;
use dyelog_server::recorded::Recorded;
use dyelog_server::service::wall_clock;
use dyelog_server::spans::each_span;

use super::Outcome;

/// Arguments of `dyelog diff` that are of no model, and of `dyelog validate`.
const OF_DIFF: [&str; 4] = ["--tolerance", "--absolute", "--format", "--output"];
const OF_VALIDATE: [&str; 7] =
    ["--against", "--within", "--format", "--output", "--utilisation", "--utilization", "--metrics"];
/// What is about models alone: a model file goes without it.
const OF_MODELS: [&str; 2] = ["--config", "--rules"];
/// What all commands take.
const OF_ALL: [&str; 3] = ["--color", "--quiet", "-q"];

/// How many traces are named.
const NAMED: usize = 3;

/// Runs a command on sub-models. The program lies beside this one, or where programs lie.
pub fn run(command: &str, inputs: &[impl AsRef<[u8]>], utilisation: &str, arguments: &[OsString]) -> Outcome {
    in_folder(|folder| {
        let mut files = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            files.push(write(folder.join(name(number, inputs.len())), input)?);
        }
        if !utilisation.is_empty() {
            files.extend(["--utilisation".into(), write(folder.join("metrics"), utilisation)?]);
        }
        dyelog(folder, command, &files, arguments)
    })
}

/// Explains what of a period's model, by traces that were kept of it, and says what the model of all of it has there.
pub fn explain(exemplars: &[u8], period: &Recorded, arguments: &[OsString]) -> Outcome {
    in_folder(|folder| {
        let kept = write(folder.join("exemplars"), exemplars)?;
        let mut told = format!("{}\n", traces(exemplars));
        if let Some(name) = asked(arguments) {
            let (model, quiet) = (folder.join("period.json"), "--quiet".into());
            let output = [quiet, "--format".into(), "json".into(), "--output".into(), model.clone().into_os_string()];
            let mut files = vec![write(folder.join("period"), period.content())?];
            if !period.utilisation.is_empty() {
                files.extend(["--utilisation".into(), write(folder.join("metrics"), &period.utilisation)?]);
            }
            let made = finished(program("model").args(&files).args(&output))?;
            let text = fs::read_to_string(&model).ok().filter(|_| made.status.success());
            let mean = text.and_then(|text| demand(&text, &name));
            if let Some((entry, mean)) = mean {
                told.push_str(&format!(
                    "in the model of the whole period the demand of {entry} is {} ms\n",
                    in_ms(mean)
                ));
            }
        }
        let output = finished(program("explain").arg(&kept).args(arguments))?;
        let (text, errors) = (named(folder, output.stdout), named(folder, output.stderr));
        // What programs read is left as it is.
        if arguments.iter().any(|word| word.to_string_lossy().contains("json")) {
            eprint!("{told}");
        } else if output.status.success() {
            println!("{told}");
        }
        put(&text, &errors)?;
        Ok(code(output.status))
    })
}

/// Which traces were kept, of which all figures that follow are.
fn traces(exemplars: &[u8]) -> String {
    let mut ids: BTreeSet<u128> = BTreeSet::new();
    // What is kept was received, and can be read.
    let _ = each_span(exemplars, |_, span| ids.extend(span.ok().map(|span| span.trace)));
    let named: Vec<String> = ids.iter().take(NAMED).map(|id| format!("{id:032x}")).collect();
    let others = if ids.len() > NAMED { format!(" and {} more", ids.len() - NAMED) } else { String::new() };
    let what = counted(ids.len() as u64, "exemplar");
    format!("by {what} of the period, whose figures these are: {}{others}", named.join(", "))
}

/// The entry that is asked about.
fn asked(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let (option, value) = word.split_once('=').map_or((&*word, None), |(option, value)| (option, Some(value)));
        if ["--demand", "--entry"].contains(&option) {
            return value.map(str::to_owned).or_else(|| words.next().map(Cow::into_owned));
        }
    }
    None
}

/// An entry of a model, and its demand: all of its phases, or of the activities that answer it.
fn demand(text: &str, name: &str) -> Option<(String, f64)> {
    let (model, _) = lqn::parse_any("the model", text).ok()?;
    let task = |entry: &lqn::Entry| &model.tasks[entry.task.index()];
    let is_meant = |entry: &&lqn::Entry| *entry.name == *name || format!("{}@{}", entry.name, task(entry).name) == name;
    let entry = model.entries.iter().find(is_meant)?;
    let seconds = match &entry.body {
        lqn::Body::Phases(phases) => phases.iter().map(|work| work.demand).sum(),
        // Those of one entry begin with its name.
        lqn::Body::Activities(_) => {
            let own = task(entry).activities.iter().map(|activity| &model.activities[activity.index()]);
            own.filter(|own| own.name.starts_with(&*entry.name)).map(|own| own.work.demand).sum()
        }
    };
    Some((entry.name.to_string(), seconds))
}

/// Compares two periods.
pub fn diff(periods: [&Recorded; 2], arguments: &[OsString]) -> Outcome {
    let takes = |own: &str| (!OF_DIFF.contains(&own), OF_DIFF.contains(&own));
    in_folder(|folder| on_models("diff", &periods, folder, arguments, takes))
}

/// Holds the model of a period against traces; without any, against another period, or against what the period itself recorded.
pub fn validate(period: &Recorded, other: Option<&Recorded>, arguments: &[OsString]) -> Outcome {
    let takes = |own: &str| (!OF_VALIDATE.contains(&own), !OF_MODELS.contains(&own));
    let has_traces = arguments.iter().any(|word| word.to_string_lossy().starts_with("--against"));
    if has_traces && other.is_none() {
        return in_folder(|folder| on_models("validate", &[period], folder, arguments, takes));
    }
    let own = other.unwrap_or(period);
    in_folder(|folder| {
        let mut all = vec!["--against".into(), write(folder.join("recorded"), own.content())?.into()];
        if !own.utilisation.is_empty() {
            all.extend(["--utilisation".into(), write(folder.join("metrics"), &own.utilisation)?.into()]);
        }
        all.extend_from_slice(arguments);
        on_models("validate", &[period], folder, &all, takes)
    })
}

/// Runs a command that takes no metrics of what it is about, in a folder: on models, where metrics tell of them. `takes` says of an argument whether it
/// is for what makes a model, and whether it is for the command.
fn on_models(
    command: &str,
    periods: &[&Recorded],
    folder: &Path,
    arguments: &[OsString],
    takes: impl Fn(&str) -> (bool, bool),
) -> Outcome {
    if periods.iter().all(|own| own.utilisation.is_empty()) {
        let file = |(number, own): (usize, &&Recorded)| write(folder.join(name(number, periods.len())), own.content());
        let files: Vec<PathBuf> = periods.iter().enumerate().map(file).collect::<Result<_, _>>()?;
        return dyelog(folder, command, &files, arguments);
    }
    let (mut of_model, mut of_command) = (Vec::new(), Vec::new());
    let mut taken = (false, true);
    for word in arguments {
        let text = word.to_string_lossy();
        // What follows an option is its value.
        if text.starts_with('-') {
            let own = text.split('=').next().unwrap_or_default();
            let own = if own.starts_with("-o") { "--output" } else { own };
            taken = if OF_ALL.contains(&own) { (true, true) } else { takes(own) };
        }
        of_model.extend(taken.0.then(|| word.clone()));
        of_command.extend(taken.1.then(|| word.clone()));
    }
    let mut models = Vec::new();
    for (number, own) in periods.iter().enumerate() {
        let name = name(number, periods.len());
        let mut files = vec![write(folder.join(&name), own.content())?];
        if !own.utilisation.is_empty() {
            files.extend(["--utilisation".into(), write(folder.join("metrics"), &own.utilisation)?]);
        }
        let model = folder.join(format!("{name}.json"));
        let output = ["--format".into(), "json".into(), "--output".into(), model.clone().into_os_string()];
        let made = dyelog(folder, "model", &files, &[&of_model[..], &output].concat())?;
        if made != ExitCode::SUCCESS {
            return Ok(made);
        }
        models.push(model);
    }
    dyelog(folder, command, &models, &of_command)
}

/// What the file of a period is called.
fn name(number: usize, of: usize) -> String {
    if of == 1 { "period".to_owned() } else { format!("period-{}", number + 1) }
}

/// Does something in a folder of its own.
fn in_folder(act: impl FnOnce(&Path) -> Outcome) -> Outcome {
    let folder = env::temp_dir().join(format!("dyelog-period-{}-{}", process::id(), wall_clock()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let outcome = act(&folder);
    // What stays behind in a folder for scratch files does no harm.
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn write(path: PathBuf, content: impl AsRef<[u8]>) -> Result<PathBuf, String> {
    fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Runs a command on files of a folder, and prints what it says.
fn dyelog(folder: &Path, command: &str, files: &[PathBuf], arguments: &[OsString]) -> Outcome {
    let mut program = program(command);
    // What it writes goes through this program: it does not see the terminal.
    let is_told = arguments.iter().any(|word| word.to_string_lossy().starts_with("--color"));
    let is_terminal = io::stdout().is_terminal() && io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none();
    if is_terminal && !is_told {
        program.args(["--color", "always"]);
    }
    let output = finished(program.args(files).args(arguments))?;
    put(&named(folder, output.stdout), &named(folder, output.stderr))?;
    Ok(code(output.status))
}

/// What a command came to.
fn finished(program: &mut process::Command) -> Result<Output, String> {
    let output = program.stdin(Stdio::null()).output();
    output.map_err(|error| format!("{} cannot be started: {error}", program.get_program().display()))
}

/// What a command said, with the names that its files have for people: the folder is gone when anybody reads of it.
fn named(folder: &Path, said: Vec<u8>) -> Vec<u8> {
    let within = format!("{}{MAIN_SEPARATOR}", folder.display());
    match String::from_utf8(said) {
        Ok(text) => text.replace(&within, "").into_bytes(),
        Err(bytes) => bytes.into_bytes(),
    }
}

/// Prints; that nobody reads on is no failure.
fn put(text: &[u8], errors: &[u8]) -> Result<(), String> {
    let written = io::stderr().write_all(errors).and_then(|()| io::stdout().write_all(text));
    written.and_then(|()| io::stdout().flush()).or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error.to_string()),
    })
}

/// A command of `dyelog`, which lies beside this program, or where programs lie.
fn program(command: &str) -> process::Command {
    let name = if cfg!(windows) { "dyelog.exe" } else { "dyelog" };
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name))).filter(|path| path.is_file());
    let mut program = process::Command::new(beside.unwrap_or_else(|| name.into()));
    program.arg(command);
    program
}

fn code(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}
