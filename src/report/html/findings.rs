//! Diagnostics as a list.

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::report::html::units::count;
use crate::report::markup::Markup;

/// Most findings that one list shows.
const SHOWN: usize = 40;

/// Most notes, hints and labels of one finding that are shown.
const DETAILS: usize = 8;

/// Writes findings, the grave ones first, if there are any.
pub fn write(html: &mut Markup, heading: &'static str, findings: &[Diagnostic]) {
    if findings.is_empty() {
        return;
    }
    html.element("h3", &[], heading);
    let mut order: Vec<&Diagnostic> = findings.iter().collect();
    order.sort_by_key(|finding| finding.severity as u8);
    html.open("ul", &[("class", "findings")]);
    for finding in order.iter().take(SHOWN) {
        one(html, finding);
    }
    html.close();
    if findings.len() > SHOWN {
        html.element("p", &[], &format!("{} more are not shown.", count((findings.len() - SHOWN) as u64)));
    }
}

fn one(html: &mut Markup, finding: &Diagnostic) {
    let class = match finding.severity {
        Severity::Error => "tag error",
        Severity::Warning => "tag warning",
        Severity::Note => "tag",
    };
    html.open("li", &[]);
    html.element("span", &[("class", class)], &format!("{} {}", finding.severity, finding.code));
    html.text(&long(&finding.message));
    if let Some(place) = words(&finding.place) {
        html.text(" ").open("span", &[("class", "where")]).text("(").name(&place).text(")").close();
    }
    let labels = finding.labels.iter().map(|label| match words(&label.place) {
        Some(place) => format!("{place}: {}", label.text),
        None => label.text.clone(),
    });
    let details: Vec<String> =
        labels.chain(finding.notes.iter().cloned()).chain(finding.hints.iter().cloned()).take(DETAILS).collect();
    if !details.is_empty() {
        html.open("ul", &[]);
        for detail in details {
            html.element("li", &[], &long(&detail));
        }
        html.close();
    }
    html.close();
}

/// A sentence that may have long names in it, cut at its end.
fn long(text: &str) -> String {
    const LONGEST: usize = 600;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A place in words.
pub fn words(place: &Place) -> Option<String> {
    match place {
        Place::Nowhere => None,
        Place::File { file } | Place::Range { file, .. } => Some(file.to_string()),
        Place::Line { file, line, .. } => Some(format!("{file}, line {line}")),
        Place::Item { file, item } => Some(format!("{file}, {item}")),
    }
}
