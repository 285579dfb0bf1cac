//! Paths: names joined by points, as keys of TOML are.

use std::fmt;

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;

/// A path to a parameter: `processor.db.speed`, `scenario."GET /cart".population`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<String>);

impl Path {
    /// Of these names.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Reads a path. Names with points, spaces or quotation marks stand in quotation marks, single or double.
    ///
    /// # Errors
    /// Where a name is empty or a quotation mark is not closed.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let (path, rest) = Self::split(text)?;
        if rest.is_empty() { Ok(path) } else { Err(unreadable(text, "it ends where a point or nothing should follow")) }
    }

    /// Reads a path off the beginning of a text, up to `=` or its end.
    ///
    /// # Errors
    /// As [`Path::parse`].
    pub fn split(text: &str) -> Result<(Self, &str), Diagnostic> {
        let mut names = Vec::new();
        let mut rest = text.trim_start();
        loop {
            let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
            let (name, after) = if let Some(quote) = quote {
                rest[1..].split_once(quote).ok_or_else(|| unreadable(text, "a quotation mark is not closed"))?
            } else {
                let end = rest.find(['.', '=']).unwrap_or(rest.len());
                (rest[..end].trim(), &rest[end..])
            };
            if name.is_empty() && quote.is_none() {
                return Err(unreadable(text, "a name is missing"));
            }
            names.push(name.to_owned());
            let after = after.trim_start();
            match after.strip_prefix('.') {
                Some(next) => rest = next.trim_start(),
                None => return Ok((Self(names), after)),
            }
        }
    }

    /// Its names.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            let plain = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || ".='\",:".contains(c));
            match (plain, name.contains('"')) {
                (true, _) => f.write_str(name)?,
                (false, false) => write!(f, "\"{name}\"")?,
                (false, true) => write!(f, "'{name}'")?,
            }
        }
        Ok(())
    }
}

fn unreadable(text: &str, why: &str) -> Diagnostic {
    Diagnostic::error(codes::PATH, Place::Nowhere, format!("`{text}` is no path of a parameter: {why}"))
        .with_hint("paths look like `processor.db.multiplicity`, or `scenario.\"GET /cart\".population`")
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths_are_read_and_written() {
        for (text, names) in [
            ("processor.db.speed", vec!["processor", "db", "speed"]),
            ("scenario.\"GET /a.b\".rate", vec!["scenario", "GET /a.b", "rate"]),
            ("task.'a \"b\"'.threads", vec!["task", "a \"b\"", "threads"]),
            (" demand . x ", vec!["demand", "x"]),
        ] {
            let path = Path::parse(text).expect("it is a path");
            assert_eq!(path.names(), names);
            assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }
        assert_eq!(
            Path::split("a.b = 1..2").map(|(path, rest)| (path.to_string(), rest)),
            Ok(("a.b".into(), "= 1..2"))
        );
        for text in ["", ".", "a..b", "a.", "\"a", "a.\"b\"c"] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
    }
}
