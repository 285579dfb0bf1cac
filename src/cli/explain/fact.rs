//! Why facts hold.

use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::datalog::eval::{Evaluator, Relation};
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::report::explain::facts::{Extent, Words};
use dyelog::tlc::Rules;
use dyelog::tlc::facts::{GraphFacts, schema};
use serde_json::{Value as Json, json};

use crate::cli::args::Form;
use crate::cli::explain::{Arguments, study};
use crate::cli::fact::{Asked, is_rule_file, node_words, patterns, symbol_words};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input};

/// Explains the first row that agrees with the fact, or with `--all` every one; without a fact, all that the file answers with.
pub fn explain(arguments: &Arguments, terminal: &mut Terminal) -> Result<String, Failure> {
    let refuse = |message: &str| Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message);
    let Some((file, traces)) = arguments.subjects.split_first().filter(|(file, _)| is_rule_file(file)) else {
        return Err(refuse("there is no rule file to explain a fact by")
            .with_hint("name it before the traces: `dyelog explain FILE.dl TRACE --fact FACT`")
            .into());
    };
    if traces.is_empty() {
        return Err(refuse("there is no trace to explain a fact of")
            .with_hint("name traces behind the rule file")
            .into());
    }
    input::check_stdin_once(&arguments.subjects)?;
    let asked = Asked::load(file, terminal)?;
    let wanted = arguments.question.fact.as_deref().map(|text| asked.fact(text)).transpose()?;
    let outputs: Vec<Relation> = if wanted.is_none() { asked.outputs() } else { Vec::new() };
    if wanted.is_none() && outputs.is_empty() {
        return Err(refuse("the rule file answers with nothing")
            .with_hint("name a fact by `--fact`, or add `output RELATION.` to the file")
            .into());
    }
    let extent = Extent { depth: arguments.depth, lines: if arguments.all { usize::MAX } else { LINES } };
    let aggregated = if arguments.all { usize::MAX } else { AGGREGATED };
    let (mut texts, mut proofs): (Vec<String>, Vec<Json>) = (Vec::new(), Vec::new());
    let mut failed: Option<Diagnostics> = None;
    let run = arguments.operation.run.as_deref();
    let files: Vec<PathBuf> = traces.to_vec();
    let rules = Rules::shipped();
    study::each(&files, &arguments.reading, &rules, |study, _| {
        if run.is_some_and(|run| *run != **study.run()) {
            return ControlFlow::Continue(());
        }
        let graph = GraphFacts::new(study.toeg, study.names);
        let mut evaluator = Evaluator::new(&asked.rules, &graph).with_explanations();
        let node = |node| node_words(study, node);
        let owned = Evaluator::new(&asked.rules, &graph);
        let symbol = |value| symbol_words(study, &owned, value);
        let words = Words::new(&asked.program, &asked.rules, schema(), &node, &symbol);
        let questions = match &wanted {
            Some((relation, atom)) => {
                let patterns = patterns(study, &words, &evaluator, *relation, atom);
                patterns.into_iter().map(|pattern| (*relation, pattern)).collect()
            }
            None => {
                let open = |relation: &Relation| (*relation, vec![None; asked.rules.arity(*relation)]);
                outputs.iter().map(open).collect::<Vec<_>>()
            }
        };
        for (relation, pattern) in questions {
            let rows = match evaluator.query(relation, &pattern) {
                Ok(rows) => rows,
                Err(diagnostics) => {
                    failed = Some(diagnostics);
                    return ControlFlow::Break(());
                }
            };
            for row in rows {
                match evaluator.explain(relation, &row, aggregated) {
                    Ok(Some(derivation)) => {
                        let operation = format!("{} run={}", study.scenario(), study.run());
                        match arguments.format {
                            Form::Text => texts.push(format!("{operation}\n{}", words.proof(&derivation, extent))),
                            Form::Json => proofs.push(json!({
                                "scenario": study.scenario(),
                                "run": &**study.run(),
                                "rows": words.proof_json(&derivation),
                            })),
                        }
                    }
                    Ok(None) => {}
                    Err(diagnostics) => {
                        failed = Some(diagnostics);
                        return ControlFlow::Break(());
                    }
                }
                if !arguments.all {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(diagnostics) = failed {
        return Err(diagnostics.into());
    }
    match arguments.format {
        Form::Json => Ok(format!("{:#}\n", json!({ "dyelog-proofs": 1, "proofs": proofs }))),
        Form::Text if texts.is_empty() => {
            let what = arguments.question.fact.as_deref().unwrap_or("what the file answers with");
            let finding = Diagnostic::error(codes::NOT_THERE, Place::Nowhere, format!("no row agrees with `{what}`"));
            Err(finding.with_hint("`dyelog why-not FILE.dl FACT TRACE` shows how near the rules come").into())
        }
        Form::Text => Ok(texts.join("\n")),
    }
}

/// Lines of a proof that are shown without `--all`.
const LINES: usize = 200;
/// Rows of an aggregate that are shown without `--all`.
const AGGREGATED: usize = 5;
