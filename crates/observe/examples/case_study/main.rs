//! A three-tiered system that is observed while it runs: the case study of M. Qin and others (1996), §6, with times divided by a hundred.
//!
//! `cargo run -p dyelog-observe --example case_study -- table`, `-- whatif` or `-- row --clients 10 --threads 3`; see `README.md` beside this file.

mod tiers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dyelog_lqn::model::{Model, Multiplicity, Processor, Scheduling};
use dyelog_lqn::results::Results;
use dyelog_observe::json;
use dyelog_observe::model::{Options, PeriodModel, Subject, build};
use dyelog_observe::observation::NANO;
use dyelog_observe::period::Period;
use dyelog_observe::system::System;
use dyelog_solve::{SimulateOptions, SolveOptions, solve};

/// Rows of Table 1: clients and threads of both servers.
const TABLE: [(u32, u32); 6] = [(1, 1), (1, 3), (5, 1), (5, 3), (10, 1), (10, 3)];
fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).map(String::as_str)
    };
    let number =
        |name: &str, default: u32| option(name).map_or(Ok(default), |text| text.parse().context(name.to_owned()));
    let seconds = number("--seconds", 60)?;
    let keep: Keep<'_> = option("--keep");
    match arguments.first().map(String::as_str) {
        Some("server") => {
            let name = option("--name").context("--name")?;
            tiers::serve(
                name,
                option("--host").unwrap_or("host1"),
                number("--threads", 1)?,
                &folder(option("--folder"))?,
            )
        }
        Some("clients") => {
            tiers::visit(number("--clients", 1)?, Duration::from_secs(u64::from(seconds)), &folder(option("--folder"))?)
        }
        Some("row") => {
            let row = run(number("--clients", 10)?, number("--threads", 1)?, seconds, false, &keep)?;
            show(&row)
        }
        Some("model") => {
            let (rate, found) = model(&folder(option("--folder"))?)?;
            println!("{}", dyelog_lqn::text::write(&found.model));
            show(&Row { clients: number("--clients", 10)?, threads: number("--threads", 1)?, rate, found })
        }
        Some("table") => table(seconds, number("--repeat", 1)?, &keep),
        Some("whatif") => what_if(seconds, &keep),
        _ => bail!("one of: table, whatif, row, model"),
    }
}

fn show(row: &Row) -> anyhow::Result<()> {
    let predicted = predicted(&row.found.model)?;
    print_header();
    row.print(&predicted);
    row.print_figures(&predicted);
    Ok(())
}

fn folder(text: Option<&str>) -> anyhow::Result<PathBuf> {
    Ok(PathBuf::from(text.context("--folder")?))
}

/// Where reports are kept; `None` to delete them.
type Keep<'k> = Option<&'k str>;

/// A run that was observed, and its model.
struct Row {
    clients: u32,
    threads: u32,
    /// Cycles per second.
    rate: f64,
    found: PeriodModel,
}

/// What a solution says of the clients' cycle, seconds, and how many of them end per second.
struct Predicted {
    results: Results,
    cycle: f64,
    rate: f64,
}

impl Row {
    /// The mean cycle as measured, seconds, and half its interval.
    fn measured(&self) -> (f64, f64) {
        let cycle = self.found.measured.iter().find(|measured| matches!(measured.subject, Subject::Cycle(_)));
        cycle.map_or((f64::NAN, f64::NAN), |cycle| (cycle.figure.value, cycle.figure.half_width.unwrap_or(f64::NAN)))
    }

    fn print(&self, [layered, simulated]: &[Predicted; 2]) {
        let (measured, half) = self.measured();
        let off = |predicted: f64| 100.0 * (predicted / measured - 1.0);
        let busy = |results: &Results| {
            let compared = self.found.compare(results);
            let processors = compared.iter().filter(|figure| matches!(figure.subject, Subject::Processor(_)));
            let parts = processors
                .map(|figure| format!("{:.3} {:.3}", figure.measured.value, figure.predicted.unwrap_or(f64::NAN)));
            parts.collect::<Vec<_>>().join("  ")
        };
        println!(
            "{:>7} {:>7} {:>8.2} ±{:>4.2} {:>8.2} {:>+6.1}% {:>8.2} {:>+6.1}% {:>8.2} {:>8.2}   {}",
            self.clients,
            self.threads,
            1e3 * measured,
            1e3 * half,
            1e3 * layered.cycle,
            off(layered.cycle),
            1e3 * simulated.cycle,
            off(simulated.cycle),
            self.rate,
            layered.rate,
            busy(&layered.results),
        );
    }

    /// All that was measured beside what is predicted, and what there is to say of the model.
    fn print_figures(&self, [layered, simulated]: &[Predicted; 2]) {
        let pairs = self.found.compare(&layered.results).into_iter().zip(self.found.compare(&simulated.results));
        println!("\n{:<18} {:>10} {:>10} {:>10}", "", "measured", "solved", "simulated");
        for (layered, simulated) in pairs {
            let [layered_figure, simulated] = [layered.predicted, simulated.predicted].map(|it| it.unwrap_or(f64::NAN));
            let unit = if matches!(layered.subject, Subject::Processor(_)) { 1.0 } else { 1e3 };
            let figures = [layered.measured.value, layered_figure, simulated].map(|figure| unit * figure);
            println!("{:<18} {:>10.3} {:>10.3} {:>10.3}", layered.name, figures[0], figures[1], figures[2]);
        }
        for finding in &self.found.findings {
            eprintln!("{finding}");
        }
    }
}

/// The clients' cycle in a model: by layers, and by simulation.
fn predicted(model: &Model) -> anyhow::Result<[Predicted; 2]> {
    let client = model.task_named("client").context("there are clients")?.index();
    let by = |options: SolveOptions| -> anyhow::Result<Predicted> {
        let results = solve(model, &options, None, &mut ())?.results;
        let cycle = results.tasks[client].response().context("clients go round")?;
        let rate = results.tasks[client].throughput;
        Ok(Predicted { results, cycle, rate })
    };
    Ok([by(SolveOptions::default())?, by(SimulateOptions::default().into())?])
}

fn print_header() {
    println!(
        "                 cycle/ms                                             cycles/s           processors busy"
    );
    println!(
        "clients threads  measured         solved         simulated        measured   solved  measured and solved"
    );
}

fn table(seconds: u32, repeat: u32, keep: &Keep<'_>) -> anyhow::Result<()> {
    print_header();
    let mut errors = Vec::new();
    for (clients, threads) in TABLE {
        let mut own = Vec::new();
        for _ in 0..repeat.max(1) {
            let row = run(clients, threads, seconds, false, keep)?;
            let predicted = predicted(&row.found.model)?;
            row.print(&predicted);
            own.push(predicted[0].cycle / row.measured().0 - 1.0);
        }
        own.sort_by(f64::total_cmp);
        println!("        median error of {} runs: {:+.1}%", own.len(), 100.0 * own[own.len() / 2]);
        errors.push(own[own.len() / 2].abs());
    }
    println!("mean of the medians: {:.1}%", 100.0 * errors.iter().sum::<f64>() / errors.len() as f64);
    Ok(())
}

/// Both questions of the case study, asked of the model of ten clients with three threads, then of the system.
fn what_if(seconds: u32, keep: &Keep<'_>) -> anyhow::Result<()> {
    let base = run(10, 3, seconds, false, keep)?;
    let mut many = base.found.model.clone();
    let client = many.task_named("client").context("there are clients")?;
    many.tasks[client.index()].multiplicity = Multiplicity::Finite(40);
    let mut apart = many.clone();
    let second = apart.task_named("server2").context("there is a second server")?;
    apart.processors.push(Processor::new("host2", Scheduling::ProcessorSharing));
    apart.tasks[second.index()].processor = (apart.processors.len() - 1).into();
    print_header();
    for (model, on_second) in [(&many, false), (&apart, true)] {
        let row = run(40, 3, seconds, on_second, keep)?;
        row.print(&predicted(model)?);
    }
    Ok(())
}

/// Runs the system and makes the model of what was observed, without its first and last two seconds.
fn run(clients: u32, threads: u32, seconds: u32, on_second: bool, keep: &Keep<'_>) -> anyhow::Result<Row> {
    let folder = match keep {
        Some(kept) => Path::new(kept).join(format!("{clients}-{threads}{}", if on_second { "-apart" } else { "" })),
        None => std::env::temp_dir().join(format!("observed-{}", std::process::id())),
    };
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("disk"), "")?;
    let threads_text = threads.to_string();
    let start = |name: &str, processor: &str| {
        let host = if processor == "0" { "host1" } else { "host2" };
        child(processor, &["server", "--name", name, "--host", host, "--threads", &threads_text], &folder)
    };
    let mut servers = vec![start("server2", if on_second { "1" } else { "0" })?, start("server1", "0")?];
    let outcome =
        child("0", &["clients", "--clients", &clients.to_string(), "--seconds", &seconds.to_string()], &folder)
            .and_then(|mut clients| Ok(clients.wait()?));
    for server in &mut servers {
        // Its standard input ends.
        server.wait()?;
    }
    ensure!(outcome?.success(), "the clients failed");
    let (rate, found) = model(&folder)?;
    if keep.is_none() {
        let _ = fs::remove_dir_all(&folder);
    }
    Ok(Row { clients, threads, rate, found })
}

fn child(processor: &str, arguments: &[&str], folder: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new("taskset");
    command.args(["-c", processor]).arg(std::env::current_exe()?).args(arguments).arg("--folder").arg(folder);
    command.stdin(Stdio::piped()).spawn().context("cannot start a process; is `taskset` there?")
}

/// The system's configuration: what no observer sees.
fn configuration() -> String {
    let node = |host: &str| format!("[nodes.{host}]\ncores = 1\ndisks.main = {{ service = {} }}\n", tiers::DISK);
    node("host1") + &node("host2")
}

/// Cycles per second, and the model, of what observers reported into a folder.
fn model(folder: &Path) -> anyhow::Result<(f64, PeriodModel)> {
    let mut observations = Vec::new();
    for name in ["client", "server1", "server2"] {
        let path = folder.join(format!("{name}.jsonl"));
        observations.extend(json::parse(&path.display().to_string(), &fs::read_to_string(&path)?)?);
    }
    let ours = || observations.iter().filter(|observation| &*observation.process.program == "client");
    let margin = (2.0 * NANO) as i64;
    let from = ours().map(|own| own.from).min().context("clients report")?.saturating_add(margin);
    let to = ours().map(|own| own.to).max().context("clients report")?.saturating_sub(margin);
    let system = System::parse("system.toml", &configuration())?;
    let period = Period::of(&observations, from, to);
    let of_clients = period.processes.iter().find(|process| process.total.is_client()).context("clients report")?;
    let total = &of_clients.total;
    let cycles: u64 = total.inputs.values().map(|times| times.moments.count).sum();
    Ok((cycles as f64 / total.seconds(), build(&period, &system, &Options::default())?))
}
