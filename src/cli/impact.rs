//! `dyelog impact`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use dyelog::callgraph::change::Change;
use dyelog::lqn::Model;
use dyelog::pipeline;
use dyelog::report::call_graph;
use dyelog::solve::{LayeredOptions, layered};

use crate::cli::args::{Form, OutputArguments};
use crate::cli::exit::Exit;
use crate::cli::profile::{AnalysisArguments, html};
use crate::cli::terminal::Terminal;
use crate::cli::{Outcome, input, output};

/// Arguments of `dyelog impact`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "all functions with 30% less work" =>
    "dyelog impact traces/calls/figure-1.jsonl -e 'reduction by 30% to function { Demo::* }'",
    "a page with the graph of differences" =>
    "dyelog impact traces/calls/figure-1.jsonl -e 'increase by 5% to function { * }' --html -o i.html",
})]
pub struct Arguments {
    /// Files of probe records, JSON Lines or binary, or of spans in any format, plain or compressed; `-` is standard input
    #[arg(value_name = "RECORDS", required = true)]
    records: Vec<PathBuf>,
    /// A file of statements such as `reduction on processor group { A } by 10% to function { M::f, N::* };`
    #[arg(long, value_name = "FILE", required_unless_present = "statements", conflicts_with = "statements")]
    change: Option<PathBuf>,
    /// A statement; may be repeated: each takes effect on what those before left
    #[arg(short = 'e', value_name = "STATEMENT")]
    statements: Vec<String>,
    #[command(flatten)]
    analysis: AnalysisArguments,
    /// The form of the answer; that of the output file's extension where not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,
    /// A page for a browser: coordinated hyperbolic trees of interfaces, calls, sums and differences, and a flame graph
    #[arg(long, conflicts_with = "format")]
    html: bool,
    #[command(flatten)]
    output: OutputArguments,
}

/// Estimates what a change comes to, in processor time and in responses.
pub fn run(arguments: &Arguments, terminal: &mut Terminal) -> Outcome {
    let format = if arguments.html {
        output::only(&arguments.output, &["html", "htm"])?;
        Form::Text
    } else {
        output::form(arguments.format, Form::Text, &arguments.output)?
    };
    input::check_stdin_once(arguments.records.iter().chain(&arguments.change))?;
    let (name, text): (Arc<str>, String) = match &arguments.change {
        Some(file) => (input::shown(file), input::text(file)?),
        None => ("-e".into(), statements(&arguments.statements)),
    };
    terminal.sources.insert(Arc::clone(&name), text.as_str().into());
    let change = Change::parse(&name, &text)?;
    let analysis = &arguments.analysis;
    let (profiled, configuration) = analysis.for_impact(&arguments.records, terminal)?;
    let solver = |model: &Model| layered(model, &LayeredOptions::default());
    let found = pipeline::impact(&profiled, &change, &analysis.granularity(), &configuration, solver, terminal)?;
    let text = match format {
        _ if arguments.html => html(&arguments.records, &profiled.profile, &found.graph.before, Some(&found.graph)),
        Form::Text => {
            let look = terminal.look(&arguments.output);
            call_graph::impact_text(&found.graph, &found.scenarios, found.unsolved.as_ref(), look)
        }
        Form::Json => call_graph::impact_json(&found.graph, &found.scenarios, found.unsolved.as_ref()),
    };
    output::write(&arguments.output, &text)?;
    if let Some(why) = &found.unsolved {
        terminal.report(&why.0);
        terminal.say("the model of the records has no solution: the answer is processor time alone\n");
        return Ok(Exit::NotConverged);
    }
    if found.converged {
        return Ok(Exit::Ok);
    }
    terminal.say("the solver did not converge: responses are not to be relied on\n");
    Ok(Exit::NotConverged)
}

/// Statements of the command line as one text; the last semicolon of each may be missing.
fn statements(typed: &[String]) -> String {
    let ended = typed.iter().map(|text| {
        let text = text.trim_end();
        format!("{text}{}\n", if text.is_empty() || text.ends_with(';') { "" } else { ";" })
    });
    ended.collect()
}
