//! `dyelog-server period`: intervals, and what `dyelog` makes of them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};

use clap::{Args, Subcommand};
use dyelog::lqn::saved;
use dyelog::lqn::submodel::SubModel;
use dyelog::model::utilisation::{Series, Unit};
use dyelog_server::period::{Period, imported, intervals_json, written};
use dyelog_server::service::wall_clock;
use dyelog_server::store::{Store, StoreError};

use super::Outcome;

/// Arguments of `dyelog-server period`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    question: Question,
}

/// A store and a period.
#[derive(Debug, Args)]
struct Which {
    /// The file that keeps the sub-models
    #[arg(long, value_name = "FILE", default_value = "dyelog.db")]
    store: PathBuf,
    /// The begin: 2026-02-15T21:16:00Z, seconds since 1970, or `-2h` for two hours ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// The end, likewise
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

/// A store, a period, and what a command of `dyelog` takes.
#[derive(Debug, Args)]
struct Asked {
    #[command(flatten)]
    which: Which,
    /// Arguments of the command of `dyelog`, after `--`
    #[arg(value_name = "ARGUMENTS", last = true)]
    arguments: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// The intervals that have anything
    List {
        #[command(flatten)]
        which: Which,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Prints the sub-model of a period, which all commands of `dyelog` read
    Export(Which),
    /// Adds saved sub-models to the intervals in which they begin
    Import {
        /// The file that keeps the sub-models
        #[arg(long, value_name = "FILE", default_value = "dyelog.db")]
        store: PathBuf,
        /// Saved sub-models
        #[arg(value_name = "SUBMODEL", required = true)]
        files: Vec<PathBuf>,
    },
    /// Deletes the intervals that lie in a period
    Delete(Which),
    /// Prints the model of a period: `dyelog model`
    Model(Asked),
    /// Solves the model of a period: `dyelog solve`
    Solve(Asked),
    /// Asks what if of a period: `dyelog whatif`
    Whatif(Asked),
    /// Holds a model of a period against traces: `dyelog validate`
    Validate(Asked),
    /// Reports on a period: `dyelog report`
    Report(Asked),
    /// Compares two periods: `dyelog diff`
    Diff {
        #[command(flatten)]
        asked: Asked,
        /// The begin of the other period
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        other_from: Option<String>,
        /// The end of the other period
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        other_to: Option<String>,
    },
}

/// Answers.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.question {
        Question::List { which, json } => list(which, *json),
        Question::Export(which) => print(&which.submodel()?),
        Question::Import { store, files } => import(store, files),
        Question::Delete(which) => delete(which),
        Question::Model(asked) => asked.run_metered("model"),
        Question::Solve(asked) => asked.run_metered("solve"),
        Question::Whatif(asked) => asked.run_metered("whatif"),
        Question::Validate(asked) => asked.run("validate"),
        Question::Report(asked) => asked.run_metered("report"),
        Question::Diff { asked, other_from, other_to } => {
            let other = Which { store: asked.which.store.clone(), from: other_from.clone(), to: other_to.clone() };
            dyelog("diff", &[asked.which.submodel()?, other.submodel()?], "", &asked.arguments)
        }
    }
}

impl Which {
    fn period(&self) -> Result<Period, String> {
        Period::parse(self.from.as_deref(), self.to.as_deref(), wall_clock())
    }

    fn failed(&self) -> impl Fn(StoreError) -> String {
        let path = self.store.display().to_string();
        move |error| format!("{path}: {error}")
    }

    fn open(&self) -> Result<Store, String> {
        Store::read(&self.store).map_err(self.failed())
    }

    fn submodel(&self) -> Result<String, String> {
        self.recorded().map(|(submodel, merge)| saved::write(&submodel, &merge))
    }

    fn recorded(&self) -> Result<(SubModel, String), String> {
        let period = self.period()?;
        let found = self.open()?.period(period.from, period.to).map_err(self.failed())?;
        found.ok_or_else(|| {
            "nothing was recorded in this period\n  hint: `dyelog-server period list` shows the intervals that have anything"
                .to_owned()
        })
    }
}

impl Asked {
    fn run(&self, command: &str) -> Outcome {
        dyelog(command, &[self.which.submodel()?], "", &self.arguments)
    }

    /// The same of a command that takes utilisation: with what metrics tell of the period.
    fn run_metered(&self, command: &str) -> Outcome {
        let period = self.which.period()?;
        let metered = self.which.open()?.metered(period.from, period.to).map_err(self.which.failed())?;
        let (mut submodel, merge) = self.which.recorded()?;
        let utilisation = exposed(&metered.apply(&mut submodel));
        dyelog(command, &[saved::write(&submodel, &merge)], &utilisation, &self.arguments)
    }
}

/// Utilisation as Prometheus text: each metric keeps a name of its own, so that none is added to another.
fn exposed(series: &[Series]) -> String {
    let mut text = String::new();
    for (number, own) in series.iter().enumerate() {
        let plain: String =
            own.metric.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let name = match own.unit {
            Unit::Seconds | Unit::Cores => format!("{plain}_cpu_seconds_total"),
            Unit::Share => format!("process_cpu_utilization_{plain}_of_all"),
        };
        let processor = own.resources[0].replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        for (time, value) in &own.samples {
            let milliseconds = (time * 1e3).round();
            text.push_str(&format!("{name}{{processor=\"{processor}\",series=\"{number}\"}} {value} {milliseconds}\n"));
        }
    }
    text
}

fn print(text: &str) -> Outcome {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(format!("the output cannot be written: {error}")),
    }
}

fn list(which: &Which, json: bool) -> Outcome {
    let period = which.period()?;
    let intervals = which.open()?.intervals(period.from, period.to).map_err(which.failed())?;
    if json {
        return print(&format!("{:#}\n", intervals_json(&intervals)));
    }
    let mut text = format!("{:<20}  {:>8}  {:>10}  {:>10}\n", "start", "seconds", "spans", "bytes");
    for interval in &intervals {
        let (start, seconds) = (written(interval.start), interval.length / 1_000_000_000);
        text.push_str(&format!("{start:<20}  {seconds:>8}  {:>10}  {:>10}\n", interval.spans, interval.bytes));
    }
    print(&text)
}

fn delete(which: &Which) -> Outcome {
    if which.from.is_none() && which.to.is_none() {
        return Err("say what to delete: `--from` or `--to`".to_owned());
    }
    let period = which.period()?;
    let deleted = which.open()?.delete(period.from, period.to).map_err(which.failed())?;
    print(&format!("deleted {deleted} intervals\n"))
}

fn import(store: &Path, files: &[PathBuf]) -> Outcome {
    let mut opened = Store::open(store).map_err(|error| format!("{}: {error}", store.display()))?;
    for file in files {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
        let found = imported(&file.display().to_string(), &text).map_err(|why| failed(&why))?;
        opened.add(found.start, wall_clock(), &found.submodel, &found.merge).map_err(|error| failed(&error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a command of `dyelog` on sub-models. It lies beside this program, or where programs lie.
fn dyelog(command: &str, submodels: &[String], utilisation: &str, arguments: &[OsString]) -> Outcome {
    let folder = env::temp_dir().join(format!("dyelog-period-{}-{}", process::id(), wall_clock()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let outcome = run_in(&folder, command, submodels, utilisation, arguments);
    // What stays behind in a folder for scratch files does no harm.
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, String> {
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn run_in(folder: &Path, command: &str, submodels: &[String], utilisation: &str, arguments: &[OsString]) -> Outcome {
    let mut files = Vec::new();
    for (number, submodel) in submodels.iter().enumerate() {
        let name = if submodels.len() == 1 { "period".to_owned() } else { format!("period-{}", number + 1) };
        files.push(write(folder.join(name), submodel)?);
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
