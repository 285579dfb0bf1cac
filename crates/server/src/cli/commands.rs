//! Commands of `dyelog`, run on what a period recorded.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};

use dyelog_server::service::wall_clock;

use super::Outcome;

/// Runs a command on sub-models. The program lies beside this one, or where programs lie.
pub fn run(command: &str, inputs: &[impl AsRef<[u8]>], utilisation: &str, arguments: &[OsString]) -> Outcome {
    let folder = env::temp_dir().join(format!("dyelog-period-{}-{}", process::id(), wall_clock()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let outcome = run_in(&folder, command, inputs, utilisation, arguments);
    // What stays behind in a folder for scratch files does no harm.
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn write(path: PathBuf, text: impl AsRef<[u8]>) -> Result<PathBuf, String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn run_in(
    folder: &Path,
    command: &str,
    inputs: &[impl AsRef<[u8]>],
    utilisation: &str,
    arguments: &[OsString],
) -> Outcome {
    let mut files = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let name = if inputs.len() == 1 { "period".to_owned() } else { format!("period-{}", number + 1) };
        files.push(write(folder.join(name), input)?);
    }
    if !utilisation.is_empty() {
        files.extend(["--utilisation".into(), write(folder.join("metrics"), utilisation)?]);
    }
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
