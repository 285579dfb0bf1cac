//! `dyelog report`.

use std::io::IsTerminal;

use clap::Args;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::lqn::Model;
use dyelog::report::html::{self, Chart, Limit, Made, Report};
use dyelog::solve::{SolveOptions, solve};
use dyelog::study::bottleneck::{Bottlenecks, bottlenecks_observed};
use dyelog::study::headroom::headroom;
use dyelog::study::outlook::outlook;
use dyelog::study::sweep::SweepOptions;

use crate::cli::args::{OutputArguments, SourceArguments};
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::progress::{Iterations, Progress};
use crate::cli::source::{self, Source};
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, codes, input};

/// Arguments of `dyelog report`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "a page to open in any browser, to print or to pass on" => "dyelog report traces/shop.otlp.jsonl --config examples/shop/shop.toml -o shop.html",
    "with a title and a date of your own" => "dyelog report traces/shop.otlp.jsonl --title 'The shop' --date 'spring' -o shop.html",
})]
pub struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The page's title; the names of the files where not given
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A date for the foot of the page; none where not given, so that the same input gives the same page
    #[arg(long, value_name = "TEXT")]
    date: Option<String>,
    /// Leave out what growing loads would do, which takes some hundred solutions of the model
    #[arg(long)]
    no_curves: bool,
    #[command(flatten)]
    output: OutputArguments,
}

/// Writes a report.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    if arguments.output.output.is_none() && std::io::stdout().is_terminal() {
        let message = "a page of HTML is nothing to read on a terminal";
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        return Err(finding
            .with_hint("name a file by `-o report.html`, or `-o -` to have it here all the same")
            .into());
    }
    output::only(&arguments.output, &["html", "htm"])?;
    let mut source = source::load(&arguments.source, terminal)?;
    let solution = source
        .solve(|model| Ok(solve(model, &SolveOptions::default(), None, &mut ())?.results))
        .map_err(|Diagnostics(found)| Diagnostics([source.findings.clone(), found].concat()))?;
    let results = &solution.results;
    let threads = arguments.source.reduce.thread_count();
    let outlook = outlook(&source.model, results, source.origins.as_ref(), threads);
    let doubts = source.doubts(&solution, Some(&outlook));
    terminal.report(&doubts);
    source.findings.extend(doubts);
    let inputs: Vec<String> = arguments
        .source
        .files
        .iter()
        .chain(&arguments.source.config)
        .map(|path| input::shown(path).to_string())
        .collect();
    let (charts, limits) = if arguments.no_curves { Default::default() } else { growth(&source, threads) };
    let bottlenecks = if arguments.no_curves { None } else { bottlenecks(&source.model) };
    let title = arguments.title.clone().unwrap_or_else(|| title(arguments));
    let pictures = match source.reduced.as_ref().and_then(|reduced| reduced.samples.as_ref()) {
        Some(samples) => html::operations(&samples.rules, &samples.names, &samples.operations)?,
        None => Vec::new(),
    };
    let page = Report {
        title: &title,
        date: arguments.date.as_deref(),
        inputs: &inputs,
        model: &source.model,
        results,
        outlook: &outlook,
        made: made(&source),
        findings: &source.findings,
        limits: &limits,
        bottlenecks: bottlenecks.as_ref(),
        charts: &charts,
        pictures: &pictures,
    };
    output::write(&arguments.output, &html::page(&page))?;
    if results.convergence.converged {
        return Ok(if solution.backlogs.is_empty() { Exit::Ok } else { Exit::NotConverged });
    }
    terminal.say("the solver did not converge: do not rely on the results\n");
    Ok(Exit::NotConverged)
}

/// What growing loads would do.
fn growth(source: &Source, threads: usize) -> (Vec<Chart>, Vec<Limit>) {
    let progress = Progress::steps("solving under growing loads", None);
    let options = SweepOptions { threads, ..SweepOptions::default() };
    let found = headroom(&source.model, source.origins.as_ref(), &options, &|| progress.advance(1));
    progress.done();
    html::growth(&source.model, &found)
}

/// What limits the model.
fn bottlenecks(model: &Model) -> Option<Bottlenecks> {
    let mut progress = Iterations::new("looking for bottlenecks");
    let found = bottlenecks_observed(model, &SolveOptions::default(), &mut progress).ok();
    progress.done();
    found
}

fn made(source: &Source) -> Option<Made<'_>> {
    let (origins, reduced) = source.origins.as_ref().zip(source.reduced.as_ref())?;
    let reduction = &reduced.reduction;
    Some(Made {
        origins,
        submodel: &reduction.submodel,
        reading: &reduced.reading,
        quality: &reduction.quality,
        matching: &reduction.findings,
        nodes: (reduction.nodes, reduction.processed),
    })
}

fn title(arguments: &Arguments) -> String {
    let names: Vec<String> = arguments
        .source
        .files
        .iter()
        .map(|path| {
            path.file_name().map_or_else(|| input::shown(path).to_string(), |name| name.to_string_lossy().into_owned())
        })
        .collect();
    match &names[..] {
        [name] => format!("Performance of {name}"),
        [first, ..] => format!("Performance of {first} and {} more", names.len() - 1),
        [] => "Performance".to_owned(),
    }
}
