//! Names of operations that differ in a number or an identifier only, where reading them could not tell that it is one (`Product.get-8123`).
//!
//! A number outside of a path may be part of a name (`step 12`). It is an identifier where many names with it were seen a few times each.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Place};
use crate::lqn::submodel::{Interaction, SubModel};
use crate::model::codes;

/// So many names at least are of one pattern.
pub const MANY: usize = 20;

/// Each of them was seen fewer times than this on the mean.
const SELDOM: u64 = 10;

/// From so many hexadecimal digits on a word with a digit is an identifier as a whole.
const HEXADECIMAL: usize = 6;

/// Patterns that are named.
const SHOWN: usize = 5;

/// Says which patterns put names of services together.
pub fn finding(sub: &SubModel) -> Option<Diagnostic> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    if !sub.concurrent {
        return None;
    }
    for entry in sub.entries().iter().filter(|entry| entry.interaction != Interaction::Customer) {
        let name = sub.names.text(entry.service);
        if let Some(pattern) = pattern(name) {
            let group = groups.entry(pattern).or_default();
            group.names.insert(name);
            group.invocations = group.invocations.saturating_add(entry.invocations);
        }
    }
    groups.retain(|_, group| {
        let names = group.names.len();
        names >= MANY && group.invocations < SELDOM.saturating_mul(names as u64)
    });
    let mut groups: Vec<(String, Group)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.names.len()));
    let all: usize = groups.iter().map(|(_, group)| group.names.len()).sum();
    let (first, _) = groups.first()?;
    let message = match groups.len() {
        1 => format!("{all} names of operations differ in what `*` stands for in `{first}`"),
        kinds => {
            format!("{all} names of operations differ in a number or an identifier only: they are {kinds} operations")
        }
    };
    let mut finding = Diagnostic::warning(codes::NAMES_ALIKE, Place::Nowhere, message);
    for (pattern, group) in groups.iter().take(SHOWN) {
        let example = group.names.first().copied().unwrap_or_default();
        finding = finding.with_note(format!(
            "`{pattern}`: {} names, such as `{example}`, were seen {} times in all",
            group.names.len(),
            group.invocations
        ));
    }
    if groups.len() > SHOWN {
        finding = finding.with_note(format!("and {} patterns more", groups.len() - SHOWN));
    }
    let options: Vec<String> =
        groups.iter().take(SHOWN).map(|(pattern, _)| format!("--group '{}'", pattern.replace('\'', "*"))).collect();
    Some(
        finding
            .with_note("each name is an operation of its own here, so that their loads, demands and percentiles are of a few operations each")
            .with_hint(format!("`{}` makes one operation of each; so does `group` in the configuration", options.join(" "))),
    )
}

#[derive(Default)]
struct Group<'n> {
    names: BTreeSet<&'n str>,
    invocations: u64,
}

/// A name with `*` in place of each number and identifier; `None` where it has none. A star of the name itself fits any text, too.
pub fn pattern(name: &str) -> Option<String> {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut pattern = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let word = rest.find(|own: char| !own.is_alphanumeric()).unwrap_or(rest.len());
        push_word(&mut pattern, &rest[..word]);
        let behind = &rest[word..];
        let next = behind.find(char::is_alphanumeric).unwrap_or(behind.len());
        pattern.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    Some(pattern)
}

/// Writes a word: as it is, as letters with a star for the number behind them, or as a star.
fn push_word(pattern: &mut String, word: &str) {
    let Some(digits) = word.find(|own: char| own.is_ascii_digit()) else {
        pattern.push_str(word);
        return;
    };
    let is_hexadecimal = word.len() >= HEXADECIMAL && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hexadecimal && word[digits..].bytes().all(|byte| byte.is_ascii_digit()) {
        pattern.push_str(&word[..digits]);
    }
    pattern.push('*');
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn numbers_and_identifiers_are_stars() {
        let cases = [
            ("Product.get-8123", Some("Product.get-*")),
            ("checkout order 4711", Some("checkout order *")),
            ("cart user17", Some("cart user*")),
            ("job a81f03 of 3", Some("job * of *")),
            ("lot 9x7q2", Some("lot *")),
            ("GET /hotels", None),
            ("größe 7 · 8", Some("größe * · *")),
        ];
        for (name, wanted) in cases {
            assert_eq!(pattern(name).as_deref(), wanted, "{name}");
        }
    }
}
