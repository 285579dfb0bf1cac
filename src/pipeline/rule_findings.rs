//! What there is to say about the rule files of a user, and not about the shipped ones behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::datalog::allow;
use crate::datalog::ast::{Program, Template};
use crate::datalog::syntax::print_template;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::pipeline::codes;
use crate::tlc::rules::{DEFAULT_NAMES, from_default, shipped_templates, shipped_text};
use crate::tlc::{Rules, codes as template_codes};

/// What there is to say about the user's rule files, without what their comments allow; what there is about the shipped ones,
/// `dyelog rules check` tells.
pub fn about_the_users(rules: &Rules) -> Vec<Diagnostic> {
    about(rules, &|file| !is_shipped(file))
}

/// What there is to say about rule files that were given, be they shipped or not, and about those of the user that they use.
pub fn about_given(rules: &Rules, given: &[(Arc<str>, Arc<str>)]) -> Vec<Diagnostic> {
    about(rules, &|file| is_given(file, given))
}

/// Of findings those about files that were given, or that these use and that are not shipped.
pub fn of_given(findings: Vec<Diagnostic>, given: &[(Arc<str>, Arc<str>)]) -> Vec<Diagnostic> {
    of(findings, &|file| is_given(file, given))
}

fn is_given(file: &str, given: &[(Arc<str>, Arc<str>)]) -> bool {
    !is_shipped(file) || given.iter().any(|(name, _)| **name == *file)
}

fn about(rules: &Rules, theirs: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
    let program = rules.program();
    let mut found = of(rules.warnings().to_vec(), theirs);
    if !rules.is_default() {
        found.extend(replacing(program));
    }
    let files = program.files.iter().filter(|file| theirs(&file.name));
    allow::settle(files.map(|file| (&file.name, &file.text)), found)
}

/// Of findings those about some files. That a template there leaves nothing to shipped ones is said of that template.
fn of(findings: Vec<Diagnostic>, theirs: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
    let mut shadows: BTreeMap<Place, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for finding in findings {
        // An error keeps the rules from running, whatever it is about.
        if finding.severity == Severity::Error || finding.place.file().is_some_and(|file| theirs(file)) {
            found.push(finding);
        } else if finding.code == template_codes::SHADOWED
            && let Some(label) = finding.labels.iter().find(|label| label.place.file().is_some_and(|file| theirs(file)))
        {
            let name = finding.message.split('`').nth(1).unwrap_or_default();
            shadows.entry(label.place.clone()).or_default().push(format!("`{name}`"));
        }
    }
    for (place, names) in shadows {
        let message = format!("this template leaves nothing to shipped ones: {}", names.join(", "));
        found.push(
            Diagnostic::new(Severity::Note, codes::COMES_BEFORE, place, message)
                .with_note("wherever they fit, this one does, and it is tried before them")
                .with_hint("give it a condition that sets it apart, or allow the note with a reason"),
        );
    }
    found
}

fn is_shipped(file: &str) -> bool {
    shipped_text(file).is_some()
}

/// Templates that replace shipped ones of their name.
fn replacing(program: &Program) -> Vec<Diagnostic> {
    let own: Vec<&Template> =
        program.templates.iter().filter(|template| !from_default(program, template.name.span.file)).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut shipped: BTreeMap<Arc<str>, (String, Template)> = BTreeMap::new();
    for (file, template) in shipped_templates() {
        let file = format!("rules/{file}");
        if DEFAULT_NAMES.contains(&&*file) {
            shipped.insert(Arc::clone(&template.name.value), (file, template));
        }
    }
    let replaced = own.into_iter().filter_map(|template| {
        let (file, other) = shipped.get(&template.name.value)?;
        (print_template(other) != print_template(template)).then(|| {
            let message = format!("`{}` replaces the shipped template of that name", template.name.value);
            Diagnostic::new(Severity::Note, codes::REPLACES, program.place(template.name.span), message)
                .with_note(format!("the one that is replaced stands in `{file}`"))
                .with_hint("give it another name if both are meant, or allow the note with a reason")
        })
    });
    replaced.collect()
}
