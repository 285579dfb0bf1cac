//! A small XML tree: elements with attributes and places. Entities other than XML's own five are errors, so that a
//! document cannot grow by them.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::codes;
use crate::findings::{Fault, Findings, fault};
use dyelog_diagnostic::Place;

/// How deep elements may lie in each other; the language itself needs nine levels.
const DEPTH: usize = 64;

/// One element.
pub(super) struct Element {
    pub(super) name: Box<str>,
    pub(super) attributes: Vec<(Box<str>, Box<str>)>,
    /// Positions in the tree.
    pub(super) children: Vec<usize>,
    /// Its own text, for the few elements that have one.
    pub(super) text: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Element {
    /// The attribute's value.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| &**own == name).map(|(_, value)| &**value)
    }
}

/// A document; its root is element 0.
pub(super) struct Tree {
    elements: Vec<Element>,
    /// Elements of results that were passed over.
    pub(super) results: u64,
}

/// Whether elements of results are to stay in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Model,
    ModelAndResults,
}

impl Tree {
    pub(super) fn root(&self) -> &Element {
        &self.elements[0]
    }

    /// The children that are of the model.
    pub(super) fn children(&self, of: &Element) -> impl Iterator<Item = &Element> {
        of.children.iter().map(|&child| &self.elements[child]).filter(|child| !is_result(&child.name))
    }

    /// The child of results, where they were kept.
    pub(super) fn result(&self, of: &Element, name: &str) -> Option<&Element> {
        of.children.iter().map(|&child| &self.elements[child]).find(|child| &*child.name == name)
    }
}

/// Turns offsets into lines and columns; offsets must not go back.
struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
}

impl Lines<'_> {
    fn at(&mut self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.text.len());
        for newline in memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.offset.min(offset)..offset]) {
            self.line += 1;
            self.line_start = self.offset + newline + 1;
        }
        self.offset = self.offset.max(offset);
        (self.line, (offset.saturating_sub(self.line_start) + 1) as u32)
    }
}

/// A document being read.
struct Growing<'a> {
    tree: Tree,
    lines: Lines<'a>,
    /// From the root to the element that is open.
    open: Vec<usize>,
    keep: Keep,
    /// How many elements of results are open that are passed over.
    in_results: usize,
}

/// Whether an element tells results and is no part of the model.
fn is_result(name: &str) -> bool {
    name.starts_with("result-") || matches!(name, "mva-info" | "marginal-queue-probabilities")
}

/// Reads a document.
pub(super) fn parse(text: &str, keep: Keep, findings: &Findings) -> Result<Tree, Fault> {
    let mut reader = Reader::from_str(text);
    let mut growing = Growing {
        tree: Tree { elements: Vec::new(), results: 0 },
        lines: Lines { text, offset: 0, line: 1, line_start: 0 },
        open: Vec::new(),
        keep,
        in_results: 0,
    };
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let (line, column) = growing.lines.at(start);
        let located = |mut error: Fault| {
            error.place = findings.line(line, column);
            error
        };
        match reader.read_event() {
            Ok(Event::Start(start)) => growing.start(&start, (line, column), true).map_err(located)?,
            Ok(Event::Empty(start)) => growing.start(&start, (line, column), false).map_err(located)?,
            Ok(Event::End(_)) => growing.end(),
            Ok(Event::Text(text)) => growing.text(&text.xml10_content()),
            Ok(Event::CData(text)) => growing.text(&text.xml10_content()),
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                let offset = usize::try_from(reader.error_position()).unwrap_or(usize::MAX);
                let (line, column) = growing.lines.at(offset.max(start));
                let mut fault = fault(codes::SYNTAX, format!("this is no well-formed XML: {error}"));
                fault.place = findings.line(line, column);
                return Err(fault);
            }
        }
    }
    growing.close(findings)
}

impl Growing<'_> {
    fn start(&mut self, start: &BytesStart<'_>, (line, column): (u32, u32), stays_open: bool) -> Result<(), Fault> {
        let name = start.name();
        let name: &str = name.as_ref();
        if self.in_results > 0 || (self.keep == Keep::Model && is_result(name)) {
            self.tree.results += 1;
            self.in_results += usize::from(stays_open);
            return Ok(());
        }
        if self.open.len() >= DEPTH {
            return Err(fault(codes::TOO_DEEP, format!("elements lie in each other more than {DEPTH} levels deep")));
        }
        let id = self.tree.elements.len();
        match self.open.last() {
            Some(&parent) => self.tree.elements[parent].children.push(id),
            None if id > 0 => {
                return Err(fault(codes::SYNTAX, format!("a second root element, `{name}`, after the first")));
            }
            None => {}
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute =
                attribute.map_err(|error| fault(codes::SYNTAX, format!("an attribute of `{name}`: {error}")))?;
            let key: &str = attribute.key.as_ref();
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| fault(codes::SYNTAX, format!("the attribute `{key}` of `{name}`: {error}")))?;
            attributes.push((Box::from(key), Box::from(&*value)));
        }
        let (name, children, text) = (Box::from(name), Vec::new(), String::new());
        self.tree.elements.push(Element { name, attributes, children, text, line, column });
        if stays_open {
            self.open.push(id);
        }
        Ok(())
    }

    fn end(&mut self) {
        if self.in_results > 0 {
            self.in_results -= 1;
        } else {
            self.open.pop();
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_results == 0
            && let Some(&open) = self.open.last()
            && !text.trim_start().is_empty()
        {
            self.tree.elements[open].text += text;
        }
    }

    fn close(self, findings: &Findings) -> Result<Tree, Fault> {
        let (message, place) = match (self.open.last(), self.tree.elements.first()) {
            (Some(&open), _) => {
                let element = &self.tree.elements[open];
                (format!("the element `{}` is never closed", element.name), at(element, findings))
            }
            (None, None) => ("there is no model in this document".to_owned(), findings.file()),
            (None, Some(root)) if self.in_results > 0 => {
                ("an element of results is never closed".to_owned(), at(root, findings))
            }
            (None, Some(_)) => return Ok(self.tree),
        };
        let mut error = fault(codes::SYNTAX, message);
        error.place = place;
        Err(error)
    }
}

/// Where an element stands.
pub(super) fn at(element: &Element, findings: &Findings) -> Place {
    findings.line(element.line, element.column)
}
