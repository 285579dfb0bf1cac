//! Nodes as people name them.
//!
//! | written | means |
//! |---|---|
//! | `a,1,5` or a whole label, `a,1,5,Fk(a,2) \| B,2` | scenario, thread, thread node counter |
//! | `1,5` | thread, thread node counter |
//! | `\|B,2` | task, task node counter |
//! | `traces/rpc.angio:7`, or `7` | the event of that line |
//! | `7f3a91c2d0e4b856`, or `shop.jsonl: 7f3a91c2d0e4b856` | all events of the span with that identifier |

use std::fmt;

use crate::{NodeId, Origins, Toeg, TraceNames};
use dyelog_diagnostic::names::Names;

/// A node of an operation, or the nodes of a span, by a name that people use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeName {
    /// By scenario, thread and thread node counter.
    Stamp {
        /// The scenario; any where it is not given.
        scenario: Option<String>,
        /// Thread.
        thread: u32,
        /// Thread node counter.
        index: u32,
    },
    /// By task and task node counter.
    OnTask {
        /// The task, as it is shown: with `.2` and so on for further instances.
        task: String,
        /// Task node counter.
        counter: u32,
    },
    /// By the place that it was read from.
    Place {
        /// The file, as the user gave its name; any where it is not given.
        file: Option<String>,
        /// A line number, or the identifier of a span.
        item: String,
    },
}

impl NodeName {
    /// Reads a name. Everything is the name of some node, if only of a span with an odd identifier.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some((task, counter)) = text.strip_prefix('|').and_then(|rest| rest.rsplit_once(','))
            && let Ok(counter) = counter.trim().parse()
        {
            return Self::OnTask { task: unquoted(task.trim()), counter };
        }
        if let Some(stamp) = stamp(text) {
            return stamp;
        }
        let place = |file: Option<&str>, item: &str| {
            let item = item.trim();
            let item = item.strip_prefix("span ").unwrap_or(item).trim();
            Self::Place { file: file.map(str::to_owned), item: item.to_owned() }
        };
        match text.rsplit_once(':') {
            Some((file, item)) if !file.is_empty() && !item.trim().is_empty() => place(Some(file), item),
            Some(("", item)) => place(None, item),
            _ => place(None, text),
        }
    }

    /// The file that the name tells, if it does.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Place { file, .. } => file.as_deref(),
            _ => None,
        }
    }

    /// The nodes of that name in a graph: one, or those of a span, in order.
    pub fn find(&self, toeg: &Toeg, names: &TraceNames) -> Vec<NodeId> {
        let operation = toeg.operation();
        match self {
            Self::Stamp { scenario, thread, index } => {
                if scenario.as_ref().is_some_and(|name| **name != *names.names.text(operation.scenario)) {
                    return Vec::new();
                }
                let thread = toeg.thread(*thread);
                let node = thread.and_then(|thread| thread.nodes().nth((*index as usize).wrapping_sub(1)));
                node.into_iter().collect()
            }
            Self::OnTask { task, counter } => {
                let is = |node: &NodeId| {
                    let event = toeg.event(*node);
                    event.counter == *counter && names.task_label(event.task) == *task
                };
                (0..toeg.len() as NodeId).filter(is).collect()
            }
            Self::Place { file, item } => {
                if file.as_ref().is_some_and(|file| **file != *operation.file) {
                    return Vec::new();
                }
                let origin = match &operation.origins {
                    Origins::Lines => item.parse().ok(),
                    Origins::Items(items) => {
                        items.iter().position(|span| *span.id == **item).and_then(|place| u32::try_from(place).ok())
                    }
                };
                let Some(origin) = origin else { return Vec::new() };
                (0..toeg.len() as NodeId).filter(|node| toeg.event(*node).origin == origin).collect()
            }
        }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stamp { scenario: Some(scenario), thread, index } => write!(f, "{scenario},{thread},{index}"),
            Self::Stamp { scenario: None, thread, index } => write!(f, "{thread},{index}"),
            Self::OnTask { task, counter } => write!(f, "|{task},{counter}"),
            Self::Place { file: Some(file), item } => write!(f, "{file}:{item}"),
            Self::Place { file: None, item } => f.write_str(item),
        }
    }
}

/// How a node is called: `scenario,thread,counter`, which [`NodeName::parse`] reads.
pub fn node_stamp(toeg: &Toeg, names: &Names, node: NodeId) -> String {
    let event = toeg.event(node);
    format!("{},{},{}", quoted(names.text(toeg.operation().scenario)), event.thread, event.index)
}

/// `[scenario,] thread, counter [, rest of the label]`
fn stamp(text: &str) -> Option<NodeName> {
    let (scenario, rest) = if let Some(inner) = text.strip_prefix('"') {
        let end = closing(inner)?;
        (Some(unescaped(&inner[..end])), inner[end + 1..].trim_start().strip_prefix(',')?)
    } else {
        let (first, rest) = text.split_once(',')?;
        if let Ok(thread) = first.trim().parse()
            && let Ok(index) = rest.trim().parse()
        {
            return Some(NodeName::Stamp { scenario: None, thread, index });
        }
        (Some(first.trim().to_owned()), rest)
    };
    let (thread, rest) = rest.split_once(',')?;
    let index = rest.split_once(',').map_or(rest, |(index, _)| index);
    Some(NodeName::Stamp { scenario, thread: thread.trim().parse().ok()?, index: index.trim().parse().ok()? })
}

/// A name in quotes where it would be read otherwise.
fn quoted(name: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !",|\"\\".contains(c);
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { format!("{name:?}") }
}

fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) => unescaped(inner),
        None => name.to_owned(),
    }
}

/// Where the closing quote stands.
fn closing(inner: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some(at),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

fn unescaped(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::NodeName;

    #[test]
    fn names_are_read_in_all_their_forms() {
        let stamp = |scenario: Option<&str>, thread, index| NodeName::Stamp {
            scenario: scenario.map(str::to_owned),
            thread,
            index,
        };
        let place =
            |file: Option<&str>, item: &str| NodeName::Place { file: file.map(str::to_owned), item: item.to_owned() };
        for (text, name) in [
            ("a,1,5", stamp(Some("a"), 1, 5)),
            ("a,1,5,Fk(a,2) | B,2", stamp(Some("a"), 1, 5)),
            (" a, 1, 5 ", stamp(Some("a"), 1, 5)),
            ("1,5", stamp(None, 1, 5)),
            ("7,1,5", stamp(Some("7"), 1, 5)),
            ("\"GET /a,b\",1,5", stamp(Some("GET /a,b"), 1, 5)),
            ("GET /a,1,5", stamp(Some("GET /a"), 1, 5)),
            ("\"a \\\" b\",1,5,Ac | B,2", stamp(Some("a \" b"), 1, 5)),
            ("|B.2,3", NodeName::OnTask { task: "B.2".to_owned(), counter: 3 }),
            ("traces/rpc.angio:7", place(Some("traces/rpc.angio"), "7")),
            ("7", place(None, "7")),
            (":7", place(None, "7")),
            ("00f067aa0ba902b7", place(None, "00f067aa0ba902b7")),
            ("shop.jsonl: span 00f067aa0ba902b7", place(Some("shop.jsonl"), "00f067aa0ba902b7")),
            ("", place(None, "")),
        ] {
            assert_eq!(NodeName::parse(text), name, "{text}");
        }
    }
}
