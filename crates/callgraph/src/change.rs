//! What would change if functions took more or less processor time (2002 §4).
//!
//! ```text
//! // Comments as here, /* like this */ and # like this.
//! reduction on processor group { hostA, x86 } by 10% to function { Mod::Printer::print, Mod::Queue::* };
//! increase by 25% to thread of { Mod::Printer::print };
//! ```
//!
//! Without processor groups a statement holds on all. `M::*` is all that begins with `M::`, and `*` is all. Statements take effect one
//! after another, each on what the ones before left. A reduction by 30% leaves 70% of the time; "30% faster" is another thing, a division
//! by 1.3, which is a reduction by 23.08%.

use std::sync::Arc as Shared;

use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, similar};

use crate::calls::CallTree;
use crate::codes;
use crate::context::{ContextTree, Key};
use crate::graph::{Arc, Granularity, Graph};
use crate::profile::Profile;

/// Parts of a whole that percentages are counted in: six decimals of a percent.
const WHOLE: i128 = 100_000_000;

/// The greatest increase, in percent.
const GREATEST: i128 = 1_000_000;

/// A name as it is written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    text: String,
    start: usize,
    end: usize,
}

/// A statement: a factor for all functions, or threads, that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    factor: i128,
    groups: Vec<Written>,
    threads: bool,
    functions: Vec<Written>,
}

/// A change: its statements in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    file: Shared<str>,
    /// The statements.
    pub statements: Vec<Statement>,
}

impl Change {
    /// Reads statements.
    ///
    /// # Errors
    /// `G101` for each statement that the grammar does not allow, `G104` for shares that make no sense.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let file: Shared<str> = file.into();
        let (tokens, mut faults) = tokens(text, &file);
        let mut parser = Parser { tokens: &tokens, at: 0, file: &file, end: text.len() };
        let mut statements = Vec::new();
        while parser.at < tokens.len() {
            match parser.statement() {
                Ok(statement) => statements.push(statement),
                Err(fault) => {
                    faults.push(*fault);
                    parser.recover();
                }
            }
        }
        if faults.is_empty() && statements.is_empty() {
            let place = Place::Range { file: Shared::clone(&file), start: 0, end: text.len() };
            faults.push(
                Diagnostic::error(codes::BAD_CHANGE, place, "there is no statement")
                    .with_hint("write `reduction by 10% to function { Mod::Interface::function };`"),
            );
        }
        if faults.is_empty() { Ok(Self { file, statements }) } else { Err(Diagnostics(faults)) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    start: usize,
    end: usize,
    quoted: bool,
}

fn tokens(text: &str, file: &Shared<str>) -> (Vec<Token>, Vec<Diagnostic>) {
    let (mut tokens, mut faults) = (Vec::new(), Vec::new());
    let mut at = 0;
    let fault = |start: usize, end: usize, message: &str| {
        Diagnostic::error(codes::BAD_CHANGE, Place::Range { file: Shared::clone(file), start, end }, message)
    };
    let word = |character: char| character.is_alphanumeric() || "_:*.-+/$<>@~".contains(character);
    while let Some(character) = text[at..].chars().next() {
        let (start, rest) = (at, &text[at..]);
        if character.is_whitespace() {
            at += character.len_utf8();
        } else if character == '#' || rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            match rest.find("*/") {
                Some(end) => at += end + 2,
                None => {
                    faults.push(fault(start, text.len(), "this comment has no end"));
                    at = text.len();
                }
            }
        } else if character == '"' {
            match rest[1..].find(['"', '\n']).filter(|end| rest[1 + end..].starts_with('"')) {
                Some(end) => {
                    at += end + 2;
                    tokens.push(Token { text: rest[1..=end].to_owned(), start, end: at, quoted: true });
                }
                None => {
                    faults.push(fault(start, start + 1, "this name has no end"));
                    at += rest.find('\n').unwrap_or(rest.len());
                }
            }
        } else if "{},;%".contains(character) {
            at += 1;
            tokens.push(Token { text: character.to_string(), start, end: at, quoted: false });
        } else if word(character) {
            at += rest.find(|other: char| !word(other)).unwrap_or(rest.len());
            tokens.push(Token { text: text[start..at].to_owned(), start, end: at, quoted: false });
        } else {
            at += character.len_utf8();
            faults.push(
                fault(start, at, "no word of a change begins so").with_hint("odd names stand in quotes: `\"a b\"`"),
            );
        }
    }
    (tokens, faults)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    file: &'a Shared<str>,
    end: usize,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| !token.quoted && token.text == word)
    }

    fn take(&mut self, word: &str) -> bool {
        let is = self.is(word);
        self.at += usize::from(is);
        is
    }

    fn place(&self) -> Place {
        let (start, end) = self.peek().map_or((self.end, self.end), |token| (token.start, token.end));
        Place::Range { file: Shared::clone(self.file), start, end }
    }

    fn wanted(&self, what: &str) -> Box<Diagnostic> {
        let found = self.peek().map_or("the end".to_owned(), |token| format!("`{}`", token.text));
        Box::new(Diagnostic::error(codes::BAD_CHANGE, self.place(), format!("{what} is needed here, not {found}")))
    }

    fn need(&mut self, word: &str) -> Parsed<()> {
        if self.take(word) {
            Ok(())
        } else {
            Err(Box::new(self.wanted(&format!("`{word}`")).with_similar(&self.found(), [word])))
        }
    }

    fn found(&self) -> String {
        self.peek().map_or(String::new(), |token| token.text.clone())
    }

    /// Goes on after the next semicolon.
    fn recover(&mut self) {
        while self.at < self.tokens.len() && !self.take(";") {
            self.at += 1;
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let reduction = self.take("reduction");
        if !reduction && !self.take("increase") {
            let fault = self.wanted("`reduction` or `increase`").with_similar(&self.found(), ["reduction", "increase"]);
            let fault = fault.with_note("\"30% faster\" divides the time by 1.3: that is a reduction by 23.08%");
            return Err(Box::new(fault));
        }
        let mut groups = Vec::new();
        if self.take("on") {
            self.need("processor")?;
            self.need("group")?;
            groups = self.names("a processor group")?;
        }
        self.need("by")?;
        let factor = self.share(reduction)?;
        self.need("to")?;
        let threads = self.take("thread");
        self.need(if threads { "of" } else { "function" })?;
        let functions = self.names("a function")?;
        if self.at < self.tokens.len() {
            self.need(";")?;
        }
        Ok(Statement { factor, groups, threads, functions })
    }

    fn names(&mut self, what: &str) -> Parsed<Vec<Written>> {
        self.need("{")?;
        let mut names = Vec::new();
        loop {
            match self.peek() {
                Some(token) if token.quoted || !["{", "}", ",", ";", "%"].contains(&token.text.as_str()) => {
                    names.push(Written { text: token.text.clone(), start: token.start, end: token.end });
                    self.at += 1;
                }
                _ => return Err(self.wanted(what)),
            }
            if self.take(",") {
                if self.take("}") {
                    return Ok(names);
                }
                continue;
            }
            self.need("}")?;
            return Ok(names);
        }
    }

    /// What is left of a time, in parts of [`WHOLE`].
    fn share(&mut self, reduction: bool) -> Parsed<i128> {
        let place = self.place();
        let Some(parts) = self.peek().and_then(|token| percent(&token.text)) else {
            return Err(self.wanted("a percentage such as `10%` or `2.5%`"));
        };
        self.at += 1;
        self.need("%")?;
        let bad = |message: &str| Box::new(Diagnostic::error(codes::BAD_SHARE, place.clone(), message));
        if reduction && parts > WHOLE {
            return Err(Box::new(
                bad("no more than 100% can be taken away").with_hint("`increase` makes a time longer"),
            ));
        }
        if parts > GREATEST * (WHOLE / 100) {
            return Err(bad("no increase is greater than 1000000%"));
        }
        Ok(if reduction { WHOLE - parts } else { WHOLE + parts })
    }
}

/// A decimal number of percents, with six decimals at most, in parts of [`WHOLE`].
fn percent(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 12 || fraction.len() > 6 {
        return None;
    }
    Some(whole.parse::<i128>().ok()? * (WHOLE / 100) + format!("{fraction:0<6}").parse::<i128>().ok()?)
}

/// A vector before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Nanoseconds by group before.
    pub before: Vec<i128>,
    /// Nanoseconds by group after.
    pub after: Vec<i128>,
}

impl Changed {
    fn new(before: &[i128], after: &[i128]) -> Self {
        Self { before: before.to_vec(), after: after.to_vec() }
    }

    /// After less before, by group.
    pub fn difference(&self) -> Vec<i128> {
        self.after.iter().zip(&self.before).map(|(after, before)| after - before).collect()
    }
}

/// A node of the CCDG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The node of both summaries.
    pub node: usize,
    /// What it spends itself.
    pub own: Changed,
    /// What all that it calls spends.
    pub descendent: Changed,
    /// What its outermost invocations spend with all that they call.
    pub inclusive_once: Changed,
}

/// What a change comes to.
#[derive(Clone, Debug)]
pub struct Impact {
    /// The summary before.
    pub before: Graph,
    /// The summary after, with the same nodes and arcs. Latencies are those before.
    pub after: Graph,
    /// The CPU consumption delta graph (CCDG): the nodes that the change reaches.
    pub deltas: Vec<Delta>,
    /// Its arcs: those between nodes that the change reaches, along which it does.
    pub arcs: Vec<Arc>,
}

/// Estimates a change: new times in the same paths, summarised anew.
///
/// # Errors
/// `G102` for processor groups and `G103` for functions that there are not, and `G104` where the new times would not fit.
pub fn impact(profile: &Profile, change: &Change, granularity: &Granularity) -> Result<Impact, Diagnostics> {
    let plan = ChangePlan::of(profile, change)?;
    let contexts = &profile.contexts;
    let mut reached = Vec::with_capacity(contexts.len());
    let mut times = Vec::with_capacity(contexts.len());
    let mut total = 0i64;
    for node in 0..contexts.len() {
        let (time, touched) = plan.apply(contexts, node);
        reached.push(touched);
        let sum = time.and_then(|time| total.checked_add(time));
        let (Some(time), Some(sum)) = (time, sum) else {
            let message = "the times after the change sum to more than 292 years";
            return Err(Diagnostic::error(
                codes::BAD_SHARE,
                Place::File { file: Shared::clone(&change.file) },
                message,
            )
            .into());
        };
        total = sum;
        times.push(time);
    }
    for node in (1..contexts.len()).rev() {
        if let (true, Some(parent)) = (reached[node], contexts.parent(node)) {
            reached[parent] = true;
        }
    }
    let before = Graph::with_times(profile, contexts, granularity);
    let after = Graph::with_times(profile, &contexts.with_times(times), granularity);
    let places = &before.places;
    let mut met = vec![false; before.nodes.len()];
    let mut ways = std::collections::BTreeSet::new();
    for node in (0..contexts.len()).filter(|node| reached[*node]) {
        let place = places.0[contexts.key(node).index()];
        met[place] = true;
        if let Some(parent) = contexts.parent(node) {
            ways.insert((places.0[contexts.key(parent).index()], place));
        }
    }
    let deltas = (0..met.len()).filter(|node| met[*node]).map(|node| {
        let (old, new) = (&before.nodes[node], &after.nodes[node]);
        Delta {
            node,
            own: Changed::new(&old.own, &new.own),
            descendent: Changed::new(&old.descendent, &new.descendent),
            inclusive_once: Changed::new(&old.inclusive_once, &new.inclusive_once),
        }
    });
    let deltas = deltas.collect();
    let arcs = before.arcs.iter().copied().filter(|arc| ways.contains(&(arc.from, arc.to))).collect();
    Ok(Impact { before, after, deltas, arcs })
}

/// The calls of a profile with the times that a change leaves them.
///
/// # Errors
/// As [`impact`]; `G108` where the profile did not keep its calls.
pub fn changed_calls(profile: &Profile, change: &Change) -> Result<CallTree, Diagnostics> {
    let plan = ChangePlan::of(profile, change)?;
    let Some(calls) = &profile.calls else {
        let place = Place::File { file: Shared::clone(&change.file) };
        return Err(Diagnostic::error(codes::NO_CALLS, place, "the profile has summaries only, and not its calls")
            .with_hint("set `keep_calls` in the options of the analysis")
            .into());
    };
    let mut changed = calls.clone();
    for (place, call) in changed.calls.iter_mut().enumerate() {
        let (Some(time), Some(group)) = (call.time, calls.group(place)) else { continue };
        // What does not fit was refused for the sum already.
        call.time = plan.scaled(time, group, call.key).0.or(call.time);
    }
    Ok(changed)
}

impl Impact {
    /// The summary before with the CCDG laid over it, which is the summary after (2002 §4, step 5).
    pub fn superposed(&self) -> Graph {
        let mut graph = self.before.clone();
        let add = |vector: &mut [i128], changed: &Changed| {
            for (value, difference) in vector.iter_mut().zip(changed.difference()) {
                *value += difference;
            }
        };
        for delta in &self.deltas {
            let node = &mut graph.nodes[delta.node];
            add(&mut node.own, &delta.own);
            add(&mut node.descendent, &delta.descendent);
            add(&mut node.inclusive_once, &delta.inclusive_once);
        }
        graph
    }
}

/// For each statement: its factor, the groups it holds on, and the keys that it names.
struct ChangePlan {
    steps: Vec<(i128, Vec<bool>, Vec<bool>)>,
}

impl ChangePlan {
    fn of(profile: &Profile, change: &Change) -> Result<Self, Diagnostics> {
        let (mut steps, mut faults) = (Vec::new(), Vec::new());
        let mut met = vec![false; profile.statistics.len()];
        for node in 1..profile.contexts.len() {
            met[profile.contexts.key(node).index()] = true;
        }
        let labels: Vec<String> =
            (0..profile.functions.len()).map(|function| profile.label(Key::function(function as u32), false)).collect();
        let place =
            |name: &Written| Place::Range { file: Shared::clone(&change.file), start: name.start, end: name.end };
        for statement in &change.statements {
            let mut groups = vec![statement.groups.is_empty(); profile.groups.len()];
            for name in &statement.groups {
                match profile.groups.iter().position(|group| *group == name.text) {
                    Some(group) => groups[group] = true,
                    None => faults.push(
                        Diagnostic::error(
                            codes::UNKNOWN_GROUP,
                            place(name),
                            format!("there is no processor group `{}`", name.text),
                        )
                        .with_note(format!("the groups are {}", profile.groups.join(", ")))
                        .with_similar(&name.text, profile.groups.iter().map(String::as_str)),
                    ),
                }
            }
            let mut keys = vec![false; met.len()];
            for name in &statement.functions {
                let mut found = false;
                for (function, label) in labels.iter().enumerate().skip(1) {
                    let index = function * 2 + usize::from(statement.threads);
                    if met[index] && matches(&name.text, label) {
                        (keys[index], found) = (true, true);
                    }
                }
                if !found {
                    faults.push(unknown(name, statement.threads, &labels, place(name)));
                }
            }
            steps.push((statement.factor, groups, keys));
        }
        if faults.is_empty() { Ok(Self { steps }) } else { Err(Diagnostics(faults)) }
    }

    /// The new time of a path's end, if it fits, and whether a statement names it.
    fn apply(&self, contexts: &ContextTree, node: usize) -> (Option<i64>, bool) {
        match contexts.group(node) {
            Some(group) => self.scaled(contexts.time(node), group, contexts.key(node)),
            None => (Some(contexts.time(node)), false),
        }
    }

    fn scaled(&self, time: i64, group: usize, key: Key) -> (Option<i64>, bool) {
        let (mut time, mut touched) = (i128::from(time), false);
        for (factor, groups, keys) in &self.steps {
            if groups[group] && keys[key.index()] {
                touched = true;
                time = (time.saturating_mul(*factor) + WHOLE / 2) / WHOLE;
            }
        }
        (i64::try_from(time).ok(), touched)
    }
}

fn matches(pattern: &str, label: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) if prefix.is_empty() || prefix.ends_with("::") => label.starts_with(prefix),
        _ => pattern == label,
    }
}

fn unknown(name: &Written, threads: bool, labels: &[String], place: Place) -> Diagnostic {
    let what = if threads { "no function spawns threads that is called" } else { "there is no function" };
    let finding = Diagnostic::error(codes::UNKNOWN_FUNCTION, place, format!("{what} `{}`", name.text));
    match similar(&name.text, labels.iter().skip(1).map(String::as_str)) {
        Some(near) => finding.with_hint(format!("did you mean `{near}`?")),
        None => finding.with_note("functions are named as `Module::Interface::function`"),
    }
}
