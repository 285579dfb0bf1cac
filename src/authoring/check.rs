//! What is wrong with rule files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::authoring::cases;
use crate::datalog::allow;
use crate::datalog::codes;
use crate::datalog::syntax;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::pipeline::{about_given, of_given};
use crate::query::{self, standard};
use crate::same::rules::{self as same_rules, Loaded};
use crate::tlc::Rules;
use crate::tlc::rules::shipped_text;

/// A name and a text.
type Named = (Arc<str>, Arc<str>);

/// What rule files are for.
#[derive(Clone, Debug)]
pub enum Sort {
    /// Templates, which are ready to run where nothing is wrong.
    Templates(Option<Box<Rules>>),
    /// Questions to traces, with so many relations.
    Questions(usize),
    /// Templates on events, for messages, ready to run where nothing is wrong.
    Events(Option<Arc<same_rules::Rules>>),
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
}

impl Checked {
    /// How many findings of a severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Checks rule files as they are loaded together, with the shipped ones behind them; a file that only questions can use, as one of these.
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
    let questions = if let [file] = files { as_questions(file, &beside) } else { None };
    let (mut findings, sort) = if files.iter().any(has_event_templates) {
        let Loaded { rules, findings, .. } = same_rules::load(files, &beside);
        let shown = findings.into_iter().filter(|one| one.place.file().is_none_or(|file| is_given(file, files)));
        (settled(files, &used.borrow(), shown.collect()), Sort::Events(rules.map(Arc::new)))
    } else if let Some((found, relations)) = questions {
        (settled(files, &used.borrow(), found), Sort::Questions(relations))
    } else {
        match Rules::with_user_files(files, &resolve) {
            Ok(rules) if files.is_empty() => (rules.warnings().to_vec(), Sort::Templates(Some(Box::new(rules)))),
            Ok(rules) => (about_given(&rules, files), Sort::Templates(Some(Box::new(rules)))),
            Err(Diagnostics(mut found)) => {
                let unknown = found.iter().any(|one| one.code == codes::RELATION);
                for (name, text) in files.iter().filter(|_| unknown) {
                    query::tell_facts_of_questions(&syntax::read(name, text, &|_| None).program, &mut found);
                }
                (settled(files, &used.borrow(), of_given(found, files)), Sort::Templates(None))
            }
        }
    };
    let mut number = 0;
    for (name, text) in files {
        let cases = cases::of(name, text);
        number += cases.len();
        match &sort {
            Sort::Templates(Some(rules)) => {
                findings.extend(cases.iter().filter_map(|case| cases::judge(rules, name, case)));
            }
            Sort::Events(Some(rules)) => {
                findings.extend(cases.iter().filter_map(|case| cases::judge_messages(rules, name, case)));
            }
            _ => {}
        }
    }
    findings.sort_by(|left, right| left.place.cmp(&right.place));
    Checked { findings, sort, cases: number }
}

/// Whether a rule file has templates on events, as far as it can be read.
pub fn has_event_templates((name, text): &Named) -> bool {
    syntax::parse_file(0, name, text).0.iter().any(|item| matches!(item, syntax::Item::EventTemplate(_)))
}

/// Whether a file was given, or is used by one that was and is not shipped.
fn is_given(file: &str, files: &[Named]) -> bool {
    same_rules::shipped_text(file).is_none() || files.iter().any(|(name, _)| **name == *file)
}

fn settled(files: &[Named], used: &[Named], findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    allow::settle(files.iter().chain(used).map(|(name, text)| (name, text)), findings)
}

/// What there is to say about a file that only questions can use, and how many relations it defines; `None` of any other file.
fn as_questions((name, text): &Named, beside: &dyn Fn(&str) -> Option<Arc<str>>) -> Option<(Vec<Diagnostic>, usize)> {
    let loaded = standard::load(name, text, beside);
    let found = query::check(&loaded.program, &loaded.diagnostics)?;
    let own = loaded.program.rules.iter().filter(|rule| rule.head.span.file == 0);
    let names: BTreeSet<&str> = own.map(|rule| &*rule.head.relation.value).collect();
    Some((found, names.len()))
}
