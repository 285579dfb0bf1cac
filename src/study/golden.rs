//! A model's text against the accepted one, element by element, in the words of golden tests: validated, noisy, missing, wrong.
//!
//! The texts are those of `dyelog model --format text`, which are tables, whose rows are elements; after them how often each
//! template matched; and what was said of it, of which findings count by code and place: their prose may be bettered.

use std::collections::HashMap;

use indexmap::IndexMap;

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Elements that are as accepted; findings and lines that are no row of a table are not counted.
    pub validated: usize,
    /// Elements that the accepted text lacks.
    pub noisy: Vec<String>,
    /// Elements that only the accepted text has.
    pub missing: Vec<String>,
    /// Elements with other values: as accepted, and as found.
    pub wrong: Vec<(String, String)>,
}

impl Verdict {
    /// Whether all is as accepted.
    pub fn is_good(&self) -> bool {
        self.noisy.is_empty() && self.missing.is_empty() && self.wrong.is_empty()
    }

    /// The counts, such as `12 validated, 1 wrong`.
    pub fn summary(&self) -> String {
        let counts = [
            (self.validated, "validated"),
            (self.noisy.len(), "noisy"),
            (self.missing.len(), "missing"),
            (self.wrong.len(), "wrong"),
        ];
        let words: Vec<String> = counts
            .into_iter()
            .filter(|(count, word)| *count > 0 || *word == "validated")
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        words.join(", ")
    }
}

/// Compares an accepted text with the one found. How wide columns are does not matter.
pub fn compare(accepted: &str, found: &str) -> Verdict {
    let (old, mut new) = (elements(accepted), elements(found));
    let mut verdict = Verdict::default();
    for (key, before) in old {
        match new.shift_remove(&key) {
            Some(after) if after == before => verdict.validated += usize::from(key.0 == LineKind::Row),
            Some(after) => verdict.wrong.push((before, after)),
            None => verdict.missing.push(before),
        }
    }
    verdict.noisy.extend(new.into_values());
    verdict
}

/// What stands between a model and what was said of it.
const SAID: &str = "--- on standard error ---\n";

/// A model with what was said of it, as one text.
pub fn with_words(model: &str, words: &str) -> String {
    if words.is_empty() { model.to_owned() } else { format!("{model}{SAID}{words}") }
}

/// What kind of line an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LineKind {
    Row,
    Line,
    Finding,
}

/// Findings by code and place, without the folder: a test may be run from anywhere.
fn findings(words: &str) -> impl Iterator<Item = String> {
    let lines: Vec<&str> = words.lines().collect();
    let found = |(at, line): (usize, &&str)| {
        let code = line.split_once("]: ").map(|(code, _)| code)?;
        let (severity, number) = code.split_once('[')?;
        if !["error", "warning", "note"].contains(&severity) || number.contains(' ') {
            return None;
        }
        let place = lines.get(at + 1).and_then(|next| next.trim_start().strip_prefix("--> ")).unwrap_or_default();
        let (path, rest) = place.split_at(place.find(':').unwrap_or(place.len()));
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        Some(format!("{code}] {name}{rest}").trim_end().to_owned())
    };
    lines.iter().enumerate().filter_map(found).collect::<Vec<_>>().into_iter()
}

/// Rows by their table and name, other lines by themselves, findings by code and place; those that come again are numbered.
fn elements(text: &str) -> IndexMap<(LineKind, String, usize), String> {
    let (model, words) = text.split_once(SAID).unwrap_or((text, ""));
    let mut all = IndexMap::new();
    let mut times: HashMap<(LineKind, String), usize> = HashMap::new();
    let mut add = |part: LineKind, key: String, shown: String| {
        let time = times.entry((part, key.clone())).or_default();
        *time += 1;
        all.insert((part, key, *time), shown);
    };
    let mut heading: Option<(String, usize)> = None;
    for line in model.lines() {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        if cells.is_empty() {
            heading = None;
            continue;
        }
        if heading.is_none() && is_heading(&cells) {
            // A request is known by its sender, its receiver and its kind; all else by its name.
            let names = if cells[0] == "REQUEST FROM" { 3 } else { 1 };
            heading = Some((cells[0].to_owned(), names));
            continue;
        }
        match &heading {
            Some((table, names)) => {
                let key = format!("{table} {}", cells[..cells.len().min(*names)].join("  "));
                add(LineKind::Row, key, format!("{} {}", table.to_lowercase(), cells.join("  ")));
            }
            None => add(LineKind::Line, cells.join("  "), cells.join("  ")),
        }
    }
    for finding in findings(words) {
        add(LineKind::Finding, finding.clone(), finding);
    }
    all
}

fn is_heading(cells: &[&str]) -> bool {
    let capital = |cell: &&str| cell.split('(').next().is_some_and(|word| word.trim() == word.trim().to_uppercase());
    cells.iter().all(capital) && cells[0].chars().any(char::is_alphabetic)
}

/// A trace, or a case of a rule file, that was tested.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// Its path; of a case the file, the line, and what it says.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
    /// How long that took, in seconds.
    pub seconds: f64,
}

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its model was compared with the accepted one.
    Compared(Verdict),
    /// No model has been accepted yet.
    New,
    /// What was found has just been accepted.
    Accepted,
    /// No model can be made of it, for these reasons. That is never accepted.
    Failed(String),
    /// An accepted model whose trace is gone.
    Orphaned,
    /// A case that stands in a rule file, and holds.
    Held,
    /// A case that does not hold, for these reasons.
    Broken(String),
}

impl Outcome {
    /// Whether it is that of a case.
    pub fn is_of_case(&self) -> bool {
        matches!(self, Self::Held | Self::Broken(_))
    }

    /// Whether nothing has to be done.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Compared(verdict) => verdict.is_good(),
            Self::New | Self::Failed(_) | Self::Orphaned | Self::Broken(_) => false,
            Self::Accepted | Self::Held => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{compare, with_words};

    const ACCEPTED: &str = "operations traced: 1 of rpc\n\nENTRY     TASK    DEMAND (s)\nclient_1  client      0.0003\nfind      \
                            server      0.0021\n\nREQUEST FROM  TO        KIND  MEAN NUMBER\nCu_rpc        client_1  sync            \
                            1\nclient_1      find      sync            1\n";

    #[test]
    fn elements_are_validated_noisy_missing_or_wrong() {
        assert_eq!(compare(ACCEPTED, ACCEPTED).summary(), "4 validated");
        assert!(compare(ACCEPTED, &ACCEPTED.replace("  ", "    ")).is_good());
        let found = ACCEPTED.replace("0.0021", "0.0022").replace("client_1      find  ", "client_1      seek  ");
        let verdict = compare(ACCEPTED, &found);
        assert_eq!(verdict.summary(), "2 validated, 1 noisy, 1 missing, 1 wrong");
        assert_eq!(verdict.noisy, ["request from client_1  seek  sync  1"]);
        assert_eq!(verdict.missing, ["request from client_1  find  sync  1"]);
        assert_eq!(verdict.wrong, [("entry find  server  0.0021".to_owned(), "entry find  server  0.0022".to_owned())]);
    }

    #[test]
    fn findings_are_compared_by_code_and_place() {
        let said = |words: &str| with_words(ACCEPTED, words);
        let old = said("warning[T041]: it is set aside\n--> traces/a.angio:39\n = note: why\n\n1 warning\n");
        let told_anew = said("warning[T041]: it is left out\n--> a.angio:39\n\n1 warning, and so on\n");
        assert_eq!(compare(&old, &told_anew).summary(), "4 validated");
        let verdict = compare(&old, &old.replace(":39", ":40"));
        assert_eq!(
            (verdict.missing, verdict.noisy),
            (vec!["warning[T041] a.angio:39".into()], vec!["warning[T041] a.angio:40".into()])
        );
        assert_eq!(compare(&old, ACCEPTED).missing, ["warning[T041] a.angio:39"]);
    }
}
