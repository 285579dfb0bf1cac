//! Operations by what they do, not by what they do it to: `GET /search/123` and `GET /search/124` are one operation.
//!
//! What goes first wins:
//!
//! 1. a pattern of the user's (`GET /user/*`) that the name fits;
//! 2. the route that the instrumentation tells (`http.route`, `url.template`), with the method, where the name is a method alone or has an
//!    identifier in it;
//! 3. the name with `{id}` in place of each identifier (a heuristic of ours, by the rules of Datadog's and Grafana Tempo's backends).
//!
//! An identifier is
//!
//! - a part of a path (between `/`) that is a whole number, a UUID, hexadecimal digits (8 or more, some of them 0 to 9), an address of mail, a
//!   date, or 16 or more letters and digits in a mixture that no word has;
//! - elsewhere a UUID, a whole number of 6 digits or more, or hexadecimal digits (16 or more, some of them 0 to 9);
//! - within either, between `-`, `_`, `.` and the like, what is one elsewhere, or a date (`report-2026-11-23.pdf`).
//!
//! What is asked for (`?q=1`) is no part of a name. What a name becomes depends on nothing but the name, so that parts of a trace give what
//! the whole gives.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::spans::model::Span;
use crate::{ReadReport, codes};
use dyelog_diagnostic::names::{Name, Names};
use dyelog_diagnostic::{Diagnostic, Place, Severity};

/// What stands for an identifier.
const ID: &str = "{id}";

/// How many names become one before the note names them.
const SHOWN: usize = 3;

/// How names of operations are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// By the recorded route, else with `{id}` for identifiers.
    #[default]
    Identifiers,
    /// Not at all.
    Off,
    /// By patterns, the first that a name fits.
    Patterns {
        /// In the order in which they are tried.
        patterns: Arc<[NamePattern]>,
        /// Whether names that fit none are grouped as by default.
        others: bool,
    },
}

impl Grouping {
    /// From the patterns that were given, none by default. `none` among them keeps all names that fit no pattern.
    ///
    /// # Errors
    /// Which pattern is not one.
    pub fn of_patterns<S: AsRef<str>>(patterns: &[S]) -> Result<Self, String> {
        let texts = || patterns.iter().map(AsRef::as_ref);
        let others = texts().all(|text| text != NONE);
        let patterns: Arc<[NamePattern]> =
            texts().filter(|text| *text != NONE).map(NamePattern::parse).collect::<Result<_, _>>()?;
        Ok(match (patterns.is_empty(), others) {
            (true, true) => Self::Identifiers,
            (true, false) => Self::Off,
            (false, others) => Self::Patterns { patterns, others },
        })
    }
}

impl Grouping {
    /// The patterns from which [`Grouping::of_patterns`] makes it.
    pub fn patterns(&self) -> Vec<String> {
        let (patterns, others): (&[NamePattern], bool) = match self {
            Self::Identifiers => (&[], true),
            Self::Off => (&[], false),
            Self::Patterns { patterns, others } => (patterns, *others),
        };
        let none = (!others).then(|| NONE.to_owned());
        patterns.iter().map(|pattern| pattern.text.to_string()).chain(none).collect()
    }

    /// What a name becomes where no route is recorded.
    pub fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let own = if *self == Self::Off { None } else { grouped(name, "", self) };
        own.map_or(Cow::Borrowed(name), Cow::Owned)
    }
}

/// What turns grouping by identifiers off, among patterns.
const NONE: &str = "none";

/// A name with `*` for any text without a `/`, and `**` for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: Arc<str>,
}

impl NamePattern {
    /// From its text.
    ///
    /// # Errors
    /// It has no `*`, and so would group nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.contains('*') {
            return Err(format!("`{text}` has no `*`, so that it groups nothing"));
        }
        Ok(Self { text: text.into() })
    }

    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        let (pattern, name) = (self.text.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // Where matching goes on if it fails: behind the last double star, one character further.
        let mut again: Option<(usize, usize)> = None;
        // The same for the last single star, which stops at a slash.
        let mut single: Option<(usize, usize)> = None;
        loop {
            if p < pattern.len() && pattern[p] == b'*' {
                let double = pattern.get(p + 1) == Some(&b'*');
                p += if double { 2 } else { 1 };
                if double {
                    (again, single) = (Some((p, n)), None);
                } else {
                    single = Some((p, n));
                }
                continue;
            }
            if n == name.len() && p == pattern.len() {
                return true;
            }
            if p < pattern.len() && n < name.len() && pattern[p] == name[n] {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            match (single, again) {
                (Some((behind, at)), _) if at < name.len() && name[at] != b'/' => {
                    single = Some((behind, at + 1));
                    (p, n) = (behind, at + 1);
                }
                (_, Some((behind, at))) if at < name.len() => {
                    again = Some((behind, at + 1));
                    single = None;
                    (p, n) = (behind, at + 1);
                }
                _ => return false,
            }
        }
    }
}

/// Gives spans the names of their groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    grouping: Grouping,
    /// What a name and a route become.
    names: FxHashMap<(Name, Name), Name>,
    changed: FxHashMap<Name, Group>,
}

impl Groups {
    /// None yet.
    pub fn new(grouping: &Grouping) -> Self {
        Self { grouping: grouping.clone(), ..Self::default() }
    }

    /// Gives spans the names of their groups.
    pub fn name(&mut self, spans: &mut [Span], names: &mut Names) {
        let Self { grouping, names: groups, changed } = self;
        if *grouping == Grouping::Off {
            return;
        }
        for span in spans {
            let key = (span.name, span.route);
            let group = *groups.entry(key).or_insert_with(|| {
                let (name, route) = (names.text(span.name), names.text(span.route));
                match grouped(name, route, grouping) {
                    Some(text) if text != name => {
                        let from: Arc<str> = name.into();
                        let group = names.intern(&text);
                        let own = changed.entry(group).or_default();
                        own.names += 1;
                        own.least = Some(own.least.take().map_or(Arc::clone(&from), |least| least.min(from)));
                        group
                    }
                    _ => span.name,
                }
            });
            if group != span.name {
                if let Some(own) = changed.get_mut(&group) {
                    own.spans += 1;
                }
                span.name = group;
            }
        }
    }

    /// Tells of those that changed.
    pub fn report(&self, first_file: &Arc<str>, names: &Names, report: &mut ReadReport) {
        let mut told: Vec<(&str, &Group)> =
            self.changed.iter().map(|(name, group)| (names.text(*name), group)).collect();
        told.retain(|(_, group)| group.names > 1);
        told.sort_unstable_by_key(|(name, group)| (std::cmp::Reverse(group.spans), *name));
        let total: u64 = told.iter().map(|(_, group)| group.spans).sum();
        if total == 0 {
            return;
        }
        let distinct: usize = told.iter().map(|(_, group)| group.names).sum();
        let plural = if told.len() == 1 { "one operation" } else { &format!("{} operations", told.len()) };
        let place = Place::File { file: Arc::clone(first_file) };
        let mut finding = Diagnostic::new(
            Severity::Note,
            codes::GROUPED,
            place,
            format!("{distinct} names of operations with identifiers in them are {plural}"),
        );
        for (name, group) in told.iter().take(SHOWN) {
            let example = group.least.as_deref().unwrap_or_default();
            finding = finding.with_note(format!("`{name}`: {} names, such as `{example}`", group.names));
        }
        if told.len() > SHOWN {
            finding = finding.with_note(format!("and {} more", told.len() - SHOWN));
        }
        report.kinds.insert(REASON, codes::GROUPED);
        report.tally(REASON, total);
        report.findings.push(
            finding.with_hint(
                "`--group PATTERN` groups by patterns such as `GET /user/*`; `--group none` keeps all names",
            ),
        );
    }
}

const REASON: &str = "span whose name has an identifier in it";

/// The names that became one.
#[derive(Debug, Default)]
struct Group {
    names: usize,
    spans: u64,
    /// The first of them in alphabetical order.
    least: Option<Arc<str>>,
}

/// The name of the group of a name; `None` where it stays as it is.
fn grouped(name: &str, route: &str, grouping: &Grouping) -> Option<String> {
    if let Grouping::Patterns { patterns, others } = grouping {
        match patterns.iter().find(|pattern| pattern.fits(name)) {
            Some(pattern) => return Some(pattern.text.to_string()),
            None if !others => return None,
            None => {}
        }
    }
    let own = without_identifiers(name);
    if route.is_empty() {
        return own;
    }
    let method = method_of(name);
    let alone = method.is_some_and(|method| name.trim_start_matches("HTTP ").trim() == method);
    (alone || own.is_some()).then(|| match method {
        Some(method) => format!("{method} {route}"),
        None => route.to_owned(),
    })
}

const METHODS: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE"];

/// The method with which a name begins.
fn method_of(name: &str) -> Option<&str> {
    let name = name.strip_prefix("HTTP ").unwrap_or(name);
    let first = name.split([' ', ':']).next()?;
    METHODS.contains(&first).then_some(first)
}

/// A name with `{id}` for each identifier, and without what is asked for; `None` where it has neither.
fn without_identifiers(name: &str) -> Option<String> {
    // Nearly all names have no digit, and no query.
    if !name.bytes().any(|byte| byte.is_ascii_digit() || byte == b'?' || byte == b'@') {
        return None;
    }
    let mut text = String::with_capacity(name.len());
    let mut changed = false;
    for (number, word) in name.split(' ').enumerate() {
        if number > 0 {
            text.push(' ');
        }
        let is_path = word.contains('/');
        let word = match word.split_once('?') {
            Some((path, _)) if is_path => {
                changed = true;
                path
            }
            _ => word,
        };
        if !is_path {
            changed |= push_token(&mut text, word, is_identifier_of_text);
            continue;
        }
        for (at, part) in word.split('/').enumerate() {
            if at > 0 {
                text.push('/');
            }
            // Spring and JAX-RS leave parameters of a path behind a semicolon.
            changed |= push_token(&mut text, part, is_identifier_of_path);
        }
    }
    changed.then_some(text)
}

/// Writes a token, or `{id}` in its place; brackets and quotes around it stay. Whether it was one.
fn push_token(text: &mut String, token: &str, is_identifier: fn(&str) -> bool) -> bool {
    let around: &[char] = &['(', ')', '[', ']', '"', '\'', ',', ';', ':', '#', '<', '>', '='];
    let core = token.trim_matches(around);
    if core.is_empty() || !is_identifier(core) {
        return push_parts(text, token);
    }
    let before = token.find(core).unwrap_or(0);
    text.push_str(&token[..before]);
    text.push_str(ID);
    text.push_str(&token[before + core.len()..]);
    true
}

/// Writes a token with `{id}` for each identifier within it. Whether there was one.
fn push_parts(text: &mut String, token: &str) -> bool {
    let mut changed = false;
    let mut rest = token;
    while let Some(next) = rest.chars().next() {
        let is_of_word = |other: char| other.is_alphanumeric();
        if !is_of_word(next) {
            text.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let ends_at = |length: usize| rest.get(length..).is_some_and(|after| !after.starts_with(is_of_word));
        let compound = [(UUID, is_uuid as fn(&str) -> bool), (DATE, is_day)];
        let compound = compound.into_iter().find(|(length, is_one)| ends_at(*length) && is_one(&rest[..*length]));
        let word = rest.find(|other| !is_of_word(other)).unwrap_or(rest.len());
        let length = compound.map_or(word, |(length, _)| length);
        let is_one = compound.is_some() || is_identifier_of_text(&rest[..word]);
        text.push_str(if is_one { ID } else { &rest[..length] });
        changed |= is_one;
        rest = &rest[length..];
    }
    changed
}

fn is_identifier_of_path(part: &str) -> bool {
    is_number(part, 1) || is_uuid(part) || is_hexadecimal(part, 8) || is_mail(part) || is_date(part) || is_mixture(part)
}

fn is_identifier_of_text(word: &str) -> bool {
    is_number(word, 6) || is_uuid(word) || is_hexadecimal(word, 16)
}

fn is_number(text: &str, least: usize) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() >= least && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The lengths of UUIDs and of dates.
const UUID: usize = 36;
const DATE: usize = 10;

fn is_uuid(text: &str) -> bool {
    text.len() == UUID
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_hexadecimal(text: &str, least: usize) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    digits.len() >= least
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_mail(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
}

/// Whether a text is a day, as `2026-11-23`.
fn is_day(text: &str) -> bool {
    let is_at = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == DATE && text.bytes().enumerate().all(is_at)
}

fn is_date(text: &str) -> bool {
    text.get(..DATE).is_some_and(is_day)
        && text.get(DATE..).is_none_or(|rest| rest.is_empty() || rest.starts_with(['T', 't', '_']))
}

/// Letters and digits that change places too often for a word with a number at its end (`node12`, `v2beta1`).
fn is_mixture(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'=');
    if text.len() < 16 || !text.bytes().all(is_part) {
        return false;
    }
    let kinds = text.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.is_ascii_digit());
    let changes = kinds.clone().zip(kinds.skip(1)).filter(|(one, next)| one != next).count();
    changes >= 4
}

#[cfg(test)]
mod tests {
    use super::{Grouping, NamePattern, grouped, without_identifiers};

    #[test]
    fn identifiers() {
        let cases = [
            ("GET /search/123", "GET /search/{id}"),
            ("GET /search/123/items/7?x=1&y=2", "GET /search/{id}/items/{id}"),
            ("/user/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/user/{id}"),
            ("GET /o/5759e988bd862e3f", "GET /o/{id}"),
            ("GET /u/ann@example.org/cart", "GET /u/{id}/cart"),
            ("GET /day/2026-11-23", "GET /day/{id}"),
            ("GET /f/a8Kx02LmQ9z7Yt41bc", "GET /f/{id}"),
            ("process order 1234567", "process order {id}"),
            ("job (00f067aa0ba902b7)", "job ({id})"),
            ("GET /list?page=2", "GET /list"),
            ("GET /files/report-2026-11-23.pdf", "GET /files/report-{id}.pdf"),
            ("GET /img/IMG_20261123_101500.jpg", "GET /img/IMG_{id}_{id}.jpg"),
            ("GET /a/x-3f2504e0-4f89-11d3-9a0c-0305e82c3301.json", "GET /a/x-{id}.json"),
            ("export-2026-11-23 done", "export-{id} done"),
        ];
        for (name, group) in cases {
            assert_eq!(without_identifiers(name).as_deref(), Some(group), "{name}");
            assert_eq!(without_identifiers(group), None, "{group}");
        }
        let kept = [
            "GET /hotels",
            "HTTP GET /recommendations",
            "/reservation.Reservation/CheckAvailability",
            "GET /api/v1/items",
            "GET /api/v2beta1/namespaces",
            "SELECT 1",
            "step 12",
            "GET /product/{id}",
            "s3.PutObject",
            "GET /oauth2/token",
            "facade/deadbeef-feed",
            "kubernetes-persistentvolumes/list",
            "SELECT ? FROM t WHERE a = ?",
            "mean = 0.5",
            "GET /lib/jquery-3.7.1.min.js",
            "GET /é-12/ü",
        ];
        for name in kept {
            assert_eq!(without_identifiers(name), None, "{name}");
        }
    }

    #[test]
    fn routes_and_patterns() {
        let by_route = |name, route| grouped(name, route, &Grouping::Identifiers);
        assert_eq!(by_route("GET", "/user/{name}").as_deref(), Some("GET /user/{name}"));
        assert_eq!(by_route("HTTP GET", "/user/{name}").as_deref(), Some("GET /user/{name}"));
        assert_eq!(by_route("GET /user/17", "/user/:id").as_deref(), Some("GET /user/:id"));
        assert_eq!(by_route("find user", "/user/{name}"), None);
        let patterns = Grouping::of_patterns(&["GET /user/*", "GET /files/**", "job-*"]).expect("they are patterns");
        let by_pattern = |name| grouped(name, "", &patterns);
        assert_eq!(by_pattern("GET /user/ann").as_deref(), Some("GET /user/*"));
        assert_eq!(by_pattern("GET /user/ann/cart"), None);
        assert_eq!(by_pattern("GET /files/a/b/c.txt").as_deref(), Some("GET /files/**"));
        assert_eq!(by_pattern("job-x").as_deref(), Some("job-*"));
        assert_eq!(by_pattern("GET /other/12").as_deref(), Some("GET /other/{id}"));
        assert_eq!(Grouping::of_patterns(&["none"]), Ok(Grouping::Off));
        let alone = Grouping::of_patterns(&["none", "job-*"]).expect("they are patterns");
        assert_eq!(grouped("job-x", "", &alone).as_deref(), Some("job-*"));
        assert_eq!(grouped("GET /other/12", "", &alone), None);
        assert!(Grouping::of_patterns(&["GET /user"]).is_err());
    }

    #[test]
    fn stars() {
        let fits = |pattern, name| NamePattern::parse(pattern).expect("a pattern").fits(name);
        for (pattern, name) in
            [("*", "a"), ("*", ""), ("a*c", "abbc"), ("a**z*", "a/b/zz"), ("**/x", "a/b/x"), ("a*b*c", "axbybc")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*", "a/b"), ("a*c", "a/c"), ("a*", "b"), ("**/x", "a/b/y"), ("a*b", "ab/")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
