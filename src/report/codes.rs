//! What each code of the product means, with an example of what brings it up and one of what does not.
//!
//! One text a room, in Markdown, which is also the book's page on codes. A test holds them to the codes that there are.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::diagnostic::similar;
use crate::report::Look;
use crate::report::json::pretty;
use crate::report::table::Table;

/// The texts, by what their codes are about.
const TEXTS: [&str; 9] = [
    include_str!("codes/traces.md"),
    include_str!("codes/rules.md"),
    include_str!("codes/queries.md"),
    include_str!("codes/models.md"),
    include_str!("codes/lqn.md"),
    include_str!("codes/solvers.md"),
    include_str!("codes/callgraph.md"),
    include_str!("codes/observe.md"),
    include_str!("codes/program.md"),
];

/// A piece of text that shows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// What language it is in, such as `dl` or `angio`; `text` where it is only a sketch.
    pub language: &'static str,
    /// The text.
    pub text: &'static str,
}

/// What a code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code, such as `R050`.
    pub code: &'static str,
    /// What it says, in a few words.
    pub title: &'static str,
    /// What codes of its kind are about, such as `Rule files`.
    pub subject: &'static str,
    /// Why it is so and what to do about it; may be empty where the title says it all.
    pub text: &'static str,
    /// What brings it up.
    pub bad: Example,
    /// The same without it.
    pub good: Example,
}

/// The meanings of all codes, in the order of the texts.
pub fn all() -> &'static [Explanation] {
    static ALL: LazyLock<Vec<Explanation>> = LazyLock::new(|| TEXTS.iter().flat_map(|text| read(text)).collect());
    &ALL
}

/// The meaning of a code; upper and lower case are the same.
pub fn find(code: &str) -> Option<&'static Explanation> {
    all().iter().find(|explanation| explanation.code.eq_ignore_ascii_case(code))
}

/// Whether a word has the form of a code, known or not: a letter and three digits.
pub fn looks_like_code(word: &str) -> bool {
    matches!(word.as_bytes(), [letter, digits @ ..]
        if letter.is_ascii_alphabetic() && digits.len() == 3 && digits.iter().all(u8::is_ascii_digit))
}

/// The code nearest to what was written, if one is near.
pub fn near(code: &str) -> Option<&'static str> {
    similar(code, all().iter().map(|explanation| explanation.code))
}

/// A meaning as text for people.
pub fn text(explanation: &Explanation) -> String {
    let mut text = format!("{}: {}\n", explanation.code, explanation.title);
    if !explanation.text.is_empty() {
        text.push_str(&format!("\n{}\n", explanation.text));
    }
    for (words, example) in [("This brings it up:", explanation.bad), ("This does not:", explanation.good)] {
        text.push_str(&format!("\n{words}\n\n"));
        for line in example.text.lines() {
            text.push_str(format!("    {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Codes with their titles, in tables that look like this.
pub fn list(look: impl Into<Look>) -> String {
    let look = look.into();
    let mut text = String::new();
    let mut subjects: Vec<&str> = all().iter().map(|explanation| explanation.subject).collect();
    subjects.dedup();
    for subject in subjects {
        let mut table = Table::new(&["CODE", subject]);
        for explanation in all().iter().filter(|explanation| explanation.subject == subject) {
            table.row(vec![explanation.code.to_owned(), explanation.title.to_owned()]);
        }
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&table.render(look));
    }
    text
}

/// Meanings as JSON: `{"dyelog-codes": 1, "codes": […]}`.
pub fn json(explanations: &[Explanation]) -> String {
    let example = |example: Example| json!({ "language": example.language, "text": example.text });
    let list: Value = explanations
        .iter()
        .map(|explanation| {
            json!({
                "code": explanation.code,
                "title": explanation.title,
                "subject": explanation.subject,
                "text": explanation.text,
                "bad": example(explanation.bad),
                "good": example(explanation.good),
            })
        })
        .collect();
    pretty(&json!({ "dyelog-codes": 1, "codes": list }))
}

/// The sections of a text: `## CODE title`, words, an example marked `bad` and one marked `good`.
fn read(text: &'static str) -> Vec<Explanation> {
    let mut sections = text.split("\n## ");
    let subject = sections.next().unwrap_or_default().trim_start_matches("# ").trim();
    sections.filter_map(|section| explanation(subject, section)).collect()
}

fn explanation(subject: &'static str, section: &'static str) -> Option<Explanation> {
    let (head, rest) = section.split_once('\n')?;
    let (code, title) = head.split_once(' ')?;
    let (words, examples) = rest.split_once("```")?;
    let mut bad = None;
    let mut good = None;
    for block in examples.split("\n```\n") {
        let (info, text) = block.trim_start_matches('\n').trim_start_matches("```").split_once('\n')?;
        let (language, which) = info.split_once(' ')?;
        let example = Example { language, text: text.trim_end_matches("```").trim_end() };
        match which {
            "bad" => bad = Some(example),
            _ => good = Some(example),
        }
        if good.is_some() {
            break;
        }
    }
    Some(Explanation { code, title, subject, text: words.trim(), bad: bad?, good: good? })
}
