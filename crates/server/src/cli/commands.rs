//! Commands of `dyelog`, run on what a period recorded.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};

use dyelog_server::recorded::Recorded;
use dyelog_server::service::wall_clock;

use super::Outcome;

/// Arguments of `dyelog diff` that are of no model, and of `dyelog validate`.
const OF_DIFF: [&str; 4] = ["--tolerance", "--absolute", "--format", "--output"];
const OF_VALIDATE: [&str; 7] =
    ["--against", "--within", "--format", "--output", "--utilisation", "--utilization", "--metrics"];
/// What is about models alone: a model file goes without it.
const OF_MODELS: [&str; 2] = ["--config", "--rules"];
/// What all commands take.
const OF_ALL: [&str; 3] = ["--color", "--quiet", "-q"];

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
        dyelog(command, &files, arguments)
    })
}

/// Compares two periods.
pub fn diff(periods: [&Recorded; 2], arguments: &[OsString]) -> Outcome {
    on_models("diff", &periods, arguments, |own| (!OF_DIFF.contains(&own), OF_DIFF.contains(&own)))
}

/// Holds a period against traces.
pub fn validate(period: &Recorded, arguments: &[OsString]) -> Outcome {
    on_models("validate", &[period], arguments, |own| (!OF_VALIDATE.contains(&own), !OF_MODELS.contains(&own)))
}

/// Runs a command that takes no metrics of what it is about: on models, where metrics tell of them. `takes` says of an argument whether it
/// is for what makes a model, and whether it is for the command.
fn on_models(
    command: &str,
    periods: &[&Recorded],
    arguments: &[OsString],
    takes: impl Fn(&str) -> (bool, bool),
) -> Outcome {
    if periods.iter().all(|own| own.utilisation.is_empty()) {
        let submodels: Vec<&str> = periods.iter().map(|own| &*own.submodel).collect();
        return run(command, &submodels, "", arguments);
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
    in_folder(|folder| {
        let mut models = Vec::new();
        for (number, own) in periods.iter().enumerate() {
            let name = name(number, periods.len());
            let mut files = vec![write(folder.join(&name), &own.submodel)?];
            if !own.utilisation.is_empty() {
                files.extend(["--utilisation".into(), write(folder.join("metrics"), &own.utilisation)?]);
            }
            let model = folder.join(format!("{name}.json"));
            let output = ["--format".into(), "json".into(), "--output".into(), model.clone().into_os_string()];
            let made = dyelog("model", &files, &[&of_model[..], &output].concat())?;
            if made != ExitCode::SUCCESS {
                return Ok(made);
            }
            models.push(model);
        }
        dyelog(command, &models, &of_command)
    })
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

fn write(path: PathBuf, text: impl AsRef<[u8]>) -> Result<PathBuf, String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn dyelog(command: &str, files: &[PathBuf], arguments: &[OsString]) -> Outcome {
    let name = if cfg!(windows) { "dyelog.exe" } else { "dyelog" };
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name))).filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| name.into());
    let status = process::Command::new(&program)
        .arg(command)
        .args(files)
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}
