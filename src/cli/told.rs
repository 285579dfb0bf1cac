//! Findings that were shown before, and those that are accepted.

use std::collections::{BTreeMap, BTreeSet};

use dyelog::diagnostic::{Code, Diagnostic, Severity};

/// Leaves out of findings what was shown before, or is accepted. Errors are always shown in full.
#[derive(Debug, Default)]
pub struct Told {
    /// Whether notes are left out.
    pub quiet: bool,
    /// Codes that the configuration accepts.
    accepted: BTreeSet<String>,
    /// How many findings of each were accepted.
    counts: BTreeMap<Code, u64>,
    /// Words that stood under findings of each code, without their numbers.
    seen: BTreeMap<Code, BTreeSet<String>>,
}

impl Told {
    /// Nothing told so far.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }

    /// Accepts findings of these codes.
    pub fn accept(&mut self, codes: &BTreeSet<String>) {
        self.accepted.extend(codes.iter().cloned());
    }

    /// What is left to show: of findings whose code was shown before, what is new.
    pub fn fresh(&mut self, findings: &[Diagnostic]) -> Vec<Diagnostic> {
        let mut fresh = Vec::with_capacity(findings.len());
        for finding in findings {
            if self.is_wanted(finding) {
                fresh.push(self.shortened(finding.clone()));
            }
        }
        fresh
    }

    fn is_wanted(&mut self, finding: &Diagnostic) -> bool {
        if finding.severity != Severity::Error && self.accepted.contains(finding.code.0) {
            *self.counts.entry(finding.code).or_default() += 1;
            return false;
        }
        !(self.quiet && finding.severity == Severity::Note)
    }

    fn shortened(&mut self, mut finding: Diagnostic) -> Diagnostic {
        if finding.severity != Severity::Note {
            return finding;
        }
        let again = self.seen.contains_key(&finding.code);
        let seen = self.seen.entry(finding.code).or_default();
        // Lines of one finding that are alike are about different things.
        let own: Vec<String> = finding.notes.iter().map(|note| without_numbers(note)).collect();
        let mut forms = own.iter();
        finding.notes.retain(|_| forms.next().is_some_and(|form| !seen.contains(form)));
        seen.extend(own);
        if again {
            finding.hints.clear();
        }
        finding
    }

    /// How many findings were accepted, in a line; empty where none was.
    pub fn accepted(&self) -> String {
        if self.counts.is_empty() {
            return String::new();
        }
        let of =
            |(code, count): (&Code, &u64)| if *count == 1 { code.to_string() } else { format!("{code} {count} times") };
        let listed: Vec<String> = self.counts.iter().map(of).collect();
        let all: u64 = self.counts.values().sum();
        let (findings, are) = if all == 1 { ("finding", "is") } else { ("findings", "are") };
        format!("{all} {findings} {are} accepted by the configuration: {}\n", listed.join(", "))
    }
}

/// The words of a text and the names in it: what repeated notes have in common.
fn without_numbers(text: &str) -> String {
    let mut is_name = false;
    let is_word = |character: &char| {
        is_name ^= *character == '`';
        is_name || !character.is_ascii_digit() && *character != '.'
    };
    text.chars().filter(is_word).collect()
}

#[cfg(test)]
mod tests {
    use dyelog::diagnostic::{Code, Diagnostic, Place, Severity};

    use super::Told;

    fn note(message: &str, severity: Severity) -> Diagnostic {
        Diagnostic::new(severity, Code("M999"), Place::Nowhere, message)
            .with_note(format!("{message} of 1.5 s"))
            .with_hint("do it")
    }

    #[test]
    fn a_repeated_note_is_one_line_and_what_is_new_in_it_stays() {
        let mut told = Told::default();
        let first = note("12 seen", Severity::Note);
        let again = note("7 seen", Severity::Note).with_note("and this is new");
        let found = told.fresh(&[first.clone(), again, note("7 seen", Severity::Error)]);
        assert_eq!(found[0], first);
        assert_eq!((&found[1].notes[..], found[1].hints.len()), (&["and this is new".to_owned()][..], 0));
        assert_eq!((found[2].notes.len(), found[2].hints.len()), (1, 1));
    }

    #[test]
    fn names_that_differ_in_a_digit_are_told_each() {
        let of = |name: &str| {
            Diagnostic::new(Severity::Note, Code("M999"), Place::Nowhere, "found")
                .with_note(format!("`{name}`: 2 servers"))
        };
        let mut told = Told::default();
        let both = of("svc1").with_note("`svc2`: 2 servers").with_note("2 of 3").with_note("3 of 4");
        assert_eq!(told.fresh(std::slice::from_ref(&both)), [both]);
        let again = told.fresh(&[of("svc1").with_note("`svc3`: 1 servers")]);
        assert_eq!(again[0].notes, ["`svc3`: 1 servers"]);
    }

    #[test]
    fn accepted_findings_are_counted_and_errors_are_told() {
        let mut told = Told::new(true);
        told.accept(&["M999".to_owned()].into());
        let found =
            told.fresh(&[Severity::Note, Severity::Warning, Severity::Error].map(|severity| note("x", severity)));
        assert_eq!(found.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Error]);
        assert_eq!(told.accepted(), "2 findings are accepted by the configuration: M999 2 times\n");
        assert_eq!(Told::default().accepted(), "");
    }
}
