//! Why facts hold.

use std::ops::ControlFlow;
use std::path::PathBuf;

use dyelog::datalog::eval::Evaluator;
use dyelog::diagnostic::{Diagnostic, Diagnostics, Place};
use dyelog::pipeline::{self, AskedFact, Unnamed};
use dyelog::query::{self, Answering, TraceFacts};
use dyelog::report::explain::facts::{Extent, Words};
use serde_json::json;

use crate::cli::args::Form;
use crate::cli::explain::Arguments;
use crate::cli::fact::{self, is_rule_file};
use crate::cli::output::Output;
use crate::cli::query::{Over, Unshown};
use crate::cli::terminal::Terminal;
use crate::cli::{Failure, codes, input, rule_files};

/// Explains the first row that agrees with the fact, or with `--all` every one; without a fact, all that the file answers with.
pub fn explain(arguments: &Arguments, terminal: &mut Terminal) -> Result<(), Failure> {
    let (file, traces) = files(arguments)?;
    let over = Over { bounds: arguments.bounds.clone(), guess_threads: arguments.reduce.guess_threads };
    let fact = arguments.question.fact.as_deref();
    let (about, opened) = fact::open(file, fact, traces, &arguments.reading, &over, terminal)?;
    let run = arguments.operation.run.as_deref();
    about.check_run(run)?;
    terminal.report(&rule_files::not_allowed(&about.program, &about.question.warnings));
    let rules = rule_files::load(&arguments.reduce.rules, &mut terminal.sources)?;
    let mut proofs = Proofs { arguments, output: None, count: 0 };
    let mut unnamed = Unnamed::default();
    let mut unwritten: Option<Failure> = None;
    let mut work = |facts: &TraceFacts<'_>, key: Option<(&str, &str)>| {
        if run.is_some_and(|run| key.is_none_or(|(_, own)| own != run)) {
            return Ok(ControlFlow::Continue(()));
        }
        let done = proofs.prove(&about, facts, key, &mut unnamed)?;
        Ok(done.unwrap_or_else(|failure| {
            unwritten = Some(failure);
            ControlFlow::Break(())
        }))
    };
    let mut unshown = Unshown;
    let mut answering = Answering::new(&about.question, &rules, &mut unshown).handing_over(&mut work);
    let (names, read, quality) = opened.read(&mut answering)?;
    let told = answering.finish(&names)?;
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    terminal.report_kinds(&read, |_| true);
    pipeline::tell_quality(&quality, terminal);
    terminal.report(&told.findings);
    match fact {
        Some(fact) if proofs.count == 0 => {
            let message = format!("no row agrees with `{fact}`");
            let finding = unnamed.told(Diagnostic::error(codes::NOT_THERE, Place::Nowhere, message));
            Err(finding.with_hint("`dyelog why-not FILE.dl FACT TRACE` shows how near the rules come").into())
        }
        _ => {
            if proofs.count == 0 {
                let message = "the relations that the rule file answers with have no row";
                terminal.report(&[Diagnostic::warning(query::codes::NO_ROWS, Place::Nowhere, message)]);
            }
            proofs.finish()
        }
    }
}

/// The rule file and the traces.
fn files(arguments: &Arguments) -> Result<(&PathBuf, &[PathBuf]), Failure> {
    let refuse = |message: &str, hint: &str| -> Failure {
        Diagnostic::error(codes::ARGUMENTS, Place::Nowhere, message).with_hint(hint).into()
    };
    let Some((file, traces)) = arguments.subjects.split_first().filter(|(file, _)| is_rule_file(file)) else {
        let hint = "name it before the traces: `dyelog explain FILE.dl TRACE --fact FACT`";
        return Err(refuse("there is no rule file to explain a fact by", hint));
    };
    if traces.is_empty() {
        return Err(refuse("there is no trace to explain a fact of", "name traces behind the rule file"));
    }
    for (given, name) in [(arguments.config.is_some(), "--config"), (arguments.reduce.analysis.is_some(), "--analysis")]
    {
        if given {
            return Err(refuse(
                &format!("`{name}` is about models, and facts rest on the trace alone"),
                "leave it out",
            ));
        }
    }
    input::check_stdin_once(arguments.subjects.iter().chain(&arguments.reduce.rules))?;
    Ok((file, traces))
}

/// Proofs, written as they are found.
struct Proofs<'a> {
    arguments: &'a Arguments,
    output: Option<Output>,
    count: u64,
}

impl Proofs<'_> {
    /// Proves the rows that are wanted; within, whether they could be written.
    fn prove(
        &mut self,
        about: &AskedFact,
        facts: &TraceFacts<'_>,
        key: Option<(&str, &str)>,
        unnamed: &mut Unnamed,
    ) -> Result<Result<ControlFlow<()>, Failure>, Diagnostics> {
        let all = self.arguments.all;
        let words = Words { program: &about.program, question: &about.question, facts };
        let limits = self.arguments.bounds.limits();
        let mut evaluator = Evaluator::with_limits(&about.question.rules, facts, limits).with_explanations();
        for (relation, pattern) in about.patterns(&words, unnamed) {
            for row in evaluator.query(relation, &pattern)? {
                let aggregated = if all { usize::MAX } else { AGGREGATED };
                let Some(derivation) = evaluator.explain(relation, &row, aggregated)? else { continue };
                let text = match self.arguments.form() {
                    Form::Text => {
                        let lines = if all { usize::MAX } else { LINES };
                        let proof = words.proof(&derivation, Extent { depth: self.arguments.depth, lines });
                        format!("{}\n{proof}", about.subject(key))
                    }
                    Form::Json => {
                        let (scenario, run) = key.unzip();
                        let rows = words.proof_json(&derivation);
                        format!("{:#}", json!({ "scenario": scenario, "run": run, "rows": rows }))
                    }
                };
                if let Err(failure) = self.write(&text) {
                    return Ok(Err(failure));
                }
                if !all {
                    return Ok(Ok(ControlFlow::Break(())));
                }
            }
        }
        Ok(Ok(ControlFlow::Continue(())))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let first = self.count == 0;
        self.count += 1;
        let before = match self.arguments.form() {
            _ if first => "",
            Form::Text => "\n",
            Form::Json => ",\n",
        };
        let output = self.output()?;
        output.text(before)?;
        output.text(text)
    }

    /// Where proofs go; what stands before the first one is written.
    fn output(&mut self) -> Result<&mut Output, Failure> {
        if self.output.is_none() {
            let mut output = Output::open(&self.arguments.output)?;
            if self.arguments.form() == Form::Json {
                output.text("{\"dyelog-proofs\": 1, \"proofs\": [\n")?;
            }
            self.output = Some(output);
        }
        Ok(self.output.as_mut().expect("it was opened just now"))
    }

    fn finish(mut self) -> Result<(), Failure> {
        let json = self.arguments.form() == Form::Json;
        let output = self.output()?;
        if json {
            output.text("\n]}\n")?;
        }
        self.output.map_or(Ok(()), Output::finish)
    }
}

/// Lines of a proof that are shown without `--all`.
const LINES: usize = 200;
/// Rows of an aggregate that are shown without `--all`.
const AGGREGATED: usize = 5;
