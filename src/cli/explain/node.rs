//! What was made of a node.

use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::lqn::submodel::EntryKey;
use dyelog::report::explain::node::{EntryNames, NodeExplained};
use dyelog::tlc::Summary;
use dyelog::tlc::explain::Study;
use dyelog::trace::NodeName;
use serde_json::{Value, json};

use crate::cli::args::{Analysis, Form};
use crate::cli::explain::{Arguments, model, study};
use crate::cli::message::{self, Asked};
use crate::cli::source::Source;
use crate::cli::study::Missing;
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, messages, rule_files};

/// Explains a node of traces, or the nodes of a span.
pub fn explain(
    arguments: &Arguments,
    node: &str,
    traces: &[PathBuf],
    terminal: &mut Terminal,
) -> Result<String, Failure> {
    let name = NodeName::parse(node);
    let files = study::traces(traces, &name)?;
    let reduce = &arguments.reduce;
    if reduce.analysis == Some(Analysis::Same) || messages::are_messages(&files, &arguments.reading)? {
        return explain_message(arguments, &name, &files, terminal);
    }
    let source = model(arguments, &files, terminal)?;
    let rules = rule_files::load(&arguments.reduce.rules, &mut terminal.sources)?;
    let look = terminal.look(&arguments.output);
    let run = arguments.operation.run.as_deref();
    let mut missing = Missing::default();
    let mut summary = Summary::new(arguments.reduce.merge.into());
    let mut answer = None;
    let quality = study::each(&files, &arguments.reading, &rules, |study, _| {
        let wanted = run.is_none_or(|run| *run == **study.run());
        let nodes = if wanted { name.find(study.toeg, study.names) } else { Vec::new() };
        if nodes.is_empty() {
            missing.saw(study, &name);
            return ControlFlow::Continue(());
        }
        let keys = summary.keys(study.toeg, study.names, &study.outcome);
        let entries = names(&source, study, &keys);
        let explained: Vec<_> = nodes.iter().map(|&node| NodeExplained::new(study, node, &entries)).collect();
        answer = Some(match arguments.form() {
            Form::Text => {
                let mut told = Vec::new();
                explained.iter().map(|one| one.text(&mut told, look)).collect::<Vec<_>>().join("\n")
            }
            Form::Json => {
                let nodes: Value = explained.iter().map(NodeExplained::json).collect();
                format!("{:#}\n", json!({ "dyelog-explanation": 1, "nodes": nodes }))
            }
        });
        ControlFlow::Break(())
    })?;
    answer.ok_or_else(|| missing.finding(&name, run, &quality).into())
}

/// Explains a message.
fn explain_message(
    arguments: &Arguments,
    name: &NodeName,
    files: &[PathBuf],
    terminal: &mut Terminal,
) -> Result<String, Failure> {
    let reduce = &arguments.reduce;
    if arguments.config.is_some() {
        let message = "`--config` is about models, and what templates make of a message rests on the trace alone";
        let finding = Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
        return Err(finding.with_hint("leave it out").into());
    }
    let asked = Asked {
        name,
        files,
        rules: &reduce.rules,
        reading: &arguments.reading,
        guess_threads: reduce.guess_threads,
        run: arguments.operation.run.as_deref(),
    };
    let found = message::find(&asked, None, terminal)?;
    let explained = found.explained().into_iter();
    Ok(match arguments.form() {
        Form::Text => explained.map(|one| one.text(terminal.look(&arguments.output))).collect(),
        Form::Json => {
            let messages: Value = explained.map(|one| one.json()).collect();
            format!("{:#}\n", json!({ "dyelog-explanation": 1, "messages": messages }))
        }
    })
}

/// The model's names for the entries of an operation.
fn names(source: &Source, study: &Study<'_>, keys: &[EntryKey]) -> EntryNames {
    let (Some(reduced), Some(origins)) = (&source.reduced, &source.origins) else { return Vec::new() };
    let sub = &reduced.reduction.submodel;
    keys.iter()
        .zip(&study.outcome.entries)
        .map(|(key, entry)| {
            let index = sub.entry_of(*key)?;
            let place = origins.entries.iter().position(|origin| origin.total == index);
            let name = place.map(|place| source.model.entries[place].name.to_string());
            // Under open arrivals there is no customer.
            name.or_else(|| entry.task.is_none().then(|| "the customer".to_owned()))
        })
        .collect()
}
