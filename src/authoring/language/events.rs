//! What editors ask about templates on events.

use super::complete::{Proposal, ProposalKind, keywords};
use super::{Read, Target};
use crate::datalog::ast::{Ident, Span};
use crate::datalog::event_template::{Asserted, EventTemplate, Lookup, Retired};
use crate::datalog::syntax::{TokenKind as Kind, print_condition};
use crate::same::rules::{EVENTS, FUNCTIONS, RECORDS, TESTS};

/// What may be named at a place: as rule files write it, and what it says.
type Described = (&'static str, &'static str);

/// Part of a template on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// After `on`.
    Event,
    /// Under `match`.
    Match,
    /// Under `where`.
    Where,
    /// Under `assert`.
    Assert,
    /// Under `model`.
    Model,
    /// Under `retire`.
    Retire,
}

impl Section {
    /// What may be named there.
    pub fn described(self) -> &'static [Described] {
        match self {
            Self::Event => &EVENTS,
            Self::Match => &FUNCTIONS,
            Self::Where => &TESTS,
            Self::Model => &RECORDS,
            Self::Assert | Self::Retire => &STATE,
        }
    }
}

/// The facts that make the state.
const STATE: [Described; 2] = [
    ("live(X)", "the live occurrence of a task; under `assert`, `V = live(B)` begins a new one of the receiver"),
    ("arc(P, C)", "a message went from P to C that no interaction has explained yet"),
];

/// `live` of `live(T)`
fn name_of(form: &'static str) -> &'static str {
    form.split_once('(').map_or(form, |(name, _)| name)
}

impl Read {
    /// The templates on events of the file itself.
    pub(super) fn own_event_templates(&self) -> impl Iterator<Item = &EventTemplate> {
        self.program.event_templates.iter().filter(|template| template.name.span.file == 0)
    }

    fn event_template_at(&self, at: usize) -> Option<&EventTemplate> {
        self.own_event_templates().find(|template| template.span.range().contains(&at))
    }

    /// Whether the item that begins at a token is a template on an event, as far as it is written.
    pub(super) fn is_on_event(&self, item: usize) -> bool {
        if self.word(item) != Some("template") {
            return false;
        }
        let end = (item + 1..self.tokens.len()).find(|number| self.begins_item(*number)).unwrap_or(self.tokens.len());
        (item..end).any(|number| match self.word(number) {
            Some("on") => self.kind(number + 1) == Some(Kind::Word),
            Some("assert" | "retire") => self.kind(number + 1) == Some(Kind::OpenCurly),
            _ => false,
        })
    }

    /// What a name in a template on an event means, in Markdown.
    pub(super) fn hover_on_event(&self, token: usize) -> Option<String> {
        let (word, at) = (self.word(token)?, self.tokens[token].start as usize);
        if token.checked_sub(1).and_then(|before| self.word(before)) == Some("template") {
            let named = self.own_event_templates().find(|template| &*template.name.value == word);
            return named.map(|template| self.told_on_event(template));
        }
        let template = self.event_template_at(at)?;
        if self.kind(token + 1) == Some(Kind::OpenRound) {
            let known = section_of(template, at)?.described();
            let forms = known.iter().filter(|(form, _)| name_of(form) == word);
            let lines: Vec<String> = forms.map(|(form, says)| format!("`{form}`: {says}\n")).collect();
            return (!lines.is_empty()).then(|| lines.join("\n"));
        }
        let (_, text) = bindings(template).into_iter().find(|(name, _)| *name.value == *word)?;
        Some(format!("```text\n{}\n```\n", self.program.text(text)))
    }

    /// Where a name in a template on an event is bound.
    pub(super) fn definition_on_event(&self, token: usize) -> Option<Target> {
        let (word, at) = (self.word(token)?, self.tokens[token].start as usize);
        let template = self.event_template_at(at)?;
        if self.kind(token + 1) == Some(Kind::OpenRound) {
            return None;
        }
        let (name, _) = bindings(template).into_iter().find(|(name, _)| *name.value == *word)?;
        self.target(name.span)
    }

    /// A template as its comment and its sections tell.
    fn told_on_event(&self, template: &EventTemplate) -> String {
        let order = template.order.as_ref().map(|order| format!(", order {}", order.value)).unwrap_or_default();
        let mut text = format!("**{}**{order}\n", template.name.value);
        if !template.doc.is_empty() {
            text.push_str(&format!("\n{}\n", template.doc));
        }
        let listed = |spans: Vec<Span>| spans.into_iter().map(|span| self.program.text(span)).collect::<Vec<_>>();
        let conditions = template.conditions.iter().map(|condition| print_condition(&condition.value)).collect();
        let sections: [(&str, Vec<String>); 6] = [
            ("on", listed(template.event.iter().map(|event| event.span).collect())),
            ("match", listed(template.lookups.iter().map(Lookup::span).collect())),
            ("where", conditions),
            ("assert", listed(template.asserted.iter().map(Asserted::span).collect())),
            ("model", listed(template.records.iter().map(|record| record.span).collect())),
            ("retire", listed(template.retired.iter().map(Retired::span).collect())),
        ];
        text.push_str("\n```text\n");
        for (keyword, lines) in sections {
            for (number, line) in lines.iter().enumerate() {
                let keyword = if number == 0 { keyword } else { "" };
                text.push_str(&format!("{keyword:<6} {line}\n"));
            }
        }
        text.push_str("```\n");
        text
    }

    /// What may be named in a section.
    pub(super) fn proposed_on_event(&self, section: Section) -> Vec<Proposal> {
        let described = section.described().iter();
        let known = described
            .map(|(form, says)| Proposal::new(ProposalKind::Relation, name_of(form), format!("{form}: {says}")));
        let more = match section {
            Section::Where => self.own_relations(),
            Section::Match => keywords(&["path"]),
            _ => Vec::new(),
        };
        known.chain(more).collect()
    }
}

/// The section that has a byte, by what was read of it.
fn section_of(template: &EventTemplate, at: usize) -> Option<Section> {
    let has = |span: Span| span.range().contains(&at);
    let any = |mut spans: Box<dyn Iterator<Item = Span> + '_>| spans.any(has);
    if template.event.as_ref().is_some_and(|event| has(event.span)) {
        return Some(Section::Event);
    }
    let sections: [(Section, Box<dyn Iterator<Item = Span> + '_>); 5] = [
        (Section::Match, Box::new(template.lookups.iter().map(Lookup::span))),
        (Section::Where, Box::new(template.conditions.iter().map(|condition| condition.span))),
        (Section::Assert, Box::new(template.asserted.iter().map(Asserted::span))),
        (Section::Model, Box::new(template.records.iter().map(|record| record.span))),
        (Section::Retire, Box::new(template.retired.iter().map(Retired::span))),
    ];
    sections.into_iter().find_map(|(section, spans)| any(spans).then_some(section))
}

/// The names that a template gives values to, each with what is written there.
fn bindings(template: &EventTemplate) -> Vec<(&Ident, Span)> {
    let mut all: Vec<(&Ident, Span)> = Vec::new();
    if let Some(event) = &template.event {
        all.extend(event.parameters.iter().map(|parameter| (parameter, event.span)));
    }
    for lookup in &template.lookups {
        match lookup {
            Lookup::Value { variable, .. } => all.push((variable, lookup.span())),
            Lookup::Path { name, count, span, .. } => all.extend([(name, *span), (count, *span)]),
        }
    }
    for asserted in &template.asserted {
        if let Asserted::New { variable, .. } = asserted {
            all.push((variable, asserted.span()));
        }
    }
    all
}
