//! What is wrong with rule files.

use std::cell::RefCell;
use std::sync::Arc;

use crate::authoring::cases;
use crate::datalog::allow;
use crate::datalog::syntax;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::pipeline::{about_given, of_given};
use crate::query::{Question, Scope, standard};
use crate::tlc::Rules;
use crate::tlc::rules::shipped_text;

/// A name and a text.
type Named = (Arc<str>, Arc<str>);

/// What rule files are for.
#[derive(Clone, Debug)]
pub enum Sort {
    /// Templates, which are ready to run where nothing is wrong.
    Templates(Option<Box<Rules>>),
    /// Questions to traces, with so many relations to ask.
    Questions(usize),
}

/// Rule files that were checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What is wrong with them and what is doubtful, without what their comments allow.
    pub findings: Vec<Diagnostic>,
    /// What they are for.
    pub sort: Sort,
    /// The cases that stand in them; each that does not hold is a finding.
    pub cases: usize,
    /// The texts of files that they use, which are not shipped.
    pub used: Vec<Named>,
}

impl Checked {
    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Checks rule files as they are loaded together, with the shipped ones behind them. A file without templates that is nothing by
/// itself is taken for questions.
///
/// `resolver` gives the texts of files that they use, where those are not shipped.
pub fn check(files: &[Named], resolver: &dyn Fn(&str) -> Option<Arc<str>>) -> Checked {
    let used: RefCell<Vec<Named>> = RefCell::default();
    let beside = |name: &str| {
        let text = resolver(name)?;
        let mut used = used.borrow_mut();
        if used.iter().all(|(known, _)| **known != *name) {
            used.push((name.into(), Arc::clone(&text)));
        }
        Some(text)
    };
    // A folder that happens to hold a file of the same name must not change what the shipped files mean.
    let resolve = |name: &str| if shipped_text(name).is_some() { None } else { beside(name) };
    let (mut findings, sort) = match Rules::with_user_files(files, &resolve) {
        Ok(rules) if files.is_empty() => (rules.warnings().to_vec(), Sort::Templates(Some(Box::new(rules)))),
        Ok(rules) => (about_given(&rules, files), Sort::Templates(Some(Box::new(rules)))),
        Err(Diagnostics(found)) => {
            let as_templates = settled(files, &used.borrow(), of_given(found, files));
            let questions = if let [file] = files { as_questions(file, &beside) } else { None };
            match questions {
                Some((found, relations)) if errors(&found) < errors(&as_templates) => {
                    (settled(files, &used.borrow(), found), Sort::Questions(relations))
                }
                _ => (as_templates, Sort::Templates(None)),
            }
        }
    };
    let mut number = 0;
    for (name, text) in files {
        let cases = cases::of(name, text);
        number += cases.len();
        if let Sort::Templates(Some(rules)) = &sort {
            findings.extend(cases.iter().filter_map(|case| cases::judge(rules, name, case)));
        }
    }
    findings.sort_by(|left, right| left.place.cmp(&right.place));
    Checked { findings, sort, cases: number, used: used.into_inner() }
}

fn errors(findings: &[Diagnostic]) -> usize {
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

fn settled(files: &[Named], used: &[Named], findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    allow::settle(files.iter().chain(used).map(|(name, text)| (name, text)), findings)
}

/// What there is to say about a file of questions, and how many relations it answers with; `None` of one that has templates.
fn as_questions((name, text): &Named, beside: &dyn Fn(&str) -> Option<Arc<str>>) -> Option<(Vec<Diagnostic>, usize)> {
    let resolve = |used: &str| standard::text(used).or_else(|| shipped_text(used)).or_else(|| beside(used));
    let shipped = standard::FILES.map(|(name, _)| name);
    let loaded = syntax::read_beside(name, text, &resolve, &shipped);
    if !loaded.program.templates.is_empty() {
        return None;
    }
    // Over what it is asked is said with the question: one of them has to fit.
    let asked = [Scope::Operation, Scope::Trace, Scope::Messages].map(|scope| {
        match Question::new(&loaded.program, loaded.diagnostics.clone(), usize::MAX, &[], scope) {
            Ok(question) => (question.warnings, question.asked.len()),
            Err(Diagnostics(found)) => (found, 0),
        }
    });
    asked.into_iter().min_by_key(|(found, _)| errors(found))
}
